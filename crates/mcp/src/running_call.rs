//! A call under way. It ends, or its server asks the user something and waits for the answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use max_team_tools::Progress;
use rmcp::model::{CallToolResult, ElicitResult, ElicitationAction};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::connection::McpError;
use crate::elicitation::Elicitation;
use crate::known_tools::KnownTool;
use crate::server::Server;
use crate::server_end::ServerEnd;

/// Questions of one call that wait for each other.
const QUESTIONS_MAX: usize = 4;

/// A question of a server, with the way back.
#[derive(Debug)]
pub(crate) struct OpenQuestion {
    pub(crate) asked: Elicitation,
    pub(crate) reply: oneshot::Sender<ElicitResult>,
}

/// Where a call shows its progress and asks its questions.
#[derive(Debug, Clone)]
pub(crate) struct Watcher {
    pub(crate) progress: Progress,
    pub(crate) questions: mpsc::Sender<OpenQuestion>,
}

/// What happens next to a call.
#[derive(Debug)]
pub(crate) enum CallStep {
    Ended(Result<CallToolResult, McpError>),
    /// A question is open: see [`RunningCall::question`].
    Asks,
}

/// A call under way. Dropped, it is cancelled.
#[derive(Debug)]
pub(crate) struct RunningCall {
    task: JoinHandle<Result<CallToolResult, McpError>>,
    questions: mpsc::Receiver<OpenQuestion>,
    open: Option<OpenQuestion>,
    is_sent: Arc<AtomicBool>,
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl RunningCall {
    /// Begins a call.
    pub(crate) fn start(
        server: Arc<Server>,
        tool: KnownTool,
        arguments: Map<String, Value>,
        progress: Progress,
    ) -> Self {
        let (sender, questions) = mpsc::channel(QUESTIONS_MAX);
        let is_sent = Arc::new(AtomicBool::new(false));
        let (watcher, sent) = (Watcher { progress, questions: sender }, Arc::clone(&is_sent));
        let task = tokio::spawn(async move { server.call(&tool, arguments, &watcher, &sent).await });
        Self { task, questions, open: None, is_sent }
    }

    /// Whether the server may have got it.
    pub(crate) fn is_sent(&self) -> bool {
        self.is_sent.load(Ordering::Acquire)
    }

    /// Waits for its end or its next question.
    pub(crate) async fn next(&mut self) -> CallStep {
        tokio::select! {
            biased;
            Some(question) = self.questions.recv() => {
                self.open = Some(question);
                CallStep::Asks
            }
            ended = &mut self.task => {
                CallStep::Ended(ended.unwrap_or_else(|crash| Err(McpError::Gone(ServerEnd::Other(crash.to_string())))))
            }
        }
    }

    /// The open question as a person reads it.
    pub(crate) fn question(&self, server: &str) -> String {
        self.open.as_ref().map(|open| open.asked.words(server)).unwrap_or_default()
    }

    /// Gives a person's answer to the server; `None` declines. An answer that does not fit stays unsent, and the error says why.
    pub(crate) fn answer(&mut self, words: Option<&str>) -> Result<(), String> {
        let Some(open) = &self.open else { return Ok(()) };
        let result = match words {
            Some(words) => open.asked.accept(words)?,
            None => ElicitResult::new(ElicitationAction::Decline),
        };
        if let Some(open) = self.open.take() {
            // A server that no longer waits has taken its question back.
            drop(open.reply.send(result));
        }
        Ok(())
    }
}
