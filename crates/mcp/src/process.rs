//! A server that is a program on this machine: one message a line on its input and output.
//!
//! The program runs in a sandbox and under a supervisor, so it ends with this process. One thread reads what it prints.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use max_team_core::agent::Constraints;
use max_team_core::limits::{MCP_BAD_LINES_MAX, MCP_MESSAGE_BYTES_MAX};
use max_team_core::mcp::McpServer;
use max_team_core::policy::{Permissions, Visibility};
use max_team_sandbox::{CommandOutcome, EndReason, Network, OutputSource, StdinPipe, secrets};
use max_team_tools::command::{CommandSandbox, Engine, MovedFiles, engine};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::log::Log;
use crate::server_end::{ErrorTail, ServerEnd};

/// Messages that wait to be read, or to be written.
const WAITING_MAX: usize = 64;

/// Where servers of this machine are started, and what all of them may use.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The project: where programs are started.
    pub root: PathBuf,
    /// The product's own folder: caches, logs and known tools are below it.
    pub home: PathBuf,
    /// The user's home folder.
    pub user: Option<PathBuf>,
    /// Whether there is a sandbox.
    pub sandboxed: bool,
}

impl Launch {
    /// The folder for the packages that a server downloads. Each has its own, so that none can change the program of another.
    fn cache(&self, server: &McpServer) -> PathBuf {
        let hash = server.hash().to_string();
        self.home.join("mcp").join("cache").join(hash.get(..16).unwrap_or_default())
    }

    /// The files and folders outside the project that a server's command names: it reads the files and changes the folders.
    pub fn named_paths(&self, server: &McpServer) -> Vec<PathBuf> {
        let words = std::iter::once(&server.command).chain(&server.args);
        words.filter_map(|word| self.named(word)).filter(|path| !path.starts_with(&self.root)).collect()
    }

    fn sandbox(&self, server: &McpServer, cache: &Path) -> CommandSandbox {
        let grant = &server.grant;
        let (mut reads, mut writes) = (Vec::new(), vec![cache.to_owned()]);
        writes.extend(grant.write.iter().filter_map(|word| self.narrow(word)));
        reads.extend(grant.read.iter().filter_map(|word| self.narrow(word)));
        for path in self.named_paths(server) {
            if path.is_dir() {
                writes.push(path);
            } else if !writes.iter().any(|folder| path.starts_with(folder)) {
                reads.push(path);
            }
        }
        writes.retain(|folder| folder.is_dir());
        let mut sandbox = CommandSandbox::around(&self.root);
        if !self.writes_project(server) {
            // The project is only read: the cache takes its place as the folder that can be written.
            (sandbox.root, sandbox.reads) = (cache.to_owned(), vec![self.root.clone()]);
            // What is protected in its folders is looked for as in the project itself.
            let (own, others): (Vec<_>, Vec<_>) = writes.into_iter().partition(|folder| self.is_own(folder));
            let own = own.iter().map(|folder| folder.display().to_string()).collect();
            let permissions = Permissions { root: cache.display().to_string(), also: own, ..Permissions::default() };
            sandbox.sight = Arc::new(Visibility::from_policy(&Constraints::default(), &permissions));
            writes = others;
        }
        sandbox.on = self.sandboxed;
        sandbox.reads.extend(reads);
        sandbox.also = writes;
        sandbox.network = if grant.network { Network::All } else { Network::None };
        // Trusting the entry counts as approval of the command.
        sandbox.attended = true;
        sandbox
    }

    /// Whether a server's program can change the project's files. Where the sandbox cannot protect any of them, only if its entry
    /// says so.
    pub fn writes_project(&self, server: &McpServer) -> bool {
        let is_protected = || engine() != Ok(Engine::Landlock);
        server.grant.project.unwrap_or_else(|| !self.sandboxed || is_protected())
    }

    /// Whether a folder, by its real path, is in the project.
    fn is_own(&self, folder: &Path) -> bool {
        self.root.canonicalize().is_ok_and(|root| folder.starts_with(root))
    }

    /// The path that a word of a command names; `None` for options and for what is too wide.
    fn named(&self, word: &str) -> Option<PathBuf> {
        let word = word.rsplit_once('=').map_or(word, |(_, value)| value);
        word.contains('/').then(|| self.narrow(word)).flatten()
    }

    /// A path that exists, relative to the project, unless the sandbox never opens it.
    fn narrow(&self, word: &str) -> Option<PathBuf> {
        self.opened(word).ok()
    }

    fn opened(&self, word: &str) -> Result<PathBuf, RefusedGrant> {
        let path = self.root.join(word).canonicalize().map_err(|_| RefusedGrant::Missing)?;
        let home = self.user.as_deref().and_then(|home| home.canonicalize().ok());
        let is_wide = path.parent().is_none() || home.as_ref().is_some_and(|home| home.starts_with(&path));
        let mut closed = home.as_deref().map(secrets).unwrap_or_default();
        let own = self.home.canonicalize().unwrap_or_else(|_| self.home.clone());
        closed.extend([own, "/proc".into(), "/dev".into()]);
        // Neither a secret nor a folder around one.
        let is_closed = |own: &PathBuf| path.starts_with(own) || own.starts_with(&path);
        if is_wide || closed.iter().any(is_closed) { Err(RefusedGrant::Closed) } else { Ok(path) }
    }

    /// The paths of an entry's `read` and `write` that are not opened for its program.
    pub fn refused(&self, server: &McpServer) -> Vec<(String, RefusedGrant)> {
        if !server.is_local() || !self.sandboxed {
            return Vec::new();
        }
        let reads = server.grant.read.iter().map(|word| (word, self.opened(word)));
        let writes = server.grant.write.iter().map(|word| {
            let folder =
                self.opened(word).and_then(|path| if path.is_dir() { Ok(path) } else { Err(RefusedGrant::File) });
            (word, folder)
        });
        reads.chain(writes).filter_map(|(word, opened)| Some((word.clone(), opened.err()?))).collect()
    }

    /// Variables that make package runners keep what they download in the server's own folder.
    fn cache_variables(cache: &Path) -> Vec<(String, String)> {
        let below = |name: &str| cache.join(name).display().to_string();
        let all = [
            ("npm_config_cache", "npm"),
            ("XDG_CACHE_HOME", "xdg"),
            ("XDG_DATA_HOME", "data"),
            ("UV_CACHE_DIR", "uv"),
            ("UV_TOOL_DIR", "uv-tools"),
            ("UV_PYTHON_INSTALL_DIR", "uv-python"),
            ("PIP_CACHE_DIR", "pip"),
            ("DENO_DIR", "deno"),
            ("BUN_INSTALL_CACHE_DIR", "bun"),
        ];
        all.map(|(name, folder)| (name.to_owned(), below(folder))).to_vec()
    }
}

/// Why a path of an entry is not opened for the server's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RefusedGrant {
    #[error("it does not exist")]
    Missing,
    /// The whole system or home, `/proc`, `/dev`, secrets such as `~/.ssh`, or our own folder.
    #[error("it is too wide, or holds secrets")]
    Closed,
    /// Only folders can be opened for changes.
    #[error("it is a file: name its folder")]
    File,
}

/// The two ends of a running server.
pub(crate) struct ProcessTransport {
    messages: mpsc::Receiver<RxJsonRpcMessage<RoleClient>>,
    outgoing: mpsc::Sender<Vec<u8>>,
    /// Ends the program when the transport is dropped.
    _end: DropGuard,
}

/// Why a program is over, once it is.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExitReason(Arc<Mutex<Option<ServerEnd>>>);

impl ExitReason {
    pub(crate) fn set(&self, end: ServerEnd) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(end);
    }

    pub(crate) fn get(&self) -> Option<ServerEnd> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ProcessTransport {
    /// Starts the program of a server.
    pub(crate) fn start(
        launch: &Launch,
        server: &McpServer,
        log: Arc<Log>,
        moved: Arc<MovedFiles>,
    ) -> Result<(Self, ExitReason), String> {
        let cache = launch.cache(server);
        std::fs::create_dir_all(&cache).map_err(|error| format!("`{}`: {error}", cache.display()))?;
        let (input, writer) = io::pipe().map_err(|error| error.to_string())?;
        let writer = pipe::Sender::from_owned_fd(OwnedFd::from(writer)).map_err(|error| error.to_string())?;
        let mut given = if launch.sandboxed { Launch::cache_variables(&cache) } else { Vec::new() };
        given.retain(|(name, _)| !server.env.contains_key(name));
        given.extend(server.env.clone());
        let argv = std::iter::once(&server.command).chain(&server.args).cloned().collect();
        let stdin = StdinPipe(Arc::new(OwnedFd::from(input)));
        let sandbox = CommandSandbox { moved, ..launch.sandbox(server, &cache) };
        let spec = sandbox.server(argv, &launch.root, &given, stdin).map_err(|error| error.to_string())?;
        let (reader, messages) = mpsc::channel(WAITING_MAX);
        let (outgoing, queue) = mpsc::channel(WAITING_MAX);
        let (cancel, reason) = (CancellationToken::new(), ExitReason::default());
        tokio::spawn(write_all(writer, queue, cancel.clone()));
        let (ended, stop) = (reason.clone(), cancel.clone());
        let run = move || {
            let mut lines = LineReader { rest: Vec::new(), bad: 0, log: Arc::clone(&log), to: reader };
            let mut tail = ErrorTail::default();
            let over = max_team_sandbox::run(&spec, true, &stop, &mut |source, bytes| match source {
                OutputSource::Output => lines.push(bytes).map_err(|why| ended.set(why)).is_ok(),
                OutputSource::Error => {
                    tail.add(bytes);
                    log.add(bytes);
                    true
                }
            });
            // A program that ends because its connection is no longer needed is no news.
            let is_over = stop.is_cancelled() && ended.get().is_none();
            ended.set(over.map_or_else(ServerEnd::from, |over| how_it_ended(&over, &tail)));
            if let Some(end) = ended.get().filter(|_| !is_over) {
                log.line(&end.to_string());
            }
            // The last sender of messages goes with this thread, after the reason is known.
            drop(lines);
        };
        thread::Builder::new().name("mcp server".into()).spawn(run).map_err(|error| error.to_string())?;
        Ok((Self { messages, outgoing, _end: cancel.drop_guard() }, reason))
    }
}

fn how_it_ended(over: &CommandOutcome, tail: &ErrorTail) -> ServerEnd {
    match (&over.ended, over.code, over.signal) {
        (EndReason::Exited, Some(code), _) => ServerEnd::Exited { code, wrote: tail.reason() },
        (EndReason::Exited, None, Some(signal)) => ServerEnd::Signalled { signal, wrote: tail.reason() },
        (EndReason::Limit(limit), _, _) => ServerEnd::Limit(*limit),
        _ => ServerEnd::Stopped,
    }
}

/// Writes messages to a program until there are no more or it reads no more.
async fn write_all(mut to: pipe::Sender, mut queue: mpsc::Receiver<Vec<u8>>, cancel: CancellationToken) {
    loop {
        let message = tokio::select! {
            () = cancel.cancelled() => return,
            message = queue.recv() => message,
        };
        let Some(message) = message else { return };
        tokio::select! {
            () = cancel.cancelled() => return,
            written = to.write_all(&message) => if written.is_err() { return },
        }
    }
}

/// Divides what a program prints into messages.
struct LineReader {
    rest: Vec<u8>,
    /// Lines that were no message.
    bad: usize,
    log: Arc<Log>,
    to: mpsc::Sender<RxJsonRpcMessage<RoleClient>>,
}

impl LineReader {
    /// Takes what was printed; an error says why the program is ended.
    fn push(&mut self, bytes: &[u8]) -> Result<(), ServerEnd> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.rest.len() + piece.len() > MCP_MESSAGE_BYTES_MAX {
                return Err(ServerEnd::LongMessage { mb: MCP_MESSAGE_BYTES_MAX >> 20 });
            }
            self.rest.extend_from_slice(piece);
            if piece.last() == Some(&b'\n') {
                let line = std::mem::take(&mut self.rest);
                self.line(line.trim_ascii())?;
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Result<(), ServerEnd> {
        if line.is_empty() {
            return Ok(());
        }
        match serde_json::from_slice(line) {
            Ok(message) => self.to.blocking_send(message).map_err(|_| ServerEnd::Closed),
            Err(error) => {
                self.bad += 1;
                let shown = String::from_utf8_lossy(line.get(..200).unwrap_or(line)).into_owned();
                self.log.line(&format!("no message: {error}: {shown}"));
                if self.bad > MCP_BAD_LINES_MAX { Err(ServerEnd::BadLines) } else { Ok(()) }
            }
        }
    }
}

/// A message could not be given to the server.
#[derive(Debug, thiserror::Error)]
#[error("the server is gone")]
pub(crate) struct ServerGone;

impl Transport<RoleClient> for ProcessTransport {
    type Error = ServerGone;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), ServerGone>> + Send + 'static {
        let outgoing = self.outgoing.clone();
        async move {
            let mut bytes = serde_json::to_vec(&item).map_err(|_| ServerGone)?;
            bytes.push(b'\n');
            outgoing.send(bytes).await.map_err(|_| ServerGone)
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> Result<(), ServerGone> {
        self.messages.close();
        Ok(())
    }
}
