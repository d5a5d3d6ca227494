//! What putting files back needs of the disk: how a file is before a call changes it, how a tree is before and after a
//! command, and one file put back.
//!
//! A file tool names the file that it changes, so that file alone is kept ([`FileSnapshot`]). A command may change anything beneath its
//! root: [`TrackedTrees`] remembers how every file there is, and says afterwards what has changed. Files are put back beneath a root, through no
//! link, and only while they are as expected. Nothing here decides what is put back.

mod attribution;
mod blobs;
mod commands;
mod deadline;
mod deletion;
mod diff;
mod scan;
mod tree;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use max_team_core::policy::Visibility;
use max_team_core::rewind::{FileChange, FileState};

use crate::files::{Content, Root, look, prune, replace};
use crate::tool::{ToolContext, ToolError};

pub use commands::CommandCaller;
pub use deletion::{DeletionSurvey, KeptFiles, changed_since};
pub use max_team_sandbox::EndMark;
pub use tree::{RecordStep, TrackedTrees, TreeStep, TreeWatch};

/// How a file is that a call is about to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSnapshot {
    /// The folder that it lies beneath.
    pub root: PathBuf,
    /// Its path from there.
    pub path: String,
    /// What is there.
    pub state: FileState,
    /// Its bytes, if it is a file.
    pub bytes: Option<Vec<u8>>,
}

impl FileSnapshot {
    /// Looks at what a file tool would change. Blocking.
    pub fn of(cx: &ToolContext, target: &str) -> Result<Self, ToolError> {
        let place = cx.place(target)?;
        let path = place.as_str().to_owned();
        let Some(at) = cx.reach(&place)? else {
            let store = place.folder().and_then(|folder| cx.store(folder));
            let root = store.map_or_else(|| cx.root.path(), crate::AgentStore::path).to_owned();
            return Ok(Self { root, path, state: FileState::Gone, bytes: None });
        };
        let mut bytes = None;
        let state = look(&at.root, &place, &mut bytes)?;
        Ok(Self { root: at.root.path().to_owned(), path, state, bytes })
    }
}

/// A folder that files are put back in.
#[derive(Debug)]
pub struct RestoreRoot(Root);

impl RestoreRoot {
    pub fn open(path: &Path) -> io::Result<Self> {
        Root::open(path).map(Self)
    }

    /// What is at a path, with its bytes if it has some. Blocking.
    pub fn look(&self, path: &str) -> Result<(FileState, Option<Vec<u8>>), ToolError> {
        let mut bytes = None;
        let state = look(&self.0, &self.0.place(path)?, &mut bytes)?;
        Ok((state, bytes))
    }

    /// Makes of a file what `change` says, with these bytes, if it is still what `change` begins with. If it is that
    /// already, nothing happens. Folders that become empty go. Blocking.
    pub fn put(&self, change: &FileChange, bytes: Option<Vec<u8>>) -> Result<(), ToolError> {
        let unknown =
            || ToolError::correctable(format!("the earlier content of `{}` is no longer stored", change.path));
        let content = match (change.after, bytes) {
            (FileState::Gone, _) => Content::Gone,
            (FileState::File { program, private, mode, .. }, Some(bytes)) => {
                Content::File { bytes, program, private, mode }
            }
            (FileState::Link { .. }, Some(bytes)) => Content::Link(OsString::from_vec(bytes)),
            _ => return Err(unknown()),
        };
        if content.state() != change.after {
            return Err(unknown());
        }
        let place = self.0.place(&change.path)?;
        // What a deletion took away comes back, also where no tool writes: only the steps of a person's own approval name
        // such files.
        let is_guarded = change.before != FileState::Gone && !is_in_git(&change.path);
        let sight = is_guarded.then(Visibility::default);
        replace(&self.0, sight.as_ref(), &place, change.before, &content)?;
        self.complete_repository(&change.path).map_err(|error| ToolError::correctable(error.to_string()))?;
        if content == Content::Gone {
            prune(&self.0, &place, &|_| true);
        }
        Ok(())
    }

    /// Makes the empty folders without which git takes a folder with this `HEAD` for no repository.
    fn complete_repository(&self, head: &str) -> io::Result<()> {
        let folder = Path::new(head).parent().filter(|folder| folder.ends_with(".git") && head.ends_with("/HEAD"));
        let Some(folder) = folder.map(|folder| self.0.path().join(folder)).filter(|folder| folder.is_dir()) else {
            return Ok(());
        };
        ["refs", "objects"].iter().try_for_each(|name| fs::create_dir_all(folder.join(name)))
    }
}

/// Whether a path lies in a repository's own folder.
fn is_in_git(path: &str) -> bool {
    path.split('/').any(|name| name == ".git")
}
