//! The tests of a project, run and counted.
//!
//! The exit code says whether all went well. Numbers and names come from a report in a machine format that the runner is asked for
//! (JUnit XML, `go test -json`); without one there are none, and the end of the output says the rest. That a report counts no
//! test at all is never hidden. Nothing here decides which tests are worth running.

mod coverage;
mod coverage_table;
mod go;
mod junit;
mod report;
mod selection;
mod tool;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use max_team_core::output::rendered;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use self::go::GoEvents;
use self::report::{ReportCommand, ScratchDir};
use crate::command::{CommandError, CommandSandbox, EndReason, Invocation, OUTPUT_BYTES_MAX, OutputBuffer, join};
use crate::progress::Progress;
use crate::project::{Project, ProjectKind};
use crate::text::{clip, visible};

pub use coverage::coverage;
pub use coverage_table::FileCoverage;
pub use selection::command;
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
pub struct TestReport {
    /// The command, as one line.
    pub command: String,
    /// Its tests, if the runner wrote a report.
    #[serde(flatten)]
    pub counts: Option<TestCounts>,
    /// Whether the command ended by itself and says that all went well.
    pub ok: bool,
    /// Why it is over.
    pub ended: EndReason,
    /// What it printed, within [`OUTPUT_BYTES_MAX`].
    pub output: String,
    /// Percent of the code that the tests reached, where it was measured.
    pub coverage: Option<f64>,
    /// The same for each file, where it was told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileCoverage>,
    /// How long it took, in milliseconds.
    pub ms: u64,
}

/// Names of failed tests that are kept.
pub const FAILURES_MAX: usize = 50;
/// Bytes of one such name.
const NAME_BYTES_MAX: usize = 300;

/// The tests of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestCounts {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed or broke.
    pub failed: u64,
    /// Tests that were not run.
    pub skipped: u64,
    /// Names of tests that failed, at most [`FAILURES_MAX`].
    pub failures: Vec<String>,
}

impl TestCounts {
    /// Notes the name of a failed test, once.
    fn name(&mut self, name: &str) {
        let name = visible(&clip(name.trim(), NAME_BYTES_MAX));
        if !name.is_empty() && self.failures.len() < FAILURES_MAX && !self.failures.contains(&name) {
            self.failures.push(name);
        }
    }

    fn add(&mut self, other: Self) {
        self.passed = self.passed.saturating_add(other.passed);
        self.failed = self.failed.saturating_add(other.failed);
        self.skipped = self.skipped.saturating_add(other.skipped);
        other.failures.iter().for_each(|name| self.name(name));
    }

    /// Whether a test was run.
    pub fn is_any(&self) -> bool {
        self.passed > 0 || self.failed > 0
    }
}

impl fmt::Display for TestCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

impl TestReport {
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
    /// It is unknown how its tests are run.
    #[error("no test command is known for this {0} project; add one to the project")]
    NoTests(ProjectKind),
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
    isolation: &CommandSandbox,
    cancel: &CancellationToken,
) -> Result<TestReport, TestError> {
    execute(root, project.kind, &command(root, project, filter)?, timeout, isolation, cancel, &RunObserver::default())
}

/// How a run is watched.
struct RunObserver {
    progress: Progress,
    /// Bytes of output that are kept.
    output_bytes_max: usize,
    /// Further variables of the command.
    env: Vec<(String, String)>,
    /// Further arguments of the command, behind the name of the runner's subcommand.
    arguments: Vec<String>,
}

impl Default for RunObserver {
    fn default() -> Self {
        Self {
            progress: Progress::default(),
            output_bytes_max: OUTPUT_BYTES_MAX,
            env: Vec::new(),
            arguments: Vec::new(),
        }
    }
}

fn execute(
    root: &Path,
    kind: ProjectKind,
    argv: &[String],
    timeout: Duration,
    isolation: &CommandSandbox,
    cancel: &CancellationToken,
    watch: &RunObserver,
) -> Result<TestReport, TestError> {
    let folder = ScratchDir::new().map_err(|err| TestError::Unavailable(format!("no temporary folder: {err}")))?;
    let isolation = CommandSandbox {
        also: isolation.also.iter().cloned().chain([folder.0.clone()]).collect(),
        ..isolation.clone()
    };
    let asked = ReportCommand::new(kind, argv, &watch.arguments, &folder.0);
    let usual = ENVIRONMENT.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let env = usual.chain(watch.env.iter().cloned()).collect();
    let mut events = GoEvents::default();
    let mut kept = OutputBuffer::new(watch.output_bytes_max);
    let job = Invocation { env, ..Invocation::new(&asked.argv, root, timeout, Some(&isolation)) };
    let over = watch.progress.follow(|follow| {
        job.run(cancel, &mut |_, bytes| {
            let mut show = |bytes: &[u8]| {
                kept.push(bytes);
                follow(bytes);
            };
            if kind == ProjectKind::Go {
                events.push(bytes, &mut show)
            } else {
                show(bytes)
            }
            true
        })
    })?;
    Ok(TestReport {
        command: join(argv),
        counts: if kind == ProjectKind::Go { events.finish() } else { asked.read(root) },
        ok: over.ended == EndReason::Exited && over.code == Some(0),
        ended: over.ended,
        output: rendered(&kept.text()),
        coverage: None,
        files: Vec::new(),
        ms: over.ms,
    })
}
