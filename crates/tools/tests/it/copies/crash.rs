//! Killed in the middle, or out of room: nobody goes on unasked, and asked again the same files come out as if nothing
//! had happened.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use super::*;

/// Where the child is told what to do; without it, the child is no test.
const PLACE: &str = "MAX_TEAM_TEST_COPY";
const AT: &str = "MAX_TEAM_TEST_STEP";
const WHOLE: &str = "MAX_TEAM_TEST_WHOLE";
/// How a child ends that fails.
const FAILED: i32 = 101;

fn die() -> ! {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
    unreachable!("killed")
}

/// What is killed: goes on with a merge, and dies before a file is replaced or after the last, if not before.
#[test]
#[ignore = "run by those below, in a process of its own"]
fn child() {
    let (Some(home), Some(at)) = (std::env::var_os(PLACE), std::env::var_os(AT)) else { return };
    let at: usize = at.to_str().unwrap().parse().unwrap();
    let mut copy = Worktrees::within(Path::new(&home)).find("one").unwrap();
    let whole = std::env::var_os(WHOLE).is_some();
    let accept = Accept { files: None, whole, shown: None, sight: &Visibility::default() };
    let mut die_at = |step: max_team_tools::worktree::MergeProgress| {
        if step.done == at {
            die();
        }
    };
    if let Err(err) = copy.accept(&accept, &CancellationToken::new(), &mut die_at) {
        // What a test says otherwise is kept from whoever runs it.
        std::io::stderr().write_all(err.to_string().as_bytes()).unwrap();
        panic!("it failed");
    }
}

/// A merge that has said what it will do and has done nothing yet, again and again.
struct Scene {
    fixture: Fixture,
    kept: TempDir,
}

impl Scene {
    fn new() -> Self {
        let (fixture, copy) = work();
        drop(copy);
        let scene = Self { fixture, kept: TempDir::new().unwrap() };
        assert_eq!(scene.killed(&[], 0), Some(9));
        for (from, to) in scene.places() {
            copy_all(&from, &to);
        }
        scene
    }

    /// What is put back, and from where.
    fn places(&self) -> [(std::path::PathBuf, std::path::PathBuf); 2] {
        let kept = |name: &str| self.kept.path().join(name);
        [(self.fixture.project.inside(""), kept("project")), (self.fixture.home.path().join("copies"), kept("copies"))]
    }

    fn again(&self) {
        for (place, kept) in self.places() {
            fs::remove_dir_all(&place).unwrap();
            copy_all(&kept, &place);
        }
    }

    /// Runs the child; the signal that ended it. `around` is what it is run by.
    fn killed(&self, around: &[String], at: usize) -> Option<i32> {
        let status = self.child(around, at).status().unwrap();
        assert!(status.success() || status.signal() == Some(9), "{around:?} {at}: {status}");
        status.signal()
    }

    fn child(&self, around: &[String], at: usize) -> Command {
        let mut argv = around.to_vec();
        argv.push(std::env::current_exe().unwrap().display().to_string());
        let (program, words) = argv.split_first().unwrap();
        let mut child = Command::new(program);
        child
            .args(words)
            .args(["--exact", "copies::crash::child", "--ignored"])
            .env(PLACE, self.fixture.home.path())
            .env(AT, at.to_string())
            .stdout(Stdio::null());
        child
    }

    fn copy(&self) -> Worktree {
        self.fixture.copies().find("one").unwrap()
    }

    /// Looks, which changes nothing, and asks for the same once more.
    fn accept_again(&self) {
        let (before, copy) = (self.fixture.files(), self.copy());
        copy.begun().unwrap();
        review(&copy);
        assert_eq!(self.fixture.copies().sweep().len(), 0);
        assert_eq!(self.fixture.files(), before, "whoever looks takes nothing");
        assert_eq!(accept(&mut self.copy(), None).stuck, []);
        assert_eq!(self.copy().begun().unwrap(), None);
    }

    /// What runs the child and meddles with its calls of the system on the project's folders, and no others.
    fn around(&self, call: &str, how: &str) -> Vec<String> {
        let (trace, inject) = (format!("trace={call}"), format!("inject={call}:{how}"));
        let plain = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
        let folders = ["", "src", "new", "tree", "tree/inner"].map(|folder| {
            let path = self.fixture.project.inside(folder).display().to_string();
            ["-P".to_owned(), path.trim_end_matches('/').to_owned()]
        });
        plain.map(str::to_owned).into_iter().chain(folders.into_iter().flatten()).collect()
    }

    /// Merges while a call of the system fails because the disk is full; what was said.
    fn full(&self, call: &str, when: &str) -> String {
        let ran = self
            .child(&self.around(call, &format!("error=ENOSPC:when={when}")), usize::MAX)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(FAILED), "{said}");
        said
    }
}

fn can_trace() -> bool {
    Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_ok()
}

fn copy_all(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success());
}

/// A project and a copy that differs from it in every way.
fn work() -> (Fixture, Worktree) {
    let fixture = Fixture::usual();
    fixture.project.write("tree/inner/x", "x\n");
    let copy = fixture.copy("one");
    let root = copy.root();
    fs::write(root.join("src/a.rs"), "changed\n").unwrap();
    fs::remove_file(root.join("src/b.rs")).unwrap();
    fs::remove_dir_all(root.join("tree")).unwrap();
    fs::write(root.join("tree"), "a file now\n").unwrap();
    fs::remove_file(root.join("link")).unwrap();
    fs::write(root.join("link"), "no link any more\n").unwrap();
    fs::remove_file(root.join("win.txt")).unwrap();
    symlink("src/a.rs", root.join("win.txt")).unwrap();
    fs::set_permissions(root.join("run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::create_dir(root.join("new")).unwrap();
    fs::write(root.join("new/x"), "new\n").unwrap();
    (fixture, copy)
}

fn undisturbed() -> BTreeMap<String, String> {
    let (fixture, mut copy) = work();
    assert_eq!(accept(&mut copy, None).stuck, []);
    fixture.files()
}

#[test]
fn a_merge_that_is_killed_at_any_file_comes_to_the_same_end() {
    let (want, scene) = (undisturbed(), Scene::new());
    let mut steps = 0;
    loop {
        scene.again();
        if scene.killed(&[], steps).is_none() {
            break;
        }
        scene.accept_again();
        assert_eq!(scene.fixture.files(), want, "killed at step {steps}");
        steps += 1;
    }
    assert_eq!(steps, 9, "one for each file, and one after the last");
    assert_eq!(scene.fixture.files(), want);
    assert_eq!(review(&scene.fixture.copies().find("one").unwrap()).open().count(), 0);
}

/// Killed from outside at every call that changes a name: also between the two halves of one file.
#[test]
fn a_merge_that_is_killed_at_any_change_of_a_name_comes_to_the_same_end() {
    if !can_trace() {
        return;
    }
    let (want, scene) = (undisturbed(), Scene::new());
    for call in ["renameat", "renameat2", "unlinkat"] {
        let mut number = 1;
        loop {
            scene.again();
            let killed = scene.killed(&scene.around(call, &format!("signal=SIGKILL:when={number}")), usize::MAX);
            scene.accept_again();
            assert_eq!(scene.fixture.files(), want, "{call} {number}");
            assert!(!scene.fixture.files().keys().any(|name| name.ends_with(".tmp")), "{call} {number}");
            if killed.is_none() {
                break;
            }
            number += 1;
        }
        assert!(number > 2, "{call} was killed {} times", number - 1);
    }
}

#[test]
fn a_whole_merge_that_is_killed_leaves_nothing() {
    let (fixture, copy) = work();
    drop(copy);
    let before = fixture.files();
    let scene = Scene { fixture, kept: TempDir::new().unwrap() };
    for at in 0..9 {
        let status = scene.child(&[], at).env(WHOLE, "1").status().unwrap();
        assert_eq!(status.signal(), Some(9), "{at}");
        assert!(at == 0 || scene.fixture.files() != before, "something had been done");
        let half = scene.fixture.files();
        review(&scene.copy());
        assert_eq!(scene.fixture.files(), half, "whoever looks puts nothing back");
        // One that was killed while it looked leaves this behind.
        fs::remove_dir_all(scene.fixture.home.path().join("copies/one/was")).unwrap();
        scene.copy().recover(&CancellationToken::new()).unwrap();
        assert_eq!(scene.fixture.files(), before, "killed at step {at}");
    }
}

/// Dead between the last two things: that the files are taken is written down, and that the merge is over is not.
#[test]
fn a_whole_merge_that_is_killed_at_its_very_end_is_made_again() {
    let (want, (fixture, mut copy)) = (undisturbed(), work());
    let (before, intent) = (fixture.files(), fixture.home.path().join("copies/one/merge.json"));
    let kept = fixture.home.path().join("kept.json");
    let whole = Accept { files: None, whole: true, shown: None, sight: &Visibility::default() };
    let mut keep = |step: max_team_tools::worktree::MergeProgress| {
        if step.done == 0 {
            fs::copy(&intent, &kept).unwrap();
        }
    };
    let files = copy.accept(&whole, &CancellationToken::new(), &mut keep).unwrap().files;
    fs::rename(&kept, &intent).unwrap();

    let mut copy = fixture.copies().find("one").unwrap();
    copy.recover(&CancellationToken::new()).unwrap();
    assert_eq!((fixture.files(), copy.begun().unwrap(), copy.is_settled()), (before, None, false));
    assert_eq!(review(&copy).open().count(), files.len());
    let again = copy.accept(&whole, &CancellationToken::new(), &mut |_| {}).unwrap();
    assert_eq!((again.files, again.open, fixture.files()), (files, 0, want));
}

#[test]
fn changes_by_the_user_after_a_crash_are_kept() {
    let scene = Scene::new();
    scene.fixture.project.write("src/a.rs", "mine\n");
    let merged = accept(&mut scene.copy(), None);
    assert_eq!(merged.stuck.len(), 1, "{merged:?}");
    assert_eq!(scene.fixture.project.read("src/a.rs"), "mine\n");
    let seen = review(&scene.copy());
    assert_eq!(seen.open().map(|change| change.path.as_str()).collect::<Vec<_>>(), ["src/a.rs"]);
    assert_eq!(seen.stuck().count(), 1);
}

#[test]
fn rejecting_half_a_merge_leaves_the_project_as_it_is() {
    let scene = Scene::new();
    // Dead after the two files that go and the one deep down that comes.
    assert_eq!(scene.killed(&[], 3), Some(9));
    let half = scene.fixture.files();
    let taken = ["new/x", "src/b.rs", "tree/inner/x"];
    assert_eq!(scene.copy().begun().unwrap().unwrap(), taken);
    let mut copy = scene.copy();
    let no = copy.reject(&["run.sh".to_owned()], &Visibility::default(), &CancellationToken::new()).unwrap();
    assert_eq!((no.open, scene.fixture.files()), (4, half.clone()));
    assert_eq!(copy.begun().unwrap(), None, "what was taken is taken");
    let fates: BTreeMap<_, _> = review(&copy).changes.into_iter().map(|change| (change.path, change.fate)).collect();
    assert!(taken.iter().all(|path| fates[*path] == Fate::Done) && fates["run.sh"] == Fate::Rejected, "{fates:?}");
    copy.remove().unwrap();
    assert_eq!(scene.fixture.files(), half);
}

#[test]
fn changes_undone_by_hand_are_taken_again_only_if_asked_for() {
    let (want, scene) = (undisturbed(), Scene::new());
    let before = scene.fixture.files();
    assert_eq!(scene.killed(&[], 8), Some(9));
    let [(project, kept), _] = scene.places();
    fs::remove_dir_all(&project).unwrap();
    copy_all(&kept, &project);
    assert_eq!((scene.fixture.files(), scene.copy().begun().unwrap()), (before.clone(), Some(Vec::new())));
    let one = accept(&mut scene.copy(), Some(&["new/x"]));
    let mut some = before;
    some.extend(["new/", "new/x"].map(|path| (path.to_owned(), want[path].clone())));
    assert_eq!((one.files, scene.fixture.files()), (vec!["new/x".to_owned()], some), "only what was named");
}

#[test]
fn a_merge_that_meets_a_full_disk_is_put_back() {
    if !can_trace() {
        return;
    }
    let (want, scene) = (undisturbed(), Scene::new());
    scene.again();
    let before = scene.fixture.files();
    let said = scene.full("renameat", "2");
    assert_eq!(scene.fixture.files(), before);
    for part in ["`run.sh`: the disk is full", "nothing was accepted", "restored: `link`, `new/x`, `src/a.rs`"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(scene.copy().begun().unwrap(), None);
    scene.accept_again();
    assert_eq!(scene.fixture.files(), want);
}

#[test]
fn a_failed_rollback_is_said_and_known() {
    if !can_trace() {
        return;
    }
    let (want, scene) = (undisturbed(), Scene::new());
    scene.again();
    let said = scene.full("renameat", "2+");
    for part in
        ["in the project already: `link`, `src/a.rs`;", "not accepted: `run.sh`", "worktrees reject one` to leave"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(scene.copy().begun().unwrap().unwrap(), ["link", "src/a.rs"]);
    scene.accept_again();
    assert_eq!(scene.fixture.files(), want);
}

#[test]
fn a_copy_that_was_not_finished_is_made_again() {
    let fixture = Fixture::usual();
    let half = fixture.home.path().join("copies/.making-one");
    fs::create_dir_all(half.join("tree/src")).unwrap();
    fs::write(half.join("tree/src/a.rs"), "half\n").unwrap();
    fs::set_permissions(half.join("tree/src"), fs::Permissions::from_mode(0o500)).unwrap();
    assert!(fixture.copies().find("one").is_err() && fixture.copies().list().is_empty());
    let copy = fixture.copy("one");
    assert_eq!(fates(&review(&copy)), []);
    assert_eq!(fs::read_to_string(copy.root().join("src/a.rs")).unwrap(), "one\ntwo\nthree\n");
    assert!(!half.exists());
    let left = fixture.home.path().join("copies/.leaving-two");
    fs::create_dir_all(left.join("tree")).unwrap();
    assert_eq!(fixture.copies().sweep().len(), 0);
    assert!(!left.exists());
}

/// A git that is killed leaves the lock of its index, and maybe the index: neither is in the way of the next look.
#[test]
fn locks_of_a_killed_git_block_no_read() {
    let (_fixture, copy) = work();
    let home = copy.root().parent().unwrap().to_owned();
    let before = copy.review(&Visibility::default(), &CancellationToken::new()).unwrap().changes;
    let own = format!("now-{}-{}", std::process::id(), 0);
    let left = ["now", "now.lock", "now-2-0", "now-2-0.lock"].map(str::to_owned);
    for name in left.iter().chain([&own, &format!("{own}.lock")]) {
        fs::write(home.join(name), "left").unwrap();
    }
    let after = copy.review(&Visibility::default(), &CancellationToken::new()).unwrap().changes;
    assert_eq!(after, before);
    assert!(left.iter().all(|name| !home.join(name).exists()), "what was left is removed");
}
