//! Random plans under a random driver, until they end. One stream of bytes chooses everything, so that what fails
//! shrinks to a short one; where it runs out, the plan is simply brought to its end.

use proptest::prelude::*;

use super::super::task_state::TaskState;
use super::*;
use crate::message::{Principal, Role};

const GLOBS: [&str; 7] = ["src/**", "src/a/*", "src/a/b.rs", "docs", "docs/*.md", "*.md", "SRC/A/c"];
/// Inputs after which any plan must have ended once everybody does their best.
const LAST_STEPS_MAX: usize = 2_000;

struct Bytes<'b>(std::slice::Iter<'b, u8>);

impl Bytes<'_> {
    fn next(&mut self) -> usize {
        self.0.next().copied().unwrap_or_default().into()
    }

    fn below(&mut self, bound: usize) -> usize {
        self.next() % bound.max(1)
    }

    fn is_one_in(&mut self, n: usize) -> bool {
        self.next() % n == n - 1
    }

    fn is_over(&self) -> bool {
        self.0.len() == 0
    }
}

fn random_draft(bytes: &mut Bytes<'_>) -> Draft {
    let count = 1 + bytes.below(30);
    let mut tasks = Vec::new();
    let mut gates = Vec::new();
    for n in 0..count {
        let id = format!("t{n}");
        let other = |bytes: &mut Bytes<'_>| format!("t{}", bytes.below(n));
        let mut task = task(&id);
        if n > 0 {
            task.needs = (0..bytes.below(4)).map(|_| other(bytes)).collect();
            if bytes.is_one_in(4) {
                let outcome = if bytes.is_one_in(2) { "ok" } else { "failed" };
                task.when = Some(format!("{}.{outcome}", other(bytes)));
            }
        }
        task.owns = Some((0..bytes.below(3)).map(|_| GLOBS[bytes.below(GLOBS.len())].to_owned()).collect());
        task.retry = u32::try_from(bytes.below(3)).unwrap();
        task.timeout_ms = bytes.is_one_in(2).then(|| 5_000 * (1 + bytes.below(5)) as u64);
        task.skip = bytes.is_one_in(16);
        if bytes.is_one_in(8) {
            gates.push(Gate { before: id, ask: "owner".into() });
        }
        tasks.push(task);
    }
    if bytes.is_one_in(2) {
        tasks.reverse();
    }
    let max_parallel = bytes.is_one_in(4).then(|| u32::try_from(bytes.below(3)).unwrap());
    Draft { tasks, gates, max_parallel, ..draft(Vec::new()) }
}

fn random_proposal(bytes: &mut Bytes<'_>) -> PlanProposed {
    let draft = random_draft(bytes);
    let approve = [event::ApprovalMode::Plan, event::ApprovalMode::Never, event::ApprovalMode::Risky][bytes.below(3)];
    let risks = if bytes.is_one_in(2) { names(&["it deletes"]) } else { Vec::new() };
    let mut carried = Vec::new();
    for _ in 0..bytes.below(3) {
        let task = draft.tasks[bytes.below(draft.tasks.len())].id.clone();
        carried.push(event::CarriedResult { task, result: TaskResult { spent: used(9), ..TaskResult::default() } });
    }
    let max_parallel = u32::try_from(1 + bytes.below(5)).unwrap();
    PlanProposed { approve, risks, carried, max_parallel, ..proposal(draft) }
}

fn random_report(bytes: &mut Bytes<'_>) -> Report {
    let proof = [Proof::Verified, Proof::Unverified][bytes.below(2)];
    match bytes.below(12) {
        0..=4 => Report::Done { output: "done".into(), findings: Some(found(proof)), unknown: Vec::new() },
        5..=7 => Report::Done { output: "done".into(), findings: None, unknown: Vec::new() },
        8 | 9 => Report::Failed { error: "no".into(), output: "half".into() },
        10 => {
            let left = bytes.is_one_in(2).then(|| Budget { nano: Some(bytes.next() as u64), ..Budget::default() });
            Report::OutOfMoney { output: "half".into(), left, own: bytes.is_one_in(2) }
        }
        _ => Report::Stopped,
    }
}

fn random_ruling(bytes: &mut Bytes<'_>) -> Ruling {
    let agent = bytes.is_one_in(2).then(|| "ada".to_owned());
    match bytes.below(6) {
        0 => Ruling::Skip,
        1 => Ruling::GiveUp,
        2 => Ruling::Fixed,
        3 => Ruling::Escalate,
        4 => Ruling::Accept,
        _ => Ruling::Retry { agent, model: bytes.is_one_in(2).then(|| "opus".to_owned()), note: "look again".into() },
    }
}

fn random_say(bytes: &mut Bytes<'_>) -> PlanDecision {
    match bytes.below(16) {
        0..=5 => PlanDecision::Approve,
        6..=8 => PlanDecision::FirstWave,
        9..=12 => PlanDecision::Rule(random_ruling(bytes)),
        13 => PlanDecision::Edit(Vec::new()),
        14 => PlanDecision::Reject("no".into()),
        _ => PlanDecision::Changes("otherwise".into()),
    }
}

impl Play {
    /// A task that fits, or any at all.
    fn any_task(&self, bytes: &mut Bytes<'_>, fits: impl Fn(&TaskState) -> bool) -> usize {
        let fitting: Vec<usize> =
            (0..self.plan.slots.len()).filter(|task| fits(&self.plan.slots[*task].state)).collect();
        if fitting.is_empty() || bytes.is_one_in(8) {
            return bytes.below(self.plan.slots.len() + 1);
        }
        fitting[bytes.below(fitting.len())]
    }

    /// Its attempt, or an older or later one.
    fn any_attempt(&self, bytes: &mut Bytes<'_>, task: usize) -> u32 {
        let attempt = self.plan.slots.get(task).map_or(0, |slot| slot.tries.attempt);
        match bytes.below(10) {
            8 => attempt.saturating_sub(1),
            9 => attempt + 1,
            _ => attempt,
        }
    }

    fn random_input(&mut self, bytes: &mut Bytes<'_>) -> PlanInput {
        let works = TaskState::is_at_work;
        let failed = |state: &TaskState| *state == TaskState::Failed { settled: false };
        match bytes.below(36) {
            0..=8 => {
                let task = self.any_task(bytes, works);
                let attempt = self.any_attempt(bytes, task);
                PlanInput::Reported { task, attempt, report: random_report(bytes), spent: used(bytes.next() as u64) }
            }
            9..=11 => {
                let task = self.any_task(bytes, |state| *state == TaskState::Checking);
                let proof = [Proof::Verified, Proof::Failed, Proof::Unverified][bytes.below(3)];
                let beside = (0..self.plan.slots.len()).filter(|_| bytes.is_one_in(2)).collect();
                let findings = Findings { beside, ..found(proof) };
                PlanInput::Checked { task, attempt: self.any_attempt(bytes, task), findings }
            }
            12 | 13 => {
                let task = self.any_task(bytes, works);
                PlanInput::Begun { task, attempt: self.any_attempt(bytes, task) }
            }
            14 | 15 => {
                let task = self.any_task(bytes, works);
                self.envelopes += u128::from(!bytes.is_one_in(4));
                let envelope = EnvelopeId::new(Uuid::from_u128(self.envelopes));
                PlanInput::Asked { task, attempt: self.any_attempt(bytes, task), question: "which?".into(), envelope }
            }
            16 | 17 => {
                let task = self.any_task(bytes, |state| matches!(state, TaskState::Asking { .. }));
                PlanInput::Told { task, answer: "that".into(), by: "max".into() }
            }
            18 | 19 => {
                let task = self.any_task(bytes, failed);
                PlanInput::Rule { task, ruling: random_ruling(bytes), by: "max".into(), note: "because".into() }
            }
            20 => PlanInput::LeadSilent,
            21 | 22 => {
                self.now += 500 * bytes.below(20) as i64;
                PlanInput::Woke
            }
            23 => {
                let next = self.plan.clock.due.first().map(|(at_ms, _)| *at_ms);
                self.now = self.now.max(next.unwrap_or_default());
                PlanInput::Woke
            }
            24..=28 => {
                let open: Vec<QuestionId> = self.plan.asked().map(|(question, _)| question).collect();
                let question = open.get(bytes.below(open.len() + 1)).copied();
                let nobody = QuestionId::new(Uuid::from_u128(99));
                PlanInput::Answered { question: question.unwrap_or(nobody), say: random_say(bytes), by: person() }
            }
            29 => PlanInput::Resume { by: "user".into() },
            30 if bytes.is_one_in(4) => {
                let one = !bytes.is_one_in(8);
                PlanInput::Stop {
                    task: one.then(|| self.any_task(bytes, |state| !state.is_settled())),
                    by: "user".into(),
                }
            }
            31..36 => self.rarer_input(bytes),
            _ => PlanInput::Woke,
        }
    }

    /// What happens less often: changes before approval, people who are waited for, sleep, those who were stopped.
    fn rarer_input(&mut self, bytes: &mut Bytes<'_>) -> PlanInput {
        let works = TaskState::is_at_work;
        match bytes.below(9) {
            0 if !self.plan.is_approved() || bytes.is_one_in(8) => {
                let by = Principal { door: "cli".into(), user: "u".into(), role: Role::Owner };
                let mut draft = random_draft(bytes);
                if bytes.is_one_in(4) {
                    draft.tasks[0].needs = names(&["nobody"]);
                }
                let open: Vec<QuestionId> = self.plan.asked().map(|(question, _)| question).collect();
                let question = open.first().copied().unwrap_or(QuestionId::new(Uuid::from_u128(99)));
                let risks = bytes.is_one_in(2).then(|| names(&["it deletes more"]));
                let (forecast, risk_kinds) = (Forecast::default(), Vec::new());
                let edited = event::PlanEdited { draft, forecast, risks, risky_checks: None, risk_kinds, by };
                PlanInput::Edited { question, edits: Vec::new(), edited: Box::new(edited) }
            }
            1 => {
                let task = self.any_task(bytes, works);
                let outage = task.is_multiple_of(2).then(|| "away".to_owned());
                PlanInput::Held { task, attempt: self.any_attempt(bytes, task), outage }
            }
            2 => {
                let task = self.any_task(bytes, |state| matches!(state, TaskState::Held { .. }));
                PlanInput::Freed { task, attempt: self.any_attempt(bytes, task) }
            }
            3 => {
                let ms = 1_000 * bytes.below(20) as i64;
                self.now += ms;
                PlanInput::Slept { ms }
            }
            4 => {
                let stopping: Vec<usize> = self.plan.stopping().collect();
                let task = stopping.get(bytes.below(stopping.len())).copied().unwrap_or_default();
                let attempt = self.any_attempt(bytes, task);
                PlanInput::Reported { task, attempt, report: random_report(bytes), spent: used(bytes.next() as u64) }
            }
            5 => {
                let task = self.any_task(bytes, |state| matches!(state, TaskState::Dispatched { .. }));
                served(task, self.any_attempt(bytes, task))
            }
            6 if bytes.is_one_in(4) => {
                let revision = PlanId::new(Uuid::from_u128(7 + bytes.below(2) as u128));
                match bytes.below(4) {
                    0 => PlanInput::Revised { revision, tasks: random_draft(bytes).tasks },
                    1 => PlanInput::Revised { revision, tasks: Vec::new() },
                    2 if bytes.is_one_in(4) => PlanInput::Replaced { revision },
                    _ => PlanInput::RevisionEnded { revision, reworked: bytes.is_one_in(2) },
                }
            }
            7 if self.plan.is_held() => PlanInput::Continue { by: "user".into() },
            7 if bytes.is_one_in(4) => PlanInput::Hold { by: "user".into() },
            _ => PlanInput::Woke,
        }
    }

    /// What somebody who wants the plan to end would do next.
    fn best_input(&mut self) -> PlanInput {
        let first = |wanted: &dyn Fn(&TaskState) -> bool| {
            self.plan
                .slots
                .iter()
                .position(|slot| wanted(&slot.state))
                .map(|task| (task, self.plan.slots[task].tries.attempt))
        };
        let works = |state: &TaskState| {
            matches!(state, TaskState::Dispatched { .. } | TaskState::Running { .. } | TaskState::Held { .. })
        };
        if self.plan.is_held() {
            return PlanInput::Continue { by: "user".into() };
        }
        if let Some(revision) = self.plan.revision() {
            return PlanInput::RevisionEnded { revision, reworked: false };
        }
        if let Some(task) = self.plan.stopping().next() {
            let attempt = self.plan.slots[task].tries.attempt;
            return PlanInput::Reported { task, attempt, report: Report::Stopped, spent: used(1) };
        }
        if let Some((task, attempt)) = first(&|state| *state == TaskState::Checking) {
            return PlanInput::Checked { task, attempt, findings: found(Proof::Verified) };
        }
        if let Some((task, attempt)) = first(&works) {
            let report = Report::Done { output: "done".into(), findings: None, unknown: Vec::new() };
            return PlanInput::Reported { task, attempt, report, spent: used(1) };
        }
        if let Some((task, _)) = first(&|state| matches!(state, TaskState::Asking { .. })) {
            return PlanInput::Told { task, answer: "that".into(), by: "max".into() };
        }
        if !self.plan.queues.with_lead.is_empty() {
            return PlanInput::LeadSilent;
        }
        if let Some((question, about)) = self.plan.asked().next() {
            let gives_up = matches!(about, PlanQuestion::Failure { .. });
            let say = if gives_up { PlanDecision::Rule(Ruling::GiveUp) } else { PlanDecision::Approve };
            return PlanInput::Answered { question, say, by: person() };
        }
        self.now = self.plan.clock.due.first().expect("nothing moves").0.max(self.now);
        PlanInput::Woke
    }
}

fn play(bytes: &[u8]) -> Play {
    let mut bytes = Bytes(bytes.iter());
    let mut play = Play::proposed(random_proposal(&mut bytes));
    let mut last = PlanInput::Woke;
    while play.plan.ended().is_none() && !bytes.is_over() {
        if bytes.is_one_in(24) {
            play.crash();
        }
        // Everything may come twice.
        let input = if bytes.is_one_in(10) { last } else { play.random_input(&mut bytes) };
        last = input.clone();
        play.step(input);
    }
    for _ in 0..LAST_STEPS_MAX {
        if play.plan.ended().is_some() {
            break;
        }
        let input = play.best_input();
        play.step(input);
    }
    assert!(play.plan.ended().is_some(), "it never ends: {:#?}", play.plan);
    assert!(play.step(last).is_empty(), "something followed after the end");
    play.crash();
    play
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 384, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_plan_keeps_the_laws_and_ends(bytes in proptest::collection::vec(any::<u8>(), 0..900)) {
        play(&bytes);
    }
}
