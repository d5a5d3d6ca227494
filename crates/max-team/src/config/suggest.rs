//! The key that was probably meant.
//!
//! A slip of the finger (`llm.timeuot`), the right name in the wrong section (`server.timeout`) and half a name
//! (`llm.model` for `llm.default_model`) are all found. It only guesses: nothing is ever set by a guess.

use super::table::{self, Key};

/// Longer than any key of ours by far; comparing is quadratic and files are not always friendly.
const LENGTH_MAX: usize = 64;

/// The nearest key or section, if any is near.
pub(super) fn nearest(asked: &str) -> Option<&'static str> {
    if asked.len() > LENGTH_MAX {
        return None;
    }
    let (section, name) = asked.rsplit_once('.').unwrap_or(("", asked));
    let keys = table::keys().filter_map(|key| Some((cost(section, name, key)?, key.path)));
    let sections = table::SECTIONS.iter().filter(|_| section.is_empty());
    let sections = sections.filter_map(|path| Some((near(name, path)? * 4, *path)));
    sections.chain(keys).min_by_key(|(cost, _)| *cost).map(|(_, path)| path)
}

/// Slips count most, then a name that is only a part of ours, then a wrong section.
fn cost(section: &str, name: &str, key: &Key) -> Option<usize> {
    let whole = near(name, key.name()).map(|slips| slips * 4);
    let part = key.name().split('_').filter_map(|word| near(name, word)).min().map(|slips| slips * 4 + 2);
    let elsewhere = near(section, key.section()).map_or(3, |slips| slips.min(2));
    Some(whole.into_iter().chain(part).min()? + elsewhere)
}

/// The nearest of some words, if any is near.
pub(crate) fn among(asked: &str, words: &[&'static str]) -> Option<&'static str> {
    let words = words.iter().filter(|_| asked.len() <= LENGTH_MAX);
    words.filter_map(|word| Some((near(asked, word)?, *word))).min_by_key(|(slips, _)| *slips).map(|(_, word)| word)
}

/// The number of slips between two words; none when they are simply different words.
pub(crate) fn near(asked: &str, word: &str) -> Option<usize> {
    let slips = strsim::osa_distance(asked, word);
    (slips <= (word.len() / 3).max(usize::from(word.len() > 2))).then_some(slips)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses() {
        let cases = [
            ("llm.modle", Some("llm.default_model")),
            ("llm.model", Some("llm.default_model")),
            ("llm.timeuot", Some("llm.timeout")),
            ("llm.retries", Some("llm.max_retries")),
            ("llm.key", Some("llm.api_key")),
            ("llm.base-url", Some("llm.base_url")),
            ("server.timeout", Some("llm.timeout")),
            ("timeout", Some("llm.timeout")),
            ("lmm", Some("llm")),
            ("lmm.timeout", Some("llm.timeout")),
            ("audits", Some("audit")),
            ("limits.budget", Some("limits.budget_usd")),
            ("permission.mode", Some("permissions.mode")),
            ("permissions.mod", Some("permissions.mode")),
            ("catalogue", Some("catalog")),
            ("kubernetes", None),
            ("spring", None),
            ("x", None),
            ("", None),
        ];
        for (asked, expected) in cases {
            assert_eq!(nearest(asked), expected, "{asked}");
        }
        assert_eq!(nearest(&"timeout".repeat(100)), None);
    }
}
