//! A team's file into who is in it.

use max_team_core::mates::color;
use max_team_core::mates::name::misfit;
use max_team_core::near::did_you_mean;
use max_team_core::policy::Mode;
use max_team_core::team::Isolation;
use max_team_runtime::Spawn;

use super::TeamFile;
use crate::config::yaml::{Node, Value};
use crate::config::{File, Standing, quote, trust};

const KEYS: [&str; 4] = ["name", "description", "lead", "members"];
const MEMBER_KEYS: [&str; 10] =
    ["name", "role", "prompt", "type", "model", "mode", "color", "isolation", "auto_claim", "plan_first"];

struct Reader<'a> {
    file: &'a File,
    warnings: Vec<String>,
}

/// Reads a file; without a name of its own it is called as the file is.
pub(super) fn read(file: &File, stem: String) -> Result<(TeamFile, Vec<String>), String> {
    let bytes = file.bytes().map_err(|problem| problem.to_string())?.unwrap_or_default();
    let node = file.parse(&bytes).map_err(|problem| problem.to_string())?;
    let mut reader = Reader { file, warnings: Vec::new() };
    let mut team = TeamFile { name: stem, ..TeamFile::default() };
    for (key, value) in reader.entries(&node, "a team", &KEYS)? {
        match key {
            "name" => team.name = reader.text(key, value)?,
            "description" => team.description = reader.text(key, value)?,
            "lead" => team.lead = Some(reader.text(key, value)?),
            _ => team.members = reader.members(value)?,
        }
    }
    if team.members.is_empty() {
        return Err(reader.at(&node, "there are no members in it"));
    }
    Ok((team, reader.warnings))
}

impl Reader<'_> {
    fn at(&self, node: &Node, words: impl std::fmt::Display) -> String {
        format!("{}: {words}", self.file.place(node.spot))
    }

    /// The entries of a map under the names we know; others are told.
    fn entries<'n>(
        &mut self,
        node: &'n Node,
        what: &str,
        keys: &[&'static str],
    ) -> Result<Vec<(&'static str, &'n Node)>, String> {
        let Value::Map(entries) = &node.value else { return Err(self.at(node, format!("{what} is a map of names"))) };
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
        Ok(known)
    }

    fn text(&self, key: &str, node: &Node) -> Result<String, String> {
        node.text().map(str::to_owned).ok_or_else(|| self.at(node, format!("`{key}` is a text")))
    }

    fn members(&mut self, node: &Node) -> Result<Vec<Spawn>, String> {
        let Value::List(items) = &node.value else { return Err(self.at(node, "`members` is a list")) };
        let mut members: Vec<Spawn> = Vec::new();
        for item in items {
            let member = self.member(item)?;
            if members.iter().any(|known| known.name == member.name) {
                return Err(self.at(item, format!("`{}` is in it twice", member.name)));
            }
            members.push(member);
        }
        Ok(members)
    }

    fn member(&mut self, node: &Node) -> Result<Spawn, String> {
        let mut spawn = Spawn::default();
        for (key, value) in self.entries(node, "a member", &MEMBER_KEYS)? {
            match key {
                "name" => spawn.name = self.text(key, value)?.trim().to_owned(),
                "role" => spawn.role = self.text(key, value)?,
                "prompt" => spawn.prompt = self.text(key, value)?,
                "type" => spawn.kind = Some(self.text(key, value)?),
                "model" => spawn.model = Some(self.text(key, value)?),
                "color" => {
                    // Once any word was one: what was written then still begins.
                    match color(&self.text(key, value)?) {
                        Ok(known) => spawn.color = Some(known.to_owned()),
                        Err(words) => self.warnings.push(self.at(value, format!("{words}; it gets one that is free"))),
                    }
                }
                "mode" => spawn.mode = self.mode(value)?,
                "isolation" => spawn.isolation = Some(self.isolation(value)?),
                "auto_claim" => spawn.claims = Some(self.switch(key, value)?),
                _ => spawn.plan_first = self.switch(key, value)?,
            }
        }
        if let Some(why) = misfit(&spawn.name, "") {
            return Err(self.at(node, why));
        }
        if spawn.prompt.trim().is_empty() {
            return Err(self.at(node, format!("`{}`: `prompt` is missing: what it does first", spawn.name)));
        }
        Ok(spawn)
    }

    fn mode(&mut self, node: &Node) -> Result<Option<Mode>, String> {
        let names = || Mode::NAMES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let wrong = || self.at(node, format!("`mode` is one of {}", names()));
        let mode = node.text().and_then(Mode::named).ok_or_else(wrong)?;
        let is_loose = mode != Mode::Default && !mode.is_stricter(Mode::Default);
        if self.file.standing != Standing::Trusted && is_loose {
            self.warnings.push(self.at(node, format!("`mode: {}` is held back: {}", mode.name(), trust::FREE)));
            return Ok(None);
        }
        Ok(Some(mode))
    }

    fn isolation(&self, node: &Node) -> Result<Isolation, String> {
        match node.text() {
            Some("worktree") => Ok(Isolation::Worktree),
            Some("none") => Ok(Isolation::None),
            _ => Err(self.at(node, "`isolation` is `none` or `worktree`")),
        }
    }

    fn switch(&self, key: &str, node: &Node) -> Result<bool, String> {
        node.json().as_bool().ok_or_else(|| self.at(node, format!("`{key}` is true or false")))
    }
}
