//! All agents of a team with the files that define them, for `agents list` and `agents show`.

use max_team_core::agent::{Member, TeamRole as Position};
use max_team_core::delegation::tool_filter::{self, AllowedTools, Caller, FilterLayer};
use serde_json::{Value, json};

use super::Team;
use super::definition_dir::Scope;
use super::discovery::RankedDefinition;
use super::merge::alone_tools;
use super::tool_roles;
use crate::i18n::{Lang, Translated};

/// One of the team, and where it is written.
#[derive(Debug)]
pub struct ListedAgent<'a> {
    pub member: &'a Member,
    /// Who put it there.
    pub scope: Scope,
    /// `file:line`, or the built-in team.
    pub place: Translated,
    /// Definitions of the same name that do not count, each as `file:line (scope)`.
    pub shadows: Vec<Translated>,
    /// Tools that it lists and does not have.
    pub left_out: Vec<String>,
    /// What is odd about it.
    pub notes: Vec<Translated>,
}

/// The lead, the members and the experts.
pub fn people(team: &Team) -> Vec<ListedAgent<'_>> {
    let ranked = team.roster.ranked();
    let all = std::iter::once(&team.lead).chain(&team.members).chain(&team.experts);
    all.map(|member| person(team, member, &ranked)).collect()
}

fn person<'a>(team: &'a Team, member: &'a Member, ranked: &[RankedDefinition<'_>]) -> ListedAgent<'a> {
    let name = member.definition.name.as_str();
    let found = ranked.iter().find(|ranked| ranked.entry.name() == name);
    let written = |ranked: &RankedDefinition<'_>| -> Vec<Translated> {
        ranked.shadows.iter().map(|entry| format!("{} ({})", entry.place(), entry.scope.name()).into()).collect()
    };
    let listed = team.models.get(name).map_or(team.source.get(Lang::En), String::as_str);
    match found {
        // The team uses this definition, so its place and warnings are shown.
        Some(ranked) if ranked.entry.place() == listed => {
            let mut shadows = written(ranked);
            shadows.extend(team.merge.is_replaced(name).then(|| team.source.clone()));
            let card = ranked.entry.card;
            ListedAgent {
                member,
                scope: ranked.entry.scope,
                place: listed.into(),
                shadows,
                left_out: card.left_out.clone(),
                notes: card.warnings.clone(),
            }
        }
        found => {
            let mut shadows = found.map(&written).unwrap_or_default();
            if let Some(ranked) = found {
                shadows.insert(0, format!("{} ({})", ranked.entry.place(), ranked.entry.scope.name()).into());
            }
            let later = team.later.iter().find(|(who, _)| who == name).map(|(_, tools)| tools.clone());
            ListedAgent {
                member,
                scope: team.merge.scope,
                // The built-in file is not on disk, so a line number would not help.
                place: if team.merge.is_builtin() { team.source.clone() } else { in_line(listed).into() },
                shadows,
                left_out: later.unwrap_or_default(),
                notes: Vec::new(),
            }
        }
    }
}

/// `file:line` of what is written as `file:line:col`.
fn in_line(place: &str) -> String {
    place.rsplit_once(':').map_or(place, |(line, _)| line).to_owned()
}

impl ListedAgent<'_> {
    /// The tools it has when it works, as far as they do not depend on who calls it, with those that come with them.
    pub fn tools(&self) -> Vec<String> {
        let own = &self.member.definition;
        let tools = match own.place {
            // A lead's act on the team, and are no hands.
            Position::Lead => tool_roles::lead_tools(own),
            Position::Member => alone_tools(own).into_iter().chain(tool_roles::given(own)).collect(),
            Position::Expert => self.hands().tools,
        };
        match tool_roles::known().subset(tools.iter().map(String::as_str)) {
            Ok(whole) => whole.specs().map(|spec| spec.name.clone()).collect(),
            Err(_) => tools,
        }
    }

    /// What it does not have when it is called, by the layer that took it.
    pub fn taken(&self) -> Vec<(FilterLayer, Vec<String>)> {
        let has = self.tools();
        let left = |tools: Vec<String>| tools.into_iter().filter(|tool| !has.contains(tool)).collect();
        let taken = self.hands().taken.into_iter().map(|(layer, tools)| (layer, left(tools)));
        taken.filter(|(_, tools): &(FilterLayer, Vec<String>)| !tools.is_empty()).collect()
    }

    /// What is left to it when it is called, and which layer took the rest.
    fn hands(&self) -> AllowedTools {
        let there = tool_roles::known().specs().map(|spec| spec.name.as_str());
        tool_filter::allowed_tools(there, &self.member.definition, Caller::default())
    }

    /// All of it but its words.
    pub fn json(&self) -> Value {
        let own = &self.member.definition;
        let english =
            |all: &[Translated]| -> Vec<String> { all.iter().map(|one| one.get(Lang::En).to_owned()).collect() };
        let mut told = json!({
            "name": own.name, "role": own.role, "description": own.description, "place": own.place,
            "scope": self.scope.name(), "file": self.place.get(Lang::En), "shadows": english(&self.shadows),
            "model": self.member.model, "tools": self.tools(), "inherits_tools": own.inherits_tools,
            "disallowed_tools": own.disallowed_tools, "left_out": self.left_out, "notes": english(&self.notes),
            "constraints": self.member.constraints,
        });
        if let (Some(told), Position::Expert) = (told.as_object_mut(), own.place) {
            let taken = self.taken().into_iter().map(|(layer, tools)| json!({ "layer": layer, "tools": tools }));
            told.insert("taken".to_owned(), taken.collect::<Vec<_>>().into());
        }
        // What it says besides; most say nothing.
        if let (Some(told), Ok(Value::Object(more))) = (told.as_object_mut(), serde_json::to_value(own)) {
            let known: Vec<String> = told.keys().cloned().chain(["prompt".to_owned()]).collect();
            told.extend(more.into_iter().filter(|(key, _)| !known.contains(key)));
        }
        told
    }
}
