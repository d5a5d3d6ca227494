//! The tools that clients see.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

/// A tool, by what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TeamTool {
    Ask,
    ProposePlan,
    RunPlan,
    Status,
    AnswerOf,
    SearchMemory,
    ReadArtifact,
    ListAgents,
}

impl TeamTool {
    const ALL: [Self; 8] = [
        Self::Ask,
        Self::ProposePlan,
        Self::RunPlan,
        Self::Status,
        Self::AnswerOf,
        Self::SearchMemory,
        Self::ReadArtifact,
        Self::ListAgents,
    ];

    pub(super) fn all() -> Vec<Tool> {
        Self::ALL.into_iter().map(Self::described).collect()
    }

    pub(super) fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::ProposePlan => "propose_plan",
            Self::RunPlan => "run_plan",
            Self::Status => "status",
            Self::AnswerOf => "answer_of",
            Self::SearchMemory => "search_memory",
            Self::ReadArtifact => "read_artifact",
            Self::ListAgents => "list_agents",
        }
    }

    /// Whether a call can wait for agents, so that it reports progress or becomes a task.
    pub(super) fn is_long(self) -> bool {
        matches!(self, Self::Ask | Self::ProposePlan | Self::RunPlan)
    }

    fn description(self) -> &'static str {
        match self {
            Self::Ask => {
                "Ask the team in this folder, or give it work; returns Max's answer. The conversation is kept between calls. If an \
                 action needs the user's approval, the result says so: the user decides, then call answer_of."
            }
            Self::ProposePlan => {
                "Let Max write a plan for a goal: tasks, owners, checks. Nothing runs. Returns the plan and its id; the user approves \
                 it."
            }
            Self::RunPlan => {
                "Run a plan that the user has approved, and wait for its end. A plan that is not approved is refused; the result says \
                 how the user approves it."
            }
            Self::Status => "List sessions, agents, open plans, and questions that wait for the user, in this folder.",
            Self::AnswerOf => "Read the last answer of a session, and whether the team still works there.",
            Self::SearchMemory => "Search what the team remembers about the user and this project.",
            Self::ReadArtifact => {
                "Read the result of a plan's task: without `name` its answer and the names of its artifacts, with `name` one of them."
            }
            Self::ListAgents => "List the agents of the team and what each does.",
        }
    }

    fn schema(self) -> Value {
        let session = json!({ "type": "string", "description":
            "Name of a separate conversation, or the id of one of your sessions; leave it out for the usual one" });
        let offset = json!({ "type": "integer", "minimum": 0, "description": "Byte to begin at, if the text was cut" });
        let plan = json!({ "type": "string", "description": "Id of the plan; a unique part of it is enough" });
        match self {
            Self::Ask => object(
                json!({ "text": { "type": "string", "description": "The question or the work" }, "session": session }),
                &["text"],
            ),
            Self::ProposePlan => object(
                json!({ "goal": { "type": "string", "description": "The goal of the plan" }, "session": session }),
                &["goal"],
            ),
            Self::RunPlan => object(json!({ "plan": plan }), &["plan"]),
            Self::Status | Self::ListAgents => object(json!({}), &[]),
            Self::AnswerOf => object(json!({ "session": session, "offset": offset }), &[]),
            Self::SearchMemory => object(
                json!({ "words": { "type": "string", "description": "Words to search for, in English or Chinese" },
                    "limit": { "type": "integer", "minimum": 1, "description": "At most this many facts" } }),
                &["words"],
            ),
            Self::ReadArtifact => object(
                json!({ "plan": plan, "task": { "type": "string", "description": "Id of the task" },
                    "name": { "type": "string", "description": "Name of the artifact" }, "offset": offset }),
                &["plan", "task"],
            ),
        }
    }

    fn described(self) -> Tool {
        let schema: JsonObject = match self.schema() {
            Value::Object(schema) => schema,
            _ => JsonObject::new(),
        };
        let hints = match self.is_long() {
            // Agents change files and run commands within the user's rules.
            true => ToolAnnotations::new().read_only(false),
            false => ToolAnnotations::new().read_only(true).open_world(false),
        };
        Tool::new(self.name(), self.description(), Arc::new(schema)).with_annotations(hints)
    }
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_that_only_read_say_so() {
        let tools = TeamTool::all();
        let read_only: Vec<&str> = tools
            .iter()
            .filter(|tool| tool.annotations.as_ref().is_some_and(|hints| hints.read_only_hint == Some(true)))
            .map(|tool| tool.name.as_ref())
            .collect();
        assert_eq!(read_only, ["status", "answer_of", "search_memory", "read_artifact", "list_agents"]);
        for tool in &tools {
            assert!(tool.description.as_ref().is_some_and(|words| words.len() < 300), "{}", tool.name);
            assert_eq!(tool.input_schema.get("type"), Some(&Value::from("object")), "{}", tool.name);
            assert!(TeamTool::find(&tool.name).is_some());
        }
    }
}
