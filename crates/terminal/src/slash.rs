//! Slash commands: what they are called and what they mean.
//!
//! Parsing only; a session carries them out. A line that merely begins with a path (`/usr/bin is full`) is a message,
//! not a command.

use max_team_workspace::i18n::Lang;

/// What a user can order with a slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Slash {
    Help,
    Clear,
    Model(Option<String>),
    Cost,
    Context,
    /// Sum up what was said, keeping this above all.
    Compact(String),
    /// Take the last compaction back.
    Uncompact,
    /// The MCP servers.
    Mcp,
    /// Put files back.
    Rewind(RewindTo),
    Resume(Option<String>),
    /// The plan, with all instructions or the first lines of each, and the question about it.
    Plan {
        full: bool,
    },
    Team,
    /// Let the teammates of a written team begin.
    Load(Option<String>),
    /// Write to a teammate: its name and the text.
    Send(Option<String>),
    /// Show the work of a called agent.
    Show(Option<String>),
    /// Something that is done to the team from another terminal.
    TeamOther(String),
    /// Stop the turn and the plan, or one task of it.
    Stop(Option<String>),
    /// Resume interrupted work: of all agents, or of one.
    Continue(Option<String>),
    /// What waits for the user.
    Inbox,
    /// Leave, and let the server of the folder go on with the work.
    Detach,
    Quit,
}

/// What `/rewind` is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RewindTo {
    /// Show the points.
    List,
    /// Show what going back to before these words would do.
    Turn(usize),
    /// Show what undoing the last rewind would do.
    Undo,
    /// Do what was shown.
    Yes,
}

/// A command that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnknownSlash {
    pub(super) name: String,
    pub(super) nearest: Option<&'static str>,
}

/// A row of `/help`.
#[derive(Debug, Clone, Copy)]
pub(super) struct HelpEntry {
    pub(super) name: &'static str,
    pub(super) argument: &'static str,
    en: &'static str,
    zh: &'static str,
}

impl HelpEntry {
    pub(super) fn about(&self, lang: Lang) -> &'static str {
        match lang {
            Lang::En => self.en,
            Lang::Zh => self.zh,
        }
    }
}

const fn entry(name: &'static str, argument: &'static str, en: &'static str, zh: &'static str) -> HelpEntry {
    HelpEntry { name, argument, en, zh }
}

/// All commands, as `/help` lists them.
pub(super) const ENTRIES: [HelpEntry; 18] = [
    entry("help", "", "list commands and keys", "可以输入和按下的内容"),
    entry("clear", "", "start a new session", "开始新会话"),
    entry("model", "[name]", "show or switch the model", "查看或切换模型"),
    entry("cost", "", "show the cost so far", "目前的花费"),
    entry("context", "", "show what fills the model's window", "模型窗口的占用"),
    entry("mcp", "", "show MCP servers and their state", "查看 MCP 服务器及其状态"),
    entry("compact", "[what to keep | undo]", "summarise the conversation to make room", "对已有对话作摘要以腾出空间"),
    entry("rewind", "[number | undo | yes]", "restore files to before a message", "将文件恢复到某条消息之前"),
    entry("plan", "[full]", "show the plan (full: all instructions)", "查看计划（full：全部说明）"),
    entry("team", "[load NAME]", "show the team, or start a saved team", "查看团队，或启动已保存的团队"),
    entry("send", "name words", "write to a teammate; or @name words", "写信给队友；也可用 @姓名 内容"),
    entry("show", "[name]", "show what a called agent has done", "查看被调用者的完整记录"),
    entry("stop", "[task]", "stop the turn and the plan, or one task of it", "停止当前任务和计划，或计划中的一个任务"),
    entry(
        "continue",
        "[name]",
        "go on with interrupted work, or one agent",
        "继续所有被打断的工作，或其中一个智能体的",
    ),
    entry("inbox", "", "list what waits for you", "等待您处理的事项"),
    entry("resume", "[number or id]", "go back to another session", "回到其他会话"),
    entry("detach", "", "leave; a running `max-team serve` goes on", "退出，由正在运行的 `max-team serve` 继续"),
    entry("quit", "", "leave", "退出"),
];

/// Parses a draft; `None` if it is a message.
pub(super) fn parse(draft: &str) -> Option<Result<Slash, UnknownSlash>> {
    let rest = draft.trim_end().strip_prefix('/')?;
    let (name, argument) = rest.split_once(' ').unwrap_or((rest, ""));
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') || argument.contains('\n') {
        return None;
    }
    let argument = Some(argument.trim()).filter(|argument| !argument.is_empty()).map(str::to_owned);
    Some(Ok(match name.to_ascii_lowercase().as_str() {
        "help" => Slash::Help,
        "clear" | "new" => Slash::Clear,
        "model" => Slash::Model(argument),
        "cost" => Slash::Cost,
        "context" => Slash::Context,
        "mcp" => Slash::Mcp,
        "compact" => match argument.unwrap_or_default() {
            undo if undo == "undo" => Slash::Uncompact,
            keep => Slash::Compact(keep),
        },
        "rewind" => Slash::Rewind(back(argument.as_deref())),
        "resume" => Slash::Resume(argument),
        "plan" => Slash::Plan { full: argument.as_deref() == Some("full") },
        "team" | "agents" => match argument.as_deref().and_then(|argument| argument.strip_prefix("load")) {
            Some(name) => Slash::Load(Some(name.trim().to_owned()).filter(|name| !name.is_empty())),
            None => argument.map_or(Slash::Team, Slash::TeamOther),
        },
        "send" => Slash::Send(argument),
        "show" | "open" => Slash::Show(argument),
        "stop" => Slash::Stop(argument),
        "continue" => Slash::Continue(argument),
        "inbox" => Slash::Inbox,
        "detach" | "background" | "handover" => Slash::Detach,
        "quit" | "exit" => Slash::Quit,
        _ => return Some(Err(UnknownSlash { name: name.to_owned(), nearest: nearest(name) })),
    }))
}

/// The command of the chat that a line is, for runs that have no chat.
pub fn chat_command(line: &str) -> Option<&'static str> {
    parse(line)?.ok()?;
    let name = line.trim_end().strip_prefix('/')?.split(' ').next()?;
    ENTRIES.into_iter().map(|entry| entry.name).find(|known| known.eq_ignore_ascii_case(name))
}

/// The name of a command that a whole message is and that the chat does not know, either.
pub fn unknown_command(message: &str) -> Option<String> {
    Some(parse(message)?.err()?.name)
}

/// The argument of `/rewind`; an unknown one shows the points.
fn back(argument: Option<&str>) -> RewindTo {
    let number = |text: &str| text.trim_start_matches("turn:").parse().ok().map(RewindTo::Turn);
    match argument {
        Some("undo") => RewindTo::Undo,
        Some("yes" | "y") => RewindTo::Yes,
        Some(text) => number(text).unwrap_or(RewindTo::List),
        None => RewindTo::List,
    }
}

/// The commands that a draft may become.
pub(super) fn matches(draft: &str) -> Vec<HelpEntry> {
    match draft.strip_prefix('/') {
        Some(begun) if !begun.contains([' ', '\n']) => {
            ENTRIES.into_iter().filter(|entry| entry.name.starts_with(begun)).collect()
        }
        _ => Vec::new(),
    }
}

/// What Tab makes of a draft: the command, or as much as all candidates share.
pub(super) fn complete(draft: &str) -> Option<String> {
    let found = matches(draft);
    let (first, rest) = found.split_first()?;
    let shared = rest.iter().fold(first.name, |shared, entry| {
        let same = shared.bytes().zip(entry.name.bytes()).take_while(|(a, b)| a == b).count();
        shared.get(..same).unwrap_or_default()
    });
    let whole = format!("/{shared}");
    match rest {
        [] if first.argument.is_empty() => Some(whole),
        [] => Some(whole + " "),
        _ => Some(whole).filter(|whole| whole.len() > draft.len()),
    }
}

fn nearest(name: &str) -> Option<&'static str> {
    max_team_core::suggest::nearest(name, ENTRIES.iter().map(|entry| entry.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_messages_are_told_apart() {
        assert_eq!(parse("/help"), Some(Ok(Slash::Help)));
        assert_eq!(parse("/model  big one "), Some(Ok(Slash::Model(Some("big one".into())))));
        assert_eq!(parse("/resume"), Some(Ok(Slash::Resume(None))));
        assert_eq!(parse("/exit"), Some(Ok(Slash::Quit)));
        assert_eq!(parse("/background"), Some(Ok(Slash::Detach)));
        assert_eq!(parse("/STOP"), Some(Ok(Slash::Stop(None))));
        assert_eq!(parse("/team mode pia plan"), Some(Ok(Slash::TeamOther("mode pia plan".into()))));
        assert_eq!(parse("/continue"), Some(Ok(Slash::Continue(None))));
        assert_eq!(parse("/continue ann"), Some(Ok(Slash::Continue(Some("ann".into())))));
        assert_eq!(parse("/rewind"), Some(Ok(Slash::Rewind(RewindTo::List))));
        assert_eq!(parse("/rewind 3"), Some(Ok(Slash::Rewind(RewindTo::Turn(3)))));
        assert_eq!(parse("/rewind undo"), Some(Ok(Slash::Rewind(RewindTo::Undo))));
        assert_eq!(parse("/rewind yes"), Some(Ok(Slash::Rewind(RewindTo::Yes))));
        assert_eq!(parse("/compact undo"), Some(Ok(Slash::Uncompact)));
        assert_eq!(parse("/compact the port"), Some(Ok(Slash::Compact("the port".into()))));
        for message in ["hello", "/usr/bin is full", "/", "/ help", "/help me\nplease", "/中文"] {
            assert_eq!(parse(message), None, "{message}");
        }
        let unknown = |name: &str, nearest| Some(Err(UnknownSlash { name: name.into(), nearest }));
        assert_eq!(parse("/modle"), unknown("modle", Some("model")));
        assert_eq!(parse("/zzz"), unknown("zzz", None));
    }

    #[test]
    fn tab_completes_as_far_as_it_is_clear() {
        assert_eq!(complete("/mo").as_deref(), Some("/model "));
        assert_eq!(complete("/q").as_deref(), Some("/quit"));
        assert_eq!(complete("/c"), None);
        assert_eq!(complete("/co"), None);
        assert_eq!(complete("/cont"), None);
        assert_eq!(complete("/conte").as_deref(), Some("/context"));
        assert_eq!(complete("/x"), None);
        assert_eq!(complete("hi"), None);
    }
}
