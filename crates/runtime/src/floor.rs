//! One open session's floor: who sits where, who is at work, what there is to spend.
//!
//! Every loop of a session (the lead, members at their tasks, plans) sits at an address. A letter is committed first;
//! ringing an address afterwards only says "look into your mailbox", and seats whoever is to read it if nobody does.
//! The floor also knows when the whole session has nothing more to do.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use max_team_core::id::{AgentId, PlanId, SessionId};
use max_team_core::limits::CONTROLS_MAX;
use max_team_core::message::{Assignment, Envelope};
use max_team_core::plan::{Budget, Plan};
use max_team_core::policy::Mode;
use max_team_core::team::Settings;
use max_team_core::turn::Turn;
use max_team_journal::Fence;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use crate::agent::{Agent, Control, Frame, Seat};
use crate::error::RuntimeError;
use crate::handle::{Mate, Notice, Team};
use crate::house::{Shared, lock};
use crate::plan::{PlanLoop, plan_stream};
use crate::purse::Purse;
use crate::{census, post, rows, session};

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
struct Chair {
    bell: Arc<Notify>,
    controls: mpsc::Sender<Control>,
    activity: Activity,
    /// A plan that waits for the lead's word.
    awaits_lead: bool,
    /// Letters that were committed and handed over; the mailbox need not be read for them.
    letters: Vec<Envelope>,
    /// There may be more in the mailbox than was handed over.
    look: bool,
}

/// What the loops of one session share.
#[derive(Debug)]
pub(crate) struct Floor {
    pub shared: Arc<Shared>,
    pub session: SessionId,
    pub lead: AgentId,
    pub fence: Fence,
    pub root: PathBuf,
    team: Mutex<Option<Arc<Team>>>,
    /// The mode that the session was last set to; nobody on the floor is freer.
    mode: Mutex<Option<Mode>>,
    pub purse: Arc<Purse>,
    /// Held while somebody decides about money.
    pub spending: Mutex<()>,
    plan_purses: Mutex<HashMap<PlanId, Arc<Purse>>>,
    frames: Mutex<HashMap<String, Frame>>,
    chairs: Mutex<HashMap<String, Chair>>,
    loops: Mutex<JoinSet<()>>,
    closing: AtomicBool,
    /// Whether everybody is told that there is nothing to do.
    quiet: Mutex<bool>,
}

/// An agent that has just begun to exist, and its first letter.
pub(crate) struct Fresh {
    pub turn: Turn,
    pub head: u64,
    pub letter: Envelope,
}

/// An agent that sits and does not run yet, and where it hears orders.
pub(crate) type Seated = (Box<Agent>, mpsc::Receiver<Control>);

/// What a loop is given when it sits down.
pub(crate) struct Place {
    pub bell: Arc<Notify>,
    pub controls: mpsc::Receiver<Control>,
}

impl Floor {
    pub(crate) fn new(
        shared: Arc<Shared>,
        session: SessionId,
        lead: AgentId,
        fence: Fence,
        root: PathBuf,
        team: Option<Team>,
        cap: Budget,
    ) -> Self {
        Self {
            shared,
            session,
            lead,
            fence,
            root,
            team: Mutex::new(team.map(Arc::new)),
            mode: Mutex::new(None),
            purse: Arc::new(Purse::new(cap, None)),
            spending: Mutex::new(()),
            plan_purses: Mutex::new(HashMap::new()),
            frames: Mutex::new(HashMap::new()),
            chairs: Mutex::new(HashMap::new()),
            loops: Mutex::new(JoinSet::new()),
            closing: AtomicBool::new(false),
            quiet: Mutex::new(false),
        }
    }

    /// The team, if this session has one.
    pub(crate) fn team(&self) -> Option<Arc<Team>> {
        lock(&self.team).clone()
    }

    /// Whoever is given a task from now on works in this mode, and whoever is at one is no freer than it.
    pub(crate) fn set_mode(&self, mode: Mode) {
        *lock(&self.mode) = Some(mode);
        let mut team = lock(&self.team);
        if let Some(known) = &*team {
            let mut changed = (**known).clone();
            changed.members.iter_mut().for_each(|mate| mate.settings.mode = mode);
            *team = Some(Arc::new(changed));
        }
        for chair in lock(&self.chairs).values() {
            // One that has so much to hear looks anyway before its next step.
            drop(chair.controls.try_send(Control::Hold));
        }
    }

    /// The mode that nobody here is freer than.
    pub(crate) fn mode(&self) -> Option<Mode> {
        *lock(&self.mode)
    }

    /// A member by name.
    pub(crate) fn mate(&self, name: &str) -> Option<Mate> {
        self.team()?.members.iter().find(|mate| mate.definition.name == name).cloned()
    }

    /// A plan's purse.
    pub(crate) fn plan_purse(&self, plan: PlanId, cap: Option<Budget>) -> Arc<Purse> {
        let mut purses = lock(&self.plan_purses);
        let purse = purses.entry(plan).or_insert_with(|| {
            let outer = Some(Arc::clone(&self.purse));
            Arc::new(Purse::new(cap.unwrap_or_default(), outer))
        });
        if let Some(cap) = cap {
            purse.cap(cap);
        }
        Arc::clone(purse)
    }

    /// What a member's requests carry, made once per member and settings.
    pub(crate) fn frame(&self, mate: &Mate, settings: Settings) -> Result<Frame, RuntimeError> {
        let mut frames = lock(&self.frames);
        if let Some(frame) = frames.get(&mate.definition.name).filter(|frame| *frame.definition() == mate.definition) {
            return Ok(frame.under(settings));
        }
        let frame = Frame::new(&self.shared, &self.root, mate.definition.clone(), settings, None)?;
        frames.insert(mate.definition.name.clone(), frame.clone());
        Ok(frame)
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
            letters: Vec::new(),
            look: true,
        };
        chairs.insert(address.to_owned(), chair);
        *lock(&self.quiet) = false;
        Some(Place { bell, controls: receiver })
    }

    /// Runs a loop until it ends; its crash is told, not swallowed. However it ends, its chair is free afterwards.
    pub(crate) fn spawn(self: &Arc<Self>, address: String, work: impl Future<Output = ()> + Send + 'static) {
        let floor = Arc::clone(self);
        let mut loops = lock(&self.loops);
        while loops.try_join_next().is_some() {}
        loops.spawn(async move {
            let ended = tokio::spawn(work).await;
            let quiet = {
                let mut chairs = lock(&floor.chairs);
                // One that left by itself may have been seated anew since.
                if chairs.get(&address).is_some_and(|chair| chair.controls.is_closed()) {
                    chairs.remove(&address);
                }
                floor.becomes_quiet(&chairs)
            };
            if let Err(crash) = ended {
                let words = format!("{crash}; go on with `max-team -r {}`", floor.session);
                let error = Arc::new(RuntimeError::AgentStopped(words));
                floor.shared.publish(Notice::Stopped { session: floor.session, error }).await;
            }
            if !floor.is_closing() {
                floor.publish_quiet(quiet).await;
            }
        });
    }

    /// Somebody could not be seated: whoever watches must know why nothing happens.
    fn tell_why(self: &Arc<Self>, seated: Result<(), RuntimeError>) {
        if let Err(error) = seated {
            let floor = Arc::clone(self);
            lock(&self.loops).spawn(async move {
                let stopped = Notice::Stopped { session: floor.session, error: Arc::new(error) };
                floor.shared.publish(stopped).await;
            });
        }
    }

    /// Seats an agent that has something to do; one that sits already is only rung.
    pub(crate) fn seat_agent(self: &Arc<Self>, agent: AgentId, fresh: Option<Fresh>) -> Result<(), RuntimeError> {
        let address = session::agent_stream(agent);
        let Some(place) = self.sit(&address) else {
            self.ring(&address);
            return Ok(());
        };
        let fresh = fresh.map(|fresh| {
            // Everything there is to know about it is here: nothing need be read.
            if let Some(chair) = lock(&self.chairs).get_mut(&address) {
                chair.look = false;
                chair.letters.push(fresh.letter);
            }
            (fresh.turn, fresh.head)
        });
        let seated = self.prepare_agent(agent, fresh).map(|seat| Agent::new(Arc::clone(self), seat, &place.bell));
        match seated {
            Ok(agent) => {
                self.spawn(address, Box::pin(agent.run(place.controls)));
                Ok(())
            }
            Err(error) => {
                lock(&self.chairs).remove(&address);
                Err(error)
            }
        }
    }

    /// Lets an agent that has just begun to exist sit down; it runs once what it begins with is committed.
    pub(crate) fn seat_newcomer(
        self: &Arc<Self>,
        agent: AgentId,
        plan: PlanId,
        turn: Turn,
        head: u64,
    ) -> Result<Option<Seated>, RuntimeError> {
        let address = session::agent_stream(agent);
        let Some(place) = self.sit(&address) else { return Ok(None) };
        if let Some(chair) = lock(&self.chairs).get_mut(&address) {
            chair.look = false;
        }
        let mut seat = self.prepare_agent(agent, Some((turn, head)))?;
        // Nothing of it is in the journal yet that could say so.
        seat.purse = self.plan_purse(plan, None);
        Ok(Some((Box::new(Agent::new(Arc::clone(self), seat, &place.bell)), place.controls)))
    }

    fn prepare_agent(&self, agent: AgentId, fresh: Option<(Turn, u64)>) -> Result<Seat, RuntimeError> {
        let resumed = fresh.is_none();
        let (turn, head) = match fresh {
            Some(fresh) => fresh,
            None => self.shared.fold_agent(agent)?,
        };
        let unknown = || RuntimeError::AgentStopped(format!("the journal does not know what `{agent}` is"));
        let (_, _, definition) = turn.identity().ok_or_else(unknown)?;
        let settings = turn.settings().cloned().ok_or_else(unknown)?;
        let mate = Mate { definition: definition.clone(), settings: settings.clone() };
        let frame = self.frame(&mate, settings)?;
        let plan = turn.assignment().and_then(|assignment| assignment.plan);
        let plan = plan.or_else(|| self.plan_of(agent));
        let purse = plan.map_or_else(|| Arc::clone(&self.purse), |plan| self.plan_purse(plan, None));
        Ok(Seat { agent, head, turn, frame, purse, lead: agent == self.lead, resumed })
    }

    fn plan_of(&self, agent: AgentId) -> Option<PlanId> {
        let table = rows::agents_of(&self.session.to_string());
        let row: rows::AgentRow = rows::row(&self.shared.journal, &table, &agent.to_string()).ok()??;
        row.assignment?.plan
    }

    /// Seats a plan.
    pub(crate) fn seat_plan(self: &Arc<Self>, plan: PlanId) -> Result<(), RuntimeError> {
        let address = plan_stream(plan);
        let Some(place) = self.sit(&address) else {
            self.ring(&address);
            return Ok(());
        };
        match self.prepare_plan(plan) {
            Ok((state, head)) => {
                let bell = Arc::clone(&place.bell);
                let work = PlanLoop::new(Arc::clone(self), plan, state, head, bell);
                self.spawn(address, Box::pin(work.run(place.controls)));
                Ok(())
            }
            Err(error) => {
                lock(&self.chairs).remove(&address);
                Err(error)
            }
        }
    }

    fn prepare_plan(&self, plan: PlanId) -> Result<(Plan, u64), RuntimeError> {
        let (state, head) = fold_plan(&self.shared, plan)?;
        let budget = state.draft().map(|draft| draft.budget).unwrap_or_default();
        let counts = budget.nano.is_some() || budget.tokens.is_some();
        // Where the session counts, everything was charged when it was opened.
        if counts && !self.purse.is_bounded() {
            self.charge(Some(plan))?;
        }
        Ok((state, head))
    }

    /// What members have spent before this process looked: all of them, or those of one plan.
    pub(crate) fn charge(&self, only: Option<PlanId>) -> Result<(), RuntimeError> {
        let journal = &self.shared.journal;
        for (key, agent) in rows::rows::<rows::AgentRow>(journal, &rows::agents_of(&self.session.to_string()))? {
            let plan = agent.assignment.as_ref().and_then(|assignment| assignment.plan);
            if agent.agent == self.lead || only.is_some_and(|only| plan != Some(only)) {
                continue;
            }
            let purse = plan.map_or_else(|| Arc::clone(&self.purse), |plan| self.plan_purse(plan, None));
            for (_, cost) in rows::rows::<rows::CostRow>(journal, &rows::costs_of(&key))? {
                for charge in cost.charges {
                    purse.reserve(charge.nano, crate::purse::tokens(charge.usage));
                }
            }
            // Whoever is in the middle of something has spent more than its finished turns say.
            let (turn, _) = self.shared.fold_agent(agent.agent)?;
            if turn.is_busy() {
                for charge in turn.charges() {
                    purse.reserve(charge.nano, crate::purse::tokens(charge.usage));
                }
                purse.reserve(turn.ledger().reserved_nano, 0);
            }
        }
        Ok(())
    }

    /// Another cap from now on; plans that wait for money look whether it is enough.
    pub(crate) fn cap(self: &Arc<Self>, cap: Budget) {
        self.purse.cap(cap);
        let plans: Vec<String> =
            lock(&self.chairs).keys().filter(|address| address.starts_with("plan/")).cloned().collect();
        plans.iter().for_each(|plan| self.ring(plan));
    }

    /// There is mail at an address.
    pub(crate) fn ring(self: &Arc<Self>, address: &str) {
        if !self.rings(address, None) {
            self.seat_reader(address);
        }
    }

    /// Hands a committed letter to whoever sits at its address; if nobody does, they are seated and read it there.
    pub(crate) fn deliver(self: &Arc<Self>, letter: Envelope) {
        let address = letter.to.clone();
        if !self.rings(&address, Some(letter)) {
            self.seat_reader(&address);
        }
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

    /// What is in the mailbox: what was handed over, or everything if there may be more.
    pub(crate) fn mail(&self, address: &str, all: bool) -> Result<Vec<Envelope>, RuntimeError> {
        let (letters, look) = match lock(&self.chairs).get_mut(address) {
            Some(chair) => (std::mem::take(&mut chair.letters), std::mem::take(&mut chair.look)),
            None => (Vec::new(), true),
        };
        if look || all { Ok(self.shared.journal.pending_mail(address)?) } else { Ok(letters) }
    }

    fn seat_reader(self: &Arc<Self>, address: &str) {
        // Whoever is to read it has gone home since; an address of another session is none of ours.
        if let Some(agent) = address.strip_prefix("agent/").and_then(|id| id.parse().ok())
            && post::session_at(&self.shared.journal, address) == Some(self.session)
        {
            self.tell_why(self.seat_agent(agent, None));
        }
        if let Some(plan) = address.strip_prefix("plan/").and_then(|id| id.parse().ok())
            && post::session_at(&self.shared.journal, address) == Some(self.session)
        {
            self.tell_why(self.seat_plan(plan));
        }
    }

    /// Somebody outside this process wrote something: everybody looks into their mailbox.
    pub(crate) fn ring_all(self: &Arc<Self>) {
        let waiting: Vec<String> = lock(&self.chairs).keys().cloned().collect();
        for address in waiting {
            if self.shared.journal.pending_mail(&address).is_ok_and(|mail| !mail.is_empty()) {
                self.ring(&address);
            }
        }
    }

    /// Tells a loop something that is not mail.
    pub(crate) async fn tell(&self, address: &str, control: Control) -> Result<(), RuntimeError> {
        let controls = lock(&self.chairs).get(address).map(|chair| chair.controls.clone());
        let controls = controls.ok_or(RuntimeError::NotOpen(self.session))?;
        let gone = |_| RuntimeError::AgentStopped("see the error above".to_owned());
        controls.send(control).await.map_err(gone)
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
            if address == session::agent_stream(self.lead) && activity == Activity::Idle {
                // The lead has said what it had to say: whoever waits for its word goes on without.
                for chair in chairs.values_mut().filter(|chair| chair.awaits_lead) {
                    chair.activity = Activity::Busy;
                    chair.bell.notify_one();
                }
            }
            self.becomes_quiet(&chairs)
        };
        self.publish_quiet(quiet).await;
    }

    fn becomes_quiet(&self, chairs: &HashMap<String, Chair>) -> Option<bool> {
        let busy = chairs.values().any(|chair| chair.activity == Activity::Busy);
        let mut told = lock(&self.quiet);
        if busy || *told {
            return None;
        }
        *told = true;
        Some(chairs.values().any(|chair| chair.activity == Activity::Waiting))
    }

    async fn publish_quiet(&self, quiet: Option<bool>) {
        if let Some(waiting) = quiet {
            self.shared.publish(Notice::Idle { session: self.session, waiting }).await;
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
            self.becomes_quiet(&chairs)
        };
        self.publish_quiet(quiet).await;
        true
    }

    /// Whether the lead has nothing to do and nothing to read.
    pub(crate) fn is_lead_idle(&self) -> bool {
        let address = session::agent_stream(self.lead);
        let idle = lock(&self.chairs).get(&address).is_none_or(|chair| chair.activity == Activity::Idle);
        idle && self.shared.journal.pending_mail(&address).is_ok_and(|mail| mail.is_empty())
    }

    /// Lets everybody park what they do.
    pub(crate) async fn close(&self) {
        self.closing.store(true, Ordering::Release);
        let stops: Vec<mpsc::Sender<Control>> =
            lock(&self.chairs).values().map(|chair| chair.controls.clone()).collect();
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

/// Folds a plan's stream.
pub(crate) fn fold_plan(shared: &Shared, plan: PlanId) -> Result<(Plan, u64), RuntimeError> {
    census::fold_plan(&shared.journal, plan)
}

impl Shared {
    /// Folds an agent's stream.
    pub(crate) fn fold_agent(&self, agent: AgentId) -> Result<(Turn, u64), RuntimeError> {
        census::fold_agent(&self.journal, agent)
    }
}
