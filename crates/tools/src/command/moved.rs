//! Protected files that were moved away: each is told once, in a result or to a listener.

use std::fmt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use max_team_core::limits::SET_ASIDE_MAX;
use max_team_core::policy::protecting_row;
use max_team_core::rewind::MovedFile;
use max_team_sandbox::AppearedPath;

/// Files that are named one by one in a result; the record of the session has all of them.
const NOTES_MAX: usize = 8;
/// It cannot be told whether the command or the user made a file, so the user must hear where it is now.
const THEIRS: &str = "[if the user made it while the command ran, tell them where it is now]\n";

/// The files of one command, or of one server.
#[derive(Default)]
pub struct MovedFiles(Mutex<Moved>);

type Listener = Box<dyn Fn(MovedFile) + Send>;

#[derive(Default)]
struct Moved {
    known: Vec<MovedFile>,
    untold: Vec<MovedFile>,
    listener: Option<Listener>,
}

impl fmt::Debug for MovedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MovedFiles").field(&self.lock().known).finish()
    }
}

impl MovedFiles {
    /// Takes the files that nothing was told of yet.
    pub fn take(&self) -> Vec<MovedFile> {
        std::mem::take(&mut self.lock().untold)
    }

    /// Adds files of another list.
    pub fn extend(&self, files: &[MovedFile]) {
        files.iter().for_each(|file| self.add(file.clone()));
    }

    /// Tells the listener of each file from now on.
    pub fn listen(&self, listener: impl Fn(MovedFile) + Send + 'static) {
        self.lock().listener = Some(Box::new(listener));
    }

    pub(super) fn note(&self, appeared: &[AppearedPath]) {
        appeared.iter().for_each(|appeared| self.add(moved_file(appeared)));
    }

    fn add(&self, file: MovedFile) {
        let mut moved = self.lock();
        if moved.known.contains(&file) {
            return;
        }
        // A server may live for days.
        if moved.known.len() >= SET_ASIDE_MAX * SET_ASIDE_MAX {
            moved.known.clear();
        }
        moved.known.push(file.clone());
        match &moved.listener {
            Some(listener) => listener(file),
            None => moved.untold.push(file),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Moved> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn moved_file(AppearedPath { path, moved }: &AppearedPath) -> MovedFile {
    let shown = |path: &Path| path.display().to_string();
    MovedFile { path: shown(path), to: moved.as_deref().map(shown).unwrap_or_default() }
}

/// What a result says about files that were moved away; empty for none.
pub fn moved_note(moved: &[MovedFile]) -> String {
    let mut notes: String = moved.iter().take(NOTES_MAX).map(note).collect();
    if moved.len() > NOTES_MAX {
        notes.push_str(&format!("[{} more such files were moved away]\n", moved.len() - NOTES_MAX));
    }
    if !notes.is_empty() {
        notes.push_str(THEIRS);
    }
    notes
}

fn note(MovedFile { path, to }: &MovedFile) -> String {
    if to.is_empty() {
        return format!("[`{path}` is protected, appeared while it ran and could not be moved away]\n");
    }
    // A file that the team obeys itself, or that a rule denies, is not opened by any approval.
    if protecting_row(path).is_some_and(|row| !row.is_held) {
        return format!(
            "[`{path}` is protected and was made without the user's approval; it was moved to `{to}`. To make it, use \
             `write_file`, which asks the user]\n"
        );
    }
    format!("[`{path}` is only for the user to make; it was moved to `{to}`]\n")
}
