//! A lead's calls about plans: proposing one, revising one, and decisions about a task of a running one.

use max_team_core::body::{Body, Instruction, TaskInstruction};
use max_team_core::event::{Event, PlanSubmitted};
use max_team_core::id::PlanId;
use max_team_core::limits::{TASK_NOTE_CHARS_MAX, TASK_NOTES_MAX};
use max_team_core::message::{Envelope, MessageKind};
use max_team_core::plan::{Plan, TaskView, cannot_run};

use super::acts::ActionOutcome;
use super::mail::derived;
use super::{Agent, Extra};
use crate::active_session::fold_plan;
use crate::error::RuntimeError;
use crate::plan::{messages, plan_stream, propose, revise};
use crate::shared::{new_id, now_ms};
use crate::team_tools;

/// Advice for a change of a task that is in no open plan.
const NO_OPEN_TASK: &str = "`task_query` lists the tasks. To correct a task of a finished plan, call `send_message` with its \
    id; to change an open plan, call `submit_plan` with `revises: PLAN`";

impl Agent {
    /// Proposes a plan. Plans that it replaces are told so in the same commit.
    pub(super) fn submit(&self, key: &str, submit: team_tools::Submit) -> ActionOutcome {
        let Some(team) = self.active.team() else { return ActionOutcome::wrong("there is no team in this session") };
        let plan = PlanId::new(new_id());
        let by = self.turn.origin.name.to_string();
        let named = submit.revises.or_else(|| revise::implied(&self.active, &by, self.turn.current()));
        let is_unattended = self.active.is_unattended;
        let proposed = revise::resolve(&self.active, named).and_then(|revised| {
            let base = revised.base;
            let proposed = propose::propose(&self.active, &team, plan, submit.draft, by, base, is_unattended);
            Ok((proposed.map_err(|flaws| cannot_run(&flaws))?, revised))
        });
        match proposed {
            Err(words) => ActionOutcome::wrong(format!("{words}. Mend it and submit it again.")),
            Ok((proposed, revised)) => {
                let words = revise::words(&proposed, &revised);
                let mut sends = revise::tell(&self.turn.stream, &proposed, &revised);
                sends.push(messages::proposal(&self.active, &self.turn.stream, proposed));
                ActionOutcome {
                    events: vec![Event::PlanSubmitted(PlanSubmitted { plan, key: key.to_owned() })],
                    extra: Extra { sends, ..Extra::default() },
                    ..ActionOutcome::said(words)
                }
            }
        }
    }

    /// A decision or note about a task of a plan.
    pub(super) fn update(&self, key: &str, update: &team_tools::Update) -> Result<ActionOutcome, RuntimeError> {
        let (plan, index) = match propose::find(&self.active, update.plan, &update.task_id)? {
            Some(found) => found,
            None if update.decision.as_deref() == Some("give_up") && self.is_apart(&update.task_id)? => {
                let (id, stop) = (Some(update.task_id.clone()), true);
                return self.spawned(key, &team_tools::Spawned { id, stop });
            }
            None => {
                let words = format!("there is no task `{}` in an open plan or in the shared list", update.task_id);
                return Ok(ActionOutcome::wrong(format!("{words}; {NO_OPEN_TASK}")));
            }
        };
        let wrong = |words: String| {
            ActionOutcome::wrong(format!(
                "{words}. To change more of the plan, call `submit_plan` with `revises: {plan}`."
            ))
        };
        if let Some(name) = update.agent.as_ref().filter(|name| self.active.agent_spec(name).is_none()) {
            return Ok(wrong(self.no_member(name)));
        }
        let known = self.active.team().map(|team| team.models.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
        if let Some(name) = update.model.as_ref().filter(|name| !known.contains(name)) {
            return Ok(wrong(format!("there is no model `{name}` here; there are {}", known.join(", "))));
        }
        let said = match update.says() {
            Ok(said) => said,
            Err(words) => return Ok(wrong(words)),
        };
        let (state, _) = fold_plan(&self.active.shared, plan)?;
        if let Some(words) = misplaced(&state, index, &said) {
            return Ok(wrong(words));
        }
        let words = match said {
            Instruction::Note(_) => "Noted: its owner reads it beside the approved words when it begins.".to_owned(),
            Instruction::Cancel => cancelled(&state, index),
            Instruction::Answer(_) | Instruction::Rule(_) => "The plan goes on accordingly.".to_owned(),
        };
        let said = TaskInstruction {
            task: &update.task_id,
            says: Some(said),
            by: &self.turn.origin.name,
            note: update.note.as_deref(),
            continues: false,
        };
        let envelope = Envelope::new(
            derived(&[self.turn.stream.as_bytes(), key.as_bytes(), b"update"]),
            &self.turn.stream,
            plan_stream(plan),
            MessageKind::TaskUpdate,
            Body::Update(said),
            now_ms(),
        );
        Ok(ActionOutcome { extra: Extra::send(envelope), ..ActionOutcome::said(words) })
    }
}

/// Why a decision of the lead does not fit the state of the task.
fn misplaced(plan: &Plan, index: usize, said: &Instruction) -> Option<String> {
    let view = plan.task(index)?;
    let (id, status) = (&view.task.id, view.status.name());
    match said {
        Instruction::Note(note) => unnoted(plan, &view, note),
        Instruction::Cancel if plan.may_cancel(index) => None,
        Instruction::Cancel if !plan.is_approved() => Some(format!("the plan of `{id}` is not approved yet")),
        Instruction::Cancel => Some(format!("`{id}` is {status}: there is nothing to cancel")),
        Instruction::Rule(_) if plan.awaits_ruling(index) => None,
        Instruction::Rule(_) => Some(format!("`{id}` is {status}: only a task that failed for good needs a decision")),
        Instruction::Answer(_) if plan.question_envelope(index).is_some() => None,
        Instruction::Answer(_) => Some(format!("`{id}` is {status}: its owner has asked nothing")),
    }
}

/// Why a note cannot be added to a task.
fn unnoted(plan: &Plan, view: &TaskView<'_>, note: &str) -> Option<String> {
    let (id, status, chars) = (&view.task.id, view.status.name(), note.chars().count());
    if chars > TASK_NOTE_CHARS_MAX {
        return Some(format!("the note has {chars} characters, the limit is {TASK_NOTE_CHARS_MAX}"));
    }
    if plan.may_note(view.index) {
        return None;
    }
    Some(if !plan.is_approved() {
        format!("the plan of `{id}` is not approved yet")
    } else if !plan.has_not_begun(view.index) {
        format!("`{id}` has begun ({status}); a note to its owner goes by `send_message`")
    } else if view.task.owns.is_none() {
        format!("`{id}` has no `owns`, so its words stay as the user approved them")
    } else {
        format!("`{id}` has {TASK_NOTES_MAX} notes already")
    })
}

/// The text for a lead that has cancelled a task: the tasks that depend on it are cancelled with it.
fn cancelled(plan: &Plan, index: usize) -> String {
    let (Some(graph), Some(draft)) = (plan.graph(), plan.draft()) else { return String::new() };
    let (mut gone, mut next) = (vec![index], vec![index]);
    while let Some(task) = next.pop() {
        for other in graph.dependents(task) {
            if !gone.contains(other) && plan.may_cancel(*other) {
                gone.push(*other);
                next.push(*other);
            }
        }
    }
    gone.sort_unstable();
    let names: Vec<&str> = gone
        .iter()
        .filter(|task| **task != index)
        .filter_map(|task| Some(draft.tasks.get(*task)?.id.as_str()))
        .collect();
    if names.is_empty() {
        "Cancelled.".to_owned()
    } else {
        format!("Cancelled, with the tasks that build on it: {}.", names.join(", "))
    }
}
