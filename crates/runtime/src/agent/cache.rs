//! Reuses answers: a call that was made before, or is being made, is not made again.
//!
//! The caller searches first (for the tasks of a plan, `plan/serve.rs` does); the called agent's answer is kept in the
//! commit that ends its turn. The model is told only that an answer is from the cache, and how old it is; it never
//! sees the cache itself.

use max_team_core::agent::Settings;
use max_team_core::delegation::answer::{ExpertReply, quoted};
use max_team_core::delegation::cache::{self, AnswerAge, CacheKept, CacheKey, CacheLookup};
use max_team_core::delegation::ending::not_done;
use max_team_core::event::{Event, TurnEnded, TurnOutcome};
use max_team_core::message::Assignment;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::Agent;
use super::acts::ActionOutcome;
use super::flight::{self, EffectDone, Flight};
use crate::active_session::{Claim, Claimed};
use crate::cache::{Caches, stream};
use crate::error::RuntimeError;
use crate::handle::AgentSpec;
use crate::shared::now_ms;
use crate::team_tools::{DelegateCall, Way};

/// The result of a search in the cache.
pub(super) enum CacheUse {
    /// The call has its result.
    Answered(ActionOutcome),
    /// An equal call runs; this one is decided again when that has ended.
    Awaited,
    /// The call must be made, with this text; the key under which its answer is kept, if it is.
    Make(String, Option<(CacheKey, Claim)>),
}

impl Agent {
    /// Decides whether a call has to be made.
    pub(super) fn look(
        &mut self,
        key: &str,
        teammate: &AgentSpec,
        call: &DelegateCall,
    ) -> Result<CacheUse, RuntimeError> {
        let args = cache::arguments(&call.text).filter(|_| call.way == Way::Arguments);
        let Some(args) = args else { return Ok(CacheUse::Make(call.text.clone(), None)) };
        // Answers about a worktree, or under a caller's limits, need not hold elsewhere.
        let Settings { permissions, constraints, .. } = &teammate.settings;
        let place = json!([self.active.root, permissions.copy, constraints]).to_string();
        let Some(asked) = CacheKey::for_call(&teammate.definition, &place, &args) else {
            return Ok(CacheUse::Make(call.text.clone(), None));
        };
        // Claimed before the search: an answer that came in between would be missed.
        let claim = match self.active.claim(&self.turn.stream, asked.call)? {
            Claimed::Ours(claim) => claim,
            Claimed::Theirs(over) => {
                self.running.flights.push(self.awaiting(key, over));
                return Ok(CacheUse::Awaited);
            }
        };
        let (name, now_ms) = (&teammate.definition.name, now_ms());
        let entries = Caches::new(&self.active.shared.journal).entries(name)?;
        let found = if call.fresh { CacheLookup::Nothing } else { asked.find(&entries, &args, now_ms) };
        Ok(match found {
            CacheLookup::Answer(entry) => {
                let age = AnswerAge::from_ms(entry.age_ms(now_ms).unwrap_or_default());
                let source = format!("[From the cache of `{name}`, {age}; `fresh: true` asks anew.]");
                CacheUse::Answered(ActionOutcome::said(format!("{}\n\n{source}", quoted(&entry.text))))
            }
            CacheLookup::Data(entry) => {
                let asked = CacheKey { handed_at_ms: Some(entry.created_at_ms), ..asked };
                CacheUse::Make(cache::message(&args, entry.data.as_ref()), Some((asked, claim)))
            }
            CacheLookup::Nothing => CacheUse::Make(call.text.clone(), Some((asked, claim))),
        })
    }

    /// Completes when the obstacle of a call is gone, and the call is decided again; or when the turn is stopped.
    pub(super) fn awaiting(&self, key: &str, over: CancellationToken) -> flight::Future {
        let (stopped, flight) =
            (self.cancelled(key.to_owned(), None, CancellationToken::new()), Flight::Tool(key.to_owned()));
        Box::pin(async move {
            tokio::select! {
                biased;
                landed = stopped => landed,
                () = over.cancelled() => EffectDone { flight, input: None },
            }
        })
    }

    /// The event that keeps the answer of an ended turn, if it can be reused: for the commit that ends the turn.
    pub(super) fn keeping(
        &self,
        given: &Assignment,
        ended: &TurnEnded,
        at_ms: i64,
    ) -> Result<Option<(String, Event)>, RuntimeError> {
        let is_answer = ended.end == TurnOutcome::Answered && not_done(&ended.text).is_none();
        let Some(asked) = given.cache.as_ref().filter(|_| is_answer) else { return Ok(None) };
        let Some((raw, told)) = self.said(asked, &ended.text) else { return Ok(None) };
        let expert = &self.turn.origin.name;
        let entries = Caches::new(&self.active.shared.journal).entries(expert)?;
        let Some(entry) = asked.entry_for(raw, told, &entries, at_ms) else { return Ok(None) };
        let dropped = cache::dropped(&entries, &entry, at_ms);
        Ok(Some((stream(expert), Event::CacheKept(CacheKept { entry, dropped }))))
    }

    /// What was asked, and the part of the answer to keep. Nothing is kept of a task whose owner has changed something
    /// or asked a question: then the text is not the whole result, or depends on more than the task.
    fn said(&self, asked: &CacheKey, answer: &str) -> Option<(Value, ExpertReply)> {
        match &asked.step {
            Some(step) if self.turn.only_looked() => {
                Some((step.clone(), ExpertReply { text: answer.to_owned(), ..ExpertReply::default() }))
            }
            Some(_) => None,
            // It was started with this call.
            None => Some((cache::arguments(&self.turn.history().first()?.text())?, ExpertReply::parse(answer))),
        }
    }
}
