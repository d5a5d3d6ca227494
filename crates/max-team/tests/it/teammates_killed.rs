//! Teammates from outside: what survives a kill, what rest costs, and who says no.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use max_team_testkit::{Gate, ModelServer, Recorded, Reply, Script, Storm};
use serde_json::{Value, json};

use crate::chat::Terminal;
use crate::obeyed::runs;
use crate::program::{Program, soon};
use crate::tasks::check_claims;

/// Whose conversation a request goes on with; none: the lead's.
fn who(request: &Recorded) -> Option<String> {
    let first = request.user_texts().into_iter().next()?;
    Some(first.strip_prefix("You are `")?.split('`').next()?.to_owned())
}

fn spawn(reply: Reply, (name, prompt): (&str, &str)) -> Reply {
    let input = json!({ "name": name, "role": "mate", "prompt": prompt });
    reply.tool(format!("toolu_{name}"), "spawn_teammate", input)
}

/// Every message is acted on once, and those of one writer come in order, whenever the program is killed.
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
fn a_teammate_that_refuses_a_shutdown_goes_on() {
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

const TEAMMATES: usize = 100;

/// A team that rests asks no model anything and uses no processor.
#[test]
fn a_hundred_at_rest_cost_nothing() {
    let server = ModelServer::start(Script::new().when(|request| {
        let done = request.tool_results();
        if who(request).is_some() {
            return Some(Reply::text("Ready."));
        }
        let names: Vec<String> = (done..TEAMMATES.min(done + 50)).map(|at| format!("m{at}")).collect();
        let all = names.iter().fold(Reply::new(), |reply, name| spawn(reply, (name, "Be ready.")));
        Some(if names.is_empty() { Reply::text("They are ready.") } else { all })
    }));
    let program = Program::team(&server);
    let mut terminal = Terminal::open(&program, &[]);
    terminal.wait("or give a task");
    terminal.keys(&["go", "Enter"]);
    terminal.wait("They are ready.");
    let ready = || server.requests().iter().filter(|request| who(request).is_some()).count() == TEAMMATES;
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

/// Name, first words, and whether it takes tasks by itself.
const SIX: [(&str, &str, bool); 6] = [
    ("ann", "Write ann.txt.", false),
    ("ben", "Write ben.txt.", false),
    ("cat", "Tell dan.", false),
    ("dan", "Wait for cat.", true),
    ("eva", "Serve.", false),
    ("fay", "Take tasks.", true),
];
/// What whoever left a command running is told of it.
const DIED: &str = "it died with the program";

fn mark() -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("86420.{}6{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// What each of the six does, by how far it is. At the gate stand dan, so that it cannot read what cat writes, and whoever has
/// taken the task.
fn six(request: &Recorded, mark: &str, gate: &Gate) -> Option<Reply> {
    let done = request.tool_results();
    let Some(name) = who(request) else {
        let task =
            Reply::new().tool("toolu_task", "TaskCreate", json!({ "subject": "count", "description": "Count." }));
        let start = |reply: Reply, (name, prompt, claims): (&str, &str, bool)| {
            let input = json!({ "name": name, "role": "mate", "prompt": prompt, "auto_claim": claims });
            reply.tool(format!("toolu_{name}"), "spawn_teammate", input)
        };
        return Some(if done == 0 { SIX.into_iter().fold(task, start) } else { Reply::text("Noted.") });
    };
    let call = |tool: &str, input: Value| Reply::new().tool(format!("toolu_{name}{done}"), tool, input);
    if request.contains("You have taken task #1") && !request.contains("Task #1 is completed") {
        return Some(match done {
            0 => call("read_file", json!({ "path": "a.txt" })).gate_before(gate),
            _ => call("TaskUpdate", json!({ "taskId": "1", "status": "completed" })),
        });
    }
    Some(match (name.as_str(), done) {
        ("ann" | "ben", 0) => call("write_file", json!({ "path": format!("{name}.txt"), "content": "yes\n" })),
        ("cat", 0) => call("send_message", json!({ "to": "dan", "message": "the word is tide" })),
        ("dan", 0) if !request.contains("the word is tide") => Reply::text("I wait.").gate_before(gate),
        ("eva", 0) => call("run_shell", json!({ "command": format!("sleep {mark}"), "background": true })),
        _ => Reply::text(format!("{name} is done.")),
    })
}

/// When the six are killed.
enum When {
    /// Once there were so many requests.
    Requests(usize),
    /// Once a message waits for its reader, somebody holds the task and a command runs; and so many ask.
    Asked(usize),
}

/// Six teammates with mail under way, two questions, a task that one of them holds and a command that runs on.
fn six_survive_a_kill(when: When) {
    let (mark, gate) = (mark(), Gate::new());
    let script = {
        let (mark, gate) = (mark.clone(), gate.clone());
        Script::new().when(move |request| six(request, &mark, &gate))
    };
    let server = ModelServer::start(script);
    let program = Program::team(&server).file("a.txt", "one\ntwo\nthree\n");
    let allow = ["--allowed-tools", "Bash(sleep:*)"];
    let mut terminal = Terminal::open(&program, &allow);
    terminal.wait("or give a task");
    terminal.keys(&["go", "Enter"]);
    let open = || program.run(&["inbox", "--json"]).json().as_array().unwrap().len();
    let count = |name: &str| program.journal().iter().filter(|entry| entry["event"] == name).count();
    match when {
        When::Requests(requests) => {
            gate.open();
            assert!(soon(|| server.count() >= requests), "{}", server.count());
        }
        When::Asked(questions) => {
            gate.wait_reached_by(2);
            let is_word = |entry: &Value| entry["event"] == "mailed" && entry.to_string().contains("the word is tide");
            let is_written = || program.journal().iter().any(is_word);
            let is_there = || count("command_begun") == 1 && open() >= questions && is_written();
            assert!(soon(is_there), "{:?}", program.events());
        }
    }
    terminal.kill();
    gate.open();
    assert!(soon(|| !runs(&mark)), "a command outlives its owner");
    // What was asked is there while nobody runs, and nothing else is.
    let (asked, begun) = (count("question_asked"), count("command_begun"));
    assert_eq!(open(), asked, "{:?}", program.run(&["inbox"]));
    let held = program.run(&["tasks", "list", "--json"]).json();
    if let When::Asked(_) = when {
        assert_eq!((&held[0]["status"], &held[0]["owner"]), (&json!("in_progress"), &json!("fay")), "{held}");
        let waiting = program.run(&["mail", "list", "--json", "--agent", "dan"]).json();
        let is_unread = |envelope: &Value| envelope["from"] == "cat" && envelope["state"] != "acted";
        assert!(waiting.as_array().unwrap().iter().any(is_unread), "{waiting}");
    }
    std::fs::remove_file(program.home().with_file_name("screen")).unwrap();
    let _terminal = Terminal::open(&program, &[&["-c"], allow.as_slice()].concat());
    let answer = || {
        for question in program.run(&["inbox", "--json"]).json().as_array().unwrap() {
            program.run(&["approve", question["short"].as_str().unwrap()]);
        }
        ["ann.txt", "ben.txt"].iter().all(|name| program.project().join(name).exists())
    };
    assert!(soon(answer), "{:?}", program.run(&["inbox"]));
    let finished = |name: &str| {
        let words = format!("{name} is done.");
        server.requests().iter().any(|request| who(request).is_none() && request.contains(&words))
    };
    // Dan answers a colleague, so nobody waits for what it says; its turn is seen from its own conversation.
    let was_told = |name: &str, words: &str| {
        server.requests().iter().any(|request| who(request).as_deref() == Some(name) && request.contains(words))
    };
    let all = || ["ann", "ben", "cat", "eva"].into_iter().all(finished) && was_told("dan", "the word is tide");
    assert!(soon(all), "{:?}", program.events());
    let is_done = || program.run(&["tasks", "show", "1", "--json"]).json()["status"] == "completed";
    assert!(soon(is_done), "{:?}", program.run(&["tasks", "list"]));
    check_claims(&program);
    assert_eq!(count("item_added"), 1);
    assert_eq!(count("agent_started"), 1 + SIX.len(), "the lead and six");
    // A command that was running is over for good, and its owner was told once; one that began later runs.
    assert!(soon(|| count("command_over") == begun), "{:?}", program.events());
    let is_told = |entry: &&Value| entry["event"] == "turn_started" && entry.to_string().contains(DIED);
    assert_eq!(program.journal().iter().filter(is_told).count(), begun);
    assert!(begun == 0 || was_told("eva", DIED));
}

#[test]
fn six_survive_a_kill_as_they_begin() {
    six_survive_a_kill(When::Requests(3));
}

#[test]
fn six_survive_a_kill_in_the_middle() {
    six_survive_a_kill(When::Requests(9));
}

#[test]
fn six_survive_a_kill_while_two_of_them_ask() {
    six_survive_a_kill(When::Asked(2));
}
