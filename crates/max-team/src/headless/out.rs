//! Lines on their way to standard output.
//!
//! A thread of its own writes them, so that a slow reader does not delay the agents and still gets every line before
//! the program ends. If the reader is gone, the next line fails.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

/// Lines that wait for a reader. More than that push back.
const LINES_MAX: usize = 65_536;

/// Where lines go; the thread begins with the first of them.
#[derive(Debug, Default)]
pub(crate) struct OutputLines(Mutex<Option<Writer>>);

#[derive(Debug)]
struct Writer {
    lines: SyncSender<String>,
    thread: JoinHandle<io::Result<()>>,
}

impl OutputLines {
    /// Puts a line behind those that wait.
    pub(super) fn put(&self, line: String) -> io::Result<()> {
        let mut writer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let writer = match &mut *writer {
            Some(writer) => writer,
            none => none.insert(begin()?),
        };
        writer.lines.send(line).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Waits until every line is written, or the reader is gone.
    pub(super) async fn close(&self) -> io::Result<()> {
        let Some(writer) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() else { return Ok(()) };
        drop(writer.lines);
        let joined = tokio::task::spawn_blocking(|| writer.thread.join()).await;
        joined.map_err(io::Error::other)?.unwrap_or_else(|_| Err(io::Error::other("the writer stopped")))
    }
}

fn begin() -> io::Result<Writer> {
    let (lines, waiting) = sync_channel(LINES_MAX);
    let thread = std::thread::Builder::new().name("out".to_owned()).spawn(move || write(&waiting))?;
    Ok(Writer { lines, thread })
}

fn write(waiting: &Receiver<String>) -> io::Result<()> {
    let mut out = io::stdout();
    for line in waiting {
        // Line by line and at once, so that a reader sees each when it happens.
        writeln!(out, "{line}")?;
        out.flush()?;
    }
    Ok(())
}
