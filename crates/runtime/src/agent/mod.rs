//! One agent's loop: decide, commit, apply, do.
//!
//! The loop owns its [`Turn`] and is the only writer of the agent's stream. It starts what is pending (`flight`),
//! acts on the team where a call asks for it (`acts`, `calls`), waits for something to land, for mail (`mail`) or for an
//! order, and turns each into exactly one decision and one commit. A commit that fails drops the loop: the log is the
//! truth and the next process folds it again. A turn that waits for a person holds nothing but rows.

mod acts;
mod cache;
mod calls;
mod compact;
mod flight;
mod frame;
mod mail;
mod memory;
mod newcomer;

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use max_team_core::chat::Usage;
use max_team_core::context::{self, BYTES_PER_KILOTOKEN};
use max_team_core::event::{End, Event, Outcome, Replied, TurnEnded};
use max_team_core::id::{AgentId, EnvelopeId};
use max_team_core::ledger::Left;
use max_team_core::limits::SNAPSHOT_ENTRIES_MIN;
use max_team_core::message::{Address, Assignment, Envelope};
use max_team_core::plan::event::Spent;
use max_team_core::policy::Class;
use max_team_core::team::Settings;
use max_team_core::turn::{Effect, Input, Now, Turn};
use max_team_journal::{Expect, Projection, Strength};
use max_team_tools::shell::Background;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::error::RuntimeError;
use crate::floor::{Activity, Floor};
use crate::handle::{Notice, Origin, Status};
use crate::herald::Word;
use crate::purse::{self, Purse};
use crate::shared::{append, commit_at, lock, now_ms};
use crate::{rows, session, worktree};

pub(crate) use acts::shown;
use flight::{Flight, Landed};
pub(crate) use frame::Frame;
pub(crate) use mail::{derived, text_at};
pub(crate) use newcomer::Newcomer;

/// How long parking waits for what is under way.
const PARK_WAIT: Duration = Duration::from_secs(2);
/// The version of the snapshots that this code reads and writes.
pub(crate) const SNAPSHOT_VERSION: u32 = 1;

/// What the house tells a running loop.
#[derive(Debug)]
pub(crate) enum Control {
    Interrupt {
        by: String,
    },
    /// Somebody has begun with a task.
    Begun {
        task: String,
        attempt: u32,
    },
    Configure(Box<Settings>),
    /// Sum up what was said so far; whether there is anything to sum up.
    Compact {
        keep: String,
        reply: oneshot::Sender<bool>,
    },
    /// Take the last compaction back; whether there was one.
    Uncompact(oneshot::Sender<bool>),
    Status(oneshot::Sender<Status>),
    /// Park: drop what is in flight and go.
    Stop,
}

/// What a loop starts from.
pub(crate) struct Seat {
    pub agent: AgentId,
    /// Entries of the agent's stream that `turn` has folded.
    pub head: u64,
    pub turn: Turn,
    pub frame: Frame,
    pub purse: Arc<Purse>,
    pub lead: bool,
    /// Whoever has called it, if somebody has: it is never freer than they are.
    pub caller: Option<Address>,
    /// Whether it works beside the session.
    pub aside: bool,
    /// Whether the journal held it before: what is pending then was left open by another process.
    pub resumed: bool,
}

pub(crate) struct Agent {
    floor: Arc<Floor>,
    stream: String,
    session_stream: String,
    origin: Arc<Origin>,
    lead: bool,
    caller: Option<Address>,
    purse: Arc<Purse>,
    head: u64,
    snapshot_at: u64,
    turn: Turn,
    frame: Frame,
    flights: FuturesUnordered<flight::Future>,
    in_flight: HashSet<Flight>,
    wire: Option<flight::Wire>,
    cancel: CancellationToken,
    bell: Arc<Notify>,
    /// Its commands that run on by themselves; they end with this loop.
    background: Arc<Background>,
    /// What the call in flight has set aside in the purse: nano-dollars and tokens.
    held: (u64, u64),
    /// What was left when it last decided something.
    left: Left,
    /// When the turn that runs began, as far as this process knows.
    began: Instant,
    /// Calls for which somebody else is at work.
    delegated: HashMap<String, CancellationToken>,
    /// Calls for whom a copy is being made to work in.
    preparing: HashSet<String>,
    /// What has happened and was not told yet, and when.
    untold: Vec<(Word, Vec<Notice>)>,
    /// The task that was begun and whose plan does not know.
    begun: Option<Assignment>,
    /// The skills that its conversation has brought in, and how many of its messages were looked at for that.
    skills: (usize, Vec<String>),
    /// Letters wait in the mailbox that came at a moment they did not fit.
    left_over: bool,
    /// What was said may be worth remembering: a lead's turn is over, or it has just sat down.
    look_back: bool,
    /// Set until this process has run something itself: what is pending then was left open by another one.
    resumed: bool,
}

/// What goes into a commit besides the agent's own events.
#[derive(Default)]
struct Extra {
    acks: Vec<EnvelopeId>,
    sends: Vec<Envelope>,
    /// Events of other streams.
    others: Vec<(String, Event)>,
    /// Where such a stream must stand, for whoever has decided by what is in it.
    expect: Vec<(String, u64)>,
    projections: Vec<Projection>,
}

impl Extra {
    fn acks(acks: Vec<EnvelopeId>) -> Self {
        Self { acks, ..Self::default() }
    }

    fn send(letter: Envelope) -> Self {
        Self { sends: vec![letter], ..Self::default() }
    }
}

impl Agent {
    pub(crate) fn new(floor: Arc<Floor>, seat: Seat, bell: &Arc<Notify>) -> Self {
        let name = seat.turn.identity().map_or_else(String::new, |(_, _, definition)| definition.name.clone());
        let held = (seat.turn.ledger().reserved_nano, 0);
        let mut agent = Self {
            stream: session::agent_stream(seat.agent),
            session_stream: session::stream(floor.session),
            origin: Arc::new(Origin {
                name: name.into(),
                lead: seat.lead,
                aside: seat.aside,
                ..Origin::agent(seat.agent)
            }),
            lead: seat.lead,
            caller: seat.caller,
            purse: seat.purse,
            head: seat.head,
            snapshot_at: seat.head,
            turn: seat.turn,
            frame: seat.frame,
            flights: FuturesUnordered::new(),
            in_flight: HashSet::new(),
            wire: None,
            cancel: CancellationToken::new(),
            bell: Arc::clone(bell),
            background: Arc::default(),
            held,
            left: Left::default(),
            began: Instant::now(),
            delegated: HashMap::new(),
            preparing: HashSet::new(),
            untold: Vec::new(),
            begun: None,
            skills: (0, Vec::new()),
            left_over: false,
            look_back: seat.lead,
            resumed: seat.resumed,
            floor,
        };
        agent.know_task();
        agent
    }

    /// The first turn of an agent that is only about to sit down: decided here, committed by whoever gives it the task.
    fn opening(&mut self, letter: &Envelope) -> Vec<Event> {
        let begin = self.beginning(std::slice::from_ref(letter));
        self.decide(begin)
    }

    /// What its requests are made of, as far as the journal does not have it.
    fn unstored(&self) -> Vec<Vec<u8>> {
        self.frame.unstored(&self.floor.shared)
    }

    /// What is being committed on its behalf will have happened when it begins to run: it gets ready.
    pub(crate) fn adopt(&mut self, events: Vec<Event>, at_ms: i64) {
        self.head += events.len() as u64;
        events.iter().for_each(|event| self.turn.apply(event));
        self.know_task();
        self.begun = self.turn.assignment().cloned();
        let word = self.floor.shared.herald.word();
        self.will_tell(word, at_ms, events);
        if let Some(intent) = self.turn.calling() {
            let model = intent.model.clone();
            self.encoded(&model);
        }
    }

    /// Tells whoever watches what has happened since they were last told. What is under way comes first: its bytes
    /// are on the wire before anybody hears of it.
    async fn tell(&mut self) {
        if self.untold.is_empty() && self.begun.is_none() {
            return;
        }
        if !self.flights.is_empty() {
            tokio::task::yield_now().await;
        }
        if let Some(assignment) = self.begun.take() {
            self.floor.begun(&assignment);
        }
        for (word, notices) in std::mem::take(&mut self.untold) {
            word.tell(notices).await;
        }
    }

    fn will_tell(&mut self, word: Word, at_ms: i64, events: impl IntoIterator<Item = Event>) {
        let (session, from) = (self.floor.session, &self.origin);
        let notice = |event| Notice::Event { session, from: Arc::clone(from), at_ms, event: Arc::new(event) };
        let notices = events.into_iter().map(notice).collect();
        self.untold.push((word, notices));
    }

    /// The same for one that is boxed already: it is too large to be moved about.
    fn run_boxed(self: Box<Self>, controls: mpsc::Receiver<Control>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin((*self).run(controls))
    }

    /// Runs until it is told to stop, has nothing more to do, or the journal fails.
    pub(crate) async fn run(mut self, mut controls: mpsc::Receiver<Control>) {
        let worked = self.work(&mut controls).await;
        self.tell().await;
        if let Err(error) = worked {
            let stopped = Notice::Stopped { session: self.floor.session, error: Arc::new(error) };
            self.floor.shared.herald.tell(stopped).await;
        }
        self.cancel.cancel();
        // What stops at once is recorded; what does not stop is left to the next process, which knows what to do.
        let drain = async {
            while let Some(landed) = self.flights.next().await {
                self.park(landed).await;
            }
        };
        drop(tokio::time::timeout(PARK_WAIT, drain).await);
        if self.background.is_used() {
            let background = Arc::clone(&self.background);
            // If the runtime itself ends nobody is left to do it; then their supervisors see that we are gone.
            drop(tokio::task::spawn_blocking(move || background.close()).await);
        }
        self.tell().await;
    }

    async fn work(&mut self, controls: &mut mpsc::Receiver<Control>) -> Result<(), RuntimeError> {
        if self.resumed {
            self.step(Input::Recovered, Extra::default()).await?;
        }
        let mut mail = true;
        // Whether letters may wait that came at a moment they did not fit.
        let mut all = false;
        let mut told = None;
        loop {
            if mail {
                self.take_mail(std::mem::take(&mut all)).await?;
                mail = false;
            }
            while self.launch_and_act().await? {}
            self.resumed = false;
            // A flight begins when it is first looked at.
            let landed = self.flights.next().now_or_never().flatten();
            self.tell().await;
            if let Some(landed) = landed {
                let was_busy = self.turn.is_busy();
                self.land(landed).await?;
                (mail, all) = self.after(was_busy).unwrap_or((mail, all));
                continue;
            }
            if self.end_stopped().await? {
                (mail, all) = (true, std::mem::take(&mut self.left_over));
                continue;
            }
            let activity = self.activity();
            if activity == Activity::Idle && std::mem::take(&mut self.look_back) {
                self.hand_over().await?;
            }
            if told != Some(activity) {
                told = Some(activity);
                self.floor.report(&self.stream, activity, false).await;
            }
            if activity == Activity::Idle && !self.lead && self.floor.leave(&self.stream, controls).await {
                return Ok(());
            }
            let was_busy = self.turn.is_busy();
            tokio::select! {
                biased;
                control = controls.recv() => match control {
                    None | Some(Control::Stop) => return Ok(()),
                    Some(Control::Interrupt { by }) => self.step(Input::Interrupt { by }, Extra::default()).await?,
                    Some(Control::Configure(settings)) => self.reconfigure(*settings).await?,
                    Some(Control::Compact { keep, reply }) => drop(reply.send(self.compact(keep).await?)),
                    Some(Control::Uncompact(reply)) => drop(reply.send(self.uncompact().await?)),
                    Some(Control::Begun { .. }) => {}
                    // A face that no longer waits for the answer is no reason to stop.
                    Some(Control::Status(reply)) => drop(reply.send(self.status())),
                },
                () = self.bell.notified() => (mail, told) = (true, None),
                Some(landed) = self.flights.next(), if !self.flights.is_empty() => self.land(landed).await?,
            }
            (mail, all) = self.after(was_busy).unwrap_or((mail, all));
        }
    }

    /// Once a turn is over: whatever of it is still under way is over too, and what was said meanwhile is next.
    fn after(&mut self, was_busy: bool) -> Option<(bool, bool)> {
        if !was_busy || self.turn.is_busy() {
            return None;
        }
        self.cancel.cancel();
        self.delegated.clear();
        Some((true, std::mem::take(&mut self.left_over)))
    }

    /// Ends a turn that was stopped before this process had begun anything of it: nothing will land that would.
    async fn end_stopped(&mut self) -> Result<bool, RuntimeError> {
        if !self.flights.is_empty() || !matches!(self.turn.pending().as_slice(), [Effect::CancelAll]) {
            return Ok(false);
        }
        let unmade = self.turn.calling().map(|intent| {
            let outcome = Outcome::Cancelled { partial: String::new(), usage: Usage::default() };
            Input::ModelEnded { call: (intent.call, intent.attempt), outcome, ms: 0, prepared: Vec::new() }
        });
        self.step(unmade.unwrap_or(Input::Recovered), Extra::default()).await?;
        Ok(!self.turn.is_busy())
    }

    fn activity(&self) -> Activity {
        if !self.turn.is_busy() {
            return Activity::Idle;
        }
        let waits = |effect: &Effect| match effect {
            Effect::Ask { .. } => true,
            // Somebody else is at work on it, and says so themselves.
            Effect::RunTool { key, .. } => self.waits_for_mail(key) && !self.preparing.contains(key),
            _ => false,
        };
        let pending = self.turn.pending();
        if !pending.is_empty() && pending.iter().all(waits) { Activity::Waiting } else { Activity::Busy }
    }

    fn now(&self, left: Left) -> Now {
        let fresh = Uuid::now_v7();
        let [.., a, b, c, d] = *fresh.as_bytes();
        let summary = self.turn.calling().and_then(|intent| intent.summary.as_ref());
        Now {
            at_ms: now_ms(),
            jitter: u32::from_le_bytes([a, b, c, d]),
            fresh,
            frame: self.frame.address(),
            compact: self.frame.compact_address(),
            facts: summary.map(|about| self.facts(about)).unwrap_or_default(),
            left,
        }
    }

    /// One decision. What it may spend is set aside before anybody else can look.
    fn decide(&mut self, input: Input) -> Vec<Event> {
        if !self.purse.is_bounded() {
            return self.turn.decide(input, &self.now(Left::default()));
        }
        let floor = Arc::clone(&self.floor);
        let _alone = lock(&floor.spending);
        self.left = self.purse.left();
        let events = self.turn.decide(input, &self.now(self.left));
        for event in &events {
            match event {
                Event::LlmEnded(ended) => {
                    let used = self.used(&ended.outcome);
                    self.purse.settle(std::mem::take(&mut self.held), used);
                }
                Event::LlmIntent(intent) => {
                    let tokens = context::tokens(intent.bytes, BYTES_PER_KILOTOKEN);
                    self.held = (intent.reserved_nano, tokens.saturating_add(u64::from(intent.max_tokens)));
                    self.purse.reserve(self.held.0, self.held.1);
                }
                _ => {}
            }
        }
        events
    }

    /// What a call that ended has used; one that may have been paid counts as paid.
    fn used(&self, outcome: &Outcome) -> (u64, u64) {
        let price = self.turn.calling().and_then(|intent| intent.model.price);
        let paid = |usage| (price.map_or(0, |price| price.of(usage)), purse::tokens(usage));
        match outcome {
            Outcome::Done(answer) => paid(answer.usage),
            Outcome::Cancelled { usage, .. } => paid(*usage),
            Outcome::Failed { failure, .. } if !failure.may_have_cost() => (0, 0),
            Outcome::Failed { .. } | Outcome::Lost => self.held,
        }
    }

    /// Works under other settings from now on, where it works already.
    async fn reconfigure(&mut self, settings: Settings) -> Result<(), RuntimeError> {
        let known = &self.frame.settings().permissions;
        let permissions = worktree::still(known, &settings.permissions);
        self.configure(Settings { permissions, ..settings }).await
    }

    /// Works under other settings from now on.
    async fn configure(&mut self, settings: Settings) -> Result<(), RuntimeError> {
        self.frame.configure(&settings);
        self.floor.rebind(&self.stream, &settings);
        let events = self.decide(Input::Configure(Box::new(settings)));
        self.commit(events, Extra::default()).await
    }

    /// A member is as free as its session, its definition and its caller are now, not as they were when the task began:
    /// what has become stricter holds from the next judgement on.
    async fn follow(&mut self) -> Result<(), RuntimeError> {
        let Some(settings) = self.turn.settings().filter(|_| !self.lead) else { return Ok(()) };
        match self.floor.settings_now(&self.origin.name, settings, self.caller.as_deref())? {
            Some(settings) => self.configure(settings).await,
            None => Ok(()),
        }
    }

    /// It was welcomed and never began: what was set aside for it is free again.
    fn give_up(mut self) {
        self.purse.settle(std::mem::take(&mut self.held), (0, 0));
        self.floor.vacate(&self.stream);
    }

    /// One decision, one commit.
    async fn step(&mut self, input: Input, extra: Extra) -> Result<(), RuntimeError> {
        self.follow().await?;
        let events = self.decide(input);
        self.commit(events, extra).await
    }

    async fn commit(&mut self, events: Vec<Event>, mut extra: Extra) -> Result<(), RuntimeError> {
        if events.is_empty() && extra.acks.is_empty() && extra.sends.is_empty() && extra.others.is_empty() {
            return Ok(());
        }
        let at_ms = now_ms();
        let mut commit = commit_at(at_ms);
        commit.fence = Some(self.floor.fence.clone());
        commit.expect.push((self.stream.clone(), Expect::At(self.head)));
        let actor = format!("agent:{}", self.origin.name);
        commit.actor.clone_from(&actor);
        let mut replies = Vec::new();
        let mut ended = false;
        let mut answered = None;
        // A turn may end in the same decision that begins it, before anybody knows whose it was.
        let mut assignment = self.turn.assignment().cloned();
        for event in &events {
            commit.appends.push(append(&self.stream, event, &actor)?);
            commit.projections.extend(rows::project(&self.stream, at_ms, event));
            extra.sends.extend(self.held_letter(event, at_ms));
            match event {
                Event::Interrupted(interrupted) => extra.sends.extend(self.stopping(&interrupted.by)),
                Event::TurnStarted(started) => assignment.clone_from(&started.assignment),
                Event::TurnEnded(over) => {
                    ended = true;
                    if self.lead && !self.turn.is_compacting() {
                        let whole = over.end == End::Answered;
                        replies.push(Event::Replied(Replied { turn: over.turn, text: over.text.clone(), whole }));
                        // The answer is about to be shown.
                        commit.strength = Strength::Full;
                    }
                    if let Some(given) = &assignment {
                        extra.sends.push(self.result_letter(given, over, at_ms));
                        extra.others.extend(self.keeping(given, over, at_ms)?);
                        answered = given.cache.as_ref().map(|asked| asked.call);
                    }
                }
                Event::LlmIntent(_) => commit.blobs.extend(self.frame.unstored(&self.floor.shared)),
                // It is about to leave us, and nobody could tell afterwards whether it had.
                Event::ToolIntent(intent) if matches!(intent.class, Class::Keyed | Class::Opaque) => {
                    commit.strength = Strength::Full;
                }
                _ => {}
            }
        }
        for reply in &replies {
            commit.projections.extend(rows::project(&self.session_stream, at_ms, reply));
            commit.appends.push(append(&self.session_stream, reply, &actor)?);
        }
        commit.expect.extend(extra.expect.into_iter().map(|(stream, head)| (stream, Expect::At(head))));
        commit.acks = extra.acks;
        commit.sends = extra.sends;
        for (stream, event) in &extra.others {
            commit.projections.extend(rows::project(stream, at_ms, event));
            commit.appends.push(append(stream, event, &actor)?);
        }
        commit.projections.extend(extra.projections);
        let word = self.floor.shared.herald.word();
        self.floor.commit(commit, || ()).await?;
        answered.iter().for_each(|call| self.floor.release(call));
        self.head += events.len() as u64;
        for event in &events {
            self.turn.apply(event);
        }
        self.will_tell(word, at_ms, events.into_iter().chain(replies));
        if ended {
            self.look_back = self.lead;
            self.snapshot().await?;
        }
        Ok(())
    }

    /// Keeps folding short without ever writing more than the log itself: at most one snapshot per doubling.
    async fn snapshot(&mut self) -> Result<(), RuntimeError> {
        if self.head < SNAPSHOT_ENTRIES_MIN.max(self.snapshot_at.saturating_mul(2)) {
            return Ok(());
        }
        let Ok(state) = serde_json::to_vec(&self.turn) else { return Ok(()) };
        let mut commit = commit_at(now_ms());
        commit.fence = Some(self.floor.fence.clone());
        commit.projections.push(Projection::Snapshot {
            stream: self.stream.clone(),
            stream_seq: self.head,
            version: SNAPSHOT_VERSION,
            state,
        });
        self.snapshot_at = self.head;
        self.floor.shared.keep(commit).await
    }

    async fn land(&mut self, landed: Landed) -> Result<(), RuntimeError> {
        self.in_flight.remove(&landed.flight);
        if let Flight::Tool(key) = &landed.flight {
            self.preparing.remove(key);
        }
        match landed.input {
            Some(input) => self.step(input, Extra::default()).await,
            None => Ok(()),
        }
    }

    /// On the way out: what did finish is recorded as finished, so that it is neither paid nor done again.
    /// Everything else stays open and goes on in the next process.
    async fn park(&mut self, landed: Landed) {
        let finished = match &landed.input {
            Some(Input::ToolEnded { interrupted, .. }) => !interrupted,
            Some(Input::ModelEnded { outcome, .. }) => matches!(outcome, Outcome::Done(_)),
            _ => false,
        };
        if let Some(input) = landed.input.filter(|_| finished) {
            let mut events = self.decide(input);
            // The next call would be promised and never made: the next process decides about it.
            events.retain(|event| !matches!(event, Event::LlmIntent(_) | Event::Nudged(_)));
            // If even this cannot be written, the log still says that it was started; recovery knows what to do.
            drop(self.commit(events, Extra::default()).await);
        }
    }

    fn status(&self) -> Status {
        Status {
            ledger: self.turn.ledger().clone(),
            window_tokens: self.turn.window_tokens(),
            frame_bytes: self.frame.address().bytes,
            messages: (self.turn.history().len().saturating_sub(self.turn.window().from), self.turn.history().len()),
            settings: Settings::clone(self.frame.settings()),
            instructions: self.frame.files().to_vec(),
            busy: self.turn.is_busy(),
        }
    }

    /// The money and tokens of a turn's end, with those of whom it has called, for whoever waits for it.
    fn spent(&self, ended: &TurnEnded) -> Spent {
        let mut spent = Spent { ms: millis(self.began), ..Default::default() };
        // What cannot be read now is still in everybody's own ledger.
        let called = self.spent_by_called().unwrap_or_default();
        for charge in ended.charges.iter().chain(&called) {
            spent.nano = spent.nano.saturating_add(charge.nano);
            spent.unknown_nano = spent.unknown_nano.saturating_add(charge.unknown_nano);
            spent.usage += charge.usage;
        }
        spent
    }
}

pub(super) fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
