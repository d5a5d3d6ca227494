//! Looks for planted files from within the supervisor of a command, and moves them away.

use std::fs::{self, File};
use std::io::PipeReader;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use max_team_core::limits::{GIT_WAIT_MS_MAX, SET_ASIDE_MAX};
use max_team_core::policy::row_at;
use max_team_sandbox::{AppearedPath, FileWatch, set_aside};
use tokio_util::sync::CancellationToken;

use super::approvals::ApprovedFiles;
use super::guard::{SETTLE, guard};
use super::planted::PlantedFiles;
use super::scan::walk;
use crate::files::is_temp;

/// Files in a new folder that are looked at one by one; a folder with more is moved as a whole.
const FOLDER_FILES_MAX: usize = 1_000;
/// Files that decide what git does in a bare repository.
const BARE_SETTINGS: [&str; 3] = ["HEAD", "config", "commondir"];

/// The watch of an order, with the file that holds the approvals; `None` if the order cannot be read.
pub(super) fn watch(order: &str, approvals: Option<File>) -> Option<Box<dyn FileWatch>> {
    let planted = serde_json::from_str(order).ok()?;
    Some(Box::new(PlantedWatch { planted, approvals }))
}

/// Looks for planted files from within the supervisor.
struct PlantedWatch {
    planted: PlantedFiles,
    approvals: Option<File>,
}

impl PlantedWatch {
    /// Moves those of some new names away that are neither approved nor in git; the flag says that git failed, so that the file may be the
    /// user's.
    fn move_away(&self, found: Vec<PathBuf>) -> Vec<(AppearedPath, bool)> {
        if found.is_empty() {
            return Vec::new();
        }
        self.wait_for_git();
        let approved = self.approvals.as_ref().map(ApprovedFiles::read).unwrap_or_default();
        let found = found.into_iter().filter(|path| !is_inert(path));
        let found: Vec<_> = found.map(|path| (path.clone(), self.decisive_files(&path))).collect();
        let all: Vec<PathBuf> = found.iter().flat_map(|(_, files)| files.clone()).collect();
        let tracked = self.planted.tracked(&all);
        let is_fine = |file: &PathBuf| approved.holds(file) || tracked.holds(file);
        let mut moved = Vec::new();
        for (path, files) in found {
            let name = self.planted.place(&path).map(|(_, name)| name).unwrap_or_default();
            let (fine, alien): (Vec<PathBuf>, Vec<PathBuf>) = files.into_iter().partition(is_fine);
            if alien.is_empty() || approved.opens(&path, &name) || self.planted.known_repository(&path).is_some() {
                continue;
            }
            // Only a folder with approved or tracked files in it is taken apart.
            let is_whole = fine.is_empty() || !path.is_dir();
            let is_unknown = alien.iter().any(|path| tracked.is_unknown(path));
            let places = if is_whole { vec![path] } else { alien };
            moved.extend(places.into_iter().map(|path| (AppearedPath { moved: set_aside(&path), path }, is_unknown)));
        }
        moved
    }

    /// The files whose contents decide about a name: the file itself, all files of a folder, the settings of a bare repository.
    fn decisive_files(&self, path: &Path) -> Vec<PathBuf> {
        let name = path.file_name().unwrap_or_default();
        if name == "HEAD"
            && let Some(folder) = path.parent().filter(|_| row_at(&path.to_string_lossy()).is_none())
        {
            let settings = BARE_SETTINGS.iter().map(|name| folder.join(name));
            return settings.filter(|path| path.symlink_metadata().is_ok()).collect();
        }
        if !path.is_dir() || path.is_symlink() {
            return vec![path.to_owned()];
        }
        let mut files = Vec::new();
        let looked = walk(path, &CancellationToken::new(), &mut |path, _, kind| {
            if !kind.is_dir() && !is_inert(path) && files.len() < FOLDER_FILES_MAX {
                files.push(path.to_owned());
            }
            Ok(true)
        });
        // A folder that cannot be looked over is judged as a whole.
        let is_whole = looked.is_ok_and(|unread| unread.is_empty()) && files.len() < FOLDER_FILES_MAX;
        if is_whole { files } else { vec![path.to_owned()] }
    }

    /// Waits while git works for the user: it writes files first, and what it tracks afterwards. No command can make the lock.
    fn wait_for_git(&self) {
        let is_locked = || {
            let locks = self.planted.trees.iter().map(|tree| tree.join(".git/index.lock"));
            locks.filter_map(|lock| fs::metadata(lock).ok()).any(|meta| {
                let age = meta.modified().ok().and_then(|time| time.elapsed().ok());
                age.is_some_and(|age| age.as_millis() < u128::from(GIT_WAIT_MS_MAX))
            })
        };
        let begun = Instant::now();
        while begun.elapsed().as_millis() < u128::from(GIT_WAIT_MS_MAX) && is_locked() {
            thread::park_timeout(SETTLE);
        }
    }
}

/// Whether no program takes a file for its own, because of its name: it was moved away, or a tool of ours still writes it.
fn is_inert(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let number = name.rsplit_once(".untrusted-").map(|(_, number)| number);
    is_temp(name) || number.is_some_and(|number| number.parse::<u128>().is_ok())
}

impl FileWatch for PlantedWatch {
    fn guard(&mut self, end: &PipeReader, heard: &mut dyn FnMut(AppearedPath)) {
        let mut count = 0;
        guard(&self.planted, end, &|found| self.move_away(found), &mut |(appeared, is_unknown)| {
            count += 1;
            // Beyond that they are moved and not reported one by one, unless one may be the user's.
            if count <= SET_ASIDE_MAX || is_unknown {
                heard(appeared);
            }
        });
    }

    fn sweep(&mut self) -> (Vec<AppearedPath>, Option<String>) {
        let (mut found, mut unexamined) = (Vec::new(), None);
        for folder in &self.planted.folders {
            let (more, why) = self.planted.find(folder);
            found.extend(more);
            unexamined = unexamined.or(why);
        }
        (self.move_away(found).into_iter().map(|(appeared, _)| appeared).collect(), unexamined)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_a_tool_still_writes_stays() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let husky = root.join(".husky");
        fs::create_dir(&husky).unwrap();
        fs::write(husky.join(".max-team-1-2.tmp"), "half").unwrap();
        let planted = PlantedFiles { folders: vec![root], ..PlantedFiles::default() };
        let watch = PlantedWatch { planted, approvals: None };
        assert_eq!(watch.move_away(vec![husky.clone(), husky.join(".max-team-1-2.tmp")]), []);
        fs::write(husky.join("pre-commit"), "evil").unwrap();
        let moved = watch.move_away(vec![husky.clone()]);
        assert_eq!(moved.iter().map(|(appeared, _)| &appeared.path).collect::<Vec<_>>(), [&husky]);
    }
}
