//! Connections of commands: one waits while a person is asked, and one that no person can decide is refused at once.
#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use max_team_testkit::{ModelServer, Reply, Script};
use serde_json::json;

use super::chat::Terminal;
use super::context::wait_for;
use super::plans::{news, plan, task, voice};
use super::practice::events;
use super::program::{Program, kill};
use super::serve::{Client, is_asked, is_final, serve};

/// Asks the proxy for the address in its first argument, and prints the answer.
const GET: &str = "import http.client as h, os, sys, urllib.parse as p\n\
    u = p.urlsplit(os.environ['HTTP_PROXY'])\n\
    c = h.HTTPConnection(u.hostname, u.port, timeout=90)\n\
    c.request('GET', sys.argv[1])\n\
    a = c.getresponse()\n\
    print(a.status, a.read().decode())\n";

/// A server on this machine; returns its host and port.
fn site() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut asked) = (client.unwrap(), [0; 1_024]);
            // A client may be gone.
            let _ = client.read(&mut asked);
            let _ = client.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 6\r\n\r\nserved");
        }
    });
    host
}

/// An agent that runs one command, and tells what came of it.
fn getting(host: &str) -> ModelServer {
    let call = Reply::new().tool(
        "t1",
        "run_shell",
        json!({ "command": format!("python3 get.py http://{host}/"), "writes": true }),
    );
    ModelServer::start(Script::new().when(move |request| {
        let is_result = request.body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
        Some(if is_result.contains("tool_result") { Reply::text("Done.") } else { call.clone() })
    }))
}

fn told(model: &ModelServer) -> String {
    model.requests().last().unwrap().body["messages"].to_string()
}

fn has_networks() -> bool {
    max_team_tools::command::supervisor(Program::binary().to_owned());
    max_team_tools::command::engine().is_ok_and(|engine| engine.has_namespaces())
}

const FREE: &str = "Bash(python3 get.py:*)";

#[test]
fn without_a_person_a_connection_is_refused_at_once_and_a_rule_opens_it() {
    if !has_networks() {
        return;
    }
    let host = site();
    let model = getting(&host);
    let program = Program::with(&model).file("get.py", GET).variable("PATH", "/usr/bin:/bin");
    let ran = program.run(&["-p", "get it", "--solo", "--allowed-tools", FREE]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let line = format!("[no network: `{host}` was blocked; allow it with `WebFetch(domain:{host})`]");
    assert!(told(&model).contains(&line), "{}", told(&model));
    let rule = format!("WebFetch(domain:{host})");
    let ran = program.run(&["-p", "get it", "--solo", "--allowed-tools", &format!("{FREE} {rule}")]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(told(&model).contains("200 served") && !told(&model).contains("no network: `"), "{}", told(&model));
}

/// The approval of a plan that installs opens the registries of the package managers' settings to the tasks that install, and
/// nothing else.
#[test]
fn the_approval_of_a_plan_opens_the_registries_that_it_names() {
    if !has_networks() {
        return;
    }
    let registry = site().replace("127.0.0.1", "localhost");
    let file = |installs: &str| {
        format!("goal: Get it\ntasks:\n  - {{id: a, title: a, agent: leo, do: Get it., owns: [\"*.txt\"]{installs}}}\n")
    };
    let other = site();
    let line = format!("sh -c 'python3 get.py http://{registry}/; python3 get.py http://{other}/'");
    let steps = [Reply::new().tool("s", "run_shell", json!({ "command": line })), Reply::text("Done.")];
    let model = ModelServer::start(
        Script::new()
            .when(move |request| {
                let results = request.body["messages"].to_string().matches("\"tool_result\"").count();
                task("a")(request).then(|| steps[results.min(1)].clone())
            })
            .when(|_| Some(Reply::text("It is over."))),
    );
    let program = Program::team(&model)
        .file("get.py", GET)
        .file("plan.yaml", file(", installs: [npm]"))
        .file("bare.yaml", file(""))
        .variable("PATH", "/usr/bin:/bin")
        .variable("npm_config_registry", format!("http://{registry}/"));
    let told = || {
        let all = model.requests();
        all.iter().rfind(|request| task("a")(request)).unwrap().body["messages"].to_string()
    };
    let ran = program.run(&["run", "bare.yaml", "--yes"]);
    assert!(told().contains(&format!("[no network: `{other}`, `{registry}` were blocked")), "{ran:?} {}", told());
    let ran = program.run(&["run", "plan.yaml", "--yes"]);
    let blocked = format!("[no network: `{other}` was blocked; allow it with `WebFetch(domain:{other})`]");
    assert!(told().contains("200 served") && told().contains(&blocked), "{ran:?} {}", told());
    let shown = program.run(&["run", "plan.yaml", "--dry-run"]);
    assert!(shown.out.contains(&format!("task `a` installs packages: npm, from {registry}")), "{shown:?}");
    let waiting = program.run(&["run", "plan.yaml", "--approve", "never"]);
    assert!(waiting.code == 5 && waiting.err.contains("it waits for a person"), "{waiting:?}");
}

/// A lead learns at once that no person can approve an installation, and which rule would allow it.
#[test]
fn an_installation_that_no_person_can_approve_is_a_flaw() {
    let tasks =
        json!([{ "id": "a", "title": "a", "agent": "leo", "description": "x", "owns": [], "verify": ["npm ci"] }]);
    let model = ModelServer::start(
        Script::new()
            .when(|request| (request.tool_results() > 0).then(|| Reply::text("It cannot be installed.")))
            .on(news("please"), plan(tasks)),
    );
    let program = Program::team(&model).variable("npm_config_registry", "https://packages.example.org/");
    program.run(&["-p", "go on, please", "--approve", "never"]);
    assert!(
        told(&model).contains("rules such as `WebFetch(domain:packages.example.org)` allow it"),
        "{}",
        told(&model)
    );
}

/// Answers the question about the command, and returns the one about its host.
fn asked_about_host(browser: &Client) -> (String, String) {
    let session = browser.say("get it");
    let mut events = browser.events(&format!("?session={session}&from=0"), &[]);
    let first = events.until(is_asked);
    let path = format!("/api/v1/questions/{}/answer", first["question"].as_str().unwrap());
    assert_eq!(browser.post(&path, &json!({ "allow": true })).status, 200);
    let second = events.until(|event| is_asked(event) && event["question"] != first["question"]);
    (session, second["question"].as_str().unwrap().to_owned())
}

#[test]
fn a_connection_waits_for_the_answer() {
    if !has_networks() {
        return;
    }
    let host = site();
    let model = getting(&host);
    let program = Program::with(&model).file("get.py", GET).variable("PATH", "/usr/bin:/bin");
    let server = serve(&program, &["--solo"]);
    let browser = Client::browser(&server);
    let (session, question) = asked_about_host(&browser);
    let inbox = program.run(&["inbox", "--json"]);
    assert!(inbox.out.contains(&host) && inbox.out.contains("send data there"), "{inbox:?}");
    let path = format!("/api/v1/questions/{question}/answer");
    assert_eq!(browser.post(&path, &json!({ "allow": true, "always": true, "until": "repository" })).status, 200);
    let mut events = browser.events(&format!("?session={session}&from=0"), &[]);
    events.until(is_final);
    assert!(told(&model).contains("200 served"), "{}", told(&model));
    assert!(told(&model).contains(&format!("[hosts that the user allowed: `{host}`]")), "{}", told(&model));
    let rule = format!("WebFetch(domain:{host})");
    assert!(program.journal().iter().any(|event| event.to_string().contains(&rule)), "the answer can keep this rule");
}

#[test]
fn after_a_kill_the_answer_repeats_nothing() {
    if !has_networks() {
        return;
    }
    let host = site();
    let model = getting(&host);
    let count = "import sys\nopen('ran', 'a').write('x')\n";
    let program = Program::with(&model).file("get.py", format!("{count}{GET}")).variable("PATH", "/usr/bin:/bin");
    let mut server = serve(&program, &["--solo"]);
    let browser = Client::browser(&server);
    let (session, question) = asked_about_host(&browser);
    kill(&mut server.child);
    drop(server);
    let server = serve(&program, &["--solo"]);
    let browser = Client::browser(&server);
    let path = format!("/api/v1/questions/{question}/answer");
    assert_eq!(browser.post(&path, &json!({ "allow": true })).status, 200);
    browser.events(&format!("?session={session}&from=0"), &[]).until(is_final);
    assert!(told(&model).contains("it is not repeated"), "{}", told(&model));
    assert_eq!(program.read("ran"), "x");
}

#[test]
fn a_no_is_told_as_one() {
    if !has_networks() {
        return;
    }
    let host = site();
    let model = getting(&host);
    let program = Program::with(&model).file("get.py", GET).variable("PATH", "/usr/bin:/bin");
    let server = serve(&program, &["--solo"]);
    let browser = Client::browser(&server);
    let (session, question) = asked_about_host(&browser);
    let path = format!("/api/v1/questions/{question}/answer");
    assert_eq!(browser.post(&path, &json!({ "allow": false })).status, 200);
    browser.events(&format!("?session={session}&from=0"), &[]).until(is_final);
    let line = format!("[no network: the user refused `{host}`]");
    assert!(told(&model).contains(&line) && !told(&model).contains("allow it with"), "{}", told(&model));
}

/// Three owners wait for one host. A yes for one command frees no other; one for the project frees all.
#[test]
fn a_yes_for_the_project_frees_all_commands_that_wait_for_the_host() {
    if !has_networks() {
        return;
    }
    let host = site();
    let file = "goal: three pages\ntasks:\n  - {id: a, title: a, agent: leo, do: Get a., owns: [a.txt]}\n  \
        - {id: b, title: b, agent: leo, do: Get b., owns: [b.txt]}\n  \
        - {id: c, title: c, agent: leo, do: Get c., owns: [c.txt]}\n";
    let steps = || {
        let call = json!({ "command": "python3 get.py $(cat address)", "writes": true });
        vec![Reply::new().tool("t1", "run_shell", call), Reply::text("Got it.")]
    };
    let model = ModelServer::start(
        Script::new()
            .when(voice(task("a"), steps()))
            .when(voice(task("b"), steps()))
            .when(voice(task("c"), steps()))
            .when(move |_| Some(Reply::text("All of it is done."))),
    );
    let program = Program::team(&model).file("plan.yaml", file).file("get.py", GET);
    let program = program.file("address", format!("http://{host}/")).variable("PATH", "/usr/bin:/bin");
    let mut terminal = Terminal::open(&program, &["run", "plan.yaml"]);
    terminal.wait("may it run?");
    terminal.answer("y");
    let questions = || -> Vec<String> {
        let all = events(&program, "question_asked").into_iter().filter(|of| of["action"]["target"] == *host);
        all.map(|of| of["question"].as_str().unwrap().to_owned()).collect()
    };
    while questions().len() < 3 {
        wait_for(&program, "question_asked", &host);
        thread::yield_now();
    }
    let [first, second, third]: [String; 3] = questions().try_into().unwrap();
    assert_eq!(program.run(&["approve", &first]).code, 0);
    wait_for(&program, "tool_done", "200 served");
    let answered = || events(&program, "question_answered").len();
    assert_eq!(answered(), 1, "the others wait");
    // From the session one further, to the repository.
    terminal.choose(&["a", "Right", "Enter"]);
    wait_for(&program, "question_answered", &third);
    terminal.wait("All of it is done.");
    let answers = events(&program, "question_answered");
    let by = |id: &str| answers.iter().find(|of| of["question"] == *id).unwrap()["answer"]["by"].to_string();
    let both = [by(&second), by(&third)];
    assert!(both.iter().any(|by| by.contains("grant")) && both.iter().any(|by| by.contains("person")), "{answers:?}");
    let rule = format!("WebFetch(domain:{host})");
    assert!(program.read(".max-team/settings.local.json").contains(&rule));
}
