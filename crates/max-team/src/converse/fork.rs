//! `fork`: goes on from a point of a run, in a session of its own and, by default, in a worktree with the files as
//! they were then. The run and the project are only read.

use std::path::{Path, PathBuf};

use max_team_core::agent::Constraints;
use max_team_core::event::LaunchFlags;
use max_team_core::policy::Visibility;
use max_team_runtime::replay::{Fork as Forking, Site, Tape};
use max_team_runtime::{OpenOptions, Which, new_id, query};
use max_team_tools::worktree::{Worktree, WorktreeOptions, Worktrees};
use tokio_util::sync::CancellationToken;

use super::{ChatStart, asked_for, chat, drive, has_screen, warm};
use crate::args::{Fork, TalkFlags, TeamFlags};
use crate::flags;
use crate::headless::{self, Headless, Task};
use crate::recordings;
use max_team_terminal::text::clean_line;
use max_team_workspace::config::choice::Durability;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::i18n::Lang;
use max_team_workspace::open::Workspace;
use max_team_workspace::permissions;
use max_team_workspace::setup::{self, AppEnv};
use max_team_workspace::team::LeadKind;

/// Files that could not be put back and are named one by one.
const LEFT_MAX: usize = 20;

/// The copy that is worked in.
struct ForkWorktree {
    id: String,
    /// What became of its files; nothing, if there was nothing to put back.
    back: Option<RestoreOutcome>,
}

/// What became of files that were to be as they were.
enum RestoreOutcome {
    /// So many are; these are not, and why.
    Done(usize, Vec<(String, String)>),
    /// The journal here does not know how they were.
    Unknown,
}

pub(crate) fn fork(place: &AppEnv, options: &Fork) -> anyhow::Result<Exit> {
    let record = asked_for(place, options.record.as_deref())?;
    let tape = recordings::find(place, Some(&options.run))?;
    let (talk, _) = recordings::talk(&tape, options.team.clone(), options.coordinator)?;
    let talk = as_chosen(&tape, talk);
    let edits = options.edit.is_some();
    let mut copied = None;
    let selection = talk.selection();
    let who = LeadKind::read(&selection, place)?;
    let workspace = Workspace::read_in(place, &selection, flags::overrides(&talk), who, |root| {
        // What cannot be gone on from is said before anything is made.
        let point = tape.fork(options.at, edits, root, Site::Here).map_err(setup::failed)?.forked.seq;
        if options.here {
            return Ok(root.to_path_buf());
        }
        let mut copy = copy(place, root, &tape)?;
        let back = if tape.is_last(point) { None } else { Some(back(place, &tape, point, root, &mut copy)?) };
        copied = Some(ForkWorktree { id: copy.id().to_owned(), back });
        Ok(copy.root())
    })?;
    let lang = place.lang(&workspace.config);
    let work = workspace.root.clone();
    let left: Vec<String> = match &copied {
        Some(ForkWorktree { back: Some(RestoreOutcome::Done(_, left)), .. }) => {
            left.iter().map(|(path, _)| path.clone()).collect()
        }
        _ => Vec::new(),
    };
    let site = match &copied {
        None => Site::Here,
        Some(ForkWorktree { back: Some(RestoreOutcome::Done(..)), .. }) => Site::Back(&left),
        Some(_) => Site::Copy,
    };
    let Forking { forked, words, bound } = tape.fork(options.at, edits, &work, site).map_err(setup::failed)?;
    let first = options.edit.clone().or_else(|| options.prompt.clone()).or(words);
    let copy = copied.as_ref().map(|copied| copied.id.as_str());
    headless::talk(&lang.forked(&forked.session.to_string(), forked.seq, copy, &work.display().to_string()));
    told(copied.and_then(|copied| copied.back).as_ref(), lang);
    headless::talk(&lang.fork_alone(&tape.others().map_err(setup::failed)?));
    let open = OpenOptions {
        mode_is_named: talk.team.permission_mode.is_some(),
        choice: selection.choice(place),
        ..workspace.request(Which::Fork(Box::new(forked), bound))
    };
    warm(&workspace.chosen);
    let chats = !options.print && has_screen(place);
    let runtime = workspace.start(place, place.begin(&workspace.config)?, "a fork", chats)?;
    let Workspace { config, chosen, .. } = workspace;
    if chats {
        return chat(place, &config, &runtime, Some(chosen), open, ChatStart { first, record, ..ChatStart::at(work) });
    }
    let face = Headless {
        format: options.output_format,
        key_source: chosen.key_source.clone(),
        verbose: options.team.verbose,
        record,
        ..Headless::new(place, &runtime, work, Task::Say(first.unwrap_or_default()), lang)
    };
    drive(&runtime, |signals| face.run(open, signals))
}

/// The flags with those that chose the team of the run, where today's flags choose none.
fn as_chosen(tape: &Tape, talk: TalkFlags) -> TalkFlags {
    let LaunchFlags { agents, coordinator, .. } = tape.choice();
    let agents = talk.team.agents.clone().or(agents.map(PathBuf::from));
    TalkFlags { coordinator: talk.coordinator || coordinator, team: TeamFlags { agents, ..talk.team }, ..talk }
}

/// A worktree of the project to go on in, with its permission files even if git ignores them.
fn copy(place: &AppEnv, root: &Path, tape: &Tape) -> Result<Worktree, CliError> {
    let rules = permissions::load(place, root, &permissions::RuleFlags::default())?.permissions;
    let sight = Visibility::from_policy(&Constraints::default(), &rules);
    let named = permissions::FILES.map(str::to_owned);
    let (id, by) = (format!("fork_{}", new_id().simple()), format!("fork of {}", tape.session));
    let at_ms = jiff::Timestamp::now().as_millisecond();
    let order = WorktreeOptions { id: &id, project: root, sight: &sight, named: &named, by: &by, at_ms };
    let made = Worktrees::within(&place.home).make(&order, &CancellationToken::new());
    made.map_err(|error| CliError::said(Exit::Failed, |lang| lang.no_fork_copy(error.to_string())))
}

/// Puts the files of a copy as they were behind an entry, as far as the journal knows how that was.
fn back(
    place: &AppEnv,
    tape: &Tape,
    behind: u64,
    project: &Path,
    copy: &mut Worktree,
) -> Result<RestoreOutcome, CliError> {
    let storage = place.storage(Durability::Normal).map_err(|error| setup::stop(&error))?;
    if storage.reader().ask(query::Session { session: tape.session }).is_err() {
        return Ok(RestoreOutcome::Unknown);
    }
    let rewind = storage.rewind(&place.home, tape.session);
    let (plan, outcome) = rewind.restore(behind, project, &copy.root()).map_err(setup::failed)?;
    // Restored files count as the worktree's starting point, so that they are not merged with the fork's own changes.
    let done: Vec<String> = outcome.done.iter().map(|put| put.change.path.clone()).collect();
    copy.put_back(&done).map_err(|error| CliError::said(Exit::Failed, |lang| lang.no_fork_copy(error.to_string())))?;
    let lang = place.speaks();
    let skipped = plan.skipped.iter().map(|skip| (skip.path.clone(), lang.rewind_skip(&skip.why)));
    let failed = outcome.failed.iter().map(|failed| (failed.path.clone(), failed.why.clone()));
    let unseen = plan.left.iter().map(|left| (lang.rewind_left_what(left), lang.rewind_left_why(left.why)));
    Ok(RestoreOutcome::Done(outcome.done.len(), skipped.chain(failed).chain(unseen).collect()))
}

/// Says what became of the files.
fn told(back: Option<&RestoreOutcome>, lang: Lang) {
    match back {
        None => {}
        Some(RestoreOutcome::Unknown) => headless::talk(lang.fork_files_unknown()),
        Some(RestoreOutcome::Done(done, left)) => {
            headless::talk(&lang.fork_files(*done));
            for (path, why) in left.iter().take(LEFT_MAX) {
                headless::talk(&clean_line(&lang.fork_file_left(path, why)));
            }
            if left.len() > LEFT_MAX {
                headless::talk(&lang.fork_more_left(left.len() - LEFT_MAX));
            }
        }
    }
}
