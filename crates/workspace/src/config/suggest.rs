//! The key that was probably meant.
//!
//! A slip of the finger (`llm.timeuot`), the right name in the wrong section (`server.timeout`) and half a name
//! (`llm.model` for `llm.default_model`) are all found. It only guesses: nothing is ever set by a guess.

use max_team_core::suggest::slips;

use super::table::{self, ConfigKey};

/// The nearest key or section, if any is near.
pub(super) fn nearest(asked: &str) -> Option<&'static str> {
    let (section, name) = asked.rsplit_once('.').unwrap_or(("", asked));
    let keys = table::keys().filter_map(|key| Some((cost(section, name, key)?, key.path)));
    let sections = table::SECTIONS.iter().filter(|_| section.is_empty());
    let sections = sections.filter_map(|path| Some((slips(name, path)? * 4, *path)));
    sections.chain(keys).min_by_key(|(cost, _)| *cost).map(|(_, path)| path)
}

/// Slips count most, then a name that is only a part of ours, then a wrong section.
fn cost(section: &str, name: &str, key: &ConfigKey) -> Option<usize> {
    let whole = slips(name, key.name()).map(|slips| slips * 4);
    let part = key.name().split('_').filter_map(|word| slips(name, word)).min().map(|slips| slips * 4 + 2);
    let elsewhere = slips(section, key.section()).map_or(3, |slips| slips.min(2));
    Some(whole.into_iter().chain(part).min()? + elsewhere)
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
