//! One HTTP/2 connection, shared by the requests to a host.
//!
//! The server says how many requests it takes at once over one connection. Each request has a seat; one that finds
//! none uses another connection instead of waiting behind the others. Until the server has said so, only the request
//! that connected uses the connection. The first number counts: if the server takes fewer later, requests wait within
//! the connection.
//!
//! A connection can go silent: behind a load balancer it may stay open for hours with no server at its other end. So
//! it is pinged while a request waits, and a request that times out while nothing at all came over the connection
//! abandons it for all.

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

use super::connector::Io;
use super::host::HostPool;
use crate::body::Outgoing;

/// A number that no server announces: it shows that the server has not announced its limit yet.
const UNHEARD: usize = usize::MAX - 1;
/// Seats of a connection at most.
const SEATS_MAX: usize = 1 << 16;
/// A connection that brings nothing while a request waits is pinged after this time.
const PING_AFTER: Duration = Duration::from_secs(20);
/// A ping that is not answered within this time closes the connection.
const PONG_TIMEOUT: Duration = Duration::from_secs(15);

/// A way to send one request over a connection.
pub(super) struct H2 {
    pub(super) sender: http2::SendRequest<Outgoing>,
    /// Kept until the response has ended; `None` for a request that waits behind others.
    pub(super) seat: Option<OwnedSemaphorePermit>,
    /// The number of the connection among those to this host.
    pub(super) number: u64,
    ear: Arc<Traffic>,
}

impl H2 {
    /// Begins to wait for the response.
    pub(super) fn wait(&self, home: &Arc<HostPool>) -> ResponseWait {
        let since = self.ear.news.load(Ordering::Relaxed);
        ResponseWait { ear: Arc::clone(&self.ear), since, number: self.number, home: Arc::clone(home), is_open: true }
    }
}

/// A wait for what a connection brings. Dropping it while it is open means that the request gave up.
pub(super) struct ResponseWait {
    ear: Arc<Traffic>,
    /// How often the connection had brought something when this wait began.
    since: u64,
    number: u64,
    home: Arc<HostPool>,
    is_open: bool,
}

impl ResponseWait {
    /// The awaited response has come: dropping this no longer means giving up. Later waits end with `give_up`.
    pub(super) fn close(&mut self) {
        self.is_open = false;
    }

    /// Begins the wait for the next piece.
    pub(super) fn begin(&mut self) {
        self.since = self.ear.news.load(Ordering::Relaxed);
    }

    /// Stops using the connection if it has brought nothing to any request since this wait began.
    pub(super) fn give_up(&self) {
        if self.ear.news.load(Ordering::Relaxed) == self.since {
            self.home.forget(Some(self.number));
        }
    }
}

impl Drop for ResponseWait {
    fn drop(&mut self) {
        if self.is_open {
            self.give_up();
        }
    }
}

pub(super) struct SharedH2 {
    sender: http2::SendRequest<Outgoing>,
    ear: Arc<Traffic>,
    seats: Arc<Semaphore>,
    heard: watch::Receiver<bool>,
    pub(super) number: u64,
    /// When it was last asked for.
    pub(super) used: Instant,
}

impl SharedH2 {
    /// Performs the handshake. The tasks of the connection end with `end`.
    pub(super) async fn begin(io: Box<dyn Io>, end: &CancellationToken) -> hyper::Result<Self> {
        let (tell, heard) = watch::channel(false);
        let ear = Arc::new(Traffic { heard: tell, nudge: Notify::new(), news: AtomicU64::new(0) });
        let mut builder = http2::Builder::new(TaskExecutor { end: end.clone(), ear: Arc::clone(&ear) });
        builder.timer(TokioTimer::new()).initial_max_send_streams(UNHEARD);
        // An idle connection is not pinged.
        builder.keep_alive_interval(PING_AFTER).keep_alive_timeout(PONG_TIMEOUT).keep_alive_while_idle(false);
        let (sender, connection) = builder.handshake(ObservedStream { io, ear: Arc::clone(&ear) }).await?;
        let seats = Arc::new(Semaphore::new(1));
        tokio::spawn(end.clone().run_until_cancelled_owned(work(connection, Arc::clone(&ear), Arc::clone(&seats))));
        Ok(Self { sender, ear, seats, heard, number: 0, used: Instant::now() })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Becomes true when the number of seats is known; `None` if it is known already.
    pub(super) fn unheard(&self) -> Option<watch::Receiver<bool>> {
        (!*self.heard.borrow()).then(|| self.heard.clone())
    }

    /// A free seat.
    pub(super) fn seat(&mut self) -> Option<H2> {
        let seat = Arc::clone(&self.seats).try_acquire_owned().ok()?;
        Some(H2 { seat: Some(seat), ..self.behind() })
    }

    /// A seat behind all others: the request waits within the connection.
    pub(super) fn behind(&mut self) -> H2 {
        self.used = Instant::now();
        H2 { sender: self.sender.clone(), seat: None, number: self.number, ear: Arc::clone(&self.ear) }
    }
}

/// What was heard from the server.
struct Traffic {
    heard: watch::Sender<bool>,
    nudge: Notify,
    /// How often anything has come from it.
    news: AtomicU64,
}

/// A byte stream that notes whether bytes arrive.
struct ObservedStream {
    io: Box<dyn Io>,
    ear: Arc<Traffic>,
}

impl Read for ObservedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.io).poll_read(cx, into);
        if polled.is_ready() {
            self.ear.news.fetch_add(1, Ordering::Relaxed);
        }
        polled
    }
}

impl Write for ObservedStream {
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

type H2Driver = http2::Connection<ObservedStream, Outgoing, TaskExecutor>;

/// Drives the connection, and adds the seats once their number is known. Each request learns by itself how the
/// connection ended.
async fn work(connection: H2Driver, ear: Arc<Traffic>, seats: Arc<Semaphore>) {
    let mut connection = pin!(connection);
    loop {
        tokio::select! {
            biased;
            _ = &mut connection => break,
            () = ear.nudge.notified() => {}
        }
        let most = connection.current_max_send_streams();
        if most != UNHEARD && !*ear.heard.borrow() {
            // One seat exists already, for the request that connected. The waiting requests are then told to look for
            // the others.
            seats.add_permits(most.min(SEATS_MAX).saturating_sub(1));
            ear.heard.send_replace(true);
        }
    }
    ear.heard.send_replace(true);
}

/// Runs the tasks that hyper spawns for the connection.
#[derive(Clone)]
struct TaskExecutor {
    end: CancellationToken,
    ear: Arc<Traffic>,
}

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for TaskExecutor {
    fn execute(&self, task: F) {
        let ear = Arc::clone(&self.ear);
        let listening = async move {
            let mut task = pin!(task);
            std::future::poll_fn(|cx| {
                let polled = task.as_mut().poll(cx);
                // The task may have read the server's settings.
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
