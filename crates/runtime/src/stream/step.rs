//! What happens in a session, as the stream tells it.
//!
//! In JSON this is an English text; a frontend says it in the user's language.

use std::fmt;

use max_team_core::id::SessionId;
use max_team_core::message::MessageKind;
use max_team_core::plan::event::PlanQuestion;
use max_team_core::rewind::MovedFile;
use max_team_core::task_list::{ListTaskStatus, TaskNumber};
use serde::{Deserialize, Serialize};

use crate::plan::about_words;

/// A step of an agent, a question, or the text of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum StepText {
    /// A text that is shown as it is; also any step that was read from JSON.
    Text(String),
    SessionBegins {
        cwd: String,
    },
    /// The session continues another one from this entry on.
    Forked {
        session: SessionId,
        seq: u64,
    },
    Nudged(String),
    Stopped {
        by: String,
    },
    Steered(String),
    TaskDrafted(String),
    CompactionAsked,
    Compacted {
        before: usize,
        after: usize,
    },
    CompactionFailed(String),
    Uncompacted,
    Requested {
        kind: MessageKind,
        to: String,
    },
    Responded(MessageKind),
    Unanswered,
    MessageRefused {
        kind: MessageKind,
        from: String,
        why: String,
    },
    Ended {
        by: String,
        reason: String,
        forced: bool,
    },
    ReviewBegun,
    /// Permissions of this agent hold for others, too.
    Granted {
        asker: String,
    },
    CommandBegun {
        id: String,
        name: String,
    },
    CommandStopped {
        id: String,
    },
    CommandOver {
        id: String,
    },
    ItemAdded {
        id: TaskNumber,
        subject: String,
    },
    ItemWritten {
        id: TaskNumber,
        subject: String,
    },
    ItemMoved {
        id: TaskNumber,
        status: ListTaskStatus,
        owner: String,
    },
    /// Files were put back; so many could not be.
    FilesRestored {
        failed: usize,
    },
    FileMoved(MovedFile),
    PlanAsks(PlanQuestion),
}

impl StepText {
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_empty())
    }

    /// Changes the text, for example to bound its length; returns what `edit` returns.
    pub(super) fn edit(&mut self, edit: impl FnOnce(&mut String) -> bool) -> bool {
        let before = self.to_string();
        let mut text = before.clone();
        let edited = edit(&mut text);
        if text != before {
            *self = Self::Text(text);
        }
        edited
    }
}

impl Default for StepText {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl From<String> for StepText {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<StepText> for String {
    fn from(step: StepText) -> Self {
        step.to_string()
    }
}

impl fmt::Display for StepText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::SessionBegins { cwd } => write!(f, "the session begins in {cwd}"),
            Self::Forked { session, seq } => write!(f, "goes on from {session} behind {seq}"),
            Self::Nudged(text) => write!(f, "the model is told: {text}"),
            Self::Stopped { by } => write!(f, "stopped by {by}"),
            Self::Steered(text) => write!(f, "is told on its way: {text}"),
            Self::TaskDrafted(id) => write!(f, "task `{id}` is written down"),
            Self::CompactionAsked => f.write_str("what was said so far is to be summed up"),
            Self::Compacted { before, after } => write!(f, "{before} messages are told in {after} from now on"),
            Self::CompactionFailed(why) => write!(f, "there is no summary: {why}"),
            Self::Uncompacted => f.write_str("the last summary counts no more"),
            Self::Requested { kind, to } => write!(f, "{} is sent to {to}", kind.name()),
            Self::Responded(kind) => write!(f, "{} has come", kind.name()),
            Self::Unanswered => f.write_str("no answer came in time"),
            Self::MessageRefused { kind, from, why } => write!(f, "{} of {from} is refused: {why}", kind.name()),
            Self::Ended { by, reason, forced } => {
                let forced = if *forced { ", forced" } else { "" };
                f.write_str(format!("ended by {by}{forced} {reason}").trim_end())
            }
            Self::ReviewBegun => f.write_str("its changes in its worktree are reviewed"),
            Self::Granted { asker } => write!(f, "may do what {asker} was allowed for the session"),
            Self::CommandBegun { id, name } => write!(f, "{id} runs in the background: {name}"),
            Self::CommandStopped { id } => write!(f, "{id} was stopped"),
            Self::CommandOver { id } => write!(f, "{id} is over"),
            Self::ItemAdded { id, subject } => write!(f, "task #{id} is added: {subject}"),
            Self::ItemWritten { id, subject } => write!(f, "task #{id} says: {subject}"),
            Self::ItemMoved { id, status, owner } => {
                let owner = if owner.is_empty() { "nobody" } else { owner };
                write!(f, "task #{id} is {}, of {owner}", status.name())
            }
            Self::FilesRestored { failed } => write!(f, "files were put back; {failed} could not be"),
            Self::FileMoved(MovedFile { path, to }) => {
                write!(f, "a command made the protected file {path} without approval; ")?;
                match to.as_str() {
                    "" => f.write_str("it could not be moved away"),
                    to => write!(f, "it was moved to {to}"),
                }
            }
            Self::PlanAsks(about) => f.write_str(&about_words(about)),
        }
    }
}
