//! The painter: a few rows that change at the end of a scrollback that does not.
//!
//! Finished lines go above the live rows and scroll into the terminal's own history by plain line feeds, which every
//! terminal keeps; the live rows are painted by difference. The screen is never cleared: only rows that are ours are
//! ever written. After a resize the terminal has moved (and re-wrapped) everything, so the place of the live rows is
//! worked out from where the cursor has gone.
//!
//! This does what ratatui's inline viewport does, with what that one lacks: a height that follows the content, and a
//! resize that does not wipe the screen.

use ratatui::backend::{Backend, ClearType};
use ratatui::buffer::{Buffer, Cell, CellWidth};
use ratatui::layout::{Position, Rect, Size};
use ratatui::text::Line;

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
    /// The first row that is ours. Everything below is ours too.
    top: u16,
    /// What stands in our rows, from `top` to the bottom.
    shown: Buffer,
    /// Where the cursor was left.
    cursor: Position,
}

impl Screen {
    /// Begins at a row; everything from there on is taken to be empty.
    pub(super) fn new(size: Size, top: u16) -> Self {
        let top = top.min(size.height.saturating_sub(1));
        Self { size, top, shown: blank(size, top), cursor: Position::new(0, top) }
    }

    pub(super) fn size(&self) -> Size {
        self.size
    }

    /// Rows that a view may have: one is left for the conversation.
    pub(super) fn rows_max(&self) -> usize {
        usize::from(self.size.height.saturating_sub(1))
    }

    /// Writes finished lines above, and the live rows below them.
    pub(super) fn paint<B: Backend>(
        &mut self,
        backend: &mut B,
        finished: &[Line<'static>],
        view: &View,
    ) -> Result<(), B::Error> {
        let live = view.lines.get(..view.lines.len().min(self.rows_max())).unwrap_or_default();
        let room = usize::from(self.size.height).saturating_sub(live.len()).max(1);
        let mut rest = finished;
        loop {
            let (now, later) = rest.split_at(rest.len().min(room));
            let below = if later.is_empty() { live } else { &[] };
            self.make_room(backend, now.len() + live.len())?;
            self.draw(backend, now, below, !later.is_empty())?;
            self.pass(now.len());
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        match view.cursor {
            Some((column, row)) if row < live.len() => {
                self.cursor =
                    Position::new(narrow(column).min(self.size.width.saturating_sub(1)), self.top + narrow(row));
                backend.set_cursor_position(self.cursor)?;
                backend.show_cursor()?;
            }
            _ => {
                self.cursor = Position::new(0, self.top);
                backend.set_cursor_position(self.cursor)?;
                backend.hide_cursor()?;
            }
        }
        backend.flush()
    }

    /// The terminal has another size, and its cursor is now here. Our rows are wiped, to be painted anew.
    pub(super) fn resized<B: Backend>(
        &mut self,
        backend: &mut B,
        size: Size,
        cursor: Position,
    ) -> Result<(), B::Error> {
        let above = self.rows_above_cursor(size.width);
        self.size = size;
        self.top = cursor.y.saturating_sub(above).min(size.height.saturating_sub(1));
        self.wipe(backend)
    }

    /// Takes the live rows away; what is written next stands where they began.
    pub(super) fn wipe<B: Backend>(&mut self, backend: &mut B) -> Result<(), B::Error> {
        self.cursor = Position::new(0, self.top);
        backend.set_cursor_position(self.cursor)?;
        backend.clear_region(ClearType::AfterCursor)?;
        self.shown = blank(self.size, self.top);
        Ok(())
    }

    /// Scrolls until so many rows fit between `top` and the bottom.
    fn make_room<B: Backend>(&mut self, backend: &mut B, rows: usize) -> Result<(), B::Error> {
        let missing = (self.top + narrow(rows)).saturating_sub(self.size.height).min(self.top);
        if missing == 0 {
            return Ok(());
        }
        backend.set_cursor_position(Position::new(0, self.size.height.saturating_sub(1)))?;
        backend.append_lines(missing)?;
        // Our rows have moved up with everything else; empty ones came in below them.
        self.top -= missing;
        let mut shown = blank(self.size, self.top);
        shown.content.iter_mut().zip(std::mem::take(&mut self.shown.content)).for_each(|(new, old)| *new = old);
        self.shown = shown;
        Ok(())
    }

    /// Paints lines from `top` on, and nothing else: what stands below them goes, unless it is to be kept.
    fn draw<B: Backend>(
        &mut self,
        backend: &mut B,
        finished: &[Line<'static>],
        live: &[Line<'static>],
        keep_below: bool,
    ) -> Result<(), B::Error> {
        let mut next = if keep_below { self.shown.clone() } else { blank(self.size, self.top) };
        for (row, line) in (self.top..self.size.height).zip(finished.iter().chain(live)) {
            clear_row(&mut next, row);
            next.set_line(0, row, line, self.size.width);
        }
        // What sticks out to the right is erased, not overwritten with blanks: blanks are text to a terminal, and
        // would be wrapped with the rest when it becomes narrower.
        for row in self.top..self.size.height {
            let end = extent(&next, row);
            if end < extent(&self.shown, row) {
                backend.set_cursor_position(Position::new(end, row))?;
                backend.clear_region(ClearType::UntilNewLine)?;
                for column in end..self.size.width {
                    if let Some(cell) = self.shown.cell_mut((column, row)) {
                        cell.reset();
                    }
                }
            }
        }
        let changes = self.shown.diff(&next);
        backend.draw(changes.into_iter())?;
        self.shown = next;
        Ok(())
    }

    /// Lets the first rows go: they belong to the conversation now.
    fn pass(&mut self, rows: usize) {
        self.top = (self.top + narrow(rows)).min(self.size.height);
        let mut shown = blank(self.size, self.top);
        let skip = rows * usize::from(self.size.width);
        let kept = std::mem::take(&mut self.shown.content).into_iter().skip(skip);
        shown.content.iter_mut().zip(kept).for_each(|(new, old)| *new = old);
        self.shown = shown;
    }

    /// How far below our first row the cursor is, once a terminal of this width has wrapped what stands above it.
    fn rows_above_cursor(&self, columns: u16) -> u16 {
        let wrapped = |row| wraps(&self.shown, row, columns);
        let above: u16 = (self.top..self.cursor.y).map(wrapped).sum();
        above + self.cursor.x.checked_div(columns).unwrap_or(0)
    }
}

fn blank(size: Size, top: u16) -> Buffer {
    Buffer::empty(Rect::new(0, top, size.width, size.height.saturating_sub(top)))
}

fn clear_row(buffer: &mut Buffer, row: u16) {
    for column in 0..buffer.area.width {
        if let Some(cell) = buffer.cell_mut((column, row)) {
            cell.reset();
        }
    }
}

/// One past the last column that shows something.
fn extent(buffer: &Buffer, row: u16) -> u16 {
    let mut end = 0;
    let mut column = 0;
    while let Some(cell) = buffer.cell((column, row)) {
        let width = cell.cell_width().max(1);
        if *cell != Cell::EMPTY {
            end = column.saturating_add(width);
        }
        column = column.saturating_add(width);
    }
    end.min(buffer.area.width)
}

/// The rows that one row becomes in a terminal that wraps it at another width.
fn wraps(buffer: &Buffer, row: u16, columns: u16) -> u16 {
    let end = extent(buffer, row);
    let (mut rows, mut used, mut column) = (1, 0, 0);
    while column < end {
        let width = buffer.cell((column, row)).map_or(1, |cell| cell.cell_width().max(1));
        if used + width > columns && used > 0 {
            rows += 1;
            used = 0;
        }
        used += width;
        column = column.saturating_add(width);
    }
    rows
}

fn narrow(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}
