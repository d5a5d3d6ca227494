//! The tools that act on the team itself: their descriptions, and how their arguments are read.
//!
//! They are tools like any other to a registry (a name, a schema, an action to judge), but they are carried out by the
//! agent's loop, in the same commit as their result. The names and fields that design documents use are read too.

mod call;
mod tasks;
mod teammates;

use max_team_core::delegation::offer::TOOL_SEARCH;
use max_team_core::delegation::tool_filter::{
    AGENT, CHECK_INBOX, EXIT_PLAN_MODE, SEND_MESSAGE, SPAWN, SPAWN_TEAMMATE, SPAWNED, TASK,
};
use max_team_core::id::PlanId;
use max_team_core::packages::PackageManager;
use max_team_core::plan::Draft;
use max_team_core::policy::{Action, ActionKind, Repeatability};
use max_team_core::task_list::{CREATE, QUERY, UPDATE};
use max_team_core::teammate::Spawn;
use max_team_core::turn::SUBMIT_PLAN;
use max_team_tools::aliases::canonical;
use max_team_tools::{Output, Registry, Spec, Tool, ToolContext, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

pub(crate) use call::{Callee, DelegateCall, Way, title, tools as calling};
pub(crate) use tasks::{Create, LIST_ONLY, TaskListRequest, TaskQueryArgs, Update};
pub(crate) use teammates::{Message, Spawned, checked};

use crate::memory;
use crate::skills::{SKILL, SkillTool};

/// Characters of a call's summary.
const TARGET_CHARS_MAX: usize = 120;

/// Gives a member a task.
pub const DISPATCH_TASK: &str = "dispatch_task";
/// Asks the user.
pub use max_team_core::delegation::tool_filter::ASK_USER;
/// Asks the author of the task.
pub use max_team_core::turn::NEED_CLARIFY;

/// Whether a call's result comes by mail.
pub(crate) fn answers_by_mail(tool: &str, kind: ActionKind) -> bool {
    is_call(tool, kind) || tool == NEED_CLARIFY
}

/// Whether another agent works for the call. Some skills are carried out by another agent.
pub(crate) fn is_call(tool: &str, kind: ActionKind) -> bool {
    matches!(tool, DISPATCH_TASK | TASK | AGENT | SEND_MESSAGE) || (tool == SKILL && kind == ActionKind::Team)
}

/// A parsed call.
#[derive(Debug)]
pub(crate) enum Act {
    SubmitPlan(Submit),
    Create(Create),
    Update(Box<Update>),
    Query(TaskQueryArgs),
    Dispatch(Dispatch),
    Call(DelegateCall),
    Message(Message),
    Spawn(Box<Spawn>),
    Inbox,
    Search(String),
    Spawned(Spawned),
    Plan,
    Skill(Value),
    Clarify { question: String },
    Memory(memory::MemoryRequest),
}

#[derive(Debug, Deserialize)]
pub(crate) struct Submit {
    #[serde(flatten)]
    pub draft: Draft,
    pub revises: Option<PlanId>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Dispatch {
    #[serde(alias = "agent_name", alias = "owner")]
    pub agent: String,
    #[serde(alias = "do", alias = "prompt", alias = "task")]
    pub description: String,
    pub task_id: Option<String>,
}

impl Act {
    pub(crate) fn read(tool: &str, input: Value) -> Result<Self, String> {
        let misfit = |error: serde_json::Error| format!("the input of `{tool}` does not fit: {error}");
        // A journal of an older version may hold a call under another name.
        Ok(match canonical(tool) {
            SUBMIT_PLAN => Self::SubmitPlan(serde_json::from_value(input).map_err(misfit)?),
            CREATE => Self::Create(serde_json::from_value(input).map_err(misfit)?),
            UPDATE => Self::Update(serde_json::from_value(input).map_err(misfit)?),
            QUERY => Self::Query(serde_json::from_value(input).map_err(misfit)?),
            DISPATCH_TASK => Self::Dispatch(serde_json::from_value(input).map_err(misfit)?),
            TASK => Self::Call(DelegateCall::task(input)?),
            AGENT => Self::Call(DelegateCall::agent(input)?),
            SEND_MESSAGE => Self::Message(Message::read(input)?),
            SPAWN_TEAMMATE => Self::Spawn(Box::new(teammates::read_spawn(input)?)),
            SPAWN => Self::Call(DelegateCall::spawn(input)?),
            SPAWNED => Self::Spawned(Spawned::read(input)?),
            CHECK_INBOX => Self::Inbox,
            TOOL_SEARCH => Self::Search(searched(&input).to_owned()),
            EXIT_PLAN_MODE => Self::Plan,
            memory::READ => Self::Memory(memory::MemoryRequest::Read(serde_json::from_value(input).map_err(misfit)?)),
            memory::WRITE => Self::Memory(memory::MemoryRequest::Write(serde_json::from_value(input).map_err(misfit)?)),
            SKILL => Self::Skill(input),
            NEED_CLARIFY => {
                Self::Clarify { question: input.get("question").map(super::agent::shown).unwrap_or_default() }
            }
            _ => return Err(format!("`{tool}` is not a tool of the team")),
        })
    }
}

/// A tool of the team, as a registry knows it.
#[derive(Debug)]
pub(crate) struct TeamTool {
    spec: Spec,
    kind: ActionKind,
}

impl Tool for TeamTool {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn action(&self, _: &ToolContext, args: &Value) -> Result<Action, ToolError> {
        let target: String = self.target(args)?.chars().take(TARGET_CHARS_MAX).collect();
        let preview = match self.kind {
            ActionKind::Ask => question(args),
            ActionKind::Propose => {
                teammates::TeammatePlanArgs::read(args.clone()).map_err(ToolError::correctable)?.plan
            }
            _ => String::new(),
        };
        Ok(Action { kind: self.kind, preview, ..Action::read(target) })
    }

    fn call(&self, _: &ToolContext, _: Value, _: &Action, _: bool) -> Result<Output, ToolError> {
        Err(ToolError::correctable(format!("`{}` works only inside a team", self.spec.name)))
    }
}

impl TeamTool {
    /// What a call is about, as permission rules see it. For calls of agents it is the called agent, read in the same
    /// way as when the call is carried out.
    fn target(&self, args: &Value) -> Result<String, ToolError> {
        let act = |read: Result<Act, String>| read.map_err(ToolError::correctable);
        match self.spec.name.as_str() {
            name @ (AGENT | SPAWN | TASK | DISPATCH_TASK | SPAWN_TEAMMATE | SEND_MESSAGE) => {
                Ok(match act(Act::read(name, args.clone()))? {
                    Act::Call(call) => call.who,
                    Act::Dispatch(dispatch) => dispatch.agent,
                    // Rules name agent types; the teammate's name is free text of the model.
                    Act::Spawn(spawn) => spawn.kind().to_owned(),
                    Act::Message(message) => message.to.join(", "),
                    _ => String::new(),
                })
            }
            _ => {
                let words =
                    ["question", "goal", "agent", "agent_name", "task_id", "taskId", "title", "subject", "to", "key"];
                let found = words.iter().find_map(|key| args.get(key).and_then(Value::as_str));
                Ok(found.unwrap_or_default().to_owned())
            }
        }
    }
}

/// A question with its options, as a person reads it.
fn question(args: &Value) -> String {
    let mut text = args.get("question").and_then(Value::as_str).unwrap_or_default().to_owned();
    for (index, option) in args.get("options").and_then(Value::as_array).into_iter().flatten().enumerate() {
        text.push_str(&format!("\n{}. {}", index + 1, super::agent::shown(option)));
    }
    text
}

/// Adds the tools that act on the team itself.
pub fn with_team(mut tools: Registry) -> Registry {
    for tool in all() {
        // A tool of that name that the caller registered before takes precedence.
        drop(tools.add(tool));
    }
    drop(tools.add(SkillTool::listed()));
    tools
}

/// A tool of the team.
fn tool(name: &str, kind: ActionKind, description: &str, schema: Value) -> TeamTool {
    let spec = Spec {
        name: name.to_owned(),
        description: description.to_owned(),
        schema,
        class: Repeatability::Pure,
        null_is_absent: true,
    };
    TeamTool { spec, kind }
}

fn all() -> Vec<TeamTool> {
    let only_question =
        || json!({ "type": "object", "required": ["question"], "properties": { "question": { "type": "string" } } });
    let own = [
        tool(SUBMIT_PLAN, ActionKind::Team, SUBMIT_WORDS, submit_schema()),
        tool(DISPATCH_TASK, ActionKind::Team, DISPATCH_WORDS, dispatch_schema()),
        tool(ASK_USER, ActionKind::Ask, ASK_WORDS, ask_schema()),
        tool(NEED_CLARIFY, ActionKind::Team, CLARIFY_WORDS, only_question()),
    ];
    let search = [tool_search()];
    let memory = memory::tools().map(|(name, words, schema)| tool(name, ActionKind::Team, words, schema));
    own.into_iter()
        .chain(search)
        .chain(calling(&[]))
        .chain(teammates::tools())
        .chain(memory)
        .chain(tasks::tools())
        .collect()
}

/// The tool that finds tools, for an agent that has some which its requests do not describe.
pub(crate) fn tool_search() -> TeamTool {
    let query = json!({ "type": "string", "description": "What the tool should do, in English, or its name." });
    let schema = json!({ "type": "object", "required": ["query"], "properties": { "query": query } });
    tool(TOOL_SEARCH, ActionKind::Team, SEARCH_WORDS, schema)
}

/// The input of `tool_search`.
pub(crate) fn searched(input: &Value) -> &str {
    input.get("query").and_then(Value::as_str).unwrap_or_default()
}

const SEARCH_WORDS: &str = "Find one of your further tools, which are not listed here.";
const DISPATCH_WORDS: &str = "Ask one member and wait for its answer; it sees nothing of this conversation. Several calls in one \
    answer run side by side.";
const ASK_WORDS: &str = "Ask the user one short question that only they can decide.";
const CLARIFY_WORDS: &str = "Ask the agent that gave you the task for something that you need to know and cannot find out. The answer is the result.";

fn dispatch_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "agent": { "type": "string", "description": "The member." },
            "description": { "type": "string", "description": "The whole task." },
            "task_id": { "type": "string", "description": "A task of the shared list, instead of `agent` and `description`." },
        },
    })
}

fn ask_schema() -> Value {
    json!({
        "type": "object", "required": ["question"],
        "properties": {
            "question": { "type": "string" },
            "options": { "type": "array", "items": { "type": "string" }, "maxItems": 6 },
        },
    })
}

const SUBMIT_WORDS: &str = "Propose a plan: few tasks with owners, in order, and what proves each done. It runs by itself once it is \
    approved; your turn ends with this call.";

fn submit_schema() -> Value {
    json!({
        "type": "object", "required": ["goal"],
        "properties": {
            "goal": { "type": "string", "description": "The purpose, in one sentence." },
            "tasks": { "type": "array", "items": task_schema() },
            "revises": { "type": "string", "description": "The id of the plan that it replaces. Repeat done tasks unchanged: they keep their results." },
            "max_parallel": { "type": "integer", "minimum": 1 },
        },
    })
}

fn task_schema() -> Value {
    let managers = PackageManager::ALL.map(PackageManager::name);
    let text = |words: &str| json!({ "type": "string", "description": words });
    let list = |words: &str| json!({ "type": "array", "items": { "type": "string" }, "description": words });
    json!({
        "type": "object",
        "properties": {
            "id": text("Letters, digits, - and _."),
            "title": text("In a few words."),
            "description": text("The whole task: its owner sees only this and the results it depends on."),
            "agent": text("The member that owns it."),
            "depends_on": list("Ids of tasks whose results it needs."),
            "when": text("`ID.failed` or `ID.ok`: run only then."),
            "owns": list("Globs of the only files that it may change, and no other task meanwhile. Left out: any. Empty: none."),
            "outputs": list("Files that must exist afterwards."),
            "verify": list("Commands that must pass afterwards, without shell syntax: the test command, or a file to run."),
            "installs": { "type": "array", "items": { "enum": managers }, "description": "Package managers it needs: opens their registries." },
            "retry": { "type": "integer", "minimum": 0, "description": "Further attempts. Default: 2." },
            "model": { "type": "string" },
            "isolation": { "type": "string", "enum": ["none", "worktree"], "description": "`worktree`: in a copy, merged once the checks pass." },
        },
    })
}
