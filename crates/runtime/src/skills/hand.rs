//! What an agent can do with skills: load one, or have another agent carry it out.

use std::path::Path;
use std::sync::{Arc, Mutex};

use max_team_core::suggest::did_you_mean;
use max_team_core::text::quote;
use max_team_tools::Tool;
use serde_json::{Value, json};

use super::catalogue::{Library, is_doable};
use super::contract::Contract;
use super::mention::{self, unusable};
use super::tool::{SKILL, SkillContext, arguments};
use super::{Misfit, Skill};
use crate::shared::lock;

/// The text before a skill that a called agent carries out.
const CARRY_OUT: &str = "Carry this skill out; your answer goes to the agent that asked for it.\n\n";

/// An agent's access to skills.
#[derive(Debug)]
pub(crate) struct Hand {
    /// Where skills come from.
    pub library: Arc<Library>,
    /// The names of the agent's tools; of a lead without tools for files, those of the agents that it calls.
    pub tools: Vec<String>,
    /// Whether the agent can follow the text of a contract itself; a lead without tools for files cannot.
    pub reads: bool,
    /// Runs the agent's commands; `None` if it may run none.
    pub shell: Option<Arc<dyn Tool>>,
    /// The user's wishes for the present turn.
    pub wish: Mutex<SkillWishes>,
}

/// The user's wishes about skills in a turn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SkillWishes {
    /// No skill may be used.
    pub none: bool,
    /// Skills that the user asked for by name: they may be used even if they are not listed for models.
    pub names: Vec<String>,
}

/// A skill that another agent carries out.
#[derive(Debug)]
pub(crate) struct Errand {
    pub skill: Skill,
    /// A short description for people.
    pub title: String,
    /// The agent's first message.
    pub text: String,
}

impl Hand {
    /// The requested skill with its text, if this agent can use it.
    pub(super) fn open(&self, root: &Path, args: &Value) -> Result<(Skill, String), String> {
        let wish = lock(&self.wish).clone();
        if wish.none {
            return Err("the user wants no skill to be used for this".to_owned());
        }
        let word = |key: &str| args.get(key).and_then(Value::as_str).map(str::trim).filter(|word| !word.is_empty());
        let name = word("name").or_else(|| word(SKILL)).or_else(|| word("command"));
        let name = name.ok_or("say which skill: `name`")?.trim_start_matches('/');
        let catalogue = self.library.of(root);
        let Some(skill) = catalogue.get(name) else {
            let names: Vec<&str> = catalogue.offered(&self.tools).map(|skill| skill.name.as_str()).collect();
            let (name, near) = (quote(name), did_you_mean(name, names.iter().copied()));
            let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(format!("there is no skill `{name}`{near}; there are: {there}"));
        };
        let refused = |why: String| format!("the skill `{name}` cannot be used: {why}");
        if let Some(why) = unusable(skill) {
            return Err(refused(why));
        }
        // The file as it is now decides what the skill may do: the catalogue may be older.
        let (skill, text) = catalogue.load(skill).map_err(refused)?;
        let is_told = skill.head.for_models || wish.names.contains(&skill.name);
        let hidden = (!is_told).then(|| "only the user can ask for it".to_owned());
        let lacking = || skill.contract.as_ref().filter(|_| !is_doable(&skill, &self.tools)).map(|own| own.lacking());
        match hidden.or_else(lacking) {
            Some(why) => Err(refused(why)),
            None => Ok((skill, text)),
        }
    }

    /// The agent that carries a skill out; `None`: the caller follows the text itself. A contract without an input is read by
    /// an agent that has the tools for it: a sub-agent would only do the caller's own task again.
    pub(super) fn carried_out_by(&self, skill: &Skill, args: &Value) -> Option<String> {
        let is_read = self.reads && skill.contract.is_some() && given_input(args).is_none();
        skill.done_by().filter(|_| !is_read)
    }

    /// The instructions for another agent that carries out a skill. That agent runs the skill's commands itself, under
    /// its own rules.
    pub(crate) fn errand(&self, asked: &SkillContext<'_>, args: &Value) -> Result<Errand, String> {
        let (skill, text) = self.open(asked.root, args)?;
        let (title, text) = match &skill.contract {
            Some(contract) => {
                let input = input_of(contract, args)?;
                let beside = match given_input(args) {
                    None if contract.only_text().is_none() => arguments(args),
                    _ => String::new(),
                };
                let beside = if beside.is_empty() { beside } else { format!("\nARGUMENTS: {beside}\n") };
                (input.to_string(), Contract::asked(&input) + &beside)
            }
            None => {
                let arguments = arguments(args);
                let filled = mention::filled(&skill, &text, &arguments, asked);
                (format!("{} {arguments}", skill.name), format!("{CARRY_OUT}{filled}"))
            }
        };
        Ok(Errand { skill, title, text })
    }
}

/// The input of a call: `input`, or an object in the place of `arguments`. Text in `arguments` is text, not an input.
fn given_input(args: &Value) -> Option<Value> {
    let given = |key: &str| args.get(key).filter(|value| !value.is_null());
    given("input").cloned().or_else(|| given("arguments").or_else(|| given("args")).and_then(object_in))
}

/// An object, also as JSON text.
fn object_in(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) => serde_json::from_str(text).ok().filter(Value::is_object),
        other => other.is_object().then(|| other.clone()),
    }
}

/// The input of a contract, checked. Text goes into the one property that takes text; text that no property takes stands
/// beside the input.
pub(super) fn input_of(contract: &Contract, args: &Value) -> Result<Value, String> {
    let input = match (given_input(args), contract.only_text()) {
        (Some(Value::String(text)), only) => {
            let object = object_in(&json!(text));
            object.or_else(|| only.map(|name| json!({ name: text }))).unwrap_or(Value::String(text))
        }
        (Some(input), _) => input,
        (None, Some(name)) if !arguments(args).is_empty() => json!({ name: arguments(args) }),
        (None, _) => json!({}),
    };
    let told = |misfit: Misfit| format!("{misfit}; it takes an `input` of this shape: {}", contract.input);
    contract.takes(&input).map(|()| input).map_err(told)
}
