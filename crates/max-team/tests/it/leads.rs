//! Leads as definitions make them: their tools, their prompt, their time, and the agents that they call.

use max_team_testkit::{Gate, ModelServer, Recorded, Reply, Script};
use serde_json::{Value, json};

use crate::program::{Program, Ran};

const DIALOG: &str = "---\nname: dialog\ntype: main\ndescription: The host.\ntools:\n  - task\n  - memory.read\n  \
                      - memory.write\n---\nYou are the host of this house.\n";

/// Writes a definition of the user's own.
fn own(program: &Program, name: &str, text: &str) {
    let folder = program.home().join("agents");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("{name}.md")), text).unwrap();
}

fn tools(request: &Recorded) -> String {
    let tools = request.body["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

fn system(request: &Recorded) -> String {
    let parts = request.body["system"].as_array().unwrap();
    parts.iter().filter_map(|part| part["text"].as_str()).collect()
}

fn ok(ran: &Ran) {
    assert_eq!(ran.code, 0, "{ran:?}");
}

/// What the lead's calls came to, in order.
fn results(request: &Recorded) -> Vec<String> {
    let messages = request.body["messages"].as_array().unwrap();
    let parts = messages.iter().flat_map(|message| message["content"].as_array().cloned().unwrap_or_default());
    parts.filter(|part| part["type"] == "tool_result").map(|part| part["content"].to_string()).collect()
}

#[test]
fn a_host_has_the_tools_of_its_definition_and_hears_of_nothing_else() {
    let server = ModelServer::start([Reply::text("a"), Reply::text("b")]);
    let program = Program::team(&server);
    own(&program, "dialog-agent", DIALOG);
    ok(&program.run(&["-p", "hi"]));
    let first = &server.requests()[0];
    assert_eq!(tools(first), "memory_read memory_write task");
    assert!(system(first).starts_with("You are the host of this house."), "{}", system(first));
    assert!(!first.body.to_string().contains("leo") && !first.contains("coder"), "{}", first.body);
    // Everything but what is taken away.
    own(&program, "dialog-agent", "---\ntype: main\ndisallowedTools: submit_plan, spawn*, task_*\n---\nYou lead.\n");
    ok(&program.run(&["-p", "hi"]));
    let second = &server.requests()[1];
    assert_eq!(tools(second), "agent ask_user memory_read send_message skill tool_search");
    assert!(system(second).contains("`leo`"), "{}", system(second));
    let shown = program.run(&["agents", "show", "dialog", "--json"]).json();
    assert!(!shown["tools"].to_string().contains("submit_plan"), "{shown}");
}

#[test]
fn a_lead_that_a_project_brings_is_announced() {
    let server = ModelServer::start([Reply::text("a"), Reply::text("b"), Reply::text("c")]);
    let program = Program::team(&server);
    let ran = program.run(&["-p", "hi"]);
    assert!(!ran.err.contains("leads"), "{ran:?}");
    let program = program.file(".max-team/agents/boss.md", "---\nname: boss\ntype: main\n---\nYou lead.\n");
    let ran = program.run(&["-p", "hi"]);
    let want = ".max-team/agents/boss.md:2: the project's `boss` leads instead of the built-in lead";
    assert!(ran.err.contains(want), "{ran:?}");
    std::fs::remove_file(program.project().join(".max-team/agents/boss.md")).unwrap();
    let program =
        program.file("config/agents.yaml", "agents:\n- {name: max, role: team_lead, system_prompt: You lead.}\n");
    let ran = program.run(&["-p", "hi"]);
    assert!(ran.err.contains("config/agents.yaml: the project's `max` leads"), "{ran:?}");
}

#[test]
fn a_coordinator_keeps_its_own_prompt_and_three_tools() {
    let server = ModelServer::start([Reply::text("a"), Reply::text("b")]);
    let program = Program::team(&server);
    ok(&program.run(&["-p", "hi", "--coordinator"]));
    own(&program, "boss", "---\nname: boss\ntype: main\n---\nYou are Boss, and dry.\n");
    ok(&program.run(&["-p", "hi", "--coordinator"]));
    for (request, own) in server.requests().iter().zip(["You are Max, the lead", "You are Boss, and dry."]) {
        assert_eq!(tools(request), "agent ask_user send_message");
        let system = system(request);
        assert!(system.starts_with(own) && system.contains("Never leave the understanding"), "{system}");
        assert!(!system.contains("`submit_plan`") && system.contains("# Your members"), "{system}");
    }
}

#[test]
fn a_task_is_dispatched_by_its_id_alone() {
    let task = json!({ "title": "Say hello", "description": "Greet the world.", "agent": "leo" });
    let listed = json!({ "subject": "Look at the log", "description": "The newest lines." });
    let script = Script::new()
        .on(|request| request.contains("You are Leo"), Reply::text("Hello, world."))
        .on(|request| request.contains("You are Sam"), Reply::text("Nothing new."))
        .then(Reply::new().tool("a", "task_create", task).tool("b", "TaskCreate", listed))
        .then(Reply::new().tool("c", "dispatch_task", json!({ "task_id": "1" })))
        .then(Reply::new().tool("d", "dispatch_task", json!({ "task_id": "2", "agent": "sam" })))
        .then(Reply::new().tool("e", "dispatch_task", json!({ "task_id": "t9" })))
        .then(Reply::text("done"));
    let server = ModelServer::start(script);
    let program = Program::team(&server);
    let ran = program.run(&["-p", "go"]);
    ok(&ran);
    let requests = server.requests();
    let of = |name: &str| requests.iter().find(|request| request.contains(name)).unwrap().user_texts().concat();
    assert!(of("You are Leo").contains("Greet the world."), "{}", of("You are Leo"));
    assert!(of("You are Sam").contains("The newest lines.") && of("You are Sam").contains("task 2 of the shared list"));
    let told = results(requests.last().unwrap());
    assert!(told[2].contains("Hello, world.") && told[3].contains("Nothing new."), "{told:?}");
    assert!(told[4].contains("there is no task `t9`") && told[4].contains("there are `1`, `2`"), "{told:?}");
    // A rule about the member holds, whether or not the call names it.
    let script = Script::new()
        .then(Reply::new().tool("a", "TaskCreate", json!({ "subject": "s", "description": "d" })))
        .then(Reply::new().tool("b", "TaskUpdate", json!({ "taskId": "1", "owner": "leo" })))
        .then(Reply::new().tool("c", "dispatch_task", json!({ "task_id": "1" })))
        .then(Reply::text("done"));
    let server = ModelServer::start(script);
    let program = Program::team(&server);
    ok(&program.run(&["-p", "go", "--disallowed-tools", "Agent(leo)"]));
    let told = results(server.requests().last().unwrap());
    assert!(told[2].contains("call again with `agent: leo`"), "{told:?}");
}

#[test]
fn a_sub_agent_without_a_type_is_general_also_for_the_default_lead() {
    let call = json!({ "description": "count", "prompt": "Count to three." });
    let script = Script::new()
        .on(
            |request| request.contains("You carry out the task that you are given"),
            Reply::text("Three.").usage(100, 7, 0, 0),
        )
        .then(Reply::new().tool("a", "agent", call).usage(10, 1, 0, 0))
        .then(Reply::new().tool("b", "agent", json!({ "description": "d", "prompt": "p", "subagent_type": "genral" })))
        .then(Reply::text("done").usage(10, 2, 0, 0));
    let server = ModelServer::start(script);
    let program = Program::team(&server);
    let ran = program.run(&["-p", "go", "--output-format", "json"]);
    ok(&ran);
    let told = results(server.requests().last().unwrap());
    assert!(told[0].contains("Three."), "{told:?}");
    assert!(told[1].contains("there is no agent `genral`") && told[1].contains("did you mean `general`?"), "{told:?}");
    // Its tokens are the session's, like its money.
    let all = program.run(&["cost", "--json"]).json()["total"]["output_tokens"].clone();
    let result = ran.json();
    assert_eq!(result["usage"]["output_tokens"], all, "{result}");
    let sum: u64 =
        result["modelUsage"].as_object().unwrap().values().map(|used| used["output_tokens"].as_u64().unwrap()).sum();
    assert_eq!(json!(sum), all);
}

#[test]
fn every_agent_can_be_called_by_its_name_however_many_there_are() {
    let call = |name: &str| json!({ "description": "d", "prompt": "p", "type": name });
    let script = Script::new()
        .on(|request| request.contains("I am number 607"), Reply::text("Here."))
        .then(Reply::new().tool("a", "agent", call("e607")).tool("b", "agent", call("e6o7")))
        .then(Reply::text("done"));
    let server = ModelServer::start(script);
    let program = Program::team(&server);
    for number in 0..608 {
        own(&program, &format!("e{number}"), &format!("---\ndescription: One of many.\n---\nI am number {number}.\n"));
    }
    ok(&program.run(&["-p", "go"]));
    let requests = server.requests();
    let first = requests.first().unwrap().body["tools"].to_string();
    assert!(first.contains("are not listed; call one by its name") && first.len() < 100_000, "{}", first.len());
    let told = results(requests.last().unwrap());
    assert!(told[0].contains("Here."), "{told:?}");
    assert!(told[1].contains("there is no agent `e6o7`") && told[1].len() < 4_000, "{told:?}");
}

#[test]
fn calls_go_two_deep_where_the_user_says_so() {
    let call = |kind: &str| json!({ "description": "d", "prompt": "p", "type": kind });
    let script = Script::new()
        .on(|request| request.contains("You are Explore"), Reply::text("It is in src."))
        .when(move |request| {
            let is_general = request.contains("You carry out the task that you are given");
            is_general.then(|| match request.tool_results() {
                0 => Reply::new().tool("b", "agent", call("explore")),
                _ => Reply::text(format!("Found: {}", results(request)[0].contains("It is in src."))),
            })
        })
        .then(Reply::new().tool("a", "agent", call("general")))
        .then(Reply::text("done"));
    let server = ModelServer::start(script);
    let program = Program::team(&server);
    std::fs::create_dir_all(program.home()).unwrap();
    std::fs::write(program.home().join("config.yaml"), "team: {call_depth: 2}\n").unwrap();
    ok(&program.run(&["-p", "go"]));
    let told = results(server.requests().last().unwrap());
    assert!(told[0].contains("Found: true"), "{told:?}");
}

#[test]
fn a_lead_works_no_longer_than_its_definition_says() {
    let gate = Gate::new();
    let server = ModelServer::start([Reply::text("late").gate_before(&gate), Reply::text("late").gate_before(&gate)]);
    let program = Program::team(&server).file(
        "team.yaml",
        "agents:\n- {name: max, role: team_lead, system_prompt: x, constraints: {timeout: 300ms}}\n",
    );
    let ran = program.run(&["-p", "hi", "--agents", "team.yaml", "--output-format", "json"]);
    assert!(ran.code == 7 && ran.json()["error"].as_str().unwrap().contains("ran out of time"), "{ran:?}");
    // One that is talked to alone, too.
    own(&program, "slow", "---\nname: slow\nconstraints: {timeout: 300ms}\n---\nYou are slow.\n");
    let ran = program.run(&["-p", "hi", "--agent", "slow"]);
    assert!(ran.code == 7 && ran.err.contains("ran out of time"), "{ran:?}");
    gate.open();
}

#[test]
fn a_result_names_the_message_that_it_answers() {
    let script = Script::new()
        .on(|request| request.contains("You are Leo"), Reply::text("Hello."))
        .then(Reply::new().tool("a", "dispatch_task", json!({ "agent": "leo", "description": "greet" })))
        .then(Reply::text("done"));
    let server = ModelServer::start(script);
    let program = Program::team(&server);
    ok(&program.run(&["-p", "go"]));
    let mail = program.run(&["events", "--json"]).lines();
    let answered = mail.iter().find(|event| event["kind"] == "task_result").unwrap();
    let asked = answered["reply_to"].as_str().unwrap();
    let began = |entry: &Value| entry["event"] == "turn_started" && entry.to_string().contains(asked);
    assert!(program.journal().iter().any(began), "{answered}");
}

#[test]
fn without_the_sandbox_file_tools_leave_the_project_and_every_start_says_so() {
    let script = || {
        Script::new().when(|request| {
            let path = request.user_texts()[0].split_whitespace().last().unwrap().to_owned();
            Some(match request.tool_results() {
                0 => Reply::new().tool("a", "read_file", json!({ "path": path })),
                _ => Reply::text("done"),
            })
        })
    };
    let server = ModelServer::start(script());
    let program = Program::with(&server);
    let outside = program.project().parent().unwrap().join("outside.txt");
    std::fs::write(&outside, "over here\n").unwrap();
    let words = format!("read {}", outside.display());
    let ran = program.run(&["-p", &words, "--permission-mode", "bypassPermissions"]);
    assert!(!ran.err.contains("sandbox is off"), "{ran:?}");
    assert!(results(server.requests().last().unwrap())[0].contains("outside the project folder"));
    std::fs::write(program.home().join("config.yaml"), "project: {sandbox: false}\n").unwrap();
    for (mode, want) in [("bypassPermissions", "over here"), ("dontAsk", "Not allowed")] {
        let ran = program.run(&["-p", &words, "--permission-mode", mode]);
        assert!(ran.err.contains("The sandbox is off"), "{ran:?}");
        let told = results(server.requests().last().unwrap());
        assert!(told[0].contains(want), "{mode}: {told:?}");
    }
}

#[test]
fn a_background_task_can_be_asked_for_its_result_or_its_reason() {
    let id = |request: &Recorded, kind: &str| {
        let body = request.body.to_string();
        let at = body.find(&format!("as task `{kind}-")).unwrap() + "as task `".len();
        body[at..].split('`').next().unwrap().to_owned()
    };
    let spawn = |kind: &str| json!({ "description": "d", "prompt": "p", "type": kind });
    let script = Script::new()
        .on(|request| request.contains("You are Explore"), Reply::text("It says one."))
        .on(|request| request.contains("You are Plan"), Reply::status(400).error("invalid_request_error", "bad luck"))
        .when(move |request| {
            Some(match request.tool_results() {
                0 => Reply::new().tool("a", "spawn", spawn("explore")).tool("b", "spawn", spawn("plan")),
                2 if request.body["messages"].to_string().matches("task_result").count() < 2 => Reply::text("I go on."),
                2 => Reply::new().tool("c", "spawned", json!({ "id": id(request, "explore") })).tool(
                    "d",
                    "spawned",
                    json!({ "id": id(request, "plan") }),
                ),
                _ => Reply::text("done"),
            })
        });
    let server = ModelServer::start(script);
    let program = Program::team(&server);
    ok(&program.run(&["-p", "go"]));
    let told = results(server.requests().last().unwrap());
    assert!(told[2].contains("completed") && told[2].contains("Result:\\nIt says one."), "{told:?}");
    assert!(told[3].contains("failed") && told[3].contains("Reason:") && told[3].contains("bad luck"), "{told:?}");
}
