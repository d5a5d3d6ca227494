//! Folders that agents keep outside the project, on the disk.
//!
//! A store is one more root for the same tools that work on the project's files, so nothing leads out of it and a
//! change is as whole as any other. The first write makes it; it is private to the user, and bounded. Which store
//! belongs to which session or agent follows from names alone (`core::folder`), never from what a model writes.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use max_team_core::agent_dirs::{self, AgentDir};
use max_team_core::id::SessionId;
use max_team_core::limits::{OWN_BYTES_MAX, OWN_NAMES_MAX};
use max_team_core::policy::Visibility;
use rustix::fs::{AtFlags, FileType, Stat, statat};

use crate::file_name::{kept_names, safe_name};
use crate::files::{AtomicWrite, OpenedFile, RelPath, Root, bytes_in, entries};
use crate::text::{many, size};
use crate::tool::ToolError;

/// Names that are examined in a store, which programs may have filled beyond its bounds.
const LOOKED_AT_MAX: usize = 10 * OWN_NAMES_MAX;

/// Folders between the user's and a store, the user's included.
const ABOVE: usize = 3;

/// A folder that agents keep outside the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentStore {
    folder: AgentDir,
    path: PathBuf,
    /// The session's id, or the agent's name.
    whose: String,
}

/// A file in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// Its path in the store.
    pub path: PathBuf,
    /// Bytes in it.
    pub bytes: u64,
    /// When it was last changed.
    pub changed_at: SystemTime,
}

/// What is in a store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DirUsage {
    /// Its files, in order of their paths.
    pub files: Vec<StoredFile>,
    /// Names of files and folders.
    names: usize,
    /// Whether there is more than was looked at.
    pub more: bool,
}

impl DirUsage {
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

impl AgentStore {
    /// The tools that take paths in it.
    pub const TOOLS: [&str; 5] = ["edit_file", "list_dir", "read_file", "search_code", "write_file"];

    /// The folder of a session, beneath the user's.
    pub fn files(home: &Path, session: SessionId) -> Self {
        Self { folder: AgentDir::Files, path: home.join(agent_dirs::files(session)), whose: session.to_string() }
    }

    /// The folder of an agent in a project, beneath the user's.
    pub fn data(home: &Path, project: &Path, agent: &str) -> Self {
        let path = home.join(agent_dirs::data(&project.to_string_lossy(), agent));
        Self { folder: AgentDir::Data, path, whose: agent.to_owned() }
    }

    /// All stores of that kind: of all sessions, or of all agents of a project. An agent's name is then only known as
    /// far as the name of its folder shows it.
    pub fn all(home: &Path, folder: AgentDir, project: &Path) -> io::Result<Vec<Self>> {
        let above = match folder {
            AgentDir::Files => home.join(folder.home()),
            AgentDir::Data => home.join(agent_dirs::data_of(&project.to_string_lossy())),
        };
        let found = match fs::read_dir(&above) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            found => found?,
        };
        let mut stores = Vec::new();
        for entry in found {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type()?.is_dir() {
                let whose = if folder == AgentDir::Data { agent_dirs::readable(&name).to_owned() } else { name };
                stores.push(Self { folder, path: entry.path(), whose });
            }
        }
        stores.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        Ok(stores)
    }

    /// Which kind it is.
    pub fn folder(&self) -> AgentDir {
        self.folder
    }

    /// Where it is, or will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The session's id, or the agent's name.
    pub fn whose(&self) -> &str {
        &self.whose
    }

    /// What is in it; nothing if it is not there.
    pub fn held(&self) -> Result<DirUsage, ToolError> {
        match self.root()? {
            Some(root) => held(&root),
            None => Ok(DirUsage::default()),
        }
    }

    /// The bytes of a file in it, by its path there, with or without the name that models give the folder.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, ToolError> {
        let rest = AgentDir::split(path).filter(|(folder, _)| *folder == self.folder).map_or(path, |(_, rest)| rest);
        let place = RelPath::own(self.folder, rest)?;
        let empty = || ToolError::correctable(format!("`{place}` does not exist: nothing is kept there"));
        let root = self.root()?.ok_or_else(empty)?;
        let opened: OpenedFile = root.open_file(place.as_path(), &Visibility::default())?;
        let failed = |error: io::Error| ToolError::correctable(format!("cannot read `{place}`: {error}"));
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(opened.file, OWN_BYTES_MAX), &mut bytes).map_err(failed)?;
        Ok(bytes)
    }

    /// Puts a person's file in it, under its name or one like it, and returns its path (`@files/NAME`). No file is replaced; one of
    /// that name with the same bytes is the file.
    pub fn add(&self, name: &str, bytes: &[u8]) -> Result<String, ToolError> {
        let name = safe_name(name, "file");
        for name in kept_names(&name) {
            let place = match self.put_new(&Visibility::default(), &name, bytes)? {
                Some(place) => Some(place.to_string()),
                None => {
                    self.read(&name).is_ok_and(|there| there == bytes).then(|| format!("{}/{name}", self.folder.name()))
                }
            };
            if let Some(place) = place {
                return Ok(place);
            }
        }
        Err(ToolError::correctable(format!("`{name}` was not kept: there are too many files of its name")))
    }

    /// Puts a new file in it; `None` if there is a file of that name already.
    pub(crate) fn put_new(&self, sight: &Visibility, path: &str, bytes: &[u8]) -> Result<Option<RelPath>, ToolError> {
        let place = RelPath::own(self.folder, path)?;
        self.make()?;
        let gone = || ToolError::correctable(format!("`{}` vanished while `{place}` was written", self.folder.name()));
        let root = self.root()?.ok_or_else(gone)?;
        self.check_room(&root, bytes.len() as u64, None)?;
        {
            let slot = AtomicWrite::make(&root, sight, &place)?;
            if slot.is_taken() {
                return Ok(None);
            }
            slot.put(bytes, None)?;
        }
        Ok(Some(place))
    }

    /// Removes it with everything in it; how many files there were.
    pub fn clear(&self) -> Result<usize, ToolError> {
        let count = self.held()?.files.len();
        match fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.trouble("remove", &error)),
            _ => Ok(count),
        }
    }

    /// The folder to look beneath, if there is one.
    pub(crate) fn root(&self) -> Result<Option<Root>, ToolError> {
        match Root::own(&self.path, self.folder) {
            Ok(root) => Ok(Some(root)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.trouble("open", &error)),
        }
    }

    /// Makes the folder, with those above it, private to the user.
    pub(crate) fn make(&self) -> Result<(), ToolError> {
        if self.path.is_dir() {
            return Ok(());
        }
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.path);
        // It survives a power cut once the folders above it are synced.
        let synced = made.and_then(|()| {
            self.path.ancestors().skip(1).take(ABOVE).try_for_each(|above| File::open(above)?.sync_all())
        });
        synced.map_err(|error| self.trouble("make", &error))
    }

    /// Refuses a write that would exceed the bounds: a file of `new` bytes, in the place of one of `old`.
    pub(crate) fn check_room(&self, root: &Root, new: u64, old: Option<u64>) -> Result<(), ToolError> {
        let held = held(root)?;
        let bytes = held.bytes().saturating_sub(old.unwrap_or(0)).saturating_add(new);
        let names = held.names + usize::from(old.is_none());
        // A write that makes a file smaller is always allowed.
        if old.is_some_and(|old| new <= old) || (bytes <= OWN_BYTES_MAX && names <= OWN_NAMES_MAX) {
            return Ok(());
        }
        Err(ToolError::correctable(format!(
            "`{}` is full: it has {} in {}, and at most {} in {} are kept; put less there, or shorten what is there. The \
             user frees it with `{}`",
            self.folder.name(),
            size(held.bytes()),
            many(held.names, "name"),
            size(OWN_BYTES_MAX),
            many(OWN_NAMES_MAX, "name"),
            self.clearing(),
        )))
    }

    /// The command that empties it.
    fn clearing(&self) -> String {
        let flag = match self.folder {
            AgentDir::Files => "--session",
            AgentDir::Data => "--agent",
        };
        format!("max-team files clear {flag} {}", max_team_core::policy::command_line::quote(&self.whose))
    }

    fn trouble(&self, doing: &str, error: &io::Error) -> ToolError {
        ToolError::correctable(format!("cannot {doing} `{}` (`{}`): {error}", self.folder.name(), self.path.display()))
    }
}

/// Everything beneath a store. Links are passed over, because they hold nothing.
fn held(root: &Root) -> Result<DirUsage, ToolError> {
    let mut held = DirUsage::default();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let at = if folder.as_os_str().is_empty() { Path::new(".") } else { &folder };
        let dir = root.open_dir(at, &Visibility::default())?;
        let found = entries(&dir).map_err(|errno| root.trouble("read", at, errno))?;
        held.more |= found.more;
        for entry in found.entries {
            held.names += 1;
            if held.names > LOOKED_AT_MAX {
                held.more = true;
                return Ok(held);
            }
            let path = folder.join(&entry.name);
            match entry.kind {
                FileType::Directory => folders.push(path),
                FileType::RegularFile => {
                    // A file that has gone meanwhile does not count.
                    let Ok(stat) = statat(&dir, &entry.name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
                    held.files.push(StoredFile { path, bytes: bytes_in(&stat), changed_at: changed_at(&stat) });
                }
                _ => {}
            }
        }
    }
    held.files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    Ok(held)
}

fn changed_at(stat: &Stat) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(stat.st_mtime).unwrap_or(0))
}
