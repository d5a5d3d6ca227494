//! Going on with those whom an interrupt has stopped: each with what it was at, and for whoever waited for that.
//!
//! A lead is spoken to as always. Those who work for it without being waited for are given their task once more; what they had
//! done is in their conversation.

use max_team_core::id::SessionId;
use max_team_core::message::{Assignment, Kind, Principal};
use max_team_core::policy::By;
use max_team_core::turn::{Halted, is_stop};
use serde_json::json;

use super::write::letter;
use super::{Post, Reader, Written, person};
use crate::agent::{TIME_OVER, derived};
use crate::census::{Census, fold_agent};
use crate::error::RuntimeError;
use crate::rows::AgentRow;
use crate::session::agent_stream;
use crate::shared::{commit_at, now_ms};

/// What somebody is told who was stopped and is to go on.
pub const CONTINUE: &str = include_str!("../../../../prompts/continue.md");

/// What somebody is told who was stopped with nothing but unread letters.
pub const READ_ON: &str = include_str!("../../../../prompts/read_on.md");

/// What somebody is told who takes tasks by itself and was stopped before it could.
const TAKE_ON: &str = include_str!("../../../../prompts/take_on.md");

/// Whether words are those that the program tells whoever goes on: nobody wrote them.
pub fn is_go_on(words: &str) -> bool {
    [CONTINUE, READ_ON, TAKE_ON].iter().any(|own| own.trim_end() == words.trim_end())
}

/// Somebody who was stopped.
struct Stopped {
    row: AgentRow,
    /// What it was at; nothing, if it was at rest and only what it was written waits, or what it could take.
    given: Option<Assignment>,
    /// Whether letters wait for it.
    is_held: bool,
    /// Where its stream ends.
    head: u64,
}

impl Post<'_> {
    /// The teammates and the tasks in the background of a session that a person has interrupted, whose letters wait since then, or
    /// that the session's budget has cut off, and that have begun nothing since.
    pub fn stopped(&self, session: SessionId) -> Result<Vec<Reader>, RuntimeError> {
        Ok(self.halted(session)?.iter().map(|halted| reader(&halted.row)).collect())
    }

    /// Lets these of them go on; without names, all.
    pub async fn go_on(&self, by: &Principal, session: SessionId, to: &[String]) -> Result<Written, RuntimeError> {
        let mut halted = self.halted(session)?;
        if let Some(name) = to.iter().find(|name| !halted.iter().any(|halted| halted.row.is(name))) {
            let there = halted.iter().map(|halted| reader(&halted.row).name).collect();
            return Err(RuntimeError::NotStopped { name: name.clone(), there });
        }
        halted.retain(|halted| to.is_empty() || to.iter().any(|name| halted.row.is(name)));
        let at_ms = now_ms();
        let (mut commit, mut readers) = (commit_at(at_ms), Vec::new());
        for Stopped { row, given, is_held, head } in halted {
            let reader = reader(&row);
            // Whoever says it twice before it is heard says it once.
            let id = derived(&[reader.address().as_bytes(), &head.to_le_bytes(), b"go on"]);
            if !self.journal.has_mail(id)? {
                let text = if is_held { READ_ON } else { TAKE_ON };
                let mut body = json!({ "text": text.trim_end(), "by": person(by), "session": session });
                let kind = if given.is_some() { Kind::TaskAssign } else { Kind::UserInput };
                if let (Some(given), Some(body)) = (given, body.as_object_mut()) {
                    let assignment = Assignment { attempt: given.attempt + 1, ..given };
                    body.insert("text".to_owned(), json!(CONTINUE.trim_end()));
                    body.insert("assignment".to_owned(), json!(assignment));
                }
                commit.sends.push(letter(by, id, &reader, kind, body));
            }
            readers.push(reader);
        }
        let letters = self.keep(commit).await?;
        Ok(Written { readers, letters, said: None, at_ms })
    }

    /// Those who were stopped, with what they were at. Whom an agent has stopped, or the time, is not meant to go on.
    fn halted(&self, session: SessionId) -> Result<Vec<Stopped>, RuntimeError> {
        let census = Census::new(self.journal);
        let agents = census.agents(session)?;
        let is_person = |halted: &Halted| match &halted.who {
            Some(who) => matches!(who, By::Person(_)),
            // Entries of before have only a name.
            None => halted.by != TIME_OVER && !agents.iter().any(|row| row.name == halted.by),
        };
        let mut found = Vec::new();
        // Whoever works in a plan goes on with that.
        let is_given = |row: &&AgentRow| row.assignment.as_ref().is_some_and(|given| given.plan.is_none());
        for row in agents.iter().filter(is_given) {
            let mail = self.journal.pending_mail(&agent_stream(row.agent))?;
            // Most have: their conversations are not read again.
            if mail.is_empty() && census.is_done(row.agent)? {
                continue;
            }
            let (turn, head) = fold_agent(self.journal, row.agent)?;
            if !turn.is_apart(row.assignment.as_deref(), &mail) {
                continue;
            }
            // More money for the session is none for an agent that has used up a budget of its own.
            let has_own_budget = turn.settings().is_some_and(|settings| !crate::plan::cap(settings).is_empty());
            let goes_on = |halted: &&Halted| match halted.is_out_of_budget() {
                true => !has_own_budget,
                false => is_person(halted),
            };
            let cut_off = turn.halted().filter(goes_on);
            let is_unpaid = cut_off.is_some_and(Halted::is_out_of_budget) && turn.gone().is_none();
            let halted = cut_off.and_then(|halted| halted.assignment.as_deref());
            // Whoever was stopped where nobody ran it is in the middle of it until it reads that.
            let is_halting = turn.is_busy() && mail.iter().any(is_stop);
            let halted = if is_halting { turn.assignment() } else { halted };
            // A call of its lead's that was stopped is its lead's to make again.
            let is_ours = |given: &Assignment| !given.life.is_call() || given.is_for_user();
            let given = halted.filter(|given| turn.gone().is_none() && is_ours(given)).cloned();
            let is_held = turn.gone().is_none() && turn.waiting(&mail, false) > 0;
            if given.is_some() || is_held || is_unpaid || census.takes_none(session, &turn, &mail)? {
                found.push(Stopped { row: row.clone(), given, is_held, head });
            }
        }
        Ok(found)
    }
}

/// Somebody by the name that tells them from all others.
fn reader(row: &AgentRow) -> Reader {
    let is_mate = row.assignment.as_ref().is_some_and(|given| given.life.mate().is_some());
    let name = if is_mate { row.name.clone() } else { row.handle() };
    Reader { name, agent: row.agent, lead: false }
}
