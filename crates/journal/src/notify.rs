//! Wakes the watchers of other processes.
//!
//! Each process that watches binds a datagram socket in the workers' folder; a process that commits sends one byte to
//! the sockets of the others. A nudge is a hint: it may be lost or come twice, because watchers read the log itself. A
//! process that watches nothing has no socket, and a writer without watchers only looks at the folder's modification
//! time.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

use crate::watch::Signal;

/// A younger modification time is not trusted: a change yet to come may get the same one.
const FRESH: Duration = Duration::from_millis(100);
/// The longest path that a socket's address holds on every system we run on.
const ADDRESS_BYTES_MAX: usize = 100;

/// The socket on which this handle hears nudges; bound once something watches.
#[derive(Debug)]
pub(crate) struct Listener {
    folder: PathBuf,
    name: String,
    listening: Mutex<bool>,
    deaf: Arc<AtomicBool>,
}

impl Listener {
    /// Chooses a random name; binds nothing yet.
    pub(crate) fn new(folder: PathBuf) -> Self {
        let name = format!("{:016x}.sock", RandomState::new().hash_one(std::process::id()));
        Self { folder, name, listening: Mutex::new(false), deaf: Arc::default() }
    }

    /// Binds the socket, once; every nudge then rings the bells.
    pub(crate) fn listen(&self, bells: [&Arc<Signal>; 2]) -> io::Result<()> {
        let mut listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner);
        if *listening {
            return Ok(());
        }
        // Bound under another name first: a sender takes a socket that cannot receive yet for dead and removes it.
        let making = self.name.replace(".sock", ".new");
        let ear = reach(&self.folder, &making, |path| UnixDatagram::bind(path))?;
        fs::rename(self.folder.join(&making), self.folder.join(&self.name))?;
        let (bells, deaf) = (bells.map(Arc::clone), Arc::clone(&self.deaf));
        thread::Builder::new().name("journal-ear".to_owned()).spawn(move || {
            let mut byte = [0];
            while ear.recv(&mut byte).is_ok() && !deaf.load(Ordering::Acquire) {
                bells.iter().for_each(|bell| bell.ring());
            }
        })?;
        *listening = true;
        Ok(())
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if !*self.listening.get_mut().unwrap_or_else(PoisonError::into_inner) {
            return;
        }
        self.deaf.store(true, Ordering::Release);
        // This last nudge is our own: it ends the listening thread.
        if let Some(mouth) = mouth() {
            drop(reach(&self.folder, &self.name, |path| mouth.send_to(b"n", path)));
        }
        drop(fs::remove_file(self.folder.join(&self.name)));
    }
}

/// The writer's side.
#[derive(Debug)]
pub(crate) struct Notifier {
    folder: PathBuf,
    own: String,
    mouth: Option<UnixDatagram>,
    seen: Option<SystemTime>,
    others: Vec<String>,
}

impl Notifier {
    /// Nudges all sockets except this handle's own.
    pub(crate) fn new(own: &Listener) -> Self {
        Self { folder: own.folder.clone(), own: own.name.clone(), mouth: None, seen: None, others: Vec::new() }
    }

    /// Tells the other processes that the log has grown.
    pub(crate) fn nudge(&mut self) {
        self.look();
        if self.others.is_empty() {
            return;
        }
        if self.mouth.is_none() {
            self.mouth = mouth();
        }
        let Some(mouth) = &self.mouth else { return };
        for other in &self.others {
            match reach(&self.folder, other, |path| mouth.send_to(b"n", path)) {
                // Its process is gone.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    drop(fs::remove_file(self.folder.join(other)));
                }
                // Sent; or its queue is full, so it wakes anyway; or it has just been removed.
                _ => {}
            }
        }
    }

    /// Lists the other sockets again if the folder has changed.
    fn look(&mut self) {
        let changed = fs::metadata(&self.folder).and_then(|folder| folder.modified()).ok();
        if changed.is_some() && changed == self.seen {
            return;
        }
        // A time in the future (the clock was set back) is not trusted either.
        let is_fresh = changed.is_some_and(|changed| changed.elapsed().map_or(true, |age| age < FRESH));
        self.seen = changed.filter(|_| !is_fresh);
        self.others.clear();
        let Some(files) = changed.and_then(|_| fs::read_dir(&self.folder).ok()) else { return };
        let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
        self.others.extend(names.filter(|name| name.ends_with(".sock") && *name != self.own));
    }
}

/// The socket that sends nudges; it never blocks.
fn mouth() -> Option<UnixDatagram> {
    UnixDatagram::unbound().ok().filter(|mouth| mouth.set_nonblocking(true).is_ok())
}

/// Calls `run` with a socket's path; one that is too long for an address goes through the folder's descriptor.
fn reach<T>(folder: &Path, name: &str, run: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let path = folder.join(name);
    if path.as_os_str().len() <= ADDRESS_BYTES_MAX {
        return run(&path);
    }
    let folder = fs::File::open(folder)?;
    run(Path::new(&format!("/proc/self/fd/{}/{name}", folder.as_raw_fd())))
}
