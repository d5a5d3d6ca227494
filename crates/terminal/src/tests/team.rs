//! The team on the screen: plans at work, failures, members' questions.

use std::sync::Arc;

use crossterm::event::KeyCode;
use max_team_core::chat::Usage;
use max_team_core::cost::{SessionCost, Spending};
use max_team_core::event::{Event, LlmEnded, LlmOutcome, ToolDone, ToolOutcome, TurnOutcome};
use max_team_core::id::{AgentId, QuestionId};
use max_team_core::ledger::Charge;
use max_team_core::message::Assignment;
use max_team_core::plan::event::{Evidence, PlanDecision, Proof, Ruling};
use max_team_core::plan::{Draft, Findings, PlanInput, Report};
use max_team_core::policy::{Action, ActionKind, Basis, Recourse, RememberedRule};
use max_team_runtime::{AgentRow, Delta, OpenQuestion, OpenedSession, Origin, SessionDetails};
use uuid::Uuid;

use super::super::chat::Hint;
use super::super::command_queue::{CommandResult, StatusReason, UiCommand};
use super::stage::{self, Stage, edit as edit_action};
use super::team_stage::{self, TeamStage, ask_user, asks, at_work, started, task, team};
use max_team_workspace::i18n::Lang;

#[test]
fn the_gate() {
    for (columns, rows, lang, name) in
        [(80, 24, Lang::En, "gate_80x24"), (120, 40, Lang::Zh, "chinese_gate_120x40"), (40, 24, Lang::En, "gate_40x24")]
    {
        let team_stage = TeamStage::proposed(columns, rows, lang);
        insta::assert_snapshot!(name, team_stage.stage.glass.everything());
    }
}

#[test]
fn a_plan_at_work() {
    for (columns, rows, lang, name) in [
        (80, 24, Lang::En, "board_80x24"),
        (120, 40, Lang::En, "board_120x40"),
        (80, 24, Lang::Zh, "chinese_board_80x24"),
        (40, 24, Lang::En, "board_40x24"),
    ] {
        let mut team_stage = TeamStage::approved(columns, rows, lang);
        at_work(&mut team_stage);
        insta::assert_snapshot!(name, team_stage.stage.glass.screen());
    }
}

#[test]
fn a_large_plan_shows_what_matters() {
    let tasks = (0..100).map(|n| task(&format!("t{n:02}"), "leo", "One of many", &[])).collect();
    let mut team_stage = TeamStage::new(80, 24, Lang::En);
    team_stage.propose(Draft { goal: "many".into(), tasks, ..Draft::default() });
    team_stage.stage.wait(1_000);
    team_stage.stage.key(KeyCode::Char('y'));
    team_stage.stage.key(KeyCode::Enter);
    team_stage.carry_out();
    team_stage.stage.wait(1_000);
    let screen = team_stage.stage.glass.screen();
    assert!(screen.contains("… 89 more") && screen.contains("● t00"), "{screen}");
    team_stage.stage.control('t');
    let rows = |team_stage: &TeamStage| team_stage.stage.glass.screen().matches(" leo ").count();
    assert!(rows(&team_stage) > 15, "{}", team_stage.stage.glass.screen());
    team_stage.stage.control('t');
    assert_eq!(rows(&team_stage), 0);
    assert!(team_stage.stage.glass.screen().contains("the team is at work"), "{}", team_stage.stage.glass.screen());
    team_stage.stage.control('t');
    assert_eq!(rows(&team_stage), 11);
}

#[test]
fn numbers_are_repainted_a_few_times_a_second_at_most() {
    let mut team_stage = TeamStage::approved(80, 24, Lang::En);
    team_stage.begin("design");
    team_stage.stage.wait(2_000);
    let member = team_stage.member("design");
    team_stage.stage.delta_from(member.clone(), Delta::Thinking("hm".into()));
    assert!(!team_stage.stage.glass.screen().contains("thinking"), "not before its time");
    let due = team_stage.stage.chat.changes_at_ms().unwrap() - team_stage.stage.now_ms();
    assert!((1..=250).contains(&due), "{due}");
    team_stage.stage.wait(due);
    assert!(team_stage.stage.glass.screen().contains("thinking"));
}

#[test]
fn escape_leaves_the_team_alone_and_stop_stops_it() {
    let mut team_stage = TeamStage::approved(80, 24, Lang::En);
    team_stage.begin("design");
    team_stage.stage.wait(1_000);
    team_stage.stage.key(KeyCode::Esc);
    assert_eq!(team_stage.stage.chat.hint(), Some(Hint::TeamGoesOn));
    assert!(team_stage.stage.glass.screen().contains("/stop"));
    assert!(
        !team_stage
            .stage
            .acts
            .iter()
            .any(|act| matches!(act, UiCommand::Interrupt | UiCommand::StopSession | UiCommand::Stop { .. }))
    );
    team_stage.stage.say("/stop nope");
    assert!(team_stage.stage.glass.screen().contains("no open task `nope`"));
    team_stage.stage.say("/stop design");
    assert!(matches!(team_stage.stage.acts.last(), Some(UiCommand::Stop { task: Some(task), .. }) if task == "design"));
    for words in ["停", "stop", "/stop"] {
        team_stage.stage.acts.clear();
        team_stage.stage.say(words);
        assert!(
            matches!(team_stage.stage.acts.last(), Some(UiCommand::StopSession)),
            "{words}: {:?}",
            team_stage.stage.acts
        );
    }
    team_stage.stage.say("/clear");
    assert!(
        !team_stage.stage.acts.iter().any(|act| matches!(act, UiCommand::Open { .. })),
        "the plan is not left alone"
    );
    team_stage.stage.say("/team");
    let screen = team_stage.stage.glass.everything();
    assert!(screen.contains("architect") && screen.contains("state: design"), "{screen}");
}

/// Fails for good, and the lead has no advice.
fn failed(columns: u16, rows: u16, lang: Lang) -> TeamStage {
    let mut team_stage = TeamStage::approved(columns, rows, lang);
    team_stage.begin("design");
    team_stage.stage.wait(1_000);
    for _ in 0..10 {
        if team_stage.plan.needs_ruling() {
            break;
        }
        team_stage.fails("design", "docs/format.md");
        team_stage.stage.wait(600_000);
        team_stage.step(PlanInput::Woke);
        if !team_stage.plan.needs_ruling() {
            team_stage.begin("design");
        }
    }
    team_stage.step(PlanInput::LeadSilent);
    team_stage.stage.wait(1_000);
    team_stage
}

#[test]
fn a_failure_asks_what_to_do() {
    insta::assert_snapshot!("failure_80x24", failed(80, 24, Lang::En).stage.glass.screen());
    insta::assert_snapshot!("chinese_failure_120x40", failed(120, 40, Lang::Zh).stage.glass.screen());
    let retry =
        |agent: Option<&str>| Ruling::Retry { agent: agent.map(str::to_owned), model: None, note: String::new() };
    for (keys, want) in [
        ("r\n", retry(None)),
        ("s\n", Ruling::Skip),
        ("f\n", Ruling::Fixed),
        ("a\n", Ruling::Accept),
        ("g\n", Ruling::GiveUp),
        ("o\nbob\nmia\n", retry(Some("mia"))),
    ] {
        let mut team_stage = failed(80, 24, Lang::En);
        for key in keys.chars() {
            if key == '\n' {
                team_stage.stage.key(KeyCode::Enter);
                team_stage.stage.control('u');
            } else {
                team_stage.stage.write(&key.to_string());
            }
        }
        let Some(UiCommand::Decide { say, .. }) = team_stage.stage.acts.last() else {
            panic!("{keys}: {:?}", team_stage.stage.acts)
        };
        assert_eq!(*say, PlanDecision::Rule(want));
    }
}

#[test]
fn a_plan_that_is_over_leaves_a_summary() {
    for (columns, rows, lang, name) in
        [(80, 24, Lang::En, "summary_80x24"), (120, 40, Lang::Zh, "chinese_summary_120x40")]
    {
        let mut team_stage = TeamStage::approved(columns, rows, lang);
        at_work(&mut team_stage);
        team_stage.does("parser", Proof::Verified);
        team_stage.does("writer", Proof::Verified);
        team_stage.does("文档", Proof::Unverified);
        team_stage.stage.wait(1_000);
        team_stage.begin("tests");
        let evidence = vec![Evidence::new("make smoke", true, "passed")];
        let findings = Findings { proof: Proof::Verified, evidence, ..Findings::default() };
        team_stage
            .reports("tests", Report::Done { output: "ok".into(), findings: Some(findings), unknown: Vec::new() });
        team_stage.stage.wait(1_000);
        assert!(!team_stage.stage.chat.session().is_team_at_work());
        assert_eq!(team_stage.stage.chat.changes_at_ms(), None, "nothing wakes an idle chat");
        insta::assert_snapshot!(name, team_stage.stage.glass.screen());
    }
}

#[test]
fn a_member_asks() {
    for (columns, rows, lang, name) in
        [(80, 24, Lang::En, "member_question_80x24"), (120, 40, Lang::Zh, "chinese_member_question_120x40")]
    {
        let mut team_stage = TeamStage::approved(columns, rows, lang);
        at_work(&mut team_stage);
        let member = team_stage.member("parser");
        team_stage
            .stage
            .event_from(member.clone(), asks(11, "edit_file", edit_action("src/parse.rs", "@@ -1 +1 @@\n-a\n+b\n")));
        let other = team_stage.member("writer");
        team_stage.stage.event_from(other.clone(), asks(12, "edit_file", edit_action("src/write.rs", "")));
        team_stage.stage.wait(1_000);
        insta::assert_snapshot!(name, team_stage.stage.glass.screen());
        // The lead's turn and other members' calls do not close it.
        team_stage.stage.end(TurnOutcome::Answered);
        team_stage.stage.event_from(other, stage::ended(TurnOutcome::Interrupted));
        assert_eq!(team_stage.stage.chat.session().questions.count(), 1);
        team_stage.stage.key(KeyCode::Char('y'));
        team_stage.stage.key(KeyCode::Enter);
        let Some(UiCommand::Answer { question, answer, .. }) = team_stage.stage.acts.last() else { panic!() };
        assert!(answer.allow && *question == QuestionId::new(Uuid::from_u128(11)));
        let done = ToolDone {
            key: "1.0".into(),
            ending: ToolOutcome::Ran,
            content: Vec::new(),
            is_error: false,
            ms: 1,
            refused: None,
            words: String::new(),
        };
        team_stage.stage.event_from(member, Event::ToolDone(done));
        assert_eq!(team_stage.stage.chat.session().questions.count(), 0);
    }
}

#[test]
fn a_question_in_words_is_answered_in_words() {
    let answer = |keys: &[KeyCode]| {
        let mut stage = Stage::led(80, 24, false, Lang::En, Some(team()), &stage::opened());
        stage.event_from(stage::lead(), stage::started("go"));
        let question = "Which database should it be?\n1. SQLite\n2. PostgreSQL 数据库";
        stage.event_from(stage::lead(), asks(13, "ask_user", ask_user(question)));
        stage.wait(1_000);
        insta::assert_snapshot!("ask_user_80x24", stage.glass.screen());
        for key in keys {
            stage.key(*key);
        }
        let Some(UiCommand::Answer { answer, .. }) = stage.acts.pop() else { panic!("{keys:?}: {:?}", stage.acts) };
        (answer.allow, answer.comment)
    };
    assert_eq!(answer(&[KeyCode::Char('2'), KeyCode::Enter]), (true, "PostgreSQL 数据库".into()));
    assert_eq!(
        answer(&[KeyCode::Enter, KeyCode::Down, KeyCode::Down, KeyCode::Enter]),
        (true, "PostgreSQL 数据库".into())
    );
    assert_eq!(
        answer(&[KeyCode::Char('n'), KeyCode::Char('o'), KeyCode::Char('3'), KeyCode::Enter]),
        (true, "no3".into())
    );
    assert_eq!(answer(&[KeyCode::Esc]), (false, String::new()));
    assert_eq!(answer(&[KeyCode::Char('x'), KeyCode::Esc, KeyCode::Esc]), (false, String::new()));
}

/// An option that Enter would take is one that is seen, however small the window; or none is taken.
#[test]
fn a_small_window_shows_the_option_that_is_chosen() {
    for rows in 5..=12 {
        let mut stage = Stage::led(40, rows, false, Lang::En, Some(team()), &stage::opened());
        stage.event_from(stage::lead(), stage::started("go"));
        let question = "Which should it be?\n1. alpha\n2. beta\n3. gamma\n4. delta\n5. epsilon";
        stage.event_from(stage::lead(), asks(13, "ask_user", ask_user(question)));
        stage.wait(1_000);
        stage.acts.clear();
        stage.key(KeyCode::Char('4'));
        stage.wait(1_000);
        let screen = stage.glass.screen();
        stage.key(KeyCode::Enter);
        let Some(UiCommand::Answer { answer, .. }) = stage.acts.pop() else { continue };
        assert!(answer.comment == "delta" && screen.contains("4  delta"), "{rows}: {answer:?}\n{screen}");
        assert!(screen.contains("more lines") || screen.contains("alpha"), "{rows}\n{screen}");
    }
}

/// No plan is approved in a window that has no row to say that there is more to know about it.
#[test]
fn a_small_window_tells_of_the_risks_of_a_plan() {
    let mut approved = 0;
    for rows in 5..=16 {
        let mut team_stage = TeamStage::new(40, rows, Lang::En);
        team_stage.propose_with(team_stage::draft(), vec!["it deletes the old index".into()]);
        team_stage.stage.wait(1_000);
        team_stage.stage.acts.clear();
        let screen = team_stage.stage.glass.screen();
        team_stage.stage.key(KeyCode::Char('y'));
        team_stage.stage.key(KeyCode::Enter);
        let is_approved =
            team_stage.stage.acts.iter().any(|act| matches!(act, UiCommand::Decide { say: PlanDecision::Approve, .. }));
        let is_told = screen.contains("more lines") || screen.contains("! it deletes");
        assert!(!is_approved || is_told, "{rows}\n{screen}");
        approved += usize::from(is_approved);
    }
    assert!(approved > 0, "it fits somewhere");
}

#[test]
fn a_member_with_one_thing_to_do_has_one_line_and_one_row() {
    let mut stage = Stage::led(80, 24, false, Lang::En, Some(team()), &stage::opened());
    stage.say("go");
    stage.begin("go");
    stage.answer(vec![stage::tool_use("dispatch_task", serde_json::json!({"agent": "leo"}))]);
    stage.runs("1.0", "dispatch_task", Action { kind: ActionKind::Team, ..Action::read("leo") });
    let leo = Arc::new(Origin { name: "leo".into(), ..Origin::agent(AgentId::new(Uuid::from_u128(5))) });
    let given =
        Assignment { reply_to: String::new(), plan: None, task: "1.0".into(), attempt: 1, ..Assignment::default() };
    stage.event_from(leo.clone(), started(Some(given)));
    stage.event_from(leo.clone(), stage::intent(1, 1));
    stage.delta_from(leo.clone(), Delta::Text("some secret words".into()));
    assert!(stage.glass.screen().contains("⏺ leo: writing"), "{}", stage.glass.screen());
    assert!(!stage.glass.everything().contains("secret"));
    stage.event_from(leo.clone(), stage::answered(1, "some secret words"));
    stage.event_from(leo.clone(), stage::runs("1.0", "edit_file", Action::read("src/a.rs")));
    assert!(stage.glass.screen().contains("leo: edit_file src/a.rs"), "{}", stage.glass.screen());
    stage.wait(3_000);
    stage.event_from(leo, stage::ended(TurnOutcome::Answered));
    let screen = stage.glass.everything();
    assert!(screen.contains("⏺ leo: done · 3.0 s · $0.0087") && !screen.contains("secret"), "{screen}");
}

#[test]
fn a_called_agent_has_a_row_and_details() {
    let mut stage = Stage::led(100, 24, false, Lang::En, Some(team()), &stage::opened());
    stage.say("go");
    stage.begin("go");
    stage.answer(vec![stage::tool_use("agent", serde_json::json!({"type": "explore"}))]);
    stage.runs("1.0", "agent", Action { kind: ActionKind::Team, ..Action::read("explore") });
    let agent = AgentId::new(Uuid::from_u128(0xabc));
    let explore = Arc::new(Origin { name: "explore".into(), ..Origin::agent(agent) });
    let title = "find the parser".to_owned();
    let given = Assignment { task: "1.0".into(), attempt: 1, title, depth: 1, ..Assignment::default() };
    let did = [
        started(Some(given.clone())),
        stage::intent(1, 1),
        stage::answered(1, "It is in parse.rs."),
        stage::runs("1.0", "search_code", Action::read("parser")),
        stage::ended(TurnOutcome::Answered),
    ];
    let (last, first) = did.split_last().unwrap();
    first.iter().for_each(|event| stage.event_from(explore.clone(), event.clone()));
    let screen = stage.glass.screen();
    assert!(screen.contains("⏺ explore (find the parser): search_code parser · 1.5k tokens"), "{screen}");
    stage.event_from(explore, last.clone());
    assert!(stage.glass.everything().contains("⏺ explore (find the parser): done"), "{}", stage.glass.everything());
    assert!(!stage.glass.everything().contains("parse.rs"), "its words are not the lead's");

    stage.say("/show explore");
    assert!(matches!(stage.acts.last(), Some(UiCommand::Show(Some(who))) if who == "explore"), "{:?}", stage.acts);
    let row = AgentRow {
        agent,
        session: stage::session_id(),
        name: "explore".into(),
        role: "sub-agent".into(),
        assignment: Some(given.into()),
        at_ms: 0,
    };
    let shown = Some((row.clone(), did.iter().map(|event| (0, event.clone())).collect()));
    stage.chat.done(CommandResult::Shown { wanted: Some("explore".into()), outcome: Ok((vec![row.clone()], shown)) });
    stage.paint();
    let screen = stage.glass.everything();
    assert!(screen.contains("── explore-000abc") && screen.contains("# Your task"), "{screen}");
    assert!(screen.contains("It is in parse.rs."), "{screen}");
    stage.chat.done(CommandResult::Shown { wanted: Some("expolre".into()), outcome: Ok((vec![row], None)) });
    stage.paint();
    let screen = stage.glass.everything();
    assert!(
        screen.contains("no agent here is called `expolre`") && screen.contains("explore-000abc  find the parser"),
        "{screen}"
    );
}

#[test]
fn a_resumed_session_takes_its_plan_and_questions_up() {
    let mut first = TeamStage::approved(80, 24, Lang::En);
    first.begin("design");
    let id = first.id;
    let asked = OpenQuestion {
        question: QuestionId::new(Uuid::from_u128(21)),
        tool: "edit_file".into(),
        action: edit_action("a.md", ""),
        by: "ada".into(),
        agent: None,
        task: Some("design".into()),
        color: None,
        rule: "edits are asked about".into(),
        basis: Basis::Rule,
        memory: RememberedRule::Rules(vec!["Edit".into()]),
        recourse: Recourse::default(),
        at_ms: stage::START_MS,
    };
    let opened =
        OpenedSession { resumed: true, continuing: true, plans: vec![id], asked: vec![asked], ..stage::opened() };
    let mut stage = Stage::led(80, 24, false, Lang::En, Some(team()), &opened);
    assert!(stage.acts.iter().any(|act| matches!(act, UiCommand::Plan(plan) if *plan == id)));
    let plan = Box::new(first.plan.clone());
    stage.chat.done(CommandResult::Plan { plan: id, outcome: Ok(plan) });
    stage.wait(1_000);
    let screen = stage.glass.screen();
    assert!(screen.contains("? ada (task design) wants to use edit_file") && screen.contains("0/5 done"), "{screen}");
    assert!(screen.contains("edits are asked about"), "{screen}");

    // What is older than what was read is read again, not counted twice.
    let mut second = TeamStage { stage, plan: first.plan, id };
    second.stage.acts.clear();
    let origin = second.origin();
    let old = max_team_core::plan::event::TaskStarted { task: "design".into(), attempt: 1 };
    let session = stage::session_id();
    let (at_ms, event) = (stage::START_MS, Arc::new(Event::TaskStarted(old)));
    second.stage.chat.notice(&max_team_runtime::Notice::Event { session, from: origin, at_ms, event });
    second.stage.paint();
    assert!(matches!(second.stage.acts.as_slice(), [UiCommand::Plan(_)]));
    let plan = Box::new(second.plan.clone());
    second.stage.chat.done(CommandResult::Plan { plan: id, outcome: Ok(plan) });
    second.stage.wait(1_000);
    second.does("design", Proof::Unverified);
    second.stage.wait(1_000);
    assert!(second.stage.glass.screen().contains("1/5 done"), "{}", second.stage.glass.screen());
}

#[test]
fn a_parked_proposal_is_asked_again_after_a_resume() {
    let mut first = TeamStage::proposed(80, 24, Lang::En);
    let opened = OpenedSession { resumed: true, continuing: true, plans: vec![first.id], ..stage::opened() };
    let mut stage = Stage::led(80, 24, false, Lang::En, Some(team()), &opened);
    stage.chat.done(CommandResult::Plan { plan: first.id, outcome: Ok(Box::new(first.plan.clone())) });
    stage.wait(1_000);
    let everything = stage.glass.everything();
    assert!(everything.contains("critical path") && everything.contains(" y  approve"), "{everything}");
    first.stage = stage;
    first.stage.key(KeyCode::Char('y'));
    first.stage.key(KeyCode::Enter);
    first.carry_out();
    first.stage.wait(1_000);
    assert!(first.stage.glass.screen().contains("● design"), "{}", first.stage.glass.screen());
}

#[test]
fn a_resize_shows_a_plan_at_work_once() {
    let mut team_stage = TeamStage::approved(80, 24, Lang::Zh);
    at_work(&mut team_stage);
    for (columns, rows) in [(60, 24), (100, 30), (47, 24), (120, 40), (80, 24)] {
        team_stage.stage.resize(columns, rows);
        team_stage.stage.wait(300);
        let everything = team_stage.stage.glass.everything();
        assert_eq!(everything.matches("▸ 计划").count(), 1, "{columns}x{rows}:\n{everything}");
        assert!(everything.matches("● parser").count() <= 1, "{columns}x{rows}:\n{everything}");
    }
}

/// Whoever looks back at what was said has a line like everybody, and keeps nobody from going on.
#[test]
fn a_background_agent_does_not_keep_the_session_busy() {
    for aside in [false, true] {
        let mut stage = Stage::led(80, 24, false, Lang::En, Some(team()), &stage::opened());
        let memory = Origin { name: "memory".into(), aside, ..Origin::agent(AgentId::new(Uuid::from_u128(5))) };
        let given = Assignment { task: "memory".into(), attempt: 1, depth: 1, ..Assignment::default() };
        stage.event_from(Arc::new(memory), started(Some(given)));
        assert!(stage.glass.screen().contains("memory: "), "{}", stage.glass.screen());
        stage.say("/clear");
        assert_eq!(
            stage.acts.iter().any(|act| matches!(act, UiCommand::Open { .. })),
            aside,
            "{}",
            stage.glass.screen()
        );
    }
}

/// A stored state and the events that were heard contain the same calls: each call counts once.
#[test]
fn the_status_line_counts_a_running_turn_once() {
    let mut stage = Stage::new(110, 24);
    let leo = AgentId::new(Uuid::from_u128(11));
    let origin = Arc::new(Origin { name: "leo".into(), ..Origin::agent(leo) });
    let told = |stage: &mut Stage, cost| {
        let outcome = Ok(Box::new(SessionDetails { cost, ..stage::status() }));
        stage.chat.done(CommandResult::Status { reason: StatusReason::Footer, outcome });
        stage.chat.session().cost().total()
    };
    stage.event_from(origin.clone(), started(None));
    stage.event_from(origin.clone(), stage::intent(1, 1));
    stage.event_from(origin.clone(), stage::answered(1, "so far"));
    let heard = stage.chat.session().cost().total();
    assert!(heard.nano > 0);
    let Spending { calls, usage, nano, .. } = heard;
    let mut stored = SessionCost::default();
    stored.charge(leo, &Charge { model: "m".into(), calls, usage, nano, last_call: 1, ..Charge::default() });
    for cost in [SessionCost::default(), stored.clone(), stored] {
        assert_eq!(told(&mut stage, cost), heard);
    }
    stage.event_from(origin.clone(), stage::intent(2, 1));
    let usage = Usage { input: 1, ..Usage::default() };
    let (outcome, estimate) = (LlmOutcome::Lost, Some(usage));
    let lost = LlmEnded { call: 2, outcome, ms: 1, summary: false, estimate };
    stage.event_from(origin, Event::LlmEnded(lost));
    let sum = stage.chat.session().cost().total();
    assert_eq!((sum.nano, sum.unknown_nano), (heard.nano + 3_000, 3_000));
}
