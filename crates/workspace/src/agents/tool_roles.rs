//! Which tools belong to the lead, which to members, and which do not exist yet.
//!
//! The lead plans and asks and never gets a tool that reads or changes files: this is enforced here, so that no prompt
//! can change it. Tools that the product will have later are known by name, so that a file written for them loads
//! today.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use max_team_core::agent::{ALL_SOURCES, Definition};
use max_team_core::delegation::tool_filter::{CHECK_INBOX, LEADING, SPAWNING, is_among};
use max_team_core::task_list;
use max_team_runtime::skills::SKILL;
use max_team_runtime::{MEMORY_READ, MEMORY_WRITE, with_team};
use max_team_tools::Registry;

use crate::config::quote;
use crate::i18n::{Lang, Translated};

/// What a lead works with.
const TEAM: [&str; 3] = ["submit_plan", "dispatch_task", "ask_user"];
/// Tools that start agents: for a lead, and for a member that lists them.
const CALLING: [&str; 3] = SPAWNING;
/// What every member has, listed or not.
const CLARIFY: &str = "need_clarify";
/// Names that will mean something; a `*` at the end stands for any ending.
const LATER: [&str; 1] = ["web_*"];
/// How the names of MCP tools begin.
const MCP: &str = "mcp__";
/// Tools that a lead and all members may list, with the alias that files use. Whether an agent may write memory is
/// decided elsewhere.
const MEMORY: [(&str, &str); 2] = [(MEMORY_READ, "memory.read"), (MEMORY_WRITE, "memory.write")];

/// What becomes of a tool that a member lists.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ToolRole {
    /// The member has it, under this name.
    Has(String),
    /// The member has it anyway.
    Anyway,
    /// It comes from an MCP server: the server's name, and the tool's behind `/` if it is one tool.
    Source(String),
    /// It does not exist yet.
    Later,
    /// There is no such tool.
    Unknown,
    /// It cannot be meant; why, and what would do.
    Wrong(Translated),
}

/// Every tool that a lead can have: none of them changes anything by itself.
pub(super) fn for_leads() -> impl Iterator<Item = &'static str> {
    let others = SPAWNING.into_iter().chain(LEADING).chain([CHECK_INBOX, SKILL, MEMORY_READ, MEMORY_WRITE]);
    TEAM.into_iter().chain(others).chain(task_list::TOOLS)
}

/// The tools of a lead: those that its definition lists (default: all tools of a lead), without disallowed ones. A lead
/// that can create plan tasks can also submit a plan and decide about failed tasks.
pub(super) fn lead_tools(definition: &Definition) -> Vec<String> {
    let Definition { tools, disallowed_tools, inherits_tools, .. } = definition;
    let plans = ["submit_plan", "task_create"].into_iter().any(|tool| is_among(tools, tool));
    let comes_along = |tool: &str| plans && ["submit_plan", "task_update"].contains(&tool);
    let has = |tool: &&str| *inherits_tools || is_among(tools, tool) || comes_along(tool);
    for_leads().filter(has).filter(|tool| !is_among(disallowed_tools, tool)).map(str::to_owned).collect()
}

/// The tools that a member gets without listing them: those of the shared task list, unless its definition disallows
/// them.
pub fn given(definition: &Definition) -> Vec<String> {
    let Definition { tools, disallowed_tools, .. } = definition;
    let is_new = |tool: &&str| !is_among(tools, tool) && !is_among(disallowed_tools, tool);
    task_list::TOOLS.into_iter().filter(is_new).map(str::to_owned).collect()
}

/// Every tool there is, those that act on the team among them.
pub(super) fn known() -> &'static Registry {
    static KNOWN: LazyLock<Registry> = LazyLock::new(|| with_team(Registry::builtin()));
    &KNOWN
}

/// Judges one tool of the lead's or of a member's.
pub(super) fn hand(known: &Registry, tool: &str, is_lead: bool) -> ToolRole {
    // A lead may have skills and the shared task list, too: neither reads or changes files.
    if tool == SKILL || task_list::TOOLS.contains(&tool) {
        return ToolRole::Has(tool.to_owned());
    }
    if let Some((name, _)) = MEMORY.iter().find(|(name, alias)| tool == *name || tool == *alias) {
        return ToolRole::Has((*name).to_owned());
    }
    let is_later = LATER.iter().any(|later| fits(later, tool));
    let source = source(tool);
    let is_team = TEAM.contains(&tool);
    if CALLING.contains(&tool) || (is_lead && for_leads().any(|own| own == tool)) {
        return ToolRole::Has(tool.to_owned());
    }
    match (is_lead, is_team) {
        (true, _) if known.get(tool).is_some() || is_later || source.is_some() => {
            ToolRole::Wrong(Translated::new(|lang| lang.tool_of_member(tool, list(for_leads(), lang))))
        }
        (false, true) if tool == "ask_user" => ToolRole::Wrong(Translated::new(|lang| lang.tool_to_ask_user(tool))),
        (false, true) => ToolRole::Wrong(Translated::new(|lang| lang.tool_of_lead(tool))),
        (false, false) if tool == CLARIFY => ToolRole::Anyway,
        _ => match known.get(tool) {
            Some(found) if !is_lead => ToolRole::Has(found.spec().name.clone()),
            _ if is_later && !is_lead => ToolRole::Later,
            _ if !is_lead => source.map_or(ToolRole::Unknown, ToolRole::Source),
            _ => ToolRole::Unknown,
        },
    }
}

/// The tools that an unknown name could stand for.
fn names(is_lead: bool) -> Vec<&'static str> {
    let is_members = |name: &&str| !TEAM.contains(name) && *name != CLARIFY;
    let members = || known().specs().map(|spec| spec.name.as_str()).filter(is_members).collect();
    if is_lead { for_leads().collect::<BTreeSet<_>>().into_iter().collect() } else { members() }
}

/// The error for an unknown tool: names the nearest tool, or lists all.
pub(super) fn unknown(tool: &str, is_lead: bool) -> Translated {
    Translated::new(|lang| {
        let near = near(tool, is_lead, lang);
        let all = || lang.tools_there(list(names(is_lead).into_iter(), lang));
        lang.no_tool_called(quote(tool), if near.is_empty() { all() } else { near })
    })
}

/// `, did you mean `x`?`, or nothing.
pub(super) fn near(tool: &str, is_lead: bool, lang: Lang) -> String {
    lang.near(tool, names(is_lead))
}

/// The source of an MCP tool: `mcp__SERVER`, `mcp__SERVER__*` or `mcp__SERVER__TOOL`.
fn source(tool: &str) -> Option<String> {
    let rest = tool.strip_prefix(MCP)?;
    let (server, one) = rest.split_once("__").unwrap_or((rest, "*"));
    match (server, one) {
        ("" | "*", _) => Some(ALL_SOURCES.to_owned()),
        (server, "*" | "") => Some(server.to_owned()),
        (server, _) => Some(format!("{server}/{tool}")),
    }
}

fn fits(later: &str, tool: &str) -> bool {
    match later.strip_suffix('*') {
        Some(beginning) => tool.len() > beginning.len() && tool.starts_with(beginning),
        None => later == tool,
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>, lang: Lang) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(lang.comma())
}
