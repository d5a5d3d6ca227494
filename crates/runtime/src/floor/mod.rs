//! One open session's floor: its team, what there is to spend, and who sits where.
//!
//! `chairs` knows who sits, hands letters over and says when nobody has anything more to do; `seats` lets agents and
//! plans sit down, from the journal or with their first letter in hand; `excuse` speaks for those who cannot; `calls`
//! knows who can be called, and by what whoever was is bound; `claims` which calls are being made once for several;
//! `mates` which teammates there are; `tasks` who holds what of the shared list; `recovered` counts what a
//! session had open.

mod calls;
mod chairs;
mod claims;
mod excuse;
mod mates;
mod recovered;
mod seats;
mod tasks;
mod written;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use max_team_core::calling::hands::CHECK_INBOX;
use max_team_core::hash::Hash;
use max_team_core::id::{AgentId, EnvelopeId, PlanId, SessionId, TurnId};
use max_team_core::plan::event::Approve;
use max_team_core::plan::{Budget, Plan};
use max_team_core::policy::Mode;
use max_team_core::stop::newer;
use max_team_core::team::{Definition, Settings};
use max_team_core::turn::Turn;
use max_team_journal::Fence;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::agent::Frame;
use crate::definitions::Definitions;
use crate::error::RuntimeError;
use crate::handle::{Mate, Team};
use crate::house::Bound;
use crate::marks::Marks;
use crate::paths::Paths;
use crate::plan::Basis;
use crate::purse::Purse;
use crate::shared::{Shared, lock, new_id, now_ms};
use crate::{census, rows};

pub(crate) use calls::callable;
use chairs::Chair;
pub(crate) use chairs::{Activity, Place};
use claims::Held;
pub(crate) use claims::{Claim, Claimed};
pub(crate) use tasks::Takes;

/// What the loops of one session share.
#[derive(Debug)]
pub(crate) struct Floor {
    pub shared: Arc<Shared>,
    pub session: SessionId,
    pub lead: AgentId,
    pub fence: Fence,
    pub root: PathBuf,
    team: Mutex<Option<Arc<Team>>>,
    /// What bound this session before it was opened here; `None` for a new one.
    pub bound: Option<Bound>,
    /// Where the definitions of lead and team are written.
    pub definitions: Option<Arc<dyn Definitions>>,
    pub purse: Arc<Purse>,
    /// Held while somebody decides about money.
    pub spending: Mutex<()>,
    plan_purses: Mutex<HashMap<PlanId, Arc<Purse>>>,
    /// Of those with a budget of their own.
    own_purses: Mutex<HashMap<AgentId, Arc<Purse>>>,
    pub paths: Paths,
    pub marks: Marks,
    /// By name, and whether it is a teammate's.
    frames: Mutex<HashMap<(String, bool, bool), Frame>>,
    /// What those who have called somebody work under now, by address.
    bonds: Mutex<HashMap<String, Arc<Settings>>>,
    /// Counts the changes of what members and those who were called work under.
    rules: AtomicU64,
    /// Members who have left since, by name.
    former: Mutex<HashMap<String, Mate>>,
    /// Calls that are being made for everybody who makes them.
    claims: Mutex<HashMap<Hash, Held>>,
    /// Its teammates.
    mates: Mutex<mates::Mates>,
    lead_name: OnceLock<String>,
    /// Entries of the shared list's stream that were looked through for what other processes have written.
    listed: Mutex<u64>,
    /// What people and the lead have put there.
    news: Mutex<tasks::News>,
    /// What those take from it who rest.
    takes: Mutex<HashMap<AgentId, Takes>>,
    /// The newest turn of its agents, as far as this process knows.
    newest: Mutex<Option<TurnId>>,
    /// Since when everybody is stopped, as far as this process has said so.
    stopped: Mutex<Option<TurnId>>,
    /// Stops that lay in the lead's mail when the session was opened, and since when they count.
    old_stops: Mutex<HashMap<EnvelopeId, TurnId>>,
    /// Letters of people that wait or have waited, and that faces know of.
    written: Mutex<written::Written>,
    /// Whoever waits for a model holds one of it.
    pub calling: Arc<()>,
    chairs: Mutex<HashMap<String, Chair>>,
    loops: Mutex<JoinSet<()>>,
    closing: AtomicBool,
    /// The user who leaves while plans run.
    pub left_by: OnceLock<String>,
    /// Rings when somebody has less to do than before.
    changed: Notify,
    /// Whether everybody is told that there is nothing to do.
    quiet: Mutex<bool>,
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
            bound: None,
            definitions: None,
            purse: Arc::new(Purse::new(cap, None)),
            spending: Mutex::new(()),
            plan_purses: Mutex::new(HashMap::new()),
            own_purses: Mutex::new(HashMap::new()),
            paths: Paths::default(),
            marks: Marks::default(),
            frames: Mutex::new(HashMap::new()),
            bonds: Mutex::new(HashMap::new()),
            rules: AtomicU64::new(0),
            former: Mutex::new(HashMap::new()),
            claims: Mutex::new(HashMap::new()),
            mates: Mutex::new(None),
            lead_name: OnceLock::new(),
            listed: Mutex::new(0),
            news: Mutex::default(),
            takes: Mutex::default(),
            newest: Mutex::new(None),
            stopped: Mutex::new(None),
            old_stops: Mutex::default(),
            written: Mutex::default(),
            calling: Arc::default(),
            chairs: Mutex::new(HashMap::new()),
            loops: Mutex::new(JoinSet::new()),
            closing: AtomicBool::new(false),
            left_by: OnceLock::new(),
            changed: Notify::new(),
            quiet: Mutex::new(false),
        }
    }

    /// A turn that is newer than all that are known, whatever the clock says: by that it is told what came after a stop.
    pub(crate) fn fresh_turn(&self) -> TurnId {
        let mut newest = lock(&self.newest);
        let fresh = TurnId::new(new_id());
        let fresh = newest.map_or(fresh, |known| newer(fresh, known));
        *newest.insert(fresh)
    }

    /// The lead is about to write down that everybody was stopped: who reads a letter before it is stored knows of it.
    pub(crate) fn know_stop(&self, since: TurnId) {
        let mut stopped = lock(&self.stopped);
        *stopped = stopped.max(Some(since));
    }

    /// Since when what is written to teammates is no news, if somebody has stopped everybody.
    pub(crate) fn stopped_since(&self) -> Result<Option<TurnId>, RuntimeError> {
        let known = *lock(&self.stopped);
        Ok(known.max(census::stopped_since(&self.shared.journal, self.session)?))
    }

    /// Somebody sits down who has had turns before.
    pub(crate) fn know_turn(&self, turn: Option<TurnId>) {
        let mut newest = lock(&self.newest);
        *newest = newest.max(turn);
    }

    /// The team, if this session has one.
    pub(crate) fn team(&self) -> Option<Arc<Team>> {
        lock(&self.team).clone()
    }

    /// Members work in this mode: those at work from their next decision on. Whoever's definition is stricter stays so.
    pub(crate) fn set_mode(&self, mode: Mode) {
        let mut team = lock(&self.team);
        if let Some(known) = &*team {
            let mut changed = (**known).clone();
            for mate in changed.members.iter_mut().chain(&mut changed.experts) {
                mate.settings.mode = mate.definition.mode_in(mode);
            }
            *team = Some(Arc::new(changed));
        }
        for mate in lock(&self.former).values_mut() {
            mate.settings.mode = mate.definition.mode_in(mode);
        }
        self.rules_changed();
    }

    /// How often what others work under has changed. Whoever has looked since the last time knows what holds now.
    pub(crate) fn rules(&self) -> u64 {
        self.rules.load(Ordering::Acquire)
    }

    fn rules_changed(&self) {
        self.rules.fetch_add(1, Ordering::AcqRel);
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

    /// The basis of forecasts in this session.
    pub(crate) fn basis(&self) -> Basis {
        Basis::read(&self.shared.journal, self.purse.left_later().nano)
    }

    /// What an agent draws from: its own budget, if it has one, inside its caller's, its plan's and the session's.
    pub(crate) fn purse_of(
        &self,
        agent: AgentId,
        budget: Budget,
        caller: Option<&str>,
        plan: Option<PlanId>,
    ) -> Result<Arc<Purse>, RuntimeError> {
        let shared = plan.map_or_else(|| Arc::clone(&self.purse), |plan| self.plan_purse(plan, None));
        let caller = caller.and_then(|caller| caller.strip_prefix("agent/")?.parse().ok());
        let outer = match caller.filter(|caller| *caller != self.lead) {
            Some(caller) => self.callers_purse(caller, shared)?,
            None => shared,
        };
        if agent == self.lead || budget.is_empty() { Ok(outer) } else { self.own_purse(agent, budget, outer) }
    }

    /// A caller sits before whom it calls, except where a session is opened again. One without a budget of its own draws
    /// from whoever has called it.
    fn callers_purse(&self, caller: AgentId, shared: Arc<Purse>) -> Result<Arc<Purse>, RuntimeError> {
        if let Some(known) = lock(&self.own_purses).get(&caller) {
            return Ok(Arc::clone(known));
        }
        let given = self.row_of(caller).and_then(|row| row.assignment).filter(|given| given.plan.is_none());
        let above = given.and_then(|given| given.reply_to.strip_prefix("agent/")?.parse().ok());
        let outer = match above.filter(|above| *above != self.lead && *above != caller) {
            Some(above) => self.callers_purse(above, shared)?,
            None => shared,
        };
        let (turn, _) = self.shared.fold_agent(caller)?;
        let budget = turn.settings().map(|settings| crate::plan::cap(settings)).unwrap_or_default();
        if budget.is_empty() { Ok(outer) } else { self.own_purse(caller, budget, outer) }
    }

    fn own_purse(&self, agent: AgentId, budget: Budget, outer: Arc<Purse>) -> Result<Arc<Purse>, RuntimeError> {
        if let Some(known) = lock(&self.own_purses).get(&agent) {
            known.cap(budget);
            return Ok(Arc::clone(known));
        }
        let spent = self.spent_by(agent)?;
        let purse = Arc::new(Purse::personal(budget, spent, outer));
        lock(&self.own_purses).insert(agent, Arc::clone(&purse));
        Ok(purse)
    }

    /// What an agent and those who worked for it have spent before this process looked.
    fn spent_by(&self, agent: AgentId) -> Result<(u64, u64), RuntimeError> {
        let journal = &self.shared.journal;
        if journal.head(&crate::session::agent_stream(agent))? == 0 {
            return Ok((0, 0));
        }
        let (own, others) = census::Census::new(journal).costs_of(self.session, agent, 0, now_ms())?;
        let all = own.iter().chain(&others);
        Ok(all.fold((0, 0), |(nano, tokens): (u64, u64), cost| {
            (nano.saturating_add(cost.nano), tokens.saturating_add(crate::purse::tokens(cost.usage)))
        }))
    }

    /// What a member's requests carry, made once per member and settings, and again for those who can have nobody work
    /// for them.
    pub(crate) fn frame(
        &self,
        definition: &Arc<Definition>,
        settings: &Arc<Settings>,
        delegates: bool,
    ) -> Result<Frame, RuntimeError> {
        let mut frames = lock(&self.frames);
        let is_mate = definition.tools.iter().any(|tool| tool == CHECK_INBOX);
        let key = (definition.name.clone(), is_mate, delegates);
        if let Some(frame) = frames.get(&key).filter(|frame| frame.definition() == definition) {
            return Ok(frame.under(settings));
        }
        let callees = self.callees(definition);
        let (definition, settings) = (Arc::clone(definition), Arc::clone(settings));
        let frame = Frame::new(&self.shared, &self.root, definition, settings, None, callees)?;
        let frame = if delegates { frame } else { frame.left_alone(&self.shared) };
        frames.insert(key, frame.clone());
        Ok(frame)
    }

    /// What members have spent before this process looked: all of them, or those of one plan.
    pub(crate) fn charge(&self, only: Option<PlanId>) -> Result<(), RuntimeError> {
        let journal = &self.shared.journal;
        for (key, agent) in rows::rows::<rows::AgentRow>(journal, &rows::agents_of(&self.session.to_string()))? {
            let plan = self.plan_behind(&crate::session::agent_stream(agent.agent));
            if agent.agent == self.lead || only.is_some_and(|only| plan != Some(only)) {
                continue;
            }
            let purse = plan.map_or_else(|| Arc::clone(&self.purse), |plan| self.plan_purse(plan, None));
            for (_, cost) in rows::rows::<rows::CostRow>(journal, &rows::costs_of(&key))? {
                for charge in cost.charges {
                    purse.charge(charge.nano, crate::purse::tokens(charge.usage));
                }
            }
            // Whoever is in the middle of something has spent more than its finished turns say.
            let (turn, _) = self.shared.fold_agent(agent.agent)?;
            if turn.is_busy() {
                for charge in turn.charges() {
                    purse.charge(charge.nano, crate::purse::tokens(charge.usage));
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
}

/// How freely a member may act with an approved plan behind it.
pub(crate) fn under(approve: Approve, mode: Mode) -> Mode {
    if approve == Approve::Never && mode == Mode::Default { Mode::DontAsk } else { mode }
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
