//! The registry of a session's team: its lead and its teammates, with what everybody is called, painted in and waits for.

use std::collections::HashSet;

use max_team_core::calling::hands::GENERAL;
use max_team_core::chat::Part;
use max_team_core::event::Event;
use max_team_core::id::SessionId;
use max_team_core::mates::{AgentEnded, color, parting};
use max_team_core::message::{Envelope, Kind};
use max_team_core::policy::Mode;
use max_team_core::team::Isolation;
use max_team_core::turn::{Turn, is_note};
use serde::Serialize;

use super::people::{Person, Reason, Room};
use super::{Census, Standing};
use crate::agent::{asked_of, text_at, wanted};
use crate::error::RuntimeError;
use crate::rows::{self, AgentRow, MateRow, event_of};
use crate::session::{self, Sessions};
use crate::team_tools::Spawn;

/// Entries of an agent's stream among which its first turn begins.
const FIRST_ENTRIES: usize = 8;

/// A session's team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Roll {
    /// Whose.
    pub session: SessionId,
    /// Whoever leads.
    pub lead: Option<Enrolled>,
    /// The teammates, in the order they began; also those that are no more.
    pub mates: Vec<Enrolled>,
}

/// Somebody of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Enrolled {
    /// Who, and what they are at.
    pub person: Person,
    /// The type of agent that it is.
    pub kind: String,
    /// What it is painted in.
    pub color: String,
    /// Why it is no more, if so.
    pub gone: Option<AgentEnded>,
    /// Who has asked it to end, as long as it has not answered.
    pub asked_to_end: Option<String>,
    /// The mode it works in.
    pub mode: Option<Mode>,
    /// Letters that it has not read and will be told: those that wait since a stop, and what is only told with the next ones.
    pub unread: usize,
    /// When it last did anything.
    pub last_at_ms: i64,
    /// What it is at, or was last, in a few words.
    pub title: String,
    /// How it would be started again.
    pub spawn: Spawn,
}

impl Enrolled {
    /// Whether it is there.
    pub fn is_active(&self) -> bool {
        self.gone.is_none()
    }
}

impl Roll {
    /// What the team is called.
    pub fn name(&self) -> String {
        let id = self.session.to_string();
        format!("team-{}", id.get(id.len().saturating_sub(8)..).unwrap_or_default())
    }
}

impl Census<'_> {
    /// The team of a session.
    pub fn roll(&self, session: SessionId) -> Result<Roll, RuntimeError> {
        let row = Sessions::new(self.journal).row(session)?;
        let pid = self.owner(session)?.map(|worker| worker.pid);
        let mut agents = self.agents(session)?;
        // Those who began together have no order of their own.
        agents.sort_by(|one, other| (one.at_ms, &one.name).cmp(&(other.at_ms, &other.name)));
        let mates = rows::rows::<MateRow>(self.journal, &rows::mates_of(&session.to_string()))?;
        let lead = agents.iter().find(|agent| agent.agent == row.lead).cloned();
        let room = Room::new(*self, row, pid);
        let lead = lead.map(|lead| self.enrol(&room, &lead, None)).transpose()?;
        let model = lead.as_ref().and_then(|lead| lead.spawn.model.clone());
        let mut roll = Roll { session, lead, mates: Vec::new() };
        // One whose name somebody else has taken since is no more either.
        for agent in &agents {
            let mate = mates.iter().find(|(_, mate)| mate.agent == agent.agent);
            if let Some((_, mate)) = mate {
                let mut enrolled = self.enrol(&room, agent, Some(mate))?;
                // Whose model is the session's has none of its own.
                enrolled.spawn.model = enrolled.spawn.model.filter(|own| Some(own) != model.as_ref());
                enrolled.spawn.prompt = self.asked(agent)?;
                roll.mates.push(enrolled);
            }
        }
        Ok(roll)
    }

    /// Of those who are to begin in a session: who is there already, or about to begin because somebody has asked for them before,
    /// and who is not. Whoever goes on says the same words again.
    pub fn newcomers(&self, session: SessionId, mates: Vec<Spawn>) -> Result<(Vec<Spawn>, Vec<Spawn>), RuntimeError> {
        let lead = Sessions::new(self.journal).row(session)?.lead;
        let mail = self.journal.pending_mail(&session::agent_stream(lead))?;
        let there = rows::mates_there(self.journal, session)?.into_iter().map(|(name, _)| name);
        let mut taken: HashSet<String> = there.collect();
        if mail.iter().any(|letter| letter.kind == Kind::TeamRequest) {
            let turn = self.turn(lead)?;
            taken.extend(turn.recruiting(&mail).filter_map(wanted).flatten().map(|mate| mate.name));
        }
        Ok(mates.into_iter().partition(|mate| taken.contains(&mate.name)))
    }

    /// What a teammate was started for.
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

    /// Who waits for somebody's end.
    fn asked_to_end(&self, stream: &str) -> Result<Option<String>, RuntimeError> {
        let mail = self.journal.pending_mail(stream)?;
        let asker = |letter: &Envelope| {
            let names = ["by", "from"].map(|key| text_at(&letter.body, key));
            names.into_iter().find(|name| !name.is_empty()).unwrap_or_else(|| letter.from.clone())
        };
        Ok(mail.iter().find(|letter| parting::is_end(letter)).map(asker))
    }

    /// How many letters somebody will be told. What is carried out and told to nobody, as a stop, is none of them.
    fn unread(&self, stream: &str, turn: &Turn, lead: bool) -> Result<usize, RuntimeError> {
        let is_told = |letter: &Envelope| turn.is_beginning(letter, lead) || is_note(letter, lead);
        // What was refused only waits till what was made for it is gone.
        let is_unread = |letter: &&Envelope| is_told(letter) && !turn.has_refused(letter.id);
        Ok(self.journal.pending_mail(stream)?.iter().filter(is_unread).count())
    }

    fn enrol(&self, room: &Room<'_>, row: &AgentRow, mate: Option<&MateRow>) -> Result<Enrolled, RuntimeError> {
        let stream = session::agent_stream(row.agent);
        let turn = self.turn(row.agent)?;
        let giver = if mate.is_some() { Reason::LEAD } else { Reason::USER };
        let mut person = room.somebody(row, &turn, giver)?;
        person.lead = mate.is_none();
        let gone = mate.and_then(|mate| mate.gone.clone());
        if gone.is_some() {
            (person.state, person.reason, person.doing) = (Standing::Stopped, Some(Reason::Done), None);
        }
        let last = self.journal.head(&stream)?.checked_sub(1);
        let last = last.map(|before| self.journal.read(&stream, before, 1)).transpose()?.unwrap_or_default();
        let given = row.assignment.as_deref();
        let who = given.and_then(|given| given.life.mate());
        let definition = turn.identity().map(|(_, _, definition)| definition.clone()).unwrap_or_default();
        let now = turn.assignment().or(given).map(|given| given.title.clone());
        let spawn = Spawn {
            name: row.name.clone(),
            role: row.role.clone(),
            kind: Some(definition.name.clone()).filter(|kind| kind != GENERAL),
            model: turn.settings().map(|settings| settings.model.name.clone()),
            mode: if who.is_some_and(|who| who.plans) { Some(Mode::Plan) } else { definition.mode },
            // Colours were any words once.
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
            unread: self.unread(&stream, &turn, mate.is_none())?,
            last_at_ms: last.first().map_or(row.at_ms, |entry| entry.at_ms),
            title: now.unwrap_or_default(),
            spawn,
        })
    }
}
