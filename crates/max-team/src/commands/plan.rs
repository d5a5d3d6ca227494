//! `plan` and `run`: plans as files.

use std::path::{Path, PathBuf};

use max_team_core::plan::event::Approve;
use max_team_runtime::{Team, preview};

use crate::args::{Format, Talk, TeamFlags};
use crate::commands::print;
use crate::exit::{Exit, Stop};
use crate::headless::{self, Task};
use crate::setup::{self, Place};
use crate::team::{Seated, Who};
use crate::{models, plan_file, sheet, talk};

/// Bytes of a plan file.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Has the lead propose a plan and writes it down.
pub(crate) fn plan(place: &Place, goal: String, output: Option<PathBuf>, flags: TeamFlags) -> anyhow::Result<Exit> {
    if goal.trim().is_empty() {
        return Err(Stop::said(Exit::Usage, |lang| lang.plan_for_what().to_owned()).into());
    }
    // A plan that nobody may approve here must not run by itself either.
    let team = TeamFlags { approve: Some(Approve::Plan), ..flags };
    let flags = Talk { team, ..Talk::default() };
    talk::work(place, &flags, Task::Plan { goal, output }, Format::Text)
}

/// What `run` is told besides the file.
pub(crate) struct RunOptions {
    pub(crate) dry_run: bool,
    pub(crate) yes: bool,
    pub(crate) format: Format,
    pub(crate) flags: TeamFlags,
}

/// Carries a plan file out.
pub(crate) fn run(place: &Place, file: &Path, options: RunOptions) -> anyhow::Result<Exit> {
    let source = file.display().to_string();
    let unreadable =
        |error: std::io::Error| Stop::said(Exit::Config, |lang| lang.unreadable(&source, &error.to_string()));
    let meta = std::fs::metadata(file).map_err(unreadable)?;
    if !meta.is_file() {
        return Err(Stop::said(Exit::Config, |lang| lang.no_file(&source)).into());
    }
    let size = meta.len();
    if size > FILE_BYTES_MAX {
        let words = format!("`{source}` has {size} bytes; a plan has at most {FILE_BYTES_MAX}");
        return Err(Stop::new(Exit::Config, words).into());
    }
    let text = std::fs::read_to_string(file).map_err(unreadable)?;
    let read = plan_file::read(&text, &source)?;
    read.warnings.iter().for_each(|warning| headless::talk(warning));
    let mut flags = Talk { team: options.flags, ..Talk::default() };
    let checked = match team(place, &flags) {
        Ok(team) => preview(&team, &place.cwd, read.named()),
        // The file's own mistakes come first, and can be told without a team.
        Err(_) if !read.is_whole() => Err(Vec::new()),
        Err(error) => return Err(error),
    };
    let shown = match checked {
        Ok(shown) if read.is_whole() => shown,
        checked => return Err(read.stop(&checked.err().unwrap_or_default()).into()),
    };
    let draft = read.draft;
    if options.dry_run {
        print(&sheet::sheet(&shown, sheet::WIDTH, place.speaks()))?;
        return Ok(Exit::Ok);
    }
    if options.yes {
        // Whoever says yes to the whole has seen it; the risky parts are theirs too.
        flags.yes_to_plans = true;
    }
    talk::work(place, &flags, Task::Run { draft: Box::new(draft), source }, options.format)
}

/// The team with what it costs.
fn team(place: &Place, talk: &Talk) -> anyhow::Result<Team> {
    let who = Who::read(talk, place)?;
    let config = place.settings(talk.team.config.as_deref(), setup::overrides(talk, who.model()))?;
    let chosen = models::choose(&config, &place.env)?;
    let settings = setup::settings_for(&chosen, &config, false)?;
    let Seated { team, .. } = who.seat(&chosen, &settings, talk.ways())?;
    Ok(team.ok_or_else(|| Stop::new(Exit::Usage, "a plan needs a team: leave --solo and --agent out"))?)
}
