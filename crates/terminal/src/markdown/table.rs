//! Tables: columns as wide as they must be, as narrow as the screen wants them.
//!
//! Columns that do not fit are narrowed, widest first, and their cells wrapped. When even that leaves no room, each
//! row is written as a little list of `header: value` instead. Nothing is ever cut off.

use pulldown_cmark::Alignment;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use super::super::text;
use super::super::theme::Theme;

/// Between two columns.
const BAR: &str = " │ ";
/// The narrowest that a column is made before the table becomes a list.
const COLUMN_MIN: usize = 6;

type Cell = Vec<Span<'static>>;

#[derive(Debug)]
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, rows: Vec::new() }
    }

    /// The next row begins; the first one is the header.
    pub(super) fn row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn cell(&mut self, cell: Cell) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    pub(super) fn lines(mut self, columns: usize, theme: Theme) -> Vec<Line<'static>> {
        if let Some(header) = self.rows.first_mut() {
            for span in header.iter_mut().flatten() {
                span.style = span.style.add_modifier(Modifier::BOLD);
            }
        }
        match self.widths(columns) {
            Some(widths) => self.grid(&widths, theme),
            None => self.list(columns),
        }
    }

    fn widths(&self, columns: usize) -> Option<Vec<usize>> {
        let mut widths = vec![1; self.alignments.len()];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell_width(cell));
            }
        }
        let room = columns.checked_sub(BAR.chars().count() * widths.len().saturating_sub(1))?;
        while widths.iter().sum::<usize>() > room {
            let widest = widths.iter_mut().max().filter(|width| **width > COLUMN_MIN)?;
            *widest -= 1;
        }
        Some(widths)
    }

    fn grid(&self, widths: &[usize], theme: Theme) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            let empty = Vec::new();
            let cells: Vec<Vec<Line<'static>>> = widths
                .iter()
                .enumerate()
                .map(|(column, width)| text::wrap(row.get(column).unwrap_or(&empty), *width))
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for level in 0..height {
                lines.push(self.grid_line(&cells, widths, level, theme));
            }
            if index == 0 {
                let dashes: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(Line::from(Span::styled(dashes.join("─┼─"), theme.faint())));
            }
        }
        lines
    }

    fn grid_line(&self, cells: &[Vec<Line<'static>>], widths: &[usize], level: usize, theme: Theme) -> Line<'static> {
        let mut spans = Vec::new();
        for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
            if column > 0 {
                spans.push(Span::styled(BAR, theme.faint()));
            }
            let line = cell.get(level).cloned().unwrap_or_default();
            let free = width.saturating_sub(text::line_width(&line));
            let left = match self.alignments.get(column) {
                Some(Alignment::Right) => free,
                Some(Alignment::Center) => free / 2,
                _ => 0,
            };
            spans.push(Span::raw(" ".repeat(left)));
            spans.extend(line.spans);
            if column + 1 < cells.len() {
                spans.push(Span::raw(" ".repeat(free - left)));
            }
        }
        spans.retain(|span| !span.content.is_empty());
        Line::from(spans)
    }

    fn list(&self, columns: usize) -> Vec<Line<'static>> {
        let Some((header, rows)) = self.rows.split_first() else { return Vec::new() };
        let mut lines = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                lines.push(Line::default());
            }
            for (name, cell) in header.iter().zip(row) {
                let mut spans = name.clone();
                spans.push(Span::raw(": "));
                spans.extend(cell.iter().cloned());
                lines.extend(text::wrap(&spans, columns));
            }
        }
        lines
    }
}

fn cell_width(cell: &Cell) -> usize {
    cell.iter().map(|span| text::width(&span.content)).sum()
}
