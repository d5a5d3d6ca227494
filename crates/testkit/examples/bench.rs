//! What the product costs by itself, held against a minimal client in the same run. Started by `scripts/bench.sh`.
//!
//! `bench --bin PATH --examples FOLDER [NAME] [--json] [--messages N] [--kills N] [--entries N]`; the folder has the built examples of the workspace. The model is the scripted server in this process,
//! so arrival times and the client's start share one clock. Medians; one line per benchmark; exit 1 if a bar is missed.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line program")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark that cannot run must stop loudly")]

mod defs;
mod isolation;
mod judge;
mod long;
mod makespan;
mod mcp;
mod pages;
mod serve;
mod steps;
mod teammates;
mod tree;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use max_team_testkit::{ModelServer, Reply, Script};
use serde_json::{Value, json};

const SPAWNS: usize = 41;
const TURNS: usize = 50;
const RUNS: usize = 9;
const REQUEST_BYTES: usize = 80_000;
const MESSAGES: usize = 10_000;
const KILLS: usize = 10;
const ENTRIES: u64 = 1_000_000;

struct Bench {
    bin: PathBuf,
    examples: PathBuf,
    scratch: tempfile::TempDir,
    json: bool,
    missed: bool,
    /// How much mail the bench of that name sends, and how often it kills.
    messages: usize,
    kills: usize,
    /// How long a long journal is.
    entries: u64,
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let (mut paths, mut name, mut json) = ([const { None }; 2], None, false);
    let (mut messages, mut kills, mut entries) = (MESSAGES, KILLS, ENTRIES);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--bin" => paths[0] = args.next(),
            "--examples" => paths[1] = args.next(),
            "--json" => json = true,
            "--messages" => messages = args.next().unwrap().parse().unwrap(),
            "--entries" => entries = args.next().unwrap().parse().unwrap(),
            "--kills" => kills = args.next().unwrap().parse().unwrap(),
            _ => name = Some(arg),
        }
    }
    let [Some(bin), Some(examples)] = paths else {
        eprintln!("usage: bench --bin PATH --examples FOLDER [NAME] [--json] [--messages N] [--kills N] [--entries N]");
        return ExitCode::from(2);
    };
    let scratch = tempfile::tempdir().unwrap();
    let [bin, examples] = [bin, examples].map(|path| PathBuf::from(path).canonicalize().unwrap());
    let mut bench = Bench { bin, examples, scratch, json, missed: false, messages, kills, entries };
    type Step = fn(&mut Bench);
    let steps: [(&str, Step); 21] = [
        ("version", Bench::version),
        ("first", Bench::first),
        ("first-million", Bench::first_million),
        ("long", long::long),
        ("rss", Bench::rss),
        ("turn", Bench::turn),
        ("journal", Bench::journal),
        ("steps", steps::steps),
        ("plan", makespan::plan),
        ("plan_coders", makespan::coders),
        ("teammates", teammates::teammates),
        ("handoff", teammates::handoff::handoff),
        ("mail", teammates::mail),
        ("search", tree::search),
        ("walls", isolation::isolation),
        ("judge", judge::judge),
        ("defs", defs::defs),
        ("mcp", mcp::mcp),
        ("pages", pages::pages),
        ("browser", pages::browser),
        ("serve", serve::serve),
    ];
    if name.as_deref().is_some_and(|name| !steps.iter().any(|(known, _)| *known == name)) {
        eprintln!("the benchmarks are {}", steps.map(|(known, _)| known).join(", "));
        return ExitCode::from(2);
    }
    for (known, step) in steps {
        if name.as_deref().is_none_or(|name| name == known) {
            step(&mut bench);
        }
    }
    ExitCode::from(u8::from(bench.missed))
}

impl Bench {
    fn report(&mut self, name: &str, ours: f64, unit: &str, bar: f64, other: Option<f64>, extra: Value) {
        let ok = ours <= bar;
        self.missed |= !ok;
        let ratio = other.filter(|other| *other > 0.0).map(|other| ours / other);
        if self.json {
            println!(
                "{}",
                json!({ "bench": name, "ours": ours, "unit": unit, "bar": bar, "ok": ok, "floor": other, "ratio": ratio, "more": extra })
            );
            return;
        }
        let against = match (other, ratio) {
            (Some(other), Some(ratio)) => format!("  floor {other:.3} {unit}, ratio {ratio:.1}"),
            _ => String::new(),
        };
        let verdict = if ok { "ok    " } else { "MISSED" };
        let of_bar = if bar > 0.0 { format!("{:.2} of the bar, ", ours / bar) } else { "bar: ".to_owned() };
        println!("{verdict} {name:<22} {ours:>9.3} {unit} ({of_bar}{bar} {unit}){against}  {extra}");
    }

    /// A row for what could not be measured; it misses no bar.
    fn skip(&self, name: &str, reason: &str) {
        if self.json {
            println!("{}", json!({ "bench": name, "skipped": reason }));
        } else {
            println!("skip   {name:<22} {reason}");
        }
    }

    fn example(&self, name: &str) -> PathBuf {
        self.examples.join(name)
    }

    fn program(&self, home: &Path, url: &str) -> Command {
        let mut command = Command::new(&self.bin);
        command
            .env_clear()
            .envs([("PATH", std::env::var_os("PATH").unwrap_or_default())])
            .env("HOME", self.scratch.path())
            .env("MAX_TEAM_HOME", home)
            .env("ANTHROPIC_BASE_URL", url)
            .env("ANTHROPIC_API_KEY", "sk-bench")
            .current_dir(self.project())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    fn project(&self) -> PathBuf {
        let project = self.scratch.path().join("project");
        std::fs::create_dir_all(&project).unwrap();
        let lines: String =
            (1..=100).map(|n| format!("line {n} of a small file that is read again and again\n")).collect();
        std::fs::write(project.join("small.txt"), lines).unwrap();
        project
    }

    fn version(&mut self) {
        let spawn = |path: &Path| {
            let start = Instant::now();
            assert!(Command::new(path).arg("--version").stdout(Stdio::null()).status().unwrap().success());
            millis(start.elapsed())
        };
        let (bin, floor) = (self.bin.clone(), self.example("floor"));
        let ours = median((0..SPAWNS).map(|_| spawn(&bin)));
        let other = median((0..SPAWNS).map(|_| spawn(&floor)));
        self.report("version", ours, "ms", 5.0, Some(other), json!({}));
    }

    /// From spawn to the first request, on a journal that exists.
    fn first_request(&self, home: &Path) -> f64 {
        let server = ModelServer::start(Script::new().when(|_| Some(Reply::text("hi"))));
        median((0..SPAWNS).map(|n| {
            let start = Instant::now();
            let mut child = self.program(home, &server.url()).args(["-p", "hello"]).spawn().unwrap();
            server.wait_requests(n + 1);
            let took = millis(start.elapsed());
            assert!(child.wait().unwrap().success());
            took
        }))
    }

    fn floor_first(&self) -> f64 {
        let server = ModelServer::start(Script::new().when(|_| Some(Reply::text("hi"))));
        median((0..SPAWNS).map(|n| {
            let start = Instant::now();
            let mut child = Command::new(self.example("floor"))
                .args(["loop", "--url", &server.url(), "--turns", "0", "--pad", "10000"])
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            server.wait_requests(n + 1);
            let took = millis(start.elapsed());
            child.wait().unwrap();
            took
        }))
    }

    fn first(&mut self) {
        let home = self.scratch.path().join("first");
        self.first_request(&home);
        let (ours, other) = (self.first_request(&home), self.floor_first());
        self.report("first", ours, "ms", 25.0, Some(other), json!({}));
    }

    fn first_million(&mut self) {
        let home = self.scratch.path().join("million");
        let filled = Command::new(self.example("journal_bench"))
            .args(["--fill", home.to_str().unwrap(), "--entries", "1000000"])
            .status();
        assert!(filled.unwrap().success());
        let (ours, other) = (self.first_request(&home), self.floor_first());
        self.report("first-million", ours, "ms", 25.0, Some(other), json!({ "entries": 1_000_000 }));
    }

    /// A chat that has answered once and waits: TLS, journal and screen are ready.
    fn rss(&mut self) {
        let server = ModelServer::start(Script::new().when(|_| Some(Reply::text("hi"))));
        let home = self.scratch.path().join("rss");
        let chat = format!("stty rows 24 cols 80; exec {}", self.bin.display());
        let mut command = Command::new("script");
        command.args(["-qfc", &chat, "/dev/null"]);
        command.envs([("PATH", std::env::var_os("PATH").unwrap_or_default())]);
        let program = self.program(&home, &server.url());
        for (name, value) in program.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        let mut child = command
            .env("TERM", "xterm-256color")
            .current_dir(self.project())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut keys = child.stdin.take().unwrap();
        settle();
        keys.write_all(b"hello\r").unwrap();
        server.wait_requests(1);
        settle();
        let pid = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
        let status = std::fs::read_to_string(format!("/proc/{}/status", pid.trim())).unwrap();
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1_024.0
        };
        let before = cpu_ticks(pid.trim());
        std::thread::park_timeout(Duration::from_secs(2));
        let idle_ticks = cpu_ticks(pid.trim()) - before;
        drop(keys);
        child.kill().unwrap();
        child.wait().unwrap();
        let extra = json!({ "anonymous_mb": field("RssAnon"), "idle_cpu_ticks_in_2_s": idle_ticks, "threads": field("Threads") * 1_024.0 });
        self.report("rss", field("VmRSS"), "MB", 15.0, None, extra);
    }

    /// Own time per tool turn: from the last byte of an answer to the next request.
    fn turn(&mut self) {
        let home = self.scratch.path().join("turn");
        let prompt = self.scratch.path().join("prompt.txt");
        let text: String = (0..)
            .map(|n| format!("context line {n}: the quick brown fox jumps over the lazy dog\n"))
            .take(1_000)
            .collect();
        std::fs::write(&prompt, &text[..REQUEST_BYTES * 3 / 4]).unwrap();
        let ours = self.own_time(|url| {
            let mut command = self.program(&home, url);
            command.args(["-p", "go", "--max-turns", "99"]).stdin(File::open(&prompt).unwrap());
            command
        });
        let other = self.own_time(|url| {
            let mut command = Command::new(self.example("floor"));
            command.args(["loop", "--url", url, "--turns", "50", "--pad", &REQUEST_BYTES.to_string()]);
            command.current_dir(self.project()).stdout(Stdio::null());
            command
        });
        let growth = ours.last - ours.first;
        let extra = json!({
            "first_10_ms": ours.first, "last_10_ms": ours.last, "growth_ms": growth, "growth_bar_ms": 0.1,
            "cpu_ms_per_turn": ours.cpu, "floor_cpu_ms_per_turn": other.cpu, "request_bytes": ours.bytes,
        });
        self.missed |= growth > 0.1;
        self.report("turn", ours.median, "ms", 0.6, Some(other.median), extra);
    }

    fn own_time(&self, start: impl Fn(&str) -> Command) -> OwnTime {
        let answer = |request: &max_team_testkit::Recorded| {
            let done = request.tool_results();
            Some(if done >= TURNS {
                Reply::text("DONE")
            } else {
                let input = json!({ "path": "small.txt", "offset": done + 1, "limit": 5 });
                Reply::new().tool(format!("toolu_{done}"), "read_file", input)
            })
        };
        // Pooled over several runs: one run of fifty turns says little about a tenth of a millisecond.
        let (mut gaps, mut firsts, mut lasts, mut cpu, mut bytes) = (Vec::new(), Vec::new(), Vec::new(), 0.0, 0);
        for _ in 0..RUNS {
            let server = ModelServer::start(Script::new().when(answer));
            let before = children_cpu();
            assert!(start(&server.url()).status().unwrap().success());
            cpu += children_cpu() - before;
            let requests = server.requests();
            let gap = |pair: &[max_team_testkit::Recorded]| {
                (pair[1].arrive_us.saturating_sub(pair[0].send_us.unwrap_or(pair[0].arrive_us))) as f64 / 1e3
            };
            let run: Vec<f64> = requests.windows(2).map(gap).collect();
            assert!(run.len() >= TURNS, "{} requests", requests.len());
            firsts.extend_from_slice(&run[..10]);
            lasts.extend_from_slice(&run[run.len() - 10..]);
            gaps.extend(run);
            bytes = requests[requests.len() / 2].bytes;
        }
        OwnTime {
            cpu: cpu / gaps.len() as f64,
            median: median(gaps.into_iter()),
            first: median(firsts.into_iter()),
            last: median(lasts.into_iter()),
            bytes,
        }
    }

    fn journal(&mut self) {
        let output = Command::new(self.example("journal_bench"))
            .args(["--dir", self.scratch.path().to_str().unwrap()])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let measured: Value = serde_json::from_slice(&output.stdout).unwrap();
        let number = |name: &str| measured[name].as_f64().unwrap();
        let payload = number("payload_bytes");
        self.report("journal-normal", number("normal_us"), "µs", 60.0, None, json!({}));
        let sync = number("fdatasync_us");
        self.report(
            "journal-full-16",
            number("full16_us"),
            "µs",
            number("full16_us") / number("full16_to_target"),
            Some(sync / 16.0),
            json!({ "fdatasync_us": sync }),
        );
        self.report(
            "journal-bytes",
            number("bytes_per_step"),
            "B",
            1_024.0 + payload,
            None,
            json!({ "payload_bytes": payload }),
        );
    }
}

struct OwnTime {
    median: f64,
    first: f64,
    last: f64,
    cpu: f64,
    bytes: usize,
}

/// A screen has no event to wait for.
fn settle() {
    std::thread::park_timeout(Duration::from_millis(700));
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// CPU milliseconds of children that have ended, in ticks of 10 ms.
fn children_cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    (fields[13].parse::<f64>().unwrap() + fields[14].parse::<f64>().unwrap()) * 10.0
}

fn cpu_ticks(pid: &str) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}
