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

/// A sentence of the interface.
pub(super) type Phrase = fn(Lang) -> &'static str;

/// A row of `/help`.
#[derive(Debug, Clone, Copy)]
pub(super) struct HelpEntry {
    pub(super) name: &'static str,
    pub(super) argument: &'static str,
    about: Phrase,
}

impl HelpEntry {
    pub(super) fn about(&self, lang: Lang) -> &'static str {
        (self.about)(lang)
    }
}

const fn entry(name: &'static str, argument: &'static str, about: Phrase) -> HelpEntry {
    HelpEntry { name, argument, about }
}

/// All commands, as `/help` lists them.
pub(super) const ENTRIES: [HelpEntry; 18] = [
    entry("help", "", Lang::slash_help),
    entry("clear", "", Lang::slash_clear),
    entry("model", "[name]", Lang::slash_model),
    entry("cost", "", Lang::slash_cost),
    entry("context", "", Lang::slash_context),
    entry("mcp", "", Lang::slash_mcp),
    entry("compact", "[what to keep | undo]", Lang::slash_compact),
    entry("rewind", "[number | undo | yes]", Lang::slash_rewind),
    entry("plan", "[full]", Lang::slash_plan),
    entry("team", "[load NAME]", Lang::slash_team),
    entry("send", "name words", Lang::slash_send),
    entry("show", "[name]", Lang::slash_show),
    entry("stop", "[task]", Lang::slash_stop),
    entry("continue", "[name]", Lang::slash_continue),
    entry("inbox", "", Lang::slash_inbox),
    entry("resume", "[number or id]", Lang::slash_resume),
    entry("detach", "", Lang::slash_detach),
    entry("quit", "", Lang::slash_quit),
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
pub fn chat_command(line: &str) -> Option<&str> {
    parse(line)?.ok()?;
    line.trim_end().strip_prefix('/')?.split(' ').next()
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
