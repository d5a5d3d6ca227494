//! Notes that code writes into the memory, without a model: the state of a conversation, and which agents fail.

use max_team_core::body::Work;
use max_team_core::chat::{Message, Part};
use max_team_core::event::{Event, TurnOutcome};
use max_team_core::limits::{MEMORY_ERRORS_MAX, MEMORY_NOTE_CHARS_MAX};
use max_team_core::memory::{BoardScope, Key, Section, Source, Writer};
use max_team_core::message::{Envelope, MessageKind};
use max_team_core::time::rfc3339;
use serde_json::{Value, json};

use super::Agent;
use crate::error::RuntimeError;
use crate::memory::{Memories, project_scope};
use crate::rows::event_of;
use crate::shared::{lock, now_ms};
use crate::team_tools::{self, Act};

/// Entries of the session's stream in which the last exchange is searched.
const LAST_ENTRIES: u64 = 64;

impl Agent {
    /// Whether notes are kept here: in chats, and with `memory.extract: always` also after `-p`.
    pub(super) fn notes(&self) -> bool {
        self.active.shared.remember.as_ref().is_some_and(|remember| remember.notes)
    }

    /// Writes `dialog_context` after an answer: the topic, the agent called last, and the exchange. A better summary
    /// that the lead has written in that turn stays.
    pub(super) async fn note_dialog(&mut self) -> Result<(), RuntimeError> {
        if !self.notes() {
            return Ok(());
        }
        let journal = &self.active.shared.journal;
        let session = self.session_stream();
        let after = journal.head(&session)?.saturating_sub(LAST_ENTRIES);
        let most = usize::try_from(LAST_ENTRIES).unwrap_or(usize::MAX);
        let (mut said, mut exchange) = (Vec::new(), None);
        for entry in journal.read(&session, after, most)? {
            match event_of(&entry) {
                Ok(Event::Said(one)) => said.push(one.text),
                Ok(Event::Replied(replied)) if !said.is_empty() => {
                    exchange = Some((std::mem::take(&mut said).join("\n"), replied));
                }
                _ => {}
            }
        }
        let Some((said, replied)) = exchange else { return Ok(()) };
        lock(&self.active.shared.stored).noted.insert(self.active.session);
        let (memories, scope) = (Memories::new(journal), project_scope(&self.active.root));
        let board = memories.section(&scope, Section::DialogContext)?;
        let written = |name: &str| board.facts().find(|fact| fact.key.as_str() == name);
        let mut context = json!({
            "last_topic": team_tools::title(&said),
            "last_agent": last_called(self.turn.history()).unwrap_or_else(|| self.turn.origin.name.to_string()),
        });
        let is_leads = |fact: &&max_team_core::memory::Fact| {
            matches!(fact.by, Writer::Lead(_)) && fact.source.turn == Some(replied.turn)
        };
        if let (Some(context), None) = (context.as_object_mut(), written("dialog_context.summary").filter(is_leads)) {
            let summary = format!("The user: {} The answer: {}", clipped(&said), clipped(&replied.text));
            context.insert("summary".to_owned(), summary.into());
        }
        let is_known = |(name, value): (&String, &Value)| {
            let fact = written(&format!("dialog_context.{name}"));
            fact.is_some_and(|fact| fact.value == *value && fact.source.session == Some(self.active.session))
        };
        if context.as_object().is_some_and(|context| context.iter().all(is_known)) {
            return Ok(());
        }
        let source = Source { session: Some(self.active.session), turn: Some(replied.turn), ..Source::default() };
        let key = Key::of(Section::DialogContext);
        noted(memories.set(&scope, &Writer::Program, &key, &context, &source).await)
    }

    /// Stores the failure of a called agent under `agent_errors`. A stop by a person is no failure, nor is an answer
    /// that begins with `NOT DONE`.
    pub(super) async fn note_error(&mut self, envelope: &Envelope) -> Result<(), RuntimeError> {
        let Work { by, error, is_error, end, timed_out, .. } = envelope.result().work;
        let has_failed = match end {
            Some(TurnOutcome::Answered) => false,
            Some(TurnOutcome::Interrupted) => timed_out,
            _ => is_error,
        };
        if envelope.kind != MessageKind::TaskResult || !has_failed || by.is_empty() || !self.notes() {
            return Ok(());
        }
        let Ok(key) = Key::of(Section::AgentErrors).member(by) else { return Ok(()) };
        let memories = Memories::new(&self.active.shared.journal);
        let mut errors = match memories.fact(&BoardScope::User, &key)?.map(|fact| fact.value) {
            Some(Value::Array(errors)) => errors,
            Some(other) => vec![other],
            None => Vec::new(),
        };
        errors.push(format!("{} at {}", clipped(error), rfc3339(now_ms())).into());
        let old = errors.len().saturating_sub(MEMORY_ERRORS_MAX);
        errors.drain(..old);
        let source = Source { session: Some(self.active.session), turn: self.turn.current(), ..Source::default() };
        noted(memories.set(&BoardScope::User, &Writer::Program, &key, &errors.into(), &source).await)
    }
}

/// A note is dropped if the board is full or another process writes to it.
fn noted<T>(written: Result<T, RuntimeError>) -> Result<(), RuntimeError> {
    match written {
        Ok(_) | Err(RuntimeError::Memory(_) | RuntimeError::Busy(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The agent that a conversation has called last.
fn last_called(history: &[Message]) -> Option<String> {
    let parts = history.iter().rev().flat_map(|message| message.parts.iter().rev());
    let mut called = parts.filter_map(|part| match part {
        Part::ToolUse { name, input, .. } => match Act::read(name, (**input).clone()).ok()? {
            Act::Call(call) => Some(call.who),
            Act::Dispatch(dispatch) => Some(dispatch.agent).filter(|agent| !agent.is_empty()),
            _ => None,
        },
        _ => None,
    });
    called.next()
}

/// The beginning of a text, on one line.
fn clipped(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MEMORY_NOTE_CHARS_MAX) {
        Some((cut, _)) => format!("{}…", line.get(..cut).unwrap_or_default()),
        None => line,
    }
}
