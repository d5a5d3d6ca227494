//! Skills that another agent carries out: a call like any other, of the agent that the skill names.
//!
//! A contract is carried out by an agent that is made for it, with the contract's tools and time limit, and whose
//! answer must match the agreed schema. A skill with `context: fork` is carried out by one of the callable agents.

use std::sync::Arc;

use max_team_core::agent::{Constraints, Definition, Model, Settings, WorkSettings};
use max_team_core::limits::CALL_TEXT_BYTES_MAX;
use max_team_core::turn::TurnEffect;
use max_team_tools::aliases;
use serde_json::Value;

use super::Agent;
use super::acts::ActionOutcome;
use crate::error::RuntimeError;
use crate::handle::AgentSpec;
use crate::skills::{Contract, Errand, Fork, Skill, SkillContext};
use crate::team_tools::{self, DelegateCall, Way};

const CHANGED: &str = "the skill has changed since it was looked at; load it again";

impl Agent {
    /// Has another agent carry out a skill. The result comes by mail.
    pub(super) async fn skill(&mut self, key: &str, input: Value) -> Result<Option<ActionOutcome>, RuntimeError> {
        if self.goes_on(key)? {
            return Ok(None);
        }
        let errand = match self.errand(input).await {
            Ok(errand) => errand,
            Err(words) => return Ok(Some(ActionOutcome::wrong(words))),
        };
        let who = errand.skill.done_by().unwrap_or_default();
        // Only the agent that was judged may be called.
        if self.judged(key).is_none_or(|judged| judged != who) {
            return Ok(Some(ActionOutcome::wrong(CHANGED)));
        }
        let (teammate, depth) = match self.hired_for(&errand.skill) {
            Ok(hired) => hired,
            Err(words) => return Ok(Some(ActionOutcome::wrong(words))),
        };
        let Errand { skill, title, text } = errand;
        if text.len() > CALL_TEXT_BYTES_MAX {
            let words = format!("a call hands over at most {CALL_TEXT_BYTES_MAX} bytes, not {}", text.len());
            return Ok(Some(ActionOutcome::wrong(words)));
        }
        let (title, skill) = (team_tools::title(&title), Some(skill.name));
        let call = DelegateCall { way: Way::Words, who, title, text, skill, ..DelegateCall::default() };
        self.engage(key, &call, teammate, depth).await
    }

    /// Reads the skill that a call asks for. A project's skill is compared with its pin, file by file.
    async fn errand(&mut self, input: Value) -> Result<Errand, String> {
        let hand = self.frame.hand().cloned().ok_or("`skill` is not a tool of yours")?;
        let (root, session) = (self.frame.root().to_path_buf(), self.active.session.to_string());
        let read = move || hand.errand(&SkillContext { root: &root, session: &session }, &input);
        let read = tokio::task::spawn_blocking(read).await;
        read.unwrap_or_else(|crash| Err(format!("the skill could not be read: {crash}")))
    }

    /// The agent that the policy has judged the call for.
    fn judged(&self, key: &str) -> Option<String> {
        self.turn.pending().into_iter().find_map(|effect| match effect {
            TurnEffect::RunTool { key: own, action, .. } if own == key => Some(action.target),
            _ => None,
        })
    }

    /// The agent that carries out a skill for this caller, and its call depth.
    fn hired_for(&self, skill: &Skill) -> Result<(AgentSpec, u32), String> {
        let refused = |why: String| format!("the skill `{}` cannot be used: {why}", skill.name);
        match (&skill.contract, &skill.head.fork) {
            (Some(contract), _) => {
                let (teammate, depth) = self.hire(self.contractor(skill, contract), Way::Words).map_err(refused)?;
                let has = |tool: &String| teammate.definition.tools.contains(tool);
                if contract.tools.iter().all(has) { Ok((teammate, depth)) } else { Err(refused(contract.lacking())) }
            }
            (None, Some(fork)) => {
                let teammate = self.forked(skill, fork).map_err(refused)?;
                self.hire(teammate, Way::Words).map_err(refused)
            }
            (None, None) => Err(CHANGED.to_owned()),
        }
    }

    /// An agent of the type that a skill names, with the model that the skill asks for and without the tools that it
    /// excludes.
    fn forked(&self, skill: &Skill, fork: &Fork) -> Result<AgentSpec, String> {
        let who = &fork.agent;
        let called = self.active.callable(self.frame.definition(), who);
        let AgentSpec { mut definition, mut settings } =
            called.map_err(|why| format!("it is carried out by `{who}`, and {why}"))?;
        let without = skill.head.without_tools.iter().map(|tool| aliases::canonical(tool).to_owned());
        Arc::make_mut(&mut definition).disallowed_tools.extend(without);
        // A budget needs models with known prices.
        let is_counted = self.money.pool.left().nano.is_some() || settings.budget_nano.is_some();
        let is_affordable = |model: &Model| model.price.is_some() || !is_counted;
        if let Some(model) = fork.model.as_ref().and_then(|name| self.active.wished(name)).filter(is_affordable) {
            settings.fallback = Some(std::mem::replace(&mut settings.model, model));
        }
        if let Some(effort) = fork.effort {
            // Thinking must leave room for an answer.
            settings.model.thinking_tokens = effort.tokens().min(settings.model.max_tokens / 2);
        }
        Ok(AgentSpec { definition, settings })
    }

    /// An agent that does nothing but carry out the contract.
    fn contractor(&self, skill: &Skill, contract: &Contract) -> AgentSpec {
        let definition = Definition {
            name: skill.done_by().unwrap_or_default(),
            role: "skill".to_owned(),
            description: skill.description.clone(),
            prompt: contract.prompt.clone(),
            tools: contract.tools.clone(),
            work: WorkSettings { output: Some(contract.output.clone()), ..WorkSettings::default() },
            ..Definition::default()
        };
        let mine = Settings::clone(self.frame.settings());
        let timeout_ms = mine.constraints.timeout_ms.into_iter().chain([contract.timeout_ms]).min();
        let mut constraints = Constraints { timeout_ms, ..mine.constraints.clone() };
        if let Some(team) = self.active.team().filter(|_| self.leads()) {
            // A lead without tools for files has no blocked files of its own, and may pass on all hosts. So the agent
            // gets the blocked files of all members, and no hosts, because a contract names none.
            for pattern in team.members.iter().flat_map(|teammate| &teammate.settings.constraints.blocked_patterns) {
                if !constraints.blocked_patterns.contains(pattern) {
                    constraints.blocked_patterns.push(pattern.clone());
                }
            }
            constraints.allowed_hosts.clear();
        }
        let definition = definition.into();
        AgentSpec {
            definition,
            settings: Settings { budget_nano: None, budget_tokens: None, ..mine }.limited_by(&constraints),
        }
    }
}
