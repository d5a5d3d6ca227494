//! Why the list stays as it is, in words that tell whoever asked what to do instead.

use std::fmt;

use super::Id;
use crate::limits::{LIST_BLOCKERS_MAX, LIST_TASKS_MAX};

/// A part of a task that can be too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// The subject.
    Subject,
    /// The description.
    Description,
    /// What is shown while it is done.
    ActiveForm,
    /// What is kept beside it.
    Metadata,
    /// The name of whoever it is meant for.
    Owner,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Subject => "subject",
            Self::Description => "description",
            Self::ActiveForm => "activeForm",
            Self::Metadata => "metadata",
            Self::Owner => "owner",
        })
    }
}

/// Why nothing changes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such task.
    #[error("{}", unknown(id, *was_deleted, *meant))]
    Unknown {
        /// What was asked for.
        id: String,
        /// Whether there was one.
        was_deleted: bool,
        /// The one that says what was asked for.
        meant: Option<Id>,
    },
    /// It is a plan's task.
    #[error(
        "`{0}` is a task of a plan, which code carries out: `TaskList` and `TaskGet` show it, nothing here changes it; \
         the lead says what it wants done about it with `task_update`"
    )]
    OfPlan(String),
    /// There is nothing to do about it.
    #[error("say what is to change about task `{0}`: `status`, `owner`, `addBlocks`, `addBlockedBy`, or what it says")]
    Nothing(Id),
    /// It says nothing.
    #[error("a task needs a `subject`: say in a line what is to be done")]
    NoSubject,
    /// A part of it is too long.
    #[error("`{field}` is {size} long; at most {max} fit: say it shorter, or put it into a file and name the file")]
    TooLong {
        /// Which part.
        field: Field,
        /// Its size.
        size: usize,
        /// The bound.
        max: usize,
    },
    /// The list is full.
    #[error("the list holds {LIST_TASKS_MAX} tasks and no more: delete those that nobody needs (`status: deleted`)")]
    Full,
    /// It would wait for too many.
    #[error("task `{0}` would wait for more than {LIST_BLOCKERS_MAX} others: let it wait for the last of them")]
    TooManyBlockers(Id),
    /// They would wait for each other.
    #[error("that would be a circle: {}; leave one of these out", circle(.0))]
    Circle(Vec<Id>),
    /// What it waits for cannot change any more.
    #[error("task `{0}` has been begun: what it waits for changes only while it is `pending`")]
    Begun(Id),
    /// Other tasks come first.
    #[error("task `{id}` cannot begin yet: it waits for {}; do that first, or take another (`TaskList`)", list(by))]
    Blocked {
        /// Which.
        id: Id,
        /// What is in its way.
        by: Vec<Id>,
    },
    /// Somebody else holds it.
    #[error(
        "task `{id}` is held by {}`{by}`, who is at it: take another (`TaskList` shows which are free); the lead or the \
         user can take it back with `status: pending`",
        if *same_name { "another " } else { "" }
    )]
    Held {
        /// Which.
        id: Id,
        /// By whom.
        by: String,
        /// Whether they have the name of whoever asked.
        same_name: bool,
    },
    /// It is meant for somebody else.
    #[error("task `{id}` is meant for `{owner}`: take another (`TaskList` shows which are free)")]
    Assigned {
        /// Which.
        id: Id,
        /// For whom.
        owner: String,
    },
    /// Nobody begins for another.
    #[error("only `{owner}` can say that it begins: leave `status` out, and task `{id}` is meant for `{owner}`")]
    ForOther {
        /// Which.
        id: Id,
        /// For whom.
        owner: String,
    },
    /// It is done.
    #[error("task `{id}` was completed{}and stays so: create another for what is left", by(owner))]
    Completed {
        /// Which.
        id: Id,
        /// By whom.
        owner: String,
    },
}

fn unknown(id: &str, was_deleted: bool, meant: Option<Id>) -> String {
    match (was_deleted, meant) {
        (true, _) => format!("task `{id}` was deleted; `TaskList` shows those there are"),
        (false, Some(meant)) => format!("there is no task `{id}`, did you mean `{meant}`?"),
        (false, None) => format!("there is no task `{id}`; `TaskList` shows those there are"),
    }
}

fn list(ids: &[Id]) -> String {
    ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ")
}

fn circle(ids: &[Id]) -> String {
    ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(" waits for ")
}

fn by(owner: &str) -> String {
    if owner.is_empty() { " ".to_owned() } else { format!(" by `{owner}` ") }
}
