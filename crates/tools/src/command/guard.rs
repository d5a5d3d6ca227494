//! Watches a command's folders while it runs, so that planted files are moved away at once.
//!
//! A foreground command is watched directly in its folders; one that lives on, in all folders but those of dependencies and builds.
//! New names wait a moment, so that a file is judged with its content. Where the system gives no events, all is looked over from
//! time to time.

use std::collections::BTreeSet;
use std::fs;
use std::io::PipeReader;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use max_team_core::policy::{is_dependency_folder, is_row_folder};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::planted::PlantedFiles;

/// How long a new name waits before it is judged.
pub(super) const SETTLE: Duration = Duration::from_millis(30);
/// How often all is looked over where events are missing.
const LOOK: Duration = Duration::from_secs(1);
/// Folders that are watched for one command.
const WATCHED_MAX: usize = 100_000;

/// Guards until `end` can be read. `judge` moves new names away; `heard` takes what was moved.
pub(super) fn guard<T>(
    planted: &PlantedFiles,
    end: &PipeReader,
    judge: &dyn Fn(Vec<PathBuf>) -> Vec<T>,
    heard: &mut dyn FnMut(T),
) {
    let mut guard = FolderGuard { planted, events: events::FolderEvents::new(), pending: BTreeSet::new() };
    guard.pending.extend(planted.folders.iter().cloned());
    let mut due = Some(Instant::now() + SETTLE);
    loop {
        let next = due.or_else(|| (!guard.events.is_complete()).then(|| Instant::now() + LOOK));
        match guard.wait(end, next) {
            Woken::End => return,
            Woken::Events => due = due.or_else(|| (!guard.pending.is_empty()).then(|| Instant::now() + SETTLE)),
            Woken::Time if due.is_none() => guard.pending.extend(planted.folders.iter().cloned()),
            Woken::Time => {}
        }
        if due.is_none_or(|due| Instant::now() < due) && guard.events.is_complete() {
            continue;
        }
        due = None;
        let mut found = Vec::new();
        for path in std::mem::take(&mut guard.pending) {
            guard.look(path, &mut found);
        }
        judge(found).into_iter().for_each(&mut *heard);
    }
}

enum Woken {
    End,
    Events,
    Time,
}

struct FolderGuard<'a> {
    planted: &'a PlantedFiles,
    events: events::FolderEvents,
    /// New names, and folders that have to be looked over.
    pending: BTreeSet<PathBuf>,
}

impl FolderGuard<'_> {
    fn wait(&mut self, end: &PipeReader, until: Option<Instant>) -> Woken {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let mut fds = vec![PollFd::new(end, PollFlags::IN)];
        fds.extend(self.events.file().map(|file| PollFd::new(file, PollFlags::IN)));
        let polled = poll(&mut fds, left.as_ref());
        let is_ready = |fd: Option<&PollFd<'_>>| fd.is_some_and(|fd| !fd.revents().is_empty());
        if is_ready(fds.first()) || polled.is_err_and(|errno| errno != rustix::io::Errno::INTR) {
            return Woken::End;
        }
        if !is_ready(fds.get(1)) {
            return Woken::Time;
        }
        if !self.events.read(&mut self.pending) {
            self.pending.extend(self.planted.folders.iter().cloned());
        }
        Woken::Events
    }

    /// Looks at a name: notes it if the command must not make it, else watches the folder and looks at everything in it.
    fn look(&mut self, path: PathBuf, found: &mut Vec<PathBuf>) {
        let planted = self.planted;
        let mut paths = vec![path];
        while let Some(path) = paths.pop() {
            let Some((folder, name)) = planted.place(&path) else { continue };
            let own = name.rsplit('/').next().unwrap_or(&name);
            if !name.is_empty() && planted.is_new(&path, folder, &name) {
                found.push(path);
                continue;
            }
            // The last part of a bare repository may be one of its folders.
            if matches!(own, "objects" | "refs") {
                paths.extend(path.parent().map(|parent| parent.join("HEAD")).filter(|head| head.is_file()));
            }
            let is_folder = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir());
            if is_folder && self.is_followed(&name, own) {
                self.events.add(&path);
                paths.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            }
        }
    }

    fn is_followed(&self, name: &str, own: &str) -> bool {
        match (name, self.planted.lives_on) {
            ("", _) => true,
            (_, true) => own != ".git" && !is_dependency_folder(own),
            (name, false) => is_row_folder(name),
        }
    }
}

#[cfg(target_os = "linux")]
mod events {
    use std::collections::{BTreeSet, HashMap};
    use std::ffi::OsStr;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt;
    use std::path::{Path, PathBuf};

    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

    use super::WATCHED_MAX;

    /// Bytes of events that are read at once.
    const CHUNK: usize = 64 << 10;

    /// The system's events for the watched folders.
    pub(super) struct FolderEvents {
        file: Option<OwnedFd>,
        folders: HashMap<i32, PathBuf>,
        is_complete: bool,
    }

    impl FolderEvents {
        pub(super) fn new() -> Self {
            let file = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
            Self { is_complete: file.is_some(), file, folders: HashMap::new() }
        }

        /// Whether every new name causes an event.
        pub(super) fn is_complete(&self) -> bool {
            self.is_complete
        }

        pub(super) fn file(&self) -> Option<&OwnedFd> {
            self.file.as_ref()
        }

        pub(super) fn add(&mut self, folder: &Path) {
            const KINDS: WatchFlags = WatchFlags::CREATE.union(WatchFlags::MOVED_TO).union(WatchFlags::CLOSE_WRITE);
            let Some(file) = &self.file else { return };
            let kinds = KINDS | WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW | WatchFlags::EXCL_UNLINK;
            match inotify::add_watch(file, folder, kinds) {
                Ok(number) if self.folders.len() < WATCHED_MAX => {
                    self.folders.insert(number, folder.to_owned());
                }
                // A folder that has gone needs no watch.
                Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => {}
                _ => self.is_complete = false,
            }
        }

        /// Reads what has come; `false`: events were lost.
        pub(super) fn read(&mut self, pending: &mut BTreeSet<PathBuf>) -> bool {
            let Some(file) = &self.file else { return false };
            let mut buffer = vec![MaybeUninit::uninit(); CHUNK];
            let mut reader = inotify::Reader::new(file, &mut buffer);
            let mut is_whole = true;
            while let Ok(event) = reader.next() {
                is_whole &= !event.events().contains(ReadFlags::QUEUE_OVERFLOW);
                let folder = self.folders.get(&event.wd());
                let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
                pending.extend(folder.zip(name).map(|(folder, name)| folder.join(name)));
            }
            is_whole
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod events {
    use std::collections::BTreeSet;
    use std::os::fd::OwnedFd;
    use std::path::{Path, PathBuf};

    /// No events here.
    pub(super) struct FolderEvents;

    impl FolderEvents {
        pub(super) fn new() -> Self {
            Self
        }

        pub(super) fn is_complete(&self) -> bool {
            false
        }

        pub(super) fn file(&self) -> Option<&OwnedFd> {
            None
        }

        pub(super) fn add(&mut self, _: &Path) {}

        pub(super) fn read(&mut self, _: &mut BTreeSet<PathBuf>) -> bool {
            false
        }
    }
}
