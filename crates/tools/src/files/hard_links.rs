//! Refuses an open file that is a hidden one under another name.
//!
//! A hard link gives a blocked file a second name that no pattern knows. So an agent that may not see everything is
//! refused a file with several names if one of them is blocked. All names beneath the root are searched, hidden and
//! ignored ones too, up to a bound; beyond it the answer is unknown, and the file is refused, too.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{AtFlags, FileType, statat};

use super::rel_path::RelPath;
use super::root::{OpenedFile, open_part_dir};
use super::walk::entries;
use crate::tool::{ToolContext, ToolError};

/// Names that are searched.
const NAMES_MAX: usize = 500_000;
/// Folders within folders that are looked into; each holds one open file.
const DEPTH_MAX: usize = 100;

/// Refuses a file that also has a hidden name.
pub(crate) fn check(cx: &ToolContext, place: &RelPath, opened: &OpenedFile) -> Result<(), ToolError> {
    if !opened.is_linked() || cx.sight.is_whole() {
        return Ok(());
    }
    let refused = |why: &str| Err(ToolError::correctable(format!("`{place}` is not for you to see: {why}")));
    match find(cx, opened)? {
        HardLink::None => Ok(()),
        HardLink::Hidden => refused("the same file has a name that is blocked (a hard link)"),
        HardLink::Unknown => refused("it has several names (hard links), and not all of them could be looked at"),
    }
}

enum HardLink {
    /// No name beneath the root is hidden.
    None,
    Hidden,
    /// There are more names than can be searched.
    Unknown,
}

fn find(cx: &ToolContext, opened: &OpenedFile) -> Result<HardLink, ToolError> {
    let trouble = |err: std::io::Error| ToolError::correctable(format!("the project folder cannot be read: {err}"));
    let root = cx.root.dir().try_clone_to_owned().map_err(trouble)?;
    let mut folders: Vec<(OwnedFd, PathBuf, usize)> = vec![(root, PathBuf::new(), 0)];
    let (mut looked_at, mut is_unknown) = (0, false);
    // Names of the file that have not been found yet.
    let mut left = opened.stat.st_nlink;
    while let Some((dir, path, depth)) = folders.pop() {
        cx.check()?;
        let Ok(found) = entries(&dir) else {
            is_unknown = true;
            continue;
        };
        is_unknown |= found.more;
        for entry in found.entries {
            looked_at += 1;
            if looked_at > NAMES_MAX {
                return Ok(HardLink::Unknown);
            }
            let inner = path.join(&entry.name);
            match entry.kind {
                FileType::Directory if depth < DEPTH_MAX => match open_part_dir(dir.as_fd(), entry.name.as_ref()) {
                    Ok(folder) => folders.push((folder, inner, depth + 1)),
                    Err(_) => is_unknown = true,
                },
                FileType::Directory => is_unknown = true,
                FileType::RegularFile => {
                    let Ok(stat) = statat(&dir, &entry.name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
                    if (stat.st_dev, stat.st_ino) != (opened.stat.st_dev, opened.stat.st_ino) {
                        continue;
                    }
                    if !cx.sight.is_visible(&inner.to_string_lossy()) {
                        return Ok(HardLink::Hidden);
                    }
                    left = left.saturating_sub(1);
                    if left == 0 {
                        return Ok(HardLink::None);
                    }
                }
                _ => {}
            }
        }
    }
    Ok(if is_unknown { HardLink::Unknown } else { HardLink::None })
}
