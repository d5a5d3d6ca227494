//! Letters that people write from anywhere: answers, decisions, stops; `write` has the words to those who work for them.
//!
//! A letter needs no open session: whoever owns it hears of it by a nudge, or finds it when it is opened. Whoever
//! answers first wins; everybody later is told who did, and where.

mod go_on;
mod left;
mod reach;
mod see;
mod take_back;
mod write;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use max_team_core::event::Event;
use max_team_core::id::{AgentId, EnvelopeId, PlanId, QuestionId, SessionId, TurnId};
use max_team_core::message::{Envelope, Kind, Principal};
use max_team_core::plan::event::{About, PlanStopped, PlanUnasked, Say};
use max_team_core::plan::{Edit, Plan, Status, edit};
use max_team_core::policy::{Answer, By, Until};
use max_team_core::stop::newer;
use max_team_core::turn::is_stop;
use max_team_journal::{Journal, Strength};
use serde::Serialize;
use serde_json::{Value, json};

use crate::agent::{Halt, derived};
use crate::census::{self, Census, means};
use crate::error::RuntimeError;
use crate::plan::{about_words, plan_stream};
use crate::rows::{self, AgentRow, AnsweredRow, InboxRow, Matter, said};
use crate::session::{self, Sessions};
use crate::shared::{commit_at, new_id, now_ms};
use crate::tasks;

pub use go_on::{CONTINUE, READ_ON, is_go_on};
pub use left::Left;
pub use see::Shown;
pub(crate) use write::TO_ALL;
pub use write::{Parting, Reader, Written, letter_of};

/// Who asks, where it is no agent.
const PLAN: &str = "plan";

/// A question with who asks it.
#[derive(Debug, Clone, Serialize)]
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
    /// What somebody has said already, if nobody has read it yet.
    pub noted: Option<Noted>,
}

/// A letter with an answer that waits to be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Noted {
    /// Who wrote it, and where.
    pub by: String,
    /// What they say, in a word.
    pub said: &'static str,
    /// When.
    pub at_ms: i64,
    /// How long it was to hold, if it was a yes for longer.
    pub until: Option<Until>,
}

/// What a person says to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersonReply {
    /// To an agent.
    Agent(Answer),
    /// To a plan.
    Plan(Say),
}

impl PersonReply {
    /// What it is called once it is in the journal.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Agent(answer) => rows::yes_or_no(answer),
            Self::Plan(say) => said(say),
        }
    }
}

impl Pending {
    /// The question in one line.
    pub fn words(&self) -> String {
        match &self.row.matter {
            Matter::Plan(about) => about_words(about),
            Matter::Tool { tool, action, .. } if action.target.is_empty() => format!("may it use {tool}?"),
            Matter::Tool { tool, action, .. } => format!("{tool}: {}", action.target),
        }
    }
}

/// What is done about letters that are about to be written.
type Before<'j> = dyn Fn(&[Envelope]) + Send + Sync + 'j;

/// What waits for people, and how to answer it.
pub struct Post<'j> {
    journal: &'j Journal,
    /// Who is told of letters before they are written.
    before: Option<&'j Before<'j>>,
}

impl std::fmt::Debug for Post<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Post").finish_non_exhaustive()
    }
}

impl<'j> Post<'j> {
    /// Looks into a journal.
    pub fn new(journal: &'j Journal) -> Self {
        Self { journal, before: None }
    }

    /// The same for whoever wants to know of each letter before anybody can read it.
    pub(crate) fn telling(journal: &'j Journal, before: &'j Before<'j>) -> Self {
        Self { journal, before: Some(before) }
    }

    /// Everything that waits for a person, oldest first.
    pub fn inbox(&self) -> Result<Vec<Pending>, RuntimeError> {
        self.inbox_where(|_| true)
    }

    /// The same of one session: what cannot be read of others is their matter.
    pub(crate) fn inbox_of(&self, session: SessionId) -> Result<Vec<Pending>, RuntimeError> {
        self.inbox_where(|row| session_at(self.journal, &row.address) == Some(session))
    }

    fn inbox_where(&self, is_wanted: impl Fn(&InboxRow) -> bool) -> Result<Vec<Pending>, RuntimeError> {
        let (mut plans, mut stopping) = (HashMap::new(), HashMap::new());
        let mut pending = Vec::new();
        for (_, row) in rows::rows::<InboxRow>(self.journal, rows::INBOX)? {
            if !is_wanted(&row) || self.is_stopped(&row.address)? {
                continue;
            }
            let noted = self.noted(&row)?;
            let found = match row.address.strip_prefix("plan/").and_then(|plan| plan.parse().ok()) {
                Some(plan) => self.of_plan(row, plan, noted, &mut plans)?,
                None => Some(self.of_agent(row, noted)?),
            };
            if let Some(found) = found
                && !self.is_moot(&found, &mut stopping)?
            {
                pending.push(found);
            }
        }
        // Of those that were asked in the same moment the first is the first that was decided, as faces have heard it.
        pending.sort_by_key(|pending: &Pending| (pending.row.at_ms, pending.row.question));
        Ok(pending)
    }

    /// Whether a question belongs to a plan, or to a task of one, that the user has stopped: an answer changes nothing.
    fn is_moot(
        &self,
        pending: &Pending,
        stopping: &mut HashMap<PlanId, Option<Option<String>>>,
    ) -> Result<bool, RuntimeError> {
        let Some(plan) = pending.plan else { return Ok(false) };
        let stopped = match stopping.entry(plan) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(Census::new(self.journal).stopping(plan)?),
        };
        Ok(match stopped {
            None => false,
            Some(None) => true,
            Some(task) => *task == pending.task,
        })
    }

    /// Whether somebody was told to stop and has not read it: nothing comes of an answer to what it asks.
    pub(crate) fn is_stopped(&self, address: &str) -> Result<bool, RuntimeError> {
        Ok(self.journal.pending_mail(address)?.iter().any(is_stop))
    }

    /// A row says what was asked; whether it still matters, the plan knows.
    fn of_plan(
        &self,
        row: InboxRow,
        plan: PlanId,
        noted: Option<Noted>,
        plans: &mut HashMap<PlanId, Plan>,
    ) -> Result<Option<Pending>, RuntimeError> {
        let state = match plans.entry(plan) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(census::fold_plan(self.journal, plan)?.0),
        };
        let open = state.asked().any(|(question, about)| question == row.question && matters(state, about));
        if state.ended().is_some() || !open {
            return Ok(None);
        }
        let task = match &row.matter {
            Matter::Plan(About::Start { task } | About::Failure { task, .. }) => Some(task.clone()),
            _ => None,
        };
        let session = state.session();
        Ok(Some(Pending { row, session, who: PLAN.to_owned(), plan: Some(plan), task, noted }))
    }

    fn of_agent(&self, row: InboxRow, noted: Option<Noted>) -> Result<Pending, RuntimeError> {
        let agent = row.address.strip_prefix("agent/").unwrap_or_default().to_owned();
        let known = agent_row(self.journal, &agent)?;
        let assignment = known.as_ref().and_then(|known| known.assignment.clone());
        Ok(Pending {
            session: known.as_ref().map(|known| known.session),
            who: known.map_or_else(String::new, |known| known.name),
            plan: assignment.as_ref().and_then(|assignment| assignment.plan),
            task: assignment.filter(|assignment| assignment.plan.is_some()).map(|assignment| assignment.task.clone()),
            row,
            noted,
        })
    }

    /// The first answer in the asker's mailbox.
    pub(crate) fn noted(&self, row: &InboxRow) -> Result<Option<Noted>, RuntimeError> {
        let mail = self.journal.pending_mail(&row.address)?;
        Ok(mail.iter().filter(|letter| asks(letter) == Some(row.question)).find_map(read_answer))
    }

    /// The question of that id, or the only one whose id begins or ends so; or the only one of the plan of that id.
    pub fn find(&self, id: &str) -> Result<Pending, RuntimeError> {
        let mut found = self.inbox()?;
        found.retain(|pending| {
            let plan = pending.plan.filter(|_| pending.who == PLAN).map(|plan| plan.to_string());
            means(id, &pending.row.question.to_string()) || plan.is_some_and(|plan| means(id, &plan))
        });
        match (found.pop(), found.is_empty()) {
            (Some(one), true) => Ok(one),
            (Some(last), false) => {
                let all = found.iter().chain([&last]).map(|pending| pending.row.question.to_string());
                Err(RuntimeError::ambiguous(id, all.collect()))
            }
            (None, _) => Err(self.gone(id)),
        }
    }

    /// Why there is no such question: somebody was faster, or nobody ever asked.
    fn gone(&self, id: &str) -> RuntimeError {
        match self.find_stopped(id) {
            Ok(Some(plan)) => return RuntimeError::PlanStopping(plan),
            Ok(None) => {}
            Err(error) => return error,
        }
        match self.find_answered(id) {
            Ok(Some(AnsweredRow { replaced_by: Some(plan), .. })) => RuntimeError::PlanReplaced(plan),
            Ok(Some(row)) => RuntimeError::Answered { by: row.by.name(), said: row.said, at_ms: row.at_ms },
            Ok(None) => RuntimeError::NoQuestion(id.to_owned()),
            Err(error) => error,
        }
    }

    /// The plan that is meant by its id or its question's, if the user has stopped it.
    fn find_stopped(&self, id: &str) -> Result<Option<PlanId>, RuntimeError> {
        for (_, row) in rows::rows::<InboxRow>(self.journal, rows::INBOX)? {
            let Some(plan) = plan_at(&row.address) else { continue };
            let is_meant = means(id, &row.question.to_string()) || means(id, &plan.to_string());
            if is_meant && Census::new(self.journal).stopping(plan)? == Some(None) {
                return Ok(Some(plan));
            }
        }
        Ok(None)
    }

    fn find_answered(&self, id: &str) -> Result<Option<AnsweredRow>, RuntimeError> {
        let rows = rows::rows::<AnsweredRow>(self.journal, rows::ANSWERED)?;
        if let Some((_, row)) = rows.into_iter().find(|(question, _)| means(id, question)) {
            return Ok(Some(row));
        }
        let census = Census::new(self.journal);
        let Some(plan) = census.find_plan(id)? else { return Ok(None) };
        let answers = census.plan_events(plan)?.into_iter().rev();
        let last = answers.filter_map(|(at_ms, event)| match event {
            Event::PlanAnswered(answered) => {
                let (by, said) = (answered.by, said(&answered.say).to_owned());
                Some(AnsweredRow { by, said, at_ms, replaced_by: None })
            }
            Event::PlanStopped(PlanStopped { by, replaced_by: Some(plan), .. }) => {
                Some(AnsweredRow { by: By::Rule(by), said: "replaced".to_owned(), at_ms, replaced_by: Some(plan) })
            }
            Event::PlanUnasked(PlanUnasked { replaced_by: Some(plan), .. }) => {
                let by = By::Rule(format!("plan {plan}"));
                Some(AnsweredRow { by, said: "replaced".to_owned(), at_ms, replaced_by: Some(plan) })
            }
            _ => None,
        });
        Ok(last.into_iter().next())
    }

    /// How a question was answered, if it was.
    pub fn answered(&self, question: QuestionId) -> Result<Option<AnsweredRow>, RuntimeError> {
        rows::row(self.journal, rows::ANSWERED, &question.to_string())
    }

    /// Says something to a question, whoever asked. Returns the mailbox it went to.
    pub async fn reply(
        &self,
        by: &Principal,
        key: EnvelopeId,
        question: QuestionId,
        reply: &PersonReply,
    ) -> Result<String, RuntimeError> {
        match reply {
            PersonReply::Agent(answer) => self.answer(by, key, question, answer).await,
            PersonReply::Plan(say) => self.decide(by, key, question, say).await,
        }
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
            // Whoever comes through a door is a person, whatever else they say.
            By::Person(_) | By::Lead(_) => Answer { by: By::Person(person(by)), ..answer.clone() },
            By::Rule(_) | By::Nobody(_) => answer.clone(),
        };
        let body = json!({ "question": question, "answer": answer });
        self.answer_once(by, key, question, to, Kind::PermissionResponse, body).await
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
        self.check_goes_on(&to)?;
        let body = json!({ "question": question, "say": say, "by": by });
        if let Say::Edit(edits) = say {
            // Of several changes each may be made; none of them is the last word.
            self.check_edits(&to, edits)?;
            return self.send(by, key, to, Kind::PlanApprovalResponse, body).await;
        }
        self.answer_once(by, key, question, to, Kind::PlanApprovalResponse, body).await
    }

    /// Stops a plan, or one of its tasks. Returns the mailbox it went to.
    pub async fn stop(
        &self,
        by: &Principal,
        key: EnvelopeId,
        plan: PlanId,
        task: Option<&str>,
    ) -> Result<String, RuntimeError> {
        let mut body = json!({ "by": person(by) });
        if let (Some(task), Some(body)) = (task, body.as_object_mut()) {
            body.insert("task".to_owned(), Value::from(task));
        }
        self.send(by, key, plan_stream(plan), Kind::Shutdown, body).await
    }

    /// Stops whatever an agent is doing and what it has left running, and so, for a lead, everybody who works for it: each is
    /// written to at once, so that nobody goes on, and nothing waits that is written later, only because the lead has not read
    /// its own yet.
    pub async fn interrupt(&self, by: &Principal, key: EnvelopeId, agent: AgentId) -> Result<(), RuntimeError> {
        let (address, at_ms) = (session::agent_stream(agent), now_ms());
        let session = session_at(self.journal, &address);
        let (from, by) = (by.address(), person(by));
        // What is added to the list later is newer than this, whenever it is read.
        let listed = session.map(|session| self.journal.head(&tasks::stream(session))).transpose()?;
        let mut halt = Halt { from: &from, by: &by, who: None, since: None, listed, at_ms };
        let mut others = Vec::new();
        if let Some(session) = session
            && Sessions::new(self.journal).row(session)?.lead == agent
        {
            let (fresh, census) = (TurnId::new(new_id()), Census::new(self.journal));
            let known = census.newest(session, agent)?;
            halt.since = Some(known.map_or(fresh, |known| newer(fresh, known)));
            others = census.stopped_with(session)?;
        }
        let mut commit = commit_at(at_ms);
        commit.sends.extend(others.into_iter().map(|other| halt.letter(session::agent_stream(other))));
        commit.sends.push(halt.under(key, address));
        // It must not be forgotten that somebody was stopped.
        commit.strength = Strength::Full;
        rows::of_sends(&mut commit);
        self.journal.commit(commit).await?;
        Ok(())
    }

    /// Edits that do not fit what the plan says are refused before anybody is bothered with them.
    fn check_edits(&self, address: &str, edits: &[Edit]) -> Result<(), RuntimeError> {
        let Some(plan) = plan_at(address) else { return Ok(()) };
        let (plan, _) = census::fold_plan(self.journal, plan)?;
        let mut draft = plan.draft().cloned().unwrap_or_default();
        for change in edits {
            draft = edit(&draft, change).map_err(|flaw| RuntimeError::Plan(flaw.to_string()))?;
        }
        Ok(())
    }

    /// A plan that was told to stop decides nothing more.
    fn check_goes_on(&self, address: &str) -> Result<(), RuntimeError> {
        match plan_at(address) {
            Some(plan) if Census::new(self.journal).stopping(plan)? == Some(None) => {
                Err(RuntimeError::PlanStopping(plan))
            }
            _ => Ok(()),
        }
    }

    /// The mailbox of whoever asks this.
    pub(crate) fn address(&self, question: QuestionId) -> Result<String, RuntimeError> {
        let id = question.to_string();
        // A plan's question is filed under its own id, an agent's under the agent.
        if let Some(row) = rows::row::<InboxRow>(self.journal, rows::INBOX, &id)? {
            return Ok(row.address);
        }
        let rows = rows::rows::<InboxRow>(self.journal, rows::INBOX)?;
        let found = rows.into_iter().find(|(_, row)| row.question == question);
        found.map(|(_, row)| row.address).ok_or_else(|| self.gone(&id))
    }

    /// One question, one answer: its letter's id follows from the question, so that of two that are sent at the same
    /// moment only one is stored. Whoever sent the other is told.
    async fn answer_once(
        &self,
        by: &Principal,
        key: EnvelopeId,
        question: QuestionId,
        to: String,
        kind: Kind,
        mut body: Value,
    ) -> Result<String, RuntimeError> {
        let id = derived(&[question.to_string().as_bytes(), b"answered"]);
        if let Some(body) = body.as_object_mut() {
            body.insert("key".to_owned(), json!(key));
        }
        let known = self.journal.has_mail(id)?;
        let address = if known { to } else { self.send(by, id, to, kind, body.clone()).await? };
        let stored = self.journal.pending_mail(&address)?.into_iter().find(|letter| letter.id == id);
        let mine = |letter: &Envelope| letter.body.get("key").is_some_and(|stored| *stored == json!(key));
        match stored {
            Some(letter) if !mine(&letter) => {
                let (by, at_ms) = (letter.from.trim_start_matches("user/").to_owned(), letter.sent_at_ms);
                Err(RuntimeError::Answered { by, said: "answered".to_owned(), at_ms })
            }
            // It was read and did not settle the question, which is still open.
            None if known => self.send(by, key, address, kind, body).await,
            _ => Ok(address),
        }
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
        commit.sends.push(Envelope::new(id, from, to, kind, body, sent_at_ms));
        // It lets something run, or stops it: it must not be forgotten.
        commit.strength = Strength::Full;
        rows::of_sends(&mut commit);
        self.journal.commit(commit).await?;
        Ok(address)
    }
}

/// The plan that a mailbox belongs to, if it is a plan's.
fn plan_at(address: &str) -> Option<PlanId> {
    address.strip_prefix("plan/")?.parse().ok()
}

/// Whether a question of a plan still waits for anybody: its task may have been stopped since.
fn matters(plan: &Plan, about: &About) -> bool {
    let view = |name: &str| plan.tasks().find(|view| view.task.id == name);
    match about {
        About::Proposal | About::Rest => true,
        About::Start { task } => view(task).is_some_and(|view| view.status == Status::Approved),
        About::Failure { task, .. } => view(task).is_some_and(|view| plan.awaits_ruling(view.index)),
        About::Budget => plan.is_paused(),
    }
}

/// Who somebody is, and where.
fn person(by: &Principal) -> String {
    format!("{} at {}", by.user, by.door)
}

/// The question that a letter answers.
fn asks(letter: &Envelope) -> Option<QuestionId> {
    let answers = matches!(letter.kind, Kind::PermissionResponse | Kind::PlanApprovalResponse);
    letter.body.get("question").filter(|_| answers)?.as_str()?.parse().ok()
}

/// What an answer says that nobody has read yet.
fn read_answer(letter: &Envelope) -> Option<Noted> {
    let field = |name: &str| letter.body.get(name).cloned();
    let (by, said, until) = match letter.kind {
        Kind::PermissionResponse => {
            let answer: Answer = serde_json::from_value(field("answer")?).ok()?;
            (answer.by.name(), rows::yes_or_no(&answer), answer.always.then_some(answer.until))
        }
        _ => {
            let by: Principal = serde_json::from_value(field("by")?).ok()?;
            (person(&by), said(&serde_json::from_value(field("say")?).ok()?), None)
        }
    };
    Some(Noted { by, said, at_ms: letter.sent_at_ms, until })
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
