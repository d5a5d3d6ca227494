//! The same tools on a machine that has Landlock alone. Each test runs itself again, in a process that uses nothing else.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use max_team_core::agent::Constraints;
use max_team_core::policy::rule::{Anchors, List, Origin, RuleScope};
use max_team_core::policy::{CommandReach, Mode, Permissions, Rule, Rules, Verdict, judge};
use max_team_tools::command::{Engine, engine, probe};
use serde_json::{Value, json};

use super::ordinary::{OLD_SECRET, ORDINARY, Project, SECRET, coder, tests};

const ENGINE: &str = "MAX_TEAM_SANDBOX";

/// Whether this process has Landlock alone. If not, the test is run in one that has.
fn is_alone(test: &str) -> bool {
    if std::env::var_os(ENGINE).as_deref() == Some(OsStr::new("landlock")) {
        return engine() == Ok(Engine::Landlock);
    }
    if probe().landlock.is_err() {
        return false;
    }
    let again = Command::new(std::env::current_exe().unwrap()).args([test, "--exact"]).env(ENGINE, "landlock").output();
    let ran = again.unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    false
}

fn rules<'a>(project: &'a Project, constraints: &'a Constraints, tests: &'a [Vec<String>]) -> Rules<'a> {
    let (sandboxed, unshielded, permissions) = (true, true, &project.permissions);
    Rules { sandboxed, unshielded, permissions, tests, ..Rules::new(Mode::Default, constraints) }
}

#[test]
fn ordinary_lines_run_and_change_nothing() {
    if !is_alone("landlock::ordinary_lines_run_and_change_nothing") {
        return;
    }
    let (coder, tests) = (coder(), tests());
    let project = Project::new(&coder);
    let mut wrong = Vec::new();
    for (line, [want, ..]) in ORDINARY {
        let input = json!({ "command": line });
        let judged = judge(&rules(&project, &coder, &tests), "run_shell", &project.action(&input));
        let told = match (judged.verdict, judged.reach) {
            (Verdict::Allow, CommandReach::ReadOnly) => "looks",
            (Verdict::Allow, CommandReach::Temporary | CommandReach::BuildFolders) => "free",
            (Verdict::Ask, _) if judged.rule.contains("can also change protected files") => "asks",
            _ => "wrong",
        };
        if told != want {
            wrong.push((line, told, judged.rule.clone()));
        }
        if judged.verdict == Verdict::Allow {
            let before = project.tree();
            let said = project.run(input, &judged);
            assert!(said.starts_with("exit code ") || said.contains("was not found"), "{line}: {said}");
            assert!(!said.contains(SECRET) && !said.contains(OLD_SECRET), "{line}: {said}");
            assert_eq!(project.tree(), before, "{line}: {said}");
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The property of `ordinary`, on this machine.
#[test]
fn unasked_lines_change_read_and_reach_nothing() {
    is_alone("ordinary::an_unasked_line_changes_reads_and_reaches_nothing");
}

#[test]
fn code_that_runs_unasked_writes_its_temporary_folder_alone() {
    if !is_alone("landlock::code_that_runs_unasked_writes_its_temporary_folder_alone") {
        return;
    }
    let project = Project::new(&coder());
    let root = project.cx.root.path().to_owned();
    let run = |code: &str| {
        let line = format!("python3 -c '{code}'");
        project.call("run_shell", json!({ "command": line }), CommandReach::ReadOnly)
    };
    let said =
        run("import os; p = os.environ[\"TMPDIR\"] + \"/x\"; open(p, \"w\").write(\"a\"); print(open(p).read())");
    assert!(said.starts_with("exit code 0") && said.contains("read-only, no network, no `.git`\na"), "{said}");
    let mode = || fs::metadata(root.join("run.sh")).unwrap().permissions().mode();
    let (before, tree) = (mode(), project.tree());
    for code in [
        "import os; os.chmod(\"run.sh\", 0o777)",
        "import os; os.fchmod(os.open(\"run.sh\", os.O_RDONLY), 0o777)",
        "import os; os.utime(\"run.sh\", (1, 1))",
        "import os; os.setxattr(\"run.sh\", \"user.a\", b\"b\")",
        "import os; os.rename(\"run.sh\", \"gone.sh\")",
        "open(\"/tmp/not-mine\", \"w\")",
        "import socket; socket.socket(socket.AF_UNIX)",
    ] {
        let said = run(code);
        assert!(said.starts_with("exit code 1") && said.contains("Error"), "{code}: {said}");
        assert!(said.contains("can change nothing but files in `$TMPDIR`"), "{code}: {said}");
    }
    let said = run("import os; os.link(\"run.sh\", os.environ[\"TMPDIR\"] + \"/x\")");
    assert!(said.contains("OSError"), "a second name would be writable: {said}");
    assert_eq!((mode(), project.tree()), (before, tree));
    let said = run("import urllib.request; urllib.request.urlopen(\"http://packages.example.org\")");
    assert!(said.contains("[no network: commands have none on this machine"), "{said}");
}

#[test]
fn a_line_that_writes_runs_by_a_rule_and_nothing_is_protected_then() {
    if !is_alone("landlock::a_line_that_writes_runs_by_a_rule_and_nothing_is_protected_then") {
        return;
    }
    let coder = coder();
    let mut project = Project::new(&coder);
    let input = json!({ "command": "cp app.py AGENTS.md" });
    let judged = judge(&rules(&project, &coder, &[]), "run_shell", &project.action(&input));
    assert_eq!(judged.verdict, Verdict::Ask, "{}", judged.rule);
    let root = project.permissions.root.clone();
    let origin = Origin { scope: RuleScope::Flags, file: "--allowed-tools".into(), line: 0 };
    let anchors = Anchors { root: &root, base: &root, home: "/" };
    let line = "for f in new; do cp app.py $f; done";
    let rule = Rule::new(List::Allow, &format!("Bash({line})"), origin, &anchors);
    project.permissions = Permissions { root: root.clone(), rules: vec![rule], ..Permissions::default() };
    let input = json!({ "command": line, "writes": true });
    let judged = judge(&rules(&project, &coder, &[]), "run_shell", &project.action(&input));
    assert_eq!((judged.verdict, judged.reach), (Verdict::Allow, CommandReach::Unshielded), "{}", judged.rule);
    let said = project.run(input, &judged);
    assert!(
        said.starts_with("exit code 0") && said.contains("protected files were not protected, no network"),
        "{said}"
    );
    assert!(project.cx.root.path().join("new").exists());
    // The sandbox itself refuses a command that was not allowed so.
    let said = project.call("run_shell", json!({ "command": "ls" }), CommandReach::Project);
    assert!(said.contains("Landlock alone cannot protect"), "{said}");
}

/// The project's tests, as `run_test` runs them here.
fn tested(project: &Project, input: &Value) -> String {
    project.call("run_test", input.clone(), CommandReach::BuildFolders)
}

#[test]
fn tests_write_the_build_folders_that_exist() {
    if !is_alone("landlock::tests_write_the_build_folders_that_exist") {
        return;
    }
    // Cargo looks for its settings in every folder above.
    let project = Project::in_folder(tempfile::tempdir().unwrap(), &Constraints::default());
    let root = project.cx.root.path().to_owned();
    let write = |name: &str, text: &str| {
        fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        fs::write(root.join(name), text).unwrap();
    };
    write("Cargo.toml", "[package]\nname = \"one\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n");
    let head = "# This file is automatically @generated by Cargo.\n# It is not intended for manual editing.\n";
    write("Cargo.lock", &format!("{head}version = 4\n\n[[package]]\nname = \"one\"\nversion = \"0.1.0\"\n"));
    let test = "#[test]\nfn writes() {\n    assert!(std::fs::write(\"src/planted\", \"\").is_err());\n}\n";
    write("src/lib.rs", test);
    let cargo = json!({ "kind": "cargo" });
    let before = project.tree();
    let said = tested(&project, &cargo);
    assert!(said.contains("1 passed") || said.contains("passed: 1"), "{said}");
    assert_eq!(project.tree(), before, "without a build folder nothing is written");
    fs::create_dir(root.join("target")).unwrap();
    let said = tested(&project, &cargo);
    assert!(said.contains("1 passed") || said.contains("passed: 1"), "{said}");
    assert!(root.join("target/debug").is_dir(), "{said}");
    fs::remove_dir_all(root.join("target")).unwrap();
    assert_eq!(project.tree(), before);
    write("package.json", "{\"name\": \"one\", \"scripts\": {\"test\": \"node test.js\"}}");
    write("test.js", "require('fs').writeFileSync('node_modules/.cache/x', 'made'); console.log('fine')");
    write("node_modules/.cache/old", "");
    if Command::new("npm").arg("--version").output().is_ok_and(|ran| ran.status.success()) {
        let said = tested(&project, &json!({ "kind": "npm" }));
        assert!(root.join("node_modules/.cache/x").exists(), "{said}");
    }
}
