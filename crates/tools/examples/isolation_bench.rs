//! Measures what the sandbox adds to a command and prints one line of JSON.
//!
//! `isolation_bench [SUPERVISOR]`: the program that supervises, as it is shipped; without it, this one. Medians of `true`, bare, within a bare
//! bubblewrap and within our sandbox, and of `cargo build` and `npm install`, bare and within our sandbox, taken in turns so that all of them
//! see the same machine. What is not installed is `null`.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use max_team_tools::command::{CommandSandbox, child, engine, probe, run, supervisor};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 101;
/// Rounds of a build or an installation.
const WORK_ROUNDS: usize = 15;
/// How much is built and installed: functions of a crate, files of a package.
const PIECES: usize = 400;
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
    fs::create_dir_all(dir.path().join(".git/hooks"))?;
    fs::write(dir.path().join(".git/config"), "")?;
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
    let (cargo, npm) = (work(&crate_to_build()?)?, work(&package_to_install()?)?);
    let work = json!({ "cargo_build": cargo, "npm_install": npm });
    println!("{}", json!({ "bare_ms": bare, "bwrap_ms": bwrap, "walled_ms": walled, "work": work }));
    Ok(())
}

/// A command that works for a while.
struct Work {
    dir: tempfile::TempDir,
    argv: Vec<String>,
    /// What it makes, which is removed before each round.
    made: &'static str,
}

fn crate_to_build() -> Result<Work, Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let manifest = "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    fs::write(dir.path().join("Cargo.toml"), manifest)?;
    fs::create_dir(dir.path().join("src"))?;
    let functions = (0..PIECES).map(|n| format!("pub fn f{n}(text: &str) -> String {{ text.repeat({n}) }}\n"));
    fs::write(dir.path().join("src/lib.rs"), functions.collect::<String>())?;
    Ok(Work { dir, argv: ["cargo", "build", "--offline", "--quiet"].map(str::to_owned).to_vec(), made: "target" })
}

fn package_to_install() -> Result<Work, Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    fs::write(dir.path().join("package.json"), r#"{"name":"app","version":"1.0.0"}"#)?;
    fs::create_dir(dir.path().join("package"))?;
    fs::write(dir.path().join("package/package.json"), r#"{"name":"small","version":"1.0.0"}"#)?;
    for n in 0..PIECES {
        fs::write(dir.path().join(format!("package/{n}.js")), format!("module.exports = {n};\n"))?;
    }
    let packed = Command::new("tar").args(["-czf", "small.tgz", "package"]).current_dir(dir.path()).status()?;
    if !packed.success() {
        return Err(packed.to_string().into());
    }
    let argv =
        ["npm", "install", "--offline", "--no-audit", "--no-fund", "--no-save", "--no-package-lock", "./small.tgz"];
    Ok(Work { dir, argv: argv.map(str::to_owned).to_vec(), made: "node_modules" })
}

/// Medians of a command, bare and within our sandbox; `None` where its program is missing.
fn work(work: &Work) -> Result<Option<Value>, Box<dyn Error>> {
    let Work { dir, argv, made } = work;
    let (dir, Some((program, args))) = (dir.path(), argv.split_first()) else { return Ok(None) };
    if Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        return Ok(None);
    }
    let cache = tempfile::tempdir()?;
    let isolation = CommandSandbox::around(dir);
    let (mut bare, mut walled) = (Vec::new(), Vec::new());
    // The first round fills what later ones find.
    for _ in 0..=WORK_ROUNDS {
        remove(&dir.join(made))?;
        bare.push(timed(|| {
            let mut command = Command::new(program);
            command.args(args).current_dir(dir).env_remove("CARGO_TARGET_DIR").env("npm_config_cache", cache.path());
            let ran = command.output()?;
            if ran.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&ran.stderr).into()) }
        })?);
        // The home folder of a command is empty.
        remove(&cache.path().join("_cacache"))?;
        remove(&dir.join(made))?;
        walled.push(timed(|| {
            let ran = run(argv, dir, Duration::from_secs(120), Some(&isolation), &CancellationToken::new())?;
            if ran.ok() { Ok(()) } else { Err(ran.output.into()) }
        })?);
    }
    let later = |times: Vec<f64>| median(times.into_iter().skip(1).collect());
    Ok(Some(json!({ "bare_ms": later(bare), "walled_ms": later(walled) })))
}

fn remove(folder: &Path) -> Result<(), Box<dyn Error>> {
    if folder.exists() { Ok(fs::remove_dir_all(folder)?) } else { Ok(()) }
}

fn spawned(program: &Path, args: &[&str]) -> Result<(), Box<dyn Error>> {
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
