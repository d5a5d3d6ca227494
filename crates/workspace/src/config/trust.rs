//! What a file that came with a project may not do.
//!
//! A cloned repository can bring a `config.yaml`. It may choose a model or a log level; it may not send the user's
//! key to a stranger, run a program, read the user's variables, loosen what agents may do, write outside the
//! project or raise a limit. Such values are held back: they stay unused, and the user is told where
//! they are and how to allow them. The same values count when they stand in the user's own file or in one that was
//! named with `--config`. This module only judges; it sets nothing.

use std::path::{Component, Path};

use max_team_core::limits;
use max_team_core::policy::Mode;

use super::choice::{Choice as _, Level};
use super::yaml::{Node, Value};

/// Variables with this beginning are meant for projects. Any other may hold a key, and a model's name travels to the
/// provider.
const OPEN_PREFIX: &str = "MAX_TEAM_PROJECT_";

/// Where the audit goes in the first design's example, below the project.
const AUDIT_FILE: &str = "logs/audit.jsonl";

/// What a project's file may not do; `Lang::project_limit` says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectLimit {
    /// Decide where the user's key goes.
    Key,
    /// Choose programs to run.
    Run,
    /// Read the user's variables.
    Read,
    /// Loosen what agents may do.
    Free,
    /// Choose hosts to ask.
    Hosts,
    /// Point outside the project.
    Outside,
    /// Switch off, thin out or move the audit.
    Audit,
    /// Have more of the user remembered or told.
    Memory,
    /// Decide how long sessions are kept.
    Keep,
    /// Decide under which names the web page is reached.
    Pages,
    /// Raise a limit.
    Spend,
}

/// The lines of the first design's example, which was meant to be copied into projects. They ask for what happens
/// anyway, so they are left unused without a word.
const EXAMPLE: [(&str, &str); 2] =
    [("llm.api_key", "${ANTHROPIC_API_KEY}"), ("llm.base_url", "https://api.anthropic.com")];

/// Keys that a project may not set at all, before anything in them is read.
pub(super) fn by_key(path: &str) -> Option<ProjectLimit> {
    match path {
        "llm.base_url" | "llm.api_key" | "llm.api_key_file" | "catalog" => Some(ProjectLimit::Key),
        "llm.api_key_helper" | "tools.mcp_servers" | "tools.browser_path" => Some(ProjectLimit::Run),
        "journal.keep_days" => Some(ProjectLimit::Keep),
        "server.public_url" => Some(ProjectLimit::Pages),
        "tools.loki_url"
        | "tools.prometheus_url"
        | "tools.geocode_url"
        | "tools.private_hosts"
        | "tools.web_search" => Some(ProjectLimit::Hosts),
        "tools.browser_profiles" => Some(ProjectLimit::Key),
        _ => None,
    }
}

/// Variables that a project may not read.
pub fn by_names(names: &[String]) -> Option<ProjectLimit> {
    names.iter().any(|name| !name.starts_with(OPEN_PREFIX)).then_some(ProjectLimit::Read)
}

/// Values that a project may not choose. `chosen` tells what the user has set by file or flag, as it is shown.
pub(super) fn by_value(path: &str, shown: &str, chosen: impl Fn(&str) -> Option<String>) -> Option<ProjectLimit> {
    if chosen(path).is_some_and(|own| own == shown) {
        return None;
    }
    match path {
        // A key that the user wrote down belongs to a provider; another provider must not get it.
        "llm.provider" => {
            let keys = ["llm.api_key", "llm.api_key_file", "llm.api_key_helper"];
            keys.iter().any(|key| chosen(key).is_some_and(|value| value != "null")).then_some(ProjectLimit::Key)
        }
        "permissions.mode" => {
            // Without a choice of the user the default counts; a project may repeat or tighten it.
            let own = chosen(path).and_then(|own| Mode::parse(&own)).unwrap_or_default();
            let is_tight = Mode::parse(shown).is_some_and(|mode| mode == own || mode.is_stricter(own));
            (!is_tight).then_some(ProjectLimit::Free)
        }
        // It costs money, and it is about the user: a project may only have less of it.
        "memory.extract" | "memory.recall" => {
            let degree = |value: &str| ["false", "true", "always"].iter().position(|known| *known == value);
            let own = chosen(path).map_or(degree("true"), |own| degree(&own));
            (degree(shown) > own).then_some(ProjectLimit::Memory)
        }
        "project.sandbox" => (shown == "false").then_some(ProjectLimit::Free),
        "project.root" => (!is_inside(shown)).then_some(ProjectLimit::Outside),
        "audit.enabled" => (shown == "false").then_some(ProjectLimit::Audit),
        // The place that the first design gives it, unless the user has another in mind.
        "audit.output" => {
            let is_usual = Path::new(shown.trim_start_matches("./")) == Path::new(AUDIT_FILE);
            (!is_usual || chosen(path).is_some()).then_some(ProjectLimit::Audit)
        }
        "audit.level" => {
            let own = chosen(path).and_then(|own| level(&own)).unwrap_or(Level::Info);
            level(shown).is_none_or(|level| level > own).then_some(ProjectLimit::Audit)
        }
        "limits.rounds" | "limits.budget_usd" | "team.call_depth" => {
            // Rounds and calls have a limit even where the user chose none; money has not.
            let usual = || match path {
                "limits.rounds" => Some(limits::ROUNDS_MAX_DEFAULT.to_string()),
                "team.call_depth" => Some(limits::CALL_DEPTH_DEFAULT.to_string()),
                _ => None,
            };
            let own: f64 = chosen(path).or_else(usual)?.parse().ok()?;
            (!shown.parse().is_ok_and(|value: f64| value <= own)).then_some(ProjectLimit::Spend)
        }
        _ => None,
    }
}

/// Whether a value that is held back is not worth a warning.
pub(super) fn is_harmless(path: &str, node: &Node, chosen: impl Fn(&str) -> Option<String>) -> bool {
    match (&node.value, node.text()) {
        (Value::Map(entries), _) => entries.is_empty(),
        (Value::List(items), _) => items.is_empty(),
        (_, Some(text)) => {
            text.is_empty() || EXAMPLE.contains(&(path, text)) || chosen(path).is_some_and(|own| own == text)
        }
        _ => node.is_null(),
    }
}

fn level(name: &str) -> Option<Level> {
    Level::NAMES.iter().find(|(own, _)| *own == name).map(|(_, level)| *level)
}

fn is_inside(path: &str) -> bool {
    let plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    !path.starts_with('~') && Path::new(path).components().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(path: &str, shown: &str, chosen: &[(&str, &str)]) -> bool {
        let chosen = |asked: &str| chosen.iter().find(|(path, _)| *path == asked).map(|(_, value)| (*value).to_owned());
        by_value(path, shown, chosen).is_some()
    }

    #[test]
    fn modes() {
        let mode = |shown, own: Option<&str>| match own {
            Some(own) => held("permissions.mode", shown, &[("permissions.mode", own)]),
            None => held("permissions.mode", shown, &[]),
        };
        for loose in ["acceptEdits", "auto", "bypassPermissions"] {
            assert!(mode(loose, None) && mode(loose, Some("plan")), "{loose}");
            assert!(!mode(loose, Some(loose)), "the user chose {loose} too");
        }
        assert!(!mode("plan", None) && !mode("plan", Some("bypassPermissions")));
        assert!(!mode("default", None) && mode("default", Some("plan")));
        assert!(!mode("dontAsk", None) && mode("dontAsk", Some("plan")) && mode("default", Some("dontAsk")));
    }

    #[test]
    fn paths() {
        for outside in ["/tmp/x", "../x", "a/../../x", "~/x", "~"] {
            assert!(held("audit.output", outside, &[]) && held("project.root", outside, &[]), "{outside}");
        }
        for inside in [".", "logs/audit.jsonl", "./a/b"] {
            assert!(!held("project.root", inside, &[]), "{inside}");
        }
    }

    #[test]
    fn the_audit_stays_as_the_user_has_it() {
        assert!(held("audit.enabled", "false", &[]) && !held("audit.enabled", "true", &[]));
        assert!(!held("audit.output", "./logs/audit.jsonl", &[]) && held("audit.output", "a.jsonl", &[]));
        assert!(held("audit.output", "logs/audit.jsonl", &[("audit.output", "/var/log/max.jsonl")]));
        assert!(!held("audit.level", "info", &[]) && !held("audit.level", "debug", &[]));
        assert!(held("audit.level", "error", &[]) && held("audit.level", "info", &[("audit.level", "debug")]));
    }

    #[test]
    fn limits_may_only_sink() {
        let own = [("limits.budget_usd", "5"), ("limits.rounds", "10")];
        assert!(held("limits.budget_usd", "6", &own) && held("limits.budget_usd", "null", &own));
        assert!(!held("limits.budget_usd", "4.5", &own) && !held("limits.rounds", "10", &own));
        assert!(!held("limits.budget_usd", "100", &[]) && held("limits.rounds", "100", &[]));
    }

    #[test]
    fn a_written_key_stays_with_its_provider() {
        assert!(held("llm.provider", "other", &[("llm.api_key", "***")]));
        assert!(!held("llm.provider", "other", &[("llm.api_key", "null")]));
        assert!(!held("llm.provider", "mine", &[("llm.api_key", "***"), ("llm.provider", "mine")]));
        assert!(!held("llm.provider", "other", &[]));
    }

    #[test]
    fn variables() {
        assert!(by_names(&["MAX_TEAM_TOKEN".into()]).is_some());
        assert!(by_names(&["MAX_TEAM_PROJECT_MODEL".into(), "AWS_SECRET".into()]).is_some());
        assert!(by_names(&["MAX_TEAM_PROJECT_MODEL".into()]).is_none() && by_names(&[]).is_none());
    }
}
