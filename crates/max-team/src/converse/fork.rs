//! `fork`: goes on from a point of a run, in a session of its own and, by default, in a worktree with the files as
//! they were then. The run and the project are only read.

use std::path::PathBuf;

use max_team_core::event::LaunchFlags;
use max_team_runtime::replay::{Fork as Forking, Site, Tape};
use max_team_runtime::{OpenOptions, Which};

use super::{ChatStart, asked_for, chat, drive, has_screen, warm};
use crate::args::{Fork, TalkFlags, TeamFlags};
use crate::flags;
use crate::headless::{self, Headless, Task};
use crate::recordings;
use max_team_terminal::text::clean_line;
use max_team_workspace::config::choice::Durability;
use max_team_workspace::exit::Exit;
use max_team_workspace::fork::{self, ForkWorktree, RestoreOutcome};
use max_team_workspace::i18n::Lang;
use max_team_workspace::open::Workspace;
use max_team_workspace::setup::{self, AppEnv};
use max_team_workspace::team::LeadKind;

/// Files that could not be put back and are named one by one.
const LEFT_MAX: usize = 20;

pub(crate) fn fork(place: &AppEnv, options: &Fork) -> anyhow::Result<Exit> {
    let record = asked_for(place, options.record.as_deref())?;
    let tape = recordings::find(place, Some(&options.run))?;
    let (talk, _) = recordings::talk(&tape, options.team.clone(), options.coordinator)?;
    let talk = as_chosen(&tape, talk);
    let edits = options.edit.is_some();
    let mut worktree = None;
    let selection = talk.selection();
    let who = LeadKind::read(&selection, place)?;
    let workspace = Workspace::read_in(place, &selection, flags::overrides(&talk), who, |root| {
        // What cannot be gone on from is said before anything is made.
        let point = tape.fork(options.at, edits, root, Site::Here).map_err(setup::failed)?.forked.seq;
        if options.here {
            return Ok(root.to_path_buf());
        }
        let storage = || place.storage(Durability::Normal).map_err(|error| setup::stop(&error));
        let made = worktree.insert(ForkWorktree::make(place, &tape, point, root, storage, "--here")?);
        Ok(made.root.clone())
    })?;
    let lang = place.lang(&workspace.config);
    let work = workspace.root.clone();
    let Forking { forked, words, bound } =
        fork::begin(&tape, options.at, edits, &work, worktree.as_ref()).map_err(setup::failed)?;
    let first = options.edit.clone().or_else(|| options.prompt.clone()).or(words);
    let copy = worktree.as_ref().map(|worktree| worktree.id.as_str());
    headless::talk(&lang.forked(&forked.session.to_string(), forked.seq, copy, &work.display().to_string()));
    told(worktree.and_then(|worktree| worktree.restored).as_ref(), lang);
    headless::talk(&lang.fork_alone(&tape.others().map_err(setup::failed)?));
    let open = OpenOptions {
        mode_is_named: talk.team.permission_mode.is_some(),
        choice: selection.choice(place),
        ..workspace.request(Which::Fork(Box::new(forked), bound, None))
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
