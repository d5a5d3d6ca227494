//! Markdown on its way in, styled lines on its way out.
//!
//! [`Stream`] takes text as a model writes it and hands out every block as soon as it is complete; [`render()`] makes
//! lines of blocks. The rule that everything here keeps: what was handed out, followed by what [`Stream::live`]
//! shows, is exactly what the text so far looks like when it is rendered at once.

mod inline;
mod render;
mod split;
mod table;
#[cfg(test)]
mod tests;

pub(super) use render::render;
pub(super) use split::Piece;

use split::{Block, Splitter};

use super::text;

/// Bytes up to which an unfinished block is rendered anew for every frame; of a longer one only the end is shown.
const LIVE_BYTES_MAX: usize = 16 << 10;
/// How much of its end.
const RAW_BYTES: usize = 4 << 10;

/// Text on its way in.
#[derive(Debug, Clone, Default)]
pub(super) struct Stream {
    splitter: Splitter,
    /// The line that has not ended, as it came: whether a character is harmless depends on its neighbours, which may come later.
    line: String,
}

impl Stream {
    /// Takes more text; returns the blocks that it completes.
    pub(super) fn push(&mut self, text: &str) -> Vec<Piece> {
        let mut out = Vec::new();
        for part in text.split_inclusive('\n') {
            self.line.push_str(part.strip_suffix('\n').unwrap_or(part));
            if part.ends_with('\n') {
                self.splitter.line(&text::clean(&std::mem::take(&mut self.line)), &mut out);
            }
        }
        out
    }

    /// The text is over: returns what is left and starts afresh.
    pub(super) fn finish(&mut self) -> Vec<Piece> {
        let mut out = Vec::new();
        let Self { mut splitter, line } = std::mem::take(self);
        let line = text::clean(&line);
        if !line.is_empty() {
            splitter.line(&line, &mut out);
        }
        splitter.finish(&mut out);
        out
    }

    /// Whether the text could end here and go on elsewhere as if nothing had come between.
    pub(super) fn is_between(&self) -> bool {
        self.line.is_empty() && self.splitter.is_between()
    }

    /// What is not complete yet, as it would look if the text ended here.
    pub(super) fn live(&self) -> Vec<Piece> {
        if self.splitter.held() + self.line.len() <= LIVE_BYTES_MAX {
            let mut so_far = self.clone();
            if is_unripe(&so_far.line) {
                so_far.line.clear();
            }
            return so_far.finish();
        }
        let from = self.line.floor_char_boundary(self.line.len().saturating_sub(RAW_BYTES));
        let end = text::clean(self.line.get(from..).unwrap_or_default());
        let before = self.splitter.tail(RAW_BYTES);
        let raw = if before.is_empty() { end.into_owned() } else { format!("{before}\n{end}") };
        vec![Piece { gap: false, block: Block::Raw(raw) }]
    }
}

/// Whether a line so far is nothing but the signs that blocks begin with. Shown at once, the `-` of a list item would
/// turn the paragraph above it into a heading for the blink of an eye.
fn is_unripe(line: &str) -> bool {
    !line.is_empty() && line.chars().all(|c| " \t\r-=*#`~>+_|:".contains(c))
}
