//! Calls of an agent that act on the team itself: proposing, asking, noting a task; `calls` starts other agents.
//!
//! Such a call has no effect outside the journal: its effect is committed together with its result, so that it can be
//! repeated after a crash without harm. Nothing here runs anything that was not approved.

use std::borrow::Cow;

use max_team_core::body::{Body, Clarification};
use max_team_core::chat::Part;
use max_team_core::event::{Event, ToolOutcome};
use max_team_core::message::{Envelope, MessageKind};
use max_team_core::policy::{Action, ActionKind, Verdict};
use max_team_core::suggest::candidates;
use max_team_core::task_list::ListTaskStatus;
use max_team_core::turn::TurnInput;
use max_team_journal::JournalError;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::mail::derived;
use super::{Agent, Extra};
use crate::error::RuntimeError;
use crate::plan::{propose, query};
use crate::shared::now_ms;
use crate::tasks::TaskLists;
use crate::team_tools::{self, Act, DISPATCH_TASK, DelegateCall, TaskListRequest, Way};

/// The outcome of a call.
pub(super) struct ActionOutcome {
    pub(super) words: String,
    pub(super) is_error: bool,
    pub(super) events: Vec<Event>,
    pub(super) extra: Extra,
}

impl ActionOutcome {
    pub(super) fn said(words: impl Into<String>) -> Self {
        Self { words: words.into(), is_error: false, events: Vec::new(), extra: Extra::default() }
    }

    pub(super) fn wrong(words: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::said(words) }
    }
}

impl Agent {
    /// Starts pending effects; `true` if a call acted on the team and more may be pending.
    pub(super) async fn launch_and_act(&mut self) -> Result<bool, RuntimeError> {
        let mut acts = self.launch();
        let any = !acts.is_empty();
        let spawns: Vec<String> = acts.extract_if(.., |key| self.is_spawn(key)).collect();
        if !spawns.is_empty() {
            self.spawn(spawns).await?;
        }
        for key in acts {
            Box::pin(self.act(key)).await?;
        }
        Ok(any)
    }

    /// Whether a call's result comes by mail.
    pub(super) fn waits_for_mail(&self, key: &str, action: &Action) -> bool {
        self.turn.call(key).is_some_and(|call| team_tools::answers_by_mail(&call.tool, action.kind))
    }

    async fn act(&mut self, key: String) -> Result<(), RuntimeError> {
        let Some(call) = self.turn.call(&key) else { return Ok(()) };
        let tool = call.tool.clone();
        let done = match Act::read(&tool, (*call.input).clone()) {
            Err(words) => ActionOutcome::wrong(words),
            Ok(Act::SubmitPlan(submit)) => self.submit(&key, submit),
            Ok(Act::Create(create)) => return self.tend(&key, &TaskListRequest::Write(create.into())).await,
            Ok(Act::Update(update)) if self.is_listed(&update)? => {
                return self.tend(&key, &TaskListRequest::Write(update.change())).await;
            }
            Ok(Act::Update(update)) => self.update(&key, &update)?,
            Ok(Act::Query(query)) => self.query(&key, &query)?,
            Ok(Act::Memory(ask)) => return self.recollect(&key, &ask).await,
            Ok(Act::Dispatch(dispatch)) => match self.dispatch(&key, &dispatch).await? {
                None => return Ok(()),
                Some(done) => done,
            },
            Ok(Act::Call(call)) => match self.call(&key, &call).await? {
                None => return Ok(()),
                Some(done) => done,
            },
            Ok(Act::Message(message)) => match self.message(&key, &message).await? {
                None => return Ok(()),
                Some(done) => done,
            },
            Ok(Act::Spawn(_)) => return Ok(()),
            Ok(Act::Inbox) => self.inbox()?,
            Ok(Act::Search(query)) => self.search_tools(&query),
            Ok(Act::Spawned(asked)) => self.spawned(&key, &asked)?,
            Ok(Act::Plan) => self.begin_planned().await?,
            Ok(Act::Skill(input)) => match self.skill(&key, input).await? {
                None => return Ok(()),
                Some(done) => done,
            },
            Ok(Act::Clarify { question }) => match self.clarify(&key, &question).await? {
                None => return Ok(()),
                Some(done) => done,
            },
        };
        self.end_act(&key, done).await
    }

    /// Commits the effects of a call together with its result.
    pub(super) async fn end_act(&mut self, key: &str, done: ActionOutcome) -> Result<(), RuntimeError> {
        self.running.end_call(key);
        let (key, content) = (key.to_owned(), vec![Part::text(done.words)]);
        let ended = TurnInput::ToolEnded {
            key,
            content,
            is_error: done.is_error,
            ending: ToolOutcome::Ran,
            fatal: None,
            ms: 0,
        };
        let mut events = done.events;
        events.extend(self.decide(ended));
        self.commit(events, done.extra).await
    }

    /// Like `end_act`, if the decision depends on a stream with other writers; `false`: another writer was first,
    /// nothing was committed, and the call must be decided again.
    pub(super) async fn end_first(&mut self, key: &str, done: ActionOutcome) -> Result<bool, RuntimeError> {
        let committed = self.end_act(key, done).await;
        self.was_first(committed)
    }

    /// Whether a commit that depended on a stream with other writers succeeded; one that did not has changed nothing.
    pub(super) fn was_first(&mut self, committed: Result<(), RuntimeError>) -> Result<bool, RuntimeError> {
        match committed {
            Err(RuntimeError::Journal(JournalError::Conflict { stream, .. })) if stream != self.turn.stream => {
                // The decision was not stored, so its reservation is released.
                self.money.release();
                Ok(false)
            }
            ended => ended.map(|()| true),
        }
    }

    /// Whether an update is about a task of the shared list. For a lead, a plan's task of that name comes first.
    fn is_listed(&self, update: &team_tools::Update) -> Result<bool, RuntimeError> {
        if !self.turn.origin.lead {
            return Ok(true);
        }
        if propose::find(&self.active, update.plan, &update.task_id)?.is_some() {
            return Ok(false);
        }
        let lists = TaskLists::new(&self.active.shared.journal);
        Ok(lists.tasks(self.active.session)?.find(&update.task_id).is_ok())
    }

    pub(super) fn no_member(&self, name: &str) -> String {
        let team = self.active.team();
        let members = team.iter().flat_map(|team| &team.members).map(|teammate| teammate.definition.name.as_str());
        format!("there is no member `{name}`{}", candidates(name, members))
    }

    /// The state of tasks. A lead is shown plans, the shared list and background tasks; other agents the list and
    /// running plans.
    fn query(&self, key: &str, asked: &team_tools::TaskQueryArgs) -> Result<ActionOutcome, RuntimeError> {
        if !self.turn.origin.lead {
            return self.tended(&asked.task_id.clone().map_or(TaskListRequest::List, TaskListRequest::Get));
        }
        if let Some(id) = asked.task_id.as_deref().filter(|_| asked.plan.is_none()) {
            let is_planned = propose::find(&self.active, None, id)?.is_some();
            if !is_planned && self.is_apart(id)? {
                return self.spawned(key, &team_tools::Spawned { id: Some(id.to_owned()), stop: false });
            }
            let listed = TaskLists::new(&self.active.shared.journal).tasks(self.active.session)?;
            if !is_planned && listed.find(id).is_ok() {
                return self.tended(&TaskListRequest::Get(id.to_owned()));
            }
        }
        let mut sections = vec![query::describe(&self.active, asked)?.trim_end().to_owned()];
        if asked.task_id.is_none() && asked.plan.is_none() && asked.status.is_none() {
            let lines = TaskLists::new(&self.active.shared.journal).lines(self.active.session)?;
            let own: Vec<String> =
                lines.iter().filter(|line| line.in_plan.is_none()).map(|line| line.short()).collect();
            if !own.is_empty() {
                sections.push(format!("The shared list:\n{}", own.join("\n")));
            }
            if self.has_apart()? {
                let apart = self.spawned(key, &team_tools::Spawned::default())?.words;
                sections.push(format!("In the background:\n{apart}"));
            }
        }
        sections.retain(|section| !section.is_empty());
        Ok(ActionOutcome::said(if sections.is_empty() {
            "There are no tasks.".to_owned()
        } else {
            sections.join("\n")
        }))
    }

    /// Gives a member a task. The result comes by mail.
    async fn dispatch(
        &mut self,
        key: &str,
        dispatch: &team_tools::Dispatch,
    ) -> Result<Option<ActionOutcome>, RuntimeError> {
        let task = match self.written_task(dispatch)? {
            Ok(task) => task,
            Err(words) => return Ok(Some(ActionOutcome::wrong(words))),
        };
        let owner = task.as_ref().map(|task| task.owner.as_str()).filter(|owner| !owner.is_empty());
        let who = match (dispatch.agent.trim(), owner) {
            ("", None) => {
                let words = "`agent` is missing: say which member does it, or name a task that has an owner";
                return Ok(Some(ActionOutcome::wrong(words)));
            }
            ("", Some(owner)) if !self.may_dispatch(owner) => {
                // The policy judged a call without a member's name; with the name it asks or refuses by its rules.
                return Ok(Some(ActionOutcome::wrong(format!(
                    "that task is `{owner}`'s: call again with `agent: {owner}`"
                ))));
            }
            ("", Some(owner)) => owner.to_owned(),
            (named, Some(owner)) if named != owner => {
                let words = format!("that task is `{owner}`'s: leave `agent` out, or change its owner first");
                return Ok(Some(ActionOutcome::wrong(words)));
            }
            (named, _) => named.to_owned(),
        };
        let text = task.map_or_else(|| dispatch.description.clone(), |task| task.text);
        let title = team_tools::title(&text);
        self.call(key, &DelegateCall { way: Way::Dispatch, who, title, text, ..DelegateCall::default() }).await
    }

    /// The task of the shared list that a dispatch names. `None`: it names none, and contains the task itself.
    fn written_task(
        &self,
        dispatch: &team_tools::Dispatch,
    ) -> Result<Result<Option<WrittenTask>, String>, RuntimeError> {
        let Some(id) = dispatch.task_id.as_deref().map(str::trim).filter(|id| !id.is_empty()) else {
            return Ok(Ok(None));
        };
        let listed = TaskLists::new(&self.active.shared.journal).tasks(self.active.session)?;
        if let Some(item) = id.parse().ok().and_then(|number| listed.get(number)) {
            if item.state.status != ListTaskStatus::Pending {
                return Ok(Err(format!("task {} of the shared list is `{}`", item.id, item.state.status.name())));
            }
            let told = [item.text.subject.as_str(), item.text.description.as_str()];
            let told: Vec<&str> = told.into_iter().filter(|text| !text.trim().is_empty()).collect();
            let rule = "of the shared list: set it to `completed` with `task_update` when it is done.";
            let text = format!("{}\n\nThis is task {} {rule}", told.join("\n\n"), item.id);
            return Ok(Ok(Some(WrittenTask { owner: item.state.owner.clone(), text })));
        }
        if let Some((plan, _)) = propose::find(&self.active, None, id)? {
            return Ok(Err(format!(
                "`{id}` is a task of plan {plan}, which runs it by itself once the user has approved it; after a failure, \
                 decide with `task_update`"
            )));
        }
        if dispatch.description.trim().is_empty() {
            let known: Vec<String> = listed.items().map(|item| item.id.to_string()).collect();
            return Ok(Err(format!("there is no task `{id}`{}", candidates(id, known.iter().map(String::as_str)))));
        }
        Ok(Ok(None))
    }

    /// Whether the rules let this agent give a task to the member without a question.
    fn may_dispatch(&self, member: &str) -> bool {
        let action = Action { kind: ActionKind::Team, ..Action::read(member) };
        self.gate().judge(DISPATCH_TASK, &action).verdict == Verdict::Allow
    }

    /// Asks the author of the task. The answer comes by mail.
    async fn clarify(&mut self, key: &str, question: &str) -> Result<Option<ActionOutcome>, RuntimeError> {
        let assignment = self.turn.assignment().filter(|assignment| assignment.plan.is_some()).cloned();
        let Some(assignment) = assignment else {
            return Ok(Some(ActionOutcome::said(
                "Your question is your answer: you go on from here when it is answered.",
            )));
        };
        let asked = Clarification {
            assignment: Some(Cow::Borrowed(&assignment)),
            question,
            call: key,
            from: &self.turn.origin.name,
        };
        let envelope = Envelope::new(
            derived(&[self.turn.stream.as_bytes(), key.as_bytes(), b"clarify"]),
            &self.turn.stream,
            &assignment.reply_to,
            MessageKind::NeedClarify,
            Body::Clarification(asked),
            now_ms(),
        );
        if !self.active.shared.journal.has_mail(envelope.id)? {
            self.commit(Vec::new(), Extra::send(envelope)).await?;
        }
        self.running.flights.push(self.cancelled(key.to_owned(), None, CancellationToken::new()));
        Ok(None)
    }
}

/// A task of the shared list that is about to be given to a member.
struct WrittenTask {
    owner: String,
    text: String,
}

/// The fields of a JSON object that are strings, for people.
pub(crate) fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
