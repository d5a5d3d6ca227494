//! Coverage from files that measuring tools write: lcov, and Go's profiles.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::text::{clip, visible};

/// Files that are kept.
const FILES_MAX: usize = 500;
/// Bytes of a file's name.
const NAME_BYTES_MAX: usize = 300;

/// A file, and how much of it the tests reach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileCoverage {
    /// The file, as the tool names it.
    pub file: String,
    /// Percent of its lines or statements.
    pub percent: f64,
}

/// Percent of all the code, and of each file.
pub(super) type CoverageTable = (f64, Vec<FileCoverage>);

#[expect(clippy::cast_precision_loss, reason = "to two digits behind the point")]
fn percent(all: u64, reached: u64) -> f64 {
    if all == 0 { 100.0 } else { (reached as f64 / all as f64 * 10_000.0).round() / 100.0 }
}

/// The lines or statements of each file: all, and those that ran.
fn of_sums(files: &BTreeMap<&str, (u64, u64)>) -> Option<CoverageTable> {
    let sum = |pick: fn(&(u64, u64)) -> u64| files.values().map(pick).fold(0, u64::saturating_add);
    let total = percent(sum(|file| file.0), sum(|file| file.1));
    let each = files.iter().map(|(file, (all, ran))| FileCoverage {
        file: visible(&clip(file, NAME_BYTES_MAX)),
        percent: percent(*all, *ran),
    });
    (!files.is_empty()).then(|| (total, each.take(FILES_MAX).collect()))
}

/// `SF:` begins a file; `LF:` and `LH:` are its lines and those that ran.
pub(super) fn of_lcov(text: &str) -> Option<CoverageTable> {
    let mut files = BTreeMap::<&str, (u64, u64)>::new();
    let mut file = None;
    for line in text.lines() {
        let Some((field, value)) = line.split_once(':') else { continue };
        match (field, file, value.trim().parse::<u64>()) {
            ("SF", ..) => file = Some(value.trim()),
            ("LF", Some(file), Ok(lines)) => files.entry(file).or_default().0 += lines,
            ("LH", Some(file), Ok(lines)) => files.entry(file).or_default().1 += lines,
            _ => {}
        }
    }
    of_sums(&files)
}

/// A Go profile: `x/a.go:3.14,5.2 2 1` is two statements that ran once. A block that several packages ran is there several times.
pub(super) fn of_profile(text: &str) -> Option<CoverageTable> {
    let mut blocks = BTreeMap::<(&str, &str), (u64, bool)>::new();
    for line in text.lines().filter(|line| !line.starts_with("mode:")) {
        let mut words = line.rsplitn(3, ' ');
        let (Some(ran), Some(statements), Some(place)) = (words.next(), words.next(), words.next()) else { continue };
        let (Ok(ran), Ok(statements)) = (ran.parse::<u64>(), statements.parse()) else { continue };
        let Some((file, at)) = place.rsplit_once(':') else { continue };
        let block = blocks.entry((file, at)).or_insert((statements, false));
        block.1 |= ran > 0;
    }
    let mut files = BTreeMap::<&str, (u64, u64)>::new();
    for ((file, _), (statements, ran)) in blocks {
        let sums = files.entry(file).or_default();
        sums.0 = sums.0.saturating_add(statements);
        sums.1 = sums.1.saturating_add(if ran { statements } else { 0 });
    }
    of_sums(&files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_has_a_total_and_files() {
        let lcov = "TN:\nSF:src/a.js\nDA:1,1\nLF:7\nLH:6\nend_of_record\nSF:src/b.js\nLF:3\nLH:3\nend_of_record\n";
        let go =
            "mode: set\nx/a.go:3.24,5.2 2 1\nx/a.go:7.24,9.2 1 0\nx/b.go:1.1,2.2 1 0\nx/a.go:7.24,9.2 1 1\nodd line\n";
        let found = |measured: Option<CoverageTable>| {
            let (total, files) = measured.unwrap();
            (total, files.into_iter().map(|covered| (covered.file, covered.percent)).collect::<Vec<_>>())
        };
        let file = |name: &str, percent: f64| (name.to_owned(), percent);
        assert_eq!(found(of_lcov(lcov)), (90.0, vec![file("src/a.js", 85.71), file("src/b.js", 100.0)]));
        assert_eq!(found(of_profile(go)), (75.0, vec![file("x/a.go", 100.0), file("x/b.go", 0.0)]));
        for read in [of_lcov, of_profile] {
            assert_eq!((read(""), read("TOTAL 12 3 75%\n"), read("{}")), (None, None, None));
        }
    }
}
