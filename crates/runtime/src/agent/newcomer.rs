//! Somebody who begins to exist with something to do.
//!
//! Whoever gives it to them tells the journal in one commit: that they exist, what they were given, and their first
//! step. They sit before that commit and run after it, so nothing waits in between and nothing is read back.

use std::sync::Arc;

use max_team_core::event::{AgentStarted, Event};
use max_team_core::id::AgentId;
use max_team_core::message::{Assignment, Envelope};
use max_team_core::team::{Definition, Settings};
use max_team_core::turn::Turn;
use max_team_journal::Commit;
use tokio::sync::mpsc;

use super::{Agent, Control};
use crate::error::RuntimeError;
use crate::floor::Floor;
use crate::shared::append;
use crate::{rows, session};

pub(crate) struct Newcomer {
    id: AgentId,
    /// Gone once it has begun.
    seated: Option<(Box<Agent>, mpsc::Receiver<Control>)>,
    events: Vec<Event>,
}

impl Newcomer {
    /// Lets somebody sit down with a letter in hand; what the journal is told about them is added to the commit.
    /// `None`: somebody sits there already, and reads the letter.
    pub(crate) fn welcome(
        floor: &Arc<Floor>,
        id: AgentId,
        definition: &Arc<Definition>,
        settings: Arc<Settings>,
        assignment: Arc<Assignment>,
        letter: &Envelope,
        commit: &mut Commit,
    ) -> Result<Option<Self>, RuntimeError> {
        let stream = session::agent_stream(id);
        let given = Arc::clone(&assignment);
        let started = Event::AgentStarted(AgentStarted {
            agent: id,
            session: floor.session,
            definition: Arc::clone(definition),
            assignment: Some(assignment),
            settings: Some(settings),
        });
        let mut turn = Turn::new();
        turn.apply(&started);
        let Some((mut agent, controls)) = floor.seat_newcomer(id, &given, turn)? else { return Ok(None) };
        let mut events = agent.opening(letter);
        if events.iter().any(|event| matches!(event, Event::TurnEnded(_))) {
            // It would be over before it began: it reads the letter and says so itself.
            events.clear();
        }
        let name = given.life.mate().map_or(&definition.name, |mate| &mate.name);
        let actor = format!("agent:{name}");
        for event in std::iter::once(&started).chain(&events) {
            commit.appends.push(append(&stream, event, &actor)?);
            commit.projections.extend(rows::project(&stream, commit.at_ms, event));
        }
        commit.blobs.extend(agent.unstored());
        Ok(Some(Self { id, seated: Some((agent, controls)), events }))
    }

    /// Whether the letter is in its hands and never waits in a mailbox.
    pub(crate) fn has_begun(&self) -> bool {
        !self.events.is_empty()
    }

    /// The commit is on its way: they get ready.
    pub(crate) fn prepare(&mut self, at_ms: i64) {
        if let Some((agent, _)) = &mut self.seated {
            agent.adopt(std::mem::take(&mut self.events), at_ms);
        }
    }

    /// The commit is through.
    pub(crate) fn begin(mut self, floor: &Arc<Floor>) {
        if let Some((agent, controls)) = self.seated.take() {
            floor.spawn(session::agent_stream(self.id), agent.run(controls));
        }
    }
}

impl Drop for Newcomer {
    /// A commit that fails leaves nobody behind who never began.
    fn drop(&mut self) {
        if let Some((agent, _)) = self.seated.take() {
            agent.give_up();
        }
    }
}
