//! What is to be run, and within what: plain data that travels to the child as it is.

use std::fmt;
use std::fs::File;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::pipeline::PipelineStep;
use crate::watch::{AppearedPath, WatchOrder};

/// One command. Nothing is inherited: what is not in here, the command does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The program and its arguments. A name is looked up in the command's own `PATH`.
    pub argv: Vec<String>,
    /// Several commands, joined. If there are any, they are run, and `argv` is only their name.
    pub line: Vec<PipelineStep>,
    /// Where it runs.
    pub dir: PathBuf,
    /// Its whole environment.
    pub env: Vec<(String, String)>,
    /// Variables with a path in its folder for temporary files.
    pub temporary_env: Vec<(String, String)>,
    /// Its sandbox; `None`: it only has limits and a supervisor.
    #[serde(rename = "walls")]
    pub isolation: Option<Isolation>,
    /// Where it is stopped.
    pub limits: Limits,
    /// The file in which its supervisor notes its end.
    #[serde(skip)]
    pub end_mark: Option<EndMark>,
    /// What it reads as its standard input; `None`: nothing.
    #[serde(skip)]
    pub stdin: Option<StdinPipe>,
    /// Serves the way out of [`Network::Proxy`]; `None`: nothing leads out.
    #[serde(skip)]
    pub proxy: Option<ProxyServer>,
    /// Looks after the files that it makes; `None`: nothing does.
    pub watch: Option<WatchOrder>,
    /// What it does besides printing, where [`Limits::idle`] is set.
    #[serde(skip)]
    pub activity: Activity,
    /// A folder that is removed with the command if the process that started it was killed, and so cannot remove it.
    pub scratch: Option<PathBuf>,
    /// Whether it ends its own processes when it is asked to end, as a browser does, which first writes what they hold. Otherwise
    /// all of them are asked.
    pub ends_its_children: bool,
}

/// Serves the only sockets that lead out of a command's network. It takes them and returns at once.
#[derive(Clone)]
pub struct ProxyServer(pub Arc<dyn Fn(NetworkDoor) + Send + Sync>);

/// The sockets that lead out of a command's network, which the supervisor opened inside.
#[derive(Debug)]
pub struct NetworkDoor {
    /// A proxy. The command finds its address in `HTTP_PROXY`.
    pub proxy: TcpListener,
    /// The name server that the command is told of; `None`: its port cannot be opened here, and nothing answers there.
    pub names: Option<NameSockets>,
}

/// The sockets of a name server.
#[derive(Debug)]
pub struct NameSockets {
    pub udp: UdpSocket,
    pub tcp: TcpListener,
}

/// Counts what a command does besides printing, so that it is not taken for idle.
#[derive(Debug, Clone, Default)]
pub struct Activity(Arc<AtomicU64>);

impl Activity {
    /// Notes that it has done something.
    pub fn note(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl PartialEq for Activity {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Activity {}

impl fmt::Debug for ProxyServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProxyServer")
    }
}

impl PartialEq for ProxyServer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ProxyServer {}

/// The end of a pipe that a command reads from.
#[derive(Debug, Clone)]
pub struct StdinPipe(pub Arc<OwnedFd>);

impl PartialEq for StdinPipe {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for StdinPipe {}

/// A file in which the supervisor of a command notes that the command has ended, also if the process that started it was
/// killed. Its first byte becomes [`EndMark::ENDED`], and its modification time is the end of the command. The supervisor shares
/// the open file, so a lock on it is held until both processes are gone.
#[derive(Debug, Clone)]
pub struct EndMark(pub Arc<File>);

impl EndMark {
    /// The first byte of the file after the end of the command.
    pub const ENDED: u8 = b'.';
}

impl PartialEq for EndMark {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for EndMark {}

impl Spec {
    /// Nothing to run, within nothing but the system: enough to see whether a sandbox can be built.
    pub(crate) fn empty() -> Self {
        Self {
            argv: Vec::new(),
            line: Vec::new(),
            dir: PathBuf::from("/"),
            env: Vec::new(),
            temporary_env: Vec::new(),
            isolation: Some(Isolation::default()),
            limits: Limits::default(),
            end_mark: None,
            stdin: None,
            proxy: None,
            watch: None,
            activity: Activity::default(),
            scratch: None,
            ends_its_children: false,
        }
    }

    /// Whether its network has nothing in it but a door to us.
    pub(crate) fn has_door(&self) -> bool {
        self.proxy.is_some() && self.isolation.as_ref().is_some_and(|isolation| isolation.network == Network::Proxy)
    }
}

/// What a command can reach. Deeper paths win over the ones above them. All paths are real ones, without links.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Isolation {
    /// Files and folders that can be read, besides the system's own.
    pub readable: Vec<PathBuf>,
    /// Folders that can be written.
    pub writable: Vec<PathBuf>,
    /// Files and folders within those that must not change. Those that do not exist must not appear.
    pub protected: Vec<PathBuf>,
    /// Files and folders whose content cannot be seen.
    pub hidden: Vec<PathBuf>,
    /// The home folder: empty, and gone with the command.
    pub home: Option<PathBuf>,
    /// Which network it has.
    pub network: Network,
    /// Whether it was allowed knowing that nothing may be protected or hidden in folders that it writes. Then a weaker sandbox
    /// may do.
    pub unshielded: bool,
    /// Its own folder for temporary files, where it cannot have a `/tmp` of its own: its supervisor makes it.
    pub temporary: Option<PathBuf>,
}

impl Isolation {
    /// How many paths there are.
    #[cfg(target_os = "linux")]
    pub(crate) fn paths(&self) -> usize {
        self.readable.len() + self.writable.len() + self.protected.len() + self.hidden.len()
    }
}

/// Which network a command has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    #[default]
    None,
    /// One of its own, with nothing in it but the proxy of [`Spec::proxy`]. Where none can be made, it is `None`.
    Proxy,
    All,
}

/// Where a command is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// How long it may take.
    pub time: Duration,
    /// How long it may neither print nor do what [`Spec::activity`] counts.
    pub idle: Option<Duration>,
    /// Processor time of all its processes together.
    pub cpu: Duration,
    /// Bytes of memory of all its processes together.
    pub memory: u64,
    /// Processes and threads at one time.
    pub processes: u64,
    /// Bytes of one file that it writes.
    pub file_bytes: u64,
    /// Files that one of its processes has open.
    pub open_files: u64,
    /// Bytes that it prints.
    pub output_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(30),
            idle: None,
            cpu: Duration::from_secs(4 * 3_600),
            memory: 8 << 30,
            processes: 2_048,
            file_bytes: 8 << 30,
            open_files: 8_192,
            output_bytes: 1 << 30,
        }
    }
}

/// Why a command is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// It ended by itself.
    Exited,
    /// It was ended because its time was up.
    TimedOut,
    /// It was ended because the caller cancelled it.
    Cancelled,
    /// It was ended because it used too much of something.
    Limit(Limit),
}

/// What the command used too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    Cpu,
    Memory,
    /// Processes and threads.
    Processes,
    /// Bytes in one file.
    FileBytes,
    Output,
}

impl Limit {
    /// What it is, for people and models.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "processor time",
            Self::Memory => "memory",
            Self::Processes => "processes",
            Self::FileBytes => "bytes in one file",
            Self::Output => "output",
        }
    }
}

/// How a command went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutcome {
    /// What it exited with, if it exited.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// Why it is over.
    pub ended: EndReason,
    /// How long it ran, in milliseconds.
    pub ms: u64,
    /// Protected names that appeared while it ran, and where they were moved out of the way.
    pub appeared: Vec<AppearedPath>,
    /// Why the files that it made could not be examined, if they could not.
    pub unexamined: Option<String>,
    /// Whether something in its own network tried to reach an address, and not the proxy.
    pub bypassed: bool,
}

impl CommandOutcome {
    /// The outcome of a command that was cancelled before it began.
    pub(crate) fn cancelled() -> Self {
        Self {
            code: None,
            signal: None,
            ended: EndReason::Cancelled,
            ms: 0,
            appeared: Vec::new(),
            unexamined: None,
            bypassed: false,
        }
    }
}

/// Why a command could not be run.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("there is no command to run; name a program and its arguments")]
    Empty,
    /// The program is nowhere.
    #[error("the program `{0}` was not found; install it, or check its name")]
    NotFound(String),
    /// The program is a script, and the interpreter that its first line names is not found.
    #[error("`{0}` is there but cannot be started; check the interpreter in its first line")]
    Interpreter(String),
    /// The program may not be run.
    #[error("`{0}` may not be run; check that it is a program and has the permission to execute")]
    Denied(String),
    /// The folder is not there.
    #[error("there is no folder `{}` to run a command in", .0.display())]
    Folder(PathBuf),
    /// This machine cannot build the sandbox.
    #[error("the sandbox cannot be set up here: {why}; {advice}")]
    NoSandbox {
        /// What is in the way.
        why: String,
        /// What to do about it.
        advice: String,
    },
    /// The sandbox could not be built this time.
    #[error("the sandbox of `{program}` could not be set up, so it was not run: {detail}")]
    Broken {
        /// What was to be run.
        program: String,
        /// What was said.
        detail: String,
    },
    /// Its supervisor ended before it could say how the command went.
    #[error(
        "outcome unknown: the supervisor of `{program}` ended while the command ran; it may have done all, part or nothing \
         of its work, so look at what is there before you run it again"
    )]
    Lost {
        /// What was run.
        program: String,
    },
    /// It ran, but the files that it left could not be examined.
    #[error(
        "`{program}` was run, but the files that it created could not be checked: {why}; ask the user to check them before you go on"
    )]
    Unseen {
        /// What was run.
        program: String,
        /// What was in the way.
        why: String,
    },
    /// The system refuses.
    #[error("cannot run `{program}`: {source}")]
    Io {
        /// What was to be run.
        program: String,
        /// What the system says.
        source: std::io::Error,
    },
}

impl SandboxError {
    pub(crate) fn io(spec: &Spec, source: std::io::Error) -> Self {
        Self::Io { program: spec.argv.first().cloned().unwrap_or_default(), source }
    }

    /// The supervisor could not be started.
    pub(crate) fn unstarted(spec: &Spec, source: std::io::Error) -> Self {
        if source.kind() != std::io::ErrorKind::NotFound {
            return Self::io(spec, source);
        }
        Self::Broken {
            program: spec.argv.first().cloned().unwrap_or_default(),
            detail: "this program was replaced while it ran; start it again".to_owned(),
        }
    }
}

/// The mechanism that a sandbox is built with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// Nothing: a supervisor and limits only.
    Bare,
    /// Namespaces that the supervisor makes itself, and seccomp.
    Namespaces,
    /// Namespaces, made by bubblewrap, and seccomp.
    Bubblewrap,
    /// Landlock and seccomp.
    Landlock,
    /// The sandbox of macOS.
    Seatbelt,
}

impl Engine {
    /// Whether a command has a file tree, processes and a network of its own.
    pub fn has_namespaces(self) -> bool {
        matches!(self, Self::Namespaces | Self::Bubblewrap)
    }
}

/// What this machine can enforce, as it was found out when it was first asked for.
#[derive(Debug)]
pub struct Capability {
    /// Whether we can make namespaces ourselves, or the obstacle.
    pub namespaces: LazyLock<Result<(), String>>,
    /// Where a working bubblewrap is, or why there is none.
    pub bubblewrap: LazyLock<Result<PathBuf, Obstacle>>,
    /// Whether Landlock is there with all that is needed, or what is missing.
    pub landlock: LazyLock<Result<(), Obstacle>>,
    /// Whether seatbelt is there.
    pub seatbelt: LazyLock<Result<(), String>>,
    /// Where control groups cap memory and processes, or why only the supervisor watches them.
    pub group: LazyLock<Result<PathBuf, Obstacle>>,
}

/// Why a mechanism does not work here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    #[error("bubblewrap is not installed")]
    NoBubblewrap,
    /// Too old for these parts of it, each with the version of Linux that brings it.
    #[error(
        "this kernel's Landlock is too old: it lacks {}",
        .0.iter().map(LandlockPart::to_string).collect::<Vec<_>>().join(", ")
    )]
    OldLandlock(Vec<LandlockPart>),
    #[error("this kernel has no Landlock, or it is not switched on (`lsm=landlock,…`)")]
    NoLandlock,
    /// From this folder up.
    #[error("control groups cannot limit memory and processes here (looked at `{}` and above)", .0.display())]
    NoControlGroup(PathBuf),
    #[error("{0}")]
    Other(String),
}

/// A part of Landlock that a sandbox needs and that not every version has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LandlockPart {
    /// Rules for names that move from one folder to another.
    Moves,
    /// Rules for cutting files.
    Truncation,
    /// Rules for commands to devices.
    Devices,
    /// Rules for signals to other processes, and for abstract Unix sockets.
    Scopes,
}

impl LandlockPart {
    /// All of them, with the version of Linux that brings each.
    pub const ALL: [(Self, &str); 4] =
        [(Self::Moves, "5.19"), (Self::Truncation, "6.2"), (Self::Devices, "6.10"), (Self::Scopes, "6.12")];

    /// The version of Linux that brings it.
    pub fn since(self) -> &'static str {
        Self::ALL.iter().find(|(part, _)| *part == self).map_or("", |(_, since)| since)
    }
}

impl fmt::Display for LandlockPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Self::Moves => "rules for moving files between folders",
            Self::Truncation => "rules for cutting files",
            Self::Devices => "rules for devices",
            Self::Scopes => "rules for signals and abstract Unix sockets",
        };
        write!(f, "{what} (Linux {})", self.since())
    }
}
