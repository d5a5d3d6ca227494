//! Every phrase of the interface, in English and Chinese.
//!
//! The sentences are in `i18n/en.toml` and `i18n/zh.toml`; the build makes a method of `Lang` from each and fails if one
//! language lacks it. The methods in these modules choose between sentences. Texts of models, tools and errors of other
//! crates are shown as they are.

use max_team_core::cost::Spending;
use max_team_core::event::TurnOutcome;
use max_team_core::recovery::Failure;

use crate::config::choice::WhileBusy;
use crate::format::{duration, seconds_up, spent, tokens};

/// The language that the interface speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lang {
    #[default]
    En,
    Zh,
}

include!(concat!(env!("OUT_DIR"), "/phrases.rs"));

/// Both languages of one sentence.
macro_rules! say {
    ($lang:expr, $en:literal, $zh:literal) => {
        match $lang {
            Lang::En => format!($en),
            Lang::Zh => format!($zh),
        }
    };
}

pub use first_steps::LineFault;
pub use journal::CostBy;
pub use models::ModelFault;

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
mod cache;
mod evidence;
mod files;
mod first_steps;
mod journal;
mod maintenance;
mod memory;
mod models;
mod records;
mod replay;
mod rewind;
mod run;
mod skills;
mod stream;
mod tasks;
mod team;
mod teammates;
mod worktrees;

impl Lang {
    pub fn thought_for(self, ms: u64) -> String {
        match self {
            Self::En => format!("thought for {}", duration(ms)),
            Self::Zh => format!("思考了 {}", duration(ms)),
        }
    }

    pub fn running(self, tools: &str) -> String {
        self.running_text(tools)
    }

    pub fn preparing(self, tool: &str) -> String {
        self.preparing_text(tool)
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
        self.going_on_with(model)
    }

    pub fn more_lines(self, count: usize) -> String {
        self.more_lines_text(count)
    }

    pub fn more_output(self, count: usize) -> String {
        self.lines_ctrl_o(count)
    }

    pub fn calls_dropped(self, count: usize) -> String {
        match self {
            Self::En => format!("… {} earlier not kept", plural(count, "call")),
            Self::Zh => format!("… 更早的 {count} 次调用未保留"),
        }
    }

    pub fn pager_keys(self, first: usize, last: usize, of: usize) -> String {
        self.lines_of_up_down(first, last, of)
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
        self.nothing_is_chosen_yet(keys)
    }

    /// What stands between two things that are told behind each other.
    pub fn semicolon(self) -> &'static str {
        if self == Self::En { "; " } else { "；" }
    }

    /// That a question needs a larger window, or a command that needs none; as short as it can be said.
    pub fn enlarge_window(self, id: &str) -> String {
        self.needs_a_larger_window(id)
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
        self.along_with_it(words)
    }

    pub fn question_count(self, count: usize) -> String {
        self.of_questions(count)
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
        self.no_session_matches_resume(text)
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
        self.ask_or_give_a(&name)
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
        self.too_late_to_take(&who)
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
                let next = self.put_it_right_then();
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
