//! The fixed input of a request: the system text and the tool schemas, which every call of an agent pays for again.

use max_team_testkit::{ModelServer, Recorded, Reply, Script};
use serde_json::json;

use crate::program::Program;

/// Bytes per token, as the program estimates before a provider has counted.
const BYTES_PER_TOKEN: usize = 4;

/// The most tokens of fixed input per kind of agent, in a project without instruction files.
const LEAD_TOKENS_MAX: usize = 4_500;
const TEAMMATE_TOKENS_MAX: usize = 3_500;
const CODER_TOKENS_MAX: usize = 3_500;
const EXPLORE_TOKENS_MAX: usize = 1_800;
const GENERAL_TOKENS_MAX: usize = 3_000;
const EXPERT_TOKENS_MAX: usize = 1_500;

fn tokens(request: &Recorded) -> usize {
    let part = |name: &str| request.body.get(name).map_or(0, |part| part.to_string().len());
    (part("system") + part("tools")).div_ceil(BYTES_PER_TOKEN)
}

/// The names of the tools that a request offers.
pub(crate) fn offered(request: &Recorded) -> Vec<String> {
    let tools = request.body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// One run in which the lead asks an agent of each kind, and delegates to a teammate.
fn requests() -> Vec<(&'static str, Recorded)> {
    let kinds = ["leo", "explore", "general", "weather", "teammate"];
    let mut calls = Reply::text("I ask all of them.");
    for kind in &kinds[..4] {
        let input = json!({ "description": "say", "prompt": format!("you are asked as {kind}"), "type": kind });
        calls = calls.tool(*kind, "agent", input);
    }
    let teammate = json!({ "name": "ann", "role": "helper", "prompt": "you are asked as teammate" });
    calls = calls.tool("teammate", "spawn_teammate", teammate);
    let is_for = |request: &Recorded, kind: &str| {
        request.user_texts().first().is_some_and(|text| text.contains(&format!("asked as {kind}")))
    };
    let mut script = Script::new();
    for kind in kinds {
        script = script.when(move |request| is_for(request, kind).then(|| Reply::text(format!("{kind} is here."))));
    }
    let server = ModelServer::start(script.then(calls).then(Reply::text("Done.")).then(Reply::text("Done.")));
    let ran = Program::team(&server).run(&["-p", "ask everybody"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let requests = server.requests();
    let mut found = vec![("lead", requests[0].clone())];
    for kind in kinds {
        let request = requests.iter().find(|request| is_for(request, kind));
        found.push((kind, request.unwrap_or_else(|| panic!("no request of `{kind}`: {ran:?}")).clone()));
    }
    found
}

#[test]
fn the_fixed_input_of_each_kind_of_agent_is_small() {
    let limits = [
        ("lead", LEAD_TOKENS_MAX),
        ("leo", CODER_TOKENS_MAX),
        ("explore", EXPLORE_TOKENS_MAX),
        ("general", GENERAL_TOKENS_MAX),
        ("weather", EXPERT_TOKENS_MAX),
        ("teammate", TEAMMATE_TOKENS_MAX),
    ];
    let mut over = Vec::new();
    for ((kind, request), (_, most)) in requests().iter().zip(limits) {
        let (tokens, tools) = (tokens(request), offered(request));
        println!("{kind:<9} {tokens:>5} of {most} tokens; {} tools: {}", tools.len(), tools.join(" "));
        if std::env::var_os("PARTS").is_some() {
            println!("  system {}", request.body["system"].to_string().len() / 4);
            for tool in request.body["tools"].as_array().unwrap() {
                println!("  {} {}", tool["name"], tool.to_string().len() / 4);
            }
        }
        if tokens > most {
            over.push(format!("{kind}: {tokens} > {most}"));
        }
    }
    assert!(over.is_empty(), "{over:?}");
}

#[test]
fn no_two_tools_that_an_agent_is_offered_have_nearly_the_same_name() {
    let bare = |name: &str| name.replace('_', "").to_lowercase();
    for (kind, request) in requests() {
        let tools = offered(&request);
        for tool in &tools {
            let alike: Vec<_> = tools.iter().filter(|other| bare(other) == bare(tool)).collect();
            assert_eq!(alike.len(), 1, "{kind}: {alike:?}");
        }
    }
}

/// Every name that a default lead was once offered still works, and a search describes a tool from the next request on.
#[test]
fn tools_that_are_not_offered_work_by_name_and_are_found_by_search() {
    let script = Script::new()
        .on(|request| request.contains("You are Leo"), Reply::text("Hello."))
        .then(
            Reply::new()
                .tool("a", "TaskCreate", json!({ "subject": "Write tests", "description": "All of them." }))
                .tool("b", "task_create", json!({ "title": "Greet", "description": "Say hello.", "agent": "leo" }))
                .tool("c", "dispatch_task", json!({ "task_id": "2" })),
        )
        .then(Reply::new().tool("d", "task_update", json!({ "task_id": "1", "status": "completed" })).tool(
            "e",
            "tool_search",
            json!({ "query": "add a task to the shared list" }),
        ))
        .then(Reply::new().tool("f", "task_query", json!({})).tool("g", "tool_search", json!({ "query": "天气" })))
        .then(Reply::text("done"))
        .then(Reply::text("again"));
    let server = ModelServer::start(script);
    let program = Program::team(&server);
    let ran = program.run(&["-p", "go"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let leads = |request: &&Recorded| !request.contains("You are Leo");
    let requests: Vec<Recorded> = server.requests().iter().filter(leads).cloned().collect();
    let last = &requests[3].body["messages"].to_string();
    for told in
        ["Hello.", "Task #1", "You can call these from now on", "[completed] Write tests", "No tool fits `天气`"]
    {
        assert!(last.contains(told), "{told}: {last}");
    }
    let has = |request: &Recorded| offered(request).contains(&"task_create".to_owned());
    assert_eq!(requests.iter().map(has).collect::<Vec<_>>(), [false, false, true, true]);
    // It follows from the conversation, so the next process describes it, too.
    assert_eq!(program.run(&["-c", "-p", "more"]).code, 0);
    assert!(has(server.requests().last().unwrap()));
}

/// A member is the same agent however it is reached: its prompt, its tools and its limits.
#[test]
fn a_member_is_the_same_agent_on_every_way_to_it() {
    const WORK: &str = "You have been found by";
    let way = |request: &Recorded| {
        let text = request.user_texts().first().cloned().unwrap_or_default();
        text.split_once(WORK).map(|(_, way)| way.split_whitespace().next().unwrap_or_default().to_owned())
    };
    let told = |way: &str| format!("{WORK} {way} now");
    let plan =
        json!({ "goal": "g", "tasks": [{ "id": "t", "agent": "leo", "description": told("plan"), "owns": [] }] });
    let script = Script::new()
        .when(move |request| way(request).map(|_| Reply::text("Here.")))
        .then(
            Reply::new()
                .tool("a", "agent", json!({ "type": "leo", "prompt": told("agent") }))
                .tool("b", "dispatch_task", json!({ "agent": "leo", "description": told("dispatch") }))
                .tool(
                    "c",
                    "spawn_teammate",
                    json!({ "name": "leo", "type": "leo", "role": "r", "prompt": told("spawn") }),
                ),
        )
        .then(Reply::new().tool("d", "submit_plan", plan))
        .then(Reply::text("done"))
        .then(Reply::text("done"));
    let server = ModelServer::start(script);
    let ran = Program::team(&server).run(&["-p", "go", "--approve", "never"]);
    let requests = server.requests();
    let mut kinds: Vec<(String, Recorded)> =
        requests.iter().filter_map(|request| Some((way(request)?, request.clone()))).collect();
    kinds.sort_by(|(one, _), (other, _)| one.cmp(other));
    let names: Vec<&str> = kinds.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["agent", "dispatch", "plan", "spawn"], "{ran:?}");
    for (name, request) in &kinds {
        let tools: Vec<String> = offered(request).into_iter().filter(|tool| tool != "send_message").collect();
        assert_eq!(tools, offered(&kinds[0].1), "{name}");
        assert_eq!(request.body["system"], kinds[0].1.body["system"], "{name}");
    }
}
