//! What is over at once is done between a decision and its commit, so that one commit tells both.
//!
//! Only what looks and changes nothing: if the process dies before the commit, nothing has happened, and whoever goes on
//! looks again. The gate has judged it by then, as for everything else.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use max_team_core::event::Event;
use max_team_core::policy::{Action, Class};
use max_team_core::turn::{Effect, Input};

use super::flight::tool_ended;
use super::{Agent, millis};

impl Agent {
    /// Does what of a decision is over at once, and adds what follows from it. How many of the events the turn has seen then:
    /// all that others were decided upon.
    pub(super) fn do_briefly(&mut self, events: &mut Vec<Event>) -> usize {
        let mut seen = 0;
        if self.resumed || !only_looks(events) {
            return seen;
        }
        self.see(events, &mut seen);
        for effect in self.turn.pending() {
            let Effect::RunTool { key, action, attended } = effect else { continue };
            let Some(input) = self.over_at_once(key, &action, attended) else { continue };
            self.see(events, &mut seen);
            events.extend(self.decide(input));
            if events.iter().any(|event| matches!(event, Event::TurnEnded(_))) {
                // Whose turn it was is still to be written.
                break;
            }
        }
        seen
    }

    fn see(&mut self, events: &[Event], seen: &mut usize) {
        events.iter().skip(*seen).for_each(|event| self.turn.apply(event));
        *seen = events.len();
    }

    fn over_at_once(&mut self, key: String, action: &Action, attended: bool) -> Option<Input> {
        let started = Instant::now();
        let cx = self.tool_context(&key, attended);
        let call = self.turn.call(&key)?;
        let brief = || self.frame.registry.run_at_once(&cx, &call.tool, &call.input, action);
        // One that breaks here breaks on a thread of its own, too, and is told then.
        let ended = catch_unwind(AssertUnwindSafe(brief)).ok().flatten()?;
        Some(tool_ended(key, ended, false, millis(started)))
    }
}

/// Whether everything that a decision is about to do only looks.
fn only_looks(events: &[Event]) -> bool {
    let mut intents = events.iter().filter_map(|event| match event {
        Event::ToolIntent(intent) => Some(intent.class == Class::Pure),
        _ => None,
    });
    intents.next().is_some_and(|is_pure| is_pure && intents.all(|is_pure| is_pure))
}
