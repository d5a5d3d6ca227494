//! The phrases of the first minutes: what is missing, what was mistyped, what `doctor` finds, what failed underneath.

use max_team_core::id::PlanId;
use max_team_runtime::storage::{JournalError, WorkerInfo};
use max_team_runtime::{AuditFailure, RuntimeError};
use max_team_tools::command::{Engine, Obstacle};

use super::Lang;
use crate::format::bytes;

/// The error in a line of JSON input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineFault {
    /// It has more megabytes than this.
    TooLong(usize),
    NotJson(String),
    /// It is not UTF-8.
    NotText,
    /// It does not say what it is, or something that is not read here.
    Type(String),
    Role(String),
    Part(String),
    NoContent,
    Silent,
}

impl Lang {
    /// Why a mechanism is not used: it does not work here, or another one comes first.
    pub fn passed_over(self, engine: Engine, missing: Option<&Obstacle>) -> String {
        let name = match engine {
            Engine::Namespaces => self.namespaces_engine().to_owned(),
            Engine::Bubblewrap => "bubblewrap".to_owned(),
            _ => "Landlock".to_owned(),
        };
        match missing.map(|why| self.obstacle(why)) {
            Some(why) => self.engine_unusable(&name, &why),
            None => self.engine_not_needed(&name),
        }
    }

    fn obstacle(self, why: &Obstacle) -> String {
        match why {
            Obstacle::NoBubblewrap => self.no_bubblewrap().to_owned(),
            Obstacle::NoControlGroup(path) => self.no_control_group(path.display()),
            Obstacle::Other(why) => why.clone(),
        }
    }

    /// Who caps memory and processes: the system, in a folder, or we, and why.
    pub fn sandbox_caps(self, group: &Result<std::path::PathBuf, Obstacle>) -> String {
        match (self, group) {
            (Self::En, Ok(place)) => {
                format!("memory and processes: capped by a control group for each command, in `{}`", place.display())
            }
            (Self::Zh, Ok(place)) => format!("内存和进程数：每个命令由 `{}` 中的控制组封顶", place.display()),
            (Self::En, Err(why)) => {
                format!("memory and processes: counted by the supervisor, which ends what is over its limit ({why})")
            }
            (Self::Zh, Err(why)) => {
                let why = self.obstacle(why);
                format!("内存和进程数：由监督进程统计，超限即结束（{why}）")
            }
        }
    }

    pub fn bad_line(self, number: usize, fault: &LineFault) -> String {
        let why = match fault {
            LineFault::TooLong(megabytes) => self.line_too_long(megabytes),
            LineFault::NotJson(detail) => self.not_json(detail),
            LineFault::NotText => self.line_not_utf8().to_owned(),
            LineFault::Type(kind) if kind.is_empty() => self.line_type_missing().to_owned(),
            LineFault::Type(kind) => self.line_type_unknown(kind),
            LineFault::Role(role) => self.line_role_unknown(role),
            LineFault::Part(kind) => self.bad_part_type(kind),
            LineFault::NoContent => self.line_content_unknown().to_owned(),
            LineFault::Silent => self.line_is_empty().to_owned(),
        };
        self.standard_input_line(number, &why)
    }

    /// A folder whose name is not UTF-8, with its bytes; `variable` names it.
    pub fn not_utf8(self, name: &str, variable: Option<&str>) -> String {
        match variable {
            Some(variable) => self.variable_not_utf8(variable, name),
            None => self.folder_not_utf8(name),
        }
    }

    /// A bare word that is no command.
    pub fn no_command(self, word: &str, near: Option<&str>) -> String {
        match near {
            Some(near) => self.no_command_near(word, near),
            None => self.unknown_word(word),
        }
    }

    pub fn no_space(self, folder: &str, free: u64) -> String {
        let free = bytes(usize::try_from(free).unwrap_or(usize::MAX));
        self.folder_full(folder, &free)
    }

    /// What other programs would use and has no effect here.
    pub fn not_honoured(self, kinds: &str, hooks: bool) -> String {
        let trust = match self {
            _ if !hooks => "",
            Self::En => {
                "; what a PreToolUse hook covers needs your approval (headless runs refuse it) until `max-team permissions trust`"
            }
            Self::Zh => {
                "；PreToolUse 钩子所涵盖的操作需要您批准（非交互运行会拒绝），直到运行 `max-team permissions trust`"
            }
        };
        self.claude_files_unused(kinds, trust)
    }

    pub fn unused_names(self, names: &str) -> String {
        if names.is_empty() {
            return self.has_no_effect_here().to_owned();
        }
        self.names_have_no_effect(names)
    }

    pub fn hook_left(self, matcher: &str, origin: &str) -> String {
        let tools = if matcher.is_empty() { "*" } else { matcher };
        self.without_hook(tools, origin)
    }

    pub fn little_space(self, free: u64) -> String {
        let free = bytes(usize::try_from(free).unwrap_or(usize::MAX));
        self.disk_almost_full(&free)
    }

    pub fn model_with_key(self, model: &str, key: &str, priced: bool) -> String {
        let price = match self {
            _ if priced => "",
            Self::En => "; no price known, so budgets cannot be kept",
            Self::Zh => "；价格未知，无法控制预算",
        };
        self.key(model, key, price)
    }

    /// An audit file that cannot be written.
    pub fn audit_failure(self, failure: &AuditFailure) -> String {
        let AuditFailure { path, detail } = failure;
        match self {
            Self::En => failure.to_string(),
            Self::Zh => format!(
                "无法写入审计文件 `{path}`：{detail}；请使其可写，在 `audit.output` 中改用其他文件，或设置 `audit.enabled: false`"
            ),
        }
    }

    /// A failure of the runtime. Chinese texts exist for those that users meet; the others are for developers.
    pub fn runtime_failure(self, error: &RuntimeError) -> String {
        let told = || error.to_string();
        if let RuntimeError::Answered { by, said, at_ms } = error {
            return self.answered_by_now(*said, by, &max_team_core::time::rfc3339(*at_ms));
        }
        if self == Self::En {
            return match error {
                RuntimeError::Tasks(refusal) => self.list_refusal(refusal),
                error if error.is_anothers() => "a message could not be stored; the conversation is kept".to_owned(),
                _ => told(),
            };
        }
        match error {
            error if error.is_anothers() => "有一条消息未能保存；对话内容都在".to_owned(),
            RuntimeError::Journal(error) => self.journal_failure(error),
            RuntimeError::OwnedElsewhere { resource, by } => owned_elsewhere(resource, by),
            RuntimeError::Audit(failure) => self.audit_failure(failure),
            RuntimeError::Untaken { failed, why, read } => self.envelope_untaken(failed, why, read),
            RuntimeError::NoSession(id) => format!("没有会话 `{id}`；用 `max-team sessions list` 查看"),
            RuntimeError::NotCleared { detail } => {
                format!("无法删除保存在文件中的内容，未清除任何会话：{detail}；请重试")
            }
            RuntimeError::BadText { text, detail } => {
                format!("无法读取文本 `{text}`：{detail}；如果它来自录制文件，请重新录制")
            }
            RuntimeError::NoPoint { session, turns } => {
                format!("`{session}` 中没有这一点（用户共发言 {turns} 次）；用 `max-team replay {session}` 查看编号")
            }
            RuntimeError::NothingRewound(session) => format!("`{session}` 中尚未恢复过文件，没有可撤销的恢复"),
            RuntimeError::NoServer(folder) => {
                format!(
                    "`{folder}` 没有正在运行的服务器：请在另一个终端中或作为服务在那里启动 `max-team serve`，然后重新移交会话"
                )
            }
            RuntimeError::NothingToContinue(folder) => {
                format!("`{folder}` 中没有可以继续的会话；请不加 `-c` 开始一个新会话")
            }
            RuntimeError::NoQuestion(id) => format!("没有待答复的问题 `{id}`；用 `max-team inbox` 查看"),
            RuntimeError::PlanStopping(plan) => {
                format!("计划 `{plan}` 正在停止：未发送答复；用 `max-team plans show {plan}` 查看结果")
            }
            RuntimeError::PlanReplaced(plan) => plan_replaced(*plan),
            RuntimeError::Ambiguous { text, among } => {
                format!("`{text}` 可能指 {}；请给出更多字符", among.join("、"))
            }
            RuntimeError::Elsewhere { session, cwd } => {
                format!(
                    "会话 `{session}` 在 `{cwd}` 中工作，适用该项目的规则：请先 `cd` 到那里，再运行 `max-team -r {session}`"
                )
            }
            RuntimeError::TooLong { bytes, max } => {
                format!("消息有 {bytes} 字节，上限为 {max}；请把内容放进文件，再给出文件名")
            }
            RuntimeError::RoleTooLow { user, role, least } => {
                format!("`{user}` 的角色是 `{}`；此操作需要 `{}`", role.name(), least.name())
            }
            RuntimeError::Silent => "消息没有内容".to_owned(),
            RuntimeError::QueueFull(count) => format!("已有 {count} 条消息在排队；请等待当前任务结束，或打断它"),
            RuntimeError::Behind(count) => {
                format!("这里有 {count} 条通知未读，不再接收更多；团队仍在工作：请重新打开会话查看")
            }
            RuntimeError::Worktree(error) => self.worktree_failure(error),
            RuntimeError::Memory(refusal) => self.memory_refusal(refusal),
            RuntimeError::Tasks(refusal) => self.list_refusal(refusal),
            RuntimeError::NoPlan(plan) => self.unknown_plan(plan),
            RuntimeError::NoPlanTask(id) => format!("正在执行的计划中没有任务 `{id}`；用 `max-team tasks list` 查看"),
            RuntimeError::Root { path, detail } => format!("无法使用目录 `{path}`：{detail}"),
            _ => chinese_refusal(error).unwrap_or_else(told),
        }
    }

    /// The same for the journal.
    pub fn journal_failure(self, error: &JournalError) -> String {
        let told = || error.to_string();
        if self == Self::En {
            return told();
        }
        match error {
            JournalError::Owned { resource, by } => owned_elsewhere(resource, by),
            JournalError::DiskFull { path } => {
                format!("`{}` 所在磁盘已满：未保存任何内容；请腾出空间后重试", path.display())
            }
            JournalError::Unwritable { path, detail } => format!(
                "无法写入 `{}`：{detail}；请允许当前用户写入，或将 `MAX_TEAM_HOME` 设为可写的位置",
                path.display()
            ),
            JournalError::Exists { path } => {
                format!("`{}` 已存在，未作改动：请换一个文件名，或先移走它", path.display())
            }
            JournalError::InUse { path, by } => {
                format!("`{}` 正由 {by} 使用：请先停止它（`max-team ps`、`max-team stop`），然后重试", path.display())
            }
            JournalError::NoFolder { path } => {
                format!("`{}` 是文件，此处需要目录；请将其移走，或将 `MAX_TEAM_HOME` 设为目录", path.display())
            }
            JournalError::Absent { path } => {
                format!("`{}` 中没有日志，或文件为空；请将 `MAX_TEAM_HOME` 设为其所在位置，或恢复备份", path.display())
            }
            JournalError::Removed { path } => format!(
                "`{}` 在使用中被删除、移动或替换：无法再保存任何内容；请将其放回或恢复备份（`max-team restore 文件`），然后重新开始",
                path.display()
            ),
            JournalError::Newer { path, found, known } => {
                format!("`{}` 的版本为 {found}，此程序只支持到 {known}：未作改动；请更新 max-team", path.display())
            }
            JournalError::Busy { path } => {
                format!("另一个进程正在写入 `{}`：请重试；若一直如此，请检查是否有卡住的 `max-team`", path.display())
            }
            _ => told(),
        }
    }
}

/// A session or journal that another process owns, in Chinese.
fn owned_elsewhere(resource: &str, by: &WorkerInfo) -> String {
    format!("`{resource}` 正由 `{}` 使用（`{}` 上的进程 {}）：请在那里继续，或先停止它", by.what, by.host, by.pid)
}

/// The error about an answer to a plan that was replaced, in Chinese.
fn plan_replaced(plan: PlanId) -> String {
    format!("该计划已被计划 `{plan}` 取代：答复不会改变任何事；用 `max-team plans show {plan}` 查看新计划")
}

/// Why a message was not sent, in Chinese.
fn chinese_refusal(error: &RuntimeError) -> Option<String> {
    Some(match error {
        RuntimeError::NoReader { name, session, there } => {
            let others =
                if there.is_empty() { "没有其他队友".into() } else { format!("有 {}", there.join("、")) };
            format!("会话 `{session}` 中没有 `{name}`；{others}")
        }
        RuntimeError::SeveralTasks { name, tasks } => {
            format!("`{name}` 负责 `{}`：请发给其中一个任务", tasks.join("`、`"))
        }
        RuntimeError::NotStopped { name, there } => {
            let others = if there.is_empty() { "没有被打断的智能体".into() } else { there.join("、") };
            format!("`{name}` 没有被打断，或已开始别的工作；被打断的：{others}")
        }
        RuntimeError::Gone { name, by, .. } => format!("`{name}` 已结束（{by}）；未发送任何内容"),
        RuntimeError::MailFull { name, max } => {
            format!("`{name}` 有 {max} 条未读消息；未发送任何内容：请等它读完")
        }
        _ => return None,
    })
}
