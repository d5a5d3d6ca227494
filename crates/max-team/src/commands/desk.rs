//! What the commands share that work on the journal alone: the way in, and waiting to be heard.
//!
//! A letter is committed before anything else is said about it. Whether somebody runs the session decides what the
//! user is told: that it happened, that it is noted, or that its process has not taken it yet.

use std::io::{BufRead, IsTerminal, Write};
use std::time::Duration;

use max_team_core::id::SessionId;
use max_team_core::message::Principal;
use max_team_journal::{Entry, Journal, Watch, WorkerInfo};
use max_team_runtime::{Census, Post};
use tokio::time::Instant;

use max_team_workspace::exit::{Exit, Stop};
use max_team_workspace::setup::{self, Place};
use max_team_workspace::words::Lang;

/// How long somebody who runs the session has to take a letter before the user is told that they have not.
const HEARD_WITHIN: Duration = Duration::from_secs(5);

/// The journal, and who looks into it.
pub(super) struct Desk {
    pub(super) journal: Journal,
    pub(super) by: Principal,
    pub(super) lang: Lang,
}

impl Desk {
    pub(super) fn open(place: &Place) -> Result<Self, Stop> {
        let journal = place.journal_to_look().map_err(|error| setup::stop(&error))?;
        Ok(Self { journal, by: place.principal("cli"), lang: place.speaks() })
    }

    pub(super) fn post(&self) -> Post<'_> {
        Post::new(&self.journal)
    }

    pub(super) fn census(&self) -> Census<'_> {
        Census::new(&self.journal)
    }

    /// The process that runs a session.
    pub(super) fn owner(&self, session: Option<SessionId>) -> Result<Option<WorkerInfo>, Stop> {
        session.map_or(Ok(None), |session| self.census().owner(session).map_err(stop))
    }

    /// The log from now on; to be taken before the letter is sent.
    pub(super) fn watch(&self) -> anyhow::Result<Watch> {
        Ok(self.journal.watch(self.journal.last_seq()?)?)
    }
}

/// Runs what has to wait.
pub(super) fn wait<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

/// Looks at what comes until there is what was waited for; `None` if that takes too long.
pub(super) async fn until<T>(
    watch: &mut Watch,
    mut look: impl FnMut(Option<&Entry>) -> anyhow::Result<Option<T>>,
) -> anyhow::Result<Option<T>> {
    let deadline = Instant::now() + HEARD_WITHIN;
    let mut found = look(None)?;
    while found.is_none() {
        let Ok(entry) = tokio::time::timeout_at(deadline, watch.next()).await else { break };
        found = look(Some(&entry?))?;
    }
    Ok(found)
}

pub(super) use max_team_runtime::now_ms;
pub(super) use max_team_workspace::setup::failed as stop;

/// What cannot simply be taken back is asked about; where nobody can be asked, it does not happen, and `unasked` says why.
pub(crate) fn agreed(question: &str, unasked: impl Fn(Lang) -> &'static str) -> Result<bool, Stop> {
    if !std::io::stdin().is_terminal() {
        return Err(Stop::said(Exit::Usage, |lang| unasked(lang).to_owned()));
    }
    let mut out = std::io::stdout();
    let asked = write!(out, "{question} [y/N] ").and_then(|()| out.flush());
    let mut line = String::new();
    let read = asked.and_then(|()| std::io::stdin().lock().read_line(&mut line));
    Ok(read.is_ok() && line.trim().eq_ignore_ascii_case("y"))
}
