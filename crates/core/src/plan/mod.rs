//! Plans: tasks with owners, in an order that their results dictate.
//!
//! A [`Draft`] is what somebody wrote; a [`Graph`] is a draft that has been checked and can be walked; [`Plan`] is the
//! machine that takes it from proposal to report. Nothing here runs anything: who works, what is verified and who is
//! asked are effects that the runtime carries out.

mod advance;
mod apply;
mod claims;
mod decide;
pub mod draft;
pub mod drawing;
pub mod edit;
pub mod event;
mod flaw;
pub mod forecast;
pub mod graph;
mod input;
mod look;
pub mod machine;
mod ready;
mod revise;
mod settle;
mod slot;
mod state;
#[cfg(test)]
mod tests;

pub use draft::{Budget, Draft, Gate, Task, Wanted};
pub use drawing::{DRAWN_TASKS_MAX, draw, mermaid};
pub use edit::{Edit, edit};
pub use forecast::{Bounds, Forecast, History, PastTasks, Rate, Sample, forecast};
pub use graph::{Flaw, Graph};
pub use input::{Findings, Input, Now, Report};
pub use look::Told;
pub use machine::{Effect, Plan, Status, TaskView, Waits};
pub use slot::{Decision, LeadNote};
pub use state::PlanState;

use crate::policy::pattern::overlap;
