//! Running effects. Each is a future that completes with at most one input of the machine.
//!
//! An effect is started once, however often `pending` lists it: its key says that it already runs. Nothing here writes
//! to the journal.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use max_team_core::agent::Model;
use max_team_core::chat::{Answer, Message, Part, PartialAnswer};
use max_team_core::event::{LlmIntent, LlmOutcome, ToolOutcome};
use max_team_core::id::SessionId;
use max_team_core::limits::CALLS_PER_ANSWER_MAX;
use max_team_core::policy::{Action, ActionKind, CommandReach, MergeDecision, Repeatability};
use max_team_core::rewind::FilesChanged;
use max_team_core::turn::{
    PrepareError, PreparedCall, SETTLE, STRUCTURED_OUTPUT, TurnEffect, TurnInput, call_key, json_in,
};
use max_team_llm::{CallError, Request, RequestOptions, Transcript};
use max_team_tools::command::CommandSandbox;
use max_team_tools::{Handler, Output, Progress, Registry, ToolContext, ToolError, run_remote};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::images::{Witness, runs_on, with_moved};
use super::running_call::{Ran, RunningCall, crashed};
use super::{Agent, millis};
use crate::handle::{Delta, Notice};
use crate::rewind::Merger;
use crate::shared::{Shared, lock, now_ms};
use crate::stream::{self, Sayer};
use crate::worktree;

/// The key of a running effect.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Flight {
    Model { call: u32, attempt: u32 },
    Prepare(Vec<String>),
    Tool(String),
    Sleep(i64),
    Afford,
}

/// A completed effect.
pub(super) struct EffectDone {
    pub flight: Flight,
    pub input: Option<TurnInput>,
}

pub(super) type Future = Pin<Box<dyn std::future::Future<Output = EffectDone> + Send>>;

/// The wire form of the history, each message encoded once.
pub(super) struct Wire {
    model: Model,
    transcript: Transcript,
}

impl Agent {
    /// Starts every pending effect that does not run yet; returns the calls that act on the team itself.
    pub(super) fn launch(&mut self) -> Vec<String> {
        let mut acts = Vec::new();
        if self.is_waiting_for_model() {
            return acts;
        }
        if self.turn.review_message().is_some() {
            self.frame.vacate();
        }
        for effect in self.turn.pending() {
            let flight = match &effect {
                TurnEffect::CallModel(intent) => Flight::Model { call: intent.call, attempt: intent.attempt },
                TurnEffect::Prepare(keys) => Flight::Prepare(keys.clone()),
                TurnEffect::RunTool { key, .. } => Flight::Tool(key.clone()),
                TurnEffect::Sleep { until_ms } => Flight::Sleep(*until_ms),
                TurnEffect::Afford => Flight::Afford,
                // A question was published with its event; the answer comes by mail.
                TurnEffect::Ask { .. } => continue,
                TurnEffect::CancelAll => {
                    self.running.cancel.cancel();
                    continue;
                }
            };
            if !self.running.start(&flight) {
                continue;
            }
            let future = match effect {
                TurnEffect::RunTool { key, action, .. }
                    if matches!(action.kind, ActionKind::Team | ActionKind::Propose) =>
                {
                    acts.push(key);
                    continue;
                }
                TurnEffect::CallModel(intent) => self.call_model(flight, intent),
                TurnEffect::Prepare(keys) => self.prepare(flight, &keys),
                TurnEffect::RunTool { key, action, .. } if self.is_unseen(&action) => {
                    self.look_over(flight, key, action)
                }
                TurnEffect::RunTool { key, action, .. } if action.kind == ActionKind::Merge => {
                    self.settle(flight, key, action)
                }
                TurnEffect::RunTool { key, action, attended } => self.run_tool(flight, key, action, attended),
                TurnEffect::Sleep { until_ms } => self.sleep(flight, until_ms),
                TurnEffect::Afford => self.afford(flight),
                TurnEffect::Ask { .. } | TurnEffect::CancelAll => continue,
            };
            self.running.flights.push(future);
        }
        acts
    }

    /// Whether only a model request runs, which is what loops mostly wait for.
    fn is_waiting_for_model(&self) -> bool {
        let asked = self.turn.calling().filter(|_| self.turn.stopped_by().is_none());
        asked.is_some_and(|intent| {
            self.running.has_started(&Flight::Model { call: intent.call, attempt: intent.attempt })
        })
    }

    /// Carries out the user's decision about the changes in a worktree. It is completed even if the turn is stopped.
    fn settle(&self, flight: Flight, key: String, action: Action) -> Future {
        let (active, actor, merged) = (
            Arc::clone(&self.active),
            format!("agent:{}", self.turn.origin.name),
            format!("{} {key}", self.turn.stream),
        );
        Box::pin(async move {
            let started = Instant::now();
            active.vacated(&action.target).await;
            let gone = CancellationToken::new();
            let _here = gone.clone().drop_guard();
            let shared = Arc::clone(&active.shared);
            let done = tokio::task::spawn_blocking(move || {
                let named = action.parameters.iter().find(|(name, _)| name == SETTLE);
                let settled = named.and_then(|(_, name)| MergeDecision::parse(name)).unwrap_or(MergeDecision::Left);
                let (journal, session, fence) = (&shared.journal, active.session, Some(active.fence.clone()));
                let merger = Merger { journal, session, fence, actor, gone: Some(gone), key: merged };
                let came_to = worktree::settle(&shared, &action.target, settled, action.after, &merger);
                format!("{}\n\n{came_to}", action.said)
            });
            // If the async runtime itself ends, the next process does it.
            let input = done.await.ok().map(|words| {
                let (content, ms) = (vec![Part::text(words)], millis(started));
                TurnInput::ToolEnded { key, content, is_error: false, ending: ToolOutcome::Ran, fatal: None, ms }
            });
            EffectDone { flight, input }
        })
    }

    fn call_model(&mut self, flight: Flight, intent: LlmIntent) -> Future {
        let request = match &intent.summary {
            Some(about) => self.summary_request(&intent, about),
            None => self.request(&intent),
        };

        let (shared, session, cancel) =
            (Arc::clone(&self.active.shared), self.active.session, self.running.cancel.clone());
        let (from, agent, calling) =
            (Arc::clone(&self.turn.origin), self.turn.origin.agent, Arc::clone(&self.active.calling));
        let (registry, cx) = (Arc::clone(&self.frame.registry), self.context());
        Box::pin(async move {
            let started = Instant::now();
            let is_summary = intent.summary.is_some();
            let mut sayer = Sayer::new(session, agent, (intent.call, intent.attempt));
            let show = |delta: max_team_llm::Delta<'_>| {
                // A summary is not part of the conversation.
                if let Some(delta) = shown(delta).filter(|delta| !is_summary || !is_said(delta)) {
                    sayer.say(&shared.pieces, &delta);
                    shared.notices.show(&Notice::Delta { session, from: Arc::clone(&from), call: intent.call, delta });
                }
            };
            let (outcome, streamed) = match shared.router.call(&request, &cancel, show).await {
                Ok(answer) => (LlmOutcome::Done(mended(&registry, answer)), PartialAnswer::default()),
                Err(CallError::Cancelled { partial, streamed }) => {
                    (LlmOutcome::Cancelled { partial, usage: streamed.usage }, streamed)
                }
                Err(CallError::Failed { failure, detail, streamed, .. }) => {
                    (LlmOutcome::Failed { failure, detail, retry_at_ms: None, parked: false }, streamed)
                }
            };
            sayer.finish(&shared.pieces);
            drop(calling);
            let ms = millis(started);
            let prepared = match &outcome {
                LlmOutcome::Done(answer) if !is_summary => {
                    let mut prepared = look_at_once(&registry, &cx, intent.call, &answer.message);
                    prepared.extend(look_at_words(&registry, intent.call, &answer.message));
                    prepared
                }
                _ => Vec::new(),
            };
            let call = (intent.call, intent.attempt);
            EffectDone { flight, input: Some(TurnInput::ModelEnded { call, outcome, ms, streamed, prepared }) }
        })
    }

    fn request(&mut self, intent: &LlmIntent) -> Request {
        let transcript = self.encoded(&intent.model);
        transcript.request(&RequestOptions {
            number: intent.call,
            max_tokens: intent.max_tokens,
            tools_off: intent.hand_back,
            window: intent.request.window,
            upto: intent.request.upto,
        })
    }

    /// Brings the wire form up to date: only new messages are encoded, unless another model answers.
    pub(super) fn encoded(&mut self, model: &Model) -> &Transcript {
        let fits = self.memo.wire.take().filter(|wire| wire.model == *model);
        let mut wire = fits.unwrap_or_else(|| Wire {
            model: model.clone(),
            transcript: Transcript::new(self.active.shared.router.wire(model)),
        });
        wire.transcript.instruct(self.frame.head(wire.transcript.wire().dialect));
        wire.transcript.belongs_to(&self.speaker());
        wire.transcript.open_with(self.turn.summary_message().as_ref());
        for message in self.turn.history().iter().skip(wire.transcript.len()) {
            wire.transcript.push(message);
        }
        &self.memo.wire.insert(wire).transcript
    }

    /// The author of a text: a member with its task, or a called agent with its call.
    pub(super) fn speaker(&self) -> String {
        let called =
            self.turn.assignment().filter(|assignment| assignment.depth > 0).map(|assignment| &assignment.task);
        match self.turn.origin.task.as_ref().map(|(_, task)| task).or(called) {
            Some(task) => format!("{}/{task}", self.turn.origin.name),
            None => self.turn.origin.name.to_string(),
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
                    .map(|key| PreparedCall { key, found: Err(PrepareError::Told(words.clone())) })
                    .collect()
            });
            EffectDone { flight, input: Some(TurnInput::Prepared(prepared)) }
        })
    }

    fn run_tool(&mut self, flight: Flight, key: String, action: Action, attended: bool) -> Future {
        let Some(call) = self.turn.call(&key) else {
            return Box::pin(async move { EffectDone { flight, input: None } });
        };
        let (tool, input, resumed) = (call.tool.clone(), call.input.clone(), self.restart.resumed);
        let (registry, cx) = (Arc::clone(&self.frame.registry), self.tool_context(&key, action.reach, attended));
        let (session, stream) = (self.active.session, self.turn.stream.clone());
        let cancel = self.running.cancel.clone();
        let (shared, seen, key_of) = (Arc::clone(&self.active.shared), Arc::clone(&self.commands.seen), key.clone());
        let parked = Arc::clone(&self.running.parked);
        let changes = self.turn.origin.agent.filter(|_| !action.kind.is_read_only());
        let marked = self.active.marks(|marks| marks.wait(changes));
        Box::pin(async move {
            tokio::select! {
                () = marked => {}
                () = cancel.cancelled() => {}
            }
            let started = Instant::now();
            let input = Arc::unwrap_or_clone(input);
            let ran = match registry.get(&tool) {
                Some(Handler::Remote(remote)) => {
                    let (moved, root) = (Arc::clone(&cx.sandbox.moved), Arc::clone(&cx.root));
                    let ran = run_as_task(run_remote(Arc::clone(remote), cx, input, action, resumed)).await;
                    lock(&seen).extend(with_moved(None, moved.take(), key_of, &root));
                    ran
                }
                _ => {
                    let call = match action.asking_call() {
                        Some(asked) => RunningCall::resume(asked, &action, &parked),
                        None => Ok(RunningCall::start(&key, cx, move |cx| {
                            let watched =
                                Watched { shared, registry, cx, session, stream, key: key_of, tool, action, seen };
                            watched.run(input, resumed)
                        })),
                    };
                    match call {
                        Ok(call) => call.next(key.clone(), &parked).await,
                        Err(error) => Err(error),
                    }
                }
            };
            let interrupted = cancel.is_cancelled() && ran.is_err();
            EffectDone { flight, input: Some(tool_ended(key, ran, interrupted, millis(started))) }
        })
    }

    /// The context of a call, with the sandbox that its verdict named.
    pub(super) fn tool_context(&mut self, key: &str, reach: CommandReach, attended: bool) -> ToolContext {
        let mut cx = self.context();
        cx.progress = self.progress(key);
        cx.sandbox = Arc::new(CommandSandbox { attended, moved: Arc::default(), ..cx.sandbox.within(reach) });
        cx
    }

    /// Publishes the progress of a tool to every subscriber that keeps up.
    fn progress(&self, key: &str) -> Progress {
        let (shared, session, from) =
            (Arc::clone(&self.active.shared), self.active.session, Arc::clone(&self.turn.origin));
        let (agent, key) = (self.turn.origin.agent, key.to_owned());
        Progress::new(move |words| {
            // The stream has only the last line of it.
            stream::progress(&shared.pieces, session, agent, &key, words.lines().next_back().unwrap_or_default());
            let delta = Delta::Progress { key: key.clone(), words };
            shared.notices.show(&Notice::Delta { session, from: Arc::clone(&from), call: 0, delta });
        })
    }

    /// Completes when a reservation was settled since the last decision.
    fn afford(&self, flight: Flight) -> Future {
        let (cancel, seen, mut settled) = (self.running.cancel.clone(), self.money.settled, self.money.pool.settled());
        Box::pin(async move {
            tokio::select! {
                _ = settled.wait_for(|count| *count != seen) => EffectDone { flight, input: Some(TurnInput::Woke) },
                () = cancel.cancelled() => EffectDone { flight, input: None },
            }
        })
    }

    fn sleep(&self, flight: Flight, until_ms: i64) -> Future {
        let cancel = self.running.cancel.clone();
        Box::pin(async move {
            let wait = u64::try_from(until_ms.saturating_sub(now_ms())).unwrap_or(0);
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(wait)) => EffectDone { flight, input: Some(TurnInput::Woke) },
                () = cancel.cancelled() => EffectDone { flight, input: None },
            }
        })
    }
}

/// Prepares the first calls of an answer at once, as long as they are read-only: a call that reads only a file's name
/// and size is not worth a thread. The first call that changes something is left for later.
///
/// All calls that one answer may run are considered, because teammates of one answer start together: the first may
/// write to the last.
fn look_at_once(registry: &Registry, cx: &ToolContext, call: u32, message: &Message) -> Vec<PreparedCall> {
    let is_pure = |name: &str| registry.get(name).is_some_and(|tool| tool.spec().class == Repeatability::Pure);
    let first = message.tool_uses().enumerate().take(CALLS_PER_ANSWER_MAX);
    let pure = first.take_while(|(_, (_, name, _))| is_pure(name));
    pure.map(|(index, (_, name, input))| look_at(registry, cx, call_key(call, index), name, input)).collect()
}

/// Whether a text answer is JSON that matches the agreed schema. Models answer so although there is a tool for it.
pub(crate) fn look_at_words(registry: &Registry, call: u32, message: &Message) -> Option<PreparedCall> {
    registry.get(STRUCTURED_OUTPUT).filter(|_| message.tool_uses().next().is_none())?;
    let value = json_in(&message.text())?;
    let found = match registry.validate(STRUCTURED_OUTPUT, &value) {
        Ok(()) => Ok((Action { kind: ActionKind::Answer, ..Action::read("answer") }, Repeatability::Pure)),
        Err(error) => Err(obstacle(error)),
    };
    Some(PreparedCall { key: call_key(call, 0), found })
}

fn look_at(registry: &Registry, cx: &ToolContext, key: String, tool: &str, input: &serde_json::Value) -> PreparedCall {
    let found = match registry.prepare(cx, tool, input) {
        Ok(prepared) => Ok((prepared.action, prepared.class)),
        Err(error) => Err(obstacle(error)),
    };
    PreparedCall { key, found }
}

fn obstacle(error: ToolError) -> PrepareError {
    match error {
        ToolError::Correctable(words) | ToolError::Unknown(words) => PrepareError::Told(words),
        // Nothing is asked before a call begins.
        ToolError::Asks(action) => PrepareError::Told(action.preview),
        ToolError::Refused { target, basis, words } => PrepareError::Refused { target, basis, words },
        ToolError::Fatal(words) => PrepareError::Fatal(words),
    }
}

/// Prepares calls in order, up to and including the first that changes something: what a later one will find depends
/// on it.
fn look(
    registry: &Registry,
    cx: &ToolContext,
    calls: Vec<(String, String, Arc<serde_json::Value>)>,
) -> Vec<PreparedCall> {
    let mut looked = Vec::new();
    for (key, tool, input) in calls {
        let one = look_at(registry, cx, key, &tool, &input);
        let changes = matches!(one.found, Ok((_, class)) if class != Repeatability::Pure);
        looked.push(one);
        if changes {
            break;
        }
    }
    looked
}

/// A call of a tool on this machine, with the file changes that scans find.
struct Watched {
    shared: Arc<Shared>,
    registry: Arc<Registry>,
    cx: ToolContext,
    session: SessionId,
    stream: String,
    key: String,
    tool: String,
    action: Action,
    seen: Arc<Mutex<Vec<FilesChanged>>>,
}

impl Watched {
    /// Runs the call between two scans of the files. For a background command the second scan waits for its end.
    /// Blocking.
    fn run(self, input: serde_json::Value, resumed: bool) -> Result<Output, ToolError> {
        let Self { shared, registry, mut cx, session, stream, key, tool, action, seen } = self;
        let watch = Witness::begin(&shared, &registry, &cx, (session, &stream, &key), &tool, &action)?;
        if let Some(end_mark) = watch.as_ref().and_then(Witness::end_mark) {
            cx.sandbox = Arc::new(CommandSandbox { end_mark: Some(end_mark), ..CommandSandbox::clone(&cx.sandbox) });
        }
        if runs_on(&action) {
            // The user hears of a file that is moved away while the command runs.
            let (seen, background) = (Arc::clone(&seen), Arc::downgrade(&cx.background));
            let (key, root) = (key.clone(), Arc::clone(&cx.root));
            cx.sandbox.moved.listen(move |file| {
                lock(&seen).extend(with_moved(None, vec![file], key.clone(), &root));
                if let Some(background) = background.upgrade() {
                    background.ring();
                }
            });
        }
        let ran = registry.run(&cx, &tool, input, &action, resumed);
        let (is_apart, root) = (watch.is_some() && runs_on(&action) && ran.is_ok(), Arc::clone(&cx.root));
        let isolation = Arc::clone(&cx.sandbox);
        let look = move || {
            let changed = watch.and_then(Witness::end);
            lock(&seen).extend(with_moved(changed, isolation.moved.take(), key, &root));
        };
        if is_apart {
            cx.background.when_over(look)
        } else {
            look()
        }
        ran
    }
}

/// Runs a call as a task of the runtime, which ends with this future.
async fn run_as_task(call: impl std::future::Future<Output = Ran> + Send + 'static) -> Ran {
    let mut tasks = JoinSet::new();
    tasks.spawn(call);
    match tasks.join_next().await {
        Some(ended) => ended.unwrap_or_else(|crash| Err(crashed(&crash))),
        None => Err(ToolError::correctable("stopped before it was done")),
    }
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
pub(super) fn tool_ended(key: String, ran: Result<Output, ToolError>, interrupted: bool, ms: u64) -> TurnInput {
    let ran = match ran {
        Err(ToolError::Asks(action)) if !interrupted => return TurnInput::Unanswered { key, action: *action },
        ran => ran,
    };
    let failed = |words: &str| Output { content: vec![Part::text(words)], is_error: true };
    let ending = match &ran {
        Err(ToolError::Unknown(_)) => ToolOutcome::Unknown,
        _ if interrupted => ToolOutcome::Interrupted,
        _ => ToolOutcome::Ran,
    };
    let (Output { content, is_error }, fatal) = match ran {
        Ok(output) => (output, None),
        Err(ToolError::Correctable(words) | ToolError::Refused { words, .. } | ToolError::Unknown(words)) => {
            (failed(&words), None)
        }
        Err(ToolError::Asks(_)) => (failed("stopped before its question was answered"), None),
        Err(ToolError::Fatal(words)) => (failed(&words), Some(words)),
    };
    TurnInput::ToolEnded { key, content, is_error, ending, fatal, ms }
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
