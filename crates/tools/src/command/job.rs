//! The life of one process group: started, listened to, ended, reaped.
//!
//! One thread waits for the leader without reaping it, so that its group cannot become somebody else's while it is
//! still signalled; it and the cancellation ring one bell, and the caller's thread listens to the bell and to the
//! pipes until all is over. Nothing here keeps what it reads, and nothing here waits on a process it cannot end.

use std::io::{self, PipeReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio_util::sync::CancellationToken;

use super::{CommandError, Ended, is_secret};

/// How long a group has to end after it was asked to.
const GRACE: Duration = Duration::from_secs(2);
/// How long a pipe may stay open after the leader is gone.
const DRAIN: Duration = Duration::from_millis(500);
/// The longest time that a command may be given.
const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 3_600);
/// The longest single wait; some systems take no longer ones.
const WAIT_MAX: Duration = Duration::from_secs(3_600);
/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// Rung when the leader is gone.
const GONE: u8 = b'g';
/// Rung when nobody wants the result any more.
const CANCELLED: u8 = b'c';

/// Where bytes come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Out {
    /// Standard output, or both outputs where they are one.
    Output,
    /// Standard error, where it is apart.
    Error,
}

/// What is to be run.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    pub(crate) argv: &'a [String],
    pub(crate) dir: &'a Path,
    pub(crate) timeout: Duration,
    /// Variables beside those that are inherited.
    pub(crate) env: Vec<(String, String)>,
    /// Which variables are not inherited, besides secrets.
    pub(crate) hide: fn(&str) -> bool,
    /// Whether standard error comes through a pipe of its own.
    pub(crate) apart: bool,
}

/// How it went.
#[derive(Debug)]
pub(crate) struct Over {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) ms: u64,
    pub(crate) ended: Ended,
}

impl<'a> Job<'a> {
    pub(crate) fn new(argv: &'a [String], dir: &'a Path, timeout: Duration) -> Self {
        Self { argv, dir, timeout, env: Vec::new(), hide: |_| false, apart: false }
    }

    /// Runs it to its end. `sink` takes what comes out; if it says `false`, that was enough and the group is ended.
    pub(crate) fn run(
        &self,
        cancel: &CancellationToken,
        sink: &mut dyn FnMut(Out, &[u8]) -> bool,
    ) -> Result<Over, CommandError> {
        let program = self.argv.first().filter(|program| !program.is_empty()).ok_or(CommandError::Empty)?;
        if !self.dir.is_dir() {
            return Err(CommandError::Folder(self.dir.to_owned()));
        }
        if cancel.is_cancelled() {
            return Ok(Over { code: None, signal: None, ms: 0, ended: Ended::Cancelled });
        }
        let started = Instant::now();
        let broken = |source| CommandError::Io { program: program.clone(), source };
        let (mut child, pipes) = self.spawn(program)?;
        let watched = Group::of(&child).map_err(broken).and_then(|mut group| {
            let heard = group.listen(pipes, started + self.timeout.min(TIMEOUT_MAX), cancel, sink).map_err(broken);
            group.end(Signal::KILL);
            group.join();
            heard
        });
        if watched.is_err() {
            let _ = child.kill();
        }
        // The leader is gone or was killed, so this does not wait; without it, a zombie would stay.
        let status = child.wait().map_err(broken)?;
        let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(Over { code: status.code(), signal: status.signal(), ms, ended: watched? })
    }

    fn spawn(&self, program: &str) -> Result<(Child, Vec<(Out, PipeReader)>), CommandError> {
        let broken = |source| CommandError::Io { program: program.to_owned(), source };
        let path = self.program(program).map_err(broken)?;
        let mut command = Command::new(&path);
        command.args(self.argv.iter().skip(1)).current_dir(self.dir).process_group(0).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_none_or(|name| is_secret(name) || (self.hide)(name)) {
                command.env_remove(name);
            }
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        let (reader, writer) = io::pipe().map_err(broken)?;
        let mut pipes = vec![(Out::Output, reader)];
        if self.apart {
            let (reader, writer) = io::pipe().map_err(broken)?;
            pipes.push((Out::Error, reader));
            command.stderr(writer);
        } else {
            command.stderr(writer.try_clone().map_err(broken)?);
        }
        command.stdout(writer);
        let child = command.spawn().map_err(|source| match source.kind() {
            io::ErrorKind::NotFound if path.is_file() => CommandError::Interpreter(program.to_owned()),
            io::ErrorKind::NotFound => CommandError::NotFound(program.to_owned()),
            io::ErrorKind::PermissionDenied => CommandError::Denied(program.to_owned()),
            _ => broken(source),
        })?;
        // `command` goes here, and our copies of the writing ends with it.
        Ok((child, pipes))
    }

    /// A name is looked up; a path is relative to the folder, on every system.
    fn program(&self, program: &str) -> io::Result<PathBuf> {
        if program.contains('/') { std::path::absolute(self.dir.join(program)) } else { Ok(PathBuf::from(program)) }
    }
}

/// Rings once per event.
#[derive(Debug)]
struct Bell(UnixStream);

impl Bell {
    fn ring(&self, event: u8) {
        // Nobody listening any more is fine: then it is over already.
        let _ = (&self.0).write(&[event]);
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring(CANCELLED);
    }
}

/// What a group is on its way to.
#[derive(Debug, Clone, Copy)]
enum Phase {
    /// Runs until its time is up.
    Running(Instant),
    /// Was asked to end, and is killed at that time.
    Asked(Instant),
    /// Was killed.
    Killed,
}

/// A process group, with the thread that waits for its leader.
#[derive(Debug)]
struct Group {
    leader: Pid,
    bell: Arc<Bell>,
    ear: UnixStream,
    waiter: Option<thread::JoinHandle<()>>,
}

impl Group {
    fn of(child: &Child) -> io::Result<Self> {
        let leader = Pid::from_child(child);
        let (ear, bell) = UnixStream::pair()?;
        let bell = Arc::new(Bell(bell));
        let ring = Arc::clone(&bell);
        let waiter = thread::Builder::new().name("waits for a command".into()).spawn(move || {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let _ = retry_on_intr(|| waitid(WaitId::Pid(leader), options));
            ring.ring(GONE);
        })?;
        Ok(Self { leader, bell, ear, waiter: Some(waiter) })
    }

    fn end(&self, signal: Signal) {
        // No such group is what we want.
        let _ = kill_process_group(self.leader, signal);
    }

    fn join(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            let _ = waiter.join();
        }
    }

    /// Listens until the leader is gone and the pipes are closed, or have had their time to be.
    fn listen(
        &mut self,
        mut pipes: Vec<(Out, PipeReader)>,
        deadline: Instant,
        cancel: &CancellationToken,
        sink: &mut dyn FnMut(Out, &[u8]) -> bool,
    ) -> io::Result<Ended> {
        let waker = Waker::from(Arc::clone(&self.bell));
        let mut cancelled = pin!(cancel.cancelled());
        let mut is_cancelled = cancelled.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Ready(());
        let mut ended = Ended::Exited;
        let mut phase = Phase::Running(deadline);
        let mut drained: Option<Instant> = None;
        let mut chunk = vec![0; CHUNK];
        loop {
            let now = Instant::now();
            if drained.is_some_and(|until| pipes.is_empty() || now >= until) {
                return Ok(ended);
            }
            match phase {
                Phase::Running(until) if drained.is_none() && (is_cancelled || now >= until) => {
                    ended = if is_cancelled { Ended::Cancelled } else { Ended::TimedOut };
                    self.end(Signal::TERM);
                    phase = Phase::Asked(now + GRACE);
                }
                Phase::Asked(until) if now >= until => {
                    self.end(Signal::KILL);
                    phase = Phase::Killed;
                }
                _ => {}
            }
            let next = match (drained, phase) {
                (Some(until), _) => Some(until),
                (None, Phase::Running(until) | Phase::Asked(until)) => Some(until),
                (None, Phase::Killed) => None,
            };
            let ready = self.wait(&pipes, next)?;
            for event in ready.events {
                match event {
                    GONE => drained = Some(Instant::now() + DRAIN),
                    _ => is_cancelled = true,
                }
            }
            let mut is_enough = false;
            for at in ready.pipes.into_iter().rev() {
                let Some((out, pipe)) = pipes.get_mut(at) else { continue };
                match pipe.read(&mut chunk) {
                    Ok(0) | Err(_) => drop(pipes.remove(at)),
                    Ok(read) => is_enough |= !sink(*out, chunk.get(..read).unwrap_or_default()),
                }
            }
            if is_enough {
                pipes.clear();
                self.end(Signal::KILL);
                phase = Phase::Killed;
            }
        }
    }

    /// Waits until something is to be read or `until` has come.
    fn wait(&self, pipes: &[(Out, PipeReader)], until: Option<Instant>) -> io::Result<Ready> {
        let mut fds = vec![PollFd::new(&self.ear, PollFlags::IN)];
        fds.extend(pipes.iter().map(|(_, pipe)| PollFd::new(pipe, PollFlags::IN)));
        let left = until.map(|until| until.saturating_duration_since(Instant::now()).min(WAIT_MAX));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        let mut events = Vec::new();
        if ready.next() == Some(true) {
            let mut rung = [0; 8];
            let read = (&self.ear).read(&mut rung)?;
            events.extend_from_slice(rung.get(..read).unwrap_or_default());
        }
        let pipes = ready.enumerate().filter(|(_, ready)| *ready).map(|(at, _)| at).collect();
        Ok(Ready { events, pipes })
    }
}

/// What can be read without waiting.
#[derive(Debug)]
struct Ready {
    events: Vec<u8>,
    pipes: Vec<usize>,
}
