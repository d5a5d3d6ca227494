//! Checks of single tasks, independent of the others.
//!
//! Every limit that a draft must keep by itself is checked here; relations between tasks are checked by the graph. A
//! flaw quotes only a few words of the draft, because a draft comes from a model or from a file.

use super::flaw::{DraftFlaws, FlawReason, shown};
use super::{Budget, Draft, TaskDraft};
use crate::limits::{CLAIM_BYTES_MAX, TASK_CLAIMS_MAX, TASK_ID_BYTES_MAX, TASK_RETRIES_MAX, TASK_TEXT_BYTES_MAX};
use crate::policy::glob::is_owned;
use crate::suggest::nearest;
use crate::text::quote;

/// Bytes of a title or of a model's name.
const LINE_BYTES_MAX: usize = 512;

/// Whether a task has a usable name.
pub(super) fn check_id(task: &TaskDraft, place: usize, flaws: &mut DraftFlaws) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    let good = !task.id.is_empty() && task.id.len() <= TASK_ID_BYTES_MAX && task.id.chars().all(plain);
    if task.id.is_empty() {
        flaws.plan(|| FlawReason::NoId(place + 1));
    } else if !good {
        flaws.task(task, || FlawReason::BadId);
    }
    good
}

/// All checks that need no knowledge of relations between tasks.
pub(super) fn check(draft: &Draft, members: &[&str], flaws: &mut DraftFlaws) {
    if draft.tasks.is_empty() {
        flaws.plan(|| FlawReason::NoTasks);
    }
    if draft.goal.len() > TASK_TEXT_BYTES_MAX {
        flaws.plan(|| long("goal", &draft.goal, TASK_TEXT_BYTES_MAX));
    }
    if draft.max_parallel == Some(0) {
        flaws.plan(|| FlawReason::NoParallel);
    }
    if let Some(name) = nothing(&draft.budget) {
        flaws.plan(|| FlawReason::ZeroBudget(name.to_owned()));
    }
    for task in &draft.tasks {
        texts(task, flaws);
        owner(task, members, flaws);
        bounds(task, flaws);
        claims(task, flaws);
    }
}

/// A limit of 0 that no work can keep. No money is allowed: a model may cost nothing.
fn nothing(budget: &Budget) -> Option<&'static str> {
    let bounds = [(budget.tokens, "tokens"), (budget.wall_ms, "wall")];
    bounds.into_iter().find(|(bound, _)| *bound == Some(0)).map(|(_, name)| name)
}

fn texts(task: &TaskDraft, flaws: &mut DraftFlaws) {
    if task.description.trim().is_empty() && task.title.trim().is_empty() {
        flaws.task(task, || FlawReason::NoDescription);
    }
    let model = task.model.as_deref().unwrap_or_default();
    let texts = [
        ("description", task.description.as_str(), TASK_TEXT_BYTES_MAX),
        ("title", task.title.as_str(), LINE_BYTES_MAX),
        ("model", model, LINE_BYTES_MAX),
    ];
    for (name, text, bytes_max) in texts {
        if text.len() > bytes_max {
            flaws.task(task, || long(name, text, bytes_max));
        }
    }
}

fn owner(task: &TaskDraft, members: &[&str], flaws: &mut DraftFlaws) {
    if task.agent.is_empty() {
        flaws.task(task, || FlawReason::NoOwner(shown(members)));
    } else if !members.contains(&task.agent.as_str()) {
        flaws.task(task, || {
            let near = nearest(&task.agent, members.iter().copied()).map(str::to_owned);
            FlawReason::UnknownOwner { name: quote(&task.agent), near, members: shown(members) }
        });
    }
}

fn long(field: &str, text: &str, most: usize) -> FlawReason {
    FlawReason::LongText { field: field.to_owned(), bytes: text.len(), most }
}

fn bounds(task: &TaskDraft, flaws: &mut DraftFlaws) {
    if task.retry > TASK_RETRIES_MAX {
        flaws.task(task, || FlawReason::ManyRetries(task.retry));
    }
    let timeout = (task.timeout_ms == Some(0)).then_some("timeout");
    if let Some(name) = timeout.or(nothing(&task.budget)) {
        flaws.task(task, || FlawReason::ZeroLimit(name.to_owned()));
    }
}

fn claims(task: &TaskDraft, flaws: &mut DraftFlaws) {
    for (name, list) in [("outputs", &*task.outputs), ("verify", &task.verify), ("owns", task.owned())] {
        if list.len() > TASK_CLAIMS_MAX {
            flaws.task(task, || FlawReason::ManyEntries { field: name.to_owned(), count: list.len() });
        }
        if list.iter().any(|entry| entry.trim().is_empty()) {
            flaws.task(task, || FlawReason::EmptyEntry(name.to_owned()));
        }
        if list.iter().any(|entry| entry.len() > CLAIM_BYTES_MAX) {
            flaws.task(task, || FlawReason::LongEntry(name.to_owned()));
        }
    }
    // The owner could never write such a file, and the task would fail after it was paid for.
    let is_out = |path: &&String| task.owns.is_some() && !path.starts_with('@') && !is_owned(task.owned(), path);
    for path in task.outputs.iter().filter(is_out).take(1) {
        flaws.task(task, || FlawReason::UnownedOutput(quote(path)));
    }
    for path in task.outputs.iter().chain(task.owned()) {
        if path.chars().any(char::is_control) {
            flaws.task(task, || FlawReason::ControlCharacters(quote(path)));
        } else if escapes(path) {
            flaws.task(task, || FlawReason::LeadsOut(quote(path)));
        }
    }
}

/// Whether a path leads out of the folder it is relative to, on any system.
fn escapes(path: &str) -> bool {
    let path = path.trim();
    let drive = path.chars().next().is_some_and(|letter| letter.is_ascii_alphabetic()) && path.get(1..2) == Some(":");
    drive || path.starts_with(['/', '\\', '~']) || path.split(['/', '\\']).any(|part| part.trim() == "..")
}
