//! The registry of a session's team: its lead and its teammates, with names, colors and what each waits for.

use std::collections::HashSet;

use max_team_core::agent::Isolation;
use max_team_core::chat::Part;
use max_team_core::delegation::tool_filter::GENERAL;
use max_team_core::event::Event;
use max_team_core::id::SessionId;
use max_team_core::message::{Envelope, MessageKind};
use max_team_core::policy::Mode;
use max_team_core::status::{AgentStage, IdleReason, WorkSource};
use max_team_core::teammate::{AgentEnded, Spawn, color, shutdown};
use max_team_core::turn::{Turn, is_note};
use serde::Serialize;

use super::ReadModel;
use super::people::{Person, Room};
use crate::agent::{asked_of, wanted};
use crate::error::RuntimeError;
use crate::rows::{self, AgentRow, TeammateRow, event_of};
use crate::session::{self, Sessions};

/// Number of an agent's first entries that contain the beginning of its first turn.
const FIRST_ENTRIES: usize = 8;

/// A session's team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Roll {
    pub session: SessionId,
    pub lead: Option<Enrolled>,
    /// The teammates, in the order they started; also those that have ended.
    #[serde(rename = "mates")]
    pub teammates: Vec<Enrolled>,
}

/// A member of a session's team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Enrolled {
    /// Its identity, state and cost.
    pub person: Person,
    /// The type of agent that it is.
    pub kind: String,
    pub color: String,
    /// How it ended, if it has.
    pub gone: Option<AgentEnded>,
    /// Who has asked it to shut down, while it has not answered.
    pub asked_to_end: Option<String>,
    /// The mode it works in.
    pub mode: Option<Mode>,
    /// Unread messages that it will get: those that a stop holds back, and those that are only added to a turn.
    pub unread: usize,
    /// The time of its last activity.
    pub last_at_ms: i64,
    /// Its present or last work, in a few words.
    pub title: String,
    /// The request that would start it again.
    pub spawn: Spawn,
}

impl Enrolled {
    /// Whether it has not ended.
    pub fn is_active(&self) -> bool {
        self.gone.is_none()
    }
}

impl Roll {
    /// The name of the team.
    pub fn name(&self) -> String {
        let id = self.session.to_string();
        format!("team-{}", id.get(id.len().saturating_sub(8)..).unwrap_or_default())
    }
}

impl ReadModel<'_> {
    /// The team of a session.
    pub fn roll(&self, session: SessionId) -> Result<Roll, RuntimeError> {
        let row = Sessions::new(self.journal).row(session)?;
        let pid = self.owner(session)?.map(|worker| worker.pid);
        let mut agents = self.agents(session)?;
        // Teammates that started in one commit are ordered by name.
        agents.sort_by(|one, other| (one.at_ms, &one.name).cmp(&(other.at_ms, &other.name)));
        let teammates = rows::rows::<TeammateRow>(self.journal, &rows::teammates_of(&session.to_string()))?;
        let lead = agents.iter().find(|agent| agent.agent == row.lead).cloned();
        let room = Room::new(*self, row, pid);
        let lead = lead.map(|lead| self.enrol(&room, &lead, None)).transpose()?;
        let model = lead.as_ref().and_then(|lead| lead.spawn.model.clone());
        let mut roll = Roll { session, lead, teammates: Vec::new() };
        // A teammate that has ended and whose name another one has taken is not listed.
        for agent in &agents {
            let teammate = teammates.iter().find(|(_, teammate)| teammate.agent == agent.agent);
            if let Some((_, teammate)) = teammate {
                let mut enrolled = self.enrol(&room, agent, Some(teammate))?;
                // The session's model is left out: it is not the teammate's own.
                enrolled.spawn.model = enrolled.spawn.model.filter(|own| Some(own) != model.as_ref());
                enrolled.spawn.prompt = self.asked(agent)?;
                roll.teammates.push(enrolled);
            }
        }
        Ok(roll)
    }

    /// Splits teammates that are to start: first those that exist, or that an unread request already asks for, then
    /// the new ones. So a repeated request starts no second one.
    pub fn newcomers(
        &self,
        session: SessionId,
        teammates: Vec<Spawn>,
    ) -> Result<(Vec<Spawn>, Vec<Spawn>), RuntimeError> {
        let lead = Sessions::new(self.journal).row(session)?.lead;
        let mail = self.journal.pending_mail(&session::agent_stream(lead))?;
        let there = rows::teammates_there(self.journal, session)?.into_iter().map(|(name, _)| name);
        let mut taken: HashSet<String> = there.collect();
        if mail.iter().any(|envelope| envelope.kind == MessageKind::TeamRequest) {
            let turn = self.turn(lead)?;
            taken.extend(turn.team_requests(&mail).filter_map(wanted).flatten().map(|teammate| teammate.name));
        }
        Ok(teammates.into_iter().partition(|teammate| taken.contains(&teammate.name)))
    }

    /// The task that a teammate was started with.
    fn asked(&self, row: &AgentRow) -> Result<String, RuntimeError> {
        let first = self.journal.read(&session::agent_stream(row.agent), 0, FIRST_ENTRIES)?;
        let started = first.iter().filter(|entry| &*entry.event == "turn_started");
        let told = started.map(event_of).find_map(|event| match event {
            Ok(Event::TurnStarted(started)) => started.input.into_iter().next(),
            _ => None,
        });
        Ok(match told {
            Some(Part::Text { text }) => asked_of(&text).to_owned(),
            _ => row.assignment.as_ref().map(|given| given.title.clone()).unwrap_or_default(),
        })
    }

    /// Who waits for the agent's shutdown.
    fn asked_to_end(&self, stream: &str) -> Result<Option<String>, RuntimeError> {
        let mail = self.journal.pending_mail(stream)?;
        Ok(mail.iter().find(|envelope| shutdown::is_end(envelope)).map(|envelope| envelope.asker().to_owned()))
    }

    /// How many unread messages an agent will get. Messages that code carries out, such as a stop, do not count.
    fn unread(&self, stream: &str, turn: &Turn, lead: bool) -> Result<usize, RuntimeError> {
        let is_told = |envelope: &Envelope| turn.is_beginning(envelope, lead) || is_note(envelope, lead);
        // A refused message stays in the mailbox only until the worktree that was made for it is removed.
        let is_unread = |envelope: &&Envelope| is_told(envelope) && !turn.has_refused(envelope.id);
        Ok(self.journal.pending_mail(stream)?.iter().filter(is_unread).count())
    }

    fn enrol(&self, room: &Room<'_>, row: &AgentRow, teammate: Option<&TeammateRow>) -> Result<Enrolled, RuntimeError> {
        let stream = session::agent_stream(row.agent);
        let turn = self.turn(row.agent)?;
        let giver = if teammate.is_some() { WorkSource::Lead } else { WorkSource::User };
        let mut person = room.somebody(row, &turn, giver)?;
        person.lead = teammate.is_none();
        let gone = teammate.and_then(|teammate| teammate.gone.clone());
        if gone.is_some() {
            (person.state, person.reason, person.doing) = (AgentStage::Stopped, Some(IdleReason::Done), None);
        }
        let last = self.journal.head(&stream)?.checked_sub(1);
        let last = last.map(|before| self.journal.read(&stream, before, 1)).transpose()?.unwrap_or_default();
        let given = row.assignment.as_deref();
        let who = given.and_then(|given| given.life.teammate());
        let definition = turn.identity().map(|(_, _, definition)| definition.clone()).unwrap_or_default();
        let now = turn.assignment().or(given).map(|given| given.title.clone());
        let spawn = Spawn {
            name: row.name.clone(),
            role: row.role.clone(),
            kind: Some(definition.name.clone()).filter(|kind| kind != GENERAL),
            model: turn.settings().map(|settings| settings.model.name.clone()),
            mode: if who.is_some_and(|who| who.plans) { Some(Mode::Plan) } else { definition.mode },
            // Older versions allowed any text as a color.
            color: who.and_then(|who| color(&who.color).ok()).map(str::to_owned),
            isolation: match who.is_some_and(|who| who.apart) {
                true => Some(Isolation::Worktree),
                false => Some(definition.isolation).filter(|isolation| !isolation.is_none()),
            },
            claims: who.map(|who| who.claims).filter(|claims| *claims),
            ..Spawn::default()
        };
        Ok(Enrolled {
            person,
            kind: definition.name.clone(),
            color: who.map(|who| who.color.clone()).unwrap_or_default(),
            gone,
            asked_to_end: self.asked_to_end(&stream)?,
            mode: turn.settings().map(|settings| settings.mode),
            unread: self.unread(&stream, &turn, teammate.is_none())?,
            last_at_ms: last.first().map_or(row.at_ms, |entry| entry.at_ms),
            title: now.unwrap_or_default(),
            spawn,
        })
    }
}
