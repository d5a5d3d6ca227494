//! The gate on the screen: what each key says about a plan, and what is never taken for a yes.

use crossterm::event::KeyCode;
use max_team_core::id::PlanId;
use max_team_core::plan::event::PlanDecision;
use max_team_core::plan::{Draft, Edit, PlanInput};
use max_team_core::policy::DecidedBy;
use uuid::Uuid;

use super::super::chat::Wish;
use super::super::command_queue::UiCommand;
use super::team_stage::{TeamStage, draft};
use max_team_workspace::i18n::Lang;

#[test]
fn each_key_of_the_gate_says_one_thing() {
    let table = [
        (vec![KeyCode::Char('y'), KeyCode::Enter], PlanDecision::Approve),
        (vec![KeyCode::Enter, KeyCode::Right, KeyCode::Enter], PlanDecision::Approve),
        (vec![KeyCode::Char('1'), KeyCode::Enter], PlanDecision::FirstWave),
        (vec![KeyCode::Right, KeyCode::Right, KeyCode::Enter], PlanDecision::FirstWave),
        (
            vec![KeyCode::Char('c'), KeyCode::Enter, KeyCode::Enter, KeyCode::Char('y'), KeyCode::Enter],
            PlanDecision::Changes("y".into()),
        ),
        (vec![KeyCode::Char('n'), KeyCode::Enter, KeyCode::Enter], PlanDecision::Reject(String::new())),
        (
            vec![
                KeyCode::Char('n'),
                KeyCode::Enter,
                KeyCode::Char('x'),
                KeyCode::Esc,
                KeyCode::Char('n'),
                KeyCode::Enter,
                KeyCode::Char('贵'),
                KeyCode::Enter,
            ],
            PlanDecision::Reject("贵".into()),
        ),
    ];
    for (keys, want) in table {
        let mut team_stage = TeamStage::proposed(80, 24, Lang::En);
        for key in &keys {
            team_stage.stage.key(*key);
        }
        let Some(UiCommand::Decide { say, .. }) = team_stage.stage.acts.last() else {
            panic!("{keys:?}: {:?}", team_stage.stage.acts)
        };
        assert_eq!(*say, want, "{keys:?}");
        assert_eq!(team_stage.stage.chat.session().questions.count(), 0);
    }
}

#[test]
fn a_plan_cannot_be_approved_unseen() {
    for rows in 5..24 {
        for columns in [39, 40, 60, 80] {
            let mut team_stage = TeamStage::proposed(columns, rows, Lang::En);
            let screen = team_stage.stage.glass.screen();
            let shown = ["approve", "reject", "later", "? Plan"].iter().all(|words| screen.contains(words));
            team_stage.stage.key(KeyCode::Char('y'));
            team_stage.stage.key(KeyCode::Enter);
            let decided = team_stage.stage.acts.iter().any(|act| matches!(act, UiCommand::Decide { .. }));
            assert_eq!(shown, decided, "{columns}x{rows}:\n{screen}");
        }
    }
}

#[test]
fn a_plan_question_can_be_left_open() {
    let mut team_stage = TeamStage::proposed(80, 40, Lang::En);
    team_stage.stage.wait(2_000);
    assert_eq!(team_stage.stage.control('d'), Some(Wish::Leave));
    // Where words are written, the key is the editor's.
    team_stage.stage.key(KeyCode::Char('c'));
    team_stage.stage.key(KeyCode::Enter);
    assert_eq!(team_stage.stage.control('d'), None);
}

#[test]
fn typing_does_not_approve_a_plan() {
    let mut team_stage = TeamStage::new(80, 24, Lang::En);
    team_stage.stage.write("wait");
    team_stage.propose(draft());
    team_stage.stage.write("y");
    assert!(!team_stage.stage.acts.iter().any(|act| matches!(act, UiCommand::Decide { .. })));
    assert!(team_stage.stage.glass.screen().contains("> waity"));
}

#[test]
fn a_plan_put_off_is_parked_and_comes_back() {
    let mut team_stage = TeamStage::proposed(80, 24, Lang::En);
    team_stage.stage.key(KeyCode::Esc);
    assert!(!team_stage.stage.acts.iter().any(|act| matches!(act, UiCommand::Decide { .. })));
    let screen = team_stage.stage.glass.screen();
    assert!(screen.contains("plan waits for you: add CSV") && screen.contains("/plan"), "{screen}");
    team_stage.stage.say("/inbox");
    assert!(team_stage.stage.glass.screen().contains("may it run?"));
    team_stage.stage.say("/plan");
    team_stage.stage.wait(1_000);
    assert!(team_stage.stage.glass.screen().contains(" y  approve"), "{}", team_stage.stage.glass.screen());
    let elsewhere = DecidedBy::Person("ada at cli".into());
    let (question, _) = team_stage.plan.asked().next().unwrap();
    team_stage.step(PlanInput::Answered { question, say: PlanDecision::Approve, by: elsewhere });
    let screen = team_stage.stage.glass.screen();
    assert!(screen.contains("answered: approved by ada (command line)") && !screen.contains(" y  approve"), "{screen}");
}

#[test]
fn a_plan_is_edited_and_nonsense_is_refused() {
    let mut team_stage = TeamStage::proposed(80, 40, Lang::En);
    team_stage.stage.key(KeyCode::Char('e'));
    team_stage.stage.key(KeyCode::Enter);
    team_stage.stage.write("wr");
    insta::assert_snapshot!("edit_task_80x40", team_stage.stage.glass.screen());
    team_stage.stage.key(KeyCode::Enter);
    team_stage.stage.key(KeyCode::Char('o'));
    team_stage.stage.control('u');
    team_stage.stage.write("bob");
    team_stage.stage.key(KeyCode::Enter);
    insta::assert_snapshot!("edit_owner_80x40", team_stage.stage.glass.screen());
    assert!(!team_stage.stage.acts.iter().any(|act| matches!(act, UiCommand::Decide { .. })));
    team_stage.stage.control('u');
    team_stage.stage.write("mia");
    team_stage.stage.key(KeyCode::Enter);
    let Some(UiCommand::Decide { say: PlanDecision::Edit(edits), .. }) = team_stage.stage.acts.last() else { panic!() };
    assert_eq!(*edits, [Edit::Assign { task: "writer".into(), agent: "mia".into() }]);
    team_stage.carry_out();
    assert!(team_stage.stage.glass.everything().contains("· writer (mia)"), "{}", team_stage.stage.glass.everything());

    team_stage.stage.key(KeyCode::Char('n'));
    team_stage.stage.control('u');
    team_stage.stage.write("tests");
    team_stage.stage.key(KeyCode::Enter);
    assert!(
        team_stage.stage.glass.screen().contains("wait for each other: writer → tests → writer"),
        "{}",
        team_stage.stage.glass.screen()
    );
    team_stage.stage.key(KeyCode::Esc);
    for (key, words, want) in [
        (
            'b',
            "0.50",
            Some(Edit::Budget {
                task: Some("writer".into()),
                budget: max_team_core::plan::Budget { nano: Some(500_000_000), ..Default::default() },
            }),
        ),
        ('b', "much", None),
        ('m', "gpt-5", Some(Edit::Model { task: "writer".into(), model: Some("gpt-5".into()) })),
        ('m', "gpt-99", None),
        ('d', "Write it well.", Some(Edit::Describe { task: "writer".into(), text: "Write it well.".into() })),
    ] {
        team_stage.stage.acts.clear();
        team_stage.stage.key(KeyCode::Char(key));
        team_stage.stage.control('u');
        team_stage.stage.write(words);
        team_stage.stage.key(KeyCode::Enter);
        match (want, team_stage.stage.acts.last()) {
            (Some(want), Some(UiCommand::Decide { say: PlanDecision::Edit(edits), .. })) => assert_eq!(*edits, [want]),
            (None, None) => {
                team_stage.stage.key(KeyCode::Esc);
            }
            (want, act) => panic!("{words}: {want:?} {act:?}"),
        }
    }
    team_stage.stage.acts.clear();
    team_stage.stage.key(KeyCode::Char('s'));
    team_stage.carry_out();
    assert!(team_stage.stage.glass.everything().contains("skipped: yes"));
    team_stage.stage.key(KeyCode::Esc);
    team_stage.stage.key(KeyCode::Esc);
    team_stage.stage.key(KeyCode::Char('y'));
    team_stage.stage.key(KeyCode::Enter);
    assert!(matches!(team_stage.stage.acts.last(), Some(UiCommand::Decide { say: PlanDecision::Approve, .. })));
}

/// Somebody changes the plan elsewhere, just before a key is pressed here.
#[test]
fn a_plan_changed_elsewhere_is_asked_about_anew() {
    let edits = || vec![Edit::Assign { task: "writer".into(), agent: "mia".into() }];
    let decided =
        |team_stage: &TeamStage| team_stage.stage.acts.iter().any(|act| matches!(act, UiCommand::Decide { .. }));
    let mut team_stage = TeamStage::proposed(80, 40, Lang::En);
    team_stage.edited(edits());
    let everything = team_stage.stage.glass.everything();
    assert_eq!(everything.matches("· writer (mia)").count(), 1, "{everything}");
    team_stage.stage.key(KeyCode::Char('y'));
    assert!(!decided(&team_stage), "{:?}", team_stage.stage.acts);
    team_stage.stage.key(KeyCode::Backspace);
    team_stage.stage.wait(1_000);
    team_stage.stage.key(KeyCode::Char('y'));
    team_stage.stage.key(KeyCode::Enter);
    let Some(UiCommand::Decide { question, say: PlanDecision::Approve }) = team_stage.stage.acts.last() else {
        panic!()
    };
    assert_eq!(team_stage.plan.asked().next().map(|(question, _)| question), Some(*question));

    // What was being chosen or written was about what the plan said before.
    let mut team_stage = TeamStage::proposed(80, 40, Lang::En);
    team_stage.stage.key(KeyCode::Char('n'));
    team_stage.stage.key(KeyCode::Enter);
    team_stage.stage.write("too dear");
    team_stage.edited(edits());
    team_stage.stage.key(KeyCode::Enter);
    assert!(!decided(&team_stage), "{:?}", team_stage.stage.acts);
    // Two at once: theirs is made, ours is not, so what it says now is news.
    let mut team_stage = TeamStage::proposed(80, 40, Lang::En);
    for key in [KeyCode::Char('e'), KeyCode::Enter, KeyCode::Enter, KeyCode::Char('s')] {
        team_stage.stage.key(key);
    }
    assert!(decided(&team_stage));
    team_stage.stage.acts.clear();
    team_stage.edited(edits());
    for key in [KeyCode::Esc, KeyCode::Esc, KeyCode::Char('y'), KeyCode::Enter] {
        team_stage.stage.key(key);
    }
    assert!(!decided(&team_stage), "{:?}", team_stage.stage.acts);
}

/// Two plans wait: what stands above a question is the plan that it asks about.
#[test]
fn the_sheet_that_is_shown_is_of_the_plan_that_is_asked_about() {
    let named = |goal: &str| Draft { goal: goal.into(), ..draft() };
    let sheets = |team_stage: &TeamStage, goal: &str| {
        team_stage.stage.glass.everything().matches(&format!(": {goal}\n")).count()
    };
    let mut team_stage = TeamStage::new(80, 40, Lang::En);
    team_stage.propose(named("the first of them"));
    let first = (team_stage.id, std::mem::take(&mut team_stage.plan));
    team_stage.id = PlanId::new(Uuid::from_u128(78));
    team_stage.propose(named("the second of them"));
    team_stage.stage.wait(1_000);
    let counts =
        |team_stage: &TeamStage| (sheets(team_stage, "the first of them"), sheets(team_stage, "the second of them"));
    assert_eq!(counts(&team_stage), (1, 0), "{}", team_stage.stage.glass.everything());

    // Put off, it gives way to the other; asked for again, it comes with its own.
    team_stage.stage.key(KeyCode::Esc);
    assert_eq!(counts(&team_stage), (1, 1), "{}", team_stage.stage.glass.everything());
    team_stage.stage.say("/inbox");
    assert_eq!(counts(&team_stage), (2, 1), "{}", team_stage.stage.glass.everything());
    team_stage.stage.wait(1_000);
    team_stage.stage.key(KeyCode::Char('y'));
    team_stage.stage.key(KeyCode::Enter);
    let second = std::mem::replace(&mut team_stage.plan, first.1);
    let id = std::mem::replace(&mut team_stage.id, first.0);
    team_stage.carry_out();
    assert!(team_stage.plan.is_approved() && !second.is_approved());
    assert_eq!(counts(&team_stage), (2, 2), "{}", team_stage.stage.glass.everything());
    (team_stage.id, team_stage.plan) = (id, second);
    team_stage.stage.wait(1_000);
    team_stage.stage.key(KeyCode::Char('y'));
    team_stage.stage.key(KeyCode::Enter);
    team_stage.carry_out();
    assert_eq!(counts(&team_stage), (2, 2));
    assert!(team_stage.plan.is_approved());
}

/// Three lines of each task's instructions stand in the plan; Tab shows all of them and answers nothing.
#[test]
fn tab_shows_all_instructions() {
    for (columns, rows, lang, more) in [
        (80, 24, Lang::En, "… 4 more lines (/plan full)"),
        (120, 40, Lang::En, "… 4 more lines (/plan full)"),
        (80, 24, Lang::Zh, "……还有 4 行（/plan full）"),
    ] {
        let long: Vec<String> = (1..=7).map(|line| format!("Step {line}: do it.")).collect();
        let mut draft = draft();
        draft.tasks[0].description = long.join("\n");
        let mut team_stage = TeamStage::new(columns, rows, lang);
        team_stage.propose(draft);
        team_stage.stage.wait(1_000);
        let shown = team_stage.stage.glass.everything();
        assert!(shown.contains("│ Step 3: do it.") && !shown.contains("Step 4") && shown.contains(more), "{shown}");
        team_stage.stage.key(KeyCode::Char('y'));
        team_stage.stage.key(KeyCode::Tab);
        let shown = team_stage.stage.glass.everything();
        assert!(shown.contains("│ Step 7: do it."), "{shown}");
        assert_eq!(shown.matches("│ Step 1: do it.").count(), 2, "once in short, once in full");
        team_stage.stage.key(KeyCode::Enter);
        assert!(
            matches!(team_stage.stage.acts.last(), Some(UiCommand::Decide { say: PlanDecision::Approve, .. })),
            "it stays chosen"
        );
        team_stage.stage.say("/plan full");
        assert_eq!(team_stage.stage.glass.everything().matches("Step 7").count(), 2);
    }
}

/// What somebody was asking for when the plan was answered elsewhere is not lost.
#[test]
fn words_about_a_plan_that_was_answered_elsewhere_are_kept() {
    let mut team_stage = TeamStage::proposed(80, 40, Lang::En);
    team_stage.stage.key(KeyCode::Char('c'));
    team_stage.stage.key(KeyCode::Enter);
    team_stage.stage.write("one task less");
    let (question, _) = team_stage.plan.asked().next().unwrap();
    team_stage.step(PlanInput::Answered {
        question,
        say: PlanDecision::Approve,
        by: DecidedBy::Person("ada at cli".into()),
    });
    assert!(team_stage.stage.glass.screen().contains("> one task less"), "{}", team_stage.stage.glass.screen());
}
