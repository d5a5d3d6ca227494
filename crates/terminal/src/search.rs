//! Ctrl-R: looking through the history by a few letters.
//!
//! Letters narrow the search, Ctrl-R again goes further back, Esc leaves the draft as it was, and any other key takes
//! what was found. It changes neither the history nor the draft itself.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::history::History;
use super::text::clean_line;

#[derive(Debug, Default)]
pub(super) struct Search {
    pub(super) words: String,
    pub(super) found: Option<String>,
    /// How many matches were passed over.
    skip: usize,
}

/// What a key leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SearchStep {
    Stay,
    Cancel,
    /// The entry found goes into the draft.
    Take(Option<String>),
}

impl Search {
    pub(super) fn key(&mut self, key: KeyEvent, history: &mut History) -> SearchStep {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('r') if control => self.look(self.skip + 1, history),
            KeyCode::Char('g') if control => return SearchStep::Cancel,
            KeyCode::Esc => return SearchStep::Cancel,
            KeyCode::Char(letter) if !control => {
                self.words.push(letter);
                self.look(0, history);
            }
            KeyCode::Backspace => {
                self.words.pop();
                self.look(0, history);
            }
            _ => return SearchStep::Take(self.found.take()),
        }
        SearchStep::Stay
    }

    pub(super) fn paste(&mut self, text: &str, history: &mut History) {
        self.words.push_str(&clean_line(text.lines().next().unwrap_or_default()));
        self.look(0, history);
    }

    fn look(&mut self, skip: usize, history: &mut History) {
        if self.words.is_empty() {
            *self = Self::default();
        } else if let Some(found) = history.search(&self.words, skip) {
            (self.skip, self.found) = (skip, Some(found));
        } else if skip == 0 {
            self.found = None;
        }
    }
}
