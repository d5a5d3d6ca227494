//! What `.claude/` and `.mcp.json` hold that max-team does not honour.
//!
//! Nothing of it is passed over in silence: the start names it in one line, `doctor` lists it. A `PreToolUse` hook may be
//! there to refuse something, so what its matcher covers needs the user's approval, and headless runs refuse it, until
//! the user says to go on without the hook (`permissions trust`).

use std::path::Path;

use max_team_core::hash::Hash;
use max_team_core::limits::FOREIGN_ENTRIES_MAX;

use crate::config::yaml::{Node, Value};
use crate::i18n::Lang;

/// Something that is there and has no effect here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unused {
    /// A key of a settings file, or a kind of file: `hooks.Stop`, `env`, `commands`, `servers`.
    pub what: String,
    /// Where, as people read it.
    pub place: String,
    /// Names within it; empty if there is nothing to name.
    pub names: Vec<String>,
}

/// A hook that another program would run before a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// Which tools, as it is written.
    pub matcher: String,
    /// The command that it would run, if it is one.
    pub command: String,
    /// The whole entry, as a yes to going on without it covers it.
    pub entry: String,
    pub line: u32,
}

/// Every tool that a matcher can name, as a rule covers it.
const TOOLS: [(&str, &str); 12] = [
    ("Bash", "Bash"),
    ("Edit", "Edit"),
    ("Write", "Edit"),
    ("MultiEdit", "Edit"),
    ("NotebookEdit", "Edit"),
    ("Read", "Read"),
    ("Glob", "Read"),
    ("Grep", "Read"),
    ("WebFetch", "WebFetch"),
    ("WebSearch", "WebSearch"),
    ("Task", "Agent"),
    ("Agent", "Agent"),
];
/// Files of a project's `.claude` folder that Max Team uses, or that only Claude Code itself needs.
const HONOURED: [&str; 7] =
    ["CLAUDE.md", "agents", "settings.json", "settings.local.json", "skills", "worktrees", ".gitignore"];
/// Files of the user's own `.claude` folder that would have an effect; all others are Claude Code's own.
const OF_USER: [&str; 4] = ["commands", "hooks", "output-styles", "plugins"];
/// How the names of tools of servers begin.
const SERVERS: &str = "mcp__";
/// Digits of a hash that tell one hook from another.
const DIGITS: usize = 16;

impl Hook {
    /// The `ask` rules for the calls that it covers.
    pub fn rules(&self) -> Vec<String> {
        let mut rules: Vec<String> = Vec::new();
        for piece in self.matcher.split('|').map(str::trim) {
            let reading = Reading::of(piece);
            rules.extend(TOOLS.iter().filter(|(tool, _)| reading.fits(tool)).map(|(_, rule)| (*rule).to_owned()));
            match reading {
                Reading::Name(name) if name.starts_with(SERVERS) => rules.push(name.to_owned()),
                Reading::Beginning(name) | Reading::Part(name) if name.starts_with(SERVERS) => {
                    rules.push(format!("{name}*"));
                }
                Reading::Anything if piece.contains(SERVERS) => rules.push(format!("{SERVERS}*")),
                _ => {}
            }
        }
        rules.sort();
        rules.dedup();
        rules
    }

    /// The words by which the user's yes to going on without it is written down.
    pub fn word(&self) -> String {
        let hash: String = Hash::of(self.entry.as_bytes()).to_string().chars().take(DIGITS).collect();
        format!("hook {} {hash}", self.matcher)
    }
}

/// The tools that one alternative of a matcher covers. An alternative that cannot be parsed covers all.
enum Reading<'m> {
    Name(&'m str),
    /// `^Web.*`
    Beginning(&'m str),
    /// `Edit.*` is found anywhere in a name.
    Part(&'m str),
    Anything,
}

impl<'m> Reading<'m> {
    fn of(piece: &'m str) -> Self {
        let is_name = |text: &&str| {
            !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        };
        let whole = piece.strip_prefix('^').and_then(|rest| rest.strip_suffix('$')).unwrap_or(piece);
        let start = piece.strip_suffix(".*");
        if let Some(name) = Some(whole).filter(is_name) {
            Self::Name(name)
        } else if let Some(name) = start.and_then(|start| start.strip_prefix('^')).filter(is_name) {
            Self::Beginning(name)
        } else {
            start.filter(is_name).map_or(Self::Anything, Self::Part)
        }
    }

    fn fits(&self, tool: &str) -> bool {
        match self {
            Self::Name(name) => tool == *name,
            Self::Beginning(name) => tool.starts_with(name),
            Self::Part(name) => tool.contains(name),
            Self::Anything => true,
        }
    }
}

/// The hooks of a settings file: those before a tool, and the names of all other events. An entry that cannot be
/// parsed, or that exceeds the bound, counts as one hook before every tool.
pub(super) fn hooks(node: &Node) -> (Vec<Hook>, Vec<String>) {
    let (mut before, mut others) = (Vec::new(), Vec::new());
    let Value::Map(events) = &node.value else {
        before.extend((!is_empty(node)).then(|| unclear(std::slice::from_ref(node))).flatten());
        return (before, others);
    };
    for (event, node) in events.iter().filter(|(_, node)| !is_empty(node)) {
        if event.text != "PreToolUse" {
            others.push(event.text.clone());
            continue;
        }
        let entries = match &node.value {
            Value::List(entries) => entries.as_slice(),
            _ => std::slice::from_ref(node),
        };
        let (read, rest) = entries.split_at(entries.len().min(FOREIGN_ENTRIES_MAX));
        before.extend(read.iter().map(|entry| Hook {
            matcher: field(entry, "matcher").and_then(Node::text).unwrap_or_default().to_owned(),
            command: commands(entry).join("\n"),
            entry: entry.json().to_string(),
            line: line_of(entry),
        }));
        before.extend(unclear(rest));
    }
    (before, others)
}

/// One hook before every tool, for all of these.
fn unclear(entries: &[Node]) -> Option<Hook> {
    let line = line_of(entries.first()?);
    let command = entries.iter().flat_map(commands).collect::<Vec<_>>().join("\n");
    let entry = entries.iter().map(|entry| entry.json().to_string()).collect::<Vec<_>>().join(",");
    Some(Hook { matcher: String::new(), command, entry, line })
}

fn line_of(node: &Node) -> u32 {
    u32::try_from(node.spot.line).unwrap_or(u32::MAX)
}

fn field<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    let Value::Map(entries) = &node.value else { return None };
    entries.iter().find(|(name, _)| name.text == key).map(|(_, node)| node)
}

fn commands(entry: &Node) -> Vec<String> {
    let Some(Value::List(hooks)) = field(entry, "hooks").map(|node| &node.value) else { return Vec::new() };
    hooks.iter().filter_map(|hook| field(hook, "command").and_then(Node::text)).map(str::to_owned).collect()
}

/// The names of the entries of a map, for `env` and servers.
pub(super) fn names(node: &Node) -> Vec<String> {
    match &node.value {
        Value::Map(entries) => entries.iter().take(FOREIGN_ENTRIES_MAX).map(|(name, _)| name.text.clone()).collect(),
        _ => Vec::new(),
    }
}

/// Whether a value says nothing: such a key is not worth a word.
pub(super) fn is_empty(node: &Node) -> bool {
    match &node.value {
        Value::Map(entries) => entries.is_empty(),
        Value::List(items) => items.is_empty(),
        Value::Scalar(_) => node.is_null() || node.text().is_some_and(str::is_empty),
    }
}

/// Files in a `.claude` folder that have no effect here.
pub(super) fn folder(folder: &Path, shown: &str, is_users: bool) -> Vec<Unused> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(FOREIGN_ENTRIES_MAX);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_unused = if is_users { OF_USER.contains(&name.as_str()) } else { !HONOURED.contains(&name.as_str()) };
        if !is_unused {
            continue;
        }
        let within = std::fs::read_dir(entry.path()).into_iter().flatten().flatten().take(FOREIGN_ENTRIES_MAX);
        let mut names: Vec<String> = within.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        if names.is_empty() && entry.path().is_dir() {
            continue;
        }
        found.push(Unused { place: format!("{shown}/{name}"), what: name, names });
    }
    found.sort_by(|one, other| one.what.cmp(&other.what));
    found
}

/// All of it in one line; `asks` says whether there are hooks that the user has not said to go on without.
pub(super) fn line(all: &[Unused], asks: bool, lang: Lang) -> Option<String> {
    let mut kinds: Vec<String> = Vec::new();
    for unused in all {
        let kind = match unused.names.len() {
            0 => unused.what.clone(),
            count => format!("{} ({count})", unused.what),
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    (!kinds.is_empty()).then(|| lang.not_honoured(&kinds.join(", "), asks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matcher_becomes_rules() {
        let all = ["Agent", "Bash", "Edit", "Read", "WebFetch", "WebSearch"];
        let table: [(&str, &[&str]); 14] = [
            ("Bash", &["Bash"]),
            ("Edit|Write|MultiEdit", &["Edit"]),
            ("Bash|Read", &["Bash", "Read"]),
            ("", &all),
            ("*", &all),
            (".*", &all),
            ("^Web.*", &["WebFetch", "WebSearch"]),
            ("mcp__github__.*", &["mcp__github__*"]),
            ("Nothing", &[]),
            ("^Bash$", &["Bash"]),
            ("Edit.*", &["Edit"]),
            ("Edits?", &all),
            ("(Edit|Write)", &all),
            ("[A-B]ash", &all),
        ];
        for (matcher, want) in table {
            let (command, entry) = (String::new(), String::new());
            let hook = Hook { matcher: matcher.to_owned(), command, entry, line: 1 };
            assert_eq!(hook.rules(), want, "{matcher}");
        }
    }

    #[test]
    fn hooks_that_are_not_understood_cover_every_tool() {
        let read = |text: &str| hooks(&crate::config::yaml::parse(text).unwrap()).0;
        let matchers = |text: &str| read(text).into_iter().map(|hook| hook.matcher).collect::<Vec<_>>();
        for text in [r#""guard.sh""#, r#"["guard.sh"]"#, r#"{"PreToolUse": "guard.sh"}"#, r#"{"PreToolUse": {"a": 1}}"#]
        {
            assert_eq!(matchers(text), [""], "{text}");
        }
        for text in ["{}", "[]", r#"{"PreToolUse": []}"#, r#"{"Stop": "x"}"#] {
            assert!(matchers(text).is_empty(), "{text}");
        }
        let many = vec![r#"{"matcher": "Bash"}"#; FOREIGN_ENTRIES_MAX + 5].join(",");
        let found = matchers(&format!(r#"{{"PreToolUse": [{many}]}}"#));
        assert_eq!((found.len(), found.last().map(String::as_str)), (FOREIGN_ENTRIES_MAX + 1, Some("")));
        let word =
            |timeout| read(&format!(r#"{{"PreToolUse": [{{"matcher": "Bash", "timeout": {timeout}}}]}}"#))[0].word();
        assert_ne!(word(1), word(2), "a yes is for the whole entry");
        assert_eq!(word(1), word(1));
    }
}
