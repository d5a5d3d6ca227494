//! Reads the answers of search services, as each publishes its format.

use reqwest::Url;
use serde_json::Value;

use super::{SearchProvider, SearchResult, SearchService};
use crate::text::{clip, visible};
use crate::web::html;

/// Bytes of what a service says when it refuses.
const REASON_BYTES_MAX: usize = 200;
/// Names that services give the parts of a result.
const TITLES: [&str; 2] = ["title", "name"];
const ADDRESSES: [&str; 3] = ["url", "link", "href"];
const SNIPPETS: [&str; 5] = ["description", "content", "snippet", "body", "text"];
const DATES: [&str; 6] = ["page_age", "published_date", "publishedDate", "date", "published", "age"];

/// The results in a JSON answer.
pub(super) fn json(service: &SearchService, body: &str) -> Result<Vec<SearchResult>, String> {
    let answer: Value = serde_json::from_str(body).map_err(|_| match body.trim_start().starts_with('<') {
        true => "answered with a page and not with JSON".to_owned(),
        false => {
            format!("answered with something that is no JSON (`{}`)", visible(&clip(body.trim(), REASON_BYTES_MAX)))
        }
    })?;
    let path = match service.provider {
        SearchProvider::Brave => "web.results",
        _ => service.results.as_deref().unwrap_or("results"),
    };
    let list = path.split('.').filter(|part| !part.is_empty()).try_fold(&answer, |value, part| value.get(part));
    let list = match list.and_then(Value::as_array) {
        Some(list) => list,
        // Brave leaves the part out if it found nothing.
        None if service.provider == SearchProvider::Brave && answer.get("type").is_some() => return Ok(Vec::new()),
        None => return Err(format!("gave no list at `{path}`")),
    };
    Ok(list.iter().filter_map(result).collect())
}

fn result(row: &Value) -> Option<SearchResult> {
    let text = |names: &[&str]| names.iter().find_map(|name| row.get(*name)?.as_str()).map(str::to_owned);
    let url = text(&ADDRESSES).filter(|url| is_web(url))?;
    let title = plain(&text(&TITLES).unwrap_or_default());
    let title = if title.is_empty() { url.clone() } else { title };
    Some(SearchResult { title, url, snippet: plain(&text(&SNIPPETS).unwrap_or_default()), date: text(&DATES) })
}

/// The results on DuckDuckGo's page for browsers without scripts.
pub(super) fn duckduckgo(page: &str) -> Result<Vec<SearchResult>, String> {
    let document = html::document(page);
    let results: Vec<SearchResult> = document
        .select(".result:not(.result--ad)")
        .nodes()
        .iter()
        .filter_map(|node| {
            let part = |selector: &str| dom_query::Selection::from(*node).select(selector).first();
            let link = part("a.result__a");
            let title = one_line(&link.text());
            let url = target(&link.attr("href")?)?;
            Some(SearchResult { title, url, snippet: one_line(&part(".result__snippet").text()), date: None })
        })
        .collect();
    let is_captcha = page.contains("anomaly-modal") || page.contains("bots use DuckDuckGo too");
    match results.is_empty() {
        true if is_captcha => Err("asks for proof that a person searches".to_owned()),
        true if !document.select(".no-results, #links, .serp__results").nodes().is_empty() => Ok(results),
        true => Err("answered with a page that is not understood".to_owned()),
        false => Ok(results),
    }
}

/// The page behind a link of DuckDuckGo's, which leads through `duckduckgo.com/l/?uddg=ADDRESS`.
fn target(href: &str) -> Option<String> {
    let url = Url::parse("https://duckduckgo.com/").ok()?.join(href).ok()?;
    let through = url.query_pairs().find(|(name, _)| name == "uddg").map(|(_, target)| target.into_owned());
    through.or_else(|| Some(url.to_string())).filter(|url| is_web(url) && !url.contains("duckduckgo.com/y.js"))
}

fn is_web(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

/// The words of a piece of HTML: services mark the words that were searched for.
fn plain(text: &str) -> String {
    match text.contains(['<', '&']) {
        true => one_line(&html::document(text).select("body").text()),
        false => one_line(text),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Why a service refuses: its own words if it gives some.
pub(super) fn reason(status: u16, body: &str) -> String {
    let words = serde_json::from_str::<Value>(body).ok().and_then(|answer| {
        let places = ["/error/detail", "/detail/error", "/detail", "/error/message", "/error", "/message"];
        places.iter().find_map(|place| answer.pointer(place)?.as_str().map(str::to_owned))
    });
    words.map_or_else(
        || status.to_string(),
        |words| format!("{status}: {}", visible(&clip(words.trim().trim_end_matches('.'), REASON_BYTES_MAX))),
    )
}
