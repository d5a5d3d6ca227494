//! What an action of `browser` costs: the first one with a cold start of Chromium, and then each kind of action on a page of a server
//! in this process. Own time is the processor time of this process; the rest is Chromium's. Exit 1 if a figure is above its bar, 2
//! without Chromium. `--json`: a line of figures for each row.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for benchmarks stops loudly")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use max_team_core::chat::Part;
use max_team_tools::{Handler, Output, Registry, Root, Services, ToolContext, find_chromium, run_remote};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

max_team_tools::command::child_before_main!();

const RUNS: usize = 15;
const FIRST_MAX: Duration = Duration::from_millis(1_500);
const OWN_MAX: Duration = Duration::from_millis(20);
const PAGE: &str = "<!doctype html><title>Bench</title><h1>Bench</h1><p>Some words.</p><label>Name <input id=name></label>\
    <label>Code <input type=password></label><button onclick='this.textContent += 1'>Press</button>";

struct Bench {
    runtime: Runtime,
    registry: Registry,
    cx: ToolContext,
    is_json: bool,
    missed: bool,
}

fn main() -> ExitCode {
    if find_chromium(None).is_none() {
        return ExitCode::from(2);
    }
    let port = serve();
    let services = Services { private_hosts: vec![format!("127.0.0.1:{port}")], ..Services::default() };
    let root = Root::open(std::env::temp_dir()).unwrap();
    let cx = ToolContext { services: Arc::new(services), ..ToolContext::new(Arc::new(root)) };
    let mut bench = Bench {
        runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
        registry: Registry::builtin(),
        cx,
        is_json: std::env::args().any(|word| word == "--json"),
        missed: false,
    };
    let open = json!({ "action": "open", "url": format!("http://127.0.0.1:{port}/") });
    let (_, first, own) = bench.act(&open);
    bench.report("first", first, own, first > FIRST_MAX, FIRST_MAX);
    bench.row("open", &open);
    // Opening a page again numbers its elements anew.
    let page = bench.act(&open).0;
    let reference = |words: &str| {
        let line = page.lines().find(|line| line.contains(words)).unwrap();
        line.trim().strip_prefix('[').and_then(|line| line.split_once(']')).unwrap().0.to_owned()
    };
    bench.row("snapshot", &json!({ "action": "snapshot" }));
    bench.row("click", &json!({ "action": "click", "ref": reference("button") }));
    bench.row("type", &json!({ "action": "type", "ref": reference("Name"), "text": "Ada" }));
    ExitCode::from(u8::from(bench.missed))
}

impl Bench {
    /// Does one action: its text, its time, and the processor time of this process.
    fn act(&self, input: &Value) -> (String, Duration, Duration) {
        let Some(Handler::Remote(tool)) = self.registry.get("browser") else { unreachable!("`browser` is built in") };
        let intent = self.registry.prepare(&self.cx, "browser", input).unwrap().action;
        let (began, busy) = (Instant::now(), busy());
        let call = run_remote(Arc::clone(tool), self.cx.clone(), input.clone(), intent, false);
        let output: Output = self.runtime.block_on(call).unwrap();
        let (took, own) = (began.elapsed(), busy_since(busy));
        let text = output
            .content
            .iter()
            .filter_map(|part| if let Part::Text { text } = part { Some(text.as_str()) } else { None });
        (text.collect(), took, own)
    }

    /// The medians of one kind of action.
    fn row(&mut self, name: &str, input: &Value) {
        let mut runs: Vec<_> = (0..RUNS).map(|_| self.act(input)).map(|(_, took, own)| (took, own)).collect();
        let median = |times: &mut Vec<Duration>| {
            times.sort();
            times.get(RUNS / 2).copied().unwrap()
        };
        let took = median(&mut runs.iter().map(|(took, _)| *took).collect());
        let own = median(&mut runs.drain(..).map(|(_, own)| own).collect());
        self.report(name, took, own, own > OWN_MAX, OWN_MAX);
    }

    fn report(&mut self, name: &str, took: Duration, own: Duration, is_missed: bool, bar: Duration) {
        self.missed |= is_missed;
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        match self.is_json {
            true => println!("{}", json!({ "row": name, "whole_ms": ms(took), "own_ms": ms(own), "bar_ms": ms(bar) })),
            false => {
                println!("{name:>8}: {:>7.1} ms, of which {:.1} ms own (bar {:.0} ms)", ms(took), ms(own), ms(bar))
            }
        }
    }
}

/// The processor time of this process so far.
fn busy() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap(), u32::try_from(time.tv_nsec).unwrap())
}

fn busy_since(before: Duration) -> Duration {
    busy().saturating_sub(before)
}

fn serve() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n";
                // Chromium may close a connection that it opened ahead.
                let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{PAGE}", PAGE.len());
            });
        }
    });
    port
}
