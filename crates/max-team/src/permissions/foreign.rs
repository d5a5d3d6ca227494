//! What `.claude/` and `.mcp.json` hold that max-team does not honour.
//!
//! Nothing of it is passed over in silence: the start names it in one line, `doctor` lists it. A `PreToolUse` hook may be
//! there to refuse something, so what its matcher covers is asked about, and refused where nobody can be asked, until
//! the user says to go on without the hook (`permissions trust`).

use std::path::Path;

use max_team_core::hash::Hash;
use max_team_core::limits::FOREIGN_ENTRIES_MAX;

use crate::config::yaml::{Node, Value};
use crate::named;
use crate::words::Lang;

/// Something that is there and has no effect here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unused {
    /// A key of a settings file, or a kind of file: `hooks.Stop`, `env`, `commands`, `servers`.
    pub(crate) what: String,
    /// Where, as people read it.
    pub(crate) place: String,
    /// Names within it; empty if there is nothing to name.
    pub(crate) names: Vec<String>,
}

/// A hook that another program would run before a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hook {
    /// Which tools, as it is written.
    pub(crate) matcher: String,
    /// What it would run, as far as it is a command.
    pub(crate) command: String,
    /// Its line.
    pub(crate) line: u32,
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
    ("WebSearch", "WebFetch"),
    ("Task", "Agent"),
    ("Agent", "Agent"),
];
/// What is honoured in a project's `.claude` folder, or belongs to nobody but its program.
const HONOURED: [&str; 7] =
    ["CLAUDE.md", "agents", "settings.json", "settings.local.json", "skills", "worktrees", ".gitignore"];
/// What may lie in the user's own `.claude` folder and would have an effect; all else there is Claude Code's own.
const OF_USER: [&str; 4] = ["commands", "hooks", "output-styles", "plugins"];
/// Digits of a hash that tell one hook's command from another's.
const DIGITS: usize = 16;

impl Hook {
    /// The rules that ask about what it covers.
    pub(crate) fn rules(&self) -> Vec<String> {
        let mut rules: Vec<String> = Vec::new();
        for piece in self.matcher.split('|').map(str::trim) {
            let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            // Whatever is a pattern covers every name that begins like it.
            let name = piece.trim_start_matches('^');
            let beginning = name.split(|letter: char| !plain(letter)).next().unwrap_or_default();
            let is_whole = name.len() == beginning.len() && !name.is_empty();
            let fits = |tool: &str| if is_whole { tool == name } else { tool.starts_with(beginning) };
            rules.extend(TOOLS.iter().filter(|(tool, _)| fits(tool)).map(|(_, rule)| (*rule).to_owned()));
            if name.starts_with("mcp__") {
                rules.push(if is_whole { name.to_owned() } else { format!("{beginning}*") });
            }
        }
        rules.sort();
        rules.dedup();
        rules
    }

    /// The words by which the user's yes to going on without it is written down.
    pub(crate) fn word(&self) -> String {
        let hash: String = Hash::of(self.command.as_bytes()).to_string().chars().take(DIGITS).collect();
        format!("hook {} {hash}", self.matcher)
    }
}

/// The hooks of a settings file: those before a tool, and the names of all other events.
pub(super) fn hooks(node: &Node) -> (Vec<Hook>, Vec<String>) {
    let (mut before, mut others) = (Vec::new(), Vec::new());
    let Value::Map(events) = &node.value else { return (before, others) };
    for (event, node) in events {
        let Value::List(entries) = &node.value else { continue };
        if entries.is_empty() {
            continue;
        }
        if event.text != "PreToolUse" {
            others.push(event.text.clone());
            continue;
        }
        before.extend(entries.iter().take(FOREIGN_ENTRIES_MAX).map(|entry| Hook {
            matcher: field(entry, "matcher").and_then(Node::text).unwrap_or_default().to_owned(),
            command: commands(entry).join("\n"),
            line: u32::try_from(entry.spot.line).unwrap_or(u32::MAX),
        }));
    }
    (before, others)
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

/// What lies in a `.claude` folder and has no effect here.
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

/// The servers of a `.mcp.json`.
pub(super) fn servers(path: &Path, shown: &str) -> Option<Unused> {
    let is_file = std::fs::metadata(path).ok()?.is_file();
    // A device or a pipe has no names to read, and a file that is too large is still named.
    let text = is_file.then(|| named::text(path, named::JSON_BYTES_MAX).ok()).flatten().unwrap_or_default();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let servers = json.get("mcpServers").unwrap_or(&json).as_object();
    let names = servers.map(|servers| servers.keys().take(FOREIGN_ENTRIES_MAX).cloned().collect()).unwrap_or_default();
    Some(Unused { what: "servers".to_owned(), place: shown.to_owned(), names })
}

/// All of it in one line.
pub(super) fn line(all: &[Unused], lang: Lang) -> Option<String> {
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
    (!kinds.is_empty()).then(|| lang.not_honoured(&kinds.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_read_within_a_bound_and_only_from_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".mcp.json");
        let names = || servers(&path, ".mcp.json").map(|unused| unused.names);
        assert_eq!(names(), None);
        std::fs::write(&path, r#"{"mcpServers":{"github":{}}}"#).unwrap();
        assert_eq!(names(), Some(vec!["github".to_owned()]));
        std::fs::write(&path, " ".repeat(usize::try_from(named::JSON_BYTES_MAX).unwrap() + 1)).unwrap();
        assert_eq!(names(), Some(Vec::new()));
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert_eq!(names(), Some(Vec::new()));
    }

    #[test]
    fn a_matcher_becomes_rules() {
        let all = ["Agent", "Bash", "Edit", "Read", "WebFetch"];
        let table: [(&str, &[&str]); 9] = [
            ("Bash", &["Bash"]),
            ("Edit|Write|MultiEdit", &["Edit"]),
            ("Bash|Read", &["Bash", "Read"]),
            ("", &all),
            ("*", &all),
            (".*", &all),
            ("^Web.*", &["WebFetch"]),
            ("mcp__github__.*", &["mcp__github__*"]),
            ("Nothing", &[]),
        ];
        for (matcher, want) in table {
            let hook = Hook { matcher: matcher.to_owned(), command: String::new(), line: 1 };
            assert_eq!(hook.rules(), want, "{matcher}");
        }
    }
}
