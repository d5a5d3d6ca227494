//! A tool that takes long is heard while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use max_team_core::policy::{Action, Repeatability};
use max_team_journal::Journal;
use max_team_llm::Replay;
use max_team_runtime::{Command, Delta, Notice, Which};
use max_team_tools::{Output, Registry, Spec, Tool, ToolContext, ToolError};
use serde_json::{Value, json};

use super::{open, order, owner, project, runtime_equipped};

/// Counts until somebody has heard it.
#[derive(Debug)]
struct Counter {
    spec: Spec,
    heard: Arc<AtomicBool>,
}

impl Tool for Counter {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn action(&self, _: &ToolContext, _: &Value) -> Result<Action, ToolError> {
        Ok(Action::read("."))
    }

    fn call(&self, cx: &ToolContext, _: Value, _: &Action, _: bool) -> Result<Output, ToolError> {
        let mut count = 0_u64;
        while !self.heard.load(Ordering::Relaxed) {
            cx.check()?;
            count += 1;
            cx.progress.say(|| format!("{count} so far"));
            std::thread::yield_now();
        }
        Ok(Output::text("done"))
    }
}

#[tokio::test]
async fn how_far_a_tool_is_reaches_whoever_watches() {
    let (folder, journal, heard) = (project(), Journal::memory(), Arc::new(AtomicBool::new(false)));
    let spec = Spec {
        name: "count".into(),
        description: "Counts.".into(),
        schema: json!({ "type": "object", "properties": {} }),
        class: Repeatability::Pure,
        null_is_absent: true,
    };
    let mut tools = Registry::new();
    tools.add(Counter { spec, heard: Arc::clone(&heard) }).unwrap();
    let replay = Replay::read("answers:\n  - parts:\n      - {tool: count, input: {}}\n  - text: Counted.\n").unwrap();
    let team = runtime_equipped(&journal, folder.path(), replay, tools);
    let mut notices = team.watch();
    let mut counting = open(Which::New);
    counting.definition.tools = vec!["count".into()];
    let opened = team.open(owner(), folder.path(), counting).await.unwrap();
    order(&team, Command::Say { session: opened.session, text: "count".into() }).await.unwrap();
    loop {
        match notices.recv().await.unwrap() {
            Notice::Delta { delta: Delta::Progress { key, words }, from, .. } => {
                assert!(words.ends_with(" so far") && from.lead && key == "1.0", "{key} {words}");
                heard.store(true, Ordering::Relaxed);
            }
            Notice::Event { event, .. } if event.name() == "turn_ended" => break,
            Notice::Stopped { error, .. } => panic!("{error}"),
            _ => {}
        }
    }
    assert!(heard.load(Ordering::Relaxed));
    let entries = journal.read_all(0, 1_000).unwrap();
    assert!(!format!("{entries:?}").contains("so far"), "what is only for show is not journalled");
}
