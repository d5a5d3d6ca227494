//! Everything that is not talking: one file per noun.

pub(crate) mod agents;
pub(crate) mod answer;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod cache;
pub(crate) mod compare;
pub(crate) mod config;
mod context;
pub(crate) mod cost;
pub(crate) mod doctor;
pub(crate) mod fetch;
pub(crate) mod files;
pub(crate) mod inbox;
pub(crate) mod mail;
pub(crate) mod man;
pub(crate) mod mcp;
mod mcp_client;
mod mcp_login;
pub(crate) mod memory;
pub(crate) mod models;
pub(crate) mod permissions;
pub(crate) mod plan;
pub(crate) mod plans;
pub(crate) mod ps;
pub(crate) mod replay;
pub(crate) mod rewind;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod skills;
pub(crate) mod stop;
pub(crate) mod stream;
pub(crate) mod strict;
pub(crate) mod table;
pub(crate) mod tasks;
pub(crate) mod team;
pub(crate) mod tools;
pub(crate) mod trace;
pub(crate) mod worktrees;

use std::io::Write;

use max_team_core::secret::redact;

use max_team_workspace::exit::{CliError, Exit};

pub(crate) use max_team_workspace::format::short;
pub(crate) use stream::line::last_lines;

/// Prints data, without secrets; a reader that went away (`| head`) is no failure.
pub(crate) fn print(text: &str) -> Result<(), CliError> {
    print_bytes(redact(text).as_bytes())
}

/// The same of what need not be a text.
fn print_bytes(bytes: &[u8]) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(CliError::said(Exit::Failed, |lang| lang.stdout_unwritable(lang.io_fault(&error))))
        }
        _ => Ok(()),
    }
}
