//! The journal from outside: what every engine must do, and what must hold when things break.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "functions that tests share are tests, too"
)]

mod agree;
mod backup;
mod bits;
mod child;
mod conformance;
mod crash;
mod drift;
mod faults;
mod growth;
mod make;
mod nudges;
mod owners;
mod replica;
mod tamper;
