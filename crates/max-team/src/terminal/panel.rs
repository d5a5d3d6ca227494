//! Whether something may be done, on the screen: what would happen, and the keys that answer.
//!
//! It holds only how the question is shown (what is chosen, how far the diff is scrolled, a comment being written);
//! the questions themselves are the session's.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use max_team_core::policy::{Answer, By, Memory, Settled, Until};
use ratatui::text::{Line, Span};

use super::dialog::Verdict;
use super::diff;
use super::editor::Editor;
use super::gate::{Labelled, choices};
use super::question::Permit;
use super::rows::Look;
use super::text;

/// Where answers given here come from.
pub(super) const PLACE: &str = "terminal";
/// Rows around the diff: who, target, rule, what is remembered, options in two rows.
const FRAME_ROWS: usize = 7;

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

    /// What a letter stands for, where it is offered.
    fn of(letter: char, permit: &Permit) -> Option<Self> {
        let choice = match letter.to_ascii_lowercase() {
            'y' => Self::Once,
            'a' => Self::Session,
            'n' if permit.merges => Self::Drop,
            'n' => Self::No,
            _ => return None,
        };
        Self::among(permit).contains(&choice).then_some(choice)
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

    /// Whether a letter chooses something.
    pub(super) fn takes(letter: char, permit: &Permit) -> bool {
        Choice::of(letter, permit).is_some()
    }

    /// Nothing is chosen but what stands first.
    pub(super) fn unchoose(&mut self) {
        self.choice = Choice::default();
    }

    /// A key, while the question is what the user looks at. Returns what it came to, if that was something. A letter only
    /// chooses, and Enter says it: the first letter of a message is no answer.
    pub(super) fn key(&mut self, key: KeyEvent, permit: &Permit) -> Option<Verdict> {
        if self.comment.is_some() {
            return self.comment_key(key).map(Verdict::Answer);
        }
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return None;
        }
        let all = Choice::among(permit);
        match key.code {
            KeyCode::Enter => return Some(Verdict::Answer(self.answer(self.choice, String::new()))),
            KeyCode::Esc if permit.merges => {
                return Some(Verdict::Answer(self.answer(Choice::Later, String::new())));
            }
            KeyCode::Esc => return Some(Verdict::Later),
            KeyCode::Char(letter) => self.choice = Choice::of(letter, permit).unwrap_or(self.choice),
            KeyCode::Tab if !permit.merges => self.comment = Some(Editor::default()),
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
        lines.extend(self.options(permit, look));
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

    fn options(&self, permit: &Permit, look: Look) -> Vec<Line<'static>> {
        let Look { columns, theme, lang } = look;
        if self.comment.is_some() {
            let words = if self.choice == Choice::No { lang.comment_on_no() } else { lang.comment_on_yes() };
            return vec![Line::from(Span::styled(format!("  {words}"), theme.warning()))];
        }
        // Few letters choose, for any other begins a message: the rest is chosen by the arrows.
        let options = [
            (Choice::Once, "y", if permit.merges { lang.take_all() } else { lang.yes_once() }),
            (Choice::Task, "→", lang.yes_task()),
            (Choice::Session, "a", lang.yes_session()),
            (Choice::Repository, "→", lang.yes_repository()),
            (Choice::No, "n", lang.no()),
            (Choice::Drop, "n", lang.drop_all()),
        ];
        let is_offered = |(choice, ..): &(Choice, _, _)| Choice::among(permit).contains(choice);
        let style = |choice| if choice == self.choice { theme.chosen() } else { theme.strong() };
        let mut all: Vec<Labelled> =
            options.into_iter().filter(is_offered).map(|(choice, key, words)| (key, words, style(choice))).collect();
        if !permit.merges {
            all.push(("Tab", lang.with_comment(), theme.strong()));
        }
        all.push(("Enter", lang.answers(), theme.strong()));
        let later = if permit.merges { lang.leave_it() } else { lang.later() };
        all.push(("Esc", later, style(Choice::Later)));
        choices(&all, columns)
    }
}

/// What must be seen before it is answered: the preview; of a command without one, all of it where its line is cut.
fn whole(permit: &Permit, width: usize) -> &str {
    let is_cut = text::width(&text::clean_line(&permit.target)) > width;
    if permit.preview.is_empty() && is_cut { &permit.target } else { &permit.preview }
}
