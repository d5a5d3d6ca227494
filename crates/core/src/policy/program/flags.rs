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
//! | `*` | is read and run; what comes through a pipe cannot be seen |
//! | `>` | is written |
//! | `!` | is a command that is run |
//! | `@` | is an address that is reached |
//! | `&` | is the pattern, so that no argument is |
//! | `/` | is the folder that is written to, so that no argument is |
//! | `%` | there is none, but it runs something that cannot be seen |
//! | `#` | may be anything, and it runs something that cannot be seen |
//! | `^` | there is none, but it can discard work that was never committed |
//! | `$` | is a setting `name=value`, judged by its name |
//!
//! The name `@` stands for a word that names a file with further flags (`@options.txt`).
//!
//! Long names may be cut short as `getopt` has it: an abbreviation that could mean a flag with an effect counts as that flag.

use super::setting::setting;
use super::table::{FlagStyle, ProgramRow};
use super::{CommandEffect, host};
use crate::policy::HiddenReason;

/// The parsed flags and words of a command.
#[derive(Debug, Default)]
pub(super) struct ParsedFlags<'a> {
    /// What the flags do.
    pub(super) effects: Vec<CommandEffect>,
    /// Flags that the row does not list.
    pub(super) unknown: Vec<&'a str>,
    /// The flags of the row that were given.
    pub(super) names: Vec<&'static str>,
    /// Words that are no flags.
    pub(super) rest: Vec<&'a str>,
    /// Whether a flag gave the pattern.
    pub(super) has_pattern: bool,
    /// Whether a flag gave the folder that is written to.
    pub(super) has_target: bool,
}

/// One flag of a row.
#[derive(Debug, Clone, Copy)]
struct Flag {
    name: &'static str,
    sign: char,
}

/// Stands for a word that names a file with further flags.
const FLAGS_FILE: &str = "@";

/// Reads the words behind a program and its sub-command.
pub(super) fn read<'a>(row: &ProgramRow, words: &[&'a str]) -> ParsedFlags<'a> {
    let mut seen = ParsedFlags::default();
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        if word == "--" {
            seen.rest.extend(words.by_ref());
            break;
        }
        if let Some(path) = word.strip_prefix('@').filter(|_| flags(row).any(|flag| flag.name == FLAGS_FILE)) {
            seen.effects.push(CommandEffect::Read(path.to_owned()));
            seen.effects.push(CommandEffect::Code(HiddenReason::FlagFile(word.to_string())));
            continue;
        }
        let is_flag = word.len() > 1 && word.starts_with('-');
        // The own flags of a wrapper end where the wrapped command begins.
        if !is_flag || (row.is_wrapper() && !seen.rest.is_empty()) {
            seen.rest.push(word);
            if row.is_wrapper() && seen.rest.len() > row.wrapped() {
                seen.rest.extend(words.by_ref());
                break;
            }
            continue;
        }
        let is_long = word.starts_with("--") || row.style == FlagStyle::Dash;
        if is_long {
            long(row, word, &mut words, &mut seen);
        } else {
            short(row, word, &mut words, &mut seen);
        }
    }
    seen
}

fn flags(row: &ProgramRow) -> impl Iterator<Item = Flag> + use<> {
    row.flags.split_ascii_whitespace().map(|text| {
        let sign = text.chars().next_back().filter(|sign| "=?<*>!@&/%#^$".contains(*sign));
        let name = sign.and_then(|sign| text.strip_suffix(sign)).unwrap_or(text);
        Flag { name, sign: sign.unwrap_or(' ') }
    })
}

fn long<'a>(row: &ProgramRow, word: &'a str, words: &mut impl Iterator<Item = &'a str>, seen: &mut ParsedFlags<'a>) {
    let (name, attached) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    // Some programs accept `-exec` and `--exec` alike.
    let bare = name.trim_start_matches('-');
    let is =
        |flag: &Flag| flag.name == name || (row.style == FlagStyle::Dash && flag.name.trim_start_matches('-') == bare);
    let could = |flag: &Flag| row.style == FlagStyle::Gnu && name.len() > 2 && flag.name.starts_with(name);
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

fn short<'a>(row: &ProgramRow, word: &'a str, words: &mut impl Iterator<Item = &'a str>, seen: &mut ParsedFlags<'a>) {
    // A name of several letters behind one dash, with its value in the next word, behind a `=`, or right behind a name
    // that ends in a sign (`-javaagent:`).
    let is_named = |flag: &Flag| flag.name.len() > 2 && !flag.name.starts_with("--");
    let name = word.split('=').next().unwrap_or(word);
    let begins = |flag: &Flag| flag.name.ends_with([':', ',']) && word.starts_with(flag.name);
    if let Some(flag) = flags(row).find(|flag| is_named(flag) && (flag.name == name || begins(flag))) {
        let attached = word.get(flag.name.len()..).filter(|tail| !tail.is_empty());
        let attached = attached.map(|tail| tail.strip_prefix('=').unwrap_or(tail));
        let value = attached.or_else(|| if takes(flag.sign) { words.next() } else { None });
        return apply(flag, value, seen);
    }
    // Some programs accept `-5` as a number.
    let is_number = word.get(1..).is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
    if is_number && flags(row).any(|flag| flag.name == "-0") {
        return;
    }
    for (at, letter) in word.char_indices().skip(1) {
        let end = at + letter.len_utf8();
        let mut own = flags(row).filter(|flag| flag.name.len() == letter.len_utf8() + 1);
        let Some(flag) = own.find(|flag| flag.name.strip_prefix('-').is_some_and(|name| name.starts_with(letter)))
        else {
            // The letters after it may be flags or its value: their possible effects all count.
            if seen.unknown.last() != Some(&word) {
                seen.unknown.push(word);
            }
            continue;
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

/// Whether the flag takes the next word as its value.
fn takes(sign: char) -> bool {
    matches!(sign, '=' | '<' | '*' | '>' | '!' | '@' | '&' | '/' | '#' | '$')
}

/// If a shortened name could be either of two flags, the one that does more counts.
fn weight(sign: char) -> u8 {
    match sign {
        '!' | '%' | '#' | '^' | '$' => 4,
        '>' | '/' => 3,
        '@' => 2,
        '<' | '*' => 1,
        _ => 0,
    }
}

fn apply(flag: Flag, value: Option<&str>, seen: &mut ParsedFlags<'_>) {
    let text = value.unwrap_or_default();
    seen.names.push(flag.name);
    let effect = match flag.sign {
        '<' if text == "-" => return,
        '*' if text == "-" || text.starts_with("/dev/") => {
            CommandEffect::Code(HiddenReason::PipedCode(format!("{} {text}", flag.name)))
        }
        '<' | '*' => CommandEffect::Read(text.to_owned()),
        '>' if text == "-" => return,
        '>' => CommandEffect::Write(text.to_owned()),
        '/' => {
            seen.has_target = true;
            CommandEffect::Write(text.to_owned())
        }
        // Most programs pass the value to a shell.
        '!' if text.contains(['$', '`', ';', '|', '&', '<', '>', '(', '*', '?', '\'', '"', '\\', '\n']) => {
            CommandEffect::Code(HiddenReason::Script(flag.name.to_owned()))
        }
        '!' => CommandEffect::Run(text.split_whitespace().map(str::to_owned).collect()),
        '@' => CommandEffect::Reach(host(text)),
        '%' | '#' => CommandEffect::Code(HiddenReason::Unseen(flag.name.to_owned())),
        '^' => CommandEffect::Discard,
        '$' => match setting(text) {
            Some(effect) => effect,
            None => return,
        },
        '&' => {
            seen.has_pattern = true;
            return;
        }
        _ => return,
    };
    seen.effects.push(effect);
}
