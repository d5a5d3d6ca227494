//! The skills that come with this program.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use super::{Scope, Skill, contract};

/// Contracts by name.
const CONTRACTS: [(&str, &str); 4] = [
    ("bug_triage", include_str!("../../../../skills/bug_triage/skill.yaml")),
    ("code_review", include_str!("../../../../skills/code_review/skill.yaml")),
    ("impact_analysis", include_str!("../../../../skills/impact_analysis/skill.yaml")),
    ("test_coverage_analysis", include_str!("../../../../skills/test_coverage_analysis/skill.yaml")),
];

/// All of them. A test makes sure that each can be read.
pub(super) fn all() -> Vec<Skill> {
    // Read once: they never change.
    static ALL: LazyLock<Vec<Skill>> = LazyLock::new(|| {
        let read = |(name, text): (&str, &str)| contract::read(text.as_bytes(), &file(name), name, Scope::Builtin).ok();
        CONTRACTS.into_iter().filter_map(read).collect()
    });
    ALL.clone()
}

/// The text of one, as it stands in its file.
pub(super) fn text(file: &Path) -> Option<&'static str> {
    CONTRACTS.iter().find(|(name, _)| self::file(name) == file).map(|(_, text)| *text)
}

fn file(name: &str) -> PathBuf {
    Path::new("built-in").join(name).join("skill.yaml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_can_be_read_and_have_nothing_odd() {
        let all = all();
        assert_eq!(all.len(), CONTRACTS.len());
        for skill in all {
            assert!(skill.warnings.is_empty(), "{skill:?}");
            let text = text(&skill.file).unwrap_or_default();
            assert!(contract::read(text.as_bytes(), &skill.file, &skill.name, Scope::User).is_ok(), "{skill:?}");
            assert!(text.contains(&skill.name));
        }
    }
}
