//! A cache of parsed front matter, by file, time and size: a new catalogue reads only changed files.
//!
//! It is kept in a file of the user's folder from one start to the next. It only saves work: without it, or if it
//! cannot be read, everything is read again; what a skill says and may do when it is loaded comes from its own file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::{Scope, Skill};
use crate::shared::lock;

/// Files that are remembered.
const KNOWN_MAX: usize = 4_000;
/// Bytes of the file that they are kept in.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Changes with the format of a parsed front matter: entries of other versions are read again.
const VERSION: u32 = 3;

/// The cache, shared by its users.
#[derive(Debug, Clone, Default)]
pub(super) struct SkillCache(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// The file of the cache, if it has one.
    file: Option<PathBuf>,
    files: OnceLock<Mutex<HashMap<PathBuf, Front>>>,
    is_new: AtomicBool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Front {
    time_ns: u128,
    size: u64,
    read: Result<Skill, String>,
}

#[derive(Serialize, Deserialize)]
struct CacheFile<F> {
    version: u32,
    files: F,
}

impl SkillCache {
    /// Loads the cache of an earlier start.
    pub(super) fn kept_in(file: Option<PathBuf>) -> Self {
        Self(Arc::new(Inner { file, ..Inner::default() }))
    }

    /// The skill in a file, from the cache or as `parse` reads it now.
    pub(super) fn read(
        &self,
        file: &Path,
        scope: Scope,
        parse: impl FnOnce() -> Result<Skill, String>,
    ) -> Result<Skill, String> {
        let meta = file.metadata().map_err(|error| format!("it cannot be read: {error}"))?;
        if !meta.is_file() {
            return Err("it is not a regular file".to_owned());
        }
        let since = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let (time_ns, size) = (since.unwrap_or_default().as_nanos(), meta.len());
        let files = self.0.files.get_or_init(|| Mutex::new(self.0.load()));
        if let Some(front) = lock(files).get(file)
            && (front.time_ns, front.size) == (time_ns, size)
        {
            return front.read.clone().map(|skill| Skill { scope, ..skill });
        }
        let read = parse();
        let mut files = lock(files);
        if files.len() >= KNOWN_MAX {
            files.clear();
        }
        files.insert(file.to_path_buf(), Front { time_ns, size, read: read.clone() });
        self.0.is_new.store(true, Ordering::Release);
        read
    }

    /// Saves new entries for the next start. If that fails, the next start reads more; nothing is lost.
    pub(super) fn keep(&self) {
        let Some(file) = self.0.file.as_ref().filter(|_| self.0.is_new.swap(false, Ordering::AcqRel)) else { return };
        let Some(files) = self.0.files.get() else { return };
        let Ok(text) = serde_json::to_vec(&CacheFile { version: VERSION, files: &*lock(files) }) else { return };
        let draft = file.with_extension(format!("{}.tmp", std::process::id()));
        let made = file.parent().map_or(Ok(()), std::fs::create_dir_all);
        let written = made.and_then(|()| std::fs::write(&draft, text)).and_then(|()| std::fs::rename(&draft, file));
        if written.is_err() {
            drop(std::fs::remove_file(&draft));
        }
    }
}

impl Inner {
    fn load(&self) -> HashMap<PathBuf, Front> {
        let file = self.file.as_ref().filter(|file| file.metadata().is_ok_and(|meta| meta.len() <= FILE_BYTES_MAX));
        let bytes = file.and_then(|file| std::fs::read(file).ok()).unwrap_or_default();
        let kept: Option<CacheFile<HashMap<PathBuf, Front>>> = serde_json::from_slice(&bytes).ok();
        kept.filter(|kept| kept.version == VERSION).map(|kept| kept.files).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(text: &str) -> Result<Skill, String> {
        super::super::read(text.as_bytes(), Path::new("SKILL.md"), "x", Scope::User)
    }

    #[test]
    fn unchanged_skills_are_not_read_again() {
        let home = tempfile::tempdir().unwrap();
        let (file, index) = (home.path().join("SKILL.md"), home.path().join("kept/skills.json"));
        std::fs::write(&file, "one").unwrap();
        let asked = |known: &SkillCache, text: &str| {
            let mut is_read = false;
            let read = known.read(&file, Scope::Project, || {
                is_read = true;
                skill(text)
            });
            (read.map(|skill| skill.description), is_read)
        };
        let known = SkillCache::kept_in(Some(index.clone()));
        assert_eq!(asked(&known, "---\ndescription: A\n---"), (Ok("A".to_owned()), true));
        assert_eq!(asked(&known, ""), (Ok("A".to_owned()), false));
        known.keep();
        let next = SkillCache::kept_in(Some(index.clone()));
        assert_eq!(asked(&next, ""), (Ok("A".to_owned()), false), "another start knows it too");
        std::fs::write(&file, "longer").unwrap();
        assert_eq!(asked(&next, "---\ndescription: B\n---"), (Ok("B".to_owned()), true));
        for broken in ["", "{", "[]", "{\"version\": 0, \"files\": {}}"] {
            std::fs::write(&index, broken).unwrap();
            assert!(asked(&SkillCache::kept_in(Some(index.clone())), "").1, "{broken:?}");
        }
    }
}
