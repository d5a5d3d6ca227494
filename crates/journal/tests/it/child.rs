//! Another process: this test binary started again, told by its environment what to be.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child as Process, ChildStdout, Command, Stdio};

use max_team_journal::{Commit, Durability, Journal, Options};

use crate::make::{fact, fact_at, worker};

const ROLE: &str = "JOURNAL_TEST_ROLE";
const DIR: &str = "JOURNAL_TEST_DIR";

/// A process that dies with its handle.
pub(crate) struct Child {
    process: Process,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Child {
    pub(crate) fn start(role: &str, dir: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child::entry", "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .env(DIR, dir)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    /// The next thing it says.
    pub(crate) fn heard(&mut self) -> Option<String> {
        self.lines.by_ref().map_while(Result::ok).find_map(|line| Some(line.strip_prefix("said ")?.to_owned()))
    }

    /// Ends it without warning; returns what it had still said.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.process.kill().unwrap();
        std::iter::from_fn(|| self.heard()).collect()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn say(text: impl std::fmt::Display) {
    // In one write, so that a line is never half said.
    std::io::stdout().write_all(format!("\nsaid {text}\n").as_bytes()).unwrap();
}

/// Not a test of its own: where a child begins.
#[test]
fn entry() {
    let (Some(role), Some(dir)) = (std::env::var_os(ROLE), std::env::var_os(DIR)) else { return };
    let journal = Journal::open(&dir, Options::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    match role.to_str().unwrap() {
        "writer" => runtime.block_on(write_forever(&journal)),
        "owner" => runtime.block_on(own_forever(&journal)),
        "reader" => {
            say(journal.last_seq().unwrap());
            runtime.block_on(std::future::pending::<()>());
        }
        "once" => drop(runtime.block_on(journal.commit(fact("from/child", "hello"))).unwrap()),
        other => panic!("no role `{other}`"),
    }
}

/// Four writers, each acknowledging aloud what was acknowledged to it.
async fn write_forever(journal: &Journal) {
    let local = tokio::task::LocalSet::new();
    for writer in 0..4 {
        let journal = journal.clone();
        local.spawn_local(async move {
            let stream = format!("writer/{writer}");
            let mut at = journal.head(&stream).unwrap();
            loop {
                let strength = if at.is_multiple_of(3) { Durability::Full } else { Durability::Normal };
                let commit = Commit { strength, ..fact_at(&stream, at, &at.to_string()) };
                at = journal.commit(commit).await.unwrap().head(&stream).unwrap();
                say(format_args!("{writer} {at}"));
            }
        });
    }
    local.await;
}

/// Owns something until it dies.
async fn own_forever(journal: &Journal) {
    let worker = journal.worker(worker(77)).unwrap();
    let epoch = journal.claim("plan/x", &worker).await.unwrap();
    say(epoch);
    std::future::pending::<()>().await;
}
