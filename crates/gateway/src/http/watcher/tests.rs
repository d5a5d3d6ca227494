//! What a watcher is sent when it is slower than the hub, ahead of it, or as fast.

use max_team_core::id::EnvelopeId;
use max_team_core::limits::WEB_WATCHER_BATCHES_MAX;
use max_team_core::message::{Principal, Role};
use max_team_runtime::stream::{StreamEvent, What};
use max_team_runtime::{Command, Order, Which, new_id, query};
use max_team_testkit::{ModelServer, Reply, Script};
use max_team_workspace::open::Workspace;
use max_team_workspace::selection::Selection;

use super::*;
use crate::test_place::place;

/// A team of one agent whose model answers each message with one word.
struct Desk {
    team: TeamHandle,
    hub: Arc<Hub>,
    owner: Principal,
    session: SessionId,
    _folder: tempfile::TempDir,
    _model: ModelServer,
}

impl Desk {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let model = ModelServer::start(Script::new().when(|_| Some(Reply::text("done"))));
        let place = place(folder.path(), &model);
        let selection = Selection { solo: true, ..Selection::default() };
        let workspace = Workspace::read(&place, &selection, Vec::new()).unwrap();
        let journal = place.begin(&workspace.config).unwrap();
        let team = workspace.start(&place, journal, "a page", true).unwrap();
        let owner = Principal { door: "page".into(), user: "ada".into(), role: Role::Owner };
        let opened = team.open(owner.clone(), &workspace.root, workspace.request(Which::New)).await.unwrap();
        let hub = Hub::start(&team).await.unwrap();
        Self { team, hub, owner, session: opened.session, _folder: folder, _model: model }
    }

    fn watcher(&self, from: Mark) -> Watcher {
        Watcher::new(&self.hub, &self.team, Scope::All, Some(from)).unwrap()
    }

    async fn say(&self) {
        let (by, key) = (self.owner.clone(), EnvelopeId::new(new_id()));
        let command = Command::Say { session: self.session, text: "hi".to_owned() };
        self.team.command(Order { by, cwd: String::new(), key, command }).await.unwrap();
    }

    /// A whole turn, and its stored events.
    async fn turn(&self) -> Vec<StreamEvent> {
        let from = self.team.ask(query::Position {}).await.unwrap();
        let mut reader = self.team.log(Scope::All, from).unwrap();
        self.say().await;
        let mut events = Vec::new();
        loop {
            let event = reader.next().await.unwrap();
            let is_end = matches!(event.what, What::Final { .. });
            events.push(event);
            if is_end {
                return events;
            }
        }
    }
}

fn piece(of: &StreamEvent) -> StreamEvent {
    let what = What::ContentDelta { iteration: 1, delta: "d".into(), whole: false };
    StreamEvent { what, part: None, ..of.clone() }
}

/// The places of the stored events that come until one of them is `last`.
async fn stored(watcher: &mut Watcher, last: Mark) -> Vec<Mark> {
    let mut marks = Vec::new();
    loop {
        if let Some(at) = marks.iter().position(|mark| *mark == last) {
            marks.truncate(at + 1);
            return marks;
        }
        let mut items = vec![watcher.next().await.unwrap()];
        items.extend(watcher.more(1_000));
        marks.extend(items.iter().filter_map(|item| match item {
            WatchItem::Frame(frame) if !frame.is_live => Some(frame.mark),
            _ => None,
        }));
    }
}

fn marks(events: &[StreamEvent]) -> Vec<Mark> {
    events.iter().map(StreamEvent::mark).collect()
}

#[tokio::test]
async fn a_watcher_that_is_too_slow_reads_the_rest_from_the_log() {
    let desk = Desk::open().await;
    let from = desk.team.ask(query::Position {}).await.unwrap();
    let mut watcher = desk.watcher(from);
    assert!(matches!(watcher.next().await, Some(WatchItem::Ready(_))));
    let events = desk.turn().await;
    for event in &events {
        desk.hub.send(std::slice::from_ref(event));
    }
    let last = events.last().unwrap();
    (0..WEB_WATCHER_BATCHES_MAX).for_each(|_| desk.hub.send(&[piece(last)]));
    // What waits at once is what was not overwritten: none of the turn.
    assert!(watcher.more(1_000).is_empty());
    assert_eq!(stored(&mut watcher, last.mark()).await, marks(&events));
}

#[tokio::test]
async fn a_watcher_ahead_of_the_hub_gets_no_answer_of_before() {
    let desk = Desk::open().await;
    let events = desk.turn().await;
    let last = events.last().unwrap();
    let called = events.iter().find(|event| event.agent.is_some()).unwrap();
    desk.hub.send(&[piece(called)]);
    let mut watcher = desk.watcher(last.mark());
    let first = watcher.next().await.unwrap();
    assert!(matches!(first, WatchItem::Ready(place) if place == last.mark()), "{first:?}");
    // The hub catches up; only what follows is new.
    desk.hub.send(&[piece(called)]);
    desk.hub.send(&events);
    let progress =
        What::Status { iteration: 1, message: "now".to_owned().into(), tool_id: Some("1.1".into()), model: None };
    let progress = StreamEvent { what: progress, part: None, ..last.clone() };
    desk.hub.send(&[progress.clone(), progress]);
    for _ in 0..2 {
        let next = watcher.next().await.unwrap();
        let WatchItem::Frame(frame) = &next else { panic!("{next:?}") };
        assert!(frame.is_live && frame.data().contains("\"now\""), "{frame:?}");
    }
}

#[tokio::test]
async fn each_event_comes_once_and_in_order() {
    let desk = Desk::open().await;
    let from = desk.team.ask(query::Position {}).await.unwrap();
    let mut watcher = desk.watcher(from);
    let hub = Arc::clone(&desk.hub);
    let sends = tokio::spawn(async move { hub.run().await });
    let events = desk.turn().await;
    let last = events.last().unwrap().mark();
    assert_eq!(stored(&mut watcher, last).await, marks(&events));
    sends.abort();
}
