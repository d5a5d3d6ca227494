//! Searching: what is found, what is left out, in which order, within which bounds.

use std::fs::File;

use max_team_core::limits::{SEARCH_LINE_BYTES_MAX, SEARCH_MATCHES_MAX, TOOL_RESULT_BYTES_MAX};
use max_team_tools::ToolError;
use serde_json::json;

use crate::project::Project;

fn sample() -> Project {
    let project = Project::new();
    project.write("src/lib.rs", "fn one() {}\nfn two() {}\n// ONE more\n");
    project.write("src/deep/a.rs", "one\n");
    project.write("b.txt", "zero\r\none\r\n");
    project.write(".gitignore", "target/\n");
    project.write("target/gen.rs", "one\n");
    project.write(".hidden/one.rs", "one\n");
    project.write(".git/one", "one\n");
    project.write("image.bin", b"one\n\0\0one\n");
    project
}

#[test]
fn matches_come_by_file_in_order() {
    let project = sample();
    let found = |input| project.call("search_code", input).unwrap();
    let all = "b.txt\n2:one\n\nsrc/deep/a.rs\n1:one\n\nsrc/lib.rs\n1:fn one() {}\n\n[3 matches in 3 files]";
    assert_eq!(found(json!({ "pattern": "one" })), all);
    let table = [
        (json!({ "pattern": "one$" }), "b.txt\n2:one\n\nsrc/deep/a.rs\n1:one\n\n[2 matches in 2 files]"),
        (json!({ "pattern": "one()", "literal": true }), "src/lib.rs\n1:fn one() {}\n\n[1 match in 1 file]"),
        (
            json!({ "pattern": "fn", "context": 1 }),
            "src/lib.rs\n1:fn one() {}\n2:fn two() {}\n3-// ONE more\n\n[2 matches in 1 file]",
        ),
        (json!({ "pattern": "one", "glob": "*.rs", "files_only": true }), "src/deep/a.rs\nsrc/lib.rs\n\n[2 files]"),
        (json!({ "pattern": "one", "glob": "src/*.rs", "files_only": true }), "src/lib.rs\n\n[1 file]"),
        (json!({ "pattern": "one", "glob": "./src/**/a.{rs,ts}", "files_only": true }), "src/deep/a.rs\n\n[1 file]"),
        (json!({ "pattern": "one", "glob": "!*.rs", "files_only": true }), "b.txt\n\n[1 file]"),
        (json!({ "pattern": "one", "path": "src/deep" }), "src/deep/a.rs\n1:one\n\n[1 match in 1 file]"),
        (json!({ "pattern": "one", "path": "b.txt" }), "b.txt\n2:one\n\n[1 match in 1 file]"),
        (
            json!({ "pattern": "ONE more", "ignore_case": true, "path": "src/lib.rs" }),
            "src/lib.rs\n3:// ONE more\n\n[1 match in 1 file]",
        ),
        // What is hidden or ignored is searched when it is named.
        (json!({ "pattern": "one", "path": ".hidden" }), ".hidden/one.rs\n1:one\n\n[1 match in 1 file]"),
        (json!({ "pattern": "one", "path": "target" }), "target/gen.rs\n1:one\n\n[1 match in 1 file]"),
        (json!({ "pattern": "one", "path": "image.bin" }), "[no matches in 0 files; 1 binary file not searched]"),
        (json!({ "pattern": "nowhere", "path": "src" }), "[no matches in 2 files]"),
    ];
    for (input, want) in table {
        assert_eq!(found(input.clone()), want, "{input}");
    }
}

#[test]
fn rules_of_the_repository_above_hold_too() {
    let project = Project::new();
    std::fs::create_dir(project.inside("../.git")).unwrap();
    std::fs::write(project.inside("../.gitignore"), "build/\n/in/made.rs\n").unwrap();
    project.write("build/a.rs", "one\n");
    project.write("made.rs", "one\n");
    project.write("sub/made.rs", "one\n");
    let told = project.call("search_code", json!({ "pattern": "one", "files_only": true })).unwrap();
    assert_eq!(told, "sub/made.rs\n\n[1 file]");
    // A folder that the repository around it ignores goes by its own rules …
    std::fs::write(project.inside("../.gitignore"), "*\n").unwrap();
    let told = project.call("search_code", json!({ "pattern": "one", "files_only": true })).unwrap();
    assert!(told.ends_with("[3 files]"), "{told}");
    // … and so does a repository inside.
    std::fs::write(project.inside("../.gitignore"), "build/\n").unwrap();
    std::fs::create_dir(project.inside(".git")).unwrap();
    let told = project.call("search_code", json!({ "pattern": "one", "files_only": true })).unwrap();
    assert_eq!(told, "build/a.rs\nmade.rs\nsub/made.rs\n\n[3 files]");
}

#[test]
fn patterns_that_cannot_be_used_are_explained() {
    let project = sample();
    let table = [
        (json!({ "pattern": "" }), "empty"),
        (json!({ "pattern": "a(" }), "unclosed group"),
        (json!({ "pattern": "(?=a)" }), "look-around"),
        (json!({ "pattern": "a\nb" }), "set `literal`"),
        (json!({ "pattern": "a\nb", "literal": true }), "one line"),
        (json!({ "pattern": "\\w{1000}{1000}" }), "set `literal`"),
        (json!({ "pattern": "a", "glob": "a[" }), "glob"),
        (json!({ "pattern": "a", "path": "nowhere" }), "does not exist"),
    ];
    for (input, want) in table {
        let err = project.refused("search_code", input.clone());
        assert!(err.contains(want), "{input}: {err}");
    }
}

#[test]
fn results_are_bounded_and_the_same_every_time() {
    let project = Project::new();
    for n in 0..700 {
        project.write(&format!("d{}/{n:03}.txt", n % 7), format!("match {n}\n"));
    }
    let input = json!({ "pattern": "match" });
    let told = project.call("search_code", input.clone()).unwrap();
    assert_eq!(told.matches("match ").count(), SEARCH_MATCHES_MAX);
    assert!(told.starts_with("d0/000.txt\n1:match 0\n\nd0/007.txt\n"), "{told}");
    assert!(
        told.ends_with("[200 matches in 200 files; there are more; narrow it with `path`, `glob` or a longer pattern]")
    );
    for _ in 0..5 {
        assert_eq!(project.call("search_code", input.clone()).unwrap(), told);
    }
    project.write("one.txt", "match\n".repeat(1_000));
    let told = project.call("search_code", json!({ "pattern": "match", "path": "one.txt" })).unwrap();
    assert!(told.contains("[200 matches in 1 file; there are more"), "{told}");

    let line = format!("{}needle{}\n", "é".repeat(5_000), "x".repeat(5_000));
    project.write("wide/w.js", line.repeat(500));
    let told = project.call("search_code", json!({ "pattern": "needle", "path": "wide", "context": 10 })).unwrap();
    assert!(told.len() <= TOOL_RESULT_BYTES_MAX);
    assert!(told.lines().skip(1).take(10).all(|line| line.len() < SEARCH_LINE_BYTES_MAX + 20));
    assert!(told.contains("é…") || told.contains("éneedlex"), "{}", &told[..600]);
}

#[test]
fn a_line_without_end_is_left_out_not_swallowed() {
    let project = Project::new();
    let file = File::create(project.inside("endless")).unwrap();
    // Spaces, not NULs: this must not be taken for a binary file.
    std::io::Write::write_all(&mut &file, " ".repeat(20 << 20).as_bytes()).unwrap();
    project.write("a", "one\n");
    let told = project.call("search_code", json!({ "pattern": "one" })).unwrap();
    assert_eq!(told, "a\n1:one\n\n[1 match in 1 file; 1 file or folder could not be searched]");
}

#[test]
fn a_cancelled_search_stops() {
    let project = sample();
    for path in [".", "src/lib.rs"] {
        let input = json!({ "pattern": "one", "path": path });
        let intent = project.action("search_code", &input).unwrap();
        project.cx.cancel.cancel();
        let told = project.run("search_code", &input, &intent, false).unwrap_err();
        assert_eq!(told, ToolError::correctable("stopped before it was done"));
    }
}
