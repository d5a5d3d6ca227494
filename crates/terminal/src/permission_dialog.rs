//! Whether something may be done, on the screen: what would happen, and the keys that answer.
//!
//! It holds only how the question is shown (what is chosen, how far the diff is scrolled, a comment being written);
//! the questions themselves are the session's.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use max_team_core::policy::{DecidedBy, GrantScope, MergeDecision, PermissionAnswer, RememberedRule, is_deletion_word};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use super::dialog::DialogResult;
use super::diff;
use super::editor::Editor;
use super::plan_dialog::{LabelledKey, choices, indented};
use super::question::PermissionQuestion;
use super::rows::RowStyle;
use super::text;

/// Where answers given here come from.
pub(super) const PLACE: &str = "terminal";
/// The least of a diff that is worth its place: a line of it, and how many follow.
const DIFF_ROWS_MIN: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PermissionChoice {
    Once,
    Task,
    Session,
    Repository,
    No,
    /// Of what is in a copy: it is dropped, or stays there.
    Drop,
    Later,
}

impl PermissionChoice {
    const ALL: [Self; 5] = [Self::Once, Self::Task, Self::Session, Self::Repository, Self::No];

    /// What there is to choose: what is not remembered is not offered.
    fn among(permit: &PermissionQuestion) -> &'static [Self] {
        match &permit.memory {
            _ if permit.merges => &[Self::Once, Self::Drop, Self::Later],
            RememberedRule::Rules(_) => &Self::ALL,
            RememberedRule::Kind => &[Self::Once, Self::Session, Self::No],
            RememberedRule::Nothing => &[Self::Once, Self::No],
        }
    }

    /// The one beside it; of nothing, the first or the last.
    fn step(chosen: Option<Self>, by: isize, all: &[Self]) -> Option<Self> {
        let Some(at) = chosen.and_then(|chosen| all.iter().position(|choice| *choice == chosen)) else {
            return if by < 0 { all.last().copied() } else { all.first().copied() };
        };
        at.checked_add_signed(by).and_then(|at| all.get(at)).copied().or(chosen)
    }

    fn until(self) -> Option<GrantScope> {
        match self {
            Self::Task => Some(GrantScope::Task),
            Self::Session => Some(GrantScope::Session),
            Self::Repository => Some(GrantScope::Repository),
            Self::Once | Self::No | Self::Drop | Self::Later => None,
        }
    }

    /// What a letter stands for, where it is offered.
    fn of(letter: char, permit: &PermissionQuestion) -> Option<Self> {
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
pub(super) struct PermissionDialog {
    /// What Enter says; it says nothing by itself.
    choice: Option<PermissionChoice>,
    /// The first line of the diff that is shown.
    scroll: usize,
    /// How far it can be scrolled, and by how much at a time, as of the last frame.
    scroll_max: usize,
    page: usize,
    /// Words that go along with the answer.
    comment: Option<Editor>,
    /// Whether they are being written: then every key is for them.
    writes: bool,
    /// The diff's lines at a width: a large one is not made anew for every key.
    drawn: Option<(usize, Vec<Line<'static>>)>,
}

impl PermissionDialog {
    pub(super) fn is_writing(&self) -> bool {
        self.writes
    }

    pub(super) fn comment(&mut self) -> Option<&mut Editor> {
        self.comment.as_mut()
    }

    pub(super) fn words(&self) -> Option<&Editor> {
        self.comment.as_ref()
    }

    /// Whether a letter chooses something.
    pub(super) fn takes(letter: char, permit: &PermissionQuestion) -> bool {
        PermissionChoice::of(letter, permit).is_some()
    }

    /// The keys that choose something.
    pub(super) fn keys(permit: &PermissionQuestion) -> String {
        let letters = ['y', 'a', 'n'].into_iter().filter(|letter| Self::takes(*letter, permit));
        letters.map(|letter| format!("{letter}, ")).collect::<String>() + "←, →"
    }

    /// Nothing is chosen.
    pub(super) fn unchoose(&mut self) {
        self.choice = None;
    }

    /// A key, while the question is what the user looks at. Returns what it came to, if that was something. A letter only
    /// chooses, and Enter says it: the first letter of a message is no answer.
    pub(super) fn key(&mut self, key: KeyEvent, permit: &PermissionQuestion) -> Option<DialogResult> {
        if self.writes {
            return self.comment_key(key, permit);
        }
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return None;
        }
        let all = PermissionChoice::among(permit);
        match key.code {
            KeyCode::Enter => return self.said(permit),
            KeyCode::Esc if self.comment.is_some() => self.comment = None,
            KeyCode::Esc if permit.merges => {
                return Some(DialogResult::Answer(answer(PermissionChoice::Later, String::new())));
            }
            KeyCode::Esc => return Some(DialogResult::Later),
            KeyCode::Char(letter) => {
                self.choice = PermissionChoice::of(letter, permit).or(self.choice);
                if self.needs_word(permit) {
                    (self.comment, self.writes) = (Some(Editor::default()), true);
                }
            }
            KeyCode::Tab if permit.merges => return self.choice.is_none().then_some(DialogResult::Unchosen),
            // The comment is sent with the choice, whether that is made before or after it.
            KeyCode::Tab => {
                self.comment.get_or_insert_default();
                self.writes = true;
            }
            KeyCode::Left => self.choice = PermissionChoice::step(self.choice, -1, all),
            KeyCode::Right => self.choice = PermissionChoice::step(self.choice, 1, all),
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

    /// Whether what is chosen needs a typed word: then the words that go along are that word.
    fn needs_word(&self, permit: &PermissionQuestion) -> bool {
        permit.loss().is_some() && self.choice == Some(PermissionChoice::Once)
    }

    fn comment_key(&mut self, key: KeyEvent, permit: &PermissionQuestion) -> Option<DialogResult> {
        let comment = self.comment.as_mut()?;
        match key.code {
            KeyCode::Esc => (self.comment, self.writes) = (None, false),
            KeyCode::Enter => {
                self.writes = false;
                if comment.whole().trim().is_empty() && self.choice.is_none() {
                    self.comment = None;
                }
                return self.said(permit);
            }
            _ => drop(comment.key(key)),
        }
        None
    }

    /// What is chosen, with the words that go along; where nothing is, they wait for it.
    fn said(&mut self, permit: &PermissionQuestion) -> Option<DialogResult> {
        let Some(choice) = self.choice else { return Some(DialogResult::Unchosen) };
        let words = self.comment.as_mut().map(Editor::take).unwrap_or_default().trim().to_owned();
        if !self.needs_word(permit) {
            return Some(DialogResult::Answer(answer(choice, words)));
        }
        if is_deletion_word(&words) {
            let answer = answer(choice, String::new());
            return Some(DialogResult::Answer(PermissionAnswer { word: words, ..answer }));
        }
        // Anything else is no answer: the word is asked for again.
        (self.comment, self.writes) = (Some(Editor::default()), true);
        None
    }

    /// The rows of the panel. What is asked and how to answer it are always there, though they be more than so many rows; the
    /// diff gives way first, down to a line of it, then what is told beside it, then the diff down to how long it is. What a
    /// yes is remembered as is there once such a yes is chosen.
    pub(super) fn lines(
        &mut self,
        title: Vec<Line<'static>>,
        permit: &PermissionQuestion,
        rows: usize,
        look: RowStyle,
    ) -> Vec<Line<'static>> {
        let mut lines = warning(permit, look);
        lines.extend(title);
        let width = look.columns.saturating_sub(2);
        let target = text::cut_front(&text::clean_line(&permit.target), width);
        lines.push(Line::from(Span::raw(format!("  {target}"))));
        let least = DIFF_ROWS_MIN.min(self.drawn(permit, look).len());
        let mut options = self.options(permit, false, look);
        if lines.len() + least + options.len() > rows {
            options = self.options(permit, true, look);
        }
        let mut room = rows.saturating_sub(lines.len() + options.len());
        // Of a command that is cut some must be seen: its row says less than what is asked. Of a diff, that there is one.
        let kept = if permit.preview.is_empty() { least } else { least.min(room.max(1)) };
        let beside = self.beside(permit, room.saturating_sub(kept), look);
        room = room.saturating_sub(beside.len());
        lines.extend(self.diff(permit, room.max(kept), look));
        lines.extend(beside);
        lines.extend(options);
        lines
    }

    /// The reason for the question and the rules that "always" would add, in at most so many rows. If "always" is
    /// chosen, the rules have at least one row.
    fn beside(&self, permit: &PermissionQuestion, rows: usize, look: RowStyle) -> Vec<Line<'static>> {
        let mut all = beside(permit, look);
        let is_for_longer =
            self.choice.and_then(PermissionChoice::until).is_some() && !permit.memory.rules().is_empty();
        if is_for_longer {
            all.drain(..all.len().saturating_sub(rows.max(1)));
        } else {
            all.truncate(rows);
        }
        all
    }

    /// All of the diff, drawn once for each width.
    fn drawn(&mut self, permit: &PermissionQuestion, look: RowStyle) -> &[Line<'static>] {
        let width = look.columns.saturating_sub(2);
        let (_, all) = match self.drawn.take().filter(|(columns, _)| *columns == width) {
            Some(drawn) => self.drawn.insert(drawn),
            None => self.drawn.insert((width, diff::lines(whole(permit, width), width, look.theme))),
        };
        all
    }

    /// The part of the diff that is scrolled to, and a word about the rest.
    fn diff(&mut self, permit: &PermissionQuestion, rows: usize, look: RowStyle) -> Vec<Line<'static>> {
        let count = self.drawn(permit, look).len();
        // The word about the rest needs a row of its own.
        let shown = if count > rows { rows.saturating_sub(1) } else { rows };
        self.scroll_max = count.saturating_sub(shown);
        self.page = shown.saturating_sub(1).max(1);
        self.scroll = self.scroll.min(self.scroll_max);
        let from = self.scroll;
        let mut lines: Vec<Line<'static>> = self.drawn(permit, look).iter().skip(from).take(shown).cloned().collect();
        for line in &mut lines {
            line.spans.insert(0, Span::raw("  "));
        }
        if self.scroll_max > 0 && rows > 0 {
            let below = self.scroll_max - self.scroll;
            let words = format!("  {} · {}", look.lang.more_lines(below), look.lang.scroll_keys());
            lines.push(Line::from(Span::styled(text::cut(&words, look.columns), look.theme.faint())));
        }
        lines
    }

    /// What can be said; in a small window without what only the arrows choose, unless it is chosen.
    fn options(&self, permit: &PermissionQuestion, is_small: bool, look: RowStyle) -> Vec<Line<'static>> {
        let RowStyle { columns, theme, lang } = look;
        if self.writes {
            let typed = look.lang.deletion_type_word(lang.deletion_word());
            let words = match self.choice {
                _ if self.needs_word(permit) => typed.as_str(),
                None => lang.comment_on_answer(),
                Some(PermissionChoice::No) => lang.comment_on_no(),
                Some(_) => lang.comment_on_yes(),
            };
            let style = if self.needs_word(permit) { theme.bad() } else { theme.warning() };
            return indented(&[Span::styled(words.to_owned(), style)], columns);
        }
        // Few letters choose, for any other begins a message: the rest is chosen by the arrows.
        let options = [
            (PermissionChoice::Once, "y", if permit.merges { lang.take_all() } else { lang.yes_once() }),
            (PermissionChoice::Task, "→", lang.yes_task()),
            (PermissionChoice::Session, "a", lang.yes_session()),
            (PermissionChoice::Repository, "→", lang.yes_repository()),
            (PermissionChoice::No, "n", lang.no()),
            (PermissionChoice::Drop, "n", lang.drop_all()),
        ];
        let is_offered = |(choice, key, _): &(PermissionChoice, &str, _)| {
            let is_left_out = is_small && *key == "→" && self.choice != Some(*choice);
            PermissionChoice::among(permit).contains(choice) && !is_left_out
        };
        let style = |choice| if Some(choice) == self.choice { theme.chosen() } else { theme.strong() };
        let mut all: Vec<LabelledKey> =
            options.into_iter().filter(is_offered).map(|(choice, key, words)| (key, words, style(choice))).collect();
        if !permit.merges && !is_small {
            all.push(("Tab", lang.with_comment(), theme.strong()));
        }
        all.push(("Enter", lang.answers(), theme.strong()));
        let later = if permit.merges { lang.leave_it() } else { lang.later() };
        all.push(("Esc", later, style(PermissionChoice::Later)));
        let along = self.comment.as_ref().map(|comment| lang.goes_along(text::clean_line(&comment.whole())));
        let along = along.map(|words| text::cut(&format!("  {words}"), columns));
        let along = along.map(|words| Line::from(Span::styled(words, theme.warning())));
        along.into_iter().chain(choices(&all, columns)).collect()
    }
}

fn answer(choice: PermissionChoice, comment: String) -> PermissionAnswer {
    let by = DecidedBy::Person(PLACE.to_owned());
    let until = choice.until();
    let answer = match choice {
        PermissionChoice::Drop => return PermissionAnswer::merge_answer(MergeDecision::Dropped, by),
        PermissionChoice::Later => return PermissionAnswer::merge_answer(MergeDecision::Left, by),
        PermissionChoice::Once | PermissionChoice::Task | PermissionChoice::Session | PermissionChoice::Repository => {
            PermissionAnswer::new(true, by)
        }
        PermissionChoice::No => PermissionAnswer::new(false, by),
    };
    PermissionAnswer { always: until.is_some(), until: until.unwrap_or_default(), comment, ..answer }
}

/// What cannot be given back, before all else.
fn warning(permit: &PermissionQuestion, look: RowStyle) -> Vec<Line<'static>> {
    let Some(lost) = permit.loss() else { return Vec::new() };
    let words = text::clean_line(&look.lang.deletion_is_for_good(lost));
    text::wrap(&[Span::styled(words, look.theme.bad().add_modifier(Modifier::BOLD | Modifier::REVERSED))], look.columns)
}

/// Why it is asked, what is kept of a deletion, and what a yes is remembered as.
fn beside(permit: &PermissionQuestion, look: RowStyle) -> Vec<Line<'static>> {
    let RowStyle { columns, theme, lang } = look;
    let mut all = Vec::new();
    if !permit.rule.is_empty() {
        all.push(format!("  {} {}", lang.because(), text::clean_line(&lang.basis(&permit.basis, &permit.rule))));
    }
    let kept = permit.deletion.as_deref().map(|deletion| lang.deletion_is_kept(deletion)).unwrap_or_default();
    if !kept.is_empty() {
        all.push(format!("  {}", text::clean_line(&kept)));
    }
    if !permit.memory.rules().is_empty() {
        let rules = permit.memory.rules().join(", ");
        all.push(format!("  {} {}", lang.remembered_as(), text::clean_line(&rules)));
    }
    all.into_iter().map(|words| Line::from(Span::styled(text::cut(&words, columns), theme.faint()))).collect()
}

fn is_cut(permit: &PermissionQuestion, width: usize) -> bool {
    text::width(&text::clean_line(&permit.target)) > width
}

/// What must be seen before it is answered: the preview; of a command without one, all of it where its line is cut.
fn whole(permit: &PermissionQuestion, width: usize) -> &str {
    if permit.preview.is_empty() && is_cut(permit, width) { &permit.target } else { &permit.preview }
}
