//! The tools an agent may use, and the registry that checks what a model asks of them.
//!
//! A tool says first what a call *would* do ([`Tool::action`], which the policy judges) and does it later
//! ([`Tool::call`]), bound to what was judged. Everything but a [`RemoteTool`] is blocking and runs on a blocking
//! thread of the caller; nothing here asks, approves, journals or prints. Files are reached only through [`Root`];
//! programs are run only through [`command`], without a shell.

mod agent_store;
pub mod aliases;
mod browser;
pub mod command;
pub mod document;
mod file_name;
mod files;
pub mod git;
mod json_get;
mod logs;
mod metrics;
mod network;
mod output_store;
mod policy_check;
mod progress;
pub mod project;
mod registry;
mod remote;
mod repair;
pub mod rewind;
mod search;
mod services;
pub mod shell;
mod source;
mod structured;
pub mod test_runner;
mod text;
mod time_parse;
mod time_zone;
mod tool;
mod tool_query;
mod typed;
mod web;
pub mod worktree;

pub use agent_store::{AgentStore, DirUsage, StoredFile};
pub use browser::{AgentBrowser, BrowserInput, Browsers, ChromiumRenderer, find_chromium};
pub use files::{EditFile, ListDir, ReadFile, Root, WriteFile, diff, mentioned, outline, paths};
pub use logs::QueryLog;
pub use metrics::QueryMetrics;
pub use network::{HostAnswer, HostQuestion, HostRules, late_answer};
pub use output_store::OutputStore;
pub use policy_check::PolicyCheck;
pub use progress::Progress;
pub use registry::{COMPANIONS, Handler, Prepared, Registry, RegistryError};
pub use remote::{RemoteCalls, RemoteFuture, RemoteTool, run_remote};
pub use search::SearchCode;
pub use services::Services;
pub use source::{Preparation, Reading, ToolSource, ToolSources};
pub use structured::{SchemaError, Structured};
pub use time_zone::{now, set_time_zone, time_zone};
pub use tool::{Output, Spec, Tool, ToolContext, ToolError};
pub use typed::Typed;
pub use web::{
    AddressFlaw, BodyFlaw, Geocode, PageAnswer, PageNote, PageQuery, PageRenderer, PrivateAddress, RecordedPages,
    RedirectFlaw, RenderFuture, RenderMode, RenderedPage, SearchAddressFlaw, SearchKey, SearchProvider, SearchService,
    WebFault, WebFetch, WebSearch, fetch_page, http_client,
};
