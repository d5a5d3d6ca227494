//! `query_log` over files of a project.

use std::fs;

use max_team_core::agent::Constraints;
use max_team_core::policy::ActionKind;
use serde_json::json;

use crate::project::Project;

fn project() -> Project {
    let project = Project::new();
    project.write(".gitignore", "logs/\n*.log\n");
    project.write(
        "logs/web.log",
        "2026-11-15T08:00:00Z INFO started\n\
         2026-11-15T08:10:00Z ERROR request failed\n    at handler (web.js:1)\n    at main\n\
         2026-11-15T08:20:00Z WARN slow \u{1b}[31mred\n",
    );
    project.write("logs/db.log", "2026-11-15T08:15:00Z ERROR connection lost\n");
    project.write("logs/notes.txt", "2026-11-15T08:15:00Z ERROR not a log\n");
    project
}

fn query(project: &Project, input: serde_json::Value) -> String {
    project.call("query_log", input).unwrap()
}

#[test]
fn lines_of_all_logs_are_put_in_order() {
    let project = project();
    let told = query(&project, json!({ "level": "error" }));
    assert_eq!(
        told,
        "logs/web.log:2: 2026-11-15T08:10:00Z ERROR request failed\n\
         logs/web.log:3:     at handler (web.js:1)\n\
         logs/web.log:4:     at main\n\
         logs/db.log:1: 2026-11-15T08:15:00Z ERROR connection lost\n\
         [4 lines of 6 fit; 2 files of logs in `.`]"
    );
    let told =
        query(&project, json!({ "path": "logs", "since": "2026-11-15T08:15:00Z", "until": "2026-11-15T08:20:01Z" }));
    assert_eq!(
        told,
        "logs/db.log:1: 2026-11-15T08:15:00Z ERROR connection lost\n\
         logs/web.log:5: 2026-11-15T08:20:00Z WARN slow \\u{1b}[31mred\n\
         [2 lines of 6 fit; 2 files of logs in `logs`]"
    );
    let told = query(&project, json!({ "path": "logs/web.log", "pattern": "AT (handler|main)", "limit": 1 }));
    assert_eq!(
        told,
        "logs/web.log:4:     at main\n\
         [the newest 1 of 2 lines that fit; narrow it with `since`, `level` or `pattern`]"
    );
    assert!(query(&project, json!({ "glob": "*.txt" })).starts_with("logs/notes.txt:1: "));
    assert!(query(&project, json!({ "pattern": "nowhere" })).starts_with("[no line fits, of 6 lines"));
}

#[test]
fn logs_are_files_like_others() {
    let project = project();
    assert_eq!(project.action("query_log", &json!({ "path": "logs" })).unwrap().kind, ActionKind::Read);
    fs::hard_link(project.outside("").join("x.log"), project.inside("logs/linked.log")).unwrap_err();
    fs::write(project.outside("x.log"), "outside\n").unwrap();
    fs::hard_link(project.outside("x.log"), project.inside("logs/linked.log")).unwrap();
    std::os::unix::fs::symlink(project.outside("x.log"), project.inside("logs/sym.log")).unwrap();
    let named = json!({ "path": "logs/linked.log" });
    assert_eq!(project.action("query_log", &named).unwrap().kind, ActionKind::ReadLinked);
    let told = query(&project, json!({}));
    assert!(!told.contains("outside") && told.contains("1 file could not be read"), "{told}");
    for input in [
        json!({ "path": "../out" }),
        json!({ "path": "logs/sym.log" }),
        json!({ "pattern": "(" }),
        json!({ "since": "soon" }),
    ] {
        project.refused("query_log", input);
    }
    let constraints = Constraints { blocked_patterns: vec!["db*".to_owned()], ..Constraints::default() };
    let told = query(&project.within(&constraints), json!({ "level": "error" }));
    assert!(!told.contains("db.log"), "{told}");
}

#[test]
fn the_end_of_a_huge_log_is_read() {
    let project = Project::new();
    project.write("huge.log", "");
    let file = fs::OpenOptions::new().write(true).open(project.inside("huge.log")).unwrap();
    // Sparse: a gigabyte that takes no room.
    file.set_len(1 << 30).unwrap();
    drop(file);
    let mut whole = fs::OpenOptions::new().append(true).open(project.inside("huge.log")).unwrap();
    std::io::Write::write_all(&mut whole, b"\nERROR at the end\n").unwrap();
    let told = query(&project, json!({ "path": "huge.log", "limit": 1 }));
    assert!(told.starts_with("huge.log: ERROR at the end\n") && told.contains("not everything"), "{told}");
}

#[test]
fn the_journal_is_a_command_that_the_gate_judges() {
    let project = Project::new();
    let action =
        project.action("query_log", &json!({ "source": "journald", "unit": "ssh.service", "since": "1h" })).unwrap();
    assert_eq!(action.kind, ActionKind::Execute);
    assert_eq!(
        action.target,
        "journalctl --no-pager --quiet --output=json --lines=200 --unit=ssh.service --since=-3600s"
    );
    // Where there is no journal, that is said; where there is one, it is read.
    match project.call("query_log", json!({ "source": "journald", "limit": 3 })) {
        Ok(told) => assert!(told.contains(" fit") || told.contains("no line fits"), "{told}"),
        Err(err) => assert!(err.to_string().starts_with("the journal cannot be read"), "{err}"),
    }
}
