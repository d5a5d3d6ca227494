//! `events` and `logs`: what happens, from any place on, as lines for programs or for people.
//!
//! Every line goes out at once. A reader that went away ends it without a word; one that comes back goes on behind the last
//! whole line it has.

pub(super) mod line;

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use max_team_runtime::{Scope, StreamEvent, StreamReader, query};
use rustix::event::{PollFd, PollFlags, poll};
use tokio::sync::{Notify, mpsc, oneshot};

use super::context::{self, JournalContext, stop};
use super::mail;
use crate::args;
use crate::headless::talk;
use crate::recordings;
use crate::signals::Signals;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::i18n::Lang;
use max_team_workspace::setup::{self, AppEnv};

/// Lines that wait for a reader.
const LINES_AHEAD_MAX: usize = 256;

pub(crate) fn events(place: &AppEnv, options: &args::Events) -> anyhow::Result<Exit> {
    let context = JournalContext::open(place)?;
    let scope = match &options.session {
        _ if options.all => Scope::All,
        Some(id) => Scope::Session(setup::session(&context.team, id)?),
        None => Scope::Session(mail::last_used(&context, place).or_else(|_| recordings::latest(&context.team))?),
    };
    let json = options.reading.events.json || !io::stdout().is_terminal();
    read(&context, scope, &options.reading, json)
}

pub(crate) fn logs(place: &AppEnv, options: &args::Logs) -> anyhow::Result<Exit> {
    let context = JournalContext::open(place)?;
    let session = options.session.as_deref().map(|id| setup::session(&context.team, id)).transpose()?;
    let found = mail::agent_of(&context, place, session, &options.agent)?;
    let nobody = || CliError::said(Exit::Failed, |lang| lang.no_such_agent(&options.agent));
    let row = found.ok_or_else(nobody)?;
    read(&context, Scope::Agent(row.session, row.agent), &options.reading, options.reading.events.json)
}

fn read(context: &JournalContext, scope: Scope, reading: &args::Reading, json: bool) -> anyhow::Result<Exit> {
    let reader = context.team.stream(scope, reading.events.from).map_err(stop)?;
    let lines = EventLines { types: &reading.events.types, json, lang: context.lang };
    let told = if reading.follow {
        if let Some(why) = context.storage.unwritable() {
            talk(&context.lang.follows_nothing(setup::told(context.lang, &why)));
        }
        context::wait(follow(reader, &lines))
    } else {
        let last = context.read(query::Position {})?.seq;
        lines.upto(reader, last)
    };
    match told {
        // The reader of the output has closed it: that is no failure.
        Err(error)
            if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) =>
        {
            Ok(Exit::Ok)
        }
        told => told,
    }
}

async fn follow(mut reader: StreamReader, lines: &EventLines<'_>) -> anyhow::Result<Exit> {
    let mut signals = Signals::listen()?;
    let (gone, (out, mut written)) = (gone(), writer());
    loop {
        let step = async {
            let event = reader.next().await.map_err(stop)?;
            if let Some(line) = lines.line(&event)? {
                // If the writer has ended, it says why.
                drop(out.send(line).await);
            }
            anyhow::Ok(())
        };
        tokio::select! {
            biased;
            exit = signals.next() => return Ok(exit),
            () = gone.notified() => return Ok(Exit::Ok),
            ended = &mut written => return Ok(ended?.map(|()| Exit::Ok)?),
            step = step => step?,
        }
    }
}

/// Writes lines on its own thread, so that a slow reader does not delay the reaction to a signal. Returns how writing
/// ended.
fn writer() -> (mpsc::Sender<String>, oneshot::Receiver<io::Result<()>>) {
    let (out, mut lines) = mpsc::channel::<String>(LINES_AHEAD_MAX);
    let (ended, written) = oneshot::channel();
    std::thread::spawn(move || {
        let mut end = Ok(());
        while let Some(line) = lines.blocking_recv().filter(|_| end.is_ok()) {
            end = put(&line);
        }
        drop(ended.send(end));
    });
    (out, written)
}

/// One write per line, so that a process that is killed leaves no partial line in a pipe that has room.
fn put(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes())?;
    out.flush()
}

/// Notifies when the reader of standard output is gone, also while there is nothing to write.
fn gone() -> Arc<Notify> {
    let gone = Arc::new(Notify::new());
    let told = Arc::clone(&gone);
    // The thread sleeps until then, and ends with the process.
    std::thread::spawn(move || {
        let out = io::stdout();
        // No event is waited for: the end of a pipe is told without being asked for.
        if poll(&mut [PollFd::new(&out, PollFlags::empty())], None).is_ok() {
            told.notify_one();
        }
    });
    gone
}

/// How events are told.
struct EventLines<'a> {
    /// Those that are told; all, if it names none.
    types: &'a [String],
    json: bool,
    lang: Lang,
}

impl EventLines<'_> {
    /// Everything that is in the log up to an entry.
    fn upto(&self, mut reader: StreamReader, last: u64) -> anyhow::Result<Exit> {
        while let Some(event) = reader.try_next().map_err(stop)?.filter(|event| event.seq <= last) {
            self.line(&event)?.map_or(Ok(()), |line| put(&line))?;
        }
        Ok(Exit::Ok)
    }

    /// How an event is told, if it is one of those.
    fn line(&self, event: &StreamEvent) -> anyhow::Result<Option<String>> {
        if !self.types.is_empty() && !self.types.iter().any(|name| name == event.what.name()) {
            return Ok(None);
        }
        Ok(Some(if self.json { serde_json::to_string(event)? } else { line::line(event, self.lang) }))
    }
}
