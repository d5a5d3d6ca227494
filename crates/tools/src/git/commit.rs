//! `git_commit`: commits some files as they were shown.
//!
//! The message carries a key under which the commit can be found again, so that after a crash it is looked up and not
//! made twice. Only the files that were shown are committed, and only if they still are as they were shown; other
//! staged changes stay staged. A path that is hidden from the member is refused; hidden files are left out of folders
//! and globs. Hooks and signers are not run. Nothing is ever pushed.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use max_team_core::hash::Hash;
use max_team_core::policy::{Action, ActionKind, Repeatability};
use schemars::JsonSchema;
use serde::Deserialize;

use super::locks::{CommitClaim, blocking};
use super::repo::Repo;
use super::tools::{nearest, open, seen, summary};
use super::worktree_diff::{self, literal};
use super::{Diff, GitError, diff_seen};
use crate::files::look;
use crate::text::{many, visible};
use crate::tool::{Output, ToolContext, ToolError};
use crate::typed::Typed;

/// The trailer that holds the key.
const TRAILER: &str = "Call-Key";
/// Commits among which a key is looked for.
const RECENT_MAX: &str = "200";
/// Held while a commit of this process is made.
static COMMITS: Mutex<()> = Mutex::new(());
/// The error while another commit is running.
const BUSY: &str = "another git command is at work in this repository; nothing was committed, try again";
/// Bytes of a message.
const MESSAGE_BYTES_MAX: usize = 8 << 10;

/// Commit the named files as they are now, new and deleted files included; other changes stay as they are. No hooks, no
/// push.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitCommit {
    /// A short subject line, an empty line, then why.
    message: String,
    /// Files, folders or globs.
    paths: Vec<String>,
}

pub(crate) fn git_commit() -> Typed<GitCommit> {
    Typed::new("git_commit", Repeatability::Keyed, action, call)
}

fn action(cx: &ToolContext, args: &GitCommit) -> Result<Action, ToolError> {
    check(args)?;
    seen(cx, &args.paths)?;
    let repo = open(cx)?;
    if !repo.filters.is_empty() {
        return Err(ToolError::correctable(format!(
            "the settings of this repository define content filters (`{}`), which are not run here, so committing could store the wrong content; ask the user to commit",
            repo.filters.join("`, `")
        )));
    }
    let CommitFiles { files, hidden } = CommitFiles::new(&repo, args)?;
    if files.is_empty() {
        let among = if hidden.is_empty() { "" } else { ", among what you see," };
        return Err(ToolError::correctable(format!(
            "nothing in {}{among} differs from the last commit; check the paths with `git_status`",
            quoted(&args.paths)
        )));
    }
    let shown = diff_seen(cx.root.path(), &args.paths, &cx.sight, &cx.cancel)?.unwrap_or_default();
    Ok(Action {
        kind: ActionKind::Write,
        preview: preview(args, &shown),
        before: Some(fingerprint(&repo, &files)?),
        after: Some(key(&repo, args)),
        ..Action::read(target(&files))
    })
}

/// What the policy judges. A rule reads it as one path, so several files become everything beneath the folder that
/// they share: a rule that allows that allows each of them, and one for the folder's own name or for some files in it
/// does not.
fn target(files: &BTreeSet<PathBuf>) -> String {
    let names: Vec<String> = files.iter().map(|path| visible(&path.to_string_lossy())).collect();
    match (nearest(names.iter().map(String::as_str)), files.len()) {
        (file, 1) => file,
        (folder, _) if folder == "." => "**/*".to_owned(),
        (folder, _) => format!("{folder}/**/*"),
    }
}

fn preview(args: &GitCommit, shown: &Diff) -> String {
    format!("{}[{}]\n{}", heading(args), summary(shown), shown.text)
}

/// What was asked for, as text.
fn heading(args: &GitCommit) -> String {
    let message: Vec<String> = args.message.trim().lines().map(visible).collect();
    format!("commit {}: {}\n", quoted(&args.paths), message.join("\n"))
}

fn quoted(paths: &[String]) -> String {
    let quoted: Vec<String> = paths.iter().map(|path| format!("`{}`", visible(path))).collect();
    quoted.join(", ")
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

/// The files that would be committed, and those that are left out because they are hidden.
struct CommitFiles {
    files: BTreeSet<PathBuf>,
    hidden: BTreeSet<PathBuf>,
}

impl CommitFiles {
    fn new(repo: &Repo<'_>, args: &GitCommit) -> Result<Self, ToolError> {
        let mut cut = false;
        let all = differing(repo, &repo.specs(&args.paths)?, &mut cut)?;
        if cut {
            return Err(ToolError::correctable("these are too many files for one commit; name fewer paths"));
        }
        let is_seen = |path: &PathBuf| repo.sight.is_visible(&path.to_string_lossy());
        let (files, hidden): (BTreeSet<_>, BTreeSet<_>) = all.into_iter().partition(is_seen);
        let chosen = Self { files, hidden };
        if repo.sight.is_whole() || chosen.files.is_empty() {
            return Ok(chosen);
        }
        // Where a file and a folder have replaced each other, one cannot be committed without the other.
        let taken = differing(repo, &chosen.specs(), &mut cut)?;
        if cut || !taken.iter().all(is_seen) {
            return Err(ToolError::correctable(
                "where one of these files is, there is or was a folder with something that is not for you to see; ask the user to commit it, and name the others",
            ));
        }
        Ok(chosen)
    }

    fn specs(&self) -> Vec<String> {
        literal(self.files.iter().filter_map(|path| path.to_str()))
    }
}

/// Everything that differs from the base, whether git knows it or not.
fn differing(repo: &Repo<'_>, specs: &[String], cut: &mut bool) -> Result<BTreeSet<PathBuf>, GitError> {
    let mut paths: BTreeSet<PathBuf> = worktree_diff::changed(repo, specs)?.paths(cut).into_iter().collect();
    paths.extend(worktree_diff::untracked(repo, specs)?.paths(cut));
    // A name that is no text cannot be written down, so it is left out and that is said.
    let found = paths.len();
    paths.retain(|path| path.to_str().is_some());
    *cut |= paths.len() < found;
    Ok(paths)
}

/// One hash over the states of some files.
fn fingerprint(repo: &Repo<'_>, paths: &BTreeSet<PathBuf>) -> Result<Hash, ToolError> {
    let mut told = String::new();
    for path in paths {
        let path = path.to_string_lossy();
        let state = look(&repo.root, &repo.root.place(&path)?, &mut None)?;
        told.push_str(&format!("{state:?} {path}\0"));
    }
    Ok(Hash::of(told))
}

fn key(repo: &Repo<'_>, args: &GitCommit) -> Hash {
    let mut fields = vec![repo.head.as_deref().unwrap_or_default().as_bytes(), args.message.as_bytes()];
    fields.extend(args.paths.iter().map(String::as_bytes));
    Hash::of_fields(&fields)
}

fn call(cx: &ToolContext, args: GitCommit, intent: &Action, _: bool) -> Result<Output, ToolError> {
    let is_judged = intent.kind == ActionKind::Write && intent.preview.starts_with(&heading(&args));
    let Some(key) = intent.after.filter(|_| is_judged) else {
        return Err(ToolError::fatal("the commit is not the one that was judged"));
    };
    seen(cx, &args.paths)?;
    // Members of one team commit one after another; git would refuse the second.
    let _turn = COMMITS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut repo = open(cx)?;
    repo.writes();
    // The key holds the commit before, so only this very call can have left it, resumed or not.
    if let Some(commit) = find(&repo, key)? {
        return Ok(Output::text(format!("committed as `{commit}`")));
    }
    let chosen = CommitFiles::new(&repo, &args)?;
    if intent.before != Some(fingerprint(&repo, &chosen.files)?) {
        return Err(ToolError::correctable(
            "the files have changed since the commit was shown; nothing was committed, call again",
        ));
    }
    let claim = match repo.places().map(CommitClaim::take).transpose() {
        Ok(Some(None)) => return Err(ToolError::correctable(BUSY)),
        claim => claim.map_err(|error| ToolError::correctable(format!("git's folder cannot be written: {error}")))?,
    };
    let made = make(&repo, &args, &chosen, key);
    if let Some(claim) = claim.flatten() {
        claim.end(made.as_ref().is_err_and(is_killed));
    }
    match (made, find(&repo, key)?) {
        // Also if git was killed: the commit exists.
        (_, Some(commit)) => {
            Ok(Output::text(format!("committed as `{commit}` ({})", many(chosen.files.len(), "file"))))
        }
        (Ok(()), None) => Ok(Output::text("committed as `HEAD`")),
        (Err(error), None) => Err(blocked(&repo, error)),
    }
}

/// Stages the files and commits them.
fn make(repo: &Repo<'_>, args: &GitCommit, chosen: &CommitFiles, key: Hash) -> Result<(), GitError> {
    let message = format!("{}\n\n{TRAILER}: {key}", args.message.trim_end());
    let specs = chosen.specs();
    let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
    repo.told(&[&["add", "--all", "--"], specs.as_slice()].concat(), "stage the files")?;
    let commit = ["commit", "--quiet", "--no-gpg-sign", "--cleanup=whitespace", "--message", &message, "--only", "--"];
    repo.told(&[&commit, specs.as_slice()].concat(), "commit")?;
    Ok(())
}

/// Whether git did not end by itself.
fn is_killed(error: &GitError) -> bool {
    matches!(error, GitError::Stopped | GitError::TimedOut(_) | GitError::Limit(_) | GitError::Command(_))
}

fn blocked(repo: &Repo<'_>, error: GitError) -> ToolError {
    match error {
        GitError::Failed { words, .. } if words.contains(".lock") => {
            let left = repo.places().map(|places| blocking(&places)).unwrap_or_default();
            match left.first() {
                Some(lock) => ToolError::correctable(format!(
                    "nothing was committed: `{}` blocks git, and no git that runs holds it; try again, and if it stays, ask \
                     the user to remove it",
                    lock.display()
                )),
                None => ToolError::correctable(BUSY),
            }
        }
        error => error.into(),
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
