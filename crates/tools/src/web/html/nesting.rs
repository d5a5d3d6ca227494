//! Rewrites a page as HTML whose tags nest correctly and not too deep.
//!
//! The HTML standard repairs wrong nesting by walking the open elements and by opening formatting elements again, so a
//! hostile page of a few megabytes can cost minutes or gigabytes. This pass closes every element itself, bounds depth,
//! open formatting, attributes and the number of elements, and leaves out elements that hold no text (scripts, styles,
//! drawings, form fields). It runs once over the page, in time and memory bounded by its length.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Open elements at a time. Browsers stop at 512.
const DEPTH_MAX: usize = 200;
/// Open lists and quotes at a time: Markdown repeats their indentation on every line.
const INDENT_MAX: usize = 24;
/// Open formatting elements at a time.
const FORMATTING_MAX: usize = 8;
/// Elements of a page.
const ELEMENTS_MAX: usize = 400_000;
/// Bytes of one tag with its attributes; a longer one loses them.
const TAG_BYTES_MAX: usize = 16 << 10;
/// Attributes of one tag: a parser compares each with all others.
const ATTRIBUTES_MAX: usize = 64;
/// Bytes of an element's name; an element with a longer one is passed over, but not its content.
const NAME_BYTES_MAX: usize = 24;

/// Elements whose content is no text of the page.
const SILENT: [&str; 15] = [
    "script", "style", "noscript", "template", "svg", "iframe", "object", "select", "canvas", "textarea", "audio",
    "video", "noembed", "noframes", "datalist",
];
/// Tags that say nothing about the text; what is between them stays.
const DROPPED: [&str; 27] = [
    "html",
    "head",
    "font",
    "big",
    "small",
    "tt",
    "u",
    "s",
    "strike",
    "nobr",
    "center",
    "link",
    "input",
    "area",
    "embed",
    "param",
    "source",
    "track",
    "keygen",
    "basefont",
    "bgsound",
    "frame",
    "frameset",
    "math",
    "plaintext",
    "image",
    "listing",
];
const VOID: [&str; 7] = ["base", "br", "col", "hr", "img", "meta", "wbr"];
const FORMATTING: [&str; 6] = ["a", "b", "code", "em", "i", "strong"];
/// Elements inside a line, beside the formatting ones.
const INLINE: [&str; 24] = [
    "span", "abbr", "acronym", "bdi", "bdo", "cite", "data", "del", "dfn", "ins", "kbd", "label", "mark", "output",
    "picture", "q", "rp", "rt", "ruby", "samp", "sub", "sup", "time", "var",
];
/// Elements that a paragraph cannot hold.
const ENDS_PARAGRAPH: [&str; 37] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "dd",
    "details",
    "dialog",
    "dir",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hgroup",
    "hr",
    "li",
    "main",
    "menu",
    "nav",
    "ol",
    "p",
    "pre",
    "search",
    "section",
    "summary",
    "table",
    "ul",
];
/// Elements that an end tag does not reach beyond, unless it is one of a table.
const CELLS: [&str; 4] = ["td", "th", "caption", "table"];
const TABLE: [&str; 9] = ["table", "tbody", "thead", "tfoot", "tr", "td", "th", "caption", "colgroup"];
const INDENTED: [&str; 4] = ["ul", "ol", "blockquote", "menu"];

/// A group of elements.
#[derive(Debug, Clone, Copy)]
enum Group {
    Silent,
    Dropped,
    Void,
    Formatting,
    Inline,
    EndsParagraph,
    Cell,
    Table,
    Indented,
}

const GROUPS: [(Group, &[&str]); 9] = [
    (Group::Silent, &SILENT),
    (Group::Dropped, &DROPPED),
    (Group::Void, &VOID),
    (Group::Formatting, &FORMATTING),
    (Group::Inline, &INLINE),
    (Group::EndsParagraph, &ENDS_PARAGRAPH),
    (Group::Cell, &CELLS),
    (Group::Table, &TABLE),
    (Group::Indented, &INDENTED),
];

/// The groups of each element as bits: looked up once for each tag.
static GROUPS_OF: LazyLock<HashMap<&'static str, u16>> = LazyLock::new(|| {
    let mut groups = HashMap::new();
    for (group, names) in GROUPS {
        names.iter().for_each(|name| *groups.entry(*name).or_default() |= group.bit());
    }
    groups
});

impl Group {
    fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// A page as correctly nested HTML.
#[derive(Debug, Default)]
pub(super) struct NestedHtml {
    pub(super) html: String,
    /// Whether the page has scripts.
    pub(super) has_scripts: bool,
    /// Whether the page went on after its last element that was taken.
    pub(super) is_cut: bool,
}

/// Rewrites a page.
pub(super) fn nested(page: &str) -> NestedHtml {
    let mut writer = Nesting { page, ..Nesting::default() };
    writer.out.html.reserve(page.len());
    writer.out.html.push_str("<!doctype html>");
    let mut at = 0;
    while let Some(found) = page.get(at..).and_then(|rest| rest.find('<')) {
        writer.text(at, at + found);
        at = writer.markup(at + found);
        if writer.elements > ELEMENTS_MAX {
            writer.out.is_cut = true;
            break;
        }
    }
    if !writer.out.is_cut {
        writer.text(at, page.len());
    }
    writer.close_to(0);
    writer.out
}

#[derive(Default)]
struct Nesting<'a> {
    page: &'a str,
    out: NestedHtml,
    open: Vec<Name>,
    elements: usize,
    has_body: bool,
    /// Elements for which there is no end tag in the rest of the page, so that it is not searched again.
    endless: Vec<&'static str>,
}

/// The name of an element, in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Name {
    bytes: [u8; NAME_BYTES_MAX],
    len: usize,
    groups: u16,
}

impl Name {
    fn new(name: &str) -> Option<Self> {
        let mut bytes = [0; NAME_BYTES_MAX];
        bytes.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
        bytes.make_ascii_lowercase();
        let mut name = Self { bytes, len: name.len(), groups: 0 };
        name.groups = GROUPS_OF.get(name.as_str()).copied().unwrap_or_default();
        Some(name)
    }

    fn as_str(&self) -> &str {
        self.bytes.get(..self.len).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default()
    }

    fn is(&self, name: &str) -> bool {
        self.bytes.get(..self.len) == Some(name.as_bytes())
    }

    fn is_one(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.is(name))
    }

    fn is_in(&self, group: Group) -> bool {
        self.groups & group.bit() != 0
    }

    fn is_inline(&self) -> bool {
        self.is_in(Group::Formatting) || self.is_in(Group::Inline)
    }
}

/// One tag: the name, and where it ends.
struct Tag {
    name: Option<Name>,
    is_end: bool,
    is_whole: bool,
    attributes: usize,
    /// The place behind its `>`.
    end: usize,
}

impl<'a> Nesting<'a> {
    fn slice(&self, from: usize, to: usize) -> &'a str {
        self.page.get(from..to).unwrap_or_default()
    }

    fn text(&mut self, from: usize, to: usize) {
        self.out.html.push_str(self.slice(from, to));
    }

    /// Takes in what begins with a `<`; the place behind it.
    fn markup(&mut self, at: usize) -> usize {
        let rest = self.slice(at + 1, self.page.len());
        if let Some(comment) = rest.strip_prefix("!--") {
            return comment.find("-->").map_or(self.page.len(), |end| at + 4 + end + 3);
        }
        if rest.starts_with(['!', '?']) {
            return rest.find('>').map_or(self.page.len(), |end| at + 1 + end + 1);
        }
        if !rest.trim_start_matches('/').starts_with(|letter: char| letter.is_ascii_alphabetic()) {
            // A lonely sign is text.
            self.out.html.push_str("&lt;");
            return at + 1;
        }
        let Some(tag) = tag(self.page, at + 1) else { return self.page.len() };
        let Some(name) = tag.name else { return tag.end };
        if tag.is_end {
            self.end_tag(name);
            return tag.end;
        }
        self.out.has_scripts |= name.is("script");
        if name.is_in(Group::Silent)
            && let Some(silent) = SILENT.into_iter().find(|silent| name.is(silent))
        {
            return if tag.is_whole { tag.end } else { self.after_end(tag.end, silent) };
        }
        if name.is("title") {
            let end = self.after_end(tag.end, "title");
            if end > tag.end {
                self.text(at, end);
            }
            return end;
        }
        self.start_tag(name, &tag, at);
        tag.end
    }

    fn start_tag(&mut self, name: Name, tag: &Tag, at: usize) {
        let is_body = name.is("body");
        if name.is_in(Group::Dropped) || (is_body && self.has_body) {
            return;
        }
        self.has_body |= is_body;
        self.end_implied(name);
        let is_void = name.is_in(Group::Void);
        let open = |group: Group| self.open.iter().filter(|open| open.is_in(group)).count();
        let is_link = name.is("a");
        let is_too_deep = self.open.len() >= DEPTH_MAX
            || (name.is_in(Group::Indented) && open(Group::Indented) >= INDENT_MAX)
            || (name.is_in(Group::Formatting) && open(Group::Formatting) >= FORMATTING_MAX)
            || (is_link && self.open.iter().any(|open| open.is("a")));
        if is_too_deep && !is_void {
            return;
        }
        self.elements += 1;
        let is_long = tag.end - at > TAG_BYTES_MAX || tag.attributes > ATTRIBUTES_MAX;
        match is_long {
            // Only what it shows is so long: a picture that is written out.
            true if is_void => return,
            true => self.out.html.push_str(&format!("<{}>", name.as_str())),
            false => self.text(at, tag.end),
        }
        if !is_void {
            self.open.push(name);
        }
    }

    /// Closes elements that the start of this one ends.
    fn end_implied(&mut self, name: Name) {
        let text = name.as_str();
        if name.is_in(Group::EndsParagraph) {
            let inline = self.open.iter().rev().take_while(|open| open.is_inline()).count();
            let at = self.open.len() - inline;
            if at > 0 && self.open.get(at - 1).is_some_and(|open| open.is("p")) {
                self.close_to(at - 1);
            }
        }
        let ends: &[&[&str]] = match text {
            "li" => &[&["li"]],
            "dd" | "dt" => &[&["dd", "dt"]],
            "td" | "th" => &[&["p"], &["li"], &["ul", "ol"], &["td", "th"]],
            "tr" => &[&["p"], &["td", "th"], &["tr"]],
            "tbody" | "thead" | "tfoot" => &[&["p"], &["td", "th"], &["tr"], &["tbody", "thead", "tfoot", "caption"]],
            "option" => &[&["option"]],
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => &[&["h1", "h2", "h3", "h4", "h5", "h6"]],
            "a" => {
                let inline = self.open.iter().rev().take_while(|open| open.is_inline()).count();
                let from = self.open.len() - inline;
                let link = self.open.iter().skip(from).position(|open| open.is("a"));
                if let Some(link) = link {
                    self.close_to(from + link);
                }
                &[]
            }
            _ => &[],
        };
        for names in ends {
            if self.open.last().is_some_and(|open| open.is_one(names)) {
                self.close_to(self.open.len() - 1);
            }
        }
    }

    /// Closes the element of an end tag, with everything in it. An end tag that fits no element is left out.
    fn end_tag(&mut self, name: Name) {
        let is_table = name.is_in(Group::Table);
        let is_inline = name.is_inline();
        for at in (0..self.open.len()).rev() {
            let Some(open) = self.open.get(at).copied() else { return };
            if open == name {
                return self.close_to(at);
            }
            let is_border = match (is_table, is_inline) {
                (true, _) => open.is("table"),
                (_, true) => !open.is_inline(),
                _ => open.is_in(Group::Cell),
            };
            if is_border {
                return;
            }
        }
    }

    /// Closes all elements from this place of the stack on.
    fn close_to(&mut self, depth: usize) {
        while self.open.len() > depth {
            let Some(name) = self.open.pop() else { return };
            self.out.html.push_str("</");
            self.out.html.push_str(name.as_str());
            self.out.html.push('>');
        }
    }

    /// The place behind the end of an element that is passed over. Without an end only the tag is passed over, but a script
    /// without an end takes the rest of the page, as it does in a browser.
    fn after_end(&mut self, from: usize, name: &'static str) -> usize {
        if self.endless.contains(&name) {
            return from;
        }
        let mut at = from;
        while let Some(found) = self.slice(at, self.page.len()).find("</") {
            at += found + 2;
            let after = self.slice(at, self.page.len());
            if after.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)) {
                return after.find('>').map_or(self.page.len(), |end| at + end + 1);
            }
        }
        if matches!(name, "script" | "style") {
            return self.page.len();
        }
        self.endless.push(name);
        from
    }
}

/// Reads a tag whose name, or the `/` before it, begins here; `None` if it has no end. A `>` in quotes does not end it.
fn tag(page: &str, from: usize) -> Option<Tag> {
    #[derive(PartialEq)]
    enum At {
        Between,
        Attribute,
        AfterName,
        Equals,
        Bare,
        Quoted(u8),
    }
    let bytes = page.as_bytes();
    let is_end = bytes.get(from) == Some(&b'/');
    let start = from + usize::from(is_end);
    let is_name = |byte: &u8| !byte.is_ascii_whitespace() && !matches!(byte, b'/' | b'>');
    let name_len = bytes.get(start..)?.iter().take_while(|byte| is_name(byte)).count();
    let (mut at, mut attributes, mut is_whole) = (At::Between, 0, false);
    for (offset, byte) in bytes.get(start + name_len..)?.iter().enumerate() {
        at = match (at, byte) {
            (At::Quoted(quote), byte) if *byte == quote => At::Between,
            (At::Quoted(quote), _) => At::Quoted(quote),
            (_, b'>') => {
                let name = Name::new(page.get(start..start + name_len)?);
                return Some(Tag { name, is_end, is_whole, attributes, end: start + name_len + offset + 1 });
            }
            (At::Equals, b'"' | b'\'') => At::Quoted(*byte),
            (At::Equals, byte) if byte.is_ascii_whitespace() => At::Equals,
            (At::Equals | At::Bare, byte) if !byte.is_ascii_whitespace() => At::Bare,
            (At::Attribute | At::AfterName, b'=') => At::Equals,
            (_, b'/') => {
                is_whole = true;
                At::Between
            }
            (At::Attribute | At::AfterName, byte) if byte.is_ascii_whitespace() => At::AfterName,
            (At::Attribute, _) => At::Attribute,
            (_, byte) if byte.is_ascii_whitespace() => At::Between,
            _ => {
                attributes += 1;
                is_whole = false;
                At::Attribute
            }
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(page: &str) -> String {
        nested(page).html.strip_prefix("<!doctype html>").unwrap().to_owned()
    }

    #[test]
    fn tags_are_closed_in_their_order() {
        let table = [
            ("<p>a<p>b", "<p>a</p><p>b</p>"),
            ("<ul><li>a<li>b</ul>c", "<ul><li>a</li><li>b</li></ul>c"),
            ("<b><div>a</b>b</div>", "<b><div>ab</div></b>"),
            ("<p><b>a<div>b</div>", "<p><b>a</b></p><div>b</div>"),
            ("<span><div></span>x</div>", "<span><div>x</div></span>"),
            ("<a href=x>a<a href=y>b</a>", "<a href=x>a</a><a href=y>b</a>"),
            ("</div>a</p>", "a"),
            (
                "<table><tr><td>a<td>b<tr><td>c</table>d",
                "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>d",
            ),
            ("<div><table><td></div>x</table>", "<div><table><td>x</td></table></div>"),
            ("<font color=red>a</font><form>b</form>", "a<form>b</form>"),
            ("<IMG src='a>b'>c<BR/>", "<IMG src='a>b'>c<BR/>"),
            ("a <3 b", "a &lt;3 b"),
            ("<script>a</script><svg><path/></svg><svg/>x", "x"),
            ("<svg>no end", "no end"),
            ("<title>a <b> c</title>", "<title>a <b> c</title>"),
        ];
        for (page, want) in table {
            assert_eq!(html(page), want, "{page}");
        }
        assert!(nested("<script src=x></script>").has_scripts && !nested("<p>").has_scripts);
    }

    #[test]
    fn depth_and_number_of_elements_are_bounded() {
        let deep = html(&"<div>".repeat(10_000));
        assert_eq!((deep.matches("<div>").count(), deep.matches("</div>").count()), (DEPTH_MAX, DEPTH_MAX));
        assert_eq!(html(&"<ul><li>".repeat(100)).matches("<ul>").count(), INDENT_MAX);
        assert_eq!(html(&"<em><b>".repeat(100)).matches("<b>").count(), FORMATTING_MAX / 2);
        assert!(nested(&"<br>".repeat(ELEMENTS_MAX + 1)).is_cut);
        assert!(html(&format!("<img src='data:{}'>", "x".repeat(TAG_BYTES_MAX))).is_empty());
        assert_eq!(html(&format!("<{}>x", "n".repeat(NAME_BYTES_MAX + 1))), "x");
    }
}
