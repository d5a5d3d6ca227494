//! The text of a reply: HTML as Markdown, JSON laid out, documents as their text, other text as it is.

use std::io;

use encoding_rs::{Encoding, UTF_8};
use max_team_core::limits::{DOCUMENT_BYTES_MAX, FETCH_PAGE_BYTES_MAX, PAGE_BYTES_MAX};
use reqwest::Url;

use super::fault::{PageNote, WebFault};
use super::html::{self, SelectorError};
use super::{HttpReply, TEXT_BYTES_MAX};
use crate::document;
use crate::text::{clip, visible};
use crate::tool::{ToolContext, ToolError};

/// Bytes at the start of a body that tell whether it is text.
const HEAD_BYTES: usize = 8 << 10;
/// Bytes of a title that are told.
const TITLE_BYTES_MAX: usize = 200;
/// Bytes of text below which a page with scripts counts as empty.
const EMPTY_BYTES_MAX: usize = 100;

/// What of a page is wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct PageView {
    pub(crate) selector: Option<String>,
    pub(crate) raw: bool,
}

/// The text of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PageText {
    pub(crate) text: String,
    /// What is to be known about it: its type, its title, what is missing.
    pub(crate) notes: Vec<PageNote>,
    pub(crate) is_error: bool,
    /// Whether something of the page is missing.
    pub(crate) is_incomplete: bool,
    /// Whether there is next to no text, and scripts that may write it.
    pub(crate) needs_scripts: bool,
}

impl PageText {
    /// Reads a reply. Blocking.
    pub(crate) fn read(cx: &ToolContext, url: &Url, reply: &HttpReply, view: &PageView) -> Result<Self, WebFault> {
        let mut page = Self {
            notes: vec![PageNote::Answer { status: reply.status, media_type: reply.media_type.clone() }],
            is_error: reply.status >= 400,
            is_incomplete: reply.is_cut || reply.broken.is_some(),
            ..Self::default()
        };
        let document = document::kind(&reply.body).filter(|_| !page.is_error);
        let bytes = reply.body.len() as u64;
        let address = || shown(url.as_str());
        if let Some(flaw) = reply.broken.clone() {
            if let Some(kind) = document {
                return Err(WebFault::PartOfDocument { url: address(), flaw, bytes, kind });
            }
            page.notes.push(PageNote::Incomplete { bytes, flaw });
            page.is_error = true;
        }
        if let Some(kind) = document.filter(|_| reply.is_cut) {
            return Err(WebFault::LargeDocument { url: address(), kind, most: DOCUMENT_BYTES_MAX });
        }
        if reply.is_cut {
            page.notes.push(PageNote::Cut(PAGE_BYTES_MAX as u64));
        }
        if let Some(kind) = document {
            let failed = |error: ToolError| WebFault::Document { url: address(), why: error.to_string() };
            page.text = document::text(cx, reply.body.as_slice()).map_err(failed)?;
            page.notes.push(PageNote::Document(kind));
            return Ok(page);
        }
        if reply.body.is_empty() {
            page.notes.push(PageNote::Empty);
        } else if let Some(encoding) = &reply.encoding {
            page.notes.push(PageNote::Compressed(shown(encoding)));
            return Ok(Self { is_error: true, ..page });
        } else if !is_text(reply) {
            page.notes.push(PageNote::Binary(bytes));
            return Ok(Self { is_error: true, ..page });
        }
        let text = decode(reply);
        match reply.media_type.as_str() {
            "" if !view.raw && looks_like_html(&text) => page.read_html(&text, url, view)?,
            _ if view.raw => page.text = text,
            "text/html" | "application/xhtml+xml" => page.read_html(&text, url, view)?,
            media if media == "application/json" || media.ends_with("+json") => page.text = pretty(text),
            _ => page.text = text,
        }
        Ok(page)
    }

    fn read_html(&mut self, html: &str, url: &Url, view: &PageView) -> Result<(), WebFault> {
        let selector = view.selector.as_deref();
        let page = html::readable(html, url, selector).map_err(|error| {
            let selector = selector.unwrap_or_default();
            match error {
                SelectorError::Invalid => no_selector(url, selector),
                SelectorError::NotFound { title } => {
                    WebFault::NotFound { url: shown(url.as_str()), title: shown(&title), selector: shown(selector) }
                }
            }
        })?;
        if !page.title.is_empty() {
            self.notes.push(PageNote::Title(shown(&page.title)));
        }
        if !page.is_whole {
            self.is_incomplete = true;
            self.notes.push(PageNote::TextCut(page.text.len() as u64));
        }
        self.needs_scripts = selector.is_none() && page.has_scripts && page.text.trim().len() < EMPTY_BYTES_MAX;
        self.text = page.text;
        Ok(())
    }

    /// One part of the text, and how many there are; `number` is from 1.
    pub(crate) fn part(&self, number: usize) -> (Option<&str>, usize) {
        let parts = parts(&self.text);
        (parts.get(number.saturating_sub(1)).copied(), parts.len())
    }
}

/// Checks that a selector is one.
pub(super) fn check_selector(url: &Url, selector: &str) -> Result<(), WebFault> {
    if html::is_selector(selector) { Ok(()) } else { Err(no_selector(url, selector)) }
}

fn no_selector(url: &Url, selector: &str) -> WebFault {
    WebFault::NoSelector { url: shown(url.as_str()), selector: shown(selector) }
}

/// A title, a selector or an address, as much of it as is told.
fn shown(text: &str) -> String {
    visible(&clip(text, TITLE_BYTES_MAX))
}

/// The parts in which a text is told: each ends with a line if one ends in its second half. There is at least one.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while rest.len() > FETCH_PAGE_BYTES_MAX {
        let most = rest.floor_char_boundary(FETCH_PAGE_BYTES_MAX);
        let line = rest.get(..most).and_then(|head| head.rfind('\n')).map(|at| at + 1);
        let (head, tail) = rest.split_at(line.filter(|at| *at > most / 2).unwrap_or(most));
        parts.push(head);
        rest = tail;
    }
    if !rest.is_empty() || parts.is_empty() {
        parts.push(rest);
    }
    parts
}

fn is_text(reply: &HttpReply) -> bool {
    let media = reply.media_type.as_str();
    let textual = ["json", "xml", "javascript", "ecmascript", "yaml", "toml", "sql", "graphql", "x-sh", "csv"];
    let head = reply.body.get(..HEAD_BYTES).unwrap_or(&reply.body);
    // UTF-16 has zeros in it, and says what it is, in the header or with its first character.
    let has_mark = Encoding::for_bom(head).is_some();
    let is_wide =
        has_mark || reply.charset.as_ref().is_some_and(|name| name.to_ascii_lowercase().starts_with("utf-16"));
    if head.contains(&0) && !is_wide {
        return false;
    }
    let is_told = media.starts_with("text/") || textual.iter().any(|word| media.ends_with(word));
    match media {
        "" => is_wide || has_no_controls(head),
        "application/octet-stream" => has_mark || is_utf8(head),
        _ => is_told,
    }
}

/// Whether bytes have only the control characters of texts: then they may be text in any encoding.
fn has_no_controls(head: &[u8]) -> bool {
    !head.iter().any(|byte| matches!(byte, 0..=8 | 14..=26 | 28..=31))
}

fn looks_like_html(text: &str) -> bool {
    let start: String = text.trim_start().chars().take(14).collect::<String>().to_ascii_lowercase();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}

/// Whether a reply may be a page with scripts: then a browser shows it.
pub(super) fn may_have_scripts(reply: &HttpReply) -> bool {
    // A server may answer programs with an error in plain text, and browsers with the page.
    matches!(reply.media_type.as_str(), "" | "text/html" | "application/xhtml+xml") || reply.status >= 400
}

/// Whether bytes are UTF-8, but for a character at their end that was cut through.
fn is_utf8(head: &[u8]) -> bool {
    std::str::from_utf8(head).map_or_else(|err| err.error_len().is_none(), |_| true)
}

/// The text of a body. A page in UTF-8 that claims to be in another encoding is read as UTF-8: that is the common mistake of
/// servers, and text of other encodings is hardly ever valid UTF-8.
fn decode(reply: &HttpReply) -> String {
    let named = reply.charset.as_deref().or_else(|| html::charset(&reply.body));
    let encoding = named.and_then(|name| Encoding::for_label(name.as_bytes())).unwrap_or(UTF_8);
    let is_ascii_based =
        encoding != encoding_rs::UTF_16LE && encoding != encoding_rs::UTF_16BE && encoding != encoding_rs::ISO_2022_JP;
    if is_ascii_based && !reply.body.is_ascii() && is_utf8(&reply.body) {
        return UTF_8.decode(&reply.body).0.into_owned();
    }
    encoding.decode(&reply.body).0.into_owned()
}

/// JSON laid out; as it came if it is none, or if laying it out would take too much.
fn pretty(text: String) -> String {
    let laid_out = serde_json::from_str::<serde_json::Value>(&text).and_then(|value| {
        let mut page = BoundedText(Vec::new());
        serde_json::to_writer_pretty(&mut page, &value).map(|()| page.0)
    });
    laid_out.ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or(text)
}

/// As much as a text may have, and no more.
struct BoundedText(Vec<u8>);

impl io::Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > TEXT_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_laid_out_as_far_as_there_is_room() {
        assert_eq!(pretty(r#"{"a":[1]}"#.to_owned()), "{\n  \"a\": [\n    1\n  ]\n}");
        let deep = "[".repeat(100) + &"0,".repeat(100_000) + "0" + &"]".repeat(100);
        assert_eq!(pretty(deep.clone()), deep, "laid out, this has 20 MB");
    }

    #[test]
    fn parts_are_the_whole_text() {
        for text in ["", "one", &"a line\n".repeat(20_000), &"ä".repeat(100_000)] {
            let parts = parts(text);
            assert_eq!(parts.concat(), text);
            assert!(!parts.is_empty() && parts.iter().all(|part| part.len() <= FETCH_PAGE_BYTES_MAX));
        }
        assert!(parts(&"a line\n".repeat(20_000)).iter().all(|part| part.ends_with('\n')));
    }

    #[test]
    fn text_is_told_from_other_data() {
        let table: [(&str, &[u8], bool); 10] = [
            ("text/plain", b"\xff\xfeH\0i\0", true),
            ("application/octet-stream", b"\xff\xfeH\0i\0", true),
            ("", b"\xfe\xff\0H\0i", true),
            ("", b"caf\xe9 and \xc4\xe3\xba\xc3", true),
            ("", b"\x1f\x8b\x08packed", false),
            ("", b"\x89PNG\r\n\x1a\n", false),
            ("application/octet-stream", b"caf\xe9 au lait", false),
            ("text/plain", b"H\0i\0", false),
            ("image/png", b"words", false),
            ("application/json", b"{}", true),
        ];
        for (media, body, want) in table {
            let reply = HttpReply { media_type: media.to_owned(), body: body.to_vec(), ..HttpReply::default() };
            assert_eq!(is_text(&reply), want, "{media} {body:?}");
        }
    }

    #[test]
    fn bodies_are_decoded_also_if_the_charset_is_wrong() {
        let reply = |body: &[u8], charset: Option<&str>| HttpReply {
            body: body.to_vec(),
            charset: charset.map(str::to_owned),
            ..HttpReply::default()
        };
        let table: [(&[u8], Option<&str>, &str); 9] = [
            (b"\xff\xfeH\0i\0", None, "Hi"),
            (b"\xfe\xff\0H\0i", None, "Hi"),
            ("你好".as_bytes(), Some("iso-8859-1"), "你好"),
            ("你好".as_bytes(), None, "你好"),
            (b"\xc4\xe3\xba\xc3", Some("gb18030"), "你好"),
            (b"<meta charset=gb2312>\xc4\xe3\xba\xc3", None, "<meta charset=gb2312>你好"),
            (b"\x93\xfa\x96{", Some("Shift_JIS"), "日本"),
            (
                b"<meta content='text/html; charset=shift_jis'>\x93\xfa",
                None,
                "<meta content='text/html; charset=shift_jis'>日",
            ),
            (b"caf\xe9", Some("nonsense"), "caf\u{fffd}"),
        ];
        for (body, charset, want) in table {
            assert_eq!(decode(&reply(body, charset)), want);
        }
    }
}
