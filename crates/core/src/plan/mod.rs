//! Plans: tasks with owners, in an order that their results dictate.
//!
//! A [`Draft`] is a plan as written; a [`Graph`] is a checked draft; [`Plan`] is the state machine that takes it from
//! proposal to report. Nothing here runs anything: work, checks and questions are effects that the runtime carries
//! out.

mod advance;
mod apply;
mod claims;
mod clock;
mod correct;
mod decide;
pub mod draft;
pub mod edit;
pub mod event;
mod flaw;
pub mod forecast;
pub mod graph;
mod input;
mod look;
pub mod machine;
mod questions;
mod queues;
mod ready;
mod revise;
mod settle;
mod slot;
mod state;
#[cfg(test)]
mod tests;

pub use draft::{Budget, Draft, Gate, Task, Wanted};
pub use edit::{Edit, edit};
pub use forecast::{Bounds, Forecast, History, PastTasks, Rate, Sample, forecast};
pub use graph::{Flaw, Graph};
pub use input::{Findings, Input, NewAnswer, Now, Report};
pub use look::Told;
pub use machine::{Effect, Plan, Status, TaskView, Waits};
pub use slot::{Decision, LeadNote};
pub use state::PlanState;

use crate::policy::pattern::overlap;
