//! `worktrees`: copies that agents work in, looked at, taken and dropped from any terminal. Only `accept` writes into a
//! project.

use std::path::PathBuf;

use max_team_core::message::Principal;
use max_team_core::policy::Visibility;
use max_team_runtime::maintenance::Storage;
use max_team_runtime::storage::JournalError;
use max_team_runtime::{ConflictText, WorktreeReview};
use max_team_tools::worktree::{Accept, MergeResult, Review, Worktree, WorktreeError, Worktrees};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::table::table;
use crate::args;
use crate::headless::talk;
use max_team_terminal::text::clean;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::format::local;
use max_team_workspace::format::short;
use max_team_workspace::i18n::Lang;
use max_team_workspace::setup::{self, AppEnv};

pub(crate) fn run(place: &AppEnv, command: &args::Worktrees) -> anyhow::Result<Exit> {
    let (home, by) = (place.home.clone(), place.principal("cli"));
    let (copies, lang, cancel) = (Worktrees::within(&home), place.speaks(), CancellationToken::new());
    let context = WorktreeContext { copies, home, by, lang, cancel };
    for error in context.copies.sweep() {
        talk(&error.to_string());
    }
    match command {
        args::Worktrees::List { json } => context.list(*json),
        args::Worktrees::Show { id, json } => context.show(id.as_deref(), *json),
        args::Worktrees::Accept { id, files } => context.accept(id, files),
        args::Worktrees::Reject { id, files } => context.reject(id, files),
        args::Worktrees::Clean => context.clean(),
    }
}

struct WorktreeContext {
    copies: Worktrees,
    home: PathBuf,
    by: Principal,
    lang: Lang,
    cancel: CancellationToken,
}

fn failed(error: WorktreeError) -> CliError {
    let exit = match error {
        WorktreeError::NotFound(_) | WorktreeError::NotChanged(_) | WorktreeError::Name(_) => Exit::Usage,
        _ => Exit::Failed,
    };
    CliError::said(exit, |lang| lang.worktree_failure(&error))
}

impl WorktreeContext {
    fn review(&self, copy: &Worktree) -> Result<Review, CliError> {
        copy.review(&Visibility::default(), &self.cancel).map_err(failed)
    }

    /// The worktree with this id; without an id, the only one.
    fn find(&self, id: Option<&str>) -> Result<Worktree, CliError> {
        let mut all = self.copies.list();
        if let Some(id) = id {
            all.retain(|copy| {
                let name = copy.id();
                let bare = name.split_once('_').map_or(name, |(_, bare)| bare);
                name == id || name.starts_with(id) || name.ends_with(id) || bare.starts_with(id)
            });
        }
        let names: Vec<String> = all.iter().map(|copy| copy.id().to_owned()).collect();
        match (all.pop(), id) {
            (Some(copy), _) if all.is_empty() => Ok(copy),
            (Some(_), _) => {
                Err(CliError::said(Exit::Usage, |lang| format!("{} {}", lang.which_copy(), names.join(", "))))
            }
            (None, Some(id)) => Err(failed(WorktreeError::NotFound(id.to_owned()))),
            (None, None) => Err(CliError::said(Exit::Failed, |lang| lang.no_copies().to_owned())),
        }
    }

    /// A worktree that no agent works in.
    fn find_free(&self, id: &str) -> Result<Worktree, CliError> {
        let copy = self.find(Some(id))?;
        if copy.is_occupied() {
            return Err(CliError::new(Exit::Failed, self.lang.copy_in_use(copy.id())));
        }
        Ok(copy)
    }

    fn list(&self, json: bool) -> anyhow::Result<Exit> {
        let all = self.copies.list();
        let open = |copy: &Worktree| {
            let review = self.review(copy).ok()?;
            Some((review.open().count(), review.ignored.count()))
        };
        if json {
            let rows: Vec<Value> = all
                .iter()
                .map(|copy| {
                    let (root, project) = (copy.root(), copy.project());
                    let (busy, begun) = (copy.is_occupied(), copy.begun().ok().flatten());
                    let (open, ignored) = open(copy).unzip();
                    json!({ "id": copy.id(), "by": copy.by(), "made_at_ms": copy.made_at_ms(), "project": project,
                    "root": root, "open": open, "ignored": ignored, "begun": begun, "busy": busy, "left": copy.left() })
                })
                .collect();
            super::print(&format!("{:#}\n", Value::from(rows)))?;
        } else if all.is_empty() {
            super::print(&format!("{}\n", self.lang.no_copies()))?;
        } else {
            let row = |copy: &Worktree| {
                let count = |(open, ignored)| self.lang.copy_count(open, ignored);
                let open = open(copy).map_or_else(|| "?".to_owned(), count);
                let project = copy.project().display().to_string();
                vec![short(&copy.id()), local(copy.made_at_ms()), copy.by().to_owned(), open, project]
            };
            super::print(&table(&self.lang.copy_heads(), &all.iter().map(row).collect::<Vec<_>>()))?;
        }
        Ok(Exit::Ok)
    }

    fn show(&self, id: Option<&str>, json: bool) -> anyhow::Result<Exit> {
        let copy = self.find(id)?;
        let review = WorktreeReview::read(&copy, &self.cancel).map_err(failed)?;
        if json {
            super::print(&format!("{:#}\n", serde_json::to_value(&review)?))?;
            return Ok(Exit::Ok);
        }
        let WorktreeReview { begun, conflicts, .. } = &review;
        let mut text =
            format!("{}  {}  {}\n{}\n", copy.id(), copy.by(), local(copy.made_at_ms()), copy.root().display());
        if let Some(taken) = begun {
            text.push_str(&format!("\n{}\n\n", self.lang.copy_begun(taken, copy.id())));
        }
        if review.changes.is_empty() {
            text.push_str(&format!("\n{}\n", self.lang.copy_same()));
        }
        for change in &review.changes {
            text.push_str(&format!("  {}  ({})\n", change.path, self.lang.fate(&change.fate)));
        }
        if review.ignored.count() > 0 {
            text.push_str(&format!("\n{}\n", self.lang.copy_ignores()));
            review.ignored.files.iter().for_each(|file| text.push_str(&format!("  {file}\n")));
            if review.ignored.more > 0 {
                text.push_str(&format!("  … +{}\n", review.ignored.more));
            }
        }
        if !copy.left().is_empty() {
            text.push_str(&format!("\n{}\n", self.lang.copy_left_out()));
            copy.left().iter().for_each(|left| text.push_str(&format!("  {left}\n")));
        }
        text.push_str(&format!("\n{}", review.diff.text));
        for ConflictText { path, text: both } in conflicts {
            text.push_str(&format!("\n{} {path}\n{both}", self.lang.copy_conflict()));
        }
        // What a model wrote must not drive the terminal.
        super::print(&clean(&text))?;
        Ok(Exit::Ok)
    }

    fn accept(&self, id: &str, files: &[String]) -> anyhow::Result<Exit> {
        let mut copy = self.find_free(id)?;
        let files = (!files.is_empty()).then_some(files);
        let accept = Accept { files, whole: false, shown: None, sight: &Visibility::default() };
        // Without a journal there is no session to write it down in; one that cannot be opened is no reason to take it unwritten.
        let merged = match Storage::open_existing(&self.home) {
            Ok(storage) => storage.accept_worktree(&mut copy, &accept, &self.by, &self.cancel),
            Err(JournalError::Absent { .. }) => copy.accept(&accept, &self.cancel, &mut |_| {}),
            Err(error) => return Err(setup::stop(&error).into()),
        };
        let merged = merged.map_err(failed)?;
        for (path, why) in &merged.stuck {
            talk(&format!("{path}: {why}"));
        }
        talk(&self.lang.copy_taken(merged.files.len()));
        // Where nothing could be taken, nothing has been decided.
        if !merged.files.is_empty() || merged.stuck.is_empty() {
            self.settle(copy, &merged)?;
        }
        Ok(if merged.stuck.is_empty() { Exit::Ok } else { Exit::Partial })
    }

    fn reject(&self, id: &str, files: &[String]) -> anyhow::Result<Exit> {
        let mut copy = self.find_free(id)?;
        // A project that is gone has nothing in it.
        let taken = copy.begun().ok().flatten().unwrap_or_default();
        if files.is_empty() {
            copy.remove().map_err(failed)?;
            talk(self.lang.copy_dropped());
        } else {
            let decided = copy.reject(files, &Visibility::default(), &self.cancel).map_err(failed)?;
            self.settle(copy, &decided)?;
        }
        if !taken.is_empty() {
            talk(&self.lang.copy_stays(&taken));
        }
        Ok(Exit::Ok)
    }

    /// A copy with nothing to decide about goes.
    fn settle(&self, copy: Worktree, MergeResult { open, ignored, .. }: &MergeResult) -> Result<(), CliError> {
        let id = short(&copy.id());
        if ignored.count() > 0 {
            talk(&self.lang.copy_ignored(ignored, &id));
        }
        if *open > 0 {
            talk(&self.lang.copy_open(*open, &id));
        }
        if open + ignored.count() > 0 {
            return Ok(());
        }
        copy.remove().map_err(failed)?;
        talk(self.lang.copy_gone());
        Ok(())
    }

    fn clean(&self) -> anyhow::Result<Exit> {
        let (mut gone, mut kept) = (0, 0);
        for copy in self.copies.list() {
            let is_done = |review: Review| review.open().next().is_none() && review.ignored.count() == 0;
            let is_begun = copy.begun().is_ok_and(|begun| begun.is_some());
            if !copy.is_occupied() && !is_begun && self.review(&copy).is_ok_and(is_done) {
                copy.remove().map_err(failed)?;
                gone += 1;
            } else {
                kept += 1;
            }
        }
        talk(&self.lang.copies_cleaned(gone, kept));
        Ok(Exit::Ok)
    }
}
