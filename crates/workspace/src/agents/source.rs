//! Finds the agents file and decides how far it is trusted.
//!
//! `--agents` was given by the user: a file with a whole team, or definitions that join the current team (JSON, or one
//! Markdown file). `config/agents.yaml` and `.max-team/agents.yaml` came with the project, perhaps from a stranger,
//! and other programs use the first of these names, too: a file that does not look like ours is ignored. Without any
//! file, the built-in team is used.

use std::path::Path;

use super::DEFAULT_FILE;
use super::discovery::FlagDefinitions;
use crate::config::yaml::{Name, Node, Value};
use crate::config::{ConfigError, ConfigFile, FileTrust, Problem};
use crate::setup::AppEnv;

/// Where a project keeps its team, in the order in which it is looked for.
const PLACES: [(&str, FileTrust); 2] =
    [("config/agents.yaml", FileTrust::Shared), (".max-team/agents.yaml", FileTrust::Project)];

/// A file of agents, read.
pub(super) struct AgentsFile {
    pub(super) file: ConfigFile,
    pub(super) node: Node,
    /// Whether this is the built-in team: its tools that do not exist yet are not reported.
    pub(super) is_builtin: bool,
}

/// Finds and reads the file with the team, and what else was given.
pub(super) fn find(named: Option<&Path>, place: &AppEnv) -> Result<(AgentsFile, Option<FlagDefinitions>), ConfigError> {
    match named.map(|path| given(path, place)).transpose()? {
        Some(AgentsArgument::Team(found)) => Ok((found, None)),
        Some(AgentsArgument::Some(given)) => Ok((team(place)?, Some(given))),
        None => Ok((team(place)?, None)),
    }
}

enum AgentsArgument {
    Team(AgentsFile),
    Some(FlagDefinitions),
}

fn given(path: &Path, place: &AppEnv) -> Result<AgentsArgument, ConfigError> {
    let text = path.to_string_lossy();
    let is_text = is_text(path);
    let shown = if is_text { "--agents".to_owned() } else { path.display().to_string() };
    let file = ConfigFile { path: place.cwd.join(path), shown, standing: FileTrust::Trusted, named: true };
    // It must exist, so there are bytes.
    let bytes = if is_text { text.as_bytes().to_vec() } else { file.bytes()?.unwrap_or_default() };
    if !is_text && path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("md")) {
        return Ok(AgentsArgument::Some(FlagDefinitions::Markdown { file, bytes }));
    }
    let is_json = bytes.trim_ascii_start().starts_with(b"{");
    // JSON is YAML, but for tabs; no string of JSON holds a bare one.
    let tabs: Vec<u8> = bytes.iter().map(|byte| if is_json && *byte == b'\t' { b' ' } else { *byte }).collect();
    let node = file.parse(&tabs)?;
    Ok(match node.value {
        Value::Map(entries) if is_map_of_agents(&entries) => {
            AgentsArgument::Some(FlagDefinitions::Map { file, entries })
        }
        value => AgentsArgument::Team(AgentsFile { file, node: Node { value, spot: node.spot }, is_builtin: false }),
    })
}

/// Whether `--agents` is not the name of a file but what could be in it.
pub fn is_text(path: &Path) -> bool {
    path.to_string_lossy().trim_start().starts_with('{')
}

fn is_map_of_agents(entries: &[(Name, Node)]) -> bool {
    let is_agent = |(name, node): &(Name, Node)| name.text != "agents" && matches!(node.value, Value::Map(_));
    !entries.is_empty() && entries.iter().all(is_agent)
}

fn team(place: &AppEnv) -> Result<AgentsFile, ConfigError> {
    for (name, standing) in PLACES {
        let file = ConfigFile { path: place.cwd.join(name), shown: name.to_owned(), standing, named: false };
        if let Some(node) = content(&file)? {
            return Ok(AgentsFile { file, node, is_builtin: false });
        }
    }
    builtin()
}

/// The team that comes with the program.
pub(super) fn builtin() -> Result<AgentsFile, ConfigError> {
    let file = ConfigFile {
        path: "agents.yaml".into(),
        shown: "the built-in team".to_owned(),
        standing: FileTrust::Trusted,
        named: false,
    };
    let node = file.parse(DEFAULT_FILE.as_bytes())?;
    Ok(AgentsFile { file, node, is_builtin: true })
}

/// What is in a file that came with the project; none if there is no file, or not for us.
fn content(file: &ConfigFile) -> Result<Option<Node>, Problem> {
    let is_shared = file.standing == FileTrust::Shared;
    let bytes = match file.bytes() {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
        Err(_) if is_shared => return Ok(None),
        Err(problem) => return Err(problem),
    };
    match file.parse(&bytes) {
        Ok(node) if is_shared && !is_ours(&node) => Ok(None),
        Ok(node) => Ok(Some(node)),
        // A slip of the pen must not make our own file vanish.
        Err(_) if is_shared && !bytes.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"agents:")) => Ok(None),
        Err(problem) => Err(problem),
    }
}

/// A list called `agents`; other programs write a map from names to agents.
fn is_ours(node: &Node) -> bool {
    let Value::Map(entries) = &node.value else { return false };
    entries.iter().any(|(name, node)| name.text == "agents" && matches!(node.value, Value::List(_)))
}
