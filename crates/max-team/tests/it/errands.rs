//! Skills that somebody else carries out: a checked call with the tools, the time and the shapes that were agreed.

use std::path::Path;

use max_team_testkit::{Gate, ModelServer, Recorded, Reply, Script};
use serde_json::{Value, json};

use crate::program::Program;

/// What tells the requests of whoever carries the skill out from those of whoever asked for it.
const MARK: &str = "You count zebras.";

/// A contract in the user's own folder.
fn contract(program: &Program, tools: &str, timeout: &str) {
    let file = format!(
        "name: count\ndescription: Counts zebras.\nprompt: {MARK}\ntools: {tools}\ntimeout: {timeout}\n\
         input: {{properties: {{path: {{type: string}}}}, required: [path]}}\n\
         output: {{properties: {{n: {{type: integer}}}}, required: [n], additionalProperties: false}}\n"
    );
    write(&program.home().join("skills/count.yaml"), &file);
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn is_marked(request: &Recorded) -> bool {
    request.body["system"].to_string().contains(MARK)
}

fn counts(number: Value) -> Reply {
    Reply::new().tool("s", "structured_output", json!({ "n": number }))
}

/// A model that asks for one skill after the other and says `done`, and somebody who carries them out: `answer` gets the
/// results it has so far.
fn errands(inputs: Vec<Value>, answer: impl Fn(usize) -> Reply + Send + Sync + 'static) -> ModelServer {
    ModelServer::start(Script::new().when(move |request: &Recorded| {
        let done = request.tool_results();
        Some(match is_marked(request) {
            true => answer(done),
            false => match inputs.get(done) {
                Some(input) => Reply::new().tool(format!("t{done}"), "skill", input.clone()),
                None => Reply::text("done"),
            },
        })
    }))
}

/// What the last tool returned to whoever asked, and the requests of whoever carried it out.
fn told(server: &ModelServer) -> (String, Vec<Recorded>) {
    let (own, asked): (Vec<Recorded>, Vec<Recorded>) = server.requests().into_iter().partition(is_marked);
    let content = asked.last().unwrap().body["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    let result = content.as_array().unwrap().iter().rfind(|part| part["type"] == "tool_result").unwrap().clone();
    let texts = result["content"].as_array().unwrap().iter().filter_map(|part| part["text"].as_str());
    (texts.collect::<Vec<_>>().concat(), own)
}

fn tools(request: &Recorded) -> Vec<String> {
    let tools = request.body["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

const FITS: fn() -> Value = || json!({ "name": "count", "input": { "path": "zoo" } });

#[test]
fn a_contract_is_a_checked_call() {
    let server = errands(vec![json!({ "name": "count", "input": { "path": 1 } }), FITS()], |done| match done {
        0 => Reply::new().tool("r", "read_file", json!({ "path": "zoo" })),
        1 => counts(json!("two")),
        _ => counts(json!(2)),
    });
    let program = Program::with(&server).file("zoo", "zebra zebra\n");
    contract(&program, "[read_file]", "1m");
    let ran = program.run(&["-p", "how many zebras are there"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "done\n"), "{ran:?}");
    let (result, own) = told(&server);
    assert_eq!(serde_json::from_str::<Value>(&result).unwrap(), json!({ "n": 2 }), "{result}");
    assert_eq!(tools(&own[0]), ["read_file", "structured_output"]);
    let first = own[0].body["messages"].to_string();
    assert!(first.contains(r#"\"path\": \"zoo\""#) && !first.contains("how many zebras"), "{first}");
    assert!(own[1].contains("zebra zebra") && own[2].contains("does not fit"), "{}", own[2].body);
    let refused = server.requests()[1].body["messages"].to_string();
    assert!(refused.contains("the input does not fit") && refused.contains("it takes an `input`"), "{refused}");
    assert_eq!(own.len(), 3, "nobody began for the input that did not fit");
    let started = program.journal().into_iter().filter(|entry| entry["event"] == "agent_started");
    assert_eq!(started.count(), 2, "the one who was asked, and the one who counted");
}

#[test]
fn what_does_not_fit_is_sent_back_once() {
    let server = errands(vec![FITS()], |done| counts(json!(format!("{done} or so"))));
    let program = Program::with(&server);
    contract(&program, "[read_file]", "1m");
    assert_eq!(program.run(&["-p", "x"]).out, "done\n");
    let (result, own) = told(&server);
    assert_eq!(own.len(), 2, "once, and once more");
    assert!(result.contains("`skill:count` did not finish: the model did not give the structured answer"), "{result}");
}

#[test]
fn its_time_is_held() {
    let never = Gate::new();
    let held = never.clone();
    let server = errands(vec![FITS()], move |_| counts(json!(2)).gate_before(&held));
    let program = Program::with(&server);
    contract(&program, "[read_file]", "1s");
    assert_eq!(program.run(&["-p", "x"]).out, "done\n");
    let (result, _) = told(&server);
    never.open();
    assert!(result.contains("`skill:count` did not finish: its time is over: it may take 1 s"), "{result}");
}

#[test]
fn it_takes_tools_that_whoever_asks_has() {
    let server = errands(vec![FITS()], |_| counts(json!(2)));
    let agents = "agents:\n  - {name: web, role: reader, system_prompt: read, tools: [list_dir, skill]}\n  \
                  - {name: dev, role: coder, system_prompt: code, tools: [read_file, edit_file, skill]}\n";
    let program = Program::team(&server).file("agents.yaml", agents);
    contract(&program, "[read_file]", "1m");
    for (who, is_offered) in [("web", false), ("dev", true)] {
        let ran = program.run(&["-p", "x", "--agents", "agents.yaml", "--agent", who]);
        assert_eq!(ran.out, "done\n", "{ran:?}");
        let (result, own) = told(&server);
        let asked = server.requests().into_iter().rfind(|request| !is_marked(request)).unwrap();
        assert_eq!(asked.body["system"].to_string().contains("- count: "), is_offered, "{who}");
        match is_offered {
            true => assert_eq!((result.contains("\"n\": 2"), tools(&own[0]).len()), (true, 2), "{result}"),
            false => assert!(result.contains("you do not have all of them") && own.is_empty(), "{result}"),
        }
    }
}

/// Max has no hands; what is done for him is done by others, within the session.
#[test]
fn a_lead_has_a_contract_carried_out() {
    let server = errands(vec![FITS()], |done| match done {
        0 => Reply::new().tool("r", "read_file", json!({ "path": "zoo" })),
        _ => counts(json!(2)),
    });
    let program = Program::team(&server).file("zoo", "zebra zebra\n");
    contract(&program, "[read_file]", "1m");
    let ran = program.run(&["-p", "how many zebras are there"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "done\n"), "{ran:?}");
    let (result, own) = told(&server);
    assert_eq!(serde_json::from_str::<Value>(&result).unwrap(), json!({ "n": 2 }), "{result}");
    assert!(own[1].contains("zebra zebra"), "{}", own[1].body);
}

#[test]
fn a_rule_about_a_skill_is_a_rule_about_whoever_carries_it_out() {
    let server = errands(vec![FITS()], |_| counts(json!(2)));
    let program = Program::with(&server);
    contract(&program, "[read_file]", "1m");
    let ran = program.run(&["-p", "x", "--disallowedTools", "skill(name:count)"]);
    assert_eq!(ran.out, "done\n", "{ran:?}");
    let (result, own) = told(&server);
    assert!(result.contains("Not allowed by the rule") && own.is_empty(), "{result}");
}
