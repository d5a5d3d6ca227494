//! The team on the screen: the gate, plans at work, failures, members' questions.
//!
//! A real plan machine plays the house: tests say what happens to the plan, and every event that follows goes to the
//! chat as a notice.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crossterm::event::KeyCode;
use max_team_core::chat::Part;
use max_team_core::event::{End, Ending, Event, QuestionAsked, ToolDone, TurnStarted};
use max_team_core::id::{AgentId, EnvelopeId, PlanId, QuestionId, TurnId};
use max_team_core::message::Assignment;
use max_team_core::plan::event::{Approve, Evidence, Proof, Ruling, Say, Spent};
use max_team_core::plan::{Draft, Edit, Findings, Input, Now, Plan, Report, Task, edit};
use max_team_core::policy::{Action, By, Class, Deed, Memory};
use max_team_core::team::Definition;
use max_team_runtime::{Asked, Delta, Mate, Opened, Origin, Team, preview};
use uuid::Uuid;

use super::super::chat::Hint;
use super::super::link::{Act, Done};
use super::super::words::Lang;
use super::stage::{self, Stage, edit as edit_action};

pub(crate) fn team() -> Team {
    let member = |name: &str, role: &str| Mate {
        definition: Definition {
            name: name.into(),
            role: role.into(),
            prompt: String::new(),
            tools: vec!["read_file".into(), "edit_file".into()],
        },
        settings: stage::settings(),
    };
    Team {
        members: vec![member("ada", "architect"), member("leo", "developer"), member("mia", "tester")],
        approve: Approve::Plan,
        max_parallel: 8,
        models: BTreeMap::from([("gpt-5".to_owned(), stage::settings().model)]),
    }
}

fn task(id: &str, agent: &str, title: &str, needs: &[&str]) -> Task {
    let needs = needs.iter().map(|need| (*need).to_owned()).collect();
    let (id, title, agent) = (id.to_owned(), title.to_owned(), agent.to_owned());
    Task { description: format!("{title}. All of it."), id, title, agent, needs, ..Task::default() }
}

/// design → parser, writer, 文档 → tests
fn draft() -> Draft {
    let mut tests = task("tests", "mia", "Test reading and writing CSV", &["parser", "writer"]);
    tests.verify = vec!["make smoke".into()];
    Draft {
        goal: "add CSV import and export 导入导出".into(),
        tasks: vec![
            task("design", "ada", "Decide on the format and the interfaces", &[]),
            task("parser", "leo", "Write the CSV parser", &["design"]),
            task("writer", "leo", "Write the CSV writer", &["design"]),
            task("文档", "ada", "编写说明文档", &["design"]),
            tests,
        ],
        ..Draft::default()
    }
}

/// The house: a plan and the agents that work on it.
struct House {
    stage: Stage,
    plan: Plan,
    id: PlanId,
}

impl House {
    fn new(columns: u16, rows: u16, lang: Lang) -> Self {
        let stage = Stage::led(columns, rows, false, lang, Some(team()), &stage::opened());
        Self { stage, plan: Plan::new(), id: PlanId::new(Uuid::from_u128(77)) }
    }

    fn origin(&self) -> Arc<Origin> {
        Arc::new(Origin { plan: Some(self.id), ..Origin::named("plan") })
    }

    fn step(&mut self, input: Input) {
        let now = Now { at_ms: self.stage.now_ms() };
        for event in self.plan.step(input, now) {
            self.stage.event_from(self.origin(), event);
        }
    }

    fn propose(&mut self, draft: Draft) {
        let mut proposed = preview(&team(), Path::new("."), draft).unwrap().proposed().unwrap().clone();
        proposed.plan = self.id;
        proposed.session = stage::session_id();
        self.step(Input::Propose(Box::new(proposed)));
    }

    fn proposed(columns: u16, rows: u16, lang: Lang) -> Self {
        let mut house = Self::new(columns, rows, lang);
        house.propose(draft());
        house.stage.wait(1_000);
        house
    }

    fn approved(columns: u16, rows: u16, lang: Lang) -> Self {
        let mut house = Self::proposed(columns, rows, lang);
        house.stage.key(KeyCode::Char('y'));
        house.carry_out();
        house
    }

    /// Does what was decided last.
    fn carry_out(&mut self) {
        let Some(Act::Decide { question, say }) = self.stage.acts.pop() else { panic!("{:?}", self.stage.acts) };
        if let Say::Edit(edits) = &say {
            let draft = edits.iter().fold(self.plan.draft().unwrap().clone(), |draft, one| edit(&draft, one).unwrap());
            let forecast = self.plan.forecast().unwrap().clone();
            let by = max_team_core::message::Principal {
                door: "terminal".into(),
                user: "me".into(),
                role: max_team_core::message::Role::Owner,
            };
            return self.step(Input::Edited(Box::new(max_team_core::plan::event::PlanEdited { draft, forecast, by })));
        }
        self.step(Input::Answered { question, say, by: By::Person("me at terminal".into()) });
    }

    fn index(&self, task: &str) -> usize {
        self.plan.graph().unwrap().index(task).unwrap()
    }

    fn attempt(&self, task: &str) -> u32 {
        self.plan.task(self.index(task)).unwrap().attempt
    }

    /// The member at a task, as a source of notices.
    fn member(&self, task: &str) -> Arc<Origin> {
        let view = self.plan.task(self.index(task)).unwrap();
        let task = Some((self.id, task.to_owned()));
        Arc::new(Origin { name: view.member.into(), task, ..Origin::agent(view.agent.unwrap()) })
    }

    /// Its owner takes a task up: the first notices do not say which task it is.
    fn begin(&mut self, task: &str) {
        let attempt = self.attempt(task);
        self.step(Input::Begun { task: self.index(task), attempt });
        let member = self.member(task);
        let early = Arc::new(Origin { task: None, ..(*member).clone() });
        let assignment =
            Some(Assignment { reply_to: String::new(), plan: Some(self.id), task: task.to_owned(), attempt });
        self.stage.event_from(early.clone(), started(assignment));
        self.stage.event_from(early, stage::intent(1, 1));
    }

    fn runs(&mut self, task: &str, tool: &str, action: Action) {
        let member = self.member(task);
        self.stage.event_from(member.clone(), stage::answered(1, "Let me do it."));
        self.stage.event_from(member, stage::runs("1.0", tool, action));
    }

    fn reports(&mut self, task: &str, report: Report) {
        let attempt = self.attempt(task);
        let member = self.member(task);
        self.stage.event_from(member, stage::ended(End::Answered));
        let spent = Spent { nano: 12_300_000, ms: 9_000, ..Spent::default() };
        self.step(Input::Reported { task: self.index(task), attempt, report, spent });
    }

    fn does(&mut self, task: &str, proof: Proof) {
        let findings = Findings { proof, ..Findings::default() };
        self.reports(task, Report::Done { output: "Done.".into(), findings: Some(findings) });
    }

    fn fails(&mut self, task: &str, error: &str) {
        self.reports(task, Report::Failed { error: error.into() });
    }
}

fn started(assignment: Option<Assignment>) -> Event {
    Event::TurnStarted(TurnStarted {
        turn: TurnId::new(Uuid::from_u128(4)),
        envelope: EnvelopeId::new(Uuid::from_u128(98)),
        input: vec![Part::text("# Your task")],
        assignment,
    })
}

fn asks(number: u128, tool: &str, action: Action) -> Event {
    Event::QuestionAsked(QuestionAsked {
        question: QuestionId::new(Uuid::from_u128(number)),
        key: "1.0".into(),
        tool: tool.into(),
        action,
        class: Class::Idempotent,
        rule: "permission mode `default`".into(),
        memory: Memory::Rules(vec!["Edit".into()]),
    })
}

fn ask_user(question: &str) -> Action {
    Action { deed: Deed::Ask, preview: question.into(), ..Action::read("…") }
}

/// Three at work, one of them after a failure, two that wait.
fn at_work(house: &mut House) {
    house.begin("design");
    house.stage.wait(9_000);
    house.does("design", Proof::Unverified);
    for task in ["parser", "writer", "文档"] {
        house.begin(task);
    }
    house.stage.wait(4_000);
    house.fails("writer", "said to be done, but `src/write.rs` does not exist");
    house.stage.wait(30_000);
    house.step(Input::Woke);
    house.begin("writer");
    house.runs("parser", "edit_file", edit_action("src/parse.rs", "@@ -1 +1 @@\n-a\n+b\n"));
    let writer = house.member("文档");
    house.stage.delta_from(writer, Delta::Text("这里是说明".into()));
    house.stage.wait(7_000);
}

#[test]
fn the_gate() {
    for (columns, rows, lang, name) in
        [(80, 24, Lang::En, "gate_80x24"), (120, 40, Lang::Zh, "chinese_gate_120x40"), (40, 24, Lang::En, "gate_40x24")]
    {
        let house = House::proposed(columns, rows, lang);
        insta::assert_snapshot!(name, house.stage.glass.everything());
    }
}

#[test]
fn each_key_of_the_gate_says_one_thing() {
    let table = [
        (vec![KeyCode::Char('y')], Say::Approve),
        (vec![KeyCode::Enter], Say::Approve),
        (vec![KeyCode::Char('1')], Say::FirstWave),
        (vec![KeyCode::Right, KeyCode::Enter], Say::FirstWave),
        (vec![KeyCode::Char('c'), KeyCode::Enter, KeyCode::Char('y'), KeyCode::Enter], Say::Changes("y".into())),
        (vec![KeyCode::Char('n'), KeyCode::Enter], Say::Reject(String::new())),
        (
            vec![
                KeyCode::Char('n'),
                KeyCode::Char('x'),
                KeyCode::Esc,
                KeyCode::Char('n'),
                KeyCode::Char('贵'),
                KeyCode::Enter,
            ],
            Say::Reject("贵".into()),
        ),
    ];
    for (keys, want) in table {
        let mut house = House::proposed(80, 24, Lang::En);
        for key in &keys {
            house.stage.key(*key);
        }
        let Some(Act::Decide { say, .. }) = house.stage.acts.last() else { panic!("{keys:?}: {:?}", house.stage.acts) };
        assert_eq!(*say, want, "{keys:?}");
        assert_eq!(house.stage.chat.session().questions.count(), 0);
    }
}

#[test]
fn nobody_decides_about_what_they_cannot_see() {
    for rows in 5..24 {
        for columns in [39, 40, 60, 80] {
            let mut house = House::proposed(columns, rows, Lang::En);
            let screen = house.stage.glass.screen();
            let shown = ["approve", "reject", "later", "? Plan"].iter().all(|words| screen.contains(words));
            house.stage.key(KeyCode::Char('y'));
            let decided = house.stage.acts.iter().any(|act| matches!(act, Act::Decide { .. }));
            assert_eq!(shown, decided, "{columns}x{rows}:\n{screen}");
        }
    }
}

#[test]
fn typing_does_not_approve_a_plan() {
    let mut house = House::new(80, 24, Lang::En);
    house.stage.write("wait");
    house.propose(draft());
    house.stage.write("y");
    assert!(!house.stage.acts.iter().any(|act| matches!(act, Act::Decide { .. })));
    assert!(house.stage.glass.screen().contains("> waity"));
}

#[test]
fn a_plan_put_off_is_parked_and_comes_back() {
    let mut house = House::proposed(80, 24, Lang::En);
    house.stage.key(KeyCode::Esc);
    assert!(!house.stage.acts.iter().any(|act| matches!(act, Act::Decide { .. })));
    let screen = house.stage.glass.screen();
    assert!(screen.contains("plan waits for you: add CSV") && screen.contains("/plan"), "{screen}");
    house.stage.say("/inbox");
    assert!(house.stage.glass.screen().contains("may it run?"));
    house.stage.say("/plan");
    house.stage.wait(1_000);
    assert!(house.stage.glass.screen().contains(" y  approve"), "{}", house.stage.glass.screen());
    let elsewhere = By::Person("ada at cli".into());
    let (question, _) = house.plan.asked().next().unwrap();
    house.step(Input::Answered { question, say: Say::Approve, by: elsewhere });
    let screen = house.stage.glass.screen();
    assert!(screen.contains("answered: approved by ada at cli") && !screen.contains(" y  approve"), "{screen}");
}

#[test]
fn a_plan_is_edited_and_nonsense_is_refused() {
    let mut house = House::proposed(80, 40, Lang::En);
    house.stage.key(KeyCode::Char('e'));
    house.stage.write("wr");
    insta::assert_snapshot!("edit_task_80x40", house.stage.glass.screen());
    house.stage.key(KeyCode::Enter);
    house.stage.key(KeyCode::Char('o'));
    house.stage.control('u');
    house.stage.write("bob");
    house.stage.key(KeyCode::Enter);
    insta::assert_snapshot!("edit_owner_80x40", house.stage.glass.screen());
    assert!(!house.stage.acts.iter().any(|act| matches!(act, Act::Decide { .. })));
    house.stage.control('u');
    house.stage.write("mia");
    house.stage.key(KeyCode::Enter);
    let Some(Act::Decide { say: Say::Edit(edits), .. }) = house.stage.acts.last() else { panic!() };
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
            (Some(want), Some(Act::Decide { say: Say::Edit(edits), .. })) => assert_eq!(*edits, [want]),
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
    assert!(matches!(house.stage.acts.last(), Some(Act::Decide { say: Say::Approve, .. })));
}

#[test]
fn a_plan_at_work() {
    for (columns, rows, lang, name) in [
        (80, 24, Lang::En, "board_80x24"),
        (120, 40, Lang::En, "board_120x40"),
        (80, 24, Lang::Zh, "chinese_board_80x24"),
        (40, 24, Lang::En, "board_40x24"),
    ] {
        let mut house = House::approved(columns, rows, lang);
        at_work(&mut house);
        insta::assert_snapshot!(name, house.stage.glass.screen());
    }
}

#[test]
fn a_large_plan_shows_what_matters() {
    let tasks = (0..100).map(|n| task(&format!("t{n:02}"), "leo", "One of many", &[])).collect();
    let mut house = House::new(80, 24, Lang::En);
    house.propose(Draft { goal: "many".into(), tasks, ..Draft::default() });
    house.stage.wait(1_000);
    house.stage.key(KeyCode::Char('y'));
    house.carry_out();
    house.stage.wait(1_000);
    let screen = house.stage.glass.screen();
    assert!(screen.contains("… 89 more") && screen.contains("● t00"), "{screen}");
    house.stage.control('t');
    let rows = |house: &House| house.stage.glass.screen().matches(" leo ").count();
    assert!(rows(&house) > 15, "{}", house.stage.glass.screen());
    house.stage.control('t');
    assert_eq!(rows(&house), 0);
    assert!(house.stage.glass.screen().contains("the team is at work"), "{}", house.stage.glass.screen());
    house.stage.control('t');
    assert_eq!(rows(&house), 11);
}

#[test]
fn numbers_are_repainted_a_few_times_a_second_at_most() {
    let mut house = House::approved(80, 24, Lang::En);
    house.begin("design");
    house.stage.wait(2_000);
    let member = house.member("design");
    house.stage.delta_from(member.clone(), Delta::Thinking("hm".into()));
    assert!(!house.stage.glass.screen().contains("thinking"), "not before its time");
    let due = house.stage.chat.changes_at_ms().unwrap() - house.stage.now_ms();
    assert!((1..=250).contains(&due), "{due}");
    house.stage.wait(due);
    assert!(house.stage.glass.screen().contains("thinking"));
}

#[test]
fn escape_leaves_the_team_alone_and_stop_stops_it() {
    let mut house = House::approved(80, 24, Lang::En);
    house.begin("design");
    house.stage.wait(1_000);
    house.stage.key(KeyCode::Esc);
    assert_eq!(house.stage.chat.hint(), Some(Hint::TeamGoesOn));
    assert!(house.stage.glass.screen().contains("/stop"));
    assert!(!house.stage.acts.iter().any(|act| matches!(act, Act::Interrupt | Act::Stop { .. })));
    house.stage.say("/stop nope");
    assert!(house.stage.glass.screen().contains("no open task `nope`"));
    house.stage.say("/stop design");
    assert!(matches!(house.stage.acts.last(), Some(Act::Stop { task: Some(task), .. }) if task == "design"));
    house.stage.say("/stop");
    assert!(matches!(house.stage.acts.last(), Some(Act::Stop { task: None, .. })));
    house.stage.say("/clear");
    assert!(!house.stage.acts.iter().any(|act| matches!(act, Act::Open { .. })), "the plan is not left alone");
    house.stage.say("/team");
    let screen = house.stage.glass.everything();
    assert!(screen.contains("architect") && screen.contains("state: design"), "{screen}");
}

/// Fails for good, and the lead has no advice.
fn failed(columns: u16, rows: u16, lang: Lang) -> House {
    let mut house = House::approved(columns, rows, lang);
    house.begin("design");
    house.stage.wait(1_000);
    for _ in 0..10 {
        if house.plan.needs_ruling() {
            break;
        }
        house.fails("design", "said to be done, but docs/format.md: no such file");
        house.stage.wait(600_000);
        house.step(Input::Woke);
        if !house.plan.needs_ruling() {
            house.begin("design");
        }
    }
    house.step(Input::LeadSilent);
    house.stage.wait(1_000);
    house
}

#[test]
fn a_failure_asks_what_to_do() {
    insta::assert_snapshot!("failure_80x24", failed(80, 24, Lang::En).stage.glass.screen());
    insta::assert_snapshot!("chinese_failure_120x40", failed(120, 40, Lang::Zh).stage.glass.screen());
    let retry =
        |agent: Option<&str>| Ruling::Retry { agent: agent.map(str::to_owned), model: None, note: String::new() };
    for (keys, want) in [
        ("r", retry(None)),
        ("s", Ruling::Skip),
        ("f", Ruling::Fixed),
        ("g", Ruling::GiveUp),
        ("obob\nmia\n", retry(Some("mia"))),
    ] {
        let mut house = failed(80, 24, Lang::En);
        for key in keys.chars() {
            if key == '\n' {
                house.stage.key(KeyCode::Enter);
                house.stage.control('u');
            } else {
                house.stage.write(&key.to_string());
            }
        }
        let Some(Act::Decide { say, .. }) = house.stage.acts.last() else { panic!("{keys}: {:?}", house.stage.acts) };
        assert_eq!(*say, Say::Rule(want));
    }
}

#[test]
fn a_plan_that_is_over_leaves_a_summary() {
    for (columns, rows, lang, name) in
        [(80, 24, Lang::En, "summary_80x24"), (120, 40, Lang::Zh, "chinese_summary_120x40")]
    {
        let mut house = House::approved(columns, rows, lang);
        at_work(&mut house);
        house.does("parser", Proof::Verified);
        house.does("writer", Proof::Verified);
        house.does("文档", Proof::Unverified);
        house.stage.wait(1_000);
        house.begin("tests");
        let evidence = vec![Evidence { what: "make smoke".into(), ok: true, detail: "passed".into() }];
        let findings = Findings { proof: Proof::Verified, evidence, ..Findings::default() };
        house.reports("tests", Report::Done { output: "ok".into(), findings: Some(findings) });
        house.stage.wait(1_000);
        assert!(!house.stage.chat.session().is_team_at_work());
        assert_eq!(house.stage.chat.changes_at_ms(), None, "nothing wakes an idle chat");
        insta::assert_snapshot!(name, house.stage.glass.screen());
    }
}

#[test]
fn a_member_asks() {
    for (columns, rows, lang, name) in
        [(80, 24, Lang::En, "member_question_80x24"), (120, 40, Lang::Zh, "chinese_member_question_120x40")]
    {
        let mut house = House::approved(columns, rows, lang);
        at_work(&mut house);
        let member = house.member("parser");
        house
            .stage
            .event_from(member.clone(), asks(11, "edit_file", edit_action("src/parse.rs", "@@ -1 +1 @@\n-a\n+b\n")));
        let other = house.member("writer");
        house.stage.event_from(other.clone(), asks(12, "edit_file", edit_action("src/write.rs", "")));
        house.stage.wait(1_000);
        insta::assert_snapshot!(name, house.stage.glass.screen());
        // The lead's turn and other members' calls do not close it.
        house.stage.end(End::Answered);
        house.stage.event_from(other, stage::ended(End::Interrupted));
        assert_eq!(house.stage.chat.session().questions.count(), 1);
        house.stage.key(KeyCode::Char('y'));
        let Some(Act::Answer { question, answer, .. }) = house.stage.acts.last() else { panic!() };
        assert!(answer.allow && *question == QuestionId::new(Uuid::from_u128(11)));
        let done = ToolDone { key: "1.0".into(), ending: Ending::Ran, content: Vec::new(), is_error: false, ms: 1 };
        house.stage.event_from(member, Event::ToolDone(done));
        assert_eq!(house.stage.chat.session().questions.count(), 0);
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
        let Some(Act::Answer { answer, .. }) = stage.acts.pop() else { panic!("{keys:?}: {:?}", stage.acts) };
        (answer.allow, answer.comment)
    };
    assert_eq!(answer(&[KeyCode::Char('2')]), (true, "PostgreSQL 数据库".into()));
    assert_eq!(answer(&[KeyCode::Down, KeyCode::Enter]), (true, "PostgreSQL 数据库".into()));
    assert_eq!(
        answer(&[KeyCode::Char('n'), KeyCode::Char('o'), KeyCode::Char('3'), KeyCode::Enter]),
        (true, "no3".into())
    );
    assert_eq!(answer(&[KeyCode::Esc]), (false, String::new()));
    assert_eq!(answer(&[KeyCode::Char('x'), KeyCode::Esc, KeyCode::Esc]), (false, String::new()));
}

#[test]
fn a_member_with_one_thing_to_do_has_one_line_and_one_row() {
    let mut stage = Stage::led(80, 24, false, Lang::En, Some(team()), &stage::opened());
    stage.say("go");
    stage.begin("go");
    stage.answer(vec![stage::tool_use("dispatch_task", serde_json::json!({"agent": "leo"}))]);
    stage.runs("1.0", "dispatch_task", Action { deed: Deed::Team, ..Action::read("leo") });
    let leo = Arc::new(Origin { name: "leo".into(), ..Origin::agent(AgentId::new(Uuid::from_u128(5))) });
    let given = Assignment { reply_to: String::new(), plan: None, task: "1.0".into(), attempt: 1 };
    stage.event_from(leo.clone(), started(Some(given)));
    stage.event_from(leo.clone(), stage::intent(1, 1));
    stage.delta_from(leo.clone(), Delta::Text("some secret words".into()));
    assert!(stage.glass.screen().contains("⏺ leo: writing"), "{}", stage.glass.screen());
    assert!(!stage.glass.everything().contains("secret"));
    stage.event_from(leo.clone(), stage::answered(1, "some secret words"));
    stage.event_from(leo.clone(), stage::runs("1.0", "edit_file", Action::read("src/a.rs")));
    assert!(stage.glass.screen().contains("leo: edit_file src/a.rs"), "{}", stage.glass.screen());
    stage.wait(3_000);
    stage.event_from(leo, stage::ended(End::Answered));
    let screen = stage.glass.everything();
    assert!(screen.contains("⏺ leo: done · 3.0 s · $0.0087") && !screen.contains("secret"), "{screen}");
}

#[test]
fn a_resumed_session_takes_its_plan_and_questions_up() {
    let mut first = House::approved(80, 24, Lang::En);
    first.begin("design");
    let id = first.id;
    let asked = Asked {
        question: QuestionId::new(Uuid::from_u128(21)),
        tool: "edit_file".into(),
        action: edit_action("a.md", ""),
        by: "ada".into(),
        memory: Memory::Rules(vec!["Edit".into()]),
    };
    let opened = Opened { resumed: true, continuing: true, plans: vec![id], asked: vec![asked], ..stage::opened() };
    let mut stage = Stage::led(80, 24, false, Lang::En, Some(team()), &opened);
    assert!(stage.acts.iter().any(|act| matches!(act, Act::Plan(plan) if *plan == id)));
    let plan = Box::new(first.plan.clone());
    stage.chat.done(Done::Plan { plan: id, outcome: Ok(plan) });
    stage.wait(1_000);
    let screen = stage.glass.screen();
    assert!(screen.contains("? ada wants to use edit_file") && screen.contains("0/5 done"), "{screen}");

    // What is older than what was read is read again, not counted twice.
    let mut second = House { stage, plan: first.plan, id };
    second.stage.acts.clear();
    let origin = second.origin();
    let old = max_team_core::plan::event::TaskStarted { task: "design".into(), attempt: 1 };
    let session = stage::session_id();
    let (at_ms, event) = (stage::START_MS, Arc::new(Event::TaskStarted(old)));
    second.stage.chat.notice(&max_team_runtime::Notice::Event { session, from: origin, at_ms, event });
    second.stage.paint();
    assert!(matches!(second.stage.acts.as_slice(), [Act::Plan(_)]));
    let plan = Box::new(second.plan.clone());
    second.stage.chat.done(Done::Plan { plan: id, outcome: Ok(plan) });
    second.stage.wait(1_000);
    second.does("design", Proof::Unverified);
    second.stage.wait(1_000);
    assert!(second.stage.glass.screen().contains("1/5 done"), "{}", second.stage.glass.screen());
}

#[test]
fn a_parked_proposal_is_asked_again_after_a_resume() {
    let mut first = House::proposed(80, 24, Lang::En);
    let opened = Opened { resumed: true, continuing: true, plans: vec![first.id], ..stage::opened() };
    let mut stage = Stage::led(80, 24, false, Lang::En, Some(team()), &opened);
    stage.chat.done(Done::Plan { plan: first.id, outcome: Ok(Box::new(first.plan.clone())) });
    stage.wait(1_000);
    let everything = stage.glass.everything();
    assert!(everything.contains("critical path") && everything.contains(" y  approve"), "{everything}");
    first.stage = stage;
    first.stage.key(KeyCode::Char('y'));
    first.carry_out();
    first.stage.wait(1_000);
    assert!(first.stage.glass.screen().contains("● design"), "{}", first.stage.glass.screen());
}

#[test]
fn a_resize_shows_a_plan_at_work_once() {
    let mut house = House::approved(80, 24, Lang::Zh);
    at_work(&mut house);
    for (columns, rows) in [(60, 24), (100, 30), (47, 24), (120, 40), (80, 24)] {
        house.stage.resize(columns, rows);
        house.stage.wait(300);
        let everything = house.stage.glass.everything();
        assert_eq!(everything.matches("▸ 计划").count(), 1, "{columns}x{rows}:\n{everything}");
        assert!(everything.matches("● parser").count() <= 1, "{columns}x{rows}:\n{everything}");
    }
}
