//! `replay`, `fork` and `compare`: their flags.

use std::path::PathBuf;

use clap::Args;

use super::TeamFlags;

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  max-team demo feature --yes --record run.jsonl   a run without a key, to look at\n  \
    max-team replay run.jsonl                        what happened; nothing is called, nothing is touched\n  \
    max-team replay --step 3f2a9c01                  a session by the end of its id, one event per Enter\n  \
    max-team replay --strict run.jsonl               would the team of today send the same requests?"
)]
pub(crate) struct Replay {
    /// The run: a session's id, its beginning or end, or a recorded file; the session last used without it
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// So many times as fast as it was (in a terminal it is 1; elsewhere all of it comes at once)
    #[arg(long, value_name = "X", value_parser = speed)]
    pub(crate) speed: Option<f64>,
    /// One event at a time: Enter for the next
    #[arg(long, conflicts_with = "speed")]
    pub(crate) step: bool,
    /// As JSON, a line each
    #[arg(long)]
    pub(crate) json: bool,
    /// Hold it against today's prompts, tools, definitions and rules: exit code 1 where a request would be another one
    #[arg(long, conflicts_with_all = ["speed", "step", "record"])]
    pub(crate) strict: bool,
    /// Write the run into this file instead of playing it; what looks like a secret is left out
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// With --record: replace the file if there is one
    #[arg(long, requires = "record")]
    pub(crate) force: bool,
    /// With --strict: the lead only coordinates, if it did then
    #[arg(long, requires = "strict")]
    pub(crate) coordinator: bool,
    #[command(flatten)]
    pub(crate) team: TeamFlags,
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|speed: &f64| speed.is_finite() && *speed > 0.0);
    speed.ok_or_else(|| "it is a number above 0, for example 10 or 0.5".to_owned())
}
