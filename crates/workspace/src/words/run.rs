//! Phrases about plans that are left unfinished: by a user who leaves the chat, and by headless runs.

use max_team_core::event::{TurnEnded, TurnOutcome};
use max_team_core::plan::event::{ApprovalMode, PlanQuestion};
use max_team_core::plan::{Plan, TaskStatus};
use max_team_core::policy::Recourse;

use super::Lang;
use crate::figures::dollars;

phrases! {
    lead_out_of_time: "stopped: its time is over (`constraints.timeout` of the agent you talk to)",
        "已停止：时间已到（与你对话的智能体的 `constraints.timeout`）";
    nothing_open: "there is nothing to go on with in this session; give a prompt with -p",
        "此会话没有可以继续的内容；请用 -p 给出提示";
    answered_before: "nothing new was said: this was answered before; give a prompt with -p to ask for more",
        "没有新的内容：这是此前已有的回答；如需继续提问，请用 -p 给出提示";
    nothing_said: "done; Max has said nothing", "已完成；Max 没有说什么";
    no_plan_came: "no plan came of this; nothing was written", "没有得到计划；未写入任何内容";
    demo_is_over: "This is a recording, and it is over: I have no words for this. With a key, I would answer.",
        "这是一段录制，已经放完：这里没有录下回答。设置密钥后我就能回答。";
    demo_cannot_answer: "This is a recording: it cannot answer what you write. Watch on, answer its questions, or leave with /quit.",
        "这是一段录制，无法回答您写的内容。可以继续观看、回答它的问题，或用 /quit 离开。";
    demo_unsandboxed(why: &str):
        "Skipped here: isolation ({why}). The demo's own scripts run without it, in the scratch project only.",
        "此处跳过：隔离（{why}）。演示自带的脚本将不加隔离地运行，仅限于这个临时项目。";
    quote_the_prompt(prompt: &str): "put the prompt in quotes: max-team \"{prompt}\"", "请给提示加上引号：max-team \"{prompt}\"";
    words_answer(what: &str): "answered with your words: {what}", "已用您的话答复：{what}";
    call_put_off(what: &str):
        "not run, your words were passed on instead: {what}; to allow a call, answer it with `max-team approve` first",
        "未执行，已转告您的话：{what}；如要允许某个调用，请先用 `max-team approve` 答复";
    more_refused(count: usize): "{count} more calls were refused; `max-team trace` lists them",
        "另有 {count} 个调用被拒绝；可用 `max-team trace` 查看";
    waiting_for(model: &str, who: &str, seconds: u64): "waiting for `{model}` to answer {who}: nothing for {seconds} s",
        "正在等待 `{model}` 回答 {who}：已 {seconds} 秒没有响应";
    compacted(before: usize, after: usize):
        "context compacted: {before} → {after} messages; /compact undo takes it back",
        "上下文已压缩：{before} → {after} 条消息；输入 /compact undo 可撤销";
    not_compacted(detail: &str): "no summary could be made ({detail}); what is too old is left out instead",
        "未能生成摘要（{detail}）；改为略去过旧的内容";
    retrying(who: &str, detail: &str): "retrying for {who}: {detail}", "正在为 {who} 重试：{detail}";
    unwritable(path: &str, error: &str): "`{path}` cannot be written: {error}", "无法写入 `{path}`：{error}";
    already_there(path: &str): "`{path}` is there already; `--force` replaces it, or name another file",
        "`{path}` 已存在；用 `--force` 覆盖，或换一个文件名";
    plan_written(path: &str): "the plan is in `{path}`: look at it with `max-team run {path} --dry-run`",
        "计划已写入 `{path}`：用 `max-team run {path} --dry-run` 查看";
    plan_paused(plan: &str, session: &str):
        "the plan is paused: go on with `max-team -r {session} -p \"\"`, or give it up with `max-team stop {plan}`",
        "计划已暂停：用 `max-team -r {session} -p \"\"` 继续，或用 `max-team stop {plan}` 放弃";
    plan_awaits_server(plan: &str, session: &str):
        "plan `{plan}` is parked: the model server cannot be reached; nothing is lost, go on with `max-team -c`, \
             or without a chat with `max-team -r {session} -p \"\"`",
        "计划 `{plan}` 已暂停：无法连接模型服务；没有丢失任何内容，可用 `max-team -c` 继续，\
             不用聊天界面时用 `max-team -r {session} -p \"\"`";
    then_go_on(words: &str, session: &str): "{words}; then go on with `max-team -r {session} -p \"\"`",
        "{words}；然后用 `max-team -r {session} -p \"\"` 继续";
}

impl Lang {
    /// Names calls that needed an approval in a run without a user.
    pub fn nobody_asked(self, calls: &[(String, Recourse)]) -> Option<String> {
        let ((first, _), more) = calls.split_first()?;
        let others = if more.is_empty() { String::new() } else { format!(" (+{})", more.len()) };
        // Advice to write a rule is true if it helps one of the calls.
        Some(if calls.iter().all(|(_, recourse)| recourse.is_beyond_rules()) {
            say!(
                self,
                "not done: {first}{others}. It needs your approval, and a headless run cannot ask; go on in a chat (`max-team -c`), or do it \
                 yourself",
                "未执行：{first}{others}。需要您批准，而非交互运行无法询问；请在对话中继续（`max-team -c`），或自行处理"
            )
        } else {
            say!(
                self,
                "not done: {first}{others}. It needs your approval, and a headless run cannot ask; allow it by a rule (--allowed-tools), or \
                 chat",
                "未执行：{first}{others}。需要您批准，而非交互运行无法询问；可用规则允许（--allowed-tools），或改用对话"
            )
        })
    }

    /// Which questions wait in the inbox, and how to go on.
    pub fn questions_wait(self, first: &str, more: usize, session: &str) -> String {
        let others = if more == 0 { String::new() } else { format!(" (+{more})") };
        let words = say!(
            self,
            "waits for your answer: {first}{others}; `max-team inbox` shows how to answer",
            "等待您的答复：{first}{others}；请用 `max-team inbox` 答复"
        );
        self.then_go_on(&words, session)
    }

    /// That a question has begun to wait, and the command that answers it.
    pub fn question_waits(self, who: &str, what: &str, id: &str, is_asked: bool) -> String {
        let answer = match (self, is_asked) {
            (Self::En, true) => format!("`max-team approve {id} -m ANSWER`"),
            (Self::Zh, true) => format!("`max-team approve {id} -m 答复`"),
            (Self::En, false) => format!("`max-team approve {id}` or `max-team deny {id} -m WHY`"),
            (Self::Zh, false) => format!("`max-team approve {id}` 或 `max-team deny {id} -m 原因`"),
        };
        say!(self, "{who} waits for your answer: {what}; {answer}", "{who} 等待您的答复：{what}；{answer}")
    }

    /// Which call was refused by a rule or the permission mode.
    pub fn refused_call(self, who: &str, call: &str, rule: &str, recourse: Recourse) -> String {
        let (en, zh) = match recourse {
            Recourse::Nothing => {
                ("; no rule or mode allows it: do it yourself", "；任何规则和模式都不允许：请自行处理")
            }
            Recourse::RuleOrMode => (
                "; a rule (--allowed-tools) or another --permission-mode can allow it",
                "；可用规则（--allowed-tools）或其他 --permission-mode 允许",
            ),
            Recourse::Mode => ("; another --permission-mode can allow it", "；可用其他 --permission-mode 允许"),
            Recourse::Rule | Recourse::Person => ("", ""),
        };
        let hint = if self == Self::En { en } else { zh };
        let rule = self.rule(rule);
        say!(self, "refused `{call}` of {who}: {rule}{hint}", "已拒绝 {who} 的 `{call}`：{rule}{hint}")
    }

    /// What of a budget that ended a turn may not have been spent, and what to do about it.
    pub fn budget_unknown(self, ended: &TurnEnded) -> Option<String> {
        let money = Some(ended.unknown_nano).filter(|nano| *nano > 0).map(dollars)?;
        Some(say!(
            self,
            "{money} of that budget is estimated: the provider did not report the usage of calls that were cut off",
            "该预算中有 {money} 为估算：服务商未报告被中断调用的用量"
        ))
    }

    /// Why a turn of a headless run ended without a plain answer, and what to do next.
    pub fn ended_because(self, end: &TurnOutcome) -> Option<String> {
        let (en, zh) = match end {
            TurnOutcome::Answered | TurnOutcome::Proposed | TurnOutcome::Interrupted => return None,
            TurnOutcome::Truncated => (
                "the answer was cut at the model's output limit; raise llm.max_tokens or ask for less",
                "回答因模型输出上限被截断；请提高 llm.max_tokens，或少问一些",
            ),
            TurnOutcome::Refused => {
                ("the model refused to answer; rephrase, or use another model", "模型拒绝回答；请换个说法或换一个模型")
            }
            TurnOutcome::Empty => (
                "the model kept answering with nothing; try again or use another model",
                "模型多次没有给出内容；请重试或换一个模型",
            ),
            TurnOutcome::Unstructured => (
                "the model never gave the structured answer; check the schema or use another model",
                "模型始终没有给出结构化回答；请检查 schema 或换一个模型",
            ),
            TurnOutcome::Looping => (
                "the model repeated the same call again and again and was stopped; rephrase the task",
                "模型不断重复同一调用，已被停止；请换个说法",
            ),
            TurnOutcome::Rounds => (
                "the round limit was reached; go on with `-c -p \"\"`, or raise --max-turns",
                "已达到轮次上限；用 `-c -p \"\"` 继续，或提高 --max-turns",
            ),
            TurnOutcome::Budget => (
                "the budget was reached; go on with `-c -p \"\"` and a larger --max-budget-usd",
                "预算已用完；用 `-c -p \"\"` 并加大 --max-budget-usd 继续",
            ),
            TurnOutcome::Failed { detail, .. } => {
                return Some(say!(self, "the model could not answer: {detail}", "模型无法回答：{detail}"));
            }
            TurnOutcome::Broken { detail } => {
                return Some(say!(self, "the work could not go on: {detail}", "工作无法继续：{detail}"));
            }
        };
        Some(if self == Self::En { en } else { zh }.to_owned())
    }

    /// Where a plan that is not over stands, and what to do about it; nothing for one that is.
    pub fn standing(self, plan: &Plan) -> Option<String> {
        if plan.ended().is_some() || plan.proposed().is_none() {
            return None;
        }
        let failing = plan.tasks().filter(|view| view.status == TaskStatus::Failed).count();
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
    pub fn answered_with(self, plan: &Plan) -> Option<String> {
        let id = plan.id()?;
        let (question, about) = plan.asked().next()?;
        Some(match about {
            PlanQuestion::Failure { task, .. } => say!(
                self,
                "task `{task}` failed and somebody must decide: `max-team approve {question} --retry`, `--skip`, \
                 `--fixed`, `--accept` or `--give-up`",
                "任务 `{task}` 失败，需要有人决定：`max-team approve {question} --retry`、`--skip`、`--fixed`、`--accept` 或 `--give-up`"
            ),
            PlanQuestion::Budget => say!(
                self,
                "the budget is used up: go on with a larger --max-budget-usd, or `max-team deny {question} -m WHY`",
                "预算已用完：请加大 --max-budget-usd 后继续，或 `max-team deny {question} -m 原因`"
            ),
            PlanQuestion::Start { .. } | PlanQuestion::Rest => say!(
                self,
                "the plan waits for a person: `max-team approve {question}` or `max-team deny {question} -m WHY`",
                "计划在等待人工答复：`max-team approve {question}` 或 `max-team deny {question} -m 原因`"
            ),
            PlanQuestion::Proposal if plan.approve() == ApprovalMode::Never => say!(
                self,
                "the plan does something risky (`!`), which `--approve never` does not cover, so it waits for a person: \
                 `max-team approve {id}` or `max-team deny {id} -m WHY`",
                "计划含有风险操作（`!`），`--approve never` 不包括这类操作，因此在等待人工批准：`max-team approve {id}` 或 \
                 `max-team deny {id} -m 原因`"
            ),
            PlanQuestion::Proposal => say!(
                self,
                "the plan waits for a person: `max-team approve {id}` or `max-team deny {id} -m WHY`",
                "计划在等待人工批准：`max-team approve {id}` 或 `max-team deny {id} -m 原因`"
            ),
        })
    }

    /// That a run was stopped; and how to go on, where there is something to go on with.
    pub fn interrupted(self, session: Option<&str>) -> String {
        match session {
            Some(session) => say!(
                self,
                "stopped; what was done is kept: go on with `max-team -r {session} -p \"\"`",
                "已停止；已完成的内容均已保留：用 `max-team -r {session} -p \"\"` 继续"
            ),
            None => say!(self, "stopped; what was done is kept", "已停止；已完成的内容均已保留"),
        }
    }

    /// Who was stopped while others came to an answer; and how to go on with them, where they can.
    pub fn answered_without(self, names: &[&str], session: Option<&str>) -> String {
        let names = names.join(if self == Self::En { ", " } else { "、" });
        match session {
            Some(session) => say!(
                self,
                "stopped before the answer: {names}; go on with `max-team -r {session} -p \"\"`",
                "在回答之前被人停止：{names}；用 `max-team -r {session} -p \"\"` 继续"
            ),
            None => say!(
                self,
                "stopped before the answer, which was given without them: {names}",
                "在回答之前被人停止，回答未包含其结果：{names}"
            ),
        }
    }
}
