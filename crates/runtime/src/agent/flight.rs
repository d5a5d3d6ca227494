//! Effects under way. Each is a future that lands as at most one input of the machine.
//!
//! A flight is started once, whatever `pending` says in between; it knows its name so that a second look does not
//! start it again. Nothing here writes to the journal.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use max_team_core::chat::{Answer, Message, Part, Streamed};
use max_team_core::event::{Ending, LlmIntent, Outcome};
use max_team_core::limits::CALLS_PER_ANSWER_MAX;
use max_team_core::policy::{Action, Class, Deed, Settled};
use max_team_core::team::Model;
use max_team_core::turn::{Effect, Input, Obstacle, Prepared, SETTLE, STRUCTURED_OUTPUT, call_key, json_in};
use max_team_llm::{Call, CallError, Request, Transcript};
use max_team_tools::command::Walls;
use max_team_tools::{Cx, Output, Progress, Registry, ToolError};
use tokio_util::sync::CancellationToken;

use super::images::{Witness, runs_on, with_moved};
use super::{Agent, millis};
use crate::handle::{Delta, Notice};
use crate::rewind::Merger;
use crate::shared::{lock, now_ms};
use crate::stream::{self, Sayer};
use crate::worktree;

/// What an effect is called while it is under way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Flight {
    Model { call: u32, attempt: u32 },
    Prepare(Vec<String>),
    Tool(String),
    Sleep(i64),
    Afford,
}

/// An effect that is over.
pub(super) struct Landed {
    pub flight: Flight,
    pub input: Option<Input>,
}

pub(super) type Future = Pin<Box<dyn std::future::Future<Output = Landed> + Send>>;

/// The wire form of the history, each message encoded once.
pub(super) struct Wire {
    model: Model,
    transcript: Transcript,
}

impl Agent {
    /// Starts whatever is pending and not under way; what acts on the team itself is handed back.
    pub(super) fn launch(&mut self) -> Vec<String> {
        let mut acts = Vec::new();
        if self.is_waiting_for_model() {
            return acts;
        }
        if self.turn.reviewing().is_some() {
            self.frame.vacate();
        }
        for effect in self.turn.pending() {
            let flight = match &effect {
                Effect::CallModel(intent) => Flight::Model { call: intent.call, attempt: intent.attempt },
                Effect::Prepare(keys) => Flight::Prepare(keys.clone()),
                Effect::RunTool { key, .. } => Flight::Tool(key.clone()),
                Effect::Sleep { until_ms } => Flight::Sleep(*until_ms),
                Effect::Afford => Flight::Afford,
                // A question was published with its event; the answer comes by mail.
                Effect::Ask { .. } => continue,
                Effect::CancelAll => {
                    self.cancel.cancel();
                    continue;
                }
            };
            if !self.in_flight.insert(flight.clone()) {
                continue;
            }
            let future = match effect {
                Effect::RunTool { key, action, .. } if matches!(action.deed, Deed::Team | Deed::Propose) => {
                    acts.push(key);
                    continue;
                }
                Effect::CallModel(intent) => self.call_model(flight, intent),
                Effect::Prepare(keys) => self.prepare(flight, &keys),
                Effect::RunTool { key, action, .. } if self.is_unseen(&action) => self.look_over(flight, key, action),
                Effect::RunTool { key, action, .. } if action.deed == Deed::Merge => self.settle(flight, key, action),
                Effect::RunTool { key, action, attended } => self.run_tool(flight, key, action, attended),
                Effect::Sleep { until_ms } => self.sleep(flight, until_ms),
                Effect::Afford => self.afford(flight),
                Effect::Ask { .. } | Effect::CancelAll => continue,
            };
            self.flights.push(future);
        }
        acts
    }

    /// Whether all there is to do is under way: a request, which is what loops mostly wait for.
    fn is_waiting_for_model(&self) -> bool {
        let asked = self.turn.calling().filter(|_| self.turn.stopped_by().is_none());
        asked.is_some_and(|intent| {
            self.in_flight.contains(&Flight::Model { call: intent.call, attempt: intent.attempt })
        })
    }

    /// What the user has said becomes of what somebody did in a copy. It is carried to its end, whoever stops the turn.
    fn settle(&self, flight: Flight, key: String, action: Action) -> Future {
        let (floor, actor, merged) =
            (Arc::clone(&self.floor), format!("agent:{}", self.origin.name), format!("{} {key}", self.stream));
        Box::pin(async move {
            let started = Instant::now();
            floor.vacated(&action.target).await;
            let gone = CancellationToken::new();
            let _here = gone.clone().drop_guard();
            let shared = Arc::clone(&floor.shared);
            let done = tokio::task::spawn_blocking(move || {
                let named = action.parameters.iter().find(|(name, _)| name == SETTLE);
                let settled = named.and_then(|(_, name)| Settled::named(name)).unwrap_or(Settled::Left);
                let (journal, session, fence) = (&shared.journal, floor.session, Some(floor.fence.clone()));
                let merger = Merger { journal, session, fence, actor, gone: Some(gone), key: merged };
                let came_to = worktree::settle(&shared, &action.target, settled, action.after, &merger);
                format!("{}\n\n{came_to}", action.said)
            });
            // If the runtime itself ends, the next process does it.
            let input = done.await.ok().map(|words| {
                let (content, ms) = (vec![Part::text(words)], millis(started));
                Input::ToolEnded { key, content, is_error: false, ending: Ending::Ran, fatal: None, ms }
            });
            Landed { flight, input }
        })
    }

    fn call_model(&mut self, flight: Flight, intent: LlmIntent) -> Future {
        let request = match &intent.summary {
            Some(about) => self.summary_request(&intent, about),
            None => self.request(&intent),
        };

        let (shared, session, cancel) = (Arc::clone(&self.floor.shared), self.floor.session, self.cancel.clone());
        let (from, agent, calling) = (Arc::clone(&self.origin), self.origin.agent, Arc::clone(&self.floor.calling));
        let (registry, cx) = (Arc::clone(&self.frame.registry), self.context());
        Box::pin(async move {
            let started = Instant::now();
            let is_summary = intent.summary.is_some();
            let mut sayer = Sayer::new(session, agent, (intent.call, intent.attempt));
            let show = |delta: max_team_llm::Delta<'_>| {
                // A summary is not part of the conversation.
                if let Some(delta) = shown(delta).filter(|delta| !is_summary || !is_said(delta)) {
                    sayer.say(&shared.pieces, &delta);
                    shared.herald.show(&Notice::Delta { session, from: Arc::clone(&from), call: intent.call, delta });
                }
            };
            let (outcome, streamed) = match shared.router.call(&request, &cancel, show).await {
                Ok(answer) => (Outcome::Done(mended(&registry, answer)), Streamed::default()),
                Err(CallError::Cancelled { partial, streamed }) => {
                    (Outcome::Cancelled { partial, usage: streamed.usage }, streamed)
                }
                Err(CallError::Failed { failure, detail, streamed, .. }) => {
                    (Outcome::Failed { failure, detail, retry_at_ms: None, parked: false }, streamed)
                }
            };
            sayer.finish(&shared.pieces);
            drop(calling);
            let ms = millis(started);
            let prepared = match &outcome {
                Outcome::Done(answer) if !is_summary => {
                    let mut prepared = look_at_once(&registry, &cx, intent.call, &answer.message);
                    prepared.extend(look_at_words(&registry, intent.call, &answer.message));
                    prepared
                }
                _ => Vec::new(),
            };
            let call = (intent.call, intent.attempt);
            Landed { flight, input: Some(Input::ModelEnded { call, outcome, ms, streamed, prepared }) }
        })
    }

    fn request(&mut self, intent: &LlmIntent) -> Request {
        let transcript = self.encoded(&intent.model);
        transcript.request(&Call {
            number: intent.call,
            max_tokens: intent.max_tokens,
            tools_off: intent.hand_back,
            window: intent.request.window,
            upto: intent.request.upto,
        })
    }

    /// Brings the wire form up to date: only new messages are encoded, unless another model answers.
    pub(super) fn encoded(&mut self, model: &Model) -> &Transcript {
        let fits = self.wire.take().filter(|wire| wire.model == *model);
        let mut wire = fits.unwrap_or_else(|| Wire {
            model: model.clone(),
            transcript: Transcript::new(self.floor.shared.router.wire(model)),
        });
        wire.transcript.instruct(self.frame.head(wire.transcript.wire().dialect));
        wire.transcript.belongs_to(&self.speaker());
        wire.transcript.open_with(self.turn.head().as_ref());
        for message in self.turn.history().iter().skip(wire.transcript.len()) {
            wire.transcript.push(message);
        }
        &self.wire.insert(wire).transcript
    }

    /// Whose words they are: the member's, at its task, or of whoever was called, at that call.
    pub(super) fn speaker(&self) -> String {
        let called =
            self.turn.assignment().filter(|assignment| assignment.depth > 0).map(|assignment| &assignment.task);
        match self.origin.task.as_ref().map(|(_, task)| task).or(called) {
            Some(task) => format!("{}/{task}", self.origin.name),
            None => self.origin.name.to_string(),
        }
    }

    fn prepare(&mut self, flight: Flight, keys: &[String]) -> Future {
        let calls: Vec<(String, String, Arc<serde_json::Value>)> = keys
            .iter()
            .filter_map(|key| self.turn.call(key))
            .map(|call| (call.key.clone(), call.tool.clone(), call.input.clone()))
            .collect();
        let (registry, cx) = (Arc::clone(&self.frame.registry), self.context());
        let keys: Vec<String> = keys.to_vec();
        Box::pin(async move {
            let looked = tokio::task::spawn_blocking(move || look(&registry, &cx, calls)).await;
            let prepared = looked.unwrap_or_else(|crash| {
                let words = format!("the tool crashed while it looked at its input: {crash}");
                keys.into_iter()
                    .take(1)
                    .map(|key| Prepared { key, found: Err(Obstacle::Told(words.clone())) })
                    .collect()
            });
            Landed { flight, input: Some(Input::Prepared(prepared)) }
        })
    }

    fn run_tool(&mut self, flight: Flight, key: String, action: Action, attended: bool) -> Future {
        let Some(call) = self.turn.call(&key) else {
            return Box::pin(async move { Landed { flight, input: None } });
        };
        let (tool, input, resumed) = (call.tool.clone(), call.input.clone(), self.resumed);
        let (registry, cx) = (Arc::clone(&self.frame.registry), self.tool_context(&key, attended));
        let cancel = self.cancel.clone();
        let (shared, seen, key_of) = (Arc::clone(&self.floor.shared), Arc::clone(&self.seen), key.clone());
        let marked = self.floor.marks.wait(self.origin.agent.filter(|_| !action.deed.only_looks()));
        Box::pin(async move {
            tokio::select! {
                () = marked => {}
                () = cancel.cancelled() => {}
            }
            let started = Instant::now();
            let work = move || {
                let watch = Witness::begin(&shared, &registry, &cx, &key_of, &tool, &action);
                let ran = registry.run(&cx, &tool, Arc::unwrap_or_clone(input), &action, resumed);
                let (is_apart, root) = (watch.is_some() && runs_on(&action) && ran.is_ok(), Arc::clone(&cx.root));
                let walls = Arc::clone(&cx.walls);
                let look = move || {
                    let changed = watch.and_then(|watch| watch.end(&root));
                    lock(&seen).extend(with_moved(changed, walls.take_moved(), key_of, &root));
                };
                if is_apart {
                    cx.background.when_over(look)
                } else {
                    look()
                }
                ran
            };
            let ran = tokio::task::spawn_blocking(work)
                .await
                .unwrap_or_else(|crash| Err(ToolError::correctable(format!("the tool crashed: {crash}"))));
            let interrupted = cancel.is_cancelled() && ran.is_err();
            Landed { flight, input: Some(tool_ended(key, ran, interrupted, millis(started))) }
        })
    }

    /// What a call works with.
    pub(super) fn tool_context(&mut self, key: &str, attended: bool) -> Cx {
        let mut cx = self.context();
        cx.progress = self.progress(key);
        cx.walls = Arc::new(Walls { attended, moved: Arc::default(), ..Walls::clone(&cx.walls) });
        cx
    }

    /// Where a tool says how far it is: to every face that keeps up.
    fn progress(&self, key: &str) -> Progress {
        let (shared, session, from) = (Arc::clone(&self.floor.shared), self.floor.session, Arc::clone(&self.origin));
        let (agent, key) = (self.origin.agent, key.to_owned());
        Progress::new(move |words| {
            // The stream says it in a line.
            stream::progress(&shared.pieces, session, agent, &key, words.lines().next_back().unwrap_or_default());
            let delta = Delta::Progress { key: key.clone(), words };
            shared.herald.show(&Notice::Delta { session, from: Arc::clone(&from), call: 0, delta });
        })
    }

    /// Lands when something has been settled since it was last decided.
    fn afford(&self, flight: Flight) -> Future {
        let (cancel, seen, mut settled) = (self.cancel.clone(), self.settled, self.purse.settled());
        Box::pin(async move {
            tokio::select! {
                _ = settled.wait_for(|count| *count != seen) => Landed { flight, input: Some(Input::Woke) },
                () = cancel.cancelled() => Landed { flight, input: None },
            }
        })
    }

    fn sleep(&self, flight: Flight, until_ms: i64) -> Future {
        let cancel = self.cancel.clone();
        Box::pin(async move {
            let wait = u64::try_from(until_ms.saturating_sub(now_ms())).unwrap_or(0);
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(wait)) => Landed { flight, input: Some(Input::Woke) },
                () = cancel.cancelled() => Landed { flight, input: None },
            }
        })
    }
}

/// Looks at the calls that an answer begins with, as long as looking is only looking: what reads nothing but a
/// file's name and size is not worth a thread. The first call that changes something is left for later.
///
/// All that are ever run of an answer, because teammates who begin with one answer begin together: the first may write to the last.
fn look_at_once(registry: &Registry, cx: &Cx, call: u32, message: &Message) -> Vec<Prepared> {
    let is_pure = |name: &str| registry.get(name).is_some_and(|tool| tool.spec().class == Class::Pure);
    let first = message.tool_uses().enumerate().take(CALLS_PER_ANSWER_MAX);
    let pure = first.take_while(|(_, (_, name, _))| is_pure(name));
    pure.map(|(index, (_, name, input))| look_at(registry, cx, call_key(call, index), name, input)).collect()
}

/// Whether an answer in words is JSON of the shape that was agreed. Models answer so in spite of the tool for it.
pub(crate) fn look_at_words(registry: &Registry, call: u32, message: &Message) -> Option<Prepared> {
    registry.get(STRUCTURED_OUTPUT).filter(|_| message.tool_uses().next().is_none())?;
    let value = json_in(&message.text())?;
    let found = match registry.validate(STRUCTURED_OUTPUT, &value) {
        Ok(()) => Ok((Action { deed: Deed::Answer, ..Action::read("answer") }, Class::Pure)),
        Err(error) => Err(obstacle(error)),
    };
    Some(Prepared { key: call_key(call, 0), found })
}

fn look_at(registry: &Registry, cx: &Cx, key: String, tool: &str, input: &serde_json::Value) -> Prepared {
    let found = match registry.prepare(cx, tool, input) {
        Ok(prepared) => Ok((prepared.action, prepared.class)),
        Err(error) => Err(obstacle(error)),
    };
    Prepared { key, found }
}

fn obstacle(error: ToolError) -> Obstacle {
    match error {
        ToolError::Correctable(words) | ToolError::Unknown(words) => Obstacle::Told(words),
        ToolError::Refused { target, rule, words } => Obstacle::Refused { target, rule, words },
        ToolError::Fatal(words) => Obstacle::Fatal(words),
    }
}

/// Looks at calls in order, up to and including the first that changes something: what it will find depends on
/// those before it.
fn look(registry: &Registry, cx: &Cx, calls: Vec<(String, String, Arc<serde_json::Value>)>) -> Vec<Prepared> {
    let mut looked = Vec::new();
    for (key, tool, input) in calls {
        let one = look_at(registry, cx, key, &tool, &input);
        let changes = matches!(one.found, Ok((_, class)) if class != Class::Pure);
        looked.push(one);
        if changes {
            break;
        }
    }
    looked
}

fn shown(delta: max_team_llm::Delta<'_>) -> Option<Delta> {
    Some(match delta {
        max_team_llm::Delta::Text(text) => Delta::Text(text.to_owned()),
        max_team_llm::Delta::Thinking(text) => Delta::Thinking(text.to_owned()),
        max_team_llm::Delta::ToolStart { name, .. } => Delta::Tool(name.to_owned()),
        max_team_llm::Delta::Waiting(wait) => Delta::Waiting(wait),
        max_team_llm::Delta::ToolInput(_) => return None,
        max_team_llm::Delta::Usage(usage) => Delta::Usage(usage),
    })
}

fn is_said(delta: &Delta) -> bool {
    matches!(delta, Delta::Text(_) | Delta::Thinking(_) | Delta::Tool(_))
}

/// How a call ended, for the machine.
pub(super) fn tool_ended(key: String, ran: Result<Output, ToolError>, interrupted: bool, ms: u64) -> Input {
    let failed = |words: &str| Output { content: vec![Part::text(words)], is_error: true };
    let ending = match &ran {
        Err(ToolError::Unknown(_)) => Ending::Unknown,
        _ if interrupted => Ending::Interrupted,
        _ => Ending::Ran,
    };
    let (Output { content, is_error }, fatal) = match ran {
        Ok(output) => (output, None),
        Err(ToolError::Correctable(words) | ToolError::Refused { words, .. } | ToolError::Unknown(words)) => {
            (failed(&words), None)
        }
        Err(ToolError::Fatal(words)) => (failed(&words), Some(words)),
    };
    Input::ToolEnded { key, content, is_error, ending, fatal, ms }
}

/// The answer with corrected calls, where the correction is certain.
fn mended(registry: &Registry, mut answer: Answer) -> Answer {
    for part in &mut answer.message.parts {
        if let Part::ToolUse { name, input, .. } = part
            && let Some((meant, fitted)) = registry.mended(name, input)
        {
            (*name, *input) = (meant, Arc::new(fitted));
        }
    }
    answer
}
