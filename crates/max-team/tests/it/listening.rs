//! `--input-format stream-json`: what is said comes a line at a time, and each turn of Max's has a result.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use max_team_core::limits::QUEUE_MAX;
use max_team_testkit::{Gate, ModelServer, Recorded, Reply, Script};
use serde_json::{Value, json};

use crate::plans::{plan, task};
use crate::program::{Program, Ran, finish, signal};

/// A program that reads what is said a line at a time, and what it prints.
struct Talker {
    child: std::process::Child,
    out: BufReader<std::process::ChildStdout>,
}

impl Talker {
    fn start(program: &Program) -> Self {
        Self::start_with(program, &[])
    }

    fn start_with(program: &Program, more: &[&str]) -> Self {
        let flags = ["-p", "--input-format", "stream-json", "--output-format", "stream-json"];
        let mut child = program.command(&[&flags, more].concat()).stdin(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    fn say(&mut self, text: &str) {
        let line = json!({"type": "user", "message": {"role": "user", "content": text}});
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The next line of a type, if there is one.
    fn next(&mut self, kind: &str) -> Option<Value> {
        loop {
            let mut line = String::new();
            if self.out.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            let line: Value = serde_json::from_str(&line).unwrap();
            if line["type"] == kind || line["subtype"] == kind {
                return Some(line);
            }
        }
    }

    /// The next line of a type, with its text.
    fn hear(&mut self, kind: &str, field: &str) -> Value {
        let line = self.next(kind);
        assert!(line.is_some(), "no {kind}");
        line.unwrap()[field].clone()
    }

    /// What the next result says: its words, whether it is an error, and why it ended.
    fn result(&mut self) -> (String, bool, String) {
        let line = self.next("result").unwrap();
        let text = |field: &str| line[field].as_str().unwrap_or_default().to_owned();
        (text("result"), line["is_error"].as_bool().unwrap(), text("terminal_reason"))
    }

    /// Nothing more is said: the results that are left, and how it ends.
    fn end(mut self) -> (Vec<Value>, Ran) {
        drop(self.child.stdin.take());
        let rest = std::iter::from_fn(|| self.next("result")).collect();
        (rest, finish(self.child))
    }
}

#[test]
fn lines_on_standard_input_are_turns_until_there_are_no_more() {
    let server = ModelServer::start([Reply::text("four"), Reply::text("five")]);
    let program = Program::with(&server);
    let mut talker = Talker::start(&program);
    talker.say("2+2?");
    assert_eq!(talker.hear("result", "result"), "four");
    talker.say("and one more?");
    assert_eq!(talker.hear("result", "result"), "five");
    let Talker { child, .. } = talker;
    assert_eq!(finish(child).code, 0, "the end of input is the end");
    assert_eq!(server.requests()[1].user_texts(), ["2+2?", "and one more?"]);
}

/// A program may send any text; a line of the chat is refused there, too.
#[test]
fn a_json_message_may_begin_with_a_path() {
    let server = ModelServer::start([Reply::text("It is full.")]);
    let program = Program::with(&server);
    let mut talker = Talker::start(&program);
    talker.say("/tmp is full, clean it");
    assert_eq!(talker.hear("result", "result"), "It is full.");
    talker.say("/exit");
    let (_, ran) = talker.end();
    assert!(ran.code == 2 && ran.err.contains("`/exit` is a command of the chat"), "{ran:?}");
}

/// Definitions are read again before each message, whatever frontend it comes from.
#[test]
fn a_definition_that_is_written_between_two_lines_counts_for_the_second() {
    let server = ModelServer::start([Reply::text("four"), Reply::text("five"), Reply::text("six")]);
    let program = Program::with(&server).file("a.txt", "one");
    let mut talker = Talker::start(&program);
    talker.say("2+2?");
    assert_eq!(talker.hear("result", "result"), "four");
    let program =
        program.file(".max-team/agents/tides.md", "---\nname: tides\ndescription: Knows the tides\n---\nYou know.\n");
    talker.say("and one more?");
    assert_eq!(talker.hear("result", "result"), "five");
    let program = program.file(".max-team/agents/tides.md", "---\nname: tides\nname: twice\n---\nx\n");
    talker.say("and one more?");
    assert_eq!(talker.hear("result", "result"), "six");
    let (_, ran) = talker.end();
    let requests = server.requests();
    let knows: Vec<bool> = requests.iter().map(|request| request.contains("Knows the tides")).collect();
    assert_eq!(knows, [false, true, true], "{ran:?}");
    assert!(ran.err.contains("tides.md"), "the user hears of a definition that cannot be read: {}", ran.err);
    drop(program);
}

/// The turn that is cut short has a result like those before it.
#[test]
fn a_turn_that_is_terminated_has_a_result() {
    let gate = Gate::new();
    let server = ModelServer::start([Reply::text("four"), Reply::text("five").gate_before(&gate)]);
    let program = Program::with(&server);
    let mut talker = Talker::start(&program);
    talker.say("2+2?");
    assert_eq!(talker.result(), well("four", "answered"));
    talker.say("and one more?");
    gate.wait_reached();
    signal(&talker.child, "TERM");
    assert_eq!(talker.result(), (String::new(), true, "stopped".to_owned()));
    let (rest, ran) = talker.end();
    gate.open();
    assert_eq!((ran.code, rest), (143, vec![]), "{ran:?}");
}

#[test]
fn a_line_that_comes_while_a_turn_runs_is_told_at_its_next_step() {
    let gate = Gate::new();
    let look = Reply::new().tool("t1", "read_file", json!({"path": "a.txt"})).gate_before(&gate);
    let server = ModelServer::start([look, Reply::text("in French: un")]);
    let program = Program::with(&server).file("a.txt", "one");
    let mut talker = Talker::start(&program);
    talker.say("what does it say?");
    talker.hear("mail", "event");
    gate.wait_reached();
    talker.say("in French");
    talker.hear("mail", "event");
    gate.open();
    assert_eq!(talker.hear("result", "result"), "in French: un");
    let Talker { child, .. } = talker;
    assert_eq!(finish(child).code, 0);
    assert_eq!(server.requests().len(), 2, "one turn");
    assert!(server.requests()[1].contains("in French"));
}

#[test]
fn more_lines_than_may_wait_are_all_told_in_order() {
    let gate = Gate::new();
    let first = gate.clone();
    let answer = move |request: &Recorded| {
        let reply = Reply::text("heard");
        Some(if request.user_texts().len() == 1 { reply.gate_before(&first) } else { reply })
    };
    let server = ModelServer::start(Script::new().when(answer));
    let program = Program::with(&server);
    let mut talker = Talker::start(&program);
    let said: Vec<String> = (0..2 * QUEUE_MAX).map(|number| format!("line {number}")).collect();
    talker.say(&said[0]);
    gate.wait_reached();
    said[1..].iter().for_each(|line| talker.say(line));
    // As many as may wait do, and one more was read.
    (0..=QUEUE_MAX).for_each(|_| drop(talker.hear("mail", "event")));
    gate.open();
    let Talker { mut child, mut out } = talker;
    drop(child.stdin.take());
    std::io::copy(&mut out, &mut std::io::sink()).unwrap();
    assert_eq!(finish(child).code, 0);
    let last = server.requests().last().unwrap().user_texts().join("\n");
    assert_eq!(last.lines().filter(|line| line.starts_with("line ")).collect::<Vec<_>>(), said);
}

#[test]
fn ctrl_c_pauses_the_run_and_the_next_one_goes_on_with_everything() {
    let (asked, waiting) = (Gate::new(), Gate::new());
    let (first, second) = (asked.clone(), waiting.clone());
    let answer = move |request: &Recorded| {
        let told = request.contains("3+3?");
        Some(if told { Reply::text("six").gate_before(&second) } else { Reply::text("four").gate_before(&first) })
    };
    let server = ModelServer::start(Script::new().when(answer));
    let program = Program::with(&server);
    let mut talker = Talker::start(&program);
    talker.say("2+2?");
    asked.wait_reached();
    talker.say("3+3?");
    (0..2).for_each(|_| drop(talker.hear("mail", "event")));
    signal(&talker.child, "INT");
    // The next answer never comes, and is not waited for.
    let ran = finish(talker.child);
    assert_eq!(ran.code, 130, "{ran:?}");
    asked.open();
    waiting.open();
    let ran = program.run(&["-c", "-p", ""]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "six\n"), "{ran:?}");
}

/// What Max says of a turn that came to something.
fn well(words: &str, reason: &str) -> (String, bool, String) {
    (words.to_owned(), false, reason.to_owned())
}

/// A lead that makes a plan of one task, which waits at a gate, and talks of other things meanwhile. A task that is to make a file makes none.
fn planner(gate: &Gate, outputs: Value) -> ModelServer {
    let gate = gate.clone();
    let tasks = json!([{ "id": "look", "title": "look", "agent": "ada", "description": "Look around.",
        "outputs": outputs, "retry": 0 }]);
    ModelServer::start(Script::new().when(move |request| {
        let last = request.last_user();
        Some(match () {
            () if task("look")(request) => Reply::text("Nothing.").gate_before(&gate),
            () if last.contains("has failed after") && !request.contains("goes on accordingly") => {
                Reply::new().tool("u", "task_update", json!({ "task_id": "look", "decision": "give_up" }))
            }
            () if last.contains("is over:") => Reply::text("It is over."),
            () if last.contains("please") => plan(tasks.clone()),
            () if last.contains("2+2?") => Reply::text("four"),
            () => Reply::text("Given up."),
        })
    }))
}

/// A plan that waits for a yes is no fault of the turn that makes it, nor of the next: it counts for the run.
#[test]
fn a_plan_that_waits_counts_for_the_end_of_a_run_that_listens() {
    let gate = Gate::new();
    let server = planner(&gate, json!([]));
    let program = Program::team(&server);
    let mut talker = Talker::start(&program);
    talker.say("look, please");
    assert_eq!(talker.result(), well("Here is a plan.", "proposed"));
    talker.say("2+2?");
    assert_eq!(talker.result(), well("four", "answered"));
    let (rest, ran) = talker.end();
    let told: Vec<_> = rest.iter().map(|line| [&line["subtype"], &line["terminal_reason"]]).collect();
    assert_eq!(told, [[&json!("needs_approval"), &json!("needs_approval")]], "{rest:?}");
    assert!(rest[0]["question"].is_string() && rest[0]["plan"].is_string(), "{rest:?}");
    assert_eq!(ran.code, 5, "{ran:?}");
}

/// While a plan runs, what is talked about is answered; once it is done, everything ended well.
#[test]
fn a_plan_that_is_done_leaves_a_run_that_listens_with_nothing_to_mend() {
    let gate = Gate::new();
    let server = planner(&gate, json!([]));
    let program = Program::team(&server);
    let mut talker = Talker::start_with(&program, &["--approve", "never"]);
    talker.say("look, please");
    assert_eq!(talker.result(), well("Here is a plan.", "proposed"));
    gate.wait_reached();
    talker.say("2+2?");
    assert_eq!(talker.result(), well("four", "answered"));
    gate.open();
    assert_eq!(talker.result(), well("It is over.", "answered"));
    let (rest, ran) = talker.end();
    assert_eq!((ran.code, rest), (0, vec![]), "{ran:?}");
}

/// A plan that failed is an error of the turn that says so and of the run, and of no turn after it.
#[test]
fn a_plan_that_failed_counts_for_the_turn_that_reports_it() {
    let gate = Gate::new();
    gate.open();
    let server = planner(&gate, json!(["found.txt"]));
    let program = Program::team(&server);
    let mut talker = Talker::start_with(&program, &["--approve", "never"]);
    talker.say("look, please");
    assert_eq!(talker.result(), well("Here is a plan.", "proposed"));
    assert_eq!(talker.result(), well("", "answered"), "a decision needs no words");
    let (words, is_error, reason) = talker.result();
    assert_eq!((words.as_str(), is_error, reason.as_str()), ("It is over.", true, "failed"));
    talker.say("2+2?");
    assert_eq!(talker.result(), well("four", "answered"));
    let (rest, ran) = talker.end();
    assert_eq!((ran.code, rest), (1, vec![]), "{ran:?}");
}

/// `echo hi | max-team` and `max-team < file`: each line is a message of its own, answered before the next one is sent.
#[test]
fn plain_lines_are_messages_and_answers_go_to_standard_output() {
    let server = ModelServer::start([Reply::text("one"), Reply::text("two")]);
    let program = Program::with(&server);
    let ran = program.pipe(&[], "hello\n\n再见\n".as_bytes());
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "one\ntwo\n", ""), "{ran:?}");
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[1].contains("hello") && requests[1].contains("再见"), "{}", requests[1].body);
    let ran = program.pipe(&[], b"");
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{ran:?}");
    assert!(ran.err.contains("pipe in one message per line") && !ran.err.contains("\"type\""), "{ran:?}");
    // Commands of the chat are not for the model; a path is no command.
    for line in ["/help\n", "/stop all\n", "/exit\n"] {
        let ran = program.pipe(&[], line.as_bytes());
        assert!(ran.code == 2 && ran.err.contains("is a command of the chat and works only there"), "{ran:?}");
    }
    let ran = program.pipe(&[], b"/nonsense\n");
    assert!(ran.code == 2 && ran.err.contains("`/nonsense` is no command here"), "{ran:?}");
    assert_eq!(server.requests().len(), 2);
}
