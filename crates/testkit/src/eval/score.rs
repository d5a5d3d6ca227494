//! What a job cost and came to, from the requests of the program and the outcome on the disk.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::job::Job;
use super::policy::NOT_DONE;
use super::stage::Stage;
use super::view::{Item, View};
use super::weak::Mistake;
use super::{Character, field_bytes};
use crate::Recorded;

/// Bytes that count as one token.
pub(super) const TOKEN_BYTES: usize = 4;

/// A reply of the model.
#[derive(Debug, Default)]
pub(super) struct ModelReply {
    pub(super) request: usize,
    pub(super) role: String,
    /// Ids of its tool calls, each with whether it repeats an equal call of the conversation.
    pub(super) calls: Vec<(String, bool)>,
    /// It called nothing and was neither an answer nor a result.
    pub(super) is_idle: bool,
    pub(super) mistake: Option<Mistake>,
    /// The word of the result in it.
    pub(super) marker: Option<&'static str>,
    /// What came and what the model did, to be read by people.
    pub(super) trace: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Right,
    /// Not done, and the exit code or the answer says so.
    Failed,
    /// Not done, and nothing says so.
    Silent,
}

/// Input that one kind of agent gets with every call: system prompt and tools.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fixed {
    pub calls: usize,
    /// Of its largest request, in tokens.
    pub tokens: usize,
}

#[derive(Debug)]
pub struct Row {
    pub job: &'static str,
    pub character: Character,
    pub outcome: Outcome,
    /// What is wrong with the outcome; empty if it is right.
    pub why: String,
    pub calls: usize,
    /// Calls whose tool calls all failed, were refused or repeated an equal one; and calls that only said something, without an
    /// answer to the user or a result for the lead.
    pub wasted: usize,
    /// Bytes of all requests, as tokens.
    pub input_tokens: usize,
    /// Input tokens that the program counts (`max-team cost`).
    pub usage_tokens: u64,
    /// System prompts and tools among the input, in per cent.
    pub fixed_percent: usize,
    /// Marks of results that neither reached the lead nor the user.
    pub lost: Vec<&'static str>,
    pub mistakes: Vec<String>,
    pub fixed: BTreeMap<&'static str, Fixed>,
    pub codes: Vec<i32>,
    pub answer: String,
}

impl Row {
    pub fn json(&self) -> Value {
        let fixed = |(kind, fixed): (&&'static str, &Fixed)| {
            ((*kind).to_owned(), json!({ "calls": fixed.calls, "tokens": fixed.tokens }))
        };
        json!({
            "job": self.job, "character": self.character.name(), "outcome": self.outcome_word(), "why": self.why,
            "calls": self.calls, "wasted": self.wasted, "input_tokens": self.input_tokens,
            "usage_tokens": self.usage_tokens, "fixed_percent": self.fixed_percent, "lost": self.lost,
            "mistakes": self.mistakes, "fixed": self.fixed.iter().map(fixed).collect::<serde_json::Map<_, _>>(),
            "exit_codes": self.codes, "answer": self.answer,
        })
    }

    pub fn outcome_word(&self) -> &'static str {
        match self.outcome {
            Outcome::Right => "right",
            Outcome::Failed => "failed",
            Outcome::Silent => "silent",
        }
    }

    /// Whether it is as it must be: a strong model's job right, a weak one's at least not wrong in silence, no result lost.
    pub fn is_fine(&self) -> bool {
        let must = match self.character {
            Character::Strong => self.outcome == Outcome::Right,
            Character::Weak => self.outcome != Outcome::Silent,
        };
        must && self.lost.is_empty()
    }
}

pub(super) fn row(job: &Job, character: Character, stage: &Stage, requests: &[Recorded], made: &[ModelReply]) -> Row {
    let asked: Vec<&Recorded> = requests.iter().filter(|request| request.dialect().is_some()).collect();
    let failed = failed_calls(&asked);
    let bytes: usize = asked.iter().map(|request| request.bytes).sum();
    let fixed: usize = asked.iter().map(|request| fixed_bytes(request)).sum();
    let (outcome, why) = outcome(job, stage);
    Row {
        job: job.name,
        character,
        outcome,
        why,
        calls: asked.len(),
        wasted: made.iter().filter(|made| is_wasted(made, &failed)).count(),
        input_tokens: bytes / TOKEN_BYTES,
        usage_tokens: stage.usage(),
        fixed_percent: fixed * 100 / bytes.max(1),
        lost: lost(&asked, made, stage),
        mistakes: made.iter().filter_map(|made| Some(format!("{}: {:?}", made.role, made.mistake?))).collect(),
        fixed: fixed_by_kind(job, &asked),
        codes: stage.runs.iter().map(|run| run.code).collect(),
        answer: stage.runs.last().map(|run| run.answer.clone()).unwrap_or_default(),
    }
}

fn outcome(job: &Job, stage: &Stage) -> (Outcome, String) {
    let Err(why) = (job.check)(stage) else { return (Outcome::Right, String::new()) };
    let is_told = stage.runs.last().is_some_and(|run| run.code != 0 || run.answer.starts_with(NOT_DONE));
    (if is_told { Outcome::Failed } else { Outcome::Silent }, why)
}

fn is_wasted(made: &ModelReply, failed: &BTreeSet<String>) -> bool {
    let is_lost = |(id, is_repeated): &(String, bool)| *is_repeated || failed.contains(id);
    made.is_idle || (!made.calls.is_empty() && made.calls.iter().all(is_lost))
}

fn failed_calls(requests: &[&Recorded]) -> BTreeSet<String> {
    let items = requests.iter().flat_map(|request| View::new(&request.body).items);
    items.filter_map(|item| if let Item::Returned { id, failed: true, .. } = item { Some(id) } else { None }).collect()
}

fn lost(requests: &[&Recorded], made: &[ModelReply], stage: &Stage) -> Vec<&'static str> {
    let reached = |marker: &str, since: usize| {
        let later = requests.iter().filter(|request| request.n > since);
        let mut told = later.map(|request| View::new(&request.body)).filter(|view| view.role == "lead");
        told.any(|view| view.has_heard(marker)) || stage.runs.iter().any(|run| run.answer.contains(marker))
    };
    let lost = made.iter().filter_map(|made| made.marker.filter(|marker| !reached(marker, made.request)));
    lost.collect::<BTreeSet<_>>().into_iter().collect()
}

fn fixed_bytes(request: &Recorded) -> usize {
    field_bytes(request, "system") + field_bytes(request, "tools")
}

fn fixed_by_kind(job: &Job, requests: &[&Recorded]) -> BTreeMap<&'static str, Fixed> {
    let mut kinds: BTreeMap<&'static str, Fixed> = BTreeMap::new();
    for request in requests {
        let role = View::new(&request.body).role;
        let part = job.parts.iter().find(|part| part.role == role);
        let kind = part.map_or(if role == "lead" { "lead" } else { "other" }, |part| part.kind);
        let fixed = kinds.entry(kind).or_default();
        fixed.calls += 1;
        fixed.tokens = fixed.tokens.max(fixed_bytes(request) / TOKEN_BYTES);
    }
    kinds
}
