//! Prepares a part of a page for Markdown: what a browser would lay out apart must not run together.
//!
//! The Markdown writer knows few block elements and takes tables only if they are regular. Here other blocks become `div`,
//! captions stand before their tables, tables get a cell for every column, tables that only place things become blocks,
//! and links and labels in a row get spaces between them. A word is never split: `un<b>believ</b>able` stays one.

use dom_query::{NodeData, NodeRef};

/// Cells that are added to tables of one page, so that `colspan` and `rowspan` cannot blow it up.
const ADDED_CELLS_MAX: usize = 20_000;
/// Columns or rows that one cell spans.
const SPAN_MAX: usize = 50;

/// What an element means for the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Code,
    LineBreak,
    Link,
    Item,
    Table,
    Heading,
    Block,
    /// A block that the Markdown writer does not know.
    UnknownBlock,
    /// A thing of its own in a line: two of them beside each other are two words.
    Apart,
    Other,
}

fn shape(node: &NodeRef<'_>) -> Shape {
    let Some(element) = node.element_ref() else { return Shape::Other };
    match &*element.name.local {
        "pre" | "code" => Shape::Code,
        "br" => Shape::LineBreak,
        "a" => Shape::Link,
        "li" => Shape::Item,
        "table" => Shape::Table,
        "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => Shape::Heading,
        "div" | "p" | "section" | "article" | "blockquote" | "tr" => Shape::Block,
        "address" | "aside" | "caption" | "center" | "dd" | "details" | "dialog" | "dir" | "dt" | "fieldset"
        | "figcaption" | "figure" | "footer" | "form" | "header" | "hgroup" | "legend" | "main" | "nav" | "search"
        | "summary" => Shape::UnknownBlock,
        "span" | "time" | "button" | "label" | "abbr" | "cite" | "data" => Shape::Apart,
        _ => Shape::Other,
    }
}

/// Prepares all that is in a node.
pub(super) fn prepare(root: &NodeRef<'_>) {
    let mut layout = Layout { added: 0 };
    let mut open = vec![(*root, Place::default())];
    while let Some((node, place)) = open.pop() {
        let place = layout.element(&node, place);
        if let Some(place) = place {
            layout.keep_apart(&node, place);
            open.extend(node.children_it(true).filter(NodeRef::is_element).map(|child| (child, place)));
        }
    }
}

/// Where an element is.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// In a link or a heading, which are one line.
    is_in_line: bool,
    is_in_code: bool,
}

struct Layout {
    added: usize,
}

impl Layout {
    /// Prepares one element; the place of its children, or nothing if it is gone.
    fn element(&mut self, node: &NodeRef<'_>, place: Place) -> Option<Place> {
        match shape(node) {
            Shape::Code => return Some(Place { is_in_code: true, ..place }),
            Shape::LineBreak if place.is_in_code => replace_by_text(node, "\n"),
            Shape::LineBreak if place.is_in_line => replace_by_text(node, " "),
            _ if place.is_in_code => {}
            Shape::Link => return Some(Place { is_in_line: true, ..place }),
            Shape::Item if !has_text(node) => {
                node.remove_from_parent();
                return None;
            }
            Shape::Table if !place.is_in_line => self.table(node),
            Shape::Item | Shape::Heading | Shape::Block | Shape::UnknownBlock if place.is_in_line => {
                if node.prev_sibling().is_some() {
                    node.insert_before(&node.tree.new_text(" "));
                }
                if node.next_sibling().is_some() {
                    node.insert_after(&node.tree.new_text(" "));
                }
                node.rename("span");
            }
            Shape::Heading => return Some(Place { is_in_line: true, ..place }),
            Shape::UnknownBlock => node.rename("div"),
            _ => {}
        }
        Some(place)
    }

    /// Puts spaces between children that are laid out apart: links, and labels in a row that has no text of its own.
    fn keep_apart(&self, node: &NodeRef<'_>, place: Place) {
        if place.is_in_code {
            return;
        }
        let is_row = !node.children_it(false).any(|child| child.is_nonempty_text());
        // No iterator over the children is open while a node is made: it would hold the tree.
        let mut following = node.first_child();
        while let Some(child) = following {
            following = child.next_sibling();
            let Some(next) = following else { return };
            let (one, two) = (shape(&child), shape(&next));
            let is_apart = |shape: Shape| matches!(shape, Shape::Link | Shape::Apart);
            if !is_apart(one) || !is_apart(two) {
                continue;
            }
            let are_links = (one, two) == (Shape::Link, Shape::Link);
            let joins = || is_letter(edge(&child, true)) && is_letter(edge(&next, false));
            let is_initial = || letters(&child, 2) < 2 || letters(&next, 2) < 2 && letters(&child, 3) < 3;
            if are_links || (is_row && joins() && !is_initial()) {
                child.insert_after(&node.tree.new_text(" "));
            }
        }
    }

    /// Makes a table regular, or blocks of it if it only places things.
    fn table(&mut self, table: &NodeRef<'_>) {
        let (mut rows, mut captions) = (Vec::new(), Vec::new());
        let (mut is_nested, mut has_heads) = (false, false);
        for part in table.descendants_it() {
            let Some(element) = part.element_ref() else { continue };
            match &*element.name.local {
                "tr" => rows.push(part),
                "th" => has_heads = true,
                "table" => is_nested = true,
                "caption" => captions.push(part),
                _ => {}
            }
        }
        for caption in &captions {
            caption.remove_from_parent();
            table.insert_before(caption);
            caption.rename("div");
        }
        let is_line = || rows.len() < 2 || rows.iter().all(|row| row.children_it(false).filter(is_cell).count() < 2);
        if is_nested || (!has_heads && is_line()) {
            table.rename("div");
            own_parts(table).iter().for_each(|part| part.rename("div"));
            return;
        }
        self.fill(&rows);
    }

    /// Gives every row a cell for every column.
    fn fill(&mut self, rows: &[NodeRef<'_>]) {
        // For each column: how many rows below the cell of an earlier row still reaches.
        let mut spans: Vec<usize> = Vec::new();
        for row in rows {
            let mut column = 0;
            for cell in row.children_it(false).filter(is_cell).collect::<Vec<_>>() {
                while self.is_spanned(&mut spans, column) {
                    cell.insert_before(&row.tree.new_element("td"));
                    column += 1;
                }
                let (across, down) = (span(&cell, "colspan"), span(&cell, "rowspan"));
                for offset in 0..across {
                    if offset > 0 && self.may_add() {
                        cell.insert_after(&row.tree.new_element("td"));
                    }
                    if spans.len() <= column + offset {
                        spans.resize(column + offset + 1, 0);
                    }
                    if let Some(reach) = spans.get_mut(column + offset) {
                        *reach = down - 1;
                    }
                }
                column += across;
            }
            while column < spans.len() && self.may_add() {
                self.is_spanned(&mut spans, column);
                row.append_child(&row.tree.new_element("td"));
                column += 1;
            }
        }
        // Rows before the first of full width.
        for row in rows {
            let missing = spans.len().saturating_sub(row.children_it(false).filter(is_cell).count());
            for _ in 0..missing {
                if self.may_add() {
                    row.append_child(&row.tree.new_element("td"));
                }
            }
        }
    }

    /// Whether a cell of an earlier row is in this column.
    fn is_spanned(&mut self, spans: &mut [usize], column: usize) -> bool {
        match spans.get_mut(column) {
            Some(reach) if *reach > 0 && self.may_add() => {
                *reach -= 1;
                true
            }
            _ => false,
        }
    }

    fn may_add(&mut self) -> bool {
        self.added += 1;
        self.added <= ADDED_CELLS_MAX
    }
}

/// The sections, rows and cells of a table, without those of tables in it.
fn own_parts<'a>(table: &NodeRef<'a>) -> Vec<NodeRef<'a>> {
    let mut own: Vec<NodeRef<'a>> = Vec::new();
    let mut open = vec![*table];
    while let Some(node) = open.pop() {
        for child in node.children_it(false) {
            let is_part = is_one(&child, &["tbody", "thead", "tfoot", "tr"]);
            if is_part {
                open.push(child);
            }
            if is_part || is_cell(&child) {
                own.push(child);
            }
        }
    }
    own
}

fn is_cell(node: &NodeRef<'_>) -> bool {
    is_one(node, &["td", "th"])
}

fn span(cell: &NodeRef<'_>, name: &str) -> usize {
    cell.attr(name).and_then(|span| span.trim().parse().ok()).unwrap_or(1).clamp(1, SPAN_MAX)
}

fn is_one(node: &NodeRef<'_>, names: &[&str]) -> bool {
    node.element_ref().is_some_and(|element| names.contains(&&*element.name.local))
}

fn replace_by_text(node: &NodeRef<'_>, text: &str) {
    node.replace_with(&node.tree.new_text(text));
}

fn has_text(node: &NodeRef<'_>) -> bool {
    node.descendants_it().any(|below| below.is_nonempty_text())
}

/// How many letters an element has, counted up to `most`.
fn letters(node: &NodeRef<'_>, most: usize) -> usize {
    let mut count = 0;
    for below in node.descendants_it() {
        count += below.query_or(0, |inner| match &inner.data {
            NodeData::Text { contents } => contents.chars().take(most).count(),
            _ => 0,
        });
        if count >= most {
            break;
        }
    }
    count
}

/// The last or the first letter of an element.
fn edge(node: &NodeRef<'_>, last: bool) -> Option<char> {
    let mut at = *node;
    loop {
        let letter = at.query_or(None, |inner| match &inner.data {
            NodeData::Text { contents } if last => contents.chars().next_back(),
            NodeData::Text { contents } => contents.chars().next(),
            _ => None,
        });
        if letter.is_some() {
            return letter;
        }
        at = if last { at.last_child() } else { at.first_child() }?;
    }
}

fn is_letter(letter: Option<char>) -> bool {
    letter.is_some_and(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use dom_query::Document;

    use super::*;

    fn markdown(html: &str) -> String {
        let document = Document::from(format!("<body>{html}</body>"));
        let body = document.body().unwrap();
        prepare(&body);
        super::super::tidy(&body.md(None)).trim().to_owned()
    }

    #[test]
    fn what_is_laid_out_apart_stays_apart() {
        let table = [
            ("<div><span>New baker</span><span>February 3</span></div>", "New baker February 3"),
            ("<div><span class=b>MIT</span><span class=b>v1.2</span><time>2026</time></div>", "MIT v1.2 2026"),
            ("<div><a href=/a>One</a><a href=/b>Two</a></div>", "[One](/a) [Two](/b)"),
            ("<button>Yes</button><button>No</button>", "Yes No"),
            ("<dl><dt>Height</dt><dd>52 cm</dd><dt>Foot</dt><dd>18 cm</dd></dl>", "Height\n\n52 cm\n\nFoot\n\n18 cm"),
            ("<figure><figcaption>A caption.</figcaption></figure><span>credit</span>", "A caption.\n\ncredit"),
            ("<a href=/n><div>Next</div><div>Chapter two</div></a>", "[Next Chapter two](/n)"),
            ("<a href=/n>Next<br>Chapter</a>", "[Next Chapter](/n)"),
            ("<h2><div>Two</div><div>parts</div></h2>", "## Two parts"),
            ("<pre><span>a</span><br><span>b</span></pre>", "```\na\nb\n```"),
            ("<ul><li></li><li>one</li><li> <b></b></li></ul>", "- one"),
        ];
        for (html, want) in table {
            assert_eq!(markdown(html), want, "{html}");
        }
    }

    #[test]
    fn a_word_stays_whole() {
        let table = [
            ("un<b>believ</b>able", "un**believ**able"),
            ("<p><b>O</b><span>nce</span> upon</p>", "**O**nce upon"),
            ("<p><span>O</span><span>nce</span></p>", "Once"),
            ("<p>re<span>think</span><span>ing</span> it</p>", "rethinking it"),
            ("<p><span>Hello</span><span>, you</span></p>", "Hello, you"),
            ("<code><span>foo</span><span>bar</span></code>", "`foobar`"),
            ("<h1><span>W</span><span>o</span><span>w</span></h1>", "# Wow"),
        ];
        for (html, want) in table {
            assert_eq!(markdown(html), want, "{html}");
        }
    }

    #[test]
    fn tables_are_regular_or_no_tables() {
        let table = [
            (
                "<table><caption>Prices</caption><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>",
                "Prices\n\n| a | b |\n| - | - |\n| 1 | 2 |",
            ),
            (
                "<table><tr><th>a</th><th>b</th><th>c</th></tr><tr><td colspan=2>1</td><td>2</td></tr><tr><td>3</td></tr></table>",
                "| a | b | c |\n| - | - | - |\n| 1 |  | 2 |\n| 3 |  |  |",
            ),
            (
                "<table><tr><th>a</th><th>b</th></tr><tr><td rowspan=2>1</td><td>2</td></tr><tr><td>3</td></tr></table>",
                "| a | b |\n| - | - |\n| 1 | 2 |\n|  | 3 |",
            ),
            ("<table><tr><td>left</td><td><p>right</p></td></tr></table>", "left\n\nright"),
            (
                "<table><tr><td>menu<td><table><tr><td>1<td>2<tr><td>3<td>4</table></table>",
                "menu\n\n|   |   |\n| - | - |\n| 1 | 2 |\n| 3 | 4 |",
            ),
        ];
        for (html, want) in table {
            assert_eq!(markdown(html), want, "{html}");
        }
        let wide = "<tr><td colspan=50 rowspan=50>x</td><td>y</td></tr>".repeat(2_000);
        assert!(markdown(&format!("<table>{wide}</table>")).len() < 200_000);
    }
}
