//! Listing: order, depth, ignore rules, bounds.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::project::Project;

#[test]
fn folders_are_shown_in_order() {
    for project in Project::both() {
        project.write("b.txt", "x".repeat(2_048));
        project.write("a/deep/er.txt", "");
        project.write("a/z", "1");
        project.write(".hidden", "");
        symlink("../out", project.inside("out")).unwrap();
        assert_eq!(
            project.call("list_dir", json!({})).unwrap(),
            "./\n  .hidden  0 bytes\n  a/\n  b.txt  2.0 KiB\n  out -> ../out\n"
        );
        assert_eq!(
            project.call("list_dir", json!({ "path": "a", "depth": 2 })).unwrap(),
            "a/\n  deep/\n    er.txt  0 bytes\n  z  1 byte\n"
        );
        fs::create_dir(project.inside("none")).unwrap();
        assert_eq!(project.call("list_dir", json!({ "path": "none" })).unwrap(), "none/\n[empty]");
        let err = project.refused("list_dir", json!({ "path": "b.txt" }));
        assert!(err.contains("not a folder"), "{err}");
        let err = project.refused("list_dir", json!({ "path": "bb" }));
        assert!(err.contains("does not exist"), "{err}");
    }
}

#[test]
fn ignored_names_are_left_out_of_deep_lists_only() {
    let project = Project::new();
    project.write(".gitignore", "target/\n*.log\n!keep.log\n");
    project.write("target/debug/x", "");
    project.write("a/b.log", "");
    project.write("a/keep.log", "");
    project.write("a/.gitignore", "/c\n");
    project.write("a/c", "");
    project.write("c", "");
    project.write(".git/HEAD", "");
    assert_eq!(
        project.call("list_dir", json!({ "depth": 3 })).unwrap(),
        "./\n  .git/\n  .gitignore  24 bytes\n  a/\n    .gitignore  3 bytes\n    keep.log  0 bytes\n  c  0 bytes\n[3 names ignored by .gitignore not shown]"
    );
    assert!(project.call("list_dir", json!({})).unwrap().contains("target/"));
    assert!(project.call("list_dir", json!({ "path": "a" })).unwrap().contains("b.log"));
    let deep = project.call("list_dir", json!({ "path": "a", "depth": 2 })).unwrap();
    assert!(!deep.contains("b.log") && deep.contains("keep.log"), "{deep}");
}

#[test]
fn near_names_come_before_deep_ones() {
    let project = Project::new();
    for n in 0..1_200 {
        project.write(&format!("a/{n:04}"), "");
    }
    project.write("z", "");
    let told = project.call("list_dir", json!({ "depth": 2 })).unwrap();
    assert!(told.contains("\n  z  0 bytes\n"), "{told}");
    assert!(told.ends_with("[at least 202 more names not shown; list the folders inside one by one]"), "{told}");
    assert_eq!(told.lines().count(), 1_002);
}

#[test]
fn names_cannot_act_on_a_terminal() {
    let project = Project::new();
    project.write("a\u{1b}[2Jb\nc", "");
    let told = project.call("list_dir", json!({})).unwrap();
    assert_eq!(told, "./\n  a\\u{1b}[2Jb\\u{a}c  0 bytes\n");
}
