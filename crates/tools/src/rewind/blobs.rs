//! Bytes of files by their hash, in a folder of ours.
//!
//! What is read is held against its name, so that a file that was cut short by a crash counts as not there. What is no longer
//! needed goes by age once there is too much.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use max_team_core::hash::Hash;
use max_team_core::limits::DELETION_KEPT_BYTES_MAX;
use max_team_core::rewind::FileState;

use crate::files::{PathContent, Root, file_state, find};
use crate::tool::ToolError;

/// Bytes that are kept of one tree; beyond it, the oldest that no file has now go.
const KEPT_BYTES_MAX: u64 = 1 << 30;
/// What is left of that then: one in …
const ROOM_SHARE: u64 = 4;

#[derive(Debug, Clone)]
pub(super) struct BlobDir {
    folder: PathBuf,
}

impl BlobDir {
    pub(super) fn within(home: &Path) -> Self {
        Self { folder: home.join("objects") }
    }

    fn place(&self, hash: &Hash) -> PathBuf {
        let digits = hash.to_string();
        let (first, rest) = digits.split_at_checked(2).unwrap_or(("", &digits));
        self.folder.join(first).join(rest)
    }

    /// Keeps some bytes; how many are new.
    pub(super) fn put(&self, hash: &Hash, bytes: &[u8]) -> io::Result<u64> {
        let place = self.place(hash);
        // One that a killed process has cut short is shorter than it should be.
        if fs::metadata(&place).is_ok_and(|known| known.len() == bytes.len() as u64) {
            return Ok(0);
        }
        let write = || OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&place);
        let mut file = match write() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let folder = place.parent().unwrap_or(&self.folder);
                DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
                write()?
            }
            opened => opened?,
        };
        file.write_all(bytes)?;
        Ok(bytes.len() as u64)
    }

    /// Keeps the file or link at a path of any size; its state, and how many bytes are new. `None`: there is none.
    pub(super) fn keep(&self, root: &Root, path: &str) -> Result<Option<(FileState, u64)>, ToolError> {
        let failed = |error: io::Error| ToolError::correctable(error.to_string());
        let (bytes, mode) = match find(root, &root.place(path)?)? {
            PathContent::Gone | PathContent::Other => return Ok(None),
            PathContent::Link(target) => (target.into_vec(), None),
            PathContent::File(file, stat) => {
                let mut bytes = Vec::new();
                file.take(DELETION_KEPT_BYTES_MAX).read_to_end(&mut bytes).map_err(failed)?;
                (bytes, Some(stat.st_mode))
            }
        };
        let hash = Hash::of(&bytes);
        let added = self.put(&hash, &bytes).map_err(failed)?;
        Ok(Some((mode.map_or(FileState::Link { hash }, |mode| file_state(hash, mode)), added)))
    }

    /// Writes what was kept through to the disk, so that it survives a power cut.
    pub(super) fn sync(&self) -> io::Result<()> {
        let Ok(folder) = fs::File::open(&self.folder) else { return Ok(()) };
        #[cfg(target_os = "linux")]
        rustix::fs::syncfs(&folder)?;
        #[cfg(not(target_os = "linux"))]
        folder.sync_all()?;
        Ok(())
    }

    /// The bytes of that name, if they are there and whole.
    pub(super) fn get(&self, hash: &Hash) -> Option<Vec<u8>> {
        fs::read(self.place(hash)).ok().filter(|bytes| Hash::of(bytes) == *hash)
    }

    /// Makes room once there is too much; how many bytes are left of `held`.
    pub(super) fn prune(&self, held: u64, needed: &HashSet<Hash>) -> u64 {
        if held <= KEPT_BYTES_MAX {
            return held;
        }
        let (mut all, mut held) = self.all_but(needed);
        all.sort_unstable();
        for (_, bytes, path) in all {
            if held <= KEPT_BYTES_MAX - KEPT_BYTES_MAX / ROOM_SHARE {
                break;
            }
            if fs::remove_file(path).is_ok() {
                held = held.saturating_sub(bytes);
            }
        }
        held
    }

    /// Drops all others; how many bytes went.
    pub(super) fn keep_only(&self, needed: &HashSet<Hash>) -> u64 {
        let gone = |(_, bytes, path): (_, u64, PathBuf)| fs::remove_file(path).map_or(0, |()| bytes);
        self.all_but(needed).0.into_iter().map(gone).sum()
    }

    /// Those that are not needed, and the bytes of all.
    fn all_but(&self, needed: &HashSet<Hash>) -> (Vec<(Option<SystemTime>, u64, PathBuf)>, u64) {
        let (mut others, mut held) = (Vec::new(), 0);
        for folder in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let first = folder.file_name();
            for object in fs::read_dir(folder.path()).into_iter().flatten().flatten() {
                let Ok(known) = object.metadata() else { continue };
                held += known.len();
                let name = format!("{}{}", first.to_string_lossy(), object.file_name().to_string_lossy());
                if !name.parse().is_ok_and(|hash| needed.contains(&hash)) {
                    others.push((known.modified().ok(), known.len(), object.path()));
                }
            }
        }
        (others, held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_cut_short_is_missing_and_is_written_again() {
        let home = tempfile::TempDir::new().unwrap();
        let objects = BlobDir::within(home.path());
        let (bytes, hash) = (b"some bytes", Hash::of(b"some bytes"));
        assert_eq!(objects.get(&hash), None);
        assert_eq!(objects.put(&hash, bytes).unwrap(), 10);
        assert_eq!(objects.put(&hash, bytes).unwrap(), 0);
        fs::write(objects.place(&hash), b"some").unwrap();
        assert_eq!(objects.get(&hash), None);
        assert_eq!(objects.put(&hash, bytes).unwrap(), 10);
        assert_eq!(objects.get(&hash).as_deref(), Some(bytes.as_slice()));
    }

    #[test]
    fn blobs_that_no_file_has_now_go_first() {
        let home = tempfile::TempDir::new().unwrap();
        let objects = BlobDir::within(home.path());
        let (kept, gone) = (Hash::of("kept"), Hash::of("gone"));
        objects.put(&kept, b"kept").unwrap();
        objects.put(&gone, b"gone").unwrap();
        assert_eq!(objects.prune(8, &HashSet::new()), 8, "there is room");
        for hash in [kept, gone] {
            let file = OpenOptions::new().write(true).open(objects.place(&hash)).unwrap();
            file.set_len(KEPT_BYTES_MAX / 2 + 1).unwrap();
        }
        let left = objects.prune(KEPT_BYTES_MAX + 2, &HashSet::from([kept]));
        assert_eq!(left, KEPT_BYTES_MAX / 2 + 1);
        assert!(objects.place(&kept).exists() && !objects.place(&gone).exists());
    }
}
