//! What an agent does with the team's memory: reads, writes where it may, and, as a lead, hands on what was said.
//!
//! A write is committed together with its result, like everything that acts on the team: a crash neither loses nor
//! repeats it. Who may write is not decided here.

use max_team_core::event::Event;
use max_team_core::limits::{MEMORY_RECALLED_MAX, MEMORY_WRITE_TRIES_MAX};
use max_team_core::memory::{Board, MemoryHanded, Recall, Scope, Source, Writer, proof, vouches};
use max_team_core::message::{Assignment, Envelope, Kind};
use serde_json::{Value, json};

use super::Agent;
use super::acts::Done;
use super::mail::derived;
use crate::error::RuntimeError;
use crate::memory::{self, Ask, Memories, Where};
use crate::rows;
use crate::session;
use crate::shared::{append, commit_at, lock, now_ms};

/// Bytes that a look into the memory answers with.
const READ_BYTES_MAX: usize = 16 << 10;
/// Facts that a search answers with.
const FOUND_MAX: usize = 2 * MEMORY_RECALLED_MAX;
/// What the expert's work is called; no call of a lead's has such a key.
const TASK: &str = "memory";

impl Agent {
    /// Carries a call of the memory's tools out, and decides anew if somebody else wrote to the board first.
    pub(super) async fn recollect(&mut self, key: &str, ask: &Ask) -> Result<(), RuntimeError> {
        for _ in 0..MEMORY_WRITE_TRIES_MAX {
            let done = match ask {
                Ask::Read(read) => self.look_up(read)?,
                Ask::Write(write) => self.write_down(write)?,
            };
            if self.end_first(key, done).await? {
                return Ok(());
            }
        }
        self.end_act(key, Done::wrong("others write to this board all the time; try again later")).await
    }

    fn project(&self) -> Scope {
        memory::project_scope(&self.floor.root)
    }

    fn look_up(&self, read: &memory::Read) -> Result<Done, RuntimeError> {
        let memories = Memories::new(&self.floor.shared.journal);
        let scopes = [self.project(), Scope::User];
        let words = match (&read.key, &read.query) {
            (Some(key), _) => {
                let mut board = Board::default();
                // The project's last: what it says takes the place of what holds everywhere.
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
        Ok(Done::said(bounded(words)))
    }

    fn write_down(&self, write: &memory::Write) -> Result<Done, RuntimeError> {
        let memories = Memories::new(&self.floor.shared.journal);
        let who = Writer::of(self.frame.definition(), self.lead);
        let is_users = write.scope.map_or_else(|| write.key.section().is_users(), |scope| scope == Where::User);
        let scope = if is_users { Scope::User } else { self.project() };
        let session = self.floor.session;
        let vouched = vouches(&write.key, &write.value, &write.quote, &memories.said(session)?);
        // Words that nobody said are no source.
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
            Err(RuntimeError::Memory(refusal)) => return Ok(Done::wrong(refusal.to_string())),
            Err(error) => return Err(error),
        };
        let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
        let keys = keys.join(", ");
        let mut done = Done::said(if write.value.is_null() {
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

    /// What a turn of the lead's is told from memory. A memory that cannot be read keeps nobody from answering; if it is
    /// the journal, the next commit says so.
    pub(super) fn recall(&self, words: &str) -> Option<Recall> {
        let standing = self.frame.standing()?;
        let memories = Memories::new(&self.floor.shared.journal);
        let noted = lock(&self.floor.shared.noted).clone();
        let begins = (self.notes() && self.turn.history().is_empty()).then_some(&noted);
        memory::recalled(&memories, &self.project(), standing, words, begins).ok().flatten()
    }

    /// Notes where the conversation stands, and hands what was said since the last time to the expert in charge, if it is time: in one commit with the note that
    /// it was handed over.
    pub(super) async fn hand_over(&mut self) -> Result<(), RuntimeError> {
        if std::mem::take(&mut self.answered) {
            self.note_dialog().await?;
        }
        let (Some(remember), Some(settings)) = (self.floor.shared.remember.get(), self.turn.settings()) else {
            return Ok(());
        };
        let Some(mate) = memory::expert(remember, settings) else { return Ok(()) };
        let journal = &self.floor.shared.journal;
        let Some(handover) = memory::handover(journal, self.floor.session, remember.every)? else { return Ok(()) };
        let agent = handover.agent(self.floor.session);
        let known = Memories::new(journal).known(&self.project(), &handover.said)?;
        let assignment = Assignment {
            reply_to: self.stream.clone(),
            task: TASK.to_owned(),
            attempt: 1,
            depth: 1,
            ..Assignment::default()
        };
        let letter = Envelope::new(
            derived(&[self.session_stream.as_bytes(), handover.name().as_bytes(), b"memory"]),
            &self.stream,
            session::agent_stream(agent),
            Kind::TaskAssign,
            json!({ "text": handover.text(&known), "assignment": assignment }),
            now_ms(),
        );
        let mut commit = commit_at(now_ms());
        commit.fence = Some(self.floor.fence.clone());
        let memory::Handover { after, upto, attempt, .. } = handover;
        let handed = Event::MemoryHanded(MemoryHanded { upto, agent, after, attempt });
        commit.projections.extend(rows::project(&self.session_stream, commit.at_ms, &handed));
        commit.appends.push(append(&self.session_stream, &handed, &commit.actor)?);
        self.welcome(agent, &mate, assignment.into(), letter, commit).await
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
