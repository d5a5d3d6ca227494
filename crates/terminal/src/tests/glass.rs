//! A terminal in memory: takes the bytes the painter sends and shows what a real one would.
//!
//! It knows only what the painter uses and panics on anything else, so that a new escape sequence is a decision. It
//! keeps a scrollback, clips at the right edge while line wrap is off, and wraps everything anew when it is resized,
//! as most terminals do.

use unicode_segmentation::UnicodeSegmentation;

use super::super::text::{glyph_width, width};

pub(super) struct Glass {
    columns: usize,
    rows: usize,
    /// Rows from the oldest of the scrollback to the bottom of the screen; each says whether it goes on in the next.
    all: Vec<(String, bool)>,
    /// Row (from the top of `all`) and column.
    cursor: (usize, usize),
    pub(super) cursor_shown: bool,
    pub(super) colored: bool,
}

impl Glass {
    pub(super) fn new(columns: usize, rows: usize) -> Self {
        Self { columns, rows, all: vec![Default::default(); rows], cursor: (0, 0), cursor_shown: true, colored: false }
    }

    fn top(&self) -> usize {
        self.all.len() - self.rows
    }

    /// What is on the screen.
    pub(super) fn screen(&self) -> String {
        self.text(self.top())
    }

    /// What is in the scrollback and on the screen, without the empty rows below.
    pub(super) fn everything(&self) -> String {
        self.text(0).trim_end().to_owned()
    }

    fn text(&self, from: usize) -> String {
        self.all.iter().skip(from).map(|(row, _)| format!("{}\n", row.trim_end())).collect()
    }

    /// Column and row of the cursor on the screen.
    pub(super) fn cursor(&self) -> (usize, usize) {
        (self.cursor.1, self.cursor.0 - self.top())
    }

    /// What becomes of the rows is what tmux does: those below the cursor go first where there is less room, then those above
    /// pass into the scrollback.
    pub(super) fn resize(&mut self, columns: usize, rows: usize) {
        let below = self.all.len() - 1 - self.cursor.0;
        self.all.truncate(self.all.len() - below.min(self.rows.saturating_sub(rows)));
        let mut logical: Vec<String> = vec![String::new()];
        let mut place = (0, 0);
        for (index, (row, goes_on)) in self.all.iter().enumerate() {
            if index == self.cursor.0 {
                place = (logical.len() - 1, width(logical.last().unwrap()) + self.cursor.1);
            }
            logical.last_mut().unwrap().push_str(row);
            if !goes_on {
                logical.push(String::new());
            }
        }
        while logical.len() > place.0 + 1 && logical.last().is_some_and(|line| line.trim().is_empty()) {
            logical.pop();
        }
        self.all.clear();
        for (index, line) in logical.iter().enumerate() {
            let start = self.all.len();
            let mut row = String::new();
            for grapheme in line.trim_end().graphemes(true) {
                if width(&row) + glyph_width(grapheme) > columns {
                    self.all.push((std::mem::take(&mut row), true));
                }
                row.push_str(grapheme);
            }
            self.all.push((row, false));
            if index == place.0 {
                self.cursor = (start + place.1 / columns, place.1 % columns);
            }
        }
        let least = rows.max(self.cursor.0 + 1);
        self.all.resize(self.all.len().max(least), Default::default());
        (self.columns, self.rows) = (columns, rows);
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let text = std::str::from_utf8(bytes).unwrap();
        let mut rest = text;
        while let Some(grapheme) = rest.graphemes(true).next() {
            if let Some(sequence) = rest.strip_prefix("\u{1b}[") {
                let end = sequence.find(|c: char| c.is_ascii_alphabetic()).unwrap();
                self.control(&sequence[..end], &sequence[end..=end]);
                rest = &sequence[end + 1..];
                continue;
            }
            match grapheme {
                "\r\n" => {
                    self.cursor.1 = 0;
                    self.line_feed();
                }
                "\n" => self.line_feed(),
                "\r" => self.cursor.1 = 0,
                grapheme => self.put(grapheme),
            }
            rest = &rest[grapheme.len()..];
        }
    }

    fn line_feed(&mut self) {
        self.cursor.0 += 1;
        if self.cursor.0 == self.all.len() {
            self.all.push(Default::default());
        }
    }

    fn control(&mut self, parameters: &str, what: &str) {
        let count = parameters.parse::<usize>().unwrap_or(1).max(1);
        let (row, column) = self.cursor;
        match (what, parameters) {
            ("A", _) => self.cursor.0 = row.saturating_sub(count).max(self.top()),
            ("B", _) => self.cursor.0 = (row + count).min(self.all.len() - 1),
            ("G", _) => self.cursor.1 = count - 1,
            ("K", "2") => self.all[row] = Default::default(),
            ("J", "") => {
                assert!(row > self.top() || column > 0, "this would clear the screen");
                self.all[row..].fill(Default::default());
            }
            ("m", _) => self.colored |= parameters.starts_with("38") || parameters.starts_with('3'),
            ("h", "?25") => self.cursor_shown = true,
            ("l", "?25") => self.cursor_shown = false,
            ("h" | "l", "?7" | "?2026") => {}
            other => panic!("unknown sequence {other:?}"),
        }
    }

    fn put(&mut self, grapheme: &str) {
        assert!(!grapheme.contains(char::is_control), "a control character gets through: {grapheme:?}");
        let (row, column) = self.cursor;
        let wide = glyph_width(grapheme);
        let mut cells: Vec<&str> = Vec::new();
        for old in self.all[row].0.graphemes(true) {
            cells.push(old);
            cells.extend(std::iter::repeat_n("", glyph_width(old).saturating_sub(1)));
        }
        cells.resize(cells.len().max(column + wide), " ");
        cells[column] = grapheme;
        cells[column + 1..column + wide].fill("");
        // The other half of what was overwritten is gone too.
        if cells.get(column + wide) == Some(&"") {
            cells[column + wide] = " ";
        }
        let written = cells.concat();
        assert!(width(&written) <= self.columns, "{written:?} is wider than the terminal");
        self.all[row].0 = written;
        self.cursor.1 = column + wide;
    }
}
