//! A question in words on the screen: the question, its options, and the line that answers it.
//!
//! It holds only how the question is shown and what is being written; the question itself is the session's. A digit
//! picks an option as long as nothing is written.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use max_team_core::policy::{DecidedBy, PermissionAnswer};
use ratatui::text::{Line, Span};

use super::dialog::DialogResult;
use super::editor::Editor;
use super::permission_dialog::PLACE;
use super::plan_dialog::breaks_line;
use super::question::TextQuestion;
use super::rows::RowStyle;
use super::text::{self, clean, clean_line};

/// An answer being given.
#[derive(Debug, Default)]
pub(super) struct QuestionDialog {
    pub(super) editor: Editor,
    /// The option that Enter takes, if one is chosen.
    chosen: Option<usize>,
    /// The digit that has just chosen it.
    digit: Option<char>,
}

impl QuestionDialog {
    /// A key. Returns the answer, if that was one.
    pub(super) fn key(&mut self, key: KeyEvent, words: &TextQuestion) -> Option<DialogResult> {
        let plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        let fresh = self.editor.is_empty();
        let digit_before = self.digit.take();
        let last = words.options.len().saturating_sub(1);
        match key.code {
            KeyCode::Esc if fresh => return Some(answer(false, String::new())),
            KeyCode::Esc => self.editor.clear(),
            KeyCode::Enter if breaks_line(key, &mut self.editor) => {}
            KeyCode::Enter if fresh => {
                let option = self.chosen.and_then(|chosen| words.options.get(chosen));
                let unchosen = (!words.options.is_empty()).then_some(DialogResult::Unchosen);
                return option.map(|option| answer(true, option.clone())).or(unchosen);
            }
            KeyCode::Enter => return Some(answer(true, self.editor.take().trim().to_owned())),
            KeyCode::Char(digit @ '1'..='9') if fresh && plain => {
                let index = digit.to_digit(10).and_then(|digit| usize::try_from(digit).ok()).unwrap_or(0);
                match index.checked_sub(1).filter(|index| *index < words.options.len()) {
                    // It only chooses, and Enter says it: it may be the first of an answer in words.
                    Some(index) if digit_before.is_none() => (self.chosen, self.digit) = (Some(index), Some(digit)),
                    _ => self.write(digit_before, key),
                }
            }
            KeyCode::Backspace if fresh => self.chosen = None,
            KeyCode::Up if fresh => self.chosen = Some(self.chosen.map_or(last, |chosen| chosen.saturating_sub(1))),
            KeyCode::Down if fresh => self.chosen = Some(self.chosen.map_or(0, |chosen| (chosen + 1).min(last))),
            KeyCode::Char(_) if plain => self.write(digit_before, key),
            _ => drop(self.editor.key(key)),
        }
        None
    }

    /// Writes a letter, and the digit before it that has chosen an option: it was part of the words.
    fn write(&mut self, digit: Option<char>, key: KeyEvent) {
        if let Some(digit) = digit {
            self.chosen = None;
            self.editor.insert(digit.encode_utf8(&mut [0; 4]));
        }
        self.editor.key(key);
    }

    /// The rows, at most so many where a line of the question fits: the title, the question, its options (the chosen one for
    /// certain), the keys.
    pub(super) fn lines(
        &self,
        title: Vec<Line<'static>>,
        words: &TextQuestion,
        rows: usize,
        look: RowStyle,
    ) -> Vec<Line<'static>> {
        let RowStyle { columns, theme, lang } = look;
        let inside = columns.saturating_sub(2);
        let mut body = text::wrap(&[Span::raw(clean(&words.question))], inside);
        let asked = body.len();
        for (index, option) in words.options.iter().enumerate() {
            let style =
                if Some(index) == self.chosen && self.editor.is_empty() { theme.chosen() } else { theme.strong() };
            let number = Span::styled(format!(" {} ", index + 1), style);
            let option = text::cut(&clean_line(option), inside.saturating_sub(4));
            body.push(Line::from(vec![number, Span::raw(format!(" {option}"))]));
        }
        let room = rows.saturating_sub(title.len() + 1);
        if body.len() > room {
            // The word about the rest needs a row of its own. An option that is chosen is one that is seen.
            let (count, shown) = (body.len(), room.saturating_sub(1).max(1));
            let chosen = self.chosen.filter(|_| self.editor.is_empty()).map_or(0, |index| asked + index + 1);
            body.drain(..chosen.saturating_sub(shown));
            body.truncate(shown);
            body.push(Line::from(Span::styled(lang.more_lines(count - shown), theme.faint())));
        }
        let mut lines = title;
        for mut line in body {
            line.spans.insert(0, Span::raw("  "));
            lines.push(line);
        }
        let keys = if words.options.is_empty() { lang.reply_keys() } else { lang.reply_keys_options() };
        lines.push(Line::from(Span::styled(text::cut(&format!("  {keys}"), columns), theme.faint())));
        lines
    }
}

fn answer(allow: bool, comment: String) -> DialogResult {
    DialogResult::Answer(PermissionAnswer {
        comment,
        ..PermissionAnswer::new(allow, DecidedBy::Person(PLACE.to_owned()))
    })
}
