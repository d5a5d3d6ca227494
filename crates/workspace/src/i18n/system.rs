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

/// Programs and occasions that a protected file is for. Others are proper names.
const PROTECTORS: [fn(Lang) -> &'static str; 12] = [
    Lang::protector_team,
    Lang::protector_coding_agent,
    Lang::protector_git,
    Lang::protector_git_attributes,
    Lang::protector_git_hook,
    Lang::protector_login,
    Lang::protector_python,
    Lang::protector_ci,
    Lang::protector_editor,
    Lang::protector_package_manager,
    Lang::protector_servers,
    Lang::protector_shell,
];

impl Lang {
    /// The program that runs or reads a protected file.
    pub fn protector(self, by: &str) -> &str {
        let known = PROTECTORS.into_iter().find(|name| name(Self::En) == by);
        known.map_or(by, |name| name(self))
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

#[cfg(test)]
mod tests {
    use max_team_core::policy::PROTECTED;

    use super::*;

    #[test]
    fn translated_protectors_are_those_of_the_table() {
        for protector in PROTECTORS {
            let english = protector(Lang::En);
            assert!(PROTECTED.iter().any(|row| row.by == english), "{english}");
            assert_eq!(Lang::Zh.protector(english), protector(Lang::Zh));
        }
        assert_eq!(Lang::Zh.protector("git"), "git");
        let is_name = |by: &str| !by.contains([' ', '(']);
        let left = PROTECTED.iter().find(|row| !is_name(row.by) && Lang::Zh.protector(row.by) == row.by);
        assert!(left.is_none(), "{left:?}");
    }
}
