//! The MCP servers of a session: where entries are written, which entry counts, and whether the user trusts it.
//!
//! From the strongest to the weakest: `--mcp-config`, the user's entries for this project, the project's `.mcp.json`, the
//! user's entries for all projects, the user's settings. Of two entries with one name the stronger one counts as a whole. What a
//! project brings along is used once the user has trusted it: its command and the tools that it offers.

mod entry;
mod store;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use max_team_core::agent::owned_source;
use max_team_core::hash::Hash;
use max_team_core::mcp::McpServer;
use max_team_mcp::{Launch, ServerEntry, Servers};
use serde_json::{Map, Value, json};

use crate::config::Config;
use crate::exit::{CliError, Exit};
use crate::i18n::Lang;
use crate::input_file;
use crate::selection::Selection;
use crate::setup::AppEnv;

pub use entry::is_address;
use store::TrustedServer;
pub use store::{AddedServer, add, remove, trust};

/// The file that a project brings along.
pub const PROJECT_FILE: &str = ".mcp.json";

/// Where an entry is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerScope {
    /// `--mcp-config`.
    Flag,
    /// The user's entries for one project.
    Local,
    /// The project's `.mcp.json`.
    Project,
    /// The user's entries for all projects.
    User,
    /// `tools.mcp_servers` in the user's settings.
    Settings,
}

impl ServerScope {
    /// Its name in commands.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
            Self::Settings => "settings",
        }
    }

    /// Whether the file may be one that other programs read, too.
    fn is_shared(self) -> bool {
        matches!(self, Self::Flag | Self::Project)
    }
}

/// An entry that was found.
#[derive(Debug, Clone)]
pub struct FoundServer {
    pub server: McpServer,
    pub scope: ServerScope,
    /// The file that holds it, as a user knows it.
    pub place: String,
    /// Whether it may be started.
    pub is_trusted: bool,
    /// The hash of the tools that were trusted with it.
    pub pin: Option<Hash>,
    /// Whether its entry switches it off.
    pub is_disabled: bool,
    /// The entry as it is written, with variables not filled in.
    pub entry: Value,
}

/// All entries that count in a folder, by name, and what is odd about the files.
#[derive(Debug, Default)]
pub struct FoundServers {
    pub servers: BTreeMap<String, FoundServer>,
    pub warnings: Vec<String>,
    /// The servers of this project that the user trusts.
    trusted: BTreeMap<String, TrustedServer>,
    /// The language of the warnings.
    lang: Lang,
}

impl FoundServers {
    /// Reads every list of servers for a project's folder.
    pub fn read(place: &AppEnv, config: &Config, root: &Path, selection: &Selection) -> Result<Self, CliError> {
        let lang = place.lang(config);
        let mut found = Self { trusted: store::trusted(&place.home, root), lang, ..Self::default() };
        for given in &selection.mcp_config {
            let (shown, json) = named(place, given)?;
            found.add(&json, ServerScope::Flag, &shown, place);
        }
        if selection.strict_mcp_config {
            return Ok(found);
        }
        let own = store::path(&place.home);
        let shown = crate::team_file::shown(place, &own);
        let users = found.file(&own, &shown);
        let local = users.pointer("/projects").and_then(|projects| projects.get(root.to_string_lossy().as_ref()));
        found.add(local.unwrap_or(&Value::Null), ServerScope::Local, &shown, place);
        let project = root.join(PROJECT_FILE);
        if project.exists() {
            let json = found.file(&project, PROJECT_FILE);
            found.add(&json, ServerScope::Project, PROJECT_FILE, place);
        }
        found.add(&users, ServerScope::User, &shown, place);
        found.add(&config.tools.mcp_servers, ServerScope::Settings, "tools.mcp_servers", place);
        Ok(found)
    }

    /// The file's content; an empty list if there is none or it cannot be read, which is told.
    fn file(&mut self, path: &Path, shown: &str) -> Value {
        let nothing = || json!({ "mcpServers": {} });
        if !path.exists() {
            return nothing();
        }
        let text = input_file::text(path, input_file::JSON_BYTES_MAX).map_err(|error| error.to_string());
        let json = text.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()));
        json.unwrap_or_else(|error| {
            self.warnings.push(self.lang.servers_unreadable(shown, error));
            nothing()
        })
    }

    /// The map of entries in a list, if it has one in one of the forms that programs write.
    fn list<'a>(&mut self, json: &'a Value, scope: ServerScope, shown: &str) -> Option<&'a Map<String, Value>> {
        let keys = list_keys(json, scope);
        match keys {
            Some(keys) if keys == VSCODE => self.warnings.push(self.lang.servers_vscode(shown)),
            None if scope.is_shared() => self.warnings.push(self.lang.servers_no_list(shown)),
            _ => {}
        }
        keys?.iter().try_fold(json, |at, key| at.get(*key))?.as_object()
    }

    fn add(&mut self, json: &Value, scope: ServerScope, place_shown: &str, place: &AppEnv) {
        let Some(list) = self.list(json, scope, place_shown) else { return };
        for (name, value) in list {
            if let Some(stronger) = self.servers.get(name) {
                let is_usable = stronger.is_trusted && !stronger.is_disabled;
                if is_usable || stronger.scope != ServerScope::Project {
                    continue;
                }
                // What a project brings along takes nothing away from the user.
                self.warnings.push(self.lang.server_hidden(&stronger.place, name));
            }
            match entry::read(name, value, &place.env, self.lang) {
                Ok(entry::ReadEntry { server, warnings, is_disabled }) => {
                    self.warnings.extend(warnings.into_iter().map(|words| format!("{place_shown}: {words}")));
                    let trust = self.trusted.get(name).filter(|trusted| trusted.entry == server.hash());
                    let trust = trust.filter(|_| scope == ServerScope::Project);
                    let is_trusted = scope != ServerScope::Project || trust.is_some();
                    let (pin, place) = (trust.map(|trusted| trusted.tools), place_shown.to_owned());
                    let found =
                        FoundServer { server, scope, place, is_trusted, pin, is_disabled, entry: value.clone() };
                    self.servers.insert(name.clone(), found);
                }
                Err(why) => self.warnings.push(self.lang.server_entry_unused(place_shown, why)),
            }
        }
    }

    /// Entries that the project brings and the user has not trusted yet.
    pub fn untrusted(&self) -> Vec<&str> {
        let found = self.servers.values().filter(|found| !found.is_trusted && !found.is_disabled);
        found.map(|found| found.server.name.as_str()).collect()
    }

    /// The entries that agents may use: the session's, and those that single agents bring along.
    pub fn entries(&self, agents: &[(String, Vec<McpServer>)]) -> Vec<ServerEntry> {
        let usable = self.servers.values().filter(|found| found.is_trusted && !found.is_disabled);
        let session = usable.map(|found| ServerEntry {
            source: found.server.name.clone(),
            server: found.server.clone(),
            pin: found.pin,
        });
        let owned = agents.iter().flat_map(|(agent, servers)| {
            let source = |server: &McpServer| owned_source(agent, &server.name);
            servers.iter().map(move |server| ServerEntry { source: source(server), server: server.clone(), pin: None })
        });
        session.chain(owned).collect()
    }
}

/// The list that a flag names: a file, or the JSON itself.
fn named(place: &AppEnv, given: &str) -> Result<(String, Value), CliError> {
    if given.trim_start().starts_with(['{', '[']) {
        let no_json = |error: serde_json::Error| CliError::said(Exit::Config, |lang| lang.flag_not_json(&error));
        return Ok(("--mcp-config".to_owned(), serde_json::from_str(given).map_err(no_json)?));
    }
    let unreadable =
        |why: &dyn std::fmt::Display| CliError::said(Exit::Config, |lang| lang.flag_unreadable(given, why));
    let text = input_file::text(&place.cwd.join(given), input_file::JSON_BYTES_MAX);
    let text = text
        .map_err(|error| CliError::said(Exit::Config, |lang| lang.flag_unreadable(given, lang.input_fault(&error))))?;
    let json = serde_json::from_str(&text).map_err(|error| unreadable(&error))?;
    Ok((given.to_owned(), json))
}

/// The key under which VS Code keeps its list.
const VSCODE: &[&str] = &["servers"];

/// The keys that lead to the list of servers in a file; none: the file is the list itself. `None`: there is no list.
fn list_keys(json: &Value, scope: ServerScope) -> Option<&'static [&'static str]> {
    let found = |keys: &'static [&'static str], list: &Value| list.is_object().then_some(keys);
    if let Some(list) = json.get("mcpServers") {
        return found(&["mcpServers"], list);
    }
    if let Some(list) = json.pointer("/tools/mcpServers") {
        return found(&["tools", "mcpServers"], list);
    }
    // A server that is called `servers` has a command or an address.
    let has_entries = |list: &Value| list.as_object().is_some_and(|list| list.values().all(Value::is_object));
    if scope.is_shared() && json.get("servers").is_some_and(has_entries) {
        return Some(VSCODE);
    }
    (scope != ServerScope::User && has_entries(json)).then_some(&[])
}

/// Where servers of a project are started.
pub fn launch(place: &AppEnv, config: &Config, root: &Path) -> Launch {
    let (root, home, user) = (root.to_path_buf(), place.home.clone(), place.env.user());
    Launch { root, home, user, sandboxed: config.project.sandbox }
}

/// The file with more certificates to trust.
pub fn cert_file(place: &AppEnv) -> Option<PathBuf> {
    place.env.get("SSL_CERT_FILE").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The servers of a process, for a project's folder.
pub fn servers(place: &AppEnv, config: &Config, root: &Path, entries: Vec<ServerEntry>) -> Arc<Servers> {
    let servers =
        Servers::new(launch(place, config, root), cert_file(place)).speaking(place.lang(config).server_words());
    servers.set(entries);
    Arc::new(servers)
}
