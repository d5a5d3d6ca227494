//! Nothing outside the root is read or written, by any name, link or race.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use max_team_core::policy::ActionKind;
use max_team_tools::{Registry, Root, ToolContext, ToolError};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

use crate::project::{Project, names};

const SECRET: &str = "the secret outside";

/// A project with every kind of link that leads out, and the paths that try to use them.
fn set_up(project: &Project) -> Vec<String> {
    fs::write(project.outside("secret"), SECRET).unwrap();
    fs::create_dir(project.outside("folder")).unwrap();
    fs::write(project.outside("folder/secret"), SECRET).unwrap();
    project.write("real/a.txt", "inside");
    let out = project.outside("");
    let out = out.to_str().unwrap().trim_end_matches('/');
    symlink(project.outside("secret"), project.inside("file-link")).unwrap();
    symlink("../out/secret", project.inside("relative-link")).unwrap();
    symlink(out, project.inside("dir-link")).unwrap();
    symlink("../../out", project.inside("real/dir-link")).unwrap();
    symlink("dir-link", project.inside("link-to-link")).unwrap();
    symlink("/proc/self/root", project.inside("magic")).unwrap();
    symlink("loop", project.inside("loop")).unwrap();
    let paths = [
        "../out/secret",
        "real/../../out/secret",
        "./../out/secret",
        "real/../real/../../out/secret",
        "file-link",
        "relative-link",
        "dir-link/secret",
        "dir-link/folder/secret",
        "dir-link/../secret",
        "real/dir-link/secret",
        "link-to-link/secret",
        "magic/etc/passwd",
        "loop",
        "loop/secret",
        "/etc/passwd",
        "~/secret",
        "",
        "real/a.txt\0/../../out/secret",
        "\n../out/secret",
    ];
    let mut paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
    paths.push(format!("{out}/secret"));
    paths.push(format!("{}-evil/secret", project.inside("").to_str().unwrap().trim_end_matches('/')));
    paths.push("x/".repeat(3_000));
    paths.push("n".repeat(300));
    paths
}

#[test]
fn no_path_leads_out() {
    for project in Project::both() {
        let paths = set_up(&project);
        let outside = names(&project.outside(""));
        for path in &paths {
            let calls: [(&str, Value); 5] = [
                ("read_file", json!({ "path": path })),
                ("list_dir", json!({ "path": path })),
                ("search_code", json!({ "path": path, "pattern": "." })),
                ("write_file", json!({ "path": path, "content": "overwritten" })),
                ("edit_file", json!({ "path": path, "old": "secret", "new": "overwritten" })),
            ];
            for (tool, input) in calls {
                match project.call(tool, input) {
                    Err(ToolError::Correctable(words)) => {
                        assert!(!words.contains(SECRET) && words.len() < 6_000, "{tool} {path}: {words}");
                    }
                    // A name like `dir-link/../secret` is one inside, once it is clean.
                    Ok(told) => {
                        assert!(path == "dir-link/../secret" && !told.contains(SECRET), "{tool} {path}: {told}")
                    }
                    Err(fatal) => panic!("{tool} {path}: {fatal}"),
                }
            }
        }
        assert_eq!(names(&project.outside("")), outside);
        assert_eq!(fs::read_to_string(project.outside("secret")).unwrap(), SECRET);
        assert_eq!(fs::read_to_string(project.outside("folder/secret")).unwrap(), SECRET);
        let deep = project.call("list_dir", json!({ "depth": 10 })).unwrap();
        assert!(!deep.contains("folder/") && deep.contains("dir-link -> "), "{deep}");
        let found = project.call("search_code", json!({ "pattern": SECRET })).unwrap();
        assert!(found.contains("no matches"), "{found}");
    }
}

#[test]
fn links_that_stay_inside_are_read_but_never_written_through() {
    for (project, is_followed) in Project::both().into_iter().zip([true, false]) {
        project.write("docs/a.md", "hello\n");
        symlink("docs", project.inside("guide")).unwrap();
        symlink("../docs/a.md", project.inside("docs/b.md")).unwrap();
        for path in ["guide/a.md", "docs/b.md"] {
            let told = project.call("read_file", json!({ "path": path }));
            assert_eq!(told.is_ok_and(|told| told == "1\thello\n"), is_followed, "{path}");
            let err = project.refused("write_file", json!({ "path": path, "content": "x" }));
            assert!(err.contains("symbolic link"), "{err}");
        }
        let err = project.refused("write_file", json!({ "path": "guide/new/c.md", "content": "x" }));
        assert!(err.contains("symbolic link `guide`"), "{err}");
        assert_eq!(project.read("docs/a.md"), "hello\n");
    }
}

#[test]
fn absolute_paths_inside_are_understood() {
    for project in Project::both() {
        project.write("a/b.txt", "x\n");
        let path = project.inside("a/b.txt");
        let action = project.action("read_file", &json!({ "path": path })).unwrap();
        assert_eq!((action.kind, action.target.as_str()), (ActionKind::Read, "a/b.txt"));
        let action = project.action("list_dir", &json!({ "path": project.inside("") })).unwrap();
        assert_eq!(action.target, ".");
    }
}

#[test]
fn a_root_given_through_a_link_is_known_by_both_names() {
    let project = Project::new();
    project.write("a.txt", "x\n");
    symlink(project.inside(""), project.outside("alias")).unwrap();
    let cx = ToolContext::new(Arc::new(Root::open(project.outside("alias")).unwrap()));
    for path in [project.outside("alias/a.txt"), project.inside("a.txt")] {
        let prepared = project.registry.prepare(&cx, "read_file", &json!({ "path": path })).unwrap();
        assert_eq!(prepared.action.target, "a.txt");
    }
}

#[test]
fn a_hard_link_is_told_apart_and_never_written_through() {
    for project in Project::both() {
        fs::write(project.outside("secret"), SECRET).unwrap();
        fs::hard_link(project.outside("secret"), project.inside("h")).unwrap();
        project.write("plain", SECRET);

        let read = json!({ "path": "h" });
        let action = project.action("read_file", &read).unwrap();
        assert_eq!(action.kind, ActionKind::ReadLinked);
        assert!(project.run("read_file", &read, &action, false).is_ok());
        let named = json!({ "path": "h", "pattern": "secret" });
        assert_eq!(project.action("search_code", &named).unwrap().kind, ActionKind::ReadLinked);
        let found = project.call("search_code", json!({ "pattern": "secret" })).unwrap();
        assert!(found.contains("plain") && found.contains("1 hard-linked file not searched"), "{found}");

        // An edit would leave a copy that can be read without being asked.
        let err = project.refused("edit_file", json!({ "path": "h", "old": "secret", "new": "x" }));
        assert!(err.contains("other names"), "{err}");
        let write = json!({ "path": "h", "content": "mine" });
        assert!(project.action("write_file", &write).unwrap().preview.contains("keep the old content"));
        project.call("write_file", write).unwrap();
        assert_eq!(project.read("h"), "mine");
        assert_eq!(fs::read_to_string(project.outside("secret")).unwrap(), SECRET);
    }
}

#[test]
fn a_file_that_becomes_a_hard_link_after_the_gate_is_refused() {
    let project = Project::new();
    project.write("a", "mine");
    let input = json!({ "path": "a" });
    let intent = project.action("read_file", &input).unwrap();
    fs::remove_file(project.inside("a")).unwrap();
    fs::write(project.outside("secret"), SECRET).unwrap();
    fs::hard_link(project.outside("secret"), project.inside("a")).unwrap();
    let told = project.run("read_file", &input, &intent, false).unwrap_err();
    assert!(told.to_string().contains("hard link"), "{told}");
    let search = json!({ "path": "a", "pattern": "." });
    let told = project.run("search_code", &search, &intent, false).unwrap_err();
    assert!(told.to_string().contains("hard link"), "{told}");
}

#[test]
fn pipes_sockets_devices_and_folders_are_refused_without_waiting() {
    for project in Project::both() {
        assert!(Command::new("mkfifo").arg(project.inside("pipe")).status().unwrap().success());
        let _socket = UnixListener::bind(project.inside("socket")).unwrap();
        fs::create_dir(project.inside("folder")).unwrap();
        let mut table = vec![("pipe", "pipe"), ("socket", "socket"), ("folder", "folder")];
        // Making a device takes root.
        let made = Command::new("mknod").arg(project.inside("null")).args(["c", "1", "3"]).status();
        if made.is_ok_and(|status| status.success()) {
            table.push(("null", "device"));
        }
        for (path, want) in table {
            for (tool, input) in [
                ("read_file", json!({ "path": path })),
                ("write_file", json!({ "path": path, "content": "x" })),
                ("edit_file", json!({ "path": path, "old": "a", "new": "b" })),
            ] {
                let err = project.refused(tool, input);
                assert!(err.contains(want), "{tool} {path}: {err}");
            }
        }
        let listed = project.call("list_dir", json!({})).unwrap();
        assert!(listed.contains("pipe  (not a file)"), "{listed}");
        assert!(project.call("search_code", json!({ "pattern": "x" })).is_ok());
    }
}

#[test]
fn magic_links_of_proc_do_not_open() {
    if !Path::new("/proc/self/root").exists() {
        println!("skipped: no /proc here");
        return;
    }
    for root in [Root::open("/proc/self").unwrap(), Root::portable("/proc/self").unwrap()] {
        let cx = ToolContext::new(Arc::new(root));
        let registry = Registry::builtin();
        for path in ["root/etc/passwd", "cwd/Cargo.toml", "exe", "fd/0", "task/../root/etc/passwd"] {
            let told = registry.prepare(&cx, "read_file", &json!({ "path": path }));
            assert!(matches!(told, Err(ToolError::Correctable(_))), "{path}: {told:?}");
        }
        assert!(registry.prepare(&cx, "read_file", &json!({ "path": "stat" })).is_ok());
    }
}

/// Tells the other thread to stop, also when an assertion fails.
struct Guard<'a>(&'a AtomicBool);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Somebody swaps a folder for a link to the outside, back and forth, while files in it are written and read.
#[test]
fn a_folder_swapped_for_a_link_never_leads_out() {
    for project in Project::both() {
        fs::create_dir_all(project.outside("deep/er")).unwrap();
        fs::write(project.outside("secret"), SECRET).unwrap();
        fs::write(project.outside("only-outside"), "").unwrap();
        project.write("a/deep/er/kept", "inside");
        project.write("a/secret", "inside");
        symlink(project.outside(""), project.inside("link")).unwrap();
        let outside = names(&project.outside(""));
        let stop = AtomicBool::new(false);
        let (real, link) = (project.inside("a"), project.inside("link"));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    renameat_with(CWD, &real, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                }
            });
            let _guard = Guard(&stop);
            let mut done = 0;
            for round in 0..200 {
                let path = ["a/new", "a/deep/new", "a/deep/er/new", "a/made/here/new"][round % 4];
                let written = project.call("write_file", json!({ "path": path, "content": round.to_string() }));
                assert!(!matches!(written, Err(ToolError::Fatal(_))), "{written:?}");
                done += usize::from(written.is_ok());
                for (tool, input) in [
                    ("read_file", json!({ "path": "a/secret" })),
                    ("search_code", json!({ "pattern": "secret|inside" })),
                    ("search_code", json!({ "pattern": "secret|inside", "path": "a" })),
                ] {
                    if let Ok(told) = project.call(tool, input) {
                        assert!(!told.contains(SECRET), "{told}");
                    }
                }
                if let Ok(told) = project.call("list_dir", json!({ "depth": 5 })) {
                    assert!(!told.contains("only-outside"), "{told}");
                }
            }
            println!("{done} of 200 writes went through");
        });
        assert_eq!(names(&project.outside("")), outside);
        assert_eq!(names(&project.outside("deep")), ["er"]);
        assert_eq!(names(&project.outside("deep/er")), [""; 0]);
        assert_eq!(fs::read_to_string(project.outside("secret")).unwrap(), SECRET);
    }
}

/// Somebody swaps a file for a link to the outside, back and forth, while it is read, written and edited.
#[test]
fn a_file_swapped_for_a_link_never_leads_out() {
    for project in Project::both() {
        fs::write(project.outside("secret"), SECRET).unwrap();
        fs::write(project.outside("hard"), SECRET).unwrap();
        project.write("f", "inside");
        symlink(project.outside("secret"), project.inside("link")).unwrap();
        fs::hard_link(project.outside("hard"), project.inside("twin")).unwrap();
        let stop = AtomicBool::new(false);
        let [file, link, twin] = ["f", "link", "twin"].map(|name| project.inside(name));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    for other in [&link, &twin] {
                        // The other side replaces names meanwhile; then there is nothing to swap.
                        let _ = renameat_with(CWD, &file, CWD, other, RenameFlags::EXCHANGE);
                    }
                }
            });
            let _guard = Guard(&stop);
            for round in 0..300 {
                let read = json!({ "path": "f" });
                // Whoever was allowed to read a plain file gets a plain file, or nothing.
                if let Ok(intent) = project.action("read_file", &read)
                    && intent.kind == ActionKind::Read
                    && let Ok(output) = project.run("read_file", &read, &intent, false)
                {
                    assert!(!crate::project::text(output).contains(SECRET));
                }
                for (tool, input) in [
                    ("write_file", json!({ "path": "f", "content": format!("inside {round}") })),
                    ("edit_file", json!({ "path": "f", "old": "inside", "new": "inside inside" })),
                    ("edit_file", json!({ "path": "f", "old": "secret", "new": "overwritten" })),
                ] {
                    let done = project.call(tool, input);
                    assert!(!matches!(done, Err(ToolError::Fatal(_))), "{done:?}");
                }
            }
        });
        for name in ["secret", "hard"] {
            assert_eq!(fs::read_to_string(project.outside(name)).unwrap(), SECRET);
        }
        assert_eq!(names(&project.outside("")), ["hard", "secret"]);
    }
}
