//! Permissions of projects that the user has said yes to, rule by rule.
//!
//! A project can bring `allow` rules along, also in its local file. They count only if they are written down here, in
//! the user's own folder: a rule that a later version of the project adds is a stranger's again. A skill is written
//! down here in the same way, by its name and the hash of its folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::local::write;
use crate::i18n::{Lang, Translated};

/// Rules, and skills, by the project's folder.
#[derive(Debug, Default)]
pub struct TrustedRules {
    path: PathBuf,
    rules: BTreeMap<String, Vec<String>>,
}

impl TrustedRules {
    /// What was written down. A file that cannot be read is not taken for an empty one: the next yes would replace it,
    /// and with it every earlier one.
    pub fn read(home: &Path) -> Result<Self, Translated> {
        let path = home.join("trusted.json");
        let told =
            |why: &dyn Fn(Lang) -> String| Translated::new(|lang| lang.trusted_unreadable(path.display(), why(lang)));
        let rules = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| told(&|lang| lang.json_fault(&error)))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(told(&|lang| lang.system_fault(&error))),
        };
        Ok(Self { rules, path })
    }

    /// Everything that the user has said yes to in a project.
    pub fn of(&self, root: &str) -> &[String] {
        self.rules.get(root).map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn has(&self, root: &str, rule: &str) -> bool {
        self.rules.get(root).is_some_and(|rules| rules.iter().any(|known| known == rule))
    }

    /// Writes rules of a project down.
    pub fn add(&mut self, root: &str, rules: &[String]) -> std::io::Result<()> {
        let own = self.rules.entry(root.to_owned()).or_default();
        own.extend(rules.iter().filter(|rule| !own.contains(rule)).cloned().collect::<Vec<_>>());
        write(&self.path, &serde_json::to_string_pretty(&self.rules)?)
    }
}
