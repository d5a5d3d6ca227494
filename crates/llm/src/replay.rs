//! A model that answers from a recording: for the demo, for tests, for looking at old runs again.
//!
//! Answers are given by the number of the call, so a run that was killed goes on with the answer it was waiting for.
//! A request beyond the recording fails with `Unrecorded`, unless words for that are given. A recording does not understand
//! requests; it only searches them for a failed tool or for given words, so that it claims nothing that did not happen.
//!
//! ```yaml
//! delta_ms: 20                     # pause between pieces, for show
//! answers:
//!   - parts:
//!       - thinking: A look first.
//!       - {tool: read_file, input: {path: README.md}}
//!   - text: It is a readme.        # short for one text part
//!     usage: {input: 1200, output: 40}
//!   - text: Done.
//!     after_error: I could not.    # instead, if a tool failed or was refused just before
//!   - text: All 3 are verified.
//!     given: 3 verified            # only if the request has these words (letters that JSON leaves as they are), or all of a list;
//!     otherwise: Not all of them.  # else this
//!   - text: Both are done.
//!     given: the second is done    # until the request has these words,
//!     meanwhile: One is missing.   # this is said, and the answer stays the next one
//!   - fails: overloaded            # a failure by its name
//!   - text: Wait for it.
//!     delta_ms: 3600000            # another pause for this answer
//! members:                         # what others say: by name, or by name and task
//!   leo/impl:
//!     - text: Done.
//! pages:                           # what addresses of the web answer, for the tools
//!   - {url: "https://a.example/", body: "<p>Hello"}
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use max_team_core::chat::{Answer, Message, Part, PartialAnswer, StopReason, Usage};
use max_team_core::recovery::Failure;
use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::call::{CallError, Delta, Sink};
use crate::wire::Request;
use crate::yaml;

/// Why a recording cannot be played.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BadRecording {
    /// It is no recording at all.
    #[error("the recording cannot be read: {0}")]
    Unreadable(String),
    /// An answer is not as it should be.
    #[error("answer {number} of the recording: {problem}")]
    Answer {
        /// Which, from 1.
        number: usize,
        /// What is wrong.
        problem: &'static str,
    },
}

/// A recorded model.
#[derive(Debug, Clone, Default)]
pub struct Replay {
    lead: Speaker,
    members: BTreeMap<String, Speaker>,
    pause: Duration,
    /// The answer to every call beyond the recording; without it such a call fails.
    beyond: Option<String>,
    /// What addresses of the web answer: the tools read it.
    pages: Vec<Value>,
    /// How often each call was made, by speaker and number.
    calls: Arc<Mutex<BTreeMap<(String, u32), u32>>>,
}

/// What one speaker says.
#[derive(Debug, Clone, Default)]
struct Speaker {
    ends: Vec<Result<Answer, (Failure, String)>>,
    /// What is said instead of an answer, by position.
    instead: Vec<Substitute>,
    /// The pauses of answers that have their own, by position.
    pauses: Vec<Option<Duration>>,
}

/// When an answer would claim what did not happen, and what is said then.
#[derive(Debug, Clone)]
struct Substitute {
    after_error: Option<String>,
    given: Vec<String>,
    otherwise: Option<String>,
    meanwhile: Option<String>,
}

impl Substitute {
    fn of(recorded: &RecordedAnswer) -> Self {
        let RecordedAnswer { after_error, given, otherwise, meanwhile, .. } = recorded.clone();
        let given = match given {
            None => Vec::new(),
            Some(GivenWords::One(words)) => vec![words],
            Some(GivenWords::All(all)) => all,
        };
        Self { after_error, given, otherwise, meanwhile }
    }

    fn text(&self, body: &[u8]) -> Option<&String> {
        let missing = |words: &String| !holds(body, words.as_bytes());
        let otherwise = self.meanwhile.as_ref().or(self.otherwise.as_ref());
        let otherwise = otherwise.filter(|_| self.given.iter().any(missing));
        otherwise.or_else(|| self.after_error.as_ref().filter(|_| holds(body, ERROR_MARK)))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recording {
    #[serde(default)]
    delta_ms: u64,
    answers: Vec<RecordedAnswer>,
    #[serde(default)]
    members: BTreeMap<String, Vec<RecordedAnswer>>,
    #[serde(default)]
    pages: Vec<Value>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedAnswer {
    text: Option<String>,
    #[serde(default)]
    parts: Vec<RecordedPart>,
    stop: Option<StopReason>,
    #[serde(default)]
    usage: RecordedTokens,
    fails: Option<Value>,
    detail: Option<String>,
    after_error: Option<String>,
    given: Option<GivenWords>,
    otherwise: Option<String>,
    meanwhile: Option<String>,
    delta_ms: Option<u64>,
}

#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum GivenWords {
    One(String),
    All(Vec<String>),
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedPart {
    text: Option<String>,
    thinking: Option<String>,
    tool: Option<String>,
    input: Option<Value>,
    id: Option<String>,
}

#[derive(Clone, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct RecordedTokens {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

impl Replay {
    /// A model that gives these answers in turn.
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let lead = Speaker { ends: answers.into_iter().map(Ok).collect(), ..Speaker::default() };
        Self { lead, ..Self::default() }
    }

    /// Reads a recording in YAML (or JSON).
    pub fn read(text: &str) -> Result<Self, BadRecording> {
        let recording: Recording = yaml::read(text).map_err(BadRecording::Unreadable)?;
        let members = recording.members.into_iter().map(|(name, answers)| Ok((name, Speaker::read(answers)?)));
        Ok(Self {
            lead: Speaker::read(recording.answers)?,
            members: members.collect::<Result<_, BadRecording>>()?,
            pause: Duration::from_millis(recording.delta_ms),
            pages: recording.pages,
            ..Self::default()
        })
    }

    /// The answers for a speaker: those of the member at its task, of the member, or the common ones.
    fn voice(&self, speaker: &str) -> &Speaker {
        let name = speaker.split_once('/').map_or(speaker, |(name, _)| name);
        self.members.get(speaker).or_else(|| self.members.get(name)).unwrap_or(&self.lead)
    }

    /// The same without pauses, for runs that no user watches.
    #[must_use]
    pub fn at_once(mut self) -> Self {
        self.pause = Duration::ZERO;
        self.members.values_mut().chain([&mut self.lead]).for_each(|voice| voice.pauses.clear());
        self
    }

    /// The same with an answer to every call beyond the recording.
    #[must_use]
    pub fn ending_with(mut self, words: &str) -> Self {
        self.beyond = Some(words.to_owned());
        self
    }

    /// What addresses of the web answer, to be handed to the tools once.
    pub fn take_pages(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.pages)
    }

    /// How often each call was made of this recording and its clones, by speaker and number.
    pub fn calls(&self) -> BTreeMap<(String, u32), u32> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn count(&self, request: &Request) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        *calls.entry((request.speaker.to_string(), request.number)).or_default() += 1;
    }

    /// Gives the answer to the call of this number, from 1.
    pub(crate) async fn call(
        &self,
        request: &Request,
        cancel: &CancellationToken,
        sink: &mut Sink<'_>,
    ) -> Result<Answer, CallError> {
        self.count(request);
        let voice = self.voice(&request.speaker);
        let at = usize::try_from(request.number).ok().and_then(|number| number.checked_sub(1 + voice.waited(request)));
        let mut answer = match (at.and_then(|at| voice.ends.get(at)), &self.beyond) {
            (Some(Ok(answer)), _) => answer.clone(),
            (Some(Err((failure, detail))), _) => return Err(CallError::failed(failure.clone(), detail)),
            (None, Some(words)) => spoken(words),
            (None, None) => {
                let (known, number) = (voice.ends.len(), request.number);
                let of = if request.speaker.is_empty() { String::new() } else { format!(" of `{}`", request.speaker) };
                let detail = format!("the recording has {known} answers{of}, and this is call {number}");
                return Err(CallError::failed(Failure::Unrecorded, detail));
            }
        };
        if let Some(text) = at.and_then(|at| voice.instead.get(at)?.text(&request.body.whole())) {
            answer.message = Message::assistant(vec![Part::text(text.clone())]);
            answer.stop = StopReason::EndTurn;
        }
        answer.usage.output = answer.usage.output.min(u64::from(request.max_tokens));
        if answer.model.is_empty() {
            answer.model.clone_from(&request.wire.model);
        }
        let pause = at.and_then(|at| *voice.pauses.get(at)?).unwrap_or(self.pause);
        let mut partial = String::new();
        let shown = tokio::select! {
            biased;
            () = cancel.cancelled() => false,
            () = show(pause, &answer, &mut partial, sink) => true,
        };
        if shown {
            Ok(answer)
        } else {
            Err(CallError::Cancelled {
                streamed: PartialAnswer { is_sent: true, usage: answer.usage, bytes: partial.len() },
                partial,
            })
        }
    }
}

/// An answer that is only words.
fn spoken(words: &str) -> Answer {
    Answer {
        message: Message::assistant(vec![Part::text(words.to_owned())]),
        stop: StopReason::EndTurn,
        usage: Usage::default(),
        request_id: None,
        model: String::new(),
    }
}

async fn show(pause: Duration, answer: &Answer, partial: &mut String, sink: &mut Sink<'_>) {
    for part in &answer.message.parts {
        match part {
            Part::Text { text } => {
                for word in text.split_inclusive(char::is_whitespace) {
                    rest(pause).await;
                    partial.push_str(word);
                    sink(Delta::Text(word));
                }
            }
            Part::Thinking { text } => {
                for word in text.split_inclusive(char::is_whitespace) {
                    rest(pause).await;
                    sink(Delta::Thinking(word));
                }
            }
            Part::ToolUse { id, name, input } => {
                rest(pause).await;
                sink(Delta::ToolStart { id, name });
                sink(Delta::ToolInput(&input.to_string()));
            }
            Part::Image { .. } | Part::ToolResult { .. } => {}
        }
    }
    sink(Delta::Usage(answer.usage));
}

async fn rest(pause: Duration) {
    if !pause.is_zero() {
        tokio::time::sleep(pause).await;
    }
}

impl Speaker {
    fn read(answers: Vec<RecordedAnswer>) -> Result<Self, BadRecording> {
        let instead = answers.iter().map(Substitute::of).collect();
        let pauses = answers.iter().map(|recorded| recorded.delta_ms.map(Duration::from_millis)).collect();
        let ends = answers.into_iter().enumerate().map(|(index, recorded)| {
            let number = index + 1;
            recorded.end(number).map_err(|problem| BadRecording::Answer { number, problem })
        });
        Ok(Self { ends: ends.collect::<Result<_, _>>()?, instead, pauses })
    }

    /// Calls that were answered with a `meanwhile` so far. The request's history tells, so that a restarted run agrees.
    fn waited(&self, request: &Request) -> usize {
        let texts: BTreeSet<&String> = self.instead.iter().filter_map(|instead| instead.meanwhile.as_ref()).collect();
        if texts.is_empty() {
            return 0;
        }
        let body = request.body.whole();
        texts.into_iter().map(|text| occurrences(&body, json!(text).to_string().as_bytes())).sum()
    }
}

/// How a tool result in a request is marked as failed.
const ERROR_MARK: &[u8] = br#""is_error":true"#;

fn holds(body: &[u8], words: &[u8]) -> bool {
    words.is_empty() || body.windows(words.len()).any(|window| window == words)
}

fn occurrences(body: &[u8], words: &[u8]) -> usize {
    body.windows(words.len()).filter(|window| *window == words).count()
}

impl RecordedAnswer {
    fn end(self, number: usize) -> Result<Result<Answer, (Failure, String)>, &'static str> {
        if let Some(name) = self.fails {
            let detail = self.detail.unwrap_or_else(|| "the recording fails here".into());
            return failure(name).map(|failure| Err((failure, detail))).ok_or("`fails` names no failure");
        }
        let text = self.text.map(Part::text);
        let parts = self.parts.into_iter().enumerate().map(|(index, piece)| piece.part(number, index));
        let parts = text.into_iter().map(Ok).chain(parts).collect::<Result<Vec<_>, _>>()?;
        if parts.is_empty() {
            return Err("it has neither `text`, nor `parts`, nor `fails`");
        }
        let calls = parts.iter().any(|part| matches!(part, Part::ToolUse { .. }));
        let RecordedTokens { input, output, cache_read, cache_write } = self.usage;
        Ok(Ok(Answer {
            message: Message::assistant(parts).with_own_ids(),
            stop: self.stop.unwrap_or(if calls { StopReason::ToolUse } else { StopReason::EndTurn }),
            usage: Usage { input, output, cache_read, cache_write },
            request_id: None,
            model: String::new(),
        }))
    }
}

/// A failure by its name alone, or as the journal writes it, with its fields.
fn failure(name: Value) -> Option<Failure> {
    let with_fields = name.as_str().map(|name| json!({name: {}}));
    serde_json::from_value(name).ok().or_else(|| serde_json::from_value(with_fields?).ok())
}

impl RecordedPart {
    fn part(self, number: usize, index: usize) -> Result<Part, &'static str> {
        match (self.text, self.thinking, self.tool) {
            (Some(text), None, None) => Ok(Part::Text { text }),
            (None, Some(text), None) => Ok(Part::Thinking { text }),
            (None, None, Some(name)) => Ok(Part::ToolUse {
                id: self.id.unwrap_or_else(|| format!("call_{number}_{index}")),
                name,
                input: self.input.unwrap_or_else(|| Value::Object(Default::default())).into(),
            }),
            _ => Err("a part is exactly one of `text`, `thinking` and `tool`"),
        }
    }
}
