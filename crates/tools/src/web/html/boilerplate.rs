//! Removes the parts of a page that are not its content: navigation, banners, footers, forms, lists of links to other
//! pages, the readers' comments below an article, hidden elements.
//!
//! Three things tell them: the element or its role, the words of its class and id (`hints`), and how much of its text is
//! links. An element that holds most of the page's text is never removed, so that a `body` with the class `has-sidebar`
//! stays. Lists of links stay on a page that consists of them. The text of every element is counted in one walk over the
//! page; no rule walks again.

use std::ops::{Add, Sub};

use dom_query::{Document, Element, NodeData, NodeRef};

use super::hints::{self, Hints};

/// Of all text, in percent: an element with more is content, also if its name says otherwise.
const MOST_PERCENT: usize = 40;
/// Of an element's text, in percent: with more in links it is navigation, if its name says so as well.
const NAMED_LINKS_PERCENT: usize = 30;
/// Of an element's text, in percent: with more in links it is a list of links to other pages.
const LINKS_PERCENT: usize = 65;
/// Of the page's text, in percent: with more in links the page is a list of links itself, and keeps them.
const LINKS_PAGE_PERCENT: usize = 40;
/// Of the page's text, in percent: a form with more holds the page.
const FORM_PERCENT: usize = 15;
/// Of the page's text that is left, in percent: an `article` with more is the content.
const ARTICLE_PERCENT: usize = 60;
/// Bytes of one text outside of links that make it a sentence.
const SENTENCE_BYTES: usize = 60;
/// Links of an element that make it a list.
const LIST_LINKS: usize = 2;
/// Links beside a date or the name of an author: with more it is a list of other articles.
const BYLINE_LINKS_MAX: usize = 4;
/// Of an element's text, in percent: with more in links without an address it is a row of buttons.
const CONTROLS_PERCENT: usize = 85;
/// Bytes of text that a button has on average.
const CONTROL_BYTES_MAX: usize = 24;
/// Bytes of a line that claims a copyright.
const COPYRIGHT_BYTES_MAX: usize = 300;
/// Words that stand alone over or instead of an advertisement.
const ADVERTISEMENT: [&str; 7] = ["advertisement", "anzeige", "publicidad", "publicité", "sponsored", "広告", "广告"];

/// Removes boilerplate from a page and gives its content: its one `main`, its one `article`, or all of its body.
pub(super) fn content(document: &Document) -> Option<NodeRef<'_>> {
    let mut outline = Outline::new(document.body()?);
    outline.drop_all(Outline::is_boilerplate);
    outline.drop_comments();
    if outline.is_prose() {
        outline.drop_all(Outline::is_link_list);
        outline.drop_all(Outline::is_toolbar);
    }
    outline.drop_empty_headings();
    outline.parts.iter().filter(|part| part.is_dropped).for_each(|part| part.node.remove_from_parent());
    outline.content()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Body,
    Main,
    Article,
    Section,
    Header,
    Aside,
    /// Never content: navigation, buttons, hidden elements.
    Never,
    Form,
    /// The words beside a form's field.
    Label,
    Heading(u8),
    /// Its words are as they are: nothing in it is looked at.
    Code,
    List,
    Paragraph,
    Block,
    Inline,
}

/// How much text there is, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Weight {
    text: usize,
    linked: usize,
    links: usize,
    sentences: usize,
    /// Headings of the page.
    titles: usize,
    /// Dates and names of authors.
    signs: usize,
    /// Links without an address, which scripts make buttons of, and the text in them.
    controls: usize,
    pressed: usize,
}

impl Weight {
    /// Whether more than this part of the text is in links.
    fn is_linked(self, percent: usize) -> bool {
        self.linked * 100 > self.text * percent
    }
}

impl Add for Weight {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            text: self.text + other.text,
            linked: self.linked + other.linked,
            links: self.links + other.links,
            sentences: self.sentences + other.sentences,
            titles: self.titles + other.titles,
            pressed: self.pressed + other.pressed,
            controls: self.controls + other.controls,
            signs: self.signs + other.signs,
        }
    }
}

impl Sub for Weight {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            text: self.text.saturating_sub(other.text),
            linked: self.linked.saturating_sub(other.linked),
            links: self.links.saturating_sub(other.links),
            sentences: self.sentences.saturating_sub(other.sentences),
            titles: self.titles.saturating_sub(other.titles),
            pressed: self.pressed.saturating_sub(other.pressed),
            controls: self.controls.saturating_sub(other.controls),
            signs: self.signs.saturating_sub(other.signs),
        }
    }
}

/// An element of the page.
struct Part<'a> {
    node: NodeRef<'a>,
    kind: Kind,
    hints: Hints,
    /// The index of the element around it; its own for the body.
    parent: usize,
    /// The index behind its last descendant.
    end: usize,
    /// What comes before its start and before its end.
    before: Weight,
    after: Weight,
    /// The same of elements that were dropped.
    gone_before: Weight,
    gone_after: Weight,
    is_dropped: bool,
}

impl Part<'_> {
    /// The text in it that is left.
    fn left(&self) -> Weight {
        (self.after - self.before) - (self.gone_after - self.gone_before)
    }

    fn is_block(&self) -> bool {
        !matches!(self.kind, Kind::Body | Kind::Main | Kind::Article | Kind::Heading(_) | Kind::Code | Kind::Inline)
    }
}

/// The elements of a page in their order.
struct Outline<'a> {
    parts: Vec<Part<'a>>,
}

impl<'a> Outline<'a> {
    fn new(body: NodeRef<'a>) -> Self {
        let mut walk = Walk::default();
        walk.open(body);
        let mut next = body.first_child();
        while let Some(node) = next {
            let goes_in = walk.take(node);
            next = if goes_in { node.first_child() } else { None };
            let mut at = node;
            while next.is_none() {
                walk.close(&at);
                next = at.next_sibling();
                if next.is_none() {
                    match at.parent() {
                        Some(above) if above.id != body.id => at = above,
                        _ => break,
                    }
                }
            }
        }
        walk.close(&body);
        Self { parts: walk.parts }
    }

    fn part(&self, index: usize) -> Option<&Part<'a>> {
        self.parts.get(index)
    }

    /// The elements around one, from the inner to the outer, without the body.
    fn around(&self, index: usize) -> impl Iterator<Item = &Part<'a>> {
        let up = |index: &usize| self.part(*index).map(|part| part.parent).filter(|above| *above > 0);
        std::iter::successors(up(&index), up).filter_map(|index| self.part(index))
    }

    fn total(&self) -> Weight {
        self.part(0).map(|body| body.after).unwrap_or_default()
    }

    /// Drops every element of which this holds, with all in it.
    fn drop_all(&mut self, is_dropped: impl Fn(&Self, usize, &Part<'a>) -> bool) {
        let mut index = 1;
        let mut dropped = Vec::new();
        while let Some(part) = self.part(index) {
            let goes = !part.is_dropped && is_dropped(self, index, part);
            if goes {
                dropped.push(index);
            }
            index = if goes || part.is_dropped { part.end } else { index + 1 };
        }
        self.mark(&dropped);
    }

    fn mark(&mut self, dropped: &[usize]) {
        if dropped.is_empty() {
            return;
        }
        for index in dropped {
            if let Some(part) = self.parts.get_mut(*index) {
                part.is_dropped = true;
            }
        }
        // What is gone before each element, in one walk: `ends` are the elements that are open.
        let mut gone = Weight::default();
        let (mut index, mut ends) = (0, Vec::<usize>::new());
        while index <= self.parts.len() {
            while let Some(open) = ends.pop_if(|open| self.parts.get(*open).is_some_and(|part| part.end <= index)) {
                if let Some(part) = self.parts.get_mut(open) {
                    part.gone_after = gone;
                }
            }
            let Some(part) = self.parts.get_mut(index) else { return };
            part.gone_before = gone;
            if part.is_dropped {
                gone = gone + (part.after - part.before);
                part.gone_after = gone;
                index = part.end;
            } else {
                ends.push(index);
                index += 1;
            }
        }
    }

    fn is_small(&self, part: &Part<'_>) -> bool {
        (part.after - part.before).text * 100 <= self.total().text * MOST_PERCENT
    }

    fn is_boilerplate(&self, index: usize, part: &Part<'_>) -> bool {
        let weight = part.after - part.before;
        let hints = part.hints;
        let is_told = match part.kind {
            Kind::Body | Kind::Code => false,
            Kind::Main | Kind::Article | Kind::Heading(_) => hints.is_hidden,
            Kind::Never | Kind::Label => true,
            Kind::Form if weight.text * 100 <= self.total().text * FORM_PERCENT => true,
            Kind::Aside if !self.is_in_content(index) => weight.titles == 0,
            Kind::Header if part.parent == 0 => weight.titles == 0,
            _ if hints.is_boilerplate || hints.is_hidden => true,
            _ if hints.may_be_boilerplate => weight.is_linked(NAMED_LINKS_PERCENT) && weight.titles == 0,
            _ if hints.is_header => !self.is_in_content(index) && weight.links > 0 && weight.titles == 0,
            _ => false,
        };
        is_told && self.is_small(part)
    }

    fn is_in_content(&self, index: usize) -> bool {
        self.around(index).any(|above| matches!(above.kind, Kind::Main | Kind::Article | Kind::Section))
    }

    /// Drops the readers' comments on an article: there is one place with them, and it is neither a discussion nor a
    /// review of goods, where the comments are the content.
    fn drop_comments(&mut self) {
        let mut index = 1;
        let mut found: Vec<usize> = Vec::new();
        while let Some(part) = self.part(index) {
            let is_thread = part.hints.is_thread && part.kind != Kind::Inline;
            let is_comments = part.hints.is_comments && part.is_block() && self.is_small(part);
            if !part.is_dropped && !is_thread && is_comments {
                found.push(index);
            }
            // What is in a thread belongs to it.
            index = if part.is_dropped || is_thread || is_comments { part.end } else { index + 1 };
        }
        let parent = |index: &usize| self.part(*index).map(|part| part.parent);
        let first = found.first().and_then(parent);
        if found.iter().all(|index| parent(index) == first) {
            self.mark(&found);
        }
    }

    /// Whether most of the text that is left is no links.
    fn is_prose(&self) -> bool {
        self.part(0).is_some_and(|body| !body.left().is_linked(LINKS_PAGE_PERCENT))
    }

    /// Whether an element is a row of buttons.
    fn is_toolbar(&self, _: usize, part: &Part<'_>) -> bool {
        let left = part.left();
        matches!(part.kind, Kind::List | Kind::Paragraph | Kind::Block)
            && left.controls >= LIST_LINKS
            && left.pressed * 100 > left.text * CONTROLS_PERCENT
            && left.pressed <= left.controls * CONTROL_BYTES_MAX
            && left.titles == 0
            && left.signs == 0
    }

    /// Whether an element is a list of links: links to related pages, tags, the rest of a navigation. A list beside
    /// sentences belongs to them.
    fn is_link_list(&self, _: usize, part: &Part<'_>) -> bool {
        let left = part.left();
        let is_list = match part.kind {
            Kind::List => self.part(part.parent).is_some_and(|above| above.left().sentences == 0),
            Kind::Block | Kind::Section | Kind::Header | Kind::Aside | Kind::Form => true,
            Kind::Paragraph => left.links > LIST_LINKS,
            _ => false,
        };
        is_list
            && left.links >= LIST_LINKS
            && left.sentences == 0
            && left.is_linked(LINKS_PERCENT)
            && left.titles == 0
            && !(left.signs > 0 && left.links <= BYLINE_LINKS_MAX)
    }

    /// Drops headings of which all text below was dropped.
    fn drop_empty_headings(&mut self) {
        let is_empty = |index: usize, part: &Part<'_>| {
            let Kind::Heading(level @ 2..) = part.kind else { return false };
            let Some(above) = self.part(part.parent) else { return false };
            let rest = self.parts.get(index + 1..above.end).unwrap_or_default();
            let next = rest
                .iter()
                .find(|other| !other.is_dropped && matches!(other.kind, Kind::Heading(other) if other <= level));
            let (to, gone) = next.map_or((above.after, above.gone_after), |next| (next.before, next.gone_before));
            let (all, gone) = (to - part.after, gone - part.gone_after);
            let is_block = |other: &&Part<'_>| other.is_dropped && other.is_block() && other.before.text < to.text;
            gone.text > 0 && all.text == gone.text && rest.iter().any(|other| is_block(&other))
        };
        let dropped: Vec<usize> = self
            .parts
            .iter()
            .enumerate()
            .filter(|(index, part)| !part.is_dropped && is_empty(*index, part))
            .map(|(index, _)| index)
            .collect();
        self.mark(&dropped);
    }

    fn content(&self) -> Option<NodeRef<'a>> {
        let body = self.part(0)?;
        let only = |kind: Kind| {
            let mut found = self.parts.iter().filter(|part| part.kind == kind && self.is_left(part));
            found.next().filter(|_| found.next().is_none())
        };
        let is_most = |part: &&Part<'_>| part.left().text * 100 >= body.left().text * ARTICLE_PERCENT;
        let Some(content) = only(Kind::Main).or_else(|| only(Kind::Article).filter(is_most)) else {
            return Some(body.node);
        };
        // The heading of the page may stand before its content.
        let is_in =
            |title: &Part<'_>| title.before.text >= content.before.text && title.after.text <= content.after.text;
        let mut titles = self.parts.iter().filter(|part| part.kind == Kind::Heading(1) && self.is_left(part));
        if let (Some(title), None) = (titles.next(), titles.next())
            && !is_in(title)
        {
            title.node.remove_from_parent();
            content.node.prepend_child(&title.node);
        }
        Some(content.node)
    }

    fn is_left(&self, part: &Part<'_>) -> bool {
        part.left().text > 0 && !part.is_dropped
    }
}

/// The walk that makes an outline.
#[derive(Default)]
struct Walk<'a> {
    parts: Vec<Part<'a>>,
    open: Vec<usize>,
    links: usize,
    is_in_control: bool,
    weight: Weight,
}

impl<'a> Walk<'a> {
    /// Takes in a node; whether what is in it is looked at as well.
    fn take(&mut self, node: NodeRef<'a>) -> bool {
        let text = node.query_or(None, |inner| match &inner.data {
            NodeData::Text { contents } => Some((contents.trim().len(), is_boilerplate_line(contents.trim()))),
            _ => None,
        });
        match text {
            Some((bytes, is_boilerplate)) => {
                let part = self.open.last().and_then(|open| self.parts.get_mut(*open));
                if let Some(part) = part.filter(|part| is_boilerplate && part.before.text == self.weight.text) {
                    part.hints.is_boilerplate = true;
                }
                self.count(bytes);
                false
            }
            None if node.is_element() => self.open(node),
            None => false,
        }
    }

    fn count(&mut self, bytes: usize) {
        self.weight.text += bytes;
        self.weight.pressed += if self.is_in_control { bytes } else { 0 };
        match self.links > 0 {
            true => self.weight.linked += bytes,
            false if bytes >= SENTENCE_BYTES => self.weight.sentences += bytes,
            false => {}
        }
    }

    fn open(&mut self, node: NodeRef<'a>) -> bool {
        let Some(element) = node.element_ref() else { return false };
        let kind = kind(&element);
        let hints = hints::read(&element);
        let is_link = &*element.name.local == "a";
        self.is_in_control = is_link && !element.has_attr("href") || self.is_in_control && !is_link;
        self.weight.controls += usize::from(is_link && self.is_in_control);
        self.weight.signs += usize::from(hints.is_author || &*element.name.local == "time");
        drop(element);
        self.links += usize::from(is_link);
        self.weight.links += usize::from(is_link);
        let parent = self.open.last().copied().unwrap_or(0);
        self.open.push(self.parts.len());
        let (before, gone) = (self.weight, Weight::default());
        self.parts.push(Part {
            node,
            kind,
            hints,
            parent,
            end: 0,
            before,
            after: before,
            gone_before: gone,
            gone_after: gone,
            is_dropped: false,
        });
        self.weight.titles += usize::from(kind == Kind::Heading(1));
        if kind == Kind::Code {
            let bytes = node.text().trim().len();
            self.weight.text += bytes;
            self.weight.sentences += bytes;
        }
        kind != Kind::Code
    }

    fn close(&mut self, node: &NodeRef<'_>) {
        let end = self.parts.len();
        let Some(part) = self.open.last().and_then(|open| self.parts.get_mut(*open)) else { return };
        if part.node.id != node.id {
            return;
        }
        part.end = end;
        part.after = self.weight;
        self.open.pop();
        if node.has_name("a") {
            self.links -= 1;
            self.is_in_control = false;
        }
    }
}

/// Whether a text is no content in any element: a copyright, or the word over an advertisement.
fn is_boilerplate_line(text: &str) -> bool {
    let is_copyright = ["©", "(c) 20", "Copyright ©", "Copyright 20", "Copyright (c)"];
    (text.len() <= COPYRIGHT_BYTES_MAX && is_copyright.iter().any(|start| text.starts_with(start)))
        || ADVERTISEMENT.iter().any(|word| text.len() == word.len() && text.eq_ignore_ascii_case(word))
}

fn kind(element: &Element) -> Kind {
    let role = element.attr("role");
    match role.as_deref() {
        Some("main") => return Kind::Main,
        Some(
            "navigation" | "banner" | "contentinfo" | "search" | "complementary" | "dialog" | "alertdialog" | "menu"
            | "menubar" | "toolbar" | "tablist",
        ) => return Kind::Never,
        _ => {}
    }
    match &*element.name.local {
        "body" => Kind::Body,
        "main" => Kind::Main,
        "article" => Kind::Article,
        "section" => Kind::Section,
        "header" => Kind::Header,
        "aside" => Kind::Aside,
        "nav" | "footer" | "dialog" | "button" | "menu" => Kind::Never,
        "form" => Kind::Form,
        "label" => Kind::Label,
        "h1" => Kind::Heading(1),
        "h2" => Kind::Heading(2),
        "h3" => Kind::Heading(3),
        "h4" => Kind::Heading(4),
        "h5" => Kind::Heading(5),
        "h6" => Kind::Heading(6),
        "pre" | "code" => Kind::Code,
        "ul" | "ol" | "dl" => Kind::List,
        "p" => Kind::Paragraph,
        "div" | "td" | "th" | "tr" | "table" | "tbody" | "li" | "dd" | "dt" | "figure" | "fieldset" | "details"
        | "center" => Kind::Block,
        _ => Kind::Inline,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROSE: &str = "<p>The first paragraph of the page says at some length what the page is about.</p>\
        <p>The second paragraph of the page goes on about that, and has <a href=/x>a link</a> in it as well.</p>";

    fn left(html: &str) -> String {
        let document = Document::from(format!("<body>{html}</body>"));
        let text = content(&document).unwrap().text();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn boilerplate_goes_and_content_stays() {
        let related =
            "<h3>Related</h3><ul><li><a href=/1>One more page</a></li><li><a href=/2>Another page</a></li></ul>";
        let gone = [
            format!("<div>{related}</div>"),
            "<div class='c-shareBar'>gone</div>".to_owned(),
            "<a class=skip-link href=#m>gone</a>".to_owned(),
            "<div role=search>gone</div>".to_owned(),
            "<form><label>gone</label> gone</form>".to_owned(),
            "<div class=tags>Tags: <a href=/t/a>gone</a></div>".to_owned(),
            "<p>© 2026 gone</p>".to_owned(),
            "<div>Advertisement</div>".to_owned(),
            "<ul><li><a>Share</a></li><li><a>Print</a></li></ul>".to_owned(),
            "<section id=comments><h2>2 comments</h2><p>gone</p></section>".to_owned(),
            "<span class=visually-hidden>gone</span>".to_owned(),
        ];
        let prose = left(PROSE);
        for html in gone {
            assert_eq!(left(&format!("<div>{PROSE}</div>{html}")), prose, "{html}");
        }
        let stays = [
            "<h2 class='anchor stickyNavbar'>stays</h2>",
            "<div class=content__header>stays</div>",
            "<div>By <a class=author href=/u/1>stays</a>, <a href=/2>editor</a></div>",
            "<div class=answer><p>stays</p><div class=comments><p>a comment</p></div></div>",
            "<pre><span class=comment># stays</span> <span class=nav>nav</span></pre>",
            "<div class=reviews><ol class=commentlist><li>stays</li></ol></div>",
            "<p><a href=/a>stays</a></p>",
        ];
        for html in stays {
            assert!(left(&format!("<div>{PROSE}</div>{html}")).contains("stays"), "{html}");
        }
    }

    #[test]
    fn a_page_of_links_keeps_them() {
        let links: String =
            (0..30).map(|number| format!("<li><a href=/{number}>Entry {number} of it</a></li>")).collect();
        let text = left(&format!("<h1>All entries</h1><p>A short word.</p><div><ul>{links}</ul></div>"));
        assert!(text.contains("Entry 0 of it") && text.contains("Entry 29 of it"), "{text}");
        let beside = format!(
            "<div>{PROSE}<p>See also:</p><ul><li><a href=/1>One</a></li><li><a href=/2>Two</a></li></ul></div>"
        );
        assert!(left(&beside).ends_with("See also:OneTwo"), "{}", left(&beside));
    }

    #[test]
    fn a_heading_before_the_main_element_stays() {
        let page =
            format!("<div class=site-header><a href=/>Site</a></div><h1>Title</h1><main>{PROSE}</main><p>after</p>");
        let text = left(&page);
        assert!(text.starts_with("TitleThe first paragraph") && !text.contains("after"), "{text}");
    }
}
