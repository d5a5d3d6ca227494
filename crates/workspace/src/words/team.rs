//! The phrases about members and their plans.
//!
//! Words that a member, a file or an error says are passed through as they are.

use max_team_core::delegation::cache::AnswerAge;
use max_team_core::ledger::dollars;
use max_team_core::plan::event::{
    Correction, CountedOutcome, Evidence, PlanDecision, PlanEnd, Proof, Recheck, Ruling, TaskFiles, TaskResult, Totals,
};
use max_team_core::plan::{PlanState, TaskStatus};
use max_team_core::rewind::MovedFile;

use super::{Lang, plural};
use crate::figures::spent;

/// Files of a stopped task that a line names.
const FILES_SHOWN_MAX: usize = 12;

phrases! {
    nobody_was_called: "no agent has been called in this session yet", "本会话中尚未调用任何人";
    asks: "asks", "提问";
    reply_keys: "Write your answer · Enter sends · Esc: no answer", "请输入答复 · Enter 发送 · Esc 不作答复";
    reply_keys_options: "A digit picks one, or write your own · Enter sends · Esc: no answer",
        "按数字选择，或自行输入 · Enter 发送 · Esc 不作答复";
    reply_here: "Your answer", "您的答复";
    plan: "Plan", "计划";
    plan_word: "plan", "计划";
    no_plan: "no plan", "没有计划";
    needs: "needs", "依赖";
    when: "when", "条件";
    owns: "owns", "负责文件";
    project_folder: "project", "项目";
    must_exist: "must exist", "必须存在";
    must_pass: "must pass", "必须通过";
    with_model: "model", "模型";
    budget_of: "budget", "预算";
    struck_out: "skipped", "跳过";
    yes_word: "yes", "是";
    no_word: "no", "否";
    why: "why", "原因";
    result: "result", "结果";
    waits_for_approval: "waits for your approval", "等待您的批准";
    waits_for_server: "waits for the model server; goes on when it is back, or with `max-team -c`",
        "等待模型服务；恢复后继续，或用 `max-team -c` 继续";
    waits_for_place: "waits for a free place", "等待空位";
    waits_for_ruling: "failed; waits for a decision", "已失败，等待处理决定";
    waits_for_budget: "waits for more budget", "等待追加预算";
    being_checked: "being checked", "正在检查";
    paused: "paused: the budget is used up", "已暂停：预算用完";
    team_works: "the team is at work", "团队正在工作";
    stop_hint: "“stop” or /stop stops it, Esc does not", "“停止”或 /stop 可停止，Esc 不会";
    team_goes_on: "the team goes on: “stop” or /stop stops it", "团队继续工作：用“停止”或 /stop 停止";
    stop_hint_long: "the team goes on; /stop stops it", "团队继续工作；用 /stop 停止";
    board_hint: "Ctrl-T shows it", "Ctrl-T 显示";
    path: "path", "关键路径";
    parked_hint: "/plan brings it back", "用 /plan 重新打开";
    approve: "approve", "批准";
    approve_first: "first wave only", "只批准第一波";
    edit: "edit", "修改";
    ask_changes: "ask for changes", "要求改动";
    reject: "reject", "拒绝";
    later: "later", "稍后";
    go_on: "go on", "继续";
    stop: "stop", "停止";
    start: "start", "开始";
    give_up: "give up", "放弃";
    retry_word: "retry", "重试";
    retry_by: "retry by another", "换人重试";
    skip_word: "skip", "跳过";
    fixed: "fixed by hand", "已手动修好";
    accept_answer: "accept", "接受";
    correction: "correction", "更正";
    decision: "decision", "决定";
    may_run: "may it run?", "是否执行？";
    ask_rest: "The first wave is done. Go on with the rest?", "第一波已完成，是否继续？";
    ask_budget: "The budget is used up. Go on?", "预算已用完，是否继续？";
    all_instructions: "all instructions", "全部说明";
    forecast_unpriced: " (some models have no price)", "（部分模型价格未知）";
    write_changes: "What should be different? (Enter sends, Esc goes back)", "需要怎样改动？（Enter 发送，Esc 返回）";
    write_reason: "Why not? May be empty. (Enter sends, Esc goes back)", "为什么拒绝？可留空。（Enter 发送，Esc 返回）";
    pick_task: "Edit which task? (arrows or its name, Enter; Esc goes back)", "修改哪个任务？（方向键或名称，Enter；Esc 返回）";
    pick_field: "Edit what? (letter or arrows, Enter; Esc goes back)", "修改什么？（字母或方向键，Enter；Esc 返回）";
    field_description: "description", "说明";
    field_owner: "owner", "负责人";
    field_needs: "dependencies", "依赖";
    field_budget: "budget", "预算";
    field_skip: "skip", "跳过";
    field_model: "model", "模型";
    own_model: "the owner's own", "负责人自己的模型";
    not_bounded: "none", "无";
    bad_money: "that is no amount of dollars; write 0.50, or nothing for no budget", "金额无法识别；请写 0.50，留空表示不限";
    no_open_plan: "There is no plan here.", "这里没有计划。";
    nothing_runs: "Nothing runs.", "没有正在运行的内容。";
    no_team: "There is no team in this session.", "此会话没有团队。";
    nothing_waits: "Nothing waits for you.", "没有等待您处理的事项。";
    idle: "idle", "空闲";
    state: "state", "状态";
    tools: "tools", "工具";
    news: "news from the team", "团队消息";
    goes_on: "going on", "继续";
    team_busy_first: "The team is at work: /stop it first, or leave with Ctrl-D; it goes on when you come back.",
        "团队正在工作：请先用 /stop 停止，或按 Ctrl-D 离开；回来后会继续。";
    changed_plan: "The plan was changed.", "计划已修改。";
    at_task(name: &str, task: &str): "{name} (task {task})", "{name}（任务 {task}）";
    more_tasks(count: usize): "{count} more", "还有 {count} 个";
    forecast_budget(money: &str): "; the budget stops it at {money}", "；预算上限 {money}";
    waits_for(tasks: &str): "waits for {tasks}", "等待 {tasks}";
    asks_what(question: &str): "asks: {question}", "提问：{question}";
    again_in(time: &str): "tried again in {time}", "{time} 后重试";
    begun(attempt: u32): "begun (attempt {attempt})", "已开始（第 {attempt} 次）";
    done_with(proof: &str): "done, {proof}", "完成，{proof}";
    left_out(detail: &str): "skipped: {detail}", "跳过：{detail}";
    paused_by(by: &str): "paused by {by}", "由 {by} 暂停";
    checked_again_after(tasks: &str): "its checks failed while others changed files; they run again after {tasks}",
        "检查失败时其他任务正在修改文件；将在 {tasks} 之后重新检查";
    task_changed_by(by: &str): "note added by {by}", "{by} 添加了备注";
    note_of(by: &str): "Note of {by}", "{by} 的备注";
    revision_ended(by: &str): "plan {by} was not approved: this one goes on", "计划 {by} 未获批准：本计划继续";
    cannot_change(why: &str): "it cannot be changed so: {why}", "无法这样改动：{why}";
    at_work(count: usize): "{count} at work", "{count} 人在工作";
    may_start(task: &str): "May task {task} start?", "任务 {task} 可以开始吗？";
    more_money(session: &str): "To spend more: leave with Ctrl-D, then `max-team -r {session} --max-budget-usd USD`",
        "如需追加预算：按 Ctrl-D 退出，然后运行 `max-team -r {session} --max-budget-usd 金额`";
    write_retry_by(members: &str): "Which member? {members} (Enter sends, Esc goes back)", "换谁？{members}（Enter 发送，Esc 返回）";
    write_field(field: &str, task: &str): "New {field} of {task} (Enter sends, Esc goes back)",
        "{task} 的新{field}（Enter 发送，Esc 返回）";
    no_member(name: &str, members: &str): "there is no member `{name}`; there are {members}",
        "没有成员 `{name}`；现有：{members}";
    no_model(name: &str): "there is no model `{name}` here; /model lists them", "没有模型 `{name}`；用 /model 查看列表";
    no_task(name: &str): "There is no open task `{name}`; /plan shows them.", "没有进行中的任务 `{name}`；用 /plan 查看。";
    plan_parked(goal: &str): "plan waits for you: {goal}", "计划等待您处理：{goal}";
    nobody_called(name: &str): "no agent here is called `{name}`", "这里没有名为 `{name}` 的成员";
    so_many_tokens(tokens: &str): "{tokens} tokens", "{tokens} 个 token";
    with_calls(name: &str): "{name}, with those it called", "{name}（含其调用）";
}

impl Lang {
    pub fn shape(self, tasks: usize, waves: usize, path: &str) -> String {
        let counts = self.counts(tasks, waves);
        say!(self, "{counts}, critical path: {path}", "{counts}，关键路径：{path}")
    }

    pub fn counts(self, tasks: usize, waves: usize) -> String {
        let (task, wave) = (plural(tasks, "task"), plural(waves, "wave"));
        say!(self, "{task} in {wave}", "{tasks} 个任务，{waves} 波")
    }

    /// The forecast of a plan; without a range, no price is known.
    pub fn forecast(self, range: Option<&str>, time: &str, calls: u64) -> String {
        let s = if calls == 1 { "" } else { "s" };
        let calls = say!(self, "{calls} model call{s}", "{calls} 次模型调用");
        match range {
            Some(range) => say!(self, "about {range} and {time}, {calls}", "预计 {range}，约 {time}，{calls}"),
            None => say!(self, "cost unknown; about {time}, {calls}", "费用未知；约 {time}，{calls}"),
        }
    }

    pub fn forecast_samples(self, tasks: u64) -> String {
        let s = if tasks == 1 { "" } else { "s" };
        say!(self, "; from {tasks} earlier task{s}", "；依据此前 {tasks} 个任务")
    }

    /// Rows of a task's instructions that are not shown, and the key or command that shows them.
    pub fn more_instructions(self, rows: usize, how: &str) -> String {
        let word = if rows == 1 { "line" } else { "lines" };
        say!(self, "… {rows} more {word} ({how})", "……还有 {rows} 行（{how}）")
    }

    /// The last correction of a task: what the checks say now, and what it cost.
    pub fn corrected(self, correction: &Correction, result: &TaskResult) -> String {
        let done = match (correction.not_done, correction.checks) {
            (true, _) => say!(self, "the correction is not done", "更正未完成"),
            (false, Recheck::Unneeded) => say!(self, "asked again", "已再次询问"),
            (false, _) => say!(self, "corrected", "已更正"),
        };
        let mark = |evidence: &Evidence| format!("{} {}", if evidence.ok { "✓" } else { "✗" }, evidence.what);
        let marks: Vec<String> = result.evidence.iter().map(mark).collect();
        let outcome = format!("{}: {}", self.outcome(result), marks.join(", "));
        let (en, zh) = match correction.checks {
            Recheck::Ran if marks.is_empty() => ("it has no checks", "没有检查"),
            Recheck::Ran => (outcome.as_str(), outcome.as_str()),
            Recheck::Unneeded => ("it answered and changed nothing", "已答复，没有改动"),
            Recheck::Worktree => ("not checked: its changes are in a worktree", "未检查：改动在工作树中"),
            Recheck::Stopped => ("not checked: the plan was stopped", "未检查：计划已停止"),
            Recheck::Interrupted => ("not checked: it was stopped", "未检查：已停止"),
        };
        let money = format!("${:.4}", dollars(correction.spent.nano));
        say!(self, "{done}; {en}; {money}", "{done}；{zh}；{money}")
    }

    pub fn failed_with(self, error: &str, again: bool) -> String {
        match again {
            true => say!(self, "failed: {error}; it is tried again", "失败：{error}；将重试"),
            false => say!(self, "failed: {error}", "失败：{error}"),
        }
    }

    pub fn told_by(self, by: &str, answer: &str) -> String {
        let by = self.told(by);
        say!(self, "told by {by}: {answer}", "{by} 答复：{answer}")
    }

    pub fn decided_by(self, by: &str, ruling: &str) -> String {
        let by = self.told(by);
        say!(self, "{by} decides: {ruling}", "{by} 决定：{ruling}")
    }

    pub fn given_up(self, detail: &str) -> String {
        let detail = self.task_error(detail);
        say!(self, "given up: {detail}", "放弃：{detail}")
    }

    /// Why a task came to nothing; who has stopped it is told with it.
    pub fn task_error(self, error: &str) -> String {
        error.strip_prefix("stopped by ").map_or_else(|| self.told(error), |by| self.stopped_by(by))
    }

    pub fn stopped_by(self, by: &str) -> String {
        let by = self.told(by);
        say!(self, "stopped by {by}", "由 {by} 停止")
    }

    /// That another plan was proposed, and the tasks that wait for the decision about it.
    pub fn plan_revised(self, by: &str, held: &[String]) -> String {
        if held.is_empty() {
            return say!(self, "plan {by} was proposed in its place", "已提出计划 {by} 取代它");
        }
        let held = held.join(", ");
        say!(
            self,
            "plan {by} was proposed in its place; until you decide, these tasks wait: {held}",
            "已提出计划 {by} 取代它；在您决定之前，以下任务等待：{held}"
        )
    }

    /// The files that a stopped task had changed, as many as fit a line.
    pub fn had_changed(self, files: &[String]) -> String {
        let shown = files.iter().take(FILES_SHOWN_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = files.len().saturating_sub(FILES_SHOWN_MAX);
        let rest = match (more, self) {
            (0, _) => String::new(),
            (more, Self::En) => format!(" and {more} more"),
            (more, Self::Zh) => format!(" 等另外 {more} 个"),
        };
        say!(self, "it has changed {shown}{rest}", "它已更改 {shown}{rest}")
    }

    /// What an unfinished task leaves: changed files, commands whose changes are not known yet, protected files that were
    /// moved away.
    pub fn task_left(self, left: &TaskFiles) -> String {
        let mut words = Vec::new();
        if !left.files.is_empty() {
            words.push(self.had_changed(&left.files));
        }
        if !left.running.is_empty() {
            let commands = left.running.join("`, `");
            words.push(say!(
                self,
                "`{commands}` was still running, so its changes are not listed",
                "`{commands}` 当时仍在运行，其更改未列出"
            ));
        }
        if !left.moved.is_empty() {
            words.push(self.moved_away(&left.moved));
        }
        words.join(if self == Self::Zh { "；" } else { "; " })
    }

    /// Protected files that a command made without approval, and where they are now.
    pub fn moved_away(self, moved: &[MovedFile]) -> String {
        let one = |MovedFile { path, to }: &MovedFile| match (to.as_str(), self) {
            ("", Self::En) => format!("`{path}` (could not be moved; remove it)"),
            ("", Self::Zh) => format!("`{path}`（无法移走，请删除）"),
            (to, _) => format!("`{path}` → `{to}`"),
        };
        let shown: Vec<String> = moved.iter().take(FILES_SHOWN_MAX).map(one).collect();
        let (shown, more) = (shown.join(", "), moved.len().saturating_sub(FILES_SHOWN_MAX));
        let rest = match (more, self) {
            (0, _) => String::new(),
            (more, Self::En) => format!(" and {more} more"),
            (more, Self::Zh) => format!(" 等另外 {more} 个"),
        };
        say!(
            self,
            "protected files that commands made without your approval were moved away: {shown}{rest}; look at them, then remove them \
             or rename them back",
            "命令未经您批准创建的受保护文件已被移走：{shown}{rest}；请查看后删除，或改回原名"
        )
    }

    /// A decision about a plan.
    pub fn said(self, say: &PlanDecision) -> String {
        let (en, zh) = match say {
            PlanDecision::Approve => ("approved", "已批准"),
            PlanDecision::FirstWave => ("approved, the first wave", "已批准第一波"),
            PlanDecision::Edit(_) => ("edited", "已修改"),
            PlanDecision::Changes(words) => return say!(self, "changes wanted: {words}", "要求改动：{words}"),
            PlanDecision::Reject(why) if !why.is_empty() => return say!(self, "rejected: {why}", "已拒绝：{why}"),
            PlanDecision::Reject(_) => ("rejected", "已拒绝"),
            PlanDecision::Rule(ruling) => return self.ruling(ruling),
        };
        if self == Self::En { en } else { zh }.to_owned()
    }

    pub fn said_by(self, say: &PlanDecision, by: &str) -> String {
        let said = self.said(say);
        say!(self, "{said} by {by}", "{said}（{by}）")
    }

    pub fn answered_by(self, say: &PlanDecision, by: &str) -> String {
        let said = self.said_by(say, by);
        say!(self, "answered: {said}", "已答复：{said}")
    }

    pub fn ruling(self, ruling: &Ruling) -> String {
        let (en, zh) = match ruling {
            Ruling::Skip => ("go on without it", "跳过并继续"),
            Ruling::Retry { agent, model, .. } => {
                let name = |name: &Option<String>| name.clone().unwrap_or_default();
                let (agent, model) = (name(agent), name(model));
                return match (agent.is_empty(), model.is_empty()) {
                    (true, true) => say!(self, "again", "重试"),
                    (false, true) => say!(self, "again by {agent}", "由 {agent} 重试"),
                    (true, false) => say!(self, "again with {model}", "用 {model} 重试"),
                    (false, false) => say!(self, "again by {agent} with {model}", "由 {agent} 用 {model} 重试"),
                };
            }
            Ruling::Fixed => ("mended by hand, check again", "已手动修好，重新检查"),
            Ruling::Accept => ("take the answer as the result", "以其回答为结果"),
            Ruling::GiveUp => ("give it up", "放弃"),
            Ruling::Escalate => ("the user must say", "由用户决定"),
        };
        if self == Self::En { en } else { zh }.to_owned()
    }

    pub fn plan_end(self, end: PlanEnd) -> &'static str {
        let (en, zh) = match end {
            PlanEnd::Done => ("done", "完成"),
            PlanEnd::Partial => ("partly done", "部分完成"),
            PlanEnd::Failed => ("failed", "失败"),
            PlanEnd::Stopped => ("stopped", "已停止"),
            PlanEnd::Rejected => ("rejected", "被拒绝"),
            PlanEnd::Replaced => ("replaced", "被替换"),
        };
        if self == Self::En { en } else { zh }
    }

    /// The state of a plan.
    pub fn plan_state(self, state: PlanState) -> &'static str {
        match (self, state) {
            (Self::En, state) => state.name(),
            (Self::Zh, PlanState::Running) => "运行中",
            (Self::Zh, PlanState::Waiting) => "等待中",
            (Self::Zh, PlanState::Paused) => "已暂停",
            (Self::Zh, PlanState::Stopped) => "已停止",
            (Self::Zh, PlanState::Done) => "完成",
            (Self::Zh, PlanState::Failed) => "失败",
        }
    }

    /// The state of a plan in a line of its own.
    pub fn plan_stands(self, state: PlanState) -> String {
        let state = self.plan_state(state);
        say!(self, "state: {state}", "状态：{state}")
    }

    pub fn came_to(self, end: PlanEnd, tally: &Totals) -> String {
        let (end, money) = (self.plan_end(end), spent(tally.spent.nano, tally.spent.unknown_nano));
        let tally = self.tally(tally);
        say!(self, "{end}: {tally}, {money}", "{end}：{tally}，{money}")
    }

    /// The counts of a plan's tasks.
    pub fn tally(self, tally: &Totals) -> String {
        if self == Self::En {
            return tally.to_string();
        }
        let count = |(outcome, count): (CountedOutcome, usize)| match outcome {
            CountedOutcome::Cached => format!("，来自缓存 {count}"),
            CountedOutcome::Verified => format!("，已验证 {count}"),
            CountedOutcome::Failed => format!("，失败 {count}"),
            CountedOutcome::Mended => format!("（其中已补上 {count}）"),
            CountedOutcome::Skipped => format!("，跳过 {count}"),
            CountedOutcome::GivenUp => format!("，放弃 {count}"),
        };
        format!("{} 个任务完成 {} 个{}", tally.tasks, tally.done, tally.outcomes().map(count).collect::<String>())
    }

    pub fn proof(self, proof: Proof) -> &'static str {
        let (en, zh) = match proof {
            Proof::Verified => ("verified", "已验证"),
            Proof::Unverified => ("unverified", "未验证"),
            Proof::Failed => ("failed", "未通过"),
        };
        if self == Self::En { en } else { zh }
    }

    /// Whether a result is proven, and where a cached one comes from.
    pub fn outcome(self, result: &TaskResult) -> String {
        let proof = self.proof(result.proof);
        match &result.cached {
            None if !result.unknown.is_empty() => {
                let commands = result.unknown.join("`, `");
                say!(self, "{proof}; outcome unknown: `{commands}`", "{proof}；结果未知：`{commands}`")
            }
            None if result.evidence.iter().any(|evidence| evidence.passed_before) => {
                say!(self, "{proof}; a check also passed before the task", "{proof}；有检查在任务开始之前也已通过")
            }
            None if result.is_only_files() => {
                say!(self, "verified only that its files exist", "仅验证了文件存在")
            }
            None => proof.to_owned(),
            Some(cached) => {
                let age = self.age(AnswerAge::of(cached.age_ms));
                say!(self, "{proof}, from the cache, {age}", "{proof}，来自缓存（{age}）")
            }
        }
    }

    pub fn task_status(self, status: TaskStatus) -> &'static str {
        let (en, zh) = match status {
            TaskStatus::Planned => ("planned", "计划"),
            TaskStatus::Approved => ("waiting", "等待"),
            TaskStatus::Dispatched => ("sent", "已派发"),
            TaskStatus::Running => ("running", "运行"),
            TaskStatus::Done => ("done", "完成"),
            TaskStatus::Failed => ("failed", "失败"),
            TaskStatus::Skipped => ("skipped", "跳过"),
            TaskStatus::Cancelled => ("given up", "放弃"),
        };
        if self == Self::En { en } else { zh }
    }

    /// How far a plan is.
    pub fn progress(self, tally: &Totals, failing: usize) -> String {
        let Totals { tasks, done, verified, .. } = tally;
        let text = say!(self, "{done}/{tasks} done, {verified} verified", "完成 {done}/{tasks}，已验证 {verified}");
        match failing {
            0 => text,
            _ => text + &say!(self, ", {failing} failed", "，失败 {failing}"),
        }
    }

    pub fn task_failed(self, task: &str, member: &str, attempt: u32) -> String {
        let times = if attempt == 1 { "attempt" } else { "attempts" };
        say!(
            self,
            "Task {task} ({member}) failed after {attempt} {times}",
            "任务 {task}（{member}）尝试 {attempt} 次后失败"
        )
    }

    /// Money and time of a member that was given one thing to do.
    pub fn member_done(self, name: &str, ok: bool, figures: &str) -> String {
        match ok {
            true => say!(self, "{name}: done · {figures}", "{name}：完成 · {figures}"),
            false => say!(self, "{name}: not done · {figures}", "{name}：未完成 · {figures}"),
        }
    }
}
