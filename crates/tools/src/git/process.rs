//! One question to git: what is switched off for each of them, how long it may take, and what it says.

use std::path::Path;
use std::time::Duration;

use max_team_sandbox::Isolation;
use tokio_util::sync::CancellationToken;

use super::GitError;
use crate::command::{EndReason, Invocation, OutputBuffer, OutputSource};
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

/// The variables of every question.
const FIXED: [(&str, &str); 5] = [
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", ""),
    ("LC_ALL", "C"),
];

/// Where git is asked, and with what.
#[derive(Debug)]
pub(crate) struct GitProcess<'a> {
    pub(crate) dir: &'a Path,
    /// Variables beside the fixed ones; none of git's own is handed on.
    pub(crate) env: Vec<(String, String)>,
    /// Its sandbox, if it needs one.
    pub(crate) isolation: Option<Isolation>,
    pub(crate) timeout: Duration,
    /// Bytes of an answer that is kept whole.
    pub(crate) most: usize,
    pub(crate) cancel: &'a CancellationToken,
}

impl<'a> GitProcess<'a> {
    pub(crate) fn new(dir: &'a Path, cancel: &'a CancellationToken) -> Self {
        Self { dir, env: Vec::new(), isolation: None, timeout: TIMEOUT, most: ANSWER_BYTES_MAX, cancel }
    }

    /// Asks git and keeps the answer, also if git fails.
    pub(crate) fn ask(&self, args: &[&str]) -> Result<GitOutput, GitError> {
        let mut bytes = Vec::new();
        let mut is_cut = false;
        let (code, complaint) = self.stream(args, &mut |chunk| {
            is_cut |= bytes.len() + chunk.len() > self.most;
            if !is_cut {
                bytes.extend_from_slice(chunk);
            }
            !is_cut
        })?;
        Ok(GitOutput { code, bytes, is_cut, complaint })
    }

    /// Asks git; fails unless git succeeds or its answer was cut.
    pub(crate) fn told(&self, args: &[&str], doing: &str) -> Result<GitOutput, GitError> {
        let answer = self.ask(args)?;
        if answer.code == Some(0) || answer.is_cut { Ok(answer) } else { Err(answer.failed(doing)) }
    }

    /// Asks git and passes the answer on as it comes, until `sink` has enough.
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
        let fixed = FIXED.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let job = Invocation {
            env: fixed.chain(self.env.iter().cloned()).collect(),
            hide: |name| name.starts_with("GIT_"),
            apart: true,
            built: self.isolation.clone(),
            ..Invocation::new(&argv, self.dir, self.timeout, None)
        };
        let mut complaint = OutputBuffer::new(COMPLAINT_BYTES_MAX);
        let over = job.run(self.cancel, &mut |out, bytes| match out {
            OutputSource::Output => sink(bytes),
            OutputSource::Error => {
                complaint.push(bytes);
                true
            }
        })?;
        match over.ended {
            EndReason::Exited => Ok((over.code, complaint.text())),
            EndReason::TimedOut => Err(GitError::TimedOut(self.timeout.as_secs())),
            EndReason::Cancelled => Err(GitError::Stopped),
            EndReason::Limit(limit) => Err(GitError::Limit(limit.name())),
        }
    }
}

/// What git said.
#[derive(Debug)]
pub(crate) struct GitOutput {
    pub(crate) code: Option<i32>,
    pub(crate) bytes: Vec<u8>,
    /// Whether there was more than is kept.
    pub(crate) is_cut: bool,
    pub(crate) complaint: String,
}

impl GitOutput {
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
