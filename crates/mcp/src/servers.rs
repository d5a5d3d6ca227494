//! All servers of a process, by the names that definitions use.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use max_team_core::agent::{ALL_SOURCES, source_covers};
use max_team_core::chat::Part;
use max_team_core::hash::Hash;
use max_team_core::limits::MCP_SERVERS_MAX;
use max_team_core::mcp::{McpServer, SourceStatus};
use max_team_core::mention::{ServerMention, left_out};
use max_team_tools::{Handler, Preparation, Reading, ToolSource, ToolSources};

use crate::notice::Words;
use crate::process::Launch;
use crate::prompts::ReadError;
use crate::server::Server;
use crate::tool::McpTool;

/// A server that may be used.
#[derive(Debug, Clone)]
pub struct ServerEntry {
    /// The name by which definitions choose it: `SERVER`, or `AGENT:SERVER` for an agent's own server.
    pub source: String,
    pub server: McpServer,
    /// The hash of the tools that the user trusted, for servers that a project brings along.
    pub pin: Option<Hash>,
}

/// The servers of a process.
pub struct Servers {
    launch: Launch,
    cert_file: Option<PathBuf>,
    words: Words,
    all: Mutex<All>,
}

#[derive(Default)]
struct All {
    by_source: BTreeMap<String, Arc<Server>>,
    /// Servers by their configuration, so that equal ones are one.
    by_config: HashMap<(Hash, Option<Hash>, String), Weak<Server>>,
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Servers").field("names", &self.all().by_source.keys()).finish_non_exhaustive()
    }
}

impl Servers {
    /// No server yet. `cert_file` holds more certificates to trust.
    pub fn new(launch: Launch, cert_file: Option<PathBuf>) -> Self {
        Self { launch, cert_file, words: Words::default(), all: Mutex::default() }
    }

    /// The same servers, which speak to the user in another language.
    #[must_use]
    pub fn speaking(self, words: Words) -> Self {
        Self { words, ..self }
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces all entries. A server whose entry is as before goes on; one that is gone ends with its last call.
    pub fn set(&self, entries: Vec<ServerEntry>) {
        let mut all = self.all();
        let mut by_source = BTreeMap::new();
        for ServerEntry { source, server, pin } in entries.into_iter().take(MCP_SERVERS_MAX) {
            let key = (server.hash(), pin, server.name.clone());
            let known = all.by_config.get(&key).and_then(Weak::upgrade);
            // Bounds of time and the choice of tools are no part of the hash.
            let known = known.filter(|known| *known.config() == server);
            let shared = known.unwrap_or_else(|| {
                let made = Server::new(server, self.launch.clone(), self.cert_file.clone(), pin);
                all.by_config.insert(key, Arc::downgrade(&made));
                made
            });
            by_source.insert(source, shared);
        }
        all.by_source = by_source;
        all.by_config.retain(|_, server| server.strong_count() > 0);
    }

    /// Every server with the name that definitions use.
    pub fn list(&self) -> Vec<(String, Arc<Server>)> {
        self.all().by_source.iter().map(|(source, server)| (source.clone(), Arc::clone(server))).collect()
    }

    /// The server by that name.
    pub fn get(&self, source: &str) -> Option<Arc<Server>> {
        self.all().by_source.get(source).cloned()
    }
}

impl ToolSources for Servers {
    fn source(&self, name: &str) -> Option<Arc<dyn ToolSource>> {
        self.get(name).map(|server| {
            let source = ServerTools { source: name.to_owned(), server, words: self.words };
            Arc::new(source) as Arc<dyn ToolSource>
        })
    }

    fn shared(&self) -> Vec<String> {
        let names = self.all().by_source.keys().cloned().collect::<Vec<_>>();
        names.into_iter().filter(|name| source_covers(ALL_SOURCES, name)).collect()
    }

    fn statuses(&self) -> Vec<SourceStatus> {
        let status = |(name, server): (String, Arc<Server>)| {
            let state = server.status().shown(self.words.error);
            SourceStatus { name, state, tools: server.offered().len(), prompts: server.prompt_commands() }
        };
        self.list().into_iter().map(status).collect()
    }
}

/// The tools of one server.
#[derive(Debug)]
struct ServerTools {
    source: String,
    server: Arc<Server>,
    words: Words,
}

impl ToolSource for ServerTools {
    fn name(&self) -> &str {
        &self.source
    }

    fn generation(&self) -> u64 {
        self.server.generation()
    }

    fn tools(&self) -> Vec<Handler> {
        let tools = self.server.offered().into_iter();
        tools.map(|tool| Handler::Remote(Arc::new(McpTool::new(Arc::clone(&self.server), tool)))).collect()
    }

    fn prepare(&self) -> Option<Preparation> {
        if self.server.is_unknown() {
            let server = Arc::clone(&self.server);
            // A failure is kept as the server's state and told as a notice.
            return Some(Box::pin(async move { drop(server.refresh().await) }));
        }
        if self.server.is_due() {
            let server = Arc::clone(&self.server);
            tokio::spawn(async move { server.refresh().await });
        }
        None
    }

    fn read(&self, mention: &ServerMention) -> Option<Reading> {
        if !self.server.has(mention) {
            return None;
        }
        let (server, words, mention) = (Arc::clone(&self.server), self.words, mention.clone());
        Some(Box::pin(async move {
            server.read(&mention).await.unwrap_or_else(|error| {
                let why = match error {
                    ReadError::Server(error) => (words.error)(&error),
                    ReadError::Command(why) => why,
                };
                vec![Part::text(left_out(&mention.written(), &why))]
            })
        }))
    }

    fn notices(&self) -> Vec<String> {
        self.server.take_notices().iter().map(self.words.notice).collect()
    }
}
