//! Protected files that the team does not obey itself (CI, instructions, hooks outside `.git`): commands leave them as they
//! are, unless a person approved the very line that names them, or git checks them out.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use max_team_core::chat::Part;
use max_team_tools::command::{CommandSandbox, is_planted};
use max_team_tools::{OutputStore, Registry, Root, ToolContext};
use serde_json::{Value, json};
use tempfile::TempDir;

struct Project {
    _home: TempDir,
    root: PathBuf,
    cx: ToolContext,
    tools: Registry,
}

impl Project {
    fn new() -> Self {
        // Not in /tmp, which is another one inside the sandbox.
        let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let root = home.path().canonicalize().unwrap().join("project");
        fs::create_dir_all(root.join(".github/workflows")).unwrap();
        fs::write(root.join("AGENTS.md"), "ours\n").unwrap();
        fs::write(root.join(".github/workflows/ci.yml"), "ours\n").unwrap();
        let cx = ToolContext::new(Arc::new(Root::open(&root).unwrap()));
        let store = Some(Arc::new(OutputStore::new(home.path().join("store"))));
        Self { _home: home, root, cx: ToolContext { outputs: store, ..cx }, tools: Registry::builtin() }
    }

    fn attended(mut self) -> Self {
        self.cx.sandbox = Arc::new(CommandSandbox { attended: true, ..CommandSandbox::clone(&self.cx.sandbox) });
        self
    }

    fn said(&self, tool: &str, input: Value) -> String {
        let action = self.tools.prepare(&self.cx, tool, &input).unwrap().action;
        let output = self.tools.run(&self.cx, tool, input, &action, false).unwrap();
        let [Part::Text { text }] = output.content.as_slice() else { panic!("{output:?}") };
        text.clone()
    }

    fn ran(&self, command: &str) -> String {
        self.said("run_shell", json!({ "command": command }))
    }

    /// Runs a line; returns what the two nested files hold then.
    fn ran_with(&self, command: &str) -> (String, String) {
        self.ran(command);
        (self.text("packages/a/AGENTS.md"), self.text("packages/b/AGENTS.md"))
    }

    fn script(&self, text: &str) {
        fs::write(self.root.join("build.sh"), text).unwrap();
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.root.join(name)).unwrap_or_default()
    }

    fn git(&self, args: &[&str]) {
        let own = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"];
        let ran = Command::new("git").args(own).args(args).current_dir(&self.root).output().unwrap();
        assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
    }
}

#[test]
fn a_script_changes_none_and_the_model_is_told_what_to_do() {
    let project = Project::new();
    project.script("echo evil > AGENTS.md; echo evil > .github/workflows/ci.yml; echo x > out; echo evil > .envrc");
    let told = project.ran("sh build.sh");
    assert_eq!((project.text("AGENTS.md"), project.text("out")), ("ours\n".into(), "x\n".into()), "{told}");
    assert_eq!(project.text(".github/workflows/ci.yml"), "ours\n");
    assert_eq!((project.text(".envrc"), project.text(".envrc.untrusted-1")), (String::new(), "evil\n".into()));
    assert!(told.contains("`AGENTS.md`, `.github/workflows`. To change one, use `write_file`"), "{told}");
    assert!(told.contains(".envrc` is protected and was made without the user's approval"), "{told}");
    // A command that touches none of them is not told about any.
    assert!(!project.ran("sh -c 'echo fine > out'").contains("protected"));
}

#[test]
fn a_line_that_was_approved_with_the_name_in_sight_does_what_it_says() {
    let line = "sh -c 'echo new > AGENTS.md; mkdir -p .husky; echo x > .husky/pre-commit'";
    let project = Project::new().attended();
    let told = project.ran(line);
    assert_eq!(
        (project.text("AGENTS.md"), project.text(".husky/pre-commit")),
        ("new\n".into(), "x\n".into()),
        "{told}"
    );
    let alone = Project::new();
    alone.ran(line);
    assert_eq!((alone.text("AGENTS.md"), alone.root.join(".husky").exists()), ("ours\n".into(), false));
    // What the team obeys itself stays shut.
    let told = project.ran("sh -c 'mkdir -p .claude; echo x > .claude/settings.json'");
    assert!(!project.root.join(".claude").exists() && told.contains("only for the user to make"), "{told}");
}

#[test]
fn git_checks_out_what_a_branch_holds() {
    let project = Project::new().attended();
    for args in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "one"], &["checkout", "-qb", "topic"]] {
        project.git(args);
    }
    fs::write(project.root.join("AGENTS.md"), "topic\n").unwrap();
    fs::write(project.root.join(".envrc"), "topic\n").unwrap();
    for args in [&["add", "."][..], &["commit", "-qm", "two"], &["checkout", "-q", "main"]] {
        project.git(args);
    }
    let told = project.ran("git checkout topic && git status");
    assert_eq!((project.text("AGENTS.md"), project.text(".envrc")), ("topic\n".into(), "topic\n".into()), "{told}");
    let told = project.ran("git checkout main");
    assert_eq!((project.text("AGENTS.md"), project.root.join(".envrc").exists()), ("ours\n".into(), false), "{told}");
}

#[test]
fn files_made_with_approval_while_a_command_runs_stay() {
    let project = Project::new();
    project.script("echo up; while [ ! -e go ]; do sleep 0.02; done; mkdir -p .husky; echo evil > .husky/evil");
    let begun = project.said("run_shell", json!({ "command": "sh build.sh", "background": true }));
    assert!(begun.contains("`sh-1`"), "{begun}");
    assert!(looked(&project, "up").contains("runs for"));
    project.said("write_file", json!({ "path": "CLAUDE.md", "content": "approved\n" }));
    project.said("write_file", json!({ "path": ".husky/pre-commit", "content": "approved\n" }));
    fs::write(project.root.join("go"), "").unwrap();
    let told = looked(&project, "`sh-1` (`sh build.sh`): exit code");
    assert_eq!(
        (project.text("CLAUDE.md"), project.text(".husky/pre-commit")),
        ("approved\n".into(), "approved\n".into()),
        "{told}"
    );
    let there = |name: &str| project.root.join(name).exists();
    assert!(!there(".husky/evil") && there(".husky/evil.untrusted-1"), "{told}");
}

#[test]
fn a_file_of_a_background_command_is_moved_away_while_the_command_runs() {
    let project = Project::new();
    project.script("echo evil > CLAUDE.md; echo up; while [ ! -e go ]; do sleep 0.02; done");
    project.said("run_shell", json!({ "command": "sh build.sh", "background": true }));
    looked(&project, "up");
    let until = Instant::now() + Duration::from_secs(20);
    while !project.root.join("CLAUDE.md.untrusted-1").exists() {
        assert!(Instant::now() < until, "the file is live while the command runs");
        assert!(!project.root.join("CLAUDE.md").exists() || is_planted(&project.root.join("CLAUDE.md")));
        thread::yield_now();
    }
    assert!(!project.root.join("CLAUDE.md").exists());
    fs::write(project.root.join("go"), "").unwrap();
    let told = looked(&project, "`sh-1` (`sh build.sh`): exit code");
    assert!(told.contains("CLAUDE.md` is protected and was made without the user's approval"), "{told}");
}

#[test]
fn another_content_under_an_approved_name_is_not_approved() {
    let project = Project::new();
    project.script("echo up; while [ ! -e go ]; do sleep 0.02; done; echo evil > CLAUDE.md");
    project.said("run_shell", json!({ "command": "sh build.sh", "background": true }));
    looked(&project, "up");
    project.said("write_file", json!({ "path": "CLAUDE.md", "content": "approved\n" }));
    fs::write(project.root.join("go"), "").unwrap();
    let told = looked(&project, "`sh-1` (`sh build.sh`): exit code");
    assert_eq!(
        (project.text("CLAUDE.md"), project.text("CLAUDE.md.untrusted-1")),
        (String::new(), "evil\n".into()),
        "{told}"
    );
}

#[test]
fn nested_files_that_instruct_agents_are_kept_like_those_of_the_project() {
    let project = Project::new();
    fs::create_dir_all(project.root.join("packages/b/.cursor")).unwrap();
    fs::write(project.root.join("packages/b/AGENTS.md"), "ours\n").unwrap();
    project.script(
        "mkdir -p packages/a node_modules/x; echo evil > packages/a/AGENTS.md; echo evil > packages/b/AGENTS.md; \
         mkdir -p packages/a/.claude/agents; echo evil > packages/a/.claude/agents/x.md; echo evil > packages/b/.cursor/rules; \
         echo theirs > node_modules/x/AGENTS.md; echo fine > packages/a/main.rs",
    );
    let told = project.ran("sh build.sh");
    let there = |name: &str| project.root.join(name).exists();
    assert!(!there("packages/a/AGENTS.md") && there("packages/a/AGENTS.md.untrusted-1"), "{told}");
    assert!(!there("packages/a/.claude") && there("packages/a/.claude.untrusted-1/agents/x.md"), "{told}");
    assert!(!there("packages/b/.cursor/rules"), "{told}");
    assert_eq!(project.text("packages/b/AGENTS.md"), "ours\n", "{told}");
    assert!(there("node_modules/x/AGENTS.md") && there("packages/a/main.rs"), "{told}");
    assert!(told.contains("packages/a/AGENTS.md` is protected and was made without the user's approval"), "{told}");
    // A line that was approved with the name in sight makes it.
    let told = project.attended().ran_with("sh -c 'echo new > packages/a/AGENTS.md; echo new > packages/b/AGENTS.md'");
    assert_eq!(told, ("new\n".to_owned(), "new\n".to_owned()));
}

/// Looks at the background command until it says this; returns all that it said.
fn looked(project: &Project, words: &str) -> String {
    let mut told = String::new();
    for _ in 0..20 {
        told.push_str(&project.said("shell_output", json!({ "id": "sh-1", "wait": 5 })));
        if told.contains(words) {
            return told;
        }
    }
    panic!("it never said `{words}`: {told}");
}
