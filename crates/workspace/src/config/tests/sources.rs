//! Which source wins, and what the trail says about it.

use std::time::Duration;

use crate::i18n::Lang;

use super::super::choice::Color;
use super::*;

#[test]
fn later_sources_win_and_the_trail_names_them_all() {
    let place = Place::new()
        .file("user/.config/max-team/config.yaml", "llm: {timeout: 10s}\n")
        .user("llm:\n  timeout: 20s\n")
        .file("project/config/config.yaml", "llm: {timeout: 30s}\n")
        .file("project/config.yaml", "llm: {timeout: 40s}\n")
        .project("\nllm: {timeout: 50s}\n");
    assert_eq!(place.load().unwrap().llm.timeout, Duration::from_secs(50));

    let config = place.load_with(None, &[("llm.timeout", "1m", "--timeout")]).unwrap();
    assert_eq!(config.llm.timeout, Duration::from_secs(60));
    let expected = "llm.timeout = 60s
  How long to wait for the model before a request counts as failed.
  from --timeout
  instead of 50s from .max-team/config.yaml:2
  instead of 40s from config.yaml:1
  instead of 30s from config/config.yaml:1
  instead of 20s from /user/.max-team/config.yaml:2
  instead of 10s from /user/.config/max-team/config.yaml:1
  instead of 120s, the default
";
    assert_eq!(place.shorten(&config.explain(Some("llm.timeout"), Lang::En).unwrap()), expected);
}

#[test]
fn a_named_file_takes_the_projects_place() {
    let place =
        Place::new().project("llm: {timeout: 50s}\n").file("mine.yaml", "llm: {max_retries: 1, base_url: http://x}\n");
    let config = place.load_with(Some("../mine.yaml"), &[]).unwrap();
    assert_eq!((config.llm.timeout, config.llm.max_retries), (Duration::from_secs(120), 1));
    assert_eq!(config.llm.base_url.as_deref(), Some("http://x"));
    assert_eq!(config.warnings, [""; 0]);

    let error = place.load_with(Some("none.yaml"), &[]).unwrap_err().to_string();
    assert!(error.starts_with("none.yaml: cannot be read: "), "{error}");
    assert!(error.ends_with("check the path, or leave the flag out to use the usual files"), "{error}");
}

#[test]
fn everything_is_explained_in_one_table() {
    let place = Place::new()
        .user("llm: {provider: ollama}\n")
        .file("project/config.yaml", "spring: {x: 1}\n")
        .project("llm: {base_url: 'https://evil.example'}\n");
    let config = place.load().unwrap();
    let page = place.shorten(&config.explain(None, Lang::En).unwrap());
    let line = |start: &str| page.lines().find(|line| line.starts_with(start)).unwrap_or_default();
    let words = |start: &str| line(start).split_whitespace().collect::<Vec<_>>();
    assert_eq!(words("server.port "), ["server.port", "8080", "default"]);
    assert_eq!(words("llm.provider "), ["llm.provider", "ollama", "/user/.max-team/config.yaml:1"]);
    assert_eq!(words("llm.base_url "), ["llm.base_url", "null", "default"]);
    assert_eq!(line("llm.provider").find("ollama"), line("llm.base_url").find("null"), "columns line up:\n{page}");
    let tail = "
read, the last one wins:
  /user/.max-team/config.yaml
  .max-team/config.yaml

held back:
  .max-team/config.yaml:1: llm.base_url: a project's file may not decide where your key goes

left alone:
  config.yaml: it belongs to another program
";
    assert!(page.ends_with(tail), "{page}");
    assert!(!config.explain(Some("llm"), Lang::En).unwrap().contains("server."));

    let error = config.explain(Some("llm.modle"), Lang::En).unwrap_err().to_string();
    assert!(error.starts_with("config explain: unknown key `llm.modle`, did you mean `llm.default_model`?"), "{error}");
}

#[test]
fn variables_are_filled_in() {
    let text = "llm:\n  provider: ${P:-openai}\n  timeout: ${T}\n  default_model: ${M:-}\nui: {color: '${C}'}\n";
    let place = Place::new().user(text).variable("T", "5s").variable("C", "never");
    let config = place.load().unwrap();
    assert_eq!(config.llm.provider.as_deref(), Some("openai"));
    assert_eq!((config.llm.timeout, config.ui.color), (Duration::from_secs(5), Color::Never));
    assert_eq!(config.llm.default_model, None);

    let unset = Place::new().user("llm:\n  provider: ${P}\n  default_model: ${x\n");
    let expected = [
        "/user/.max-team/config.yaml:2:13: `llm.provider`: the variable `P` is not set",
        "/user/.max-team/config.yaml:3:18: `llm.default_model`: `${x` is not a reference to a variable",
    ];
    assert_eq!(unset.problems(), expected);
}

#[test]
fn a_key_variable_that_is_not_set_means_no_key() {
    let config = Place::new().user("llm: {api_key: '${ANTHROPIC_API_KEY}'}\n").load().unwrap();
    assert!(config.llm.api_key.is_none());
    let page = config.explain(Some("llm.api_key"), Lang::En).unwrap();
    assert!(page.starts_with("llm.api_key = null\n") && page.contains("(${ANTHROPIC_API_KEY})"), "{page}");
}

#[test]
fn flags_are_checked_like_files() {
    let place = Place::new();
    let error = place.load_with(None, &[("llm.timeout", "x", "--timeout")]).unwrap_err().to_string();
    assert!(error.starts_with("--timeout: `llm.timeout`: expected a duration"), "{error}");
    let error = place.load_with(None, &[("llm.modle", "x", "--set")]).unwrap_err().to_string();
    assert!(error.starts_with("--set: unknown key `llm.modle`, did you mean `llm.default_model`?\n"), "{error}");

    let flags = [
        ("llm.default_model", "${X} 1.10", "--model"),
        ("llm.api_key_helper", "[pass, show]", "--set"),
        ("limits.budget_usd", "1", "--set"),
        ("limits.budget_usd", "null", "--max-budget-usd"),
        ("llm.api_key_file", "k", "--set"),
    ];
    let config = place.load_with(None, &flags).unwrap();
    assert_eq!(config.llm.default_model.as_deref(), Some("${X} 1.10"));
    assert_eq!(config.llm.api_key_helper, Some(vec!["pass".to_owned(), "show".to_owned()]));
    assert_eq!(config.limits.budget_usd, None);
    assert_eq!(config.llm.api_key_file, Some(place.cwd().join("k")));
}

#[test]
fn paths_start_where_a_reader_expects() {
    let place = Place::new().user("llm: {api_key_file: key}\nproject: {root: ~/work}\naudit: {output: a.jsonl}\n");
    let user = place.folder.path().join("user");
    let config = place.load().unwrap();
    assert_eq!(config.llm.api_key_file, Some(user.join(".max-team/key")));
    assert_eq!(config.project.root, user.join("work"));
    assert_eq!(config.audit.output, user.join("work/a.jsonl"));
}
