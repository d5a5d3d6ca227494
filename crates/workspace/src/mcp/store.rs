//! Changes to the lists of servers: `mcp add`, `mcp remove`, `mcp trust`.

use std::path::{Path, PathBuf};

use max_team_core::hash::Hash;
use max_team_core::mcp::McpServer;
use serde_json::{Map, Value, json};

use super::{PROJECT_FILE, ServerScope, trust_row};
use crate::permissions::{TrustedRules, write};
use crate::setup::AppEnv;

/// The user's own list.
pub(super) fn path(home: &Path) -> PathBuf {
    home.join("mcp.json")
}

/// Writes an entry into the list of a scope; whether one of that name was there.
pub fn add(
    place: &AppEnv,
    root: &Path,
    scope: ServerScope,
    name: &str,
    entry: Value,
) -> Result<(PathBuf, bool), String> {
    super::entry::read(name, &entry, &place.env)?;
    let mut before = false;
    let path = change(place, root, scope, |list| before = list.insert(name.to_owned(), entry).is_some())?;
    Ok((path, before))
}

/// Removes an entry from the list of a scope; whether it was there.
pub fn remove(place: &AppEnv, root: &Path, scope: ServerScope, name: &str) -> Result<(PathBuf, bool), String> {
    let mut before = false;
    let path = change(place, root, scope, |list| before = list.remove(name).is_some())?;
    Ok((path, before))
}

/// Remembers that the user trusts a server that a project brings along, with the tools that it offers now.
pub fn trust(home: &Path, root: &Path, server: &McpServer, tools: Option<Hash>) -> Result<(), String> {
    let mut trusted = TrustedRules::read(home)?;
    let row = trust_row(server, tools);
    trusted.add(&root.to_string_lossy(), &[row]).map_err(|error| format!("the trust cannot be stored: {error}"))
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
    let told = |why: &dyn std::fmt::Display| format!("`{}` cannot be changed: {why}", path.display());
    let mut json = match std::fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| told(&error))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => json!({}),
        Err(error) => return Err(told(&error)),
    };
    let list = below(
        &mut json,
        &match scope {
            ServerScope::Local => {
                vec!["projects".to_owned(), root.to_string_lossy().into_owned(), "mcpServers".to_owned()]
            }
            _ => vec!["mcpServers".to_owned()],
        },
    );
    with(list.ok_or_else(|| told(&"its `mcpServers` is no map"))?);
    let text = serde_json::to_string_pretty(&json).map_err(|error| told(&error))?;
    write(&path, &text).map_err(|error| told(&error))?;
    if scope != ServerScope::Project {
        // Entries may hold keys.
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(|error| told(&error))?;
    }
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
