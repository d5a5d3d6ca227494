//! What comes back from a copy, and what does not.

use super::*;

#[test]
fn everything_that_a_file_can_become_is_merged_and_nothing_is_committed() {
    let fixture = Fixture::usual();
    let project = &fixture.project;
    project.write("notes.txt", "mine\n");
    let mut copy = fixture.copy("one");
    let root = copy.root();
    // The user goes on meanwhile.
    project.write("notes.txt", "mine, and more\n");
    project.write("later.txt", "later\n");

    fs::write(root.join("src/a.rs"), "one\n2\nthree\n").unwrap();
    fs::write(root.join("win.txt"), "one\r\n2\r\n").unwrap();
    fs::write(root.join("data.bin"), [0, 1]).unwrap();
    fs::rename(root.join("docs/空 格.md"), root.join("docs/新 名.md")).unwrap();
    fs::set_permissions(root.join("run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(root.join("src/b.rs"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(root.join("link")).unwrap();
    symlink("src/b.rs", root.join("link")).unwrap();
    symlink("../src/a.rs", root.join("docs/inner")).unwrap();
    fs::create_dir_all(root.join("deep/er")).unwrap();
    fs::write(root.join("deep/er/new.txt"), "new\n").unwrap();
    fs::write(root.join("ignored"), "mine, not the project's\n").unwrap();
    git_in(&root, &["add", "--all"]);
    git_in(&root, &["commit", "--quiet", "-m", "half of it"]);
    fs::write(root.join("deep/er/other.txt"), "not committed\n").unwrap();

    let seen = review(&copy);
    let all = [
        "data.bin",
        "deep/er/new.txt",
        "deep/er/other.txt",
        "docs/inner",
        "docs/新 名.md",
        "docs/空 格.md",
        "link",
        "run.sh",
        "src/a.rs",
        "src/b.rs",
        "win.txt",
    ];
    assert_eq!(fates(&seen), all.map(|path| (path, "ready")));
    assert_eq!(seen.diff.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), all);

    let before = git_state(project);
    let merged = accept(&mut copy, None);
    let ignored = IgnoredFiles { files: vec!["ignored".to_owned()], more: 0 };
    assert_eq!(merged, MergeResult { files: all.map(str::to_owned).into(), ignored, ..MergeResult::default() });
    let mut want = files(&root);
    want.insert("notes.txt".to_owned(), "\"mine, and more\\n\"".to_owned());
    want.insert("later.txt".to_owned(), "\"later\\n\"".to_owned());
    want.insert("ignored".to_owned(), "\"secret\\n\"".to_owned());
    assert_eq!(fixture.files(), want);
    assert_eq!(git_state(project), before, "no commit, no index, no object");
    assert_eq!(fates(&review(&copy)), all.map(|path| (path, "done")));
    project.write("src/a.rs", "mine again\n");
    assert_eq!(review(&copy).stuck().count(), 0, "what was accepted is settled");
}

#[test]
fn concurrent_changes_of_the_user_are_never_touched() {
    let fixture = Fixture::usual();
    let project = &fixture.project;
    let mut copy = fixture.copy("one");
    let root = copy.root();
    for (path, text) in
        [("src/a.rs", "one\ncopy\nthree\n"), ("src/b.rs", "copy\n"), ("both.txt", "copy\n"), ("same", "x\n")]
    {
        fs::write(root.join(path), text).unwrap();
    }
    fs::remove_file(root.join("win.txt")).unwrap();
    fs::remove_file(root.join("run.sh")).unwrap();
    fs::write(root.join("folder"), "a file here\n").unwrap();
    project.write("src/a.rs", "one\nmine\nthree\n");
    fs::remove_file(project.inside("src/b.rs")).unwrap();
    project.write("both.txt", "mine\n");
    project.write("same", "x\n");
    project.write("win.txt", "changed\r\n");
    fs::set_permissions(project.inside("run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
    project.write("folder/x", "a folder here\n");

    let seen = review(&copy);
    let want = [
        ("both.txt", "conflict"),
        ("folder", "conflict"),
        ("run.sh", "conflict"),
        ("same", "done"),
        ("src/a.rs", "conflict"),
        ("src/b.rs", "conflict"),
        ("win.txt", "conflict"),
    ];
    assert_eq!(fates(&seen), want);
    let text = copy.conflict("src/a.rs", &CancellationToken::new()).unwrap().unwrap();
    let want = "one\n<<<<<<< yours\nmine\n||||||| base\ntwo\n=======\ncopy\n>>>>>>> copy\nthree\n";
    assert_eq!(text, want);
    assert_eq!(copy.conflict("src/b.rs", &CancellationToken::new()).unwrap(), None, "one side is gone");

    let before = fixture.files();
    let whole = Accept { files: None, whole: true, shown: None, sight: &Visibility::default() };
    fs::write(root.join("fine.txt"), "fine\n").unwrap();
    let merged = copy.accept(&whole, &CancellationToken::new(), &mut |_| {}).unwrap();
    assert_eq!((merged.files, merged.stuck.len(), merged.open), (vec!["same".to_owned()], 6, 7));
    assert_eq!(fixture.files(), before, "all or nothing");

    let merged = accept(&mut copy, None);
    assert_eq!((merged.files, merged.open), (vec!["fine.txt".to_owned(), "same".to_owned()], 6));
    let mut want = before;
    want.insert("fine.txt".to_owned(), "\"fine\\n\"".to_owned());
    assert_eq!(fixture.files(), want, "the rest is merged, and what the user has stays");
}

#[test]
fn some_files_are_taken_and_some_are_not() {
    let fixture = Fixture::usual();
    let mut copy = fixture.copy("one");
    for path in ["one.txt", "two.txt", "three.txt"] {
        fs::write(copy.root().join(path), "new\n").unwrap();
    }
    let merged = accept(&mut copy, Some(&["./one.txt"]));
    assert_eq!((merged.files, merged.open), (vec!["one.txt".to_owned()], 2));
    assert!(fixture.files().contains_key("one.txt") && !fixture.files().contains_key("two.txt"));
    let no = copy.reject(&["two.txt".to_owned()], &Visibility::default(), &CancellationToken::new()).unwrap();
    assert_eq!(no.open, 1);
    let copy = &mut fixture.copies().find("one").unwrap();
    assert_eq!(fates(&review(copy)), [("one.txt", "done"), ("three.txt", "ready"), ("two.txt", "rejected")]);
    let merged = accept(copy, None);
    assert_eq!((merged.files, merged.open), (vec!["one.txt".to_owned(), "three.txt".to_owned()], 0));
    assert!(!fixture.files().contains_key("two.txt"), "a no stands");
    fs::write(copy.root().join("two.txt"), "better\n").unwrap();
    assert_eq!(fates(&review(copy))[2], ("two.txt", "ready"), "another file than the one that was said no to");
    assert_eq!(accept(copy, Some(&["two.txt"])).files, ["two.txt"]);
    let files = Some(["four.txt".to_owned()]);
    let named = Accept {
        files: files.as_ref().map(<[String; 1]>::as_slice),
        whole: false,
        shown: None,
        sight: &Visibility::default(),
    };
    let told = copy.accept(&named, &CancellationToken::new(), &mut |_| {}).unwrap_err();
    assert!(told.to_string().contains("`four.txt` has not changed in this worktree"), "{told}");
}

#[test]
fn files_and_folders_take_each_others_place() {
    let fixture = Fixture::usual();
    fixture.project.write("tree/inner/x", "x\n");
    let mut copy = fixture.copy("one");
    let root = copy.root();
    fs::remove_file(root.join("run.sh")).unwrap();
    fs::create_dir(root.join("run.sh")).unwrap();
    fs::write(root.join("run.sh/part"), "part\n").unwrap();
    fs::remove_dir_all(root.join("tree")).unwrap();
    fs::write(root.join("tree"), "a file now\n").unwrap();
    fs::remove_file(root.join("link")).unwrap();
    fs::write(root.join("link"), "no link any more\n").unwrap();
    fs::remove_file(root.join("win.txt")).unwrap();
    symlink("run.sh/part", root.join("win.txt")).unwrap();
    let seen = review(&copy);
    assert_eq!(seen.stuck().count(), 0, "{:?}", seen.changes);
    assert_eq!(accept(&mut copy, None).stuck, []);
    let mut want = files(&root);
    want.insert("ignored".to_owned(), "\"secret\\n\"".to_owned());
    assert_eq!(fixture.files(), want);
}

#[test]
fn files_that_programs_obey_and_links_out_are_refused() {
    let fixture = Fixture::usual();
    let mut copy = fixture.copy("one");
    let root = copy.root();
    fs::write(root.join(".mcp.json"), "{}").unwrap();
    fs::create_dir(root.join(".claude")).unwrap();
    fs::write(root.join(".claude/settings.json"), "{}").unwrap();
    symlink("/etc/passwd", root.join("absolute")).unwrap();
    symlink("../../x", root.join("src/climbs")).unwrap();
    symlink("../run.sh", root.join("src/beside")).unwrap();
    // `down/here` leads up to `down`'s own folder, and `..` behind it leads out.
    fs::create_dir(root.join("down")).unwrap();
    symlink("..", root.join("down/here")).unwrap();
    symlink("down/here/../secret", root.join("detour")).unwrap();
    fs::write(root.join("large"), vec![b'x'; (8 << 20) + 1]).unwrap();
    fs::create_dir(root.join("own")).unwrap();
    git_in(&root.join("own"), &["init", "--quiet"]);
    fs::write(root.join("own/x"), "x\n").unwrap();
    git_in(&root.join("own"), &["add", "x"]);
    git_in(&root.join("own"), &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "x"]);
    fs::write(root.join("fine"), "fine\n").unwrap();
    let want = [
        (".claude/settings.json", "refused"),
        (".mcp.json", "refused"),
        ("absolute", "refused"),
        ("detour", "refused"),
        ("down/here", "ready"),
        ("fine", "ready"),
        ("large", "refused"),
        ("own", "refused"),
        ("src/beside", "ready"),
        ("src/climbs", "refused"),
    ];
    assert_eq!(fates(&review(&copy)), want);
    let before = fixture.files();
    let merged = accept(&mut copy, None);
    assert_eq!((merged.files, merged.stuck.len()), (["down/here", "fine", "src/beside"].map(str::to_owned).into(), 7));
    let mut want = before;
    for (path, content) in
        [("down/", ""), ("down/here", "-> .."), ("fine", "\"fine\\n\""), ("src/beside", "-> ../run.sh")]
    {
        want.insert(path.to_owned(), content.to_owned());
    }
    assert_eq!(fixture.files(), want);
}

#[test]
fn an_all_or_nothing_merge_that_conflicts_is_undone() {
    let fixture = Fixture::usual();
    let mut copy = fixture.copy("one");
    let root = copy.root();
    for (path, text) in [("src/a.rs", "copy\n"), ("src/b.rs", "copy\n"), ("win.txt", "copy\n")] {
        fs::write(root.join(path), text).unwrap();
    }
    fs::create_dir(root.join("new")).unwrap();
    fs::write(root.join("new/x"), "new\n").unwrap();
    fs::remove_file(root.join("run.sh")).unwrap();
    fs::remove_file(root.join("link")).unwrap();
    fs::write(root.join("link"), "no link any more\n").unwrap();
    let whole = Accept { files: None, whole: true, shown: None, sight: &Visibility::default() };
    let before = fixture.files();
    for at in 0..6 {
        // Somebody changes the file that comes last, after some were done; and somebody gives it up there.
        let mut want = before.clone();
        want.insert("win.txt".to_owned(), "\"mine\\n\"".to_owned());
        let mut meet = |step: max_team_tools::worktree::MergeProgress| {
            if step.done == at {
                fixture.project.write("win.txt", "mine\n");
            }
        };
        let merged = copy.accept(&whole, &CancellationToken::new(), &mut meet).unwrap();
        assert_eq!((merged.files.len(), merged.stuck.len(), fixture.files()), (0, 1, want), "{at}");
        fixture.project.write("win.txt", "one\r\ntwo\r\n");

        let cancel = CancellationToken::new();
        let mut give_up = |step: max_team_tools::worktree::MergeProgress| {
            if step.done == at {
                cancel.cancel();
            }
        };
        copy.accept(&whole, &cancel, &mut give_up).unwrap_err();
        assert_eq!(fixture.files(), before, "{at}");
    }
    assert!(!fixture.home.path().join("copies/one/merge.json").exists());
    let merged = copy.accept(&whole, &CancellationToken::new(), &mut |_| {}).unwrap();
    assert_eq!((merged.files.len(), merged.stuck.len(), merged.open), (6, 0, 0));
}

#[test]
fn only_what_was_shown_is_merged() {
    let fixture = Fixture::usual();
    let mut copy = fixture.copy("one");
    let root = copy.root();
    fs::write(root.join("src/a.rs"), "shown\n").unwrap();
    fs::write(root.join("src/b.rs"), "shown\n").unwrap();
    let shown = review(&copy);
    let whole = Accept { files: None, whole: true, shown: Some(&shown), sight: &Visibility::default() };
    fs::write(root.join("dropped"), "by a check\n").unwrap();
    fs::write(root.join("src/a.rs"), "changed by a check\n").unwrap();
    let before = fixture.files();
    let merged = copy.accept(&whole, &CancellationToken::new(), &mut |_| {}).unwrap();
    assert_eq!((merged.files.len(), merged.stuck.len(), fixture.files()), (0, 1, before.clone()));
    fs::write(root.join("src/a.rs"), "one\ntwo\nthree\n").unwrap();
    let merged = copy.accept(&whole, &CancellationToken::new(), &mut |_| {}).unwrap();
    assert_eq!((merged.files.len(), merged.stuck.len(), fixture.files()), (0, 1, before), "not even if it is gone");
    fs::write(root.join("src/a.rs"), "shown\n").unwrap();
    let merged = copy.accept(&whole, &CancellationToken::new(), &mut |_| {}).unwrap();
    assert_eq!((merged.files, merged.open), (["src/a.rs", "src/b.rs"].map(str::to_owned).into(), 0));
    assert!(!fixture.files().contains_key("dropped"), "what a check leaves is nobody's work");
}

/// Git takes a file for unchanged that has the size and the second of its entry, unless its list is as old as that.
#[test]
fn a_change_that_only_its_bytes_show_is_seen() {
    let fixture = Fixture::usual();
    let copy = fixture.copy("one");
    fs::write(copy.root().join("src/b.rs"), "c\n").unwrap();
    assert_eq!(fates(&review(&copy)), [("src/b.rs", "ready")]);
    let written = |path: std::path::PathBuf| fs::metadata(path).unwrap().modified().unwrap();
    let first = written(fixture.home.path().join("copies/one/first"));
    assert_eq!(written(copy.root().join(".git/index")), first, "a copy of a list is as old as the list");
}

#[test]
fn a_no_stands_if_the_file_cannot_be_taken_after_all() {
    let fixture = Fixture::usual();
    let mut copy = fixture.copy("one");
    for path in ["src/a.rs", "src/b.rs"] {
        fs::write(copy.root().join(path), "copy\n").unwrap();
    }
    copy.reject(&["src/a.rs".to_owned()], &Visibility::default(), &CancellationToken::new()).unwrap();
    fixture.project.write("src/a.rs", "mine\n");
    let record = fixture.home.path().join("copies/one/copy.json");
    let known = fs::read(&record).unwrap();
    let merged = accept(&mut copy, Some(&["src/a.rs"]));
    assert_eq!((merged.files.len(), merged.stuck.len(), merged.open), (0, 1, 1), "{merged:?}");
    assert_eq!(fs::read(&record).unwrap(), known);
    assert_eq!(fates(&review(&copy)), [("src/a.rs", "rejected"), ("src/b.rs", "ready")]);
    fixture.project.write("src/a.rs", "one\ntwo\nthree\n");
    assert_eq!(accept(&mut copy, Some(&["src/a.rs"])).files, ["src/a.rs"], "and falls where it can");
    fixture.project.write("src/a.rs", "mine, once more\n");
    assert_eq!(accept(&mut copy, Some(&["src/a.rs"])).stuck.len(), 1);
    assert_eq!(fates(&review(&copy))[0], ("src/a.rs", "done"), "a yes stands, too");
}

#[test]
fn ignored_files_are_named_and_taken_by_name() {
    let fixture = Fixture::usual();
    fixture.project.write(".gitignore", "ignored\nbuild/\n*.log\n");
    fixture.project.write("build/old.txt", "old\n");
    let order = WorktreeOptions {
        id: "one",
        project: &fixture.project.inside(""),
        sight: &Visibility::default(),
        named: &["build/old.txt".to_owned(), "build/none".to_owned(), ".git/config".to_owned(), "../x".to_owned()],
        by: "leo",
        at_ms: 1,
    };
    let mut copy = fixture.copies().make(&order, &CancellationToken::new()).unwrap();
    let root = copy.root();
    assert!(!root.join("ignored").exists() && root.join("build/old.txt").exists(), "only what was named");
    assert_eq!(review(&copy).ignored, IgnoredFiles::default());
    for (path, text) in
        [("build/out.txt", "out\n"), ("build/more.txt", "m\n"), ("a.log", "l\n"), ("build/old.txt", "new\n")]
    {
        fs::write(root.join(path), text).unwrap();
    }
    fs::create_dir_all(root.join("node_modules/x")).unwrap();
    fs::write(root.join("node_modules/x/i.js"), "left by a build\n").unwrap();
    let told = |files: &[&str]| IgnoredFiles { files: files.iter().map(|file| (*file).to_owned()).collect(), more: 0 };
    let seen = review(&copy);
    assert_eq!(fates(&seen), [("build/old.txt", "ready")], "it was there, and is known by that");
    assert_eq!(seen.ignored, told(&["a.log", "build/more.txt", "build/out.txt"]));

    let named = ["build/out.txt".to_owned(), "./a.log".to_owned()];
    let seen = copy.review_with(&named, &Visibility::default(), &CancellationToken::new()).unwrap();
    assert_eq!(fates(&seen), [("a.log", "ready"), ("build/old.txt", "ready"), ("build/out.txt", "ready")]);
    assert!(seen.diff.text.contains("+out\n"), "{}", seen.diff.text);
    assert_eq!(seen.ignored, told(&["build/more.txt"]));

    let merged = accept(&mut copy, None);
    assert_eq!((merged.files, merged.open, merged.ignored.count()), (vec!["build/old.txt".to_owned()], 0, 3));
    assert!(!copy.is_settled(), "there is something to lose in it");
    assert_eq!(accept(&mut copy, Some(&["build/out.txt"])).files, ["build/out.txt"]);
    assert_eq!(
        (fixture.project.read("build/out.txt"), fixture.files().contains_key("a.log")),
        ("out\n".to_owned(), false)
    );
    let names = ["a.log", "build/more.txt"].map(str::to_owned);
    let decided = copy.reject(&names, &Visibility::default(), &CancellationToken::new()).unwrap();
    assert_eq!((decided.open, decided.ignored.count()), (0, 0));
    assert!(fixture.copies().find("one").unwrap().is_settled());
}

#[test]
fn a_whole_merge_takes_the_ignored_files_that_were_shown() {
    let fixture = Fixture::usual();
    let mut copy = fixture.copy("one");
    fs::create_dir(copy.root().join("build")).unwrap();
    fs::write(copy.root().join("build/.gitignore"), "*\n").unwrap();
    fs::write(copy.root().join("build/out.txt"), "out\n").unwrap();
    let shown = copy.review_with(&["build".to_owned()], &Visibility::default(), &CancellationToken::new()).unwrap();
    assert_eq!(fates(&shown), [("build/.gitignore", "ready"), ("build/out.txt", "ready")], "a folder by its name");
    fs::write(copy.root().join("ignored"), "by a check\n").unwrap();
    let whole = Accept { files: None, whole: true, shown: Some(&shown), sight: &Visibility::default() };
    let merged = copy.accept(&whole, &CancellationToken::new(), &mut |_| {}).unwrap();
    assert_eq!((merged.files.len(), merged.stuck.len(), merged.open, merged.ignored.count()), (2, 0, 0, 0));
    assert_eq!(fixture.project.read("build/out.txt"), "out\n");
}
