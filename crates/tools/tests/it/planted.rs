//! What a command plants: repositories and files that run by themselves or configure agents, at every depth. None of it is left
//! for the user's own git to run, and nothing of the user's is moved.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use max_team_testkit::planting::{Planting, folder_given, soon, start_test};
use max_team_tools::command::{CommandError, CommandOutput, CommandSandbox, approve_file, run};
use max_team_tools::{OutputStore, Registry, Root, ToolContext};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

struct Project {
    home: TempDir,
    planting: Planting,
    cx: ToolContext,
    tools: Registry,
}

impl Project {
    fn new() -> Self {
        // Not in /tmp, which is another one inside the sandbox.
        let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let planting = Planting::new(home.path().canonicalize().unwrap().join("project"));
        let cx = ToolContext::new(std::sync::Arc::new(Root::open(planting.root()).unwrap()));
        let store = Some(std::sync::Arc::new(OutputStore::new(home.path().join("store"))));
        Self { cx: ToolContext { outputs: store, ..cx }, home, planting, tools: Registry::builtin() }
    }

    fn root(&self) -> &Path {
        self.planting.root()
    }

    fn said(&self, tool: &str, input: Value) -> String {
        let action = self.tools.prepare(&self.cx, tool, &input).unwrap().action;
        let output = self.tools.run(&self.cx, tool, input, &action, false).unwrap();
        output.content.iter().map(|part| format!("{part:?}")).collect()
    }
}

fn plant(root: &Path) -> (CommandSandbox, Result<CommandOutput, CommandError>) {
    let argv = ["sh", "plant.sh"].map(str::to_owned);
    let sandbox = CommandSandbox::around(root);
    let ran = run(&argv, root, Duration::from_secs(60), Some(&sandbox), &CancellationToken::new());
    (sandbox, ran)
}

#[test]
fn nothing_that_a_command_plants_is_left() {
    let project = Project::new();
    let told = project.said("run_shell", json!({ "command": "sh plant.sh" }));
    assert_eq!(project.planting.planted(), Vec::<String>::new(), "{told}");
    for name in ["a/b/c/.envrc.untrusted-1", "a/new/.git.untrusted-1", "a/b/bare/HEAD.untrusted-1"] {
        assert!(project.planting.has(name), "{name}");
    }
    assert!(told.contains("more such files were moved away"), "{told}");
    project.planting.use_project();
}

#[test]
fn nothing_that_a_test_or_a_check_plants_is_left() {
    let project = Project::new();
    fs::write(project.root().join("Makefile"), "test:\n\tsh plant.sh\n").unwrap();
    let told = project.said("run_test", json!({}));
    assert_eq!(project.planting.planted(), Vec::<String>::new(), "{told}");
    let (sandbox, over) = plant(project.root());
    assert_eq!(project.planting.planted(), Vec::<String>::new(), "{over:?}");
    assert!(!sandbox.moved.take().is_empty());
    project.planting.use_project();
}

#[test]
fn a_folder_that_cannot_be_read_hides_nothing_that_was_planted() {
    let project = Project::new();
    let script = "mkdir -p a/dark a/.claude/agents a/.cursor/rules/x.untrusted-1; echo evil > a/.envrc; \
                  echo evil > a/.claude/agents/x.md; echo evil > a/.cursor/rules/x.untrusted-1/x.mdc; \
                  chmod 000 a/dark a/.claude/agents";
    let argv = ["sh", "-c", script].map(str::to_owned);
    let sandbox = CommandSandbox::around(project.root());
    let ran = run(&argv, project.root(), Duration::from_secs(60), Some(&sandbox), &CancellationToken::new());
    assert!(ran.is_err_and(|error| error.to_string().contains("a/dark")));
    for name in ["a/.envrc", "a/.claude", "a/.cursor"] {
        assert!(!project.planting.has(name) && project.planting.has(&format!("{name}.untrusted-1")), "{name}");
    }
    // The next command finds the folder out of reach, and is not refused because of it.
    let script = "chmod 755 a/dark; echo evil > a/dark/.envrc; chmod 000 a/dark; touch made";
    let argv = ["sh", "-c", script].map(str::to_owned);
    let ran = run(&argv, project.root(), Duration::from_secs(60), Some(&sandbox), &CancellationToken::new());
    assert!(ran.is_ok() && project.planting.has("made"), "{ran:?}");
    fs::set_permissions(project.root().join("a/dark"), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(!project.planting.has("a/dark/.envrc"));
}

#[test]
fn what_a_command_plants_that_lives_on_is_gone_while_it_runs() {
    let project = Project::new();
    fs::write(project.root().join("serve.sh"), "sh plant.sh; while [ ! -e go ]; do sleep 0.02; done").unwrap();
    project.said("run_shell", json!({ "command": "sh serve.sh", "background": true }));
    project.planting.until_gone();
    project.planting.use_project();
    fs::write(project.root().join("go"), "").unwrap();
    assert!(soon(|| project.said("shell_output", json!({ "id": "sh-1", "since": 0 })).contains("exit code")));
}

/// Not a test by itself: what `nothing_is_left_when_the_program_is_killed` kills.
#[test]
#[ignore = "started by another test"]
fn a_program_to_be_killed() {
    if let Some(root) = folder_given() {
        fs::write(root.join("serve.sh"), "sh plant.sh; sleep 50").unwrap();
        let argv = ["sh", "serve.sh"].map(str::to_owned);
        let sandbox = CommandSandbox::around(&root);
        let _ = run(&argv, &root, Duration::from_secs(60), Some(&sandbox), &CancellationToken::new());
    }
}

#[test]
fn nothing_is_left_when_the_program_is_killed() {
    let project = Project::new();
    let mut program = start_test("planted::a_program_to_be_killed", project.root());
    assert!(soon(|| project.planting.has("up")));
    program.kill().unwrap();
    program.wait().unwrap();
    project.planting.until_gone();
    project.planting.use_project();
}

#[test]
fn what_the_user_checks_out_meanwhile_stays() {
    let project = Project::new();
    project.planting.git(&["checkout", "-qb", "topic"]);
    let files = [".envrc", ".github/workflows/ci.yml", "a/b/AGENTS.md", "a/.vscode/tasks.json"];
    for name in files {
        fs::create_dir_all(project.root().join(name).parent().unwrap()).unwrap();
        fs::write(project.root().join(name), "topic\n").unwrap();
    }
    std::os::unix::fs::symlink("code.py", project.root().join("a/b/c/CLAUDE.md")).unwrap();
    project.planting.commit("two");
    project.planting.git(&["checkout", "-q", "-"]);
    let script = "echo up; while [ ! -e go ]; do sleep 0.02; done; echo evil > a/GEMINI.md";
    fs::write(project.root().join("serve.sh"), script).unwrap();
    project.said("run_shell", json!({ "command": "sh serve.sh", "background": true }));
    assert!(soon(|| project.said("shell_output", json!({ "id": "sh-1", "since": 0 })).contains("up")));
    project.planting.git(&["checkout", "-q", "topic"]);
    project.planting.git(&["worktree", "add", "-q", "--detach", "side"]);
    // An answer that the user gives meanwhile, in a folder that was not there.
    let (answers, text) = (".max-team/settings.local.json", "{}\n");
    approve_file(project.root(), Path::new(answers), text.as_bytes());
    fs::create_dir(project.root().join(".max-team")).unwrap();
    fs::write(project.root().join(answers), text).unwrap();
    // A file that the watch sees after the others shows that it has judged them.
    fs::write(project.root().join("go"), "").unwrap();
    assert!(soon(|| project.planting.has("a/GEMINI.md.untrusted-1")));
    assert!(soon(|| project.said("shell_output", json!({ "id": "sh-1", "since": 0 })).contains("exit code")));
    for name in files.iter().chain(&["a/b/c/CLAUDE.md", answers, "side/.git", "side/.envrc", "side/a/b/AGENTS.md"]) {
        assert!(project.planting.has(name), "{name}");
    }
}

#[test]
fn ordinary_builds_and_installs_lose_nothing() {
    let project = Project::new();
    let made = [
        "node_modules/x/.npmrc",
        "node_modules/.bin/y",
        "vendor/z/AGENTS.md",
        "target/tmp/repo/.git/HEAD",
        ".venv/lib/python3/site-packages/x.pth",
        "env/lib/python3/site-packages/x.pth",
        "src/Makefile",
        "src/package.json",
    ];
    let lines: Vec<String> = made.iter().map(|name| format!("mkdir -p $(dirname {name}); echo x > {name}")).collect();
    fs::write(project.root().join("install.sh"), lines.join("\n")).unwrap();
    let told = project.said("run_shell", json!({ "command": "sh install.sh" }));
    assert!(made.iter().all(|name| project.planting.has(name)) && !told.contains("untrusted"), "{told}");
}

#[test]
fn lines_of_git_work_in_its_folder_and_scripts_do_not() {
    let project = Project::new();
    let lib = project.home.path().join("lib");
    fs::create_dir(&lib).unwrap();
    fs::write(lib.join("code"), "x").unwrap();
    for args in
        [&["init", "-q"][..], &["add", "."], &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]]
    {
        assert!(Command::new("git").args(args).current_dir(&lib).status().unwrap().success());
    }
    project.planting.git(&["submodule", "--quiet", "add", &lib.display().to_string(), "sub"]);
    project.planting.commit("with a submodule");
    project.planting.git(&["submodule", "--quiet", "deinit", "-f", "sub"]);
    project.planting.git(&["submodule", "--quiet", "init"]);
    assert!(!project.planting.has("sub/code"));
    let told = project.said("run_shell", json!({ "command": "git submodule update" }));
    assert!(
        project.planting.has("sub/code") && project.planting.has("sub/.git") && !told.contains("untrusted"),
        "{told}"
    );

    fs::write(project.root().join("a/new.py"), "x").unwrap();
    let hook = project.root().join(".git/hooks/pre-commit");
    fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", project.planting.mark().display())).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let line = "git add a/new.py && git -c user.name=a -c user.email=a@b commit -qm new && git log -1 --format=%s";
    let told = project.said("run_shell", json!({ "command": line }));
    assert!(told.contains("new") && told.contains("exit code 0"), "{told}");
    assert!(!project.planting.mark().exists(), "a hook runs code of the project");
    let told = project.said("run_shell", json!({ "command": "git init -q made && git status" }));
    assert!(project.planting.has("made/.git/HEAD"), "{told}");
    let told = project.said("run_shell", json!({ "command": "sh -c 'git add evil; git tag evil'" }));
    assert!(told.contains("Read-only file system"), "{told}");
}

#[test]
fn programs_outside_are_not_reached_through_sockets_of_the_project() {
    let project = Project::new();
    let _served = UnixListener::bind(project.root().join("a/served.sock")).unwrap();
    drop(UnixListener::bind(project.root().join("a/left.sock")).unwrap());
    let script = "import socket, os\n\
                  def reach(path):\n    s = socket.socket(socket.AF_UNIX)\n    try:\n        s.connect(path); print(path, 'reached')\n    except OSError as error:\n        print(path, error.strerror)\n\
                  reach('a/served.sock')\n\
                  os.remove('a/left.sock')\n\
                  own = socket.socket(socket.AF_UNIX); own.bind('a/left.sock'); own.listen(1)\n\
                  reach('a/left.sock')\n";
    fs::write(project.root().join("reach.py"), script).unwrap();
    let told = project.said("run_shell", json!({ "command": "python3 reach.py" }));
    assert!(told.contains("a/left.sock reached") && !told.contains("served.sock reached"), "{told}");
}
