//! Whether words are somebody's own.

use crate::limits::MEMORY_QUOTE_CHARS_MIN;

/// Whether a quote occurs in what was said, however it is spaced and in whatever case. A few letters prove nothing,
/// unless they are all that was said.
pub fn occurs(quote: &str, said: &str) -> bool {
    let plain = |text: &str| -> String {
        text.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let (quote, said) = (plain(quote), plain(said));
    match quote.chars().count() {
        0 => false,
        few if few < MEMORY_QUOTE_CHARS_MIN => quote == said,
        _ => said.contains(&quote),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_said_counts() {
        let said = "我住北京通州，最近花粉过敏厉害。 I  live in\nBerlin!";
        for (quote, want) in [
            ("我住北京通州", true),
            ("“花粉过敏”", true),
            ("i live in berlin", true),
            ("北京", false),
            ("I live in Paris", false),
            ("", false),
            ("。！", false),
        ] {
            assert_eq!(occurs(quote, said), want, "{quote}");
        }
        assert!(occurs("茶", "茶！") && !occurs("茶", "喝茶"));
    }
}
