//! `mcp list`, `add`, `test` and their like: the servers that agents use.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use max_team_core::chat::Part;
use max_team_core::hash::Hash;
use max_team_mcp::{KnownTool, KnownTools, Server, ServerEntry, Servers, log_file};
use max_team_terminal::text::{clean, clean_line};
use max_team_tools::{Handler, Output, Root, ToolContext, ToolSources, run_remote};
use max_team_workspace::config::Config;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::i18n::Lang;
use max_team_workspace::mcp::{self, FoundServer, FoundServers, ServerScope};
use max_team_workspace::selection::Selection;
use max_team_workspace::setup::{self, AppEnv};
use serde_json::{Map, Value, json};

use super::table::{clip, table};
use crate::args::mcp_client::{AddServer, McpClient, OneServer, Scope, ServerLists, Transport};

/// Characters of a program or an address in a list.
const TARGET_CHARS: usize = 60;
/// Characters of a description in a list.
const DESCRIPTION_CHARS: usize = 80;
/// Bytes of a log that are read.
const LOG_BYTES_MAX: u64 = 2 << 20;

pub(crate) fn run(place: &AppEnv, command: McpClient) -> anyhow::Result<Exit> {
    let lang = place.speaks();
    match command {
        McpClient::List { json, lists } => list(&Folder::read(place, &lists)?, lang, json),
        McpClient::Add(add) => {
            let entry = add.entry()?;
            put(place, lang, add.scope, &add.name, entry)
        }
        McpClient::AddJson { name, json, scope } => {
            let entry = serde_json::from_str(&json).map_err(|error| usage(format!("the entry is no JSON: {error}")))?;
            put(place, lang, scope, &name, entry)
        }
        McpClient::Remove { name, scope } => remove(place, lang, &name, scope),
        McpClient::Get { name, json, lists } => get(&Folder::read(place, &lists)?, lang, &name, json),
        McpClient::Test(server) => test(&Folder::read(place, &server.lists)?, lang, &server),
        McpClient::Tools { server, json } => tools(&Folder::read(place, &server.lists)?, lang, &server, json),
        McpClient::Call { server, tool, input } => call(&Folder::read(place, &server.lists)?, &server, &tool, &input),
        McpClient::Trust { name, yes } => trust(&Folder::read(place, &ServerLists::default())?, lang, &name, yes),
        McpClient::Logs { name, lines } => logs(&Folder::read(place, &ServerLists::default())?, lang, &name, lines),
    }
}

fn usage(words: String) -> CliError {
    CliError::new(Exit::Usage, words)
}

/// The servers of the folder that the command was started in.
struct Folder<'a> {
    place: &'a AppEnv,
    config: Config,
    root: PathBuf,
    found: FoundServers,
}

impl<'a> Folder<'a> {
    fn read(place: &'a AppEnv, lists: &ServerLists) -> Result<Self, CliError> {
        let config = place.settings(lists.config.as_deref(), Vec::new())?;
        let root = setup::project_root(place, &config)?;
        let selection = Selection { mcp_config: lists.mcp_config.clone(), ..Selection::default() };
        let found = FoundServers::read(place, &config, &root, &selection)?;
        found.warnings.iter().for_each(|warning| place.tell(warning));
        Ok(Self { place, config, root, found })
    }

    fn one(&self, name: &str) -> Result<&FoundServer, CliError> {
        let names = || self.found.servers.keys().map(String::as_str);
        self.found.servers.get(name).ok_or_else(|| {
            let near = max_team_core::suggest::candidates(name, names());
            CliError::said(Exit::Failed, |lang| lang.no_such_server(name, &near))
        })
    }

    /// The server, ready to be connected to. Changed tools are shown instead of withheld.
    fn server(&self, found: &FoundServer, is_trusted: bool) -> Result<(Arc<Servers>, Arc<Server>), CliError> {
        self.pinned(found, is_trusted, None)
    }

    /// Like `server`, with the tools that the user trusted.
    fn pinned(
        &self,
        found: &FoundServer,
        is_trusted: bool,
        pin: Option<Hash>,
    ) -> Result<(Arc<Servers>, Arc<Server>), CliError> {
        let name = &found.server.name;
        if !found.is_trusted && !is_trusted {
            return Err(CliError::said(Exit::Denied, |lang| lang.server_needs_trust(name)));
        }
        let entry = ServerEntry { source: name.clone(), server: found.server.clone(), pin };
        let servers = mcp::servers(self.place, &self.config, &self.root, vec![entry]);
        let server = servers.get(name).ok_or_else(|| usage(format!("`{name}` cannot be used")))?;
        Ok((servers, server))
    }
}

/// A server's name and its state, in words.
pub(crate) type ServerLine = (String, String);

/// Every server of a folder with its state, and what is odd about the files.
pub(crate) fn states(place: &AppEnv, config: &Config, lang: Lang) -> Result<(Vec<ServerLine>, Vec<String>), CliError> {
    let root = setup::project_root(place, config)?;
    let found = FoundServers::read(place, config, &root, &Selection::default())?;
    let state = |found: &FoundServer| (found.server.name.clone(), state(place, found, lang).1);
    Ok((found.servers.values().map(state).collect(), found.warnings))
}

/// What is known of a server without starting it.
fn state(place: &AppEnv, found: &FoundServer, lang: Lang) -> (&'static str, String) {
    let known = KnownTools::read(&place.home, &found.server.hash());
    match known {
        _ if found.is_disabled => ("disabled", lang.server_disabled().to_owned()),
        _ if !found.is_trusted => ("untrusted", lang.server_untrusted().to_owned()),
        Some(known) if found.pin.is_some_and(|pin| pin != known.hash()) => {
            ("changed", lang.server_changed().to_owned())
        }
        Some(known) => ("known", lang.server_known(known.tools.len())),
        None => ("unknown", lang.server_unknown().to_owned()),
    }
}

fn list(folder: &Folder<'_>, lang: Lang, as_json: bool) -> anyhow::Result<Exit> {
    let all: Vec<&FoundServer> = folder.found.servers.values().collect();
    if as_json {
        let rows: Vec<Value> = all.iter().map(|found| shown(folder, found, lang)).collect();
        super::print(&format!("{:#}\n", json!({ "servers": rows })))?;
        return Ok(Exit::Ok);
    }
    if all.is_empty() {
        super::print(&format!("{}\n", lang.no_servers()))?;
        return Ok(Exit::Ok);
    }
    let heads: Vec<&str> = lang.server_heads().split(',').collect();
    let row = |found: &&FoundServer| {
        let target = clip(&clean_line(&found.server.target()), TARGET_CHARS);
        vec![found.server.name.clone(), found.scope.name().to_owned(), state(folder.place, found, lang).1, target]
    };
    super::print(&table(&heads, &all.iter().map(row).collect::<Vec<_>>()))?;
    Ok(Exit::Ok)
}

fn shown(folder: &Folder<'_>, found: &FoundServer, lang: Lang) -> Value {
    let server = &found.server;
    let env: Vec<&String> = server.env.keys().collect();
    let headers: Vec<&String> = server.headers.keys().collect();
    json!({
        "name": server.name, "scope": found.scope.name(), "file": found.place, "command": server.command,
        "args": server.args, "url": server.url, "env": env, "headers": headers,
        "state": state(folder.place, found, lang).0, "timeout_ms": server.call_ms(),
        "reaches": { "network": server.grant.network, "write_project": server.grant.project,
                     "read": server.grant.read, "write": server.grant.write },
    })
}

fn get(folder: &Folder<'_>, lang: Lang, name: &str, as_json: bool) -> anyhow::Result<Exit> {
    let found = folder.one(name)?;
    if as_json {
        super::print(&format!("{:#}\n", shown(folder, found, lang)))?;
        return Ok(Exit::Ok);
    }
    let server = &found.server;
    let names = |map: &std::collections::BTreeMap<String, String>| map.keys().cloned().collect::<Vec<_>>().join(", ");
    let mut rows = vec![
        (lang.server_row_entry(), format!("{} ({})", found.place, found.scope.name())),
        (lang.server_row_target(), clean_line(&server.target())),
        (lang.server_row_state(), state(folder.place, found, lang).1),
    ];
    if !server.env.is_empty() {
        rows.push((lang.server_row_env(), names(&server.env)));
    }
    if !server.headers.is_empty() {
        rows.push((lang.server_row_headers(), names(&server.headers)));
    }
    let log = log_file(&folder.place.home, server);
    if let Some(last) = last_lines(&log, 1) {
        rows.push((lang.server_row_log(), clean_line(last.trim())));
    }
    let text: String = rows.iter().map(|(head, value)| format!("{head}: {value}\n")).collect();
    super::print(&text)?;
    Ok(Exit::Ok)
}

impl AddServer {
    /// The entry as a file holds it.
    fn entry(&self) -> Result<Value, CliError> {
        let is_address = self.target.starts_with("http://") || self.target.starts_with("https://");
        let transport = self.transport.unwrap_or(if is_address { Transport::Http } else { Transport::Stdio });
        let pairs = |all: &[String], mark: char, what: &str| -> Result<Map<String, Value>, CliError> {
            let pair = |text: &String| {
                let (name, value) = text.split_once(mark)?;
                Some((name.trim().to_owned(), Value::from(value.trim())))
            };
            let wrong = |text: &String| usage(format!("`{text}` is not of the form {what}"));
            all.iter().map(|text| pair(text).ok_or_else(|| wrong(text))).collect()
        };
        let (env, headers) = (pairs(&self.env, '=', "NAME=VALUE")?, pairs(&self.header, ':', "NAME: VALUE")?);
        let mut entry = Map::new();
        match transport {
            Transport::Stdio => {
                entry.insert("command".into(), self.target.clone().into());
                entry.insert("args".into(), self.args.clone().into());
            }
            Transport::Http | Transport::Sse => {
                let kind = if transport == Transport::Sse { "sse" } else { "http" };
                // Without `--transport`, HTTP is tried first, then the older event stream.
                if self.transport.is_some() {
                    entry.insert("type".into(), kind.into());
                }
                entry.insert("url".into(), self.target.clone().into());
            }
        }
        for (name, map) in [("env", env), ("headers", headers)] {
            if !map.is_empty() {
                entry.insert(name.into(), Value::Object(map));
            }
        }
        Ok(Value::Object(entry))
    }
}

fn put(place: &AppEnv, lang: Lang, scope: Scope, name: &str, entry: Value) -> anyhow::Result<Exit> {
    let folder = Folder::read(place, &ServerLists::default())?;
    let added = mcp::add(place, &folder.root, scope.list(), name, entry);
    let (path, was_there) = added.map_err(|why| CliError::new(Exit::Config, why))?;
    let file = path.display().to_string();
    super::print(&format!(
        "{}\n",
        if was_there { lang.server_replaced(name, &file) } else { lang.server_added(name, &file) }
    ))?;
    let next = if scope == Scope::Project { lang.server_trust_next(name) } else { lang.server_try(name) };
    super::print(&format!("{next}\n"))?;
    Ok(Exit::Ok)
}

fn remove(place: &AppEnv, lang: Lang, name: &str, scope: Option<Scope>) -> anyhow::Result<Exit> {
    let folder = Folder::read(place, &ServerLists::default())?;
    let scopes = match scope {
        Some(scope) => vec![scope.list()],
        None => vec![ServerScope::Local, ServerScope::Project, ServerScope::User],
    };
    for scope in scopes {
        let (path, was_there) =
            mcp::remove(place, &folder.root, scope, name).map_err(|why| CliError::new(Exit::Config, why))?;
        if was_there {
            super::print(&format!("{}\n", lang.server_removed(name, path.display().to_string())))?;
            return Ok(Exit::Ok);
        }
    }
    folder.one(name)?;
    Err(CliError::said(Exit::Failed, |lang| lang.server_elsewhere(name)).into())
}

/// Runs a future to its end; the program is a plain one until here.
fn wait<T>(work: impl Future<Output = T>) -> anyhow::Result<T> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work))
}

fn failed(name: &str, error: &max_team_mcp::McpError) -> CliError {
    let words = error.to_string();
    CliError::said(Exit::Failed, |lang| lang.server_failed(name, &words))
}

fn test(folder: &Folder<'_>, lang: Lang, wanted: &OneServer) -> anyhow::Result<Exit> {
    let found = folder.one(&wanted.name)?;
    let (servers, server) = folder.pinned(found, wanted.trust, found.pin.filter(|_| !wanted.trust))?;
    wait(async {
        let began = Instant::now();
        let known = server.refresh().await.map_err(|error| failed(&wanted.name, &error))?;
        let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        super::print(&format!("{}\n", lang.server_connected(ms, known.tools.len())))?;
        let harmless = known.tools.iter().find(|tool| tool.reads_only && tool.needs_nothing());
        let Some(tool) = harmless else {
            super::print(&format!("{}\n", lang.server_nothing_to_call()))?;
            return Ok(Exit::Ok);
        };
        let began = Instant::now();
        let output = call_tool(folder, &servers, &wanted.name, tool, json!({})).await?;
        let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        super::print(&format!("{}\n", lang.server_called(&tool.name, ms)))?;
        Ok(if output.is_error { Exit::Failed } else { Exit::Ok })
    })?
}

fn tools(folder: &Folder<'_>, lang: Lang, wanted: &OneServer, as_json: bool) -> anyhow::Result<Exit> {
    let found = folder.one(&wanted.name)?;
    let (_servers, server) = folder.server(found, wanted.trust)?;
    let known = wait(server.refresh())?.map_err(|error| failed(&wanted.name, &error))?;
    if as_json {
        let row = |tool: &KnownTool| {
            json!({ "name": tool.name, "description": tool.description, "input": tool.schema,
                    "reads_only": tool.reads_only, "idempotent": tool.is_idempotent, "destroys": tool.destroys })
        };
        let rows: Vec<Value> = known.tools.iter().map(row).collect();
        super::print(&format!("{:#}\n", json!({ "tools": rows })))?;
        return Ok(Exit::Ok);
    }
    let heads: Vec<&str> = lang.server_tool_heads().split(',').collect();
    let row = |tool: &KnownTool| {
        let kind = if tool.reads_only { lang.tool_reads() } else { lang.tool_changes() };
        let name = max_team_core::mcp::tool_name(&wanted.name, &tool.name);
        vec![name, kind.to_owned(), clip(&clean_line(&tool.description), DESCRIPTION_CHARS)]
    };
    super::print(&table(&heads, &known.tools.iter().map(row).collect::<Vec<_>>()))?;
    if known.is_cut {
        super::print(&format!("{}\n", lang.server_tools_cut()))?;
    }
    Ok(Exit::Ok)
}

fn call(folder: &Folder<'_>, wanted: &OneServer, tool: &str, input: &str) -> anyhow::Result<Exit> {
    let found = folder.one(&wanted.name)?;
    let input: Value = serde_json::from_str(input).map_err(|error| usage(format!("the input is no JSON: {error}")))?;
    if !input.is_object() {
        return Err(usage("the input must be a JSON object".to_owned()).into());
    }
    let (servers, server) = folder.pinned(found, wanted.trust, found.pin.filter(|_| !wanted.trust))?;
    wait(async {
        let known = server.refresh().await.map_err(|error| failed(&wanted.name, &error))?;
        let own = known.tools.iter().find(|known| known.name == tool).ok_or_else(|| {
            let near = max_team_core::suggest::candidates(tool, known.tools.iter().map(|known| known.name.as_str()));
            CliError::said(Exit::Failed, |lang| lang.no_such_server_tool(&wanted.name, tool, &near))
        })?;
        let output = call_tool(folder, &servers, &wanted.name, own, input).await?;
        let text = output.content.iter().map(|part| match part {
            Part::Text { text } => clean(text).into_owned(),
            Part::Image { media_type, data } => format!("[{media_type}, {} bytes in Base64]", data.len()),
            _ => String::new(),
        });
        super::print(&format!("{}\n", text.collect::<Vec<_>>().join("\n")))?;
        Ok(if output.is_error { Exit::Failed } else { Exit::Ok })
    })?
}

/// Calls a tool in the same way as an agent does.
async fn call_tool(
    folder: &Folder<'_>,
    servers: &Servers,
    name: &str,
    tool: &KnownTool,
    input: Value,
) -> anyhow::Result<Output> {
    let wanted = max_team_core::mcp::tool_name(name, &tool.name);
    let offered = servers.source(name).map(|source| source.tools()).unwrap_or_default();
    let remote = offered.into_iter().find_map(|handler| match handler {
        Handler::Remote(remote) if remote.spec().name == wanted => Some(remote),
        _ => None,
    });
    let remote = remote.ok_or_else(|| usage(format!("`{wanted}` is not offered")))?;
    let root = Root::open(&folder.root).map_err(|error| CliError::new(Exit::Failed, error.to_string()))?;
    let cx = ToolContext::new(Arc::new(root));
    let bad = |error: max_team_tools::ToolError| CliError::new(Exit::Failed, error.to_string());
    let intent = remote.action(&cx, &input).map_err(bad)?;
    Ok(run_remote(remote, cx, input, intent, false).await.map_err(bad)?)
}

fn trust(folder: &Folder<'_>, lang: Lang, name: &str, yes: bool) -> anyhow::Result<Exit> {
    let found = folder.one(name)?;
    if found.scope != ServerScope::Project {
        super::print(&format!("{}\n", lang.server_is_yours(name)))?;
        return Ok(Exit::Ok);
    }
    // As it is written: the values of variables may be keys, and which of them go out is what is asked.
    super::print(&clean(&format!("{name} {:#}\n", found.entry)))?;
    super::print(&format!("{}\n", reaches(folder, &found.server, lang)))?;
    if !yes && !super::context::agreed(lang.trust_server(), Exit::Denied, |lang| lang.trust_needs_yes())? {
        super::print(&format!("{}\n", lang.left_untrusted()))?;
        return Ok(Exit::Denied);
    }
    let (_servers, server) = folder.server(found, true)?;
    let known = wait(server.refresh())?.map_err(|error| failed(name, &error))?;
    for tool in &known.tools {
        super::print(&format!(
            "  {}: {}\n",
            clean_line(&tool.name),
            clip(&clean_line(&tool.description), DESCRIPTION_CHARS)
        ))?;
    }
    mcp::trust(&folder.place.home, &folder.root, &found.server, known.hash())
        .map_err(|why| CliError::new(Exit::Failed, why))?;
    super::print(&format!("{}\n", lang.server_trusted(name, known.tools.len())))?;
    Ok(Exit::Ok)
}

/// What the program of a server can reach, in a line.
fn reaches(folder: &Folder<'_>, server: &max_team_core::mcp::McpServer, lang: Lang) -> String {
    let grant = &server.grant;
    let yes = |is: bool| if is { lang.yes_word() } else { lang.no_word() };
    let list = |all: Vec<String>| if all.is_empty() { "-".to_owned() } else { clean_line(&all.join(", ")) };
    let named = mcp::launch(folder.place, &folder.config, &folder.root).named_paths(server);
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = named.into_iter().partition(|path| path.is_dir());
    let with = |paths: Vec<PathBuf>, granted: &[String]| {
        list(paths.iter().map(|path| path.display().to_string()).chain(granted.iter().cloned()).collect())
    };
    let (read, write) = (with(files, &grant.read), with(folders, &grant.write));
    lang.server_reaches(yes(grant.network), yes(grant.project), read, write)
}

fn logs(folder: &Folder<'_>, lang: Lang, name: &str, lines: usize) -> anyhow::Result<Exit> {
    match last_lines(&log_file(&folder.place.home, &folder.one(name)?.server), lines) {
        Some(text) => super::print(&format!("{}\n", clean(text.trim_end())))?,
        None => super::print(&format!("{}\n", lang.server_no_log(name)))?,
    }
    Ok(Exit::Ok)
}

/// The last lines of a log, if it holds any.
fn last_lines(path: &Path, lines: usize) -> Option<String> {
    let text = max_team_workspace::input_file::text(path, LOG_BYTES_MAX);
    // A program may print what is no text.
    let text = text.or_else(|_| std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())).ok()?;
    let all: Vec<&str> = text.lines().collect();
    let last = all.get(all.len().saturating_sub(lines)..).unwrap_or_default();
    (!last.is_empty()).then(|| last.join("\n"))
}
