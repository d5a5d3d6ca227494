//! Finds the changes of commands by scanning trees before and after them.
//!
//! One list per root, kept in the user's folder beside the bytes of all files on it, and shared by all processes. Each
//! command scans the tree before and after it runs. A change that a scan finds belongs to the commands that ran since
//! the last scan; without any, it is the user's. The project's own repository is neither needed nor touched.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
use max_team_core::hash::Hash;
use max_team_core::id::SessionId;
use max_team_core::rewind::{FileChange, FileState, SkippedChange, SkippedReason};
use max_team_sandbox::EndMark;
use rustix::fs::{FlockOperation, RawMode, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::attribution::attributed;
use super::blobs::BlobDir;
use super::commands::{BACKGROUND_MAX, CommandCaller, CommandFile, CommandNote, TreeCommands};
use super::deadline::{Deadline, ShutdownTime};
use super::scan::{FILES_MAX, FileRecord, FileRecords, Scan, ScanResult, is_rules};
use crate::files::{Root, file_state};
use crate::progress::Progress;

/// How long a command waits at most for the scan before it. Only the first scan of a tree reads its files; on a busy
/// machine, that of the largest allowed tree takes about this long.
pub(super) const BEFORE_MAX: Duration = Duration::from_millis(FILES_MAX as u64 * 6 / 10);
/// How long a result waits at most until the changes are known.
pub(super) const AFTER_MAX: Duration = Duration::from_secs(30);
/// How long a prune waits for a list that another process holds.
const PRUNE_MAX: Duration = Duration::from_secs(5);
/// Unfinished scans in a row after which the tree is not scanned any more.
const TRIES_MAX: u32 = 3;
/// The version of the lists.
const VERSION: u32 = 3;

/// The file of a tree's list, and the file that names its root.
const LIST: &str = "list";
const ROOT: &str = "root";

/// All trees that this process scans.
#[derive(Debug)]
pub struct TrackedTrees {
    home: PathBuf,
    known: Mutex<HashMap<PathBuf, Arc<Mutex<TrackedTree>>>>,
    leaving: Arc<ShutdownTime>,
}

/// One tree, as this process knows it.
#[derive(Debug)]
struct TrackedTree {
    folder: PathBuf,
    objects: BlobDir,
    /// Unfinished scans in a row, and why the last one did not finish.
    tries: (u32, SkippedReason),
    list: TreeIndex,
    /// When this process last began a scan that finished, in milliseconds since 1970: the list is from then or later.
    looked_ms: i64,
    /// When the list was last written, as its file says: another process may have written it since.
    written: Option<SystemTime>,
}

/// The state of a tree.
#[derive(Debug, Default)]
pub(super) struct TreeIndex {
    pub(super) files: FileRecords,
    /// What could not be read.
    pub(super) unread: Vec<String>,
    /// Bytes that are kept.
    pub(super) held: u64,
    /// No scan of the tree has finished yet: a difference from the list is not a change.
    pub(super) is_partial: bool,
}

/// The line before the files of a list.
#[derive(Serialize, Deserialize)]
struct TreeIndexHeader {
    version: u32,
    unread: Vec<String>,
    held: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    partial: bool,
}

impl TrackedTrees {
    /// The trees of one user.
    pub fn within(home: &Path) -> Self {
        Self { home: home.to_owned(), known: Mutex::default(), leaving: Arc::default() }
    }

    fn folder(&self, root: &Path) -> PathBuf {
        let name: String = Hash::of(root.as_os_str().as_encoded_bytes()).to_string().chars().take(32).collect();
        self.home.join("images").join(name)
    }

    /// The bytes of this hash that were kept of a tree. Blocking.
    pub fn bytes(&self, root: &Path, hash: &Hash) -> Option<Vec<u8>> {
        BlobDir::within(&self.folder(root)).get(hash)
    }

    /// The program is about to end: a scan has only a moment left.
    pub fn leave(&self) {
        let _ = self.leaving.set(Instant::now());
    }

    fn tree(&self, root: &Root) -> Arc<Mutex<TrackedTree>> {
        let mut known = lock(&self.known);
        if known.is_empty() {
            self.sweep();
        }
        let new = || Arc::new(Mutex::new(TrackedTree::new(self.folder(root.path()))));
        Arc::clone(known.entry(root.path().to_owned()).or_insert_with(new))
    }

    /// Scans a tree and passes its list on while it is held.
    pub(super) fn looked<T>(
        &self,
        root: &Root,
        most: Duration,
        cancel: &CancellationToken,
        record: RecordStep<'_>,
        then: impl FnOnce(&BlobDir, &mut TreeIndex) -> Option<T>,
    ) -> Option<T> {
        let (tree, progress, until) = (self.tree(root), Progress::default(), Instant::now() + most);
        let patience = Deadline { until, cancel, leaving: &self.leaving, progress: &progress };
        let mut tree = patience.lock(&tree).ok()?;
        let _held = tree.hold(root.path(), &patience).ok()?;
        tree.look(root, &self.real_home(), &patience, record).ok()?;
        let TrackedTree { objects, list, .. } = &mut *tree;
        then(objects, list)
    }

    /// Scans a tree before a command runs in it. Changes of other commands that are found go to `record`. Blocking,
    /// for a moment.
    pub fn watch(
        &self,
        root: &Root,
        caller: CommandCaller,
        cancel: &CancellationToken,
        progress: &Progress,
        record: RecordStep<'_>,
    ) -> TreeWatch {
        let tree = self.tree(root);
        let (home, leaving, since) = (self.real_home(), Arc::clone(&self.leaving), Instant::now());
        let patience = Deadline { until: since + BEFORE_MAX, cancel, leaving: &leaving, progress };
        let is_background = caller.is_background;
        let running = patience.lock(&tree).and_then(|mut tree| {
            let held = tree.hold(root.path(), &patience)?;
            tree.look(root, &home, &patience, record)?;
            let running = CommandFile::begin(&tree.folder, caller).map_err(|_| SkippedReason::Unread);
            drop(held);
            running
        });
        TreeWatch { tree, home, leaving, running, background_since: is_background.then_some(since) }
    }

    /// Keeps the present content of files beneath a root, as changes to nothing; a file that is gone is left out. Blocking.
    pub(super) fn keep(
        &self,
        root: &Path,
        paths: &[&str],
        cancel: &CancellationToken,
    ) -> Result<Vec<FileChange>, String> {
        let root = Root::open(root).map_err(|error| error.to_string())?;
        let (tree, progress, until) = (self.tree(&root), Progress::default(), Instant::now() + BEFORE_MAX);
        let patience = Deadline { until, cancel, leaving: &self.leaving, progress: &progress };
        let busy = |_: SkippedReason| "the files that were kept before are in use".to_owned();
        let mut tree = patience.lock(&tree).map_err(busy)?;
        let _held = tree.hold(root.path(), &patience).map_err(busy)?;
        tree.read();
        let mut changes = Vec::new();
        for path in paths {
            if patience.is_over() {
                return Err("it took too long".to_owned());
            }
            let kept = tree.objects.keep(&root, path).map_err(|error| format!("`{path}`: {error}"))?;
            let Some((before, added)) = kept else { continue };
            tree.list.held = tree.list.held.saturating_add(added);
            changes.push(FileChange { path: (*path).to_owned(), before, after: FileState::Gone });
        }
        tree.write().and_then(|()| tree.objects.sync()).map_err(|error| error.to_string())?;
        Ok(changes)
    }

    /// Finds and records the changes of commands of a session whose process was killed. Blocking.
    pub fn settle(&self, session: SessionId, record: RecordStep<'_>) {
        let is_ours = |entry: &CommandNote| entry.caller.session == session;
        let mut has_waited = false;
        for folder in fs::read_dir(self.home.join("images")).into_iter().flatten().flatten().map(|one| one.path()) {
            if !TreeCommands::read(&folder).any(is_ours) {
                continue;
            }
            if !has_waited {
                // A supervisor that outlives its process for a moment still ends its command.
                max_team_sandbox::wait_until_gone();
                has_waited = true;
            }
            if !TreeCommands::read(&folder).killed.iter().any(|killed| is_ours(&killed.entry)) {
                continue;
            }
            let root = fs::read_to_string(folder.join(ROOT)).and_then(|root| Root::open(Path::new(&root)));
            let Ok(root) = root else { continue };
            let (cancel, progress) = (CancellationToken::new(), Progress::default());
            let until = Instant::now() + AFTER_MAX;
            let patience = Deadline { until, cancel: &cancel, leaving: &self.leaving, progress: &progress };
            let mut tree = TrackedTree::new(folder);
            if let Ok(_held) = tree.hold(root.path(), &patience) {
                // If it cannot be scanned now, the next scan does it.
                let _ = tree.look(&root, &self.real_home(), &patience, record);
            }
        }
    }

    /// The list knows folders by their real names.
    fn real_home(&self) -> PathBuf {
        self.home.canonicalize().unwrap_or_else(|_| self.home.clone())
    }

    /// Drops the contents that are neither named nor those of a file that is there now; returns how many bytes.
    /// Blocking.
    pub fn prune(&self, named: &HashSet<Hash>) -> u64 {
        let folders = fs::read_dir(self.home.join("images")).into_iter().flatten().flatten();
        let drop_from = |folder: PathBuf| {
            let root = fs::read_to_string(folder.join(ROOT)).ok()?;
            let mut tree = TrackedTree::new(folder);
            let (cancel, progress) = (CancellationToken::new(), Progress::default());
            let until = Instant::now() + PRUNE_MAX;
            let patience = Deadline { until, cancel: &cancel, leaving: &self.leaving, progress: &progress };
            let _held = tree.hold(Path::new(&root), &patience).ok()?;
            tree.read();
            let now = tree.list.files.values().filter_map(|known| known.state.bytes());
            let needed: HashSet<Hash> = now.chain(named.iter().copied()).collect();
            let gone = tree.objects.keep_only(&needed);
            tree.list.held = tree.list.held.saturating_sub(gone);
            // A list that counts too many bytes only makes room a little too early.
            let _ = tree.write();
            Some(gone)
        };
        folders.filter_map(|folder| drop_from(folder.path())).sum()
    }

    /// Removes what was kept of worktrees that no longer exist.
    fn sweep(&self) {
        let copies = self.home.join("copies");
        for entry in fs::read_dir(self.home.join("images")).into_iter().flatten().flatten() {
            let root = fs::read_to_string(entry.path().join(ROOT)).map(PathBuf::from);
            if root.is_ok_and(|root| root.starts_with(&copies) && !root.exists()) {
                // What cannot be removed now is tried again by the next process.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// Changes of a tree that one scan found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeStep {
    /// The folder that the paths lie beneath.
    pub root: PathBuf,
    /// The commands that ran while it changed; with more than one, any of them may have made a change.
    pub callers: Vec<CommandCaller>,
    pub changes: Vec<FileChange>,
    /// Changes that cannot be undone.
    pub left: Vec<SkippedChange>,
    /// When the tree was scanned before, in milliseconds since 1970.
    pub since_ms: i64,
}

/// Records a step. The tree is held meanwhile, so that steps are recorded in the order of the scans; if it fails, the
/// next scan finds the same changes again.
pub type RecordStep<'a> = &'a dyn Fn(TreeStep) -> io::Result<()>;

/// A tree in which a command runs.
#[derive(Debug)]
pub struct TreeWatch {
    tree: Arc<Mutex<TrackedTree>>,
    home: PathBuf,
    leaving: Arc<ShutdownTime>,
    /// The command, or why the tree could not be scanned before it.
    running: Result<CommandFile, SkippedReason>,
    background_since: Option<Instant>,
}

impl TreeWatch {
    /// The file in which the supervisor of the command notes its end.
    pub fn end_mark(&self) -> Option<EndMark> {
        self.running.as_ref().ok().map(CommandFile::end_mark)
    }

    /// Scans the tree after the command; its changes go to `record`. Returns what is not known. Blocking, for a
    /// moment.
    pub fn end(self, root: &Root, record: RecordStep<'_>) -> Vec<SkippedChange> {
        let all = |why| vec![SkippedChange { path: String::new(), why }];
        let running = match self.running {
            Ok(running) => running,
            Err(why) => return all(why),
        };
        if self.background_since.is_some_and(|since| since.elapsed() >= BACKGROUND_MAX) {
            return all(SkippedReason::Background);
        }
        // The changes of a command that was stopped are looked for, too.
        let (cancel, progress) = (CancellationToken::new(), Progress::default());
        let until = Instant::now() + AFTER_MAX;
        let patience = Deadline { until, cancel: &cancel, leaving: &self.leaving, progress: &progress };
        let looked = patience.lock(&self.tree).and_then(|mut tree| {
            let held = tree.hold(root.path(), &patience)?;
            let looked = tree.look(root, &self.home, &patience, record);
            // Later changes are no longer its own.
            drop(running);
            drop(held);
            looked
        });
        looked.err().map(all).unwrap_or_default()
    }
}

impl TrackedTree {
    fn new(folder: PathBuf) -> Self {
        let objects = BlobDir::within(&folder);
        let list = TreeIndex { is_partial: true, ..TreeIndex::default() };
        Self { folder, objects, tries: (0, SkippedReason::Slow), list, looked_ms: 0, written: None }
    }

    /// Brings the list up to date, and records the changes that commands have made since the last scan. The caller
    /// holds the list.
    fn look(
        &mut self,
        root: &Root,
        home: &Path,
        patience: &Deadline<'_>,
        record: RecordStep<'_>,
    ) -> Result<(), SkippedReason> {
        if self.tries.0 >= TRIES_MAX {
            return Err(self.tries.1);
        }
        self.read();
        let now = Timestamp::now();
        let (now_s, now_ms) = (now.as_second(), now.as_millisecond());
        let objects = &self.objects;
        let mut found = Scan { root, home, objects, old: &self.list.files, now_s, patience }.look();
        self.list.held = self.list.held.saturating_add(found.added);
        if let Some(why) = found.ended {
            // A scan that was stopped has not failed.
            self.tries = (self.tries.0 + u32::from(!patience.is_stopped()), why);
            if self.list.is_partial {
                // Files that were read need not be read again.
                self.list.files.append(&mut found.files);
                let _ = self.write();
            }
            return Err(why);
        }
        self.tries.0 = 0;
        let changes = if self.list.is_partial { Vec::new() } else { self.list.differing(&found) };
        let is_other = self.list.is_partial || self.list.files != found.files || self.list.unread != found.unread;
        let commands = TreeCommands::read(&self.folder);
        for mut step in attributed(root.path(), changes, &commands) {
            step.since_ms = step.since_ms.max(self.looked_ms);
            record(step).map_err(|_| SkippedReason::Unread)?;
        }
        self.looked_ms = now_ms;
        (self.list.files, self.list.unread, self.list.is_partial) = (found.files, found.unread, false);
        if is_other {
            self.write().map_err(|_| SkippedReason::Unread)?;
        }
        commands.forget_killed();
        Ok(())
    }

    /// Holds the list against other processes.
    fn hold(&self, root: &Path, patience: &Deadline<'_>) -> Result<File, SkippedReason> {
        let open = || {
            DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
            let name = self.folder.join(ROOT);
            if !name.exists() {
                fs::write(&name, root.as_os_str().as_encoded_bytes())?;
            }
            File::open(name)
        };
        let file = open().map_err(|_: io::Error| SkippedReason::Unread)?;
        // On a file system without locks, other processes are not kept out.
        let is_free =
            || (flock(&file, FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK)).then_some(());
        patience.wait(is_free)?;
        Ok(file)
    }

    /// Reads what another process has written. If the list cannot be read, everything is scanned again.
    fn read(&mut self) {
        let path = self.folder.join(LIST);
        let written = fs::metadata(&path).and_then(|known| known.modified()).ok();
        if written.is_some() && written == self.written {
            return;
        }
        self.written = written;
        let list = fs::read_to_string(&path).ok().and_then(|text| TreeIndex::parse(&text));
        self.list = list.unwrap_or_else(|| TreeIndex { is_partial: true, ..TreeIndex::default() });
    }

    fn write(&mut self) -> io::Result<()> {
        let needed: HashSet<Hash> = self.list.files.values().filter_map(|known| known.state.bytes()).collect();
        self.list.held = self.objects.prune(self.list.held, &needed);
        let (path, temp) = (self.folder.join(LIST), self.folder.join("list.tmp"));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temp)?;
        file.write_all(self.list.text().as_bytes())?;
        drop(file);
        fs::rename(&temp, &path)?;
        self.written = fs::metadata(&path)?.modified().ok();
        Ok(())
    }
}

impl TreeIndex {
    /// What differs between this list and a scan.
    fn differing(&self, found: &ScanResult) -> Vec<FileChange> {
        let state = |files: &FileRecords, path: &str| files.get(path).map_or(FileState::Gone, |known| known.state);
        let mut changes = BTreeMap::new();
        for (path, known) in &found.files {
            let before = state(&self.files, path);
            let is_other = match self.files.get(path) {
                // Renaming a large file, or changing its permissions, does not change its content.
                Some(old) if old.state.is_large() && known.state.is_large() => old.stamp != known.stamp,
                _ => !before.fits(&known.state),
            };
            if is_other {
                changes.insert(path, (before, known.state));
            }
        }
        for (path, known) in self.files.iter().filter(|(path, _)| !found.files.contains_key(*path)) {
            // A file that cannot be read any more is still there, in an unknown state.
            let after = if found.unread.contains(path) { FileState::Other } else { FileState::Gone };
            changes.insert(path, (known.state, after));
        }
        // If the ignore rules have changed, a file that seems to have come or gone may have been there all the time.
        let is_ruled_anew = changes.keys().any(|path| is_rules(path));
        let was_unread = |path: &str| {
            let unread = self.unread.iter().chain(&found.unread);
            unread.into_iter().any(|folder| folder.is_empty() || Path::new(path).starts_with(folder))
        };
        let is_known = |path: &str, before: FileState, after: FileState| {
            (before != FileState::Gone && after != FileState::Gone)
                || is_rules(path)
                || !(is_ruled_anew || was_unread(path))
        };
        let known = changes.into_iter().filter(|(path, (before, after))| is_known(path, *before, *after));
        known.map(|(path, (before, after))| FileChange { path: path.clone(), before, after }).collect()
    }

    pub(super) fn text(&self) -> String {
        let (unread, held, partial) = (self.unread.clone(), self.held, self.is_partial);
        let head = TreeIndexHeader { version: VERSION, unread, held, partial };
        let mut text = serde_json::to_string(&head).unwrap_or_default();
        text.push('\n');
        for (path, FileRecord { stamp, is_fresh, state }) in &self.files {
            let (kind, hash) = match state {
                FileState::File { hash, mode, .. } => (format!("f{:o}", mode.unwrap_or_default()), Some(hash)),
                FileState::Link { hash } => ("l".to_owned(), Some(hash)),
                FileState::Bulky { size, print } => (format!("L{size:x}"), Some(print)),
                // Nothing of this is ever looked at.
                FileState::Large | FileState::Gone | FileState::Other => continue,
            };
            let hash = hash.map_or_else(|| "-".to_owned(), Hash::to_string);
            let fresh = if *is_fresh { '~' } else { '=' };
            text.push_str(&format!("{kind} {fresh} {stamp:x} {hash} {path}\n"));
        }
        text
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let (head, rest) = text.split_once('\n')?;
        let TreeIndexHeader { version, unread, held, partial } = serde_json::from_str(head).ok()?;
        if version != VERSION {
            return None;
        }
        let files = rest.lines().map(parse_line).collect::<Option<FileRecords>>()?;
        Some(Self { files, unread, held, is_partial: partial })
    }
}

fn parse_line(line: &str) -> Option<(String, FileRecord)> {
    let mut parts = line.splitn(5, ' ');
    let (kind, fresh, stamp, hash, path) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let hash = || hash.parse::<Hash>().ok();
    let state = match kind {
        "l" => FileState::Link { hash: hash()? },
        large if large.starts_with('L') => {
            FileState::Bulky { size: u64::from_str_radix(large.strip_prefix('L')?, 16).ok()?, print: hash()? }
        }
        file => file_state(hash()?, RawMode::from_str_radix(file.strip_prefix('f')?, 8).ok()?),
    };
    let stamp = u64::from_str_radix(stamp, 16).ok()?;
    Some((path.to_owned(), FileRecord { stamp, is_fresh: fresh == "~", state }))
}

/// A lock whose holder panicked still guards plain data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
