//! An agent's use of its session's shared task list.
//!
//! A change is committed together with the call's result: a crash neither loses nor repeats it, and an agent that is
//! told that it has a task has it. Who may do what is decided in `core::task_list` alone.

use max_team_core::body::{Body, Task};
use max_team_core::event::Event;
use max_team_core::id::AgentId;
use max_team_core::limits::LIST_WRITE_TRIES_MAX;
use max_team_core::message::{Envelope, MessageKind};
use max_team_core::suggest::did_you_mean;
use max_team_core::task_list::{Claimant, ListRequest, ListTask, StatusChange, TaskUpdate};
use max_team_core::teammate::protocol::ProtocolMessage;

use super::acts::ActionOutcome;
use super::mail::derived;
use super::{Agent, Extra};
use crate::error::RuntimeError;
use crate::session;
use crate::shared::now_ms;
use crate::tasks::{ListChange, TaskLists, whole};
use crate::team_tools::TaskListRequest;

/// Bytes of an answer about the list.
const LIST_BYTES_MAX: usize = 32 << 10;

impl Agent {
    /// The agent as an actor on the list.
    pub(super) fn doer(&self) -> Claimant {
        Claimant {
            at: self.turn.stream.clone(),
            name: self.turn.origin.name.to_string(),
            steers: self.turn.origin.lead,
        }
    }

    /// Whether it keeps its tasks when its turn is over: the lead and teammates come back to them, a called agent has
    /// ended.
    pub(super) fn keeps_tasks(&self) -> bool {
        self.turn.origin.lead || self.turn.teammate().is_some()
    }

    /// Carries out a call of the list's tools; decides again if another writer was first.
    pub(super) async fn tend(&mut self, key: &str, ask: &TaskListRequest) -> Result<(), RuntimeError> {
        for _ in 0..LIST_WRITE_TRIES_MAX {
            let done = self.tended(ask)?;
            if self.end_first(key, done).await? {
                return if matches!(ask, TaskListRequest::Write(_)) { self.active.wake_claimers() } else { Ok(()) };
            }
        }
        self.end_act(key, ActionOutcome::wrong("others change the list all the time; try again later")).await
    }

    /// Claims the next task from the list, if it is a teammate that claims tasks and is idle; whether it has begun.
    pub(super) async fn take_up(&mut self) -> Result<bool, RuntimeError> {
        let claims = self.turn.agent_end().is_none() && self.turn.teammate().is_some_and(|teammate| teammate.claims);
        if !claims {
            return Ok(false);
        }
        self.know_stop()?;
        if self.turn.held().is_some() {
            return Ok(false);
        }
        for _ in 0..LIST_WRITE_TRIES_MAX {
            let Some((item, change)) = self.active.claim_next(&self.doer())? else { return Ok(false) };
            let title = format!("#{} {}", item.id, item.text.subject);
            let begin = self.beginning_about(format!("You have taken {}", told_task(&item)), &title);
            self.follow().await?;
            let events = self.decide(begin);
            let mut extra = Extra::default();
            extra.change(change);
            let committed = self.commit(events, extra).await;
            if self.was_first(committed)? {
                self.know_task();
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Assigns a task of the list to a teammate: the change of the list and the message are in one commit with the
    /// call's result.
    pub(super) async fn assign(
        &mut self,
        key: &str,
        to: &(String, AgentId),
        word: &ProtocolMessage,
    ) -> Result<(), RuntimeError> {
        let ProtocolMessage::TaskAssignment { task_id, text } = word else { return Ok(()) };
        let (name, agent) = to;
        for _ in 0..LIST_WRITE_TRIES_MAX {
            let update = TaskUpdate { id: task_id.clone(), owner: Some(name.clone()), ..TaskUpdate::default() };
            let lists = TaskLists::new(&self.active.shared.journal);
            let change = match lists.change(self.active.session, &self.doer(), &ListRequest::Update(Box::new(update))) {
                Ok(change) => change,
                Err(error @ RuntimeError::Tasks(_)) => {
                    return self.end_act(key, ActionOutcome::wrong(error.to_string())).await;
                }
                Err(error) => return Err(error),
            };
            let Ok(item) = change.tasks.find(task_id) else {
                return self.end_act(key, ActionOutcome::wrong("no such task")).await;
            };
            let note = if text.trim().is_empty() { String::new() } else { format!("\n\n{text}") };
            let words =
                format!("This is yours: claim it with `task_update` when you begin. It is {}{note}", told_task(item));
            let envelope = Envelope::new(
                derived(&[self.turn.stream.as_bytes(), key.as_bytes(), name.as_bytes(), b"assign"]),
                &self.turn.stream,
                session::agent_stream(*agent),
                MessageKind::TaskAssign,
                Body::Task(Task {
                    text: &words,
                    from: &self.turn.origin.name,
                    task: &item.id.to_string(),
                    ..Task::default()
                }),
                now_ms(),
            );
            let mut done =
                ActionOutcome::said(format!("Task #{} is meant for `{name}` now, and it was told.", item.id));
            done.extra.sends.push(envelope);
            done.extra.change(change);
            if self.end_first(key, done).await? {
                return Ok(());
            }
        }
        self.end_act(key, ActionOutcome::wrong("others change the list all the time; try again later")).await
    }

    pub(super) fn tended(&self, ask: &TaskListRequest) -> Result<ActionOutcome, RuntimeError> {
        let lists = TaskLists::new(&self.active.shared.journal);
        let session = self.active.session;
        let said = match ask {
            TaskListRequest::List => lists.lines(session).map(|lines| {
                let lines: Vec<String> = lines.iter().map(|line| line.short()).collect();
                bounded(if lines.is_empty() { "There are no tasks.".to_owned() } else { lines.join("\n") })
            }),
            TaskListRequest::Get(id) => lists.line(session, id).map(|line| whole(&line)),
            TaskListRequest::Write(input) => {
                if let Some(words) = self.no_such_owner(input) {
                    return Ok(ActionOutcome::wrong(words));
                }
                match lists.change(session, &self.doer(), input) {
                    Ok(change) => return Ok(changed(change, input)),
                    Err(error) => Err(error),
                }
            }
        };
        match said {
            Ok(words) => Ok(ActionOutcome::said(words)),
            Err(error @ (RuntimeError::Tasks(_) | RuntimeError::NoPlanTask(_))) => {
                Ok(ActionOutcome::wrong(error.to_string()))
            }
            Err(error) => Err(error),
        }
    }

    /// A task meant for a name that no agent has would never be begun.
    fn no_such_owner(&self, input: &ListRequest) -> Option<String> {
        let owner = match input {
            ListRequest::Create(new) => new.owner.as_str(),
            ListRequest::Update(update) => update.owner.as_deref()?,
            _ => return None,
        };
        let owner = Some(owner.trim()).filter(|owner| !owner.is_empty())?;
        let names = self.active.names();
        if self.doer().is(owner) || names.iter().any(|name| name == owner) {
            return None;
        }
        let near = did_you_mean(owner, names.iter().map(String::as_str));
        let rest = if near.is_empty() { format!("; there are {}", names.join(", ")) } else { near };
        Some(format!("no agent is called `{}`{rest}", max_team_core::text::quote(owner)))
    }
}

/// A task as text for its owner.
fn told_task(item: &ListTask) -> String {
    let ListTask { id, text, .. } = item;
    let rest = if text.description.is_empty() { String::new() } else { format!("\n\n{}", text.description) };
    format!(
        "task #{id} of the shared list: {}{rest}\n\nSay `completed` with `task_update` when it is done, `pending` to give it back.",
        text.subject
    )
}

/// A change, and the text about it for the agent that asked for it.
fn changed(change: ListChange, input: &ListRequest) -> ActionOutcome {
    let mut words: Vec<String> = change.events.iter().filter_map(told).collect();
    if words.is_empty() {
        words.push("It is so already.".to_owned());
    }
    // An agent that claims a task is shown the whole task.
    if let (ListRequest::Update(update), true) = (input, change.events.iter().any(is_claim))
        && let Ok(item) = change.tasks.find(&update.id)
        && !item.text.description.is_empty()
    {
        words.push(format!("\n{}", item.text.description));
    }
    let mut done = ActionOutcome::said(words.join("\n"));
    done.extra.change(change);
    done
}

fn is_claim(event: &Event) -> bool {
    matches!(event, Event::ItemMoved(moved) if moved.what == StatusChange::Claimed)
}

/// An event as text for the agent that caused it.
fn told(event: &Event) -> Option<String> {
    Some(match event {
        Event::ItemAdded(added) => format!("Task #{} added: {}", added.id, added.text.subject),
        Event::ItemWritten(written) => format!("Task #{} says so now.", written.id),
        Event::ItemMoved(moved) => {
            let (id, state) = (moved.id, &moved.state);
            match moved.what {
                StatusChange::Claimed => {
                    format!("Task #{id} is yours: say `completed` when it is done, `pending` to give it back.")
                }
                StatusChange::Completed => format!("Task #{id} is completed."),
                StatusChange::Deleted => format!("Task #{id} is deleted."),
                StatusChange::Blocked => {
                    let ids: Vec<String> = state.blocked_by.iter().map(|id| format!("#{id}")).collect();
                    format!("Task #{id} waits for {}.", ids.join(", "))
                }
                StatusChange::Released(_) | StatusChange::Assigned if state.owner.is_empty() => {
                    format!("Task #{id} is pending, for anybody to take.")
                }
                StatusChange::Released(_) | StatusChange::Assigned => {
                    format!("Task #{id} is pending, meant for {}.", state.owner)
                }
            }
        }
        _ => return None,
    })
}

fn bounded(mut words: String) -> String {
    if words.len() > LIST_BYTES_MAX {
        let cut = words.char_indices().map(|(at, _)| at).take_while(|at| *at <= LIST_BYTES_MAX).last();
        words.truncate(cut.unwrap_or_default());
        words.push_str("\n(There is more: delete tasks that are no longer needed, or ask for one with `task_query`.)");
    }
    words
}
