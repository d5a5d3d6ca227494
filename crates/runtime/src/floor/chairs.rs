//! Who sits where, and who is at work.
//!
//! Every loop of a session (the lead, members at their tasks, plans) sits at an address. A letter is on its way
//! into the journal before it is handed over; ringing an address only says "look into your mailbox", and seats whoever
//! is to read it if nobody does.
//! Once nobody is busy, the faces are told.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use max_team_core::event::{Event, Stopper};
use max_team_core::id::{AgentId, EnvelopeId};
use max_team_core::limits::{CONTROLS_MAX, MAIL_WAITING_MAX};
use max_team_core::message::{Assignment, Envelope, Kind};
use max_team_journal::{Commit, Expect, Submitted};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::Floor;
use crate::agent::Control;
use crate::error::RuntimeError;
use crate::handle::{Notice, Origin};
use crate::shared::lock;
use crate::{post, rows, session, worktree};

/// How long whoever has answered may take to leave its copy.
const LEAVE_WAIT: Duration = Duration::from_secs(2);

/// Calls under way from which on commits are worth being gathered: a few would only wait for each other.
const CROWD_MIN: usize = 16;

/// What a loop is doing, as far as others care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    /// Something will happen by itself.
    Busy,
    /// Nothing will happen before a person says something.
    Waiting,
    /// Nothing is to be done.
    Idle,
}

#[derive(Debug)]
pub(super) struct Chair {
    bell: Arc<Notify>,
    controls: mpsc::Sender<Control>,
    activity: Activity,
    /// A plan that waits for the lead's word.
    awaits_lead: bool,
    /// The lead, with reports to read once no teammate works.
    awaits_team: bool,
    /// A teammate, or an agent that one has called.
    pub(super) of_team: bool,
    /// It works beside the session, which is at rest without it.
    pub(super) aside: bool,
    /// Letters that were handed over; the mailbox need not be read for them.
    letters: Vec<Envelope>,
    /// There may be more in the mailbox than was handed over.
    pub(super) look: bool,
    /// Letters that it was given, of which some may still lie in the mailbox until there is time for them.
    given: HashSet<EnvelopeId>,
    /// Cancels the read of mentioned files during which the loop hears no control.
    reading: CancellationToken,
}

impl Chair {
    /// Ends what keeps the loop from hearing a stop.
    fn hurry(&self) -> mpsc::Sender<Control> {
        self.reading.cancel();
        self.controls.clone()
    }

    /// Whoever sits there has these letters in hand. Those that are forgotten are only looked at once more.
    fn give(&mut self, letters: &[Envelope]) {
        if self.given.len() > MAIL_WAITING_MAX {
            self.given.clear();
        }
        self.given.extend(letters.iter().map(|letter| letter.id));
    }
}

/// What a loop is given when it sits down.
pub(crate) struct Place {
    pub bell: Arc<Notify>,
    pub controls: mpsc::Receiver<Control>,
}

/// A commit on its way into the journal.
pub(crate) struct HandedIn {
    submitted: Submitted,
    /// Addresses where nobody sat.
    later: Vec<String>,
}

impl Floor {
    /// Whether somebody who sits there waits for a person.
    pub(crate) fn is_waiting(&self, address: &str) -> bool {
        lock(&self.chairs).get(address).is_some_and(|chair| chair.activity == Activity::Waiting)
    }

    /// How many sit here.
    pub(crate) fn seated(&self) -> usize {
        lock(&self.chairs).len()
    }

    /// Whether so many wait for their models that nobody notices a moment more, while each transaction less spares them work.
    pub(crate) fn is_crowded(&self) -> bool {
        Arc::strong_count(&self.calling) > CROWD_MIN
    }

    /// Whether somebody who sits there is at work.
    pub(crate) fn is_working(&self, address: &str) -> bool {
        lock(&self.chairs).get(address).is_some_and(|chair| chair.activity == Activity::Busy)
    }

    /// Whether somebody sits there.
    pub(crate) fn is_taken(&self, address: &str) -> bool {
        lock(&self.chairs).contains_key(address)
    }

    /// Lets somebody sit down at an address. `None`: somebody sits there.
    pub(crate) fn sit(&self, address: &str) -> Option<Place> {
        let mut chairs = lock(&self.chairs);
        if chairs.contains_key(address) {
            return None;
        }
        let (controls, receiver) = mpsc::channel(CONTROLS_MAX);
        let bell = Arc::new(Notify::new());
        let chair = Chair {
            bell: Arc::clone(&bell),
            controls,
            activity: Activity::Busy,
            awaits_lead: false,
            awaits_team: false,
            of_team: false,
            aside: false,
            letters: Vec::new(),
            look: true,
            given: HashSet::new(),
            reading: CancellationToken::new(),
        };
        chairs.insert(address.to_owned(), chair);
        *lock(&self.quiet) = false;
        Some(Place { bell, controls: receiver })
    }

    /// Lets whoever has just stood up sit down anew, with the letters that it was handed. `None`: it has none, and its chair is
    /// free.
    pub(super) fn sit_anew(&self, address: &str) -> Option<Place> {
        // If it cannot be read, whoever sits down finds out.
        let waits = self.shared.journal.pending_mail(address).map_or(true, |mail| !mail.is_empty());
        let mut chairs = lock(&self.chairs);
        let chair = chairs.get_mut(address).filter(|chair| chair.controls.is_closed())?;
        if !waits && !chair.look && chair.letters.is_empty() {
            chairs.remove(address);
            return None;
        }
        let (controls, receiver) = mpsc::channel(CONTROLS_MAX);
        (chair.controls, chair.activity, chair.look) = (controls, Activity::Busy, true);
        Some(Place { bell: Arc::clone(&chair.bell), controls: receiver })
    }

    /// Nobody sits there after all.
    pub(crate) fn vacate(&self, address: &str) {
        lock(&self.chairs).remove(address);
    }

    /// Runs a loop until it ends; its crash is told, not swallowed. However it ends, its chair is free afterwards. Where
    /// somebody breaks who works for others, what it was at has failed, and the others go on.
    pub(crate) fn spawn(self: &Arc<Self>, address: String, work: impl Future<Output = ()> + Send + 'static) {
        let floor = Arc::clone(self);
        let mut loops = lock(&self.loops);
        while loops.try_join_next().is_some() {}
        loops.spawn(async move {
            let ended = tokio::spawn(work).await;
            if let Err(crash) = &ended
                && let Some((agent, controls)) = floor.reseat(&address)
            {
                return floor.excuse(agent, &format!("a fault in this program: {crash}"), controls).await;
            }
            let quiet = {
                let mut chairs = lock(&floor.chairs);
                // One that left by itself may have been seated anew since.
                if chairs.get(&address).is_some_and(|chair| chair.controls.is_closed()) {
                    chairs.remove(&address);
                }
                floor.changed.notify_waiters();
                floor.ring_waiting_lead(&mut chairs);
                floor.becomes_quiet(&chairs)
            };
            if let Err(crash) = ended {
                let words = format!("{crash}; go on with `max-team -r {}`", floor.session);
                floor.tell_stopped(&address, RuntimeError::AgentStopped(words));
            }
            if !floor.is_closing() {
                floor.publish_quiet(quiet);
            }
        });
    }

    /// The seat of an agent whose loop has broken, with the letters that it was handed, for whoever speaks for it. `None`:
    /// it works for nobody, or everybody is leaving.
    fn reseat(&self, address: &str) -> Option<(AgentId, mpsc::Receiver<Control>)> {
        let agent = address.strip_prefix("agent/")?.parse().ok().filter(|agent| *agent != self.lead)?;
        let mut chairs = lock(&self.chairs);
        let chair = chairs.get_mut(address).filter(|chair| chair.controls.is_closed() && !self.is_closing())?;
        let (controls, receiver) = mpsc::channel(CONTROLS_MAX);
        (chair.controls, chair.activity, chair.look) = (controls, Activity::Busy, true);
        Some((agent, receiver))
    }

    /// Somebody could not be seated: whoever watches must know why nothing happens.
    pub(super) fn tell_why(&self, address: &str, seated: Result<(), RuntimeError>) {
        if let Err(error) = seated {
            self.tell_stopped(address, error);
        }
    }

    /// Whoever sits there cannot go on. The others do, unless it is the lead, or what stopped it stops everybody.
    pub(crate) fn tell_stopped(&self, address: &str, error: RuntimeError) {
        let whole = address == session::agent_stream(self.lead) || error.is_everybodys();
        self.shared.herald.tell(Notice::Stopped { session: self.session, whole, error: Arc::new(error) });
    }

    /// Whether whoever sits there works for no turn of anybody's.
    pub(crate) fn is_aside(&self, address: &str) -> bool {
        lock(&self.chairs).get(address).is_some_and(|chair| chair.aside)
    }

    /// Stops everybody who is at work, or only the lead, who stops the others. Where the lead is no more, nobody else would.
    /// `all`: what the user has said waits, too.
    pub(crate) async fn interrupt(&self, by: &Stopper, all: bool) -> Result<(), RuntimeError> {
        let lead = session::agent_stream(self.lead);
        let told = self.tell(&lead, Control::Interrupt { by: by.clone(), all }).await;
        // Whoever works aside does so for no turn of the lead's.
        let asides: Vec<String> = {
            let chairs = lock(&self.chairs);
            chairs.iter().filter(|(_, chair)| all && chair.aside).map(|(address, _)| address.clone()).collect()
        };
        for address in asides {
            drop(self.tell(&address, Control::Interrupt { by: by.clone(), all }).await);
        }
        if !matches!(told, Err(RuntimeError::NotOpen(_) | RuntimeError::AgentStopped(_))) {
            return told;
        }
        let is_other = |address: &&String| address.starts_with("agent/") && **address != lead;
        let others: Vec<String> = lock(&self.chairs).keys().filter(is_other).cloned().collect();
        for address in others {
            // One that leaves meanwhile has stopped.
            drop(self.tell(&address, Control::Interrupt { by: by.clone(), all }).await);
        }
        Ok(())
    }

    /// There is mail at an address.
    pub(crate) fn ring(self: &Arc<Self>, address: &str) {
        if !self.rings(address, None) {
            self.seat_reader(address);
        }
    }

    /// Commits, and hands the commit's letters to whoever sits at their addresses. They take them before they are
    /// stored: what they do about one, they do after a commit of their own that acknowledges it, and the journal
    /// stores that one later or, if this one fails, not at all. `meanwhile` is done while the journal writes.
    pub(crate) async fn commit(self: &Arc<Self>, commit: Commit, meanwhile: impl FnOnce()) -> Result<(), RuntimeError> {
        let handed = self.hand_in(commit).await?;
        meanwhile();
        self.stored(handed).await
    }

    /// The first half of a commit: it waits in the journal's queue, behind all that were handed in before it.
    pub(crate) async fn hand_in(self: &Arc<Self>, mut commit: Commit) -> Result<HandedIn, RuntimeError> {
        self.shared.herald.check()?;
        rows::of_sends(&mut commit);
        let letters = commit.sends.clone();
        // One that others may refuse is not spoken of before it is stored.
        let is_sure = commit.expect.len() <= 1 || commit.expect.iter().skip(1).all(|(_, at)| *at == Expect::At(0));
        let submitted = self.shared.journal.submit(commit).await?;
        let mut later = Vec::new();
        for letter in letters {
            self.shared.herald.letter(&letter);
            let address = letter.to.clone();
            if !is_sure || !self.rings(&address, Some(letter)) {
                later.push(address);
            }
        }
        Ok(HandedIn { submitted, later })
    }

    /// The second half: it is in the journal.
    pub(crate) async fn stored(self: &Arc<Self>, handed: HandedIn) -> Result<(), RuntimeError> {
        handed.submitted.stored().await?;
        // Whoever is to read it is seated, and reads it there.
        handed.later.iter().for_each(|address| self.ring(address));
        Ok(())
    }

    /// Whether somebody sits there.
    fn rings(&self, address: &str, letter: Option<Envelope>) -> bool {
        let mut chairs = lock(&self.chairs);
        let Some(chair) = chairs.get_mut(address) else { return false };
        chair.activity = Activity::Busy;
        chair.look |= letter.is_none();
        chair.letters.extend(letter);
        *lock(&self.quiet) = false;
        chair.bell.notify_one();
        true
    }

    /// What is in the mailbox: what was handed over, and everything else if there may be more.
    pub(crate) fn mail(&self, address: &str, all: bool) -> Result<Vec<Envelope>, RuntimeError> {
        let (mut mail, look) = match lock(&self.chairs).get_mut(address) {
            Some(chair) => (std::mem::take(&mut chair.letters), std::mem::take(&mut chair.look)),
            None => (Vec::new(), true),
        };
        if look || all {
            let stored = self.shared.journal.pending_mail(address)?;
            // Some may not be stored yet.
            mail.retain(|letter| stored.iter().all(|known| known.id != letter.id));
            mail.splice(0..0, stored);
        }
        if let Some(chair) = lock(&self.chairs).get_mut(address) {
            chair.give(&mail);
        }
        Ok(mail)
    }

    /// What is in a mailbox, also what is not stored yet, left where it is.
    pub(crate) fn unread(&self, address: &str) -> Result<Vec<Envelope>, RuntimeError> {
        let handed = lock(&self.chairs).get(address).map_or_else(Vec::new, |chair| chair.letters.clone());
        let mut mail = self.shared.journal.pending_mail(address)?;
        let is_new = |letter: &Envelope| mail.iter().all(|known| known.id != letter.id);
        let handed: Vec<Envelope> = handed.into_iter().filter(is_new).collect();
        mail.extend(handed);
        Ok(mail)
    }

    /// Whether a letter lies in the mailbox of somebody who sits here that it was not given.
    fn has_news(&self, address: &str) -> bool {
        // If it cannot be read now, whoever looks finds out.
        let Ok(mail) = self.shared.journal.pending_mail(address) else { return true };
        let chairs = lock(&self.chairs);
        chairs.get(address).is_some_and(|chair| mail.iter().any(|letter| !chair.given.contains(&letter.id)))
    }

    /// Whether a letter from one of them waits for the other.
    pub(crate) fn has_written(&self, from: &str, to: &str) -> bool {
        self.shared.journal.pending_mail(to).is_ok_and(|mail| mail.iter().any(|letter| letter.from == from))
    }

    fn seat_reader(self: &Arc<Self>, address: &str) {
        // Whoever is to read it has gone home since; an address of another session is none of ours.
        if let Some(agent) = address.strip_prefix("agent/").and_then(|id| id.parse().ok())
            && post::session_at(&self.shared.journal, address) == Some(self.session)
        {
            self.tell_why(address, self.seat_agent(agent));
        }
        if let Some(plan) = address.strip_prefix("plan/").and_then(|id| id.parse().ok())
            && post::session_at(&self.shared.journal, address) == Some(self.session)
        {
            self.tell_why(address, self.seat_plan(plan));
        }
    }

    /// Somebody outside this process wrote something: whoever it may be for looks into their mailbox. Nobody is disturbed, and
    /// no rest told of anew, for letters that were left there.
    pub(crate) fn ring_all(self: &Arc<Self>) {
        // If it cannot be read now, the next one who writes rings again.
        for address in self.shared.journal.mailboxes().unwrap_or_default() {
            let is_meant = if self.is_taken(&address) { self.has_news(&address) } else { self.is_called_for(&address) };
            if is_meant {
                self.show_written(&address);
                self.ring(&address);
            }
        }
    }

    /// Faces know of these letters: they are written here. Said before they are in the journal, where others may make us look.
    pub(crate) fn wrote(&self, letters: &[Envelope]) {
        let journal = &self.shared.journal;
        let letters_at = |address: &String| journal.pending_mail(address).unwrap_or_default();
        let waiting = || {
            let mailboxes = journal.mailboxes().unwrap_or_default();
            let others = mailboxes.iter().filter(|address| !address.starts_with("user/"));
            others.flat_map(letters_at).map(|of| of.id).collect()
        };
        lock(&self.written).note(letters, waiting);
    }

    /// What a person has written to somebody at another terminal is shown before anything comes of it. What is said to the lead
    /// stands in the conversation anyway.
    fn show_written(&self, address: &str) {
        let agent = address.strip_prefix("agent/").and_then(|id| id.parse::<AgentId>().ok());
        let Some(row) = agent.filter(|agent| *agent != self.lead).and_then(|agent| self.row_of(agent)) else { return };
        // If it cannot be read now, whoever is to read it finds out.
        let mut mail = self.shared.journal.pending_mail(address).unwrap_or_default();
        let is_news = |letter: &Envelope| letter.kind == Kind::UserInput && letter.from.starts_with("user/");
        mail.retain(|letter| is_news(letter) && !lock(&self.written).knows(letter.id));
        self.wrote(&mail);
        let from = Arc::new(Origin { name: row.name.as_str().into(), ..Origin::agent(row.agent) });
        for letter in mail {
            let (session, from, at_ms) = (self.session, Arc::clone(&from), letter.sent_at_ms);
            self.shared.herald.show(&Notice::Event { session, from, at_ms, event: Arc::new(Event::Mailed(letter)) });
        }
    }

    /// Whether a person has written to somebody of this session who has gone home.
    pub(super) fn is_called_for(&self, address: &str) -> bool {
        let journal = &self.shared.journal;
        address.starts_with("agent/")
            && post::session_at(journal, address) == Some(self.session)
            && journal
                .pending_mail(address)
                .is_ok_and(|mail| mail.iter().any(|letter| letter.from.starts_with("user/")))
    }

    /// Tells a loop something that is not mail.
    pub(crate) async fn tell(&self, address: &str, control: Control) -> Result<(), RuntimeError> {
        let controls = lock(&self.chairs).get(address).map(|chair| match control {
            Control::Interrupt { .. } => chair.hurry(),
            _ => chair.controls.clone(),
        });
        let controls = controls.ok_or(RuntimeError::NotOpen(self.session))?;
        let gone = |_| RuntimeError::AgentStopped("see the error above".to_owned());
        controls.send(control).await.map_err(gone)
    }

    /// The token of a read that a stop of the agent at this address cancels.
    pub(crate) fn reading(&self, address: &str) -> CancellationToken {
        let cancel = CancellationToken::new();
        if let Some(chair) = lock(&self.chairs).get_mut(address) {
            chair.reading = cancel.clone();
        }
        cancel
    }

    /// Somebody has begun with a task: its plan is told, if it listens.
    pub(crate) fn begun(&self, assignment: &Assignment) {
        if let Some(chair) = lock(&self.chairs).get(&assignment.reply_to) {
            let (task, attempt) = (assignment.task.clone(), assignment.attempt);
            // Only for show: a plan that is too busy to hear it hears of the result.
            drop(chair.controls.try_send(Control::Begun { task, attempt }));
        }
    }

    /// A loop says what it is doing. Once nobody does anything, the faces are told.
    pub(crate) async fn report(&self, address: &str, activity: Activity, awaits_lead: bool) {
        let quiet = {
            let mut chairs = lock(&self.chairs);
            if let Some(chair) = chairs.get_mut(address) {
                // A letter that came while it was making up its mind is still to be read.
                let unread = chair.look || !chair.letters.is_empty();
                chair.activity = if unread { Activity::Busy } else { activity };
                chair.awaits_lead = awaits_lead;
            }
            self.changed.notify_waiters();
            if address == session::agent_stream(self.lead) && activity == Activity::Idle {
                // The lead has said what it had to say: whoever waits for its word goes on without.
                for chair in chairs.values_mut().filter(|chair| chair.awaits_lead) {
                    chair.activity = Activity::Busy;
                    chair.bell.notify_one();
                }
            }
            self.ring_waiting_lead(&mut chairs);
            self.becomes_quiet(&chairs)
        };
        self.publish_quiet(quiet);
    }

    /// Whether a teammate works, or an agent that one has called. If so, the lead is rung once none does.
    pub(crate) fn awaits_team(&self) -> bool {
        let mut chairs = lock(&self.chairs);
        let is_working = chairs.values().any(is_team_at_work);
        if let Some(lead) = chairs.get_mut(&session::agent_stream(self.lead)) {
            lead.awaits_team = is_working;
        }
        is_working
    }

    /// Rings the lead if it waits for the team and the team rests.
    fn ring_waiting_lead(&self, chairs: &mut HashMap<String, Chair>) {
        let is_working = chairs.values().any(is_team_at_work);
        let lead = chairs.get_mut(&session::agent_stream(self.lead));
        if let Some(lead) = lead.filter(|lead| lead.awaits_team && !is_working) {
            // It may be about to say that it is idle: what came for it is unread until it looks.
            (lead.awaits_team, lead.activity, lead.look) = (false, Activity::Busy, true);
            lead.bell.notify_one();
        }
    }

    fn becomes_quiet(&self, chairs: &HashMap<String, Chair>) -> Option<bool> {
        let busy = chairs.values().any(|chair| chair.activity == Activity::Busy && !chair.aside);
        let mut told = lock(&self.quiet);
        if busy || *told {
            // Somebody has begun without having been rung: that it is quiet again is worth telling.
            *told &= !busy;
            return None;
        }
        *told = true;
        Some(chairs.values().any(|chair| chair.activity == Activity::Waiting))
    }

    fn publish_quiet(&self, quiet: Option<bool>) {
        if let Some(waiting) = quiet {
            self.shared.herald.tell(Notice::Idle { session: self.session, waiting });
        }
    }

    /// A loop that has said it is idle leaves, unless somebody has rung since.
    pub(crate) async fn leave(&self, address: &str, controls: &mpsc::Receiver<Control>) -> bool {
        let quiet = {
            let mut chairs = lock(&self.chairs);
            let rung = chairs.get(address).is_some_and(|chair| chair.activity == Activity::Busy);
            if rung || !controls.is_empty() {
                return false;
            }
            chairs.remove(address);
            self.changed.notify_waiters();
            self.ring_waiting_lead(&mut chairs);
            self.becomes_quiet(&chairs)
        };
        self.publish_quiet(quiet);
        true
    }

    /// Waits until nobody is at work in a copy: whoever has just answered is on the way out. One that goes on with
    /// something else stays, and is not waited for.
    pub(crate) async fn vacated(&self, copy: &str) {
        let Ok(copy) = worktree::copies(&self.shared).find(copy) else { return };
        let left = async {
            loop {
                let mut changed = std::pin::pin!(self.changed.notified());
                // What changes from here on is heard.
                changed.as_mut().enable();
                if !copy.is_occupied() {
                    return;
                }
                changed.await;
            }
        };
        drop(tokio::time::timeout(LEAVE_WAIT, left).await);
    }

    /// Waits until nobody sits at an address.
    pub(crate) async fn left(&self, address: &str) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // What changes from here on is heard.
            changed.as_mut().enable();
            if !self.is_taken(address) {
                return;
            }
            changed.await;
        }
    }

    /// Waits until nobody is busy, those beside the session included.
    pub(crate) async fn settle(&self) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // What changes from here on is heard.
            changed.as_mut().enable();
            if lock(&self.chairs).values().all(|chair| chair.activity != Activity::Busy) {
                return;
            }
            changed.await;
        }
    }

    /// Whether nobody works, and nobody waits for a person in the middle of a turn. Those beside the session touch no files.
    pub(crate) fn is_at_rest(&self) -> bool {
        lock(&self.chairs).values().all(|chair| chair.aside || chair.activity == Activity::Idle)
    }

    /// Whether the lead has nothing to do and nothing to begin with: what a stop has left waiting, it does not read.
    pub(crate) fn is_lead_idle(&self) -> bool {
        let address = session::agent_stream(self.lead);
        let idle = lock(&self.chairs).get(&address).is_none_or(|chair| chair.activity == Activity::Idle);
        let begins_nothing = |mail: Vec<Envelope>| {
            mail.is_empty() || self.shared.fold_agent(self.lead).is_ok_and(|(turn, _)| !turn.would_begin(&mail, true))
        };
        idle && self.shared.journal.pending_mail(&address).is_ok_and(begins_nothing)
    }

    /// Lets everybody park what they do.
    pub(crate) async fn close(&self) {
        self.closing.store(true, Ordering::Release);
        let stops: Vec<mpsc::Sender<Control>> = lock(&self.chairs).values().map(Chair::hurry).collect();
        for controls in stops {
            // A loop that has already gone needs no telling.
            drop(controls.send(Control::Stop).await);
        }
        loop {
            let mut loops = std::mem::take(&mut *lock(&self.loops));
            if loops.is_empty() {
                return;
            }
            // Somebody may have sat down while we asked.
            let late: Vec<mpsc::Sender<Control>> =
                lock(&self.chairs).values().map(|chair| chair.controls.clone()).collect();
            for controls in late {
                drop(controls.try_send(Control::Stop));
            }
            while loops.join_next().await.is_some() {}
        }
    }

    /// Whether everybody is being parked.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }
}

/// Whether a teammate, or an agent that one has called, works at this seat.
fn is_team_at_work(chair: &Chair) -> bool {
    chair.of_team && chair.activity == Activity::Busy
}
