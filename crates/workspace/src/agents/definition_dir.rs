//! A folder of definitions: what is in it, and whether that has changed since.
//!
//! Only the named folder is looked into, to a bounded depth; what lies outside it by way of a link is not read where a
//! stranger could have made the link, and neither is a folder that is such a link itself. A file that cannot be used is kept with the reason, so that it can be told. A
//! look for changes asks for the stamps of what was seen and reads only what is new.

use std::collections::BTreeMap;
use std::fs::{self, DirEntry};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use max_team_runtime::parallel;
use max_team_tools::command::is_planted;
use rustix::fs::OFlags;

use super::agent_file::{self, AgentFile, FILE_BYTES_MAX};
use crate::config::{ConfigFile, Env, FileTrust};
use crate::i18n::Translated;

/// Folders within folders.
const DEPTH_MAX: usize = 6;
/// Definitions of one folder.
const FILES_MAX: usize = 2_000;
/// Directory entries of any kind that are looked at in one folder.
const NAMES_MAX: usize = 10_000;
/// Texts that lie beside definitions and are none.
const BESIDE: [&str; 4] = ["readme.md", "agents.md", "claude.md", "changelog.md"];

/// Who put a definition there; the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    Managed,
    Flag,
    Project,
    User,
    Builtin,
}

impl Scope {
    pub fn name(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::Flag => "flag",
            Self::Project => "project",
            Self::User => "user",
            Self::Builtin => "built-in",
        }
    }
}

/// What tells one state of a file or a folder from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    node: (u64, u64),
    bytes: u64,
    changed: (i64, i64),
}

impl FileStamp {
    fn of(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().as_ref().map(Self::from)
    }
}

impl From<&fs::Metadata> for FileStamp {
    fn from(meta: &fs::Metadata) -> Self {
        // The inode's change time: unlike the modification time, programs cannot set it back.
        Self { node: (meta.dev(), meta.ino()), bytes: meta.len(), changed: (meta.ctime(), meta.ctime_nsec()) }
    }
}

/// A file, and what became of it.
#[derive(Debug)]
pub(super) struct DefinitionFile {
    path: PathBuf,
    stamp: Option<FileStamp>,
    /// How messages call it.
    pub(super) shown: String,
    /// `None`: it is no definition. An error says why it is not used.
    card: Result<Option<AgentFile>, Translated>,
    /// What it was before it could not be used any more.
    kept: Option<AgentFile>,
}

impl DefinitionFile {
    /// The definition: a slip of the pen must not send anybody away who is at work, so the last good one counts.
    pub(super) fn card(&self) -> Option<&AgentFile> {
        match &self.card {
            Ok(card) => card.as_ref(),
            Err(_) => self.kept.as_ref(),
        }
    }

    /// Why it cannot be used as it stands.
    pub(super) fn fault(&self) -> Option<&Translated> {
        self.card.as_ref().err()
    }
}

/// A folder of definitions, as last read.
#[derive(Debug)]
pub(super) struct DefinitionDir {
    path: PathBuf,
    shown: String,
    standing: FileTrust,
    /// What it must lie in under its own name; none for what the user keeps wherever they like.
    within: Option<PathBuf>,
    pub(super) scope: Scope,
    /// The folders that were looked into; none for one that was not there.
    folders: BTreeMap<PathBuf, Option<FileStamp>>,
    pub(super) leaves: Vec<DefinitionFile>,
    /// What was not looked at, and why.
    pub(super) over: Option<Translated>,
}

impl DefinitionDir {
    /// A folder that has not been looked at yet.
    pub(super) fn new(path: PathBuf, shown: String, standing: FileTrust, scope: Scope) -> Self {
        // What was never seen is different from what is not there.
        let folders = BTreeMap::new();
        Self { path, shown, standing, within: None, scope, folders, leaves: Vec::new(), over: None }
    }

    /// Marks the folder as part of a project with this root: if a link on its path leads elsewhere, nothing in it is
    /// read.
    pub(super) fn within(self, root: &Path) -> Self {
        Self { within: Some(root.to_owned()), ..self }
    }

    /// Looks again. Says whether anything is different.
    pub(super) fn refresh(&mut self, env: &Env) -> bool {
        let is_same = !self.folders.is_empty()
            && self.folders.iter().all(|(path, stamp)| FileStamp::of(path) == *stamp)
            && self.leaves.iter().all(|leaf| FileStamp::of(&leaf.path) == leaf.stamp);
        if is_same {
            return false;
        }
        let is_first = self.folders.is_empty();
        let old: BTreeMap<PathBuf, DefinitionFile> =
            self.leaves.drain(..).map(|leaf| (leaf.path.clone(), leaf)).collect();
        let mut walk = DirWalk { old, env, names: 0, is_changed: false };
        self.folders.clear();
        self.over = None;
        let before = walk.old.len();
        let path = self.path.clone();
        // A name that other programs use too is not searched to its bottom.
        let depth = if self.standing == FileTrust::Shared { 1 } else { DEPTH_MAX };
        if self.is_elsewhere() {
            self.folders.insert(path.clone(), FileStamp::of(&path));
            self.over = Some(Translated::new(|lang| lang.folder_leads_out(&self.shown)));
        } else {
            self.folder(&path, depth, &mut walk);
        }
        walk.is_changed || self.leaves.len() != before || (is_first && !self.leaves.is_empty())
    }

    /// Whether a link on the way from the project's root leads to other files than its name says.
    fn is_elsewhere(&self) -> bool {
        let Some(root) = &self.within else { return false };
        // One that is not there leads nowhere.
        let Ok(real) = self.path.canonicalize() else { return false };
        let own = self.path.strip_prefix(root).ok().zip(root.canonicalize().ok());
        own.is_none_or(|(below, root)| root.join(below) != real)
    }

    fn folder(&mut self, path: &Path, depth: usize, walk: &mut DirWalk<'_>) {
        // Before it is read: what comes in meanwhile is seen the next time.
        self.folders.insert(path.to_owned(), FileStamp::of(path));
        let Ok(entries) = fs::read_dir(path) else { return };
        let mut entries: Vec<DirEntry> = entries.flatten().take(NAMES_MAX.saturating_sub(walk.names)).collect();
        walk.names += entries.len();
        entries.sort_unstable_by_key(DirEntry::file_name);
        let (mut inner, mut wanted) = (Vec::new(), Vec::new());
        for entry in entries {
            let (Ok(kind), name) = (entry.file_type(), entry.file_name()) else { continue };
            let name = name.to_string_lossy().to_ascii_lowercase();
            if name.starts_with('.') {
                continue;
            }
            if kind.is_dir() {
                inner.push(entry.path());
            } else if name.ends_with(".md") && !BESIDE.contains(&name.as_str()) {
                if self.leaves.len() + wanted.len() >= FILES_MAX || walk.names >= NAMES_MAX {
                    self.over = Some(Translated::new(|lang| lang.folder_too_many(&self.shown, FILES_MAX)));
                    inner.clear();
                    break;
                }
                let path = entry.path();
                let old = walk.old.remove(&path);
                wanted.push((path, kind.is_symlink(), old));
            }
        }
        for (leaf, is_changed) in parallel::each(wanted, |(path, is_link, old)| self.leaf(path, is_link, old, walk.env))
        {
            walk.is_changed |= is_changed;
            self.leaves.push(leaf);
        }
        for path in inner.iter().filter(|_| depth > 1) {
            self.folder(path, depth - 1, walk);
        }
    }

    /// What a file is now, and whether it was something else before.
    fn leaf(&self, path: PathBuf, is_link: bool, old: Option<DefinitionFile>, env: &Env) -> (DefinitionFile, bool) {
        let kept = match old {
            Some(old) if old.stamp == FileStamp::of(&path) => return (old, false),
            Some(old) => old.card().cloned(),
            None => None,
        };
        let below = path.strip_prefix(&self.path).unwrap_or(&path);
        let shown = format!("{}/{}", self.shown, below.display());
        let (stamp, card) = match self.bytes(&path, is_link) {
            Ok((stamp, bytes)) => {
                let file =
                    ConfigFile { path: path.clone(), shown: shown.clone(), standing: self.standing, named: false };
                (Some(stamp), agent_file::read(&bytes, &file, env))
            }
            Err(why) => {
                let fault = Translated::at(&shown, |lang| why.get(lang).to_owned());
                (FileStamp::of(&path), Err(fault))
            }
        };
        (DefinitionFile { path, stamp, shown, card, kept }, true)
    }

    fn bytes(&self, path: &Path, is_link: bool) -> Result<(FileStamp, Vec<u8>), Translated> {
        let told = |error: std::io::Error| Translated::new(|lang| lang.file_unreadable(lang.system_fault(&error)));
        if is_planted(path) {
            return Err(Translated::new(|lang| lang.file_planted().to_owned()));
        }
        if is_link {
            let real = path.canonicalize().map_err(told)?;
            let is_beneath = self.path.canonicalize().is_ok_and(|folder| real.starts_with(folder));
            if !is_beneath && self.standing != FileTrust::Trusted {
                return Err(Translated::new(|lang| lang.link_leads_out().to_owned()));
            }
        }
        // A pipe must not keep us waiting for its other end.
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
        let file = fs::File::options().read(true).custom_flags(i32::try_from(flags).unwrap_or_default()).open(path);
        let file = file.map_err(told)?;
        let meta = file.metadata().map_err(told)?;
        if !meta.is_file() {
            return Err(Translated::new(|lang| lang.file_no_file().to_owned()));
        }
        // One more than allowed, so that too much is noticed.
        let mut bytes = Vec::with_capacity(usize::try_from(meta.len().min(FILE_BYTES_MAX)).unwrap_or(0) + 1);
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(told)?;
        Ok((FileStamp::from(&meta), bytes))
    }
}

/// One look at a folder.
struct DirWalk<'a> {
    /// What was there the last time and has not been met again.
    old: BTreeMap<PathBuf, DefinitionFile>,
    env: &'a Env,
    names: usize,
    is_changed: bool,
}
