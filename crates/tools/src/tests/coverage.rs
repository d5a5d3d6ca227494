//! How much of a project its tests reach, by the tool that the project's world has for it.
//!
//! The number is the tool's own. Where the tool is not installed, that is said together with what to install; a
//! number is never made up, and a run that measured nothing has none.

use std::io::Read as _;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Report, TestError, Watch, execute, measured};
use crate::command::Walls;
use crate::project::{Kind, Project};

/// Bytes of a profile that are read.
const PROFILE_BYTES_MAX: u64 = 32 << 20;
/// Names that are tried for a temporary folder.
const NAMES_MAX: u32 = 100;

/// Runs the tests of a project and measures. Blocking.
pub fn coverage(
    root: &Path,
    project: &Project,
    timeout: Duration,
    walls: &Walls,
    cancel: &CancellationToken,
) -> Result<Report, TestError> {
    measure(root, project, timeout, walls, cancel, &Watch::default())
}

/// The same, and says how far it is.
pub(super) fn measure(
    root: &Path,
    project: &Project,
    timeout: Duration,
    walls: &Walls,
    cancel: &CancellationToken,
    watch: &Watch,
) -> Result<Report, TestError> {
    let argv = project.coverage.as_ref().ok_or_else(|| {
        TestError::Unavailable(format!(
            "nothing is known that measures a {} project; add a `coverage` command to it",
            project.kind
        ))
    })?;
    let folder = Scratch::new().map_err(|err| TestError::Unavailable(format!("no temporary folder: {err}")))?;
    let mut walls = walls.clone();
    walls.also.push(folder.0.clone());
    if project.kind == Kind::Go {
        return go(root, argv, &folder, timeout, &walls, cancel, watch);
    }
    // What Python's tool writes down stays out of the project.
    let env = vec![("COVERAGE_FILE".to_owned(), folder.0.join("coverage").display().to_string())];
    let watch = Watch { env, progress: watch.progress.clone(), output_bytes_max: watch.output_bytes_max };
    let mut report = execute(root, project.kind, argv, timeout, &walls, cancel, &watch)?;
    report.files.retain(|covered| is_of_project(root, &covered.file));
    match missing(project.kind, &report) {
        Some(what) if report.coverage.is_none() => Err(TestError::Unavailable(what.to_owned())),
        _ => Ok(report),
    }
}

/// What is not installed, going by what was printed.
fn missing(kind: Kind, report: &Report) -> Option<&'static str> {
    let says = |words: &str| !report.ok && report.output.contains(words);
    match kind {
        Kind::Cargo if says("no such command") => {
            Some("`cargo llvm-cov` is not installed; install it with `cargo install cargo-llvm-cov`")
        }
        Kind::Pytest | Kind::Unittest if says("No module named pytest") => {
            Some("pytest is not installed; install it with `python3 -m pip install pytest pytest-cov`")
        }
        Kind::Pytest | Kind::Unittest if says("unrecognized arguments: --cov") => {
            Some("pytest-cov is not installed; install it with `python3 -m pip install pytest-cov`")
        }
        Kind::Npm | Kind::Pnpm | Kind::Yarn | Kind::Bun if says("bad option") => {
            Some("this node does not measure coverage; install node 20 or newer")
        }
        _ => None,
    }
}

/// Go writes a profile, which another command adds up. The profile goes to a folder of ours, not into the project.
fn go(
    root: &Path,
    argv: &[String],
    folder: &Scratch,
    timeout: Duration,
    walls: &Walls,
    cancel: &CancellationToken,
    watch: &Watch,
) -> Result<Report, TestError> {
    let profile = folder.0.join("coverage.out").display().to_string();
    let placed = |word: &String| match word.strip_prefix("-coverprofile=") {
        Some(_) => format!("-coverprofile={profile}"),
        None => word.clone(),
    };
    let argv: Vec<String> = argv.iter().map(placed).collect();
    let mut report = execute(root, Kind::Go, &argv, timeout, walls, cancel, watch)?;
    if Path::new(&profile).exists() {
        let total = ["go", "tool", "cover"].map(str::to_owned).into_iter().chain([format!("-func={profile}")]);
        let total = execute(root, Kind::Go, &total.collect::<Vec<_>>(), timeout, walls, cancel, watch)?;
        report.coverage = total.coverage;
        report.files = measured::of_profile(&read(&profile).unwrap_or_default());
    }
    Ok(report)
}

/// Whether a file that was measured is the project's own, and not of a library in its folder.
fn is_of_project(root: &Path, file: &str) -> bool {
    const FOREIGN: [&str; 5] = ["site-packages", "dist-packages", "node_modules", ".venv", "venv"];
    let path = Path::new(file);
    let is_inside = !file.starts_with("..") && (path.is_relative() || path.starts_with(root));
    is_inside && !file.split('/').any(|part| FOREIGN.contains(&part))
}

/// The beginning of a profile, as much as anybody looks at.
fn read(profile: &str) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(profile)?.take(PROFILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// A folder of our own that goes away again.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> std::io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mut last = std::io::Error::other("all names are taken");
        for _ in 0..NAMES_MAX {
            let name = format!("max-team-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let path = std::env::temp_dir().join(name);
            // What is there already is never used: it may be somebody else's.
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(err) => last = err,
            }
        }
        Err(last)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Ended;
    use crate::tests::{Covered, SUMMARY_FILES_MAX};

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
        let files = (0..20_u8).map(|n| Covered { file: format!("{n}.py"), percent: f64::from(n) }).rev().collect();
        let report = Report {
            command: "pytest".into(),
            passed: 1,
            failed: 0,
            skipped: 0,
            failures: Vec::new(),
            ok: true,
            ended: Ended::Exited,
            output: "a long table".into(),
            coverage: Some(50.0),
            files,
            ms: 1,
        };
        let summary = report.clone().summary();
        assert_eq!((summary.files.len(), summary.files[0].file.as_str()), (SUMMARY_FILES_MAX, "0.py"));
        assert!(summary.output.is_empty() && summary.coverage == Some(50.0));
        assert_eq!(Report { ok: false, ..report }.summary().output, "a long table", "why it failed is told");
    }
}
