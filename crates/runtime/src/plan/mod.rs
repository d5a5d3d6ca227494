//! One plan's loop: decide, commit, do; the mechanics that no model is asked about.
//!
//! The loop owns its [`Plan`] and is the only writer of the plan's stream. It takes results, answers and rulings from
//! its mailbox, all that have come in one commit; gives tasks to members in the same commit as the fact that they have
//! them; looks at what they leave behind; and keeps the clock. A commit that fails drops the loop.

pub(crate) mod address;
mod apart;
mod check;
mod commit;
mod give;
mod history;
mod leave;
pub(crate) mod letters;
mod mail;
mod probe;
pub(crate) mod propose;
pub(crate) mod query;
pub(crate) mod recheck;
pub(crate) mod revise;
mod serve;
mod upstream;

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use max_team_core::event::Event;
use max_team_core::hash::Hash;
use max_team_core::id::{AgentId, EnvelopeId, PlanId};
use max_team_core::message::{Envelope, Kind};
use max_team_core::plan::event::{About, Carried, Spent};
use max_team_core::plan::{Budget, Effect, Findings, Input, Now, Plan, Report};
use max_team_core::team::Settings;
use max_team_tools::git;
use serde_json::json;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

pub use history::Basis;

use crate::agent::{Control, derived};
use crate::beat::{BEAT, Beat};
use crate::census::Census;
use crate::error::RuntimeError;
use crate::floor::{Activity, Floor, Place};
use crate::handle::Origin;
use crate::session;
use crate::shared::now_ms;

use probe::Probe;

/// What the log says where the lead has no answer, and who gave it: the user is asked then.
const UNANSWERED: &str = "The lead has no answer; it is the user's to give.";
const NOBODY: &str = "nobody";

/// The version of the snapshots that this code reads and writes; another fold or another shape is another version.
pub(crate) const PLAN_SNAPSHOT_VERSION: u32 = 7;

/// The stream of a plan; also the address of its mailbox.
pub(crate) fn plan_stream(plan: PlanId) -> String {
    format!("plan/{plan}")
}

type Flight = Pin<Box<dyn Future<Output = Landed> + Send>>;

enum Landed {
    Checked {
        task: usize,
        attempt: u32,
        findings: Findings,
    },
    /// The working tree was looked at, before these change anything in it.
    Marked {
        tasks: Vec<(usize, AgentId)>,
        tree: Option<git::Snapshot>,
    },
    /// A check has run before the tasks that it is to prove.
    Probed {
        line: String,
        passed: bool,
    },
    /// A copy is gone.
    Cleared,
    Woke {
        until_ms: i64,
    },
}

/// How things were when a task began.
#[derive(Default, Clone)]
struct Before {
    tree: Option<git::Snapshot>,
    outputs: Vec<Option<Hash>>,
}

pub(crate) struct PlanLoop {
    floor: Arc<Floor>,
    id: PlanId,
    stream: String,
    origin: Arc<Origin>,
    plan: Plan,
    head: u64,
    bell: Arc<Notify>,
    controls: mpsc::Receiver<Control>,
    flights: FuturesUnordered<Flight>,
    /// Checks that run, and what stops each of them.
    checking: HashMap<(usize, u32), CancellationToken>,
    /// Checks that run before their tasks have changed anything, each with those tasks.
    probes: HashMap<String, Probe>,
    /// Whoever has a copy of the project to work in.
    apart: HashSet<AgentId>,
    /// Copies that are being dropped.
    clearing: usize,
    asleep_until: Option<i64>,
    before: HashMap<usize, Before>,
    /// Coders without a snapshot of the working tree, by their tasks; what tells that one of them needs it; and whether it is
    /// being taken.
    unmarked: HashMap<AgentId, usize>,
    wanted: Arc<Notify>,
    is_marking: bool,
    cancel: CancellationToken,
    /// It was told to go in the middle of a commit, which the next process makes.
    parked: bool,
    beat: Beat,
    snapshot_at: u64,
}

/// What has been decided and not committed yet.
#[derive(Default)]
struct Batch {
    events: Vec<Event>,
    acks: Vec<EnvelopeId>,
    sends: Vec<Envelope>,
    blobs: Vec<Vec<u8>>,
}

/// What somebody is told who had asked.
struct Reply {
    answer: String,
    by: String,
    letter: EnvelopeId,
}

impl Reply {
    fn new(answer: &str, by: &str, letter: EnvelopeId) -> Self {
        Self { answer: answer.to_owned(), by: by.to_owned(), letter }
    }
}

impl PlanLoop {
    pub(crate) fn new(floor: Arc<Floor>, id: PlanId, plan: Plan, head: u64, place: Place) -> Self {
        let origin = Origin { plan: Some(id), ..Origin::named("plan") };
        Self {
            floor,
            id,
            stream: plan_stream(id),
            origin: Arc::new(origin),
            plan,
            head,
            bell: place.bell,
            controls: place.controls,
            flights: FuturesUnordered::new(),
            checking: HashMap::new(),
            probes: HashMap::new(),
            apart: HashSet::new(),
            clearing: 0,
            asleep_until: None,
            before: HashMap::new(),
            unmarked: HashMap::new(),
            wanted: Arc::default(),
            is_marking: false,
            cancel: CancellationToken::new(),
            parked: false,
            beat: Beat::new(now_ms()),
            snapshot_at: head,
        }
    }

    /// Runs until the plan is over, it is told to stop, or the journal fails.
    pub(crate) async fn run(mut self) {
        if let Err(error) = self.work().await
            && !self.parked
        {
            self.floor.tell_stopped(&self.stream, error);
        }
        self.floor.marks.end(self.unmarked.drain().map(|(agent, _)| agent));
        self.cancel.cancel();
    }

    async fn work(&mut self) -> Result<(), RuntimeError> {
        self.floor.plan_purse(self.id, Some(self.plan.budget()));
        self.recover().await?;
        // An active task without a recorded snapshot has changed nothing yet: the snapshot is committed before the first change.
        let active: Vec<usize> = self.plan.active().collect();
        self.hold_unmarked(&active);
        self.reseat()?;
        loop {
            self.take_mail().await?;
            self.count_out().await?;
            if self.floor.paths.waits(self.id) {
                self.step(Input::Woke).await?;
            }
            if self.plan.awaits_lead() && self.floor.is_lead_idle() {
                self.lead_is_silent().await?;
            }
            self.launch();
            self.floor.report(&self.stream, self.activity(), self.plan.awaits_lead()).await;
            if self.plan.ended().is_some() && self.clearing == 0 && self.floor.leave(&self.stream, &self.controls).await
            {
                return Ok(());
            }
            tokio::select! {
                biased;
                control = self.controls.recv() => match control {
                    None | Some(Control::Stop) => return self.pause().await,
                    Some(Control::Interrupt { by, .. }) => self.step(Input::Stop { task: None, by: by.name }).await?,
                    Some(Control::Begun { task, attempt }) => self.begun(task, attempt).await?,
                    Some(
                        Control::Configure { .. }
                        | Control::GoOn
                        | Control::Redefine(_)
                        | Control::Status(_)
                        | Control::Compact { .. }
                        | Control::Uncompact(_)
                        | Control::Withdraw { .. },
                    ) => {}
                },
                () = self.bell.notified() => {}
                () = self.wanted.notified(), if !self.is_marking => self.mark(),
                Some(landed) = self.flights.next(), if !self.flights.is_empty() => self.land(landed).await?,
            }
        }
    }

    /// The process closes. If the plan runs, the log records that the user left, and the files changed so far.
    async fn pause(&mut self) -> Result<(), RuntimeError> {
        let Some(by) = self.floor.left_by.get().filter(|_| self.plan.is_moving() && !self.plan.is_parked()) else {
            return Ok(());
        };
        let files = Census::new(&self.floor.shared.journal).files_left(&self.plan)?;
        self.step(Input::Pause { by: by.clone(), files }).await
    }

    fn activity(&self) -> Activity {
        match self.plan.ended() {
            Some(_) if self.clearing > 0 => Activity::Busy,
            Some(_) => Activity::Idle,
            None if !self.checking.is_empty() || !self.probes.is_empty() || self.plan.is_retrying() => Activity::Busy,
            // The lead, a person, or whoever has a task, and they say themselves whether they are at work.
            None => Activity::Waiting,
        }
    }

    /// What was stopped or revised while the plan did not run counts before anything else begins.
    async fn recover(&mut self) -> Result<(), RuntimeError> {
        self.recover_copies().await;
        let (mut batch, mut first) = (Batch::default(), Vec::new());
        let mail = self.floor.shared.journal.pending_mail(&self.stream)?;
        let known = self.plan.proposed().is_some();
        let is_first = |letter: &&Envelope| known && matches!(letter.kind, Kind::Shutdown | Kind::PlanRevised);
        for letter in mail.iter().filter(is_first) {
            batch.acks.push(letter.id);
            first.extend(self.read(letter));
        }
        self.decide(Input::Recovered { first }, &mut batch);
        self.commit(batch).await
    }

    /// Somebody who was told to stop and sits nowhere will not say that they have.
    async fn count_out(&mut self) -> Result<(), RuntimeError> {
        let sits = |task: &usize| {
            let agent = self.plan.task(*task).and_then(|view| view.agent);
            agent.is_some_and(|agent| self.floor.is_taken(&session::agent_stream(agent)))
        };
        let attempt = |plan: &Plan, task| plan.task(task).map_or(0, |view| view.attempt);
        let gone: Vec<(usize, u32)> =
            self.plan.stopping().filter(|task| !sits(task)).map(|task| (task, attempt(&self.plan, task))).collect();
        // Whoever is parked goes on in the next process.
        if gone.is_empty() || self.floor.is_closing() {
            return Ok(());
        }
        // They may have said so on their way out.
        self.take_mail().await?;
        let mut batch = Batch::default();
        for (task, attempt) in gone {
            // And then another may have begun in their place.
            if !self.plan.stopping().any(|stopping| stopping == task) {
                continue;
            }
            let stopped = Input::Reported { task, attempt, report: Report::Stopped, spent: Spent::default() };
            self.decide(stopped, &mut batch);
        }
        self.commit(batch).await
    }

    /// What waits for money goes on once there is some.
    fn resume(&mut self, batch: &mut Batch) {
        if self.plan.is_paused() && self.plan.may_resume(self.floor.plan_purse(self.id, None).left()) {
            self.decide(Input::Resume { by: "a larger budget".to_owned() }, batch);
        }
    }

    /// Whoever had a task when the last process went sits down again, also if they only have to hear that it is over.
    fn reseat(&self) -> Result<(), RuntimeError> {
        for (agent, _) in self.floor.working()?.into_iter().filter(|(_, plan)| *plan == Some(self.id)) {
            self.floor.seat_agent(agent)?;
        }
        let asking = self.plan.asking();
        for index in self.plan.active().chain(asking) {
            let checks =
                self.plan.pending().iter().any(|effect| matches!(effect, Effect::Check { task, .. } if *task == index));
            if let Some(agent) = self.plan.task(index).and_then(|view| view.agent).filter(|_| !checks) {
                self.floor.seat_agent(agent)?;
            }
        }
        Ok(())
    }

    /// Whoever has begun by now, in one commit.
    async fn begun(&mut self, task: String, attempt: u32) -> Result<(), RuntimeError> {
        let mut batch = Batch::default();
        let mut next = Some((task, attempt));
        while let Some((task, attempt)) = next {
            if let Some(index) = self.plan.graph().and_then(|graph| graph.index(&task)) {
                self.decide(Input::Begun { task: index, attempt }, &mut batch);
            }
            next = match self.controls.try_recv() {
                Ok(Control::Begun { task, attempt }) => Some((task, attempt)),
                Ok(Control::Interrupt { by, .. }) => {
                    self.decide(Input::Stop { task: None, by: by.name }, &mut batch);
                    None
                }
                Ok(Control::Stop) => {
                    self.controls.close();
                    None
                }
                Ok(
                    Control::Configure { .. } | Control::Status(_) | Control::Compact { .. } | Control::Uncompact(_),
                )
                | Ok(Control::GoOn | Control::Redefine(_) | Control::Withdraw { .. })
                | Err(_) => None,
            };
        }
        self.commit(batch).await
    }

    async fn lead_is_silent(&mut self) -> Result<(), RuntimeError> {
        let mut batch = Batch::default();
        self.decide(Input::LeadSilent, &mut batch);
        for task in self.plan.asking() {
            let (answer, by) = (UNANSWERED.to_owned(), NOBODY.to_owned());
            self.decide(Input::Told { task, answer, by }, &mut batch);
        }
        self.commit(batch).await
    }

    async fn step(&mut self, input: Input) -> Result<(), RuntimeError> {
        let mut batch = Batch::default();
        self.decide(input, &mut batch);
        self.commit(batch).await
    }

    /// Decides, and writes the letters that follow, while the plan still knows what it knew.
    fn decide(&mut self, input: Input, batch: &mut Batch) {
        // One look at the clock for both: it may jump between two.
        let at_ms = now_ms();
        if let Some(ms) = self.beat.missed_ms(at_ms) {
            self.decide_one(Input::Slept { ms }, at_ms, batch);
        }
        self.decide_one(input, at_ms, batch);
    }

    fn decide_one(&mut self, input: Input, at_ms: i64, batch: &mut Batch) {
        let mut told: HashMap<String, Reply> = self
            .plan
            .tasks_told()
            .map(|told| (told.task.to_owned(), Reply::new(told.answer, told.by, told.letter)))
            .collect();
        if let Input::Told { task, answer, by } = &input
            && let (Some(letter), Some(view)) = (self.plan.question_letter(*task), self.plan.task(*task))
        {
            told.insert(view.task.id.clone(), Reply::new(answer, by, letter));
        }
        let is_said = matches!(input, Input::Answered { .. } | Input::Edited { .. });
        let fresh = is_said.then(|| self.floor.fresh_turn());
        let carried = if is_said { self.carried() } else { None };
        let carried = carried.as_deref();
        let step = |plan: &mut Plan, taken: &[String]| plan.step(input, Now { at_ms, taken, fresh, carried });
        let events = self.floor.paths.decide(self.id, &mut self.plan, step);
        for event in &events {
            if let Event::TaskResumed(resumed) = event {
                let index = self.plan.graph().and_then(|graph| graph.index(&resumed.task));
                let agent = index.and_then(|index| self.plan.task(index)).and_then(|view| view.agent);
                if let (Some(reply), Some(agent)) = (told.get(&resumed.task), agent) {
                    batch.sends.push(self.answer_letter(agent, reply));
                }
            }
        }
        batch.events.extend(events);
    }

    /// What the plan that this one revises has finished by now, for as long as the user has not approved the revision.
    fn carried(&self) -> Option<Vec<Carried>> {
        let proposed = self.plan.proposed().filter(|_| !self.plan.is_approved())?;
        Some(propose::carried(&self.floor, proposed.revises?, &proposed.draft))
    }

    fn answer_letter(&self, agent: AgentId, reply: &Reply) -> Envelope {
        let asked = reply.letter;
        Envelope::new(
            derived(&[asked.to_string().as_bytes(), b"answer"]),
            &self.stream,
            session::agent_stream(agent),
            Kind::Text,
            json!({ "text": reply.answer, "asked": asked, "ask": reply.by == NOBODY }),
            now_ms(),
        )
        .answering(asked)
    }

    fn launch(&mut self) {
        for effect in self.plan.pending() {
            match effect {
                Effect::Check { task, attempt } => {
                    if !self.checking.contains_key(&(task, attempt))
                        && !self.is_probing(task)
                        && let Some(flight) = self.check(task, attempt)
                    {
                        self.flights.push(flight);
                    }
                }
                Effect::Sleep { until_ms } => {
                    if self.asleep_until.is_none_or(|until| until > until_ms) {
                        self.asleep_until = Some(until_ms);
                        let wait = u64::try_from(until_ms.saturating_sub(now_ms())).unwrap_or(0);
                        self.flights.push(Box::pin(async move {
                            tokio::time::sleep(Duration::from_millis(wait).min(BEAT)).await;
                            Landed::Woke { until_ms }
                        }));
                    }
                }
            }
        }
    }

    async fn land(&mut self, landed: Landed) -> Result<(), RuntimeError> {
        match landed {
            Landed::Probed { line, passed } => self.probed(line, passed).await,
            Landed::Checked { task, attempt, mut findings } => {
                self.checking.remove(&(task, attempt));
                if self.cancel.is_cancelled() {
                    return Ok(());
                }
                findings.beside = self.beside(task);
                self.step(Input::Checked { task, attempt, findings }).await
            }
            Landed::Woke { until_ms } if self.asleep_until == Some(until_ms) => {
                self.asleep_until = None;
                self.step(Input::Woke).await
            }
            Landed::Marked { tasks, tree } => self.marked(tasks, tree).await,
            Landed::Cleared => {
                self.clearing -= 1;
                Ok(())
            }
            // One that was to be woken earlier has taken its place.
            Landed::Woke { .. } => Ok(()),
        }
    }
}

/// What people read who are asked about a plan.
pub(crate) fn about_words(about: &About) -> String {
    match about {
        About::Proposal => "may this plan run?".to_owned(),
        About::Rest => "the first wave is over; may the rest run?".to_owned(),
        About::Start { task } => format!("may task `{task}` start?"),
        About::Failure { task, error } => format!("task `{task}` failed: {error}"),
        About::Budget => "the budget is used up; is there more?".to_owned(),
    }
}

/// The cap of a session, as a budget.
pub(crate) fn cap(settings: &Settings) -> Budget {
    Budget { nano: settings.budget_nano, tokens: settings.budget_tokens, wall_ms: None }
}
