//! The phrases of the first minutes: what is missing, what was mistyped, what `doctor` finds, what failed underneath.

use max_team_core::id::PlanId;
use max_team_runtime::storage::JournalError;
use max_team_runtime::{AuditFailure, RuntimeError};
use max_team_tools::command::Engine;

use super::{Lang, plural};
use crate::figures::bytes;

phrases! {
    no_prompt: "-p needs a prompt: give one, or pipe one in", "-p 需要提示：请给出，或通过管道传入";
    prompt_and_lines: "--input-format stream-json reads what is said on standard input: leave the prompt out",
        "--input-format stream-json 从标准输入读取要说的话：请去掉提示";
    nothing_came_in: "nothing came on standard input: a message is a line such as {\"type\":\"user\",\"message\":{\"content\":\"hello\"}}",
        "标准输入没有内容：一条消息是一行，例如 {\"type\":\"user\",\"message\":{\"content\":\"你好\"}}";
    format_needs_print: "--output-format goes with -p", "--output-format 须与 -p 一起使用";
    plan_for_what: "say what the plan is for: `max-team plan \"add CSV import\"`",
        "请说明计划的目标：`max-team plan \"增加 CSV 导入\"`";
    play_demo: "Play the demo now?", "现在播放演示吗？";
    web_is_not_there: "server.mode is `web`, but there is no web page in this version; the terminal is used",
        "server.mode 为 `web`，但此版本没有网页；改用终端";
    no_model_yet: "no model is set up: no key in the environment, no server on this machine",
        "尚未设置模型：环境中没有密钥，本机也没有模型服务";
    how_to_begin: "Any of these is enough:\n  \
        export ANTHROPIC_API_KEY=…   (or OPENAI_API_KEY, DEEPSEEK_API_KEY, …)\n  \
        start Ollama or LM Studio on this machine\n  \
        set llm.api_key_file or llm.api_key_helper (max-team config default)\n\
        Or see it work without any: max-team demo",
        "以下任选其一：\n  \
        export ANTHROPIC_API_KEY=…   （或 OPENAI_API_KEY、DEEPSEEK_API_KEY 等）\n  \
        在本机启动 Ollama 或 LM Studio\n  \
        设置 llm.api_key_file 或 llm.api_key_helper（见 max-team config default）\n\
        或者不用密钥先看演示：max-team demo";
    // As wide as one another, so that what follows stands in a column.
    mark_good: "ok  ", "正常";
    mark_note: "note", "提示";
    mark_warning: "warn", "警告";
    mark_failed: "FAIL", "失败";
    place: "place", "位置";
    settings: "settings", "设置";
    settings_readable: "readable (max-team config explain shows where each comes from)",
        "可读取（max-team config explain 显示每项的来源）";
    something_is_wrong: "something above keeps max-team from working", "以上问题使 max-team 无法工作";
    local_server: "local server", "本机服务";
    proxy_word: "proxy", "代理";
    connection_word: "connection", "连接";
    team_word: "team", "团队";
    nobody: "nobody", "没有成员";
    not_connected: "read, not connected in this version", "已读取，此版本不连接";
    mcp_servers: "mcp servers", "MCP 服务";
    not_yet: "not available yet", "尚不可用";
    journal: "journal", "日志";
    database_sound: "the database is sound", "数据库完好";
    not_as_written: "it is not as it was written: max-team audit verify shows where",
        "与写入时不同：用 max-team audit verify 查看位置";
    not_rebuilt: "the rows were left as they are, as the log that they follow from is damaged: max-team restore FILE puts a \
                  backup in its place",
        "数据行保持原样，因为它们所依据的日志已损坏：用 max-team restore 文件 以备份替换";
    walls: "walls", "隔离墙";
    wall: "wall", "墙";
    project_is_home: "The project folder is your home folder: agents can see everything in it but blocked names. Start in the folder of a project \
                      instead.",
        "项目目录就是您的家目录：除被屏蔽的名称外，智能体可以看到其中的一切。请改在项目的目录中启动。";
    sandbox_is_off: "The sandbox is off (`project.sandbox: false`): commands run unconfined, and file tools may leave the project.",
        "沙箱已关闭（`project.sandbox: false`）：命令不受隔离，文件工具可以离开项目目录。";
    walls_off: "turned off by `project.sandbox: false`: a command can do all that you can",
        "已被 `project.sandbox: false` 关闭：命令可以做您能做的一切";
    own_namespaces: "own namespaces (users, files, processes, network) and seccomp; nothing has to be installed",
        "自建命名空间（用户、文件、进程、网络）和 seccomp；无需安装任何程序";
    landlock_only: "Landlock and seccomp only: let this system make user namespaces, or install bubblewrap",
        "只有 Landlock 和 seccomp：请允许本系统创建用户命名空间，或安装 bubblewrap";
    no_walls: "no command is run: let this system make user namespaces, install bubblewrap, or turn the sandbox off by name \
               (`project.sandbox: false`)",
        "不会运行任何命令：请允许本系统创建用户命名空间、安装 bubblewrap，或明确关闭沙箱（`project.sandbox: false`）";
    wall_files: "files: the project is read, an agent's own folder written, home and the rest are hidden",
        "文件：可读项目，只写成员自己的目录，主目录及其余部分不可见";
    wall_within: "files within: .git/hooks, .git/config, agent and permission files stay as they are; blocked files cannot be opened",
        "目录内文件：.git/hooks、.git/config、成员和权限文件保持原样；被屏蔽的文件无法打开";
    wall_not_within: "files within: nothing in a folder that is written to can be protected or hidden: a command there runs only after you have approved it",
        "目录内文件：可写目录中的文件无法保护或隐藏：命令须经您批准才会运行";
    wall_network: "network: none, unless the agent has one", "网络：无，除非成员有网络权限";
    wall_hosts: "hosts: an allow-list is kept, by a proxy", "主机：由代理执行允许列表";
    wall_no_hosts: "hosts: an allow-list cannot be kept; such commands are refused", "主机：无法执行允许列表；此类命令会被拒绝";
    wall_processes: "processes: a supervisor ends the whole tree, at its limits and when we die",
        "进程：监督进程在达到限制或本程序退出时结束整棵进程树";
    wall_limits: "limits: time, output, processor, file size, open files",
        "限制：时间、输出、处理器、文件大小、打开的文件";
    wall_few_limits: "limits: time, output, processor, file size and open files for each process; memory and processes are not counted on macOS",
        "限制：每个进程的时间、输出、处理器、文件大小和打开的文件；macOS 上不统计内存和进程数";
    rebuilt: "lists and mailboxes were made again from the log", "已根据日志重建列表和信箱";
    headed(what: &str, words: &str): "{what}: {words}", "{what}：{words}";
    lock_blocks(lock: &str):
        "`{lock}` blocks commits, and no running git holds it; if you know of none, remove it: rm '{lock}'",
        "`{lock}` 阻止提交，且没有运行中的 git 持有它；如果您也不知道有，请删除：rm '{lock}'";
    by_bubblewrap(path: &str): "namespaces made by bubblewrap ({path}), and seccomp",
        "由 bubblewrap（{path}）创建的命名空间，加 seccomp";
    no_key_for(provider: &str, variables: &str): "no key for `{provider}`: set {variables}",
        "没有 `{provider}` 的密钥：请设置 {variables}";
    no_demo(wanted: &str, names: &str): "there is no demo `{wanted}`; there are {names}", "没有演示 `{wanted}`；有 {names}";
    command_first(name: &str): "`{name}` is a command and comes first: `max-team {name} …`",
        "`{name}` 是命令，须写在最前：`max-team {name} …`";
    few_files(most: u64, least: u64):
        "only `{most}` files may be open at once here, and at least `{least}` are needed: allow more with `ulimit -n 1024`",
        "这里最多只能同时打开 `{most}` 个文件，而至少需要 `{least}` 个：请用 `ulimit -n 1024` 放宽限制";
    did_you_mean(command: &str): "did you mean `max-team {command}`?", "您是否想用 `max-team {command}`？";
    unreadable(path: &str, error: &str): "`{path}` cannot be read: {error}", "无法读取 `{path}`：{error}";
    hook_asks(rules: &str):
        "it is not run: what it covers ({rules}) needs your approval, and headless runs refuse it; `max-team permissions trust` goes on without it",
        "不会运行：它所涵盖的操作（{rules}）需要您批准，非交互运行会拒绝；用 `max-team permissions trust` 可不经它继续";
    follows_nothing(why: &str):
        "what others write from now on may not be seen here, where nothing can be written: {why}",
        "此处无法写入，别人此后写入的内容可能看不到：{why}";
    kept_in(home: &str): "journal and settings in {home}", "日志和设置位于 {home}";
    no_web_page(port: u16): "there is no web page yet; port {port} stays closed, the chat opens",
        "尚无网页；端口 {port} 不会打开，改为打开对话";
    leads(lead: &str, members: &str): "{lead} leads {members}", "{lead} 带领 {members}";
    database_damaged(faults: &str): "the database is damaged: {faults}", "数据库已损坏：{faults}";
    entries_unchecked(entries: u64): "{entries} entries (max-team audit verify checks every hash)",
        "{entries} 条记录（用 max-team audit verify 检查所有哈希）";
    entries_hold(entries: u64): "{entries} entries; every hash, chain and seal holds", "{entries} 条记录；所有哈希、链条和封印均完好";
}

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
    pub fn passed_over(self, engine: Engine, missing: Option<&str>) -> String {
        let name = match engine {
            Engine::Namespaces => say!(self, "own namespaces", "自建命名空间"),
            Engine::Bubblewrap => "bubblewrap".to_owned(),
            _ => "Landlock".to_owned(),
        };
        match missing.map(|why| self.step(why)) {
            Some(why) => say!(self, "{name}: cannot be used here: {why}", "{name}：此处无法使用：{why}"),
            None => say!(self, "{name}: works here, and is not needed", "{name}：此处可用，但不需要"),
        }
    }

    /// Who caps memory and processes: the system, in a folder, or we, and why.
    pub fn wall_caps(self, group: &Result<std::path::PathBuf, String>) -> String {
        match (self, group) {
            (Self::En, Ok(place)) => {
                format!("memory and processes: capped by a control group for each command, in `{}`", place.display())
            }
            (Self::Zh, Ok(place)) => format!("内存和进程数：每个命令由 `{}` 中的控制组封顶", place.display()),
            (Self::En, Err(why)) => {
                format!("memory and processes: counted by the supervisor, which ends what is over its limit ({why})")
            }
            (Self::Zh, Err(why)) => {
                let why = self.step(why);
                format!("内存和进程数：由监督进程统计，超限即结束（{why}）")
            }
        }
    }

    pub fn bad_line(self, number: usize, fault: &LineFault) -> String {
        let why = match fault {
            LineFault::TooLong(megabytes) => say!(self, "more than {megabytes} MB", "超过 {megabytes} MB"),
            LineFault::NotJson(detail) => say!(self, "not JSON: {detail}", "不是 JSON：{detail}"),
            LineFault::NotText => say!(
                self,
                "not UTF-8; convert it first, for example with `iconv -t utf-8`",
                "不是 UTF-8；请先转换，例如用 `iconv -t utf-8`"
            ),
            LineFault::Type(kind) if kind.is_empty() => say!(
                self,
                "`type` is missing; `{{\"type\":\"user\",\"message\":{{\"content\":\"…\"}}}}` is a line",
                "缺少 `type`；一行应为 `{{\"type\":\"user\",\"message\":{{\"content\":\"…\"}}}}`"
            ),
            LineFault::Type(kind) => {
                say!(self, "`type` is `{kind}`, and only `user` is read", "`type` 是 `{kind}`，这里只读 `user`")
            }
            LineFault::Role(role) => say!(
                self,
                "`message.role` is `{role}`, and only `user` speaks here",
                "`message.role` 是 `{role}`，这里只有 `user` 说话"
            ),
            LineFault::Part(kind) => say!(
                self,
                "a part is of type `{kind}`, and only `text` is read",
                "有一部分的类型是 `{kind}`，这里只读 `text`"
            ),
            LineFault::NoContent => say!(
                self,
                "`message.content` is neither text nor a list of parts",
                "`message.content` 既不是文字也不是部分的列表"
            ),
            LineFault::Silent => say!(self, "it says nothing", "没有内容"),
        };
        say!(self, "standard input, line {number}: {why}", "标准输入第 {number} 行：{why}")
    }

    /// A folder whose name is not UTF-8, with its bytes; `variable` names it.
    pub fn not_utf8(self, name: &str, variable: Option<&str>) -> String {
        match variable {
            Some(variable) => say!(
                self,
                "the folder in {variable} is not named in UTF-8: `{name}`. Give it another name, or set {variable} to \
                 another folder",
                "{variable} 所指目录的名称不是 UTF-8：`{name}`。请重命名该目录，或将 {variable} 设为其他目录"
            ),
            None => say!(
                self,
                "the name of this folder is not UTF-8: `{name}`. Give it another name, or work in another folder",
                "此目录的名称不是 UTF-8：`{name}`。请重命名该目录，或换一个目录"
            ),
        }
    }

    /// A bare word that is no command.
    pub fn no_command(self, word: &str, near: Option<&str>) -> String {
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

    pub fn no_space(self, folder: &str, free: u64) -> String {
        let free = bytes(usize::try_from(free).unwrap_or(usize::MAX));
        say!(
            self,
            "no space is left in `{folder}` ({free} free): nothing can be written; free some space",
            "`{folder}` 已没有空间（剩余 {free}）：无法写入；请释放空间"
        )
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
        say!(
            self,
            "not used from .claude/ and .mcp.json: {kinds}; `max-team doctor` lists it{trust}",
            "未采用 .claude/ 与 .mcp.json 中的：{kinds}；用 `max-team doctor` 查看{trust}"
        )
    }

    pub fn unused_names(self, names: &str) -> String {
        if names.is_empty() {
            return say!(self, "has no effect here", "在此不起作用");
        }
        say!(self, "has no effect here: {names}", "在此不起作用：{names}")
    }

    pub fn hook_left(self, matcher: &str, origin: &str) -> String {
        let tools = if matcher.is_empty() { "*" } else { matcher };
        say!(
            self,
            "without the `PreToolUse` hook for `{tools}` ({origin}), which max-team does not run:",
            "不运行针对 `{tools}` 的 `PreToolUse` 钩子（{origin}）而继续；max-team 不会运行它："
        )
    }

    pub fn little_space(self, free: u64) -> String {
        let free = bytes(usize::try_from(free).unwrap_or(usize::MAX));
        say!(self, "only {free} are left on its disk", "所在磁盘只剩 {free}")
    }

    pub fn server_with(self, provider: &str, models: usize) -> String {
        let count = plural(models, "model");
        say!(self, "{provider} with {count}", "{provider}，{models} 个模型")
    }

    pub fn model_with_key(self, model: &str, key: &str, priced: bool) -> String {
        let price = match self {
            _ if priced => "",
            Self::En => "; no price known, so budgets cannot be kept",
            Self::Zh => "；价格未知，无法控制预算",
        };
        say!(self, "{model} (key: {key}){price}", "{model}（密钥：{key}）{price}")
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
            RuntimeError::Audit(failure) => self.audit_failure(failure),
            RuntimeError::Untaken { failed, why, read } => self.letter_untaken(failed, why, read),
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
            RuntimeError::Answered { by, said, at_ms } => {
                self.answered_already(by, said, &max_team_core::time::rfc3339(*at_ms))
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
            RuntimeError::QueueFull(count) => format!("已有 {count} 条消息在排队；请等待当前任务结束，或中断它"),
            RuntimeError::Behind(count) => {
                format!("这里有 {count} 条通知未读，不再接收更多；团队仍在工作：请重新打开会话查看")
            }
            RuntimeError::Memory(refusal) => self.memory_refusal(refusal),
            RuntimeError::Tasks(refusal) => self.list_refusal(refusal),
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
            JournalError::Owned { resource, by } => format!(
                "`{resource}` 正由 `{}` 使用（`{}` 上的进程 {}）：请在那里继续，或先停止它",
                by.what, by.host, by.pid
            ),
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
            let others = if there.is_empty() { "没有被中断的成员".into() } else { there.join("、") };
            format!("`{name}` 没有被中断，或已开始别的工作；被中断的：{others}")
        }
        RuntimeError::Gone { name, by, .. } => format!("`{name}` 已结束（{by}）；未发送任何内容"),
        RuntimeError::MailFull { name, max } => {
            format!("`{name}` 有 {max} 条未读消息；未发送任何内容：请等它读完")
        }
        _ => return None,
    })
}
