//! What is out of sight: not listed, not searched, not opened, not quoted, not guessed at.

use std::os::unix::fs::symlink;

use max_team_core::agent::Constraints;
use max_team_core::policy::{ActionKind, Mode, Rules, Verdict, judge};
use serde_json::{Value, json};

use crate::project::Project;

pub(crate) fn constraints(dirs: &[&str], blocked: &[&str]) -> Constraints {
    let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    Constraints {
        allowed_dirs: (!dirs.is_empty()).then(|| list(dirs)),
        blocked_patterns: list(blocked),
        ..Constraints::default()
    }
}

fn fill(project: &Project) {
    project.write("prod.env", "KEY=needle\n");
    project.write(".env", "KEY=needle\n");
    project.write("src/main.rs", "// needle\n");
    project.write("src/Secrets/a/b.txt", "needle\n");
    project.write("docs/api/a.md", "needle\n");
    project.write("docs/b.md", "needle\n");
}

#[test]
fn blocked_names_are_neither_listed_nor_searched() {
    let blocked = constraints(&["."], &["*.env", ".env*", "*secret*"]);
    for project in Project::both() {
        fill(&project);
        let project = project.within(&blocked);
        assert_eq!(
            project.call("list_dir", json!({})).unwrap(),
            "./\n  docs/\n  src/\n[2 names not for you to see left out]"
        );
        let deep = project.call("list_dir", json!({ "depth": 5 })).unwrap();
        assert!(!deep.contains("Secrets") && !deep.contains("env") && deep.contains("[3 names not for"), "{deep}");
        assert_eq!(
            project.call("search_code", json!({ "pattern": "needle", "files_only": true })).unwrap(),
            "docs/api/a.md\ndocs/b.md\nsrc/main.rs\n\n[3 files; 2 names not for you to see left out]"
        );
        let only = project.call("list_dir", json!({ "path": "src" })).unwrap();
        assert_eq!(only, "src/\n  main.rs  10 bytes\n[1 name not for you to see left out]");
    }
}

#[test]
fn an_agent_confined_to_a_folder_sees_its_parent_folders() {
    for project in Project::both() {
        fill(&project);
        let project = project.within(&constraints(&["docs/api"], &[]));
        assert_eq!(
            project.call("list_dir", json!({ "depth": 5 })).unwrap(),
            "./\n  docs/\n    api/\n      a.md  7 bytes\n[4 names not for you to see left out]"
        );
        let found = project.call("search_code", json!({ "pattern": "needle" })).unwrap();
        assert_eq!(found, "docs/api/a.md\n1:needle\n\n[1 match in 1 file; 3 names not for you to see left out]");
    }
}

/// The gate denies the name; that there is such a file, and what is in it, never gets as far as an action or an error.
#[test]
fn nothing_is_looked_at_before_the_gate_says_no() {
    let blocked = constraints(&[], &["*.env"]);
    for project in Project::both() {
        fill(&project);
        let project = project.within(&blocked);
        let rules = Rules { approved: true, ..Rules::new(Mode::BypassPermissions, &blocked) };
        let calls: [(&str, Value, ActionKind); 6] = [
            ("read_file", json!({ "path": "prod.env" }), ActionKind::Read),
            ("read_file", json!({ "path": "missing.env" }), ActionKind::Read),
            ("search_code", json!({ "pattern": "KEY", "path": "prod.env" }), ActionKind::Read),
            ("list_dir", json!({ "path": "x.env" }), ActionKind::Read),
            ("write_file", json!({ "path": "prod.env", "content": "KEY=needle\n" }), ActionKind::Write),
            ("edit_file", json!({ "path": "prod.env", "old": "KEY=needl", "new": "" }), ActionKind::Write),
        ];
        for (tool, input, kind) in calls {
            let action = project.action(tool, &input).unwrap();
            let bare = (action.kind, action.preview.as_str(), action.before, action.after);
            assert_eq!(bare, (kind, "", None, None), "{tool}");
            assert_eq!(judge(&rules, "a_tool", &action).verdict, Verdict::Deny, "{tool}");
            assert!(project.run(tool, &input, &action, false).is_err(), "{tool}: a second wall");
        }
        let quoted = project.action("edit_file", &json!({ "path": "prod.env", "old": "KEY =needle", "new": "x" }));
        assert!(!format!("{quoted:?}").contains("KEY=needle"));
        let guess = project.refused("read_file", json!({ "path": "prod.en" }));
        assert!(!guess.contains("prod.env"), "{guess}");
        assert_eq!(project.read("prod.env"), "KEY=needle\n");
    }
}

#[test]
fn links_are_no_way_around() {
    let blocked = constraints(&[], &["*.env", "*secret*"]);
    for project in Project::both() {
        fill(&project);
        symlink("prod.env", project.inside("notes.txt")).unwrap();
        symlink("src/Secrets", project.inside("open")).unwrap();
        symlink("src/main.rs", project.inside("main")).unwrap();
        symlink("../prod.env", project.inside("docs/x")).unwrap();
        let project = project.within(&blocked);
        for (tool, path) in [("read_file", "notes.txt"), ("list_dir", "open"), ("read_file", "open/a/b.txt")] {
            let words = project.refused(tool, json!({ "path": path }));
            assert!(words.contains("symbolic link"), "{path}: {words}");
        }
        let words = project.refused("search_code", json!({ "pattern": "needle", "path": "open" }));
        assert!(words.contains("symbolic link"), "{words}");
        let listed = project.call("list_dir", json!({ "depth": 2 })).unwrap();
        for line in ["notes.txt -> ?", "open -> ?", "main -> src/main.rs", "x -> ?"] {
            assert!(listed.contains(line), "{listed}");
        }
        assert!(!listed.contains("env") && !listed.contains("Secrets"), "{listed}");
    }
}

/// A link to what can be seen by its own name is followed, where the kernel says what was opened.
#[test]
fn links_that_stay_in_sight_are_followed() {
    let [project, _] = Project::both();
    project.write("src/main.rs", "fn main() {}\n");
    project.write("prod.env", "KEY=needle\n");
    project.write(".env.example", "KEY=\n");
    symlink("src/main.rs", project.inside("main")).unwrap();
    symlink("src", project.inside("code")).unwrap();
    symlink("prod.env", project.inside("notes.txt")).unwrap();
    symlink(project.outside(""), project.inside("out")).unwrap();
    let project = project.within(&constraints(&[], &["*.env", ".env*", "*secret*"]));
    for path in ["main", "code/main.rs"] {
        let told = project.call("read_file", json!({ "path": path })).unwrap();
        assert!(told.contains("fn main"), "{path}: {told}");
    }
    assert!(project.call("list_dir", json!({ "path": "code" })).unwrap().contains("main.rs"));
    assert!(project.call("read_file", json!({ "path": ".env.example" })).unwrap().contains("KEY="));
    for path in ["notes.txt", "out/x"] {
        let words = project.refused("read_file", json!({ "path": path }));
        assert!(words.contains("symbolic link"), "{path}: {words}");
    }
}

/// A second name of a blocked file is the blocked file, whatever the gate says to hard links.
#[test]
fn a_hard_link_to_a_blocked_file_is_that_file() {
    for project in Project::both() {
        project.write(".hidden/deep/prod.env", "KEY=needle\n");
        project.write("one.txt", "fine\n");
        std::fs::hard_link(project.inside(".hidden/deep/prod.env"), project.inside("notes.txt")).unwrap();
        std::fs::hard_link(project.inside("one.txt"), project.inside("two.txt")).unwrap();
        let free = project.action("read_file", &json!({ "path": "notes.txt" })).unwrap();
        let project = project.within(&constraints(&[], &["*.env"]));
        let calls = [
            ("read_file", json!({ "path": "notes.txt" })),
            ("search_code", json!({ "path": "notes.txt", "pattern": "KEY" })),
            ("query_log", json!({ "path": "notes.txt" })),
        ];
        for (tool, input) in calls {
            let told = project.refused(tool, input.clone());
            assert!(told.contains("has a name that is blocked") && !told.contains("needle"), "{tool}: {told}");
            // Not even if somebody has said yes to it.
            let told = project.run(tool, &input, &free, false).unwrap_err().to_string();
            assert!(told.contains("has a name that is blocked"), "{tool}: {told}");
        }
        assert_eq!(project.action("read_file", &json!({ "path": "two.txt" })).unwrap().kind, ActionKind::ReadLinked);
        assert_eq!(project.call("read_file", json!({ "path": "two.txt" })).unwrap(), "1\tfine\n");
    }
}
