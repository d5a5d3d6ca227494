//! Reports to a client while a call waits: progress notifications, or the state of its task.

use max_team_core::secret::redact;
use max_team_runtime::{StreamEvent, What};
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use rmcp::task_manager::TaskContext;

use super::result::row_text;

pub(super) enum Progress {
    /// The client did not ask for reports.
    Silent,
    Notifications {
        peer: Peer<RoleServer>,
        token: ProgressToken,
        /// Reports so far: the number must grow with each.
        sent: u32,
    },
    Task(TaskContext),
}

impl Progress {
    pub(super) fn of_request(context: &RequestContext<RoleServer>) -> Self {
        match context.meta.get_progress_token() {
            Some(token) => Self::Notifications { peer: context.peer.clone(), token, sent: 0 },
            None => Self::Silent,
        }
    }

    /// Reports an event, if it is one that a waiting client wants to hear of.
    pub(super) async fn report(&mut self, event: &StreamEvent) {
        let Some(words) = words(event).map(|words| row_text(&redact(&words))) else { return };
        match self {
            Self::Silent => {}
            Self::Notifications { peer, token, sent } => {
                *sent += 1;
                let report = ProgressNotificationParam::new(token.clone(), f64::from(*sent)).with_message(words);
                // A client that is gone needs no report; the end of the call finds out.
                drop(peer.notify_progress(report).await);
            }
            Self::Task(task) => task.set_status_message(words),
        }
    }
}

fn words(event: &StreamEvent) -> Option<String> {
    let name = event.agent.as_ref().map_or("team", |agent| agent.name.as_str());
    match &event.what {
        What::Status { message, .. } if !message.is_empty() => Some(format!("{name}: {message}")),
        What::ToolStart { tool_name, target, .. } => Some(format!("{name}: {tool_name} {target}")),
        What::Task { task, state, .. } => Some(format!("task {task}: {}", step(state))),
        What::Plan { state, .. } => Some(format!("plan: {}", step(state))),
        _ => None,
    }
}

/// The name of a step, as the event stream writes it.
fn step(step: &impl serde::Serialize) -> String {
    serde_json::to_value(step).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}
