//! Every phrase of the interface, in English and Chinese.
//!
//! One phrase, one function: a phrase that is missing in one language does not compile. Words that belong to the
//! model, to tools or to errors of other rooms are passed through as they are.

use max_team_core::cost::Spending;
use max_team_core::event::TurnOutcome;
use max_team_core::recovery::Failure;

use crate::config::choice::WhileBusy;
use crate::figures::{duration, seconds_up, spent, tokens};

/// The language that the interface speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lang {
    #[default]
    En,
    Zh,
}

/// Phrases by name, in English and Chinese; a phrase with arguments is formatted.
macro_rules! phrases {
    ($($name:ident $(($($arg:tt)+))?: $en:literal, $zh:literal;)*) => {
        impl Lang {
            $(phrase!($name ($($($arg)+)?) $en, $zh);)*
        }
    };
}

macro_rules! phrase {
    ($name:ident () $en:literal, $zh:literal) => {
        pub fn $name(self) -> &'static str {
            match self {
                Self::En => $en,
                Self::Zh => $zh,
            }
        }
    };
    ($name:ident ($($arg:ident: $type:ty),+) $en:literal, $zh:literal) => {
        pub fn $name(self, $($arg: $type),+) -> String {
            match self {
                Self::En => format!($en),
                Self::Zh => format!($zh),
            }
        }
    };
}

/// Both languages of one sentence.
macro_rules! say {
    ($lang:expr, $en:literal, $zh:literal) => {
        match $lang {
            Lang::En => format!($en),
            Lang::Zh => format!($zh),
        }
    };
}

pub use begin::LineFault;
pub use desk::CostBy;
pub use models::Trouble;

/// A name as it begins a sentence.
fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

/// `1 task`, `2 tasks`.
pub fn plural(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

mod agents;
mod begin;
mod cache;
mod desk;
mod evidence;
mod files;
mod keep;
mod mates;
mod memory;
mod models;
mod replay;
mod rewind;
mod run;
mod skills;
mod stream;
mod tasks;
mod team;
mod told;
mod worktrees;

phrases! {
    tagline: "a personal team of AI agents", "您的个人 AI 智能体团队";
    hint_start: "Enter sends · \\+Enter for a new line · /help · Ctrl-D leaves",
        "Enter 发送 · \\+Enter 换行 · /help 帮助 · Ctrl-D 退出";
    sending: "sending", "发送中";
    thinking: "thinking", "思考中";
    writing: "writing", "书写中";
    working: "working", "工作中";
    stopping: "stopping", "正在停止";
    waiting_for_you: "waiting for your answer", "等待您的答复";
    esc_interrupts: "esc to interrupt", "按 Esc 中断";
    queued: "queued", "排队中";
    waits_word: "waits", "等待中";
    next_step: "for the next step", "下一步告知";
    up_takes_back: " (Up takes it back)", "（按 ↑ 取回）";
    nothing_to_continue: "There is nothing to continue: no agent was interrupted.", "没有可继续的内容：没有被中断的工作。";
    shift_enter_does: "while a turn runs: for its next step", "任务运行时：在下一步告知";
    thought: "thought", "已思考";
    more: "more", "更多";
    esc_again_clears: "press Esc again to clear the draft", "再按一次 Esc 清空草稿";
    draft_first: "send or clear what you write, then answer", "先发送或清空正在写的内容，再回答";
    another_question: "this is another question: choose an answer to it first", "这是另一个问题：请先选择对它的回答";
    ctrl_c_again_leaves: "press Ctrl-C again to exit", "再按一次 Ctrl-C 退出";
    menu_keys: "Tab inserts · Up/Down choose", "Tab 插入 · ↑/↓ 选择";
    no_output: "no output", "无输出";
    nothing_to_expand: "Nothing to expand: the last turn used no tools.", "没有可展开的内容：上一轮未使用工具。";
    not_included: "not included", "未包含";
    search_history: "search history", "搜索历史";
    no_match: "no match", "无匹配";
    context: "context", "上下文";
    mode: "mode", "模式";
    wants_to_use: "wants to use", "想要使用";
    because: "reason:", "询问原因:";
    yes_once: "yes once", "同意一次";
    yes_task: "task", "本任务";
    yes_session: "session", "本会话";
    yes_repository: "repository", "本仓库";
    remembered_as: "a longer yes adds the rule", "长期同意将添加规则";
    up_has_it: "Up brings the line back.", "按 ↑ 可取回该行。";
    no: "no", "拒绝";
    with_comment: "comment", "附言";
    answers: "answer", "回答";
    question_put_off: "a question waits for you · /inbox brings it back", "有问题等待您回答 · 用 /inbox 重新打开";
    scroll_keys: "PgUp/PgDn scroll", "PgUp/PgDn 滚动";
    comment_on_yes: "Your words along with the yes (Enter sends, Esc goes back):",
        "同意并附言（Enter 发送，Esc 返回）：";
    comment_on_answer: "Your words along with the answer (Enter, then choose it; Esc goes back):",
        "附言（按 Enter 后再选择答复，Esc 返回）：";
    comment_on_no: "Your words along with the no (Enter sends, Esc goes back):",
        "拒绝并附言（Enter 发送，Esc 返回）：";
    refused: "not allowed", "未获准";
    stopped_row: "stopped", "已停止";
    outcome_unknown: "outcome unknown", "结果未知";
    broke_off: "The answer broke off here.", "回答在此中断。";
    gap_in_stream: "Parts of the answer were not shown while it came. The whole answer:",
        "回答传输时有部分未显示。完整回答如下：";
    lost_call: "The program stopped during this call; it is made again.", "程序曾在此次调用中停止，正在重新调用。";
    shrunk: "The conversation is longer than the model's window; the oldest turns are left out from here on.",
        "对话已超出模型窗口，从此处起略去最早的轮次。";
    uncompacted: "The compaction is taken back: the model sees again what was said before it.",
        "已撤销压缩：模型重新看到之前的对话。";
    earlier_left_out: "earlier turns are not shown", "更早的对话未显示";
    instructions: "instructions", "指令文件";
    resumed: "resumed", "已恢复会话";
    new_session: "new session", "新会话";
    same_session: "This session is already open.", "该会话已经打开。";
    busy_first: "A turn is running: press Esc to interrupt it first.", "当前有任务在运行：请先按 Esc 中断。";
    no_sessions: "There is no other session yet.", "还没有其他会话。";
    resume_hint: "/resume NUMBER opens one", "用 /resume 编号 打开";
    model_now: "model", "模型";
    model_hint: "/model NAME switches", "用 /model 名称 切换";
    stopped_house: "This session has stopped. Everything said so far is kept. Say something, or /continue, to try again here; or go on elsewhere with `max-team -c`.",
        "此会话已停下，目前无人在其中工作。已有内容均已保存。继续输入或用 /continue 在此重试，也可在别处用 `max-team -c` 继续。";
    unpriced_model: " (it is not in the catalogue: whether there is such a model is seen with the next message, and what it costs is not counted)",
        "（不在目录中：是否有此模型要到下一条消息才知道，其花费不计）";
    goes_on_here: "── this session goes on here", "── 此会话在此继续";
    come_back: "come back with", "继续此会话：";
    spent: "spent", "已花费";
    cap: "budget", "预算";
    spent_by_others: "of it by those who were called", "其中由被调用者花费";
    maybe_spent: "of that, estimated (usage not reported)", "其中估算部分（未报告用量）";
    unpriced: "calls without a known price", "价格未知的调用";
    tokens_in: "input tokens", "输入 token";
    tokens_out: "output tokens", "输出 token";
    tokens_cached: "read from the cache", "读取缓存";
    tokens_cache_written: "written to the cache", "写入缓存";
    conversation: "conversation", "对话";
    frame: "instructions and tools", "指令与工具";
    messages: "messages in the window / in all", "窗口内消息 / 全部消息";
    window: "the model's window", "模型窗口";
    pasted: "pasted", "已粘贴";
    image: "image", "图片";
    file_not_included(path: &str, why: &str): "`{path}` is not included in the message: {why}", "消息未包含 `{path}`：{why}";
    command_failed(who: &str, command: &str, how: &str): "{who}: `{command}` failed: {how}",
        "{who}：`{command}` 失败：{how}";
}

impl Lang {
    pub fn thought_for(self, ms: u64) -> String {
        match self {
            Self::En => format!("thought for {}", duration(ms)),
            Self::Zh => format!("思考了 {}", duration(ms)),
        }
    }

    pub fn running(self, tools: &str) -> String {
        match self {
            Self::En => format!("running {tools}"),
            Self::Zh => format!("正在运行 {tools}"),
        }
    }

    pub fn preparing(self, tool: &str) -> String {
        match self {
            Self::En => format!("preparing {tool}"),
            Self::Zh => format!("正在准备 {tool}"),
        }
    }

    pub fn retrying_in(self, ms: u64) -> String {
        match self {
            Self::En => format!("retrying in {} s", seconds_up(ms)),
            Self::Zh => format!("{} 秒后重试", seconds_up(ms)),
        }
    }

    pub fn pacing(self, ms: u64) -> String {
        match self {
            Self::En => format!("keeping the provider's pace, {} s", seconds_up(ms)),
            Self::Zh => format!("按服务商限速等待 {} 秒", seconds_up(ms)),
        }
    }

    pub fn retry(self, failure: &Failure, ms: u64, nth: u32, of: u32) -> String {
        let wait = self.retrying_in(ms);
        match self {
            Self::En => format!("{}, {wait} ({nth}/{of})", self.failure(failure)),
            Self::Zh => format!("{}，{wait}（{nth}/{of}）", self.failure(failure)),
        }
    }

    pub fn fallback(self, model: &str) -> String {
        match self {
            Self::En => format!("going on with {model}"),
            Self::Zh => format!("改用 {model} 继续"),
        }
    }

    pub fn more_lines(self, count: usize) -> String {
        match self {
            Self::En => format!("… {count} more lines"),
            Self::Zh => format!("… 还有 {count} 行"),
        }
    }

    pub fn more_output(self, count: usize) -> String {
        match self {
            Self::En => format!("… +{count} lines (Ctrl-O)"),
            Self::Zh => format!("… 另有 {count} 行（Ctrl-O）"),
        }
    }

    pub fn calls_dropped(self, count: usize) -> String {
        match self {
            Self::En => format!("… {} earlier not kept", plural(count, "call")),
            Self::Zh => format!("… 更早的 {count} 次调用未保留"),
        }
    }

    pub fn pager_keys(self, first: usize, last: usize, of: usize) -> String {
        match self {
            Self::En => format!("lines {first}-{last} of {of} · Up/Down, PgUp/PgDn scroll · Ctrl-O closes"),
            Self::Zh => format!("第 {first}-{last} 行，共 {of} 行 · ↑/↓、PgUp/PgDn 滚动 · Ctrl-O 关闭"),
        }
    }

    pub fn lines(self, count: usize) -> String {
        match self {
            Self::En => plural(count, "line"),
            Self::Zh => format!("{count} 行"),
        }
    }

    pub fn names_in_folder(self, count: usize) -> String {
        match self {
            Self::En => plural(count, "name"),
            Self::Zh => format!("{count} 个名称"),
        }
    }

    pub fn choose_first(self, keys: &str) -> String {
        match self {
            Self::En => format!("nothing is chosen yet: {keys} chooses, then Enter answers"),
            Self::Zh => format!("尚未选择：先用 {keys} 选择，再按 Enter 回答"),
        }
    }

    /// What stands between two things that are told behind each other.
    pub fn semicolon(self) -> &'static str {
        if self == Self::En { "; " } else { "；" }
    }

    /// That a question needs a larger window, or a command that needs none; as short as it can be said.
    pub fn enlarge_window(self, id: &str) -> String {
        match self {
            Self::En => format!("needs a larger window, or max-team approve {id}"),
            Self::Zh => format!("请放大窗口，或 max-team approve {id}"),
        }
    }

    /// The same where there is room; what is being written may be what takes it.
    pub fn window_too_small(self, id: &str, has_draft: bool) -> String {
        match (self, has_draft) {
            (Self::En, false) => {
                format!("make the window larger to see and answer the question, or: max-team approve {id}")
            }
            (Self::En, true) => {
                "send or clear what you write, or make the window larger, to see the question".to_owned()
            }
            (Self::Zh, false) => format!("请放大窗口以查看并回答问题，或：max-team approve {id}"),
            (Self::Zh, true) => "请先发送或清空正在写的内容，或放大窗口，以查看问题".to_owned(),
        }
    }

    /// Words that wait for the answer that they go along with.
    pub fn goes_along(self, words: &str) -> String {
        match self {
            Self::En => format!("along with it: {words}"),
            Self::Zh => format!("附言：{words}"),
        }
    }

    pub fn question_count(self, count: usize) -> String {
        match self {
            Self::En => format!("1 of {count} questions"),
            Self::Zh => format!("共 {count} 个问题"),
        }
    }

    pub fn unknown_command(self, name: &str, nearest: Option<&str>) -> String {
        match (self, nearest) {
            (Self::En, Some(nearest)) => format!("There is no command /{name}; did you mean /{nearest}?"),
            (Self::En, None) => format!("There is no command /{name}; /help lists those there are."),
            (Self::Zh, Some(nearest)) => format!("没有命令 /{name}；您是否想用 /{nearest}？"),
            (Self::Zh, None) => format!("没有命令 /{name}；用 /help 查看所有命令。"),
        }
    }

    pub fn unknown_session(self, text: &str) -> String {
        match self {
            Self::En => format!("No session matches `{text}`; /resume lists them."),
            Self::Zh => format!("没有会话匹配 `{text}`；用 /resume 查看列表。"),
        }
    }

    pub fn ago(self, ms: u64) -> String {
        let minutes = ms / 60_000;
        let (count, en, zh) = match minutes {
            0 => return if self == Self::En { "just now" } else { "刚刚" }.to_owned(),
            1..=59 => (minutes, "min", "分钟"),
            60..=1_439 => (minutes / 60, "h", "小时"),
            _ => (minutes / 1_440, "d", "天"),
        };
        match self {
            Self::En => format!("{count} {en} ago"),
            Self::Zh => format!("{count} {zh}前"),
        }
    }

    /// The line under a turn: tokens, money, time.
    pub fn footer(self, sum: &Spending, ms: u64) -> String {
        let money = sum.known_nano().filter(|nano| *nano > 0);
        let money = money.map_or_else(String::new, |nano| format!(" · {}", spent(nano, sum.unknown_nano)));
        let (input, output) = (tokens(sum.usage.input_total()), tokens(sum.usage.output));
        match self {
            Self::En => format!("{input} tokens in · {output} out{money} · {}", duration(ms)),
            Self::Zh => format!("输入 {input} token · 输出 {output}{money} · {}", duration(ms)),
        }
    }

    /// The placeholder of the empty input line; `who` is the agent that the user talks to.
    pub fn placeholder(self, who: &str) -> String {
        let name = capital(who);
        match self {
            Self::En => format!("Ask {name}, or give a task"),
            Self::Zh => format!("向 {name} 提问，或交代一项任务"),
        }
    }

    pub fn failure(self, failure: &Failure) -> &'static str {
        let (en, zh) = match failure {
            Failure::Auth => ("key refused", "密钥被拒绝"),
            Failure::RateLimited { .. } => ("too many requests", "请求过于频繁"),
            Failure::Overloaded { .. } => ("model overloaded", "模型过载"),
            Failure::ContextOverflow => ("conversation too long for the model", "对话超出模型窗口"),
            Failure::InvalidRequest => ("request refused", "请求被拒绝"),
            Failure::Server { .. } => ("provider error", "服务商出错"),
            Failure::Network => ("network unreachable", "网络不通"),
            Failure::Timeout => ("no answer in time", "等待超时"),
            Failure::Truncated => ("answer broke off", "回答中断"),
            Failure::Malformed => ("unreadable answer", "回答无法解析"),
            Failure::TooLarge => ("answer too large", "回答过大"),
            Failure::Setup => ("not set up right", "设置有误"),
            Failure::Unrecorded => ("nothing recorded for this", "录制中没有此回答"),
        };
        if self == Self::En { en } else { zh }
    }

    /// What to do about a call that failed for good.
    fn remedy(self, failure: &Failure) -> &'static str {
        let (en, zh) = match failure {
            Failure::Auth => (
                "Check the key of this provider, or choose another model with /model.",
                "请检查该服务商的密钥，或用 /model 换一个模型。",
            ),
            Failure::ContextOverflow => ("Start afresh with /clear.", "请用 /clear 重新开始。"),
            Failure::InvalidRequest => (
                "Try another model with /model, or start afresh with /clear.",
                "请用 /model 换一个模型，或用 /clear 重新开始。",
            ),
            Failure::Network => {
                ("Check the network (and the proxy), then say it again.", "请检查网络（和代理），然后再说一次。")
            }
            Failure::TooLarge => (
                "Ask for less at once, or set a smaller `max_tokens` for this model.",
                "请一次少要一些，或为该模型设置更小的 `max_tokens`。",
            ),
            Failure::Setup => (
                "Correct that and start again; `max-team -c` goes on where this was left.",
                "请更正后重新启动；`max-team -c` 会从中断处继续。",
            ),
            Failure::Unrecorded => (
                "The demo answers only what was recorded; set a key to talk to a real model.",
                "演示只会回答已录制的内容；设置密钥即可使用真实模型。",
            ),
            _ => (
                "Nothing is lost: /continue tries again, or choose another model with /model.",
                "内容均已保存：用 /continue 重试，或用 /model 换一个模型。",
            ),
        };
        if self == Self::En { en } else { zh }
    }

    /// What Enter does.
    pub fn enter_does(self, while_busy: WhileBusy) -> &'static str {
        let (en, zh) = match while_busy {
            WhileBusy::Steer => ("send; while a turn runs: for its next step", "发送；任务运行时在下一步告知"),
            WhileBusy::Queue => ("send; while a turn runs: queue", "发送；任务运行时排队"),
            WhileBusy::Interrupt => ("send; while a turn runs: interrupt it", "发送；任务运行时先中断"),
        };
        if self == Self::En { en } else { zh }
    }

    /// The message that the user wanted to take back was already read.
    pub fn too_late_to_take_back(self, who: &str) -> String {
        let who = capital(who);
        match self {
            Self::En => format!("Too late to take it back: {who} has read it. Esc interrupts."),
            Self::Zh => format!("来不及取回：{who} 已经读到。按 Esc 可中断。"),
        }
    }

    /// How a turn ended, if it is worth a line, and what to do next.
    pub fn end(self, end: &TurnOutcome) -> Option<String> {
        let (en, zh) = match end {
            TurnOutcome::Answered | TurnOutcome::Proposed => return None,
            TurnOutcome::Failed { failure, detail } => {
                let what = self.failure(failure);
                return Some(format!("{what}: {detail}\n{}", self.remedy(failure)));
            }
            TurnOutcome::Broken { detail } => {
                let next = match self {
                    Self::En => "Put it right, then say what to do.",
                    Self::Zh => "请先排除问题，然后说明接下来做什么。",
                };
                return Some(format!("{detail}\n{next}"));
            }
            TurnOutcome::Interrupted => (
                "Interrupted. What was done is kept; say what to do instead, or /continue.",
                "已中断。已完成的工作均已保留；请说明接下来做什么，或用 /continue 继续。",
            ),
            TurnOutcome::Truncated => (
                "The answer was cut at the model's output limit. /continue gets the rest.",
                "回答因模型输出上限被截断。用 /continue 获取其余部分。",
            ),
            TurnOutcome::Refused => (
                "The model would not answer. Put it differently, or choose another model with /model.",
                "模型拒绝回答。请换个说法，或用 /model 换一个模型。",
            ),
            TurnOutcome::Empty => (
                "The model said nothing, several times. Ask again, or choose another model with /model.",
                "模型多次没有给出内容。请再问一次，或用 /model 换一个模型。",
            ),
            TurnOutcome::Unstructured => {
                ("The model never gave the structured answer it was asked for.", "模型始终没有给出所要求的结构化回答。")
            }
            TurnOutcome::Looping => (
                "The model repeated itself and was stopped. Tell it what to do differently.",
                "模型不断重复，已被停止。请告诉它换一种做法。",
            ),
            TurnOutcome::Rounds => (
                "The limit of rounds for one turn was reached. /continue goes on.",
                "已达到单轮的次数上限。用 /continue 接着做。",
            ),
            TurnOutcome::Budget => (
                "The budget is used up. Raise it with --max-budget-usd and come back with `max-team -c`.",
                "预算已用完。请用 --max-budget-usd 提高预算，再用 `max-team -c` 继续。",
            ),
        };
        Some(if self == Self::En { en } else { zh }.to_owned())
    }
}
