//! Replies that come late on purpose: never early, side by side, and in nobody's way.

use std::time::Duration;

use max_team_testkit::{ModelServer, Reply, Script};
use serde_json::{Value, json};

use crate::client::{CHAT, Client, MESSAGES, joined, streamed, whole};

/// Nobody waits this long.
const NEVER: Duration = Duration::from_secs(3_600);

fn says(text: &str) -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": text}]})
}

#[test]
fn no_answer_is_early() {
    let (script, asked) = (Script::new().delay(Duration::from_millis(5)).lean(), 20);
    let server = ModelServer::start(script.on(|_| true, Reply::text("late").label("slow")));
    let mut clients: Vec<Client> = (0..asked).map(|_| Client::connect(&server)).collect();
    for client in &mut clients {
        client.send("POST", MESSAGES, &streamed().to_string());
    }
    for client in &mut clients {
        assert_eq!(joined(&client.response().data(), "/delta/text"), "late");
    }
    server.wait_answered(asked);
    for request in server.requests() {
        assert!(request.send_us.unwrap() >= request.arrive_us + 5_000, "{request:?}");
        assert!(request.end_us >= request.send_us);
        assert_eq!((request.label.as_deref(), request.body), (Some("slow"), Value::Null));
    }
}

#[test]
fn a_waiting_reply_delays_no_other() {
    let script = Script::new()
        .on(|request| request.last_user() == "slow", Reply::text("never"))
        .on(|request| request.last_user() == "quick", Reply::text("at once").delay(Duration::ZERO))
        .delay(NEVER);
    let server = ModelServer::start(script);
    let (mut slow, mut quick) = (Client::connect(&server), Client::connect(&server));
    slow.send("POST", MESSAGES, &says("slow").to_string());
    server.wait_requests(1);
    let answer = quick.call("POST", CHAT, &says("quick")).json();
    assert_eq!(answer["choices"][0]["message"]["content"], "at once");
    server.wait_answered(1);
    assert!(slow.silent());
    // Stops at once, and the waiting client with it.
    drop(server);
    assert!(slow.closed());
}

#[test]
fn delay_comes_before_everything_else() {
    let server = ModelServer::start([Reply::new().drop_connection().delay(NEVER), Reply::status(500).delay(NEVER)]);
    let mut clients = [Client::connect(&server), Client::connect(&server)];
    for client in &mut clients {
        client.send("POST", MESSAGES, &whole().to_string());
    }
    server.wait_requests(2);
    assert!(clients.iter_mut().all(Client::silent));
}
