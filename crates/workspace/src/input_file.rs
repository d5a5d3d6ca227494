//! Reads a file that the user names on the command line, with a size limit and without blocking for ever.
//!
//! The name may stand for anything: an endless device, a pipe without a writer. A pipe that this process was started
//! with (`/dev/stdin`, `<(command)`) is read; any other pipe is refused, because its writer may never come.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{OFlags, fcntl_setfl};

/// Bytes of JSON that a flag names as `@FILE`.
pub const JSON_BYTES_MAX: u64 = 1 << 20;

/// Where descriptors that we were started with have names.
const OURS: [&str; 3] = ["/dev/fd", "/dev/stdin", "/proc/self/fd"];

/// A pipe that another program writes.
#[derive(Debug, thiserror::Error)]
#[error("it is a pipe, which may never end; write it into a file first")]
pub struct EndlessPipe;

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum InputFileError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
    #[error("it is not UTF-8 (byte {0})")]
    NotText(usize),
}

/// Opens a file for reading, at once.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let file = File::options().read(true).custom_flags(i32::try_from(flags).unwrap_or_default()).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if kind.is_fifo() && !OURS.iter().any(|ours| path.starts_with(ours)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, EndlessPipe));
    }
    // Only opening must not block; reading waits for the writer of our own pipe.
    fcntl_setfl(&file, OFlags::empty())?;
    Ok(file)
}

/// The text of a file of at most so many bytes.
pub fn text(path: &Path, bytes_max: u64) -> Result<String, InputFileError> {
    let mut bytes = Vec::new();
    open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > bytes_max) {
        return Err(InputFileError::TooLarge(bytes_max));
    }
    String::from_utf8(bytes).map_err(|error| InputFileError::NotText(error.utf8_error().valid_up_to()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_read_without_an_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("plain"), "abc").unwrap();
        std::fs::write(path("latin"), b"ab\xe4").unwrap();
        std::os::unix::fs::symlink("/dev/zero", path("zero")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
        let read = |name: &str, most| text(&path(name), most).map_err(|why| why.to_string());
        assert_eq!(read("plain", 3), Ok("abc".to_owned()));
        assert_eq!(read("plain", 2), Err("it is larger than 2 bytes".to_owned()));
        assert_eq!(read("zero", 9), Err("it is larger than 9 bytes".to_owned()));
        assert_eq!(read("latin", 9), Err("it is not UTF-8 (byte 2)".to_owned()));
        assert_eq!(read("pipe", 9), Err("it is a pipe, which may never end; write it into a file first".to_owned()));
        assert!(read("", 9).unwrap_err().contains("directory") && read("none", 9).is_err());
        // Nothing, by its usual name.
        assert_eq!(text(Path::new("/dev/null"), 9).unwrap(), "");
    }
}
