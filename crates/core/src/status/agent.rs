//! The state of one agent, from its turn, its unread messages and its task.

use serde::{Deserialize, Serialize};

use super::reason::{BlockCause, FailureCause, IdleReason, WaitTarget, WaitTargets};
use crate::id::SessionId;
use crate::message::{Envelope, MessageKind};
use crate::plan::{TaskView, WaitReason};
use crate::policy::{ActionKind, DecidedBy};
use crate::turn::{HaltedTurn, NEED_CLARIFY, Turn, TurnEffect, is_stop};

/// The stages of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentStage {
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

impl AgentStage {
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

/// Where an agent's work comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkSource {
    Lead,
    User,
}

impl From<WorkSource> for WaitTarget {
    fn from(source: WorkSource) -> Self {
        match source {
            WorkSource::Lead => Self::Lead,
            WorkSource::User => Self::User,
        }
    }
}

/// What an agent is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
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
    pub standing: AgentStage,
    /// Why it is idle.
    pub reason: Option<IdleReason>,
    /// What it does.
    pub doing: Option<Activity>,
}

/// Facts about an agent that its own events do not contain.
#[derive(Debug, Clone, Copy)]
pub struct StatusFacts<'a> {
    /// Its unread messages.
    pub mail: &'a [Envelope],
    /// Whether it leads the session.
    pub is_lead: bool,
    /// Whether a process runs the session.
    pub is_run: bool,
    /// Whether it was stopped, and therefore takes no task from the shared list.
    pub takes_no_task: bool,
    /// Where its work comes from.
    pub giver: WorkSource,
    /// Whether the result of a tool comes as a message of another agent.
    pub answers_by_mail: fn(&str, ActionKind) -> bool,
}

impl AgentStatus {
    fn new(standing: AgentStage, reason: Option<IdleReason>, doing: Option<Activity>) -> Self {
        Self { standing, reason, doing }
    }

    /// The state of an agent by its own events.
    pub fn of_turn(turn: &Turn, about: &StatusFacts<'_>) -> Self {
        let waiting = turn.waiting(about.mail, about.is_lead);
        if !turn.is_busy() {
            return Self::at_rest(turn, about, waiting);
        }
        if !about.is_run && about.mail.iter().any(is_stop) {
            // The stop was written while no process ran the session; the turn will not continue.
            let reason = match waiting {
                0 => IdleReason::Failed(FailureCause::Stopped),
                count => IdleReason::Blocked(BlockCause::Messages(count)),
            };
            return Self::new(AgentStage::Stopped, Some(reason), None);
        }
        let pending = turn.pending();
        let all: Vec<WaitTarget> = pending.iter().filter_map(|effect| waits_for(turn, effect, about)).collect();
        let doing = pending.first().map(|effect| Activity::after_turn(turn, effect));
        if !pending.is_empty() && all.len() == pending.len() {
            return Self::new(AgentStage::Ready, Some(IdleReason::WaitingFor(WaitTargets(all))), doing);
        }
        Self::new(AgentStage::Busy, None, doing)
    }

    /// The state of an agent between two turns.
    fn at_rest(turn: &Turn, about: &StatusFacts<'_>, waiting: usize) -> Self {
        if turn.would_begin(about.mail, about.is_lead) {
            // Such a message is read at once, unless worktrees must be made first.
            let is_made = about.is_lead && about.mail.iter().any(|envelope| envelope.kind == MessageKind::TeamRequest);
            let reason = is_made.then(|| IdleReason::waits_for(WaitTarget::Worktrees));
            return Self::new(AgentStage::Starting, reason, None);
        }
        if waiting > 0 {
            return Self::new(AgentStage::Stopped, Some(IdleReason::Blocked(BlockCause::Messages(waiting))), None);
        }
        if about.takes_no_task {
            let name = turn.teammate().map(|teammate| teammate.name.clone()).unwrap_or_default();
            return Self::new(AgentStage::Stopped, Some(IdleReason::Blocked(BlockCause::NoClaims(name))), None);
        }
        // A teammate that a person stopped continues when it is told to, and is idle until it is written to.
        let is_stopped =
            turn.teammate().is_some() && turn.agent_end().is_none() && turn.halted().is_some_and(is_by_person);
        Self::new(if is_stopped { AgentStage::Stopped } else { AgentStage::Ready }, IdleReason::of_last(turn), None)
    }

    /// The state of the owner of a task, where the task tells more than its own events.
    pub fn of_task(view: &TaskView<'_>) -> Option<Self> {
        let ready = |reason: IdleReason| Some(Self::new(AgentStage::Ready, Some(reason), None));
        match &view.waits {
            WaitReason::Checks => Some(Self::new(AgentStage::Busy, None, Some(Activity::Checked))),
            WaitReason::Retry { at_ms } => {
                let reason = IdleReason::Failed(FailureCause::Error(view.error.to_owned()));
                Some(Self::new(AgentStage::Ready, Some(reason), Some(Activity::Retrying { at_ms: *at_ms })))
            }
            WaitReason::Ruling => ready(IdleReason::Blocked(BlockCause::Decision(view.error.to_owned()))),
            WaitReason::Stopped => {
                Some(Self::new(AgentStage::Stopped, Some(IdleReason::Failed(FailureCause::Stopped)), None))
            }
            WaitReason::Budget => ready(IdleReason::Blocked(BlockCause::Budget)),
            WaitReason::Answer(_) => ready(IdleReason::waits_for(WaitTarget::Lead)),
            WaitReason::Place => ready(IdleReason::waits_for(WaitTarget::Place)),
            WaitReason::Server => ready(IdleReason::waits_for(WaitTarget::Server)),
            WaitReason::No | WaitReason::For(_) | WaitReason::Approval => None,
        }
    }

    /// The state of an agent that was shut down, or that has done all that it was started for.
    pub fn over(reason: Option<IdleReason>) -> Self {
        Self::new(AgentStage::Stopped, reason, None)
    }

    /// The same state in a session that no process runs: its agents are idle until it is opened.
    #[must_use]
    pub fn without_process(self, session: SessionId) -> Self {
        Self::over(Some(IdleReason::without_process(self.reason, session)))
    }
}

/// What an effect waits for, if anything.
fn waits_for(turn: &Turn, effect: &TurnEffect, about: &StatusFacts<'_>) -> Option<WaitTarget> {
    match effect {
        // A plan is shown to the agent or person that gave the work.
        TurnEffect::Ask { action, .. } if action.kind == ActionKind::Propose => Some(about.giver.into()),
        TurnEffect::Ask { .. } => Some(WaitTarget::You),
        TurnEffect::RunTool { key, action, .. } => turn.call(key).and_then(|call| match call.tool.as_str() {
            NEED_CLARIFY => Some(about.giver.into()),
            tool if (about.answers_by_mail)(tool, action.kind) => Some(WaitTarget::Named(action.target.clone())),
            _ => None,
        }),
        _ => None,
    }
}

/// Whether an agent was stopped by a person, and not by an agent or the clock.
fn is_by_person(halted: &HaltedTurn) -> bool {
    matches!(halted.who, Some(DecidedBy::Person(_)))
}

impl Activity {
    fn after_turn(turn: &Turn, effect: &TurnEffect) -> Self {
        match effect {
            TurnEffect::CallModel(intent) => {
                Self::Calling { model: intent.model.name.clone(), attempt: intent.attempt }
            }
            TurnEffect::Prepare(_) => Self::Preparing,
            TurnEffect::RunTool { key, action, .. } => {
                let tool = turn.call(key).map_or_else(String::new, |call| call.tool.clone());
                Self::Running { tool, target: action.target.clone() }
            }
            TurnEffect::Ask { tool, action, .. } => Self::Asking { tool: tool.clone(), target: action.target.clone() },
            TurnEffect::Sleep { until_ms } => Self::Retrying { at_ms: *until_ms },
            TurnEffect::Afford => Self::Affording,
            TurnEffect::CancelAll => Self::Stopping,
        }
    }
}
