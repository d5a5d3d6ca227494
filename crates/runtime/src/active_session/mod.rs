//! State shared by all agent loops of one open session: team, budgets, running loops.
//!
//! `loops` knows the running loops, hands messages over and says when none is busy; `seats` starts loops of agents
//! and plans, from the journal or with their first message; `fail_agent` answers for agents that cannot run; `calls` knows
//! which agents can be called, and by which settings they are bound; `claims` which calls run once for several
//! callers; `teammates` the teammates; `tasks` the claims on the shared list; `recovered` counts the work that a session
//! had open.

mod calls;
mod claims;
mod fail_agent;
mod loops;
mod marks;
mod paths;
mod recovered;
mod seats;
mod tasks;
mod teammates;
mod written;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use max_team_core::agent::{Definition, Settings};
use max_team_core::channel::ChatAddress;
use max_team_core::cost::Spending;
use max_team_core::delegation::tool_filter::CHECK_INBOX;
use max_team_core::hash::Hash;
use max_team_core::id::{AgentId, PlanId, SessionId, TurnId};
use max_team_core::interrupt::newer_turn_id;
use max_team_core::plan::event::ApprovalMode;
use max_team_core::plan::{Budget, Plan};
use max_team_core::policy::Mode;
use max_team_core::turn::Turn;
use max_team_journal::Fence;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::agent::Frame;
use crate::budget::BudgetPool;
use crate::definitions::Definitions;
use crate::error::RuntimeError;
use crate::handle::{AgentSpec, Team};
use crate::plan::Basis;
use crate::runtime::ResumedLead;
use crate::shared::{Shared, lock, new_id, now_ms};
use crate::{read_model, rows};

pub(crate) use calls::callable;
pub(crate) use claims::{Claim, Claimed};
use loops::LoopSlot;
pub(crate) use loops::{Activity, HandedIn, Place};
use marks::Marks;
use paths::Paths;

/// State shared by all loops of one session.
#[derive(Debug)]
pub(crate) struct ActiveSession {
    pub shared: Arc<Shared>,
    pub session: SessionId,
    pub lead: AgentId,
    pub fence: Fence,
    pub root: PathBuf,
    /// The constraints of the session before it was opened here; `None` for a new one.
    pub bound: Option<ResumedLead>,
    /// Whether the user cannot be asked.
    pub is_unattended: bool,
    /// The chat of a messaging service that the session is held in.
    pub chat: Option<ChatAddress>,
    /// The source of the lead's and the team's definitions.
    pub definitions: Option<Arc<dyn Definitions>>,
    pub pool: BudgetPool,
    /// Cloned by every waiting model call: its reference count is the number of calls.
    pub calling: Arc<()>,
    /// Counts the changes of the settings of members and called agents.
    rules: AtomicU64,
    closing: AtomicBool,
    /// Notifies waiters when a loop becomes less busy.
    changed: Notify,
    /// Held for a moment, never while another lock of the session is taken or a future is awaited.
    seats: Mutex<Seats>,
    /// Like `seats`, but a decision about money may take it.
    crew: Mutex<TeamState>,
}

/// The running loops, and messages that they have not got yet.
#[derive(Debug, Default)]
struct Seats {
    slots: HashMap<String, LoopSlot>,
    loops: JoinSet<()>,
    /// Whether frontends were told that the session is idle.
    quiet: bool,
    /// The newest turn of its agents, as far as this process knows.
    newest: Option<TurnId>,
    /// Messages of people that wait or have waited, and that frontends know of.
    written: written::SeenMail,
    /// Coders whose changing tools wait for a snapshot.
    marks: Marks,
    /// The user who leaves while plans run.
    left_by: Option<String>,
}

/// The team, its settings, and the calls and paths that it holds.
#[derive(Debug, Default)]
struct TeamState {
    team: Option<Arc<Team>>,
    /// Members that were removed since, by name.
    former: HashMap<String, AgentSpec>,
    teammates: teammates::TeammateRows,
    /// Request frames, by definition, and whether it is a teammate's and may call others.
    frames: HashMap<(String, bool, bool), Frame>,
    /// The present settings of agents that have called others, by address.
    bonds: HashMap<String, Arc<Settings>>,
    /// Calls that run once for all callers that make them.
    claims: HashMap<Hash, claims::InflightCall>,
    paths: Paths,
    /// How many entries of the shared list's stream were read for changes by other processes.
    listed: u64,
}

impl ActiveSession {
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
            bound: None,
            is_unattended: false,
            chat: None,
            definitions: None,
            pool: BudgetPool::new(cap),
            calling: Arc::default(),
            rules: AtomicU64::new(0),
            closing: AtomicBool::new(false),
            changed: Notify::new(),
            seats: Mutex::default(),
            crew: Mutex::new(TeamState { team: team.map(Arc::new), ..TeamState::default() }),
        }
    }

    /// A turn id that is newer than all known ones, even if the clock was set back: the order of turn ids says what
    /// came after a stop.
    pub(crate) fn fresh_turn(&self) -> TurnId {
        let mut seats = lock(&self.seats);
        let fresh = TurnId::new(new_id());
        let fresh = seats.newest.map_or(fresh, |known| newer_turn_id(fresh, known));
        *seats.newest.insert(fresh)
    }

    /// An agent with earlier turns is started.
    pub(crate) fn know_turn(&self, turn: Option<TurnId>) {
        let newest = &mut lock(&self.seats).newest;
        *newest = (*newest).max(turn);
    }

    /// The team, if this session has one.
    pub(crate) fn team(&self) -> Option<Arc<Team>> {
        lock(&self.crew).team.clone()
    }

    /// Sets the mode of members: those at work use it from their next decision on. A stricter definition stays
    /// stricter.
    pub(crate) fn set_mode(&self, mode: Mode) {
        let mut crew = lock(&self.crew);
        if let Some(known) = crew.team.as_mut().map(Arc::make_mut) {
            for teammate in known.members.iter_mut().chain(&mut known.experts) {
                teammate.settings.mode = teammate.definition.mode_in(mode);
            }
        }
        for teammate in crew.former.values_mut() {
            teammate.settings.mode = teammate.definition.mode_in(mode);
        }
        self.rules_changed();
    }

    /// A counter of changes to settings. A loop that has seen the present value has the present settings.
    pub(crate) fn rules(&self) -> u64 {
        self.rules.load(Ordering::Acquire)
    }

    fn rules_changed(&self) {
        self.rules.fetch_add(1, Ordering::AcqRel);
    }

    /// The coders that wait for a snapshot.
    pub(crate) fn marks<T>(&self, act: impl FnOnce(&mut Marks) -> T) -> T {
        act(&mut lock(&self.seats).marks)
    }

    /// The paths that plans hold.
    pub(crate) fn paths<T>(&self, act: impl FnOnce(&mut Paths) -> T) -> T {
        act(&mut lock(&self.crew).paths)
    }

    /// A member by name.
    pub(crate) fn agent_spec(&self, name: &str) -> Option<AgentSpec> {
        self.team()?.members.iter().find(|teammate| teammate.definition.name == name).cloned()
    }

    /// The basis of forecasts in this session.
    pub(crate) fn basis(&self) -> Basis {
        Basis::read(&self.shared.journal, self.pool.alone(|open| open.left(true)).nano)
    }

    /// The shared budget of the agents of a plan, or of the session.
    fn shared_pool(&self, plan: Option<PlanId>) -> BudgetPool {
        plan.map_or_else(|| self.pool.clone(), |plan| self.pool.plan(plan, None))
    }

    /// The budget of an agent: its own, if it has one, inside its caller's, its plan's and the session's.
    pub(crate) fn pool_of(
        &self,
        agent: AgentId,
        budget: Budget,
        caller: Option<&str>,
        plan: Option<PlanId>,
    ) -> Result<BudgetPool, RuntimeError> {
        let shared = self.shared_pool(plan);
        let caller = caller.and_then(|caller| caller.strip_prefix("agent/")?.parse().ok());
        let outer = match caller.filter(|caller| *caller != self.lead) {
            Some(caller) => self.callers_pool(caller, shared)?,
            None => shared,
        };
        if agent == self.lead || budget.is_empty() { Ok(outer) } else { self.own_pool(agent, budget, outer) }
    }

    /// The budget of a caller. A caller is normally started before the agents that it calls, except when a session is
    /// opened again. One without a budget of its own uses its caller's.
    fn callers_pool(&self, caller: AgentId, shared: BudgetPool) -> Result<BudgetPool, RuntimeError> {
        if let Some(known) = self.pool.known(caller) {
            return Ok(known);
        }
        let given = self.row_of(caller).and_then(|row| row.assignment).filter(|given| given.plan.is_none());
        let above = given.and_then(|given| given.reply_to.strip_prefix("agent/")?.parse().ok());
        let outer = match above.filter(|above| *above != self.lead && *above != caller) {
            Some(above) => self.callers_pool(above, shared)?,
            None => shared,
        };
        let (turn, _) = self.shared.fold_agent(caller)?;
        let budget = turn.settings().map(|settings| crate::plan::cap(settings)).unwrap_or_default();
        if budget.is_empty() { Ok(outer) } else { self.own_pool(caller, budget, outer) }
    }

    fn own_pool(&self, agent: AgentId, budget: Budget, outer: BudgetPool) -> Result<BudgetPool, RuntimeError> {
        if let Some(known) = self.pool.known(agent) {
            known.cap(budget);
            return Ok(known);
        }
        Ok(outer.personal(agent, budget, self.spent_by(agent)?))
    }

    /// What an agent and its sub-agents have spent before this process started.
    fn spent_by(&self, agent: AgentId) -> Result<(u64, u64), RuntimeError> {
        let journal = &self.shared.journal;
        if journal.head(&crate::session::agent_stream(agent))? == 0 {
            return Ok((0, 0));
        }
        let (own, others) = read_model::ReadModel::new(journal).costs_of(self.session, agent, 0, now_ms())?;
        let all = Spending::sum_of(own.iter().chain(&others).map(|cost| &cost.charge));
        Ok((all.nano, all.tokens()))
    }

    /// The request frame of a member, made once per member and settings, and separately for agents that may call no
    /// others.
    pub(crate) fn frame(
        &self,
        definition: &Arc<Definition>,
        settings: &Arc<Settings>,
        delegates: bool,
    ) -> Result<Frame, RuntimeError> {
        let is_teammate = definition.tools.iter().any(|tool| tool == CHECK_INBOX);
        let key = (definition.name.clone(), is_teammate, delegates);
        if let Some(frame) = lock(&self.crew).frames.get(&key).filter(|frame| frame.definition() == definition) {
            return Ok(frame.under(settings));
        }
        let callees = self.callees(definition);
        let (definition, settings) = (Arc::clone(definition), Arc::clone(settings));
        let frame = Frame::new(&self.shared, &self.root, definition, settings, None, callees, self.unattended_note())?;
        let frame = if delegates { frame } else { frame.left_alone(&self.shared) };
        lock(&self.crew).frames.insert(key, frame.clone());
        Ok(frame)
    }

    /// Charges what members have spent before this process started: all of them, or those of one plan.
    pub(crate) fn charge(&self, only: Option<PlanId>) -> Result<(), RuntimeError> {
        let journal = &self.shared.journal;
        for (key, agent) in rows::rows::<rows::AgentRow>(journal, &rows::agents_of(&self.session.to_string()))? {
            let plan = self.plan_behind(&crate::session::agent_stream(agent.agent));
            if agent.agent == self.lead || only.is_some_and(|only| plan != Some(only)) {
                continue;
            }
            let pool = self.shared_pool(plan);
            for (_, cost) in rows::rows::<rows::CostRow>(journal, &rows::costs_of(&key))? {
                for charge in cost.charges {
                    pool.charge(charge.nano, crate::budget::tokens(charge.usage));
                }
            }
            // An agent with an unfinished turn has spent more than its ended turns say.
            let (turn, _) = self.shared.fold_agent(agent.agent)?;
            if turn.is_busy() {
                for charge in turn.charges() {
                    pool.charge(charge.nano, crate::budget::tokens(charge.usage));
                }
                pool.alone(|open| open.reserve(turn.ledger().reserved_nano, 0));
            }
        }
        Ok(())
    }

    /// Changes the cap; plans that wait for budget check whether it is enough.
    pub(crate) fn cap(self: &Arc<Self>, cap: Budget) {
        self.pool.cap(cap);
        let plans: Vec<String> =
            lock(&self.seats).slots.keys().filter(|address| address.starts_with("plan/")).cloned().collect();
        plans.iter().for_each(|plan| self.ring(plan));
    }
}

/// The mode of a member with an approved plan.
pub(crate) fn under(approve: ApprovalMode, mode: Mode) -> Mode {
    if approve == ApprovalMode::Never && mode == Mode::Default { Mode::DontAsk } else { mode }
}

/// Folds a plan's stream.
pub(crate) fn fold_plan(shared: &Shared, plan: PlanId) -> Result<(Plan, u64), RuntimeError> {
    read_model::fold_plan(&shared.journal, plan)
}

impl Shared {
    /// Folds an agent's stream.
    pub(crate) fn fold_agent(&self, agent: AgentId) -> Result<(Turn, u64), RuntimeError> {
        read_model::fold_agent(&self.journal, agent)
    }
}
