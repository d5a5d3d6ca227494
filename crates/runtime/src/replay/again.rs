//! What an agent was told by us, said again by the code and the prompts of today.
//!
//! Tasks that plans gave, what followed from an answer (a nudge, the end of the turn), what a refusal was told as. What came
//! from models, tools, people and memory is not said again: that is the run's.

use std::collections::HashMap;
use std::path::Path;

use max_team_core::chat::{Part, Streamed};
use max_team_core::event::{Configured, Event, LlmIntent, Outcome};
use max_team_core::id::{EnvelopeId, PlanId};
use max_team_core::message::Assignment;
use max_team_core::plan::Plan;
use max_team_core::team::Settings;
use max_team_core::turn::{Input, Now, Turn};
use uuid::Uuid;

use super::Tape;
use super::strict::{Change, Piece};
use crate::agent::{Frame, look_at_words, text_at};
use crate::error::RuntimeError;
use crate::floor::Floor;
use crate::plan::{letters, plan_stream};
use crate::rows::event_of;

/// Where nothing can be left: what is too large for a letter would otherwise become a file.
const NOWHERE: &str = "/dev/null";
/// How a letter says that it left something in a file.
const LEFT: &str = "bytes and is in the file `";

/// The letters that gave tasks of plans to members, as they would be written today.
pub(super) fn tasks(floor: &Floor, tape: &Tape) -> Result<HashMap<EnvelopeId, String>, RuntimeError> {
    let (mut plans, mut told): (HashMap<PlanId, Plan>, _) = (HashMap::new(), HashMap::new());
    for entry in &tape.entries {
        let Some(id) = entry.stream.strip_prefix("plan/").and_then(|id| id.parse().ok()) else { continue };
        let (event, plan) = (event_of(entry)?, plans.entry(id).or_default());
        plan.apply(&event, entry.at_ms);
        if let Event::TaskAssigned(assigned) = &event {
            let (reply_to, task, attempt) = (plan_stream(id), assigned.task.clone(), assigned.attempt);
            let given = Assignment { reply_to, plan: Some(id), task, attempt, ..Assignment::default() };
            let letter = letters::assignment(floor, Path::new(NOWHERE), plan, &given, assigned);
            told.extend(letter.map(|letter| (letter.id, text_at(&letter.body, "text"))));
        }
    }
    Ok(told)
}

/// Whether a turn would begin with the same words.
pub(super) fn begun(input: &[Part], today: Option<&String>) -> Option<Change> {
    let then = input.iter().find_map(|part| if let Part::Text { text } = part { Some(text) } else { None })?;
    let today = today.filter(|today| *today != then && !then.contains(LEFT))?;
    Some(changed("task", then.clone(), today.clone()))
}

/// A turn as it was, under the settings of today.
pub(super) fn under(turn: &Turn, settings: Option<Settings>) -> Turn {
    let mut today = turn.clone();
    if let Some(settings) = settings {
        today.apply(&Event::Configured(Configured { settings: settings.into(), definition: None, by: None }));
    }
    today
}

/// What a machine is asked with that has nothing but its past.
pub(super) fn now(frame: &Frame) -> Now {
    Now {
        at_ms: 0,
        jitter: 0,
        fresh: Uuid::nil(),
        frame: frame.address(),
        compact: frame.compact_address(),
        facts: String::new(),
        steer: None,
        left: Default::default(),
        later: Default::default(),
    }
}

/// Whether the same would be done after an event. Where money is counted nobody knows what was left to others, and what the
/// user said meanwhile comes when it comes: neither is asked again.
pub(super) fn followed(today: &Turn, frame: &Frame, event: &Event, next: Option<&Event>) -> Option<Change> {
    let counts = today.settings().is_some_and(|known| known.budget_nano.is_some() || known.budget_tokens.is_some());
    let input = match event {
        Event::LlmEnded(ended) if !counts && !ended.summary => {
            let LlmIntent { call, attempt, .. } = today.calling()?;
            let outcome = Outcome::clone(&ended.outcome);
            let Outcome::Done(answer) = &outcome else { return None };
            let prepared = look_at_words(&frame.registry, *call, &answer.message).into_iter().collect();
            let streamed = Streamed::default();
            Input::ModelEnded { call: (*call, *attempt), outcome, ms: ended.ms, streamed, prepared }
        }
        Event::QuestionAnswered(of) => Input::Answered { question: of.question, answer: of.answer.clone() },
        _ => return None,
    };
    let decided = today.decide(input, &now(frame));
    let (then, is) = (words(next?)?, words(decided.get(1)?)?);
    (then != is).then(|| changed("what follows", then, is))
}

/// What of an event a model hears, or whether it hears anything more.
fn words(event: &Event) -> Option<String> {
    match event {
        Event::Nudged(nudged) => Some(nudged.text.clone()),
        Event::TurnEnded(ended) => serde_json::to_string(&ended.end).ok().map(|end| format!("the end: {end}")),
        Event::ToolDone(done) => {
            let text = done
                .content
                .iter()
                .filter_map(|part| if let Part::Text { text } = part { Some(text.as_str()) } else { None });
            Some(text.collect::<Vec<_>>().join("\n"))
        }
        _ => None,
    }
}

fn changed(name: &str, then: String, today: String) -> Change {
    Change::of(Piece::Messages, name.to_owned(), then, today)
}
