//! Teammates from outside: what survives a kill, what rest costs, and who says no.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use max_team_testkit::{ModelServer, Recorded, Reply, Script, Storm};
use serde_json::{Value, json};

use crate::chat::Terminal;
use crate::obeyed::runs;
use crate::program::Program;

fn soon(what: impl Fn() -> bool) -> bool {
    let until = Instant::now() + Duration::from_secs(60);
    while Instant::now() < until {
        if what() {
            return true;
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    false
}

/// Whose conversation a request goes on with; none: the lead's.
fn who(request: &Recorded) -> Option<String> {
    let first = request.user_texts().into_iter().next()?;
    Some(first.strip_prefix("You are `")?.split('`').next()?.to_owned())
}

fn spawn(reply: Reply, (name, prompt): (&str, &str)) -> Reply {
    let input = json!({ "name": name, "role": "mate", "prompt": prompt });
    reply.tool(format!("toolu_{name}"), "spawn_teammate", input)
}

/// Every letter is acted on once, and those of one writer come in order, whenever the program is killed.
#[test]
fn mail_survives_kills() {
    let seed = u64::from(std::process::id());
    let storm = Storm { agents: 20, messages: 2_000, at_once: 10, kills: 6, seed };
    let program = Program::alone().variable("ANTHROPIC_API_KEY", "sk-test-0123456789abcdef");
    let calm = storm.run(|url, first| {
        let words: &[&str] = if first { &["-p", "Start them."] } else { &["-c", "-p", ""] };
        let mut command = program.team_command(words);
        command.env("ANTHROPIC_BASE_URL", url).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        command
    });
    let calm = calm.unwrap();
    assert_eq!((calm.told, calm.lost, calm.twice, calm.disordered), (2_000, 0, 0, 0), "seed {seed}: {calm}");
    assert!(calm.kills >= 3, "seed {seed}: {calm}");
    assert_eq!(program.run(&["audit", "verify"]).code, 0);
}

/// One who says no goes on, and is not ended when its turn is over.
#[test]
fn one_who_says_no_to_a_shutdown_goes_on() {
    let server = ModelServer::start(Script::new().when(|request| {
        let (done, texts) = (request.tool_results(), request.user_texts());
        if who(request).is_none() {
            return Some(match done {
                0 => spawn(Reply::new(), ("ann", "Work.")),
                1 => {
                    let word = json!({ "type": "shutdown_request", "reason": "enough" });
                    Reply::new().tool("toolu_ask", "send_message", json!({ "to": "ann", "message": word }))
                }
                _ if texts.last()?.contains("shutdown_rejected") => {
                    Reply::new().tool("toolu_more", "send_message", json!({ "to": "ann", "message": "go on then" }))
                }
                _ => Reply::text("Noted."),
            });
        }
        let told = request.body["messages"].to_string();
        // It looks into its mailbox until it is asked, and then says no.
        let asked = told.split("request_id=\\\"").nth(1).and_then(|rest| rest.split('\\').next());
        let answered = told.contains("You go on.");
        Some(match asked {
            None => Reply::new().tool(format!("toolu_{done}"), "check_inbox", json!({})),
            Some(request_id) if !answered => {
                let word = json!({ "type": "shutdown_response", "request_id": request_id, "approve": false, "reason": "not yet" });
                Reply::new().tool(format!("toolu_{done}"), "send_message", json!({ "to": "lead", "message": word }))
            }
            Some(_) if texts.last()?.contains("go on then") => Reply::text("I am still here."),
            Some(_) => Reply::text("I have said no."),
        })
    }));
    let program = Program::team(&server);
    let ran = program.run(&["-p", "go"]);
    assert_eq!(ran.code, 0, "{ran:?} {:#?}", server.problems());
    let entries = program.journal();
    let count = |name: &str| entries.iter().filter(|entry| entry["event"] == name).count();
    assert_eq!((count("responded"), count("agent_ended")), (1, 0));
    assert!(
        server.requests().iter().any(|request| request.last_user().contains("I am still here.")),
        "the lead heard it"
    );
}

/// Clock ticks that a process has had a processor for.
fn ticks(pid: &str) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

const MATES: usize = 100;

/// A team that rests asks no model anything and uses no processor.
#[test]
fn a_hundred_at_rest_cost_nothing() {
    let server = ModelServer::start(Script::new().when(|request| {
        let done = request.tool_results();
        if who(request).is_some() {
            return Some(Reply::text("Ready."));
        }
        let names: Vec<String> = (done..MATES.min(done + 50)).map(|at| format!("m{at}")).collect();
        let all = names.iter().fold(Reply::new(), |reply, name| spawn(reply, (name, "Be ready.")));
        Some(if names.is_empty() { Reply::text("They are ready.") } else { all })
    }));
    let program = Program::team(&server);
    let mut terminal = Terminal::open(&program, &[]);
    terminal.wait("or give a task");
    terminal.keys(&["go", "Enter"]);
    terminal.wait("They are ready.");
    let ready = || server.requests().iter().filter(|request| who(request).is_some()).count() == MATES;
    assert!(soon(ready), "{} requests", server.count());
    let pid = terminal.pid();
    // What real time costs can only be seen in real time.
    let second = || {
        let before = (ticks(&pid), server.count());
        std::thread::park_timeout(Duration::from_secs(1));
        (ticks(&pid) - before.0, server.count() - before.1)
    };
    // One quiet second may only mean that the machine had no time for it.
    let mut quiet = 0;
    let rests = |_| {
        quiet = if second() == (0, 0) { quiet + 1 } else { 0 };
        quiet == 3
    };
    assert!((0..60).any(rests), "it does not come to rest");
    let rest: Vec<(u64, usize)> = (0..3).map(|_| second()).collect();
    assert!(rest.iter().map(|(ticks, _)| ticks).sum::<u64>() <= 1, "ticks and calls per second: {rest:?}");
    assert!(rest.iter().all(|(_, calls)| *calls == 0), "{rest:?}");
}

const SIX: [(&str, &str); 6] = [
    ("ann", "Write ann.txt."),
    ("ben", "Write ben.txt."),
    ("cat", "Tell dan."),
    ("dan", "Wait for cat."),
    ("eva", "Serve."),
    ("fay", "Read a.txt."),
];

fn mark() -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("86420.{}6{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// What each of the six does, by how far it is.
fn six(request: &Recorded, mark: &str) -> Option<Reply> {
    let done = request.tool_results();
    let Some(name) = who(request) else {
        return Some(if done == 0 { SIX.into_iter().fold(Reply::new(), spawn) } else { Reply::text("Noted.") });
    };
    let call = |tool: &str, input: Value| Reply::new().tool(format!("toolu_{name}{done}"), tool, input);
    Some(match (name.as_str(), done) {
        ("ann" | "ben", 0) => call("write_file", json!({ "path": format!("{name}.txt"), "content": "yes\n" })),
        ("cat", 0) => call("send_message", json!({ "to": "dan", "message": "the word is tide" })),
        ("dan", _) if !request.contains("the word is tide") => Reply::text("I wait."),
        ("eva", 0) => call("run_shell", json!({ "command": format!("sleep {mark}"), "background": true })),
        ("fay", 0..3) => call("read_file", json!({ "path": "a.txt", "offset": done + 1, "limit": 1 })),
        _ => Reply::text(format!("{name} is done.")),
    })
}

/// Six teammates with mail under way, two questions and a command that runs on; killed once there were so many requests
/// and so many questions.
fn six_survive_a_kill_after(requests: usize, questions: usize) {
    let mark = mark();
    let script = {
        let mark = mark.clone();
        Script::new().when(move |request| six(request, &mark))
    };
    let server = ModelServer::start(script);
    let program = Program::team(&server).file("a.txt", "one\ntwo\nthree\n");
    let allow = ["--allowed-tools", "Bash(sleep:*)"];
    let mut terminal = Terminal::open(&program, &allow);
    terminal.wait("or give a task");
    terminal.keys(&["go", "Enter"]);
    let open = || program.run(&["inbox", "--json"]).json().as_array().unwrap().len();
    assert!(soon(|| server.count() >= requests && (questions == 0 || open() >= questions)), "{}", server.count());
    terminal.kill();
    assert!(soon(|| !runs(&mark)), "a command outlives its owner");
    // What was asked is there while nobody runs, and nothing else is.
    let known = program.journal().iter().filter(|entry| entry["event"] == "question_asked").count();
    assert!(open() == known && known >= questions, "{known}: {:?}", program.run(&["inbox"]));
    std::fs::remove_file(program.home().with_file_name("screen")).unwrap();
    let _terminal = Terminal::open(&program, &[&["-c"], allow.as_slice()].concat());
    let answer = || {
        for question in program.run(&["inbox", "--json"]).json().as_array().unwrap() {
            program.run(&["approve", question["short"].as_str().unwrap()]);
        }
        ["ann.txt", "ben.txt"].iter().all(|name| program.project().join(name).exists())
    };
    assert!(soon(answer), "after {requests}: {:?}", program.run(&["inbox"]));
    let finished = |name: &str| {
        let words = format!("{name} is done.");
        server.requests().iter().any(|request| who(request).is_none() && request.contains(&words))
    };
    // Dan answers a colleague, so nobody waits for what it says; its turn is seen from its own conversation.
    let told = || {
        server
            .requests()
            .iter()
            .any(|request| who(request).as_deref() == Some("dan") && request.contains("the word is tide"))
    };
    assert!(soon(|| told() && ["ann", "ben", "cat", "eva", "fay"].into_iter().all(finished)), "after {requests}");
    let started = program.journal().iter().filter(|entry| entry["event"] == "agent_started").count();
    assert_eq!(started, 1 + SIX.len(), "after {requests}: the lead and six");
}

#[test]
fn six_survive_a_kill_as_they_begin() {
    six_survive_a_kill_after(3, 0);
}

#[test]
fn six_survive_a_kill_in_the_middle() {
    six_survive_a_kill_after(9, 0);
}

#[test]
fn six_survive_a_kill_while_two_of_them_ask() {
    six_survive_a_kill_after(12, 2);
}
