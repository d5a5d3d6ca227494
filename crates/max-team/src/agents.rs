//! Who answers: the built-in agent, or one of a file given with `--agents`.

use max_team_core::team::Definition;
use max_team_tools::Registry;
use serde::Deserialize;

use crate::args::Talk;
use crate::exit::{Exit, Stop};
use crate::headless;
use crate::setup::{self, Place};

/// Bytes of an agents file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// An agent and the model it asks for.
pub(crate) struct Agent {
    pub(crate) definition: Definition,
    pub(crate) model: Option<String>,
}

#[derive(Deserialize)]
struct File {
    agents: Vec<Row>,
}

/// The fields that matter to one agent alone; the others belong to a team and are left unread here.
#[derive(Deserialize)]
struct Row {
    name: String,
    #[serde(default)]
    role: String,
    model: Option<String>,
    #[serde(default)]
    system_prompt: String,
    #[serde(default)]
    tools: Vec<String>,
}

/// The agent that the flags ask for.
pub(crate) fn choose(talk: &Talk, place: &Place) -> Result<Agent, Stop> {
    let Some(path) = &talk.agents else { return Ok(Agent { definition: setup::solo(), model: None }) };
    let shown = path.display();
    let bad = |words: String| Stop::new(Exit::Config, format!("--agents `{shown}`: {words}"));
    let path = place.cwd.join(path);
    let size = path.metadata().map_err(|error| bad(error.to_string()))?.len();
    if size > FILE_BYTES_MAX {
        return Err(bad(format!("{size} bytes are too many for a list of agents")));
    }
    let text = std::fs::read_to_string(&path).map_err(|error| bad(error.to_string()))?;
    let file: File = serde_saphyr::from_str(&text).map_err(|error| bad(error.to_string()))?;
    let names: Vec<String> = file.agents.iter().map(|row| format!("`{}`", row.name)).collect();
    let Some(wanted) = &talk.agent else {
        return Err(bad(format!("say whom to talk to with --agent; there are {}", names.join(", "))));
    };
    let row = file.agents.into_iter().find(|row| row.name == *wanted);
    let row = row.ok_or_else(|| bad(format!("there is no agent `{wanted}`; there are {}", names.join(", "))))?;
    let known = Registry::builtin();
    let (tools, missing): (Vec<String>, Vec<String>) =
        row.tools.into_iter().partition(|tool| known.get(tool).is_some());
    if !missing.is_empty() {
        headless::talk(&format!("`{wanted}` goes without tools that do not exist here: {}", missing.join(", ")));
    }
    let prompt = if row.system_prompt.trim().is_empty() { setup::solo().prompt } else { row.system_prompt };
    Ok(Agent { definition: Definition { name: row.name, role: row.role, prompt, tools }, model: row.model })
}
