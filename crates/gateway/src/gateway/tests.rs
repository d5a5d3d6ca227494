//! Which sessions of chats stay open, are closed, and are opened again.

use std::path::Path;
use std::sync::Arc;

use max_team_runtime::stream::{ApprovalStep, Scope, StreamReader, What};
use max_team_testkit::{Gate, ModelServer, Reply, Script};
use serde_json::json;

use super::*;
use crate::test_place::place;

fn start(folder: &Path, model: &ModelServer, open_max: usize) -> Gateway {
    let place = place(folder, model);
    let selection = Selection { solo: true, ..Selection::default() };
    let workspace = Workspace::read(&place, &selection, Vec::new()).unwrap();
    let storage = place.begin(&workspace.config).unwrap();
    let team = workspace.start(&place, storage, "a channel", false).unwrap();
    Gateway { open_max, ..Gateway::new(team, place, selection) }
}

/// A model that answers at once, at a gate, or with a tool that the user is asked about.
fn model(gate: &Gate) -> ModelServer {
    let gate = gate.clone();
    ModelServer::start(Script::new().when(move |request| {
        let said = request.last_user();
        if said.starts_with("wait") {
            Some(Reply::text("waited").gate_before(&gate))
        } else if said.starts_with("write") {
            Some(Reply::new().tool("toolu_1", "write_file", json!({ "path": "a.txt", "content": "hello\n" })))
        } else {
            Some(Reply::text("done"))
        }
    }))
}

fn chat(name: &str) -> ChatAddress {
    ChatAddress::new("memory", "bot", name).unwrap()
}

async fn receive(gateway: &Gateway, name: &str, text: &str) -> Result<SessionId, GatewayError> {
    let native = format!("{name} {text}");
    let incoming = Incoming { chat: chat(name), native, sender: name.into(), role: Role::Member, text: text.into() };
    gateway.receive(incoming).await
}

async fn is_open(gateway: &Gateway, session: SessionId) -> bool {
    gateway.team.ask(query::Details { session }).await.is_ok()
}

async fn until(stream: &mut StreamReader, session: SessionId, is_wanted: impl Fn(&What) -> bool) {
    loop {
        let event = stream.next().await.unwrap();
        if event.session == session && is_wanted(&event.what) {
            return;
        }
    }
}

fn is_final(what: &What) -> bool {
    matches!(what, What::Final { .. })
}

#[tokio::test]
async fn a_chat_at_work_or_with_a_question_stays_open_and_a_further_one_is_refused() {
    let (folder, gate) = (tempfile::tempdir().unwrap(), Gate::new());
    let model = model(&gate);
    let gateway = start(folder.path(), &model, 2);
    let mut stream = gateway.team.stream(Scope::All, Default::default()).unwrap();
    let asking = receive(&gateway, "bob", "write").await.unwrap();
    let working = receive(&gateway, "ada", "wait").await.unwrap();
    until(&mut stream, asking, |what| matches!(what, What::Approval { state: ApprovalStep::Asked, .. })).await;
    let refused = receive(&gateway, "cat", "hello").await;
    assert!(matches!(refused, Err(GatewayError::Full(2))), "{refused:?}");
    assert!(refused.unwrap_err().to_string().contains("send it again later"));
    assert!(is_open(&gateway, working).await && is_open(&gateway, asking).await);

    // The idle chat makes room; the one with the question does not, although it was used less recently.
    gate.open();
    until(&mut stream, working, is_final).await;
    let third = receive(&gateway, "cat", "hello").await.unwrap();
    assert!(!is_open(&gateway, working).await && is_open(&gateway, asking).await);
    until(&mut stream, third, is_final).await;
    // A closed chat is opened again for its next message.
    assert_eq!(receive(&gateway, "ada", "hello").await.unwrap(), working);
    until(&mut stream, working, is_final).await;
    gateway.team.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_session_that_stopped_is_opened_again_by_the_next_message() {
    let (folder, gate) = (tempfile::tempdir().unwrap(), Gate::new());
    let model = model(&gate);
    let gateway = start(folder.path(), &model, 2);
    let mut stream = gateway.team.stream(Scope::All, Default::default()).unwrap();
    let session = receive(&gateway, "ada", "hello").await.unwrap();
    until(&mut stream, session, is_final).await;
    let error = Arc::new(RuntimeError::AgentStopped("a test".into()));
    gateway.heed(&Notice::Stopped { session, whole: false, error: Arc::clone(&error) }).await;
    assert!(is_open(&gateway, session).await, "another agent stopped");
    gateway.heed(&Notice::Stopped { session, whole: true, error }).await;
    assert!(!is_open(&gateway, session).await);
    assert_eq!(receive(&gateway, "ada", "again").await.unwrap(), session);
    until(&mut stream, session, is_final).await;
    // After missed notices only sessions without a lead are closed.
    gateway.close_dead().await;
    assert!(is_open(&gateway, session).await);
    gateway.team.close(session).await;
    assert_eq!(receive(&gateway, "ada", "once more").await.unwrap(), session, "it is opened again");
    until(&mut stream, session, is_final).await;
    gateway.team.close(session).await;
    gateway.close_dead().await;
    assert!(gateway.open.lock().await.is_empty());
    gateway.team.shutdown().await.unwrap();
}

#[tokio::test]
async fn chats_without_an_answer_are_opened_as_room_becomes_free() {
    let (folder, gate) = (tempfile::tempdir().unwrap(), Gate::new());
    let model = model(&gate);
    let gateway = start(folder.path(), &model, 1);
    let notices = gateway.team.watch();
    let working = receive(&gateway, "ada", "wait").await.unwrap();
    let (by, chats) = (Gateway::principal("memory", "gateway", Role::Owner), [chat("bob")]);
    let resume = async {
        let mut resumed = std::pin::pin!(gateway.resume(&chats, &by));
        tokio::select! {
            biased;
            resumed = &mut resumed => panic!("no chat was idle: {resumed:?}"),
            () = gate.reached() => {}
        }
        gate.open();
        resumed.await.unwrap();
    };
    tokio::select! {
        () = gateway.follow(notices) => panic!("the notices ended"),
        () = resume => {}
    }
    assert!(!is_open(&gateway, working).await);
    assert_eq!(gateway.open.lock().await.front().map(|(chat, _)| chat.clone()), Some(chat("bob")));
    gateway.team.shutdown().await.unwrap();
}
