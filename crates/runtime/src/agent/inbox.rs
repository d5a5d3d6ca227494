//! What an agent remembers of its mailbox between two reads.

use std::sync::Arc;

use tokio::sync::Notify;

use super::steer::Steering;

pub(super) struct Inbox {
    /// Rings when a message comes.
    pub(super) bell: Arc<Notify>,
    /// A stop was sent and is not heard yet: nothing more is waited for until it is.
    pub(super) stop_waits: bool,
    /// Messages that came during the turn.
    pub(super) steering: Steering,
}

impl Inbox {
    pub(super) fn new(bell: &Arc<Notify>) -> Self {
        Self { bell: Arc::clone(bell), stop_waits: false, steering: Steering::default() }
    }
}
