//! `replay`: a run again, as it happened; offline, from the log alone.
//!
//! Everything is played in a journal of its own, in memory. The user's journal is only read, and what is folded again is
//! held against what it has kept.

use std::io::{self, BufRead, IsTerminal, Write};
use std::time::Duration;

use max_team_runtime::StreamEvent;
use max_team_runtime::replay::{Fingerprint, Tape};
use serde_json::json;

use super::context::{self, stop};
use super::stream::line::line;
use crate::args;
use crate::recordings;
use max_team_terminal::text::clean_line;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::format::since;
use max_team_workspace::i18n::Lang;
use max_team_workspace::setup::AppEnv;

/// The longest pause between two events, however long it was then.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// What is folded, by kind.
const KINDS: [&str; 6] = ["turn", "ledger", "plan", "task", "mail", "row"];

pub(crate) fn run(place: &AppEnv, options: &args::Replay) -> anyhow::Result<Exit> {
    if options.strict {
        return super::strict::run(place, options);
    }
    let lang = place.speaks();
    if let Some(path) = &options.record {
        let path = place.cwd.join(path);
        recordings::check(&path, options.force)?;
        let tape = recordings::find(place, options.run.as_deref())?;
        let words = recordings::save(&tape, &path, options.force, lang)?;
        super::print(&format!("{words}\n"))?;
        return Ok(Exit::Ok);
    }
    let tape = recordings::find(place, options.run.as_deref())?;
    match context::wait(play(&tape, options, lang)) {
        // The reader of the output has closed it: that is no failure.
        Err(error) if error.downcast_ref::<io::Error>().is_some_and(is_broken_pipe) => Ok(Exit::Ok),
        played => played,
    }
}

fn is_broken_pipe(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

async fn play(tape: &Tape, options: &args::Replay, lang: Lang) -> anyhow::Result<Exit> {
    let replica = tape.replica().map_err(stop)?;
    let events = tape.play(&replica).map_err(stop)?;
    let speed = options.speed.or_else(|| io::stdout().is_terminal().then_some(1.0));
    if !options.json {
        put(&clean_line(&lang.replay_begins(tape.session.to_string(), &tape.cwd)))?;
    }
    let mut before = None;
    for event in &events {
        match speed.filter(|_| !options.step) {
            Some(speed) => tokio::time::sleep(pause(before, event, speed)).await,
            // After `q` no conclusion is printed.
            None if options.step && before.is_some() && !goes_on(lang)? => return Ok(Exit::Ok),
            None => {}
        }
        before = Some(event.at_ms);
        put(&if options.json {
            serde_json::to_string(event)?
        } else {
            format!("{:>6}  {}", event.seq, line(event, lang))
        })?;
    }
    conclude(tape, &tape.folded(&replica).map_err(stop)?, events.len(), options.json, lang)
}

/// How long an event is waited for.
fn pause(before_ms: Option<i64>, event: &StreamEvent, speed: f64) -> Duration {
    let gap = Duration::from_millis(before_ms.map_or(0, |before_ms| since(before_ms, event.at_ms)));
    Duration::try_from_secs_f64(gap.as_secs_f64() / speed).unwrap_or(PAUSE_MAX).min(PAUSE_MAX)
}

/// Waits for Enter, with a prompt on a terminal; `q` stops, the end of the input goes on.
fn goes_on(lang: Lang) -> io::Result<bool> {
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        let mut out = io::stderr();
        write!(out, "{} ", lang.step_keys())?;
        out.flush()?;
    }
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(!line.trim().eq_ignore_ascii_case("q"))
}

/// Says whether what follows from the entries is what was kept, and whether the entries are what was written.
fn conclude(tape: &Tape, folded: &Fingerprint, events: usize, json: bool, lang: Lang) -> anyhow::Result<Exit> {
    let differs = tape.kept().map(|kept| kept.differing(folded));
    let is_off = differs.as_ref().is_some_and(|differs| !differs.is_empty());
    let damaged = tape.damaged();
    if json {
        let broken: Vec<_> = damaged.iter().map(|(seq, details)| json!({ "seq": seq, "damaged": details })).collect();
        put(&json!({
            "type": "replayed", "session": tape.session, "entries": tape.len(), "events": events,
            "model_calls": { "recorded": tape.calls(), "made": 0 }, "damaged": broken,
            "compared": differs.is_some(), "equal": differs.as_ref().map(|_| !is_off && damaged.is_empty()),
            "differs": differs,
        })
        .to_string())?;
    } else {
        put(&format!("\n{}", lang.replayed(tape.len(), tape.calls())))?;
        put(&lang.folded_counts(KINDS.map(|kind| folded.count(kind))))?;
        for (seq, details) in damaged {
            put(&clean_line(&format!("  ≠ {seq} {}", lang.damaged(details))))?;
        }
        match &differs {
            None => put(lang.run_goes_on())?,
            Some(differs) if differs.is_empty() && damaged.is_empty() => put(lang.as_kept())?,
            Some(differs) => differs.iter().try_for_each(|name| put(&clean_line(&format!("  ≠ {name}"))))?,
        }
    }
    if !damaged.is_empty() {
        return Err(CliError::said(Exit::Failed, |lang| lang.run_damaged(damaged.len())).into());
    }
    match differs {
        Some(differs) if is_off && tape.is_recording() => {
            Err(CliError::said(Exit::Failed, |lang| lang.not_as_recorded(differs.len())).into())
        }
        Some(differs) if is_off => Err(CliError::said(Exit::Failed, |lang| lang.not_as_kept(differs.len())).into()),
        _ => Ok(Exit::Ok),
    }
}

/// A line goes out at once.
fn put(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes())?;
    out.flush()
}
