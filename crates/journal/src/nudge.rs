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
    socket: Mutex<Option<Arc<UnixDatagram>>>,
    deaf: Arc<AtomicBool>,
}

impl Ear {
    /// An ear under a name of its own.
    pub(crate) fn new(folder: PathBuf) -> Self {
        let name = format!("{:016x}.sock", RandomState::new().hash_one(std::process::id()));
        Self { folder, name, socket: Mutex::new(None), deaf: Arc::default() }
    }

    /// Starts to listen, once; every nudge rings the bell.
    pub(crate) fn listen(&self, bell: &Arc<Bell>) -> io::Result<()> {
        let mut socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        if socket.is_some() {
            return Ok(());
        }
        // Under another name first: between its making and its first byte, a socket looks dead to a sender.
        let making = self.name.replace(".sock", ".new");
        let ear = Arc::new(reach(&self.folder, &making, |path| UnixDatagram::bind(path))?);
        fs::rename(self.folder.join(&making), self.folder.join(&self.name))?;
        let (heard, bell, deaf) = (Arc::clone(&ear), Arc::clone(bell), Arc::clone(&self.deaf));
        thread::Builder::new().name("journal-ear".to_owned()).spawn(move || {
            let mut byte = [0];
            while heard.recv(&mut byte).is_ok() && !deaf.load(Ordering::Acquire) {
                bell.ring();
            }
        })?;
        *socket = Some(ear);
        Ok(())
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        let socket = self.socket.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(socket) = socket.take() else { return };
        self.deaf.store(true, Ordering::Release);
        // The last nudge is our own: it lets the listening thread go.
        drop(reach(&self.folder, &self.name, |path| socket.send_to(b"n", path)));
        drop(fs::remove_file(self.folder.join(&self.name)));
    }
}

/// The writer's side.
#[derive(Debug)]
pub(crate) struct Nudger {
    folder: PathBuf,
    own: String,
    socket: Option<UnixDatagram>,
    seen: Option<SystemTime>,
    others: Vec<String>,
}

impl Nudger {
    /// Nudges everyone but this ear.
    pub(crate) fn new(own: &Ear) -> Self {
        Self { folder: own.folder.clone(), own: own.name.clone(), socket: None, seen: None, others: Vec::new() }
    }

    /// Tells the others that the log has grown.
    pub(crate) fn nudge(&mut self) {
        self.look();
        if self.others.is_empty() {
            return;
        }
        if self.socket.is_none() {
            self.socket = UnixDatagram::unbound().ok().filter(|socket| socket.set_nonblocking(true).is_ok());
        }
        let Some(socket) = &self.socket else { return };
        for other in &self.others {
            match reach(&self.folder, other, |path| socket.send_to(b"n", path)) {
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
        let is_fresh = changed.is_some_and(|changed| changed.elapsed().is_ok_and(|age| age < FRESH));
        self.seen = changed.filter(|_| !is_fresh);
        self.others.clear();
        let Some(files) = changed.and_then(|_| fs::read_dir(&self.folder).ok()) else { return };
        let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
        self.others.extend(names.filter(|name| name.ends_with(".sock") && *name != self.own));
    }
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
