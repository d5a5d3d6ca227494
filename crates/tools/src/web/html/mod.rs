//! HTML as Markdown: the main text of a page, or the elements that a selector finds.
//!
//! `nesting` makes the page safe to parse; `boilerplate` takes out navigation and the like, also by the names of elements
//! (`hints`); `layout` keeps apart in Markdown what a browser would lay out apart. Links are absolute, and only those to
//! web addresses stay. Nothing here is run or fetched.

mod boilerplate;
mod hints;
mod layout;
mod nesting;

use dom_query::{Document, NodeRef};
use reqwest::Url;

use super::TEXT_BYTES_MAX;

/// Bytes at the start of a page in which it may say its encoding.
const CHARSET_BYTES: usize = 1_024;
/// Bytes of all addresses of links together: relative links of a page with a long address grow.
const LINKS_BYTES_MAX: usize = TEXT_BYTES_MAX / 2;

/// Elements between a picture and the figure that it is in.
const CAPTION_DEPTH_MAX: usize = 4;

/// Stands for `&` in addresses until the text is written: Markdown would have `&amp;`, and a model would copy that.
const AMPERSAND: &str = "\u{e000}";

/// A page to read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ReadablePage {
    pub(super) title: String,
    pub(super) text: String,
    /// Whether the page has scripts.
    pub(super) has_scripts: bool,
    /// Whether all of the page is in the text.
    pub(super) is_whole: bool,
}

/// A selector that matches nothing, or is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SelectorError {
    Invalid,
    NotFound { title: String },
}

/// The encoding that a page says it is in.
pub(super) fn charset(body: &[u8]) -> Option<&str> {
    let head = body.get(..CHARSET_BYTES).unwrap_or(body);
    let head = head.utf8_chunks().map(|chunk| chunk.valid()).find(|text| text.contains("charset="))?;
    let (_, rest) = head.split_once("charset=")?;
    let rest = rest.trim_start_matches(['"', '\'']);
    let end = rest.find(|letter: char| !(letter.is_ascii_alphanumeric() || "-_:".contains(letter)));
    Some(rest.get(..end.unwrap_or(rest.len())).unwrap_or_default()).filter(|name| !name.is_empty())
}

/// A page as a tree.
pub(super) fn document(page: &str) -> Document {
    Document::from(nesting::nested(page).html)
}

/// The main text of a page, or the elements that a selector finds.
pub(super) fn readable(page: &str, base: &Url, selector: Option<&str>) -> Result<ReadablePage, SelectorError> {
    let nested = nesting::nested(page);
    let document = Document::from(nested.html);
    resolve_links(&document, base);
    let title = one_line(&document.select_single("title").text());
    let text = match selector {
        Some(selector) => selected(&document, selector, &title)?,
        None => main_text(&document),
    };
    let (text, fits) = bounded(tidy(&text).replace(AMPERSAND, "&"));
    Ok(ReadablePage { title, text, has_scripts: nested.has_scripts, is_whole: fits && !nested.is_cut })
}

fn bounded(mut text: String) -> (String, bool) {
    let fits = text.len() <= TEXT_BYTES_MAX;
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    (text, fits)
}

/// Whether a text is a CSS selector.
pub(super) fn is_selector(text: &str) -> bool {
    dom_query::Matcher::new(text).is_ok()
}

fn selected(document: &Document, selector: &str, title: &str) -> Result<String, SelectorError> {
    let found = document.try_select(selector);
    let found = match found {
        Some(found) => found,
        None if !is_selector(selector) => return Err(SelectorError::Invalid),
        None => return Err(SelectorError::NotFound { title: title.to_owned() }),
    };
    if found.nodes().is_empty() {
        return Err(SelectorError::NotFound { title: title.to_owned() });
    }
    // An element in another one that was found is told with it.
    let ids: Vec<_> = found.nodes().iter().map(|node| node.id).collect();
    let outer = found.nodes().iter().filter(|node| !node.ancestors_it(None).any(|above| ids.contains(&above.id)));
    let texts: Vec<String> = outer.map(|node| markdown(&node.to_fragment().root())).collect();
    Ok(texts.join("\n\n"))
}

/// What is in a node as Markdown. The node is changed.
fn markdown(node: &NodeRef<'_>) -> String {
    layout::prepare(node);
    node.md(None).to_string()
}

fn main_text(document: &Document) -> String {
    boilerplate::content(document).map(|node| markdown(&node)).unwrap_or_default()
}

/// Makes links absolute. A link that leads to no web address loses its address. The words for a picture take its place, but
/// not if it has a caption.
fn resolve_links(document: &Document, base: &Url) {
    let own = document.select_single("base[href]").attr("href");
    let base = own.and_then(|own| base.join(&own).ok()).filter(is_web).unwrap_or_else(|| base.clone());
    let mut bytes = 0;
    let nodes: Vec<NodeRef<'_>> = document.root().descendants_it().filter(NodeRef::is_element).collect();
    for node in nodes {
        let is_link = node.has_name("a");
        if is_link && let Some(href) = node.attr("href") {
            let href = href.trim();
            let leads = Some(href).filter(|href| !href.starts_with('#') && !href.is_empty());
            let leads = leads.and_then(|href| base.join(href).ok()).filter(is_web);
            bytes += leads.as_ref().map_or(0, |url| url.as_str().len());
            match leads {
                Some(url) if bytes <= LINKS_BYTES_MAX => {
                    node.set_attr("href", &url.as_str().replace('&', AMPERSAND));
                }
                _ => node.remove_attr("href"),
            }
            node.remove_attr("title");
        } else if !is_link && node.has_name("img") {
            let alt = one_line(&node.attr("alt").unwrap_or_default());
            // The words are of use to a reader, the address is not.
            if alt.is_empty() || has_caption(&node) {
                node.remove_from_parent();
            } else {
                node.rename("span");
                node.append_child(&document.tree.new_text(format!("[{alt}]")));
            }
        }
    }
}

fn has_caption(picture: &NodeRef<'_>) -> bool {
    let figure = picture.ancestors_it(Some(CAPTION_DEPTH_MAX)).find(|above| above.has_name("figure"));
    figure.is_some_and(|figure| figure.children_it(false).any(|child| child.has_name("figcaption")))
}

fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text without runs of empty lines.
fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut empty = 0;
    for line in text.trim().lines() {
        let line = line.trim_end();
        empty = if line.is_empty() { empty + 1 } else { 0 };
        if empty < 2 {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(page: &str) -> String {
        readable(page, &Url::parse("https://a.org/x/").unwrap(), None).unwrap().text
    }

    #[test]
    fn pages_become_markdown() {
        let table = [
            ("plain &amp; simple", "plain & simple\n"),
            ("<p>one<p>two<br>three", "one\n\ntwo\nthree\n"),
            ("<h2>Head</h2><ul><li>a<li><b>b</b> c</ul>", "## Head\n\n- a\n- **b** c\n"),
            (
                "<a href='y?a=1&amp;b=2'>why</a> <a href=#z>z</a> <a href=javascript:x>j</a> <a href=data:text/html,x>d</a>",
                "[why](https://a.org/x/y?a=1&b=2) z j d\n",
            ),
            ("<base href=/b/><a href=c>w</a>", "[w](https://a.org/b/c)\n"),
            ("<pre>a\n  b &lt;c&gt;</pre>d", "```\na\n  b <c>\n```\nd\n"),
            (
                "<table><tr><th>k</th><th>v</th></tr><tr><td>1</td><td>2</td></tr></table>",
                "| k | v |\n| - | - |\n| 1 | 2 |\n",
            ),
            ("<script>if (a < b) '</p>'</script>x<style>p{}</style>", "x\n"),
            ("<SCRIPT>a</Script >b<!-- <p>c --> d<!doctype html>", "b d\n"),
            ("a < b and <b title='x > y'>c</b>", "a \\< b and **c**\n"),
            ("<img alt='a cat' src=x>&#x4f60;&#22909;&bogus;&", "\\[a cat\\]你好&bogus;&\n"),
            ("<title>T</title><body>b", "b\n"),
            (
                "<nav>menu</nav><p>The text of the page is much longer than its menu.",
                "The text of the page is much longer than its menu.\n",
            ),
            ("", ""),
        ];
        for (page, want) in table {
            assert_eq!(read(page), want, "{page}");
        }
    }

    #[test]
    fn a_selector_finds_elements() {
        let base = Url::parse("https://a.org/").unwrap();
        let page = "<title>T</title><div class=a><p class=a>one</p></div><nav class=a>two</nav>";
        let find = |selector: &str| readable(page, &base, Some(selector)).map(|page| page.text);
        assert_eq!(find(".a").unwrap(), "one\n\ntwo\n", "also what would be left out, and nothing twice");
        assert_eq!(find(".b"), Err(SelectorError::NotFound { title: "T".to_owned() }));
        assert_eq!(find("]["), Err(SelectorError::Invalid));
    }

    #[test]
    fn a_page_that_grows_is_cut() {
        let base = Url::parse(&format!("https://a.org/{}/", "x".repeat(4_000))).unwrap();
        let page = "<a href=é>w</a> ".repeat(2_500);
        let text = readable(&page, &base, None).unwrap().text;
        assert!(text.starts_with("[w](https://a.org/xxx"), "links make 10 MB of 40 KB");
        assert!(text.len() <= TEXT_BYTES_MAX && text.contains("w w w"), "{}", text.len());
    }

    #[test]
    fn a_page_says_its_encoding() {
        assert_eq!(charset(b"<html><meta charset=\"gbk\"><p>\xc4\xe3"), Some("gbk"));
        assert_eq!(charset(b"<meta content='text/html; charset=utf-8'>"), Some("utf-8"));
        assert_eq!(charset(b"<p>none"), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_page_is_read(
            page in "(<|>|</|!--|-->|a|p|b|div|pre|script|td|table|ul|li|svg|title| |=|href|'|\"|&|;|#x1F;|é|\n){0,80}",
            other in any::<String>(),
        ) {
            prop_assert!(read(&page).len() <= page.len() * 60 + 60);
            let _ = (read(&other), charset(other.as_bytes()));
        }
    }

    #[test]
    fn a_hostile_page_takes_no_longer_than_others() {
        let pieces = [
            "<div>",
            "<a href='",
            "<!--",
            "<script>",
            "&",
            "<pre><",
            "</",
            "<a b",
            "<p a=\"",
            "<svg>",
            "<dd><li>x",
            "<span><div></span>x",
            "<p><b a=>x",
            "<table><tr><td>x",
            "<ul><li>x",
            "<blockquote>x\n",
            "<b><div></b>x",
            "<a x=1 y=2 z=3><div>",
            "<h1><h2>",
            "<object><p>",
            "<select><option>",
            "<title>",
            "<textarea>",
            "<math><mi>",
        ];
        for piece in pieces {
            let page = piece.repeat(30_000 / piece.len());
            assert!(read(&page).len() <= page.len() * 60, "{piece}");
        }
        let attributes = format!("<a {}>w</a>", (0..50_000).map(|number| format!("a{number} ")).collect::<String>());
        assert_eq!(read(&attributes), "w\n");
    }
}
