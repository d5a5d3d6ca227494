//! How a text is written in YAML so that it reads back to the letter, by us and by any other reader.
//!
//! Plain where that is safe, quoted where it is not, and as a block where a person would rather see lines than `\n`.
//! When in doubt it quotes.

use max_team_core::text::is_hidden;

/// Letters of one line of a folded block, and of a value that stays on one line.
pub(super) const LINE_MAX: usize = 96;
/// Letters that begin something else than a word.
const OPENERS: &str = "-?:,[]{}#&*!|>'\"%@`=~<.+\\";
/// Words that YAML, in one version or another, takes for something else.
const TAKEN: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];

/// On one line: plain, or in double quotes. `flow` is inside brackets, where commas part and braces close.
pub fn line(text: &str, flow: bool) -> String {
    if is_plain(text, flow) { text.to_owned() } else { quoted(text) }
}

/// On lines of its own where that is nicer; `indent` is where the key stands.
pub fn block(text: &str, indent: usize) -> String {
    let short = text.chars().count() <= LINE_MAX;
    let blockable = is_blockable(text);
    match (text.contains('\n'), short) {
        (true, _) if blockable => literal(text, indent),
        (false, false) if blockable => folded(text, indent),
        _ => line(text, false),
    }
}

fn is_plain(text: &str, flow: bool) -> bool {
    let bare = text.trim();
    let opened = text.chars().next().is_none_or(|first| OPENERS.contains(first));
    let number = text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '+' | '-'));
    let taken = TAKEN.iter().any(|word| word.eq_ignore_ascii_case(text));
    let parted = text.contains(": ") || text.ends_with(':') || text.contains(" #");
    let closed = flow && text.contains([',', '[', ']', '{', '}', ':', '?', '#', '"', '\'']);
    let whole = bare.len() == text.len() && text.chars().all(|c| c == ' ' || is_visible(c));
    whole && !opened && !number && !taken && !parted && !closed
}

/// Whether a letter can stand in a file as it is.
fn is_visible(letter: char) -> bool {
    let odd = matches!(letter, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    !letter.is_control() && !odd && !is_hidden(letter) && (letter == ' ' || !letter.is_whitespace())
}

fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            letter if is_visible(letter) => quoted.push(letter),
            letter => quoted.push_str(&format!("\\U{:08x}", u32::from(letter))),
        }
    }
    quoted.push('"');
    quoted
}

/// Whether a block can hold a text without tricks: it begins with a word, no line is made of blanks, and at most one
/// line end comes last, so that empty lines behind the block do not matter.
fn is_blockable(text: &str) -> bool {
    let begins = text.chars().next().is_some_and(|first| !first.is_whitespace() && is_visible(first));
    let blank = |line: &str| !line.is_empty() && line.trim().is_empty();
    begins
        && !text.ends_with("\n\n")
        && text.chars().all(|c| matches!(c, '\n' | '\t') || is_visible(c))
        && !text.split('\n').any(blank)
}

/// Line by line as it is.
fn literal(text: &str, indent: usize) -> String {
    let (ending, kept) = text.strip_suffix('\n').map_or(("-", text), |kept| ("", kept));
    let mut block = format!("|{ending}");
    for line in kept.split('\n') {
        push_line(&mut block, line, indent);
    }
    block
}

/// One long line, broken where a single blank parts two words; reading puts the blanks back.
fn folded(text: &str, indent: usize) -> String {
    let mut block = ">-".to_owned();
    let mut line = String::new();
    let mut letters = 0;
    let mut rest = text;
    while !rest.is_empty() {
        // Up to the next blank that may become the end of a line.
        let end = breaks(rest).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let long = word.chars().count();
        if letters > 0 && letters + 1 + long > LINE_MAX {
            push_line(&mut block, &line, indent);
            line.clear();
            letters = 0;
        }
        if letters > 0 {
            line.push(' ');
            letters += 1;
        }
        line.push_str(word);
        letters += long;
        rest = after.strip_prefix(' ').unwrap_or(after);
    }
    push_line(&mut block, &line, indent);
    block
}

/// The first blank between two words; a row of blanks would not survive the end of a line.
fn breaks(text: &str) -> Option<usize> {
    let mut before = ' ';
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let next = letters.peek().map(|(_, next)| *next);
        if letter == ' ' && !before.is_whitespace() && next.is_some_and(|next| !next.is_whitespace()) {
            return Some(at);
        }
        before = letter;
    }
    None
}

fn push_line(block: &mut String, line: &str, indent: usize) {
    block.push('\n');
    if !line.is_empty() {
        block.extend(std::iter::repeat_n(' ', indent + 2));
        block.push_str(line);
    }
}
