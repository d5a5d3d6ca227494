//! The terminal itself: its modes are set on entering and put back on every way out.
//!
//! [`Tty`] is a guard: leaving, an error, a panic (here or in any other task) and a suspension all restore raw mode,
//! bracketed paste, the keyboard protocol and the cursor. A frame goes out in one write, inside a synchronized
//! update, so that no half-painted screen is ever seen.

use std::io::{self, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::{
    DisableBracketedPaste, EnableBracketedPaste, EventStream, KeyboardEnhancementFlags, PopKeyboardEnhancementFlags,
    PushKeyboardEnhancementFlags,
};
use crossterm::terminal::{self, BeginSynchronizedUpdate, EndSynchronizedUpdate};
use crossterm::{cursor, queue};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::{Position, Size};
use rustix::process::{Signal, getpid, kill_process};

/// Whether the terminal is in our modes.
static ENTERED: AtomicBool = AtomicBool::new(false);
/// Whether the keyboard protocol was pushed, and has to be popped.
static KEYBOARD: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

/// The terminal, in our modes as long as this lives.
#[derive(Debug)]
pub(super) struct Tty {
    bytes: Vec<u8>,
}

impl Tty {
    /// Enters, and says where the cursor is.
    pub(super) fn enter() -> io::Result<(Self, Size, Position)> {
        HOOK.call_once(restore_before_panic_messages);
        let tty = Self { bytes: Vec::new() };
        let (size, position) = tty.set_modes(true)?;
        Ok((tty, size, position))
    }

    fn set_modes(&self, ask: bool) -> io::Result<(Size, Position)> {
        terminal::enable_raw_mode()?;
        ENTERED.store(true, Ordering::SeqCst);
        let mut out = io::stdout();
        queue!(out, EnableBracketedPaste)?;
        out.flush()?;
        let (columns, rows) = terminal::size()?;
        let size = Size::new(columns.max(1), rows.max(1));
        match cursor::position() {
            Ok((column, row)) => {
                // Whoever answers where the cursor is will not keep us waiting with the second question.
                if ask && terminal::supports_keyboard_enhancement().unwrap_or(false) {
                    KEYBOARD.store(true, Ordering::SeqCst);
                }
                if KEYBOARD.load(Ordering::SeqCst) {
                    queue!(out, PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES))?;
                }
                // Something unfinished stands on this line (a prompt without a newline): begin below it.
                let row = if column > 0 { self.line_feed(&mut out, size, row)? } else { row };
                out.flush()?;
                Ok((size, Position::new(0, row)))
            }
            // It does not say: the bottom is a place that every terminal has.
            Err(_) => {
                write!(out, "\r\n")?;
                out.flush()?;
                Ok((size, Position::new(0, size.height - 1)))
            }
        }
    }

    fn line_feed(&self, out: &mut impl Write, size: Size, row: u16) -> io::Result<u16> {
        write!(out, "\r\n")?;
        Ok((row + 1).min(size.height - 1))
    }

    /// Whether somebody's panic has put the terminal back under our feet.
    pub(super) fn is_lost(&self) -> bool {
        !ENTERED.load(Ordering::SeqCst)
    }

    /// Enters again after a suspension or a panic elsewhere.
    pub(super) fn enter_again(&mut self) -> io::Result<(Size, Position)> {
        self.set_modes(false)
    }

    /// Stops the process as Ctrl-Z does, and enters again when it goes on.
    pub(super) fn suspend(&mut self) -> io::Result<(Size, Position)> {
        restore();
        kill_process(getpid(), Signal::TSTP)?;
        self.enter_again()
    }

    /// Paints one frame.
    pub(super) fn frame<T>(
        &mut self,
        paint: impl FnOnce(&mut CrosstermBackend<&mut Vec<u8>>) -> io::Result<T>,
    ) -> io::Result<T> {
        self.bytes.clear();
        queue!(self.bytes, BeginSynchronizedUpdate, cursor::Hide)?;
        let quiet = self.bytes.len();
        let painted = paint(&mut CrosstermBackend::new(&mut self.bytes))?;
        if self.bytes.len() > quiet {
            queue!(self.bytes, EndSynchronizedUpdate)?;
            let mut out = io::stdout().lock();
            out.write_all(&self.bytes)?;
            out.flush()?;
        }
        Ok(painted)
    }

    /// Asks where the cursor is now. The reader of events has to let go first: both read the same input.
    pub(super) fn locate(events: &mut Option<EventStream>) -> io::Result<(Size, Position)> {
        drop(events.take());
        let position = cursor::position();
        *events = Some(EventStream::new());
        let (columns, rows) = terminal::size()?;
        let (column, row) = position?;
        Ok((Size::new(columns.max(1), rows.max(1)), Position::new(column, row)))
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        restore();
    }
}

/// Puts the terminal back as it was. Harmless when it already is.
fn restore() {
    if !ENTERED.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    if KEYBOARD.load(Ordering::SeqCst) {
        drop(queue!(out, PopKeyboardEnhancementFlags));
    }
    // A terminal that is gone cannot be restored, and there is nobody to tell.
    drop(queue!(out, DisableBracketedPaste, EndSynchronizedUpdate, cursor::Show));
    drop(out.flush());
    drop(terminal::disable_raw_mode());
}

/// A panic's message is printed before anything is dropped; in raw mode it would be unreadable.
fn restore_before_panic_messages() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        restore();
        before(panic);
    }));
}
