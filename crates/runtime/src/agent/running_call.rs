//! A call of a tool on this machine that runs on while a person is asked about a host: the connection of its command waits.
//!
//! The call ends with `ToolError::Asks`, like a call of a server that asks, and is parked until the answer comes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use max_team_core::limits::BLOCKED_HOSTS_MAX;
use max_team_core::policy::Action;
use max_team_tools::command::CommandSandbox;
use max_team_tools::{HostQuestion, Output, ToolContext, ToolError};
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};

use crate::shared::lock;

pub(super) type Ran = Result<Output, ToolError>;

/// Calls that wait for an answer, by their keys.
pub(super) type ParkedCalls = Arc<Mutex<HashMap<String, RunningCall>>>;

/// A call on a thread of its own.
pub(super) struct RunningCall {
    task: JoinHandle<Ran>,
    questions: mpsc::Receiver<HostQuestion>,
    open: Option<HostQuestion>,
}

impl RunningCall {
    /// Begins a call. Connections of its commands may ask.
    pub(super) fn start(
        key: &str,
        mut cx: ToolContext,
        call: impl FnOnce(ToolContext) -> Ran + Send + 'static,
    ) -> Self {
        let (sender, questions) = mpsc::channel(BLOCKED_HOSTS_MAX);
        let hosts = cx.sandbox.hosts.clone().asking(key, sender);
        cx.sandbox = Arc::new(CommandSandbox { hosts, ..CommandSandbox::clone(&cx.sandbox) });
        Self { task: tokio::task::spawn_blocking(move || call(cx)), questions, open: None }
    }

    /// The parked call that an answer is for. After a restart there is none.
    pub(super) fn resume(key: &str, answered: &Action, parked: &ParkedCalls) -> Result<Self, ToolError> {
        let mut call = lock(parked).remove(key).ok_or_else(|| {
            ToolError::Unknown(
                "the program ended while the command waited for an answer about a host; the command may have done all, part \
                 or nothing of its work, and it is not repeated"
                    .to_owned(),
            )
        })?;
        if let Some(HostQuestion { answer, .. }) = call.open.take() {
            // Nothing waits for it if the command is over; its report looks at the answer.
            answer.send_replace(Some(answered.answer().flatten().is_some()));
        }
        Ok(call)
    }

    /// Waits for its end, or until it asks; then it is parked.
    pub(super) async fn next(mut self, key: String, parked: &ParkedCalls) -> Ran {
        tokio::select! {
            biased;
            ended = &mut self.task => ended.unwrap_or_else(|crash| Err(crashed(&crash))),
            Some(question) = self.questions.recv() => {
                let action = question.action.clone();
                self.open = Some(question);
                lock(parked).insert(key, self);
                Err(ToolError::Asks(Box::new(action)))
            }
        }
    }
}

pub(super) fn crashed(crash: &JoinError) -> ToolError {
    ToolError::correctable(format!("the tool crashed: {crash}"))
}
