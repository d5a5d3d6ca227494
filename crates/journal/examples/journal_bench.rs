//! Measures the journal on this disk and prints one line of JSON.
//!
//! `cargo run --release -p max-team-journal --example journal_bench -- [--entries N] [--dir FOLDER]`; with
//! `--fill FOLDER` it only makes a journal of that length there.
//! Times are microseconds per step as an async caller sees them; `fdatasync_us` is the same disk's price for one
//! synced 4 KiB append, measured in the same run, before and after the synced steps.

use std::error::Error;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use max_team_core::message::{Envelope, MessageKind};
use max_team_journal::{Append, Commit, Durability, Expect, Fence, Journal, Options, Projection, WorkerInfo};
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn Error>>;

const NORMAL_STEPS: u64 = 20_000;
const FULL_WRITERS: u64 = 16;
const FULL_STEPS: u64 = 50;
const FULL_ROUNDS: u64 = 15;
const SYNCS: usize = 50;

fn main() -> Outcome<()> {
    let mut entries = 100_000;
    let (mut dir, mut filled) = (None, None);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match (arg.as_str(), args.next()) {
            ("--entries", Some(value)) => entries = value.parse()?,
            ("--dir", Some(value)) => dir = Some(PathBuf::from(value)),
            ("--fill", Some(value)) => filled = Some(PathBuf::from(value)),
            (other, _) => return Err(format!("unknown argument `{other}`").into()),
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    if let Some(dir) = filled {
        return runtime.block_on(fill(&dir, entries));
    }
    let home = dir.unwrap_or_else(|| PathBuf::from("target"));
    let scratch = home.join(format!("journal-bench-{}", std::process::id()));
    fs::create_dir_all(&scratch)?;
    let measured = runtime.block_on(measure(&scratch, entries));
    fs::remove_dir_all(&scratch)?;
    writeln!(std::io::stdout(), "{}", measured?)?;
    Ok(())
}

async fn measure(scratch: &Path, entries: u64) -> Outcome<Value> {
    let rss_kib = memory(&scratch.join("memory")).await?;
    let normal = normal(&scratch.join("normal")).await?;
    let rich_us = rich(&scratch.join("rich")).await?;
    let full = full_rounds(scratch).await?;
    let long = long(&scratch.join("long"), entries).await?;
    let round = |value: f64| (value * 100.0).round() / 100.0;
    Ok(json!({
        "normal_us": round(normal.median_us), "normal_mean_us": round(normal.mean_us), "rich_us": round(rich_us),
        "full16_us": round(full.step_us), "fdatasync_us": round(full.sync_us),
        "full16_to_target": round(full.to_target), "payload_bytes": payload(1).len(),
        "bytes_per_step": round(normal.bytes), "crash_open_ms": round(normal.crash_open_ms), "rss_kib": rss_kib,
        "entries": entries, "open_ms": round(long.open_ms), "normal_long_us": round(long.median_us),
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

/// What this process's memory grows by for one journal in use.
async fn memory(dir: &Path) -> Outcome<i64> {
    let before = rss_kib()?;
    let journal = Journal::open(dir, Options::default())?;
    let mut watch = journal.watch(0)?;
    for step in 0..1_000 {
        journal.commit(Commit { appends: vec![append("agent/a", step)], ..Commit::default() }).await?;
        watch.next().await?;
    }
    Ok(rss_kib()? - before)
}

fn rss_kib() -> Outcome<i64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no memory in /proc/self/status")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// Steps of one agent; returns what each took.
async fn steps(journal: &Journal, stream: &str, from: u64, count: u64) -> Outcome<Vec<Duration>> {
    let mut times = Vec::new();
    for step in from..from + count {
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
    Ok(times)
}

struct Normal {
    median_us: f64,
    mean_us: f64,
    bytes: f64,
    crash_open_ms: f64,
}

async fn normal(dir: &Path) -> Outcome<Normal> {
    let journal = Journal::open(dir, Options::default())?;
    let mut times = steps(&journal, "agent/agt_01990000000070008000000000000001", 0, NORMAL_STEPS).await?;
    // What a crash would leave here, opened elsewhere.
    let crashed = dir.with_extension("crashed");
    fs::create_dir_all(&crashed)?;
    // By another process: closing the file in this one would drop the database's locks.
    let files = ["journal.db", "journal.db-wal"].map(|file| dir.join(file));
    std::process::Command::new("cp").args(files).arg(&crashed).status()?;
    let started = Instant::now();
    let reopened = Journal::open(&crashed, Options::default())?;
    reopened.last_seq()?;
    let crash_open_ms = started.elapsed().as_secs_f64() * 1e3;
    drop(reopened);
    journal.close().await?;
    let bytes = fs::metadata(dir.join("journal.db"))?.len() as f64 / NORMAL_STEPS as f64;
    Ok(Normal { mean_us: mean_us(&times), median_us: median_us(&mut times), bytes, crash_open_ms })
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
        let envelope = Envelope::new(
            format!("env_{step:032x}").parse()?,
            stream,
            "user/ada",
            MessageKind::UserInput,
            json!({ "text": "done" }),
            0,
        );
        let sent = envelope.id;
        let commit = Commit {
            expect: vec![(stream.to_owned(), Expect::At(step))],
            fence: Some(Fence { resource: stream.to_owned(), worker: worker.id(), epoch }),
            appends: vec![append(stream, step)],
            sends: vec![envelope],
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

struct Full {
    step_us: f64,
    sync_us: f64,
    to_target: f64,
}

/// Synced steps and bare syncs by turns, for a shared disk changes its mind from second to second. Each round's steps
/// are held against the syncs right before and after them.
async fn full_rounds(scratch: &Path) -> Outcome<Full> {
    let journal = Journal::open(scratch.join("full"), Options::default())?;
    let mut bare = File::create(scratch.join("fdatasync"))?;
    let (mut steps, mut syncs, mut ratios) = (Vec::new(), vec![fdatasync(&mut bare)?], Vec::new());
    for round in 0..FULL_ROUNDS {
        let step = full(&journal, round).await?;
        let before = syncs.last().copied().unwrap_or_default();
        let after = fdatasync(&mut bare)?;
        let target_us = 1.25 * (before + after).as_secs_f64() * 1e6 / 32.0 + 40.0;
        ratios.push(step.as_secs_f64() * 1e6 / target_us);
        steps.push(step);
        syncs.push(after);
    }
    journal.close().await?;
    ratios.sort_unstable_by(f64::total_cmp);
    let to_target = ratios.get(ratios.len() / 2).copied().unwrap_or_default();
    Ok(Full { step_us: median_us(&mut steps), sync_us: median_us(&mut syncs), to_target })
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
                        strength: Durability::Full,
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

struct Long {
    open_ms: f64,
    median_us: f64,
}

/// Opens a long journal and reads the end of one stream, as a start does; then goes on writing.
async fn long(dir: &Path, entries: u64) -> Outcome<Long> {
    fill(dir, entries).await?;
    let mut opened = Vec::new();
    for _ in 0..9 {
        let started = Instant::now();
        let journal = Journal::open(dir, Options::default())?;
        journal.head("agent/7")?;
        opened.push(started.elapsed());
    }
    let journal = Journal::open(dir, Options::default())?;
    let mut times = steps(&journal, "agent/7", journal.head("agent/7")?, NORMAL_STEPS / 4).await?;
    journal.close().await?;
    Ok(Long { open_ms: median_us(&mut opened) / 1e3, median_us: median_us(&mut times) })
}

/// Makes a long journal.
async fn fill(dir: &Path, entries: u64) -> Outcome<()> {
    let journal = Journal::open(dir, Options::default())?;
    let mut written = 0;
    while written < entries {
        let count = (entries - written).min(1_000);
        let appends = (0..count).map(|step| append(&format!("agent/{}", (written + step) % 1_000), step)).collect();
        journal.commit(Commit { appends, ..Commit::default() }).await?;
        written += count;
    }
    Ok(journal.close().await?)
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
