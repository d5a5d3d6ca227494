//! One agent calls another: what the one who is called may do, and how its answer is read.
//!
//! A call is a task with an address to answer to; there is no second mechanism. Here is what follows from it: which tools
//! somebody who is called has (`hands`), that it is on no axis freer than its caller (`bound`), which part of its answer
//! is for the caller (`answer`), how a task is ended (`ending`), and which answers serve again (`cache`).

pub mod answer;
mod bound;
pub mod cache;
pub mod ending;
pub mod hands;
pub mod offer;
