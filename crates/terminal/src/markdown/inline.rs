//! The words inside a block: styled runs, with links spelled out.
//!
//! A terminal cannot hide an address behind a word (and a reader should see where a link leads), so it is written
//! behind the text. Where lines end is not decided here.

use ratatui::style::{Modifier, Style};
use ratatui::text::Span;

use super::super::theme::Theme;

/// Runs of styled text, collected until the block that holds them ends.
#[derive(Debug)]
pub(super) struct Inline {
    theme: Theme,
    spans: Vec<Span<'static>>,
    styles: Vec<Style>,
    /// Where open links lead, and which span their text begins with.
    links: Vec<(String, usize)>,
}

impl Inline {
    pub(super) fn new(theme: Theme) -> Self {
        Self { theme, spans: Vec::new(), styles: Vec::new(), links: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    pub(super) fn take(&mut self) -> Vec<Span<'static>> {
        std::mem::take(&mut self.spans)
    }

    pub(super) fn text(&mut self, text: &str) {
        let style = self.styles.iter().fold(Style::new(), |all, style| all.patch(*style));
        self.spans.push(Span::styled(text.to_owned(), style));
    }

    pub(super) fn faint(&mut self, text: &str) {
        self.spans.push(Span::styled(text.to_owned(), self.theme.faint()));
    }

    pub(super) fn code(&mut self, code: &str) {
        self.push(self.theme.code());
        // Without colour the backticks are what tells code from words.
        if self.theme.color {
            self.text(code)
        } else {
            self.text(&format!("`{code}`"))
        }
        self.pop();
    }

    pub(super) fn push(&mut self, style: Style) {
        self.styles.push(style);
    }

    pub(super) fn emphasize(&mut self, modifier: Modifier) {
        self.styles.push(Style::new().add_modifier(modifier));
    }

    pub(super) fn pop(&mut self) {
        self.styles.pop();
    }

    pub(super) fn link(&mut self, url: &str) {
        self.links.push((url.to_owned(), self.spans.len()));
        self.push(self.theme.link());
    }

    /// Ends a link: where it leads is written out, unless its text says so already.
    pub(super) fn end_link(&mut self) {
        self.pop();
        let Some((url, from)) = self.links.pop() else { return };
        let text: String = self.spans.iter().skip(from).map(|span| span.content.as_ref()).collect();
        let bare = url.strip_prefix("mailto:").unwrap_or(&url);
        if text != bare && !url.is_empty() {
            self.faint(&format!(" ({url})"));
        }
    }
}
