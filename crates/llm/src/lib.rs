//! Talking to models: wire formats, one attempt at a call, catalogue, rate limits, cost, recorded models.
//!
//! The agent's loop asks a [`Router`] for a [`Wire`] (how one model is spoken to), keeps a [`Transcript`] bound to
//! it, and makes each call with [`Router::call`]. A call is exactly one attempt with a typed end; whether and when to
//! try again is decided in `core::recovery`, and nothing here sleeps to retry, journals, or reads the environment.
//!
//! ```text
//! Catalog ─→ Endpoint ─→ Router ─→ Wire ─→ Transcript ─→ Request ─→ Router::call ─→ Answer | CallError
//! ```

mod body;
mod call;
mod catalog;
mod client;
mod dialect;
mod endpoint;
mod failure;
mod http;
mod idle_timeout;
mod json;
mod nano_dollars;
mod rate_limit;
mod replay;
mod router;
mod sse;
mod tool;
mod transcript;
mod wire;
mod yaml;

pub use body::Body;
pub use call::{CallError, Delta};
pub use catalog::{Catalog, CatalogError, ProviderRow};
pub use client::{Client, Options};
pub use dialect::Dialect;
pub use endpoint::{BadEndpoint, Endpoint, KeyStyle};
pub use nano_dollars::nano_dollars;
pub use replay::{BadRecording, Replay};
pub use router::Router;
pub use tool::ToolSpec;
pub use transcript::{Head, RequestOptions, Transcript};
pub use wire::{Request, Thinking, Wire};
