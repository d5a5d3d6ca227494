//! One connection of HTTP/2, which is everybody's.
//!
//! The other side says how many requests it takes at once over one connection. Each of them has a seat, and whoever
//! finds none asks over another connection, instead of waiting behind the others. Until it has said so, only the one
//! who has connected asks. It is believed the first time: where it takes fewer later, requests wait within the connection.
//!
//! One that has gone silent is everybody's trouble: behind a balancer it may stand for hours with nobody at its other end.
//! So it is asked for a sign while somebody waits, and whoever waited in vain while it brought nothing at all leaves it.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::client::conn::http2;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioTimer;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::place::Place;
use super::road::Io;
use crate::body::Outgoing;

/// What nobody says: so many are allowed as long as nothing was heard.
const UNHEARD: usize = usize::MAX - 1;
/// More seats than this are not counted.
const SEATS_MAX: usize = 1 << 16;
/// A connection that brings nothing while somebody waits is asked for a sign after so long …
const PING_AFTER: Duration = Duration::from_secs(20);
/// … and given up if none has come for as long as this.
const PONG_TIMEOUT: Duration = Duration::from_secs(15);

/// A way to ask over it.
pub(super) struct Many {
    pub(super) sender: http2::SendRequest<Outgoing>,
    /// Kept until the response is over; none for whoever waits behind others.
    pub(super) seat: Option<OwnedSemaphorePermit>,
    /// The number of the connection among those to this host.
    pub(super) number: u64,
    ear: Arc<Ear>,
}

impl Many {
    /// Begins to wait for what it brings.
    pub(super) fn wait(&self, home: &Arc<Place>) -> Wait {
        let since = self.ear.news.load(Ordering::Relaxed);
        Wait { ear: Arc::clone(&self.ear), since, number: self.number, home: Arc::clone(home), is_open: true }
    }
}

/// Somebody who waits for what a connection brings. Dropped while it is open, it was given up.
pub(super) struct Wait {
    ear: Arc<Ear>,
    /// How often the connection had brought something when this wait began.
    since: u64,
    number: u64,
    home: Arc<Place>,
    is_open: bool,
}

impl Wait {
    /// What was waited for has come; the next wait is told of by `give_up`.
    pub(super) fn close(&mut self) {
        self.is_open = false;
    }

    /// From here on something else is waited for.
    pub(super) fn begin(&mut self) {
        self.since = self.ear.news.load(Ordering::Relaxed);
    }

    /// Nobody asks again over a connection that has brought nothing since, to anybody.
    pub(super) fn give_up(&self) {
        if self.ear.news.load(Ordering::Relaxed) == self.since {
            self.home.forget(Some(self.number));
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if self.is_open {
            self.give_up();
        }
    }
}

/// The connection.
pub(super) struct Shared {
    sender: http2::SendRequest<Outgoing>,
    ear: Arc<Ear>,
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
        let ear = Arc::new(Ear { heard: tell, nudge: Notify::new(), news: AtomicU64::new(0) });
        let mut builder = http2::Builder::new(Hands { end: end.clone(), ear: Arc::clone(&ear) });
        builder.timer(TokioTimer::new()).initial_max_send_streams(UNHEARD);
        // Of one that nobody asks anything, no sign is wanted.
        builder.keep_alive_interval(PING_AFTER).keep_alive_timeout(PONG_TIMEOUT).keep_alive_while_idle(false);
        let (sender, connection) = builder.handshake(Overheard { io, ear: Arc::clone(&ear) }).await?;
        let seats = Arc::new(Semaphore::new(1));
        tokio::spawn(end.clone().run_until_cancelled_owned(work(connection, Arc::clone(&ear), Arc::clone(&seats))));
        Ok(Self { sender, ear, seats, heard, number: 0, used: Instant::now() })
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
        Many { sender: self.sender.clone(), seat: None, number: self.number, ear: Arc::clone(&self.ear) }
    }
}

/// What is known of the other side.
struct Ear {
    heard: watch::Sender<bool>,
    nudge: Notify,
    /// How often anything has come from it.
    news: AtomicU64,
}

/// What bytes go over, with an ear to whether any come.
struct Overheard {
    io: Box<dyn Io>,
    ear: Arc<Ear>,
}

impl Read for Overheard {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.io).poll_read(cx, into);
        if polled.is_ready() {
            self.ear.news.fetch_add(1, Ordering::Relaxed);
        }
        polled
    }
}

impl Write for Overheard {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, parts)
    }
}

type Connection = http2::Connection<Overheard, Outgoing, Hands>;

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
        if most != UNHEARD && !*ear.heard.borrow() {
            // One is there already, for the one who connected. Whoever is told looks for the others.
            seats.add_permits(most.min(SEATS_MAX).saturating_sub(1));
            ear.heard.send_replace(true);
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
