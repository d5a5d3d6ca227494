//! `-p`: one prompt in, one answer out, for scripts.
//!
//! Standard output carries data only (text, one JSON object, or JSON lines); talk goes to standard error. Nobody can
//! be asked here: a question is answered "nobody could be asked", the model is told so, and the exit code is 5.

use std::io::{IsTerminal, Write};
use std::time::Instant;

use max_team_core::event::{End, Ending, Event, Outcome, TurnEnded};
use max_team_core::id::{EnvelopeId, SessionId, TurnId};
use max_team_core::message::Principal;
use max_team_core::policy::{Answer, By};
use max_team_runtime::{Asked, Command, Notice, Open, Opened, Order, TeamHandle};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::args::Format;
use crate::exit::{Exit, Stop};
use crate::signals::Signals;
use crate::stream_json;
use crate::terminal::text::clean;

/// One headless run.
pub(crate) struct Headless {
    pub(crate) handle: TeamHandle,
    pub(crate) by: Principal,
    pub(crate) cwd: std::path::PathBuf,
    pub(crate) prompt: String,
    pub(crate) format: Format,
    pub(crate) partial: bool,
    pub(crate) key_source: String,
}

/// What is known when it is over.
struct Tally {
    lines: stream_json::Lines,
    rounds: u32,
    api_ms: u64,
    first_ms: Option<u64>,
    denials: Vec<Value>,
    unasked: bool,
    ended: Option<TurnEnded>,
}

impl Tally {
    fn new(session: SessionId, retries_max: u32) -> Self {
        Self {
            lines: stream_json::Lines::new(session, retries_max),
            rounds: 0,
            api_ms: 0,
            first_ms: None,
            denials: Vec::new(),
            unasked: false,
            ended: None,
        }
    }

    /// A call was not allowed, by a rule or because nobody could be asked.
    fn refused(&mut self, key: &str) {
        let (id, tool) = (self.lines.id(key), self.lines.tool(key));
        self.denials.push(json!({ "tool_name": tool, "tool_use_id": id }));
    }
}

impl Headless {
    pub(crate) async fn run(self, open: Open, mut signals: Signals) -> anyhow::Result<Exit> {
        let started = Instant::now();
        let mut notices = self.handle.watch();
        let opened = self.handle.open(self.by.clone(), &self.cwd, open.clone()).await?;
        let session = opened.session;
        self.emit_stream(|| stream_json::init(&opened, &open, &self.cwd, &self.key_source))?;
        let key = EnvelopeId::new(Uuid::now_v7());
        let mut tally = Tally::new(session, open.settings.retries_max);
        let waits_for = if self.prompt.is_empty() { None } else { Some(key) };
        if waits_for.is_some() {
            self.order(key, Command::Say { session, text: self.prompt.clone() }).await?;
        }
        for asked in &opened.asked {
            self.refuse(session, asked, None, &mut tally).await?;
        }
        let stopped = if waits_for.is_some() || opened.continuing {
            self.follow(session, waits_for, &mut notices, &mut signals, &mut tally).await?
        } else {
            // Nothing was open: what `-c -p ""` goes on to is the answer that is already there.
            tally.ended = opened.last.clone();
            None
        };
        if stopped == Some(Exit::Terminated) || (stopped.is_some() && tally.ended.is_none()) {
            return Ok(stopped.unwrap_or(Exit::Terminated));
        }
        self.finish(&opened, &tally, started, stopped).await
    }

    async fn order(&self, key: EnvelopeId, command: Command) -> anyhow::Result<()> {
        let cwd = self.cwd.display().to_string();
        Ok(self.handle.command(Order { by: self.by.clone(), cwd, key, command }).await?)
    }

    /// Follows the session until the prompt is answered (or, without one, until nothing is left to do).
    async fn follow(
        &self,
        session: SessionId,
        waits_for: Option<EnvelopeId>,
        notices: &mut mpsc::Receiver<Notice>,
        signals: &mut Signals,
        tally: &mut Tally,
    ) -> anyhow::Result<Option<Exit>> {
        let mut stopped = None;
        let mut ours: Option<TurnId> = None;
        let began = Instant::now();
        loop {
            let notice = tokio::select! {
                biased;
                signal = signals.next() => match (signal, stopped) {
                    (Exit::Interrupted, None) => {
                        stopped = Some(Exit::Interrupted);
                        self.order(EnvelopeId::new(Uuid::now_v7()), Command::Interrupt { session }).await?;
                        continue;
                    }
                    (signal, _) => return Ok(Some(signal)),
                },
                notice = notices.recv() => notice.ok_or_else(|| Stop::new(Exit::Failed, "the team stopped without a word"))?,
            };
            match notice {
                Notice::Event { event, at_ms, .. } => {
                    self.note(session, at_ms, &event, tally).await?;
                    match &*event {
                        Event::TurnStarted(started) if Some(started.envelope) == waits_for => ours = Some(started.turn),
                        Event::TurnEnded(ended) if Some(ended.turn) == ours => return Ok(stopped),
                        Event::TurnEnded(_) if stopped.is_some() => return Ok(stopped),
                        _ => {}
                    }
                }
                Notice::Delta { delta, .. } => {
                    tally.first_ms.get_or_insert_with(|| millis(began));
                    if self.partial {
                        self.emit_stream(|| stream_json::delta(session, &delta))?;
                    }
                }
                Notice::Idle { .. } if waits_for.is_none() => return Ok(stopped),
                Notice::Idle { .. } => {}
                Notice::Stopped { error, .. } => return Err(Stop::new(Exit::Failed, error.to_string()).into()),
            }
        }
    }

    async fn note(&self, session: SessionId, at_ms: i64, event: &Event, tally: &mut Tally) -> anyhow::Result<()> {
        match event {
            Event::TurnStarted(_) => tally.rounds = 0,
            Event::LlmIntent(intent) if intent.attempt == 1 => tally.rounds += 1,
            Event::LlmEnded(ended) => {
                tally.api_ms += ended.ms;
                if let Outcome::Failed { detail, retry_at_ms: Some(_), .. } = &ended.outcome
                    && self.format == Format::Text
                {
                    talk(&format!("retrying: {detail}"));
                }
            }
            Event::QuestionAsked(asked) => {
                let (question, tool, action) = (asked.question, asked.tool.clone(), asked.action.clone());
                self.refuse(session, &Asked { question, tool, action }, Some(&asked.key), tally).await?;
            }
            Event::ToolDone(done) if done.ending == Ending::Refused => tally.refused(&done.key),
            Event::TurnEnded(ended) => tally.ended = Some(ended.clone()),
            _ => {}
        }
        tally.lines.hear(event);
        if self.format != Format::StreamJson {
            return Ok(());
        }
        tally.lines.line(at_ms, event).map_or(Ok(()), |line| print_line(&line))
    }

    /// Nobody sits here who could be asked.
    async fn refuse(
        &self,
        session: SessionId,
        asked: &Asked,
        key: Option<&str>,
        tally: &mut Tally,
    ) -> anyhow::Result<()> {
        tally.unasked = true;
        if key.is_none() {
            tally.denials.push(json!({ "tool_name": asked.tool, "tool_use_id": null, "target": asked.action.target }));
        }
        let why = "headless; `--permission-mode acceptEdits` allows edits, a chat can ask".to_owned();
        let answer = Answer { allow: false, always: false, comment: String::new(), by: By::Nobody(why) };
        let command = Command::Answer { session, question: asked.question, answer };
        self.order(EnvelopeId::new(Uuid::now_v7()), command).await
    }

    async fn finish(
        &self,
        opened: &Opened,
        tally: &Tally,
        started: Instant,
        stopped: Option<Exit>,
    ) -> anyhow::Result<Exit> {
        let Some(ended) = &tally.ended else {
            talk("there is nothing to go on with in this session; give a prompt with -p");
            return Ok(Exit::Ok);
        };
        let status = self.handle.status(opened.session).await?;
        let mut exit = stopped.unwrap_or_else(|| Exit::of(&ended.end));
        if exit == Exit::Ok && (tally.unasked || !tally.denials.is_empty()) {
            exit = Exit::Denied;
        }
        let result = stream_json::Result {
            session: opened.session,
            ended,
            rounds: tally.rounds,
            duration_ms: millis(started),
            api_ms: tally.api_ms,
            first_ms: tally.first_ms,
            denials: &tally.denials,
            status: &status,
        };
        match self.format {
            Format::Text => self.print_text(ended)?,
            Format::Json | Format::StreamJson => print_line(&result.json())?,
        }
        if let Some(words) = explain(&ended.end) {
            talk(&words);
        }
        if tally.unasked {
            talk("some calls needed a yes and nobody could be asked; see --permission-mode");
        }
        Ok(exit)
    }

    fn print_text(&self, ended: &TurnEnded) -> anyhow::Result<()> {
        match &ended.structured {
            Some(value) => print_line(value),
            None if ended.text.is_empty() => Ok(()),
            None => {
                let mut out = std::io::stdout().lock();
                let text = ended.text.trim_end();
                // A script gets the words as they are; a terminal must not be driven by them.
                let text = if out.is_terminal() { clean(text) } else { text.into() };
                writeln!(out, "{text}")?;
                Ok(out.flush()?)
            }
        }
    }

    fn emit_stream(&self, line: impl FnOnce() -> Value) -> anyhow::Result<()> {
        if self.format == Format::StreamJson { print_line(&line()) } else { Ok(()) }
    }
}

/// Why a turn ended without a plain answer, and what to do next.
pub(crate) fn explain(end: &End) -> Option<String> {
    Some(match end {
        End::Answered | End::Interrupted => return None,
        End::Truncated => "the answer was cut at the model's output limit; raise llm.max_tokens or ask for less".into(),
        End::Refused => "the model refused to answer; rephrase, or use another model".into(),
        End::Empty => "the model kept answering with nothing; try again or use another model".into(),
        End::Unstructured => "the model never gave the structured answer; check the schema or use another model".into(),
        End::Looping => "the model repeated the same call again and again and was stopped; rephrase the task".into(),
        End::Rounds => "the round limit was reached; go on with -c, or raise --max-turns".into(),
        End::Budget => "the budget was reached; go on with -c and a larger --max-budget-usd".into(),
        End::Failed { detail, .. } => format!("the model could not answer: {detail}"),
        End::Broken { detail } => format!("the work could not go on: {detail}"),
    })
}

/// Data goes out line by line and at once, so that a reader sees each when it happens.
fn print_line(line: &Value) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// Talk goes to standard error; if nobody can hear it, that is no failure.
pub(crate) fn talk(words: &str) {
    drop(writeln!(std::io::stderr(), "max-team: {}", clean(words)));
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
