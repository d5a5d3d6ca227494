//! A lead at work that is spoken to, stopped and gone on with, in a real terminal.

use max_team_testkit::{Gate, ModelServer, Recorded, Reply, Script};
use serde_json::{Value, json};

use crate::chat::Terminal;
use crate::obeyed::runs;
use crate::program::{Program, soon};

const FREE: [&str; 2] = ["--permission-mode", "bypassPermissions"];

fn mark(of: &str) -> String {
    format!("97531.{}{of}", std::process::id())
}

/// One agent with hands, spoken to in each of the two wire formats.
fn dialects(server: &ModelServer) -> [(Program, Vec<&'static str>); 2] {
    let other = Program::alone().variable("OPENAI_BASE_URL", server.url()).variable("OPENAI_API_KEY", "sk-test");
    [(Program::with(server), FREE.to_vec()), (other, [&FREE[..], &["--model", "gpt-5"]].concat())]
}

/// The last messages of a request, as roles and texts, whatever the format.
fn tail(request: &Recorded) -> Vec<(String, String)> {
    let messages = request.body["messages"].as_array().unwrap().iter();
    let told = |message: &Value| match &message["content"] {
        Value::Array(blocks) => {
            let role = message["role"].as_str().unwrap();
            let kind = |block: &Value| if block["type"] == "tool_result" { "tool" } else { role }.to_owned();
            blocks.iter().map(|block| (kind(block), block.to_string())).collect::<Vec<_>>()
        }
        content => vec![(message["role"].as_str().unwrap().to_owned(), content.to_string())],
    };
    messages.flat_map(told).collect()
}

/// Whether what the screen shows as said is in the journal, too.
fn is_written(program: &Program, words: &str) -> bool {
    program.journal().iter().any(|entry| entry["event"] == "said" && entry.to_string().contains(words))
}

#[test]
fn messages_during_a_step_follow_its_results() {
    for index in 0..2 {
        let gate = Gate::new();
        let server = ModelServer::start([
            Reply::new().tool("t1", "read_file", json!({"path": "a.txt"})).gate_before(&gate),
            Reply::text("with tabs"),
        ]);
        let (program, arguments) = dialects(&server).into_iter().nth(index).unwrap();
        let program = program.file("a.txt", "alpha\n");
        let mut terminal = Terminal::open(&program, &arguments);
        terminal.wait("or give a task");
        terminal.keys(&["look", "Enter"]);
        gate.wait_reached();
        terminal.keys(&["use tabs", "Enter"]);
        terminal.wait("Up takes it back");
        assert!(soon(|| is_written(&program, "use tabs")));
        gate.open();
        terminal.wait("tokens in");
        assert!(server.problems().is_empty() && server.count() == 2, "{:?}", server.problems());
        let requests = server.requests();
        let told = tail(&requests[1]);
        let [.., (results, alpha), (user, words)] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!((results.as_str(), user.as_str()), ("tool", "user"), "{told:?}");
        assert!(alpha.contains("alpha") && words.contains("use tabs"), "{told:?}");
        let screen = terminal.screen();
        assert!(screen.contains("\n> use tabs\n") && screen.contains("with tabs"), "{screen}");
    }
}

#[test]
fn a_turn_that_was_stopped_in_its_calls_goes_on_cleanly() {
    for index in 0..2 {
        let mark = mark(&format!("1{index}"));
        let command = json!({"command": format!("sleep {mark}"), "timeout": 600});
        let server = ModelServer::start([
            Reply::text("Two things.").tool("t1", "run_shell", command).tool(
                "t2",
                "read_file",
                json!({"path": "a.txt"}),
            ),
            Reply::text("going on"),
        ]);
        let (program, arguments) = dialects(&server).into_iter().nth(index).unwrap();
        let program = program.file("a.txt", "alpha\n");
        let mut terminal = Terminal::open(&program, &arguments);
        terminal.wait("or give a task");
        terminal.keys(&["do both", "Enter"]);
        assert!(soon(|| runs(&mark)));
        terminal.keys(&["Escape"]);
        terminal.wait("or /continue");
        assert!(!runs(&mark));
        terminal.keys(&["/continue", "Enter"]);
        terminal.wait("going on");
        assert!(server.problems().is_empty(), "{:?}", server.problems());
        let told = tail(&server.requests()[1]);
        let [.., (one, stopped), (other, _), (user, words)] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!((one.as_str(), other.as_str(), user.as_str()), ("tool", "tool", "user"), "{told:?}");
        assert!(!stopped.contains("alpha") && words.contains("Go on with what you were doing"), "{told:?}");
        assert!(told.iter().any(|(_, words)| words.contains("Two things.")), "what was said is kept: {told:?}");
        let mail = program.run(&["mail", "list"]).out;
        assert!(mail.contains("(continue, sent by the program)") && !mail.contains("Go on with"), "{mail}");
    }
}

#[test]
fn a_word_stops_the_turn_without_asking_a_model() {
    for (word, dumb) in [("停", false), ("Stop", false), ("打断", true), ("/stop", true)] {
        let gate = Gate::new();
        let server =
            ModelServer::start([Reply::text("a long story").chunk(4).gate_after(4, &gate), Reply::text("short")]);
        let program = Program::with(&server).variable("TERM", if dumb { "dumb" } else { "screen-256color" });
        let mut terminal = Terminal::open(&program, &[]);
        if !dumb {
            terminal.wait("or give a task");
        }
        terminal.keys(&["tell", "Enter"]);
        gate.wait_reached();
        terminal.keys(&[word, "Enter"]);
        if !dumb {
            terminal.wait("or /continue");
        }
        terminal.keys(&["now what", "Enter"]);
        terminal.wait("short");
        assert_eq!(server.count(), 2, "{word}");
        let told = server.requests()[1].user_texts().join("|");
        let note = "The user stopped your last turn before it was finished.";
        assert!(told.contains(note), "one note says what was stopped: {told}");
        let told = told.replace(note, "");
        assert!(told.contains("now what") && !told.to_lowercase().contains(&word.to_lowercase()), "{told}");
        gate.open();
    }
}

#[test]
fn up_takes_a_message_back_and_what_is_sent_instead_is_what_is_read() {
    let gate = Gate::new();
    let server = ModelServer::start([Reply::text("one").gate_before(&gate), Reply::text("two")]);
    let program = Program::with(&server).file("../home/config.yaml", "keys:\n  enter_while_busy: queue\n");
    let mut terminal = Terminal::open(&program, &[]);
    terminal.wait("or give a task");
    terminal.keys(&["begin", "Enter"]);
    gate.wait_reached();
    terminal.keys(&["use taps", "Enter"]);
    terminal.wait("queued (Up takes it back): use taps");
    terminal.keys(&["Up"]);
    // Now it is in the draft.
    assert!(soon(|| terminal.screen().contains("> use taps")));
    terminal.keys(&["BSpace", "BSpace", "bs", "Enter"]);
    terminal.wait("queued (Up takes it back): use tabs");
    gate.open();
    terminal.wait("two");
    assert_eq!(server.requests()[1].last_user(), "use tabs");
    assert_eq!(server.count(), 2);
    let withdrawn = program.journal().into_iter().filter(|entry| entry["event"] == "withdrawn").count();
    assert_eq!(withdrawn, 1);
}

#[test]
fn waiting_messages_outlive_a_kill_and_are_shown() {
    let (first, second) = (Gate::new(), Gate::new());
    let server = ModelServer::start([
        Reply::text("lost").gate_before(&first),
        Reply::text("found").gate_before(&second),
        Reply::text("the other thing"),
    ]);
    let program = Program::with(&server);
    let mut terminal = Terminal::open(&program, &[]);
    terminal.wait("or give a task");
    terminal.keys(&["begin", "Enter"]);
    first.wait_reached();
    terminal.keys(&["then the other", "Enter"]);
    terminal.wait("Up takes it back");
    // It is on the screen before it is in the journal.
    assert!(soon(|| program.journal().iter().any(|entry| entry["payload"].to_string().contains("then the other"))));
    terminal.kill();
    drop(terminal);
    std::fs::remove_file(program.home().with_file_name("screen")).unwrap();
    let mut terminal = Terminal::open(&program, &["-c"]);
    terminal.wait("(Up takes it back): then the other");
    second.wait_reached();
    second.open();
    terminal.wait("the other thing");
    assert_eq!(server.requests()[2].last_user(), "then the other");
    first.open();
}

const SCOUT: &str = "agents:
  - {name: max, role: team_lead, system_prompt: You lead.}
  - {name: scout, role: coder, system_prompt: You are the scout., tools: [agent, run_shell]}
";

/// Lead, member, somebody whom the member called, its commands: all of them stop, and soon.
#[test]
fn a_stop_reaches_all_sub_agents_within_a_second() {
    let (beside, before) = (mark("2"), mark("3"));
    let kept = json!({"command": format!("sleep {beside}"), "background": true});
    let command = json!({"command": format!("sleep {before}"), "timeout": 600});
    let server = ModelServer::start(Script::new().when(move |request| {
        let system = request.body["system"].to_string();
        let scout = json!({"agent": "scout", "description": "Have somebody wait."});
        let waits = json!({"description": "wait", "prompt": "Wait.", "type": "general"});
        Some(match (system.contains("You lead."), system.contains("You are the scout."), request.tool_results()) {
            (true, _, 0) => Reply::new().tool("d1", "dispatch_task", scout),
            (_, true, 0) => Reply::new().tool("a1", "agent", waits),
            (false, false, 0) => Reply::new().tool("s1", "run_shell", kept.clone()),
            (false, false, 1) => Reply::new().tool("s2", "run_shell", command.clone()),
            _ => Reply::text("nobody should ask"),
        })
    }));
    let program = Program::team(&server).file("team.yaml", SCOUT);
    let mut terminal = Terminal::open(&program, &[&["--agents", "team.yaml"], &FREE[..]].concat());
    terminal.wait("or give a task");
    terminal.keys(&["wait", "Enter"]);
    assert!(soon(|| runs(&beside) && runs(&before)), "{}", terminal.screen());
    terminal.keys(&["Escape"]);
    terminal.wait("or /continue");
    assert!(soon(|| !runs(&beside) && !runs(&before)), "{}", terminal.screen());
    assert!(soon(|| ends(&program).len() == 3), "{:?}", ends(&program));
    let stopped = program.journal().into_iter().find(|entry| entry["event"] == "interrupted").unwrap();
    let at_ms = at_ms(&stopped);
    for (end, ended_at_ms) in ends(&program) {
        assert_eq!(end, "interrupted");
        assert!((0..1_000).contains(&(ended_at_ms - at_ms)), "{} ms", ended_at_ms - at_ms);
    }
    assert_eq!(server.count(), 4, "nobody has asked a model since");
}

/// How the turns of all agents ended, and when.
fn ends(program: &Program) -> Vec<(Value, i64)> {
    let ended = program.journal().into_iter().filter(|entry| entry["event"] == "turn_ended");
    ended.map(|entry| (entry["payload"]["turn_ended"]["end"].clone(), at_ms(&entry))).collect()
}

fn at_ms(entry: &Value) -> i64 {
    entry["at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

/// Teammates that rest with commands in the background: seen in the chat, and stopped from another terminal and by the word.
#[test]
fn commands_of_idle_teammates_are_seen_and_stopped() {
    let marks = [mark("71"), mark("72")];
    let commands = marks.clone();
    let server = ModelServer::start(Script::new().when(move |request| {
        let first = request.user_texts().first().cloned().unwrap_or_default();
        let teammate = ["sal", "tim"].iter().position(|name| first.starts_with(&format!("You are `{name}`")));
        Some(match teammate {
            Some(index) if request.tool_results() == 0 => {
                let command = json!({"command": format!("sleep {}", commands[index]), "background": true});
                Reply::new().tool("t1", "run_shell", command)
            }
            Some(_) => Reply::text("It runs."),
            None if request.tool_results() == 0 && request.user_texts().len() == 1 => {
                let spawn = |name: &str| json!({"name": name, "role": "server", "prompt": "Serve."});
                Reply::new().tool("s1", "spawn_teammate", spawn("sal")).tool("s2", "spawn_teammate", spawn("tim"))
            }
            None => Reply::text("Noted."),
        })
    }));
    let program = Program::team(&server);
    let mut terminal = Terminal::open(&program, &FREE);
    terminal.wait("or give a task");
    terminal.keys(&["serve", "Enter"]);
    assert!(soon(|| marks.iter().all(|mark| runs(mark))));
    terminal.wait("(1) · /stop stops it");
    assert!(soon(|| program.run(&["ps"]).out.matches("ready").count() >= 2));
    let ran = program.run(&["stop", "tim"]);
    let told = format!("tim: stopped in the background: `sleep {}`", marks[1]);
    assert!(ran.code == 0 && ran.out.contains(&told), "{ran:?}");
    // It is written down first; then the command is killed.
    assert!(soon(|| !runs(&marks[1])) && runs(&marks[0]));
    terminal.wait("tim: stopped in the background");
    terminal.keys(&["打断", "Enter"]);
    terminal.wait("sal: stopped in the background");
    assert!(soon(|| !runs(&marks[0])));
    let again = program.run(&["stop", "tim"]);
    assert!(again.code == 1 && again.err.contains("nothing to stop"), "{again:?}");
}

/// A stop from another terminal stays though messages wait, also when the chat is killed; then all of them are read together.
#[test]
fn a_stop_stays_though_messages_wait_and_outlives_a_kill() {
    let gate = Gate::new();
    let first = gate.clone();
    let server = ModelServer::start(Script::new().when(move |request| {
        let texts = request.user_texts();
        let is_teammate = texts.first().is_some_and(|text| text.starts_with("You are `bob`"));
        Some(match (is_teammate, texts.len(), request.tool_results()) {
            (true, 1, _) => Reply::text("never said").gate_before(&first),
            (false, 1, 0) => {
                let spawn = json!({"name": "bob", "role": "worker", "prompt": "Work."});
                Reply::new().tool("s1", "spawn_teammate", spawn)
            }
            _ => Reply::text("Noted."),
        })
    }));
    let program = Program::team(&server);
    let mut terminal = Terminal::open(&program, &FREE);
    terminal.wait("or give a task");
    terminal.keys(&["work", "Enter"]);
    gate.wait_reached();
    for words in ["second", "third"] {
        assert_eq!(program.run(&["send", "bob", words]).code, 0);
    }
    assert_eq!(program.run(&["stop", "bob"]).code, 0);
    terminal.wait("bob: 2 messages wait; write to bob or /continue bob");
    gate.open();
    terminal.kill();
    drop(terminal);
    std::fs::remove_file(program.home().with_file_name("screen")).unwrap();
    let asked = server.count();
    let mut terminal = Terminal::open(&program, &["-c"]);
    terminal.wait("bob: 2 messages wait; write to bob or /continue bob");
    let shown = program.run(&["team", "show"]).out;
    assert!(shown.contains("messages wait: 2") && !shown.contains("starting"), "{shown}");
    assert_eq!(server.count(), asked, "nobody has asked a model since");
    terminal.keys(&["@bob fourth", "Enter"]);
    assert!(soon(|| server.count() > asked), "{}", terminal.screen());
    let told = server.requests()[asked].last_user();
    let places = ["second", "third", "fourth"].map(|words| told.find(words));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{told}");
}
