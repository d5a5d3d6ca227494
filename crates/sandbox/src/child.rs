//! The supervisor: this program, started again inside the walls, in front of them, or to build them.
//!
//! It takes one order from its standard input, starts the command, and stays with it. When the command is over, at a
//! limit, when it is told to, or when whoever gave the order is gone, it ends everything below it, says how it went and
//! goes. It keeps nothing and prints nothing.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, setrlimit, wait, waitid,
};

use crate::line;
use crate::session;
use crate::spec::{Appeared, Ended, Engine, Limit, Limits, Spec};
use crate::system;
use crate::wire::{ENOUGH, FLOOD, Order, STOP, Said, Trouble, WORD, hand, letter, receive, send};

/// How long a tree has to end after it was asked to.
const GRACE: Duration = Duration::from_secs(2);
/// How often processes are counted …
const TICK: Duration = Duration::from_millis(10);
/// … and how often all that they take is.
const LOOK: Duration = Duration::from_millis(40);
/// How often one that is being killed is.
const KILL_TICK: Duration = Duration::from_millis(1);
/// How long the dead are waited for: longer only if the system itself does not let go of them.
const KILL_WAIT: Duration = Duration::from_secs(5);
/// Seconds of processor time between being told that there is no more and being killed.
const CPU_GRACE_S: u64 = 5;
/// Processes beyond their limit before the system itself says no: the supervisor and whatever builds the walls count
/// too, and a supervisor that sees the limit passed can say so.
pub(crate) const PROCESSES_SLACK: u64 = 64;
/// Processes of others that are counted at the start.
const OTHERS_MAX: u64 = 1 << 16;
/// The dead that are taken leave of before the living are looked at again.
const REAPED_MAX: usize = 4_096;
/// Names that are tried for what is moved out of the way.
const NAMES_MAX: u32 = 1_000;

/// If this process was started to be a supervisor, is one, and says what to exit with. To be called first in `main`.
pub fn child() -> Option<u8> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != WORD {
        return None;
    }
    session::close_inherited();
    // The other end of the socket is told what happened, or is gone.
    Some(u8::from(supervise().is_err()))
}

fn supervise() -> io::Result<()> {
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let Some(mut order) = receive::<Order>(&control)? else { return Ok(()) };
    if order.engine == Engine::Namespaces {
        match system::separate(&order.spec) {
            Ok(None) => {}
            Ok(Some(supervisor)) => session::stand_by(supervisor),
            Err(why) => return send(&control, &Said::Unable(Trouble::Walls(why))),
        }
    }
    system::own()?;
    let scratch = Scratch::for_engine(&mut order)?;
    let before = Before::of(&order.spec);
    let others = system::census(OTHERS_MAX);
    let started = limit(&order)
        .map_err(|error| Trouble::Walls(error.to_string()))
        .and_then(|()| open_door(&mut order, &control).map_err(|error| Trouble::Walls(error.to_string())))
        .and_then(|()| system::shut_in(&order.spec, order.engine).map_err(Trouble::Walls))
        .and_then(|()| send(&control, &Said::Ready).map_err(|error| trouble(&order.spec, &error)))
        .and_then(|()| start(&order));
    let leader = match started {
        // There was nothing to run: the question was whether the sandbox can be built.
        Ok(None) => return Ok(()),
        Ok(Some(leader)) => leader,
        Err(trouble) => return send(&control, &Said::Unable(trouble)),
    };
    let mut watch = Watch { control, leader, limits: order.spec.limits, others, next: Instant::now(), status: None };
    let Some(ended) = watch.until_over()? else {
        watch.end();
        // Nobody is told; but what was planted must not wait for whoever comes next.
        before.appeared();
        return Ok(());
    };
    watch.end();
    let (code, signal) =
        watch.status.map_or((None, None), |status| (status.exit_status(), status.terminating_signal()));
    let ended = match signal {
        Some(signal) if ended == Ended::Exited && signal == Signal::XFSZ.as_raw() => Ended::Limit(Limit::FileBytes),
        Some(signal) if ended == Ended::Exited && signal == Signal::XCPU.as_raw() => Ended::Limit(Limit::Cpu),
        _ => ended,
    };
    let appeared = before.appeared();
    drop(scratch);
    send(&watch.control, &Said::Over { code, signal, ended, appeared })
}

/// Where the command may talk to some hosts: a socket of its own network, served from outside, and the variables that
/// lead programs there.
fn open_door(order: &mut Order, control: &UnixStream) -> io::Result<()> {
    if !order.has_door() {
        return Ok(());
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = format!("http://{}", listener.local_addr()?);
    hand(control, &listener)?;
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        order.spec.env.push((name.to_owned(), address.clone()));
    }
    for name in ["NO_PROXY", "no_proxy"] {
        order.spec.env.push((name.to_owned(), "localhost,127.0.0.1,::1".to_owned()));
    }
    Ok(())
}

/// Limits that the system keeps for each process.
fn limit(order: &Order) -> io::Result<()> {
    let limits = &order.spec.limits;
    let table = [
        (Resource::Core, 0, 0),
        (Resource::Fsize, limits.file_bytes, limits.file_bytes),
        (Resource::Nofile, limits.open_files, limits.open_files),
        // Told first, killed later: so that it can be told from being killed for something else.
        (Resource::Cpu, limits.cpu.as_secs(), limits.cpu.as_secs().saturating_add(CPU_GRACE_S)),
    ];
    for (resource, soft, hard) in table {
        let own = rustix::process::getrlimit(resource).maximum;
        let within = |most: u64| Some(own.map_or(most, |own| own.min(most)));
        setrlimit(resource, Rlimit { current: within(soft), maximum: within(hard) })?;
    }
    // Never for root; and for this namespace alone where there is one. The supervisor counts, too.
    #[cfg(target_os = "linux")]
    if !rustix::process::geteuid().is_root() {
        let others = if order.engine.has_namespaces() { 0 } else { system::threads() };
        // A little more than what the supervisor allows, so that it sees the limit passed and can say so.
        let most = Some(limits.processes.saturating_add(PROCESSES_SLACK + others));
        setrlimit(Resource::Nproc, Rlimit { current: most, maximum: most })?;
    }
    Ok(())
}

/// The command as it is started, with nothing of ours.
pub(crate) fn command<'a>(
    argv: &[String],
    dir: &Path,
    env: impl IntoIterator<Item = &'a (String, String)>,
) -> io::Result<Command> {
    let program = argv.first().ok_or(Errno::INVAL)?;
    let mut command = Command::new(place(dir, program)?);
    command.args(argv.iter().skip(1)).current_dir(dir).stdin(Stdio::null());
    command.env_clear().envs(env.into_iter().map(|(name, value)| (name, value)));
    Ok(command)
}

/// A name is looked up; a path is relative to the folder, on every system.
fn place(dir: &Path, program: &str) -> io::Result<PathBuf> {
    if program.contains('/') { std::path::absolute(dir.join(program)) } else { Ok(PathBuf::from(program)) }
}

/// Why a program could not be started.
pub(crate) fn trouble(spec: &Spec, error: &io::Error) -> Trouble {
    let is_there = |program: &String| place(&spec.dir, program).is_ok_and(|path| path.is_file());
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::PermissionDenied if !spec.dir.is_dir() => Trouble::Folder,
        ErrorKind::NotFound if spec.argv.first().is_some_and(is_there) => Trouble::Interpreter,
        ErrorKind::NotFound => Trouble::NotFound,
        ErrorKind::PermissionDenied => Trouble::Denied,
        _ => Trouble::Errno(error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error())),
    }
}

/// Starts the command; `None` if there is none.
fn start(order: &Order) -> Result<Option<Pid>, Trouble> {
    let failed = |error: io::Error| trouble(&order.spec, &error);
    let Spec { argv, dir, env, line, .. } = &order.spec;
    if argv.is_empty() {
        return Ok(None);
    }
    if order.engine != Engine::Landlock && line.is_empty() {
        let mut command = command(argv, dir, env).map_err(failed)?;
        session::lead(&mut command, order.nice);
        let child = command.spawn().map_err(failed)?;
        return Ok(Some(Pid::from_child(&child)));
    }
    let (ours, its) = UnixStream::pair().map_err(failed)?;
    let Some(child) = session::fork().map_err(failed)? else {
        session::close_others(&its);
        session::leave(enter(order, its).unwrap_or(1))
    };
    drop(its);
    // Its end of the socket is closed the moment it becomes the command, or begins with the line.
    match receive::<Trouble>(&ours).map_err(failed)? {
        Some(trouble) => Err(trouble),
        None => Ok(Some(child)),
    }
}

/// The forked process: enters the sandbox if that is its job, and becomes the command or runs the line.
fn enter(order: &Order, supervisor: UnixStream) -> io::Result<u8> {
    rustix::stdio::dup2_stdin(fs::File::open("/dev/null")?)?;
    session::begin(order.nice)?;
    if order.engine == Engine::Landlock
        && let Err(error) = system::enter(&order.spec)
    {
        return send(&supervisor, &Trouble::Walls(error)).map(|()| 1);
    }
    let Spec { argv, dir, env, line, .. } = &order.spec;
    if line.is_empty() {
        let error = command(argv, dir, env)?.exec();
        return send(&supervisor, &trouble(&order.spec, &error)).map(|()| 1);
    }
    drop(supervisor);
    Ok(line::run(&order.spec))
}

/// One command that runs.
struct Watch {
    control: UnixStream,
    leader: Pid,
    limits: Limits,
    /// Processes that were there before.
    others: u64,
    /// When everything is looked at again.
    next: Instant,
    status: Option<WaitStatus>,
}

impl Watch {
    /// Waits until the command is over or has to be; `None` if nobody is there any more to tell.
    fn until_over(&mut self) -> io::Result<Option<Ended>> {
        let (ear, bell) = io::pipe()?;
        let leader = self.leader;
        std::thread::Builder::new().spawn(move || {
            let _ = retry_on_intr(|| waitid(WaitId::Pid(leader), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT));
            drop(bell);
        })?;
        let deadline = Instant::now() + self.limits.time;
        let mut asked: Option<(Ended, Instant)> = None;
        let mut is_alone = false;
        loop {
            self.reap();
            let now = Instant::now();
            if self.status.is_some() {
                return Ok(Some(asked.map_or(Ended::Exited, |(why, _)| why)).filter(|_| !is_alone));
            }
            if let Some((why, until)) = asked {
                if now >= until {
                    return Ok(Some(why).filter(|_| !is_alone));
                }
            } else if let Some(limit) = self.over_limit(now) {
                return Ok(Some(Ended::Limit(limit)));
            } else if now >= deadline {
                asked = Some(self.ask(Ended::TimedOut));
            }
            if is_alone {
                ready(&ear, &ear, TICK)?;
                continue;
            }
            let (is_told, _) = ready(&self.control, &ear, TICK)?;
            match is_told.then(|| letter(&self.control)) {
                None => {}
                Some(Some(STOP)) if asked.is_none() => asked = Some(self.ask(Ended::Cancelled)),
                Some(Some(STOP)) => {}
                Some(Some(FLOOD)) => return Ok(Some(Ended::Limit(Limit::Output))),
                Some(Some(ENOUGH)) => return Ok(Some(Ended::Exited)),
                // The other side is gone. The command is still asked to end first, so that it can clean up: git removes
                // its locks.
                Some(_) => {
                    is_alone = true;
                    asked = asked.or_else(|| Some(self.ask(Ended::Cancelled)));
                }
            }
        }
    }

    /// The leader, as long as its number is its own.
    fn present(&self) -> Option<Pid> {
        self.status.is_none().then_some(self.leader)
    }

    /// Asks everybody to end.
    fn ask(&self, why: Ended) -> (Ended, Instant) {
        system::kill_all(self.present(), Signal::TERM);
        (why, Instant::now() + GRACE)
    }

    /// Processes are counted at every look, because they multiply; the rest costs more to look at and grows slower.
    fn over_limit(&mut self, now: Instant) -> Option<Limit> {
        let most = self.limits.processes;
        let crowd = self.others.saturating_add(most);
        if system::census(crowd) >= crowd && system::processes(self.leader, most) >= most {
            return Some(Limit::Processes);
        }
        if now < self.next {
            return None;
        }
        self.next = now + LOOK;
        let used = system::usage(crowd);
        if used.processes >= self.limits.processes {
            Some(Limit::Processes)
        } else if used.memory > self.limits.memory {
            Some(Limit::Memory)
        } else if used.ticks > system::ticks_of(self.limits.cpu) {
            Some(Limit::Cpu)
        } else {
            None
        }
    }

    /// Takes leave of the dead, and not for ever: a bomb makes them faster than anybody can. Whether somebody is left.
    fn reap(&mut self) -> bool {
        for _ in 0..REAPED_MAX {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.leader => self.status = Some(status),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
        true
    }

    /// Ends everybody, and sees that they are gone.
    fn end(&mut self) {
        let until = Instant::now() + KILL_WAIT;
        loop {
            system::kill_all(self.present(), Signal::KILL);
            if !self.reap() || Instant::now() >= until {
                return;
            }
            let _ = poll(&mut [], Timespec::try_from(KILL_TICK).ok().as_ref());
        }
    }
}

/// Waits for one of two to be readable.
fn ready(first: impl AsFd, second: impl AsFd, most: Duration) -> io::Result<(bool, bool)> {
    let mut fds = [PollFd::new(&first, PollFlags::IN), PollFd::new(&second, PollFlags::IN)];
    match poll(&mut fds, Timespec::try_from(most).ok().as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    let [first, second] = &fds;
    Ok((!first.revents().is_empty(), !second.revents().is_empty()))
}

/// A folder for temporary files, where nobody else's can be had out of sight.
struct Scratch(Option<PathBuf>);

impl Scratch {
    fn for_engine(order: &mut Order) -> io::Result<Self> {
        let Some(walls) = order.spec.walls.as_mut().filter(|_| order.engine == Engine::Landlock) else {
            return Ok(Self(None));
        };
        // Nothing was inherited, so this is the system's own folder.
        let path = std::env::temp_dir().join(format!("max-team-walls-{}", std::process::id()));
        // What is there already is a leftover of our own number, or somebody's trap: it is never used.
        let _ = fs::remove_dir_all(&path);
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let scratch = Self(Some(path.clone()));
        order.spec.env.push(("TMPDIR".to_owned(), path.display().to_string()));
        walls.writable.push(path);
        Ok(scratch)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Protected names that no wall can hold, because there is nothing there or a link: how they are before.
struct Before(Vec<(PathBuf, Option<PathBuf>)>);

impl Before {
    fn of(spec: &Spec) -> Self {
        let Some(walls) = &spec.walls else { return Self(Vec::new()) };
        let written = |path: &&PathBuf| walls.writable.iter().any(|root| path.starts_with(root));
        let loose = |path: &PathBuf| match fs::symlink_metadata(path) {
            Ok(meta) => meta.is_symlink().then(|| fs::read_link(path).ok()),
            Err(_) => Some(None),
        };
        let state = |path: &PathBuf| Some((path.clone(), loose(path)?));
        Self(walls.protected.iter().filter(written).filter_map(state).collect())
    }

    /// Moves what has come to be there out of the way.
    fn appeared(&self) -> Vec<Appeared> {
        let is_other = |path: &Path, link: &Option<PathBuf>| match fs::symlink_metadata(path) {
            Ok(_) => link.is_none() || fs::read_link(path).ok() != *link,
            Err(_) => false,
        };
        let new = self.0.iter().filter(|(path, link)| is_other(path, link));
        new.map(|(path, _)| Appeared { path: path.clone(), moved: set_aside(path) }).collect()
    }
}

/// Gives something a name under which no program obeys it; returns that name, or `None` if it is still where it was.
pub fn set_aside(path: &Path) -> Option<PathBuf> {
    let (name, folder) = (path.file_name()?.to_string_lossy(), path.parent()?);
    let moved = |ending: String| {
        let other = path.with_file_name(format!("{name}.untrusted-{ending}"));
        (fs::symlink_metadata(&other).is_err() && fs::rename(path, &other).is_ok()).then_some(other)
    };
    if let Some(other) = moved("1".to_owned()) {
        return Some(other);
    }
    // The command may have closed the folder, which is our own, or taken names in advance; it cannot know the clock's.
    let mode = fs::metadata(folder).ok()?.permissions();
    let mut open = mode.clone();
    open.set_mode(mode.mode() | 0o700);
    let is_opened = open != mode && fs::set_permissions(folder, open).is_ok();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let other = (1..NAMES_MAX).map(|count| count.to_string()).chain([now.to_string()]).find_map(moved);
    if is_opened {
        let _ = fs::set_permissions(folder, mode);
    }
    other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_keeps_a_planted_file_where_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let planted = dir.path().join(".envrc");
        fs::write(&planted, "evil").unwrap();
        for count in 1..NAMES_MAX {
            fs::write(dir.path().join(format!(".envrc.untrusted-{count}")), "").unwrap();
        }
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o555)).unwrap();
        let moved = set_aside(&planted).unwrap();
        assert_eq!((fs::read_to_string(&moved).unwrap().as_str(), planted.exists()), ("evil", false));
        assert_eq!(fs::metadata(dir.path()).unwrap().permissions().mode() & 0o777, 0o555);
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(set_aside(&planted), None);
    }
}
