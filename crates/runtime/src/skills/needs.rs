//! A skill's requirements on the machine, and which of them are missing.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Programs of one list that are looked for.
const NAMED_MAX: usize = 32;

/// What a skill needs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Needs {
    /// All of these programs.
    pub bins: Vec<String>,
    /// One of these programs.
    pub any_bins: Vec<String>,
    /// All of these variables.
    pub env: Vec<String>,
    /// All of these settings.
    pub config: Vec<String>,
    /// One of these systems; empty: any.
    pub os: Vec<String>,
    /// Whether it is usable also if something is missing.
    pub always: bool,
}

/// What the machine has, as far as skills may know. They never see values of variables.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    /// Folders that are searched for programs.
    pub path: Vec<PathBuf>,
    /// Names of variables that are set and not empty.
    pub env: BTreeSet<String>,
    /// Names of settings that are set.
    pub config: BTreeSet<String>,
    /// The system, by its Rust name.
    pub os: String,
}

impl Needs {
    /// The missing requirements as text; empty: none is missing.
    pub fn missing(&self, machine: &Machine) -> Vec<String> {
        if self.always {
            return Vec::new();
        }
        let lacks = |bin: &&String| !machine.has(bin);
        let mut missing: Vec<String> =
            self.bins.iter().take(NAMED_MAX).filter(lacks).map(|bin| format!("`{bin}`")).collect();
        if !self.any_bins.is_empty() && self.any_bins.iter().take(NAMED_MAX).all(|bin| !machine.has(bin)) {
            let names: Vec<String> = self.any_bins.iter().map(|bin| format!("`{bin}`")).collect();
            missing.push(names.join(" or "));
        }
        let unset = self.env.iter().filter(|name| !machine.env.contains(*name));
        missing.extend(unset.map(|name| format!("`{name}`")));
        let unsaid = self.config.iter().filter(|key| !machine.config.contains(*key));
        missing.extend(unsaid.map(|key| format!("the setting `{key}`")));
        if !self.os.is_empty() && !self.os.iter().any(|os| is_system(os, &machine.os)) {
            missing.push(self.os.join(" or "));
        }
        missing
    }
}

impl Machine {
    /// Whether there is a program of that name.
    fn has(&self, bin: &str) -> bool {
        if bin.contains('/') || bin.is_empty() {
            return is_program(Path::new(bin)) && Path::new(bin).is_absolute();
        }
        self.path.iter().any(|folder| is_program(&folder.join(bin)))
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Compares a system's name in the spelling of other programs.
fn is_system(named: &str, ours: &str) -> bool {
    let named = named.to_lowercase();
    let ours = match ours {
        "macos" => ["macos", "darwin", "mac"],
        "windows" => ["windows", "win32", "win"],
        other => [other, other, other],
    };
    ours.contains(&named.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_requirements_are_named() {
        let machine = Machine {
            path: vec!["/bin".into(), "/usr/bin".into()],
            env: ["HOME".to_owned()].into(),
            config: ["tools.loki_url".to_owned()].into(),
            os: "linux".into(),
        };
        let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let needs = Needs {
            bins: list(&["sh", "no-such-program"]),
            any_bins: list(&["nor-this", "nor-that"]),
            env: list(&["HOME", "GEMINI_API_KEY"]),
            config: list(&["tools.loki_url", "x.y"]),
            os: list(&["darwin"]),
            always: false,
        };
        let want = ["`no-such-program`", "`nor-this` or `nor-that`", "`GEMINI_API_KEY`", "the setting `x.y`", "darwin"];
        assert_eq!(needs.missing(&machine), want);
        assert!(Needs { always: true, ..needs }.missing(&machine).is_empty());
        let fine = Needs { any_bins: list(&["nor-this", "sh"]), os: list(&["Linux", "darwin"]), ..Needs::default() };
        assert!(fine.missing(&machine).is_empty());
    }
}
