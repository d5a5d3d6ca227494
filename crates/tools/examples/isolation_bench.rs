//! Measures what the sandbox adds to a command and prints one line of JSON.
//!
//! `isolation_bench [SUPERVISOR]`: the program that supervises, as it is shipped; without it, this one. Medians of `true`, bare, within a bare
//! bubblewrap and within our sandbox, taken in turns so that all of them see the same machine.

use std::error::Error;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use max_team_tools::command::{CommandSandbox, child, engine, probe, run, supervisor};
use serde_json::json;
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 101;
const PROGRAM: &str = "/bin/true";
/// The least that anybody asks of a bubblewrap.
const BWRAP: [&str; 15] = [
    "--unshare-all",
    "--ro-bind",
    "/",
    "/",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--tmpfs",
    "/tmp",
    "--die-with-parent",
    "--new-session",
    "--cap-drop",
    "ALL",
    PROGRAM,
];

#[expect(clippy::print_stdout, reason = "a command line program")]
fn main() -> Result<(), Box<dyn Error>> {
    if child().is_some() {
        return Ok(());
    }
    if let Some(program) = std::env::args_os().nth(1) {
        supervisor(PathBuf::from(program));
    }
    if let Err(why) = engine() {
        println!("{}", json!({ "skipped": why }));
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    std::fs::create_dir_all(dir.path().join(".git/hooks"))?;
    std::fs::write(dir.path().join(".git/config"), "")?;
    let (isolation, argv) = (CommandSandbox::around(dir.path()), vec![PROGRAM.to_owned()]);
    let (mut bare, mut bwrap, mut walled) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bare.push(timed(|| spawned(PROGRAM.as_ref(), &[]))?);
        if let Ok(path) = &*probe().bubblewrap {
            bwrap.push(timed(|| spawned(path, &BWRAP))?);
        }
        walled.push(timed(|| {
            let ran = run(&argv, dir.path(), Duration::from_secs(30), Some(&isolation), &CancellationToken::new())?;
            if ran.ok() { Ok(()) } else { Err(ran.output.into()) }
        })?);
    }
    let [bare, bwrap, walled] = [bare, bwrap, walled].map(median);
    println!("{}", json!({ "bare_ms": bare, "bwrap_ms": bwrap, "walled_ms": walled }));
    Ok(())
}

fn spawned(program: &std::path::Path, args: &[&str]) -> Result<(), Box<dyn Error>> {
    let status = Command::new(program).args(args).stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(status.to_string().into()) }
}

fn timed(what: impl FnOnce() -> Result<(), Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let started = Instant::now();
    what()?;
    Ok(started.elapsed().as_secs_f64() * 1_000.0)
}

fn median(mut times: Vec<f64>) -> Option<f64> {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}
