//! Files that a command must not make: found and moved away from within its supervisor.
//!
//! New names that [`max_team_core::policy::PROTECTED`] lists, new repositories, and files that rules deny are renamed. Directly in
//! the project's folder, and for programs that live on, that happens at once; else when the command ends, because a test may
//! make a repository and remove it. What the user approved stays, and so does what git has at that path: a checkout by the user
//! is no work of the command. Nothing here is ever deleted.

use std::fs;
use std::io::PipeReader;
use std::path::{Path, PathBuf};

use max_team_core::limits::{GIT_WAIT_MS_MAX, SET_ASIDE_MAX};
use max_team_core::policy::{Permissions, Visibility, is_dependency_folder, row_at};
use max_team_sandbox::{AppearedPath, FileWatch, set_aside};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::approvals::ApprovedFiles;
use super::scan::{is_bare_repository, walk};
use super::tracked::TrackedFiles;

/// Bytes of a file that is compared with an approved content.
const CONTENT_BYTES_MAX: u64 = 16 << 20;
/// Files in a new folder that are looked at one by one; a folder with more is moved as a whole.
const FOLDER_FILES_MAX: usize = 1_000;
/// Files that decide what git does in a bare repository.
const BARE_SETTINGS: [&str; 3] = ["HEAD", "config", "commondir"];

/// What one command must not make, as plain data.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct PlantedFiles {
    /// The folders that it writes.
    pub(super) folders: Vec<PathBuf>,
    /// What was there when it began: protected files, and folders that could not be looked into.
    pub(super) known: Vec<PathBuf>,
    /// Patterns of the rows that it may change.
    pub(super) open: Vec<String>,
    /// Whether it may make repositories.
    pub(super) makes_repositories: bool,
    /// Rules that deny changes of paths.
    pub(super) rules: Option<Permissions>,
    /// Whether it lives on, so that its end is no time to look.
    pub(super) lives_on: bool,
    /// The user's git, and the working trees whose repositories were there.
    pub(super) git: Option<PathBuf>,
    pub(super) trees: Vec<PathBuf>,
}

impl PlantedFiles {
    /// The watch of an order, in the supervisor.
    pub(super) fn watch(text: &str, approvals: Option<fs::File>) -> Option<Box<dyn FileWatch>> {
        let planted = serde_json::from_str(text).ok()?;
        Some(Box::new(PlantedWatch { planted, approvals }))
    }

    /// The folder that holds a path, and the path from there.
    pub(super) fn place<'a>(&'a self, path: &'a Path) -> Option<(&'a Path, String)> {
        let within = |folder: &'a PathBuf| Some((folder.as_path(), path.strip_prefix(folder).ok()?));
        let (folder, rest) = self.folders.iter().filter_map(within).min_by_key(|(_, rest)| rest.as_os_str().len())?;
        Some((folder, rest.to_string_lossy().into_owned()))
    }

    /// Whether the command must not make what has this name in a folder.
    fn is_named(&self, folder: &Path, name: &str) -> bool {
        let is_row = row_at(name).is_some_and(|row| match row.pattern {
            ".git" => !self.makes_repositories,
            pattern => !self.open.iter().any(|open| open == pattern),
        });
        is_row
            || (!self.makes_repositories && is_bare_repository(folder, name))
            || self.rules.as_ref().is_some_and(|rules| !sight(rules, folder).allows_change(name))
    }

    /// Whether a path was not there before and is not the command's to make. What lies in such a folder counts, too.
    pub(super) fn is_forbidden(&self, path: &Path, approved: &ApprovedFiles) -> bool {
        let Some((folder, name)) = self.place(path) else { return false };
        let parts: Vec<&str> = name.split('/').collect();
        if self.was_there(path) || parts.iter().rev().skip(1).any(|part| is_dependency_folder(part)) {
            return false;
        }
        let is_named = (1..=parts.len()).any(|upto| {
            let name = parts.get(..upto).unwrap_or_default().join("/");
            self.is_named(folder, &name) && !approved.opens(&name)
        });
        is_named && !approved.holds(path) && !self.tracked(&[path.to_owned()]).holds(path)
    }

    /// Whether the command has made a name that it must not make.
    pub(super) fn is_new(&self, path: &Path, folder: &Path, name: &str) -> bool {
        !self.was_there(path) && path.symlink_metadata().is_ok() && self.is_named(folder, name)
    }

    fn was_there(&self, path: &Path) -> bool {
        self.known.iter().any(|known| path.starts_with(known))
    }

    pub(super) fn tracked(&self, paths: &[PathBuf]) -> TrackedFiles {
        self.git.as_deref().map(|git| TrackedFiles::of(git, &self.trees, paths)).unwrap_or_default()
    }

    /// Everything beneath a folder that the command must not make and that was not there.
    fn find(&self, folder: &Path, beneath: &Path) -> Result<Vec<PathBuf>, String> {
        let prefix = beneath.strip_prefix(folder).map(|rest| rest.to_string_lossy().into_owned()).unwrap_or_default();
        let sight = self.rules.as_ref().map(|rules| sight(rules, folder));
        let mut found = Vec::new();
        let looked = walk(beneath, &CancellationToken::new(), &mut |path, name, kind| {
            let name = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
            let own = name.rsplit('/').next().unwrap_or(&name);
            let is_denied = sight.as_ref().is_some_and(|sight| !sight.allows_change(&name));
            if !is_denied && kind.is_dir() && is_dependency_folder(own) {
                return Ok(false);
            }
            let is_found = is_denied || self.is_named(folder, &name);
            if is_found && !self.was_there(path) {
                found.push(path.to_owned());
            }
            Ok(!is_found && own != ".git")
        });
        let unread = looked.map_err(|error| error.to_string())?;
        match unread.iter().find(|folder| !self.was_there(folder)) {
            Some(dark) => Err(format!("`{}` cannot be read any more", dark.display())),
            None => Ok(found),
        }
    }
}

/// What rules leave to be changed in a folder.
fn sight(rules: &Permissions, folder: &Path) -> Visibility {
    let sight = Visibility::from_policy(&max_team_core::agent::Constraints::default(), rules);
    sight.relative_to(&folder.to_string_lossy())
}

/// The content of a plain file, or where a link leads; `None` for anything else and for what is too large.
pub(super) fn content(path: &Path) -> Option<Vec<u8>> {
    let meta = path.symlink_metadata().ok()?;
    if meta.is_symlink() {
        return Some(fs::read_link(path).ok()?.into_os_string().into_encoded_bytes());
    }
    (meta.is_file() && meta.len() <= CONTENT_BYTES_MAX).then(|| fs::read(path).ok()).flatten()
}

/// Looks for planted files from within the supervisor.
pub(super) struct PlantedWatch {
    pub(super) planted: PlantedFiles,
    approvals: Option<fs::File>,
}

impl PlantedWatch {
    /// Moves those of some new names away that are neither approved nor in git.
    pub(super) fn move_away(&self, found: Vec<PathBuf>) -> Vec<AppearedPath> {
        if found.is_empty() {
            return Vec::new();
        }
        self.wait_for_git();
        let approved = self.approvals.as_ref().map(ApprovedFiles::read).unwrap_or_default();
        let found: Vec<(PathBuf, Vec<PathBuf>)> =
            found.into_iter().map(|path| (path.clone(), self.decisive_files(&path))).collect();
        let all: Vec<PathBuf> = found.iter().flat_map(|(_, files)| files.clone()).collect();
        let tracked = self.planted.tracked(&all);
        let is_fine = |file: &PathBuf| approved.holds(file) || tracked.holds(file);
        let mut moved = Vec::new();
        for (path, files) in found {
            let name = self.planted.place(&path).map(|(_, name)| name).unwrap_or_default();
            let (fine, alien): (Vec<PathBuf>, Vec<PathBuf>) = files.into_iter().partition(is_fine);
            if alien.is_empty() || approved.opens(&name) || self.leads_to_known_repository(&path) {
                continue;
            }
            // Only a folder with approved or tracked files in it is taken apart.
            let is_whole = fine.is_empty() || !path.is_dir();
            let places = if is_whole { vec![path] } else { alien };
            moved.extend(places.into_iter().map(|path| AppearedPath { moved: set_aside(&path), path }));
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
        let _ = walk(path, &CancellationToken::new(), &mut |path, _, kind| {
            if !kind.is_dir() && files.len() < FOLDER_FILES_MAX {
                files.push(path.to_owned());
            }
            Ok(true)
        });
        if files.len() >= FOLDER_FILES_MAX { vec![path.to_owned()] } else { files }
    }

    /// Whether a `.git` file leads into a repository that was there, as that of a submodule does. Its settings are the user's.
    fn leads_to_known_repository(&self, path: &Path) -> bool {
        let is_git = path.file_name().is_some_and(|name| name == ".git");
        let text = content(path).filter(|_| is_git && path.is_file() && !path.is_symlink());
        let named =
            text.and_then(|text| Some(String::from_utf8(text).ok()?.strip_prefix("gitdir: ")?.trim_end().to_owned()));
        let leads = named.and_then(|named| path.parent()?.join(named).canonicalize().ok());
        leads.is_some_and(|leads| self.planted.trees.iter().any(|tree| leads.starts_with(tree.join(".git"))))
    }

    /// Waits while git works for the user: it writes files first, and what it tracks afterwards. No command can make the lock.
    fn wait_for_git(&self) {
        let is_locked = || {
            let locks = self.planted.trees.iter().map(|tree| tree.join(".git/index.lock"));
            locks.filter_map(|lock| fs::metadata(lock).ok()).any(|meta| {
                let age = meta.modified().ok().and_then(|time| time.elapsed().ok());
                age.is_none_or(|age| age.as_millis() < u128::from(GIT_WAIT_MS_MAX))
            })
        };
        while is_locked() {
            std::thread::park_timeout(super::guard::SETTLE);
        }
    }
}

impl FileWatch for PlantedWatch {
    fn guard(&mut self, end: &PipeReader, heard: &mut dyn FnMut(AppearedPath)) {
        let mut count = 0;
        super::guard::guard(self, end, &mut |appeared| {
            count += 1;
            // Beyond that they are moved and not reported one by one.
            if count <= SET_ASIDE_MAX {
                heard(appeared);
            }
        });
    }

    fn sweep(&mut self) -> Result<Vec<AppearedPath>, String> {
        let mut found = Vec::new();
        for folder in &self.planted.folders {
            found.extend(self.planted.find(folder, folder)?);
        }
        Ok(self.move_away(found))
    }
}
