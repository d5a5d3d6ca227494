//! What `cargo test` and `cargo nextest` print.
//!
//! A run has several binaries and doc tests, each with a summary of its own; a summary counts only if it adds up to
//! what the binary announced, and never from inside of what a failed test printed.

use super::tally::{Counts, number_before};

#[derive(Debug, Default)]
pub(super) struct Cargo {
    counts: Counts,
    /// Of the binary that runs, until its summary comes.
    running: Counts,
    announced: Option<u64>,
    place: Place,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Results,
    /// In what a failed test printed.
    Printed,
    /// In the list of those that failed.
    Failures,
}

impl Cargo {
    pub(super) fn line(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("running ") {
            let count = rest.strip_suffix(" tests").or(rest.strip_suffix(" test"));
            if let Some(count) = count.and_then(|count| count.parse().ok()) {
                self.close();
                self.announced = Some(count);
                self.place = Place::Results;
            }
        } else if line == "failures:" {
            self.place = Place::Failures;
        } else if line.starts_with("---- ") && line.ends_with(" ----") {
            self.place = Place::Printed;
        } else if self.place == Place::Printed {
        } else if let Some(rest) = line.strip_prefix("test result: ") {
            self.summary(rest);
        } else if let Some(name) = line.strip_prefix("    ").filter(|_| self.place == Place::Failures) {
            self.counts.name(name);
        } else if let Some((name, how)) = line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... ")) {
            match how.split([' ', ',']).next() {
                Some("ok") => self.running.add(1, 0, 0),
                Some("ignored") => self.running.add(0, 0, 1),
                Some("FAILED") => {
                    self.running.add(0, 1, 0);
                    self.running.name(name);
                }
                _ => {}
            }
        } else {
            self.nextest(line);
        }
    }

    fn summary(&mut self, rest: &str) {
        let count = |word| number_before(rest, word).unwrap_or(0);
        let (passed, failed, skipped) = (count("passed"), count("failed"), count("ignored"));
        let whole = passed.saturating_add(failed).saturating_add(skipped).saturating_add(count("measured"));
        if self.announced == Some(whole) {
            self.counts.add(passed, failed, skipped);
            self.announced = None;
            self.running = Counts::default();
        }
    }

    /// A binary that ended without a summary (it crashed, or its time was up) has the results that it gave.
    fn close(&mut self) {
        let Counts { passed, failed, skipped, failures } = std::mem::take(&mut self.running);
        if self.announced.take().is_some() {
            self.counts.add(passed, failed, skipped);
            failures.iter().for_each(|name| self.counts.name(name));
        }
    }

    fn nextest(&mut self, line: &str) {
        let line = line.trim_start();
        if let Some((_, rest)) = line.strip_prefix("Summary [").and_then(|rest| rest.split_once(']')) {
            let Some((_, rest)) = rest.split_once(" run: ") else { return };
            let count = |word| number_before(rest, word).unwrap_or(0);
            let failed = count("failed")
                .saturating_add(number_before(&rest.replace("timed out", "timed-out"), "timed-out").unwrap_or(0));
            self.counts.add(count("passed"), failed, count("skipped"));
        } else if let Some((_, name)) = ["FAIL [", "TIMEOUT [", "SIGABRT [", "SIGSEGV ["]
            .iter()
            .find_map(|word| line.strip_prefix(word)?.split_once(']'))
        {
            let name = name.trim_start();
            // How far the run is: `(3/7)`.
            let name = if name.starts_with('(') { name.split_once(") ").map_or(name, |(_, name)| name) } else { name };
            self.counts.name(name);
        }
    }

    pub(super) fn finish(mut self) -> Counts {
        self.close();
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use crate::project::Kind::Cargo;
    use crate::tests::{Counts, parse};

    #[test]
    fn binaries_and_doc_tests_are_added_up() {
        let output = "   Compiling tiny v0.1.0 (/tmp/tiny)\n    Finished `test` profile [unoptimized + debuginfo] target(s) in 0.46s\n     Running unittests src/lib.rs (target/debug/deps/tiny-b8411d1b6389d6df)\n\nrunning 2 tests\ntest tests::slow ... ignored\ntest tests::adds ... ok\n\ntest result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n     Running tests/it.rs (target/debug/deps/it-66cd0eec21e170a5)\n\nrunning 2 tests\ntest passes ... ok\ntest fails ... FAILED\n\nfailures:\n\n---- fails stdout ----\n    indented\ntest result: ok. 99 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n\nthread 'fails' (12755) panicked at tests/it.rs:1:125:\nassertion `left == right` failed\n  left: 3\n right: 4\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n\n\nfailures:\n    fails\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.11s\n\nerror: test failed, to rerun pass `--test it`\n   Doc-tests tiny\n\nrunning 1 test\ntest src/lib.rs - add (line 2) ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\nerror: 1 target failed:\n    `--test it`\n";
        assert_eq!(parse(Cargo, output), Counts { passed: 3, failed: 1, skipped: 1, failures: vec!["fails".into()] });
    }

    #[test]
    fn a_binary_that_dies_counts_as_far_as_it_came() {
        let output = "\nrunning 3 tests\ntest a ... ok\ntest b - should panic ... FAILED\nerror: test failed (signal: 6)\n\nrunning 1 test\ntest c ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let want = Counts { passed: 2, failed: 1, skipped: 0, failures: vec!["b - should panic".into()] };
        assert_eq!(parse(Cargo, output), want);
        for none in [
            "",
            "error[E0425]: cannot find value `x`\nerror: could not compile `tiny`\n",
            "test result: ok. 9 passed; 0 failed",
        ] {
            assert_eq!(parse(Cargo, none), Counts::default(), "{none}");
        }
        assert_eq!(
            parse(
                Cargo,
                "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 4 filtered out\n"
            ),
            Counts::default()
        );
    }

    #[test]
    fn nextest_has_one_summary() {
        let output = " Nextest run ID f17e9368 with nextest profile: default\n    Starting 3 tests across 2 binaries (1 test skipped)\n        PASS [   0.019s] (1/3) tiny tests::adds\n        FAIL [   0.142s] (3/3) tiny::it fails\n  stdout ───\n\n    running 1 test\n    test result: ok. 99 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n    test fails ... FAILED\n\n    failures:\n        fails\n────────────\n     Summary [   0.144s] 3 tests run: 2 passed, 1 failed, 1 skipped\n        FAIL [   0.142s] (3/3) tiny::it fails\nerror: test run failed\n";
        assert_eq!(
            parse(Cargo, output),
            Counts { passed: 2, failed: 1, skipped: 1, failures: vec!["tiny::it fails".into()] }
        );
        let output = "     Summary [  60.1s] 4/9 tests run: 2 passed (1 slow), 1 failed, 1 timed out, 0 skipped\n     TIMEOUT [  60.0s] tiny hangs\n";
        assert_eq!(
            parse(Cargo, output),
            Counts { passed: 2, failed: 2, skipped: 0, failures: vec!["tiny hangs".into()] }
        );
    }
}
