//! Writing and editing: as told, whole, once.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use max_team_core::hash::Hash;
use max_team_core::limits::WRITE_BYTES_MAX;
use max_team_core::policy::{Action, ActionKind, Permissions, Repeatability};
use max_team_tools::{Spec, ToolError};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::project::{Project, text};

fn mode(project: &Project, path: &str) -> u32 {
    fs::metadata(project.inside(path)).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_write_is_told_before_it_is_made() {
    let project = Project::new();
    let input = json!({ "path": "src/new/a.txt", "content": "one\ntwo\n" });
    let action = project.action("write_file", &input).unwrap();
    assert_eq!(
        action,
        Action {
            kind: ActionKind::Write,
            preview: "--- /dev/null\n+++ b/src/new/a.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n".into(),
            after: Some(Hash::of("one\ntwo\n")),
            ..Action::read("src/new/a.txt")
        }
    );
    assert_eq!(project.names(""), [""; 0], "looking changes nothing");

    let told = text(project.run("write_file", &input, &action, false).unwrap());
    assert_eq!(told, "created `src/new/a.txt` (2 lines, 8 bytes)");
    assert_eq!(project.read("src/new/a.txt"), "one\ntwo\n");
    assert_eq!(project.names("src/new"), ["a.txt"]);

    let edit = json!({ "path": "src/new/a.txt", "old": "two", "new": "2\n3" });
    let action = project.action("edit_file", &edit).unwrap();
    assert_eq!(action.before, Some(Hash::of("one\ntwo\n")));
    assert_eq!(action.after, Some(Hash::of("one\n2\n3\n")));
    assert!(action.preview.ends_with("@@ -1,2 +1,3 @@\n one\n-two\n+2\n+3\n"), "{}", action.preview);
    let told = text(project.run("edit_file", &edit, &action, false).unwrap());
    assert_eq!(told, "edited `src/new/a.txt` (+2 −1 lines)");
    assert_eq!(project.read("src/new/a.txt"), "one\n2\n3\n");
}

#[test]
fn classes_say_what_a_crash_means() {
    let project = Project::new();
    let classes: Vec<(&str, Repeatability)> =
        project.registry.specs().map(|Spec { name, class, .. }| (name.as_str(), *class)).collect();
    let want = [
        ("browser", Repeatability::Opaque),
        ("coverage_report", Repeatability::Opaque),
        ("edit_file", Repeatability::Idempotent),
        ("geocode", Repeatability::Pure),
        ("git_commit", Repeatability::Keyed),
        ("git_diff", Repeatability::Pure),
        ("git_log", Repeatability::Pure),
        ("git_status", Repeatability::Pure),
        ("list_dir", Repeatability::Pure),
        ("query_log", Repeatability::Pure),
        ("query_metrics", Repeatability::Pure),
        ("read_file", Repeatability::Pure),
        ("run_shell", Repeatability::Opaque),
        ("run_test", Repeatability::Opaque),
        ("search_code", Repeatability::Pure),
        ("shell_output", Repeatability::Pure),
        ("shell_stop", Repeatability::Idempotent),
        ("web_fetch", Repeatability::Pure),
        ("web_search", Repeatability::Pure),
        ("write_file", Repeatability::Idempotent),
    ];
    assert_eq!(classes, want);
}

/// The world between the gate and the call, and between a crash and the next process.
#[test]
fn a_change_is_made_once_or_not_at_all() {
    let cases: [(&str, Value, &str); 3] = [
        ("write_file", json!({ "path": "f", "content": "after" }), "before"),
        ("edit_file", json!({ "path": "f", "old": "before", "new": "after" }), "before"),
        ("edit_file", json!({ "path": "f", "old": "b", "new": "bb" }), "b b"),
    ];
    for resumed in [false, true] {
        for (tool, input, before) in &cases[..2] {
            let project = Project::new();
            project.write("f", before);
            let intent = project.action(tool, input).unwrap();

            // Somebody else changed it meanwhile: theirs stays.
            project.write("f", "theirs");
            let err = project.run(tool, input, &intent, resumed).unwrap_err();
            assert!(matches!(&err, ToolError::Correctable(words) if words.contains("changed since")), "{err:?}");
            assert_eq!(project.read("f"), "theirs");
            fs::remove_file(project.inside("f")).unwrap();
            assert!(project.run(tool, input, &intent, resumed).is_err());
            assert_eq!(project.names(""), [""; 0]);

            // As it was: done. Again: already done, and an edit is not applied twice.
            project.write("f", before);
            project.run(tool, input, &intent, resumed).unwrap();
            assert_eq!(project.read("f"), "after");
            let inode = fs::metadata(project.inside("f")).unwrap().ino();
            let told = text(project.run(tool, input, &intent, resumed).unwrap());
            assert_eq!(told.contains("nothing was changed"), !resumed, "{told}");
            assert_eq!(fs::metadata(project.inside("f")).unwrap().ino(), inode);
        }
        let (tool, input, before) = &cases[2];
        let project = Project::new();
        project.write("f", before);
        assert!(project.action(tool, input).is_err(), "two places");
    }
}

#[test]
fn a_file_that_appears_meanwhile_is_not_overwritten() {
    let project = Project::new();
    let input = json!({ "path": "f", "content": "mine" });
    let intent = project.action("write_file", &input).unwrap();
    project.write("f", "theirs");
    assert!(matches!(project.run("write_file", &input, &intent, false), Err(ToolError::Correctable(_))));
    assert_eq!(project.read("f"), "theirs");
}

#[test]
fn only_what_was_judged_is_done() {
    let project = Project::new();
    project.write("a", "x");
    let intent = project.action("write_file", &json!({ "path": "a", "content": "y" })).unwrap();
    for other in [json!({ "path": "a", "content": "z" }), json!({ "path": "b", "content": "y" })] {
        let told = project.run("write_file", &other, &intent, false);
        assert!(matches!(told, Err(ToolError::Fatal(_))), "{told:?}");
    }
    assert_eq!(project.read("a"), "x");
    assert_eq!(project.names(""), ["a"]);
}

#[test]
fn an_edit_without_change_needs_no_approval() {
    let project = Project::new();
    project.write("a", "same");
    let input = json!({ "path": "a", "content": "same" });
    let intent = project.action("write_file", &input).unwrap();
    assert_eq!((intent.kind, intent.before), (ActionKind::Read, intent.after));
    assert!(text(project.run("write_file", &input, &intent, false).unwrap()).contains("nothing was changed"));
    project.write("a", "other");
    assert!(project.run("write_file", &input, &intent, false).is_err(), "judged as a look, so it never writes");
    assert_eq!(project.read("a"), "other");
}

#[test]
fn permissions_stay_and_read_only_means_it() {
    let project = Project::new();
    project.write("run.sh", "a\n");
    fs::set_permissions(project.inside("run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    project.call("write_file", json!({ "path": "run.sh", "content": "b\n" })).unwrap();
    assert_eq!(mode(&project, "run.sh"), 0o750);
    project.call("edit_file", json!({ "path": "run.sh", "old": "b", "new": "c" })).unwrap();
    assert_eq!((mode(&project, "run.sh"), project.read("run.sh").as_str()), (0o750, "c\n"));

    project.call("write_file", json!({ "path": "new", "content": "" })).unwrap();
    assert_eq!(mode(&project, "new") & !0o644, 0);

    fs::set_permissions(project.inside("run.sh"), fs::Permissions::from_mode(0o444)).unwrap();
    let err = project.refused("write_file", json!({ "path": "run.sh", "content": "d" }));
    assert!(err.contains("read-only"), "{err}");
}

#[test]
fn line_endings_of_a_replaced_file_stay() {
    let project = Project::new();
    let table = [
        ("a\r\nb\r\n", "x\ny\n", "x\r\ny\r\n"),
        ("a\r\nb\r\n", "x\r\ny\n", "x\r\ny\n"),
        ("a\nb\n", "x\ny\n", "x\ny\n"),
        ("a\nb\nc\r\n", "x\ny\n", "x\ny\n"),
        ("one line", "x\n", "x\n"),
    ];
    for (before, content, want) in table {
        project.write("f", before);
        let input = json!({ "path": "f", "content": content });
        let intent = project.action("write_file", &input).unwrap();
        project.run("write_file", &input, &intent, false).unwrap();
        assert_eq!(project.read("f"), want, "{before:?} {content:?}");
        // A process that died after it has nothing left to do.
        let again = project.run("write_file", &input, &intent, true).unwrap();
        assert!(crate::project::text(again).starts_with("wrote `f`"));
        assert_eq!(project.read("f"), want);
    }
}

#[test]
fn a_file_that_the_run_was_given_by_name_is_not_written() {
    let project = Project::new();
    let root = project.inside("").canonicalize().unwrap();
    let guarded = vec![root.join("team/mine.yaml").to_str().unwrap().to_owned()];
    let permissions = Permissions { root: root.to_str().unwrap().to_owned(), guarded, ..Permissions::default() };
    let project = project.under(&permissions);
    let err = project.refused("write_file", json!({ "path": "team/mine.yaml", "content": "x" }));
    assert!(err.contains("`team/mine.yaml` may not be written: this run was started with it"), "{err}");
    project.call("write_file", json!({ "path": "team/other.yaml", "content": "x" })).unwrap();
}

#[test]
fn some_places_are_never_written() {
    let project = Project::new();
    project.write(".git/config", "[core]\n");
    let paths = [
        ".git/hooks/pre-commit",
        ".git/config",
        ".GIT/config",
        "sub/.git/hooks/x",
        "./.git//config",
        "a/../.git/config",
        ".g\u{200c}it/config",
        ".git",
        ".max-team/config.yaml",
        ".Max-Team/config.yaml",
        ".claude/settings.json",
        "sub/.mcp.json",
        "config/agents.yaml",
        "Config/config.yaml",
        ".",
    ];
    for path in paths {
        let err = project.refused("write_file", json!({ "path": path, "content": "x" }));
        assert!(err.contains("may not be written") || err.contains("project folder"), "{path}: {err}");
    }
    let err = project.refused("edit_file", json!({ "path": ".git/config", "old": "core", "new": "x" }));
    assert!(err.contains("git"), "{err}");
    assert_eq!(project.names(""), [".git"]);
    for path in [".gitignore", ".github/a.yml", "a.git/b", ".max-team.md"] {
        project.call("write_file", json!({ "path": path, "content": "x" })).unwrap();
    }
}

#[test]
fn large_and_odd_files_are_refused() {
    let project = Project::new();
    let most = usize::try_from(WRITE_BYTES_MAX).unwrap();
    project.write("large", vec![b'x'; most + 1]);
    project.write("latin", b"caf\xe9");
    for (tool, input, want) in [
        ("write_file", json!({ "path": "large", "content": "x" }), "8.0 MiB"),
        ("edit_file", json!({ "path": "latin", "old": "caf", "new": "x" }), "not UTF-8"),
        ("edit_file", json!({ "path": "none", "old": "a", "new": "b" }), "write_file"),
        ("write_file", json!({ "path": "latin/a", "content": "x" }), "not a folder"),
    ] {
        let err = project.refused(tool, input);
        assert!(err.contains(want), "{err}");
    }
    let action = project.action("write_file", &json!({ "path": "latin", "content": "x" })).unwrap();
    let want = "note: this replaces 4 bytes of binary data\n--- /dev/null\n+++ b/latin\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n";
    assert_eq!(action.preview, want);
}

#[test]
fn leftovers_of_the_dead_are_swept_and_nothing_else() {
    let project = Project::new();
    project.write(".max-team-1-0.tmp", "left by a process that was killed");
    project.write(".max-team-1-0.tmp.txt", "a user's");
    project.write(".max-team-x-0.tmp", "a user's");
    let living = fs::File::create(project.inside(".max-team-2-0.tmp")).unwrap();
    living.lock().unwrap();
    project.call("write_file", json!({ "path": "a", "content": "x" })).unwrap();
    assert_eq!(project.names(""), [".max-team-1-0.tmp.txt", ".max-team-2-0.tmp", ".max-team-x-0.tmp", "a"]);
    drop(living);
    project.call("write_file", json!({ "path": "a", "content": "y" })).unwrap();
    assert_eq!(project.names(""), [".max-team-1-0.tmp.txt", ".max-team-x-0.tmp", "a"]);
}

#[test]
fn many_writers_in_one_folder_do_not_disturb_each_other() {
    let project = Project::new();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let project = &project;
            scope.spawn(move || {
                for round in 0..25 {
                    let input = json!({ "path": format!("d/{writer}"), "content": format!("{round}") });
                    project.call("write_file", input).unwrap();
                }
            });
        }
    });
    assert_eq!(project.names("d"), ["0", "1", "2", "3"]);
    assert!((0..4).all(|writer| project.read(&format!("d/{writer}")) == "24"));
}

fn lines() -> impl Strategy<Value = String> {
    let line = prop_oneof!["[ab]{0,3}", "é{0,2}", "\\PC{0,6}"];
    let ending = prop_oneof![Just("\n"), Just("\r\n"), Just("")];
    prop::collection::vec((line, ending), 0..8)
        .prop_map(|lines| lines.into_iter().map(|(line, ending)| line + ending).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn after_a_write_the_hash_is_the_one_that_was_told(before in prop::option::of(lines()), after in lines()) {
        let project = Project::new();
        if let Some(before) = &before {
            project.write("f", before);
        }
        let input = json!({ "path": "f", "content": after });
        let intent = project.action("write_file", &input).unwrap();
        project.run("write_file", &input, &intent, false).unwrap();
        prop_assert_eq!(intent.before, before.map(Hash::of));
        prop_assert_eq!(Some(Hash::of(project.read("f"))), intent.after);
    }

    #[test]
    fn an_edit_does_what_was_told_or_says_why_not(
        file in lines(),
        span in any::<(prop::sample::Index, prop::sample::Index)>(),
        new in lines(),
        all in any::<bool>(),
    ) {
        let project = Project::new();
        project.write("f", &file);
        let letters: Vec<char> = file.chars().collect();
        let (from, to) = (span.0.index(letters.len() + 1), span.1.index(letters.len() + 1));
        let old: String = letters[from.min(to)..from.max(to)].iter().collect();
        let input = json!({ "path": "f", "old": old, "new": new, "all": all });
        match project.action("edit_file", &input) {
            Ok(intent) => {
                for resumed in [false, true] {
                    project.run("edit_file", &input, &intent, resumed).unwrap();
                    prop_assert_eq!(Some(Hash::of(project.read("f"))), intent.after);
                }
            }
            Err(ToolError::Correctable(words)) => {
                prop_assert!(!words.contains("not in the file"), "it was cut out of it: {}", words);
                prop_assert_eq!(project.read("f"), file);
            }
            Err(fatal) => prop_assert!(false, "{}", fatal),
        }
    }
}
