//! The loop of one plan: decide, commit, do; no model is asked here.
//!
//! The loop owns its [`Plan`] and is the only writer of the plan's stream. It takes results, answers and rulings from
//! its mailbox, all that have come in one commit; assigns tasks in the commit that records the assignment; checks
//! their results; and keeps the deadlines. A commit that fails drops the loop.

pub(crate) mod address;
mod apart;
mod check;
mod commit;
pub(crate) mod correct;
mod give;
mod history;
mod installs;
mod leave;
mod mail;
pub(crate) mod messages;
mod probe;
pub(crate) mod propose;
pub(crate) mod query;
pub(crate) mod revise;
mod serve;
pub(crate) mod upstream;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use max_team_core::agent::Settings;
use max_team_core::body::{Body, Words};
use max_team_core::event::Event;
use max_team_core::hash::Hash;
use max_team_core::id::{AgentId, EnvelopeId, PlanId};
use max_team_core::message::{Envelope, MessageKind};
use max_team_core::plan::event::{CarriedResult, PlanQuestion, ResourceUse};
use max_team_core::plan::{Budget, Findings, Plan, PlanEffect, PlanEnv, PlanInput, Report, TaskReply};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

pub use history::Basis;

use crate::active_session::{ActiveSession, Activity, Place};
use crate::agent::derived;
use crate::driver::Driver;
use crate::error::RuntimeError;
use crate::handle::Origin;
use crate::read_model::ReadModel;
use crate::session;
use crate::shared::now_ms;
use crate::work_clock::{BEAT, WorkClock};

use apart::Worktrees;
use give::Marking;
use probe::Checks;

/// The stream of a plan; also the address of its mailbox.
pub(crate) fn plan_stream(plan: PlanId) -> String {
    format!("plan/{plan}")
}

type Flight = Pin<Box<dyn Future<Output = PlanEffectDone> + Send>>;

enum PlanEffectDone {
    Checked {
        task: usize,
        attempt: u32,
        findings: Findings,
    },
    /// The snapshot of the working tree for these tasks was taken.
    Marked {
        tasks: Vec<(usize, AgentId)>,
        tree: Option<Hash>,
    },
    /// A check has run before its tasks changed anything.
    Probed {
        line: String,
        passed: bool,
    },
    /// A worktree was removed.
    Cleared,
    Woke {
        until_ms: i64,
    },
}

/// Commands from the runtime to a running plan.
#[derive(Debug)]
pub(crate) enum PlanControl {
    /// The owner of a task has begun with it.
    Begun { task: String, attempt: u32 },
    /// Close: leave what runs to the next process.
    Stop,
}

pub(crate) struct PlanLoop {
    active: Arc<ActiveSession>,
    id: PlanId,
    plan: Driver<Plan>,
    bell: Arc<Notify>,
    controls: mpsc::Receiver<PlanControl>,
    flights: FuturesUnordered<Flight>,
    checks: Checks,
    worktrees: Worktrees,
    asleep_until: Option<i64>,
    /// Hashes of the declared files of tasks at their start.
    before: HashMap<usize, Vec<Option<Hash>>>,
    marking: Marking,
    cancel: CancellationToken,
    /// The process closed during a commit, which the next process makes.
    parked: bool,
    beat: WorkClock,
}

/// Decisions that are not committed yet.
#[derive(Default)]
struct Batch {
    events: Vec<Event>,
    acks: Vec<EnvelopeId>,
    sends: Vec<Envelope>,
}

/// The answer to a question of a task's owner.
struct OwnerReply {
    answer: String,
    unanswered: bool,
    envelope: EnvelopeId,
}

impl PlanLoop {
    pub(crate) fn new(
        active: Arc<ActiveSession>,
        id: PlanId,
        plan: Plan,
        head: u64,
        place: Place<PlanControl>,
    ) -> Self {
        let origin = Origin { plan: Some(id), ..Origin::named("plan") };
        Self {
            active,
            id,
            plan: Driver::new(plan_stream(id), origin, plan, head),
            bell: place.bell,
            controls: place.controls,
            flights: FuturesUnordered::new(),
            checks: Checks::default(),
            worktrees: Worktrees::default(),
            asleep_until: None,
            before: HashMap::new(),
            marking: Marking::default(),
            cancel: CancellationToken::new(),
            parked: false,
            beat: WorkClock::new(now_ms()),
        }
    }

    /// Runs until the plan is over, it is told to stop, or the journal fails.
    pub(crate) async fn run(mut self) {
        if let Err(error) = self.work().await
            && !self.parked
        {
            self.active.tell_stopped(&self.plan.stream, error);
        }
        self.marking.end(&self.active);
        self.cancel.cancel();
    }

    async fn work(&mut self) -> Result<(), RuntimeError> {
        self.active.pool.plan(self.id, Some(self.plan.budget()));
        self.recover().await?;
        // An active task without a recorded snapshot has changed nothing yet: the snapshot is committed before the first change.
        let active: Vec<usize> = self.plan.active().collect();
        self.hold_unmarked(&active);
        self.reseat()?;
        loop {
            self.take_mail().await?;
            self.count_out().await?;
            if self.active.paths(|paths| paths.waits(self.id)) {
                self.step(PlanInput::Woke).await?;
            }
            if self.plan.awaits_lead() && self.active.is_lead_idle() {
                self.lead_is_silent().await?;
            }
            self.launch();
            self.active.report(&self.plan.stream, self.activity(), self.plan.awaits_lead()).await;
            if self.plan.ended().is_some()
                && self.worktrees.clearing == 0
                && self.active.leave(&self.plan.stream, &self.controls).await
            {
                return Ok(());
            }
            tokio::select! {
                biased;
                control = self.controls.recv() => match control {
                    None | Some(PlanControl::Stop) => return self.pause().await,
                    Some(PlanControl::Begun { task, attempt }) => self.begun(task, attempt).await?,
                },
                () = self.bell.notified() => {}
                () = self.marking.wanted.notified(), if !self.marking.is_under_way => self.mark(),
                Some(landed) = self.flights.next(), if !self.flights.is_empty() => self.land(landed).await?,
            }
        }
    }

    /// The process closes. If the plan runs, the log records that the user left, and the files changed so far.
    async fn pause(&mut self) -> Result<(), RuntimeError> {
        let Some(by) = self.active.left_by().filter(|_| self.plan.is_moving() && !self.plan.is_parked()) else {
            return Ok(());
        };
        let files = ReadModel::new(&self.active.shared.journal).files_left(&self.plan)?;
        self.step(PlanInput::Pause { by, files }).await
    }

    fn activity(&self) -> Activity {
        match self.plan.ended() {
            Some(_) if self.worktrees.clearing > 0 => Activity::Busy,
            Some(_) => Activity::Idle,
            None if self.plan.is_held() => Activity::Idle,
            None if self.checks.is_busy() || self.plan.is_retrying() => Activity::Busy,
            // It waits for the lead, a person, or the owners of tasks, which report their own activity.
            None => Activity::Waiting,
        }
    }

    /// Stops and revisions that came while the plan did not run are decided before anything else begins.
    async fn recover(&mut self) -> Result<(), RuntimeError> {
        self.recover_copies().await;
        let (mut batch, mut first) = (Batch::default(), Vec::new());
        let mail = self.active.shared.journal.pending_mail(&self.plan.stream)?;
        let known = self.plan.proposed().is_some();
        let is_first =
            |envelope: &&Envelope| known && matches!(envelope.kind, MessageKind::Shutdown | MessageKind::PlanRevised);
        for envelope in mail.iter().filter(is_first) {
            batch.acks.push(envelope.id);
            first.extend(self.read(envelope));
        }
        self.decide(PlanInput::Recovered { first }, &mut batch);
        self.commit(batch).await
    }

    /// Counts an agent that was told to stop and no longer runs as stopped: it will send no message.
    async fn count_out(&mut self) -> Result<(), RuntimeError> {
        let sits = |task: &usize| {
            let agent = self.plan.task(*task).and_then(|view| view.agent);
            agent.is_some_and(|agent| self.active.is_taken(&session::agent_stream(agent)))
        };
        let attempt = |plan: &Plan, task| plan.task(task).map_or(0, |view| view.attempt);
        let gone: Vec<(usize, u32)> =
            self.plan.stopping().filter(|task| !sits(task)).map(|task| (task, attempt(&self.plan, task))).collect();
        // While the session closes, loops are only unloaded and go on in the next process.
        if gone.is_empty() || self.active.is_closing() {
            return Ok(());
        }
        // Its last message may be in the mailbox.
        self.take_mail().await?;
        let mut batch = Batch::default();
        for (task, attempt) in gone {
            // That message may have freed the task for another attempt.
            if !self.plan.stopping().any(|stopping| stopping == task) {
                continue;
            }
            let stopped = PlanInput::Reported { task, attempt, report: Report::Stopped, spent: ResourceUse::default() };
            self.decide(stopped, &mut batch);
        }
        self.commit(batch).await
    }

    /// A plan that waits for budget goes on once there is some.
    fn resume(&mut self, batch: &mut Batch) {
        if self.plan.is_paused() && self.plan.may_resume(self.active.pool.plan(self.id, None).left()) {
            self.decide(PlanInput::Resume { by: "a larger budget".to_owned() }, batch);
        }
    }

    /// Starts the owners of unfinished tasks again after a restart, also those that only have to read that their task
    /// is over.
    fn reseat(&self) -> Result<(), RuntimeError> {
        for (agent, _) in self.active.working()?.into_iter().filter(|(_, plan)| *plan == Some(self.id)) {
            self.active.seat_agent(agent)?;
        }
        let asking = self.plan.asking();
        for index in self.plan.active().chain(asking) {
            let checks = self
                .plan
                .pending()
                .iter()
                .any(|effect| matches!(effect, PlanEffect::Check { task, .. } if *task == index));
            if let Some(agent) = self.plan.task(index).and_then(|view| view.agent).filter(|_| !checks) {
                self.active.seat_agent(agent)?;
            }
        }
        Ok(())
    }

    /// Records all tasks that have started by now, in one commit.
    async fn begun(&mut self, task: String, attempt: u32) -> Result<(), RuntimeError> {
        let mut batch = Batch::default();
        let mut next = Some((task, attempt));
        while let Some((task, attempt)) = next {
            if let Some(index) = self.plan.graph().and_then(|graph| graph.index(&task)) {
                self.decide(PlanInput::Begun { task: index, attempt }, &mut batch);
            }
            next = match self.controls.try_recv() {
                Ok(PlanControl::Begun { task, attempt }) => Some((task, attempt)),
                Ok(PlanControl::Stop) => {
                    self.controls.close();
                    None
                }
                Err(_) => None,
            };
        }
        self.commit(batch).await
    }

    async fn lead_is_silent(&mut self) -> Result<(), RuntimeError> {
        let mut batch = Batch::default();
        self.decide(PlanInput::LeadSilent, &mut batch);
        for task in self.plan.asking() {
            self.decide(PlanInput::Unanswered { task }, &mut batch);
        }
        self.commit(batch).await
    }

    async fn step(&mut self, input: PlanInput) -> Result<(), RuntimeError> {
        let mut batch = Batch::default();
        self.decide(input, &mut batch);
        self.commit(batch).await
    }

    /// Decides, and makes the messages that follow, while the plan is in the state that the decision saw.
    fn decide(&mut self, input: PlanInput, batch: &mut Batch) {
        // One reading of the clock for both: it may jump between two.
        let at_ms = now_ms();
        if let Some(ms) = self.beat.missed_ms(at_ms) {
            self.decide_one(PlanInput::Slept { ms }, at_ms, batch);
        }
        self.decide_one(input, at_ms, batch);
    }

    fn decide_one(&mut self, input: PlanInput, at_ms: i64, batch: &mut Batch) {
        let reply = |told: TaskReply<'_>| {
            let TaskReply { task, answer, unanswered, envelope } = told;
            (task.to_owned(), OwnerReply { answer: answer.to_owned(), unanswered, envelope })
        };
        let mut replies: HashMap<String, OwnerReply> = self.plan.answered_tasks().map(reply).collect();
        let asked = |task| Some((self.plan.task(task)?.task.id.clone(), self.plan.question_envelope(task)?));
        let asked: HashMap<String, EnvelopeId> = self.plan.asking().into_iter().filter_map(asked).collect();
        let is_said = matches!(input, PlanInput::Answered { .. } | PlanInput::Edited { .. });
        let fresh = (is_said || matches!(input, PlanInput::Continue { .. })).then(|| self.active.fresh_turn());
        let carried = if is_said { self.carried() } else { None };
        let carried = carried.as_deref();
        let step = |plan: &mut Driver<Plan>, taken: &[String]| {
            plan.step(input, &PlanEnv { at_ms, taken, fresh, carried }, at_ms)
        };
        let events = self.active.paths(|paths| paths.decide(self.id, &mut self.plan, step));
        for event in &events {
            if let Event::TaskAnswered(answered) = event
                && let Some(envelope) = asked.get(&answered.task).copied()
            {
                let (answer, unanswered) = (answered.answer.clone(), answered.is_missing());
                replies.insert(answered.task.clone(), OwnerReply { answer, unanswered, envelope });
            }
            if let Event::TaskResumed(resumed) = event {
                let index = self.plan.graph().and_then(|graph| graph.index(&resumed.task));
                let agent = index.and_then(|index| self.plan.task(index)).and_then(|view| view.agent);
                if let (Some(reply), Some(agent)) = (replies.get(&resumed.task), agent) {
                    batch.sends.push(self.answer_envelope(agent, reply));
                }
            }
        }
        batch.events.extend(events);
    }

    /// What the plan that this one revises has finished by now, for as long as the user has not approved the revision.
    fn carried(&self) -> Option<Vec<CarriedResult>> {
        let proposed = self.plan.proposed().filter(|_| !self.plan.is_approved())?;
        Some(propose::carried(&self.active, proposed.revises?, &proposed.draft))
    }

    fn answer_envelope(&self, agent: AgentId, reply: &OwnerReply) -> Envelope {
        let asked = reply.envelope;
        let answer = Words { text: &reply.answer, asked: Some(asked), ask: reply.unanswered, ..Words::default() };
        Envelope::new(
            derived(&[asked.to_string().as_bytes(), b"answer"]),
            &self.plan.stream,
            session::agent_stream(agent),
            MessageKind::Text,
            Body::Words(answer),
            now_ms(),
        )
        .answering(asked)
    }

    fn launch(&mut self) {
        for effect in self.plan.pending() {
            match effect {
                PlanEffect::Check { task, attempt } => {
                    if !self.checks.running.contains_key(&(task, attempt))
                        && !self.is_probing(task)
                        && let Some(flight) = self.check(task, attempt)
                    {
                        self.flights.push(flight);
                    }
                }
                PlanEffect::Sleep { until_ms } => {
                    if self.asleep_until.is_none_or(|until| until > until_ms) {
                        self.asleep_until = Some(until_ms);
                        let wait = u64::try_from(until_ms.saturating_sub(now_ms())).unwrap_or(0);
                        self.flights.push(Box::pin(async move {
                            tokio::time::sleep(Duration::from_millis(wait).min(BEAT)).await;
                            PlanEffectDone::Woke { until_ms }
                        }));
                    }
                }
            }
        }
    }

    async fn land(&mut self, landed: PlanEffectDone) -> Result<(), RuntimeError> {
        match landed {
            PlanEffectDone::Probed { line, passed } => self.probed(line, passed).await,
            PlanEffectDone::Checked { task, attempt, mut findings } => {
                self.checks.running.remove(&(task, attempt));
                if self.cancel.is_cancelled() {
                    return Ok(());
                }
                findings.beside = self.beside(task);
                self.step(PlanInput::Checked { task, attempt, findings }).await
            }
            PlanEffectDone::Woke { until_ms } if self.asleep_until == Some(until_ms) => {
                self.asleep_until = None;
                self.step(PlanInput::Woke).await
            }
            PlanEffectDone::Marked { tasks, tree } => self.marked(tasks, tree).await,
            PlanEffectDone::Cleared => {
                self.worktrees.clearing -= 1;
                Ok(())
            }
            // A timer with an earlier time has replaced it.
            PlanEffectDone::Woke { .. } => Ok(()),
        }
    }
}

/// The text of a question about a plan, for people.
pub(crate) fn about_words(about: &PlanQuestion) -> String {
    match about {
        PlanQuestion::Proposal => "may this plan run?".to_owned(),
        PlanQuestion::Rest => "the first wave is over; may the rest run?".to_owned(),
        PlanQuestion::Start { task } => format!("may task `{task}` start?"),
        PlanQuestion::Failure { task, error, .. } => format!("task `{task}` failed: {error}"),
        PlanQuestion::Budget => "the budget is used up; is there more?".to_owned(),
    }
}

/// The cap of a session, as a budget.
pub(crate) fn cap(settings: &Settings) -> Budget {
    Budget { nano: settings.budget_nano, tokens: settings.budget_tokens, wall_ms: None }
}
