//! Bench `serve`: what the server costs while nothing happens, what a watcher costs per event, and whether watchers delay a plan.
//!
//! The plan is that of bench `plan`. It runs alternately without a watcher and with [`WATCHERS`]; the model's server times it from the first
//! request of a task to the end of the last answer. The difference in the server's processor time is divided by all events
//! that all watchers got.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use max_team_testkit::{ModelServer, Reply, Script};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use crate::makespan::{self, DELAY};
use crate::{Bench, cpu_ticks, median, settle};

const WATCHERS: usize = 200;
const RUNS: usize = 5;
/// How long an idle server is watched.
const IDLE: Duration = Duration::from_secs(5);
const IDLE_PSS_MB_BAR: f64 = 25.0;
const EVENT_US_BAR: f64 = 15.0;
const SLOWER_BAR: f64 = 1.10;
/// What every event has once.
const EVENT: &[u8] = b"\ndata:";
/// Milliseconds in a tick of processor time.
const TICK_MS: f64 = 10.0;

struct Run {
    makespan_ms: f64,
    server_cpu_ms: f64,
    events: f64,
}

struct Server {
    child: Child,
    address: String,
    cookie: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

pub(crate) fn serve(bench: &mut Bench) {
    idle(bench);
    let (folder, _, team) = makespan::written(bench, "serve", "worker");
    watched(bench, &folder, &team, 0);
    let (alone, together): (Vec<Run>, Vec<Run>) =
        (0..RUNS).map(|_| (watched(bench, &folder, &team, 0), watched(bench, &folder, &team, WATCHERS))).unzip();
    let of = |runs: &[Run], value: fn(&Run) -> f64| median(runs.iter().map(value));
    let events = of(&together, |run| run.events);
    let more = of(&together, |run| run.server_cpu_ms) - of(&alone, |run| run.server_cpu_ms);
    bench.report(
        "serve-event",
        more * 1e3 / events,
        "µs",
        EVENT_US_BAR,
        None,
        json!({ "events": events, "cpu_ms": more }),
    );
    let [mine, other] = [&together, &alone].map(|runs| of(runs, |run| run.makespan_ms));
    let all = |runs: &[Run]| runs.iter().map(|run| run.makespan_ms).collect::<Vec<_>>();
    let extra = json!({ "watchers": WATCHERS, "alone_ms": all(&alone), "watched_ms": all(&together) });
    bench.report("serve-watched", mine / other, "x alone", SLOWER_BAR, None, extra);
}

fn idle(bench: &mut Bench) {
    let model = ModelServer::start(Script::new().when(|_| Some(Reply::text("hi"))));
    let server = start(bench, &bench.scratch.path().join("serve-idle"), &model.url(), &["--solo"]);
    settle();
    let pid = server.child.id().to_string();
    let before = cpu_ticks(&pid);
    std::thread::park_timeout(IDLE);
    let ticks = cpu_ticks(&pid) - before;
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = rollup.lines().find(|line| line.starts_with("Pss:")).unwrap();
    let pss = line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1_024.0;
    bench.report("serve-idle", pss, "MB", IDLE_PSS_MB_BAR, None, json!({ "idle_cpu_ticks_in_5_s": ticks }));
}

fn start(bench: &Bench, home: &Path, model: &str, words: &[&str]) -> Server {
    let mut command = bench.program(home, model);
    command.args(["serve", "--port", "0", "--json"]).args(words).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let said: Value = serde_json::from_str(&line).unwrap();
    let address = said["url"].as_str().unwrap().trim_start_matches("http://").to_owned();
    let code = said["login"].as_str().unwrap().split_once('#').unwrap().1.to_owned();
    let mut server = Server { child, address, cookie: String::new() };
    let head = server.ask("POST", "/api/v1/login", &json!({ "code": code })).0;
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    server.cookie = cookie.split(';').next().unwrap().to_owned();
    server
}

impl Server {
    fn request(&self, method: &str, path: &str, body: &str) -> String {
        format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncookie: {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n{body}",
            self.address,
            self.cookie,
            body.len()
        )
    }

    fn connect(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// The head and the body of the answer.
    fn ask(&self, method: &str, path: &str, body: &Value) -> (String, String) {
        let mut stream = self.connect(&self.request(method, path, &body.to_string()));
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 2"), "{text}");
        (head.to_owned(), body.to_owned())
    }
}

/// One run of the plan, followed by so many watchers.
fn watched(bench: &Bench, folder: &Path, team: &Path, watchers: usize) -> Run {
    let tasks = makespan::proposed_tasks();
    let script = Script::new()
        .on(makespan::is_task, Reply::text("done").label("task"))
        .on(|request| request.contains("is over:"), Reply::text("All done.").label("report"))
        .on(
            |request| request.tool_results() == 0,
            Reply::new().tool("toolu_1", "submit_plan", json!({ "goal": "Ten layers", "tasks": tasks })),
        )
        .on(|_| true, Reply::text("Proposed."))
        .delay(DELAY)
        .lean();
    let model = ModelServer::start(script);
    let words = ["--agents", team.to_str().unwrap()];
    let server = start(bench, &folder.join("home"), &model.url(), &words);
    let received = Arc::new(AtomicU64::new(0));
    let request = server.request("GET", "/api/v1/events", "");
    let streams: Vec<TcpStream> = (0..watchers).map(|_| server.connect(&request)).collect();
    let counter = Arc::clone(&received);
    // Ends when the server does.
    let watching = std::thread::spawn(move || count_events(streams, &counter));
    let pid = server.child.id().to_string();
    server.ask("POST", "/api/v1/sessions", &json!({ "text": "ten layers please" }));
    let plan = loop {
        let plans: Value = serde_json::from_str(&server.ask("GET", "/api/v1/inbox", &json!({})).1).unwrap();
        match plans["inbox"].as_array().and_then(|rows| rows.first()) {
            Some(row) => break row["row"]["question"].as_str().unwrap().to_owned(),
            None => settle(),
        }
    };
    settle();
    let before = cpu_ticks(&pid);
    server.ask("POST", &format!("/api/v1/questions/{plan}/answer"), &json!({ "decision": "approve" }));
    let timed = makespan::wait_for_tasks(&model, 2);
    settle();
    let ticks = cpu_ticks(&pid) - before;
    drop(server);
    watching.join().unwrap();
    Run { makespan_ms: timed, server_cpu_ms: ticks as f64 * TICK_MS, events: received.load(Ordering::Relaxed) as f64 }
}

/// Reads all streams in one thread, and counts the events in them.
fn count_events(streams: Vec<TcpStream>, received: &Arc<AtomicU64>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut reads = tokio::task::JoinSet::new();
        for stream in streams {
            stream.set_nonblocking(true).unwrap();
            reads.spawn(read_events(tokio::net::TcpStream::from_std(stream).unwrap(), Arc::clone(received)));
        }
        while reads.join_next().await.is_some() {}
    });
}

async fn read_events(mut stream: tokio::net::TcpStream, received: Arc<AtomicU64>) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        let events = buffer[..length].windows(EVENT.len()).filter(|part| *part == EVENT).count();
        received.fetch_add(events as u64, Ordering::Relaxed);
    }
}
