//! Files that git ignores and that were made in a worktree.
//!
//! None of them was there when the worktree was made. They are merged only if they are named; the others are reported,
//! so that they are not lost unnoticed. Leftovers of builds are not work, and are not reported.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use super::baseline::Baseline;
use super::{CHANGES_MAX, Worktree, WorktreeError};
use crate::git::process::GitOutput;
use crate::git::worktree_diff::LEFTOVERS;
use crate::text::visible;

/// Ignored files that are named.
const FILES_MAX: usize = 100;
/// Files that git is told of at once.
const BATCH: usize = 200;

/// Files of a worktree that git ignores and that were not named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct IgnoredFiles {
    /// The first of them, by path.
    pub files: Vec<String>,
    /// How many there are besides.
    pub more: usize,
}

impl IgnoredFiles {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.files.len() + self.more
    }
}

impl Worktree {
    /// Adds ignored files to our list of the tree if they, or a folder above them, are named; returns the others.
    pub(super) fn sift(&self, keep: &Baseline<'_>, named: &BTreeSet<&str>) -> Result<IgnoredFiles, WorktreeError> {
        let tree = self.root();
        let mut sieve = IgnoredFilter::new(named);
        let list = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard"];
        let (code, complaint) = keep.question(&tree, &keep.now).stream(&list, &mut |bytes| sieve.push(bytes))?;
        if sieve.asked.len() > CHANGES_MAX {
            return Err(WorktreeError::TooMany(self.id().to_owned(), tree.display().to_string()));
        }
        if code != Some(0) {
            let answer = GitOutput { code, bytes: Vec::new(), is_cut: false, complaint };
            return Err(answer.failed("list ignored files").into());
        }
        for batch in sieve.asked.chunks(BATCH) {
            let names = batch.iter().map(String::as_str);
            let args: Vec<&str> = ["-c", "core.fsync=all", "add", "--force", "--"].into_iter().chain(names).collect();
            keep.told(&tree, &keep.now, &args, "read the worktree")?;
        }
        Ok(sieve.others)
    }
}

/// Ignored files as git names them.
struct IgnoredFilter<'a> {
    named: &'a BTreeSet<&'a str>,
    leftovers: Vec<String>,
    /// The beginning of a name whose end has not come yet.
    part: Vec<u8>,
    asked: Vec<String>,
    others: IgnoredFiles,
}

impl<'a> IgnoredFilter<'a> {
    fn new(named: &'a BTreeSet<&'a str>) -> Self {
        let patterns = LEFTOVERS.iter().filter_map(|word| word.strip_prefix("--exclude="));
        let leftovers = patterns.map(|pattern| format!("/{}", pattern.trim_start_matches("**/"))).collect();
        Self { named, leftovers, part: Vec::new(), asked: Vec::new(), others: IgnoredFiles::default() }
    }

    /// Takes git's output; `false` once it names more files than can be merged.
    fn push(&mut self, bytes: &[u8]) -> bool {
        for piece in bytes.split_inclusive(|byte| *byte == 0) {
            self.part.extend_from_slice(piece);
            if self.part.pop_if(|byte| *byte == 0).is_some() {
                let name = std::mem::take(&mut self.part);
                self.take(&name);
            }
        }
        self.asked.len() <= CHANGES_MAX
    }

    fn take(&mut self, name: &[u8]) {
        match std::str::from_utf8(name) {
            Ok(path) if self.is_named(path) => self.asked.push(path.to_owned()),
            Ok(path) if self.is_leftover(path) => {}
            _ if self.others.files.len() < FILES_MAX => {
                self.others.files.push(visible(&String::from_utf8_lossy(name)));
            }
            _ => self.others.more += 1,
        }
    }

    fn is_named(&self, path: &str) -> bool {
        let above = Path::new(path).ancestors().filter_map(Path::to_str);
        above.filter(|above| !above.is_empty()).any(|above| self.named.contains(above))
    }

    fn is_leftover(&self, path: &str) -> bool {
        let path = format!("/{path}");
        self.leftovers.iter().any(|left| if left.ends_with('/') { path.contains(left) } else { path.ends_with(left) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_in_pieces_and_what_builds_leave_is_not_told_of() {
        let named = BTreeSet::from(["build/out.txt", "dist"]);
        let mut sieve = IgnoredFilter::new(&named);
        let said = b"build/out.txt\0build/outer\0dist/a/b\0target/debug/x\0sub/target/CACHEDIR.TAG\0\
                     a/node_modules/b\0my_node_modules/b\0target/doc/x\0\xff\0";
        for piece in said.chunks(3) {
            assert!(sieve.push(piece));
        }
        assert_eq!(sieve.asked, ["build/out.txt", "dist/a/b"]);
        assert_eq!(sieve.others.files[..3], ["build/outer", "my_node_modules/b", "target/doc/x"]);
        assert_eq!(sieve.others.count(), 4);
    }

    #[test]
    fn many_are_counted_and_some_are_named() {
        let named = BTreeSet::new();
        let mut sieve = IgnoredFilter::new(&named);
        assert!((0..FILES_MAX + 7).all(|number| sieve.push(format!("log/{number}\0").as_bytes())));
        assert_eq!((sieve.others.files.len(), sieve.others.more, sieve.others.count()), (100, 7, 107));
    }
}
