//! The list of tasks that a session's agents share: who may take what, and what waits for what.
//!
//! Unlike a plan, which code carries out, a list is kept by whoever works: they add tasks, claim them one by one and say
//! when they are done. [`Tasks`] decides; nothing here stores or tells. A claim is held by one agent until it is given back,
//! done, or its holder is gone; each claim of a task has the next epoch, so that two are never mistaken for one. An event
//! carries all that it changes of a task as it is afterwards, so that a row follows from one of them.

mod decide;
mod refusal;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use refusal::{Field, Refusal};

use crate::event::Event;
use crate::limits::LIST_DECLINED_MAX;
use crate::message::Address;

/// Adds a task.
pub const CREATE: &str = "TaskCreate";
/// Shows one.
pub const GET: &str = "TaskGet";
/// Shows all.
pub const LIST: &str = "TaskList";
/// Changes one, claims it, ends it.
pub const UPDATE: &str = "TaskUpdate";
/// The tools for the list: everybody who works in a session has them, unless their definition takes them away.
pub const TOOLS: [&str; 4] = [CREATE, GET, LIST, UPDATE];

/// What the ids of plans' tasks begin with where both are listed.
pub const OF_PLAN: &str = "plan:";

/// A task's number in its list; `1` is the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Id(u32);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Id {
    type Err = ();

    /// `7`, and also `#7`, as people write it.
    fn from_str(text: &str) -> Result<Self, ()> {
        let text = text.trim();
        let number = text.strip_prefix('#').unwrap_or(text).parse().map_err(drop)?;
        if number == 0 { Err(()) } else { Ok(Self(number)) }
    }
}

/// How a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Nobody is at it.
    #[default]
    Pending,
    /// Somebody holds it.
    InProgress,
    /// It is done, for good.
    Completed,
    /// It is not there any more.
    Deleted,
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Pending, Self::InProgress, Self::Completed, Self::Deleted];

    /// The word that models and people use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Deleted => "deleted",
        }
    }
}

/// What a task says.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Text {
    /// What is to be done, in a line.
    pub subject: String,
    /// All that whoever does it needs to know.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What is shown while it is done: "Writing the tests".
    #[serde(skip_serializing_if = "String::is_empty")]
    pub active_form: String,
    /// Whatever agents keep beside it.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// How a task stands, whose it is, and what it waits for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// How it stands.
    pub status: Status,
    /// The name of whoever is to do it, does it or did it; empty: anybody.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// Who holds it, while it is in progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<Address>,
    /// How often it was claimed.
    pub epoch: u32,
    /// Tasks that have to be completed first; those that were deleted since do not count.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub blocked_by: BTreeSet<Id>,
    /// Those who had it and gave it back, since the lead or the user last gave it to anybody: it is not handed to them again.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub declined: BTreeSet<Address>,
}

/// A task of the list.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Item {
    /// Its number.
    pub id: Id,
    /// What it says.
    pub text: Text,
    /// How it stands.
    pub state: State,
}

/// Whoever does something with the list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Doer {
    /// Where they are: nobody else is there.
    pub at: Address,
    /// What they are called; others may be called so, too.
    pub name: String,
    /// Whether they may take a task away from its holder: the user and the lead.
    pub steers: bool,
}

impl Doer {
    /// Whether they are meant by an owner's name.
    pub fn is(&self, owner: &str) -> bool {
        self.name == owner || self.at == owner
    }
}

/// Why somebody no longer holds a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// They gave it back.
    GivenBack,
    /// The lead or the user took it.
    Taken,
    /// They have ended what they were there for.
    Ended,
    /// They were shut down.
    Shutdown,
    /// They cannot go on.
    Died,
}

/// What has become of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Move {
    /// Somebody is at it.
    Claimed,
    /// Nobody is, any more.
    Released(Why),
    /// It is done.
    Completed,
    /// It is not there any more.
    Deleted,
    /// It is meant for somebody else.
    Assigned,
    /// It waits for other tasks.
    Blocked,
}

/// There is another task (list stream).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ItemAdded {
    /// Its number.
    pub id: Id,
    /// What it says.
    pub text: Text,
    /// Who added it.
    pub by: String,
}

/// A task says something else (list stream).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ItemWritten {
    /// Which.
    pub id: Id,
    /// All that it says now.
    pub text: Text,
    /// Who wrote it.
    pub by: String,
}

/// A task stands otherwise than before (list stream).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ItemMoved {
    /// Which.
    pub id: Id,
    /// What became of it.
    pub what: Move,
    /// How it stands now.
    pub state: State,
    /// By whom.
    pub by: String,
}

/// A task to be added.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct New {
    /// What is to be done, in a line.
    pub subject: String,
    /// All that whoever does it needs to know.
    pub description: String,
    /// What is shown while it is done.
    pub active_form: String,
    /// Whatever is kept beside it.
    pub metadata: Map<String, Value>,
}

/// What is to change about a task.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Update {
    /// Which.
    pub id: String,
    /// How it is to stand.
    pub status: Option<Status>,
    /// Whose it is to be; empty: anybody's.
    pub owner: Option<String>,
    /// Another subject.
    pub subject: Option<String>,
    /// Another description.
    pub description: Option<String>,
    /// Another active form.
    pub active_form: Option<String>,
    /// Members to put in or, where they are null, to take out.
    pub metadata: Map<String, Value>,
    /// Tasks that are to wait for it.
    pub blocks: Vec<String>,
    /// Tasks that it is to wait for.
    pub blocked_by: Vec<String>,
}

/// What somebody wants of the list.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Add a task.
    Create(New),
    /// Change one.
    Update(Box<Update>),
    /// Claim the first that they can begin with.
    Next,
    /// Give back what they hold: they are gone.
    Gone {
        /// Why.
        why: Why,
        /// Whether nobody of their name comes again: then what is meant for them is anybody's.
        for_good: bool,
    },
}

/// The list.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize)]
pub struct Tasks {
    items: BTreeMap<Id, Item>,
    /// The last number that was given; none is given twice.
    last: u32,
}

impl Tasks {
    /// A list as rows hold it: tasks that are there, and the last number that was ever given.
    pub fn of(items: impl IntoIterator<Item = Item>, last: u32) -> Self {
        Self { items: items.into_iter().map(|item| (item.id, item)).collect(), last }
    }

    /// All tasks, in the order of their numbers.
    pub fn items(&self) -> impl Iterator<Item = &Item> {
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

    /// One of them.
    pub fn get(&self, id: Id) -> Option<&Item> {
        self.items.get(&id)
    }

    /// One of them, by what somebody calls it.
    pub fn find(&self, text: &str) -> Result<&Item, Refusal> {
        if text.trim().starts_with(OF_PLAN) {
            return Err(Refusal::OfPlan(crate::text::quote(text)));
        }
        let id: Option<Id> = text.parse().ok();
        id.and_then(|id| self.items.get(&id)).ok_or_else(|| {
            let was_deleted = id.is_some_and(|id| id.0 <= self.last);
            let first = self.items.values().find(|item| subject_is(item, text)).map(|item| item.id);
            Refusal::Unknown { id: crate::text::quote(text), was_deleted, meant: first }
        })
    }

    /// The tasks that keep one from beginning.
    pub fn blockers<'a>(&'a self, item: &'a Item) -> impl Iterator<Item = Id> + 'a {
        let is_open = |id: &Id| self.items.get(id).is_some_and(|item| item.state.status != Status::Completed);
        item.state.blocked_by.iter().copied().filter(is_open)
    }

    /// The tasks that wait for one.
    pub fn blocked(&self, id: Id) -> impl Iterator<Item = Id> + '_ {
        self.items.values().filter(move |item| item.state.blocked_by.contains(&id)).map(|item| item.id)
    }

    /// The first task that somebody can begin with: nobody is at it, nothing is in its way, and it is theirs or anybody's.
    pub fn next(&self, doer: &Doer) -> Option<&Item> {
        self.items.values().find(|item| {
            let State { status, owner, declined, .. } = &item.state;
            let is_wanted = declined.len() < LIST_DECLINED_MAX && !declined.contains(&doer.at);
            let is_theirs = *status == Status::Pending && (owner.is_empty() || doer.is(owner));
            is_theirs && is_wanted && self.blockers(item).next().is_none()
        })
    }

    /// The tasks that somebody holds.
    pub fn held_by<'a>(&'a self, at: &'a str) -> impl Iterator<Item = &'a Item> {
        self.items.values().filter(move |item| item.state.holder.as_deref() == Some(at))
    }

    /// Folds an event in. Folding it twice changes nothing.
    pub fn apply(&mut self, event: &Event) {
        match event {
            // One that was deleted since does not come back.
            Event::ItemAdded(ItemAdded { id, text, .. }) if id.0 > self.last => {
                self.last = id.0;
                self.items.insert(*id, Item { id: *id, text: text.clone(), state: State::default() });
            }
            Event::ItemWritten(ItemWritten { id, text, .. }) => {
                if let Some(item) = self.items.get_mut(id) {
                    item.text.clone_from(text);
                }
            }
            Event::ItemMoved(moved) if moved.what == Move::Deleted => drop(self.items.remove(&moved.id)),
            Event::ItemMoved(ItemMoved { id, state, .. }) => {
                if let Some(item) = self.items.get_mut(id) {
                    item.state.clone_from(state);
                }
            }
            _ => {}
        }
    }
}

/// Whether somebody has called a task by what it says instead of its number.
fn subject_is(item: &Item, text: &str) -> bool {
    item.text.subject.trim().to_lowercase() == text.trim().to_lowercase()
}
