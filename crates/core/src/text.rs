//! Somebody else's words inside ours.

/// Letters of a quotation.
const QUOTE_MAX: usize = 80;

/// Their words, fit for a message: one line, no control characters, not too long.
pub fn quote(text: &str) -> String {
    let mut quoted = String::new();
    for letter in text.chars().take(QUOTE_MAX) {
        if letter.is_control() { quoted.extend(letter.escape_default()) } else { quoted.push(letter) }
    }
    if text.chars().nth(QUOTE_MAX).is_some() {
        quoted.push('…');
    }
    quoted
}
