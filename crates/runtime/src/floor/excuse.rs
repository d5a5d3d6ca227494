//! Speaking for somebody who cannot sit down: its copy is gone, there are no walls to keep it in, or its loop has broken.
//!
//! What it was at ends in its own stream, what waits in its mailbox is read, and whoever waits for it hears why, all in
//! one commit. Nobody does it in its place.

use std::sync::Arc;

use max_team_core::event::{End, Event};
use max_team_core::hash::Hash;
use max_team_core::id::{AgentId, EnvelopeId};
use max_team_core::ledger::Left;
use max_team_core::mates::{AgentEnded, Life, parting};
use max_team_core::message::{Assignment, Envelope, Kind};
use max_team_core::plan::event::Spent;
use max_team_core::tasks::{Doer, Why};
use max_team_core::turn::{Frame, Input, Now, Turn};
use max_team_journal::{Expect, Strength};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;

use super::{Activity, Floor};
use crate::agent::{Control, answering, decided, derived, text_at, to_people};
use crate::error::RuntimeError;
use crate::handle::{Notice, Origin};
use crate::rows::MateRow;
use crate::shared::{append, commit_at, new_id, now_ms};
use crate::{rows, session, team_tools};

impl Floor {
    /// Sits in an agent's place until nothing is left to be said for it.
    pub(super) async fn excuse(self: &Arc<Self>, agent: AgentId, why: &str, mut controls: mpsc::Receiver<Control>) {
        let address = session::agent_stream(agent);
        while !self.is_closing() {
            if let Err(error) = self.end_for(agent, why).await {
                return self.tell_stopped(&address, error);
            }
            while controls.try_recv().is_ok() {}
            self.report(&address, Activity::Idle, false).await;
            if self.leave(&address, &controls).await {
                return;
            }
        }
    }

    async fn end_for(self: &Arc<Self>, agent: AgentId, why: &str) -> Result<(), RuntimeError> {
        let address = session::agent_stream(agent);
        let mail = self.mail(&address, true)?;
        let (turn, head) = self.shared.fold_agent(agent)?;
        let mate = turn.mate().cloned();
        let type_name = || turn.identity().map_or_else(String::new, |(_, _, definition)| definition.name.clone());
        let name = mate.as_ref().map_or_else(type_name, |mate| mate.name.clone());
        let at_ms = now_ms();
        let events = turn.decide(Input::Broken { detail: why.to_owned() }, &now(at_ms));
        let mut commit = commit_at(at_ms);
        commit.fence = Some(self.fence.clone());
        commit.expect.push((address.clone(), Expect::At(head)));
        commit.actor = format!("agent:{name}");
        for event in &events {
            commit.appends.push(append(&address, event, &commit.actor)?);
            commit.projections.extend(rows::project(&address, at_ms, event));
        }
        commit.projections.push(rows::at_rest(agent));
        commit.acks = mail.iter().map(|letter| letter.id).collect();
        let given = |letter: &Envelope| Assignment::deserialize(letter.body.get("assignment")?).ok();
        let assigned = mail.iter().filter(|letter| letter.kind == Kind::TaskAssign);
        let waiting = assigned.filter_map(|letter| Some((given(letter)?, Some(letter.id))));
        let current = turn.assignment().filter(|_| turn.is_busy()).map(|given| (given.clone(), turn.began_with()));
        let is_mate = mate.is_some();
        let is_apart = is_mate || turn.assignment().is_some_and(|given| given.life == Life::Background);
        let excuse = Excuse { address: &address, name: &name, is_mate: is_apart, why, spent: spent(&turn), at_ms };
        commit.sends.extend(current.into_iter().chain(waiting).map(|(given, asked)| excuse.answer(&given, asked)));
        // One that only waited to hear what becomes of its changes has done its work.
        let came_to = events.iter().find_map(|event| match event {
            Event::TurnEnded(over) => Some(over.text.as_str()),
            _ => None,
        });
        commit.sends.extend(turn.reviewing().zip(came_to).and_then(|(letter, text)| decided(letter, text, at_ms)));
        if is_mate {
            let is_missed = |letter: &&Envelope| given(letter).is_none() && parting::comes_back(letter.kind);
            commit.sends.extend(mail.iter().filter(is_missed).map(|letter| excuse.returned(letter)));
        }
        let mut events = events;
        // One that cannot work any more can still be ended.
        if let Some((mate, letter)) = mate.zip(mail.iter().find(|letter| parting::is_end(letter))) {
            let by = Some(text_at(&letter.body, "by")).filter(|by| !by.is_empty());
            let by = by.unwrap_or_else(|| text_at(&letter.body, "from"));
            let (session, reason) = (self.session, why.to_owned());
            let ended = AgentEnded { session, name: mate.name.clone(), by, reason, forced: true };
            let row = MateRow { agent, color: String::new(), claims: false, gone: Some(ended.clone()) };
            // What it has left running ended with its loop.
            let commands = turn.commands().iter().map(|begun| Event::CommandOver(begun.lost()));
            for event in commands.chain([Event::AgentEnded(ended)]) {
                commit.appends.push(append(&address, &event, &commit.actor)?);
                commit.projections.extend(rows::project(&address, at_ms, &event));
                events.push(event);
            }
            self.know_mate(&mate.name, row)?;
        }
        let origin = Arc::new(Origin { name: name.as_str().into(), ..Origin::agent(agent) });
        // Before anybody hears that it is over: whoever does may take up what it held.
        let doer = Doer { at: address.clone(), name: name.clone(), steers: false };
        self.give_back(&doer, Why::Died, false, Arc::clone(&origin)).await?;
        let word = self.shared.herald.word();
        let told = to_people(&commit.sends);
        if !told.is_empty() {
            // They read it at once.
            commit.strength = Strength::Full;
        }
        events.extend(told);
        self.commit(commit, || ()).await?;
        // The call that it was making has nobody to say what it cost: it counts as paid, and nobody waits for it.
        let reserved = (turn.ledger().reserved_nano, 0);
        let plan = self.plan_behind(&address);
        let purse = plan.map_or_else(|| Arc::clone(&self.purse), |plan| self.plan_purse(plan, None));
        purse.settle(reserved, reserved);
        let session = self.session;
        let notice = |event| Notice::Event { session, from: Arc::clone(&origin), at_ms, event: Arc::new(event) };
        word.tell(events.into_iter().map(notice).collect());
        Ok(())
    }
}

/// What is said for somebody.
struct Excuse<'a> {
    address: &'a str,
    name: &'a str,
    /// It stays: what it comes to is news, and what it was written is missed.
    is_mate: bool,
    why: &'a str,
    spent: Spent,
    at_ms: i64,
}

impl Excuse<'_> {
    /// The result as the answer to the message that gave the task.
    fn answer(&self, given: &Assignment, asked: Option<EnvelopeId>) -> Envelope {
        answering(self.letter(given), asked)
    }

    fn letter(&self, given: &Assignment) -> Envelope {
        let end = End::Broken { detail: self.why.to_owned() };
        let mut body = json!({
            "assignment": given, "call": given.task, "ok": false, "is_error": true, "text": self.why,
            "output": "", "error": self.why, "end": end, "spent": self.spent, "ms": self.spent.ms,
            "by": self.name,
        });
        if let Some(fields) = body.as_object_mut().filter(|_| self.is_mate) {
            let more = [("mate", self.name), ("from", self.name), ("reason", "failed")];
            fields.extend(more.map(|(key, value)| (key.to_owned(), json!(value))));
        }
        Envelope::new(
            derived(&[self.address.as_bytes(), given.task.as_bytes(), &given.attempt.to_be_bytes(), b"excuse"]),
            self.address,
            &given.reply_to,
            Kind::TaskResult,
            body,
            self.at_ms,
        )
    }

    /// A letter that it will not read goes back to whoever wrote it.
    fn returned(&self, letter: &Envelope) -> Envelope {
        let said = team_tools::title(&text_at(&letter.body, "text"));
        let why = format!("it cannot work: {}", self.why);
        Envelope::new(
            derived(&[letter.id.to_string().as_bytes(), letter.from.as_bytes(), b"returned"]),
            self.address,
            &letter.from,
            Kind::Undelivered,
            json!({
                "text": format!("A message to `{}` was not read, because {why}: {said}", self.name),
                "from": self.name, "letter": letter.id, "sender": letter.from, "why": why, "said": said,
            }),
            self.at_ms,
        )
    }
}

/// What a turn has cost that ends here.
fn spent(turn: &Turn) -> Spent {
    let mut spent = Spent::default();
    for charge in turn.charges().iter().filter(|_| turn.is_busy()) {
        spent.nano = spent.nano.saturating_add(charge.nano);
        spent.unknown_nano = spent.unknown_nano.saturating_add(charge.unknown_nano);
        spent.usage += charge.usage;
    }
    spent
}

/// The moment, for somebody who will ask nobody anything more.
fn now(at_ms: i64) -> Now {
    let none = Hash::of([]);
    let frame = Frame { instructions: none, tools: none, settings: none, bytes: 0 };
    let (fresh, facts, left) = (new_id(), String::new(), Left::default());
    Now { at_ms, jitter: 0, fresh, frame, compact: frame, facts, steer: None, left, later: left }
}
