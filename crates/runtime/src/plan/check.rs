//! Looking at what a task left behind: code, not a model's word.
//!
//! Declared files must be there, declared commands must pass, and what a role always leaves (a diff, a test report) is
//! collected here. The verdict follows from what was seen: nothing declared and nothing seen is `unverified`. A file
//! proves nothing where a command of the task was interrupted by a crash: it may be half of what it should be.

use std::path::Path;
use std::time::Duration;

use max_team_core::folder::Folder;
use max_team_core::limits::{CHECK_MS_MAX, EVIDENCE_BYTES_MAX};
use max_team_core::plan::event::{Artifact, ArtifactType, Evidence, Proof};
use max_team_core::plan::{Findings, Task};
use max_team_core::policy::Sight;
use max_team_core::team::Settings;
use max_team_tools::command::Walls;
use max_team_tools::copy::Review;
use max_team_tools::{command, git, project, tests};
use tokio_util::sync::CancellationToken;

use super::leave;

/// The name of the artifact that holds a coder's changes.
pub(super) const CODE_DIFF: &str = "code_diff";

/// What a role leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// Changes in the project.
    Diff,
    /// A test report.
    Tests,
    /// A design, in words.
    Design,
    /// A report, in words.
    Report,
    /// An answer, in words.
    Words,
}

impl Leaves {
    /// What a role leaves, by the names people use for roles.
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
            Self::Report => "ops_report",
            Self::Diff | Self::Tests | Self::Words => "answer",
        }
    }
}

/// The environment of a task's check commands.
pub(crate) struct Checker<'a> {
    pub root: &'a Path,
    pub task: &'a Task,
    /// What its owner works under; `None`: the team has no such member any more.
    pub owner: Option<&'a Settings>,
    /// The risks that were approved with the plan.
    pub risks: &'a [String],
    /// The sandbox of the commands.
    pub walls: &'a Walls,
}

/// What is looked at, and what is known from before.
pub(crate) struct Look<'a> {
    pub checker: Checker<'a>,
    /// Where the session's own files lie.
    pub files: &'a Path,
    pub leaves: Leaves,
    /// What the owner said.
    pub output: &'a str,
    /// How the tree was when the task began.
    pub before: Option<&'a git::Snapshot>,
    /// What differs in the copy that it was done in, if it was.
    pub changed: Option<&'a Review>,
    /// What its owner may see: nothing else is handed on.
    pub sight: &'a Sight,
    /// Checks that passed before the task began.
    pub passed_before: &'a [String],
    /// Commands of the task whose outcome is unknown.
    pub unknown: &'a [String],
    /// Hashes of the declared files then.
    pub outputs_before: &'a [Option<max_team_core::hash::Hash>],
}

impl Checker<'_> {
    /// How long one check may take: no longer than the task itself.
    fn most(&self) -> Duration {
        Duration::from_millis(self.task.timeout_ms.unwrap_or(CHECK_MS_MAX).min(CHECK_MS_MAX))
    }
}

/// Whether the task has anything to check: a plain text answer has not, and a coder that changed nothing has no diff.
pub(crate) fn needs_a_look(task: &Task, leaves: Leaves, acted: bool) -> bool {
    let leaves_any = match leaves {
        Leaves::Diff => acted,
        Leaves::Tests => true,
        Leaves::Design | Leaves::Report | Leaves::Words => false,
    };
    !task.outputs.is_empty() || !task.verify.is_empty() || leaves_any
}

/// What the words alone amount to.
pub(crate) fn words(leaves: Leaves, output: &str) -> Findings {
    Findings { artifacts: vec![said(leaves, output)], ..Findings::default() }
}

fn said(leaves: Leaves, output: &str) -> Artifact {
    Artifact { name: leaves.words_name().to_owned(), kind: ArtifactType::Text, content: output.to_owned() }
}

/// Looks. Blocking.
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
        Leaves::Design | Leaves::Report | Leaves::Words => {}
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

/// Where a declared file lies: in the project, or among the session's own.
fn declared<'a>(root: &'a Path, files: &'a Path, path: &'a str) -> (&'a Path, &'a str) {
    match Folder::split(path) {
        Some((Folder::Files, rest)) => (files, rest),
        _ => (root, path),
    }
}

/// The hash of a declared file, `None` if it is not there.
pub(crate) fn hash(root: &Path, files: &Path, path: &str) -> Option<max_team_core::hash::Hash> {
    let (root, path) = declared(root, files, path);
    let real = root.join(path).canonicalize().ok()?;
    let inside = root.canonicalize().ok().is_some_and(|root| real.starts_with(root));
    let bytes = if inside && real.is_file() { std::fs::read(real).ok()? } else { return None };
    Some(max_team_core::hash::Hash::of(bytes))
}

/// Whether a declared file is there, and whether this task had a hand in it.
fn output(root: &Path, files: &Path, path: &str, before: Option<max_team_core::hash::Hash>) -> (Evidence, bool) {
    let changed = || before.is_none() || hash(root, files, path) != before;
    let (root, inner) = declared(root, files, path);
    let real = root.join(inner).canonicalize().ok();
    let inside = |real: &Path| root.canonicalize().is_ok_and(|root| real.starts_with(root));
    let size = real.filter(|real| inside(real)).and_then(|real| std::fs::metadata(real).ok());
    let evidence = |ok, detail: String| Evidence::new(path, ok, detail);
    match size {
        None => (evidence(false, "the file does not exist".to_owned()), false),
        Some(meta) if meta.is_file() && meta.len() == 0 => (evidence(false, "the file is empty".to_owned()), false),
        Some(meta) => {
            // A folder can be there, but that says nothing about who had a hand in it.
            let changed = meta.is_file() && changed();
            let words = match (meta.is_dir(), changed) {
                (true, _) => "a folder".to_owned(),
                (false, true) => format!("{} bytes", meta.len()),
                (false, false) => format!("{} bytes, unchanged by this task", meta.len()),
            };
            (evidence(true, words), changed)
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
            Some(owner) => leave::refused(owner, self.risks, &self.task.id, line, &argv),
            None => Some("it was not run: its owner is no longer on the team".to_owned()),
        };
        if let Some(why) = refused {
            return Evidence::new(line, false, why);
        }
        match command::run(&argv, self.root, self.most(), Some(self.walls), cancel) {
            Err(error) => Evidence { code: not_started(&error), ..Evidence::new(line, false, error.to_string()) },
            Ok(ran) => Evidence { code: ran.code, ..Evidence::new(line, ran.ok(), told(&ran)) },
        }
    }
}

/// The exit code by which shells tell that a program could not be started.
fn not_started(error: &command::CommandError) -> Option<i32> {
    match error {
        command::CommandError::NotFound(_) => Some(127),
        command::CommandError::Denied(_) | command::CommandError::Interpreter(_) => Some(126),
        _ => None,
    }
}

/// The outcome of a check, in words.
fn told(ran: &command::Ran) -> String {
    if ran.ok() {
        return format!("exit 0 after {} ms", ran.ms);
    }
    let code = ran.code.map_or_else(|| "no exit code".to_owned(), |code| format!("exit {code}"));
    let how = match ran.ended {
        command::Ended::TimedOut => "took too long".to_owned(),
        command::Ended::Limit(limit) => format!("took too much ({})", limit.name()),
        command::Ended::Exited | command::Ended::Cancelled => code,
    };
    let said = Some(tail(&ran.output)).filter(|said| !said.is_empty()).unwrap_or("it printed nothing");
    format!("{how}: {said}")
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
        None => diff_now(root, task.owned(), look.before, look.sight, cancel)?,
    };
    (!text.is_empty()).then(|| code_diff(text))
}

pub(super) fn code_diff(content: String) -> Artifact {
    Artifact { name: CODE_DIFF.to_owned(), kind: ArtifactType::Text, content }
}

/// What differs in the project since a snapshot, as far as it may be seen. Blocking.
pub(super) fn diff_now(
    root: &Path,
    owned: &[String],
    before: Option<&git::Snapshot>,
    sight: &Sight,
    cancel: &CancellationToken,
) -> Option<String> {
    let found = match before {
        Some(before) => git::diff_since_seen(root, before, owned, sight, cancel),
        None => git::diff_seen(root, owned, sight, cancel),
    };
    Some(found.ok()??.text)
}

/// Runs the project's tests. No project, no evidence; no tests, a report that says so.
fn test_report(look: &Look<'_>, cancel: &CancellationToken) -> Option<(Artifact, Option<Evidence>)> {
    let (root, most, walls) = (look.checker.root, look.checker.most(), look.checker.walls);
    let projects = project::detect(root);
    let first = projects.first()?;
    // With coverage where the machine can; the tests count either way.
    let covered =
        tests::coverage(root, first, most, walls, cancel).ok().filter(|report| report.ok && report.passed > 0);
    let report = match covered.map_or_else(|| tests::run(root, first, None, most, walls, cancel), Ok) {
        Ok(report) => report,
        // A project without tests has nothing to show; one whose tests cannot start has.
        Err(tests::TestError::NoTests(_)) => return None,
        Err(error) => {
            let what = "the project's tests";
            let evidence = Evidence::new(what, false, error.to_string());
            let artifact =
                Artifact { name: "test_report".to_owned(), kind: ArtifactType::Text, content: error.to_string() };
            return Some((artifact, Some(evidence)));
        }
    };
    let none = report.ok && report.passed + report.failed == 0;
    let counts = format!("{} passed, {} failed, {} skipped", report.passed, report.failed, report.skipped);
    let evidence = (!none).then(|| {
        let detail = if report.ok { counts } else { format!("{counts}: {}", tail(&report.output)) };
        Evidence::new(report.command.clone(), report.ok, detail)
    });
    let content = serde_json::to_string_pretty(&report.summary()).unwrap_or_default();
    Some((Artifact { name: "test_report".to_owned(), kind: ArtifactType::Json, content }, evidence))
}
