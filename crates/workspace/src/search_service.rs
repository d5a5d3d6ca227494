//! The search service of `web_search`: chosen by `tools.web_search` and by the keys that are set.

use max_team_tools::{SearchKey, SearchProvider, SearchService};
use serde::Deserialize;
use serde_json::Value;

use crate::config::Env;
use crate::exit::{CliError, Exit};
use crate::i18n::Lang;

/// Variables with a key, and the provider that it is for; the first that is set counts.
const KEYS: [(&str, SearchProvider); 3] = [
    ("BRAVE_API_KEY", SearchProvider::Brave),
    ("BRAVE_SEARCH_API_KEY", SearchProvider::Brave),
    ("TAVILY_API_KEY", SearchProvider::Tavily),
];

/// `tools.web_search` as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchSettings {
    provider: Option<String>,
    url: Option<String>,
    key_env: Option<String>,
    results: Option<String>,
}

/// The service that the settings and the environment name.
pub(crate) fn resolve(settings: &Value, env: &Env) -> Result<SearchService, CliError> {
    let wrong = |why: &dyn Fn(Lang) -> String| CliError::said(Exit::Config, |lang| lang.bad_web_search(why(lang)));
    let given: SearchSettings =
        serde_json::from_value(settings.clone()).map_err(|error| wrong(&|_| error.to_string()))?;
    let is_set = |name: &str| env.get(name).filter(|key| !key.trim().is_empty());
    let by_key = || KEYS.iter().find(|(name, _)| is_set(name).is_some()).map(|(_, provider)| *provider);
    let provider = match given.provider.as_deref() {
        Some(name) => find(name).ok_or_else(|| wrong(&|lang| no_provider(lang, name)))?,
        // An address alone is that of a SearXNG, unless it says where its results are.
        None if given.results.is_some() || given.url.as_deref().is_some_and(|url| url.contains("{query}")) => {
            SearchProvider::Custom
        }
        None if given.url.is_some() => SearchProvider::SearXng,
        None => by_key().unwrap_or_default(),
    };
    let key = match &given.key_env {
        Some(name) => Some(is_set(name).ok_or_else(|| wrong(&|lang| lang.search_key_env_unset(name)))?),
        None => KEYS.iter().filter(|(_, of)| *of == provider).find_map(|(name, _)| is_set(name)),
    };
    match (provider, &key, &given.url) {
        (SearchProvider::Brave | SearchProvider::Tavily, None, _) => {
            let name = KEYS.iter().find(|(_, of)| *of == provider).map_or("", |(name, _)| name);
            return Err(wrong(&|lang| lang.search_key_unset(name)));
        }
        (SearchProvider::SearXng | SearchProvider::Custom, _, None) => {
            return Err(wrong(&|lang| lang.search_url_missing().to_owned()));
        }
        _ => {}
    }
    let key = key.map(|key| SearchKey::new(key.trim()));
    Ok(SearchService { provider, url: given.url, key, results: given.results })
}

fn find(name: &str) -> Option<SearchProvider> {
    let found = SearchProvider::NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, provider)| *provider)
}

fn no_provider(lang: Lang, name: &str) -> String {
    lang.search_no_provider(name, SearchProvider::NAMES.map(|(name, _)| name).join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn chosen(settings: Value, keys: &[(&str, &str)]) -> Result<(SearchProvider, bool), String> {
        let env: Env = keys.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let service = resolve(&settings, &env).map_err(|error| error.message)?;
        Ok((service.provider, service.key.is_some()))
    }

    #[test]
    fn the_provider_follows_from_settings_and_keys() {
        use SearchProvider::{Brave, Custom, DuckDuckGo, SearXng, Tavily};
        let (brave, tavily) = (("BRAVE_API_KEY", "b"), ("TAVILY_API_KEY", "t"));
        let table = [
            (json!({}), vec![], (DuckDuckGo, false)),
            (json!({}), vec![("BRAVE_API_KEY", " ")], (DuckDuckGo, false)),
            (json!({}), vec![tavily], (Tavily, true)),
            (json!({}), vec![tavily, brave], (Brave, true)),
            (json!({ "provider": "tavily" }), vec![tavily, brave], (Tavily, true)),
            (json!({ "provider": "duckduckgo" }), vec![brave], (DuckDuckGo, false)),
            (json!({ "url": "https://s.org" }), vec![brave], (SearXng, false)),
            (json!({ "url": "https://s.org/{query}" }), vec![], (Custom, false)),
            (json!({ "url": "https://s.org", "results": "a", "key_env": "K" }), vec![("K", "k")], (Custom, true)),
        ];
        for (settings, keys, want) in table {
            assert_eq!(chosen(settings.clone(), &keys), Ok(want), "{settings}");
        }
        for (settings, why) in [
            (json!({ "provider": "brav" }), "no `provider` `brav`; it is one of duckduckgo, brave"),
            (json!({ "provider": "brave" }), "`BRAVE_API_KEY` is not set"),
            (json!({ "provider": "searxng" }), "`url` is missing"),
            (json!({ "url": "https://s.org", "key_env": "K" }), "`K` is not set"),
            (json!({ "engine": "x" }), "unknown field `engine`"),
        ] {
            let error = chosen(settings, &[]).unwrap_err();
            assert!(error.contains("tools.web_search") && error.contains(why), "{error}");
        }
    }
}
