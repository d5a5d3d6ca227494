//! `/detach`: the chat ends, and the server of the folder goes on with the session.

use max_team_runtime::RuntimeError;
use max_team_runtime::storage::WorkerInfo;

use super::super::command_queue::UiCommand;
use super::super::rows::Row;
use super::super::transcript::Item;
use super::{Session, note};

impl Session {
    pub(super) fn detach(&mut self) -> Vec<Item> {
        if self.setup.recorded {
            return vec![note(self.lang.demo_stays_here().to_owned())];
        }
        self.acts.push(UiCommand::Detach);
        vec![note(self.lang.detaching().to_owned())]
    }

    /// The session was handed over, or stays here.
    pub(super) fn detached(&mut self, outcome: Result<Option<WorkerInfo>, RuntimeError>) -> Vec<Item> {
        let words = match outcome {
            Ok(Some(server)) => self.lang.detached(self.id, server.pid),
            Ok(None) => self.lang.detached_unopened(self.id),
            Err(error) => return vec![Item::Row(Row::Error(self.lang.runtime_failure(&error)))],
        };
        self.run.detached = Some(words);
        Vec::new()
    }

    /// What the user is told once the session was handed over: the chat ends then.
    pub(in super::super) fn farewell(&self) -> Option<&str> {
        self.run.detached.as_deref()
    }
}
