//! What a run hears next: the team, a signal, or that it is time for something.

use std::future::pending;
use std::time::Instant;

use max_team_runtime::Notice;
use tokio::sync::mpsc;

use crate::exit::{Exit, Stop};
use crate::signals::Signals;

/// Notices of a large team come in crowds: so many are taken one after the other before anything else is looked at.
const CROWD_MAX: u32 = 64;
/// What is said where nothing more is heard.
pub(super) const SILENT: &str = "the team stopped without a word";

/// What came first.
#[derive(Debug)]
pub(super) enum Heard {
    Notice(Notice),
    Signal(Exit),
    /// A silence may be long enough to be told of.
    Silence,
    /// The time that the run has is over.
    Late,
}

/// Whoever listens.
#[derive(Debug)]
pub(super) struct Ear<'a> {
    notices: &'a mut mpsc::Receiver<Notice>,
    signals: &'a mut Signals,
    crowd: u32,
}

impl<'a> Ear<'a> {
    pub(super) fn new(notices: &'a mut mpsc::Receiver<Notice>, signals: &'a mut Signals) -> Self {
        Self { notices, signals, crowd: 0 }
    }

    /// The next thing; a silence and the end of its time only where there is a moment for them.
    pub(super) async fn next(&mut self, silence: Option<Instant>, late: Option<Instant>) -> Result<Heard, Stop> {
        if self.crowd < CROWD_MAX
            && let Ok(notice) = self.notices.try_recv()
        {
            self.crowd += 1;
            return Ok(Heard::Notice(notice));
        }
        self.crowd = 0;
        tokio::select! {
            biased;
            signal = self.signals.next() => Ok(Heard::Signal(signal)),
            notice = self.notices.recv() => {
                notice.map(Heard::Notice).ok_or_else(|| Stop::new(Exit::Failed, SILENT))
            }
            () = until(silence) => Ok(Heard::Silence),
            () = until(late) => Ok(Heard::Late),
        }
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment.into()).await,
        None => pending().await,
    }
}
