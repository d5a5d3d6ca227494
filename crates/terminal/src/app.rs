//! The chat on a real terminal: one loop over keys, notices, finished orders and the clock.
//!
//! The clock ticks only while something moves; an idle chat sleeps until a key or a notice. Keys are painted at once,
//! notices at most thirty times a second. However the loop ends, pending orders are carried out first and the terminal
//! is restored.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use anyhow::Context;
use crossterm::event::{Event as Input, EventStream};
use futures_util::StreamExt;
use max_team_core::id::SessionId;
use max_team_core::plan::Plan;
use max_team_runtime::{Notice, now_ms};
use ratatui::layout::Size;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::chat::{Chat, Wish};
use super::command_queue::CommandQueue;
use super::screen::Screen;
use super::tty::Tty;
use super::view::view;
use super::{ChatExit, ExitReason};

/// Between two turns of the spinner.
const TICK: Duration = Duration::from_millis(100);
/// Between two frames, unless the user types.
const FRAME: Duration = Duration::from_millis(33);
/// Keys and notices that are taken before the next frame.
const BATCH_MAX: usize = 256;
/// How long leaving waits for orders that were given.
const LEAVE_WAIT: Duration = Duration::from_secs(5);
/// When the memory that only start-up needed is given back.
const STARTED_AFTER: Duration = Duration::from_secs(2);

pub(super) struct App {
    chat: Chat,
    link: CommandQueue,
    notices: mpsc::Receiver<Notice>,
    tty: Tty,
    screen: Screen,
    events: Option<EventStream>,
    /// Something has changed since the last frame; what the user did is painted at once.
    dirty: bool,
    urgent: bool,
    painted_at: Instant,
}

impl App {
    /// Takes the terminal over.
    pub(super) fn enter(
        link: CommandQueue,
        notices: mpsc::Receiver<Notice>,
        chat: impl FnOnce(Size) -> Chat,
    ) -> anyhow::Result<Self> {
        let size = Tty::size().context("the terminal does not say how large it is")?;
        let tty = Tty::enter().context("the terminal cannot be used")?;
        let mut face = Self {
            chat: chat(size),
            link,
            notices,
            tty,
            screen: Screen::new(size),
            events: None,
            dirty: true,
            urgent: true,
            painted_at: Instant::now(),
        };
        face.paint()?;
        face.tty.ask_for_all_keys()?;
        face.events = Some(EventStream::new());
        Ok(face)
    }

    pub(super) async fn run(mut self, shutdown: CancellationToken, when_started: fn()) -> anyhow::Result<ChatExit> {
        let reason = self.turn_around(&shutdown, when_started).await;
        let (session, plan) = self.leave().await;
        Ok(ChatExit { reason: reason?, session, plan })
    }

    async fn turn_around(&mut self, shutdown: &CancellationToken, when_started: fn()) -> anyhow::Result<ExitReason> {
        let mut is_starting = true;
        let started = sleep(STARTED_AFTER);
        tokio::pin!(started);
        loop {
            self.link.send(self.chat.session_mut().take_acts());
            self.paint_if_due()?;
            let wake = self.wake_at();
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return Ok(ExitReason::Shutdown),
                input = next_input(&mut self.events) => match input {
                    Some(Ok(input)) => if let Some(reason) = self.inputs(input).await? {
                        return Ok(reason);
                    },
                    // The terminal is gone.
                    Some(Err(_)) | None => return Ok(ExitReason::Hangup),
                },
                done = self.link.next() => {
                    self.chat.at(now_ms());
                    self.chat.done(done);
                    self.dirty = true;
                    if self.chat.session().farewell().is_some() {
                        return Ok(ExitReason::Quit);
                    }
                }
                notice = self.notices.recv() => match notice {
                    Some(notice) => self.notices(&notice),
                    None => return Ok(ExitReason::Shutdown),
                },
                () = Tty::lost() => {
                    self.tty.enter_again()?;
                    self.restart()?;
                }
                () = &mut started, if is_starting => {
                    is_starting = false;
                    when_started();
                }
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => self.dirty = true,
            }
        }
    }

    /// Takes what has been typed, all of it: a frame per key would lag behind a paste.
    async fn inputs(&mut self, first: Input) -> anyhow::Result<Option<ExitReason>> {
        self.chat.at(now_ms());
        (self.dirty, self.urgent) = (true, true);
        let (mut next, mut taken, mut resized) = (Some(first), 0, false);
        while let Some(input) = next {
            let wish = match input {
                Input::Key(key) => self.chat.key(key),
                Input::Paste(text) => {
                    self.chat.paste(&text);
                    None
                }
                Input::Resize(..) => {
                    resized = true;
                    None
                }
                _ => None,
            };
            match wish {
                Some(Wish::Leave) => return Ok(Some(ExitReason::Quit)),
                Some(Wish::Redraw) => resized = true,
                Some(Wish::Suspend) => self.suspend()?,
                None => {}
            }
            taken += 1;
            // What is asked for is taken: one key too many would be lost.
            next = if taken < BATCH_MAX { ready_input(&mut self.events).await } else { None };
        }
        Tty::announce_unread();
        if resized {
            self.resize()?;
        }
        Ok(None)
    }

    fn notices(&mut self, first: &Notice) {
        self.chat.at(now_ms());
        self.dirty |= self.chat.notice(first);
        for _ in 0..BATCH_MAX {
            match self.notices.try_recv() {
                Ok(notice) => self.dirty |= self.chat.notice(&notice),
                Err(_) => break,
            }
        }
    }

    fn resize(&mut self) -> anyhow::Result<()> {
        let size = Tty::size()?;
        self.tty.frame(|out| self.screen.resize(out, size))?;
        self.chat.resize(usize::from(size.width));
        Ok(())
    }

    fn suspend(&mut self) -> anyhow::Result<()> {
        self.tty.frame(|out| self.screen.wipe(out))?;
        // The reader of events must not take the keys that are meant for the shell.
        drop(self.events.take());
        self.tty.suspend()?;
        self.events = Some(EventStream::new());
        self.restart()
    }

    /// Starts a new screen below the output that others have written meanwhile.
    fn restart(&mut self) -> anyhow::Result<()> {
        let size = Tty::size()?;
        self.screen = Screen::new(size);
        self.chat.resize(usize::from(size.width));
        self.dirty = true;
        Ok(())
    }

    fn paint_if_due(&mut self) -> anyhow::Result<()> {
        if self.dirty && (self.urgent || self.painted_at.elapsed() >= FRAME) {
            self.paint()?;
        }
        Ok(())
    }

    fn paint(&mut self) -> anyhow::Result<()> {
        // The news of a resize may still be on its way; painting at the old places would overwrite the conversation.
        if Tty::size()? != self.screen.size() {
            self.resize()?;
        }
        let now_ms = now_ms();
        self.chat.at(now_ms);
        let live = view(&mut self.chat, self.screen.rows_max(), now_ms);
        let finished = self.chat.take_finished();
        self.tty
            .frame(|backend| self.screen.paint(backend, &finished, &live))
            .context("the terminal cannot be written to")?;
        (self.dirty, self.urgent) = (false, false);
        self.painted_at = Instant::now();
        Ok(())
    }

    /// When to wake without anything happening; never, if nothing moves.
    fn wake_at(&self) -> Option<Instant> {
        if self.dirty {
            return Some(self.painted_at + FRAME);
        }
        if self.chat.is_moving() {
            return Some(self.painted_at + TICK);
        }
        let wait_ms = self.chat.changes_at_ms()?.saturating_sub(now_ms());
        Some(Instant::now() + Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0)))
    }

    /// Carries out what was ordered, shows the last lines, and gives the terminal back.
    async fn leave(mut self) -> (SessionId, Option<Plan>) {
        let carried_out = async {
            loop {
                self.link.send(self.chat.session_mut().take_acts());
                // Something may follow from an answer once the journal has it.
                if self.link.is_empty() && !self.chat.session().questions.is_answering() {
                    break;
                }
                tokio::select! {
                    done = self.link.next() => self.chat.done(done),
                    // An order that publishes waits for us to listen.
                    Some(notice) = self.notices.recv() => {
                        self.chat.notice(&notice);
                    }
                }
            }
        };
        // Orders that take longer are dropped; what was acknowledged is in the journal.
        drop(timeout(LEAVE_WAIT, carried_out).await);
        self.chat.part();
        let finished = self.chat.take_finished();
        let none = super::screen::View::default();
        // A terminal that is gone is no reason to fail now.
        drop(self.tty.frame(|out| {
            self.screen.paint(out, &finished, &none)?;
            self.screen.wipe(out)
        }));
        let session = self.chat.session();
        (session.id(), session.plan().cloned())
    }
}

async fn next_input(events: &mut Option<EventStream>) -> Option<std::io::Result<Input>> {
    match events {
        Some(events) => events.next().await,
        None => None,
    }
}

/// The next key that is already there. Polls with this task's own waker: the event stream keeps the first waker it is
/// given until an event comes, and with `now_or_never` that would be one that wakes no task.
async fn ready_input(events: &mut Option<EventStream>) -> Option<Input> {
    let events = events.as_mut()?;
    let polled = poll_fn(|cx| Poll::Ready(events.poll_next_unpin(cx))).await;
    match polled {
        Poll::Ready(Some(Ok(input))) => Some(input),
        _ => None,
    }
}
