//! The real program, killed from outside at every write and at any instant, and put into bad surroundings.
//!
//! `outside --bin PATH [sweep|random|faults] [--short] [--json] [--seed N]`, started by `scripts/crash.sh`. A lead with two
//! teammates, mail and a plan whose members write files and (when no system call is counted) run a command that leaves
//! a line. The oracle is beside the program: the scripted model counts, the files are read, the journal is exported.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line program")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a proof that cannot run must stop loudly")]

#[path = "outside/faults.rs"]
mod faults;
#[path = "outside/kills.rs"]
mod kills;
#[path = "outside/place.rs"]
mod place;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use serde_json::json;

/// What is proven, and with what.
#[derive(Debug)]
pub(crate) struct Proof {
    pub(crate) bin: PathBuf,
    pub(crate) short: bool,
    pub(crate) seed: u64,
    json: bool,
    failed: bool,
}

impl Proof {
    /// One row of the table.
    pub(crate) fn row(&mut self, name: &str, began: Instant, result: Result<String, String>) {
        let seconds = began.elapsed().as_secs_f64();
        let holds = result.is_ok();
        self.failed |= !holds;
        let words = result.unwrap_or_else(|why| why);
        if self.json {
            println!("{}", json!({ "what": name, "holds": holds, "words": words, "seconds": seconds }));
        } else {
            println!("{} {name:<28} {words} ({seconds:.1} s)", if holds { "holds " } else { "FAILED" });
        }
    }

    /// What cannot be shown here, and why.
    pub(crate) fn skip(&self, name: &str, why: &str) {
        if self.json {
            println!("{}", json!({ "what": name, "skipped": why }));
        } else {
            println!("SKIP   {name:<28} {why}");
        }
    }
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let (mut bin, mut part, mut seed) = (None, None, u64::from(std::process::id()));
    let (mut short, mut json) = (false, false);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--bin" => bin = words.next(),
            "--seed" => seed = words.next().unwrap().parse().unwrap(),
            "--short" => short = true,
            "--json" => json = true,
            _ => part = Some(word),
        }
    }
    let Some(bin) = bin else {
        eprintln!("usage: outside --bin PATH [sweep|random|faults] [--short] [--json] [--seed N]");
        return ExitCode::from(2);
    };
    let mut proof = Proof { bin: PathBuf::from(bin).canonicalize().unwrap(), short, seed, json, failed: false };
    type Part = fn(&mut Proof);
    let parts: [(&str, Part); 3] = [("sweep", kills::sweep), ("random", kills::random), ("faults", faults::faults)];
    for (name, part_of) in parts {
        if part.as_ref().is_none_or(|part| part == name) {
            part_of(&mut proof);
        }
    }
    ExitCode::from(u8::from(proof.failed))
}
