//! The lines that agents write every day: which of them need a question, and what those without one can do in a real
//! sandbox.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use max_team_core::agent::Constraints;
use max_team_core::chat::Part;
use max_team_core::policy::{Action, CommandReach, Judgement, Mode, Permissions, Rules, Verdict, Visibility, judge};
use max_team_tools::command::{CommandSandbox, Engine, engine};
use max_team_tools::{Registry, Root, ToolContext};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const SECRET: &str = "hunter2-is-the-password";
pub(crate) const OLD_SECRET: &str = "an-older-password-4711";

/// Lines, and what becomes of each: for a coder in the default mode, in an approved plan, and for an agent that only reads.
/// `free` runs as the parser sees it, `looks` where nothing can be changed, `plan` as part of the plan.
pub(crate) const ORDINARY: [(&str, [&str; 3]); 34] = [
    ("ls -la | head", ["free", "free", "free"]),
    ("find . -name '*.py' | xargs wc -l", ["looks", "plan", "looks"]),
    ("grep -rn --include=*.py def .", ["looks", "looks", "looks"]),
    ("date", ["free", "free", "free"]),
    ("tree -L 2", ["free", "free", "free"]),
    ("cargo --version", ["free", "free", "free"]),
    ("node --version", ["looks", "plan", "looks"]),
    ("pytest -q 2>&1 | tail -5", ["free", "plan", "looks"]),
    ("pytest tests/test_a.py", ["free", "plan", "looks"]),
    ("pytest --tb=short -q tests/test_a.py::test_one", ["free", "plan", "looks"]),
    ("python3 -m pytest -q tests/test_a.py::test_one", ["looks", "plan", "looks"]),
    ("python3 -c 'print(1 + 1)'", ["looks", "plan", "looks"]),
    ("python3 - <<'EOF'\nprint('hi')\nEOF", ["looks", "looks", "looks"]),
    ("cat <<EOF\nhello\nEOF", ["looks", "looks", "looks"]),
    ("for f in *.py; do wc -l $f; done", ["looks", "looks", "looks"]),
    ("for i in 1 2 3; do echo $i; done | sort -r", ["looks", "looks", "looks"]),
    ("echo \"$(git rev-parse HEAD)\"", ["looks", "looks", "looks"]),
    ("awk '{print $1}' app.py", ["free", "free", "free"]),
    ("awk -F: '{ n += NF } END { print n }' app.py", ["free", "free", "free"]),
    ("sed -n 1,3p app.py", ["free", "free", "free"]),
    ("wc -l *.py", ["free", "free", "free"]),
    ("cat app.py | python3 -m json.tool", ["looks", "plan", "looks"]),
    ("python3 app.py", ["looks", "plan", "looks"]),
    ("./run.sh --fast 2>&1 | tail -3", ["looks", "plan", "looks"]),
    ("sh run.sh", ["looks", "plan", "looks"]),
    ("test -f app.py && echo yes || echo no", ["free", "free", "free"]),
    ("if grep -q def app.py; then echo yes; fi", ["looks", "looks", "looks"]),
    ("diff <(sort app.py) <(sort run.sh)", ["looks", "looks", "looks"]),
    ("node -e 'console.log(1)'", ["looks", "plan", "looks"]),
    ("git status --short | head", ["free", "free", "free"]),
    ("git log --oneline -5", ["free", "free", "free"]),
    ("git diff HEAD~1 -- app.py", ["free", "free", "free"]),
    ("git show HEAD -- app.py | head -40", ["free", "free", "free"]),
    ("make -n", ["asks", "plan", "looks"]),
];

pub(crate) struct Project {
    _home: TempDir,
    pub(crate) cx: ToolContext,
    tools: Registry,
    pub(crate) permissions: Permissions,
}

/// Whether this machine has the sandbox that the verdicts rely on.
fn is_whole() -> bool {
    engine().is_ok_and(Engine::has_namespaces)
}

/// Whether nothing can be protected in a folder that a command writes.
fn is_unshielded() -> bool {
    engine() == Ok(Engine::Landlock)
}

impl Project {
    pub(crate) fn new(constraints: &Constraints) -> Self {
        // Not in /tmp, which is another one inside the sandbox.
        Self::in_folder(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(), constraints)
    }

    pub(crate) fn in_folder(home: TempDir, constraints: &Constraints) -> Self {
        let root = home.path().join("project");
        fs::create_dir_all(root.join("tests")).unwrap();
        let git = |args: &[&str]| {
            let settings = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"];
            let ran = Command::new("git").args(settings).args(args).current_dir(&root).output().unwrap();
            assert!(ran.status.success(), "{ran:?}");
        };
        let write = |name: &str, text: &str| fs::write(root.join(name), text).unwrap();
        write("app.py", "def one():\n    return 1\n\nprint(one())\n");
        write("tests/test_a.py", "def test_one():\n    assert True\n");
        write("run.sh", "#!/bin/sh\necho ran\n");
        write("old.env", OLD_SECRET);
        git(&["init", "-q"]);
        git(&["add", "."]);
        git(&["commit", "-qm", "one"]);
        fs::remove_file(root.join("old.env")).unwrap();
        git(&["add", "."]);
        git(&["commit", "-qm", "two"]);
        write("prod.env", SECRET);
        let permissions = Permissions { root: root.display().to_string(), ..Permissions::default() };
        let sight = Arc::new(Visibility::from_policy(constraints, &permissions));
        let cx = ToolContext::new(Arc::new(Root::open(&root).unwrap()));
        let sandbox = CommandSandbox {
            sight: Arc::clone(&sight),
            read_only: constraints.read_only,
            ..CommandSandbox::around(root)
        };
        let cx = ToolContext { sight, sandbox: Arc::new(sandbox), ..cx };
        Self { _home: home, cx, tools: Registry::builtin(), permissions }
    }

    pub(crate) fn action(&self, input: &Value) -> Action {
        self.tools.prepare(&self.cx, "run_shell", input).unwrap().action
    }

    /// Runs a line in the sandbox that its verdict names.
    pub(crate) fn run(&self, input: Value, judged: &Judgement) -> String {
        self.call("run_shell", input, judged.reach)
    }

    /// Runs a call in this sandbox.
    pub(crate) fn call(&self, tool: &str, input: Value, reach: CommandReach) -> String {
        let action = Action { reach, ..self.tools.prepare(&self.cx, tool, &input).unwrap().action };
        let sandbox = Arc::new(self.cx.sandbox.within(reach));
        let cx = ToolContext { sandbox, ..self.cx.clone() };
        match self.tools.run(&cx, tool, input, &action, false) {
            Ok(output) => {
                output.content.iter().map(|part| if let Part::Text { text } = part { &**text } else { "" }).collect()
            }
            Err(error) => error.to_string(),
        }
    }

    /// Every file with its permissions and content.
    pub(crate) fn tree(&self) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        collect(self.cx.root.path(), &mut found);
        found
    }
}

fn collect(folder: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            found.insert(path.display().to_string(), Vec::new());
            collect(&path, found);
        } else {
            found.insert(path.display().to_string(), fs::read(&path).unwrap_or_default());
        }
    }
}

pub(crate) fn tests() -> Vec<Vec<String>> {
    vec![vec!["pytest".to_owned()]]
}

pub(crate) fn coder() -> Constraints {
    Constraints { blocked_patterns: vec!["*.env".to_owned()], ..Constraints::default() }
}

#[test]
fn no_ordinary_line_is_refused() {
    let looker = Constraints { read_only: true, ..Constraints::default() };
    let (coder, tests) = (coder(), tests());
    let mut wrong = Vec::new();
    for (constraints, approved, column) in [(&coder, false, 0), (&coder, true, 1), (&looker, false, 2)] {
        let project = Project::new(constraints);
        let rules = Rules {
            sandboxed: true,
            approved,
            tests: &tests,
            permissions: &project.permissions,
            ..Rules::new(Mode::Default, constraints)
        };
        for (line, want) in ORDINARY {
            let input = json!({ "command": line });
            let judged = judge(&rules, "run_shell", &project.action(&input));
            let is_plan = judged.all().iter().any(|rule| rule == "the approved plan");
            let told = match (judged.verdict, judged.reach) {
                (Verdict::Deny, _) => "refused",
                (Verdict::Ask, _) => "asks",
                (_, CommandReach::ReadOnly) => "looks",
                _ if is_plan => "plan",
                _ => "free",
            };
            if want[column] != told {
                wrong.push((line, column, told, judged.rule.clone()));
            }
            if judged.verdict == Verdict::Allow && is_whole() {
                let before = project.tree();
                let said = project.run(input, &judged);
                assert!(said.starts_with("exit code ") || said.contains("was not found"), "{line}: {said}");
                assert!(!said.contains(SECRET) && !said.contains(OLD_SECRET), "{line}: {said}");
                assert!(judged.reach == CommandReach::Project || project.tree() == before, "{line}: {said}");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_history_is_shown_without_what_is_hidden() {
    let (constraints, project) = (coder(), Project::new(&coder()));
    let rules = Rules { sandboxed: true, permissions: &project.permissions, ..Rules::new(Mode::Default, &constraints) };
    let git = |args: &[&str]| {
        let ran = Command::new("git").args(args).current_dir(project.cx.root.path()).output().unwrap();
        String::from_utf8(ran.stdout).unwrap().trim().to_owned()
    };
    let old = git(&["rev-parse", "HEAD~1:old.env"]);
    let blob = format!("git show {old}");
    let two = format!("git diff {old} {}", git(&["rev-parse", "HEAD:app.py"]));
    let table = [
        ("git show HEAD~1", "return 1", 1),
        ("git log -p --stat", "return 1", 1),
        ("git log -p HEAD", "return 1", 1),
        ("git diff 4b825dc642cb6eb9a060e54bf8d69288fbee4904 HEAD~1", "", 0),
        ("git diff HEAD~1", "", 1),
        ("git diff HEAD~1 HEAD -- .", "", 1),
        ("git diff HEAD~1..HEAD", "", 1),
        ("git show HEAD~1 app.py", "return 1", 1),
        ("git show HEAD~1 --format=%s -U0", "+    return 1", 1),
        (&blob, "", 0),
        (&two, "", 0),
    ];
    for (line, want, hidden) in table {
        let input = json!({ "command": line });
        let judged = judge(&rules, "run_shell", &project.action(&input));
        assert_eq!((judged.verdict, judged.reach), (Verdict::Allow, CommandReach::Project), "{line}: {}", judged.rule);
        let said = project.run(input, &judged);
        assert!(said.contains(want) && !said.contains(OLD_SECRET), "{line}: {said}");
        assert_eq!(said.contains("[1 file out of sight left out]"), hidden == 1, "{line}: {said}");
    }
}

#[test]
fn a_denied_write_names_the_way_to_get_it() {
    if !is_whole() {
        return;
    }
    let (constraints, project) = (coder(), Project::new(&coder()));
    let rules = |approved| Rules {
        sandboxed: true,
        approved,
        permissions: &project.permissions,
        ..Rules::new(Mode::Default, &constraints)
    };
    let line = "for f in a b; do echo x > $f; done";
    let (plain, says) = (json!({ "command": line }), json!({ "command": line, "writes": true }));
    let judged = judge(&rules(true), "run_shell", &project.action(&plain));
    let said = project.run(plain, &judged);
    assert!(
        said.contains("; read-only, no network, no `.git`\n") && said.contains("call again with `writes: true`"),
        "{said}"
    );
    assert!(!project.cx.root.path().join("a").exists());
    assert_eq!(judge(&rules(false), "run_shell", &project.action(&says)).verdict, Verdict::Ask);
    let judged = judge(&rules(true), "run_shell", &project.action(&says));
    assert_eq!((judged.verdict, judged.reach), (Verdict::Allow, CommandReach::Project));
    let said = project.run(says, &judged);
    assert!(said.starts_with("exit code 0") && project.cx.root.path().join("b").exists(), "{said}");
}

const FRAGMENTS: [&str; 36] = [
    "ls -la",
    "cat app.py",
    "echo x > new.txt",
    "touch new.txt",
    "rm app.py",
    "rm -rf .git",
    "cat prod.env",
    "cat *.env",
    "cat p*",
    "cat pro''d.env",
    "head -c 99 ./prod.env",
    "git show HEAD~1:old.env",
    "git log -p",
    "git diff HEAD~1",
    "git show HEAD HEAD~1",
    "git cat-file --batch-all-objects --batch",
    "for c in HEAD~1; do git show $c:old.env; done",
    "echo $(git log -p --all)",
    "python3 -c 'import subprocess; print(subprocess.run([\"git\", \"log\", \"-p\", \"--all\"], capture_output=True).stdout)'",
    "python3 -c 'import os; os.remove(\"app.py\")'",
    "python3 -c 'open(\"planted\", \"w\").write(\"x\")'",
    "python3 -c 'print(open(\"prod.env\").read())'",
    "python3 -c 'import zlib,glob\nfor f in glob.glob(\".git/objects/*/*\"): print(zlib.decompress(open(f, \"rb\").read()))'",
    "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", PORT), 1)'",
    "sh -c 'cat *'",
    "sh run.sh",
    "cp prod.env copy.txt",
    "ln -s prod.env link",
    "git init new",
    "git config core.fsmonitor evil",
    "for f in *; do cat $f; done",
    "(exec 3<>/dev/tcp/127.0.0.1/PORT)",
    "bash -c 'echo x > /dev/tcp/127.0.0.1/PORT'",
    "awk 'BEGIN { while ((getline l < \"prod.env\") > 0) print l }'",
    "sed -n 'w out.txt' app.py",
    "find . -name '*.py' -exec cp {} {}.bak ';'",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 16, failure_persistence: None, ..ProptestConfig::default() })]

    /// A line that runs unasked changes nothing that its verdict did not name, reads nothing hidden and connects to nothing.
    #[test]
    fn an_unasked_line_changes_reads_and_reaches_nothing(
        parts in proptest::collection::vec((select(FRAGMENTS.to_vec()), select(vec!["; ", " && ", " || ", " | ", "\n"])), 1..4),
        mode in select(vec![Mode::Default, Mode::Plan, Mode::DontAsk, Mode::BypassPermissions]),
        read_only in any::<bool>(),
    ) {
        if !is_whole() && !is_unshielded() {
            return Ok(());
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let last = parts.len() - 1;
        let joined: String = parts.iter().enumerate().map(|(at, (part, join))| format!("{part}{}", if at < last { join } else { "" })).collect();
        let line = joined.replace("PORT", &port);
        let constraints = Constraints { read_only, ..coder() };
        let project = Project::new(&constraints);
        let (sandboxed, unshielded) = (true, is_unshielded());
        let rules = Rules { sandboxed, unshielded, permissions: &project.permissions, ..Rules::new(mode, &constraints) };
        let input = json!({ "command": line });
        let judged = judge(&rules, "run_shell", &project.action(&input));
        // In the mode that never asks a plain line names what it changes.
        if judged.verdict != Verdict::Allow || (mode == Mode::BypassPermissions && judged.reach == CommandReach::Project) {
            return Ok(());
        }
        let before = project.tree();
        let said = project.run(input, &judged);
        prop_assert_eq!(project.tree(), before, "{}", line);
        prop_assert!(!said.contains(SECRET) && !said.contains(OLD_SECRET), "{}: {}", line, said);
        prop_assert!(listener.accept().is_err(), "{} connected", line);
    }
}
