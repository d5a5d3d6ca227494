//! Tools that come from a source: they appear, change and disappear between turns.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use max_team_core::event::{Event, ToolOutcome};
use max_team_core::id::SessionId;
use max_team_core::policy::Repeatability;
use max_team_journal::Journal;
use max_team_llm::Replay;
use max_team_runtime::{Command, Notice, OpenOptions, TeamHandle, Which};
use max_team_tools::{Handler, Registry, ToolSource};
use tokio::sync::mpsc;

use super::crashes::events;
use super::remote::Remote;
use super::{open, order, owner, project, runtime_supplied, until};

/// A source whose tools a test changes.
#[derive(Debug, Default)]
struct Shop {
    tools: Mutex<Vec<Handler>>,
    generation: AtomicU64,
    asked: AtomicUsize,
}

impl Shop {
    fn offer(&self, names: &[&str]) {
        let tool = |name: &&str| Handler::Remote(Arc::new(Remote::new(name, Repeatability::Pure)));
        *self.tools.lock().unwrap() = names.iter().map(tool).collect();
        self.generation.fetch_add(1, Ordering::Relaxed);
    }
}

impl ToolSource for Shop {
    fn name(&self) -> &str {
        "shop"
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    fn tools(&self) -> Vec<Handler> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.tools.lock().unwrap().clone()
    }
}

fn with_shop(which: Which) -> OpenOptions {
    let mut open = open(which);
    open.definition.tools = vec!["read_file".into()];
    open.definition.sources = vec!["shop".into()];
    open
}

async fn say(team: &TeamHandle, session: SessionId, notices: &mut mpsc::Receiver<Notice>) {
    order(team, Command::Say { session, text: "go on".into() }).await.unwrap();
    until(notices, "turn_ended").await;
}

/// The tools that each request described, from the journal alone.
fn described(journal: &Journal) -> Vec<Vec<String>> {
    let names = |hash| {
        let blob = journal.blob(&hash).unwrap().unwrap();
        let tools: Vec<serde_json::Value> = serde_json::from_slice(&blob).unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let intents = events(journal).into_iter().filter_map(|(_, event)| match event {
        Event::LlmIntent(intent) => Some(names(intent.request.tools)),
        _ => None,
    });
    intents.collect()
}

/// How calls ended, and what the model was told.
fn results(journal: &Journal) -> Vec<(ToolOutcome, String)> {
    let ended = events(journal).into_iter().filter_map(|(_, event)| match event {
        Event::ToolDone(done) => Some((done.ending, format!("{:?}", done.content))),
        _ => None,
    });
    ended.collect()
}

#[tokio::test]
async fn tools_appear_and_disappear_between_turns() {
    let (folder, journal, shop) = (project(), Journal::memory(), Arc::new(Shop::default()));
    let buy = "  - parts: [{tool: shop_buy, input: {}}]\n  - text: Done.\n";
    let recording = format!("answers:\n  - text: Nothing.\n{buy}{buy}  - text: Back.\n  - text: Still.\n");
    let start = |journal: &Journal| {
        let replay = Replay::read(&recording).unwrap();
        runtime_supplied(
            journal,
            folder.path(),
            replay,
            Registry::builtin(),
            vec![Arc::clone(&shop) as Arc<dyn ToolSource>],
        )
    };
    let team = start(&journal);
    let mut notices = team.watch();
    let session = team.open(owner(), folder.path(), with_shop(Which::New)).await.unwrap().session;
    say(&team, session, &mut notices).await;
    assert_eq!(shop.asked.load(Ordering::Relaxed), 1);
    // A name that is built in, and one that no provider takes, are not taken over.
    shop.offer(&["shop_buy", "read_file", "a b"]);
    say(&team, session, &mut notices).await;
    shop.offer(&["shop_sell"]);
    say(&team, session, &mut notices).await;
    assert_eq!(shop.asked.load(Ordering::Relaxed), 3, "the tools are read once per change");
    let described_then = described(&journal);
    assert_eq!(described_then[0], ["read_file"]);
    assert_eq!(
        (&described_then[1], &described_then[2]),
        (&vec!["read_file".to_owned(), "shop_buy".into()], &described_then[1])
    );
    assert_eq!(described_then[3], ["read_file", "shop_sell"]);
    let ended = results(&journal);
    assert!(ended[0].0 == ToolOutcome::Ran && ended[0].1.contains("Paid."), "{ended:?}");
    let gone = "the tool `shop_buy` is no longer available: `shop` does not offer it now";
    assert!(ended[1].0 == ToolOutcome::Invalid && ended[1].1.contains(gone), "{ended:?}");
    team.shutdown().await.unwrap();
    drop(team);
    // The journal opens without the source's tools, and a source that comes back is followed.
    let journal = journal.reopen().unwrap();
    shop.offer(&[]);
    let team = start(&journal);
    let mut notices = team.watch();
    let session = team.open(owner(), folder.path(), with_shop(Which::Latest)).await.unwrap().session;
    say(&team, session, &mut notices).await;
    shop.offer(&["shop_buy"]);
    say(&team, session, &mut notices).await;
    let described = described(&journal);
    assert_eq!(
        described[described.len() - 2..],
        [vec!["read_file".to_owned()], vec!["read_file".into(), "shop_buy".into()]]
    );
}

#[tokio::test]
async fn hidden_and_disallowed_tools_of_a_source_stay_so_and_a_search_finds_the_hidden() {
    let (folder, journal, shop) = (project(), Journal::memory(), Arc::new(Shop::default()));
    shop.offer(&["shop_buy", "shop_burn"]);
    let recording = "answers:\n  - parts: [{tool: tool_search, input: {query: buy}}]\n  - text: One.\n  - text: Two.\n";
    let sources: Vec<Arc<dyn ToolSource>> = vec![Arc::clone(&shop) as Arc<dyn ToolSource>];
    let team =
        runtime_supplied(&journal, folder.path(), Replay::read(recording).unwrap(), Registry::builtin(), sources);
    let mut notices = team.watch();
    let mut open = with_shop(Which::New);
    open.definition.hidden_tools = vec!["shop_*".into()];
    open.definition.disallowed_tools = vec!["shop_burn".into()];
    let session = team.open(owner(), folder.path(), open).await.unwrap().session;
    say(&team, session, &mut notices).await;
    // What was found stays described when the source changes.
    shop.offer(&["shop_burn", "shop_buy", "shop_sell"]);
    say(&team, session, &mut notices).await;
    let found = ["read_file", "shop_buy", "tool_search"].map(str::to_owned).to_vec();
    assert_eq!(described(&journal), [vec!["read_file".to_owned(), "tool_search".into()], found.clone(), found]);
}
