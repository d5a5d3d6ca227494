//! The rows that follow from the log: open questions, working agents, plans, costs.
//!
//! Each row is computed from one entry, by its stream and its event, so that all of them can be deleted and made
//! again. What follows from several entries is computed when it is asked for, never stored.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use max_team_core::event::{AgentStarted, Event, Interrupted, TurnOutcome};
use max_team_core::id::{AgentId, PlanId, QuestionId, SessionId, TurnId};
use max_team_core::interrupt::Hold;
use max_team_core::ledger::Charge;
use max_team_core::memory::BoardScope;
use max_team_core::message::{Assignment, Envelope, MessageKind};
use max_team_core::plan::event::{PlanDecision, PlanEnd, PlanQuestion, TaskCorrected, Totals};
use max_team_core::policy::{Action, Basis, DecidedBy, PermissionAnswer, Recourse, RememberedRule};
use max_team_core::rewind::MovedFile;
use max_team_core::teammate::AgentEnded;
use max_team_journal::{Commit, Entry, Journal, JournalError, Projection};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::agent::since_of;
use crate::error::RuntimeError;
use crate::{cache, memory, session, tasks};

/// The session of each agent.
pub(crate) const AGENT: &str = "agent";
/// Agents with unfinished work.
pub(crate) const WORKING: &str = "working";
/// Plans that were proposed.
pub(crate) const PLAN: &str = "plan";
/// Plans that have not ended.
pub(crate) const PLAN_OPEN: &str = "plan_open";
/// How plans ended.
pub(crate) const PLAN_END: &str = "plan_end";
/// Questions that wait for a person.
pub(crate) const INBOX: &str = "inbox";
/// Answered questions, with who answered.
pub(crate) const ANSWERED: &str = "answered";

/// Background commands that are not known to have ended, by agent and id.
pub(crate) const COMMANDS: &str = "commands";

/// Protected files that commands made without approval, by the place they were moved to.
pub(crate) const MOVED: &str = "moved";

/// The turn ids of session stops, by the agent that read one.
pub(crate) const STOPPED: &str = "stopped";

/// The key of a stop that its agent may not have read.
fn told(address: &str) -> String {
    format!("told/{address}")
}

/// The turn id of the last session stop that a lead has read, or has still to read.
pub(crate) fn stopped_since(journal: &Journal, lead: AgentId) -> Result<Option<TurnId>, RuntimeError> {
    let read = row(journal, STOPPED, &lead.to_string())?;
    Ok(read.max(row(journal, STOPPED, &told(&session::agent_stream(lead)))?))
}

/// The agents of a session.
pub(crate) fn agents_of(session: &str) -> String {
    format!("agents/{session}")
}

/// The teammates of a session, by name.
pub(crate) fn teammates_of(session: &str) -> String {
    format!("mates/{session}")
}

/// The teammates of a session that have not ended, by name.
pub(crate) fn teammates_there(
    journal: &Journal,
    session: SessionId,
) -> Result<Vec<(String, TeammateRow)>, RuntimeError> {
    let mut teammates = rows::<TeammateRow>(journal, &teammates_of(&session.to_string()))?;
    teammates.retain(|(_, row)| row.gone.is_none());
    Ok(teammates)
}

/// The agents of a session that have unfinished work.
pub(crate) fn working(journal: &Journal, session: SessionId) -> Result<Vec<AgentId>, RuntimeError> {
    let mine = session.to_string();
    // The row of an agent that was given new work does not name the session.
    let looked_up = |agent: &str| row::<String>(journal, AGENT, agent).ok().flatten();
    let is_ours =
        |agent: &str, known: &str| known == mine || (known.is_empty() && looked_up(agent).as_ref() == Some(&mine));
    let working = rows::<String>(journal, WORKING)?.into_iter().filter(|(agent, known)| is_ours(agent, known));
    Ok(working.filter_map(|(agent, _)| agent.parse().ok()).collect())
}

/// The agents that have commands in the background.
pub(crate) fn with_commands(journal: &Journal) -> Result<BTreeSet<AgentId>, RuntimeError> {
    let rows = rows::<String>(journal, COMMANDS)?;
    Ok(rows.iter().filter_map(|(key, _)| key.split_once('/')?.0.parse().ok()).collect())
}

/// The last agent of a session that got each call with a cacheable answer.
pub(crate) fn asked_of(session: &str) -> String {
    format!("asked/{session}")
}

/// The table of the cost of an agent's turns.
pub(crate) fn costs_of(agent: &str) -> String {
    format!("cost/{agent}")
}

/// A protected file that was moved away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MovedRow {
    /// The agent whose command made it.
    pub(crate) agent: String,
    /// The name that the command gave it.
    pub(crate) path: String,
}

/// An agent of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRow {
    pub agent: AgentId,
    pub session: SessionId,
    pub name: String,
    pub role: String,
    /// The assignment it was started with.
    pub assignment: Option<Arc<Assignment>>,
    /// When it was started.
    pub at_ms: i64,
}

/// A teammate of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeammateRow {
    /// Which agent it is.
    pub agent: AgentId,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub color: String,
    /// Whether it takes tasks from the shared list by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub claims: bool,
    /// How it ended, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<AgentEnded>,
}

impl AgentRow {
    /// A short name for its caller, unique in the session.
    pub fn handle(&self) -> String {
        handle(&self.name, self.agent)
    }

    /// Whether a text names this agent: its handle, its name, or the end of its id.
    pub fn is(&self, text: &str) -> bool {
        let id = self.agent.to_string();
        self.name == text || self.handle() == text || (text.len() >= HANDLE_CHARS && id.ends_with(text))
    }
}

/// Characters of an agent's id in its handle.
const HANDLE_CHARS: usize = 6;

/// A name and the end of an id.
pub(crate) fn handle(name: &str, agent: AgentId) -> String {
    let id = agent.to_string();
    let cut = id.len().saturating_sub(HANDLE_CHARS);
    format!("{name}-{}", id.get(cut..).unwrap_or_default())
}

/// A plan that was proposed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRow {
    pub plan: PlanId,
    pub session: SessionId,
    pub goal: String,
    /// Who proposed it.
    pub by: String,
    /// When it was proposed.
    pub at_ms: i64,
}

/// How a plan ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanEndRow {
    pub end: PlanEnd,
    /// The outcome of its tasks.
    pub tally: Totals,
}

/// What a question is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Matter {
    /// Whether a tool may run; for `ask_user`, any question.
    Tool {
        tool: String,
        /// What would be done.
        action: Box<Action>,
        /// What a "yes, always" is remembered as.
        #[serde(default)]
        memory: RememberedRule,
        /// The rule because of which the user is asked.
        #[serde(default)]
        rule: String,
        /// The rule, if it is one that is not only a text.
        #[serde(default, skip_serializing_if = "Basis::is_untyped")]
        basis: Basis,
        /// What would let the call run without the question.
        #[serde(default, skip_serializing_if = "Recourse::is_default")]
        recourse: Recourse,
    },
    /// A question about a plan.
    Plan(PlanQuestion),
}

/// A question that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxRow {
    pub question: QuestionId,
    /// The mailbox that the answer goes to.
    pub address: String,
    /// What is asked.
    pub matter: Matter,
    /// When it was asked.
    pub at_ms: i64,
}

/// An answer, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerWord {
    Yes,
    No,
    Approved,
    /// The first wave of a plan was approved.
    #[serde(rename = "approved the first wave")]
    FirstWave,
    Edited,
    #[serde(rename = "asked for changes")]
    Changes,
    Rejected,
    /// Another plan was proposed in place of the one that the question was about.
    Replaced,
    /// It was decided what to do about a failed task.
    Decided,
    /// The answer is not known any more.
    Answered,
    /// Files were put back.
    Rewound,
}

/// A question that was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnsweredRow {
    /// The author of the answer.
    pub by: DecidedBy,
    pub said: AnswerWord,
    /// When it was answered.
    pub at_ms: i64,
    /// The plan that was proposed instead of the one that the question was about: the question was withdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<PlanId>,
}

/// The cost of one turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostRow {
    /// Usage and cost, one element per model.
    pub charges: Vec<Charge>,
    /// When it ended.
    pub at_ms: i64,
}

/// The rows that an entry of the log makes, for a rebuild.
pub fn project_entry(entry: &Entry) -> Vec<Projection> {
    match event_of(entry) {
        Ok(event) => project(&entry.stream, entry.at_ms, &event),
        // The journal's own entries and erased ones make no rows of ours.
        Err(_) => Vec::new(),
    }
}

/// The rows that an event changes.
pub(crate) fn project(stream: &str, at_ms: i64, event: &Event) -> Vec<Projection> {
    if let Some(session) = session::session_of(stream) {
        session::project(session, at_ms, event)
    } else if let Some(agent) = stream.strip_prefix("agent/") {
        of_agent(stream, agent, at_ms, event)
    } else if let Some(plan) = stream.strip_prefix("plan/") {
        of_plan(stream, plan, at_ms, event)
    } else if let Some(scope) = BoardScope::of_stream(stream) {
        memory::project(&scope, at_ms, event)
    } else if let Some(changed) = cache::project(stream, at_ms, event).or_else(|| tasks::project(stream, at_ms, event))
    {
        changed
    } else {
        match event {
            Event::Mailed(envelope) => of_envelope(envelope),
            _ => Vec::new(),
        }
    }
}

/// The rows that a commit's messages change.
pub(crate) fn of_sends(commit: &mut Commit) {
    commit.projections.extend(commit.sends.iter().flat_map(of_envelope));
}

fn of_envelope(envelope: &Envelope) -> Vec<Projection> {
    match (envelope.kind, envelope.session()) {
        // The time of sending, not of storing: the sender knows only the first.
        (MessageKind::PlanApprovalRequest, Some(session)) => {
            let plan = envelope.to.strip_prefix("plan/");
            plan.map(|plan| put(PLAN_OPEN, plan, envelope.sent_at_ms, &session)).unwrap_or_default()
        }
        // The runtime reported for an agent that it cannot work; the agent itself may have written nothing.
        (MessageKind::TaskResult, _) if matches!(envelope.result().work.end, Some(TurnOutcome::Broken { .. })) => {
            envelope.from.strip_prefix("agent/").map(|agent| delete(WORKING, agent)).into_iter().collect()
        }
        // A stop counts from its own time, whenever it is read. Two processes may write the same one, and the first is
        // stored; of two different ones the later counts, even if it is stored first.
        (MessageKind::Shutdown, _) => {
            since_of(envelope).and_then(|since| raise(STOPPED, told(&envelope.to), &since)).into_iter().collect()
        }
        (_, Some(session)) => put(session::USED, &session.to_string(), envelope.sent_at_ms, &true),
        _ => Vec::new(),
    }
}

fn of_agent(stream: &str, agent: &str, at_ms: i64, event: &Event) -> Vec<Projection> {
    match event {
        Event::AgentStarted(started) => started_rows(agent, at_ms, started),
        // A first attempt has its row since the agent's start.
        Event::TurnStarted(started) if started.assignment.as_ref().is_some_and(|task| task.attempt > 1) => {
            put(WORKING, agent, at_ms, &"")
        }
        Event::QuestionAsked(asked) => {
            let matter = Matter::Tool {
                tool: asked.tool.clone(),
                action: Box::new(asked.action.clone()),
                memory: asked.memory.clone(),
                rule: asked.rule.clone(),
                basis: asked.basis.clone(),
                recourse: asked.recourse,
            };
            // An agent asks one thing at a time: its address is the key, so that the end of a turn can clear it.
            let row = InboxRow { question: asked.question, address: stream.to_owned(), matter, at_ms };
            put(INBOX, stream, at_ms, &row)
        }
        Event::QuestionAnswered(answered) => {
            let said = AnswerWord::of(&answered.answer);
            let mut rows = answered_by(answered.question, &answered.answer.by, said, at_ms);
            rows.push(delete(INBOX, stream));
            rows
        }
        // Its work had ended, and the review begins.
        Event::ReviewBegun(_) => put(WORKING, agent, at_ms, &""),
        Event::Interrupted(Interrupted { held: Some(Hold { since: Some(since), .. }), .. }) => {
            put(STOPPED, agent, at_ms, since)
        }
        Event::FilesChanged(changed) => moved_rows(agent, at_ms, &changed.moved),
        Event::CommandBegun(begun) => put(COMMANDS, &format!("{agent}/{}", begun.id), at_ms, &begun.name),
        Event::CommandOver(over) => vec![delete(COMMANDS, &format!("{agent}/{}", over.id))],
        Event::AgentEnded(ended) => {
            let Ok(id) = agent.parse() else { return Vec::new() };
            let row = TeammateRow { agent: id, color: String::new(), claims: false, gone: Some(ended.clone()) };
            put(&teammates_of(&ended.session.to_string()), &ended.name, at_ms, &row)
        }
        Event::TurnEnded(ended) => {
            let mut rows = vec![delete(INBOX, stream), delete(WORKING, agent)];
            if !ended.charges.is_empty() {
                let row = CostRow { charges: ended.charges.clone(), at_ms };
                rows.extend(put(&costs_of(agent), &ended.turn.to_string(), at_ms, &row));
            }
            rows
        }
        _ => Vec::new(),
    }
}

fn started_rows(agent: &str, at_ms: i64, started: &AgentStarted) -> Vec<Projection> {
    let teammate = started.assignment.as_ref().and_then(|given| given.life.teammate());
    let row = AgentRow {
        agent: started.agent,
        session: started.session,
        name: teammate.map_or(&started.definition.name, |teammate| &teammate.name).clone(),
        role: teammate.map_or(&started.definition.role, |teammate| &teammate.role).clone(),
        assignment: started.assignment.clone(),
        at_ms,
    };
    let session = started.session.to_string();
    let mut rows = put(&agents_of(&session), agent, at_ms, &row);
    if let Some(teammate) = teammate {
        let row =
            TeammateRow { agent: started.agent, color: teammate.color.clone(), claims: teammate.claims, gone: None };
        rows.extend(put(&teammates_of(&session), &teammate.name, at_ms, &row));
    }
    rows.extend(put(AGENT, agent, at_ms, &session));
    if let Some(given) = &started.assignment {
        rows.extend(put(WORKING, agent, at_ms, &session));
        let asked = given.cache.iter();
        rows.extend(asked.flat_map(|asked| put(&asked_of(&session), &asked.call.to_string(), at_ms, &started.agent)));
    }
    rows
}

fn moved_rows(agent: &str, at_ms: i64, moved: &[MovedFile]) -> Vec<Projection> {
    let row = |path: &String| MovedRow { agent: agent.to_owned(), path: path.clone() };
    let moved = moved.iter().filter(|moved| !moved.to.is_empty());
    moved.flat_map(|moved| put(MOVED, &moved.to, at_ms, &row(&moved.path))).collect()
}

fn of_plan(stream: &str, plan: &str, at_ms: i64, event: &Event) -> Vec<Projection> {
    match event {
        Event::PlanProposed(proposed) => {
            let row = PlanRow {
                plan: proposed.plan,
                session: proposed.session,
                goal: session::preview(&proposed.draft.goal),
                by: proposed.by.clone(),
                at_ms,
            };
            put(PLAN, plan, at_ms, &row)
        }
        Event::PlanAsked(asked) => {
            let row = InboxRow {
                question: asked.question,
                address: stream.to_owned(),
                matter: Matter::Plan(asked.about.clone()),
                at_ms,
            };
            put(INBOX, &asked.question.to_string(), at_ms, &row)
        }
        Event::PlanAnswered(answered) => {
            let mut rows = answered_by(answered.question, &answered.by, AnswerWord::of_plan(&answered.say), at_ms);
            rows.push(delete(INBOX, &answered.question.to_string()));
            rows
        }
        Event::PlanUnasked(unasked) => {
            let mut rows: Vec<Projection> =
                unasked.questions.iter().map(|question| delete(INBOX, &question.to_string())).collect();
            if let Some(plan) = unasked.replaced_by {
                let row = AnsweredRow {
                    by: DecidedBy::Rule(format!("plan {plan}")),
                    said: AnswerWord::Replaced,
                    at_ms,
                    replaced_by: Some(plan),
                };
                rows.extend(
                    unasked.questions.iter().flat_map(|question| put(ANSWERED, &question.to_string(), at_ms, &row)),
                );
            }
            rows
        }
        Event::TaskCorrected(TaskCorrected { ended: Some(ended), .. }) => {
            put(PLAN_END, plan, at_ms, &PlanEndRow { end: ended.end, tally: ended.tally })
        }
        Event::PlanEnded(ended) => {
            let mut rows = put(PLAN_END, plan, at_ms, &PlanEndRow { end: ended.end, tally: ended.tally });
            rows.push(delete(PLAN_OPEN, plan));
            rows
        }
        _ => Vec::new(),
    }
}

impl AnswerWord {
    /// An answer to an agent.
    pub(crate) fn of(answer: &PermissionAnswer) -> Self {
        if answer.allow { Self::Yes } else { Self::No }
    }

    /// A decision about a plan.
    pub(crate) fn of_plan(say: &PlanDecision) -> Self {
        match say {
            PlanDecision::Approve => Self::Approved,
            PlanDecision::FirstWave => Self::FirstWave,
            PlanDecision::Edit(_) => Self::Edited,
            PlanDecision::Changes(_) => Self::Changes,
            PlanDecision::Reject(_) => Self::Rejected,
            PlanDecision::Rule(_) => Self::Decided,
        }
    }

    /// Whether it lets nothing happen.
    pub fn is_no(self) -> bool {
        matches!(self, Self::No | Self::Rejected | Self::Changes)
    }

    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Approved => "approved",
            Self::FirstWave => "approved the first wave",
            Self::Edited => "edited",
            Self::Changes => "asked for changes",
            Self::Rejected => "rejected",
            Self::Replaced => "replaced",
            Self::Decided => "decided",
            Self::Answered => "answered",
            Self::Rewound => "rewound",
        }
    }
}

impl fmt::Display for AnswerWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn answered_by(question: QuestionId, by: &DecidedBy, said: AnswerWord, at_ms: i64) -> Vec<Projection> {
    let row = AnsweredRow { by: by.clone(), said, at_ms, replaced_by: None };
    put(ANSWERED, &question.to_string(), at_ms, &row)
}

/// A row; a value that is no JSON makes none.
pub(crate) fn put(table: &str, key: &str, sort_ms: i64, value: &impl Serialize) -> Vec<Projection> {
    let row = serde_json::to_vec(value).map(|value| Projection::Put {
        table: table.to_owned().into(),
        key: key.to_owned(),
        value,
        sort_ms,
    });
    row.into_iter().collect()
}

/// A row that keeps the greatest value.
fn raise(table: &'static str, key: String, value: &TurnId) -> Option<Projection> {
    Some(Projection::Raise { table: table.into(), key, value: serde_json::to_vec(value).ok()? })
}

/// The row of a working agent, deleted when it has no more work.
pub(crate) fn at_rest(agent: AgentId) -> Projection {
    delete(WORKING, &agent.to_string())
}

fn delete(table: &'static str, key: &str) -> Projection {
    Projection::Delete { table: table.into(), key: key.to_owned() }
}

/// A row of a table.
pub(crate) fn row<T: DeserializeOwned>(journal: &Journal, table: &str, key: &str) -> Result<Option<T>, RuntimeError> {
    Ok(journal.get(table, key)?.and_then(|value| serde_json::from_slice(&value).ok()))
}

/// The rows of a table with their keys, newest first.
pub(crate) fn rows<T: DeserializeOwned>(journal: &Journal, table: &str) -> Result<Vec<(String, T)>, RuntimeError> {
    rows_since(journal, table, i64::MIN)
}

/// Like `rows`, but without those that are sorted before a time.
pub(crate) fn rows_since<T: DeserializeOwned>(
    journal: &Journal,
    table: &str,
    since_ms: i64,
) -> Result<Vec<(String, T)>, RuntimeError> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = journal.list(table, PAGE, after.as_ref())?;
        let Some(last) = page.last() else { return Ok(found) };
        let is_last = last.sort_ms < since_ms;
        after = Some(last.cursor());
        let new = page.into_iter().filter(|item| item.sort_ms >= since_ms);
        found.extend(new.filter_map(|item| Some((item.key, serde_json::from_slice(&item.value).ok()?))));
        if is_last {
            return Ok(found);
        }
    }
}

/// The keys of a table's rows.
pub(crate) fn keys(journal: &Journal, table: &str) -> Result<Vec<String>, JournalError> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = journal.list(table, PAGE, after.as_ref())?;
        let Some(last) = page.last() else { return Ok(found) };
        after = Some(last.cursor());
        found.extend(page.into_iter().map(|item| item.key));
    }
}

/// Rows read at a time.
const PAGE: usize = 256;
/// Entries read at a time.
const ENTRIES: usize = 512;

/// The entries of a stream after one of them, read lazily.
pub(crate) fn entries<'a>(
    journal: &'a Journal,
    stream: &'a str,
    mut after: u64,
) -> impl Iterator<Item = Result<Entry, RuntimeError>> + 'a {
    let (mut page, mut is_over) = (Vec::new().into_iter(), false);
    std::iter::from_fn(move || {
        if page.len() == 0 && !is_over {
            match journal.read(stream, after, ENTRIES) {
                Ok(read) => page = read.into_iter(),
                Err(error) => {
                    is_over = true;
                    return Some(Err(error.into()));
                }
            }
        }
        let entry = page.next();
        match &entry {
            Some(entry) => after = entry.stream_seq,
            None => is_over = true,
        }
        entry.map(Ok)
    })
}

/// All entries of some streams, in order.
pub(crate) fn all_entries<'s>(
    journal: &Journal,
    streams: impl IntoIterator<Item = &'s String>,
) -> Result<Vec<Entry>, RuntimeError> {
    let mut all = Vec::new();
    for stream in streams {
        for entry in entries(journal, stream, 0) {
            all.push(entry?);
        }
    }
    all.sort_unstable_by_key(|entry| entry.seq);
    Ok(all)
}

/// The events of a stream, with their times.
pub(crate) fn events_of(journal: &Journal, stream: &str) -> Result<Vec<(i64, Event)>, RuntimeError> {
    entries(journal, stream, 0).map(|entry| entry.and_then(|entry| Ok((entry.at_ms, event_of(&entry)?)))).collect()
}

/// The event of an entry.
pub(crate) fn event_of(entry: &Entry) -> Result<Event, RuntimeError> {
    let unreadable = |detail: String| RuntimeError::Unreadable { seq: entry.seq, stream: entry.stream.clone(), detail };
    let payload = entry.payload.as_deref().ok_or_else(|| unreadable("it was erased".to_owned()))?;
    serde_json::from_slice(payload).map_err(|error| unreadable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use max_team_core::id::EnvelopeId;
    use serde_json::json;

    use super::*;

    /// Whoever proposes a plan knows when its message was written, not when it will be stored.
    #[test]
    fn an_open_plan_is_sorted_by_its_message() {
        let session = SessionId::new(max_team_core::hash::Hash::of("session").uuid());
        let envelope = Envelope::new(
            EnvelopeId::new(max_team_core::hash::Hash::of("letter").uuid()),
            "agent/a",
            "plan/p",
            MessageKind::PlanApprovalRequest,
            json!({ "session": session }),
            5,
        );
        let rows = project("mail/plan/p", 9, &Event::Mailed(envelope));
        assert_eq!(rows, put(PLAN_OPEN, "p", 5, &session));
    }
}
