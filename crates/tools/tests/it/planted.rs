//! What a command plants: repositories and files that run by themselves or configure agents, at every depth. None of it is left
//! for the user's own git to run, and nothing of the user's is moved.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use max_team_core::policy::PROTECTED;
use max_team_tools::command::{CommandSandbox, approve_file, run};
use max_team_tools::{OutputStore, Registry, Root, ToolContext};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Folders at every depth from 0 to 3.
const PLACES: [&str; 4] = ["", "a/", "a/b/", "a/b/c/"];

struct Project {
    home: TempDir,
    root: PathBuf,
    cx: ToolContext,
    tools: Registry,
}

impl Project {
    fn new() -> Self {
        // Not in /tmp, which is another one inside the sandbox.
        let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let root = home.path().canonicalize().unwrap().join("project");
        fs::create_dir_all(root.join("a/b/c")).unwrap();
        fs::write(root.join("a/b/c/code.py"), "x\n").unwrap();
        let cx = ToolContext::new(std::sync::Arc::new(Root::open(&root).unwrap()));
        let store = Some(std::sync::Arc::new(OutputStore::new(home.path().join("store"))));
        let project = Self { cx: ToolContext { outputs: store, ..cx }, home, root, tools: Registry::builtin() };
        project.git(&["init", "-q"]);
        project.commit("one");
        project
    }

    fn git(&self, args: &[&str]) {
        let own = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"];
        let own = own.iter().chain(&["-c", "protocol.file.allow=always"]);
        let ran = Command::new("git").args(own).args(args).current_dir(&self.root).output().unwrap();
        assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "."]);
        self.git(&["commit", "-qm", message]);
    }

    fn said(&self, tool: &str, input: Value) -> String {
        let action = self.tools.prepare(&self.cx, tool, &input).unwrap().action;
        let output = self.tools.run(&self.cx, tool, input, &action, false).unwrap();
        output.content.iter().map(|part| format!("{part:?}")).collect()
    }

    fn there(&self, name: &str) -> bool {
        self.root.join(name).symlink_metadata().is_ok()
    }

    /// A program that leaves a mark if it is ever run.
    fn payload(&self) -> String {
        let (evil, mark) = (self.root.join("evil.sh"), self.mark());
        fs::write(&evil, format!("#!/bin/sh\ntouch '{}'\n", mark.display())).unwrap();
        fs::set_permissions(&evil, fs::Permissions::from_mode(0o755)).unwrap();
        evil.display().to_string()
    }

    fn mark(&self) -> PathBuf {
        self.home.path().join("it-ran")
    }

    /// A script that plants everything at every depth.
    fn planting(&self) -> String {
        let evil = self.payload();
        let mut lines = vec!["exec 2>/dev/null".to_owned()];
        for place in PLACES {
            for name in names(place) {
                let folder = Path::new(&name).parent().unwrap().display();
                lines.push(format!("mkdir -p './{folder}'; [ -e './{name}' ] || echo evil > './{name}'"));
            }
            let config = format!("git -C ./{place}new config core.fsmonitor {evil}");
            lines.push(format!("git init -q ./{place}new; {config}; git add ./{place}new"));
            lines.push(format!("git init -q --bare ./{place}bare"));
            lines.push(format!(
                "printf '[core]\\nbare=false\\nworktree=..\\nfsmonitor={evil}\\n' > ./{place}bare/config"
            ));
            lines.push(format!("mkdir -p ./{place}link; echo 'gitdir: ../bare' > ./{place}link/.git"));
        }
        // The project's own repository: settings, hooks, and a list of what a rebase does next.
        lines.push(format!("git config core.fsmonitor {evil}; cp {evil} .git/hooks/post-checkout"));
        lines.push(format!("mkdir .git/rebase-merge; echo 'exec {evil}' > .git/rebase-merge/git-rebase-todo"));
        lines.push("echo ../a > .git/commondir; rm -rf .git/refs; mv .git elsewhere; exit 0".to_owned());
        lines.join("\n")
    }

    /// Everything that a run of the script must not leave.
    fn planted(&self) -> Vec<String> {
        let own = [".git/rebase-merge", ".git/commondir", ".git/hooks/post-checkout", "elsewhere"].map(str::to_owned);
        let made = PLACES.into_iter().flat_map(|place| {
            let others = ["new/.git", "bare/HEAD", "link/.git"].map(|name| format!("{place}{name}"));
            names(place).into_iter().chain(others)
        });
        made.chain(own).filter(|name| self.there(name)).collect()
    }

    /// What a user does next, in every folder.
    fn used(&self) {
        for place in PLACES.iter().flat_map(|place| {
            [(*place).to_owned(), format!("{place}new"), format!("{place}bare"), format!("{place}link")]
        }) {
            for args in [&["status", "--short"][..], &["diff"], &["rev-parse", "--abbrev-ref", "HEAD"]] {
                let _ = Command::new("git").args(args).current_dir(self.root.join(&place)).output();
            }
        }
        assert!(!self.mark().exists(), "what was planted has run");
        self.git(&["status", "--short"]);
    }
}

/// The names of all rows in a folder of the project, but those that only count in the project's own folder or in a folder of
/// dependencies.
fn names(place: &str) -> Vec<String> {
    let rows = PROTECTED.iter().filter(|row| !row.pattern.contains("-packages/"));
    let rows = rows.filter(|row| row.pattern != ".git" && (place.is_empty() || !row.pattern.starts_with('/')));
    rows.map(|row| format!("{place}{}", row.pattern.trim_start_matches('/').replace('*', "x"))).collect()
}

fn soon(what: impl Fn() -> bool) -> bool {
    let until = Instant::now() + Duration::from_secs(30);
    while !what() && Instant::now() < until {
        std::thread::yield_now();
    }
    what()
}

#[test]
fn nothing_that_a_command_plants_is_left() {
    let project = Project::new();
    fs::write(project.root.join("plant.sh"), project.planting()).unwrap();
    let told = project.said("run_shell", json!({ "command": "sh plant.sh" }));
    assert_eq!(project.planted(), Vec::<String>::new(), "{told}");
    for name in ["a/b/c/.envrc.untrusted-1", "a/new/.git.untrusted-1", "a/b/bare/HEAD.untrusted-1"] {
        assert!(project.there(name), "{name}");
    }
    assert!(told.contains("more such files were moved away"), "{told}");
    project.used();
}

#[test]
fn nothing_that_a_test_or_a_check_plants_is_left() {
    let project = Project::new();
    fs::write(project.root.join("plant.sh"), project.planting()).unwrap();
    fs::write(project.root.join("Makefile"), "test:\n\tsh plant.sh\n").unwrap();
    let told = project.said("run_test", json!({}));
    assert_eq!(project.planted(), Vec::<String>::new(), "{told}");
    let argv = ["sh", "plant.sh"].map(str::to_owned);
    let sandbox = CommandSandbox::around(&project.root);
    let time = Duration::from_secs(60);
    let over = run(&argv, &project.root, time, Some(&sandbox), &CancellationToken::new()).unwrap();
    assert_eq!(project.planted(), Vec::<String>::new(), "{over:?}");
    assert!(!sandbox.moved.take().is_empty());
    project.used();
}

#[test]
fn a_folder_that_cannot_be_read_hides_nothing_that_was_planted() {
    let project = Project::new();
    let script = "mkdir -p a/dark a/.claude/agents a/.cursor/rules/x.untrusted-1; echo evil > a/.envrc; \
                  echo evil > a/.claude/agents/x.md; echo evil > a/.cursor/rules/x.untrusted-1/x.mdc; \
                  chmod 000 a/dark a/.claude/agents";
    let argv = ["sh", "-c", script].map(str::to_owned);
    let sandbox = CommandSandbox::around(&project.root);
    let ran = run(&argv, &project.root, Duration::from_secs(60), Some(&sandbox), &CancellationToken::new());
    assert!(ran.is_err_and(|error| error.to_string().contains("a/dark")));
    for name in ["a/.envrc", "a/.claude", "a/.cursor"] {
        assert!(!project.there(name) && project.there(&format!("{name}.untrusted-1")), "{name}");
    }
    // The next command finds the folder out of reach, and is not refused because of it.
    let script = "chmod 755 a/dark; echo evil > a/dark/.envrc; chmod 000 a/dark; touch made";
    let argv = ["sh", "-c", script].map(str::to_owned);
    let ran = run(&argv, &project.root, Duration::from_secs(60), Some(&sandbox), &CancellationToken::new());
    assert!(ran.is_ok() && project.there("made"), "{ran:?}");
    fs::set_permissions(project.root.join("a/dark"), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(!project.there("a/dark/.envrc"));
}

#[test]
fn what_a_command_plants_that_lives_on_is_gone_while_it_runs() {
    let project = Project::new();
    let script =
        format!("{}\necho up; while [ ! -e go ]; do sleep 0.02; done", project.planting().replace("; exit 0", ""));
    fs::write(project.root.join("plant.sh"), script).unwrap();
    project.said("run_shell", json!({ "command": "sh plant.sh", "background": true }));
    assert!(soon(|| project.said("shell_output", json!({ "id": "sh-1", "since": 0 })).contains("up")));
    assert!(soon(|| project.planted().is_empty()), "{:?}", project.planted());
    project.used();
    fs::write(project.root.join("go"), "").unwrap();
    assert!(soon(|| project.said("shell_output", json!({ "id": "sh-1", "since": 0 })).contains("exit code")));
}

/// Not a test by itself: what `nothing_is_left_when_the_program_is_killed` kills.
#[test]
#[ignore = "started by another test"]
fn a_program_to_be_killed() {
    let Some(root) = std::env::args().find_map(|arg| arg.strip_prefix("project=").map(PathBuf::from)) else { return };
    let argv = ["sh", "plant.sh"].map(str::to_owned);
    let sandbox = CommandSandbox::around(&root);
    let _ = run(&argv, &root, Duration::from_secs(60), Some(&sandbox), &CancellationToken::new());
}

#[test]
fn nothing_is_left_when_the_program_is_killed() {
    let project = Project::new();
    let script = format!("{}\ntouch up; sleep 50", project.planting().replace("; exit 0", ""));
    fs::write(project.root.join("plant.sh"), script).unwrap();
    let mut program = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "planted::a_program_to_be_killed", "--nocapture"])
        .args(["--skip", &format!("project={}", project.root.display())])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(soon(|| project.there("up")));
    program.kill().unwrap();
    program.wait().unwrap();
    assert!(soon(|| project.planted().is_empty()), "{:?}", project.planted());
    project.used();
}

#[test]
fn what_the_user_checks_out_meanwhile_stays() {
    let project = Project::new();
    project.git(&["checkout", "-qb", "topic"]);
    let files = [".envrc", ".github/workflows/ci.yml", "a/b/AGENTS.md", "a/.vscode/tasks.json"];
    for name in files {
        fs::create_dir_all(project.root.join(name).parent().unwrap()).unwrap();
        fs::write(project.root.join(name), "topic\n").unwrap();
    }
    std::os::unix::fs::symlink("code.py", project.root.join("a/b/c/CLAUDE.md")).unwrap();
    project.commit("two");
    project.git(&["checkout", "-q", "-"]);
    let script = "echo up; while [ ! -e go ]; do sleep 0.02; done; echo evil > a/GEMINI.md";
    fs::write(project.root.join("serve.sh"), script).unwrap();
    project.said("run_shell", json!({ "command": "sh serve.sh", "background": true }));
    assert!(soon(|| project.said("shell_output", json!({ "id": "sh-1", "since": 0 })).contains("up")));
    project.git(&["checkout", "-q", "topic"]);
    // An answer that the user gives meanwhile, in a folder that was not there.
    let (answers, text) = (".max-team/settings.local.json", "{}\n");
    approve_file(&project.root, Path::new(answers), text.as_bytes());
    fs::create_dir(project.root.join(".max-team")).unwrap();
    fs::write(project.root.join(answers), text).unwrap();
    // A file that the watch sees after the others shows that it has judged them.
    fs::write(project.root.join("go"), "").unwrap();
    assert!(soon(|| project.there("a/GEMINI.md.untrusted-1")));
    assert!(soon(|| project.said("shell_output", json!({ "id": "sh-1", "since": 0 })).contains("exit code")));
    for name in files.iter().chain(&["a/b/c/CLAUDE.md", answers]) {
        assert!(project.there(name), "{name}");
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
    fs::write(project.root.join("install.sh"), lines.join("\n")).unwrap();
    let told = project.said("run_shell", json!({ "command": "sh install.sh" }));
    assert!(made.iter().all(|name| project.there(name)) && !told.contains("untrusted"), "{told}");
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
    project.git(&["submodule", "--quiet", "add", &lib.display().to_string(), "sub"]);
    project.commit("with a submodule");
    project.git(&["submodule", "--quiet", "deinit", "-f", "sub"]);
    project.git(&["submodule", "--quiet", "init"]);
    assert!(!project.there("sub/code"));
    let told = project.said("run_shell", json!({ "command": "git submodule update" }));
    assert!(project.there("sub/code") && project.there("sub/.git") && !told.contains("untrusted"), "{told}");

    fs::write(project.root.join("a/new.py"), "x").unwrap();
    let hook = project.root.join(".git/hooks/pre-commit");
    fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", project.mark().display())).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let line = "git add a/new.py && git -c user.name=a -c user.email=a@b commit -qm new && git log -1 --format=%s";
    let told = project.said("run_shell", json!({ "command": line }));
    assert!(told.contains("new") && told.contains("exit code 0"), "{told}");
    assert!(!project.mark().exists(), "a hook runs code of the project");
    let told = project.said("run_shell", json!({ "command": "git init -q made && git status" }));
    assert!(project.there("made/.git/HEAD"), "{told}");
    let told = project.said("run_shell", json!({ "command": "sh -c 'git add evil; git tag evil'" }));
    assert!(told.contains("Read-only file system"), "{told}");
}

#[test]
fn programs_outside_are_not_reached_through_sockets_of_the_project() {
    let project = Project::new();
    let _served = UnixListener::bind(project.root.join("a/served.sock")).unwrap();
    drop(UnixListener::bind(project.root.join("a/left.sock")).unwrap());
    let script = "import socket, os\n\
                  def reach(path):\n    s = socket.socket(socket.AF_UNIX)\n    try:\n        s.connect(path); print(path, 'reached')\n    except OSError as error:\n        print(path, error.strerror)\n\
                  reach('a/served.sock')\n\
                  os.remove('a/left.sock')\n\
                  own = socket.socket(socket.AF_UNIX); own.bind('a/left.sock'); own.listen(1)\n\
                  reach('a/left.sock')\n";
    fs::write(project.root.join("reach.py"), script).unwrap();
    let told = project.said("run_shell", json!({ "command": "python3 reach.py" }));
    assert!(told.contains("a/left.sock reached") && !told.contains("served.sock reached"), "{told}");
}
