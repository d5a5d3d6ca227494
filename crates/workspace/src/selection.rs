//! The choice of agent, team and rules for one session, as flags or a frontend state it.

use std::path::PathBuf;

use max_team_core::plan::event::ApprovalMode;

/// The agent or the team of a session, with the files and rules that were named for it.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// The skill that one agent carries out alone.
    pub skill: Option<String>,
    /// One agent with all tools instead of the team.
    pub solo: bool,
    /// One agent by name instead of the team.
    pub agent: Option<String>,
    /// A file that defines the team, or definitions that join it.
    pub agents: Option<PathBuf>,
    /// A settings file instead of the project's own.
    pub config: Option<PathBuf>,
    /// A model was named: definitions do not change it.
    pub model_is_named: bool,
    /// Rules for actions that run without a question.
    pub allowed_tools: Vec<String>,
    /// Rules for actions that never run.
    pub disallowed_tools: Vec<String>,
    /// Lists of MCP servers: files, or JSON.
    pub mcp_config: Vec<String>,
    /// No other MCP servers than those.
    pub strict_mcp_config: bool,
    /// The lead only coordinates.
    pub coordinator: bool,
    /// When a person is asked about plans.
    pub approve: Option<ApprovalMode>,
    /// Tasks of a plan that may run at once.
    pub max_parallel: Option<u32>,
    /// The answer follows a JSON Schema.
    pub structured: bool,
}
