//! Opening a session again under at least the constraints that it had before. `core::resume` decides; this applies it to the
//! lead and to the agents that it can call, when the session is opened and when definitions are read again later.

use std::sync::Arc;

use max_team_core::agent::{Definition, Settings};
use max_team_core::policy::Mode;
use max_team_core::turn::Turn;
use max_team_tools::Registry;
use serde::{Deserialize, Serialize};

use crate::handle::{AgentSpec, OpenOptions, Team};
use crate::skills::SKILL;

/// The lead of a session and its settings, as the journal has them: a session that is resumed, or a fork of it, is at least
/// as constrained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResumedLead {
    definition: Arc<Definition>,
    settings: Arc<Settings>,
}

impl ResumedLead {
    /// `None` for a new session.
    pub(crate) fn read(lead: &Turn) -> Option<Self> {
        let ((_, _, definition), settings) = (lead.identity()?, lead.settings()?);
        Some(Self { definition: Arc::clone(definition), settings: Arc::clone(settings) })
    }

    /// Today's way to open the session, within this bound.
    pub(super) fn open(&self, mut open: OpenOptions, tools: &Registry) -> OpenOptions {
        if !self.definition.can_resume_as(&open.definition) {
            open.definition = Definition::clone(&self.definition);
            // A tool that the program no longer has would keep the session from being opened.
            open.definition.tools.retain(|tool| tools.get(tool).is_some() || tool == SKILL);
        }
        let own = &open.definition;
        open.settings.rounds_max =
            own.work.rounds_max.map_or(open.settings.rounds_max, |max| max.min(open.settings.rounds_max));
        open.settings = self.lead_settings(open.settings, open.mode_is_named);
        open.settings.mode = own.mode_in(open.settings.mode);
        if let Some(Team { members, experts, .. }) = &mut open.team {
            self.bind_teammates(members.iter_mut().chain(experts), open.settings.mode);
        }
        open
    }

    /// Settings for the lead, within this bound.
    pub(super) fn lead_settings(&self, settings: Settings, mode_is_named: bool) -> Settings {
        settings.resuming(&self.settings, mode_is_named)
    }

    /// Whether a definition that was read again can lead the session.
    pub(super) fn goes_on_as(&self, today: &Definition) -> bool {
        self.definition.can_resume_as(today)
    }

    /// Binds the agents that the lead can call to the session's mode and to the rules that were in force before. The lead's own
    /// constraints bind them when it calls them.
    pub(crate) fn bind_teammates<'m>(&self, teammates: impl Iterator<Item = &'m mut AgentSpec>, session: Mode) {
        for teammate in teammates {
            teammate.settings.mode = teammate.definition.mode_in(session);
            let own = std::mem::take(&mut teammate.settings.permissions);
            teammate.settings.permissions = own.resuming(&self.settings.permissions);
        }
    }
}
