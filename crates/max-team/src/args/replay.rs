//! `replay`, `fork` and `compare`: their flags.

use std::path::PathBuf;

use clap::Args;

use max_team_runtime::replay::Point;

use super::{Format, TeamFlags, ValueFault};

/// The flags that say what a run is compared with.
const STRICT: &str = "Only with --strict";

#[derive(Debug, Clone, Args)]
#[command(mut_group("TeamFlags", |flags| flags.requires("strict")))]
pub(crate) struct Replay {
    /// Session ID (a unique prefix or suffix is enough) or a recorded file; default: the last session of any folder
    #[arg(value_name = "SESSION")]
    pub(crate) run: Option<String>,
    /// Speed factor (default: 1 in a terminal; elsewhere everything at once)
    #[arg(long, value_name = "X", value_parser = speed)]
    pub(crate) speed: Option<f64>,
    /// One event at a time: Enter for the next, q and Enter to end
    #[arg(long, conflicts_with = "speed")]
    pub(crate) step: bool,
    /// As JSON, a line each
    #[arg(long)]
    pub(crate) json: bool,
    /// Compare the session with the current prompts, tools, definitions and rules; exit code 1 if a request would differ
    #[arg(long, conflicts_with_all = ["speed", "step", "record"])]
    pub(crate) strict: bool,
    /// Write a recording to this file instead of playing it; secrets are left out
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// With --record: replace the file if there is one
    #[arg(long, requires = "record")]
    pub(crate) force: bool,
    /// Needed if the session was started with --coordinator
    #[arg(long, requires = "strict", help_heading = STRICT)]
    pub(crate) coordinator: bool,
    #[command(flatten, next_help_heading = STRICT)]
    pub(crate) team: TeamFlags,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Fork {
    /// Session ID (a unique prefix or suffix is enough) or a recorded file; the session itself does not change
    #[arg(value_name = "SESSION")]
    pub(crate) run: String,
    /// Where to continue: after the event of this number, at the `end`, or before a message of yours: `last-turn`, `turn:N`
    #[arg(long, value_name = "EVENT", default_value = "end")]
    pub(crate) at: Point,
    /// Say this instead of your message at that point
    #[arg(long, value_name = "TEXT", conflicts_with = "prompt")]
    pub(crate) edit: Option<String>,
    /// First message of the new session; with `--at last-turn` or `turn:N`, the default is your message at that point
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
    /// Answer and exit, as `max-team -p` does (the default without a terminal)
    #[arg(short = 'p', long)]
    pub(crate) print: bool,
    /// How to print the answer of -p
    #[arg(long, value_enum, default_value_t = Format::Text, requires = "print")]
    pub(crate) output_format: Format,
    /// At the end, write a recording to this file; `max-team replay FILE` plays it on any machine
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Work in the project itself, without a worktree
    #[arg(long)]
    pub(crate) here: bool,
    /// Let the lead only call agents and ask you, as in `max-team --coordinator`
    #[arg(long)]
    pub(crate) coordinator: bool,
    #[command(flatten)]
    pub(crate) team: TeamFlags,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Compare {
    /// The first session: its ID (a unique prefix or suffix is enough) or a recorded file
    #[arg(value_name = "A")]
    pub(crate) a: String,
    /// The second session
    #[arg(value_name = "B")]
    pub(crate) b: String,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn speed(text: &str) -> Result<f64, ValueFault> {
    let speed = text.parse().ok().filter(|speed: &f64| speed.is_finite() && *speed > 0.0);
    speed.ok_or_else(|| ValueFault::new(|lang| lang.value_speed().to_owned()))
}
