//! `git_status`, `git_diff`, `git_log`: what git knows, for a model.
//!
//! They only look. What they would say of a repository's own programs they do not know: those are never run.

use max_team_core::policy::{Action, Class};
use schemars::JsonSchema;
use serde::Deserialize;

use super::repo::Repo;
use super::{Diff, diff};
use crate::text::many;
use crate::tool::{Cx, Output, ToolError};
use crate::typed::Typed;

/// Commits that `git_log` shows unless told otherwise.
const COMMITS_DEFAULT: u32 = 20;

/// Show the state of the git repository: the branch, and which files are changed, new or staged (`M` changed, `A`
/// added, `D` deleted, `??` new and unknown to git; the first column is what is staged). Files that git ignores are
/// left out. Use `git_diff` for the changes themselves.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitStatus {}

/// Show how the files differ from the last commit, as a unified diff: staged and unstaged changes, and new files that
/// git does not ignore. Large diffs are cut, and say so; then name fewer paths.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitDiff {
    /// Only these files, folders or globs, like `src` or `src/**/*.rs`. Default: everything.
    paths: Option<Vec<String>>,
    /// Give only the files and how many lines were added and removed. Default: false.
    stat: Option<bool>,
}

/// Show the latest commits, newest first, one per line: short hash, date, author, subject. Use it to learn what was
/// done before and how messages are written here.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitLog {
    /// Only commits that touched this file or folder, relative to the project folder.
    path: Option<String>,
    /// How many commits. Default: 20.
    #[schemars(range(min = 1, max = 200))]
    count: Option<u32>,
}

/// The tool.
pub(crate) fn git_status() -> Typed<GitStatus> {
    Typed::new("git_status", Class::Pure, |_, _| Ok(Action::read(".")), status)
}

/// The tool.
pub(crate) fn git_diff() -> Typed<GitDiff> {
    let action = |cx: &Cx, args: &GitDiff| places(cx, args.paths.as_deref().unwrap_or_default()).map(Action::read);
    Typed::new("git_diff", Class::Pure, action, differ)
}

/// The tool.
pub(crate) fn git_log() -> Typed<GitLog> {
    let action = |cx: &Cx, args: &GitLog| places(cx, args.path.as_slice()).map(Action::read);
    Typed::new("git_log", Class::Pure, action, log)
}

/// Paths as one line.
pub(super) fn places(cx: &Cx, paths: &[String]) -> Result<String, ToolError> {
    let clean: Vec<String> =
        paths.iter().map(|path| cx.root.place(path).map(|place| place.to_string())).collect::<Result<_, _>>()?;
    Ok(if clean.is_empty() { ".".to_owned() } else { clean.join(", ") })
}

/// The repository of the project, or words on what to do without.
pub(super) fn open(cx: &Cx) -> Result<Repo<'_>, ToolError> {
    Repo::open(cx.root.path(), &cx.cancel)?.ok_or_else(no_repository)
}

fn no_repository() -> ToolError {
    ToolError::correctable(
        "the project folder is not in a git repository, so git knows nothing about it; use `list_dir` and `read_file` to see what is there",
    )
}

fn status(cx: &Cx, _: GitStatus, _: &Action, _: bool) -> Result<Output, ToolError> {
    let repo = open(cx)?;
    let args = [
        "status",
        "--short",
        "--branch",
        "--untracked-files=normal",
        "--ignore-submodules=dirty",
        "--no-renames",
        "--",
        ".",
    ];
    let answer = repo.told(&args, "tell the state")?;
    let shown = answer.shown();
    let note = if shown.lines().count() <= 1 { "[nothing is changed]\n" } else { "" };
    Ok(Output::text(format!("{shown}{note}")))
}

fn differ(cx: &Cx, args: GitDiff, _: &Action, _: bool) -> Result<Output, ToolError> {
    let paths = args.paths.unwrap_or_default();
    let found = diff(cx.root.path(), &paths, &cx.cancel)?.ok_or_else(no_repository)?;
    if found.files.is_empty() {
        return Ok(Output::text("[no changes since the last commit]"));
    }
    let summary = summary(&found);
    let text = if args.stat.unwrap_or(false) { stats(&found) } else { found.text };
    Ok(Output::text(format!("[{summary}]\n{text}")))
}

/// One line on a diff.
pub(super) fn summary(diff: &Diff) -> String {
    let (added, removed) =
        diff.files.iter().fold((0, 0), |(added, removed), file| (added + file.added, removed + file.removed));
    let more = if diff.cut { "; not all is shown, name fewer paths to see the rest" } else { "" };
    format!("{}, +{added} −{removed} lines{more}", many(diff.files.len(), "file"))
}

fn stats(diff: &Diff) -> String {
    diff.files.iter().map(|file| format!("{} +{} −{}\n", file.path, file.added, file.removed)).collect()
}

fn log(cx: &Cx, args: GitLog, _: &Action, _: bool) -> Result<Output, ToolError> {
    let repo = open(cx)?;
    if repo.head.is_none() {
        return Ok(Output::text("[no commits yet]"));
    }
    let count = format!("--max-count={}", args.count.unwrap_or(COMMITS_DEFAULT));
    let specs = repo.specs(args.path.as_slice())?;
    let mut asked = vec!["log", &count, "--no-color", "--no-show-signature", "--no-decorate", "--no-ext-diff"];
    asked.extend(["--date=short", "--format=%h %ad %an: %s", "--"]);
    asked.extend(specs.iter().map(String::as_str));
    let shown = repo.told(&asked, "read the history")?.shown();
    Ok(Output::text(if shown.is_empty() { "[no commits touched this]".to_owned() } else { shown }))
}
