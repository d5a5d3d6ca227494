//! Sockets in the project that a program outside the sandbox serves: a command must not talk to that program.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{LazyLock, Mutex, PoisonError};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// Sockets that were served when they were tried: device, inode and time of creation. Each try opens a connection, which its
/// program sees, so no socket is tried twice.
static SERVED: LazyLock<Mutex<HashSet<(u64, u64, i64)>>> = LazyLock::new(Mutex::default);

/// Whether a program may serve the socket. One that was left behind is not hidden, so that a command can replace it.
pub(super) fn is_served(path: &Path) -> bool {
    let Ok(meta) = fs::symlink_metadata(path) else { return false };
    let socket = (meta.dev(), meta.ino(), meta.ctime());
    let known = || SERVED.lock().unwrap_or_else(PoisonError::into_inner);
    if known().contains(&socket) {
        return true;
    }
    let is_served = answers(path);
    if is_served {
        known().insert(socket);
    }
    is_served
}

fn answers(path: &Path) -> bool {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    // A path too long for an address cannot be tried; it may be reached through a shorter one.
    let Ok(address) = SocketAddrUnix::new(path) else { return true };
    let tried = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .and_then(|socket| connect(&socket, &address))
        .map_err(std::io::Error::from);
    !tried.is_err_and(|error| matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixDatagram, UnixListener};

    use super::*;

    #[test]
    fn only_a_socket_without_a_program_may_be_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let stream = UnixListener::bind(path("stream")).unwrap();
        let datagram = UnixDatagram::bind(path("datagram")).unwrap();
        drop(UnixListener::bind(path("left")).unwrap());
        let served = |name: &str| is_served(&path(name));
        assert!(served("stream") && served("datagram") && !served("left") && !served("none"));
        drop((stream, datagram));
    }
}
