//! The team: what defines an agent, and the settings it works under.
//!
//! A definition is data (from a file, a flag or the built-in set); the settings are resolved once from the
//! configuration, the flags and the model catalogue. Both are journalled, so a run can be understood without today's
//! files.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ledger::Price;
use crate::limits::{COMPACT_AT_PERCENT, RETRIES_MAX_DEFAULT, ROUNDS_MAX_DEFAULT};
use crate::mcp::McpServer;
use crate::policy::{Mode, Permissions, Rules};

/// A model, resolved against the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// The provider's row in the catalogue.
    pub provider: String,
    /// The model's name as the provider knows it.
    pub name: String,
    /// Tokens that fit its window.
    pub context_tokens: u64,
    /// Tokens that one answer may have.
    pub max_tokens: u32,
    /// Tokens for thinking; 0 turns thinking off.
    #[serde(default)]
    pub thinking_tokens: u32,
    /// Its price; `None` if unknown.
    pub price: Option<Price>,
}

/// The settings that an agent works under.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The model that answers.
    pub model: Model,
    /// The model that takes over when the first cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Model>,
    /// Its permission mode.
    pub mode: Mode,
    /// The modes of the agents that it works for: it is never freer than they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub within: Vec<Mode>,
    /// What settings files and flags allow, ask about and deny.
    #[serde(default, skip_serializing_if = "Permissions::is_empty")]
    pub permissions: Permissions,
    /// Model rounds per turn.
    pub rounds_max: u32,
    /// Retries per model call.
    pub retries_max: u32,
    /// The cap on money, in nano-dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_nano: Option<u64>,
    /// The cap on tokens, in and out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<u64>,
    /// Whether the turn must end in the `structured_output` tool.
    #[serde(default)]
    pub structured: bool,
    /// What it may never do, even with an approval.
    #[serde(default, skip_serializing_if = "Constraints::is_empty")]
    pub constraints: Constraints,
    /// Whether its work belongs to an approved plan.
    #[serde(default)]
    pub approved: bool,
    /// Whether it corrects its work for an approved plan: it may change the files that its task owns, and nothing
    /// more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub corrects: bool,
    /// Globs of the paths that its task owns; `None`: no restriction, an empty list: it owns nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owns: Option<Vec<String>>,
    /// The approved checks of its task: it may run exactly these without a question, even outside `allowed_commands`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Vec<String>>,
    /// The registries that the approval of its plan opens to its commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registries: Vec<String>,
    /// The project's own test commands: they need no question, and `allowed_commands` holds for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<Vec<String>>,
    /// Whether its commands run in a sandbox in which one of unknown effect can change nothing and reach no host.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sandboxed: bool,
    /// Whether this sandbox can protect no file in a folder that a command writes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unshielded: bool,
    /// When a conversation is compacted, and by which model.
    #[serde(default)]
    pub compaction: Compaction,
    /// How long one turn of a lead may work; unlike `constraints.timeout_ms` it does not limit the agents that it
    /// calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_ms: Option<u64>,
}

/// When a conversation is compacted, and by which model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    /// Share of the window in percent at which it is compacted; `0`: only when the user asks.
    pub at_percent: u64,
    /// The model that writes the summary; `None` for the agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
}

impl Default for Compaction {
    fn default() -> Self {
        Self { at_percent: COMPACT_AT_PERCENT, model: None }
    }
}

impl Settings {
    /// The usual settings for a model.
    pub fn new(model: Model) -> Self {
        Self {
            model,
            fallback: None,
            mode: Mode::Default,
            within: Vec::new(),
            permissions: Permissions::default(),
            rounds_max: ROUNDS_MAX_DEFAULT,
            retries_max: RETRIES_MAX_DEFAULT,
            budget_nano: None,
            budget_tokens: None,
            structured: false,
            constraints: Constraints::default(),
            approved: false,
            corrects: false,
            owns: None,
            checks: Vec::new(),
            registries: Vec::new(),
            tests: Vec::new(),
            sandboxed: false,
            unshielded: false,
            compaction: Compaction::default(),
            turn_ms: None,
        }
    }

    /// The rules that actions are judged by, without any grants.
    pub fn rules(&self) -> Rules<'_> {
        Rules {
            within: &self.within,
            permissions: &self.permissions,
            approved: self.approved,
            corrects: self.corrects,
            owns: self.owns.as_deref(),
            checks: &self.checks,
            registries: &self.registries,
            tests: &self.tests,
            sandboxed: self.sandboxed,
            unshielded: self.unshielded,
            ..Rules::new(self.mode, &self.constraints)
        }
    }

    /// These settings limited by a member's constraints, which also limit the tokens of one answer.
    #[must_use]
    pub fn limited_by(mut self, constraints: &Constraints) -> Self {
        if let Some(most) = constraints.max_tokens {
            for model in std::iter::once(&mut self.model).chain(&mut self.fallback) {
                model.max_tokens = model.max_tokens.min(most);
                // Thinking counts as output, and must leave room for the answer.
                if model.thinking_tokens >= model.max_tokens {
                    model.thinking_tokens = 0;
                }
            }
        }
        self.constraints = constraints.clone();
        self
    }
}

impl Settings {
    /// These settings limited by a lead's constraints. Its time does not run while it waits for agents that it has
    /// called, so its timeout limits its own turns and not theirs.
    #[must_use]
    pub fn limited_as_lead(self, constraints: &Constraints) -> Self {
        let own = Constraints { timeout_ms: None, ..constraints.clone() };
        Self { turn_ms: constraints.timeout_ms, ..self.limited_by(&own) }
    }

    /// How long one turn may work, for an agent that the user talks to.
    pub fn turn_limit_ms(&self) -> Option<u64> {
        self.turn_ms.into_iter().chain(self.constraints.timeout_ms).min()
    }
}

/// What a member may never do. They are absolute: no mode, grant or plan loosens them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Constraints {
    /// The folders it sees, relative to the root; `None` or `.`: everything, an empty list: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_dirs: Option<Vec<String>>,
    /// Globs of names that it neither sees nor touches, in upper or lower case.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_patterns: Vec<String>,
    /// Globs of the files it may change; `None`: all that it sees, an empty list: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_patterns: Option<Vec<String>>,
    /// Write patterns of the agents that it works for: each list must match a file that it changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write_within: Vec<Vec<String>>,
    /// Whether it changes nothing: neither its tools nor its commands can write anything.
    #[serde(skip_serializing_if = "is_false")]
    pub read_only: bool,
    /// The commands it may run, each by its first words; `None`: no limit here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_commands: Option<Vec<String>>,
    /// Whether that list came with the project: then it only restricts, and is not taken as a permission.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub foreign_commands: bool,
    /// Hosts it may fetch from without asking; `*.example.org` is everything below that name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_hosts: Vec<String>,
    /// Tokens that one answer may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// How long it may work on one task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl Constraints {
    /// Whether they constrain nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A member of the team: its definition, model and constraints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its name, role, prompt and tools.
    pub definition: Definition,
    /// The model it asks for; `None`: the session's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Servers of further tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp_servers: Vec<McpServer>,
    /// What it may never do, even with an approval.
    #[serde(default, skip_serializing_if = "Constraints::is_empty")]
    pub constraints: Constraints,
}

/// What defines an agent, independent of the file or flag it was read from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Definition {
    /// The name that others use.
    pub name: String,
    /// What it does.
    pub role: String,
    /// The first part of its system text.
    pub prompt: String,
    /// The tools it may use.
    pub tools: Vec<String>,
    /// Sources of further tools (MCP servers) that it may use: by name, one tool of them as `NAME/TOOL`, or all of the session
    /// as [`ALL_SOURCES`]. What a source offers may change between turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// Tools that its requests do not describe, some by a pattern that ends in `*`; a call by name works.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden_tools: Vec<String>,
    /// What it can be called for; empty if the definition does not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Its place in a team.
    #[serde(default, skip_serializing_if = "TeamRole::is_member")]
    pub place: TeamRole,
    /// Whether it is built in; no file can claim this.
    #[serde(default, skip_serializing_if = "is_false")]
    pub builtin: bool,
    /// Whether it is built in or defined by the user's own file; a project's file cannot claim this.
    #[serde(default, skip_serializing_if = "is_false")]
    pub trusted: bool,
    /// Tools that it never has, even if another list names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disallowed_tools: Vec<String>,
    /// The agents that it may call; `None`: no limit here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_call: Option<Vec<String>>,
    /// Skills whose whole text is in its prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
    /// Whether it works in a worktree.
    #[serde(default, skip_serializing_if = "Isolation::is_none")]
    pub isolation: Isolation,
    /// Whether its caller continues without waiting.
    #[serde(default, skip_serializing_if = "is_false")]
    pub background: bool,
    /// How long its answers may be reused, and for which calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CachePolicy>,
    /// Its color on screen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// Whether it has every tool that a called agent may have, because its definition lists none; `tools` is then
    /// empty.
    #[serde(default, skip_serializing_if = "is_false")]
    pub inherits_tools: bool,
    /// Its permission mode. It applies if it is stricter than the caller's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// How it works on a task.
    #[serde(flatten)]
    pub work: WorkSettings,
}

/// In [`Definition::sources`]: every source that belongs to the session and not to one agent.
pub const ALL_SOURCES: &str = "*";
/// Between the name of an agent and that of a source that only this agent has.
const OWNER_MARK: char = ':';

impl Definition {
    /// Its sources. An agent without a list of tools has all of the session.
    pub fn own_sources(&self) -> Vec<String> {
        let all = self.inherits_tools.then(|| ALL_SOURCES.to_owned());
        self.sources.iter().cloned().chain(all).collect()
    }
}

/// The name of a source that only one agent has.
pub fn owned_source(agent: &str, server: &str) -> String {
    format!("{agent}{OWNER_MARK}{server}")
}

/// Whether an agent that has `own` has `other`, too.
pub fn source_covers(own: &str, other: &str) -> bool {
    let whole = other.split_once('/').map_or(other, |(name, _)| name);
    own == other || own == whole || (own == ALL_SOURCES && !other.contains(OWNER_MARK))
}

/// How an agent works on a task. A stored definition has these fields beside the others.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WorkSettings {
    /// Model rounds per call; `None`: the caller's limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds_max: Option<u32>,
    /// How much its model thinks; `None`: as its caller's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Where it keeps its notes; `None`: nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<NotesScope>,
    /// The first message when the user talks to it directly; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub initial_prompt: String,
    /// What one call of it may use, within its caller's budget.
    #[serde(default, skip_serializing_if = "AgentBudget::is_empty")]
    pub budget: AgentBudget,
    /// Globs of the paths that it owns; `None`: no restriction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owns: Option<Vec<String>>,
    /// The JSON Schema of its answer; `None`: it answers with text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// The place of an agent in a team.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TeamRole {
    /// Talks to the user.
    Lead,
    /// Owns tasks of plans, and can be called.
    #[default]
    Member,
    /// Answers calls, and owns no tasks.
    Expert,
}

impl TeamRole {
    fn is_member(&self) -> bool {
        *self == Self::Member
    }
}

/// Where an agent's changes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// Into the project.
    #[default]
    None,
    /// Into its own worktree, until the user accepts them.
    Worktree,
}

impl Isolation {
    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// How much a model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    Low,
    Medium,
    High,
    Xhigh,
    /// As much as it can.
    Max,
    /// With this many tokens.
    Tokens(u32),
}

impl Effort {
    /// Every level with its name.
    pub const NAMES: [(&str, Effort); 5] = [
        ("low", Effort::Low),
        ("medium", Effort::Medium),
        ("high", Effort::High),
        ("xhigh", Effort::Xhigh),
        ("max", Effort::Max),
    ];

    /// The tokens that a model may think with.
    pub fn tokens(self) -> u32 {
        match self {
            Self::Low => 0,
            Self::Medium => 4_096,
            Self::High => 10_000,
            Self::Xhigh => 20_000,
            Self::Max => 31_999,
            Self::Tokens(tokens) => tokens,
        }
    }
}

/// Where an agent keeps its notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotesScope {
    /// In the user's folder, for all projects.
    User,
    /// In the project, for everyone who works on it.
    Project,
    /// In the project, for this user only.
    Local,
}

impl NotesScope {
    /// All variants with their names.
    pub const NAMES: [(&str, NotesScope); 3] =
        [("user", NotesScope::User), ("project", NotesScope::Project), ("local", NotesScope::Local)];
}

/// What one call of an agent may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentBudget {
    /// Money, in nano-dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nano: Option<u64>,
    /// Tokens, in and out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Milliseconds on the clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
}

impl AgentBudget {
    /// Whether it bounds nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How long an expert's answers may be reused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachePolicy {
    /// Seconds for which an answer may be reused.
    pub ttl_s: u64,
    /// The arguments that are part of the cache key; empty for all.
    pub keys: Vec<String>,
}

impl Definition {
    /// Its mode in a session of this mode: its own if that is stricter.
    pub fn mode_in(&self, session: Mode) -> Mode {
        self.mode.filter(|own| own.is_stricter(session)).unwrap_or(session)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Settings of a small model under constraints.
    pub(crate) fn settings(constraints: &Constraints) -> Settings {
        let (provider, name) = ("p".into(), "m".into());
        let model = Model { provider, name, context_tokens: 1_000, max_tokens: 100, thinking_tokens: 0, price: None };
        Settings::new(model).limited_by(constraints)
    }

    /// Settings as they were journalled before members had constraints.
    const OLD: &str = r#"{"model":{"provider":"anthropic","name":"m","context_tokens":200000,"max_tokens":8192,
        "thinking_tokens":0,"price":null},"mode":"acceptEdits","rounds_max":20,"retries_max":3,"structured":false}"#;

    #[test]
    fn old_settings_still_open() {
        let old: Settings = serde_json::from_str(OLD).unwrap();
        let want = Settings { mode: Mode::AcceptEdits, ..Settings::new(old.model.clone()) };
        assert_eq!(old, want);
        assert!(old.constraints.is_empty() && !old.approved && old.owns.is_none());
    }

    #[test]
    fn settings_survive_the_journal() {
        let constraints = Constraints {
            blocked_patterns: vec!["*.env".into()],
            allowed_commands: Some(Vec::new()),
            timeout_ms: Some(1),
            ..Constraints::default()
        };
        let old: Settings = serde_json::from_str(OLD).unwrap();
        let settings = Settings { approved: true, owns: Some(vec!["src/**".into()]), ..old }.limited_by(&constraints);
        let text = serde_json::to_string(&settings).unwrap();
        assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), settings);
        assert_eq!(
            serde_json::to_string(&constraints).unwrap(),
            r#"{"blocked_patterns":["*.env"],"allowed_commands":[],"timeout_ms":1}"#
        );
    }

    #[test]
    fn constraints_bound_an_answer_and_its_thoughts() {
        let mut settings: Settings = serde_json::from_str(OLD).unwrap();
        settings.model.thinking_tokens = 4_096;
        settings.fallback = Some(Model { max_tokens: 500, ..settings.model.clone() });
        let settings = settings.limited_by(&Constraints { max_tokens: Some(1_000), ..Constraints::default() });
        let fallback = settings.fallback.unwrap();
        assert_eq!((settings.model.max_tokens, settings.model.thinking_tokens), (1_000, 0));
        assert_eq!((fallback.max_tokens, fallback.thinking_tokens), (500, 0));
    }

    #[test]
    fn a_definition_only_makes_its_agent_less_free() {
        for (own, session, want) in [
            (None, Mode::AcceptEdits, Mode::AcceptEdits),
            (Some(Mode::Plan), Mode::AcceptEdits, Mode::Plan),
            (Some(Mode::Plan), Mode::BypassPermissions, Mode::Plan),
            (Some(Mode::BypassPermissions), Mode::Default, Mode::Default),
            (Some(Mode::Default), Mode::Plan, Mode::Plan),
        ] {
            assert_eq!(Definition { mode: own, ..Definition::default() }.mode_in(session), want, "{own:?} {session:?}");
        }
    }
}
