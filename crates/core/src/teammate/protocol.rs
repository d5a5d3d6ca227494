//! What a model can send to a teammate: text, or a message of one of the team's protocols.
//!
//! Names and fields are those that models know. This module also decides who may send what: a lead asks for a shutdown
//! and decides about plans and modes, a teammate only answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits::CALL_TEXT_BYTES_MAX;
use crate::message::MessageKind;
use crate::policy::Mode;

/// The content of `send_message`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ProtocolMessage {
    Text {
        #[serde(alias = "content", alias = "message")]
        text: String,
    },
    /// Asks a teammate to shut down.
    ShutdownRequest {
        #[serde(default, alias = "content", alias = "message")]
        reason: String,
        /// Seconds after which the request expires.
        #[serde(default)]
        deadline_s: Option<u64>,
    },
    /// A teammate's answer to a shutdown request.
    ShutdownResponse {
        request_id: String,
        /// Whether the teammate shuts down.
        approve: bool,
        /// Why it does not.
        #[serde(default, alias = "content", alias = "message")]
        reason: String,
    },
    /// A lead's answer to a plan.
    PlanApprovalResponse {
        request_id: String,
        /// Whether the plan may be carried out.
        approve: bool,
        /// What the plan should change.
        #[serde(default, alias = "content", alias = "reason")]
        feedback: String,
    },
    /// Changes a teammate's permission mode.
    ModeSetRequest { mode: Mode },
    /// Assigns a task of the shared list.
    TaskAssignment {
        /// The task of the shared list.
        #[serde(alias = "taskId")]
        task_id: String,
        /// Notes about the task.
        #[serde(default, alias = "content", alias = "message", alias = "note")]
        text: String,
    },
}

/// The names that `type` may have, for the error about an unknown one.
const NAMES: [&str; 6] = [
    "message",
    "shutdown_request",
    "shutdown_response",
    "plan_approval_response",
    "mode_set_request",
    "task_assignment",
];

impl ProtocolMessage {
    /// Reads what a model wrote as its message.
    pub fn parse(message: &Value) -> Result<Self, String> {
        let word = match message {
            Value::String(text) => Self::Text { text: text.clone() },
            Value::Object(fields) => match fields.get("type").and_then(Value::as_str) {
                Some("message" | "text") | None => {
                    let text = ["text", "content", "message"].iter().find_map(|name| fields.get(*name)?.as_str());
                    Self::Text { text: text.unwrap_or_default().to_owned() }
                }
                Some(name) if !NAMES.contains(&name) => {
                    return Err(format!("`{name}` is nothing that can be said; there are {}", NAMES.join(", ")));
                }
                Some(name) => Self::deserialize(message).map_err(|error| format!("this is no {name}: {error}"))?,
            },
            other => return Err(format!("`message` is words or an object, not `{other}`")),
        };
        word.bounded()
    }

    fn bounded(self) -> Result<Self, String> {
        let text = self.text();
        if text.len() > CALL_TEXT_BYTES_MAX {
            let bytes = text.len();
            return Err(format!(
                "a message has at most {CALL_TEXT_BYTES_MAX} bytes, not {bytes}; name the files to read instead"
            ));
        }
        if matches!(self, Self::Text { .. }) && text.trim().is_empty() {
            return Err("the message is empty: put the words into `message`".to_owned());
        }
        Ok(self)
    }

    /// The text in it.
    pub fn text(&self) -> &str {
        match self {
            Self::Text { text } | Self::TaskAssignment { text, .. } => text,
            Self::ShutdownRequest { reason, .. } | Self::ShutdownResponse { reason, .. } => reason,
            Self::PlanApprovalResponse { feedback, .. } => feedback,
            Self::ModeSetRequest { .. } => "",
        }
    }

    /// The kind of the mailbox message that carries it.
    pub fn kind(&self) -> MessageKind {
        match self {
            Self::Text { .. } => MessageKind::Text,
            Self::ShutdownRequest { .. } => MessageKind::ShutdownRequest,
            Self::ShutdownResponse { approve: true, .. } => MessageKind::ShutdownApproved,
            Self::ShutdownResponse { approve: false, .. } => MessageKind::ShutdownRejected,
            Self::PlanApprovalResponse { .. } => MessageKind::PlanApprovalResponse,
            Self::ModeSetRequest { .. } => MessageKind::ModeSetRequest,
            Self::TaskAssignment { .. } => MessageKind::TaskAssign,
        }
    }

    /// Why the sender may not send it; `None` if it may.
    pub fn send_error(&self, is_lead: bool) -> Option<&'static str> {
        match (self, is_lead) {
            (Self::Text { .. }, _) | (Self::ShutdownResponse { .. }, false) => None,
            (Self::ShutdownResponse { .. }, true) => Some("only a teammate answers a request to shut down"),
            (_, true) => None,
            (_, false) => Some("only the lead says this; write to it in words"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_and_protocols_are_read_by_the_names_that_models_know() {
        let text = |text: &str| ProtocolMessage::Text { text: text.to_owned() };
        for (message, want) in [
            (json!("hello"), text("hello")),
            (json!({ "type": "message", "content": "hi" }), text("hi")),
            (json!({ "text": "hi" }), text("hi")),
            (
                json!({ "type": "shutdown_request", "reason": "done" }),
                ProtocolMessage::ShutdownRequest { reason: "done".into(), deadline_s: None },
            ),
            (
                json!({ "type": "shutdown_response", "request_id": "r", "approve": false, "content": "busy" }),
                ProtocolMessage::ShutdownResponse { request_id: "r".into(), approve: false, reason: "busy".into() },
            ),
            (
                json!({ "type": "plan_approval_response", "request_id": "q", "approve": true }),
                ProtocolMessage::PlanApprovalResponse {
                    request_id: "q".into(),
                    approve: true,
                    feedback: String::new(),
                },
            ),
            (
                json!({ "type": "mode_set_request", "mode": "plan" }),
                ProtocolMessage::ModeSetRequest { mode: Mode::Plan },
            ),
            (
                json!({ "type": "task_assignment", "taskId": "3" }),
                ProtocolMessage::TaskAssignment { task_id: "3".into(), text: String::new() },
            ),
        ] {
            assert_eq!(ProtocolMessage::parse(&message), Ok(want), "{message}");
        }
    }

    #[test]
    fn an_invalid_protocol_message_is_explained() {
        for message in [
            json!(""),
            json!("  "),
            json!({ "type": "message" }),
            json!(7),
            json!({ "type": "sudo" }),
            json!({ "type": "shutdown_response" }),
            json!({ "type": "mode_set_request", "mode": "god" }),
            json!("x".repeat(CALL_TEXT_BYTES_MAX + 1)),
        ] {
            assert!(ProtocolMessage::parse(&message).is_err(), "{message}");
        }
        assert!(ProtocolMessage::parse(&json!(" \n")).unwrap_err().starts_with("the message is empty"));
    }

    #[test]
    fn a_teammate_only_answers() {
        let ask = ProtocolMessage::ShutdownRequest { reason: String::new(), deadline_s: None };
        let answer = ProtocolMessage::ShutdownResponse { request_id: "r".into(), approve: true, reason: String::new() };
        let words = ProtocolMessage::Text { text: "hi".into() };
        for (word, lead, teammate) in [(ask, true, false), (answer, false, true), (words, true, true)] {
            assert_eq!(
                (word.send_error(true).is_none(), word.send_error(false).is_none()),
                (lead, teammate),
                "{word:?}"
            );
        }
    }
}
