//! Folders of one's own: used like those of the project, and nobody else's to reach.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use max_team_core::agent_dirs::AgentDir;
use max_team_core::hash::Hash;
use max_team_core::limits::{OWN_BYTES_MAX, OWN_NAMES_MAX};
use max_team_core::policy::rule::{Anchors, List, Origin, RuleScope};
use max_team_core::policy::{ActionKind, Permissions, Rule};
use max_team_tools::{AgentStore, ToolError};
use serde_json::{Value, json};

use crate::project::{Project, names, text};
use crate::sight::constraints;

const SECRET: &str = "what somebody else keeps";
const ONE: &str = "ses_00000000000000000000000000000001";
const TWO: &str = "ses_00000000000000000000000000000002";

/// A project whose agent has folders of its own, and the user's folder that they lie in.
fn fixture(session: &str, agent: &str) -> (Project, PathBuf) {
    let mut project = Project::new();
    let home = project.outside("home");
    project.cx.stores = stores(&home, session, agent);
    (project, home)
}

fn stores(home: &Path, session: &str, agent: &str) -> Arc<[AgentStore]> {
    Arc::from([AgentStore::files(home, session.parse().unwrap()), AgentStore::data(home, Path::new("/p"), agent)])
}

fn write(path: &str, content: &str) -> Value {
    json!({ "path": path, "content": content })
}

#[test]
fn a_store_is_made_by_the_first_write_and_is_private() {
    let (project, home) = fixture(ONE, "小林/..");
    let input = write("@data/notes/a.md", "one\n");
    let action = project.action("write_file", &input).unwrap();
    assert_eq!((action.kind, action.target.as_str(), action.before), (ActionKind::WriteOwn, "@data/notes/a.md", None));
    assert!(action.preview.contains("+++ b/@data/notes/a.md"), "{}", action.preview);
    for (tool, input) in [("read_file", json!({ "path": "@data/a" })), ("list_dir", json!({ "path": "@files" }))] {
        assert!(project.refused(tool, input).contains("nothing is kept in `@"), "{tool}");
    }
    assert!(!home.exists(), "looking changes nothing");

    let told = text(project.run("write_file", &input, &action, false).unwrap());
    assert_eq!(told, "created `@data/notes/a.md` (1 line, 4 bytes)");
    let store = project.cx.stores[1].path().to_owned();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for folder in [&home.join("data"), &store, &store.join("notes")] {
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
    }
    assert_eq!(mode(&store.join("notes/a.md")), 0o600);
    assert_eq!(names(&project.inside("")), [""; 0], "nothing of it is in the project");

    assert_eq!(project.call("read_file", json!({ "path": "@data/notes/a.md" })).unwrap(), "1\tone\n");
    let edit = json!({ "path": "@data/notes/a.md", "old": "one", "new": "two" });
    assert_eq!(project.call("edit_file", edit).unwrap(), "edited `@data/notes/a.md` (+1 −1 lines)");
    assert_eq!(project.call("list_dir", json!({ "path": "@data" })).unwrap(), "@data/\n  notes/\n");
    let found = project.call("search_code", json!({ "path": "@data", "pattern": "tw" })).unwrap();
    assert!(found.starts_with("@data/notes/a.md\n1:two\n"), "{found}");
    for (tool, input) in
        [("read_file", json!({ "path": "@data/notes/a.md" })), ("list_dir", json!({ "path": "@data" }))]
    {
        assert_eq!(project.action(tool, &input).unwrap().kind, ActionKind::ReadOwn, "{tool}");
    }
    project.call("write_file", write("@data/report.md", "x")).unwrap();
    let missing = project.refused("read_file", json!({ "path": "@data/reports.md" }));
    assert_eq!(missing, "`@data/reports.md` does not exist; did you mean `@data/report.md`?");
    for folder in ["@files", "@data/"] {
        let told = project.refused("write_file", write(folder, "x"));
        assert_eq!(told, format!("`{}` is a folder of your own, not a file", folder.trim_end_matches('/')));
    }
    assert!(!home.join("files").exists());
}

#[test]
fn an_agent_cannot_reach_folders_of_other_agents() {
    let (project, home) = fixture(ONE, "leo");
    let theirs = stores(&home, TWO, "ada");
    for store in theirs.iter() {
        fs::create_dir_all(store.path()).unwrap();
        fs::write(store.path().join("secret"), SECRET).unwrap();
    }
    fs::write(home.join("secret"), SECRET).unwrap();
    let (files, data) = (theirs[0].path(), theirs[1].path());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut paths = vec![
        "@files/../../secret".to_owned(),
        "@files/a/../../secret".to_owned(),
        format!("@files/../{}/secret", name(files)),
        format!("@data/../{}/secret", name(data)),
        format!("@files//{}/secret", files.display()),
        format!("@data/{}/secret", data.display()),
        format!("{}/secret", files.display()),
        format!("{}/secret", data.display()),
        format!("../out/home/files/{}/secret", name(files)),
        "@FILES/secret".to_owned(),
        "@Data/secret".to_owned(),
        "@files\0/secret".to_owned(),
        "@data/secret\0".to_owned(),
        "@files/~/secret".to_owned(),
        "@data/secret".to_owned(),
        "@files/secret".to_owned(),
        "@files/".to_owned() + &"x/".repeat(3_000),
    ];
    for (own, other) in project.cx.stores.iter().zip(theirs.iter()) {
        let label = own.folder().name();
        fs::create_dir_all(own.path()).unwrap();
        let at = |name: &str| own.path().join(name);
        symlink(other.path().join("secret"), at("file-link")).unwrap();
        symlink(other.path(), at("dir-link")).unwrap();
        symlink(format!("../{}", name(other.path())), at("beside")).unwrap();
        symlink("/proc/self/root", at("magic")).unwrap();
        fs::hard_link(other.path().join("secret"), at("twin")).unwrap();
        let links = ["file-link", "dir-link/secret", "beside/secret", "dir-link/new", "twin"];
        paths.extend(links.map(|link| format!("{label}/{link}")));
        paths.push(format!("{label}/magic{}/secret", other.path().display()));
    }
    for path in &paths {
        let calls: [(&str, Value); 5] = [
            ("read_file", json!({ "path": path })),
            ("list_dir", json!({ "path": path })),
            ("search_code", json!({ "path": path, "pattern": "." })),
            ("edit_file", json!({ "path": path, "old": "somebody", "new": "nobody" })),
            ("write_file", write(path, "overwritten")),
        ];
        for (tool, input) in calls {
            match project.call(tool, input) {
                Ok(told) => assert!(!told.contains(SECRET), "{tool} {path}: {told}"),
                Err(ToolError::Correctable(words)) => assert!(!words.contains(SECRET), "{tool} {path}: {words}"),
                Err(fatal) => panic!("{tool} {path}: {fatal}"),
            }
        }
    }
    for store in theirs.iter() {
        assert_eq!(names(store.path()), ["secret"]);
        assert_eq!(fs::read_to_string(store.path().join("secret")).unwrap(), SECRET);
    }
    for label in ["@files", "@data"] {
        let found = project.call("search_code", json!({ "path": label, "pattern": SECRET })).unwrap();
        assert!(found.contains("no matches"), "{found}");
    }
}

#[test]
fn a_link_in_the_place_of_a_store_is_no_store() {
    let (project, home) = fixture(ONE, "leo");
    let theirs = AgentStore::data(&home, Path::new("/p"), "ada");
    fs::create_dir_all(theirs.path()).unwrap();
    fs::write(theirs.path().join("secret"), SECRET).unwrap();
    symlink(theirs.path(), project.cx.stores[1].path()).unwrap();
    for (tool, input) in [("read_file", json!({ "path": "@data/secret" })), ("write_file", write("@data/new", "x"))] {
        assert!(project.refused(tool, input).contains("cannot open `@data`"), "{tool}");
    }
    assert_eq!(names(theirs.path()), ["secret"]);
}

#[test]
fn agents_share_the_files_of_their_session_and_nothing_else() {
    let (mut project, home) = fixture(ONE, "leo");
    project.call("write_file", write("@files/a.md", "for all")).unwrap();
    project.call("write_file", write("@data/a.md", "for me")).unwrap();
    let read = |project: &Project, path: &str| project.call("read_file", json!({ "path": path })).ok();
    // The session, the agent, and what they read of both.
    let table = [
        (ONE, "leo", Some("1\tfor all\n"), Some("1\tfor me\n")),
        (ONE, "ada", Some("1\tfor all\n"), None),
        (ONE, "Leo", Some("1\tfor all\n"), None),
        (TWO, "leo", None, Some("1\tfor me\n")),
        (TWO, "ada", None, None),
    ];
    for (session, agent, files, data) in table {
        project.cx.stores = stores(&home, session, agent);
        let found = (read(&project, "@files/a.md"), read(&project, "@data/a.md"));
        assert_eq!((found.0.as_deref(), found.1.as_deref()), (files, data), "{session} {agent}");
    }
    project.cx.stores = Arc::from([AgentStore::data(&home, Path::new("/q"), "leo")]);
    assert_eq!(read(&project, "@data/a.md"), None, "another project");
}

#[test]
fn a_folder_of_the_project_with_such_a_name_is_reached_by_a_dot() {
    let (project, _) = fixture(ONE, "leo");
    project.write("@files/a.md", "of the project\n");
    let input = json!({ "path": "./@files/a.md" });
    let action = project.action("read_file", &input).unwrap();
    assert_eq!((action.kind, action.target.as_str()), (ActionKind::Read, "./@files/a.md"));
    assert_eq!(project.call("read_file", input).unwrap(), "1\tof the project\n");
    let told = project.call("write_file", write("./@files/b.md", "x")).unwrap();
    assert!(told.starts_with("created `./@files/b.md`") && project.read("@files/b.md") == "x", "{told}");
    let found = project.call("search_code", json!({ "path": "./@files", "pattern": "of the" })).unwrap();
    assert!(found.starts_with("./@files/a.md\n1:"), "{found}");
    assert!(project.call("read_file", json!({ "path": "@files/a.md" })).is_err());
}

#[test]
fn rules_and_blocked_names_hold_there() {
    let (project, _) = fixture(ONE, "leo");
    let root = project.inside("").to_str().unwrap().to_owned();
    for (path, content) in [("@files/a.md", "needle"), ("@files/deep/b.md", "needle"), ("@data/a.pem", "needle")] {
        project.call("write_file", write(path, content)).unwrap();
    }
    let origin = Origin { scope: RuleScope::User, file: "settings.json".into(), line: 1 };
    let anchors = Anchors { root: &root, base: &root, home: "/" };
    let rules = vec![Rule::new(List::Deny, "Read(@files/deep/**)", origin, &anchors)];
    let permissions = Permissions { root: root.clone(), rules, ..Permissions::default() };
    let project = project.under(&permissions);
    let found = project.call("search_code", json!({ "path": "@files", "pattern": "needle" })).unwrap();
    assert!(found.starts_with("@files/a.md\n") && !found.contains("deep/b.md"), "{found}");
    let input = json!({ "path": "@files/deep/b.md" });
    let action = project.action("read_file", &input).unwrap();
    assert_eq!((action.kind, action.target.as_str()), (ActionKind::ReadOwn, "@files/deep/b.md"));
    assert!(project.refused("read_file", input).contains("not for you to see"));
    // What keeps somebody to folders of the project is not about these.
    let project = project.within(&constraints(&["src"], &["*.pem"]));
    assert_eq!(project.call("read_file", json!({ "path": "@files/a.md" })).unwrap(), "1\tneedle\n");
    assert!(project.refused("read_file", json!({ "path": "@data/a.pem" })).contains("blocked_patterns"));
    assert!(project.refused("write_file", write("@files/.git/config", "x")).contains("may not be written"));
    assert!(project.call("write_file", write("@files/agents/leo.md", "a draft")).is_ok());
}

/// What was opened to it is judged as that, so it leads to nothing else.
#[test]
fn nothing_is_reached_through_a_folder_that_was_handed_over() {
    let (mut project, _) = fixture(ONE, "leo");
    project.call("write_file", write("@files/a.md", "kept")).unwrap();
    let skill = project.outside("skill");
    fs::create_dir_all(skill.join("@files")).unwrap();
    fs::write(skill.join("@files/a.md"), "of the skill").unwrap();
    project.cx.folders = Arc::from([("@skill/a".to_owned(), skill)]);
    let path = "@skill/a/@files/a.md";
    assert_eq!(project.call("read_file", json!({ "path": path })).unwrap(), "1\tof the skill\n");
    let found = project.call("search_code", json!({ "path": path, "pattern": "." })).unwrap();
    assert!(found.contains("1:of the skill"), "{found}");
}

#[test]
fn a_write_that_was_made_before_a_crash_is_not_made_again() {
    let (project, _) = fixture(ONE, "leo");
    let input = write("@data/a.md", "one");
    let action = project.action("write_file", &input).unwrap();
    assert_eq!(action.after, Some(Hash::of("one")));
    project.run("write_file", &input, &action, false).unwrap();
    let again = text(project.run("write_file", &input, &action, true).unwrap());
    assert_eq!(again, "wrote `@data/a.md` (3 bytes)");
    fs::write(project.cx.stores[1].path().join("a.md"), "another's").unwrap();
    let told = project.run("write_file", &input, &action, true).unwrap_err();
    assert!(told.to_string().contains("has changed since"), "{told}");
    assert_eq!(project.action("write_file", &write("@data/a.md", "another's")).unwrap().kind, ActionKind::ReadOwn);
}

#[test]
fn a_store_is_bounded_and_says_what_frees_it() {
    let (project, _) = fixture(ONE, "小林");
    project.call("write_file", write("@data/a.md", "one")).unwrap();
    let store = &project.cx.stores[1];
    // Sparse: only its length counts.
    let large = File::create(store.path().join("large")).unwrap();
    large.set_len(OWN_BYTES_MAX - 4).unwrap();
    let full = project.refused("write_file", write("@data/b.md", "four"));
    assert!(
        full.starts_with("`@data` is full: it has 63.9 MiB in 2 names, and at most 64.0 MiB in 2000 names are kept"),
        "{full}"
    );
    assert!(full.ends_with("The user frees it with `max-team files clear --agent '小林'`"), "{full}");
    assert!(!store.path().join("b.md").exists());
    assert!(project.call("write_file", write("@data/a.md", "1")).is_ok(), "what makes it smaller is taken");
    large.set_len(0).unwrap();
    for number in 2..OWN_NAMES_MAX {
        File::create(store.path().join(number.to_string())).unwrap();
    }
    assert!(project.refused("write_file", write("@data/b.md", "four")).contains("2000 names"));
    assert!(project.call("write_file", write("@data/a.md", "1, 2")).is_ok(), "no name more");
    assert!(project.call("write_file", write("@files/b.md", "four")).is_ok(), "the other one has room");
}

#[test]
fn the_user_sees_reads_and_clears_it() {
    let (project, home) = fixture(ONE, "leo");
    let [files, data] = [0, 1].map(|at| project.cx.stores[at].clone());
    assert_eq!((files.held().unwrap().files.len(), files.clear()), (0, Ok(0)));
    project.call("write_file", write("@files/b/c.md", "see")).unwrap();
    project.call("write_file", write("@files/a.md", "a")).unwrap();
    project.call("write_file", write("@data/a.md", "a")).unwrap();
    let held = files.held().unwrap();
    let found: Vec<(String, u64)> =
        held.files.iter().map(|file| (file.path.display().to_string(), file.bytes)).collect();
    assert_eq!(found, [("a.md".to_owned(), 1), ("b/c.md".to_owned(), 3)]);
    for path in ["b/c.md", "@files/b/c.md", "./b//c.md"] {
        assert_eq!(files.read(path).unwrap(), b"see", "{path}");
    }
    for path in ["../x", "/etc/passwd", "@data/a.md", "none", "", "b"] {
        assert!(files.read(path).is_err(), "{path}");
    }
    let all = |folder| AgentStore::all(&home, folder, Path::new("/p")).unwrap();
    assert_eq!((all(AgentDir::Files), all(AgentDir::Data)), (vec![files.clone()], vec![data.clone()]));
    assert_eq!(files.clear(), Ok(2));
    assert!(!files.path().exists() && data.read("a.md").is_ok());
    // Whoever works there goes on.
    assert!(project.call("write_file", write("@files/a.md", "b")).is_ok());
}
