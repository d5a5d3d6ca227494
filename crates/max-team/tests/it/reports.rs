//! Results on their way to the lead: of plans, of their members, of teammates that talk to each other, and of weak models.

use max_team_testkit::{Gate, ModelServer, Recorded, Reply, Script};
use serde_json::{Value, json};

use crate::plans::{plan, task, voice, write};
use crate::program::{Program, finish, soon};
use crate::teammates::{is, ok, spawn};

pub(crate) fn send(to: &str, message: &str) -> Reply {
    Reply::new().tool("m", "send_message", json!({ "to": to, "message": message }))
}

/// Writes to a colleague and ends the turn.
fn send_and_wait(to: &str, message: &str) -> Reply {
    Reply::new().tool("m", "send_message", json!({ "to": to, "message": message, "wait": true }))
}

/// Everything that a request tells its model, tool results included.
fn told(request: &Recorded) -> String {
    request.body["messages"].to_string()
}

/// The newest tool result that a request tells its model.
pub(crate) fn last_result(request: &Recorded) -> String {
    let parts =
        request.body["messages"].as_array().into_iter().flatten().filter_map(|message| message["content"].as_array());
    let result = parts.flatten().rfind(|part| part["type"] == "tool_result").cloned().unwrap_or_default();
    match &result["content"] {
        Value::String(text) => text.clone(),
        content => content[0]["text"].as_str().unwrap_or_default().to_owned(),
    }
}

pub(crate) fn is_lead(request: &Recorded) -> bool {
    request.user_texts().first().is_some_and(|text| text.contains("please"))
}

/// The lead's requests.
pub(crate) fn of_lead(server: &ModelServer) -> Vec<Recorded> {
    server.requests().into_iter().filter(is_lead).collect()
}

/// A finding that stands behind a first paragraph, and a tail behind the limit of what is told.
fn review() -> String {
    format!("I have looked at it.\n\nFINDING: `add` overflows.\n\n{}THE END", "More words. ".repeat(800))
}

fn reviewed(after: Vec<Reply>) -> ModelServer {
    let tasks = json!([{ "id": "review", "title": "review", "agent": "ada", "description": "Review add." }]);
    let mut lead = vec![plan(tasks)];
    lead.extend(after);
    ModelServer::start(
        Script::new()
            .when(voice(|request| task("review")(request), vec![Reply::text(review()), Reply::text("Use i64.")]))
            .when(voice(is_lead, lead)),
    )
}

#[test]
fn the_lead_is_told_the_whole_result_of_a_task_and_shown_the_rest() {
    let query = |input: Value| Reply::new().tool("q", "task_query", input);
    let server = reviewed(vec![
        query(json!({ "task_id": "review", "page": 2 })),
        query(json!({})),
        query(json!({ "task_id": "nope" })),
        Reply::text("`add` overflows."),
    ]);
    let program = Program::team(&server);
    let ran = program.run(&["-p", "review it, please", "--approve", "never"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "`add` overflows.\n"), "{ran:?}");
    let requests = of_lead(&server);
    let report = requests[1].last_user();
    assert!(report.contains("FINDING: `add` overflows."), "{report}");
    assert!(report.contains("[2000 of 9656 characters; `task_query` with `task_id: review` shows all.]"), "{report}");
    assert!(!report.contains("THE END"));
    // The plan is over, and is shown all the same.
    let page = told(&requests[2]);
    assert!(page.contains("Result, page 2 of 2:") && page.contains("THE END"), "{page}");
    assert!(told(&requests[3]).contains("(finished): 1 of 1 tasks done"), "{}", told(&requests[3]));
    assert!(told(&requests[4]).contains("There is no task `nope`"));
}

#[test]
fn a_member_whose_plan_is_over_goes_on_and_answers() {
    let server = reviewed(vec![send("ada", "What instead?"), Reply::text("Ada says: use i64.")]);
    let program = Program::team(&server);
    let ran = program.run(&["-p", "review it, please", "--approve", "never"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Ada says: use i64.\n"), "{ran:?}");
    let requests = server.requests();
    let resumed = requests.iter().rfind(|request| task("review")(request)).unwrap();
    assert!(
        told(resumed).contains("FINDING") && resumed.last_user().contains("What instead?"),
        "its conversation goes on"
    );
    assert!(told(requests.last().unwrap()).contains("Use i64."), "its answer is the result of the call");
}

/// Ada asks something while Leo works: the lead answers her and writes to him, and he reads it with his next tool result.
#[test]
fn a_member_at_work_reads_the_leads_message_with_its_next_tool_result() {
    let tasks = json!([
        { "id": "design", "title": "design", "agent": "ada", "description": "Design it." },
        { "id": "impl", "title": "impl", "agent": "leo", "description": "Make it.", "owns": ["a.txt"], "outputs": ["a.txt"] },
    ]);
    let gate = Gate::new();
    let opened = gate.clone();
    let ask = Reply::new().tool("c", "need_clarify", json!({ "question": "Tabs or spaces?" }));
    let server = ModelServer::start(
        Script::new()
            .when(voice(task("design"), vec![ask, Reply::text("Tabs.")]))
            .when(voice(task("impl"), vec![write("a.txt", "x").gate_before(&gate), Reply::text("Made with tabs.")]))
            .when(move |request| {
                is_lead(request).then(|| match request.last_user() {
                    last if last.contains("is over:") => Reply::text("Done."),
                    last if last.contains("Tabs or spaces?") && told(request).contains("Sent: `leo`") => {
                        opened.open();
                        let answer = json!({ "task_id": "design", "answer": "Tabs." });
                        Reply::new().tool("u", "task_update", answer)
                    }
                    last if last.contains("Tabs or spaces?") => send("leo", "Use tabs."),
                    _ if told(request).contains("Tabs or spaces?") => Reply::text("Told them."),
                    _ => plan(tasks.clone()),
                })
            }),
    );
    let program = Program::team(&server);
    let ran = program.run(&["-p", "make it, please", "--approve", "never"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{ran:?}");
    let second = server.requests().into_iter().rfind(|request| task("impl")(request)).unwrap();
    let message = "(From the lead: follow it.)\n<teammate-message teammate_id=\"max\" as=\"instruction\">\nUse tabs.\n</teammate-message>";
    assert!(second.last_user().contains(message), "{}", second.last_user());
}

/// Ray finds that the code is wrong: that is told to the lead at once, in his words, and he is not asked again.
#[test]
fn a_task_that_its_owner_ends_as_not_done_goes_to_the_lead() {
    let tasks = json!([
        { "id": "test", "title": "test", "agent": "ray", "description": "Test add." },
    ]);
    let says = "NOT DONE: `add(1, 2)` is 4.\nThe test in a.txt shows it.";
    let give_up = Reply::new().tool("u", "task_update", json!({ "task_id": "test", "decision": "give_up" }));
    let server = ModelServer::start(
        Script::new()
            .when(voice(task("test"), vec![Reply::text(says)]))
            .when(voice(is_lead, vec![plan(tasks), give_up, Reply::text("add is wrong.")])),
    );
    let program = Program::team(&server);
    let ran = program.run(&["-p", "test it, please", "--approve", "never"]);
    assert_eq!(ran.out, "add is wrong.\n", "{ran:?}");
    let requests = server.requests();
    let asked: Vec<_> = requests.iter().filter(|request| task("test")(request)).collect();
    assert_eq!(asked.len(), 1, "nobody asks him again");
    assert!(asked[0].last_user().contains("begin your answer with `NOT DONE:`"));
    let news = of_lead(&server)[1].last_user();
    assert!(news.contains("Why: not done: `add(1, 2)` is 4.\nThe test in a.txt shows it."), "{news}");
    assert_eq!(news.matches("shows it").count(), 1, "{news}");
}

/// A lead that goes on without a failed task, or accepts its answer, loses nothing: the tasks that need it and the report get the
/// answer with the decision beside it. A note to another task in the same answer does not start the lead once more.
#[test]
fn the_answer_of_a_failed_task_reaches_its_dependents() {
    let tasks = json!([
        { "id": "test", "title": "test", "agent": "ray", "description": "Test add." },
        { "id": "fix", "title": "fix", "agent": "leo", "description": "Fix it.", "owns": ["a.txt"], "depends_on": ["test"] },
    ]);
    for decision in ["skip", "accept", "fixed"] {
        let decide = Reply::new().tool("n", "task_update", json!({ "task_id": "fix", "note": "Keep it small." })).tool(
            "u",
            "task_update",
            json!({ "task_id": "test", "decision": decision, "note": "It is what I wanted." }),
        );
        let server = ModelServer::start(
            Script::new()
                .when(voice(task("test"), vec![Reply::text("NOT DONE: add(1, 2) is 4.")]))
                .when(voice(task("fix"), vec![Reply::text("Fixed.")]))
                .when(voice(is_lead, vec![plan(tasks.clone()), decide, Reply::text("All is well.")])),
        );
        let program = Program::team(&server);
        let ran = ok(program.run(&["-p", "make it, please", "--approve", "never"]));
        assert_eq!(ran.out, "All is well.\n", "{decision}: {ran:?}");
        let told = server.requests().iter().find(|request| task("fix")(request)).unwrap().last_user();
        let words = format!("max decided: {decision}, It is what I wanted.");
        assert!(told.contains("NOT DONE: add(1, 2) is 4.") && told.contains(&words), "{decision}: {told}");
        assert!(told.contains("Keep it small."), "{told}");
        let lead = of_lead(&server);
        assert_eq!(lead.len(), 3, "{decision}: the lead is not started once more");
        let report = lead[2].last_user();
        assert!(report.contains("  NOT DONE: add(1, 2) is 4.") && report.contains(&words), "{decision}: {report}");
    }
}

/// The same for a member that is asked without a plan.
#[test]
fn a_delegate_that_ends_its_task_as_not_done_says_so_once() {
    let delegate =
        Reply::new().tool("d", "agent", json!({ "type": "ray", "description": "test", "prompt": "Test add." }));
    let server = ModelServer::start(
        Script::new()
            .when(voice(is_lead, vec![delegate, Reply::text("add is wrong.")]))
            .on(|request: &Recorded| request.contains("Test add."), Reply::text("NOT DONE: add is wrong, see a.txt.")),
    );
    let program = Program::team(&server);
    let ran = ok(program.run(&["-p", "test it, please"]));
    assert_eq!(ran.out, "add is wrong.\n", "{ran:?}");
    let result = told(&of_lead(&server)[1]);
    assert_eq!(result.matches("NOT DONE: add is wrong, see a.txt.").count(), 1, "{result}");
    assert!(result.contains("\"is_error\":true"), "{result}");
}

/// Leo has two tasks: his name alone is refused with the ids of both, for the lead and for the user. The id of a task reaches
/// the agent that has it.
#[test]
fn a_message_goes_to_a_task_by_its_id() {
    let tasks = json!([
        { "id": "fix", "title": "fix", "agent": "leo", "description": "Fix it.", "owns": ["a.txt"] },
        { "id": "cover", "title": "cover", "agent": "leo", "description": "Cover it.", "owns": ["b.txt"], "depends_on": ["fix"] },
    ]);
    let server = ModelServer::start(
        Script::new()
            .when(voice(
                task("fix"),
                vec![Reply::text("Fixed."), Reply::text("Fixed better."), Reply::text("For you.")],
            ))
            .when(voice(task("cover"), vec![Reply::text("Covered.")]))
            .when(voice(
                is_lead,
                vec![
                    plan(tasks),
                    send("leo", "Do it better."),
                    send("fix", "Do it better."),
                    Reply::text("All is well."),
                ],
            )),
    );
    let program = Program::team(&server);
    let ran = ok(program.run(&["-p", "make it, please", "--approve", "never"]));
    assert_eq!(ran.out, "All is well.\n", "{ran:?}");
    let lead = of_lead(&server);
    let words = "`leo` works on `cover`, `fix`: send to one of these";
    assert!(told(&lead[2]).contains(words), "{}", told(&lead[2]));
    assert!(told(&lead[3]).contains("Fixed better."), "{}", told(&lead[3]));
    let asked = |id: &'static str| server.requests().into_iter().filter(move |request| task(id)(request)).count();
    assert_eq!((asked("fix"), asked("cover")), (2, 1));
    let refused = program.run(&["send", "leo", "And now?"]);
    assert!(refused.code != 0 && refused.err.contains(words), "{refused:?}");
    let refused = program.run(&["--lang", "zh", "send", "leo", "And now?"]);
    assert!(refused.code != 0 && refused.err.contains("`leo` 负责 `cover`、`fix`：请发给其中一个任务"), "{refused:?}");
    ok(program.run(&["send", "fix", "And now?"]));
    ok(program.run(&["-c", "-p", ""]));
    assert_eq!((asked("fix"), asked("cover")), (3, 1), "the user's message begins the next work of the task's member");
}

/// A lead that starts teammates and waits for them makes no model call only to end its turn.
#[test]
fn a_lead_that_waits_for_its_teammates_makes_no_closing_call() {
    let waits = |name: &str| {
        let mut input = spawn(name, "Count the files.");
        input["wait"] = json!(true);
        input
    };
    let server = ModelServer::start(Script::new().when(move |request| {
        Some(if is(request, "ann") || is(request, "bob") {
            Reply::text("There are THREE files.")
        } else if request.tool_results() == 0 {
            let (ann, bob) = (spawn("ann", "Count the files."), waits("bob"));
            Reply::text("They count.").tool("s1", "spawn_teammate", ann).tool("s2", "spawn_teammate", bob)
        } else {
            Reply::text("There are three.")
        })
    }));
    let program = Program::team(&server);
    let ran = ok(program.run(&["-p", "count the files, please"]));
    assert_eq!(ran.out, "There are three.\n", "{ran:?}");
    let lead = of_lead(&server);
    assert_eq!(lead.len(), 2, "one call to start them, one about their reports");
    let report = lead[1].last_user();
    assert_eq!(report.matches("THREE").count(), 2, "{report}");
}

/// Alice and Bob settle something between them; what begins their last turns is never a message of the lead.
fn debate() -> ModelServer {
    ModelServer::start(Script::new().when(|request| {
        let last = request.last_user();
        Some(if is(request, "alice") {
            match last.as_str() {
                last if last.contains("spaces, because") => send_and_wait("bob", "Agreed: spaces."),
                last if last.contains("Good.") => Reply::text("We agreed on SPACES."),
                _ => send_and_wait("bob", "I say tabs."),
            }
        } else if is(request, "bob") {
            match last.as_str() {
                last if last.contains("I say tabs") => send_and_wait("alice", "I say spaces, because diffs."),
                last if last.contains("Agreed") => send_and_wait("alice", "Good.").say("Alice and I agree on SPACES."),
                _ => Reply::text("I wait for alice."),
            }
        } else if request.tool_results() == 0 {
            let (alice, bob) = (spawn("alice", "Debate with bob."), spawn("bob", "Debate with alice."));
            Reply::new().tool("s1", "spawn_teammate", alice).tool("s2", "spawn_teammate", bob)
        } else if last.contains("SPACES") {
            Reply::text("They chose spaces.")
        } else {
            Reply::text("They debate.")
        })
    }))
}

#[test]
fn reports_of_teammates_reach_the_lead_once_all_are_idle() {
    let server = debate();
    let program = Program::team(&server);
    let ran = ok(program.run(&["-p", "settle it, please"]));
    assert_eq!(ran.out.trim(), "They chose spaces.", "{ran:?}");
    let lead = of_lead(&server);
    let last = lead.last().unwrap().last_user();
    assert!(last.contains("We agreed on SPACES.") && last.contains("Alice and I agree on SPACES."), "{last}");
    assert!(lead.len() <= 3, "the lead begins, ends, and is woken once: {}", lead.len());
    assert!(server.count() <= 22, "{} calls", server.count());
}

/// What a teammate sends while the lead works reaches it with its next tool result.
/// A message that comes while the model writes an answer that ends the turn begins the next turn.
#[test]
fn messages_that_cross_begin_the_next_turn_of_their_readers() {
    let gate = Gate::new();
    let server = ModelServer::start(
        Script::new()
            .when(voice(
                |request| is(request, "ann"),
                vec![send_and_wait("bob", "ANN OPENS."), Reply::text("Ann has read Bob.")],
            ))
            // The message of Ann comes while the model answers Bob.
            .when(voice(
                |request| is(request, "bob"),
                vec![send_and_wait("ann", "BOB OPENS.").gate_before(&gate), Reply::text("Bob has read Ann.")],
            ))
            .when(voice(
                is_lead,
                vec![
                    Reply::new().tool("a", "spawn_teammate", spawn("ann", "Argue.")).tool(
                        "b",
                        "spawn_teammate",
                        spawn("bob", "Argue."),
                    ),
                    Reply::text("They argue."),
                    Reply::text("Both have read."),
                ],
            )),
    );
    let program = Program::team(&server);
    let child = program.start(&["-p", "let them argue, please"]);
    gate.wait_reached();
    assert!(soon(|| program.run(&["mail", "list", "--json"]).out.contains("ANN OPENS.")));
    gate.open();
    let ran = ok(finish(child));
    let asked = server.requests();
    let read = |name: &str, words: &str| asked.iter().any(|request| is(request, name) && told(request).contains(words));
    assert!(read("bob", "ANN OPENS."), "{ran:?}");
    assert!(read("ann", "BOB OPENS."), "{ran:?}");
    assert_eq!(ran.out, "Both have read.\n", "{ran:?}");
}

/// Teammates that only wait for each other wake the lead once, and the lead's answer ends the run.
#[test]
fn a_team_that_rests_without_any_report_wakes_the_lead_once() {
    let server = ModelServer::start(
        Script::new()
            .when(voice(|request| is(request, "ann"), vec![Reply::text("WAIT")]))
            .when(voice(|request| is(request, "bob"), vec![Reply::text("WAIT")]))
            .when(voice(
                is_lead,
                vec![
                    Reply::new().tool("a", "spawn_teammate", spawn("ann", "Count.")).tool("b", "spawn_teammate", {
                        let mut bob = spawn("bob", "Count.");
                        bob["wait"] = json!(true);
                        bob
                    }),
                    Reply::text("Neither has counted."),
                ],
            )),
    );
    let program = Program::team(&server);
    let ran = ok(program.run(&["-p", "let them count, please"]));
    assert_eq!(ran.out, "Neither has counted.\n", "{ran:?}");
    let lead = of_lead(&server);
    assert_eq!(lead.len(), 2, "one call to start them, one about their silence");
    let news = lead[1].last_user();
    assert_eq!(news, "No report from `ann`, `bob`: they wait for messages and work on nothing.");
}

#[test]
fn a_report_reaches_the_lead_with_its_next_tool_result() {
    let gate = Gate::new();
    let waits = gate.clone();
    let server = ModelServer::start(Script::new().when(move |request| {
        Some(if is(request, "alice") {
            Reply::text("There are 42.")
        } else {
            match request.tool_results() {
                0 => Reply::new().tool("s1", "spawn_teammate", spawn("alice", "Count.")),
                1 => Reply::new().tool("t", "TaskList", json!({})).gate_before(&waits),
                _ if told(request).contains("There are 42.") => Reply::text("42 it is."),
                _ => Reply::text("She is at it."),
            }
        })
    }));
    let program = Program::team(&server);
    let child = program.start(&["-p", "count, please"]);
    gate.wait_reached();
    let has_reported = || {
        let mail = program.run(&["mail", "list", "--json"]).out;
        mail.contains("There are 42.")
    };
    assert!(soon(has_reported));
    gate.open();
    let ran = finish(child);
    assert_eq!((ran.code, ran.out.as_str()), (0, "42 it is.\n"), "{ran:?}");
    assert_eq!(of_lead(&server).len(), 3, "no turn only to read it");
}

/// The user's words to a teammate are marked as the user's; the lead is told of them and of the answer.
#[test]
fn the_lead_is_told_what_the_user_wrote_to_a_teammate() {
    let server = ModelServer::start(Script::new().when(|request| {
        Some(if is(request, "alice") {
            Reply::text(if request.last_user().contains("use tabs") { "Tabs it is." } else { "Ready." })
        } else if request.tool_results() == 0 {
            Reply::new().tool("s1", "spawn_teammate", spawn("alice", "Get ready."))
        } else if request.last_user().contains("how far") {
            Reply::text("Half way.")
        } else {
            Reply::text("Noted.")
        })
    }));
    let program = Program::team(&server);
    ok(program.run(&["-p", "begin, please"]));
    ok(program.run(&["send", "alice", "use tabs"]));
    let before = of_lead(&server).len();
    let ran = ok(program.run(&["-c", "-p", "read on, please"]));
    assert_eq!(ran.out.trim(), "Noted.");
    let ran = ok(program.run(&["-c", "-p", "how far are you?"]));
    assert_eq!(ran.out.trim(), "Half way.");
    let requests = server.requests();
    let alice = requests.iter().rfind(|request| is(request, "alice")).unwrap();
    assert!(alice.last_user().contains("The user writes to you:\n\nuse tabs"), "{}", alice.last_user());
    let lead = of_lead(&server);
    let last = lead.last().unwrap().last_user();
    let told = lead.iter().map(told).collect::<String>();
    assert!(told.contains("(The user wrote to me: use tabs)") && told.contains("Tabs it is."), "{last}");
    assert_eq!(lead.len(), before + 2, "the lead is not woken by it");
}
