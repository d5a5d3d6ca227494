//! What a span of a trace is called, how it ended, and what allowed it.
//!
//! In JSON these are English texts; a frontend says them in the user's language.

use max_team_core::event::{ToolDone, ToolOutcome, TurnOutcome};
use max_team_core::id::SessionId;
use max_team_core::plan::event::{CachedAnswer, PlanEnd, PlanQuestion, Proof, TaskErrorKind, Totals};
use max_team_core::policy::DecidedBy;
use serde::Serialize;

use super::record::RuleText;
use crate::plan::about_words;
use crate::rows::AnswerWord;
use crate::session::preview;

/// The name of a span.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub enum SpanName {
    /// A plan, a task, or the agent of a turn.
    Text(String),
    Session {
        session: SessionId,
        cwd: String,
    },
    Model {
        model: String,
        summary: bool,
        attempt: u32,
    },
    /// A tool call, with the key that finds the spans of an agent that it started.
    Call {
        key: String,
        text: String,
    },
    /// Whether an agent may do this.
    MayIt(String),
    PlanQuestion(PlanQuestion),
    Attempt {
        number: u32,
        member: String,
    },
    /// The messages before and after a compaction.
    Messages {
        before: usize,
        after: usize,
    },
    NoSummary,
    /// A compaction was taken back.
    TakenBack,
}

/// How a span ended, or its present state.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(into = "String")]
pub enum SpanOutcome {
    Running,
    Open,
    Answered,
    Unanswered,
    Ok,
    Failed {
        why: String,
        again: bool,
    },
    Stopped,
    /// Its process ended before it.
    Lost,
    Turn(TurnOutcome),
    Tool(ToolEnd),
    Answer {
        word: AnswerWord,
        always: bool,
    },
    /// The tokens before and after a compaction.
    Tokens {
        from: u64,
        to: u64,
    },
    /// A task is done; `cached`: by an earlier answer.
    Done {
        proof: Proof,
        cached: Option<CachedAnswer>,
    },
    TaskFailed {
        why: String,
        kind: TaskErrorKind,
    },
    Skipped(String),
    GivenUp {
        why: String,
        kind: TaskErrorKind,
    },
    Plan(PlanEnd, Totals),
}

/// What allowed, refused or stopped something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub enum SpanAuthor {
    Decided(DecidedBy),
    Rules(Vec<RuleText>),
    /// A person whose answer is not in the log.
    APerson,
    Stopped(String),
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolEnd {
    Ok,
    Failed,
    Invalid,
    Refused,
    Stopped,
    Unknown,
}

impl ToolEnd {
    pub(super) fn of(done: &ToolDone) -> Self {
        match done.ending {
            ToolOutcome::Ran if done.is_error => Self::Failed,
            ToolOutcome::Ran => Self::Ok,
            ToolOutcome::Invalid => Self::Invalid,
            ToolOutcome::Refused => Self::Refused,
            ToolOutcome::Interrupted => Self::Stopped,
            ToolOutcome::Unknown => Self::Unknown,
        }
    }

    /// Its name in records.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ran",
            Self::Failed => "failed",
            Self::Invalid => "invalid",
            Self::Refused => "refused",
            Self::Stopped => "interrupted",
            Self::Unknown => "unknown",
        }
    }
}

impl SpanName {
    pub(super) fn call(key: &str, tool: &str, target: &str) -> Self {
        Self::Call { key: key.to_owned(), text: format!("{tool} {}", preview(target)).trim_end().to_owned() }
    }

    pub(super) fn is_text(&self, name: &str) -> bool {
        matches!(self, Self::Text(text) if text == name)
    }
}

impl From<&str> for SpanName {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<SpanName> for String {
    fn from(name: SpanName) -> Self {
        match name {
            SpanName::Text(text) | SpanName::Call { text, .. } => text,
            SpanName::Session { session, cwd } => format!("{session} in {cwd}"),
            SpanName::Model { model, summary, attempt } => {
                let again = if attempt > 1 { format!(" (attempt {attempt})") } else { Self::new() };
                format!("{model}{}{again}", if summary { " (summary)" } else { "" })
            }
            SpanName::MayIt(call) => format!("may it {call}?"),
            SpanName::PlanQuestion(about) => about_words(&about),
            SpanName::Attempt { number, member } => format!("attempt {number} by {member}"),
            SpanName::Messages { before, after } => format!("{before} → {after} messages"),
            SpanName::NoSummary => "no summary".to_owned(),
            SpanName::TakenBack => "taken back".to_owned(),
        }
    }
}

impl From<SpanOutcome> for String {
    fn from(outcome: SpanOutcome) -> Self {
        let word = match outcome {
            SpanOutcome::Running => "running",
            SpanOutcome::Open => "open",
            SpanOutcome::Answered => "answered",
            SpanOutcome::Unanswered => "unanswered",
            SpanOutcome::Ok | SpanOutcome::Tool(ToolEnd::Ok) => "ok",
            SpanOutcome::Tool(ToolEnd::Invalid) => "could not run as asked",
            SpanOutcome::Stopped | SpanOutcome::Tool(ToolEnd::Stopped) => "stopped",
            SpanOutcome::Tool(end) => end.name(),
            SpanOutcome::Lost => "lost with its process",
            SpanOutcome::Turn(end) => end.name(),
            SpanOutcome::Failed { why, again: true } => return format!("failed: {why}; tried again"),
            SpanOutcome::Failed { why, .. } | SpanOutcome::TaskFailed { why, .. } => return format!("failed: {why}"),
            SpanOutcome::Answer { word, always: true } => return format!("{word}, always"),
            SpanOutcome::Answer { word, .. } => word.name(),
            SpanOutcome::Tokens { from, to } => return format!("about {from} → {to} tokens"),
            SpanOutcome::Done { proof, cached } => {
                let proof = match proof {
                    Proof::Verified => "verified",
                    Proof::Unverified => "unverified",
                    Proof::Failed => "checks failed",
                };
                let from = cached.map_or_else(Self::new, |cached| format!(", {}", cached.origin_text()));
                return format!("done, {proof}{from}");
            }
            SpanOutcome::Skipped(why) => return format!("skipped: {why}"),
            SpanOutcome::GivenUp { why, .. } => return format!("given up: {why}"),
            SpanOutcome::Plan(end, tally) => {
                let Totals { done, tasks, verified, .. } = tally;
                return format!("{}: {done} of {tasks} done, {verified} verified", end.name());
            }
        };
        word.to_owned()
    }
}

impl From<SpanAuthor> for String {
    fn from(by: SpanAuthor) -> Self {
        match by {
            SpanAuthor::Decided(by @ (DecidedBy::Rule(_) | DecidedBy::Grant(_))) => format!("rule: {}", by.name()),
            SpanAuthor::Decided(by) => by.name(),
            SpanAuthor::Rules(rules) => {
                rules.iter().map(|rule| format!("rule: {}", rule.text)).collect::<Vec<_>>().join("; ")
            }
            SpanAuthor::APerson => "a person".to_owned(),
            SpanAuthor::Stopped(by) => format!("stopped by {by}"),
        }
    }
}
