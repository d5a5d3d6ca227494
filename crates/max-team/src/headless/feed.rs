//! `--input-format stream-json`: what a user says comes on standard input, a JSON line each.
//!
//! A line begins a turn, or is told to the one that runs at its next step, as in a chat. While as many wait as may, no more are
//! read. The end of the input is the end of the run, once everything was taken up and nobody is at work any more.

use max_team_workspace::words::LineFault;
use std::io::{BufRead, Read};
use std::time::Instant;

use max_team_core::event::Event;
use max_team_core::id::{EnvelopeId, SessionId};
use max_team_core::limits::STDIN_BYTES_MAX;
use max_team_core::unattended::{Signal, on_signal};
use max_team_runtime::{Command, Notice, Opened, Order, RuntimeError, new_id};
use serde_json::Value;
use tokio::sync::mpsc;

use super::Headless;
use super::questions::Words;
use super::tally::Tally;
use super::vigil::Vigil;
use crate::signals::Signals;
use max_team_workspace::exit::{Exit, Stop};

/// Lines that were read and not said yet.
const AHEAD_MAX: usize = 16;

/// What comes in.
struct Feed(mpsc::Receiver<Result<String, Stop>>);

impl Feed {
    /// Reads on a thread of its own: nobody knows when the next line comes.
    fn open() -> Self {
        let (lines, feed) = mpsc::channel(AHEAD_MAX);
        std::thread::spawn(move || {
            let mut input = std::io::stdin().lock();
            for number in 1_usize.. {
                let Some(read) = read(&mut input, number).transpose() else { return };
                let is_last = read.is_err();
                // If nobody listens any more, the run is over.
                if lines.blocking_send(read).is_err() || is_last {
                    return;
                }
            }
        });
        Self(feed)
    }
}

/// What the next line says; nothing once there is none. Empty ones say nothing and are no fault.
fn read(input: &mut impl BufRead, number: usize) -> Result<Option<String>, Stop> {
    let wrong = |fault: LineFault| Stop::said(Exit::Usage, |lang| lang.bad_line(number, &fault));
    let mut line = Vec::new();
    let bytes = input.by_ref().take(STDIN_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line);
    match bytes {
        Err(error) => return Err(Stop::new(Exit::Failed, format!("standard input cannot be read: {error}"))),
        Ok(0) => return Ok(None),
        Ok(bytes) if bytes > STDIN_BYTES_MAX => return Err(wrong(LineFault::TooLong(STDIN_BYTES_MAX >> 20))),
        Ok(_) => {}
    }
    if line.iter().all(u8::is_ascii_whitespace) {
        return Ok(Some(String::new()));
    }
    said(&line).map(Some).map_err(wrong)
}

/// The words of a `user` line.
fn said(line: &[u8]) -> Result<String, LineFault> {
    let line: Value = serde_json::from_slice(line).map_err(|error| LineFault::NotJson(error.to_string()))?;
    let name = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let kind = name(line.get("type"));
    if kind != "user" {
        return Err(LineFault::Type(kind));
    }
    let message = line.get("message");
    let role = name(message.and_then(|message| message.get("role")));
    if !matches!(role.as_str(), "" | "user") {
        return Err(LineFault::Role(role));
    }
    let words = match message.and_then(|message| message.get("content")) {
        Some(Value::String(words)) => words.clone(),
        Some(Value::Array(parts)) => {
            let text = |part: &Value| match name(part.get("type")).as_str() {
                "text" => Ok(name(part.get("text"))),
                other => Err(LineFault::Part(other.to_owned())),
            };
            parts.iter().map(text).collect::<Result<Vec<_>, _>>()?.join("\n\n")
        }
        _ => return Err(LineFault::NoContent),
    };
    if words.trim().is_empty() { Err(LineFault::Silent) } else { Ok(words) }
}

impl Headless {
    /// Says what comes in, and follows the session until there is nothing more to say or to do. Each of the lead's turns has a
    /// result. Returns what has stopped it, and the code of the last turn that did not end well.
    pub(super) async fn listen(
        &self,
        opened: &Opened,
        notices: &mut mpsc::Receiver<Notice>,
        signals: &mut Signals,
        tally: &mut Tally,
    ) -> anyhow::Result<(Option<Exit>, Exit)> {
        let session = opened.session;
        let (mut feed, mut is_open, mut rests) = (Feed::open(), true, false);
        let (mut stopped, mut exit) = (None, Exit::Ok);
        let (mut vigil, mut next) = (Vigil::default(), None);
        while is_open || next.is_some() || !rests {
            let due = vigil.due();
            let notice = tokio::select! {
                biased;
                signal = signals.next() => {
                    if on_signal(signal, stopped.is_some(), self.runs_plan(session).await?) == Signal::Leaves {
                        return Ok((Some(signal), exit));
                    }
                    (stopped, is_open, next) = (Some(signal), false, None);
                    self.interrupt(session).await?;
                    continue;
                }
                notice = notices.recv() => notice.ok_or_else(|| Stop::new(Exit::Failed, super::ear::SILENT))?,
                line = feed.0.recv(), if is_open && next.is_none() => {
                    is_open = line.is_some();
                    next = line.transpose()?.filter(|text| !text.is_empty());
                    rests &= next.is_none();
                    self.say(session, &mut next, tally).await?;
                    continue;
                }
                () = tokio::time::sleep_until(due.unwrap_or(tally.began).into()), if due.is_some() => {
                    self.tell_of_silence(session, &mut vigil)?;
                    continue;
                }
            };
            match notice {
                Notice::Event { from, event, at_ms, .. } => {
                    vigil.hear(&from, &event, Instant::now());
                    self.note(session, at_ms, &from, &event, tally).await?;
                    self.emit_team(tally)?;
                    match &*event {
                        Event::TurnStarted(_) => {
                            rests = false;
                            tally.began = if from.lead { Instant::now() } else { tally.began };
                        }
                        Event::TurnEnded(ended) if from.lead => {
                            let code = self.tell_result(session, ended, tally, stopped).await?;
                            exit = if code == Exit::Ok { exit } else { code };
                            if stopped.is_some() {
                                // What waits is for whoever goes on.
                                return Ok((stopped, exit));
                            }
                            tally.next_turn();
                        }
                        _ => {}
                    }
                    if from.lead {
                        self.say(session, &mut next, tally).await?;
                    }
                }
                Notice::Delta { from, delta, .. } => {
                    vigil.delta(&from, Instant::now());
                    self.hear_piece(session, &from, &delta, tally)?;
                }
                Notice::Copies { of, .. } => self.tell_of_making(of, tally),
                Notice::Redefined { notes, .. } => notes.iter().for_each(|note| super::talk(note)),
                Notice::Idle { .. } => {
                    rests = tally.unheard.is_empty() && !tally.is_awaiting();
                    self.say(session, &mut next, tally).await?;
                }
                Notice::Stopped { error, .. } => return Err(Stop::new(Exit::Failed, error.to_string()).into()),
            }
        }
        Ok((stopped, exit))
    }

    /// Says the next line. If too many wait already it stays the next: some will have been taken up when more is heard.
    async fn say(&self, session: SessionId, next: &mut Option<String>, tally: &mut Tally) -> anyhow::Result<()> {
        let Some(text) = next.take() else { return Ok(()) };
        // A question that waited since before is answered with the first words.
        if self.answer_waiting(session, &text, tally).await? == Words::ByLead {
            return Ok(());
        }
        let (key, cwd) = (EnvelopeId::new(new_id()), self.cwd.display().to_string());
        let command = Command::Say { session, text: text.clone() };
        match self.handle.command(Order { by: self.by.clone(), cwd, key, command }).await {
            Ok(()) => drop(tally.unheard.insert(key)),
            Err(RuntimeError::QueueFull(_)) => *next = Some(text),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_words_or_say_what_is_wrong() {
        let table = [
            (r#"{"type":"user","message":{"role":"user","content":"hi"}}"#, Ok("hi")),
            (
                r#"{"type":"user","message":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}"#,
                Ok("a\n\nb"),
            ),
            (
                r#"{"type":"user","message":{"role":"user","content":"hi"},"session_id":"x","parent_tool_use_id":null}"#,
                Ok("hi"),
            ),
            ("{}", Err(LineFault::Type(String::new()))),
            (r#"{"type":"control_request"}"#, Err(LineFault::Type("control_request".to_owned()))),
            (
                r#"{"type":"user","message":{"role":"assistant","content":"hi"}}"#,
                Err(LineFault::Role("assistant".to_owned())),
            ),
            (r#"{"type":"user","message":{"content":[{"type":"image"}]}}"#, Err(LineFault::Part("image".to_owned()))),
            (r#"{"type":"user","message":{}}"#, Err(LineFault::NoContent)),
            (r#"{"type":"user","message":{"content":" "}}"#, Err(LineFault::Silent)),
        ];
        for (line, want) in table {
            assert_eq!(said(line.as_bytes()), want.map(str::to_owned), "{line}");
        }
        assert!(matches!(said(b"hi"), Err(LineFault::NotJson(_))));
    }
}
