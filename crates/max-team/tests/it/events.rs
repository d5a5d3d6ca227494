//! The stream of events from outside: followed by another process that is killed, read slowly, and told to people.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout};

use max_team_testkit::{Gate, ModelServer, Reply};
use serde_json::{Value, json};

use crate::program::{Program, finish, kill, signal};

/// A model that looks twice; the gate stands before the second answer.
fn looking(gate: &Gate) -> ModelServer {
    ModelServer::start([
        Reply::text("Looking.").tool("t1", "read_file", json!({"path": "a.txt"})),
        Reply::new().tool("t2", "read_file", json!({"path": "b.txt"})).gate_before(gate),
        Reply::text("It says alpha."),
    ])
}

/// The lines of a program as they come.
struct Lines(BufReader<ChildStdout>);

impl Lines {
    fn of(child: &mut Child) -> Self {
        Self(BufReader::new(child.stdout.take().unwrap()))
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.0.read_line(&mut line).unwrap() > 0, "no more lines");
        serde_json::from_str(&line).unwrap()
    }

    /// Up to the first line that is so.
    fn until(&mut self, is_last: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut lines = vec![self.next()];
        while !is_last(lines.last().unwrap()) {
            lines.push(self.next());
        }
        lines
    }
}

/// Where somebody goes on who has seen a line.
fn mark(line: &Value) -> String {
    line["part"].as_u64().map_or_else(|| line["seq"].to_string(), |part| format!("{}.{part}", line["seq"]))
}

/// The last that a run says.
fn is_last(line: &Value) -> bool {
    line["type"] == "session" && line["status"]["agents"] == json!([])
}

#[test]
fn a_killed_follower_continues_at_its_position() {
    let gate = Gate::new();
    let server = looking(&gate);
    let program = Program::with(&server).file("a.txt", "alpha").file("b.txt", "beta");
    let mut first = program.start(&["events", "--all", "-f"]);
    let mut lines = Lines::of(&mut first);
    let run = program.start(&["-p", "look"]);
    let mut seen = lines.until(|line| line["type"] == "tool_result");
    kill(&mut first);
    // What it had written and nobody has read yet is read, too; half of a line is none.
    let mut left = String::new();
    lines.0.read_to_string(&mut left).unwrap();
    let whole = left.rsplit_once('\n').map_or("", |(whole, _)| whole);
    seen.extend(whole.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
    gate.open();
    let mut second = program.start(&["events", "--all", "-f", "--from", &mark(seen.last().unwrap())]);
    seen.extend(Lines::of(&mut second).until(is_last));
    kill(&mut second);
    assert_eq!(finish(run).out, "It says alpha.\n");
    let undisturbed = program.run(&["events", "--all"]).lines();
    assert_eq!(seen, undisturbed);
    let kinds: Vec<&str> = undisturbed.iter().map(|line| line["type"].as_str().unwrap()).collect();
    let round = ["status", "tool_start", "tool_result"];
    assert!(
        round.iter().all(|kind| kinds.contains(kind)) && kinds.ends_with(&["final", "agent", "session"]),
        "{kinds:?}"
    );
    // Behind every line there is exactly the rest.
    for (number, line) in undisturbed.iter().enumerate() {
        let rest = program.run(&["events", "--from", &mark(line)]);
        assert_eq!((rest.code, rest.lines()), (0, undisturbed[number + 1..].to_vec()), "behind {}", mark(line));
    }
    let mail = program.run(&["events", "--type", "mail", "--type", "final"]).lines();
    let said: Vec<&Value> =
        mail.iter().map(|line| if line["type"] == "mail" { &line["message"] } else { &line["response"] }).collect();
    assert_eq!(said, ["look", "It says alpha."]);
}

#[test]
fn following_ends_with_its_reader_and_with_ctrl_c() {
    let server = ModelServer::start([Reply::text("hi")]);
    let program = Program::with(&server);
    assert_eq!(program.run(&["events"]).code, 1, "there is no session yet");
    assert_eq!(program.run(&["-p", "hello"]).code, 0);
    // `| head -1`: nothing more happens, and it ends all the same, without a word.
    let mut child = program.start(&["events", "-f"]);
    drop(Lines::of(&mut child).next());
    let ran = finish(child);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let mut child = program.start(&["events", "-f"]);
    let mut lines = Lines::of(&mut child);
    lines.until(is_last);
    signal(&child, "INT");
    let ran = finish(child);
    drop(lines);
    assert_eq!((ran.code, ran.err.as_str()), (130, ""));
}

/// Nobody reads while the run goes on: it comes to its end, and then every line is there.
#[test]
fn a_run_does_not_wait_for_a_slow_reader() {
    let looks = (0..8).map(|number| {
        Reply::new().tool(format!("t{number}"), "read_file", json!({"path": "a.txt", "offset": number + 1}))
    });
    let server = ModelServer::start(looks.chain([Reply::text("done")]).collect::<Vec<_>>());
    let program = Program::with(&server).file("a.txt", "alpha beta gamma delta\n".repeat(2_000));
    let child = program.start(&["-p", "look", "--output-format", "stream-json"]);
    server.wait_answered(9);
    let ran = finish(child);
    // Far more than a pipe holds.
    assert!(ran.code == 0 && ran.out.len() > 8 * 16_000, "{}", ran.out.len());
    let lines = ran.lines();
    assert_eq!(lines.iter().filter(|line| line["type"] == "user").count(), 8);
    assert_eq!(lines.last().unwrap()["result"], "done");
}

/// What other readers skip is the same stream, with the same places.
#[test]
fn stream_json_carries_the_events_of_the_team() {
    let server = ModelServer::start([
        Reply::new().tool("t1", "agent", json!({"description": "look", "prompt": "look at a.txt", "type": "explore"})),
        Reply::text("It is alpha."),
        Reply::text("Found."),
    ]);
    let program = Program::team(&server).file("a.txt", "alpha");
    let ran = program.run(&["-p", "find it", "--output-format", "stream-json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let told: Vec<Value> =
        ran.lines().into_iter().filter(|line| line["type"] == "max").map(|line| line["event"].clone()).collect();
    let all = program.run(&["events"]).lines();
    let is_told = |event: &Value| {
        let said_otherwise = ["status", "tool_result", "final", "error"].iter().any(|kind| event["type"] == *kind);
        !said_otherwise || event["agent"]["lead"] == false
    };
    let upto = told.last().unwrap()["seq"].as_u64().unwrap();
    let expected: Vec<Value> =
        all.into_iter().filter(|event| is_told(event) && event["seq"].as_u64().unwrap() <= upto).collect();
    assert_eq!(told, expected);
    let answered = |event: &Value| event["type"] == "final" && event["agent"]["name"] == "explore";
    assert!(told.iter().any(answered), "{told:?}");
}

/// Without what differs from run to run.
fn timeless(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let words: Vec<String> = line
            .split(' ')
            .map(|word| {
                let bare = word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
                let is_id = bare.len() == 8 && bare.bytes().all(|byte| byte.is_ascii_hexdigit());
                if is_id { word.replace(bare, "<id>") } else { word.to_owned() }
            })
            .collect();
        let line = words.join(" ");
        let line = if line.as_bytes().get(2) == Some(&b':') { format!("<time>{}", &line[8..]) } else { line };
        out.push_str(&without_ms(&line));
        out.push('\n');
    }
    out
}

/// `(12 ms)` is never the same twice.
fn without_ms(line: &str) -> String {
    match (line.find(" ("), line.find(" ms)")) {
        (Some(from), Some(to)) if from < to => format!("{} (<n>{}", &line[..from], &line[to..]),
        _ => line.to_owned(),
    }
}

#[test]
fn the_events_of_one_agent_are_printed_for_people() {
    let gate = Gate::new();
    gate.open();
    let server = looking(&gate);
    let program = Program::with(&server).file("a.txt", "alpha").variable("USER", "ann");
    assert_eq!(program.run(&["-p", "look"]).code, 0);
    let ran = program.run(&["logs", "max"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    insta::assert_snapshot!("logs", timeless(&ran.out));
    let program = program.variable("LANG", "zh_CN.UTF-8");
    insta::assert_snapshot!("logs_zh", timeless(&program.run(&["logs", "max"]).out));
    let ran = program.run(&["logs", "nobody"]);
    assert!(ran.code == 1 && ran.err.contains("没有名为 `nobody` 的智能体"), "{ran:?}");
}
