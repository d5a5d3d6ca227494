//! Background commands of the session's agents.
//!
//! They are known from events in the journal. No command outlives its process, so a session that is opened starts with
//! none.

use max_team_core::event::Event;
use max_team_core::id::AgentId;
use max_team_runtime::Origin;

/// All that run, oldest first.
#[derive(Debug, Default)]
pub(super) struct Background(Vec<BackgroundCommand>);

#[derive(Debug)]
struct BackgroundCommand {
    agent: AgentId,
    who: String,
    id: String,
    name: String,
}

/// A command that came to no end of its own.
#[derive(Debug)]
pub(super) struct LostCommand {
    pub(super) who: String,
    pub(super) command: String,
    /// Whether it died with the program.
    pub(super) is_lost: bool,
}

impl Background {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Who has left something running, and how much.
    pub(super) fn by_name(&self) -> Vec<(&str, usize)> {
        let mut found: Vec<(&str, usize)> = Vec::new();
        for command in &self.0 {
            match found.iter_mut().find(|(who, _)| *who == command.who) {
                Some((_, count)) => *count += 1,
                None => found.push((&command.who, 1)),
            }
        }
        found
    }

    /// Folds an event. Returns the command that was stopped or lost, if there is one.
    pub(super) fn hear(&mut self, from: &Origin, event: &Event) -> Option<LostCommand> {
        let agent = from.agent?;
        match event {
            Event::CommandBegun(begun) => {
                let (who, id, name) = (from.name.to_string(), begun.id.clone(), begun.name.clone());
                self.0.push(BackgroundCommand { agent, who, id, name });
                None
            }
            Event::CommandOver(over) => {
                let index = self.0.iter().position(|known| known.agent == agent && known.id == over.id);
                let known = index.map(|index| self.0.remove(index));
                // One that died with an earlier process began before we came.
                let name = known.map(|known| known.name).or(Some(over.name.clone())).filter(|name| !name.is_empty())?;
                let gone = LostCommand { who: from.name.to_string(), command: name, is_lost: over.lost };
                (over.stopped || over.lost).then_some(gone)
            }
            // An agent's commands end with it.
            Event::AgentEnded(_) => {
                self.0.retain(|known| known.agent != agent);
                None
            }
            _ => None,
        }
    }
}
