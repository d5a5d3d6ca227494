//! The part of an agent's conversation that a fork continues with.
//!
//! The original is not changed: the fork begins a stream of its own, with this as one of its first events.

use serde::{Deserialize, Serialize};

use super::decide::ended;
use super::tools::tool_done_with;
use super::{Phase, ToolCallStatus, Turn};
use crate::chat::{Message, Part};
use crate::context::summary::Compacted;
use crate::context::{RequestSize, Window};
use crate::event::{Event, ToolOutcome, TurnEnded, TurnOutcome};
use crate::id::{AgentId, SessionId};

const NOT_RUN: &str = "Not run: the conversation goes on from here in another session.";
const UNKNOWN: &str = "Outcome unknown: the conversation goes on from here in another session, and this ran in the earlier \
                       one. Check before doing it again.";

/// A conversation without its cost, its sub-agents and its permissions.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct InheritedConversation {
    /// What was said.
    pub history: Vec<Message>,
    /// Positions of the messages that began a turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<usize>,
    /// The part of it that requests carry.
    #[serde(default)]
    pub window: Window,
    /// Compactions of messages that have left the window.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compactions: Vec<Compacted>,
    /// How the last turn ended; a running one counts as interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<TurnEnded>,
    /// Bytes per thousand tokens, as learnt so far.
    #[serde(default)]
    pub bytes_per_kilotoken: u64,
}

/// An agent continues from another agent's history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Forked {
    /// The session of the original.
    pub session: SessionId,
    /// The original agent.
    pub agent: AgentId,
    /// The last entry of the journal that is part of the history.
    pub seq: u64,
    /// The history that it continues with.
    pub past: InheritedConversation,
}

impl Turn {
    /// The conversation for a fork. Calls that are under way here count there as after a crash: reported as not run or
    /// unknown, and never repeated.
    pub fn inherited_conversation(&self) -> InheritedConversation {
        let mut turn = self.clone();
        if let Phase::Working(calls) = &self.phase {
            let open = calls.iter().filter_map(|call| match &call.status {
                ToolCallStatus::Asked { action, .. } if action.asking_call().is_some() => {
                    Some((call, ToolOutcome::Unknown, UNKNOWN))
                }
                ToolCallStatus::Open | ToolCallStatus::Asked { .. } => Some((call, ToolOutcome::Interrupted, NOT_RUN)),
                ToolCallStatus::Intended { .. } => Some((call, ToolOutcome::Unknown, UNKNOWN)),
                ToolCallStatus::Done { .. } => None,
            });
            open.for_each(|(call, ending, words)| {
                turn.apply(&Event::ToolDone(tool_done_with(call.key.clone(), ending, words)))
            });
        }
        if let Some(current) = &self.current {
            turn.apply(&Event::TurnEnded(ended(current, TurnOutcome::Interrupted, None)));
        }
        let starts = turn.conversation.weights.iter().enumerate().filter(|(_, weight)| weight.starts_turn);
        InheritedConversation {
            turns: starts.map(|(index, _)| index).collect(),
            window: turn.conversation.window,
            compactions: turn.conversation.compactions,
            // The fork has spent nothing.
            last: turn.last.map(|last| TurnEnded { charges: Vec::new(), ..last }),
            bytes_per_kilotoken: turn.conversation.bytes_per_kilotoken,
            history: turn.conversation.history,
        }
    }

    /// Begins with the history of another agent.
    pub(super) fn inherit(&mut self, past: &InheritedConversation) {
        let weigh = |(index, message): (usize, &Message)| RequestSize::of_message(message, past.turns.contains(&index));
        self.conversation.weights = past.history.iter().enumerate().map(weigh).collect();
        self.conversation.history.clone_from(&past.history);
        self.conversation.window = past.window;
        self.conversation.compactions.clone_from(&past.compactions);
        self.last.clone_from(&past.last);
        self.conversation.bytes_per_kilotoken = past.bytes_per_kilotoken;
    }
}

impl InheritedConversation {
    /// The same history with a note of the program at its end; an empty one gets no note.
    #[must_use]
    pub fn with_note(mut self, words: &str) -> Self {
        if !self.history.is_empty() {
            self.history.push(Message::user(vec![Part::text(words)]));
        }
        self
    }
}
