//! What was typed before: `<home>/history`, one JSON string per line, newest last.
//!
//! It is read the first time it is needed and not before. The file is for its owner only (0600), has a bounded size,
//! and several programs may add to it at once. A history that cannot be read or written is an empty history, never
//! an error: it must not stand between the user and the team.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// Entries that are kept.
const ENTRIES_MAX: usize = 1_000;
/// Entries beyond that before the file is written anew.
const ENTRIES_SLACK: usize = 200;
/// Bytes at the end of the file that are looked at.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Entries with more bytes are not kept: they were pasted, not typed.
const ENTRY_BYTES_MAX: usize = 16 << 10;

#[derive(Debug)]
pub(super) struct History {
    path: PathBuf,
    entries: Option<Vec<String>>,
    /// The entry that is shown, counted from the newest, while the user goes through them.
    place: Option<usize>,
    /// What was being written before.
    draft: String,
}

impl History {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, entries: None, place: None, draft: String::new() }
    }

    /// The next older entry; the first step away keeps the draft.
    pub(super) fn older(&mut self, draft: &str) -> Option<String> {
        let next = self.place.map_or(0, |place| place + 1);
        let found = self.entries().iter().rev().nth(next)?.clone();
        if self.place.is_none() {
            self.draft = draft.to_owned();
        }
        self.place = Some(next);
        Some(found)
    }

    /// The next newer entry, or at last the draft.
    pub(super) fn newer(&mut self) -> Option<String> {
        let place = self.place?;
        self.place = place.checked_sub(1);
        match self.place {
            Some(place) => self.entries().iter().rev().nth(place).cloned(),
            None => Some(std::mem::take(&mut self.draft)),
        }
    }

    /// The user has begun to edit what is shown.
    pub(super) fn settle(&mut self) {
        self.place = None;
    }

    /// The entry that holds some words, older than `skip` matches of them.
    pub(super) fn search(&mut self, words: &str, skip: usize) -> Option<String> {
        let mut found = self.entries().iter().rev().filter(|entry| entry.contains(words));
        found.nth(skip).cloned()
    }

    pub(super) fn add(&mut self, text: &str) {
        self.place = None;
        if text.trim().is_empty() || text.len() > ENTRY_BYTES_MAX {
            return;
        }
        if let Some(entries) = &mut self.entries {
            if entries.last().is_some_and(|last| last == text) {
                return;
            }
            entries.push(text.to_owned());
        }
        drop(self.append(text));
    }

    fn entries(&mut self) -> &[String] {
        if self.entries.is_none() {
            let (entries, long) = self.load().unwrap_or_default();
            if long {
                drop(self.rewrite(&entries));
            }
            self.entries = Some(entries);
        }
        self.entries.as_deref().unwrap_or_default()
    }

    /// The newest entries, and whether the file has become too long.
    fn load(&self) -> std::io::Result<(Vec<String>, bool)> {
        let mut file = File::open(&self.path)?;
        let size = file.metadata()?.len();
        let cut = size > FILE_BYTES_MAX;
        if cut {
            file.seek(SeekFrom::Start(size - FILE_BYTES_MAX))?;
        }
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        // Lines that are no strings (the first one, cut in half, or a foreign file) are passed over.
        let mut entries: Vec<String> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        entries.dedup();
        let long = cut || entries.len() > ENTRIES_MAX + ENTRIES_SLACK;
        entries.drain(..entries.len().saturating_sub(ENTRIES_MAX));
        Ok((entries, long))
    }

    fn append(&self, text: &str) -> std::io::Result<()> {
        let mut line = serde_json::to_string(text)?;
        line.push('\n');
        OpenOptions::new().create(true).append(true).mode(0o600).open(&self.path)?.write_all(line.as_bytes())
    }

    fn rewrite(&self, entries: &[String]) -> std::io::Result<()> {
        let fresh = self.path.with_extension(format!("{}.new", std::process::id()));
        let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&fresh)?;
        for entry in entries {
            writeln!(file, "{}", serde_json::to_string(entry)?)?;
        }
        std::fs::rename(&fresh, &self.path)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn goes_back_and_forth_and_keeps_the_draft() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history");
        let mut history = History::new(path.clone());
        assert_eq!(history.older("x"), None);
        for text in ["one", "two\nlines", "two\nlines", "  ", "three 三"] {
            history.add(text);
        }
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

        let mut again = History::new(path);
        assert_eq!(again.older("draft").as_deref(), Some("three 三"));
        assert_eq!(again.older("three 三").as_deref(), Some("two\nlines"));
        assert_eq!(again.older("").as_deref(), Some("one"));
        assert_eq!(again.older(""), None);
        assert_eq!(again.newer().as_deref(), Some("two\nlines"));
        assert_eq!(again.newer().as_deref(), Some("three 三"));
        assert_eq!(again.newer().as_deref(), Some("draft"));
        assert_eq!(again.newer(), None);
        assert_eq!(again.search("o", 0).as_deref(), Some("two\nlines"));
        assert_eq!(again.search("o", 1).as_deref(), Some("one"));
        assert_eq!(again.search("o", 2), None);
    }

    #[test]
    fn the_file_stays_bounded_and_rubbish_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history");
        let lines: String = (0..1_500).map(|number| format!("\"entry {number}\"\n")).collect();
        std::fs::write(&path, format!("not json\n{lines}")).unwrap();
        let mut history = History::new(path.clone());
        assert_eq!(history.older("").as_deref(), Some("entry 1499"));
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), ENTRIES_MAX);
        history.add(&"x".repeat(ENTRY_BYTES_MAX + 1));
        assert_eq!(history.older("").as_deref(), Some("entry 1499"));
    }
}
