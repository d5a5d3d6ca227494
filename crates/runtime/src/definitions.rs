//! The definitions and rules behind a session, as files hold them now.
//!
//! People change definitions while they talk. Before each message the runtime asks what has changed, so that every frontend behaves
//! alike. The implementation, in `workspace`, reads the files.

use std::fmt;
use std::sync::Arc;

use crate::handle::{OpenOptions, TeamDefinitions};

/// Reads definitions again.
pub trait Definitions: fmt::Debug + Send + Sync {
    /// The changes since [`accepted`](Self::accepted) was last called. Blocking: it compares the stamps of some files
    /// and reads those that have changed.
    fn changes(&self) -> Changes;

    /// The whole crew as of now, if anything has changed since the definitions were first read.
    fn current(&self) -> Changes;

    /// A session uses these from now on. A change that was not accepted is reported again the next time.
    fn accepted(&self, crew: &TeamDefinitions);
}

/// What has changed in the definitions of a session.
#[derive(Debug, Default)]
pub struct Changes {
    /// The whole crew, if a definition has changed; with the lead only if that has changed.
    pub crew: Option<Arc<TeamDefinitions>>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

impl OpenOptions {
    /// This with the lead and the team as their files define them now, and notes for the user.
    pub(crate) fn refreshed(mut self) -> (Self, Changes) {
        let changes = self.definitions.as_ref().map(|definitions| definitions.current()).unwrap_or_default();
        if let (Some(team), Some(crew)) = (&mut self.team, &changes.crew) {
            (team.members, team.experts) = (crew.members.clone(), crew.experts.clone());
            if let Some(lead) = crew.lead.clone() {
                self.definition = lead.definition;
                self.settings.model = lead.model.unwrap_or(self.settings.model);
                self.settings = self.settings.limited_as_lead(&lead.constraints);
            }
        }
        (self, changes)
    }
}
