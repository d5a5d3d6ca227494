//! The shape of a state machine that a loop drives: of one agent ([`crate::turn::Turn`]), of one plan ([`crate::plan::Plan`]).

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::event::Event;

/// A state that follows from the events of one stream.
pub trait Machine: Default + Serialize + DeserializeOwned + Send + 'static {
    /// The version of the snapshots that this code reads and writes; another fold or another shape is another version.
    const SNAPSHOT_VERSION: u32;
    /// Entries of a stream before a first snapshot is worth its bytes.
    const SNAPSHOT_ENTRIES_MIN: u64;

    /// What the machine reacts to: a message, a result, a command.
    type Input;
    /// What the driver knows at the moment of a decision.
    type Now<'n>;

    /// What follows from an input alone. Changes nothing; an input that does not fit (any more) decides nothing.
    fn decide(&self, input: Self::Input, now: &Self::Now<'_>) -> Vec<Event>;

    /// What else follows once that is applied, one kind of thing at a time. Changes nothing.
    fn advance(&self, _now: &Self::Now<'_>) -> Vec<Event> {
        Vec::new()
    }

    /// Folds an event in. Decides nothing.
    fn apply(&mut self, event: &Event, at_ms: i64);

    /// Everything that follows from an input, applied. The driver commits the events before it acts on them, and drops the
    /// machine if the commit fails.
    fn step(&mut self, input: Self::Input, now: &Self::Now<'_>, at_ms: i64) -> Vec<Event> {
        let (mut events, mut next) = (Vec::new(), self.decide(input, now));
        loop {
            next.iter().for_each(|event| self.apply(event, at_ms));
            events.extend(next);
            next = self.advance(now);
            if next.is_empty() {
                return events;
            }
        }
    }
}
