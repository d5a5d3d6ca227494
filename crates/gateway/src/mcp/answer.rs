//! `ask` and `answer_of`: a message to the lead and its answer.

use std::fmt::Write as _;
use std::time::Duration;

use max_team_core::channel::ChatAddress;
use max_team_core::event::{Event, TurnEnded, TurnOutcome};
use max_team_core::id::{AgentId, EnvelopeId, SessionId};
use max_team_core::limits::MCP_CALL_WAIT_MS_MAX;
use max_team_core::message::Role;
use max_team_runtime::stream::ApprovalStep;
use max_team_runtime::{
    Command, LogEntry, LogFollower, Matter, Notice, PendingQuestion, RuntimeError, Scope, StreamReader, What, new_id,
    query,
};
use max_team_workspace::i18n::Lang;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::McpServer;
use super::caller::Caller;
use super::progress::Progress;
use super::result::{CallError, CallReply, page, row_text};
use crate::channel::Incoming;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ask {
    text: String,
    session: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerOf {
    session: Option<String>,
    #[serde(default)]
    offset: usize,
}

/// What a call waits with: reports to the client, and its wish to stop.
pub(super) struct Wait<'c> {
    pub(super) progress: Progress,
    pub(super) stop: &'c CancellationToken,
}

/// A committed message, and everything that tells what becomes of it.
pub(super) struct SentMessage {
    pub(super) session: SessionId,
    lead: AgentId,
    key: EnvelopeId,
    log: LogFollower,
    pub(super) events: StreamReader,
    notices: mpsc::Receiver<Notice>,
}

/// Why a call stops waiting.
pub(super) enum Waited {
    Ended(Box<TurnEnded>),
    /// Questions wait for the user; the work may go on beside them.
    Asked(Vec<PendingQuestion>),
    /// The longest time that a call waits is over.
    Late,
    Cancelled,
}

impl McpServer {
    pub(super) async fn ask(&self, caller: &Caller, given: Ask, wait: Wait<'_>) -> Result<CallReply, CallError> {
        let chat = self.own_chat(caller, given.session.as_deref())?;
        let mut sent = self.send(caller, &chat, given.text).await?;
        let waited = self.wait_for_answer(caller, &mut sent, wait).await?;
        let session = sent.session;
        Ok(match waited {
            Waited::Ended(ended) => self.told(&ended, &mut sent).await?,
            Waited::Asked(questions) => CallReply::Text(waiting(&questions, session)),
            Waited::Late => {
                CallReply::Text(format!("The team still works on it. Call `answer_of` with session `{session}` later."))
            }
            Waited::Cancelled => CallReply::Failed("The call was cancelled, and the team has stopped.".to_owned()),
        })
    }

    /// Commits a message of a client to the lead of its session.
    pub(super) async fn send(
        &self,
        caller: &Caller,
        chat: &ChatAddress,
        text: String,
    ) -> Result<SentMessage, CallError> {
        if text.trim().is_empty() {
            return Err(CallError("the text is empty".to_owned()));
        }
        let gateway = self.gateway().await.map_err(|error| self.refused(&error))?;
        let team = gateway.team();
        let failed = |error: RuntimeError| self.failed(&error);
        // Before the message, so that nothing that follows from it is missed.
        let notices = team.watch();
        let log = self.shared.reader.follow().map_err(failed)?;
        let from = self.shared.reader.ask(query::Position {}).map_err(failed)?;
        let native = new_id().to_string();
        let key = chat.message_key(&native);
        let (sender, role) = (caller.name().to_owned(), Role::Member);
        let incoming = Incoming { chat: chat.clone(), native, sender, role, text };
        let session = gateway.receive(incoming).await.map_err(|error| self.not_taken(&error))?;
        let lead = self.shared.reader.ask(query::Session { session }).map_err(failed)?.lead;
        let events = team.stream(Scope::Session(session), from).map_err(failed)?;
        Ok(SentMessage { session, lead, key, log, events, notices })
    }

    /// Waits for the end of the turn that takes the message in.
    pub(super) async fn wait_for_answer(
        &self,
        caller: &Caller,
        sent: &mut SentMessage,
        mut wait: Wait<'_>,
    ) -> Result<Waited, CallError> {
        let stream = format!("agent/{}", sent.lead);
        let failed = |error: RuntimeError| self.failed(&error);
        let late = tokio::time::sleep(Duration::from_millis(MCP_CALL_WAIT_MS_MAX));
        let mut late = std::pin::pin!(late);
        let mut is_taken = false;
        loop {
            tokio::select! {
                entry = sent.log.next() => {
                    let entry: LogEntry = entry.map_err(failed)?;
                    match (entry.stream() == stream).then(|| entry.event()).flatten() {
                        Some(Event::TurnStarted(began)) => {
                            is_taken |= began.envelope == sent.key || began.envelopes.contains(&sent.key);
                        }
                        Some(Event::Steered(steered)) => {
                            is_taken |= steered.envelopes.contains(&sent.key) || steered.from_team.contains(&sent.key);
                        }
                        Some(Event::TurnEnded(ended)) if is_taken => return Ok(Waited::Ended(Box::new(ended))),
                        _ => {}
                    }
                }
                event = sent.events.next() => {
                    let event = event.map_err(failed)?;
                    if matches!(event.what, What::Approval { state: ApprovalStep::Asked, plan: None, .. }) {
                        let questions = self.questions_of(sent.session)?;
                        if !questions.is_empty() {
                            return Ok(Waited::Asked(questions));
                        }
                    }
                    wait.progress.report(&event).await;
                }
                Some(notice) = sent.notices.recv() => {
                    if let Notice::Stopped { session, whole: true, error } = notice && session == sent.session
                        && !matches!(*error, RuntimeError::Behind(_))
                    {
                        return Err(self.failed(&error));
                    }
                }
                () = wait.stop.cancelled() => {
                    self.interrupt(caller, sent.session).await;
                    return Ok(Waited::Cancelled);
                }
                () = &mut late => return Ok(Waited::Late),
            }
        }
    }

    /// Stops the lead's turn, unless the whole server ends: then the next process goes on with it.
    pub(super) async fn interrupt(&self, caller: &Caller, session: SessionId) {
        if self.shared.closing.is_cancelled() {
            return;
        }
        if let Ok(gateway) = self.gateway().await {
            let key = EnvelopeId::new(new_id());
            // A session that has ended meanwhile needs no stop.
            drop(gateway.command(caller.principal(), key, Command::Interrupt { session }).await);
        }
    }

    /// The questions of a session that wait for the user, without those that have an answer which is not read yet.
    pub(super) fn questions_of(&self, session: SessionId) -> Result<Vec<PendingQuestion>, CallError> {
        let mut inbox = self.shared.reader.ask(query::Inbox {}).map_err(|error| self.failed(&error))?;
        inbox.retain(|pending| pending.session == Some(session) && pending.noted.is_none());
        Ok(inbox)
    }

    /// An ended turn, in words.
    async fn told(&self, ended: &TurnEnded, sent: &mut SentMessage) -> Result<CallReply, CallError> {
        let mut text = ended.text.clone();
        if let Some(reason) = Lang::En.end(&ended.end) {
            let _ = write!(text, "\n\n{reason}");
            return Ok(CallReply::Failed(text.trim_start().to_owned()));
        }
        if ended.end == TurnOutcome::Proposed {
            let _ = write!(text, "\n\n{}", self.proposal(sent).await?);
        }
        let _ = write!(text, "\n\n[session {}]", sent.session);
        Ok(CallReply::Text(text.trim_start().to_owned()))
    }

    pub(super) fn answer_of(&self, caller: &Caller, given: &AnswerOf) -> Result<CallReply, CallError> {
        let row = self.session_to_read(caller, given.session.as_deref())?;
        let failed = |error: RuntimeError| self.failed(&error);
        let events = self.shared.reader.ask(query::Events { session: row.session }).map_err(failed)?;
        let last = events.into_iter().rev().find_map(|(_, event)| match event {
            Event::TurnEnded(ended) => Some(ended.text),
            _ => None,
        });
        let questions = self.questions_of(row.session)?;
        let status = self.shared.reader.ask(query::Status { session: row.session }).map_err(failed)?;
        let owner = self.shared.reader.ask(query::Owner { session: row.session }).map_err(failed)?;
        let is_working = status.working().next().is_some();
        let mut text = match (&last, row.answered) {
            (Some(answer), true) => page(answer, given.offset),
            (Some(answer), false) => {
                format!("The last message has no answer yet. The answer before it:\n\n{}", page(answer, given.offset))
            }
            (None, _) => "There is no answer yet.".to_owned(),
        };
        if !questions.is_empty() {
            let _ = write!(text, "\n\n{}", waiting(&questions, row.session));
        } else if is_working && owner.is_some() {
            let names: Vec<&str> = status.working().collect();
            let _ = write!(text, "\n\nStill at work: {}.", names.join(", "));
        } else if is_working || !row.answered {
            text.push_str("\n\nThe work was interrupted; it goes on with the next `ask` in this session.");
        }
        Ok(CallReply::Text(text))
    }
}

/// Questions that wait, and how the user answers them.
pub(super) fn waiting(questions: &[PendingQuestion], session: SessionId) -> String {
    let mut text = "The team waits for the user, who alone can answer:\n".to_owned();
    for pending in questions {
        let _ = writeln!(text, "- {}: {} ({})", pending.row.question, about(pending), pending.who);
    }
    let _ = write!(
        text,
        "The user answers with `max-team inbox` and `max-team approve ID` or `max-team deny ID`. Afterwards call `answer_of` with \
         session `{session}`."
    );
    text
}

/// The matter of a question, in a line.
pub(super) fn about(pending: &PendingQuestion) -> String {
    match &pending.row.matter {
        Matter::Tool { tool, action, .. } => row_text(&format!("{tool} {}", action.target)),
        Matter::Plan(_) => "a decision about a plan".to_owned(),
    }
}
