//! Our side of a command: starts the supervisor, listens to it, and tells it when the command is cancelled.
//!
//! Nothing here keeps what is read, and nothing here waits for longer than the command's own time and a little more.

use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, WaitOptions, getpriority_process, setpriority_process, waitpid};
use tokio_util::sync::CancellationToken;

use crate::protocol::{
    ENOUGH, FLOOD, IDLE, Order, STOP, StartError, SupervisedEnd, SupervisorReport, hand, receive, send, take,
};
use crate::spec::{
    CommandOutcome, EndMark, EndReason, Engine, Limit, NameSockets, NetworkDoor, ProxyServer, SandboxError, Spec,
    StdinPipe,
};
use crate::system;
use crate::watch::{AppearedListener, AppearedPath};

/// How long the supervisor may take for its own work, beyond the command's time: to ask, to kill, to say so.
const PATIENCE: Duration = Duration::from_secs(15);
/// The longest single wait; some systems take no longer ones.
const WAIT_MAX: Duration = Duration::from_secs(3_600);
/// The highest priority, for a supervisor.
const HURRY: i32 = -20;
/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;
/// How often a command that may be idle is checked.
const IDLE_LOOK: Duration = Duration::from_millis(500);
/// Bytes that are kept of an error of the program that builds the sandbox.
const COMPLAINT_BYTES_MAX: usize = 2 << 10;

/// Where bytes come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputSource {
    /// Standard output, or both outputs where they are one.
    Output,
    /// Standard error, where it is apart.
    Error,
}

/// Runs a command to its end. `apart` says whether standard error comes through a pipe of its own; `sink` takes what
/// comes out, and if it says `false`, that was enough and everything is ended. Blocking; `cancel` ends it early.
pub fn run(
    spec: &Spec,
    apart: bool,
    cancel: &CancellationToken,
    sink: &mut dyn FnMut(OutputSource, &[u8]) -> bool,
) -> Result<CommandOutcome, SandboxError> {
    run_by(system::choose(spec.isolation.as_ref())?, spec, apart, cancel, sink)
}

/// Like `run`, with a chosen engine.
#[doc(hidden)]
pub fn run_by(
    engine: Engine,
    spec: &Spec,
    apart: bool,
    cancel: &CancellationToken,
    sink: &mut dyn FnMut(OutputSource, &[u8]) -> bool,
) -> Result<CommandOutcome, SandboxError> {
    let program = spec.argv.first().filter(|program| !program.is_empty()).ok_or(SandboxError::Empty)?;
    let broken = |source| SandboxError::Io { program: program.clone(), source };
    if !spec.dir.is_dir() {
        return Err(SandboxError::Folder(spec.dir.clone()));
    }
    let words = spec.argv.iter().chain(spec.line.iter().flat_map(|step| &step.argv));
    if words.into_iter().any(|word| word.contains('\0')) {
        return Err(broken(io::Error::new(io::ErrorKind::InvalidInput, "an argument has a zero byte in it")));
    }
    if cancel.is_cancelled() {
        return Ok(CommandOutcome::cancelled());
    }
    if spec.isolation.is_some() {
        system::wait_for_orphans();
    }
    let started = Instant::now();
    let nice = getpriority_process(None).unwrap_or(0);
    // If we may: the supervisor gets the highest priority, so that it stays in control even if a command overloads the
    // machine. This thread has the priority for a moment, because a new process inherits it.
    let _ = setpriority_process(None, HURRY);
    let spawned = spawn(engine, spec, apart);
    let _ = setpriority_process(None, nice);
    // In the sandbox its path may lead elsewhere.
    let scratch_parent = spec.scratch.as_deref().and_then(Path::parent).and_then(|folder| File::open(folder).ok());
    let order = Order {
        spec: spec.clone(),
        engine,
        nice,
        has_end_mark: spec.end_mark.is_some(),
        has_stdin: spec.stdin.is_some(),
        has_notes: notes(spec).is_some(),
        has_scratch: scratch_parent.is_some(),
        has_door: spec.has_door() && engine.has_namespaces(),
    };
    let door = spec.proxy.clone().filter(|_| order.has_door);
    let mut running = RunningSupervisor::new(spawned?, door);
    let mark = |()| spec.end_mark.as_ref().map_or(Ok(()), |EndMark(file)| hand(&running.control, &[file.as_fd()]));
    let stdin = |()| spec.stdin.as_ref().map_or(Ok(()), |StdinPipe(pipe)| hand(&running.control, &[pipe.as_fd()]));
    let notes = |()| notes(spec).map_or(Ok(()), |notes| hand(&running.control, &[notes.as_fd()]));
    let scratch = |()| scratch_parent.as_ref().map_or(Ok(()), |folder| hand(&running.control, &[folder.as_fd()]));
    let handed = send(&running.control, &order).and_then(mark).and_then(stdin).and_then(notes).and_then(scratch);
    handed.or_else(is_gone).map_err(broken)?;
    running.listener = spec.watch.as_ref().and_then(|watch| watch.listener.clone());
    let until = started + spec.limits.time + PATIENCE;
    let said = match running.listen(until, spec, cancel, sink) {
        Err(error) if running.held.is_some() => return Err(broken(error)),
        said => said.unwrap_or_default(),
    };
    let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (passed, is_flooded) = (running.passed(), running.is_flooded);
    match said {
        Some(SupervisorReport::Over(SupervisedEnd { code, signal, ended, appeared, unexamined, bypassed })) => {
            let ended = match (ended, passed) {
                // The system has killed a process of the command, or refused it one.
                (EndReason::Exited, Some(limit)) => EndReason::Limit(limit),
                // Its pipes were closed: the command may have ended because of that, before its supervisor ended it.
                (EndReason::Exited, None) if is_flooded => EndReason::Limit(Limit::Output),
                (ended, _) => ended,
            };
            let appeared = running.appeared.drain(..).chain(appeared).collect();
            Ok(CommandOutcome { code, signal, ended, ms, appeared, unexamined, bypassed })
        }
        Some(SupervisorReport::Unable(trouble)) => Err(error(trouble, spec, program)),
        _ => match running.held.take() {
            Some(said) => Err(SandboxError::Broken { program: program.clone(), detail: complaint(&said) }),
            None => Err(SandboxError::Lost { program: program.clone() }),
        },
    }
}

/// The file that the command's watch reads.
fn notes(spec: &Spec) -> Option<&Arc<File>> {
    spec.watch.as_ref().and_then(|watch| watch.notes.as_ref())
}

/// Builds a sandbox in which nothing is run; an error says why that is impossible here.
pub(crate) fn build_once(engine: Engine) -> Result<(), String> {
    let spec = Spec::empty();
    let spawned = spawn(engine, &spec, false).map_err(|error| error.to_string())?;
    let mut running = RunningSupervisor::new(spawned, None);
    let order = Order {
        spec,
        engine,
        nice: 0,
        has_end_mark: false,
        has_stdin: false,
        has_notes: false,
        has_scratch: false,
        has_door: false,
    };
    let heard = send(&running.control, &order)
        .or_else(is_gone)
        .and_then(|()| running.listen_for_ready(Instant::now() + PATIENCE))
        .map_err(|error| error.to_string())?;
    match heard {
        Some(SupervisorReport::Ready) => Ok(()),
        Some(SupervisorReport::Unable(StartError::Sandbox(why))) => Err(why),
        _ => Err("the supervisor did not answer".to_owned()),
    }
}

/// Output that came instead of a report.
fn complaint(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said).trim().to_owned();
    if said.is_empty() { "its supervisor was killed".to_owned() } else { said }
}

/// A supervisor that ended before it read its order has reported why, which is read later.
fn is_gone(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) }
}

fn error(trouble: StartError, spec: &Spec, program: &str) -> SandboxError {
    let program = program.to_owned();
    match trouble {
        StartError::NotFound => SandboxError::NotFound(program),
        StartError::Interpreter => SandboxError::Interpreter(program),
        StartError::Denied => SandboxError::Denied(program),
        StartError::Folder => SandboxError::Folder(spec.dir.clone()),
        StartError::Sandbox(detail) => SandboxError::Broken { program, detail },
        StartError::Errno(number) => SandboxError::Io { program, source: io::Error::from_raw_os_error(number) },
    }
}

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Names another program as the supervisor of this one's commands: for benchmarks. The first to name one wins.
#[doc(hidden)]
pub fn supervisor(program: PathBuf) {
    let _ = PROGRAM.set(program);
}

/// The supervisor: this program, unless another was named. A program that was replaced while it runs can still be
/// started through `/proc/self/exe`, but bubblewrap cannot mount it under that path.
fn program(engine: Engine) -> io::Result<PathBuf> {
    match PROGRAM.get() {
        Some(program) => Ok(program.clone()),
        None if cfg!(target_os = "linux") && engine != Engine::Bubblewrap => Ok(PathBuf::from("/proc/self/exe")),
        None => std::env::current_exe(),
    }
}

type Pipes = Vec<(OutputSource, PipeReader)>;

/// A supervisor that was started, and our ends of what leads there.
struct SpawnedSupervisor {
    pid: Pid,
    group: Option<system::Cgroup>,
    control: UnixStream,
    pipes: Pipes,
}

fn spawn(engine: Engine, spec: &Spec, apart: bool) -> Result<SpawnedSupervisor, SandboxError> {
    let broken = |source| SandboxError::io(spec, source);
    let (control, its) = UnixStream::pair().map_err(broken)?;
    let (reader, output) = io::pipe().map_err(broken)?;
    let mut pipes = vec![(OutputSource::Output, reader)];
    let errors = if apart {
        let (reader, errors) = io::pipe().map_err(broken)?;
        pipes.push((OutputSource::Error, reader));
        errors
    } else {
        output.try_clone().map_err(broken)?
    };
    let ends = [OwnedFd::from(its), output.into(), errors.into()];
    let (pid, group) = system::start(spec, engine, &program(engine).map_err(broken)?, ends)?;
    Ok(SpawnedSupervisor { pid, group, control, pipes })
}

/// Rings when the command is cancelled.
#[derive(Debug)]
struct CancelSignal(UnixStream);

impl Wake for CancelSignal {
    fn wake(self: Arc<Self>) {
        // If the other end is closed, the command is over already.
        let _ = (&self.0).write(b"c");
    }
}

/// A supervisor at work.
struct RunningSupervisor {
    pid: Pid,
    group: Option<system::Cgroup>,
    control: UnixStream,
    pipes: Pipes,
    /// Output before the sandbox was ready: errors of the program that builds it. `None` once the command may have
    /// begun.
    held: Option<Vec<u8>>,
    printed: u64,
    /// Whether the command printed more than it may.
    is_flooded: bool,
    /// Waits for the sockets that lead out.
    door: Option<ProxyServer>,
    /// Protected files that were moved away so far, and the listener that is told of each.
    appeared: Vec<AppearedPath>,
    listener: Option<AppearedListener>,
}

impl RunningSupervisor {
    fn new(SpawnedSupervisor { pid, group, control, pipes }: SpawnedSupervisor, door: Option<ProxyServer>) -> Self {
        Self {
            pid,
            group,
            control,
            pipes,
            held: Some(Vec::new()),
            printed: 0,
            is_flooded: false,
            door,
            appeared: Vec::new(),
            listener: None,
        }
    }

    /// The supervisor's first report, if it comes in time.
    fn listen_for_ready(&mut self, until: Instant) -> io::Result<Option<SupervisorReport>> {
        let (ear, _bell) = UnixStream::pair()?;
        let mut chunk = vec![0; CHUNK];
        loop {
            let ready = self.wait(&ear, until.saturating_duration_since(Instant::now()))?;
            if ready.control {
                return receive::<SupervisorReport>(&self.control);
            }
            self.read(&ready.pipes, &mut chunk, &mut |_, _| true);
            if Instant::now() >= until {
                return Ok(None);
            }
        }
    }

    /// Listens until the supervisor reports the end, is gone, or has exceeded its time.
    fn listen(
        &mut self,
        until: Instant,
        spec: &Spec,
        cancel: &CancellationToken,
        sink: &mut dyn FnMut(OutputSource, &[u8]) -> bool,
    ) -> io::Result<Option<SupervisorReport>> {
        let (ear, bell) = UnixStream::pair()?;
        let waker = Waker::from(Arc::new(CancelSignal(bell)));
        let mut cancelled = pin!(cancel.cancelled());
        let mut is_cancelled = cancelled.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Ready(());
        let mut chunk = vec![0; CHUNK];
        let mut is_told = false;
        let mut idle = IdleWatch::new(spec);
        loop {
            if is_cancelled && !is_told {
                self.tell(STOP);
                is_told = true;
            } else if idle.is_over(spec, self.printed) && !is_told {
                self.tell(IDLE);
                is_told = true;
            }
            let most = until.saturating_duration_since(Instant::now());
            let ready = self.wait(&ear, if spec.limits.idle.is_some() { most.min(IDLE_LOOK) } else { most })?;
            if ready.control
                && let Some(ProxyServer(serve)) = self.door.take()
            {
                let mut sockets = take(&self.control)?.into_iter();
                let Some(proxy) = sockets.next() else { return Ok(None) };
                let names = sockets.next().zip(sockets.next());
                let names = names.map(|(udp, tcp)| NameSockets { udp: udp.into(), tcp: tcp.into() });
                serve(NetworkDoor { proxy: proxy.into(), names });
                // The report that the sandbox is ready comes before all output, and is read before it.
                continue;
            } else if ready.control {
                match receive::<SupervisorReport>(&self.control)? {
                    Some(SupervisorReport::Ready) => {
                        self.held = None;
                        system::put_first(self.pid);
                    }
                    Some(SupervisorReport::Appeared(appeared)) => {
                        if let Some(AppearedListener(listener)) = &self.listener {
                            listener(&appeared);
                        }
                        self.appeared.push(appeared);
                    }
                    said => {
                        self.drain(&mut chunk, sink)?;
                        return Ok(said);
                    }
                }
            }
            is_cancelled |= ready.ear;
            if !self.read(&ready.pipes, &mut chunk, sink) {
                self.tell(ENOUGH);
                self.pipes.clear();
            } else if self.printed > spec.limits.output_bytes && !self.is_flooded {
                self.is_flooded = true;
                self.tell(FLOOD);
                self.pipes.clear();
            }
            if Instant::now() >= until {
                // The supervisor may be about to start the command.
                self.held = None;
                return Ok(None);
            }
        }
    }

    /// Passes on what the pipes have; `false` once the sink has enough.
    fn read(&mut self, ready: &[usize], chunk: &mut [u8], sink: &mut dyn FnMut(OutputSource, &[u8]) -> bool) -> bool {
        let mut wants_more = true;
        for at in ready.iter().rev() {
            let Some((out, pipe)) = self.pipes.get_mut(*at) else { continue };
            match pipe.read(chunk) {
                Ok(0) | Err(_) => drop(self.pipes.remove(*at)),
                Ok(read) => {
                    let bytes = chunk.get(..read).unwrap_or_default();
                    self.printed += bytes.len() as u64;
                    match &mut self.held {
                        Some(held) if held.len() < COMPLAINT_BYTES_MAX => held.extend_from_slice(bytes),
                        Some(_) => {}
                        None => wants_more &= sink(*out, bytes),
                    }
                }
            }
        }
        wants_more
    }

    /// Passes on what is left in the pipes. The processes that wrote it are dead, so nothing more comes, and this does
    /// not wait.
    fn drain(&mut self, chunk: &mut [u8], sink: &mut dyn FnMut(OutputSource, &[u8]) -> bool) -> io::Result<()> {
        let (ear, _bell) = UnixStream::pair()?;
        loop {
            let ready = self.wait(&ear, Duration::ZERO)?;
            if ready.pipes.is_empty() || !self.read(&ready.pipes, chunk, sink) {
                return Ok(());
            }
        }
    }

    fn tell(&self, letter: u8) {
        // A supervisor that is gone needs no telling.
        let _ = (&self.control).write(&[letter]);
    }

    /// The limit that the system itself enforced.
    fn passed(&self) -> Option<Limit> {
        self.group.as_ref().and_then(system::Cgroup::passed)
    }

    /// Waits until something is to be read, for so long.
    fn wait(&self, ear: &UnixStream, most: Duration) -> io::Result<Readable> {
        let mut fds = vec![PollFd::new(&self.control, PollFlags::IN), PollFd::new(ear, PollFlags::IN)];
        fds.extend(self.pipes.iter().map(|(_, pipe)| PollFd::new(pipe, PollFlags::IN)));
        match poll(&mut fds, Timespec::try_from(most.min(WAIT_MAX)).ok().as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        let (control, ear) = (ready.next() == Some(true), ready.next() == Some(true));
        Ok(Readable { control, ear, pipes: ready.enumerate().filter(|(_, ready)| *ready).map(|(at, _)| at).collect() })
    }
}

/// Since when a command has done nothing.
struct IdleWatch {
    since: Instant,
    seen: (u64, u64),
}

impl IdleWatch {
    fn new(spec: &Spec) -> Self {
        Self { since: Instant::now(), seen: (0, spec.activity.count()) }
    }

    /// Whether it has been idle for as long as it may be.
    fn is_over(&mut self, spec: &Spec, printed: u64) -> bool {
        let Some(most) = spec.limits.idle else { return false };
        let now = (printed, spec.activity.count());
        if now != self.seen {
            (self.since, self.seen) = (Instant::now(), now);
        }
        self.since.elapsed() >= most
    }
}

impl Drop for RunningSupervisor {
    /// Ends the supervisor: if it still works, the end of the socket tells it to stop. A thread waits for its exit, so
    /// that the caller does not.
    fn drop(&mut self) {
        let _ = self.control.shutdown(std::net::Shutdown::Both);
        let (pid, group) = (self.pid, self.group.take());
        // If no thread can be started, a zombie stays until we exit, nothing else.
        let _ = thread::Builder::new().name("sees a command off".into()).spawn(move || {
            let _ = retry_on_intr(|| waitpid(Some(pid), WaitOptions::empty()));
            drop(group);
        });
    }
}

/// What can be read without waiting.
#[derive(Debug)]
struct Readable {
    control: bool,
    ear: bool,
    pipes: Vec<usize>,
}
