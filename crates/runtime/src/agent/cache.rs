//! Answers that serve again: a call that was made before, or is being made, is not made once more.
//!
//! Whoever calls looks first (for the tasks of a plan, `plan/serve.rs` does); whoever answers keeps the answer in the
//! commit that ends its turn. What a model is told about it is only that it is from the cache, and how old; what was
//! found never reaches it.

use max_team_core::calling::answer::{Told, quoted};
use max_team_core::calling::cache::{self, Age, Asked, CacheKept, Found};
use max_team_core::calling::ending::not_done;
use max_team_core::event::{End, Event, TurnEnded};
use max_team_core::message::Assignment;
use max_team_core::team::Settings;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::Agent;
use super::acts::Done;
use super::flight::{self, Flight, Landed};
use crate::cache::{Caches, stream};
use crate::error::RuntimeError;
use crate::floor::{Claim, Claimed};
use crate::handle::Mate;
use crate::shared::now_ms;
use crate::team_tools::{Call, Way};

/// What a look into the cache came to.
pub(super) enum Looked {
    /// The call has its result.
    Answered(Done),
    /// Somebody makes the same call; once they are done it is looked again.
    Awaited,
    /// The call is to be made, with these words; what its answer is kept under, if it is.
    Make(String, Option<(Asked, Claim)>),
}

impl Agent {
    /// Looks whether a call has to be made.
    pub(super) fn look(&mut self, key: &str, mate: &Mate, call: &Call) -> Result<Looked, RuntimeError> {
        let args = cache::arguments(&call.text).filter(|_| call.way == Way::Arguments);
        let Some(args) = args else { return Ok(Looked::Make(call.text.clone(), None)) };
        // What is so in a copy of the project, or as far as one caller may look, need not be so elsewhere.
        let Settings { permissions, constraints, .. } = &mate.settings;
        let place = json!([self.floor.root, permissions.copy, constraints]).to_string();
        let Some(asked) = Asked::of(&mate.definition, &place, &args) else {
            return Ok(Looked::Make(call.text.clone(), None));
        };
        // Claimed before it is looked up: an answer that came in between would be missed.
        let claim = match self.floor.claim(&self.stream, asked.call)? {
            Claimed::Ours(claim) => claim,
            Claimed::Theirs(over) => {
                self.flights.push(self.awaiting(key, over));
                return Ok(Looked::Awaited);
            }
        };
        let (name, now_ms) = (&mate.definition.name, now_ms());
        let entries = Caches::new(&self.floor.shared.journal).entries(name)?;
        let found = if call.fresh { Found::Nothing } else { asked.find(&entries, &args, now_ms) };
        Ok(match found {
            Found::Answer(entry) => {
                let age = Age::of(entry.age_ms(now_ms).unwrap_or_default());
                let source = format!("[From the cache of `{name}`, {age}; `fresh: true` asks anew.]");
                Looked::Answered(Done::said(format!("{}\n\n{source}", quoted(&entry.text))))
            }
            Found::Data(entry) => {
                let asked = Asked { handed_at_ms: Some(entry.created_at_ms), ..asked };
                Looked::Make(cache::message(&args, entry.data.as_ref()), Some((asked, claim)))
            }
            Found::Nothing => Looked::Make(call.text.clone(), Some((asked, claim))),
        })
    }

    /// Lands when what stands in a call's way is over: it is looked again. Or when the turn is stopped.
    pub(super) fn awaiting(&self, key: &str, over: CancellationToken) -> flight::Future {
        let (stopped, flight) =
            (self.cancelled(key.to_owned(), None, CancellationToken::new()), Flight::Tool(key.to_owned()));
        Box::pin(async move {
            tokio::select! {
                biased;
                landed = stopped => landed,
                () = over.cancelled() => Landed { flight, input: None },
            }
        })
    }

    /// What keeps the answer of a turn that is over, if it serves again: for the commit that says that it is over.
    pub(super) fn keeping(
        &self,
        given: &Assignment,
        ended: &TurnEnded,
        at_ms: i64,
    ) -> Result<Option<(String, Event)>, RuntimeError> {
        let is_answer = ended.end == End::Answered && not_done(&ended.text).is_none();
        let Some(asked) = given.cache.as_ref().filter(|_| is_answer) else { return Ok(None) };
        let Some((raw, told)) = self.said(asked, &ended.text) else { return Ok(None) };
        let expert = &self.origin.name;
        let entries = Caches::new(&self.floor.shared.journal).entries(expert)?;
        let Some(entry) = asked.keep(raw, told, &entries, at_ms) else { return Ok(None) };
        let dropped = cache::dropped(&entries, &entry, at_ms);
        Ok(Some((stream(expert), Event::CacheKept(CacheKept { entry, dropped }))))
    }

    /// What was asked, and what is kept of the answer. Of a task whose owner has changed something, or asked somebody,
    /// nothing is: its words are not all that came of it, or follow from more than it was given.
    fn said(&self, asked: &Asked, answer: &str) -> Option<(Value, Told)> {
        match &asked.step {
            Some(step) if self.turn.only_looked() => {
                Some((step.clone(), Told { text: answer.to_owned(), ..Told::default() }))
            }
            Some(_) => None,
            // It began to exist with this call.
            None => Some((cache::arguments(&self.turn.history().first()?.text())?, Told::read(answer))),
        }
    }
}
