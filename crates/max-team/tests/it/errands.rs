//! Skills that somebody else carries out: a checked call with the tools, the time and the shapes that were agreed.

use std::path::Path;

use max_team_testkit::{Gate, ModelServer, Recorded, Reply, Script};
use serde_json::{Value, json};

use crate::chat::Terminal;
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
fn an_answer_that_does_not_fit_is_sent_back_once() {
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
fn a_fork_gets_only_tools_of_its_caller() {
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

/// Whoever works for Max sees no more than his members do.
#[test]
fn a_contract_for_a_lead_is_kept_from_what_members_are() {
    let server = errands(vec![FITS()], |done| match done {
        0 => Reply::new().tool("r", "read_file", json!({ "path": ".env" })),
        _ => counts(json!(2)),
    });
    let program = Program::team(&server).file(".env", "TOKEN=swordfish\n");
    contract(&program, "[read_file]", "1m");
    let ran = program.run(&["-p", "how many zebras are there"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "done\n"), "{ran:?}");
    let (_, own) = told(&server);
    assert_eq!(own[1].tool_results(), 1, "it has tried");
    assert!(!server.requests().iter().any(|request| request.contains("swordfish")), "{}", own[1].body);
}

#[test]
fn a_rule_about_a_skill_applies_to_the_agent_that_carries_it_out() {
    for (flag, is_denied) in [("skill(name:count)", true), ("skill(name:other)", false)] {
        let server = errands(vec![FITS()], |_| counts(json!(2)));
        let program = Program::with(&server);
        contract(&program, "[read_file]", "1m");
        let ran = program.run(&["-p", "x", "--disallowedTools", flag]);
        assert_eq!(ran.out, "done\n", "{ran:?}");
        let (result, own) = told(&server);
        assert_eq!((result.contains("Not allowed (the rule"), own.is_empty()), (is_denied, is_denied), "{result}");
    }
}

/// An agent at the largest depth is not offered what only other agents could do for it, and is told so if it asks.
#[test]
fn agents_out_of_reach_are_not_offered() {
    let server = ModelServer::start(Script::new().when(|request: &Recorded| {
        let is_called = request.body["messages"][0].to_string().contains("look around");
        let call = json!({ "description": "d", "prompt": "look around", "type": "general" });
        Some(match (is_called, request.tool_results()) {
            (false, 0) => Reply::new().tool("a", "agent", call),
            (true, 0) => Reply::new().tool("s", "skill", FITS()),
            (true, _) => Reply::text("looked"),
            (false, _) => Reply::text("done"),
        })
    }));
    let program = Program::with(&server);
    contract(&program, "[read_file]", "1m");
    assert_eq!(program.run(&["-p", "x"]).out, "done\n");
    let requests = server.requests();
    let offered = |request: &Recorded| request.body["system"].to_string().contains("- count: ");
    assert_eq!([0, 1].map(|index| offered(&requests[index])), [true, false]);
    assert!(requests[2].contains("calls go at most 1 deep"), "{}", requests[2].body);
}

#[test]
fn the_agent_that_carries_a_skill_out_is_shown() {
    let server = errands(vec![FITS()], |_| counts(json!(2)));
    let program = Program::with(&server);
    contract(&program, "[read_file]", "1m");
    let mut terminal = Terminal::open(&program, &[]);
    terminal.wait("or give a task");
    terminal.keys(&["how many", "Enter"]);
    terminal.wait("tokens in");
    let screen = terminal.screen();
    assert!(screen.contains("\u{23fa} skill count") && screen.contains("skill:count ({"), "{screen}");
    let cost = program.run(&["cost", "--by", "agent"]).out;
    assert!(cost.contains("skill:count"), "{cost}");
}

/// Whether a request is of somebody who carries a forked skill out.
fn is_forked(request: &Recorded) -> bool {
    request.body["messages"][0].to_string().contains("Carry this skill out")
}

/// A model that asks for a skill and says what came of it, and somebody who carries it out by `calls` and then says `three
/// rooms`.
fn forks(input: Value, calls: Vec<(&'static str, Value)>) -> ModelServer {
    ModelServer::start(Script::new().when(move |request: &Recorded| {
        let done = request.tool_results();
        Some(match (is_forked(request), done) {
            (true, done) => match calls.get(done) {
                Some((tool, input)) => Reply::new().tool(format!("f{done}"), *tool, input.clone()),
                None => Reply::text("three rooms"),
            },
            (false, 0) => Reply::new().tool("t", "skill", input.clone()),
            (false, _) => Reply::text("done"),
        })
    }))
}

fn tour(program: &Program, head: &str) {
    let text = format!("---\nname: tour\ndescription: Shows around.\n{head}---\nTour $ARGUMENTS. !`echo hi`\n");
    write(&program.home().join("skills/tour/SKILL.md"), &text);
    write(&program.home().join("skills/tour/references/map.md"), "the east wing\n");
}

/// What whoever asked was told, and the first request of whoever carried it out.
fn of_fork(server: &ModelServer) -> (String, Option<Recorded>) {
    let (forked, asked): (Vec<_>, Vec<_>) = server.requests().into_iter().partition(is_forked);
    (asked.last().unwrap().body["messages"].to_string(), forked.into_iter().next())
}

#[test]
fn a_forked_skill_has_a_context_of_its_own_and_its_answer_comes_back() {
    let read = ("read_file", json!({ "path": "@skill/tour/references/map.md" }));
    let server = forks(json!({ "name": "tour", "arguments": "the zoo" }), vec![read]);
    let program = Program::with(&server);
    tour(&program, "context: fork\nagent: Explore\n");
    let ran = program.run(&["-p", "show me around"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "done\n"), "{ran:?}");
    let (told, forked) = of_fork(&server);
    assert!(told.contains("three rooms") && !told.contains("Tour the zoo"), "{told}");
    let forked = forked.unwrap();
    assert!(forked.contains("Tour the zoo. ") && forked.contains("`echo hi` was not run"), "{}", forked.body);
    assert!(!forked.contains("show me around") && !tools(&forked).contains(&"edit_file".to_owned()));
    let last = server.requests().into_iter().rfind(is_forked).unwrap();
    assert!(last.contains("the east wing"), "its files can be read: {}", last.body);
}

#[test]
fn a_fork_has_the_model_and_the_tools_that_the_skill_says() {
    for (head, want_model, has_shell) in [
        ("context: fork\n", "opus", true),
        ("context: fork\nmodel: haiku\ndisallowed-tools: Bash Edit\n", "haiku", false),
        ("context: fork\nmodel: no-such-model\nagent: general-purpose\n", "opus", true),
    ] {
        let server = forks(json!({ "name": "tour" }), Vec::new());
        let program = Program::with(&server);
        tour(&program, head);
        let ran = program.run(&["-p", "x", "--model", "opus"]);
        assert_eq!(ran.out, "done\n", "{ran:?}");
        let forked = of_fork(&server).1.unwrap();
        let model = forked.body["model"].as_str().unwrap().to_owned();
        assert!(model.contains(want_model), "{head}: {model}");
        assert_eq!(tools(&forked).contains(&"run_shell".to_owned()), has_shell, "{head}");
    }
}

#[test]
fn a_lead_forks_skills_under_the_same_rules() {
    let server = forks(json!({ "name": "tour" }), Vec::new());
    let program = Program::team(&server);
    tour(&program, "context: fork\n");
    assert_eq!(program.run(&["-p", "x"]).out, "done\n");
    assert!(of_fork(&server).0.contains("three rooms"));
    for (head, flag, want) in [
        ("context: fork\nagent: explore\n", "Agent(explore)", "Not allowed (the rule"),
        ("context: fork\nagent: nobody\n", "Agent(explore)", "there is no agent `nobody` that you may call"),
    ] {
        let server = forks(json!({ "name": "tour" }), Vec::new());
        let program = Program::team(&server);
        tour(&program, head);
        assert_eq!(program.run(&["-p", "x", "--disallowedTools", flag]).out, "done\n");
        let (told, forked) = of_fork(&server);
        assert!(told.contains(want) && forked.is_none(), "{head}: {told}");
    }
}

#[test]
fn a_fork_that_is_only_for_the_user_runs_when_they_ask() {
    for (words, want) in [("/tour the zoo", "three rooms"), ("show me around", "only the user can ask for it")] {
        let server = forks(json!({ "name": "tour", "arguments": "the zoo" }), Vec::new());
        let program = Program::with(&server);
        tour(&program, "context: fork\ndisable-model-invocation: true\n");
        assert_eq!(program.run(&["-p", words]).out, "done\n");
        let first = server.requests().into_iter().next().unwrap();
        assert!(!first.contains("Tour the zoo"), "its text is for whoever carries it out: {}", first.body);
        assert!(of_fork(&server).0.contains(want), "{words}: {}", of_fork(&server).0);
    }
}

#[test]
fn the_keys_of_a_skill_are_shown_also_those_without_effect() {
    let server = ModelServer::start(Script::new().when(|_: &Recorded| Some(Reply::text("done"))));
    let program = Program::with(&server);
    tour(&program, "context: fork\nagent: Explore\nmodel: haiku\nbackground: true\nhooks: {Stop: []}\n");
    let shown = program.run(&["skills", "show", "tour"]).out;
    assert!(shown.contains("carried out by: explore\n"), "{shown}");
    assert!(shown.contains("without effect here: background, hooks\n"), "{shown}");
    tour(&program, "model: haiku\neffort: high\npaths: src/**/*.{ts,tsx}, docs/**\n");
    let shown = program.run(&["skills", "show", "tour", "--json"]).json();
    assert_eq!(shown["without_effect"], json!(["model", "effort"]));
    assert_eq!(shown["paths"], json!(["src/**/*.{ts,tsx}", "docs/**"]));
    assert_eq!(program.run(&["-p", "x"]).out, "done\n");
    let listed = server.requests()[0].body["system"].to_string();
    let want = "- tour: (Only for work on files that match `src/**/*.{ts,tsx}`, `docs/**`.) Shows around.";
    assert!(listed.contains(want), "{listed}");
    tour(&program, "context: spoon\neffort: much\n");
    let odd = program.run(&["skills", "check", "tour"]);
    assert!(odd.out.contains("`context` can only be `fork`"), "{odd:?}");
}
