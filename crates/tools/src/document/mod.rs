//! The text of documents: PDF, and the office formats that are ZIP archives of XML.
//!
//! Such files come from strangers, and parsers panic, hang and fill memory on purpose-made ones. So they are parsed by
//! a child process (`child`) that has limits, no environment, and nothing but its two pipes; here the bytes go in, the
//! text comes out, and the child is killed when its time is over or the call is cancelled.

mod child;
mod office;

use std::io::{Read, Write as _};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use max_team_core::limits::{DOCUMENT_BYTES_MAX, DOCUMENT_MS_MAX, DOCUMENT_TEXT_BYTES_MAX};
use tokio::sync::oneshot;

pub use child::serve;

use crate::text::{clip, size, visible};
use crate::tool::{ToolContext, ToolError};

/// Bytes of a reason that a child gives.
const REASON_BYTES_MAX: usize = 300;
/// What a child's answer begins with if it is the text; else it is the reason why there is none.
const FINE: &[u8] = b"+";

/// The kind of document that bytes begin like, as text.
pub(crate) fn kind(head: &[u8]) -> Option<&'static str> {
    match head {
        [b'%', b'P', b'D', b'F', b'-', ..] => Some("a PDF document"),
        [b'P', b'K', 3, 4, ..] => Some("an office document"),
        _ => None,
    }
}

/// The text of a document, read in a process of its own. Blocking.
pub(crate) fn text(cx: &ToolContext, document: impl Read) -> Result<String, ToolError> {
    let mut bytes = Vec::new();
    let told = |words: String| ToolError::correctable(words);
    document
        .take(DOCUMENT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|err| told(format!("the document cannot be read: {err}")))?;
    if bytes.len() as u64 > DOCUMENT_BYTES_MAX {
        return Err(told(format!("the document is larger than {}", size(DOCUMENT_BYTES_MAX))));
    }
    let mut child = start(cx)?;
    let answer = converse(cx, &mut child, bytes);
    // One that is done already cannot be killed, and one that is killed is waited for: no zombie stays.
    let _ = child.kill();
    let status = child.wait().map_err(|err| told(format!("the reader of documents was lost: {err}")))?;
    let answer = answer?;
    match answer.strip_prefix(FINE) {
        Some(text) => Ok(String::from_utf8_lossy(text).into_owned()),
        None if answer.is_empty() => Err(told(format!(
            "the document cannot be read: it broke its reader ({status}); it may be damaged, too deep or too large"
        ))),
        None => {
            let why = visible(&clip(&String::from_utf8_lossy(&answer), REASON_BYTES_MAX));
            Err(told(format!("the document cannot be read: {why}")))
        }
    }
}

fn start(cx: &ToolContext) -> Result<Child, ToolError> {
    let (program, args) = cx
        .services
        .reader
        .split_first()
        .ok_or_else(|| ToolError::correctable("documents cannot be read here: there is no program for it"))?;
    Command::new(program)
        .args(args)
        .env_clear()
        // The reader may have a gigabyte of addresses; this program's allocator would set that much aside at its start.
        .env("MIMALLOC_ARENA_RESERVE", "0")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|err| ToolError::correctable(format!("the reader of documents cannot be started: {err}")))
}

/// Gives the child the bytes and takes its answer, as long as it may take.
fn converse(cx: &ToolContext, child: &mut Child, bytes: Vec<u8>) -> Result<Vec<u8>, ToolError> {
    let lost = || ToolError::correctable("the reader of documents was lost");
    let (mut stdin, stdout) = child.stdin.take().zip(child.stdout.take()).ok_or_else(lost)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(|_| lost())?;
    let (done, answer) = oneshot::channel();
    cx.progress.say(|| format!("reading a document of {}", size(bytes.len() as u64)));
    // Both threads end with the child, which is killed in any case.
    thread::spawn(move || {
        // A child that stops reading says why in its answer.
        let _ = stdin.write_all(&bytes);
    });
    thread::spawn(move || {
        let mut answer = Vec::new();
        let most = DOCUMENT_TEXT_BYTES_MAX + FINE.len();
        let read = stdout.take(most as u64).read_to_end(&mut answer);
        let _ = done.send(read.map(|_| answer));
    });
    runtime.block_on(async {
        tokio::select! {
            answer = answer => answer.ok().and_then(Result::ok).ok_or_else(lost),
            () = cx.cancel.cancelled() => Err(ToolError::correctable("stopped before it was done")),
            () = tokio::time::sleep(Duration::from_millis(DOCUMENT_MS_MAX)) => Err(ToolError::correctable(format!(
                "the document cannot be read within {} s", DOCUMENT_MS_MAX / 1_000
            ))),
        }
    })
}
