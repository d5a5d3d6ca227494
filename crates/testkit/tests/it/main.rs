//! The model server as a client sees it: over a real socket, through a client of a few lines that trusts nothing.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken assumption fails the test"
)]

mod anthropic;
mod client;
mod delay;
mod fault;
mod gate;
mod openai;
mod record;
