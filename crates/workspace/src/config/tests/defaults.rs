//! The built-in defaults, the file that documents them, and the example of the first design.

use std::time::Duration;

use max_team_core::text::is_chinese;
use secrecy::ExposeSecret;
use tempfile::TempDir;

use super::super::choice::{Durability, Frontend, Language, Level};
use super::*;
use crate::i18n::Lang;

#[test]
fn the_default_file_says_what_the_table_says() {
    let place = Place::new().file("default.yaml", DEFAULT_FILE);
    let built_in = place.load().unwrap();
    let mut read = place.load_with(Some("../default.yaml"), &[]).unwrap();
    assert_eq!(read.warnings, [""; 0]);
    // Once it is written down, the audit goes below the project: that is the one difference.
    assert_eq!(read.audit.output, place.cwd().join("logs/audit.jsonl"));
    read.audit.output.clone_from(&built_in.audit.output);
    assert_eq!(format!("{read:?}"), format!("{built_in:?}"));
    assert_eq!(read.catalog, built_in.catalog);
    for key in table::keys() {
        let page = read.explain(Some(key.path), Lang::En).unwrap();
        assert!(page.contains("from ../default.yaml:"), "`{}` is missing in the default file", key.path);
        assert!(page.starts_with(&format!("{} = {}\n", key.path, (key.default)())), "{page}");
        let chinese = read.explain(Some(key.path), Lang::Zh).unwrap();
        assert!(!chinese.contains(key.doc.trim()) && chinese.contains("\n  来自："), "{chinese}");
    }
}

#[test]
fn the_default_file_documents_every_key_in_both_languages() {
    let lines: Vec<&str> = DEFAULT_FILE.lines().collect();
    for key in table::keys() {
        let indent = if key.section().is_empty() { "" } else { "  " };
        let starts = format!("{indent}{}:", key.name());
        let section = lines.iter().position(|line| *line == format!("{}:", key.section())).unwrap_or(0);
        let at = lines.iter().skip(section).position(|line| line.starts_with(&starts)).unwrap() + section;
        let comments: Vec<&str> =
            lines[..at].iter().rev().take_while(|line| line.trim().starts_with('#')).copied().collect();
        assert!(comments.iter().any(|line| line.contains(key.doc.trim())), "`{}`: not the table's words", key.path);
        let chinese = |line: &&str| line.chars().any(is_chinese);
        assert!(comments.iter().any(chinese), "`{}`: no Chinese comment", key.path);
    }
}

/// The example of the first design, letter for letter.
const SEED: &str = "server:
  port: 8080                          # Web UI 端口(Phase 3)
  mode: cli                           # cli | web

llm:
  provider: anthropic
  api_key: ${ANTHROPIC_API_KEY}       # 环境变量引用
  base_url: https://api.anthropic.com
  default_model: claude-sonnet-4-6
  max_retries: 3
  timeout: 120s

audit:
  enabled: true
  output: logs/audit.jsonl            # 结构化日志文件
  level: info                         # debug | info | warn | error

project:
  root: .                             # 项目根目录
  sandbox: true                       # 是否开启目录沙箱
";

#[test]
fn the_seeds_example_works_as_it_is() {
    let place = Place::new().file("project/config/config.yaml", SEED).variable("ANTHROPIC_API_KEY", "sk-1");
    let config = place.load().unwrap();
    assert_eq!(config.warnings, [""; 0]);
    assert_eq!(config.llm.default_model.as_deref(), Some("claude-sonnet-4-6"));
    assert_eq!(config.llm.timeout, Duration::from_secs(120));
    assert_eq!(config.project.root, place.cwd());
    assert_eq!(config.audit.output, place.cwd().join("logs/audit.jsonl"));
    assert!(config.llm.api_key.is_none(), "the provider's variable is found without the file");

    let named = place.load_with(Some("config/config.yaml"), &[]).unwrap();
    assert_eq!(named.llm.api_key.as_ref().map(|key| key.expose_secret()), Some("sk-1"));
    assert_eq!(named.llm.base_url.as_deref(), Some("https://api.anthropic.com"));
}

#[test]
fn a_copy_of_the_default_file_in_a_project_is_quiet() {
    let place = Place::new().project(DEFAULT_FILE);
    assert_eq!(place.warnings(), [""; 0]);
}

#[test]
fn without_a_user_the_defaults_stand() {
    let folder = TempDir::new().unwrap();
    let sources = Sources { env: &Env::default(), cwd: folder.path(), explicit: None, overrides: Vec::new() };
    let config = load(sources).unwrap();
    assert_eq!((config.server.port, config.server.mode), (8080, Frontend::Cli));
    assert_eq!((config.journal.sync, config.audit.level), (Durability::Normal, Level::Info));
    assert_eq!((config.ui.language, config.limits.rounds), (Language::Auto, 20));
}
