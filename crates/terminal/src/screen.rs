//! The painter: a few rows that change at the end of a scrollback that does not.
//!
//! Everything is written relative to where the cursor was left, never to a place on the screen: the terminal may
//! have scrolled, grown or shrunk since, and its cursor moves with our rows. Finished lines are printed over the live
//! rows and pass into the terminal's own history by plain line feeds, which every terminal keeps; of the live rows
//! only those that differ are written. The screen is never cleared, only rows that are ours, and nothing is ever
//! asked of the terminal.
//!
//! ratatui's own inline viewport has a fixed height, wipes the screen when it becomes narrower and has to ask where
//! the cursor is; this one does not.

use crossterm::cursor::{Hide, MoveToColumn, MoveUp, Show};
use crossterm::queue;
use crossterm::style::{Attribute, Color as Paint, ResetColor, SetAttribute, SetForegroundColor};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, DisableLineWrap, EnableLineWrap, EndSynchronizedUpdate,
};
use ratatui::layout::Size;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use std::io::{self, Write};
use unicode_segmentation::UnicodeSegmentation;

use super::text::{glyph_width, line_width};

/// The live rows and where the cursor stands in them.
#[derive(Debug, Clone, Default)]
pub(super) struct View {
    pub(super) lines: Vec<Line<'static>>,
    /// Column and row; hidden if there is none.
    pub(super) cursor: Option<(usize, usize)>,
}

/// What is known of the terminal.
#[derive(Debug)]
pub(super) struct Screen {
    size: Size,
    /// What stands in our rows.
    shown: Vec<Line<'static>>,
    /// Where the cursor was left: column, and row below the first of ours.
    cursor: (usize, usize),
    /// Whether the row that the cursor is in is known to be empty.
    begun: bool,
}

impl Screen {
    /// Begins in the row below the cursor, wherever that is.
    pub(super) fn new(size: Size) -> Self {
        Self { size, shown: Vec::new(), cursor: (0, 0), begun: false }
    }

    pub(super) fn size(&self) -> Size {
        self.size
    }

    /// Rows that a view may have: one is left for the conversation.
    pub(super) fn rows_max(&self) -> usize {
        usize::from(self.size.height.saturating_sub(1))
    }

    /// Writes finished lines above, and the live rows below them.
    pub(super) fn paint(&mut self, out: &mut impl Write, finished: &[Line<'static>], view: &View) -> io::Result<()> {
        let live = view.lines.get(..view.lines.len().min(self.rows_max())).unwrap_or_default();
        // Without line wrap a character that the terminal takes for wider than we do cannot push a row down.
        queue!(out, BeginSynchronizedUpdate, Hide, DisableLineWrap)?;
        self.go_to_first_row(out)?;
        let mut row = 0;
        for line in finished.iter().chain(live) {
            self.feed(out, row)?;
            self.write(out, row, line)?;
            row += 1;
        }
        // What stood below is gone.
        while row < self.shown.len() {
            self.feed(out, row)?;
            queue!(out, Clear(ClearType::CurrentLine))?;
            row += 1;
        }
        self.shown = live.to_vec();
        let last = row.saturating_sub(1);
        let (column, below) = view.cursor.filter(|(_, row)| *row < live.len()).unwrap_or((0, 0));
        let target = finished.len() + below;
        queue!(out, MoveToColumn(narrow(column.min(self.columns().saturating_sub(1)))))?;
        // With nothing live the next thing is written below the last finished line.
        if target > last {
            write!(out, "\r\n")?;
        }
        up(out, last.saturating_sub(target))?;
        self.cursor = (column, below);
        queue!(out, EnableLineWrap)?;
        if view.cursor.is_some() {
            queue!(out, Show)?;
        }
        queue!(out, EndSynchronizedUpdate)
    }

    /// The terminal has another size and has wrapped what was in it. Our rows are erased, to be written anew.
    pub(super) fn resize(&mut self, out: &mut impl Write, size: Size) -> io::Result<()> {
        let columns = usize::from(size.width);
        let above: usize = self.shown.iter().take(self.cursor.1).map(|line| wraps(line, columns)).sum();
        self.cursor.1 = above + self.cursor.0.checked_div(columns).unwrap_or(0);
        self.size = size;
        self.wipe(out)
    }

    /// Erases our rows; what is written next stands where they began.
    pub(super) fn wipe(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.go_to_first_row(out)?;
        // From its second row on: erasing from the top left corner is "clear the screen" to some (tmux), which then
        // keep what was there in their history.
        match std::mem::take(&mut self.shown).len() {
            0 => Ok(()),
            1 => queue!(out, Clear(ClearType::CurrentLine)),
            // By a line feed: a terminal that has become smaller may have dropped the rows below the cursor, and from the
            // last row nothing leads down, but up.
            _ => {
                queue!(out, Clear(ClearType::CurrentLine))?;
                write!(out, "\r\n")?;
                queue!(out, Clear(ClearType::FromCursorDown), MoveUp(1))
            }
        }
    }

    fn columns(&self) -> usize {
        usize::from(self.size.width)
    }

    fn go_to_first_row(&mut self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "\r")?;
        // Something unfinished may stand where we begin (a prompt, a line without its end).
        if !std::mem::replace(&mut self.begun, true) {
            write!(out, "\r\n")?;
        }
        up(out, self.cursor.1)?;
        self.cursor = (0, 0);
        Ok(())
    }

    /// Goes to a row from the one above it. A row that is not there yet is made; the terminal scrolls if it must.
    fn feed(&self, out: &mut impl Write, row: usize) -> io::Result<()> {
        if row > 0 { write!(out, "\r\n") } else { Ok(()) }
    }

    fn write(&self, out: &mut impl Write, row: usize, line: &Line<'static>) -> io::Result<()> {
        let before = self.shown.get(row);
        if before == Some(line) {
            return Ok(());
        }
        // A row that becomes shorter is erased as a whole. Blanks over its end would be text to the terminal, and be
        // wrapped with the rest when it becomes narrower; tmux remembers even an erased end.
        if before.is_some_and(|before| line_width(before) > line_width(line)) {
            queue!(out, Clear(ClearType::CurrentLine))?;
        }
        let mut room = self.columns();
        for span in &line.spans {
            write_span(out, span, line.style, &mut room)?;
        }
        Ok(())
    }
}

fn write_span(out: &mut impl Write, span: &Span<'_>, base: Style, room: &mut usize) -> io::Result<()> {
    let style = base.patch(span.style);
    let plain = style == Style::default();
    if !plain {
        set_style(out, style)?;
    }
    for grapheme in span.content.graphemes(true) {
        let width = glyph_width(grapheme);
        if width == 0 {
            continue;
        }
        let Some(left) = room.checked_sub(width) else { break };
        *room = left;
        write!(out, "{grapheme}")?;
    }
    if !plain {
        queue!(out, ResetColor, SetAttribute(Attribute::Reset))?;
    }
    Ok(())
}

fn set_style(out: &mut impl Write, style: Style) -> io::Result<()> {
    const ATTRIBUTES: [(Modifier, Attribute); 6] = [
        (Modifier::BOLD, Attribute::Bold),
        (Modifier::DIM, Attribute::Dim),
        (Modifier::ITALIC, Attribute::Italic),
        (Modifier::UNDERLINED, Attribute::Underlined),
        (Modifier::CROSSED_OUT, Attribute::CrossedOut),
        (Modifier::REVERSED, Attribute::Reverse),
    ];
    for (modifier, attribute) in ATTRIBUTES {
        if style.add_modifier.contains(modifier) {
            queue!(out, SetAttribute(attribute))?;
        }
    }
    // The theme has no more than these.
    let paint = match style.fg {
        Some(Color::Red) => Paint::DarkRed,
        Some(Color::Green) => Paint::DarkGreen,
        Some(Color::Yellow) => Paint::DarkYellow,
        Some(Color::Blue) => Paint::DarkBlue,
        Some(Color::Magenta) => Paint::DarkMagenta,
        Some(Color::Cyan) => Paint::DarkCyan,
        _ => return Ok(()),
    };
    queue!(out, SetForegroundColor(paint))
}

fn up(out: &mut impl Write, rows: usize) -> io::Result<()> {
    // A count of nought means one.
    if rows > 0 { queue!(out, MoveUp(narrow(rows))) } else { Ok(()) }
}

/// The rows that a line becomes in a terminal that wraps it.
fn wraps(line: &Line<'_>, columns: usize) -> usize {
    let (mut rows, mut used) = (1, 0);
    for grapheme in line.spans.iter().flat_map(|span| span.content.graphemes(true)) {
        let width = glyph_width(grapheme);
        if used + width > columns && used > 0 {
            (rows, used) = (rows + 1, 0);
        }
        used += width;
    }
    rows
}

fn narrow(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}
