//! Where the team is written down, and how far the file is trusted.
//!
//! `--agents FILE` was named by the user. `config/agents.yaml` and `.max-team/agents.yaml` came with the project,
//! perhaps from a stranger, and the first of these names belongs to other programs too: a file that does not look
//! like ours is passed over. Without any, there is the built-in team.

use std::path::Path;

use super::DEFAULT_FILE;
use crate::config::yaml::{Node, Value};
use crate::config::{ConfigError, File, Problem, Standing};
use crate::setup::Place;

/// Where a project keeps its team, in the order in which it is looked for.
const PLACES: [(&str, Standing); 2] =
    [("config/agents.yaml", Standing::Shared), (".max-team/agents.yaml", Standing::Project)];

/// A file of agents, read.
pub(super) struct Found {
    pub(super) file: File,
    pub(super) node: Node,
    /// Whether it is our own: nobody needs to be told what it asks for in vain.
    pub(super) is_builtin: bool,
}

/// Finds and reads the file.
pub(super) fn find(named: Option<&Path>, place: &Place) -> Result<Found, ConfigError> {
    if let Some(path) = named {
        let shown = path.display().to_string();
        let file = File { path: place.cwd.join(path), shown, standing: Standing::Trusted, named: true };
        // It must exist, so there are bytes.
        let bytes = file.bytes()?.unwrap_or_default();
        let node = file.parse(&bytes)?;
        return Ok(Found { file, node, is_builtin: false });
    }
    for (name, standing) in PLACES {
        let file = File { path: place.cwd.join(name), shown: name.to_owned(), standing, named: false };
        if let Some(node) = content(&file)? {
            return Ok(Found { file, node, is_builtin: false });
        }
    }
    builtin()
}

/// The team that comes with the program.
pub(super) fn builtin() -> Result<Found, ConfigError> {
    let file = File {
        path: "agents.yaml".into(),
        shown: "the built-in team".to_owned(),
        standing: Standing::Trusted,
        named: false,
    };
    let node = file.parse(DEFAULT_FILE.as_bytes())?;
    Ok(Found { file, node, is_builtin: true })
}

/// What is in a file that came with the project; none if there is no file, or not for us.
fn content(file: &File) -> Result<Option<Node>, Problem> {
    let is_shared = file.standing == Standing::Shared;
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
