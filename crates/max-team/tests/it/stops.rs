//! What a run without a chat says when somebody is stopped, and what it goes on with: the code, the object and the words are one.

use std::io::{BufRead, BufReader};

use max_team_testkit::{Gate, ModelServer, Reply, Script};
use serde_json::{Value, json};

use crate::chat::Terminal;
use crate::context::wait_for;
use crate::program::{Program, Ran, finish, signal};
use crate::teammates::{is, ok, spawn};

const GO_ON: [&str; 3] = ["-c", "-p", ""];

/// What a run came to, in JSON: the code, and what the object says of it.
fn stands(ran: &Ran) -> (i32, bool, String, Value) {
    let result = ran.json();
    let reason = result["terminal_reason"].as_str().unwrap().to_owned();
    (ran.code, result["is_error"].as_bool().unwrap(), reason, result["stopped"].clone())
}

/// A lead with alice, who waits at a gate, and bert, who waits at another.
fn two(alice: &Gate, bert: &Gate) -> ModelServer {
    let (alice, bert) = (alice.clone(), bert.clone());
    ModelServer::start(Script::new().when(move |request| {
        let last = request.last_user();
        Some(if is(request, "alice") {
            Reply::text("There are 42.").gate_before(&alice)
        } else if is(request, "bert") {
            Reply::text("There are 7.").gate_before(&bert)
        } else if request.tool_results() == 0 {
            let (alice, bert) = (spawn("alice", "Count the files."), spawn("bert", "Count the folders."));
            Reply::new().tool("s1", "spawn_teammate", alice).tool("s2", "spawn_teammate", bert)
        } else if last.contains("There are 42.") {
            Reply::text("42 files.")
        } else if last.contains("There are 7.") {
            Reply::text("7 folders.")
        } else {
            Reply::text("They are at it.")
        })
    }))
}

/// Both are at it, and Max rests.
fn at_it(program: &Program, both: [&Gate; 2]) {
    both.iter().for_each(|gate| gate.wait_reached());
    wait_for(program, "turn_ended", "They are at it.");
}

/// One of two is stopped and Max answers with what the other has found: that is the answer, and who is missing is said.
#[test]
fn a_run_answered_without_a_teammate_names_it() {
    for format in ["json", "text"] {
        let (alice, bert) = (Gate::new(), Gate::new());
        let server = two(&alice, &bert);
        let program = Program::team(&server);
        let child = program.team_command(&["-p", "go", "--output-format", format]).spawn().unwrap();
        at_it(&program, [&alice, &bert]);
        ok(program.run(&["stop", "alice"]));
        bert.open();
        let ran = finish(child);
        alice.open();
        if format == "json" {
            assert_eq!(stands(&ran), (0, false, "answered".to_owned(), json!(["alice"])), "{ran:?}");
        } else {
            assert_eq!((ran.code, ran.out.as_str()), (0, "7 folders.\n"), "{ran:?}");
        }
        assert!(ran.err.contains("alice; go on with `max-team -r ses_"), "{ran:?}");
        assert_eq!(ok(program.run(&GO_ON)).out, "42 files.\n");
    }
}

/// Max is idle and his teammates work: a session stop stops them, and `-c -p ""` continues them.
#[test]
fn a_session_stop_stops_teammates_of_an_idle_max() {
    let (alice, bert) = (Gate::new(), Gate::new());
    let server = two(&alice, &bert);
    let program = Program::team(&server);
    let child = program.team_command(&["-p", "go", "--output-format", "json"]).spawn().unwrap();
    at_it(&program, [&alice, &bert]);
    let refused = program.run(&["stop", "max"]);
    assert!(refused.code == 1 && refused.err.contains("nothing to stop"), "a name stops one agent: {refused:?}");
    let session = ok(program.run(&["ps", "--json"])).json()[0]["session"].as_str().unwrap().to_owned();
    ok(program.run(&["stop", &session]));
    let ran = finish(child);
    let (code, is_error, reason, _) = stands(&ran);
    assert_eq!((code, is_error, reason.as_str()), (130, true, "stopped"), "{ran:?}");
    let team = ok(program.run(&["team", "show", "--json"])).json();
    let teammates = team["members"].as_array().unwrap().iter().filter(|teammate| teammate["name"] != "max");
    assert_eq!(
        teammates.map(|teammate| teammate["state"].clone()).collect::<Vec<_>>(),
        ["stopped", "stopped"],
        "{team}"
    );
    alice.open();
    bert.open();
    let on = ok(program.run(&GO_ON));
    assert!(on.out.contains("folders.") || on.out.contains("files."), "{on:?}");
}

/// Max was at it when the process died, and was stopped where nobody ran him: who says to go on says so after the stop.
#[test]
fn a_stop_that_max_has_not_read_is_older_than_the_word_to_go_on() {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::new().when(move |request| {
        Some(match request.last_user() {
            last if last.contains("Go on with what you were doing") => Reply::text("the rest"),
            last if last.contains("hello") => Reply::text("hello yourself"),
            _ => Reply::text("half of it").chunk(5).gate_after(5, &held),
        })
    }));
    for (count, words) in ["", "hello"].into_iter().enumerate() {
        let program = Program::team(&server);
        let mut child = program.start(&["-p", "tell"]);
        gate.wait_reached_by(count + 1);
        child.kill().unwrap();
        child.wait().unwrap();
        ok(program.run(&["stop", "max"]));
        let on = ok(program.run(&["-c", "-p", words, "--output-format", "json"]));
        let said = if words.is_empty() { "the rest" } else { "hello yourself" };
        assert_eq!(on.json()["result"], said, "{on:?}");
        assert_eq!(stands(&on), (0, false, "answered".to_owned(), json!([])), "{on:?}");
    }
    gate.open();
}

/// The same for those who work for him: without words they go on, too; with words they stay stopped, and that is none of the run's.
#[test]
fn a_stop_that_teammates_have_not_read_is_older_than_the_run() {
    for (words, who, times) in [("", None, 1), ("", Some("alice"), 1), ("and you?", None, 1), ("and you?", None, 2)] {
        let (alice, bert) = (Gate::new(), Gate::new());
        let server = two(&alice, &bert);
        let program = Program::team(&server);
        let mut child = program.team_command(&["-p", "go"]).spawn().unwrap();
        at_it(&program, [&alice, &bert]);
        child.kill().unwrap();
        child.wait().unwrap();
        let all = ok(program.run(&["sessions", "list", "--json"])).json()[0]["session"].as_str().unwrap().to_owned();
        (0..times).for_each(|_| drop(ok(program.run(&["stop", who.unwrap_or(&all)]))));
        alice.open();
        bert.open();
        let on = ok(program.run(&["-c", "-p", words, "--output-format", "json"]));
        assert_eq!(stands(&on), (0, false, "answered".to_owned(), json!([])), "{on:?}");
        let told = |words: &str| server.requests().iter().any(|request| request.last_user().contains(words));
        let went_on = (told("There are 42."), told("There are 7."));
        assert_eq!(went_on, (words.is_empty(), words.is_empty()), "{words:?} {who:?}");
    }
}

/// Nothing came after the stop: what was asked for is not there, and everything says so.
#[test]
fn a_run_stopped_before_its_answer_is_an_error_in_every_format() {
    let (alice, bert) = (Gate::new(), Gate::new());
    let server = two(&alice, &bert);
    let program = Program::team(&server);
    let child = program.team_command(&["-p", "go", "--output-format", "json"]).spawn().unwrap();
    at_it(&program, [&alice, &bert]);
    ok(program.run(&["stop", "alice"]));
    ok(program.run(&["stop", "bert"]));
    let ran = finish(child);
    assert_eq!(stands(&ran), (130, true, "stopped".to_owned(), json!(["alice", "bert"])), "{ran:?}");
    assert!(ran.err.contains("go on with `max-team -r ses_"), "{ran:?}");
    alice.open();
    bert.open();
    let on = ok(program.run(&GO_ON));
    assert!(!on.err.contains("answered before"), "{on:?}");
    let again = ok(program.run(&["-c", "-p", "", "--output-format", "json"]));
    assert!(again.json()["answered_before"] == true && again.err.contains("answered before"), "{again:?}");
}

/// Max has said something, and the run is ended from outside while others are at work: what he said is told, and that it is not all.
#[test]
fn a_run_that_is_terminated_tells_the_answer_that_is_there() {
    let (alice, bert) = (Gate::new(), Gate::new());
    let server = two(&alice, &bert);
    let program = Program::team(&server);
    let mut child = program.team_command(&["-p", "go", "--output-format", "stream-json"]).spawn().unwrap();
    alice.wait_reached();
    wait_for(&program, "turn_ended", "They are at it.");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("\"assistant\"") && line.contains("They are at it.")));
    // What bert has done waits for alice.
    bert.open();
    wait_for(&program, "turn_ended", "There are 7.");
    signal(&child, "TERM");
    let last: Value = serde_json::from_str(&lines.last().unwrap()).unwrap();
    assert_eq!(finish(child).code, 143);
    alice.open();
    assert!(last["type"] == "result" && last["result"] == "They are at it.", "{last}");
    assert_eq!((&last["is_error"], &last["terminal_reason"]), (&json!(true), &json!("stopped")), "{last}");
}

/// Max himself is stopped, by somebody or by a signal, or those are who were to begin without him: one object, and one word for it.
#[test]
fn a_run_in_which_max_says_nothing_has_one_result() {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::new().when(move |_| Some(Reply::text("hi").gate_before(&held))));
    let web = "name: web\nmembers: [{name: eve, prompt: Wait.}]\n";
    for (count, format) in ["json", "stream-json"].into_iter().enumerate() {
        let program = Program::team(&server).file(".max-team/teams/web.yaml", web);
        let started = |words: &[&str], number: usize| {
            let child = program.start(&[words, &["--output-format", format, "--verbose"]].concat());
            gate.wait_reached_by(3 * count + number);
            child
        };
        let results = |ran: &Ran| {
            let lines: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let mut results = lines.into_iter().filter(|line| line["type"] == "result");
            let (only, none) = (results.next().unwrap(), results.next());
            assert!(none.is_none() && only["error"].is_string() && only["session_id"].is_string(), "{ran:?}");
            (ran.code, only["is_error"].clone(), only["terminal_reason"].clone(), only["stopped"].clone())
        };
        let child = started(&["-p", "hello"], 1);
        ok(program.run(&["stop", "max"]));
        assert_eq!(results(&finish(child)), (130, json!(true), json!("stopped"), json!(["max"])));
        let child = started(&["--team", "web", "-p", ""], 2);
        ok(program.run(&["stop", "eve"]));
        assert_eq!(results(&finish(child)), (130, json!(true), json!("stopped"), json!(["eve"])));
        let child = started(&["-p", "hello"], 3);
        signal(&child, "TERM");
        assert_eq!(results(&finish(child)), (143, json!(true), json!("stopped"), json!([])));
    }
    gate.open();
}

/// A call of Max's that is stopped is his to make again: nothing is promised that would not go on.
#[test]
fn a_run_that_max_answers_without_a_call_names_no_way_to_go_on_with_it() {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::new().when(move |request| {
        Some(if request.contains("Look around.") && !request.contains("look, please") {
            Reply::text("Nothing.").gate_before(&held)
        } else if request.tool_results() == 0 {
            Reply::new().tool("d1", "dispatch_task", json!({ "agent": "ada", "description": "Look around." }))
        } else {
            Reply::text("She was stopped.")
        })
    }));
    let program = Program::team(&server);
    let child = program.team_command(&["-p", "look, please", "--output-format", "json"]).spawn().unwrap();
    gate.wait_reached();
    ok(program.run(&["stop", "ada"]));
    let ran = finish(child);
    gate.open();
    assert_eq!(stands(&ran), (0, false, "answered".to_owned(), json!(["ada"])), "{ran:?}");
    assert!(ran.err.contains("without them: ada") && !ran.err.contains("go on with"), "{ran:?}");
    let again = ok(program.run(&GO_ON));
    assert!(again.out == "She was stopped.\n" && again.err.contains("answered before"), "{again:?}");
}

/// A plan at work, of which only the task `look` has begun.
const PLAN: &str = "goal: Say hello\ntasks:\n  - {id: look, agent: ada, do: Look around.}\n";

/// A plan that was stopped is over: nobody is told to go on with it, and whoever tries is told, and not with a code that says done.
#[test]
fn a_stopped_plan_suggests_no_continuation() {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::new().when(move |_| Some(Reply::text("Nothing.").gate_before(&held))));
    let program = Program::team(&server).file("plan.yaml", PLAN);
    let child = program.start(&["run", "plan.yaml", "--yes"]);
    gate.wait_reached();
    ok(program.run(&["stop"]));
    let ran = finish(child);
    assert!(ran.code == 130 && ran.err.contains("stopped; what was done is kept"), "{ran:?}");
    assert!(!ran.err.contains("go on with"), "{ran:?}");
    let on = program.run(&GO_ON);
    assert!(on.code == 2 && on.err.contains("nothing to continue") && on.out.is_empty(), "{on:?}");
    let on = program.run(&["-c", "-p", "", "--output-format", "json"]);
    assert!(on.code == 2 && on.json()["is_error"] == true, "{on:?}");
    assert_eq!(
        ok(program.run(&["ps"])).out,
        "no agent is at work; `max-team ps --all` includes those that finished in the last 24 hours\n"
    );
    gate.open();
}

/// A teammate works beside a plan that waits for approval, and Ctrl-C pauses the run: the plan goes on waiting.
#[test]
fn a_run_that_was_stopped_while_a_plan_waits_was_stopped() {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::new().when(move |request| {
        let tasks = json!([{ "id": "look", "title": "look", "agent": "ada", "description": "Look around." }]);
        Some(if is(request, "alice") {
            Reply::text("There are 42.").gate_before(&held)
        } else if request.tool_results() == 0 {
            Reply::new().tool("s1", "spawn_teammate", spawn("alice", "Count the files."))
        } else {
            Reply::new().say("Here is a plan.").tool("p", "submit_plan", json!({ "goal": "look", "tasks": tasks }))
        })
    }));
    let program = Program::team(&server);
    let child = program.team_command(&["-p", "go", "--output-format", "json"]).spawn().unwrap();
    gate.wait_reached();
    wait_for(&program, "turn_ended", "Here is a plan.");
    wait_for(&program, "plan_asked", "");
    signal(&child, "INT");
    let ran = finish(child);
    gate.open();
    let result = ran.json();
    assert_eq!((ran.code, &result["terminal_reason"]), (130, &json!("stopped")), "{ran:?}");
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("error_during_execution"), &json!(true)), "{ran:?}");
    assert!(result["plan"].is_string() && result["question"].is_string(), "{ran:?}");
    assert!(ran.err.contains("max-team approve pln_"), "{ran:?}");
}

/// Max was interrupted, then the plan was stopped where nobody ran it: Max goes on at once, and no word of before is printed.
#[test]
fn an_interrupted_max_goes_on_though_a_plan_was_stopped_meanwhile() {
    let (plan, words) = (Gate::new(), Gate::new());
    let (looks, talks) = (plan.clone(), words.clone());
    let server = ModelServer::start(Script::new().when(move |request| {
        let last = request.last_user();
        Some(if request.contains("Look around.") && !request.contains("make a plan") {
            Reply::text("Nothing.").gate_before(&looks)
        } else if last.contains("make a plan") {
            let tasks = json!([{ "id": "look", "title": "look", "agent": "ada", "description": "Look around." }]);
            Reply::new().tool("p", "submit_plan", json!({ "goal": "look", "tasks": tasks }))
        } else if last.contains("Go on with what you were doing") {
            Reply::text("the rest")
        } else if last.contains("talk to me") {
            Reply::text("half of it").chunk(5).gate_after(5, &talks)
        } else {
            Reply::text("It runs.")
        })
    }));
    let program = Program::team(&server);
    let mut terminal = Terminal::open(&program, &["--approve", "never"]);
    terminal.wait("or give a task");
    terminal.keys(&["make a plan", "Enter"]);
    plan.wait_reached();
    terminal.keys(&["talk to me", "Enter"]);
    words.wait_reached();
    terminal.keys(&["stop", "Enter"]);
    terminal.wait("Interrupted.");
    wait_for(&program, "turn_ended", "interrupted");
    terminal.kill();
    drop(terminal);
    ok(program.run(&["stop"]));
    plan.open();
    words.open();
    let ran = ok(program.run(&GO_ON));
    assert_eq!(ran.out, "the rest\n", "{ran:?}");
    assert!(ran.err.contains("plan: stopped by you (command line)"), "{ran:?}");
}

/// A team that was wanted while nobody ran the session, or that a kill has kept from beginning: its session says so.
#[test]
fn a_team_that_waits_to_begin_is_shown_for_a_session_that_does_not_run() {
    let server = ModelServer::start(Script::new().when(|_| Some(Reply::text("hi"))));
    let program =
        Program::team(&server).file(".max-team/teams/web.yaml", "name: web\nmembers: [{name: eve, prompt: Wait.}]\n");
    // Nobody has asked to continue anything.
    let none = program.run(&["team", "save", "web"]);
    assert!(
        none.code == 1 && none.err.contains("no session in this folder yet") && !none.err.contains("-c"),
        "{none:?}"
    );
    ok(program.run(&["-p", "hello"]));
    let session = ok(program.run(&["sessions", "list", "--json"])).json()[0]["session"].as_str().unwrap().to_owned();
    ok(program.run(&["team", "load", "web", "--session", &session]));
    let shown = ok(program.run(&["ps"])).out;
    assert!(shown.contains("a team waits to begin; no process runs this session: max-team -r ses_"), "{shown}");
    let chinese = program.variable("LC_ALL", "zh_CN.UTF-8");
    let shown = ok(chinese.run(&["ps"])).out;
    assert!(shown.contains("有团队等待开始；没有进程运行此会话"), "{shown}");
    let on = ok(chinese.variable("LC_ALL", "C.UTF-8").run(&GO_ON));
    assert!(on.err.contains("going on where it was left: 1 team\n"), "{on:?}");
}

/// Somebody was written to where nobody ran the session: what it answers is told, and is not what Max had answered before.
#[test]
fn an_answer_of_a_teammate_to_you_is_told() {
    let server = ModelServer::start(Script::new().when(|request| {
        let last = request.last_user();
        Some(match is(request, "alice") {
            true if last.contains("How many?") => Reply::text("42, I think."),
            true if last.contains("Fail.") => Reply::status(400),
            true => Reply::text("Ready."),
            false if request.tool_results() == 0 => {
                Reply::new().tool("s1", "spawn_teammate", spawn("alice", "Count the files."))
            }
            false => Reply::text("She is at it."),
        })
    }));
    let program = Program::team(&server);
    ok(program.run(&["-p", "go"]));
    for (words, told, code) in [("How many?", "alice: 42, I think.", 0), ("Fail.", "alice: ", 1)] {
        for format in ["text", "json"] {
            ok(program.run(&["send", "alice", words]));
            let on = program.run(&["-c", "-p", "", "--output-format", format]);
            assert!(on.code == code && on.err.contains(told) && !on.err.contains("answered before"), "{on:?}");
            if format == "json" {
                let result = on.json();
                assert_eq!((&result["is_error"], &result["answered_before"]), (&json!(code == 1), &json!(false)));
            } else {
                assert_eq!(on.out, "", "{words}: {on:?}");
            }
        }
    }
}
