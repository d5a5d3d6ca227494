//! The tests of a project, run and counted.
//!
//! The exit code says whether all went well; numbers come from what the runner prints, and are zero where that is not
//! understood. That no test ran at all is never hidden: then `passed` and `failed` are both zero. Nothing here
//! decides which tests are worth running.

mod cargo;
mod choose;
mod coverage;
mod go;
mod java;
mod measured;
mod node;
mod python;
mod tally;
mod tool;

use std::path::Path;
use std::time::Duration;

use max_team_core::output::rendered;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use self::tally::Tally;
use crate::command::{CommandError, Ended, Job, Kept, OUTPUT_BYTES_MAX, Walls, join};
use crate::progress::Progress;
use crate::project::{Kind, Project};

pub use choose::command;
pub use coverage::coverage;
pub use measured::Covered;
pub use tally::{Counts, FAILURES_MAX, parse};
pub use tool::{CoverageReport, RunTest};
pub(crate) use tool::{coverage_report, run_test};

/// Variables that make runners print plain text, run once, and leave nothing behind in the tree.
const ENVIRONMENT: [(&str, &str); 5] = [
    ("NO_COLOR", "1"),
    ("FORCE_COLOR", "0"),
    ("CARGO_TERM_COLOR", "never"),
    ("CI", "true"),
    ("PYTHONDONTWRITEBYTECODE", "1"),
];

/// Files whose coverage a summary names.
pub(crate) const SUMMARY_FILES_MAX: usize = 10;

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The command, as one line.
    pub command: String,
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Tests that were not run.
    pub skipped: u64,
    /// Names of tests that failed, at most [`FAILURES_MAX`].
    pub failures: Vec<String>,
    /// Whether the command ended by itself and says that all went well.
    pub ok: bool,
    /// Why it is over.
    pub ended: Ended,
    /// What it printed, within [`OUTPUT_BYTES_MAX`].
    pub output: String,
    /// Percent of the code that the tests reached, where it was measured.
    pub coverage: Option<f64>,
    /// The same for each file, where it was told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<Covered>,
    /// How long it took, in milliseconds.
    pub ms: u64,
}

impl Report {
    /// The report as it is handed on: the files that tests reach least, and of a run that went well not what it printed.
    #[must_use]
    pub fn summary(mut self) -> Self {
        self.files.sort_by(|one, other| one.percent.total_cmp(&other.percent).then_with(|| one.file.cmp(&other.file)));
        self.files.truncate(SUMMARY_FILES_MAX);
        if self.ok {
            self.output.clear();
        }
        self
    }
}

/// Why tests could not be run.
#[derive(Debug, thiserror::Error)]
pub enum TestError {
    /// Nobody knows how.
    #[error("it is not known how the tests of this {0} project are run; add a test command to it")]
    NoTests(Kind),
    /// The choice of tests cannot be made.
    #[error("{0}")]
    Filter(String),
    /// The command could not be run.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// What measures is not here.
    #[error("coverage is not available here: {0}")]
    Unavailable(String),
}

/// Runs the tests of a project in its folder; `filter` is a test file, a folder or a part of a test's name. Blocking.
pub fn run(
    root: &Path,
    project: &Project,
    filter: Option<&str>,
    timeout: Duration,
    walls: &Walls,
    cancel: &CancellationToken,
) -> Result<Report, TestError> {
    execute(root, project.kind, &command(root, project, filter)?, timeout, walls, cancel, &Watch::default())
}

/// How a run is watched.
struct Watch {
    progress: Progress,
    /// Bytes of output that are kept.
    output_bytes_max: usize,
    /// Further variables of the command.
    env: Vec<(String, String)>,
}

impl Default for Watch {
    fn default() -> Self {
        Self { progress: Progress::default(), output_bytes_max: OUTPUT_BYTES_MAX, env: Vec::new() }
    }
}

fn execute(
    root: &Path,
    kind: Kind,
    argv: &[String],
    timeout: Duration,
    walls: &Walls,
    cancel: &CancellationToken,
    watch: &Watch,
) -> Result<Report, TestError> {
    let usual = ENVIRONMENT.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let env = usual.chain(watch.env.iter().cloned()).collect();
    let mut tally = Tally::new(kind);
    let mut kept = Kept::new(watch.output_bytes_max);
    let job = Job { env, ..Job::new(argv, root, timeout, Some(walls)) };
    let over = watch.progress.follow(|follow| {
        job.run(cancel, &mut |_, bytes| {
            tally.push(bytes);
            kept.push(bytes);
            follow(bytes);
            true
        })
    })?;
    let (counts, measured) = tally.finish();
    let Counts { passed, failed, skipped, failures } = counts;
    Ok(Report {
        command: join(argv),
        passed,
        failed,
        skipped,
        failures,
        ok: over.ended == Ended::Exited && over.code == Some(0),
        ended: over.ended,
        output: rendered(&kept.text()),
        coverage: measured.total,
        files: measured.files,
        ms: over.ms,
    })
}
