//! Why an agent is idle.
//!
//! The JSON form is one English sentence, because programs that read events and `ps --json` know these sentences. A
//! sentence that is not known here (a name, an error, a text of another version) is kept as it is.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::event::TurnOutcome;
use crate::id::SessionId;
use crate::turn::Turn;

const STOPPED: &str = "it was stopped";
const TEAM: &str = "a team waits to begin";
const DECISION: &str = "a decision: ";
const MESSAGES: &str = "messages wait: ";
const NO_CLAIMS: &str = "it was stopped and takes no tasks: /continue ";
const NO_PROCESS: &str = "no process runs this session: max-team -r ";

/// Why an agent is idle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdleReason {
    /// There is nothing left to do.
    Done,
    /// Something must come first; all of these.
    WaitingFor(WaitTargets),
    /// It cannot continue before a person acts.
    Blocked(BlockCause),
    /// It failed its task.
    Failed(FailureCause),
}

/// The people, agents and things that an agent waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct WaitTargets(pub Vec<WaitTarget>);

/// One that an agent waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitTarget {
    /// The person at the terminal.
    You,
    /// The lead, who assigns work to members.
    Lead,
    /// The user, who assigns work to the lead.
    User,
    /// A free place: the task could begin.
    Place,
    /// The model server, which cannot be reached.
    Server,
    /// Worktrees for teammates that are about to begin.
    Worktrees,
    /// An agent or a task.
    Named(String),
}

/// What keeps an agent from continuing until a person acts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum BlockCause {
    /// The budget is used up.
    Budget,
    /// The lead or the user must decide what follows from this error.
    Decision(String),
    /// So many messages wait since a stop.
    Messages(usize),
    /// The agent with this name was stopped and claims no task from the shared list.
    NoClaims(String),
    /// No process runs the session.
    NoProcess { session: SessionId, left: Option<SuspendedWork> },
    /// A sentence that this version does not know.
    Other(String),
}

/// What waits in a session that no process runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SuspendedWork {
    /// So many messages, since a stop.
    Messages(usize),
    /// The agent with this name was stopped and claims no task.
    NoClaims(String),
    /// Its turn was stopped.
    Stopped,
    /// Teammates that are to begin.
    Team,
}

/// Why an agent has failed its task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum FailureCause {
    /// The turn was stopped.
    Stopped,
    /// The model refused to answer.
    Refused,
    /// The model returned no content.
    Empty,
    /// The answer never matched the required schema.
    Unstructured,
    /// The model repeated itself.
    Looping,
    /// The limit of model rounds was reached.
    Rounds,
    /// The budget is used up.
    Budget,
    /// The answer was cut at the model's output limit.
    Truncated,
    /// The process ended during a model call.
    Lost,
    /// The error that ended the work.
    Error(String),
}

impl IdleReason {
    pub fn waits_for(target: WaitTarget) -> Self {
        Self::WaitingFor(WaitTargets(vec![target]))
    }

    /// Whether it says that messages wait since a stop.
    pub fn is_unread(&self) -> bool {
        use BlockCause::{Messages, NoProcess};
        matches!(self, Self::Blocked(Messages(_) | NoProcess { left: Some(SuspendedWork::Messages(_)), .. }))
    }

    /// Why an agent is idle after its last turn.
    pub fn of_last(turn: &Turn) -> Option<Self> {
        Some(Self::of(&turn.last()?.end))
    }

    /// Why an agent is idle after a turn with this end.
    pub fn of(end: &TurnOutcome) -> Self {
        match end {
            TurnOutcome::Answered | TurnOutcome::Proposed | TurnOutcome::Truncated => Self::Done,
            TurnOutcome::Budget => Self::Blocked(BlockCause::Budget),
            end => FailureCause::of(end).map_or(Self::Done, Self::Failed),
        }
    }

    /// The sentence behind it; `None` where there is nothing left to do.
    pub fn detail(&self) -> Option<String> {
        match self {
            Self::Done => None,
            Self::WaitingFor(targets) => Some(targets.to_string()),
            Self::Blocked(cause) => Some(cause.to_string()),
            Self::Failed(cause) => Some(cause.to_string()),
        }
    }

    /// Changes the sentence behind it, for example to bound its length; what `edit` returns, `false` if there is none.
    pub fn edit_detail(&mut self, edit: impl FnOnce(&mut String) -> bool) -> bool {
        let Some(mut text) = self.detail() else { return false };
        let edited = edit(&mut text);
        match self {
            Self::Done => {}
            Self::WaitingFor(targets) => *targets = text.into(),
            Self::Blocked(cause) => *cause = text.into(),
            Self::Failed(cause) => *cause = text.into(),
        }
        edited
    }

    /// The same reason in a session that no process runs.
    pub(super) fn without_process(this: Option<Self>, session: SessionId) -> Self {
        let left = match this {
            Some(Self::Blocked(BlockCause::Messages(count))) => Some(SuspendedWork::Messages(count)),
            Some(Self::Blocked(BlockCause::NoClaims(name))) => Some(SuspendedWork::NoClaims(name)),
            Some(Self::Failed(FailureCause::Stopped)) => Some(SuspendedWork::Stopped),
            Some(Self::WaitingFor(targets)) if targets.0 == [WaitTarget::Worktrees] => Some(SuspendedWork::Team),
            _ => None,
        };
        Self::Blocked(BlockCause::NoProcess { session, left })
    }
}

impl FailureCause {
    /// Why a turn with this end has no plain answer; `None` if it has one.
    pub fn of(end: &TurnOutcome) -> Option<Self> {
        Some(match end {
            TurnOutcome::Answered | TurnOutcome::Proposed => return None,
            TurnOutcome::Interrupted => Self::Stopped,
            TurnOutcome::Failed { detail, .. } | TurnOutcome::Broken { detail } => Self::Error(detail.clone()),
            TurnOutcome::Refused => Self::Refused,
            TurnOutcome::Empty => Self::Empty,
            TurnOutcome::Unstructured => Self::Unstructured,
            TurnOutcome::Looping => Self::Looping,
            TurnOutcome::Rounds => Self::Rounds,
            TurnOutcome::Budget => Self::Budget,
            TurnOutcome::Truncated => Self::Truncated,
        })
    }

    /// Changes the sentence, for example to bound its length; returns what `edit` returns.
    pub fn edit(&mut self, edit: impl FnOnce(&mut String) -> bool) -> bool {
        let mut text = self.to_string();
        let edited = edit(&mut text);
        *self = text.into();
        edited
    }
}

impl fmt::Display for WaitTargets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, target) in self.0.iter().enumerate() {
            write!(f, "{}{target}", if number == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl fmt::Display for WaitTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::You => "you",
            Self::Lead => "the lead",
            Self::User => "the user",
            Self::Place => "a free place",
            Self::Server => "the model server",
            Self::Worktrees => "copies of the project",
            Self::Named(name) => name,
        })
    }
}

impl fmt::Display for BlockCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Budget => f.write_str("the budget is used up"),
            Self::Decision(error) => write!(f, "{DECISION}{error}"),
            Self::Messages(count) => write!(f, "{MESSAGES}{count}"),
            Self::NoClaims(name) => write!(f, "{NO_CLAIMS}{name}"),
            Self::NoProcess { session, left: Some(left) } => write!(f, "{left}; {NO_PROCESS}{session}"),
            Self::NoProcess { session, left: None } => write!(f, "{NO_PROCESS}{session}"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for SuspendedWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Messages(count) => write!(f, "{MESSAGES}{count}"),
            Self::NoClaims(name) => write!(f, "{NO_CLAIMS}{name}"),
            Self::Stopped => f.write_str(STOPPED),
            Self::Team => f.write_str(TEAM),
        }
    }
}

impl fmt::Display for FailureCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stopped => STOPPED,
            Self::Refused => "the model refused to answer",
            Self::Empty => "the model said nothing",
            Self::Unstructured => "the model never gave the structured answer",
            Self::Looping => "the model repeated itself",
            Self::Rounds => "the limit of rounds was reached",
            Self::Budget => "the budget is used up",
            Self::Truncated => "the answer was too long and is cut",
            Self::Lost => "the process died while the model was called",
            Self::Error(detail) => detail,
        })
    }
}

impl From<String> for WaitTargets {
    fn from(text: String) -> Self {
        let target = |text: &str| {
            use WaitTarget::{Lead, Place, Server, User, Worktrees, You};
            let known = [You, Lead, User, Place, Server, Worktrees].into_iter().find(|known| known.to_string() == text);
            known.unwrap_or_else(|| WaitTarget::Named(text.to_owned()))
        };
        Self(text.split(", ").map(target).collect())
    }
}

impl From<String> for BlockCause {
    fn from(text: String) -> Self {
        let parsed = if text == Self::Budget.to_string() {
            Some(Self::Budget)
        } else if let Some(error) = text.strip_prefix(DECISION) {
            Some(Self::Decision(error.to_owned()))
        } else if let Some((left, session)) = text.split_once(NO_PROCESS) {
            no_process(left, session)
        } else {
            match SuspendedWork::parse(&text) {
                Some(SuspendedWork::Messages(count)) => Some(Self::Messages(count)),
                Some(SuspendedWork::NoClaims(name)) => Some(Self::NoClaims(name)),
                _ => None,
            }
        };
        parsed.unwrap_or(Self::Other(text))
    }
}

/// A session that no process runs, from the text before its sentence and its id.
fn no_process(left: &str, session: &str) -> Option<BlockCause> {
    let session = session.parse().ok()?;
    let left = match left.strip_suffix("; ") {
        Some(left) => Some(SuspendedWork::parse(left)?),
        None if left.is_empty() => None,
        None => return None,
    };
    Some(BlockCause::NoProcess { session, left })
}

impl SuspendedWork {
    fn parse(text: &str) -> Option<Self> {
        if let Some(count) = text.strip_prefix(MESSAGES) {
            return count.parse().ok().map(Self::Messages);
        }
        if let Some(name) = text.strip_prefix(NO_CLAIMS) {
            return Some(Self::NoClaims(name.to_owned()));
        }
        [Self::Stopped, Self::Team].into_iter().find(|known| known.to_string() == text)
    }
}

impl From<String> for FailureCause {
    fn from(text: String) -> Self {
        use FailureCause::{Budget, Empty, Looping, Lost, Refused, Rounds, Stopped, Truncated, Unstructured};
        let known = [Stopped, Refused, Empty, Unstructured, Looping, Rounds, Budget, Truncated, Lost];
        known.into_iter().find(|known| known.to_string() == text).unwrap_or(Self::Error(text))
    }
}

impl From<WaitTargets> for String {
    fn from(targets: WaitTargets) -> Self {
        targets.to_string()
    }
}

impl From<BlockCause> for String {
    fn from(cause: BlockCause) -> Self {
        cause.to_string()
    }
}

impl From<FailureCause> for String {
    fn from(cause: FailureCause) -> Self {
        cause.to_string()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_json_form_is_an_english_sentence() {
        let session = SessionId::new(Uuid::from_u128(7));
        let parked = |left| IdleReason::Blocked(BlockCause::NoProcess { session, left });
        let no_process =
            |words: &str| json!({ "blocked": format!("{words}no process runs this session: max-team -r {session}") });
        let waits = |targets: &[WaitTarget]| IdleReason::WaitingFor(WaitTargets(targets.to_vec()));
        let table = [
            (IdleReason::Done, json!("done")),
            (waits(&[WaitTarget::You]), json!({ "waiting_for": "you" })),
            (waits(&[WaitTarget::Worktrees]), json!({ "waiting_for": "copies of the project" })),
            (waits(&[WaitTarget::Named("eva".into()), WaitTarget::Lead]), json!({ "waiting_for": "eva, the lead" })),
            (IdleReason::Blocked(BlockCause::Budget), json!({ "blocked": "the budget is used up" })),
            (IdleReason::Blocked(BlockCause::Decision("no".into())), json!({ "blocked": "a decision: no" })),
            (IdleReason::Blocked(BlockCause::Messages(2)), json!({ "blocked": "messages wait: 2" })),
            (
                IdleReason::Blocked(BlockCause::NoClaims("eva".into())),
                json!({ "blocked": "it was stopped and takes no tasks: /continue eva" }),
            ),
            (
                IdleReason::Blocked(BlockCause::Other("messages wait: many".into())),
                json!({ "blocked": "messages wait: many" }),
            ),
            (parked(None), no_process("")),
            (parked(Some(SuspendedWork::Messages(1))), no_process("messages wait: 1; ")),
            (
                parked(Some(SuspendedWork::NoClaims("eva".into()))),
                no_process("it was stopped and takes no tasks: /continue eva; "),
            ),
            (parked(Some(SuspendedWork::Stopped)), no_process("it was stopped; ")),
            (parked(Some(SuspendedWork::Team)), no_process("a team waits to begin; ")),
            (IdleReason::Failed(FailureCause::Rounds), json!({ "failed": "the limit of rounds was reached" })),
            (IdleReason::Failed(FailureCause::Error("no key".into())), json!({ "failed": "no key" })),
        ];
        for (reason, json) in table {
            assert_eq!(serde_json::to_value(&reason).unwrap(), json);
            assert_eq!(serde_json::from_value::<IdleReason>(json).unwrap(), reason);
        }
    }

    #[test]
    fn an_edited_sentence_is_read_again() {
        let mut reason = IdleReason::Blocked(BlockCause::Decision("a long error".into()));
        assert!(reason.edit_detail(|text| {
            text.truncate(18);
            true
        }));
        assert_eq!(reason, IdleReason::Blocked(BlockCause::Decision("a long".into())));
        assert!(!IdleReason::Done.edit_detail(|_| true));
    }
}
