//! The running loops of a session by address, and what each is doing.
//!
//! Every loop of a session (the lead, members at their tasks, plans) has an address. A message is in the journal's
//! queue before it is handed over; ringing an address only says that its mailbox has news, and loads the loop that
//! reads it if it is not running. When no loop is busy, frontends are told.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use max_team_core::event::Event;
use max_team_core::id::{AgentId, EnvelopeId};
use max_team_core::limits::{CONTROLS_MAX, MAIL_WAITING_MAX};
use max_team_core::message::{Assignment, Envelope, MessageKind};
use max_team_core::turn::is_stop;
use max_team_journal::{Commit, Expect, PendingCommit};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::{ActiveSession, Seats};
use crate::agent::Control;
use crate::error::RuntimeError;
use crate::handle::{Notice, Origin};
use crate::plan::{PlanControl, plan_stream};
use crate::shared::lock;
use crate::{rows, session, user_mail, worktree};

/// How long an agent that has answered may take to leave its worktree.
const LEAVE_WAIT: Duration = Duration::from_secs(2);

/// Running model calls from which on commits are batched: with fewer, batching would only delay them.
const CROWD_MIN: usize = 16;

/// The activity of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    /// It works, or will without a person.
    Busy,
    /// It waits for a person.
    Waiting,
    /// It has nothing to do.
    Idle,
}

/// The way to send commands to a loop: agents and plans understand different ones.
#[derive(Debug, Clone)]
enum LoopControls {
    Agent(mpsc::Sender<Control>),
    Plan(mpsc::Sender<PlanControl>),
}

impl LoopControls {
    fn is_closed(&self) -> bool {
        match self {
            Self::Agent(controls) => controls.is_closed(),
            Self::Plan(controls) => controls.is_closed(),
        }
    }

    /// Tells the loop to end. A loop that has ended needs no command.
    async fn stop(&self) {
        match self {
            Self::Agent(controls) => drop(controls.send(Control::Stop).await),
            Self::Plan(controls) => drop(controls.send(PlanControl::Stop).await),
        }
    }

    /// Like `stop`, unless too many commands wait.
    fn try_stop(&self) {
        match self {
            Self::Agent(controls) => drop(controls.try_send(Control::Stop)),
            Self::Plan(controls) => drop(controls.try_send(PlanControl::Stop)),
        }
    }
}

#[derive(Debug)]
pub(super) struct LoopSlot {
    bell: Arc<Notify>,
    controls: LoopControls,
    activity: Activity,
    /// A plan that waits for a decision of the lead.
    awaits_lead: bool,
    /// The lead, with reports to read once no teammate works.
    awaits_team: bool,
    /// A teammate, or an agent that one has called.
    pub(super) of_team: bool,
    /// It works in the background of the session, which counts as idle meanwhile.
    pub(super) aside: bool,
    /// Messages that were handed over; the mailbox need not be read for them.
    envelopes: Vec<Envelope>,
    /// There may be more in the mailbox than was handed over.
    pub(super) look: bool,
    /// Messages that the loop has got; some may stay in the mailbox until it acts on them.
    given: HashSet<EnvelopeId>,
    /// Cancels a wait during which the loop hears no control: the read of mentioned files, the start of MCP servers.
    reading: CancellationToken,
}

impl LoopSlot {
    /// Cancels a read that keeps the loop from receiving a stop.
    fn hurry(&self) -> LoopControls {
        self.reading.cancel();
        self.controls.clone()
    }

    /// Remembers messages that the loop has got. If the list is cleared, the only effect is that the mailbox is read
    /// once more.
    fn give(&mut self, envelopes: &[Envelope]) {
        if self.given.len() > MAIL_WAITING_MAX {
            self.given.clear();
        }
        self.given.extend(envelopes.iter().map(|envelope| envelope.id));
    }
}

impl Seats {
    /// Whether frontends are to be told now that no loop is busy; `Some(true)`: one waits for a person.
    fn become_quiet(&mut self) -> Option<bool> {
        let busy = self.slots.values().any(|slot| slot.activity == Activity::Busy && !slot.aside);
        if busy || self.quiet {
            // A loop has become busy without being rung: the next idle state must be reported again.
            self.quiet &= !busy;
            return None;
        }
        self.quiet = true;
        Some(self.slots.values().any(|slot| slot.activity == Activity::Waiting))
    }
}

/// What a loop gets when it starts.
pub(crate) struct Place<C = Control> {
    pub bell: Arc<Notify>,
    pub controls: mpsc::Receiver<C>,
}

/// A commit in the journal's queue.
pub(crate) struct HandedIn {
    submitted: PendingCommit,
    /// Addresses without a running loop.
    later: Vec<String>,
}

impl ActiveSession {
    /// Whether the loop at an address waits for a person.
    pub(crate) fn is_waiting(&self, address: &str) -> bool {
        lock(&self.seats).slots.get(address).is_some_and(|slot| slot.activity == Activity::Waiting)
    }

    /// The number of running loops.
    pub(crate) fn seated(&self) -> usize {
        lock(&self.seats).slots.len()
    }

    /// Whether so many calls wait for their models that a short delay goes unnoticed, while fewer transactions save
    /// work.
    pub(crate) fn is_crowded(&self) -> bool {
        Arc::strong_count(&self.calling) > CROWD_MIN
    }

    /// Whether the loop at an address is busy.
    pub(crate) fn is_working(&self, address: &str) -> bool {
        lock(&self.seats).slots.get(address).is_some_and(|slot| slot.activity == Activity::Busy)
    }

    /// Whether a loop runs at an address.
    pub(crate) fn is_taken(&self, address: &str) -> bool {
        lock(&self.seats).slots.contains_key(address)
    }

    /// Registers the loop of an agent at its address. `None`: one runs there.
    pub(crate) fn sit(&self, address: &str) -> Option<Place> {
        let (controls, receiver) = mpsc::channel(CONTROLS_MAX);
        let bell = self.register(address, LoopControls::Agent(controls))?;
        Some(Place { bell, controls: receiver })
    }

    /// Registers the loop of a plan at its address. `None`: one runs there.
    pub(super) fn sit_plan(&self, address: &str) -> Option<Place<PlanControl>> {
        let (controls, receiver) = mpsc::channel(CONTROLS_MAX);
        let bell = self.register(address, LoopControls::Plan(controls))?;
        Some(Place { bell, controls: receiver })
    }

    fn register(&self, address: &str, controls: LoopControls) -> Option<Arc<Notify>> {
        let mut seats = lock(&self.seats);
        if seats.slots.contains_key(address) {
            return None;
        }
        let bell = Arc::new(Notify::new());
        let slot = LoopSlot {
            bell: Arc::clone(&bell),
            controls,
            activity: Activity::Busy,
            awaits_lead: false,
            awaits_team: false,
            of_team: false,
            aside: false,
            envelopes: Vec::new(),
            look: true,
            given: HashSet::new(),
            reading: CancellationToken::new(),
        };
        seats.slots.insert(address.to_owned(), slot);
        seats.quiet = false;
        Some(bell)
    }

    /// Registers a new loop in place of one that has just ended, with the messages that the old one was handed.
    /// `None`: there are none, and the address is free.
    pub(super) fn sit_anew(&self, address: &str) -> Option<Place> {
        // If the mailbox cannot be read, the new loop will report the error.
        let waits = self.shared.journal.pending_mail(address).map_or(true, |mail| !mail.is_empty());
        let slots = &mut lock(&self.seats).slots;
        let slot = slots.get_mut(address).filter(|slot| slot.controls.is_closed())?;
        if !waits && !slot.look && slot.envelopes.is_empty() {
            slots.remove(address);
            return None;
        }
        let (controls, receiver) = mpsc::channel(CONTROLS_MAX);
        (slot.controls, slot.activity, slot.look) = (LoopControls::Agent(controls), Activity::Busy, true);
        Some(Place { bell: Arc::clone(&slot.bell), controls: receiver })
    }

    /// Frees an address whose loop could not be started.
    pub(crate) fn vacate(&self, address: &str) {
        lock(&self.seats).slots.remove(address);
    }

    /// Runs a loop until it ends; a crash is reported, not swallowed. In any case its address is free afterwards. If
    /// the loop of an agent that works for others crashes, its work has failed, and the other loops go on.
    pub(crate) fn spawn(self: &Arc<Self>, address: String, work: impl Future<Output = ()> + Send + 'static) {
        let active = Arc::clone(self);
        let loops = &mut lock(&self.seats).loops;
        while loops.try_join_next().is_some() {}
        loops.spawn(async move {
            let ended = tokio::spawn(work).await;
            if let Err(crash) = &ended
                && let Some((agent, controls)) = active.reseat(&address)
            {
                return active.fail_agent(agent, &format!("a fault in this program: {crash}"), controls).await;
            }
            let quiet = {
                let mut seats = lock(&active.seats);
                // A loop that left by itself may have been started again since.
                if seats.slots.get(&address).is_some_and(|slot| slot.controls.is_closed()) {
                    seats.slots.remove(&address);
                }
                active.changed.notify_waiters();
                active.ring_waiting_lead(&mut seats.slots);
                seats.become_quiet()
            };
            if let Err(crash) = ended {
                let words = format!("{crash}; go on with `max-team -r {}`", active.session);
                active.tell_stopped(&address, RuntimeError::AgentStopped(words));
            }
            if !active.is_closing() {
                active.publish_quiet(quiet);
            }
        });
    }

    /// The slot of an agent whose loop has crashed, with the messages that it was handed, so that `fail_agent` can answer
    /// for it. `None`: it is the lead, or the session closes.
    fn reseat(&self, address: &str) -> Option<(AgentId, mpsc::Receiver<Control>)> {
        let agent = address.strip_prefix("agent/")?.parse().ok().filter(|agent| *agent != self.lead)?;
        let slots = &mut lock(&self.seats).slots;
        let slot = slots.get_mut(address).filter(|slot| slot.controls.is_closed() && !self.is_closing())?;
        let (controls, receiver) = mpsc::channel(CONTROLS_MAX);
        (slot.controls, slot.activity, slot.look) = (LoopControls::Agent(controls), Activity::Busy, true);
        Some((agent, receiver))
    }

    /// Reports why a loop could not be started: otherwise nothing would seem to happen.
    pub(super) fn tell_why(&self, address: &str, seated: Result<(), RuntimeError>) {
        if let Err(error) = seated {
            self.tell_stopped(address, error);
        }
    }

    /// Reports that the loop at an address cannot go on. The others do, unless it is the lead's, or the error stops
    /// the whole session.
    pub(crate) fn tell_stopped(&self, address: &str, error: RuntimeError) {
        let whole = address == session::agent_stream(self.lead) || error.is_everybodys();
        self.shared.notices.tell(Notice::Stopped { session: self.session, whole, error: Arc::new(error) });
    }

    /// Wakes the loops at these addresses that run, to read a stop. A loop that is not loaded reads it when it is.
    pub(crate) fn ring_to_stop(&self, addresses: impl IntoIterator<Item = String>) {
        for address in addresses {
            lock(&self.seats).slots.get(&address).iter().for_each(|slot| slot.reading.cancel());
            self.rings(&address, None);
        }
    }

    /// Tells the loop at an address that it has mail; loads it if it does not run.
    pub(crate) fn ring(self: &Arc<Self>, address: &str) {
        if !self.rings(address, None) {
            self.seat_reader(address);
        }
    }

    /// Commits, and hands the commit's messages to the running loops at their addresses. A loop gets a message before
    /// it is stored, and acts on it only after a commit of its own that acknowledges it; the journal stores that
    /// commit later or, if this one fails, not at all. `meanwhile` runs while the journal writes.
    pub(crate) async fn commit(self: &Arc<Self>, commit: Commit, meanwhile: impl FnOnce()) -> Result<(), RuntimeError> {
        let handed = self.hand_in(commit).await?;
        meanwhile();
        self.stored(handed).await
    }

    /// The first half of a commit: it waits in the journal's queue, behind all that were handed in before it.
    pub(crate) async fn hand_in(self: &Arc<Self>, mut commit: Commit) -> Result<HandedIn, RuntimeError> {
        self.shared.notices.check()?;
        rows::of_sends(&mut commit);
        let envelopes = commit.sends.clone();
        // Messages of a commit that may fail because of other writers are handed over only after it is stored.
        let is_sure = commit.expect.len() <= 1 || commit.expect.iter().skip(1).all(|(_, at)| *at == Expect::At(0));
        let submitted = self.shared.journal.submit(commit).await?;
        let mut later = Vec::new();
        for envelope in envelopes {
            self.shared.notices.envelope(&envelope);
            let address = envelope.to.clone();
            if !is_sure || !self.rings(&address, Some(envelope)) {
                later.push(address);
            }
        }
        Ok(HandedIn { submitted, later })
    }

    /// The second half: waits until the commit is stored.
    pub(crate) async fn stored(self: &Arc<Self>, handed: HandedIn) -> Result<(), RuntimeError> {
        handed.submitted.stored().await?;
        // Loads the readers that do not run; they read the mailbox.
        handed.later.iter().for_each(|address| self.ring(address));
        Ok(())
    }

    /// Hands a message to the loop at an address, or tells it to read its mailbox; `false`: no loop runs there.
    fn rings(&self, address: &str, envelope: Option<Envelope>) -> bool {
        let mut seats = lock(&self.seats);
        let Some(slot) = seats.slots.get_mut(address) else { return false };
        slot.activity = Activity::Busy;
        slot.look |= envelope.is_none();
        slot.envelopes.extend(envelope);
        slot.bell.notify_one();
        seats.quiet = false;
        true
    }

    /// The messages for a loop: those handed over, and all others in the mailbox if there may be more.
    pub(crate) fn mail(&self, address: &str, all: bool) -> Result<Vec<Envelope>, RuntimeError> {
        let (mut mail, look) = match lock(&self.seats).slots.get_mut(address) {
            Some(slot) => (std::mem::take(&mut slot.envelopes), std::mem::take(&mut slot.look)),
            None => (Vec::new(), true),
        };
        if look || all {
            let stored = self.shared.journal.pending_mail(address)?;
            // Some may not be stored yet.
            mail.retain(|envelope| stored.iter().all(|known| known.id != envelope.id));
            mail.splice(0..0, stored);
        }
        if let Some(slot) = lock(&self.seats).slots.get_mut(address) {
            slot.give(&mail);
        }
        Ok(mail)
    }

    /// The messages in a mailbox, also those that are not stored yet, without taking them.
    pub(crate) fn unread(&self, address: &str) -> Result<Vec<Envelope>, RuntimeError> {
        let handed = lock(&self.seats).slots.get(address).map_or_else(Vec::new, |slot| slot.envelopes.clone());
        let mut mail = self.shared.journal.pending_mail(address)?;
        let is_new = |envelope: &Envelope| mail.iter().all(|known| known.id != envelope.id);
        let handed: Vec<Envelope> = handed.into_iter().filter(is_new).collect();
        mail.extend(handed);
        Ok(mail)
    }

    /// Whether the mailbox of a running loop has a message that the loop has not got.
    fn has_news(&self, address: &str) -> bool {
        // If it cannot be read now, the loop will report the error.
        let Ok(mail) = self.shared.journal.pending_mail(address) else { return true };
        let slots = &lock(&self.seats).slots;
        slots.get(address).is_some_and(|slot| mail.iter().any(|envelope| !slot.given.contains(&envelope.id)))
    }

    /// Whether an answer of an agent waits for its caller, or for the plan that records it first.
    pub(crate) fn has_answered(&self, agent: AgentId, caller: &str) -> bool {
        let plan = self.row_of(agent).and_then(|row| row.assignment?.plan).map(plan_stream);
        let from = session::agent_stream(agent);
        let waits_at = |address: String| {
            self.shared
                .journal
                .pending_mail(&address)
                .is_ok_and(|mail| mail.iter().any(|envelope| envelope.from == from))
        };
        waits_at(caller.to_owned()) || plan.is_some_and(waits_at)
    }

    fn seat_reader(self: &Arc<Self>, address: &str) {
        // The reader was unloaded since; addresses of other sessions are not ours.
        if let Some(agent) = address.strip_prefix("agent/").and_then(|id| id.parse().ok())
            && user_mail::session_at(&self.shared.journal, address) == Some(self.session)
        {
            self.tell_why(address, self.seat_agent(agent));
        }
        if let Some(plan) = address.strip_prefix("plan/").and_then(|id| id.parse().ok())
            && user_mail::session_at(&self.shared.journal, address) == Some(self.session)
        {
            self.tell_why(address, self.seat_plan(plan));
        }
    }

    /// Another process wrote something: rings every address that may have news. Messages that a loop deliberately left
    /// in its mailbox neither wake it nor cause another idle notice.
    pub(crate) fn ring_all(self: &Arc<Self>) {
        // If it cannot be read now, the next writer rings again.
        for address in self.shared.journal.mailboxes().unwrap_or_default() {
            let is_meant = if self.is_taken(&address) { self.has_news(&address) } else { self.is_called_for(&address) };
            if is_meant {
                self.show_written(&address);
                self.ring(&address);
            }
        }
    }

    /// Notes that frontends know of these messages, because they are written here. Called before the commit, because a
    /// nudge may make us read them first.
    pub(crate) fn wrote(&self, envelopes: &[Envelope]) {
        let journal = &self.shared.journal;
        let envelopes_at = |address: &String| journal.pending_mail(address).unwrap_or_default();
        let waiting = || {
            let mailboxes = journal.mailboxes().unwrap_or_default();
            let others = mailboxes.iter().filter(|address| !address.starts_with("user/"));
            others.flat_map(envelopes_at).map(|of| of.id).collect()
        };
        lock(&self.seats).written.note(envelopes, waiting);
    }

    /// Shows a message that a person has written to an agent in another process, before the agent acts on it. Messages
    /// to the lead are part of the conversation anyway.
    fn show_written(&self, address: &str) {
        let agent = address.strip_prefix("agent/").and_then(|id| id.parse::<AgentId>().ok());
        let Some(row) = agent.filter(|agent| *agent != self.lead).and_then(|agent| self.row_of(agent)) else { return };
        // If it cannot be read now, its reader will report the error.
        let mut mail = self.shared.journal.pending_mail(address).unwrap_or_default();
        let is_news =
            |envelope: &Envelope| envelope.kind == MessageKind::UserInput && envelope.from.starts_with("user/");
        mail.retain(|envelope| is_news(envelope) && !lock(&self.seats).written.knows(envelope.id));
        self.wrote(&mail);
        let from = Arc::new(Origin { name: row.name.as_str().into(), ..Origin::agent(row.agent) });
        for envelope in mail {
            let (session, from, at_ms) = (self.session, Arc::clone(&from), envelope.sent_at_ms);
            self.shared.notices.show(&Notice::Event { session, from, at_ms, event: Arc::new(Event::Mailed(envelope)) });
        }
    }

    /// Whether a person has written to an agent of this session whose loop is not loaded.
    pub(super) fn is_called_for(&self, address: &str) -> bool {
        let journal = &self.shared.journal;
        address.starts_with("agent/")
            && user_mail::session_at(journal, address) == Some(self.session)
            && journal
                .pending_mail(address)
                .is_ok_and(|mail| mail.iter().any(|envelope| envelope.from.starts_with("user/") && !is_stop(envelope)))
    }

    /// Sends the loop of an agent a command that is no message.
    pub(crate) async fn tell(&self, address: &str, control: Control) -> Result<(), RuntimeError> {
        let controls = lock(&self.seats).slots.get(address).map(|slot| match control {
            Control::Interrupt(_) => slot.hurry(),
            _ => slot.controls.clone(),
        });
        let Some(LoopControls::Agent(controls)) = controls else { return Err(RuntimeError::NotOpen(self.session)) };
        let gone = |_| RuntimeError::AgentStopped("see the error above".to_owned());
        controls.send(control).await.map_err(gone)
    }

    /// The token of a read that a stop of the agent at this address cancels.
    pub(crate) fn reading(&self, address: &str) -> CancellationToken {
        let cancel = CancellationToken::new();
        if let Some(slot) = lock(&self.seats).slots.get_mut(address) {
            slot.reading = cancel.clone();
        }
        cancel
    }

    /// Tells a plan that the owner of a task has begun with it, if the plan's loop listens.
    pub(crate) fn begun(&self, assignment: &Assignment) {
        let controls = lock(&self.seats).slots.get(&assignment.reply_to).map(|slot| slot.controls.clone());
        if let Some(LoopControls::Plan(controls)) = controls {
            let (task, attempt) = (assignment.task.clone(), assignment.attempt);
            // Only shown live: a plan that is too busy for it gets the result.
            drop(controls.try_send(PlanControl::Begun { task, attempt }));
        }
    }

    /// Records what a loop is doing. When no loop is busy, frontends are told.
    pub(crate) async fn report(&self, address: &str, activity: Activity, awaits_lead: bool) {
        let quiet = {
            let mut seats = lock(&self.seats);
            if let Some(slot) = seats.slots.get_mut(address) {
                // A message that came during the decision is still unread.
                let unread = slot.look || !slot.envelopes.is_empty();
                slot.activity = if unread { Activity::Busy } else { activity };
                slot.awaits_lead = awaits_lead;
            }
            self.changed.notify_waiters();
            if address == session::agent_stream(self.lead) && activity == Activity::Idle {
                // The lead has ended its turn without a decision: plans that wait for it go on without.
                for slot in seats.slots.values_mut().filter(|slot| slot.awaits_lead) {
                    slot.activity = Activity::Busy;
                    slot.bell.notify_one();
                }
            }
            self.ring_waiting_lead(&mut seats.slots);
            seats.become_quiet()
        };
        self.publish_quiet(quiet);
    }

    /// Whether a teammate works, or an agent that one has called. If so, the lead is rung once none does.
    pub(crate) fn awaits_team(&self) -> bool {
        let slots = &mut lock(&self.seats).slots;
        let is_working = slots.values().any(is_team_at_work);
        if let Some(lead) = slots.get_mut(&session::agent_stream(self.lead)) {
            lead.awaits_team = is_working;
        }
        is_working
    }

    /// Rings the lead if it waits for the team and the team is idle.
    fn ring_waiting_lead(&self, slots: &mut HashMap<String, LoopSlot>) {
        let is_working = slots.values().any(is_team_at_work);
        let lead = slots.get_mut(&session::agent_stream(self.lead));
        if let Some(lead) = lead.filter(|lead| lead.awaits_team && !is_working) {
            // It may be about to report idle: what came for it is unread until it reads its mailbox.
            (lead.awaits_team, lead.activity, lead.look) = (false, Activity::Busy, true);
            lead.bell.notify_one();
        }
    }

    fn publish_quiet(&self, quiet: Option<bool>) {
        if let Some(waiting) = quiet {
            self.shared.notices.tell(Notice::Idle { session: self.session, waiting });
        }
    }

    /// Unloads a loop that has reported idle, unless it was rung since.
    pub(crate) async fn leave<C>(&self, address: &str, controls: &mpsc::Receiver<C>) -> bool {
        let quiet = {
            let mut seats = lock(&self.seats);
            let rung = seats.slots.get(address).is_some_and(|slot| slot.activity == Activity::Busy);
            if rung || !controls.is_empty() {
                return false;
            }
            seats.slots.remove(address);
            self.changed.notify_waiters();
            self.ring_waiting_lead(&mut seats.slots);
            seats.become_quiet()
        };
        self.publish_quiet(quiet);
        true
    }

    /// Waits until no agent works in a worktree: one that has just answered is about to leave. One that continues with
    /// other work stays, and is not waited for.
    pub(crate) async fn vacated(&self, copy: &str) {
        let Ok(copy) = worktree::copies(&self.shared).find(copy) else { return };
        let left = async {
            loop {
                let mut changed = std::pin::pin!(self.changed.notified());
                // Later changes are noticed from here on.
                changed.as_mut().enable();
                if !copy.is_occupied() {
                    return;
                }
                changed.await;
            }
        };
        drop(tokio::time::timeout(LEAVE_WAIT, left).await);
    }

    /// Waits until no loop runs at an address.
    pub(crate) async fn left(&self, address: &str) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Later changes are noticed from here on.
            changed.as_mut().enable();
            if !self.is_taken(address) {
                return;
            }
            changed.await;
        }
    }

    /// Waits until no loop is busy, those in the background included.
    pub(crate) async fn settle(&self) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Later changes are noticed from here on.
            changed.as_mut().enable();
            if lock(&self.seats).slots.values().all(|slot| slot.activity != Activity::Busy) {
                return;
            }
            changed.await;
        }
    }

    /// Whether no agent works, and none waits for a person during a turn. Background agents do not count, because they
    /// touch no files.
    pub(crate) fn is_at_rest(&self) -> bool {
        lock(&self.seats).slots.values().all(|slot| slot.aside || slot.activity == Activity::Idle)
    }

    /// Whether the lead is idle and has nothing to begin with: messages that a stop holds back do not count.
    pub(crate) fn is_lead_idle(&self) -> bool {
        let address = session::agent_stream(self.lead);
        let idle = lock(&self.seats).slots.get(&address).is_none_or(|slot| slot.activity == Activity::Idle);
        let begins_nothing = |mail: Vec<Envelope>| {
            mail.is_empty() || self.shared.fold_agent(self.lead).is_ok_and(|(turn, _)| !turn.would_begin(&mail, true))
        };
        idle && self.shared.journal.pending_mail(&address).is_ok_and(begins_nothing)
    }

    /// Stops all loops; their work is continued when the session is opened again.
    pub(crate) async fn close(&self) {
        self.closing.store(true, Ordering::Release);
        let stops: Vec<LoopControls> = lock(&self.seats).slots.values().map(LoopSlot::hurry).collect();
        for controls in stops {
            controls.stop().await;
        }
        loop {
            let mut loops = std::mem::take(&mut lock(&self.seats).loops);
            if loops.is_empty() {
                return;
            }
            // A loop may have started meanwhile.
            lock(&self.seats).slots.values().for_each(|slot| slot.controls.try_stop());
            while loops.join_next().await.is_some() {}
        }
    }

    /// The user leaves while plans run. Leaving twice counts once.
    pub(crate) fn leave_by(&self, user: &str) {
        lock(&self.seats).left_by.get_or_insert_with(|| user.to_owned());
    }

    /// The user who leaves while plans run.
    pub(crate) fn left_by(&self) -> Option<String> {
        lock(&self.seats).left_by.clone()
    }

    /// Whether the session closes.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }
}

/// Whether a slot belongs to a working teammate, or to a working agent that one has called.
fn is_team_at_work(slot: &LoopSlot) -> bool {
    slot.of_team && slot.activity == Activity::Busy
}
