//! The tools of a server as they were when it last listed them, kept in a file: a known server need not run to be offered.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use max_team_core::hash::Hash;
use max_team_core::limits::MCP_DESCRIPTION_BYTES_MAX;
use max_team_core::policy::Repeatability;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::clean;
use crate::prompts::KnownPrompt;

/// Bytes of a server's own name for a tool.
const NAME_BYTES_MAX: usize = 200;

/// Which of the protocol's two ways of beginning a server understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Era {
    /// `initialize` first: 2024-11-05 to 2025-11-25.
    Initialize,
    /// `server/discover`, and no handshake: 2026-07-28.
    Discover,
}

/// A tool as its server describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownTool {
    /// The server's own name for it.
    pub name: String,
    pub description: String,
    pub schema: Map<String, Value>,
    /// Whether the server says that it changes nothing.
    #[serde(default)]
    pub reads_only: bool,
    /// Whether the server says that a repeated call changes nothing more.
    #[serde(default)]
    pub is_idempotent: bool,
    /// Whether the server says that it may destroy something.
    #[serde(default)]
    pub destroys: bool,
}

impl KnownTool {
    /// What a crash in the middle of a call means, if the server's word is taken.
    pub(crate) fn class(&self) -> Repeatability {
        match (self.reads_only, self.is_idempotent) {
            (true, _) => Repeatability::Pure,
            (false, true) => Repeatability::Idempotent,
            (false, false) => Repeatability::Opaque,
        }
    }

    /// Whether it can be called without any input.
    pub fn needs_nothing(&self) -> bool {
        self.schema.get("required").and_then(Value::as_array).is_none_or(Vec::is_empty)
    }
}

impl From<rmcp::model::Tool> for KnownTool {
    fn from(tool: rmcp::model::Tool) -> Self {
        let hints = tool.annotations.unwrap_or_default();
        let reads_only = hints.read_only_hint.unwrap_or_default();
        let description = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
        let schema = match clean::schema(&tool.input_schema) {
            Value::Object(schema) => schema,
            _ => Map::new(),
        };
        Self {
            name: clean::text(&tool.name, NAME_BYTES_MAX),
            description: clean::text(description, MCP_DESCRIPTION_BYTES_MAX),
            schema,
            reads_only,
            is_idempotent: hints.idempotent_hint.unwrap_or_default(),
            // The protocol's default is the cautious one.
            destroys: !reads_only && hints.destructive_hint.unwrap_or(true),
        }
    }
}

/// Everything that is remembered of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownTools {
    pub era: Era,
    pub tools: Vec<KnownTool>,
    /// Whether the server has more tools than are used.
    #[serde(default)]
    pub is_cut: bool,
    /// Tools that could not be read, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bad: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<KnownPrompt>,
}

impl KnownTools {
    fn file(home: &Path, config: &Hash) -> PathBuf {
        home.join("mcp").join("tools").join(format!("{config}.json"))
    }

    /// What is known of the server with this configuration.
    pub fn read(home: &Path, config: &Hash) -> Option<Self> {
        serde_json::from_slice(&fs::read(Self::file(home, config)).ok()?).ok()
    }

    /// Remembers it. A list that cannot be kept is asked for again the next time.
    pub(crate) fn keep(&self, home: &Path, config: &Hash) {
        let path = Self::file(home, config);
        replace_file(&path, &serde_json::to_vec(self).unwrap_or_default());
    }

    /// A hash of all names, descriptions and schemas: a server that describes a tool in another way is a changed server.
    pub fn hash(&self) -> Hash {
        let mut tools: Vec<&KnownTool> = self.tools.iter().collect();
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        Hash::of(sorted(serde_json::to_value(&tools).unwrap_or_default()).to_string())
    }
}

/// Writes a private file whole or not at all; it may hold what a program printed. Write errors are ignored: it is a cache.
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) {
    let Some(folder) = path.parent() else { return };
    let aside = path.with_extension(format!("{}.new", std::process::id()));
    let write = || {
        fs::create_dir_all(folder)?;
        let mut file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&aside)?;
        file.write_all(bytes)?;
        fs::rename(&aside, path)
    };
    drop(write());
}

/// The same value with all keys in order: a server may list them in another order each time.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(String, Value)> = map.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            entries.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hints_decide_what_a_crash_means() {
        let tool = |hints: Value| {
            let told = json!({ "name": "x", "inputSchema": { "type": "object" }, "annotations": hints });
            KnownTool::from(serde_json::from_value::<rmcp::model::Tool>(told).unwrap())
        };
        for (hints, class, destroys) in [
            (json!({}), Repeatability::Opaque, true),
            (json!({ "readOnlyHint": true }), Repeatability::Pure, false),
            (json!({ "readOnlyHint": true, "destructiveHint": true }), Repeatability::Pure, false),
            (json!({ "idempotentHint": true }), Repeatability::Idempotent, true),
            (json!({ "destructiveHint": false }), Repeatability::Opaque, false),
        ] {
            let tool = tool(hints.clone());
            assert_eq!((tool.class(), tool.destroys), (class, destroys), "{hints}");
        }
    }

    #[test]
    fn a_list_is_found_by_the_configuration() {
        let home = tempfile::tempdir().unwrap();
        let known =
            KnownTools { era: Era::Discover, tools: Vec::new(), is_cut: false, bad: Vec::new(), prompts: Vec::new() };
        known.keep(home.path(), &Hash::of("a"));
        assert_eq!(KnownTools::read(home.path(), &Hash::of("a")), Some(known));
        assert_eq!(KnownTools::read(home.path(), &Hash::of("b")), None);
    }
}
