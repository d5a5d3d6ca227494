//! Where the path of a rule starts, and the places that it is held against.
//!
//! Everything is absolute here: a pattern begins at its anchor, a place is where its name leads and, if a link stands
//! on the way, where that leads. Names are made clean by their letters alone; whoever has a disk follows the links.

use crate::policy::pattern::{Glob, GlobError};

/// The folders that paths in rules start from, absolute.
#[derive(Debug, Clone, Copy)]
pub struct Anchors<'a> {
    /// The project's: `x`, `./x`.
    pub root: &'a str,
    /// The one that the settings file is for: `/x`.
    pub base: &'a str,
    /// The user's: `~/x`.
    pub home: &'a str,
}

impl Anchors<'_> {
    /// The folder that a path starts from.
    pub(super) fn of(&self, path: &str) -> String {
        let path = path.trim();
        let anchor = if path.starts_with("//") {
            "/"
        } else if path == "~" || path.starts_with("~/") {
            self.home
        } else if path.starts_with('/') {
            self.base
        } else {
            self.root
        };
        anchor.to_owned()
    }
}

/// The pattern of a rule, from the top of the disk. A denial without a place of its own holds at any depth.
pub(super) fn glob(anchor: &str, path: &str, strict: bool) -> Result<Glob, GlobError> {
    let rest = path.strip_prefix('~').unwrap_or(path);
    let is_free = rest.len() == path.len() && !path.starts_with('/');
    let mut parts: Vec<String> = names(anchor).map(escape).collect();
    if is_free && strict {
        parts.push("**".to_owned());
    }
    for part in names(rest) {
        // Not above a pattern: nobody knows what that would be.
        match part {
            ".." if parts.last().is_some_and(|last| last == "**") => return Err(GlobError::Dots),
            ".." => drop(parts.pop()),
            part => parts.push(part.to_owned()),
        }
    }
    if names(rest).next().is_none() || rest.ends_with('/') {
        parts.push("**".to_owned());
    }
    // The top has no name; the `/` says that the pattern begins there.
    Glob::new(&format!("/{}", parts.join("/")), strict)
}

/// A name so that a glob takes it letter by letter.
pub fn escape(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for letter in name.chars() {
        if matches!(letter, '*' | '?' | '[' | '\\' | '{' | '}') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".")
}

/// A path from the top, clean by its letters: `..` takes back the name before it.
pub(in crate::policy) fn absolute(folder: &str, path: &str) -> String {
    let from = if path.starts_with('/') { "" } else { folder };
    let mut full = String::with_capacity(from.len() + path.len() + 2);
    for part in names(from).chain(names(path)) {
        if part == ".." {
            full.truncate(full.rfind('/').unwrap_or_default());
        } else {
            full.push('/');
            full.push_str(part);
        }
    }
    if full.is_empty() { "/".to_owned() } else { full }
}

/// A place on the disk, absolute: its name, and where a link leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::policy) struct Place {
    pub(in crate::policy) path: String,
    pub(in crate::policy) real: Option<String>,
}

impl Place {
    /// Whether either end is such: what forbids needs one of them.
    pub(super) fn any(&self, is: impl Fn(&str) -> bool) -> bool {
        self.ends().any(is)
    }

    /// Whether both ends are such: what allows needs them all.
    pub(super) fn all(&self, is: impl Fn(&str) -> bool) -> bool {
        self.ends().all(is)
    }

    /// Both ends, as globs take them.
    pub(in crate::policy) fn ends(&self) -> impl Iterator<Item = &str> {
        [Some(&self.path), self.real.as_ref()].into_iter().flatten().map(|path| path.trim_start_matches('/'))
    }
}
