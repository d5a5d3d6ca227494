//! What nobody in a turn can mend ends the turn: a full disk, a folder that is gone.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use max_team_tools::{Registry, Root, ToolContext, ToolError};
use serde_json::json;
use tempfile::TempDir;

use crate::project::{Project, names};

/// A small file system that only one child process sees, and that goes with it, even if we are killed.
struct SmallDisk {
    child: Child,
    folder: TempDir,
}

impl SmallDisk {
    fn mount() -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let script = "mount -t tmpfs -o size=64k none \"$0\" && echo ready && exec cat";
        let mut child = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", script])
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line != "ready\n" {
            child.wait().unwrap();
            return None;
        }
        Some(Self { child, folder })
    }

    fn path(&self) -> String {
        format!("/proc/{}/root{}", self.child.id(), self.folder.path().display())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

#[test]
fn a_full_disk_ends_the_turn_and_leaves_the_old_file() {
    let Some(disk) = SmallDisk::mount() else {
        println!("skipped: mounting takes rights that this user does not have");
        return;
    };
    let cx = ToolContext::new(Arc::new(Root::open(disk.path()).unwrap()));
    let registry = Registry::builtin();
    let write = |content: &str| {
        let input = json!({ "path": "a/f", "content": content });
        let prepared = registry.prepare(&cx, "write_file", &input)?;
        registry.run(&cx, "write_file", input, &prepared.action, false)
    };
    write("small").unwrap();
    let told = write(&"x".repeat(200_000)).unwrap_err();
    assert!(matches!(&told, ToolError::Fatal(words) if words.contains("full")), "{told:?}");
    let folder = format!("{}/a", disk.path());
    assert_eq!(names(folder.as_ref()), ["f"], "no half-written file stays");
    assert_eq!(fs::read_to_string(format!("{folder}/f")).unwrap(), "small");
    write("still works").unwrap();
}

#[test]
fn a_project_folder_that_is_gone_ends_the_turn() {
    for project in Project::both() {
        project.write("a", "x");
        let read = json!({ "path": "a" });
        let intent = project.action("read_file", &read).unwrap();
        fs::remove_dir_all(project.inside("")).unwrap();
        let told = project.run("read_file", &read, &intent, false);
        assert!(matches!(&told, Err(ToolError::Fatal(words)) if words.contains("is gone")), "{told:?}");
        for path in ["a", "b/c"] {
            let told = project.call("write_file", json!({ "path": path, "content": "x" }));
            assert!(matches!(told, Err(ToolError::Fatal(_))), "{told:?}");
        }
    }
}
