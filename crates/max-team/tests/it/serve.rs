//! `serve` against clients that are written by hand: what a browser sends, and what it must not be able to.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Child;
use std::time::Duration;

use max_team_testkit::{Gate, ModelServer, Reply, Script};
use serde_json::{Value, json};

use super::plans::{news, plan, task, voice};
use super::program::{Program, finish, kill, soon};

/// A server that ends with the test.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) address: String,
    pub(crate) code: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended already needs no kill.
        drop(self.child.kill());
        self.child.wait().unwrap();
    }
}

pub(crate) fn serve(program: &Program, words: &[&str]) -> Server {
    let words: Vec<&str> = ["serve", "--port", "0", "--json"].iter().chain(words).copied().collect();
    let mut child = program.start(&words);
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let said: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let address = said["url"].as_str().unwrap().trim_start_matches("http://").to_owned();
    let code = said["login"].as_str().unwrap().split_once('#').unwrap().1.to_owned();
    Server { child, address, code }
}

/// An answer: its status, its head and its body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn code(&self) -> (u16, String) {
        (self.status, self.json()["error"]["code"].as_str().unwrap_or_default().to_owned())
    }
}

/// A client with a cookie or a token.
#[derive(Clone)]
pub(crate) struct Client {
    address: String,
    header: (&'static str, String),
}

impl Client {
    /// A browser that opens the login link.
    pub(crate) fn browser(server: &Server) -> Self {
        let nobody = Self { address: server.address.clone(), header: ("x-none", "-".into()) };
        let login = nobody.post("/api/v1/login", &json!({ "code": server.code }));
        assert_eq!(login.status, 204, "{login:?}");
        let cookie = login.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap().to_owned();
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
        let header = ("cookie", cookie.split(';').next().unwrap().to_owned());
        Self { header, ..nobody }
    }

    pub(crate) fn token(server: &Server, token: &str) -> Self {
        Self { address: server.address.clone(), header: ("authorization", format!("Bearer {token}")) }
    }

    fn begin(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
        let host = headers.iter().find(|(name, _)| *name == "host").map_or(self.address.as_str(), |(_, host)| host);
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\n{}: {}\r\n", self.header.0, self.header.1);
        head.push_str(&format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len()));
        for (name, value) in headers.iter().filter(|(name, _)| *name != "host") {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        // A refused body may end the connection before all of it was sent.
        drop(stream.write_all(&[head.as_bytes(), b"\r\n", body].concat()));
        stream
    }

    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.send_bytes(method, path, headers, body.as_bytes())
    }

    pub(crate) fn send_bytes(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let headers: Vec<(&str, &str)> = headers.iter().copied().chain([("connection", "close")]).collect();
        let mut text = String::new();
        drop(self.begin(method, path, &headers, body).read_to_string(&mut text));
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.get(9..12).and_then(|status| status.parse().ok()).unwrap_or_default();
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, &[], &body.to_string())
    }

    /// Begins a session with a message.
    pub(crate) fn say(&self, text: &str) -> String {
        let answer = self.post("/api/v1/sessions", &json!({ "text": text }));
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["session"]["session"].as_str().unwrap().to_owned()
    }

    pub(crate) fn events(&self, query: &str, headers: &[(&str, &str)]) -> Events {
        let stream = self.begin("GET", &format!("/api/v1/events{query}"), headers, b"");
        Events { lines: BufReader::new(stream), id: String::new(), seen: Vec::new() }
    }
}

/// A stream of events.
pub(crate) struct Events {
    lines: BufReader<TcpStream>,
    /// The last mark.
    id: String,
    pub(crate) seen: Vec<Value>,
}

impl Events {
    /// The next event.
    pub(crate) fn next(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "the stream has ended: {:?}", self.seen);
            if let Some(id) = line.strip_prefix("id: ") {
                self.id = id.trim().to_owned();
            }
            if let Some(data) = line.strip_prefix("data: ") {
                let event: Value = serde_json::from_str(data).unwrap();
                self.seen.push(event.clone());
                return event;
            }
        }
    }

    pub(crate) fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let event = self.next();
            if wanted(&event) {
                return event;
            }
        }
    }
}

pub(crate) fn is_final(event: &Value) -> bool {
    event["type"] == "final" && event["agent"]["lead"] == true
}

pub(crate) fn is_asked(event: &Value) -> bool {
    event["type"] == "approval" && event["state"] == "asked"
}

#[test]
fn a_browser_logs_in_talks_answers_and_resumes_the_stream() {
    let write = Reply::new().tool("toolu_1", "write_file", json!({ "path": "a.txt", "content": "hello\n" }));
    let model = ModelServer::start([write, Reply::text("It is written.")]);
    let program = Program::with(&model);
    let server = serve(&program, &["--solo"]);
    let browser = Client::browser(&server);
    let me = browser.get("/api/v1/me").json();
    assert_eq!((&me["role"], &me["demo"]), (&json!("owner"), &Value::Null), "{me}");

    let position = browser.get("/api/v1/now").json()["position"].as_str().unwrap().to_owned();
    let mut all = browser.events(&format!("?from={position}"), &[]);
    let session = browser.say("write hello into a.txt");
    let asked = all.until(is_asked);
    let question = asked["question"].as_str().unwrap();
    let inbox = browser.get("/api/v1/inbox").json();
    assert_eq!(inbox["inbox"][0]["row"]["question"], question, "{inbox}");
    assert!(inbox["inbox"][0]["row"]["matter"]["tool"]["action"]["preview"].as_str().unwrap().contains("+hello"));
    let answer = browser.post(&format!("/api/v1/questions/{question}/answer"), &json!({ "allow": true }));
    assert_eq!(answer.status, 200, "{answer:?}");
    let at = all.until(|event| event["type"] == "approval" && event["state"] == "answered");
    assert!(at["by"].as_str().unwrap().ends_with(" at web"), "{at}");
    let mark = all.id.clone();
    assert_eq!(all.until(is_final)["response"], "It is written.");
    assert_eq!(program.read("a.txt"), "hello\n");
    let again = browser.post(&format!("/api/v1/questions/{question}/answer"), &json!({ "allow": false }));
    assert_eq!(again.code(), (409, "answered".to_owned()));

    // A page that comes back gets what it has missed, each event once.
    let mut rest = browser.events(&format!("?session={session}"), &[("last-event-id", &mark)]);
    rest.until(is_final);
    let place = all.seen.iter().position(|event| event == &at).unwrap();
    let wanted: Vec<&Value> = all.seen[place + 1..].iter().filter(|event| event["type"] != "content_delta").collect();
    assert_eq!(rest.seen.iter().collect::<Vec<_>>(), wanted);
    let mut whole = browser.events(&format!("?session={session}&from=0"), &[]);
    whole.until(is_final);
    let stored = browser.get(&format!("/api/v1/sessions/{session}/events?from=0")).json();
    assert_eq!(stored["events"].as_array().unwrap()[..whole.seen.len()], whole.seen);
}

#[test]
fn a_second_order_with_the_same_key_changes_nothing() {
    let model = ModelServer::start(Script::new().on(|_| true, Reply::text("Hello.")));
    let program = Program::with(&model);
    let server = serve(&program, &["--solo"]);
    let browser = Client::browser(&server);
    let create = || browser.send("POST", "/api/v1/sessions", &[("idempotency-key", "k1")], r#"{"text":"hi"}"#).json();
    let (first, second) = (create(), create());
    assert_eq!((&first["id"], &first["session"]["session"]), (&second["id"], &second["session"]["session"]));
    let session = first["session"]["session"].as_str().unwrap();
    browser.events(&format!("?session={session}&from=0"), &[]).until(is_final);
    let messages = format!("/api/v1/sessions/{session}/messages");
    let send = || browser.send("POST", &messages, &[("idempotency-key", "k2")], r#"{"text":"again"}"#);
    assert_eq!([send().status, send().status], [202, 202]);
    let mut events = browser.events(&format!("?session={session}&from=0"), &[]);
    events.until(is_final);
    events.until(is_final);
    let said = browser.get(&messages).json();
    let inputs = said["messages"].as_array().unwrap().iter().filter(|row| row["envelope"]["kind"] == "user_input");
    assert_eq!(inputs.count(), 2, "{said}");
}

#[test]
fn a_key_belongs_to_one_request_of_every_kind() {
    let model = ModelServer::start(Script::new().on(|_| true, Reply::text("Hello.")));
    let program = Program::with(&model);
    let mut server = serve(&program, &["--solo"]);
    let browser = Client::browser(&server);
    let session = browser.say("hi");
    browser.events(&format!("?session={session}&from=0"), &[]).until(is_final);
    let of = |part: &str| format!("/api/v1/sessions/{session}/{part}");
    let fact = |value: &str| json!({ "key": "preferences.drink", "value": value }).to_string();
    let writes = [
        ("/api/v1/memory".to_owned(), fact("tea"), fact("water")),
        (of("files?name=a.txt"), "one".to_owned(), "two".to_owned()),
        (of("messages"), r#"{ "text": "more" }"#.to_owned(), r#"{ "text": "less" }"#.to_owned()),
        (of("open"), "{}".to_owned(), r#"{ "x": 1 }"#.to_owned()),
        ("/api/v1/sessions".to_owned(), "{}".to_owned(), r#"{ "text": "hi" }"#.to_owned()),
    ];
    let send = |browser: &Client, at: usize, body: &str| {
        browser.send("POST", &writes[at].0, &[("idempotency-key", &format!("key-{at}"))], body)
    };
    let mut answers = Vec::new();
    for (at, (_, body, other)) in writes.iter().enumerate() {
        let first = send(&browser, at, body);
        assert!(first.status < 300, "{first:?}");
        let again = send(&browser, at, body);
        assert_eq!((again.status, &again.body), (first.status, &first.body), "the same bytes are the same request");
        assert_eq!(send(&browser, at, other).code(), (422, "key_reused".to_owned()));
        answers.push(first.body);
    }
    assert_eq!(browser.get(&of("files")).json()["files"].as_array().unwrap().len(), 1, "one file");
    // A refused request keeps its key free.
    let named = |body: &str| browser.send("POST", "/api/v1/sessions", &[("idempotency-key", "wrong")], body).status;
    assert_eq!([named(r#"{ "agent": "" }"#), named("{}")], [400, 201]);
    // A stream is not repeated.
    let body = r#"{ "model": "max", "stream": true, "messages": [{ "role": "user", "content": "Hi" }] }"#;
    let ask = || browser.send("POST", "/v1/chat/completions", &[("idempotency-key", "stream")], body);
    assert!(ask().body.contains("[DONE]"));
    assert_eq!(ask().code(), (409, "conflict".to_owned()));
    // Also after a kill.
    kill(&mut server.child);
    let server = serve(&program, &["--solo"]);
    let browser = Client::browser(&server);
    for (at, answer) in answers.iter().enumerate() {
        assert_eq!(&send(&browser, at, &writes[at].1).body, answer);
    }
}

#[test]
fn strange_pages_hosts_codes_and_bodies_are_refused() {
    let model = ModelServer::start(Script::new());
    let program = Program::with(&model);
    let server = serve(&program, &["--solo"]);
    let browser = Client::browser(&server);
    let own = format!("http://{}", server.address);
    let write =
        |headers: &[(&str, &str)]| browser.send("POST", "/api/v1/queries", headers, r#"{"position":{}}"#).status;
    assert_eq!(write(&[]), 200);
    assert_eq!(write(&[("origin", &own)]), 200);
    for strange in [
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("origin", "http://127.0.0.1:1"),
        ("host", "evil.example"),
        ("sec-fetch-site", "cross-site"),
    ] {
        assert_eq!(write(&[strange]), 403, "{strange:?}");
    }
    let rebound = server.address.replace("127.0.0.1", "rebound.example");
    assert_eq!(browser.send("GET", "/api/v1/me", &[("host", &rebound)], "").code(), (403, "forbidden".to_owned()));
    assert_eq!(browser.send("GET", "/", &[("host", &rebound)], "").status, 403);

    // The code was used.
    let nobody = Client { header: ("x-none", "-".into()), ..browser.clone() };
    let replayed = nobody.post("/api/v1/login", &json!({ "code": server.code }));
    assert_eq!(replayed.code(), (401, "unauthorized".to_owned()));
    assert_eq!(nobody.get("/api/v1/me").status, 401);
    assert_eq!(nobody.get("/api/v1/events").status, 401);
    assert_eq!(
        [nobody.get("/health").status, nobody.get("/ready").status, nobody.get("/metrics").status],
        [200, 200, 401]
    );
    for _ in 0..12 {
        nobody.post("/api/v1/login", &json!({ "code": "guess" }));
    }
    let late = nobody.post("/api/v1/login", &json!({ "code": "guess" }));
    assert_eq!(late.code(), (429, "rate_limited".to_owned()), "{late:?}");
    assert!(late.head.contains("retry-after: "), "{late:?}");

    for key in ["", "two words", "键"] {
        let refused = browser.send("POST", "/api/v1/sessions", &[("idempotency-key", key)], "{}");
        assert_eq!(refused.code(), (400, "bad_request".to_owned()), "{key}");
    }

    let large = browser.send("POST", "/api/v1/queries", &[], &format!("\"{}\"", "x".repeat(1 << 20)));
    assert_eq!(large.code(), (413, "too_large".to_owned()));
    for (method, path, body, status) in [
        ("POST", "/api/v1/queries", "{", 400),
        ("POST", "/api/v1/queries", r#"{"paths":{"root":"/etc"}}"#, 400),
        ("POST", "/api/v1/commands", r#"{"serve_channel":{"channel":"a","account":"b"}}"#, 400),
        ("GET", "/api/v1/sessions/nothing", "", 404),
        ("GET", "/api/v1/plans/nothing", "", 404),
        ("GET", "/api/v1/events?from=x", "", 400),
        ("GET", "/api/v1/sessions?limit=501", "", 400),
        ("GET", "/api/v1/cost?since_ms=9007199254740992", "", 400),
        ("GET", "/api/v1/memory/elsewhere/notes.a", "", 400),
        ("GET", "/api/v1/plans/%FF", "", 400),
        ("POST", "/api/v1/sessions", r#"{"agent":" "}"#, 400),
        ("GET", "/api/v1/worktrees/no.name", "", 404),
        ("POST", "/api/v1/commands", r#"{"stop":{"plan":"pln_00000000000000000000000000000000"}}"#, 404),
        ("PUT", "/api/v1/me", "", 405),
        ("GET", "/api/v2/me", "", 404),
    ] {
        let answer = browser.send(method, path, &[], body);
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert!(answer.json()["error"]["message"].is_string(), "{answer:?}");
    }
    assert_eq!(browser.post("/api/v1/logout", &json!({})).status, 204);
    assert_eq!(browser.get("/api/v1/me").status, 401, "logged out");
}

#[test]
fn a_token_allows_what_its_scope_says_until_it_ends() {
    let model = ModelServer::start(Script::new().on(|_| true, Reply::text("Hello.")));
    let program = Program::with(&model);
    let server = serve(&program, &["--solo"]);
    let create = |name: &str, more: &[&str]| {
        let words: Vec<&str> = ["serve", "token", "create", name].iter().chain(more).copied().collect();
        let made = program.run(&words);
        assert_eq!(made.code, 0, "{made:?}");
        Client::token(&server, made.out.trim())
    };
    let (reader, writer) = (create("reader", &["--role", "viewer"]), create("writer", &["--scope", "chat"]));
    assert_eq!(reader.get("/api/v1/me").json()["role"], "viewer");
    for (path, body) in
        [("/api/v1/sessions", json!({ "text": "hi" })), ("/api/v1/commands", json!({ "stop_session": {} }))]
    {
        let answer = reader.post(path, &body);
        assert!([400, 403].contains(&answer.status), "{answer:?}");
    }
    assert_eq!(reader.post("/api/v1/sessions", &json!({})).code(), (403, "forbidden".to_owned()));
    let session = writer.say("hi");
    reader.events(&format!("?session={session}&from=0"), &[]).until(is_final);
    let said = reader.post(&format!("/api/v1/sessions/{session}/messages"), &json!({ "text": "more" }));
    assert_eq!(said.code(), (403, "forbidden".to_owned()));
    let compact = json!({ "compact": { "session": session, "keep": "" } });
    assert_eq!(writer.post("/api/v1/commands", &compact).code(), (403, "forbidden".to_owned()));

    let listed = program.run(&["serve", "token", "list", "--json"]).json();
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
    assert_eq!(program.run(&["serve", "token", "revoke", "writer"]).code, 0);
    assert_eq!(writer.get("/api/v1/me").status, 401, "revoked");
    assert_eq!(program.run(&["serve", "token", "revoke", "writer"]).code, 1);
    let short = create("short", &["--expires", "300ms"]);
    assert!(soon(|| short.get("/api/v1/me").status == 401), "expired");
    // A token can be entered in a browser, and `serve link` gives another login.
    let nobody = Client { header: ("x-none", "-".into()), ..reader.clone() };
    let secret = reader.header.1.trim_start_matches("Bearer ");
    assert_eq!(nobody.post("/api/v1/login", &json!({ "token": secret })).status, 204);
    let link = program.run(&["serve", "link"]).out;
    let code = link.trim().split_once("/login#").unwrap().1;
    assert_eq!(nobody.post("/api/v1/login", &json!({ "code": code })).status, 204);
}

#[test]
fn a_folder_has_one_server_and_a_link_leads_to_it() {
    let model = ModelServer::start(Script::new());
    let program = Program::with(&model);
    let link = |words: &[&str]| program.run(&[&["serve", "link"], words].concat());
    let none = link(&[]);
    assert!(none.code == 1 && none.err.contains("`max-team serve` starts one"), "{none:?}");
    let mut server = serve(&program, &["--solo"]);
    let own = format!("http://{}/login#", server.address);
    let port = server.address.rsplit(':').next().unwrap().to_owned();
    for words in [&[][..], &["--port", &port]] {
        let made = link(words);
        assert!(made.out.starts_with(&own), "{made:?}");
    }
    let other = link(&["--port", "1"]);
    assert!(other.code == 1 && other.out.is_empty() && other.err.contains(&server.address), "{other:?}");
    let second = program.run(&["serve", "--solo", "--port", "0"]);
    assert!(second.code == 1 && second.err.contains(&server.address), "{second:?}");
    // A killed server is no server.
    kill(&mut server.child);
    assert_eq!(link(&[]).code, 1);
    let next = serve(&program, &["--solo"]);
    assert!(link(&[]).out.starts_with(&format!("http://{}/login#", next.address)));
}

#[test]
fn a_page_that_comes_in_the_middle_of_an_answer_sees_all_of_it() {
    let gate = Gate::new();
    let slow = Reply::text("one two three four five six").chunk(4).gate_after(4, &gate);
    let model = ModelServer::start([slow]);
    let program = Program::with(&model);
    let server = serve(&program, &["--solo"]);
    let browser = Client::browser(&server);
    let mut first = browser.events("?from=0", &[]);
    let session = browser.say("count");
    first.until(|event| event["type"] == "content_delta");
    gate.wait_reached();
    let mut late = browser.events(&format!("?session={session}&from=0"), &[]);
    let piece = late.until(|event| event["type"] == "content_delta");
    assert_eq!(piece["whole"], true, "{piece}");
    late.until(|event| event["position"].is_string());
    gate.open();
    let ended = late.until(is_final);
    let pieces = late.seen.iter().filter(|event| event["type"] == "content_delta");
    let text: String = pieces.map(|event| event["delta"].as_str().unwrap()).collect();
    assert_eq!(text, ended["response"], "nothing is missing and nothing comes twice");
}

#[test]
fn pieces_of_an_answer_come_from_a_session_of_another_process() {
    let gate = Gate::new();
    let slow = Reply::text("one two three four five six").chunk(4).gate_after(5, &gate);
    let model = ModelServer::start([slow]);
    let program = Program::with(&model);
    let server = serve(&program, &["--solo"]);
    let browser = Client::browser(&server);
    let mut events = browser.events("?from=0", &[]);
    let other = program.start(&["-p", "count"]);
    let piece = events.until(|event| event["type"] == "content_delta");
    gate.wait_reached();
    let session = piece["session"].as_str().unwrap();
    let row = browser.get(&format!("/api/v1/sessions/{session}")).json();
    assert_eq!(row["session"]["open"], "elsewhere", "{row}");
    gate.open();
    let ended = events.until(is_final);
    let pieces = events.seen.iter().filter(|event| event["type"] == "content_delta");
    let text: String = pieces.map(|event| event["delta"].as_str().unwrap()).collect();
    assert_eq!(text, ended["response"]);
    assert_eq!(finish(other).code, 0);
}

#[test]
fn a_killed_server_goes_on_when_it_is_started_again() {
    let gate = Gate::new();
    let model =
        ModelServer::start(Script::new().then(Reply::text("lost").gate_before(&gate)).then(Reply::text("Done.")));
    let program = Program::with(&model);
    let mut server = serve(&program, &["--solo"]);
    let browser = Client::browser(&server);
    let session = browser.say("work");
    gate.wait_reached();
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    gate.open();
    let server = serve(&program, &["--solo"]);
    let browser = Client::browser(&server);
    let ended = browser.events(&format!("?session={session}&from=0"), &[]).until(is_final);
    assert_eq!(ended["response"], "Done.", "without a message of any client");
    let row = browser.get(&format!("/api/v1/sessions/{session}")).json();
    assert_eq!((&row["session"]["open"], &row["session"]["answered"]), (&json!("here"), &json!(true)), "{row}");
}

#[test]
fn a_plan_is_decided_in_the_browser_or_elsewhere() {
    let tasks = json!([{ "id": "look", "agent": "sam", "title": "look", "description": "look around" }]);
    let script = Script::new()
        .when(voice(task("look"), vec![Reply::text("Nothing to see.")]))
        .when(voice(news("please"), vec![plan(tasks)]))
        .on(|_| true, Reply::text("All is done."));
    let model = ModelServer::start(script);
    let program = Program::team(&model);
    let server = serve(&program, &[]);
    let browser = Client::browser(&server);
    let is_over = |event: &Value| event["type"] == "plan" && event["state"] == "done";
    for elsewhere in [false, true] {
        let session = browser.say("please look");
        let mut events = browser.events(&format!("?session={session}&from=0"), &[]);
        let asked = events.until(is_asked);
        let plan = browser.get(&format!("/api/v1/plans/{}", asked["plan"].as_str().unwrap())).json();
        assert_eq!((&plan["state"], &plan["layout"]["columns"]), (&json!("waiting"), &json!(1)), "{plan}");
        let edit = json!({ "decision": { "edit": [{ "assign": { "task": "look", "agent": "nobody" } }] } });
        let wrong = browser.post(&format!("/api/v1/plans/{}/decision", asked["plan"].as_str().unwrap()), &edit);
        assert_eq!(wrong.code(), (400, "bad_request".to_owned()));
        let by = if elsewhere {
            assert_eq!(program.run(&["approve", asked["question"].as_str().unwrap()]).code, 0);
            " at cli"
        } else {
            let path = format!("/api/v1/plans/{}/decision", asked["plan"].as_str().unwrap());
            assert_eq!(browser.post(&path, &json!({ "decision": "approve" })).status, 200);
            " at web"
        };
        let answered = events.until(|event| event["type"] == "approval" && event["state"] == "answered");
        assert!(answered["by"].as_str().unwrap().ends_with(by), "{answered}");
        events.until(is_over);
    }
}

#[test]
fn openai_clients_talk_to_the_team() {
    let model = ModelServer::start(Script::new().on(|_| true, Reply::text("Hello from Max.").chunk(3)));
    let program = Program::team(&model);
    let server = serve(&program, &[]);
    let browser = Client::browser(&server);
    let models = browser.get("/v1/models").json();
    let names: Vec<&str> = models["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert!(names.starts_with(&["max"]) && names.contains(&"max/leo"), "{names:?}");
    let ask = |more: Value| {
        let mut body = json!({ "model": "max", "messages": [{ "role": "user", "content": "Hi" }] });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        browser.post("/v1/chat/completions", &body)
    };
    let whole = ask(json!({})).json();
    assert_eq!(whole["choices"][0]["message"]["content"], "Hello from Max.", "{whole}");
    assert_eq!((&whole["object"], &whole["choices"][0]["finish_reason"]), (&json!("chat.completion"), &json!("stop")));
    let streamed = ask(json!({ "stream": true, "model": "max/leo", "user": "u1" })).body;
    let chunks: Vec<Value> = streamed
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter(|data| *data != "[DONE]")
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    let text: String = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(text, "Hello from Max.");
    assert!(streamed.contains("data: [DONE]") && chunks.len() > 2, "{streamed}");
    assert_eq!(ask(json!({ "model": "gpt" })).code(), (404, "not_found".to_owned()));
    assert_eq!(ask(json!({ "messages": [] })).code(), (400, "bad_request".to_owned()));
}

/// One text frame of a client.
fn frame(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).unwrap();
    // Masked with zeroes, which changes nothing.
    let mut bytes = vec![0x81, 0x80 | 126];
    bytes.extend(length.to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(text.as_bytes());
    bytes
}

/// The next text frame of the server.
fn receive(stream: &mut impl std::io::Read) -> Value {
    let mut head = [0; 2];
    stream.read_exact(&mut head).unwrap();
    let length = match head[1] {
        126 => {
            let mut long = [0; 2];
            stream.read_exact(&mut long).unwrap();
            usize::from(u16::from_be_bytes(long))
        }
        short => usize::from(short),
    };
    let mut text = vec![0; length];
    stream.read_exact(&mut text).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn one_websocket_has_events_commands_and_queries() {
    let model = ModelServer::start(Script::new().on(|_| true, Reply::text("Hello.")));
    let program = Program::with(&model);
    let server = serve(&program, &["--solo"]);
    let browser = Client::browser(&server);
    let session = browser.post("/api/v1/sessions", &json!({})).json()["session"]["session"].clone();
    let upgrade = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let mut stream = BufReader::new(browser.begin("GET", "/api/v1/ws", &upgrade, b""));
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    assert!(line.contains("101"), "{line}");
    while line.trim() != "" {
        line.clear();
        stream.read_line(&mut line).unwrap();
    }
    let mut send = |value: Value| stream.get_mut().write_all(&frame(&value.to_string())).unwrap();
    send(json!({ "id": 1, "subscribe": { "session": session, "from": "0" } }));
    send(json!({ "id": 2, "command": { "say": { "session": session, "text": "hi" } } }));
    send(json!({ "id": 3, "query": { "status": { "session": session } } }));
    send(json!({ "id": 4, "query": { "nothing": {} } }));
    for (id, value) in [(5, "tea"), (6, "tea"), (7, "water")] {
        let command = json!({ "remember": { "scope": "user", "key": "preferences.drink", "value": value } });
        send(json!({ "id": id, "command": command, "key": "drink" }));
    }
    let (mut answers, mut ended) = (Vec::new(), Value::Null);
    while answers.len() < 7 || ended.is_null() {
        let received = receive(&mut stream);
        if received["id"].is_number() {
            answers.push(received);
        } else if is_final(&received["event"]) {
            ended = received["event"]["response"].clone();
        }
    }
    assert_eq!(ended, "Hello.");
    assert!(answers[1]["ok"]["id"].is_string() && answers[2]["ok"]["status"].is_object(), "{answers:?}");
    assert_eq!(answers[3]["error"]["code"], "bad_request");
    assert!(answers[4]["ok"]["id"].is_string() && answers[4]["ok"] == answers[5]["ok"], "{answers:?}");
    assert_eq!(answers[6]["error"]["code"], "key_reused", "{answers:?}");
}

#[test]
fn the_recorded_team_is_served_without_a_key() {
    let program = Program::alone();
    let server = serve(&program, &["--demo", "fix"]);
    let browser = Client::browser(&server);
    let me = browser.get("/api/v1/me").json();
    assert_eq!(me["demo"]["name"], "fix", "{me}");
    let session = browser.say(me["demo"]["prompt"].as_str().unwrap());
    let mut events = browser.events(&format!("?session={session}&from=0"), &[]);
    let asked = events.until(is_asked);
    assert!(asked["plan"].is_string(), "{asked}");

    // An OpenAI client is led to the page of the session that asks.
    let body = json!({ "model": "max", "messages": [{ "role": "user", "content": me["demo"]["prompt"] }] });
    let told = browser.post("/v1/chat/completions", &body).json()["choices"][0]["message"]["content"].clone();
    assert!(told.as_str().unwrap().contains(&format!("http://{}/#/s/ses_", server.address)), "{told}");
}

#[test]
fn a_taken_port_is_named_with_the_server_that_has_it() {
    let program = Program::alone();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().port().to_string();
    let ran = program.run(&["serve", "--port", &taken]);
    let is_told =
        ran.err.contains(&format!("port {taken} is taken by another program")) && ran.err.contains("--port 0");
    assert!(ran.code == 1 && is_told, "{ran:?}");
    assert!(!ran.err.contains("model"), "a server without a model starts, so only the port is named: {ran:?}");
    let server = serve(&program, &[]);
    let port = server.address.rsplit(':').next().unwrap();
    let folder = Client::browser(&server).get("/api/v1/me").json()["folder"].as_str().unwrap().to_owned();
    let ran = program.run(&["serve", "--demo", "fix", "--port", port]);
    assert!(ran.code == 1 && ran.err.contains(&format!("by the server of `{folder}`")), "{ran:?}");
    let ran = program.run(&["serve", "--demo", "fix", "--port", "0", "--host", "nowhere.invalid"]);
    assert!(ran.code == 1 && ran.err.contains("--host takes an address of this machine"), "{ran:?}");
}

#[test]
fn an_address_that_others_can_reach_needs_protection() {
    let model = ModelServer::start(Script::new());
    let program = Program::with(&model);
    let ran = program.run(&["serve", "--solo", "--port", "0", "--host", "0.0.0.0"]);
    assert!(ran.code == 1 && ran.err.contains("--tls-cert"), "{ran:?}");
    let ran = program.run(&["serve", "--solo", "--port", "0", "--behind-proxy"]);
    assert!(ran.code == 2 && ran.err.contains("server.public_url"), "{ran:?}");
}

#[test]
fn pages_open_without_a_key_and_a_message_tells_what_is_missing() {
    let program = Program::alone();
    let server = serve(&program, &[]);
    let browser = Client::browser(&server);
    let terminal = program.run(&["-p", "hi"]);
    assert_eq!(terminal.code, 4, "{terminal:?}");
    for path in ["/api/v1/now", "/api/v1/team", "/api/v1/complete", "/api/v1/settings", "/v1/models"] {
        assert_eq!(browser.get(path).status, 200, "{path}");
    }
    let refused = browser.post("/api/v1/sessions", &json!({ "text": "hi" }));
    assert_eq!(refused.code(), (409, "no_key".to_owned()));
    let words = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(terminal.err.contains(words.lines().next().unwrap()), "{words}: {terminal:?}");
    assert_eq!(browser.get("/api/v1/me").json()["problem"], words);

    // A key that is added later counts without a restart.
    let model = ModelServer::start(Script::new().on(|_| true, Reply::text("Hello.")));
    let settings = format!("llm:\n  provider: anthropic\n  base_url: {}\n  api_key: sk-test-0123\n", model.url());
    let file = program.home().join("config.yaml");
    std::fs::write(&file, settings).unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let session = browser.say("hi");
    let ended = browser.events(&format!("?session={session}&from=0"), &[]).until(is_final);
    assert_eq!(ended["response"], "Hello.");
    assert_eq!(browser.get("/api/v1/me").json()["problem"], Value::Null);
}
