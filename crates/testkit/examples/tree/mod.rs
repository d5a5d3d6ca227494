//! Searching a tree of a gigabyte, against ripgrep on the same tree in the same run.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::json;

use crate::{Bench, median, millis};

const FOLDERS: usize = 200;
const FILES: usize = 100;
const FILE_BYTES: usize = 50 << 10;
const RUNS: usize = 7;
/// Fewer than `search_code` tells, so that it has to look at everything.
const NEEDLES: usize = 100;
const WORDS: [&str; 12] =
    ["fn", "let", "value", "return", "self", "match", "result", "buffer", "needle", "index", "some_longer_name", "=>"];

/// Times both; ours may take 1.3 times as long.
pub(crate) fn search(bench: &mut Bench) {
    if Command::new("rg").arg("--version").stdout(Stdio::null()).status().is_err() {
        return bench.skip("search", "there is no `rg` here");
    }
    let folder = bench.scratch.path().join("tree");
    grow(&folder);
    let example = bench.example("search");
    for (name, pattern) in [("search-literal", "needle_found"), ("search-regex", r"needle_f\w+ \d+;")] {
        let ours = || timed(Command::new(&example).arg(&folder).arg(pattern));
        let theirs = || timed(Command::new("rg").args(["--line-number", pattern]).arg(&folder));
        // The first run of each only warms the disk's cache.
        ours();
        theirs();
        let (mut mine, mut other) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            mine.push(ours());
            other.push(theirs());
        }
        let (mine, other) = (median(mine.into_iter()), median(other.into_iter()));
        let megabytes = (FOLDERS * FILES * FILE_BYTES) >> 20;
        bench.report(name, mine, "ms", 1.3 * other, Some(other), json!({ "megabytes": megabytes }));
    }
    // A gigabyte is not kept until the other benchmarks are done.
    std::fs::remove_dir_all(&folder).unwrap();
}

fn timed(command: &mut Command) -> f64 {
    let start = Instant::now();
    let output = command.stdin(Stdio::null()).output().unwrap();
    let took = millis(start.elapsed());
    let found =
        output.stdout.split(|byte| *byte == b'\n').filter(|line| line.windows(12).any(|at| at == b"needle_found"));
    assert_eq!(found.count(), NEEDLES, "{command:?}");
    took
}

/// Files of words in lines, the same ones every time; every so often one with a needle in it.
fn grow(folder: &Path) {
    let mut seed = 1_u64;
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % below
    };
    let mut text = String::new();
    for file in 0..FOLDERS * FILES {
        text.clear();
        while text.len() < FILE_BYTES {
            text.push_str(WORDS[next(WORDS.len())]);
            text.push(if next(9) == 0 { '\n' } else { ' ' });
        }
        if file.is_multiple_of(FOLDERS * FILES / NEEDLES) {
            write!(text, "\nneedle_found {file};\n").unwrap();
        }
        let path = folder.join(format!("d{}/f{}.rs", file / FILES, file % FILES));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, &text).unwrap();
    }
}
