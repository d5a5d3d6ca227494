//! `git_status`, `git_diff`, `git_log`: what git knows, for a model.
//!
//! They only read, and only what the member sees: a hidden path is refused, hidden files are left out and counted.
//! Programs that a repository brings along are never run.

use max_team_core::policy::{Action, Repeatability};
use schemars::JsonSchema;
use serde::Deserialize;

use super::process::GitOutput;
use super::repo::Repo;
use super::{Diff, FileStat, diff_to_base, left_out};
use crate::text::{many, visible};
use crate::tool::{Output, ToolContext, ToolError};
use crate::typed::Typed;

/// Commits that `git_log` shows unless told otherwise.
const COMMITS_DEFAULT: u32 = 20;

/// Show the branch and which files are changed, new or staged.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitStatus {}

/// Show the changes since a commit as a unified diff, new files included.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitDiff {
    /// Files, folders or globs. Default: all.
    paths: Option<Vec<String>>,
    /// Only files and line counts.
    stat: Option<bool>,
    /// A commit, or a branch: then since the two parted. Default: the last commit.
    base: Option<String>,
}

/// Show the latest commits, newest first: hash, date, author, subject.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitLog {
    /// Only commits that touched this file or folder.
    path: Option<String>,
    /// How many commits; default: 20.
    #[schemars(range(min = 1, max = 200))]
    count: Option<u32>,
}

pub(crate) fn git_status() -> Typed<GitStatus> {
    Typed::new("git_status", Repeatability::Pure, |_, _| Ok(Action::read(".")), status)
}

pub(crate) fn git_diff() -> Typed<GitDiff> {
    let action = |cx: &ToolContext, args: &GitDiff| {
        let places = seen(cx, args.paths.as_deref().unwrap_or_default())?;
        Ok(Action::read(nearest(places.iter().map(String::as_str))))
    };
    Typed::new("git_diff", Repeatability::Pure, action, differ)
}

pub(crate) fn git_log() -> Typed<GitLog> {
    let action = |cx: &ToolContext, args: &GitLog| {
        let place = cx.seen(args.path.as_deref().unwrap_or("."))?;
        Ok(Action::read(place.to_string()))
    };
    Typed::new("git_log", Repeatability::Pure, action, log)
}

/// Where the paths and globs of a model lead: each path, and of a glob the folder that it begins in. A hidden one is
/// refused; the files that a glob finds are checked one by one.
pub(super) fn seen(cx: &ToolContext, paths: &[String]) -> Result<Vec<String>, ToolError> {
    let place = |path: &String| {
        let place = cx.root.place(path)?.to_string();
        let fixed = match place.split_once(['*', '?', '[']) {
            Some((before, _)) => before.rsplit_once('/').map_or(".", |(folder, _)| folder),
            None => &place,
        };
        cx.seen(fixed).map(|place| place.to_string())
    };
    paths.iter().map(place).collect()
}

/// One path, or the folder that several have in common: a rule reads it as a path, so it must be one.
pub(super) fn nearest<'a>(paths: impl Iterator<Item = &'a str>) -> String {
    let parts = |path: &'a str| path.split('/').filter(|part| *part != ".").collect::<Vec<_>>();
    let shared = paths.map(parts).reduce(|one, other| {
        let alike = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
        one.into_iter().take(alike).collect()
    });
    let shared = shared.unwrap_or_default().join("/");
    if shared.is_empty() { ".".to_owned() } else { shared }
}

/// The repository of the project, or an error that says what to do without.
pub(super) fn open(cx: &ToolContext) -> Result<Repo<'_>, ToolError> {
    Repo::open(cx.root.path(), &cx.sight, &cx.cancel)?.ok_or_else(no_repository)
}

fn no_repository() -> ToolError {
    ToolError::correctable(
        "the project folder is not in a git repository, so git knows nothing about it; use `list_dir` and `read_file` to see what is there",
    )
}

fn status(cx: &ToolContext, _: GitStatus, _: &Action, _: bool) -> Result<Output, ToolError> {
    let repo = open(cx)?;
    let args = [
        "status",
        "--porcelain=v1",
        "-z",
        "--branch",
        "--untracked-files=normal",
        "--ignore-submodules=dirty",
        "--no-renames",
        "--",
        ".",
    ];
    let answer = repo.told(&args, "tell the state")?;
    let folder = repo.told(&["rev-parse", "--show-prefix"], "tell where the folder is")?;
    Ok(Output::text(state(&repo, &answer, &folder.line())))
}

/// What `git status` says, a line for each name that can be seen. `folder` is where the root is in the repository:
/// git gives names from the top.
fn state(repo: &Repo<'_>, answer: &GitOutput, folder: &str) -> String {
    let (mut text, mut shown, mut hidden) = (String::new(), 0, 0);
    for field in answer.fields() {
        let line = String::from_utf8_lossy(field);
        if line.starts_with("## ") {
            text.push_str(&format!("{}\n", visible(&line)));
            continue;
        }
        let Some((marks, path)) = line.split_at_checked(3) else { continue };
        // A folder that is new as a whole is named as such, the root included.
        let path = path.strip_prefix(folder).filter(|path| !path.is_empty()).unwrap_or("./");
        if repo.sight.is_visible(path) {
            text.push_str(&format!("{marks}{}\n", visible(path)));
            shown += 1;
        } else {
            hidden += 1;
        }
    }
    if shown + hidden == 0 {
        text.push_str("[nothing is changed]\n");
    }
    if answer.is_cut {
        text.push_str("[… the rest is cut …]\n");
    }
    text + &left_out(hidden)
}

fn differ(cx: &ToolContext, args: GitDiff, _: &Action, _: bool) -> Result<Output, ToolError> {
    let paths = args.paths.unwrap_or_default();
    seen(cx, &paths)?;
    let sight = cx.passing(&paths);
    let mut repo = Repo::open(cx.root.path(), &sight, &cx.cancel)?.ok_or_else(no_repository)?;
    if let Some(base) = &args.base {
        repo.compare_with(base)?;
    }
    let found = diff_to_base(&repo, &paths)?;
    if found.files.is_empty() {
        let since = args.base.map_or_else(|| "the last commit".to_owned(), |base| format!("`{base}`"));
        let among = if found.hidden == 0 { "" } else { " among what you see" };
        let told = format!("[no changes since {since}{among}]\n{}", left_out(found.hidden));
        return Ok(Output::text(told.trim_end()));
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
    let line = |file: &FileStat| format!("{} +{} −{}\n", file.path, file.added, file.removed);
    left_out(diff.hidden) + &diff.files.iter().map(line).collect::<String>()
}

fn log(cx: &ToolContext, args: GitLog, _: &Action, _: bool) -> Result<Output, ToolError> {
    let place = cx.seen(args.path.as_deref().unwrap_or("."))?;
    let repo = open(cx)?;
    if repo.head.is_none() {
        return Ok(Output::text("[no commits yet]"));
    }
    let count = format!("--max-count={}", args.count.unwrap_or(COMMITS_DEFAULT));
    // As a literal path and not as a glob, which could find hidden files.
    let spec = format!(":(literal){place}");
    let mut asked = vec!["log", &count, "--no-color", "--no-show-signature", "--no-decorate", "--no-patch"];
    asked.extend(["--date=short", "--format=%h %ad %an: %s", "--", &spec]);
    let shown = repo.told(&asked, "read the history")?.shown();
    Ok(Output::text(if shown.is_empty() { "[no commits touched this]".to_owned() } else { shown }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_paths_have_a_folder_in_common() {
        let table: [(&[&str], &str); 9] = [
            (&[], "."),
            (&["."], "."),
            (&["a/b"], "a/b"),
            (&["a/b", "a/c"], "a"),
            (&["a/b/c", "a/b/d", "a/b"], "a/b"),
            (&["a/b", "ab"], "."),
            (&["a", "."], "."),
            (&[".", "a"], "."),
            (&["a/b", "c"], "."),
        ];
        for (paths, want) in table {
            assert_eq!(nearest(paths.iter().copied()), want, "{paths:?}");
        }
    }
}
