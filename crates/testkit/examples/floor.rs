//! The floor: the least that a Rust client of a model API can do, to hold our own numbers against.
//!
//! `floor loop --url URL --turns 50 --pad 100000` runs an agent loop over one raw connection: it sends the whole
//! growing history, parses the stream, runs `read_file` for real, until the model answers with text.
//! `floor team --url URL --agents 1000 --turns 5 --pad 20000 --parallel 64` runs so many of those loops, so many side by side.
//! `floor dag --url URL --layers 10 --width 10 --bytes 8000` runs a plan: so many calls side by side, layer after layer,
//! with request bodies of that size; `makespan_ms` is from the first request sent to the last answer whole.
//! `floor fsync --writes 200 --bytes 4096 --dir .` measures the disk: the time of one append and fdatasync.
//! Each prints one line of JSON. There is no journal, no gate, no retry: that is the point.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line program")]

mod dag;
mod disk;
mod flags;
mod talk;

use std::process::ExitCode;
use std::time::Instant;

use flags::Flags;
use serde_json::{Value, json};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.split_first() {
        Some((word, rest)) if word == "loop" => turns(rest),
        Some((word, rest)) if word == "team" => team(rest),
        Some((word, rest)) if word == "dag" => dag(rest),
        Some((word, rest)) if word == "fsync" => fsync(rest),
        Some((word, [])) if word == "--version" => {
            println!("floor {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        _ => Err("usage: floor loop --url URL --turns N --pad BYTES | \
                  team --url URL --agents N --turns N --pad BYTES --parallel N | dag --url URL --layers N --width N --bytes N | \
                  fsync --writes N --bytes N --dir D"
            .into()),
    };
    match result {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("floor: {message}");
            ExitCode::FAILURE
        }
    }
}

fn turns(args: &[String]) -> Result<Value, String> {
    let flags = Flags::parse(args, &["--url", "--turns", "--pad"])?;
    let host = host(&flags)?;
    let start = Instant::now();
    let end = runtime()?.block_on(talk::run(&host, flags.get("--turns", 50)?, flags.get("--pad", 0)?))?;
    let wall = start.elapsed();
    Ok(json!({
        "wall_ms": wall.as_secs_f64() * 1e3, "cpu_ms": cpu_ms()?, "rss_kb": rss_kb()?,
        "turns": end.turns, "final": end.text,
    }))
}

fn team(args: &[String]) -> Result<Value, String> {
    let flags = Flags::parse(args, &["--url", "--agents", "--turns", "--pad", "--parallel"])?;
    let (host, agents, turns) = (host(&flags)?, flags.get("--agents", 1_000)?, flags.get("--turns", 5)?);
    let (pad, parallel) = (flags.get("--pad", 0)?, flags.get("--parallel", 64_usize)?);
    let start = Instant::now();
    runtime()?.block_on(async {
        let mut loops = tokio::task::JoinSet::new();
        for _ in 0..agents {
            if loops.len() >= parallel {
                over(loops.join_next().await)?;
            }
            let host = host.clone();
            loops.spawn(async move { talk::run(&host, turns, pad).await });
        }
        while !loops.is_empty() {
            over(loops.join_next().await)?;
        }
        Ok::<_, String>(())
    })?;
    Ok(json!({
        "wall_ms": start.elapsed().as_secs_f64() * 1e3, "cpu_ms": cpu_ms()?, "rss_kb": rss_kb()?,
        "agents": agents, "turns": turns,
    }))
}

/// One of several loops has ended.
fn over(ended: Option<Result<Result<talk::End, String>, tokio::task::JoinError>>) -> Result<(), String> {
    ended.map_or(Ok(()), |ended| ended.map_err(|error| format!("a loop broke: {error}"))?.map(drop))
}

fn dag(args: &[String]) -> Result<Value, String> {
    let flags = Flags::parse(args, &["--url", "--layers", "--width", "--bytes"])?;
    let host = host(&flags)?;
    let shape = dag::Shape {
        layers: flags.get("--layers", 10)?,
        width: flags.get("--width", 10)?,
        bytes: flags.get("--bytes", 0)?,
    };
    let makespan = runtime()?.block_on(dag::run(&host, shape))?;
    Ok(json!({
        "makespan_ms": makespan.as_secs_f64() * 1e3, "cpu_ms": cpu_ms()?, "rss_kb": rss_kb()?,
        "layers": shape.layers, "width": shape.width, "bytes": shape.bytes,
    }))
}

fn host(flags: &Flags) -> Result<String, String> {
    let url: String = flags.get("--url", String::new())?;
    let host = url.strip_prefix("http://").ok_or("--url must be http://HOST:PORT")?;
    Ok(host.trim_end_matches('/').to_owned())
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(|error| format!("no runtime: {error}"))
}

fn fsync(args: &[String]) -> Result<Value, String> {
    let flags = Flags::parse(args, &["--writes", "--bytes", "--dir"])?;
    let dir: String = flags.get("--dir", ".".to_owned())?;
    let (writes, bytes) = (flags.get("--writes", 200)?, flags.get("--bytes", 4096)?);
    let median_us = disk::median_us(dir.as_ref(), writes, bytes).map_err(|error| format!("`{dir}`: {error}"))?;
    Ok(json!({"writes": writes, "bytes": bytes, "median_us": median_us}))
}

/// Time on a processor. From `schedstat`, whose unit is nanoseconds; `stat` counts in ticks of ten milliseconds.
/// The file speaks for the main thread, and there is no other.
fn cpu_ms() -> Result<f64, String> {
    // The kernel brings the count up to date when it schedules.
    std::thread::yield_now();
    let stat = read("/proc/self/schedstat")?;
    let ns: f64 = stat.split(' ').next().and_then(|word| word.parse().ok()).ok_or("no time in schedstat")?;
    Ok(ns / 1e6)
}

/// The most memory held at any time.
fn rss_kb() -> Result<u64, String> {
    let status = read("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM in status")?;
    line.split_whitespace().next().and_then(|word| word.parse().ok()).ok_or_else(|| format!("`{line}` is no size"))
}

fn read(path: &str) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))
}
