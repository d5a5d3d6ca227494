//! Experts' answers that are kept: asked once, used again by another process, looked at and cleared.

use max_team_testkit::{ModelServer, Recorded, Reply, Script};
use serde_json::{Value, json};

use crate::program::Program;

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
    assert!(none.code == 0 && none.out.contains("no answers are kept"), "{none:?}");

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
    assert!(last.contains("Three metres.\\n\\n[From the cache of `tides`, less than a minute old.]"), "{last}");
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
    assert!(shown.contains("data: {\"m\":3,\"secret\":\"gauge-7\"}") && shown.contains("said: Ten feet."), "{shown}");
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

#[test]
fn the_words_are_there_in_chinese() {
    let program = Program::alone().variable("LANG", "zh_CN.UTF-8");
    assert!(program.run(&["cache", "list"]).out.contains("没有缓存的答复"));
    let ran = program.run(&["cache", "clear", "tides"]);
    assert!(ran.code == 1 && ran.err.contains("没有缓存 `tides` 的答复"), "{ran:?}");
}
