//! Bench `teammates`: a thousand of them in one process, against a bare client that makes the same requests.
//!
//! The lead's model starts them, as many with each answer as one may call; each reads a small file five times and
//! answers; the model takes no time. Wall time is from the start of our process to its end, processor time and the most
//! memory are that process's own. The server only glances at requests: on two cores it would be what is measured.

pub(crate) mod handoff;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use max_team_testkit::{ModelServer, Recorded, Reply, Script, Storm};
use serde_json::{Value, json};

use crate::{Bench, children_cpu, median};

const TEAMMATES: usize = 1_000;
const TURNS: usize = 5;
/// Calls in one answer of the lead's.
const STARTED_AT_ONCE: usize = 64;
/// Loops of the bare client that run side by side.
const FLOOR_PARALLEL: usize = 64;
const RUNS: usize = 3;
const WALL_S_BAR: f64 = 1.2;
const CPU_S_BAR: f64 = 1.0;
const RSS_MB_BAR: f64 = 80.0;
/// Between two looks at how much memory is held. The kernel keeps the most, so only what the last moments add is missed.
const LOOK: Duration = Duration::from_millis(5);

/// Only a lead has this tool; a teammate's request does not name it.
const LEADS: &str = "\"name\":\"spawn_teammate\"";
/// Whoever sums up a conversation has none.
const TOOLS: &str = "\"tools\":[{";
/// Teammates are called by number.
const NAMED: [&str; 3] = ["\"name\":\"m", r#"\"name\":\"m"#, "`m"];
/// How many there are, where only a summary tells.
const UP_TO: &str = "up to number ";
const RESULT: &str = "\"type\":\"tool_result\"";

/// What one run of a program cost.
struct Cost {
    wall: f64,
    cpu: f64,
    rss_mb: f64,
    /// Processor time of the server and this bench meanwhile.
    server_cpu: f64,
}

/// When the parts of a run were over, in seconds since its start.
struct Parts {
    first: f64,
    started: f64,
    worked: f64,
    lead_requests: usize,
    /// Of teammates, more than there would be without a failure.
    repeated: usize,
    bytes: usize,
}

pub(crate) fn teammates(bench: &mut Bench) {
    let runs: Vec<(Cost, Parts)> = (0..RUNS).map(|run| ours(bench, run)).collect();
    let of = |value: fn(&(Cost, Parts)) -> f64| median(runs.iter().map(value));
    let bytes = runs[0].1.bytes;
    let floors: Vec<Cost> = (0..RUNS).map(|_| floor(bench, bytes)).collect();
    let floor = |value: fn(&Cost) -> f64| median(floors.iter().map(value));
    let (wall, cpu, rss) = (of(|run| run.0.wall), of(|run| run.0.cpu), of(|run| run.0.rss_mb));
    let floor_wall = floor(|cost| cost.wall);
    let more = json!({
        "wall_s": wall, "cpu_s": cpu, "rss_mb": rss, "floor_wall_s": floor_wall, "floor_cpu_s": floor(|cost| cost.cpu),
        "teammates": TEAMMATES, "requests": TEAMMATES * (TURNS + 1), "lead_requests": runs[0].1.lead_requests,
        "repeated": runs[0].1.repeated,
        "request_bytes": bytes, "first_request_s": of(|run| run.1.first), "all_started_s": of(|run| run.1.started),
        "all_answered_s": of(|run| run.1.worked), "server_cpu_s": of(|run| run.0.server_cpu),
        "floor_server_cpu_s": floor(|cost| cost.server_cpu),
        "runs_s": runs.iter().map(|run| run.0.wall).collect::<Vec<_>>(),
    });
    bench.report("teammates", wall, "s", WALL_S_BAR, Some(floor_wall), more);
    bench.report("teammates-cpu", cpu, "s", CPU_S_BAR, Some(floor(|cost| cost.cpu)), json!({}));
    bench.report("teammates-rss", rss, "MB", RSS_MB_BAR, None, json!({}));
}

/// Bench `mail`: messages among a hundred agents while the program is killed again and again. It counts what went wrong.
pub(crate) fn mail(bench: &mut Bench) {
    let home = bench.scratch.path().join("mail");
    let storm = Storm { agents: 100, messages: bench.messages, at_once: 50, kills: bench.kills, seed: 7 };
    let calm = storm.run(|url, first| {
        let mut command = bench.program(&home, url);
        command.args(if first { &["-p", "Start them."][..] } else { &["-c", "-p", ""][..] });
        command
    });
    let calm = calm.unwrap();
    let more = json!({
        "once": calm.told, "never": calm.lost, "twice": calm.twice, "out_of_order": calm.disordered,
        "kills": calm.kills, "requests": calm.requests, "wall_s": calm.seconds, "agents": storm.agents,
    });
    bench.report("mail", (calm.lost + calm.twice + calm.disordered) as f64, "letters wrong", 0.0, None, more);
}

fn ours(bench: &Bench, run: usize) -> (Cost, Parts) {
    let home = bench.scratch.path().join(format!("mates{run}"));
    warm(bench, &home);
    let began = Instant::now();
    let server = ModelServer::start(Script::new().glance(answer));
    let mut command = bench.program(&home, &server.url());
    command.args(["-p", "Start them all."]);
    let late = began.elapsed().as_secs_f64();
    let cost = measured(command);
    assert!(server.problems().is_empty(), "{:#?}", server.problems());
    server.wait_answered(server.count());
    let requests = server.requests();
    let labelled = |label: &'static str| requests.iter().filter(move |request| request.label.as_deref() == Some(label));
    let made = labelled("mate").count();
    assert!(made >= TEAMMATES * (TURNS + 1), "requests of teammates: {made}");
    let seconds = |us: Option<u64>| us.unwrap_or_default() as f64 / 1e6 - late;
    let mut bytes: Vec<usize> = labelled("mate").map(|request| request.bytes).collect();
    bytes.sort_unstable();
    let parts = Parts {
        first: seconds(requests.first().map(|request| request.arrive_us)),
        started: seconds(labelled("spawn").filter_map(|request| request.send_us).max()),
        worked: seconds(labelled("mate").filter_map(|request| request.send_us).max()),
        lead_requests: requests.len() - made,
        repeated: made - TEAMMATES * (TURNS + 1),
        bytes: bytes[bytes.len() / 2],
    };
    (cost, parts)
}

/// A journal that exists.
fn warm(bench: &Bench, home: &Path) {
    let server = ModelServer::start(Script::new().when(|_: &Recorded| Some(Reply::text("hi"))));
    assert!(bench.program(home, &server.url()).args(["-p", "hello"]).status().unwrap().success());
}

fn floor(bench: &Bench, bytes: usize) -> Cost {
    let server = ModelServer::start(Script::new().glance(answer));
    let mut command = Command::new(bench.example("floor"));
    command.args(["team", "--url", &server.url(), "--agents", &TEAMMATES.to_string(), "--turns", &TURNS.to_string()]);
    command.args(["--pad", &bytes.to_string(), "--parallel", &FLOOR_PARALLEL.to_string()]);
    command.current_dir(bench.project()).stdout(Stdio::null());
    let cost = measured(command);
    assert_eq!(server.count(), TEAMMATES * (TURNS + 1), "requests of the bare client");
    cost
}

/// What the model says, by what a request's bytes say about how far its conversation is.
fn answer(body: &[u8]) -> Option<Reply> {
    let body = str::from_utf8(body).ok()?;
    let done = body.matches(RESULT).count();
    if !body.contains(TOOLS) {
        return Some(Reply::text(format!("Teammates were started {UP_TO}{}.", started(body))).label("summary"));
    }
    if !body.contains(LEADS) {
        let read = || {
            let input = json!({ "path": "small.txt", "offset": done + 1, "limit": 5 });
            Reply::new().tool(format!("toolu_{done}"), "read_file", input)
        };
        return Some(if done < TURNS { read() } else { Reply::text("I have read it.") }.label("mate"));
    }
    let done = started(body);
    if done >= TEAMMATES {
        return Some(Reply::text("Noted."));
    }
    let spawn = |reply: Reply, at: usize| {
        let input = json!({ "name": format!("m{at}"), "role": "reader", "prompt": "Read small.txt a few times." });
        reply.tool(format!("toolu_{at}"), "spawn_teammate", input)
    };
    let last = TEAMMATES.min(done + STARTED_AT_ONCE);
    Some((done..last).fold(Reply::new(), spawn).chunk(usize::MAX).label("spawn"))
}

/// How many teammates a lead has started, as its conversation or the summary of it says.
fn started(body: &str) -> usize {
    let behind = |mark: &str| {
        let all = body.match_indices(mark).filter_map(|(at, _)| body.get(at + mark.len()..));
        all.filter_map(|rest| rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse::<usize>().ok()).max()
    };
    let named = NAMED.into_iter().filter_map(behind).max();
    named.map_or(0, |last| last + 1).max(behind(UP_TO).unwrap_or(0))
}

/// Runs a program to its end.
fn measured(mut command: Command) -> Cost {
    let (cpu, own, start) = (children_cpu(), own_cpu(), Instant::now());
    let mut child = command.stderr(Stdio::inherit()).spawn().unwrap();
    let looking = look(&child);
    assert!(child.wait().unwrap().success());
    let wall = start.elapsed().as_secs_f64();
    Cost {
        wall,
        cpu: (children_cpu() - cpu) / 1e3,
        rss_mb: looking.join().unwrap(),
        server_cpu: (own_cpu() - own) / 1e3,
    }
}

/// The most memory that a process holds until it ends, in megabytes.
fn look(child: &Child) -> std::thread::JoinHandle<f64> {
    let status = format!("/proc/{}/status", child.id());
    let most = move || {
        let text = std::fs::read_to_string(&status).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    std::thread::spawn(move || {
        let mut held = 0.0;
        while let Some(kb) = most() {
            held = kb / 1_024.0;
            std::thread::park_timeout(LOOK);
        }
        held
    })
}

/// Processor milliseconds of this process, in ticks of 10 ms.
fn own_cpu() -> f64 {
    crate::cpu_ticks("self") as f64 * 10.0
}

/// What can be seen in a request's bytes: the part behind the last occurrence of something.
fn behind<'a>(body: &'a str, mark: &str) -> Option<&'a str> {
    body.rfind(mark).and_then(|at| body.get(at + mark.len()..))
}

/// A call by which somebody writes to somebody.
fn envelope(to: &str, words: &str) -> Reply {
    let input: Value = json!({ "to": to, "message": words });
    Reply::new().tool(format!("toolu_{}", words.replace(' ', "_")), "send_message", input)
}
