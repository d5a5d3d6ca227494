//! What a turn knows of its agent as one of a team: who it is, what it has asked of others, whether it is still there.

use super::{Call, Current, Phase, Status, TASK_UPDATE, Turn};
use crate::calling::hands::SEND_MESSAGE;
use crate::event::{Event, QuestionAnswered};
use crate::id::{EnvelopeId, QuestionId, TurnId};
use crate::limits::MAIL_WAITING_MAX;
use crate::mates::name::{self, Means};
use crate::mates::report::Trigger;
use crate::mates::requests::Requests;
use crate::mates::{AgentEnded, CommandBegun, Teammate};
use crate::message::{Assignment, Envelope, Kind};
use crate::policy::{Action, By, Deed, Grant, Until};
use crate::stop::Held;

impl Turn {
    /// Whether a turn can begin, as far as its agent is concerned.
    pub(super) fn can_begin(&self) -> bool {
        self.settings.is_some() && self.gone.is_none()
    }

    /// Folds an event in that is about its agent as one of a team.
    pub(super) fn apply_team(&mut self, event: &Event) {
        match event {
            Event::Requested(asked) => self.requests.ask(asked),
            Event::Responded(responded) => self.requests.close(responded),
            Event::LetterRefused(refused) if refused.kind == Kind::TeamRequest => self.keep_refused(refused.letter),
            Event::AgentEnded(ended) => self.gone = Some(ended.clone()),
            Event::Granted(granted) => {
                for grant in &granted.grants {
                    if !self.grants.contains(grant) {
                        self.grants.push(grant.clone());
                    }
                }
            }
            Event::CommandBegun(begun) => self.commands.push(begun.clone()),
            Event::CommandOver(over) => self.commands.retain(|known| known.id != over.id),
            _ => {}
        }
    }

    /// Who it is as a teammate, if it is one.
    pub fn mate(&self) -> Option<&Teammate> {
        self.engaged()?.life.mate()
    }

    /// What a teammate was started for.
    pub fn engaged(&self) -> Option<&Assignment> {
        self.identity.as_ref()?.mate.as_deref()
    }

    /// Whether nobody waits for it, neither a plan nor a call, by what it was started with (nothing: a lead) and what it has to
    /// read: also one that was called once and goes on for a person, or will, or did when it was stopped.
    pub fn is_apart(&self, given: Option<&Assignment>, mail: &[Envelope]) -> bool {
        let halted = || self.halted().and_then(|halted| halted.assignment.as_deref());
        let is_users = || {
            let is_at = self.assignment().or_else(halted).is_some_and(Assignment::is_for_user);
            is_at || mail.iter().any(|letter| letter.from.starts_with("user/"))
        };
        given.is_none_or(|given| given.plan.is_none() && (!given.life.is_call() || is_users()))
    }

    /// Everybody was stopped, which a teammate that rests needs no entry of its own for: what turns that began before write to it is no
    /// news, as long as it has begun nothing since.
    pub fn know_stop(&mut self, since: Option<TurnId>) {
        if self.mate().is_some() && !self.is_busy() && self.newest() < since {
            let held = self.held().cloned().unwrap_or_default();
            self.known = Some(Box::new(Held { since, ..held }));
        }
    }

    /// It matters as long as the letter lies in the mailbox, which has no room for more.
    fn keep_refused(&mut self, letter: EnvelopeId) {
        let over = (self.refused.len() + 1).saturating_sub(MAIL_WAITING_MAX);
        self.refused.drain(..over);
        self.refused.push(letter);
    }

    /// Whether nobody begins whom this letter names, which lies in the mailbox until what was made for them is gone.
    pub fn has_refused(&self, letter: EnvelopeId) -> bool {
        self.refused.contains(&letter)
    }

    /// That it is no more, if so.
    pub fn gone(&self) -> Option<&AgentEnded> {
        self.gone.as_ref()
    }

    /// What a person allows with an answer for as long as the session is, whoever asked.
    pub fn shared_grants(&self, answered: &QuestionAnswered) -> Vec<Grant> {
        let QuestionAnswered { question, answer } = answered;
        let is_shared = answer.allow && answer.always && answer.until == Until::Session;
        if is_shared && matches!(answer.by, By::Person(_)) { self.granted(*question, answer.until) } else { Vec::new() }
    }

    /// The rules that an approval of the open question for the session would add.
    pub fn grants_of(&self, question: QuestionId) -> Vec<Grant> {
        self.granted(question, Until::Session)
    }

    /// Its commands that run in the background, as far as it was written down.
    pub fn commands(&self) -> &[CommandBegun] {
        &self.commands
    }

    /// Turns since somebody other than a colleague wanted something of it.
    pub fn echoes(&self) -> u32 {
        self.echoes
    }

    /// How many letters of colleagues, each written because of the one before, led to its last turn.
    pub fn hops(&self) -> u32 {
        self.hops
    }

    /// What it has asked of others.
    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    /// What began the turn that runs, if it is a teammate's.
    pub fn trigger(&self) -> Option<Trigger> {
        let current = self.current.as_ref().filter(|_| self.mate().is_some())?;
        Some(trigger(current.assignment.as_deref(), current.quiet))
    }

    /// Whether it was given something by its lead and waited for colleagues when it last reported.
    pub fn owes(&self) -> bool {
        self.owes
    }

    /// Whether a turn may end without words: a teammate's that has written to colleagues and waits for them.
    pub(super) fn may_say_nothing(&self, current: &Current) -> bool {
        self.mate().is_some() && current.wrote
    }

    /// Whether nobody waits for what comes of the turn that runs.
    pub fn is_quiet(&self) -> bool {
        self.current.as_ref().is_some_and(|current| current.quiet)
    }

    /// What it asks with a question that is open.
    pub fn asks(&self, asked: QuestionId) -> Option<&Action> {
        let Phase::Working(calls) = &self.phase else { return None };
        calls.iter().find_map(|call| match &call.status {
            Status::Asked { question, action, .. } if *question == asked => Some(action),
            _ => None,
        })
    }

    /// Why a letter that answers a question does not count; `None`: it does. A person answers everything, a lead only
    /// about the plan of its teammate.
    pub fn misanswers(&self, asked: QuestionId, letter: &Envelope) -> Option<&'static str> {
        let is_lead = self.engaged().is_some_and(|given| given.reply_to == letter.from);
        match self.asks(asked) {
            None => Some("nothing waits for this answer (any more)"),
            Some(action) if letter.kind == Kind::PlanApprovalResponse => {
                (action.deed != Deed::Propose || !is_lead).then_some("only its lead answers, and only about its plan")
            }
            Some(_) => (!letter.from.starts_with("user/")).then_some("only a person answers this"),
        }
    }
}

/// The cause of a teammate's turn: its assignment, and whether only teammates wrote.
pub fn trigger(given: Option<&Assignment>, quiet: bool) -> Trigger {
    match given {
        _ if quiet => Trigger::Colleague,
        Some(given) if given.is_for_user() => Trigger::User,
        _ => Trigger::Lead,
    }
}

/// Whether a call writes to a colleague other than the lead.
pub(super) fn is_to_colleague(call: &Call) -> bool {
    let to = call.input.get("to").and_then(|to| to.as_str()).unwrap_or_default();
    call.tool == SEND_MESSAGE && name::means(to, "") != Means::Lead
}

/// Whether calls answer the team: some of them answer a member or decide about a failed task, and others at most add notes to
/// tasks.
pub(super) fn answer_team(calls: &[Call]) -> bool {
    let says = |call: &Call, fields: &[&str]| {
        let is_said = |field: &&str| call.input.get(*field).is_some_and(|value| !value.is_null());
        call.tool == TASK_UPDATE && fields.iter().any(is_said)
    };
    calls.iter().any(|call| says(call, &["answer", "decision"]))
        && calls.iter().all(|call| says(call, &["answer", "decision", "note"]))
}

/// Whether a call sends a message and ends the turn of its sender, who waits for the answer.
pub(super) fn ends_turn(call: &Call) -> bool {
    call.tool == SEND_MESSAGE && call.input.get("wait").and_then(|wait| wait.as_bool()).unwrap_or_default()
}
