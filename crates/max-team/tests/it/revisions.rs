//! Plans that a lead changes: while they wait for approval, and while they run.

use max_team_testkit::{ModelServer, Recorded, Reply, Script};
use serde_json::{Value, json};

use crate::context::ok;
use crate::plans::{news, plan, task, voice, write};
use crate::program::{Program, Ran};

/// What the journal says happened to one plan, or to all.
fn events(program: &Program, plan: &str, name: &str) -> Vec<Value> {
    let stream = format!("plan/{plan}");
    let all = program.journal().into_iter().filter(|entry| entry["event"] == name);
    let mine = all.filter(|entry| plan.is_empty() || entry["stream"] == stream.as_str());
    mine.map(|entry| entry["payload"][name].clone()).collect()
}

/// The id of the plan that a run without a chat has left waiting.
fn waiting(ran: &Ran) -> String {
    assert_eq!(ran.code, 5, "{ran:?}");
    ran.err.split("approve ").nth(1).unwrap().split('`').next().unwrap().to_owned()
}

/// The first plan that a request names.
fn named(request: &Recorded) -> String {
    let text = request.body["messages"].to_string();
    let id = text.split("plan pln_").nth(1).unwrap();
    format!("pln_{}", id.chars().take_while(char::is_ascii_alphanumeric).collect::<String>())
}

fn note(id: &str, file: &str) -> Value {
    json!([{ "id": id, "title": id, "agent": "leo", "description": "Write it.", "owns": [file], "outputs": [file] }])
}

/// The user changes their mind before they have approved: the new plan is before them, and the old one is no more.
#[test]
fn a_new_wish_withdraws_the_plan_that_waits() {
    for names_it in [false, true] {
        let server = ModelServer::start(
            Script::new()
                .when(voice(task("new"), vec![write("new.txt", "hello\n"), Reply::text("Written.")]))
                .when(move |request| news("is over:")(request).then(|| Reply::text("Written and verified.")))
                .when(move |request| {
                    let mut input = json!({ "goal": "another", "tasks": note("new", "new.txt") });
                    if news("differently")(request) && names_it {
                        input["revises"] = json!(named_result(request));
                    }
                    news("differently")(request).then(|| Reply::new().tool("p", "submit_plan", input))
                })
                .on(news("please"), plan(note("old", "old.txt"))),
        );
        let program = Program::team(&server);
        let old = waiting(&program.run(&["-p", "a note, please"]));
        let question = events(&program, &old, "plan_asked")[0]["question"].as_str().unwrap().to_owned();
        let ran = program.run(&["-c", "-p", "do it differently"]);
        let new = waiting(&ran);
        assert_ne!(old, new);
        assert!(ran.out.contains("new (leo)") && !ran.out.contains("old (leo)"), "{ran:?}");
        let inbox = ok(program.run(&["inbox"])).out;
        assert!(inbox.contains("another") || !inbox.contains("make add add"), "{inbox}");
        for id in [&old, &question] {
            let late = program.run(&["approve", id]);
            assert_eq!(late.code, 5, "{late:?}");
            assert!(late.err.contains(&format!("replaced by plan `{new}`")), "{late:?}");
        }
        assert_eq!(events(&program, &old, "plan_ended")[0]["end"], "replaced");
        ok(program.run(&["approve", &new]));
        let ran = ok(program.run(&["-c", "-p", ""]));
        assert_eq!(ran.out, "Written and verified.\n", "{ran:?}");
        assert_eq!(program.read("new.txt"), "hello\n");
        assert!(!program.project().join("old.txt").exists());
    }
}

/// The plan that the result of `submit_plan` names.
fn named_result(request: &Recorded) -> String {
    let text = request.body["messages"].to_string();
    let id = text.split("Plan pln_").nth(1).unwrap();
    format!("pln_{}", id.chars().take_while(char::is_ascii_alphanumeric).collect::<String>())
}

/// Three tasks: the lead revises the plan while the first is at work.
fn tasks(words: &str) -> Value {
    json!([
        { "id": "a", "title": "a", "agent": "leo", "description": "Ask first.", "owns": ["a.txt"] },
        { "id": "b", "title": "b", "agent": "leo", "description": words, "owns": ["b.txt"], "depends_on": ["a"] },
        { "id": "c", "title": "c", "agent": "leo", "description": "As it was.", "owns": ["c.txt"], "depends_on": ["a"] },
    ])
}

/// A plan that runs, and a revision of it that waits for the user.
fn revised() -> (ModelServer, Program, String, String) {
    let ask = Reply::new().tool("c", "need_clarify", json!({ "question": "Which one?" }));
    let server = ModelServer::start(
        Script::new()
            .when(voice(task("a"), vec![ask, Reply::text("A is done.")]))
            .when(voice(task("b"), vec![write("b.txt", "b\n"), Reply::text("Done.")]))
            .when(voice(task("c"), vec![Reply::text("C is done.")]))
            .when(move |request| news("is over:")(request).then(|| Reply::text("All of it is done.")))
            .when(move |request| news("rejected it")(request).then(|| Reply::text("It goes on.")))
            .when(move |request| {
                let answer = json!({ "task_id": "a", "answer": "This one." });
                let both = || {
                    let revision = json!({ "goal": "anew", "revises": named(request), "tasks": tasks("New words.") });
                    Reply::new().tool("u", "task_update", answer).tool("p", "submit_plan", revision)
                };
                news("Which one?")(request).then(both)
            })
            .on(news("please"), plan(tasks("Old words."))),
    );
    let program = Program::team(&server);
    let old = waiting(&program.run(&["-p", "go on, please"]));
    ok(program.run(&["approve", &old]));
    let new = waiting(&program.run(&["-c", "-p", ""]));
    assert_eq!(events(&program, &old, "plan_revised")[0]["held"], json!(["b"]));
    let begun: Vec<Value> = events(&program, &old, "task_assigned").iter().map(|of| of["task"].clone()).collect();
    assert_eq!(begun, ["a", "c"], "what the revision changes waits, the rest goes on");
    assert_eq!(events(&program, &old, "task_done").len(), 2);
    (server, program, old, new)
}

#[test]
fn after_a_no_to_its_revision_a_plan_goes_on_as_it_was() {
    let (server, program, old, new) = revised();
    ok(program.run(&["deny", &new, "--message", "superseded"]));
    let ran = ok(program.run(&["-c", "-p", ""]));
    assert_eq!(ran.out, "All of it is done.\n", "{ran:?}");
    assert_eq!(events(&program, &old, "plan_ended")[0]["end"], "done");
    let asked = server.requests();
    let b: Vec<&Recorded> = asked.iter().filter(|request| task("b")(request)).collect();
    assert!(!b.is_empty() && b.iter().all(|request| request.user_texts()[0].contains("Old words.")));
    let told = asked.iter().find(|request| news("rejected it")(request)).unwrap().last_user();
    assert!(told.contains("superseded") && told.contains(&format!("Plan {old} goes on as it was.")), "{told}");
    assert!(!told.contains("Propose a better plan"), "{told}");
}

#[test]
fn an_approved_revision_keeps_what_was_done_meanwhile() {
    let (server, program, old, new) = revised();
    ok(program.run(&["approve", &new]));
    let ran = ok(program.run(&["-c", "-p", ""]));
    assert_eq!(ran.out, "All of it is done.\n", "{ran:?}");
    assert_eq!(events(&program, &old, "plan_ended")[0]["end"], "replaced");
    let ended = &events(&program, &new, "plan_ended")[0];
    assert_eq!(
        (&ended["end"], &ended["tally"]["ran"], &ended["tally"]["done"]),
        (&json!("done"), &json!(1), &json!(3))
    );
    let asked = server.requests();
    let b = asked.iter().find(|request| task("b")(request)).unwrap();
    assert!(b.user_texts()[0].contains("New words."));
    let report = asked.iter().find(|request| news("is over:")(request)).unwrap().body.to_string();
    let words = format!("Plan {new} is before the user now. Nothing of it runs until they approve it");
    assert!(report.contains(&words), "{report}");
    assert!(report.contains(&format!("It revises plan {old}, of which 0 of 3 tasks are done")), "{report}");
    assert!(report.contains("that you drop or change wait: b."), "{report}");
    assert!(report.contains(&format!("Plan {old} has stopped: plan {new} was approved in its place")), "{report}");
    assert!(report.contains("A is done."), "{report}");
}

/// A lead gives up tasks of a running plan without a question: that only narrows what was approved.
#[test]
fn a_lead_cancels_tasks_that_are_no_longer_wanted() {
    let ask = Reply::new().tool("c", "need_clarify", json!({ "question": "Which one?" }));
    let more = json!([
        { "id": "a", "title": "a", "agent": "leo", "description": "Ask first.", "owns": ["a.txt"] },
        { "id": "b", "title": "b", "agent": "leo", "description": "Then.", "owns": ["b.txt"], "depends_on": ["a"] },
        { "id": "c", "title": "c", "agent": "leo", "description": "Last.", "owns": ["c.txt"], "depends_on": ["b"] },
    ]);
    let cancel = json!({ "task_id": "b", "decision": "cancel" });
    let answer = json!({ "task_id": "a", "answer": "This one." });
    let server = ModelServer::start(
        Script::new()
            .when(voice(task("a"), vec![ask, Reply::text("A is done.")]))
            .when(move |request| news("is over:")(request).then(|| Reply::text("A part of it is done.")))
            .when(move |request| {
                let both =
                    || Reply::new().tool("u", "task_update", cancel.clone()).tool("v", "task_update", answer.clone());
                news("Which one?")(request).then(both)
            })
            .when(move |request| request.contains("Cancelled").then(|| Reply::text("Told.")))
            .on(news("please"), plan(more)),
    );
    let program = Program::team(&server);
    let ran = program.run(&["-p", "go on, please", "--approve", "never"]);
    assert_eq!((ran.code, ran.out.as_str()), (8, "A part of it is done.\n"), "{ran:?}");
    let asked = server.requests();
    assert!(!asked.iter().any(|request| task("b")(request) || task("c")(request)));
    assert!(asked.iter().any(|request| request.contains("Cancelled, with the tasks that build on it: c.")));
    assert_eq!(events(&program, "", "task_cancelled").len(), 2);
}

/// Once a task is done, its owner corrects the task's files for the lead without a question; other files ask.
#[test]
fn a_correction_of_a_finished_task_asks_only_outside_its_files() {
    let steps = vec![
        write("a.txt", "first\n"),
        Reply::text("Done."),
        write("a.txt", "second\n"),
        Reply::text("Corrected once."),
        write("a.txt", "third\n"),
        write("b.txt", "elsewhere\n"),
        Reply::text("Corrected twice."),
    ];
    let tell = |words: &str| Reply::new().tool("m", "send_message", json!({ "to": "leo", "message": words }));
    let tasks = json!([{ "id": "a", "title": "a", "agent": "leo", "description": "Write it.", "owns": ["a.txt"] }]);
    let server = ModelServer::start(
        Script::new()
            .when(voice(task("a"), steps))
            .when(move |request| news("is over:")(request).then(|| tell("Make it second.")))
            .when(move |request| news("Corrected once.")(request).then(|| tell("Make it third.")))
            .when(move |request| news("Corrected twice.")(request).then(|| Reply::text("All is well.")))
            .on(news("please"), plan(tasks)),
    );
    let program = Program::team(&server);
    let first = waiting(&program.run(&["-p", "go on, please"]));
    ok(program.run(&["approve", &first]));
    let ran = program.run(&["-c", "-p", ""]);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert_eq!(program.read("a.txt"), "third\n", "{ran:?}");
    assert!(!program.project().join("b.txt").exists());
    let asked: Vec<Value> = program.journal().into_iter().filter(|entry| entry["event"] == "question_asked").collect();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(asked[0].to_string().contains("b.txt"), "{asked:?}");
    let strict = program.run(&["replay", "--strict"]);
    assert!(strict.code == 0 && strict.out.contains("would be the same"), "{strict:?}");
}
