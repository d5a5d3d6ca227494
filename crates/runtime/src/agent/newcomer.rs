//! An agent that starts with its first task.
//!
//! One commit records that it exists, its task, and its first step. Its loop is registered before that commit and runs
//! after it, so that nothing waits in between and nothing is read back.

use std::sync::Arc;

use max_team_core::agent::{Definition, Settings};
use max_team_core::event::{AgentStarted, Event};
use max_team_core::id::AgentId;
use max_team_core::message::{Assignment, Envelope};
use max_team_core::turn::Turn;
use max_team_journal::Commit;
use tokio::sync::mpsc;

use super::{Agent, Control};
use crate::active_session::ActiveSession;
use crate::error::RuntimeError;
use crate::shared::append;
use crate::{rows, session};

pub(crate) struct Newcomer {
    id: AgentId,
    /// `None` once it runs.
    seated: Option<(Box<Agent>, mpsc::Receiver<Control>)>,
    events: Vec<Event>,
}

impl Newcomer {
    /// Registers an agent with its first message; its first entries are added to the commit. `None`: its loop runs
    /// already, and reads the message.
    pub(crate) fn welcome(
        active: &Arc<ActiveSession>,
        id: AgentId,
        definition: &Arc<Definition>,
        settings: Arc<Settings>,
        assignment: Arc<Assignment>,
        envelope: &Envelope,
        commit: &mut Commit,
    ) -> Result<Option<Self>, RuntimeError> {
        let stream = session::agent_stream(id);
        let given = Arc::clone(&assignment);
        let started = Event::AgentStarted(AgentStarted {
            agent: id,
            session: active.session,
            definition: Arc::clone(definition),
            assignment: Some(assignment),
            settings: Some(settings),
        });
        let mut turn = Turn::new();
        turn.apply(&started);
        let Some((mut agent, controls)) = active.seat_newcomer(id, &given, turn)? else { return Ok(None) };
        let mut events = agent.opening(envelope);
        if events.iter().any(|event| matches!(event, Event::TurnEnded(_))) {
            // Its turn would be over before it began: it reads the message and reports that itself.
            events.clear();
        }
        let name = given.life.teammate().map_or(&definition.name, |teammate| &teammate.name);
        let actor = format!("agent:{name}");
        for event in std::iter::once(&started).chain(&events) {
            commit.appends.push(append(&stream, event, &actor)?);
            commit.projections.extend(rows::project(&stream, commit.at_ms, event));
        }
        commit.blobs.extend(agent.unstored());
        Ok(Some(Self { id, seated: Some((agent, controls)), events }))
    }

    /// Whether it has already taken the message, which then never waits in a mailbox.
    pub(crate) fn has_begun(&self) -> bool {
        !self.events.is_empty()
    }

    /// Prepares the agent while the commit is written.
    pub(crate) fn prepare(&mut self, at_ms: i64) {
        if let Some((agent, _)) = &mut self.seated {
            agent.adopt(std::mem::take(&mut self.events), at_ms);
        }
    }

    /// Runs the agent once the commit is stored.
    pub(crate) fn begin(mut self, active: &Arc<ActiveSession>) {
        if let Some((agent, controls)) = self.seated.take() {
            active.spawn(session::agent_stream(self.id), agent.run(controls));
        }
    }
}

impl Drop for Newcomer {
    /// A commit that fails leaves no registered agent behind.
    fn drop(&mut self) {
        if let Some((agent, _)) = self.seated.take() {
            agent.give_up();
        }
    }
}
