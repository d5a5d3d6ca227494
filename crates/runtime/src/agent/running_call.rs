//! A call of a tool on this machine that runs on while a person is asked about a host: the connection of its command waits.
//!
//! The call ends with `ToolError::Asks`, like a call of a server that asks, and is parked until the answer comes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use max_team_core::chat::Part;
use max_team_core::limits::BLOCKED_HOSTS_MAX;
use max_team_core::policy::Action;
use max_team_tools::command::CommandSandbox;
use max_team_tools::{HostAnswer, HostQuestion, Output, ToolContext, ToolError, late_answer};
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
    /// What the result says of answers that came after the end of its command.
    late: String,
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
        Self { task: tokio::task::spawn_blocking(move || call(cx)), questions, open: None, late: String::new() }
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
        if let Some(HostQuestion { action, answer }) = call.open.take() {
            let said = HostAnswer::of(answered);
            // A command that is over has told what it was refused, and waits for no answer.
            let is_late = call.task.is_finished() || answer.is_closed();
            answer.send_replace(Some(said));
            call.late.extend(late_answer(&action.target, said).filter(|_| is_late));
        }
        Ok(call)
    }

    /// Waits for its end, or until it asks; then it is parked.
    pub(super) async fn next(mut self, key: String, parked: &ParkedCalls) -> Ran {
        tokio::select! {
            biased;
            ended = &mut self.task => {
                let mut ran = ended.unwrap_or_else(|crash| Err(crashed(&crash)));
                match &mut ran {
                    Ok(output) if !self.late.is_empty() => output.content.push(Part::text(self.late)),
                    Err(ToolError::Correctable(words)) => words.push_str(&self.late),
                    _ => {}
                }
                ran
            }
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use max_team_tools::Root;

    use super::*;

    /// The command gave up before the answer came: its result says what the answer was.
    #[tokio::test]
    async fn an_answer_after_the_end_of_the_command_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let cx = ToolContext::new(Arc::new(Root::open(folder.path()).unwrap()));
        let connection = Action::connection("1.0", "a.example", None, "curl".to_owned());
        let yes = "[no network: `a.example` was blocked before the user allowed it; run the command again]\n";
        let table = [
            (connection.clone().with_answer(Some("")), Some(yes)),
            (connection.clone().with_answer(None), Some("[no network: the user refused `a.example`]\n")),
            (connection.clone().without_answer(), None),
        ];
        for (answered, want) in table {
            let (parked, asked) = (ParkedCalls::default(), connection.clone());
            let (go, gone) = mpsc::channel::<()>();
            let call = RunningCall::start("1.0", cx.clone(), move |cx| {
                let answer = cx.sandbox.hosts.ask(asked);
                gone.recv().unwrap();
                drop(answer);
                Ok(Output::text("gave up"))
            });
            assert!(matches!(call.next("1.0".to_owned(), &parked).await, Err(ToolError::Asks(_))));
            go.send(()).unwrap();
            while !lock(&parked)["1.0"].task.is_finished() {
                tokio::task::yield_now().await;
            }
            let call = RunningCall::resume("1.0", &answered, &parked).unwrap();
            let told = call.next("1.0".to_owned(), &parked).await.unwrap();
            let all: Vec<Part> = [Some("gave up"), want].into_iter().flatten().map(Part::text).collect();
            assert_eq!(told.content, all);
        }
    }
}
