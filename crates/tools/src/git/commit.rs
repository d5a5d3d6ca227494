//! `git_commit`: some files, as they were shown, become one commit.
//!
//! The message carries a key under which the commit can be found again, so that after a crash it is looked up and not
//! made twice. Only the files that were shown are committed, and only if they still are as they were shown; whatever
//! else is staged stays staged. Hooks and signers are not run. Nothing is ever pushed.

use std::collections::BTreeSet;
use std::path::PathBuf;

use max_team_core::hash::Hash;
use max_team_core::policy::{Action, Class, Deed};
use schemars::JsonSchema;
use serde::Deserialize;

use super::look::{open, places, summary};
use super::repo::Repo;
use super::since::{differing, fingerprint};
use super::{Diff, GitError, diff};
use crate::text::{many, visible};
use crate::tool::{Cx, Output, ToolError};
use crate::typed::Typed;

/// The trailer that holds the key.
const TRAILER: &str = "Call-Key";
/// Commits among which a key is looked for.
const RECENT_MAX: &str = "200";
/// Bytes of a message.
const MESSAGE_BYTES_MAX: usize = 8 << 10;

/// Commit files of the project to its git repository, as they are now, new and deleted files included. Only the paths
/// that are named are committed; what else is changed or staged stays as it is. Hooks are not run and nothing is
/// pushed. A line `Call-Key: …` is added to the message.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitCommit {
    /// The commit message: a short subject line, then, after an empty line, why.
    message: String,
    /// The files, folders or globs to commit, like `src/main.rs` or `src/**/*.rs`.
    paths: Vec<String>,
}

/// The tool.
pub(crate) fn git_commit() -> Typed<GitCommit> {
    Typed::new("git_commit", Class::Keyed, action, call)
}

fn action(cx: &Cx, args: &GitCommit) -> Result<Action, ToolError> {
    check(args)?;
    let target = places(cx, &args.paths)?;
    let repo = open(cx)?;
    if !repo.filters.is_empty() {
        return Err(ToolError::correctable(format!(
            "the settings of this repository define content filters (`{}`), which are not run here, so committing could store the wrong content; ask the user to commit",
            repo.filters.join("`, `")
        )));
    }
    let files = chosen(&repo, args)?;
    let shown = diff(cx.root.path(), &args.paths, &cx.cancel)?.unwrap_or_default();
    if files.is_empty() {
        return Err(ToolError::correctable(format!(
            "nothing in `{target}` differs from the last commit; check the paths with `git_status`"
        )));
    }
    Ok(Action {
        deed: Deed::Write,
        target,
        preview: preview(args, &shown),
        before: Some(fingerprint(&repo, &files)),
        after: Some(key(&repo, args)),
    })
}

fn preview(args: &GitCommit, shown: &Diff) -> String {
    let message: Vec<String> = args.message.trim().lines().map(visible).collect();
    format!("commit: {}\n[{}]\n{}", message.join("\n"), summary(shown), shown.text)
}

fn check(args: &GitCommit) -> Result<(), ToolError> {
    let problem = if args.message.trim().is_empty() {
        "the message is empty; say what changes and why"
    } else if args.message.len() > MESSAGE_BYTES_MAX {
        "the message is longer than 8 KiB; say it shorter"
    } else if args.message.contains('\0') {
        "the message has a zero byte in it; leave it out"
    } else if args.message.lines().any(|line| line.trim_start().starts_with(TRAILER)) {
        "the message has a line `Call-Key`, which is added by itself; leave it out"
    } else if args.paths.is_empty() {
        "no paths are given; name the files to commit"
    } else {
        return Ok(());
    };
    Err(ToolError::correctable(problem))
}

/// The files that would be committed.
fn chosen(repo: &Repo<'_>, args: &GitCommit) -> Result<BTreeSet<PathBuf>, ToolError> {
    let mut cut = false;
    let files = differing(repo, &repo.specs(&args.paths)?, &mut cut)?;
    if cut {
        return Err(ToolError::correctable("these are too many files for one commit; name fewer paths"));
    }
    Ok(files)
}

fn key(repo: &Repo<'_>, args: &GitCommit) -> Hash {
    let mut fields = vec![repo.head.as_deref().unwrap_or_default().as_bytes(), args.message.as_bytes()];
    fields.extend(args.paths.iter().map(String::as_bytes));
    Hash::of_fields(&fields)
}

fn call(cx: &Cx, args: GitCommit, intent: &Action, _: bool) -> Result<Output, ToolError> {
    let repo = open(cx)?;
    let Some(key) =
        intent.after.filter(|_| intent.deed == Deed::Write && places(cx, &args.paths).as_ref() == Ok(&intent.target))
    else {
        return Err(ToolError::fatal("the commit is not the one that was judged"));
    };
    // The key holds the commit before, so nothing but this very call can have left it, resumed or not.
    if let Some(commit) = find(&repo, key)? {
        return Ok(Output::text(format!("committed as `{commit}`")));
    }
    let files = chosen(&repo, &args)?;
    if intent.before != Some(fingerprint(&repo, &files)) {
        return Err(ToolError::correctable(
            "the files have changed since the commit was shown; nothing was committed, call again",
        ));
    }
    let message = format!("{}\n\n{TRAILER}: {key}", args.message.trim_end());
    let specs: Vec<String> = files.iter().map(|path| format!(":(literal){}", path.display())).collect();
    let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
    repo.told(&[&["add", "--all", "--"], specs.as_slice()].concat(), "stage the files").map_err(busy)?;
    let commit = ["commit", "--quiet", "--no-gpg-sign", "--cleanup=whitespace", "--message", &message, "--only", "--"];
    repo.told(&[&commit, specs.as_slice()].concat(), "commit").map_err(busy)?;
    let commit = find(&repo, key)?.unwrap_or_else(|| "HEAD".to_owned());
    Ok(Output::text(format!("committed as `{commit}` ({})", many(files.len(), "file"))))
}

fn busy(err: GitError) -> ToolError {
    match err {
        GitError::Failed { words, .. } if words.contains("index.lock") => ToolError::correctable(
            "another git command is at work in this repository; nothing was committed, try again",
        ),
        err => err.into(),
    }
}

/// The commit with that key.
fn find(repo: &Repo<'_>, key: Hash) -> Result<Option<String>, GitError> {
    // Asked anew: there may be a first commit by now.
    if repo.ask(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])?.code != Some(0) {
        return Ok(None);
    }
    let format = format!("--format=%h %(trailers:key={TRAILER},valueonly,separator=%x2C)");
    let args = ["log", "--max-count", RECENT_MAX, "--no-color", "--no-show-signature", &format];
    let answer = repo.told(&args, "read the history")?.line();
    let key = key.to_string();
    let has = |line: &&str| line.split_once(' ').is_some_and(|(_, keys)| keys.split(',').any(|one| one.trim() == key));
    Ok(answer.lines().find(has).and_then(|line| line.split(' ').next()).map(str::to_owned))
}
