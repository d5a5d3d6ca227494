//! `replay --strict`: would the team of today send what was sent then? A regression test for a team, offline.

use crate::flags;
use std::path::Path;

use max_team_runtime::replay::{RecordedCall, ReplayDifference, Tape, VerdictPair};
use max_team_runtime::{OpenOptions, Which};
use max_team_tools::diff;
use serde_json::json;

use super::context::stop;
use crate::args;
use crate::recordings;
use max_team_terminal::text::{clean, clean_line};
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::i18n::Lang;
use max_team_workspace::models;
use max_team_workspace::setup::{self, AppEnv};
use max_team_workspace::team::{LeadKind, SessionLead};

/// Lines of a diff that people are shown; `--json` has all of it.
const DIFF_LINES_MAX: usize = 60;

pub(crate) fn run(place: &AppEnv, options: &args::Replay) -> anyhow::Result<Exit> {
    let tape = recordings::find(place, options.run.as_deref())?;
    let calls = hold(place, options, &tape)?;
    let diverged = calls.iter().filter(|call| !call.changes.is_empty()).count();
    let lang = place.speaks();
    let mut text = if options.json { lines(&tape, &calls, diverged) } else { told(&tape, &calls, lang) };
    if diverged > 0 && !options.json && Path::new(&tape.cwd) != place.cwd {
        let here = place.cwd.display().to_string();
        text.push_str(&format!("\n{}\n", lang.made_elsewhere(clean_line(&tape.cwd), &here)));
    }
    super::print(&text)?;
    match diverged {
        0 => Ok(Exit::Ok),
        _ => Err(CliError::said(Exit::Failed, |lang| lang.diverged(diverged, calls.len())).into()),
    }
}

/// Builds the team of today with the recorded models, and compares every call.
fn hold(place: &AppEnv, options: &args::Replay, tape: &Tape) -> anyhow::Result<Vec<RecordedCall>> {
    let (talk, then) = recordings::talk(tape, options.team.clone(), options.coordinator)?;
    let config = place.settings(talk.team.config.as_deref(), Vec::new())?;
    setup::project_root(place, &config)?;
    // A skill that is no more, or can no longer be carried out, is something that differs, and nothing that was typed wrongly.
    let who = LeadKind::read(&talk.selection(), place).map_err(|why| match &talk.skill {
        Some(name) => CliError::said(Exit::Failed, |lang| lang.skill_gone(clean_line(name), why.words(lang))),
        None => why,
    })?;
    let mut config = place.settings(talk.team.config.as_deref(), who.overrides(flags::overrides(&talk)))?;
    config.audit.enabled = false;
    let chosen = models::recorded(&config, &then)?;
    let root = setup::project_root(place, &config)?;
    let settings = setup::settings_for(&chosen, &config, false)?;
    let settings = setup::permitted(place, &config, &root, &talk.team.selection(), settings)?;
    let SessionLead { definition, settings, team, .. } =
        who.seat(&chosen, &settings, talk.selection().ways(&config))?;
    let open = OpenOptions::new(Which::New, definition, settings, team);
    let replica = tape.replica().map_err(stop)?;
    let remember = setup::remember(place, &config, &chosen, true)?;
    let team = setup::runtime(
        place,
        &config,
        replica,
        chosen.router.clone(),
        "a replay",
        setup::RuntimeParts::only(Some(remember)),
    )?;
    Ok(tape.against(&team, &open, &root).map_err(stop)?)
}

/// A line per call, and one about all of them.
fn lines(tape: &Tape, calls: &[RecordedCall], diverged: usize) -> String {
    let mut text: String = calls.iter().map(|call| format!("{}\n", json!({ "type": "call", "call": call }))).collect();
    let end = json!({
        "type": "strict", "session": tape.session, "calls": calls.len(), "diverged": diverged, "equal": diverged == 0,
        "model_calls": { "recorded": tape.calls(), "made": 0 },
    });
    text.push_str(&format!("{end}\n"));
    text
}

/// What differs, each once, with the calls that it is in.
fn told(tape: &Tape, calls: &[RecordedCall], lang: Lang) -> String {
    let mut text = format!("{}\n", lang.strict_begins(tape.session.to_string(), calls.len()));
    let mut seen: Vec<(&str, &ReplayDifference, Vec<u32>)> = Vec::new();
    for call in calls {
        for change in &call.changes {
            match seen.iter_mut().find(|(agent, known, _)| *agent == call.agent && *known == change) {
                Some((_, _, numbers)) => numbers.push(call.number),
                None => seen.push((&call.agent, change, vec![call.number])),
            }
        }
    }
    for (agent, change, numbers) in &seen {
        let name = if change.name.is_empty() { String::new() } else { format!(" {}", change.name) };
        let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
        text.push_str(&format!("\n≠ {}{name}\n", lang.diverged_at(agent, numbers.join(", "), change.piece.name())));
        text.push_str(&shown(change, lang));
    }
    if seen.is_empty() {
        text.push_str(&format!("{}\n", lang.strict_same()));
    }
    clean(&text).into_owned()
}

fn shown(change: &ReplayDifference, lang: Lang) -> String {
    if let Some(VerdictPair { then, today, rule }) = &change.judged {
        return format!("    - {}\n    + {}\n", lang.verdict(*then), lang.judged_by(*today, rule));
    }
    let is_short = |text: &str| !text.contains('\n');
    if is_short(&change.then) && is_short(&change.today) {
        return format!("    - {}\n    + {}\n", change.then, change.today);
    }
    let whole = diff::unified(change.piece.name(), Some(&ended(&change.then)), &ended(&change.today));
    let rows: Vec<&str> = whole.lines().collect();
    let mut text: String = rows.iter().take(DIFF_LINES_MAX).map(|line| format!("    {line}\n")).collect();
    if let Some(more) = rows.len().checked_sub(DIFF_LINES_MAX).filter(|more| *more > 0) {
        text.push_str(&format!("    {}\n", lang.more_diff(more)));
    }
    text
}

/// With an end to its last line.
fn ended(text: &str) -> String {
    format!("{}\n", text.trim_end_matches('\n'))
}
