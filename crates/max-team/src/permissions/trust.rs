//! Permissions of projects that the user has said yes to, rule by rule.
//!
//! A project can bring `allow` rules along, also in its local file. They count only if they are written down here, in
//! the user's own folder: a rule that a later version of the project adds is a stranger's again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::local::write;

/// Rules by the project's folder.
#[derive(Debug, Default)]
pub(crate) struct Trusted {
    path: PathBuf,
    rules: BTreeMap<String, Vec<String>>,
}

impl Trusted {
    /// What was written down; nothing if it cannot be read.
    pub(crate) fn read(home: &Path) -> Self {
        let path = home.join("trusted.json");
        let text = std::fs::read(&path).unwrap_or_default();
        Self { rules: serde_json::from_slice(&text).unwrap_or_default(), path }
    }

    pub(super) fn has(&self, root: &str, rule: &str) -> bool {
        self.rules.get(root).is_some_and(|rules| rules.iter().any(|known| known == rule))
    }

    /// Writes rules of a project down.
    pub(crate) fn add(&mut self, root: &str, rules: &[String]) -> std::io::Result<()> {
        let own = self.rules.entry(root.to_owned()).or_default();
        own.extend(rules.iter().filter(|rule| !own.contains(rule)).cloned().collect::<Vec<_>>());
        write(&self.path, &serde_json::to_string_pretty(&self.rules)?)
    }
}
