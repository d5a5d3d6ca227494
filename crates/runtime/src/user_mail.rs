//! Messages that people write from any process: answers, decisions, stops; `write` has messages to agents.
//!
//! Each writing method checks the role of its author, because commands without a running team call it directly. The
//! session need not be open: its owner is told by a nudge, or reads the message when it opens the session. The
//! first answer to a question wins; later ones are told who answered, and where.

mod go_on;
mod hand_over;
mod left;
mod mark_read;
mod reach;
mod take_back;
mod write;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use max_team_core::body::{Body, PlanAnswer, QuestionAnswer, Stop};
use max_team_core::event::Event;
use max_team_core::id::{AgentId, EnvelopeId, PlanId, QuestionId, SessionId, TurnId};
use max_team_core::message::{Envelope, MessageKind, Principal, Role};
use max_team_core::plan::event::{PlanDecision, PlanQuestion, PlanStopped, PlanUnasked};
use max_team_core::plan::{Edit, Plan, TaskStatus, edit};
use max_team_core::policy::{DecidedBy, GrantScope, PermissionAnswer};
use max_team_core::turn::is_stop;
use max_team_journal::{Durability, Journal};
use serde::Serialize;

use crate::agent::{PersonStop, derived};
use crate::error::RuntimeError;
use crate::handle::require;
use crate::plan::{about_words, plan_stream};
use crate::read_model::{self, ReadModel, means};
use crate::rows::{self, AgentRow, AnswerWord, AnsweredRow, InboxRow, Matter};
use crate::session;
use crate::shared::{commit_at, new_id, now_ms};

pub use go_on::{CONTINUE, READ_ON, is_go_on};
pub use hand_over::PendingHandover;
pub(crate) use hand_over::{handovers, server, server_of};
pub use left::ResumableWork;
pub use mark_read::ShownContent;
pub use write::{EndMode, Recipient, SentMessages, envelope_of};

/// Name of the asker of a plan's question.
const PLAN: &str = "plan";

/// A question, with the agent or plan that asks it.
#[derive(Debug, Clone, Serialize)]
pub struct PendingQuestion {
    pub row: InboxRow,
    /// The session it belongs to.
    pub session: Option<SessionId>,
    /// Who asks: a member's name, or `plan`.
    pub who: String,
    /// The plan it is about, or that the asker works in.
    pub plan: Option<PlanId>,
    /// The task that the asker works on.
    pub task: Option<String>,
    /// An answer that was sent and is still unread.
    pub noted: Option<NotedAnswer>,
}

/// A message with an unread answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotedAnswer {
    /// Who wrote it, and where.
    pub by: String,
    pub said: AnswerWord,
    /// When it was written.
    pub at_ms: i64,
    /// How long it holds, if it is an approval for longer.
    pub until: Option<GrantScope>,
}

/// A person's answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersonReply {
    /// To a question of an agent.
    Agent(PermissionAnswer),
    /// To a question of a plan.
    Plan(PlanDecision),
}

impl PersonReply {
    /// The answer in a word, as the journal has it.
    pub fn word(&self) -> AnswerWord {
        match self {
            Self::Agent(answer) => AnswerWord::of(answer),
            Self::Plan(say) => AnswerWord::of_plan(say),
        }
    }
}

impl PendingQuestion {
    /// The question in one line.
    pub fn words(&self) -> String {
        match &self.row.matter {
            Matter::Plan(about) => about_words(about),
            Matter::Tool { tool, action, .. } if action.target.is_empty() => format!("may it use {tool}?"),
            Matter::Tool { tool, action, .. } => format!("{tool}: {}", action.target),
        }
    }
}

/// A callback that gets messages before they are written.
type Before<'j> = dyn Fn(&[Envelope]) + Send + Sync + 'j;

/// Questions that wait for people, and messages from people.
pub struct UserMail<'j> {
    journal: &'j Journal,
    before: Option<&'j Before<'j>>,
}

impl std::fmt::Debug for UserMail<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UserMail").finish_non_exhaustive()
    }
}

impl<'j> UserMail<'j> {
    pub fn new(journal: &'j Journal) -> Self {
        Self { journal, before: None }
    }

    /// Like `new`, with a callback that gets each message before it can be read.
    pub(crate) fn telling(journal: &'j Journal, before: &'j Before<'j>) -> Self {
        Self { journal, before: Some(before) }
    }

    /// All questions that wait for a person, oldest first.
    pub fn inbox(&self) -> Result<Vec<PendingQuestion>, RuntimeError> {
        self.inbox_where(|_| true)
    }

    /// Like `inbox`, of one session: errors in other sessions do not matter.
    pub(crate) fn inbox_of(&self, session: SessionId) -> Result<Vec<PendingQuestion>, RuntimeError> {
        self.inbox_where(|row| session_at(self.journal, &row.address) == Some(session))
    }

    fn inbox_where(&self, is_wanted: impl Fn(&InboxRow) -> bool) -> Result<Vec<PendingQuestion>, RuntimeError> {
        let (mut plans, mut stopping) = (HashMap::new(), HashMap::new());
        let mut pending = Vec::new();
        for (_, row) in rows::rows::<InboxRow>(self.journal, rows::INBOX)? {
            // The questions of a plan stay open while it is stopped.
            if !is_wanted(&row) || (plan_at(&row.address).is_none() && self.is_stopped(&row.address)?) {
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
        // Question ids are in order of creation, so questions of the same millisecond keep the order in which
        // frontends were told of them.
        pending.sort_by_key(|pending: &PendingQuestion| (pending.row.at_ms, pending.row.question));
        Ok(pending)
    }

    /// Whether a question belongs to a plan, or to a task of one, that the user has stopped: an answer changes nothing.
    fn is_moot(
        &self,
        pending: &PendingQuestion,
        stopping: &mut HashMap<PlanId, Option<Option<String>>>,
    ) -> Result<bool, RuntimeError> {
        let Some(plan) = pending.plan else { return Ok(false) };
        let stopped = match stopping.entry(plan) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(ReadModel::new(self.journal).stopping(plan)?),
        };
        Ok(match stopped {
            None => false,
            Some(None) => true,
            Some(task) => *task == pending.task,
        })
    }

    /// Whether an address has an unread stop: an answer to a question of that agent changes nothing.
    pub(crate) fn is_stopped(&self, address: &str) -> Result<bool, RuntimeError> {
        Ok(self.journal.pending_mail(address)?.iter().any(is_stop))
    }

    /// Whether an agent has not read a stop yet.
    pub fn has_unread_stop(&self, agent: AgentId) -> Result<bool, RuntimeError> {
        self.is_stopped(&session::agent_stream(agent))
    }

    /// The row has the question; the plan says whether it still matters.
    fn of_plan(
        &self,
        row: InboxRow,
        plan: PlanId,
        noted: Option<NotedAnswer>,
        plans: &mut HashMap<PlanId, Plan>,
    ) -> Result<Option<PendingQuestion>, RuntimeError> {
        let state = match plans.entry(plan) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(read_model::fold_plan(self.journal, plan)?.0),
        };
        let open = state.asked().any(|(question, about)| question == row.question && matters(state, about));
        if state.ended().is_some() || !open {
            return Ok(None);
        }
        let task = match &row.matter {
            Matter::Plan(PlanQuestion::Start { task } | PlanQuestion::Failure { task, .. }) => Some(task.clone()),
            _ => None,
        };
        let session = state.session();
        Ok(Some(PendingQuestion { row, session, who: PLAN.to_owned(), plan: Some(plan), task, noted }))
    }

    fn of_agent(&self, row: InboxRow, noted: Option<NotedAnswer>) -> Result<PendingQuestion, RuntimeError> {
        let agent = row.address.strip_prefix("agent/").unwrap_or_default().to_owned();
        let known = agent_row(self.journal, &agent)?;
        let assignment = known.as_ref().and_then(|known| known.assignment.clone());
        Ok(PendingQuestion {
            session: known.as_ref().map(|known| known.session),
            who: known.map_or_else(String::new, |known| known.name),
            plan: assignment.as_ref().and_then(|assignment| assignment.plan),
            task: assignment.filter(|assignment| assignment.plan.is_some()).map(|assignment| assignment.task.clone()),
            row,
            noted,
        })
    }

    /// The first answer in the asker's mailbox.
    pub(crate) fn noted(&self, row: &InboxRow) -> Result<Option<NotedAnswer>, RuntimeError> {
        let mail = self.journal.pending_mail(&row.address)?;
        Ok(mail.iter().filter(|envelope| asks(envelope) == Some(row.question)).find_map(read_answer))
    }

    /// The question with that id, or the only one whose id begins or ends with it, or the only one of the plan with
    /// that id.
    pub fn find(&self, id: &str) -> Result<PendingQuestion, RuntimeError> {
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

    /// Why a question is not open: it was answered, its plan was stopped or replaced, or it never existed.
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

    /// The stopped plan that an id or a question's id names, if there is one.
    fn find_stopped(&self, id: &str) -> Result<Option<PlanId>, RuntimeError> {
        for (_, row) in rows::rows::<InboxRow>(self.journal, rows::INBOX)? {
            let Some(plan) = plan_at(&row.address) else { continue };
            let is_meant = means(id, &row.question.to_string()) || means(id, &plan.to_string());
            if is_meant && ReadModel::new(self.journal).stopping(plan)? == Some(None) {
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
        let census = ReadModel::new(self.journal);
        let Some(plan) = census.find_plan(id)? else { return Ok(None) };
        let answers = census.plan_events(plan)?.into_iter().rev();
        let last = answers.filter_map(|(at_ms, event)| match event {
            Event::PlanAnswered(answered) => {
                let (by, said) = (answered.by, AnswerWord::of_plan(&answered.say));
                Some(AnsweredRow { by, said, at_ms, replaced_by: None })
            }
            Event::PlanStopped(PlanStopped { by, replaced_by: Some(plan), .. }) => Some(AnsweredRow {
                by: DecidedBy::Rule(by),
                said: AnswerWord::Replaced,
                at_ms,
                replaced_by: Some(plan),
            }),
            Event::PlanUnasked(PlanUnasked { replaced_by: Some(plan), .. }) => {
                let by = DecidedBy::Rule(format!("plan {plan}"));
                Some(AnsweredRow { by, said: AnswerWord::Replaced, at_ms, replaced_by: Some(plan) })
            }
            _ => None,
        });
        Ok(last.into_iter().next())
    }

    /// How a question was answered, if it was.
    pub fn answered(&self, question: QuestionId) -> Result<Option<AnsweredRow>, RuntimeError> {
        rows::row(self.journal, rows::ANSWERED, &question.to_string())
    }

    /// Answers a question of an agent or a plan. Returns the mailbox that the answer was sent to.
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

    /// Answers a question of an agent. Returns the mailbox that the answer was sent to.
    pub async fn answer(
        &self,
        by: &Principal,
        key: EnvelopeId,
        question: QuestionId,
        answer: &PermissionAnswer,
    ) -> Result<String, RuntimeError> {
        require(by, Role::Owner)?;
        let InboxRow { address: to, matter, .. } = self.row(question)?;
        check_word(&matter, answer)?;
        let answer = match &answer.by {
            // Answers from a frontend are always a person's, even if they claim to be the lead's.
            DecidedBy::Person(_) | DecidedBy::Lead(_) => {
                PermissionAnswer { by: DecidedBy::person(by), ..answer.clone() }
            }
            DecidedBy::Rule(_) | DecidedBy::Grant(_) | DecidedBy::Nobody(_) => answer.clone(),
        };
        let said = QuestionAnswer {
            question: Some(question),
            answer: Some(answer),
            key: Some(key),
            ..QuestionAnswer::default()
        };
        self.answer_once(by, key, question, to, MessageKind::PermissionResponse, Body::Answer(Box::new(said))).await
    }

    /// Answers a question of a plan. Returns the mailbox that the answer was sent to.
    pub async fn decide(
        &self,
        by: &Principal,
        key: EnvelopeId,
        question: QuestionId,
        say: &PlanDecision,
    ) -> Result<String, RuntimeError> {
        require(by, Role::Owner)?;
        let to = self.address(question)?;
        self.check_goes_on(&to)?;
        let said =
            PlanAnswer { question: Some(question), say: Some(say.clone()), by: Some(by.clone()), key: Some(key) };
        let body = Body::PlanAnswer(said);
        if let PlanDecision::Edit(edits) = say {
            // A plan can be edited several times: an edit does not settle the question.
            self.check_edits(&to, edits)?;
            return self.send(by, key, to, MessageKind::PlanApprovalResponse, body).await;
        }
        self.answer_once(by, key, question, to, MessageKind::PlanApprovalResponse, body).await
    }

    /// Stops a plan, or one of its tasks. Returns the mailbox that the stop was sent to.
    pub async fn stop(
        &self,
        by: &Principal,
        key: EnvelopeId,
        plan: PlanId,
        task: Option<&str>,
    ) -> Result<String, RuntimeError> {
        require(by, Role::Member)?;
        if ReadModel::new(self.journal).session_of(plan)?.is_none() {
            return Err(RuntimeError::NoPlan(plan));
        }
        let stop = Stop { by: &by.signature(), task, ..Stop::default() };
        self.send(by, key, plan_stream(plan), MessageKind::Shutdown, Body::Stop(stop)).await
    }

    /// Stops one agent and its background commands.
    pub async fn stop_agent(&self, by: &Principal, key: EnvelopeId, agent: AgentId) -> Result<(), RuntimeError> {
        require(by, Role::Member)?;
        let (from, name) = (by.address(), by.signature());
        let stop = PersonStop { from: &from, by: &name, since: None, at_ms: now_ms() };
        self.send_stops(vec![stop.message(key, session::agent_stream(agent))]).await.map(drop)
    }

    /// Stops everything in a session: the lead, all agents and their background commands, and the running plans.
    pub async fn stop_session(&self, by: &Principal, session: SessionId) -> Result<(), RuntimeError> {
        self.stop_all(by, session, TurnId::new(new_id())).await.map(drop)
    }

    /// Like `stop_session`, with a turn id that is newer than all of the session.
    pub(crate) async fn stop_all(
        &self,
        by: &Principal,
        session: SessionId,
        since: TurnId,
    ) -> Result<Vec<Envelope>, RuntimeError> {
        require(by, Role::Member)?;
        let census = ReadModel::new(self.journal);
        let agents = census.stop_readers(session)?.into_iter().map(session::agent_stream);
        let plans = census.open_plans(Some(session))?.into_iter().map(plan_stream);
        let (from, name) = (by.address(), by.signature());
        let stop = PersonStop { from: &from, by: &name, since: Some(since), at_ms: now_ms() };
        self.send_stops(agents.chain(plans).map(|to| stop.to_reader(to)).collect()).await
    }

    async fn send_stops(&self, stops: Vec<Envelope>) -> Result<Vec<Envelope>, RuntimeError> {
        let mut commit = commit_at(now_ms());
        commit.sends.clone_from(&stops);
        // A stop must survive a power cut.
        commit.strength = Durability::Full;
        rows::of_sends(&mut commit);
        self.journal.commit(commit).await?;
        Ok(stops)
    }

    /// Edits that do not fit the plan are refused before they are sent.
    fn check_edits(&self, address: &str, edits: &[Edit]) -> Result<(), RuntimeError> {
        let Some(plan) = plan_at(address) else { return Ok(()) };
        let (plan, _) = read_model::fold_plan(self.journal, plan)?;
        let mut draft = plan.draft().cloned().unwrap_or_default();
        for change in edits {
            draft = edit(&draft, change).map_err(|flaw| RuntimeError::DraftFlaws(vec![flaw]))?;
        }
        Ok(())
    }

    /// A plan that is being stopped takes no more decisions.
    fn check_goes_on(&self, address: &str) -> Result<(), RuntimeError> {
        match plan_at(address) {
            Some(plan) if ReadModel::new(self.journal).stopping(plan)? == Some(None) => {
                Err(RuntimeError::PlanStopping(plan))
            }
            _ => Ok(()),
        }
    }

    /// The mailbox of the agent or plan that asks this.
    pub(crate) fn address(&self, question: QuestionId) -> Result<String, RuntimeError> {
        Ok(self.row(question)?.address)
    }

    fn row(&self, question: QuestionId) -> Result<InboxRow, RuntimeError> {
        let id = question.to_string();
        // A plan's question has a row under its own id, an agent's under the agent's address.
        if let Some(row) = rows::row::<InboxRow>(self.journal, rows::INBOX, &id)? {
            return Ok(row);
        }
        let rows = rows::rows::<InboxRow>(self.journal, rows::INBOX)?;
        let found = rows.into_iter().find(|(_, row)| row.question == question);
        found.map(|(_, row)| row).ok_or_else(|| self.gone(&id))
    }

    /// One question, one answer: the message id follows from the question, so that of two simultaneous answers only
    /// one is stored. The other sender gets an error.
    async fn answer_once(
        &self,
        by: &Principal,
        key: EnvelopeId,
        question: QuestionId,
        to: String,
        kind: MessageKind,
        body: Body<'_>,
    ) -> Result<String, RuntimeError> {
        let id = derived(&[question.to_string().as_bytes(), b"answered"]);
        let known = self.journal.has_mail(id)?;
        let address = if known { to } else { self.send(by, id, to, kind, body.clone()).await? };
        let stored = self.journal.pending_mail(&address)?.into_iter().find(|envelope| envelope.id == id);
        let mine = |envelope: &Envelope| match Body::read(envelope) {
            Body::Answer(said) => said.key == Some(key),
            Body::PlanAnswer(said) => said.key == Some(key),
            _ => false,
        };
        match stored {
            Some(envelope) if !mine(&envelope) => {
                let (by, at_ms) = (envelope.from.trim_start_matches("user/").to_owned(), envelope.sent_at_ms);
                Err(RuntimeError::Answered { by, said: AnswerWord::Answered, at_ms })
            }
            // The stored answer was read and did not settle the question, which is still open.
            None if known => self.send(by, key, address, kind, body).await,
            _ => Ok(address),
        }
    }

    async fn send(
        &self,
        by: &Principal,
        id: EnvelopeId,
        to: String,
        kind: MessageKind,
        body: Body<'_>,
    ) -> Result<String, RuntimeError> {
        let sent_at_ms = now_ms();
        let mut commit = commit_at(sent_at_ms);
        let (from, address) = (by.address(), to.clone());
        commit.sends.push(Envelope::new(id, from, to, kind, body, sent_at_ms));
        // It lets something run, or stops it: it must survive a power cut.
        commit.strength = Durability::Full;
        rows::of_sends(&mut commit);
        self.journal.commit(commit).await?;
        Ok(address)
    }
}

/// The plan that a mailbox belongs to, if it is a plan's.
fn plan_at(address: &str) -> Option<PlanId> {
    address.strip_prefix("plan/")?.parse().ok()
}

/// Whether a question of a plan still needs an answer: its task may have been stopped since.
fn matters(plan: &Plan, about: &PlanQuestion) -> bool {
    let view = |name: &str| plan.tasks().find(|view| view.task.id == name);
    match about {
        PlanQuestion::Proposal | PlanQuestion::Rest => true,
        PlanQuestion::Start { task } => view(task).is_some_and(|view| view.status == TaskStatus::Approved),
        PlanQuestion::Failure { task, .. } => view(task).is_some_and(|view| plan.awaits_ruling(view.index)),
        PlanQuestion::Budget => plan.is_paused(),
    }
}

/// The question that a message answers.
fn asks(envelope: &Envelope) -> Option<QuestionId> {
    match Body::read(envelope) {
        Body::Answer(said) => said.question,
        Body::PlanAnswer(said) => said.question,
        _ => None,
    }
}

/// The content of an unread answer.
fn read_answer(envelope: &Envelope) -> Option<NotedAnswer> {
    let (by, said, until) = match Body::read(envelope) {
        Body::Answer(said) if envelope.kind == MessageKind::PermissionResponse => {
            let answer = said.answer?;
            (answer.by.name(), AnswerWord::of(&answer), answer.always.then_some(answer.until))
        }
        Body::PlanAnswer(answer) => (answer.by?.signature(), AnswerWord::of_plan(&answer.say?), None),
        _ => return None,
    };
    Some(NotedAnswer { by, said, at_ms: envelope.sent_at_ms, until })
}

/// The row of an agent.
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
    // A plan that was only submitted has no row of its own yet; an ended one is not open.
    let open = rows::row::<String>(journal, rows::PLAN_OPEN, plan).ok()?.and_then(|session| session.parse().ok());
    open.or_else(|| Some(rows::row::<rows::PlanRow>(journal, rows::PLAN, plan).ok()??.session))
}

/// A yes to a deletion that cannot be taken back needs the word.
fn check_word(matter: &Matter, answer: &PermissionAnswer) -> Result<(), RuntimeError> {
    let Matter::Tool { action, .. } = matter else { return Ok(()) };
    match action.loss() {
        Some(lost) if answer.allow && !answer.approves(action) => {
            Err(RuntimeError::NeedsWord { deletion: Box::new(lost.clone()) })
        }
        _ => Ok(()),
    }
}
