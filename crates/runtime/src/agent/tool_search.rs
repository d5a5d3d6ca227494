//! `tool_search`: tools that an agent has and that its requests do not describe.
//!
//! A tool that a search found, that a call made necessary or that a message names is described in all later requests. This
//! follows from the history, so it is the same after a crash. A conversation without searches keeps one list of tools, which a provider can cache.

use max_team_core::agent::Definition;
use max_team_core::chat::{ChatRole, Message};
use max_team_core::delegation::offer::{TOOL_SEARCH, is_offered, is_searchable, named_in, needed_after};
use max_team_core::limits::TOOLS_FOUND_MAX;
use max_team_core::turn::TurnInput;
use max_team_tools::{COMPANIONS, Registry, Spec};
use serde_json::Value;

use super::acts::ActionOutcome;
use super::{Agent, Frame};
use crate::team_tools;

/// Tools that are named when a search finds none.
const NAMED_MAX: usize = 100;

/// The tool that runs commands, some of them in the background.
const COMMAND: &str = "run_shell";

/// Leaves tools out of requests that the definition hides, and offers the search where it would find one.
pub(super) fn hide(registry: &mut Registry, definition: &Definition, shown_max: u32) {
    // With many tools of servers none is described: a search, or the conversation's first words, finds those that fit.
    let is_crowded = registry.sourced_count() > usize::try_from(shown_max).unwrap_or(usize::MAX);
    let is_hidden =
        |spec: &&Spec| !is_offered(definition, &spec.name) || (is_crowded && registry.is_sourced(&spec.name));
    let hidden: Vec<String> = registry.specs().filter(is_hidden).map(|spec| spec.name.clone()).collect();
    registry.hide(hidden);
    registry.remove(TOOL_SEARCH);
    if is_crowded || registry.specs().any(|spec| is_searchable(definition, &spec.name)) {
        registry.put(team_tools::tool_search());
    }
}

/// The tools that a call makes an agent need.
fn needed(frame: &Frame, tool: &str, input: &Value) -> Vec<String> {
    let is_set = |field: &str| input.get(field).and_then(Value::as_bool).unwrap_or_default();
    match tool {
        TOOL_SEARCH => frame.find_tools(team_tools::searched(input)),
        COMMAND if is_set("background") => COMPANIONS.map(str::to_owned).to_vec(),
        _ => needed_after(tool, input).iter().map(|tool| (*tool).to_owned()).collect(),
    }
}

/// The tools that a message to an agent names.
fn named(message: &Message) -> Vec<String> {
    if message.role != ChatRole::User {
        return Vec::new();
    }
    named_in(&message.text()).map(str::to_owned).collect()
}

impl Frame {
    /// The hidden tools that a query finds, best first.
    pub(super) fn find_tools(&self, query: &str) -> Vec<String> {
        let may_find = |tool: &str| is_searchable(self.definition(), tool) || self.registry.is_hidden_sourced(tool);
        self.registry.search(query, TOOLS_FOUND_MAX, may_find).into_iter().map(|spec| spec.name.clone()).collect()
    }

    /// The tools of servers that fit the first words of a conversation, where there are too many to describe all.
    pub(super) fn fitting(&self, words: &str) -> Vec<String> {
        let found = self.registry.search(words, TOOLS_FOUND_MAX, |tool| self.registry.is_hidden_sourced(tool));
        found.into_iter().map(|spec| spec.name.clone()).collect()
    }

    /// Describes hidden tools in requests from now on.
    pub(super) fn reveal(&mut self, tools: &[String]) {
        if !tools.iter().any(|tool| self.registry.is_hidden(tool)) {
            return;
        }
        let mut registry = (*self.registry).clone();
        if registry.reveal(tools.iter().map(String::as_str)) {
            self.equip(registry);
        }
    }

    /// Like `reveal`, for all tools that earlier calls of the conversation made necessary.
    pub(crate) fn reveal_from(&mut self, history: &[Message]) {
        let calls = history.iter().flat_map(Message::tool_uses);
        let mut tools: Vec<String> = calls.flat_map(|(_, tool, input)| needed(self, tool, input)).collect();
        tools.extend(history.first().map(|first| self.fitting(&first.text())).unwrap_or_default());
        tools.extend(history.iter().flat_map(named));
        self.reveal(&tools);
    }
}

impl Agent {
    /// Before an input is taken in: the next request describes the tools that it makes necessary.
    pub(super) fn reveal_for(&mut self, input: &TurnInput) {
        let mut tools: Vec<String> = match input {
            TurnInput::Begin { input, .. } => named(&Message::user(input.clone())),
            TurnInput::ToolEnded { key, .. } => {
                if self.turn.call(key).is_some_and(|call| self.frame.registry.is_sourced(&call.tool)) {
                    self.show_source_notices();
                }
                self.needed_after(key)
            }
            TurnInput::Acted(ended) => ended.iter().flat_map(|(key, ..)| self.needed_after(key)).collect(),
            _ => return,
        };
        // Messages that were added to the last call are part of the history by now.
        let said = self.turn.history().iter().rev().find(|message| message.role == ChatRole::User);
        tools.extend(said.map(named).unwrap_or_default());
        if !tools.is_empty() {
            self.frame.reveal(&tools);
        }
    }

    fn needed_after(&self, key: &str) -> Vec<String> {
        self.turn.call(key).map(|call| needed(&self.frame, &call.tool, &call.input)).unwrap_or_default()
    }

    /// The result of a search.
    pub(super) fn search_tools(&self, query: &str) -> ActionOutcome {
        let about = |tool: &str| {
            let spec = self.frame.registry.get(tool).map(|tool| tool.spec());
            let first = spec.and_then(|spec| spec.description.split(". ").next()).unwrap_or_default();
            format!("- `{tool}`: {}", first.trim_end_matches('.'))
        };
        let found = self.frame.find_tools(query);
        let lines = |tools: &[String]| tools.iter().map(|tool| about(tool)).collect::<Vec<_>>().join("\n");
        if !found.is_empty() {
            return ActionOutcome::said(format!("You can call these from now on:\n{}", lines(&found)));
        }
        let registry = &self.frame.registry;
        let may_find = |tool: &str| is_searchable(self.frame.definition(), tool) || registry.is_hidden_sourced(tool);
        let specs = registry.specs().filter(|spec| may_find(&spec.name)).take(NAMED_MAX);
        let hidden: Vec<String> = specs.map(|spec| spec.name.clone()).collect();
        ActionOutcome::said(format!(
            "No tool fits `{query}`, and none was added. Search for one of these by its name:\n{}",
            lines(&hidden)
        ))
    }
}
