//! What judging a command costs: parse, look at links, judge, under sixty rules. Exit 1 if the median
//! for one command of a line is above the bar. `--json`: a line of figures for each.
#![expect(clippy::print_stdout, reason = "a command line program")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use max_team_core::agent::Constraints;
use max_team_core::policy::rule::{Anchors, List, Origin, RuleScope};
use max_team_core::policy::{CommandLine, Mode, Permissions, Rule, Rules, judge};
use max_team_tools::shell;
use serde_json::json;

const BAR: Duration = Duration::from_micros(100);
const RUNS: usize = 2_000;
const LINES: [&str; 8] = [
    "git status --short",
    "cargo test -p core --lib -- policy",
    "cd crates/core && cargo test 2>&1 | tail -20",
    "git -C . push origin main",
    "find . -name '*.rs' -exec grep -n TODO {} +",
    "cat a.txt | sort | uniq -c | sort -rn | head -5",
    "for f in *.rs; do rustfmt $f; done",
    "timeout 300 env RUST_BACKTRACE=1 cargo nextest run -p tools && git add -A && git commit -m 'it works'",
];

fn main() -> ExitCode {
    let root = std::env::temp_dir();
    let text = root.to_string_lossy().into_owned();
    let rule = |index: usize| {
        let origin = Origin { scope: RuleScope::User, file: "settings.json".into(), line: 1 };
        let (list, text) = match index % 3 {
            0 => (List::Deny, format!("Read(./secrets{index}/**)")),
            1 => (List::Ask, format!("Bash(tool{index} deploy *)")),
            _ => (List::Allow, format!("Bash(tool{index} run:*)")),
        };
        Rule::new(list, &text, origin, &Anchors { root: "/r", base: "/r", home: "/h" })
    };
    let permissions = Permissions { root: text, rules: (0..60).map(rule).collect(), ..Permissions::default() };
    let constraints =
        Constraints { blocked_patterns: vec!["*.env".into(), "*secret*".into()], ..Constraints::default() };
    let rules = Rules { permissions: &permissions, ..Rules::new(Mode::Default, &constraints) };
    let is_json = std::env::args().any(|word| word == "--json");
    let mut missed = false;
    for line in LINES {
        let whole = median(|| drop(std::hint::black_box(judge(&rules, "run_shell", &shell::action(line, &root)))));
        let read = median(|| drop(std::hint::black_box(shell::parse_line(line))));
        let commands = if let CommandLine::Plain(parts) = shell::parse_line(line) { parts.len().max(1) } else { 1 };
        let each = whole / u32::try_from(commands).unwrap_or(1);
        missed |= each > BAR;
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        if is_json {
            let figures = json!({ "line": line, "command_us": us(each), "line_us": us(whole), "read_us": us(read) });
            println!("{figures}");
            continue;
        }
        println!(
            "{:>6.1} µs a command, {:>6.1} the line, {:>6.1} of it reading  {line}",
            us(each),
            us(whole),
            us(read)
        );
    }
    ExitCode::from(u8::from(missed))
}

fn median(mut run: impl FnMut()) -> Duration {
    let time = |_| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    let mut times: Vec<Duration> = (0..RUNS).map(time).collect();
    times.sort_unstable();
    times.get(RUNS / 2).copied().unwrap_or_default()
}
