//! `web_search`: finds pages of the web by words.
//!
//! One of several services answers: Brave or Tavily with a key, SearXNG or another service at the user's address, and
//! DuckDuckGo without either. `answer` reads what each sends. A service that the user has set up is asked without a
//! question; DuckDuckGo is a host like any other, so the policy judges it.

mod answer;

use std::fmt;

use max_team_core::limits::SEARCH_RESULTS_MAX;
use max_team_core::policy::{Action, ActionKind};
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderName, USER_AGENT};
use schemars::JsonSchema;
use serde::Deserialize;

use super::fault::{SearchAddressFlaw, WebFault};
use super::{AddressGuard, HttpReply, HttpRequest, host, send};
use crate::remote::on_thread;
use crate::text::{clip, visible};
use crate::tool::{Output, ToolContext, ToolError};
use crate::typed::RemoteTyped;

/// Results that come by default.
const RESULTS_DEFAULT: u32 = 8;
/// Bytes of a query.
const QUERY_BYTES_MAX: usize = 400;
/// Bytes of an answer.
const ANSWER_BYTES_MAX: usize = 2 << 20;
/// Bytes of a title or address, and of a snippet, that are told.
const LINE_BYTES_MAX: usize = 300;
const SNIPPET_BYTES_MAX: usize = 600;
const BRAVE_TOKEN: HeaderName = HeaderName::from_static("x-subscription-token");

/// Search the web. Results come with title, address, date if known, and a few words of each page; read a page with
/// `web_fetch`. Words like `site:docs.rs` and "quoted phrases" work with most services. At most 20 results come.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebSearch {
    /// What to search for, in the words that pages would use.
    query: String,
    /// How many results. Default: 8.
    #[schemars(range(min = 1, max = 20))]
    count: Option<u32>,
}

/// The services that can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchProvider {
    #[default]
    DuckDuckGo,
    Brave,
    Tavily,
    SearXng,
    /// Another service that answers with JSON.
    Custom,
}

impl SearchProvider {
    /// All of them with their names in settings.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("duckduckgo", Self::DuckDuckGo),
        ("brave", Self::Brave),
        ("tavily", Self::Tavily),
        ("searxng", Self::SearXng),
        ("custom", Self::Custom),
    ];

    /// The name that users know.
    pub fn title(self) -> &'static str {
        match self {
            Self::DuckDuckGo => "DuckDuckGo",
            Self::Brave => "Brave Search",
            Self::Tavily => "Tavily",
            Self::SearXng => "SearXNG",
            Self::Custom => "the search service",
        }
    }

    fn address(self) -> &'static str {
        match self {
            Self::DuckDuckGo => "https://html.duckduckgo.com/html/",
            Self::Brave => "https://api.search.brave.com/res/v1/web/search",
            Self::Tavily => "https://api.tavily.com/search",
            Self::SearXng | Self::Custom => "",
        }
    }
}

/// A key of a search service; never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct SearchKey(String);

impl SearchKey {
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }
}

impl fmt::Debug for SearchKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SearchKey(…)")
    }
}

/// The service that `web_search` asks, as the user has set it up.
#[derive(Debug, Clone, Default)]
pub struct SearchService {
    pub provider: SearchProvider,
    /// Its address, if it is not the provider's own; `{query}` and `{count}` in it are replaced.
    pub url: Option<String>,
    pub key: Option<SearchKey>,
    /// Where the list of results is in the answer of another service, like `data.items`.
    pub results: Option<String>,
}

impl SearchService {
    /// What a search does, for the policy to judge.
    pub fn action(&self, query: &str) -> Result<Action, WebFault> {
        let target = host(&self.url(query, 1)?);
        let kind = if self.is_set_up() { ActionKind::Query } else { ActionKind::Fetch };
        let preview = format!("search {} for {query}", self.provider.title());
        Ok(Action { kind, preview, ..Action::read(target) })
    }

    /// Whether the user has set it up, by a key or an address.
    fn is_set_up(&self) -> bool {
        self.url.is_some() || self.key.is_some()
    }

    fn url(&self, query: &str, count: u32) -> Result<Url, WebFault> {
        let given = self.url.as_deref().unwrap_or(self.provider.address());
        if given.is_empty() {
            return Err(WebFault::SearchAddress(SearchAddressFlaw::Unset(self.provider.title())));
        }
        let is_template = given.contains("{query}");
        let encoded: String = reqwest::Url::parse_with_params("http://x/", [("q", query)])
            .ok()
            .and_then(|url| url.query().and_then(|query| query.strip_prefix("q=")).map(str::to_owned))
            .unwrap_or_default();
        let given = given.replace("{query}", &encoded).replace("{count}", &count.to_string());
        let wrong = |why: String| WebFault::SearchAddress(SearchAddressFlaw::Unusable(why));
        let mut url = Url::parse(&given).map_err(|error| wrong(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong(format!("it begins with `{}:`, not with `https://` or `http://`", url.scheme())));
        }
        let count = count.to_string();
        match self.provider {
            _ if is_template => {}
            SearchProvider::Tavily => {}
            SearchProvider::Brave => drop(url.query_pairs_mut().extend_pairs([("q", query), ("count", &count)])),
            SearchProvider::DuckDuckGo | SearchProvider::Custom => drop(url.query_pairs_mut().append_pair("q", query)),
            SearchProvider::SearXng => {
                if !url.path().ends_with("/search") {
                    url.set_path(&format!("{}/search", url.path().trim_end_matches('/')));
                }
                url.query_pairs_mut().extend_pairs([("q", query), ("format", "json")]);
            }
        }
        Ok(url)
    }

    fn request<'a>(&self, url: &'a Url, query: &str, count: u32) -> HttpRequest<'a> {
        let guard = if self.url.is_some() { AddressGuard::Service } else { AddressGuard::Public };
        let mut request = HttpRequest::get(url, guard, ANSWER_BYTES_MAX);
        let key = self.key.as_ref().map(|SearchKey(key)| key.clone());
        match self.provider {
            SearchProvider::Brave => request.headers.extend(key.map(|key| (BRAVE_TOKEN, key))),
            SearchProvider::DuckDuckGo => {
                // The page for browsers without scripts; it gives programs without this word nothing.
                let agent = concat!("Mozilla/5.0 (compatible; max-team/", env!("CARGO_PKG_VERSION"), ")");
                request.headers.push((USER_AGENT, agent.to_owned()));
            }
            SearchProvider::Tavily | SearchProvider::SearXng | SearchProvider::Custom => {
                request.headers.extend(key.map(|key| (AUTHORIZATION, format!("Bearer {key}"))));
            }
        }
        if self.provider == SearchProvider::Tavily {
            request.body = Some(serde_json::json!({ "query": query, "max_results": count }).to_string());
        }
        request
    }

    /// What the user can set when the service gives nothing.
    fn remedy(&self) -> &'static str {
        match self.provider {
            SearchProvider::Brave => "the user must check BRAVE_API_KEY",
            SearchProvider::Tavily => "the user must check TAVILY_API_KEY",
            SearchProvider::SearXng => {
                "the user must check `tools.web_search.url`, and that `json` is among `search.formats` in the settings.yml \
                 of that SearXNG"
            }
            SearchProvider::Custom => "the user must check `tools.web_search` in config.yaml",
            SearchProvider::DuckDuckGo => {
                "the user can set BRAVE_API_KEY or TAVILY_API_KEY, or the address of a SearXNG as `tools.web_search`"
            }
        }
    }
}

/// A page that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SearchResult {
    title: String,
    url: String,
    snippet: String,
    date: Option<String>,
}

pub(crate) fn web_search() -> RemoteTyped<WebSearch> {
    RemoteTyped::reading(
        "web_search",
        action,
        |_, intent| Some(intent.target.clone()),
        |cx, args, intent| Box::pin(call(cx, args, intent)),
    )
}

fn action(cx: &ToolContext, args: &WebSearch) -> Result<Action, ToolError> {
    Ok(cx.services.search.action(query(args)?)?)
}

fn query(args: &WebSearch) -> Result<&str, ToolError> {
    let query = args.query.trim();
    match query.is_empty() || query.len() > QUERY_BYTES_MAX {
        true => Err(ToolError::correctable(format!("`query` has 1 to {QUERY_BYTES_MAX} bytes"))),
        false => Ok(query),
    }
}

async fn call(cx: &ToolContext, args: WebSearch, intent: &Action) -> Result<Output, ToolError> {
    let service = cx.services.search.clone();
    let query = query(&args)?;
    let count = args.count.unwrap_or(RESULTS_DEFAULT).clamp(1, SEARCH_RESULTS_MAX);
    let url = service.url(query, count)?;
    if host(&url) != intent.target {
        return Err(ToolError::fatal(format!(
            "the host `{}` is not what was judged (`{}`)",
            host(&url),
            intent.target
        )));
    }
    let reply = send(cx, service.request(&url, query, count)).await?;
    let shown = visible(&clip(query, LINE_BYTES_MAX));
    let found = on_thread(move || read(&service, &reply)).await?;
    if found.is_empty() {
        return Ok(Output::text(format!("[nothing was found for `{shown}`; try other words]")));
    }
    let lines: Vec<String> = found.iter().take(count as usize).enumerate().map(line).collect();
    Ok(Output::text(lines.join("\n")))
}

fn read(service: &SearchService, reply: &HttpReply) -> Result<Vec<SearchResult>, ToolError> {
    let failed =
        |words: &str| ToolError::correctable(format!("{} {words}; {}", service.provider.title(), service.remedy()));
    let body = String::from_utf8_lossy(&reply.body);
    match reply.status {
        200 | 202 => {}
        401 | 403 => return Err(failed(&format!("refuses the search ({})", answer::reason(reply.status, &body)))),
        429 | 432 | 433 => {
            let why = answer::reason(reply.status, &body);
            return Err(failed(&format!("allows no more searches now ({why}); try again later, or")));
        }
        _ => return Err(failed(&format!("failed ({})", answer::reason(reply.status, &body)))),
    }
    let found = match service.provider {
        SearchProvider::DuckDuckGo => answer::duckduckgo(&body),
        _ => answer::json(service, &body),
    };
    found.map_err(|words| failed(&words))
}

fn line((at, found): (usize, &SearchResult)) -> String {
    let SearchResult { title, url, snippet, date } = found;
    let date = date.as_ref().map(|date| format!(" ({})", clip(date, 40))).unwrap_or_default();
    let (title, url) = (clip(title, LINE_BYTES_MAX), clip(url, LINE_BYTES_MAX));
    format!("{}. {title}{date}\n   {url}\n   {}", at + 1, clip(snippet, SNIPPET_BYTES_MAX))
}
