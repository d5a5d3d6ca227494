//! Messages between us and the supervisor, over one socket: an order first, then single bytes down and reports up.
//!
//! The socket is the supervisor's standard input. Its end of file means that we are gone.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::spec::{EndReason, Engine, Spec};
use crate::watch::AppearedPath;

/// Bytes of one order or report.
const MESSAGE_BYTES_MAX: u32 = 16 << 20;

/// The first argument that makes this program a supervisor.
pub(crate) const WORD: &str = "__sandbox";

/// Sent down: end the command, kindly at first, because it was cancelled.
pub(crate) const STOP: u8 = b's';
/// Sent down: end it at once, because its output so far is enough.
pub(crate) const ENOUGH: u8 = b'e';
/// Sent down: end it, kindly at first, because it did nothing for too long.
pub(crate) const IDLE: u8 = b'i';
/// Sent down: end it at once, because it has printed more than it may.
pub(crate) const FLOOD: u8 = b'f';

/// What the supervisor is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) spec: Spec,
    pub(crate) engine: Engine,
    /// The niceness of the command.
    pub(crate) nice: i32,
    /// Whether a file follows in which the end of the command is noted.
    pub(crate) has_end_mark: bool,
    /// Whether, after that, the end of a pipe follows that the command reads from.
    pub(crate) has_stdin: bool,
    /// Whether, after that, the file follows that the watch reads.
    pub(crate) has_notes: bool,
    /// Whether, after that, the folder follows in which the scratch folder lies.
    pub(crate) has_scratch: bool,
    /// Whether the supervisor hands out the sockets of a [`NetworkDoor`](crate::NetworkDoor).
    pub(crate) has_door: bool,
}

/// What the supervisor says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SupervisorReport {
    /// The sandbox is built.
    Ready,
    /// It could not be started.
    Unable(StartError),
    /// A protected file appeared while the command runs, and was moved away.
    Appeared(AppearedPath),
    /// It has ended, and so has everything that it started.
    Over(SupervisedEnd),
}

/// How a command went, as its supervisor saw it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SupervisedEnd {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) ended: EndReason,
    pub(crate) appeared: Vec<AppearedPath>,
    pub(crate) unexamined: Option<String>,
    pub(crate) bypassed: bool,
}

/// Why a program could not be started.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StartError {
    NotFound,
    Interpreter,
    Denied,
    Folder,
    /// The sandbox could not be built, for this reason.
    #[serde(rename = "walls")]
    Sandbox(String),
    /// The number of an error of the system.
    Errno(i32),
}

/// Sends one message.
pub(crate) fn send(mut to: impl Write, message: &impl Serialize) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    let size = u32::try_from(body.len()).map_err(io::Error::other)?;
    let mut whole = size.to_le_bytes().to_vec();
    whole.extend(body);
    to.write_all(&whole)
}

/// A socket whose other end may be closed: then a write is an error, and never a signal that ends this process.
pub(crate) struct Unsignalled<'a>(pub(crate) &'a UnixStream);

impl Write for Unsignalled<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(self.0, bytes, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Receives one message; `None` at the end.
pub(crate) fn receive<T: DeserializeOwned>(mut from: impl Read) -> io::Result<Option<T>> {
    let mut size = [0; 4];
    match from.read_exact(&mut size) {
        // The second comes if something that we sent was never read.
        Err(error) if matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset) => {
            return Ok(None);
        }
        other => other?,
    }
    let size = u32::from_le_bytes(size);
    if size > MESSAGE_BYTES_MAX {
        return Err(io::Error::other(format!("a message of {size} bytes is too long")));
    }
    let mut body = Vec::new();
    from.take(size.into()).read_to_end(&mut body)?;
    Ok(Some(serde_json::from_slice(&body)?))
}

/// Files that are handed over at once.
const HANDED_MAX: usize = 3;

/// Hands sockets or files over.
pub(crate) fn hand(to: &UnixStream, sockets: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(HANDED_MAX))];
    let mut buffer = SendAncillaryBuffer::new(&mut space);
    buffer.push(SendAncillaryMessage::ScmRights(sockets));
    sendmsg(to, &[IoSlice::new(b"s")], &mut buffer, SendFlags::empty())?;
    Ok(())
}

/// Takes the sockets or files that are handed over; none at the end.
pub(crate) fn take(from: &UnixStream) -> io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(HANDED_MAX))];
    let mut buffer = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(from, &mut [IoSliceMut::new(&mut byte)], &mut buffer, RecvFlags::CMSG_CLOEXEC)?;
    let sockets = buffer.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(sockets) => Some(sockets),
        _ => None,
    });
    Ok(sockets.flatten().collect())
}

/// A byte from the other side; `None` at the end.
pub(crate) fn letter(mut from: &UnixStream) -> Option<u8> {
    let mut letter = [0];
    match from.read(&mut letter) {
        Ok(1) => Some(letter[0]),
        _ => None,
    }
}
