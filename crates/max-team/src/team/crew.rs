//! Those who can be called in a session, as they are written now.
//!
//! Definitions are files that people change while they talk. Whoever leads a face asks before each turn; what has not
//! changed costs a look at its stamp.

use std::sync::{Arc, Mutex, PoisonError};

use max_team_core::team::{Member, Settings};
use max_team_runtime::Mate;

use super::{allot, narrowed, seated, wish};
use crate::agents::{Desk, Roster};
use crate::models::Chosen;

/// Where experts are written, and whose names they cannot have.
#[derive(Debug)]
pub(crate) struct Crew {
    roster: Roster,
    desk: Desk,
    taken: Vec<String>,
}

impl Crew {
    pub(crate) fn new(roster: Roster, desk: Desk, taken: Vec<String>) -> Self {
        Self { roster, desk, taken }
    }

    /// All of them under the session's settings. Nobody gets more than the session has.
    pub(crate) fn mates(&self, chosen: &Chosen, settings: &Settings) -> Vec<Mate> {
        let mate = |expert: Member| {
            let mut own = narrowed(settings, &expert.definition);
            // A budget can only be kept where prices are known.
            own.budget_nano = settings.budget_nano;
            wish(&mut own, expert.model.as_deref(), chosen);
            allot(&mut own, &expert.definition);
            seated(expert.definition, own, &expert.constraints)
        };
        self.desk.experts(&self.roster, &self.taken).into_iter().map(mate).collect()
    }

    /// A way to ask again.
    pub(crate) fn look(self, chosen: Arc<Chosen>, settings: Settings) -> Look {
        Look(Arc::new(Mutex::new(Seen { crew: self, chosen, settings })))
    }
}

/// Asks again who can be called. Cheap to copy.
#[derive(Debug, Clone)]
pub(crate) struct Look(Arc<Mutex<Seen>>);

#[derive(Debug)]
struct Seen {
    crew: Crew,
    chosen: Arc<Chosen>,
    settings: Settings,
}

impl Look {
    /// Everybody, if anything has changed since this was last asked. Blocking, for as long as it takes to look at the
    /// stamps of some files.
    pub(crate) fn again(&self) -> Option<Vec<Mate>> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_changed = seen.crew.roster.refresh();
        is_changed.then(|| seen.crew.mates(&seen.chosen, &seen.settings))
    }

    /// Everybody as of now.
    pub(crate) fn now(&self) -> Vec<Mate> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.crew.roster.refresh();
        seen.crew.mates(&seen.chosen, &seen.settings)
    }
}
