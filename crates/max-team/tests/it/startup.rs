//! What is found before anything is done: names that are no commands yet, folders that cannot be named, clocks that are wrong.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use max_team_testkit::{ModelServer, Reply};

use crate::program::{Program, finish, pipe};

/// The clock of the program, moved by `CLOCK_SECONDS`.
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *at) {
    long failed = syscall(SYS_clock_gettime, clock, at);
    const char *moved = getenv("CLOCK_SECONDS");
    if (clock == CLOCK_REALTIME && moved) at->tv_sec += atol(moved);
    return (int) failed;
}
"#;

/// Builds the library that moves the clock.
fn clock(folder: &Path) -> PathBuf {
    let (source, library) = (folder.join("clock.c"), folder.join("clock.so"));
    std::fs::write(&source, CLOCK).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status().unwrap();
    assert!(built.success());
    library
}

/// Seconds from now back to some day of 1960.
fn to_1960() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    format!("-{}", now + 300_000_000)
}

#[test]
fn a_reserved_name_is_never_a_prompt() {
    let server = ModelServer::start([]);
    let program = Program::team(&server);
    for name in ["acp", "cron", "channels", "pairing"] {
        let lines: [&[&str]; 6] = [
            &[name],
            &[name, "list"],
            &[name, "--port", "80"],
            &["--model", "opus", name],
            &["--lang", "zh", name, "x"],
            &["--", name],
        ];
        for words in lines {
            for input in [None, Some(b"{}\n")] {
                let command = program.team_command(words);
                let ran = match input {
                    Some(input) => pipe(command, input),
                    None => finish({ command }.spawn().unwrap()),
                };
                let is_told = ran.err.contains(&format!("`max-team -p \"{name}\"`")) && ran.out.is_empty();
                assert!(ran.code == 2 && is_told, "{words:?}: {ran:?}");
            }
        }
    }
    assert!(server.requests().is_empty());
}

#[test]
fn the_models_of_the_catalogue_are_listed_with_their_prices() {
    let program = Program::alone().variable("ANTHROPIC_API_KEY", "sk-test-0123456789abcdef");
    let ran = program.run(&["models"]);
    let line = |name: &str| ran.out.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(ran.code == 0 && ran.out.starts_with("MODEL "), "{ran:?}");
    assert!(line("anthropic/").contains('$') && line("anthropic/").ends_with(" set"), "{ran:?}");
    assert!(line("openai/").ends_with("not set"), "{ran:?}");
    let rows = program.run(&["models", "--provider", "anthropic", "--json"]).json();
    let rows = rows.as_array().unwrap();
    assert!(rows.iter().all(|row| row["provider"] == "anthropic" && row["input_usd"].as_f64().unwrap() > 0.0));
    let ran = program.run(&["models", "--provider", "antropic"]);
    assert!(ran.code == 2 && ran.err.contains("did you mean `anthropic`"), "{ran:?}");
}

#[test]
fn a_folder_whose_name_is_not_utf8_is_refused() {
    let server = ModelServer::start([]);
    let program = Program::with(&server);
    let folder = program.project().join(OsStr::from_bytes(b"caf\xe9"));
    std::fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink(&folder, program.project().join("link")).unwrap();
    for words in [&["-p", "hi"][..], &["doctor"], &["demo", "--yes"], &["sessions", "list"]] {
        for there in [folder.clone(), program.project().join("link")] {
            let ran = finish(program.command(words).current_dir(there).spawn().unwrap());
            assert!(ran.code == 2 && ran.err.contains("caf\\xe9`"), "{words:?}: {ran:?}");
        }
        for variable in ["HOME", "MAX_TEAM_HOME"] {
            let ran = finish(program.command(words).env(variable, &folder).spawn().unwrap());
            let is_told = ran.err.contains("caf\\xe9`") && ran.err.contains(variable);
            assert!(ran.code == 2 && is_told, "{words:?}: {ran:?}");
        }
    }
    let ran = finish(program.command(&["-p", "hi", "--lang", "zh"]).current_dir(&folder).spawn().unwrap());
    assert!(ran.err.contains("不是 UTF-8"), "{ran:?}");
    let ran = finish(program.command(&["demo", "--yes"]).env("TMPDIR", &folder).spawn().unwrap());
    assert!(ran.code == 2 && ran.err.contains("caf\\xe9"), "{ran:?}");
    let mut command = program.command(&["-p"]);
    let ran = finish(command.arg(OsStr::from_bytes(b"caf\xe9")).spawn().unwrap());
    assert!(ran.code == 2 && !ran.err.contains("panicked"), "{ran:?}");
    assert!(server.requests().is_empty());
}

/// Whether a sandbox can be built is found out by building one, which takes time.
#[cfg(target_os = "linux")]
#[test]
fn no_sandbox_is_built_where_it_is_off() {
    let server = ModelServer::start([Reply::text("Hello.")]);
    let program = Program::with(&server);
    std::fs::create_dir_all(program.home()).unwrap();
    std::fs::write(program.home().join("config.yaml"), "project: {sandbox: false}\n").unwrap();
    let trace = tempfile::NamedTempFile::new().unwrap();
    let strace = ["strace", "-f", "-e", "trace=execve", "-o", trace.path().to_str().unwrap()];
    let ran = finish(program.prefixed(&strace, &["-p", "hi"]).spawn().unwrap());
    let started = std::fs::read_to_string(trace.path()).unwrap();
    assert!(ran.out == "Hello.\n" && started.contains("execve("), "{ran:?}");
    assert!(!started.contains("__sandbox"), "{started}");
}

/// Everything that is stamped or named by the time is done once.
#[cfg(target_os = "linux")]
#[test]
fn a_clock_before_1970_stops_nothing() {
    let server = ModelServer::start([
        Reply::new().tool("t1", "write_file", serde_json::json!({ "path": "a.txt", "content": "a" })),
        Reply::text("Written."),
        Reply::text("Still here."),
    ]);
    let program = Program::with(&server);
    let library = clock(&program.project());
    let program = program.variable("LD_PRELOAD", library.to_str().unwrap()).variable("CLOCK_SECONDS", to_1960());
    for words in [
        &["-p", "write it", "--permission-mode", "acceptEdits", "--output-format", "stream-json"][..],
        &["-c", "-p", "and?"],
        &["sessions", "list"],
        &["ps", "--all"],
        &["trace"],
        &["cost"],
        &["events"],
        &["doctor"],
        &["demo", "--yes"],
    ] {
        let ran = program.run(words);
        assert!(ran.code == 0 && !ran.err.contains("panicked"), "{words:?}: {ran:?}");
    }
    assert!(program.run(&["doctor"]).out.contains("1960-"));
    assert_eq!(program.read("a.txt"), "a");
}

/// `-c` goes on with the session that was used last, whatever the clock said at any of them.
#[cfg(target_os = "linux")]
#[test]
fn the_last_session_is_the_last_of_the_journal() {
    let server = ModelServer::start((0..8).map(|number| Reply::text(format!("Answer {number}."))).collect::<Vec<_>>());
    let program = Program::with(&server);
    let library = clock(&program.project());
    let program = program.variable("LD_PRELOAD", library.to_str().unwrap());
    let talk = |words: &[&str], seconds: &str| {
        let ran = finish(program.command(words).env("CLOCK_SECONDS", seconds).spawn().unwrap());
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.json()["session_id"].as_str().unwrap().to_owned()
    };
    let json = ["--output-format", "json"];
    for seconds in ["40000000", "-40000000"] {
        talk(&[&["-p", "one"][..], &json].concat(), seconds);
        let last = talk(&[&["-p", "two"][..], &json].concat(), "0");
        assert_eq!(talk(&[&["-c", "-p", "three"][..], &json].concat(), seconds), last);
        assert_eq!(talk(&[&["-c", "-p", "four"][..], &json].concat(), "0"), last);
    }
}
