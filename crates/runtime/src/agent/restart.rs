//! What an agent knows of the previous process.

use max_team_core::limits::SHUTDOWN_RESUMED_MS;

use crate::shared::now_ms;

#[derive(Debug)]
pub(super) struct Restart {
    /// Effects that are pending were started by another process: true until this one has started its first.
    pub(super) resumed: bool,
    /// A call that waited for an unreachable model server is tried for the first time by this process.
    pub(super) tries_first: bool,
    /// Until then no teammate is ended for a late answer: one that stopped with the program had no time to answer.
    pub(super) patient_ms: i64,
}

impl Restart {
    pub(super) fn new(resumed: bool) -> Self {
        let patient_ms = if resumed { now_ms().saturating_add(SHUTDOWN_RESUMED_MS) } else { 0 };
        Self { resumed, tries_first: false, patient_ms }
    }
}
