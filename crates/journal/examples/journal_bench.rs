//! Measures the journal on this disk and prints one line of JSON.
//!
//! `cargo run --release -p max-team-journal --example journal_bench -- [--entries N] [--dir FOLDER]`
//! Times are microseconds per step as an async caller sees them; `fdatasync_us` is the same disk's price for one
//! synced 4 KiB append, measured in the same run, before and after the synced steps.

use std::error::Error;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use max_team_core::message::{Envelope, Kind};
use max_team_journal::{Append, Commit, Expect, Fence, Journal, Options, Projection, Strength, WorkerInfo};
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn Error>>;

const NORMAL_STEPS: u64 = 20_000;
const FULL_WRITERS: u64 = 16;
const FULL_STEPS: u64 = 50;
const FULL_ROUNDS: usize = 15;
const SYNCS: usize = 50;

fn main() -> Outcome<()> {
    let mut entries = 100_000;
    let mut dir = None;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match (arg.as_str(), args.next()) {
            ("--entries", Some(value)) => entries = value.parse()?,
            ("--dir", Some(value)) => dir = Some(PathBuf::from(value)),
            ("--rounds", _) => {}
            (other, _) => return Err(format!("unknown argument `{other}`").into()),
        }
    }
    let home = dir.unwrap_or_else(|| PathBuf::from("target"));
    let scratch = home.join(format!("journal-bench-{}", std::process::id()));
    fs::create_dir_all(&scratch)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let measured = runtime.block_on(measure(&scratch, entries));
    fs::remove_dir_all(&scratch)?;
    writeln!(std::io::stdout(), "{}", measured?)?;
    Ok(())
}

async fn measure(scratch: &Path, entries: u64) -> Outcome<Value> {
    let (normal_us, normal_mean_us, bytes_per_step) = normal(&scratch.join("normal")).await?;
    let rich_us = rich(&scratch.join("rich")).await?;
    let (full16_us, fdatasync_us) = full_rounds(scratch).await?;
    let open_ms = open(&scratch.join("open"), entries).await?;
    let full16_target_us = 1.25 * fdatasync_us / 16.0 + 40.0;
    let round = |value: f64| (value * 100.0).round() / 100.0;
    Ok(json!({
        "normal_us": round(normal_us), "normal_mean_us": round(normal_mean_us), "rich_us": round(rich_us),
        "full16_us": round(full16_us), "full16_target_us": round(full16_target_us),
        "fdatasync_us": round(fdatasync_us), "payload_bytes": payload(1).len(),
        "bytes_per_step": round(bytes_per_step), "entries": entries, "open_ms": round(open_ms),
    }))
}

/// About six hundred bytes that do not repeat.
fn payload(step: u64) -> Vec<u8> {
    let text: String = (0..15).map(|part| format!("{:040x}", u128::from(step) << 64 | part)).collect();
    format!("{{\"said\":{{\"text\":\"{text}\"}}}}").into_bytes()
}

fn append(stream: &str, step: u64) -> Append {
    Append {
        stream: stream.to_owned(),
        event: "tool_done".into(),
        version: 1,
        payload: payload(step),
        actor: "agent/agt_01990000000070008000000000000001".to_owned(),
        cause: None,
    }
}

async fn normal(dir: &Path) -> Outcome<(f64, f64, f64)> {
    let journal = Journal::open(dir, Options::default())?;
    let stream = "agent/agt_01990000000070008000000000000001";
    let mut times = Vec::new();
    for step in 0..NORMAL_STEPS {
        let commit = Commit {
            expect: vec![(stream.to_owned(), Expect::At(step))],
            at_ms: 1_700_000_000_000,
            appends: vec![append(stream, step)],
            ..Commit::default()
        };
        let started = Instant::now();
        journal.commit(commit).await?;
        times.push(started.elapsed());
    }
    journal.close().await?;
    let bytes = fs::metadata(dir.join("journal.db"))?.len();
    Ok((median_us(&mut times), mean_us(&times), bytes as f64 / NORMAL_STEPS as f64))
}

/// Everything that a step of an agent can carry at once.
async fn rich(dir: &Path) -> Outcome<f64> {
    let journal = Journal::open(dir, Options::default())?;
    let stream = "agent/agt_01990000000070008000000000000001";
    let info = WorkerInfo {
        id: "wrk_01990000000070008000000000000001".parse()?,
        pid: std::process::id(),
        host: "here".to_owned(),
        started_at_ms: 0,
        what: "bench".to_owned(),
    };
    let worker = journal.worker(info)?;
    let epoch = journal.claim(stream, &worker).await?;
    let mut times = Vec::new();
    let mut last = None;
    for step in 0..NORMAL_STEPS / 4 {
        let letter = Envelope {
            id: format!("env_{step:032x}").parse()?,
            from: stream.to_owned(),
            to: "user/ada".to_owned(),
            kind: Kind::UserReply,
            body: json!({ "text": "done" }),
            reply_to: None,
            cause: None,
            sent_at_ms: 0,
        };
        let sent = letter.id;
        let commit = Commit {
            expect: vec![(stream.to_owned(), Expect::At(step))],
            fence: Some(Fence { resource: stream.to_owned(), worker: worker.id(), epoch }),
            appends: vec![append(stream, step)],
            sends: vec![letter],
            acks: last.take().into_iter().collect(),
            projections: vec![Projection::Put {
                table: "agents".into(),
                key: stream.to_owned(),
                value: br#"{"state":"busy"}"#.to_vec(),
                sort_ms: i64::try_from(step)?,
            }],
            ..Commit::default()
        };
        let started = Instant::now();
        journal.commit(commit).await?;
        times.push(started.elapsed());
        last = Some(sent);
    }
    journal.close().await?;
    Ok(median_us(&mut times))
}

/// Synced steps and bare syncs by turns, for a shared disk changes its mind from second to second.
async fn full_rounds(scratch: &Path) -> Outcome<(f64, f64)> {
    let journal = Journal::open(scratch.join("full"), Options::default())?;
    let mut bare = File::create(scratch.join("fdatasync"))?;
    let (mut steps, mut syncs) = (Vec::new(), Vec::new());
    for round in 0..FULL_ROUNDS {
        syncs.push(fdatasync(&mut bare)?);
        steps.push(full(&journal, round as u64).await?);
        if std::env::args().any(|arg| arg == "--rounds") {
            writeln!(std::io::stderr(), "fdatasync {:?}, step {:?}", syncs.last(), steps.last())?;
        }
    }
    journal.close().await?;
    Ok((median_us(&mut steps), median_us(&mut syncs)))
}

async fn full(journal: &Journal, round: u64) -> Outcome<Duration> {
    let local = tokio::task::LocalSet::new();
    let started = Instant::now();
    let tasks: Vec<_> = (0..FULL_WRITERS)
        .map(|writer| {
            let journal = journal.clone();
            local.spawn_local(async move {
                let stream = format!("agent/agt_{writer:032x}");
                for step in 0..FULL_STEPS {
                    let commit = Commit {
                        strength: Strength::Full,
                        expect: vec![(stream.clone(), Expect::At(round * FULL_STEPS + step))],
                        appends: vec![append(&stream, step)],
                        ..Commit::default()
                    };
                    journal.commit(commit).await?;
                }
                Ok::<_, max_team_journal::JournalError>(())
            })
        })
        .collect();
    local.await;
    let steps = u32::try_from(FULL_WRITERS * FULL_STEPS)?;
    let each = started.elapsed() / steps;
    for task in tasks {
        task.await??;
    }
    Ok(each)
}

/// Opens a long journal and reads the end of one stream, as a start does.
async fn open(dir: &Path, entries: u64) -> Outcome<f64> {
    let journal = Journal::open(dir, Options::default())?;
    let mut written = 0;
    while written < entries {
        let count = (entries - written).min(1_000);
        let appends = (0..count).map(|step| append(&format!("agent/{}", (written + step) % 1_000), step)).collect();
        journal.commit(Commit { appends, ..Commit::default() }).await?;
        written += count;
    }
    journal.close().await?;
    drop(journal);
    let mut times = Vec::new();
    for _ in 0..9 {
        let started = Instant::now();
        let journal = Journal::open(dir, Options::default())?;
        journal.head("agent/7")?;
        times.push(started.elapsed());
    }
    Ok(median_us(&mut times) / 1_000.0)
}

fn fdatasync(file: &mut File) -> Outcome<Duration> {
    let page = [7; 4_096];
    let mut times = Vec::new();
    for _ in 0..SYNCS {
        let started = Instant::now();
        file.write_all(&page)?;
        file.sync_data()?;
        times.push(started.elapsed());
    }
    times.sort_unstable();
    Ok(times.get(SYNCS / 2).copied().unwrap_or_default())
}

fn median_us(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0.0, |time| time.as_secs_f64() * 1e6)
}

fn mean_us(times: &[Duration]) -> f64 {
    times.iter().sum::<Duration>().as_secs_f64() * 1e6 / times.len() as f64
}
