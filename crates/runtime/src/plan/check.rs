//! Checks the result of a task by code: a model's claim proves nothing.
//!
//! Declared files must exist, declared commands must pass, and the usual results of a role (a diff, a test report) are
//! collected here. The verdict follows from the findings: without declared checks and without findings it is
//! `unverified`. A file proves nothing if a crash interrupted a command of the task: it may be incomplete.

use std::path::Path;
use std::time::Duration;

use max_team_core::agent::Settings;
use max_team_core::agent_dirs::AgentDir;
use max_team_core::hash::Hash;
use max_team_core::limits::{CHECK_MS_MAX, EVIDENCE_BYTES_MAX};
use max_team_core::plan::event::{Artifact, ArtifactType, CheckFault, Evidence, Proof};
use max_team_core::plan::{Findings, TaskDraft};
use max_team_core::policy::{CommandReach, Visibility};
use max_team_tools::command::CommandSandbox;
use max_team_tools::worktree::Review;
use max_team_tools::{command, git, project, test_runner};
use tokio_util::sync::CancellationToken;

use super::leave;
use crate::error::RuntimeError;
use crate::rewind::record_tree_step;
use crate::shared::Shared;

/// The name of the artifact that holds a coder's changes.
pub(super) const CODE_DIFF: &str = "code_diff";

/// The usual result of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// Changes in the project.
    Diff,
    /// A test report.
    Tests,
    /// A design, as text.
    Design,
    /// A review of changes, as text.
    Review,
    /// A report, as text.
    Report,
    /// An answer, as text.
    Words,
}

impl Leaves {
    /// The result of a role, by the names that people use for roles.
    pub(crate) fn of(role: &str) -> Self {
        let role = role.to_lowercase();
        let is = |names: &[&str]| names.iter().any(|name| role.contains(name));
        if is(&["coder", "developer", "programmer"]) {
            Self::Diff
        } else if is(&["test", "qa"]) {
            Self::Tests
        } else if is(&["architect", "design"]) {
            Self::Design
        } else if is(&["ops", "sre"]) {
            Self::Report
        } else {
            Self::Words
        }
    }

    fn words_name(self) -> &'static str {
        match self {
            Self::Design => "design_doc",
            Self::Review => "review",
            Self::Report => "ops_report",
            Self::Diff | Self::Tests | Self::Words => "answer",
        }
    }
}

/// The environment of a task's check commands.
pub(crate) struct Checker<'a> {
    pub root: &'a Path,
    pub task: &'a TaskDraft,
    /// The settings of its owner; `None`: the team has no such member any more.
    pub owner: Option<&'a Settings>,
    /// The checks of the task that need a person and were approved with the plan.
    pub covered: &'a [String],
    /// The sandbox of the commands.
    pub isolation: &'a CommandSandbox,
}

/// What is checked, and what is known from before the task.
pub(crate) struct Look<'a> {
    pub checker: Checker<'a>,
    /// The folder of the session's own files.
    pub files: &'a Path,
    pub leaves: Leaves,
    /// The owner's answer.
    pub output: &'a str,
    pub shared: &'a Shared,
    /// The snapshot of the tree when the task began.
    pub before: Option<Hash>,
    /// The changes in its worktree, if it was done in one.
    pub changed: Option<&'a Review>,
    /// What its owner may see: nothing else is passed on.
    pub sight: &'a Visibility,
    /// Checks that passed before the task began.
    pub passed_before: &'a [String],
    /// Commands of the task whose outcome is unknown.
    pub unknown: &'a [String],
    /// Hashes of the declared files before the task.
    pub outputs_before: &'a [Option<Hash>],
    /// Files that its commands changed although the task does not own them.
    pub unowned: Result<Vec<String>, RuntimeError>,
}

impl Checker<'_> {
    /// Time limit of one check: at most that of the task.
    fn most(&self) -> Duration {
        Duration::from_millis(self.task.timeout_ms.unwrap_or(CHECK_MS_MAX).min(CHECK_MS_MAX))
    }
}

/// Whether the task has anything to check: a plain text answer has not, and a coder that changed nothing has no diff. `acted`:
/// its owner may have changed something.
pub(crate) fn needs_a_look(task: &TaskDraft, leaves: Leaves, acted: bool) -> bool {
    let leaves_any = match leaves {
        Leaves::Diff => acted,
        Leaves::Tests => true,
        Leaves::Design | Leaves::Review | Leaves::Report | Leaves::Words => false,
    };
    let may_exceed = acted && task.owns.is_some();
    !task.outputs.is_empty() || !task.verify.is_empty() || leaves_any || may_exceed
}

/// The findings if there is nothing but the answer's text.
pub(crate) fn words(leaves: Leaves, output: &str) -> Findings {
    Findings { artifacts: vec![said(leaves, output)], ..Findings::default() }
}

fn said(leaves: Leaves, output: &str) -> Artifact {
    Artifact { name: leaves.words_name().to_owned(), kind: ArtifactType::Text, content: output.to_owned() }
}

/// Compares the tree with what the task promised. Blocks on file IO.
pub(crate) fn look(look: &Look<'_>, cancel: &CancellationToken) -> Findings {
    let mut findings = words(look.leaves, look.output);
    let mut proven = 0;
    let (checker, task) = (&look.checker, look.checker.task);
    for (index, path) in task.outputs.iter().enumerate() {
        let before = look.outputs_before.get(index).copied().flatten();
        let (evidence, changed) = output(checker.root, look.files, path, before);
        proven += usize::from(evidence.ok && changed && look.unknown.is_empty());
        if evidence.ok {
            findings.artifacts.push(Artifact {
                name: path.clone(),
                kind: ArtifactType::FilePath,
                content: path.clone(),
            });
        }
        findings.evidence.push(evidence);
    }
    for line in &task.verify {
        let mut evidence = checker.run(line, cancel);
        evidence.passed_before = evidence.ok && look.passed_before.contains(line);
        proven += usize::from(evidence.ok);
        findings.evidence.push(evidence);
    }
    let paths = "paths of the task";
    match &look.unowned {
        Ok(files) if files.is_empty() => {}
        Ok(files) => findings.evidence.push(Evidence::fault(paths, CheckFault::Unowned(files.clone()))),
        Err(error) => findings.evidence.push(Evidence::new(paths, false, error.to_string())),
    }
    match look.leaves {
        Leaves::Diff => findings.artifacts.extend(diff(look, cancel)),
        Leaves::Tests => {
            if let Some((artifact, evidence)) = test_report(look, cancel) {
                findings.artifacts.push(artifact);
                proven += usize::from(evidence.as_ref().is_some_and(|evidence| evidence.ok));
                // The project's tests may be a declared check, too: a second pass shows nothing more.
                let is_listed = |new: &Evidence| findings.evidence.iter().any(|known| known.what == new.what && new.ok);
                let evidence = evidence.filter(|new| !is_listed(new));
                findings.evidence.extend(evidence);
            }
        }
        Leaves::Design | Leaves::Review | Leaves::Report | Leaves::Words => {}
    }
    findings.proof = if findings.evidence.iter().any(|evidence| !evidence.ok) {
        Proof::Failed
    } else if proven > 0 {
        Proof::Verified
    } else {
        Proof::Unverified
    };
    findings
}

/// The folder of a declared file: the project, or the session's own files.
fn declared<'a>(root: &'a Path, files: &'a Path, path: &'a str) -> (&'a Path, &'a str) {
    match AgentDir::split(path) {
        Some((AgentDir::Files, rest)) => (files, rest),
        _ => (root, path),
    }
}

/// The hash of a declared file, `None` if it is not there.
pub(crate) fn hash(root: &Path, files: &Path, path: &str) -> Option<Hash> {
    let (root, path) = declared(root, files, path);
    let real = root.join(path).canonicalize().ok()?;
    let inside = root.canonicalize().ok().is_some_and(|root| real.starts_with(root));
    let bytes = if inside && real.is_file() { std::fs::read(real).ok()? } else { return None };
    Some(Hash::of(bytes))
}

/// Whether a declared file exists, and whether this task changed it.
fn output(root: &Path, files: &Path, path: &str, before: Option<Hash>) -> (Evidence, bool) {
    let changed = || before.is_none() || hash(root, files, path) != before;
    let (root, inner) = declared(root, files, path);
    let real = root.join(inner).canonicalize().ok();
    let inside = |real: &Path| root.canonicalize().is_ok_and(|root| real.starts_with(root));
    let size = real.filter(|real| inside(real)).and_then(|real| std::fs::metadata(real).ok());
    match size {
        None => (Evidence::fault(path, CheckFault::Missing), false),
        Some(meta) if meta.is_file() && meta.len() == 0 => (Evidence::fault(path, CheckFault::Empty), false),
        Some(meta) => {
            // A folder can exist, but that does not show that this task changed it.
            let changed = meta.is_file() && changed();
            let words = match (meta.is_dir(), changed) {
                (true, _) => "a folder".to_owned(),
                (false, true) => format!("{} bytes", meta.len()),
                (false, false) => format!("{} bytes, unchanged by this task", meta.len()),
            };
            (Evidence::new(path, true, words), changed)
        }
    }
}

impl Checker<'_> {
    /// Runs one check. Blocking.
    pub(crate) fn run(&self, line: &str, cancel: &CancellationToken) -> Evidence {
        let argv = match command::split(line) {
            Ok(argv) => argv,
            Err(error) => return Evidence::new(line, false, error.to_string()),
        };
        let refused = match self.owner {
            Some(owner) => leave::refused(owner, self.covered.iter().any(|known| known == line), &argv),
            None => Some("it was not run: its owner is no longer on the team".to_owned()),
        };
        if let Some(why) = refused {
            return Evidence::new(line, false, why);
        }
        match command::run(&argv, self.root, self.most(), Some(&self.sandbox()), cancel) {
            Err(error) => Evidence { code: not_started(&error), ..Evidence::new(line, false, error.to_string()) },
            Ok(ran) => Evidence { code: ran.code, ..outcome(line, &ran) },
        }
    }
}

impl Checker<'_> {
    /// The sandbox of its commands: on a machine that can protect nothing in a folder that they write, they write only what
    /// builds and tests make.
    fn sandbox(&self) -> CommandSandbox {
        let is_unshielded = self.owner.is_some_and(|owner| owner.unshielded);
        self.isolation.within(if is_unshielded { CommandReach::BuildFolders } else { CommandReach::Project })
    }
}

/// The exit code of shells for a program that could not be started.
fn not_started(error: &command::CommandError) -> Option<i32> {
    match error {
        command::CommandError::NotFound(_) => Some(127),
        command::CommandError::Denied(_) | command::CommandError::Interpreter(_) => Some(126),
        _ => None,
    }
}

/// The outcome of a check.
fn outcome(line: &str, ran: &command::CommandOutput) -> Evidence {
    if ran.ok() {
        // Models read it: equal outcomes have equal texts.
        return Evidence::new(line, true, "exit 0");
    }
    let output = tail(&ran.output);
    let how = match (ran.ended, ran.code) {
        (command::EndReason::TimedOut, _) => "took too long".to_owned(),
        (command::EndReason::Limit(limit), _) => format!("took too much ({})", limit.name()),
        (_, Some(code)) => return Evidence::fault(line, CheckFault::Exit { code, output: output.to_owned() }),
        (_, None) => "no exit code".to_owned(),
    };
    let said = if output.is_empty() { "it printed nothing" } else { output };
    Evidence::new(line, false, format!("{how}: {said}"))
}

/// The end of an output: where programs say what went wrong.
fn tail(output: &str) -> &str {
    let output = output.trim_end();
    let from = output.ceil_char_boundary(output.len().saturating_sub(EVIDENCE_BYTES_MAX));
    output.get(from..).unwrap_or(output)
}

fn diff(look: &Look<'_>, cancel: &CancellationToken) -> Option<Artifact> {
    let Checker { root, task, .. } = look.checker;
    let text = match look.changed {
        Some(review) => review.diff.text.clone(),
        None => diff_now(look.shared, root, task.owned(), look.before, look.sight, cancel)?,
    };
    (!text.is_empty()).then(|| code_diff(text))
}

pub(super) fn code_diff(content: String) -> Artifact {
    Artifact { name: CODE_DIFF.to_owned(), kind: ArtifactType::Text, content }
}

/// The changes in the project since a snapshot, or since the last commit if there is none, as far as they may be seen.
/// Blocking.
fn diff_now(
    shared: &Shared,
    root: &Path,
    owned: &[String],
    before: Option<Hash>,
    sight: &Visibility,
    cancel: &CancellationToken,
) -> Option<String> {
    let record = |step| record_tree_step(&shared.journal, step);
    let since = before.and_then(|before| shared.trees.diff(root, &before, owned, sight, cancel, &record));
    let found = since.map_or_else(|| git::diff_seen(root, owned, sight, cancel), |found| Ok(Some(found)));
    Some(found.ok()??.text)
}

/// Runs the project's tests. No project, no evidence; no tests, a report that says so.
fn test_report(look: &Look<'_>, cancel: &CancellationToken) -> Option<(Artifact, Option<Evidence>)> {
    let (root, most, isolation) = (look.checker.root, look.checker.most(), look.checker.sandbox());
    let projects = project::detect(root);
    let first = projects.first()?;
    // With coverage where the machine can; the tests count either way.
    let covered = test_runner::coverage(root, first, most, &isolation, cancel)
        .ok()
        .filter(|report| report.ok && report.coverage.is_some());
    let report = match covered.map_or_else(|| test_runner::run(root, first, None, most, &isolation, cancel), Ok) {
        Ok(report) => report,
        // A project without tests has no report; one whose tests cannot start has.
        Err(test_runner::TestError::NoTests(_)) => return None,
        Err(error) => {
            let what = "the project's tests";
            let evidence = Evidence::new(what, false, error.to_string());
            let artifact =
                Artifact { name: "test_report".to_owned(), kind: ArtifactType::Text, content: error.to_string() };
            return Some((artifact, Some(evidence)));
        }
    };
    // Without a report of the runner its exit code alone counts.
    let none = report.ok && report.counts.as_ref().is_some_and(|counts| !counts.is_any());
    let evidence = (!none).then(|| {
        let how = if report.ok { "exit code 0" } else { "failed" };
        let counts = report.counts.as_ref().map_or_else(|| how.to_owned(), ToString::to_string);
        let detail = if report.ok { counts } else { format!("{counts}: {}", tail(&report.output)) };
        Evidence::new(report.command.clone(), report.ok, detail)
    });
    let content = serde_json::to_string_pretty(&report.summary()).unwrap_or_default();
    Some((Artifact { name: "test_report".to_owned(), kind: ArtifactType::Json, content }, evidence))
}
