//! The tools for tasks: `task_create`, `task_update` and `task_query`. All agents use them for the shared list; a lead also
//! steers the tasks of plans with them.

use std::sync::LazyLock;

use max_team_core::body::Instruction;
use max_team_core::id::PlanId;
use max_team_core::plan::TaskStatus as PlanStatus;
use max_team_core::plan::event::Ruling;
use max_team_core::policy::ActionKind;
use max_team_core::task_list::{CREATE, ListRequest, ListTaskStatus, NewTask, QUERY, TaskUpdate as Change, UPDATE};
use max_team_tools::Registry;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::{TeamTool, title, tool};

/// What a call wants of the shared list.
#[derive(Debug)]
pub(crate) enum TaskListRequest {
    Write(ListRequest),
    Get(String),
    List,
}

/// The input of `task_create`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Create {
    #[serde(alias = "subject")]
    title: String,
    #[serde(alias = "do")]
    description: String,
    #[serde(alias = "agent_name", alias = "owner")]
    agent: String,
    #[serde(alias = "needs", alias = "addBlockedBy", deserialize_with = "names")]
    depends_on: Vec<String>,
    #[serde(alias = "activeForm")]
    active_form: String,
    metadata: Map<String, Value>,
}

impl From<Create> for ListRequest {
    fn from(create: Create) -> Self {
        let Create { title: given, description, agent: owner, depends_on: blocked_by, active_form, metadata } = create;
        let subject = if given.trim().is_empty() { title(&description) } else { given };
        Self::Create(NewTask { subject, description, active_form, metadata, owner, blocked_by })
    }
}

/// The input of `task_update`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Update {
    #[serde(alias = "id", alias = "taskId", deserialize_with = "name")]
    pub task_id: String,
    pub plan: Option<PlanId>,
    pub answer: Option<String>,
    pub decision: Option<String>,
    #[serde(alias = "agent_name", alias = "owner")]
    pub agent: Option<String>,
    pub model: Option<String>,
    pub note: Option<String>,
    #[serde(alias = "subject")]
    title: Option<String>,
    #[serde(alias = "do")]
    description: Option<String>,
    #[serde(alias = "needs", alias = "addBlockedBy", deserialize_with = "names")]
    depends_on: Vec<String>,
    #[serde(alias = "addBlocks", deserialize_with = "names")]
    blocks: Vec<String>,
    status: Option<ListTaskStatus>,
    #[serde(alias = "activeForm")]
    active_form: Option<String>,
    metadata: Map<String, Value>,
}

/// A task's name; a number means the same.
fn name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(crate::agent::shown(&Value::deserialize(from)?))
}

fn names<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::<Vec<Value>>::deserialize(from)?.unwrap_or_default().iter().map(crate::agent::shown).collect())
}

impl Update {
    /// The change of a task of the shared list.
    pub(crate) fn change(&self) -> ListRequest {
        // Some models fill in every field: an empty one says nothing.
        let said = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        ListRequest::Update(Box::new(Change {
            id: self.task_id.clone(),
            status: self.status,
            owner: self.agent.clone(),
            subject: said(&self.title),
            description: said(&self.description),
            active_form: said(&self.active_form),
            metadata: self.metadata.clone(),
            blocks: self.blocks.clone(),
            blocked_by: self.depends_on.clone(),
        }))
    }

    pub(crate) fn says(&self) -> Result<Instruction, String> {
        if let Some(answer) = self.answer.as_ref().filter(|answer| !answer.trim().is_empty()) {
            return Ok(Instruction::Answer(answer.clone()));
        }
        let retry = || Ruling::Retry {
            agent: self.agent.clone(),
            model: self.model.clone(),
            note: self.note.clone().unwrap_or_default(),
        };
        let ruling = match self.decision.as_deref() {
            Some("cancel" | "cancelled") => return Ok(Instruction::Cancel),
            None if self.status == Some(ListTaskStatus::Deleted) => return Ok(Instruction::Cancel),
            Some("skip" | "skipped") => Ruling::Skip,
            Some("retry") => retry(),
            Some("fixed") => Ruling::Fixed,
            Some("accept" | "accepted") => Ruling::Accept,
            Some("give_up" | "fail" | "failed") => Ruling::GiveUp,
            Some("escalate" | "ask_user") => Ruling::Escalate,
            Some(other) => {
                let words = "there are cancel, accept, skip, retry, fixed, give_up and escalate";
                return Err(format!("`{other}` is no decision; {words}"));
            }
            None => return self.note(),
        };
        Ok(Instruction::Rule(ruling))
    }

    /// The note to a task that the user has approved. The task's own text stays, also if the note comes as
    /// `description`.
    fn note(&self) -> Result<Instruction, String> {
        let is_more =
            self.agent.is_some() || self.model.is_some() || !self.depends_on.is_empty() || self.title.is_some();
        let note = self.note.as_ref().or(self.description.as_ref()).filter(|note| !note.trim().is_empty());
        match note {
            _ if is_more => Err("once its plan is approved, a task stays as it is: only a `note` can be added".to_owned()),
            Some(note) => Ok(Instruction::Note(note.clone())),
            None => Err("say `answer` (to a question), `decision` (cancel, or about a failure) or `note` (to a task that has not begun)"
                .to_owned()),
        }
    }
}

/// The input of `task_query`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TaskQueryArgs {
    #[serde(alias = "id", alias = "taskId")]
    pub task_id: Option<String>,
    pub plan: Option<PlanId>,
    pub status: Option<PlanStatus>,
    pub page: Option<usize>,
}

const CREATE_WORDS: &str = "Add a task to the list that all agents of this session share. Runs nothing.";
const UPDATE_WORDS: &str = "Act on a task. Its owner asked: `answer`. It failed: `decision` accept (its owner's answer counts as the result), skip (it stays \
    undone; tasks that need it get its owner's answer), retry (`note` says what to do differently; also with another `agent` or `model`), fixed (mended: run the \
    checks again), give_up (with every task that needs it) or escalate (ask the user). No longer wanted: `decision` cancel (with \
    every task that needs it). Not begun, plan approved: `note` adds to what the user approved. A task of the shared list: `status`, \
    `agent` for its owner, `title`, `description`, `depends_on`. A task in the background: `decision` give_up stops it.";
const QUERY_WORDS: &str = "See tasks: owner, state, result, what each waits for. With `task_id` one of them and its whole \
    result; without it all tasks of open and finished plans, of the shared list and in the background.";
const LIST_UPDATE_WORDS: &str = "Change a task of the shared list. Set `in_progress` before you work on it: only one agent can. Set \
    `completed` when it is done, `pending` to give it back, `deleted` to drop it.";
const LIST_QUERY_WORDS: &str = "See the shared list and the tasks of plans, with owner and what each waits for; with `task_id` all of \
    one task. Take the first that is pending, has no owner and is not blocked.";

fn ids(words: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": words })
}

/// The three tools, as a lead has them.
pub(super) fn tools() -> [TeamTool; 3] {
    let text = |words: &str| json!({ "type": "string", "description": words });
    let create = json!({
        "type": "object",
        "properties": {
            "title": text("The task in a line: \"Write the tests\"."),
            "description": text("All that its owner needs to know, and when it is done."),
            "agent": text("The agent that it is meant for, or `user`. Left out: any."),
            "depends_on": ids("Numbers of tasks that must be completed first."),
            "active_form": text("Shown while it is done: \"Writing the tests\"."),
        },
    });
    let plain = || json!({ "type": "string" });
    let update = json!({
        "type": "object", "required": ["task_id"],
        "properties": {
            "task_id": plain(),
            "plan": { "type": "string", "description": "The plan's id, if several are open." },
            "answer": plain(),
            "decision": { "type": "string", "enum": ["accept", "skip", "retry", "fixed", "give_up", "escalate", "cancel"] },
            "agent": plain(), "model": plain(), "note": plain(), "title": plain(), "description": plain(),
            "depends_on": { "type": "array", "items": plain() },
            "status": { "type": "string", "enum": ListTaskStatus::ALL.map(ListTaskStatus::name) },
        },
    });
    let states = ["planned", "approved", "dispatched", "running", "done", "failed", "skipped", "cancelled"];
    let query = json!({
        "type": "object",
        "properties": {
            "task_id": { "type": "string" },
            "plan": { "type": "string" },
            "status": { "type": "string", "enum": states },
            "page": { "type": "integer", "minimum": 1, "description": "Which page of a long result." },
        },
    });
    [
        tool(CREATE, ActionKind::Team, CREATE_WORDS, create),
        tool(UPDATE, ActionKind::Team, UPDATE_WORDS, update),
        tool(QUERY, ActionKind::Team, QUERY_WORDS, query),
    ]
}

/// The tools as an agent has them that steers no plan: only what they do with the shared list. Made once: every member has them.
pub(crate) static LIST_ONLY: LazyLock<Registry> = LazyLock::new(|| {
    let plain = || json!({ "type": "string" });
    let update = json!({
        "type": "object", "required": ["task_id"],
        "properties": {
            "task_id": { "type": "string", "description": "The task's number." },
            "status": { "type": "string", "enum": ListTaskStatus::ALL.map(ListTaskStatus::name) },
            "agent": { "type": "string", "description": "The agent that it is meant for, or `user`; empty: any." },
            "depends_on": ids("Further tasks that must be completed first."),
            "blocks": ids("Tasks that wait for this one."),
            "metadata": { "type": "object", "description": "Keys to set; null removes one." },
            "title": plain(), "description": plain(), "active_form": plain(),
        },
    });
    let id = json!({ "type": "string", "description": "The task's number, or `plan:ID`." });
    let query = json!({ "type": "object", "properties": { "task_id": id } });
    let mut tools = Registry::new();
    tools.put(tool(UPDATE, ActionKind::Team, LIST_UPDATE_WORDS, update));
    tools.put(tool(QUERY, ActionKind::Team, LIST_QUERY_WORDS, query));
    tools
});
