//! Who works on which paths.
//!
//! Globs are kept by the part of them that is plain: two can only meet if the one's plain part begins with the
//! other's, so a look costs the depth of a path and what lies beneath it, not all that is claimed. Whether two of
//! them do meet is for [`overlap`] to say.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::overlap;
use crate::policy::pattern::Glob;

/// The globs of those at work, by their plain part (`src/plan/`; empty for those that begin with a star).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Claims(BTreeMap<String, BTreeSet<(usize, String)>>);

impl Claims {
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

    /// All of them.
    pub(super) fn globs(&self) -> Vec<String> {
        self.0.values().flatten().map(|(_, glob)| glob.clone()).collect()
    }

    /// Whether somebody else is at work on one of these paths.
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

/// The parts that a glob begins with and in which nothing stands for anything else.
fn plain(glob: &str) -> String {
    let mut plain = String::new();
    // One that cannot be read may mean anything.
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
