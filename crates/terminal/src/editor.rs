//! The line that is being written: text, a cursor, and the keys that move it.
//!
//! The cursor stands on grapheme boundaries only, and rows are wrapped by display width, so that CJK text and emoji
//! sit where the terminal puts them. A large paste is one character here (shown as a chip, sent whole). It knows
//! nothing of history, questions or the screen.

use std::borrow::Cow;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;

use super::text::{clean, width};

/// Pastes with more characters are shown as a chip.
const PASTE_SHOWN_MAX: usize = 2_000;
/// A large paste is one private-use character of this range, which keyboards do not produce.
const CHIPS: std::ops::RangeInclusive<char> = '\u{10ff00}'..='\u{10fffd}';

/// The text being written.
#[derive(Debug, Clone, Default)]
pub(super) struct Editor {
    text: String,
    /// A byte offset, always between two graphemes.
    cursor: usize,
    chips: Vec<Chip>,
    /// What Ctrl-K, Ctrl-U and Ctrl-W took, for Ctrl-Y.
    killed: String,
    /// The column that Up and Down aim for.
    goal: Option<usize>,
}

#[derive(Debug, Clone)]
struct Chip {
    text: String,
    label: String,
}

/// One row on the screen: a range of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EditorRow {
    start: usize,
    end: usize,
}

/// The text as rows of a width.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) rows: Vec<String>,
    /// Row and column of the cursor.
    pub(super) cursor: (usize, usize),
}

impl Editor {
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text as it is sent, pastes included.
    pub(super) fn whole(&self) -> String {
        let mut whole = String::with_capacity(self.text.len());
        for c in self.text.chars() {
            match self.chip(c) {
                Some(chip) => whole.push_str(&chip.text),
                None => whole.push(c),
            }
        }
        whole
    }

    /// The text as it stands in the draft, with a character for each large paste; and the cursor in it.
    pub(super) fn draft(&self) -> (&str, usize) {
        (&self.text, self.cursor)
    }

    /// Puts a text in the place of everything between there and the cursor.
    pub(super) fn replace_from(&mut self, start: usize, text: &str) {
        if self.text.get(start..self.cursor).is_some() {
            self.remove(start, self.cursor);
            self.insert(text);
        }
    }

    /// Takes the text away.
    pub(super) fn take(&mut self) -> String {
        let whole = self.whole();
        self.clear();
        whole
    }

    pub(super) fn clear(&mut self) {
        *self = Self { killed: std::mem::take(&mut self.killed), ..Self::default() };
    }

    /// Replaces the text; the cursor stands behind it.
    pub(super) fn set(&mut self, text: &str) {
        self.clear();
        self.insert(text);
    }

    pub(super) fn insert(&mut self, text: &str) {
        let text = typed(text);
        self.put(&text);
    }

    /// Inserts a paste; a large one as a chip with this label.
    pub(super) fn paste(&mut self, text: &str, label: impl FnOnce(usize) -> String) {
        let next = char::from_u32(u32::from(*CHIPS.start()) + u32::try_from(self.chips.len()).unwrap_or(u32::MAX));
        let chip = next.filter(|c| CHIPS.contains(c) && text.chars().nth(PASTE_SHOWN_MAX).is_some());
        let Some(sign) = chip else { return self.insert(text) };
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let label = format!("[{}]", label(text.lines().count()));
        self.chips.push(Chip { text, label });
        self.put(sign.encode_utf8(&mut [0; 4]));
    }

    /// Carries out a key that edits; returns whether it did.
    pub(super) fn key(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let word = control || alt;
        match key.code {
            KeyCode::Char('a') if control => self.move_to(self.line_start()),
            KeyCode::Char('e') if control => self.move_to(self.line_end()),
            KeyCode::Char('b') if alt => self.move_to(self.word_left()),
            KeyCode::Char('f') if alt => self.move_to(self.word_right()),
            KeyCode::Char('b') if control => self.move_to(self.left()),
            KeyCode::Char('f') if control => self.move_to(self.right()),
            KeyCode::Char('k') if control => self.kill_line_end(),
            KeyCode::Char('u') if control => self.kill(self.line_start(), self.cursor),
            KeyCode::Char('w') if control => self.kill(self.word_left(), self.cursor),
            KeyCode::Char('d') if alt => self.kill(self.cursor, self.word_right()),
            KeyCode::Char('d') if control => self.remove(self.cursor, self.right()),
            KeyCode::Char('h') if control => self.remove(self.left(), self.cursor),
            KeyCode::Char('y') if control => {
                let killed = std::mem::take(&mut self.killed);
                self.put(&killed);
                self.killed = killed;
            }
            KeyCode::Char('j') if control => self.put("\n"),
            KeyCode::Char(c) if !control && !alt => self.insert(c.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace if word => self.kill(self.word_left(), self.cursor),
            KeyCode::Backspace => self.remove(self.left(), self.cursor),
            KeyCode::Delete if word => self.kill(self.cursor, self.word_right()),
            KeyCode::Delete => self.remove(self.cursor, self.right()),
            KeyCode::Left if word => self.move_to(self.word_left()),
            KeyCode::Right if word => self.move_to(self.word_right()),
            KeyCode::Left => self.move_to(self.left()),
            KeyCode::Right => self.move_to(self.right()),
            KeyCode::Home => self.move_to(self.line_start()),
            KeyCode::End => self.move_to(self.line_end()),
            _ => return false,
        }
        true
    }

    /// Whether a backslash stands right before the cursor; if so it is taken for a newline.
    pub(super) fn continue_line(&mut self) -> bool {
        let escaped = self.text.get(..self.cursor).is_some_and(|before| before.ends_with('\\'));
        if escaped {
            self.remove(self.left(), self.cursor);
            self.put("\n");
        }
        escaped
    }

    /// Moves one row up; `false` if there is none.
    pub(super) fn up(&mut self, columns: usize) -> bool {
        let rows = self.rows(columns);
        let (row, column) = self.place(&rows);
        let above = row.checked_sub(1).and_then(|above| rows.get(above)).copied();
        self.move_into(above, column)
    }

    /// Moves one row down; `false` if there is none.
    pub(super) fn down(&mut self, columns: usize) -> bool {
        let rows = self.rows(columns);
        let (row, column) = self.place(&rows);
        self.move_into(rows.get(row + 1).copied(), column)
    }

    /// The rows at a width, and where the cursor is in them. One column more is needed for a cursor at the end.
    pub(super) fn layout(&self, columns: usize) -> Layout {
        let rows = self.rows(columns);
        let cursor = self.place(&rows);
        let shown = |row: &EditorRow| {
            let text = self.text.get(row.start..row.end).unwrap_or_default();
            text.graphemes(true).map(|grapheme| self.shown(grapheme)).collect()
        };
        Layout { rows: rows.iter().map(shown).collect(), cursor }
    }

    fn put(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.move_to(self.cursor + text.len());
        self.settle();
    }

    /// What was put in may have joined with what stands around it into one grapheme.
    fn settle(&mut self) {
        let inside = |(start, grapheme): (usize, &str)| {
            (start < self.cursor && self.cursor < start + grapheme.len()).then_some(start + grapheme.len())
        };
        if let Some(end) = self.text.grapheme_indices(true).find_map(inside) {
            self.cursor = end;
        }
    }

    fn remove(&mut self, from: usize, to: usize) {
        self.text.drain(from..to);
        self.move_to(from);
        self.settle();
    }

    fn kill(&mut self, from: usize, to: usize) {
        if from < to {
            self.killed = self.text.get(from..to).unwrap_or_default().to_owned();
            self.remove(from, to);
        }
    }

    fn kill_line_end(&mut self) {
        // At the end of a line, the newline itself goes.
        let end = self.line_end();
        self.kill(self.cursor, if end == self.cursor { self.right() } else { end });
    }

    fn move_to(&mut self, to: usize) {
        self.cursor = to;
        self.goal = None;
    }

    fn before(&self) -> &str {
        self.text.get(..self.cursor).unwrap_or_default()
    }

    fn after(&self) -> &str {
        self.text.get(self.cursor..).unwrap_or_default()
    }

    fn left(&self) -> usize {
        self.before().grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn right(&self) -> usize {
        self.cursor + self.after().graphemes(true).next().map_or(0, str::len)
    }

    fn word_left(&self) -> usize {
        let words = self.before().split_word_bound_indices().rev();
        words.skip_while(|(_, word)| is_between(word)).map(|(at, _)| at).next().unwrap_or(0)
    }

    fn word_right(&self) -> usize {
        let words = self.after().split_word_bound_indices();
        let mut ends = words.skip_while(|(_, word)| is_between(word)).map(|(at, word)| at + word.len());
        ends.next().map_or(self.text.len(), |end| self.cursor + end)
    }

    fn line_start(&self) -> usize {
        self.before().rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.after().find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    fn chip(&self, c: char) -> Option<&Chip> {
        let index = u32::from(c).checked_sub(u32::from(*CHIPS.start()))?;
        self.chips.get(usize::try_from(index).ok()?)
    }

    fn shown<'a>(&'a self, grapheme: &'a str) -> Cow<'a, str> {
        match grapheme.chars().next().and_then(|c| self.chip(c)) {
            Some(chip) => Cow::Borrowed(&chip.label),
            None => Cow::Borrowed(grapheme),
        }
    }

    fn columns_of(&self, range: &str) -> usize {
        range.graphemes(true).map(|grapheme| width(&self.shown(grapheme))).sum()
    }

    /// Breaks after blanks where a row is full, and anywhere if it has none.
    fn rows(&self, columns: usize) -> Vec<EditorRow> {
        let columns = columns.max(2);
        let mut rows = Vec::new();
        let (mut start, mut used) = (0, 0);
        let mut chance = None;
        for (at, grapheme) in self.text.grapheme_indices(true) {
            if grapheme == "\n" {
                rows.push(EditorRow { start, end: at });
                (start, used, chance) = (at + 1, 0, None);
                continue;
            }
            let wide = width(&self.shown(grapheme));
            // Twice, if what follows the last blank leaves no room either.
            while used + wide > columns && at > start {
                let end = chance.take().filter(|chance| *chance > start).unwrap_or(at);
                rows.push(EditorRow { start, end });
                start = end;
                used = self.columns_of(self.text.get(end..at).unwrap_or_default());
            }
            used += wide;
            if grapheme == " " {
                chance = Some(at + 1);
            }
        }
        rows.push(EditorRow { start, end: self.text.len() });
        rows
    }

    fn place(&self, rows: &[EditorRow]) -> (usize, usize) {
        let row = rows.iter().rposition(|row| row.start <= self.cursor).unwrap_or(0);
        let start = rows.get(row).map_or(0, |row| row.start);
        (row, self.columns_of(self.text.get(start..self.cursor).unwrap_or_default()))
    }

    fn move_into(&mut self, row: Option<EditorRow>, column: usize) -> bool {
        let Some(row) = row else { return false };
        let goal = self.goal.unwrap_or(column);
        let text = self.text.get(row.start..row.end).unwrap_or_default();
        let mut used = 0;
        let mut to = row.start;
        for (at, grapheme) in text.grapheme_indices(true) {
            used += width(&self.shown(grapheme));
            if used > goal {
                break;
            }
            to = row.start + at + grapheme.len();
        }
        // The end of a row that goes on below is the beginning of that one: stay on this one.
        if to == row.end && self.text.as_bytes().get(to).is_some_and(|byte| *byte != b'\n') {
            let back = text.grapheme_indices(true).next_back().map_or(0, |(at, _)| at);
            to = row.start + back;
        }
        self.cursor = to;
        self.goal = Some(goal);
        true
    }
}

/// What the cursor skips on its way to a word.
fn is_between(word: &str) -> bool {
    !word.chars().any(|c| c.is_alphanumeric() || CHIPS.contains(&c))
}

/// Text as it may stand in a draft: newlines of one kind, nothing that drives the terminal, no chips.
fn typed(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    clean(&text).chars().filter(|c| !CHIPS.contains(c)).collect()
}

#[cfg(test)]
mod tests;
