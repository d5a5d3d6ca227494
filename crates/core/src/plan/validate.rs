//! Checks of single tasks, independent of the others.
//!
//! Every limit that a draft must keep by itself is checked here; relations between tasks are checked by the graph. An
//! error quotes only a few words of the draft, because a draft comes from a model or from a file.

use std::fmt;

use super::{Budget, Draft, TaskDraft};
use crate::limits::{TASK_CLAIMS_MAX, TASK_ID_BYTES_MAX, TASK_RETRIES_MAX, TASK_TEXT_BYTES_MAX};
use crate::policy::glob::is_owned;
use crate::suggest::did_you_mean;
use crate::text::quote;

/// Flaws that are reported at once.
const FLAWS_MAX: usize = 12;
/// Members that a flaw lists.
const MEMBERS_SHOWN_MAX: usize = 20;
/// Bytes of a title or of a model's name.
const LINE_BYTES_MAX: usize = 512;
/// Bytes of a path or a command.
const CLAIM_BYTES_MAX: usize = 4 << 10;

/// What is wrong with a draft, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftFlaw {
    /// The task; empty for the plan as a whole.
    pub task: String,
    /// What is wrong, and what would be right.
    pub words: String,
}

impl fmt::Display for DraftFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.task.is_empty() { f.write_str(&self.words) } else { write!(f, "task `{}`: {}", self.task, self.words) }
    }
}

/// Flaws as they are found; texts are made only for those that are reported.
#[derive(Default)]
pub(super) struct DraftFlaws {
    told: Vec<DraftFlaw>,
    more: usize,
}

impl DraftFlaws {
    pub(super) fn task(&mut self, task: &TaskDraft, words: impl FnOnce() -> String) {
        self.push(&task.id, words);
    }

    pub(super) fn plan(&mut self, words: impl FnOnce() -> String) {
        self.push("", words);
    }

    fn push(&mut self, task: &str, words: impl FnOnce() -> String) {
        if self.told.len() < FLAWS_MAX {
            self.told.push(DraftFlaw { task: quote(task), words: words() });
        } else {
            self.more += 1;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.told.is_empty()
    }

    /// The reported flaws, and the number of the others.
    pub(super) fn list(mut self) -> Vec<DraftFlaw> {
        if self.more > 0 {
            self.told.push(DraftFlaw { task: String::new(), words: format!("and {} more", self.more) });
        }
        self.told
    }
}

/// Whether a task has a usable name.
pub(super) fn check_id(task: &TaskDraft, place: usize, flaws: &mut DraftFlaws) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    let good = !task.id.is_empty() && task.id.len() <= TASK_ID_BYTES_MAX && task.id.chars().all(plain);
    if task.id.is_empty() {
        flaws.plan(|| format!("task number {} has no `id`", place + 1));
    } else if !good {
        flaws.task(task, || format!("an id has letters, digits, `-` and `_`, at most {TASK_ID_BYTES_MAX} bytes"));
    }
    good
}

/// All checks that need no knowledge of relations between tasks.
pub(super) fn check(draft: &Draft, members: &[&str], flaws: &mut DraftFlaws) {
    if draft.tasks.is_empty() {
        flaws.plan(|| "a plan needs at least one task".to_owned());
    }
    if draft.goal.len() > TASK_TEXT_BYTES_MAX {
        flaws.plan(|| format!("`goal` has {} bytes; at most {TASK_TEXT_BYTES_MAX}", draft.goal.len()));
    }
    if draft.max_parallel == Some(0) {
        flaws.plan(|| "`max_parallel` is 0, so nothing would ever run; at least 1".to_owned());
    }
    if let Some(name) = nothing(&draft.budget) {
        flaws.plan(|| format!("`{name}` of the budget is 0, so nothing would ever run; leave it out for no bound"));
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
        flaws.task(task, || "`description` is missing: say what is to be done".to_owned());
    }
    let model = task.model.as_deref().unwrap_or_default();
    let texts = [
        ("description", task.description.as_str(), TASK_TEXT_BYTES_MAX),
        ("title", task.title.as_str(), LINE_BYTES_MAX),
        ("model", model, LINE_BYTES_MAX),
    ];
    for (name, text, bytes_max) in texts {
        if text.len() > bytes_max {
            flaws.task(task, || format!("`{name}` has {} bytes; at most {bytes_max}", text.len()));
        }
    }
}

fn owner(task: &TaskDraft, members: &[&str], flaws: &mut DraftFlaws) {
    if task.agent.is_empty() {
        flaws.task(task, || format!("`agent` is missing; the members are {}", listed(members)));
    } else if !members.contains(&task.agent.as_str()) {
        flaws.task(task, || {
            let near = did_you_mean(&task.agent, members.iter().copied());
            let end = if near.is_empty() { ";" } else { "" };
            format!("there is no member `{}`{near}{end} the members are {}", quote(&task.agent), listed(members))
        });
    }
}

fn listed(members: &[&str]) -> String {
    let shown = members.iter().take(MEMBERS_SHOWN_MAX).map(|name| format!("`{name}`"));
    let more = (members.len() > MEMBERS_SHOWN_MAX).then(|| "…".to_owned());
    shown.chain(more).collect::<Vec<_>>().join(", ")
}

fn bounds(task: &TaskDraft, flaws: &mut DraftFlaws) {
    if task.retry > TASK_RETRIES_MAX {
        flaws.task(task, || format!("`retry` is {}; at most {TASK_RETRIES_MAX}", task.retry));
    }
    let timeout = (task.timeout_ms == Some(0)).then_some("timeout");
    if let Some(name) = timeout.or(nothing(&task.budget)) {
        flaws.task(task, || format!("`{name}` is 0, so it would never run; leave it out for no bound"));
    }
}

fn claims(task: &TaskDraft, flaws: &mut DraftFlaws) {
    for (name, list) in [("outputs", &*task.outputs), ("verify", &task.verify), ("owns", task.owned())] {
        if list.len() > TASK_CLAIMS_MAX {
            flaws.task(task, || format!("`{name}` has {} entries; at most {TASK_CLAIMS_MAX}", list.len()));
        }
        if list.iter().any(|entry| entry.trim().is_empty()) {
            flaws.task(task, || format!("`{name}` has an empty entry"));
        }
        if list.iter().any(|entry| entry.len() > CLAIM_BYTES_MAX) {
            flaws.task(task, || format!("`{name}` has an entry of more than {CLAIM_BYTES_MAX} bytes"));
        }
    }
    // The owner could never write such a file, and the task would fail after it was paid for.
    let is_out = |path: &&String| task.owns.is_some() && !path.starts_with('@') && !is_owned(task.owned(), path);
    for path in task.outputs.iter().filter(is_out).take(1) {
        flaws.task(task, || format!("`outputs` has `{}`, which the task does not own; add it to `owns`", quote(path)));
    }
    for path in task.outputs.iter().chain(task.owned()) {
        if path.chars().any(char::is_control) {
            flaws.task(task, || format!("`{}` is no path: it has control characters", quote(path)));
        } else if escapes(path) {
            flaws.task(task, || format!("`{}` leads out of the project; paths are relative to its root", quote(path)));
        }
    }
}

/// Whether a path leads out of the folder it is relative to, on any system.
fn escapes(path: &str) -> bool {
    let path = path.trim();
    let drive = path.chars().next().is_some_and(|letter| letter.is_ascii_alphabetic()) && path.get(1..2) == Some(":");
    drive || path.starts_with(['/', '\\', '~']) || path.split(['/', '\\']).any(|part| part.trim() == "..")
}
