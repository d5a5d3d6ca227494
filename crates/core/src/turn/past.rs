//! What of an agent's conversation somebody else can go on with.
//!
//! The past itself is not rewritten: whoever goes on begins a stream of its own, with this as one of its first events.

use serde::{Deserialize, Serialize};

use super::decide::ended;
use super::tools::told;
use super::{Phase, Status, Turn};
use crate::chat::{Message, Part};
use crate::context::summary::Compacted;
use crate::context::{Weight, Window};
use crate::event::{End, Ending, Event, TurnEnded};
use crate::id::{AgentId, SessionId};
use crate::plan::Task;

const NOT_RUN: &str = "Not run: the conversation goes on from here in another session.";
const UNKNOWN: &str = "Outcome unknown: the conversation goes on from here in another session, and this ran in the earlier \
                       one. Check before doing it again.";

/// A conversation, without what it cost, whom it had at work, and what it was allowed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Past {
    /// What was said.
    pub history: Vec<Message>,
    /// The messages that began a turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<usize>,
    /// The part of it that requests carry.
    #[serde(default)]
    pub window: Window,
    /// What has left the window and is told in short.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compactions: Vec<Compacted>,
    /// Tasks that were written down and not proposed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drafts: Vec<Task>,
    /// How the last turn ended; one that was cut off was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<TurnEnded>,
    /// Bytes of a thousand tokens, as far as it was learnt.
    #[serde(default)]
    pub bytes_per_kilotoken: u64,
}

/// An agent goes on from another's past.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Forked {
    /// The session it was.
    pub session: SessionId,
    /// The agent it was.
    pub agent: AgentId,
    /// The last entry of the journal that is part of the past.
    pub seq: u64,
    /// What it goes on with.
    pub past: Past,
}

impl Turn {
    /// What somebody else could go on with. What is under way here is left open; there it is as after a crash: reported as
    /// not run or unknown, and done again by nobody.
    pub fn past(&self) -> Past {
        let mut turn = self.clone();
        if let Phase::Working(calls) = &self.phase {
            let open = calls.iter().filter_map(|call| match &call.status {
                Status::Open | Status::Asked { .. } => Some((call, Ending::Interrupted, NOT_RUN)),
                Status::Intended { .. } => Some((call, Ending::Unknown, UNKNOWN)),
                Status::Done { .. } => None,
            });
            open.for_each(|(call, ending, words)| turn.apply(&Event::ToolDone(told(call.key.clone(), ending, words))));
        }
        if let Some(current) = &self.current {
            turn.apply(&Event::TurnEnded(ended(current, End::Interrupted, None)));
        }
        let starts = turn.weights.iter().enumerate().filter(|(_, weight)| weight.starts_turn);
        Past {
            turns: starts.map(|(index, _)| index).collect(),
            window: turn.window,
            compactions: turn.compactions,
            drafts: turn.drafts,
            // Whoever goes on has spent nothing.
            last: turn.last.map(|last| TurnEnded { charges: Vec::new(), ..last }),
            bytes_per_kilotoken: turn.bytes_per_kilotoken,
            history: turn.history,
        }
    }

    /// Begins with another's past.
    pub(super) fn inherit(&mut self, past: &Past) {
        let weigh = |(index, message): (usize, &Message)| Weight::of(message, past.turns.contains(&index));
        self.weights = past.history.iter().enumerate().map(weigh).collect();
        self.history.clone_from(&past.history);
        self.window = past.window;
        self.compactions.clone_from(&past.compactions);
        self.drafts.clone_from(&past.drafts);
        self.last.clone_from(&past.last);
        self.bytes_per_kilotoken = past.bytes_per_kilotoken;
    }
}

impl Past {
    /// The same with a word of ours at its end; where nothing was said there is nothing to say about it.
    #[must_use]
    pub fn noted(mut self, words: &str) -> Self {
        if !self.history.is_empty() {
            self.history.push(Message::user(vec![Part::text(words)]));
        }
        self
    }
}
