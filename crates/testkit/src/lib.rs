//! A scripted model server, so that whole-program tests need no mocks inside the product.
//!
//! A test writes a [`Script`] of [`Reply`]s, starts a [`ModelServer`] and points the product at its URL. The same
//! reply is rendered as Anthropic Messages or as OpenAI chat completions, whichever endpoint is asked, streamed or
//! whole. Replies can also fail the way providers and networks fail, and [`Gate`]s stop the server at a known byte, so
//! that a crash test needs no sleeps; for benches a reply can come after a [delay](Reply::delay). It never judges a
//! request: it records it, and the test looks.
//!
//! ```
//! use max_team_testkit::{ModelServer, Reply};
//! use serde_json::json;
//!
//! let server = ModelServer::start([
//!     Reply::new().thinking("Look first.", "sig").tool("t1", "read_file", json!({"path": "README.md"})),
//!     Reply::status(429).retry_after(1),
//!     Reply::text("It is a readme."),
//! ]);
//! assert!(server.url().starts_with("http://127.0.0.1:"));
//! assert_eq!(server.count(), 0);
//! ```
#![expect(clippy::expect_used, clippy::panic, reason = "test support: a broken fixture must fail the test loudly")]

mod clock;
pub mod eval;
mod fault;
mod gate;
mod http;
mod plan;
pub mod planting;
mod record;
mod reply;
mod script;
mod server;
mod signal;
mod storm;
mod wire;

pub use gate::Gate;
pub use record::Recorded;
pub use reply::Reply;
pub use script::Script;
pub use server::ModelServer;
pub use storm::{Calm, Storm};
pub use wire::Dialect;
