//! Checks the whole log: every hash, every link, every seal, every payload.
//!
//! It walks once, in log order, and keeps only the head of each stream. It finds every edited, missing or reordered
//! entry, with one exception: entries after the last seal can be forged together with the heads of their streams. Only
//! a copy or a seal ([`ExternalSeal`]) that is kept elsewhere reveals that. Entries that a damaged page hides are
//! reported, and those after them are checked as usual. It repairs nothing.

use std::collections::BTreeMap;

use max_team_core::hash::Hash;

use crate::Journal;
use crate::chain::{ChainCheck, FaultDetail, FaultKind};
use crate::entry::{Entry, Head};
use crate::erase::Tombstone;
use crate::error::JournalError;
use crate::limits::FAULTS_MAX;
use crate::read::ScanItem;
use crate::seal::{ExternalSeal, chain};
use crate::system_events;

/// What a verification found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Entries walked over.
    pub entries: u64,
    /// The last of them.
    pub last_seq: u64,
    /// Streams they belong to.
    pub streams: u64,
    /// Seals among them.
    pub seals: u64,
    /// Entries whose payload was erased with a tombstone.
    pub erased: u64,
    /// The chained hashes of all entries, as in a seal at the end of the log.
    pub digest: Hash,
    /// What is wrong: entries in reading order, then payloads, then streams.
    pub faults: Vec<Fault>,
    /// Faults beyond those listed.
    pub more_faults: u64,
}

/// Something that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The entry where it shows; 0 where there is none.
    pub seq: u64,
    /// Its stream; empty where it is about none.
    pub stream: String,
    /// What is wrong.
    pub kind: FaultKind,
    pub detail: FaultDetail,
}

impl Journal {
    /// Checks the whole log, and the file it is in.
    pub fn verify(&self) -> Result<Report, JournalError> {
        self.verify_against(None)
    }

    /// Like `verify`, and compares the log with a seal that was kept elsewhere.
    pub fn verify_against(&self, seal: Option<ExternalSeal>) -> Result<Report, JournalError> {
        let mut audit = Audit::new(seal);
        audit.report.faults.extend(self.broken().map(|detail| Fault::new(0, "", detail.clone())));
        let schema = self.schema_check();
        audit.has_other_schema = schema.as_ref().is_ok_and(|details| !details.is_empty());
        audit.found(schema)?;
        let walked = self.scan_with_heads(&mut |walked| match walked {
            ScanItem::Entry(entry) => audit.entry(entry),
            ScanItem::Unread { from, to } => audit.unread(from, to),
        });
        let blobs = self.false_blobs().map(|names| names.into_iter().map(FaultDetail::Blob).collect());
        audit.found(blobs)?;
        let lines = self.whole_check().map(|lines| lines.into_iter().map(FaultDetail::File).collect());
        audit.found(lines)?;
        match walked {
            Ok(heads) => Ok(audit.finish(heads)),
            // Without the heads, only the streams that were met can be counted.
            Err(error) => {
                audit.found(Err(error))?;
                audit.report.streams = audit.check.take_heads().len() as u64;
                Ok(audit.report)
            }
        }
    }
}

impl Fault {
    /// At an entry (0 where there is none) of a stream (empty where it is about none).
    pub fn new(seq: u64, stream: impl Into<String>, detail: FaultDetail) -> Self {
        Self { seq, stream: stream.into(), kind: detail.kind(), detail }
    }
}

struct Audit {
    report: Report,
    check: ChainCheck,
    /// Payloads that are missing and that no tombstone has accounted for yet.
    lost: BTreeMap<Hash, MissingPayload>,
    /// A seal that was kept elsewhere, and the digest of the log where that seal ends.
    seal: Option<(ExternalSeal, Option<Hash>)>,
    /// Whether the tables differ from those of the program: then a failing query is a fault of the file.
    has_other_schema: bool,
}

/// Entries that share a payload: how many, and the first.
struct MissingPayload {
    entries: u64,
    seq: u64,
    stream: String,
}

impl Audit {
    fn new(seal: Option<ExternalSeal>) -> Self {
        Self {
            report: Report::default(),
            check: ChainCheck::whole(),
            lost: BTreeMap::new(),
            seal: seal.map(|seal| (seal, (seal.to_seq == 0).then(Hash::default))),
            has_other_schema: false,
        }
    }

    fn fault(&mut self, fault: Fault) {
        if self.report.faults.len() == FAULTS_MAX {
            self.report.more_faults += 1;
            return;
        }
        self.report.faults.push(fault);
    }

    /// Adds faults that belong to no entry. If a check fails because the file is damaged, that is the fault it found.
    fn found(&mut self, found: Result<Vec<FaultDetail>, JournalError>) -> Result<(), JournalError> {
        let details = match found {
            Err(JournalError::Corrupt { detail, .. }) => vec![FaultDetail::File(detail)],
            Err(JournalError::Io { detail, .. }) if self.has_other_schema => vec![FaultDetail::File(detail)],
            found => found?,
        };
        for detail in details {
            // Every check that reads a damaged page fails with the same text: it is listed once.
            if self.report.faults.iter().all(|known| known.detail != detail) {
                self.fault(Fault::new(0, "", detail));
            }
        }
        Ok(())
    }

    /// Reports entries that damage hides; the walk goes on after them.
    fn unread(&mut self, from: u64, to: Option<u64>) {
        self.check.skip(from, to);
        self.fault(Fault::new(0, "", FaultDetail::Unread { from, to }));
    }

    fn entry(&mut self, entry: &Entry) {
        self.report.entries += 1;
        self.report.last_seq = self.report.last_seq.max(entry.seq);
        self.report.digest = chain(&self.report.digest, &entry.hash);
        if let Some((seal, reached)) = self.seal.as_mut().filter(|(seal, _)| seal.to_seq == entry.seq) {
            *reached = Some(self.report.digest).filter(|_| reached.is_none() && seal.to_seq > 0);
        }
        for detail in self.check.entry(entry) {
            self.fault(Fault::new(entry.seq, &entry.stream, detail));
        }
        if entry.payload.is_none() {
            let first = || MissingPayload { entries: 0, seq: entry.seq, stream: entry.stream.clone() };
            self.lost.entry(entry.payload_hash).or_insert_with(first).entries += 1;
        }
        // A tombstone accounts for missing payloads of earlier entries.
        if entry.stream == system_events::ERASED {
            for hash in Tombstone::of(entry) {
                self.report.erased += self.lost.remove(&hash).map_or(0, |lost| lost.entries);
            }
        }
        self.report.seals += u64::from(entry.stream == system_events::SEAL);
    }

    /// Compares the streams with their heads: a head shows that its stream lacks its last entries.
    fn finish(mut self, heads: Vec<(String, Head)>) -> Report {
        let mut check = std::mem::replace(&mut self.check, ChainCheck::whole());
        for (hash, MissingPayload { entries, seq, stream }) in std::mem::take(&mut self.lost) {
            // Tombstones may be hidden, so a missing payload proves nothing.
            if !check.has_skipped() {
                self.fault(Fault::new(seq, stream, FaultDetail::PayloadGone { hash, entries }));
            }
        }
        let unlike = self.seal.filter(|(seal, reached)| *reached != Some(seal.digest) && !check.has_skipped());
        if let Some((ExternalSeal { to_seq, .. }, _)) = unlike {
            let last_seq = self.report.last_seq;
            self.fault(Fault::new(0, "", FaultDetail::ExternalSeal { to_seq, last_seq }));
        }
        let mut left = check.take_heads();
        for (stream, head) in heads {
            let found = left.remove(&stream).unwrap_or_default();
            let lacking = head.stream_seq.saturating_sub(found.stream_seq);
            if lacking > 0 && check.is_hidden(&stream, lacking) {
                // It is reported as hidden already.
            } else if lacking > 0 {
                let detail = FaultDetail::StreamGap { from: found.stream_seq + 1, to: head.stream_seq };
                self.fault(Fault::new(0, stream, detail));
            } else if (head.stream_seq, head.hash) != (found.stream_seq, found.hash) {
                self.fault(Fault::new(0, stream, FaultDetail::Head));
            }
            self.report.streams += 1;
        }
        let mut headless: Vec<String> = left.into_keys().collect();
        headless.sort_unstable();
        for stream in headless {
            self.fault(Fault::new(0, stream, FaultDetail::NoHead));
            self.report.streams += 1;
        }
        self.report
    }
}
