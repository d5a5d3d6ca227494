//! Tests of projects as they are run: real cargo, real python, real node, and runners of our own making.

use std::fs;
use std::path::Path;
use std::time::Duration;

use max_team_core::policy::ActionKind;
use max_team_tools::ToolError;
use max_team_tools::command::{CommandError, CommandSandbox, EndReason};
use max_team_tools::project::{Project as Found, ProjectKind, detect};
use max_team_tools::test_runner::{TestCounts, TestError, TestReport};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::project::Project;

const LONG: Duration = Duration::from_secs(300);

fn none() -> CancellationToken {
    CancellationToken::new()
}

fn run(
    root: &Path,
    project: &Found,
    filter: Option<&str>,
    timeout: Duration,
    cancel: &CancellationToken,
) -> Result<TestReport, TestError> {
    max_team_tools::test_runner::run(root, project, filter, timeout, &CommandSandbox::around(root), cancel)
}

fn coverage(
    root: &Path,
    project: &Found,
    timeout: Duration,
    cancel: &CancellationToken,
) -> Result<TestReport, TestError> {
    max_team_tools::test_runner::coverage(root, project, timeout, &CommandSandbox::around(root), cancel)
}

fn argv(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn found(project: &Project) -> Found {
    detect(&project.inside("")).remove(0)
}

/// Whether a program is here; if not, the test that needs it says so and ends.
fn is_here(program: &str) -> bool {
    let here =
        std::process::Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !here {
        skipped(&format!("there is no `{program}` here"));
    }
    here
}

#[expect(clippy::print_stderr, reason = "a test that was not run must be seen")]
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

/// A Python project whose interpreter is a script of ours.
fn scripted(script: &str) -> Project {
    let project = Project::new();
    project.write("pytest.ini", "");
    // Sourced by a shell that is there already, so that nothing runs a file which was just written.
    project.write("script.sh", script);
    fs::create_dir_all(project.inside(".venv/bin")).unwrap();
    std::os::unix::fs::symlink("/bin/sh", project.inside(".venv/bin/python")).unwrap();
    project
}

fn by_script(project: &Project, timeout: Duration) -> TestReport {
    let found = Found { test: argv(&[".venv/bin/python", "script.sh"]), ..found(project) };
    run(&project.inside(""), &found, None, timeout, &none()).unwrap()
}

#[test]
fn a_real_cargo_project_is_told_by_its_exit_code() {
    let project = Project::new();
    project.write("Cargo.toml", "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n");
    project.write(
        "src/lib.rs",
        "/// ```\n/// assert_eq!(tiny::one(), 1);\n/// ```\npub fn one() -> i32 { 1 }\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn passes() { assert_eq!(super::one(), 1); }\n    #[test]\n    #[ignore]\n    fn later() {}\n}\n",
    );
    project.write("tests/it.rs", "#[test]\nfn fails() { assert_eq!(tiny::one(), 2); }\n");
    let mut tiny = found(&project);
    assert_eq!(tiny.kind, ProjectKind::Cargo);
    // The folder that builds go to may be set from outside; this one goes away with the project.
    tiny.test.extend(argv(&["--offline", "--target-dir", "target"]));
    let report = run(&project.inside(""), &tiny, None, LONG, &none()).unwrap();
    assert_eq!((report.ok, report.ended, report.counts), (false, EndReason::Exited, None), "{}", report.output);
    assert_eq!(report.command, "cargo test --no-fail-fast --workspace --offline --target-dir target");
    assert!(report.output.contains("assertion `left == right` failed") && report.coverage.is_none());

    let some = run(&project.inside(""), &tiny, Some("passes"), LONG, &none()).unwrap();
    assert!(some.ok && some.output.contains("1 passed"), "{}", some.output);
    project.write("src/lib.rs", "this is no Rust\n");
    let broken = run(&project.inside(""), &tiny, None, LONG, &none()).unwrap();
    assert!(!broken.ok, "{}", broken.output);
}

#[test]
fn a_real_unittest_project_is_told_by_its_exit_code() {
    if !is_here("python3") {
        return;
    }
    let project = Project::new();
    project.write(
        "tests/test_a.py",
        "import unittest\n\nclass A(unittest.TestCase):\n    def test_ok(self):\n        pass\n    def test_bad(self):\n        self.assertEqual(1, 2)\n    @unittest.skip('later')\n    def test_later(self):\n        pass\n",
    );
    let report = run(&project.inside(""), &found(&project), None, LONG, &none()).unwrap();
    assert_eq!((report.ok, report.counts), (false, None), "{}", report.output);
    assert_eq!(project.names("tests"), ["test_a.py"], "nothing is left behind");

    let told = project.call("run_test", json!({ "filter": "test_ok" })).unwrap();
    assert!(told.starts_with("ok in ") && told.contains("this runner writes no report"), "{told}");
    let told = project.call("run_test", json!({ "path": "tests/test_a.py" })).unwrap();
    assert!(told.starts_with("FAILED in ") && told.contains("FAILED (failures=1, skipped=1)"), "{told}");
}

#[test]
fn a_real_node_project_is_counted() {
    if !is_here("node") {
        return;
    }
    let project = Project::new();
    project.write("package.json", "{}");
    project.write(
        "a.test.mjs",
        "import test from 'node:test';\nimport assert from 'node:assert';\ntest('adds', () => {});\ntest('fails', () => { assert.equal(1, 2); });\n",
    );
    let report = run(&project.inside(""), &found(&project), None, LONG, &none()).unwrap();
    let counts = TestCounts { passed: 1, failed: 1, skipped: 0, failures: vec!["fails".to_owned()] };
    assert_eq!((report.counts, report.ok), (Some(counts), false), "{}", report.output);
    assert!(report.output.contains("✖ fails"), "{}", report.output);
    match coverage(&project.inside(""), &found(&project), LONG, &none()) {
        Ok(report) => assert!(report.coverage.is_some_and(|percent| percent > 0.0), "{}", report.output),
        Err(TestError::Unavailable(words)) => assert!(words.contains("node"), "{words}"),
        Err(other) => panic!("{other}"),
    }
}

/// Writes its first argument of this name, as a runner would.
fn writes(option: &str, text: &str) -> String {
    format!("for word in \"$@\"; do case $word in {option}*) echo '{text}' > ${{word#{option}}};; esac; done\n")
}

#[test]
fn a_report_counts_however_much_is_printed() {
    let report = "<testsuites><testcase name=\"a\"/><testcase name=\"b\"><failure/></testcase></testsuites>";
    let print = "head -c 5000000 /dev/zero | tr '\\0' '\\n'; echo '9 passed in 0.1s'; exit 1";
    let report = by_script(&scripted(&(writes("--junitxml=", report) + print)), LONG);
    let counts = TestCounts { passed: 1, failed: 1, skipped: 0, failures: vec!["b".to_owned()] };
    assert_eq!((report.counts, report.ok), (Some(counts), false));
    assert!(report.output.len() < 70_000 && report.output.contains("bytes cut"));
}

#[test]
fn a_run_without_end_is_ended_and_says_so() {
    let project = scripted("echo '1 passed in 0.1s'; sleep 100");
    let report = by_script(&project, Duration::from_millis(300));
    assert_eq!((report.ended, report.ok, report.counts), (EndReason::TimedOut, false, None));
}

#[test]
fn tests_that_cannot_run_say_why() {
    let project = Project::new();
    project.write("package.json", "{}");
    let err = run(&project.inside(""), &found(&project), None, LONG, &none()).unwrap_err();
    assert!(matches!(err, TestError::NoTests(ProjectKind::Npm)), "{err}");
    let missing = Found { test: argv(&["no-such-runner"]), ..found(&project) };
    let err = run(&project.inside(""), &missing, None, LONG, &none()).unwrap_err();
    assert!(matches!(&err, TestError::Command(CommandError::NotFound(name)) if name == "no-such-runner"), "{err}");
    let err = coverage(&project.inside(""), &found(&project), LONG, &none()).unwrap_err();
    assert!(matches!(&err, TestError::Unavailable(words) if words.contains("npm")), "{err}");
    let empty = Project::new();
    for tool in ["run_test", "coverage_report"] {
        let told = empty.refused(tool, json!({}));
        assert!(told.contains("no known kind of project"), "{told}");
    }
}

#[test]
fn coverage_is_measured_or_refused_but_never_made_up() {
    let measured = writes("--cov-report=lcov:", "SF:a.py\nLF:4\nLH:3");
    let failed = measured.clone() + "exit 1";
    let table = [
        ("echo 'No module named pytest' >&2; exit 1", Err("install pytest pytest-cov")),
        ("echo 'error: unrecognized arguments: --cov' >&2; exit 4", Err("install pytest-cov")),
        (&measured, Ok(Some(75.0))),
        (&failed, Ok(Some(75.0))),
        ("echo 'TOTAL   12   3   75%'", Ok(None)),
    ];
    for (script, want) in table {
        let project = scripted(script);
        let found = Found { coverage: Some(argv(&[".venv/bin/python", "script.sh"])), ..found(&project) };
        match (coverage(&project.inside(""), &found, LONG, &none()), want) {
            (Ok(report), Ok(percent)) => assert_eq!(report.coverage, percent, "{script}"),
            (Err(TestError::Unavailable(words)), Err(part)) => assert!(words.contains(part), "{words}"),
            (got, _) => panic!("{script}: {got:?}"),
        }
    }
}

#[test]
fn the_gate_sees_the_exact_line() {
    let project = Project::new();
    project.write("Cargo.toml", "[package]\n");
    project.write("web/package.json", r#"{"scripts":{"test":"jest","coverage":"jest --coverage"}}"#);
    project.write("tests/it.rs", "");
    project.write("Makefile", "test:\n\ttrue\n");
    let table = [
        ("run_test", json!({}), "cargo test --no-fail-fast", ""),
        ("run_test", json!({ "filter": "a b" }), "cargo test --no-fail-fast 'a b'", ""),
        ("run_test", json!({ "path": "tests/it.rs" }), "cargo test --no-fail-fast --test it", ""),
        ("run_test", json!({ "kind": "make" }), "make test", ""),
        ("run_test", json!({ "path": "web", "filter": "x" }), "npm run test -- x", " (in `web`)"),
        ("coverage_report", json!({}), "cargo llvm-cov", ""),
        ("coverage_report", json!({ "path": "web" }), "npm run coverage", " (in `web`)"),
    ];
    for (tool, input, line, place) in table {
        let action = project.action(tool, &input).unwrap();
        assert_eq!((action.kind, action.target.as_str()), (ActionKind::Execute, line), "{input}");
        assert_eq!(action.preview, format!("{line}{place}"));
    }
    for (input, want) in [
        (json!({ "kind": "go" }), "is no `go` project; it is `cargo`, `make`"),
        (json!({ "filter": "--config=x" }), "is no test"),
        (json!({ "path": "none.rs" }), "does not exist"),
        (json!({ "path": "../out" }), "outside"),
        (json!({ "path": "tests/it.rs", "filter": "x" }), "not both"),
        (json!({ "kind": "make", "filter": "x" }), "cannot be chosen"),
    ] {
        let told = project.refused("run_test", input);
        assert!(told.contains(want), "{told}");
    }
    let input = json!({});
    let intent = project.action("run_test", &input).unwrap();
    fs::remove_file(project.inside("Cargo.toml")).unwrap();
    let err = project.run("run_test", &input, &intent, false).unwrap_err();
    assert!(matches!(&err, ToolError::Correctable(words) if words.contains("nothing was run")), "{err}");
}

#[test]
fn a_result_begins_with_how_it_went() {
    let project = Project::new();
    project.write("Makefile", "test:\n\t@printf 'a\\033[31mb\\n'\n");
    if !is_here("make") {
        return;
    }
    let told = project.call("run_test", json!({})).unwrap();
    assert!(told.starts_with("ok in ") && told.ends_with("output:\nab\n"), "{told}");
    project.write("Makefile", "test:\n\t@false\n");
    let told = project.call("run_test", json!({})).unwrap();
    assert!(told.starts_with("FAILED in "), "{told}");
}

#[test]
fn a_real_pytest_project_is_counted_and_measured_file_by_file() {
    let has_pytest = |python: &&str| {
        let asked = std::process::Command::new(python).args(["-c", "import pytest"]).output();
        asked.is_ok_and(|output| output.status.success())
    };
    let Some(python) = ["/usr/bin/python3", "/usr/local/bin/python3"].into_iter().find(has_pytest) else {
        return skipped("no Python here has pytest; install Debian's package `python3-pytest`");
    };
    let mut project = Project::new();
    fs::create_dir_all(project.inside(".venv/bin")).unwrap();
    std::os::unix::fs::symlink(python, project.inside(".venv/bin/python")).unwrap();
    project.cx.outputs = Some(std::sync::Arc::new(max_team_tools::OutputStore::new(project.outside("store/a"))));
    project.write("app/__init__.py", "");
    project.write("app/used.py", "def one():\n    return 1\n");
    project.write("app/half.py", "def two():\n    return 2\n\ndef three():\n    return 3\n");
    project.write(
        "tests/test_a.py",
        "import pytest\nfrom app import half, used\n\ndef test_one():\n    assert used.one() == 1 and half.two() == 2\n\n\
         @pytest.mark.skip\ndef test_later():\n    pass\n\n@pytest.mark.parametrize('n', [1, 2])\ndef test_many(n):\n    assert n == 1\n\n\
         def test_loud():\n    print('word ' * 50_000)\n    assert False\n",
    );
    let told = project.call("run_test", json!({})).unwrap();
    assert!(told.starts_with("FAILED: 2 passed, 2 failed, 1 skipped"), "{told}");
    assert!(told.contains("- tests/test_a.py::test_many[2]") || told.contains("test_many[2]"), "{told}");
    // What does not fit is read on.
    let path = told.split('`').find(|word| word.starts_with("@output/")).unwrap();
    let inner = project.call("search_code", json!({ "path": path, "pattern": "short test summary" })).unwrap();
    assert!(inner.contains("[1 match in 1 file]"), "{inner}");

    match project.call("coverage_report", json!({})) {
        Ok(told) => {
            assert!(told.starts_with("coverage: ") && told.contains("%"), "{told}");
            assert!(told.contains("    75 % app/half.py\n") && told.contains("   100 % app/used.py\n"), "{told}");
        }
        Err(err) => assert!(err.to_string().contains("pytest-cov is not installed"), "{err}"),
    }
}
