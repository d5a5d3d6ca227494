//! Pages that were fetched, kept for the session that fetched them.
//!
//! A further page of a long document is read from here without a request; another look at the same address asks the
//! server whether its version is still the same (ETag, Last-Modified). In memory only, and bounded: the oldest go first.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use max_team_core::limits::{PAGE_CACHE_BYTES_MAX, PAGE_CACHE_MAX};
use reqwest::Url;

use super::HttpReply;

/// An address in a session, as HTTP or as a browser gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageKey {
    pub(crate) session: Arc<str>,
    pub(crate) url: Url,
    pub(crate) is_rendered: bool,
}

/// A page, and the address that it came from in the end.
#[derive(Debug)]
pub(crate) struct CachedPage {
    pub(crate) url: Url,
    pub(crate) reply: HttpReply,
}

/// The pages of a process.
#[derive(Debug, Default)]
pub(crate) struct PageCache {
    /// The oldest first.
    pages: Mutex<VecDeque<(PageKey, Arc<CachedPage>)>>,
}

impl PageCache {
    pub(crate) fn get(&self, key: &PageKey) -> Option<Arc<CachedPage>> {
        let pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.iter().find(|(known, _)| known == key).map(|(_, page)| Arc::clone(page))
    }

    /// Keeps a page, in the place of an older one.
    pub(crate) fn put(&self, key: PageKey, page: Arc<CachedPage>) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.retain(|(known, _)| *known != key);
        pages.push_back((key, page));
        let mut bytes: usize = pages.iter().map(|(_, page)| page.reply.body.len()).sum();
        while pages.len() > PAGE_CACHE_MAX || bytes > PAGE_CACHE_BYTES_MAX {
            let Some((_, oldest)) = pages.pop_front() else { return };
            bytes -= oldest.reply.body.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(path: &str, session: &str) -> PageKey {
        let url = Url::parse("https://a.org/").unwrap().join(path).unwrap();
        PageKey { session: Arc::from(session), url, is_rendered: false }
    }

    fn page(bytes: usize) -> Arc<CachedPage> {
        let reply = HttpReply { body: vec![b'x'; bytes], ..HttpReply::default() };
        Arc::new(CachedPage { url: Url::parse("https://a.org/").unwrap(), reply })
    }

    #[test]
    fn the_oldest_pages_go_first() {
        let cache = PageCache::default();
        for number in 0..=PAGE_CACHE_MAX {
            cache.put(key(&number.to_string(), "s"), page(1));
        }
        assert!(cache.get(&key("0", "s")).is_none() && cache.get(&key("1", "s")).is_some());
        cache.put(key("large", "s"), page(PAGE_CACHE_BYTES_MAX));
        assert!(cache.get(&key("1", "s")).is_none() && cache.get(&key("large", "s")).is_some());
        cache.put(key("larger", "s"), page(PAGE_CACHE_BYTES_MAX + 1));
        assert!(cache.get(&key("larger", "s")).is_none());
    }

    #[test]
    fn a_session_does_not_see_pages_of_another() {
        let cache = PageCache::default();
        cache.put(key("a", "one"), page(1));
        assert!(cache.get(&key("a", "one")).is_some() && cache.get(&key("a", "two")).is_none());
    }
}
