//! Who is there and what they are doing: one row per agent, with why it does nothing if it does nothing.
//!
//! A session that no living process runs does not move: everybody in it is stopped, whatever the log says they were
//! at, and the reason says how to go on.

use std::collections::{BTreeSet, HashSet};

use max_team_core::chat::Usage;
use max_team_core::event::{End, Event, TurnEnded};
use max_team_core::id::{AgentId, PlanId, SessionId, TurnId};
use max_team_core::message::Kind;
use max_team_core::plan::{Plan, Status, TaskView, Waits};
use max_team_core::policy::{By, Deed};
use max_team_core::turn::{Effect, Halted, Turn, is_stop};
use serde::{Deserialize, Serialize};

use super::{Census, SESSIONS_MAX};
use crate::error::RuntimeError;
use crate::memory;
use crate::rows::{self, AgentRow, MateRow, event_of};
use crate::session::{self, SessionRow, Sessions};
use crate::team_tools::{self, NEED_CLARIFY};

/// How long sessions without work are shown to whoever asks for all.
const RECENT_MS: i64 = 24 * 60 * 60 * 1_000;
/// The stages of an agent's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// A plan names it that nobody has approved yet.
    Created,
    /// It has mail and has not begun.
    Starting,
    /// It could begin at once.
    Ready,
    /// It is at something.
    Busy,
    /// It does nothing any more, or nobody runs it.
    Stopped,
}

impl Standing {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Busy => "busy",
            Self::Stopped => "stopped",
        }
    }
}

/// Why somebody does nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// There is nothing left to do.
    Done,
    /// Something must come first.
    WaitingFor(String),
    /// It cannot go on before somebody does something.
    Blocked(String),
    /// It could not do what it was to do.
    Failed(String),
}

impl Reason {
    /// Who is waited for: whoever sits at the terminal.
    pub const YOU: &str = "you";
    /// Who gives members what they do.
    pub const LEAD: &str = "the lead";
    /// Who gives the lead what it does.
    pub const USER: &str = "the user";
    /// What a task waits for that could begin.
    pub const PLACE: &str = "a free place";
    /// The reason of a task whose model server cannot be reached.
    pub const SERVER: &str = "the model server";
    /// What a team that is about to begin waits for.
    pub const COPIES: &str = "copies of the project";
    /// The same, where no process runs the session.
    pub const TEAM: &str = "a team waits to begin";
    /// Why no model is called any more.
    pub const BUDGET: &str = "the budget is used up";
    /// Somebody said stop.
    pub const STOPPED: &str = "it was stopped";
    /// The model would not.
    pub const REFUSED: &str = "the model refused to answer";
    /// The model had nothing to say.
    pub const EMPTY: &str = "the model said nothing";
    /// The answer has not the shape that was asked for.
    pub const UNSTRUCTURED: &str = "the model never gave the structured answer";
    /// The model went in circles.
    pub const LOOPING: &str = "the model repeated itself";
    /// There were too many rounds.
    pub const ROUNDS: &str = "the limit of rounds was reached";
    /// What stands in front of an error that somebody has to decide about.
    pub const DECISION: &str = "a decision: ";
    /// What stands in front of the number of letters that wait since somebody was stopped.
    pub const LETTERS: &str = "letters wait: ";

    /// What stands in front of the name of one that takes tasks by itself, was stopped and takes none.
    pub const CLAIMS: &str = "it was stopped and takes no tasks: /continue ";

    /// Whether it says that letters wait since a stop.
    fn is_unread(&self) -> bool {
        matches!(self, Self::Blocked(why) if why.starts_with(Self::LETTERS))
    }

    /// So many letters wait since it was stopped.
    fn unread(count: usize) -> Self {
        Self::Blocked(format!("{}{count}", Self::LETTERS))
    }

    /// Why somebody does nothing after a turn that ended so.
    pub(crate) fn of(end: &End) -> Self {
        match end {
            End::Answered | End::Proposed | End::Truncated => Self::Done,
            End::Budget => Self::Blocked(Self::BUDGET.to_owned()),
            End::Interrupted => Self::Failed(Self::STOPPED.to_owned()),
            End::Failed { detail, .. } | End::Broken { detail } => Self::Failed(detail.clone()),
            End::Refused => Self::Failed(Self::REFUSED.to_owned()),
            End::Empty => Self::Failed(Self::EMPTY.to_owned()),
            End::Unstructured => Self::Failed(Self::UNSTRUCTURED.to_owned()),
            End::Looping => Self::Failed(Self::LOOPING.to_owned()),
            End::Rounds => Self::Failed(Self::ROUNDS.to_owned()),
        }
    }
}

/// What somebody is at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// Calls a model.
    Calling {
        /// Which.
        model: String,
        /// Counts the attempts at this call from 1.
        attempt: u32,
    },
    /// Runs a tool.
    Running {
        /// Which.
        tool: String,
        /// On what.
        target: String,
    },
    /// Asks a person.
    Asking {
        /// The tool that needs a yes.
        tool: String,
        /// On what.
        target: String,
    },
    /// Waits for the next attempt.
    Retrying {
        /// When that is.
        at_ms: i64,
    },
    /// Waits for money that calls of others have set aside.
    Affording,
    /// Looks at what it is about to do.
    Preparing,
    /// Its work is being checked.
    Checked,
    /// It is being stopped.
    Stopping,
}

/// Somebody of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Person {
    /// The session.
    pub session: SessionId,
    /// The agent; none for a member that has not begun to exist.
    pub agent: Option<AgentId>,
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: String,
    /// Whether it leads the session.
    pub lead: bool,
    /// Where it stands.
    pub state: Standing,
    /// Why it does nothing.
    pub reason: Option<Reason>,
    /// The plan it works in.
    pub plan: Option<PlanId>,
    /// Its task there.
    pub task: Option<String>,
    /// Which attempt.
    pub attempt: u32,
    /// Since when, if that is known.
    pub since_ms: Option<i64>,
    /// What it is at.
    pub doing: Option<Doing>,
    /// The model that answers for it.
    pub model: String,
    /// Tokens of its settled calls.
    pub usage: Usage,
    /// Nano-dollars, as far as prices are known; with what was lost in a crash and may have been paid.
    pub nano: u64,
    /// How much of them is for calls whose outcome nobody knows.
    pub unknown_nano: u64,
    /// Whether some calls had no price.
    pub unpriced: bool,
    /// The process that runs the session.
    pub pid: Option<u32>,
}

/// One session as it is looked at.
pub(super) struct Room<'c> {
    census: Census<'c>,
    row: SessionRow,
    pid: Option<u32>,
    seen: HashSet<AgentId>,
    people: Vec<Person>,
    /// Plans that were stopped and are not over, or the task of one.
    stops: Vec<(PlanId, Option<String>)>,
}

impl Census<'_> {
    /// Those of a session who are in the middle of a turn, or have unread mail or a task to take that begins one once somebody runs it.
    /// Whoever works in a plan is stopped with it, and whoever was called with the turn that waits for it.
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

    /// Those of a session who are given something, or have unread mail.
    fn perhaps_at_work(&self, session: SessionId, lead: AgentId) -> Result<Vec<AgentRow>, RuntimeError> {
        let unread = self.journal.mailboxes()?;
        let unread = unread.iter().filter_map(|address| address.strip_prefix("agent/")?.parse().ok());
        // A lead has no row that says so: nobody gave it anything.
        let all = rows::working(self.journal, session)?.into_iter().chain(unread).chain([lead]);
        let table = rows::agents_of(&session.to_string());
        let mut found = Vec::new();
        for agent in all.collect::<BTreeSet<AgentId>>() {
            found.extend(rows::row::<AgentRow>(self.journal, &table, &agent.to_string())?);
        }
        Ok(found)
    }

    /// Folds only where one entry does not tell: for whom somebody works who was called is in its turn.
    fn is_at_work(&self, session: SessionId, row: &AgentRow, lead: AgentId) -> Result<bool, RuntimeError> {
        let agent = row.agent;
        let is_apart = row.assignment.as_ref().is_some_and(|given| given.plan.is_none() && !given.life.is_call());
        let mate = rows::row::<MateRow>(self.journal, &rows::mates_of(&session.to_string()), &row.name)?;
        let is_there = mate.is_none_or(|mate| mate.agent == agent && mate.gone.is_none());
        if is_apart && is_there && self.is_busy(agent)? {
            return Ok(true);
        }
        let (turn, mail) = (self.turn(agent)?, self.journal.pending_mail(&session::agent_stream(agent))?);
        let is_aside = turn.identity().is_some_and(|(_, _, definition)| memory::is_aside(definition));
        let is_apart = is_aside || turn.is_apart(row.assignment.as_deref(), &mail);
        let begins = turn.gone().is_none() && (turn.is_busy() || turn.would_begin(&mail, agent == lead));
        Ok(is_apart && begins)
    }

    /// Who is told of a stop together with the lead: whoever is at work or could take a task, and teammates with commands. Whoever else rests knows of it from
    /// the lead's own entry. Whoever cannot be read may be at work: a letter too many does no harm.
    pub(crate) fn stopped_with(&self, session: SessionId) -> Result<Vec<AgentId>, RuntimeError> {
        let lead = Sessions::new(self.journal).row(session)?.lead;
        let mut found = self.perhaps_at_work(session, lead)?;
        found.retain(|row| row.agent != lead && self.is_at_work(session, row, lead).unwrap_or(true));
        let mut all: BTreeSet<AgentId> = found.into_iter().map(|row| row.agent).collect();
        let commands = rows::with_commands(self.journal)?;
        let there = rows::mates_there(self.journal, session)?.into_iter().map(|(_, row)| row.agent);
        all.extend(there.filter(|agent| commands.contains(agent)));
        all.extend(self.would_take(session)?);
        Ok(all.into_iter().collect())
    }

    /// The newest turn of all that a stop must be newer than, whatever the clock says: of the lead, of whoever works, of plans, and of
    /// teammates who rest. From whoever cannot be read nothing comes.
    pub(crate) fn newest(&self, session: SessionId, lead: AgentId) -> Result<Option<TurnId>, RuntimeError> {
        let mut newest = self.turn(lead)?.newest().max(self.newest_of_mates(session)?);
        for agent in rows::working(self.journal, session)? {
            newest = newest.max(self.turn(agent).ok().and_then(|turn| turn.newest()));
        }
        for plan in self.open_plans(Some(session))? {
            newest = newest.max(self.plan(plan)?.turn());
        }
        Ok(newest)
    }

    /// The newest turn of the teammates that are there, and the newest stop that they know of.
    pub(crate) fn newest_of_mates(&self, session: SessionId) -> Result<Option<TurnId>, RuntimeError> {
        let mates = rows::mates_there(self.journal, session)?;
        let turns = mates.into_iter().filter_map(|(_, row)| self.last_turn(row.agent).ok().flatten());
        Ok(turns.max().max(super::stopped_since(self.journal, session)?))
    }

    /// The last turn of somebody; reads one entry, and folds only where that does not tell.
    fn last_turn(&self, agent: AgentId) -> Result<Option<TurnId>, RuntimeError> {
        match self.last_event(agent)? {
            Some(Event::TurnEnded(ended)) => Ok(Some(ended.turn)),
            _ => Ok(self.turn(agent)?.newest()),
        }
    }

    /// Whether somebody has ended its last turn by itself, and nothing was done to it since: one entry tells. Nobody has stopped it
    /// then, whatever it has to read. What was asked about its work, without a model, says nothing about how that ended.
    pub(crate) fn is_done(&self, agent: AgentId) -> Result<bool, RuntimeError> {
        let is_answer = |ended: &TurnEnded| ended.end == End::Answered && !ended.charges.is_empty();
        Ok(matches!(self.last_event(agent)?, Some(Event::TurnEnded(ended)) if is_answer(&ended)))
    }

    fn last_event(&self, agent: AgentId) -> Result<Option<Event>, RuntimeError> {
        let stream = session::agent_stream(agent);
        let Some(before) = self.journal.head(&stream)?.checked_sub(1) else { return Ok(None) };
        self.journal.read(&stream, before, 1)?.first().map(event_of).transpose()
    }

    /// Everybody in sessions with unfinished work or a living owner; with `all`, also of those used within a day.
    pub fn people(&self, now_ms: i64, all: bool) -> Result<Vec<Person>, RuntimeError> {
        let sessions = Sessions::new(self.journal);
        let mut recent = sessions.list(SESSIONS_MAX)?;
        let mut unfinished: BTreeSet<String> = BTreeSet::new();
        unfinished.extend(rows::rows::<String>(self.journal, rows::PLAN_OPEN)?.into_iter().map(|(_, session)| session));
        for (agent, session) in rows::rows::<String>(self.journal, rows::WORKING)? {
            // Whoever was begun with anew has a row that does not say where.
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

impl Census<'_> {
    /// Whether letters wait for a teammate of a session, since a stop or since nobody runs it. What is only told along with others
    /// is nothing to go on with.
    fn is_any_unread(&self, session: SessionId) -> Result<bool, RuntimeError> {
        for (_, mate) in rows::mates_there(self.journal, session)? {
            if self.is_unread(mate.agent, false)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The same of one of them, or of the lead.
    fn is_unread(&self, agent: AgentId, lead: bool) -> Result<bool, RuntimeError> {
        let mail = self.journal.pending_mail(&session::agent_stream(agent))?;
        if mail.is_empty() {
            return Ok(false);
        }
        let turn = self.turn(agent)?;
        Ok(turn.waiting(&mail, lead) > 0 || turn.would_begin(&mail, lead))
    }
}

/// Whether somebody was stopped by a person, and not by an agent or the clock.
fn is_by_person(halted: &Halted) -> bool {
    matches!(halted.who, Some(By::Person(_)))
}

/// When a turn began: its id says so.
fn began_ms(turn: TurnId) -> Option<i64> {
    let (secs, nanos) = turn.uuid().get_timestamp()?.to_unix();
    i64::try_from(secs.saturating_mul(1_000).saturating_add(u64::from(nanos / 1_000_000))).ok()
}

impl<'c> Room<'c> {
    pub(super) fn new(census: Census<'c>, row: SessionRow, pid: Option<u32>) -> Self {
        Self { census, row, pid, seen: HashSet::new(), people: Vec::new(), stops: Vec::new() }
    }

    /// One of them, by its own log.
    pub(super) fn somebody(&self, row: &AgentRow, turn: &Turn, giver: &str) -> Result<Person, RuntimeError> {
        let (state, reason, doing) = self.of_turn(row.agent, turn, giver)?;
        Ok(self.run(Person { state, reason, doing, ..self.person(row, turn) }))
    }

    fn fill(mut self, all: bool) -> Result<Vec<Person>, RuntimeError> {
        let agents = self.census.agents(self.row.session)?;
        if let Some(lead) = agents.iter().find(|agent| agent.agent == self.row.lead) {
            let turn = self.census.turn(lead.agent)?;
            let (state, reason, doing) = self.of_turn(lead.agent, &turn, Reason::USER)?;
            let since_ms = turn.current().map(|turn| began_ms(turn).unwrap_or(self.row.last_at_ms));
            let person = self.person(lead, &turn);
            self.push(Person { lead: true, state, reason, doing, since_ms, ..person });
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
                let (state, reason, doing) = self.of_turn(agent.agent, &turn, Reason::LEAD)?;
                let person = self.person(agent, &turn);
                self.seen.insert(agent.agent);
                self.push(Person { state, reason, doing, ..person });
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
                    let (state, reason) = (Standing::Stopped, last(&turn));
                    let person = self.person(agent, &turn);
                    self.people.push(Person { state, reason, since_ms: None, ..person });
                }
            }
        }
        Ok(self.people)
    }

    /// Whether somebody was given something to do outside any plan and is not done.
    fn is_delegated(&self, agent: &AgentRow) -> Result<bool, RuntimeError> {
        let row: Option<String> = rows::row(self.census.journal, rows::WORKING, &agent.agent.to_string())?;
        Ok(row.is_some() && !self.seen.contains(&agent.agent))
    }

    /// Those who have a task of a plan in their hands.
    fn at_work(&mut self, id: PlanId, plan: &Plan, agents: &[AgentRow]) -> Result<(), RuntimeError> {
        let has = |view: &TaskView<'_>| match view.status {
            Status::Dispatched | Status::Running => true,
            Status::Failed => view.waits != Waits::No,
            _ => false,
        };
        for view in plan.tasks().filter(has) {
            let Some(row) = view.agent.and_then(|agent| agents.iter().find(|row| row.agent == agent)) else { continue };
            let turn = self.census.turn(row.agent)?;
            let (state, reason, doing) = match of_task(&view) {
                Some(found) => found,
                None => self.of_turn(row.agent, &turn, Reason::LEAD)?,
            };
            let person = self.person(row, &turn);
            self.seen.insert(row.agent);
            let (task, attempt) = (Some(view.task.id.clone()), view.attempt);
            let since_ms = Some(view.since_ms.0).filter(|at_ms| *at_ms > 0);
            self.push(Person { state, reason, doing, plan: Some(id), task, attempt, since_ms, ..person });
        }
        Ok(())
    }

    /// Members that have nothing in their hands: those whose tasks are still to come, and those who are done.
    fn without_work(&mut self, plans: &[(PlanId, Plan)], agents: &[AgentRow]) -> Result<(), RuntimeError> {
        for (id, plan) in plans {
            for view in plan.tasks().filter(|view| matches!(view.status, Status::Planned | Status::Approved)) {
                if self.has(view.member) {
                    continue;
                }
                let known = agents.iter().rev().find(|row| row.name == view.member);
                let state = if plan.is_approved() { Standing::Ready } else { Standing::Created };
                let reason = Some(Reason::WaitingFor(match &view.waits {
                    Waits::For(needs) => needs.join(", "),
                    Waits::Approval => Reason::YOU.to_owned(),
                    _ => Reason::PLACE.to_owned(),
                }));
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
            // A teammate that is no more is among those who have ended.
            if turn.gone().is_some() {
                continue;
            }
            let person = self.person(row, &turn);
            let (state, reason, _) = self.of_turn(row.agent, &turn, Reason::LEAD)?;
            self.push(Person { state, reason, plan: None, task: None, attempt: 0, since_ms: None, ..person });
            self.seen.insert(row.agent);
        }
        Ok(())
    }

    /// Those whose letters wait behind a stop, where no process runs the session: what they would read is not lost.
    fn left_unread(&mut self, agents: &[AgentRow]) -> Result<(), RuntimeError> {
        let lead = self.row.lead;
        for row in agents.iter().filter(|row| row.agent != lead) {
            let stream = session::agent_stream(row.agent);
            if self.seen.contains(&row.agent) || self.census.journal.count_mail(&stream)? == 0 {
                continue;
            }
            let turn = self.census.turn(row.agent)?;
            let (state, reason, _) = self.of_turn(row.agent, &turn, Reason::LEAD)?;
            if turn.gone().is_none() && reason.as_ref().is_some_and(Reason::is_unread) {
                self.seen.insert(row.agent);
                let person = self.person(row, &turn);
                self.push(Person { state, reason, plan: None, task: None, attempt: 0, since_ms: None, ..person });
            }
        }
        Ok(())
    }

    fn has(&self, name: &str) -> bool {
        self.people.iter().any(|person| person.name == name)
    }

    /// Where somebody stands by its own log.
    fn of_turn(
        &self,
        agent: AgentId,
        turn: &Turn,
        giver: &str,
    ) -> Result<(Standing, Option<Reason>, Option<Doing>), RuntimeError> {
        let (mail, is_lead) =
            (self.census.journal.pending_mail(&session::agent_stream(agent))?, agent == self.row.lead);
        if turn.is_busy() && self.pid.is_none() && mail.iter().any(is_stop) {
            // It is not gone on with: somebody has said so while nobody ran it.
            let stopped = || Reason::Failed(Reason::STOPPED.to_owned());
            let reason = Some(turn.waiting(&mail, is_lead)).filter(|count| *count > 0);
            return Ok((Standing::Stopped, Some(reason.map_or_else(stopped, Reason::unread)), None));
        }
        if !turn.is_busy() {
            return Ok(match turn.waiting(&mail, is_lead) {
                _ if turn.would_begin(&mail, is_lead) => {
                    // Whoever runs it reads such a letter at once, unless something must be made first.
                    let is_made = is_lead && mail.iter().any(|letter| letter.kind == Kind::TeamRequest);
                    let reason = is_made.then(|| Reason::WaitingFor(Reason::COPIES.to_owned()));
                    (Standing::Starting, reason, None)
                }
                0 if self.census.takes_none(self.row.session, turn, &mail)? => {
                    let name = turn.mate().map(|mate| mate.name.as_str()).unwrap_or_default();
                    (Standing::Stopped, Some(Reason::Blocked(format!("{}{name}", Reason::CLAIMS))), None)
                }
                // It is gone on with where somebody says so, and does nothing by itself until it is written to.
                0 if turn.mate().is_some() && turn.gone().is_none() && turn.halted().is_some_and(is_by_person) => {
                    (Standing::Stopped, last(turn), None)
                }
                0 => (Standing::Ready, last(turn), None),
                count => (Standing::Stopped, Some(Reason::unread(count)), None),
            });
        }
        let pending = turn.pending();
        let waits = |effect: &Effect| match effect {
            // A plan is put before whoever gave it something to do.
            Effect::Ask { action, .. } if action.deed == Deed::Propose => Some(giver.to_owned()),
            Effect::Ask { .. } => Some(Reason::YOU.to_owned()),
            Effect::RunTool { key, action, .. } => turn.call(key).and_then(|call| match call.tool.as_str() {
                NEED_CLARIFY => Some(giver.to_owned()),
                tool if team_tools::answers_by_mail(tool, action.deed) => Some(action.target.clone()),
                _ => None,
            }),
            _ => None,
        };
        let all: Vec<String> = pending.iter().filter_map(waits).collect();
        let doing = pending.first().map(|effect| doing(turn, effect));
        if !pending.is_empty() && all.len() == pending.len() {
            return Ok((Standing::Ready, Some(Reason::WaitingFor(all.join(", "))), doing));
        }
        Ok((Standing::Busy, None, doing))
    }

    fn person(&self, row: &AgentRow, turn: &Turn) -> Person {
        let assignment = row.assignment.as_ref();
        let ledger = turn.ledger();
        let calling = turn.calling().map(|intent| &intent.model);
        let model = calling.or(turn.settings().map(|settings| &settings.model));
        Person {
            agent: Some(row.agent),
            name: row.name.clone(),
            role: row.role.clone(),
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
            state: Standing::Ready,
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
        let doing = self.stops.iter().any(stops).then_some(Doing::Stopping);
        person = self.run(person);
        person.doing = doing.or(person.doing);
        self.people.push(person);
    }

    /// Somebody that nobody runs does nothing, whatever it was at.
    fn run(&self, mut person: Person) -> Person {
        if self.pid.is_none() {
            person.state = Standing::Stopped;
            let mut words = format!("no process runs this session: max-team -r {}", self.row.session);
            match person.reason.take() {
                Some(Reason::Blocked(why)) if why.starts_with(Reason::LETTERS) || why.starts_with(Reason::CLAIMS) => {
                    words = format!("{why}; {words}")
                }
                Some(Reason::Failed(why)) if why == Reason::STOPPED => words = format!("{why}; {words}"),
                Some(Reason::WaitingFor(what)) if what == Reason::COPIES => {
                    words = format!("{}; {words}", Reason::TEAM)
                }
                _ => {}
            }
            (person.reason, person.doing) = (Some(Reason::Blocked(words)), None);
        }
        person
    }
}

/// Where somebody stands by what its plan says.
fn of_task(view: &TaskView<'_>) -> Option<(Standing, Option<Reason>, Option<Doing>)> {
    let ready = |reason: Reason| Some((Standing::Ready, Some(reason), None));
    match &view.waits {
        Waits::Checks => Some((Standing::Busy, None, Some(Doing::Checked))),
        Waits::Retry { at_ms } => {
            let reason = Reason::Failed(view.error.to_owned());
            Some((Standing::Ready, Some(reason), Some(Doing::Retrying { at_ms: *at_ms })))
        }
        Waits::Ruling => ready(Reason::Blocked(format!("{}{}", Reason::DECISION, view.error))),
        Waits::Budget => ready(Reason::Blocked(Reason::BUDGET.to_owned())),
        Waits::Answer(_) => ready(Reason::WaitingFor(Reason::LEAD.to_owned())),
        Waits::Place => ready(Reason::WaitingFor(Reason::PLACE.to_owned())),
        Waits::Server => Some((Standing::Ready, Some(Reason::WaitingFor(Reason::SERVER.to_owned())), None)),
        Waits::No | Waits::For(_) | Waits::Approval => None,
    }
}

fn doing(turn: &Turn, effect: &Effect) -> Doing {
    match effect {
        Effect::CallModel(intent) => Doing::Calling { model: intent.model.name.clone(), attempt: intent.attempt },
        Effect::Prepare(_) => Doing::Preparing,
        Effect::RunTool { key, action, .. } => {
            let tool = turn.call(key).map_or_else(String::new, |call| call.tool.clone());
            Doing::Running { tool, target: action.target.clone() }
        }
        Effect::Ask { tool, action, .. } => Doing::Asking { tool: tool.clone(), target: action.target.clone() },
        Effect::Sleep { until_ms } => Doing::Retrying { at_ms: *until_ms },
        Effect::Afford => Doing::Affording,
        Effect::CancelAll => Doing::Stopping,
    }
}

/// What came of what it did last.
fn last(turn: &Turn) -> Option<Reason> {
    Some(Reason::of(&turn.last()?.end))
}
