//! Looks after the files that a command makes, from within its supervisor: so also when the process that started the command was
//! killed. What is looked for is the caller's knowledge; here is when.

use std::fmt;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use serde::{Deserialize, Serialize};

/// Held while a program of our own runs beside the command, so that its end is not reaped with the command's processes.
static HELPER: Mutex<()> = Mutex::new(());

/// A protected path that came into being while a command ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppearedPath {
    /// The protected name.
    pub path: PathBuf,
    /// Where it is now; `None` if it could not be moved.
    pub moved: Option<PathBuf>,
}

/// What the watch of a command's files is made of.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WatchOrder {
    /// As plain text; its maker knows it.
    pub text: String,
    /// A file that the process which gives the order goes on writing to.
    #[serde(skip)]
    pub notes: Option<Arc<File>>,
    /// Hears of each file that is moved away while the command runs.
    #[serde(skip)]
    pub listener: Option<AppearedListener>,
}

impl PartialEq for WatchOrder {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for WatchOrder {}

/// Hears of files that appeared.
#[derive(Clone)]
pub struct AppearedListener(pub Arc<dyn Fn(&AppearedPath) + Send + Sync>);

impl fmt::Debug for AppearedListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AppearedListener")
    }
}

/// Makes the watch of an order, with the file that the order's giver writes to; `None` if the order cannot be read.
pub type WatchMaker = fn(&str, Option<File>) -> Option<Box<dyn FileWatch>>;

/// Moves files away that a command must not make.
pub trait FileWatch: Send {
    /// Works while the command runs, until `end` can be read. `heard` takes each file that was moved.
    fn guard(&mut self, end: &PipeReader, heard: &mut dyn FnMut(AppearedPath));

    /// Looks once no process of the command is left; returns the files that were moved, and why there may be more, if so.
    fn sweep(&mut self) -> (Vec<AppearedPath>, Option<String>);
}

/// Runs a program of our own beside the command, from a [`FileWatch`].
pub fn run_helper(command: &mut Command) -> io::Result<Output> {
    let _reaping = lock();
    command.output()
}

/// The right to reap processes; `None` while a program of our own runs.
pub(crate) fn reaping() -> Option<MutexGuard<'static, ()>> {
    HELPER.try_lock().ok()
}

fn lock() -> MutexGuard<'static, ()> {
    HELPER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The watch of one command.
pub(crate) enum CommandWatch {
    None,
    Made(Box<dyn FileWatch>),
    /// Its thread ends when the pipe is closed.
    Guards(PipeWriter, JoinHandle<Box<dyn FileWatch>>),
    /// The order could not be read, or the thread has crashed.
    Broken,
}

impl CommandWatch {
    pub(crate) fn of(order: Option<&WatchOrder>, notes: Option<File>, maker: WatchMaker) -> Self {
        match order.map(|order| maker(&order.text, notes)) {
            None => Self::None,
            Some(None) => Self::Broken,
            Some(Some(watch)) => Self::Made(watch),
        }
    }

    /// Begins to guard, in a thread of its own. `heard` takes each file that was moved.
    pub(crate) fn begin(self, mut heard: impl FnMut(AppearedPath) + Send + 'static) -> io::Result<Self> {
        let Self::Made(mut watch) = self else { return Ok(self) };
        let (end, ending) = io::pipe()?;
        let guard = move || {
            watch.guard(&end, &mut heard);
            watch
        };
        Ok(Self::Guards(ending, thread::Builder::new().spawn(guard)?))
    }

    /// Looks once more when the command has ended.
    pub(crate) fn finish(self) -> (Vec<AppearedPath>, Option<String>) {
        let broken = |why: &str| (Vec::new(), Some(why.to_owned()));
        match self {
            Self::None => (Vec::new(), None),
            Self::Made(mut watch) => watch.sweep(),
            Self::Guards(ending, thread) => {
                drop(ending);
                thread.join().map_or_else(|_| broken("their watch has crashed"), |mut watch| watch.sweep())
            }
            Self::Broken => broken("their watch could not be started"),
        }
    }
}
