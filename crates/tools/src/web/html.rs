//! HTML as text that can be read: headings, lists, links, tables and preformatted text; no scripts, no styles.
//!
//! One pass over the tags, forgiving as browsers are, in time and memory bounded by the page. Nothing here is run or
//! fetched. It makes no tree, so it cannot be made to nest too deep.

use reqwest::Url;

use super::TEXT_BYTES_MAX;

/// Elements whose content is no text of the page.
const SILENT: [&str; 9] = ["script", "style", "noscript", "template", "svg", "iframe", "object", "select", "canvas"];
/// Elements that stand on lines of their own.
const BLOCKS: [&str; 31] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "hr",
    "html",
    "main",
    "nav",
    "ol",
    "p",
    "section",
    "summary",
    "table",
    "tbody",
    "tfoot",
    "thead",
    "tr",
    "ul",
    "caption",
];
/// Bytes at the start of a page in which it may say its encoding.
const CHARSET_BYTES: usize = 1_024;

/// The encoding that a page says it is in.
pub(super) fn charset(body: &[u8]) -> Option<&str> {
    let head = body.get(..CHARSET_BYTES).unwrap_or(body);
    let head = head.utf8_chunks().map(|chunk| chunk.valid()).find(|text| text.contains("charset="))?;
    let (_, rest) = head.split_once("charset=")?;
    let rest = rest.trim_start_matches(['"', '\'']);
    let end = rest.find(|letter: char| !(letter.is_ascii_alphanumeric() || "-_:".contains(letter)));
    Some(rest.get(..end.unwrap_or(rest.len())).unwrap_or_default()).filter(|name| !name.is_empty())
}

/// The text of a page, and whether it is all of it: links are written behind their words, as whole addresses, so a
/// small page can have a large text.
pub(super) fn readable(page: &str, base: &Url) -> (String, bool) {
    let mut writer = TextWriter::default();
    let mut rest = page;
    while let Some((text, after)) = rest.split_once('<') {
        writer.text(text);
        if writer.out.len() > TEXT_BYTES_MAX {
            break;
        }
        rest = match after {
            comment if comment.starts_with("!--") => comment.split_once("-->").map_or("", |(_, rest)| rest),
            other if other.starts_with(['!', '?']) => other.split_once('>').map_or("", |(_, rest)| rest),
            tag if tag.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '/') => {
                let (tag, rest) = cut_tag(tag);
                let tag = HtmlTag::read(tag);
                let is_silent = !tag.is_end && SILENT.contains(&tag.name.as_str());
                if is_silent && !tag.is_whole {
                    after_end(rest, &tag.name)
                } else {
                    writer.tag(&tag, base);
                    rest
                }
            }
            // A lonely sign is text.
            other => {
                writer.text("<");
                other
            }
        };
    }
    if writer.out.len() <= TEXT_BYTES_MAX {
        writer.text(rest);
    }
    let mut text = writer.finish();
    let is_whole = text.len() <= TEXT_BYTES_MAX;
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    (text, is_whole)
}

/// What is inside a tag and what follows it; a `>` inside of quotes does not end it.
fn cut_tag(text: &str) -> (&str, &str) {
    let mut quote = None;
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), letter) if open == letter => quote = None,
            (None, '"' | '\'') if text.get(..at).is_some_and(|before| before.trim_end().ends_with('=')) => {
                quote = Some(letter);
            }
            (None, '>') => return (text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default()),
            _ => {}
        }
    }
    (text, "")
}

/// What follows the end of an element that is passed over.
fn after_end<'a>(text: &'a str, name: &str) -> &'a str {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("</") {
        if after.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)) {
            return after.split_once('>').map_or("", |(_, rest)| rest);
        }
        rest = after;
    }
    ""
}

struct HtmlTag {
    name: String,
    is_end: bool,
    /// Whether it ends in itself (`<br/>`).
    is_whole: bool,
    href: Option<String>,
    alt: Option<String>,
}

impl HtmlTag {
    fn read(text: &str) -> Self {
        let is_end = text.starts_with('/');
        let text = text.trim_start_matches('/');
        let end = text.find(|letter: char| letter.is_whitespace() || letter == '/').unwrap_or(text.len());
        let (name, attributes) = text.split_at(end);
        Self {
            name: name.to_ascii_lowercase(),
            is_end,
            is_whole: text.ends_with('/'),
            href: attribute(attributes, "href"),
            alt: attribute(attributes, "alt"),
        }
    }
}

fn attribute(text: &str, wanted: &str) -> Option<String> {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '/');
        let end = rest.find(|letter: char| letter.is_whitespace() || letter == '=' || letter == '/')?;
        let (name, after) = rest.split_at(end);
        let Some(value) = after.trim_start().strip_prefix('=').map(str::trim_start) else {
            // A name without a value; a sign that belongs to nothing is passed over, so this comes to an end.
            rest = if name.is_empty() { after.get(1..)? } else { after };
            continue;
        };
        let (value, after) =
            match value.strip_prefix('"').map(|rest| (rest, '"')).or(value.strip_prefix('\'').map(|rest| (rest, '\'')))
            {
                Some((rest, quote)) => rest.split_once(quote).unwrap_or((rest, "")),
                None => value.split_at(value.find(char::is_whitespace).unwrap_or(value.len())),
            };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(unescape(value));
        }
        rest = after;
    }
}

/// The text as it grows.
#[derive(Default)]
struct TextWriter {
    out: String,
    /// Whether white space is kept as it is.
    in_pre: usize,
    /// Whether a space is due before the next word.
    gap: bool,
    /// Where the words of a link began, and where it leads.
    link: Option<(usize, String)>,
    /// Whether cells of this row were written.
    in_row: bool,
}

impl TextWriter {
    fn text(&mut self, text: &str) {
        let text = unescape(text);
        if self.in_pre > 0 {
            self.out.push_str(&text);
            return;
        }
        self.gap |= text.starts_with(char::is_whitespace);
        for word in text.split_whitespace() {
            if self.gap && !self.out.is_empty() && !self.out.ends_with([' ', '\n']) {
                self.out.push(' ');
            }
            self.out.push_str(word);
            self.gap = true;
        }
        self.gap = text.ends_with(char::is_whitespace) || (text.is_empty() && self.gap);
    }

    fn tag(&mut self, tag: &HtmlTag, base: &Url) {
        match (tag.name.as_str(), tag.is_end) {
            ("br", _) => self.out.push('\n'),
            ("pre", false) => {
                self.block();
                self.out.push_str("```\n");
                self.in_pre += 1;
            }
            ("pre", true) if self.in_pre > 0 => {
                self.in_pre -= 1;
                self.line();
                self.out.push_str("```\n");
                self.block();
            }
            ("h1" | "h2" | "h3" | "h4" | "h5" | "h6", false) => {
                self.block();
                let level = tag.name.trim_start_matches('h').parse().unwrap_or(1);
                self.out.push_str(&"#".repeat(level));
                self.gap = true;
            }
            ("h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "title", true) => self.block(),
            ("li", false) => {
                self.line();
                self.out.push('-');
                self.gap = true;
            }
            ("td" | "th", false) => {
                if self.in_row {
                    self.out.push_str(" |");
                    self.gap = true;
                }
                self.in_row = true;
            }
            ("tr", false) => {
                self.in_row = false;
                self.line();
            }
            ("a", false) => {
                let leads = tag.href.as_ref().filter(|href| !href.starts_with('#'));
                let leads = leads.and_then(|href| base.join(href).ok()).filter(|url| url.scheme().starts_with("http"));
                self.link = leads.map(|url| (self.out.len(), url.to_string()));
            }
            ("a", true) => self.end_link(),
            ("img", false) => {
                if let Some(alt) = tag.alt.as_ref().filter(|alt| !alt.trim().is_empty()) {
                    self.text(&format!(" [{}] ", alt.trim()));
                }
            }
            (name, _) if BLOCKS.contains(&name) => {
                if matches!(name, "p" | "blockquote" | "table" | "ul" | "ol" | "section" | "article") {
                    self.block()
                } else {
                    self.line()
                }
            }
            _ => {}
        }
    }

    fn end_link(&mut self) {
        let Some((from, url)) = self.link.take() else { return };
        let words = self.out.get(from..).unwrap_or_default().trim();
        if !words.is_empty() && words != url {
            self.out.push_str(&format!(" ({url})"));
        }
    }

    /// Goes on in a new line.
    fn line(&mut self) {
        if self.in_pre == 0 {
            let end = self.out.trim_end_matches(' ').len();
            self.out.truncate(end);
        }
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
        self.gap = false;
    }

    /// Goes on after an empty line.
    fn block(&mut self) {
        self.line();
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    fn finish(mut self) -> String {
        self.end_link();
        self.out.trim().to_owned() + "\n"
    }
}

/// The text with its character references written out.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let end = after.bytes().take(12).position(|byte| byte == b';');
        let letter = end.and_then(|end| Some((reference(after.get(..end)?)?, after.get(end + 1..)?)));
        rest = match letter {
            Some((letter, after)) => {
                out.push(letter);
                after
            }
            None => {
                out.push('&');
                after
            }
        };
    }
    out + rest
}

fn reference(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(code);
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" | "ensp" | "emsp" | "thinsp" => ' ',
        "ndash" => '–',
        "mdash" => '—',
        "hellip" => '…',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        "laquo" => '«',
        "raquo" => '»',
        "bull" => '•',
        "middot" => '·',
        "copy" => '©',
        "reg" => '®',
        "trade" => '™',
        "times" => '×',
        "rarr" => '→',
        "larr" => '←',
        "deg" => '°',
        "para" => '¶',
        "sect" => '§',
        "euro" => '€',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(page: &str) -> String {
        readable(page, &Url::parse("https://a.org/x/").unwrap()).0
    }

    #[test]
    fn a_page_that_grows_is_cut() {
        let base = Url::parse(&format!("https://a.org/{}/", "x".repeat(4_000))).unwrap();
        let page = "<a href=é>w</a>".repeat(20_000);
        let (text, is_whole) = readable(&page, &base);
        assert!(!is_whole && text.starts_with("w (https://a.org/xxx"), "links make 80 MB of 300 KB");
        assert!(text.len() <= TEXT_BYTES_MAX && text.len() > TEXT_BYTES_MAX - 4, "{}", text.len());
        assert!(text.capacity() < 4 * TEXT_BYTES_MAX, "{}", text.capacity());
        assert_eq!(readable("<p>a", &base), ("a\n".to_owned(), true));
    }

    #[test]
    fn pages_become_text() {
        let table = [
            ("plain &amp; simple", "plain & simple\n"),
            ("<p>one<p>two<br>three", "one\n\ntwo\nthree\n"),
            ("<h2>Head</h2><ul><li>a<li><b>b</b> c</ul>", "## Head\n\n- a\n- b c\n"),
            (
                "<a href='y?a=1&amp;b=2'>why</a> <a href=#z>z</a> <a href=javascript:x>j</a>",
                "why (https://a.org/x/y?a=1&b=2) z j\n",
            ),
            ("<pre>a\n  b &lt;c&gt;</pre>d", "```\na\n  b <c>\n```\n\nd\n"),
            ("<table><tr><th>k</th><th>v</th></tr><tr><td>1</td><td>2</td></tr></table>", "k | v\n1 | 2\n"),
            ("<script>if (a < b) '</p>'</script>x<style>p{}</style>", "x\n"),
            ("<SCRIPT>a</Script >b<!-- <p>c --> d<!doctype html>", "b d\n"),
            ("a < b and <b title='x > y'>c</b>", "a < b and c\n"),
            ("<img alt='a cat' src=x>&#x4f60;&#22909;&bogus;&", "[a cat] 你好&bogus;&\n"),
            ("<title>T</title><body>b", "T\n\nb\n"),
            ("", "\n"),
        ];
        for (page, want) in table {
            assert_eq!(read(page), want, "{page}");
        }
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
        fn any_page_is_read(page in "(<|>|/|!--|-->|a|pre|script|td|li| |=|href|'|\"|&|;|#x1F;|é|\n){0,60}", other in any::<String>()) {
            prop_assert!(read(&page).len() <= page.len() * 60 + 2);
            let _ = (read(&other), charset(other.as_bytes()));
        }
    }

    #[test]
    fn a_hostile_page_takes_no_longer_than_others() {
        for piece in ["<div>", "<a href='", "<!--", "<script>", "&", "<pre><", "</", "<a b", "<p a=\""] {
            let page = piece.repeat(200_000);
            assert!(read(&page).len() <= page.len() * 3);
        }
    }
}
