//! Tools of MCP servers.
//!
//! A [`Server`] stands for one configured server. Its tools are known from its last run, so a known server is started by the
//! first call of one of them; an unknown one is started before the first request of its agent. [`Servers`] holds all servers of
//! a process: entries with the same configuration share one connection. The protocol itself, in both of its eras, is `rmcp`'s.
//! The output of a server is untrusted: it is bounded and stripped of control characters. Of its claims about a tool only "read-only"
//! and "idempotent" are believed, because the user trusts the server.

mod clean;
mod connection;
mod connector;
mod elicitation;
mod http;
mod http_client;
mod http_fault;
mod known_tools;
mod last_error;
mod log;
mod login;
mod notice;
mod oauth_http;
mod process;
mod prompts;
mod result;
mod running;
mod running_call;
mod server;
mod server_end;
mod servers;
mod sign_in;
mod sse;
mod tool;

pub use connection::McpError;
pub use http_fault::HttpFault;
pub use known_tools::{KnownTool, KnownTools};
pub use last_error::last_error;
pub use log::log_file;
pub use login::{LoginState, log_out, login_state};
pub use max_team_sandbox::Limit as ProgramLimit;
pub use notice::{ServerNotice, Words};
pub use process::{Launch, RefusedGrant};
pub use prompts::KnownPrompt;
pub use running::{RunningServer, running_servers};
pub use server::{Server, ServerStatus};
pub use server_end::ServerEnd;
pub use servers::{ServerEntry, Servers};
pub use sign_in::{SignIn, SignInError};
