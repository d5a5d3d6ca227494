//! Failures of the operating system, as texts without error numbers.

use std::io::{Error, ErrorKind};

use super::Lang;
use crate::input_file::{EndlessPipe, InputFileError};

impl Lang {
    /// Why the system did not do something with a file.
    pub fn io_fault(self, error: &Error) -> String {
        if error.get_ref().is_some_and(|cause| cause.is::<EndlessPipe>()) {
            return self.io_pipe().to_owned();
        }
        match error.kind() {
            ErrorKind::NotFound => self.io_missing().to_owned(),
            ErrorKind::PermissionDenied => self.io_denied().to_owned(),
            ErrorKind::AlreadyExists => self.io_exists().to_owned(),
            ErrorKind::IsADirectory => self.io_directory().to_owned(),
            ErrorKind::NotADirectory => self.io_no_directory().to_owned(),
            ErrorKind::StorageFull => self.io_disk_full().to_owned(),
            ErrorKind::ReadOnlyFilesystem => self.io_read_only().to_owned(),
            _ => error.to_string(),
        }
    }

    /// Why a file that the user has named is not read.
    pub fn input_fault(self, error: &InputFileError) -> String {
        match error {
            InputFileError::Io(error) => self.io_fault(error),
            InputFileError::TooLarge(bytes) => self.input_too_large(*bytes),
            InputFileError::NotText(at) => self.input_not_text(*at),
        }
    }
}
