//! The phrases of the commands that work on the journal alone.
//!
//! What an agent, a file or a check says is passed through as it is.

use max_team_core::event::ToolOutcome;
use max_team_core::id::{PlanId, SessionId};
use max_team_core::plan::TaskStatus;
use max_team_core::plan::event::{PlanEnd, PlanQuestion, Totals};
use max_team_core::policy::{GrantScope, ProtectedReason};
use max_team_core::status::{AgentStage, IdleReason};
use max_team_runtime::storage::WorkerInfo;
use max_team_runtime::{Person, PersonReply, SpanKind};
use max_team_tools::shell::Job;

use super::{Lang, plural};

phrases! {
    all_holds: "every hash, chain, seal and row holds, and the file is sound", "所有哈希、链条、封印和数据行均完好，文件完整";
    no_sessions_yet: "no sessions yet; start one with `max-team`", "还没有会话；用 `max-team` 开始一个";
    unconstrained: "an agent without constraints", "不受约束的成员";
    unanswered: " (unanswered: go on with -r)", "（尚未答复：用 -r 继续）";
    the_user: "user", "用户";
    call_lost: "a model call was lost with its process", "一次模型调用随进程丢失";
    inbox_empty: "nothing waits for you", "没有等待您处理的事项";
    asked_every_time: "this is asked about every time: say yes to it once", "此类操作每次都会询问：请只同意这一次";
    nothing_spent: "nothing was spent", "没有花费";
    total: "total", "合计";
    nobody_at_work: "no agent is at work; `max-team ps --all` includes finished ones", "没有人在工作；`max-team ps --all` 显示此前的成员";
    getting_ready: "preparing", "准备中";
    affording: "waits for budget that others have set aside", "等待他人预留的预算";
    no_plans_yet: "no plans yet; ask Max for something that takes several members",
        "还没有计划；请向 Max 交代需要多位成员完成的事";
    waits_for_you: "waits for you", "等待您处理";
    for_approval: "your approval", "您的批准";
    for_start: "your go-ahead", "您的许可";
    for_ruling: "a decision on a failed task", "对失败任务的决定";
    for_budget: "a larger budget", "更多预算";
    for_server: "the model server", "模型服务";
    for_answer: "your answer", "您的答复";
    stop_not_read: "ends when next opened", "下次打开时结束";
    plan_held: "/continue or -c -p \"\" resumes it", "用 /continue 或 -c -p \"\" 继续";
    why_word: "WHY", "原因";
    session_word: "session", "会话";
    done_word: "done", "已完成";
    no_plan_open: "no plan is open; a session is stopped by its id", "没有进行中的计划；停止会话请给出其 ID";
    one_plan_for_task: "--task needs one plan: say which", "--task 需要指定一个计划";
    only_for_failures: "--retry, --skip, --fixed, --accept and --give-up are for tasks that failed",
        "--retry、--skip、--fixed、--accept 和 --give-up 只用于失败的任务";
    always_not_for_plans: "--always is for questions of agents, not for plans", "--always 用于成员的提问，不用于计划";
    plan_takes_no_words: "a plan takes no words with a yes; to have it changed: `max-team deny ID --changes -m WHAT`",
        "批准计划时不能附言；要求改动请用 `max-team deny ID --changes -m 内容`";
    first_wave_too_late: "--first-wave is for a plan that has not begun", "--first-wave 只用于尚未开始的计划";
    answer_with_words: "this is a question: answer it with -m TEXT", "这是一个提问：请用 -m 内容 回答";
    changes_too_late: "--changes is for a plan that has not begun; stop this one with `max-team stop`",
        "--changes 只用于尚未开始的计划；请用 `max-team stop` 停止此计划";
    unknown_outcome(money: &str): "≈: {money} of it is estimated, for calls whose usage the provider did not report",
        "≈：其中 {money} 为估算：服务商未报告这些调用的用量";
    used(input: &str, output: &str, money: &str): "{input} in, {output} out, {money}", "输入 {input}，输出 {output}，{money}";
    more_trace(left: usize, limit: usize): "… and {left} more lines (--limit {limit})",
        "… 还有 {left} 行（--limit {limit}）";
    model_failed(detail: &str): "model failed: {detail}", "模型失败：{detail}";
    answered_too(id: &str, who: &str, asked: &str): "{id} yes, with it: {who}: {asked}", "{id} 随之同意：{who}：{asked}";
    which_question(count: usize): "{count} questions wait: say which one by its id", "有 {count} 个问题在等待：请用 ID 指定";
    answered_already(by: &str, said: &str, at: &str): "this was already answered: `{said}` by {by}, {at}",
        "已有答复：`{said}`（{by}，{at}）";
    taken_back(by: &str, said: &str, at: &str): "taken back unread: `{said}` by {by}, {at}",
        "已收回（尚无人读取）：`{said}`（{by}，{at}）";
    rule_stays(rules: &str, path: &str):
        "its rule stays and allows the next one like it: {rules} in `{path}`; take it out there to be asked again",
        "其规则仍保留，下次同类动作仍会被允许：`{path}` 中的 {rules}；如要再次被询问，请从中删除";
    always_means(id: &str, rules: &str): "max-team approve {id} --always   allows for this session: {rules}",
        "max-team approve {id} --always   在本会话中允许：{rules}";
    which_plan(ids: &str): "several plans are open: {ids}; say which, or --all", "有多个进行中的计划：{ids}；请指定一个，或用 --all";
    unknown_plan(id: &str): "there is no plan `{id}`; `max-team plans list` shows those there are",
        "没有计划 `{id}`；用 `max-team plans list` 查看";
    no_plan_or_session(id: &str):
        "there is no plan, session or agent `{id}`; see `max-team plans list`, `max-team sessions list` and `max-team ps`",
        "没有计划、会话或智能体 `{id}`；请看 `max-team plans list`、`max-team sessions list` 和 `max-team ps`";
    does_nothing(session: SessionId): "session {session} does nothing", "会话 {session} 没有在做任何事";
    agent_rests(name: &str): "{name} does nothing", "{name} 没有在做任何事";
    no_task_in_it(name: &str, names: &str): "there is no task `{name}` in it; there are {names}",
        "其中没有任务 `{name}`；有 {names}";
}

/// The column by which costs are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostBy {
    Agent,
    Task,
    Model,
    Day,
    Session,
}

impl Lang {
    /// The commands that decide about a failed task.
    pub fn failure_choices(self, id: &str, task: &str) -> String {
        let choices: [(&str, &str, &str); 5] = [
            ("--retry [--by MEMBER] [--with MODEL] [-m NOTE]", "try it again", "再试一次"),
            ("--skip", "go on without it", "不做此任务，继续其余"),
            ("--fixed", "it was mended by hand: check it again", "已手工修好：重新检查"),
            ("--accept", "its member's answer counts as the result", "以成员的回答为结果"),
            ("--give-up", "leave it failed, and give up what builds on it", "保持失败，并放弃依赖它的任务"),
        ];
        let head = say!(
            self,
            "task `{task}` failed and needs a choice; nothing was changed:",
            "任务 `{task}` 失败，需要选择如何处理；未作任何改动："
        );
        let row = |(flag, en, zh): &(&str, &str, &str)| {
            let words = if self == Self::En { en } else { zh };
            format!("  max-team approve {id} {flag}  # {words}")
        };
        [head].into_iter().chain(choices.iter().map(row)).collect::<Vec<_>>().join("\n")
    }

    pub fn people_heads(self) -> [&'static str; 11] {
        match self {
            Self::En => {
                ["SESSION", "NAME", "ROLE", "STATE", "TASK", "TRY>", "TIME>", "MODEL", "TOKENS>", "COST>", "DOING"]
            }
            Self::Zh => ["会话", "姓名", "角色", "状态", "任务", "次数>", "用时>", "模型", "TOKEN>", "花费>", "正在做"],
        }
    }

    pub fn plan_heads(self) -> [&'static str; 6] {
        match self {
            Self::En => ["PLAN", "PROPOSED", "SESSION", "DONE>", "STATE", "GOAL"],
            Self::Zh => ["计划", "提出时间", "会话", "完成>", "状态", "目标"],
        }
    }

    /// What stands before the lines of `permissions why`.
    pub fn why_heads(self) -> [&'static str; 5] {
        match self {
            Self::En => ["because", "written in", "what would change it", "an answer is remembered as", "judged for"],
            Self::Zh => ["依据", "写于", "如何改变", "回答将记为", "判断对象"],
        }
    }

    pub fn protected_head(self) -> &'static str {
        match self {
            Self::En => {
                "A change of these files always asks, also in an approved plan and in every mode, and the sandbox keeps those \
                 directly beneath the project's folder from scripts and builds. `a/b`: at any depth, with everything beneath; \
                 `/a/b`: only from the project's folder."
            }
            Self::Zh => {
                "更改这些文件总要询问，已批准的计划和任何模式下也一样；直接位于项目目录下的，沙箱不让脚本和构建更改。\
                 `a/b`：任意层级，包括其下所有内容；\
                 `/a/b`：仅指项目根目录下。"
            }
        }
    }

    /// Why files are protected.
    pub fn reach(self, reach: ProtectedReason) -> &'static str {
        match (self, reach) {
            (Self::En, ProtectedReason::Runs) => "Run by themselves:",
            (Self::En, ProtectedReason::Instructs) => "Instruct an agent:",
            (Self::En, ProtectedReason::Configures) => "Configure an agent:",
            (Self::En, ProtectedReason::Records) => "Record what agents did:",
            (Self::Zh, ProtectedReason::Runs) => "会自行运行：",
            (Self::Zh, ProtectedReason::Instructs) => "给智能体下指令：",
            (Self::Zh, ProtectedReason::Configures) => "配置智能体：",
            (Self::Zh, ProtectedReason::Records) => "记录智能体的行为：",
        }
    }

    pub fn never_by_tools(self) -> &'static str {
        match self {
            Self::En => "(file tools refuse it; only you change it)",
            Self::Zh => "（文件工具拒绝更改；只能由您更改）",
        }
    }

    pub fn cost_heads(self, by: CostBy) -> [&'static str; 6] {
        let (en, zh) = match by {
            CostBy::Agent => ("AGENT", "成员"),
            CostBy::Task => ("TASK", "任务"),
            CostBy::Model => ("MODEL", "模型"),
            CostBy::Day => ("DAY", "日期"),
            CostBy::Session => ("SESSION", "会话"),
        };
        match self {
            Self::En => [en, "CALLS>", "IN>", "CACHED>", "OUT>", "COST>"],
            Self::Zh => [zh, "调用>", "输入>", "缓存>", "输出>", "花费>"],
        }
    }

    pub fn person_state(self, state: AgentStage) -> &'static str {
        match (self, state) {
            (Self::En, state) => state.name(),
            (Self::Zh, AgentStage::Created) => "待批准",
            (Self::Zh, AgentStage::Starting) => "启动中",
            (Self::Zh, AgentStage::Ready) => "就绪",
            (Self::Zh, AgentStage::Busy) => "忙碌",
            (Self::Zh, AgentStage::Stopped) => "已停止",
        }
    }

    /// Why an agent does nothing.
    pub fn reason(self, person: &Person) -> Option<String> {
        let reason = person.reason.as_ref()?;
        let is_parked = person.pid.is_none() && person.state == AgentStage::Stopped;
        if let (Self::Zh, IdleReason::Blocked(why), true) = (self, reason, is_parked) {
            let parked = format!("没有进程运行此会话：max-team -r {}", person.session);
            let first = why.split("; ").next().unwrap_or_default();
            return Some(match (first.strip_prefix(IdleReason::LETTERS), first.strip_prefix(IdleReason::CLAIMS)) {
                (Some(count), _) => format!("有 {count} 条消息在等待；{parked}"),
                (None, Some(name)) => format!("{}；{parked}", self.takes_none(name)),
                (None, None) if [IdleReason::STOPPED, IdleReason::TEAM].contains(&first) => {
                    format!("{}；{parked}", self.phrase(first))
                }
                (None, None) => parked,
            });
        }
        Some(self.idle_because(reason))
    }

    /// A reason in words.
    pub fn idle_because(self, reason: &IdleReason) -> String {
        match reason {
            IdleReason::Done => self.done_word().to_owned(),
            IdleReason::WaitingFor(what) => {
                let what = self.phrase(what);
                say!(self, "waiting for {what}", "等待 {what}")
            }
            IdleReason::Blocked(what) => {
                let behind = [IdleReason::DECISION, IdleReason::LETTERS, IdleReason::CLAIMS]
                    .map(|front| what.strip_prefix(front));
                match behind {
                    [Some(error), ..] => say!(self, "a decision: {error}", "需要决定：{error}"),
                    [_, Some(count), _] => say!(self, "messages wait: {count}", "有 {count} 条消息在等待"),
                    [.., Some(name)] => self.takes_none(name),
                    [None, None, None] => self.phrase(what).to_owned(),
                }
            }
            IdleReason::Failed(why) => self.failed_with(self.phrase(why), false),
        }
    }

    /// A teammate that takes tasks by itself was stopped.
    fn takes_none(self, name: &str) -> String {
        say!(self, "it was stopped and takes no tasks: /continue {name}", "已被停止，不再领取任务：/continue {name}")
    }

    /// What is always said in the same words; names and errors stay as they are.
    fn phrase(self, words: &str) -> &str {
        const PHRASES: [(&str, &str); 14] = [
            (IdleReason::YOU, "你"),
            (IdleReason::LEAD, "负责人"),
            (IdleReason::USER, "用户"),
            (IdleReason::PLACE, "空位"),
            (IdleReason::SERVER, "模型服务"),
            (IdleReason::COPIES, "项目副本"),
            (IdleReason::BUDGET, "预算已用完"),
            (IdleReason::STOPPED, "被停止"),
            (IdleReason::TEAM, "有团队等待开始"),
            (IdleReason::REFUSED, "模型拒绝回答"),
            (IdleReason::EMPTY, "模型没有回答"),
            (IdleReason::UNSTRUCTURED, "模型始终没有给出结构化的回答"),
            (IdleReason::LOOPING, "模型在重复自己"),
            (IdleReason::ROUNDS, "达到轮数上限"),
        ];
        let own = PHRASES.iter().find(|(en, _)| self == Self::Zh && *en == words);
        own.map_or(words, |(_, zh)| zh)
    }

    /// How a command in the background is.
    pub fn job_state(self, job: &Job) -> &'static str {
        match (self, job.over.is_some()) {
            (Self::En, false) => "running",
            (Self::En, true) => "ended",
            (Self::Zh, false) => "运行中",
            (Self::Zh, true) => "已结束",
        }
    }

    pub fn calling(self, model: &str, attempt: u32) -> String {
        match attempt {
            0 | 1 => say!(self, "calling {model}", "正在调用 {model}"),
            _ => say!(self, "calling {model} (attempt {attempt})", "正在调用 {model}（第 {attempt} 次）"),
        }
    }

    pub fn span(self, kind: SpanKind) -> &'static str {
        let (en, zh) = match kind {
            SpanKind::Session => ("session", "会话"),
            SpanKind::Plan => ("plan", "计划"),
            SpanKind::Task => ("task", "任务"),
            SpanKind::Attempt => ("try", "尝试"),
            SpanKind::Turn => ("turn", "轮次"),
            SpanKind::Model => ("model", "模型"),
            SpanKind::Tool => ("tool", "工具"),
            SpanKind::Question => ("asked", "提问"),
            SpanKind::Compaction => ("compacted", "压缩"),
        };
        if self == Self::En { en } else { zh }
    }

    pub fn call_failed(self, key: &str, ending: ToolOutcome) -> String {
        let how = match ending {
            ToolOutcome::Refused => self.refused(),
            ToolOutcome::Interrupted => self.stopped_row(),
            ToolOutcome::Unknown => self.outcome_unknown(),
            ToolOutcome::Ran | ToolOutcome::Invalid => return say!(self, "call {key} failed", "调用 {key} 失败"),
        };
        say!(self, "call {key} failed: {how}", "调用 {key} 失败：{how}")
    }

    pub fn question_answered(self, yes: bool, by: &str) -> String {
        let word = if yes { self.yes_word() } else { self.no_word() };
        say!(self, "answered {word} by {by}", "{by} 答复：{word}")
    }

    pub fn tasks(self, count: usize) -> String {
        let tasks = plural(count, "task");
        say!(self, "{tasks}", "{count} 个任务")
    }

    pub fn task_after(self, task: &str, agent: &str, needs: &str) -> String {
        match needs {
            "" => format!("{task} ({agent})"),
            _ => say!(self, "{task} ({agent}) after {needs}", "{task} ({agent})，在 {needs} 之后"),
        }
    }

    /// Since when who asks, in which session.
    pub fn asked_since(self, age: &str, who: &str, session: Option<&str>) -> String {
        match session {
            Some(session) => say!(self, "since {age}, {who}, session {session}", "已等 {age}，{who}，会话 {session}"),
            None => say!(self, "since {age}, {who}", "已等 {age}，{who}"),
        }
    }

    pub fn said_already(self, by: &str, said: &str, at: &str, can_go: bool) -> String {
        let back = match self {
            Self::En if can_go => ": `max-team deny` takes it back",
            Self::Zh if can_go => "：用 `max-team deny` 可收回",
            _ => "",
        };
        say!(
            self,
            "{by} said `{said}` already ({at}); it has not been read yet{back}",
            "{by} 已答复 `{said}`（{at}）；尚未有人读取{back}"
        )
    }

    /// An answer, in a word or two.
    pub fn reply(self, reply: &PersonReply) -> String {
        match (self, reply) {
            (Self::En, reply) => reply.word().to_owned(),
            (Self::Zh, PersonReply::Plan(say)) => self.said(say),
            (Self::Zh, PersonReply::Agent(answer)) => {
                if answer.allow { self.yes_word() } else { self.no_word() }.to_owned()
            }
        }
    }

    /// The rules that were allowed with an answer, how long they hold, and for which agents.
    pub fn allowed_from_now_on(self, rules: &str, until: GrantScope, names: &[String]) -> String {
        let (names, others) = (names.join(", "), until == GrantScope::Repository);
        let later = match self {
            Self::En if others => "; for all agents in this repository from the next start on",
            Self::Zh if others => "；从下次启动起对此处所有人有效",
            _ => "",
        };
        let long = self.how_long(until);
        say!(
            self,
            "allowed from now on, {long}: {rules} ({names}{later})",
            "从现在起{long}允许：{rules}（{names}{later}）"
        )
    }

    pub fn how_long(self, until: GrantScope) -> &'static str {
        match (self, until) {
            (Self::En, until) => until.name(),
            (Self::Zh, GrantScope::Once) => "仅此一次",
            (Self::Zh, GrantScope::Task) => "在本任务中",
            (Self::Zh, GrantScope::Session) => "在本会话中",
            (Self::Zh, GrantScope::Repository) => "在本仓库中",
        }
    }

    /// A question on the user's screen was answered elsewhere.
    pub fn answered_elsewhere(self, allow: bool, asked: &str, by: &str) -> String {
        match allow {
            true => say!(self, "answered elsewhere: yes ({by}): {asked}", "已在别处答复：同意（{by}）：{asked}"),
            false => say!(self, "answered elsewhere: no ({by}): {asked}", "已在别处答复：拒绝（{by}）：{asked}"),
        }
    }

    /// The rules that were allowed with it.
    pub fn and_allowed(self, rules: &str, until: GrantScope) -> String {
        let long = self.how_long(until);
        say!(self, "; allowed from now on, {long}: {rules}", "；从现在起{long}允许：{rules}")
    }

    /// What a plan asks, in one line.
    pub fn about_plan(self, about: &PlanQuestion) -> String {
        match about {
            PlanQuestion::Proposal => say!(self, "may this plan run?", "是否执行此计划？"),
            PlanQuestion::Rest => say!(self, "the first wave is over; may the rest run?", "第一波之后是否继续？"),
            PlanQuestion::Start { task } => say!(self, "may task `{task}` start?", "任务 `{task}` 可以开始吗？"),
            PlanQuestion::Failure { task, error } => {
                let error = self.task_error(error);
                say!(self, "task `{task}` failed: {error}", "任务 `{task}` 失败：{error}")
            }
            PlanQuestion::Budget => say!(self, "the budget is used up; is there more?", "预算已用完：是否追加？"),
        }
    }

    /// What is said where no process runs the session.
    pub fn noted(self, session: Option<SessionId>) -> String {
        match session {
            Some(session) => say!(
                self,
                "it is noted; no process runs the session: go on with `max-team -r {session} -p \"\"`, or open the chat with \
                 `max-team -r {session}`",
                "已记下；目前没有进程运行该会话：用 `max-team -r {session} -p \"\"` 继续，或用 `max-team -r {session}` 打开聊天"
            ),
            None => say!(self, "it is noted", "已记下"),
        }
    }

    /// That a plan is stopped while no process has its session open.
    pub fn plan_stop_noted(self, session: Option<SessionId>) -> String {
        let session = session.map(|session| session.to_string()).unwrap_or_default();
        say!(
            self,
            "stopped: no task begins any more, and the plan ends when its session is next opened (`max-team -r {session}`)",
            "已停止：不再开始任何任务；下次打开会话时计划结束（`max-team -r {session}`）"
        )
    }

    /// That a task is stopped while no process has its session open.
    pub fn task_stop_noted(self, task: &str, session: Option<SessionId>) -> String {
        let session = session.map(|session| session.to_string()).unwrap_or_default();
        say!(
            self,
            "task `{task}` is given up when the session is next opened (`max-team -r {session}`)",
            "任务 `{task}` 将在下次打开会话时放弃（`max-team -r {session}`）"
        )
    }

    /// A command was stored, but the process that runs the session has not read it yet.
    pub fn unheard(self, owner: &WorkerInfo) -> String {
        let (pid, what) = (owner.pid, &owner.what);
        say!(
            self,
            "it is noted; process {pid} ({what}) runs the session and has not taken it yet",
            "已记下；进程 {pid}（{what}）正在运行该会话，尚未读取"
        )
    }

    pub fn not_remembered(self) -> &'static str {
        match self {
            Self::En => {
                "no rule was written for the repository: it is not known yet whether this answer counts; \
                 to allow it anyway, add the rule to its `.max-team/settings.local.json`"
            }
            Self::Zh => {
                "未为该仓库写入规则：尚不清楚此答复是否生效；如仍要允许，请将规则加入其 `.max-team/settings.local.json`"
            }
        }
    }

    pub fn plan_over(self, plan: PlanId, end: PlanEnd) -> String {
        let end = self.plan_end(end);
        say!(self, "plan {plan} is over: {end}", "计划 {plan} 已结束：{end}")
    }

    pub fn task_over(self, name: &str, status: TaskStatus) -> String {
        let status = self.task_status(status);
        say!(self, "task `{name}` is over: {status}", "任务 `{name}` 已结束：{status}")
    }

    pub fn stopped_with(self, end: PlanEnd, tally: &Totals) -> String {
        let end = self.plan_end(end);
        let tally = self.tally(tally);
        say!(self, "{end}: {tally}", "{end}：{tally}")
    }
}
