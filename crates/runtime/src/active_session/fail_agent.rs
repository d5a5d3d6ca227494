//! Ends the work of an agent that cannot run: its worktree is gone, there is no sandbox for it, or its loop has
//! crashed.
//!
//! One commit ends its turn in its own stream, acknowledges its mail, and tells the agents that wait for it why. No
//! other agent does the work instead.

use std::borrow::Cow;
use std::sync::Arc;

use max_team_core::body::{Body, ReturnCause, TaskResult, Undelivered, Work};
use max_team_core::event::{Event, TurnOutcome};
use max_team_core::hash::Hash;
use max_team_core::id::{AgentId, EnvelopeId};
use max_team_core::ledger::RemainingBudget;
use max_team_core::message::{Assignment, Envelope, MessageKind};
use max_team_core::plan::event::ResourceUse;
use max_team_core::task_list::{Claimant, ReleaseReason};
use max_team_core::teammate::report::FAILED;
use max_team_core::teammate::{AgentEnded, Lifetime, shutdown};
use max_team_core::turn::{PromptRef, Turn, TurnEnv, TurnInput};
use max_team_journal::Durability;
use tokio::sync::mpsc;

use super::{ActiveSession, Activity};
use crate::agent::{Control, answering, decided, derived, to_people};
use crate::driver::{Driver, Part};
use crate::error::RuntimeError;
use crate::handle::Origin;
use crate::rows::TeammateRow;
use crate::shared::{new_id, now_ms};
use crate::{rows, session, team_tools};

impl ActiveSession {
    /// Answers for an agent until nothing is left to answer.
    pub(super) async fn fail_agent(self: &Arc<Self>, agent: AgentId, why: &str, mut controls: mpsc::Receiver<Control>) {
        let address = session::agent_stream(agent);
        let mut turn = match self.turn_of(agent) {
            Ok(turn) => turn,
            Err(error) => return self.tell_stopped(&address, error),
        };
        while !self.is_closing() {
            if let Err(error) = self.end_work(agent, &mut turn, why).await {
                return self.tell_stopped(&address, error);
            }
            while controls.try_recv().is_ok() {}
            self.report(&address, Activity::Idle, false).await;
            if self.leave(&address, &controls).await {
                return;
            }
        }
    }

    fn turn_of(&self, agent: AgentId) -> Result<Driver<Turn>, RuntimeError> {
        let (turn, head) = self.shared.fold_agent(agent)?;
        let type_name = || turn.identity().map_or_else(String::new, |(_, _, definition)| definition.name.clone());
        let name = turn.teammate().map_or_else(type_name, |teammate| teammate.name.clone());
        let origin = Origin { name: name.into(), ..Origin::agent(agent) };
        Ok(Driver::new(session::agent_stream(agent), origin, turn, head))
    }

    /// Ends the agent's turn and answers its mail, in one commit.
    async fn end_work(
        self: &Arc<Self>,
        agent: AgentId,
        turn: &mut Driver<Turn>,
        why: &str,
    ) -> Result<(), RuntimeError> {
        let mail = self.mail(&turn.stream, true)?;
        let at_ms = now_ms();
        let mut events = turn.decide(TurnInput::Broken { detail: why.to_owned() }, &now(at_ms));
        let mut commit = turn.commit_at(self, at_ms, 0);
        for event in &events {
            turn.append(event, &mut commit)?;
        }
        commit.projections.push(rows::at_rest(agent));
        commit.acks = mail.iter().map(|envelope| envelope.id).collect();
        commit.sends = failure_messages(turn, &events, &mail, why, at_ms);
        // A teammate that cannot work can still be shut down.
        if let Some((teammate, envelope)) = turn.teammate().zip(mail.iter().find(|envelope| shutdown::is_end(envelope)))
        {
            let by = envelope.asker().to_owned();
            let (session, reason) = (self.session, why.to_owned());
            let ended = AgentEnded { session, name: teammate.name.clone(), by, reason, forced: true };
            let row = TeammateRow { agent, color: String::new(), claims: false, gone: Some(ended.clone()) };
            // Its background commands ended with its loop.
            let commands = turn.commands().iter().map(|begun| Event::CommandOver(begun.lost()));
            for event in commands.chain([Event::AgentEnded(ended)]) {
                turn.append(&event, &mut commit)?;
                events.push(event);
            }
            self.know_teammate(&teammate.name, row)?;
        }
        // Before its end is published: an agent that is told of it may claim the tasks that it held.
        let doer = Claimant { at: turn.stream.clone(), name: turn.origin.name.to_string(), steers: false };
        self.give_back(&doer, ReleaseReason::Died, false, Arc::clone(&turn.origin)).await?;
        let word = self.shared.notices.ticket();
        let told = to_people(&commit.sends);
        if !told.is_empty() {
            // People read these messages at once, so they must survive a power cut.
            commit.strength = Durability::Full;
        }
        let part = Part::hand_in(self, commit, Vec::new(), events.len()).await?;
        turn.stored(self, part, at_ms).await?;
        // The cost of its running model call will never be reported: the reservation counts as spent.
        let reserved = (turn.ledger().reserved_nano, 0);
        let plan = self.plan_behind(&turn.stream);
        self.shared_pool(plan).settle(reserved, reserved);
        turn.catch_up(&events, at_ms);
        turn.will_tell(self, word, at_ms, events.into_iter().chain(told));
        turn.tell();
        Ok(())
    }
}

/// The messages to the agents that wait for an agent whose work has failed; `turn` is its state before `events`.
fn failure_messages(turn: &Driver<Turn>, events: &[Event], mail: &[Envelope], why: &str, at_ms: i64) -> Vec<Envelope> {
    let given = |envelope: &Envelope| envelope.task().assignment.map(Cow::into_owned);
    let assigned = mail.iter().filter(|envelope| envelope.kind == MessageKind::TaskAssign);
    let waiting = assigned.filter_map(|envelope| Some((given(envelope)?, Some(envelope.id))));
    let current = turn.assignment().filter(|_| turn.is_busy()).map(|given| (given.clone(), turn.began_with()));
    let is_teammate = turn.teammate().is_some();
    let is_apart = is_teammate || turn.assignment().is_some_and(|given| given.life == Lifetime::Background);
    let (address, name) = (turn.stream.as_str(), &*turn.origin.name);
    let failure = AgentFailure { address, name, is_teammate: is_apart, why, spent: spent(turn), at_ms };
    let answers = current.into_iter().chain(waiting).map(|(given, asked)| failure.answer(&given, asked));
    let mut messages: Vec<Envelope> = answers.collect();
    // An agent that only waited for the decision about its changes has done its work.
    let came_to = events.iter().find_map(|event| match event {
        Event::TurnEnded(over) => Some(over.text.as_str()),
        _ => None,
    });
    messages.extend(turn.review_message().zip(came_to).and_then(|(envelope, text)| decided(envelope, text, at_ms)));
    if is_teammate {
        let is_missed = |envelope: &&Envelope| given(envelope).is_none() && shutdown::returns_to_sender(envelope.kind);
        messages.extend(mail.iter().filter(is_missed).map(|envelope| failure.returned(envelope)));
    }
    messages
}

/// What is reported for an agent that cannot run.
struct AgentFailure<'a> {
    address: &'a str,
    name: &'a str,
    /// It is a teammate: its end is news, and its unread messages are returned.
    is_teammate: bool,
    why: &'a str,
    spent: ResourceUse,
    at_ms: i64,
}

impl AgentFailure<'_> {
    /// The result as the answer to the message that gave the task.
    fn answer(&self, given: &Assignment, asked: Option<EnvelopeId>) -> Envelope {
        answering(self.envelope(given), asked)
    }

    fn envelope(&self, given: &Assignment) -> Envelope {
        let end = TurnOutcome::Broken { detail: self.why.to_owned() };
        let work = Work {
            assignment: Some(Cow::Borrowed(given)),
            call: &given.task,
            is_error: true,
            error: self.why,
            end: Some(end),
            spent: Some(self.spent),
            ms: Some(self.spent.ms),
            by: self.name,
            ..Work::default()
        };
        let result = match self.is_teammate {
            true => TaskResult { teammate: Some(self.name), from: self.name, reason: FAILED, ..TaskResult::default() },
            false => TaskResult::default(),
        };
        let body = Body::Result(Box::new(TaskResult { text: self.why, work, ..result }));
        Envelope::new(
            derived(&[self.address.as_bytes(), given.task.as_bytes(), &given.attempt.to_be_bytes(), b"excuse"]),
            self.address,
            &given.reply_to,
            MessageKind::TaskResult,
            body,
            self.at_ms,
        )
    }

    /// An unread message goes back to its sender.
    fn returned(&self, envelope: &Envelope) -> Envelope {
        let said = team_tools::title(envelope.text());
        let cause = ReturnCause::Failed(self.why.to_owned());
        let why = cause.to_string();
        let text = format!("A message to `{}` was not read, because {why}: {said}", self.name);
        Envelope::new(
            derived(&[envelope.id.to_string().as_bytes(), envelope.from.as_bytes(), b"returned"]),
            self.address,
            &envelope.from,
            MessageKind::Undelivered,
            Body::Undelivered(Undelivered {
                text: &text,
                from: self.name,
                envelope: Some(envelope.id),
                sender: &envelope.from,
                why: &why,
                cause,
                said: &said,
            }),
            self.at_ms,
        )
    }
}

/// The cost of the turn that ends here.
fn spent(turn: &Turn) -> ResourceUse {
    let mut spent = ResourceUse::default();
    for charge in turn.charges().iter().filter(|_| turn.is_busy()) {
        spent.charge(charge);
    }
    spent
}

/// The input of a last decision, which makes no further model call.
fn now(at_ms: i64) -> TurnEnv {
    let none = Hash::of([]);
    let frame = PromptRef { instructions: none, tools: none, settings: none, bytes: 0 };
    let (fresh, facts, left) = (new_id(), String::new(), RemainingBudget::default());
    TurnEnv { at_ms, jitter: 0, fresh, frame, compact: frame, facts, steer: None, left, later: left }
}
