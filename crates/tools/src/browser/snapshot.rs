//! A page's accessibility tree as lines that a model reads: `[e12] button "Sign in"`.
//!
//! Pure: `read` turns Chromium's answers into lines. A node of the page keeps its reference for as long as its document is shown.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::Value;

use crate::text::clip;

/// Bytes of a name, a value or a piece of text in one line.
const TEXT_BYTES_MAX: usize = 400;
/// Bytes of a link's address in one line.
const LINK_BYTES_MAX: usize = 160;
/// Levels that lines are indented by: what lies deeper is shown at the last one.
const INDENT_MAX: usize = 12;
/// Stands for a password of any length.
pub(super) const DOTS: &str = "••••••";
/// Levels of a tree that are read.
const DEPTH_MAX: usize = 200;

/// Roles that say nothing by themselves: their children stand in their place.
const PLAIN: [&str; 13] = [
    "generic",
    "none",
    "presentation",
    "GenericContainer",
    "paragraph",
    "LayoutTable",
    "LayoutTableRow",
    "LayoutTableCell",
    "rowgroup",
    "Section",
    "div",
    "strong",
    "emphasis",
];
/// Roles of layout that are never shown.
const UNSEEN: [&str; 4] = ["InlineTextBox", "LineBreak", "ListMarker", "Ignored"];
/// Properties that are shown as a word if they hold.
const FLAGS: [&str; 9] =
    ["disabled", "required", "readonly", "focused", "selected", "multiselectable", "busy", "modal", "invalid"];

/// References of one page: numbers by the nodes that Chromium names.
#[derive(Debug, Default)]
pub(super) struct Refs {
    last: u64,
    by_node: HashMap<i64, u64>,
    nodes: HashMap<u64, i64>,
}

impl Refs {
    /// The reference of a node.
    pub(super) fn of(&mut self, node: i64) -> u64 {
        *self.by_node.entry(node).or_insert_with(|| {
            self.last += 1;
            self.nodes.insert(self.last, node);
            self.last
        })
    }

    /// The number of a reference as a model writes it: `e12`, or `[e12]`.
    pub(super) fn number(text: &str) -> Option<u64> {
        text.trim().trim_start_matches('[').trim_end_matches(']').strip_prefix('e')?.parse().ok()
    }

    /// The node that a model names.
    pub(super) fn node(&self, text: &str) -> Option<i64> {
        self.nodes.get(&Self::number(text)?).copied()
    }

    /// The reference of a node that was shown.
    pub(super) fn known(&self, node: i64) -> Option<u64> {
        self.by_node.get(&node).copied()
    }

    /// Forgets all nodes: the document is another. Old references are not given again.
    pub(super) fn clear(&mut self) {
        self.by_node.clear();
        self.nodes.clear();
    }
}

/// One frame of a page.
#[derive(Debug)]
pub(super) struct FrameTree {
    /// The element that holds the frame; `None` for the page itself.
    pub(super) owner: Option<i64>,
    pub(super) nodes: Vec<AxNode>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AxNode {
    node_id: String,
    #[serde(default)]
    ignored: bool,
    role: Option<AxValue>,
    name: Option<AxValue>,
    value: Option<AxValue>,
    #[serde(default)]
    properties: Vec<AxProperty>,
    #[serde(default)]
    child_ids: Vec<String>,
    #[serde(rename = "backendDOMNodeId")]
    backend: Option<i64>,
}

#[derive(Debug, Deserialize)]
struct AxValue {
    #[serde(default)]
    value: Value,
}

#[derive(Debug, Deserialize)]
struct AxProperty {
    name: String,
    value: AxValue,
}

impl AxNode {
    fn role(&self) -> &str {
        self.role.as_ref().and_then(|role| role.value.as_str()).unwrap_or_default()
    }

    fn name(&self) -> String {
        self.name.as_ref().map(|name| words(&name.value)).unwrap_or_default()
    }

    fn property(&self, name: &str) -> Option<&Value> {
        self.properties.iter().find(|property| property.name == name).map(|property| &property.value.value)
    }

    fn holds(&self, name: &str) -> bool {
        match self.property(name) {
            Some(Value::Bool(holds)) => *holds,
            Some(Value::String(word)) => word == "true",
            _ => false,
        }
    }
}

/// A value as one line of text.
fn words(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The nodes of a page that a user types into.
pub(super) fn fields(frames: &[FrameTree]) -> Vec<i64> {
    let nodes = frames.iter().flat_map(|frame| &frame.nodes);
    nodes.filter(|node| !node.ignored && node.role() == "textbox").filter_map(|node| node.backend).collect()
}

/// The lines of a page: its frames in place of the elements that hold them. `passwords` are fields whose value is not shown.
pub(super) fn read(frames: &[FrameTree], base: &str, refs: &mut Refs, passwords: &HashSet<i64>) -> Vec<String> {
    let Some(page) = frames.iter().find(|frame| frame.owner.is_none()) else { return Vec::new() };
    let mut walk = TreeWalk { frames, base, refs, passwords, lines: Vec::new() };
    walk.frame(page, 0);
    walk.lines
}

struct TreeWalk<'a> {
    frames: &'a [FrameTree],
    /// The page's origin, which addresses of links are shown without.
    base: &'a str,
    refs: &'a mut Refs,
    passwords: &'a HashSet<i64>,
    lines: Vec<String>,
}

/// Where a node is read.
#[derive(Clone, Copy)]
struct Place<'a> {
    indent: usize,
    depth: usize,
    /// The name of a node above that has its text already.
    covered: &'a str,
}

type ById<'a> = HashMap<&'a str, &'a AxNode>;

impl<'a> TreeWalk<'a> {
    fn frame(&mut self, frame: &'a FrameTree, indent: usize) {
        let by_id: ById<'a> = frame.nodes.iter().map(|node| (node.node_id.as_str(), node)).collect();
        if let Some(root) = frame.nodes.first() {
            self.node(&by_id, root, Place { indent, depth: 0, covered: "" });
        }
    }

    fn node(&mut self, by_id: &ById<'a>, node: &'a AxNode, place: Place<'_>) {
        let role = node.role();
        if place.depth > DEPTH_MAX || UNSEEN.contains(&role) {
            return;
        }
        let name = if node.ignored { String::new() } else { node.name() };
        if role == "StaticText" && !node.ignored {
            if !name.is_empty() && !place.covered.contains(&name) {
                self.line(node, place.indent, format!("text {}", quoted(&name)));
            }
            return;
        }
        let is_bare = PLAIN.contains(&role) && name.is_empty() && !node.holds("focusable");
        let is_plain = is_bare || role == "RootWebArea";
        let is_hidden = node.ignored || (is_plain || role.is_empty());
        let below = Place { depth: place.depth + 1, ..place };
        if is_hidden {
            self.children(by_id, node, below);
            return;
        }
        let is_password = node.backend.is_some_and(|node| self.passwords.contains(&node));
        self.line(node, place.indent, described(node, role, &name, self.base, is_password));
        let indent = (place.indent + 1).min(INDENT_MAX);
        let inner = node.backend.and_then(|owner| self.frames.iter().find(|frame| frame.owner == Some(owner)));
        match inner {
            Some(inner) if place.depth < DEPTH_MAX / 2 => self.frame(inner, indent),
            _ => {
                // A field's own text is its value.
                let value = node.value.as_ref().map(|value| words(&value.value)).unwrap_or_default();
                let covered = [place.covered, &name, &value].join("\n");
                self.children(by_id, node, Place { indent, covered: &covered, ..below });
            }
        }
    }

    fn children(&mut self, by_id: &ById<'a>, node: &'a AxNode, place: Place<'_>) {
        for child in &node.child_ids {
            if let Some(child) = by_id.get(child.as_str()) {
                self.node(by_id, child, place);
            }
        }
    }

    fn line(&mut self, node: &AxNode, indent: usize, text: String) {
        let reference = node.backend.map(|backend| format!("[e{}] ", self.refs.of(backend))).unwrap_or_default();
        self.lines.push(format!("{}{reference}{text}", "  ".repeat(indent)));
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", clip(text, TEXT_BYTES_MAX))
}

/// A node in words: its role, its name and its state.
fn described(node: &AxNode, role: &str, name: &str, base: &str, is_password: bool) -> String {
    let mut line = role.to_owned();
    if !name.is_empty() {
        line.push_str(&format!(" {}", quoted(name)));
    }
    let value = node.value.as_ref().map(|value| words(&value.value)).unwrap_or_default();
    if !value.is_empty() && value != name {
        line.push_str(&format!(" value={}", quoted(if is_password { DOTS } else { &value })));
    }
    if is_password {
        line.push_str(" password");
    }
    for flag in FLAGS.iter().filter(|flag| node.holds(flag)) {
        line.push_str(&format!(" {flag}"));
    }
    for (property, is, is_not) in
        [("checked", "checked", "unchecked"), ("expanded", "expanded", "collapsed"), ("pressed", "pressed", "")]
    {
        if node.property(property).is_some() {
            let state = if node.holds(property) { is } else { is_not };
            line.push_str(&format!(" {state}"));
        }
    }
    if let Some(level) = node.property("level").and_then(Value::as_u64) {
        line.push_str(&format!(" level={level}"));
    }
    if let Some(url) = node.property("url").and_then(Value::as_str).filter(|_| role == "link") {
        let url = url.strip_prefix(base).filter(|path| path.starts_with('/')).unwrap_or(url);
        line.push_str(&format!(" → {}", clip(url, LINK_BYTES_MAX)));
    }
    line.trim_end().to_owned()
}

/// A part of the lines from `offset` on (from 1), up to `max` bytes, with a note on where it goes on.
pub(super) fn page(lines: &[String], offset: usize, max: usize) -> String {
    let first = offset.max(1);
    let mut told = String::new();
    let mut last = first - 1;
    for line in lines.iter().skip(first - 1) {
        if told.len() + line.len() + 1 > max {
            break;
        }
        told.push_str(line);
        told.push('\n');
        last += 1;
    }
    if last < lines.len() {
        let (next, all) = (last + 1, lines.len());
        told.push_str(&format!(
            "[lines {first} to {last} of {all}; for more call `browser` with `action: snapshot` and `offset: {next}`]\n"
        ));
    } else if first > 1 {
        told.push_str(&format!("[lines {first} to {last} of {}]\n", lines.len()));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(id: u64, role: &str, name: &str, children: &[u64]) -> Value {
        let children: Vec<String> = children.iter().map(u64::to_string).collect();
        json!({ "nodeId": id.to_string(), "role": { "value": role }, "name": { "value": name }, "childIds": children,
                "backendDOMNodeId": id + 100 })
    }

    fn frame(owner: Option<i64>, nodes: Vec<Value>) -> FrameTree {
        FrameTree { owner, nodes: serde_json::from_value(Value::Array(nodes)).unwrap() }
    }

    #[test]
    fn a_tree_becomes_lines_with_stable_references() {
        let mut link = node(4, "link", "Home", &[5]);
        link["properties"] = json!([{ "name": "url", "value": { "value": "https://a.example/home" } },
                                    { "name": "focusable", "value": { "value": true } }]);
        let mut field = node(6, "textbox", "Name", &[]);
        field["value"] = json!({ "value": "Ann" });
        field["properties"] = json!([{ "name": "required", "value": { "value": true } }]);
        let main = frame(
            None,
            vec![
                node(1, "RootWebArea", "Title", &[2]),
                node(2, "generic", "", &[3, 4, 6, 7, 8]),
                node(3, "StaticText", "Hello  \n world", &[]),
                link,
                node(5, "StaticText", "Home", &[]),
                field,
                node(7, "Iframe", "", &[]),
                node(8, "heading", "News", &[]),
            ],
        );
        let inner = frame(
            Some(107),
            vec![node(1, "RootWebArea", "", &[2]), {
                let mut button = node(2, "button", "Pay", &[]);
                button["backendDOMNodeId"] = json!(900);
                button
            }],
        );
        let mut refs = Refs::default();
        let lines = read(&[main, inner], "https://a.example", &mut refs, &HashSet::new());
        let want = [
            "[e1] text \"Hello world\"",
            "[e2] link \"Home\" → /home",
            "[e3] textbox \"Name\" value=\"Ann\" required",
            "[e4] Iframe",
            "  [e5] button \"Pay\"",
            "[e6] heading \"News\"",
        ];
        assert_eq!(lines, want);
        assert_eq!(
            (refs.node("e5"), refs.node("[e2]"), refs.node("e9"), refs.node("x")),
            (Some(900), Some(104), None, None)
        );
        assert_eq!(refs.of(104), 2, "the same node, the same reference");
        refs.clear();
        assert_eq!((refs.node("e2"), refs.of(104)), (None, 7), "an old reference is not given again");
    }

    #[test]
    fn long_pages_come_in_parts() {
        let lines: Vec<String> = (1..=10).map(|number| format!("line {number}")).collect();
        let first = page(&lines, 1, 20);
        assert!(first.starts_with("line 1\nline 2\n[lines 1 to 2 of 10;") && first.contains("offset: 3"), "{first}");
        assert!(page(&lines, 9, 100).ends_with("line 10\n[lines 9 to 10 of 10]\n"));
        assert_eq!(page(&lines[..2], 1, 100), "line 1\nline 2\n");
    }
}
