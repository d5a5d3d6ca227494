//! The phrases of the shared list of tasks. What tasks say is passed through as it is.

use max_team_core::limits::{LIST_BLOCKERS_MAX, LIST_TASKS_MAX};
use max_team_core::task_list::{ItemMoved, ListRefusal, ListTaskStatus, StatusChange, TaskNumber};

use super::{Lang, heads};

impl Lang {
    pub fn list_heads(self) -> [&'static str; 5] {
        heads(self.list_heads_row())
    }

    pub fn list_status(self, status: ListTaskStatus) -> &'static str {
        match status {
            ListTaskStatus::Pending => self.list_status_pending(),
            ListTaskStatus::InProgress => self.list_status_in_progress(),
            ListTaskStatus::Completed => self.list_status_completed(),
            ListTaskStatus::Deleted => self.list_status_deleted(),
        }
    }

    /// All teammates that take tasks by themselves were stopped while they had one.
    pub fn nobody_takes(self, stopped: &[String]) -> String {
        let (names, first) = (stopped.join(", "), stopped.first().map(String::as_str).unwrap_or_default());
        self.no_teammate_takes_it(&names, first)
    }

    pub fn list_moved(self, moved: &ItemMoved) -> String {
        let ItemMoved { id, state, .. } = moved;
        let owner = &state.owner;
        match moved.what {
            StatusChange::Claimed => self.task_is_claimed(id, owner),
            StatusChange::Completed => self.task_is_completed(id),
            StatusChange::Deleted => self.task_is_deleted(id),
            StatusChange::Blocked => {
                let ids = numbers(state.blocked_by.iter());
                self.task_waits_for(id, &ids)
            }
            StatusChange::Released(_) | StatusChange::Assigned if owner.is_empty() => self.task_is_free(id),
            StatusChange::Released(_) | StatusChange::Assigned => self.task_is_reserved(id, owner),
        }
    }

    /// Why a list stays as it is. Models read the same English sentences, with the names of their tools instead of the
    /// commands.
    pub fn list_refusal(self, refusal: &ListRefusal) -> String {
        match refusal {
            ListRefusal::Unknown { id, was_deleted: true, .. } => self.list_refused_deleted(id),
            ListRefusal::Unknown { id, meant: Some(meant), .. } => self.list_refused_near(id, meant),
            ListRefusal::Unknown { id, .. } => self.list_refused_unknown(id),
            ListRefusal::OfPlan(id) => self.list_refused_of_plan(id),
            ListRefusal::Nothing(id) => self.list_refused_nothing(id),
            ListRefusal::NoSubject => self.list_refused_no_subject().to_owned(),
            ListRefusal::TooLong { field, size, max } => self.list_refused_too_long(field, size, max),
            ListRefusal::Full => self.list_refused_full(LIST_TASKS_MAX),
            ListRefusal::TooManyBlockers(id) => self.list_refused_many_blockers(id, LIST_BLOCKERS_MAX),
            ListRefusal::Circle(ids) => {
                let ids: Vec<String> = ids.iter().map(|id| format!("`{id}`")).collect();
                self.list_refused_circle(ids.join(self.circle_step()))
            }
            ListRefusal::Begun(id) => self.list_refused_begun(id),
            ListRefusal::Blocked { id, by } => {
                let by: Vec<String> = by.iter().map(|id| self.blocking_task(id)).collect();
                self.list_refused_blocked(id, by.join(", "))
            }
            ListRefusal::Held { id, by, same_name: false } => self.list_refused_held(id, by),
            ListRefusal::Held { id, by, same_name: true } => self.list_refused_held_by_namesake(id, by),
            ListRefusal::Assigned { id, owner } => self.list_refused_assigned(id, owner),
            ListRefusal::ForOther { id, owner } => self.list_refused_for_other(owner, id),
            ListRefusal::Completed { id, owner } if owner.is_empty() => self.list_refused_completed(id),
            ListRefusal::Completed { id, owner } => self.list_refused_completed_by(id, owner),
        }
    }
}

fn numbers<'a>(ids: impl Iterator<Item = &'a TaskNumber>) -> String {
    ids.map(|id| format!("#{id}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use max_team_core::task_list::TaskField;

    use super::*;

    #[test]
    fn refusals_are_the_same_on_screens_and_for_models() {
        let it = || "it".to_owned();
        let id: TaskNumber = "7".parse().unwrap();
        let unknown = |was_deleted, meant| ListRefusal::Unknown { id: it(), was_deleted, meant };
        let refusals = [
            unknown(true, None),
            unknown(false, Some(id)),
            unknown(false, None),
            ListRefusal::OfPlan(it()),
            ListRefusal::Nothing(id),
            ListRefusal::NoSubject,
            ListRefusal::TooLong { field: TaskField::Subject, size: 7, max: 6 },
            ListRefusal::Full,
            ListRefusal::TooManyBlockers(id),
            ListRefusal::Circle(vec![id, id]),
            ListRefusal::Begun(id),
            ListRefusal::Blocked { id, by: vec![id, id] },
            ListRefusal::Held { id, by: it(), same_name: false },
            ListRefusal::Held { id, by: it(), same_name: true },
            ListRefusal::Assigned { id, owner: it() },
            ListRefusal::ForOther { id, owner: it() },
            ListRefusal::Completed { id, owner: String::new() },
            ListRefusal::Completed { id, owner: it() },
        ];
        for refusal in refusals {
            // Models have tools where people have commands.
            let english = Lang::En.list_refusal(&refusal).replace("`max-team tasks list`", "`task_query`");
            assert_eq!(english, refusal.to_string());
            assert!(!Lang::Zh.list_refusal(&refusal).contains(" is "));
        }
        for status in
            [ListTaskStatus::Pending, ListTaskStatus::InProgress, ListTaskStatus::Completed, ListTaskStatus::Deleted]
        {
            assert_eq!(Lang::En.list_status(status), status.name());
            assert_ne!(Lang::Zh.list_status(status), status.name());
        }
    }
}
