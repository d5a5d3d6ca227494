//! Makes a long journal out of a short one, and measures what an append costs on the way.
//!
//! `long_journal --from FOLDER --to FOLDER --entries N`: what happened in the first journal happens again and again in
//! the second, each time to other sessions, agents, plans and messages, a minute later. So the streams, rows and
//! messages are those of real work. It goes through the journal as everybody does, with normal commits. Prints one
//! line of JSON.
#![expect(clippy::print_stdout, reason = "a command line program")]

use std::collections::HashSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use max_team_core::event::Event;
use max_team_core::id::EnvelopeId;
use max_team_journal::{Append, Commit, Entry, Expect, Journal, Options, TimerOp};
use max_team_runtime::project_entry;
use serde_json::json;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Entries of one commit.
const GROUP_MAX: usize = 500;
/// Appends that are timed at each length.
const TIMED: u64 = 2_000;
/// The short length.
const SHORT: u64 = 1_000;
/// Between two times that everything happens.
const APART_MS: u64 = 60_000;
/// Digits of an id that say when it was made, and all of them.
const TIME_DIGITS: usize = 12;
const ID_DIGITS: usize = 32;

fn main() -> Outcome<()> {
    let (mut from, mut to, mut entries) = (None, None, 1_000_000);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match (arg.as_str(), args.next()) {
            ("--from", Some(value)) => from = Some(PathBuf::from(value)),
            ("--to", Some(value)) => to = Some(PathBuf::from(value)),
            ("--entries", Some(value)) => entries = value.parse()?,
            (other, _) => return Err(format!("unknown argument `{other}`").into()),
        }
    }
    let (Some(from), Some(to)) = (from, to) else { return Err("--from and --to say where".into()) };
    tokio::runtime::Builder::new_current_thread().build()?.block_on(lengthen(&from, &to, entries))
}

async fn lengthen(from: &Path, to: &Path, entries: u64) -> Outcome<()> {
    let seed = Journal::open_existing(from, Options::default())?.read_all(0, usize::MAX)?;
    let journal = Journal::open(to, Options::default())?;
    let (started, mut copy, mut short_us) = (Instant::now(), 0, None);
    while journal.last_seq()? < entries {
        again(&journal, &seed, copy).await?;
        copy += 1;
        if short_us.is_none() && journal.last_seq()? >= SHORT {
            short_us = Some(append_us(&journal, "short").await?);
        }
    }
    let filled = started.elapsed();
    let long_us = append_us(&journal, "long").await?;
    let all = journal.last_seq()?;
    journal.close().await?;
    let told = json!({
        "entries": all, "copies": copy, "of": seed.len(), "filled_s": filled.as_secs_f64(),
        "short_us": short_us, "long_us": long_us, "rss_kib": rss_kib(),
    });
    println!("{told}");
    Ok(())
}

/// What of a commit an entry is. A commit is written in this order, and at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Append,
    Send,
    Ack,
    Timer,
}

impl Part {
    /// Nothing, for what the journal writes by itself, and for what goes to people.
    fn of(entry: &Entry) -> Option<Self> {
        match entry.stream.split('/').next() {
            Some("seal" | "erased" | "outbox") => None,
            Some("mail") if entry.event == "acked" => Some(Self::Ack),
            Some("mail") => Some(Self::Send),
            Some("timer") => Some(Self::Timer),
            _ => Some(Self::Append),
        }
    }
}

/// Everything happens once more, in the order it did: rows follow from the log, so what changes them must not change places.
async fn again(journal: &Journal, seed: &[Entry], copy: u64) -> Outcome<()> {
    let (mut commit, mut sent, mut last) = (Commit::default(), HashSet::new(), None);
    for entry in seed {
        let (Some(payload), Some(part)) = (entry.payload.as_deref(), Part::of(entry)) else { continue };
        let mut entry = Entry {
            stream: String::from_utf8(later(entry.stream.as_bytes(), copy))?,
            payload: Some(later(payload, copy)),
            at_ms: entry.at_ms + i64::try_from(copy * APART_MS)?,
            ..entry.clone()
        };
        let acks: Vec<EnvelopeId> = if part == Part::Ack { parse(&entry)? } else { Vec::new() };
        // A message is taken in a later commit than the one that sends it.
        let is_full = commit.appends.len() + commit.sends.len() >= GROUP_MAX;
        if is_full || last > Some(part) || acks.iter().any(|id| sent.contains(id)) {
            journal.commit(std::mem::take(&mut commit)).await?;
            sent.clear();
            last = None;
        }
        // What is committed together has happened at one time, for its rows as well.
        if last.is_none() {
            commit.at_ms = entry.at_ms;
        }
        entry.at_ms = commit.at_ms;
        last = Some(part);
        commit.projections.extend(project_entry(&entry));
        match part {
            Part::Append => commit.appends.push(append(entry)),
            Part::Send => {
                if let Event::Mailed(envelope) = parse(&entry)? {
                    sent.insert(envelope.id);
                    commit.sends.push(envelope);
                }
            }
            Part::Ack => commit.acks.extend(acks),
            Part::Timer => commit.timers.push(parse::<TimerOp>(&entry)?),
        }
    }
    journal.commit(commit).await?;
    Ok(())
}

fn parse<T: serde::de::DeserializeOwned>(entry: &Entry) -> Outcome<T> {
    Ok(serde_json::from_slice(entry.payload.as_deref().unwrap_or_default())?)
}

fn append(entry: Entry) -> Append {
    let Entry { stream, event, version, payload, actor, cause, .. } = entry;
    Append { stream, event, version, payload: payload.unwrap_or_default(), actor, cause }
}

/// The same text about others: each id in it was made later.
fn later(text: &[u8], copy: u64) -> Vec<u8> {
    let mut other = text.to_vec();
    let mut at = 0;
    while let Some(found) = other.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == b'_')) {
        at += found + 1;
        let Some(id) = other.get_mut(at..at + ID_DIGITS).filter(|id| id.iter().all(u8::is_ascii_hexdigit)) else {
            continue;
        };
        let Some(time) = id.get_mut(..TIME_DIGITS) else { continue };
        let made = std::str::from_utf8(time).ok().and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let made = format!("{:0TIME_DIGITS$x}", made.unwrap_or_default() + copy * APART_MS);
        time.copy_from_slice(made.as_bytes());
        at += ID_DIGITS;
    }
    other
}

/// The median of some steps of an agent, one commit each.
async fn append_us(journal: &Journal, name: &str) -> Outcome<f64> {
    let stream = format!("bench/{name}");
    let text = "x".repeat(600);
    let mut times = Vec::new();
    for step in 0..TIMED {
        let payload = json!({ "step": step, "text": text }).to_string().into_bytes();
        let append = Append { stream: stream.clone(), event: "step".into(), version: 1, payload, ..Append::default() };
        let expect = vec![(stream.clone(), Expect::At(step))];
        let started = Instant::now();
        journal.commit(Commit { expect, appends: vec![append], ..Commit::default() }).await?;
        times.push(started.elapsed());
    }
    times.sort_unstable();
    Ok(times.get(times.len() / 2).map_or(0.0, Duration::as_secs_f64) * 1e6)
}

/// The most memory that this process has had.
fn rss_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

#[cfg(test)]
mod tests {
    use max_team_runtime::compare_rows;

    use super::*;

    /// A journal that somebody has worked with.
    const WORKED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../max-team/tests/it/journals/0.1.0.db");

    #[tokio::test]
    async fn every_row_of_a_long_journal_follows_from_its_log() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::copy(WORKED, from.path().join("journal.db")).unwrap();
        lengthen(from.path(), to.path(), 1_000).await.unwrap();
        let journal = Journal::open_existing(to.path(), Options::default()).unwrap();
        let rows = compare_rows(&journal).unwrap();
        assert!(rows.is_empty(), "{} rows: {rows:?}", rows.count());
        assert!(journal.verify().unwrap().is_sound());
    }
}
