//! Live pieces for other processes.
//!
//! A process that shows sessions of others (a web server) binds a datagram socket in a private folder, and processes that run sessions send
//! each piece there. Like pieces within a process, one may be lost: its number tells the reader, and the whole answer comes by the
//! log. Without such a socket a sender only looks at the folder now and then.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use super::pieces::LivePiece;
use crate::shared::{lock, new_id};

/// The folder of the sockets, beneath the user's.
const FOLDER: &str = "live";
/// How long a list of sockets is used.
const LIST_FRESH: Duration = Duration::from_millis(250);
/// Bytes of a piece that is sent; a larger one is left out.
const PIECE_BYTES_MAX: usize = 64 << 10;
/// The longest path that a socket's address holds on every system we run on.
const ADDRESS_BYTES_MAX: usize = 100;

/// The processes that want pieces.
#[derive(Debug, Default)]
pub(super) struct OtherProcesses {
    folder: PathBuf,
    /// The name of this process's own socket.
    own: OnceLock<String>,
    listed: Mutex<Listed>,
}

#[derive(Debug, Default)]
struct Listed {
    at: Option<Instant>,
    names: Vec<String>,
    socket: Option<UnixDatagram>,
}

impl OtherProcesses {
    pub(super) fn new(home: &Path) -> Self {
        Self { folder: home.join(FOLDER), own: OnceLock::new(), listed: Mutex::default() }
    }

    /// Whether another process wants pieces.
    pub(super) fn any(&self) -> bool {
        let mut listed = lock(&self.listed);
        if listed.at.is_none_or(|at| at.elapsed() >= LIST_FRESH) {
            listed.at = Some(Instant::now());
            listed.names.clear();
            if let Ok(files) = fs::read_dir(&self.folder) {
                let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
                let own = self.own.get();
                listed.names.extend(names.filter(|name| name.ends_with(".sock") && Some(name) != own));
            }
        }
        !listed.names.is_empty()
    }

    /// Sends a piece to them. A process that is too slow misses it.
    pub(super) fn send(&self, piece: &LivePiece) {
        let Ok(text) = serde_json::to_vec(piece) else { return };
        if text.len() > PIECE_BYTES_MAX {
            return;
        }
        let mut listed = lock(&self.listed);
        if listed.socket.is_none() {
            listed.socket = UnixDatagram::unbound().ok().filter(|socket| socket.set_nonblocking(true).is_ok());
        }
        let Listed { names, socket: Some(socket), .. } = &mut *listed else { return };
        names.retain(|name| match reach(&self.folder, name, |path| socket.send_to(&text, path)) {
            // Its process is gone.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                drop(fs::remove_file(self.folder.join(name)));
                false
            }
            _ => true,
        });
    }

    /// Binds the socket of this process; every piece then goes to `take`, until it says that it wants no more.
    pub(super) fn listen(&self, take: impl Fn(LivePiece) -> bool + Send + 'static) -> io::Result<()> {
        let id = new_id().simple().to_string();
        let (making, name) = (format!("{id}.new"), format!("{id}.sock"));
        if self.own.set(name.clone()).is_err() {
            return Ok(());
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        // Bound under another name first: a sender takes a socket that cannot receive yet for dead and removes it.
        let socket = reach(&self.folder, &making, |path| UnixDatagram::bind(path))?;
        fs::rename(self.folder.join(&making), self.folder.join(&name))?;
        std::thread::Builder::new().name("live-pieces".to_owned()).spawn(move || {
            let mut bytes = vec![0; PIECE_BYTES_MAX];
            while let Ok(length) = socket.recv(&mut bytes) {
                let piece = bytes.get(..length).and_then(|text| serde_json::from_slice(text).ok());
                if piece.is_some_and(|piece: LivePiece| !take(LivePiece { is_from_outside: true, ..piece })) {
                    return;
                }
            }
        })?;
        Ok(())
    }
}

impl Drop for OtherProcesses {
    fn drop(&mut self) {
        if let Some(name) = self.own.get() {
            drop(fs::remove_file(self.folder.join(name)));
        }
    }
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
