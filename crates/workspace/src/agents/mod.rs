//! Who is on the team: the members of an agents file or of the built-in one, and the agents that are defined by
//! Markdown files in folders.
//!
//! `source` finds the agents file, `read` parses its members, `resolve` finds the lead, `tool_roles` knows which tools
//! the lead and members may have. The file is checked as a whole, and all errors are reported at once with their lines.
//! `definition_dir` and `discovery` find definitions in folders, `agent_file` reads one leniently, and `merge` merges
//! both. Nothing here starts an agent or a server.

mod agent_file;
mod compose;
mod definition_dir;
mod discovery;
#[cfg(test)]
mod foreign;
mod listing;
mod merge;
mod read;
mod resolve;
mod source;
#[cfg(test)]
mod tests;
mod tool_roles;
mod values;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use max_team_core::agent::{ALL_SOURCES, Constraints, Definition, Member};
use max_team_core::delegation::offer::{hidden_from, hidden_from_lead, is_offered};
use max_team_core::delegation::tool_filter::{COORDINATING, assigns_work};
use max_team_core::mcp::McpServer;

use crate::exit::{CliError, Exit};
use crate::i18n::Translated;
use crate::selection::Selection;
use crate::setup::{self, AppEnv};
use crate::team::DefinitionSources;

pub use agent_file::slug;
pub use definition_dir::Scope;
pub use discovery::{FoundDefinitions, memory_keeper};
pub use listing::{ListedAgent, people};
pub use merge::{MergedTeam, TeamMerge};
pub use source::is_text;
pub use tool_roles::given;

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

/// Patterns of a member's that its lead is told.
const PATTERNS_TOLD_MAX: usize = 3;

/// The text that follows a lead's own prompt in coordinator mode.
const COORDINATOR: &str = include_str!("../../../../prompts/coordinator.md");

/// A whole team.
#[derive(Debug)]
pub struct Team {
    /// Who talks to the user.
    pub lead: Member,
    /// The others, in the order of the file.
    pub members: Vec<Member>,
    /// Those who speak when they are called, by name.
    pub experts: Vec<Member>,
    /// What the user should be told, in their language.
    pub warnings: Vec<String>,
    /// Where it was read from, for people.
    pub source: Translated,
    /// Whether that is the built-in team.
    pub is_builtin: bool,
    /// Members with the tools they list that do not exist yet.
    pub later: PendingTools,
    /// Where each member's model is written down.
    pub models: BTreeMap<String, String>,
    /// The definitions beside the team's own file; it can be asked again.
    pub roster: FoundDefinitions,
    /// What joins experts to this team, whenever they are read.
    pub merge: TeamMerge,
    /// The project's file that the lead comes from, which is announced at every start.
    pub lead_at: Option<String>,
}

/// Reads the team: from `--agents FILE`, else from the project's own file, else the built-in one; together with the
/// agents that are defined in folders.
pub fn team(path: Option<&Path>, place: &AppEnv) -> Result<Team, CliError> {
    let (found, given) = source::find(path, place)?;
    let roster = FoundDefinitions::read(place, given.as_ref());
    let is_named = path.is_some() && given.is_none();
    let (joined, later, merge) = joined(&found, is_named, place, &roster)?;
    let MergedTeam { lead, members, experts, warnings, models, lead_at } = joined;
    let (is_builtin, lang) = (found.is_builtin, place.speaks());
    let source = match is_builtin {
        true => Translated::new(|lang| lang.built_in_team().to_owned()),
        false => found.file.shown.into(),
    };
    let warnings = warnings.iter().map(|warning| warning.get(lang).to_owned()).collect();
    Ok(Team { lead, members, experts, warnings, source, is_builtin, later, models, roster, merge, lead_at })
}

/// The same as it is written now, with what is known of the folders.
pub fn again(
    path: Option<&Path>,
    place: &AppEnv,
    roster: &FoundDefinitions,
) -> Result<(MergedTeam, TeamMerge), CliError> {
    let (found, given) = source::find(path, place)?;
    let is_named = path.is_some() && given.is_none();
    joined(&found, is_named, place, roster).map(|(joined, _, merge)| (joined, merge)).map_err(CliError::from)
}

/// Members with the tools they list that do not exist yet.
type PendingTools = Vec<(String, Vec<String>)>;

/// The team of a file, merged with the agents that are defined in folders.
fn joined(
    found: &source::AgentsFile,
    is_named: bool,
    place: &AppEnv,
    roster: &FoundDefinitions,
) -> Result<(MergedTeam, PendingTools, TeamMerge), crate::config::ConfigError> {
    let roll = read::roll(found, &place.env)?;
    let unseen = unseen(&roll, is_named, place)?;
    let resolve::LedTeam { lead, members, mut warnings, later, models } = roll.led()?;
    let merge = TeamMerge::new(found, unseen, models.keys().cloned().collect());
    let mut joined = merge.join(lead, members, roster);
    warnings.append(&mut joined.warnings);
    let models = models.into_iter().chain(joined.models).collect();
    let lead_at = joined.lead_at.or_else(|| (merge.scope == Scope::Project).then(|| found.file.shown.clone()));
    Ok((MergedTeam { warnings, models, lead_at, ..joined }, later, merge))
}

/// A lead with its tools resolved and its prompt composed for them; in coordinator mode also with the rules of that. Members
/// are told to a lead that can hand work to them.
pub fn leading(mut lead: Definition, members: &[Member], coordinates: bool) -> Definition {
    lead.tools = tool_roles::lead_tools(&lead);
    // The user talks to it: it has the servers of the session.
    lead.sources = vec![ALL_SOURCES.to_owned()];
    if coordinates {
        lead.tools.retain(|tool| COORDINATING.contains(&tool.as_str()));
    }
    // The built-in prompt mentions every tool; it is cut to the described ones.
    let named = if compose::is_builtin(&lead.prompt) { "" } else { &lead.prompt };
    lead.hidden_tools = if lead.inherits_tools { hidden_from_lead(&lead.tools, named) } else { Vec::new() };
    lead.inherits_tools = false;
    let offered: Vec<String> = lead.tools.iter().filter(|tool| is_offered(&lead, tool)).cloned().collect();
    let mut parts = vec![compose::lead_prompt(&lead.prompt, &offered).trim_end().to_owned()];
    parts.extend(coordinates.then(|| COORDINATOR.trim_end().to_owned()));
    parts.extend(assigns_work(&lead.tools).then(|| roster(members)));
    lead.prompt = parts.join("\n\n");
    lead
}

/// The list of members in a lead's prompt, one line each.
fn roster(members: &[Member]) -> String {
    let mut text = String::from("# Your members\n\n");
    if members.is_empty() {
        text.push_str("There are none: answer yourself, and say what you cannot do.\n");
    }
    for member in members {
        let Definition { name, role, .. } = &member.definition;
        let _ = writeln!(text, "- `{name}` ({role}): {}", abilities(member).join(", "));
    }
    text
}

/// A member's abilities besides reading, in a few words. A lead plans by them; the policy enforces the limits.
fn abilities(Member { definition, constraints, .. }: &Member) -> Vec<String> {
    let has = |tools: &[&str]| tools.iter().any(|tool| definition.tools.iter().any(|own| own == tool));
    let some = |patterns: &[String]| {
        let shown: Vec<String> =
            patterns.iter().take(PATTERNS_TOLD_MAX).map(|pattern| format!("`{pattern}`")).collect();
        let more = if patterns.len() > shown.len() { " and more patterns" } else { "" };
        format!("{}{more}", shown.join(", "))
    };
    let mut can = Vec::new();
    if has(&["write_file", "edit_file"]) && !constraints.read_only {
        can.push(match &constraints.write_patterns {
            None => "changes files".to_owned(),
            Some(patterns) if patterns.is_empty() => "changes no files".to_owned(),
            Some(patterns) => format!("changes only files like {}", some(patterns)),
        });
    }
    for (tools, words) in [
        (["run_shell"].as_slice(), "runs commands"),
        (&["run_test", "coverage_report"], "runs tests"),
        (&["git_commit"], "commits"),
        (&["query_log", "query_metrics"], "reads logs and metrics"),
        (&["web_fetch", "web_search"], "reads the web"),
    ] {
        can.extend(has(tools).then(|| words.to_owned()));
    }
    if can.is_empty() {
        can.push("reads only".to_owned());
    }
    let dirs = constraints.allowed_dirs.as_ref().filter(|dirs| !dirs.iter().any(|dir| dir == "."));
    can.extend(dirs.map(|dirs| format!("sees only {}", some(dirs))));
    can
}

/// One agent to talk to, without the team around it.
#[derive(Debug)]
pub struct Agent {
    pub definition: Definition,
    pub model: Option<String>,
    /// The model it would like, where the session has it.
    pub wish: Option<String>,
    /// The agents that it may call.
    pub crew: DefinitionSources,
    pub constraints: Constraints,
    /// Servers that only it has.
    pub mcp_servers: Vec<McpServer>,
}

/// The patterns that are blocked for all members; they also apply to agents outside the team. A project's file can add
/// patterns to the built-in ones but remove none; a file that the user names replaces them.
fn unseen(
    roll: &resolve::AgentRoll,
    is_named: bool,
    place: &AppEnv,
) -> Result<Vec<String>, crate::config::ConfigError> {
    let mut patterns = roll.unseen_by_all();
    if !is_named && !roll.is_builtin {
        let ours = source::builtin().and_then(|found| read::roll(&found, &place.env))?;
        patterns.extend(ours.unseen_by_all());
    }
    patterns.sort_unstable();
    patterns.dedup();
    Ok(patterns)
}

/// The agent that the flags ask for: a member or an expert by its name, or the one with hands of its own.
pub fn choose(selection: &Selection, place: &AppEnv) -> Result<Agent, CliError> {
    let (found, given) = source::find(selection.agents.as_deref(), place)?;
    let roll = read::roll(&found, &place.env)?;
    let is_named = selection.agents.is_some() && given.is_none();
    let unseen = unseen(&roll, is_named, place)?;
    let roster = FoundDefinitions::read(place, given.as_ref());
    let merge = TeamMerge::new(&found, unseen, Vec::new());
    let Some(wanted) = selection.agent.as_ref().filter(|_| !selection.solo) else {
        let constraints = Constraints { blocked_patterns: merge.unseen.clone(), ..Constraints::default() };
        let definition = setup::solo();
        let crew = DefinitionSources::new(roster, merge, vec![definition.name.clone()]);
        return Ok(Agent { definition, model: None, wish: None, crew, constraints, mcp_servers: Vec::new() });
    };
    let names = roll.names();
    let expert = merge.alone(&roster, wanted, !found.is_builtin && roll.has(wanted));
    let is_expert = expert.is_some();
    let (member, warnings) = match expert {
        Some(found) => found,
        None => roll.one(wanted).ok_or_else(|| nobody(&found.file.shown, wanted, names, &roster))??,
    };
    let lang = place.speaks();
    warnings.iter().for_each(|warning| place.tell(warning.get(lang)));
    let Member { mut definition, model, constraints, mcp_servers } = member;
    if !definition.sources.iter().any(|source| source == ALL_SOURCES) {
        definition.sources.push(ALL_SOURCES.to_owned());
    }
    // An agent that works alone has no team, so it does not get the tools that need one.
    definition.tools = merge::alone_tools(&definition);
    if definition.inherits_tools {
        definition.hidden_tools = hidden_from(&definition.tools, &definition.prompt);
    }
    let (model, wish) = if is_expert { (None, model) } else { (model, None) };
    let crew = DefinitionSources::new(roster, merge, vec![definition.name.clone()]);
    Ok(Agent { definition, model, wish, crew, constraints, mcp_servers })
}

fn nobody(shown: &str, wanted: &str, mut names: Vec<String>, roster: &FoundDefinitions) -> CliError {
    names.extend(roster.ranked().iter().map(|ranked| ranked.entry.name().to_owned()));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    CliError::said(Exit::Config, |lang| lang.headed(shown, lang.no_agent_named(wanted, &names)))
}
