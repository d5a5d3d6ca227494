//! Answers that are remembered: for how long, and as which rule.
//!
//! An approval is remembered as a rule that the person has seen. The rule is as wide as the command's own kind (`cargo
//! test`) and never wider; if the kind is not known, it is the exact command.

use serde::{Deserialize, Serialize};

use super::command_line::join;
use super::rule::{Anchors, List, Origin, Rule, RuleScope};
use super::{ActionKind, program};

/// How long an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantScope {
    /// For this one call.
    Once,
    /// Until the turn that works on the task is over.
    Task,
    /// Until the session is over.
    #[default]
    Session,
    /// As long as the rule stands in the project's local settings.
    Repository,
}

impl GrantScope {
    /// All variants with the names that users write.
    pub const NAMES: [(&str, GrantScope); 4] = [
        ("once", GrantScope::Once),
        ("task", GrantScope::Task),
        ("session", GrantScope::Session),
        ("repository", GrantScope::Repository),
    ];

    /// The duration for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Task => "for this task",
            Self::Session => "for this session",
            Self::Repository => "for this repository",
        }
    }
}

/// The rule that "always allow" adds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RememberedRule {
    /// Every action of the kind, as questions in old journals were answered.
    #[default]
    #[serde(rename = "deed")]
    Kind,
    /// These permission rules.
    Rules(Vec<String>),
    /// The answer holds for this call only.
    Nothing,
}

impl RememberedRule {
    /// The rules, if there are any.
    pub fn rules(&self) -> &[String] {
        if let Self::Rules(rules) = self { rules } else { &[] }
    }
}

/// A standing permission that a person gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Every action of this kind: only from old journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "deed")]
    pub kind: Option<ActionKind>,
    /// The rule that allows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Rule>,
    /// How long it holds.
    #[serde(default)]
    pub until: GrantScope,
}

impl Grant {
    /// Allows every action of a kind, for the session.
    pub fn of_kind(kind: ActionKind) -> Self {
        Self { kind: Some(kind), rule: None, until: GrantScope::Session }
    }

    /// Allows what a rule covers. Paths in it start at the project's folder.
    pub fn rule(text: &str, until: GrantScope, root: &str) -> Self {
        let origin = Origin { scope: RuleScope::Answer, file: "an answer".to_owned(), line: 0 };
        let anchors = Anchors { root, base: root, home: "" };
        Self { kind: None, rule: Some(Rule::new(List::Allow, text, origin, &anchors)), until }
    }
}

/// The rule as which an approval of a command is remembered.
pub(super) fn proposed(argv: &[String]) -> String {
    let inner = program::unwrapped(argv);
    let argv = inner.as_deref().unwrap_or(argv);
    match program::approvable_prefix(argv) {
        Some(head) => format!("Bash({}:*)", join(head)),
        None => exactly(argv),
    }
}

/// The rule for exactly this command.
pub(super) fn exactly(argv: &[String]) -> String {
    format!("Bash({})", join(argv))
}

/// The rule for exactly this text, which only a shell can parse.
pub(super) fn for_text(text: &str) -> String {
    format!("Bash({})", text.trim())
}

/// Possible commands in a text that only a shell can parse: good enough to deny by, never to allow by.
pub(super) fn pieces(text: &str) -> Vec<Vec<String>> {
    let ends = |letter: char| matches!(letter, ';' | '|' | '&' | '\n' | '(' | ')' | '{' | '}' | '`' | '<' | '>' | '\r');
    let bare = |word: &str| word.replace(['\'', '"', '\\', '$'], "");
    let words = |piece: &str| {
        let is_set = |word: &&str| {
            word.split_once('=')
                .is_some_and(|(name, _)| name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_'))
        };
        let is_word = |word: &&str| matches!(*word, "do" | "then" | "else" | "if" | "while" | "until" | "!" | "time");
        let words = piece.split_whitespace().skip_while(|word| is_set(word) || is_word(word));
        words.map(bare).collect::<Vec<String>>()
    };
    text.split(ends).map(words).filter(|argv| !argv.is_empty()).collect()
}
