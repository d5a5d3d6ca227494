//! What happens, as one versioned stream of events for every face, from any place on.
//!
//! Everything in it follows from the log: an entry becomes no, one or several events (`tell`), the same ones whoever
//! reads them and wherever they begin. So a reader that went away goes on behind the last event it has seen, misses nothing
//! and hears nothing twice. Pieces of answers are the exception: they are live, for whoever keeps up in the process
//! that runs the session, and bear the number of the last entry before them. Nobody waits for a reader.

mod bench;
mod event;
mod fit;
mod pieces;
mod reader;
mod tell;
#[cfg(test)]
mod tests;

pub use event::{
    ApprovalStep, BudgetStep, Mark, NoMark, PlanStep, STREAM_VERSION, StreamEvent, TaskLine, TaskStep, What, Who,
};
pub(crate) use pieces::{Pieces, Sayer, progress};
pub use reader::{Scope, StreamReader};
