//! `plan` and `run`: plans as files.

use std::path::{Path, PathBuf};

use max_team_core::plan::event::ApprovalMode;
use max_team_runtime::{Basis, preview};

use crate::args::{Format, TalkFlags, TeamFlags};
use crate::commands::print;
use crate::headless::{self, Task};
use crate::{converse, flags};
use max_team_terminal::plan_text::{self, PlanDetail};
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::input_file::{self, InputFileError};
use max_team_workspace::open::Workspace;
use max_team_workspace::plan_file;
use max_team_workspace::setup::AppEnv;

/// Bytes of a plan file.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// What `plan` is told besides the goal.
pub(crate) struct PlanOptions {
    pub(crate) output: Option<PathBuf>,
    pub(crate) force: bool,
    pub(crate) record: Option<PathBuf>,
    pub(crate) flags: TeamFlags,
}

/// Has the lead propose a plan and writes it down.
pub(crate) fn plan(place: &AppEnv, goal: String, options: PlanOptions) -> anyhow::Result<Exit> {
    let PlanOptions { output, force, record, flags } = options;
    if goal.trim().is_empty() {
        return Err(CliError::said(Exit::Usage, |lang| lang.plan_for_what().to_owned()).into());
    }
    // Before a model is paid for what could not be written down.
    if let Some(path) = &output
        && let Err(error) = plan_file::has_place(path)
    {
        let (shown, why) = (path.display().to_string(), error.to_string());
        return Err(CliError::said(Exit::Usage, |lang| lang.unwritable(&shown, &why)).into());
    }
    if let Some(path) = output.as_ref().filter(|path| !force && path.exists()) {
        let shown = path.display().to_string();
        return Err(CliError::said(Exit::Usage, |lang| lang.already_there(&shown)).into());
    }
    // The plan is only proposed, so it must not be approved automatically.
    let team = TeamFlags { approve: Some(ApprovalMode::Plan), ..flags };
    let flags = TalkFlags { team, record, ..TalkFlags::default() };
    let workspace = Workspace::read(place, &flags.selection(), flags::overrides(&flags))?;
    workspace.require_model(place)?;
    converse::work(place, &flags, workspace, Task::Plan { goal, output }, Format::Text)
}

/// What `run` is told besides the file.
pub(crate) struct RunOptions {
    pub(crate) dry_run: bool,
    pub(crate) full: bool,
    pub(crate) yes: bool,
    pub(crate) format: Format,
    pub(crate) record: Option<PathBuf>,
    pub(crate) flags: TeamFlags,
}

/// Carries a plan file out.
pub(crate) fn run(place: &AppEnv, file: &Path, options: RunOptions) -> anyhow::Result<Exit> {
    let source = file.display().to_string();
    let unreadable = |why: InputFileError| {
        CliError::said(Exit::Config, |lang| match &why {
            InputFileError::Io(error) if error.kind() == std::io::ErrorKind::NotFound => lang.no_plan_file(&source),
            why => lang.unreadable(&source, lang.input_fault(why)),
        })
    };
    let text = input_file::text(file, FILE_BYTES_MAX).map_err(unreadable)?;
    let read = plan_file::read(&text, &source)?;
    let lang = place.speaks();
    read.warnings.iter().for_each(|warning| headless::talk(warning.get(lang)));
    // `--yes` approves the whole plan, including its risky tasks.
    let flags =
        TalkFlags { team: options.flags, yes_to_plans: options.yes, record: options.record, ..TalkFlags::default() };
    let workspace = match Workspace::read(place, &flags.selection(), flags::overrides(&flags)) {
        Ok(workspace) => workspace,
        // The file's own mistakes come first, and can be told without a team.
        Err(_) if !read.is_whole() => return Err(read.stop(&[]).into()),
        Err(stop) => return Err(stop.into()),
    };
    let Some(team) = &workspace.open.team else {
        return Err(CliError::said(Exit::Usage, |lang| lang.plan_needs_team().to_owned()).into());
    };
    let shown = match preview(team, &workspace.root, read.named(), &basis(place, &workspace)) {
        Ok(shown) if read.is_whole() => shown,
        checked => return Err(read.stop(&checked.err().unwrap_or_default()).into()),
    };
    if options.dry_run {
        let depth = PlanDetail::of(options.full, "--full");
        print(&plan_text::sheet(&shown, plan_text::WIDTH, depth, lang))?;
        return Ok(Exit::Ok);
    }
    workspace.require_model(place)?;
    converse::work(place, &flags, workspace, Task::Run { draft: Box::new(read.draft), source }, options.format)
}

/// The basis of a forecast for a file: the journal, if there is one, and the budget of a new run.
fn basis(place: &AppEnv, workspace: &Workspace) -> Basis {
    let session_nano = workspace.open.settings.budget_nano;
    match place.storage_to_read() {
        Ok(storage) => storage.forecast_basis(session_nano),
        Err(_) => Basis { session_nano, ..Basis::default() },
    }
}
