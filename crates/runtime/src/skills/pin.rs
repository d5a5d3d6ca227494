//! The hash of a folder that the user trusts.
//!
//! It covers the path, the content and the executable bit of every file. A folder that holds a link, or more than the
//! bounds, has no pin and cannot be trusted, because its content could change unnoticed.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use max_team_core::hash::Hash;

use super::{PINNED_BYTES_MAX, PINNED_FILES_MAX};

/// The content of a folder, or of a file that is a skill by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pin(Hash);

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Pin {
    /// The pin of the folder as it is now, or why it has none.
    pub fn of(path: &Path) -> Result<Self, String> {
        Self::reading(path, |_, _| {})
    }

    /// Like `of`, with one of the files: exactly the bytes that the pin covers.
    pub(super) fn with(path: &Path, wanted: &Path) -> Result<(Self, Vec<u8>), String> {
        let mut found = None;
        let pin = Self::reading(path, |file, bytes| {
            if file == wanted {
                found = Some(bytes);
            }
        })?;
        found.map(|bytes| (pin, bytes)).ok_or_else(|| format!("`{}` is not there any more", wanted.display()))
    }

    fn reading(path: &Path, mut each: impl FnMut(&Path, Vec<u8>)) -> Result<Self, String> {
        let mut files = Vec::new();
        if path.is_dir() {
            collect(path, &mut files)?
        } else {
            files.push(path.to_path_buf())
        }
        files.sort();
        let (mut fields, mut left): (Vec<Vec<u8>>, u64) = (Vec::new(), PINNED_BYTES_MAX);
        for file in files {
            let failed = |error: std::io::Error| format!("`{}` cannot be read: {error}", file.display());
            let opened = File::open(&file).map_err(failed)?;
            let meta = opened.metadata().map_err(failed)?;
            let mut bytes = Vec::new();
            opened.take(left + 1).read_to_end(&mut bytes).map_err(failed)?;
            left = left
                .checked_sub(bytes.len() as u64)
                .ok_or_else(|| format!("it holds more than {} MiB", PINNED_BYTES_MAX >> 20))?;
            let name = file.strip_prefix(path).unwrap_or(Path::new("")).to_string_lossy().into_owned();
            let can_run = meta.permissions().mode() & 0o111 != 0;
            fields.push(name.into_bytes());
            fields.push(vec![u8::from(can_run)]);
            fields.push(Hash::of(&bytes).to_string().into_bytes());
            each(&file, bytes);
        }
        let fields: Vec<&[u8]> = fields.iter().map(Vec::as_slice).collect();
        Ok(Self(Hash::of_fields(&fields)))
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("`{}` cannot be read: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(failed)?);
        if kind.is_symlink() {
            return Err(format!("`{}` is a link", path.display()));
        }
        if kind.is_dir() {
            collect(&path, files)?;
        } else if kind.is_file() {
            files.push(path);
        } else {
            return Err(format!("`{}` is neither a file nor a folder", path.display()));
        }
        if files.len() > PINNED_FILES_MAX {
            return Err(format!("it holds more than {PINNED_FILES_MAX} files"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_name_and_right_counts() {
        let home = tempfile::tempdir().unwrap();
        let (folder, inner) = (home.path().join("x"), home.path().join("x/scripts"));
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(folder.join("SKILL.md"), "a").unwrap();
        std::fs::write(inner.join("run.sh"), "b").unwrap();
        let mut seen = vec![Pin::of(&folder).unwrap()];
        assert_eq!(seen[0], Pin::of(&folder).unwrap());
        let mut changes: Vec<Box<dyn Fn()>> = Vec::new();
        changes.push(Box::new(|| std::fs::write(inner.join("run.sh"), "c").unwrap()));
        changes.push(Box::new(|| std::fs::write(inner.join("more"), "").unwrap()));
        changes.push(Box::new(|| std::fs::rename(inner.join("more"), inner.join("less")).unwrap()));
        changes.push(Box::new(|| {
            std::fs::set_permissions(inner.join("run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
        }));
        for change in changes {
            change();
            let pin = Pin::of(&folder).unwrap();
            assert!(!seen.contains(&pin));
            seen.push(pin);
        }
        std::os::unix::fs::symlink("/etc/passwd", inner.join("link")).unwrap();
        assert!(Pin::of(&folder).unwrap_err().contains("is a link"));
    }
}
