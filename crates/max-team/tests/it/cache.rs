//! Answers that are kept: asked once, used again by another process, by a call or a plan, looked at and cleared.

use max_team_testkit::{ModelServer, Recorded, Reply, Script};
use serde_json::{Value, json};

use crate::plans::{news, task, voice, write};
use crate::program::{Program, Ran};

const TIDES: &str = "---\nname: tides\ntype: sub\ndescription: Knows the tides\ncache:\n  ttl: 7200\n  keys: [port]\n\
                     tools: []\n---\nSay how high the water is.\n";

/// What an expert was handed, if a request is one of an expert's.
fn handed(request: &Recorded) -> Option<Value> {
    let first: Value = serde_json::from_str(request.user_texts().first()?).ok()?;
    first.get("args").is_some().then_some(first)
}

fn call(arguments: &Value) -> Reply {
    Reply::new().tool("t1", "task", json!({ "agent": "tides", "arguments": arguments }))
}

/// A lead that makes one call per run; an expert that has found something, or speaks about what it was handed.
fn server(calls: &[Value]) -> ModelServer {
    let mut script = Script::new().when(|request: &Recorded| {
        let data = handed(request)?["cache_data"].clone();
        let fresh = "---RESULT---\n{\"m\": 3, \"secret\": \"gauge-7\"}\n---TEXT---\nThree metres.";
        Some(Reply::text(if data.is_null() { fresh } else { "---TEXT---\nTen feet." }))
    });
    for arguments in calls {
        script = script.then(call(arguments)).then(Reply::text("Told."));
    }
    ModelServer::start(script)
}

#[test]
fn an_answer_serves_the_next_process_and_can_be_cleared() {
    let (metres, feet) = (json!({ "port": "Hamburg" }), json!({ "port": "Hamburg", "units": "ft" }));
    let server = server(&[metres.clone(), metres.clone(), feet.clone(), metres.clone()]);
    let program = Program::team(&server).file(".max-team/agents/tides.md", TIDES);
    let none = program.run(&["cache", "list"]);
    assert!(none.code == 0 && none.out.contains("no answers are cached"), "{none:?}");

    let ask = || {
        let before = server.requests().len();
        let ran = program.run(&["-p", "how high?"]);
        assert_eq!((ran.code, ran.out.trim()), (0, "Told."), "{ran:?}");
        let requests = server.requests().split_off(before);
        let last = requests.last().unwrap().body.to_string();
        assert!(!last.contains("gauge-7"), "what was found is not for the lead: {last}");
        (requests.iter().filter_map(handed).collect::<Vec<_>>(), last)
    };
    let (told, last) = ask();
    assert_eq!(told, [json!({ "args": metres, "cache_data": null })]);
    assert!(last.contains("Three metres.") && !last.contains("From the cache"), "{last}");
    let (told, last) = ask();
    assert!(told.is_empty(), "no model was asked: {told:?}");
    assert!(
        last.contains(
            "Three metres.\\n\\n[From the cache of `tides`, less than a minute old; `fresh: true` asks anew.]"
        ),
        "{last}"
    );
    let (told, last) = ask();
    assert_eq!(told, [json!({ "args": feet, "cache_data": { "m": 3, "secret": "gauge-7" } })]);
    assert!(last.contains("Ten feet."), "{last}");

    let kept = program.run(&["cache", "list", "--json"]).json();
    let [ten, three] = kept.as_array().unwrap().as_slice() else { panic!("{kept}") };
    assert_eq!((&ten["raw"], &ten["text"], &ten["data"]["m"]), (&feet, &json!("Ten feet."), &json!(3)));
    assert_eq!((&three["raw"], &three["ttl_s"], &three["fresh"]), (&metres, &json!(7200), &json!(true)));
    assert_eq!(
        (&ten["key"], &ten["created_at_ms"]),
        (&three["key"], &three["created_at_ms"]),
        "as old as what was found"
    );
    let key = ten["key"].as_str().unwrap();
    let list = program.run(&["cache", "list"]).out;
    assert!(list.starts_with("EXPERT") && list.contains(key) && list.contains("119 min left"), "{list}");
    let shown = program.run(&["cache", "show", "tides", &key[..4]]).out;
    assert!(
        shown.contains("data: {\"m\":3,\"secret\":\"[redacted]\"}") && shown.contains("said: Ten feet."),
        "{shown}"
    );
    let wrong = program.run(&["cache", "show", "tides", "zz"]);
    assert!(wrong.code == 1 && wrong.err.contains("under `zz`"), "{wrong:?}");

    // The rows follow from the log.
    assert_eq!(program.run(&["doctor", "--rebuild"]).code, 0);
    assert_eq!(program.run(&["cache", "list", "--json"]).json(), kept);

    let cleared = program.run(&["cache", "clear", "tides"]);
    assert_eq!((cleared.code, cleared.out.as_str()), (0, "2 answers cleared\n"), "{cleared:?}");
    assert_eq!(program.run(&["cache", "list", "--json"]).json(), json!([]));
    let (told, _) = ask();
    assert_eq!(told, [json!({ "args": metres, "cache_data": null })], "it is asked again");
    assert!(server.problems().is_empty(), "{:?}", server.problems());
}

/// Members whose answers are kept: one that only speaks, and one that can write.
fn members(program: Program) -> Program {
    let member = |name: &str, tools: &str| {
        format!(
            "---\nname: {name}\nrole: {name}\ndescription: A {name}\ncache: {{ttl: 2h}}\ntools: [{tools}]\n---\nAnswer.\n"
        )
    };
    program
        .file(".max-team/agents/tides.md", member("tides", ""))
        .file(".max-team/agents/scribe.md", member("scribe", "write_file"))
}

/// Runs a plan that is expected to go well; what it said, and which of the tasks were asked of a model.
fn run(program: &Program, server: &ModelServer, tasks: &[&'static str]) -> (Ran, Vec<&'static str>) {
    let before = server.requests().len();
    let ran = program.run(&["run", "plan.yaml", "--approve", "never", "--permission-mode", "acceptEdits"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let requests = server.requests().split_off(before);
    let is_asked = |name: &&'static str| requests.iter().any(|request| task(name)(request));
    (ran, tasks.iter().copied().filter(is_asked).collect())
}

#[test]
fn a_repeated_step_of_a_plan_is_answered_without_a_model_while_its_inputs_are_the_same() {
    let mut runs = 0;
    let server = ModelServer::start(
        Script::new()
            .when(move |request: &Recorded| {
                let port = if runs < 2 { "Hamburg" } else { "Bremen" };
                runs += usize::from(task("port")(request));
                task("port")(request).then(|| Reply::text(port))
            })
            .on(task("tide"), Reply::text("Three metres.\n---CACHE---\nnot taken apart"))
            .on(task("trip"), Reply::text("At noon."))
            .on(news("is over:"), Reply::text("Sail at noon.")),
    );
    let plan = "goal: sail\ntasks:\n  - {id: port, title: port, agent: ada, do: Name the port.}\n\
                \x20 - {id: tide, title: tide, agent: tides, do: How high is the water?, needs: [port]}\n\
                \x20 - {id: trip, title: trip, agent: ada, do: When do we leave?, needs: [tide]}\n";
    let program = members(Program::team(&server)).file("plan.yaml", plan);
    let all = ["port", "tide", "trip"];
    let (first, asked) = run(&program, &server, &all);
    assert!(asked == all && !first.err.contains("cache"), "{asked:?} {first:?}");

    let (second, asked) = run(&program, &server, &all);
    assert_eq!(asked, ["port", "trip"], "the same port, the same tide");
    let words = "tide: done, unverified, from the cache, less than a minute old";
    assert!(second.err.contains(words) && second.err.contains("3 of 3 tasks done, 1 from the cache"), "{second:?}");
    let requests = server.requests();
    let trip = requests.iter().rfind(|request| task("trip")(request)).unwrap();
    assert!(trip.user_texts()[0].contains("Three metres.\n---CACHE---\nnot taken apart"), "handed on as it was");
    let report = requests.last().unwrap().last_user();
    assert!(report.contains("3 of 3 tasks done, 1 from the cache"), "{report}");
    assert!(report.contains("tide by tides: done (unverified, from the cache, less than a minute old)"), "{report}");

    // Everybody who looks sees it, and nobody was started for it.
    let shown = program.run(&["plans", "show"]).out;
    assert!(shown.contains("result: unverified, from the cache, less than a minute old"), "{shown}");
    let traced = program.run(&["trace"]).out;
    assert!(traced.contains("done, unverified, from the cache, less than a minute old"), "{traced}");
    let json = program.run(&["plans", "show", "--json"]).json();
    let kept = program.run(&["cache", "list", "--json"]).json();
    assert_eq!((&kept[0]["expert"], &kept[0]["raw"]["task"]), (&json!("tides"), &json!("tide")), "{kept}");
    assert_eq!(json["tasks"][1]["result"]["cached"]["key"], kept[0]["key"], "{json}");
    assert_eq!(json["tally"]["cached"], json!(1), "{json}");
    let tides = |rows: &[Value]| {
        let is_tides = |row: &&Value| row["payload"]["agent_started"]["definition"]["name"] == "tides";
        rows.iter().filter(is_tides).count()
    };
    assert_eq!(tides(&program.journal()), 1);

    let (third, asked) = run(&program, &server, &all);
    assert!(asked == all && !third.err.contains("cache"), "another port: {asked:?} {third:?}");
    assert_eq!(program.run(&["cache", "clear", "tides"]).out, "2 answers cleared\n");
    let (_, asked) = run(&program, &server, &all);
    assert_eq!(asked, all, "nothing is kept any more");
    assert_eq!(tides(&program.journal()), 3);
    assert!(server.problems().is_empty(), "{:?}", server.problems());
}

#[test]
fn a_step_that_did_more_than_look_is_done_again() {
    let server = ModelServer::start(
        Script::new()
            .when(voice(task("note"), vec![write("note.txt", "hello\n"), Reply::text("Written.")]))
            .on(news("is over:"), Reply::text("Over.")),
    );
    let plan = "goal: write\ntasks: [{id: note, title: note, agent: scribe, do: Write a note.}]\n";
    let program = members(Program::team(&server)).file("plan.yaml", plan);
    for _ in 0..2 {
        let (_, asked) = run(&program, &server, &["note"]);
        assert_eq!((asked, program.read("note.txt")), (vec!["note"], "hello\n".to_owned()));
        std::fs::remove_file(program.project().join("note.txt")).unwrap();
    }
    assert_eq!(program.run(&["cache", "list", "--json"]).json(), json!([]));
}

#[test]
fn a_step_that_builds_on_a_file_is_done_again_when_the_file_is_another() {
    let mut runs = 0;
    let server = ModelServer::start(
        Script::new()
            .when(move |request: &Recorded| {
                let is_done = request.body["messages"].as_array()?.len() > 1;
                let port = ["Hamburg\n", "Bremen\n", "Bremen\n"].get(runs).copied().unwrap_or_default();
                runs += usize::from(task("port")(request) && is_done);
                let reply = if is_done { Reply::text("Written.") } else { write("port.txt", port) };
                task("port")(request).then_some(reply)
            })
            .on(task("tide"), Reply::text("Three metres."))
            .on(news("is over:"), Reply::text("Over.")),
    );
    let plan = "goal: sail\ntasks:\n  - {id: port, title: port, agent: scribe, do: Write it., outputs: [port.txt]}\n\
                \x20 - {id: tide, title: tide, agent: tides, do: How high is the water?, needs: [port]}\n";
    let program = members(Program::team(&server)).file("plan.yaml", plan);
    for asks in [&["port", "tide"][..], &["port", "tide"], &["port"]] {
        let (ran, asked) = run(&program, &server, &["port", "tide"]);
        assert_eq!(asked, asks, "{ran:?}");
    }
}

#[test]
fn the_words_are_there_in_chinese() {
    let program = Program::alone().variable("LANG", "zh_CN.UTF-8");
    assert!(program.run(&["cache", "list"]).out.contains("没有缓存的答复"));
    let ran = program.run(&["cache", "clear", "tides"]);
    assert!(ran.code == 1 && ran.err.contains("没有缓存 `tides` 的答复"), "{ran:?}");
}
