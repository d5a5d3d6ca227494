//! The phrases of files that are put back.

use max_team_core::rewind::{FileState, RewindNote, SkippedChange, SkippedReason};
use max_team_runtime::rewind::{Moment, RewindPlan, Skip};

use super::Lang;

/// Changed files that a row names.
const NAMED_MAX: usize = 8;
/// Files that a row names.
const TOLD_MAX: usize = 5;

impl Lang {
    /// What was changed after some words, in a line: `+` for what is new, `-` for what has gone, `~` for the rest.
    pub fn changes_after(self, moment: &Moment) -> String {
        let mut files: Vec<(char, &str)> = Vec::new();
        for (_, change) in &moment.changes {
            let sign = match (change.before, change.after) {
                (FileState::Gone, _) => '+',
                (_, FileState::Gone) => '-',
                _ => '~',
            };
            match files.iter_mut().find(|(_, path)| *path == change.path) {
                // What came and was changed has come; what came and went is nothing worth a sign of its own.
                Some((known, _)) if *known != '+' || sign == '-' => *known = sign,
                Some(_) => {}
                None => files.push((sign, &change.path)),
            }
        }
        let more = files.len().saturating_sub(NAMED_MAX);
        let mut named: Vec<String> = files.iter().take(NAMED_MAX).map(|(sign, path)| format!("{sign}{path}")).collect();
        if named.is_empty() {
            named.push(self.rewind_unchanged().to_owned());
        }
        if more > 0 {
            named.push(format!("… +{more}"));
        }
        if moment.rewound > 0 {
            named.push(self.rewind_times().to_owned());
        }
        named.join("  ")
    }

    /// Why nothing is put back.
    pub fn nothing_put_back(self, plan: &RewindPlan) -> &'static str {
        if plan.is_complete() { self.nothing_to_rewind() } else { self.nothing_can_be_rewound() }
    }

    pub fn rewind_skip(self, why: &Skip) -> String {
        match why {
            Skip::Changed => self.skip_changed().to_owned(),
            Skip::Lost => self.skip_not_kept().to_owned(),
            Skip::Unread(why) => why.clone(),
            Skip::Large => self.skip_too_large().to_owned(),
            Skip::Away => self.skip_folder_missing().to_owned(),
        }
    }

    pub fn rewind_left(self, left: &SkippedChange) -> String {
        format!("{} ({})", self.rewind_left_what(left), self.rewind_left_why(left.why))
    }

    /// What cannot be put back.
    pub fn rewind_left_what(self, left: &SkippedChange) -> String {
        if left.path.is_empty() { self.a_command().to_owned() } else { left.path.clone() }
    }

    pub fn rewind_left_why(self, why: SkippedReason) -> String {
        match why {
            SkippedReason::Large => self.unknown_too_large().to_owned(),
            SkippedReason::Many => self.skip_too_many().to_owned(),
            SkippedReason::Slow => self.skip_too_slow().to_owned(),
            SkippedReason::Unread => self.skip_unreadable().to_owned(),
            SkippedReason::Background => self.skip_background().to_owned(),
            SkippedReason::Later => self.skip_changed_after_kill().to_owned(),
            SkippedReason::Cut => self.skip_unfinished().to_owned(),
        }
    }

    /// What the lead is told with the user's words.
    pub fn told_rewound(self, told: &RewindNote) -> String {
        let mut names: Vec<&str> = told.files.iter().take(TOLD_MAX).map(String::as_str).collect();
        if told.count > names.len() && !names.is_empty() {
            names.push("…");
        }
        let names = names.join(", ");
        let names = if names.is_empty() { names } else { self.names_after_colon(&names) };
        match (told.again, told.count) {
            (true, 0) => self.told_files_came_again(names),
            (true, count) => self.told_counted_files_came_again(count, names),
            (false, 0) => self.told_files_put_back(names),
            (false, count) => self.told_counted_files_put_back(count, names),
        }
    }
}
