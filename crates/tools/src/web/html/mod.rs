//! HTML as Markdown: the main text of a page, or the elements that a selector finds.
//!
//! `nesting` makes the page safe to parse. `dom_smoothie` finds the main text; where it finds too little of a page (a list,
//! a forum, a shop), all of the page without its `boilerplate` is taken. Links are absolute, and only those to web
//! addresses stay. Nothing here is run or fetched.

mod boilerplate;
mod nesting;

use dom_query::{Document, NodeRef};
use dom_smoothie::{CandidateSelectMode, Config, Readability, TextMode};
use reqwest::Url;

use super::TEXT_BYTES_MAX;

/// Bytes at the start of a page in which it may say its encoding.
const CHARSET_BYTES: usize = 1_024;
/// Of the text without boilerplate, in percent: a main text with less has missed most of the page (a list, a shop).
const MAIN_PERCENT_MIN: usize = 40;
/// Of the text without boilerplate, in percent: a main text with more leaves out little but titles and names.
const MAIN_PERCENT_MOST: usize = 80;
/// Bytes of text without boilerplate: shorter pages are taken as they are.
const SHORT_PAGE_BYTES: usize = 1_000;
/// Bytes of HTML: the main text of a longer page is not searched for, because that takes time beyond all use.
const MAIN_HTML_BYTES_MAX: usize = 2 << 20;
/// Bytes of all addresses of links together: relative links of a page with a long address grow.
const LINKS_BYTES_MAX: usize = TEXT_BYTES_MAX / 2;

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
    let html_bytes = nested.html.len();
    let document = Document::from(nested.html);
    resolve_links(&document, base);
    let title = one_line(&document.select("title").first().text());
    let text = match selector {
        Some(selector) => selected(&document, selector, &title)?,
        None => main_text(document, html_bytes),
    };
    let (text, fits) = bounded(tidy(&text).replace(AMPERSAND, "&"));
    Ok(ReadablePage { title, text, has_scripts: nested.has_scripts, is_whole: fits && !nested.is_cut })
}

fn bounded(mut text: String) -> (String, bool) {
    let fits = text.len() <= TEXT_BYTES_MAX;
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    (text, fits)
}

fn selected(document: &Document, selector: &str, title: &str) -> Result<String, SelectorError> {
    let found = document.try_select(selector);
    let found = match found {
        Some(found) => found,
        None if dom_query::Matcher::new(selector).is_err() => return Err(SelectorError::Invalid),
        None => return Err(SelectorError::NotFound { title: title.to_owned() }),
    };
    if found.nodes().is_empty() {
        return Err(SelectorError::NotFound { title: title.to_owned() });
    }
    // An element in another one that was found is told with it.
    let ids: Vec<_> = found.nodes().iter().map(|node| node.id).collect();
    let outer = found.nodes().iter().filter(|node| !node.ancestors_it(None).any(|above| ids.contains(&above.id)));
    let texts: Vec<String> = outer.map(|node| markdown(node, true)).collect();
    Ok(texts.join("\n\n"))
}

fn markdown(node: &NodeRef<'_>, include_node: bool) -> String {
    let text = match include_node {
        true => node.to_fragment().root().md(None),
        false => node.md(None),
    };
    text.to_string()
}

fn main_text(document: Document, html_bytes: usize) -> String {
    let cleaned = document.clone();
    boilerplate::remove(&cleaned);
    let whole = content(&cleaned);
    let (all, links) = lengths(&whole);
    // With so few links `is_main` cannot hold, and searching for the main text takes most of the time.
    let is_prose = links * 200 < all * (100 - MAIN_PERCENT_MOST);
    if is_prose || whole.len() < SHORT_PAGE_BYTES || html_bytes > MAIN_HTML_BYTES_MAX {
        return whole;
    }
    match article(document) {
        Some(main) if is_main(&main, &whole) => main,
        _ => whole,
    }
}

/// Whether the main text is better than all text without boilerplate: what it leaves out is more than titles and names, and
/// is mostly links.
fn is_main(main: &str, whole: &str) -> bool {
    let ((main, main_links), (whole, whole_links)) = (lengths(main), lengths(whole));
    let (rest, rest_links) = (whole.saturating_sub(main), whole_links.saturating_sub(main_links));
    let percent = main * 100 / whole.max(1);
    (MAIN_PERCENT_MIN..MAIN_PERCENT_MOST).contains(&percent) && rest_links * 2 >= rest
}

/// Bytes of a Markdown text without the addresses of its links, and of the words of its links.
fn lengths(text: &str) -> (usize, usize) {
    let (mut all, mut links) = (0, 0);
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        all += before.len();
        links += before.rfind('[').map_or(0, |start| before.len() - start);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    (all + rest.len(), links)
}

/// All of the page that is left, or of its one `main` element.
fn content(document: &Document) -> String {
    let main = document.select("main, [role=main]");
    let node = match main.nodes() {
        [main] => Some(*main),
        _ => document.body(),
    };
    node.map(|node| markdown(&node, false)).unwrap_or_default()
}

fn article(document: Document) -> Option<String> {
    let config = Config {
        text_mode: TextMode::Markdown,
        disable_json_ld: true,
        candidate_select_mode: CandidateSelectMode::DomSmoothie,
        ..Config::default()
    };
    let article = Readability::with_document(document, None, Some(config)).ok()?.parse().ok()?;
    Some(article.text_content.to_string())
}

/// Makes links absolute. A link that leads to no web address loses its address, and a picture without words is removed.
fn resolve_links(document: &Document, base: &Url) {
    let own = document.select("base[href]").first().attr("href");
    let base = own.and_then(|own| base.join(&own).ok()).filter(is_web).unwrap_or_else(|| base.clone());
    let mut bytes = 0;
    for link in document.select("a[href]").nodes() {
        let href = link.attr("href").unwrap_or_default();
        let href = href.trim();
        let leads = Some(href).filter(|href| !href.starts_with('#') && !href.is_empty());
        let leads = leads.and_then(|href| base.join(href).ok()).filter(is_web);
        bytes += leads.as_ref().map_or(0, |url| url.as_str().len());
        match leads {
            Some(url) if bytes <= LINKS_BYTES_MAX => link.set_attr("href", &url.as_str().replace('&', AMPERSAND)),
            _ => link.remove_attr("href"),
        }
        link.remove_attr("title");
    }
    for picture in document.select("img").nodes() {
        let alt = one_line(&picture.attr("alt").unwrap_or_default());
        if alt.is_empty() {
            picture.remove_from_parent();
        } else {
            // The words are of use to a reader, the address is not.
            picture.replace_with_html(format!("<span>[{}]</span>", escaped(&alt)));
        }
    }
}

fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
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
