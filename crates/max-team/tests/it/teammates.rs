//! Teammates as people see them: messages and what became of each, writing to somebody from another terminal, teams in files, and
//! several who ask at once.

use max_team_journal::{Journal, Options};
use max_team_runtime::compare_rows;
use max_team_testkit::{Gate, ModelServer, Recorded, Reply, Script};
use serde_json::{Value, json};

use crate::chat::Terminal;
use crate::context::wait_for;
use crate::program::{Program, Ran, finish, kill, signal, soon};

pub(crate) fn ok(ran: Ran) -> Ran {
    assert_eq!(ran.code, 0, "{ran:?}");
    ran
}

/// Whether a request is a teammate's.
pub(crate) fn is(request: &Recorded, name: &str) -> bool {
    request.user_texts().first().is_some_and(|text| text.starts_with(&format!("You are `{name}`")))
}

pub(crate) fn spawn(name: &str, prompt: &str) -> Value {
    json!({ "name": name, "role": "helper", "prompt": prompt })
}

/// A lead with alice and bob. Alice writes to bob; whoever is written to answers with the words.
fn pair() -> ModelServer {
    ModelServer::start(Script::new().when(|request| {
        let last = request.last_user();
        Some(if is(request, "alice") {
            match request.tool_results() {
                0 => Reply::new().tool("m1", "send_message", json!({ "to": "bob", "message": "users(id)" })),
                _ if last.contains("use tabs") => Reply::text("Tabs it is."),
                _ => Reply::text("The schema is made."),
            }
        } else if is(request, "bob") {
            Reply::text(if request.contains("users(id)") { "Got it." } else { "I wait." })
        } else if request.tool_results() == 0 && request.user_texts().len() == 1 {
            let (alice, bob) = (spawn("alice", "Make a schema."), spawn("bob", "Wait for alice."));
            Reply::new().tool("s1", "spawn_teammate", alice).tool("s2", "spawn_teammate", bob)
        } else if last.contains("how far") {
            Reply::text("Half way.")
        } else {
            Reply::text("Noted.")
        })
    }))
}

fn envelopes(program: &Program, words: &[&str]) -> Vec<Value> {
    let ran = ok(program.run(&[&["mail", "list", "--json"], words].concat()));
    ran.json().as_array().unwrap().clone()
}

/// From, to, kind and state of each.
fn told(envelopes: &[Value]) -> Vec<String> {
    let line = |envelope: &Value| {
        let text = |key: &str| envelope[key].as_str().unwrap().to_owned();
        format!("{} → {} {} {}", text("from"), text("to"), text("kind"), text("state"))
    };
    envelopes.iter().map(line).collect()
}

#[test]
fn messages_are_listed_with_their_state() {
    let server = pair();
    let program = Program::team(&server);
    ok(program.run(&["-p", "go"]));
    let all = envelopes(&program, &[]);
    for wanted in [
        "user → max user_input acted",
        "max → alice task_assign acted",
        "max → bob task_assign acted",
        "alice → bob text acted",
        "alice → max task_result acted",
        "bob → max task_result acted",
    ] {
        assert!(told(&all).iter().any(|line| line == wanted), "{wanted}: {:?}", told(&all));
    }
    let logs = ok(program.run(&["logs", "alice"])).out;
    assert!(logs.contains("mail → bob, text: users(id)") && !logs.contains("→ agent "), "{logs}");
    let seqs: Vec<u64> = all.iter().map(|envelope| envelope["seq"].as_u64().unwrap()).collect();
    assert!(seqs.is_sorted() && all.iter().all(|envelope| envelope["turn"].is_string()), "{all:?}");
    let task = all.iter().find(|envelope| envelope["to"] == "alice" && envelope["kind"] == "task_assign").unwrap();
    assert_eq!(task["text"], "Make a schema.", "what everybody is told is left out");
    // What a colleague's message led to is reported, too.
    assert!(all.iter().any(|envelope| envelope["from"] == "bob" && envelope["text"] == "Got it."), "{all:?}");
    assert!(envelopes(&program, &["--all"]).len() >= all.len(), "control messages beside them");
    let bobs = envelopes(&program, &["--agent", "bob", "--state", "acted"]);
    assert!(
        bobs.len() >= 3 && bobs.iter().all(|envelope| envelope["from"] == "bob" || envelope["to"] == "bob"),
        "{bobs:?}"
    );
    let table = ok(program.run(&["mail", "list"])).out;
    assert!(table.starts_with("ID") && table.contains("users(id)"), "{table}");
    let mail = all.iter().find(|envelope| envelope["text"] == "users(id)").unwrap();
    let shown = ok(program.run(&["mail", "show", mail["short"].as_str().unwrap()])).out;
    assert!(shown.contains("FROM: alice (agent/agt_") && shown.contains("STATE: acted (trn_"), "{shown}");
    assert_eq!(program.run(&["mail", "show", "nope"]).code, 1);
    let zh = program.variable("LC_ALL", "zh_CN.UTF-8");
    assert!(ok(zh.run(&["mail", "list"])).out.contains("已处理"));
    assert!(ok(zh.run(&["team", "show"])).out.contains("主管"));
}

/// A lead that has alice count, who waits at the gate.
fn counting(gate: &Gate) -> ModelServer {
    let gate = gate.clone();
    ModelServer::start(Script::new().when(move |request| {
        Some(if is(request, "alice") {
            Reply::text("There are 42.").gate_before(&gate)
        } else if request.tool_results() == 0 {
            Reply::new().tool("s1", "spawn_teammate", spawn("alice", "Count the files."))
        } else if request.last_user().contains("There are 42.") {
            Reply::text("The count is 42.")
        } else {
            Reply::text("She is at it.")
        })
    }))
}

/// Only somebody beside Max was at work: what comes of it is told to him, and what he says then is the answer.
#[test]
fn unfinished_work_is_answered_after_resuming() {
    let gate = Gate::new();
    let server = counting(&gate);
    let program = Program::team(&server);
    let mut child = program.team_command(&["-p", "go"]).spawn().unwrap();
    gate.wait_reached();
    wait_for(&program, "turn_ended", "She is at it.");
    kill(&mut child);
    gate.open();
    let ran = ok(program.run(&["-c", "-p", ""]));
    assert_eq!(ran.out, "The count is 42.\n", "{ran:?}");
}

/// Only somebody beside Max is at work when somebody says stop elsewhere: the run has not come to its end by itself.
#[test]
fn a_run_whose_teammates_are_stopped_from_elsewhere_says_so() {
    for by_name in [false, true] {
        let gate = Gate::new();
        let server = counting(&gate);
        let program = Program::team(&server);
        let child = program.team_command(&["-p", "go"]).spawn().unwrap();
        gate.wait_reached();
        wait_for(&program, "turn_ended", "She is at it.");
        let session = ok(program.run(&["ps", "--json"])).json()[0]["session"].as_str().unwrap().to_owned();
        ok(program.run(&["stop", if by_name { "alice" } else { &session }]));
        let ran = finish(child);
        gate.open();
        assert_eq!((ran.code, ran.out.as_str()), (130, "She is at it.\n"), "{ran:?}");
        assert!(ran.err.contains("what was done is kept"), "{ran:?}");
    }
}

/// A teammate that Ctrl-C paused with the run goes on with it, also if its lead had nothing more to say.
#[test]
fn a_paused_teammate_goes_on_with_the_run() {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::new().when(move |request| {
        Some(if is(request, "alice") {
            Reply::text("The schema is made.").gate_before(&held)
        } else if request.tool_results() == 0 {
            Reply::new().tool("s1", "spawn_teammate", spawn("alice", "Make a schema."))
        } else if request.last_user().contains("The schema is made.") {
            Reply::text("All is done.")
        } else {
            Reply::text("She is at it.")
        })
    }));
    let program = Program::team(&server);
    let child = program.team_command(&["-p", "go"]).spawn().unwrap();
    gate.wait_reached();
    wait_for(&program, "turn_ended", "She is at it.");
    signal(&child, "INT");
    assert_eq!(finish(child).code, 130);
    gate.open();
    let ran = ok(program.run(&["-c", "-p", ""]));
    assert_eq!(ran.out, "All is done.\n", "{ran:?}");
    assert!(told(&envelopes(&program, &[])).contains(&"alice → max task_result acted".to_owned()));
}

#[test]
fn a_message_can_be_sent_to_a_session_that_does_not_run() {
    let server = pair();
    let program = Program::team(&server);
    ok(program.run(&["-p", "go"]));
    let sent = ok(program.run(&["send", "alice", "use tabs"]));
    assert!(sent.out == "sent to alice\n" && sent.err.contains("no process runs the session"), "{sent:?}");
    assert_eq!(told(&envelopes(&program, &["--state", "queued"])), ["user → alice user_input queued"]);
    let nobody = program.run(&["send", "carol", "hi"]);
    assert!(nobody.code == 1 && nobody.err.contains("`alice`, `bob`"), "{nobody:?}");
    ok(program.run(&["-c", "-p", ""]));
    let after = envelopes(&program, &["--agent", "user"]);
    assert!(told(&after).contains(&"user → alice user_input acted".to_owned()), "{:?}", told(&after));
    let answer = after.iter().find(|envelope| envelope["from"] == "alice").unwrap();
    assert_eq!((&answer["text"], &answer["state"]), (&json!("Tabs it is."), &json!("delivered")));
    let journal = max_team_journal::Journal::open(program.home(), max_team_journal::Options::default()).unwrap();
    let waiting = journal.mailboxes().unwrap();
    assert!(!waiting.iter().any(|address| address.starts_with("agent/")), "nobody has anything to do: {waiting:?}");
    // The lead by its name, and everybody at once.
    ok(program.run(&["send", "max", "how far are you?"]));
    let ran = ok(program.run(&["-c", "-p", ""]));
    assert_eq!(ran.out, "Half way.\n", "{ran:?}");
    let all = ok(program.run(&["mail", "send", "team", "well done"]));
    assert_eq!(all.out, "sent to alice, bob, max\n");
    ok(program.run(&["-c", "-p", ""]));
    // One who is no more is not written to.
    ok(program.run(&["team", "shutdown", "alice", "--now"]));
    ok(program.run(&["-c", "-p", ""]));
    let gone = program.run(&["send", "alice", "hi"]);
    assert!(gone.code == 1 && gone.err.contains("`alice` has ended (by owner at cli)"), "{gone:?}");
    assert!(told(&envelopes(&program, &["--all"])).iter().any(|line| line == "alice → max teammate_terminated acted"));
}

#[test]
fn the_registry_is_shown_saved_and_exported() {
    let server = pair();
    let program = Program::team(&server);
    ok(program.run(&["-p", "go"]));
    let team = ok(program.run(&["team", "show", "--json"])).json();
    let name = team["name"].as_str().unwrap();
    assert_eq!(team["leadAgentId"], json!(format!("max@{name}")));
    let alice = &team["members"][0];
    assert_eq!(alice["agentId"], json!(format!("alice@{name}")));
    assert_eq!(
        (&alice["name"], &alice["agentType"], &alice["color"]),
        (&json!("alice"), &json!("general"), &json!("blue"))
    );
    assert_eq!((&alice["isActive"], &alice["unread"]), (&json!(true), &json!(0)));
    let shown = ok(program.run(&["team", "show"])).out;
    assert!(shown.contains("alice") && shown.contains("Wait for alice."), "{shown}");
    assert!(ok(program.run(&["ps", "--all"])).out.contains("bob"));

    let saved = ok(program.run(&["team", "save", "web"]));
    assert!(saved.out.contains(".max-team/teams/web.yaml"), "{saved:?}");
    let text = program.read(".max-team/teams/web.yaml");
    assert!(text.contains("- name: alice\n") && text.contains("prompt: Make a schema."), "{text}");
    assert_eq!(program.run(&["team", "save", "web"]).code, 2, "nothing is overwritten");
    ok(program.run(&["team", "save", "web", "--force"]));
    let listed = ok(program.run(&["team", "list"])).out;
    assert!(listed.contains("web") && listed.contains("alice, bob"), "{listed}");

    ok(program.run(&["team", "export", "--claude", "out"]));
    let config: Value = serde_json::from_str(&program.read(&format!("out/teams/{name}/config.json"))).unwrap();
    assert_eq!(config["members"][1]["name"], "bob");
    let inbox: Value = serde_json::from_str(&program.read(&format!("out/teams/{name}/inboxes/bob.json"))).unwrap();
    let envelope = inbox.as_array().unwrap().iter().find(|envelope| envelope["text"] == "users(id)").unwrap();
    assert_eq!((&envelope["from"], &envelope["read"]), (&json!("alice"), &json!(true)));
}

/// The lead is held up by its model; alice has nothing to do and is woken by what somebody writes at another terminal.
#[test]
fn one_at_rest_is_woken_from_another_terminal() {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::new().when(move |request| {
        Some(if is(request, "alice") {
            Reply::text(if request.last_user().contains("ping") { "pong" } else { "Ready." })
        } else if request.tool_results() == 0 {
            Reply::new().tool("s1", "spawn_teammate", spawn("alice", "Wait."))
        } else {
            Reply::text("Done.").gate_before(&held)
        })
    }));
    let program = Program::team(&server);
    let child = program.start(&["-p", "go"]);
    gate.wait_reached();
    wait_for(&program, "turn_ended", "Ready.");
    for words in [&["send", "alice", ""][..], &["mail", "send", "alice", " \n"]] {
        let refused = program.run(words);
        assert_eq!((refused.code, refused.err.trim_end()), (2, "max-team: the message is empty"), "{refused:?}");
    }
    let sent = ok(program.run(&["send", "alice", "ping"]));
    assert!(sent.err.contains("an agent at work reads it at its next step; an idle one starts a turn"), "{sent:?}");
    wait_for(&program, "turn_ended", "pong");
    // Its mode is set, and it ends when it is asked to, while its lead is still at it.
    let mode = |mode: &str| ok(program.run(&["team", "mode", "alice", mode])).out;
    assert_eq!(
        mode("bypassPermissions"),
        "alice: stays at default; a teammate never has more rights than the session\n"
    );
    assert_eq!(mode("plan"), "alice: plan, from the next decision on\n");
    let bounded = "alice: default, from the next decision on; a teammate never has more rights than the session\n";
    assert_eq!(mode("acceptEdits"), bounded);
    assert_eq!(ok(program.run(&["team", "show", "--json"])).json()["members"][0]["mode"], "default");
    assert_eq!(mode("plan"), "alice: plan, from the next decision on\n");
    let ended = ok(program.run(&["team", "shutdown", "alice"]));
    assert!(ended.out.contains("alice has ended (by you (command line))"), "{ended:?}");
    gate.open();
    ok(finish(child));
    let journal = program.journal();
    let plan = journal.iter().any(|entry| entry["event"] == "configured" && entry.to_string().contains("\"plan\""));
    assert!(plan, "the mode was set");
}

/// What `send` says of it is so: whoever is at work hears of it before its turn is over.
#[test]
fn one_at_work_is_told_at_its_next_step() {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::new().when(move |request| {
        Some(if is(request, "hal") {
            match request.tool_results() {
                0 => Reply::new().tool("c1", "check_inbox", json!({})).gate_before(&held),
                _ => Reply::text(if request.contains("use tabs") { "Tabs it is." } else { "Spaces." }),
            }
        } else if request.tool_results() == 0 {
            Reply::new().tool("s1", "spawn_teammate", spawn("hal", "Look around."))
        } else {
            Reply::text("Noted.")
        })
    }));
    let program = Program::team(&server);
    let child = program.start(&["-p", "go"]);
    gate.wait_reached();
    let help = ok(program.run(&["send", "--help"])).out;
    let words = "A busy agent reads the message when its current step ends";
    assert!(help.split_whitespace().collect::<Vec<_>>().join(" ").contains(words), "{help}");
    ok(program.run(&["send", "hal", "use tabs"]));
    gate.open();
    wait_for(&program, "turn_ended", "Tabs it is.");
    ok(finish(child));
}

/// A message to a teammate that ends before it reads comes back to its sender, once.
#[test]
fn mail_to_an_ended_teammate_comes_back() {
    let (gate, done) = (Gate::new(), Gate::new());
    let (held, until) = (gate.clone(), done.clone());
    let server = ModelServer::start(Script::new().when(move |request| {
        Some(if is(request, "hal") {
            Reply::text("…").gate_before(&held)
        } else if request.tool_results() == 0 {
            Reply::new().tool("s1", "spawn_teammate", spawn("hal", "Look around."))
        } else {
            Reply::text("Noted.").gate_before(&until)
        })
    }));
    let program = Program::team(&server);
    let child = program.start(&["-p", "go"]);
    gate.wait_reached();
    done.wait_reached();
    ok(program.run(&["send", "hal", "please look at the blue file"]));
    let ended = ok(program.run(&["team", "shutdown", "hal", "--now"]));
    assert!(ended.out.contains("hal has ended (by you (command line))"), "{ended:?}");
    let [dead] = &envelopes(&program, &["--state", "dead"])[..] else { panic!("one came back") };
    assert_eq!((&dead["why"], &dead["text"]), (&json!("it has ended"), &json!("please look at the blue file")));
    let table = ok(program.run(&["mail", "list", "--state", "dead"])).out;
    assert!(table.contains("it has ended: please look at the blue file"), "{table}");
    assert_eq!(table.matches("blue file").count(), 1, "{table}");
    gate.open();
    done.open();
    let ran = ok(finish(child));
    let words = "your message to hal came back (it has ended): please look at the blue file";
    assert_eq!(ran.err.matches(words).count(), 1, "{ran:?}");
}

/// Whoever asks somebody to end hears that it says no; until it has answered, the registry says that it was asked.
#[test]
fn a_refused_shutdown_is_reported_to_the_requester() {
    let (gate, done) = (Gate::new(), Gate::new());
    let (held, until) = (gate.clone(), done.clone());
    let server = ModelServer::start(Script::new().when(move |request| {
        let asked = request.last_user();
        Some(if is(request, "hal") {
            match request.tool_results() {
                0 => Reply::new().tool("c1", "check_inbox", json!({})).gate_before(&held),
                1 => {
                    let (_, id) = asked.split_once("request_id=\"").unwrap();
                    let no = json!({
                        "type": "shutdown_response", "request_id": id.split('"').next().unwrap(), "approve": false,
                        "reason": "I am not through",
                    });
                    Reply::new().tool("c2", "send_message", json!({ "to": ["lead", "ida"], "message": no }))
                }
                _ => Reply::text("Looked around."),
            }
        } else if is(request, "ida") {
            Reply::text("Here.")
        } else if request.tool_results() == 0 {
            let reply = Reply::new().tool("s1", "spawn_teammate", spawn("hal", "Look around."));
            reply.tool("s2", "spawn_teammate", spawn("ida", "Be there."))
        } else {
            Reply::text("Noted.").gate_before(&until)
        })
    }));
    let program = Program::team(&server);
    let child = program.start(&["-p", "go"]);
    gate.wait_reached();
    done.wait_reached();
    let asks = program.start(&["team", "shutdown", "hal"]);
    wait_for(&program, "mailed", "shutdown_request");
    let team = ok(program.run(&["team", "show", "--json"])).json();
    assert_eq!(team["members"][0]["askedToEndBy"], "owner at cli", "{team}");
    assert!(ok(program.run(&["team", "show"])).out.contains("asked to end by you (command line)"));
    gate.open();
    let words = "hal does not end: I am not through (`max-team team shutdown hal --now` ends it)";
    let asked = finish(asks);
    wait_for(&program, "turn_ended", "Looked around.");
    let told = server.requests().into_iter().rfind(|request| is(request, "hal")).unwrap();
    assert!(told.contains("Sent to the user. You go on."), "one answer, whomever it names: {}", told.body);
    assert_eq!((asked.code, asked.out.trim_end()), (5, words), "{asked:?}");
    assert!(!ok(program.run(&["team", "show"])).out.contains("asked to end"));
    done.open();
    let ran = ok(finish(child));
    assert_eq!(ran.err.matches(words).count(), 1, "{ran:?}");
    assert!(
        envelopes(&program, &["--all", "--state", "refused"]).is_empty(),
        "nobody gets an answer to what another asked"
    );
}

const WEB: &str = "description: two for the web\nlead: max\nmembers:\n  - {name: alice, role: backend, prompt: Make a schema., \
    mode: bypassPermissions}\n  - {name: bob, prompt: Wait for alice., type: explore}\n";

#[test]
fn a_written_team_begins_with_the_first_message() {
    let server = pair();
    let program = Program::team(&server).file(".max-team/teams/web.yaml", WEB);
    let ran = ok(program.run(&["--team", "web", "-p", "how far are you?"]));
    assert!(ran.err.contains("`mode: bypassPermissions` is held back"), "{ran:?}");
    let lead = server.requests().into_iter().find(|request| request.contains("how far")).unwrap();
    assert!(lead.contains("The user has started teammates for you: `alice` (backend), `bob`."), "{}", lead.body);
    let team = ok(program.run(&["team", "show", "--json"])).json();
    let kinds: Vec<&str> = (0..2).map(|at| team["members"][at]["agentType"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["general", "explore"]);
    // Nobody begins twice: a run that goes on with the same words is whole. What cannot begin is told.
    let again = ok(program.run(&["-c", "--team", "web", "-p", "how far?"]));
    assert!(!again.err.contains("has begun"), "{again:?}");
    assert_eq!(ok(program.run(&["team", "show", "--json"])).json()["members"].as_array().unwrap().len(), 2);
    let odd = "members:\n  - {name: eve, prompt: p}\n  - {name: carl, prompt: p, type: wizard}\n";
    let program = program.file("odd.yaml", odd);
    let odd = program.run(&["-c", "--team", "odd.yaml", "-p", "how far?"]);
    assert!(odd.code == 3 && odd.err.contains("odd.yaml:3:"), "what is wrong with the file is told first: {odd:?}");
    assert!(odd.err.contains("there is no type `wizard`; there are ") && odd.err.contains("general"), "{odd:?}");
    let chinese = program.run(&["-c", "--team", "odd.yaml", "-p", "how far?", "--lang", "zh"]);
    assert!(chinese.err.contains("没有类型 `wizard`"), "{chinese:?}");
    assert!(!ok(program.run(&["team", "show"])).out.contains("eve"), "all of them or nobody");
    let none = program.run(&["--team", "wbe", "-p", "hi"]);
    assert!(none.code == 2 && none.err.contains("there are web"), "{none:?}");
    // A session that nobody runs gets its team when it goes on.
    let program = program.file("more.yaml", "members:\n  - {name: dora, prompt: Wait.}\n");
    let session = team["session"].as_str().unwrap();
    let noted = ok(program.run(&["team", "load", "more.yaml", "--session", session]));
    assert!(noted.err.contains("no process runs the session"), "{noted:?}");
    // Whom somebody has asked for is not asked for twice.
    let again = ok(program.run(&["team", "load", "more.yaml", "--session", session]));
    assert!(again.err.contains("dora: already here or about to start"), "{again:?}");
    let begun = ok(program.run(&["-c", "-p", ""]));
    assert!(!begun.err.contains("none of these"), "{begun:?}");
    assert!(ok(program.run(&["team", "show"])).out.contains("dora"));
    // Nobody begins twice in a chat either; whoever was written down since begins.
    let web = format!("{WEB}  - {{name: fay, prompt: Wait.}}\n");
    let program = program.file(".max-team/teams/web.yaml", &web);
    let chat = ok(program.run(&["-c", "--team", "web"]));
    assert!(!chat.err.contains("none of these") && !chat.out.contains("none of these"), "{chat:?}");
    assert!(ok(program.run(&["team", "show"])).out.contains("fay"), "{chat:?}");
}

/// Where nobody sits they begin, work until nothing is left to do, and what the lead says of it is the result. Nobody has said
/// anything in that session: it is found all the same, also if the program dies before anything has come of it.
#[test]
fn a_team_is_loaded_without_a_frontend() {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::new().when(move |request| {
        Some(match is(request, "alice") {
            true => Reply::text("The schema is made.").gate_before(&held),
            false => Reply::text(format!("All done: {}", request.contains("The schema is made."))),
        })
    }));
    let one = "members:\n  - {name: alice, prompt: Make a schema.}\n";
    let program = Program::team(&server).file(".max-team/teams/one.yaml", one);
    let mut child = program.start(&["team", "load", "one"]);
    gate.wait_reached();
    child.kill().unwrap();
    child.wait().unwrap();
    let listed = ok(program.run(&["sessions", "list"])).out;
    assert_eq!(listed.matches("ses_").count(), 1, "{listed}");
    assert!(listed.contains("@alice"), "it is known by who is there: {listed}");
    assert!(ok(program.run(&["team", "show"])).out.contains("alice"));
    gate.open();
    assert_eq!(ok(program.run(&["-c", "-p", ""])).out, "All done: true\n");
    let ran = ok(program.run(&["team", "load", "one"]));
    assert_eq!(ran.out, "All done: true\n", "{ran:?}");
    let listed = ok(program.run(&["sessions", "list"])).out;
    assert_eq!(listed.matches("ses_").count(), 2, "{listed}");
    // A chat of lines ends when there are no more, and not before they have begun.
    let chat = ok(program.run(&["--team", "one"]));
    assert!(chat.out.contains("All done: true"), "{chat:?}");
}

/// A lead with three who each want to write a file.
fn writers() -> ModelServer {
    ModelServer::start(Script::new().when(|request| {
        let name = ["ann", "ben", "cat"].into_iter().find(|name| is(request, name));
        Some(match (name, request.tool_results()) {
            (Some(name), 0) => {
                let file = json!({ "path": format!("{name}.txt"), "content": "x" });
                Reply::new().tool("w1", "write_file", file)
            }
            (Some(name), _) => Reply::text(format!("{name} is through.")),
            (None, 0) => ["ann", "ben", "cat"].into_iter().fold(Reply::new(), |reply, name| {
                reply.tool(format!("s-{name}"), "spawn_teammate", spawn(name, "Write your file."))
            }),
            (None, _) => Reply::text("They are at it."),
        })
    }))
}

/// The id of what somebody asks.
fn asked_by(program: &Program, name: &str) -> String {
    let asked = ok(program.run(&["inbox", "--json"])).json();
    let found = asked.as_array().unwrap().iter().find(|row| row["who"] == name).unwrap();
    found["short"].as_str().unwrap().to_owned()
}

/// A yes for the session is one for the whole team: it says what it allows, to whom, and whose questions it has answered.
#[test]
fn a_yes_for_longer_says_how_far_it_goes() {
    let server = writers();
    let program = Program::team(&server);
    let mut terminal = Terminal::open(&program, &[]);
    terminal.wait("or give a task");
    terminal.keys(&["go", "Enter"]);
    terminal.wait("1 of 3 questions");
    let [ann, ben, cat] = ["ann", "ben", "cat"].map(|name| asked_by(&program, name));
    let said = ok(program.run(&["approve", &ben, "--always"])).out;
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    let mut want = vec![
        format!("{ben} yes: write_file: ben.txt (+1 -0 lines)"),
        "allowed from now on, for this session: Edit (ben, ann, cat)".to_owned(),
        format!("{ann} approved too: ann: write_file: ann.txt (+1 -0 lines)"),
        format!("{cat} approved too: cat: write_file: cat.txt (+1 -0 lines)"),
    ];
    want.sort_unstable();
    assert_eq!(lines, want, "{said}");
    ["ann", "ben", "cat"].iter().for_each(|name| wait_for(&program, "turn_ended", &format!("{name} is through.")));
    terminal.keys(&["C-d"]);
    terminal.wait_end();
}

/// Whoever was stopped since asks nothing any more: it is not among what is gone on with.
#[test]
fn a_question_of_a_stopped_teammate_is_not_continued() {
    let server = writers();
    let program = Program::team(&server);
    let mut terminal = Terminal::open(&program, &[]);
    terminal.wait("or give a task");
    terminal.keys(&["go", "Enter"]);
    terminal.wait("1 of 3 questions");
    terminal.kill();
    ok(program.run(&["stop", "ann"]));
    let people = ok(program.run(&["ps"])).out;
    let ann = people.lines().find(|line| line.contains(" ann ")).unwrap();
    assert!(ann.contains("it was stopped; no process runs this session"), "{people}");
    let on = program.run(&["-c", "-p", ""]);
    assert!(on.err.contains("2 questions"), "{on:?}");
}

/// The same of a session that nobody runs: what will be allowed is said when it is, not when it is found.
#[test]
fn a_lasting_yes_names_its_scope_for_a_session_that_does_not_run() {
    let server = writers();
    let program = Program::team(&server);
    let mut terminal = Terminal::open(&program, &[]);
    terminal.wait("or give a task");
    terminal.keys(&["go", "Enter"]);
    terminal.wait("1 of 3 questions");
    terminal.kill();
    let [ann, ben, cat] = ["ann", "ben", "cat"].map(|name| asked_by(&program, name));
    ok(program.run(&["deny", &cat, "-m", "not this"]));
    let said = ok(program.run(&["approve", &ben, "--always"])).out;
    for words in [
        "allowed from now on, for this session: Edit (ben, ann, cat)".to_owned(),
        format!("{ann} approved too: ann: write_file: ann.txt (+1 -0 lines)"),
    ] {
        assert!(said.contains(&words), "`{words}`: {said}");
    }
    assert!(!said.contains(&cat), "it was answered before: {said}");
    let noted = ok(program.run(&["inbox", "--json"])).json();
    let noted: Vec<&Value> = noted.as_array().unwrap().iter().map(|row| &row["noted"]["said"]).collect();
    assert_eq!(noted.iter().filter(|said| **said == "yes").count(), 2, "{noted:?}");
    drop(terminal);
    std::fs::remove_file(program.home().with_file_name("screen")).unwrap();
    let terminal = Terminal::open(&program, &["-c"]);
    ["ann", "ben", "cat"].iter().for_each(|name| wait_for(&program, "turn_ended", &format!("{name} is through.")));
    drop(terminal);
    let written = ["ann", "ben", "cat"].map(|name| program.project().join(format!("{name}.txt")).exists());
    assert_eq!(written, [true, true, false]);
}

/// Three ask at once; one is answered at another terminal, the others here, in another order than they asked in.
#[test]
fn of_three_questions_none_is_lost() {
    let server = writers();
    let program = Program::team(&server);
    let mut terminal = Terminal::open(&program, &[]);
    terminal.wait("or give a task");
    terminal.keys(&["go", "Enter"]);
    terminal.wait("1 of 3 questions");
    ok(program.run(&["approve", &asked_by(&program, "cat")]));
    wait_for(&program, "turn_ended", "cat is through.");
    terminal.wait("1 of 2 questions");
    assert!(terminal.screen().contains("(task Write your file.)"), "{}", terminal.screen());
    terminal.answer("y");
    terminal.wait("is through.");
    terminal.answer("y");
    wait_for(&program, "turn_ended", "ann is through.");
    wait_for(&program, "turn_ended", "ben is through.");
    for name in ["ann", "ben", "cat"] {
        assert_eq!(program.read(&format!("{name}.txt")), "x");
    }
    assert_eq!(ok(program.run(&["inbox", "--json"])).json(), json!([]));
    terminal.keys(&["@an", "Tab"]);
    terminal.wait("@ann ");
    terminal.keys(&["thanks", "Enter"]);
    terminal.wait("→ ann: thanks");
    wait_for(&program, "mailed", "thanks");
    terminal.keys(&["/team", "Enter"]);
    terminal.wait("lead");
    terminal.keys(&["C-d"]);
    terminal.wait_end();
}

/// Somebody whom the lead had called, and who is no teammate, goes on with what the user says; the answer is the user's.
#[test]
fn an_earlier_called_agent_can_be_written_to() {
    let server = ModelServer::start(Script::new().when(|request| {
        Some(if request.user_texts().first().is_some_and(|text| text == "Look around.") {
            Reply::text(if request.last_user().contains("tell me more") { "There is a cellar." } else { "A house." })
        } else if request.tool_results() == 0 {
            let call = json!({ "description": "look", "prompt": "Look around.", "type": "explore" });
            Reply::new().tool("a1", "agent", call)
        } else {
            Reply::text("It is a house.")
        })
    }));
    let program = Program::team(&server);
    ok(program.run(&["-p", "go"]));
    assert!(ok(program.run(&["send", "explore", "tell me more"])).out.starts_with("sent to explore-"));
    ok(program.run(&["-c", "-p", ""]));
    let answer = envelopes(&program, &["--agent", "user"]).pop().unwrap();
    assert_eq!((&answer["from"], &answer["text"]), (&json!("explore"), &json!("There is a cellar.")));
    let stranger = program.run(&["team", "shutdown", "explore"]);
    assert!(stranger.code == 1 && stranger.err.contains("nor any other teammate"), "{stranger:?}");
}

/// A team that could not begin takes nobody's place: what was said before is gone on with.
#[test]
fn a_team_that_could_not_begin_is_no_session() {
    let server = ModelServer::start([Reply::text("I will."), Reply::text("You are Ada.")]);
    // Whether there is such a model is known only to whoever starts them.
    let odd = "members:\n  - {name: bob, prompt: Begin., model: no-such-model}\n";
    let program = Program::team(&server).file(".max-team/teams/odd.yaml", odd);
    ok(program.run(&["-p", "remember me"]));
    let odd = program.run(&["team", "load", "odd"]);
    assert!(odd.code == 8 && odd.err.contains("none of these teammates has started"), "{odd:?}");
    assert!(!odd.err.contains("nothing to continue"), "{odd:?}");
    let listed = ok(program.run(&["sessions", "list"])).out;
    assert_eq!(listed.matches("ses_").count(), 1, "{listed}");
    ok(program.run(&["-c", "-p", "who am I?"]));
    assert!(server.requests()[1].contains("remember me"));
}

/// What was last done counts, not what was last said to the lead.
#[test]
fn the_session_last_used_is_the_one_in_which_something_was_last_done() {
    let server = pair();
    let program = Program::team(&server);
    ok(program.run(&["-p", "go"]));
    let first = ok(program.run(&["team", "show", "--json"])).json()["session"].as_str().unwrap().to_owned();
    ok(program.run(&["-p", "how far is the other one?"]));
    let second = ok(program.run(&["team", "show", "--json"])).json()["session"].as_str().unwrap().to_owned();
    assert_ne!(first, second);
    ok(program.run(&["send", "alice", "use tabs", "--session", &first]));
    assert_eq!(ok(program.run(&["team", "show", "--json"])).json()["session"], first.as_str());
    ok(program.run(&["tasks", "add", "Later", "--session", &second]));
    assert_eq!(ok(program.run(&["team", "show", "--json"])).json()["session"], second.as_str());
    ok(program.run(&["-r", &first, "-p", ""]));
    assert_eq!(ok(program.run(&["team", "show", "--json"])).json()["session"], first.as_str(), "alice has read it");
    // What she wrote to the user is forgotten with it, and so is when it was used.
    let journal = || Journal::open(program.home(), Options::default()).unwrap();
    let is_told = || program.journal().iter().any(|entry| entry.to_string().contains("Tabs it is."));
    assert!(is_told());
    ok(program.run(&["sessions", "forget", &first, "--yes"]));
    assert!(!is_told() && compare_rows(&journal()).unwrap().is_empty());
    assert_eq!(ok(program.run(&["team", "show", "--json"])).json()["session"], second.as_str());
}

/// What a teammate has written to you is delivered until it was shown, and read then.
#[test]
fn messages_to_you_are_read_once_they_were_shown() {
    let server = pair();
    let program = Program::team(&server);
    ok(program.run(&["-p", "go"]));
    ok(program.run(&["send", "alice", "use tabs"]));
    ok(program.run(&["-c", "-p", ""]));
    let mine =
        || -> Vec<Value> { envelopes(&program, &[]).into_iter().filter(|envelope| envelope["to"] == "user").collect() };
    assert_eq!(told(&mine()), ["alice → user text delivered"]);
    let id = mine()[0]["id"].as_str().unwrap().to_owned();
    let shown = ok(program.run(&["mail", "show", &id])).out;
    assert!(shown.contains("Tabs it is.") && shown.contains("read"), "{shown}");
    assert_eq!(told(&mine()), ["alice → user text read"]);
    // In a chat it is on the screen when the session is opened, and then as soon as it is there.
    ok(program.run(&["send", "alice", "use tabs, please"]));
    let mut terminal = Terminal::open(&program, &["-c"]);
    let is_read = |count: usize| soon(|| told(&mine()) == vec!["alice → user text read"; count]);
    assert!(is_read(2), "{:?}", told(&mine()));
    terminal.keys(&["@alice use tabs now", "Enter"]);
    assert!(is_read(3), "{:?}", told(&mine()));
    terminal.kill();
}
