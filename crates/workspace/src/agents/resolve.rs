//! All agents of a file: which of them leads, and the tools of each.
//!
//! The tools that an agent may have depend on whether it leads, so they are judged after the whole file was read.
//! Reads no files itself.

use std::collections::BTreeMap;

use max_team_core::agent::{Definition, Member, owned_source};
use max_team_tools::aliases;

use super::read::{TOLD_MAX, plain};
use super::tool_roles::{self, ToolRole};
use crate::config::yaml::Spot;
use crate::config::{ConfigError, ConfigFile, Problem};
use crate::i18n::{Lang, Translated};

/// All agents of the file, in its order, before the lead is known.
pub(super) struct AgentRoll {
    pub(super) file: ConfigFile,
    pub(super) rows: Vec<MemberEntry>,
    pub(super) warnings: Vec<Translated>,
    /// Tools that members list and that do not exist yet.
    pub(super) later: Vec<(String, Vec<String>)>,
    pub(super) end: Spot,
    pub(super) is_builtin: bool,
}

/// A member, and the places that are spoken of later.
pub(super) struct MemberEntry {
    pub(super) member: Member,
    pub(super) spot: Spot,
    pub(super) model_at: Spot,
    /// The tools that it lists; `None`: it has no list.
    pub(super) tools: Option<Vec<(String, Spot)>>,
}

/// A team with its lead found.
pub(super) struct LedTeam {
    pub(super) lead: Member,
    pub(super) members: Vec<Member>,
    pub(super) warnings: Vec<Translated>,
    pub(super) later: Vec<(String, Vec<String>)>,
    /// Where each member's model is written down.
    pub(super) models: BTreeMap<String, String>,
}

impl AgentRoll {
    /// The names, for a message.
    pub(super) fn names(&self) -> Vec<String> {
        self.rows.iter().map(|row| row.member.definition.name.clone()).collect()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.rows.iter().any(|row| row.member.definition.name == name)
    }

    /// The patterns that are blocked for every agent but the lead, which reads no files.
    pub(super) fn unseen_by_all(&self) -> Vec<String> {
        let leads = self.leads();
        let mut hands = self.rows.iter().enumerate().filter(|(at, _)| !leads.contains(at));
        let mut of = || hands.next().map(|(_, row)| row.member.constraints.blocked_patterns.clone());
        let Some(mut shared) = of() else { return Vec::new() };
        while let Some(blocked) = of() {
            shared.retain(|pattern| blocked.contains(pattern));
        }
        shared
    }

    /// One of them, with what its user should be told.
    pub(super) fn one(mut self, name: &str) -> Option<Result<(Member, Vec<Translated>), ConfigError>> {
        let at = self.rows.iter().position(|row| row.member.definition.name == name)?;
        let is_lead = self.leads().contains(&at);
        let mut problems = Vec::new();
        let row = self.rows.swap_remove(at);
        let member = self.equip(row, is_lead, &mut problems);
        Some(if problems.is_empty() { Ok((member, self.warnings)) } else { Err(ConfigError { problems }) })
    }

    /// The team, if exactly one leads it.
    pub(super) fn led(mut self) -> Result<LedTeam, ConfigError> {
        let mut problems = Vec::new();
        let leads = self.leads();
        match leads.as_slice() {
            [] => problems.push(self.rule(self.end, |lang| lang.team_without_lead().to_owned())),
            [first, others @ ..] => {
                let name = |at: &usize| self.rows.get(*at).map_or("", |row| &row.member.definition.name);
                for row in others.iter().filter_map(|at| self.rows.get(*at)) {
                    let second = &row.member.definition.name;
                    problems.push(self.rule(row.spot, |lang| lang.second_lead(second, name(first))));
                }
            }
        }
        let named = |row: &MemberEntry| (row.member.definition.name.clone(), self.file.place(row.model_at));
        let models = self.rows.iter().map(named).collect();
        let (mut lead, mut members) = (None, Vec::new());
        for (at, row) in std::mem::take(&mut self.rows).into_iter().enumerate() {
            let is_lead = leads.first() == Some(&at);
            let member = self.equip(row, is_lead, &mut problems);
            if is_lead { lead = Some(member) } else { members.push(member) }
        }
        problems.truncate(TOLD_MAX);
        match lead {
            Some(lead) if problems.is_empty() => {
                Ok(LedTeam { lead, members, warnings: self.warnings, later: self.later, models })
            }
            _ => Err(ConfigError { problems }),
        }
    }

    /// Gives a member the tools it lists, now that it is known whether it leads.
    fn equip(&mut self, row: MemberEntry, is_lead: bool, problems: &mut Vec<Problem>) -> Member {
        let MemberEntry { mut member, tools, spot, .. } = row;
        let name = &member.definition.name;
        let (mut has, mut later, mut sources) = (Vec::new(), Vec::new(), Vec::new());
        // A lead without a list has every tool of a lead; a member without one has none.
        member.definition.inherits_tools = is_lead && tools.is_none();
        for (tool, spot) in tools.unwrap_or_default() {
            match tool_roles::hand(tool_roles::known(), aliases::canonical(&tool), is_lead) {
                ToolRole::Has(name) if has.contains(&name) => {}
                ToolRole::Has(name) => has.push(name),
                ToolRole::Anyway => {}
                ToolRole::Source(source) => sources.push(source),
                ToolRole::Later => later.push((tool, spot)),
                wrong @ (ToolRole::Unknown | ToolRole::Wrong(_)) => {
                    let why = match wrong {
                        ToolRole::Wrong(why) => why,
                        _ => tool_roles::unknown(&tool, is_lead),
                    };
                    problems.push(self.rule(spot, |lang| lang.headed(format!("`{name}`"), why.get(lang))));
                }
            }
        }
        if let Some((_, spot)) = later.first() {
            let spot = *spot;
            let tools = plain(later);
            if !self.is_builtin {
                let quoted: Vec<String> = tools.iter().map(|tool| format!("`{tool}`")).collect();
                self.warn(spot, |lang| lang.tools_not_yet(name, lang.not_yet(), quoted.join(lang.comma())));
            }
            self.later.push((name.clone(), tools));
        }
        if is_lead && !member.mcp_servers.is_empty() {
            self.warn(spot, |lang| lang.lead_servers_left_out(name));
            member.mcp_servers.clear();
        }
        let owned = member.mcp_servers.iter().map(|server| owned_source(&member.definition.name, &server.name));
        member.definition.sources = sources.into_iter().chain(owned).collect();
        member.definition.tools = has;
        member
    }

    fn rule(&self, spot: Spot, words: impl Fn(Lang) -> String) -> Problem {
        Problem::Rule { place: self.file.place(spot), message: Translated::new(words) }
    }

    fn warn(&mut self, spot: Spot, words: impl Fn(Lang) -> String) {
        let place = self.file.place(spot);
        self.warnings.push(Translated::at(&place, words));
    }

    /// The agents with a lead's role; if there is none, the one called `max`.
    fn leads(&self) -> Vec<usize> {
        let of = |is: &dyn Fn(&Definition) -> bool| -> Vec<usize> {
            let rows = self.rows.iter().enumerate();
            rows.filter(|(_, row)| is(&row.member.definition)).map(|(at, _)| at).collect()
        };
        let by_role = of(&|definition| ["team_lead", "lead"].contains(&definition.role.as_str()));
        if by_role.is_empty() { of(&|definition| definition.name == "max") } else { by_role }
    }
}
