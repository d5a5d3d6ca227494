//! The phrases of the stream of events, as people read it.

use max_team_runtime::stream::{BudgetStep, PlanStep, TaskStep};

use super::{Lang, plural};

impl Lang {
    pub fn plan_step(self, step: PlanStep) -> &'static str {
        let (en, zh) = match step {
            PlanStep::Proposed => ("proposed", "已提出"),
            PlanStep::Edited => ("edited", "已修改"),
            PlanStep::EditRefused => ("could not be edited", "无法修改"),
            PlanStep::Revised => ("revised", "已提出修订"),
            PlanStep::RevisionEnded => ("goes on: the revision was not approved", "继续：修订未获批准"),
            PlanStep::Resumed => ("resumed", "已恢复"),
            PlanStep::Paused => ("paused", "已暂停"),
            PlanStep::Stopping => ("being stopped", "正在停止"),
            PlanStep::Done => ("done", "已完成"),
            PlanStep::Partial => ("partly done", "部分完成"),
            PlanStep::Failed => ("failed", "已失败"),
            PlanStep::Stopped => ("stopped", "已停止"),
            PlanStep::Rejected => ("rejected", "被拒绝"),
            PlanStep::Replaced => ("replaced", "被替换"),
        };
        if self == Self::En { en } else { zh }
    }

    pub fn task_step(self, step: TaskStep) -> &'static str {
        let (en, zh) = match step {
            TaskStep::Approved => ("may be tried again", "可以重试"),
            TaskStep::Dispatched => ("given out", "已分派"),
            TaskStep::Running => ("running", "进行中"),
            TaskStep::Asking => ("asks", "提问"),
            TaskStep::Answered => ("answered", "已答复"),
            TaskStep::Waiting => ("waits for a person", "等待人工"),
            TaskStep::Checking => ("being checked", "正在检查"),
            TaskStep::Deferred => ("checked again later", "稍后重新检查"),
            TaskStep::Changed => ("changed", "已更改"),
            TaskStep::Paused => ("paused", "已暂停"),
            TaskStep::Done => ("done", "已完成"),
            TaskStep::Corrected => ("corrected", "已更正"),
            TaskStep::Failed => ("failed", "失败"),
            TaskStep::Ruled => ("decided", "已决定"),
            TaskStep::Skipped => ("skipped", "已跳过"),
            TaskStep::Cancelled => ("given up", "已放弃"),
            TaskStep::Stopped => ("stopped", "已停止"),
        };
        if self == Self::En { en } else { zh }
    }

    pub fn budget_step(self, step: BudgetStep) -> &'static str {
        match step {
            BudgetStep::Spent => "",
            BudgetStep::Unknown => self.maybe_paid(),
            BudgetStep::Reached => self.budget_reached(),
            BudgetStep::Raised => self.budget_raised(),
        }
    }

    pub fn so_many_tasks(self, count: usize) -> String {
        match self {
            Self::En => plural(count, "task"),
            Self::Zh => format!("{count} 个任务"),
        }
    }
}
