//! Skills that somebody else carries out: a call like any other, with whom the skill says.
//!
//! A contract is done by somebody who begins to exist for it, with the tools that it takes, in the time that it gives, and
//! whose answer has the shape that was agreed or is none.

use std::sync::Arc;

use max_team_core::team::{Constraints, Definition, Settings};
use max_team_core::turn::Effect;
use serde_json::Value;

use super::Agent;
use super::acts::Done;
use crate::error::RuntimeError;
use crate::handle::Mate;
use crate::skills::{Asked, Contract, Errand, Skill};
use crate::team_tools::{Call, Way};

const CHANGED: &str = "the skill has changed since it was looked at; load it again";

impl Agent {
    /// Has a skill carried out. The result comes by mail.
    pub(super) async fn skill(&mut self, key: &str, input: Value) -> Result<Option<Done>, RuntimeError> {
        if self.goes_on(key)? {
            return Ok(None);
        }
        let errand = match self.errand(input).await {
            Ok(errand) => errand,
            Err(words) => return Ok(Some(Done::wrong(words))),
        };
        let who = errand.skill.done_by().unwrap_or_default();
        // What was judged is what is called.
        if self.judged(key).is_none_or(|judged| judged != who) {
            return Ok(Some(Done::wrong(CHANGED)));
        }
        let (mate, depth) = match self.hired_for(&errand.skill) {
            Ok(hired) => hired,
            Err(words) => return Ok(Some(Done::wrong(words))),
        };
        let Errand { skill, text } = errand;
        let (title, skill) = (skill.name.clone(), Some(skill.name));
        let call = Call { way: Way::Words, who, title, text, skill, ..Call::default() };
        self.engage(key, &call, mate, depth).await
    }

    /// Reads the skill that a call asks for. It may have to be held against what the user trusted, file by file.
    async fn errand(&self, input: Value) -> Result<Errand, String> {
        let hand = self.frame.hand().cloned().ok_or("`skill` is not a tool of yours")?;
        let (root, session) = (self.frame.root().to_path_buf(), self.floor.session.to_string());
        let read = move || hand.errand(&Asked { root: &root, session: &session }, &input);
        let read = tokio::task::spawn_blocking(read).await;
        read.unwrap_or_else(|crash| Err(format!("the skill could not be read: {crash}")))
    }

    /// Whom the gate has judged a call to be for.
    fn judged(&self, key: &str) -> Option<String> {
        self.turn.pending().into_iter().find_map(|effect| match effect {
            Effect::RunTool { key: own, action, .. } if own == key => Some(action.target),
            _ => None,
        })
    }

    /// Who carries a skill out, as they are for this caller, and how deep they then are.
    fn hired_for(&self, skill: &Skill) -> Result<(Mate, u32), String> {
        let refused = |why: String| format!("the skill `{}` cannot be used: {why}", skill.name);
        let Some(contract) = &skill.contract else { return Err(CHANGED.to_owned()) };
        let (mate, depth) = self.hire(self.contractor(skill, contract), Way::Words).map_err(refused)?;
        let has = |tool: &String| mate.definition.tools.contains(tool);
        if contract.tools.iter().all(has) { Ok((mate, depth)) } else { Err(refused(contract.lacking())) }
    }

    /// Somebody who does nothing but what was agreed.
    fn contractor(&self, skill: &Skill, contract: &Contract) -> Mate {
        let definition = Definition {
            name: skill.done_by().unwrap_or_default(),
            role: "skill".to_owned(),
            description: skill.description.clone(),
            prompt: contract.prompt.clone(),
            tools: contract.tools.clone(),
            output: Some(contract.output.clone()),
            ..Definition::default()
        };
        let mine = Settings::clone(self.frame.settings());
        let timed = Constraints { timeout_ms: Some(contract.timeout_ms), ..Constraints::default() };
        let constraints = mine.constraints.meet(&timed);
        Mate { definition, settings: Settings { budget_nano: None, ..mine }.under(&constraints) }
    }
}
