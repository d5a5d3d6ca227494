//! The state of one agent, from its turn, its unread messages and its task.

use serde::{Deserialize, Serialize};

use crate::event::End;
use crate::id::SessionId;
use crate::message::{Envelope, Kind};
use crate::plan::{TaskView, Waits};
use crate::policy::{By, Deed};
use crate::turn::{Effect, Halted, NEED_CLARIFY, Turn, is_stop};

/// The stages of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// A plan that is not approved yet names it.
    Created,
    /// It has messages and has not begun.
    Starting,
    /// It is idle and could begin at once.
    Ready,
    /// It is in a turn.
    Busy,
    /// It has ended, or no process runs it.
    Stopped,
}

impl Standing {
    pub fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Busy => "busy",
            Self::Stopped => "stopped",
        }
    }
}

/// Why an agent is idle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// There is nothing left to do.
    Done,
    /// Something must come first.
    WaitingFor(String),
    /// It cannot continue before a person acts.
    Blocked(String),
    /// It failed its task.
    Failed(String),
}

impl Reason {
    /// The person at the terminal, as the one who is waited for.
    pub const YOU: &str = "you";
    /// The lead, as the one who assigns work to members.
    pub const LEAD: &str = "the lead";
    /// The user, as the one who assigns work to the lead.
    pub const USER: &str = "the user";
    /// What a task that could begin waits for.
    pub const PLACE: &str = "a free place";
    /// The reason of a task whose model server cannot be reached.
    pub const SERVER: &str = "the model server";
    /// What teammates that are about to begin wait for.
    pub const COPIES: &str = "copies of the project";
    /// Teammates wait to begin in a session that no process runs.
    pub const TEAM: &str = "a team waits to begin";
    /// Why no model is called any more.
    pub const BUDGET: &str = "the budget is used up";
    /// The turn was stopped.
    pub const STOPPED: &str = "it was stopped";
    /// The model refused to answer.
    pub const REFUSED: &str = "the model refused to answer";
    /// The model returned no content.
    pub const EMPTY: &str = "the model said nothing";
    /// The answer does not match the required schema.
    pub const UNSTRUCTURED: &str = "the model never gave the structured answer";
    /// The model repeated itself.
    pub const LOOPING: &str = "the model repeated itself";
    /// The limit of model rounds was reached.
    pub const ROUNDS: &str = "the limit of rounds was reached";
    /// Prefix of an error that needs a decision.
    pub const DECISION: &str = "a decision: ";
    /// Prefix of the number of messages that wait since a stop.
    pub const LETTERS: &str = "messages wait: ";

    /// Prefix of the name of an agent that claims tasks by itself, was stopped and claims none.
    pub const CLAIMS: &str = "it was stopped and takes no tasks: /continue ";

    /// Whether it says that messages wait since a stop.
    pub fn is_unread(&self) -> bool {
        matches!(self, Self::Blocked(why) if why.starts_with(Self::LETTERS))
    }

    /// This many messages wait since a stop.
    fn unread(count: usize) -> Self {
        Self::Blocked(format!("{}{count}", Self::LETTERS))
    }

    /// Why an agent is idle after its last turn.
    pub fn of_last(turn: &Turn) -> Option<Self> {
        Some(Self::of(&turn.last()?.end))
    }

    /// Why an agent is idle after a turn with this end.
    pub fn of(end: &End) -> Self {
        match end {
            End::Answered | End::Proposed | End::Truncated => Self::Done,
            End::Budget => Self::Blocked(Self::BUDGET.to_owned()),
            End::Interrupted => Self::Failed(Self::STOPPED.to_owned()),
            End::Failed { detail, .. } | End::Broken { detail } => Self::Failed(detail.clone()),
            End::Refused => Self::Failed(Self::REFUSED.to_owned()),
            End::Empty => Self::Failed(Self::EMPTY.to_owned()),
            End::Unstructured => Self::Failed(Self::UNSTRUCTURED.to_owned()),
            End::Looping => Self::Failed(Self::LOOPING.to_owned()),
            End::Rounds => Self::Failed(Self::ROUNDS.to_owned()),
        }
    }
}

/// What an agent is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// Calls a model.
    Calling {
        model: String,
        /// Counts the attempts at this call from 1.
        attempt: u32,
    },
    /// Runs a tool.
    Running {
        tool: String,
        /// The path, command or host.
        target: String,
    },
    /// Asks a person.
    Asking {
        /// The tool that needs approval.
        tool: String,
        /// The path, command or host.
        target: String,
    },
    /// Waits for the next attempt.
    Retrying {
        /// When the next attempt begins.
        at_ms: i64,
    },
    /// Waits for budget that calls of other agents have reserved.
    Affording,
    /// Judges what a call would do.
    Preparing,
    /// Its work is being checked.
    Checked,
    /// It is being stopped.
    Stopping,
}

/// The state of an agent: what it does, or why it is idle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentStatus {
    /// Its current stage.
    pub standing: Standing,
    /// Why it is idle.
    pub reason: Option<Reason>,
    /// What it does.
    pub doing: Option<Doing>,
}

/// Facts about an agent that its own events do not contain.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// Its unread messages.
    pub mail: &'a [Envelope],
    /// Whether it leads the session.
    pub is_lead: bool,
    /// Whether a process runs the session.
    pub is_run: bool,
    /// Whether it was stopped, and therefore takes no task from the shared list.
    pub takes_no_task: bool,
    /// Where its work comes from: the lead or the user.
    pub giver: &'a str,
    /// Whether the result of a tool comes as a message of another agent.
    pub answers_by_mail: fn(&str, Deed) -> bool,
}

impl AgentStatus {
    fn new(standing: Standing, reason: Option<Reason>, doing: Option<Doing>) -> Self {
        Self { standing, reason, doing }
    }

    /// The state of an agent by its own events.
    pub fn of_turn(turn: &Turn, about: &Surroundings<'_>) -> Self {
        let waiting = turn.waiting(about.mail, about.is_lead);
        if !turn.is_busy() {
            return Self::at_rest(turn, about, waiting);
        }
        if !about.is_run && about.mail.iter().any(is_stop) {
            // The stop was written while no process ran the session; the turn will not continue.
            let reason = if waiting > 0 { Reason::unread(waiting) } else { Reason::Failed(Reason::STOPPED.to_owned()) };
            return Self::new(Standing::Stopped, Some(reason), None);
        }
        let pending = turn.pending();
        let all: Vec<String> = pending.iter().filter_map(|effect| waits_for(turn, effect, about)).collect();
        let doing = pending.first().map(|effect| Doing::of(turn, effect));
        if !pending.is_empty() && all.len() == pending.len() {
            return Self::new(Standing::Ready, Some(Reason::WaitingFor(all.join(", "))), doing);
        }
        Self::new(Standing::Busy, None, doing)
    }

    /// The state of an agent between two turns.
    fn at_rest(turn: &Turn, about: &Surroundings<'_>, waiting: usize) -> Self {
        if turn.would_begin(about.mail, about.is_lead) {
            // Such a message is read at once, unless worktrees must be made first.
            let is_made = about.is_lead && about.mail.iter().any(|letter| letter.kind == Kind::TeamRequest);
            let reason = is_made.then(|| Reason::WaitingFor(Reason::COPIES.to_owned()));
            return Self::new(Standing::Starting, reason, None);
        }
        if waiting > 0 {
            return Self::new(Standing::Stopped, Some(Reason::unread(waiting)), None);
        }
        if about.takes_no_task {
            let name = turn.mate().map(|mate| mate.name.as_str()).unwrap_or_default();
            return Self::new(Standing::Stopped, Some(Reason::Blocked(format!("{}{name}", Reason::CLAIMS))), None);
        }
        // A teammate that a person stopped continues when it is told to, and is idle until it is written to.
        let is_stopped = turn.mate().is_some() && turn.gone().is_none() && turn.halted().is_some_and(is_by_person);
        Self::new(if is_stopped { Standing::Stopped } else { Standing::Ready }, Reason::of_last(turn), None)
    }

    /// The state of the owner of a task, where the task tells more than its own events.
    pub fn of_task(view: &TaskView<'_>) -> Option<Self> {
        let ready = |reason: Reason| Some(Self::new(Standing::Ready, Some(reason), None));
        match &view.waits {
            Waits::Checks => Some(Self::new(Standing::Busy, None, Some(Doing::Checked))),
            Waits::Retry { at_ms } => {
                let reason = Reason::Failed(view.error.to_owned());
                Some(Self::new(Standing::Ready, Some(reason), Some(Doing::Retrying { at_ms: *at_ms })))
            }
            Waits::Ruling => ready(Reason::Blocked(format!("{}{}", Reason::DECISION, view.error))),
            Waits::Stopped => {
                Some(Self::new(Standing::Stopped, Some(Reason::Failed(Reason::STOPPED.to_owned())), None))
            }
            Waits::Budget => ready(Reason::Blocked(Reason::BUDGET.to_owned())),
            Waits::Answer(_) => ready(Reason::WaitingFor(Reason::LEAD.to_owned())),
            Waits::Place => ready(Reason::WaitingFor(Reason::PLACE.to_owned())),
            Waits::Server => ready(Reason::WaitingFor(Reason::SERVER.to_owned())),
            Waits::No | Waits::For(_) | Waits::Approval => None,
        }
    }

    /// The state of an agent that was shut down, or that has done all that it was started for.
    pub fn over(reason: Option<Reason>) -> Self {
        Self::new(Standing::Stopped, reason, None)
    }

    /// The same state in a session that no process runs: its agents are idle until it is opened.
    #[must_use]
    pub fn without_process(self, session: SessionId) -> Self {
        let words = format!("no process runs this session: max-team -r {session}");
        let words = match self.reason {
            Some(Reason::Blocked(why)) if why.starts_with(Reason::LETTERS) || why.starts_with(Reason::CLAIMS) => {
                format!("{why}; {words}")
            }
            Some(Reason::Failed(why)) if why == Reason::STOPPED => format!("{why}; {words}"),
            Some(Reason::WaitingFor(what)) if what == Reason::COPIES => format!("{}; {words}", Reason::TEAM),
            _ => words,
        };
        Self::over(Some(Reason::Blocked(words)))
    }
}

/// What an effect waits for, if anything.
fn waits_for(turn: &Turn, effect: &Effect, about: &Surroundings<'_>) -> Option<String> {
    match effect {
        // A plan is shown to the agent or person that gave the work.
        Effect::Ask { action, .. } if action.deed == Deed::Propose => Some(about.giver.to_owned()),
        Effect::Ask { .. } => Some(Reason::YOU.to_owned()),
        Effect::RunTool { key, action, .. } => turn.call(key).and_then(|call| match call.tool.as_str() {
            NEED_CLARIFY => Some(about.giver.to_owned()),
            tool if (about.answers_by_mail)(tool, action.deed) => Some(action.target.clone()),
            _ => None,
        }),
        _ => None,
    }
}

/// Whether an agent was stopped by a person, and not by an agent or the clock.
fn is_by_person(halted: &Halted) -> bool {
    matches!(halted.who, Some(By::Person(_)))
}

impl Doing {
    fn of(turn: &Turn, effect: &Effect) -> Self {
        match effect {
            Effect::CallModel(intent) => Self::Calling { model: intent.model.name.clone(), attempt: intent.attempt },
            Effect::Prepare(_) => Self::Preparing,
            Effect::RunTool { key, action, .. } => {
                let tool = turn.call(key).map_or_else(String::new, |call| call.tool.clone());
                Self::Running { tool, target: action.target.clone() }
            }
            Effect::Ask { tool, action, .. } => Self::Asking { tool: tool.clone(), target: action.target.clone() },
            Effect::Sleep { until_ms } => Self::Retrying { at_ms: *until_ms },
            Effect::Afford => Self::Affording,
            Effect::CancelAll => Self::Stopping,
        }
    }
}
