//! Calls of agents: `dispatch_task`, `task` and `agent` start one, `send_message` continues one.
//!
//! A call is a task with an address for the answer. One commit creates the called agent with its first message; its
//! answer comes by mail and is the call's result. Until then the call holds nothing, so that a crash changes nothing:
//! the called agent's id follows from the caller and the call's key.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use max_team_core::agent::{Isolation, Settings};
use max_team_core::body::{Body, Stop, Task, Work};
use max_team_core::chat::Part;
use max_team_core::delegation::answer::{ExpertReply, quoted};
use max_team_core::delegation::ending::not_done;
use max_team_core::delegation::tool_filter::{AGENT, Caller, SEND_MESSAGE, SPAWNING};
use max_team_core::event::{Event, InterruptedBy, ToolOutcome, TurnOutcome};
use max_team_core::hash::Hash;
use max_team_core::id::AgentId;
use max_team_core::ledger::Charge;
use max_team_core::limits::{CALLS_PARALLEL_MAX, TOOL_RESULT_BYTES_MAX};
use max_team_core::message::{Assignment, Envelope, MessageKind};
use max_team_core::policy::{ActionKind, DecidedBy};
use max_team_core::teammate::Lifetime;
use max_team_core::turn::{Turn, TurnEffect, TurnInput};
use max_team_journal::Commit;
use tokio_util::sync::CancellationToken;

use super::acts::ActionOutcome;
use super::cache::CacheUse;
use super::flight::{EffectDone, Flight};
use super::mail::derived;
use super::members::Member;
use super::{Agent, Control, Extra, Newcomer};
use crate::active_session::Claim;
use crate::error::RuntimeError;
use crate::handle::AgentSpec;
use crate::plan::messages;
use crate::read_model::ReadModel;
use crate::rows::{self, AgentRow};
use crate::shared::{commit_at, now_ms};
use crate::team_tools::{self, DISPATCH_TASK, DelegateCall, Way};
use crate::worktree::{self, Worker};
use crate::{session, work_clock};

/// Distinguishes the message of a `send_message` call from others of the same call.
const MESSAGE: &[u8] = b"message";

/// Prompt for an expert, about the form of its input and output.
pub(crate) const EXPERT: &str = include_str!("../../../../prompts/expert.md");

/// The author of a stop by the time limit.
pub const TIME_OVER: &str = "its time is over";

pub(super) fn time_over() -> InterruptedBy {
    InterruptedBy {
        name: TIME_OVER.to_owned(),
        who: Some(DecidedBy::Rule(TIME_OVER.to_owned())),
        ends: false,
        held: None,
    }
}

impl Agent {
    /// Calls an agent. The result comes by mail.
    pub(super) async fn call(&mut self, key: &str, call: &DelegateCall) -> Result<Option<ActionOutcome>, RuntimeError> {
        if self.goes_on(key)? {
            return Ok(None);
        }
        let call = &self.to_member(call);
        match self.callee(call) {
            Ok((teammate, depth)) => self.engage(key, call, teammate, depth).await,
            Err(words) => Ok(Some(ActionOutcome::wrong(words))),
        }
    }

    /// A lead's call of a member is a dispatch, with each of the tools. If the call is not allowed, the error names the
    /// allowed agents.
    fn to_member(&self, call: &DelegateCall) -> DelegateCall {
        let is_member = self.leads() && self.active.agent_spec(&call.who).is_some();
        let may_call = || self.active.callable(self.frame.definition(), &call.who).is_ok();
        let way = if is_member && may_call() { Way::Dispatch } else { call.way };
        DelegateCall { way, ..call.clone() }
    }

    /// Whether the agent was already called before a crash and still works: then it is not checked again whether it
    /// may be called.
    pub(super) fn goes_on(&mut self, key: &str) -> Result<bool, RuntimeError> {
        let child = self.delegate(key);
        if self.active.shared.journal.head(&session::agent_stream(child))? == 0 {
            return Ok(false);
        }
        let (turn, _) = self.active.shared.fold_agent(child)?;
        self.active.seat_agent(child)?;
        self.wait_for(key, child, turn.settings().and_then(|settings| settings.constraints.timeout_ms));
        Ok(true)
    }

    /// Starts an agent for a call, unless the call has a cached answer or an equal call runs.
    pub(super) async fn engage(
        &mut self,
        key: &str,
        call: &DelegateCall,
        teammate: AgentSpec,
        depth: u32,
    ) -> Result<Option<ActionOutcome>, RuntimeError> {
        let child = self.delegate(key);
        let (text, cached) = match self.look(key, &teammate, call)? {
            CacheUse::Answered(done) => return Ok(Some(done)),
            CacheUse::Awaited => return Ok(None),
            CacheUse::Make(text, cached) => (text, cached),
        };
        let is_apart = (call.background || teammate.definition.background) && self.stays();
        if call.background && !is_apart {
            return Ok(Some(ActionOutcome::wrong(
                "only who stays has something done in the background: leave `run_in_background` out",
            )));
        }
        if !is_apart && self.queues(key, call.way) {
            return Ok(None);
        }
        let (cache, claim) = cached.unzip();
        let assignment = Assignment {
            reply_to: self.turn.stream.clone(),
            plan: None,
            corrects: None,
            task: key.to_owned(),
            attempt: 1,
            title: call.title.clone(),
            depth,
            cache: cache.map(Box::new),
            skill: call.skill.clone(),
            life: Lifetime::Call,
        };
        let text = if call.way == Way::Dispatch { messages::delegated(&text) } else { text };
        let teammate = self.apart(child, teammate, call.isolation);
        if self.is_preparing(key, &teammate.definition.name, &teammate.settings) {
            return Ok(None);
        }
        if is_apart {
            return self.begin_apart(child, assignment, teammate, &text).map(Some);
        }
        self.start(child, assignment.into(), &teammate, &text).await?;
        claim.into_iter().for_each(Claim::begun);
        self.wait_for(key, child, teammate.settings.constraints.timeout_ms);
        Ok(None)
    }

    /// Gives an agent a worktree, if it should have one. An agent that is called from within a worktree works in that
    /// one.
    pub(super) fn apart(&self, child: AgentId, teammate: AgentSpec, isolation: Isolation) -> AgentSpec {
        if !teammate.settings.permissions.copy.is_empty() || !worktree::wanted(teammate.definition.isolation, isolation)
        {
            return teammate;
        }
        let settings = worktree::within(&self.active.shared, child, teammate.settings);
        AgentSpec { settings, ..teammate }
    }

    /// Whether an agent's worktree does not exist yet. It is made in the background, and the call is decided again
    /// afterwards; if it cannot be made, the call has failed.
    pub(super) fn is_preparing(&mut self, key: &str, by: &str, settings: &Settings) -> bool {
        let unmade = self.unmade(by, settings);
        let any = unmade.is_some();
        unmade.into_iter().for_each(|worker| self.make_copy(key, worker));
        any
    }

    /// The worktree that an agent needs and that does not exist yet.
    pub(super) fn unmade(&self, by: &str, settings: &Settings) -> Option<Worker> {
        if settings.permissions.copy.is_empty() {
            return None;
        }
        let (id, project) = (worktree::id_of(settings), self.active.root.clone());
        let worker = Worker { id, project, settings: settings.clone(), by: by.to_owned(), named: Vec::new() };
        worker.place(&self.active.shared).is_err().then_some(worker)
    }

    pub(super) fn make_copy(&mut self, key: &str, worker: Worker) {
        self.running.preparing.insert(key.to_owned());
        let (active, cancel, key) = (Arc::clone(&self.active), self.running.cancel.clone(), key.to_owned());
        self.running.flights.push(Box::pin(async move {
            let made = worker.prepare(&active.shared, &cancel).await;
            let flight = Flight::Tool(key.clone());
            let input = made.err().filter(|_| !active.is_closing()).map(|words| {
                let ending = if cancel.is_cancelled() { ToolOutcome::Interrupted } else { ToolOutcome::Ran };
                let content = vec![Part::text(words)];
                TurnInput::ToolEnded { key, content, is_error: true, ending, fatal: None, ms: 0 }
            });
            EffectDone { flight, input }
        }));
    }

    /// The agent that a call names, with its settings for this caller, and its call depth.
    fn callee(&self, call: &DelegateCall) -> Result<(AgentSpec, u32), String> {
        if call.text.trim().is_empty() {
            return Err("`description` is missing: the member sees nothing of this conversation".to_owned());
        }
        if call.way == Way::Dispatch {
            let teammate = self.active.agent_spec(&call.who).ok_or_else(|| self.no_member(&call.who))?;
            let settings = teammate.settings.clone().bounded_by(self.frame.settings());
            return Ok((AgentSpec { settings, ..teammate }, self.depth()));
        }
        let teammate = self.active.callable(self.frame.definition(), &call.who)?;
        self.hire(teammate, call.way)
    }

    /// An agent with its settings for this caller, and its call depth.
    pub(super) fn hire(&self, teammate: AgentSpec, way: Way) -> Result<(AgentSpec, u32), String> {
        let depth = self.depth();
        let deepest = self.active.call_depth();
        if depth >= deepest {
            return Err(format!("calls go at most {deepest} deep, and this is as deep: do it yourself"));
        }
        // Agents that a lead of members calls are bounded by the session, not by the lead's own tools.
        let own = self.frame.definition().as_ref();
        let caller = Caller { own: (!self.leads()).then_some(own), deeper: depth + 1 < deepest };
        let is_member = self.leads() && self.active.agent_spec(&teammate.definition.name).is_some();
        let mut teammate = self.active.called(teammate, caller);
        // An agent type that comes with the program has its own form of answer, unless its answers are cached.
        if way == Way::Arguments && (!teammate.definition.builtin || teammate.definition.cache.is_some()) {
            let prompt = format!("{}\n\n{}", teammate.definition.prompt.trim_end(), EXPERT);
            Arc::make_mut(&mut teammate.definition).prompt = prompt;
        }
        let AgentSpec { definition, settings } = teammate;
        let settings = settings.bounded_by(self.frame.settings());
        let structured = definition.work.output.is_some();
        // A member has the same depth on every way to it.
        let depth = if is_member { depth } else { depth + 1 };
        Ok((AgentSpec { definition, settings: Settings { structured, ..settings } }, depth))
    }

    /// Whether this is the lead of members: it has no tools for files.
    pub(super) fn leads(&self) -> bool {
        self.turn.origin.lead && self.active.team().is_some_and(|team| !team.members.is_empty())
    }

    /// The call depth of this agent.
    fn depth(&self) -> u32 {
        self.turn.assignment().map_or(0, |assignment| assignment.depth)
    }

    /// Whether all places for agents of this caller are taken: the call is decided again when one is free.
    fn queues(&mut self, key: &str, way: Way) -> bool {
        let places = match way {
            Way::Dispatch => self.active.team().map_or(1, |team| usize::try_from(team.max_parallel).unwrap_or(1)),
            Way::Arguments | Way::Words => CALLS_PARALLEL_MAX,
        };
        let is_full = self.running.is_full(key, places);
        if is_full {
            self.running.flights.push(self.awaiting(key, self.running.freed.clone()));
        }
        is_full
    }

    /// Completes when the agent's loop has ended: the decision about its changes may remove its worktree.
    fn awaiting_leave(&self, key: &str, child: AgentId) -> super::flight::Future {
        let stopped = self.cancelled(key.to_owned(), None, CancellationToken::new());
        let (active, flight) = (Arc::clone(&self.active), Flight::Tool(key.to_owned()));
        let address = session::agent_stream(child);
        Box::pin(async move {
            tokio::select! {
                biased;
                landed = stopped => landed,
                () = active.left(&address) => EffectDone { flight, input: None },
            }
        })
    }

    fn wait_for(&mut self, key: &str, child: AgentId, timeout_ms: Option<u64>) {
        let answered = self.running.delegate(key);
        let timeout = timeout_ms.map(Duration::from_millis);
        self.running.flights.push(self.cancelled(key.to_owned(), Some((child, timeout)), answered));
    }

    /// Starts an agent with the task of a call.
    async fn start(
        &mut self,
        child: AgentId,
        assignment: Arc<Assignment>,
        teammate: &AgentSpec,
        text: &str,
    ) -> Result<(), RuntimeError> {
        self.active.bind(&self.turn.stream, self.frame.settings());
        let envelope = self.assigning(child, &assignment, text, b"dispatch");
        let mut commit = commit_at(now_ms());
        commit.fence = Some(self.active.fence.clone());
        commit.actor = format!("agent:{}", self.turn.origin.name);
        self.welcome(child, teammate, assignment, envelope, commit).await
    }

    /// Starts an agent with its first message, in one commit with the rest of `commit`.
    pub(super) async fn welcome(
        &mut self,
        child: AgentId,
        teammate: &AgentSpec,
        assignment: Arc<Assignment>,
        envelope: Envelope,
        mut commit: Commit,
    ) -> Result<(), RuntimeError> {
        let settings = Arc::new(teammate.settings.clone());
        let mut newcomer =
            Newcomer::welcome(&self.active, child, &teammate.definition, settings, assignment, &envelope, &mut commit)?;
        if newcomer.as_ref().is_some_and(Newcomer::has_begun) {
            self.active.shared.notices.envelope(&envelope);
        } else {
            commit.sends.push(envelope);
        }
        let at_ms = commit.at_ms;
        self.active.commit(commit, || newcomer.iter_mut().for_each(|newcomer| newcomer.prepare(at_ms))).await?;
        // Subscribers are told of a call before anything that follows from it.
        self.tell().await;
        newcomer.into_iter().for_each(|newcomer| newcomer.begin(&self.active));
        Ok(())
    }

    pub(super) fn assigning(&self, child: AgentId, assignment: &Assignment, text: &str, what: &[u8]) -> Envelope {
        Envelope::new(
            derived(&[self.turn.stream.as_bytes(), assignment.task.as_bytes(), what]),
            &self.turn.stream,
            session::agent_stream(child),
            MessageKind::TaskAssign,
            Body::Task(Task { text, assignment: Some(Cow::Borrowed(assignment)), ..Task::default() }),
            now_ms(),
        )
    }

    /// Continues with an agent that was called before. The result comes by mail.
    pub(super) async fn go_on_with(
        &mut self,
        key: &str,
        to: &str,
        text: &str,
    ) -> Result<Option<ActionOutcome>, RuntimeError> {
        if let Some(child) = self.gone_on_with(key)? {
            // The message was sent before a crash: a name may mean another agent by now, or one that works because of it.
            self.active.bind(&self.turn.stream, self.frame.settings());
            self.active.seat_agent(child)?;
            let (turn, _) = self.active.shared.fold_agent(child)?;
            let name = self.active.row_of(child).map(|row| row.name).unwrap_or_default();
            self.wait_for(key, child, self.timeout_of(&turn, &name));
            return Ok(None);
        }
        let (AgentRow { agent: child, name, .. }, given) = match (self.addressed(key, to)?, self.member(to)?) {
            (Ok(found), _) => found,
            (Err(_), Some(Member::Over(row, given))) => {
                if self.builds_on_open_message(key, &row, &given)? {
                    self.running.flights.push(self.awaiting(key, self.running.freed.clone()));
                    return Ok(None);
                }
                (row, given)
            }
            (Err(_), Some(Member::Working(row))) => return Ok(Some(self.note_to(key, &row, text))),
            (Err(_), Some(Member::Failed(task))) => {
                let words =
                    format!("task `{task}` failed: decide with `task_update`; `retry` with a `note` tells its owner");
                return Ok(Some(ActionOutcome::wrong(words)));
            }
            (Err(_), Some(Member::Several(words))) | (Err(words), None) => {
                return Ok(Some(ActionOutcome::wrong(words)));
            }
        };
        if self.queues(key, Way::Words) {
            return Ok(None);
        }
        let (turn, _) = self.active.shared.fold_agent(child)?;
        self.active.bind(&self.turn.stream, self.frame.settings());
        if turn.review_message().is_some() {
            self.active.seat_agent(child)?;
            // An agent that is ending needs no command.
            drop(self.active.tell(&session::agent_stream(child), Control::GoOn).await);
            // The call does not wait for a user here, though its result comes by mail.
            self.running.preparing.insert(key.to_owned());
            self.running.flights.push(self.awaiting_leave(key, child));
            return Ok(None);
        }
        // Its changes were merged or dropped, and its worktree is gone.
        if turn.settings().is_some_and(|settings| self.is_preparing(key, &name, settings)) {
            return Ok(None);
        }
        // More than one attempt means that it had finished its first task.
        let title = team_tools::title(text);
        let given = Arc::unwrap_or_clone(given);
        let (task, attempt) = (key.to_owned(), given.attempt + 1);
        let assignment = Assignment { task, attempt, title, cache: None, life: Lifetime::Call, ..given };
        let envelope = self.assigning(child, &assignment, text, MESSAGE);
        self.commit(Vec::new(), Extra::send(envelope)).await?;
        self.wait_for(key, child, self.timeout_of(&turn, &name));
        Ok(None)
    }

    /// The time limit of an agent that was called before: that of its type now, or the one that it started with.
    fn timeout_of(&self, turn: &Turn, name: &str) -> Option<u64> {
        let now = self.active.callee(name).map(|teammate| teammate.settings.bounded_by(self.frame.settings()));
        let settings = now.as_ref().or(turn.settings().map(|settings| &**settings));
        settings.and_then(|settings| settings.constraints.timeout_ms)
    }

    /// The agent that the message of a call of `send_message` went to, if it went to one that answers the call.
    fn gone_on_with(&self, key: &str) -> Result<Option<AgentId>, RuntimeError> {
        let envelope = derived(&[self.turn.stream.as_bytes(), key.as_bytes(), MESSAGE]);
        let address = self.active.shared.journal.addressee(envelope)?;
        Ok(address.and_then(|address| address.strip_prefix("agent/")?.parse().ok()))
    }

    /// An agent that this one has called in an earlier answer. Those of the same answer do not count, so that a name
    /// means the same agent each time it is looked up.
    fn addressed(&self, key: &str, to: &str) -> Result<Result<(AgentRow, Arc<Assignment>), String>, RuntimeError> {
        let answer = |key: &str| key.split_once('.').and_then(|(answer, _)| answer.parse::<u32>().ok());
        let (to, now) = (to.trim(), answer(key));
        let table = rows::agents_of(&self.active.session.to_string());
        let mut known = Vec::new();
        for (_, row) in rows::rows::<AgentRow>(&self.active.shared.journal, &table)? {
            let own =
                row.assignment.as_ref().filter(|given| given.reply_to == self.turn.stream && given.plan.is_none());
            // Agents that no answer of ours has called, such as the memory expert, cannot be addressed.
            let is_called = |given: &&Arc<Assignment>| answer(&given.task).is_some_and(|called| Some(called) < now);
            if let Some(given) = own.filter(is_called).cloned() {
                known.push((row, given));
            }
        }
        let mut found = known.iter().filter(|(row, _)| row.is(to));
        let words = match (found.next(), found.next()) {
            (Some(found), None) => return Ok(Ok(found.clone())),
            (Some(_), Some(_)) => format!("several are called `{to}`"),
            (None, _) => format!("you have called no agent `{to}` in this session"),
        };
        let handles: Vec<String> = known.iter().map(|(row, _)| row.handle()).collect();
        self.nobody_called(words, to, &handles).map(Err)
    }

    /// The text of a call's result for the model, and whether it is an error.
    pub(super) fn told(&self, key: &str, envelope: &Envelope) -> (String, bool) {
        let Work { by, is_error, structured, output, end, error, did, checked, .. } = envelope.result().work;
        let tool = self.turn.call(key).map(|call| call.tool.as_str());
        if by.is_empty() || !tool.is_some_and(|tool| team_tools::is_call(tool, ActionKind::Team)) {
            return (quoted(envelope.text()), is_error);
        }
        if let Some(value) = structured {
            let mut words = format!("{value:#}");
            clip(&mut words, TOOL_RESULT_BYTES_MAX);
            return (words, is_error);
        }
        let mut told = ExpertReply::parse(output);
        told.text = quoted(&told.text);
        let is_silent = end == Some(TurnOutcome::Empty);
        let mut words = match (is_error && !is_silent, told.text.is_empty(), told.result.is_some()) {
            (false, true, true) => format!("`{by}` found something and said nothing about it."),
            (false, true, false) => format!("`{by}` answered nothing."),
            (false, false, _) => told.text,
            (true, ..) if not_done(&told.text).is_some() => told.text,
            (true, empty, _) => {
                let so_far = if empty { String::new() } else { format!("\n\nSo far it had said:\n{}", told.text) };
                format!("`{by}` did not finish: {error}.{so_far}")
            }
        };
        clip(&mut words, TOOL_RESULT_BYTES_MAX);
        if !did.is_empty() && tool.is_some_and(|tool| matches!(tool, AGENT | SEND_MESSAGE | DISPATCH_TASK)) {
            words.push_str(&format!("\n\n[`{by}` {did}.]"));
        }
        words.extend(told.warnings.iter().map(|warning| format!("\n\n[The form of this answer: {warning}.]")));
        if !checked.is_empty() {
            words.push_str(&format!("\n\n{checked}"));
        }
        let child = envelope.from.strip_prefix("agent/").and_then(|id| id.parse().ok());
        if let Some(child) = child.filter(|_| self.frame.registry.get(SEND_MESSAGE).is_some()) {
            let address = self.task_id_of(child).unwrap_or_else(|| rows::handle(by, child));
            words.push_str(&format!("\n\n[To ask it more: `{SEND_MESSAGE}` to `{address}`.]"));
        }
        (words, is_error)
    }

    /// The cost of all agents that this turn has called, directly or through others: it belongs to the caller of the
    /// turn.
    pub(super) fn spent_by_called(&self) -> Result<Vec<Charge>, RuntimeError> {
        // A teammate only sends messages with `send_message`; reading all costs at the end of each of its turns would
        // be the most expensive part.
        let writes = |tool: &str| tool == SEND_MESSAGE && self.turn.teammate().is_some();
        if !SPAWNING.iter().any(|tool| !writes(tool) && self.frame.registry.get(tool).is_some()) {
            return Ok(Vec::new());
        }
        let census = ReadModel::new(&self.active.shared.journal);
        let Some(agent) = self.turn.origin.agent else { return Ok(Vec::new()) };
        let (_, costs) = census.costs_of(self.active.session, agent, self.turn_began(&census)?, now_ms())?;
        Ok(costs.into_iter().map(|cost| cost.charge).collect())
    }

    /// When the present turn began.
    fn turn_began(&self, census: &ReadModel<'_>) -> Result<i64, RuntimeError> {
        let Some(agent) = self.turn.origin.agent else { return Ok(i64::MAX) };
        let events = census.agent_events(agent)?;
        let began = events.iter().rfind(|(_, event)| matches!(event, Event::TurnStarted(_)));
        Ok(began.map_or(i64::MAX, |(at_ms, _)| *at_ms))
    }

    /// The id of the agent that a call starts.
    pub(super) fn delegate(&self, key: &str) -> AgentId {
        AgentId::new(Hash::of_fields(&[self.turn.stream.as_bytes(), key.as_bytes(), b"dispatch"]).uuid())
    }

    pub(super) fn exists(&self, child: AgentId) -> bool {
        // If it cannot be read, an unneeded message does no harm.
        self.active.shared.journal.head(&session::agent_stream(child)).map_or(true, |head| head > 0)
    }

    /// The calls for which an agent works, or is about to.
    fn calls_at_work(&self) -> impl Iterator<Item = String> {
        let calls = self.turn.pending().into_iter().filter_map(|effect| match effect {
            TurnEffect::RunTool { key, action, .. } => Some((key, action.kind)),
            _ => None,
        });
        let is_call = |key: &str, kind| self.turn.call(key).is_some_and(|call| team_tools::is_call(&call.tool, kind));
        calls.filter(move |(key, kind)| is_call(key, *kind)).map(|(key, _)| key)
    }

    /// The messages that stop the agents working for a stopped turn, for the commit that records the stop.
    pub(super) fn stopping(&self, by: &str, who: Option<&DecidedBy>) -> Vec<Envelope> {
        let worker = |key: &String| match self.turn.call(key).filter(|call| call.tool == SEND_MESSAGE) {
            // If the row cannot be read, no agent is stopped: it might be another one.
            Some(_) => self.gone_on_with(key).ok().flatten(),
            // No agent was started for a call that waits for an equal one.
            None => Some(self.delegate(key)).filter(|child| self.exists(*child)),
        };
        let envelope = |key: String| {
            Some(Envelope::new(
                derived(&[self.turn.stream.as_bytes(), key.as_bytes(), b"stop"]),
                &self.turn.stream,
                session::agent_stream(worker(&key)?),
                MessageKind::Shutdown,
                Body::Stop(Stop { by, who: who.cloned(), ..Stop::default() }),
                now_ms(),
            ))
        };
        self.calls_at_work().filter_map(envelope).collect()
    }

    /// Completes when the turn is stopped; ends silently once the answer has come, so that its time limit does not
    /// count for the next call.
    pub(super) fn cancelled(
        &self,
        key: String,
        child: Option<(AgentId, Option<Duration>)>,
        answered: CancellationToken,
    ) -> super::flight::Future {
        let (cancel, active, caller) =
            (self.running.cancel.clone(), Arc::clone(&self.active), self.turn.stream.clone());
        Box::pin(async move {
            if let Some((child, Some(timeout))) = child {
                let address = session::agent_stream(child);
                tokio::select! {
                    () = cancel.cancelled() => {}
                    () = answered.cancelled() => {}
                    () = work_clock::worked(timeout, || active.is_waiting(&address)) => {
                        let stop = Control::Interrupt(time_over());
                        // An agent that was just unloaded has answered; one that never ran will not.
                        let has_gone = active.tell(&address, stop).await.is_err() && !active.is_closing();
                        if has_gone && !active.has_answered(child, &caller) {
                            let words = "Its time is over, and no agent works on it any more.";
                            return EffectDone { flight: Flight::Tool(key.clone()), input: Some(failed(key, words)) };
                        }
                    }
                }
            }
            let is_answered = tokio::select! {
                () = cancel.cancelled() => false,
                () = answered.cancelled() => true,
            };
            if is_answered || active.is_closing() {
                // The session closes: the call goes on in the next process.
                return EffectDone { flight: Flight::Tool(key), input: None };
            }
            let content = vec![Part::text("Stopped before there was an answer.")];
            let flight = Flight::Tool(key.clone());
            let input = TurnInput::ToolEnded {
                key,
                content,
                is_error: true,
                ending: ToolOutcome::Interrupted,
                fatal: None,
                ms: 0,
            };
            EffectDone { flight, input: Some(input) }
        })
    }
}

fn failed(key: String, words: &str) -> TurnInput {
    let content = vec![Part::text(words)];
    TurnInput::ToolEnded { key, content, is_error: true, ending: ToolOutcome::Ran, fatal: None, ms: 0 }
}

/// Keeps the beginning of a text that is too long for a conversation.
pub(super) fn clip(text: &mut String, most: usize) {
    if text.len() > most {
        let bytes = text.len();
        text.truncate(text.floor_char_boundary(most));
        text.push_str(&format!("\n\n[The answer has {bytes} bytes; this is its beginning.]"));
    }
}
