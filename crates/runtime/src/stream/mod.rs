//! One versioned stream of events for every frontend, readable from any place on.
//!
//! Everything in it follows from the log: an entry becomes zero or more events (`tell`), the same ones for every
//! reader and every starting place. So a reader that was away continues after the last event that it has seen, and
//! neither misses nor repeats one. Pieces of answers are the exception: they are live, for readers that keep up in the
//! process that runs the session or in one that listens for them (`other_processes`), and bear the number of the last entry before them. Writers never wait for a reader.

mod bench;
mod event;
mod fit;
mod other_processes;
mod pieces;
mod reader;
mod status;
mod step;
mod tell;
#[cfg(test)]
mod tests;

pub use event::{
    ApprovalStep, BudgetStep, Mark, NoMark, PlanStep, STREAM_VERSION, StreamEvent, TaskLine, TaskStep, What, Who,
};
pub(crate) use pieces::{Pieces, Sayer, progress};
pub use reader::{Scope, StreamReader};
pub(crate) use status::status_before;
pub use step::StepText;
