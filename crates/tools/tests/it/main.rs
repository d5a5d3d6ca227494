//! The tools as a caller sees them: a name and some JSON through the registry, on a real folder.

#![expect(clippy::unwrap_used, clippy::panic, reason = "functions that tests share are tests, too")]

mod commands;
mod disk;
mod escapes;
mod hostile;
mod kinds;
mod listing;
mod project;
mod reading;
mod registry;
mod repository;
mod searching;
mod shell;
mod sight;
mod testing;
mod unseen;
mod writing;
