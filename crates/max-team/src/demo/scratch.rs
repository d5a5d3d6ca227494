//! Folders of demos, which last as long as their process.
//!
//! A process holds a lock in its folder. The system lets go of the lock of a killed process, so the next demo knows which folders
//! nothing needs any more, and removes them.

use std::fs::{DirEntry, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use tempfile::TempDir;

const PREFIX: &str = "max-team-demo-";
/// The file that is locked as long as the process runs.
const LOCK: &str = "owner.lock";

/// A folder that is removed when the demo ends; if the demo is killed, when the next one begins.
pub(crate) struct ScratchFolder {
    pub(super) folder: TempDir,
    _lock: File,
}

impl ScratchFolder {
    pub(super) fn make() -> io::Result<Self> {
        let all = std::env::temp_dir();
        sweep(&all);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(all)?;
        // Locked before it has its name: a folder whose lock is free is removed.
        let new = folder.path().join("new.lock");
        let lock = File::create(&new)?;
        lock.lock()?;
        std::fs::rename(new, folder.path().join(LOCK))?;
        Ok(Self { folder, _lock: lock })
    }

    /// Leaves the folder to the user: it is never removed.
    pub(crate) fn keep(self) {
        // A folder without the file belongs to no demo.
        drop(std::fs::remove_file(self.folder.path().join(LOCK)));
        let _kept = self.folder.keep();
    }
}

/// Removes the folders of demos that were killed. A folder that cannot be removed stays for the next demo.
fn sweep(all: &Path) {
    let Ok(entries) = std::fs::read_dir(all) else { return };
    let named = entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    // Folders of other users are theirs: a pipe or a link in one of them is not opened.
    let user = rustix::process::geteuid().as_raw();
    let is_own = |entry: &DirEntry| entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == user);
    for entry in named.filter(is_own) {
        // Held until the folder is gone, so that two demos do not remove it at once.
        let lock = File::open(entry.path().join(LOCK)).ok().filter(|lock| lock.try_lock().is_ok());
        if lock.is_some() {
            drop(std::fs::remove_dir_all(entry.path()));
        }
    }
}
