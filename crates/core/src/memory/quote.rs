//! Whether words are somebody's own.

use serde_json::Value;

use super::{Key, Section};
use crate::limits::MEMORY_QUOTE_WEIGHT_MIN;
use crate::memory::rank::is_pictured;

/// Letters that a character of Chinese, Japanese or Korean stands for.
const PICTURED_WEIGHT: usize = 3;

/// The words that the user must have said for a fact to be theirs. What becomes part of a lead's instructions must be
/// said by the user as it stands; for anything else words that it follows from are enough.
pub fn proof<'a>(key: &Key, value: &'a Value, quote: &'a str) -> &'a str {
    match (key.section(), value) {
        (Section::Personality, Value::String(words)) => words,
        (Section::Personality, Value::Null) => quote,
        // Nobody speaks in JSON.
        (Section::Personality, _) => "",
        _ => quote,
    }
}

/// Whether a quote occurs in what was said, however it is spaced and in whatever case. A word or a few letters prove
/// nothing, unless they are all that was said.
pub fn occurs(quote: &str, said: &str) -> bool {
    let plain = |text: &str| -> String {
        text.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let (letters, said) = (plain(quote), plain(said));
    if letters.is_empty() {
        return false;
    }
    let pictured = letters.chars().filter(|letter| is_pictured(*letter)).count();
    let weight = letters.chars().count() + pictured * (PICTURED_WEIGHT - 1);
    let is_phrase = pictured > 1 || quote.split_whitespace().nth(1).is_some();
    if weight < MEMORY_QUOTE_WEIGHT_MIN || !is_phrase { letters == said } else { said.contains(&letters) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_was_said_counts() {
        let said = "我住北京通州，最近花粉过敏厉害。 I  live in\nBerlin!";
        for (quote, want) in [
            ("我住北京通州", true),
            ("“花粉过敏”", true),
            ("i live in berlin", true),
            ("北京", true),
            ("京", false),
            ("Berlin", false),
            ("in Be", false),
            ("I live in Paris", false),
            ("", false),
            ("。！", false),
        ] {
            assert_eq!(occurs(quote, said), want, "{quote}");
        }
        assert!(occurs("茶", "茶！") && !occurs("茶", "喝茶"));
    }

    #[test]
    fn a_personality_is_in_the_users_own_words() {
        let proof = |key: &str, value: Value| proof(&key.parse().unwrap(), &value, "a quote").to_owned();
        assert_eq!(proof("personality", json!("Be funny.")), "Be funny.");
        assert_eq!(proof("personality.tone", json!(["Be funny."])), "");
        assert_eq!(proof("personality", json!(null)), "a quote");
        assert_eq!(proof("user_profile.x", json!("y")), "a quote");
    }
}
