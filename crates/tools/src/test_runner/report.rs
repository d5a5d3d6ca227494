//! The report that a runner is asked for: where it is written, and what it says.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use super::{TestCounts, junit};
use crate::project::ProjectKind;

/// Bytes of a report that are read; a longer one is cut short and counts nothing.
const REPORT_BYTES_MAX: u64 = 32 << 20;
/// Reports of one run.
const REPORTS_MAX: usize = 2_000;
/// Names that are tried for a temporary folder.
const NAMES_MAX: u32 = 100;

/// A command with the arguments that make it write a report.
pub(super) struct ReportCommand {
    pub(super) argv: Vec<String>,
    began: SystemTime,
    place: ReportLocation,
}

enum ReportLocation {
    /// The runner writes none.
    None,
    File(PathBuf),
    /// Files in this folder of the project and of its modules.
    Folder(&'static str),
}

impl ReportCommand {
    /// `arguments` are further options of the runner.
    pub(super) fn new(kind: ProjectKind, argv: &[String], arguments: &[String], folder: &Path) -> Self {
        let (mut argv, file) = (argv.to_vec(), folder.join("report.xml"));
        let shown = file.display();
        let is_pytest = kind == ProjectKind::Pytest || argv.iter().any(|word| word == "pytest");
        let is_node = argv.first().is_some_and(|program| program == "node");
        let (own, place) = match kind {
            _ if is_pytest => (vec![format!("--junitxml={shown}")], ReportLocation::File(file)),
            _ if is_node => {
                let destination = format!("--test-reporter-destination={shown}");
                let shown = ["--test-reporter=spec", "--test-reporter-destination=stdout", "--test-reporter=junit"];
                (
                    shown.iter().copied().chain([destination.as_str()]).map(str::to_owned).collect(),
                    ReportLocation::File(file),
                )
            }
            // Its report is its output.
            ProjectKind::Go => (vec!["-json".to_owned()], ReportLocation::None),
            ProjectKind::Cmake => (vec!["--output-junit".to_owned(), shown.to_string()], ReportLocation::File(file)),
            ProjectKind::Maven => (Vec::new(), ReportLocation::Folder("target/surefire-reports")),
            ProjectKind::Gradle => (Vec::new(), ReportLocation::Folder("build/test-results/test")),
            _ => (Vec::new(), ReportLocation::None),
        };
        // Files and packages follow the options of node and go; others take options anywhere.
        let at = if is_node || kind == ProjectKind::Go { argv.len().min(2) } else { argv.len() };
        argv.splice(at..at, own.into_iter().chain(arguments.iter().cloned()));
        Self { argv, began: SystemTime::now(), place }
    }

    /// The tests of the run, if there is a report that was written during it.
    pub(super) fn read(&self, root: &Path) -> Option<TestCounts> {
        let files = match &self.place {
            ReportLocation::None => return None,
            ReportLocation::File(file) => vec![file.clone()],
            ReportLocation::Folder(name) => {
                let modules = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
                let folders = std::iter::once(root.to_owned()).chain(modules).map(|module| module.join(name));
                let files = folders.flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
                let is_report = |path: &PathBuf| path.extension().is_some_and(|end| end == "xml");
                files.map(|entry| entry.path()).filter(is_report).take(REPORTS_MAX).collect()
            }
        };
        let read = |file: PathBuf| junit::counts(&read_new(&file, self.began)?);
        files.into_iter().filter_map(read).reduce(|mut all, one| {
            all.add(one);
            all
        })
    }
}

/// The text of a file that was written since then.
pub(super) fn read_new(path: &Path, since: SystemTime) -> Option<String> {
    let known = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    // The clock of a file system lags behind by a tick.
    let is_new = known.modified().is_ok_and(|written| written + FILE_CLOCK_TICK >= since);
    let mut text = String::new();
    fs::File::open(path).ok().filter(|_| is_new)?.take(REPORT_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The longest time between two ticks of the clock that files get their times from.
const FILE_CLOCK_TICK: std::time::Duration = std::time::Duration::from_millis(20);

/// A folder of our own that goes away again.
pub(super) struct ScratchDir(pub(super) PathBuf);

impl ScratchDir {
    pub(super) fn new() -> std::io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mut last = std::io::Error::other("all names are taken");
        for _ in 0..NAMES_MAX {
            let name = format!("max-team-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let path = std::env::temp_dir().join(name);
            // A folder that is there already may be another user's.
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(err) => last = err,
            }
        }
        Err(last)
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn runners_are_asked_for_a_report() {
        let table = [
            (ProjectKind::Pytest, "python3 -m pytest -k a", "python3 -m pytest -k a --junitxml=/f/report.xml"),
            (ProjectKind::Unittest, "python3 -m unittest discover", "python3 -m unittest discover"),
            (ProjectKind::Cargo, "cargo test", "cargo test"),
            (ProjectKind::Cmake, "ctest -R a", "ctest -R a --output-junit /f/report.xml"),
            (ProjectKind::Npm, "npm run test", "npm run test"),
        ];
        for (kind, line, want) in table {
            assert_eq!(ReportCommand::new(kind, &words(line), &[], Path::new("/f")).argv, words(want));
        }
        let node =
            ReportCommand::new(ProjectKind::Npm, &words("node --test a.js"), &words("--x"), Path::new("/f")).argv;
        assert_eq!(
            (node.get(2).map(String::as_str), node.last().map(String::as_str)),
            (Some("--test-reporter=spec"), Some("a.js"))
        );
        let go = ReportCommand::new(
            ProjectKind::Go,
            &words("go test -v ./..."),
            &words("-coverprofile=/f/c"),
            Path::new("/f"),
        );
        assert_eq!(go.argv, words("go test -json -coverprofile=/f/c -v ./..."));
    }

    #[test]
    fn reports_of_all_modules_count_and_old_ones_do_not() {
        let root = tempfile::TempDir::new().unwrap();
        let put = |path: &str, cases: usize| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, format!("<testsuite>{}</testsuite>", "<testcase name=\"a\"/>".repeat(cases))).unwrap();
            path
        };
        let old = put("target/surefire-reports/old.xml", 1);
        fs::File::options().write(true).open(&old).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let asked = ReportCommand::new(ProjectKind::Maven, &words("mvn test"), &[], root.path());
        assert_eq!(asked.read(root.path()), None);
        put("target/surefire-reports/a.xml", 2);
        put("core/target/surefire-reports/b.xml", 3);
        assert_eq!(asked.read(root.path()), Some(TestCounts { passed: 5, ..TestCounts::default() }));
    }
}
