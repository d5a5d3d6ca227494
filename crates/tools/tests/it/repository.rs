//! What git is asked, of real repositories: plain ones, empty ones, none, and hostile ones.

use std::fs;
use std::path::Path;
use std::process::Command;

use max_team_core::hash::Hash;
use max_team_core::policy::{ActionKind, Visibility};
use max_team_tools::ToolError;
use max_team_tools::git::{DIFF_BYTES_MAX, Diff, FileStat, diff};
use max_team_tools::rewind::TrackedTrees;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::project::{Project, names, text};

pub(crate) fn git(project: &Project, args: &[&str]) -> String {
    let mut command = Command::new("git");
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        command.env_remove(name);
    }
    let output = command
        .args(["-c", "commit.gpgSign=false", "-c", "core.hooksPath=/dev/null"])
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .current_dir(project.inside(""))
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn init(project: &Project) {
    git(project, &["init", "--quiet", "--initial-branch=main"]);
    git(project, &["config", "user.name", "Ada"]);
    git(project, &["config", "user.email", "ada@example.org"]);
}

pub(crate) fn commit(project: &Project, message: &str) {
    git(project, &["add", "--all"]);
    git(project, &["commit", "--quiet", "--allow-empty", "-m", message]);
}

fn repository() -> Project {
    let project = Project::new();
    init(&project);
    project.write("src/a.rs", "one\ntwo\n");
    project.write("src/b.rs", "b\n");
    project.write("notes/c.md", "c\n");
    project.write(".gitignore", "ignored\n");
    commit(&project, "begin");
    project
}

fn differs(project: &Project, paths: &[&str]) -> Diff {
    diff(&project.inside(""), &owned(paths), &CancellationToken::new()).unwrap().unwrap()
}

/// A snapshot. Each look is that of another process.
pub(crate) fn mark(project: &Project) -> Hash {
    let trees = TrackedTrees::within(&project.outside("home"));
    trees.snapshot(&project.inside(""), &CancellationToken::new(), &|_| Ok(())).unwrap()
}

fn since(project: &Project, then: &Hash, paths: &[&str]) -> Diff {
    seen_since(project, then, paths, &Visibility::default())
}

pub(crate) fn seen_since(project: &Project, then: &Hash, paths: &[&str], sight: &Visibility) -> Diff {
    let (trees, root) = (TrackedTrees::within(&project.outside("home")), project.inside(""));
    trees.diff(&root, then, &owned(paths), sight, &CancellationToken::new(), &|_| Ok(())).unwrap()
}

pub(crate) fn owned(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

pub(crate) fn stats(diff: &Diff) -> Vec<(&str, u64, u64)> {
    diff.files.iter().map(|FileStat { path, added, removed }| (path.as_str(), *added, *removed)).collect()
}

/// Everything in `.git`, to see that looking leaves it alone.
fn state(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for name in names(path) {
        let inner = path.join(&name);
        if inner.is_dir() {
            all.extend(state(&inner));
        } else {
            all.push((inner.display().to_string(), fs::read(&inner).unwrap()));
        }
    }
    all
}

#[test]
fn changes_are_told_and_nothing_is_touched() {
    let project = repository();
    project.write("src/a.rs", "one\n2\nthree\n");
    fs::remove_file(project.inside("src/b.rs")).unwrap();
    project.write("src/new file.rs", "fn new() {}\nlast");
    project.write("ignored", "x");
    project.write("data.bin", [0, 1, 2]);
    project.write("staged", "s\n");
    git(&project, &["add", "staged"]);
    std::os::unix::fs::symlink("/etc/passwd", project.inside("link")).unwrap();
    let before = state(&project.inside(".git"));

    let all = differs(&project, &[]);
    let want = [
        ("data.bin", 0, 0),
        ("link", 1, 0),
        ("src/a.rs", 2, 1),
        ("src/b.rs", 0, 1),
        ("src/new file.rs", 2, 0),
        ("staged", 1, 0),
    ];
    assert_eq!(stats(&all), want, "{}", all.text);
    assert!(!all.cut);
    for part in [
        "-two\n+2\n+three\n",
        "deleted file mode 100644",
        "diff --git a/src/new file.rs b/src/new file.rs\nnew file mode 100644\n--- /dev/null\n+++ b/src/new file.rs\n@@ -0,0 +1,2 @@\n+fn new() {}\n+last\n\\ No newline at end of file\n",
        "Binary files /dev/null and b/data.bin differ",
        "new file mode 120000\n--- /dev/null\n+++ b/link\n@@ -0,0 +1 @@\n+/etc/passwd\n",
        "+++ b/staged\n@@ -0,0 +1 @@\n+s\n",
    ] {
        assert!(all.text.contains(part), "{part}\n---\n{}", all.text);
    }
    assert!(!all.text.contains("root:"), "links are not followed");
    assert_eq!(stats(&differs(&project, &["src/*.rs"])).len(), 3);
    assert_eq!(stats(&differs(&project, &["src/a.rs", "staged"])), [("src/a.rs", 2, 1), ("staged", 1, 0)]);
    assert_eq!(stats(&differs(&project, &["notes"])), []);
    for left in ["node_modules/x/i.js", "py/__pycache__/a.pyc", "target/debug/a", "c/target/debug/a", ".venv/bin/p"] {
        project.write(left, "left by a build\n");
    }
    assert_eq!(stats(&differs(&project, &[])), want, "what builds leave behind does not drown the rest");
    assert_eq!(state(&project.inside(".git")), before, "looking changes nothing");
    let err = diff(&project.inside(""), &owned(&["../out"]), &CancellationToken::new()).unwrap_err();
    assert!(err.to_string().contains("outside the project folder"), "{err}");
}

#[test]
fn new_files_are_printed_as_git_prints_them() {
    let project = repository();
    for (path, content) in [("x", "a\nb\n"), ("y", "a"), ("z", ""), ("w", "a\n")] {
        project.write(path, content);
    }
    let ours = differs(&project, &[]).text;
    git(&project, &["add", "--intent-to-add", "."]);
    let theirs = git(&project, &["diff", "--no-color", "HEAD"]);
    let plain = |text: &str| {
        text.lines().filter(|line| !line.starts_with("index ")).map(|line| format!("{line}\n")).collect::<String>()
    };
    assert_eq!(ours, plain(&theirs));
}

#[test]
fn a_repository_without_commits_and_no_repository() {
    let project = Project::new();
    let none = CancellationToken::new();
    assert_eq!(diff(&project.inside(""), &[], &none).unwrap(), None);
    project.write("a", "a");
    let then = mark(&project);
    fs::remove_file(project.inside("a")).unwrap();
    assert_eq!(stats(&since(&project, &then, &[])), [("a", 0, 1)], "a snapshot needs no repository");
    for tool in ["git_status", "git_diff", "git_log"] {
        let told = project.refused(tool, json!({}));
        assert!(told.contains("not in a git repository"), "{told}");
    }
    assert!(project.refused("git_commit", json!({ "message": "m", "paths": ["a"] })).contains("not in a git"));
    let gone = diff(&project.inside("none"), &[], &none).unwrap_err();
    assert!(gone.to_string().contains("cannot open the folder"), "{gone}");

    init(&project);
    project.write("a", "a\n");
    project.write("b", "b\n");
    git(&project, &["add", "a"]);
    assert_eq!(stats(&differs(&project, &[])), [("a", 1, 0), ("b", 1, 0)]);
    let then = mark(&project);
    project.write("b", "b\nc\n");
    assert_eq!(stats(&since(&project, &then, &[])), [("b", 1, 0)]);
    assert_eq!(project.call("git_log", json!({})).unwrap(), "[no commits yet]");
}

#[test]
fn a_folder_in_a_repository_sees_only_itself() {
    let project = repository();
    project.write("src/a.rs", "1\n");
    project.write("notes/c.md", "2\n");
    project.write("notes/d.md", "2\n");
    let inner = diff(&project.inside("notes"), &[], &CancellationToken::new()).unwrap().unwrap();
    assert_eq!(stats(&inner), [("c.md", 1, 1), ("d.md", 1, 0)]);
}

#[test]
fn changes_since_a_moment_are_named() {
    let project = repository();
    project.write("src/a.rs", "one\ntwo\ndirty\n");
    project.write("new", "n\n");
    project.write("gone", "g\n");
    let then = mark(&project);
    assert_eq!(since(&project, &then, &[]), Diff::default());

    project.write("src/a.rs", "one\ntwo\ndirty\nmore\n");
    project.write("src/b.rs", "b2\n");
    project.write("fresh", "f\n");
    fs::remove_file(project.inside("gone")).unwrap();
    let found = since(&project, &then, &[]);
    let want = [("fresh", 1, 0), ("gone", 0, 1), ("src/a.rs", 1, 0), ("src/b.rs", 1, 1)];
    assert_eq!(stats(&found), want, "{}", found.text);
    assert!(found.text.contains("+more") && !found.text.contains("+dirty"), "{}", found.text);
    assert_eq!(stats(&since(&project, &then, &["src/**"])), want[2..]);
    assert_eq!(stats(&since(&project, &then, &["gone"])), want[1..2]);

    // Committing what is there changes nothing about it.
    commit(&project, "everything");
    assert_eq!(stats(&since(&project, &then, &[])), want);
    // What is put back is a change of what was uncommitted then.
    project.write("src/a.rs", "one\ntwo\n");
    let found = since(&project, &then, &["src/a.rs"]);
    assert_eq!(stats(&found), [("src/a.rs", 0, 1)]);
}

#[test]
fn newly_ignored_files_and_build_outputs_are_no_change() {
    let project = repository();
    project.write("kept.log", "one\n");
    git(&project, &["add", "kept.log"]);
    project.write(".gitignore", "ignored\n*.log\n");
    project.write("other.log", "ignored\n");
    project.write("notes/d.md", "d\n");
    let then = mark(&project);
    project.write(".gitignore", "*.log\nnotes\n");
    project.write("ignored", "new\n");
    project.write("other.log", "changed\n");
    project.write("kept.log", "two\n");
    project.write("app/__pycache__/x.pyc", "x");
    project.write("node_modules/x/y.js", "y\n");
    let found = since(&project, &then, &[]);
    assert_eq!(stats(&found), [(".gitignore", 1, 1), ("ignored", 1, 0), ("kept.log", 1, 1)], "{}", found.text);
    assert!(found.text.contains("new file mode 100644\n--- /dev/null\n+++ b/ignored\n@@ -0,0 +1 @@\n+new\n"));
}

#[test]
fn modes_links_and_bytes_are_shown() {
    let project = repository();
    project.write("bytes", "a\0b");
    let then = mark(&project);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(project.inside("src/a.rs"), mode).unwrap();
    fs::set_permissions(project.inside("src/b.rs"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink("src/a.rs", project.inside("link")).unwrap();
    project.write("bytes", "a\0c");
    let found = since(&project, &then, &[]);
    assert_eq!(stats(&found), [("bytes", 0, 0), ("link", 1, 0), ("src/a.rs", 0, 0)]);
    for part in [
        "Binary files a/bytes and b/bytes differ\n",
        "new file mode 120000\n--- /dev/null\n+++ b/link\n@@ -0,0 +1 @@\n+src/a.rs\n\\ No newline",
        "diff --git a/src/a.rs b/src/a.rs\nold mode 100644\nnew mode 100755\n",
    ] {
        assert!(found.text.contains(part), "{part}\n{}", found.text);
    }
}

#[test]
fn diffs_are_bounded() {
    let project = repository();
    for n in 0..40 {
        project.write(&format!("big/{n:02}"), "some line of text\n".repeat(2_000));
    }
    project.write("src/a.rs", "changed\n".repeat(200_000));
    let found = differs(&project, &[]);
    assert!(found.cut && found.text.len() < DIFF_BYTES_MAX + 100, "{}", found.text.len());
    assert_eq!(found.files.len(), 41);
    assert!(found.text.contains("rest of this file's diff is cut") && found.text.contains("diff --git a/big/00"));
    let stopped = CancellationToken::new();
    stopped.cancel();
    assert_eq!(diff(&project.inside(""), &[], &stopped).unwrap_err().to_string(), "stopped before it was done");
}

/// A repository whose settings name programs at every place that git would run one while looking or committing.
#[test]
fn a_hostile_repository_runs_nothing() {
    let project = repository();
    let marker = project.outside("ran");
    let evil = project.outside("evil.sh");
    fs::write(&evil, format!("#!/bin/sh\ntouch {}\ncat\n", marker.display())).unwrap();
    let evil = format!("sh {}", evil.display());
    for key in [
        "diff.external",
        "diff.bad.command",
        "diff.bad.textconv",
        "filter.bad.clean",
        "filter.bad.smudge",
        "filter.b=c.clean",
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "gpg.program",
        "trailer.call-key.command",
        "credential.helper",
    ] {
        git(&project, &["config", key, &evil]);
    }
    for (key, value) in [
        ("filter.bad.required", "true"),
        ("log.showSignature", "true"),
        ("commit.gpgSign", "true"),
        ("core.hooksPath", "hooks"),
    ] {
        git(&project, &["config", key, value]);
    }
    for hook in ["pre-commit", "commit-msg", "post-commit", "prepare-commit-msg", "post-index-change"] {
        project.write(&format!("hooks/{hook}"), format!("#!/bin/sh\n{evil}\n"));
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(project.inside(&format!("hooks/{hook}")), mode).unwrap();
    }
    project.write(".gitattributes", "*.rs diff=bad filter=bad\n*.md filter=b=c\n");
    project.write("src/a.rs", "changed\n");
    project.write("notes/c.md", "changed\n");
    project.write("src/new.rs", "new\n");

    let found = differs(&project, &[]);
    assert!(found.text.contains("+changed") && found.text.contains("-two"), "{}", found.text);
    let then = mark(&project);
    project.write("src/b.rs", "more\n");
    assert_eq!(stats(&since(&project, &then, &[])), [("src/b.rs", 1, 1)]);
    for tool in ["git_status", "git_diff", "git_log"] {
        project.call(tool, json!({})).unwrap();
    }
    let told = project.refused("git_commit", json!({ "message": "m", "paths": ["src"] }));
    assert!(told.contains("content filters (`b=c`, `bad`)"), "{told}");
    for section in ["filter.bad", "filter.b=c"] {
        git(&project, &["config", "--remove-section", section]);
    }
    project.call("git_commit", json!({ "message": "m", "paths": ["src"] })).unwrap();
    project.call("git_log", json!({})).unwrap();
    assert!(!marker.exists(), "something of the repository was run");
    project.write("src/a.rs", "changed again\n");
    git(&project, &["diff", "HEAD"]);
    assert!(marker.exists(), "the traps are set: plain git steps into one");
}

#[test]
fn a_hostile_submodule_runs_nothing() {
    let project = repository();
    let marker = project.outside("ran");
    project.write("sub/x.rs", "x\n");
    let inner =
        |args: &[&str]| git(&project, &[&["-C", "sub", "-c", "user.name=A", "-c", "user.email=a@b"], args].concat());
    inner(&["init", "--quiet"]);
    inner(&["add", "--all"]);
    inner(&["commit", "--quiet", "-m", "inner"]);
    git(&project, &["add", "sub"]);
    git(&project, &["commit", "--quiet", "-m", "sub"]);
    inner(&["config", "core.fsmonitor", &format!("touch {}", marker.display())]);
    inner(&["config", "filter.bad.clean", &format!("touch {}; cat", marker.display())]);
    project.write("sub/.gitattributes", "* filter=bad\n");
    project.write("sub/x.rs", "changed\n");
    differs(&project, &[]);
    mark(&project);
    project.call("git_status", json!({})).unwrap();
    assert!(!marker.exists(), "something of the submodule was run");
    git(&project, &["status"]);
    assert!(marker.exists(), "the traps are set: plain git steps into one");
}

#[test]
fn the_tools_tell_a_model_what_git_knows() {
    let project = repository();
    assert_eq!(project.call("git_status", json!({})).unwrap(), "## main\n[nothing is changed]\n");
    assert_eq!(project.call("git_diff", json!({})).unwrap(), "[no changes since the last commit]");
    project.write("src/a.rs", "one\n");
    project.write("n\u{1b}w", "x\n");
    let status = project.call("git_status", json!({})).unwrap();
    assert!(status.starts_with("## main\n M src/a.rs\n?? ") && !status.contains('\u{1b}'), "{status}");
    let shown = project.call("git_diff", json!({ "paths": ["src"] })).unwrap();
    assert!(shown.starts_with("[1 file, +0 −1 lines]\ndiff --git a/src/a.rs") && shown.contains("-two"), "{shown}");
    let stat = project.call("git_diff", json!({ "paths": ["src"], "stat": true })).unwrap();
    assert_eq!(stat, "[1 file, +0 −1 lines]\nsrc/a.rs +0 −1\n");
    let log = project.call("git_log", json!({ "path": "src", "count": 5 })).unwrap();
    assert!(log.ends_with(" Ada: begin\n") && log.lines().count() == 1, "{log}");
    assert_eq!(project.call("git_log", json!({ "path": "none" })).unwrap(), "[no commits touched this]");
    assert!(project.refused("git_diff", json!({ "paths": ["/etc"] })).contains("outside"));
    git(&project, &["checkout", "--quiet", "-b", "work"]);
    git(&project, &["commit", "--quiet", "-a", "-m", "less"]);
    git(&project, &["checkout", "--quiet", "main"]);
    std::fs::write(project.inside("src/elsewhere.rs"), "1\n").unwrap();
    git(&project, &["add", "src/elsewhere.rs"]);
    git(&project, &["commit", "--quiet", "-m", "elsewhere"]);
    git(&project, &["checkout", "--quiet", "work"]);
    let since = project.call("git_diff", json!({ "paths": ["src"], "stat": true, "base": "main" })).unwrap();
    assert_eq!(since, "[1 file, +0 −1 lines]\nsrc/a.rs +0 −1\n");
    assert_eq!(project.call("git_diff", json!({ "paths": ["src"] })).unwrap(), "[no changes since the last commit]");
    let unchanged = project.call("git_diff", json!({ "paths": ["src"], "base": "work" })).unwrap();
    assert_eq!(unchanged, "[no changes since `work`]");
    for unknown in ["nosuch", "--all", ""] {
        let told = project.refused("git_diff", json!({ "base": unknown }));
        assert_eq!(
            told,
            format!("`{unknown}` is no commit, branch or tag of this repository; `git_log` lists the latest commits")
        );
    }
    assert_eq!(project.action("git_diff", &json!({ "paths": ["src", "a"] })).unwrap().target, ".");
    assert_eq!(project.action("git_diff", &json!({ "paths": ["src/a", "src/x/*.rs"] })).unwrap().target, "src");
}

#[test]
fn a_commit_is_shown_then_made_once() {
    let project = repository();
    project.write("src/a.rs", "one\nchanged\n");
    project.write("src/new.rs", "new\n");
    fs::remove_file(project.inside("src/b.rs")).unwrap();
    project.write("notes/c.md", "staged\n");
    git(&project, &["add", "notes/c.md"]);
    let input = json!({ "message": "Change a\n\nBecause.", "paths": ["src"] });
    let intent = project.action("git_commit", &input).unwrap();
    assert_eq!((intent.kind, intent.target.as_str()), (ActionKind::Write, "src/**/*"));
    assert!(
        intent.preview.starts_with("commit `src`: Change a\n\nBecause.\n[3 files, +2 −2 lines]\n"),
        "{}",
        intent.preview
    );
    assert!(intent.preview.contains("+changed") && intent.preview.contains("+new"), "{}", intent.preview);
    assert!(!intent.preview.contains("staged"), "{}", intent.preview);

    let told = text(project.run("git_commit", &input, &intent, false).unwrap());
    assert!(told.starts_with("committed as `") && told.ends_with("` (3 files)"), "{told}");
    let message = git(&project, &["log", "-1", "--format=%B"]);
    assert_eq!(message.trim(), format!("Change a\n\nBecause.\n\nCall-Key: {}", intent.after.unwrap()));
    let files = git(&project, &["show", "--format=", "--name-status", "--no-renames", "HEAD"]);
    assert_eq!(files, "M\tsrc/a.rs\nD\tsrc/b.rs\nA\tsrc/new.rs\n");
    assert_eq!(git(&project, &["status", "--short"]), "M  notes/c.md\n", "what else was staged still is");

    // A process that died after the commit comes back: it is found, not made again.
    let again = text(project.run("git_commit", &input, &intent, true).unwrap());
    assert!(told.starts_with(&again), "{again}");
    assert_eq!(git(&project, &["rev-list", "--count", "HEAD"]).trim(), "2");
    assert!(project.refused("git_commit", input).contains("nothing in `src` differs"));
}

#[test]
fn a_commit_is_what_was_shown_or_nothing() {
    let project = repository();
    project.write("src/a.rs", "judged\n");
    let input = json!({ "message": "m", "paths": ["src/a.rs"] });
    let intent = project.action("git_commit", &input).unwrap();
    project.write("src/a.rs", "moved on\n");
    let err = project.run("git_commit", &input, &intent, true).unwrap_err();
    assert!(matches!(&err, ToolError::Correctable(words) if words.contains("changed since")), "{err}");
    let other = json!({ "message": "m", "paths": ["src"] });
    assert!(matches!(project.run("git_commit", &other, &intent, false), Err(ToolError::Fatal(_))));
    assert_eq!(git(&project, &["rev-list", "--count", "HEAD"]).trim(), "1");
    for (input, want) in [
        (json!({ "message": " ", "paths": ["src"] }), "empty"),
        (json!({ "message": "m", "paths": [] }), "no paths"),
        (json!({ "message": "m\n\nCall-Key: 1", "paths": ["src"] }), "Call-Key"),
        (json!({ "message": "m", "paths": ["notes"] }), "nothing in `notes` differs"),
    ] {
        let told = project.refused("git_commit", input);
        assert!(told.contains(want), "{told}");
    }
    fs::write(project.inside(".git/index.lock"), "").unwrap();
    assert!(project.refused("git_commit", input).contains("index.lock` blocks git"));
}

#[test]
fn a_first_commit_can_be_made_too() {
    let project = Project::new();
    init(&project);
    project.write("a", "a\n");
    let input = json!({ "message": "first", "paths": ["."] });
    let told = project.call("git_commit", input).unwrap();
    assert!(told.contains("(1 file)"), "{told}");
    assert_eq!(git(&project, &["rev-list", "--count", "HEAD"]).trim(), "1");
}

/// Settings that come and go while git is asked, as a planted folder of git's can: whatever git finds there, nothing of
/// it reaches out of the sandbox; and a shared folder that git did not make is not believed.
#[cfg(target_os = "linux")]
#[test]
fn settings_that_appear_between_two_questions_reach_nothing() {
    use std::sync::atomic::{AtomicBool, Ordering};

    use max_team_tools::command::{Engine, engine};

    if !engine().is_ok_and(Engine::has_namespaces) {
        eprintln!("SKIPPED: {:?}", engine());
        return;
    }
    let project = repository();
    let marker = project.outside("ran");
    project.write(".gitattributes", "*.rs filter=e\n");
    commit(&project, "attributes");
    let config = fs::read_to_string(project.inside(".git/config")).unwrap();
    let trap = format!("{config}[filter \"e\"]\n\tclean = \"touch {}; cat\"\n", marker.display());
    project.write("src/a.rs", "one\nchanged\n");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                fs::write(project.inside(".git/config"), &trap).unwrap();
                std::thread::yield_now();
                fs::write(project.inside(".git/config"), &config).unwrap();
            }
        });
        for _ in 0..12 {
            let _ = diff(&project.inside(""), &[], &CancellationToken::new());
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(!marker.exists(), "a filter reached out of its walls");
    fs::write(project.inside(".git/config"), &config).unwrap();
    for folder in ["refs", "objects"] {
        fs::create_dir_all(project.inside("evil").join(folder)).unwrap();
    }
    fs::write(project.inside(".git/commondir"), "../evil\n").unwrap();
    let told = diff(&project.inside(""), &[], &CancellationToken::new());
    assert!(!matches!(told, Ok(Some(_))), "{told:?}");
}
