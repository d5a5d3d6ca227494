//! Protected files: a program runs them, or an agent follows them, without a call by the user or by an approved check.
//!
//! The policy and the sandbox use the same table. The policy asks a person before each change of a protected file that it can see,
//! also if a rule or a plan allows the change. The sandbox keeps protected files unchanged at every depth outside dependency
//! folders, except for a command that was approved with the file's name in its text ([`approved_rows`]), and moves away those
//! that a command made. Every tool refuses to change the files that configure this team (`is_held`). Files that run only in a build
//! or a test (`Makefile`, `package.json`, `build.rs`, `conftest.py`) are not in the table. Names are compared without letter
//! case and without invisible characters, as some file systems do.

mod approved;
mod table;

use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

pub use approved::{GitAccess, approved_rows, git_access};
pub use table::PROTECTED;
use table::{BUILD_FOLDERS, DEPENDENCY_FOLDERS};

use super::rule::absolute;
use crate::text::is_hidden;

/// Folders of these names also hold ordinary code and logs, so that only the files of the table in them are protected.
const ORDINARY_FOLDERS: [&str; 2] = ["agents", "logs"];

/// Why a change of a protected file has effects beyond the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProtectedReason {
    /// A program runs it by itself.
    Runs,
    /// An agent follows it as instructions.
    Instructs,
    /// It defines agents and their permissions.
    Configures,
    /// It is evidence of agents' actions.
    Records,
    /// The run was started with it, or writes its record to it.
    Given,
}

impl ProtectedReason {
    /// The reasons of the table, in the order of lists.
    pub const ALL: [Self; 4] = [Self::Configures, Self::Instructs, Self::Runs, Self::Records];

    /// Its name in lists for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Instructs => "instructs",
            Self::Configures => "configures",
            Self::Records => "records",
            Self::Given => "given",
        }
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtectedRow {
    /// The names: `a/b` at any depth, with everything beneath; `/a/b` only from the project's folder; a `*` in a name
    /// stands for any letters.
    pub pattern: &'static str,
    /// Why it is protected.
    pub reach: ProtectedReason,
    /// The program or agent that runs or obeys it.
    pub by: &'static str,
    /// Whether the file configures this team: then no tool and no command changes it, also with an approval.
    pub is_held: bool,
}

/// Why a file is protected, as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protection {
    pub reach: ProtectedReason,
    /// The program or agent that runs or obeys it.
    pub by: String,
}

impl From<&ProtectedRow> for Protection {
    fn from(row: &ProtectedRow) -> Self {
        Self { reach: row.reach, by: row.by.to_owned() }
    }
}

impl fmt::Display for ProtectedRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Protection::from(self).fmt(f)
    }
}

/// The reason for people and models.
impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = &self.by;
        match self.reach {
            ProtectedReason::Given => write!(f, "this run was started with it, or keeps its record in it"),
            ProtectedReason::Runs => write!(f, "{by} runs it by itself"),
            ProtectedReason::Instructs => write!(f, "{by} takes it for instructions"),
            ProtectedReason::Configures => write!(f, "it configures {by}: who works there and what they may do"),
            ProtectedReason::Records => write!(f, "it is the record of what agents did"),
        }
    }
}

const fn held(pattern: &'static str, reach: ProtectedReason, by: &'static str) -> ProtectedRow {
    ProtectedRow { pattern, reach, by, is_held: true }
}

const fn runs(pattern: &'static str, by: &'static str) -> ProtectedRow {
    ProtectedRow { pattern, reach: ProtectedReason::Runs, by, is_held: false }
}

const fn instructs(pattern: &'static str, by: &'static str) -> ProtectedRow {
    ProtectedRow { pattern, reach: ProtectedReason::Instructs, by, is_held: false }
}

/// The file that a run was given by name, or writes its record to.
const GIVEN: ProtectedRow = held("", ProtectedReason::Given, "this run");

/// The row that protects a path, if any. A folder that may hold protected files counts, too: a copy onto it may bring
/// them.
pub fn protecting_row(path: &str) -> Option<&'static ProtectedRow> {
    let names: Vec<String> = path.split('/').filter(|part| !matches!(*part, "" | ".")).map(folded).collect();
    PROTECTED.iter().find(|row| row.covers(&names))
}

/// Like the function above, but only for files that configure this team.
pub fn team_config_row(path: &str) -> Option<&'static ProtectedRow> {
    let names: Vec<String> = path.split('/').filter(|part| !matches!(*part, "" | ".")).map(folded).collect();
    PROTECTED.iter().find(|row| row.is_held && row.covers(&names))
}

/// The row whose name a path ends in: the path itself is the protected file or folder, at any depth.
pub fn row_at(path: &str) -> Option<&'static ProtectedRow> {
    let name = path.rsplit('/').next().unwrap_or(path);
    // Every file of a project is looked at, so its name is compared before the whole path is.
    let folded_name = if name.is_ascii() { name.to_ascii_lowercase() } else { folded(name) };
    let (exact, patterns) = &*BY_NAME;
    let patterns = patterns.iter().filter(|row| is_named(row.split().1, &folded_name));
    let mut named = exact.get(folded_name.as_str()).into_iter().flatten().chain(patterns).peekable();
    named.peek()?;
    let names: Vec<String> = path.split('/').filter(|part| !matches!(*part, "" | ".")).map(folded).collect();
    named.find(|row| row.is_end_of(&names)).copied()
}

/// Whether a folder of this name holds what package managers and builds put there. Such folders are full of files with
/// protected names, no agent works in them, and nothing in them is looked for.
pub fn is_dependency_folder(name: &str) -> bool {
    DEPENDENCY_FOLDERS.contains(&name)
}

/// Whether a folder of this path in the project holds what builds and tests make, and can make again. Such folders within
/// others are parts of them.
pub fn is_build_folder(path: &str) -> bool {
    let above = BUILD_FOLDERS.iter().find_map(|folder| path.strip_suffix(folder));
    above.is_some_and(|above| {
        let is_part = |part: &str| is_dependency_folder(part) || BUILD_FOLDERS.contains(&part);
        (above.is_empty() || above.ends_with('/')) && !above.split('/').any(is_part)
    })
}

/// Whether protected names lie beneath a folder of this path in the project, and the folder itself has none.
pub fn is_row_folder(path: &str) -> bool {
    let begins = |row: &ProtectedRow| {
        let rest = row.pattern.trim_start_matches('/').strip_prefix(path);
        rest.is_some_and(|rest| rest.starts_with('/'))
    };
    PROTECTED.iter().any(begins)
}

/// The rows by the last name of their patterns, folded; those with a `*` in it apart.
type RowsByName = (HashMap<String, Vec<&'static ProtectedRow>>, Vec<&'static ProtectedRow>);

static BY_NAME: LazyLock<RowsByName> = LazyLock::new(|| {
    let (patterns, exact): (Vec<&ProtectedRow>, Vec<&ProtectedRow>) =
        PROTECTED.iter().partition(|row| row.split().1.contains('*'));
    let mut by_name: HashMap<String, Vec<&'static ProtectedRow>> = HashMap::new();
    for row in exact {
        by_name.entry(row.split().1.to_lowercase()).or_default().push(row);
    }
    (by_name, patterns)
});

/// The rows that a line which was approved may change. `.git` has rules of its own, and no command changes the record.
pub fn sandbox_rows() -> impl Iterator<Item = &'static ProtectedRow> {
    PROTECTED.iter().filter(|row| row.pattern != ".git" && row.reach != ProtectedReason::Records)
}

impl ProtectedRow {
    /// The folder and the name in it, from the project's folder; the name may have a `*` in it.
    pub fn split(&self) -> (&'static str, &'static str) {
        let path = self.pattern.trim_start_matches('/');
        path.rsplit_once('/').unwrap_or(("", path))
    }

    /// Whether these folded names, from the project's folder on, end in the row's own.
    fn is_end_of(&self, names: &[String]) -> bool {
        let length = self.pattern.trim_start_matches('/').split('/').count();
        let is_anchored = self.pattern.starts_with('/');
        let from = names.len().checked_sub(length).filter(|from| !is_anchored || *from == 0);
        from.is_some_and(|from| self.covers(names.get(from..).unwrap_or_default()))
    }

    fn covers(&self, names: &[String]) -> bool {
        let (pattern, is_anchored) = match self.pattern.strip_prefix('/') {
            Some(pattern) => (pattern, true),
            None => (self.pattern, false),
        };
        let parts: Vec<String> = pattern.split('/').map(str::to_lowercase).collect();
        let starts = if is_anchored { 1 } else { names.len() };
        let is_at = |from: usize| {
            let here = names.get(from..).unwrap_or_default();
            let is_whole = here.len() >= parts.len();
            let is_above = !here.is_empty() && !matches!(here, [one] if ORDINARY_FOLDERS.contains(&one.as_str()));
            (is_whole || is_above) && parts.iter().zip(here).all(|(part, name)| is_named(part, name))
        };
        (0..starts).any(is_at)
    }
}

fn is_named(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        Some((before, after)) => {
            name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
        }
        None => pattern == name,
    }
}

/// Like `protected`, for the files that this run was given by name, all absolute. A folder that contains one of them
/// counts, too.
pub(super) fn named_file_row(files: &[String], path: &str) -> Option<&'static ProtectedRow> {
    let path = folded(&absolute("", &format!("/{path}")));
    let lies_in =
        |file: &String| folded(file).strip_prefix(&path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    files.iter().any(lies_in).then_some(&GIVEN)
}

/// A name as file systems that ignore case and invisible characters (HFS+, CVE-2014-9390) compare it, and as people
/// read it.
fn folded(name: &str) -> String {
    name.chars().filter(|letter| !is_hidden(*letter)).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_files_have_one_table() {
        for path in ["src/.git/config", "a/.claude/x", "a/.mcp.json", "agents/Leo.MD", ".g\u{200c}it/x", "./config"] {
            assert!(team_config_row(path).is_some(), "{path}");
        }
        for path in [".git\u{200b}/hooks/x", ".\u{2060}mcp.json", ".claude\u{ad}/settings.json", "AGENTS\u{e0041}.md"] {
            assert!(protecting_row(path).is_some(), "{path:?}");
        }
        for path in ["src/config/agents.yaml", "agents/a.py", "src/agents/a.md", "config/other.yaml", "src/a.rs", "."] {
            assert!(team_config_row(path).is_none() && protecting_row(path).is_none(), "{path}");
        }
        for path in ["logs/audit.jsonl", "deep/logs/audit.jsonl"] {
            assert!(team_config_row(path).is_some(), "{path}");
        }
    }

    #[test]
    fn every_row_protects_its_pattern_and_the_paths_beneath() {
        for row in PROTECTED {
            let path = row.pattern.trim_start_matches('/').replace('*', "x");
            assert!(protecting_row(&path).is_some() && protecting_row(&path.to_uppercase()).is_some(), "{path}");
            assert!(protecting_row(&format!("{path}/beneath")).is_some(), "{path}");
            assert_eq!(protecting_row(&format!("sub/{path}")).is_some(), !row.pattern.starts_with('/'), "sub/{path}");
            assert!(!row.to_string().is_empty() && !row.by.is_empty());
        }
        let (before, mut after) = (PROTECTED.len(), PROTECTED.iter().map(|row| row.pattern).collect::<Vec<_>>());
        after.sort_unstable();
        after.dedup();
        assert_eq!(before, after.len(), "each pattern is listed once");
    }

    #[test]
    fn ordinary_files_are_ordinary() {
        for path in [
            "Makefile",
            "package.json",
            "build.rs",
            "conftest.py",
            "Cargo.toml",
            ".cargo/audit.toml",
            "model.pth",
            ".env.example",
            ".gitignore",
            ".editorconfig",
            ".github/CODEOWNERS",
            ".github/dependabot.yml",
            "docs/skills.md",
            "src/skills/mod.rs",
            "logs/app.log",
            "logs",
            "agents",
            "README.md",
            "Dockerfile",
        ] {
            assert!(protecting_row(path).is_none(), "{path}: {:?}", protecting_row(path));
        }
        // A copy onto such a folder may bring any file.
        for path in [".github", ".config", "config", "sub/.github"] {
            assert!(protecting_row(path).is_some(), "{path}");
        }
    }

    #[test]
    fn an_approved_command_may_change_every_row_but_git_and_the_record() {
        let left: Vec<&str> =
            PROTECTED.iter().filter(|row| !sandbox_rows().any(|kept| kept == *row)).map(|row| row.pattern).collect();
        assert_eq!(left, [".git", "logs/audit.jsonl"]);
        let row = |pattern: &str| PROTECTED.iter().find(|row| row.pattern == pattern).unwrap();
        assert_eq!(row("/agents/*.md").split(), ("agents", "*.md"));
        assert_eq!(row("AGENTS.md").split(), ("", "AGENTS.md"));
    }

    #[test]
    fn a_row_is_found_by_the_end_of_a_path_at_any_depth() {
        for (path, pattern) in [
            ("packages/a/AGENTS.md", Some("AGENTS.md")),
            ("AGENTS.md", Some("AGENTS.md")),
            ("a/b/Claude.MD", Some("CLAUDE.md")),
            ("a/AGENTS\u{200b}.md", Some("AGENTS.md")),
            ("a/.claude", Some(".claude")),
            ("a/.github/instructions", Some(".github/instructions")),
            ("a/instructions", None),
            ("a/.github/workflows", Some(".github/workflows")),
            ("a/.github", None),
            ("a/.npmrc", Some(".npmrc")),
            ("a/.git", Some(".git")),
            ("a/.git/config", None),
            ("a/my.code-workspace", Some("*.code-workspace")),
            ("jenkinsfile", Some("Jenkinsfile")),
            ("agents/leo.md", Some("/agents/*.md")),
            ("a/agents/leo.md", None),
            ("config.yaml", Some("/config.yaml")),
            ("a/config.yaml", None),
            ("docs/agents.md.txt", None),
        ] {
            assert_eq!(row_at(path).map(|row| row.pattern), pattern, "{path}");
        }
        for row in PROTECTED {
            let path = row.pattern.trim_start_matches('/').replace('*', "x");
            assert!(row_at(&path).is_some(), "{path}");
            assert_eq!(row_at(&format!("a/b/c/{path}")).is_some(), !row.pattern.starts_with('/'), "{path}");
        }
    }

    #[test]
    fn files_that_were_named_are_kept_with_their_folders() {
        let files = ["/p/team/Mine.yaml".to_owned()];
        for (path, kept) in
            [("p/team/mine.yaml", true), ("/p/team", true), ("p/team/other.yaml", false), ("p/te", false)]
        {
            assert_eq!(named_file_row(&files, path).is_some(), kept, "{path}");
        }
    }
}
