//! The result of a search as it grows: grouped by file, bounded, with notes on what is left out.

use std::path::Path;

use max_team_core::limits::SEARCH_MATCHES_MAX;

use super::RESULT_BYTES_MAX;
use crate::text::{many, visible};

/// What a file gave.
#[derive(Debug, Default)]
pub(super) struct FileMatches {
    pub(super) lines: Vec<ReportLine>,
    pub(super) matches: usize,
    /// Whether there may be more in the file.
    pub(super) is_cut: bool,
    pub(super) skipped: Option<SkipReason>,
}

#[derive(Debug)]
pub(super) enum ReportLine {
    Match(String),
    Around(String),
    Gap,
}

/// Why a file was not searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SkipReason {
    Binary,
    Linked,
    Unreadable,
    /// It holds a private key.
    Key,
}

impl FileMatches {
    pub(super) fn skipped(why: SkipReason) -> Self {
        Self { skipped: Some(why), ..Self::default() }
    }
}

/// The result as it grows.
#[derive(Debug, Default)]
pub(super) struct SearchReport {
    text: String,
    /// What stands before every path.
    label: &'static str,
    files_only: bool,
    matches: usize,
    files: usize,
    pub(super) searched: usize,
    pub(super) is_cut: bool,
    binary: usize,
    linked: usize,
    unreadable: usize,
    keys: usize,
}

impl SearchReport {
    pub(super) fn new(files_only: bool, label: &'static str) -> Self {
        Self { files_only, label, ..Self::default() }
    }

    pub(super) fn is_full(&self) -> bool {
        self.matches >= SEARCH_MATCHES_MAX || self.text.len() >= RESULT_BYTES_MAX
    }

    pub(super) fn add(&mut self, path: &Path, found: FileMatches) {
        match found.skipped {
            Some(SkipReason::Binary) => self.binary += 1,
            Some(SkipReason::Linked) => self.linked += 1,
            Some(SkipReason::Unreadable) => self.unreadable += 1,
            Some(SkipReason::Key) => self.keys += 1,
            None => self.searched += 1,
        }
        if found.matches == 0 {
            return;
        }
        if self.is_full() {
            self.is_cut = true;
            return;
        }
        self.files += 1;
        let name = visible(&Path::new(self.label).join(path).to_string_lossy());
        if self.files_only {
            self.matches += 1;
            self.text.push_str(&format!("{name}\n"));
            return;
        }
        self.is_cut |= found.is_cut;
        let gap = if self.text.is_empty() { "" } else { "\n" };
        self.text.push_str(&format!("{gap}{name}\n"));
        for line in &found.lines {
            if self.is_full() {
                self.is_cut = true;
                break;
            }
            let text = match line {
                ReportLine::Match(text) | ReportLine::Around(text) => text,
                ReportLine::Gap => "--",
            };
            self.matches += usize::from(matches!(line, ReportLine::Match(_)));
            self.text.push_str(&format!("{text}\n"));
        }
    }

    pub(super) fn finish(mut self, unread: usize, unseen: usize) -> String {
        let mut notes = vec![match (self.files, self.files_only) {
            (0, _) => format!("no matches in {}", many(self.searched, "file")),
            (files, true) => many(files, "file"),
            (files, false) => format!("{} in {}", many(self.matches, "match"), many(files, "file")),
        }];
        if self.is_cut {
            notes.push("there are more; narrow it with `path`, `glob` or a longer pattern".to_owned());
        }
        if self.files == 0 && self.binary > 0 {
            notes.push(format!("{} not searched", many(self.binary, "binary file")));
        }
        if self.linked > 0 {
            notes.push(format!("{} not searched; search them by name", many(self.linked, "hard-linked file")));
        }
        if self.keys > 0 {
            notes.push(format!("{} not searched", many(self.keys, "private key")));
        }
        if unseen > 0 {
            notes.push(format!("{} not for you to see left out", many(unseen, "name")));
        }
        if self.unreadable + unread > 0 {
            notes.push(format!("{} could not be searched", many(self.unreadable + unread, "file or folder")));
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&format!("[{}]", notes.join("; ")));
        self.text
    }
}
