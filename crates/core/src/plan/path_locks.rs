//! Which paths the tasks of a plan work on.
//!
//! Globs are indexed by their literal prefix: two globs can only overlap if one prefix begins with the other, so a
//! lookup costs the depth of a path and what lies beneath it, not all claims. [`overlap`] decides whether two globs do
//! overlap.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::overlap;
use crate::policy::glob::Glob;

/// The globs of active tasks by their literal prefix (`src/plan/`; empty for globs that begin with a star).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PathLocks(BTreeMap<String, BTreeSet<(usize, String)>>);

impl PathLocks {
    pub(super) fn hold(&mut self, task: usize, owns: &[String]) {
        for glob in owns {
            self.0.entry(plain(glob)).or_default().insert((task, glob.clone()));
        }
    }

    pub(super) fn release(&mut self, task: usize, owns: &[String]) {
        for glob in owns {
            let plain = plain(glob);
            if let Some(held) = self.0.get_mut(&plain) {
                held.remove(&(task, glob.clone()));
                if held.is_empty() {
                    self.0.remove(&plain);
                }
            }
        }
    }

    /// All claimed globs.
    pub(super) fn globs(&self) -> Vec<String> {
        self.0.values().flatten().map(|(_, glob)| glob.clone()).collect()
    }

    /// Whether another task works on one of these paths.
    pub(super) fn block(&self, task: usize, owns: &[String]) -> bool {
        !self.0.is_empty() && owns.iter().any(|mine| self.meets(task, mine))
    }

    fn meets(&self, task: usize, mine: &str) -> bool {
        let plain = plain(mine);
        let above = plain.match_indices('/').map(|(at, _)| plain.get(..at + 1).unwrap_or_default());
        let above =
            std::iter::once("").chain(above).filter(|above| *above != plain).filter_map(|above| self.0.get(above));
        let beneath =
            self.0.range(plain.clone()..).take_while(|(held, _)| held.starts_with(&plain)).map(|(_, held)| held);
        above.chain(beneath).flatten().any(|(other, theirs)| *other != task && overlap(mine, theirs))
    }
}

/// The leading parts of a glob that contain no wildcard.
fn plain(glob: &str) -> String {
    let mut plain = String::new();
    // An invalid glob may match anything.
    if Glob::new(glob, true).is_err() {
        return plain;
    }
    let parts = glob.strip_prefix("./").unwrap_or(glob).split('/').filter(|part| !part.is_empty());
    for part in parts.take_while(|part| !part.contains(['*', '?', '[', '\\'])) {
        plain.extend(part.chars().flat_map(char::to_lowercase));
        plain.push('/');
    }
    plain
}
