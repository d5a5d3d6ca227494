//! Writes lines without their secrets, and keeps the first error.
//!
//! A file gets its name only when it is complete.

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use max_team_core::secret::{redact, redact_json};
use tempfile::NamedTempFile;

use max_team_workspace::exit::{CliError, Exit};

/// Lines on their way.
pub(super) struct AuditWriter<'w> {
    to: BufWriter<Box<dyn Write + 'w>>,
    lines: u64,
    ended: io::Result<()>,
}

impl<'w> AuditWriter<'w> {
    pub(super) fn new(to: Box<dyn Write + 'w>) -> Self {
        Self { to: BufWriter::new(to), lines: 0, ended: Ok(()) }
    }

    pub(super) fn line(&mut self, line: &[u8]) -> ControlFlow<()> {
        // The first failure is kept as the reason.
        if self.ended.is_err() {
            return ControlFlow::Break(());
        }
        self.lines += 1;
        let text = String::from_utf8_lossy(line);
        let safe = redact_json(&text).map_or_else(|| redact(&text), Cow::Owned);
        match self.to.write_all(safe.as_bytes()).and_then(|()| self.to.write_all(b"\n")) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => self.fail(error),
        }
    }

    /// Something that is no line of what is counted.
    pub(super) fn put(&mut self, text: &str) {
        if self.ended.is_ok() {
            self.ended = self.to.write_all(redact(text).as_bytes()).and_then(|()| self.to.write_all(b"\n"));
        }
    }

    pub(super) fn fail(&mut self, error: io::Error) -> ControlFlow<()> {
        self.ended = Err(error);
        ControlFlow::Break(())
    }

    /// How many lines there were. A reader that has seen enough (`| head`) is no failure.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        match self.ended.and_then(|()| self.to.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(self.lines),
        }
    }
}

/// A new file for its owner alone, under a name of its own until it is whole.
pub(super) struct ExportFile {
    made: NamedTempFile,
    path: PathBuf,
}

impl ExportFile {
    /// Begins a file; nothing is overwritten.
    pub(super) fn begin(path: PathBuf) -> Result<Self, CliError> {
        if path.exists() {
            return Err(failed(&path, &io::ErrorKind::AlreadyExists.into()));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let made = NamedTempFile::new_in(folder).map_err(|error| failed(&path, &error))?;
        Ok(Self { made, path })
    }

    pub(super) fn writer(&self) -> io::Result<std::fs::File> {
        self.made.reopen()
    }

    pub(super) fn failed(&self, error: &io::Error) -> CliError {
        failed(&self.path, error)
    }

    /// Gives the file its name.
    pub(super) fn keep(self) -> Result<String, CliError> {
        let Self { made, path } = self;
        let synced = made.as_file().sync_all();
        synced
            .and_then(|()| made.persist_noclobber(&path).map(drop).map_err(|kept| kept.error))
            .map_err(|error| failed(&path, &error))?;
        Ok(path.display().to_string())
    }
}

fn failed(path: &Path, error: &io::Error) -> CliError {
    let path = path.display().to_string();
    CliError::said(Exit::Failed, |lang| match error.kind() {
        io::ErrorKind::AlreadyExists => lang.file_is_there(&path),
        _ => lang.cannot_write(&path, lang.io_fault(error)),
    })
}
