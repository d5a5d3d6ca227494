//! The team at work.
//!
//! [`TeamHandle`] is the one seam under every face: commands go in, queries are answered, notices come out. A face
//! never reaches past it. Behind it the [`House`] keeps the journal, the models and the tools, and gives every open
//! session an agent whose loop (`agent`) follows one rule: decide, commit, apply, do.

mod agent;
mod audit;
mod error;
mod handle;
mod house;
mod session;

pub use audit::{AuditLevel, AuditOptions};
pub use error::RuntimeError;
pub use handle::{Asked, Command, Delta, Notice, Open, Opened, Order, Status, TeamHandle, Which};
pub use house::{House, Options};
pub use session::instructions;
pub use session::{SessionRow, Sessions, project_entry};
