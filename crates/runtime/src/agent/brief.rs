//! Runs quick read-only calls between a decision and its commit, so that one commit holds both.
//!
//! They change nothing: if the process dies before the commit, nothing has happened, and the next process runs them
//! again. The policy has judged them first, like all calls.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use max_team_core::event::Event;
use max_team_core::policy::{Action, Repeatability};
use max_team_core::turn::{TurnEffect, TurnInput};

use super::flight::tool_ended;
use super::{Agent, millis};
use crate::shared::now_ms;

impl Agent {
    /// Does what of a decision is over at once, and adds what follows from it.
    pub(super) fn do_briefly(&mut self, events: &mut Vec<Event>) {
        if self.restart.resumed || !only_looks(events) {
            return;
        }
        self.turn.look_ahead(events, now_ms());
        for effect in self.turn.pending() {
            let TurnEffect::RunTool { key, action, attended } = effect else { continue };
            let Some(input) = self.over_at_once(key, &action, attended) else { continue };
            self.turn.look_ahead(events, now_ms());
            events.extend(self.decide(input));
            if events.iter().any(|event| matches!(event, Event::TurnEnded(_))) {
                // The end of the turn must be committed first, with the turn's assignment.
                break;
            }
        }
    }

    fn over_at_once(&mut self, key: String, action: &Action, attended: bool) -> Option<TurnInput> {
        let started = Instant::now();
        let cx = self.tool_context(&key, action.reach, attended);
        let call = self.turn.call(&key)?;
        let brief = || self.frame.registry.run_inline(&cx, &call.tool, &call.input, action);
        // A tool that panics here panics on a thread of its own, too, and is reported then.
        let ended = catch_unwind(AssertUnwindSafe(brief)).ok().flatten()?;
        Some(tool_ended(key, ended, false, millis(started)))
    }
}

/// Whether all effects of a decision are read-only.
fn only_looks(events: &[Event]) -> bool {
    let mut intents = events.iter().filter_map(|event| match event {
        Event::ToolIntent(intent) => Some(intent.class == Repeatability::Pure),
        _ => None,
    });
    intents.next().is_some_and(|is_pure| is_pure && intents.all(|is_pure| is_pure))
}
