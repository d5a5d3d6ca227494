//! The task list that a session's agents share: which agent may take which task, and which tasks wait for others.
//!
//! Unlike a plan, which code carries out, the list is kept by the agents themselves: they add tasks, claim them one by
//! one and report when they are done. [`TaskList`] decides; nothing here stores or notifies. A claim is held by one agent
//! until the task is given back or done, or the agent has ended; each claim of a task has the next epoch, so that two
//! claims are never confused. An event carries the complete new state of what it changes, so that a row follows from
//! the last event alone.

mod decide;
mod refusal;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use refusal::{ListRefusal, TaskField};

use crate::event::Event;
use crate::limits::LIST_DECLINED_MAX;
use crate::message::Address;

/// Adds a task.
pub const CREATE: &str = "task_create";
/// Shows all tasks, or one.
pub const QUERY: &str = "task_query";
/// Changes a task, claims it, ends it; a lead also decides about tasks of plans with it.
pub const UPDATE: &str = "task_update";
/// The tools for the list: every agent of a session has them, unless its definition takes them away.
pub const TOOLS: [&str; 3] = [CREATE, QUERY, UPDATE];
/// Other names of these tools, which definitions, rules and calls may use.
pub const OTHER_NAMES: [(&str, &str); 4] =
    [("TaskCreate", CREATE), ("TaskGet", QUERY), ("TaskList", QUERY), ("TaskUpdate", UPDATE)];

/// Prefix of the ids of plan tasks where both kinds are listed.
pub const OF_PLAN: &str = "plan:";

/// A task's number in its list; `1` is the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskNumber(u32);

impl fmt::Display for TaskNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for TaskNumber {
    type Err = ();

    /// `7`, and also `#7`, as people write it.
    fn from_str(text: &str) -> Result<Self, ()> {
        let text = text.trim();
        let number = text.strip_prefix('#').unwrap_or(text).parse().map_err(drop)?;
        if number == 0 { Err(()) } else { Ok(Self(number)) }
    }
}

/// The status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListTaskStatus {
    /// No agent works on it.
    #[default]
    Pending,
    /// An agent holds it.
    InProgress,
    /// It is done and cannot change any more.
    Completed,
    /// It was removed from the list.
    Deleted,
}

impl ListTaskStatus {
    pub const ALL: [Self; 4] = [Self::Pending, Self::InProgress, Self::Completed, Self::Deleted];

    /// The name that models and people use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Deleted => "deleted",
        }
    }
}

/// The text of a task.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskText {
    /// One line that says what to do.
    pub subject: String,
    /// All that its doer needs to know.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Shown while it is done: "Writing the tests".
    #[serde(skip_serializing_if = "String::is_empty")]
    pub active_form: String,
    /// Free-form data of the agents.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// Status, owner and dependencies of a task.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ListTaskState {
    /// How it stands.
    pub status: ListTaskStatus,
    /// The name of the agent that is to do it, does it or did it; empty for any.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// The address of the agent that holds it, while it is in progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<Address>,
    /// Number of claims so far.
    pub epoch: u32,
    /// Tasks that have to be completed first; deleted ones do not count.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub blocked_by: BTreeSet<TaskNumber>,
    /// Agents that gave it back since the lead or the user last assigned it: it is not offered to them again.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub declined: BTreeSet<Address>,
}

/// A task of the list.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ListTask {
    pub id: TaskNumber,
    /// What it says.
    pub text: TaskText,
    /// How it stands.
    pub state: ListTaskState,
}

/// The agent or person that acts on the list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claimant {
    /// Its unique address.
    pub at: Address,
    /// Its name, which others may have, too.
    pub name: String,
    /// Whether it may take a task away from its holder, as the user and the lead may.
    pub steers: bool,
}

impl Claimant {
    /// Whether an owner's name or address means this one.
    pub fn is(&self, owner: &str) -> bool {
        self.name == owner || self.at == owner
    }
}

/// Why an agent no longer holds a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseReason {
    /// The agent gave it back.
    GivenBack,
    /// The lead or the user took it away.
    Taken,
    /// The agent has finished its work.
    Ended,
    /// The agent was shut down.
    Shutdown,
    /// The agent failed.
    Died,
}

/// The change of a task's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusChange {
    /// An agent has claimed it.
    Claimed,
    /// Its holder has released it.
    Released(ReleaseReason),
    /// It is done.
    Completed,
    /// It was removed from the list.
    Deleted,
    /// Its owner has changed.
    Assigned,
    /// The tasks that it waits for have changed.
    Blocked,
}

/// A task was added (list stream).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ItemAdded {
    pub id: TaskNumber,
    /// What it says.
    pub text: TaskText,
    /// Name of the agent or person that added it.
    pub by: String,
}

/// The text of a task has changed (list stream).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ItemWritten {
    pub id: TaskNumber,
    /// The complete new text.
    pub text: TaskText,
    /// Name of the agent or person that changed it.
    pub by: String,
}

/// The state of a task has changed (list stream).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ItemMoved {
    pub id: TaskNumber,
    /// The kind of change.
    pub what: StatusChange,
    /// The complete new state.
    pub state: ListTaskState,
    /// Name of the agent or person that changed it.
    pub by: String,
}

/// A task to be added.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NewTask {
    /// One line that says what to do.
    pub subject: String,
    /// All that its doer needs to know.
    pub description: String,
    /// What is shown while it is done.
    pub active_form: String,
    /// Free-form data of the agents.
    pub metadata: Map<String, Value>,
    /// The agent that is to do it; empty for any.
    pub owner: String,
    /// Tasks that it is to wait for.
    pub blocked_by: Vec<String>,
}

/// A change of a task.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TaskUpdate {
    /// Number of the task.
    pub id: String,
    /// The new status.
    pub status: Option<ListTaskStatus>,
    /// The new owner; empty for any.
    pub owner: Option<String>,
    /// The new subject line.
    pub subject: Option<String>,
    /// The new description text.
    pub description: Option<String>,
    /// The new active form.
    pub active_form: Option<String>,
    /// Members to set, or to remove if they are null.
    pub metadata: Map<String, Value>,
    /// Tasks that shall wait for it.
    pub blocks: Vec<String>,
    /// Tasks that it shall wait for.
    pub blocked_by: Vec<String>,
}

/// A request to change the list.
#[derive(Debug, Clone, PartialEq)]
pub enum ListRequest {
    /// Add a task.
    Create(NewTask),
    /// Change one task.
    Update(Box<TaskUpdate>),
    /// Claim the first task that the agent can begin with.
    Next,
    /// Release all tasks of an agent that has ended.
    Gone {
        /// Why the agent ended.
        why: ReleaseReason,
        /// Whether no agent of this name returns: then tasks assigned to it are open to any.
        for_good: bool,
    },
}

/// The tasks of one session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize)]
pub struct TaskList {
    items: BTreeMap<TaskNumber, ListTask>,
    /// The last number that was given; no number is given twice.
    last: u32,
}

impl TaskList {
    /// A list from its rows: the existing tasks, and the last number that was ever given.
    pub fn from_rows(items: impl IntoIterator<Item = ListTask>, last: u32) -> Self {
        Self { items: items.into_iter().map(|item| (item.id, item)).collect(), last }
    }

    /// All tasks, in the order of their numbers.
    pub fn items(&self) -> impl Iterator<Item = &ListTask> {
        self.items.values()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The last number that was given; `0`: none was.
    pub fn last(&self) -> u32 {
        self.last
    }

    /// The task of this number.
    pub fn get(&self, id: TaskNumber) -> Option<&ListTask> {
        self.items.get(&id)
    }

    /// The task that a model or a person names; an error suggests the task whose subject was given instead.
    pub fn find(&self, text: &str) -> Result<&ListTask, ListRefusal> {
        if text.trim().starts_with(OF_PLAN) {
            return Err(ListRefusal::OfPlan(crate::text::quote(text)));
        }
        let id: Option<TaskNumber> = text.parse().ok();
        id.and_then(|id| self.items.get(&id)).ok_or_else(|| {
            let was_deleted = id.is_some_and(|id| id.0 <= self.last);
            let first = self.items.values().find(|item| subject_is(item, text)).map(|item| item.id);
            ListRefusal::Unknown { id: crate::text::quote(text), was_deleted, meant: first }
        })
    }

    /// The tasks that must be completed before this one can begin.
    pub fn blockers<'a>(&'a self, item: &'a ListTask) -> impl Iterator<Item = TaskNumber> + 'a {
        let is_open =
            |id: &TaskNumber| self.items.get(id).is_some_and(|item| item.state.status != ListTaskStatus::Completed);
        item.state.blocked_by.iter().copied().filter(is_open)
    }

    /// The tasks that wait for this one.
    pub fn blocked(&self, id: TaskNumber) -> impl Iterator<Item = TaskNumber> + '_ {
        self.items.values().filter(move |item| item.state.blocked_by.contains(&id)).map(|item| item.id)
    }

    /// The first task that an agent can begin with: pending, not blocked, not declined by it, and assigned to it or to
    /// none.
    pub fn next(&self, doer: &Claimant) -> Option<&ListTask> {
        self.items.values().find(|item| {
            let ListTaskState { status, owner, declined, .. } = &item.state;
            let is_wanted = declined.len() < LIST_DECLINED_MAX && !declined.contains(&doer.at);
            let is_theirs = *status == ListTaskStatus::Pending && (owner.is_empty() || doer.is(owner));
            is_theirs && is_wanted && self.blockers(item).next().is_none()
        })
    }

    /// The tasks that an agent holds.
    pub fn held_by<'a>(&'a self, at: &'a str) -> impl Iterator<Item = &'a ListTask> {
        self.items.values().filter(move |item| item.state.holder.as_deref() == Some(at))
    }

    /// Folds an event in. Folding it twice changes nothing.
    pub fn apply(&mut self, event: &Event) {
        match event {
            // A deleted task does not come back.
            Event::ItemAdded(ItemAdded { id, text, .. }) if id.0 > self.last => {
                self.last = id.0;
                self.items.insert(*id, ListTask { id: *id, text: text.clone(), state: ListTaskState::default() });
            }
            Event::ItemWritten(ItemWritten { id, text, .. }) => {
                if let Some(item) = self.items.get_mut(id) {
                    item.text.clone_from(text);
                }
            }
            Event::ItemMoved(moved) if moved.what == StatusChange::Deleted => drop(self.items.remove(&moved.id)),
            Event::ItemMoved(ItemMoved { id, state, .. }) => {
                if let Some(item) = self.items.get_mut(id) {
                    item.state.clone_from(state);
                }
            }
            _ => {}
        }
    }
}

/// Whether a text is the subject of a task instead of its number.
fn subject_is(item: &ListTask, text: &str) -> bool {
    item.text.subject.trim().to_lowercase() == text.trim().to_lowercase()
}
