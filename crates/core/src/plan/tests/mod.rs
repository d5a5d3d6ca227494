//! A plan under watch: every test, written or random, drives it through [`Play`], which holds it to its laws.
//!
//! Beside the live plan runs a second one that only ever folds the events; both must be the same after every step.

mod approval;
mod ends;
mod failure;
mod law;
mod random;
mod revision;
mod work;

use super::event::{
    CachedAnswer, Cause, Evidence, PlanDecision, PlanEnd, PlanProposed, PlanQuestion, Proof, ResourceUse, Ruling,
    TaskResult,
};
use super::*;
use crate::event::Event;
use crate::id::{AgentId, EnvelopeId, PlanId, QuestionId, SessionId, TurnId};
use crate::machine::Machine;
use crate::policy::DecidedBy;
use uuid::Uuid;

/// A task that leo does.
fn task(id: &str) -> TaskDraft {
    TaskDraft { id: id.into(), description: format!("do {id}"), agent: "leo".into(), ..TaskDraft::default() }
}

fn after(id: &str, needs: &[&str]) -> TaskDraft {
    TaskDraft { needs: names(needs), ..task(id) }
}

fn when(id: &str, condition: &str) -> TaskDraft {
    TaskDraft { when: Some(condition.into()), ..task(id) }
}

fn owning(id: &str, owns: &[&str]) -> TaskDraft {
    TaskDraft { owns: Some(names(owns)), ..task(id) }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn draft(tasks: Vec<TaskDraft>) -> Draft {
    Draft { goal: "test".into(), tasks, ..Draft::default() }
}

fn person() -> DecidedBy {
    DecidedBy::Person("cli".into())
}

fn proposal(draft: Draft) -> PlanProposed {
    PlanProposed {
        plan: PlanId::new(Uuid::from_u128(1)),
        session: SessionId::new(Uuid::from_u128(2)),
        lead: AgentId::new(Uuid::from_u128(3)),
        draft,
        forecast: Forecast::default(),
        approve: event::ApprovalMode::Plan,
        max_parallel: 5,
        by: "max".into(),
        revises: None,
        carried: Vec::new(),
        risks: Vec::new(),
        risky_checks: None,
        risk_kinds: Vec::new(),
    }
}

fn used(nano: u64) -> ResourceUse {
    ResourceUse { nano, ms: 10, ..ResourceUse::default() }
}

fn found(proof: Proof) -> Findings {
    let evidence = Evidence::new("cargo test", proof != Proof::Failed, "seen");
    Findings { proof, evidence: vec![evidence], ..Findings::default() }
}

/// An attempt at a task has been answered before.
fn served(task: usize, attempt: u32) -> PlanInput {
    let cached = CachedAnswer { key: "1f2e3d4c5b6a".into(), age_ms: 180_000 };
    let findings = Findings { proof: Proof::Unverified, ..Findings::default() };
    PlanInput::Served { task, attempt, output: "as before".into(), findings, cached }
}

/// A plan, the same plan folded from its events, and its log.
struct Play {
    plan: Plan,
    folded: Plan,
    log: Vec<(i64, Event)>,
    now: i64,
    envelopes: u128,
    overlaps: Vec<Vec<bool>>,
    /// Paths that other plans are at work on.
    taken: Vec<String>,
}

impl Play {
    /// Proposes and nothing else.
    fn proposed(proposal: PlanProposed) -> Self {
        let mut play = Self {
            plan: Plan::new(),
            folded: Plan::new(),
            log: Vec::new(),
            now: 1_000_000,
            envelopes: 100,
            overlaps: Vec::new(),
            taken: Vec::new(),
        };
        play.step(PlanInput::Propose(Box::new(proposal)));
        play
    }

    /// Proposes with so many places and approves all of it.
    fn running(tasks: Vec<TaskDraft>, places: u32) -> Self {
        Self::of(draft(tasks), places)
    }

    fn of(draft: Draft, places: u32) -> Self {
        let mut play = Self::proposed(PlanProposed { max_parallel: places, ..proposal(draft) });
        play.say(PlanDecision::Approve);
        play
    }

    fn step(&mut self, input: PlanInput) -> Vec<Event> {
        let events = self.plan.step(input, &PlanEnv { taken: &self.taken, ..PlanEnv::at(self.now) }, self.now);
        for event in &events {
            self.fold(event);
            self.log.push((self.now, event.clone()));
        }
        assert_eq!(self.plan, self.folded, "the folded plan differs after {events:#?}");
        self.check_rest();
        events
    }

    /// Forgets everything but the log, as it is on disk.
    fn crash(&mut self) {
        let mut plan = Plan::new();
        for (at_ms, event) in &self.log {
            let read: Event = serde_json::from_str(&serde_json::to_string(event).unwrap()).unwrap();
            assert_eq!(&read, event);
            plan.apply(&read, *at_ms);
        }
        assert_eq!(plan, self.plan, "the refolded plan differs");
        let kept: Plan = serde_json::from_slice(&serde_json::to_vec(&plan).unwrap()).unwrap();
        assert_eq!(kept, plan, "its snapshot differs");
        self.plan = plan;
        self.step(PlanInput::Recovered { first: Vec::new() });
    }

    fn crash_unless_over(&mut self) {
        if self.plan.ended().is_none() {
            self.crash();
        }
    }

    fn place(&self, id: &str) -> usize {
        self.plan.graph().unwrap().index(id).unwrap()
    }

    fn view(&self, id: &str) -> TaskView<'_> {
        self.plan.task(self.place(id)).unwrap()
    }

    fn attempt(&self, id: &str) -> u32 {
        self.view(id).attempt
    }

    fn status(&self, id: &str) -> TaskStatus {
        self.view(id).status
    }

    /// The ids of those that hold a place.
    fn at_work(&self) -> Vec<&str> {
        self.plan.active().map(|task| self.plan.draft().unwrap().tasks[task].id.as_str()).collect()
    }

    fn questions(&self) -> Vec<PlanQuestion> {
        self.plan.asked().map(|(_, about)| about.clone()).collect()
    }

    fn question(&self) -> QuestionId {
        let open: Vec<QuestionId> = self.plan.asked().map(|(question, _)| question).collect();
        assert_eq!(open.len(), 1, "{:?}", self.questions());
        open[0]
    }

    /// Answers the one open question.
    fn say(&mut self, say: PlanDecision) -> Vec<Event> {
        let question = self.question();
        self.step(PlanInput::Answered { question, say, by: person() })
    }

    fn report(&mut self, id: &str, report: Report) -> Vec<Event> {
        let (task, attempt) = (self.place(id), self.attempt(id));
        self.step(PlanInput::Reported { task, attempt, report, spent: used(7) })
    }

    fn done(&mut self, id: &str) -> Vec<Event> {
        self.report(
            id,
            Report::Done {
                output: format!("{id} is done"),
                findings: Some(found(Proof::Verified)),
                unknown: Vec::new(),
            },
        )
    }

    fn fails(&mut self, id: &str) -> Vec<Event> {
        self.report(id, Report::Failed { error: "could not".into(), output: String::new() })
    }

    /// Fails until nothing tries it again by itself.
    fn fails_for_good(&mut self, id: &str) {
        loop {
            self.fails(id);
            match self.view(id).waits {
                WaitReason::Retry { at_ms } => self.wake_at(at_ms),
                _ => return,
            }
        }
    }

    fn checked(&mut self, id: &str, proof: Proof) -> Vec<Event> {
        let (task, attempt) = (self.place(id), self.attempt(id));
        self.step(PlanInput::Checked { task, attempt, findings: found(proof) })
    }

    fn asks(&mut self, id: &str) -> Vec<Event> {
        self.envelopes += 1;
        let envelope = EnvelopeId::new(Uuid::from_u128(self.envelopes));
        let (task, attempt) = (self.place(id), self.attempt(id));
        self.step(PlanInput::Asked { task, attempt, question: "which?".into(), envelope })
    }

    fn told(&mut self, id: &str) -> Vec<Event> {
        let task = self.place(id);
        self.step(PlanInput::Told { task, answer: "that".into(), by: "max".into() })
    }

    fn rule(&mut self, id: &str, ruling: Ruling) -> Vec<Event> {
        let task = self.place(id);
        self.step(PlanInput::Rule { task, ruling, by: "max".into(), note: String::new() })
    }

    fn stop(&mut self, id: Option<&str>) -> Vec<Event> {
        let task = id.map(|id| self.place(id));
        self.step(PlanInput::Stop { task, by: "user".into() })
    }

    /// Those who were told to stop say that they have.
    fn rest(&mut self) {
        let stopping: Vec<usize> = self.plan.stopping().collect();
        for task in stopping {
            let attempt = self.plan.slots[task].tries.attempt;
            self.step(PlanInput::Reported { task, attempt, report: Report::Stopped, spent: used(7) });
        }
    }

    fn wake_at(&mut self, at_ms: i64) {
        self.now = at_ms;
        self.step(PlanInput::Woke);
    }

    #[track_caller]
    fn ended(&self, end: PlanEnd) {
        assert_eq!(self.plan.ended(), Some(end), "{:#?}", self.plan);
    }
}

/// How an event shows in a table: its name and its task.
fn told_short(events: &[Event]) -> Vec<String> {
    events
        .iter()
        .map(|event| format!("{}{}", event.name(), law::subject(event).map_or(String::new(), |id| format!(" {id}"))))
        .collect()
}
