//! Whether something may be done, on the screen: what would happen, and the keys that answer.
//!
//! It holds only how the question is shown (what is chosen, how far the diff is scrolled, a comment being written);
//! the questions themselves are the session's.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use max_team_core::policy::{Answer, By, Memory, Settled, Until};
use ratatui::text::{Line, Span};

use super::diff;
use super::editor::Editor;
use super::question::Permit;
use super::rows::Look;
use super::text;

/// Where answers given here come from.
pub(super) const PLACE: &str = "terminal";
/// Rows around the diff: who, target, rule, what is remembered, options.
const FRAME_ROWS: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Choice {
    #[default]
    Once,
    Task,
    Session,
    Repository,
    No,
    /// Of what is in a copy: it is dropped, or stays there.
    Drop,
    Later,
}

impl Choice {
    const ALL: [Self; 5] = [Self::Once, Self::Task, Self::Session, Self::Repository, Self::No];

    /// What there is to choose: what is not remembered is not offered.
    fn among(permit: &Permit) -> &'static [Self] {
        match &permit.memory {
            _ if permit.merges => &[Self::Once, Self::Drop, Self::Later],
            Memory::Rules(_) => &Self::ALL,
            Memory::Deed => &[Self::Once, Self::Session, Self::No],
            Memory::Nothing => &[Self::Once, Self::No],
        }
    }

    fn step(self, by: isize, all: &[Self]) -> Self {
        let at = all.iter().position(|choice| *choice == self).unwrap_or(0);
        at.checked_add_signed(by).and_then(|at| all.get(at)).copied().unwrap_or(self)
    }

    fn until(self) -> Option<Until> {
        match self {
            Self::Task => Some(Until::Task),
            Self::Session => Some(Until::Session),
            Self::Repository => Some(Until::Repository),
            Self::Once | Self::No | Self::Drop | Self::Later => None,
        }
    }

    /// What a letter, or Esc, stands for.
    fn of(key: KeyCode, merges: bool) -> Option<Self> {
        match key {
            KeyCode::Char('y' | 'Y') => Some(Self::Once),
            KeyCode::Char('a' | 'A') => Some(Self::Session),
            KeyCode::Char('n' | 'N') if merges => Some(Self::Drop),
            KeyCode::Esc if merges => Some(Self::Later),
            KeyCode::Char('n' | 'N') | KeyCode::Esc => Some(Self::No),
            _ => None,
        }
    }
}

/// How the first question is shown.
#[derive(Debug, Default)]
pub(super) struct Panel {
    choice: Choice,
    /// The first line of the diff that is shown.
    scroll: usize,
    /// How far it can be scrolled, and by how much at a time, as of the last frame.
    scroll_max: usize,
    page: usize,
    comment: Option<Editor>,
    /// The diff's lines at a width: a large one is not made anew for every key.
    drawn: Option<(usize, Vec<Line<'static>>)>,
}

impl Panel {
    pub(super) fn has_comment(&self) -> bool {
        self.comment.is_some()
    }

    pub(super) fn comment(&mut self) -> Option<&mut Editor> {
        self.comment.as_mut()
    }

    /// A key, while the question is what the user looks at. Returns the answer, if that was one.
    pub(super) fn key(&mut self, key: KeyEvent, permit: &Permit) -> Option<Answer> {
        if self.comment.is_some() {
            return self.comment_key(key);
        }
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return None;
        }
        let all = Choice::among(permit);
        if let Some(choice) = Choice::of(key.code, permit.merges) {
            if !all.contains(&choice) {
                return None;
            }
            // What holds for longer than this once takes a second key: the first letter of a message is no promise.
            if choice.until().is_some() {
                self.choice = choice;
                return None;
            }
            return Some(self.answer(choice, String::new()));
        }
        match key.code {
            KeyCode::Enter => return Some(self.answer(self.choice, String::new())),
            KeyCode::Tab if !permit.merges => self.comment = Some(Editor::default()),
            KeyCode::Char('c' | 'C') if !permit.merges => {
                self.choice = Choice::No;
                self.comment = Some(Editor::default());
            }
            KeyCode::Left => self.choice = self.choice.step(-1, all),
            KeyCode::Right => self.choice = self.choice.step(1, all),
            KeyCode::Up => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::Down => self.scroll = (self.scroll + 1).min(self.scroll_max),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(self.page),
            KeyCode::PageDown => self.scroll = (self.scroll + self.page).min(self.scroll_max),
            KeyCode::Home => self.scroll = 0,
            KeyCode::End => self.scroll = self.scroll_max,
            _ => {}
        }
        None
    }

    fn comment_key(&mut self, key: KeyEvent) -> Option<Answer> {
        let comment = self.comment.as_mut()?;
        match key.code {
            KeyCode::Esc => self.comment = None,
            KeyCode::Enter => {
                let words = comment.take();
                return Some(self.answer(self.choice, words.trim().to_owned()));
            }
            _ => drop(comment.key(key)),
        }
        None
    }

    fn answer(&self, choice: Choice, comment: String) -> Answer {
        let by = By::Person(PLACE.to_owned());
        let until = choice.until();
        let answer = match choice {
            Choice::Drop => return Answer::settling(Settled::Dropped, by),
            Choice::Later => return Answer::settling(Settled::Left, by),
            Choice::Once | Choice::Task | Choice::Session | Choice::Repository => Answer::new(true, by),
            Choice::No => Answer::new(false, by),
        };
        Answer { always: until.is_some(), until: until.unwrap_or_default(), comment, ..answer }
    }

    /// The rows of the panel, at most so many.
    pub(super) fn lines(
        &mut self,
        title: Line<'static>,
        permit: &Permit,
        rows: usize,
        look: Look,
    ) -> Vec<Line<'static>> {
        let Look { columns, theme, lang } = look;
        let mut lines = vec![title];
        lines.push(Line::from(Span::raw(format!(
            "  {}",
            text::cut_front(&text::clean_line(&permit.target), columns.saturating_sub(2))
        ))));
        lines.extend(self.diff(permit, rows.saturating_sub(FRAME_ROWS), look));
        if !permit.rule.is_empty() {
            let rule = format!("  {} {}", lang.because(), text::clean_line(&lang.told(&permit.rule)));
            lines.push(Line::from(Span::styled(text::cut(&rule, columns), theme.faint())));
        }
        if !permit.memory.rules().is_empty() {
            let rules = permit.memory.rules().join(", ");
            let words = format!("  {} {}", lang.remembered_as(), text::clean_line(&rules));
            lines.push(Line::from(Span::styled(text::cut(&words, columns), theme.faint())));
        }
        lines.push(self.options(permit, look));
        lines
    }

    /// The part of the diff that is scrolled to, and a word about the rest.
    fn diff(&mut self, permit: &Permit, rows: usize, look: Look) -> Vec<Line<'static>> {
        let width = look.columns.saturating_sub(2);
        let (_, all) = match self.drawn.take().filter(|(columns, _)| *columns == width) {
            Some(drawn) => self.drawn.insert(drawn),
            None => self.drawn.insert((width, diff::lines(whole(permit, width), width, look.theme))),
        };
        let shown = rows.max(1);
        self.scroll_max = all.len().saturating_sub(shown);
        self.page = shown.saturating_sub(1).max(1);
        self.scroll = self.scroll.min(self.scroll_max);
        let mut lines: Vec<Line<'static>> = all.iter().skip(self.scroll).take(shown).cloned().collect();
        for line in &mut lines {
            line.spans.insert(0, Span::raw("  "));
        }
        if self.scroll_max > 0 {
            let below = self.scroll_max - self.scroll;
            let words = format!("  {} · {}", look.lang.more_lines(below), look.lang.scroll_keys());
            lines.push(Line::from(Span::styled(text::cut(&words, look.columns), look.theme.faint())));
        }
        lines
    }

    fn options(&self, permit: &Permit, look: Look) -> Line<'static> {
        let Look { theme, lang, .. } = look;
        if self.comment.is_some() {
            let words = if self.choice == Choice::No { lang.comment_on_no() } else { lang.comment_on_yes() };
            return Line::from(Span::styled(format!("  {words}"), theme.warning()));
        }
        let mut spans = vec![Span::raw("  ")];
        // Few letters answer, for any other begins a message: what lasts longer is chosen by the arrows.
        let options = [
            (Choice::Once, "y", if permit.merges { lang.take_all() } else { lang.yes_once() }),
            (Choice::Task, "→", lang.yes_task()),
            (Choice::Session, "a", lang.yes_session()),
            (Choice::Repository, "→", lang.yes_repository()),
            (Choice::No, "n", lang.no()),
            (Choice::Drop, "n", lang.drop_all()),
            (Choice::Later, "Esc", lang.leave_it()),
        ];
        for (choice, key, words) in options.into_iter().filter(|(choice, ..)| Choice::among(permit).contains(choice)) {
            let style = if choice == self.choice { theme.chosen() } else { theme.strong() };
            spans.push(Span::styled(format!(" {key} "), style));
            spans.push(Span::raw(format!(" {words}   ")));
        }
        if !permit.merges {
            spans.push(Span::styled(" Tab ", theme.strong()));
            spans.push(Span::raw(lang.with_comment()));
        }
        Line::from(spans)
    }
}

/// What must be seen before it is answered: the preview; of a command without one, all of it where its line is cut.
fn whole(permit: &Permit, width: usize) -> &str {
    let is_cut = text::width(&text::clean_line(&permit.target)) > width;
    if permit.preview.is_empty() && is_cut { &permit.target } else { &permit.preview }
}
