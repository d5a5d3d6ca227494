//! Everything that the last turn did, unfolded: the inputs and whole results of its tool calls, in a pager (Ctrl-O).

use std::collections::VecDeque;

use ratatui::text::{Line, Span};
use serde_json::Value;

use super::diff;
use super::rows::{RowStyle, ToolRow};
use super::screen::View;
use super::text::{self, clean, clean_line};

/// Bytes of inputs and results that are kept of one turn; the oldest go first.
const DETAIL_BYTES_MAX: usize = 2 << 20;
/// Calls that are kept of one turn.
const DETAILS_MAX: usize = 1_000;
/// Lines of the pager.
const LINES_MAX: usize = 50_000;

/// The tool calls of the turn that runs, or of the last one.
#[derive(Debug, Default)]
pub(super) struct Details {
    calls: VecDeque<(Option<String>, ToolRow)>,
    bytes: usize,
    /// Calls that are not kept.
    dropped: usize,
    edition: u64,
}

impl Details {
    /// A turn begins.
    pub(super) fn clear(&mut self) {
        *self = Self { edition: self.edition + 1, ..Self::default() };
    }

    /// A call has ended: the lead's, or that of a member of its team.
    pub(super) fn add(&mut self, who: Option<&str>, row: &ToolRow) {
        self.edition += 1;
        self.bytes += row.bytes();
        self.calls.push_back((who.map(str::to_owned), row.clone()));
        while self.calls.len() > DETAILS_MAX || (self.bytes > DETAIL_BYTES_MAX && self.calls.len() > 1) {
            let Some((_, oldest)) = self.calls.pop_front() else { break };
            self.bytes = self.bytes.saturating_sub(oldest.bytes());
            self.dropped += 1;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    fn lines(&self, look: RowStyle) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        if self.dropped > 0 {
            lines.push(Line::from(Span::styled(look.lang.calls_dropped(self.dropped), look.theme.faint())));
        }
        for (who, row) in &self.calls {
            if !lines.is_empty() {
                lines.push(Line::default());
            }
            lines.extend(unfolded(who.as_deref(), row, look));
            if lines.len() > LINES_MAX {
                lines.truncate(LINES_MAX);
                break;
            }
        }
        lines
    }
}

/// One call: its header, its input, its diff and its whole result.
fn unfolded(who: Option<&str>, row: &ToolRow, look: RowStyle) -> Vec<Line<'static>> {
    let columns = look.columns.saturating_sub(2);
    let mut lines = row.header(look);
    if let (Some(who), Some(first)) = (who, lines.first_mut()) {
        first.spans.insert(0, Span::styled(format!("{}: ", clean_line(who)), look.theme.strong()));
    }
    let mut body: Vec<Line<'static>> = Vec::new();
    let inputs = row.input.as_deref().and_then(Value::as_object);
    for (name, value) in inputs.into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let words = [
            Span::styled(format!("{}: ", clean_line(name)), look.theme.faint()),
            Span::raw(clean(&value).into_owned()),
        ];
        body.extend(text::chop(&words, columns));
    }
    if !row.preview.is_empty() {
        body.extend(diff::lines(&row.preview, columns, look.theme));
    }
    let result = row.result.trim_end();
    if !result.is_empty() {
        body.extend(text::chop(&[Span::styled(clean(result).into_owned(), look.theme.faint())], columns));
    }
    for line in &mut body {
        line.spans.insert(0, Span::raw("  "));
    }
    lines.extend(body);
    lines
}

/// Handles a key of the pager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scroll {
    Lines(isize),
    Pages(isize),
    First,
    Last,
}

/// The details on the screen, scrolled so far.
#[derive(Debug)]
pub(super) struct Pager {
    lines: Vec<Line<'static>>,
    /// The width and the edition that the lines were made for.
    made_for: Option<(usize, u64)>,
    first: usize,
    /// Rows of the last frame.
    rows: usize,
}

impl Pager {
    /// Opened at the end, where the last call stands.
    pub(super) fn new() -> Self {
        Self { lines: Vec::new(), made_for: None, first: usize::MAX, rows: 0 }
    }

    pub(super) fn scroll(&mut self, scroll: Scroll) {
        let page = isize::try_from(self.rows.max(2) - 1).unwrap_or(isize::MAX);
        self.first = match scroll {
            Scroll::Lines(lines) => self.first.saturating_add_signed(lines),
            Scroll::Pages(pages) => self.first.saturating_add_signed(pages.saturating_mul(page)),
            Scroll::First => 0,
            Scroll::Last => usize::MAX,
        };
        self.first = self.first.min(self.last_first());
    }

    /// The first line of the last page.
    fn last_first(&self) -> usize {
        self.lines.len().saturating_sub(self.rows)
    }

    pub(super) fn view(&mut self, details: &Details, is_asked: bool, rows_max: usize, look: RowStyle) -> View {
        let made_for = Some((look.columns, details.edition));
        if self.made_for != made_for {
            let was_last = self.first >= self.last_first();
            (self.lines, self.made_for) = (details.lines(look), made_for);
            // At the end, the view follows new lines.
            self.first = if was_last { usize::MAX } else { self.first };
        }
        self.rows = rows_max.saturating_sub(1);
        self.first = self.first.min(self.last_first());
        let mut lines: Vec<Line<'static>> = self.lines.iter().skip(self.first).take(self.rows).cloned().collect();
        let last = self.first + lines.len();
        let words = look.lang.pager_keys(self.first + 1, last, self.lines.len());
        let words = if is_asked { format!("⏸ {} · {words}", look.lang.waiting_for_you()) } else { words };
        let style = if is_asked { look.theme.warning() } else { look.theme.faint() };
        lines.push(Line::from(Span::styled(text::cut(&words, look.columns), style)));
        View { lines, cursor: None }
    }
}
