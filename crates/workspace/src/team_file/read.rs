//! A team's file into who is in it.

use max_team_core::agent::Isolation;
use max_team_core::delegation::tool_filter::GENERAL;
use max_team_core::policy::Mode;
use max_team_core::teammate::name::{looks_like, name_error};
use max_team_core::teammate::{COLORS, color};
use max_team_runtime::Spawn;

use super::{TeamContext, TeamFile};
use crate::config::trust::ProjectLimit;
use crate::config::yaml::{Node, Spot, Value};
use crate::config::{ConfigFile, FileTrust, Problem, quote};
use crate::i18n::{Lang, Translated};

const KEYS: [&str; 4] = ["name", "description", "lead", "members"];
const MEMBER_KEYS: [&str; 10] =
    ["name", "role", "prompt", "type", "model", "mode", "color", "isolation", "auto_claim", "plan_first"];

/// What is wrong with a file is gathered, so that one look names all of it; what was read besides does not count then.
struct TeamFileReader<'a> {
    file: &'a ConfigFile,
    here: &'a TeamContext,
    warnings: Vec<Translated>,
    faults: Vec<Translated>,
}

/// Reads a file; without a name of its own it is called as the file is.
pub(super) fn read(
    file: &ConfigFile,
    stem: String,
    here: &TeamContext,
) -> Result<(TeamFile, Vec<Translated>), Translated> {
    let words = |problem: Problem| Translated::new(|lang| problem.words(lang));
    let bytes = file.bytes().map_err(words)?.unwrap_or_default();
    let node = file.parse(&bytes).map_err(words)?;
    let mut reader = TeamFileReader { file, here, warnings: Vec::new(), faults: Vec::new() };
    let mut team = TeamFile { name: stem, ..TeamFile::default() };
    for (key, value) in reader.entries(&node, false, &KEYS) {
        match key {
            "name" => team.name = reader.text(key, value),
            "description" => team.description = reader.text(key, value),
            "lead" => team.lead = Some(reader.text(key, value)),
            _ => team.members = reader.members(value),
        }
    }
    if team.members.is_empty() && reader.faults.is_empty() {
        reader.fault(&node, |lang| lang.team_no_members().to_owned());
    }
    if reader.faults.is_empty() {
        return Ok((team, reader.warnings));
    }
    // What is not known may be what was meant.
    reader.faults.append(&mut reader.warnings);
    let lines = |lang| reader.faults.iter().map(|fault| fault.get(lang)).collect::<Vec<_>>().join("\n");
    Err(Translated::new(lines))
}

impl TeamFileReader<'_> {
    fn at(&self, spot: Spot, words: impl Fn(Lang) -> String) -> Translated {
        let place = self.file.place(spot);
        Translated::new(|lang| format!("{place}: {}", words(lang)))
    }

    fn fault(&mut self, node: &Node, words: impl Fn(Lang) -> String) {
        let fault = self.at(node.spot, words);
        self.faults.push(fault);
    }

    fn warn(&mut self, spot: Spot, words: impl Fn(Lang) -> String) {
        let warning = self.at(spot, words);
        self.warnings.push(warning);
    }

    /// The entries of a map under the names we know; others are told.
    fn entries<'n>(&mut self, node: &'n Node, is_member: bool, keys: &[&'static str]) -> Vec<(&'static str, &'n Node)> {
        let Value::Map(entries) = &node.value else {
            let words = |lang: Lang| if is_member { lang.member_is_map() } else { lang.team_is_map() }.to_owned();
            self.fault(node, words);
            return Vec::new();
        };
        let mut known = Vec::new();
        for (name, value) in entries {
            match keys.iter().find(|key| **key == name.text) {
                Some(key) => known.push((*key, value)),
                None => self.warn(name.spot, |lang| {
                    let near = lang.near(&name.text, keys.iter().copied());
                    let name = quote(&name.text);
                    if is_member { lang.member_unknown_key(name, near) } else { lang.team_unknown_key(name, near) }
                }),
            }
        }
        known
    }

    fn text(&mut self, key: &str, node: &Node) -> String {
        node.text().map(str::to_owned).unwrap_or_else(|| {
            self.fault(node, |lang| lang.key_is_text(key));
            String::new()
        })
    }

    fn members(&mut self, node: &Node) -> Vec<Spawn> {
        let Value::List(items) = &node.value else {
            self.fault(node, |lang| lang.members_is_list().to_owned());
            return Vec::new();
        };
        let mut members: Vec<Spawn> = Vec::new();
        for item in items {
            let member = self.member(item);
            if let Some(known) = members.iter().find(|known| looks_like(&known.name, &member.name)) {
                self.fault(item, |lang| match known.name == member.name {
                    true => lang.member_twice(&member.name),
                    false => lang.member_looks_like(&member.name, &known.name),
                });
            }
            members.push(member);
        }
        members
    }

    fn member(&mut self, node: &Node) -> Spawn {
        let mut spawn = Spawn::default();
        let before = self.faults.len();
        for (key, value) in self.entries(node, true, &MEMBER_KEYS) {
            match key {
                "name" => self.text(key, value).trim().clone_into(&mut spawn.name),
                "role" => spawn.role = self.text(key, value),
                "prompt" => spawn.prompt = self.text(key, value),
                "type" => spawn.kind = Some(self.kind(value)),
                "model" => spawn.model = Some(self.text(key, value)),
                "color" => {
                    // Once any word was one: what was written then still begins.
                    let word = self.text(key, value);
                    spawn.color = color(&word).ok().map(str::to_owned);
                    if spawn.color.is_none() {
                        self.warn(value.spot, |lang| lang.no_color(word.trim(), COLORS.join(", ")));
                    }
                }
                "mode" => spawn.mode = self.mode(value),
                "isolation" => spawn.isolation = self.isolation(value),
                "auto_claim" => spawn.claims = self.switch(key, value),
                _ => spawn.plan_first = self.switch(key, value).unwrap_or_default(),
            }
        }
        // An entry that is not a map was already reported.
        let is_map = matches!(node.value, Value::Map(_)) || self.faults.len() == before;
        if let Some(why) = name_error(&spawn.name, &self.here.lead).filter(|_| is_map) {
            self.fault(node, |lang| lang.name_error(&spawn.name, &why));
        }
        let kind = spawn.kind.as_deref().unwrap_or(GENERAL);
        let others = self.here.types.iter().filter(|known| *known != kind || **known != spawn.name);
        if let Some(other) = others.into_iter().find(|known| looks_like(known, &spawn.name)).cloned() {
            self.fault(node, |lang| lang.name_of_other(&other));
        }
        if is_map && spawn.prompt.trim().is_empty() {
            self.fault(node, |lang| lang.member_without_prompt(&spawn.name));
        }
        spawn
    }

    fn kind(&mut self, node: &Node) -> String {
        let (kind, types) = (self.text("type", node), &self.here.types);
        if !types.is_empty() && !types.contains(&kind) {
            self.fault(node, |lang| {
                lang.no_agent_type(quote(&kind), lang.near_or_all(&kind, types.iter().map(String::as_str)))
            });
        }
        kind
    }

    fn mode(&mut self, node: &Node) -> Option<Mode> {
        let Some(mode) = node.text().and_then(Mode::parse) else {
            let names = Mode::NAMES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
            self.fault(node, |lang| lang.mode_is_one_of(&names));
            return None;
        };
        let is_loose = mode != Mode::Default && !mode.is_stricter(Mode::Default);
        if self.file.standing != FileTrust::Trusted && is_loose {
            self.warn(node.spot, |lang| lang.mode_held_back(mode.name(), lang.project_limit(ProjectLimit::Free)));
            return None;
        }
        if self.here.mode.is_stricter(mode) && is_loose {
            let session = self.here.mode.name();
            self.warn(node.spot, |lang| lang.mode_freer_than_session(mode.name(), session));
        }
        Some(mode)
    }

    fn isolation(&mut self, node: &Node) -> Option<Isolation> {
        match node.text() {
            Some("worktree") => Some(Isolation::Worktree),
            Some("none") => Some(Isolation::None),
            _ => {
                self.fault(node, |lang| lang.isolation_is_one_of().to_owned());
                None
            }
        }
    }

    fn switch(&mut self, key: &str, node: &Node) -> Option<bool> {
        let is_on = node.json().as_bool();
        if is_on.is_none() {
            self.fault(node, |lang| lang.key_is_switch(key));
        }
        is_on
    }
}
