//! Walks over the log and skips what cannot be read.
//!
//! A damaged page hides only its own entries, as long as the tree that leads to the other pages is intact. So readable
//! entries after it are found by trying one entry number after the other, within bounds. Nothing is repaired.

use std::ops::ControlFlow;

use super::db::Db;
use crate::error::JournalError;
use crate::limits::{PROBES_AHEAD, PROBES_MAX};
use crate::read::ScanItem;

/// What follows a place that cannot be read.
enum AfterDamage {
    At(u64),
    /// Nothing that can be read; the last entry that must have existed, if it is known.
    Nothing(Option<u64>),
}

impl Db {
    /// Walks over the log after an entry until `each` breaks, and reports each unreadable range.
    pub(crate) fn scan_past(
        &self,
        mut after: u64,
        each: &mut dyn FnMut(ScanItem<'_>) -> ControlFlow<()>,
    ) -> Result<(), JournalError> {
        let (mut probes, mut end) = (PROBES_MAX, None);
        loop {
            let (mut last, mut said) = (after, ControlFlow::Continue(()));
            let walked = self.scan(after, &mut |entry| {
                last = last.max(entry.seq);
                said = each(ScanItem::Entry(&entry));
                Ok(said)
            });
            if is_read(walked)? || said.is_break() {
                return Ok(());
            }
            let from = last.saturating_add(1);
            let end = *end.get_or_insert_with(|| self.end());
            match self.behind(from, end, &mut probes)? {
                AfterDamage::At(seq) => {
                    if seq > from && each(ScanItem::Unread { from, to: Some(seq - 1) }).is_break() {
                        return Ok(());
                    }
                    after = seq - 1;
                }
                AfterDamage::Nothing(to) => {
                    // The walk ends here in any case.
                    let _: ControlFlow<()> = each(ScanItem::Unread { from, to });
                    return Ok(());
                }
            }
        }
    }

    /// The last entry that must exist, by the highest number or the lengths of the streams, if one of them can be
    /// read: entry numbers have no gaps.
    fn end(&self) -> Option<u64> {
        let counted = self
            .heads()
            .ok()
            .map(|heads| heads.iter().fold(0, |sum: u64, (_, head)| sum.saturating_add(head.stream_seq)));
        self.last_seq().ok().max(counted)
    }

    /// Finds the next entry that can be read. The number of tries is bounded, so that this ends with any damage.
    fn behind(&self, from: u64, end: Option<u64>, probes: &mut u32) -> Result<AfterDamage, JournalError> {
        let upto = end.unwrap_or_else(|| from.saturating_add(PROBES_AHEAD));
        for seq in from..=upto {
            let Some(left) = probes.checked_sub(1) else { return Ok(AfterDamage::Nothing(None)) };
            *probes = left;
            let mut found = None;
            let probed = self.scan_some(seq - 1, 1, &mut |entry| {
                found = Some(entry.seq);
                Ok(ControlFlow::Continue(()))
            });
            match (is_read(probed)?, found) {
                (true, None) => return Ok(AfterDamage::Nothing(end)),
                // A damaged tree may lead back to an earlier entry.
                (true, Some(found)) if found >= seq => return Ok(AfterDamage::At(found)),
                _ => {}
            }
        }
        Ok(AfterDamage::Nothing(end))
    }
}

/// Whether everything could be read, or some of it is damaged.
fn is_read(walked: Result<(), JournalError>) -> Result<bool, JournalError> {
    match walked {
        Err(JournalError::Corrupt { .. }) => Ok(false),
        walked => walked.map(|()| true),
    }
}
