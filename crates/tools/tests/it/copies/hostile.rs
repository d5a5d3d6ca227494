//! Copies of hostile repositories, and hostile work in copies.

use std::time::Duration;

use max_team_core::policy::GitAccess;
use max_team_tools::command::{CommandSandbox, run};

use super::*;

/// Settings that run a program wherever git lets a repository name one.
fn trap(folder: &Path, mark: &Path) -> String {
    let script = folder.join("trap.sh");
    fs::write(&script, format!("#!/bin/sh\necho run >> '{}'\ncat\n", mark.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    script.display().to_string()
}

fn set_traps(config: &Path, hooks: &Path, script: &str) {
    let mut text = fs::read_to_string(config).unwrap();
    text.push_str(&format!(
        "[core]\n\tfsmonitor = {script}\n\tpager = {script}\n\teditor = {script}\n\thooksPath = {}\n\
         [filter \"evil\"]\n\tclean = {script}\n\tsmudge = {script}\n\tprocess = {script}\n\trequired = true\n\
         [diff \"evil\"]\n\ttextconv = {script}\n\tcommand = {script}\n[diff]\n\texternal = {script}\n\
         [merge \"evil\"]\n\tdriver = {script}\n[uploadpack]\n\tpackObjectsHook = {script}\n\
         [alias]\n\tadd = !{script}\n[gpg]\n\tprogram = {script}\n[commit]\n\tgpgSign = true\n",
        hooks.display()
    ));
    fs::write(config, text).unwrap();
    fs::create_dir_all(hooks).unwrap();
    for hook in ["post-checkout", "pre-commit", "post-index-change", "reference-transaction", "post-commit"] {
        fs::copy(script, hooks.join(hook)).unwrap();
    }
}

#[test]
fn nothing_that_a_project_or_a_copy_names_is_run() {
    let fixture = Fixture::usual();
    let project = &fixture.project;
    project.write(".gitattributes", "* filter=evil diff=evil merge=evil\n");
    commit(project, "attributes");
    let mark = fixture.project.outside("mark");
    let script = trap(&fixture.project.outside(""), &mark);
    set_traps(&project.inside(".git/config"), &project.inside(".git/hooks"), &script);
    project.write("src/a.rs", "dirty\n");
    let mut copy = fixture.copy("one");
    assert!(!mark.exists(), "making ran something");
    let own = copy.root().join(".git");
    set_traps(&own.join("config"), &own.join("hooks"), &script);
    fs::write(own.join("info/attributes"), "* filter=evil diff=evil\n").unwrap();
    fs::write(copy.root().join("src/a.rs"), "changed\n").unwrap();
    fs::write(copy.root().join("src/.gitattributes"), "* filter=evil diff=evil text eol=crlf ident\n").unwrap();
    project.write("src/b.rs", "mine\n");
    fs::write(copy.root().join("src/b.rs"), "copy\n").unwrap();
    let seen = review(&copy);
    assert!(seen.diff.text.contains("+changed"), "{}", seen.diff.text);
    assert!(copy.conflict("src/b.rs", &CancellationToken::new()).unwrap().is_some());
    assert_eq!(accept(&mut copy, None).files, ["src/.gitattributes", "src/a.rs"]);
    assert_eq!(project.read("src/a.rs"), "changed\n");
    assert!(!mark.exists(), "looking or merging ran something");
}

#[test]
fn a_repository_that_lies_about_the_tree_hides_nothing() {
    let fixture = Fixture::usual();
    let mut copy = fixture.copy("one");
    let root = copy.root();
    git_in(&root, &["update-index", "--assume-unchanged", "src/a.rs"]);
    git_in(&root, &["update-index", "--skip-worktree", "src/b.rs"]);
    fs::write(root.join("src/a.rs"), "changed\n").unwrap();
    fs::write(root.join("src/b.rs"), "changed\n").unwrap();
    fs::write(root.join(".git/info/exclude"), "*\n").unwrap();
    fs::write(root.join("new"), "new\n").unwrap();
    fs::remove_dir_all(root.join(".git/refs")).unwrap();
    let names = [("new", "ready"), ("src/a.rs", "ready"), ("src/b.rs", "ready")];
    assert_eq!(fates(&review(&copy)), names);
    fs::remove_dir_all(root.join(".git")).unwrap();
    assert_eq!(fates(&review(&copy)), names, "not even without it");
    assert_eq!(accept(&mut copy, None).files.len(), 3);
}

#[test]
fn commands_in_a_copy_commit_there_and_reach_nothing_else() {
    let fixture = Fixture::usual();
    fixture.project.write("unsaved", "mine\n");
    let copy = fixture.copy("one");
    let isolation = CommandSandbox { reads: copy.reads(), ..CommandSandbox::around(copy.root()) };
    let argv = |line: &[&str]| line.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let ran_in = |isolation: &CommandSandbox, line: &[&str]| {
        run(&argv(line), &copy.root(), Duration::from_secs(60), Some(isolation), &CancellationToken::new()).unwrap()
    };
    let ran = |line: &[&str]| ran_in(&isolation, line);
    fs::write(copy.root().join("src/a.rs"), "changed\n").unwrap();
    let git = CommandSandbox { git: GitAccess::Write, ..isolation.clone() };
    let done = ran_in(&git, &["git", "commit", "--quiet", "--all", "-m", "mine"]);
    assert!(done.ok(), "{}", done.output);
    let told = ran(&["git", "log", "--format=%s"]);
    assert_eq!(told.output, "mine\nThe project as it lay there when this worktree was made\nbegin\n");

    let project = fixture.project.inside("");
    let beside = || {
        let all = files(&fixture.home.path().join("copies/one")).into_iter();
        all.filter(|(name, _)| !name.starts_with("tree")).collect::<BTreeMap<_, _>>()
    };
    let before = (fixture.files(), git_state(&fixture.project), beside());
    let file = |name: &str| project.join(name).display().to_string();
    let keep = fixture.home.path().join("copies/one");
    let write = |place: String| argv(&["sh", "-c", &format!("echo x > '{place}'")]);
    // Where nothing of the machine is to be seen, a command may write what is gone with it.
    for (line, fails) in [
        (argv(&["cat", &file("src/a.rs")]), true),
        (argv(&["git", "-C", &project.display().to_string(), "status"]), true),
        (argv(&["sh", "-c", "echo '[core]' >> .git/config"]), true),
        (argv(&["sh", "-c", "echo x > .git/hooks/pre-commit"]), true),
        (write(file(".git/objects/x")), true),
        (write(keep.join("keep/objects/x").display().to_string()), true),
        (write(file("src/a.rs")), false),
        (write(keep.join("keep/config").display().to_string()), false),
        (write(keep.join("copy.json").display().to_string()), false),
        (argv(&["cp", "-r", "src", &file("stolen")]), false),
    ] {
        let done =
            run(&line, &copy.root(), Duration::from_secs(60), Some(&isolation), &CancellationToken::new()).unwrap();
        assert!(!(fails && done.ok()), "{line:?}: {}", done.output);
    }
    assert_eq!((fixture.files(), git_state(&fixture.project), beside()), before);
    assert_eq!(fates(&review(&copy)), [("src/a.rs", "ready")]);
}

#[test]
fn files_of_the_user_that_a_repository_points_at_do_not_get_into_a_copy() {
    let fixture = Fixture::usual();
    let project = &fixture.project;
    fs::write(project.outside("key"), "secret-one\n").unwrap();
    fs::write(project.outside("other"), "secret-two\n").unwrap();
    git(project, &["config", "core.excludesFile", project.outside("key").to_str().unwrap()]);
    let exclude = project.inside(".git/info/exclude");
    fs::remove_file(&exclude).unwrap();
    symlink(project.outside("other"), &exclude).unwrap();
    let copy = fixture.copy("one");
    let mut folders = vec![fixture.home.path().join("copies/one")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else if let Ok(text) = fs::read_to_string(entry.path()) {
                assert!(!text.contains("secret-"), "{}: {text}", entry.path().display());
            }
        }
    }
    assert_eq!(fates(&review(&copy)), []);
}

#[test]
fn objects_of_other_repositories_are_not_handed_on() {
    let fixture = Fixture::usual();
    let private = fixture.project.outside("private");
    git(&fixture.project, &["clone", "--quiet", ".", private.to_str().unwrap()]);
    let shared = fixture.project.outside("borrows");
    git(&fixture.project, &["clone", "--quiet", "--shared", private.to_str().unwrap(), shared.to_str().unwrap()]);
    let copy = fixture.copy_of(&shared, "borrows");
    assert_eq!(copy.reads(), [fixture.home.path().canonicalize().unwrap().join("copies/borrows/keep/objects")]);
    assert!(copy.left().iter().any(|left| left.contains("alternates")), "{:?}", copy.left());
    assert_eq!(git_in(&copy.root(), &["log", "--format=%s"]).lines().count(), 1);
    assert_eq!(git_in(&copy.root(), &["status", "--porcelain"]), "");
    assert_eq!(fs::read_to_string(copy.root().join("src/a.rs")).unwrap(), "one\ntwo\nthree\n");

    let sly = fixture.project.outside("sly");
    fs::create_dir(&sly).unwrap();
    fs::write(sly.join(".git"), format!("gitdir: {}\n", private.join(".git").display())).unwrap();
    let order =
        WorktreeOptions { id: "sly", project: &sly, sight: &Visibility::default(), named: &[], by: "leo", at_ms: 1 };
    let told = fixture.copies().make(&order, &CancellationToken::new()).unwrap_err().to_string();
    assert!(told.contains("be believed about where it keeps this repository"), "{told}");
    let left = fs::read_dir(fixture.home.path().join("copies")).unwrap().count();
    assert_eq!(left, 1, "what could not be made leaves nothing behind");
}
