//! One repository, asked in a way that runs nothing of it.
//!
//! A repository is somebody's data, and its settings can name programs: hooks, external diffs, text converters, file
//! watchers, content filters, signers, transports. All of them are switched off here, in one place, and what could still
//! be made to run one while we look runs within walls; the user's own settings stay. Only `commit` changes anything, and says so by its own name.

use std::path::Path;
use std::time::Duration;

use max_team_core::policy::Sight;
use tokio_util::sync::CancellationToken;

use super::GitError;
use super::within::Within;
use crate::command::{Ended, Job, Kept, Out};
use crate::files::Root;
use crate::text::visible;

/// How long one question to git may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes of an answer that is kept whole.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// Bytes of git's complaints.
const COMPLAINT_BYTES_MAX: usize = 2 << 10;

/// Settings that would run something, or would make the answers look different from what is read here.
const SETTINGS: [&str; 14] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "core.pager=cat",
    "color.ui=false",
    "log.showSignature=false",
    "commit.gpgSign=false",
    "status.submoduleSummary=false",
    "status.relativePaths=true",
    "submodule.recurse=false",
    "maintenance.auto=false",
    "gc.auto=0",
    "protocol.allow=never",
    "advice.detachedHead=false",
];

/// A working tree, or a folder in one.
#[derive(Debug)]
pub(crate) struct Repo<'a> {
    pub(crate) root: Root,
    /// What of it may be shown to whoever asks.
    pub(crate) sight: &'a Sight,
    /// What the working tree is compared with: the last commit, or the empty tree where there is none yet.
    pub(crate) base: String,
    /// The last commit.
    pub(crate) head: Option<String>,
    /// Content filters that the repository itself brings along; they are not run.
    pub(crate) filters: Vec<String>,
    /// Where it is kept, once that is known.
    within: Option<Within>,
    cancel: &'a CancellationToken,
}

/// What git said.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) bytes: Vec<u8>,
    /// Whether there was more than is kept.
    pub(crate) is_cut: bool,
    pub(crate) complaint: String,
}

impl<'a> Repo<'a> {
    /// The repository that a folder is in; `None` if it is in none.
    pub(crate) fn open(root: &Path, sight: &'a Sight, cancel: &'a CancellationToken) -> Result<Option<Self>, GitError> {
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
        repo.within = Some(Within::read(&repo.told(&Within::PLACES, "say where it is kept")?.line())?);
        repo.filters = repo.own_filters()?;
        let head = repo.ask(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])?;
        if head.code == Some(0) {
            repo.base = head.line();
            repo.head = Some(repo.base.clone());
        } else {
            // Standard input is empty, so this names the empty tree in whatever hash the repository uses.
            repo.base = repo.told(&["hash-object", "-t", "tree", "--stdin"], "name the empty tree")?.line();
        }
        Ok(Some(repo))
    }

    /// From here on it may be written to.
    pub(crate) fn writes(&mut self) {
        self.within.iter_mut().for_each(|within| within.writes = true);
    }

    /// Names of the filters that the repository's own settings define.
    fn own_filters(&self) -> Result<Vec<String>, GitError> {
        let args = ["config", "--includes", "-z", "--show-scope", "--get-regexp", r"^filter\."];
        let found = self.ask(&args)?;
        // One means that there are none.
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

    /// Asks git and keeps the answer, whatever it is.
    pub(crate) fn ask(&self, args: &[&str]) -> Result<Answer, GitError> {
        let mut bytes = Vec::new();
        let mut is_cut = false;
        let (code, complaint) = self.stream(args, &mut |chunk| {
            is_cut |= bytes.len() + chunk.len() > ANSWER_BYTES_MAX;
            if !is_cut {
                bytes.extend_from_slice(chunk);
            }
            !is_cut
        })?;
        Ok(Answer { code, bytes, is_cut, complaint })
    }

    /// Asks git and takes nothing but success, or enough of it.
    pub(crate) fn told(&self, args: &[&str], doing: &str) -> Result<Answer, GitError> {
        let answer = self.ask(args)?;
        if answer.code == Some(0) || answer.is_cut { Ok(answer) } else { Err(answer.failed(doing)) }
    }

    /// Asks git and hands the answer on as it comes, until `sink` has enough.
    pub(crate) fn stream(
        &self,
        args: &[&str],
        sink: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(Option<i32>, String), GitError> {
        let mut argv = vec!["git".to_owned(), "--no-pager".to_owned()];
        for setting in SETTINGS {
            argv.extend(["-c".to_owned(), setting.to_owned()]);
        }
        argv.extend(args.iter().map(|arg| (*arg).to_owned()));
        let job = Job {
            env: self.environment(),
            hide: |name| name.starts_with("GIT_"),
            apart: true,
            built: self.within.as_ref().and_then(|within| within.walls(args)),
            ..Job::new(&argv, self.root.path(), TIMEOUT, None)
        };
        let mut complaint = Kept::new(COMPLAINT_BYTES_MAX);
        let over = job.run(self.cancel, &mut |out, bytes| match out {
            Out::Output => sink(bytes),
            Out::Error => {
                complaint.push(bytes);
                true
            }
        })?;
        match over.ended {
            Ended::Exited => Ok((over.code, complaint.text())),
            Ended::TimedOut => Err(GitError::TimedOut(TIMEOUT.as_secs())),
            Ended::Cancelled => Err(GitError::Stopped),
            Ended::Limit(limit) => Err(GitError::Limit(limit.name())),
        }
    }

    fn environment(&self) -> Vec<(String, String)> {
        let fixed = [
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_ALLOW_PROTOCOL", ""),
            ("LC_ALL", "C"),
        ];
        let mut env: Vec<(String, String)> =
            fixed.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
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

    /// Where git shall look, from paths and globs relative to the root; everything beneath it if there are none.
    pub(crate) fn specs(&self, paths: &[String]) -> Result<Vec<String>, GitError> {
        let clean = self.clean(paths)?;
        Ok(clean.into_iter().map(|path| if path == "." { path } else { format!(":(glob){path}") }).collect())
    }

    /// The same as clean paths; `.` is everything.
    pub(crate) fn clean(&self, paths: &[String]) -> Result<Vec<String>, GitError> {
        if paths.is_empty() {
            return Ok(vec![".".to_owned()]);
        }
        let clean = |path: &String| self.root.place(path).map(|place| place.to_string());
        paths.iter().map(clean).collect::<Result<_, _>>().map_err(|err| GitError::Path(err.to_string()))
    }
}

impl Answer {
    /// The answer as one line.
    pub(crate) fn line(&self) -> String {
        String::from_utf8_lossy(self.bytes.trim_ascii()).into_owned()
    }

    /// The answer as lines that are safe to show.
    pub(crate) fn shown(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        text.lines().map(|line| visible(line) + "\n").collect()
    }

    /// The answer as zero-ended fields; the last is left out where the answer was cut.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &[u8]> {
        let whole = self.bytes.iter().rposition(|byte| *byte == 0).unwrap_or(0);
        self.bytes.get(..whole).unwrap_or_default().split(|byte| *byte == 0).filter(|field| !field.is_empty())
    }

    pub(crate) fn failed(&self, doing: &str) -> GitError {
        let said = if self.complaint.trim().is_empty() { self.line() } else { self.complaint.clone() };
        let lines: Vec<String> = said.lines().map(visible).filter(|line| !line.trim().is_empty()).collect();
        GitError::Failed { doing: doing.to_owned(), words: lines.join("; ") }
    }
}
