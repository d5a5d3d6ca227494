//! Background commands of an agent that stays: the agent is told when one has ended.
//!
//! The beginning of a command is recorded with the result of the call that began it, its end with the turn that is
//! told of it, or before it is stopped. A command that ran when its process ended has ended, too, with an unknown
//! outcome.

use std::sync::{Arc, Mutex};

use max_team_core::event::{Event, InterruptedBy};
use max_team_core::rewind::FilesChanged;
use max_team_core::teammate::{CommandBegun, CommandOver};
use max_team_core::turn::{Turn, TurnInput};
use max_team_tools::AgentBrowser;
use max_team_tools::shell::{Background, BackgroundStatus};
use tokio::sync::Notify;

use super::{Agent, Extra};
use crate::error::RuntimeError;
use crate::shared::lock;

/// An agent's background commands, and the file changes that scans found.
pub(super) struct Commands {
    /// They end with the agent's loop.
    pub(super) background: Arc<Background>,
    /// Its tabs in a browser; they are closed with the agent's loop, too.
    pub(super) browser: Arc<AgentBrowser>,
    /// Changes that are not in the journal yet.
    pub(super) seen: Arc<Mutex<Vec<FilesChanged>>>,
}

impl Commands {
    /// `bell` rings when a command has ended.
    pub(super) fn new(bell: &Arc<Notify>) -> Self {
        let (background, bell) = (Arc::new(Background::default()), Arc::clone(bell));
        background.listen(move || bell.notify_one());
        Self { background, browser: Arc::default(), seen: Arc::default() }
    }

    /// Ends all commands.
    pub(super) async fn close(&self) {
        if self.background.is_used() {
            let background = Arc::clone(&self.background);
            // If the async runtime itself ends, the supervisors of the commands notice that this process is gone.
            drop(tokio::task::spawn_blocking(move || background.close()).await);
        }
    }

    /// The commands that began since the last call.
    fn begun(&self, turn: &Turn) -> Vec<Event> {
        if !self.background.is_used() {
            return Vec::new();
        }
        let written = turn.commands();
        let is_new = |known: &BackgroundStatus| {
            // A command that ended before its beginning was recorded is recorded like the others.
            let is_told = known.is_over && known.is_seen;
            // A stopped command was recorded as ended before it was stopped.
            !is_told && !known.is_stopped && written.iter().all(|begun| begun.id != known.id)
        };
        let new = self.background.known().into_iter().filter(is_new);
        new.map(|known| Event::CommandBegun(CommandBegun { id: known.id, name: known.name })).collect()
    }

    /// The end of each command of an agent that ends.
    pub(super) fn ended(&self, turn: &Turn) -> impl Iterator<Item = CommandOver> {
        let known = self.background.known();
        turn.commands().iter().map(move |CommandBegun { id, name }| {
            let known = known.iter().find(|known| known.id == *id);
            let stopped = known.is_none_or(|known| !known.is_over);
            CommandOver { id: id.clone(), lost: known.is_none(), stopped, name: name.clone() }
        })
    }

    /// The events for stopped commands, committed before they are killed: after a crash no turn begins because of
    /// them. A command that had already ended is reported as usual.
    fn stopped(&self, turn: &Turn) -> Vec<Event> {
        self.ended(turn).filter(|over| over.stopped).map(Event::CommandOver).collect()
    }

    /// The commands that have ended, and the texts about them for the agent.
    fn over(&self, turn: &Turn) -> (Vec<Event>, Vec<String>) {
        let known = self.background.known();
        let (mut events, mut told) = (Vec::new(), Vec::new());
        for CommandBegun { id, name } in turn.commands() {
            let known = known.iter().find(|known| known.id == *id);
            let stopped = known.is_some_and(|known| known.is_stopped);
            let lost = match known {
                Some(known) if !known.is_over => continue,
                Some(known) if known.is_seen => false,
                Some(_) => {
                    told.push(self.background.last_words(id).unwrap_or_else(|| format!("`{id}` ({name}): ended")));
                    false
                }
                None => {
                    told.push(format!(
                        "`{id}` ({name}): it died with the program, which ended while it ran. How far it came is unknown: look \
                         before you run it again."
                    ));
                    true
                }
            };
            let (id, name) = (id.clone(), if lost { name.clone() } else { String::new() });
            events.push(Event::CommandOver(CommandOver { id, lost, stopped, name }));
        }
        (events, told)
    }

    /// Unknown changes of commands, and protected files that were moved away.
    pub(super) fn files_changed(&self) -> Vec<Event> {
        std::mem::take(&mut *lock(&self.seen)).into_iter().map(Event::FilesChanged).collect()
    }
}

impl Agent {
    /// The commands that began since the last call. An agent that does not stay is not told of their ends.
    pub(super) fn commands_begun(&self) -> Vec<Event> {
        if self.stays() { self.commands.begun(&self.turn) } else { Vec::new() }
    }

    /// Stops the turn, if one runs, and the agents that it called. A person's stop and the agent's end stop its background
    /// commands, too.
    pub(super) async fn interrupt(&mut self, by: InterruptedBy, extra: Extra) -> Result<(), RuntimeError> {
        self.follow().await?;
        let stops_commands = by.held.is_some() || by.ends;
        let mut events = if stops_commands { self.commands.stopped(&self.turn) } else { Vec::new() };
        events.extend(self.turned_down(by.held.as_ref())?);
        events.extend(self.decide(TurnInput::Interrupt { by }));
        self.commit(events, extra).await?;
        if stops_commands {
            self.commands.background.stop_all();
        }
        Ok(())
    }

    /// Begins a turn about ended commands, if none runs; whether it did.
    pub(super) async fn hear_commands(&mut self) -> Result<bool, RuntimeError> {
        if self.turn.is_busy() || self.turn.agent_end().is_some() {
            return Ok(false);
        }
        // Files that were moved away while a command runs, and the changes of a stopped one, are recorded at once.
        let seen = self.commands.files_changed();
        self.commit(seen, Extra::default()).await?;
        // A stopped agent is told of the end of a command only after it has begun a turn again.
        if self.turn.commands().is_empty() || self.turn.held().is_some() {
            return Ok(false);
        }
        let (mut events, told) = self.commands.over(&self.turn);
        if events.is_empty() {
            return Ok(false);
        }
        events.extend(self.commands.files_changed());
        let begins = !told.is_empty();
        if begins {
            let words = format!("What you had left running in the background is over:\n\n{}", told.join("\n\n"));
            let begin = self.beginning_about(words, &told.join(" "));
            self.follow().await?;
            events.extend(self.decide(begin));
        }
        self.commit(events, Extra::default()).await?;
        // If no turn begins, no other event would publish it soon.
        self.tell().await;
        self.know_task();
        Ok(begins)
    }
}
