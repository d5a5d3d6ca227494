//! What a frontend needs to open a session: settings, agent definitions, team and plan files, permissions, models, skills, and the
//! interface's phrases in both languages.
//!
//! This turns a folder, a principal and flags into what the runtime takes. It starts no agent.

pub mod agents;
pub mod api_keys;
pub mod config;
pub mod exit;
pub mod fork;
pub mod format;
pub mod found_backups;
pub mod i18n;
pub mod input_file;
pub mod mcp;
pub mod models;
pub mod open;
pub mod permissions;
pub mod plan_diagram;
pub mod plan_file;
pub mod plan_view;
mod search_service;
pub mod selection;
pub mod setup;
pub mod skills;
pub mod team;
pub mod team_file;
