//! Sessions: the dialogue with a user, and the rows that list them.
//!
//! The rows are projections: they follow from entries alone and can be made again from the log.

pub mod instructions;

use std::collections::BTreeSet;
use std::path::Path;

use max_team_core::channel::ChatAddress;
use max_team_core::event::{Event, LaunchFlags};
use max_team_core::id::{AgentId, SessionId};
use max_team_journal::{Cursor, Journal, Projection};
use serde::{Deserialize, Serialize};

use crate::error::RuntimeError;
use crate::memory;
use crate::read_model::{Cast, ReadModel};
use crate::rows::{self, TeammateRow, put};
use crate::skills::Contract;
use crate::tasks;

/// The fixed facts of each session, written once.
const OPENED: &str = "session";
/// The last activity of each session.
const LAST: &str = "session_last";
/// The last message of the user in each session.
const ASKED: &str = "session_asked";
/// The session last used in each directory.
pub(crate) const IN_DIRECTORY: &str = "session_in";
/// The last activity in each session that was not the lead's: work, messages to other agents, changes of the task
/// list.
pub(crate) const USED: &str = "session_used";
/// The session of each chat of a messaging service.
const OF_CHAT: &str = "session_of_chat";
/// Characters of the title and the preview.
const PREVIEW_CHARS: usize = 80;
/// Entries read from the journal at a time.
const PAGE: usize = 512;
/// Last entries of the journal that are searched for the session that was used last.
const RECENT_ENTRIES_MAX: usize = 1_000;

/// The stream of a session held in a terminal.
pub(crate) fn stream(session: SessionId) -> String {
    format!("session/cli:{session}")
}

/// The session behind a stream's name.
pub(crate) fn session_of(stream: &str) -> Option<&str> {
    stream.strip_prefix("session/cli:")
}

/// The stream of an agent; also the address of its mailbox.
pub(crate) fn agent_stream(agent: AgentId) -> String {
    format!("agent/{agent}")
}

/// A row of `sessions list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRow {
    pub session: SessionId,
    pub lead: AgentId,
    /// The directory that it works in.
    pub cwd: String,
    /// When it was opened first.
    pub opened_at_ms: i64,
    /// The time of the last message or answer.
    pub last_at_ms: i64,
    /// The last message of the user, shortened.
    pub preview: String,
    /// Whether the last message has its answer.
    pub answered: bool,
    /// The chat of a messaging service that it is held in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<ChatAddress>,
}

#[derive(Serialize, Deserialize)]
struct OpenedRow {
    lead: AgentId,
    cwd: String,
    at_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chat: Option<ChatAddress>,
}

#[derive(Serialize, Deserialize)]
struct LastRow {
    answered: bool,
    at_ms: i64,
}

/// The rows that an event of a session's stream changes.
pub(crate) fn project(session: &str, at_ms: i64, event: &Event) -> Vec<Projection> {
    let last = |answered| put(LAST, session, at_ms, &LastRow { answered, at_ms });
    match event {
        Event::SessionOpened(opened) => {
            let (cwd, chat) = (opened.cwd.clone(), opened.chat.clone());
            let of_chat = chat.as_ref().map(|chat| Projection::Put {
                table: OF_CHAT.into(),
                key: chat.to_string(),
                value: session.as_bytes().to_vec(),
                sort_ms: at_ms,
            });
            let mut rows = put(OPENED, session, at_ms, &OpenedRow { lead: opened.lead, cwd, at_ms, chat });
            rows.extend(of_chat);
            rows
        }
        Event::Said(said) => {
            let here = Projection::Put {
                table: IN_DIRECTORY.into(),
                key: said.cwd.clone(),
                value: session.as_bytes().to_vec(),
                sort_ms: at_ms,
            };
            let asked = put(ASKED, session, at_ms, &preview(&said.text));
            last(false).into_iter().chain(asked).chain([here]).collect()
        }
        Event::Replied(replied) => last(replied.whole),
        Event::MemoryHanded(handed) => put(memory::HANDED, session, at_ms, handed),
        _ => Vec::new(),
    }
}

/// The sessions of a journal; needs no runtime.
#[derive(Debug)]
pub struct Sessions<'j> {
    journal: &'j Journal,
}

impl<'j> Sessions<'j> {
    pub fn new(journal: &'j Journal) -> Self {
        Self { journal }
    }

    /// Sessions with a conversation or other activity, last used first.
    pub fn list(&self, limit: usize) -> Result<Vec<SessionRow>, RuntimeError> {
        let mut sessions = Vec::new();
        for last in self.journal.list(LAST, limit, None)? {
            let opened = self.journal.get(OPENED, &last.key)?;
            let asked = self.journal.get(ASKED, &last.key)?;
            let row = opened.and_then(|opened| row_of(&last.key, &opened, Some(&last.value), asked.as_deref()));
            sessions.extend(row.map(|row| self.titled(row)).transpose()?);
        }
        for used in self.journal.list(USED, limit, None)? {
            if self.journal.get(LAST, &used.key)?.is_none()
                && self.is_begun(&used.key)?
                && let Some(row) = used.key.parse().ok().and_then(|session| self.row(session).ok())
            {
                let preview = self.names(&row)?;
                sessions.push(SessionRow { last_at_ms: used.sort_ms, answered: true, preview, ..row });
            }
        }
        sessions.sort_by_key(|row| std::cmp::Reverse(row.last_at_ms));
        sessions.truncate(limit);
        Ok(sessions)
    }

    /// A session that carries out a skill gets the command as its title: its first message is only the skill's input.
    fn titled(&self, row: SessionRow) -> Result<SessionRow, RuntimeError> {
        if row.preview != Contract::HEAD {
            return Ok(row);
        }
        let table = rows::agents_of(&row.session.to_string());
        let lead = rows::row::<rows::AgentRow>(self.journal, &table, &row.lead.to_string())?;
        Ok(match lead.filter(|lead| lead.role == Contract::ROLE) {
            Some(lead) => SessionRow { preview: preview(&format!("skills run {}", lead.name)), ..row },
            None => row,
        })
    }

    /// The title of a session without a message to the lead: the agents that were started, or were to be.
    fn names(&self, row: &SessionRow) -> Result<String, RuntimeError> {
        let teammates = rows::rows::<TeammateRow>(self.journal, &rows::teammates_of(&row.session.to_string()))?;
        let mut names: Vec<String> = teammates.into_iter().map(|(name, _)| format!("@{name}")).collect();
        if names.is_empty() {
            let messages = ReadModel::new(self.journal).messages(row.session)?;
            let wanted = messages.iter().filter_map(|message| crate::agent::wanted(&message.envelope));
            names.extend(wanted.flatten().map(|teammate| format!("@{}", teammate.name)));
        }
        names.sort_unstable();
        names.dedup();
        Ok(preview(&names.join(" ")))
    }

    /// Calls `each` with the ids of all sessions with a conversation, last used first.
    pub fn each_id(&self, mut each: impl FnMut(String)) -> Result<(), RuntimeError> {
        let mut after = None;
        loop {
            let page = self.journal.list(LAST, PAGE, after.as_ref())?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.cursor());
            page.into_iter().for_each(|item| each(item.key));
        }
    }

    /// The new row of the last used session in a directory if some sessions go; `None` if the row names none of them.
    pub(crate) fn latest_without(&self, cwd: &str, gone: &[SessionId]) -> Result<Option<Projection>, RuntimeError> {
        let is_gone = |id: &str| id.parse().is_ok_and(|id| gone.contains(&id));
        let latest = self.journal.get(IN_DIRECTORY, cwd)?;
        if !latest.as_deref().and_then(|id| std::str::from_utf8(id).ok()).is_some_and(is_gone) {
            return Ok(None);
        }
        let mut after = None;
        loop {
            let page = self.journal.list(ASKED, PAGE, after.as_ref())?;
            let Some(last) = page.last() else {
                return Ok(Some(Projection::Delete { table: IN_DIRECTORY.into(), key: cwd.to_owned() }));
            };
            after = Some(last.cursor());
            for item in page.iter().filter(|item| !is_gone(&item.key)) {
                if self.is_in(&item.key, cwd)? {
                    let (key, value) = (cwd.to_owned(), item.key.as_bytes().to_vec());
                    return Ok(Some(Projection::Put { table: IN_DIRECTORY.into(), key, value, sort_ms: item.sort_ms }));
                }
            }
        }
    }

    /// Sessions without any entry since then in any of their streams, the oldest last.
    pub fn unused_since(&self, at_ms: i64) -> Result<Vec<SessionRow>, RuntimeError> {
        let mut found = Vec::new();
        // The rows follow from the lead's messages only, but other agents may have been active since.
        let mut see = |row: SessionRow| {
            let last_at_ms = self.active_at_ms(&row)?;
            found.extend(Some(SessionRow { last_at_ms, ..row }).filter(|row| row.last_at_ms < at_ms));
            Ok(())
        };
        self.each_before(LAST, at_ms, &mut see)?;
        self.each_before(OPENED, at_ms, |row| {
            let was_spoken_in = self.journal.get(LAST, &row.session.to_string())?.is_some();
            if was_spoken_in { Ok(()) } else { see(row) }
        })?;
        found.sort_by_key(|row| std::cmp::Reverse(row.last_at_ms));
        Ok(found)
    }

    /// The time of the last entry in any stream of the session.
    fn active_at_ms(&self, row: &SessionRow) -> Result<i64, RuntimeError> {
        let mut last_ms = row.last_at_ms;
        for stream in Cast::of(self.journal, row.session)?.streams() {
            let Some(before) = self.journal.head(&stream)?.checked_sub(1) else { continue };
            let last = self.journal.read(&stream, before, 1)?;
            last_ms = last.iter().map(|entry| entry.at_ms).fold(last_ms, i64::max);
        }
        Ok(last_ms)
    }

    /// The sessions whose row in a table is older than that.
    fn each_before(
        &self,
        table: &str,
        at_ms: i64,
        mut each: impl FnMut(SessionRow) -> Result<(), RuntimeError>,
    ) -> Result<(), RuntimeError> {
        let mut after = Some(Cursor { sort_ms: at_ms, key: String::new() });
        loop {
            let page = self.journal.list(table, PAGE, after.as_ref())?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.cursor());
            for row in page.iter().filter_map(|item| item.key.parse().ok().and_then(|id| self.row(id).ok())) {
                each(row)?;
            }
        }
    }

    /// The session of a directory that was used last, in the journal's order: a clock may have been wrong. Only sessions with a
    /// later time than the one last spoken to there are compared with it.
    pub fn latest(&self, cwd: &Path) -> Result<SessionRow, RuntimeError> {
        let here = cwd.display().to_string();
        let found = self.journal.get(IN_DIRECTORY, &here)?;
        let spoken_to = found.and_then(|id| session_in(&id)).map(|session| self.row(session)).transpose()?;
        let after_ms = spoken_to.as_ref().map_or(i64::MIN, |row| row.last_at_ms);
        let mut used = spoken_to.map(|row| row.session).into_iter().collect();
        for table in [LAST, USED] {
            self.add_newer(table, &here, after_ms, &mut used)?;
        }
        self.add_recent(&here, &mut used)?;
        self.last_of(used)?.ok_or(RuntimeError::NothingToContinue(here))
    }

    /// A session that works in a folder, if one does; also one of a chat.
    pub(crate) fn working_in(&self, folder: &Path) -> Result<Option<SessionId>, RuntimeError> {
        let (here, mut found) = (folder.display().to_string(), None);
        self.each_before(OPENED, i64::MAX, |row| {
            found = found.or_else(|| (row.cwd == here).then_some(row.session));
            Ok(())
        })?;
        Ok(found)
    }

    /// The session of the whole journal that was used last, in its order.
    pub fn last_used(&self) -> Result<Option<SessionRow>, RuntimeError> {
        let mut used: Vec<SessionId> = self.list(1)?.into_iter().map(|row| row.session).collect();
        let mut after = None;
        loop {
            let page = self.journal.list(IN_DIRECTORY, PAGE, after.as_ref())?;
            let Some(last) = page.last() else { return self.last_of(used) };
            after = Some(last.cursor());
            used.extend(page.iter().filter_map(|item| session_in(&item.value)));
        }
    }

    /// Adds the sessions of a directory that have a later time than the given one in a table.
    fn add_newer(&self, table: &str, cwd: &str, after_ms: i64, used: &mut Vec<SessionId>) -> Result<(), RuntimeError> {
        let mut after = None;
        loop {
            let page = self.journal.list(table, PAGE, after.as_ref())?;
            for item in page.iter().take_while(|item| item.sort_ms > after_ms) {
                if self.is_in(&item.key, cwd)? && self.is_begun(&item.key)? {
                    used.extend(item.key.parse::<SessionId>());
                }
            }
            let Some(last) = page.last().filter(|last| last.sort_ms > after_ms) else { return Ok(()) };
            after = Some(last.cursor());
        }
    }

    /// Adds the sessions of a directory that the last entries of the journal belong to; by order, because the clock
    /// may have been wrong.
    fn add_recent(&self, cwd: &str, used: &mut Vec<SessionId>) -> Result<(), RuntimeError> {
        let first = self.journal.last_seq()?.saturating_sub(RECENT_ENTRIES_MAX as u64);
        let entries = self.journal.read_all(first, RECENT_ENTRIES_MAX)?;
        let streams: BTreeSet<&str> = entries.iter().map(|entry| &*entry.stream).collect();
        for stream in streams {
            let stream = stream.strip_prefix("mail/").unwrap_or(stream);
            let agent =
                || rows::row::<String>(self.journal, rows::AGENT, stream.strip_prefix("agent/")?).ok().flatten();
            let Some(session) = session_of(stream).map(str::to_owned).or_else(agent) else { continue };
            if self.is_in(&session, cwd)? && self.is_begun(&session)? {
                used.extend(session.parse::<SessionId>());
            }
        }
        Ok(())
    }

    /// The session whose last entry comes last in the journal.
    fn last_of(&self, mut used: Vec<SessionId>) -> Result<Option<SessionRow>, RuntimeError> {
        used.sort_unstable();
        used.dedup();
        let mut last = None;
        for session in used {
            last = last.max(Some((self.last_seq(session)?, session)));
        }
        last.map(|(_, session)| self.row(session)).transpose()
    }

    /// The number of the last entry of a session: of its own, its list's, its agents' or their mailboxes'.
    fn last_seq(&self, session: SessionId) -> Result<u64, RuntimeError> {
        let mut streams = vec![stream(session), tasks::stream(session), agent_stream(self.row(session)?.lead)];
        let agents = rows::rows::<rows::AgentRow>(self.journal, &rows::agents_of(&session.to_string()))?;
        streams.extend(agents.into_iter().map(|(_, row)| agent_stream(row.agent)));
        let mut last_seq = 0;
        for stream in streams.iter().flat_map(|stream| [stream.clone(), format!("mail/{stream}")]) {
            let Some(before) = self.journal.head(&stream)?.checked_sub(1) else { continue };
            let last = self.journal.read(&stream, before, 1)?;
            last_seq = last.iter().map(|entry| entry.seq).fold(last_seq, u64::max);
        }
        Ok(last_seq)
    }

    /// Whether a session has any content: a conversation, an agent besides the lead, unread mail, a stop, or a task
    /// list. A team that could not start leaves none.
    fn is_begun(&self, session: &str) -> Result<bool, RuntimeError> {
        if self.journal.get(LAST, session)?.is_some() || tasks::is_any(self.journal, session)? {
            return Ok(true);
        }
        // The lead always has a row.
        if self.journal.list(&rows::agents_of(session), 2, None)?.len() > 1 {
            return Ok(true);
        }
        let opened = rows::row::<OpenedRow>(self.journal, OPENED, session)?;
        let Some(lead) = opened.map(|opened| agent_stream(opened.lead)) else { return Ok(false) };
        if !self.journal.pending_mail(&lead)?.is_empty() {
            return Ok(true);
        }
        // A session without a conversation has few entries.
        Ok(self.journal.read(&lead, 0, PAGE)?.iter().any(|entry| &*entry.event == "interrupted"))
    }

    /// Whether a session works in a directory.
    fn is_in(&self, session: &str, cwd: &str) -> Result<bool, RuntimeError> {
        let opened = rows::row::<OpenedRow>(self.journal, OPENED, session)?;
        Ok(opened.is_some_and(|opened| opened.cwd == cwd && opened.chat.is_none()))
    }

    /// The flags with which a session was opened.
    pub fn choice(&self, session: SessionId) -> Result<LaunchFlags, RuntimeError> {
        let first = self.journal.read(&stream(session), 0, 1)?.into_iter().next();
        let event = first.and_then(|entry| serde_json::from_slice(entry.payload.as_deref()?).ok());
        Ok(match event {
            Some(Event::SessionOpened(opened)) => opened.choice,
            _ => LaunchFlags::default(),
        })
    }

    pub fn row(&self, session: SessionId) -> Result<SessionRow, RuntimeError> {
        let key = session.to_string();
        let opened = self.journal.get(OPENED, &key)?;
        let last = self.journal.get(LAST, &key)?;
        let asked = self.journal.get(ASKED, &key)?;
        opened
            .and_then(|opened| row_of(&key, &opened, last.as_deref(), asked.as_deref()))
            .ok_or(RuntimeError::NoSession(key))
    }

    /// The session of a chat.
    pub fn of_chat(&self, chat: &ChatAddress) -> Result<Option<SessionRow>, RuntimeError> {
        let session = self.journal.get(OF_CHAT, &chat.to_string())?;
        session.and_then(|id| session_in(&id)).map(|session| self.row(session)).transpose()
    }

    /// The sessions of the chats of an account of a channel, newest first.
    pub fn of_account(&self, channel: &str, account: &str) -> Result<Vec<SessionRow>, RuntimeError> {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = self.journal.list(OF_CHAT, PAGE, after.as_ref())?;
            let Some(last) = page.last() else { return Ok(found) };
            after = Some(last.cursor());
            for session in page.iter().filter_map(|item| session_in(&item.value)) {
                let is_there = |chat: &ChatAddress| chat.channel() == channel && chat.account() == account;
                found.extend(Some(self.row(session)?).filter(|row| row.chat.as_ref().is_some_and(is_there)));
            }
        }
    }

    /// The time of the user's last message.
    pub fn last_said_ms(&self, session: SessionId) -> Result<Option<i64>, RuntimeError> {
        let events = rows::events_of(self.journal, &stream(session))?;
        Ok(events.iter().rfind(|(_, event)| matches!(event, Event::Said(_))).map(|(at_ms, _)| *at_ms))
    }

    /// The events of its lead, with their times.
    pub fn events(&self, session: SessionId) -> Result<Vec<(i64, Event)>, RuntimeError> {
        rows::events_of(self.journal, &agent_stream(self.row(session)?.lead))
    }
}

/// The session that a row names.
fn session_in(value: &[u8]) -> Option<SessionId> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

fn row_of(key: &str, opened: &[u8], last: Option<&[u8]>, asked: Option<&[u8]>) -> Option<SessionRow> {
    let opened: OpenedRow = serde_json::from_slice(opened).ok()?;
    let last: Option<LastRow> = last.and_then(|last| serde_json::from_slice(last).ok());
    Some(SessionRow {
        session: key.parse().ok()?,
        lead: opened.lead,
        cwd: opened.cwd,
        chat: opened.chat,
        opened_at_ms: opened.at_ms,
        last_at_ms: last.as_ref().map_or(opened.at_ms, |last| last.at_ms),
        answered: last.as_ref().is_none_or(|last| last.answered),
        preview: asked.and_then(|asked| serde_json::from_slice(asked).ok()).unwrap_or_default(),
    })
}

pub(crate) fn preview(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(PREVIEW_CHARS) {
        Some((cut, _)) => format!("{}…", line.get(..cut).unwrap_or_default()),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use max_team_core::event::{Interrupted, LaunchFlags, SessionOpened, UserMessage};
    use max_team_core::id::EnvelopeId;
    use max_team_core::message::{Envelope, MessageKind, Principal, Role};
    use uuid::Uuid;

    use super::*;
    use crate::shared::{append, commit_at};

    /// Opens a session in a directory, in which something is said.
    async fn speak(journal: &Journal, session: SessionId, cwd: &str, at_ms: i64) {
        let lead = AgentId::new(session.uuid());
        let by = Principal { door: "test".into(), user: "me".into(), role: Role::Owner };
        let (envelope, text) = (EnvelopeId::new(session.uuid()), "hi".to_owned());
        let events = [
            Event::SessionOpened(SessionOpened {
                session,
                lead,
                cwd: cwd.to_owned(),
                by: by.clone(),
                choice: LaunchFlags::default(),
                chat: None,
            }),
            Event::Said(UserMessage { envelope, text, by, cwd: cwd.to_owned() }),
        ];
        let (mut commit, stream) = (commit_at(at_ms), stream(session));
        for event in &events {
            commit.appends.push(append(&stream, event, "test").unwrap());
            commit.projections.extend(rows::project(&stream, at_ms, event));
        }
        journal.commit(commit).await.unwrap();
    }

    /// However many others were used since, and wherever those are.
    #[tokio::test]
    async fn the_session_last_used_is_found_among_all_there_are() {
        let journal = Journal::memory();
        let id = |n: u128| SessionId::new(Uuid::from_u128(n));
        speak(&journal, id(1), "/here", 1).await;
        speak(&journal, id(2), "/here", 2).await;
        for other in 0..40 {
            speak(&journal, id(100 + other), "/there", 100 + i64::try_from(other).unwrap()).await;
        }
        let sessions = Sessions::new(&journal);
        assert_eq!(sessions.latest(Path::new("/here")).unwrap().session, id(2), "spoken to last");
        let mut commit = commit_at(50);
        commit.sends.push(Envelope::new(
            EnvelopeId::new(Uuid::from_u128(9)),
            "agent/a",
            agent_stream(AgentId::new(id(1).uuid())),
            MessageKind::TaskResult,
            serde_json::json!({ "session": id(1) }),
            50,
        ));
        rows::of_sends(&mut commit);
        journal.commit(commit).await.unwrap();
        assert_eq!(sessions.latest(Path::new("/here")).unwrap().session, id(1), "somebody was at work in the other");
        assert!(crate::maintenance::compare_rows(&journal).unwrap().is_empty());
        assert!(sessions.latest(Path::new("/nowhere")).is_err());
    }

    /// A message to a teammate is written after the clock was set back.
    #[tokio::test]
    async fn a_session_is_the_last_also_if_the_clock_was_set_back_meanwhile() {
        let journal = Journal::memory();
        let id = |n: u128| SessionId::new(Uuid::from_u128(n));
        speak(&journal, id(1), "/here", 100).await;
        speak(&journal, id(2), "/here", 200).await;
        let sessions = Sessions::new(&journal);
        assert_eq!(sessions.latest(Path::new("/here")).unwrap().session, id(2));
        let mut commit = commit_at(50);
        let stopped = Interrupted { by: "me".into(), who: None, ends: false, held: None };
        commit.appends.push(append(&stream(id(1)), &Event::Interrupted(stopped), "test").unwrap());
        journal.commit(commit).await.unwrap();
        assert_eq!(sessions.latest(Path::new("/here")).unwrap().session, id(1));
    }

    /// Whatever the clock said at each of them.
    #[tokio::test]
    async fn the_session_last_used_follows_the_order_of_the_journal() {
        let id = |n: u128| SessionId::new(Uuid::from_u128(n));
        for times in [[900, 2, 3], [3, 900, 2], [3, 2, -1], [1, 2, 3], [5, 5, 5]] {
            let journal = Journal::memory();
            for (number, at_ms) in (1..).zip(times) {
                speak(&journal, id(number), "/here", at_ms).await;
            }
            let sessions = Sessions::new(&journal);
            assert_eq!(sessions.latest(Path::new("/here")).unwrap().session, id(3), "{times:?}");
            speak(&journal, id(4), "/there", -5).await;
            assert_eq!(sessions.last_used().unwrap().unwrap().session, id(4), "{times:?}");
            assert_eq!(sessions.latest(Path::new("/here")).unwrap().session, id(3), "{times:?}");
        }
    }

    #[test]
    fn previews_are_one_short_line() {
        assert_eq!(preview("\n  hi there \nmore"), "hi there");
        assert_eq!(preview(&"字".repeat(100)).chars().count(), PREVIEW_CHARS + 1);
    }
}
