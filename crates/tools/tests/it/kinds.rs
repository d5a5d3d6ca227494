//! What kind of project a folder is, by the files in it.

use max_team_tools::command::join;
use max_team_tools::project::{ProjectKind, describe, detect, test_commands};

use crate::project::Project;

/// Files with their content.
type Files = &'static [(&'static str, &'static str)];

#[test]
fn projects_are_known_by_their_files() {
    let table: &[(Files, &[(ProjectKind, &str)])] = &[
        (&[], &[]),
        (&[("README.md", "# x\n")], &[]),
        (&[("Cargo.toml", "[package]\n")], &[(ProjectKind::Cargo, "cargo test --no-fail-fast")]),
        (&[("Cargo.toml", "[workspace]\n")], &[(ProjectKind::Cargo, "cargo test --no-fail-fast --workspace")]),
        (&[("go.mod", "module x\n")], &[(ProjectKind::Go, "go test -v '-gcflags=all=-N -l' ./...")]),
        (&[("package.json", r#"{"scripts":{"test":"jest"}}"#)], &[(ProjectKind::Npm, "npm run test")]),
        (
            &[("package.json", r#"{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}"#)],
            &[(ProjectKind::Npm, "")],
        ),
        (&[("package.json", "{}"), ("test/a.js", "")], &[(ProjectKind::Npm, "node --test")]),
        (&[("package.json", "{}"), ("a.test.mjs", "")], &[(ProjectKind::Npm, "node --test")]),
        (&[("package.json", "not json")], &[(ProjectKind::Npm, "")]),
        (
            &[("package.json", r#"{"scripts":{"test":"vitest"}}"#), ("pnpm-lock.yaml", "")],
            &[(ProjectKind::Pnpm, "pnpm run test")],
        ),
        (
            &[("package.json", r#"{"scripts":{"test":"x"},"packageManager":"yarn@4.1.0"}"#)],
            &[(ProjectKind::Yarn, "yarn run test")],
        ),
        (&[("package.json", r#"{"scripts":{"test":"x"}}"#), ("bun.lockb", "")], &[(ProjectKind::Bun, "bun run test")]),
        (&[("pyproject.toml", "[tool.pytest.ini_options]\n")], &[(ProjectKind::Pytest, "python3 -m pytest")]),
        (&[("pytest.ini", "")], &[(ProjectKind::Pytest, "python3 -m pytest")]),
        (&[("tests/test_a.py", "def test_a():\n    pass\n")], &[(ProjectKind::Pytest, "python3 -m pytest")]),
        (
            &[("tests/test_a.py", "import unittest\n")],
            &[(ProjectKind::Unittest, "python3 -m unittest discover -v -s tests")],
        ),
        (
            &[("tests/test_a.py", "import unittest\n"), ("tests/__init__.py", "")],
            &[(ProjectKind::Unittest, "python3 -m unittest discover -v")],
        ),
        (&[("test_a.py", "import unittest\n")], &[(ProjectKind::Unittest, "python3 -m unittest discover -v")]),
        (
            &[("setup.py", ""), (".venv/bin/python", "")],
            &[(ProjectKind::Unittest, ".venv/bin/python -m unittest discover -v")],
        ),
        (&[("pom.xml", ""), ("mvnw", "")], &[(ProjectKind::Maven, "./mvnw -B test")]),
        (&[("build.gradle.kts", "")], &[(ProjectKind::Gradle, "gradle --no-daemon --console=plain test")]),
        (
            &[("CMakeLists.txt", "enable_testing()\n")],
            &[(ProjectKind::Cmake, "ctest --test-dir build --output-on-failure")],
        ),
        (&[("CMakeLists.txt", "project(x)\n")], &[(ProjectKind::Cmake, "")]),
        (&[("Makefile", "all: x\n\ttest: no\nTEST := 1\ntest :=2\n# test: no\n")], &[]),
        (&[("Makefile", ".PHONY: test\nlint test: x\n\ttrue\n")], &[(ProjectKind::Make, "make test")]),
        (
            &[("go.mod", ""), ("Makefile", "check:\n")],
            &[(ProjectKind::Go, "go test -v '-gcflags=all=-N -l' ./..."), (ProjectKind::Make, "make check")],
        ),
    ];
    for (files, want) in table {
        let project = Project::new();
        for (path, content) in *files {
            project.write(path, content);
        }
        let found = detect(&project.inside(""));
        let found: Vec<(ProjectKind, String)> = found.iter().map(|found| (found.kind, join(&found.test))).collect();
        let want: Vec<(ProjectKind, String)> = want.iter().map(|(kind, test)| (*kind, (*test).to_owned())).collect();
        assert_eq!(found, want, "{files:?}");
    }
}

#[test]
fn coverage_is_the_projects_own_where_it_has_one() {
    let table = [
        (r#"{"scripts":{"test":"jest","coverage":"jest --coverage"}}"#, Some("npm run coverage")),
        (r#"{"scripts":{"test":"node --test"}}"#, Some("node --test --experimental-test-coverage")),
        (r#"{"scripts":{"test":"jest"}}"#, Some("npm run test -- --coverage")),
        (r#"{"scripts":{"test":"mocha"}}"#, None),
    ];
    for (package, want) in table {
        let project = Project::new();
        project.write("package.json", package);
        let found = detect(&project.inside(""));
        assert_eq!(found[0].coverage.as_deref().map(join).as_deref(), want, "{package}");
    }
}

#[test]
fn tests_are_known_by_how_people_write_them() {
    type Files<'a> = &'a [(&'a str, &'a str)];
    let table: [(Files<'_>, &[&str]); 4] = [
        (&[("Cargo.toml", "[package]\n")], &["cargo test --no-fail-fast", "cargo test", "cargo test --workspace"]),
        (&[("package.json", r#"{"scripts":{"test":"jest"}}"#)], &["npm run test", "npm test"]),
        (
            &[("test_a.py", "def test_a():\n    pass\n")],
            &["python3 -m pytest", "pytest", "pytest -q", "python3 -m pytest -q"],
        ),
        (&[("README.md", "x")], &[]),
    ];
    for (files, want) in table {
        let project = Project::new();
        files.iter().for_each(|(path, content)| project.write(path, content));
        let found: Vec<String> = test_commands(&detect(&project.inside(""))).iter().map(|argv| join(argv)).collect();
        assert_eq!(found, want, "{files:?}");
    }
}

#[test]
fn a_prompt_is_told_in_lines() {
    let project = Project::new();
    project.write("go.mod", "module x\n");
    project.write("Makefile", "test:\n\ngo: x\nbuild:\n");
    assert_eq!(
        describe(&detect(&project.inside(""))),
        "go: test `go test -v '-gcflags=all=-N -l' ./...`; build `go build ./...`\n\
         make: test `make test`; build `make build`"
    );
    assert_eq!(describe(&[]), "no known kind of project");
    assert!(detect(&project.inside("none")).is_empty());
}

#[test]
fn files_elsewhere_are_not_read() {
    let project = Project::new();
    std::fs::write(project.outside("package.json"), r#"{"scripts":{"test":"x"}}"#).unwrap();
    std::os::unix::fs::symlink(project.outside("package.json"), project.inside("package.json")).unwrap();
    assert!(detect(&project.inside("")).is_empty());
}
