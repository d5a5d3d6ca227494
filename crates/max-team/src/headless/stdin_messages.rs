//! Messages from standard input: JSON lines (`--input-format stream-json`), or plain lines where a chat has no screen.
//!
//! A JSON line begins a turn, or is told to the one that runs at its next step, as in a chat. While as many wait as may, no more
//! are read. A plain line is sent once the line before it is answered; a line
//! that a person types, at once. The end of the input is the end of the run, once every
//! message was read and no agent is at work.

use max_team_workspace::i18n::{Lang, LineFault, Translated};
use std::io::{BufRead, IsTerminal, Read};
use std::time::Instant;

use max_team_core::event::Event;
use max_team_core::id::{EnvelopeId, SessionId};
use max_team_core::interrupt::is_stop;
use max_team_core::limits::STDIN_BYTES_MAX;
use max_team_runtime::{Command, Notice, OpenedSession, Order, RuntimeError, new_id};
use serde_json::Value;
use tokio::sync::mpsc;

use super::questions::AnswerReach;
use super::run_state::RunState;
use super::silence::SilenceWatch;
use super::{Headless, Task};
use crate::args::Input;
use crate::signals::Signals;
use max_team_workspace::exit::{CliError, Exit};

/// Lines that were read and not said yet.
const AHEAD_MAX: usize = 16;

/// What comes in.
struct StdinMessages {
    lines: mpsc::Receiver<Result<String, CliError>>,
    /// Whether a line is taken while a turn runs: programs steer with JSON lines, and a person may type ahead.
    is_eager: bool,
}

impl StdinMessages {
    /// Reads on its own thread, since reading standard input blocks.
    fn open(format: Input) -> Self {
        let (lines, feed) = mpsc::channel(AHEAD_MAX);
        std::thread::spawn(move || {
            let mut input = std::io::stdin().lock();
            for number in 1_usize.. {
                let Some(read) = read(&mut input, number, format).transpose() else { return };
                let is_last = read.is_err();
                // If the receiver is gone, the run is over.
                if lines.blocking_send(read).is_err() || is_last {
                    return;
                }
            }
        });
        Self { lines: feed, is_eager: format == Input::StreamJson || std::io::stdin().is_terminal() }
    }
}

/// The message in the next line; `None` at the end of the input. Empty lines say nothing and are no fault.
fn read(input: &mut impl BufRead, number: usize, format: Input) -> Result<Option<String>, CliError> {
    let wrong = |fault: LineFault| CliError::said(Exit::Usage, |lang| lang.bad_line(number, &fault));
    let mut line = Vec::new();
    loop {
        let room = (STDIN_BYTES_MAX + 1).saturating_sub(line.len());
        let bytes = input.by_ref().take(room as u64).read_until(b'\n', &mut line);
        match bytes {
            Err(error) => {
                return Err(CliError::said(Exit::Failed, |lang| lang.stdin_unreadable(lang.io_fault(&error))));
            }
            Ok(0) if line.is_empty() => return Ok(None),
            Ok(_) if line.len() > STDIN_BYTES_MAX => return Err(wrong(LineFault::TooLong(STDIN_BYTES_MAX >> 20))),
            // A plain line that ends in a backslash goes on in the next one.
            Ok(1..) if format == Input::Text && line.ends_with(b"\\\n") => {
                drop(line.drain(line.len() - 2..line.len() - 1))
            }
            Ok(_) => break,
        }
    }
    if line.iter().all(u8::is_ascii_whitespace) {
        return Ok(Some(String::new()));
    }
    match format {
        Input::Text => {
            String::from_utf8(line).map(|text| Some(text.trim_end().to_owned())).map_err(|_| wrong(LineFault::NotText))
        }
        Input::StreamJson => said(&line).map(Some).map_err(wrong),
    }
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

/// Why a prompt is not sent: it is a command of the chat, or it names neither a command nor a skill. A model can do
/// nothing with either.
pub(crate) fn slash_fault(prompt: &str, is_skill: impl Fn(&str) -> bool) -> Option<Translated> {
    let command = max_team_terminal::chat_command(prompt);
    let name = command.map(str::to_owned).or_else(|| max_team_terminal::unknown_command(prompt))?;
    let words = |lang: Lang| match command {
        Some(name) => lang.line_is_chat_command(name),
        None => lang.unknown_slash_here(&name),
    };
    (!is_skill(&name)).then(|| Translated::new(words))
}

impl Headless {
    /// Says what comes in, and follows the session until there is nothing more to say or to do. Each of the lead's turns has a
    /// result. Returns what has stopped it, and the code of the last turn that did not end well.
    pub(super) async fn listen(
        &self,
        opened: &OpenedSession,
        notices: &mut mpsc::Receiver<Notice>,
        signals: &mut Signals,
        tally: &mut RunState,
    ) -> anyhow::Result<(Option<Exit>, Exit)> {
        let Task::Listen(format) = self.task else { return Ok((None, Exit::Ok)) };
        let session = opened.session;
        let (mut feed, mut is_open, mut rests) = (StdinMessages::open(format), true, false);
        let (mut exit, mut vigil, mut next) = (Exit::Ok, SilenceWatch::default(), None);
        while is_open || next.is_some() || !rests {
            let due = vigil.due();
            let notice = tokio::select! {
                biased;
                signal = signals.next() => return Ok((Some(signal), exit)),
                notice = notices.recv() => notice.ok_or_else(|| CliError::new(Exit::Failed, super::events::SILENT))?,
                line = feed.lines.recv(), if is_open && next.is_none() && (rests || feed.is_eager) => {
                    is_open = line.is_some();
                    next = line.transpose()?.filter(|text| !text.is_empty());
                    self.stop_by_word(session, !rests, &mut next).await?;
                    self.refuse_chat_command(&opened.skills, &mut next)?;
                    rests &= next.is_none();
                    self.say(session, &mut next, tally).await?;
                    continue;
                }
                () = tokio::time::sleep_until(due.unwrap_or(tally.turn.began).into()), if due.is_some() => {
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
                            tally.turn.began = if from.lead { Instant::now() } else { tally.turn.began };
                        }
                        Event::TurnEnded(ended) if from.lead => {
                            let code = self.tell_result(session, ended, tally, None).await?;
                            exit = if code == Exit::Ok { exit } else { code };
                            tally.next_turn();
                        }
                        _ => {}
                    }
                    if from.lead {
                        self.say(session, &mut next, tally).await?;
                    }
                }
                Notice::Delta { from, call, delta, .. } => {
                    vigil.delta(&from, Instant::now());
                    self.hear_piece(session, &from, (call, &delta), tally)?;
                }
                Notice::Copies { of, .. } => self.tell_of_making(of, tally),
                Notice::Redefined { notes, .. } => notes.iter().for_each(|note| super::talk(note)),
                Notice::Idle { .. } => {
                    rests = tally.unheard.is_empty() && !tally.is_awaiting();
                    self.say(session, &mut next, tally).await?;
                }
                Notice::Stopped { error, .. } => return Err(CliError::new(Exit::Failed, error.to_string()).into()),
            }
        }
        Ok((None, exit))
    }

    /// A line for the chat is not sent to the model. Piped, it ends the run; typed, the next line is waited for.
    fn refuse_chat_command(&self, skills: &[String], next: &mut Option<String>) -> Result<(), CliError> {
        // A program may send text that begins with a path.
        let is_json = matches!(self.task, Task::Listen(Input::StreamJson));
        let fault = |line: &str| {
            let is_any_text = is_json && max_team_terminal::chat_command(line).is_none();
            slash_fault(line, |name| is_any_text || skills.iter().any(|skill| skill == name))
        };
        let Some(words) = next.as_deref().and_then(fault) else { return Ok(()) };
        if !std::io::stdin().is_terminal() {
            return Err(CliError::translated(Exit::Usage, &words));
        }
        super::talk(words.get(self.lang));
        *next = None;
        Ok(())
    }

    /// A typed word stops everything in the session, as in a chat.
    async fn stop_by_word(&self, session: SessionId, runs: bool, next: &mut Option<String>) -> anyhow::Result<()> {
        let is_typed = matches!(self.task, Task::Listen(Input::Text));
        match next.take_if(|text| is_typed && runs && is_stop(text)) {
            Some(_) => self.order(EnvelopeId::new(new_id()), Command::StopSession { session }).await,
            None => Ok(()),
        }
    }

    /// Says the next line. If too many wait already it stays the next: some will have been taken up when more is heard.
    async fn say(&self, session: SessionId, next: &mut Option<String>, tally: &mut RunState) -> anyhow::Result<()> {
        let Some(text) = next.take() else { return Ok(()) };
        // A question that waited since before is answered with the first words.
        if self.answer_waiting(session, &text, tally).await? == AnswerReach::ByLead {
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

    #[test]
    fn plain_lines_are_messages_and_a_backslash_goes_on() {
        let mut input = &b"one \\\ntwo\n\nthree \xe4\xbd\xa0\nfour"[..];
        let mut lines = Vec::new();
        while let Some(line) = read(&mut input, 1, Input::Text).unwrap() {
            lines.push(line);
        }
        assert_eq!(lines, ["one \ntwo", "", "three 你", "four"]);
        assert!(read(&mut &b"caf\xe9\n"[..], 1, Input::Text).is_err());
    }
}
