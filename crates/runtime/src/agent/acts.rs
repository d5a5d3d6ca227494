//! What an agent does to the team itself: proposes, delegates, asks a colleague, notes a task.
//!
//! Such a call has no effect outside the journal: what it does is committed together with its result, so it can be
//! made again after a crash without harm. A delegation's result comes by mail; until then the call holds nothing.
//! Nothing here runs anything that was not approved.

use std::sync::Arc;
use std::time::Duration;

use max_team_core::chat::Part;
use max_team_core::event::{Event, PlanSubmitted};
use max_team_core::hash::Hash;
use max_team_core::id::{AgentId, PlanId};
use max_team_core::message::{Assignment, Envelope, Kind};
use max_team_core::turn::{Effect, Input};
use serde_json::{Value, json};
use uuid::Uuid;

use super::flight::{Flight, Landed};
use super::mail::derived;
use super::{Agent, Control, Extra, Newcomer};
use crate::error::RuntimeError;
use crate::handle::Mate;
use crate::plan::{letters, plan_stream, propose};
use crate::shared::{commit_at, now_ms};
use crate::team_tools::{self, Act, DISPATCH_TASK};
use crate::worktree::Worker;
use crate::{beat, session, worktree};

/// What a call came to.
struct Done {
    words: String,
    is_error: bool,
    events: Vec<Event>,
    extra: Extra,
}

impl Done {
    fn said(words: impl Into<String>) -> Self {
        Self { words: words.into(), is_error: false, events: Vec::new(), extra: Extra::default() }
    }

    fn wrong(words: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::said(words) }
    }
}

impl Agent {
    /// Starts what is pending; `true` if something was done to the team and there may be more.
    pub(super) async fn launch_and_act(&mut self) -> Result<bool, RuntimeError> {
        let acts = self.launch();
        let any = !acts.is_empty();
        for key in acts {
            self.act(key).await?;
        }
        Ok(any)
    }

    /// Whether a call's result comes by mail.
    pub(super) fn waits_for_mail(&self, key: &str) -> bool {
        self.turn.call(key).is_some_and(|call| team_tools::answers_by_mail(&call.tool))
    }

    async fn act(&mut self, key: String) -> Result<(), RuntimeError> {
        let Some(call) = self.turn.call(&key) else { return Ok(()) };
        let (tool, input) = (call.tool.clone(), call.input.clone());
        let done = match Act::read(&tool, input) {
            Err(words) => Done::wrong(words),
            Ok(Act::SubmitPlan(submit)) => self.submit(&key, submit),
            Ok(Act::Create(task)) => self.note(task),
            Ok(Act::Update(update)) => self.update(&key, &update)?,
            Ok(Act::Query(query)) => self.query(&query)?,
            Ok(Act::Dispatch(dispatch)) => match self.dispatch(&key, &dispatch).await? {
                None => return Ok(()),
                Some(done) => done,
            },
            Ok(Act::Clarify { question }) => match self.clarify(&key, &question).await? {
                None => return Ok(()),
                Some(done) => done,
            },
        };
        self.in_flight.remove(&Flight::Tool(key.clone()));
        let content = vec![Part::text(done.words)];
        let ended = Input::ToolEnded { key, content, is_error: done.is_error, interrupted: false, fatal: None, ms: 0 };
        let mut events = done.events;
        events.extend(self.decide(ended));
        self.commit(events, done.extra).await
    }

    fn submit(&self, key: &str, submit: team_tools::Submit) -> Done {
        let Some(team) = self.floor.team() else { return Done::wrong("there is no team in this session") };
        let mut draft = submit.draft;
        if draft.tasks.is_empty() {
            draft.tasks = self.turn.drafts().to_vec();
        }
        let plan = PlanId::new(Uuid::now_v7());
        let by = self.origin.name.to_string();
        let revises = submit.revises.or_else(|| propose::unfinished(&self.floor));
        match propose::propose(&self.floor, &team, plan, draft, by, revises) {
            Err(words) => Done::wrong(format!("{words}. Mend it and submit it again.")),
            Ok(proposed) => {
                let (letter, rows) = letters::proposal(&self.floor, &self.stream, *proposed);
                let words = "The plan is before the user now. Nothing runs until they approve it; you will be told.";
                Done {
                    events: vec![Event::PlanSubmitted(PlanSubmitted { plan, key: key.to_owned() })],
                    extra: Extra { projections: rows, ..Extra::send(letter) },
                    ..Done::said(words)
                }
            }
        }
    }

    fn note(&self, mut task: max_team_core::plan::Task) -> Done {
        if task.id.is_empty() {
            task.id = format!("t{}", self.turn.drafts().len() + 1);
        }
        let words = format!(
            "Noted as `{}`; nothing runs yet. Call `submit_plan` when all tasks are written down, or `dispatch_task` \
             for this one alone.",
            task.id
        );
        Done { events: vec![Event::TaskDrafted(task)], ..Done::said(words) }
    }

    fn update(&self, key: &str, update: &team_tools::Update) -> Result<Done, RuntimeError> {
        if let Some(draft) = self.turn.drafts().iter().find(|draft| draft.id == update.task_id) {
            let task = update.over(draft);
            return Ok(Done { events: vec![Event::TaskDrafted(task)], ..Done::said("Changed; nothing runs yet.") });
        }
        let (plan, _) = match propose::find(&self.floor, update.plan, &update.task_id)? {
            Some(found) => found,
            None => return Ok(Done::wrong(format!("there is no open plan with a task `{}`", update.task_id))),
        };
        if let Some(name) = update.agent.as_ref().filter(|name| self.floor.mate(name).is_none()) {
            return Ok(Done::wrong(self.no_member(name)));
        }
        let known = self.floor.team().map(|team| team.models.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
        if let Some(name) = update.model.as_ref().filter(|name| !known.contains(name)) {
            return Ok(Done::wrong(format!("there is no model `{name}` here; there are {}", known.join(", "))));
        }
        let said = match update.says() {
            Ok(said) => said,
            Err(words) => return Ok(Done::wrong(words)),
        };
        let letter = Envelope {
            id: derived(&[self.stream.as_bytes(), key.as_bytes(), b"update"]),
            from: self.stream.clone(),
            to: plan_stream(plan),
            kind: Kind::TaskUpdate,
            body: json!({ "task": update.task_id, "says": said, "by": &*self.origin.name }),
            reply_to: None,
            cause: None,
            sent_at_ms: now_ms(),
        };
        Ok(Done { extra: Extra::send(letter), ..Done::said("The plan goes on accordingly.") })
    }

    fn no_member(&self, name: &str) -> String {
        let team = self.floor.team();
        let members = team.iter().flat_map(|team| &team.members);
        let names: Vec<&str> = members.map(|mate| mate.definition.name.as_str()).collect();
        format!("there is no member `{name}`; the members are {}", names.join(", "))
    }

    fn query(&self, query: &team_tools::Query) -> Result<Done, RuntimeError> {
        Ok(Done::said(propose::describe(&self.floor, query, self.turn.drafts())?))
    }

    /// Gives one member something to do. The result comes by mail.
    async fn dispatch(&mut self, key: &str, dispatch: &team_tools::Dispatch) -> Result<Option<Done>, RuntimeError> {
        let drafted = dispatch.task_id.as_ref().and_then(|id| self.turn.drafts().iter().find(|draft| draft.id == *id));
        let name = drafted.map_or(dispatch.agent.as_str(), |draft| draft.agent.as_str());
        let text = drafted.map_or(dispatch.description.as_str(), |draft| draft.description.as_str());
        let Some(mut mate) = self.floor.mate(name) else {
            return Ok(Some(Done::wrong(self.no_member(name))));
        };
        if text.trim().is_empty() {
            return Ok(Some(Done::wrong("`description` is missing: the member sees nothing of this conversation")));
        }
        let places = self.floor.team().map_or(1, |team| usize::try_from(team.max_parallel).unwrap_or(1));
        if self.delegated.len() >= places && !self.delegated.contains(key) {
            let words =
                format!("{places} members are at work for you already; wait for their answers, then call again");
            return Ok(Some(Done::wrong(words)));
        }
        let child = self.delegate(key);
        if worktree::wanted(mate.definition.isolation, drafted.map(|draft| draft.isolation).unwrap_or_default()) {
            mate.settings = worktree::within(&self.floor.shared, child, mate.settings);
            let (settings, by) = (mate.settings.clone(), mate.definition.name.clone());
            let worker = Worker { agent: child, project: self.floor.root.clone(), settings, by };
            if let Err(words) = worker.prepare(&self.floor.shared, &self.cancel).await {
                return Ok(Some(Done::wrong(words)));
            }
        }
        self.delegated.insert(key.to_owned());
        if self.floor.shared.journal.head(&session::agent_stream(child))? == 0 {
            let text = letters::delegated(text);
            self.start(child, key, &mate, &text).await?;
        } else {
            self.floor.seat_agent(child)?;
        }
        let timeout = mate.settings.constraints.timeout_ms.map(Duration::from_millis);
        self.flights.push(self.cancelled(key.to_owned(), Some((child, timeout))));
        Ok(None)
    }

    /// Lets somebody begin to exist with what a call has delegated.
    async fn start(&mut self, child: AgentId, key: &str, mate: &Mate, text: &str) -> Result<(), RuntimeError> {
        let assignment = Assignment { reply_to: self.stream.clone(), plan: None, task: key.to_owned(), attempt: 1 };
        let letter = Envelope {
            id: derived(&[self.stream.as_bytes(), key.as_bytes(), b"dispatch"]),
            from: self.stream.clone(),
            to: session::agent_stream(child),
            kind: Kind::TaskAssign,
            body: json!({ "text": text, "assignment": assignment }),
            reply_to: None,
            cause: None,
            sent_at_ms: now_ms(),
        };
        let mut commit = commit_at(now_ms());
        commit.fence = Some(self.floor.fence.clone());
        commit.actor = format!("agent:{}", self.origin.name);
        let settings = mate.settings.clone();
        let mut newcomer = Newcomer::welcome(&self.floor, child, mate, settings, assignment, &letter, &mut commit)?;
        if newcomer.as_ref().is_some_and(Newcomer::has_begun) {
            self.floor.shared.audit_letter(&letter);
        } else {
            commit.sends.push(letter);
        }
        let at_ms = commit.at_ms;
        self.floor.commit(commit, || newcomer.iter_mut().for_each(|newcomer| newcomer.prepare(at_ms))).await?;
        newcomer.into_iter().for_each(|newcomer| newcomer.begin(&self.floor));
        Ok(())
    }

    /// Asks whoever gave the task. The answer comes by mail.
    async fn clarify(&mut self, key: &str, question: &str) -> Result<Option<Done>, RuntimeError> {
        let assignment = self.turn.assignment().filter(|assignment| assignment.plan.is_some()).cloned();
        let Some(assignment) = assignment else {
            return Ok(Some(Done::said(
                "Nobody can answer right now: end with your question as your answer, and say what you have so far.",
            )));
        };
        let letter = Envelope {
            id: derived(&[self.stream.as_bytes(), key.as_bytes(), b"clarify"]),
            from: self.stream.clone(),
            to: assignment.reply_to.clone(),
            kind: Kind::NeedClarify,
            body: json!({ "assignment": assignment, "question": question, "call": key, "from": &*self.origin.name }),
            reply_to: None,
            cause: None,
            sent_at_ms: now_ms(),
        };
        if !self.floor.shared.journal.has_mail(letter.id)? {
            self.commit(Vec::new(), Extra::send(letter)).await?;
        }
        self.flights.push(self.cancelled(key.to_owned(), None));
        Ok(None)
    }

    /// Who does what a call has delegated.
    pub(super) fn delegate(&self, key: &str) -> AgentId {
        AgentId::new(Hash::of_fields(&[self.stream.as_bytes(), key.as_bytes(), b"dispatch"]).uuid())
    }

    /// Whoever works for a turn that is stopped is stopped too: by letters in the commit that says so.
    pub(super) fn stopping(&self, by: &str) -> Vec<Envelope> {
        let pending = self.turn.pending().into_iter();
        let keys = pending.filter_map(|effect| match effect {
            Effect::RunTool { key, .. } => Some(key),
            _ => None,
        });
        let delegated = keys.filter(|key| self.turn.call(key).is_some_and(|call| call.tool == DISPATCH_TASK));
        let letters = delegated.map(|key| Envelope {
            id: derived(&[self.stream.as_bytes(), key.as_bytes(), b"stop"]),
            from: self.stream.clone(),
            to: session::agent_stream(self.delegate(&key)),
            kind: Kind::Shutdown,
            body: json!({ "by": by }),
            reply_to: None,
            cause: None,
            sent_at_ms: now_ms(),
        });
        letters.collect()
    }

    /// Lands when the turn is stopped.
    fn cancelled(&self, key: String, child: Option<(AgentId, Option<Duration>)>) -> super::flight::Future {
        let (cancel, floor) = (self.cancel.clone(), Arc::clone(&self.floor));
        Box::pin(async move {
            if let Some((child, Some(timeout))) = child {
                let address = session::agent_stream(child);
                tokio::select! {
                    () = cancel.cancelled() => {}
                    () = beat::worked(timeout, || floor.is_waiting(&address)) => {
                        let stop = Control::Interrupt { by: "its time is over".to_owned() };
                        // One that has just gone home needs no telling.
                        drop(floor.tell(&address, stop).await);
                    }
                }
            }
            cancel.cancelled().await;
            if floor.is_closing() {
                // Parked, not stopped: it goes on in the next process.
                return Landed { flight: Flight::Tool(key), input: None };
            }
            let content = vec![Part::text("Stopped before there was an answer.")];
            let flight = Flight::Tool(key.clone());
            let input = Input::ToolEnded { key, content, is_error: true, interrupted: true, fatal: None, ms: 0 };
            Landed { flight, input: Some(input) }
        })
    }
}

/// The fields of a JSON object that are strings, for people.
pub(crate) fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
