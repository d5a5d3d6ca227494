//! One connection of HTTP/2, which is everybody's.
//!
//! The other side says how many requests it takes at once over one connection. Each of them has a seat, and whoever
//! finds none asks over another connection, instead of waiting behind the others. Until it has said so, only the one
//! who has connected asks. It is believed the first time: where it takes fewer later, requests wait within the connection.

use std::pin::pin;
use std::sync::Arc;

use hyper::client::conn::http2;
use hyper_util::rt::TokioTimer;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::road::Io;
use crate::body::Outgoing;

/// What nobody says: so many are allowed as long as nothing was heard.
const UNHEARD: usize = usize::MAX - 1;
/// More seats than this are not counted.
const SEATS_MAX: usize = 1 << 16;

/// A way to ask over it.
pub(super) struct Many {
    pub(super) sender: http2::SendRequest<Outgoing>,
    /// Kept until the response is over; none for whoever waits behind others.
    pub(super) seat: Option<OwnedSemaphorePermit>,
    /// The number of the connection among those to this host.
    pub(super) number: u64,
}

/// The connection.
pub(super) struct Shared {
    sender: http2::SendRequest<Outgoing>,
    seats: Arc<Semaphore>,
    heard: watch::Receiver<bool>,
    pub(super) number: u64,
    /// When it was last asked for.
    pub(super) used: Instant,
}

impl Shared {
    /// Begins to talk. Whatever works on the connection ends with `end`.
    pub(super) async fn begin(io: Box<dyn Io>, end: &CancellationToken) -> hyper::Result<Self> {
        let (tell, heard) = watch::channel(false);
        let hands = Hands { end: end.clone(), ear: Arc::new(Ear { heard: tell, nudge: Notify::new() }) };
        let mut builder = http2::Builder::new(hands.clone());
        builder.timer(TokioTimer::new()).initial_max_send_streams(UNHEARD);
        let (sender, connection) = builder.handshake(io).await?;
        let seats = Arc::new(Semaphore::new(1));
        tokio::spawn(end.clone().run_until_cancelled_owned(work(connection, hands.ear, Arc::clone(&seats))));
        Ok(Self { sender, seats, heard, number: 0, used: Instant::now() })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Becomes true when the number of seats is known; given as long as it is not.
    pub(super) fn unheard(&self) -> Option<watch::Receiver<bool>> {
        (!*self.heard.borrow()).then(|| self.heard.clone())
    }

    /// A free seat.
    pub(super) fn seat(&mut self) -> Option<Many> {
        let seat = Arc::clone(&self.seats).try_acquire_owned().ok()?;
        Some(Many { seat: Some(seat), ..self.behind() })
    }

    /// A place behind all others.
    pub(super) fn behind(&mut self) -> Many {
        self.used = Instant::now();
        Many { sender: self.sender.clone(), seat: None, number: self.number }
    }
}

/// What is known of the other side.
struct Ear {
    heard: watch::Sender<bool>,
    nudge: Notify,
}

type Connection = http2::Connection<Box<dyn Io>, Outgoing, Hands>;

/// Works the connection, and makes the seats once their number is known. How it ended, each of its users hears.
async fn work(connection: Connection, ear: Arc<Ear>, seats: Arc<Semaphore>) {
    let mut connection = pin!(connection);
    loop {
        tokio::select! {
            biased;
            _ = &mut connection => break,
            () = ear.nudge.notified() => {}
        }
        let most = connection.current_max_send_streams();
        if most != UNHEARD && !ear.heard.send_replace(true) {
            // One is there already, for the one who connected.
            seats.add_permits(most.min(SEATS_MAX).saturating_sub(1));
        }
    }
    ear.heard.send_replace(true);
}

/// Runs what hyper has to be done beside it.
#[derive(Clone)]
struct Hands {
    end: CancellationToken,
    ear: Arc<Ear>,
}

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Hands {
    fn execute(&self, task: F) {
        let ear = Arc::clone(&self.ear);
        let listening = async move {
            let mut task = pin!(task);
            std::future::poll_fn(|cx| {
                let polled = task.as_mut().poll(cx);
                // It may have read what the other side says of itself.
                if !*ear.heard.borrow() {
                    ear.nudge.notify_one();
                }
                polled
            })
            .await;
        };
        tokio::spawn(self.end.clone().run_until_cancelled_owned(listening));
    }
}
