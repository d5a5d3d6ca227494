//! The runtime on the stage: a real plan machine and the agents that work on it.
//!
//! Tests say what happens to the plan, and every event that follows goes to the chat as a notice.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crossterm::event::KeyCode;
use max_team_core::agent::Definition;
use max_team_core::chat::Part;
use max_team_core::event::{Event, QuestionAsked, TurnOutcome, TurnStarted};
use max_team_core::id::{EnvelopeId, PlanId, QuestionId, TurnId};
use max_team_core::machine::Machine as _;
use max_team_core::message::{Assignment, Principal, Role};
use max_team_core::plan::event::{ApprovalMode, CheckFault, Evidence, PlanDecision, PlanEdited, Proof, ResourceUse};
use max_team_core::plan::{Draft, Edit, Findings, Plan, PlanEnv, PlanInput, Report, TaskDraft, edit};
use max_team_core::policy::{self, Action, ActionKind, DecidedBy, Mode, Recourse, RememberedRule, Repeatability};
use max_team_runtime::{AgentSpec, Basis, Delta, Origin, Team, preview};
use uuid::Uuid;

use super::super::command_queue::UiCommand;
use super::stage::{self, Stage, edit as edit_action};
use max_team_workspace::i18n::Lang;

pub(crate) fn team() -> Team {
    let member = |name: &str, role: &str| AgentSpec {
        definition: Definition {
            name: name.into(),
            role: role.into(),
            prompt: String::new(),
            tools: vec!["read_file".into(), "edit_file".into()],
            ..Definition::default()
        }
        .into(),
        settings: stage::settings(),
    };
    Team {
        members: vec![member("ada", "architect"), member("leo", "developer"), member("mia", "tester")],
        experts: Vec::new(),
        call_depth: 1,
        coordinator: false,
        wished: BTreeMap::new(),
        approve: ApprovalMode::Plan,
        max_parallel: 8,
        models: BTreeMap::from([("gpt-5".to_owned(), stage::settings().model)]),
    }
}

pub(super) fn task(id: &str, agent: &str, title: &str, needs: &[&str]) -> TaskDraft {
    let needs = needs.iter().map(|need| (*need).to_owned()).collect();
    let (id, title, agent) = (id.to_owned(), title.to_owned(), agent.to_owned());
    TaskDraft { description: format!("{title}. All of it."), id, title, agent, needs, ..TaskDraft::default() }
}

/// design → parser, writer, 文档 → tests
pub(super) fn draft() -> Draft {
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

/// The runtime: a plan and the agents that work on it.
pub(super) struct TeamStage {
    pub(super) stage: Stage,
    pub(super) plan: Plan,
    pub(super) id: PlanId,
}

impl TeamStage {
    pub(super) fn new(columns: u16, rows: u16, lang: Lang) -> Self {
        let stage = Stage::led(columns, rows, false, lang, Some(team()), &stage::opened());
        Self { stage, plan: Plan::new(), id: PlanId::new(Uuid::from_u128(77)) }
    }

    pub(super) fn origin(&self) -> Arc<Origin> {
        Arc::new(Origin { plan: Some(self.id), ..Origin::named("plan") })
    }

    pub(super) fn step(&mut self, input: PlanInput) {
        let at_ms = self.stage.now_ms();
        for event in self.plan.step(input, &PlanEnv::at(at_ms), at_ms) {
            self.stage.event_from(self.origin(), event);
        }
    }

    pub(super) fn propose(&mut self, draft: Draft) {
        self.propose_with(draft, Vec::new());
    }

    /// One with risks beside those that are found in it.
    pub(super) fn propose_with(&mut self, draft: Draft, risks: Vec<String>) {
        let mut proposed =
            preview(&team(), Path::new("."), draft, &Basis::default()).unwrap().proposed().unwrap().clone();
        proposed.plan = self.id;
        proposed.session = stage::session_id();
        proposed.risks.extend(risks);
        self.step(PlanInput::Propose(Box::new(proposed)));
    }

    pub(super) fn proposed(columns: u16, rows: u16, lang: Lang) -> Self {
        let mut team_stage = Self::new(columns, rows, lang);
        team_stage.propose(draft());
        team_stage.stage.wait(1_000);
        team_stage
    }

    pub(super) fn approved(columns: u16, rows: u16, lang: Lang) -> Self {
        let mut team_stage = Self::proposed(columns, rows, lang);
        team_stage.stage.key(KeyCode::Char('y'));
        team_stage.stage.key(KeyCode::Enter);
        team_stage.carry_out();
        team_stage
    }

    /// Does what was decided last.
    pub(super) fn carry_out(&mut self) {
        let Some(UiCommand::Decide { question, say }) = self.stage.acts.pop() else { panic!("{:?}", self.stage.acts) };
        if let PlanDecision::Edit(edits) = say {
            return self.edited(edits);
        }
        self.step(PlanInput::Answered { question, say, by: DecidedBy::Person("me at terminal".into()) });
    }

    /// Somebody changes the plan that is proposed.
    pub(super) fn edited(&mut self, edits: Vec<Edit>) {
        let (question, _) = self.plan.asked().next().unwrap();
        let draft = edits.iter().fold(self.plan.draft().unwrap().clone(), |draft, one| edit(&draft, one).unwrap());
        let forecast = self.plan.forecast().unwrap().clone();
        let by = Principal { door: "terminal".into(), user: "me".into(), role: Role::Owner };
        let edited = PlanEdited { draft, forecast, risks: None, risky_checks: None, risk_kinds: Vec::new(), by };
        self.step(PlanInput::Edited { question, edits, edited: Box::new(edited) });
    }

    pub(super) fn index(&self, task: &str) -> usize {
        self.plan.graph().unwrap().index(task).unwrap()
    }

    pub(super) fn attempt(&self, task: &str) -> u32 {
        self.plan.task(self.index(task)).unwrap().attempt
    }

    /// The member at a task, as a source of notices.
    pub(super) fn member(&self, task: &str) -> Arc<Origin> {
        let view = self.plan.task(self.index(task)).unwrap();
        let task = Some((self.id, task.to_owned()));
        Arc::new(Origin { name: view.member.into(), task, ..Origin::agent(view.agent.unwrap()) })
    }

    /// Its owner takes a task up: the first notices do not say which task it is.
    pub(super) fn begin(&mut self, task: &str) {
        let attempt = self.attempt(task);
        self.step(PlanInput::Begun { task: self.index(task), attempt });
        let member = self.member(task);
        let early = Arc::new(Origin { task: None, ..(*member).clone() });
        let assignment = Some(Assignment {
            reply_to: String::new(),
            plan: Some(self.id),
            task: task.to_owned(),
            attempt,
            ..Assignment::default()
        });
        self.stage.event_from(early.clone(), started(assignment));
        self.stage.event_from(early, stage::intent(1, 1));
    }

    pub(super) fn runs(&mut self, task: &str, tool: &str, action: Action) {
        let member = self.member(task);
        self.stage.event_from(member.clone(), stage::answered(1, "Let me do it."));
        self.stage.event_from(member, stage::runs("1.0", tool, action));
    }

    pub(super) fn reports(&mut self, task: &str, report: Report) {
        let attempt = self.attempt(task);
        let member = self.member(task);
        self.stage.event_from(member, stage::ended(TurnOutcome::Answered));
        let spent = ResourceUse { nano: 12_300_000, ms: 9_000, ..ResourceUse::default() };
        self.step(PlanInput::Reported { task: self.index(task), attempt, report, spent });
    }

    pub(super) fn does(&mut self, task: &str, proof: Proof) {
        let findings = Findings { proof, ..Findings::default() };
        self.reports(task, Report::Done { output: "Done.".into(), findings: Some(findings), unknown: Vec::new() });
    }

    /// The task reports success, but a file that it declared does not exist.
    pub(super) fn fails(&mut self, task: &str, file: &str) {
        let evidence = vec![Evidence::fault(file, CheckFault::Missing)];
        let findings = Findings { proof: Proof::Failed, evidence, ..Findings::default() };
        self.reports(task, Report::Done { output: String::new(), findings: None, unknown: Vec::new() });
        let (task, attempt) = (self.index(task), self.attempt(task));
        self.step(PlanInput::Checked { task, attempt, findings });
    }
}

pub(super) fn started(assignment: Option<Assignment>) -> Event {
    Event::TurnStarted(TurnStarted {
        turn: TurnId::new(Uuid::from_u128(4)),
        envelope: EnvelopeId::new(Uuid::from_u128(98)),
        input: vec![Part::text("# Your task")],
        assignment: assignment.map(Into::into),
        recall: None,
        rewound: Vec::new(),
        envelopes: Vec::new(),
        quiet: false,
        hops: 0,
    })
}

pub(super) fn asks(number: u128, tool: &str, action: Action) -> Event {
    Event::QuestionAsked(QuestionAsked {
        question: QuestionId::new(Uuid::from_u128(number)),
        key: "1.0".into(),
        tool: tool.into(),
        action,
        class: Repeatability::Idempotent,
        rule: "permission mode `default`".into(),
        basis: policy::Basis::InMode(Mode::Default),
        memory: RememberedRule::Rules(vec!["Edit".into()]),
        recourse: Recourse::default(),
    })
}

pub(super) fn ask_user(question: &str) -> Action {
    Action { kind: ActionKind::Ask, preview: question.into(), ..Action::read("…") }
}

/// Three at work, one of them after a failure, two that wait.
pub(super) fn at_work(team_stage: &mut TeamStage) {
    team_stage.begin("design");
    team_stage.stage.wait(9_000);
    team_stage.does("design", Proof::Unverified);
    for task in ["parser", "writer", "文档"] {
        team_stage.begin(task);
    }
    team_stage.stage.wait(4_000);
    team_stage.fails("writer", "src/write.rs");
    team_stage.stage.wait(30_000);
    team_stage.step(PlanInput::Woke);
    team_stage.begin("writer");
    team_stage.runs("parser", "edit_file", edit_action("src/parse.rs", "@@ -1 +1 @@\n-a\n+b\n"));
    let writer = team_stage.member("文档");
    team_stage.stage.delta_from(writer, Delta::Text("这里是说明".into()));
    team_stage.stage.wait(7_000);
}
