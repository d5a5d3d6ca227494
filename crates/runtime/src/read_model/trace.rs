//! What happened when, as a tree: session → plan → task → attempt → turn → model and tool calls.
//!
//! Every span is made from entries of the log: when it began, how long it took, what it used, how it ended, and who or
//! what allowed it.

use std::collections::HashMap;
use std::sync::Arc;

use max_team_core::chat::Usage;
use max_team_core::event::{
    Approval, Event, LlmEnded, LlmIntent, LlmOutcome, Refusal, ToolDone, ToolIntent, TurnOutcome,
};
use max_team_core::id::{AgentId, PlanId, QuestionId, SessionId};
use max_team_core::message::Assignment;
use max_team_core::plan::event::{PlanDecision, PlanEnd};
use max_team_core::policy::{Basis, DecidedBy};
use max_team_core::turn::call_key;
use serde::Serialize;

use super::ReadModel;
use super::record::RuleText;
use super::span::{SpanAuthor, SpanName, SpanOutcome, ToolEnd};
use crate::error::RuntimeError;
use crate::rows::{AgentRow, AnswerWord};
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
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Span {
    pub kind: SpanKind,
    pub name: SpanName,
    /// When it began.
    pub at_ms: i64,
    /// How long it took; `None` if it has not ended.
    pub ms: Option<u64>,
    /// How it ended, or its present state.
    pub outcome: SpanOutcome,
    /// Whether it failed.
    pub failed: bool,
    /// What allowed or stopped it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<SpanAuthor>,
    /// Tokens, of this and everything inside.
    pub usage: Usage,
    /// Nano-dollars, of this and everything inside, as far as prices are known.
    pub nano: u64,
    /// The spans within it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Span>,
}

impl Span {
    fn new(kind: SpanKind, name: impl Into<SpanName>, at_ms: i64) -> Self {
        Self {
            kind,
            name: name.into(),
            at_ms,
            ms: None,
            outcome: SpanOutcome::Running,
            failed: false,
            by: None,
            usage: Usage::default(),
            nano: 0,
            children: Vec::new(),
        }
    }

    fn end(&mut self, at_ms: i64, outcome: SpanOutcome) {
        self.ms = Some(u64::try_from(at_ms.saturating_sub(self.at_ms)).unwrap_or(0));
        self.outcome = outcome;
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
        let mut span = Span::new(SpanKind::Session, SpanName::Session { session, cwd: row.cwd }, row.opened_at_ms);
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
            span.end(last, if row.answered { SpanOutcome::Answered } else { SpanOutcome::Unanswered });
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
        let span = Span::new(SpanKind::Plan, SpanName::Text(format!("{id}: {goal}")), began);
        let mut plan = Gathered { span, asked: HashMap::new(), tasks: Vec::new() };
        plan.span.outcome = SpanOutcome::Open;
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
                            && task.span.name.is_text(&assignment.task)
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
                let task = &given.as_ref().unwrap_or(assignment).task;
                let is_call = |span: &&mut Span| matches!(&span.name, SpanName::Call { key, .. } if key == task);
                let call = turns.iter_mut().find_map(|(_, turn)| turn.children.iter_mut().find(is_call));
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

/// Turns an agent's log into spans.
struct SpanReader<'a> {
    name: &'a str,
    turns: Turns,
    calling: Option<(LlmIntent, Span)>,
    tools: HashMap<String, Span>,
    /// Tool names of the calls in an answer, for calls that never began.
    names: HashMap<String, String>,
    asked: HashMap<QuestionId, DecidedBy>,
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
                let (model, summary) = (intent.model.name.clone(), intent.summary.is_some());
                let name = SpanName::Model { model, summary, attempt: intent.attempt };
                self.calling = Some((intent.clone(), Span::new(SpanKind::Model, name, at_ms)));
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
                let name = SpanName::MayIt(format!("{} {}", asked.tool, asked.action.target));
                let mut span = Span::new(SpanKind::Question, name, at_ms);
                span.outcome = SpanOutcome::Open;
                self.tools.insert(asked.question.to_string(), span);
            }
            Event::QuestionAnswered(answered) => {
                let answer = &answered.answer;
                self.asked.insert(answered.question, answer.by.clone());
                if let Some(mut span) = self.tools.remove(&answered.question.to_string()) {
                    span.end(at_ms, SpanOutcome::Answer { word: AnswerWord::of(answer), always: answer.always });
                    (span.failed, span.by) = (!answer.allow, Some(SpanAuthor::Decided(answer.by.clone())));
                    self.put(span);
                }
            }
            Event::ToolIntent(intent) => self.begin_tool(at_ms, intent),
            Event::ToolDone(done) => self.end_tool(at_ms, done),
            Event::TurnEnded(ended) => {
                if let Some((_, turn)) = self.turns.last_mut() {
                    turn.end(at_ms, SpanOutcome::Turn(ended.end.clone()));
                    turn.failed = !matches!(ended.end, TurnOutcome::Answered | TurnOutcome::Proposed);
                }
            }
            _ => {}
        }
    }

    fn compaction(&mut self, at_ms: i64, event: &Event) {
        let (name, outcome) = match event {
            Event::Compacted(compacted) => {
                let ((before, after), (from, to)) = (compacted.messages, compacted.tokens);
                (SpanName::Messages { before, after }, SpanOutcome::Tokens { from, to })
            }
            Event::CompactionFailed(failed) => {
                (SpanName::NoSummary, SpanOutcome::Failed { why: preview(&failed.detail), again: false })
            }
            _ => (SpanName::TakenBack, SpanOutcome::Ok),
        };
        let mut span = Span::new(SpanKind::Compaction, name, at_ms);
        span.end(at_ms, outcome);
        span.failed = matches!(event, Event::CompactionFailed(_));
        self.put(span);
    }

    fn begin_tool(&mut self, at_ms: i64, intent: &ToolIntent) {
        let mut span =
            Span::new(SpanKind::Tool, SpanName::call(&intent.key, &intent.tool, &intent.action.target), at_ms);
        span.by = Some(match &intent.approval {
            Approval::Rule(rule) => {
                let rules = if intent.rules.is_empty() { std::slice::from_ref(rule) } else { &intent.rules };
                let bases = intent.bases.iter().cloned().chain(std::iter::repeat(Basis::Rule));
                SpanAuthor::Rules(
                    rules.iter().cloned().zip(bases).map(|(text, basis)| RuleText { text, basis }).collect(),
                )
            }
            Approval::Question(question) => {
                self.asked.get(question).cloned().map_or(SpanAuthor::APerson, SpanAuthor::Decided)
            }
        });
        self.tools.insert(intent.key.clone(), span);
    }

    fn end_tool(&mut self, at_ms: i64, done: &ToolDone) {
        let tool = self.names.remove(&done.key).unwrap_or_default();
        let (tool, target) = done.refused.as_ref().map_or((tool.as_str(), ""), |of| (&of.tool, &of.target));
        let unbegun = || Span::new(SpanKind::Tool, SpanName::call(&done.key, tool, target), at_ms);
        let mut span = self.tools.remove(&done.key).unwrap_or_else(unbegun);
        span.end(at_ms, SpanOutcome::Tool(ToolEnd::of(done)));
        if done.ms > 0 {
            span.ms = Some(done.ms);
        }
        span.failed = done.is_error;
        let refused = |refusal: &Refusal| match &refusal.by {
            DecidedBy::Rule(text) => {
                SpanAuthor::Rules(vec![RuleText { text: text.clone(), basis: refusal.basis.clone() }])
            }
            by => SpanAuthor::Decided(by.clone()),
        };
        span.by = done.refused.as_deref().map(refused).or(span.by);
        self.put(span);
    }

    fn end_call(&mut self, at_ms: i64, ended: &LlmEnded) {
        let Some((intent, mut span)) = self.calling.take() else { return };
        if let Some(bill) = ended.bill(&intent) {
            (span.usage, span.nano) = (bill.usage, bill.nano);
        }
        let ms = ended.ms;
        let outcome = match &ended.outcome {
            LlmOutcome::Done(_) => SpanOutcome::Ok,
            LlmOutcome::Failed { detail, retry_at_ms, .. } => {
                SpanOutcome::Failed { why: preview(detail), again: retry_at_ms.is_some() }
            }
            LlmOutcome::Cancelled { .. } => SpanOutcome::Stopped,
            LlmOutcome::Lost => SpanOutcome::Lost,
        };
        span.end(at_ms, outcome);
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
                let mut span = Span::new(SpanKind::Question, SpanName::PlanQuestion(asked.about.clone()), at_ms);
                span.outcome = SpanOutcome::Open;
                self.asked.insert(asked.question, span);
            }
            Event::PlanAnswered(answered) => {
                if let Some(mut span) = self.asked.remove(&answered.question) {
                    span.end(at_ms, SpanOutcome::Answer { word: AnswerWord::of_plan(&answered.say), always: false });
                    span.failed = matches!(answered.say, PlanDecision::Reject(_));
                    span.by = Some(SpanAuthor::Decided(answered.by.clone()));
                    self.span.add(span);
                }
            }
            Event::TaskAssigned(assigned) => {
                let name = SpanName::Attempt { number: assigned.attempt, member: assigned.member.clone() };
                let attempt = AttemptSpan {
                    span: Span::new(SpanKind::Attempt, name, at_ms),
                    agent: assigned.agent,
                    member: assigned.member.clone(),
                    number: assigned.attempt,
                };
                self.task(&assigned.task, at_ms).attempts.push(attempt);
            }
            Event::TaskDone(done) => {
                let (proof, cached) = (done.result.proof, done.result.cached.clone());
                self.close(&done.task, at_ms, &SpanOutcome::Done { proof, cached }, false);
            }
            Event::TaskFailed(failed) => {
                let (why, kind) = (preview(&failed.error), failed.kind());
                self.close(&failed.task, at_ms, &SpanOutcome::TaskFailed { why, kind }, true);
            }
            Event::TaskSkipped(skipped) => {
                self.close(&skipped.task, at_ms, &SpanOutcome::Skipped(preview(&skipped.detail)), false);
            }
            Event::TaskCancelled(cancelled) => {
                let (why, kind) = (preview(&cancelled.detail), cancelled.kind.clone());
                self.close(&cancelled.task, at_ms, &SpanOutcome::GivenUp { why, kind }, true);
            }
            Event::PlanStopped(stopped) if stopped.task.is_none() => {
                self.span.by = Some(SpanAuthor::Stopped(stopped.by.clone()));
            }
            Event::PlanEnded(ended) => {
                self.span.end(at_ms, SpanOutcome::Plan(ended.end, ended.tally));
                self.span.failed = !matches!(ended.end, PlanEnd::Done | PlanEnd::Replaced);
            }
            _ => {}
        }
    }

    fn task(&mut self, name: &str, at_ms: i64) -> &mut TaskSpan {
        let known = self.tasks.iter().position(|task| task.span.name.is_text(name));
        let index = known.unwrap_or(self.tasks.len());
        if known.is_none() {
            self.tasks.push(TaskSpan { span: Span::new(SpanKind::Task, name, at_ms), attempts: Vec::new() });
        }
        #[expect(clippy::indexing_slicing, reason = "the position of what was found, or was just put there")]
        &mut self.tasks[index]
    }

    fn close(&mut self, name: &str, at_ms: i64, outcome: &SpanOutcome, failed: bool) {
        let task = self.task(name, at_ms);
        task.span.end(at_ms, outcome.clone());
        task.span.failed = failed;
        if let Some(attempt) = task.attempts.last_mut().filter(|attempt| attempt.span.ms.is_none()) {
            attempt.span.end(at_ms, outcome.clone());
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
