//! Changes to the lists of servers: `mcp add`, `mcp remove`, `mcp trust`.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use max_team_core::hash::Hash;
use max_team_core::mcp::McpServer;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{PROJECT_FILE, ServerScope};
use crate::permissions::write;
use crate::setup::AppEnv;

/// The user's own list.
pub(super) fn path(home: &Path) -> PathBuf {
    home.join("mcp.json")
}

/// An entry that was written, or that another of its name kept from being written.
#[derive(Debug)]
pub struct AddedServer {
    pub path: PathBuf,
    /// Whether the list had an entry of that name.
    pub was_there: bool,
    /// What is odd about the entry.
    pub warnings: Vec<String>,
}

/// Writes an entry into the list of a scope. One of that name is only replaced if `replaces`.
pub fn add(
    place: &AppEnv,
    root: &Path,
    scope: ServerScope,
    (name, entry): (&str, Value),
    replaces: bool,
) -> Result<AddedServer, String> {
    let warnings = super::entry::read(name, &entry, &place.env, place.speaks())?.warnings;
    let mut was_there = false;
    let path = change(place, root, scope, |list| {
        was_there = list.contains_key(name);
        if replaces || !was_there {
            list.insert(name.to_owned(), entry);
        }
    })?;
    Ok(AddedServer { path, was_there, warnings })
}

/// Removes an entry from the list of a scope; whether it was there.
pub fn remove(place: &AppEnv, root: &Path, scope: ServerScope, name: &str) -> Result<(PathBuf, bool), String> {
    let mut before = false;
    let path = change(place, root, scope, |list| before = list.remove(name).is_some())?;
    Ok((path, before))
}

/// A server of a project that the user trusts: its entry, and the tools that it offered then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TrustedServer {
    pub(super) entry: Hash,
    pub(super) tools: Hash,
}

/// Trusted servers by project and name. A file of its own: rules that a project asks the user to trust cannot reach it.
type Trust = BTreeMap<String, BTreeMap<String, TrustedServer>>;

fn trust_path(home: &Path) -> PathBuf {
    home.join("mcp").join("trusted.json")
}

/// The servers of a project that the user trusts. A file that cannot be read trusts none.
pub(super) fn trusted(home: &Path, root: &Path) -> BTreeMap<String, TrustedServer> {
    let all: Option<Trust> = std::fs::read(trust_path(home)).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    all.unwrap_or_default().remove(root.to_string_lossy().as_ref()).unwrap_or_default()
}

/// Remembers that the user trusts a server that a project brings along, with the tools that it offers now.
pub fn trust(place: &AppEnv, root: &Path, server: &McpServer, tools: Hash) -> Result<(), String> {
    let path = trust_path(&place.home);
    let told = |why: &dyn std::fmt::Display| place.speaks().list_unchangeable(path.display(), why);
    let _one = alone(&place.home).map_err(|error| told(&error))?;
    let mut all: Trust = match std::fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| told(&error))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Trust::new(),
        Err(error) => return Err(told(&error)),
    };
    let own = all.entry(root.to_string_lossy().into_owned()).or_default();
    own.insert(server.name.clone(), TrustedServer { entry: server.hash(), tools });
    let text = serde_json::to_string_pretty(&all).map_err(|error| told(&error))?;
    write(&path, &text).map_err(|error| told(&error))
}

/// Holds off other processes that change a list at the same time, for as long as the file lives.
fn alone(home: &Path) -> std::io::Result<File> {
    let folder = home.join("mcp");
    std::fs::create_dir_all(&folder)?;
    let file = File::options().create(true).write(true).truncate(false).open(folder.join("lock"))?;
    file.lock()?;
    Ok(file)
}

fn change(
    place: &AppEnv,
    root: &Path,
    scope: ServerScope,
    with: impl FnOnce(&mut Map<String, Value>),
) -> Result<PathBuf, String> {
    let path = match scope {
        ServerScope::Project => root.join(PROJECT_FILE),
        _ => path(&place.home),
    };
    let told = |why: &dyn std::fmt::Display| place.speaks().list_unchangeable(path.display(), why);
    let _one = alone(&place.home).map_err(|error| told(&error))?;
    let mut json = match std::fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| told(&error))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => json!({}),
        Err(error) => return Err(told(&error)),
    };
    // Where the file has its list already, so that no other entry is hidden by a second list.
    let is_empty = json.as_object().is_some_and(Map::is_empty);
    let keys = super::list_keys(&json, scope).filter(|_| !is_empty).unwrap_or(&["mcpServers"]);
    let list = below(
        &mut json,
        &match scope {
            ServerScope::Local => {
                vec!["projects".to_owned(), root.to_string_lossy().into_owned(), "mcpServers".to_owned()]
            }
            _ => keys.iter().map(|key| (*key).to_owned()).collect(),
        },
    );
    let list = list.ok_or_else(|| told(&place.speaks().list_no_map()))?;
    let before = list.clone();
    with(list);
    if *list == before {
        return Ok(path);
    }
    let text = serde_json::to_string_pretty(&json).map_err(|error| told(&error))?;
    write(&path, &text).map_err(|error| told(&error))?;
    // The user's own entries may hold keys; the project's file is shared.
    let mode = if scope == ServerScope::Project { 0o644 } else { 0o600 };
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).map_err(|error| told(&error))?;
    Ok(path)
}

/// The map under these names; missing maps are made.
fn below<'a>(json: &'a mut Value, names: &[String]) -> Option<&'a mut Map<String, Value>> {
    let mut at = json.as_object_mut()?;
    for name in names {
        at = at.entry(name.clone()).or_insert_with(|| json!({})).as_object_mut()?;
    }
    Some(at)
}
