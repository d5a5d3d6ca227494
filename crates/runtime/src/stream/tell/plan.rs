//! Turns the entries of a plan's stream into events.

use max_team_core::event::Event;
use max_team_core::id::{PlanId, QuestionId};
use max_team_core::plan::event::{PlanAnswered, PlanAsked, PlanDecision, PlanEnd, PlanQuestion, TaskResult};
use max_team_core::plan::{Draft, TaskDraft};

use crate::rows::AnswerWord;
use crate::stream::event::{ApprovalStep, BudgetStep, PlanStep, TaskLine, TaskStep, What};
use crate::stream::step::StepText;

/// A plan event without details.
fn step(plan: PlanId, state: PlanStep) -> What {
    What::Plan {
        plan,
        state,
        goal: String::new(),
        tasks: Vec::new(),
        task: None,
        message: String::new(),
        by: None,
        tally: None,
    }
}

fn draft(plan: PlanId, state: PlanStep, draft: &Draft, by: &str) -> What {
    let line =
        |task: &TaskDraft| TaskLine { id: task.id.clone(), agent: task.agent.clone(), needs: task.needs.clone() };
    let mut what = step(plan, state);
    if let What::Plan { goal, tasks, by: whose, .. } = &mut what {
        goal.clone_from(&draft.goal);
        *tasks = draft.tasks.iter().map(line).collect();
        *whose = Some(by.to_owned());
    }
    what
}

/// The events of an entry of a plan's stream, about the plan or one of its tasks.
pub(super) fn tell(plan: PlanId, event: &Event) -> Vec<What> {
    let mut told = of_plan(plan, event);
    told.extend(of_task(plan, event));
    told
}

fn of_plan(plan: PlanId, event: &Event) -> Vec<What> {
    let with = |state, words: &str, whose: Option<&str>, of: Option<&String>| {
        let mut what = step(plan, state);
        if let What::Plan { message, by, task, .. } = &mut what {
            words.clone_into(message);
            (*by, *task) = (whose.map(str::to_owned), of.cloned());
        }
        vec![what]
    };
    match event {
        Event::PlanProposed(of) => vec![draft(plan, PlanStep::Proposed, &of.draft, &of.by)],
        Event::PlanEdited(of) => vec![draft(plan, PlanStep::Edited, &of.draft, &of.by.user)],
        Event::EditRefused(of) => with(PlanStep::EditRefused, &of.error, Some(&of.by.user), None),
        Event::PlanAsked(of) => plan_asked(plan, of),
        Event::PlanAnswered(of) => vec![plan_answered(plan, of)],
        Event::PlanUnasked(of) => {
            of.questions.iter().map(|question| approval(plan, *question, ApprovalStep::Withdrawn)).collect()
        }
        Event::PlanRevised(of) => with(PlanStep::Revised, &of.held.join(", "), Some(&of.revision.to_string()), None),
        Event::RevisionEnded(of) => with(PlanStep::RevisionEnded, "", Some(&of.revision.to_string()), None),
        Event::PlanResumed(of) => {
            // A stopped plan goes on with the budget that it had.
            let raised = of.turn.is_none().then(|| money(BudgetStep::Raised, plan, None));
            with(PlanStep::Resumed, "", Some(&of.by), None).into_iter().chain(raised).collect()
        }
        Event::PlanStopped(of) => with(PlanStep::Stopping, "", Some(&of.by), of.task.as_ref()),
        Event::PlanPaused(of) => with(PlanStep::Paused, "", Some(&of.by), None),
        Event::PlanEnded(of) => {
            let state = match of.end {
                PlanEnd::Done => PlanStep::Done,
                PlanEnd::Partial => PlanStep::Partial,
                PlanEnd::Failed => PlanStep::Failed,
                PlanEnd::Stopped => PlanStep::Stopped,
                PlanEnd::Rejected => PlanStep::Rejected,
                PlanEnd::Replaced => PlanStep::Replaced,
            };
            let mut what = step(plan, state);
            if let What::Plan { tally, .. } = &mut what {
                *tally = Some(Box::new(of.tally));
            }
            vec![what]
        }
        _ => Vec::new(),
    }
}

fn money(state: BudgetStep, plan: PlanId, task: Option<String>) -> What {
    What::Budget { state, model: None, usage: None, cost_usd: None, plan: Some(plan), task }
}

fn approval(plan: PlanId, question: QuestionId, state: ApprovalStep) -> What {
    What::Approval {
        question,
        state,
        plan: Some(plan),
        tool_id: None,
        tool_name: None,
        message: StepText::default(),
        preview: String::new(),
        said: None,
        by: None,
    }
}

fn plan_asked(plan: PlanId, of: &PlanAsked) -> Vec<What> {
    let mut what = approval(plan, of.question, ApprovalStep::Asked);
    if let What::Approval { message, .. } = &mut what {
        *message = StepText::PlanAsks(of.about.clone());
    }
    let reached = (of.about == PlanQuestion::Budget).then(|| money(BudgetStep::Reached, plan, None));
    [what].into_iter().chain(reached).collect()
}

fn plan_answered(plan: PlanId, of: &PlanAnswered) -> What {
    let mut what = approval(plan, of.question, ApprovalStep::Answered);
    if let What::Approval { message, said: word, by, .. } = &mut what {
        if let PlanDecision::Changes(words) | PlanDecision::Reject(words) = &of.say {
            *message = words.clone().into();
        }
        (*word, *by) = (Some(AnswerWord::of_plan(&of.say)), Some(of.by.clone()));
    }
    what
}

/// A task event.
fn task(plan: PlanId, task: &str, state: TaskStep, attempt: Option<u32>, message: &str) -> What {
    What::Task {
        plan,
        task: task.to_owned(),
        state,
        attempt,
        member: None,
        worker: None,
        message: message.to_owned(),
        by: None,
        proof: None,
        retry_at_ms: None,
    }
}

fn of_task(plan: PlanId, event: &Event) -> Vec<What> {
    let plain = |of: &str, state, attempt, message: &str| vec![task(plan, of, state, attempt, message)];
    match event {
        Event::TaskAssigned(of) => {
            let mut what = task(plan, &of.task, TaskStep::Dispatched, Some(of.attempt), &of.note);
            if let What::Task { member, worker, .. } = &mut what {
                (*member, *worker) = (Some(of.member.clone()), Some(of.agent));
            }
            vec![what]
        }
        Event::TaskStarted(of) => plain(&of.task, TaskStep::Running, Some(of.attempt), ""),
        Event::TaskAsked(of) => plain(&of.task, TaskStep::Asking, Some(of.attempt), &of.question),
        Event::TaskHeld(of) => {
            plain(&of.task, TaskStep::Waiting, Some(of.attempt), of.outage.as_deref().unwrap_or_default())
        }
        Event::TaskAnswered(of) => ruled(task(plan, &of.task, TaskStep::Answered, None, &of.answer), &of.by),
        Event::TaskResumed(of) => plain(&of.task, TaskStep::Running, None, ""),
        Event::TaskReported(of) => plain(&of.task, TaskStep::Checking, Some(of.attempt), &of.output),
        Event::TaskDone(of) => vec![ended(plan, &of.task, TaskStep::Done, of.attempt, &of.result)],
        Event::TaskCorrected(of) => vec![ended(plan, &of.task, TaskStep::Corrected, of.attempt, &of.result)],
        Event::TaskFailed(of) => {
            let mut what = task(plan, &of.task, TaskStep::Failed, Some(of.attempt), &of.error);
            if let What::Task { retry_at_ms, .. } = &mut what {
                *retry_at_ms = of.retry_at_ms;
            }
            vec![what]
        }
        Event::TaskDeferred(of) => plain(&of.task, TaskStep::Deferred, Some(of.attempt), &of.after.join(", ")),
        Event::TaskChanged(of) => {
            let words = [&of.note, &of.description, &of.title].into_iter().flatten().next();
            let words = words.map_or("", String::as_str);
            ruled(task(plan, &of.task, TaskStep::Changed, None, words), &of.by)
        }
        Event::TaskQueued(of) => plain(&of.task, TaskStep::Approved, None, ""),
        Event::TaskRuled(of) => ruled(task(plan, &of.task, TaskStep::Ruled, None, of.ruling.name()), &of.by),
        Event::TaskPaused(of) => {
            let paused = task(plan, &of.task, TaskStep::Paused, None, &of.output);
            let reached = (!of.stopped).then(|| money(BudgetStep::Reached, plan, Some(of.task.clone())));
            [paused].into_iter().chain(reached).collect()
        }
        Event::TaskSkipped(of) => plain(&of.task, TaskStep::Skipped, None, &of.detail),
        Event::TaskCancelled(of) => plain(&of.task, TaskStep::Cancelled, None, &of.detail),
        Event::TaskStopped(of) => plain(&of.task, TaskStep::Stopped, Some(of.attempt), &of.files.join(", ")),
        _ => Vec::new(),
    }
}

fn ended(plan: PlanId, id: &str, step: TaskStep, attempt: u32, result: &TaskResult) -> What {
    let mut what = task(plan, id, step, Some(attempt), &result.output);
    if let What::Task { proof, .. } = &mut what {
        *proof = Some(result.proof);
    }
    what
}

fn ruled(mut what: What, who: &str) -> Vec<What> {
    if let What::Task { by, .. } = &mut what {
        *by = Some(who.to_owned());
    }
    vec![what]
}
