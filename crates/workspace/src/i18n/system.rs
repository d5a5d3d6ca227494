//! Failures of the operating system, as texts without error numbers.

use std::io::{Error, ErrorKind};

use max_team_llm::CatalogError;

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

/// Programs and people that a protected file is for, and their names in Chinese.
const PROTECTORS: [(&str, &str); 10] = [
    ("Claude Code and max-team", "Claude Code 和 max-team"),
    ("a coding agent", "编码智能体"),
    ("a git hook", "git 钩子"),
    ("every login", "每次登录"),
    ("every start of Python", "每次启动 Python"),
    ("the CI service", "CI 服务"),
    ("the editor", "编辑器"),
    ("the package manager", "包管理器"),
    ("the servers that agents start", "智能体启动的服务器"),
    ("the shell", "shell"),
];

impl Lang {
    /// The program that runs or reads a protected file.
    pub fn protector(self, by: &str) -> &str {
        let chinese = PROTECTORS.iter().find(|(english, _)| self == Self::Zh && *english == by);
        chinese.map_or(by, |(_, chinese)| chinese)
    }
}

impl Lang {
    /// Why a model or provider is not in the catalogue.
    pub fn catalog_fault(self, error: &CatalogError) -> String {
        match (self, error) {
            (Self::Zh, CatalogError::UnknownProvider { name, .. }) => self.unknown_provider(name),
            (Self::Zh, CatalogError::UnknownModel { name, .. }) => self.unknown_model(name),
            _ => error.to_string(),
        }
    }
}
