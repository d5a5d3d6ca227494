//! Names of teammates: which are reserved and which are allowed.

use crate::limits::TEAMMATE_NAME_CHARS_MAX;

/// Names that address all of the team but the sender.
const EVERYBODY: [&str; 5] = ["*", "all", "everybody", "everyone", "team"];
/// Names that address the lead.
const LEAD: [&str; 3] = ["lead", "leader", "team-lead"];
/// Names that address the user, in messages and on screens.
const USER: [&str; 7] = ["user", "you", "me", "owner", "你", "我", "用户"];

/// The recipient that a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addressee<'a> {
    /// All of the team but the sender.
    Everybody,
    /// The team's lead.
    Lead,
    /// The teammate of this name.
    Teammate(&'a str),
}

/// The recipient that a name stands for in a team with this lead.
pub fn resolve<'a>(name: &'a str, lead: &str) -> Addressee<'a> {
    let name = name.trim();
    let is = |known: &&str| known.eq_ignore_ascii_case(name);
    if EVERYBODY.iter().any(&is) {
        Addressee::Everybody
    } else if name == lead || LEAD.iter().any(is) {
        Addressee::Lead
    } else {
        Addressee::Teammate(name)
    }
}

/// Whether a name stands for the user.
pub fn is_user(name: &str) -> bool {
    USER.iter().any(|known| known.eq_ignore_ascii_case(name.trim()))
}

/// Why a teammate cannot have a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("a teammate needs one")]
    Empty,
    #[error("it has more than {TEAMMATE_NAME_CHARS_MAX} characters")]
    Long,
    #[error("use letters, digits, `-`, `_` and `.`")]
    Letters,
    #[error("a number alone stands for a task")]
    Number,
    /// With a letter that is a styled form of another.
    #[error("`{0}` looks like another letter; use plain ones")]
    Styled(char),
    #[error("it mixes Latin, Greek or Cyrillic letters, which look alike")]
    Mixed,
    #[error("it is reserved")]
    Reserved,
}

/// Why a teammate cannot have this name; `None` if it can.
pub fn name_error(name: &str, lead: &str) -> Option<NameError> {
    if name.is_empty() {
        return Some(NameError::Empty);
    }
    if name.chars().count() > TEAMMATE_NAME_CHARS_MAX {
        return Some(NameError::Long);
    }
    let fits = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
    if !name.chars().all(fits) || !name.starts_with(char::is_alphanumeric) {
        return Some(NameError::Letters);
    }
    if name.chars().all(char::is_numeric) {
        return Some(NameError::Number);
    }
    if let Some(letter) = name.chars().find(|letter| is_dressed(*letter)) {
        return Some(NameError::Styled(letter));
    }
    if scripts(name) > 1 {
        return Some(NameError::Mixed);
    }
    let is_leads = looks_like(name, lead);
    let is_taken = is_leads || is_user(name) || resolve(name, lead) != Addressee::Teammate(name);
    is_taken.then_some(NameError::Reserved)
}

/// Whether people could confuse two names: capitals and look-alike letters make no difference.
pub fn looks_like(one: &str, other: &str) -> bool {
    // A new name is compared with those of a whole team, so this copies nothing. Names of a series differ at their
    // ends, so comparing the last letters is enough for most.
    let seen_byte = |letter: u8| plain(char::from(letter.to_ascii_lowercase()));
    let ends = one.bytes().next_back().zip(other.bytes().next_back());
    if ends.is_some_and(|(one, other)| one.is_ascii() && other.is_ascii() && seen_byte(one) != seen_byte(other)) {
        return false;
    }
    if one.is_ascii() && other.is_ascii() {
        let mut pairs = one.bytes().zip(other.bytes());
        return one.len() == other.len() && pairs.all(|(one, other)| seen_byte(one) == seen_byte(other));
    }
    seen(one).eq(seen(other))
}

/// A name as it looks: lower case, look-alike letters replaced.
fn seen(name: &str) -> impl Iterator<Item = char> {
    name.chars().flat_map(char::to_lowercase).map(plain)
}

/// The Latin letter that a letter looks like; the letter itself if there is none.
fn plain(letter: char) -> char {
    match letter {
        'а' | 'α' => 'a',
        'ь' => 'b',
        'с' | 'ϲ' => 'c',
        'ԁ' => 'd',
        'е' => 'e',
        'һ' => 'h',
        'і' | 'ι' => 'i',
        'ј' | 'ϳ' => 'j',
        'к' | 'κ' => 'k',
        'ӏ' | '1' => 'l',
        'м' => 'm',
        'п' => 'n',
        'о' | 'ο' | '0' => 'o',
        'р' | 'ρ' => 'p',
        'ԛ' => 'q',
        'г' => 'r',
        'ѕ' => 's',
        'т' | 'τ' => 't',
        'υ' => 'u',
        'ν' | 'ѵ' => 'v',
        'ԝ' | 'ω' => 'w',
        'х' | 'χ' => 'x',
        'у' | 'γ' => 'y',
        other => other,
    }
}

/// How many scripts with look-alike letters (Latin, Greek, Cyrillic) a name uses. Other scripts cannot be confused
/// with them.
fn scripts(name: &str) -> usize {
    let is_latin = |letter: char| letter.is_ascii_alphabetic() || matches!(letter, '\u{c0}'..='\u{24f}');
    let is_greek = |letter: char| matches!(letter, '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}');
    let is_cyrillic = |letter: char| matches!(letter, '\u{400}'..='\u{52f}');
    [name.chars().any(is_latin), name.chars().any(is_greek), name.chars().any(is_cyrillic)]
        .iter()
        .filter(|is| **is)
        .count()
}

/// Whether a letter is a styled form of another: wide, bold, superscript, circled.
fn is_dressed(letter: char) -> bool {
    matches!(letter, '\u{ff01}'..='\u{ff5e}' | '\u{1d400}'..='\u{1d7ff}' | '\u{2070}'..='\u{209f}' | '\u{2100}'..='\u{218f}'
        | '\u{2460}'..='\u{24ff}' | '\u{1d00}'..='\u{1dbf}' | '\u{250}'..='\u{2ff}' | '\u{aa}' | '\u{b2}' | '\u{b3}' | '\u{b9}'
        | '\u{ba}' | '\u{a720}'..='\u{a7ff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_one_thing() {
        for (name, want) in [
            ("*", Addressee::Everybody),
            ("All", Addressee::Everybody),
            ("team", Addressee::Everybody),
            ("max", Addressee::Lead),
            ("Lead", Addressee::Lead),
            (" alice ", Addressee::Teammate("alice")),
            ("Max", Addressee::Teammate("Max")),
        ] {
            assert_eq!(resolve(name, "max"), want, "{name}");
        }
    }

    #[test]
    fn an_invalid_name_is_explained() {
        for name in ["alice", "a.b-c_2", "张三", "Maxi", "张a", "Зоя", "2b", "José"] {
            assert_eq!(name_error(name, "max"), None, "{name}");
        }
        let long = "x".repeat(TEAMMATE_NAME_CHARS_MAX + 1);
        for name in [
            "",
            "max",
            "Max",
            "lead",
            "USER",
            "You",
            "owner",
            "你",
            "team",
            "*",
            "a b",
            "-a",
            "a/b",
            "a\"b",
            "<a>",
            "1",
            "٣",
            "аlice",
            "ａlice",
            "𝐚lice",
            "αbc",
            long.as_str(),
        ] {
            assert!(name_error(name, "max").is_some(), "{name}");
        }
    }

    #[test]
    fn names_that_look_alike_are_one_to_people() {
        for (one, other, want) in [
            ("Alice", "alice", true),
            ("асе", "ace", true),
            ("bob1", "bobl", true),
            ("wo", "W0", true),
            ("alice", "alicia", false),
            ("张三", "张四", false),
        ] {
            assert_eq!(looks_like(one, other), want, "{one} {other}");
        }
    }
}
