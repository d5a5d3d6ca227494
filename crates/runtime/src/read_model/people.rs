//! The agents of all sessions, one row each, with their state (`core::status`).
//!
//! In a session that no living process runs all agents are stopped, and the reason says how to go on.

use std::collections::{BTreeSet, HashSet};

use max_team_core::chat::Usage;
use max_team_core::event::{Event, TurnEnded, TurnOutcome};
use max_team_core::id::{AgentId, PlanId, SessionId, TurnId};
use max_team_core::plan::{Plan, TaskStatus, TaskView, WaitReason};
use max_team_core::status::{
    Activity, AgentStage, AgentStatus, IdleReason, StatusFacts, WaitTarget, WaitTargets, WorkSource,
};
use max_team_core::turn::Turn;
use serde::Serialize;

use super::{ReadModel, SESSIONS_MAX};
use crate::error::RuntimeError;
use crate::memory;
use crate::rows::{self, AgentRow, TeammateRow, event_of};
use crate::session::{self, SessionRow, Sessions};
use crate::team_tools;

/// Age up to which sessions without work are listed with `all`.
const RECENT_MS: i64 = 24 * 60 * 60 * 1_000;
/// An agent of a session, as `ps` lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Person {
    pub session: SessionId,
    /// The agent; `None` for a member that was not started yet.
    pub agent: Option<AgentId>,
    pub name: String,
    pub role: String,
    /// Whether it leads the session.
    pub lead: bool,
    pub state: AgentStage,
    /// Why it is idle.
    pub reason: Option<IdleReason>,
    /// The plan it works in.
    pub plan: Option<PlanId>,
    /// Its task there.
    pub task: Option<String>,
    /// Number of the attempt.
    pub attempt: u32,
    /// Since when it works on it, if known.
    pub since_ms: Option<i64>,
    /// What it is doing.
    pub doing: Option<Activity>,
    pub model: String,
    /// Tokens of its settled calls.
    pub usage: Usage,
    /// Nano-dollars, as far as prices are known; including calls that a crash interrupted and that may have been
    /// charged.
    pub nano: u64,
    /// The part of it for calls with an unknown outcome.
    pub unknown_nano: u64,
    /// Whether some calls had no price.
    pub unpriced: bool,
    /// The process that runs the session.
    pub pid: Option<u32>,
}

impl Person {
    /// Its name with the end of its id, which is unique in the session.
    pub fn handle(&self) -> Option<String> {
        self.agent.map(|agent| rows::handle(&self.name, agent))
    }
}

/// A session while its agents are listed.
pub(super) struct Room<'c> {
    census: ReadModel<'c>,
    row: SessionRow,
    pid: Option<u32>,
    seen: HashSet<AgentId>,
    people: Vec<Person>,
    /// Plans that are being stopped, or their tasks.
    stops: Vec<(PlanId, Option<String>)>,
}

impl ReadModel<'_> {
    /// The agents of a session that have an unfinished turn, or unread mail or a claimable task that begins one once
    /// the session runs. Not included: members of plans, which stop with their plan, and called agents, which stop
    /// with the turn that waits for them.
    pub fn at_work(&self, session: SessionId) -> Result<Vec<AgentId>, RuntimeError> {
        let lead = Sessions::new(self.journal).row(session)?.lead;
        let mut at_work = Vec::new();
        for row in self.perhaps_at_work(session, lead)? {
            at_work.extend(self.is_at_work(session, &row, lead)?.then_some(row.agent));
        }
        let takers = self.would_take(session)?.into_iter().filter(|agent| !at_work.contains(agent));
        at_work.extend(takers.collect::<Vec<_>>());
        Ok(at_work)
    }

    /// The agents of a session that have an assignment or unread mail.
    fn perhaps_at_work(&self, session: SessionId, lead: AgentId) -> Result<Vec<AgentRow>, RuntimeError> {
        let unread = self.journal.mailboxes()?;
        let unread = unread.iter().filter_map(|address| address.strip_prefix("agent/")?.parse().ok());
        // The lead has no such row, because it has no assignment.
        let all = rows::working(self.journal, session)?.into_iter().chain(unread).chain([lead]);
        let table = rows::agents_of(&session.to_string());
        let mut found = Vec::new();
        for agent in all.collect::<BTreeSet<AgentId>>() {
            found.extend(rows::row::<AgentRow>(self.journal, &table, &agent.to_string())?);
        }
        Ok(found)
    }

    /// Folds the agent's stream only if one entry is not enough: whose call a called agent works for is in its turn.
    fn is_at_work(&self, session: SessionId, row: &AgentRow, lead: AgentId) -> Result<bool, RuntimeError> {
        let agent = row.agent;
        let is_apart = row.assignment.as_ref().is_some_and(|given| given.plan.is_none() && !given.life.is_call());
        let teammate = rows::row::<TeammateRow>(self.journal, &rows::teammates_of(&session.to_string()), &row.name)?;
        let is_there = teammate.is_none_or(|teammate| teammate.agent == agent && teammate.gone.is_none());
        if is_apart && is_there && self.is_busy(agent)? {
            return Ok(true);
        }
        let (turn, mail) = (self.turn(agent)?, self.journal.pending_mail(&session::agent_stream(agent))?);
        let is_aside = turn.identity().is_some_and(|(_, _, definition)| memory::is_aside(definition));
        let is_apart = is_aside || turn.has_no_waiter(row.assignment.as_deref(), &mail);
        let begins = turn.agent_end().is_none() && (turn.is_busy() || turn.would_begin(&mail, agent == lead));
        Ok(is_apart && begins)
    }

    /// The agents that a session stop is written to: the lead, agents at work or with unread mail, and those with commands in the
    /// background. A row tells idle teammates of it. An agent at the task of a plan is stopped by the plan.
    pub(crate) fn stop_readers(&self, session: SessionId) -> Result<BTreeSet<AgentId>, RuntimeError> {
        let lead = Sessions::new(self.journal).row(session)?.lead;
        let mut readers: BTreeSet<AgentId> = BTreeSet::new();
        for row in self.perhaps_at_work(session, lead)? {
            let is_member = row.assignment.as_ref().is_some_and(|given| given.plan.is_some());
            // A member whose turn cannot be read may have other work: one message too many does no harm.
            let is_at_task = |turn: Turn| turn.assignment().is_some_and(|given| given.plan.is_some());
            readers.extend((!is_member || !self.turn(row.agent).is_ok_and(is_at_task)).then_some(row.agent));
        }
        let commands = rows::with_commands(self.journal)?;
        let teammates = rows::teammates_there(self.journal, session)?.into_iter().map(|(_, teammate)| teammate.agent);
        readers.extend(teammates.filter(|agent| commands.contains(agent)));
        Ok(readers)
    }

    /// Whether the agent's last turn ended with an answer, and nothing followed: one entry says so. Then it is not
    /// stopped, even if it has unread messages. A review turn, which makes no model call, says nothing about how the
    /// work ended.
    pub(crate) fn is_done(&self, agent: AgentId) -> Result<bool, RuntimeError> {
        let is_answer = |ended: &TurnEnded| ended.end == TurnOutcome::Answered && !ended.charges.is_empty();
        Ok(matches!(self.last_event(agent)?, Some(Event::TurnEnded(ended)) if is_answer(&ended)))
    }

    fn last_event(&self, agent: AgentId) -> Result<Option<Event>, RuntimeError> {
        let stream = session::agent_stream(agent);
        let Some(before) = self.journal.head(&stream)?.checked_sub(1) else { return Ok(None) };
        self.journal.read(&stream, before, 1)?.first().map(event_of).transpose()
    }

    /// All agents of sessions with unfinished work or a living owner; with `all`, also of those used within a day.
    pub fn people(&self, now_ms: i64, all: bool) -> Result<Vec<Person>, RuntimeError> {
        let sessions = Sessions::new(self.journal);
        let mut recent = sessions.list(SESSIONS_MAX)?;
        let mut unfinished: BTreeSet<String> = BTreeSet::new();
        unfinished.extend(rows::rows::<String>(self.journal, rows::PLAN_OPEN)?.into_iter().map(|(_, session)| session));
        for (agent, session) in rows::rows::<String>(self.journal, rows::WORKING)? {
            // The row of an agent that was given new work does not name the session.
            let known = Some(session).filter(|session| !session.is_empty());
            unfinished
                .extend(known.map_or_else(|| rows::row(self.journal, rows::AGENT, &agent), |known| Ok(Some(known)))?);
        }
        for id in unfinished.iter().filter_map(|id| id.parse().ok()) {
            if !recent.iter().any(|row| row.session == id) {
                recent.extend(sessions.row(id).ok());
            }
        }
        let mut people = Vec::new();
        for row in recent {
            let pid = self.owner(row.session)?.map(|worker| worker.pid);
            let works = unfinished.contains(&row.session.to_string())
                || self.is_busy(row.lead)?
                || self.is_unread(row.lead, true)?;
            let shown = all && now_ms.saturating_sub(row.last_at_ms) <= RECENT_MS;
            if works || pid.is_some() || shown || self.is_any_unread(row.session)? {
                people.extend(Room::new(*self, row, pid).fill(all)?);
            }
        }
        Ok(people)
    }
}

impl ReadModel<'_> {
    /// Whether a teammate of a session has unread messages that would begin a turn, because of a stop or because no
    /// process runs the session. Messages that are only added to a turn do not count.
    fn is_any_unread(&self, session: SessionId) -> Result<bool, RuntimeError> {
        for (_, teammate) in rows::teammates_there(self.journal, session)? {
            if self.is_unread(teammate.agent, false)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Like `is_any_unread`, of one teammate or the lead.
    fn is_unread(&self, agent: AgentId, lead: bool) -> Result<bool, RuntimeError> {
        let mail = self.journal.pending_mail(&session::agent_stream(agent))?;
        if mail.is_empty() {
            return Ok(false);
        }
        let turn = self.turn(agent)?;
        Ok(turn.waiting(&mail, lead) > 0 || turn.would_begin(&mail, lead))
    }
}

/// When a turn began: its id says so.
fn began_ms(turn: TurnId) -> Option<i64> {
    let (secs, nanos) = turn.uuid().get_timestamp()?.to_unix();
    i64::try_from(secs.saturating_mul(1_000).saturating_add(u64::from(nanos / 1_000_000))).ok()
}

impl<'c> Room<'c> {
    pub(super) fn new(census: ReadModel<'c>, row: SessionRow, pid: Option<u32>) -> Self {
        Self { census, row, pid, seen: HashSet::new(), people: Vec::new(), stops: Vec::new() }
    }

    /// One agent, from its own log.
    pub(super) fn somebody(&self, row: &AgentRow, turn: &Turn, giver: WorkSource) -> Result<Person, RuntimeError> {
        Ok(self.person(row, turn, self.of_turn(row.agent, turn, giver)?))
    }

    fn fill(mut self, all: bool) -> Result<Vec<Person>, RuntimeError> {
        let agents = self.census.agents(self.row.session)?;
        if let Some(lead) = agents.iter().find(|agent| agent.agent == self.row.lead) {
            let turn = self.census.turn(lead.agent)?;
            let since_ms = turn.current().map(|turn| began_ms(turn).unwrap_or(self.row.last_at_ms));
            let person = self.somebody(lead, &turn, WorkSource::User)?;
            self.push(Person { lead: true, since_ms, ..person });
        }
        let mut waiting = Vec::new();
        for id in self.census.open_plans(Some(self.row.session))? {
            let plan = self.census.plan(id)?;
            self.stops.extend(self.census.stopping(id)?.map(|task| (id, task)));
            self.at_work(id, &plan, &agents)?;
            waiting.push((id, plan));
        }
        for agent in &agents {
            if self.is_delegated(agent)? {
                let turn = self.census.turn(agent.agent)?;
                self.seen.insert(agent.agent);
                self.push(self.somebody(agent, &turn, WorkSource::Lead)?);
            }
        }
        if self.pid.is_some() {
            self.without_work(&waiting, &agents)?;
        } else {
            self.left_unread(&agents)?;
        }
        if all {
            for agent in agents.iter().filter(|agent| agent.agent != self.row.lead) {
                if self.seen.insert(agent.agent) {
                    let turn = self.census.turn(agent.agent)?;
                    let person = self.person(agent, &turn, AgentStatus::over(None));
                    self.people.push(Person { reason: IdleReason::of_last(&turn), since_ms: None, ..person });
                }
            }
        }
        Ok(self.people)
    }

    /// Whether an agent has unfinished work outside plans.
    fn is_delegated(&self, agent: &AgentRow) -> Result<bool, RuntimeError> {
        let row: Option<String> = rows::row(self.census.journal, rows::WORKING, &agent.agent.to_string())?;
        Ok(row.is_some() && !self.seen.contains(&agent.agent))
    }

    /// The owners of active tasks of a plan.
    fn at_work(&mut self, id: PlanId, plan: &Plan, agents: &[AgentRow]) -> Result<(), RuntimeError> {
        let has = |view: &TaskView<'_>| match view.status {
            TaskStatus::Dispatched | TaskStatus::Running => true,
            TaskStatus::Failed => view.waits != WaitReason::No,
            _ => false,
        };
        for view in plan.tasks().filter(has) {
            let Some(row) = view.agent.and_then(|agent| agents.iter().find(|row| row.agent == agent)) else { continue };
            let turn = self.census.turn(row.agent)?;
            let status = match AgentStatus::of_task(&view) {
                Some(status) => status,
                None => self.of_turn(row.agent, &turn, WorkSource::Lead)?,
            };
            let person = self.person(row, &turn, status);
            self.seen.insert(row.agent);
            let (task, attempt) = (Some(view.task.id.clone()), view.attempt);
            let since_ms = Some(view.since_ms.0).filter(|at_ms| *at_ms > 0);
            self.push(Person { plan: Some(id), task, attempt, since_ms, ..person });
        }
        Ok(())
    }

    /// Members without work: those whose tasks are still to come, and those that are done.
    fn without_work(&mut self, plans: &[(PlanId, Plan)], agents: &[AgentRow]) -> Result<(), RuntimeError> {
        for (id, plan) in plans {
            for view in plan.tasks().filter(|view| matches!(view.status, TaskStatus::Planned | TaskStatus::Approved)) {
                if self.has(view.member) {
                    continue;
                }
                let known = agents.iter().rev().find(|row| row.name == view.member);
                let state = if plan.is_approved() { AgentStage::Ready } else { AgentStage::Created };
                let reason = Some(match &view.waits {
                    WaitReason::For(needs) => {
                        let needs = needs.iter().map(|task| WaitTarget::Named(task.to_string()));
                        IdleReason::WaitingFor(WaitTargets(needs.collect()))
                    }
                    WaitReason::Approval => IdleReason::waits_for(WaitTarget::You),
                    _ => IdleReason::waits_for(WaitTarget::Place),
                });
                let (name, role) = (view.member.to_owned(), known.map_or_else(String::new, |row| row.role.clone()));
                let (plan, task) = (Some(*id), Some(view.task.id.clone()));
                self.push(Person { name, role, state, reason, plan, task, ..self.nobody() });
            }
        }
        for row in agents.iter().rev() {
            if row.agent == self.row.lead || self.has(&row.name) {
                continue;
            }
            let turn = self.census.turn(row.agent)?;
            // A teammate that has ended is listed with the ended agents.
            if turn.agent_end().is_some() {
                continue;
            }
            let person = self.somebody(row, &turn, WorkSource::Lead)?;
            self.push(Person { doing: None, plan: None, task: None, attempt: 0, since_ms: None, ..person });
            self.seen.insert(row.agent);
        }
        Ok(())
    }

    /// Agents whose messages a stop holds back, where no process runs the session.
    fn left_unread(&mut self, agents: &[AgentRow]) -> Result<(), RuntimeError> {
        let lead = self.row.lead;
        for row in agents.iter().filter(|row| row.agent != lead) {
            let stream = session::agent_stream(row.agent);
            if self.seen.contains(&row.agent) || self.census.journal.count_mail(&stream)? == 0 {
                continue;
            }
            let turn = self.census.turn(row.agent)?;
            let person = self.somebody(row, &turn, WorkSource::Lead)?;
            if turn.agent_end().is_none() && person.reason.as_ref().is_some_and(IdleReason::is_unread) {
                self.seen.insert(row.agent);
                self.push(Person { plan: None, task: None, attempt: 0, since_ms: None, ..person });
            }
        }
        Ok(())
    }

    fn has(&self, name: &str) -> bool {
        self.people.iter().any(|person| person.name == name)
    }

    /// The state of an agent by its own log.
    fn of_turn(&self, agent: AgentId, turn: &Turn, giver: WorkSource) -> Result<AgentStatus, RuntimeError> {
        let mail = self.census.journal.pending_mail(&session::agent_stream(agent))?;
        Ok(AgentStatus::of_turn(
            turn,
            &StatusFacts {
                mail: &mail,
                is_lead: agent == self.row.lead,
                is_run: self.pid.is_some(),
                takes_no_task: self.census.takes_none(self.row.session, turn, &mail)?,
                giver,
                answers_by_mail: team_tools::answers_by_mail,
            },
        ))
    }

    fn person(&self, row: &AgentRow, turn: &Turn, status: AgentStatus) -> Person {
        let status = if self.pid.is_none() { status.without_process(self.row.session) } else { status };
        let assignment = row.assignment.as_ref();
        let ledger = turn.ledger();
        let calling = turn.calling().map(|intent| &intent.model);
        let model = calling.or(turn.settings().map(|settings| &settings.model));
        Person {
            agent: Some(row.agent),
            name: row.name.clone(),
            role: row.role.clone(),
            state: status.standing,
            reason: status.reason,
            doing: status.doing,
            plan: assignment.and_then(|assignment| assignment.plan),
            task: assignment.filter(|assignment| assignment.plan.is_some()).map(|assignment| assignment.task.clone()),
            attempt: assignment.map_or(0, |assignment| assignment.attempt),
            since_ms: assignment.map(|_| turn.current().and_then(began_ms).unwrap_or(row.at_ms)),
            model: model.map_or_else(String::new, |model| model.name.clone()),
            usage: ledger.usage,
            nano: ledger.spent_nano.saturating_add(ledger.unknown_nano),
            unknown_nano: ledger.unknown_nano,
            unpriced: ledger.unpriced_calls > 0,
            ..self.nobody()
        }
    }

    fn nobody(&self) -> Person {
        Person {
            session: self.row.session,
            agent: None,
            name: String::new(),
            role: String::new(),
            lead: false,
            state: AgentStage::Ready,
            reason: None,
            plan: None,
            task: None,
            attempt: 0,
            since_ms: None,
            doing: None,
            model: String::new(),
            usage: Usage::default(),
            nano: 0,
            unknown_nano: 0,
            unpriced: false,
            pid: self.pid,
        }
    }

    fn push(&mut self, mut person: Person) {
        let stops = |(plan, task): &(PlanId, Option<String>)| {
            person.plan == Some(*plan) && (task.is_none() || *task == person.task)
        };
        if self.stops.iter().any(stops) {
            person.doing = Some(Activity::Stopping);
        }
        self.people.push(person);
    }
}
