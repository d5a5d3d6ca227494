//! An MCP server as a file or a flag describes it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::hash::Hash;
use crate::limits::{MCP_CALL_MS, MCP_CONNECT_MS, TOOL_NAME_BYTES_MAX};

/// A server of tools.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServer {
    /// Its tools are called `mcp__NAME__TOOL`.
    pub name: String,
    /// The program that serves the tools; empty if the server is at `url`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Environment variables. They may hold keys: never written down, never shown.
    #[serde(skip)]
    pub env: BTreeMap<String, String>,
    /// Where a remote server is; empty for one that is started here.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// How a remote server is spoken to.
    #[serde(default)]
    pub transport: HttpTransport,
    /// HTTP headers. They may hold keys: never written down, never shown.
    #[serde(skip)]
    pub headers: BTreeMap<String, String>,
    /// How the user signs in at a remote server.
    #[serde(default, skip_serializing_if = "OauthClient::is_empty")]
    pub oauth: OauthClient,
    /// Milliseconds that one call may take; `None`: the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_ms: Option<u64>,
    /// Milliseconds until it must have answered for the first time; `None`: the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_ms: Option<u64>,
    /// The only tools that are offered, by the server's own names; `None`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// What its program may reach.
    #[serde(default)]
    pub grant: ServerGrant,
    /// The program with its arguments, or the address, as the entry writes it: variables in it are not filled in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub shown: String,
    /// The hash of the entry as it is written; `None`: the hash of the values.
    #[serde(skip)]
    pub written: Option<Hash>,
}

/// How a remote server is spoken to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpTransport {
    /// Streamable HTTP; if the server does not know it, the older event stream.
    #[default]
    Either,
    /// Only streamable HTTP.
    Http,
    /// The event stream of 2024-11-05, with an address of its own for messages.
    Sse,
}

/// How this program is known where the user signs in. Without an id it registers itself.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OauthClient {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Never written down, never shown.
    #[serde(skip)]
    pub client_secret: Option<String>,
    /// The rights to ask for; empty: those that the server names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// The port that the browser comes back to; `None`: any that is free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_port: Option<u16>,
}

impl OauthClient {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Debug for OauthClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OauthClient")
            .field("client_id", &self.client_id)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// What the program of a server may reach beside the system's files and its own cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerGrant {
    /// Whether it can reach the network.
    pub network: bool,
    /// Whether it may change the project's files; it can always read them. `None`: yes, unless the sandbox cannot protect files
    /// (Landlock alone).
    #[serde(default)]
    pub project: Option<bool>,
    /// Further files and folders that it reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// Further folders that it changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
}

impl Default for ServerGrant {
    fn default() -> Self {
        Self { network: true, project: None, read: Vec::new(), write: Vec::new() }
    }
}

impl McpServer {
    /// Whether its program is started on this machine.
    pub fn is_local(&self) -> bool {
        self.url.is_empty()
    }

    /// How long one call may take.
    pub fn call_ms(&self) -> u64 {
        self.call_ms.unwrap_or(MCP_CALL_MS)
    }

    /// Until when it must have answered for the first time.
    pub fn connect_ms(&self) -> u64 {
        self.connect_ms.unwrap_or(MCP_CONNECT_MS)
    }

    /// A hash of everything that decides which program runs or which server is reached, and with what. Servers with the same
    /// hash share a process and a list of tools. A key that is renewed, and that the entry names as a variable, does not change it.
    pub fn hash(&self) -> Hash {
        if let Some(written) = self.written {
            return written;
        }
        let all = (&self.command, &self.args, &self.env, &self.url, &self.transport, &self.headers, &self.grant);
        Hash::of(serde_json::to_vec(&all).unwrap_or_default())
    }

    /// The program with its arguments, or the address: what a person is shown.
    pub fn target(&self) -> String {
        if !self.shown.is_empty() {
            return self.shown.clone();
        }
        if !self.is_local() {
            return self.url.clone();
        }
        let words = std::iter::once(&self.command).chain(&self.args);
        words.map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |map: &BTreeMap<String, String>| map.keys().cloned().collect::<Vec<_>>();
        f.debug_struct("McpServer")
            .field("name", &self.name)
            .field("target", &self.target())
            .field("env", &names(&self.env))
            .field("headers", &names(&self.headers))
            .field("grant", &self.grant)
            .finish_non_exhaustive()
    }
}

/// The state of a source of tools, as people are shown it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceStatus {
    pub name: String,
    pub state: SourceState,
    /// How many tools agents have of it now.
    pub tools: usize,
    /// The commands that its prompts are, with the names of their arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<String>,
}

/// Whether a source can be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceState {
    /// It is not running and starts when it is used.
    Idle,
    Starting,
    Ready,
    /// It failed, for this reason, and is started again by the next call.
    Failed(String),
    /// It failed too often, for this reason: its tools are withdrawn.
    Withdrawn(String),
    /// It asks for a login first.
    NeedsLogin(String),
    /// Its tools differ from those that the user trusted.
    Changed,
}

impl SourceState {
    /// Its name in the `mcp_servers` of `--output-format stream-json`, as other programs spell it.
    pub fn stream_name(&self) -> &'static str {
        match self {
            Self::Idle | Self::Starting => "pending",
            Self::Ready => "connected",
            Self::NeedsLogin(_) => "needs-auth",
            Self::Failed(_) | Self::Withdrawn(_) | Self::Changed => "failed",
        }
    }
}

/// The name that models know a server's tool by. Providers accept few characters and a bounded length: other characters become
/// `_`, and a name that is too long ends in a part of its hash.
pub fn tool_name(server: &str, tool: &str) -> String {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let clean = |text: &str| text.chars().map(|letter| if fits(letter) { letter } else { '_' }).collect::<String>();
    let name = format!("mcp__{}__{}", clean(server), clean(tool));
    if name.len() <= TOOL_NAME_BYTES_MAX {
        return name;
    }
    let hash = Hash::of(format!("{server}\0{tool}")).to_string();
    let (kept, end) = (name.get(..TOOL_NAME_BYTES_MAX - 9).unwrap_or_default(), hash.get(..8).unwrap_or_default());
    format!("{kept}_{end}")
}

/// Whether a name can be that of a server. It becomes part of tool names and of permission rules, so no two names may lead to the
/// same tools, and none to tools that a rule for another covers.
pub fn is_server_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let is_edge = |edge: Option<u8>| edge == Some(b'_');
    // A name that begins with `-` looks like a flag on the command line.
    let is_clear = !name.starts_with('-')
        && !name.contains("__")
        && !is_edge(name.bytes().next())
        && !is_edge(name.bytes().last());
    (1..=32).contains(&name.len()) && name.bytes().all(fits) && is_clear
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_names_are_those_that_providers_accept() {
        for (server, tool, name) in [
            ("files", "read_file", "mcp__files__read_file"),
            ("my.server", "a b/c", "mcp__my_server__a_b_c"),
            ("x", "", "mcp__x__"),
        ] {
            assert_eq!(tool_name(server, tool), name);
        }
        let (one, other) = (tool_name("s", &"a".repeat(100)), tool_name("s", &"a".repeat(101)));
        assert!(one.len() == TOOL_NAME_BYTES_MAX && other.len() == TOOL_NAME_BYTES_MAX && one != other);
    }

    #[test]
    fn names_of_servers_are_checked() {
        for (name, is_good) in [
            ("git", true),
            ("a-c_d", true),
            ("", false),
            ("a b", false),
            ("a__b", false),
            ("a.b", false),
            ("git_", false),
            ("-git", false),
        ] {
            assert_eq!(is_server_name(name), is_good, "{name}");
        }
    }

    #[test]
    fn keys_are_neither_shown_nor_stored_and_count_for_the_hash() {
        let secret = ("TOKEN".to_owned(), "very secret".to_owned());
        let server = McpServer { name: "x".into(), command: "npx".into(), ..McpServer::default() };
        let keyed = McpServer { env: [secret.clone()].into(), headers: [secret].into(), ..server.clone() };
        assert!(!format!("{keyed:?}").contains("very") && format!("{keyed:?}").contains("TOKEN"));
        assert!(!serde_json::to_string(&keyed).unwrap().contains("very"));
        assert_ne!(server.hash(), keyed.hash());
        assert_eq!(server.hash(), McpServer { name: "y".into(), call_ms: Some(1), ..server.clone() }.hash());
    }
}
