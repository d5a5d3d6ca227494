//! Events and deltas to what is shown, in the order of the journal.
//!
//! The events are the truth and the deltas a preview of it: text that came as deltas is compared with the final
//! answer, and missing text is shown then. So a session replayed from its journal looks like one that was watched. It
//! also knows what is going on right now. It neither draws nor sends anything.

use std::sync::Arc;

use max_team_core::agent::Settings;
use max_team_core::chat::{Answer, ChatRole, Part};
use max_team_core::cost::Spending;
use max_team_core::delegation::tool_filter::SPAWN_TEAMMATE;
use max_team_core::event::{Event, LlmEnded, LlmIntent, LlmOutcome, ToolDone, TurnEnded};
use max_team_core::ledger::Charge;
use max_team_core::mention;
use max_team_core::policy::{Action, ActionKind};
use max_team_core::recovery::Failure;
use max_team_core::teammate::render::unwrap_tail;
use max_team_core::turn::InheritedConversation;
use max_team_runtime::skills::SKILL;
use max_team_runtime::{Delta, is_go_on};
use serde_json::Value;

use super::rows::{Row, ToolRow};
use super::stream_preview::StreamPreview;
use max_team_workspace::format::since;
use max_team_workspace::i18n::Lang;

/// Characters of a tool's input that are shown as its target until the action is known.
const BRIEF_CHARS: usize = 60;
/// Turns of another session's past that are shown.
const PAST_TURNS_MAX: usize = 10;

/// What comes out: a piece of the model's words, their end, or a row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item {
    Text(String),
    TextEnd,
    Row(Row),
    /// A row that is worth printing only where nothing else shows it live.
    Minor(Row),
}

/// What is going on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Activity {
    Idle,
    /// The model has been called and has not said a word.
    Waiting,
    Thinking,
    Writing,
    /// The model writes a call of this tool.
    Preparing(String),
    /// These tools run.
    Running(Vec<String>),
    Retrying {
        at_ms: i64,
    },
    /// The provider's pace is kept.
    Paced {
        until_ms: i64,
    },
    Stopping,
}

#[derive(Debug)]
pub(super) struct Transcript {
    lang: Lang,
    settings: Settings,
    turn: Option<Turn>,
    /// The last model call of which a piece came before its event; 0: none.
    missed: u32,
}

#[derive(Debug)]
struct Turn {
    started_at_ms: i64,
    /// The cost of agents that worked for this turn.
    called: Spending,
    call: Option<StreamPreview>,
    tools: Vec<Tool>,
    retry_at_ms: Option<i64>,
    /// Failures of the call in a row, and the last of them.
    failed: u32,
    failure: Option<Failure>,
    fallback: bool,
    stopping: bool,
    /// Whether the model's words were shown.
    spoke: bool,
}

/// A tool call that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tool {
    key: String,
    pub(super) name: String,
    pub(super) target: String,
    preview: String,
    input: Option<Arc<Value>>,
    /// Whether it runs a command.
    pub(super) is_command: bool,
    /// Whether it asks the user something.
    asks: bool,
    /// The name of the teammate that it starts.
    starts: Option<String>,
    /// Whether it is asked what becomes of what was done for it in a copy.
    merges: bool,
    /// Set while it runs.
    pub(super) running_since_ms: Option<i64>,
    /// How far it is, by its own account; of a command, the last lines that it has printed.
    pub(super) progress: String,
}

impl Transcript {
    pub(super) fn new(lang: Lang, settings: Settings) -> Self {
        Self { lang, settings, turn: None, missed: 0 }
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(super) fn is_busy(&self) -> bool {
        self.turn.is_some()
    }

    pub(super) fn activity(&self) -> Activity {
        let Some(turn) = &self.turn else { return Activity::Idle };
        if turn.stopping {
            return Activity::Stopping;
        }
        if let Some(at_ms) = turn.retry_at_ms {
            return Activity::Retrying { at_ms };
        }
        if let Some(call) = &turn.call {
            if let Some(until_ms) = call.paced_until_ms {
                return Activity::Paced { until_ms };
            }
            return match &call.tool {
                Some(tool) => Activity::Preparing(tool.clone()),
                None if call.in_text => Activity::Writing,
                None if call.thinking_since_ms.is_some() => Activity::Thinking,
                None => Activity::Waiting,
            };
        }
        let mut names: Vec<String> = self.running().map(|tool| tool.name.clone()).collect();
        names.dedup();
        if names.is_empty() { Activity::Waiting } else { Activity::Running(names) }
    }

    /// The tools that run.
    pub(super) fn running(&self) -> impl Iterator<Item = &Tool> {
        self.turn.iter().flat_map(|turn| &turn.tools).filter(|tool| tool.running_since_ms.is_some())
    }

    /// The end of what the model is thinking, on one line.
    pub(super) fn thought(&self) -> Option<&str> {
        let call = self.turn.as_ref()?.call.as_ref()?;
        call.thinking_since_ms?;
        call.thought.lines().rev().find(|line| !line.trim().is_empty())
    }

    pub(super) fn elapsed_ms(&self, now_ms: i64) -> u64 {
        self.turn.as_ref().map_or(0, |turn| since(turn.started_at_ms, now_ms))
    }

    /// The cost of agents that have worked for the turn.
    pub(super) fn called_spending(&self) -> Spending {
        self.turn.as_ref().map_or_else(Spending::default, |turn| turn.called)
    }

    /// Adds the cost of an agent that worked for the turn.
    pub(super) fn count(&mut self, charges: &[Charge]) {
        if let Some(turn) = &mut self.turn {
            turn.called += Spending::sum_of(charges);
        }
    }

    /// The agent is in the middle of a turn whose start was not received.
    pub(super) fn join(&mut self, at_ms: i64) {
        self.turn = Some(Turn::new(at_ms));
    }

    /// The agent has ended in the middle of a turn.
    pub(super) fn stop(&mut self) {
        self.turn = None;
    }

    /// A piece of the model call of this number. If one comes before the event of its call, all pieces of the call are left
    /// out, and its end shows the whole answer.
    pub(super) fn delta(&mut self, number: u32, delta: &Delta, now_ms: i64) -> Vec<Item> {
        let mut out = Vec::new();
        if let Delta::Progress { key, words } = delta {
            let tools = self.turn.iter_mut().flat_map(|turn| &mut turn.tools);
            tools.filter(|tool| tool.key == *key).for_each(|tool| tool.progress.clone_from(words));
            return out;
        }
        let open = self.turn.as_ref().and_then(|turn| turn.call.as_ref()).map(|call| call.number);
        if open != Some(number) {
            self.missed = self.missed.max(number);
        }
        if self.missed == number {
            return out;
        }
        let Some(turn) = &mut self.turn else { return out };
        let Some(call) = &mut turn.call else { return out };
        call.paced_until_ms = None;
        match delta {
            Delta::Text(text) => {
                call.text(text, now_ms, &mut out);
                turn.spoke = true;
            }
            Delta::Thinking(text) => call.think(text, now_ms, &mut out),
            Delta::Tool(name) => {
                call.end_thought(now_ms, &mut out);
                call.end_text(&mut out);
                call.tool = Some(name.clone());
            }
            Delta::Waiting(wait) => {
                let wait_ms = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
                call.paced_until_ms = Some(now_ms.saturating_add(wait_ms));
            }
            Delta::Usage(_) | Delta::Progress { .. } => {}
        }
        out
    }

    pub(super) fn event(&mut self, at_ms: i64, event: &Event) -> Vec<Item> {
        let mut out = Vec::new();
        match event {
            Event::Configured(configured) => self.settings = Settings::clone(&configured.settings),
            Event::TurnStarted(started) => {
                if started.envelope.is_programs() {
                    out.push(self.news());
                } else {
                    out.extend(self.said(&started.input));
                }
                let beside =
                    started.rewound.iter().map(|told| Row::Note(format!("⟲ {}", self.lang.told_rewound(told))));
                out.extend(beside.map(Item::Row));
                self.turn = Some(Turn::new(at_ms));
            }
            Event::Forked(forked) => out.extend(self.past(&forked.past)),
            Event::Steered(steered) => out.extend(self.said(&steered.input)),
            Event::CompactionAsked(_) => self.turn = Some(Turn::new(at_ms)),
            Event::Compacted(compacted) => {
                let (before, after) = compacted.messages;
                out.push(Item::Row(Row::Note(self.lang.compacted(before, after))));
            }
            Event::CompactionFailed(failed) => {
                out.push(Item::Row(Row::Note(self.lang.not_compacted(&failed.detail))));
            }
            Event::Uncompacted(_) => out.push(Item::Row(Row::Note(self.lang.uncompacted().to_owned()))),
            Event::TurnEnded(ended) => self.ended(ended, at_ms, &mut out),
            Event::LlmIntent(intent) => self.called(intent, &mut out),
            Event::LlmEnded(ended) => self.answered(ended, at_ms, &mut out),
            Event::ToolIntent(intent) => {
                if let Some(tool) = self.tool(&intent.key, &intent.tool, &intent.action) {
                    tool.running_since_ms = Some(at_ms);
                }
            }
            Event::QuestionAsked(asked) => {
                self.tool(&asked.key, &asked.tool, &asked.action);
            }
            Event::ToolDone(done) => out.extend(self.tool_done(done)),
            Event::Interrupted(_) => {
                if let Some(turn) = &mut self.turn {
                    turn.stopping = true;
                }
            }
            _ => {}
        }
        out
    }

    fn news(&self) -> Item {
        Item::Row(Row::Note(format!("✉ {}", self.lang.news())))
    }

    /// What the user said, which is the first part. What the team wrote was told behind it, and the skills that it asks for are
    /// parts of their own: neither is the user's.
    fn said(&self, input: &[Part]) -> Vec<Item> {
        let (first, beside) = input.split_at(input.len().min(1));
        let told = text_of(first);
        let (words, has_news) = unwrap_tail(&told);
        let has_news = has_news || beside.iter().any(|part| unwrap_tail(&text_of(std::slice::from_ref(part))).1);
        // The text that the program sends to resume is a paragraph of the message; it is shown as a note.
        let (own, words): (Vec<&str>, Vec<&str>) = words.split("\n\n").partition(|words| is_go_on(words));
        let words = words.join("\n\n");
        let goes_on = || Item::Row(Row::Note(self.lang.goes_on().to_owned()));
        let said = match words.is_empty() {
            true => (!own.is_empty()).then(goes_on),
            false => Some(Item::Row(Row::Said(words))),
        };
        let files = mention::labels(beside);
        let files = (!files.is_empty()).then_some(Item::Row(Row::Files(files)));
        said.into_iter().chain(files).chain(has_news.then(|| self.news())).collect()
    }

    /// What was said before the session began to go on from it: the last of it.
    fn past(&self, past: &InheritedConversation) -> Vec<Item> {
        let shown = past.turns.len().saturating_sub(PAST_TURNS_MAX);
        let from = past.turns.get(shown).copied().unwrap_or(past.history.len());
        let mut items = Vec::new();
        if shown > 0 {
            items.push(Item::Row(Row::Note(format!("… {}", self.lang.earlier_left_out()))));
        }
        for (index, message) in past.history.iter().enumerate().skip(from) {
            let text = text_of(&message.parts);
            match message.role {
                ChatRole::User if past.turns.contains(&index) => {
                    // What stands beside the words is the program's, and not what the user said.
                    items.extend(self.said(message.parts.get(..1).unwrap_or_default()));
                }
                ChatRole::Assistant if !text.is_empty() => items.extend([Item::Text(text), Item::TextEnd]),
                _ => {}
            }
        }
        items.push(Item::Row(Row::Note(self.lang.fork_goes_on().to_owned())));
        items
    }

    fn called(&mut self, intent: &LlmIntent, out: &mut Vec<Item>) {
        let Self { turn: Some(turn), lang, .. } = self else { return };
        turn.retry_at_ms = None;
        let failure = turn.failure.take();
        if intent.fallback && !turn.fallback {
            out.push(Item::Row(Row::Fallback { failure, model: intent.model.name.clone() }));
        } else if failure == Some(Failure::ContextOverflow) && intent.summary.is_none() {
            out.push(Item::Row(Row::Note(lang.shrunk().to_owned())));
        }
        turn.fallback = intent.fallback;
        turn.call = Some(StreamPreview::new(intent.call));
    }

    fn answered(&mut self, ended: &LlmEnded, at_ms: i64, out: &mut Vec<Item>) {
        let Self { turn: Some(turn), settings, lang, .. } = self else { return };
        let Some(mut call) = turn.call.take() else { return };
        match &ended.outcome {
            // What it says is for the model, not for the user.
            LlmOutcome::Done(_) | LlmOutcome::Cancelled { .. } if ended.summary => turn.failed = 0,
            LlmOutcome::Done(answer) => {
                call.end_thought(at_ms, out);
                call.settle(answer, *lang, out);
                turn.failed = 0;
                turn.tools = tools_of(ended.call, answer);
                turn.spoke |= answer.message.parts.iter().any(|part| matches!(part, Part::Text { .. }));
            }
            LlmOutcome::Cancelled { partial, .. } => {
                call.end_thought(at_ms, out);
                call.settle_text(partial, *lang, out);
                turn.spoke |= !partial.is_empty();
            }
            LlmOutcome::Failed { failure, retry_at_ms, .. } => {
                call.break_off(*lang, out);
                turn.failure = Some(failure.clone());
                turn.retry_at_ms = *retry_at_ms;
                turn.failed += 1;
                if let Some(retry_at_ms) = retry_at_ms {
                    let wait_ms = since(at_ms, *retry_at_ms);
                    let (nth, of) = (turn.failed, settings.retries_max);
                    out.push(Item::Row(Row::Retry { failure: failure.clone(), wait_ms, nth, of }));
                }
            }
            LlmOutcome::Lost => {
                call.break_off(*lang, out);
                // One that was stopped meanwhile is not made again.
                if !turn.stopping {
                    out.push(Item::Row(Row::Note(lang.lost_call().to_owned())));
                }
            }
        }
    }

    fn tool(&mut self, key: &str, name: &str, action: &Action) -> Option<&mut Tool> {
        let tools = &mut self.turn.as_mut()?.tools;
        let index = tools.iter().position(|tool| tool.key == key).unwrap_or_else(|| {
            tools.push(Tool::new(key.to_owned(), name.to_owned(), String::new()));
            tools.len() - 1
        });
        let tool = tools.get_mut(index)?;
        // A call that asks while it runs is still the same call.
        if action.asking_call().is_some() && !tool.target.is_empty() {
            return Some(tool);
        }
        // A call of a skill shows the skill's name; the agent that runs it has a row of its own.
        let skill = action.parameters.iter().find(|(parameter, _)| name == SKILL && parameter == "name");
        tool.target.clone_from(skill.map_or(&action.target, |(_, skill)| skill));
        if let Some(name) = &tool.starts {
            // Rules speak of its type; people, of its name.
            tool.target = format!("{name} ({})", action.target);
        }
        tool.is_command = action.kind == ActionKind::Execute;
        tool.asks = action.kind == ActionKind::Ask && action.asking_call().is_none();
        tool.merges = action.kind == ActionKind::Merge;
        // Only a change is told by its diff; what a question or a command says is its target.
        tool.preview = if matches!(action.kind, ActionKind::Write | ActionKind::WriteOwn) {
            action.preview.clone()
        } else {
            String::new()
        };
        Some(tool)
    }

    fn tool_done(&mut self, done: &ToolDone) -> Option<Item> {
        let tools = &mut self.turn.as_mut()?.tools;
        let index = tools.iter().position(|tool| tool.key == done.key)?;
        let tool = tools.remove(index);
        let images = done.content.iter().filter(|part| matches!(part, Part::Image { .. })).count();
        Some(Item::Row(Row::Tool(ToolRow {
            tool: tool.name,
            target: tool.target,
            ending: done.ending,
            is_error: done.is_error,
            result: text_of(&done.content),
            images,
            ms: done.ms,
            preview: tool.preview,
            input: tool.input,
            is_command: tool.is_command,
            told: tool.asks,
            settled: tool.merges,
        })))
    }

    fn ended(&mut self, ended: &TurnEnded, at_ms: i64, out: &mut Vec<Item>) {
        let Some(turn) = self.turn.take() else { return };
        // A call that was dropped without an end (it cannot be, but what was shown must not hang).
        if turn.call.is_some_and(|call| call.in_text) {
            out.push(Item::TextEnd);
        }
        if !turn.spoke && !ended.text.is_empty() {
            out.push(Item::Text(ended.text.clone()));
            out.push(Item::TextEnd);
        }
        if self.lang.end(&ended.end).is_some() {
            out.push(Item::Row(Row::Ended(ended.end.clone())));
        }
        out.extend(self.lang.budget_unknown(ended).map(|words| Item::Row(Row::Note(words))));
        let mut spent = Spending::sum_of(&ended.charges);
        spent += turn.called;
        if spent.tokens() > 0 {
            out.push(Item::Row(Row::Footer { spent, ms: since(turn.started_at_ms, at_ms) }));
        }
    }
}

impl Turn {
    fn new(started_at_ms: i64) -> Self {
        Self {
            started_at_ms,
            called: Spending::default(),
            call: None,
            tools: Vec::new(),
            retry_at_ms: None,
            failed: 0,
            failure: None,
            fallback: false,
            stopping: false,
            spoke: false,
        }
    }
}

impl Tool {
    /// How far it is, in a line.
    pub(super) fn progress_line(&self) -> &str {
        self.progress.lines().next_back().unwrap_or_default()
    }

    fn new(key: String, name: String, target: String) -> Self {
        Self {
            key,
            name,
            target,
            preview: String::new(),
            input: None,
            is_command: false,
            asks: false,
            starts: None,
            merges: false,
            running_since_ms: None,
            progress: String::new(),
        }
    }
}

/// The calls of an answer, under the keys that their events will carry.
fn tools_of(call: u32, answer: &Answer) -> Vec<Tool> {
    let named = |(index, (_, name, input)): (usize, (&str, &str, &Arc<Value>))| {
        let starts = input.get("name").and_then(Value::as_str).filter(|_| name == SPAWN_TEAMMATE).map(str::to_owned);
        Tool {
            starts,
            input: Some(Arc::clone(input)),
            ..Tool::new(format!("{call}.{index}"), name.to_owned(), brief(input))
        }
    };
    answer.message.tool_uses().enumerate().map(named).collect()
}

/// What a call is about, as far as its input tells: the first text in it.
fn brief(input: &Value) -> String {
    let text = input.as_object().and_then(|input| input.values().find_map(Value::as_str)).unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(BRIEF_CHARS).collect()
}

pub(super) fn text_of(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
