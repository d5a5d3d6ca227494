//! One settings file: its rules with their lines, and what else in it is about permissions.

use std::fs;
use std::io::Read;
use std::path::Path;

use max_team_core::policy::Mode;
use max_team_core::policy::rule::List;
use max_team_tools::command::is_planted;

use super::foreign;
use crate::config::quote;
use crate::config::yaml::{self, Node, Value};
use crate::i18n::{Lang, Translated};

/// Bytes of one file.
const BYTES_MAX: u64 = 1 << 20;
/// Rules of one file.
const RULES_MAX: usize = 2_000;
/// Folders besides the project's in one file: each is looked through before a command runs.
const FOLDERS_MAX: usize = 32;
/// Keys of a settings file that we or others know.
const KEYS: &[&str] = &[
    "$schema",
    "permissions",
    "env",
    "hooks",
    "disableAllHooks",
    "model",
    "fallbackModel",
    "modelPricing",
    "agent",
    "enableAllProjectMcpServers",
    "enabledMcpjsonServers",
    "disabledMcpjsonServers",
    "skillOverrides",
    "statusLine",
    "outputStyle",
    "language",
    "cleanupPeriodDays",
    "plansDirectory",
    "teammateMode",
    "autoMemoryEnabled",
    "respectGitignore",
    "attribution",
    "sandbox",
    "theme",
    "editorMode",
    "prefersReducedMotion",
    "askUserQuestionTimeout",
    "viewMode",
    "includeCoAuthoredBy",
    "apiKeyHelper",
    "mcpServers",
    "enabledPlugins",
    "alwaysThinkingEnabled",
    "forceLoginMethod",
    "spinnerTipsEnabled",
    "effortLevel",
];
/// Keys of its `permissions`.
const INNER: &[&str] = &[
    "allow",
    "ask",
    "deny",
    "defaultMode",
    "additionalDirectories",
    "disableBypassPermissionsMode",
    "disableAutoMode",
    "blockReadsOutsideWorkingDirectories",
    "blockWritesOutsideWorkingDirectories",
    "denyInsteadOfPrompting",
];

/// What is in a file.
#[derive(Debug, Default)]
pub(super) struct SettingsFile {
    pub(super) rules: Vec<(List, String, u32)>,
    pub(super) mode: Option<Mode>,
    pub(super) no_bypass: bool,
    /// Folders besides the project's, with their lines.
    pub(super) also: Vec<(String, u32)>,
    pub(super) no_reads_outside: bool,
    pub(super) no_writes_outside: bool,
    pub(super) never_asks: bool,
    pub(super) warnings: Vec<Translated>,
    /// Keys that have no effect here, with the names in them.
    pub(super) unused: Vec<(String, Vec<String>)>,
    /// Hooks that other programs run before a tool.
    pub(super) hooks: Vec<foreign::Hook>,
    /// Other events that have hooks.
    pub(super) events: Vec<String>,
    /// What in it may have been meant to forbid or to ask, and could not be read.
    pub(super) lost: Option<Translated>,
}

/// Reads a file; `None`: there is none.
pub(super) fn read(path: &Path, shown: &str) -> Result<Option<SettingsFile>, Translated> {
    let unread = |why: Translated| Translated::new(|lang| lang.settings_file_unused(shown, why.get(lang)));
    let failed = |error: std::io::Error| unread(Translated::new(|lang| lang.system_fault(&error)));
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(failed(error)),
    };
    if is_planted(path) {
        return Err(unread(Translated::new(|lang| lang.file_planted().to_owned())));
    }
    // A pipe or a device would hold us up for ever.
    if !meta.is_file() || meta.len() > BYTES_MAX {
        return Err(unread(Translated::new(|lang| lang.settings_no_file(BYTES_MAX))));
    }
    let mut text = String::new();
    let open = fs::File::open(path).map_err(failed)?;
    open.take(BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
    parse(&text, shown).map(Some).map_err(unread)
}

fn parse(text: &str, shown: &str) -> Result<SettingsFile, Translated> {
    let no_json = |error| Translated::new(|lang| lang.settings_no_json(lang.json_fault(&error)));
    let _: serde_json::Value = serde_json::from_str(text).map_err(no_json)?;
    // JSON is YAML, which knows the lines, but for tabs; no string of JSON holds a bare one.
    let node =
        yaml::parse(&text.replace('\t', " ")).map_err(|fault| Translated::new(|lang| lang.yaml_fault(&fault.kind)))?;
    let mut file = SettingsFile::default();
    let Value::Map(top) = &node.value else {
        return Err(Translated::new(|lang| lang.settings_no_object().to_owned()));
    };
    for (name, node) in top {
        match (name.text.as_str(), &node.value) {
            ("permissions", Value::Map(entries)) => {
                for (name, node) in entries {
                    inner(&mut file, &name.text, node, shown);
                }
            }
            ("permissions", _) => file.lose(shown, node, |lang| lang.permissions_no_object().to_owned()),
            ("$schema" | "disableAllHooks", _) => {}
            ("hooks", _) => (file.hooks, file.events) = foreign::hooks(node),
            (key, _) if KEYS.contains(&key) && foreign::is_empty(node) => {}
            (key, _) if KEYS.contains(&key) => file.unused.push((key.to_owned(), foreign::names(node))),
            (key, _) => file.unknown(shown, node, key, KEYS),
        }
    }
    let is_off = |(name, node): &(yaml::Name, Node)| name.text == "disableAllHooks" && node.text() == Some("true");
    if top.iter().any(is_off) {
        (file.hooks, file.events) = (Vec::new(), Vec::new());
    }
    Ok(file)
}

fn inner(file: &mut SettingsFile, key: &str, node: &Node, shown: &str) {
    let list = match key {
        "allow" => List::Allow,
        "ask" => List::Ask,
        "deny" => List::Deny,
        "defaultMode" => {
            let word = node.text().unwrap_or_default();
            file.mode = Mode::parse(word);
            if file.mode.is_none() {
                file.warn(shown, node, |lang| lang.permissions_no_mode(quote(word)));
            }
            return;
        }
        "disableBypassPermissionsMode" => {
            file.no_bypass = matches!(node.text(), Some("disable" | "true"));
            return;
        }
        "additionalDirectories" => return folders(file, node, shown),
        "blockReadsOutsideWorkingDirectories" => {
            return switch(file, key, node, shown, |file| &mut file.no_reads_outside);
        }
        "blockWritesOutsideWorkingDirectories" => {
            return switch(file, key, node, shown, |file| &mut file.no_writes_outside);
        }
        "denyInsteadOfPrompting" => return switch(file, key, node, shown, |file| &mut file.never_asks),
        "disableAutoMode" => {
            return file.warn(shown, node, |lang| lang.permissions_no_auto_mode().to_owned());
        }
        key => return file.unknown(shown, node, &format!("permissions.{key}"), INNER),
    };
    // A permission that is lost makes nothing freer.
    let tell = |file: &mut SettingsFile, node: &Node, words: &dyn Fn(Lang) -> String| match list {
        List::Allow => file.warn(shown, node, words),
        List::Ask | List::Deny => file.lose(shown, node, words),
    };
    let Value::List(items) = &node.value else {
        return tell(file, node, &|lang| lang.permissions_no_rules(key));
    };
    for item in items.iter().take(RULES_MAX) {
        match item.text() {
            Some(text) => file.rules.push((list, text.to_owned(), line(item))),
            None => tell(file, item, &|lang| lang.permissions_rule_text().to_owned()),
        }
    }
    if items.len() > RULES_MAX {
        tell(file, node, &|lang| lang.permissions_many_rules(RULES_MAX));
    }
}

/// Folders besides the project's.
fn folders(file: &mut SettingsFile, node: &Node, shown: &str) {
    let Value::List(items) = &node.value else {
        return file.warn(shown, node, |lang| lang.permissions_no_folders().to_owned());
    };
    for item in items.iter().take(FOLDERS_MAX) {
        match item.text() {
            Some(text) => file.also.push((text.to_owned(), line(item))),
            None => file.warn(shown, item, |lang| lang.permissions_folder_text().to_owned()),
        }
    }
    if items.len() > FOLDERS_MAX {
        file.warn(shown, node, |lang| lang.permissions_many_folders(FOLDERS_MAX));
    }
}

/// What is on or off. What cannot be read may have been meant to be on.
fn switch(file: &mut SettingsFile, key: &str, node: &Node, shown: &str, own: fn(&mut SettingsFile) -> &mut bool) {
    match node.text() {
        Some("true") => *own(file) = true,
        Some("false") => {}
        _ => file.lose(shown, node, |lang| lang.permissions_switch(key)),
    }
}

impl SettingsFile {
    fn warn(&mut self, shown: &str, node: &Node, words: impl Fn(Lang) -> String) {
        let place = format!("{shown}:{}", line(node));
        self.warnings.push(Translated::at(&place, words));
    }

    fn lose(&mut self, shown: &str, node: &Node, words: impl Fn(Lang) -> String) {
        self.warn(shown, node, words);
        let told = self.warnings.last().cloned();
        self.lost = self.lost.take().or(told);
    }

    fn unknown(&mut self, shown: &str, node: &Node, key: &str, known: &[&'static str]) {
        let name = key.rsplit('.').next().unwrap_or(key);
        self.warn(shown, node, |lang| lang.unknown_key(quote(key), lang.near(name, known.iter().copied())));
    }
}

fn line(node: &Node) -> u32 {
    u32::try_from(node.spot.line).unwrap_or(u32::MAX)
}
