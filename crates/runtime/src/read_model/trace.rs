//! What happened when, as a tree: session → plan → task → attempt → turn → model and tool calls.
//!
//! Every span is made from entries of the log: when it began, how long it took, what it used, how it ended, and who or
//! what allowed it.

use std::collections::HashMap;
use std::sync::Arc;

use max_team_core::chat::Usage;
use max_team_core::event::{Approval, Event, LlmEnded, LlmIntent, LlmOutcome, ToolDone, ToolIntent, ToolOutcome};
use max_team_core::id::{AgentId, PlanId, QuestionId, SessionId};
use max_team_core::message::Assignment;
use max_team_core::plan::event::{PlanDecision, PlanEnd, Proof};
use max_team_core::policy::DecidedBy;
use max_team_core::turn::call_key;
use serde::Serialize;

use super::ReadModel;
use crate::error::RuntimeError;
use crate::plan::about_words;
use crate::rows::{AgentRow, said};
use crate::session::{self, Sessions, preview};

/// The kind of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanKind {
    /// A whole session.
    Session,
    Plan,
    /// A task of a plan.
    Task,
    /// One attempt at a task.
    Attempt,
    /// From a message to its answer.
    Turn,
    /// A model call.
    Model,
    /// A tool call.
    Tool,
    /// A question to a person.
    Question,
    /// The conversation was compacted, or that was taken back.
    Compaction,
}

/// A span of time in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Span {
    pub kind: SpanKind,
    pub name: String,
    /// When it began.
    pub at_ms: i64,
    /// How long it took; `None` if it has not ended.
    pub ms: Option<u64>,
    /// How it ended, or its present state.
    pub outcome: String,
    /// Whether it failed.
    pub failed: bool,
    /// What allowed it: a rule, or a person and where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Tokens, of this and everything inside.
    pub usage: Usage,
    /// Nano-dollars, of this and everything inside, as far as prices are known.
    pub nano: u64,
    /// The spans within it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Span>,
}

impl Span {
    fn new(kind: SpanKind, name: impl Into<String>, at_ms: i64) -> Self {
        Self {
            kind,
            name: name.into(),
            at_ms,
            ms: None,
            outcome: "running".to_owned(),
            failed: false,
            by: None,
            usage: Usage::default(),
            nano: 0,
            children: Vec::new(),
        }
    }

    fn end(&mut self, at_ms: i64, outcome: impl Into<String>) {
        self.ms = Some(u64::try_from(at_ms.saturating_sub(self.at_ms)).unwrap_or(0));
        self.outcome = outcome.into();
    }

    fn add(&mut self, child: Self) {
        self.usage += child.usage;
        self.nano = self.nano.saturating_add(child.nano);
        self.children.push(child);
    }
}

/// The turns of an agent, each with its assignment.
type Turns = Vec<(Option<Arc<Assignment>>, Span)>;

impl ReadModel<'_> {
    /// The spans of a session.
    pub fn trace_session(&self, session: SessionId) -> Result<Span, RuntimeError> {
        let row = Sessions::new(self.journal).row(session)?;
        let agents = self.agents(session)?;
        let mut span = Span::new(SpanKind::Session, format!("{session} in {}", row.cwd), row.opened_at_ms);
        let mut inside: Vec<Span> = Vec::new();
        let name = agents.iter().find(|agent| agent.agent == row.lead).map_or("lead", |agent| &agent.name);
        inside.extend(self.turns(row.lead, name, &agents)?.into_iter().map(|(_, turn)| turn));
        for line in self.plans()?.into_iter().filter(|line| line.row.session == session) {
            inside.push(self.trace_plan(line.row.plan)?);
        }
        inside.sort_by_key(|child| child.at_ms);
        let open = inside.iter().any(|child| child.ms.is_none());
        let last = inside.iter().filter_map(|child| Some(child.at_ms + i64::try_from(child.ms?).ok()?)).max();
        if let (false, Some(last)) = (open, last) {
            span.end(last, if row.answered { "answered" } else { "unanswered" });
        }
        inside.into_iter().for_each(|child| span.add(child));
        Ok(span)
    }

    /// The spans of a plan.
    pub fn trace_plan(&self, id: PlanId) -> Result<Span, RuntimeError> {
        let events = self.plan_events(id)?;
        let began = events.first().map_or(0, |(at_ms, _)| *at_ms);
        let goal = self.plan(id)?.draft().map_or_else(String::new, |draft| preview(&draft.goal));
        let agents = match self.session_of(id)? {
            Some(session) => self.agents(session)?,
            None => Vec::new(),
        };
        let span = Span::new(SpanKind::Plan, format!("{id}: {goal}"), began);
        let mut plan = Gathered { span, asked: HashMap::new(), tasks: Vec::new() };
        plan.span.outcome = "open".to_owned();
        for (at_ms, event) in &events {
            plan.take(*at_ms, event);
        }
        let mut turns: HashMap<AgentId, Turns> = HashMap::new();
        for task in &mut plan.tasks {
            for attempt in &mut task.attempts {
                let of_agent = match turns.entry(attempt.agent) {
                    std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
                    std::collections::hash_map::Entry::Vacant(place) => {
                        place.insert(self.turns(attempt.agent, &attempt.member, &agents)?)
                    }
                };
                let mine = |assignment: &Option<Arc<Assignment>>| {
                    assignment.as_ref().is_some_and(|assignment| {
                        assignment.plan == Some(id)
                            && assignment.task == task.span.name
                            && assignment.attempt == attempt.number
                    })
                };
                of_agent.iter().filter(|(of, _)| mine(of)).for_each(|(_, turn)| attempt.span.add(turn.clone()));
            }
            // Turns in which the owner was asked again belong to the task.
            let of_owner = task.attempts.last().and_then(|attempt| turns.get(&attempt.agent)).into_iter().flatten();
            let corrections = of_owner.filter(|(of, _)| of.as_ref().is_some_and(|given| given.corrects == Some(id)));
            corrections.for_each(|(_, turn)| task.span.add(turn.clone()));
        }
        Ok(plan.finish())
    }

    /// The turns of an agent with the spans within them.
    fn turns(&self, agent: AgentId, name: &str, agents: &[AgentRow]) -> Result<Turns, RuntimeError> {
        let mut reader = SpanReader {
            name,
            turns: Vec::new(),
            calling: None,
            tools: HashMap::new(),
            names: HashMap::new(),
            asked: HashMap::new(),
        };
        for (at_ms, event) in self.events(&session::agent_stream(agent))? {
            reader.take(at_ms, &event);
        }
        let mut turns = reader.finish();
        // An agent that was started by a call is shown under the call.
        let address = session::agent_stream(agent);
        let mut beside = Vec::new();
        for child in agents {
            let Some(assignment) = child.assignment.as_ref().filter(|of| of.plan.is_none() && of.reply_to == address)
            else {
                continue;
            };
            // Each of its turns belongs to a call of its own.
            for (given, inner) in self.turns(child.agent, &child.name, agents)? {
                let prefix = format!("{} ", given.as_ref().unwrap_or(assignment).task);
                let call = turns.iter_mut().find_map(|(_, turn)| {
                    turn.children.iter_mut().find(|span| span.kind == SpanKind::Tool && span.name.starts_with(&prefix))
                });
                match call {
                    Some(call) => call.add(inner),
                    // No call: the memory expert, which runs beside the turns.
                    None => beside.push((given, inner)),
                }
            }
        }
        for (_, turn) in &mut turns {
            let (usage, nano) = total(&turn.children);
            (turn.usage, turn.nano) = (usage, nano);
            for call in turn.children.iter_mut().filter(|call| call.kind == SpanKind::Tool) {
                // The key was only needed to find it.
                call.name = call.name.split_once(' ').map_or_else(String::new, |(_, name)| name.to_owned());
            }
        }
        turns.extend(beside);
        Ok(turns)
    }
}

fn total(spans: &[Span]) -> (Usage, u64) {
    let (mut usage, mut nano) = (Usage::default(), 0_u64);
    for span in spans {
        usage += span.usage;
        nano = nano.saturating_add(span.nano);
    }
    (usage, nano)
}

/// Who answered, as text.
fn who(by: &DecidedBy) -> String {
    match by {
        DecidedBy::Person(who) | DecidedBy::Lead(who) => who.clone(),
        DecidedBy::Rule(rule) => format!("rule: {rule}"),
        DecidedBy::Nobody(why) => format!("nobody ({why})"),
    }
}

/// Turns an agent's log into spans.
struct SpanReader<'a> {
    name: &'a str,
    turns: Turns,
    calling: Option<(LlmIntent, Span)>,
    tools: HashMap<String, Span>,
    /// Tool names of the calls in an answer, for calls that never began.
    names: HashMap<String, String>,
    asked: HashMap<QuestionId, String>,
}

impl SpanReader<'_> {
    fn take(&mut self, at_ms: i64, event: &Event) {
        match event {
            Event::TurnStarted(started) => {
                self.turns.push((started.assignment.clone(), Span::new(SpanKind::Turn, self.name, at_ms)));
            }
            Event::CompactionAsked(_) | Event::ReviewBegun(_) => {
                self.turns.push((None, Span::new(SpanKind::Turn, self.name, at_ms)))
            }
            Event::Compacted(_) | Event::CompactionFailed(_) | Event::Uncompacted(_) => self.compaction(at_ms, event),
            Event::LlmIntent(intent) => {
                let again = if intent.attempt > 1 { format!(" (attempt {})", intent.attempt) } else { String::new() };
                let what = if intent.summary.is_some() { " (summary)" } else { "" };
                let span = Span::new(SpanKind::Model, format!("{}{what}{again}", intent.model.name), at_ms);
                self.calling = Some((intent.clone(), span));
            }
            Event::LlmEnded(ended) => {
                if let LlmOutcome::Done(answer) = &ended.outcome {
                    let uses = answer.message.tool_uses().enumerate();
                    let keyed = uses.map(|(index, (_, name, _))| (call_key(ended.call, index), name.to_owned()));
                    self.names.extend(keyed);
                }
                self.end_call(at_ms, ended);
            }
            Event::QuestionAsked(asked) => {
                let name = format!("may it {} {}?", asked.tool, asked.action.target);
                let mut span = Span::new(SpanKind::Question, name, at_ms);
                span.outcome = "open".to_owned();
                self.tools.insert(asked.question.to_string(), span);
            }
            Event::QuestionAnswered(answered) => {
                let answer = &answered.answer;
                self.asked.insert(answered.question, who(&answer.by));
                if let Some(mut span) = self.tools.remove(&answered.question.to_string()) {
                    let always = if answer.always { ", always" } else { "" };
                    span.end(at_ms, format!("{}{always}", if answer.allow { "yes" } else { "no" }));
                    (span.failed, span.by) = (!answer.allow, Some(who(&answer.by)));
                    self.put(span);
                }
            }
            Event::ToolIntent(intent) => self.begin_tool(at_ms, intent),
            Event::ToolDone(done) => self.end_tool(at_ms, done),
            Event::TurnEnded(ended) => {
                if let Some((_, turn)) = self.turns.last_mut() {
                    let words = serde_json::to_value(&ended.end).ok();
                    let name = words
                        .as_ref()
                        .and_then(|end| end.as_str().or_else(|| end.as_object()?.keys().next().map(String::as_str)));
                    turn.end(at_ms, name.unwrap_or("ended"));
                    turn.failed = !matches!(name, Some("answered" | "proposed"));
                }
            }
            _ => {}
        }
    }

    fn compaction(&mut self, at_ms: i64, event: &Event) {
        let (name, outcome) = match event {
            Event::Compacted(compacted) => {
                let ((before, after), (from, to)) = (compacted.messages, compacted.tokens);
                (format!("{before} → {after} messages"), format!("about {from} → {to} tokens"))
            }
            Event::CompactionFailed(failed) => {
                ("no summary".to_owned(), format!("failed: {}", preview(&failed.detail)))
            }
            _ => ("taken back".to_owned(), "ok".to_owned()),
        };
        let mut span = Span::new(SpanKind::Compaction, name, at_ms);
        span.end(at_ms, outcome);
        span.failed = matches!(event, Event::CompactionFailed(_));
        self.put(span);
    }

    fn begin_tool(&mut self, at_ms: i64, intent: &ToolIntent) {
        let name = format!("{} {} {}", intent.key, intent.tool, preview(&intent.action.target));
        let mut span = Span::new(SpanKind::Tool, name.trim_end(), at_ms);
        span.by = Some(match &intent.approval {
            Approval::Rule(_) if !intent.rules.is_empty() => {
                let each = intent.rules.iter().map(|rule| format!("rule: {rule}"));
                each.collect::<Vec<_>>().join("; ")
            }
            Approval::Rule(rule) => format!("rule: {rule}"),
            Approval::Question(question) => self.asked.get(question).cloned().unwrap_or_else(|| "a person".to_owned()),
        });
        self.tools.insert(intent.key.clone(), span);
    }

    fn end_tool(&mut self, at_ms: i64, done: &ToolDone) {
        let mut name = self.names.remove(&done.key).unwrap_or_default();
        if let Some(refusal) = &done.refused {
            name = format!("{} {}", refusal.tool, preview(&refusal.target));
        }
        let unbegun = || Span::new(SpanKind::Tool, format!("{} {name}", done.key).trim_end(), at_ms);
        let mut span = self.tools.remove(&done.key).unwrap_or_else(unbegun);
        let outcome = match done.ending {
            ToolOutcome::Ran if done.is_error => "failed",
            ToolOutcome::Ran => "ok",
            ToolOutcome::Invalid => "could not run as asked",
            ToolOutcome::Refused => "refused",
            ToolOutcome::Interrupted => "stopped",
            ToolOutcome::Unknown => "unknown",
        };
        span.end(at_ms, outcome);
        if done.ms > 0 {
            span.ms = Some(done.ms);
        }
        span.failed = done.is_error;
        span.by = done.refused.as_deref().map(|refusal| who(&refusal.by)).or(span.by);
        self.put(span);
    }

    fn end_call(&mut self, at_ms: i64, ended: &LlmEnded) {
        let Some((intent, mut span)) = self.calling.take() else { return };
        if let Some(bill) = ended.bill(&intent) {
            (span.usage, span.nano) = (bill.usage, bill.nano);
        }
        let ms = ended.ms;
        let words = match &ended.outcome {
            LlmOutcome::Done(_) => "ok".to_owned(),
            LlmOutcome::Failed { detail, retry_at_ms, .. } => {
                let then = if retry_at_ms.is_some() { "; tried again" } else { "" };
                format!("failed: {}{then}", preview(detail))
            }
            LlmOutcome::Cancelled { .. } => "stopped".to_owned(),
            LlmOutcome::Lost => "lost with its process".to_owned(),
        };
        span.end(at_ms, words);
        if ms > 0 {
            span.ms = Some(ms);
        }
        span.failed = !matches!(ended.outcome, LlmOutcome::Done(_));
        self.put(span);
    }

    fn put(&mut self, span: Span) {
        if let Some((_, turn)) = self.turns.last_mut() {
            turn.children.push(span);
        }
    }

    /// Spans that are still open belong to the last turn.
    fn finish(mut self) -> Turns {
        let open = self.calling.take().map(|(_, span)| span);
        let mut open: Vec<Span> = open.into_iter().chain(std::mem::take(&mut self.tools).into_values()).collect();
        open.sort_by_key(|span| span.at_ms);
        open.into_iter().for_each(|span| self.put(span));
        for (_, turn) in &mut self.turns {
            turn.children.sort_by_key(|span| span.at_ms);
        }
        self.turns
    }
}

/// Turns a plan's log into a span.
struct Gathered {
    span: Span,
    asked: HashMap<QuestionId, Span>,
    tasks: Vec<TaskSpan>,
}

struct TaskSpan {
    span: Span,
    attempts: Vec<AttemptSpan>,
}

struct AttemptSpan {
    span: Span,
    agent: AgentId,
    member: String,
    number: u32,
}

impl Gathered {
    fn take(&mut self, at_ms: i64, event: &Event) {
        match event {
            Event::PlanAsked(asked) => {
                let mut span = Span::new(SpanKind::Question, about_words(&asked.about), at_ms);
                span.outcome = "open".to_owned();
                self.asked.insert(asked.question, span);
            }
            Event::PlanAnswered(answered) => {
                if let Some(mut span) = self.asked.remove(&answered.question) {
                    span.end(at_ms, said(&answered.say));
                    span.failed = matches!(answered.say, PlanDecision::Reject(_));
                    span.by = Some(who(&answered.by));
                    self.span.add(span);
                }
            }
            Event::TaskAssigned(assigned) => {
                let name = format!("attempt {} by {}", assigned.attempt, assigned.member);
                let attempt = AttemptSpan {
                    span: Span::new(SpanKind::Attempt, name, at_ms),
                    agent: assigned.agent,
                    member: assigned.member.clone(),
                    number: assigned.attempt,
                };
                self.task(&assigned.task, at_ms).attempts.push(attempt);
            }
            Event::TaskDone(done) => {
                let words = match done.result.proof {
                    Proof::Verified => "done, verified",
                    Proof::Unverified => "done, unverified",
                    Proof::Failed => "done, checks failed",
                };
                let from = done
                    .result
                    .cached
                    .as_ref()
                    .map_or_else(String::new, |cached| format!(", {}", cached.origin_text()));
                self.close(&done.task, at_ms, &format!("{words}{from}"), false);
            }
            Event::TaskFailed(failed) => {
                self.close(&failed.task, at_ms, &format!("failed: {}", preview(&failed.error)), true);
            }
            Event::TaskSkipped(skipped) => {
                self.close(&skipped.task, at_ms, &format!("skipped: {}", preview(&skipped.detail)), false);
            }
            Event::TaskCancelled(cancelled) => {
                self.close(&cancelled.task, at_ms, &format!("given up: {}", preview(&cancelled.detail)), true);
            }
            Event::PlanStopped(stopped) if stopped.task.is_none() => {
                self.span.by = Some(format!("stopped by {}", stopped.by));
            }
            Event::PlanEnded(ended) => {
                let tally = ended.tally;
                self.span.end(
                    at_ms,
                    format!(
                        "{}: {} of {} done, {} verified",
                        end_word(ended.end),
                        tally.done,
                        tally.tasks,
                        tally.verified
                    ),
                );
                self.span.failed = !matches!(ended.end, PlanEnd::Done | PlanEnd::Replaced);
            }
            _ => {}
        }
    }

    fn task(&mut self, name: &str, at_ms: i64) -> &mut TaskSpan {
        let known = self.tasks.iter().position(|task| task.span.name == name);
        let index = known.unwrap_or(self.tasks.len());
        if known.is_none() {
            self.tasks.push(TaskSpan { span: Span::new(SpanKind::Task, name, at_ms), attempts: Vec::new() });
        }
        #[expect(clippy::indexing_slicing, reason = "the position of what was found, or was just put there")]
        &mut self.tasks[index]
    }

    fn close(&mut self, name: &str, at_ms: i64, words: &str, failed: bool) {
        let task = self.task(name, at_ms);
        task.span.end(at_ms, words);
        task.span.failed = failed;
        if let Some(attempt) = task.attempts.last_mut().filter(|attempt| attempt.span.ms.is_none()) {
            attempt.span.end(at_ms, words);
            attempt.span.failed = failed;
        }
    }

    fn finish(mut self) -> Span {
        for mut task in self.tasks {
            task.attempts.into_iter().for_each(|attempt| task.span.add(attempt.span));
            task.span.children.sort_by_key(|child| child.at_ms);
            self.span.add(task.span);
        }
        self.asked.into_values().for_each(|question| self.span.add(question));
        self.span.children.sort_by_key(|child| child.at_ms);
        self.span
    }
}

fn end_word(end: PlanEnd) -> &'static str {
    match end {
        PlanEnd::Done => "done",
        PlanEnd::Partial => "partly done",
        PlanEnd::Failed => "failed",
        PlanEnd::Stopped => "stopped",
        PlanEnd::Rejected => "rejected",
        PlanEnd::Replaced => "replaced",
    }
}
