//! What Maven, Gradle and ctest print.
//!
//! Maven counts each class and then each module: only the latter is added up. Gradle tells numbers only where
//! something failed; a run of it that went well has none, and that shows as no tests counted.

use super::tally::{Counts, number_before};

#[derive(Debug, Default)]
pub(super) struct Java {
    counts: Counts,
}

impl Java {
    pub(super) fn line(&mut self, line: &str) {
        let inner =
            line.trim_start_matches("[INFO]").trim_start_matches("[WARNING]").trim_start_matches("[ERROR]").trim();
        if let Some(rest) = inner.strip_prefix("Tests run: ") {
            self.maven(rest);
        } else if let Some((name, _)) = inner.split_once(" <<< ") {
            // `AppTest.adds -- Time elapsed: 0.005 s <<< FAILURE!`; the line of a whole class begins with its count.
            self.counts.name(name.split(" -- ").next().unwrap_or(name));
        } else if let Some(name) = line.strip_suffix(" FAILED").filter(|name| name.contains(" > ")) {
            self.counts.name(name);
        } else if inner.contains("tests completed,") {
            let count = |word| number_before(inner, word).unwrap_or(0);
            let whole = inner.split(' ').next().and_then(|count| count.parse::<u64>().ok()).unwrap_or(0);
            let (failed, skipped) = (count("failed"), count("skipped"));
            self.counts.add(whole.saturating_sub(failed).saturating_sub(skipped), failed, skipped);
        } else if let Some((_, rest)) = inner.split_once("% tests passed, ") {
            let Some((failed, whole)) = rest.split_once(" tests failed out of ") else { return };
            let (failed, whole) = (failed.parse().unwrap_or(0), whole.parse().unwrap_or(0));
            self.counts.add(u64::saturating_sub(whole, failed), failed, 0);
        } else if let Some((number, name)) = inner.split_once(" - ").filter(|_| inner.ends_with("(Failed)"))
            && number.parse::<u32>().is_ok()
        {
            self.counts.name(name.trim_end_matches("(Failed)"));
        }
    }

    /// `3, Failures: 1, Errors: 0, Skipped: 1`
    fn maven(&mut self, rest: &str) {
        if rest.contains("Time elapsed") {
            return;
        }
        let run = rest.split(',').next().and_then(|run| run.trim().parse::<u64>().ok()).unwrap_or(0);
        let count = |word: &str| -> u64 {
            let parts = rest.split(',').filter_map(|part| part.trim().split_once(": "));
            parts
                .filter(|(name, _)| *name == word)
                .filter_map(|(_, count)| count.parse::<u64>().ok())
                .next()
                .unwrap_or(0)
        };
        let (failed, skipped) = (count("Failures").saturating_add(count("Errors")), count("Skipped"));
        self.counts.add(run.saturating_sub(failed).saturating_sub(skipped), failed, skipped);
    }

    pub(super) fn finish(self) -> Counts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use crate::project::Kind;
    use crate::tests::{Counts, parse};

    #[test]
    fn builders_are_read() {
        let maven = "[INFO] Running org.example.AppTest\n[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 1, Time elapsed: 0.06 s <<< FAILURE! -- in org.example.AppTest\n[ERROR] org.example.AppTest.adds -- Time elapsed: 0.005 s <<< FAILURE!\n[INFO] Results:\n[ERROR] Failures: \n[ERROR]   AppTest.adds:12 expected: <4> but was: <3>\n[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 1\n[INFO] BUILD FAILURE\n";
        let gradle = "> Task :test FAILED\n\nAppTest > adds FAILED\n    org.opentest4j.AssertionFailedError at AppTest.java:12\n\n3 tests completed, 1 failed, 1 skipped\n";
        let ctest = "Test project /tmp/build\n    Start 1: adds\n1/2 Test #1: adds .............***Failed    0.00 sec\n2/2 Test #2: other ............   Passed    0.00 sec\n\n50% tests passed, 1 tests failed out of 2\n\nThe following tests FAILED:\n\t  1 - adds (Failed)\nErrors while running CTest\n";
        let table = [
            (Kind::Maven, maven, (1, 1, 1), vec!["org.example.AppTest.adds"]),
            (Kind::Gradle, gradle, (1, 1, 1), vec!["AppTest > adds"]),
            (Kind::Gradle, "> Task :test\n\nBUILD SUCCESSFUL in 2s\n", (0, 0, 0), vec![]),
            (Kind::Cmake, ctest, (1, 1, 0), vec!["adds"]),
            (Kind::Cmake, "100% tests passed, 0 tests failed out of 2\n", (2, 0, 0), vec![]),
        ];
        for (kind, output, (passed, failed, skipped), names) in table {
            let failures = names.into_iter().map(str::to_owned).collect();
            assert_eq!(parse(kind, output), Counts { passed, failed, skipped, failures }, "{output}");
        }
    }

    #[test]
    fn a_makefile_may_run_anything() {
        let table = [
            (
                "cargo test\n\nrunning 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n",
                1,
            ),
            ("go test -v ./...\n--- PASS: TestA (0.00s)\nok  \tx\t0.1s\n", 1),
            ("python3 -m pytest\n4 passed in 0.01s\n", 4),
            ("npm test\n# pass 2\n# fail 0\n", 2),
            ("echo fine\n", 0),
        ];
        for (output, passed) in table {
            assert_eq!(parse(Kind::Make, output), Counts { passed, ..Counts::default() }, "{output}");
        }
    }
}
