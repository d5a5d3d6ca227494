//! The commands that run in a tree: one locked file per command, so that every process knows them, also after a kill.
//!
//! The supervisor of a command shares the file and notes the end of the command in it. A file without a lock belongs to a
//! command whose process was killed; its modification time tells changes of the command from later changes of the user.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use max_team_core::id::SessionId;
use max_team_core::limits::COMMAND_S_MAX;
use max_team_sandbox::EndMark;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

/// How long a background command counts as the author of changes: as long as a command that its agent waits for may run. Later
/// changes are more likely the user's.
pub(super) const BACKGROUND_MAX: Duration = Duration::from_secs(COMMAND_S_MAX as u64);
/// Bytes of one file.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// The first byte of a file whose command has not ended.
const RUNNING: u8 = b'?';

/// A call that runs a command, as the journal names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CommandCaller {
    /// The session of its agent.
    pub session: SessionId,
    /// The stream of its agent and its key, with a space in between.
    pub call: String,
    /// Whether it runs in the background.
    pub is_background: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CommandNote {
    pub(super) caller: CommandCaller,
    pub(super) since_ms: i64,
}

impl CommandNote {
    fn is_author(&self, now_ms: i64) -> bool {
        let age = u64::try_from(now_ms.saturating_sub(self.since_ms)).unwrap_or(0);
        !self.caller.is_background || Duration::from_millis(age) < BACKGROUND_MAX
    }
}

fn folder(tree: &Path) -> PathBuf {
    tree.join("running")
}

/// A command of this process; the file goes with it.
#[derive(Debug)]
pub(super) struct CommandFile {
    path: PathBuf,
    file: Arc<File>,
}

impl CommandFile {
    /// Enters a command. The tree is held.
    pub(super) fn begin(tree: &Path, caller: CommandCaller) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let since_ms = Timestamp::now().as_millisecond();
        let folder = folder(tree);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // Commands of one process are in the order in which they began, also within one millisecond.
        let path = folder.join(format!("{since_ms}-{}-{count:06}", std::process::id()));
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        // Where there are no locks, the command counts as one of a killed process.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        let mut text = vec![RUNNING];
        serde_json::to_writer(&mut text, &CommandNote { caller, since_ms })?;
        file.write_all(&text)?;
        Ok(Self { path, file: Arc::new(file) })
    }

    /// The file in which the supervisor notes the end.
    pub(super) fn end_mark(&self) -> EndMark {
        EndMark(Arc::clone(&self.file))
    }
}

impl Drop for CommandFile {
    fn drop(&mut self) {
        // A file that stays is taken for a killed command, of which nothing is known any more.
        let _ = fs::remove_file(&self.path);
    }
}

/// A command whose process was killed.
#[derive(Debug)]
pub(super) struct KilledCommand {
    pub(super) entry: CommandNote,
    /// When it ended, if its supervisor could note it.
    pub(super) ended: Option<SystemTime>,
    path: PathBuf,
}

/// The commands of a tree.
#[derive(Debug, Default)]
pub(super) struct TreeCommands {
    pub(super) running: Vec<CommandNote>,
    pub(super) killed: Vec<KilledCommand>,
}

impl TreeCommands {
    /// Reads them. The tree is held.
    pub(super) fn read(tree: &Path) -> Self {
        let now_ms = Timestamp::now().as_millisecond();
        let mut all = Self::default();
        let mut paths: Vec<PathBuf> =
            fs::read_dir(folder(tree)).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            match Self::read_one(&path) {
                Some((entry, None)) if entry.is_author(now_ms) => all.running.push(entry),
                Some((entry, Some(ended))) => all.killed.push(KilledCommand { entry, ended, path }),
                _ => {}
            }
        }
        all.running.sort_by_key(|entry| entry.since_ms);
        all.killed.sort_by_key(|killed| killed.entry.since_ms);
        all
    }

    /// One command, and if its process was killed, when it ended.
    fn read_one(path: &Path) -> Option<(CommandNote, Option<Option<SystemTime>>)> {
        let mut file = File::open(path).ok()?;
        let is_free = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        let known = file.metadata().ok()?;
        let mut text = Vec::new();
        (&mut file).take(FILE_BYTES_MAX).read_to_end(&mut text).ok()?;
        let (first, rest) = text.split_first()?;
        let entry = serde_json::from_slice(rest).ok()?;
        let ended = (*first == EndMark::ENDED).then(|| known.modified().ok()).flatten();
        // A file without a name belongs to a command that has ended meanwhile.
        (known.nlink() > 0).then_some((entry, is_free.then_some(ended)))
    }

    pub(super) fn any(&self, fits: impl Fn(&CommandNote) -> bool) -> bool {
        self.running.iter().chain(self.killed.iter().map(|killed| &killed.entry)).any(fits)
    }

    /// The killed ones are recorded.
    pub(super) fn forget_killed(&self) {
        // One that stays is recorded again, without changes.
        self.killed.iter().for_each(|killed| drop(fs::remove_file(&killed.path)));
    }
}
