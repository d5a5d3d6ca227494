//! What a run hears next: the team, a signal, or that it is time for something.

use std::future::pending;
use std::time::Instant;

use max_team_runtime::Notice;
use tokio::sync::mpsc;

use crate::signals::Signals;
use max_team_workspace::exit::{CliError, Exit};

/// Notices of a large team come in crowds: so many are taken one after the other before anything else is looked at.
const CROWD_MAX: u32 = 64;
/// What is said where nothing more is heard.
pub(super) const SILENT: &str = "the team stopped without a word";

/// What came first.
#[derive(Debug)]
pub(super) enum RunEvent {
    Notice(Notice),
    Signal(Exit),
    /// A silence may be long enough to be told of.
    Silence,
    /// The time that the run has is over.
    Late,
}

/// Waits for notices, signals and timers.
#[derive(Debug)]
pub(super) struct RunEvents<'a> {
    notices: &'a mut mpsc::Receiver<Notice>,
    signals: &'a mut Signals,
    crowd: u32,
}

impl<'a> RunEvents<'a> {
    pub(super) fn new(notices: &'a mut mpsc::Receiver<Notice>, signals: &'a mut Signals) -> Self {
        Self { notices, signals, crowd: 0 }
    }

    /// The next thing; a silence and the end of its time only where there is a moment for them.
    pub(super) async fn next(&mut self, silence: Option<Instant>, late: Option<Instant>) -> Result<RunEvent, CliError> {
        // A crowd that never ends has its time, too.
        if late.is_some_and(|late| late <= Instant::now()) {
            return Ok(RunEvent::Late);
        }
        if self.crowd < CROWD_MAX
            && let Ok(notice) = self.notices.try_recv()
        {
            self.crowd += 1;
            return Ok(RunEvent::Notice(notice));
        }
        self.crowd = 0;
        tokio::select! {
            biased;
            signal = self.signals.next() => Ok(RunEvent::Signal(signal)),
            notice = self.notices.recv() => {
                notice.map(RunEvent::Notice).ok_or_else(|| CliError::new(Exit::Failed, SILENT))
            }
            () = until(silence) => Ok(RunEvent::Silence),
            () = until(late) => Ok(RunEvent::Late),
        }
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment.into()).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use max_team_core::id::SessionId;
    use rustix::process::{Signal, getpid, kill_process};
    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn in_a_crowd_signals_and_the_end_of_the_time_are_heard_and_nothing_is_lost() {
        let mut signals = Signals::listen().unwrap();
        let (to, mut notices) = mpsc::channel(10 * CROWD_MAX as usize);
        for _ in 0..10 * CROWD_MAX {
            to.try_send(Notice::Idle { session: SessionId::new(Uuid::nil()), waiting: false }).unwrap();
        }
        let mut ear = RunEvents::new(&mut notices, &mut signals);
        assert!(matches!(ear.next(None, None).await, Ok(RunEvent::Notice(_))));
        assert!(matches!(ear.next(None, Some(Instant::now())).await, Ok(RunEvent::Late)));
        let mut elsewhere = Signals::listen().unwrap();
        kill_process(getpid(), Signal::HUP).unwrap();
        // Another thread may have been chosen to take it.
        assert_eq!(elsewhere.next().await, Exit::Terminated);
        let mut heard = 1;
        let signal = loop {
            match ear.next(None, None).await.unwrap() {
                RunEvent::Notice(_) => heard += 1,
                other => break other,
            }
        };
        assert!(matches!(signal, RunEvent::Signal(Exit::Terminated)) && heard <= 1 + CROWD_MAX, "{signal:?} {heard}");
        drop(to);
        while let Ok(RunEvent::Notice(_)) = ear.next(None, None).await {
            heard += 1;
        }
        assert_eq!(heard, 10 * CROWD_MAX);
    }
}
