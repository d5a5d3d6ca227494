//! Where a plan is written to: a plain file, never through a link that a project may have left there.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Whether a file can be put there.
pub fn has_place(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_file() => Ok(()),
        Ok(meta) if meta.is_symlink() => Err(io::Error::other("it is a link; name the file itself")),
        Ok(_) => Err(io::Error::other("something that is no file is there")),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            if parent.is_dir() { Ok(()) } else { Err(io::Error::other("there is no such folder")) }
        }
        Err(error) => Err(error),
    }
}

/// Puts a file there, in place of one that is.
pub fn put(path: &Path, text: &str) -> io::Result<()> {
    has_place(path)?;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options.open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_never_written_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link, other) = (folder.path().join("a"), folder.path().join("link"), folder.path().join("other"));
        std::fs::write(&other, "theirs").unwrap();
        std::os::unix::fs::symlink(&other, &link).unwrap();
        put(&file, "one").unwrap();
        put(&file, "two").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "two");
        for wrong in [link.as_path(), folder.path(), &folder.path().join("no/such/a")] {
            assert!(has_place(wrong).is_err() && put(wrong, "x").is_err(), "{}", wrong.display());
        }
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "theirs");
    }
}
