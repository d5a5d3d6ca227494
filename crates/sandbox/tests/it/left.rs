//! Nothing is left behind, whoever ends and how.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use max_team_sandbox::{EndMark, EndReason};

use super::*;

/// A number that nobody else sleeps for, to find the sleepers by.
fn mark() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}.{}", 100_000 + std::process::id() % 100_000, 1_000 + NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Processes whose arguments have the mark in them.
fn marked(mark: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.starts_with("sleep ") && line.contains(mark)).collect()
}

fn soon(what: impl Fn() -> bool) -> bool {
    let until = Instant::now() + Duration::from_secs(20);
    while Instant::now() < until {
        if what() {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

/// Children of every kind: plain, in a session of their own, daemons that forked twice, deaf ones.
fn brood(mark: &str) -> String {
    format!(
        "sleep {mark} & setsid sleep {mark} & (setsid sh -c 'sleep {mark} & sleep {mark}' &) & \
         (trap '' TERM HUP INT; sleep {mark}) & nohup sleep {mark} >/dev/null 2>&1 & echo up;"
    )
}

#[test]
fn nothing_outlives_a_command() {
    let world = World::new();
    let mut all = engines();
    all.push(Engine::Bare);
    for engine in all {
        let isolation = (engine != Engine::Bare).then(|| world.isolation());
        let mark = mark();
        let (over, _) =
            ran(engine, &Spec { isolation: isolation.clone(), ..world.spec(&format!("{} exit 0", brood(&mark))) })
                .unwrap();
        assert_eq!((over.code, over.ended), (Some(0), EndReason::Exited), "{engine:?}");
        assert_eq!(marked(&mark), Vec::<String>::new(), "{engine:?} after its end");

        let spec = Spec { isolation, ..world.spec(&format!("{} sleep {mark}", brood(&mark))) };
        let limits = Limits { time: Duration::from_millis(500), ..Limits::default() };
        let (over, _) = ran(engine, &Spec { limits, ..spec }).unwrap();
        assert_eq!(over.ended, EndReason::TimedOut, "{engine:?}");
        assert_eq!(marked(&mark), Vec::<String>::new(), "{engine:?} after its time");
    }
}

/// Not a test by itself: what `a_killed_parent_leaves_nothing` kills.
#[test]
#[ignore = "started by another test"]
fn a_parent_to_be_killed() {
    let Some((engine, mark)) = std::env::args().find_map(|arg| {
        let (engine, mark) = arg.strip_prefix("parent=")?.split_once(':')?;
        Some((engine.to_owned(), mark.to_owned()))
    }) else {
        return;
    };
    let world = World::new();
    let engine = match engine.as_str() {
        "Namespaces" => Engine::Namespaces,
        "Bubblewrap" => Engine::Bubblewrap,
        "Landlock" => Engine::Landlock,
        _ => Engine::Bare,
    };
    let isolation = Isolation { protected: vec![world.own.join(".mcp.json")], ..world.isolation() };
    let isolation = (engine != Engine::Bare).then_some(isolation);
    let script = format!("echo '{{}}' > .mcp.json; echo at $PWD; {} sleep {mark}", brood(&mark));
    std::fs::write(world.own.join("end"), "?").unwrap();
    let end = std::fs::OpenOptions::new().write(true).open(world.own.join("end")).unwrap();
    let spec = Spec { isolation, end_mark: Some(EndMark(end.into())), ..world.spec(&script) };
    let _ = run_by(engine, &spec, false, &CancellationToken::new(), &mut |_, bytes| {
        eprint!("{}", String::from_utf8_lossy(bytes));
        true
    });
}

#[test]
fn a_killed_parent_leaves_nothing() {
    let mut all = engines();
    all.push(Engine::Bare);
    for engine in all {
        let mark = mark();
        let mut parent = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "left::a_parent_to_be_killed", "--nocapture"])
            .args(["--skip", &format!("parent={engine:?}:{mark}")])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(parent.stderr.take().unwrap()).lines().map(Result::unwrap);
        let own = lines.find_map(|line| line.strip_prefix("at ").map(PathBuf::from)).unwrap();
        assert!(lines.any(|line| line == "up"), "{engine:?}");
        assert!(soon(|| marked(&mark).len() >= 5), "{engine:?}: {:?}", marked(&mark));
        parent.kill().unwrap();
        parent.wait().unwrap();
        assert!(soon(|| marked(&mark).is_empty()), "{engine:?}: {:?}", marked(&mark));
        assert!(soon(|| std::fs::read(own.join("end")).unwrap() == [EndMark::ENDED]), "{engine:?}: its end is noted");
        if engine != Engine::Bare {
            assert!(soon(|| own.join(".mcp.json.untrusted-1").exists()), "{engine:?}: what was planted is obeyed");
            assert!(!own.join(".mcp.json").exists(), "{engine:?}");
        }
    }
}

#[test]
fn the_next_process_waits_for_commands_of_a_killed_one() {
    for engine in engines() {
        let mark = mark();
        let mut parent = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "left::a_parent_to_be_killed", "--nocapture"])
            .args(["--skip", &format!("parent={engine:?}:{mark}")])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(parent.stderr.take().unwrap()).lines();
        assert!(lines.map(Result::unwrap).any(|line| line == "up"), "{engine:?}");
        assert!(soon(|| marked(&mark).len() >= 5), "{engine:?}: {:?}", marked(&mark));
        parent.kill().unwrap();
        parent.wait().unwrap();
        max_team_sandbox::wait_until_gone();
        assert_eq!(marked(&mark), Vec::<String>::new(), "{engine:?}: a command would run beside its first run");
    }
}

/// Not a test by itself: what the next one kills.
#[test]
#[ignore = "started by another test"]
fn a_parent_of_a_command_with_a_lock() {
    let Some(mark) = std::env::args().find_map(|arg| Some(arg.strip_prefix("locked=")?.to_owned())) else { return };
    let world = World::new();
    let engine = match mark.as_str() {
        "Namespaces" => Engine::Namespaces,
        "Bubblewrap" => Engine::Bubblewrap,
        _ => Engine::Landlock,
    };
    let script = "trap 'rm lock; exit 1' TERM; echo > lock; echo at $PWD; while :; do sleep 60 & wait; done";
    let _ = run_by(engine, &world.spec(script), false, &CancellationToken::new(), &mut |_, bytes| {
        eprint!("{}", String::from_utf8_lossy(bytes));
        true
    });
}

/// A program that removes its own locks when it is asked to end, as git does, is asked when we are killed, too.
#[test]
fn a_command_whose_parent_is_killed_can_remove_its_locks() {
    for engine in engines() {
        let mut parent = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "left::a_parent_of_a_command_with_a_lock", "--nocapture"])
            .args(["--skip", &format!("locked={engine:?}")])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(parent.stderr.take().unwrap()).lines().map(Result::unwrap);
        let own = lines.find_map(|line| line.strip_prefix("at ").map(PathBuf::from)).unwrap();
        assert!(own.join("lock").exists(), "{engine:?}");
        parent.kill().unwrap();
        parent.wait().unwrap();
        assert!(soon(|| !own.join("lock").exists()), "{engine:?}: its lock is left");
    }
}

/// A supervisor that somebody kills takes everything along where the system sees to that.
#[test]
fn a_killed_supervisor_leaves_nothing() {
    let world = World::new();
    for engine in engines() {
        let mark = mark();
        let script = format!("sleep {mark}");
        let spec = Spec { argv: ["sleep", &mark].map(str::to_owned).to_vec(), ..world.spec(&script) };
        let over = std::thread::scope(|scope| {
            let running = scope.spawn(|| ran(engine, &spec));
            assert!(soon(|| marked(&mark).len() == 1));
            let supervisor = supervisor_of(&mark);
            rustix::process::kill_process(supervisor, rustix::process::Signal::KILL).unwrap();
            running.join().unwrap()
        });
        let error = over.unwrap_err();
        assert!(matches!(error, SandboxError::Lost { .. }), "{engine:?} {error:?}");
        assert!(!error.to_string().contains("not run"), "it was run: {error}");
        assert!(soon(|| marked(&mark).is_empty()), "{engine:?}");
    }
}

/// The parent of the process with that mark.
fn supervisor_of(mark: &str) -> rustix::process::Pid {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let is_it = |path: &Path| {
        fs::read(path.join("cmdline"))
            .is_ok_and(|line| line.starts_with(b"sleep\0") && String::from_utf8_lossy(&line).contains(mark))
    };
    let path = entries.map(|entry| entry.path()).find(|path| is_it(path)).unwrap();
    let stat = text(&path.join("stat"));
    let parent = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().parse().unwrap();
    rustix::process::Pid::from_raw(parent).unwrap()
}
