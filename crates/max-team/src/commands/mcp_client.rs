//! `mcp list`, `add`, `test` and their like: the servers that agents use.

mod add;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use max_team_core::chat::Part;
use max_team_core::hash::Hash;
use max_team_core::secret::redact;
use max_team_mcp::{
    KnownTool, KnownTools, LoginState, McpError, Server, ServerEntry, Servers, last_error, log_file, login_state,
};
use max_team_terminal::text::{clean, clean_line};
use max_team_tools::{Handler, Output, Root, ToolContext, ToolError, ToolSources, run_remote};
use max_team_workspace::config::Config;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::i18n::Lang;
use max_team_workspace::mcp::{self, FoundServer, FoundServers, ServerScope};
use max_team_workspace::selection::Selection;
use max_team_workspace::setup::{self, AppEnv};
use serde_json::{Value, json};

use super::mcp_login;
use super::table::{clip, table};
use crate::args::mcp_client::{McpClient, OneServer, Scope, ServerLists};

/// Characters of a program or an address in a list.
const TARGET_CHARS: usize = 60;
/// Characters of a description in a list.
const DESCRIPTION_CHARS: usize = 80;
/// Bytes of a log that are read.
const LOG_BYTES_MAX: u64 = 2 << 20;
/// Lines of a log among which the last of the program is searched.
const LOG_LINES_SEARCHED: usize = 50;

pub(crate) fn run(place: &AppEnv, command: McpClient) -> anyhow::Result<Exit> {
    let lang = place.speaks();
    match command {
        McpClient::List { json, lists } => list(&Folder::read(place, &lists)?, lang, json),
        McpClient::Add(add) => {
            let entry = add.entry()?;
            add::put(&Folder::read(place, &ServerLists::default())?, lang, add.scope, (&add.name, entry), add.force)
        }
        McpClient::AddJson { name, json, scope, force } => {
            let no_json = |error: serde_json::Error| CliError::said(Exit::Usage, |lang| lang.entry_not_json(&error));
            let entry = add::entry_of(&name, serde_json::from_str(&json).map_err(no_json)?);
            add::put(&Folder::read(place, &ServerLists::default())?, lang, scope, (&name, entry), force)
        }
        McpClient::Remove { name, scope } => remove(place, lang, &name, scope),
        McpClient::Get { name, json, lists } => get(&Folder::read(place, &lists)?, lang, &name, json),
        McpClient::Test(server) => test(&Folder::read(place, &server.lists)?, lang, &server),
        McpClient::Tools { server, json } => tools(&Folder::read(place, &server.lists)?, lang, &server, json),
        McpClient::Call { server, tool, input } => call(&Folder::read(place, &server.lists)?, &server, &tool, &input),
        McpClient::Trust { name, yes } => trust(&Folder::read(place, &ServerLists::default())?, lang, &name, yes),
        McpClient::Login { name, lists } => mcp_login::login(&Folder::read(place, &lists)?, lang, &name),
        McpClient::Logout { name, lists } => mcp_login::logout(&Folder::read(place, &lists)?, lang, &name),
        McpClient::Logs { name, lines } => logs(&Folder::read(place, &ServerLists::default())?, lang, &name, lines),
    }
}

/// The servers of the folder that the command was started in.
pub(super) struct Folder<'a> {
    pub(super) place: &'a AppEnv,
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

    pub(super) fn one(&self, name: &str) -> Result<&FoundServer, CliError> {
        let names = || self.found.servers.keys().map(String::as_str);
        let missing =
            || CliError::said(Exit::Failed, |lang| lang.no_such_server(name, lang.near_or_all(name, names())));
        self.found.servers.get(name).ok_or_else(missing)
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
        let server = servers.get(name).ok_or_else(|| CliError::said(Exit::Usage, |lang| lang.server_unusable(name)))?;
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
    let (hash, login) = (found.server.hash(), login_state(&place.home, &found.server));
    let signed = |state: String| if login == LoginState::SignedIn { lang.server_signed_in(state) } else { state };
    // A login answers the last error that asked for one.
    let is_answered = |error: &McpError| {
        login == LoginState::SignedIn && matches!(error, McpError::Login(_) | McpError::LoginEnded(_))
    };
    let last = last_error(&place.home, &hash).filter(|error| !is_answered(error));
    match (KnownTools::read(&place.home, &hash), last) {
        _ if found.is_disabled => ("disabled", lang.server_disabled().to_owned()),
        _ if !found.is_trusted => ("untrusted", lang.server_untrusted().to_owned()),
        (_, Some(error @ (McpError::Login(_) | McpError::LoginEnded(_)))) => {
            ("needs-login", lang.server_needs_login(lang.server_error(&error)))
        }
        (_, Some(error)) => ("failed", lang.server_last_failed(lang.server_error(&error))),
        (Some(known), None) if found.pin.is_some_and(|pin| pin != known.hash()) => {
            ("changed", lang.server_changed().to_owned())
        }
        (Some(known), None) => ("known", signed(lang.server_known(known.tools.len()))),
        (None, None) => ("unknown", signed(lang.server_unknown().to_owned())),
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
        // Redacted first: of a key that is cut, the beginning would not be known as one.
        let target = clip(&redact(&clean_line(&found.server.target())), TARGET_CHARS);
        vec![found.server.name.clone(), found.scope.name().to_owned(), state(folder.place, found, lang).1, target]
    };
    super::print(&table(&heads, &all.iter().map(row).collect::<Vec<_>>()))?;
    Ok(Exit::Ok)
}

fn shown(folder: &Folder<'_>, found: &FoundServer, lang: Lang) -> Value {
    let server = &found.server;
    let env: Vec<&String> = server.env.keys().collect();
    let headers: Vec<&String> = server.headers.keys().collect();
    let launch = mcp::launch(folder.place, &folder.config, &folder.root);
    json!({
        // As they are written: a variable that is filled in may be a key.
        "name": server.name, "scope": found.scope.name(), "file": found.place, "command": found.entry.get("command"),
        "args": found.entry.get("args"), "url": found.entry.get("url"), "env": env, "headers": headers,
        "state": state(folder.place, found, lang).0,
        "error": last_error(&folder.place.home, &server.hash()).map(|error| lang.server_error(&error)),
        "timeout_ms": server.call_ms(),
        "reaches": { "network": server.grant.network, "write_project": launch.writes_project(server),
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
    if server.is_local() {
        rows.push((lang.server_row_reaches(), reaches(folder, server, lang)));
        let refused = mcp::launch(folder.place, &folder.config, &folder.root).refused(server);
        rows.extend(refused.into_iter().map(|(path, why)| {
            (lang.server_row_refused(), format!("{}: {}", clean_line(&path), lang.refused_grant(why)))
        }));
    }
    for prompt in KnownTools::read(&folder.place.home, &server.hash()).into_iter().flat_map(|known| known.prompts) {
        rows.push((lang.server_row_prompt(), clean_line(&prompt.usage(&server.name))));
    }
    // Our own lines are about errors, and the state names the last one.
    let log = last_lines(&log_file(&folder.place.home, server), LOG_LINES_SEARCHED).unwrap_or_default();
    if let Some(last) = log.lines().rev().find(|line| !line.trim().is_empty() && !line.starts_with("[max-team]")) {
        rows.push((lang.server_row_log(), clean_line(last.trim())));
    }
    let text: String = rows.iter().map(|(head, value)| format!("{head}: {value}\n")).collect();
    super::print(&text)?;
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
            super::print(&format!("{}\n", lang.server_removed(name, path.display())))?;
            let left = Folder::read(place, &ServerLists::default())?;
            if let Some(other) = left.found.servers.get(name) {
                super::print(&format!("{}\n", lang.server_also_in(name, &other.place, other.scope.name())))?;
            }
            return Ok(Exit::Ok);
        }
    }
    let other = folder.one(name)?;
    let still = |lang: Lang| lang.server_also_in(name, &other.place, other.scope.name());
    let words = |lang: Lang| match scope {
        Some(scope) => format!("{}{}{}", lang.server_not_in(name, scope.list().name()), lang.semicolon(), still(lang)),
        None => still(lang),
    };
    Err(CliError::said(Exit::Failed, words).into())
}

/// Runs a future to its end; the program is a plain one until here.
pub(super) fn wait<T>(work: impl Future<Output = T>) -> anyhow::Result<T> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work))
}

fn failed(name: &str, error: &McpError) -> CliError {
    CliError::said(Exit::Failed, |lang| lang.server_failed(name, lang.server_error(error)))
}

fn test(folder: &Folder<'_>, lang: Lang, wanted: &OneServer) -> anyhow::Result<Exit> {
    let found = folder.one(&wanted.name)?;
    let (servers, server) = folder.pinned(found, wanted.trust, found.pin.filter(|_| !wanted.trust))?;
    wait(async {
        let began = Instant::now();
        let known = server.refresh().await.map_err(|error| failed(&wanted.name, &error))?;
        let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        super::print(&format!("{}\n", lang.server_connected(ms, known.tools.len())))?;
        server.take_notices().iter().for_each(|notice| folder.place.tell(&lang.server_notice(notice)));
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
    if !known.bad.is_empty() {
        folder.place.tell(&lang.server_bad_tools_notice(&wanted.name, known.bad.join(", ")));
    }
    Ok(Exit::Ok)
}

fn call(folder: &Folder<'_>, wanted: &OneServer, tool: &str, input: &str) -> anyhow::Result<Exit> {
    let found = folder.one(&wanted.name)?;
    let no_json = |error: serde_json::Error| CliError::said(Exit::Usage, |lang| lang.input_not_json(&error));
    let input: Value = serde_json::from_str(input).map_err(no_json)?;
    if !input.is_object() {
        return Err(CliError::said(Exit::Usage, |lang| lang.input_not_object().to_owned()).into());
    }
    let (servers, server) = folder.pinned(found, wanted.trust, found.pin.filter(|_| !wanted.trust))?;
    wait(async {
        let known = server.refresh().await.map_err(|error| failed(&wanted.name, &error))?;
        // By either of its names; the server's own comes first.
        let is_own = |known: &&KnownTool| known.name == tool;
        let is_agents = |known: &&KnownTool| max_team_core::mcp::tool_name(&wanted.name, &known.name) == tool;
        let names = || known.tools.iter().map(|known| known.name.as_str());
        let own = known.tools.iter().find(is_own).or_else(|| known.tools.iter().find(is_agents)).ok_or_else(|| {
            CliError::said(Exit::Failed, |lang| {
                lang.no_such_server_tool(&wanted.name, tool, lang.near_or_all(tool, names()))
            })
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
    let remote = remote.ok_or_else(|| CliError::said(Exit::Failed, |lang| lang.tool_not_offered(&wanted)))?;
    let root = Root::open(&folder.root).map_err(|error| CliError::new(Exit::Failed, error.to_string()))?;
    let cx = ToolContext::new(Arc::new(root));
    let bad = |error: max_team_tools::ToolError| CliError::new(Exit::Failed, error.to_string());
    let (mut intent, lang) = (remote.action(&cx, &input).map_err(bad)?, folder.place.speaks());
    loop {
        match run_remote(Arc::clone(&remote), cx.clone(), input.clone(), intent, false).await {
            Err(ToolError::Asks(question)) => {
                let words = clean(&question.preview).into_owned();
                let answer = tokio::task::spawn_blocking(move || super::context::asked_for_line(&words, lang)).await?;
                intent = question.with_answer(answer.as_deref());
            }
            ended => return Ok(ended.map_err(bad)?),
        }
    }
}

fn trust(folder: &Folder<'_>, lang: Lang, name: &str, yes: bool) -> anyhow::Result<Exit> {
    let found = folder.one(name)?;
    if found.scope != ServerScope::Project {
        super::print(&format!("{}\n", lang.server_is_yours(name)))?;
        return Ok(Exit::Ok);
    }
    // As it is written, with nothing redacted: the user judges which of their variables the entry takes and what it runs.
    super::print_bytes(clean(&format!("{name} {:#}\n", found.entry)).as_bytes())?;
    if found.server.is_local() {
        super::print(&format!("{}\n", reaches(folder, &found.server, lang)))?;
    }
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
    mcp::trust(folder.place, &folder.root, &found.server, known.hash())
        .map_err(|why| CliError::new(Exit::Failed, why))?;
    super::print(&format!("{}\n", lang.server_trusted(name, known.tools.len())))?;
    Ok(Exit::Ok)
}

/// What the program of a server can reach, in a line.
fn reaches(folder: &Folder<'_>, server: &max_team_core::mcp::McpServer, lang: Lang) -> String {
    let grant = &server.grant;
    let yes = |is: bool| if is { lang.yes_word() } else { lang.no_word() };
    let list = |all: Vec<String>| if all.is_empty() { lang.no_names().to_owned() } else { clean_line(&all.join(", ")) };
    let launch = mcp::launch(folder.place, &folder.config, &folder.root);
    let named = launch.named_paths(server);
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = named.into_iter().partition(|path| path.is_dir());
    let with = |paths: Vec<PathBuf>, granted: &[String]| {
        list(paths.iter().map(|path| path.display().to_string()).chain(granted.iter().cloned()).collect())
    };
    let refused: Vec<String> = launch.refused(server).into_iter().map(|(path, _)| path).collect();
    let opened = |all: &[String]| all.iter().filter(|path| !refused.contains(path)).cloned().collect::<Vec<_>>();
    let (read, write) = (with(files, &opened(&grant.read)), with(folders, &opened(&grant.write)));
    lang.server_reaches(yes(grant.network), yes(launch.writes_project(server)), read, write)
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
