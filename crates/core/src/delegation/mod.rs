//! One agent calls another: what the called agent may do, and how its answer is read.
//!
//! A call is a task with an address to answer to; there is no second mechanism. The modules say which tools a called
//! agent has (`tool_filter`) and which of them its requests describe (`offer`), that it is never freer than its caller
//! (`inherit`), which part of its answer is for the caller (`answer`), how a task ends (`ending`), and which answers are
//! reused (`cache`).

pub mod answer;
pub mod cache;
pub mod ending;
mod inherit;
pub mod offer;
pub mod tool_filter;
