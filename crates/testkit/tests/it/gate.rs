//! Gates hold and release, for sync and async tests.

use std::sync::Arc;

use max_team_testkit::{Gate, ModelServer, Reply, Script};

use crate::client::{Client, MESSAGES, streamed};

#[test]
fn gate_before_holds_even_the_status_line() {
    let gate = Gate::new();
    let server = ModelServer::start([Reply::text("hi").gate_before(&gate)]);
    let mut client = Client::connect(&server);
    client.send("POST", MESSAGES, &streamed().to_string());
    gate.wait_reached();
    assert!(client.silent());
    assert_eq!(server.count(), 1);
    gate.open();
    assert!(client.response().whole);
}

#[test]
fn gate_after_holds_in_mid_stream() {
    let (first, second) = (Gate::new(), Gate::new());
    let server = ModelServer::start([Reply::text("hi").gate_after(3, &first).gate_after(4, &second)]);
    let mut client = Client::connect(&server);
    client.send("POST", MESSAGES, &streamed().to_string());
    client.head();
    first.wait_reached();
    for _ in 0..3 {
        client.chunk().unwrap();
    }
    assert!(client.silent());
    first.open();
    second.wait_reached();
    client.chunk().unwrap();
    assert!(client.silent());
    second.open();
    let rest = std::iter::from_fn(|| client.chunk().filter(|chunk| !chunk.is_empty()));
    assert_eq!(rest.count(), 3);
}

#[test]
fn open_gate_holds_nothing() {
    let gate = Gate::new();
    gate.open();
    let server = ModelServer::start([Reply::text("hi").gate_after(0, &gate)]);
    assert!(Client::connect(&server).call("POST", MESSAGES, &streamed()).whole);
    gate.wait_reached();
}

#[test]
fn one_gate_holds_many_side_by_side() {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::new().when(move |_| Some(Reply::text("hi").gate_before(&held))));
    let mut clients: Vec<Client> = (0..3).map(|_| Client::connect(&server)).collect();
    for client in &mut clients {
        client.send("POST", MESSAGES, &streamed().to_string());
    }
    gate.wait_reached_by(3);
    assert!(clients.iter_mut().all(Client::silent));
    gate.open();
    assert!(clients.iter_mut().all(|client| client.response().whole));
}

#[test]
fn held_responses_do_not_hold_other_clients() {
    let gate = Gate::new();
    let server = ModelServer::start([Reply::text("slow").gate_before(&gate), Reply::text("quick")]);
    let mut slow = Client::connect(&server);
    slow.send("POST", MESSAGES, &streamed().to_string());
    gate.wait_reached();
    assert!(Client::connect(&server).call("POST", MESSAGES, &streamed()).text().contains("quick"));
    gate.open();
    assert!(slow.response().text().contains("slow"));
}

#[test]
fn a_client_killed_at_a_gate_harms_no_other_request() {
    let gate = Gate::new();
    let server = ModelServer::start([Reply::text("lost").gate_after(2, &gate), Reply::text("again")]);
    let mut killed = Client::connect(&server);
    killed.send("POST", MESSAGES, &streamed().to_string());
    gate.wait_reached();
    drop(killed);
    gate.open();
    assert!(Client::connect(&server).call("POST", MESSAGES, &streamed()).text().contains("again"));
    let requests = server.requests();
    assert_eq!(requests[0].hash, requests[1].hash);
}

/// On one thread: the waits must not stop the task that would end them.
#[tokio::test]
async fn async_tests_wait_without_blocking() {
    let gate = Gate::new();
    let server = Arc::new(ModelServer::start([Reply::text("hi").gate_before(&gate)]));
    let call = tokio::spawn({
        let server = server.clone();
        async move {
            tokio::task::yield_now().await;
            tokio::task::spawn_blocking(move || Client::connect(&server).call("POST", MESSAGES, &streamed())).await
        }
    });
    server.arrived(1).await;
    gate.reached().await;
    gate.open();
    assert!(call.await.unwrap().unwrap().whole);
}
