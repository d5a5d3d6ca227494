//! Decides about requests to change the list.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    Claimant, ItemAdded, ItemMoved, ItemWritten, ListRefusal, ListRequest, ListTask, ListTaskState, ListTaskStatus,
    NewTask, ReleaseReason, StatusChange, TaskField, TaskList, TaskNumber, TaskText, TaskUpdate,
};
use crate::event::Event;
use crate::limits::{
    LIST_BLOCKERS_MAX, LIST_DECLINED_MAX, LIST_DESCRIPTION_BYTES_MAX, LIST_METADATA_BYTES_MAX, LIST_OWNER_CHARS_MAX,
    LIST_SUBJECT_CHARS_MAX, LIST_TASKS_MAX,
};

impl TaskList {
    /// Decides; changes nothing. Without events, the list is already as requested.
    pub fn decide(&self, doer: &Claimant, input: &ListRequest) -> Result<Vec<Event>, ListRefusal> {
        match input {
            ListRequest::Create(new) => self.create(doer, new),
            ListRequest::Update(update) => self.update(doer, update),
            ListRequest::Next => Ok(self.next(doer).map(|item| claimed(item, doer)).into_iter().collect()),
            ListRequest::Gone { why, for_good } => Ok(self.gone(doer, *why, *for_good)),
        }
    }

    fn create(&self, doer: &Claimant, new: &NewTask) -> Result<Vec<Event>, ListRefusal> {
        if self.items.len() >= LIST_TASKS_MAX {
            return Err(ListRefusal::Full);
        }
        let NewTask { subject, description, active_form, metadata, owner, blocked_by } = new.clone();
        let text = checked(TaskText { subject: subject.trim().to_owned(), description, active_form, metadata })?;
        let id = TaskNumber(self.last.checked_add(1).ok_or(ListRefusal::Full)?);
        let mut events = vec![Event::ItemAdded(ItemAdded { id, text, by: doer.name.clone() })];
        if !owner.trim().is_empty() || !blocked_by.is_empty() {
            let mut then = self.clone();
            events.iter().for_each(|event| then.apply(event));
            let update = TaskUpdate { id: id.to_string(), owner: Some(owner), blocked_by, ..TaskUpdate::default() };
            events.extend(then.update(doer, &update)?);
        }
        Ok(events)
    }

    fn update(&self, doer: &Claimant, update: &TaskUpdate) -> Result<Vec<Event>, ListRefusal> {
        let item = self.find(&update.id)?;
        if is_empty(update) {
            return Err(ListRefusal::Nothing(item.id));
        }
        let mut events = Vec::new();
        let text = rewritten(item, update)?;
        if text != item.text {
            may(item, doer)?;
            events.push(Event::ItemWritten(ItemWritten { id: item.id, text, by: doer.name.clone() }));
        }
        // Dependencies are applied first, so that a claim in the same update cannot ignore them.
        let mut then = self.clone();
        for event in self.block(doer, item, update)? {
            then.apply(&event);
            events.push(event);
        }
        if let Some(item) = then.items.get(&item.id) {
            events.extend(then.pass(doer, item, update)?);
        }
        Ok(events)
    }

    /// Adds dependencies between tasks.
    fn block(&self, doer: &Claimant, item: &ListTask, update: &TaskUpdate) -> Result<Vec<Event>, ListRefusal> {
        let mut edges: Vec<(&ListTask, TaskNumber)> = Vec::new();
        for blocker in &update.blocked_by {
            edges.push((item, self.find(blocker)?.id));
        }
        for blocked in &update.blocks {
            edges.push((self.find(blocked)?, item.id));
        }
        edges.retain(|(item, blocker)| !item.state.blocked_by.contains(blocker));
        let mut then = self.clone();
        let mut changed = BTreeSet::new();
        for (item, blocker) in edges {
            may(item, doer)?;
            if item.state.status != ListTaskStatus::Pending {
                return Err(ListRefusal::Begun(item.id));
            }
            if let Some(path) = then.path(blocker, item.id) {
                return Err(ListRefusal::Circle(std::iter::once(item.id).chain(path).collect()));
            }
            let Some(item) = then.items.get_mut(&item.id) else { continue };
            item.state.blocked_by.insert(blocker);
            if item.state.blocked_by.len() > LIST_BLOCKERS_MAX {
                return Err(ListRefusal::TooManyBlockers(item.id));
            }
            changed.insert(item.id);
        }
        let changed = changed.iter().filter_map(|id| then.items.get(id));
        Ok(changed.map(|item| moved(item, StatusChange::Blocked, item.state.clone(), doer)).collect())
    }

    /// The path from one task to another along dependencies, both included.
    fn path(&self, from: TaskNumber, to: TaskNumber) -> Option<Vec<TaskNumber>> {
        let (mut way, mut seen) = (vec![from], BTreeSet::from([from]));
        while let Some(at) = way.last().copied() {
            if at == to {
                return Some(way);
            }
            let ahead = self.items.get(&at).into_iter().flat_map(|item| &item.state.blocked_by);
            match ahead.copied().find(|next| !seen.contains(next)) {
                Some(next) => {
                    seen.insert(next);
                    way.push(next);
                }
                None => drop(way.pop()),
            }
        }
        None
    }

    /// Claims, assigns, completes or deletes a task.
    fn pass(&self, doer: &Claimant, item: &ListTask, update: &TaskUpdate) -> Result<Vec<Event>, ListRefusal> {
        let (id, now) = (item.id, &item.state);
        let owner = update.owner.as_deref().map(|owner| if doer.is(owner) { doer.name.as_str() } else { owner.trim() });
        let to = update.status.unwrap_or(now.status);
        if update.status.is_none() && owner.is_none_or(|owner| owner == now.owner) {
            return Ok(Vec::new());
        }
        if now.status == ListTaskStatus::Completed && to != ListTaskStatus::Deleted {
            let is_said_again = to == ListTaskStatus::Completed && owner.is_none_or(|owner| owner == now.owner);
            return if is_said_again {
                Ok(Vec::new())
            } else {
                Err(ListRefusal::Completed { id, owner: now.owner.clone() })
            };
        }
        let is_mine = now.holder.as_ref() == Some(&doer.at);
        match to {
            ListTaskStatus::Deleted => {
                may(item, doer)?;
                let state = ListTaskState { status: ListTaskStatus::Deleted, holder: None, ..now.clone() };
                Ok(vec![moved(item, StatusChange::Deleted, state, doer)])
            }
            ListTaskStatus::Pending => {
                may(item, doer)?;
                Ok(given(item, owner, doer)?)
            }
            // The holder, the lead or the user assigns it to another agent.
            ListTaskStatus::InProgress if update.status.is_none() => {
                may(item, doer)?;
                Ok(given(item, owner, doer)?)
            }
            ListTaskStatus::InProgress | ListTaskStatus::Completed => {
                // An empty owner means the agent that updates the task.
                let other = owner.filter(|owner| !owner.is_empty() && *owner != doer.name);
                if let Some(owner) = other.filter(|_| to == ListTaskStatus::InProgress) {
                    return Err(ListRefusal::ForOther { id, owner: crate::text::quote(owner) });
                }
                let mut events = Vec::new();
                if now.holder.is_none() {
                    self.may_begin(item, doer)?;
                    events.push(claimed(item, doer));
                } else if !(is_mine || doer.steers && to == ListTaskStatus::Completed) {
                    return Err(held(item, doer));
                }
                if to == ListTaskStatus::Completed {
                    let (owner, epoch) = match now.holder {
                        Some(_) => (now.owner.clone(), now.epoch),
                        None => (doer.name.clone(), now.epoch.saturating_add(1)),
                    };
                    let state = ListTaskState { status: to, owner, holder: None, epoch, ..now.clone() };
                    events.push(moved(item, StatusChange::Completed, state, doer));
                }
                Ok(events)
            }
        }
    }

    /// Whether an agent can begin with a task that no agent holds.
    fn may_begin(&self, item: &ListTask, doer: &Claimant) -> Result<(), ListRefusal> {
        may(item, doer)?;
        let by: Vec<TaskNumber> = self.blockers(item).collect();
        if by.is_empty() { Ok(()) } else { Err(ListRefusal::Blocked { id: item.id, by }) }
    }

    fn gone(&self, doer: &Claimant, why: ReleaseReason, for_good: bool) -> Vec<Event> {
        let free = |item: &ListTask, what| {
            let state = ListTaskState {
                status: ListTaskStatus::Pending,
                owner: String::new(),
                holder: None,
                ..item.state.clone()
            };
            moved(item, what, state, doer)
        };
        let held = self.held_by(&doer.at).map(|item| free(item, StatusChange::Released(why)));
        let is_meant = |item: &&ListTask| item.state.status == ListTaskStatus::Pending && doer.is(&item.state.owner);
        let meant = self.items.values().filter(|item| for_good && is_meant(item));
        held.chain(meant.map(|item| free(item, StatusChange::Assigned))).collect()
    }
}

/// Whether an agent may change a task at all.
fn may(item: &ListTask, doer: &Claimant) -> Result<(), ListRefusal> {
    let ListTaskState { owner, holder, .. } = &item.state;
    match holder {
        _ if doer.steers => Ok(()),
        Some(holder) if *holder != doer.at => Err(held(item, doer)),
        None if !owner.is_empty() && !doer.is(owner) => {
            Err(ListRefusal::Assigned { id: item.id, owner: owner.clone() })
        }
        _ => Ok(()),
    }
}

fn held(item: &ListTask, doer: &Claimant) -> ListRefusal {
    let by = item.state.owner.clone();
    ListRefusal::Held { id: item.id, same_name: by == doer.name, by }
}

fn claimed(item: &ListTask, doer: &Claimant) -> Event {
    let state = ListTaskState {
        status: ListTaskStatus::InProgress,
        owner: doer.name.clone(),
        holder: Some(doer.at.clone()),
        epoch: item.state.epoch.saturating_add(1),
        ..item.state.clone()
    };
    moved(item, StatusChange::Claimed, state, doer)
}

/// Makes a task pending, with a new owner or none.
fn given(item: &ListTask, owner: Option<&str>, doer: &Claimant) -> Result<Vec<Event>, ListRefusal> {
    let now = &item.state;
    let what = match &now.holder {
        Some(holder) if *holder == doer.at => StatusChange::Released(ReleaseReason::GivenBack),
        Some(_) => StatusChange::Released(ReleaseReason::Taken),
        None => StatusChange::Assigned,
    };
    // A task that is given back without a new owner is open to any agent.
    let owner = owner.unwrap_or(if now.holder.is_some() { "" } else { &now.owner }).to_owned();
    fits(TaskField::Owner, owner.chars().count(), LIST_OWNER_CHARS_MAX)?;
    let mut state = ListTaskState { status: ListTaskStatus::Pending, owner, holder: None, ..now.clone() };
    match what {
        _ if doer.steers => state.declined.clear(),
        // Once this many agents have declined, `next` offers the task to no agent, so further ones need not be
        // recorded.
        StatusChange::Released(ReleaseReason::GivenBack) if state.declined.len() < LIST_DECLINED_MAX => {
            state.declined.insert(doer.at.clone());
        }
        _ => {}
    }
    Ok((state != *now).then(|| moved(item, what, state, doer)).into_iter().collect())
}

fn moved(item: &ListTask, what: StatusChange, state: ListTaskState, doer: &Claimant) -> Event {
    Event::ItemMoved(ItemMoved { id: item.id, what, state, by: doer.name.clone() })
}

fn is_empty(update: &TaskUpdate) -> bool {
    let TaskUpdate { id, .. } = update;
    *update == TaskUpdate { id: id.clone(), ..TaskUpdate::default() }
}

/// The new text of a task.
fn rewritten(item: &ListTask, update: &TaskUpdate) -> Result<TaskText, ListRefusal> {
    let mut text = item.text.clone();
    let set = |into: &mut String, from: &Option<String>| {
        if let Some(from) = from {
            into.clone_from(from);
        }
    };
    set(&mut text.subject, &update.subject.as_ref().map(|subject| subject.trim().to_owned()));
    set(&mut text.description, &update.description);
    set(&mut text.active_form, &update.active_form);
    for (name, value) in &update.metadata {
        match value {
            Value::Null => drop(text.metadata.remove(name)),
            value => drop(text.metadata.insert(name.clone(), value.clone())),
        }
    }
    checked(text)
}

fn checked(text: TaskText) -> Result<TaskText, ListRefusal> {
    if text.subject.is_empty() {
        return Err(ListRefusal::NoSubject);
    }
    let metadata: usize = text.metadata.iter().map(|(name, value)| name.len() + value.to_string().len()).sum();
    fits(TaskField::Subject, text.subject.chars().count(), LIST_SUBJECT_CHARS_MAX)?;
    fits(TaskField::ActiveForm, text.active_form.chars().count(), LIST_SUBJECT_CHARS_MAX)?;
    fits(TaskField::Description, text.description.len(), LIST_DESCRIPTION_BYTES_MAX)?;
    fits(TaskField::Metadata, metadata, LIST_METADATA_BYTES_MAX)?;
    Ok(text)
}

fn fits(field: TaskField, size: usize, max: usize) -> Result<(), ListRefusal> {
    if size > max { Err(ListRefusal::TooLong { field, size, max }) } else { Ok(()) }
}
