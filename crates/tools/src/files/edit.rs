//! `edit_file`: one string of a file for another.
//!
//! The string must be there exactly, and only once unless all are meant; what does not fit is explained well enough
//! to be right the second time. Line endings stay as they are in the file. Never guesses, never creates a file.

use max_team_core::limits::WRITE_BYTES_MAX;
use max_team_core::policy::{Action, Repeatability};
use max_team_core::text::{has_hidden, stripped_with_places};
use schemars::JsonSchema;
use serde::Deserialize;

use super::atomic_write::ExistingFile;
use super::change::{self, ChangeOutcome};
use super::rel_path::RelPath;
use crate::text::{clip, many};
use crate::tool::{Output, ToolContext, ToolError};
use crate::typed::Typed;

/// Occurrences that are counted.
const PLACES_MAX: usize = 1_000;
/// Lines that may be where `old` was meant to be.
const GUESSES_MAX: usize = 20;
/// Lines whose numbers an error names.
const NAMED_MAX: usize = 10;
/// Bytes of the file's own text that an error repeats.
const QUOTE_BYTES_MAX: usize = 1_000;

/// Replace the text `old` by `new` in a file. `old` must occur exactly once, exactly as in the file and without line
/// numbers; `all` replaces every occurrence. Read the file first.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditFile {
    /// Relative to the project folder.
    path: String,
    old: String,
    new: String,
    /// Replace every occurrence.
    all: Option<bool>,
}

pub(crate) fn edit_file() -> Typed<EditFile> {
    Typed::new("edit_file", Repeatability::Idempotent, action, call)
}

fn action(cx: &ToolContext, args: &EditFile) -> Result<Action, ToolError> {
    let place = cx.place(&args.path)?;
    change::propose(cx, &place, |old| edited(&place, old, args))
}

fn call(cx: &ToolContext, args: EditFile, intent: &Action, resumed: bool) -> Result<Output, ToolError> {
    let place = cx.named(&args.path)?;
    let done = change::carry_out(cx, &place, intent, |old| edited(&place, old, &args))?;
    Ok(Output::text(match done {
        ChangeOutcome::Already if resumed => format!("edited `{place}`"),
        ChangeOutcome::Already => format!("`{place}` already reads as wanted; nothing was changed"),
        ChangeOutcome::Created { added } => format!("edited `{place}` (+{added} lines)"),
        ChangeOutcome::Replaced { added, removed } => format!("edited `{place}` (+{added} −{removed} lines)"),
    }))
}

fn edited(place: &RelPath, file: Option<&ExistingFile>, args: &EditFile) -> Result<Vec<u8>, ToolError> {
    let Some(file) = file else {
        return Err(ToolError::correctable(format!("`{place}` does not exist; create it with `write_file`")));
    };
    // Replacing the file would leave a copy under this name alone, which could then be read without being asked.
    if file.is_linked() {
        return Err(ToolError::correctable(format!(
            "`{place}` has other names (hard links), perhaps outside the project; replace it with `write_file`"
        )));
    }
    let text = std::str::from_utf8(&file.bytes)
        .map_err(|_| ToolError::correctable(format!("`{place}` is not UTF-8 text and cannot be edited")))?;
    replace(text, args).map(String::into_bytes).map_err(|words| ToolError::correctable(format!("`{place}`: {words}")))
}

/// The text with `old` replaced, or what to do better.
fn replace(text: &str, args: &EditFile) -> Result<String, String> {
    if args.old.is_empty() {
        return Err("`old` is empty; give the text to replace, or write the whole file with `write_file`".to_owned());
    }
    if args.old == args.new {
        return Err("`old` and `new` are the same".to_owned());
    }
    let fitted = [fit(text, &args.old, &args.new), (args.old.clone(), args.new.clone())];
    let Some((old, new)) = fitted.iter().find(|(old, _)| text.contains(old.as_str())) else {
        return match has_hidden(text) {
            true => replace_seen(text, &fitted, args),
            false => Err(not_found(text, &args.old)),
        };
    };
    if !args.all.unwrap_or(false) {
        let found = places(text, old);
        if found.len() > 1 {
            let at_least = if found.len() == PLACES_MAX { "at least " } else { "" };
            return Err(format!(
                "`old` is there {at_least}{}, at lines {}; take in more lines around the one you mean, or set `all`",
                many(found.len(), "time"),
                join(&found)
            ));
        }
        return Ok(text.replacen(old, new, 1));
    }
    let count = text.matches(old.as_str()).count();
    let length = count.saturating_mul(new.len()).saturating_add(text.len());
    if new.len() > old.len() && (length - count.saturating_mul(old.len())) as u64 > WRITE_BYTES_MAX {
        return Err(format!("replacing {} would make the file too large", many(count, "occurrence")));
    }
    Ok(text.replace(old, new))
}

/// Searches the text as a model sees it: invisible characters inside the replaced part are removed with it, others
/// stay.
fn replace_seen(text: &str, fitted: &[(String, String)], args: &EditFile) -> Result<String, String> {
    let (plain, places) = stripped_with_places(text);
    let Some((old, new)) = fitted.iter().find(|(old, _)| plain.contains(old.as_str())) else {
        return Err(not_found(&plain, &args.old));
    };
    let found: Vec<usize> = plain.match_indices(old.as_str()).map(|(at, _)| at).collect();
    if found.len() > 1 && !args.all.unwrap_or(false) {
        let lines = join(&self::places(&plain, old));
        return Err(format!("`old` is there more than once, at lines {lines}; take in more lines, or set `all`"));
    }
    let (without, added) = (found.len().saturating_mul(old.len()), found.len().saturating_mul(new.len()));
    if new.len() > old.len() && plain.len().saturating_sub(without).saturating_add(added) as u64 > WRITE_BYTES_MAX {
        return Err(format!("replacing {} would make the file too large", many(found.len(), "occurrence")));
    }
    let (mut edited, mut from) = (String::with_capacity(text.len()), 0);
    for at in found {
        let last = places.get((at + old.len()).saturating_sub(1)).copied();
        let range = places.get(at).copied().zip(last.map(|last| last + 1));
        let (start, end) = range.ok_or("the text cannot be taken apart")?;
        edited.push_str(text.get(from..start).unwrap_or_default());
        edited.push_str(new);
        from = end;
    }
    edited.push_str(text.get(from..).unwrap_or_default());
    if edited.len() as u64 > WRITE_BYTES_MAX {
        return Err("replacing all of them would make the file too large".to_owned());
    }
    Ok(edited)
}

/// Both strings with the line endings of the file: models always write LF.
fn fit(text: &str, old: &str, new: &str) -> (String, String) {
    let is_crlf = is_crlf(text);
    let ending = |words: &str| {
        let plain = words.replace("\r\n", "\n");
        if is_crlf { plain.replace('\n', "\r\n") } else { plain }
    };
    (ending(old), ending(new))
}

/// Whether most lines of a text end in CR LF.
pub(super) fn is_crlf(text: &str) -> bool {
    let with_cr = text.matches("\r\n").count();
    with_cr > text.matches('\n').count() - with_cr
}

/// The lines at which `old` starts, also where two of them overlap.
fn places(text: &str, old: &str) -> Vec<usize> {
    let (mut lines, mut line, mut from) = (Vec::new(), 1, 0);
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(old)).filter(|_| lines.len() < PLACES_MAX) {
        let start = from + at;
        line += text.get(from..start).map_or(0, |passed| passed.matches('\n').count());
        lines.push(line);
        let step = text.get(start..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
        line += usize::from(text.as_bytes().get(start) == Some(&b'\n'));
        from = start + step;
    }
    lines
}

fn join(lines: &[usize]) -> String {
    let mut named: Vec<String> = lines.iter().take(NAMED_MAX).map(usize::to_string).collect();
    if lines.len() > NAMED_MAX {
        named.push("…".to_owned());
    }
    named.join(", ")
}

/// Why `old` was not found, as far as it can be told without guessing.
fn not_found(text: &str, old: &str) -> String {
    let wanted: Vec<&str> = old.trim_matches('\n').lines().collect();
    let lines: Vec<&str> = text.lines().collect();
    if !wanted.is_empty() && wanted.iter().all(|line| is_numbered(line)) {
        return "`old` is not in the file; leave out the line numbers that `read_file` shows".to_owned();
    }
    let is_like = |one: &str, other: &str| one.split_whitespace().eq(other.split_whitespace());
    let Some(first) = wanted.first().filter(|line| !line.trim().is_empty()) else {
        return "`old` is not in the file; read it again".to_owned();
    };
    let mut best: Option<(usize, usize)> = None;
    for (at, _) in lines.iter().enumerate().filter(|(_, line)| is_like(line, first)).take(GUESSES_MAX) {
        let fitting = lines.iter().skip(at).zip(&wanted).take_while(|(line, wanted)| is_like(line, wanted)).count();
        if best.is_none_or(|(_, most)| fitting > most) {
            best = Some((at, fitting));
        }
    }
    let Some((at, fitting)) = best else {
        return "`old` is not in the file, nor is its first line; read the file again".to_owned();
    };
    let (from, to) = (at + 1, at + wanted.len());
    if fitting == wanted.len() {
        let exact = lines.iter().skip(at).take(fitting).copied().collect::<Vec<_>>().join("\n");
        return format!(
            "`old` is not in the file as written; lines {from}-{to} differ from it only in white space. They read:\n{}",
            clip(&exact, QUOTE_BYTES_MAX)
        );
    }
    let odd = at + fitting;
    let there = lines
        .get(odd)
        .map_or_else(|| "the file ends there".to_owned(), |line| format!("it reads\n{}", clip(line, QUOTE_BYTES_MAX)));
    format!("`old` is not in the file as written; it fits from line {from} on, but not at line {}: {there}", odd + 1)
}

/// Whether a line looks as `read_file` shows it.
fn is_numbered(line: &str) -> bool {
    line.trim_start()
        .split_once('\t')
        .is_some_and(|(number, _)| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(text: &str, old: &str, new: &str, all: bool) -> Result<String, String> {
        replace(text, &EditFile { path: String::new(), old: old.into(), new: new.into(), all: Some(all) })
    }

    #[test]
    fn text_with_invisible_characters_is_edited_as_it_is_seen() {
        let file = "a\u{202e}bc\nif x\u{200b} {\n❤\u{fe0f} y\u{feff}\n";
        assert_eq!(edit(file, "if x {", "if z {", false).unwrap(), "a\u{202e}bc\nif z {\n❤\u{fe0f} y\u{feff}\n");
        assert_eq!(edit(file, "abc", "d", false).unwrap(), "d\nif x\u{200b} {\n❤\u{fe0f} y\u{feff}\n");
        assert_eq!(edit(file, "❤\u{fe0f} y", "z", false).unwrap(), "a\u{202e}bc\nif x\u{200b} {\nz\u{feff}\n");
        assert_eq!(
            edit("x\u{200b}y xy", "xy", "z", true).unwrap(),
            "x\u{200b}y z",
            "what is there as written comes first"
        );
        assert_eq!(edit("x\u{200b}y x\u{200b}y", "xy", "z", true).unwrap(), "z z");
        assert!(edit("x\u{200b}y x\u{200b}y", "xy", "z", false).unwrap_err().contains("more than once"));
        assert!(edit("x\u{200b}y", "nowhere", "z", false).is_err());
    }

    #[test]
    fn all_means_every_occurrence_also_between_invisible_characters() {
        let times = PLACES_MAX + 200;
        assert_eq!(edit(&"x\u{200b}y ".repeat(times), "xy", "z", true).unwrap(), "z ".repeat(times));
        let err = edit(&"x\u{200b}y".repeat(100_000), "xy", &"z".repeat(1_000), true).unwrap_err();
        assert!(err.contains("too large"), "{err}");
    }

    #[test]
    fn exact_text_is_replaced() {
        let table = [
            ("a b c", "b", "x", false, "a x c"),
            ("a a a", "a", "b", true, "b b b"),
            ("a\nb\n", "a\n", "", false, "b\n"),
            // Line endings stay the file's own.
            ("a\r\nb\r\nc\r\n", "a\nb", "x\ny", false, "x\r\ny\r\nc\r\n"),
            ("a\r\nb\r\n", "b", "x\ny", false, "a\r\nx\r\ny\r\n"),
            ("a\r\nb\r\n", "a\r\nb", "x\r\ny", false, "x\r\ny\r\n"),
            ("a\nb\n", "a\r\nb", "x\r\ny", false, "x\ny\n"),
            // Mixed endings are met as they are.
            ("a\r\nb\nc\nd\n", "a\r\nb", "x", false, "x\nc\nd\n"),
        ];
        for (text, old, new, all, want) in table {
            assert_eq!(edit(text, old, new, all).as_deref(), Ok(want), "{text:?} {old:?}");
        }
    }

    #[test]
    fn misfits_are_explained() {
        let table = [
            ("a", "", "b", "`write_file`"),
            ("a", "a", "a", "the same"),
            ("a\nb\na\n", "a", "x", "there 2 times, at lines 1, 3;"),
            ("aaa", "aa", "x", "there 2 times, at lines 1, 1;"),
            ("\n\n\n", "\n", "x", "there 3 times, at lines 1, 2, 3;"),
            (
                "if x {\n\ty();\n}\n",
                "if x {\n    y();\n}",
                "",
                "lines 1-3 differ from it only in white space. They read:\nif x {\n\ty();",
            ),
            ("one\ntwo\nthree\n", "one\n2\nthree", "", "fits from line 1 on, but not at line 2: it reads\ntwo"),
            ("one\n", "one\ntwo", "", "the file ends there"),
            ("one\n", "1\tone", "", "leave out the line numbers"),
            ("one\n", "uno", "", "nor is its first line"),
            ("one\n", "\n\n\n", "", "read it again"),
        ];
        for (text, old, new, want) in table {
            let err = edit(text, old, new, false).unwrap_err();
            assert!(err.contains(want), "{text:?} {old:?}: {err}");
        }
        let many_places = edit(&"x\n".repeat(50), "x", "y", false).unwrap_err();
        assert!(many_places.contains("9, 10, …;"), "{many_places}");
    }

    #[test]
    fn a_flood_of_replacements_is_refused() {
        let err = edit(&"x".repeat(100_000), "x", &"y".repeat(1_000), true).unwrap_err();
        assert!(err.contains("too large"), "{err}");
    }
}
