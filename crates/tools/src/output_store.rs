//! Keeps outputs that are too large for a conversation as files to read.
//!
//! Each agent has a store of its own, outside the project, so that no agent reads there what only another may see, and
//! nothing is left in the tree. A model knows an output as `@output/NAME`. Names come from the content: the same
//! output is kept once. The oldest outputs make room for new ones; a store that was not used for long is removed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use max_team_core::hash::Hash;
use max_team_core::id::AgentId;
use max_team_core::limits::{KEPT_BYTES_MAX, KEPT_DAYS_MAX, KEPT_TOTAL_BYTES_MAX};

use crate::files::Root;

/// What a model writes in front of the name of an output.
pub(crate) const PREFIX: &str = "@output/";
/// Hexadecimal digits of a name: enough that one agent never meets two outputs of one name.
const NAME_DIGITS: usize = 16;

/// Where the large outputs of one agent are kept.
#[derive(Debug, Clone)]
pub struct OutputStore {
    dir: PathBuf,
}

impl OutputStore {
    /// A store in this folder, which is made when something is kept. Stores that lie beside it and are old are
    /// removed then.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// The store of an agent, in the user's folder.
    pub fn of(home: &Path, agent: AgentId) -> Self {
        Self::new(home.join("output").join(agent.to_string()))
    }

    /// Removes it with everything on it; one that was never made is no failure.
    pub fn clear(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Keeps a text, or as much of its beginning as is kept of one; the path by which a model reads it.
    pub fn keep(&self, text: &str) -> io::Result<String> {
        let text = text.get(..text.floor_char_boundary(KEPT_BYTES_MAX)).unwrap_or(text);
        let digits = Hash::of(text.as_bytes()).to_string();
        let name = format!("{}.txt", digits.get(..NAME_DIGITS).unwrap_or(&digits));
        self.make_dir()?;
        let path = self.dir.join(&name);
        match File::options().append(true).open(&path) {
            // The same output once more: now it is the youngest.
            Ok(file) => file.set_modified(SystemTime::now())?,
            Err(_) => self.write(&path, text)?,
        }
        self.make_room(&path);
        Ok(format!("{PREFIX}{name}"))
    }

    /// Begins an output whose content is not known yet, under the first free number from there on. Returns the number,
    /// the path by which a model reads it, and the file.
    pub(crate) fn begin(&self, kind: &str, from: u64) -> io::Result<(u64, String, File)> {
        self.make_dir()?;
        let mut number = from;
        loop {
            let name = format!("{kind}-{number}.txt");
            let path = self.dir.join(&name);
            match OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => {
                    self.make_room(&path);
                    return Ok((number, format!("{PREFIX}{name}"), file));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Puts a text under a name of its own, in place of what was there.
    pub(crate) fn put(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        self.make_dir()?;
        let path = self.dir.join(name);
        self.write(&path, text).map(|()| path)
    }

    /// The texts whose names end so.
    pub(crate) fn texts(&self, suffix: &str) -> Vec<String> {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| name.ends_with(suffix)));
        named.filter_map(|entry| fs::read_to_string(entry.path()).ok()).collect()
    }

    /// The folder, to read from.
    pub(crate) fn root(&self) -> io::Result<Root> {
        Root::open(&self.dir)
    }

    fn make_dir(&self) -> io::Result<()> {
        if self.dir.is_dir() {
            return Ok(());
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        if let Some(above) = self.dir.parent() {
            remove_old(above, Duration::from_secs(KEPT_DAYS_MAX * 24 * 3_600));
        }
        Ok(())
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        let temp = path.with_extension(format!("{}.tmp", std::process::id()));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temp)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| fs::rename(&temp, path));
        if written.is_err() {
            let _ = fs::remove_file(&temp);
        }
        written
    }

    /// Removes the oldest outputs until the rest fits; never the one that was just kept.
    fn make_room(&self, kept: &Path) {
        let Ok(entries) = fs::read_dir(&self.dir) else { return };
        let mut outputs: Vec<(SystemTime, u64, PathBuf)> = entries
            .filter_map(|entry| {
                let (path, about) = entry.ok().and_then(|entry| Some((entry.path(), entry.metadata().ok()?)))?;
                Some((about.modified().ok()?, about.len(), path))
            })
            .collect();
        outputs.sort_unstable();
        let mut total: u64 = outputs.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, path) in outputs.iter().filter(|(.., path)| path != kept) {
            if total <= KEPT_TOTAL_BYTES_MAX {
                return;
            }
            // What cannot be removed is tried again when the next one is kept.
            total -= if fs::remove_file(path).is_ok() { *bytes } else { 0 };
        }
    }
}

/// Removes the folders in which nothing has been made or removed for that long.
fn remove_old(above: &Path, age: Duration) {
    let Ok(entries) = fs::read_dir(above) else { return };
    for entry in entries.flatten() {
        let is_old = entry.metadata().and_then(|about| about.modified()).is_ok_and(|at| {
            // A clock that was set back makes nothing old.
            SystemTime::now().duration_since(at).is_ok_and(|since| since > age)
        });
        if is_old && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(store: &OutputStore) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(&store.dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_same_output_is_kept_once_and_is_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::TempDir::new().unwrap();
        let store = OutputStore::new(home.path().join("output/agent"));
        let name = store.keep("long").unwrap();
        assert_eq!(store.keep("long").unwrap(), name);
        let file = name.strip_prefix(PREFIX).unwrap();
        assert_eq!(names(&store), [file]);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&store.dir), mode(&store.dir.join(file))), (0o700, 0o600));
    }

    #[test]
    fn the_oldest_make_room() {
        let home = tempfile::TempDir::new().unwrap();
        let store = OutputStore::new(home.path().join("agent"));
        fs::create_dir(&store.dir).unwrap();
        for (name, age) in [("old.txt", 100), ("young.txt", 10)] {
            // Sparse: only its length counts.
            let file = File::create(store.dir.join(name)).unwrap();
            file.set_len(KEPT_TOTAL_BYTES_MAX / 2).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
        }
        let name = store.keep("new").unwrap();
        let mut want = vec![name.strip_prefix(PREFIX).unwrap().to_owned(), "young.txt".to_owned()];
        want.sort();
        assert_eq!(names(&store), want);
    }

    #[test]
    fn unused_output_stores_are_removed() {
        let home = tempfile::TempDir::new().unwrap();
        for (name, days) in [("gone", KEPT_DAYS_MAX + 1), ("used", 1)] {
            fs::create_dir(home.path().join(name)).unwrap();
            let at = SystemTime::now() - Duration::from_secs(days * 24 * 3_600);
            File::open(home.path().join(name)).unwrap().set_modified(at).unwrap();
        }
        OutputStore::new(home.path().join("new")).keep("x").unwrap();
        assert!(!home.path().join("gone").exists() && home.path().join("used").exists());
    }
}
