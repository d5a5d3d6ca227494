//! Starts the loops of agents and plans: those that the journal knows, and those whose first entry is about to be
//! committed.

use std::sync::Arc;

use max_team_core::agent::{Definition, Settings};
use max_team_core::id::{AgentId, PlanId, TurnId};
use max_team_core::message::{Assignment, MessageKind};
use max_team_core::plan::Plan;
use max_team_core::turn::Turn;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{ActiveSession, Place, fold_plan};
use crate::agent::{Agent, Control, Frame, Seat, UNATTENDED_MEMBER};
use crate::error::RuntimeError;
use crate::plan::{PlanLoop, plan_stream};
use crate::shared::lock;
use crate::worktree::Worker;
use crate::{memory, rows, session, worktree};

/// An agent that is registered and does not run yet, with its commands.
pub(crate) type Seated = (Box<Agent>, mpsc::Receiver<Control>);

impl ActiveSession {
    /// Starts the loop of an agent that has work; if it runs already, it is only rung. If the agent can no longer
    /// work, its work has failed, and the agents that wait for it are told.
    pub(crate) fn seat_agent(self: &Arc<Self>, agent: AgentId) -> Result<(), RuntimeError> {
        let address = session::agent_stream(agent);
        let Some(place) = self.sit(&address) else {
            self.ring(&address);
            return Ok(());
        };
        self.seat_at(agent, address, place)
    }

    /// Starts an agent again that has ended because its worktree may be gone, if it has anything to read.
    pub(crate) fn seat_anew(self: &Arc<Self>, agent: AgentId) {
        let address = session::agent_stream(agent);
        if let Some(place) = self.sit_anew(&address).filter(|_| !self.is_closing()) {
            self.tell_why(&address, self.seat_at(agent, address.clone(), place));
        }
    }

    fn seat_at(self: &Arc<Self>, agent: AgentId, address: String, place: Place) -> Result<(), RuntimeError> {
        let seated = self.prepare_agent(agent, None).map(|seat| Agent::new(Arc::clone(self), seat, &place.bell));
        match seated {
            Ok(agent) => {
                self.spawn(address, Box::new(agent).run(place.controls));
                Ok(())
            }
            Err(error @ (RuntimeError::Root { .. } | RuntimeError::Definition { .. })) => {
                let (active, mut place) = (Arc::clone(self), place);
                let sat = async move {
                    match active.furnish(agent, &mut place.controls).await {
                        Some(seat) => Box::new(Agent::new(active, seat, &place.bell)).run(place.controls).await,
                        None => active.fail_agent(agent, &error.to_string(), place.controls).await,
                    }
                };
                self.spawn(address, Box::pin(sat));
                Ok(())
            }
            Err(error) => {
                self.vacate(&address);
                Err(error)
            }
        }
    }

    /// Makes a new worktree for an agent that gets new work and whose last worktree was removed after its review.
    /// `None`: it needs none, none can be made, or the wait was interrupted. An agent with an unfinished turn gets
    /// none: its work is lost.
    async fn furnish(&self, agent: AgentId, controls: &mut mpsc::Receiver<Control>) -> Option<Seat> {
        let (turn, _) = self.shared.fold_agent(agent).ok()?;
        let (settings, (_, _, definition)) = turn.settings().zip(turn.identity())?;
        let (id, own) = (worktree::id_of(settings), agent.to_string());
        let mail = self.shared.journal.pending_mail(&session::agent_stream(agent)).ok()?;
        let begins =
            mail.iter().any(|envelope| matches!(envelope.kind, MessageKind::UserInput | MessageKind::TaskAssign));
        if turn.is_busy() || turn.agent_end().is_some() || id != own || !begins || !worktree::is_gone(&self.shared, &id)
        {
            return None;
        }
        let named = turn.teammate().map_or(&definition.name, |teammate| &teammate.name);
        let (project, by) = (self.root.clone(), named.clone());
        let worker = Worker { id, project, settings: Settings::clone(settings), by, named: Vec::new() };
        let cancel = CancellationToken::new();
        let _stops = cancel.clone().drop_guard();
        let made = tokio::select! {
            made = worker.prepare(&self.shared, &cancel) => made.is_ok(),
            () = is_stopped(controls) => false,
        };
        if made { self.prepare_agent(agent, None).ok() } else { None }
    }

    /// Registers a new agent before its first entry is committed. It runs once that is stored.
    pub(crate) fn seat_newcomer(
        self: &Arc<Self>,
        agent: AgentId,
        given: &Arc<Assignment>,
        turn: Turn,
    ) -> Result<Option<Seated>, RuntimeError> {
        let address = session::agent_stream(agent);
        let Some(place) = self.sit(&address) else { return Ok(None) };
        if let Some(slot) = lock(&self.seats).slots.get_mut(&address) {
            slot.look = false;
        }
        let seat =
            self.prepare_agent(agent, Some((turn, 1, Arc::clone(given)))).inspect_err(|_| self.vacate(&address))?;
        Ok(Some((Box::new(Agent::new(Arc::clone(self), seat, &place.bell)), place.controls)))
    }

    fn prepare_agent(&self, agent: AgentId, fresh: Option<(Turn, u64, Arc<Assignment>)>) -> Result<Seat, RuntimeError> {
        let resumed = fresh.is_none();
        let (turn, head, given) = match fresh {
            // The journal has no entry of it yet.
            Some((turn, head, given)) => (turn, head, Some(given)),
            None => {
                let (turn, head) = self.shared.fold_agent(agent)?;
                // A teammate works for its lead, also while it answers another agent.
                let given = turn.first_assignment().or(turn.assignment()).cloned().map(Arc::new);
                let given = given.or_else(|| self.row_of(agent)?.assignment);
                (turn, head, given)
            }
        };
        let caller = given.as_ref().filter(|given| given.plan.is_none()).map(|given| given.reply_to.clone());
        let plan = given.as_ref().and_then(|given| given.plan).or_else(|| self.plan_behind(caller.as_ref()?));
        let unknown = || RuntimeError::AgentStopped(format!("the journal does not know what `{agent}` is"));
        let (_, _, definition) = turn.identity().ok_or_else(unknown)?;
        let settings = turn.settings().cloned().ok_or_else(unknown)?;
        let frame = if turn.review_message().is_some() {
            // A review needs no worktree any more, and the user's answer may already have removed it.
            self.frame(definition, &settings, false)?
        } else {
            self.frame_for(definition, &settings, given.as_ref().map_or(0, |given| given.depth))?
        };
        let pool = self.pool_of(agent, crate::plan::cap(frame.settings()), caller.as_deref(), plan)?;
        let aside = memory::is_aside(frame.definition());
        let mut seats = lock(&self.seats);
        let slots = &mut seats.slots;
        let is_callers = caller.as_ref().and_then(|caller| slots.get(caller)).is_some_and(|slot| slot.of_team);
        if let Some(slot) = slots.get_mut(&session::agent_stream(agent)) {
            (slot.aside, slot.of_team) = (aside, turn.teammate().is_some() || is_callers);
        }
        drop(seats);
        Ok(Seat { agent, head, turn, frame, pool, lead: agent == self.lead, caller, aside, resumed })
    }

    /// The request frame of an agent at this call depth, in the project or in its worktree.
    pub(crate) fn frame_for(
        &self,
        definition: &Arc<Definition>,
        settings: &Arc<Settings>,
        depth: u32,
    ) -> Result<Frame, RuntimeError> {
        let delegates = depth < self.call_depth();
        if settings.permissions.copy.is_empty() {
            return self.frame(definition, settings, delegates);
        }
        let frame = self.frame_in_copy(definition, settings)?;
        Ok(if delegates { frame } else { frame.left_alone(&self.shared) })
    }

    /// The note for agents whose answers go to another agent, in a run without a chat.
    pub(super) fn unattended_note(&self) -> Option<&'static str> {
        self.is_unattended.then_some(UNATTENDED_MEMBER)
    }

    /// The request frame of an agent in a worktree: with its files, not the project's.
    fn frame_in_copy(&self, definition: &Arc<Definition>, settings: &Arc<Settings>) -> Result<Frame, RuntimeError> {
        let (id, by) = (worktree::id_of(settings), definition.name.clone());
        let (project, named) = (self.root.clone(), Vec::new());
        let worker = Worker { id, project, settings: Settings::clone(settings), by, named };
        let copy = worker.place(&self.shared)?;
        let callees = self.callees(definition);
        let (definition, settings) = (Arc::clone(definition), Arc::clone(settings));
        let frame =
            Frame::new(&self.shared, &copy.root(), definition, settings, None, callees, self.unattended_note())?;
        Ok(frame.at_work_in(&copy))
    }

    /// The agents of this session with unfinished work, with their plans.
    pub(crate) fn working(&self) -> Result<Vec<(AgentId, Option<PlanId>)>, RuntimeError> {
        let working = rows::working(&self.shared.journal, self.session)?;
        Ok(working.into_iter().map(|agent| (agent, self.plan_of(agent))).collect())
    }

    fn plan_of(&self, agent: AgentId) -> Option<PlanId> {
        self.row_of(agent)?.assignment?.plan
    }

    pub(crate) fn row_of(&self, agent: AgentId) -> Option<rows::AgentRow> {
        let table = rows::agents_of(&self.session.to_string());
        rows::row(&self.shared.journal, &table, &agent.to_string()).ok()?
    }

    /// Starts the plans of a session that is opened: none of them decides before the paths of all are known.
    pub(crate) fn seat_plans(self: &Arc<Self>, plans: &[PlanId]) -> Result<(), RuntimeError> {
        let mut folded = Vec::new();
        for plan in plans {
            let state = self.prepare_plan(*plan)?;
            self.paths(|paths| paths.note(*plan, &state.0));
            folded.push((*plan, state));
        }
        folded.into_iter().try_for_each(|(plan, state)| self.seat_folded(plan, Some(state)))
    }

    /// Starts the loop of a plan.
    pub(crate) fn seat_plan(self: &Arc<Self>, plan: PlanId) -> Result<(), RuntimeError> {
        self.seat_folded(plan, None)
    }

    fn seat_folded(self: &Arc<Self>, plan: PlanId, folded: Option<(Plan, u64)>) -> Result<(), RuntimeError> {
        let address = plan_stream(plan);
        let Some(place) = self.sit_plan(&address) else {
            self.ring(&address);
            return Ok(());
        };
        match folded.map_or_else(|| self.prepare_plan(plan), Ok) {
            Ok((state, head)) => {
                let work = PlanLoop::new(Arc::clone(self), plan, state, head, place);
                self.spawn(address, Box::pin(work.run()));
                Ok(())
            }
            Err(error) => {
                self.vacate(&address);
                Err(error)
            }
        }
    }

    fn prepare_plan(&self, plan: PlanId) -> Result<(Plan, u64), RuntimeError> {
        let (state, head) = fold_plan(&self.shared, plan)?;
        // A later stop must be newer than this plan's own ids, even if the clock was set back.
        self.know_turn(state.turn().max(Some(TurnId::new(plan.uuid()))));
        let budget = state.draft().map(|draft| draft.budget).unwrap_or_default();
        let counts = budget.nano.is_some() || budget.tokens.is_some();
        // If the session has a budget, all costs were charged when it was opened.
        if counts && !self.pool.is_bounded() {
            self.charge(Some(plan))?;
        }
        Ok((state, head))
    }
}

/// Completes when the loop is told to stop.
async fn is_stopped(controls: &mut mpsc::Receiver<Control>) {
    while !matches!(controls.recv().await, None | Some(Control::Stop | Control::Interrupt(_))) {}
}
