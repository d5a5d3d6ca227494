//! A turn's view of its agent as a member of a team: its role, its requests to others, and whether it has ended.

use super::{Phase, RunningTurn, ToolCall, ToolCallStatus, Turn};
use crate::delegation::tool_filter::{SEND_MESSAGE, SPAWN_TEAMMATE};
use crate::event::{Event, QuestionAnswered};
use crate::id::{EnvelopeId, QuestionId, TurnId};
use crate::interrupt::Hold;
use crate::limits::MAIL_WAITING_MAX;
use crate::message::{Assignment, Envelope, MessageKind};
use crate::policy::{Action, ActionKind, DecidedBy, Grant, GrantScope};
use crate::teammate::name::{self, Addressee};
use crate::teammate::report::{self, TurnTrigger};
use crate::teammate::requests::Requests;
use crate::teammate::{AgentEnded, CommandBegun, Teammate};

impl Turn {
    /// Whether the agent can begin a turn: it has settings and has not ended.
    pub(super) fn can_begin(&self) -> bool {
        self.settings.is_some() && self.team.gone.is_none()
    }

    /// Folds in an event about the agent as a member of a team.
    pub(super) fn apply_team(&mut self, event: &Event) {
        match event {
            Event::Requested(asked) => self.team.requests.ask(asked),
            Event::Responded(responded) => self.team.requests.close(responded),
            Event::MessageRefused(refused) if refused.kind == MessageKind::TeamRequest => {
                self.keep_refused(refused.envelope)
            }
            Event::AgentEnded(ended) => self.team.gone = Some(ended.clone()),
            Event::Granted(granted) => {
                for grant in &granted.grants {
                    if !self.grants.contains(grant) {
                        self.grants.push(grant.clone());
                    }
                }
            }
            Event::CommandBegun(begun) => self.team.commands.push(begun.clone()),
            Event::CommandOver(over) => self.team.commands.retain(|known| known.id != over.id),
            _ => {}
        }
    }

    /// The agent's name and role as a teammate, if it is one.
    pub fn teammate(&self) -> Option<&Teammate> {
        self.first_assignment()?.life.teammate()
    }

    /// The task that a teammate was started for.
    pub fn first_assignment(&self) -> Option<&Assignment> {
        self.identity.as_ref()?.teammate.as_deref()
    }

    /// Whether neither a plan nor a caller waits for the agent, judged by the task it was started with (`None` for a
    /// lead) and its unread messages. That includes an agent that was called once and now works for a person, will do
    /// so, or did when it was stopped.
    pub fn has_no_waiter(&self, given: Option<&Assignment>, mail: &[Envelope]) -> bool {
        let halted = || self.halted().and_then(|halted| halted.assignment.as_deref());
        let is_users = || {
            let is_at = self.assignment().or_else(halted).is_some_and(Assignment::is_for_user);
            is_at || mail.iter().any(|envelope| envelope.from.starts_with("user/"))
        };
        given.is_none_or(|given| given.plan.is_none() && (!given.life.is_call() || is_users()))
    }

    /// Puts an idle teammate on hold by a session stop that was not written to it, unless it has begun a turn since.
    pub fn hold_idle(&mut self, since: Option<TurnId>) {
        if self.teammate().is_some() && !self.is_busy() && self.newest() < since {
            let hold = self.held().cloned().unwrap_or_default();
            self.stop.known = Some(Box::new(Hold { since, ..hold }));
        }
    }

    /// Records a refused request as long as it may be in the mailbox, which holds no more than this many.
    fn keep_refused(&mut self, envelope: EnvelopeId) {
        let over = (self.team.refused.len() + 1).saturating_sub(MAIL_WAITING_MAX);
        self.team.refused.drain(..over);
        self.team.refused.push(envelope);
    }

    /// Whether this request for teammates was refused. It stays in the mailbox until their worktrees are removed.
    pub fn has_refused(&self, envelope: EnvelopeId) -> bool {
        self.team.refused.contains(&envelope)
    }

    /// The end of the agent, if it has ended.
    pub fn agent_end(&self) -> Option<&AgentEnded> {
        self.team.gone.as_ref()
    }

    /// The permissions that a person's answer grants for the session to the whole team. An answer for the project is one for
    /// the session, too, because open questions are not judged again by the project's rules.
    pub fn shared_grants(&self, answered: &QuestionAnswered) -> Vec<Grant> {
        let QuestionAnswered { question, answer } = answered;
        let is_lasting = matches!(answer.until, GrantScope::Session | GrantScope::Repository);
        let is_yes = answer.allow && answer.always && is_lasting && matches!(answer.by, DecidedBy::Person(_));
        // Changes in a worktree are reviewed once more before the merge; in the project they would not be, so an approval there
        // is not shared. A host that data was sent to is the same host everywhere.
        let is_in_copy = self.settings.as_ref().is_some_and(|settings| !settings.permissions.copy.is_empty());
        let is_host = || self.asked_action(*question).is_some_and(|action| action.kind == ActionKind::Fetch);
        if is_yes && (!is_in_copy || is_host()) { self.grants_of(*question) } else { Vec::new() }
    }

    /// The rules that an approval of the open question for the session would add.
    pub fn grants_of(&self, question: QuestionId) -> Vec<Grant> {
        self.granted(question, GrantScope::Session)
    }

    /// Its background commands that are recorded as running.
    pub fn commands(&self) -> &[CommandBegun] {
        &self.team.commands
    }

    /// Consecutive turns that only teammates' messages began.
    pub fn teammate_only_turns(&self) -> u32 {
        self.team.echoes
    }

    /// Length of the chain of teammate messages that led to its last turn.
    pub fn hops(&self) -> u32 {
        self.team.hops
    }

    /// Its requests to other agents.
    pub fn requests(&self) -> &Requests {
        &self.team.requests
    }

    /// What began the running turn, if the agent is a teammate.
    pub fn trigger(&self) -> Option<TurnTrigger> {
        let current = self.current.as_ref().filter(|_| self.teammate().is_some())?;
        Some(trigger(current.assignment.as_deref(), current.quiet))
    }

    /// Whether its lead gave it a task, and it waited for teammates at its last report.
    pub fn owes_report(&self) -> bool {
        self.team.owes
    }

    /// Whether a teammate rests without a report on what its lead gave it: it waits for a message.
    pub fn rests_unreported(&self) -> bool {
        let is_silent = || self.last().is_some_and(|ended| report::says_wait(&ended.text));
        !self.is_busy() && self.team.gone.is_none() && self.team.owes && is_silent()
    }

    /// Whether a turn may end without words: a teammate's that has written to colleagues and waits for them.
    pub(super) fn may_end_silently(&self, current: &RunningTurn) -> bool {
        self.teammate().is_some() && current.work.wrote
    }

    /// Whether only teammates' messages began the running turn, so that no reader waits for its answer.
    pub fn is_quiet(&self) -> bool {
        self.current.as_ref().is_some_and(|current| current.quiet)
    }

    /// The action that an open question is about.
    pub fn asked_action(&self, asked: QuestionId) -> Option<&Action> {
        let Phase::Working(calls) = &self.phase else { return None };
        calls.iter().find_map(|call| match &call.status {
            ToolCallStatus::Asked { question, action, .. } if *question == asked => Some(action),
            _ => None,
        })
    }

    /// Why a message does not count as the answer to a question; `None` if it does. A person may answer every
    /// question, a lead only the one about its teammate's plan.
    pub fn answer_error(&self, asked: QuestionId, envelope: &Envelope) -> Option<&'static str> {
        let is_lead = self.first_assignment().is_some_and(|given| given.reply_to == envelope.from);
        match self.asked_action(asked) {
            None => Some("nothing waits for this answer (any more)"),
            Some(action) if envelope.kind == MessageKind::PlanApprovalResponse => (action.kind != ActionKind::Propose
                || !is_lead)
                .then_some("only its lead answers, and only about its plan"),
            Some(_) => (!envelope.from.starts_with("user/")).then_some("only a person answers this"),
        }
    }
}

/// The cause of a teammate's turn: its assignment, and whether only teammates wrote.
pub fn trigger(given: Option<&Assignment>, quiet: bool) -> TurnTrigger {
    match given {
        _ if quiet => TurnTrigger::Colleague,
        Some(given) if given.is_for_user() => TurnTrigger::User,
        _ => TurnTrigger::Lead,
    }
}

/// Whether a call writes to a teammate other than the lead.
pub(super) fn is_to_colleague(call: &ToolCall) -> bool {
    let to = call.input.get("to").and_then(|to| to.as_str()).unwrap_or_default();
    call.tool == SEND_MESSAGE && name::resolve(to, "") != Addressee::Lead
}

/// Whether calls answer the team: some of them answer a member or decide about a failed task, and others at most add notes to
/// tasks.
pub(super) fn answer_team(calls: &[ToolCall]) -> bool {
    let says = |call: &ToolCall, fields: &[&str]| {
        let is_said = |field: &&str| call.input.get(*field).is_some_and(|value| !value.is_null());
        call.tool == crate::task_list::UPDATE && fields.iter().any(is_said)
    };
    calls.iter().any(|call| says(call, &["answer", "decision"]))
        && calls.iter().all(|call| says(call, &["answer", "decision", "note"]))
}

/// Whether the calls of an answer end the turn: a teammate waits for the answers to its messages, or a lead for the reports of
/// the teammates that it has just started.
pub(super) fn end_turn(is_teammate: bool, calls: &[ToolCall]) -> bool {
    let waits = |call: &ToolCall| call.input.get("wait").and_then(|wait| wait.as_bool()).unwrap_or_default();
    if is_teammate {
        return calls.iter().all(|call| call.tool == SEND_MESSAGE && waits(call));
    }
    calls.iter().all(|call| call.tool == SPAWN_TEAMMATE) && calls.iter().any(waits)
}
