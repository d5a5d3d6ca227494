//! What people send to agents: messages, requests to shut down or to change the mode, requests for more teammates.
//!
//! A busy agent reads a message at its next step, or with its next turn if it makes no further step; an idle one is
//! woken; if no process runs the session, the message waits. Names are resolved before anything is written, so that an
//! unknown name is an error for the sender.

use std::borrow::Cow;

use max_team_core::body::{Body, SetMode, Stop, TeamRequest, UserInput};
use max_team_core::event::{Event, UserMessage};
use max_team_core::id::{AgentId, EnvelopeId, SessionId};
use max_team_core::limits::{
    CALL_TEXT_BYTES_MAX, MAIL_WAITING_MAX, MESSAGE_BYTES_MAX, QUEUE_MAX, TEAMMATES_LOADED_MAX,
};
use max_team_core::message::{Address, Envelope, MessageKind, Principal, Role};
use max_team_core::policy::Mode;
use max_team_core::teammate::Spawn;
use max_team_core::teammate::name::{self, Addressee};
use max_team_journal::{Commit, Durability};
use serde::Serialize;

use super::UserMail;
use crate::agent::derived;
use crate::error::RuntimeError;
use crate::handle::require;
use crate::plan::address;
use crate::read_model::ReadModel;
use crate::rows::{self, AgentRow, TeammateRow};
use crate::session::{self, SessionRow, Sessions};
use crate::shared::{append, commit_at, now_ms};

/// An agent that a message is addressed to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recipient {
    pub name: String,
    pub agent: AgentId,
    /// Whether it is the session's lead.
    pub lead: bool,
}

impl Recipient {
    pub fn address(&self) -> String {
        session::agent_stream(self.agent)
    }
}

/// Messages that were written, once they are in the journal.
#[derive(Debug, Clone)]
pub struct SentMessages {
    /// The agents it was written to.
    pub readers: Vec<Recipient>,
    /// The messages; none that had been written before under the same key.
    pub envelopes: Vec<Envelope>,
    /// The event of a message to the lead, in its session's stream.
    pub(crate) said: Option<Event>,
    pub(crate) at_ms: i64,
}

/// How an agent is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndMode {
    /// After its work and its mail.
    Asked,
    /// At once: the current work is interrupted.
    Told,
}

/// When the lead reads a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Now,
    /// After the running turn.
    Later,
    /// To all agents of the session: taking it back takes it back from all of them.
    ToAll,
}

impl UserMail<'_> {
    /// Sends a message to these agents. `team` means all of them; the lead gets it as a message of its chat.
    pub async fn write(
        &self,
        by: &Principal,
        key: EnvelopeId,
        session: SessionId,
        to: &[String],
        text: &str,
    ) -> Result<SentMessages, RuntimeError> {
        require(by, Role::Member)?;
        let row = Sessions::new(self.journal).row(session)?;
        let readers = self.readers(&row, to)?;
        let lead = readers.iter().find(|reader| reader.lead).map_or("", |reader| reader.name.as_str());
        let is_to_all = to.iter().any(|to| name::resolve(to, lead) == Addressee::Everybody);
        let how = if is_to_all { How::ToAll } else { How::Now };
        self.write_to(by, key, &row, readers, text, how).await
    }

    /// Sends a message to the lead of a session; `wait`: it begins a turn after the running one.
    pub(crate) async fn say(
        &self,
        by: &Principal,
        key: EnvelopeId,
        session: SessionId,
        text: &str,
        wait: bool,
    ) -> Result<SentMessages, RuntimeError> {
        require(by, Role::Member)?;
        let row = Sessions::new(self.journal).row(session)?;
        let lead = Recipient { name: String::new(), agent: row.lead, lead: true };
        let how = if wait { How::Later } else { How::Now };
        self.write_to(by, key, &row, vec![lead], text, how).await
    }

    async fn write_to(
        &self,
        by: &Principal,
        key: EnvelopeId,
        row: &SessionRow,
        readers: Vec<Recipient>,
        text: &str,
        how: How,
    ) -> Result<SentMessages, RuntimeError> {
        // An empty message would start a turn, which costs money.
        if text.trim().is_empty() {
            return Err(RuntimeError::Silent);
        }
        let (at_ms, name) = (now_ms(), by.signature());
        let (mut commit, mut said) = (commit_at(at_ms), None);
        for reader in &readers {
            let max = if reader.lead { MESSAGE_BYTES_MAX } else { CALL_TEXT_BYTES_MAX };
            if text.len() > max {
                return Err(RuntimeError::TooLong { bytes: text.len(), max });
            }
            let input = UserInput { text, ..UserInput::default() };
            let (id, input) = if reader.lead {
                (key, UserInput { wait: how == How::Later, all: how == How::ToAll, ..input })
            } else {
                (of(key, reader), UserInput { by: &name, session: Some(row.session), ..input })
            };
            // A repeated order: its message exists already.
            if self.journal.has_mail(id)? {
                continue;
            }
            self.has_room(reader)?;
            commit.sends.push(envelope(by, id, reader, MessageKind::UserInput, Body::Input(input)));
            if reader.lead {
                // `--continue` in a folder continues a session of this machine, never a chat's.
                let cwd = if row.chat.is_some() { String::new() } else { row.cwd.clone() };
                let (text, by) = (text.to_owned(), by.clone());
                said = Some(Event::Said(UserMessage { envelope: key, text, by, cwd }));
            }
        }
        if let Some(said) = &said {
            let stream = session::stream(row.session);
            commit.projections.extend(rows::project(&stream, at_ms, said));
            commit.appends.push(append(&stream, said, &by.address())?);
        }
        let envelopes = self.keep(commit).await?;
        Ok(SentMessages { readers, envelopes, said, at_ms })
    }

    /// The messages that an order has written, each with its reader's name and mailbox: a broadcast is taken back as a
    /// whole. The lead's message has the order's own id.
    pub(crate) fn copies(
        &self,
        session: SessionId,
        order: EnvelopeId,
    ) -> Result<Vec<(String, Address, EnvelopeId)>, RuntimeError> {
        let lead = Sessions::new(self.journal).row(session)?.lead;
        let mut found = Vec::new();
        for row in ReadModel::new(self.journal).agents(session)? {
            let envelope = if row.agent == lead { order } else { envelope_of(order, row.agent) };
            if self.journal.has_mail(envelope)? {
                found.push((row.name.clone(), session::agent_stream(row.agent), envelope));
            }
        }
        Ok(found)
    }

    /// Asks or orders teammates to shut down.
    pub async fn part(
        &self,
        by: &Principal,
        key: EnvelopeId,
        session: SessionId,
        to: &[String],
        how: EndMode,
    ) -> Result<SentMessages, RuntimeError> {
        require(by, Role::Owner)?;
        let kind = if how == EndMode::Told { MessageKind::Shutdown } else { MessageKind::ShutdownRequest };
        let stop = Stop { by: &by.signature(), end: true, ..Stop::default() };
        self.order(by, key, session, to, kind, Body::Stop(stop)).await
    }

    /// Sets the mode of teammates; none becomes freer than the session.
    pub async fn set_mode(
        &self,
        by: &Principal,
        key: EnvelopeId,
        session: SessionId,
        to: &[String],
        mode: Mode,
    ) -> Result<SentMessages, RuntimeError> {
        require(by, Role::Owner)?;
        let mode = SetMode { mode: Some(mode), ..SetMode::default() };
        self.order(by, key, session, to, MessageKind::ModeSetRequest, Body::Mode(mode)).await
    }

    /// Sends a message to teammates, without their lead.
    async fn order(
        &self,
        by: &Principal,
        key: EnvelopeId,
        session: SessionId,
        to: &[String],
        kind: MessageKind,
        body: Body<'_>,
    ) -> Result<SentMessages, RuntimeError> {
        let row = Sessions::new(self.journal).row(session)?;
        let mut readers = self.readers(&row, to)?;
        readers.retain(|reader| !reader.lead);
        let teammates = rows::teammates_of(&session.to_string());
        let known: Vec<TeammateRow> = rows::rows(self.journal, &teammates)?.into_iter().map(|(_, row)| row).collect();
        let is_teammate = |reader: &Recipient| known.iter().any(|teammate| teammate.agent == reader.agent);
        if let Some(other) = readers.iter().find(|reader| !is_teammate(reader)) {
            return Err(self.unknown_name(&row, &other.name)?);
        }
        let Some(_) = readers.first() else { return Err(self.unknown_name(&row, &to.join(", "))?) };
        let at_ms = now_ms();
        let mut commit = commit_at(at_ms);
        for reader in &readers {
            let id = of(key, reader);
            if !self.journal.has_mail(id)? {
                commit.sends.push(envelope(by, id, reader, kind, body.clone()));
            }
        }
        let envelopes = self.keep(commit).await?;
        Ok(SentMessages { readers, envelopes, said: None, at_ms })
    }

    /// Asks the lead of a session to start these teammates. It checks them by the rules for teammates that its model
    /// asks for; the outcome is in its stream.
    pub async fn recruit(
        &self,
        by: &Principal,
        key: EnvelopeId,
        session: SessionId,
        teammates: &[Spawn],
    ) -> Result<SentMessages, RuntimeError> {
        require(by, Role::Owner)?;
        if teammates.len() > TEAMMATES_LOADED_MAX {
            let words =
                format!("a team of {} is more than begin at once: at most {TEAMMATES_LOADED_MAX}", teammates.len());
            return Err(RuntimeError::Plan(words));
        }
        let row = Sessions::new(self.journal).row(session)?;
        let lead = Recipient { name: String::new(), agent: row.lead, lead: true };
        let at_ms = now_ms();
        let mut commit = commit_at(at_ms);
        if !self.journal.has_mail(key)? {
            // The session counts as used from now on, even without a message.
            let wanted =
                TeamRequest { teammates: Some(Cow::Borrowed(teammates)), by: &by.signature(), session: Some(session) };
            commit.sends.push(envelope(by, key, &lead, MessageKind::TeamRequest, Body::Team(wanted)));
        }
        let envelopes = self.keep(commit).await?;
        Ok(SentMessages { readers: vec![lead], envelopes, said: None, at_ms })
    }

    /// Commits durably: people rely on these messages.
    pub(super) async fn keep(&self, mut commit: Commit) -> Result<Vec<Envelope>, RuntimeError> {
        let envelopes = commit.sends.clone();
        if !envelopes.is_empty() {
            commit.strength = Durability::Full;
            rows::of_sends(&mut commit);
            if let Some(before) = self.before {
                before(&envelopes);
            }
            self.journal.commit(commit).await?;
        }
        Ok(envelopes)
    }

    fn has_room(&self, reader: &Recipient) -> Result<(), RuntimeError> {
        let address = reader.address();
        if !reader.lead {
            let is_full = self.journal.count_mail(&address)? >= MAIL_WAITING_MAX;
            let full = RuntimeError::MailFull { name: reader.name.clone(), max: MAIL_WAITING_MAX };
            return if is_full { Err(full) } else { Ok(()) };
        }
        let queued = self.journal.pending_mail(&address)?;
        let waiting = queued.iter().filter(|envelope| envelope.kind == MessageKind::UserInput).count();
        if waiting >= QUEUE_MAX { Err(RuntimeError::QueueFull(QUEUE_MAX)) } else { Ok(()) }
    }

    /// The agents that these names mean in a session.
    pub fn find_readers(&self, session: SessionId, to: &[String]) -> Result<Vec<Recipient>, RuntimeError> {
        self.readers(&Sessions::new(self.journal).row(session)?, to)
    }

    fn readers(&self, row: &SessionRow, to: &[String]) -> Result<Vec<Recipient>, RuntimeError> {
        let agents = ReadModel::new(self.journal).agents(row.session)?;
        let lead = agents.iter().find(|agent| agent.agent == row.lead);
        let lead =
            Recipient { name: lead.map_or_else(String::new, |lead| lead.name.clone()), agent: row.lead, lead: true };
        let teammates = rows::rows::<TeammateRow>(self.journal, &rows::teammates_of(&row.session.to_string()))?;
        let teammate =
            |name: &str, row: &TeammateRow| Recipient { name: name.to_owned(), agent: row.agent, lead: false };
        let mut readers: Vec<Recipient> = Vec::new();
        for to in to {
            match name::resolve(to, &lead.name) {
                Addressee::Lead => readers.push(lead.clone()),
                Addressee::Everybody => {
                    let there = teammates.iter().filter(|(_, row)| row.gone.is_none());
                    let mut all: Vec<Recipient> = there.map(|(name, row)| teammate(name, row)).collect();
                    all.sort_by(|one, other| one.name.cmp(&other.name));
                    readers.extend(all);
                    readers.push(lead.clone());
                }
                Addressee::Teammate(name) => match teammates.iter().find(|(known, _)| known == name) {
                    Some((_, TeammateRow { gone: Some(gone), .. })) => {
                        let (name, by, reason) = (name.to_owned(), gone.by.clone(), gone.reason.clone());
                        return Err(RuntimeError::Gone { name, by, reason });
                    }
                    Some((name, row)) => readers.push(teammate(name, row)),
                    None => match agents.iter().rfind(|agent| was_called(agent) && agent.is(name)) {
                        Some(agent) => {
                            readers.push(Recipient { name: agent.handle(), agent: agent.agent, lead: false })
                        }
                        None if let Some(found) = address::find_task(self.journal, row.session, name)? => {
                            readers.push(Recipient { name: found.task, agent: found.row.agent, lead: false });
                        }
                        None => {
                            // The lead and `team` are possible names, too.
                            let others = [lead.name.as_str(), "team"].into_iter().filter(|other| !other.is_empty());
                            return Err(self.unknown_name_among(row, name, others.map(str::to_owned))?);
                        }
                    },
                },
            }
        }
        let mut seen = std::collections::HashSet::new();
        readers.retain(|reader| seen.insert(reader.agent));
        Ok(readers)
    }

    /// The error for an unknown name, with the names of the teammates.
    fn unknown_name(&self, row: &SessionRow, name: &str) -> Result<RuntimeError, RuntimeError> {
        self.unknown_name_among(row, name, [])
    }

    /// Like `unknown_name`, with further possible names.
    fn unknown_name_among(
        &self,
        row: &SessionRow,
        name: &str,
        others: impl IntoIterator<Item = String>,
    ) -> Result<RuntimeError, RuntimeError> {
        let there = rows::teammates_there(self.journal, row.session)?.into_iter().map(|(name, _)| name);
        let mut there: Vec<String> = there.collect();
        there.sort_unstable();
        there.extend(others);
        Ok(RuntimeError::NoReader { name: name.to_owned(), session: row.session, there })
    }
}

/// Whether an agent was called for one task outside a plan and is no teammate: a message lets it continue.
fn was_called(row: &AgentRow) -> bool {
    row.assignment.as_ref().is_some_and(|given| given.plan.is_none() && given.life.teammate().is_none())
}

/// The id follows from order and reader, so that a repeated order sends no second message.
pub(super) fn of(key: EnvelopeId, reader: &Recipient) -> EnvelopeId {
    envelope_of(key, reader.agent)
}

/// The id of the message to an agent that the order with that key writes.
pub fn envelope_of(key: EnvelopeId, agent: AgentId) -> EnvelopeId {
    derived(&[key.to_string().as_bytes(), session::agent_stream(agent).as_bytes(), b"written"])
}

pub(super) fn envelope(
    by: &Principal,
    id: EnvelopeId,
    reader: &Recipient,
    kind: MessageKind,
    body: Body<'_>,
) -> Envelope {
    let (from, to) = (by.address(), reader.address());
    Envelope::new(id, from, to, kind, body, now_ms())
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn who_wants_to_know_of_messages_does_before_they_are_there() {
        let journal = max_team_journal::Journal::memory();
        let id = EnvelopeId::new(Uuid::from_u128(1));
        let told = std::sync::Mutex::new(Vec::new());
        let before = |envelopes: &[Envelope]| {
            assert!(!journal.has_mail(id).unwrap());
            told.lock().unwrap().extend(envelopes.iter().map(|envelope| envelope.id));
        };
        let envelope =
            Envelope::new(id, "user/me", "agent/a", MessageKind::UserInput, Body::Input(UserInput::default()), 1);
        let commit = Commit { sends: vec![envelope], ..Commit::default() };
        UserMail::telling(&journal, &before).keep(commit).await.unwrap();
        assert!(journal.has_mail(id).unwrap());
        assert_eq!(*told.lock().unwrap(), [id]);
    }
}
