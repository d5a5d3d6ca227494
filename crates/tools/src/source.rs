//! Tools that are not built in: they come from a source, such as an MCP server, and may change between turns.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use max_team_core::chat::Part;
use max_team_core::limits::{SOURCE_TOOLS_MAX, TOOL_NAME_BYTES_MAX};
use max_team_core::mcp::SourceStatus;
use max_team_core::mention::ServerMention;

use crate::registry::{Handler, Registry};

/// A supplier of tools. Agents that name it in their definition have its tools.
pub trait ToolSource: Send + Sync + fmt::Debug {
    /// The name by which definitions choose it.
    fn name(&self) -> &str;

    /// A number that changes whenever `tools` would return something else. It is read before every turn and must not wait.
    fn generation(&self) -> u64;

    /// The tools that it offers now. It must not wait: a source that is not connected offers none.
    fn tools(&self) -> Vec<Handler>;

    /// Work that a turn of its agent waits for, because nothing is known yet of its tools. The work is bounded in time by the
    /// source; `None`: nothing is to be done.
    fn prepare(&self) -> Option<Preparation> {
        None
    }

    /// Reads a prompt or a resource that a user mentions; `None`: it is not of this source. The work is bounded in time by the
    /// source, and what cannot be read is told as a part.
    fn read(&self, _: &ServerMention) -> Option<Reading> {
        None
    }

    /// Notices for the user that were not told yet.
    fn notices(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A prompt or a resource on its way.
pub type Reading = Pin<Box<dyn Future<Output = Vec<Part>> + Send>>;

/// Work that makes a source ready.
pub type Preparation = Pin<Box<dyn Future<Output = ()> + Send>>;

/// All sources of a process. Which there are may change while it runs.
pub trait ToolSources: Send + Sync + fmt::Debug {
    /// The source by that name.
    fn source(&self, name: &str) -> Option<Arc<dyn ToolSource>>;

    /// The names of the sources that belong to the session and not to one agent.
    fn shared(&self) -> Vec<String>;

    /// The state of every source.
    fn statuses(&self) -> Vec<SourceStatus> {
        Vec::new()
    }
}

/// A fixed set of sources.
impl ToolSources for Vec<Arc<dyn ToolSource>> {
    fn source(&self, name: &str) -> Option<Arc<dyn ToolSource>> {
        self.iter().find(|source| source.name() == name).cloned()
    }

    fn shared(&self) -> Vec<String> {
        self.iter().map(|source| source.name().to_owned()).collect()
    }
}

impl Registry {
    /// Replaces all tools of sources by these, each with the name of its source. A tool that is there already keeps its name:
    /// no source can take the place of a built-in tool.
    pub fn replace_sourced(&mut self, tools: impl IntoIterator<Item = (String, Handler)>) {
        let before = std::mem::take(&mut self.sourced);
        for name in before.keys() {
            self.remove(name);
            self.hidden.remove(name);
        }
        self.gone.extend(before);
        let mut taken: BTreeMap<String, usize> = BTreeMap::new();
        for (source, tool) in tools {
            let (name, count) = (tool.spec().name.clone(), taken.entry(source.clone()).or_default());
            if *count >= SOURCE_TOOLS_MAX || !is_name(&name) || self.get(&name).is_some() {
                continue;
            }
            *count += 1;
            self.gone.remove(&name);
            self.sourced.insert(name, source);
            self.insert(tool);
        }
        // A source that renames its tools again and again takes no more memory.
        while self.gone.len() > SOURCE_TOOLS_MAX {
            self.gone.pop_first();
        }
    }

    /// How many tools come from sources.
    pub fn sourced_count(&self) -> usize {
        self.sourced.len()
    }

    /// Whether a tool comes from a source.
    pub fn is_sourced(&self, name: &str) -> bool {
        self.sourced.contains_key(name)
    }

    /// Whether a tool comes from a source and requests do not describe it.
    pub fn is_hidden_sourced(&self, name: &str) -> bool {
        self.is_sourced(name) && self.hidden.contains(name)
    }

    /// What a model is told that calls a tool which its source no longer offers.
    pub(crate) fn gone(&self, name: &str) -> Option<String> {
        let source = self.gone.get(name)?;
        Some(format!("the tool `{name}` is no longer available: `{source}` does not offer it now"))
    }
}

/// Whether model providers accept a name for a tool.
fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=TOOL_NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(fits)
}
