//! The words and the rules of Max Team.
//!
//! Everything that decides lives here; nothing here can act. No IO, no tokio, no clock, no randomness: time and
//! identities come in as arguments, so every decision can be tested as a table and replayed from the journal.
//!
//! Machines follow one shape ([`machine::Machine`]): `decide(&self, Input, &Now) -> Vec<Event>`, `apply(&mut self, &Event)`,
//! `pending(&self) -> Vec<Effect>`. The driver commits what was decided, applies it, then runs what is pending.
//! Recovery folds `apply` over the log and runs `pending`; it never decides the past again.

pub mod agent;
pub mod agent_dirs;
pub mod body;
pub mod channel;
pub mod chat;
pub mod context;
pub mod cost;
pub mod delegation;
pub mod event;
pub mod hash;
pub mod id;
pub mod interrupt;
pub mod ledger;
pub mod limits;
pub mod machine;
pub mod mcp;
pub mod memory;
pub mod mention;
pub mod message;
pub mod output;
pub mod packages;
pub mod plan;
pub mod policy;
pub mod recovery;
pub mod resume;
pub mod rewind;
pub mod secret;
pub mod status;
pub mod suggest;
pub mod task_list;
pub mod teammate;
pub mod text;
pub mod time;
pub mod turn;
pub mod unattended;
pub mod verdict;
