//! Shared by the commands that start no team: reading stored state, and waiting until a message is read.
//!
//! A message is committed before anything is printed about it. If no process runs the session, the user is told that
//! the message is stored; otherwise that it took effect, or that the process has not read it yet.

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use max_team_core::id::SessionId;
use max_team_core::message::Principal;
use max_team_runtime::maintenance::Storage;
use max_team_runtime::storage::WorkerInfo;
use max_team_runtime::{LogEntry, LogFollower, RuntimeError, StoredQuestion, TeamReader, UserMail, query};
use tokio::time::Instant;

use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::i18n::Lang;
use max_team_workspace::setup::{self, AppEnv};

/// How long the process that runs the session has to read a message before the user is told that it has not.
const HEARD_WITHIN: Duration = Duration::from_secs(5);

/// The stored team, and who asks.
pub(super) struct JournalContext {
    pub(super) storage: Storage,
    pub(super) team: TeamReader,
    pub(super) by: Principal,
    pub(super) lang: Lang,
}

impl JournalContext {
    pub(super) fn open(place: &AppEnv) -> Result<Self, CliError> {
        let storage = place.storage_to_read().map_err(|error| setup::stop(&error))?;
        Ok(Self { team: storage.reader(), storage, by: place.principal("cli"), lang: place.speaks() })
    }

    pub(super) fn post(&self) -> UserMail<'_> {
        self.team.post()
    }

    /// Answers a question from the journal.
    pub(super) fn read<Q: StoredQuestion>(&self, question: Q) -> Result<Q::Answer, CliError> {
        self.team.ask(question).map_err(stop)
    }

    /// The session that was last used in a folder.
    pub(super) fn latest_session(&self, root: &Path) -> Result<SessionId, CliError> {
        match self.team.ask(query::LatestSession { root: root.to_owned() }) {
            // The error of the query speaks of continuing, which the user has not asked for.
            Err(RuntimeError::NothingToContinue(_)) => {
                Err(CliError::said(Exit::Failed, |lang| lang.no_session_here().to_owned()))
            }
            latest => Ok(latest.map_err(stop)?.session),
        }
    }

    /// The process that runs a session.
    pub(super) fn owner(&self, session: Option<SessionId>) -> Result<Option<WorkerInfo>, CliError> {
        session.map_or(Ok(None), |session| self.read(query::Owner { session }))
    }

    /// The log from now on; to be taken before the message is sent.
    pub(super) fn watch(&self) -> anyhow::Result<LogFollower> {
        Ok(self.team.follow()?)
    }
}

/// Runs what has to wait.
pub(super) fn wait<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

/// Looks at what comes until there is what was waited for; `None` if that takes too long.
pub(super) async fn until<T>(
    watch: &mut LogFollower,
    mut look: impl FnMut(Option<&LogEntry>) -> anyhow::Result<Option<T>>,
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

/// Asks the user at the terminal for a line; `None`: there is no terminal, or the line is empty.
pub(crate) fn asked_for_line(question: &str, lang: Lang) -> Option<String> {
    let mut out = std::io::stderr();
    let asked = write!(out, "{question}\n{}\n> ", lang.empty_line_declines()).and_then(|()| out.flush());
    if !std::io::stdin().is_terminal() {
        drop(writeln!(out));
        return None;
    }
    let mut line = String::new();
    asked.and_then(|()| std::io::stdin().lock().read_line(&mut line)).ok()?;
    Some(line.trim().to_owned()).filter(|line| !line.is_empty())
}

/// Asks the user at the terminal; where there is none, the command stops with `exit` and the words that say why.
pub(crate) fn agreed(question: &str, exit: Exit, unasked: impl Fn(Lang) -> &'static str) -> Result<bool, CliError> {
    if !std::io::stdin().is_terminal() {
        return Err(CliError::said(exit, |lang| unasked(lang).to_owned()));
    }
    let mut out = std::io::stdout();
    let asked = write!(out, "{question} [y/N] ").and_then(|()| out.flush());
    let mut line = String::new();
    let read = asked.and_then(|()| std::io::stdin().lock().read_line(&mut line));
    Ok(read.is_ok() && matches!(line.trim().to_lowercase().as_str(), "y" | "yes" | "是"))
}
