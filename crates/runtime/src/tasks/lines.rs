//! A task list as models and people read it: its own tasks, and those of running plans.

use max_team_core::id::SessionId;
use max_team_core::plan::{Plan, TaskStatus as PlanStatus, TaskView, WaitReason};
use max_team_core::task_list::{ListTask, ListTaskStatus, OF_PLAN, TaskList};
use serde::Serialize;
use serde_json::{Map, Value};

use super::TaskLists;
use crate::error::RuntimeError;
use crate::read_model::ReadModel;

/// A task in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedTask {
    /// Its id: a number, or `plan:<task>`.
    pub id: String,
    /// The task in a line.
    pub subject: String,
    /// Everything that its owner needs to know.
    pub description: String,
    /// The text that is shown while it is done.
    pub active_form: String,
    /// Free data that an agent stored with it.
    pub metadata: Map<String, Value>,
    pub status: ListTaskStatus,
    /// The owner's name; empty if it has none.
    pub owner: String,
    /// Unfinished tasks that must be done first.
    pub blocked_by: Vec<String>,
    /// Tasks that wait for it.
    pub blocks: Vec<String>,
    /// How often it was claimed or tried.
    pub epoch: u32,
    /// Its status in the plan, if it is a plan's task.
    pub in_plan: Option<&'static str>,
}

impl ListedTask {
    fn of(item: &ListTask, tasks: &TaskList) -> Self {
        let names = |ids: &mut dyn Iterator<Item = max_team_core::task_list::TaskNumber>| {
            ids.map(|id| id.to_string()).collect()
        };
        let (text, state) = (item.text.clone(), &item.state);
        Self {
            id: item.id.to_string(),
            subject: text.subject,
            description: text.description,
            active_form: text.active_form,
            metadata: text.metadata,
            status: state.status,
            owner: state.owner.clone(),
            blocked_by: names(&mut tasks.blockers(item)),
            blocks: names(&mut tasks.blocked(item.id)),
            epoch: state.epoch,
            in_plan: None,
        }
    }

    fn of_plan(view: &TaskView<'_>, plan: &Plan) -> Self {
        let name = |id: &str| format!("{OF_PLAN}{id}");
        let is_open = |id: &&String| {
            let done = |view: TaskView<'_>| standing(&view) == ListTaskStatus::Completed;
            plan.tasks().find(|other| other.task.id == **id).is_some_and(|view| !done(view))
        };
        let waiting = plan.tasks().filter(|other| other.task.needs.contains(&view.task.id));
        Self {
            id: name(&view.task.id),
            subject: view.task.caption().to_owned(),
            description: view.task.description.clone(),
            active_form: String::new(),
            metadata: Map::new(),
            status: standing(view),
            owner: view.member.to_owned(),
            blocked_by: view.task.needs.iter().filter(is_open).map(|id| name(id)).collect(),
            blocks: waiting.map(|other| name(&other.task.id)).collect(),
            epoch: view.attempt,
            in_plan: Some(view.status.name()),
        }
    }

    /// One line of a list, for a model.
    pub(crate) fn short(&self) -> String {
        let mut text = format!("#{} [{}] {}", self.id, self.status.name(), self.subject);
        if !self.owner.is_empty() {
            text.push_str(&format!(" ({})", self.owner));
        }
        if !self.blocked_by.is_empty() && self.status == ListTaskStatus::Pending {
            text.push_str(&format!(" [blocked by {}]", numbers(&self.blocked_by)));
        }
        text
    }
}

/// A whole task, for a model.
pub(crate) fn whole(line: &ListedTask) -> String {
    let mut text = line.short();
    let mut add = |words: String| text.push_str(&format!("\n{words}"));
    if let Some(word) = line.in_plan {
        add(format!("A plan's task, which is {word} there; nothing here changes it."));
    }
    if !line.active_form.is_empty() {
        add(format!("activeForm: {}", line.active_form));
    }
    if !line.blocks.is_empty() {
        add(format!("blocks: {}", numbers(&line.blocks)));
    }
    if !line.metadata.is_empty() {
        add(format!("metadata: {}", Value::Object(line.metadata.clone())));
    }
    if !line.description.is_empty() {
        add(format!("\n{}", line.description));
    }
    text
}

fn numbers(ids: &[String]) -> String {
    ids.iter().map(|id| format!("#{id}")).collect::<Vec<_>>().join(", ")
}

/// The status of a plan's task, in terms of the list.
fn standing(view: &TaskView<'_>) -> ListTaskStatus {
    match view.status {
        PlanStatus::Planned | PlanStatus::Approved => ListTaskStatus::Pending,
        PlanStatus::Dispatched | PlanStatus::Running => ListTaskStatus::InProgress,
        // It will be retried, or waits for a decision.
        PlanStatus::Failed if view.waits != WaitReason::No => ListTaskStatus::InProgress,
        PlanStatus::Done | PlanStatus::Failed | PlanStatus::Skipped | PlanStatus::Cancelled => {
            ListTaskStatus::Completed
        }
    }
}

impl TaskLists<'_> {
    /// All tasks of a session: those of its list in order, then those of running plans.
    pub fn lines(&self, session: SessionId) -> Result<Vec<ListedTask>, RuntimeError> {
        let tasks = self.tasks(session)?;
        let mut lines: Vec<ListedTask> = tasks.items().map(|item| ListedTask::of(item, &tasks)).collect();
        let census = ReadModel::new(self.journal);
        for id in census.open_plans(Some(session))? {
            let plan = census.plan(id)?;
            if plan.is_approved() {
                lines.extend(plan.tasks().map(|view| ListedTask::of_plan(&view, &plan)));
            }
        }
        Ok(lines)
    }

    /// One task, by its id.
    pub fn line(&self, session: SessionId, id: &str) -> Result<ListedTask, RuntimeError> {
        if id.trim().starts_with(OF_PLAN) {
            let found = self.lines(session)?.into_iter().find(|line| line.id == id.trim());
            return found.ok_or_else(|| RuntimeError::NoPlanTask(id.trim().to_owned()));
        }
        let tasks = self.tasks(session)?;
        Ok(ListedTask::of(tasks.find(id)?, &tasks))
    }
}
