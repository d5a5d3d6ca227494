//! The state of agents: what each does, what it waits for, and what a stop has left.
//!
//! [`AgentStatus`] follows from an agent's turn, its unread messages and its task; `ps`, `team show` and the model's
//! own view of its team show it. [`SessionStatus`] is the fold of a session's events: the chat and headless
//! runs hold it, the stream sends it when it changes, and a query answers with it.

mod agent;
mod reason;
mod session;

pub use agent::{Activity, AgentStage, AgentStatus, StatusFacts, WorkSource};
pub use reason::{BlockCause, FailureCause, IdleReason, SuspendedWork, WaitTarget, WaitTargets};
pub use session::SessionStatus;
