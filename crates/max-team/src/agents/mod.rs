//! Who is on the team: the members of an agents file, or of the one that is built in.
//!
//! `source` finds the file, `read` takes it apart member by member, `roll` finds the lead, `hands` knows which tool is
//! whose. A file is checked as a whole and everything that is wrong with it is said at once, each with its place.
//! Nothing here starts an agent or a server.

mod hands;
mod read;
mod roll;
mod source;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use max_team_core::calling::hands::SPAWNING;
use max_team_core::team::{Constraints, Definition, Member};
use max_team_runtime::skills::SKILL;
use max_team_tools::Registry;

use crate::args::Talk;
use crate::exit::{Exit, Stop};
use crate::headless;
use crate::setup::{self, Place};

/// The annotated default file: the built-in team, and the manual of every key.
const DEFAULT_FILE: &str = include_str!("../../../../config/agents.yaml");

/// Prompts that a file names as `@builtin/NAME`.
const PROMPTS: [(&str, &str); 5] = [
    ("max", include_str!("../../../../prompts/max.md")),
    ("leo", include_str!("../../../../prompts/leo.md")),
    ("ada", include_str!("../../../../prompts/ada.md")),
    ("ray", include_str!("../../../../prompts/ray.md")),
    ("sam", include_str!("../../../../prompts/sam.md")),
];

/// A whole team.
#[derive(Debug)]
pub(crate) struct Team {
    /// Who talks to the user.
    pub(crate) lead: Member,
    /// The others, in the order of the file.
    pub(crate) members: Vec<Member>,
    /// What the user should be told.
    pub(crate) warnings: Vec<String>,
    /// Where it was read from, for people.
    pub(crate) source: String,
    /// Members with the tools they list that do not exist yet.
    pub(crate) later: Vec<(String, Vec<String>)>,
    /// Where each member's model is written down.
    pub(crate) models: BTreeMap<String, String>,
}

/// Reads the team: from `--agents FILE`, else from the project's own file, else the built-in one.
pub(crate) fn team(path: Option<&Path>, place: &Place) -> Result<Team, Stop> {
    let wrong = |error: crate::config::ConfigError| Stop::new(Exit::Config, error.to_string());
    let found = source::find(path, place).map_err(wrong)?;
    let roll = read::roll(&found, &place.env).and_then(roll::Roll::led).map_err(wrong)?;
    let roll::Led { lead, members, warnings, later, models } = roll;
    Ok(Team { lead, members, warnings, source: found.file.shown, later, models })
}

/// What the lead is told about the others.
pub(crate) fn roster(members: &[Member]) -> String {
    let mut text = String::from("# Your team\n\n");
    if members.is_empty() {
        text.push_str("Nobody else is on the team: answer yourself, and say what you cannot do.\n");
    }
    for Member { definition, constraints, .. } in members {
        let list = |words: &[String]| words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        let tools = if definition.tools.is_empty() { "none".to_owned() } else { list(&definition.tools) };
        let _ = write!(text, "- `{}` ({}). Tools: {tools}.", definition.name, definition.role);
        let limits = [
            ("Sees only", &constraints.allowed_dirs),
            ("Neither sees nor touches", &constraints.blocked_patterns),
            ("Changes only", &constraints.write_patterns),
        ];
        let everything = |words: &[String]| words.is_empty() || words.iter().any(|word| word == ".");
        for (says, words) in limits.into_iter().filter(|(_, words)| !everything(words)) {
            let _ = write!(text, " {says} {}.", list(words));
        }
        if let Some(commands) = constraints.allowed_commands.as_ref().filter(|commands| !commands.is_empty()) {
            let _ = write!(text, " Runs only {}.", list(commands));
        }
        if let Some(ms) = constraints.timeout_ms {
            let _ = write!(text, " Has {} s per task.", ms.div_ceil(1_000));
        }
        text.push('\n');
    }
    text
}

/// One agent to talk to, without the team around it.
pub(crate) struct Agent {
    pub(crate) definition: Definition,
    pub(crate) model: Option<String>,
    pub(crate) constraints: Constraints,
}

/// What no member of the team sees, for whoever works without one. A file that came with the project may close more
/// than we do, but opens nothing; one that the user names says all.
fn unseen_by_all(named: Option<&Path>, place: &Place) -> Result<Vec<String>, crate::config::ConfigError> {
    let read = |found: source::Found| read::roll(&found, &place.env).map(|roll| roll.unseen_by_all());
    let mut patterns = source::find(named, place).and_then(read)?;
    if named.is_none() {
        let ours = source::builtin().and_then(read)?;
        patterns.extend(ours);
        patterns.sort_unstable();
        patterns.dedup();
    }
    Ok(patterns)
}

/// The agent that the flags ask for: a member by its name, or the one with hands of its own.
pub(crate) fn choose(talk: &Talk, place: &Place) -> Result<Agent, Stop> {
    let bad = |words: String| Stop::new(Exit::Config, words);
    let wrong = |error: crate::config::ConfigError| bad(error.to_string());
    if talk.solo || (talk.agent.is_none() && talk.team.agents.is_none()) {
        let blocked_patterns = unseen_by_all(talk.team.agents.as_deref(), place).map_err(wrong)?;
        let constraints = Constraints { blocked_patterns, ..Constraints::default() };
        return Ok(Agent { definition: setup::solo(), model: None, constraints });
    }
    let found = source::find(talk.team.agents.as_deref(), place).map_err(wrong)?;
    let roll = read::roll(&found, &place.env).map_err(wrong)?;
    let shown = &found.file.shown;
    let names = roll.names();
    let Some(wanted) = &talk.agent else {
        return Err(bad(format!("{shown}: say whom to talk to with --agent; there are {names}")));
    };
    let (member, warnings) = roll
        .one(wanted)
        .ok_or_else(|| bad(format!("{shown}: there is no agent `{wanted}`; there are {names}")))?
        .map_err(|error| bad(error.to_string()))?;
    warnings.iter().for_each(|warning| headless::talk(warning));
    let Member { mut definition, model, constraints, .. } = member;
    // Alone it has nobody to lead: what only works in a team is left out.
    let known = Registry::builtin();
    let works_alone = |tool: &String| known.get(tool).is_some() || tool == SKILL || SPAWNING.contains(&tool.as_str());
    definition.tools.retain(works_alone);
    Ok(Agent { definition, model, constraints })
}
