//! Definitions that change while a session is open: read before each message, and taken over where they can be.

use max_team_core::agent::Definition;
use max_team_core::id::SessionId;

use super::Runtime;
use crate::agent::{Control, Redefined};
use crate::definitions::Changes;
use crate::error::RuntimeError;
use crate::handle::{Lead, Notice, TeamDefinitions};
use crate::{session, worktree};

impl Runtime {
    /// Takes over definitions that were changed in their files since the last message.
    pub(super) async fn refresh(&self, session: SessionId) -> Result<(), RuntimeError> {
        let Some(active) = self.active(session).ok() else { return Ok(()) };
        let Some(definitions) = active.definitions.as_deref() else { return Ok(()) };
        let changes = definitions.changes();
        if let Some(crew) = &changes.crew {
            self.set_crew(session, crew.as_ref().clone()).await?;
            definitions.accepted(crew);
        }
        let Changes { crew, notes } = changes;
        if crew.is_some() || !notes.is_empty() {
            self.shared.notices.show(&Notice::Redefined { session, crew, notes });
        }
        Ok(())
    }

    /// These agents work here from the next turn, call or task on. A running turn keeps what it has, except for what has become
    /// stricter. A lead that cannot be seated changes nothing.
    async fn set_crew(&self, session: SessionId, crew: TeamDefinitions) -> Result<(), RuntimeError> {
        let active = self.active(session)?;
        let TeamDefinitions { lead, members, experts } = crew;
        let (before, now) = (active.team(), active.set_crew(members, experts));
        let Some(Lead { definition, constraints, model }) = lead else { return Ok(()) };
        let details = self.details(session).await?;
        let (turn, _) = self.shared.fold_agent(active.lead)?;
        let is_same = |known: &Definition| (&known.name, known.place) == (&definition.name, definition.place);
        let is_other = turn.identity().is_some_and(|(_, _, known)| !is_same(known));
        let is_beyond = active.bound.as_ref().is_some_and(|bound| !bound.goes_on_as(&definition));
        // The lead stays if its frontend set it up for a structured answer, or if the new definition is another agent or
        // exceeds the constraints of a resumed session.
        if details.settings.structured || is_other || is_beyond {
            return Ok(());
        }
        let settings = details.settings.limited_as_lead(&constraints);
        let settings = active.bound.as_ref().map_or(settings.clone(), |bound| bound.lead_settings(settings, true));
        let coordinates = now.is_some_and(|team| team.coordinator);
        let copy = match settings.permissions.copy.as_str() {
            "" => Ok(None),
            _ => worktree::Worker::leading(&active, &settings, &definition).place(&self.shared).map(Some),
        };
        let framed = copy
            .and_then(|copy| self.lead_frame(&active, copy.as_ref(), definition.into(), settings, None, coordinates));
        match framed {
            Ok((definition, frame)) => {
                let redefined = Control::Redefine(Box::new(Redefined { definition, frame, model }));
                active.tell(&session::agent_stream(active.lead), redefined).await
            }
            Err(error) => {
                active.restore(before);
                Err(error)
            }
        }
    }
}
