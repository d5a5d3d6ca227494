//! The tools as a caller sees them: a name and some JSON through the registry, on a real folder.

#![expect(clippy::unwrap_used, clippy::panic, reason = "functions that tests share are tests, too")]

max_team_tools::command::child_before_main!();

mod browser;
mod commands;
mod copies;
mod corpus;
mod disk;
mod escapes;
mod fetch;
mod hostile;
mod kinds;
#[cfg(target_os = "linux")]
mod landlock;
mod listing;
#[cfg(target_os = "linux")]
mod locks;
mod logs;
mod mentions;
mod network;
mod obeyed;
mod ordinary;
mod places;
mod planted;
mod project;
mod protected;
mod reading;
mod registry;
mod remote;
mod repository;
mod running;
mod searching;
mod shell;
mod sight;
mod stores;
mod symbols;
mod testing;
mod unseen;
mod web;
mod web_search;
mod writing;
