//! What git and tests tell a member who does not see everything: nothing of the rest, in no list, diff or commit.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use max_team_core::agent::Constraints;
use max_team_core::policy::{Mode, Rules, Verdict, Visibility, judge};
use max_team_tools::git::{Diff, diff, diff_seen};
use max_team_tools::{Registry, Root, ToolContext};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::project::{Project, text};
use crate::repository::{commit, git, init, mark, owned, seen_since, stats};
use crate::sight::constraints;

fn blocked() -> Constraints {
    constraints(&["."], &["*.env", ".env*", "*secret*"])
}

fn kept() -> Constraints {
    constraints(&["src"], &[])
}

/// A repository in which everything has changed; what is not for everybody says `hush`.
fn repository() -> Project {
    let project = Project::new();
    init(&project);
    project.write(".env", "KEY=hush\n");
    project.write("config/secrets.yaml", "key: hush\n");
    project.write("config/app.yaml", "port: 1\n");
    project.write("src/a.rs", "one\n");
    commit(&project, "begin");
    project.write(".env", "KEY=hush 2\n");
    project.write("config/secrets.yaml", "key: hush 2\n");
    project.write("config/app.yaml", "port: 2\n");
    project.write("src/a.rs", "two\n");
    project.write("src/new.rs", "new\n");
    project.write("src/prod.env", "KEY=hush\n");
    project
}

/// The same without what somebody who is kept to `src` should see there.
fn kept_repository() -> Project {
    let project = repository();
    fs::remove_file(project.inside("src/prod.env")).unwrap();
    project.within(&kept())
}

fn hushed(told: &str) {
    for word in ["hush", ".env", "secrets"] {
        assert!(!told.contains(word), "{word}: {told}");
    }
}

fn committed(project: &Project) -> String {
    git(project, &["show", "--format=", "--name-only", "--no-renames", "HEAD"])
}

#[test]
fn the_state_has_only_names_that_are_seen() {
    let project = repository().within(&blocked());
    let told = project.call("git_status", json!({})).unwrap();
    assert_eq!(told, "## main\n M config/app.yaml\n M src/a.rs\n?? src/new.rs\n[3 files out of sight left out]\n");
    let told = kept_repository().call("git_status", json!({})).unwrap();
    assert_eq!(told, "## main\n M src/a.rs\n?? src/new.rs\n[3 files out of sight left out]\n");
}

#[test]
fn a_folder_of_a_repository_is_told_by_its_own_names() {
    let project = repository();
    project.write("src/deep/b.rs", "b\n");
    let root = Arc::new(Root::open(project.inside("src")).unwrap());
    let cx = ToolContext {
        sight: Arc::new(Visibility::from_constraints(&constraints(&["deep"], &[]))),
        ..ToolContext::new(root)
    };
    let registry = Registry::builtin();
    let call = |input| {
        let intent = registry.prepare(&cx, "git_status", &input).unwrap().action;
        text(registry.run(&cx, "git_status", input, &intent, false).unwrap())
    };
    assert_eq!(call(json!({})), "## main\n?? deep/\n[3 files out of sight left out]\n");
    let fresh = Project::new();
    init(&fresh);
    fresh.write("all/new/a", "a\n");
    let cx = ToolContext::new(Arc::new(Root::open(fresh.inside("all")).unwrap()));
    let intent = registry.prepare(&cx, "git_status", &json!({})).unwrap().action;
    let told = text(registry.run(&cx, "git_status", json!({}), &intent, false).unwrap());
    assert_eq!(told, "## No commits yet on main\n?? ./\n");
}

#[test]
fn diffs_leave_out_what_is_not_seen() {
    let project = repository().within(&blocked());
    let told = project.call("git_diff", json!({})).unwrap();
    hushed(&told);
    assert!(told.starts_with("[3 files, +3 −2 lines]\n[3 files out of sight left out]\ndiff --git "), "{told}");
    assert!(told.contains("+two") && told.contains("+port: 2") && told.contains("+new"), "{told}");
    let told = project.call("git_diff", json!({ "paths": ["src", "config/*"], "stat": true })).unwrap();
    assert_eq!(
        told,
        "[3 files, +3 −2 lines]\n[2 files out of sight left out]\nconfig/app.yaml +1 −1\nsrc/a.rs +1 −1\nsrc/new.rs +1 −0\n"
    );
    for paths in [json!([".e*"]), json!(["*.env"]), json!(["**/*.env", "config/s*"])] {
        let told = project.call("git_diff", json!({ "paths": paths })).unwrap();
        hushed(&told);
        assert!(told.starts_with("[no changes since the last commit among what you see]\n["), "{told}");
    }
    for paths in [json!([".env"]), json!(["src", "./config//secrets.yaml"]), json!(["src/secrets/*.rs"])] {
        let told = project.refused("git_diff", json!({ "paths": paths }));
        assert!(told.contains("not for you to see: the member's `blocked_patterns`"), "{told}");
    }

    let project = kept_repository();
    let told = project.call("git_diff", json!({})).unwrap();
    hushed(&told);
    assert!(told.starts_with("[2 files, +2 −1 lines]\n[3 files out of sight left out]\n"), "{told}");
    assert!(!told.contains("port") && told.contains("+two"), "{told}");
    let told = project.call("git_diff", json!({ "paths": ["**/*.rs"] })).unwrap();
    assert!(told.starts_with("[2 files, +2 −1 lines]\ndiff"), "{told}");
    let told = project.refused("git_diff", json!({ "paths": ["src", "config/*.yaml"] }));
    assert!(told.contains("`config` is not for you to see: the member's `allowed_dirs` (`src`)"), "{told}");
}

/// Git reads a hard link like any file, whatever else it is called.
#[test]
fn a_tracked_name_of_a_blocked_file_is_not_shown() {
    let project = repository();
    project.write("notes.txt", "mine\n");
    commit(&project, "notes");
    fs::remove_file(project.inside("notes.txt")).unwrap();
    fs::hard_link(project.inside(".env"), project.inside("notes.txt")).unwrap();
    let project = project.within(&blocked());
    for arguments in [json!({}), json!({ "paths": ["notes.txt"] }), json!({ "paths": ["*.txt"] })] {
        let told = project.call("git_diff", arguments).unwrap();
        hushed(&told);
        assert!(told.contains("b/notes.txt\n[not shown: it has other names (hard links)]"), "{told}");
    }
}

/// A name stands for all beneath it, and where a file and a folder take turns that would be too much.
#[test]
fn a_file_that_is_a_folder_now_brings_nothing_along() {
    for (is_staged, is_folder) in [(false, true), (true, true), (false, false)] {
        let project = repository();
        let (file, folder) = ("src/x", "src/x/.env");
        let (before, words) = if is_folder { (file, "was a file\n") } else { (folder, "KEY=hush\n") };
        project.write(before, words);
        commit(&project, "before");
        if is_folder {
            fs::remove_file(project.inside(file)).unwrap();
            project.write(folder, "KEY=hush\n");
        } else {
            fs::remove_dir_all(project.inside(file)).unwrap();
            project.write(file, "is a file\n");
        }
        if is_staged {
            git(&project, &["add", "--all"]);
        }
        let project = project.within(&blocked());
        // The second glob means the file alone.
        for path in ["src", "src/?"] {
            let told = project.call("git_diff", json!({ "paths": [path] })).unwrap();
            hushed(&told);
            assert!(told.contains("diff --git a/src/x b/src/x\n"), "{told}");
            let told = project.refused("git_commit", json!({ "message": "m", "paths": [path] }));
            assert!(told.contains("there is or was a folder with something that is not for you to see"), "{told}");
        }
    }
}

#[test]
fn links_do_not_say_what_they_point_to() {
    let project = repository();
    symlink("a.rs", project.inside("src/old")).unwrap();
    commit(&project, "links");
    fs::remove_file(project.inside("src/old")).unwrap();
    symlink("../.env", project.inside("src/old")).unwrap();
    symlink("../config/secrets.yaml", project.inside("src/fresh")).unwrap();
    for sight in [blocked(), kept()] {
        let found =
            diff_seen(&project.inside(""), &[], &Visibility::from_constraints(&sight), &CancellationToken::new());
        let found = found.unwrap().unwrap();
        hushed(&found.text);
        assert_eq!(stats(&found), [("src/fresh", 0, 0), ("src/old", 1, 1)]);
        assert_eq!(found.text.matches("[not shown: it is a symbolic link]").count(), 2, "{}", found.text);
    }
    let whole = diff(&project.inside(""), &[], &CancellationToken::new()).unwrap().unwrap();
    assert!(whole.text.contains("+../.env"), "{}", whole.text);
}

#[test]
fn code_may_look_with_the_eyes_of_a_member() {
    let project = repository();
    let none = CancellationToken::new();
    let (root, sight) = (project.inside(""), Visibility::from_constraints(&blocked()));
    let whole = diff(&root, &[], &none).unwrap().unwrap();
    assert_eq!((whole.files.len(), whole.hidden), (6, 0));
    let seen = diff_seen(&root, &[], &sight, &none).unwrap().unwrap();
    assert_eq!((seen.files.len(), seen.hidden, seen.cut), (3, 3, false));
    hushed(&seen.text);
    assert_eq!(diff_seen(&root, &[], &Visibility::default(), &none).unwrap().unwrap(), whole);

    let then = mark(&project);
    assert_eq!(seen_since(&project, &then, &[], &sight), Diff::default());
    project.write(".env", "KEY=hush 3\n");
    project.write("src/prod.env", "KEY=hush 3\n");
    project.write("more.env", "KEY=hush\n");
    project.write("src/a.rs", "three\n");
    commit(&project, "everything");
    fs::remove_file(project.inside("config/secrets.yaml")).unwrap();
    fs::hard_link(project.inside(".env"), project.inside("twin")).unwrap();
    std::os::unix::fs::symlink(".env", project.inside("way")).unwrap();
    let found = seen_since(&project, &then, &[], &sight);
    hushed(&found.text);
    assert_eq!((found.hidden, found.files.len(), found.files[0].path.as_str()), (4, 3, "src/a.rs"));
    assert!(found.text.starts_with("[4 files out of sight left out]\n") && found.text.contains("+three"));
    assert!(
        found.text.contains("b/twin\n[not shown: it has other names")
            && found.text.contains("b/way\n[not shown: it is a symb")
    );
    let found = seen_since(&project, &then, &["src"], &sight);
    assert_eq!((found.hidden, found.files.len()), (1, 1));
    assert_eq!(seen_since(&project, &then, &[], &Visibility::default()).files.len(), 7);
}

#[test]
fn the_history_of_what_is_not_seen_is_not_told() {
    let project = repository();
    commit(&project, "all of it");
    project.write(".env", "KEY=hush 4\n");
    commit(&project, "only there");
    git(&project, &["config", "log.diffMerges", "on"]);
    let project = project.within(&blocked());
    let told = project.call("git_log", json!({})).unwrap();
    hushed(&told);
    assert_eq!(told.lines().count(), 3);
    for path in [".env", "config/secrets.yaml", "gone.env"] {
        let told = project.refused("git_log", json!({ "path": path }));
        assert!(told.contains("not for you to see: the member's `blocked_patterns`"), "{told}");
    }
    for path in [".e*", "*", ".en[v]", ":(glob).e*"] {
        let told = project.call("git_log", json!({ "path": path })).unwrap();
        assert_eq!(told, "[no commits touched this]", "{path}: it is no glob");
    }
    let project = kept_repository();
    assert!(project.call("git_log", json!({ "path": "src" })).unwrap().ends_with("Ada: begin\n"));
    assert!(project.refused("git_log", json!({ "path": "config" })).contains("`allowed_dirs` (`src`)"));
}

#[test]
fn a_commit_holds_nothing_that_is_not_seen() {
    let project = repository();
    git(&project, &["add", ".env", "src/prod.env"]);
    let project = project.within(&blocked());
    for paths in [json!([".env"]), json!(["src", "config/secrets.yaml"]), json!(["src/prod.env"])] {
        let told = project.refused("git_commit", json!({ "message": "m", "paths": paths }));
        assert!(told.contains("not for you to see: the member's `blocked_patterns`"), "{told}");
    }
    for paths in [json!([".e*"]), json!(["**/*.env", "config/s*"])] {
        let told = project.refused("git_commit", json!({ "message": "m", "paths": paths }));
        assert!(told.contains(", among what you see, differs from the last commit"), "{told}");
    }
    let input = json!({ "message": "m", "paths": ["."] });
    let intent = project.action("git_commit", &input).unwrap();
    hushed(&intent.preview);
    let head = "commit `.`: m\n[3 files, +3 −2 lines]\n[3 files out of sight left out]\n";
    assert!(intent.preview.starts_with(head), "{}", intent.preview);
    let told = text(project.run("git_commit", &input, &intent, false).unwrap());
    assert!(told.ends_with("(3 files)"), "{told}");
    assert_eq!(committed(&project), "config/app.yaml\nsrc/a.rs\nsrc/new.rs\n");
    let left = git(&project, &["status", "--short"]);
    assert_eq!(left, "M  .env\n M config/secrets.yaml\nA  src/prod.env\n", "staged stays staged");

    let project = kept_repository();
    let told = project.refused("git_commit", json!({ "message": "m", "paths": ["src", "config"] }));
    assert!(told.contains("`config` is not for you to see: the member's `allowed_dirs` (`src`)"), "{told}");
    project.call("git_commit", json!({ "message": "m", "paths": ["."] })).unwrap();
    assert_eq!(committed(&project), "src/a.rs\nsrc/new.rs\n");
}

/// What is judged is a path of what would be committed, so the rules that read paths hold.
#[test]
fn the_gate_judges_a_commit_by_its_files() {
    let writes = |patterns: &[&str]| Constraints { write_patterns: Some(owned(patterns)), ..Constraints::default() };
    let table = [
        (json!(["src/a.rs"]), "src/a.rs", Constraints::default(), true),
        (json!(["src"]), "src/**/*", Constraints::default(), true),
        (json!(["src", "config"]), "**/*", Constraints::default(), true),
        (json!(["src", "config"]), "**/*", kept(), false),
        (json!(["src"]), "src/**/*", kept(), true),
        (json!(["config/app.yaml"]), "config/app.yaml", kept(), false),
        (json!(["src"]), "src/**/*", blocked(), true),
        (json!([".env", "src/a.rs"]), "**/*", writes(&["*.rs"]), false),
        (json!(["src/a.rs"]), "src/a.rs", writes(&["*.rs"]), true),
        (json!(["src"]), "src/**/*", writes(&["src/**"]), true),
        (json!(["src"]), "src/**/*", writes(&["src*"]), false),
        (json!(["src"]), "src/**/*", writes(&["src/*"]), false),
        (json!(["src"]), "src/**/*", writes(&["config/**"]), false),
    ];
    let project = repository();
    for (paths, target, constraints, want) in table {
        let action = project.action("git_commit", &json!({ "message": "m", "paths": paths })).unwrap();
        assert_eq!(action.target, target, "{paths}");
        let rules = Rules::new(Mode::AcceptEdits, &constraints);
        let said = judge(&rules, "a_tool", &action);
        assert_eq!(said.verdict == Verdict::Allow, want, "{paths} {constraints:?}: {}", said.rule);
    }
    let (none, owns) = (Constraints::default(), owned(&["src/**"]));
    let rules = Rules { approved: true, owns: Some(&owns), ..Rules::new(Mode::Default, &none) };
    for (paths, want) in [(json!(["src"]), Verdict::Allow), (json!(["src", "config"]), Verdict::Ask)] {
        let action = project.action("git_commit", &json!({ "message": "m", "paths": paths })).unwrap();
        assert_eq!(judge(&rules, "a_tool", &action).verdict, want, "{paths}");
    }
}

#[test]
fn tests_are_chosen_only_among_what_is_seen() {
    let project = Project::new();
    project.write("pytest.ini", "");
    project.write("tests/test_a.py", "");
    project.write("tests/test_secret.py", "");
    project.write("secret/package.json", r#"{"scripts":{"test":"x","coverage":"y"}}"#);
    symlink("test_secret.py", project.inside("tests/test_b.py")).unwrap();
    let project = project.within(&blocked());
    for input in [json!({ "path": "tests/test_b.py" }), json!({ "filter": "tests/test_b.py::a" })] {
        assert!(project.refused("run_test", input).contains("symbolic link"));
    }
    for (tool, input) in [
        ("run_test", json!({ "path": "tests/test_secret.py" })),
        ("run_test", json!({ "path": "tests/no_secret.py" })),
        ("run_test", json!({ "path": "secret" })),
        ("run_test", json!({ "filter": "tests/test_secret.py" })),
        ("run_test", json!({ "filter": " ./tests/test_secret.py::test_it" })),
        ("run_test", json!({ "filter": project.inside("tests/test_secret.py") })),
        ("coverage_report", json!({ "path": "secret" })),
    ] {
        let told = project.refused(tool, input.clone());
        assert!(told.contains("not for you to see: the member's `blocked_patterns` (`*secret*`)"), "{input}: {told}");
    }
    let named = project.action("run_test", &json!({ "filter": "rotates_secret" })).unwrap();
    assert_eq!(named.target, "python3 -m pytest -k rotates_secret", "a name is no path");
    let seen = project.action("run_test", &json!({ "path": "tests/test_a.py" })).unwrap();
    assert_eq!(seen.target, "python3 -m pytest tests/test_a.py");
}
