//! How much of the code tests reach, by the account of whatever measured it: in all, and of each file.
//!
//! Tables are read line by line as they are printed. A row counts only where it looks exactly like one; names that a
//! table shortens stay as they are printed. Numbers are never made up.

use serde::{Deserialize, Serialize};

use crate::project::Kind;
use crate::text::{clip, visible};

/// Files that are kept.
const FILES_MAX: usize = 500;
/// Bytes of a file's name.
const NAME_BYTES_MAX: usize = 300;

/// A file, and how much of it the tests reach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Covered {
    /// The file, as it was printed.
    pub file: String,
    /// Percent of its lines or statements.
    pub percent: f64,
}

/// What was measured so far.
#[derive(Debug)]
pub(super) struct Measured {
    kind: Kind,
    /// Percent of all the code.
    pub(super) total: Option<f64>,
    /// Its files, at most `FILES_MAX`.
    pub(super) files: Vec<Covered>,
    /// The folders that rows of an indented table lie in.
    folders: Vec<(usize, String)>,
}

impl Measured {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, total: None, files: Vec::new(), folders: Vec::new() }
    }

    pub(super) fn line(&mut self, line: &str) {
        match self.kind {
            Kind::Cargo => self.llvm(line),
            Kind::Pytest | Kind::Unittest => self.python(line),
            Kind::Go => self.go(line),
            Kind::Npm | Kind::Pnpm | Kind::Yarn | Kind::Bun => self.node(line),
            Kind::Maven | Kind::Gradle | Kind::Cmake | Kind::Make => {}
        }
    }

    fn file(&mut self, name: &str, percent: f64) {
        if self.files.len() < FILES_MAX && (0.0..=100.0).contains(&percent) {
            self.files.push(Covered { file: visible(&clip(name, NAME_BYTES_MAX)), percent });
        }
    }

    /// `src/a.rs  10 3 70.00%  4 1 75.00%  20 5 75.00%  0 0 -`: regions, functions, lines, branches.
    fn llvm(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let percents: Vec<f64> = words.iter().filter_map(|word| word.strip_suffix('%')?.parse().ok()).collect();
        let (Some(name), Some(percent)) = (words.first(), percents.get(2)) else { return };
        if *name == "TOTAL" {
            self.total = Some(*percent);
        } else if name.ends_with(".rs") {
            self.file(name, *percent);
        }
    }

    /// `src/a.py  12  3  75%`, perhaps with branches, perhaps with the lines that were missed behind it.
    fn python(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else { return };
        for (numbers, word) in words.enumerate() {
            if let Some(percent) = word.strip_suffix('%').and_then(|word| word.parse().ok()) {
                if name == "TOTAL" {
                    self.total = Some(percent);
                } else if numbers >= 2 && name.ends_with(".py") {
                    self.file(name, percent);
                }
                return;
            }
            if word.parse::<u64>().is_err() {
                return;
            }
        }
    }

    /// The total of `go tool cover -func`; its files are in the profile.
    fn go(&mut self, line: &str) {
        if line.starts_with("total:") {
            let mut percents = line.split_whitespace().filter_map(|word| word.strip_suffix('%')?.parse().ok());
            self.total = percents.next_back().or(self.total);
        }
    }

    /// A row between bars, of node itself or of istanbul (jest, vitest, c8): the name, then the lines' or statements'
    /// percent. Folders are rows too, and files are set in below them.
    fn node(&mut self, line: &str) {
        let row = line.trim_start_matches(['#', 'ℹ']);
        let row = if row.len() < line.len() { row.strip_prefix(' ').unwrap_or(row) } else { row };
        let Some((name, rest)) = row.split_once('|') else { return };
        let Some(percent) = rest.split('|').next().and_then(|cell| cell.trim().parse().ok()) else {
            // Node's folders have empty cells.
            if rest.split('|').all(|cell| cell.trim().is_empty()) && !name.trim().is_empty() {
                self.enter(name);
            }
            return;
        };
        let name = name.trim_end();
        if name.trim().eq_ignore_ascii_case("all files") {
            self.total = Some(percent);
            return;
        }
        let is_file = name.rsplit_once('.').is_some_and(|(_, end)| !end.is_empty() && !end.contains('/'));
        let above = self.enter(name);
        if is_file {
            self.folders.pop();
            self.file(&format!("{above}{}", name.trim()), percent);
        }
    }

    /// Goes into a row of an indented table; the folders that it lies in.
    fn enter(&mut self, name: &str) -> String {
        let depth = name.len() - name.trim_start().len();
        self.folders.retain(|(outer, _)| *outer < depth);
        let above = self.folders.iter().map(|(_, folder)| format!("{folder}/")).collect();
        self.folders.push((depth, name.trim().to_owned()));
        above
    }
}

/// Each file of a Go profile with the share of its statements that ran: `x/a.go:3.14,5.2 2 1` is two statements that
/// ran once. A block that several packages ran is there several times.
pub(super) fn of_profile(profile: &str) -> Vec<Covered> {
    let mut blocks = std::collections::BTreeMap::<(&str, &str), (u64, bool)>::new();
    for line in profile.lines().filter(|line| !line.starts_with("mode:")) {
        let mut words = line.rsplitn(3, ' ');
        let (Some(ran), Some(statements), Some(place)) = (words.next(), words.next(), words.next()) else { continue };
        let (Ok(ran), Ok(statements)) = (ran.parse::<u64>(), statements.parse()) else { continue };
        let Some((file, at)) = place.rsplit_once(':') else { continue };
        let block = blocks.entry((file, at)).or_insert((statements, false));
        block.1 |= ran > 0;
    }
    let mut files = std::collections::BTreeMap::<&str, (u64, u64)>::new();
    for ((file, _), (statements, ran)) in blocks {
        let sums = files.entry(file).or_default();
        sums.0 = sums.0.saturating_add(statements);
        sums.1 = sums.1.saturating_add(if ran { statements } else { 0 });
    }
    let share = |(file, (all, ran)): (&str, (u64, u64))| {
        #[expect(clippy::cast_precision_loss, reason = "to one digit behind the point")]
        let percent = if all == 0 { 100.0 } else { (ran as f64 / all as f64 * 1_000.0).round() / 10.0 };
        Covered { file: visible(&clip(file, NAME_BYTES_MAX)), percent }
    };
    files.into_iter().take(FILES_MAX).map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(kind: Kind, output: &str) -> (Option<f64>, Vec<(String, f64)>) {
        let mut measured = Measured::new(kind);
        output.lines().for_each(|line| measured.line(line));
        (measured.total, measured.files.into_iter().map(|covered| (covered.file, covered.percent)).collect())
    }

    fn files(rows: &[(&str, f64)]) -> Vec<(String, f64)> {
        rows.iter().map(|(file, percent)| ((*file).to_owned(), *percent)).collect()
    }

    #[test]
    fn tables_are_read_row_by_row() {
        let llvm = "Filename   Regions Missed Cover Functions Missed Executed Lines Missed Cover Branches Missed Cover\n\
            ---\nlib.rs      7  2  71.43%  3  1  66.67%  14  3  78.57%  0  0  -\n\
            inner/a.rs  1  0  100.00%  1  0  100.00%  3  0  100.00%  0  0  -\n---\n\
            TOTAL       8  2  75.00%  4  1  75.00%  17  3  82.35%  0  0  -\n";
        assert_eq!(measured(Kind::Cargo, llvm), (Some(82.35), files(&[("lib.rs", 78.57), ("inner/a.rs", 100.0)])));

        let python = "---------- coverage: platform linux ----------\nName       Stmts   Miss Branch BrPart  Cover   Missing\n---\n\
            app/a.py      12      3      4      1    71%   3-5, 9->11\napp/b.py       4      0      0      0   100%\n---\nTOTAL         16      3      4      1    78.5%\n5 passed in 0.1s\n";
        assert_eq!(measured(Kind::Pytest, python), (Some(78.5), files(&[("app/a.py", 71.0), ("app/b.py", 100.0)])));

        let node = "# start of coverage report\n# ------\n# file        | line % | branch % | funcs % | uncovered lines\n# ------\n\
            # src         |        |          |         | \n#  a.js       |  85.71 |   100.00 |   50.00 | 4-6\n#  deep       |        |          |         | \n#   b.js      | 100.00 |   100.00 |  100.00 | \n# c.test.mjs  | 100.00 | 100.00 | 100.00 | \n\
            # ------\n# all files   |  92.86 |   100.00 |   75.00 |\n# end of coverage report\n";
        let want = files(&[("src/a.js", 85.71), ("src/deep/b.js", 100.0), ("c.test.mjs", 100.0)]);
        assert_eq!(measured(Kind::Npm, node), (Some(92.86), want));

        let jest = "----------|---------|----------|---------|---------|-------------------\nFile      | % Stmts | % Branch | % Funcs | % Lines | Uncovered Line #s \n\
            All files |    90.9 |      100 |     100 |    90.9 |                   \n src      |    90.9 |      100 |     100 |    90.9 |                   \n  add.ts  |     100 |      100 |     100 |     100 |                   \n  sub.ts  |    85.7 |      100 |     100 |    85.7 | 7                 \n";
        assert_eq!(measured(Kind::Yarn, jest), (Some(90.9), files(&[("src/add.ts", 100.0), ("src/sub.ts", 85.7)])));

        assert_eq!(
            measured(Kind::Go, "x/a.go:3:\tadd\t\t100.0%\ntotal:\t\t\t(statements)\t66.7%\n"),
            (Some(66.7), Vec::new())
        );
        assert_eq!(measured(Kind::Make, "TOTAL 75%\n"), (None, Vec::new()));
        assert_eq!(measured(Kind::Pytest, "test_a.py ..x  [ 50%]\nlook.py says 100%\n"), (None, Vec::new()));
    }

    #[test]
    fn a_go_profile_is_added_up() {
        let profile = "mode: set\nexample.org/x/a.go:3.24,5.2 2 1\nexample.org/x/a.go:7.24,9.2 1 0\nexample.org/x/b.go:1.1,2.2 4 0\nexample.org/x/a.go:7.24,9.2 1 1\nodd line\n";
        let want = [("example.org/x/a.go", 100.0), ("example.org/x/b.go", 0.0)];
        let found: Vec<_> = of_profile(profile).into_iter().map(|covered| (covered.file, covered.percent)).collect();
        assert_eq!(found, files(&want));
    }
}
