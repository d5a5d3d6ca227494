//! What a frontend needs to open a session: settings, agent definitions, team and plan files, permissions, models, skills, and the
//! interface's phrases in both languages.
//!
//! This turns a folder, a principal and flags into what the runtime takes. It starts no agent.

pub mod agents;
pub mod config;
pub mod copies;
pub mod exit;
pub mod figures;
pub mod i18n;
pub mod keys;
pub mod models;
pub mod named;
pub mod open;
pub mod permissions;
pub mod plan_drawing;
pub mod plan_file;
pub mod selection;
pub mod setup;
pub mod skills;
pub mod team;
pub mod team_file;
