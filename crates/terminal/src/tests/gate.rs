//! The gate on the screen: what each key says about a plan, and what is never taken for a yes.

use crossterm::event::KeyCode;
use max_team_core::id::PlanId;
use max_team_core::plan::event::PlanDecision;
use max_team_core::plan::{Draft, Edit, PlanInput};
use max_team_core::policy::DecidedBy;
use uuid::Uuid;

use super::super::chat::Wish;
use super::super::command_queue::UiCommand;
use super::house::{House, draft};
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
        let mut house = House::proposed(80, 24, Lang::En);
        for key in &keys {
            house.stage.key(*key);
        }
        let Some(UiCommand::Decide { say, .. }) = house.stage.acts.last() else {
            panic!("{keys:?}: {:?}", house.stage.acts)
        };
        assert_eq!(*say, want, "{keys:?}");
        assert_eq!(house.stage.chat.session().questions.count(), 0);
    }
}

#[test]
fn a_plan_cannot_be_approved_unseen() {
    for rows in 5..24 {
        for columns in [39, 40, 60, 80] {
            let mut house = House::proposed(columns, rows, Lang::En);
            let screen = house.stage.glass.screen();
            let shown = ["approve", "reject", "later", "? Plan"].iter().all(|words| screen.contains(words));
            house.stage.key(KeyCode::Char('y'));
            house.stage.key(KeyCode::Enter);
            let decided = house.stage.acts.iter().any(|act| matches!(act, UiCommand::Decide { .. }));
            assert_eq!(shown, decided, "{columns}x{rows}:\n{screen}");
        }
    }
}

#[test]
fn a_plan_question_can_be_left_open() {
    let mut house = House::proposed(80, 40, Lang::En);
    house.stage.wait(2_000);
    assert_eq!(house.stage.control('d'), Some(Wish::Leave));
    // Where words are written, the key is the editor's.
    house.stage.key(KeyCode::Char('c'));
    house.stage.key(KeyCode::Enter);
    assert_eq!(house.stage.control('d'), None);
}

#[test]
fn typing_does_not_approve_a_plan() {
    let mut house = House::new(80, 24, Lang::En);
    house.stage.write("wait");
    house.propose(draft());
    house.stage.write("y");
    assert!(!house.stage.acts.iter().any(|act| matches!(act, UiCommand::Decide { .. })));
    assert!(house.stage.glass.screen().contains("> waity"));
}

#[test]
fn a_plan_put_off_is_parked_and_comes_back() {
    let mut house = House::proposed(80, 24, Lang::En);
    house.stage.key(KeyCode::Esc);
    assert!(!house.stage.acts.iter().any(|act| matches!(act, UiCommand::Decide { .. })));
    let screen = house.stage.glass.screen();
    assert!(screen.contains("plan waits for you: add CSV") && screen.contains("/plan"), "{screen}");
    house.stage.say("/inbox");
    assert!(house.stage.glass.screen().contains("may it run?"));
    house.stage.say("/plan");
    house.stage.wait(1_000);
    assert!(house.stage.glass.screen().contains(" y  approve"), "{}", house.stage.glass.screen());
    let elsewhere = DecidedBy::Person("ada at cli".into());
    let (question, _) = house.plan.asked().next().unwrap();
    house.step(PlanInput::Answered { question, say: PlanDecision::Approve, by: elsewhere });
    let screen = house.stage.glass.screen();
    assert!(screen.contains("answered: approved by ada at cli") && !screen.contains(" y  approve"), "{screen}");
}

#[test]
fn a_plan_is_edited_and_nonsense_is_refused() {
    let mut house = House::proposed(80, 40, Lang::En);
    house.stage.key(KeyCode::Char('e'));
    house.stage.key(KeyCode::Enter);
    house.stage.write("wr");
    insta::assert_snapshot!("edit_task_80x40", house.stage.glass.screen());
    house.stage.key(KeyCode::Enter);
    house.stage.key(KeyCode::Char('o'));
    house.stage.control('u');
    house.stage.write("bob");
    house.stage.key(KeyCode::Enter);
    insta::assert_snapshot!("edit_owner_80x40", house.stage.glass.screen());
    assert!(!house.stage.acts.iter().any(|act| matches!(act, UiCommand::Decide { .. })));
    house.stage.control('u');
    house.stage.write("mia");
    house.stage.key(KeyCode::Enter);
    let Some(UiCommand::Decide { say: PlanDecision::Edit(edits), .. }) = house.stage.acts.last() else { panic!() };
    assert_eq!(*edits, [Edit::Assign { task: "writer".into(), agent: "mia".into() }]);
    house.carry_out();
    assert!(house.stage.glass.everything().contains("· writer (mia)"), "{}", house.stage.glass.everything());

    house.stage.key(KeyCode::Char('n'));
    house.stage.control('u');
    house.stage.write("tests");
    house.stage.key(KeyCode::Enter);
    assert!(
        house.stage.glass.screen().contains("wait for each other: writer → tests → writer"),
        "{}",
        house.stage.glass.screen()
    );
    house.stage.key(KeyCode::Esc);
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
        house.stage.acts.clear();
        house.stage.key(KeyCode::Char(key));
        house.stage.control('u');
        house.stage.write(words);
        house.stage.key(KeyCode::Enter);
        match (want, house.stage.acts.last()) {
            (Some(want), Some(UiCommand::Decide { say: PlanDecision::Edit(edits), .. })) => assert_eq!(*edits, [want]),
            (None, None) => {
                house.stage.key(KeyCode::Esc);
            }
            (want, act) => panic!("{words}: {want:?} {act:?}"),
        }
    }
    house.stage.acts.clear();
    house.stage.key(KeyCode::Char('s'));
    house.carry_out();
    assert!(house.stage.glass.everything().contains("skipped: yes"));
    house.stage.key(KeyCode::Esc);
    house.stage.key(KeyCode::Esc);
    house.stage.key(KeyCode::Char('y'));
    house.stage.key(KeyCode::Enter);
    assert!(matches!(house.stage.acts.last(), Some(UiCommand::Decide { say: PlanDecision::Approve, .. })));
}

/// Somebody changes the plan elsewhere, just before a key is pressed here.
#[test]
fn a_plan_changed_elsewhere_is_asked_about_anew() {
    let edits = || vec![Edit::Assign { task: "writer".into(), agent: "mia".into() }];
    let decided = |house: &House| house.stage.acts.iter().any(|act| matches!(act, UiCommand::Decide { .. }));
    let mut house = House::proposed(80, 40, Lang::En);
    house.edited(edits());
    let everything = house.stage.glass.everything();
    assert_eq!(everything.matches("· writer (mia)").count(), 1, "{everything}");
    house.stage.key(KeyCode::Char('y'));
    assert!(!decided(&house), "{:?}", house.stage.acts);
    house.stage.key(KeyCode::Backspace);
    house.stage.wait(1_000);
    house.stage.key(KeyCode::Char('y'));
    house.stage.key(KeyCode::Enter);
    let Some(UiCommand::Decide { question, say: PlanDecision::Approve }) = house.stage.acts.last() else { panic!() };
    assert_eq!(house.plan.asked().next().map(|(question, _)| question), Some(*question));

    // What was being chosen or written was about what the plan said before.
    let mut house = House::proposed(80, 40, Lang::En);
    house.stage.key(KeyCode::Char('n'));
    house.stage.key(KeyCode::Enter);
    house.stage.write("too dear");
    house.edited(edits());
    house.stage.key(KeyCode::Enter);
    assert!(!decided(&house), "{:?}", house.stage.acts);
    // Two at once: theirs is made, ours is not, so what it says now is news.
    let mut house = House::proposed(80, 40, Lang::En);
    for key in [KeyCode::Char('e'), KeyCode::Enter, KeyCode::Enter, KeyCode::Char('s')] {
        house.stage.key(key);
    }
    assert!(decided(&house));
    house.stage.acts.clear();
    house.edited(edits());
    for key in [KeyCode::Esc, KeyCode::Esc, KeyCode::Char('y'), KeyCode::Enter] {
        house.stage.key(key);
    }
    assert!(!decided(&house), "{:?}", house.stage.acts);
}

/// Two plans wait: what stands above a question is the plan that it asks about.
#[test]
fn the_sheet_that_is_shown_is_of_the_plan_that_is_asked_about() {
    let named = |goal: &str| Draft { goal: goal.into(), ..draft() };
    let sheets = |house: &House, goal: &str| house.stage.glass.everything().matches(&format!(": {goal}\n")).count();
    let mut house = House::new(80, 40, Lang::En);
    house.propose(named("the first of them"));
    let first = (house.id, std::mem::take(&mut house.plan));
    house.id = PlanId::new(Uuid::from_u128(78));
    house.propose(named("the second of them"));
    house.stage.wait(1_000);
    let counts = |house: &House| (sheets(house, "the first of them"), sheets(house, "the second of them"));
    assert_eq!(counts(&house), (1, 0), "{}", house.stage.glass.everything());

    // Put off, it gives way to the other; asked for again, it comes with its own.
    house.stage.key(KeyCode::Esc);
    assert_eq!(counts(&house), (1, 1), "{}", house.stage.glass.everything());
    house.stage.say("/inbox");
    assert_eq!(counts(&house), (2, 1), "{}", house.stage.glass.everything());
    house.stage.wait(1_000);
    house.stage.key(KeyCode::Char('y'));
    house.stage.key(KeyCode::Enter);
    let second = std::mem::replace(&mut house.plan, first.1);
    let id = std::mem::replace(&mut house.id, first.0);
    house.carry_out();
    assert!(house.plan.is_approved() && !second.is_approved());
    assert_eq!(counts(&house), (2, 2), "{}", house.stage.glass.everything());
    (house.id, house.plan) = (id, second);
    house.stage.wait(1_000);
    house.stage.key(KeyCode::Char('y'));
    house.stage.key(KeyCode::Enter);
    house.carry_out();
    assert_eq!(counts(&house), (2, 2));
    assert!(house.plan.is_approved());
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
        let mut house = House::new(columns, rows, lang);
        house.propose(draft);
        house.stage.wait(1_000);
        let shown = house.stage.glass.everything();
        assert!(shown.contains("│ Step 3: do it.") && !shown.contains("Step 4") && shown.contains(more), "{shown}");
        house.stage.key(KeyCode::Char('y'));
        house.stage.key(KeyCode::Tab);
        let shown = house.stage.glass.everything();
        assert!(shown.contains("│ Step 7: do it."), "{shown}");
        assert_eq!(shown.matches("│ Step 1: do it.").count(), 2, "once in short, once in full");
        house.stage.key(KeyCode::Enter);
        assert!(
            matches!(house.stage.acts.last(), Some(UiCommand::Decide { say: PlanDecision::Approve, .. })),
            "it stays chosen"
        );
        house.stage.say("/plan full");
        assert_eq!(house.stage.glass.everything().matches("Step 7").count(), 2);
    }
}

/// What somebody was asking for when the plan was answered elsewhere is not lost.
#[test]
fn words_about_a_plan_that_was_answered_elsewhere_are_kept() {
    let mut house = House::proposed(80, 40, Lang::En);
    house.stage.key(KeyCode::Char('c'));
    house.stage.key(KeyCode::Enter);
    house.stage.write("one task less");
    let (question, _) = house.plan.asked().next().unwrap();
    house.step(PlanInput::Answered {
        question,
        say: PlanDecision::Approve,
        by: DecidedBy::Person("ada at cli".into()),
    });
    assert!(house.stage.glass.screen().contains("> one task less"), "{}", house.stage.glass.screen());
}
