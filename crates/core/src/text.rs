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

/// The text with everything written out that would act on a terminal, turn text around or not be seen at all. A person
/// who must decide sees what is there; a tab and a line's end stay.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\t' | '\n' => shown.push(letter),
            '\r' => shown.push('␍'),
            _ if letter.is_control() || is_hidden(letter) => {
                shown.push_str(&format!("\\u{{{:x}}}", u32::from(letter)));
            }
            _ => shown.push(letter),
        }
    }
    shown
}

/// Characters that change the direction of what stands around them (CVE-2021-42574), or have no width.
fn is_hidden(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hides() {
        assert_eq!(visible("a\tb\r\u{1b}[2J\u{202e}é\n"), "a\tb␍\\u{1b}[2J\\u{202e}é\n");
        assert_eq!(visible("r\u{200b}m \u{feff}x\u{e0041}中"), "r\\u{200b}m \\u{feff}x\\u{e0041}中");
    }
}
