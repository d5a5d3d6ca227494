//! Reads the simplest front matter without a YAML parser.
//!
//! Most definitions are a few lines of `key: words` and perhaps a list, and there may be hundreds of them at every
//! start. Lines with only one possible meaning are read here, in a fraction of the time; everything else is left to
//! YAML. A property test compares both.

use serde_json::Value as Json;

use crate::yaml::{Name, Node, Scalar, Spot, Value};

/// Values that YAML reads as no string although they begin with a letter.
const NO_WORDS: [&str; 3] = ["true", "false", "null"];

/// The tree that YAML makes of these lines, the first of which has this number; `None` if they are not plain.
pub(super) fn front(lines: &[&str], first: u64) -> Option<Node> {
    let mut entries: Vec<(Name, Node)> = Vec::new();
    let mut lines = (first..).zip(lines.iter().copied()).filter(|(_, line)| !is_silent(line)).peekable();
    let mut begin = None;
    while let Some((line, written)) = lines.next() {
        let (key, rest) = written.split_once(':')?;
        if !is_key(key) || entries.iter().any(|(name, _)| name.text == key) {
            return None;
        }
        let spot = Spot { line, col: 1 };
        begin = begin.or(Some(spot));
        let node = if rest.trim_end().is_empty() {
            let (line, written) = *lines.peek()?;
            let indent = written.len() - written.trim_start_matches(' ').len();
            // A list without indentation is left to YAML.
            if indent == 0 {
                return None;
            }
            let mut items = Vec::new();
            while let Some((line, item)) = lines.next_if(|(_, line)| line.trim_start_matches(' ').starts_with("- ")) {
                let word = item.get(indent..)?.strip_prefix("- ")?;
                items.push(scalar(word, Spot { line, col: indent as u64 + 3 })?);
            }
            let spot = Spot { line, col: indent as u64 + 1 };
            (!items.is_empty()).then_some(Node { value: Value::List(items), spot })?
        } else {
            let words = rest.strip_prefix(' ')?.trim_end_matches(' ');
            let spot = Spot { line, col: key.len() as u64 + 3 };
            match words.strip_prefix('[') {
                Some(words) => row(words.strip_suffix(']')?, spot)?,
                None => scalar(words, spot)?,
            }
        };
        entries.push((Name { text: key.to_owned(), spot }, node));
    }
    Some(Node { value: Value::Map(entries), spot: begin? })
}

/// Blank lines and comment lines.
fn is_silent(line: &str) -> bool {
    line.starts_with('#') || line.bytes().all(|byte| byte == b' ')
}

fn is_key(key: &str) -> bool {
    key.starts_with(|first: char| first.is_ascii_alphabetic())
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        && !NO_WORDS.iter().any(|word| key.eq_ignore_ascii_case(word))
}

/// `a, "b"` of `[a, "b"]`, which begins at this spot.
fn row(words: &str, spot: Spot) -> Option<Node> {
    let mut items = Vec::new();
    let mut col = spot.col + 1;
    for piece in words.split(',') {
        let word = piece.trim_start_matches(' ');
        let indent = piece.len() - word.len();
        let word = word.trim_end_matches(' ');
        // Within brackets these have another meaning.
        let is_open = word.contains(['[', ']', '{', '}', ':', '#']);
        let spot = Spot { col: col + indent as u64, ..spot };
        items.push((!is_open).then(|| scalar(word, spot)).flatten()?);
        col += piece.chars().count() as u64 + 1;
    }
    Some(Node { value: Value::List(items), spot })
}

/// The text within a pair of equal quotes, if it has no escapes.
fn quoted(words: &str) -> Option<&str> {
    let within = |mark: char| words.strip_prefix(mark).and_then(|words| words.strip_suffix(mark));
    let inner = within('"').or_else(|| within('\''))?;
    (!inner.contains(['"', '\'', '\\']) && !inner.contains(is_odd)).then_some(inner)
}

/// Line ends and invisible characters.
fn is_odd(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{feff}' | '\u{2028}' | '\u{2029}')
}

/// A scalar that begins with a letter and has no special characters, or that is quoted.
fn scalar(words: &str, spot: Spot) -> Option<Node> {
    let words = words.trim_end_matches(' ');
    if let Some(inner) = quoted(words) {
        let value = Value::Scalar(Scalar { text: inner.to_owned(), json: Json::String(inner.to_owned()) });
        return Some(Node { value, spot });
    }
    let is_plain = words.starts_with(char::is_alphabetic)
        && !words.contains(is_odd)
        && !words.contains(": ")
        && !words.contains(" #")
        && !words.ends_with(':')
        && !NO_WORDS.iter().any(|word| words.eq_ignore_ascii_case(word));
    let value = || Value::Scalar(Scalar { text: words.to_owned(), json: Json::String(words.to_owned()) });
    is_plain.then(|| Node { value: value(), spot })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::yaml;

    fn same(text: &str) -> bool {
        let lines: Vec<&str> = text.lines().collect();
        let Some(node) = front(&lines, 1) else { return false };
        assert_eq!(yaml::parse(text).as_ref(), Ok(&node), "{text:?}");
        true
    }

    #[test]
    fn plain_values_are_read_as_yaml_reads_them() {
        for text in [
            "name: a\n",
            "# c\n\nname: a b  \ndescription: It's [this], \"that\", {x} & more - at 10:30, a:b, c#d\n",
            "name: 审查\ntools:\n  - Read\n  - Bash(git log:*)\n\nmodel: x\n",
            "tools:\n - a\n - b c\nname: Yes\n",
            "name: a\r\ntools: Read, Grep\r\n",
            "name: \"a: b\"\ndescription: 'x # y'\ntools: [Read,  \"Grep\", '中 文' ]\nmodel: \"\"\n",
        ] {
            assert!(same(text), "{text}");
        }
        for text in [
            "name: 1\n",
            "name:\n",
            "a: b: c\n",
            "a: [x: y]\n",
            "a: [1]\n",
            "a: []\n",
            "a: b\n  c\n",
            "a: true\n",
            "a: 'x''y'\n",
            "a: b #c\n",
            "a:\n- b\n",
            "",
        ] {
            assert!(front(&text.lines().collect::<Vec<_>>(), 1).is_none(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_read_differently(
            pieces in proptest::collection::vec(
                proptest::sample::select(vec![
                    "name", "tools", ": ", ":", "\n", "\r\n", "\t", " ", "  ", "- ", "-", "a", "中", "[", "]", "{", "}", "\"",
                    "'", "|", ">", "#", " #", "&", "*", "!", "?", "%", "@", "`", ",", "0", "1.5", ".", "~", "null", "True",
                    "---", "...", "<<", "=", "\u{85}", "\u{a0}", "\u{2028}", "\u{feff}", "\\",
                ]),
                0..24,
            )
        ) {
            same(&pieces.concat());
            same(&format!("name: {}\n", pieces.concat()));
            same(&format!("name: a\ntools:\n  - {}\n", pieces.concat()));
            same(&format!("name: [a, {}]\n", pieces.concat()));
            same(&format!("name: \"{}\"\ntools: '{0}'\n", pieces.concat()));
        }
    }
}
