//! The phrases about agent files, settings and permission files: why one cannot be read, and what a project's may not
//! choose.

use max_team_runtime::yaml::FaultKind;

use super::Lang;
use crate::config::quote;
use crate::config::trust::ProjectLimit;

impl Lang {
    /// Why a value of a project's file is held back.
    pub(crate) fn project_limit(self, limit: ProjectLimit) -> &'static str {
        match limit {
            ProjectLimit::Key => self.project_limit_key(),
            ProjectLimit::Run => self.project_limit_run(),
            ProjectLimit::Read => self.project_limit_read(),
            ProjectLimit::Free => self.project_limit_free(),
            ProjectLimit::Hosts => self.project_limit_hosts(),
            ProjectLimit::Outside => self.project_limit_outside(),
            ProjectLimit::Audit => self.project_limit_audit(),
            ProjectLimit::Memory => self.project_limit_memory(),
            ProjectLimit::Keep => self.project_limit_keep(),
            ProjectLimit::Pages => self.project_limit_pages(),
            ProjectLimit::Spend => self.project_limit_spend(),
        }
    }

    /// What is wrong with a YAML text. The words of the YAML library are English in every language.
    pub(crate) fn yaml_fault(self, kind: &FaultKind) -> String {
        match kind {
            FaultKind::KeyTwice(Some(key)) => self.yaml_key_twice(quote(key)),
            FaultKind::KeyTwice(None) => self.yaml_some_key_twice().to_owned(),
            FaultKind::SecondDocument => self.yaml_second_document().to_owned(),
            FaultKind::EmptyKey => self.yaml_key_empty().to_owned(),
            FaultKind::NoNumber(value) => self.yaml_no_number(quote(value)),
            FaultKind::TooLarge => self.yaml_too_large().to_owned(),
            FaultKind::HeadUnclosed => self.front_matter_open().to_owned(),
            FaultKind::HeadTooLong(bytes) => self.front_matter_long(*bytes),
            FaultKind::Syntax(said) => self.yaml_syntax(quote(said)),
        }
    }

    /// Why a text is no JSON.
    pub fn json_fault(self, error: &serde_json::Error) -> String {
        match self {
            Self::En => error.to_string(),
            Self::Zh => self.json_place(error.line(), error.column()),
        }
    }

    /// Why the system refused: in English in its own words.
    pub fn system_fault(self, error: &std::io::Error) -> String {
        match self {
            Self::En => error.to_string(),
            Self::Zh => self.io_fault(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use max_team_runtime::front_matter;

    use super::*;
    use crate::config::yaml;

    #[test]
    fn faults_of_yaml_are_translated() {
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        let texts = ["a: 1\na: 2\n", "a: 1\n---\nb: 2\n", "~: 1\n", "a: .inf\n", deep.as_str(), "a: [1\n"];
        let front = format!("---\nname: {}\n---\n", "x".repeat(front_matter::HEAD_BYTES_MAX));
        let files = ["---\nname: x\n", front.as_str()];
        let faults = texts.map(|text| yaml::parse(text).unwrap_err()).into_iter();
        let faults = faults.chain(files.map(|file| front_matter::read(file, |key| key == "name").unwrap_err()));
        for fault in faults {
            assert_eq!(Lang::En.yaml_fault(&fault.kind), fault.kind.to_string());
            assert_ne!(Lang::Zh.yaml_fault(&fault.kind), fault.kind.to_string());
        }
    }
}
