//! `http_get`: a page of the web, as text.
//!
//! The policy judges the host and its port. A redirect on the same host and port is followed; any other redirect is
//! reported, so that the policy judges it when the model asks for it. HTML becomes readable text, JSON is formatted,
//! other content is refused.

use std::io;

use encoding_rs::{Encoding, UTF_8};
use max_team_core::limits::{PAGE_BYTES_MAX, REDIRECTS_MAX};
use max_team_core::policy::{Action, ActionKind};
use reqwest::Url;
use schemars::JsonSchema;
use serde::Deserialize;

use super::html;
use super::{AddressGuard, HttpReply, TEXT_BYTES_MAX, fetch, host};
use crate::document;
use crate::remote::on_thread;
use crate::text::{clip, size, visible};
use crate::tool::{Output, ToolContext, ToolError};
use crate::typed::RemoteTyped;

/// Bytes of an address.
const URL_BYTES_MAX: usize = 4_096;
/// Bytes of an address that an error repeats.
const URL_SHOWN_MAX: usize = 200;
/// Bytes at the start of a body that tell whether it is text.
const HEAD_BYTES: usize = 8 << 10;

/// Get a page of the web with an HTTP GET. HTML comes as readable text with its links, JSON laid out, other text as it
/// is, PDF and office documents as their text; other binary data is refused. Redirects are followed on the same host only; one to another host is told, and you may
/// ask for it. Addresses on this machine and in private networks are refused. The user may be asked about each new
/// host. At most 4 MiB come, in 30 seconds.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpGet {
    /// The address, like `https://docs.rs/serde/latest/serde/`.
    url: String,
    /// Give HTML and JSON as they are, not made readable. Default: false.
    raw: Option<bool>,
}

pub(crate) fn http_get() -> RemoteTyped<HttpGet> {
    RemoteTyped::reading(
        "http_get",
        action,
        |_, intent| Some(intent.target.clone()),
        |cx, args, intent| Box::pin(call(cx, args, intent)),
    )
}

fn action(_: &ToolContext, args: &HttpGet) -> Result<Action, ToolError> {
    let url = parse(&args.url)?;
    Ok(Action { kind: ActionKind::Fetch, preview: format!("GET {url}"), ..Action::read(host(&url)) })
}

async fn call(cx: &ToolContext, args: HttpGet, intent: &Action) -> Result<Output, ToolError> {
    let mut url = parse(&args.url)?;
    if host(&url) != intent.target {
        return Err(ToolError::fatal(format!("the host of `{url}` is not what was judged (`{}`)", intent.target)));
    }
    for _ in 0..=REDIRECTS_MAX {
        let reply = fetch(cx, &url, AddressGuard::Public, PAGE_BYTES_MAX).await?;
        match next(&url, &reply)? {
            None => {
                let cx = cx.clone();
                return on_thread(move || told(&cx, &url, &reply, args.raw.unwrap_or(false))).await;
            }
            Some(next) if host(&next) == host(&url) => url = next,
            Some(next) => {
                return Ok(Output::text(format!(
                    "[`{}` leads to another host: `{}`. Call `http_get` with that address if you want it]",
                    shown(&url),
                    shown(&next)
                )));
            }
        }
    }
    Err(ToolError::correctable(format!("`{}` is redirected more than {REDIRECTS_MAX} times", shown(&url))))
}

fn parse(text: &str) -> Result<Url, ToolError> {
    let wrong = |words: &str| {
        let shown = visible(&clip(text, URL_SHOWN_MAX));
        ToolError::correctable(format!("the address `{shown}` {words}"))
    };
    if text.len() > URL_BYTES_MAX {
        return Err(wrong("is too long"));
    }
    let mut url = Url::parse(text).map_err(|err| wrong(&format!("cannot be used: {err}; begin with `https://`")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(wrong("is no web address; it must begin with `https://` or `http://`"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("has a name or password in it; leave that out"));
    }
    url.set_fragment(None);
    Ok(url)
}

/// Where a reply says to go, if it does.
fn next(url: &Url, reply: &HttpReply) -> Result<Option<Url>, ToolError> {
    let (301 | 302 | 303 | 307 | 308, Some(location)) = (reply.status, &reply.location) else { return Ok(None) };
    let wrong = |words: &str| {
        ToolError::correctable(format!(
            "`{}` leads to `{}`, which {words}",
            shown(url),
            visible(&clip(location, URL_SHOWN_MAX))
        ))
    };
    let next = url.join(location).map_err(|_| wrong("is no address"))?;
    let next = parse(next.as_str()).map_err(|_| wrong("is no web address"))?;
    if (url.scheme(), next.scheme()) == ("https", "http") {
        return Err(wrong("is not encrypted; it is not followed"));
    }
    Ok(Some(next))
}

fn shown(url: &Url) -> String {
    visible(&clip(url.as_str(), URL_SHOWN_MAX))
}

/// A reply in words.
fn told(cx: &ToolContext, url: &Url, reply: &HttpReply, raw: bool) -> Result<Output, ToolError> {
    let kind = if reply.media_type.is_empty() { "no type" } else { &reply.media_type };
    let mut notes = vec![format!("`{}`: {}, {kind}", shown(url), reply.status)];
    if reply.is_cut {
        notes.push(format!("only the first {} were taken", size(PAGE_BYTES_MAX as u64)));
    }
    let is_error = reply.status >= 400;
    if let Some(kind) = document::kind(&reply.body).filter(|_| !reply.is_cut && !is_error) {
        let text = document::text(cx, reply.body.as_slice())?;
        notes.push(format!("the text of {kind}"));
        return Ok(Output::text(format!("[{}]\n{text}", notes.join("; "))));
    }
    if reply.body.is_empty() {
        notes.push("empty".to_owned());
    } else if !is_text(reply) {
        notes.push(format!("binary data, {}, not shown", size(reply.body.len() as u64)));
        return Ok(Output { is_error: true, ..Output::text(format!("[{}]", notes.join("; "))) });
    }
    let text = decode(reply);
    let text = match reply.media_type.as_str() {
        _ if raw => text,
        "text/html" | "application/xhtml+xml" => {
            let (text, is_whole) = html::readable(&text, url);
            if !is_whole {
                notes.push(format!("only the first {} of its text are told", size(TEXT_BYTES_MAX as u64)));
            }
            text
        }
        media if media == "application/json" || media.ends_with("+json") => pretty(text),
        _ => text,
    };
    Ok(Output { is_error, ..Output::text(format!("[{}]\n{text}", notes.join("; "))) })
}

fn is_text(reply: &HttpReply) -> bool {
    let media = reply.media_type.as_str();
    let textual = ["json", "xml", "javascript", "ecmascript", "yaml", "toml", "sql", "graphql", "x-sh", "csv"];
    let head = reply.body.get(..HEAD_BYTES).unwrap_or(&reply.body);
    // UTF-16 has zeros in it, and says what it is.
    let is_wide = reply.charset.as_ref().is_some_and(|name| name.to_ascii_lowercase().starts_with("utf-16"));
    if head.contains(&0) && !is_wide {
        return false;
    }
    let is_told = media.starts_with("text/") || textual.iter().any(|word| media.ends_with(word));
    is_told || (matches!(media, "" | "application/octet-stream") && is_utf8(head))
}

/// Whether bytes are UTF-8, but for a character at their end that was cut through.
fn is_utf8(head: &[u8]) -> bool {
    std::str::from_utf8(head).map_or_else(|err| err.error_len().is_none(), |_| true)
}

fn decode(reply: &HttpReply) -> String {
    let named = reply.charset.as_deref().or_else(|| html::charset(&reply.body));
    let encoding = named.and_then(|name| Encoding::for_label(name.as_bytes())).unwrap_or(UTF_8);
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
    fn addresses_are_cleaned_or_refused() {
        assert_eq!(parse("HTTPS://Docs.RS:443/a#b").unwrap().as_str(), "https://docs.rs/a");
        assert_eq!(parse("http://0x7f.1/").unwrap().host_str(), Some("127.0.0.1"));
        for text in ["", "docs.rs", "file:///etc/passwd", "ftp://a/", "http://", "https://u:p@a/", "data:text/plain,x"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn redirects_stay_encrypted() {
        let reply = |location: &str| HttpReply {
            status: 302,
            location: Some(location.to_owned()),
            media_type: String::new(),
            charset: None,
            body: Vec::new(),
            is_cut: false,
        };
        let url = parse("https://a.org/x/y").unwrap();
        assert_eq!(next(&url, &reply("z")).unwrap().unwrap().as_str(), "https://a.org/x/z");
        assert_eq!(next(&url, &reply("//b.org/")).unwrap().unwrap().as_str(), "https://b.org/");
        for location in ["http://a.org/", "file:///etc/passwd", "gopher://a.org/", "https://u:p@a.org/"] {
            assert!(next(&url, &reply(location)).is_err(), "{location}");
        }
    }

    #[test]
    fn json_is_laid_out_as_far_as_there_is_room() {
        assert_eq!(pretty(r#"{"a":[1]}"#.to_owned()), "{\n  \"a\": [\n    1\n  ]\n}");
        let deep = "[".repeat(100) + &"0,".repeat(100_000) + "0" + &"]".repeat(100);
        assert_eq!(pretty(deep.clone()), deep, "laid out, this has 20 MB");
    }
}
