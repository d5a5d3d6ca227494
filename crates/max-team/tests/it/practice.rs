//! Plans in practice: checks and commands of a task's owner, tasks side by side, pauses, and a lead that changes its mind.

use max_team_testkit::{Gate, ModelServer, Reply, Script};
use serde_json::{Value, json};

use crate::chat::Terminal;
use crate::context::{ok, wait_for};
use crate::plans::{news, plan, task, voice, write};
use crate::program::{Program, finish, signal};

const GO: [&str; 4] = ["-p", "go on, please", "--approve", "never"];

fn shell(command: &str) -> Reply {
    Reply::new().tool("s", "run_shell", json!({ "command": command }))
}

pub(crate) fn events(program: &Program, name: &str) -> Vec<Value> {
    let all = program.journal().into_iter().filter(|entry| entry["event"] == name);
    all.map(|entry| entry["payload"][name].clone()).collect()
}

/// The id of the only plan.
fn plan_of(program: &Program) -> String {
    events(program, "plan_proposed")[0]["plan"].as_str().unwrap().to_owned()
}

fn over(words: &str) -> Vec<Reply> {
    vec![Reply::text("x"), Reply::text(words)]
}

/// A line that cannot be parsed changes nothing, also in an approved plan, unless it says that it writes.
#[test]
fn an_owner_runs_its_own_checks_and_programs_of_the_project() {
    let check = "sh -c 'test -f hello.txt'";
    let file = format!(
        "goal: Say hello\ntasks:\n  - {{id: a, title: a, agent: leo, do: Write it., owns: [\"*.txt\"], verify: [\"{check}\"]}}\n"
    );
    let steps = vec![
        write("hello.txt", "hello\n"),
        shell(check),
        shell("sh scripts/show.sh"),
        shell("for name in hello; do rm $name.txt; done"),
        Reply::text("Written."),
    ];
    let server = ModelServer::start(
        Script::new().when(voice(task("a"), steps)).when(move |_| Some(Reply::text("All of it is done."))),
    );
    let program =
        Program::team(&server).file("plan.yaml", &file).file("scripts/show.sh", "echo shown $(cat hello.txt)\n");
    let ran = ok(program.run(&["run", "plan.yaml", "--yes"]));
    assert_eq!(program.read("hello.txt"), "hello\n", "{ran:?}");
    let asked = server.requests();
    let last = asked.iter().rfind(|request| task("a")(request)).unwrap();
    let results: Vec<String> = last.body["messages"].as_array().unwrap().iter().map(Value::to_string).collect();
    let told = results.join("\n");
    assert!(told.contains("exit code 0") && told.contains("shown hello"), "{told}");
}

/// A check that fails while a sibling changes files runs again after the sibling; no task is tried again.
#[test]
fn a_check_that_fails_beside_others_is_run_again_before_the_task_fails() {
    let gate = Gate::new();
    let tasks = json!([
        { "id": "a", "title": "a", "agent": "leo", "description": "Use it.", "owns": ["a.txt"], "verify": ["test -f b.txt"] },
        { "id": "b", "title": "b", "agent": "leo", "description": "Make it.", "owns": ["b.txt"], "outputs": ["b.txt"] },
    ]);
    let server = ModelServer::start(
        Script::new()
            .when(voice(task("a"), vec![write("a.txt", "a\n"), Reply::text("Used.")]))
            .when(voice(task("b"), vec![write("b.txt", "b\n").gate_before(&gate), Reply::text("Made.")]))
            .when(voice(news("is over:"), over("All of it is done.")))
            .on(news("please"), plan(tasks)),
    );
    let program = Program::team(&server);
    let child = program.start(&GO);
    gate.wait_reached();
    wait_for(&program, "task_deferred", "\"after\":[\"b\"]");
    gate.open();
    let ran = ok(finish(child));
    assert!(ran.err.contains("a: its checks failed while others changed files; they run again after b"), "{ran:?}");
    assert!(events(&program, "task_failed").is_empty(), "{ran:?}");
    assert_eq!(events(&program, "plan_ended")[0]["tally"]["done"], 2);
    // Each was told who works beside it.
    let first = |name| server.requests().iter().find(|request| task(name)(request)).unwrap().user_texts()[0].clone();
    assert!(first("a").contains("- `b` (leo): b; owns `b.txt`"), "{}", first("a"));
    assert!(first("b").contains("- `a` (leo): a; owns `a.txt`"), "{}", first("b"));
}

/// The machine lacks the check's program: that is no fault of the task, which is not tried again.
#[test]
fn a_check_that_cannot_start_costs_no_second_attempt() {
    let tasks = json!([
        { "id": "a", "title": "a", "agent": "leo", "description": "Do it.", "owns": ["a.txt"], "verify": ["./absent.sh"] },
    ]);
    let give_up = Reply::new().tool("u", "task_update", json!({ "task_id": "a", "decision": "give_up" }));
    let server = ModelServer::start(
        Script::new()
            .when(voice(task("a"), vec![write("a.txt", "a\n"), Reply::text("Done.")]))
            .when(voice(news("has failed after"), vec![Reply::text("x"), give_up, Reply::text("Given up.")]))
            .when(move |request| request.last_user().contains("is over:").then(|| Reply::text("It failed.")))
            .when(move |request| (request.tool_results() > 1).then(|| Reply::text("Given up.")))
            .on(news("please"), plan(tasks)),
    );
    let program = Program::team(&server);
    let ran = program.run(&GO);
    assert_ne!(ran.code, 0, "{ran:?}");
    let failed = events(&program, "task_failed");
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!((&failed[0]["cause"], &failed[0]["retry_at_ms"]), (&json!("environment"), &Value::Null), "{failed:?}");
    assert!(
        failed[0]["error"].as_str().unwrap().contains("a check cannot be started here, ./absent.sh: "),
        "{failed:?}"
    );
}

/// A command of an approved plan may change any file of the project. If the task does not own it, the user decides before
/// the task counts: not the lead, and no second attempt.
#[test]
fn files_that_a_command_changed_beyond_its_task_are_asked_about() {
    let tasks = json!([
        { "id": "a", "title": "a", "agent": "leo", "description": "Make it.", "owns": ["a.txt"], "outputs": ["a.txt"] },
    ]);
    let make = "sh -c 'echo a > a.txt; echo b > b.txt; echo c > c.txt; rm c.txt'";
    let accept = Reply::new().tool("u", "task_update", json!({ "task_id": "a", "decision": "accept" }));
    let server = ModelServer::start(
        Script::new()
            .when(voice(task("a"), vec![shell(make), Reply::text("Made.")]))
            .when(voice(news("has failed after"), vec![Reply::text("x"), accept, Reply::text("Your turn.")]))
            .when(|request| request.last_user().contains("is over:").then(|| Reply::text("It is done.")))
            .on(news("please"), plan(tasks)),
    );
    let program = Program::team(&server);
    let ran = program.run(&GO);
    let failed = events(&program, "task_failed");
    assert_eq!((failed.len(), &failed[0]["cause"]), (1, &json!("unowned")), "{ran:?} {failed:?}");
    let error = failed[0]["error"].as_str().unwrap();
    assert!(error.contains("commands also changed `b.txt`, which the task does not own"), "{error}");
    let waiting = program.run(&["inbox"]);
    assert!(waiting.out.contains("changed files that the task does not own: b.txt"), "{waiting:?}");
    ok(program.run(&["approve", "--accept"]));
    ok(program.run(&["-c", "-p", ""]));
    assert_eq!(events(&program, "plan_ended")[0]["tally"]["done"], 1);
}

/// A check that also passed before the task is marked wherever the result is shown.
#[test]
fn a_check_that_passed_before_is_marked() {
    let tasks = json!([
        { "id": "a", "title": "a", "agent": "leo", "description": "Look.", "owns": [], "verify": ["true", "test -f new.txt"],
          "retry": 0 },
        { "id": "b", "title": "b", "agent": "leo", "description": "Look.", "owns": ["new.txt"], "verify": ["true"] },
    ]);
    let server = ModelServer::start(
        Script::new()
            .when(voice(task("a"), vec![Reply::text("Looked.")]))
            .when(voice(task("b"), vec![Reply::text("Looked.")]))
            .when(voice(news("has failed after"), vec![Reply::text("x"), Reply::text("Hm."), Reply::text("Hm.")]))
            .when(voice(news("is over:"), over("All of it is done.")))
            .on(news("please"), plan(tasks)),
    );
    let program = Program::team(&server);
    let ran = program.run(&GO);
    let done = events(&program, "task_done");
    let b = done.iter().find(|done| done["task"] == "b").unwrap_or_else(|| panic!("{ran:?}"));
    assert_eq!(b["result"]["evidence"][0]["passed_before"], true, "{b}");
    assert!(ran.err.contains("(its check had already passed before the task)"), "{ran:?}");
    let failed = events(&program, "task_failed");
    assert_eq!(failed[0]["evidence"][1]["passed_before"], Value::Null, "what failed before is no news: {failed:?}");
}

/// Ctrl-C and SIGTERM pause a plan as a kill does: the log says by whom, the changed files are named, and it goes on.
#[test]
fn signals_pause_a_plan_and_it_goes_on() {
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let gate = Gate::new();
        let held = gate.clone();
        let tasks = json!([
            { "id": "a", "title": "a", "agent": "leo", "description": "Do it.", "owns": ["a.txt"], "outputs": ["a.txt"] },
        ]);
        let server = ModelServer::start(
            Script::new()
                .when(voice(task("a"), vec![write("a.txt", "a\n"), Reply::text("Done.").gate_before(&held)]))
                .when(voice(news("is over:"), over("All of it is done.")))
                .on(news("please"), plan(tasks)),
        );
        let program = Program::team(&server);
        let child = program.start(&GO);
        gate.wait_reached();
        signal(&child, name);
        let ran = finish(child);
        assert_eq!(ran.code, code, "{ran:?}");
        assert!(ran.err.contains("a: it has changed a.txt"), "{ran:?}");
        assert!(ran.err.contains("the plan is paused: go on with `max-team -r ses_"), "{ran:?}");
        let paused = events(&program, "plan_paused");
        assert_eq!(paused.len(), 1, "{ran:?}");
        assert_eq!(paused[0]["files"], json!([{ "task": "a", "files": ["a.txt"] }]));
        assert!(events(&program, "plan_stopped").is_empty() && events(&program, "plan_ended").is_empty());
        gate.open();
        let on = ok(program.run(&["-c", "-p", ""]));
        assert_eq!(on.out, "All of it is done.\n", "{on:?}");
        assert_eq!(events(&program, "plan_ended")[0]["end"], "done");
    }
}

/// Only a stop gives up; what stopped tasks have changed is named.
#[test]
fn a_stop_gives_up_and_names_what_has_changed() {
    let gate = Gate::new();
    let held = gate.clone();
    let tasks = json!([{ "id": "a", "title": "a", "agent": "leo", "description": "Do it.", "owns": ["a.txt"] }]);
    let server = ModelServer::start(
        Script::new()
            .when(voice(task("a"), vec![write("a.txt", "a\n"), Reply::text("Done.").gate_before(&held)]))
            .when(voice(news("is over:"), over("Stopped.")))
            .on(news("please"), plan(tasks)),
    );
    let program = Program::team(&server);
    let child = program.start(&GO);
    gate.wait_reached();
    ok(program.run(&["stop", "--all"]));
    let ran = finish(child);
    gate.open();
    assert_eq!(ran.code, 130, "{ran:?}");
    assert!(ran.err.contains("a: it has changed a.txt"), "{ran:?}");
    assert_eq!(events(&program, "task_stopped")[0]["files"], json!(["a.txt"]));
}

/// While a plan runs its lead adds a note to a later task: the approved words stay. Where a note is not possible, the lead is
/// told what to do instead.
#[test]
fn a_lead_adds_a_note_to_a_task_that_has_not_begun() {
    let tasks = json!([
        { "id": "a", "title": "a", "agent": "leo", "description": "Do it.", "owns": ["a.txt"] },
        { "id": "b", "title": "b", "agent": "leo", "description": "Old words.", "owns": ["b.txt"], "depends_on": ["a"] },
        { "id": "c", "title": "c", "agent": "leo", "description": "Any file.", "depends_on": ["b"] },
    ]);
    let update = |task: &str, field: &str| json!({ "task_id": task, field: "New words." });
    let turns = vec![
        Reply::text("x"),
        Reply::new()
            .tool("u1", "task_update", update("b", "note"))
            .tool("u2", "task_update", update("a", "note"))
            .tool("u4", "task_update", update("c", "description"))
            .tool("u5", "task_update", update("b", "title")),
        Reply::new().tool("u3", "task_update", json!({ "task_id": "a", "answer": "This one." })),
        Reply::text("Told."),
    ];
    let ask = Reply::new().tool("c", "need_clarify", json!({ "question": "Which one?" }));
    let server = ModelServer::start(
        Script::new()
            .when(voice(task("a"), vec![ask, Reply::text("Done.")]))
            .when(voice(task("b"), vec![Reply::text("Done.")]))
            .when(voice(task("c"), vec![Reply::text("Done.")]))
            .when(move |request| request.last_user().contains("is over:").then(|| Reply::text("All of it is done.")))
            .when(voice(|request| request.contains("Which one?"), turns))
            .on(news("please"), plan(tasks)),
    );
    let program = Program::team(&server);
    let ran = ok(program.run(&GO));
    assert_eq!(ran.out, "All of it is done.\n", "{ran:?}");
    let asked = server.requests();
    let b = asked.iter().find(|request| task("b")(request)).unwrap().user_texts()[0].clone();
    assert!(b.contains("Old words.\n\nNote of max: New words."), "{b}");
    let c = asked.iter().find(|request| task("c")(request)).unwrap().user_texts()[0].clone();
    assert!(c.contains("Any file.") && !c.contains("New words."), "{c}");
    let lead = asked.iter().find(|request| request.tool_results() == 5).unwrap().body.to_string();
    assert!(lead.contains("Noted: its owner reads it beside the approved words when it begins."), "{lead}");
    assert!(lead.contains("`c` has no `owns`, so its words stay as the user approved them"), "{lead}");
    assert!(lead.contains("a task stays as it is: only a `note` can be added"), "{lead}");
    let shown = ok(program.run(&["plans", "show", &plan_of(&program)])).out;
    assert!(shown.contains("Old words.") && shown.contains("Note of max: New words."), "{shown}");
    assert!(lead.contains("`a` has begun") && lead.contains("`submit_plan` with `revises: pln_"), "{lead}");
    assert!(lead.contains("runs now, approved by `--approve never`") && !lead.contains("approved, running"), "{lead}");
}

/// One agent, and a sub-agent that only looks, run the project's own tests without a question; nothing else.
#[test]
fn the_projects_tests_need_no_question() {
    let run = |command: &str| Reply::new().tool("s", "run_shell", json!({ "command": command }));
    let look = json!({ "type": "explore", "description": "run them", "prompt": "Do the tests pass?" });
    let server = ModelServer::start(Script::new().when(move |request| {
        let explores = request.body["system"].to_string().contains("You are Explore");
        Some(match (explores, request.tool_results()) {
            (true, 0) => run("make test"),
            (true, _) => Reply::text("They pass."),
            (false, 0) => run("make test"),
            (false, 1) => Reply::new().tool("a", "agent", look.clone()),
            (false, 2) => run("make other"),
            (false, _) => Reply::text("They pass, both times."),
        })
    }));
    let program = Program::with(&server).file("Makefile", "test:\n\t@echo all is well\nother:\n\t@echo not asked\n");
    let ran = program.run(&["--solo", "-p", "test it"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "They pass, both times.\n"), "{ran:?}");
    assert!(ran.err.contains("run_shell make other"), "{ran:?}");
    let told: Vec<String> = server.requests().iter().map(|request| request.body.to_string()).collect();
    assert_eq!(told.iter().filter(|body| body.contains("all is well")).count(), 4, "{ran:?}");
    assert!(!told.iter().any(|body| body.contains("not asked\\n")), "{ran:?}");
}

/// Two owners ask the same; a yes for the session to one of them answers both.
#[test]
fn a_yes_for_the_session_settles_equal_questions_that_wait() {
    let file = "goal: two files\ntasks:\n  - {id: a, title: a, agent: leo, do: Write a., owns: [a.txt]}\n  \
        - {id: b, title: b, agent: leo, do: Write b., owns: [b.txt]}\n";
    let server = ModelServer::start(
        Script::new()
            .when(voice(task("a"), vec![write("a.txt", "a\n"), Reply::text("Written.")]))
            .when(voice(task("b"), vec![write("b.txt", "b\n"), Reply::text("Written.")]))
            .when(move |_| Some(Reply::text("All of it is done."))),
    );
    let program = Program::team(&server).file("plan.yaml", file);
    let mut terminal = Terminal::open(&program, &["run", "plan.yaml", "--approve", "each"]);
    terminal.wait("may it run?");
    terminal.answer("y");
    wait_for(&program, "question_asked", "a.txt");
    wait_for(&program, "question_asked", "b.txt");
    terminal.answer("a");
    terminal.wait("All of it is done.");
    assert_eq!((program.read("a.txt").as_str(), program.read("b.txt").as_str()), ("a\n", "b\n"));
    let answers: Vec<String> =
        events(&program, "question_answered").iter().map(|of| of["answer"]["by"].to_string()).collect();
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert!(answers.iter().any(|by| by.contains("grant")), "{answers:?}");
}
