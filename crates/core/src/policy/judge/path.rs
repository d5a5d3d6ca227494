//! Judges reads and changes of a path.
//!
//! A link has two ends, its name and its target: a denial of either counts, a permission must cover both.

use super::{AutoAllow, Basis, JudgedAction, Judgement, constrained, danger, free, said, strictest, then};
use crate::agent::Constraints;
use crate::policy::protected::{ProtectedRow, named_file_row, protecting_row};
use crate::policy::rule::{ResolvedPath, Rule, RuleSubject, absolute, escape};
use crate::policy::{
    ActionKind, DangerReason, GrantScope, Hint, Mode, Recourse, RememberedRule, Verdict, glob, visibility,
};

/// What is done to a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathAccess {
    Read,
    ReadLinked,
    Write,
    Delete,
}

/// Devices that store nothing.
const DEVICES: [&str; 7] =
    ["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/zero", "/dev/urandom", "/dev/tty"];

/// The constraint of a member that may change nothing.
const READ_ONLY: &str = "`read_only`";

/// Whether a path is a device that stores nothing.
pub(super) fn is_device(path: &str) -> bool {
    DEVICES.contains(&path)
}

impl JudgedAction<'_> {
    /// Judges a touch of a path as written, relative to a folder of the project.
    pub(super) fn place(&self, touch: PathAccess, folder: &str, path: &str) -> Judgement {
        let root = self.root();
        let full = self.original(absolute(&absolute(root, folder), path));
        if is_device(&full) {
            return free(AutoAllow::Device);
        }
        let links = &self.action.links;
        let real = links.iter().find(|(name, _)| self.original(absolute(root, name)) == full);
        let real = real.map(|(_, real)| self.original(absolute(root, real)));
        let place = ResolvedPath { path: full, real };
        if let Some(rule) = place.ends().find_map(|end| self.forbidden(touch, end)) {
            return constrained(rule);
        }
        let subject = match touch {
            PathAccess::Read | PathAccess::ReadLinked => RuleSubject::Read(&place),
            PathAccess::Write | PathAccess::Delete => RuleSubject::Edit(&place),
        };
        if let Some(judged) = self.deny(subject) {
            return judged;
        }
        let is_change = matches!(touch, PathAccess::Write | PathAccess::Delete);
        if let Some(judged) = self.closed(is_change, &place) {
            return judged;
        }
        if is_change && self.rules.mode == Mode::Plan {
            return self.by_mode(Verdict::Deny);
        }
        let inside = place.ends().map(|end| self.inside(end)).collect::<Option<Vec<String>>>();
        if let Some(why) = is_change.then(|| self.risk(touch, &place)).flatten() {
            return self.asking(danger(why));
        }
        if let Some(judged) = self.ask(subject) {
            return judged;
        }
        let Some(own) = inside else { return self.outside(touch, &place, subject) };
        if touch == PathAccess::Read {
            return free(AutoAllow::Read);
        }
        let kind = if is_change { ActionKind::Write } else { ActionKind::ReadLinked };
        // An approval of changes does not cover deletions: the deleted content may exist nowhere else.
        let is_delete = touch == PathAccess::Delete;
        let allowed = if is_delete { self.allow_deleting(subject) } else { self.allow(subject) };
        if let Some(judged) = allowed {
            return judged;
        }
        if !is_delete && self.rules.grants.iter().any(|grant| grant.kind == Some(kind)) {
            return said(Verdict::Allow, Basis::Granted(GrantScope::Session));
        }
        if let Some(judged) = strictest(own.iter().filter_map(|target| self.plan(kind, target))) {
            return judged;
        }
        if is_change && !self.rules.permissions.copy.is_empty() {
            return free(AutoAllow::Worktree);
        }
        let named = || own.first().map(|path| escape(path)).unwrap_or_default();
        let rule = match kind {
            ActionKind::Write if is_delete => format!("Edit(./{})", named()),
            ActionKind::Write => "Edit".to_owned(),
            _ => format!("Read(./{})", named()),
        };
        self.mode(kind, RememberedRule::Rules(vec![rule]), kind == ActionKind::Write)
    }

    /// Judges a touch of an agent folder. It is free unless a rule or a constraint forbids it. The folder lies outside
    /// the project, so limits to the project's folders do not apply; rules do, by the name that a model writes, as if
    /// it were a folder of the project.
    pub(super) fn own(&self, is_change: bool, path: &str) -> Judgement {
        if is_change && self.rules.constraints.read_only {
            return constrained(Basis::Member(READ_ONLY.to_owned()));
        }
        if let Some(rule) = self.sight.outside_project().hidden_by(path) {
            return constrained(rule);
        }
        let place = ResolvedPath { path: absolute(self.root(), path), real: None };
        let subject = if is_change { RuleSubject::Edit(&place) } else { RuleSubject::Read(&place) };
        if let Some(judged) = self.deny(subject) {
            return judged;
        }
        if is_change && self.rules.mode == Mode::Plan {
            return self.by_mode(Verdict::Deny);
        }
        if let Some(why) = protecting_row(path).filter(|_| is_change) {
            return self.asking(danger(Basis::Protected { path: path.to_owned(), why: why.into() }));
        }
        let asked = self.ask(subject);
        asked.unwrap_or_else(|| free(AutoAllow::Own))
    }

    /// The folder that relative paths start from. Without one, a folder that contains nothing.
    pub(super) fn root(&self) -> &str {
        let root = self.rules.permissions.root.as_str();
        if root.is_empty() { "/\u{1}" } else { root }
    }

    /// The path in the project that a path in the agent's worktree stands for; any other path is unchanged.
    fn original(&self, full: String) -> String {
        let copy = self.rules.permissions.copy.trim_end_matches('/');
        let rest = if copy.is_empty() { None } else { full.strip_prefix(copy) };
        match rest.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
            Some(rest) => format!("{}{rest}", self.root().trim_end_matches('/')),
            None => full,
        }
    }

    /// The path from the root, if it lies beneath.
    fn inside(&self, end: &str) -> Option<String> {
        let root = self.root().trim_matches('/');
        let rest = if root.is_empty() { end } else { end.strip_prefix(root)? };
        match rest.strip_prefix('/') {
            Some(rest) => Some(rest.to_owned()),
            None if rest.is_empty() => Some(".".to_owned()),
            None if root.is_empty() => Some(rest.to_owned()),
            None => None,
        }
    }

    /// The path from a folder of `additionalDirectories`, if it lies beneath one.
    fn beside(&self, end: &str) -> Option<String> {
        let beneath = |folder: &String| {
            let rest = end.strip_prefix(folder.trim_matches('/'))?;
            if rest.is_empty() { Some(".".to_owned()) } else { rest.strip_prefix('/').map(str::to_owned) }
        };
        self.rules.permissions.also.iter().find_map(beneath)
    }

    /// The verdict of settings that close everything outside the working folders.
    fn closed(&self, is_change: bool, place: &ResolvedPath) -> Option<Judgement> {
        let permissions = self.rules.permissions;
        let (is_closed, name) = match is_change {
            true => (permissions.no_writes_outside, "blockWritesOutsideWorkingDirectories"),
            false => (permissions.no_reads_outside, "blockReadsOutsideWorkingDirectories"),
        };
        let is_outside = |end: &str| self.inside(end).is_none() && self.beside(end).is_none();
        if !is_closed || !place.ends().any(is_outside) {
            return None;
        }
        let hint = Hint::Folders;
        let rule = Basis::Closed { path: place.path.clone(), setting: name.to_owned() };
        Some(Judgement { hint, ..said(Verdict::Deny, rule) })
    }

    /// The constraint that a touch violates.
    fn forbidden(&self, touch: PathAccess, end: &str) -> Option<Basis> {
        let is_change = matches!(touch, PathAccess::Write | PathAccess::Delete);
        if is_change && self.rules.constraints.read_only {
            return Some(Basis::Member(READ_ONLY.to_owned()));
        }
        let Constraints { write_patterns, write_within, .. } = self.rules.constraints;
        let lists = || write_patterns.iter().chain(write_within);
        let unnamed = |list: &Vec<String>| Basis::Member(format!("`write_patterns` ({})", visibility::quoted(list)));
        let Some(path) = self.inside(end) else {
            // Constraints name paths of the project, so they never match a path outside it.
            return self.sight.hidden_outside_by(end).or_else(|| lists().next().filter(|_| is_change).map(unnamed));
        };
        match touch {
            PathAccess::Read => self.sight.hidden_by(&path),
            PathAccess::ReadLinked => self.sight.unwritable_by(&path),
            PathAccess::Write | PathAccess::Delete => self
                .sight
                .unwritable_by(&path)
                .or_else(|| lists().find(|list| !glob::is_named(list, &path)).map(unnamed)),
        }
    }

    /// Why a change is dangerous.
    fn risk(&self, touch: PathAccess, place: &ResolvedPath) -> Option<Basis> {
        let protected = |path: String| move |row: &ProtectedRow| Basis::Protected { path, why: row.into() };
        let named = |end: &str| named_file_row(&self.rules.permissions.guarded, end).map(protected(format!("/{end}")));
        place.ends().find_map(|end| match (self.inside(end), touch) {
            (None, PathAccess::Delete) => Some(Basis::Danger(DangerReason::DeletesOutside(format!("/{end}")))),
            (Some(path), PathAccess::Delete) if path == "." => Some(Basis::Danger(DangerReason::DeletesProject)),
            // The project folder itself may hold protected files, too, but each new file in it is judged by its own
            // name.
            (Some(path), _) if path == "." => None,
            (Some(path), _) => protecting_row(&path).map(protected(path)).or_else(|| named(end)),
            (None, _) => {
                let path = self.beside(end).unwrap_or_else(|| end.to_owned());
                let obeyed = protecting_row(&path).map(protected(format!("/{end}")));
                obeyed.or_else(|| named(end))
            }
        })
    }

    fn outside(&self, touch: PathAccess, place: &ResolvedPath, subject: RuleSubject<'_>) -> Judgement {
        // A permission for a tool as a whole is meant for the project; outside, a rule must name the path.
        if let Some(judged) = self.allow_by(subject, Rule::is_of_places) {
            return judged;
        }
        let path = place.real.as_ref().unwrap_or(&place.path);
        let tool = if matches!(touch, PathAccess::Read | PathAccess::ReadLinked) { "Read" } else { "Edit" };
        let rule = format!("{tool}(/{})", escape(path));
        if place.ends().all(|end| self.inside(end).is_some() || self.beside(end).is_some()) {
            return match touch {
                PathAccess::Read => free(AutoAllow::ReadAlso),
                PathAccess::ReadLinked => self.mode(ActionKind::ReadLinked, RememberedRule::Rules(vec![rule]), false),
                PathAccess::Write | PathAccess::Delete => {
                    self.mode(ActionKind::Write, RememberedRule::Rules(vec![rule]), true)
                }
            };
        }
        let judged = self.mode(ActionKind::ReadLinked, RememberedRule::Rules(vec![rule]), false);
        // Only the mode that never asks allows it, so advice names the rule.
        let judged = then(judged, |then| Basis::Outside { path: path.clone(), then });
        Judgement { recourse: Recourse::Rule, ..judged }
    }
}
