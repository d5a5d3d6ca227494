//! Where the path of a rule starts, and the places that it is compared with.
//!
//! All paths are absolute here: a pattern begins at its anchor; a place is its name and, if that is a link, its
//! target. Names are cleaned by their text alone; the caller, which has access to the disk, resolves links.

use crate::policy::glob::{Glob, GlobError};

/// The folders that paths in rules start from, absolute.
#[derive(Debug, Clone, Copy)]
pub struct Anchors<'a> {
    /// The project's: `x`, `./x`.
    pub root: &'a str,
    /// The folder of the settings file: `/x`.
    pub base: &'a str,
    /// The user's: `~/x`.
    pub home: &'a str,
}

impl Anchors<'_> {
    /// The folder that a path starts from.
    pub(super) fn anchor_of(&self, path: &str) -> String {
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

/// The pattern of a rule as an absolute glob. A denial without a folder applies at any depth.
pub(super) fn glob(anchor: &str, path: &str, strict: bool) -> Result<Glob, GlobError> {
    let rest = path.strip_prefix('~').unwrap_or(path);
    let is_free = rest.len() == path.len() && !path.starts_with('/');
    let mut parts: Vec<String> = names(anchor).map(escape).collect();
    if is_free && strict {
        parts.push("**".to_owned());
    }
    for part in names(rest) {
        // `..` after `**` has no defined meaning.
        match part {
            ".." if parts.last().is_some_and(|last| last == "**") => return Err(GlobError::Dots),
            ".." => drop(parts.pop()),
            part => parts.push(part.to_owned()),
        }
    }
    if names(rest).next().is_none() || rest.ends_with('/') {
        parts.push("**".to_owned());
    }
    // The root has no name; the leading `/` anchors the pattern there.
    Glob::new(&format!("/{}", parts.join("/")), strict)
}

/// Escapes a name so that a glob matches it literally.
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

/// An absolute path, cleaned by its text: `..` removes the name before it.
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
pub(in crate::policy) struct ResolvedPath {
    pub(in crate::policy) path: String,
    pub(in crate::policy) real: Option<String>,
}

impl ResolvedPath {
    /// Whether either end satisfies `is`: one is enough for a denial.
    pub(super) fn any(&self, is: impl Fn(&str) -> bool) -> bool {
        self.ends().any(is)
    }

    /// Whether both ends satisfy `is`: a permission needs both.
    pub(super) fn all(&self, is: impl Fn(&str) -> bool) -> bool {
        self.ends().all(is)
    }

    /// Both ends in the form that globs match.
    pub(in crate::policy) fn ends(&self) -> impl Iterator<Item = &str> {
        [Some(&self.path), self.real.as_ref()].into_iter().flatten().map(|path| path.trim_start_matches('/'))
    }
}
