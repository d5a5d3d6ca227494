//! Waking the watchers of other processes.
//!
//! Every process that watches binds a datagram socket in the workers' folder; whoever commits sends one byte to each
//! of the others. A nudge is a hint: it may be lost or come twice, for the log is the truth. A process that watches
//! nothing has no socket, and a writer that is alone pays for one look at the folder's time stamp.

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

use crate::watch::Bell;

/// A change of the folder younger than this may share its time stamp with another one that is yet to come.
const FRESH: Duration = Duration::from_millis(100);
/// The longest path that a socket's address holds on every system we run on.
const ADDRESS_BYTES_MAX: usize = 100;

/// This handle's ear: silent until somebody watches.
#[derive(Debug)]
pub(crate) struct Ear {
    folder: PathBuf,
    name: String,
    listening: Mutex<bool>,
    deaf: Arc<AtomicBool>,
}

impl Ear {
    /// An ear under a name of its own.
    pub(crate) fn new(folder: PathBuf) -> Self {
        let name = format!("{:016x}.sock", RandomState::new().hash_one(std::process::id()));
        Self { folder, name, listening: Mutex::new(false), deaf: Arc::default() }
    }

    /// Starts to listen, once; every nudge rings the bells.
    pub(crate) fn listen(&self, bells: [&Arc<Bell>; 2]) -> io::Result<()> {
        let mut listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner);
        if *listening {
            return Ok(());
        }
        // Under another name first: between its making and its first byte, a socket looks dead to a sender.
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

impl Drop for Ear {
    fn drop(&mut self) {
        if !*self.listening.get_mut().unwrap_or_else(PoisonError::into_inner) {
            return;
        }
        self.deaf.store(true, Ordering::Release);
        // The last nudge is our own: it lets the listening thread go.
        if let Some(mouth) = mouth() {
            drop(reach(&self.folder, &self.name, |path| mouth.send_to(b"n", path)));
        }
        drop(fs::remove_file(self.folder.join(&self.name)));
    }
}

/// The writer's side.
#[derive(Debug)]
pub(crate) struct Nudger {
    folder: PathBuf,
    own: String,
    mouth: Option<UnixDatagram>,
    seen: Option<SystemTime>,
    others: Vec<String>,
}

impl Nudger {
    /// Nudges everyone but this ear.
    pub(crate) fn new(own: &Ear) -> Self {
        Self { folder: own.folder.clone(), own: own.name.clone(), mouth: None, seen: None, others: Vec::new() }
    }

    /// Tells the others that the log has grown.
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
                // Told; or its queue is full, so it will be awake anyway; or it has just left.
                _ => {}
            }
        }
    }

    /// Lists the others again if the folder has changed since.
    fn look(&mut self) {
        let changed = fs::metadata(&self.folder).and_then(|folder| folder.modified()).ok();
        if changed.is_some() && changed == self.seen {
            return;
        }
        // A stamp from the future (a clock was set back) proves as little as a fresh one.
        let is_fresh = changed.is_some_and(|changed| changed.elapsed().map_or(true, |age| age < FRESH));
        self.seen = changed.filter(|_| !is_fresh);
        self.others.clear();
        let Some(files) = changed.and_then(|_| fs::read_dir(&self.folder).ok()) else { return };
        let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
        self.others.extend(names.filter(|name| name.ends_with(".sock") && *name != self.own));
    }
}

/// What nudges go out through; it never waits.
fn mouth() -> Option<UnixDatagram> {
    UnixDatagram::unbound().ok().filter(|mouth| mouth.set_nonblocking(true).is_ok())
}

/// Uses a socket's path; one that is too long for an address goes through the folder's descriptor.
fn reach<T>(folder: &Path, name: &str, run: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let path = folder.join(name);
    if path.as_os_str().len() <= ADDRESS_BYTES_MAX {
        return run(&path);
    }
    let folder = fs::File::open(folder)?;
    run(Path::new(&format!("/proc/self/fd/{}/{name}", folder.as_raw_fd())))
}
