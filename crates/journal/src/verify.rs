//! Checking the whole log: every hash, every link, every seal, every payload.
//!
//! It walks once, in reading order, and keeps only where each stream is. It finds every edited, missing or reordered
//! entry, except what a forger does to the entries behind the last seal while also rewriting the streams' heads:
//! against that only a copy elsewhere helps. It repairs nothing.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use max_team_core::hash::Hash;

use crate::Journal;
use crate::entry::{Entry, Head};
use crate::erase::Tombstone;
use crate::error::JournalError;
use crate::limits::FAULTS_MAX;
use crate::own;
use crate::seal::Seal;

/// What a verification found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Entries walked over.
    pub entries: u64,
    /// Streams they belong to.
    pub streams: u64,
    /// Seals among them.
    pub seals: u64,
    /// Entries whose payload was erased with a tombstone.
    pub erased: u64,
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
    /// In words.
    pub detail: String,
}

/// What can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// It does not hash to what it says.
    Edited,
    /// Entries that must have been there are not.
    Missing,
    /// It stands where another must be.
    Reordered,
    /// A seal does not fit what it covers.
    SealBroken,
    /// Its payload is gone and no tombstone says so.
    PayloadMissing,
    /// The file itself is broken.
    Damaged,
}

impl Journal {
    /// Checks the whole log, and the file it is in.
    pub fn verify(&self) -> Result<Report, JournalError> {
        let mut check = Check {
            report: Report::default(),
            heads: HashMap::new(),
            last_seq: 0,
            lost: BTreeMap::new(),
            unsealed: Seal::after(None),
        };
        let walked = self.scan_with_heads(&mut |entry| {
            check.entry(&entry);
            Ok(ControlFlow::Continue(()))
        });
        let blobs = self.false_blobs().map(|names| {
            let words = |name| format!("blob `{name}` does not fit its hash");
            names.into_iter().map(words).collect()
        });
        check.found(FaultKind::Edited, blobs)?;
        check.found(FaultKind::Damaged, self.whole_check())?;
        match walked {
            Ok(heads) => Ok(check.finish(heads)),
            // What cannot be walked to its end is damaged, not shorter.
            Err(error) => check.found(FaultKind::Damaged, Err(error)).map(|()| check.report),
        }
    }
}

struct Check {
    report: Report,
    heads: HashMap<String, Head>,
    last_seq: u64,
    /// Payloads that are gone and that no tombstone has spoken of yet.
    lost: BTreeMap<Hash, Lost>,
    /// What a seal at this point would have to say.
    unsealed: Seal,
}

/// Entries that share a payload: how many, and the first.
struct Lost {
    entries: u64,
    seq: u64,
    stream: String,
}

impl Check {
    fn fault(&mut self, seq: u64, stream: &str, kind: FaultKind, detail: String) {
        if self.report.faults.len() == FAULTS_MAX {
            self.report.more_faults += 1;
            return;
        }
        self.report.faults.push(Fault { seq, stream: stream.to_owned(), kind, detail });
    }

    /// What is wrong beside the entries. A check that trips over a broken file has found that it is.
    fn found(&mut self, kind: FaultKind, found: Result<Vec<String>, JournalError>) -> Result<(), JournalError> {
        let (kind, lines) = match found {
            Err(JournalError::Corrupt { detail, .. }) => (FaultKind::Damaged, vec![detail]),
            found => (kind, found?),
        };
        lines.into_iter().for_each(|line| self.fault(0, "", kind, line));
        Ok(())
    }

    fn fault_at(&mut self, entry: &Entry, kind: FaultKind, detail: String) {
        self.fault(entry.seq, &entry.stream, kind, detail);
    }

    fn entry(&mut self, entry: &Entry) {
        self.report.entries += 1;
        self.check_place(entry);
        self.check_content(entry);
        self.check_link(entry);
        if entry.stream == own::ERASED {
            self.bury(entry);
        }
        if entry.stream == own::SEAL {
            self.unsealed = self.check_seal(entry);
        }
        self.unsealed.add(entry.seq, &entry.hash);
        self.last_seq = entry.seq;
        self.heads.insert(entry.stream.clone(), Head { row: 0, stream_seq: entry.stream_seq, hash: entry.hash });
    }

    /// The sequence has no gaps where one process at a time writes.
    fn check_place(&mut self, entry: &Entry) {
        let expected = self.last_seq + 1;
        if entry.seq > expected {
            let detail = format!("entries {expected} to {} are not there", entry.seq - 1);
            self.fault_at(entry, FaultKind::Missing, detail);
        }
    }

    fn check_content(&mut self, entry: &Entry) {
        if entry.digest() != entry.hash {
            self.fault_at(entry, FaultKind::Edited, "a column does not fit its hash".to_owned());
        }
        match &entry.payload {
            Some(payload) if Hash::of(payload) != entry.payload_hash => {
                self.fault_at(entry, FaultKind::Edited, "the payload does not fit its hash".to_owned());
            }
            Some(_) => {}
            None => {
                let first = || Lost { entries: 0, seq: entry.seq, stream: entry.stream.clone() };
                self.lost.entry(entry.payload_hash).or_insert_with(first).entries += 1;
            }
        }
    }

    /// A tombstone accounts for what is gone before it. One that does not parse accounts for nothing.
    fn bury(&mut self, entry: &Entry) {
        let payload = entry.payload.as_deref().unwrap_or_default();
        for hash in serde_json::from_slice::<Tombstone>(payload).into_iter().flat_map(|said| said.payloads) {
            self.report.erased += self.lost.remove(&hash).map_or(0, |lost| lost.entries);
        }
    }

    fn check_link(&mut self, entry: &Entry) {
        let head = self.heads.get(&entry.stream).copied().unwrap_or_default();
        let expected = head.stream_seq + 1;
        if entry.stream_seq > expected {
            let detail = format!("entries {expected} to {} of the stream are not there", entry.stream_seq - 1);
            self.fault_at(entry, FaultKind::Missing, detail);
        } else if entry.stream_seq < expected {
            let detail = format!("it stands where entry {expected} of the stream must be");
            self.fault_at(entry, FaultKind::Reordered, detail);
        } else if entry.prev_hash != head.hash {
            self.fault_at(entry, FaultKind::Edited, "it does not follow from the entry before it".to_owned());
        }
    }

    /// Compares a seal with what it covers; returns the next one's beginning.
    fn check_seal(&mut self, entry: &Entry) -> Seal {
        let found = self.unsealed;
        self.report.seals += 1;
        let said = entry.payload.as_deref().and_then(|payload| serde_json::from_slice::<Seal>(payload).ok());
        let Some(said) = said else {
            self.fault_at(entry, FaultKind::SealBroken, "it cannot be read".to_owned());
            return Seal::after(Some(&found));
        };
        if said != found {
            let detail = format!(
                "it covers {} entries, {} to {}; there are {}, {} to {}, or they differ",
                said.count, said.from_seq, said.to_seq, found.count, found.from_seq, found.to_seq
            );
            self.fault_at(entry, FaultKind::SealBroken, detail);
        }
        // From here on the seal's own word counts, so that one fault is not told again by every later seal.
        Seal::after(Some(&said))
    }

    /// A stream's head tells what its last entries cannot: that there were more.
    fn finish(mut self, heads: Vec<(String, Head)>) -> Report {
        for (hash, lost) in std::mem::take(&mut self.lost) {
            let detail = format!("payload `{hash}` of {} entries is gone and no tombstone says so", lost.entries);
            self.fault(lost.seq, &lost.stream, FaultKind::PayloadMissing, detail);
        }
        for (stream, head) in heads {
            let found = self.heads.remove(&stream).unwrap_or_default();
            if head.stream_seq > found.stream_seq {
                let detail =
                    format!("entries {} to {} of the stream are not there", found.stream_seq + 1, head.stream_seq);
                self.fault(0, &stream, FaultKind::Missing, detail);
            } else if (head.stream_seq, head.hash) != (found.stream_seq, found.hash) {
                self.fault(0, &stream, FaultKind::Edited, "its head does not fit its last entry".to_owned());
            }
            self.report.streams += 1;
        }
        let mut headless: Vec<String> = self.heads.drain().map(|(stream, _)| stream).collect();
        headless.sort_unstable();
        for stream in headless {
            self.fault(0, &stream, FaultKind::Edited, "the stream has no head".to_owned());
            self.report.streams += 1;
        }
        self.report
    }
}
