//! How much of a project its tests reach, by the tool that the project's world has for it.
//!
//! The number is the tool's own, from a file that it writes. Where the tool is not installed, that is said together with what to install; a
//! number is never made up, and a run that measured nothing has none.

use std::path::Path;
use std::time::{Duration, SystemTime};

use tokio_util::sync::CancellationToken;

use super::coverage_table::{of_lcov, of_profile};
use super::report::{ScratchDir, read_new};
use super::{RunObserver, TestError, TestReport, execute};
use crate::command::CommandSandbox;
use crate::project::{Project, ProjectKind};

/// Runs the tests of a project and measures. Blocking.
pub fn coverage(
    root: &Path,
    project: &Project,
    timeout: Duration,
    isolation: &CommandSandbox,
    cancel: &CancellationToken,
) -> Result<TestReport, TestError> {
    measure(root, project, timeout, isolation, cancel, &RunObserver::default())
}

/// The same, and says how far it is.
pub(super) fn measure(
    root: &Path,
    project: &Project,
    timeout: Duration,
    isolation: &CommandSandbox,
    cancel: &CancellationToken,
    watch: &RunObserver,
) -> Result<TestReport, TestError> {
    let argv = project.coverage.as_ref().ok_or_else(|| {
        TestError::Unavailable(format!(
            "nothing is known that measures a {} project; add a `coverage` command to it",
            project.kind
        ))
    })?;
    let folder = ScratchDir::new().map_err(|err| TestError::Unavailable(format!("no temporary folder: {err}")))?;
    let mut isolation = isolation.clone();
    isolation.also.push(folder.0.clone());
    let file = folder.0.join("coverage");
    let shown = file.display();
    // Go's profile goes to a folder of ours, not into the project.
    let argv: Vec<String> = argv.iter().filter(|word| !word.starts_with("-coverprofile=")).cloned().collect();
    let arguments = match project.kind {
        ProjectKind::Cargo => vec!["--lcov".to_owned(), format!("--output-path={shown}")],
        ProjectKind::Pytest | ProjectKind::Unittest => vec![format!("--cov-report=lcov:{shown}")],
        ProjectKind::Go => vec![format!("-coverprofile={shown}")],
        _ if argv.first().is_some_and(|program| program == "node") => {
            vec!["--test-reporter=lcov".to_owned(), format!("--test-reporter-destination={shown}")]
        }
        _ => Vec::new(),
    };
    // Python's tool keeps its data out of the project.
    let env = vec![("COVERAGE_FILE".to_owned(), folder.0.join("data").display().to_string())];
    let (progress, output_bytes_max) = (watch.progress.clone(), watch.output_bytes_max);
    let watch = RunObserver { progress, output_bytes_max, env, arguments };
    let began = SystemTime::now();
    let mut report = execute(root, project.kind, &argv, timeout, &isolation, cancel, &watch)?;
    // A script of the project's own writes where istanbul does (jest, vitest, c8).
    let file = if watch.arguments.is_empty() { root.join("coverage/lcov.info") } else { file };
    if let Some((total, files)) = read_new(&file, began)
        .and_then(|text| if project.kind == ProjectKind::Go { of_profile(&text) } else { of_lcov(&text) })
    {
        report.coverage = Some(total);
        report.files = files.into_iter().filter(|covered| is_of_project(root, &covered.file)).collect();
    }
    match missing(project.kind, &report) {
        Some(what) if report.coverage.is_none() => Err(TestError::Unavailable(what.to_owned())),
        _ => Ok(report),
    }
}

/// What is not installed, going by what was printed.
fn missing(kind: ProjectKind, report: &TestReport) -> Option<&'static str> {
    let says = |words: &str| !report.ok && report.output.contains(words);
    match kind {
        ProjectKind::Cargo if says("no such command") => {
            Some("`cargo llvm-cov` is not installed; install it with `cargo install cargo-llvm-cov`")
        }
        ProjectKind::Pytest | ProjectKind::Unittest if says("No module named pytest") => {
            Some("pytest is not installed; install it with `python3 -m pip install pytest pytest-cov`")
        }
        ProjectKind::Pytest | ProjectKind::Unittest if says("unrecognized arguments: --cov") => {
            Some("pytest-cov is not installed; install it with `python3 -m pip install pytest-cov`")
        }
        ProjectKind::Npm | ProjectKind::Pnpm | ProjectKind::Yarn | ProjectKind::Bun if says("bad option") => {
            Some("this node does not measure coverage; install node 20 or newer")
        }
        _ => None,
    }
}

/// Whether a file that was measured is the project's own, and not of a library in its folder.
fn is_of_project(root: &Path, file: &str) -> bool {
    const FOREIGN: [&str; 5] = ["site-packages", "dist-packages", "node_modules", ".venv", "venv"];
    let path = Path::new(file);
    let is_inside = !file.starts_with("..") && (path.is_relative() || path.starts_with(root));
    is_inside && !file.split('/').any(|part| FOREIGN.contains(&part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::EndReason;
    use crate::test_runner::{FileCoverage, SUMMARY_FILES_MAX};

    #[test]
    fn only_files_of_the_project_count() {
        let root = Path::new("/p");
        let table = [
            ("app/a.py", true),
            ("/p/app/a.py", true),
            ("/usr/lib/python3/json.py", false),
            ("../other/a.py", false),
            (".venv/lib/python3/site-packages/x.py", false),
            ("web/node_modules/x/index.js", false),
        ];
        for (file, want) in table {
            assert_eq!(is_of_project(root, file), want, "{file}");
        }
    }

    #[test]
    fn a_summary_has_the_files_that_are_reached_least() {
        let files = (0..20_u8).map(|n| FileCoverage { file: format!("{n}.py"), percent: f64::from(n) }).rev().collect();
        let report = TestReport {
            command: "pytest".into(),
            counts: None,
            ok: true,
            ended: EndReason::Exited,
            output: "a long table".into(),
            coverage: Some(50.0),
            files,
            ms: 1,
        };
        let summary = report.clone().summary();
        assert_eq!((summary.files.len(), summary.files[0].file.as_str()), (SUMMARY_FILES_MAX, "0.py"));
        assert!(summary.output.is_empty() && summary.coverage == Some(50.0));
        assert_eq!(TestReport { ok: false, ..report }.summary().output, "a long table", "why it failed is told");
    }
}
