//! The state of an agent's turn that the stream needs: the round, and the calls of the last answer.
//!
//! It follows from the entries since the beginning of the turn. A reader that begins in the middle of a turn reads
//! back that far, and so has the same state as one that read from the start.

use std::collections::HashMap;

use max_team_core::event::{Event, LlmOutcome};
use max_team_core::ledger::Price;
use max_team_core::limits::STREAM_ARGS_BYTES_MAX;
use max_team_core::turn::call_key;
use max_team_journal::Journal;

use crate::error::RuntimeError;
use crate::rows::event_of;

/// Entries that are read at a time on the way back to the beginning of a turn.
const PAGE: usize = 64;
/// The event that begins a turn.
const BEGINNING: &str = "turn_started";

/// The state of an agent's turn.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Bench {
    /// The round of the turn.
    pub(super) iteration: u32,
    /// The model of the present or last call.
    pub(super) model: String,
    /// The price of that model.
    pub(super) price: Option<Price>,
    /// The running call: its number and its attempt.
    pub(super) calling: Option<(u32, u32)>,
    /// Calls of the last answer: tool and input by key.
    pub(super) calls: HashMap<String, (String, String)>,
}

impl Bench {
    /// Folds an event.
    pub(super) fn take(&mut self, event: &Event) {
        match event {
            Event::TurnStarted(_) => *self = Self::default(),
            Event::LlmIntent(intent) => {
                if intent.attempt == 1 && intent.summary.is_none() {
                    self.iteration += 1;
                }
                self.model.clone_from(&intent.model.name);
                (self.price, self.calling) = (intent.model.price, Some((intent.call, intent.attempt)));
            }
            Event::LlmEnded(ended) => {
                self.calling = None;
                if let (false, LlmOutcome::Done(answer)) = (ended.summary, &ended.outcome) {
                    let uses = answer.message.tool_uses().enumerate();
                    let known = uses.map(|(index, (_, tool, input))| {
                        let mut input = input.to_string();
                        // Twice what is shown, so that the text can be recognised as cut.
                        input.truncate(input.floor_char_boundary(2 * STREAM_ARGS_BYTES_MAX));
                        (call_key(ended.call, index), (tool.to_owned(), input))
                    });
                    self.calls = known.collect();
                }
            }
            _ => {}
        }
    }

    /// The state before an entry of its stream.
    pub(super) fn before(journal: &Journal, stream: &str, stream_seq: u64) -> Result<Self, RuntimeError> {
        let mut bench = Self::default();
        let last = stream_seq.saturating_sub(1);
        let mut after = begin(journal, stream, last)?;
        while after < last {
            let entries = journal.read(stream, after, PAGE)?;
            let Some(read) = entries.last() else { break };
            after = read.stream_seq;
            for entry in entries.iter().filter(|entry| entry.stream_seq <= last) {
                // An erased or unreadable entry adds nothing.
                event_of(entry).into_iter().for_each(|event| bench.take(&event));
            }
        }
        Ok(bench)
    }
}

/// The place before the last turn that begins at or before an entry; the beginning of the stream if none does.
fn begin(journal: &Journal, stream: &str, last: u64) -> Result<u64, RuntimeError> {
    let mut upto = last;
    while upto > 0 {
        let after = upto.saturating_sub(PAGE as u64);
        let entries = journal.read(stream, after, usize::try_from(upto - after).unwrap_or(usize::MAX))?;
        if let Some(found) = entries.iter().rev().find(|entry| entry.event == BEGINNING) {
            return Ok(found.stream_seq.saturating_sub(1));
        }
        upto = after;
    }
    Ok(0)
}
