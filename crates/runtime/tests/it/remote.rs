//! Remote tools in a turn: what ends their calls, and what the journal says then.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use max_team_core::event::{Event, ToolOutcome};
use max_team_core::policy::{Action, Repeatability};
use max_team_journal::Journal;
use max_team_llm::Replay;
use max_team_runtime::{Command, Which};
use max_team_tools::{Output, Registry, RemoteFuture, RemoteTool, Spec, ToolContext, ToolError};
use serde_json::{Value, json};

use super::crashes::events;
use super::{open, order, owner, project, runtime_equipped, until};

/// A tool whose server takes a call and answers only if it is told to.
#[derive(Debug, Clone)]
pub(crate) struct Remote {
    spec: Spec,
    sent: Arc<AtomicUsize>,
    answers: bool,
}

impl Remote {
    pub(crate) fn new(name: &str, class: Repeatability) -> Self {
        let spec = Spec {
            name: name.into(),
            description: "Asks the bank.".into(),
            schema: json!({ "type": "object", "properties": {} }),
            class,
            null_is_absent: true,
        };
        Self { spec, sent: Arc::default(), answers: true }
    }

    fn silent(class: Repeatability) -> Self {
        Self { answers: false, ..Self::new("transfer", class) }
    }

    fn sent(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
    }
}

impl RemoteTool for Remote {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn action(&self, _: &ToolContext, _: &Value) -> Result<Action, ToolError> {
        Ok(Action::read("bank"))
    }

    fn server(&self, _: &Value, _: &Action) -> Option<String> {
        Some("bank".to_owned())
    }

    fn call<'a>(&'a self, _: &'a ToolContext, _: Value, _: &'a Action, _: bool) -> RemoteFuture<'a> {
        self.sent.fetch_add(1, Ordering::Relaxed);
        let answers = self.answers;
        Box::pin(async move {
            match answers {
                true => Ok(Output::text("Paid.")),
                false => std::future::pending().await,
            }
        })
    }
}

const RECORDING: &str = "answers:\n  - parts: [{tool: transfer, input: {}}]\n  - text: I see.\n  - text: Still here.\n";

/// How the calls of a tool ended, and what the model was told.
fn endings(journal: &Journal) -> Vec<(ToolOutcome, String)> {
    let ended = events(journal).into_iter().filter_map(|(_, event)| match event {
        Event::ToolDone(done) => Some((done.ending, format!("{:?}", done.content))),
        _ => None,
    });
    ended.collect()
}

async fn until_sent(remote: &Remote) {
    while remote.sent() == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_interrupt_and_the_end_of_a_turns_time_end_a_remote_call() {
    for class in [Repeatability::Pure, Repeatability::Opaque] {
        for turn_ms in [None, Some(100)] {
            let (folder, journal, remote) = (project(), Journal::memory(), Remote::silent(class));
            let mut tools = Registry::new();
            tools.put_remote(remote.clone());
            let team = runtime_equipped(&journal, folder.path(), Replay::read(RECORDING).unwrap(), tools);
            let mut notices = team.watch();
            let mut asking = open(Which::New);
            asking.definition.tools = vec!["transfer".into()];
            asking.settings.turn_ms = turn_ms;
            let session = team.open(owner(), folder.path(), asking).await.unwrap().session;
            order(&team, Command::Say { session, text: "pay".into() }).await.unwrap();
            until_sent(&remote).await;
            if turn_ms.is_none() {
                order(&team, Command::Interrupt { session }).await.unwrap();
            }
            until(&mut notices, "turn_ended").await;
            let want = if class == Repeatability::Pure { ToolOutcome::Interrupted } else { ToolOutcome::Unknown };
            let ended = endings(&journal);
            assert!(matches!(ended.as_slice(), [(ending, _)] if *ending == want), "{class:?} {turn_ms:?}: {ended:?}");
            order(&team, Command::Say { session, text: "and now?".into() }).await.unwrap();
            until(&mut notices, "turn_ended").await;
            assert_eq!(remote.sent(), 1, "nothing is repeated");
        }
    }
}

#[test]
fn a_remote_call_that_a_kill_cut_off_is_unknown_once_and_not_repeated() {
    for (class, sent, want) in
        [(Repeatability::Opaque, 1, ToolOutcome::Unknown), (Repeatability::Pure, 2, ToolOutcome::Ran)]
    {
        let (folder, journal, silent) = (project(), Journal::memory(), Remote::silent(class));
        let live = |journal: &Journal, remote: &Remote, which: Which, is_killed: bool| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut tools = Registry::new();
                tools.put_remote(remote.clone());
                let team = runtime_equipped(journal, folder.path(), Replay::read(RECORDING).unwrap(), tools);
                let mut notices = team.watch();
                let mut asking = open(which);
                asking.definition.tools = vec!["transfer".into()];
                let session = team.open(owner(), folder.path(), asking).await.unwrap().session;
                if is_killed {
                    order(&team, Command::Say { session, text: "pay".into() }).await.unwrap();
                    until_sent(remote).await;
                } else {
                    until(&mut notices, "turn_ended").await;
                }
            });
        };
        live(&journal, &silent, Which::New, true);
        let journal = journal.reopen().unwrap();
        let answering = Remote { answers: true, ..silent.clone() };
        live(&journal, &answering, Which::Latest, false);
        let ended = endings(&journal);
        assert!(matches!(ended.as_slice(), [(ending, _)] if *ending == want), "{class:?}: {ended:?}");
        assert_eq!(silent.sent(), sent, "{class:?}");
    }
}
