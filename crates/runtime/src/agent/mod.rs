//! One agent's loop: decide, commit, apply, do.
//!
//! The loop owns its [`Turn`] and is the only writer of the agent's stream. It starts what is pending (`flight`),
//! acts on the team where a call asks for it (`acts`, `calls`), waits for something to land, for mail (`mail`) or for an
//! order, and turns each into one decision, with what of it is over at once (`brief`), and one commit. A commit that
//! fails drops the loop: the log is the truth and the next process folds it again. A turn that waits for a person holds
//! nothing but rows.

mod acts;
mod background;
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
mod log;
mod mail;
mod mates;
mod members;
mod memory;
mod mentions;
mod money;
mod newcomer;
mod notes;
mod parting;
mod plans;
mod protocol;
mod recruit;
mod report;
mod review;
mod skills;
mod steer;
mod tasks;
mod tool_search;

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use max_team_core::chat::{Streamed, Usage};
use max_team_core::event::{Ending, Event, Outcome, Stopper};
use max_team_core::id::{AgentId, EnvelopeId};
use max_team_core::ledger::Left;
use max_team_core::limits::{MATES_SEATED_MAX, SHUTDOWN_RESUMED_MS};
use max_team_core::message::{Address, Assignment, Envelope};
use max_team_core::policy::{By, Deed};
use max_team_core::rewind::FilesChanged;
use max_team_core::team::{Definition, Model, Settings};
use max_team_core::turn::{Effect, Input, Now, Turn};
use max_team_tools::shell::Background;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::error::RuntimeError;
use crate::floor::{Activity, Floor};
use crate::handle::{Notice, Origin, Status};
use crate::herald::Word;
use crate::purse::Purse;
use crate::shared::{new_id, now_ms};
use crate::{session, worktree};

pub(crate) use acts::shown;
pub(crate) use calls::EXPERT;
pub use calls::TIME_OVER;
use commit::Extra;
pub(crate) use flight::look_at_words;
use flight::{Flight, Landed};
pub(crate) use frame::{Frame, UNATTENDED};
pub(crate) use hold::{Halt, since_of};
pub(crate) use images::runs_on;
pub(crate) use mail::{answering, derived, result_id, text_at};
pub(crate) use mates::asked_of;
pub(crate) use mentions::{is_path, paths};
use money::Others;
pub(crate) use newcomer::Newcomer;
pub(crate) use notes::beginning;
pub(crate) use parting::to_people;
pub(crate) use protocol::sharing_letter;
pub(crate) use recruit::wanted;
pub(crate) use report::CORRECTS;
pub(crate) use review::decided;
use steer::Steering;
pub(crate) use steer::waits;

/// How long parking waits for what is under way.
const PARK_WAIT: Duration = Duration::from_secs(2);
/// The version of the snapshots that this code reads and writes.
pub(crate) const SNAPSHOT_VERSION: u32 = 5;

/// What the house tells a running loop.
#[derive(Debug)]
pub(crate) enum Control {
    Interrupt {
        by: Stopper,
        /// Whether what the user has said waits, too.
        all: bool,
    },
    /// Somebody has begun with a task.
    Begun {
        task: String,
        attempt: u32,
    },
    /// Ask nobody about what was done so far: there is more to do.
    GoOn,
    Configure {
        settings: Box<Settings>,
        /// Who wants that.
        by: By,
    },
    /// Be somebody else from the next turn on.
    Redefine(Box<Redefined>),
    /// Sum up what was said so far; whether there is anything to sum up.
    Compact {
        keep: String,
        reply: oneshot::Sender<bool>,
    },
    /// Take the last compaction back; whether there was one.
    Uncompact(oneshot::Sender<bool>),
    /// Give a message back that nobody has read; whether nobody had.
    Withdraw {
        letter: EnvelopeId,
        reply: oneshot::Sender<bool>,
    },
    Status(oneshot::Sender<Status>),
    /// Park: drop what is in flight and go.
    Stop,
}

/// Somebody else that a lead is to be.
#[derive(Debug)]
pub(crate) struct Redefined {
    pub definition: Arc<Definition>,
    pub frame: Frame,
    /// The model that answers, if it is another one.
    pub model: Option<Model>,
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
    cx: Option<Box<cx::Known>>,
    cancel: CancellationToken,
    bell: Arc<Notify>,
    /// Its commands that run on by themselves; they end with this loop.
    background: Arc<Background>,
    /// What the call in flight has set aside in the purse: nano-dollars and tokens.
    held: (u64, u64),
    /// What was left when it last decided something.
    left: Left,
    /// The same once nobody makes a call any more.
    later: Left,
    /// How much had been settled by then.
    settled: u64,
    /// When the turn that runs began, as far as this process knows.
    began: Instant,
    /// Calls for which somebody else is at work.
    delegated: HashMap<String, CancellationToken>,
    /// Fires when the next of them is over.
    freed: CancellationToken,
    /// Calls for whom a copy is being made to work in, or is being left by whoever asked about it.
    preparing: HashSet<String>,
    /// Answers whose tasks are being checked again, by the calls that wait for them.
    rechecked: HashMap<String, EnvelopeId>,
    /// Those whose copies are made for a user's letter.
    copying: recruit::Copying,
    /// What has happened and was not told yet, and when.
    untold: Vec<(Word, Vec<Notice>)>,
    /// The task that was begun and whose plan does not know.
    begun: Option<Assignment>,
    /// The skills that its conversation has brought in, and how many of its messages were looked at for that.
    skills: (usize, Vec<String>),
    /// Letters wait in the mailbox that came at a moment they did not fit.
    left_over: bool,
    /// Letters wait in the mailbox that are only told with others.
    noted: bool,
    /// What the user has said since the turn began.
    steering: Steering,
    /// Answers wait in the mailbox about whose changes a person is to be asked, and another question is open.
    put_off: bool,
    /// What was said may be worth remembering: a lead's turn is over, or it has just sat down.
    look_back: bool,
    /// A lead's turn has ended in this process: where the conversation stands is to be noted.
    answered: bool,
    /// What it is from the next turn on.
    redefined: Option<Box<Redefined>>,
    /// Nobody is ended for not having answered before: who was stopped with the program has had no time.
    patient_ms: i64,
    /// Set until this process has run something itself: what is pending then was left open by another one.
    resumed: bool,
    /// Whether a call that was parked is being made for the first time by this process.
    tries_first: bool,
    /// The floor's rules that its settings are known to keep to.
    followed: Option<u64>,
    /// What its commands were seen to do to files, and is not in the journal yet.
    seen: Arc<Mutex<Vec<FilesChanged>>>,
    /// The time that the turn which runs may take, and whether it is still running.
    deadline: deadline::Deadline,
    /// It has been decided what becomes of what it did, and where it worked may be gone: what comes next is for one who sits
    /// down anew.
    reviewed: bool,
}

impl Agent {
    pub(crate) fn new(floor: Arc<Floor>, seat: Seat, bell: &Arc<Notify>) -> Self {
        let mate = seat.turn.mate().map(|mate| mate.name.clone());
        let name = mate.or_else(|| seat.turn.identity().map(|(_, _, definition)| definition.name.clone()));
        let name = name.unwrap_or_default();
        let color = seat.turn.mate().map(|mate| mate.color.as_str().into());
        let held = (seat.turn.ledger().reserved_nano, 0);
        let is_stopped = seat.turn.is_stopped();
        let mut agent = Self {
            stream: session::agent_stream(seat.agent),
            session_stream: session::stream(floor.session),
            origin: Arc::new(Origin {
                name: name.into(),
                lead: seat.lead,
                aside: seat.aside,
                color,
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
            cx: None,
            cancel: CancellationToken::new(),
            bell: Arc::clone(bell),
            background: Arc::default(),
            held,
            left: Left::default(),
            later: Left::default(),
            settled: 0,
            began: Instant::now(),
            delegated: HashMap::new(),
            freed: CancellationToken::new(),
            preparing: HashSet::new(),
            rechecked: HashMap::new(),
            copying: recruit::Copying::default(),
            untold: Vec::new(),
            begun: None,
            skills: (0, Vec::new()),
            left_over: false,
            noted: false,
            steering: Steering::default(),
            put_off: false,
            look_back: seat.lead && !is_stopped,
            answered: false,
            redefined: None,
            patient_ms: if seat.resumed { now_ms().saturating_add(SHUTDOWN_RESUMED_MS) } else { 0 },
            resumed: seat.resumed,
            tries_first: false,
            followed: None,
            seen: Arc::default(),
            deadline: deadline::Deadline::default(),
            reviewed: false,
            floor,
        };
        let bell = Arc::clone(bell);
        agent.background.listen(move || bell.notify_one());
        agent.know_task();
        agent.frame.reveal_from(agent.turn.history());
        agent.floor.know_turn(agent.turn.newest());
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

    /// Runs until it is told to stop, has nothing more to do, or the journal fails. It stays where it is: a loop that holds
    /// an agent by value has room for two of them.
    pub(crate) fn run(self: Box<Self>, controls: mpsc::Receiver<Control>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.live(controls))
    }

    async fn live(mut self: Box<Self>, mut controls: mpsc::Receiver<Control>) {
        let worked = self.work(&mut controls).await;
        self.tell().await;
        // A turn that has seen what could not be written decides nothing more.
        let is_sound = worked.is_ok();
        if let Err(error) = worked {
            self.floor.tell_stopped(&self.stream, error);
        }
        self.cancel.cancel();
        self.copying.over.cancel();
        // What stops at once is recorded; what does not stop is left to the next process, which knows what to do.
        let drain = async {
            while let Some(landed) = self.flights.next().await {
                if is_sound {
                    self.park(landed).await;
                }
            }
        };
        drop(tokio::time::timeout(PARK_WAIT, drain).await);
        if self.background.is_used() {
            let background = Arc::clone(&self.background);
            // If the runtime itself ends nobody is left to do it; then their supervisors see that we are gone.
            drop(tokio::task::spawn_blocking(move || background.close()).await);
        }
        // What we have killed was the agent's doing all the same. If it cannot be written, it counts as somebody else's.
        let seen = self.files_seen();
        drop(self.commit(seen, Extra::default()).await);
        self.tell().await;
        if let Some(agent) = self.origin.agent.filter(|_| self.reviewed) {
            drop(controls);
            self.floor.seat_anew(agent);
        }
    }

    async fn work(&mut self, controls: &mut mpsc::Receiver<Control>) -> Result<(), RuntimeError> {
        if self.resumed {
            self.stop_first().await?;
            self.step(Input::Recovered, Extra::default()).await?;
            self.tries_first = self.turn.is_parked();
            self.ask_no_more().await?;
        }
        let mut mail = true;
        // Whether letters may wait that came at a moment they did not fit.
        let mut all = false;
        let mut told = None;
        while !self.reviewed {
            if mail {
                mail = false;
                // What is seldom done is not kept room for.
                if let Some(next) = Box::pin(self.take_all_mail(std::mem::take(&mut all))).await? {
                    (mail, all) = next;
                    continue;
                }
            }
            while self.launch_and_act().await? {
                // What was done to the team is heard before what comes of it.
                self.tell().await;
            }
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
                Box::pin(self.hand_over()).await?;
            }
            if activity == Activity::Idle && (self.hear_commands().await? || self.take_up().await?) {
                // Nobody has rung for it: that it is at work is known from itself alone.
                told = Some(Activity::Busy);
                self.floor.report(&self.stream, Activity::Busy, false).await;
                continue;
            }
            if activity == Activity::Idle && self.turn.mate().is_some_and(|mate| mate.claims) {
                self.floor.rests(self.origin.agent, self.turn.held());
            }
            if told != Some(activity) {
                told = Some(activity);
                self.floor.report(&self.stream, activity, false).await;
            }
            if activity == Activity::Idle && self.can_leave() && self.floor.leave(&self.stream, controls).await {
                return Ok(());
            }
            let was_busy = self.turn.is_busy();
            self.keep_time();
            let due = due(self.turn.requests().next_ms().map(|until_ms| until_ms.max(self.patient_ms)));
            tokio::select! {
                biased;
                control = controls.recv() => if !self.heed(control).await? {
                    return Ok(());
                },
                () = self.bell.notified() => (mail, told) = (true, None),
                () = due => self.overdue().await?,
                () = self.deadline.over() => self.stop_here(calls::time_over(), false).await?,
                Some(landed) = self.flights.next(), if !self.flights.is_empty() => self.land(landed).await?,
            }
            (mail, all) = self.after(was_busy).unwrap_or((mail, all));
        }
        Ok(())
    }

    /// Does what the house tells; whether to go on.
    async fn heed(&mut self, control: Option<Control>) -> Result<bool, RuntimeError> {
        match control {
            None | Some(Control::Stop) => return Ok(false),
            Some(Control::Interrupt { by, all }) => self.stop_here(by, all).await?,
            Some(Control::Configure { settings, by }) => self.reconfigure(*settings, by).await?,
            Some(Control::GoOn) => self.ask_later().await?,
            Some(Control::Redefine(next)) => self.redefined = Some(next),
            Some(Control::Compact { keep, reply }) => drop(reply.send(self.compact(keep).await?)),
            Some(Control::Uncompact(reply)) => drop(reply.send(self.uncompact().await?)),
            Some(Control::Withdraw { letter, reply }) => drop(reply.send(self.withdraw(letter).await?)),
            Some(Control::Begun { .. }) => {}
            // A face that no longer waits for the answer is no reason to stop.
            Some(Control::Status(reply)) => drop(reply.send(self.status())),
        }
        Ok(true)
    }

    /// Takes what is in the mailbox; whether to look again, and how.
    async fn take_all_mail(&mut self, all: bool) -> Result<Option<(bool, bool)>, RuntimeError> {
        let was_busy = self.turn.is_busy();
        self.take_mail(all).await?;
        while self.put_off && !self.turn.is_asking() {
            self.take_mail(true).await?;
        }
        // A turn may be over in the decision that begins it: what it left is then next.
        while self.left_over && !self.turn.is_busy() {
            let head = self.head;
            self.left_over = false;
            self.take_mail(true).await?;
            if self.head == head {
                break;
            }
        }
        // A letter may have ended the turn: what was put by is then next.
        Ok(self.after(was_busy))
    }

    /// Once a turn is over: whatever of it is still under way is over too, and what was said meanwhile is next.
    fn after(&mut self, was_busy: bool) -> Option<(bool, bool)> {
        if !was_busy || self.turn.is_busy() {
            return None;
        }
        self.cancel.cancel();
        self.delegated.clear();
        self.steer_no_more();
        Some((true, std::mem::take(&mut self.left_over)))
    }

    /// Ends a turn that was stopped before this process had begun anything of it: nothing will land that would.
    async fn end_stopped(&mut self) -> Result<bool, RuntimeError> {
        if !self.flights.is_empty() || !matches!(self.turn.pending().as_slice(), [Effect::CancelAll]) {
            return Ok(false);
        }
        let unmade = self.turn.calling().map(|intent| {
            let outcome = Outcome::Cancelled { partial: String::new(), usage: Usage::default() };
            let (call, streamed) = ((intent.call, intent.attempt), Streamed::default());
            Input::ModelEnded { call, outcome, ms: 0, streamed, prepared: Vec::new() }
        });
        self.step(unmade.unwrap_or(Input::Recovered), Extra::default()).await?;
        Ok(!self.turn.is_busy())
    }

    /// Whether it may go home once it has nothing to do. A lead stays; commands in the background end with their agent; and a
    /// teammate that is likely to be written to again keeps what it knows at hand, as long as there are not too many.
    fn can_leave(&self) -> bool {
        let is_warm = self.turn.mate().is_some()
            && self.turn.gone().is_none()
            && self.frame.settings().permissions.copy.is_empty()
            && self.floor.seated() <= MATES_SEATED_MAX;
        let has_commands = self.stays() && self.turn.gone().is_none() && !self.turn.commands().is_empty();
        !(self.lead || is_warm || has_commands)
    }

    fn activity(&self) -> Activity {
        if !self.turn.is_busy() {
            return if self.preparing.is_empty() { Activity::Idle } else { Activity::Busy };
        }
        if self.turn.calling().is_some() {
            // An agent that waits for an unreachable model server counts as idle, also during retries, except for the
            // first attempt after the program's start.
            return if self.turn.is_parked() && !self.tries_first { Activity::Waiting } else { Activity::Busy };
        }
        let waits = |effect: &Effect| match effect {
            Effect::Ask { .. } => true,
            Effect::RunTool { action, .. } if action.deed == Deed::Merge => false,
            // Somebody else is at work on it, and says so themselves.
            Effect::RunTool { key, action, .. } => self.waits_for_mail(key, action) && !self.preparing.contains(key),
            _ => false,
        };
        let pending = self.turn.pending();
        if !pending.is_empty() && pending.iter().all(waits) { Activity::Waiting } else { Activity::Busy }
    }

    fn now(&self) -> Now {
        let fresh = new_id();
        let [.., a, b, c, d] = *fresh.as_bytes();
        let summary = self.turn.calling().and_then(|intent| intent.summary.as_ref());
        Now {
            at_ms: now_ms(),
            jitter: u32::from_le_bytes([a, b, c, d]),
            fresh,
            frame: self.frame.address(),
            compact: self.frame.compact_address(),
            facts: summary.map(|about| self.facts(about)).unwrap_or_default(),
            steer: self.steering.told(),
            left: self.left,
            later: self.later,
        }
    }

    /// Works under other settings from now on, where it works already.
    async fn reconfigure(&mut self, settings: Settings, by: By) -> Result<(), RuntimeError> {
        let known = &self.frame.settings().permissions;
        let permissions = worktree::still(known, &settings.permissions);
        self.configure(Settings { permissions, ..settings }, Some(by)).await
    }

    /// Works under other settings from now on, because somebody wants that, or because its session does.
    async fn configure(&mut self, settings: Settings, by: Option<By>) -> Result<(), RuntimeError> {
        self.followed = None;
        let settings = Arc::new(settings);
        self.frame.configure(&settings);
        self.floor.rebind(&self.stream, &settings);
        let events = wanted_by(self.decide(Input::Configure(settings)), by);
        self.commit(events, Extra::default()).await
    }

    /// Is what it is written to be now. What else it works under is the session's, which may have changed meanwhile.
    pub(super) async fn redefine(&mut self) -> Result<(), RuntimeError> {
        let Some(Redefined { definition, frame, model }) = self.redefined.take().map(|next| *next) else {
            return Ok(());
        };
        let now = Settings::clone(self.frame.settings());
        let turn_ms = frame.settings().turn_ms;
        let settings =
            Settings { model: model.unwrap_or(now.model), turn_ms, ..now }.under(&frame.settings().constraints);
        let settings = Arc::new(settings);
        self.frame = frame.under(&settings);
        self.frame.reveal_from(self.turn.history());
        self.floor.rebind(&self.stream, &settings);
        self.origin = Arc::new(Origin { name: definition.name.as_str().into(), ..(*self.origin).clone() });
        let events = self.decide(Input::Redefine(definition, settings));
        self.commit(events, Extra::default()).await
    }

    /// A member is as free as its session, its definition and its caller are now, not as they were when the task began:
    /// what has become stricter holds from the next judgement on.
    async fn follow(&mut self) -> Result<(), RuntimeError> {
        let rules = self.floor.rules();
        if self.followed == Some(rules) {
            return Ok(());
        }
        let Some(settings) = self.turn.settings().filter(|_| !self.lead) else { return Ok(()) };
        let lost = self.floor.lost(self.frame.definition(), self.caller.as_deref());
        self.frame.lose(&lost);
        match self.floor.settings_now(self.frame.definition(), settings, self.caller.as_deref())? {
            Some(settings) => self.configure(settings, None).await,
            None => {
                self.followed = Some(rules);
                Ok(())
            }
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

    async fn land(&mut self, landed: Landed) -> Result<(), RuntimeError> {
        // The answer has come, and the call ends with the check that follows it.
        let is_checked = |flight: &Flight| matches!(flight, Flight::Tool(key) if self.rechecked.contains_key(key));
        if landed.input.is_none() && is_checked(&landed.flight) {
            return Ok(());
        }
        self.in_flight.remove(&landed.flight);
        let mut acks = Vec::new();
        if let Flight::Tool(key) = &landed.flight {
            acks.extend(self.rechecked.remove(key));
            if self.preparing.remove(key) && !self.turn.is_busy() {
                // Whoever waits for the copy is looked at again, also if its letter was read a moment too early.
                self.floor.ring(&self.stream);
            }
            if landed.input.is_some() {
                self.is_over(key);
            }
        }
        match landed.input {
            Some(input) => {
                self.follow().await?;
                let mut events = self.commands_begun();
                events.extend(self.files_seen());
                events.extend(self.decide(input));
                let seen = self.do_briefly(&mut events);
                self.commit(events, Extra { seen, acks, ..Extra::default() }).await
            }
            None => Ok(()),
        }
    }

    /// On the way out: what did finish is recorded as finished, so that it is neither paid nor done again.
    /// Everything else stays open and goes on in the next process.
    async fn park(&mut self, landed: Landed) {
        let finished = match &landed.input {
            Some(Input::ToolEnded { ending, .. }) => *ending != Ending::Interrupted,
            Some(Input::ModelEnded { outcome, .. }) => matches!(outcome, Outcome::Done(_)),
            _ => false,
        };
        if let Some(input) = landed.input.filter(|_| finished) {
            let mut events = self.files_seen();
            events.extend(self.decide(input));
            // The next call would be promised and never made: the next process decides about it.
            events.retain(|event| !matches!(event, Event::LlmIntent(_) | Event::Nudged(_)));
            // If even this cannot be written, the log still says that it was started; recovery knows what to do.
            drop(self.commit(events, Extra::default()).await);
        }
    }

    fn status(&self) -> Status {
        let Others { nano: others_nano, unknown_nano: others_unknown_nano, usage: others_usage } =
            self.spent_by_others();
        Status {
            ledger: self.turn.ledger().clone(),
            others_nano,
            others_unknown_nano,
            others_usage,
            window_tokens: self.turn.window_tokens(),
            frame_bytes: self.frame.address().bytes,
            messages: (self.turn.history().len().saturating_sub(self.turn.window().from), self.turn.history().len()),
            settings: Settings::clone(self.frame.settings()),
            instructions: self.frame.files().to_vec(),
            busy: self.turn.is_busy(),
        }
    }
}

/// What was decided, with who wanted it.
fn wanted_by(mut events: Vec<Event>, by: Option<By>) -> Vec<Event> {
    for event in &mut events {
        if let Event::Configured(configured) = event {
            configured.by.clone_from(&by);
        }
    }
    events
}

/// Comes when something that was asked is not waited for any more.
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
