//! Texts of ours in a run, written again by the code and the prompts of today.
//!
//! Assignments of plans, what followed from an answer (a nudge, the end of the turn), the wording of a refusal. Texts
//! of models, tools, people and memory are not written again: they belong to the run.

use std::collections::HashMap;
use std::path::Path;

use max_team_core::agent::Settings;
use max_team_core::chat::{Part, PartialAnswer};
use max_team_core::event::{Configured, Event, LlmIntent, LlmOutcome};
use max_team_core::id::{EnvelopeId, PlanId};
use max_team_core::message::Assignment;
use max_team_core::plan::Plan;
use max_team_core::turn::{Turn, TurnEnv, TurnInput};
use uuid::Uuid;

use super::Tape;
use super::strict::{CallPart, ReplayDifference};
use crate::active_session::ActiveSession;
use crate::agent::{Frame, look_at_words};
use crate::error::RuntimeError;
use crate::plan::{messages, plan_stream, upstream};
use crate::rows::event_of;

/// A folder that cannot hold files: a text that is too large for a message would otherwise be written to one.
const NOWHERE: &str = "/dev/null";

/// The messages that assigned tasks of plans to members, as they would be written today.
pub(super) fn tasks(active: &ActiveSession, tape: &Tape) -> Result<HashMap<EnvelopeId, String>, RuntimeError> {
    let (mut plans, mut told): (HashMap<PlanId, Plan>, _) = (HashMap::new(), HashMap::new());
    for entry in &tape.entries {
        let Some(id) = entry.stream.strip_prefix("plan/").and_then(|id| id.parse().ok()) else { continue };
        let (event, plan) = (event_of(entry)?, plans.entry(id).or_default());
        plan.apply(&event, entry.at_ms);
        // A text with a large result names a file, which is not made again here.
        let index = |task: &str| plan.graph().and_then(|graph| graph.index(task));
        if let Event::TaskAssigned(assigned) = &event
            && !index(&assigned.task).is_some_and(|index| upstream::leaves_file(plan, index))
        {
            let (reply_to, task, attempt) = (plan_stream(id), assigned.task.clone(), assigned.attempt);
            let given = Assignment { reply_to, plan: Some(id), task, attempt, ..Assignment::default() };
            let envelope = messages::assignment(active, Path::new(NOWHERE), plan, &given, assigned);
            told.extend(envelope.map(|envelope| (envelope.id, envelope.text().to_owned())));
        }
    }
    Ok(told)
}

/// Whether a turn would begin with the same text.
pub(super) fn begun(input: &[Part], today: Option<&String>) -> Option<ReplayDifference> {
    let then = input.iter().find_map(|part| if let Part::Text { text } = part { Some(text) } else { None })?;
    let today = today.filter(|today| *today != then)?;
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

/// The input for a machine that is rebuilt from its recorded history.
pub(super) fn now(frame: &Frame) -> TurnEnv {
    TurnEnv {
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

/// Compares the recorded decision after an event with today's. Skipped where budgets apply, because the share that
/// other agents had reserved is not recorded, and for messages that came during the turn, because their time is not
/// part of the decision.
pub(super) fn followed(today: &Turn, frame: &Frame, event: &Event, next: Option<&Event>) -> Option<ReplayDifference> {
    let counts = today.settings().is_some_and(|known| known.budget_nano.is_some() || known.budget_tokens.is_some());
    let input = match event {
        Event::LlmEnded(ended) if !counts && !ended.summary => {
            let LlmIntent { call, attempt, .. } = today.calling()?;
            let outcome = LlmOutcome::clone(&ended.outcome);
            let LlmOutcome::Done(answer) = &outcome else { return None };
            let prepared = look_at_words(&frame.registry, *call, &answer.message).into_iter().collect();
            let streamed = PartialAnswer::default();
            TurnInput::ModelEnded { call: (*call, *attempt), outcome, ms: ended.ms, streamed, prepared }
        }
        Event::QuestionAnswered(of) => TurnInput::Answered { question: of.question, answer: of.answer.clone() },
        _ => return None,
    };
    let decided = today.decide(input, &now(frame));
    let (then, is) = (words(next?)?, words(decided.get(1)?)?);
    (then != is).then(|| changed("what follows", then, is))
}

/// The text of an event for a model, or the end of the turn.
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

fn changed(name: &str, then: String, today: String) -> ReplayDifference {
    ReplayDifference::of(CallPart::Messages, name.to_owned(), then, today)
}
