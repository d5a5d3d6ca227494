//! Letters that people write from anywhere: answers, decisions, stops.
//!
//! A letter needs no open session: whoever owns it hears of it by a nudge, or finds it when it is opened. Whoever
//! answers first wins; everybody later is told who did, and where.

use max_team_core::id::{EnvelopeId, PlanId, QuestionId, SessionId};
use max_team_core::message::{Envelope, Kind, Principal};
use max_team_core::plan::event::{About, Say};
use max_team_core::policy::{Answer, By};
use max_team_journal::{Journal, Strength};
use serde_json::{Value, json};

use crate::error::RuntimeError;
use crate::house::{commit_at, now_ms};
use crate::plan::{about_words, plan_stream};
use crate::rows::{self, AgentRow, AnsweredRow, InboxRow, Matter, PlanEndRow, PlanRow};

/// A question with who asks it.
#[derive(Debug, Clone)]
pub struct Pending {
    /// The question.
    pub row: InboxRow,
    /// The session it belongs to.
    pub session: Option<SessionId>,
    /// Who asks: a member's name, or `plan`.
    pub who: String,
    /// The plan it is about, or that the asker works in.
    pub plan: Option<PlanId>,
    /// The task that the asker works on.
    pub task: Option<String>,
}

impl Pending {
    /// The question in one line.
    pub fn words(&self) -> String {
        match &self.row.matter {
            Matter::Plan(about) => about_words(about),
            Matter::Tool { tool, action } if action.target.is_empty() => format!("may it use {tool}?"),
            Matter::Tool { tool, action } => format!("{tool}: {}", action.target),
        }
    }
}

/// What waits for people, and how to answer it.
#[derive(Debug)]
pub struct Post<'j> {
    journal: &'j Journal,
}

impl<'j> Post<'j> {
    /// Looks into a journal.
    pub fn new(journal: &'j Journal) -> Self {
        Self { journal }
    }

    /// Everything that waits for a person, oldest first.
    pub fn inbox(&self) -> Result<Vec<Pending>, RuntimeError> {
        let mut pending = Vec::new();
        for (_, row) in rows::rows::<InboxRow>(self.journal, rows::INBOX)? {
            pending.extend(self.pending(row)?);
        }
        pending.reverse();
        Ok(pending)
    }

    fn pending(&self, row: InboxRow) -> Result<Option<Pending>, RuntimeError> {
        if let Some(plan) = row.address.strip_prefix("plan/") {
            let ended: Option<PlanEndRow> = rows::row(self.journal, rows::PLAN_END, plan)?;
            if ended.is_some() {
                return Ok(None);
            }
            let known: Option<PlanRow> = rows::row(self.journal, rows::PLAN, plan)?;
            let (session, plan) = (known.as_ref().map(|known| known.session), plan.parse().ok());
            let task = match &row.matter {
                Matter::Plan(About::Start { task } | About::Failure { task, .. }) => Some(task.clone()),
                _ => None,
            };
            return Ok(Some(Pending { row, session, who: "plan".to_owned(), plan, task }));
        }
        let agent = row.address.strip_prefix("agent/").unwrap_or_default().to_owned();
        let known = agent_row(self.journal, &agent)?;
        let assignment = known.as_ref().and_then(|known| known.assignment.clone());
        Ok(Some(Pending {
            session: known.as_ref().map(|known| known.session),
            who: known.map_or_else(String::new, |known| known.name),
            plan: assignment.as_ref().and_then(|assignment| assignment.plan),
            task: assignment.filter(|assignment| assignment.plan.is_some()).map(|assignment| assignment.task),
            row,
        }))
    }

    /// The question of that id, or the only one whose id ends so.
    pub fn find(&self, id: &str) -> Result<Pending, RuntimeError> {
        let inbox = self.inbox()?;
        let mut found = inbox.into_iter().filter(|pending| {
            let full = pending.row.question.to_string();
            let plan = pending.plan.map(|plan| plan.to_string()).unwrap_or_default();
            full == id || full.ends_with(id) || (pending.who == "plan" && (plan == id || plan.ends_with(id)))
        });
        let one = found.next();
        match (one, found.next()) {
            (Some(one), None) => Ok(one),
            (Some(_), Some(_)) => Err(RuntimeError::Ambiguous(id.to_owned())),
            (None, _) => Err(self.gone(id)),
        }
    }

    fn gone(&self, id: &str) -> RuntimeError {
        let answered: Option<AnsweredRow> = rows::row(self.journal, rows::ANSWERED, id).ok().flatten();
        match answered {
            Some(row) => RuntimeError::Answered { by: row.by.name(), said: row.said, at_ms: row.at_ms },
            None => RuntimeError::NoQuestion(id.to_owned()),
        }
    }

    /// How a question was answered, if it was.
    pub fn answered(&self, question: QuestionId) -> Result<Option<AnsweredRow>, RuntimeError> {
        rows::row(self.journal, rows::ANSWERED, &question.to_string())
    }

    /// Says yes or no to an agent. Returns the mailbox it went to.
    pub async fn answer(
        &self,
        by: &Principal,
        key: EnvelopeId,
        question: QuestionId,
        answer: &Answer,
    ) -> Result<String, RuntimeError> {
        let to = self.address(question)?;
        let answer = match &answer.by {
            By::Person(_) => Answer { by: By::Person(format!("{} at {}", by.user, by.door)), ..answer.clone() },
            By::Rule(_) | By::Nobody(_) => answer.clone(),
        };
        let body = json!({ "question": question, "answer": answer });
        self.send(by, key, to, Kind::PermissionResponse, body).await
    }

    /// Says something about a plan. Returns the mailbox it went to.
    pub async fn decide(
        &self,
        by: &Principal,
        key: EnvelopeId,
        question: QuestionId,
        say: &Say,
    ) -> Result<String, RuntimeError> {
        let to = self.address(question)?;
        let body = json!({ "question": question, "say": say, "by": by });
        self.send(by, key, to, Kind::PlanApprovalResponse, body).await
    }

    /// Stops a plan, or one of its tasks. Returns the mailbox it went to.
    pub async fn stop(
        &self,
        by: &Principal,
        key: EnvelopeId,
        plan: PlanId,
        task: Option<&str>,
    ) -> Result<String, RuntimeError> {
        let who = format!("{} at {}", by.user, by.door);
        let mut body = json!({ "by": who });
        if let (Some(task), Some(body)) = (task, body.as_object_mut()) {
            body.insert("task".to_owned(), Value::from(task));
        }
        self.send(by, key, plan_stream(plan), Kind::Shutdown, body).await
    }

    fn address(&self, question: QuestionId) -> Result<String, RuntimeError> {
        let id = question.to_string();
        // A plan's question is filed under its own id, an agent's under the agent.
        if let Some(row) = rows::row::<InboxRow>(self.journal, rows::INBOX, &id)? {
            return Ok(row.address);
        }
        let rows = rows::rows::<InboxRow>(self.journal, rows::INBOX)?;
        let found = rows.into_iter().find(|(_, row)| row.question == question);
        found.map(|(_, row)| row.address).ok_or_else(|| self.gone(&id))
    }

    async fn send(
        &self,
        by: &Principal,
        id: EnvelopeId,
        to: String,
        kind: Kind,
        body: Value,
    ) -> Result<String, RuntimeError> {
        let sent_at_ms = now_ms();
        let mut commit = commit_at(sent_at_ms);
        let (from, address) = (by.address(), to.clone());
        commit.sends.push(Envelope { id, from, to, kind, body, reply_to: None, cause: None, sent_at_ms });
        // It lets something run, or stops it: it must not be forgotten.
        commit.strength = Strength::Full;
        self.journal.commit(commit).await?;
        Ok(address)
    }
}

/// What is known of an agent.
pub(crate) fn agent_row(journal: &Journal, agent: &str) -> Result<Option<AgentRow>, RuntimeError> {
    let Some(session) = rows::row::<String>(journal, rows::AGENT, agent)? else { return Ok(None) };
    rows::row(journal, &rows::agents_of(&session), agent)
}

/// The session of an agent or a plan, by its address.
pub(crate) fn session_at(journal: &Journal, address: &str) -> Option<SessionId> {
    if let Some(agent) = address.strip_prefix("agent/") {
        return rows::row::<String>(journal, rows::AGENT, agent).ok()??.parse().ok();
    }
    let plan = address.strip_prefix("plan/")?;
    rows::row::<String>(journal, rows::PLAN_OPEN, plan).ok()??.parse().ok()
}
