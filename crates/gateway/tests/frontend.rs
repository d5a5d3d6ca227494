//! A frontend in one page: everything that another way into the team needs, without the binary, the journal or the terminal.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a broken fixture must fail the test loudly")]

use std::path::Path;

use max_team_core::id::{EnvelopeId, QuestionId, SessionId};
use max_team_core::message::{Principal, Role};
use max_team_core::policy::{DecidedBy, GrantScope, PermissionAnswer};
use max_team_runtime::stream::{ApprovalStep, Scope, StreamReader, What};
use max_team_runtime::{Command, Order, Query, Reply, RuntimeError, TeamHandle, Which, new_id, query};
use max_team_testkit::{ModelServer, Reply as Spoken, Script};
use max_team_workspace::open::Workspace;
use max_team_workspace::selection::Selection;
use max_team_workspace::setup::AppEnv;
use serde_json::json;

/// Where the frontend runs, with a model server instead of a provider.
fn place(folder: &Path, model: &ModelServer) -> AppEnv {
    let variables = [("ANTHROPIC_API_KEY", "sk-test".to_owned()), ("ANTHROPIC_BASE_URL", model.url())];
    let env = variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let (cwd, home) = (folder.join("project"), folder.join("home"));
    std::fs::create_dir_all(&cwd).unwrap();
    AppEnv { env, cwd, home, wished: None, notice: |_| {} }
}

fn person(user: &str, role: Role) -> Principal {
    Principal { door: "page".into(), user: user.into(), role }
}

async fn command(team: &TeamHandle, by: Principal, command: Command) -> Result<(), RuntimeError> {
    team.command(Order { by, cwd: String::new(), key: EnvelopeId::new(new_id()), command }).await
}

/// Follows the stream to the next question.
async fn question(stream: &mut StreamReader) -> QuestionId {
    loop {
        if let What::Approval { question, state: ApprovalStep::Asked, .. } = stream.next().await.unwrap().what {
            return question;
        }
    }
}

/// Follows the stream to the end of the turn.
async fn answer(stream: &mut StreamReader) -> String {
    loop {
        match stream.next().await.unwrap().what {
            What::Final { response, .. } => return response,
            What::Error { message, done: true, .. } => panic!("{message}"),
            _ => {}
        }
    }
}

/// Answers a question with yes.
async fn allow(team: &TeamHandle, by: Principal, session: SessionId, question: QuestionId) -> Result<(), RuntimeError> {
    let answer = PermissionAnswer {
        allow: true,
        always: false,
        until: GrantScope::default(),
        comment: String::new(),
        drop: false,
        put_off: false,
        word: String::new(),
        by: DecidedBy::person(&by),
    };
    command(team, by, Command::Answer { session, question, answer }).await
}

#[tokio::test]
async fn a_frontend_opens_asks_follows_attaches_and_leaves() {
    let folder = tempfile::tempdir().unwrap();
    let write = Spoken::new().tool("toolu_1", "write_file", json!({"path": "a.txt", "content": "hello\n"}));
    let model = ModelServer::start(Script::new().then(write).then(Spoken::text("It is written.")));
    let place = place(folder.path(), &model);

    // Open a session and follow it.
    let workspace = Workspace::read(&place, &Selection { solo: true, ..Selection::default() }, Vec::new()).unwrap();
    let journal = place.begin(&workspace.config).unwrap();
    let team = workspace.start(&place, journal, "a page", true).unwrap();
    let owner = person("ada", Role::Owner);
    let opened = team.open(owner.clone(), &workspace.root, workspace.request(Which::New)).await.unwrap();
    let session = opened.session;
    let from = team.ask(query::Position {}).await.unwrap();
    let mut stream = team.stream(Scope::Session(session), from).unwrap();

    // Send a message; the agent asks before it writes.
    let text = "write hello into a.txt".to_owned();
    command(&team, owner.clone(), Command::Say { session, text }).await.unwrap();
    let asked = question(&mut stream).await;

    // Attach a second time: the question waits there, too, and a viewer cannot answer it.
    let (page, viewer) = (team.clone(), person("eve", Role::Viewer));
    let attached = page.attach(&viewer, session).await.unwrap();
    assert_eq!(attached.asked.iter().map(|pending| pending.row.question).collect::<Vec<_>>(), [asked]);
    let refused = allow(&page, viewer, session, asked).await;
    assert!(matches!(refused, Err(RuntimeError::RoleTooLow { .. })), "{refused:?}");
    let mut second = page.stream(Scope::Session(session), attached.from).unwrap();
    allow(&page, owner, session, asked).await.unwrap();

    // Both frontends hear the same end.
    assert_eq!(answer(&mut stream).await, "It is written.");
    assert_eq!(answer(&mut second).await, "It is written.");
    assert_eq!(std::fs::read_to_string(workspace.root.join("a.txt")).unwrap(), "hello\n");

    // A query over a wire, and the same figure in its answer.
    let wire = json!({"costs": {"session": session, "since_ms": 0}});
    let reply = team.query(serde_json::from_value::<Query>(wire).unwrap()).await.unwrap();
    let Reply::Costs(costs) = &reply else { panic!("{reply:?}") };
    assert_eq!(costs.iter().map(|cost| cost.charge.calls).sum::<u64>(), 2);
    assert_eq!(serde_json::to_value(&reply).unwrap()["costs"][0]["name"], "max");
    team.shutdown().await.unwrap();
}
