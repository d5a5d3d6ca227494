//! Why a change of the list is refused; the text tells the agent what to do instead.

use std::fmt;

use super::TaskNumber;
use crate::limits::{LIST_BLOCKERS_MAX, LIST_TASKS_MAX};

/// A part of a task that can be too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskField {
    Subject,
    Description,
    /// The text that is shown while it is done.
    ActiveForm,
    /// The free-form data of the agents.
    Metadata,
    /// The name of the agent that is to do it.
    Owner,
}

impl fmt::Display for TaskField {
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

/// Why a change is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListRefusal {
    /// There is no such task.
    #[error("{}", unknown(id, *was_deleted, *meant))]
    Unknown {
        /// The id as given.
        id: String,
        /// Whether a task of this number was deleted.
        was_deleted: bool,
        /// The task whose subject was given instead of a number.
        meant: Option<TaskNumber>,
    },
    /// The id names a task of a plan.
    #[error(
        "`{0}` is a task of a plan, which code carries out: `task_query` shows it, nothing here changes it; \
         the lead says what it wants done about it with `task_update`"
    )]
    OfPlan(String),
    /// The update changes nothing.
    #[error("say what is to change about task `{0}`: `status`, `agent`, `depends_on`, or what it says")]
    Nothing(TaskNumber),
    /// The subject is empty.
    #[error("a task needs a `title`: say in a line what is to be done")]
    NoSubject,
    /// A field is too long.
    #[error("`{field}` is {size} long; at most {max} fit: say it shorter, or put it into a file and name the file")]
    TooLong { field: TaskField, size: usize, max: usize },
    /// The list is full.
    #[error(
        "the list holds {LIST_TASKS_MAX} tasks and no more: delete those that are no longer needed (`status: deleted`)"
    )]
    Full,
    /// It would wait for too many tasks.
    #[error("task `{0}` would wait for more than {LIST_BLOCKERS_MAX} others: let it wait for the last of them")]
    TooManyBlockers(TaskNumber),
    /// The tasks would wait for each other.
    #[error("that would be a circle: {}; leave one of these out", circle(.0))]
    Circle(Vec<TaskNumber>),
    /// The task has begun, so its dependencies cannot change any more.
    #[error("task `{0}` has been begun: what it waits for changes only while it is `pending`")]
    Begun(TaskNumber),
    /// Other tasks come first.
    #[error("task `{id}` cannot begin yet: it waits for {}; do that first, or take another (`task_query`)", list(by))]
    Blocked {
        id: TaskNumber,
        /// The tasks that it waits for.
        by: Vec<TaskNumber>,
    },
    /// Another agent holds it.
    #[error(
        "task `{id}` is held by {}`{by}`, who is at it: take another (`task_query` shows which are free); the lead or the \
         user can take it back with `status: pending`",
        if *same_name { "another " } else { "" }
    )]
    Held {
        id: TaskNumber,
        /// Name of the holder.
        by: String,
        /// Whether the holder has the same name as the agent that asks.
        same_name: bool,
    },
    /// It is assigned to another agent.
    #[error("task `{id}` is meant for `{owner}`: take another (`task_query` shows which are free)")]
    Assigned { id: TaskNumber, owner: String },
    /// An agent cannot start a task for another agent.
    #[error("only `{owner}` can say that it begins: leave `status` out, and task `{id}` is meant for `{owner}`")]
    ForOther { id: TaskNumber, owner: String },
    /// It is completed already.
    #[error("task `{id}` was completed{}and stays so: create another for what is left", by(owner))]
    Completed { id: TaskNumber, owner: String },
}

fn unknown(id: &str, was_deleted: bool, meant: Option<TaskNumber>) -> String {
    match (was_deleted, meant) {
        (true, _) => format!("task `{id}` was deleted; `task_query` lists the tasks"),
        (false, Some(meant)) => format!("there is no task `{id}`, did you mean `{meant}`?"),
        (false, None) => format!("there is no task `{id}`; `task_query` lists the tasks"),
    }
}

fn list(ids: &[TaskNumber]) -> String {
    ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ")
}

fn circle(ids: &[TaskNumber]) -> String {
    ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(" waits for ")
}

fn by(owner: &str) -> String {
    if owner.is_empty() { " ".to_owned() } else { format!(" by `{owner}` ") }
}
