//! Dotted keys, the sections they begin with, and the boards they are on.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limits::{MEMORY_KEY_BYTES_MAX, MEMORY_KEY_PARTS_MAX};
use crate::suggest::did_you_mean;
use crate::text::quote;

/// The first part of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// How the lead speaks.
    Personality,
    /// Who the user is.
    UserProfile,
    /// What the user likes and wants.
    Preferences,
    /// Failures of agents.
    AgentErrors,
    /// The state of the last conversation.
    DialogContext,
    /// Facts of no other section.
    Notes,
}

impl Section {
    /// All of them with their names, in the order they are shown.
    pub const NAMES: [(&str, Section); 6] = [
        ("personality", Section::Personality),
        ("user_profile", Section::UserProfile),
        ("preferences", Section::Preferences),
        ("agent_errors", Section::AgentErrors),
        ("dialog_context", Section::DialogContext),
        ("notes", Section::Notes),
    ];

    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, section)| *section == self).map_or("notes", |(name, _)| name)
    }

    /// Whether its facts belong to the user in every project, unless a write says otherwise.
    pub fn is_users(self) -> bool {
        !matches!(self, Self::DialogContext | Self::Notes)
    }

    /// Whether its facts are about the user, and must come from the user's own words.
    pub fn is_personal(self) -> bool {
        matches!(self, Self::Personality | Self::UserProfile | Self::Preferences)
    }
}

/// A dotted key: `user_profile.location`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    section: Section,
    text: String,
}

/// A text that is no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It begins with no section.
    #[error("`{text}` is no key{near} A key begins with one of {sections}; free notes go under `notes.`")]
    Section {
        /// What was given.
        text: String,
        /// A suggestion, or the end of the sentence.
        near: String,
        /// The names of all sections.
        sections: String,
    },
    /// A part of it is empty or has a character that is not allowed.
    #[error("`{0}` is no key: parts are letters, digits, `_` and `-`, joined by dots")]
    Part(String),
    /// It is too long.
    #[error("`{0}` is no key: at most {MEMORY_KEY_PARTS_MAX} parts and {MEMORY_KEY_BYTES_MAX} bytes")]
    Long(String),
}

impl Key {
    /// The section itself.
    pub fn of(section: Section) -> Self {
        Self { section, text: section.name().to_owned() }
    }

    /// What it begins with.
    pub fn section(&self) -> Section {
        self.section
    }

    /// All of it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The part of it after a key above it; empty for the key itself, `None` if it lies elsewhere.
    pub fn below<'a>(&'a self, above: &Key) -> Option<&'a str> {
        let rest = self.text.strip_prefix(&above.text)?;
        if rest.is_empty() { Some(rest) } else { rest.strip_prefix('.') }
    }

    /// The key of a member. Characters that a key cannot have are replaced where possible.
    pub fn member(&self, name: &str) -> Result<Self, KeyError> {
        let plain: String = name.trim().chars().map(|letter| if is_letter(letter) { letter } else { '_' }).collect();
        format!("{}.{plain}", self.text).parse()
    }
}

fn is_letter(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-')
}

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        let (first, rest) = text.split_once('.').map_or((text, None), |(first, rest)| (first, Some(rest)));
        let Some((name, section)) = Section::NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(first)) else {
            let near = did_you_mean(first, Section::NAMES.map(|(name, _)| name));
            let near = if near.is_empty() { ".".to_owned() } else { near };
            let sections = Section::NAMES.map(|(name, _)| format!("`{name}`")).join(", ");
            return Err(KeyError::Section { text: quote(text), near, sections });
        };
        let whole = rest.map_or_else(|| (*name).to_owned(), |rest| format!("{name}.{rest}"));
        if whole.len() > MEMORY_KEY_BYTES_MAX || whole.split('.').count() > MEMORY_KEY_PARTS_MAX {
            return Err(KeyError::Long(quote(text)));
        }
        if whole.split('.').any(|part| part.is_empty() || !part.chars().all(is_letter)) {
            return Err(KeyError::Part(quote(text)));
        }
        Ok(Self { section: *section, text: whole })
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The owner of a board: the user (in every project), or one project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BoardScope {
    /// The user's board, the same in every project.
    User,
    /// A project's, by its folder.
    Project(String),
}

/// Prefix of a project's scope, before its folder.
const PROJECT: &str = "project:";
/// Prefix of the memory streams.
const STREAM: &str = "memory/";

impl BoardScope {
    /// The stream of its events.
    pub fn stream(&self) -> String {
        format!("{STREAM}{self}")
    }

    /// The board behind a stream's name.
    pub fn of_stream(stream: &str) -> Option<Self> {
        stream.strip_prefix(STREAM)?.parse().ok()
    }

    /// `user` or `project`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project(_) => "project",
        }
    }
}

/// A text that names no board.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no board of the memory; there are `user` and `project:FOLDER`")]
pub struct ScopeError(String);

impl FromStr for BoardScope {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, ScopeError> {
        match (text, text.strip_prefix(PROJECT)) {
            ("user", _) => Ok(Self::User),
            (_, Some(folder)) if !folder.is_empty() => Ok(Self::Project(folder.to_owned())),
            _ => Err(ScopeError(quote(text))),
        }
    }
}

impl fmt::Display for BoardScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User => f.write_str("user"),
            Self::Project(folder) => write!(f, "{PROJECT}{folder}"),
        }
    }
}

impl Serialize for BoardScope {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BoardScope {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_dotted_names_below_a_section() {
        for (text, want) in [
            ("personality", "personality"),
            ("user_profile.location", "user_profile.location"),
            (" User_Profile.城市 ", "user_profile.城市"),
            ("notes.a-b.c_1", "notes.a-b.c_1"),
        ] {
            assert_eq!(text.parse::<Key>().map(|key| key.to_string()).as_deref(), Ok(want), "{text}");
        }
        let long = format!("notes.{}", "x".repeat(MEMORY_KEY_BYTES_MAX));
        for text in ["", ".", "location", "notes.", "notes..a", "notes.a b", "notes.a/b", "notes.\u{202e}", &long] {
            assert!(text.parse::<Key>().is_err(), "{text}");
        }
        assert!("notes.a.b.c.d.e.f.g.h".parse::<Key>().is_err());
        let said = "user_profil.x".parse::<Key>().unwrap_err().to_string();
        assert!(said.contains("did you mean `user_profile`?") && said.contains("`notes.`"), "{said}");
    }

    #[test]
    fn keys_below_a_key() {
        let key: Key = "notes.a.b".parse().unwrap();
        for (above, want) in
            [("notes", Some("a.b")), ("notes.a", Some("b")), ("notes.a.b", Some("")), ("notes.a.bc", None)]
        {
            assert_eq!(key.below(&above.parse().unwrap()), want, "{above}");
        }
        assert_eq!("notes.ab".parse::<Key>().unwrap().below(&"notes.a".parse().unwrap()), None);
        assert_eq!(key.member("c d").unwrap().as_str(), "notes.a.b.c_d");
    }

    #[test]
    fn boards_have_streams() {
        for scope in [BoardScope::User, BoardScope::Project("/a:b/ü".into())] {
            assert_eq!(BoardScope::of_stream(&scope.stream()), Some(scope));
        }
        assert_eq!(BoardScope::of_stream("memory/project:"), None);
        assert_eq!(BoardScope::of_stream("mail/user"), None);
    }
}
