//! What is wrong with a draft, typed: the interface says it in the user's language, and a model reads it in English.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::TaskDraft;
use crate::limits::{
    CLAIM_BYTES_MAX, PLAN_DEPTH_MAX, PLAN_EDGES_MAX, PLAN_TASKS_MAX, TASK_CLAIMS_MAX, TASK_ID_BYTES_MAX,
    TASK_NEEDS_MAX, TASK_RETRIES_MAX,
};
use crate::policy::Basis;
use crate::policy::glob::GlobError;
use crate::policy::split::SplitError;
use crate::suggest::nearest;
use crate::text::quote;

/// Flaws that are reported at once.
const FLAWS_MAX: usize = 12;
/// Members that a flaw lists.
const MEMBERS_SHOWN_MAX: usize = 20;

/// What is wrong with a draft, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DraftFlaw {
    /// The task; empty for the plan as a whole.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub task: String,
    pub reason: FlawReason,
}

impl DraftFlaw {
    /// A flaw of a task. Quotes only a few words of the draft, because a draft comes from a model or from a file.
    pub fn of(task: &TaskDraft, reason: FlawReason) -> Self {
        Self { task: quote(&task.id), reason }
    }
}

/// A task or gate that a draft names and does not have, and the task that was probably meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownTask {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near: Option<String>,
}

impl UnknownTask {
    pub(super) fn new<'a>(id: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        Self { id: quote(id), near: nearest(id, known).map(str::to_owned) }
    }
}

/// What is wrong with a draft, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlawReason {
    /// The task at this place, from 1.
    NoId(usize),
    BadId,
    SameId,
    NoTasks,
    TooManyTasks(usize),
    TooManyGates(usize),
    LongText {
        field: String,
        bytes: usize,
        most: usize,
    },
    NoParallel,
    /// A limit of the whole plan, by its name.
    ZeroBudget(String),
    /// A limit of a task, by its name.
    ZeroLimit(String),
    NoDescription,
    NoOwner(Vec<String>),
    UnknownOwner {
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        near: Option<String>,
        members: Vec<String>,
    },
    ManyRetries(u32),
    ManyEntries {
        field: String,
        count: usize,
    },
    EmptyEntry(String),
    LongEntry(String),
    UnownedOutput(String),
    ControlCharacters(String),
    LeadsOut(String),
    ManyNeeds(usize),
    BadWhen(String),
    NeedsItself,
    UnknownNeed(UnknownTask),
    UnknownGate(UnknownTask),
    ManyEdges,
    /// The tasks, the first one again at the end.
    Cycle(Vec<String>),
    LongChain(usize),
    /// An edit names a task that the draft does not have.
    NoTask {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        near: Option<String>,
    },
    /// An edit removes a task whose failure this task waits for.
    NeededByRescue(String),
    BadGlob {
        glob: String,
        error: GlobError,
    },
    BadCheck {
        line: String,
        error: SplitError,
    },
    DeniedCheck {
        line: String,
        agent: String,
        /// The text of the judgement.
        rule: String,
        basis: Box<Basis>,
    },
    /// A check that needs approval, in a run without a person.
    AskingCheck {
        line: String,
        agent: String,
    },
    /// Registries that the task installs from and no rule has opened, in a run without a person.
    AskingInstalls(Vec<String>),
    UnknownModel {
        name: String,
        known: Vec<String>,
    },
    NoPrice(String),
    /// Flaws beyond those that are reported.
    More(usize),
}

impl fmt::Display for DraftFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.task.is_empty() { self.reason.fmt(f) } else { write!(f, "task `{}`: {}", self.task, self.reason) }
    }
}

/// Why a draft cannot run, in a sentence.
pub fn cannot_run(flaws: &[DraftFlaw]) -> String {
    let words: Vec<String> = flaws.iter().map(ToString::to_string).collect();
    format!("this plan cannot run: {}", words.join("; "))
}

/// `, did you mean `x`?`, or nothing.
fn meant(near: Option<&String>) -> String {
    near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default()
}

/// The members that a flaw keeps: those that it lists, and one more, which says that there are more.
pub(super) fn shown(members: &[&str]) -> Vec<String> {
    members.iter().take(MEMBERS_SHOWN_MAX + 1).map(|name| (*name).to_owned()).collect()
}

/// The first members, each in backticks.
pub fn listed(members: &[String]) -> String {
    let shown = members.iter().take(MEMBERS_SHOWN_MAX).map(|name| format!("`{name}`"));
    let more = (members.len() > MEMBERS_SHOWN_MAX).then(|| "…".to_owned());
    shown.chain(more).collect::<Vec<_>>().join(", ")
}

impl FlawReason {
    /// What is wrong with what a task claims: its paths, commands, registries or model.
    fn fmt_claim(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadGlob { glob, error } => write!(f, "`owns` has `{glob}`: {error}"),
            Self::BadCheck { line, error } => write!(f, "`verify` has `{line}`: {error}"),
            Self::DeniedCheck { line, agent, rule, .. } => {
                write!(f, "`verify` has `{line}`, which `{agent}` may not run: {rule}")
            }
            Self::AskingCheck { line, agent } => write!(
                f,
                "the check `{line}` needs the user's approval, and the user cannot be asked in this run; use the project's \
                 test command, or another command that `{agent}` may run without approval"
            ),
            Self::AskingInstalls(hosts) => write!(
                f,
                "it installs packages from {}, which needs the user's approval, and the user cannot be asked in this run; do \
                 without, or tell the user that rules such as `WebFetch(domain:{})` allow it",
                hosts.join(", "),
                hosts.first().map_or("", String::as_str)
            ),
            Self::UnknownModel { name, known } => {
                write!(f, "there is no model `{name}` here; there are {}", known.join(", "))
            }
            Self::NoPrice(model) => write!(
                f,
                "there is no price for `{model}`, so its budget cannot be kept; give it another model, or no money budget"
            ),
            // `fmt` writes all others.
            _ => Ok(()),
        }
    }
}

impl fmt::Display for FlawReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoId(number) => write!(f, "task number {number} has no `id`"),
            Self::BadId => write!(f, "an id has letters, digits, `-` and `_`, at most {TASK_ID_BYTES_MAX} bytes"),
            Self::SameId => f.write_str("two tasks have this id; ids must be unique"),
            Self::NoTasks => f.write_str("a plan needs at least one task"),
            Self::TooManyTasks(count) => write!(f, "{count} tasks are too many; at most {PLAN_TASKS_MAX}"),
            Self::TooManyGates(count) => write!(f, "{count} gates are too many; at most {PLAN_TASKS_MAX}"),
            Self::LongText { field, bytes, most } => write!(f, "`{field}` has {bytes} bytes; at most {most}"),
            Self::NoParallel => f.write_str("`max_parallel` is 0, so nothing would ever run; at least 1"),
            Self::ZeroBudget(name) => {
                write!(f, "`{name}` of the budget is 0, so nothing would ever run; leave it out for no bound")
            }
            Self::ZeroLimit(name) => write!(f, "`{name}` is 0, so the task would never run; leave it out for no bound"),
            Self::NoDescription => f.write_str("`description` (or `do`) is missing: say what is to be done"),
            Self::NoOwner(members) => write!(f, "`agent` is missing; the members are {}", listed(members)),
            Self::UnknownOwner { name, near, members } => {
                let end = if near.is_none() { ";" } else { "" };
                let (near, members) = (meant(near.as_ref()), listed(members));
                write!(f, "there is no member `{name}`{near}{end} the members are {members}")
            }
            Self::ManyRetries(count) => write!(f, "`retry` is {count}; at most {TASK_RETRIES_MAX}"),
            Self::ManyEntries { field, count } => {
                write!(f, "`{field}` has {count} entries; at most {TASK_CLAIMS_MAX}")
            }
            Self::EmptyEntry(field) => write!(f, "`{field}` has an empty entry"),
            Self::LongEntry(field) => write!(f, "`{field}` has an entry of more than {CLAIM_BYTES_MAX} bytes"),
            Self::UnownedOutput(path) => {
                write!(f, "`outputs` has `{path}`, which the task does not own; add it to `owns`")
            }
            Self::ControlCharacters(path) => write!(f, "`{path}` is no path: it has control characters"),
            Self::LeadsOut(path) => write!(f, "`{path}` leads out of the project; paths are relative to its root"),
            Self::ManyNeeds(count) => write!(f, "it needs {count} tasks; at most {TASK_NEEDS_MAX}"),
            Self::BadWhen(text) => write!(f, "`when: {text}` cannot be read; write `ID.ok` or `ID.failed`"),
            Self::NeedsItself => f.write_str("it waits for itself"),
            Self::UnknownNeed(UnknownTask { id, near }) => {
                write!(f, "it needs `{id}`, which is no task of this plan{}", meant(near.as_ref()))
            }
            Self::UnknownGate(UnknownTask { id, near }) => {
                write!(f, "a gate stands before `{id}`, which is no task of this plan{}", meant(near.as_ref()))
            }
            Self::ManyEdges => write!(f, "more than {PLAN_EDGES_MAX} dependencies are too many"),
            Self::Cycle(tasks) => {
                write!(f, "these tasks wait for each other: {}; take one of the dependencies out", tasks.join(" → "))
            }
            Self::LongChain(count) => {
                write!(f, "{count} tasks wait for each other in a row; at most {PLAN_DEPTH_MAX}")
            }
            Self::NoTask { near } => write!(f, "there is no such task{}", meant(near.as_ref())),
            Self::NeededByRescue(task) => {
                write!(f, "task `{task}` runs only if this one fails; take that one out first")
            }
            Self::BadGlob { .. }
            | Self::BadCheck { .. }
            | Self::DeniedCheck { .. }
            | Self::AskingCheck { .. }
            | Self::AskingInstalls(_)
            | Self::UnknownModel { .. }
            | Self::NoPrice(_) => self.fmt_claim(f),
            Self::More(count) => write!(f, "and {count} more"),
        }
    }
}

/// Flaws as they are found; only those that are reported are made.
#[derive(Default)]
pub(super) struct DraftFlaws {
    told: Vec<DraftFlaw>,
    more: usize,
}

impl DraftFlaws {
    pub(super) fn task(&mut self, task: &TaskDraft, reason: impl FnOnce() -> FlawReason) {
        self.push(|| DraftFlaw::of(task, reason()));
    }

    pub(super) fn plan(&mut self, reason: impl FnOnce() -> FlawReason) {
        self.push(|| DraftFlaw { task: String::new(), reason: reason() });
    }

    fn push(&mut self, flaw: impl FnOnce() -> DraftFlaw) {
        if self.told.len() < FLAWS_MAX {
            self.told.push(flaw());
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
            self.told.push(DraftFlaw { task: String::new(), reason: FlawReason::More(self.more) });
        }
        self.told
    }
}
