//! What a member can see: the folders it is kept to, less the names that are blocked.
//!
//! The gate refuses what lies out of sight, and whatever lists or searches leaves it out. It is made from constraints
//! once and then asked for every name. It knows names only: that a path leads nowhere else through a link is the
//! business of whoever opens it.

use super::pattern::Glob;
use crate::team::Constraints;

/// What can be seen.
#[derive(Debug, Clone, Default)]
pub struct Sight {
    /// Clean folders; none: everything.
    dirs: Vec<String>,
    /// The patterns as written; one that cannot be read blocks everything.
    blocked: Vec<(String, Option<Glob>)>,
}

impl Sight {
    /// What these constraints leave to see.
    pub fn of(constraints: &Constraints) -> Self {
        let dirs: Vec<String> = constraints.allowed_dirs.iter().map(|dir| clean(dir)).collect();
        let blocked = constraints.blocked_patterns.iter().map(|text| (text.clone(), Glob::new(text, true).ok()));
        Self { dirs: if dirs.iter().any(String::is_empty) { Vec::new() } else { dirs }, blocked: blocked.collect() }
    }

    /// Whether anything is out of sight.
    pub fn is_whole(&self) -> bool {
        self.dirs.is_empty() && self.blocked.is_empty()
    }

    /// Whether a path can be seen. So can the folders on the way to the ones that are allowed, `.` first.
    pub fn sees(&self, path: &str) -> bool {
        self.hides(path).is_none()
    }

    /// The constraint that keeps a path out of sight, in words.
    pub fn hides(&self, path: &str) -> Option<String> {
        let path = clean(path);
        let on_the_way = |dir: &String| path.is_empty() || is_within(dir, &path);
        if !self.dirs.is_empty() && !self.dirs.iter().any(|dir| is_within(&path, dir) || on_the_way(dir)) {
            return Some(self.bounds());
        }
        self.blocks(&path)
    }

    /// The same for what is to be changed: a folder on the way is nothing to write to.
    pub(super) fn shields(&self, path: &str) -> Option<String> {
        let path = clean(path);
        if !self.dirs.is_empty() && !self.dirs.iter().any(|dir| is_within(&path, dir)) {
            return Some(self.bounds());
        }
        self.blocks(&path)
    }

    fn blocks(&self, path: &str) -> Option<String> {
        // The root has no name that could be blocked.
        if path.is_empty() {
            return None;
        }
        let blocks = |glob: &Option<Glob>| glob.as_ref().is_none_or(|glob| glob.touches(path));
        let (pattern, _) = self.blocked.iter().find(|(_, glob)| blocks(glob))?;
        Some(format!("the member's `blocked_patterns` (`{pattern}`)"))
    }

    fn bounds(&self) -> String {
        format!("the member's `allowed_dirs` ({})", quoted(&self.dirs))
    }
}

/// A list as people read it.
pub(super) fn quoted(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

/// A path without `.` and doubled slashes; the root is empty.
fn clean(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    parts.join("/")
}

fn is_within(path: &str, dir: &str) -> bool {
    path.strip_prefix(dir).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_and_names() {
        let table: [(&[&str], &[&str], &str, bool); 17] = [
            (&[], &[], "a", true),
            (&["."], &[], "a/b", true),
            (&["./"], &[], ".", true),
            (&["src", "."], &[], "docs", true),
            (&["src"], &[], "src/a", true),
            (&["src"], &[], "src", true),
            (&["./src/"], &[], "src/a", true),
            (&["src"], &[], "srcs/a", false),
            (&["src"], &[], "docs", false),
            (&["src/a"], &[], ".", true),
            (&["src/a"], &[], "src", true),
            (&["src/a"], &[], "src/b", false),
            (&[], &["*.env"], "a/PROD.ENV/x", false),
            (&[], &["*"], ".", true),
            (&[], &["[a"], "x", false),
            (&["src"], &["*key*"], "src/keys/a", false),
            (&["src"], &["*key*"], "src/a", true),
        ];
        for (dirs, blocked, path, want) in table {
            let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
            let constraints =
                Constraints { allowed_dirs: list(dirs), blocked_patterns: list(blocked), ..Constraints::default() };
            assert_eq!(Sight::of(&constraints).sees(path), want, "{dirs:?} {blocked:?} {path}");
        }
    }
}
