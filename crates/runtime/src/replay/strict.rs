//! Compares a run with the code, the prompts, the definitions, the tools and the rules of today.
//!
//! Every agent of the run is configured as it would be now, and gets its recorded inputs in the same order: messages,
//! answers of models, results of tools, answers of people. Before each recorded call its machine decides again what to
//! send. So the parts of a request (system text, tools, settings, the window of the history) are made by the real
//! code, one agent at a time and in a fixed order; and nothing is called or run. Facts from memory, notes, the date
//! and the place are those of the run: they are no part of a team.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use max_team_core::agent::{Definition, Settings};
use max_team_core::chat::Part;
use max_team_core::delegation::cache;
use max_team_core::delegation::tool_filter::Caller;
use max_team_core::event::{AgentStarted, Approval, Event, LlmIntent};
use max_team_core::hash::Hash;
use max_team_core::id::{AgentId, EnvelopeId};
use max_team_core::limits::CALL_DEPTH_MAX;
use max_team_core::message::Assignment;
use max_team_core::policy::{self, Action, Rules, Verdict};
use max_team_core::secret::{redact, redact_value};
use max_team_core::turn::{STRUCTURED_OUTPUT, Turn, TurnInput};
use max_team_journal::Fence;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{Tape, again};
use crate::active_session::{ActiveSession, fold_plan, under};
use crate::agent::{EXPERT, Frame, UNATTENDED, UNATTENDED_MEMBER};
use crate::error::RuntimeError;
use crate::handle::{AgentSpec, OpenOptions, TeamHandle};
use crate::runtime::Runtime;
use crate::team_tools::DISPATCH_TASK;
use crate::{memory, session};

/// Stands for the folder of the run.
const PROJECT: &str = "<project>";
/// Lines about place and date, which belong to the run.
const CIRCUMSTANCES: [&str; 3] = ["Working directory: ", "Platform: ", "Today: "];
/// Sections about memory and files, which belong to the run, too; the text after them begins with the last of these.
const REMEMBERED: [&str; 5] = [
    "# How you speak\n",
    "# What is known about the user\n",
    "# Your notes\n",
    "# Project files\n",
    "# Surroundings\n",
];

/// Callers above an agent: as many as nested calls allow, and one for a skill that the deepest of them has carried
/// out.
const CALLERS_MAX: u32 = CALL_DEPTH_MAX + 1;

/// The parts of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallPart {
    /// The agent's definition.
    Definition,
    /// The system text.
    Instructions,
    /// The tools' schemas.
    Tools,
    Settings,
    /// The messages in it, or whether it is made at all.
    Messages,
    /// Whether the tool calls before it would be allowed.
    Rules,
}

impl CallPart {
    pub fn name(self) -> &'static str {
        match self {
            Self::Definition => "definition",
            Self::Instructions => "instructions",
            Self::Tools => "tools",
            Self::Settings => "settings",
            Self::Messages => "messages",
            Self::Rules => "rules",
        }
    }
}

/// A difference between the recording and today.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ReplayDifference {
    /// The part of the call that changed.
    pub piece: CallPart,
    /// The tool or setting that changed; empty if the part has only one element.
    pub name: String,
    /// As it was recorded.
    pub then: String,
    /// As it is today.
    pub today: String,
    /// For a change of rules, the verdicts behind `then` and `today`, so that frontends can translate them.
    #[serde(skip)]
    pub judged: Option<VerdictPair>,
}

/// A recorded verdict and today's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct VerdictPair {
    /// The recorded verdict.
    pub then: Verdict,
    /// The verdict of today's rules.
    pub today: Verdict,
    /// The rule that applies today.
    pub rule: String,
}

impl ReplayDifference {
    pub(super) fn of(piece: CallPart, name: String, then: String, today: String) -> Self {
        Self { piece, name, then, today, judged: None }
    }
}

/// A recorded call of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordedCall {
    /// Name of the agent that made the call.
    pub agent: String,
    /// Its number among the calls of its agent, from 1.
    pub number: u32,
    /// Number of the attempt.
    pub attempt: u32,
    /// Its number in the journal.
    pub seq: u64,
    pub changes: Vec<ReplayDifference>,
}

/// Today's team, for a recorded run.
struct Today<'a> {
    runtime: &'a Runtime,
    tape: &'a Tape,
    open: &'a OpenOptions,
    active: ActiveSession,
    /// All agents of the run, as they were started.
    began: HashMap<AgentId, AgentStarted>,
    /// The assignments that plans would write today, by message id.
    tasks: HashMap<EnvelopeId, String>,
    /// The tools that calls were made with, by caller and key.
    tools: HashMap<(AgentId, String), String>,
}

impl Tape {
    /// Compares the run with the agents as `root` configures them today: every recorded call, with what would differ. `team`
    /// must have been built over the run's replica.
    pub fn against(
        &self,
        team: &TeamHandle,
        open: &OpenOptions,
        root: &Path,
    ) -> Result<Vec<RecordedCall>, RuntimeError> {
        let (runtime, tape) = (&*team.runtime, self);
        let shared = &runtime.shared;
        let fence = Fence { resource: session::stream(tape.session), worker: shared.worker.id(), epoch: 0 };
        let cap = crate::plan::cap(&open.settings);
        let (root, team) = (root.to_path_buf(), open.team.clone());
        let active = ActiveSession::new(Arc::clone(shared), tape.session, tape.lead, fence, root, team, cap);
        let (mut began, mut tools, mut order) = (HashMap::new(), HashMap::new(), Vec::new());
        for entry in &tape.entries {
            let Some(agent) = entry.stream.strip_prefix("agent/").and_then(|id| id.parse().ok()) else { continue };
            match crate::rows::event_of(entry)? {
                Event::AgentStarted(started) => {
                    order.push(agent);
                    began.insert(agent, started);
                }
                Event::ToolIntent(intent) => drop(tools.insert((agent, intent.key), intent.tool)),
                _ => {}
            }
        }
        let tasks = again::tasks(&active, tape)?;
        let today = Today { runtime, tape, open, active, began, tasks, tools };
        let mut calls = Vec::new();
        for agent in order {
            today.calls(agent, &mut calls)?;
        }
        calls.sort_by_key(|call| call.seq);
        Ok(calls)
    }
}

impl Today<'_> {
    /// Every call of an agent.
    fn calls(&self, agent: AgentId, calls: &mut Vec<RecordedCall>) -> Result<(), RuntimeError> {
        let Some(started) = self.began.get(&agent) else { return Ok(()) };
        let teammate = started.assignment.as_ref().and_then(|given| given.life.teammate());
        let name = teammate.map_or(&started.definition.name, |teammate| &teammate.name);
        let task = started.assignment.as_ref().filter(|given| given.plan.is_some()).map(|given| &given.task);
        let name = task.map_or_else(|| name.clone(), |task| format!("{name}/{task}"));
        let before = calls.len();
        let seated = self.seated(agent, 0)?;
        let (mut turn, mut first, mut led_to) = (Turn::new(), None, Vec::new());
        let events = self.tape.events(agent)?;
        for (index, (seq, _, event)) in events.iter().enumerate() {
            let recorded = turn.settings().map(|settings| value(settings));
            let settings = match (&seated, recorded) {
                (Some((_, frame)), Some(now)) => {
                    let first = first.get_or_insert_with(|| now.clone()).clone();
                    settings_today(frame.settings(), &first, &now)
                }
                (_, now) => now.unwrap_or_default(),
            };
            if let Some((_, frame)) = &seated
                && matches!(event, Event::LlmEnded(_) | Event::QuestionAnswered(_))
            {
                let today = again::under(&turn, typed(&settings));
                let next = events.get(index + 1).map(|(_, _, next)| next);
                led_to.extend(again::followed(&today, frame, event, next));
            }
            match event {
                Event::TurnStarted(started) => {
                    led_to.extend(again::begun(&started.input, self.tasks.get(&started.envelope)));
                }
                Event::LlmIntent(intent) => {
                    let mut changes = std::mem::take(&mut led_to);
                    match &seated {
                        Some((_, frame)) => {
                            let mut frame = frame.clone();
                            frame.reveal_from(turn.history());
                            changes.extend(self.changes(&turn, intent, &frame, &settings)?);
                        }
                        None => changes.push(nobody(&started.definition)),
                    }
                    let (number, attempt) = (intent.call, intent.attempt);
                    calls.push(RecordedCall { agent: name.clone(), number, attempt, seq: *seq, changes });
                }
                Event::ToolIntent(intent) if matches!(intent.approval, Approval::Rule(_)) => {
                    led_to.extend(judged(&turn, &settings, &intent.tool, &intent.action, Verdict::Allow));
                }
                Event::QuestionAsked(asked) => {
                    led_to.extend(judged(&turn, &settings, &asked.tool, &asked.action, Verdict::Ask));
                }
                _ => {}
            }
            turn.apply(event);
        }
        if let Some(call) = calls.iter_mut().skip(before).last() {
            // No call followed, but today's machine would have decided differently.
            call.changes.extend(led_to);
        }
        Ok(())
    }

    /// An agent as it would be started today; `None` if no definition has its name. `above` counts the calls between
    /// it and the agent that was asked about: a damaged file may say that two agents called each other.
    fn seated(&self, agent: AgentId, above: u32) -> Result<Option<(Arc<Definition>, Frame)>, RuntimeError> {
        if above > CALLERS_MAX {
            return Ok(None);
        }
        let Some(started) = self.began.get(&agent) else { return Ok(None) };
        if agent == self.tape.lead {
            return self.lead(started).map(Some);
        }
        let Some(teammate) = self.teammate(agent, started, above)? else { return Ok(None) };
        let mut settings = teammate.settings.clone();
        settings.permissions.copy.clear();
        let definition = teammate.definition;
        let depth = started.assignment.as_ref().map_or(0, |given| given.depth);
        let frame = self.active.frame_for(&definition, &settings.into(), depth)?;
        Ok(Some((definition, frame)))
    }

    fn lead(&self, started: &AgentStarted) -> Result<(Arc<Definition>, Frame), RuntimeError> {
        let given = &self.open.definition;
        let is_same = (&given.name, given.place) == (&started.definition.name, started.definition.place);
        let definition = if is_same { Arc::new(given.clone()) } else { Arc::clone(&started.definition) };
        let coordinates = self.open.team.as_ref().is_some_and(|team| team.coordinator);
        // The schema of the answer is part of the frame.
        let schema = self.schema()?;
        let settings = Settings { structured: schema.is_some(), ..self.open.settings.clone() };
        self.runtime.lead_frame(&self.active, None, definition, settings, schema, coordinates)
    }

    /// The schema of the lead's answer.
    fn schema(&self) -> Result<Option<Value>, RuntimeError> {
        let events = self.tape.events(self.tape.lead)?;
        let tools = events.iter().find_map(|(_, _, event)| match event {
            Event::LlmIntent(intent) if intent.summary.is_none() => Some(intent.request.tools),
            _ => None,
        });
        let Some(tools) = tools else { return Ok(None) };
        let all: Vec<Value> = self.parsed(&tools)?.unwrap_or_default();
        let tool = all.into_iter().find(|tool| tool.get("name").and_then(Value::as_str) == Some(STRUCTURED_OUTPUT));
        Ok(tool.and_then(|tool| tool.get("schema").cloned()))
    }

    /// A recorded JSON text; `None` if it was not recorded.
    fn parsed<T: DeserializeOwned>(&self, name: &Hash) -> Result<Option<T>, RuntimeError> {
        let Some(text) = self.tape.texts.get(name) else { return Ok(None) };
        let bad = |error: serde_json::Error| RuntimeError::BadText { text: *name, detail: error.to_string() };
        serde_json::from_slice(text).map(Some).map_err(bad)
    }

    /// A member, expert or teammate as it would be started today.
    fn teammate(&self, agent: AgentId, started: &AgentStarted, above: u32) -> Result<Option<AgentSpec>, RuntimeError> {
        let name = &started.definition.name;
        let then = started.settings.as_deref();
        let Some(given) = &started.assignment else { return Ok(None) };
        if memory::is_aside(&started.definition) {
            let remember = self.runtime.shared.remember.as_ref();
            return Ok(remember.and_then(|remember| memory::expert(remember, &self.open.settings)));
        }
        if let Some(plan) = given.plan {
            let (plan, _) = fold_plan(&self.runtime.shared, plan)?;
            let Some(mut teammate) = self.active.agent_spec(name) else { return Ok(None) };
            if let Some(then) = then {
                // The part of an owner's settings that a plan sets.
                teammate.settings.owns.clone_from(&then.owns);
                teammate.settings.checks.clone_from(&then.checks);
                teammate.settings.tests.clone_from(&then.tests);
                (teammate.settings.sandboxed, teammate.settings.unshielded) = (then.sandboxed, then.unshielded);
                (teammate.settings.budget_nano, teammate.settings.budget_tokens) =
                    (then.budget_nano, then.budget_tokens);
                teammate.settings.approved = then.approved;
                if then.approved {
                    teammate.settings.mode = under(plan.approve(), teammate.settings.mode);
                }
            }
            return Ok(Some(teammate));
        }
        let caller = given.reply_to.strip_prefix("agent/").and_then(|id| id.parse::<AgentId>().ok());
        let Some(caller) = caller.filter(|caller| *caller != agent) else { return Ok(None) };
        let Some((own, frame)) = self.seated(caller, above + 1)? else { return Ok(None) };
        let tool = self.tools.get(&(caller, given.task.clone())).map(String::as_str);
        if given.skill.is_some() || started.definition.role == "skill" {
            // The agent for a skill is made from the skill at that moment; no file defines it.
            return Ok(then.map(|then| AgentSpec { definition: started.definition.clone(), settings: then.clone() }));
        }
        let leads = caller == self.tape.lead && self.active.team().is_some_and(|team| !team.members.is_empty());
        let member = self.active.agent_spec(name).filter(|_| leads && given.life.teammate().is_none());
        if member.is_some() || tool == Some(DISPATCH_TASK) {
            return Ok(member
                .map(|teammate| AgentSpec { settings: teammate.settings.bounded_by(frame.settings()), ..teammate }));
        }
        let hands = Caller { own: (!leads).then_some(&*own), deeper: given.depth < self.active.call_depth() };
        let Some(teammate) = self.active.callee(name) else { return Ok(None) };
        let has_arguments = self.tape.events(agent)?.iter().find_map(|(_, _, event)| match event {
            Event::TurnStarted(started) => started.input.first().map(is_arguments),
            _ => None,
        });
        Ok(Some(self.hired(teammate, hands, has_arguments.unwrap_or_default(), &frame, given, then)))
    }

    /// A called agent as this caller would get it.
    fn hired(
        &self,
        teammate: AgentSpec,
        hands: Caller<'_>,
        has_arguments: bool,
        caller: &Frame,
        given: &Assignment,
        then: Option<&Settings>,
    ) -> AgentSpec {
        let mut teammate = self.active.called(teammate, hands);
        if has_arguments && (!teammate.definition.builtin || teammate.definition.cache.is_some()) {
            let prompt = format!("{}\n\n{}", teammate.definition.prompt.trim_end(), EXPERT);
            Arc::make_mut(&mut teammate.definition).prompt = prompt;
        }
        teammate.settings = teammate.settings.bounded_by(caller.settings());
        teammate.settings.structured = teammate.definition.work.output.is_some();
        if let Some(who) = given.life.teammate() {
            let own = Arc::unwrap_or_clone(teammate.definition);
            teammate.definition = ActiveSession::as_teammate(own, who.plans, who.claims).into();
            // The caller chose mode and model, so they are taken from the recording.
            if let Some(then) = then {
                (teammate.settings.mode, teammate.settings.model) = (then.mode, then.model.clone());
            }
        }
        teammate
    }

    /// What would differ in a call.
    fn changes(
        &self,
        turn: &Turn,
        intent: &LlmIntent,
        frame: &Frame,
        settings: &Map<String, Value>,
    ) -> Result<Vec<ReplayDifference>, RuntimeError> {
        let mut changes = Vec::new();
        let copy = turn.settings().map(|settings| settings.permissions.copy.clone()).unwrap_or_default();
        let is_summary = intent.summary.is_some();
        let (instructions, tools) = frame.told(is_summary);
        let lost = || "(it is not in the recording)".to_owned();
        let then = self.then(&intent.request.instructions, &copy);
        let root = self.active.root.display().to_string();
        let today = comparable(&instructions, &root, "");
        if then.as_deref() != Some(&*today) {
            let (piece, name) = (CallPart::Instructions, String::new());
            changes.push(ReplayDifference::of(piece, name, then.unwrap_or_else(lost), today.into_owned()));
        }
        let then = self.parsed(&intent.request.tools)?.unwrap_or_default();
        let today: Vec<Value> = serde_json::from_slice(&tools)
            .map_err(|error| RuntimeError::BadText { text: Hash::of(&tools), detail: error.to_string() })?;
        changes.extend(tools_changed(then, today));
        let then: Map<String, Value> = self.parsed(&intent.request.settings)?.unwrap_or_default();
        for name in names(&then, settings) {
            let was = redact_value(then.get(&name).unwrap_or(&Value::Null));
            let is = redact_value(settings.get(&name).unwrap_or(&Value::Null));
            // Recorded texts still name the paths of then.
            if was == is {
                continue;
            }
            // Each side has its own path replaced: one path may be a prefix of the other.
            let was = comparable(&pretty(&was), &self.tape.cwd, &copy).into_owned();
            let is = comparable(&pretty(&is), &root, &copy).into_owned();
            if was != is {
                changes.push(ReplayDifference::of(CallPart::Settings, name, was, is));
            }
        }
        changes.extend(decided(turn, intent, frame, settings));
        Ok(changes)
    }

    /// A recorded text, prepared for comparison.
    fn then(&self, name: &Hash, copy: &str) -> Option<String> {
        let text = String::from_utf8_lossy(self.tape.texts.get(name)?);
        Some(comparable(&text, &self.tape.cwd, copy).into_owned())
    }
}

/// Whether an expert was asked with arguments.
fn is_arguments(part: &Part) -> bool {
    matches!(part, Part::Text { text } if cache::arguments(text).is_some())
}

/// Whether the machine would make the same call, with the same messages.
fn decided(turn: &Turn, intent: &LlmIntent, frame: &Frame, settings: &Map<String, Value>) -> Option<ReplayDifference> {
    if intent.attempt > 1 {
        return None;
    }
    let today = again::under(turn, typed(settings));
    let decided = today.decide(TurnInput::Woke, &again::now(frame));
    let made = decided.iter().find_map(|event| match event {
        Event::LlmIntent(made) => Some(made),
        _ => None,
    });
    let shape = |intent: &LlmIntent| {
        let (window, upto) = (intent.request.window, intent.request.upto);
        let what = if intent.summary.is_some() { "a summary" } else { "an answer" };
        let tools = if intent.hand_back { ", without tools" } else { "" };
        let elided = if window.elide > window.from {
            format!(", results before {} left out", window.elide)
        } else {
            String::new()
        };
        format!("messages {}..{upto} for {what} of {}{tools}{elided}", window.from, intent.model.name)
    };
    let (then, is) = match (made, decided.first()) {
        (Some(made), _) => (shape(intent), shape(made)),
        (None, Some(other)) => (shape(intent), format!("no call, but `{}`", other.name())),
        // The call follows from an input that is not decided again here.
        (None, None) => return None,
    };
    (then != is).then(|| ReplayDifference::of(CallPart::Messages, String::new(), then, is))
}

/// Whether an action would get the same verdict.
fn judged(
    turn: &Turn,
    settings: &Map<String, Value>,
    tool: &str,
    action: &Action,
    then: Verdict,
) -> Option<ReplayDifference> {
    let settings = typed(settings)?;
    let judgement = policy::judge(&Rules { grants: turn.grants(), ..settings.rules() }, tool, action);
    let name = format!("{tool} {}", action.target).trim_end().to_owned();
    let word = |verdict: Verdict| match verdict {
        Verdict::Allow => "allowed",
        Verdict::Ask => "asked about",
        Verdict::Deny => "refused",
    };
    let today = format!("{}, by {}", word(judgement.verdict), judgement.rule);
    let change = ReplayDifference::of(CallPart::Rules, name, word(then).to_owned(), today);
    let judged = VerdictPair { then, today: judgement.verdict, rule: judgement.rule };
    (judged.then != judged.today).then_some(ReplayDifference { judged: Some(judged), ..change })
}

fn nobody(definition: &Definition) -> ReplayDifference {
    let (then, today) = (format!("{} ({})", definition.name, definition.role), "nobody of that name".to_owned());
    ReplayDifference::of(CallPart::Definition, definition.name.clone(), then, today)
}

/// Today's settings, except for those that changed during the run: these belong to the run.
fn settings_today(today: &Settings, first: &Map<String, Value>, now: &Map<String, Value>) -> Map<String, Value> {
    let mut today = today.clone();
    // The folder belongs to the run.
    let place = |name: &str| now.get("permissions")?.get(name)?.as_str();
    today.permissions.copy = place("copy").unwrap_or_default().to_owned();
    if place("root").is_none_or(str::is_empty) {
        today.permissions.root.clear();
    }
    // The place of the audit file belongs to the machine, and so does the sandbox that it can make.
    let guarded = now.get("permissions").and_then(|permissions| permissions.get("guarded")).cloned();
    today.permissions.guarded = guarded.and_then(|files| serde_json::from_value(files).ok()).unwrap_or_default();
    let is = |name: &str| now.get(name).and_then(Value::as_bool).unwrap_or_default();
    (today.sandboxed, today.unshielded) = (is("sandboxed"), is("unshielded"));
    let mut today = value(&today);
    for name in names(first, now) {
        if first.get(&name) != now.get(&name) {
            match now.get(&name) {
                Some(changed) => drop(today.insert(name, changed.clone())),
                None => drop(today.remove(&name)),
            }
        }
    }
    today
}

fn value(settings: &Settings) -> Map<String, Value> {
    match serde_json::to_value(settings) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

fn typed(settings: &Map<String, Value>) -> Option<Settings> {
    serde_json::from_value(Value::Object(settings.clone())).ok()
}

fn names(one: &Map<String, Value>, other: &Map<String, Value>) -> Vec<String> {
    let mut names: Vec<String> = one.keys().chain(other.keys()).cloned().collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Tools that were added, removed or changed.
fn tools_changed(then: Vec<Value>, today: Vec<Value>) -> Vec<ReplayDifference> {
    let named = |all: Vec<Value>| -> BTreeMap<String, String> {
        let of = |tool: Value| Some((tool.get("name")?.as_str()?.to_owned(), pretty(&redact_value(&tool))));
        all.into_iter().filter_map(of).collect()
    };
    let (then, today) = (named(then), named(today));
    let mut names: Vec<&String> = then.keys().chain(today.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let of = |tools: &BTreeMap<String, String>, name: &String| tools.get(name).cloned().unwrap_or_default();
    let changed = names.into_iter().filter(|name| then.get(*name) != today.get(*name));
    changed.map(|name| ReplayDifference::of(CallPart::Tools, name.clone(), of(&then, name), of(&today, name))).collect()
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// A text without the parts that belong to the run: place, date, memory, secrets.
fn comparable<'t>(text: &'t str, root: &str, copy: &str) -> Cow<'t, str> {
    let mut text = Cow::Borrowed(text);
    let last = REMEMBERED.len() - 1;
    for (index, heading) in REMEMBERED.iter().enumerate().take(last) {
        let Some(from) = text.find(&format!("\n\n{heading}")) else { continue };
        let rest = text.get(from + 2..).unwrap_or_default();
        let next = REMEMBERED.iter().skip(index + 1).filter_map(|next| rest.find(&format!("\n\n{next}"))).min();
        let to = next.map_or(text.len(), |next| from + 2 + next);
        text = Cow::Owned(format!("{}{}", text.get(..from).unwrap_or_default(), text.get(to..).unwrap_or_default()));
    }
    let mut lines = String::with_capacity(text.len());
    for line in text.split_inclusive('\n').filter(|line| ![UNATTENDED, UNATTENDED_MEMBER].contains(line)) {
        match CIRCUMSTANCES.iter().find(|name| line.starts_with(**name)) {
            Some(name) => lines.push_str(&format!("{name}…\n")),
            None => lines.push_str(line),
        }
    }
    // The longer path first, because one may be a prefix of the other.
    let mut places = [copy, root];
    places.sort_by_key(|place| std::cmp::Reverse(place.len()));
    for place in places.into_iter().filter(|place| !place.is_empty()) {
        lines = without(&lines, place);
    }
    Cow::Owned(redact(&lines).into_owned())
}

/// A text without a path, but with longer paths that only contain it.
fn without(text: &str, place: &str) -> String {
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_');
    let (mut kept, mut from) = (String::with_capacity(text.len()), 0);
    for (at, _) in text.match_indices(place) {
        let (before, after) = (text.get(..at).unwrap_or_default(), text.get(at + place.len()..).unwrap_or_default());
        // A full stop ends a sentence, or is part of a name.
        let after = after.strip_prefix('.').unwrap_or(after);
        if !before.ends_with(is_part) && !after.starts_with(is_part) {
            kept.push_str(text.get(from..at).unwrap_or_default());
            kept.push_str(PROJECT);
            from = at + place.len();
        }
    }
    kept.push_str(text.get(from..).unwrap_or_default());
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_from_those_that_begin_like_it() {
        for (text, want) in [
            ("in /x/app", "in <project>"),
            ("in /x/app.", "in <project>."),
            ("\"/x/app\": \"/x/app/src\"", "\"<project>\": \"<project>/src\""),
            ("file:///x/app/a", "file://<project>/a"),
            ("/x/app-new /x/app2 /x/app_old /x/app.git /y/x/app", "/x/app-new /x/app2 /x/app_old /x/app.git /y/x/app"),
        ] {
            assert_eq!(without(text, "/x/app"), want, "{text}");
        }
    }
}
