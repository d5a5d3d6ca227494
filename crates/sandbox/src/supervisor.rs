//! The supervisor: this program, started again inside the sandbox, in front of it, or to build it.
//!
//! It takes one order from its standard input, starts the command, and stays with it. When the command ends, at a
//! limit, when it is told to stop, or when the process that gave the order is gone, it ends all processes below it,
//! reports how it went and exits. It keeps nothing and prints nothing.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, pwrite, retry_on_intr};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, getppid, kill_process, setrlimit,
    wait, waitid,
};

use crate::detach;
use crate::pipeline;
use crate::protocol::{
    ENOUGH, FLOOD, IDLE, Order, STOP, StartError, SupervisedEnd, SupervisorReport, Unsignalled, WORD, hand, letter,
    receive, send, take,
};
use crate::spec::{EndMark, EndReason, Engine, Limit, Limits, NameSockets, Spec};
use crate::system;
use crate::watch::{self, AppearedPath, CommandWatch, WatchMaker};

/// How long a tree has to end after it was asked to.
const GRACE: Duration = Duration::from_secs(2);
/// How often processes are counted.
const TICK: Duration = Duration::from_millis(10);
/// How often everything that they use is measured.
const LOOK: Duration = Duration::from_millis(40);
/// How often processes that are being killed are checked.
const KILL_TICK: Duration = Duration::from_millis(1);
/// The longest time between two ticks of the clock that files get their times from.
const FILE_CLOCK_TICK: Duration = Duration::from_millis(20);
/// How long killed processes are waited for: only the system itself can hold them longer.
const KILL_WAIT: Duration = Duration::from_secs(5);
/// Seconds of processor time between the warning signal and the kill.
const CPU_GRACE_S: u64 = 5;
/// Processes beyond the limit that the system still allows: the supervisor and the process that builds the sandbox
/// count too, and the supervisor can only report the limit if it sees it exceeded.
pub(crate) const PROCESSES_SLACK: u64 = 64;
/// Processes of other programs that are counted at the start.
const OTHERS_MAX: u64 = 1 << 16;
/// Dead processes that are reaped before the living are checked again.
const REAPED_MAX: usize = 4_096;
/// Names that are tried for a file that is moved out of the way.
const NAMES_MAX: u32 = 1_000;

/// If this process was started as a supervisor, acts as one and returns its exit code. Must be called first in `main`.
pub fn child(maker: WatchMaker) -> Option<u8> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != WORD {
        return None;
    }
    detach::close_inherited();
    // The other end of the socket has been told what happened, or is gone.
    Some(u8::from(supervise(maker).is_err()))
}

fn supervise(maker: WatchMaker) -> io::Result<()> {
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let Some(mut order) = receive::<Order>(&control)? else { return Ok(()) };
    let mark = if order.has_end_mark { take(&control)?.pop() } else { None };
    let stdin = if order.has_stdin { take(&control)?.pop() } else { None };
    let notes = if order.has_notes { take(&control)?.pop().map(fs::File::from) } else { None };
    let scratch_parent = if order.has_scratch { take(&control)?.pop() } else { None };
    let leftover = Leftover::of(&order.spec, scratch_parent);
    let mut names = None;
    if order.engine == Engine::Namespaces {
        match system::separate(&order) {
            Ok(Separated::Inside(sockets)) => names = sockets,
            Ok(Separated::Outside(supervisor)) => detach::stand_by(supervisor, || leftover.remove_if_orphaned()),
            Err(why) => return send(&control, &SupervisorReport::Unable(StartError::Sandbox(why))),
        }
    }
    system::own()?;
    let scratch = ScratchDir::for_engine(&mut order)?;
    let before = ProtectedState::of(&order.spec);
    let others = system::census(OTHERS_MAX);
    let started = limit(&order)
        .map_err(|error| StartError::Sandbox(error.to_string()))
        .and_then(|()| open_door(&mut order, &control, names).map_err(|error| StartError::Sandbox(error.to_string())))
        .and_then(|()| system::shut_in(&order.spec, order.engine).map_err(StartError::Sandbox))
        .and_then(|()| send(&control, &SupervisorReport::Ready).map_err(|error| trouble(&order.spec, &error)))
        .and_then(|()| start(&order, stdin));
    let leader = match started {
        // There was nothing to run: the question was whether the sandbox can be built.
        Ok(None) => return Ok(()),
        Ok(Some(leader)) => leader,
        Err(trouble) => return send(&control, &SupervisorReport::Unable(trouble)),
    };
    let reports = control.try_clone()?;
    let begun = CommandWatch::of(order.spec.watch.as_ref(), notes, maker).begin(move |appeared| {
        // If no process reads the report, the file is moved all the same.
        let _ = send(Unsignalled(&reports), &SupervisorReport::Appeared(appeared));
    });
    let (limits, ends_its_children) = (order.spec.limits, order.spec.ends_its_children);
    let mut watched =
        WatchedCommand { control, leader, ends_its_children, limits, others, next: Instant::now(), status: None };
    // No command runs unwatched.
    let file_watch = begun.inspect_err(|_| watched.end())?;
    let Some(ended) = watched.until_over()? else {
        watched.end();
        note_end(mark.as_ref());
        // No process reads the report any more, but a planted file must not stay for the next program that looks for
        // it.
        before.appeared();
        let _ = file_watch.finish();
        leftover.remove();
        // Waits a tick of the file clock, so that no later change by the user has the same time as the last one of the
        // command.
        let _ = poll(&mut [], Timespec::try_from(FILE_CLOCK_TICK).ok().as_ref());
        return Ok(());
    };
    watched.end();
    note_end(mark.as_ref());
    let (code, signal) =
        watched.status.map_or((None, None), |status| (status.exit_status(), status.terminating_signal()));
    let ended = match signal {
        Some(signal) if ended == EndReason::Exited && signal == Signal::XFSZ.as_raw() => {
            EndReason::Limit(Limit::FileBytes)
        }
        Some(signal) if ended == EndReason::Exited && signal == Signal::XCPU.as_raw() => EndReason::Limit(Limit::Cpu),
        _ => ended,
    };
    let mut appeared = before.appeared();
    let (swept, unexamined) = file_watch.finish();
    appeared.extend(swept);
    let bypassed = system::has_bypassed(&order);
    drop(scratch);
    let end = SupervisedEnd { code, signal, ended, appeared, unexamined, bypassed };
    send(&watched.control, &SupervisorReport::Over(end))
}

/// What [`system::separate`] returns: it returns twice.
pub(crate) enum Separated {
    /// To the process that stays outside, with the one inside.
    Outside(Pid),
    /// To the process inside, with the sockets of its name server, where they could be opened.
    Inside(Option<NameSockets>),
}

/// Notes in a file that the command has ended.
fn note_end(mark: Option<&OwnedFd>) {
    // Without a note the end counts as unknown.
    let _ = mark.map(|mark| pwrite(mark, &[EndMark::ENDED], 0));
}

/// For a command that may reach some hosts: opens a socket in its own network, which is served from outside, and sets
/// the variables that lead programs there.
fn open_door(order: &mut Order, control: &UnixStream, names: Option<NameSockets>) -> io::Result<()> {
    if !order.has_door {
        return Ok(());
    }
    // The command's network has nothing but a loopback. By its addresses a command can tell the server its connections apart.
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let address = format!("http://{}:{}", Ipv4Addr::LOCALHOST, listener.local_addr()?.port());
    let names = names.iter().flat_map(|names| [names.udp.as_fd(), names.tcp.as_fd()]);
    hand(control, &std::iter::once(listener.as_fd()).chain(names).collect::<Vec<_>>())?;
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
        // First a warning signal, later the kill, so that this limit can be told from other kills.
        (Resource::Cpu, limits.cpu.as_secs(), limits.cpu.as_secs().saturating_add(CPU_GRACE_S)),
    ];
    for (resource, soft, hard) in table {
        let own = rustix::process::getrlimit(resource).maximum;
        let within = |most: u64| Some(own.map_or(most, |own| own.min(most)));
        setrlimit(resource, Rlimit { current: within(soft), maximum: within(hard) })?;
    }
    // Root has no such limit. In a namespace, only the processes in it count, including the supervisor.
    #[cfg(target_os = "linux")]
    if !rustix::process::geteuid().is_root() {
        let others = if order.engine.has_namespaces() { 0 } else { system::threads() };
        // A little more than what the supervisor allows, so that it sees the limit passed and can say so.
        let most = Some(limits.processes.saturating_add(PROCESSES_SLACK + others));
        setrlimit(Resource::Nproc, Rlimit { current: most, maximum: most })?;
    }
    Ok(())
}

/// The command as it is started; it inherits nothing of ours.
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
pub(crate) fn trouble(spec: &Spec, error: &io::Error) -> StartError {
    let is_there = |program: &String| place(&spec.dir, program).is_ok_and(|path| path.is_file());
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::PermissionDenied if !spec.dir.is_dir() => StartError::Folder,
        ErrorKind::NotFound if spec.argv.first().is_some_and(is_there) => StartError::Interpreter,
        ErrorKind::NotFound => StartError::NotFound,
        ErrorKind::PermissionDenied => StartError::Denied,
        _ => StartError::Errno(error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error())),
    }
}

/// Starts the command; `None` if there is none.
fn start(order: &Order, stdin: Option<OwnedFd>) -> Result<Option<Pid>, StartError> {
    let failed = |error: io::Error| trouble(&order.spec, &error);
    let Spec { argv, dir, env, line, .. } = &order.spec;
    if argv.is_empty() {
        return Ok(None);
    }
    if order.engine != Engine::Landlock && line.is_empty() {
        let mut command = command(argv, dir, env).map_err(failed)?;
        command.stdin(stdin.map_or_else(Stdio::null, Stdio::from));
        detach::lead(&mut command, order.nice);
        let child = command.spawn().map_err(failed)?;
        return Ok(Some(Pid::from_child(&child)));
    }
    let (ours, its) = UnixStream::pair().map_err(failed)?;
    let Some(child) = detach::fork().map_err(failed)? else {
        let input = stdin.map_or_else(|| fs::File::open("/dev/null").map(OwnedFd::from), Ok);
        let is_set = input.and_then(|input| Ok(rustix::stdio::dup2_stdin(input)?));
        detach::close_others(&its);
        detach::leave(is_set.and_then(|()| enter(order, its)).unwrap_or(1))
    };
    drop(its);
    // Its end of the socket is closed the moment it becomes the command, or begins with the line.
    match receive::<StartError>(&ours).map_err(failed)? {
        Some(trouble) => Err(trouble),
        None => Ok(Some(child)),
    }
}

/// The forked process: enters the sandbox if that is its job, and becomes the command or runs the line.
fn enter(order: &Order, supervisor: UnixStream) -> io::Result<u8> {
    detach::begin(order.nice)?;
    if order.engine == Engine::Landlock
        && let Err(error) = system::enter(&order.spec)
    {
        return send(&supervisor, &StartError::Sandbox(error)).map(|()| 1);
    }
    let Spec { argv, dir, env, line, .. } = &order.spec;
    if line.is_empty() {
        let error = command(argv, dir, env)?.stdin(Stdio::inherit()).exec();
        return send(&supervisor, &trouble(&order.spec, &error)).map(|()| 1);
    }
    drop(supervisor);
    Ok(pipeline::run(&order.spec))
}

/// One command that runs.
struct WatchedCommand {
    control: UnixStream,
    leader: Pid,
    ends_its_children: bool,
    limits: Limits,
    /// Processes that existed before.
    others: u64,
    /// When everything is measured again.
    next: Instant,
    status: Option<WaitStatus>,
}

impl WatchedCommand {
    /// Waits until the command has ended or has to be ended; `None` if the process that gave the order is gone.
    fn until_over(&mut self) -> io::Result<Option<EndReason>> {
        let (ear, bell) = io::pipe()?;
        let leader = self.leader;
        std::thread::Builder::new().spawn(move || {
            let _ = retry_on_intr(|| waitid(WaitId::Pid(leader), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT));
            drop(bell);
        })?;
        let deadline = Instant::now() + self.limits.time;
        let mut asked: Option<(EndReason, Instant)> = None;
        let mut is_alone = false;
        loop {
            self.reap();
            let now = Instant::now();
            if self.status.is_some() {
                return Ok(Some(asked.map_or(EndReason::Exited, |(why, _)| why)).filter(|_| !is_alone));
            }
            if let Some((why, until)) = asked {
                if now >= until {
                    return Ok(Some(why).filter(|_| !is_alone));
                }
            } else if let Some(limit) = self.over_limit(now) {
                return Ok(Some(EndReason::Limit(limit)));
            } else if now >= deadline {
                asked = Some(self.ask(EndReason::TimedOut));
            }
            if is_alone {
                ready(&ear, &ear, TICK)?;
                continue;
            }
            let (is_told, _) = ready(&self.control, &ear, TICK)?;
            match is_told.then(|| letter(&self.control)) {
                None => {}
                Some(Some(STOP)) if asked.is_none() => asked = Some(self.ask(EndReason::Cancelled)),
                Some(Some(IDLE)) if asked.is_none() => asked = Some(self.ask(EndReason::TimedOut)),
                Some(Some(STOP | IDLE)) => {}
                Some(Some(FLOOD)) => return Ok(Some(EndReason::Limit(Limit::Output))),
                Some(Some(ENOUGH)) => return Ok(Some(EndReason::Exited)),
                // The other side is gone. The command is still asked to end first, so that it can clean up: git removes
                // its locks.
                Some(_) => {
                    is_alone = true;
                    asked = asked.or_else(|| Some(self.ask(EndReason::Cancelled)));
                }
            }
        }
    }

    /// The leader, as long as it is not reaped and its process id is its own.
    fn present(&self) -> Option<Pid> {
        self.status.is_none().then_some(self.leader)
    }

    /// Asks the command to end, and its children unless it ends them itself.
    fn ask(&self, why: EndReason) -> (EndReason, Instant) {
        match self.present().filter(|_| self.ends_its_children) {
            Some(leader) => drop(kill_process(leader, Signal::TERM)),
            None => system::kill_all(self.present(), Signal::TERM),
        }
        (why, Instant::now() + GRACE)
    }

    /// Processes are counted every time, because they multiply; other usage costs more to measure and grows slower.
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

    /// Reaps dead processes, a bounded number: a fork bomb makes them faster than they can be reaped. Returns whether
    /// any process is left.
    fn reap(&mut self) -> bool {
        let Some(_reaping) = watch::reaping() else { return true };
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

    /// Kills all processes, and waits until they are gone.
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

/// The scratch folder of a command, and the process that removes it unless it is killed.
struct Leftover {
    /// The folder that it lies in, as the process which gave the order sees it, and its name there.
    folder: Option<(OwnedFd, PathBuf)>,
    owner: Option<Pid>,
}

impl Leftover {
    fn of(spec: &Spec, parent: Option<OwnedFd>) -> Self {
        let name = spec.scratch.as_deref().and_then(Path::file_name).map(PathBuf::from);
        Self { folder: parent.zip(name), owner: getppid() }
    }

    fn remove_if_orphaned(&self) {
        if getppid() != self.owner {
            self.remove();
        }
    }

    fn remove(&self) {
        let entered = self.folder.as_ref().filter(|(parent, _)| rustix::process::fchdir(parent).is_ok());
        if let Some((_, name)) = entered {
            let _ = fs::remove_dir_all(name);
        }
    }
}

/// A folder for temporary files, for Landlock, which cannot give a command a `/tmp` of its own.
struct ScratchDir(Option<PathBuf>);

impl ScratchDir {
    fn for_engine(order: &mut Order) -> io::Result<Self> {
        let Spec { env, temporary_env, isolation, .. } = &mut order.spec;
        let mut set = |folder: &Path| {
            let path = |name: &str| folder.join(name).display().to_string();
            env.extend(temporary_env.drain(..).map(|(variable, name)| (variable, path(&name))));
        };
        let Some(isolation) = isolation.as_mut().filter(|_| order.engine == Engine::Landlock) else {
            set(Path::new("/tmp"));
            return Ok(Self(None));
        };
        // The environment is empty, so this is the system's own folder.
        let path = std::env::temp_dir().join(format!("max-team-walls-{}", std::process::id()));
        // An existing folder is a leftover of an earlier process with our id, or a trap: it is never used.
        let _ = fs::remove_dir_all(&path);
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let scratch = Self(Some(path.clone()));
        set(&path);
        env.push(("TMPDIR".to_owned(), path.display().to_string()));
        isolation.temporary = Some(path);
        Ok(scratch)
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Protected paths that no mount can hold, because nothing is there or a link: their state before the command.
struct ProtectedState(Vec<(PathBuf, Option<PathBuf>)>);

impl ProtectedState {
    fn of(spec: &Spec) -> Self {
        let Some(isolation) = &spec.isolation else { return Self(Vec::new()) };
        let written = |path: &&PathBuf| isolation.writable.iter().any(|root| path.starts_with(root));
        let loose = |path: &PathBuf| match fs::symlink_metadata(path) {
            Ok(meta) => meta.is_symlink().then(|| fs::read_link(path).ok()),
            Err(_) => Some(None),
        };
        let state = |path: &PathBuf| Some((path.clone(), loose(path)?));
        Self(isolation.protected.iter().filter(written).filter_map(state).collect())
    }

    /// Moves protected paths that the command has made out of the way.
    fn appeared(&self) -> Vec<AppearedPath> {
        let is_other = |path: &Path, link: &Option<PathBuf>| match fs::symlink_metadata(path) {
            Ok(_) => link.is_none() || fs::read_link(path).ok() != *link,
            Err(_) => false,
        };
        let new = self.0.iter().filter(|(path, link)| is_other(path, link) && !holds_only_worktrees(path));
        new.map(|(path, _)| AppearedPath { path: path.clone(), moved: set_aside(path) }).collect()
    }
}

/// Whether a path is git's list of linked working trees and says nothing but what `git worktree add` writes: no other settings, and
/// the repository that the list is in. The user may add one while a command runs.
fn holds_only_worktrees(path: &Path) -> bool {
    let is_plain = |entry: io::Result<fs::DirEntry>| {
        let Ok(entry) = entry else { return false };
        let (folder, is_folder) = (entry.path(), entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let is_absent = |name: &str| fs::symlink_metadata(folder.join(name)).is_err();
        let common = folder.join("commondir");
        // A link could lead to another text later.
        let is_file = fs::symlink_metadata(&common).is_ok_and(|meta| meta.is_file());
        is_folder && is_file && is_absent("config.worktree") && fs::read(common).is_ok_and(|text| text == b"../..\n")
    };
    let is_list = path.ends_with(".git/worktrees") && fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
    is_list && fs::read_dir(path).is_ok_and(|mut entries| entries.all(is_plain))
}

/// Renames a file so that no program reads it; returns its new path, or `None` if it could not be moved.
pub fn set_aside(path: &Path) -> Option<PathBuf> {
    let (name, folder) = (path.file_name()?.to_string_lossy(), path.parent()?);
    let moved = |ending: String| {
        let other = path.with_file_name(format!("{name}.untrusted-{ending}"));
        (fs::symlink_metadata(&other).is_err() && fs::rename(path, &other).is_ok()).then_some(other)
    };
    if let Some(other) = moved("1".to_owned()) {
        return Some(other);
    }
    // The command may have made the folder unwritable, or taken names in advance; it cannot know the time.
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
    fn only_what_git_itself_writes_is_a_list_of_worktrees() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join(".git/worktrees");
        let entry = list.join("side");
        fs::create_dir_all(&entry).unwrap();
        assert!(!holds_only_worktrees(&list), "an entry without a repository");
        fs::write(entry.join("commondir"), "../..\n").unwrap();
        fs::write(entry.join("gitdir"), "/p/side/.git\n").unwrap();
        assert!(holds_only_worktrees(&list));
        for (name, text) in [("config.worktree", "[core]"), ("commondir", "../../../elsewhere\n")] {
            let kept = fs::read(entry.join(name)).ok();
            fs::write(entry.join(name), text).unwrap();
            assert!(!holds_only_worktrees(&list), "{name}");
            match kept {
                Some(kept) => fs::write(entry.join(name), kept).unwrap(),
                None => fs::remove_file(entry.join(name)).unwrap(),
            }
        }
        assert!(holds_only_worktrees(&list) && !holds_only_worktrees(&entry));
        std::os::unix::fs::symlink("side", list.join("other")).unwrap();
        assert!(!holds_only_worktrees(&list));
    }

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
