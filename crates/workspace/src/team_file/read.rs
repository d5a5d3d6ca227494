//! A team's file into who is in it.

use max_team_core::agent::Isolation;
use max_team_core::delegation::tool_filter::GENERAL;
use max_team_core::policy::Mode;
use max_team_core::suggest::{candidates, did_you_mean};
use max_team_core::teammate::color;
use max_team_core::teammate::name::{looks_like, name_error};
use max_team_runtime::Spawn;

use super::{TeamContext, TeamFile};
use crate::config::yaml::{Node, Value};
use crate::config::{ConfigFile, FileTrust, quote, trust};

const KEYS: [&str; 4] = ["name", "description", "lead", "members"];
const MEMBER_KEYS: [&str; 10] =
    ["name", "role", "prompt", "type", "model", "mode", "color", "isolation", "auto_claim", "plan_first"];

/// What is wrong with a file is gathered, so that one look names all of it; what was read besides does not count then.
struct TeamFileReader<'a> {
    file: &'a ConfigFile,
    here: &'a TeamContext,
    warnings: Vec<String>,
    faults: Vec<String>,
}

/// Reads a file; without a name of its own it is called as the file is.
pub(super) fn read(file: &ConfigFile, stem: String, here: &TeamContext) -> Result<(TeamFile, Vec<String>), String> {
    let bytes = file.bytes().map_err(|problem| problem.to_string())?.unwrap_or_default();
    let node = file.parse(&bytes).map_err(|problem| problem.to_string())?;
    let mut reader = TeamFileReader { file, here, warnings: Vec::new(), faults: Vec::new() };
    let mut team = TeamFile { name: stem, ..TeamFile::default() };
    for (key, value) in reader.entries(&node, "a team", &KEYS) {
        match key {
            "name" => team.name = reader.text(key, value),
            "description" => team.description = reader.text(key, value),
            "lead" => team.lead = Some(reader.text(key, value)),
            _ => team.members = reader.members(value),
        }
    }
    if team.members.is_empty() && reader.faults.is_empty() {
        reader.fault(&node, "there are no members in it");
    }
    if reader.faults.is_empty() {
        return Ok((team, reader.warnings));
    }
    // What is not known may be what was meant.
    reader.faults.append(&mut reader.warnings);
    Err(reader.faults.join("\n"))
}

impl TeamFileReader<'_> {
    fn at(&self, node: &Node, words: impl std::fmt::Display) -> String {
        format!("{}: {words}", self.file.place(node.spot))
    }

    fn fault(&mut self, node: &Node, words: impl std::fmt::Display) {
        let fault = self.at(node, words);
        self.faults.push(fault);
    }

    /// The entries of a map under the names we know; others are told.
    fn entries<'n>(&mut self, node: &'n Node, what: &str, keys: &[&'static str]) -> Vec<(&'static str, &'n Node)> {
        let Value::Map(entries) = &node.value else {
            self.fault(node, format!("{what} is a map of names"));
            return Vec::new();
        };
        let mut known = Vec::new();
        for (name, value) in entries {
            match keys.iter().find(|key| **key == name.text) {
                Some(key) => known.push((*key, value)),
                None => {
                    let near = did_you_mean(&name.text, keys.iter().copied());
                    let words = format!("there is no `{}` in {what}{near}", quote(&name.text));
                    self.warnings.push(format!("{}: {words}", self.file.place(name.spot)));
                }
            }
        }
        known
    }

    fn text(&mut self, key: &str, node: &Node) -> String {
        node.text().map(str::to_owned).unwrap_or_else(|| {
            self.fault(node, format!("`{key}` is a text"));
            String::new()
        })
    }

    fn members(&mut self, node: &Node) -> Vec<Spawn> {
        let Value::List(items) = &node.value else {
            self.fault(node, "`members` is a list");
            return Vec::new();
        };
        let mut members: Vec<Spawn> = Vec::new();
        for item in items {
            let member = self.member(item);
            if let Some(known) = members.iter().find(|known| looks_like(&known.name, &member.name)) {
                let words = match known.name == member.name {
                    true => format!("`{}` is in it twice", member.name),
                    false => format!("`{}` looks like `{}`, which is in it, too", member.name, known.name),
                };
                self.fault(item, words);
            }
            members.push(member);
        }
        members
    }

    fn member(&mut self, node: &Node) -> Spawn {
        let mut spawn = Spawn::default();
        let before = self.faults.len();
        for (key, value) in self.entries(node, "a member", &MEMBER_KEYS) {
            match key {
                "name" => self.text(key, value).trim().clone_into(&mut spawn.name),
                "role" => spawn.role = self.text(key, value),
                "prompt" => spawn.prompt = self.text(key, value),
                "type" => spawn.kind = Some(self.kind(value)),
                "model" => spawn.model = Some(self.text(key, value)),
                "color" => {
                    // Once any word was one: what was written then still begins.
                    match color(&self.text(key, value)) {
                        Ok(known) => spawn.color = Some(known.to_owned()),
                        Err(words) => self.warnings.push(self.at(value, format!("{words}; it gets one that is free"))),
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
            self.fault(node, why);
        }
        let kind = spawn.kind.as_deref().unwrap_or(GENERAL);
        let others = self.here.types.iter().filter(|known| *known != kind || **known != spawn.name);
        if let Some(other) = others.into_iter().find(|known| looks_like(known, &spawn.name)).cloned() {
            let words = "is called so already, and works here without being a teammate: choose another name";
            self.fault(node, format!("`{other}` {words}"));
        }
        if is_map && spawn.prompt.trim().is_empty() {
            self.fault(node, format!("`{}`: `prompt` is missing: what it does first", spawn.name));
        }
        spawn
    }

    fn kind(&mut self, node: &Node) -> String {
        let (kind, types) = (self.text("type", node), &self.here.types);
        if !types.is_empty() && !types.contains(&kind) {
            let there = candidates(&kind, types.iter().map(String::as_str));
            self.fault(node, format!("there is no type `{}`{there}", quote(&kind)));
        }
        kind
    }

    fn mode(&mut self, node: &Node) -> Option<Mode> {
        let Some(mode) = node.text().and_then(Mode::parse) else {
            let names = Mode::NAMES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
            self.fault(node, format!("`mode` is one of {names}"));
            return None;
        };
        let is_loose = mode != Mode::Default && !mode.is_stricter(Mode::Default);
        if self.file.standing != FileTrust::Trusted && is_loose {
            self.warnings.push(self.at(node, format!("`mode: {}` is held back: {}", mode.name(), trust::FREE)));
            return None;
        }
        if self.here.mode.is_stricter(mode) && is_loose {
            let (mode, session) = (mode.name(), self.here.mode.name());
            let words = format!("`mode: {mode}`: no teammate is freer than the session, which is `{session}`");
            self.warnings.push(self.at(node, words));
        }
        Some(mode)
    }

    fn isolation(&mut self, node: &Node) -> Option<Isolation> {
        match node.text() {
            Some("worktree") => Some(Isolation::Worktree),
            Some("none") => Some(Isolation::None),
            _ => {
                self.fault(node, "`isolation` is `none` or `worktree`");
                None
            }
        }
    }

    fn switch(&mut self, key: &str, node: &Node) -> Option<bool> {
        let is_on = node.json().as_bool();
        if is_on.is_none() {
            self.fault(node, format!("`{key}` is true or false"));
        }
        is_on
    }
}
