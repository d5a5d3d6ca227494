//! Trees that commands change.

use std::cell::RefCell;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
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

    /// The changes of a command; in a process of its own.
    fn run(&self, command: impl FnOnce(&Path)) -> (Vec<(String, bool, bool)>, Vec<SkippedChange>) {
        let trees = TrackedTrees::within(self.home.path());
        let steps = Steps::default();
        let watch = steps.watch(&trees, self, "one");
        command(self.project.path());
        let mut left = steps.end(watch, self);
        let shown =
            |change: FileChange| (change.path, change.before != FileState::Gone, change.after != FileState::Gone);
        let mut changes = Vec::new();
        for step in steps.0.into_inner() {
            changes.extend(step.changes.into_iter().map(shown));
            left.extend(step.left);
        }
        (changes, left)
    }
}

/// The steps that were recorded.
#[derive(Default)]
struct Steps(RefCell<Vec<TreeStep>>);

impl Steps {
    fn watch(&self, trees: &TrackedTrees, scene: &Scene, call: &str) -> TreeWatch {
        self.watch_until(trees, scene, call, &CancellationToken::new())
    }

    fn watch_until(&self, trees: &TrackedTrees, scene: &Scene, call: &str, cancel: &CancellationToken) -> TreeWatch {
        trees.watch(&scene.root(), caller(call), cancel, &Progress::default(), &|step| self.add(step))
    }

    fn end(&self, watch: TreeWatch, scene: &Scene) -> Vec<SkippedChange> {
        watch.end(&scene.root(), &|step| self.add(step))
    }

    #[expect(clippy::unnecessary_wraps, reason = "recording can fail elsewhere")]
    fn add(&self, step: TreeStep) -> io::Result<()> {
        self.0.borrow_mut().push(step);
        Ok(())
    }

    /// The paths of each step, with its calls.
    fn shown(&self) -> Vec<(String, String)> {
        let join = |words: Vec<&str>| words.join(" ");
        let shown = |step: &TreeStep| {
            let calls = join(step.callers.iter().map(|caller| caller.call.as_str()).collect());
            (calls, join(step.changes.iter().map(|change| change.path.as_str()).collect()))
        };
        self.0.take().iter().map(shown).collect()
    }
}

fn caller(call: &str) -> CommandCaller {
    CommandCaller {
        session: "ses_00000000000070008000000000000001".parse().unwrap(),
        call: call.to_owned(),
        is_background: false,
    }
}

fn pair(calls: &str, paths: &str) -> (String, String) {
    (calls.to_owned(), paths.to_owned())
}

fn all(changes: &[(&str, bool, bool)]) -> Vec<(String, bool, bool)> {
    changes.iter().map(|(path, before, after)| ((*path).to_owned(), *before, *after)).collect()
}

#[test]
fn changes_of_a_command_are_told_from_earlier_ones_of_the_user() {
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
    let kept = TrackedTrees::within(scene.home.path()).bytes(&root, &Hash::of("the user's"));
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
fn ignored_files_are_passed_over_and_other_rules_change_nothing() {
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
fn a_file_that_is_too_large_is_reported() {
    let scene = Scene::new();
    let file = File::create(scene.project.path().join("large")).unwrap();
    file.set_len(max_team_core::limits::REWIND_FILE_BYTES_MAX + 1).unwrap();
    let (changed, left) = scene.run(|path| fs::remove_file(path.join("large")).unwrap());
    assert_eq!(changed, all(&[("large", true, false)]));
    assert_eq!(left, [SkippedChange { path: "large".into(), why: SkippedReason::Large }]);
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
    assert_eq!(left, [SkippedChange { path: "large".into(), why: SkippedReason::Large }]);
}

#[test]
fn a_change_belongs_to_all_commands_that_ran_meanwhile() {
    let scene = Scene::new();
    // Each process has its own.
    let (trees, others) = (TrackedTrees::within(scene.home.path()), TrackedTrees::within(scene.home.path()));
    let steps = Steps::default();
    let one = steps.watch(&trees, &scene, "one");
    scene.put("a", "1");
    let two = steps.watch(&others, &scene, "two");
    assert_eq!(steps.shown(), [pair("one", "a")]);
    scene.put("a", "2");
    scene.put("b", "2");
    assert_eq!(steps.end(one, &scene), []);
    assert_eq!(steps.shown(), [pair("one two", "a b")]);
    scene.put("c", "3");
    assert_eq!(steps.end(two, &scene), []);
    assert_eq!(steps.shown(), [pair("two", "c")]);
    scene.put("mine", "the user's");
    let three = steps.watch(&trees, &scene, "three");
    assert_eq!(steps.end(three, &scene), []);
    assert_eq!(steps.shown(), []);
}

#[test]
fn a_change_that_could_not_be_recorded_is_found_again() {
    let scene = Scene::new();
    let trees = TrackedTrees::within(scene.home.path());
    let steps = Steps::default();
    let one = steps.watch(&trees, &scene, "one");
    let two = steps.watch(&trees, &scene, "two");
    scene.put("a", "1");
    let left = one.end(&scene.root(), &|_| Err(io::ErrorKind::StorageFull.into()));
    assert_eq!(left, [SkippedChange { path: String::new(), why: SkippedReason::Unread }]);
    assert_eq!(steps.end(two, &scene), []);
    assert_eq!(steps.shown(), [pair("two", "a")]);
}

/// As after `kill -9`: no lock is held, and only the supervisor could note the end.
#[test]
fn changes_of_a_killed_command_are_told_from_later_ones_of_the_user() {
    let scene = Scene::new();
    let trees = TrackedTrees::within(scene.home.path());
    let steps = Steps::default();
    for name in ["gone", "other/gone", "later/gone"] {
        scene.put(name, "old");
    }
    let session = caller("").session;
    for is_noted in [true, false] {
        let watch = steps.watch(&trees, &scene, "killed");
        let running = fs::read_dir(trees.folder(scene.root().path()).join("running")).unwrap();
        let file = running.flatten().next().unwrap().path();
        scene.put("made", format!("by the command, {is_noted}"));
        let _ = fs::remove_file(scene.project.path().join("other/gone"));
        let text = fs::read_to_string(&file).unwrap();
        drop(watch);
        // The clock of a file system moves on in steps.
        let noted = File::create(&file).unwrap();
        let end = SystemTime::now() + Duration::from_millis(20);
        if is_noted {
            fs::write(&file, text.replacen('?', ".", 1)).unwrap();
            noted.set_modified(end).unwrap();
        } else {
            fs::write(&file, text).unwrap();
        }
        while SystemTime::now() <= end + Duration::from_millis(20) {
            std::thread::yield_now();
        }
        scene.put("mine", format!("the user's, {is_noted}"));
        let _ = fs::remove_file(scene.project.path().join("later/gone"));
        trees.settle(session, &|step| steps.add(step));
        let left: Vec<String> =
            steps.0.borrow().iter().flat_map(|step| &step.left).map(|left| left.path.clone()).collect();
        let (want, unknown): (&[_], &[&str]) =
            if is_noted { (&[pair("killed", "made other/gone")], &["later/gone", "mine"]) } else { (&[], &[]) };
        assert_eq!((steps.shown(), left), (want.to_vec(), unknown.iter().map(|path| (*path).to_owned()).collect()));
        trees.settle(session, &|step| steps.add(step));
        assert_eq!(steps.shown(), [], "it is recorded once");
    }
}

#[test]
fn a_look_without_time_says_so_and_the_next_one_goes_on() {
    let scene = Scene::new();
    (0..200).for_each(|number| scene.put(&format!("{number}"), format!("{number}")));
    let trees = TrackedTrees::within(scene.home.path());
    let (steps, stopped) = (Steps::default(), CancellationToken::new());
    stopped.cancel();
    let watch = steps.watch_until(&trees, &scene, "one", &stopped);
    assert_eq!(steps.end(watch, &scene), [SkippedChange { path: String::new(), why: SkippedReason::Slow }]);
    let watch = steps.watch(&trees, &scene, "two");
    assert_eq!((steps.end(watch, &scene), steps.shown()), (Vec::new(), Vec::new()));
}

/// Another look takes long, in this process or in another; a command that waits for it can be stopped.
#[test]
fn a_command_that_waits_for_a_look_can_be_stopped() {
    let scene = Scene::new();
    let trees = TrackedTrees::within(scene.home.path());
    let steps = Steps::default();
    let running = steps.watch(&trees, &scene, "one");
    scene.put("made", "by the command");
    let stopped = CancellationToken::new();
    stopped.cancel();
    let slow = vec![SkippedChange { path: String::new(), why: SkippedReason::Slow }];
    {
        let _looks = lock(&running.tree);
        let second = steps.watch_until(&trees, &scene, "two", &stopped);
        assert_eq!(steps.end(second, &scene), slow);
    }
    {
        let file = File::open(trees.folder(scene.root().path()).join(ROOT)).unwrap();
        flock(&file, FlockOperation::LockExclusive).unwrap();
        let second = steps.watch_until(&trees, &scene, "two", &stopped);
        assert_eq!(steps.end(second, &scene), slow);
    }
    assert_eq!((steps.end(running, &scene), steps.shown()), (Vec::new(), vec![pair("one", "made")]));
    scene.put("mine", "the user's");
    let next = steps.watch(&trees, &scene, "three");
    assert_eq!((steps.end(next, &scene), steps.shown()), (Vec::new(), Vec::new()), "no other command runs");
}

#[test]
fn on_the_way_out_a_look_has_only_a_moment() {
    let scene = Scene::new();
    let trees = TrackedTrees::within(scene.home.path());
    let (steps, never) = (Steps::default(), CancellationToken::new());
    let running = steps.watch(&trees, &scene, "one");
    scene.put("made", "by the command");
    trees.leave();
    let patience = |leaving: &ShutdownTime| {
        let until = Instant::now() + AFTER_MAX;
        Deadline { until, cancel: &never, leaving, progress: &Progress::default() }.is_over()
    };
    assert!(!patience(&trees.leaving), "changes until then are still looked for");
    assert_eq!((steps.end(running, &scene), steps.shown()), (Vec::new(), vec![pair("one", "made")]));
    let long_ago = ShutdownTime::new();
    long_ago.set(Instant::now().checked_sub(Duration::from_secs(60)).unwrap()).unwrap();
    assert!(patience(&long_ago));
}

#[test]
fn a_list_is_read_as_it_was_written() {
    let known = |state| FileRecord { stamp: 7, is_fresh: true, state };
    let hash = Hash::of("x");
    let files = FileRecords::from([
        ("a b".to_owned(), known(file_state(hash, 0o100_750))),
        ("c".to_owned(), known(FileState::Link { hash })),
        ("d".to_owned(), FileRecord { is_fresh: false, ..known(FileState::Bulky { size: 9, print: hash }) }),
    ]);
    let list = TreeIndex { files, unread: vec!["e".into()], held: 3, is_partial: false };
    let read = TreeIndex::parse(&list.text()).unwrap();
    assert_eq!(read.files.get("a b").and_then(|known| known.state.mode()), Some(0o750));
    assert_eq!((read.files, read.unread, read.held), (list.files, list.unread, list.held));
    assert!(TreeIndex::parse("garbage\n").is_none());
}

/// Root reads everything; so this is what a look finds for anybody else.
#[test]
fn a_file_made_unreadable_is_a_change() {
    let known = |text: &str| FileRecord { stamp: 7, is_fresh: false, state: file_state(Hash::of(text), 0o100_644) };
    let files = ["shut", "in/side", "gone"].map(|name| (name.to_owned(), known(name)));
    let list = TreeIndex { files: FileRecords::from(files), ..TreeIndex::default() };
    let found = ScanResult { unread: vec!["shut".into(), "in".into()], ..ScanResult::default() };
    let seen: Vec<(String, FileState)> =
        list.differing(&found).into_iter().map(|change| (change.path, change.after)).collect();
    assert_eq!(seen, [("gone".to_owned(), FileState::Gone), ("shut".to_owned(), FileState::Other)]);
}

#[test]
fn an_unchanged_file_is_not_opened() {
    let scene = Scene::new();
    (0..10_000).for_each(|number| scene.put(&format!("{}/{number}", number % 100), "the same"));
    let (root, home) = (scene.root(), scene.home.path());
    let objects = BlobDir::within(home);
    let (cancel, until) = (CancellationToken::new(), Instant::now() + Duration::from_secs(600));
    let patience = Deadline { until, cancel: &cancel, leaving: &ShutdownTime::new(), progress: &Progress::default() };
    // Long after the files were made.
    let look = |old: &FileRecords| {
        Scan { root: &root, home, objects: &objects, old, now_s: i64::MAX, patience: &patience }.look()
    };
    let first = look(&FileRecords::new());
    assert_eq!((first.files.len(), first.added, first.ended), (10_000, 8, None));
    fs::remove_dir_all(home.join("objects")).unwrap();
    let second = look(&first.files);
    assert_eq!((second.files, second.added), (first.files, 0));
    assert!(!home.join("objects").exists(), "whoever opens a file keeps its bytes");
}

/// Between the names of a folder and the bytes of its files, a command may remove them: they are gone, not unreadable.
#[test]
fn files_and_folders_removed_during_a_scan_are_gone() {
    let scene = Scene::new();
    let (root, home) = (scene.root(), scene.home.path());
    let objects = BlobDir::within(home);
    let (cancel, until) = (CancellationToken::new(), Instant::now() + Duration::from_secs(600));
    let patience = Deadline { until, cancel: &cancel, leaving: &ShutdownTime::new(), progress: &Progress::default() };
    let (is_over, old) = (AtomicBool::new(false), FileRecords::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                (0..20).for_each(|number| scene.put(&format!("folder{number}/file"), "text"));
                (0..20).for_each(|number| scene.put(&format!("file{number}"), "text"));
                for number in 0..20 {
                    fs::remove_file(scene.project.path().join(format!("file{number}"))).unwrap();
                    fs::remove_dir_all(scene.project.path().join(format!("folder{number}"))).unwrap();
                }
            }
        });
        let scan = Scan { root: &root, home, objects: &objects, old: &old, now_s: 0, patience: &patience };
        let unread: Vec<String> = (0..400).flat_map(|_| scan.look().unread).collect();
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(unread, [""; 0]);
    });
}
