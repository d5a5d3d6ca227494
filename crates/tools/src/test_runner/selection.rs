//! Which tests: a file, a folder or a part of a name becomes the arguments that the runner takes.
//!
//! Nothing that begins with a dash is passed on, so a choice of tests never becomes an option of the runner. `tool`
//! checks before whether the agent may see what it chooses.

use std::path::Path;

use max_team_core::policy::Visibility;

use super::TestError;
use crate::files::Root;
use crate::project::{Project, ProjectKind};

/// The argv that runs the tests of a project, or some of them.
pub fn command(root: &Path, project: &Project, filter: Option<&str>) -> Result<Vec<String>, TestError> {
    if project.test.is_empty() {
        return Err(TestError::NoTests(project.kind));
    }
    let mut argv = project.test.clone();
    let Some(filter) = filter.map(str::trim).filter(|filter| !filter.is_empty()) else { return Ok(argv) };
    if filter.starts_with('-') || filter.chars().any(char::is_control) {
        return Err(TestError::Filter(format!(
            "`{}` is no test; write a test file, a folder or a part of a test's name",
            crate::text::visible(filter)
        )));
    }
    let chosen = TestSelection::new(root, filter);
    match project.kind {
        ProjectKind::Cargo => argv.extend(cargo(&chosen)),
        ProjectKind::Go => go(&mut argv, &chosen),
        ProjectKind::Pytest => match &chosen {
            TestSelection::Name(name) if !name.contains("::") => argv.extend(["-k".to_owned(), name.clone()]),
            TestSelection::File(text) | TestSelection::Folder(text) | TestSelection::Name(text) => {
                argv.push(text.clone())
            }
        },
        ProjectKind::Unittest => unittest(&mut argv, chosen),
        ProjectKind::Npm | ProjectKind::Pnpm | ProjectKind::Yarn | ProjectKind::Bun => {
            node(&mut argv, project.kind, chosen)
        }
        ProjectKind::Maven => argv.push(format!("-Dtest={}", chosen.stem())),
        ProjectKind::Gradle => argv.extend(["--tests".to_owned(), chosen.stem()]),
        ProjectKind::Cmake => argv.extend(["-R".to_owned(), chosen.stem()]),
        ProjectKind::Make => {
            return Err(TestError::Filter("the tests behind a makefile cannot be chosen; run all of them".to_owned()));
        }
    }
    Ok(argv)
}

/// What is chosen, as a path relative to the root or as a name.
enum TestSelection {
    File(String),
    Folder(String),
    Name(String),
}

impl TestSelection {
    fn new(root: &Path, filter: &str) -> Self {
        let found = Root::open(root).ok().and_then(|root| {
            let place = root.place(filter).ok()?;
            let is_file = root.open_file(place.as_path(), &Visibility::default()).is_ok();
            let is_folder = !is_file && root.is_dir(place.as_path(), &Visibility::default());
            let path = place.to_string();
            if is_file { Some(Self::File(path)) } else { is_folder.then_some(Self::Folder(path)) }
        });
        found.unwrap_or_else(|| Self::Name(filter.to_owned()))
    }

    /// A name for runners that know no paths.
    fn stem(&self) -> String {
        match self {
            Self::Name(name) => name.clone(),
            Self::File(path) | Self::Folder(path) => {
                Path::new(path).file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
            }
        }
    }
}

fn cargo(chosen: &TestSelection) -> Vec<String> {
    let (TestSelection::File(path) | TestSelection::Folder(path)) = chosen else { return vec![chosen.stem()] };
    let mut parts = path.split('/').skip_while(|part| *part != "tests");
    match (parts.next(), parts.next()) {
        // `tests/it/main.rs` and `tests/it.rs` are both the binary `it`.
        (Some(_), Some(binary)) => vec!["--test".to_owned(), binary.trim_end_matches(".rs").to_owned()],
        (Some(_), None) => vec!["--test".to_owned(), "*".to_owned()],
        _ => match chosen.stem().as_str() {
            "lib" => vec!["--lib".to_owned()],
            "main" => vec!["--bins".to_owned()],
            "mod" => vec![parent(path)],
            stem => vec![stem.to_owned()],
        },
    }
}

fn parent(path: &str) -> String {
    let folder = Path::new(path).parent().and_then(Path::file_name);
    folder.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn go(argv: &mut Vec<String>, chosen: &TestSelection) {
    let packages = match chosen {
        TestSelection::Name(name) => {
            // Behind `go test`.
            let at = argv.len().min(2);
            argv.splice(at..at, ["-run".to_owned(), name.clone()]);
            return;
        }
        TestSelection::Folder(path) if path == "." => "./...".to_owned(),
        TestSelection::Folder(path) => format!("./{path}/..."),
        TestSelection::File(path) => match Path::new(path).parent().map(|folder| folder.to_string_lossy().into_owned())
        {
            Some(folder) if !folder.is_empty() => format!("./{folder}"),
            _ => ".".to_owned(),
        },
    };
    argv.retain(|word| word != "./...");
    argv.push(packages);
}

fn unittest(argv: &mut Vec<String>, chosen: TestSelection) {
    // The interpreter, `-m`, `unittest`; what follows is replaced.
    match chosen {
        TestSelection::Name(name) => argv.extend(["-k".to_owned(), name]),
        TestSelection::File(path) => {
            argv.truncate(3);
            argv.extend(["-v".to_owned(), path]);
        }
        TestSelection::Folder(path) => {
            argv.truncate(3);
            argv.extend(["discover", "-v", "-s"].map(str::to_owned));
            argv.push(path);
        }
    }
}

fn node(argv: &mut Vec<String>, kind: ProjectKind, chosen: TestSelection) {
    let is_node = argv.first().is_some_and(|program| program == "node");
    match chosen {
        TestSelection::Name(name) if is_node => argv.push(format!("--test-name-pattern={name}")),
        TestSelection::Name(text) | TestSelection::File(text) | TestSelection::Folder(text) => {
            // Others pass on what follows, and would pass on the dashes, too.
            if kind == ProjectKind::Npm && !is_node {
                argv.push("--".to_owned());
            }
            argv.push(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::join;
    use crate::project::detect;

    #[test]
    fn choices_become_arguments() {
        let table = [
            ("Cargo.toml", "[package]", "adds", "cargo test --no-fail-fast adds"),
            ("Cargo.toml", "[package]", "tests/it.rs", "cargo test --no-fail-fast --test it"),
            ("Cargo.toml", "[package]", "tests/big/main.rs", "cargo test --no-fail-fast --test big"),
            ("Cargo.toml", "[package]", "src/lib.rs", "cargo test --no-fail-fast --lib"),
            ("Cargo.toml", "[package]", "src/a/mod.rs", "cargo test --no-fail-fast a"),
            ("Cargo.toml", "[package]", "src/b.rs", "cargo test --no-fail-fast b"),
            ("go.mod", "", "TestAdd", "go test -run TestAdd -v '-gcflags=all=-N -l' ./..."),
            ("go.mod", "", "src/b.rs", "go test -v '-gcflags=all=-N -l' ./src"),
            ("go.mod", "", "src", "go test -v '-gcflags=all=-N -l' ./src/..."),
            ("go.mod", "", "top", "go test -v '-gcflags=all=-N -l' ."),
            ("pytest.ini", "", "adds", "python3 -m pytest -k adds"),
            ("pytest.ini", "", "./src/b.rs", "python3 -m pytest src/b.rs"),
            ("pytest.ini", "", "t.py::test_a", "python3 -m pytest t.py::test_a"),
            ("setup.py", "", "adds", "python3 -m unittest discover -v -k adds"),
            ("setup.py", "", "src/b.rs", "python3 -m unittest -v src/b.rs"),
            ("setup.py", "", "src", "python3 -m unittest discover -v -s src"),
            ("package.json", r#"{"scripts":{"test":"jest"}}"#, "a b", "npm run test -- 'a b'"),
            ("package.json", r#"{"scripts":{"test":"x"},"packageManager":"yarn@4"}"#, "a", "yarn run test a"),
            ("pom.xml", "", "AppTest", "mvn -B test -Dtest=AppTest"),
            ("build.gradle", "", "AppTest", "gradle --no-daemon --console=plain test --tests AppTest"),
        ];
        for (file, content, filter, want) in table {
            let dir = tempfile::TempDir::new().unwrap();
            for (path, content) in [
                (file, content),
                ("tests/it.rs", ""),
                ("tests/big/main.rs", ""),
                ("src/lib.rs", ""),
                ("src/a/mod.rs", ""),
                ("src/b.rs", ""),
                ("top", ""),
            ] {
                std::fs::create_dir_all(dir.path().join(path).parent().unwrap()).unwrap();
                std::fs::write(dir.path().join(path), content).unwrap();
            }
            let project = detect(dir.path()).remove(0);
            assert_eq!(join(&command(dir.path(), &project, Some(filter)).unwrap()), want, "{file} {filter}");
            assert_eq!(command(dir.path(), &project, Some(" ")).unwrap(), project.test);
            for odd in ["--config=evil", "a\nb"] {
                assert!(matches!(command(dir.path(), &project, Some(odd)), Err(TestError::Filter(_))));
            }
        }
    }
}
