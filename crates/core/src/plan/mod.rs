//! Plans: tasks with owners, in an order that their results dictate.
//!
//! A [`Draft`] is what somebody wrote; a [`Graph`] is a draft that has been checked and can be walked; [`Plan`] is the
//! machine that takes it from proposal to report. Nothing here runs anything: who works, what is verified and who is
//! asked are effects that the runtime carries out.

pub mod draft;
pub mod drawing;
pub mod edit;
mod flaw;
pub mod forecast;
pub mod graph;
mod near;

pub use draft::{Budget, Draft, Gate, Task, Wanted};
pub use drawing::{DRAWN_TASKS_MAX, draw, mermaid};
pub use edit::{Edit, edit};
pub use forecast::{Forecast, Rate, Seen, forecast};
pub use graph::{Flaw, Graph};
