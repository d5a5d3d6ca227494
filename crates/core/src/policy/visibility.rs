//! Which paths a member can see: its allowed folders, without blocked names and without places that rules deny.
//!
//! The policy refuses paths that are out of sight, and listings and searches omit them. It is made from constraints
//! and rules once and then asked for every name. It knows names only: code that opens a path has to make sure that no
//! link leads elsewhere.

use std::cell::RefCell;
use std::sync::Arc;

use super::glob::{Glob, PathSegments};
use super::rule::{List, ResolvedPath, Rule, RuleSubject, RuleTool, absolute};
use super::{Basis, Permissions, protected};
use crate::agent::Constraints;
use crate::agent_dirs::AgentDir;

/// Blocked names are compared without case.
const FOLDS: bool = true;
/// Environment files that hold names but no secrets.
const EXAMPLES: [&str; 5] = [".env.example", ".env.sample", ".env.template", ".env.dist", ".env.defaults"];

/// A pattern as written; an invalid one blocks everything.
#[derive(Debug)]
struct BlockedPattern(String, Option<Glob>);

thread_local! {
    /// The patterns that were parsed last: most agents have the same blocked names, so the next one judged can reuse
    /// them.
    static LAST: RefCell<Arc<[BlockedPattern]>> = RefCell::default();
}

/// Parses the patterns.
fn blocked(patterns: &[String]) -> Arc<[BlockedPattern]> {
    LAST.with_borrow_mut(|last| {
        if !last.iter().map(|BlockedPattern(text, _)| text).eq(patterns) {
            *last = patterns.iter().map(|text| BlockedPattern(text.clone(), Glob::new(text, FOLDS).ok())).collect();
        }
        Arc::clone(last)
    })
}

/// The paths that a member can see.
#[derive(Debug, Clone, Default)]
pub struct Visibility {
    /// Allowed folders, clean; `None` for all.
    dirs: Option<Vec<String>>,
    blocked: Arc<[BlockedPattern]>,
    /// The project's folder, from which the paths of rules are resolved.
    root: String,
    /// Rules that deny reading, for every tool.
    unread: Vec<Rule>,
    /// Rules that ask before reading.
    asked: Vec<Rule>,
    /// Rules that deny changes.
    unchanged: Vec<Rule>,
    /// Files that this run was given by name and obeys.
    guarded: Vec<String>,
    /// Folders besides the project's that commands work in.
    also: Vec<String>,
    /// Whether the folders in `also` are read-only.
    looks_beside: bool,
    /// The agent folder that names are relative to (`@files`, `@data`); empty for the project.
    within: &'static str,
    /// Folders that no agent sees by their real paths, absolute.
    closed: Vec<String>,
}

impl Visibility {
    /// The sight that constraints leave.
    pub fn from_constraints(constraints: &Constraints) -> Self {
        let dirs = constraints.allowed_dirs.as_ref().map(|dirs| dirs.iter().map(|dir| clean(dir)).collect());
        let dirs = dirs.filter(|dirs: &Vec<String>| !dirs.iter().any(String::is_empty));
        Self { dirs, blocked: blocked(&constraints.blocked_patterns), ..Self::default() }
    }

    /// The sight that constraints and rules leave, for a call that touches more than one path.
    pub fn from_policy(constraints: &Constraints, permissions: &Permissions) -> Self {
        let folders: Vec<&String> = std::iter::once(&permissions.root).chain(&permissions.also).collect();
        let rules = |list: List, tool: RuleTool| {
            let reaches = |rule: &&Rule| folders.iter().any(|folder| rule.reaches(folder));
            let own = permissions.rules.iter().filter(|rule| rule.list == list && *rule.tool() == tool);
            own.filter(reaches).cloned().collect()
        };
        Self {
            root: permissions.root.clone(),
            unread: rules(List::Deny, RuleTool::Read),
            asked: rules(List::Ask, RuleTool::Read),
            unchanged: rules(List::Deny, RuleTool::Edit),
            guarded: permissions.guarded.clone(),
            also: permissions.also.clone(),
            looks_beside: !permissions.copy.is_empty(),
            ..Self::from_constraints(constraints)
        }
    }

    /// Folders besides the project's that commands work in. A member that is limited to some folders of the project
    /// has none.
    pub fn additional_folders(&self) -> &[String] {
        if self.dirs.is_none() { &self.also } else { &[] }
    }

    /// Whether those folders are read-only: an agent that works in a worktree changes nothing outside it.
    pub fn are_additional_read_only(&self) -> bool {
        self.looks_beside
    }

    /// The same sight for names relative to another folder.
    pub fn relative_to(&self, folder: &str) -> Self {
        Self { root: folder.to_owned(), ..self.clone() }
    }

    /// The sight in an agent folder: rules apply to it by the name that a model writes, blocked names stay blocked,
    /// and limits to the project's folders and files do not apply.
    pub fn in_agent_dir(&self, folder: AgentDir) -> Self {
        Self {
            within: folder.name(),
            dirs: None,
            guarded: Vec::new(),
            also: Vec::new(),
            closed: Vec::new(),
            ..self.clone()
        }
    }

    /// The same sight without these folders, as far as they are in the project.
    #[must_use]
    pub fn without(mut self, folders: &[String]) -> Self {
        let root = self.root.trim_end_matches('/');
        self.closed.extend(folders.iter().filter(|folder| is_within(folder, root)).cloned());
        self
    }

    /// The sight of a scan, which reads more than a person was asked about: paths that a rule asks about are out of
    /// sight.
    pub fn for_scan(&self) -> Self {
        let mut sight = self.clone();
        sight.unread.append(&mut sight.asked);
        sight
    }

    /// The rules that deny changes of paths, for another process; `None`: there are none.
    pub fn path_denials(&self) -> Option<Permissions> {
        let rules: Vec<Rule> = self.unchanged.iter().filter(|rule| rule.is_of_places()).cloned().collect();
        let (root, also) = (self.root.clone(), self.also.clone());
        (!rules.is_empty()).then(|| Permissions { root, also, rules, ..Permissions::default() })
    }

    /// Whether a rule asks before reading a path.
    pub fn needs_approval_to_read(&self, path: &str) -> bool {
        let place = self.place(&self.named(path));
        self.asked.iter().any(|rule| rule.fits("", &[], RuleSubject::Read(&place)))
    }

    /// The sight in a folder outside the project that was handed over: only blocked names are hidden.
    pub fn outside_project(&self) -> Self {
        Self { blocked: self.blocked.clone(), ..Self::default() }
    }

    /// Whether nothing is out of sight.
    pub fn is_whole(&self) -> bool {
        self.dirs.is_none() && self.blocked.is_empty() && self.unread.is_empty() && self.closed.is_empty()
    }

    /// Whether no rule denies a change.
    pub fn denies_no_change(&self) -> bool {
        self.unchanged.is_empty()
    }

    /// Whether rules allow a change of a path. A folder into which nothing may be written does not count as
    /// changeable.
    pub fn allows_change(&self, path: &str) -> bool {
        // A name that no file has: if it is denied, all names are.
        const ANY: &str = "\u{1}";
        let path = self.named(path);
        let is_denied = |path: &str| {
            let place = self.place(path);
            self.unchanged.iter().any(|rule| rule.fits("", &[], RuleSubject::Edit(&place)))
        };
        path.is_empty() || !(is_denied(&path) || is_denied(&format!("{path}/{ANY}")))
    }

    /// Why a change of this path has effects beyond the path.
    pub fn protecting_row(&self, path: &str) -> Option<&'static protected::ProtectedRow> {
        let path = self.named(path);
        protected::team_config_row(&path)
            .or_else(|| protected::named_file_row(&self.guarded, &absolute(&self.root, &path)))
    }

    /// The files that this run was given by name and obeys, absolute.
    pub fn named_files(&self) -> &[String] {
        &self.guarded
    }

    /// Whether a path is in sight. Folders on the way to an allowed folder are, from `.` on.
    pub fn is_visible(&self, path: &str) -> bool {
        self.hidden_by(path).is_none()
    }

    /// The constraint or rule that hides a path.
    pub fn hidden_by(&self, path: &str) -> Option<Basis> {
        let path = self.named(path);
        let on_the_way = |dir: &String| path.is_empty() || is_within(dir, &path);
        if let Some(dirs) =
            self.dirs.as_ref().filter(|dirs| !dirs.iter().any(|dir| is_within(&path, dir) || on_the_way(dir)))
        {
            return Some(bounds(dirs));
        }
        self.blocks(&path).or_else(|| self.denies(&path)).or_else(|| self.closes(&path))
    }

    /// Like `hides`, for a change: a folder on the way to an allowed folder cannot be written to.
    pub(super) fn unwritable_by(&self, path: &str) -> Option<Basis> {
        let path = clean(path);
        if let Some(dirs) = self.dirs.as_ref().filter(|dirs| !dirs.iter().any(|dir| is_within(&path, dir))) {
            return Some(bounds(dirs));
        }
        self.blocks(&path)
    }

    /// Like `hides`, for a path outside the project: the member's `allowed_dirs` name only folders of the project.
    pub(super) fn hidden_outside_by(&self, path: &str) -> Option<Basis> {
        self.dirs.as_deref().map_or_else(|| self.blocks(&clean(path)), |dirs| Some(bounds(dirs)))
    }

    fn blocks(&self, path: &str) -> Option<Basis> {
        // The root has no name that could be blocked.
        if path.is_empty() || self.blocked.is_empty() {
            return None;
        }
        let spelt = PathSegments::new(path, FOLDS);
        let blocks = |glob: &Option<Glob>| {
            glob.as_ref().is_none_or(|glob| {
                glob.touches_spelt(&spelt) && !is_only_example(glob, path) && !is_public_half(glob, path)
            })
        };
        let BlockedPattern(pattern, _) = self.blocked.iter().find(|BlockedPattern(_, glob)| blocks(glob))?;
        Some(Basis::Member(format!("`blocked_patterns` (`{pattern}`)")))
    }

    fn denies(&self, path: &str) -> Option<Basis> {
        if path.is_empty() || self.unread.is_empty() {
            return None;
        }
        let place = self.place(path);
        let rule = self.unread.iter().find(|rule| rule.fits("", &[], RuleSubject::Read(&place)))?;
        Some(Basis::Written(rule.to_string()))
    }

    fn closes(&self, path: &str) -> Option<Basis> {
        if self.closed.is_empty() {
            return None;
        }
        let full = absolute(&self.root, path);
        let is_closed = self.closed.iter().any(|folder| is_within(&full, folder));
        is_closed.then_some(Basis::OthersFiles)
    }

    /// A clean path with its agent folder in front; unchanged in the project.
    fn named(&self, path: &str) -> String {
        let path = clean(path);
        match (self.within, path.as_str()) {
            ("", _) => path,
            (within, "") => within.to_owned(),
            (within, path) => format!("{within}/{path}"),
        }
    }

    fn place(&self, path: &str) -> ResolvedPath {
        ResolvedPath { path: absolute(&self.root, path), real: None }
    }
}

fn bounds(dirs: &[String]) -> Basis {
    Basis::Member(format!("`allowed_dirs` ({})", quoted(dirs)))
}

/// A list for people.
pub(super) fn quoted(words: &[String]) -> String {
    if words.is_empty() {
        return "an empty list".to_owned();
    }
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

/// A path without `.` and doubled slashes; the root is empty.
pub(crate) fn clean(path: &str) -> String {
    let mut clean = String::with_capacity(path.len());
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if !clean.is_empty() {
            clean.push('/');
        }
        clean.push_str(part);
    }
    clean
}

/// Whether a pattern for private keys (`id_rsa*`) matches a path only because it is the public half of a key
/// (`id_rsa.pub`), which is made to be shared.
fn is_public_half(glob: &Glob, path: &str) -> bool {
    const ANY: &str = "\u{1}";
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let Some(private) = name.strip_suffix(".pub").filter(|name| name.starts_with("id_")) else { return false };
    let beside = |name: &str| if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
    let fits = |name: &str| glob.touches(&beside(name));
    fits(private) && !fits(ANY) && !fits(&format!("id_{ANY}")) && !fits(&format!("{ANY}.pub"))
}

/// Whether a pattern for environment files in general (`.env*`) matches a path only because it is an example
/// (`.env.example`), which is written to be shared.
fn is_only_example(glob: &Glob, path: &str) -> bool {
    // Artificial names: a pattern that matches one of them matches all names of that form.
    const ANY: &str = "\u{1}";
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_example = EXAMPLES.iter().any(|example| name.eq_ignore_ascii_case(example));
    let beside = |name: String| if folder.is_empty() { name } else { format!("{folder}/{name}") };
    let fits = |name: String| glob.touches(&beside(name));
    is_example && fits(format!(".env.{ANY}")) && !fits(ANY.to_owned()) && !fits(format!(".{ANY}"))
}

pub(crate) fn is_within(path: &str, dir: &str) -> bool {
    path.strip_prefix(dir).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::rule::{Anchors, Origin, RuleScope};

    #[test]
    fn public_halves_of_keys_are_seen_unless_they_are_meant() {
        let sees = |pattern: &str, path: &str| {
            Visibility::from_constraints(&Constraints {
                blocked_patterns: vec![pattern.to_owned()],
                ..Constraints::default()
            })
            .is_visible(path)
        };
        for (pattern, path, want) in [
            ("id_rsa*", "id_rsa.pub", true),
            ("id_ed25519*", "keys/id_ed25519.pub", true),
            ("id_ed25519*", "keys/id_ed25519_work.pub", true),
            ("id_rsa*", "id_rsa", false),
            ("id_rsa*", "id_rsa.pub.bak", false),
            ("id_rsa*", "id_rsa.pub/key", false),
            ("*.pub", "id_rsa.pub", false),
            ("id_rsa.pub", "id_rsa.pub", false),
            ("id_*", "id_rsa.pub", false),
            ("*secret*", "secret/id_rsa.pub", false),
        ] {
            assert_eq!(sees(pattern, path), want, "{pattern} {path}");
        }
    }

    #[test]
    fn examples_of_environment_files_are_seen_unless_they_are_meant() {
        let sees = |pattern: &str, path: &str| {
            Visibility::from_constraints(&Constraints {
                blocked_patterns: vec![pattern.to_owned()],
                ..Constraints::default()
            })
            .is_visible(path)
        };
        for (pattern, path, want) in [
            (".env*", ".env.example", true),
            (".env*", "web/.ENV.Sample", true),
            (".env.*", ".env.template", true),
            ("*env*", ".env.dist", true),
            (".env*", ".env", false),
            (".env*", ".env.local", false),
            (".env*", ".env.example.local", false),
            (".env*", ".env.example/key", false),
            ("*.example", ".env.example", false),
            (".env.example", ".env.example", false),
            ("*", ".env.example", false),
            (".*", ".env.example", false),
            ("*secret*", "secrets/.env.example", false),
            ("secrets/**", "secrets/.env.example", false),
        ] {
            assert_eq!(sees(pattern, path), want, "{pattern} {path}");
        }
    }

    #[test]
    fn deny_rules_apply_to_reads_and_writes() {
        // The rule, a path, whether it can be seen, whether it can be changed.
        let table = [
            ("Read(./secrets/**)", "secrets/key", false, true),
            ("Read(./secrets/**)", "a/secrets/deep/key", false, true),
            ("Read(./secrets/**)", "src/key", true, true),
            ("Read(./secrets/**)", ".", true, true),
            ("Read(/.env)", ".env", false, true),
            ("Read(~/p/keys/**)", "keys/a", false, true),
            ("Grep(./keys/**)", "keys/a", false, true),
            ("Read", "a", false, true),
            ("Read({a,b})", "c", false, true),
            ("read_file(./keys/**)", "keys/a", true, true),
            ("Bash(cat *)", "a", true, true),
            ("Edit(./lock/**)", "lock/a", true, false),
            ("Edit(./lock/**)", "lock", true, false),
            ("Edit(./lock/*.sql)", "lock", true, true),
            ("Edit(./lock/*.sql)", "lock/a.sql", true, false),
            ("Edit(./lock/**)", "src/a", true, true),
        ];
        for (text, path, seen, free) in table {
            let origin = Origin { scope: RuleScope::User, file: "settings.json".into(), line: 1 };
            let anchors = Anchors { root: "/home/p", base: "/home/p", home: "/home" };
            let rules = vec![Rule::new(List::Deny, text, origin, &anchors)];
            let sight = Visibility::from_policy(
                &Constraints::default(),
                &Permissions { root: "/home/p".into(), rules, ..Permissions::default() },
            );
            assert_eq!((sight.is_visible(path), sight.allows_change(path)), (seen, free), "{text} {path}");
        }
    }

    #[test]
    fn a_path_with_an_ask_rule_is_visible_only_if_named() {
        let origin = Origin { scope: RuleScope::User, file: "settings.json".into(), line: 1 };
        let anchors = Anchors { root: "/home/p", base: "/home/p", home: "/home" };
        let rules = vec![Rule::new(List::Ask, "Read(./secrets/**)", origin, &anchors)];
        let also = vec!["/home/shared".to_owned()];
        let permissions = Permissions { root: "/home/p".into(), rules, also, ..Permissions::default() };
        let sight = Visibility::from_policy(&Constraints::default(), &permissions);
        assert!(
            sight.is_whole()
                && sight.is_visible("secrets/a")
                && sight.needs_approval_to_read("secrets/a")
                && !sight.needs_approval_to_read("src/a")
        );
        let passing = sight.for_scan();
        assert!(!passing.is_whole() && !passing.is_visible("secrets/a") && passing.is_visible("src/a"));
        assert!(passing.relative_to("/home/shared").is_visible("secrets/a"), "the rule names a folder of the project");
        assert_eq!(sight.additional_folders(), ["/home/shared"]);
        let kept = Constraints { allowed_dirs: Some(vec!["src".into()]), ..Constraints::default() };
        assert!(Visibility::from_policy(&kept, &permissions).additional_folders().is_empty());
    }

    #[test]
    fn a_folder_of_its_own_is_seen_by_the_name_that_a_model_writes() {
        let origin = || Origin { scope: RuleScope::User, file: "settings.json".into(), line: 1 };
        let anchors = Anchors { root: "/home/p", base: "/home/p", home: "/home" };
        let rules = vec![
            Rule::new(List::Deny, "Read(@files/private/**)", origin(), &anchors),
            Rule::new(List::Deny, "Edit(@data/**)", origin(), &anchors),
        ];
        let permissions = Permissions { root: "/home/p".into(), rules, ..Permissions::default() };
        let constraints = Constraints {
            allowed_dirs: Some(vec!["src".into()]),
            blocked_patterns: vec!["*.pem".into()],
            ..Constraints::default()
        };
        let sight = Visibility::from_policy(&constraints, &permissions);
        let (files, data) = (sight.in_agent_dir(AgentDir::Files), sight.in_agent_dir(AgentDir::Data));
        // A path, whether it is seen and may be changed in the session's folder, and the same in its own.
        let table = [
            ("a.md", (true, true), (true, false)),
            (".", (true, true), (true, false)),
            ("private/a.md", (false, true), (true, false)),
            ("a/key.PEM", (false, true), (false, false)),
        ];
        for (path, in_files, in_data) in table {
            assert_eq!((files.is_visible(path), files.allows_change(path)), in_files, "{path}");
            assert_eq!((data.is_visible(path), data.allows_change(path)), in_data, "{path}");
        }
        assert!(
            !sight.is_visible("a.md")
                && files.protecting_row(".git/config").is_some()
                && files.protecting_row("agents/a.md").is_none()
        );
        assert!(files.in_agent_dir(AgentDir::Files).is_visible("a.md"), "twice is once");
    }

    #[test]
    fn directories_of_other_agents_are_hidden_by_their_real_path() {
        let permissions = Permissions { root: "/home".into(), ..Permissions::default() };
        let closed = ["/home/.max-team/data".to_owned(), "/elsewhere/files".to_owned()];
        let sight = Visibility::from_policy(&Constraints::default(), &permissions).without(&closed);
        for (path, seen) in [
            (".max-team/data", false),
            (".max-team/data/p/leo/x", false),
            ("a/../.max-team/data/x", false),
            (".max-team/database", true),
            (".max-team", true),
            ("elsewhere/files", true),
        ] {
            assert_eq!(sight.is_visible(path), seen, "{path}");
        }
        assert!(!sight.is_whole() && sight.in_agent_dir(AgentDir::Data).is_whole());
        let elsewhere = Permissions { root: "/home/p".into(), ..Permissions::default() };
        assert!(Visibility::from_policy(&Constraints::default(), &elsewhere).without(&closed).is_whole());
    }

    #[test]
    fn rules_for_elsewhere_take_nothing_from_the_project() {
        for (text, whole) in [("Read(~/.ssh/**)", true), ("Read(//etc/**)", true), ("Read(~/**)", false)] {
            let origin = Origin { scope: RuleScope::User, file: "settings.json".into(), line: 1 };
            let anchors = Anchors { root: "/home/p", base: "/home/p", home: "/home" };
            let rules = vec![Rule::new(List::Deny, text, origin, &anchors)];
            let sight = Visibility::from_policy(
                &Constraints::default(),
                &Permissions { root: "/home/p".into(), rules, ..Permissions::default() },
            );
            assert_eq!(sight.is_whole(), whole, "{text}");
        }
    }

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
            let constraints = Constraints {
                allowed_dirs: (!dirs.is_empty()).then(|| list(dirs)),
                blocked_patterns: list(blocked),
                ..Constraints::default()
            };
            assert_eq!(
                Visibility::from_constraints(&constraints).is_visible(path),
                want,
                "{dirs:?} {blocked:?} {path}"
            );
        }
    }
}
