//! One repository, asked in a way that runs nothing of it.
//!
//! A repository is foreign data, and its settings can name programs: hooks, external diffs, text converters, file
//! watchers, content filters, signers, transports. All of them are switched off (`process`), and a question that
//! could still be made to run one is asked in a sandbox; the user's own settings stay. Only `commit` changes anything,
//! and says so by its own name.

use std::path::{Path, PathBuf};

use max_team_core::policy::Visibility;
use tokio_util::sync::CancellationToken;

use super::GitError;
use super::locks::RepoDirs;
use super::process::{GitOutput, GitProcess};
use super::sandboxed::GitSandbox;
use crate::files::Root;

/// Bytes of an answer with a line for every file.
const LONG_BYTES_MAX: usize = 64 << 20;

/// A working tree, or a folder in one.
#[derive(Debug)]
pub(crate) struct Repo<'a> {
    pub(crate) root: Root,
    /// What of it may be shown to the agent that asks.
    pub(crate) sight: &'a Visibility,
    /// What the working tree is compared with: the last commit, or the empty tree where there is none yet.
    pub(crate) base: String,
    /// The last commit.
    pub(crate) head: Option<String>,
    /// Content filters that the repository itself brings along; they are not run.
    pub(crate) filters: Vec<String>,
    /// Where it is stored, once that is known.
    within: Option<GitSandbox>,
    cancel: &'a CancellationToken,
}

impl<'a> Repo<'a> {
    /// The repository that a folder is in; `None` if it is in none.
    pub(crate) fn open(
        root: &Path,
        sight: &'a Visibility,
        cancel: &'a CancellationToken,
    ) -> Result<Option<Self>, GitError> {
        let root = Root::open(root).map_err(|err| GitError::Folder(root.display().to_string(), err.to_string()))?;
        let mut repo = Self { root, sight, base: String::new(), head: None, filters: Vec::new(), within: None, cancel };
        let inside = repo.ask(&["rev-parse", "--is-inside-work-tree"])?;
        if inside.code != Some(0) {
            let is_none = inside.complaint.contains("not a git repository");
            return if is_none { Ok(None) } else { Err(inside.failed("look at the repository")) };
        }
        if inside.bytes.trim_ascii() != b"true" {
            return Ok(None);
        }
        repo.within = Some(GitSandbox::read(&repo.told(&GitSandbox::PLACES, "say where it is kept")?.line())?);
        repo.filters = repo.own_filters()?;
        let head = repo.ask(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])?;
        if head.code == Some(0) {
            repo.base = head.line();
            repo.head = Some(repo.base.clone());
        } else {
            // Standard input is empty, so this names the empty tree in the hash format of the repository.
            repo.base = repo.told(&["hash-object", "-t", "tree", "--stdin"], "name the empty tree")?.line();
        }
        Ok(Some(repo))
    }

    /// Compares with a commit before this one, or with the point at which the current branch left another branch.
    pub(crate) fn compare_with(&mut self, name: &str) -> Result<(), GitError> {
        let commit = format!("{name}^{{commit}}");
        let no_commit = || GitError::NoCommit(name.to_owned());
        if name.starts_with('-') {
            return Err(no_commit());
        }
        let found = self.ask(&["rev-parse", "--verify", "--quiet", &commit])?;
        if found.code != Some(0) {
            return Err(no_commit());
        }
        self.base = self.told(&["merge-base", "HEAD", &found.line()], "find where the two parted")?.line();
        Ok(())
    }

    /// Allows writing to it from here on.
    pub(crate) fn writes(&mut self) {
        self.within.iter_mut().for_each(|within| within.writes = true);
    }

    /// Names of the filters that the repository's own settings define.
    fn own_filters(&self) -> Result<Vec<String>, GitError> {
        let args = ["config", "--includes", "-z", "--show-scope", "--get-regexp", r"^filter\."];
        let found = self.ask(&args)?;
        // Exit code 1 means that there are none.
        if !matches!(found.code, Some(0 | 1)) || found.is_cut {
            return Err(found.failed("read the settings"));
        }
        let text = String::from_utf8_lossy(&found.bytes);
        let mut fields = text.split('\0');
        let mut names = Vec::new();
        while let (Some(scope), Some(setting)) = (fields.next(), fields.next()) {
            let key = setting.split('\n').next().unwrap_or_default();
            let name = key.strip_prefix("filter.").and_then(|rest| rest.rsplit_once('.')).map(|(name, _)| name);
            if !matches!(scope, "system" | "global" | "command") {
                names.extend(name.map(str::to_owned));
            }
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// Asks git and keeps the answer, also if git fails.
    pub(crate) fn ask(&self, args: &[&str]) -> Result<GitOutput, GitError> {
        self.question(args).ask(args)
    }

    /// Asks git; fails unless git succeeds or its answer was cut.
    pub(crate) fn told(&self, args: &[&str], doing: &str) -> Result<GitOutput, GitError> {
        self.question(args).told(args, doing)
    }

    /// Like `told`, where the answer may be long: one line for every file there is.
    pub(crate) fn long(&self, args: &[&str], doing: &str) -> Result<GitOutput, GitError> {
        GitProcess { most: LONG_BYTES_MAX, ..self.question(args) }.told(args, doing)
    }

    /// Asks git and passes the answer on as it comes, until `sink` has enough.
    pub(crate) fn stream(
        &self,
        args: &[&str],
        sink: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(Option<i32>, String), GitError> {
        self.question(args).stream(args, sink)
    }

    fn question(&self, args: &[&str]) -> GitProcess<'_> {
        GitProcess {
            env: self.environment(),
            isolation: self.within.as_ref().and_then(|within| within.isolation(args)),
            ..GitProcess::new(self.root.path(), self.cancel)
        }
    }

    /// Overrules the filters that the repository itself would run with empty ones.
    fn environment(&self) -> Vec<(String, String)> {
        let mut env = Vec::new();
        // As variables and not as `-c`: the name of a filter may have a `=` in it.
        let settings = ["clean", "smudge", "process"].map(|kind| (kind, "")).into_iter().chain([("required", "false")]);
        let each = self.filters.iter().flat_map(|name| settings.clone().map(move |setting| (name, setting)));
        let mut count = 0;
        for (at, (name, (kind, value))) in each.enumerate() {
            env.push((format!("GIT_CONFIG_KEY_{at}"), format!("filter.{name}.{kind}")));
            env.push((format!("GIT_CONFIG_VALUE_{at}"), value.to_owned()));
            count = at + 1;
        }
        env.push(("GIT_CONFIG_COUNT".to_owned(), count.to_string()));
        env
    }

    /// The folder with its objects, if it is certain that they are this working tree's. Those that it borrows from
    /// other repositories are not among them.
    pub(crate) fn objects(&self) -> Result<Option<PathBuf>, GitError> {
        let Some(within) = &self.within else { return Ok(None) };
        let names = self.ask(&["config", "--local", "--get", "core.worktree"])?;
        let names = Some(names.line()).filter(|line| names.code == Some(0) && !line.is_empty());
        within.objects(names.as_deref()).map(Some)
    }

    /// Whether it keeps some of its objects in other repositories.
    pub(crate) fn borrows(&self) -> bool {
        self.within.as_ref().is_some_and(GitSandbox::borrows)
    }

    /// Where it is stored.
    pub(super) fn places(&self) -> Option<RepoDirs<'_>> {
        self.within.as_ref().map(GitSandbox::places)
    }

    /// Git's folder that all working trees share.
    pub(crate) fn shared(&self) -> Option<&Path> {
        self.within.as_ref().map(GitSandbox::shared)
    }

    /// The pathspecs for git, from paths and globs relative to the root; everything beneath it if there are none.
    pub(crate) fn specs(&self, paths: &[String]) -> Result<Vec<String>, GitError> {
        let clean = self.clean(paths)?;
        Ok(clean.into_iter().map(|path| if path == "." { path } else { format!(":(glob){path}") }).collect())
    }

    /// Like `specs`, but as clean paths; `.` is everything.
    pub(crate) fn clean(&self, paths: &[String]) -> Result<Vec<String>, GitError> {
        if paths.is_empty() {
            return Ok(vec![".".to_owned()]);
        }
        let clean = |path: &String| self.root.place(path).map(|place| place.to_string());
        paths.iter().map(clean).collect::<Result<_, _>>().map_err(|err| GitError::Path(err.to_string()))
    }
}
