//! What a person does in the browser besides talking: forks, worktrees, the memory, and questions about permissions.

use std::path::Path;

use max_team_core::id::EnvelopeId;
use max_team_core::limits::MEMORY_USE_CHARS_MAX;
use max_team_core::message::{Principal, Role};
use max_team_journal::{Journal, Options};
use max_team_runtime::{UserMail, new_id};
use max_team_testkit::{ModelServer, Recorded, Reply, Script};
use max_team_tools::worktree::Worktrees;
use serde_json::{Value, json};

use super::plans::write;
use super::program::{Program, kill, soon};
use super::serve::{Answer, Client, Events, Server, is_asked, is_final, serve};
use super::worktrees::{delegating, git, project, team};

/// A program that may only read.
fn reader(program: &Program, server: &Server) -> Client {
    let made = program.run(&["serve", "token", "create", "reader", "--scope", "read"]);
    assert_eq!(made.code, 0, "{made:?}");
    Client::token(server, made.out.trim())
}

fn forbidden(answer: &Answer) {
    assert_eq!(answer.code(), (403, "forbidden".to_owned()), "{answer:?}");
}

fn events(client: &Client, session: &str) -> Events {
    client.events(&format!("?session={session}&from=0"), &[])
}

/// Allows what is asked until the lead's next answer; returns that.
fn go_on(client: &Client, events: &mut Events) -> Value {
    loop {
        let event = events.next();
        if is_asked(&event) {
            let path = format!("/api/v1/questions/{}/answer", event["question"].as_str().unwrap());
            assert_eq!(client.post(&path, &json!({ "allow": true })).status, 200);
        }
        if is_final(&event) {
            return event;
        }
    }
}

/// A lead that writes the last word of each message into a file.
fn scribe() -> ModelServer {
    let written = |request: &Recorded| {
        let last = request.user_texts().last().cloned().unwrap_or_default();
        let word = last.split_whitespace().next_back().unwrap_or_default().to_owned();
        let is_result = request.body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
        if is_result.contains("tool_result") { Reply::text("Written.") } else { write("word.txt", &word) }
    };
    ModelServer::start(Script::new().when(move |request| Some(written(request))))
}

#[test]
fn a_fork_continues_from_a_point_in_a_session_and_a_worktree_of_its_own() {
    let model = scribe();
    let program = Program::with(&model).file("other.txt", "x");
    for words in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "first"]] {
        git(&program, words);
    }
    let mut server = serve(&program, &["--solo"]);
    let browser = Client::browser(&server);
    let session = browser.say("write one");
    let mut seen = events(&browser, &session);
    let first = go_on(&browser, &mut seen);
    let say = |session: &str, text: &str| {
        let path = format!("/api/v1/sessions/{session}/messages");
        assert_eq!(browser.post(&path, &json!({ "text": text })).status, 202);
    };
    say(&session, "write two");
    go_on(&browser, &mut seen);
    assert_eq!(program.read("word.txt"), "two");

    let path = format!("/api/v1/sessions/{session}/fork");
    forbidden(&reader(&program, &server).post(&path, &json!({})));
    let body = json!({ "at": first["seq"].to_string() }).to_string();
    let fork = || browser.send("POST", &path, &[("idempotency-key", "fork")], &body);
    let forked = fork();
    assert_eq!(forked.status, 201, "{forked:?}");
    let told = forked.json();
    let root = told["worktree"]["root"].as_str().unwrap();
    assert_eq!((&told["at"], &told["worktree"]["restored"]), (&first["seq"], &json!(1)), "{told}");
    assert_eq!(std::fs::read_to_string(Path::new(root).join("word.txt")).unwrap(), "one", "as it was then");
    let own = told["session"]["session"].as_str().unwrap().to_owned();
    assert_ne!(own, session);
    assert_eq!((&told["session"]["cwd"], &told["session"]["continuable"]), (&json!(root), &json!(true)));
    assert_eq!(fork().json()["session"]["session"], own, "one key, one fork");
    let all = program.run(&["worktrees", "list", "--json"]).json();
    assert_eq!(all.as_array().unwrap().len(), 1, "no other worktree is left: {all}");

    // It knows the first message and not the second, and goes on after a restart.
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let mut server = serve(&program, &["--solo"]);
    let browser = Client::browser(&server);
    let sent = browser.post(&format!("/api/v1/sessions/{own}/messages"), &json!({ "text": "write three" }));
    assert_eq!(sent.status, 202, "{sent:?}");
    go_on(&browser, &mut events(&browser, &own));
    let asked = model.requests().last().unwrap().body.to_string();
    assert!(asked.contains("write one") && !asked.contains("write two"), "{asked}");
    assert_eq!((program.read("word.txt").as_str(), read(root, "word.txt").as_str()), ("two", "three"));

    // Handed over from its worktree, it goes to the server of the project.
    kill(&mut server.child);
    let server = serve(&program, &["--solo"]);
    let browser = Client::browser(&server);
    let open = || browser.get(&format!("/api/v1/sessions/{own}")).json()["session"]["open"].clone();
    assert_eq!(open(), Value::Null);
    let journal = Journal::open_existing(program.home(), Options::default()).unwrap();
    let by = Principal { door: "terminal".to_owned(), user: "ann".to_owned(), role: Role::Owner };
    let (key, worktrees) = (EnvelopeId::new(new_id()), Worktrees::within(&program.home()));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(UserMail::new(&journal).hand_over(&by, key, own.parse().unwrap(), &worktrees)).unwrap();
    assert!(soon(|| open() == "here"), "the server goes on with it");

    // Its changes are taken while the idle session is open; the worktree stays.
    let shown = browser.get(&format!("/api/v1/sessions/{own}/worktrees")).json();
    let id = shown["worktrees"][0]["id"].as_str().unwrap();
    let changes = format!("/api/v1/worktrees/{id}");
    let shown = || browser.get(&changes).json()["worktree"]["shown"].clone();
    let accept = || browser.post(&format!("{changes}/accept"), &json!({ "shown": shown() }));
    // An agent that has just given its answer takes a moment to become idle.
    assert!(soon(|| accept().status == 200), "{:?}", accept());
    assert_eq!(program.read("word.txt"), "three");
    assert!(Path::new(root).is_dir());
}

fn read(folder: &str, name: &str) -> String {
    std::fs::read_to_string(Path::new(folder).join(name)).unwrap()
}

#[test]
fn a_fork_that_is_impossible_is_refused_and_leaves_nothing() {
    let model = ModelServer::start(Script::new().on(|_| true, Reply::text("Hello.")));
    let program = Program::with(&model);
    let server = serve(&program, &["--solo"]);
    let browser = Client::browser(&server);
    let session = browser.say("hi");
    events(&browser, &session).until(is_final);
    let path = format!("/api/v1/sessions/{session}/fork");
    let fork = |body: Value| browser.post(&path, &body);
    for (at, status) in [("yesterday", 400), ("999999", 404)] {
        let refused = fork(json!({ "at": at }));
        assert_eq!(refused.status, status);
        assert!(refused.body.contains("`at` is") && !refused.body.contains("max-team"), "{refused:?}");
    }
    assert_eq!(fork(json!({ "at": "turn:2", "here": true })).status, 404);
    let refused = fork(json!({}));
    assert_eq!(refused.status, 409, "a worktree needs a repository: {refused:?}");
    assert!(refused.body.contains("`here`") && !refused.body.contains("--here"), "{refused:?}");
    assert!(refused.body.contains("git init"), "{refused:?}");
    assert_eq!(browser.get("/api/v1/sessions").json()["sessions"].as_array().unwrap().len(), 1);

    let here = fork(json!({ "here": true, "text": "and now?" }));
    assert_eq!((here.status, &here.json()["worktree"]), (201, &Value::Null), "{here:?}");
    let own = here.json()["session"]["session"].as_str().unwrap().to_owned();
    events(&browser, &own).until(is_final);
    let asked = model.requests().last().unwrap().body.to_string();
    assert!(asked.contains("and now?") && asked.contains("\"hi\""), "{asked}");

    let program = Program::alone();
    let server = serve(&program, &["--demo", "fix"]);
    let browser = Client::browser(&server);
    let session = browser.post("/api/v1/sessions", &json!({})).json()["session"]["session"].clone();
    let refused = browser.post(&format!("/api/v1/sessions/{}/fork", session.as_str().unwrap()), &json!({}));
    assert!(refused.status == 409 && refused.body.contains("recording"), "{refused:?}");
}

#[test]
fn a_question_about_permissions_is_answered_as_in_a_terminal() {
    let program = Program::team(&ModelServer::start(Script::new()));
    let rules = json!({ "permissions": { "allow": ["Bash(make:*)"], "deny": ["WebFetch(domain:evil.example)"] } });
    std::fs::create_dir_all(program.home()).unwrap();
    std::fs::write(program.home().join("settings.json"), rules.to_string()).unwrap();
    let server = serve(&program, &[]);
    let reader = reader(&program, &server);
    let why = |body: Value| reader.post("/api/v1/permissions/why", &body);
    for (words, body, verdict) in [
        (&["make all"][..], json!({ "input": "make all" }), "allow"),
        (&["rm -rf x"], json!({ "input": "rm -rf x", "tool": "run_shell" }), "ask"),
        (&["https://evil.example/a"], json!({ "input": "https://evil.example/a" }), "deny"),
        (&["--tool", "write_file", "a.txt"], json!({ "tool": "write_file", "input": "a.txt" }), "ask"),
        (&["--tool", "read_file", "a.txt"], json!({ "tool": "read_file", "input": "a.txt" }), "allow"),
    ] {
        let told = why(body).json();
        assert_eq!(told["verdict"], verdict, "{told}");
        let cli = program.run(&[&["permissions", "why", "--json"], words].concat()).json();
        for (name, value) in cli.as_object().unwrap() {
            assert_eq!(&told[name], value, "{name}: {told}");
        }
    }
    let allowed = why(json!({ "input": "make all" })).json();
    assert!(allowed["origin"]["file"].as_str().unwrap().ends_with("settings.json"), "{allowed}");
    // A member is judged within its own constraints, and may lack the tool.
    let team = reader.get("/api/v1/team").json();
    let name = team["members"].as_array().unwrap().iter().find(|row| row["lead"] == true).unwrap()["name"].clone();
    let told = why(json!({ "tool": "write_file", "input": "a.txt", "agent": name })).json();
    assert_eq!(told["offered"], false, "{told}");
    assert_eq!(why(json!({ "input": "ls", "agent": "nobody" })).status, 404);
    assert_eq!(why(json!({ "input": "x", "tool": "juggle" })).status, 400);
    assert_eq!(why(json!({ "tool": "read_file" })).status, 400);
    let unknown = Client::token(&server, "mt_unknown").post("/api/v1/permissions/why", &json!({ "input": "ls" }));
    assert_eq!(unknown.status, 401);
}

#[test]
fn worktree_changes_are_accepted_by_file_and_the_question_about_them_is_answered() {
    let (_model, program) = delegating();
    let server = serve(&program, &[]);
    let (browser, reader) = (Client::browser(&server), reader(&program, &server));
    let session = browser.say("change it, please");
    let mut seen = events(&browser, &session);
    let is_merge = |event: &Value| is_asked(event) && event["tool_name"] == "dispatch_task";
    loop {
        let event = seen.until(is_asked);
        if is_merge(&event) {
            break;
        }
        let path = format!("/api/v1/questions/{}/answer", event["question"].as_str().unwrap());
        assert_eq!(browser.post(&path, &json!({ "allow": true })).status, 200);
    }
    let waiting = reader.get(&format!("/api/v1/sessions/{session}/worktrees")).json();
    let id = waiting["worktrees"][0]["id"].as_str().unwrap();
    let path = format!("/api/v1/worktrees/{id}");
    let shown = reader.get(&path).json()["worktree"].clone();
    assert_eq!((&shown["changes"][0]["path"], &shown["changes"][0]["fate"]), (&json!("a.txt"), &json!("ready")));
    assert!(shown["diff"]["text"].as_str().unwrap().contains("+copy"), "{shown}");
    for verb in ["accept", "reject"] {
        forbidden(&reader.post(&format!("{path}/{verb}"), &json!({})));
    }
    let accept = |body: Value| browser.post(&format!("{path}/accept"), &body);
    assert_eq!(accept(json!({ "files": ["none.txt"] })).code(), (400, "bad_request".to_owned()));
    let reject = |body: Value| browser.post(&format!("{path}/reject"), &body);
    for decide in [&accept as &dyn Fn(Value) -> Answer, &reject] {
        assert_eq!(decide(json!({ "shown": "0".repeat(64) })).code(), (409, "conflict".to_owned()));
        let blind = decide(json!({}));
        assert!(blind.status == 400 && blind.body.contains("`shown`"), "{blind:?}");
    }
    assert_eq!(program.read("a.txt"), "one\n", "nothing was accepted");
    let taken = accept(json!({ "files": ["a.txt"], "shown": shown["shown"] }));
    assert_eq!((taken.status, &taken.json()["worktree"]), (200, &Value::Null), "{taken:?}");
    assert_eq!(program.read("a.txt"), "copy\n");
    let ended = seen.until(is_final);
    assert_eq!(ended["response"], "The scribe is done.", "without another answer");
    assert_eq!(browser.get("/api/v1/inbox").json()["inbox"], json!([]));
    assert_eq!((browser.get(&path).status, accept(json!({})).status), (404, 404));
}

#[test]
fn a_file_in_conflict_is_told_and_stays_in_the_worktree() {
    let model = team("false");
    let program = project(&model);
    assert_ne!(program.run(&["-p", "change it, please", "--approve", "never"]).code, 0);
    let server = serve(&program, &[]);
    let browser = Client::browser(&server);
    let program = program.file("b.txt", "mine\n");
    let session = browser.get("/api/v1/sessions").json()["sessions"][0]["session"].as_str().unwrap().to_owned();
    // The session is closed.
    let waiting = browser.get(&format!("/api/v1/sessions/{session}/worktrees")).json();
    let path = format!("/api/v1/worktrees/{}", waiting["worktrees"][0]["id"].as_str().unwrap());
    let shown = browser.get(&path).json()["worktree"].clone();
    assert!(shown["conflicts"][0]["text"].as_str().unwrap().contains("<<<<<<< yours\nmine\n"), "{shown}");
    let decide = |verb: &str, body: Value| browser.post(&format!("{path}/{verb}"), &body);
    let refused = decide("accept", json!({ "files": ["b.txt"] }));
    assert!(refused.status == 409 && refused.body.contains("it has changed in the project too"), "{refused:?}");
    let left = decide("reject", json!({ "files": ["新.txt"] })).json()["worktree"].clone();
    assert_eq!(fates(&left), ["ready", "conflict", "rejected"]);
    let left = decide("accept", json!({ "shown": shown["shown"] })).json()["worktree"].clone();
    assert_eq!(fates(&left), ["done", "conflict", "rejected"]);
    assert_eq!((program.read("a.txt"), program.read("b.txt")), ("copy\n".to_owned(), "mine\n".to_owned()));
    let gone = decide("reject", json!({ "shown": left["shown"] }));
    assert_eq!((gone.status, &gone.json()["worktree"]), (200, &Value::Null), "{gone:?}");
    // It is a step of the session like any other.
    assert_eq!(program.run(&["rewind", "--yes", "a.txt"]).code, 0);
    assert_eq!(program.read("a.txt"), "one\n");
}

fn fates(worktree: &Value) -> Vec<&str> {
    worktree["changes"].as_array().unwrap().iter().map(|change| change["fate"].as_str().unwrap()).collect()
}

#[test]
fn facts_are_stored_changed_traced_and_forgotten() {
    let model = ModelServer::start(Script::new().on(|_| true, Reply::text("Hello.")));
    let program = Program::with(&model);
    let server = serve(&program, &["--solo"]);
    let (browser, reader) = (Client::browser(&server), reader(&program, &server));
    let set = |client: &Client, key: &str, value: Value| {
        client.post("/api/v1/memory", &json!({ "key": key, "value": value }))
    };
    forbidden(&set(&reader, "notes.a", json!("x")));
    assert_eq!(set(&browser, "weather", json!("x")).status, 400);
    assert_eq!(set(&browser, "preferences.drink", json!("green tea")).json()["board"], "user");
    assert_eq!(set(&browser, "notes.till", json!({ "place": "counter" })).json()["board"], "project");
    assert_eq!(set(&browser, "preferences.drink", json!("black tea")).status, 200);
    let boards = reader.get("/api/v1/memory").json()["boards"].clone();
    let facts = |board: usize| boards[board]["facts"].as_array().unwrap().clone();
    assert_eq!((&facts(0)[0]["value"], &facts(1)[0]["key"]), (&json!("black tea"), &json!("notes.till.place")));
    assert!(facts(0)[0]["by"]["user"].is_string(), "{boards}");
    let cli = program.run(&["memory", "show", "preferences.drink", "--json"]).json();
    assert_eq!(cli[0]["value"], "black tea", "{cli}");

    let words = format!("where is the till?{}", " Look well.".repeat(100));
    let session = browser.say(&words);
    events(&browser, &session).until(is_final);
    let asked = model.requests().last().unwrap().body.to_string();
    assert!(asked.contains("black tea") && !asked.contains("green tea"), "{asked}");
    let uses = |path: &str| reader.get(&format!("/api/v1/memory/{path}")).json()["uses"]["told"][0].clone();
    let standing = uses("user/preferences.drink");
    assert_eq!((&standing["session"], &standing["fact"]["why"]), (&json!(session), &json!("standing")));
    let matched = uses("project/notes.till.place");
    assert_eq!(matched["fact"]["why"]["matched"]["terms"], json!(["till"]), "{matched}");
    let said = matched["said"].as_str().unwrap();
    assert_eq!(said.chars().count(), MEMORY_USE_CHARS_MAX + 1, "its beginning alone: {said}");
    assert!(words.starts_with(said.trim_end_matches('…')), "{said}");

    let forget = |client: &Client, path: &str| client.send("DELETE", &format!("/api/v1/memory/{path}"), &[], "").status;
    assert_eq!(forget(&reader, "user/preferences.drink"), 403);
    assert_eq!(forget(&browser, "user/preferences.drink"), 204);
    assert_eq!(forget(&browser, "user/preferences.drink"), 404, "nothing is left under it");
    assert_eq!(forget(&browser, "elsewhere/preferences.drink"), 400);
    assert_eq!(reader.get("/api/v1/memory").json()["boards"][0]["facts"], json!([]));
    let command = json!({ "forget": { "scope": "user", "key": "notes" } });
    forbidden(&reader.post("/api/v1/commands", &command));
}
