//! The tools for the shared list, under the names and with the inputs that models know from elsewhere.

use max_team_core::tasks::{CREATE, GET, Input, LIST, New, Status, UPDATE, Update};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

/// What a call asks for.
#[derive(Debug)]
pub(crate) enum Ask {
    Write(Input),
    Get(String),
    List,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Changes {
    #[serde(deserialize_with = "name")]
    task_id: String,
    status: Option<Status>,
    owner: Option<String>,
    subject: Option<String>,
    description: Option<String>,
    active_form: Option<String>,
    metadata: Option<Map<String, Value>>,
    #[serde(deserialize_with = "names")]
    add_blocks: Vec<String>,
    #[serde(deserialize_with = "names")]
    add_blocked_by: Vec<String>,
}

impl From<Changes> for Update {
    fn from(changes: Changes) -> Self {
        let Changes { task_id, status, owner, subject, description, active_form, .. } = changes;
        // Some models fill every field in: what is empty was not meant to be said.
        let said = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        let (subject, description, active_form) = (said(subject), said(description), said(active_form));
        Self {
            id: task_id,
            status,
            owner,
            subject,
            description,
            active_form,
            metadata: changes.metadata.unwrap_or_default(),
            blocks: changes.add_blocks,
            blocked_by: changes.add_blocked_by,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Which {
    #[serde(deserialize_with = "name")]
    task_id: String,
}

/// A task's name; a number means the same.
fn name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(crate::agent::shown(&Value::deserialize(from)?))
}

fn names<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::<Vec<Value>>::deserialize(from)?.unwrap_or_default().iter().map(crate::agent::shown).collect())
}

impl Ask {
    /// Reads a call; `None`: it is of another tool.
    pub(crate) fn read(tool: &str, input: Value) -> Option<Result<Self, serde_json::Error>> {
        Some(match tool {
            CREATE => serde_json::from_value::<New>(input).map(|new| Self::Write(Input::Create(new))),
            UPDATE => serde_json::from_value::<Changes>(input)
                .map(|changes| Self::Write(Input::Update(Box::new(changes.into())))),
            GET => serde_json::from_value::<Which>(input).map(|which| Self::Get(which.task_id)),
            LIST => Ok(Self::List),
            _ => return None,
        })
    }
}

const CREATE_WORDS: &str = "Add a task to the list that all agents of this session share. Runs nothing.";
const UPDATE_WORDS: &str = "Change a task of the shared list. Set `in_progress` before you work on it: only one agent can. Set \
    `completed` when it is done, `pending` to give it back, `deleted` to drop it.";
const GET_WORDS: &str = "See one task of the shared list whole.";
const LIST_WORDS: &str = "See the shared list and the tasks of plans, with owner and what each waits for. Take the first that is \
    pending, has no owner and is not blocked.";

/// Their names, words and schemas.
pub(crate) fn all() -> [(&'static str, &'static str, Value); 4] {
    let text = |words: &str| json!({ "type": "string", "description": words });
    let ids = |words: &str| json!({ "type": "array", "items": { "type": "string" }, "description": words });
    let metadata = |words: &str| json!({ "type": "object", "description": words });
    let id = text("The task's number.");
    let active = text("Shown while it is done: \"Writing the tests\".");
    let create = json!({
        "type": "object", "required": ["subject", "description"],
        "properties": {
            "subject": text("The task in a line: \"Write the tests\"."),
            "description": text("All that its owner needs to know, and when it is done."),
            "activeForm": active,
            "metadata": metadata("Further data."),
        },
    });
    let update = json!({
        "type": "object", "required": ["taskId"],
        "properties": {
            "taskId": id,
            "status": { "type": "string", "enum": Status::ALL.map(Status::name) },
            "owner": text("The agent that it is meant for, or `user`; empty: any."),
            "addBlocks": ids("Tasks that wait for this one."),
            "addBlockedBy": ids("Tasks that must be completed first."),
            "metadata": metadata("Keys to set; null removes one."),
            "subject": json!({ "type": "string" }),
            "description": json!({ "type": "string" }),
            "activeForm": active,
        },
    });
    let get = json!({ "type": "object", "required": ["taskId"], "properties": { "taskId": id } });
    let list = json!({ "type": "object", "properties": {} });
    [(CREATE, CREATE_WORDS, create), (UPDATE, UPDATE_WORDS, update), (GET, GET_WORDS, get), (LIST, LIST_WORDS, list)]
}
