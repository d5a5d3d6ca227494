//! What kind of project a folder is, and how it is built and tested.
//!
//! Known by the files at the top of the folder, read within bounds and never run. Several kinds may apply; the most
//! telling comes first. If it is unknown how the tests of a project are started, its `test` is empty. The kind does
//! not depend on the agent that asks, so hidden files are read, too; of what the files say, only commands are passed
//! on.

mod registries;

use std::collections::BTreeSet;
use std::fmt;
use std::io::Read;
use std::path::Path;

use max_team_core::policy::Visibility;
use serde_json::Value;

pub use registries::registries;

use crate::command::join;
use crate::files::Root;

/// Bytes of a project file that are read.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Names in a folder that are looked at.
const NAMES_MAX: usize = 10_000;
/// Test files that are looked into.
const SAMPLES_MAX: usize = 20;

/// A kind of project, by what runs its tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectKind {
    Cargo,
    Go,
    /// JavaScript or TypeScript with npm, or with node alone.
    Npm,
    /// The same with pnpm.
    Pnpm,
    /// The same with yarn.
    Yarn,
    /// The same with bun.
    Bun,
    /// Python with pytest.
    Pytest,
    /// Python with its own `unittest`.
    Unittest,
    /// Java with Maven.
    Maven,
    /// Java with Gradle.
    Gradle,
    /// CMake with ctest.
    Cmake,
    Make,
}

impl ProjectKind {
    /// Its name, as a model or a user writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cargo => "cargo",
            Self::Go => "go",
            Self::Npm => "npm",
            Self::Pnpm => "pnpm",
            Self::Yarn => "yarn",
            Self::Bun => "bun",
            Self::Pytest => "pytest",
            Self::Unittest => "unittest",
            Self::Maven => "maven",
            Self::Gradle => "gradle",
            Self::Cmake => "cmake",
            Self::Make => "make",
        }
    }
}

impl fmt::Display for ProjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a project is worked with. Commands are argvs, to be run in its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// What it is.
    pub kind: ProjectKind,
    /// Runs its tests; empty if it is unknown how.
    pub test: Vec<String>,
    pub build: Option<Vec<String>>,
    /// Runs its tests and measures how much of it they reach. It may need a tool that is not installed.
    pub coverage: Option<Vec<String>>,
    /// Globs of its test files.
    pub test_patterns: Vec<String>,
}

impl Project {
    fn new(kind: ProjectKind, test: &[&str], patterns: &[&str]) -> Self {
        Self { kind, test: words(test), build: None, coverage: None, test_patterns: words(patterns) }
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// What a folder is, the most telling first; nothing if it is nothing known. Blocking.
pub fn detect(root: &Path) -> Vec<Project> {
    let Ok(root) = Root::open(root) else { return Vec::new() };
    let folder = ProjectFolder { names: names(root.path()), root };
    let known = [cargo, go, node, python, maven, gradle, cmake, make];
    known.into_iter().filter_map(|look| look(&folder)).collect()
}

/// The commands that run all tests of a folder's projects: the detected ones, and how people usually write them.
pub fn test_commands(projects: &[Project]) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = Vec::new();
    for project in projects.iter().filter(|project| !project.test.is_empty()) {
        let program = project.test.first().map_or("", String::as_str);
        let usual: &[&[&str]] = match project.kind {
            ProjectKind::Cargo => &[&["cargo", "test"], &["cargo", "test", "--workspace"]],
            ProjectKind::Go => &[&["go", "test", "./..."]],
            ProjectKind::Npm | ProjectKind::Pnpm | ProjectKind::Yarn | ProjectKind::Bun if program != "node" => {
                &[&[program, "test"]]
            }
            ProjectKind::Pytest => {
                &[&["pytest"], &["pytest", "-q"], &[program, "-m", "pytest"], &[program, "-m", "pytest", "-q"]]
            }
            ProjectKind::Unittest => &[&[program, "-m", "unittest"], &[program, "-m", "unittest", "discover"]],
            _ => &[],
        };
        all.push(project.test.clone());
        all.extend(usual.iter().map(|usual| words(usual)));
    }
    let mut seen = BTreeSet::new();
    all.retain(|command| seen.insert(command.clone()));
    all
}

/// One line for each, for a prompt.
pub fn describe(projects: &[Project]) -> String {
    if projects.is_empty() {
        return "no known kind of project".to_owned();
    }
    let line = |project: &Project| {
        let mut line = match project.test.as_slice() {
            [] => format!("{}: no known tests", project.kind),
            test => format!("{}: test `{}`", project.kind, join(test)),
        };
        // Coverage is left out: whether its program is installed is known only when it runs.
        line.extend(project.build.iter().map(|argv| format!("; build `{}`", join(argv))));
        line
    };
    projects.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A folder that is looked at.
struct ProjectFolder {
    root: Root,
    names: BTreeSet<String>,
}

impl ProjectFolder {
    fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    fn any(&self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| self.has(name))
    }

    /// The beginning of a file; a link that leads out of the folder is not followed.
    fn text(&self, path: &str) -> Option<String> {
        let opened = self.root.open_file(Path::new(path), &Visibility::default()).ok()?;
        let mut bytes = Vec::new();
        (&opened.file).take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn inner(&self, folder: &str) -> BTreeSet<String> {
        if self.root.is_dir(Path::new(folder), &Visibility::default()) {
            names(&self.root.path().join(folder))
        } else {
            BTreeSet::new()
        }
    }
}

fn names(path: &Path) -> BTreeSet<String> {
    let Ok(entries) = std::fs::read_dir(path) else { return BTreeSet::new() };
    entries.take(NAMES_MAX).filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
}

fn cargo(folder: &ProjectFolder) -> Option<Project> {
    let manifest = folder.has("Cargo.toml").then(|| folder.text("Cargo.toml"))??;
    let is_workspace = manifest.lines().any(|line| line.trim() == "[workspace]");
    let all: &[&str] = if is_workspace { &["--workspace"] } else { &[] };
    // Without it, the first test binary that fails hides the results of the others.
    let test = [&["cargo", "test", "--no-fail-fast"], all].concat();
    let patterns = ["tests/**/*.rs", "**/tests/**/*.rs", "**/tests.rs", "**/*_test.rs", "benches/**/*.rs"];
    Some(Project {
        build: Some(words(&[&["cargo", "build"], all].concat())),
        coverage: Some(words(&[&["cargo", "llvm-cov"], all].concat())),
        ..Project::new(ProjectKind::Cargo, &test, &patterns)
    })
}

fn go(folder: &ProjectFolder) -> Option<Project> {
    folder.any(&["go.mod", "go.work"])?;
    Some(Project {
        build: Some(words(&["go", "build", "./..."])),
        coverage: Some(words(&["go", "test", "-v", "-coverprofile=coverage.out", "./..."])),
        // Without inlining and optimisation, so that tests can replace functions.
        ..Project::new(ProjectKind::Go, &["go", "test", "-v", "-gcflags=all=-N -l", "./..."], &["**/*_test.go"])
    })
}

fn node(folder: &ProjectFolder) -> Option<Project> {
    let package = folder.has("package.json").then(|| folder.text("package.json"))??;
    let package: Value = serde_json::from_str(&package).unwrap_or_default();
    let script = |name: &str| package.pointer(&format!("/scripts/{name}")).and_then(Value::as_str);
    let manager = package.get("packageManager").and_then(Value::as_str).unwrap_or_default();
    let locks = ["pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb"];
    let (kind, program) = match (manager.split('@').next(), folder.any(&locks)) {
        (Some("pnpm"), _) | (_, Some("pnpm-lock.yaml")) => (ProjectKind::Pnpm, "pnpm"),
        (Some("yarn"), _) | (_, Some("yarn.lock")) => (ProjectKind::Yarn, "yarn"),
        (Some("bun"), _) | (_, Some("bun.lock" | "bun.lockb")) => (ProjectKind::Bun, "bun"),
        _ => (ProjectKind::Npm, "npm"),
    };
    // What `npm init` writes is no test.
    let test = script("test").filter(|test| !test.contains("no test specified"));
    let is_test =
        |name: &String| [".test.js", ".test.mjs", ".test.cjs", ".test.ts"].iter().any(|end| name.ends_with(end));
    let argv: &[&str] = match test {
        // `run`, because some managers have a `test` of their own.
        Some(_) => &[program, "run", "test"],
        None if folder.has("test") || folder.names.iter().any(is_test) => &["node", "--test"],
        None => &[],
    };
    let by_node = argv.first() == Some(&"node") || test.is_some_and(|test| test.contains("node --test"));
    let own = ["coverage", "test:coverage"].into_iter().find(|name| script(name).is_some());
    let coverage = match own {
        Some(name) => Some(words(&[program, "run", name])),
        None if by_node => Some(words(&["node", "--test", "--experimental-test-coverage"])),
        None if test.is_some_and(|test| test.contains("jest")) => {
            Some(words(&[program, "run", "test", "--", "--coverage"]))
        }
        None => None,
    };
    let patterns = ["**/*.test.*", "**/*.spec.*", "**/__tests__/**", "test/**", "tests/**"];
    let build = script("build").map(|_| words(&[program, "run", "build"]));
    Some(Project { build, coverage, ..Project::new(kind, argv, &patterns) })
}

fn python(folder: &ProjectFolder) -> Option<Project> {
    let is_test = |name: &&String| name.ends_with(".py") && (name.starts_with("test_") || name.ends_with("_test.py"));
    let marks = ["pyproject.toml", "setup.py", "setup.cfg", "pytest.ini", "tox.ini", "requirements.txt", "conftest.py"];
    let tests =
        ["tests", "test"].into_iter().find(|tests| folder.inner(tests).iter().any(|name| name.ends_with(".py")));
    if folder.any(&marks).is_none() && tests.is_none() && !folder.names.iter().any(|name| is_test(&name)) {
        return None;
    }
    let inner = tests.map(|tests| folder.inner(tests)).unwrap_or_default();
    let python = [".venv/bin/python", "venv/bin/python"];
    let python = python.into_iter().find(|path| folder.root.path().join(path).exists()).unwrap_or("python3");
    let told = marks.iter().filter_map(|name| folder.has(name).then(|| folder.text(name))?);
    let is_told = folder.has("pytest.ini") || folder.has("conftest.py") || inner.contains("conftest.py");
    let samples = inner.iter().filter(is_test).map(|name| format!("{}/{name}", tests.unwrap_or_default()));
    let samples = samples.chain(folder.names.iter().filter(is_test).cloned()).take(SAMPLES_MAX);
    // Tests that are plain functions are pytest's.
    let is_pytest =
        |text: String| text.contains("import pytest") || text.starts_with("def test_") || text.contains("\ndef test_");
    let by_pytest = is_told
        || told.into_iter().any(|text| text.contains("pytest"))
        || samples.filter_map(|path| folder.text(&path)).any(is_pytest);
    let (kind, argv) = match tests {
        _ if by_pytest => (ProjectKind::Pytest, vec![python, "-m", "pytest"]),
        Some(tests) if !inner.contains("__init__.py") => {
            (ProjectKind::Unittest, vec![python, "-m", "unittest", "discover", "-v", "-s", tests])
        }
        _ => (ProjectKind::Unittest, vec![python, "-m", "unittest", "discover", "-v"]),
    };
    Some(Project {
        // It runs the tests of either kind.
        coverage: Some(words(&[python, "-m", "pytest", "--cov=.", "--cov-report=term"])),
        ..Project::new(kind, &argv, &["**/test_*.py", "**/*_test.py", "tests/**", "**/conftest.py"])
    })
}

fn maven(folder: &ProjectFolder) -> Option<Project> {
    folder.any(&["pom.xml"])?;
    let program = if folder.has("mvnw") { "./mvnw" } else { "mvn" };
    let build = Some(words(&[program, "-B", "compile"]));
    Some(Project { build, ..Project::new(ProjectKind::Maven, &[program, "-B", "test"], &["**/src/test/**"]) })
}

fn gradle(folder: &ProjectFolder) -> Option<Project> {
    folder.any(&["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"])?;
    let program = if folder.has("gradlew") { "./gradlew" } else { "gradle" };
    let build = Some(words(&[program, "--no-daemon", "--console=plain", "assemble"]));
    let test = [program, "--no-daemon", "--console=plain", "test"];
    Some(Project { build, ..Project::new(ProjectKind::Gradle, &test, &["**/src/test/**"]) })
}

fn cmake(folder: &ProjectFolder) -> Option<Project> {
    let lists = folder.has("CMakeLists.txt").then(|| folder.text("CMakeLists.txt"))??;
    let has_tests = ["enable_testing", "include(CTest)", "add_test("].iter().any(|word| lists.contains(word));
    let test: &[&str] = if has_tests { &["ctest", "--test-dir", "build", "--output-on-failure"] } else { &[] };
    let is_set_up = folder.inner("build").contains("CMakeCache.txt");
    let build: &[&str] = if is_set_up { &["cmake", "--build", "build"] } else { &["cmake", "-S", ".", "-B", "build"] };
    Some(Project { build: Some(words(build)), ..Project::new(ProjectKind::Cmake, test, &["tests/**", "test/**"]) })
}

fn make(folder: &ProjectFolder) -> Option<Project> {
    let makefile = folder.text(folder.any(&["GNUmakefile", "makefile", "Makefile"])?)?;
    let has = |target: &str| {
        let is_target = |line: &str| {
            line.split_once(':').is_some_and(|(targets, rest)| {
                !rest.starts_with('=') && targets.split_whitespace().any(|one| one == target)
            })
        };
        makefile.lines().filter(|line| !line.starts_with(['\t', '#', '.'])).any(is_target)
    };
    let target = ["test", "check"].into_iter().find(|target| has(target))?;
    let build = ["build", "all"].into_iter().find(|target| has(target));
    let build = build.map(|target| words(&["make", target]));
    Some(Project { build, ..Project::new(ProjectKind::Make, &["make", target], &["tests/**", "test/**"]) })
}
