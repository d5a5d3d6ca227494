//! Merges definitions in folders with the team of the agents file.
//!
//! Members of an agents file win over a definition of the same name; members of the built-in team are replaced by it.
//! One definition may be the lead, which still has no tools for files or commands. A definition without a `type`
//! becomes an expert. Patterns that are blocked for all members are blocked for these agents, too, unless a trusted
//! definition sets its own.

use std::collections::BTreeMap;

use max_team_core::agent::{Definition, Member, TeamRole};
use max_team_core::delegation::offer::hidden_from;
use max_team_core::delegation::tool_filter::{NAMED_ONLY, SPAWNING};
use max_team_core::task_list;
use max_team_runtime::MEMORY_READ;
use max_team_runtime::skills::SKILL;
use max_team_tools::Registry;

use super::definition_dir::Scope;
use super::discovery::{DefinitionEntry, FoundDefinitions, RankedDefinition};
use super::source::AgentsFile;
use crate::config::FileTrust;
use crate::i18n::{Lang, Translated};

/// What joins experts to a team.
#[derive(Debug, Clone)]
pub struct TeamMerge {
    /// Patterns of what no member sees.
    pub(super) unseen: Vec<String>,
    /// Who answers for the team's file.
    pub(super) scope: Scope,
    /// Those of the built-in team, who give way to others of their names.
    builtin: Vec<String>,
}

/// A team with all its agents.
#[derive(Debug)]
pub struct MergedTeam {
    pub lead: Member,
    pub members: Vec<Member>,
    pub experts: Vec<Member>,
    pub warnings: Vec<Translated>,
    /// Where the model of each is written down.
    pub models: BTreeMap<String, String>,
    /// The project's file that the lead comes from; `None`: the lead is the user's or built in.
    pub lead_at: Option<String>,
}

impl TeamMerge {
    /// For the team of a file.
    pub(super) fn new(found: &AgentsFile, unseen: Vec<String>, names: Vec<String>) -> Self {
        let scope = match found.file.standing {
            _ if found.is_builtin => Scope::Builtin,
            FileTrust::Trusted => Scope::Flag,
            FileTrust::Project | FileTrust::Shared => Scope::Project,
        };
        let builtin = if found.is_builtin { names } else { Vec::new() };
        Self { unseen, scope, builtin }
    }

    /// Whether the team gives way to definitions.
    pub(super) fn is_builtin(&self) -> bool {
        self.scope == Scope::Builtin
    }

    /// Whether the built-in team has a member of that name, which a definition replaces.
    pub(super) fn is_replaced(&self, name: &str) -> bool {
        self.builtin.iter().any(|builtin| builtin == name)
    }

    /// Brings a team and the definitions together.
    pub(super) fn join(&self, lead: Member, members: Vec<Member>, roster: &FoundDefinitions) -> MergedTeam {
        let warnings = roster.broken().map(|why| Translated::new(|lang| lang.agent_left_out(why.get(lang))));
        let warnings = warnings.chain(roster.over().cloned()).collect();
        let mut joined =
            MergedTeam { lead, members, experts: Vec::new(), warnings, models: BTreeMap::new(), lead_at: None };
        joined.warnings.extend(roster.odd().cloned());
        joined.lead.definition.place = TeamRole::Lead;
        let mut has_lead = !self.is_builtin();
        for ranked in roster.ranked() {
            let entry = ranked.entry;
            let name = entry.name();
            let member = self.member(&ranked);
            let at = joined.members.iter().position(|member| member.definition.name == name);
            let is_leads = joined.lead.definition.name == name;
            match member.definition.place {
                TeamRole::Lead if has_lead => {
                    let first = &joined.lead.definition.name;
                    joined.warnings.push(about(&entry, |lang| lang.leads_already(first)));
                    continue;
                }
                TeamRole::Lead => {
                    has_lead = true;
                    joined.lead = led(&joined.lead, member);
                    joined.lead_at = (entry.scope == Scope::Project).then(|| entry.place());
                    joined.models.insert(name.to_owned(), entry.place());
                    continue;
                }
                _ if is_leads => {
                    joined.warnings.push(about(&entry, |lang| lang.is_leads_name(name)));
                    continue;
                }
                _ if at.is_some() && !self.is_builtin() => {
                    joined.warnings.push(about(&entry, |lang| lang.team_has_own(name)));
                    continue;
                }
                place => match (at.and_then(|at| joined.members.get_mut(at)), place) {
                    (Some(old), _) => *old = owner(member, Some(&old.definition.role)),
                    (None, TeamRole::Member) => joined.members.push(owner(member, None)),
                    (None, _) => joined.experts.push(member),
                },
            }
            joined.models.insert(name.to_owned(), entry.place());
            joined.warnings.extend(self.replaced(&ranked));
        }
        joined
    }

    /// One agent of the roster to chat with alone. `is_taken`: the agents file has its own member of that name, which
    /// wins.
    pub(super) fn alone(
        &self,
        roster: &FoundDefinitions,
        name: &str,
        is_taken: bool,
    ) -> Option<(Member, Vec<Translated>)> {
        let found = roster.ranked().into_iter().find(|ranked| ranked.entry.name() == name && !is_taken)?;
        let mut warnings = found.entry.card.warnings.clone();
        warnings.extend(self.replaced(&found));
        Some((self.member(&found), warnings))
    }

    /// The experts in the roster now, without those whose name is in `taken`.
    pub fn experts(&self, roster: &FoundDefinitions, taken: &[String]) -> Vec<Member> {
        let ranked = roster.ranked();
        let teammates = ranked.iter().map(|ranked| self.member(ranked));
        let is_free = |own: &Definition| own.place == TeamRole::Expert && !taken.contains(&own.name);
        teammates.filter(|member| is_free(&member.definition)).collect()
    }

    /// A warning where a project's definition replaces a built-in agent: users know what the built-in one does and
    /// would not expect different instructions under its name.
    fn replaced(&self, ranked: &RankedDefinition<'_>) -> Option<Translated> {
        let entry = &ranked.entry;
        let is_replaced = ranked.built_in().is_some() || self.is_replaced(entry.name());
        let words = || about(entry, |lang| lang.replaces_builtin(entry.name()));
        (is_replaced && entry.scope == Scope::Project).then(words)
    }

    /// A definition with the constraints that apply to all agents.
    fn member(&self, ranked: &RankedDefinition<'_>) -> Member {
        let entry = &ranked.entry;
        let mut member = entry.card.member.clone();
        member.definition.trusted = entry.standing() == FileTrust::Trusted;
        // Callers rely on a built-in agent being read-only, so a definition that replaces it stays read-only unless
        // the user trusts it.
        let only_looks = ranked.built_in().is_some_and(|built_in| built_in.card.member.constraints.read_only);
        member.constraints.read_only |= only_looks && entry.standing() != FileTrust::Trusted;
        let blocked = &mut member.constraints.blocked_patterns;
        let answers = entry.standing() == FileTrust::Trusted && entry.card.says_unseen;
        if !answers {
            blocked
                .extend(self.unseen.iter().filter(|pattern| !blocked.contains(pattern)).cloned().collect::<Vec<_>>());
        }
        member
    }
}

/// A warning that begins with the place of a definition.
fn about(entry: &DefinitionEntry<'_>, words: impl Fn(Lang) -> String) -> Translated {
    Translated::at(entry.place(), words)
}

/// A lead in another's words.
fn led(old: &Member, new: Member) -> Member {
    let Member { definition, model, constraints, .. } = new;
    let definition = Definition { role: old.definition.role.clone(), ..definition };
    Member { definition, model, constraints, mcp_servers: Vec::new() }
}

/// Turns a definition into a member that owns tasks: it gets a role and an explicit list of tools.
fn owner(mut member: Member, role: Option<&str>) -> Member {
    let own = &mut member.definition;
    own.tools = alone_tools(own);
    if own.inherits_tools {
        own.hidden_tools = hidden_from(&own.tools, &own.prompt);
    }
    own.sources = own.own_sources();
    own.inherits_tools = false;
    own.place = TeamRole::Member;
    if let Some(role) = role.filter(|_| own.role == "expert") {
        own.role = role.to_owned();
    }
    member
}

/// The tools of an agent that works by itself.
pub(super) fn alone_tools(definition: &Definition) -> Vec<String> {
    let known = Registry::builtin();
    let mut tools = definition.tools.clone();
    if definition.inherits_tools {
        let shared = [SKILL, MEMORY_READ].into_iter().chain(task_list::TOOLS).map(str::to_owned);
        let all = known.specs().map(|spec| spec.name.clone()).filter(|tool| !NAMED_ONLY.contains(&tool.as_str()));
        tools = all.chain(shared).collect();
    }
    let is_taken = |tool: &str| definition.disallowed_tools.iter().any(|taken| taken == tool || taken == "*");
    // An agent that lists the tools of `SPAWNING` may call others.
    let is_there = |tool: &str| {
        let is_shared = [SKILL, MEMORY_READ].contains(&tool) || task_list::TOOLS.contains(&tool);
        known.get(tool).is_some() || is_shared || SPAWNING.contains(&tool)
    };
    tools.retain(|tool| is_there(tool) && !is_taken(tool));
    tools
}
