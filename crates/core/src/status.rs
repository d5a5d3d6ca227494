//! The state of agents: what each does, what it waits for, and what a stop has left.
//!
//! [`AgentStatus`] follows from an agent's turn, its unread messages and its task; `ps`, `team show` and the model's
//! own view of its team show it. [`SessionStatus`] is the fold of the events of an open session, which the chat and
//! headless runs hold.

mod agent;
mod session;

pub use agent::{Activity, AgentStage, AgentStatus, IdleReason, StatusFacts};
pub use session::SessionStatus;
