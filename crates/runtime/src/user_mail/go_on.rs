//! Continues interrupted agents, each with its interrupted work, which is reported to the same recipient as before.
//!
//! A lead is continued by a normal message. Teammates and background tasks get their assignment once more; their
//! conversation shows what they had done.

use std::borrow::Cow;

use max_team_core::body::{Body, Task, TaskInstruction, UserInput};
use max_team_core::id::{PlanId, SessionId};
use max_team_core::message::{Assignment, Envelope, MessageKind, Principal, Role};
use max_team_core::policy::DecidedBy;
use max_team_core::turn::{HaltedTurn, is_stop};

use super::write::envelope;
use super::{Recipient, SentMessages, UserMail};
use crate::agent::{TIME_OVER, derived};
use crate::error::RuntimeError;
use crate::handle::require;
use crate::plan::plan_stream;
use crate::read_model::{ReadModel, fold_agent};
use crate::rows::AgentRow;
use crate::session::agent_stream;
use crate::shared::{commit_at, now_ms};

/// The message to an agent whose work was interrupted.
pub const CONTINUE: &str = include_str!("../../../../prompts/continue.md");

/// The message to an agent that was stopped with unread messages but no work.
pub const READ_ON: &str = include_str!("../../../../prompts/read_on.md");

/// The message to an agent that claims tasks by itself and was stopped before it claimed one.
const TAKE_ON: &str = include_str!("../../../../prompts/take_on.md");

/// Whether a text is one of the program's own messages to continue, not written by a person.
pub fn is_go_on(words: &str) -> bool {
    [CONTINUE, READ_ON, TAKE_ON].iter().any(|own| own.trim_end() == words.trim_end())
}

/// An agent that was stopped.
struct Stopped {
    row: AgentRow,
    /// Its interrupted work; `None` if it was idle and only has unread messages or a task to claim.
    given: Option<Assignment>,
    /// Whether unread messages are on hold for it.
    is_held: bool,
    /// The head of its stream.
    head: u64,
}

impl UserMail<'_> {
    /// The teammates and background tasks of a session that a person has interrupted, that have messages on hold since
    /// then, or that the session's budget has cut off, and that have begun nothing since.
    pub fn stopped(&self, session: SessionId) -> Result<Vec<Recipient>, RuntimeError> {
        Ok(self.halted(session)?.iter().map(|halted| reader(&halted.row)).collect())
    }

    /// The plans of a session that the user stopped, and has neither continued nor given up.
    pub fn stopped_plans(&self, session: SessionId) -> Result<Vec<PlanId>, RuntimeError> {
        let census = ReadModel::new(self.journal);
        let mut plans = Vec::new();
        for plan in census.open_plans(Some(session))? {
            plans.extend(census.is_plan_held(plan)?.then_some(plan));
        }
        Ok(plans)
    }

    /// Continues these agents; without names, all of them, and the stopped plans.
    pub async fn go_on(&self, by: &Principal, session: SessionId, to: &[String]) -> Result<SentMessages, RuntimeError> {
        require(by, Role::Member)?;
        let mut halted = self.halted(session)?;
        if let Some(name) = to.iter().find(|name| !halted.iter().any(|halted| halted.row.is(name))) {
            let there = halted.iter().map(|halted| reader(&halted.row).name).collect();
            return Err(RuntimeError::NotStopped { name: name.clone(), there });
        }
        halted.retain(|halted| to.is_empty() || to.iter().any(|name| halted.row.is(name)));
        let (at_ms, name) = (now_ms(), by.signature());
        let (mut commit, mut readers) = (commit_at(at_ms), Vec::new());
        for Stopped { row, given, is_held, head } in halted {
            let reader = reader(&row);
            // The id follows from the agent's state, so that a repeated command sends one message.
            let id = derived(&[reader.address().as_bytes(), &head.to_le_bytes(), b"go on"]);
            if !self.journal.has_mail(id)? {
                let (kind, body) = going_on(given, is_held, &name, session);
                commit.sends.push(envelope(by, id, &reader, kind, body));
            }
            readers.push(reader);
        }
        if to.is_empty() {
            for plan in self.stopped_plans(session)? {
                let head = self.journal.head(&plan_stream(plan))?;
                let id = derived(&[plan_stream(plan).as_bytes(), &head.to_le_bytes(), b"go on"]);
                let body = Body::Update(TaskInstruction { continues: true, by: &name, ..TaskInstruction::default() });
                commit.sends.push(Envelope::new(
                    id,
                    by.address(),
                    plan_stream(plan),
                    MessageKind::TaskUpdate,
                    body,
                    at_ms,
                ));
            }
        }
        let envelopes = self.keep(commit).await?;
        Ok(SentMessages { readers, envelopes, said: None, at_ms })
    }

    /// Agents that a person stopped, or that the session's budget cut off, with their interrupted work. An agent that
    /// another agent or a deadline stopped is not continued.
    fn halted(&self, session: SessionId) -> Result<Vec<Stopped>, RuntimeError> {
        let census = ReadModel::new(self.journal);
        let agents = census.agents(session)?;
        let is_person = |halted: &HaltedTurn| match &halted.who {
            Some(who) => matches!(who, DecidedBy::Person(_)),
            // Older entries have only a name.
            None => halted.by != TIME_OVER && !agents.iter().any(|row| row.name == halted.by),
        };
        let mut found = Vec::new();
        // A member of a plan continues with its plan.
        let is_given = |row: &&AgentRow| row.assignment.as_ref().is_some_and(|given| given.plan.is_none());
        for row in agents.iter().filter(is_given) {
            let mail = self.journal.pending_mail(&agent_stream(row.agent))?;
            // Most agents are done, and their streams are not folded. A claiming teammate may leave tasks because of
            // the stop.
            let is_claimer =
                row.assignment.as_ref().and_then(|given| given.life.teammate()).is_some_and(|teammate| teammate.claims);
            if mail.is_empty() && !is_claimer && census.is_done(row.agent)? {
                continue;
            }
            let (turn, head) = fold_agent(self.journal, row.agent)?;
            if !turn.has_no_waiter(row.assignment.as_deref(), &mail) {
                continue;
            }
            // A larger budget of the session does not help an agent that has used up a budget of its own.
            let has_own_budget = turn.settings().is_some_and(|settings| !crate::plan::cap(settings).is_empty());
            let goes_on = |halted: &&HaltedTurn| match halted.is_out_of_budget() {
                true => !has_own_budget,
                false => is_person(halted),
            };
            let cut_off = turn.halted().filter(goes_on);
            let is_unpaid = cut_off.is_some_and(HaltedTurn::is_out_of_budget) && turn.agent_end().is_none();
            let halted = cut_off.and_then(|halted| halted.assignment.as_deref());
            // A stop that was sent while no process ran the session is unread: the agent still counts as busy.
            let is_halting = turn.is_busy() && mail.iter().any(is_stop);
            let halted = if is_halting { turn.assignment() } else { halted };
            // A stopped call of the lead is repeated by the lead.
            let is_ours = |given: &Assignment| !given.life.is_call() || given.is_for_user();
            let given = halted.filter(|given| turn.agent_end().is_none() && is_ours(given)).cloned();
            let is_held = turn.agent_end().is_none() && turn.waiting(&mail, false) > 0;
            if given.is_some() || is_held || is_unpaid || census.takes_none(session, &turn, &mail)? {
                found.push(Stopped { row: row.clone(), given, is_held, head });
            }
        }
        Ok(found)
    }
}

/// The message that continues an agent: with its interrupted work, or with what it has not read or claimed.
fn going_on(given: Option<Assignment>, is_held: bool, by: &str, session: SessionId) -> (MessageKind, Body<'_>) {
    let session = Some(session);
    let Some(given) = given else {
        let text = if is_held { READ_ON } else { TAKE_ON }.trim_end();
        return (MessageKind::UserInput, Body::Input(UserInput { text, by, session, ..UserInput::default() }));
    };
    let assignment = Some(Cow::Owned(Assignment { attempt: given.attempt + 1, ..given }));
    let task = Task { text: CONTINUE.trim_end(), assignment, by, session, ..Task::default() };
    (MessageKind::TaskAssign, Body::Task(task))
}

/// An agent by its unique name.
fn reader(row: &AgentRow) -> Recipient {
    let is_teammate = row.assignment.as_ref().is_some_and(|given| given.life.teammate().is_some());
    let name = if is_teammate { row.name.clone() } else { row.handle() };
    Recipient { name, agent: row.agent, lead: false }
}
