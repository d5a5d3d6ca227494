//! The terminal itself: its modes are set on entering and put back on every way out.
//!
//! [`Tty`] is a guard: leaving, an error, a panic (here or in any other task) and a suspension all restore raw mode,
//! bracketed paste, the keyboard protocol, line wrap and the cursor. A frame goes out in one write.

use std::io::{self, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::cursor::Show;
use crossterm::event::{
    DisableBracketedPaste, EnableBracketedPaste, KeyboardEnhancementFlags, PopKeyboardEnhancementFlags,
    PushKeyboardEnhancementFlags,
};
use crossterm::queue;
use crossterm::terminal::{self, EnableLineWrap, EndSynchronizedUpdate};
use ratatui::layout::Size;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use tokio::sync::Notify;

/// The size of a terminal that does not say.
const USUAL_SIZE: Size = Size::new(80, 24);
/// Whether the terminal is in our modes.
static ENTERED: AtomicBool = AtomicBool::new(false);
/// Whether the terminal knows the keyboard protocol, which then has to be popped.
static KEYBOARD: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();
/// A task has panicked, and the terminal was put back for its message.
static LOST: Notify = Notify::const_new();

/// The terminal, in our modes as long as this lives.
#[derive(Debug)]
pub(super) struct Tty {
    bytes: Vec<u8>,
}

impl Tty {
    pub(super) fn enter() -> io::Result<Self> {
        HOOK.call_once(restore_before_panic_messages);
        set_modes()?;
        Ok(Self { bytes: Vec::new() })
    }

    /// Asks for keys that plain terminals cannot tell apart (Shift+Enter). The query runs once, after the first frame
    /// and before events are read, so that the first frame does not wait for the terminal's answer.
    pub(super) fn ask_for_all_keys(&mut self) -> io::Result<()> {
        if terminal::supports_keyboard_enhancement().unwrap_or(false) {
            KEYBOARD.store(true, Ordering::SeqCst);
            set_modes()?;
        }
        Ok(())
    }

    /// Waits until a panic in any thread has restored the terminal's modes while the chat still runs.
    pub(super) async fn lost() {
        LOST.notified().await;
    }

    /// Enters again after a panic elsewhere.
    pub(super) fn enter_again(&mut self) -> io::Result<()> {
        set_modes()
    }

    /// Stops the process as Ctrl-Z does, and enters again when it goes on.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        restore();
        kill_process(getpid(), Signal::TSTP)?;
        set_modes()
    }

    /// Has keys announced once more that were typed and not read. The reader of events takes a kilobyte at a time and
    /// only hears of new ones, so the rest of a flood would wait for the next key; setting the modes as they are wakes it.
    pub(super) fn announce_unread() {
        let stdin = rustix::stdio::stdin();
        let mut unread = [PollFd::new(&stdin, PollFlags::IN)];
        let is_unread = poll(&mut unread, Some(&Timespec::default())).is_ok_and(|count| count > 0);
        if is_unread && let Ok(modes) = tcgetattr(stdin) {
            // Where this fails, the next key does the same.
            let _ = tcsetattr(stdin, OptionalActions::Now, &modes);
        }
    }

    /// The size that the terminal has now.
    pub(super) fn size() -> io::Result<Size> {
        // A terminal without a window behind it (`script`, `expect`) says nought.
        Ok(match terminal::size()? {
            (0, _) | (_, 0) => USUAL_SIZE,
            (columns, rows) => Size::new(columns, rows),
        })
    }

    /// Sends what is written in one piece.
    pub(super) fn frame(&mut self, write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> io::Result<()> {
        self.bytes.clear();
        write(&mut self.bytes)?;
        let mut out = io::stdout().lock();
        out.write_all(&self.bytes)?;
        out.flush()
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        restore();
    }
}

fn set_modes() -> io::Result<()> {
    terminal::enable_raw_mode()?;
    let entered = ENTERED.swap(true, Ordering::SeqCst);
    let mut out = io::stdout();
    if !entered {
        queue!(out, EnableBracketedPaste)?;
    }
    if KEYBOARD.load(Ordering::SeqCst) {
        queue!(out, PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES))?;
    }
    out.flush()
}

/// Puts the terminal back as it was. Harmless when it already is.
fn restore() {
    if !ENTERED.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    // Errors are ignored: a terminal that is gone cannot be restored.
    if KEYBOARD.load(Ordering::SeqCst) {
        drop(queue!(out, PopKeyboardEnhancementFlags));
    }
    drop(queue!(out, DisableBracketedPaste, EnableLineWrap, EndSynchronizedUpdate, Show));
    drop(out.flush());
    drop(terminal::disable_raw_mode());
}

/// A panic's message is printed before anything is dropped; in raw mode it would be unreadable.
fn restore_before_panic_messages() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        restore();
        before(panic);
        LOST.notify_one();
    }));
}
