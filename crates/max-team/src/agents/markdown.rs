//! A Markdown file as front matter and text.
//!
//! Files of this kind come from many hands. What YAML does not take as it stands is put right where only one thing
//! can be meant: tabs that indent, a colon in the middle of a sentence, a sentence that goes on in the next line. Lines
//! keep their numbers, so whatever is said about a file names the right one. It knows no meaning of any key.

use super::plain;
use crate::config::yaml::{self, Fault, Node};

/// What stands in front of the text, and the text.
#[cfg_attr(test, derive(Debug))]
pub(super) struct Parts {
    /// None: the file is all text.
    pub(super) front: Option<Node>,
    /// With plain line ends, without blank lines around it.
    pub(super) text: String,
}

/// Takes a file apart. `is_key` tells the keys that somebody may write at the beginning of a line.
pub(super) fn split(file: &str, is_key: impl Fn(&str) -> bool) -> Result<Parts, Fault> {
    let file = file.strip_prefix('\u{feff}').unwrap_or(file);
    let lines: Vec<&str> = file.lines().collect();
    let begin = lines.iter().take_while(|line| is_before(line)).count();
    let is_open = lines.get(begin).is_some_and(|line| line.trim_end() == "---");
    let inside = lines.get(begin + 1..).unwrap_or_default();
    let end = inside.iter().position(|line| matches!(line.trim_end(), "---" | "..."));
    let Some(end) = end.filter(|_| is_open) else {
        if is_open && inside.first().is_some_and(|line| key(line).is_some_and(|(name, _)| is_key(name))) {
            let spot = yaml::Spot { line: begin as u64 + 1, col: 1 };
            return Err(Fault { spot, message: "the front matter has no end; close it with a line `---`".to_owned() });
        }
        return Ok(Parts { front: None, text: body(&lines) });
    };
    let front = inside.get(..end).unwrap_or_default();
    let text = body(inside.get(end + 1..).unwrap_or_default());
    if let Some(node) = plain::front(front, begin as u64 + 2) {
        return Ok(Parts { front: Some(node), text });
    }
    let above = "\n".repeat(begin + 1);
    let written = format!("{above}{}\n", front.join("\n"));
    let node = match yaml::parse(&written) {
        Ok(node) => node,
        // The first fault is about what the author wrote.
        Err(fault) => yaml::parse(&format!("{above}{}", mended(front, is_key))).map_err(|_| fault)?,
    };
    Ok(Parts { front: Some(node), text })
}

/// Blank lines, and a comment that says what the file is, may come first.
fn is_before(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || (line.starts_with("<!--") && line.ends_with("-->"))
}

fn body(lines: &[&str]) -> String {
    lines.join("\n").trim().to_owned()
}

/// The name and the value of a line that begins an entry.
fn key(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    let name = name.trim_end();
    let is_word = !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || "_-.".contains(letter));
    (is_word && (value.is_empty() || value.starts_with([' ', '\t']))).then(|| (name, value.trim()))
}

/// The same for a key that is written without a blank behind it.
fn tight(line: &str, is_key: impl Fn(&str) -> bool) -> Option<(&str, &str)> {
    line.split_once(':').filter(|(name, value)| is_key(name) && !value.starts_with("//"))
}

/// The same entries as YAML takes them, in as many lines.
fn mended(lines: &[&str], is_key: impl Fn(&str) -> bool) -> String {
    let mut out: Vec<String> = Vec::with_capacity(lines.len());
    // The entry whose sentence may go on, with its line.
    let mut open: Option<(usize, String, String)> = None;
    for (at, line) in lines.iter().enumerate() {
        let is_comment = line.trim_start().starts_with('#');
        let entry = if line.starts_with([' ', '\t']) { None } else { key(line).or_else(|| tight(line, &is_key)) };
        match (entry, &mut open) {
            (Some((name, value)), open)
                if is_key(name) || !open.as_ref().is_some_and(|(_, name, _)| is_prose(name)) =>
            {
                close(&mut out, open.take());
                *open = is_sentence(value).then(|| (at, name.to_owned(), value.to_owned()));
                out.push(indented(line));
            }
            (_, Some((_, _, value))) if !is_comment => {
                // It has become part of the line above.
                if !line.trim().is_empty() {
                    value.push(' ');
                    value.push_str(line.trim());
                }
                out.push(String::new());
            }
            _ => out.push(indented(line)),
        }
    }
    close(&mut out, open);
    out.push(String::new());
    out.join("\n")
}

/// Whether a key is followed by sentences, in which any word may have a colon.
fn is_prose(key: &str) -> bool {
    key.eq_ignore_ascii_case("description") || key.to_ascii_lowercase().ends_with("prompt")
}

/// Whether a value stands in its own line, so that what follows can only go on with it.
fn is_sentence(value: &str) -> bool {
    !value.is_empty() && !value.starts_with(['|', '>', '#', '&'])
}

/// Writes an entry whose sentence has ended; quoted, if it is nothing else that YAML knows.
fn close(out: &mut [String], open: Option<(usize, String, String)>) {
    let Some((at, name, value)) = open else { return };
    let Some(line) = out.get_mut(at) else { return };
    let written = format!("{name}: {value}");
    *line = if yaml::parse(&written).is_ok() {
        written
    } else {
        let quotes = |mark: char| value.len() > 1 && value.starts_with(mark) && value.ends_with(mark);
        let bare = if quotes('"') || quotes('\'') { value.get(1..value.len() - 1).unwrap_or(&value) } else { &value };
        format!("{name}: {}", serde_json::Value::from(bare))
    };
}

fn indented(line: &str) -> String {
    let rest = line.trim_start_matches([' ', '\t']);
    let indent = line.get(..line.len() - rest.len()).unwrap_or_default();
    format!("{}{rest}", indent.replace('\t', "  "))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn front(file: &str) -> Value {
        let known = |name: &str| ["name", "description", "tools", "model", "cache"].contains(&name);
        split(file, known).unwrap().front.map_or(Value::Null, |node| node.json())
    }

    #[test]
    fn what_yaml_does_not_take_is_put_right() {
        let table = [
            ("---\nname: a\n---\nx", json!({"name": "a"})),
            ("\u{feff}---\r\nname: a\r\n---\r\nx", json!({"name": "a"})),
            ("<!-- a.md -->\n\n---\nname: a\n---\nx", json!({"name": "a"})),
            ("---\nname: a\n...\nx", json!({"name": "a"})),
            ("---\n# why\nname: a # who\n---\n", json!({"name": "a"})),
            ("---\n---\nx", Value::Null),
            ("# Title\n---\nname: a\n---\n", Value::Null),
            (
                "---\ndescription: Use when: a file: changes\nmodel: x\n---\n",
                json!({"description": "Use when: a file: changes", "model": "x"}),
            ),
            (
                "---\ndescription: One: two\n  three: four\n\nuser: \"hi\"\n<example>\nmodel: x\n---\n",
                json!({"description": "One: two three: four user: \"hi\" <example>", "model": "x"}),
            ),
            ("---\nname: a\ntools:\n\t- b\n\t- c\n---\n", json!({"name": "a", "tools": ["b", "c"]})),
            ("---\nname: a\ncache:\n\tttl: 1\n---\n", json!({"name": "a", "cache": {"ttl": 1}})),
            ("---\nname: \"a\" b\n---\n", json!({"name": "\"a\" b"})),
            ("---\ndescription: \"say \"hi\" now\"\n---\n", json!({"description": "say \"hi\" now"})),
            ("---\ntools: *\n---\n", json!({"tools": "*"})),
            ("---\nname: a: b\nother: x\n---\n", json!({"name": "a: b", "other": "x"})),
            ("---\nname: @a\n---\n", json!({"name": "@a"})),
            ("---\nname:a\nmodel: !x y\n---\n", json!({"name": "a", "model": "!x y"})),
            ("---\ndescription: >\n  a: b\n  c\nname: x: y\n---\n", json!({"description": "a: b c\n", "name": "x: y"})),
        ];
        for (file, want) in table {
            assert_eq!(front(file), want, "{file}");
        }
    }

    #[test]
    fn places_are_those_of_the_file() {
        let fault = |file: &str| split(file, |name| name == "name").unwrap_err();
        assert_eq!(fault("\n---\nname: a\n").spot.line, 2);
        assert_eq!(fault("---\nname: a\nname: b\n---\n").spot.line, 3);
        let parts = split("<!-- x -->\n---\nname: a: b\nx: 1\n---\n", |name| name == "name" || name == "x").unwrap();
        let Some(yaml::Node { value: yaml::Value::Map(entries), .. }) = parts.front else { panic!() };
        assert_eq!(entries.iter().map(|(name, _)| name.spot.line).collect::<Vec<_>>(), [3, 4]);
    }

    #[test]
    fn the_text_has_plain_line_ends() {
        let text = |file: &str| split(file, |_| true).unwrap().text;
        assert_eq!(text("---\r\nname: a\r\n---\r\n\r\none\r\ntwo\r\n"), "one\ntwo");
        assert_eq!(text("one\n---\ntwo"), "one\n---\ntwo");
        assert_eq!(text("---\nnot a key\n"), "---\nnot a key");
    }
}
