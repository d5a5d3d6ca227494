//! One process of a story: it begins or goes on, the user takes part, until it dies or nothing is left to do.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use max_team_core::event::Event;
use max_team_core::hash::Hash;
use max_team_core::id::{EnvelopeId, SessionId, WorkerId};
use max_team_core::plan::event::PlanDecision;
use max_team_core::policy::{DecidedBy, PermissionAnswer};
use max_team_core::turn::is_note;
use max_team_journal::{Append, Commit, Durability, Fence, Journal, JournalError, TimerOp};
use max_team_llm::Replay;
use max_team_runtime::query;
use max_team_runtime::{Command, Matter, Notice, Order, PendingQuestion, TeamHandle, UserMail, Which, new_id};
use serde_json::json;
use tokio::sync::mpsc;

use crate::stories::Story;
use crate::team::{Ledger, open, owner, runtime};

/// How long nothing may happen, on a clock that only runs while nobody has anything to do.
const SILENCE_MAX: Duration = Duration::from_secs(120);
const ALARM: &str = "sim/alarm";
/// The stream that the alarm and a process of the past write to.
pub(crate) const STREAM: &str = "sim";

/// What is outside all processes, and outlives them.
#[derive(Debug)]
pub(crate) struct World<'a> {
    pub(crate) story: &'a Story,
    pub(crate) root: &'a Path,
    pub(crate) ledger: Ledger,
    /// What the user was told is accepted: the words, and the questions that they answered.
    pub(crate) accepted: BTreeSet<String>,
    /// What was shown as having happened.
    pub(crate) shown: Vec<Event>,
    /// Who lived before.
    pub(crate) past: Vec<WorkerId>,
}

pub(crate) fn key(words: &str) -> EnvelopeId {
    EnvelopeId::new(Hash::of(words).uuid())
}

impl World<'_> {
    /// Plays on until nothing is left to do.
    pub(crate) async fn live(&mut self, journal: &Journal, replay: Replay) -> Result<(), String> {
        let worker = WorkerId::new(new_id());
        let team = runtime(journal, self.root, worker, replay, &self.ledger);
        let mut notices = team.watch();
        self.past.push(worker);
        self.play(journal, &team, &mut notices).await
    }

    async fn play(
        &mut self,
        journal: &Journal,
        team: &TeamHandle,
        notices: &mut mpsc::Receiver<Notice>,
    ) -> Result<(), String> {
        self.alarm(journal).await?;
        let which =
            if told(team.ask(query::Sessions { limit: 1 }).await)?.is_empty() { Which::New } else { Which::Latest };
        let session = told(team.open(owner(), self.root, open(which, self.story.approve)).await)?.session;
        self.zombie(journal, session).await?;
        loop {
            let waiting = self.rest(notices).await?;
            let said = self.unsaid(journal, session)?;
            if !said.is_empty() {
                for (words, command) in said {
                    self.give(team, words, command).await?;
                }
                continue;
            }
            // It was at rest before it heard of what the user said last.
            if is_unread(journal)? {
                continue;
            }
            let inbox = told(UserMail::new(journal).inbox())?;
            if waiting == inbox.is_empty() {
                return Err(format!("at rest, waiting: {waiting}, and asked: {inbox:?}"));
            }
            let Some(PendingQuestion { row, noted, .. }) = inbox.into_iter().next() else { return Ok(()) };
            if noted.is_some() {
                return Err(format!("an answer that nobody reads: {row:?}"));
            }
            let question = row.question;
            let command = match &row.matter {
                Matter::Plan(_) => Command::Decide { question, say: PlanDecision::Approve },
                Matter::Tool { .. } => Command::Answer {
                    session,
                    question,
                    answer: PermissionAnswer::new(true, DecidedBy::Person("sim".into())),
                },
            };
            self.give(team, question.to_string(), command).await?;
        }
    }

    /// A power cut may take what stayed inside; it must not take what the user was answered.
    pub(crate) fn lose_power(&mut self) {
        self.shown.retain(|event| matches!(event, Event::Replied(_)));
    }

    /// What the user has yet to say: whatever was not accepted is said again.
    fn unsaid(&self, journal: &Journal, session: SessionId) -> Result<Vec<(String, Command)>, String> {
        let mut unsaid = Vec::new();
        for (at, words) in self.story.said.iter().enumerate() {
            if !told(journal.has_mail(key(words)))? {
                let text = (*words).to_owned();
                let command = if at == 0 { Command::Say { session, text } } else { Command::Queue { session, text } };
                unsaid.push(((*words).to_owned(), command));
            }
        }
        Ok(unsaid)
    }

    async fn give(&mut self, team: &TeamHandle, what: String, command: Command) -> Result<(), String> {
        told(team.command(Order { by: owner(), cwd: ".".into(), key: key(&what), command }).await)?;
        self.accepted.insert(what);
        Ok(())
    }

    /// Waits until the session is at rest; whether it waits for a person.
    async fn rest(&mut self, notices: &mut mpsc::Receiver<Notice>) -> Result<bool, String> {
        loop {
            let notice = tokio::time::timeout(SILENCE_MAX, notices.recv()).await;
            let notice = notice.map_err(|_| "it does not come to rest".to_owned())?;
            match notice.ok_or("nobody is there any more")? {
                Notice::Event { event, .. } => self.shown.push((*event).clone()),
                Notice::Idle { waiting, .. } => return Ok(waiting),
                Notice::Stopped { error, .. } => return Err(format!("stopped: {error}")),
                Notice::Delta { .. } | Notice::Copies { .. } | Notice::Redefined { .. } => {}
            }
        }
    }

    /// Two who both see that it is time, as two processes would; it rings once.
    async fn alarm(&mut self, journal: &Journal) -> Result<(), String> {
        if told(journal.head("timer/sim"))? == 0 {
            let set = TimerOp::Set { id: ALARM.into(), due_at_ms: 1, payload: json!({}) };
            told(journal.commit(Commit { timers: vec![set], ..Commit::default() }).await)?;
        }
        let seen = told(journal.due_timers(2, 1))?.len() + told(journal.due_timers(2, 1))?.len();
        for _ in 0..seen {
            let fire = TimerOp::Fire { id: ALARM.into() };
            let rang =
                Append { stream: STREAM.into(), event: "rang".into(), payload: b"{}".to_vec(), ..Append::default() };
            // It is about to be heard outside.
            let strength = Durability::Full;
            let commit = Commit { strength, timers: vec![fire], appends: vec![rang], ..Commit::default() };
            match journal.commit(commit).await {
                Ok(_) => self.ledger.write("alarm"),
                Err(JournalError::Gone { .. }) => {}
                Err(error) => return Err(format!("the alarm: {error}")),
            }
        }
        Ok(())
    }

    /// A process that was thought dead writes once more, as the owner that it was.
    async fn zombie(&self, journal: &Journal, session: SessionId) -> Result<(), String> {
        let Some(worker) = self.past.iter().rev().nth(1) else { return Ok(()) };
        let resource = format!("session/cli:{session}");
        for epoch in 1..=u64::try_from(self.past.len()).unwrap_or(u64::MAX) {
            let fence = Some(Fence { resource: resource.clone(), worker: *worker, epoch });
            let wrote =
                Append { stream: STREAM.into(), event: "undead".into(), payload: b"{}".to_vec(), ..Append::default() };
            match journal.commit(Commit { fence, appends: vec![wrote], ..Commit::default() }).await {
                Err(JournalError::Fenced { .. }) => {}
                other => return Err(format!("a zombie wrote: {other:?}")),
            }
        }
        Ok(())
    }
}

/// Whether a message waits that begins a turn. Notes are no such message: they stay for the next turn.
fn is_unread(journal: &Journal) -> Result<bool, String> {
    let addresses = told(journal.mailboxes())?;
    for address in addresses.iter().filter(|address| !address.starts_with("user/")) {
        if told(journal.pending_mail(address))?.iter().any(|message| !is_note(message, true)) {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(crate) fn told<T, E: std::fmt::Display>(result: Result<T, E>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}
