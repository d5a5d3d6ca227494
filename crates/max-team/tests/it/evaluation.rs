//! Two jobs of the evaluation (`scripts/eval.sh`), so that it goes on working: its outcome, its counts and its traces.

use max_team_testkit::eval::{Character, Outcome, names, play};

use crate::program::Program;

#[test]
fn a_strong_model_edits_a_file_without_a_wasted_call() {
    let folder = tempfile::tempdir().unwrap();
    let row = play("edit", Character::Strong, Program::binary(), folder.path()).unwrap();
    assert!(row.is_fine() && row.outcome == Outcome::Right, "{row:?}");
    assert_eq!((row.wasted, row.lost.len(), row.codes.as_slice()), (0, 0, &[0][..]), "{row:?}");
    assert!(row.calls >= 4 && row.fixed.contains_key("lead") && row.fixed.contains_key("coder"), "{row:?}");
    // The program counts what was sent.
    let counted = usize::try_from(row.usage_tokens).unwrap();
    assert!(counted.abs_diff(row.input_tokens) <= row.calls, "{row:?}");
    let trace = std::fs::read_to_string(folder.path().join("trace.txt")).unwrap();
    assert!(trace.contains("edit_file") && trace.contains("mark-typo"), "{trace}");
}

#[test]
fn a_weak_models_mistakes_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let row = play("memory", Character::Weak, Program::binary(), folder.path()).unwrap();
    assert_eq!(row.outcome, Outcome::Right, "{row:?}");
    assert!(row.wasted >= 1 && !row.mistakes.is_empty(), "{row:?}");
}

#[test]
fn there_are_ten_jobs() {
    assert_eq!(names().len(), 10);
    let folder = tempfile::tempdir().unwrap();
    assert!(play("nothing", Character::Strong, Program::binary(), folder.path()).is_none());
}
