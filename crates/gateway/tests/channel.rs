//! A channel on the real gateway: a message is committed before it is acknowledged, a repeated delivery changes nothing, answers leave in
//! order, and each message has one answer, also if the process is killed at every step.
#![expect(clippy::unwrap_used, reason = "a broken fixture must fail the test loudly")]

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use max_team_core::channel::{ChatAddress, Delivery, Outgoing};
use max_team_core::message::Role;
use max_team_gateway::{Channel, ChannelError, Gateway, GatewayError, Incoming, SendError};
use max_team_runtime::{OutgoingMessage, RuntimeError, TeamHandle, WalkStep, query};
use max_team_testkit::{ModelServer, Recorded, Reply, Script};
use max_team_workspace::open::Workspace;
use max_team_workspace::selection::Selection;
use max_team_workspace::setup::{AppEnv, worker_info};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Tells the child process which folder, model and service to use.
const CHILD: &str = "GATEWAY_TEST_CHILD";
const MESSAGES_PER_CHAT: usize = 4;
const CHATS: [&str; 2] = ["ada", "bob"];
/// The process is killed after this many steps (requests to the service or the model), counted anew for each process.
const KILLED_AFTER: [u32; 9] = [1, 2, 3, 4, 5, 6, 7, 8, 9];

fn place(folder: &Path, model: &str) -> AppEnv {
    let variables = [("ANTHROPIC_API_KEY", "sk-test".to_owned()), ("ANTHROPIC_BASE_URL", model.to_owned())];
    let env = variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let (cwd, home) = (folder.join("project"), folder.join("home"));
    std::fs::create_dir_all(&cwd).unwrap();
    AppEnv { env, cwd, home, wished: None, notice: |_| {} }
}

fn start(folder: &Path, model: &str) -> (TeamHandle, Gateway) {
    let (place, selection) = (place(folder, model), Selection { solo: true, ..Selection::default() });
    let workspace = Workspace::read(&place, &selection, Vec::new()).unwrap();
    let journal = place.begin(&workspace.config).unwrap();
    let team = workspace.start(&place, journal, "a channel", true).unwrap();
    (team.clone(), Gateway::new(team, place, selection))
}

fn message(chat: &str, native: &str, text: &str, role: Role) -> Incoming {
    let chat = ChatAddress::new("memory", "bot", chat).unwrap();
    Incoming { chat, native: native.into(), sender: "ada".into(), role, text: text.into() }
}

fn text_of(message: &OutgoingMessage) -> String {
    let Outgoing::Reply { text, .. } = &message.body;
    text.clone()
}

fn text_at(line: &Value, key: &str) -> String {
    line.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Answers with the last thing the user said.
fn echo(request: &Recorded) -> Option<Reply> {
    let said = request.last_user();
    // What is remembered of an earlier conversation may stand behind the words.
    Some(Reply::text(format!("echo: {}", said.lines().next().unwrap_or_default())))
}

/// A service in this process, whose answers to `send` are scripted.
#[derive(Default)]
struct Memory {
    outcomes: RefCell<VecDeque<SendError>>,
    attempts: RefCell<Vec<String>>,
    sent: Notify,
}

impl Channel for Memory {
    fn name(&self) -> &str {
        "memory"
    }

    fn account(&self) -> &str {
        "bot"
    }

    async fn listen(&self, gateway: &Gateway, shutdown: &CancellationToken) -> Result<(), ChannelError> {
        for number in 1..=4 {
            let text = format!("message {number}");
            let incoming = message("ada", &number.to_string(), &text, Role::Member);
            // The service delivers everything twice.
            for _ in 0..2 {
                gateway.receive(incoming.clone()).await.map_err(|error| ChannelError(error.to_string()))?;
            }
            self.sent.notified().await;
        }
        let viewer = gateway.receive(message("ada", "5", "message 5", Role::Viewer)).await;
        assert!(matches!(viewer, Err(GatewayError::Team(RuntimeError::RoleTooLow { .. }))), "{viewer:?}");
        shutdown.cancel();
        Ok(())
    }

    async fn send(&self, message: &OutgoingMessage) -> Result<String, SendError> {
        self.attempts.borrow_mut().push(text_of(message));
        let outcome = self.outcomes.borrow_mut().pop_front();
        if !matches!(outcome, Some(SendError::Later(_))) {
            self.sent.notify_one();
        }
        outcome.map_or_else(|| Ok("native".to_owned()), Err)
    }
}

#[tokio::test]
async fn messages_leave_in_order_and_what_may_be_sent_is_not_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let model = ModelServer::start(Script::new().when(echo));
    let (team, gateway) = start(folder.path(), &model.url());
    let channel = Memory::default();
    let outcomes = [SendError::Later(Duration::ZERO), SendError::Later(Duration::ZERO)];
    channel.outcomes.borrow_mut().extend(outcomes);
    let shutdown = CancellationToken::new();
    gateway.run(&channel, &shutdown).await.unwrap();
    let attempts = [1, 1, 1, 2, 3, 4].map(|number| format!("echo: message {number}"));
    assert_eq!(*channel.attempts.borrow(), attempts);

    let chat = ChatAddress::new("memory", "bot", "ada").unwrap();
    let row = team.ask(query::Chats { channel: "memory".into(), account: "bot".into() }).await.unwrap().remove(0);
    assert_eq!((row.chat, row.answered), (Some(chat), true));
    team.shutdown().await.unwrap();

    // Forgetting the session leaves no text of it, in the outbox either, and the rows follow from the rest of the log.
    let place = place(folder.path(), &model.url());
    let storage = place.begin(&Workspace::read(&place, &Selection::default(), Vec::new()).unwrap().config).unwrap();
    assert!(storage.compare_rows().unwrap().is_empty());
    let forgetting = storage.forgetting(&place.home, worker_info(&place, "forgetting")).unwrap();
    forgetting.forget(row.session, &place.principal("test")).await.unwrap();
    assert!(storage.compare_rows().unwrap().is_empty());
    let mut texts = Vec::new();
    let all = storage.entries(None, 0, |step| {
        if let WalkStep::Entry(entry, _) = step {
            texts.extend(entry.payload.clone());
        }
        ControlFlow::Continue(())
    });
    all.unwrap();
    let left: Vec<_> =
        texts.into_iter().filter(|text| String::from_utf8_lossy(text).contains("echo: message")).collect();
    assert!(left.is_empty(), "{:?}", left.iter().map(|text| String::from_utf8_lossy(text)).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_broken_connection_leaves_a_message_that_may_be_sent() {
    let folder = tempfile::tempdir().unwrap();
    let model = ModelServer::start(Script::new().when(echo));
    let (team, gateway) = start(folder.path(), &model.url());
    let channel = Memory::default();
    channel.outcomes.borrow_mut().push_back(SendError::Unknown);
    gateway.run(&channel, &CancellationToken::new()).await.unwrap();
    assert_eq!(channel.attempts.borrow().len(), 4);
    let left = team.ask(query::Outbox { channel: "memory".into(), account: "bot".into() }).await.unwrap();
    let left: Vec<_> = left.iter().map(|message| (text_of(message), message.delivery.clone())).collect();
    assert_eq!(left, [("echo: message 1".to_owned(), Some(Delivery::Unknown))]);
    team.shutdown().await.unwrap();
}

/// A service outside of the process that is killed. Every line it is sent is a step.
struct Service {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Answers by chat, in the order they arrived, without repeats.
    answers: BTreeMap<String, Vec<String>>,
    /// Ids of messages that were sent here.
    ids: HashSet<String>,
    repeats: usize,
    acknowledged: HashSet<String>,
    delivered_again: HashSet<String>,
    child: Option<Child>,
    steps: u32,
    kills: usize,
}

impl Service {
    /// Counts a step; kills the process if this is the step it ends at. Returns whether it lives.
    fn step(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        state.steps += 1;
        let after = KILLED_AFTER.iter().cycle().nth(state.kills);
        if after.is_some_and(|after| state.steps < *after) {
            return true;
        }
        if let Some(mut child) = state.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
            state.kills += 1;
            self.changed.notify_all();
        }
        false
    }

    /// The next message of a chat comes after the answer to the one before; each is delivered until it is acknowledged, and once more.
    fn next(&self) -> Option<Value> {
        let mut state = self.state.lock().unwrap();
        loop {
            for chat in CHATS {
                let number = state.answers.get(chat).map_or(0, Vec::len);
                let native = format!("{chat}-{number}");
                let is_again = state.acknowledged.contains(&native);
                if number < MESSAGES_PER_CHAT && !(is_again && state.delivered_again.contains(&native)) {
                    if is_again {
                        state.delivered_again.insert(native.clone());
                    }
                    return Some(json!({ "chat": chat, "native": native, "text": format!("{chat} {number}") }));
                }
            }
            state.child.as_ref()?;
            state = self.changed.wait(state).unwrap();
        }
    }

    fn answer(&self, line: &Value) -> Option<Value> {
        let text = |key: &str| text_at(line, key);
        match text("do").as_str() {
            "poll" => return self.next(),
            "ack" => drop(self.state.lock().unwrap().acknowledged.insert(text("native"))),
            _ => {
                let mut state = self.state.lock().unwrap();
                if state.ids.insert(text("id")) {
                    state.answers.entry(text("chat")).or_default().push(text("text"));
                } else {
                    state.repeats += 1;
                }
            }
        }
        self.changed.notify_all();
        Some(json!({ "native": text("id") }))
    }

    fn serve(&self, stream: TcpStream) {
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let mut stream = stream;
        while let Some(Ok(line)) = lines.next() {
            // The request has arrived whether or not the process lives to read the answer.
            let Ok(line) = serde_json::from_str(&line) else { return };
            let answer = self.answer(&line);
            let (true, Some(answer)) = (self.step(), answer) else { return };
            if writeln!(stream, "{answer}").is_err() {
                return;
            }
        }
    }

    fn is_done(&self) -> bool {
        let state = self.state.lock().unwrap();
        CHATS.iter().all(|chat| state.answers.get(*chat).is_some_and(|all| all.len() == MESSAGES_PER_CHAT))
    }
}

/// The same service, from the process that is killed.
struct Remote {
    address: String,
}

impl Remote {
    /// One request on a connection of its own, made where it may block.
    async fn ask(&self, request: Value) -> std::io::Result<Value> {
        let address = self.address.clone();
        let work = move || {
            let mut stream = TcpStream::connect(address)?;
            writeln!(stream, "{request}")?;
            let mut line = String::new();
            BufReader::new(stream).read_line(&mut line)?;
            serde_json::from_str(&line).map_err(std::io::Error::other)
        };
        tokio::task::spawn_blocking(work).await.unwrap()
    }
}

impl Channel for Remote {
    fn name(&self) -> &str {
        "memory"
    }

    fn account(&self) -> &str {
        "bot"
    }

    fn drops_repeats(&self) -> bool {
        true
    }

    async fn listen(&self, gateway: &Gateway, _: &CancellationToken) -> Result<(), ChannelError> {
        let fault = |error: &dyn std::fmt::Display| ChannelError(error.to_string());
        loop {
            let next = self.ask(json!({ "do": "poll" })).await.map_err(|error| fault(&error))?;
            let text = |key: &str| text_at(&next, key);
            let incoming = message(&text("chat"), &text("native"), &text("text"), Role::Member);
            gateway.receive(incoming).await.map_err(|error| fault(&error))?;
            self.ask(json!({ "do": "ack", "native": text("native") })).await.map_err(|error| fault(&error))?;
        }
    }

    async fn send(&self, message: &OutgoingMessage) -> Result<String, SendError> {
        let request = json!({
            "do": "send", "id": message.id, "chat": message.chat.chat(), "text": text_of(message),
        });
        let sent = self.ask(request).await.map_err(|_| SendError::Unknown)?;
        Ok(text_at(&sent, "native"))
    }
}

#[tokio::test]
#[ignore = "the process that the next test starts and kills"]
#[expect(clippy::disallowed_methods, reason = "the test harness leaves no other way to hand something over")]
async fn killed_process() {
    let given = std::env::var(CHILD).unwrap();
    let given: Value = serde_json::from_str(&given).unwrap();
    let text = |key: &str| text_at(&given, key);
    let (team, gateway) = start(Path::new(&text("folder")), &text("model"));
    let ended = gateway.run(&Remote { address: text("service") }, &CancellationToken::new()).await;
    team.shutdown().await.unwrap();
    ended.unwrap();
}

fn spawn(folder: &Path, model: &ModelServer, service: &str) -> Child {
    let given = json!({ "folder": folder, "model": model.url(), "service": service });
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "killed_process", "--ignored", "--nocapture"]).env(CHILD, given.to_string());
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn each_message_has_one_answer_though_the_process_is_killed_at_every_step() {
    let folder = tempfile::tempdir().unwrap();
    let service = Arc::new(Service { state: Mutex::default(), changed: Condvar::new() });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serving = Arc::clone(&service);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let serving = Arc::clone(&serving);
            std::thread::spawn(move || serving.serve(stream.unwrap()));
        }
    });
    let stepping = Arc::clone(&service);
    let model = ModelServer::start(Script::new().when(move |request| {
        stepping.step();
        echo(request)
    }));
    while !service.is_done() {
        let mut state = service.state.lock().unwrap();
        if state.child.is_none() {
            state.steps = 0;
            state.child = Some(spawn(folder.path(), &model, &address));
        }
        let (state, waited) = service.changed.wait_timeout(state, Duration::from_secs(60)).unwrap();
        drop(state);
        assert!(!waited.timed_out(), "the service waits for an answer that does not come");
    }
    let mut state = service.state.lock().unwrap();
    if let Some(mut child) = state.child.take() {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    for chat in CHATS {
        let answers: Vec<String> = (0..MESSAGES_PER_CHAT).map(|number| format!("echo: {chat} {number}")).collect();
        assert_eq!(state.answers[chat], answers);
    }
    assert!(state.kills >= KILLED_AFTER.len(), "{} kills", state.kills);
    println!("{} kills, {} repeats dropped by the service", state.kills, state.repeats);
}
