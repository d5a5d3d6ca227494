//! The phrases of a plan that is left where it stands: by whoever leaves a chat, and by runs that nobody watches.

use max_team_core::plan::event::{About, Approve};
use max_team_core::plan::{Plan, Status};

use super::Lang;

phrases! {
    demo_waits: "The plan waits for a person, and nobody sits here: run the demo in a terminal, or with --yes.",
        "计划在等待人工批准，但这里无人应答：请在终端运行演示，或加上 --yes。";
}

impl Lang {
    /// A bare word that is no command.
    pub(crate) fn no_command(self, word: &str, near: Option<&str>) -> String {
        match near {
            Some(near) => say!(
                self,
                "there is no command `{word}`, did you mean `max-team {near}`? To say it to Max: `max-team -p \"{word}\"`",
                "没有命令 `{word}`，您是否想用 `max-team {near}`？要对 Max 说这句话：`max-team -p \"{word}\"`"
            ),
            None => say!(
                self,
                "there is no command `{word}`; to say it to Max: `max-team -p \"{word}\"`, or start a chat with \
                 `max-team` and say it there (`max-team --help` lists the commands)",
                "没有命令 `{word}`；要对 Max 说这句话：`max-team -p \"{word}\"`，或用 `max-team` 打开对话再说\
                 （`max-team --help` 列出所有命令）"
            ),
        }
    }

    /// Where a plan that is not over stands, and what to do about it; nothing for one that is.
    pub(crate) fn standing(self, plan: &Plan) -> Option<String> {
        if plan.ended().is_some() || plan.proposed().is_none() {
            return None;
        }
        let failing = plan.tasks().filter(|view| view.status == Status::Failed).count();
        let progress = self.progress(&plan.tally(), failing);
        Some(match self.answered_with(plan) {
            Some(how) => say!(self, "{how} ({progress})", "{how}（{progress}）"),
            None => say!(
                self,
                "the plan is not finished ({progress}); it goes on when you come back",
                "计划尚未完成（{progress}）；回来后会继续"
            ),
        })
    }

    /// What a plan waits for, and how to answer from any terminal.
    pub(crate) fn answered_with(self, plan: &Plan) -> Option<String> {
        let id = plan.id()?;
        let (question, about) = plan.asked().next()?;
        Some(match about {
            About::Failure { task, .. } => say!(
                self,
                "task `{task}` failed and somebody must decide: `max-team approve {question} --retry`, `--skip`, \
                 `--fixed` or `--give-up`",
                "任务 `{task}` 失败，需要有人决定：`max-team approve {question} --retry`、`--skip`、`--fixed` 或 `--give-up`"
            ),
            About::Budget => say!(
                self,
                "the budget is used up: go on with a larger --max-budget-usd, or `max-team deny {question} -m WHY`",
                "预算已用完：请加大 --max-budget-usd 后继续，或 `max-team deny {question} -m 原因`"
            ),
            About::Start { .. } | About::Rest => say!(
                self,
                "the plan waits for a person: `max-team approve {question}` or `max-team deny {question} -m WHY`",
                "计划在等待人工答复：`max-team approve {question}` 或 `max-team deny {question} -m 原因`"
            ),
            About::Proposal if plan.approve() == Approve::Never => say!(
                self,
                "the plan does something risky (`!`), which `--approve never` does not cover, so it waits for a person: \
                 `max-team approve {id}` or `max-team deny {id} -m WHY`",
                "计划含有风险操作（`!`），`--approve never` 不包括这类操作，因此在等待人工批准：`max-team approve {id}` 或 \
                 `max-team deny {id} -m 原因`"
            ),
            About::Proposal => say!(
                self,
                "the plan waits for a person: `max-team approve {id}` or `max-team deny {id} -m WHY`",
                "计划在等待人工批准：`max-team approve {id}` 或 `max-team deny {id} -m 原因`"
            ),
        })
    }

    /// How to go on with a session without a chat.
    pub(crate) fn then_go_on(self, words: &str, session: &str) -> String {
        say!(
            self,
            "{words}; then go on with `max-team -r {session} -p \"\"`",
            "{words}；然后用 `max-team -r {session} -p \"\"` 继续"
        )
    }
}
