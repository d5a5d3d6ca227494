//! Bench `handoff`: from a message that a model writes to its reader's turn.
//!
//! Teammates in a ring throw a ball on a thousand times: so many of them that nobody works for colleagues so often in a
//! row that the runtime makes it rest. Each throw is timed by the server, from the moment it
//! begins to write the answer that calls `send_message` to the moment the reader's request about that message is whole. So
//! the time holds everything in between and nothing is taken off: our reading of the answer, the call and the message in
//! the journal, the reader waking up with its history, the beginning of its turn in the journal, and its request on
//! the wire. The model answers a message only after a pause, so that whoever has thrown is at rest again, and has left its seat.

use std::time::Duration;

use max_team_testkit::{ModelServer, Recorded, Reply, Script};
use serde_json::json;

use super::{LEADS, RESULT, behind, envelope, warm};
use crate::{Bench, median};

const THROWS: usize = 1_000;
/// Each catches fewer balls than `ECHOES_MAX`.
const PLAYERS: usize = 60;
const PAUSE: Duration = Duration::from_millis(4);
const BAR_MS: f64 = 1.0;
/// How many at either end show whether it grows with what was said before.
const SOME: usize = 100;
const BALL: &str = "ball ";
const SERVE: &str = "Please serve.";

pub(crate) fn handoff(bench: &mut Bench) {
    let home = bench.scratch.path().join("handoff");
    warm(bench, &home);
    let server = ModelServer::start(Script::new().glance(answer));
    assert!(bench.program(&home, &server.url()).args(["-p", "Let them play."]).status().unwrap().success());
    server.wait_answered(server.count());
    let throws = throws(&server.requests());
    assert_eq!(throws.len(), THROWS, "throws");
    let mut sorted = throws.clone();
    sorted.sort_by(f64::total_cmp);
    let more = json!({
        "throws": THROWS, "first_100_ms": median(throws[..SOME].iter().copied()),
        "last_100_ms": median(throws[THROWS - SOME..].iter().copied()), "p99_ms": sorted[THROWS * 99 / 100],
        "last_request_bytes": server.requests().iter().map(|request| request.bytes).max(),
    });
    bench.report("handoff", median(throws.into_iter()), "ms", BAR_MS, None, more);
}

/// The time of each throw, in order. A request is labelled with the ball that it is about; its answer throws the next.
fn throws(requests: &[Recorded]) -> Vec<f64> {
    let mut caught: Vec<(usize, &Recorded)> =
        requests.iter().filter_map(|request| Some((request.label.as_ref()?.parse().ok()?, request))).collect();
    caught.sort_unstable_by_key(|(ball, _)| *ball);
    let time = |pair: &[(usize, &Recorded)]| {
        assert_eq!(pair[0].0 + 1, pair[1].0, "every ball is caught once");
        pair[1].1.arrive_us.saturating_sub(pair[0].1.send_us.unwrap()) as f64 / 1e3
    };
    caught.windows(2).map(time).collect()
}

fn answer(body: &[u8]) -> Option<Reply> {
    let body = str::from_utf8(body).ok()?;
    if body.contains(LEADS) {
        let spawn = |reply: Reply, number: usize| {
            let prompt = if number == 0 { SERVE } else { "Wait." };
            let input = json!({ "name": player(number), "role": "player", "prompt": prompt });
            reply.tool(format!("toolu_{number}"), "spawn_teammate", input)
        };
        let done = body.contains(RESULT);
        return Some(if done { Reply::text("Noted.") } else { (0..PLAYERS).fold(Reply::new(), spawn) });
    }
    let (ball, result) = (body.rfind(BALL), body.rfind(RESULT));
    Some(match ball {
        Some(_) if ball > result => {
            let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
            let ball: usize = behind(body, BALL).and_then(|rest| digits(rest).parse().ok())?;
            let reply = if ball < THROWS { throw(ball + 1) } else { Reply::text("Over.") };
            reply.delay(PAUSE).label(ball.to_string())
        }
        None if body.contains(SERVE) => throw(1).delay(PAUSE).label("0"),
        _ => Reply::text("Good."),
    })
}

fn player(number: usize) -> String {
    format!("player-{}", number % PLAYERS)
}

/// The message with this ball: whoever catches it stands that many places further on.
fn throw(ball: usize) -> Reply {
    envelope(&player(ball), &format!("{BALL}{ball}"))
}
