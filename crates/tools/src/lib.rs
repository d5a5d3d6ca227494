//! The tools an agent may use, and the registry that checks what a model asks of them.
//!
//! A tool says first what a call *would* do ([`Tool::action`], which the policy judges) and does it later
//! ([`Tool::call`]), bound to what was judged. Everything but a [`RemoteTool`] is blocking and runs on a blocking
//! thread of the caller; nothing here asks, approves, journals or prints. Files are reached only through [`Root`];
//! programs are run only through [`command`], without a shell.

pub mod command;
pub mod copy;
pub mod document;
mod files;
mod gate;
pub mod git;
mod logs;
mod mend;
mod metrics;
pub mod names;
mod progress;
pub mod project;
mod query;
mod reach;
mod registry;
mod remote;
pub mod rewind;
mod search;
mod service;
mod shelf;
pub mod shell;
mod source;
mod store;
mod structured;
pub mod tests;
mod text;
mod tool;
mod typed;
mod web;
mod when;
mod zone;

pub use files::{EditFile, ListDir, ReadFile, Root, WriteFile, diff, mentioned, outline, paths};
pub use gate::Gate;
pub use logs::QueryLog;
pub use metrics::QueryMetrics;
pub use progress::Progress;
pub use reach::Reach;
pub use registry::{COMPANIONS, Handler, Prepared, Registry, RegistryError};
pub use remote::{RemoteCalls, RemoteFuture, RemoteTool, run_remote};
pub use search::SearchCode;
pub use shelf::Shelf;
pub use source::ToolSource;
pub use store::{Held, Kept, Store};
pub use structured::{SchemaError, Structured};
pub use tool::{Cx, Output, Spec, Tool, ToolError};
pub use typed::Typed;
pub use web::{Geocode, HttpGet};
pub use zone::{live_in, now, zone};
