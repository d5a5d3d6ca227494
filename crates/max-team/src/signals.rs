//! Ctrl-C, SIGTERM and a closed terminal as a stream of exit codes.

use tokio::signal::unix::{Signal, SignalKind, signal};

use max_team_workspace::exit::Exit;

/// Signals since start-up.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// One that has come already.
    pub(crate) async fn come(&mut self) -> Option<Exit> {
        // Lets the runtime collect signals that have already arrived.
        tokio::task::yield_now().await;
        tokio::select! {
            biased;
            exit = self.next() => Some(exit),
            () = std::future::ready(()) => None,
        }
    }

    /// The next one, as the exit code it asks for.
    pub(crate) async fn next(&mut self) -> Exit {
        tokio::select! {
            _ = self.interrupt.recv() => Exit::Interrupted,
            _ = self.terminate.recv() => Exit::Terminated,
            _ = self.hangup.recv() => Exit::Terminated,
        }
    }
}
