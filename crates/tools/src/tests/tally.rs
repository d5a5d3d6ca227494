//! What a test runner printed becomes numbers and names.
//!
//! Lines are read as they come, so that however much is printed, nothing is counted from a cut text and little is
//! kept. A runner's own summary counts, not what tests print where that can be told apart. What is not understood is
//! not counted: numbers are never guessed.

use max_team_core::output::rendered;

use super::java::Java;
use super::measured::Measured;
use super::node::Node;
use super::python::Python;
use super::{cargo::Cargo, go::Go};
use crate::project::Kind;
use crate::text::{clip, visible};

/// Names of failed tests that are kept.
pub const FAILURES_MAX: usize = 50;
/// Bytes of one such name.
const NAME_BYTES_MAX: usize = 300;
/// Bytes of one line that are looked at.
const LINE_BYTES_MAX: usize = 8 << 10;

/// How many tests did what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed or broke.
    pub failed: u64,
    /// Tests that were not run although they are there.
    pub skipped: u64,
    /// Names of those that failed, at most [`FAILURES_MAX`].
    pub failures: Vec<String>,
}

impl Counts {
    pub(super) fn add(&mut self, passed: u64, failed: u64, skipped: u64) {
        self.passed = self.passed.saturating_add(passed);
        self.failed = self.failed.saturating_add(failed);
        self.skipped = self.skipped.saturating_add(skipped);
    }

    /// Notes the name of a failed test, once.
    pub(super) fn name(&mut self, name: &str) {
        let name = visible(&clip(name.trim(), NAME_BYTES_MAX));
        if !name.is_empty() && self.failures.len() < FAILURES_MAX && !self.failures.contains(&name) {
            self.failures.push(name);
        }
    }

    fn weight(&self) -> (u64, usize) {
        (self.passed.saturating_add(self.failed).saturating_add(self.skipped), self.failures.len())
    }
}

/// Counts what a runner of some kind prints.
#[derive(Debug)]
pub(super) struct Tally {
    kind: Kind,
    line: Vec<u8>,
    cargo: Cargo,
    go: Go,
    python: Python,
    node: Node,
    java: Java,
    measured: Measured,
}

impl Tally {
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            kind,
            line: Vec::new(),
            cargo: Cargo::default(),
            go: Go::default(),
            python: Python::default(),
            node: Node::default(),
            java: Java::default(),
            measured: Measured::new(kind),
        }
    }

    /// Takes output as it comes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE_BYTES_MAX.saturating_sub(self.line.len()).min(piece.len());
            self.line.extend_from_slice(piece.get(..room).unwrap_or_default());
            if piece.ends_with(b"\n") {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let bytes = std::mem::take(&mut self.line);
        let line = rendered(&String::from_utf8_lossy(&bytes));
        let line = line.trim_end();
        match self.kind {
            Kind::Cargo => self.cargo.line(line),
            Kind::Go => self.go.line(line),
            Kind::Pytest | Kind::Unittest => self.python.line(line),
            Kind::Npm | Kind::Pnpm | Kind::Yarn | Kind::Bun => self.node.line(line),
            Kind::Maven | Kind::Gradle | Kind::Cmake => self.java.line(line),
            // Anything may be behind a makefile.
            Kind::Make => {
                self.cargo.line(line);
                self.go.line(line);
                self.python.line(line);
                self.node.line(line);
                self.java.line(line);
            }
        }
        self.measured.line(line);
    }

    /// What was counted.
    pub(super) fn finish(mut self) -> (Counts, Measured) {
        if !self.line.is_empty() {
            self.end_line();
        }
        let all = [self.cargo.finish(), self.go.finish(), self.python.finish(), self.node.finish(), self.java.finish()];
        let most = all.into_iter().max_by_key(Counts::weight).unwrap_or_default();
        (most, self.measured)
    }
}

/// Counts what a runner of some kind has printed.
pub fn parse(kind: Kind, output: &str) -> Counts {
    let mut tally = Tally::new(kind);
    tally.push(output.as_bytes());
    tally.finish().0
}

/// The number before a word, like 3 in `3 passed`.
pub(super) fn number_before(text: &str, word: &str) -> Option<u64> {
    let mut words =
        text.split(|letter: char| letter.is_whitespace() || ",;|()".contains(letter)).filter(|w| !w.is_empty());
    let mut last = None;
    words.find_map(|one| {
        let found = if one == word { last } else { None };
        last = one.parse().ok();
        found
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn colours_are_taken_away() {
        assert_eq!(rendered("\u{1b}[31m\u{1b}[1mred\u{1b}[0m é"), "red é");
        assert_eq!(rendered("\u{1b}"), "");
    }

    const KINDS: [Kind; 6] = [Kind::Cargo, Kind::Go, Kind::Pytest, Kind::Npm, Kind::Maven, Kind::Make];

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_output_is_read_or_passed_over(
            output in any::<String>(),
            odd in "(test result: |[0-9]{1,25} passed|--- FAIL: |Tests:|# pass |Ran |=====\n|, |;|/| in |\\(|\n|é){0,12}",
        ) {
            for kind in KINDS {
                let _ = (parse(kind, &output), parse(kind, &odd));
            }
        }
    }
}
