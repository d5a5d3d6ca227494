//! Trees that commands change.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::UNIX_EPOCH;

use tempfile::TempDir;

use super::*;

struct Scene {
    home: TempDir,
    project: TempDir,
}

impl Scene {
    fn new() -> Self {
        Self { home: TempDir::new().unwrap(), project: TempDir::new().unwrap() }
    }

    fn put(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.project.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn root(&self) -> Root {
        Root::open(self.project.path()).unwrap()
    }

    /// What a command is seen to do; in a process of its own.
    fn run(&self, command: impl FnOnce(&Path)) -> (Vec<(String, bool, bool)>, Vec<Left>) {
        let trees = Trees::within(self.home.path());
        let watch = trees.watch(&self.root(), &CancellationToken::new(), &Progress::default());
        command(self.project.path());
        let Seen { changes, left, .. } = watch.end(&self.root());
        let shown = |change: Change| (change.path, change.before != State::Gone, change.after != State::Gone);
        (changes.into_iter().map(shown).collect(), left)
    }
}

fn all(changes: &[(&str, bool, bool)]) -> Vec<(String, bool, bool)> {
    changes.iter().map(|(path, before, after)| ((*path).to_owned(), *before, *after)).collect()
}

#[test]
fn what_a_command_does_is_seen_and_what_the_user_did_before_is_not() {
    let scene = Scene::new();
    scene.put("a/b.txt", "old");
    scene.put("a/c.bin", [0, 159, 146, 150]);
    scene.put(".env.example", "dot");
    assert_eq!(scene.run(|_| {}), (all(&[]), Vec::new()));
    scene.put("mine.txt", "the user's");
    let deleted = scene.run(|path| fs::remove_dir_all(path.join("a")).unwrap());
    assert_eq!(deleted.0, all(&[("a/b.txt", true, false), ("a/c.bin", true, false)]));

    // Same length, same second: only the bytes tell.
    let (changed, left) = scene.run(|path| fs::write(path.join("mine.txt"), "THE USER'S").unwrap());
    assert_eq!(changed, all(&[("mine.txt", true, true)]));
    assert!(left.is_empty());
    let root = scene.project.path().canonicalize().unwrap();
    let kept = Trees::within(scene.home.path()).bytes(&root, &Hash::of("the user's"));
    assert_eq!(kept.as_deref(), Some(b"the user's".as_slice()));
}

#[test]
fn a_link_in_the_place_of_a_file_and_another_mode_are_changes() {
    let scene = Scene::new();
    scene.put("file", "1");
    scene.put("tool.sh", "#!/bin/sh\n");
    let (changed, _) = scene.run(|path| {
        fs::remove_file(path.join("file")).unwrap();
        symlink("/etc/passwd", path.join("file")).unwrap();
        fs::set_permissions(path.join("tool.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    });
    assert_eq!(changed, all(&[("file", true, true), ("tool.sh", true, true)]));
}

#[test]
fn what_is_ignored_is_passed_over_and_other_rules_make_nothing_come_or_go() {
    let scene = Scene::new();
    fs::create_dir(scene.project.path().join(".git")).unwrap();
    scene.put(".gitignore", "build/\n");
    scene.put("build/out", "1");
    scene.put(".git/index", "1");
    let (changed, _) = scene.run(|path| {
        fs::write(path.join("build/out"), "2").unwrap();
        fs::write(path.join(".git/index"), "2").unwrap();
    });
    assert_eq!(changed, all(&[]));
    // `build/out` was there all the time: whoever took it for new would delete it.
    let (changed, _) = scene.run(|path| fs::write(path.join(".gitignore"), "other/\n").unwrap());
    assert_eq!(changed, all(&[(".gitignore", true, true)]));
}

#[test]
fn what_is_too_large_is_said() {
    let scene = Scene::new();
    let file = File::create(scene.project.path().join("large")).unwrap();
    file.set_len(max_team_core::limits::REWIND_FILE_BYTES_MAX + 1).unwrap();
    let (changed, left) = scene.run(|path| fs::remove_file(path.join("large")).unwrap());
    assert_eq!(changed, all(&[("large", true, false)]));
    assert_eq!(left, [Left { path: "large".into(), why: Why::Large }]);
}

#[test]
fn a_large_file_that_is_changed_in_place_is_named() {
    let scene = Scene::new();
    let path = scene.project.path().join("large");
    let size = max_team_core::limits::REWIND_FILE_BYTES_MAX + 1;
    let file = File::create(&path).unwrap();
    file.set_len(size).unwrap();
    file.set_modified(UNIX_EPOCH).unwrap();
    assert_eq!(scene.run(|_| {}), (all(&[]), Vec::new()));
    let (changed, left) = scene.run(|path| {
        let mut file = OpenOptions::new().write(true).open(path.join("large")).unwrap();
        file.write_all(b"other").unwrap();
    });
    assert_eq!(changed, all(&[("large", true, true)]));
    assert_eq!(left, [Left { path: "large".into(), why: Why::Large }]);
}

#[test]
fn two_commands_side_by_side_tell_everything_once() {
    let scene = Scene::new();
    let trees = Trees::within(scene.home.path());
    let cancel = CancellationToken::new();
    let one = trees.watch(&scene.root(), &cancel, &Progress::default());
    scene.put("one", "1");
    let two = trees.watch(&scene.root(), &cancel, &Progress::default());
    scene.put("two", "2");
    let first = one.end(&scene.root()).changes;
    let second = two.end(&scene.root()).changes;
    let mut told: Vec<String> = first.into_iter().chain(second).map(|change| change.path).collect();
    told.sort();
    assert_eq!(told, ["one", "two"]);
}

#[test]
fn whoever_has_no_time_says_so_and_goes_on_the_next_time() {
    let scene = Scene::new();
    (0..200).for_each(|number| scene.put(&format!("{number}"), format!("{number}")));
    let trees = Trees::within(scene.home.path());
    let cancel = CancellationToken::new();
    cancel.cancel();
    let Seen { changes, left, .. } = trees.watch(&scene.root(), &cancel, &Progress::default()).end(&scene.root());
    assert_eq!((changes.len(), left), (0, vec![Left { path: String::new(), why: Why::Slow }]));
    assert!(
        trees.watch(&scene.root(), &CancellationToken::new(), &Progress::default()).end(&scene.root()).left.is_empty()
    );
}

/// Somebody else looks at the tree, in this process or in another, and takes long; whoever waits can be stopped.
#[test]
fn whoever_waits_for_a_look_can_be_stopped() {
    let scene = Scene::new();
    let trees = Trees::within(scene.home.path());
    let nobody = CancellationToken::new();
    let running = trees.watch(&scene.root(), &nobody, &Progress::default());
    scene.put("made", "by the command");
    let stopped = CancellationToken::new();
    stopped.cancel();
    let slow = vec![Left { path: String::new(), why: Why::Slow }];
    {
        let _looks = lock(&running.place.tree);
        let second = trees.watch(&scene.root(), &stopped, &Progress::default());
        assert_eq!(second.end(&scene.root()).left, slow);
    }
    {
        let file = File::open(trees.folder(scene.root().path()).join(ROOT)).unwrap();
        flock(&file, FlockOperation::LockExclusive).unwrap();
        let second = trees.watch(&scene.root(), &stopped, &Progress::default());
        assert_eq!(second.end(&scene.root()).left, slow);
    }
    assert_eq!(lock(&running.place.work).running, 1, "the others are over");
    let seen = running.end(&scene.root());
    assert_eq!((seen.changes.len(), seen.left.len()), (1, 0));
    scene.put("mine", "the user's");
    let next = trees.watch(&scene.root(), &nobody, &Progress::default());
    assert_eq!(next.end(&scene.root()).changes, [], "all are over, and what changed since is the user's");
}

#[test]
fn on_the_way_out_a_look_has_only_a_moment() {
    let scene = Scene::new();
    let trees = Trees::within(scene.home.path());
    let nobody = CancellationToken::new();
    let running = trees.watch(&scene.root(), &nobody, &Progress::default());
    scene.put("made", "by the command");
    trees.leave();
    let patience = |leaving: &Leaving| {
        let until = Instant::now() + AFTER_MAX;
        Patience { until, cancel: &nobody, leaving, progress: &Progress::default() }.is_over()
    };
    assert!(!patience(&trees.leaving), "what was done until then is still looked at");
    assert_eq!(running.end(&scene.root()).changes.len(), 1);
    let long_ago = Leaving::new();
    long_ago.set(Instant::now().checked_sub(Duration::from_secs(60)).unwrap()).unwrap();
    assert!(patience(&long_ago));
}

#[test]
fn a_list_is_read_as_it_was_written() {
    let known = |state| Known { stamp: 7, is_fresh: true, state };
    let hash = Hash::of("x");
    let files = Files::from([
        ("a b".to_owned(), known(file_state(hash, 0o100_750))),
        ("c".to_owned(), known(State::Link { hash })),
        ("d".to_owned(), Known { is_fresh: false, ..known(State::Bulky { size: 9, print: hash }) }),
    ]);
    let list = List { files, unread: vec!["e".into()], held: 3 };
    let read = List::parse(&list.text()).unwrap();
    assert_eq!(read.files.get("a b").and_then(|known| known.state.mode()), Some(0o750));
    assert_eq!((read.files, read.unread, read.held), (list.files, list.unread, list.held));
    assert!(List::parse("garbage\n").is_none());
}

/// Root reads everything; so this is what a look finds for anybody else.
#[test]
fn what_a_command_has_closed_to_everybody_is_a_change() {
    let known = |text: &str| Known { stamp: 7, is_fresh: false, state: file_state(Hash::of(text), 0o100_644) };
    let files = ["shut", "in/side", "gone"].map(|name| (name.to_owned(), known(name)));
    let list = List { files: Files::from(files), ..List::default() };
    let found = Found { unread: vec!["shut".into(), "in".into()], ..Found::default() };
    let seen: Vec<(String, State)> =
        list.differing(&found).into_iter().map(|change| (change.path, change.after)).collect();
    assert_eq!(seen, [("gone".to_owned(), State::Gone), ("shut".to_owned(), State::Other)]);
}

#[test]
fn what_has_not_changed_is_not_opened() {
    let scene = Scene::new();
    (0..10_000).for_each(|number| scene.put(&format!("{}/{number}", number % 100), "the same"));
    let (root, home) = (scene.root(), scene.home.path());
    let objects = Objects::within(home);
    let (cancel, until) = (CancellationToken::new(), Instant::now() + Duration::from_secs(600));
    let patience = Patience { until, cancel: &cancel, leaving: &Leaving::new(), progress: &Progress::default() };
    // Long after the files were made.
    let look =
        |old: &Files| Sweep { root: &root, home, objects: &objects, old, now_s: i64::MAX, patience: &patience }.look();
    let first = look(&Files::new());
    assert_eq!((first.files.len(), first.added, first.ended), (10_000, 8, None));
    fs::remove_dir_all(home.join("objects")).unwrap();
    let second = look(&first.files);
    assert_eq!((second.files, second.added), (first.files, 0));
    assert!(!home.join("objects").exists(), "whoever opens a file keeps its bytes");
}
