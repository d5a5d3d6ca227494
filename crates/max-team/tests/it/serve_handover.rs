//! A session that a terminal hands over: the server goes on with it, also if the terminal dies in the middle.

use max_team_core::id::EnvelopeId;
use max_team_core::message::{Principal, Role};
use max_team_journal::{Journal, Options};
use max_team_runtime::{UserMail, new_id};
use max_team_testkit::{Gate, ModelServer, Reply, Script};
use max_team_tools::worktree::Worktrees;
use serde_json::{Value, json};

use super::chat::Terminal;
use super::plans::{news, plan, task, voice, write};
use super::program::{Program, kill, soon};
use super::serve::{Client, is_final, serve};

/// A team that plans two tasks after "please"; the answer to the second waits at the gate.
fn two_tasks(gate: &Gate) -> ModelServer {
    let tasks = json!([
        { "id": "look", "title": "look", "agent": "sam", "description": "Look." },
        { "id": "mend", "title": "mend", "agent": "leo", "description": "Mend.", "depends_on": ["look"], "owns": ["a.txt"] },
    ]);
    let script = Script::new()
        .when(voice(task("look"), vec![Reply::text("It is broken.")]))
        .when(voice(task("mend"), vec![write("a.txt", "mended\n").gate_before(gate), Reply::text("It is mended.")]))
        .when(voice(news("please"), vec![plan(tasks)]))
        .on(|_| true, Reply::text("All is done."));
    ModelServer::start(script)
}

/// The only session that there is.
fn only_session(browser: &Client) -> Value {
    let sessions = browser.get("/api/v1/sessions").json()["sessions"].clone();
    assert_eq!(sessions.as_array().unwrap().len(), 1, "{sessions}");
    sessions[0].clone()
}

/// Follows the session until the lead has reported, and looks at what was done.
fn assert_finished(program: &Program, model: &ModelServer, browser: &Client, session: &str) {
    let mut events = browser.events(&format!("?session={session}&from=0"), &[]);
    events.until(|event| event["type"] == "plan" && event["state"] == "done");
    assert_eq!(events.until(is_final)["response"], "All is done.");
    assert_eq!(program.read("a.txt"), "mended\n");
    let asked = |name| model.requests().iter().filter(|request| task(name)(request)).count();
    assert_eq!(asked("look"), 1, "what was done is not done again");
    let entries = program.journal();
    for (event, wanted) in [("task_done", 2), ("plan_ended", 1)] {
        let found = entries.iter().filter(|entry| entry["event"] == event).count();
        assert_eq!(found, wanted, "{event}");
    }
    assert_eq!(only_session(browser)["open"], "here");
}

#[test]
fn a_chat_hands_its_plan_over_and_the_server_finishes_it() {
    let gate = Gate::new();
    let model = two_tasks(&gate);
    let program = Program::team(&model);
    let mut terminal = Terminal::watched(&program, &["please mend it", "--approve", "never"]);
    gate.wait_reached();
    // Without a server the chat stays.
    terminal.keys(&["/detach", "Enter"]);
    terminal.wait("no server runs for");
    let server = serve(&program, &[]);
    let browser = Client::browser(&server);
    assert_eq!(only_session(&browser)["open"], "elsewhere");
    terminal.keys(&["/detach", "Enter"]);
    terminal.wait("goes on in the server");
    assert_eq!(terminal.code(&program), 0);
    let session = only_session(&browser)["session"].as_str().unwrap().to_owned();
    gate.open();
    assert_finished(&program, &model, &browser, &session);
    let journal = Journal::open_existing(program.home(), Options::default()).unwrap();
    assert!(
        journal.mailboxes().unwrap().iter().all(|address| !address.starts_with("server/")),
        "the hand-over is settled"
    );
}

#[test]
fn a_terminal_that_is_killed_while_it_hands_over_loses_nothing() {
    let gate = Gate::new();
    let model = two_tasks(&gate);
    let program = Program::team(&model);
    let server = serve(&program, &[]);
    let browser = Client::browser(&server);
    let mut run = program.start(&["-p", "please mend it", "--approve", "never"]);
    gate.wait_reached();
    let session = only_session(&browser)["session"].as_str().unwrap().to_owned();
    // The hand-over is stored, and the process has not let go of the session yet.
    let journal = Journal::open_existing(program.home(), Options::default()).unwrap();
    let by = Principal { door: "terminal".to_owned(), user: "ann".to_owned(), role: Role::Owner };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let hand_over = |by: Principal| {
        let (key, session) = (EnvelopeId::new(new_id()), session.parse().unwrap());
        runtime.block_on(UserMail::new(&journal).hand_over(&by, key, session, &Worktrees::within(&program.home())))
    };
    assert!(hand_over(Principal { role: Role::Viewer, ..by.clone() }).is_err(), "a viewer hands nothing over");
    hand_over(by).unwrap();
    assert_eq!(only_session(&browser)["open"], "elsewhere", "the server waits");
    kill(&mut run);
    gate.open();
    assert!(soon(|| only_session(&browser)["open"] == "here"), "the server goes on by itself");
    assert_finished(&program, &model, &browser, &session);
}

#[test]
fn a_hand_over_outlives_the_server_that_it_was_for() {
    let gate = Gate::new();
    let model = two_tasks(&gate);
    let program = Program::team(&model);
    let mut server = serve(&program, &[]);
    let mut run = program.start(&["-p", "please mend it", "--approve", "never"]);
    gate.wait_reached();
    let session = only_session(&Client::browser(&server))["session"].as_str().unwrap().to_owned();
    let journal = Journal::open_existing(program.home(), Options::default()).unwrap();
    let by = Principal { door: "terminal".to_owned(), user: "ann".to_owned(), role: Role::Owner };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let post = UserMail::new(&journal);
    runtime
        .block_on(post.hand_over(
            &by,
            EnvelopeId::new(new_id()),
            session.parse().unwrap(),
            &Worktrees::within(&program.home()),
        ))
        .unwrap();
    kill(&mut server.child);
    kill(&mut run);
    gate.open();
    let server = serve(&program, &[]);
    assert_finished(&program, &model, &Client::browser(&server), &session);
}
