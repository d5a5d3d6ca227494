//! A plan as the lead wrote it in a tool call, a person in a file, or a frontend after an edit.
//!
//! A draft is unchecked data; [`super::Graph`] is its checked form. Field names of design documents and other tools
//! are accepted as aliases when reading.

use serde::{Deserialize, Serialize};

use crate::agent::Isolation;
use crate::limits::TASK_RETRIES_MAX_DEFAULT;
use crate::packages::PackageManager;

/// A plan, unchecked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Draft {
    /// The purpose of the plan.
    #[serde(default)]
    pub goal: String,
    /// Limits for the plan as a whole.
    #[serde(default, skip_serializing_if = "Budget::is_empty")]
    pub budget: Budget,
    /// Tasks that may run at once, if this plan wants fewer than the settings allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
    /// The tasks, in the order they were written.
    #[serde(default)]
    pub tasks: Vec<TaskDraft>,
    /// Points at which a person is asked again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gate>,
}

/// Limits for some work; `None` means no limit at this level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Budget {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nano: Option<u64>,
    /// Tokens, in and out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Milliseconds on the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
}

impl Budget {
    /// The budget after this many grants: each adds the original amount again.
    pub(super) fn granted(self, grants: u64) -> Self {
        let all = |amount: Option<u64>| amount.map(|amount| amount.saturating_mul(grants.saturating_add(1)));
        Self { nano: all(self.nano), tokens: all(self.tokens), ..self }
    }

    /// Whether it limits nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One task, unchecked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskDraft {
    /// Its name in this plan.
    #[serde(default)]
    pub id: String,
    /// A short title.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// What to do: all that its owner is told besides the results it builds on.
    #[serde(default, alias = "do", alias = "prompt")]
    pub description: String,
    /// The member that does it.
    #[serde(default, alias = "agent_name", alias = "owner")]
    pub agent: String,
    /// Tasks whose results it builds on.
    #[serde(default, alias = "depends_on", alias = "blocked_by", skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// `impl.ok` or `impl.failed`: the task runs only if task `impl` ended so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Path globs that no other task may change meanwhile. `None`: no restriction; an empty list: the task changes no
    /// file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owns: Option<Vec<String>>,
    /// Files that must exist afterwards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
    /// Commands that must pass afterwards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verify: Vec<String>,
    /// The package managers with which it installs: an approval of the plan opens their registries to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub installs: Vec<PackageManager>,
    /// Retries after a failure.
    #[serde(default = "retries_default", alias = "max_retries")]
    pub retry: u32,
    /// Milliseconds until it times out, if not the owner's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What it may use.
    #[serde(default, skip_serializing_if = "Budget::is_empty")]
    pub budget: Budget,
    /// Its model, if not the owner's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The user excluded it; tasks that build on it continue without its results.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip: bool,
    /// Whether it is done in a worktree, which is merged after its checks have passed.
    #[serde(default, skip_serializing_if = "Isolation::is_none")]
    pub isolation: Isolation,
}

fn retries_default() -> u32 {
    TASK_RETRIES_MAX_DEFAULT
}

impl Default for TaskDraft {
    fn default() -> Self {
        Self {
            id: String::new(),
            title: String::new(),
            description: String::new(),
            agent: String::new(),
            needs: Vec::new(),
            when: None,
            owns: None,
            outputs: Vec::new(),
            verify: Vec::new(),
            installs: Vec::new(),
            retry: TASK_RETRIES_MAX_DEFAULT,
            timeout_ms: None,
            budget: Budget::default(),
            model: None,
            skip: false,
            isolation: Isolation::None,
        }
    }
}

impl TaskDraft {
    /// Whether it leaves nothing but its owner's answer: no files, no checks, no worktree.
    pub fn leaves_only_words(&self) -> bool {
        let Self { outputs, verify, isolation, .. } = self;
        self.owned().is_empty() && outputs.is_empty() && verify.is_empty() && isolation.is_none()
    }

    /// The path globs that it claims.
    pub fn owned(&self) -> &[String] {
        self.owns.as_deref().unwrap_or_default()
    }

    /// Its title, or the first line of its description.
    pub fn caption(&self) -> &str {
        let first = || self.description.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or(&self.id);
        if self.title.trim().is_empty() { first() } else { self.title.trim() }
    }
}

/// A point at which a person is asked again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// The task that does not start before the person has approved.
    pub before: String,
    /// Who is asked.
    #[serde(default = "owner")]
    pub ask: String,
}

fn owner() -> String {
    "owner".to_owned()
}

/// The condition behind a `when`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenCondition {
    /// The other task succeeded.
    Ok,
    /// The other task failed for good.
    Failed,
}

impl TaskDraft {
    /// The task and the outcome that its `when` names; `Err` with the text if it cannot be read.
    pub fn condition(&self) -> Result<Option<(&str, WhenCondition)>, &str> {
        let Some(when) = self.when.as_deref().map(str::trim).filter(|when| !when.is_empty()) else { return Ok(None) };
        match when.rsplit_once('.') {
            Some((task, "ok" | "done" | "succeeded" | "success")) => Ok(Some((task.trim(), WhenCondition::Ok))),
            Some((task, "failed" | "fail" | "error")) => Ok(Some((task.trim(), WhenCondition::Failed))),
            _ => Err(when),
        }
    }
}
