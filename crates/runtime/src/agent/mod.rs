//! One agent's loop: decide, commit, apply, do.
//!
//! The loop owns its [`Turn`] and is the only writer of the agent's stream. It starts what is pending (`flight`),
//! acts on the team where a call asks for it (`acts`, `calls`), waits for something to land, for mail (`mail`) or for an
//! order, and turns each into one decision, with what of it is over at once (`brief`), and one commit. A commit that
//! fails drops the loop: the log is the truth and the next process folds it again. A turn that waits for a person holds
//! nothing but rows.

mod acts;
mod background;
mod bounds;
mod brief;
mod cache;
mod calls;
mod commands;
mod commit;
mod compact;
mod cx;
mod deadline;
mod flight;
mod frame;
mod hold;
mod images;
mod inbox;
mod mail;
mod members;
mod memory;
mod memory_notes;
mod mentions;
mod money;
mod newcomer;
mod notes;
mod parting;
mod plans;
mod protocol;
mod recruit;
mod report;
mod restart;
mod review;
mod running;
mod running_call;
mod skills;
mod sources;
mod steer;
mod tasks;
mod teammates;
mod tool_search;

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{FutureExt, StreamExt};
use max_team_core::agent::Settings;
use max_team_core::chat::{PartialAnswer, Usage};
use max_team_core::event::{Event, InterruptedBy, LlmOutcome, ToolOutcome};
use max_team_core::id::{AgentId, EnvelopeId};
use max_team_core::limits::TEAMMATES_SEATED_MAX;
use max_team_core::message::{Address, Envelope};
use max_team_core::policy::{ActionKind, DecidedBy};
use max_team_core::turn::{Turn, TurnEffect, TurnEnv, TurnInput, TurnStage};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::active_session::{ActiveSession, Activity};
use crate::budget::BudgetPool;
use crate::driver::Driver;
use crate::error::RuntimeError;
use crate::handle::{Origin, SessionDetails};
use crate::read_model::ReadModel;
use crate::session;
use crate::shared::{new_id, now_ms};

pub(crate) use acts::shown;
use bounds::Bounds;
pub(crate) use bounds::Redefined;
pub(crate) use calls::EXPERT;
pub use calls::TIME_OVER;
use commands::Commands;
use commit::Extra;
use cx::Memo;
pub(crate) use cx::owner_hosts;
pub(crate) use flight::look_at_words;
use flight::{EffectDone, Flight};
pub(crate) use frame::{Frame, UNATTENDED, UNATTENDED_MEMBER};
pub(crate) use hold::{PersonStop, since_of};
pub(crate) use images::runs_on;
use inbox::Inbox;
pub(crate) use mail::{answering, derived, result_id};
use memory::LookBack;
pub use mentions::is_path;
pub(crate) use mentions::paths;
use money::Money;
pub(crate) use newcomer::Newcomer;
pub(crate) use notes::beginning;
pub(crate) use parting::to_people;
pub(crate) use protocol::sharing_envelope;
pub(crate) use recruit::wanted;
use restart::Restart;
pub(crate) use review::decided;
use running::Running;
pub(crate) use teammates::asked_of;

/// How long a closing loop waits for running effects.
const PARK_WAIT: Duration = Duration::from_secs(2);

/// Commands from the runtime to a running agent loop.
#[derive(Debug)]
pub(crate) enum Control {
    /// Stop the turn and the agents that it called.
    Interrupt(InterruptedBy),
    /// Withdraw the question about its changes: there is more work.
    GoOn,
    Configure {
        settings: Box<Settings>,
        /// Who asked for it.
        by: DecidedBy,
    },
    /// Use this definition from the next turn on.
    Redefine(Box<Redefined>),
    /// Summarize the conversation so far; replies whether there is anything to summarize.
    Compact {
        keep: String,
        reply: oneshot::Sender<bool>,
    },
    /// Take the last compaction back; whether there was one.
    Uncompact(oneshot::Sender<bool>),
    /// Take back an unread message; replies whether it was unread.
    Withdraw {
        envelope: EnvelopeId,
        reply: oneshot::Sender<bool>,
    },
    Details(oneshot::Sender<SessionDetails>),
    /// Close: drop running effects and end.
    Stop,
}

/// How much of its mailbox a loop reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MailScope {
    /// The messages that came since it last looked; between turns, all.
    New,
    /// Also those that did not fit before.
    All,
}

/// The state that a loop starts from.
pub(crate) struct Seat {
    pub agent: AgentId,
    /// Entries of the agent's stream that `turn` has folded.
    pub head: u64,
    pub turn: Turn,
    pub frame: Frame,
    pub pool: BudgetPool,
    pub lead: bool,
    /// The agent that has called it, if one has: it never has more rights than its caller.
    pub caller: Option<Address>,
    /// Whether it works in the background of the session.
    pub aside: bool,
    /// Whether the journal knew it before: pending effects were then left by another process.
    pub resumed: bool,
}

pub(crate) struct Agent {
    active: Arc<ActiveSession>,
    turn: Driver<Turn>,
    frame: Frame,
    bounds: Bounds,
    memo: Memo,
    money: Money,
    running: Running,
    commands: Commands,
    inbox: Inbox,
    look_back: LookBack,
    restart: Restart,
    /// The user has decided about its changes, and its worktree may be gone: the loop is started again for the next
    /// work.
    reviewed: bool,
}

impl Agent {
    pub(crate) fn new(active: Arc<ActiveSession>, seat: Seat, bell: &Arc<Notify>) -> Self {
        let teammate = seat.turn.teammate().map(|teammate| teammate.name.clone());
        let name = teammate.or_else(|| seat.turn.identity().map(|(_, _, definition)| definition.name.clone()));
        let name = name.unwrap_or_default();
        let color = seat.turn.teammate().map(|teammate| teammate.color.as_str().into());
        let look_back = if seat.lead && !seat.turn.is_stopped() { LookBack::AfterStart } else { LookBack::No };
        let (lead, aside) = (seat.lead, seat.aside);
        let origin = Origin { name: name.into(), lead, aside, color, ..Origin::agent(seat.agent) };
        let mut agent = Self {
            frame: seat.frame,
            bounds: Bounds::new(seat.caller),
            memo: Memo::default(),
            money: Money::new(seat.pool, &seat.turn),
            running: Running::new(),
            commands: Commands::new(bell),
            inbox: Inbox::new(bell),
            look_back,
            restart: Restart::new(seat.resumed),
            reviewed: false,
            turn: Driver::new(session::agent_stream(seat.agent), origin, seat.turn, seat.head),
            active,
        };
        agent.know_task();
        agent.frame.reveal_from(agent.turn.history());
        agent.active.know_turn(agent.turn.newest());
        agent
    }

    /// The first turn of an agent that is about to start: decided here, committed by the agent or plan that assigns
    /// its task.
    fn opening(&mut self, envelope: &Envelope) -> Vec<Event> {
        let begin = self.beginning(std::slice::from_ref(envelope));
        self.decide(begin)
    }

    fn session_stream(&self) -> String {
        session::stream(self.active.session)
    }

    /// The parts of its requests that the journal does not have.
    fn unstored(&self) -> Vec<Vec<u8>> {
        self.frame.unstored(&self.active.shared)
    }

    /// Prepares the agent with the events that are being committed for it: they are stored before it runs.
    pub(crate) fn adopt(&mut self, events: Vec<Event>, at_ms: i64) {
        self.turn.head += events.len() as u64;
        self.turn.catch_up(&events, at_ms);
        self.know_task();
        self.running.begun = self.turn.assignment().cloned();
        let word = self.active.shared.notices.ticket();
        self.turn.will_tell(&self.active, word, at_ms, events);
        if let Some(intent) = self.turn.calling() {
            let model = intent.model.clone();
            self.encoded(&model);
        }
    }

    /// Runs until it is told to stop, has nothing more to do, or the journal fails. It stays where it is: a loop that holds
    /// an agent by value has room for two of them.
    pub(crate) fn run(self: Box<Self>, controls: mpsc::Receiver<Control>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.live(controls))
    }

    async fn live(mut self: Box<Self>, mut controls: mpsc::Receiver<Control>) {
        let worked = self.work(&mut controls).await;
        self.tell().await;
        // A turn that has applied events which could not be stored decides nothing more.
        let is_sound = worked.is_ok();
        if let Err(error) = worked {
            self.active.tell_stopped(&self.turn.stream, error);
        }
        self.running.stop();
        // Effects that stop at once are recorded; the others are left to the next process, which can recover them.
        let drain = async {
            while let Some(landed) = self.running.flights.next().await {
                if is_sound {
                    self.park(landed).await;
                }
            }
        };
        drop(tokio::time::timeout(PARK_WAIT, drain).await);
        self.commands.close().await;
        // Changes of commands that we killed still belong to the agent. If that cannot be recorded, they count as the
        // user's.
        let seen = self.commands.files_changed();
        drop(self.commit(seen, Extra::default()).await);
        self.tell().await;
        if let Some(agent) = self.turn.origin.agent.filter(|_| self.reviewed) {
            drop(controls);
            self.active.seat_anew(agent);
        }
    }

    async fn work(&mut self, controls: &mut mpsc::Receiver<Control>) -> Result<(), RuntimeError> {
        Box::pin(self.prepare_sources()).await;
        if self.restart.resumed {
            let mut mail = self.active.shared.journal.pending_mail(&self.turn.stream)?;
            self.stop_first(&mut mail).await?;
            self.step(TurnInput::Recovered, Extra::default()).await?;
            self.restart.tries_first = self.turn.is_parked();
            self.ask_no_more().await?;
        }
        let mut mail = Some(MailScope::New);
        let mut told = None;
        while !self.reviewed {
            if let Some(scope) = mail.take() {
                // Boxed, so that the loop's future keeps no room for it.
                Box::pin(self.read_mail(scope)).await?;
                continue;
            }
            let before = self.turn.stage();
            while self.launch_and_act().await? {
                // Actions on the team are published before what follows from them.
                self.tell().await;
            }
            self.restart.resumed = false;
            if self.after(before) {
                // A message to a teammate can end the turn: messages that came meanwhile begin the next one.
                mail = Some(MailScope::All);
                continue;
            }
            // An effect begins when its future is first polled.
            let landed = self.running.flights.next().now_or_never().flatten();
            self.tell().await;
            if let Some(landed) = landed {
                let before = self.turn.stage();
                self.land(landed).await?;
                mail = self.after(before).then_some(MailScope::All);
                continue;
            }
            if self.end_stopped().await? {
                mail = Some(MailScope::All);
                continue;
            }
            let activity = self.activity();
            if activity == Activity::Idle {
                Box::pin(self.hand_over()).await?;
            }
            if activity == Activity::Idle && (self.hear_commands().await? || self.take_up().await?) {
                // The loop was not rung for it, so it reports itself that it works.
                told = Some(Activity::Busy);
                self.active.report(&self.turn.stream, Activity::Busy, false).await;
                continue;
            }
            if told != Some(activity) {
                told = Some(activity);
                self.active.report(&self.turn.stream, activity, false).await;
            }
            if activity == Activity::Idle && self.can_leave() && self.active.leave(&self.turn.stream, controls).await {
                return Ok(());
            }
            let before = self.turn.stage();
            self.keep_time();
            let due = due(self.turn.requests().next_ms().map(|until_ms| until_ms.max(self.restart.patient_ms)));
            tokio::select! {
                biased;
                control = controls.recv() => if !self.heed(control).await? {
                    return Ok(());
                },
                () = self.inbox.bell.notified() => (mail, told) = (Some(MailScope::New), None),
                () = due => self.overdue().await?,
                () = self.running.deadline.over() => self.interrupt(calls::time_over(), Extra::default()).await?,
                Some(landed) = self.running.flights.next(), if !self.running.flights.is_empty() => self.land(landed).await?,
            }
            mail = if self.after(before) { Some(MailScope::All) } else { mail };
        }
        Ok(())
    }

    /// Carries out a command of the runtime; whether to go on.
    async fn heed(&mut self, control: Option<Control>) -> Result<bool, RuntimeError> {
        match control {
            None | Some(Control::Stop) => return Ok(false),
            Some(Control::Interrupt(by)) => {
                if self.turn.origin.lead && !self.turn.is_busy() {
                    // The message whose turn the user interrupts may be unread.
                    Box::pin(self.take_mail(MailScope::All)).await?;
                }
                self.interrupt(by, Extra::default()).await?;
                self.inbox.stop_waits = false;
            }
            Some(Control::Configure { settings, by }) => self.reconfigure(*settings, by).await?,
            Some(Control::GoOn) => self.ask_later().await?,
            Some(Control::Redefine(next)) => self.bounds.next = Some(next),
            Some(Control::Compact { keep, reply }) => drop(reply.send(self.compact(keep).await?)),
            Some(Control::Uncompact(reply)) => drop(reply.send(self.uncompact().await?)),
            Some(Control::Withdraw { envelope, reply }) => drop(reply.send(self.withdraw(envelope).await?)),
            // A frontend that no longer waits for the reply is no error.
            Some(Control::Details(reply)) => drop(reply.send(self.details())),
        }
        Ok(true)
    }

    /// Reads the mailbox until nothing more follows from it.
    async fn read_mail(&mut self, mut scope: MailScope) -> Result<(), RuntimeError> {
        loop {
            let (before, head) = (self.turn.stage(), self.turn.head);
            self.take_mail(scope).await?;
            // A turn may be over in the decision that begins it: the messages that it left are then next.
            let is_over = self.turn.head != head && !self.turn.is_busy();
            if !self.after(before) && !is_over {
                return Ok(());
            }
            scope = MailScope::All;
        }
    }

    /// Whether waiting messages may fit now: a turn is over, and its effects with it, or a question was answered.
    fn after(&mut self, before: TurnStage) -> bool {
        let now = self.turn.stage();
        let is_over = before != TurnStage::Idle && now == TurnStage::Idle;
        if is_over {
            self.running.end_turn();
            self.inbox.stop_waits = false;
            self.steer_no_more();
        }
        is_over || (before == TurnStage::Asking && now != TurnStage::Asking)
    }

    /// Ends a stopped turn of which this process has started no effect: no effect will complete that would end it.
    async fn end_stopped(&mut self) -> Result<bool, RuntimeError> {
        if !self.running.flights.is_empty() || !matches!(self.turn.pending().as_slice(), [TurnEffect::CancelAll]) {
            return Ok(false);
        }
        let unmade = self.turn.calling().map(|intent| {
            let outcome = LlmOutcome::Cancelled { partial: String::new(), usage: Usage::default() };
            let (call, streamed) = ((intent.call, intent.attempt), PartialAnswer::default());
            TurnInput::ModelEnded { call, outcome, ms: 0, streamed, prepared: Vec::new() }
        });
        self.step(unmade.unwrap_or(TurnInput::Recovered), Extra::default()).await?;
        Ok(!self.turn.is_busy())
    }

    /// Whether its loop may be unloaded when idle. A lead stays; commands in the background end with their agent; and
    /// a teammate that is likely to get more messages stays loaded, as long as there are not too many.
    fn can_leave(&self) -> bool {
        let is_warm = self.turn.teammate().is_some()
            && self.turn.agent_end().is_none()
            && self.frame.settings().permissions.copy.is_empty()
            && self.active.seated() <= TEAMMATES_SEATED_MAX;
        let has_commands = self.stays() && self.turn.agent_end().is_none() && !self.turn.commands().is_empty();
        !(self.turn.origin.lead || is_warm || has_commands)
    }

    fn activity(&self) -> Activity {
        if !self.turn.is_busy() {
            return if self.running.preparing.is_empty() { Activity::Idle } else { Activity::Busy };
        }
        if self.turn.calling().is_some() {
            // An agent that waits for an unreachable model server counts as idle, also during retries, except for the
            // first attempt after the program's start.
            return if self.turn.is_parked() && !self.restart.tries_first { Activity::Waiting } else { Activity::Busy };
        }
        let waits = |effect: &TurnEffect| match effect {
            TurnEffect::Ask { .. } => true,
            TurnEffect::RunTool { action, .. } if action.kind == ActionKind::Merge => false,
            // Another agent works on it, and reports its own activity.
            TurnEffect::RunTool { key, action, .. } => {
                self.waits_for_mail(key, action) && !self.running.preparing.contains(key)
            }
            _ => false,
        };
        let pending = self.turn.pending();
        if !pending.is_empty() && pending.iter().all(waits) { Activity::Waiting } else { Activity::Busy }
    }

    fn now(&self) -> TurnEnv {
        let fresh = new_id();
        let [.., a, b, c, d] = *fresh.as_bytes();
        let summary = self.turn.calling().and_then(|intent| intent.summary.as_ref());
        TurnEnv {
            at_ms: now_ms(),
            jitter: u32::from_le_bytes([a, b, c, d]),
            fresh,
            frame: self.frame.address(),
            compact: self.frame.compact_address(),
            facts: summary.map(|about| self.facts(about)).unwrap_or_default(),
            steer: self.inbox.steering.told(),
            left: self.money.left,
            later: self.money.later,
        }
    }

    /// An agent that never began: its reservation is released.
    fn give_up(mut self) {
        self.money.release();
        self.active.vacate(&self.turn.stream);
    }

    /// One decision, one commit.
    async fn step(&mut self, input: TurnInput, extra: Extra) -> Result<(), RuntimeError> {
        self.follow().await?;
        let events = self.decide(input);
        self.commit(events, extra).await
    }

    async fn land(&mut self, landed: EffectDone) -> Result<(), RuntimeError> {
        self.running.land(&landed.flight);
        if let Flight::Tool(key) = &landed.flight {
            if self.running.preparing.remove(key) && !self.turn.is_busy() {
                // Reads the mailbox again for the request that waits for this worktree, also if it was just read.
                self.active.ring(&self.turn.stream);
            }
            if landed.input.is_some() {
                self.running.end_call(key);
            }
        }
        match landed.input {
            Some(input) => {
                self.follow().await?;
                let mut events = self.commands_begun();
                events.extend(self.commands.files_changed());
                events.extend(self.decide(input));
                self.do_briefly(&mut events);
                self.commit(events, Extra::default()).await
            }
            None => Ok(()),
        }
    }

    /// When the loop closes: a completed effect is recorded, so that it is neither paid nor done again. All others
    /// stay open and go on in the next process.
    async fn park(&mut self, landed: EffectDone) {
        let finished = match &landed.input {
            Some(TurnInput::ToolEnded { ending, .. }) => *ending != ToolOutcome::Interrupted,
            Some(TurnInput::ModelEnded { outcome, .. }) => matches!(outcome, LlmOutcome::Done(_)),
            _ => false,
        };
        if let Some(input) = landed.input.filter(|_| finished) {
            let mut events = self.commands.files_changed();
            events.extend(self.decide(input));
            // The next model call would be recorded and never made: the next process decides about it.
            events.retain(|event| !matches!(event, Event::LlmIntent(_) | Event::Nudged(_)));
            // If even this cannot be written, the log still says that it was started, and recovery handles it.
            drop(self.commit(events, Extra::default()).await);
        }
    }

    fn details(&self) -> SessionDetails {
        // If the journal cannot be read now, the reader keeps the cost that it knows.
        let cost = ReadModel::new(&self.active.shared.journal).session_cost(self.active.session).unwrap_or_default();
        SessionDetails {
            ledger: self.turn.ledger().clone(),
            cost,
            window_tokens: self.turn.window_tokens(),
            frame_bytes: self.frame.address().bytes,
            messages: (self.turn.history().len().saturating_sub(self.turn.window().from), self.turn.history().len()),
            settings: Settings::clone(self.frame.settings()),
            instructions: self.frame.files().to_vec(),
            busy: self.turn.is_busy(),
            sources: self.active.shared.sources.statuses(),
        }
    }
}

/// Completes when the wait for an answer is over.
async fn due(until_ms: Option<i64>) {
    match until_ms {
        Some(until_ms) => {
            let wait = u64::try_from(until_ms.saturating_sub(now_ms())).unwrap_or_default();
            tokio::time::sleep(Duration::from_millis(wait)).await;
        }
        None => std::future::pending().await,
    }
}

pub(super) fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
