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

const CREATE_WORDS: &str = "Add a task to the list that everybody in this session shares. Use it to split work up before it \
    is done, and for what you come across. It begins as `pending`, without an owner; say what waits for what with \
    `TaskUpdate`. It runs nothing and asks nobody (a plan that code carries out is `submit_plan`).";
const UPDATE_WORDS: &str = "Change a task of the shared list. Claim it with `status: in_progress` before you work on it: only \
    one can, and nobody else is at it from then on. Say `completed` when it is really done, `pending` to give it back, \
    `deleted` if nobody needs it. `owner` alone means it for somebody. `addBlockedBy`: tasks that must be completed first; \
    `addBlocks`: tasks that wait for this one.";
const GET_WORDS: &str = "See all of one task of the shared list: what to do, who is at it, what it waits for.";
const LIST_WORDS: &str = "See the tasks that everybody in this session shares, with owner and what each waits for; also \
    those of the plans at work (`plan:…`, only to look at). Take the first that is pending, has no owner and is not blocked.";

/// Their names, words and schemas.
pub(crate) fn all() -> [(&'static str, &'static str, Value); 4] {
    let text = |words: &str| json!({ "type": "string", "description": words });
    let ids = |words: &str| json!({ "type": "array", "items": { "type": "string" }, "description": words });
    let metadata = |words: &str| json!({ "type": "object", "description": words });
    let id = text("The task's number, such as \"3\".");
    let active = text("What is shown while it is done: \"Writing the tests\".");
    let create = json!({
        "type": "object", "required": ["subject", "description"],
        "properties": {
            "subject": text("What is to be done, in a line: \"Write the tests\"."),
            "description": text("All that whoever does it needs to know, and when it is done."),
            "activeForm": active,
            "metadata": metadata("Anything to keep beside it."),
        },
    });
    let update = json!({
        "type": "object", "required": ["taskId"],
        "properties": {
            "taskId": id,
            "status": { "type": "string", "enum": Status::ALL.map(Status::name) },
            "owner": text("The name of whoever it is meant for, `user` for the user; empty: anybody."),
            "addBlocks": ids("Tasks that cannot begin before this one is completed."),
            "addBlockedBy": ids("Tasks that must be completed before this one can begin."),
            "metadata": metadata("Members to set; null takes one out."),
            "subject": text("Another subject."),
            "description": text("Another description."),
            "activeForm": active,
        },
    });
    let get = json!({ "type": "object", "required": ["taskId"], "properties": { "taskId": id } });
    let list = json!({ "type": "object", "properties": {} });
    [(CREATE, CREATE_WORDS, create), (UPDATE, UPDATE_WORDS, update), (GET, GET_WORDS, get), (LIST, LIST_WORDS, list)]
}
