//! Repositories of every kind.

use super::*;

/// Makes a copy of a project, changes a file and adds one, and sees both in the project.
fn there_and_back(fixture: &Fixture, project: &Path, change: &str) {
    let mut copy = fixture.copy_of(project, "kind");
    assert_eq!(fates(&review(&copy)), []);
    assert_eq!(git_in(&copy.root(), &["status", "--porcelain"]), "");
    fs::write(copy.root().join(change), "changed\n").unwrap();
    fs::write(copy.root().join("added"), "added\n").unwrap();
    git_in(&copy.root(), &["add", "--all"]);
    git_in(&copy.root(), &["commit", "--quiet", "-m", "work"]);
    let merged = accept(&mut copy, None);
    assert_eq!((merged.files.len(), merged.open), (2, 0), "{merged:?}");
    assert_eq!(fs::read_to_string(project.join(change)).unwrap(), "changed\n");
    assert_eq!(fs::read_to_string(project.join("added")).unwrap(), "added\n");
    copy.remove().unwrap();
}

#[test]
fn a_repository_without_a_commit() {
    let project = Project::new();
    init(&project);
    let fixture = Fixture::new(project);
    let empty = fixture.copy("empty");
    assert!(files(&empty.root()).is_empty());
    fixture.project.write("a", "a\n");
    there_and_back(&fixture, &fixture.project.inside(""), "a");
}

#[test]
fn a_project_on_no_branch_and_one_in_a_linked_working_tree() {
    let fixture = Fixture::usual();
    git(&fixture.project, &["checkout", "--quiet", "--detach"]);
    there_and_back(&fixture, &fixture.project.inside(""), "src/a.rs");
    let tree = fixture.project.outside("a tree");
    git(&fixture.project, &["worktree", "add", "--quiet", "-b", "feature/树", tree.to_str().unwrap(), "main"]);
    let copy = fixture.copy_of(&tree, "branch");
    assert_eq!(git_in(&copy.root(), &["branch", "--show-current"]), "feature/树\n");
    there_and_back(&fixture, &tree, "src/a.rs");
}

#[test]
fn a_folder_of_a_larger_repository() {
    let fixture = Fixture::usual();
    let inner = fixture.project.inside("src");
    let copy = fixture.copy_of(&inner, "part");
    assert_eq!(files(&copy.root()).into_keys().collect::<Vec<_>>(), ["a.rs", "b.rs"]);
    there_and_back(&fixture, &inner, "a.rs");
}

#[test]
fn other_hashes_and_a_history_that_was_not_fetched_whole() {
    let project = Project::new();
    git(&project, &["init", "--quiet", "--object-format=sha256", "--initial-branch=main"]);
    project.write("a", "a\n");
    let fixture = Fixture::new(project);
    git(&fixture.project, &["-c", "user.name=a", "-c", "user.email=a@b", "add", "a"]);
    git(&fixture.project, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "a"]);
    there_and_back(&fixture, &fixture.project.inside(""), "a");

    let fixture = Fixture::usual();
    fixture.project.write("src/a.rs", "more\n");
    commit(&fixture.project, "more");
    let (from, to) = (format!("file://{}", fixture.project.inside("").display()), fixture.project.outside("shallow"));
    git(&fixture.project, &["clone", "--quiet", "--depth=1", &from, to.to_str().unwrap()]);
    let copy = fixture.copy_of(&to, "shallow");
    assert_eq!(git_in(&copy.root(), &["log", "--format=%s"]), "more\n");
    there_and_back(&fixture, &to, "src/a.rs");
}

#[test]
fn submodules_and_repositories_within_are_there_as_files() {
    let fixture = Fixture::usual();
    let project = &fixture.project;
    let library = fixture.project.outside("library");
    fs::create_dir(&library).unwrap();
    git_in(&library, &["init", "--quiet", "--initial-branch=main"]);
    fs::write(library.join("lib.rs"), "lib\n").unwrap();
    fs::write(library.join(".gitignore"), "built\n").unwrap();
    git_in(&library, &["add", "--all"]);
    git_in(&library, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "lib"]);
    let url = library.to_str().unwrap();
    git(project, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", url, "vendor/lib"]);
    git(project, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", url, "vendor/gone"]);
    commit(project, "submodules");
    git(project, &["submodule", "--quiet", "deinit", "vendor/gone"]);
    project.write("vendor/lib/lib.rs", "lib, changed\n");
    project.write("vendor/lib/built", "built\n");
    fs::create_dir(project.inside("nested")).unwrap();
    git_in(&project.inside("nested"), &["init", "--quiet"]);
    project.write("nested/x", "x\n");
    let before = git_state(project);

    let mut copy = fixture.copy("one");
    let names = files(&copy.root());
    assert_eq!(names["vendor/lib/lib.rs"], "\"lib, changed\\n\"");
    assert_eq!(names["nested/x"], "\"x\\n\"");
    assert!(!names.contains_key("vendor/lib/built") && !names.contains_key("vendor/gone/"), "{names:?}");
    assert_eq!(fates(&review(&copy)), []);
    for path in ["vendor/lib/lib.rs", "vendor/lib/new.rs", "nested/x"] {
        fs::write(copy.root().join(path), "from the copy\n").unwrap();
    }
    assert_eq!(accept(&mut copy, None).files, ["nested/x", "vendor/lib/lib.rs", "vendor/lib/new.rs"]);
    assert_eq!(project.read("vendor/lib/lib.rs"), "from the copy\n");
    assert_eq!(project.read("nested/x"), "from the copy\n");
    assert_eq!(git_state(project), before, "no submodule's repository is touched either");
}

#[test]
fn the_project_may_tidy_up_its_objects() {
    let fixture = Fixture::usual();
    fixture.project.write("new", "new\n");
    let mut copy = fixture.copy("one");
    git(&fixture.project, &["gc", "--quiet", "--prune=now"]);
    fs::write(copy.root().join("src/a.rs"), "changed\n").unwrap();
    fs::write(copy.root().join("new"), "changed\n").unwrap();
    assert_eq!(git_in(&copy.root(), &["status", "--porcelain"]), " M new\n M src/a.rs\n");
    assert_eq!(accept(&mut copy, None).files, ["new", "src/a.rs"]);
}

#[test]
fn line_endings_stay_under_all_git_settings() {
    let fixture = Fixture::usual();
    git(&fixture.project, &["config", "core.autocrlf", "true"]);
    fixture.project.write(".gitattributes", "*.txt text eol=crlf\n*.rs text\n");
    fixture.project.write("src/a.rs", "one\r\ntwo\r\n");
    commit(&fixture.project, "lines");
    let mut copy = fixture.copy("one");
    assert_eq!(fs::read(copy.root().join("src/a.rs")).unwrap(), b"one\r\ntwo\r\n");
    assert_eq!(fs::read(copy.root().join("win.txt")).unwrap(), b"one\r\ntwo\r\n");
    assert_eq!(git_in(&copy.root(), &["status", "--porcelain"]), "");
    fs::write(copy.root().join("src/a.rs"), "one\r\n2\r\n").unwrap();
    let seen = review(&copy);
    assert!(seen.diff.text.contains("-two"), "{}", seen.diff.text);
    assert_eq!(accept(&mut copy, None).files, ["src/a.rs"]);
    assert_eq!(fs::read(fixture.project.inside("src/a.rs")).unwrap(), b"one\r\n2\r\n");
}
