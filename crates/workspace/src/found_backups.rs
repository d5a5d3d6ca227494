//! Copies of the journal that lie beside it: backups without a name of their own, and what restorations have kept.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// At most so many copies are listed, the newest.
const NAMED_MAX: usize = 3;

/// The copies beside a journal, newest first.
pub fn beside(journal: &Path) -> Vec<String> {
    let files = journal.parent().and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten();
    let mut copies: Vec<(SystemTime, PathBuf)> = files
        .filter_map(|file| {
            let path = file.ok()?.path();
            let name = path.file_name()?.to_str()?;
            let is_copy = name.starts_with("journal-") && name.ends_with(".db") && path != journal;
            let meta = path.metadata().ok().filter(|meta| is_copy && meta.len() > 0)?;
            Some((meta.modified().ok()?, path))
        })
        .collect();
    copies.sort_unstable();
    copies.into_iter().rev().take(NAMED_MAX).map(|(_, path)| path.display().to_string()).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::{File, FileTimes};
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_newest_copies_are_named_first_and_nothing_else_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let names = ["journal-1.db", "journal-before-2.db", "journal-3.db", "journal-4.db"];
        for (age, name) in [(9, names[0]), (3, names[1]), (2, names[2]), (5, names[3])] {
            std::fs::write(path(name), "x").unwrap();
            let then = SystemTime::UNIX_EPOCH + Duration::from_secs(100 - age);
            File::options()
                .write(true)
                .open(path(name))
                .unwrap()
                .set_times(FileTimes::new().set_modified(then))
                .unwrap();
        }
        for other in ["journal.db", "journal.db-wal", "journal-5.db-wal"] {
            std::fs::write(path(other), "x").unwrap();
        }
        std::fs::write(path("journal-6.db"), "").unwrap();
        let found = beside(&path("journal.db"));
        assert_eq!(found, [names[2], names[1], names[3]].map(|name| path(name).display().to_string()));
    }
}
