//! A session that cannot go on in this process: it is closed, and opened again with the user's next input.
//!
//! Agents must not work where the user cannot see them. What was said is in the journal; opening the session folds it,
//! as another process would, so that failed writes are repeated.

use max_team_core::interrupt::is_stop;
use max_team_runtime::{OpenedSession, RuntimeError, Which};

use super::super::command_queue::UiCommand;
use super::super::rows::Row;
use super::super::slash::Slash;
use super::super::transcript::Item;
use super::{Session, note};
use max_team_workspace::config::choice::WhileBusy;

/// What waits until the session is open again.
#[derive(Debug)]
pub(super) enum DeferredInput {
    Words(String, WhileBusy),
    Command(Slash),
    /// The user stopped the session: nothing is left to say.
    Stop,
}

impl Session {
    /// The session cannot go on here. What is queued is in the journal and goes on with it, wherever it is opened next.
    pub(super) fn runtime_stopped(&mut self, error: &RuntimeError) -> Vec<Item> {
        self.messages.queue.clear();
        self.questions.clear();
        self.transcript.stop();
        self.crew.clear();
        // `teammates` is kept: the teammates come back when the session is opened, and a line for one of them must not
        // reach the lead.
        self.background.clear();
        self.plans = super::Plans::default();
        self.run.quiet = true;
        if self.run.stopped.is_some() && error.is_anothers() {
            // Why is on the screen.
            return Vec::new();
        }
        let words = self.lang.runtime_failure(error);
        // Each who works here may say so; what to do is said once.
        let shown = match self.run.stopped.replace(words.clone()) {
            Some(known) if known == words => return Vec::new(),
            Some(_) => words,
            // The chat is about to end: it is no place to try again.
            None if matches!(error, RuntimeError::Behind(_)) => words,
            None => {
                self.acts.push(UiCommand::Leave);
                format!("{words}\n{}", self.lang.session_stopped())
            }
        };
        vec![Item::Row(Row::Error(shown))]
    }

    /// Whether it cannot go on here.
    pub(in super::super) fn is_stopped(&self) -> bool {
        self.run.stopped.is_some()
    }

    /// Words for a session that has been let go of. One that stops is for what goes on when it is opened.
    pub(super) fn speak_again(&mut self, text: String, how: WhileBusy) -> Vec<Item> {
        if is_stop(&text) { self.stop_again() } else { self.try_again(DeferredInput::Words(text, how)) }
    }

    /// Stores a stop, which is read first when the session is opened, so that nothing goes on.
    pub(super) fn stop_again(&mut self) -> Vec<Item> {
        self.acts.push(UiCommand::StopSession);
        self.try_again(DeferredInput::Stop)
    }

    /// Opens the session again, and then does what waits for that.
    pub(super) fn try_again(&mut self, later: DeferredInput) -> Vec<Item> {
        self.messages.later.push(later);
        if self.messages.later.len() == 1 { self.open(Which::Id(self.id)) } else { Vec::new() }
    }

    /// It is open again.
    pub(super) fn go_on_again(&mut self, opened: &OpenedSession) -> Vec<Item> {
        let mut items = vec![note(self.lang.goes_on_here().to_owned())];
        for later in std::mem::take(&mut self.messages.later) {
            items.extend(match later {
                DeferredInput::Words(text, how) => self.speak(text, how),
                // It does so by itself.
                DeferredInput::Command(Slash::Continue(None)) if opened.continuing => Vec::new(),
                DeferredInput::Command(slash) => self.slash(slash),
                // It was written before the session was opened.
                DeferredInput::Stop => Vec::new(),
            });
        }
        items
    }

    /// It could not be opened. What was said is not lost.
    pub(super) fn still_stopped(&mut self) {
        let words = std::mem::take(&mut self.messages.later).into_iter().filter_map(|later| match later {
            DeferredInput::Words(text, _) => Some(text),
            DeferredInput::Command(_) | DeferredInput::Stop => None,
        });
        self.messages.returned.extend(words);
    }
}
