//! The whole program against a scripted model at HTTP: nothing inside it is replaced.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken fixture must fail the test loudly"
)]

mod agents;
mod bounds;
mod cache;
mod calls;
mod chat;
mod command_line;
mod connections;
mod context;
mod corrections;
mod crash;
mod demos;
mod doctor;
mod documents;
mod edits;
mod errands;
mod evaluation;
mod events;
mod evidence;
mod experts;
mod faults;
mod files;
mod fixed_input;
mod forecasts;
mod forks;
mod hands;
mod headless;
mod interrupts;
mod keep;
#[cfg(target_os = "linux")]
mod landlock;
mod leads;
mod listening;
mod manual;
mod mcp;
mod mcp_client;
mod mcp_remote;
mod memory;
mod mentions;
mod obeyed;
mod outages;
mod output;
mod plans;
mod practice;
mod program;
mod refusals;
mod registries;
mod remembering;
mod replay;
mod reports;
mod results;
mod resume;
mod revisions;
mod rewind;
mod running;
mod secrets;
mod serve;
mod serve_decisions;
mod serve_demo;
mod serve_files;
mod serve_handover;
mod sessions;
mod skills;
mod startup;
mod stops;
mod tasks;
mod teammates;
mod teammates_killed;
mod waiting;
mod weak;
mod worktrees;
