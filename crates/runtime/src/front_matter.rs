//! Markdown files that begin with YAML: definitions of agents, skills and commands, whoever wrote them.
//!
//! Such files come from many programs and many hands, so reading is lenient where the meaning is plain: a byte order
//! mark, line ends of other systems, tabs for indentation, a value with a colon that nobody quoted. What was put right
//! is said in a note. Places count from the beginning of the file. Nothing here knows a key, and nothing reads a disk.

use crate::yaml::{self, Fault, Name, Node, Spot, Value};

/// Bytes in front of the body; whatever is longer is no front matter.
pub const HEAD_BYTES_MAX: usize = 64 << 10;
/// Values in it.
const NODES_MAX: usize = 4_000;
/// What stands above and below it.
const FENCE: &str = "---";

/// A file, taken apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// The keys in front, in order; none if the file has none.
    pub head: Vec<(Name, Node)>,
    /// What follows.
    pub body: String,
    /// Whether there was a head at all.
    pub has_head: bool,
    /// What was put right to read it.
    pub notes: Vec<String>,
}

impl Page {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.head.iter().find(|(name, _)| name.text == key).map(|(_, node)| node)
    }
}

/// Takes a file apart. A head that is no YAML even when it is read kindly is a fault, with its place in the file.
pub fn read(bytes: &[u8]) -> Result<Page, Fault> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = split(&text);
    let Some(head) = head else {
        return Ok(Page { head: Vec::new(), body: body.to_owned(), has_head: false, notes: Vec::new() });
    };
    if head.len() > HEAD_BYTES_MAX {
        let message = format!("there are more than {HEAD_BYTES_MAX} bytes between the `{FENCE}` lines");
        return Err(Fault { spot: Spot { line: 2, col: 1 }, message });
    }
    let (node, notes) = parse(head)?;
    let mut entries = match node.value {
        Value::Map(entries) => entries,
        Value::Scalar(scalar) if scalar.json.is_null() => Vec::new(),
        _ => {
            let message = format!("what stands between the `{FENCE}` lines must be `key: value` lines");
            return Err(Fault { spot: below(node.spot), message });
        }
    };
    for (name, node) in &mut entries {
        name.spot = below(name.spot);
        shift(node);
    }
    Ok(Page { head: entries, body: body.to_owned(), has_head: true, notes })
}

/// The head and the body of a text; no head unless the first line is a fence and another one follows.
pub fn split(text: &str) -> (Option<&str>, &str) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| is_fence(line)) else { return (None, text) };
    let mut at = first.len();
    for line in lines {
        if is_fence(line) {
            return (text.get(first.len()..at), text.get(at + line.len()..).unwrap_or_default());
        }
        at += line.len();
    }
    (None, text)
}

fn is_fence(line: &str) -> bool {
    line.trim_end() == FENCE
}

/// Reads as it stands, then without tabs, then with quotes around values that need them.
fn parse(head: &str) -> Result<(Node, Vec<String>), Fault> {
    let first = match yaml::parse_up_to(head, NODES_MAX) {
        Ok(node) => return Ok((node, Vec::new())),
        Err(fault) => Fault { spot: below(fault.spot), ..fault },
    };
    let mut notes = Vec::new();
    let spaced = spaced(head);
    if spaced != head {
        notes.push("tabs were read as spaces".to_owned());
        if let Ok(node) = yaml::parse_up_to(&spaced, NODES_MAX) {
            return Ok((node, notes));
        }
    }
    let (quoted, keys) = quoted(&spaced);
    if keys.is_empty() {
        return Err(first);
    }
    notes.extend(keys.iter().map(|key| format!("the value of `{key}` was read as if it were quoted")));
    // The first fault is about what the author wrote.
    yaml::parse_up_to(&quoted, NODES_MAX).map(|node| (node, notes)).map_err(|_| first)
}

/// Tabs that YAML does not take: in front of a line, and around the colon.
fn spaced(head: &str) -> String {
    head.split_inclusive('\n').map(|line| line.replace('\t', "  ")).collect()
}

/// The text with quotes around the values of its outermost keys that are plain words with a colon, a hash or a first
/// letter that means something to YAML; and whose they are.
fn quoted(head: &str) -> (String, Vec<String>) {
    let mut keys = Vec::new();
    let mut text = String::with_capacity(head.len() + 64);
    for line in head.split_inclusive('\n') {
        let bare = line.trim_end();
        match bare.split_once(':').filter(|(key, value)| is_key(key) && needs_quotes(value)) {
            Some((key, value)) => {
                keys.push(key.to_owned());
                text.push_str(&format!("{key}: '{}'\n", value.trim().replace('\'', "''")));
            }
            None => text.push_str(line),
        }
    }
    (text, keys)
}

fn is_key(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.'))
}

fn needs_quotes(value: &str) -> bool {
    let word = value.trim();
    let is_marked = word.starts_with(['"', '\'', '|', '>', '{', '&', '!']) || is_list(word);
    let has_colon = word.contains(": ") || word.ends_with(':');
    !word.is_empty() && !is_marked && (has_colon || word.starts_with(['*', '@', '`', '%', '[', ',']))
}

/// `[a, b]`, and not `[x] y`.
fn is_list(word: &str) -> bool {
    word.starts_with('[') && word.ends_with(']') && word.matches('[').count() == 1
}

/// A place in the head as one of the file: the fence is the line above.
fn below(spot: Spot) -> Spot {
    Spot { line: spot.line + 1, ..spot }
}

fn shift(node: &mut Node) {
    node.spot = below(node.spot);
    match &mut node.value {
        Value::Scalar(_) => {}
        Value::List(items) => items.iter_mut().for_each(shift),
        Value::Map(entries) => {
            for (name, node) in entries {
                name.spot = below(name.spot);
                shift(node);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(page: &Page, key: &str) -> String {
        page.get(key).and_then(Node::text).unwrap_or_default().to_owned()
    }

    #[test]
    fn styles_of_the_world() {
        let cases: [(&str, &str, &str); 15] = [
            ("---\nname: a\ndescription: b c\n---\nbody\n", "b c", "body\n"),
            ("\u{feff}---\nname: a\ndescription: b\n---\nbody", "b", "body"),
            ("---\r\nname: a\r\ndescription: b\r\n---\r\nbody\r\n", "b", "body\r\n"),
            ("--- \nname: a\ndescription: b\n---  \n\nbody", "b", "\nbody"),
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
            let page = read(file.as_bytes()).unwrap_or_else(|fault| panic!("{file:?}: {fault:?}"));
            assert_eq!((text(&page, "description").as_str(), page.body.as_str()), (description, body), "{file:?}");
            assert!(page.has_head);
        }
    }

    #[test]
    fn no_head_is_all_body() {
        for file in ["", "# title\n", "---\nname: a\n", "text\n---\na: 1\n---\n", "----\na: 1\n----\n"] {
            let page = read(file.as_bytes()).unwrap();
            assert_eq!((page.has_head, page.body.as_str(), page.head.len()), (false, file, 0), "{file:?}");
        }
        let empty = read(b"---\n---\nbody").unwrap();
        assert!(empty.has_head && empty.head.is_empty() && empty.body == "body");
    }

    #[test]
    fn places_and_faults_count_from_the_beginning_of_the_file() {
        let page = read(b"---\nname: a\nx: [1,\n  2]\n---\n").unwrap();
        assert_eq!(page.head[1].0.spot, Spot { line: 3, col: 1 });
        let Value::List(items) = &page.head[1].1.value else { panic!() };
        assert_eq!(items[1].spot, Spot { line: 4, col: 3 });
        let cases = [("---\na: 1\na: 2\n---\n", 3, "written twice"), ("---\n- a\n---\n", 2, "`key: value` lines")];
        for (file, line, words) in cases {
            let fault = read(file.as_bytes()).unwrap_err();
            assert!(fault.spot.line == line && fault.message.contains(words), "{file:?}: {fault:?}");
        }
        let long = format!("---\na: {}\n---\n", "x".repeat(HEAD_BYTES_MAX));
        assert!(read(long.as_bytes()).unwrap_err().message.contains("more than"));
    }

    #[test]
    fn what_was_put_right_is_said() {
        let page = read(b"---\nname:\ta\ndescription: one: two\n---\n").unwrap();
        assert_eq!(
            page.notes,
            ["tabs were read as spaces", "the value of `description` was read as if it were quoted"]
        );
        assert!(read(b"---\nname: a\ndescription: b\n---\n").unwrap().notes.is_empty());
    }

    proptest! {
        #[test]
        fn nothing_panics_and_no_body_is_lost(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            drop(read(&bytes));
        }

        #[test]
        fn heads_of_any_letters_are_read_or_refused(head in "[-a-z:\\[\\]{}'\"#&*!|>%@` \t\r\n0-9]{0,200}") {
            let file = format!("---\n{head}\n---\nbody");
            if let Ok(page) = read(file.as_bytes()) {
                prop_assert!(page.body.ends_with("body"));
            }
        }
    }
}
