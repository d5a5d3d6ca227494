//! Flags of a command, read by the small language of the table.
//!
//! A row lists its flags as words; the sign behind a name says what its value is:
//!
//! | sign | the value |
//! |---|---|
//! | (none) | there is none |
//! | `=` | says nothing about places or programs |
//! | `?` | the same, and only in the same word |
//! | `<` | is read |
//! | `>` | is written |
//! | `!` | is a command that is run |
//! | `@` | is an address that is reached |
//! | `&` | is the pattern, so that no argument is |
//! | `/` | is the folder that is written to, so that no argument is |
//! | `%` | there is none, but it runs something that cannot be seen |
//! | `#` | may be anything, and it runs something that cannot be seen |
//!
//! Long names may be cut short as `getopt` has it: what could be a flag that does something is taken for it.

use super::table::{Row, Style};
use super::{Effect, host};

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Seen<'a> {
    /// What the flags do.
    pub(super) effects: Vec<Effect>,
    /// Flags that the row does not list.
    pub(super) unknown: Vec<&'a str>,
    /// Words that are no flags.
    pub(super) rest: Vec<&'a str>,
    /// Whether a flag gave the pattern.
    pub(super) has_pattern: bool,
    /// Whether a flag gave the folder that is written to.
    pub(super) has_target: bool,
}

/// One flag of a row.
#[derive(Debug, Clone, Copy)]
struct Flag<'r> {
    name: &'r str,
    sign: char,
}

/// Reads the words behind a program and its sub-command.
pub(super) fn read<'a>(row: &Row, words: &[&'a str]) -> Seen<'a> {
    let mut seen = Seen::default();
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        if word == "--" {
            seen.rest.extend(words.by_ref());
            break;
        }
        let is_flag = word.len() > 1 && word.starts_with('-');
        // A wrapper's own flags end where the command begins.
        if !is_flag || (row.is_wrapper() && !seen.rest.is_empty()) {
            seen.rest.push(word);
            if row.is_wrapper() && seen.rest.len() > row.wrapped() {
                seen.rest.extend(words.by_ref());
                break;
            }
            continue;
        }
        let is_long = word.starts_with("--") || row.style == Style::Dash;
        if is_long {
            long(row, word, &mut words, &mut seen);
        } else {
            short(row, word, &mut words, &mut seen);
        }
    }
    seen
}

fn flags(row: &Row) -> impl Iterator<Item = Flag<'_>> {
    row.flags.split_ascii_whitespace().map(|text| {
        let sign = text.chars().next_back().filter(|sign| "=?<>!@&/%#".contains(*sign));
        let name = sign.and_then(|sign| text.strip_suffix(sign)).unwrap_or(text);
        Flag { name, sign: sign.unwrap_or(' ') }
    })
}

fn long<'a>(row: &Row, word: &'a str, words: &mut impl Iterator<Item = &'a str>, seen: &mut Seen<'a>) {
    let (name, attached) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    // `-exec` and `--exec` are one where a program has it so.
    let bare = name.trim_start_matches('-');
    let is =
        |flag: &Flag<'_>| flag.name == name || (row.style == Style::Dash && flag.name.trim_start_matches('-') == bare);
    let could = |flag: &Flag<'_>| row.style == Style::Gnu && name.len() > 2 && flag.name.starts_with(name);
    let exact = flags(row).find(is);
    let found = exact.or_else(|| flags(row).filter(could).max_by_key(|flag| weight(flag.sign)));
    match found {
        Some(flag) => {
            let value = attached.or_else(|| if takes(flag.sign) { words.next() } else { None });
            apply(flag, value, seen);
        }
        None => seen.unknown.push(word),
    }
}

fn short<'a>(row: &Row, word: &'a str, words: &mut impl Iterator<Item = &'a str>, seen: &mut Seen<'a>) {
    // `-5` is a number where a program has it so, and a name of several letters behind one dash is listed as it is.
    if let Some(flag) = flags(row).find(|flag| flag.name == word && flag.name.len() > 2) {
        let value = if takes(flag.sign) { words.next() } else { None };
        return apply(flag, value, seen);
    }
    let is_number = word.get(1..).is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
    if is_number && flags(row).any(|flag| flag.name == "-0") {
        return;
    }
    for (at, letter) in word.char_indices().skip(1) {
        let end = at + letter.len_utf8();
        let mut own = flags(row).filter(|flag| flag.name.len() == letter.len_utf8() + 1);
        let Some(flag) = own.find(|flag| flag.name.strip_prefix('-').is_some_and(|name| name.starts_with(letter)))
        else {
            return seen.unknown.push(word);
        };
        let tail = word.get(end..).filter(|tail| !tail.is_empty());
        if flag.sign == '?' {
            return apply(flag, tail, seen);
        }
        if takes(flag.sign) {
            let value = tail.map(|tail| tail.strip_prefix('=').unwrap_or(tail)).or_else(|| words.next());
            return apply(flag, value, seen);
        }
        apply(flag, None, seen);
    }
}

/// Whether the next word belongs to it.
fn takes(sign: char) -> bool {
    matches!(sign, '=' | '<' | '>' | '!' | '@' | '&' | '/' | '#')
}

/// Of two that a cut name could be, the one that does more.
fn weight(sign: char) -> u8 {
    match sign {
        '!' | '%' | '#' => 4,
        '>' | '/' => 3,
        '@' => 2,
        '<' => 1,
        _ => 0,
    }
}

fn apply(flag: Flag<'_>, value: Option<&str>, seen: &mut Seen<'_>) {
    let text = value.unwrap_or_default();
    let effect = match flag.sign {
        '<' if text == "-" => return,
        '<' => Effect::Read(text.to_owned()),
        '>' if text == "-" => return,
        '>' => Effect::Write(text.to_owned()),
        '/' => {
            seen.has_target = true;
            Effect::Write(text.to_owned())
        }
        // Most programs hand it to a shell.
        '!' if text.contains(['$', '`', ';', '|', '&', '<', '>', '(', '*', '?', '\'', '"', '\\', '\n']) => {
            Effect::Code(format!("`{}` runs a script in a word", flag.name))
        }
        '!' => Effect::Run(text.split_whitespace().map(str::to_owned).collect()),
        '@' => Effect::Reach(host(text)),
        '%' | '#' => Effect::Code(format!("`{}` runs what cannot be seen here", flag.name)),
        '&' => {
            seen.has_pattern = true;
            return;
        }
        _ => return,
    };
    seen.effects.push(effect);
}
