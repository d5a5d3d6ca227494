//! Markdown files that begin with YAML: definitions of agents and skills, also those written for other programs.
//!
//! Reading is lenient where the meaning is plain; `mend` knows how. Most files have a few lines of front matter that
//! need no YAML parser; `plain` reads those, because there may be hundreds at every start. Positions count from the
//! beginning of the file. Nothing here knows the meaning of a key, and nothing reads a disk.

mod mend;
mod plain;

use crate::yaml::{self, Fault, FaultKind, Name, Node, Spot, Value};

/// Bytes of front matter; a longer block is taken for text.
pub const HEAD_BYTES_MAX: usize = 64 << 10;
/// Values in the front matter.
const NODES_MAX: usize = 4_000;

/// A parsed file.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedFile {
    /// The front matter; `None` if the file has none.
    pub front: Option<Node>,
    /// The text, with plain line ends and without blank lines around it.
    pub text: String,
    /// Whether the front matter had to be repaired.
    pub is_mended: bool,
}

impl ParsedFile {
    /// The keys of the front matter, in order.
    pub fn entries(&self) -> &[(Name, Node)] {
        match self.front.as_ref().map(|front| &front.value) {
            Some(Value::Map(entries)) => entries,
            _ => &[],
        }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|(name, _)| name.text == key).map(|(_, node)| node)
    }
}

/// Where the parts of a file are.
#[derive(Debug, Clone, Copy)]
pub struct FileParts<'a> {
    /// Number of lines up to and including the one that opens the front matter.
    above: usize,
    /// The front matter, if it is closed.
    pub head: Option<&'a str>,
    /// The text after it; the whole file if there is none.
    pub body: &'a str,
    /// The text after an opening line that has no closing one.
    unclosed: Option<&'a str>,
}

/// Finds the beginning and the end of the front matter.
pub fn cut(file: &str) -> FileParts<'_> {
    let file = file.strip_prefix('\u{feff}').unwrap_or(file);
    let none = FileParts { above: 0, head: None, body: file, unclosed: None };
    let (mut at, mut above, mut begin) = (0, 0, None);
    for line in file.split_inclusive('\n') {
        let end = at + line.len();
        match begin {
            None if is_before(line) => above += 1,
            None if line.trim_end() == "---" => (above, begin) = (above + 1, Some(end)),
            None => return none,
            Some(begin) if matches!(line.trim_end(), "---" | "...") => {
                return FileParts {
                    above,
                    head: file.get(begin..at),
                    body: file.get(end..).unwrap_or_default(),
                    unclosed: None,
                };
            }
            Some(_) => {}
        }
        at = end;
    }
    FileParts { above, unclosed: begin.and_then(|begin| file.get(begin..)), ..none }
}

/// Blank lines, and a comment that says what the file is, may come first.
fn is_before(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || (line.starts_with("<!--") && line.ends_with("-->"))
}

/// Parses a file. `is_key` says which names are keys at the beginning of a line. Front matter that is no YAML even
/// after `mend` is a fault, with its position in the file.
pub fn read(file: &str, is_key: impl Fn(&str) -> bool) -> Result<ParsedFile, Fault> {
    let cut = cut(file);
    let fault = |line: usize, kind: FaultKind| Fault { spot: Spot { line: line as u64, col: 1 }, kind };
    let Some(head) = cut.head else {
        let first = cut.unclosed.and_then(|rest| rest.lines().next());
        if first.is_some_and(|line| mend::key(line).is_some_and(|(name, _)| is_key(name))) {
            return Err(fault(cut.above, FaultKind::HeadUnclosed));
        }
        return Ok(ParsedFile { front: None, text: text(cut.body), is_mended: false });
    };
    if head.len() > HEAD_BYTES_MAX {
        return Err(fault(cut.above + 1, FaultKind::HeadTooLong(HEAD_BYTES_MAX)));
    }
    let lines: Vec<&str> = head.lines().collect();
    let page = |front, is_mended| ParsedFile { front: Some(front), text: text(cut.body), is_mended };
    if let Some(node) = plain::front(&lines, cut.above as u64 + 1) {
        return Ok(page(node, false));
    }
    let above = "\n".repeat(cut.above);
    match yaml::parse_up_to(&format!("{above}{}\n", lines.join("\n")), NODES_MAX) {
        Ok(node) => Ok(page(node, false)),
        // The first error is the one about the text as the author wrote it.
        Err(fault) => {
            let mended = yaml::parse_up_to(&format!("{above}{}", mend::mended(&lines, is_key)), NODES_MAX);
            mended.map(|node| page(node, true)).map_err(|_| fault)
        }
    }
}

/// The line of a file that its text begins with, from 1.
pub fn first_line(file: &str) -> usize {
    let body = cut(file).body.trim_start();
    let above = file.len().saturating_sub(body.len());
    1 + file.get(..above).map_or(0, |above| above.matches('\n').count())
}

/// With plain line ends, without blank lines around it.
pub fn text(body: &str) -> String {
    body.lines().collect::<Vec<_>>().join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value as Json, json};

    use super::*;

    fn front(file: &str) -> Json {
        let known = |name: &str| ["name", "description", "tools", "model", "cache"].contains(&name);
        read(file, known).unwrap().front.map_or(Json::Null, |node| node.json())
    }

    #[test]
    fn invalid_yaml_is_put_right() {
        let table = [
            ("---\nname: a\n---\nx", json!({"name": "a"})),
            ("\u{feff}---\r\nname: a\r\n---\r\nx", json!({"name": "a"})),
            ("<!-- a.md -->\n\n---\nname: a\n---\nx", json!({"name": "a"})),
            ("---\nname: a\n...\nx", json!({"name": "a"})),
            ("---\n# why\nname: a # who\n---\n", json!({"name": "a"})),
            ("---\n---\nx", Json::Null),
            ("# Title\n---\nname: a\n---\n", Json::Null),
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
        let fault = |file: &str| read(file, |name| name == "name").unwrap_err();
        assert_eq!(fault("\n---\nname: a\n").spot.line, 2);
        assert_eq!(fault("---\nname: a\nname: b\n---\n").spot.line, 3);
        let page = read("<!-- x -->\n---\nname: a: b\nx: 1\n---\n", |name| name == "name" || name == "x").unwrap();
        assert_eq!(page.entries().iter().map(|(name, _)| name.spot.line).collect::<Vec<_>>(), [3, 4]);
    }

    #[test]
    fn the_text_has_plain_line_ends() {
        let text = |file: &str| read(file, |_| true).unwrap().text;
        assert_eq!(text("---\r\nname: a\r\n---\r\n\r\none\r\ntwo\r\n"), "one\ntwo");
        assert_eq!(text("one\n---\ntwo"), "one\n---\ntwo");
        assert_eq!(text("---\nnot a key\n"), "---\nnot a key");
    }

    #[test]
    fn styles_of_the_world() {
        let cases: [(&str, &str, &str); 15] = [
            ("---\nname: a\ndescription: b c\n---\nbody\n", "b c", "body"),
            ("\u{feff}---\nname: a\ndescription: b\n---\nbody", "b", "body"),
            ("---\r\nname: a\r\ndescription: b\r\n---\r\nbody\r\n", "b", "body"),
            ("--- \nname: a\ndescription: b\n---  \n\nbody", "b", "body"),
            ("---\nname: a\ndescription: Use when: asked\n---\nx", "Use when: asked", "x"),
            ("---\nname: a\ndescription: It's one: two\n---\nx", "It's one: two", "x"),
            ("---\r\nname: a\r\ndescription: one: two\r\n---\r\nx", "one: two", "x"),
            ("---\nname:\ta\ndescription:\tb\n---\nx", "b", "x"),
            ("---\nname: a\nmetadata:\n\tk: v\ndescription: b\n---\nx", "b", "x"),
            ("---\nname: a\ndescription: @everyone\n---\nx", "@everyone", "x"),
            ("---\nname: a\ndescription: [x] y\n---\nx", "[x] y", "x"),
            ("---\nname: a\ndescription: |\n  one\n  two\n---\nx", "one\ntwo", "x"),
            ("---\nname: a\ndescription: >-\n  one\n  two\n# a comment\n---\nx", "one two", "x"),
            ("---\nname: 天气\ndescription: \"查询: 天气\"\n---\n正文", "查询: 天气", "正文"),
            ("---\nname: a\ndescription: `run` it\n---\nx", "`run` it", "x"),
        ];
        for (file, description, body) in cases {
            let page = read(file, |_| true).unwrap_or_else(|fault| panic!("{file:?}: {fault:?}"));
            let described = page.get("description").and_then(Node::text).unwrap_or_default().trim_end();
            assert_eq!((described, page.text.as_str()), (description, body), "{file:?}");
        }
    }

    #[test]
    fn no_front_is_all_text() {
        for file in ["", "# title", "---\nno key\n", "text\n---\na: 1\n---", "----\na: 1\n----"] {
            let page = read(file, |_| true).unwrap();
            assert_eq!((page.front, page.text.as_str()), (None, file.trim()), "{file:?}");
        }
        let empty = read("---\n---\nbody", |_| true).unwrap();
        assert!(empty.front.is_some() && empty.entries().is_empty() && empty.text == "body");
        let long = format!("---\na: {}\n---\n", "x".repeat(HEAD_BYTES_MAX));
        assert!(read(&long, |_| true).unwrap_err().kind.to_string().contains("more than"));
    }

    proptest! {
        #[test]
        fn nothing_panics(file in any::<String>()) {
            drop(read(&file, |_| true));
        }

        #[test]
        fn fronts_of_any_letters_are_read_or_refused(head in "[-a-z:\\[\\]{}'\"#&*!|>%@` \t\r\n0-9]{0,200}") {
            let file = format!("---\n{head}\n---\nbody");
            if let Ok(page) = read(&file, |_| true) {
                prop_assert!(page.text.ends_with("body"));
            }
        }
    }
}
