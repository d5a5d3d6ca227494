//! API keys of this program's user, known by their value: they are removed from every text.

use std::borrow::Cow;
use std::sync::RwLock;

use super::REDACTED;
use crate::limits::{KEY_BYTES_SEARCHED_MIN, KEYS_KNOWN_MAX};

static KNOWN: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Removes this key from every text from now on. A very short key could be any word, and is ignored. If there are too
/// many keys, the oldest is dropped.
pub fn add_key(key: &str) {
    let key = key.trim();
    let Ok(mut known) = KNOWN.write() else { return };
    if key.len() < KEY_BYTES_SEARCHED_MIN || known.iter().any(|own| own == key) {
        return;
    }
    if known.len() >= KEYS_KNOWN_MAX {
        known.remove(0);
    }
    known.push(key.to_owned());
}

/// The text without known keys.
pub(super) fn without_keys(text: &str) -> Cow<'_, str> {
    let Ok(known) = KNOWN.read() else { return Cow::Borrowed(text) };
    let mut text = Cow::Borrowed(text);
    for key in known.iter() {
        if let Cow::Owned(hidden) = hide(&text, key) {
            text = Cow::Owned(hidden);
        }
    }
    text
}

/// How much of the end of a text may be the beginning of a known key: a cut must not go through it.
pub(super) fn partial_key_len(text: &str) -> usize {
    let Ok(known) = KNOWN.read() else { return 0 };
    let begun = |key: &String| {
        let lengths = (1..key.len()).rev().filter(|length| key.is_char_boundary(*length));
        lengths.into_iter().find(|length| key.get(..*length).is_some_and(|head| text.ends_with(head))).unwrap_or(0)
    };
    known.iter().map(begun).max().unwrap_or(0)
}

/// The text without a key. A very short key is only removed where it is a whole word, because it may be part of any
/// other.
pub fn hide<'t>(text: &'t str, key: &str) -> Cow<'t, str> {
    if key.is_empty() || !text.contains(key) {
        return Cow::Borrowed(text);
    }
    if key.len() >= KEY_BYTES_SEARCHED_MIN {
        return Cow::Owned(text.replace(key, REDACTED));
    }
    let is_letter = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-');
    let (mut kept, mut from) = (String::with_capacity(text.len()), 0);
    for (at, _) in text.match_indices(key) {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + key.len()..).and_then(|after| after.chars().next());
        if !before.is_some_and(is_letter) && !after.is_some_and(is_letter) {
            kept.push_str(text.get(from..at).unwrap_or_default());
            kept.push_str(REDACTED);
            from = at + key.len();
        }
    }
    kept.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(kept)
}

#[cfg(test)]
mod tests {
    use super::super::redact;
    use super::*;

    #[test]
    fn short_keys_are_not_searched_for_inside_words() {
        assert_eq!(hide("test the latest test", "test"), "[redacted] the latest [redacted]");
        assert_eq!(hide("a-key abc-key-1", "key"), "a-key abc-key-1");
        assert_eq!(hide("xlocal-key-1234x", "local-key-1234"), "x[redacted]x");
        assert_eq!(hide("anything", ""), "anything");
    }

    #[test]
    fn the_users_own_keys_are_hidden_in_any_form() {
        add_key("plain-words-of-a-gateway");
        add_key("ollama");
        assert_eq!(redact("ollama said plain-words-of-a-gateway."), "ollama said [redacted].");
    }
}
