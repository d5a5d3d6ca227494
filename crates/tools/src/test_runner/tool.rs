//! `run_test` and `coverage_report`: a project's own tests, for a model.
//!
//! The command is derived from the project's files, never written by the model; the policy judges the exact line. If
//! the files give another command by now, nothing is run. What tests have done is unknown after a crash, so they are
//! never run again silently. A member chooses only tests that it sees. Nothing is left out of their output, because no
//! line says which file it comes from: an agent that may run tests reads all that they print.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use max_team_core::policy::{Action, ActionKind, Repeatability};
use schemars::JsonSchema;
use serde::Deserialize;

use super::coverage::measure as measured;
use super::{FileCoverage, RunObserver, SUMMARY_FILES_MAX, TestError, TestReport, command, coverage, execute};
use crate::command::{EndReason, join};
use crate::project::{Project, detect};
use crate::text::{many, visible};
use crate::tool::{Output, ToolContext, ToolError};
use crate::typed::Typed;

/// How long tests may take unless told otherwise, in seconds.
const TIMEOUT_S_DEFAULT: u32 = 300;
/// The kind of project, and the program, that models ask for most often where it is not installed.
const PYTEST: &str = "pytest";
/// Bytes of output that are kept to be read on.
const OUTPUT_KEPT: usize = 8 << 20;
/// Bytes of output that a model sees of a run that failed.
const SHOWN_FAILED: usize = 16 << 10;
/// Bytes of output that a model sees of a run that went well.
const SHOWN_FINE: usize = 2 << 10;

/// Run the project's tests, or some of them. The command is detected (Cargo, Go, npm, pytest and others). Passed and failed
/// tests are counted where the runner writes a report.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunTest {
    /// A test file or folder, or a subproject.
    path: Option<String>,
    /// Only tests whose name contains this.
    filter: Option<String>,
    /// Which test runner, such as `cargo` or `npm`, if several fit.
    kind: Option<String>,
    /// Time limit in seconds; default: 300.
    #[schemars(range(min = 1, max = 3600))]
    timeout_s: Option<u32>,
}

/// Run the project's tests and measure how much of its code they cover, in total and per file. Says what to install if
/// the measuring tool is missing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoverageReport {
    /// A subproject. Default: the project folder.
    path: Option<String>,
    /// Which test runner, such as `cargo` or `npm`, if several fit.
    kind: Option<String>,
}

pub(crate) fn run_test() -> Typed<RunTest> {
    let action = |cx: &ToolContext, args: &RunTest| TestRun::of_tests(cx, args).map(|run| run.action());
    Typed::new("run_test", Repeatability::Opaque, action, test)
}

pub(crate) fn coverage_report() -> Typed<CoverageReport> {
    let action = |cx: &ToolContext, args: &CoverageReport| TestRun::of_coverage(cx, args).map(|run| run.action());
    Typed::new("coverage_report", Repeatability::Opaque, action, measure)
}

impl From<TestError> for ToolError {
    fn from(err: TestError) -> Self {
        match err {
            TestError::Command(error) => error.into(),
            err => Self::correctable(err.to_string()),
        }
    }
}

/// A run as it is judged.
struct TestRun {
    project: Project,
    dir: PathBuf,
    /// The folder as the model knows it.
    shown: String,
    argv: Vec<String>,
}

impl TestRun {
    fn of_tests(cx: &ToolContext, args: &RunTest) -> Result<Self, ToolError> {
        let (dir, shown, projects) = folder(cx, args.path.as_deref())?;
        // A path that is no project of its own chooses among the tests of the whole.
        let (is_choice, filter) = match (&args.path, &args.filter) {
            (Some(path), filter) if shown == "." && cx.root.place(path)?.to_string() != "." => {
                if filter.is_some() {
                    return Err(ToolError::correctable(
                        "give `path` or `filter`, not both, unless `path` is a project of its own",
                    ));
                }
                (true, Some(path.as_str()))
            }
            (_, filter) => (false, filter.as_deref()),
        };
        if let (true, Some(path)) = (is_choice, filter) {
            let place = cx.root.place(path)?;
            if !cx.is_dir(place.as_path()) {
                cx.open_file(place.as_path())?;
            }
        }
        if let Some(filter) = filter {
            is_seen(cx, &shown, filter)?;
        }
        let project = one(projects, args.kind.as_deref(), &dir, &shown)?;
        let argv = command(&dir, &project, filter)?;
        Ok(Self { project, dir, shown, argv })
    }

    fn of_coverage(cx: &ToolContext, args: &CoverageReport) -> Result<Self, ToolError> {
        let (dir, shown, projects) = folder(cx, args.path.as_deref())?;
        let project = one(projects, args.kind.as_deref(), &dir, &shown)?;
        let argv = project.coverage.clone().unwrap_or_default();
        if argv.is_empty() {
            // The same error as when it is run.
            coverage(&dir, &project, Duration::ZERO, &cx.sandbox, &cx.cancel)?;
        }
        Ok(Self { project, dir, shown, argv })
    }

    fn action(&self) -> Action {
        let line = visible(&join(&self.argv));
        let place = if self.shown == "." { String::new() } else { format!(" (in `{}`)", self.shown) };
        Action { kind: ActionKind::Execute, preview: format!("{line}{place}"), ..Action::read(line) }
    }

    fn is_judged(&self, intent: &Action) -> Result<(), ToolError> {
        if (Action { reach: intent.reach, ..self.action() }) == *intent {
            return Ok(());
        }
        Err(ToolError::correctable(
            "the project's test command has changed since it was shown; nothing was run, call again",
        ))
    }
}

/// The project folder, or the folder inside it that is a project of its own.
fn folder(cx: &ToolContext, path: Option<&str>) -> Result<(PathBuf, String, Vec<Project>), ToolError> {
    if let Some(path) = path {
        let place = cx.seen(path)?;
        if cx.is_dir(place.as_path()) {
            let dir = cx.root.path().join(place.as_path());
            // A few test files do not make a folder a project.
            let is_own = [
                "Cargo.toml",
                "go.mod",
                "package.json",
                "pyproject.toml",
                "setup.py",
                "pom.xml",
                "build.gradle",
                "build.gradle.kts",
                "Makefile",
                "CMakeLists.txt",
            ];
            if is_own.iter().any(|name| dir.join(name).is_file()) {
                let projects = detect(&dir);
                return Ok((dir, place.to_string(), projects));
            }
        }
    }
    Ok((cx.root.path().to_owned(), ".".to_owned(), detect(cx.root.path())))
}

/// Refuses tests that are chosen by a hidden path, or by a link. A name is only a path if something is there.
fn is_seen(cx: &ToolContext, folder: &str, filter: &str) -> Result<(), ToolError> {
    if cx.sight.is_whole() {
        return Ok(());
    }
    let path = filter.trim().split("::").next().unwrap_or_default();
    let path = if path.starts_with('/') { path.to_owned() } else { format!("{folder}/{path}") };
    let Ok(place) = cx.root.place(&path) else { return Ok(()) };
    if cx.root.path().join(place.as_path()).symlink_metadata().is_err() {
        return Ok(());
    }
    cx.seen(&place.to_string())?;
    if cx.is_dir(place.as_path()) { Ok(()) } else { cx.open_file(place.as_path()).map(drop) }
}

/// Whether a program is in `PATH` or in the project's virtual environment.
fn is_installed(program: &str, dir: &Path, path: Option<&OsStr>) -> bool {
    let own = [".venv/bin", "venv/bin"].map(|folder| dir.join(folder));
    own.into_iter().chain(path.iter().flat_map(std::env::split_paths)).any(|folder| folder.join(program).is_file())
}

fn one(projects: Vec<Project>, kind: Option<&str>, dir: &Path, shown: &str) -> Result<Project, ToolError> {
    let kinds: Vec<String> = projects.iter().map(|project| format!("`{}`", project.kind)).collect();
    let mut fitting = projects.into_iter().filter(|project| kind.is_none_or(|kind| project.kind.name() == kind));
    let first = fitting.next();
    let tested = if first.as_ref().is_some_and(|project| !project.test.is_empty()) {
        first
    } else {
        fitting.find(|project| !project.test.is_empty()).or(first)
    };
    tested.ok_or_else(|| {
        ToolError::correctable(match kind {
            Some(kind) if !kinds.is_empty() => {
                let known = format!("`{shown}` is no `{}` project; it is {}", visible(kind), kinds.join(", "));
                let is_lacking = kind == PYTEST && !is_installed(PYTEST, dir, std::env::var_os("PATH").as_deref());
                let lacking = if is_lacking { "; `pytest` is not installed: leave `kind` out" } else { "" };
                known + lacking
            }
            _ => format!(
                "no known kind of project is in `{shown}` (no Cargo.toml, go.mod, package.json, pyproject.toml, Makefile, …); name a test file, or a folder with a project file, in `path`"
            ),
        })
    })
}

fn test(cx: &ToolContext, args: RunTest, intent: &Action, _: bool) -> Result<Output, ToolError> {
    let run = TestRun::of_tests(cx, &args)?;
    run.is_judged(intent)?;
    let timeout = Duration::from_secs(args.timeout_s.unwrap_or(TIMEOUT_S_DEFAULT).into());
    let report = execute(&run.dir, run.project.kind, &run.argv, timeout, &cx.sandbox, &cx.cancel, &watch(cx))?;
    cx.check()?;
    Ok(Output::text(told(cx, &report)))
}

fn measure(cx: &ToolContext, args: CoverageReport, intent: &Action, _: bool) -> Result<Output, ToolError> {
    let run = TestRun::of_coverage(cx, &args)?;
    run.is_judged(intent)?;
    let timeout = Duration::from_secs(TIMEOUT_S_DEFAULT.into());
    let report = measured(&run.dir, &run.project, timeout, &cx.sandbox, &cx.cancel, &watch(cx))?;
    cx.check()?;
    let total = match report.coverage {
        Some(percent) => format!("coverage: {percent} %"),
        None => "coverage was not measured; see the output for why".to_owned(),
    };
    let files = of_files(&report.files);
    // The table that was printed says the same once more.
    let report = if report.coverage.is_some() { report.summary() } else { report };
    Ok(Output::text(format!("{total}\n{files}{}", told(cx, &report))))
}

/// More output is kept than the model is told, so that it can read on.
fn watch(cx: &ToolContext) -> RunObserver {
    RunObserver { progress: cx.progress.clone(), output_bytes_max: OUTPUT_KEPT, ..RunObserver::default() }
}

/// The files that the tests reach least, first.
fn of_files(files: &[FileCoverage]) -> String {
    let mut files: Vec<&FileCoverage> = files.iter().collect();
    files.sort_by(|one, other| one.percent.total_cmp(&other.percent).then_with(|| one.file.cmp(&other.file)));
    let line = |FileCoverage { file, percent }: &&FileCoverage| format!("{percent:>6} % {file}\n");
    let mut text: String = files.iter().take(SUMMARY_FILES_MAX).map(line).collect();
    if files.len() > SUMMARY_FILES_MAX {
        text.push_str(&format!("[{} more, reached better]\n", many(files.len() - SUMMARY_FILES_MAX, "file")));
    }
    text
}

/// A report as text: the result first, then the names, then what was printed.
fn told(cx: &ToolContext, report: &TestReport) -> String {
    let how = match (report.ended, report.ok) {
        (EndReason::TimedOut, _) => "TIMED OUT".to_owned(),
        (EndReason::Cancelled, _) => "STOPPED".to_owned(),
        (EndReason::Limit(limit), _) => format!("STOPPED for taking too much ({})", limit.name()),
        (EndReason::Exited, true) => "ok".to_owned(),
        (EndReason::Exited, false) => "FAILED".to_owned(),
    };
    let seconds = report.ms / 1_000;
    let counted = report.counts.as_ref().map(|counts| format!(": {counts}")).unwrap_or_default();
    let mut text = format!("{how}{counted} in {seconds} s (`{}`)\n", visible(&report.command));
    match &report.counts {
        Some(counts) if !counts.is_any() => text.push_str("no test was run\n"),
        Some(counts) if !counts.failures.is_empty() => {
            text.push_str("failed:\n");
            text.extend(counts.failures.iter().map(|name| format!("- {name}\n")));
        }
        Some(_) => {}
        None => text.push_str("this runner writes no report: its exit code and its output say how it went\n"),
    }
    let most = if report.ok { SHOWN_FINE } else { SHOWN_FAILED };
    let from = report.output.ceil_char_boundary(report.output.len().saturating_sub(most));
    let shown = report.output.get(from..).unwrap_or_default();
    let rest = if from > 0 { cx.keep(&report.output) } else { None };
    let cut = match (from, rest) {
        (0, _) => String::new(),
        (from, None) => format!("[{} cut]\n", many(from, "byte")),
        (from, Some(rest)) => format!("[{} cut; {rest}]\n", many(from, "byte")),
    };
    if shown.is_empty() {
        return text;
    }
    text.push_str(&format!("output:\n{cut}"));
    text.extend(shown.lines().map(|line| visible(line) + "\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_installed_in_path_or_in_the_virtual_environment() {
        let [project, bin] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let path = Some(bin.path().as_os_str());
        assert!(!is_installed("pytest", project.path(), path) && !is_installed("pytest", project.path(), None));
        std::fs::write(bin.path().join("pytest"), "").unwrap();
        assert!(is_installed("pytest", project.path(), path) && !is_installed("pytest", project.path(), None));
        std::fs::create_dir_all(project.path().join(".venv/bin")).unwrap();
        std::fs::write(project.path().join(".venv/bin/pytest"), "").unwrap();
        assert!(is_installed("pytest", project.path(), None));
    }
}
