//! Calling somebody: `dispatch_task`, `task` and `agent` start one, `send_message` goes on with one.
//!
//! A call is a task with an address to answer to. Whoever is called begins to exist in one commit with what they are told;
//! their answer comes by mail and is the call's result. Until then the call holds nothing, so a crash changes nothing: who
//! does it follows from the caller and the call's key.

use std::sync::Arc;
use std::time::Duration;

use max_team_core::calling::answer::{Told, quoted};
use max_team_core::calling::ending::not_done;
use max_team_core::calling::hands::{AGENT, Caller, SEND_MESSAGE, SPAWNING};
use max_team_core::chat::Part;
use max_team_core::event::{Ending, Event, Stopper};
use max_team_core::hash::Hash;
use max_team_core::id::AgentId;
use max_team_core::ledger::Charge;
use max_team_core::limits::{CALLS_PARALLEL_MAX, TOOL_RESULT_BYTES_MAX};
use max_team_core::mates::Life;
use max_team_core::message::{Assignment, Envelope, Kind};
use max_team_core::policy::{By, Deed};
use max_team_core::team::{Isolation, Settings};
use max_team_core::turn::{Effect, Input, Turn};
use max_team_journal::Commit;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::acts::Done;
use super::cache::Looked;
use super::flight::{Flight, Landed};
use super::mail::{derived, text_at};
use super::members::Member;
use super::{Agent, Control, Extra, Newcomer};
use crate::census::{Census, Cost};
use crate::error::RuntimeError;
use crate::floor::Claim;
use crate::handle::Mate;
use crate::plan::letters;
use crate::rows::{self, AgentRow};
use crate::shared::{commit_at, now_ms};
use crate::team_tools::{self, Call, DISPATCH_TASK, Way};
use crate::worktree::{self, Worker};
use crate::{beat, session};

/// What tells the letter of a `send_message` call from others of the same call.
const MESSAGE: &[u8] = b"message";

/// What an expert is told about the form of what it gets and gives.
pub(crate) const EXPERT: &str = include_str!("../../../../prompts/expert.md");

/// The name of what stops an agent that has worked as long as it may.
pub const TIME_OVER: &str = "its time is over";

pub(super) fn time_over() -> Stopper {
    Stopper { name: TIME_OVER.to_owned(), who: Some(By::Rule(TIME_OVER.to_owned())), ends: false, held: None }
}

impl Agent {
    /// Lets somebody do something. The result comes by mail.
    pub(super) async fn call(&mut self, key: &str, call: &Call) -> Result<Option<Done>, RuntimeError> {
        if self.goes_on(key)? {
            return Ok(None);
        }
        let call = &self.to_member(call);
        match self.callee(call) {
            Ok((mate, depth)) => self.engage(key, call, mate, depth).await,
            Err(words) => Ok(Some(Done::wrong(words))),
        }
    }

    /// A lead's call of a member is a dispatch, with each of the tools. If the call is not allowed, the error names the
    /// allowed agents.
    fn to_member(&self, call: &Call) -> Call {
        let is_member = self.leads() && self.floor.mate(&call.who).is_some();
        let may_call = || self.floor.callable(self.frame.definition(), &call.who).is_ok();
        let way = if is_member && may_call() { Way::Dispatch } else { call.way };
        Call { way, ..call.clone() }
    }

    /// Whether somebody was called before a crash, and is at it: whether they could be called now is no longer the question.
    pub(super) fn goes_on(&mut self, key: &str) -> Result<bool, RuntimeError> {
        let child = self.delegate(key);
        if self.floor.shared.journal.head(&session::agent_stream(child))? == 0 {
            return Ok(false);
        }
        let (turn, _) = self.floor.shared.fold_agent(child)?;
        self.floor.seat_agent(child)?;
        self.wait_for(key, child, turn.settings().and_then(|settings| settings.constraints.timeout_ms));
        Ok(true)
    }

    /// Lets somebody begin with a call, unless it has its answer or is made by somebody else.
    pub(super) async fn engage(
        &mut self,
        key: &str,
        call: &Call,
        mate: Mate,
        depth: u32,
    ) -> Result<Option<Done>, RuntimeError> {
        let child = self.delegate(key);
        let (text, cached) = match self.look(key, &mate, call)? {
            Looked::Answered(done) => return Ok(Some(done)),
            Looked::Awaited => return Ok(None),
            Looked::Make(text, cached) => (text, cached),
        };
        let is_apart = (call.background || mate.definition.background) && self.stays();
        if call.background && !is_apart {
            return Ok(Some(Done::wrong(
                "only who stays has something done in the background: leave `run_in_background` out",
            )));
        }
        if !is_apart && self.queues(key, call.way) {
            return Ok(None);
        }
        let (cache, claim) = cached.unzip();
        let assignment = Assignment {
            reply_to: self.stream.clone(),
            plan: None,
            corrects: None,
            task: key.to_owned(),
            attempt: 1,
            title: call.title.clone(),
            depth,
            cache: cache.map(Box::new),
            skill: call.skill.clone(),
            life: Life::Call,
        };
        let text = if call.way == Way::Dispatch { letters::delegated(&text) } else { text };
        let mate = self.apart(child, mate, call.isolation);
        if self.is_preparing(key, &mate.definition.name, &mate.settings) {
            return Ok(None);
        }
        if is_apart {
            return self.begin_apart(child, assignment, mate, &text).map(Some);
        }
        self.start(child, assignment.into(), &mate, &text).await?;
        claim.into_iter().for_each(Claim::begun);
        self.wait_for(key, child, mate.settings.constraints.timeout_ms);
        Ok(None)
    }

    /// The same somebody with a copy of the project to work in, if it is to have one. Whoever is called from within a copy
    /// works in that one.
    pub(super) fn apart(&self, child: AgentId, mate: Mate, isolation: Isolation) -> Mate {
        if !mate.settings.permissions.copy.is_empty() || !worktree::wanted(mate.definition.isolation, isolation) {
            return mate;
        }
        let settings = worktree::within(&self.floor.shared, child, mate.settings);
        Mate { settings, ..mate }
    }

    /// Whether somebody's copy is not there yet. It is made beside everything else, and the call is looked at again
    /// once it is; if it cannot be made, the call has failed.
    pub(super) fn is_preparing(&mut self, key: &str, by: &str, settings: &Settings) -> bool {
        let unmade = self.unmade(by, settings);
        let any = unmade.is_some();
        unmade.into_iter().for_each(|worker| self.make_copy(key, worker));
        any
    }

    /// Whoever is to work in a copy that is not there yet.
    pub(super) fn unmade(&self, by: &str, settings: &Settings) -> Option<Worker> {
        if settings.permissions.copy.is_empty() {
            return None;
        }
        let (id, project) = (worktree::id_of(settings), self.floor.root.clone());
        let worker = Worker { id, project, settings: settings.clone(), by: by.to_owned(), named: Vec::new() };
        worker.place(&self.floor.shared).is_err().then_some(worker)
    }

    pub(super) fn make_copy(&mut self, key: &str, worker: Worker) {
        self.preparing.insert(key.to_owned());
        let (floor, cancel, key) = (Arc::clone(&self.floor), self.cancel.clone(), key.to_owned());
        self.flights.push(Box::pin(async move {
            let made = worker.prepare(&floor.shared, &cancel).await;
            let flight = Flight::Tool(key.clone());
            let input = made.err().filter(|_| !floor.is_closing()).map(|words| {
                let ending = if cancel.is_cancelled() { Ending::Interrupted } else { Ending::Ran };
                let content = vec![Part::text(words)];
                Input::ToolEnded { key, content, is_error: true, ending, fatal: None, ms: 0 }
            });
            Landed { flight, input }
        }));
    }

    /// Whom a call means, as they are for this caller, and how deep they then are.
    fn callee(&self, call: &Call) -> Result<(Mate, u32), String> {
        if call.text.trim().is_empty() {
            return Err("`description` is missing: the member sees nothing of this conversation".to_owned());
        }
        if call.way == Way::Dispatch {
            let mate = self.floor.mate(&call.who).ok_or_else(|| self.no_member(&call.who))?;
            let settings = mate.settings.clone().bounded_by(self.frame.settings());
            return Ok((Mate { settings, ..mate }, self.depth()));
        }
        let mate = self.floor.callable(self.frame.definition(), &call.who)?;
        self.hire(mate, call.way)
    }

    /// Somebody as they are for this caller, and how deep they then are.
    pub(super) fn hire(&self, mate: Mate, way: Way) -> Result<(Mate, u32), String> {
        let depth = self.depth();
        let deepest = self.floor.call_depth();
        if depth >= deepest {
            return Err(format!("calls go at most {deepest} deep, and this is as deep: do it yourself"));
        }
        // What those whom a lead of members calls may do is what the session may.
        let own = &self.frame.definition().tools;
        let caller = Caller { tools: (!self.leads()).then_some(own.as_slice()), deeper: depth + 1 < deepest };
        let is_member = self.leads() && self.floor.mate(&mate.definition.name).is_some();
        let mut mate = self.floor.called(mate, caller);
        // A type that comes with the program has its own way to answer, unless it keeps what it finds.
        if way == Way::Arguments && (!mate.definition.builtin || mate.definition.cache.is_some()) {
            let prompt = format!("{}\n\n{}", mate.definition.prompt.trim_end(), EXPERT);
            Arc::make_mut(&mut mate.definition).prompt = prompt;
        }
        let Mate { definition, settings } = mate;
        let settings = settings.bounded_by(self.frame.settings());
        let structured = definition.output.is_some();
        // A member is as deep on every way to it.
        let depth = if is_member { depth } else { depth + 1 };
        Ok((Mate { definition, settings: Settings { structured, ..settings } }, depth))
    }

    /// Whether this is the lead of members: it has no hands of its own.
    pub(super) fn leads(&self) -> bool {
        self.lead && self.floor.team().is_some_and(|team| !team.members.is_empty())
    }

    /// How many calls deep this agent is.
    fn depth(&self) -> u32 {
        self.turn.assignment().map_or(0, |assignment| assignment.depth)
    }

    /// Whether nobody more can work for this agent now: the call is looked at again once a place is free.
    fn queues(&mut self, key: &str, way: Way) -> bool {
        let places = match way {
            Way::Dispatch => self.floor.team().map_or(1, |team| usize::try_from(team.max_parallel).unwrap_or(1)),
            Way::Arguments | Way::Words => CALLS_PARALLEL_MAX,
        };
        let at_work = self.preparing.iter().filter(|other| !self.delegated.contains_key(*other));
        let others = self.delegated.keys().chain(at_work).filter(|other| *other != key).count();
        let is_full = others >= places && !self.delegated.contains_key(key);
        if is_full {
            self.flights.push(self.awaiting(key, self.freed.clone()));
        }
        is_full
    }

    /// Lands once somebody has left who hears what becomes of its changes: where it works may go with them.
    fn awaiting_leave(&self, key: &str, child: AgentId) -> super::flight::Future {
        let stopped = self.cancelled(key.to_owned(), None, CancellationToken::new());
        let (floor, flight) = (Arc::clone(&self.floor), Flight::Tool(key.to_owned()));
        let address = session::agent_stream(child);
        Box::pin(async move {
            tokio::select! {
                biased;
                landed = stopped => landed,
                () = floor.left(&address) => Landed { flight, input: None },
            }
        })
    }

    /// A call is over: whichever waits for a place looks again.
    pub(super) fn is_over(&mut self, key: &str) {
        if let Some(answered) = self.delegated.remove(key) {
            answered.cancel();
        }
        std::mem::take(&mut self.freed).cancel();
    }

    fn wait_for(&mut self, key: &str, child: AgentId, timeout_ms: Option<u64>) {
        let answered = self.delegated.entry(key.to_owned()).or_default().clone();
        let timeout = timeout_ms.map(Duration::from_millis);
        self.flights.push(self.cancelled(key.to_owned(), Some((child, timeout)), answered));
    }

    /// Lets somebody begin to exist with what a call is about.
    async fn start(
        &mut self,
        child: AgentId,
        assignment: Arc<Assignment>,
        mate: &Mate,
        text: &str,
    ) -> Result<(), RuntimeError> {
        self.floor.bind(&self.stream, self.frame.settings());
        let letter = self.assigning(child, &assignment, text, b"dispatch");
        let mut commit = commit_at(now_ms());
        commit.fence = Some(self.floor.fence.clone());
        commit.actor = format!("agent:{}", self.origin.name);
        self.welcome(child, mate, assignment, letter, commit).await
    }

    /// Lets somebody begin with a letter in hand, in one commit with whatever else that holds.
    pub(super) async fn welcome(
        &mut self,
        child: AgentId,
        mate: &Mate,
        assignment: Arc<Assignment>,
        letter: Envelope,
        mut commit: Commit,
    ) -> Result<(), RuntimeError> {
        let settings = Arc::new(mate.settings.clone());
        let mut newcomer =
            Newcomer::welcome(&self.floor, child, &mate.definition, settings, assignment, &letter, &mut commit)?;
        if newcomer.as_ref().is_some_and(Newcomer::has_begun) {
            self.floor.shared.herald.letter(&letter);
        } else {
            commit.sends.push(letter);
        }
        let at_ms = commit.at_ms;
        self.floor.commit(commit, || newcomer.iter_mut().for_each(|newcomer| newcomer.prepare(at_ms))).await?;
        // Whoever watches hears of a call before anything that comes of it.
        self.tell().await;
        newcomer.into_iter().for_each(|newcomer| newcomer.begin(&self.floor));
        Ok(())
    }

    pub(super) fn assigning(&self, child: AgentId, assignment: &Assignment, text: &str, what: &[u8]) -> Envelope {
        Envelope::new(
            derived(&[self.stream.as_bytes(), assignment.task.as_bytes(), what]),
            &self.stream,
            session::agent_stream(child),
            Kind::TaskAssign,
            json!({ "text": text, "assignment": assignment }),
            now_ms(),
        )
    }

    /// Goes on with an agent that was called before. The result comes by mail.
    pub(super) async fn go_on_with(&mut self, key: &str, to: &str, text: &str) -> Result<Option<Done>, RuntimeError> {
        if let Some(child) = self.gone_on_with(key)? {
            // The message was sent before a crash: a name may mean another agent by now, or one that works because of it.
            self.floor.bind(&self.stream, self.frame.settings());
            self.floor.seat_agent(child)?;
            let (turn, _) = self.floor.shared.fold_agent(child)?;
            let name = self.floor.row_of(child).map(|row| row.name).unwrap_or_default();
            self.wait_for(key, child, self.timeout_of(&turn, &name));
            return Ok(None);
        }
        let (AgentRow { agent: child, name, .. }, given) = match (self.addressed(key, to)?, self.member(to)?) {
            (Ok(found), _) => found,
            (Err(_), Some(Member::Over(row, given))) => (row, given),
            (Err(_), Some(Member::Working(row))) => return Ok(Some(self.note_to(key, &row, text))),
            (Err(_), Some(Member::Failed(task))) => {
                let words =
                    format!("task `{task}` failed: decide with `task_update`; `retry` with a `note` tells its owner");
                return Ok(Some(Done::wrong(words)));
            }
            (Err(_), Some(Member::Several(words))) | (Err(words), None) => return Ok(Some(Done::wrong(words))),
        };
        if self.queues(key, Way::Words) {
            return Ok(None);
        }
        let (turn, _) = self.floor.shared.fold_agent(child)?;
        self.floor.bind(&self.stream, self.frame.settings());
        if turn.reviewing().is_some() {
            self.floor.seat_agent(child)?;
            // One that is on its way out needs no telling.
            drop(self.floor.tell(&session::agent_stream(child), Control::GoOn).await);
            // The call waits for no user here, though its result comes by mail.
            self.preparing.insert(key.to_owned());
            self.flights.push(self.awaiting_leave(key, child));
            return Ok(None);
        }
        // What it had done was taken or dropped, and its copy with it.
        if turn.settings().is_some_and(|settings| self.is_preparing(key, &name, settings)) {
            return Ok(None);
        }
        // More than one attempt says that it had been done with what it was started for.
        let title = team_tools::title(text);
        let given = Arc::unwrap_or_clone(given);
        let (task, attempt) = (key.to_owned(), given.attempt + 1);
        let assignment = Assignment { task, attempt, title, cache: None, life: Life::Call, ..given };
        let letter = self.assigning(child, &assignment, text, MESSAGE);
        self.commit(Vec::new(), Extra::send(letter)).await?;
        self.wait_for(key, child, self.timeout_of(&turn, &name));
        Ok(None)
    }

    /// How long an agent that was called before may work: as others of its type may now, or as it might when it began.
    fn timeout_of(&self, turn: &Turn, name: &str) -> Option<u64> {
        let now = self.floor.callee(name).map(|mate| mate.settings.bounded_by(self.frame.settings()));
        let settings = now.as_ref().or(turn.settings().map(|settings| &**settings));
        settings.and_then(|settings| settings.constraints.timeout_ms)
    }

    /// The agent that the message of a call of `send_message` went to, if it went to one that answers the call.
    fn gone_on_with(&self, key: &str) -> Result<Option<AgentId>, RuntimeError> {
        let letter = derived(&[self.stream.as_bytes(), key.as_bytes(), MESSAGE]);
        let address = self.floor.shared.journal.addressee(letter)?;
        Ok(address.and_then(|address| address.strip_prefix("agent/")?.parse().ok()))
    }

    /// Somebody whom this agent has called in an earlier answer. Those of the same answer do not count, so that a name
    /// means the same somebody however often it is looked up.
    fn addressed(&self, key: &str, to: &str) -> Result<Result<(AgentRow, Arc<Assignment>), String>, RuntimeError> {
        let answer = |key: &str| key.split_once('.').and_then(|(answer, _)| answer.parse::<u32>().ok());
        let (to, now) = (to.trim(), answer(key));
        let table = rows::agents_of(&self.floor.session.to_string());
        let mut known = Vec::new();
        for (_, row) in rows::rows::<AgentRow>(&self.floor.shared.journal, &table)? {
            let own = row.assignment.as_ref().filter(|given| given.reply_to == self.stream && given.plan.is_none());
            // Whoever was not called by an answer of ours, such as the expert that looks back, is not ours to address.
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

    /// What a call's result says to the model, and whether it went wrong.
    pub(super) fn told(&self, key: &str, letter: &Envelope) -> (String, bool) {
        let is_error = letter.body.get("is_error").and_then(serde_json::Value::as_bool).unwrap_or_default();
        let text = text_at(&letter.body, "text");
        let tool = self.turn.call(key).map(|call| call.tool.as_str());
        let by = text_at(&letter.body, "by");
        if by.is_empty() || !tool.is_some_and(|tool| team_tools::is_call(tool, Deed::Team)) {
            return (quoted(&text), is_error);
        }
        if let Some(value) = letter.body.get("structured").filter(|value| !value.is_null()) {
            let mut words = format!("{value:#}");
            clip(&mut words, TOOL_RESULT_BYTES_MAX);
            return (words, is_error);
        }
        let mut told = Told::read(&text_at(&letter.body, "output"));
        told.text = quoted(&told.text);
        let is_silent = letter.body.get("end").and_then(serde_json::Value::as_str) == Some("empty");
        let mut words = match (is_error && !is_silent, told.text.is_empty(), told.result.is_some()) {
            (false, true, true) => format!("`{by}` found something and said nothing about it."),
            (false, true, false) => format!("`{by}` answered nothing."),
            (false, false, _) => told.text,
            (true, ..) if not_done(&told.text).is_some() => told.text,
            (true, empty, _) => {
                let error = text_at(&letter.body, "error");
                let so_far = if empty { String::new() } else { format!("\n\nSo far it had said:\n{}", told.text) };
                format!("`{by}` did not finish: {error}.{so_far}")
            }
        };
        clip(&mut words, TOOL_RESULT_BYTES_MAX);
        let did = text_at(&letter.body, "did");
        if !did.is_empty() && tool.is_some_and(|tool| matches!(tool, AGENT | SEND_MESSAGE | DISPATCH_TASK)) {
            words.push_str(&format!("\n\n[`{by}` {did}.]"));
        }
        words.extend(told.warnings.iter().map(|warning| format!("\n\n[The form of this answer: {warning}.]")));
        let child = letter.from.strip_prefix("agent/").and_then(|id| id.parse().ok());
        if let Some(child) = child.filter(|_| self.frame.registry.get(SEND_MESSAGE).is_some()) {
            words.push_str(&format!("\n\n[`{SEND_MESSAGE}` to `{}` goes on with it.]", rows::handle(&by, child)));
        }
        (words, is_error)
    }

    /// What those have spent whom this turn has called, and whom they have: it was spent for whoever waits for the turn.
    pub(super) fn spent_by_called(&self) -> Result<Vec<Charge>, RuntimeError> {
        // A teammate only writes with `send_message`; looking at everybody's costs at each of its ends would cost the most.
        let writes = |tool: &str| tool == SEND_MESSAGE && self.turn.mate().is_some();
        if !SPAWNING.iter().any(|tool| !writes(tool) && self.frame.registry.get(tool).is_some()) {
            return Ok(Vec::new());
        }
        let census = Census::new(&self.floor.shared.journal);
        let Some(agent) = self.origin.agent else { return Ok(Vec::new()) };
        let (_, costs) = census.costs_of(self.floor.session, agent, self.turn_began(&census)?, now_ms())?;
        let charge = |cost: Cost| {
            let Cost { model, calls, usage, nano, unknown_nano, .. } = cost;
            Charge { model, calls, usage, nano, unknown_nano }
        };
        Ok(costs.into_iter().map(charge).collect())
    }

    /// When the turn that runs began.
    fn turn_began(&self, census: &Census<'_>) -> Result<i64, RuntimeError> {
        let Some(agent) = self.origin.agent else { return Ok(i64::MAX) };
        let events = census.agent_events(agent)?;
        let began = events.iter().rfind(|(_, event)| matches!(event, Event::TurnStarted(_)));
        Ok(began.map_or(i64::MAX, |(at_ms, _)| *at_ms))
    }

    /// Who does what a call has delegated.
    pub(super) fn delegate(&self, key: &str) -> AgentId {
        AgentId::new(Hash::of_fields(&[self.stream.as_bytes(), key.as_bytes(), b"dispatch"]).uuid())
    }

    pub(super) fn exists(&self, child: AgentId) -> bool {
        // If it cannot be read, the letter is no harm.
        self.floor.shared.journal.head(&session::agent_stream(child)).map_or(true, |head| head > 0)
    }

    /// The calls for which somebody is, or is about to be, at work.
    fn calls_at_work(&self) -> impl Iterator<Item = String> {
        let calls = self.turn.pending().into_iter().filter_map(|effect| match effect {
            Effect::RunTool { key, action, .. } => Some((key, action.deed)),
            _ => None,
        });
        let is_call = |key: &str, deed| self.turn.call(key).is_some_and(|call| team_tools::is_call(&call.tool, deed));
        calls.filter(move |(key, deed)| is_call(key, *deed)).map(|(key, _)| key)
    }

    /// Whoever works for a turn that is stopped is stopped too: by letters in the commit that says so.
    pub(super) fn stopping(&self, by: &Stopper) -> Vec<Envelope> {
        let worker = |key: &String| match self.turn.call(key).filter(|call| call.tool == SEND_MESSAGE) {
            // If the row cannot be read, no agent is stopped: it might be another one.
            Some(_) => self.gone_on_with(key).ok().flatten(),
            // Nobody began to exist for a call that somebody else makes.
            None => Some(self.delegate(key)).filter(|child| self.exists(*child)),
        };
        let letter = |key: String| {
            Some(Envelope::new(
                derived(&[self.stream.as_bytes(), key.as_bytes(), b"stop"]),
                &self.stream,
                session::agent_stream(worker(&key)?),
                Kind::Shutdown,
                json!({ "by": by.name, "who": by.who }),
                now_ms(),
            ))
        };
        self.calls_at_work().filter_map(letter).collect()
    }

    /// Lands when the turn is stopped, or says nothing once the answer has come: its time is not that of the next call.
    pub(super) fn cancelled(
        &self,
        key: String,
        child: Option<(AgentId, Option<Duration>)>,
        answered: CancellationToken,
    ) -> super::flight::Future {
        let (cancel, floor, caller) = (self.cancel.clone(), Arc::clone(&self.floor), self.stream.clone());
        Box::pin(async move {
            if let Some((child, Some(timeout))) = child {
                let address = session::agent_stream(child);
                tokio::select! {
                    () = cancel.cancelled() => {}
                    () = answered.cancelled() => {}
                    () = beat::worked(timeout, || floor.is_waiting(&address)) => {
                        let stop = Control::Interrupt { by: time_over(), all: true };
                        // One that has just gone home has answered; of one that never sat down nothing will come.
                        let has_gone = floor.tell(&address, stop).await.is_err() && !floor.is_closing();
                        if has_gone && !floor.has_written(&address, &caller) {
                            let words = "Its time is over, and no agent works on it any more.";
                            return Landed { flight: Flight::Tool(key.clone()), input: Some(failed(key, words)) };
                        }
                    }
                }
            }
            let is_answered = tokio::select! {
                () = cancel.cancelled() => false,
                () = answered.cancelled() => true,
            };
            if is_answered || floor.is_closing() {
                // Parked, not stopped: it goes on in the next process.
                return Landed { flight: Flight::Tool(key), input: None };
            }
            let content = vec![Part::text("Stopped before there was an answer.")];
            let flight = Flight::Tool(key.clone());
            let input =
                Input::ToolEnded { key, content, is_error: true, ending: Ending::Interrupted, fatal: None, ms: 0 };
            Landed { flight, input: Some(input) }
        })
    }
}

fn failed(key: String, words: &str) -> Input {
    let content = vec![Part::text(words)];
    Input::ToolEnded { key, content, is_error: true, ending: Ending::Ran, fatal: None, ms: 0 }
}

/// Keeps the beginning of a text that is too long for a conversation.
pub(super) fn clip(text: &mut String, most: usize) {
    if text.len() > most {
        let bytes = text.len();
        text.truncate(text.floor_char_boundary(most));
        text.push_str(&format!("\n\n[The answer has {bytes} bytes; this is its beginning.]"));
    }
}
