//! The definitions and rules behind a session, as files hold them now.
//!
//! People change definitions while they talk. Before each message the runtime asks what has changed, so that every frontend behaves
//! alike. The implementation, in `workspace`, reads the files.

use std::fmt;
use std::sync::Arc;

use crate::handle::{Crew, Open};

/// Reads definitions again.
pub trait Definitions: fmt::Debug + Send + Sync {
    /// What has changed since [`accepted`](Self::accepted) was last called. Blocking, for as long as it takes to look at the stamps of
    /// some files and to read those that have changed.
    fn changes(&self) -> Changes;

    /// The whole crew as of now, if anything has changed since the definitions were first read.
    fn current(&self) -> Changes;

    /// A session works with these from here on. A change that was not accepted is told again the next time.
    fn accepted(&self, crew: &Crew);
}

/// What has changed in the definitions of a session.
#[derive(Debug, Default)]
pub struct Changes {
    /// The whole crew, if a definition has changed; with the lead only if that has changed.
    pub crew: Option<Arc<Crew>>,
    /// What the user should be told.
    pub notes: Vec<String>,
}

impl Open {
    /// The same with the lead and the team as they are written now, and what the user should be told.
    pub(crate) fn refreshed(mut self) -> (Self, Changes) {
        let changes = self.definitions.as_ref().map(|definitions| definitions.current()).unwrap_or_default();
        if let (Some(team), Some(crew)) = (&mut self.team, &changes.crew) {
            (team.members, team.experts) = (crew.members.clone(), crew.experts.clone());
            if let Some(lead) = crew.lead.clone() {
                self.definition = lead.definition;
                self.settings.model = lead.model.unwrap_or(self.settings.model);
                self.settings = self.settings.leading_under(&lead.constraints);
            }
        }
        (self, changes)
    }
}
