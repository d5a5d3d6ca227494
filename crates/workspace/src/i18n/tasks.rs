//! The phrases of the shared list of tasks. What tasks say is passed through as it is.

use max_team_core::limits::{LIST_BLOCKERS_MAX, LIST_TASKS_MAX};
use max_team_core::task_list::{ItemMoved, ListRefusal, ListTaskStatus, StatusChange, TaskNumber};

use super::{Lang, heads};

impl Lang {
    pub fn list_heads(self) -> [&'static str; 5] {
        heads(self.list_heads_row())
    }

    pub fn list_status(self, status: ListTaskStatus) -> &'static str {
        match (self, status) {
            (Self::En, status) => status.name(),
            (Self::Zh, ListTaskStatus::Pending) => "待办",
            (Self::Zh, ListTaskStatus::InProgress) => "进行中",
            (Self::Zh, ListTaskStatus::Completed) => "已完成",
            (Self::Zh, ListTaskStatus::Deleted) => "已删除",
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

    /// Why a list stays as it is.
    pub fn list_refusal(self, refusal: &ListRefusal) -> String {
        if self == Self::En {
            // What a model is told by the names of its tools, people know by the command's.
            return refusal.to_string().replace("`task_query`", "`max-team tasks list`");
        }
        match refusal {
            ListRefusal::Unknown { id, was_deleted: true, .. } => format!("任务 `{id}` 已删除"),
            ListRefusal::Unknown { id, meant: Some(meant), .. } => format!("没有任务 `{id}`，是指 `{meant}` 吗？"),
            ListRefusal::Unknown { id, .. } => format!("没有任务 `{id}`；用 `max-team tasks list` 查看"),
            ListRefusal::OfPlan(id) => format!("`{id}` 是计划中的任务，由程序执行，这里不能修改"),
            ListRefusal::Nothing(id) => format!("请说明要修改任务 `{id}` 的什么，例如 `--status` 或 `--owner`"),
            ListRefusal::NoSubject => "任务需要一个标题：用一行说明要做什么".to_owned(),
            ListRefusal::TooLong { field, size, max } => format!("`{field}` 长度为 {size}，上限为 {max}；请写短些"),
            ListRefusal::Full => format!("列表最多 {LIST_TASKS_MAX} 个任务；请删除不需要的（`--status deleted`）"),
            ListRefusal::TooManyBlockers(id) => format!("任务 `{id}` 最多等待 {LIST_BLOCKERS_MAX} 个其他任务"),
            ListRefusal::Circle(ids) => {
                let ids: Vec<String> = ids.iter().map(|id| format!("`{id}`")).collect();
                format!("会形成循环：{}；请去掉其中一个", ids.join(" 等待 "))
            }
            ListRefusal::Begun(id) => format!("任务 `{id}` 已开始：只有待办时才能改变它等待什么"),
            ListRefusal::Blocked { id, by } => format!("任务 `{id}` 还不能开始：它等待 {}", numbers(by.iter())),
            ListRefusal::Held { id, by, .. } => {
                format!("任务 `{id}` 正由 `{by}` 进行；可先用 `--status pending` 收回")
            }
            ListRefusal::Assigned { id, owner } => format!("任务 `{id}` 已指派给 `{owner}`"),
            ListRefusal::ForOther { id, owner } => {
                format!("只有 `{owner}` 自己能开始：去掉 `--status`，任务 `{id}` 就指派给 `{owner}`")
            }
            ListRefusal::Completed { id, .. } => format!("任务 `{id}` 已完成，不再改变；剩下的请另建任务"),
        }
    }
}

fn numbers<'a>(ids: impl Iterator<Item = &'a TaskNumber>) -> String {
    ids.map(|id| format!("#{id}")).collect::<Vec<_>>().join(", ")
}
