//! Plans: tasks with owners, in an order that their results dictate.
//!
//! A [`Draft`] is a plan as written; a [`Graph`] is a checked draft; [`Plan`] is the state machine that takes it from
//! proposal to report. Nothing here runs anything: work, checks and questions are effects that the runtime carries
//! out.

mod advance;
mod apply;
mod correct;
mod deadlines;
mod decide;
pub mod draft;
pub mod edit;
pub mod event;
pub mod flaw;
pub mod forecast;
pub mod graph;
mod input;
mod path_locks;
mod propagate;
mod query;
mod questions;
mod queues;
mod ready_queue;
mod revise;
pub mod state;
mod status;
mod task_state;
#[cfg(test)]
mod tests;
mod validate;

pub use draft::{Budget, Draft, Gate, TaskDraft, WhenCondition};
pub use edit::{Edit, edit};
pub use flaw::{DraftFlaw, FlawReason, cannot_run};
pub use forecast::{Forecast, History, PastTasks, PlanBounds, Rate, TaskSample, forecast};
pub use graph::Graph;
pub use input::{Findings, NewAnswer, PlanEnv, PlanInput, Report};
pub use query::TaskReply;
pub use state::{Plan, PlanEffect, TaskStatus, TaskView, WaitReason};
pub use status::PlanState;
pub use task_state::{Decision, LeadNote};

use crate::policy::glob::overlap;
