//! An agent's use of the team's memory: reads, writes where it may, and, as a lead, hands the conversation to the
//! memory expert.
//!
//! A write is committed together with its result, like everything that acts on the team: a crash neither loses nor
//! repeats it. Who may write is not decided here.

use std::borrow::Cow;

use max_team_core::body::{Body, Task};
use max_team_core::event::Event;
use max_team_core::limits::{MEMORY_RECALLED_MAX, MEMORY_WRITE_TRIES_MAX};
use max_team_core::memory::{Board, BoardScope, MemoryHanded, Recall, Source, Writer, proof, vouches};
use max_team_core::message::{Assignment, Envelope, MessageKind};
use serde_json::{Value, json};

use super::Agent;
use super::acts::ActionOutcome;
use super::mail::derived;
use crate::error::RuntimeError;
use crate::memory::{self, Memories, MemoryRequest, Where};
use crate::rows;
use crate::session;
use crate::shared::{append, commit_at, lock, now_ms};

/// Bytes of an answer from the memory.
const READ_BYTES_MAX: usize = 16 << 10;
/// Facts in the answer to a search.
const FOUND_MAX: usize = 2 * MEMORY_RECALLED_MAX;
/// The task name of the expert; no call of a lead has such a key.
const TASK: &str = "memory";

/// Whether the conversation may be worth remembering. Only a lead's is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum LookBack {
    #[default]
    No,
    /// The loop has started: the last process may not have handed the conversation over.
    AfterStart,
    /// A turn has ended: the state of the conversation is noted, too.
    AfterTurn,
}

impl Agent {
    /// Carries out a call of the memory's tools; decides again if another writer was first.
    pub(super) async fn recollect(&mut self, key: &str, ask: &MemoryRequest) -> Result<(), RuntimeError> {
        for _ in 0..MEMORY_WRITE_TRIES_MAX {
            let done = match ask {
                MemoryRequest::Read(read) => self.look_up(read)?,
                MemoryRequest::Write(write) => self.write_down(write)?,
            };
            if self.end_first(key, done).await? {
                return Ok(());
            }
        }
        self.end_act(key, ActionOutcome::wrong("other processes keep writing to this board; try again later")).await
    }

    fn project(&self) -> BoardScope {
        memory::project_scope(&self.active.root)
    }

    fn look_up(&self, read: &memory::MemoryReadArgs) -> Result<ActionOutcome, RuntimeError> {
        let memories = Memories::new(&self.active.shared.journal);
        let scopes = [self.project(), BoardScope::User];
        let words = match (&read.key, &read.query) {
            (Some(key), _) => {
                let mut board = Board::default();
                // The project's last: its facts take precedence.
                for scope in scopes.iter().rev() {
                    memories.section(scope, key.section())?.facts().for_each(|fact| board.put(fact.clone()));
                }
                let found = board.read(key).map(|value| value.to_string());
                found.unwrap_or_else(|| format!("Nothing is remembered under `{key}`."))
            }
            (None, Some(query)) => {
                let hits = memories.search(&scopes, query, FOUND_MAX)?;
                let found: Vec<Value> =
                    hits.iter().map(|hit| json!({ "key": hit.fact.key, "value": hit.fact.value })).collect();
                if found.is_empty() {
                    "Nothing is remembered about that.".to_owned()
                } else {
                    Value::from(found).to_string()
                }
            }
            (None, None) => {
                let mut keys: Vec<String> = Vec::new();
                for scope in &scopes {
                    keys.extend(memories.board(scope)?.facts().map(|fact| fact.key.to_string()));
                }
                keys.sort_unstable();
                keys.dedup();
                if keys.is_empty() { "Nothing is remembered yet.".to_owned() } else { keys.join("\n") }
            }
        };
        Ok(ActionOutcome::said(bounded(words)))
    }

    fn write_down(&self, write: &memory::Write) -> Result<ActionOutcome, RuntimeError> {
        let memories = Memories::new(&self.active.shared.journal);
        let who = Writer::for_agent(self.frame.definition(), self.turn.origin.lead);
        let is_users = write.scope.map_or_else(|| write.key.section().is_users(), |scope| scope == Where::User);
        let scope = if is_users { BoardScope::User } else { self.project() };
        let session = self.active.session;
        let vouched = vouches(&write.key, &write.value, &write.quote, &memories.said(session)?);
        // A quote that the user did not say is no source.
        let proof = proof(&write.key, &write.value, &write.quote);
        let quote = if vouched { proof.to_owned() } else { String::new() };
        let source = Source { session: Some(session), turn: self.turn.current(), quote, ..Source::default() };
        let changed = if write.value.is_null() {
            memories.forgetting(&scope, &who, &write.key, vouched)
        } else {
            memories.setting(&scope, &who, &write.key, &write.value, &source, vouched)
        };
        let (change, keys) = match changed {
            Ok(changed) => changed,
            Err(RuntimeError::Memory(refusal)) => return Ok(ActionOutcome::wrong(refusal.to_string())),
            Err(error) => return Err(error),
        };
        let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
        let keys = keys.join(", ");
        let mut done = ActionOutcome::said(if write.value.is_null() {
            let key = &write.key;
            format!("Forgotten: {keys}. The user erases its text from the log with `max-team memory forget {key}`.")
        } else {
            format!("Remembered: {keys}.")
        });
        done.extra.expect.push((change.stream.clone(), change.head));
        done.extra.others = change.events.into_iter().map(|event| (change.stream.clone(), event)).collect();
        done.extra.projections = change.stale;
        Ok(done)
    }

    /// The memory text for a turn of the lead. A memory that cannot be read does not prevent the turn; if the journal
    /// is broken, the next commit reports it.
    pub(super) fn recall(&self, words: &str) -> Option<Recall> {
        let standing = self.frame.standing()?;
        let memories = Memories::new(&self.active.shared.journal);
        let noted = lock(&self.active.shared.stored).noted.clone();
        let begins = (self.notes() && self.turn.history().is_empty()).then_some(&noted);
        memory::recalled(&memories, &self.project(), standing, words, begins).ok().flatten()
    }

    /// If it is due, notes the state of the conversation and hands the part since the last time to the memory expert,
    /// in one commit with the record of the handover.
    pub(super) async fn hand_over(&mut self) -> Result<(), RuntimeError> {
        match std::mem::take(&mut self.look_back) {
            LookBack::No => return Ok(()),
            LookBack::AfterStart => {}
            LookBack::AfterTurn => self.note_dialog().await?,
        }
        let (Some(remember), Some(settings)) = (self.active.shared.remember.as_ref(), self.turn.settings()) else {
            return Ok(());
        };
        let Some(teammate) = memory::expert(remember, settings) else { return Ok(()) };
        let journal = &self.active.shared.journal;
        let Some(handover) = memory::handover(journal, self.active.session, remember.every)? else { return Ok(()) };
        let (agent, stream) = (handover.agent(self.active.session), self.session_stream());
        let known = Memories::new(journal).known(&self.project(), &handover.said)?;
        let assignment = Assignment {
            reply_to: self.turn.stream.clone(),
            task: TASK.to_owned(),
            attempt: 1,
            depth: 1,
            ..Assignment::default()
        };
        let text = handover.text(&known);
        let envelope = Envelope::new(
            derived(&[stream.as_bytes(), handover.name().as_bytes(), b"memory"]),
            &self.turn.stream,
            session::agent_stream(agent),
            MessageKind::TaskAssign,
            Body::Task(Task { text: &text, assignment: Some(Cow::Borrowed(&assignment)), ..Task::default() }),
            now_ms(),
        );
        let mut commit = commit_at(now_ms());
        commit.fence = Some(self.active.fence.clone());
        let memory::Handover { after, upto, attempt, .. } = handover;
        let handed = Event::MemoryHanded(MemoryHanded { upto, agent, after, attempt });
        commit.projections.extend(rows::project(&stream, commit.at_ms, &handed));
        commit.appends.push(append(&stream, &handed, &commit.actor)?);
        self.welcome(agent, &teammate, assignment.into(), envelope, commit).await
    }
}

fn bounded(mut words: String) -> String {
    let cut = words.char_indices().map(|(at, _)| at).take_while(|at| *at <= READ_BYTES_MAX).last().unwrap_or_default();
    if words.len() > READ_BYTES_MAX {
        words.truncate(cut);
        words.push_str("\n(There is more: ask for a key, or with a `query`.)");
    }
    words
}
