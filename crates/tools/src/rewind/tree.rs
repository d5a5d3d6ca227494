//! How trees are before and after commands.
//!
//! One list per root, kept in a folder of ours beside the bytes of everything on it, and shared by all processes: whoever looks
//! brings it up to date. What a look before a command finds is the user's doing; what the next one finds is the command's.
//! The project's own repository is neither needed nor touched.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
use max_team_core::hash::Hash;
use max_team_core::limits::{COMMAND_S_MAX, REWIND_FILES_MAX};
use max_team_core::rewind::{Change, Left, State, Why};
use rustix::fs::{FlockOperation, RawMode, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::objects::Objects;
use super::patience::{Leaving, Patience};
use super::sweep::{FILES_MAX, Files, Found, Known, Sweep, is_rules};
use crate::files::{Root, file_state};
use crate::progress::Progress;

/// How long a command waits at most until the tree has been looked at. Only the first look at a tree reads its files; on a busy
/// machine one of as many as may be there takes about so long.
const BEFORE_MAX: Duration = Duration::from_millis(FILES_MAX as u64 * 6 / 10);
/// How long a result waits at most until what has changed is known.
const AFTER_MAX: Duration = Duration::from_secs(30);
/// How long somebody who makes room waits for a list that others have.
const PRUNE_MAX: Duration = Duration::from_secs(5);
/// How long a command in the background is taken for whoever changes files: as long as one that is waited for may run. After
/// that it is more likely the user.
const APART_MAX: Duration = Duration::from_secs(COMMAND_S_MAX as u64);
/// Looks in a row that came to no end, after which nobody looks at that tree any more.
const TRIES_MAX: u32 = 3;
/// The version of the lists.
const VERSION: u32 = 3;

/// Where a tree's list is, and whose.
const LIST: &str = "list";
const ROOT: &str = "root";

/// All trees that this process looks at.
#[derive(Debug)]
pub struct Trees {
    home: PathBuf,
    known: Mutex<HashMap<PathBuf, Arc<Place>>>,
    leaving: Arc<Leaving>,
}

/// A tree, and who is at work in it. Who is done says so without waiting for somebody who looks.
#[derive(Debug)]
struct Place {
    tree: Mutex<Tree>,
    work: Mutex<Work>,
}

/// The commands that run in a tree now; whoever is still about to look is none of them.
#[derive(Debug, Default)]
struct Work {
    /// Those that are waited for.
    running: usize,
    /// Since when those run that are not.
    apart: Vec<Instant>,
}

impl Work {
    /// Whether what changes meanwhile may be theirs.
    fn is_any(&self) -> bool {
        self.running > 0 || self.apart.iter().any(|since| since.elapsed() < APART_MAX)
    }

    fn add(&mut self, apart: Option<Instant>) {
        match apart {
            Some(since) => self.apart.push(since),
            None => self.running += 1,
        }
    }

    fn remove(&mut self, apart: Option<Instant>) {
        match apart.map(|since| self.apart.iter().position(|other| *other == since)) {
            Some(Some(at)) => drop(self.apart.swap_remove(at)),
            Some(None) => {}
            None => self.running = self.running.saturating_sub(1),
        }
    }
}

/// One tree, as this process knows it.
#[derive(Debug)]
struct Tree {
    folder: PathBuf,
    objects: Objects,
    /// Looks in a row that came to no end, and why the last one did.
    tries: (u32, Why),
    list: List,
    /// When this process last began to look and came to an end, in milliseconds since 1970: what is on the list was so then or later.
    looked_ms: i64,
    /// When the list was last written, as its file says: another process may have written it since.
    written: Option<SystemTime>,
}

/// How a tree was.
#[derive(Debug, Default)]
struct List {
    files: Files,
    /// What could not be looked at.
    unread: Vec<String>,
    /// Bytes that are kept.
    held: u64,
}

/// What stands before the files of a list.
#[derive(Serialize, Deserialize)]
struct Head {
    version: u32,
    unread: Vec<String>,
    held: u64,
}

impl Trees {
    /// Those of one user.
    pub fn within(home: &Path) -> Self {
        Self { home: home.to_owned(), known: Mutex::default(), leaving: Arc::default() }
    }

    fn folder(&self, root: &Path) -> PathBuf {
        let name: String = Hash::of(root.as_os_str().as_encoded_bytes()).to_string().chars().take(32).collect();
        self.home.join("images").join(name)
    }

    /// The bytes of that name that were kept of a tree. Blocking.
    pub fn bytes(&self, root: &Path, hash: &Hash) -> Option<Vec<u8>> {
        Objects::within(&self.folder(root)).get(hash)
    }

    /// The program is about to end: whoever looks has only a moment left.
    pub fn leave(&self) {
        let _ = self.leaving.set(Instant::now());
    }

    /// Looks at a tree before a command runs in it. Blocking, for a moment.
    pub fn watch(&self, root: &Root, cancel: &CancellationToken, progress: &Progress) -> Watch {
        self.begin(root, cancel, progress, None)
    }

    /// The same for a command that nobody waits for.
    pub fn watch_apart(&self, root: &Root, cancel: &CancellationToken, progress: &Progress) -> Watch {
        self.begin(root, cancel, progress, Some(Instant::now()))
    }

    fn begin(&self, root: &Root, cancel: &CancellationToken, progress: &Progress, apart: Option<Instant>) -> Watch {
        let place = {
            let mut known = lock(&self.known);
            if known.is_empty() {
                self.sweep();
            }
            let folder = self.folder(root.path());
            let new = || Arc::new(Place { tree: Mutex::new(Tree::new(folder)), work: Mutex::default() });
            Arc::clone(known.entry(root.path().to_owned()).or_insert_with(new))
        };
        // The list knows folders by their real names.
        let home = self.home.canonicalize().unwrap_or_else(|_| self.home.clone());
        let leaving = Arc::clone(&self.leaving);
        let patience = Patience { until: Instant::now() + BEFORE_MAX, cancel, leaving: &leaving, progress };
        let looked = patience.lock(&place.tree).and_then(|mut tree| {
            let since_ms = tree.looked_ms;
            let changes = tree.look(root, &home, &patience)?;
            // What has changed while somebody else's command runs is not the user's doing.
            let changes = if lock(&place.work).is_any() { changes } else { Vec::new() };
            Ok(Seen { changes, left: Vec::new(), since_ms })
        });
        lock(&place.work).add(apart);
        Watch { place, home, looked, apart, leaving }
    }

    /// Drops the bytes that are neither named nor those of a file that is there now; how many went. Blocking.
    pub fn prune(&self, named: &HashSet<Hash>) -> u64 {
        let folders = fs::read_dir(self.home.join("images")).into_iter().flatten().flatten();
        let drop_from = |folder: PathBuf| {
            let root = fs::read_to_string(folder.join(ROOT)).ok()?;
            let mut tree = Tree::new(folder);
            let (cancel, progress) = (CancellationToken::new(), Progress::default());
            let until = Instant::now() + PRUNE_MAX;
            let patience = Patience { until, cancel: &cancel, leaving: &self.leaving, progress: &progress };
            let _held = tree.hold(Path::new(&root), &patience).ok()?;
            tree.read();
            let now = tree.list.files.values().filter_map(|known| known.state.bytes());
            let needed: HashSet<Hash> = now.chain(named.iter().copied()).collect();
            let gone = tree.objects.keep_only(&needed);
            tree.list.held = tree.list.held.saturating_sub(gone);
            // A list that says too much only makes room a little too early.
            let _ = tree.write();
            Some(gone)
        };
        folders.filter_map(|folder| drop_from(folder.path())).sum()
    }

    /// Removes what was kept of copies that are no more.
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

/// What was seen in a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// What has changed.
    pub changes: Vec<Change>,
    /// What of it cannot be put back.
    pub left: Vec<Left>,
    /// Since when, in milliseconds since 1970.
    pub since_ms: i64,
}

/// A tree in which a command runs.
#[derive(Debug)]
pub struct Watch {
    place: Arc<Place>,
    home: PathBuf,
    leaving: Arc<Leaving>,
    /// What others had done when it began, or why nobody knows.
    looked: Result<Seen, Why>,
    /// Since when it runs, if nobody waits for it.
    apart: Option<Instant>,
}

impl Watch {
    /// What has changed since. Blocking, for a moment.
    pub fn end(self, root: &Root) -> Seen {
        let nothing = |why| Seen { left: vec![Left { path: String::new(), why }], ..Seen::default() };
        let mut seen = match self.looked.clone() {
            Ok(earlier) => earlier,
            Err(why) => return nothing(why),
        };
        if self.apart.is_some_and(|since| since.elapsed() >= APART_MAX) {
            return nothing(Why::Background);
        }
        // Whoever has stopped the command still wants to know what it did.
        let (cancel, progress) = (CancellationToken::new(), Progress::default());
        let until = Instant::now() + AFTER_MAX;
        let patience = Patience { until, cancel: &cancel, leaving: &self.leaving, progress: &progress };
        let looked = patience.lock(&self.place.tree).and_then(|mut tree| {
            if seen.changes.is_empty() {
                seen.since_ms = tree.looked_ms;
            }
            tree.look(root, &self.home, &patience)
        });
        match looked {
            Ok(found) => seen.changes.extend(found),
            Err(why) => return Seen { left: nothing(why).left, ..seen },
        }
        if seen.changes.len() > REWIND_FILES_MAX {
            return nothing(Why::Many);
        }
        let large = seen.changes.iter().filter(|change| change.before.is_large());
        seen.left = large.map(|change| Left { path: change.path.clone(), why: Why::Large }).collect();
        seen
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        lock(&self.place.work).remove(self.apart);
    }
}

impl Tree {
    fn new(folder: PathBuf) -> Self {
        let objects = Objects::within(&folder);
        Self { folder, objects, tries: (0, Why::Slow), list: List::default(), looked_ms: 0, written: None }
    }

    /// Brings the list up to date; what has changed since the last time, by path.
    fn look(&mut self, root: &Root, home: &Path, patience: &Patience<'_>) -> Result<Vec<Change>, Why> {
        if self.tries.0 >= TRIES_MAX {
            return Err(self.tries.1);
        }
        let _held = self.hold(root.path(), patience)?;
        self.read();
        let now = Timestamp::now();
        let (now_s, now_ms) = (now.as_second(), now.as_millisecond());
        let objects = &self.objects;
        let mut found = Sweep { root, home, objects, old: &self.list.files, now_s, patience }.look();
        self.list.held = self.list.held.saturating_add(found.added);
        if let Some(why) = found.ended {
            // Whoever is stopped has not failed.
            self.tries = (self.tries.0 + u32::from(!patience.is_stopped()), why);
            // What was kept so far need not be kept again.
            let mut files = std::mem::take(&mut self.list.files);
            files.append(&mut found.files);
            self.list.files = files;
            let _ = self.write();
            return Err(why);
        }
        self.tries.0 = 0;
        self.looked_ms = now_ms;
        let changes = self.list.differing(&found);
        let is_other = !changes.is_empty() || self.list.files != found.files || self.list.unread != found.unread;
        (self.list.files, self.list.unread) = (found.files, found.unread);
        if is_other {
            self.write().map_err(|_| Why::Unread)?;
        }
        Ok(changes)
    }

    /// Holds the list against other processes.
    fn hold(&self, root: &Path, patience: &Patience<'_>) -> Result<File, Why> {
        let open = || {
            DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
            let name = self.folder.join(ROOT);
            if !name.exists() {
                fs::write(&name, root.as_os_str().as_encoded_bytes())?;
            }
            File::open(name)
        };
        let file = open().map_err(|_: io::Error| Why::Unread)?;
        // Where there are no locks, nobody can be kept out.
        let is_free =
            || (flock(&file, FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK)).then_some(());
        patience.wait(is_free)?;
        Ok(file)
    }

    /// Takes in what another process has written. A list that cannot be read is none: everything is looked at again.
    fn read(&mut self) {
        let path = self.folder.join(LIST);
        let written = fs::metadata(&path).and_then(|known| known.modified()).ok();
        if written.is_some() && written == self.written {
            return;
        }
        self.written = written;
        self.list = fs::read_to_string(&path).ok().and_then(|text| List::parse(&text)).unwrap_or_default();
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

impl List {
    /// What differs from it.
    fn differing(&self, found: &Found) -> Vec<Change> {
        let state = |files: &Files, path: &str| files.get(path).map_or(State::Gone, |known| known.state);
        let mut changes = BTreeMap::new();
        for (path, known) in &found.files {
            let before = state(&self.files, path);
            let is_other = match self.files.get(path) {
                // Whoever only gives a large file another name, or other permissions, does not change it.
                Some(old) if old.state.is_large() && known.state.is_large() => old.stamp != known.stamp,
                _ => !before.fits(&known.state),
            };
            if is_other {
                changes.insert(path, (before, known.state));
            }
        }
        for (path, known) in self.files.iter().filter(|(path, _)| !found.files.contains_key(*path)) {
            // What nobody can read any more is still there, and nobody knows how.
            let after = if found.unread.contains(path) { State::Other } else { State::Gone };
            changes.insert(path, (known.state, after));
        }
        // Where other things are ignored than before, what seems to have come or gone may have been there all the time.
        let is_ruled_anew = changes.keys().any(|path| is_rules(path));
        let was_unread = |path: &str| {
            let unread = self.unread.iter().chain(&found.unread);
            unread.into_iter().any(|folder| folder.is_empty() || Path::new(path).starts_with(folder))
        };
        let is_known = |path: &str, before: State, after: State| {
            (before != State::Gone && after != State::Gone) || is_rules(path) || !(is_ruled_anew || was_unread(path))
        };
        let known = changes.into_iter().filter(|(path, (before, after))| is_known(path, *before, *after));
        known.map(|(path, (before, after))| Change { path: path.clone(), before, after }).collect()
    }

    fn text(&self) -> String {
        let head = Head { version: VERSION, unread: self.unread.clone(), held: self.held };
        let mut text = serde_json::to_string(&head).unwrap_or_default();
        text.push('\n');
        for (path, Known { stamp, is_fresh, state }) in &self.files {
            let (kind, hash) = match state {
                State::File { hash, mode, .. } => (format!("f{:o}", mode.unwrap_or_default()), Some(hash)),
                State::Link { hash } => ("l".to_owned(), Some(hash)),
                State::Bulky { size, print } => (format!("L{size:x}"), Some(print)),
                // Nothing of this is ever looked at.
                State::Large | State::Gone | State::Other => continue,
            };
            let hash = hash.map_or_else(|| "-".to_owned(), Hash::to_string);
            let fresh = if *is_fresh { '~' } else { '=' };
            text.push_str(&format!("{kind} {fresh} {stamp:x} {hash} {path}\n"));
        }
        text
    }

    fn parse(text: &str) -> Option<Self> {
        let (head, rest) = text.split_once('\n')?;
        let Head { version, unread, held } = serde_json::from_str(head).ok()?;
        if version != VERSION {
            return None;
        }
        let files = rest.lines().map(parse_line).collect::<Option<Files>>()?;
        Some(Self { files, unread, held })
    }
}

fn parse_line(line: &str) -> Option<(String, Known)> {
    let mut parts = line.splitn(5, ' ');
    let (kind, fresh, stamp, hash, path) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let hash = || hash.parse::<Hash>().ok();
    let state = match kind {
        "l" => State::Link { hash: hash()? },
        large if large.starts_with('L') => {
            State::Bulky { size: u64::from_str_radix(large.strip_prefix('L')?, 16).ok()?, print: hash()? }
        }
        file => file_state(hash()?, RawMode::from_str_radix(file.strip_prefix('f')?, 8).ok()?),
    };
    let stamp = u64::from_str_radix(stamp, 16).ok()?;
    Some((path.to_owned(), Known { stamp, is_fresh: fresh == "~", state }))
}

/// A lock whose holder panicked still guards plain data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
