//! Read-only queries over the journal: plans, agents, costs.
//!
//! A census needs neither a runtime nor ownership: it reads rows and folds streams, also while another process runs
//! the session. It never writes, and its answers are as old as the moment of the query.

mod cast;
mod claimers;
mod costs;
mod files;
mod grants;
mod mail;
mod people;
mod purpose;
pub(crate) mod record;
mod roll;
mod span;
mod trace;

use max_team_core::event::Event;
use max_team_core::id::{AgentId, PlanId, SessionId, TurnId};
use max_team_core::message::MessageKind;
use max_team_core::plan::{Plan, PlanState};
use max_team_core::teammate::CommandBegun;
use max_team_core::turn::{Turn, is_stop};
use max_team_journal::{Journal, WorkerInfo};
use serde::Serialize;

use crate::driver;
use crate::error::RuntimeError;
use crate::maintenance::{Tombstone, gone};
use crate::plan::plan_stream;
use crate::rows::{self, AgentRow, PlanEndRow, PlanRow, TeammateRow};
use crate::session::{self, Sessions};
use crate::user_mail;

pub(crate) use cast::Cast;
pub use costs::Cost;
pub use mail::{Fate, MailRecord};
pub use people::Person;
pub use record::{
    Allowed, AnswerEvidence, EvidenceItem, Filter, Record, RecordText, RefusedEvidence, RuleText, Set, Unmet, WalkStep,
    WalkSummary,
};
pub use roll::{Enrolled, Roll};
pub use span::{SpanAuthor, SpanName, SpanOutcome, ToolEnd};
pub use trace::{Span, SpanKind};

/// Sessions that are searched, last used first.
const SESSIONS_MAX: usize = 256;

/// Read-only queries over a journal.
#[derive(Debug, Clone, Copy)]
pub struct ReadModel<'j> {
    journal: &'j Journal,
}

/// A plan in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanLine {
    /// The plan as it was proposed.
    pub row: PlanRow,
    /// How it ended, if it did.
    pub end: Option<PlanEndRow>,
}

impl<'j> ReadModel<'j> {
    pub fn new(journal: &'j Journal) -> Self {
        Self { journal }
    }

    /// The living process that runs a session.
    pub fn owner(&self, session: SessionId) -> Result<Option<WorkerInfo>, RuntimeError> {
        Ok(self.journal.owner(&session::stream(session))?)
    }

    /// The folder that a session works in.
    pub fn folder(&self, session: SessionId) -> Result<String, RuntimeError> {
        Ok(Sessions::new(self.journal).row(session)?.cwd)
    }

    /// The present state of a plan.
    pub fn plan(&self, plan: PlanId) -> Result<Plan, RuntimeError> {
        Ok(fold_plan(self.journal, plan)?.0)
    }

    /// The events of a plan, with their times.
    pub fn plan_events(&self, plan: PlanId) -> Result<Vec<(i64, Event)>, RuntimeError> {
        self.events(&plan_stream(plan))
    }

    /// The events of an agent, with their times.
    pub fn agent_events(&self, agent: AgentId) -> Result<Vec<(i64, Event)>, RuntimeError> {
        self.events(&session::agent_stream(agent))
    }

    /// The present state of an agent.
    pub fn turn(&self, agent: AgentId) -> Result<Turn, RuntimeError> {
        Ok(fold_agent(self.journal, agent)?.0)
    }

    /// Background commands that are not known to have ended, of one agent or of all agents in a session.
    pub fn commands(
        &self,
        session: SessionId,
        of: Option<AgentId>,
    ) -> Result<Vec<(AgentRow, CommandBegun)>, RuntimeError> {
        let mut found = Vec::new();
        for (key, name) in rows::rows::<String>(self.journal, rows::COMMANDS)?.into_iter().rev() {
            let Some((agent, id)) = key.split_once('/') else { continue };
            let row = user_mail::agent_row(self.journal, agent)?;
            let is_meant = |row: &AgentRow| row.session == session && of.is_none_or(|of| row.agent == of);
            let Some(row) = row.filter(is_meant) else { continue };
            // An ended agent has no running commands, even if an older version has not recorded their end.
            let teammate =
                rows::row::<TeammateRow>(self.journal, &rows::teammates_of(&session.to_string()), &row.name)?;
            if teammate.is_none_or(|teammate| teammate.agent != row.agent || teammate.gone.is_none()) {
                found.push((row, CommandBegun { id: id.to_owned(), name }));
            }
        }
        Ok(found)
    }

    /// All plans, newest first.
    pub fn plans(&self) -> Result<Vec<PlanLine>, RuntimeError> {
        let mut plans = Vec::new();
        for (key, row) in rows::rows::<PlanRow>(self.journal, rows::PLAN)? {
            plans.push(PlanLine { row, end: rows::row(self.journal, rows::PLAN_END, &key)? });
        }
        Ok(plans)
    }

    /// The plans of one session, newest first. Plans that are older than the session are not read.
    pub fn plans_of(&self, session: SessionId) -> Result<Vec<PlanLine>, RuntimeError> {
        let began =
            session.uuid().get_timestamp().and_then(|at| i64::try_from(at.to_unix().0).ok()).unwrap_or_default();
        let rows = rows::rows_since::<PlanRow>(self.journal, rows::PLAN, began.saturating_mul(1_000))?;
        let mine = rows.into_iter().filter(|(_, row)| row.session == session);
        mine.map(|(key, row)| Ok(PlanLine { row, end: rows::row(self.journal, rows::PLAN_END, &key)? })).collect()
    }

    /// Unfinished plans of one session or of all, oldest first.
    pub fn open_plans(&self, session: Option<SessionId>) -> Result<Vec<PlanId>, RuntimeError> {
        let mine = session.map(|session| session.to_string());
        let found = rows::rows::<String>(self.journal, rows::PLAN_OPEN)?;
        let of_mine = found.into_iter().filter(|(_, of)| mine.as_ref().is_none_or(|mine| mine == of));
        let mut plans: Vec<PlanId> = of_mine.filter_map(|(key, _)| key.parse().ok()).collect();
        plans.reverse();
        Ok(plans)
    }

    /// The session that an open plan belongs to.
    pub fn session_of(&self, plan: PlanId) -> Result<Option<SessionId>, RuntimeError> {
        let key = plan.to_string();
        if let Some(row) = rows::row::<PlanRow>(self.journal, rows::PLAN, &key)? {
            return Ok(Some(row.session));
        }
        Ok(rows::row::<String>(self.journal, rows::PLAN_OPEN, &key)?.and_then(|session| session.parse().ok()))
    }

    /// Whether the user stopped a plan, and has neither continued it nor given it up. An unread stop counts.
    pub fn is_plan_held(&self, plan: PlanId) -> Result<bool, RuntimeError> {
        Ok(self.plan(plan)?.is_held() || self.journal.pending_mail(&plan_stream(plan))?.iter().any(is_stop))
    }

    /// Whether a plan of a session runs, or waits for anything but its approval.
    pub fn has_running_plan(&self, session: SessionId) -> Result<bool, RuntimeError> {
        for plan in self.open_plans(Some(session))? {
            if self.plan(plan)?.is_approved() && !self.is_plan_held(plan)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The state of a plan, in one word.
    pub fn plan_state(&self, plan: &Plan) -> Result<PlanState, RuntimeError> {
        let owner = plan.session().map(|session| self.owner(session)).transpose()?.flatten();
        let is_told_to_stop = match plan.id() {
            Some(id) => self.stopping(id)? == Some(None) || self.is_plan_held(id)?,
            None => false,
        };
        Ok(plan.state(owner.is_some(), is_told_to_stop))
    }

    /// What of an open plan is being stopped: all of it, or one of its tasks.
    pub fn stopping(&self, plan: PlanId) -> Result<Option<Option<String>>, RuntimeError> {
        if self.plan_end(plan)?.is_some() {
            return Ok(None);
        }
        // An unread stop counts: the plan does nothing else before it reads it.
        let mail = self.journal.pending_mail(&plan_stream(plan))?;
        let told = mail.iter().filter(|envelope| envelope.kind == MessageKind::Shutdown && !is_stop(envelope));
        let mut told: Vec<Option<String>> = told.map(|envelope| envelope.stop().task.map(str::to_owned)).collect();
        // All of it says more than one task of it.
        told.sort_unstable();
        if let Some(task) = told.into_iter().next() {
            return Ok(Some(task));
        }
        let plan = self.plan(plan)?;
        let task = plan.stopping().next().and_then(|task| plan.task(task)).map(|view| view.task.id.clone());
        Ok(if plan.is_stopped() { Some(None) } else { task.map(Some) })
    }

    /// How a plan ended, if it did.
    pub fn plan_end(&self, plan: PlanId) -> Result<Option<PlanEndRow>, RuntimeError> {
        rows::row(self.journal, rows::PLAN_END, &plan.to_string())
    }

    /// The plan with that id, or the only one whose id begins or ends with it; `None` if there is none.
    pub fn find_plan(&self, text: &str) -> Result<Option<PlanId>, RuntimeError> {
        let open = rows::rows::<String>(self.journal, rows::PLAN_OPEN)?.into_iter().map(|(key, _)| key);
        let known = rows::rows::<PlanRow>(self.journal, rows::PLAN)?.into_iter().map(|(key, _)| key);
        only(open.chain(known), text)
    }

    /// The session with that id, or the only one whose id begins or ends with it; `None` if there is none.
    pub fn find_session(&self, text: &str) -> Result<Option<SessionId>, RuntimeError> {
        let sessions = Sessions::new(self.journal);
        if let Ok(id) = text.parse() {
            return Ok(sessions.row(id).ok().map(|row| row.session));
        }
        let mut meant = Vec::new();
        sessions.each_id(|id| meant.extend(Some(id).filter(|id| means(text, id))))?;
        only(meant.into_iter(), text)
    }

    /// The tombstone of the session that a text names, if it was erased.
    pub fn forgotten(&self, text: &str) -> Result<Option<Tombstone>, RuntimeError> {
        gone(self.journal, |id| id == text || means(text, id))
    }

    /// The session or plan that a text names; `None` if there is none.
    pub fn find(&self, text: &str) -> Result<Option<IdTarget>, RuntimeError> {
        match (self.find_session(text)?, self.find_plan(text)?) {
            (Some(session), Some(plan)) => {
                Err(RuntimeError::ambiguous(text, vec![session.to_string(), plan.to_string()]))
            }
            (session, plan) => Ok(session.map(IdTarget::Session).or(plan.map(IdTarget::Plan))),
        }
    }

    /// The agents of a session, in the order they began.
    pub fn agents(&self, session: SessionId) -> Result<Vec<AgentRow>, RuntimeError> {
        let found = rows::rows(self.journal, &rows::agents_of(&session.to_string()))?;
        Ok(found.into_iter().rev().map(|(_, row)| row).collect())
    }

    /// The agent with a name, a handle or the end of an id: in one session, or in the last used session that has such
    /// an agent; `None` if there is none.
    pub fn find_agent(&self, session: Option<SessionId>, text: &str) -> Result<Option<AgentRow>, RuntimeError> {
        let sessions = match session {
            Some(session) => vec![session],
            None => Sessions::new(self.journal).list(SESSIONS_MAX)?.into_iter().map(|row| row.session).collect(),
        };
        for session in sessions {
            let mut meant = self.agents(session)?;
            meant.retain(|row| row.is(text));
            if meant.len() > 1
                && let Some(teammate) =
                    rows::row::<TeammateRow>(self.journal, &rows::teammates_of(&session.to_string()), text)?
            {
                // The agent that has the name now, not those that had it before.
                meant.retain(|row| row.agent == teammate.agent);
            }
            if meant.len() > 1 {
                return Err(RuntimeError::ambiguous(text, meant.iter().map(AgentRow::handle).collect()));
            }
            if let Some(row) = meant.pop() {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    fn events(&self, stream: &str) -> Result<Vec<(i64, Event)>, RuntimeError> {
        rows::events_of(self.journal, stream)
    }

    /// Whether an agent has an unfinished turn; reads one entry, and folds the stream only if that is not enough.
    fn is_busy(&self, agent: AgentId) -> Result<bool, RuntimeError> {
        let stream = session::agent_stream(agent);
        let Some(before) = self.journal.head(&stream)?.checked_sub(1) else { return Ok(false) };
        let last = self.journal.read(&stream, before, 1)?;
        match last.first().map(|entry| &*entry.event) {
            None | Some("agent_started" | "forked" | "turn_ended" | "agent_ended") => Ok(false),
            // These events come both within a turn and between two.
            Some(
                "configured" | "nudged" | "requested" | "responded" | "letter_refused" | "granted" | "command_begun"
                | "command_over" | "files_changed" | "interrupted",
            ) => Ok(self.turn(agent)?.is_busy()),
            Some(_) => Ok(true),
        }
    }
}

/// What an id stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IdTarget {
    Session(SessionId),
    Plan(PlanId),
}

/// The only id that a text names.
fn only<T: std::str::FromStr>(ids: impl Iterator<Item = String>, text: &str) -> Result<Option<T>, RuntimeError> {
    let mut found: Vec<String> = ids.filter(|id| means(text, id)).collect();
    found.sort_unstable();
    found.dedup();
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(one.parse().ok()),
        _ => Err(RuntimeError::ambiguous(text, found)),
    }
}

/// Whether a text names an id: all of it, its beginning (with or without its kind), or its end, as lists show it.
pub(crate) fn means(text: &str, id: &str) -> bool {
    let bare = id.split_once('_').map_or(id, |(_, bare)| bare);
    !text.is_empty() && (id.starts_with(text) || bare.starts_with(text) || id.ends_with(text))
}

/// Folds a plan's stream; returns also how many entries it has.
pub(crate) fn fold_plan(journal: &Journal, plan: PlanId) -> Result<(Plan, u64), RuntimeError> {
    driver::fold(journal, &plan_stream(plan))
}

/// Folds an agent's stream; returns also how many entries it has.
pub(crate) fn fold_agent(journal: &Journal, agent: AgentId) -> Result<(Turn, u64), RuntimeError> {
    let (mut turn, head) = driver::fold::<Turn>(journal, &session::agent_stream(agent))?;
    if let Some((_, session, _)) = turn.identity().filter(|_| turn.teammate().is_some()) {
        turn.hold_idle(stopped_since(journal, session)?);
    }
    Ok((turn, head))
}

/// The turn id of the last stop of a session. A row has it, so that the stop need not be written to each idle teammate.
pub(crate) fn stopped_since(journal: &Journal, session: SessionId) -> Result<Option<TurnId>, RuntimeError> {
    rows::stopped_since(journal, Sessions::new(journal).row(session)?.lead)
}
