//! The chat on a screen, without the screen: what keys do, and what becomes lines.
//!
//! Everything here is plain state. Keys and notices go in with the time; finished lines, orders (through the
//! session) and the odd wish come out; `view` draws the rest. So whole conversations are tested without a terminal.

mod keys;

use std::path::PathBuf;

use max_team_core::id::QuestionId;
use max_team_runtime::Notice;
use ratatui::text::{Line, Span};

use super::command_queue::CommandResult;
use super::details::Pager;
use super::dialog::{Dialog, DialogContext};
use super::editor::Editor;
use super::history::History;
use super::markdown::{self, Piece, Stream};
use super::menu::{MentionChoice, MentionMenu};
use super::plan_panel::{Extent, PlanPanel};
use super::question::QuestionKind;
use super::rows::{Group, Row, RowStyle};
use super::screen::View;
use super::search::Search;
use super::session::Session;
use super::slash::{self};
use super::text;
use super::theme::Theme;
use super::transcript::Item;
use max_team_workspace::format::short;

/// How long the user must not have typed, or a question must have been first, before keys answer it: a question that
/// appears while the user types is not answered by keys that were meant for something else.
const QUIET_MS: u64 = 700;
/// How often the clock of a team at work is looked at, where nothing else shows it.
const CLOCK_MS: u64 = 1_000;
/// The least width in which a question can be seen and answered.
const QUESTION_COLUMNS_MIN: usize = 40;

/// What the next key may confirm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hint {
    EscAgain,
    CtrlCAgain,
    /// Nothing was stopped: only the team works.
    TeamGoesOn,
    /// Nothing was answered: the question is another than before.
    AnotherQuestion,
    /// Nothing was answered: nothing is chosen.
    Choose,
    /// Nothing was answered or sent: the question cannot be seen.
    Enlarge,
}

/// What only the terminal can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    Leave,
    Redraw,
    Suspend,
}

/// The rows that were printed, and those that are about to be.
#[derive(Debug, Default)]
struct Output {
    /// The model's words on their way.
    stream: Stream,
    /// Whether some of them have been shown.
    in_text: bool,
    /// What the last finished line belongs to.
    group: Option<Group>,
    finished: Vec<Line<'static>>,
    /// What others did while a block was being written: shown once that is whole.
    held: Vec<Row>,
}

/// How keys meet the question that is shown.
#[derive(Debug, Default)]
pub(super) struct Answering {
    /// The letter that has just chosen an answer: with one behind it, it is the first of a message.
    chosen_by: Option<char>,
    /// When another question last took the place of the first.
    swapped_at_ms: i64,
    /// Whether no answer has been chosen since.
    is_swapped: bool,
    /// When words for a question that was taken back came back into the draft.
    returned_at_ms: i64,
    /// Whether the question has the room it needs.
    pub(super) fits: bool,
}

#[derive(Debug)]
pub(super) struct Chat {
    session: Session,
    editor: Editor,
    history: History,
    dialog: Dialog,
    board: PlanPanel,
    menu: MentionMenu,
    /// The pager with the last turn's calls, while it is open.
    pager: Option<Pager>,
    search: Option<Search>,
    hint: Option<Hint>,
    output: Output,
    typed_at_ms: i64,
    /// Whether the last key has left the draft empty without sending it.
    is_cleared: bool,
    answering: Answering,
    now_ms: i64,
    columns: usize,
    /// Whether the session can be come back to.
    returns: bool,
    theme: Theme,
    cwd: String,
}

impl Chat {
    pub(super) fn new(session: Session, history: PathBuf, cwd: String, theme: Theme, columns: usize) -> Self {
        Self {
            session,
            editor: Editor::default(),
            history: History::new(history),
            dialog: Dialog::default(),
            board: PlanPanel::default(),
            menu: MentionMenu::default(),
            pager: None,
            search: None,
            hint: None,
            output: Output::default(),
            typed_at_ms: 0,
            is_cleared: false,
            answering: Answering { fits: true, ..Answering::default() },
            now_ms: 0,
            columns,
            returns: true,
            theme,
            cwd,
        }
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    pub(super) fn session_mut(&mut self) -> &mut Session {
        &mut self.session
    }

    pub(super) fn cwd(&self) -> &str {
        &self.cwd
    }

    pub(super) fn look(&self) -> RowStyle {
        RowStyle { columns: self.columns, theme: self.theme, lang: self.session.lang }
    }

    pub(super) fn hint(&self) -> Option<Hint> {
        self.hint
    }

    pub(super) fn search(&self) -> Option<&Search> {
        self.search.as_ref()
    }

    /// What the mention at the cursor can become, and which of it is chosen.
    pub(super) fn choices(&self) -> impl Iterator<Item = (&MentionChoice, bool)> {
        self.menu.choices()
    }

    pub(super) fn completions(&self) -> Vec<slash::HelpEntry> {
        if self.search.is_some() { Vec::new() } else { slash::matches(&self.editor.whole()) }
    }

    /// Whether what is being written belongs to an answer.
    pub(super) fn writes_answer(&self) -> bool {
        self.dialog.is_writing() || (self.dialog.wants_words() && self.question_has_focus())
    }

    /// What an empty line for an answer says.
    pub(super) fn answer_placeholder(&self) -> &'static str {
        if self.dialog.wants_words() { self.session.lang.reply_here() } else { "" }
    }

    /// Where letters go.
    pub(super) fn focused_editor(&mut self) -> &Editor {
        let answers = self.writes_answer();
        match self.dialog.editor().filter(|_| answers) {
            Some(answer) => answer,
            None => &self.editor,
        }
    }

    /// How much of the plans at work is shown.
    pub(super) fn extent(&self) -> Extent {
        self.board.extent()
    }

    /// The plans at work, in at most so many rows.
    pub(super) fn draw_board(&mut self, rows: usize, look: RowStyle) -> Vec<Line<'static>> {
        self.board.lines(&self.session, rows, look, self.now_ms)
    }

    pub(super) fn live_text(&self) -> Vec<Piece> {
        self.output.stream.live()
    }

    /// Whether an empty line comes before rows of this kind.
    pub(super) fn is_set_off(&self, group: Group) -> bool {
        let stands_apart = |last: Group| last != group || matches!(group, Group::User | Group::Report);
        group != Group::Files && self.output.group.is_some_and(stands_apart)
    }

    /// The pager, if it is open, in so many rows.
    pub(super) fn draw_pager(&mut self, rows: usize) -> Option<View> {
        let (look, is_asked) = (self.look(), self.session.questions.first().is_some());
        let pager = self.pager.as_mut()?;
        Some(pager.view(self.session.details(), is_asked, rows, look))
    }

    pub(super) fn draw_panel(&mut self, rows: usize, look: RowStyle) -> Option<Vec<Line<'static>>> {
        let question = self.session.questions.first();
        self.dialog.face(question);
        let count = self.session.questions.count();
        let question = question?;
        // A question that does not fit on the screen cannot be answered.
        let is_wide = look.columns >= QUESTION_COLUMNS_MIN;
        let lines = is_wide.then(|| self.dialog.lines(question, scene(&self.session), count, rows, look)).flatten();
        self.answering.fits = lines.is_some();
        if lines.is_none() {
            self.answering.chosen_by = None;
            // Words that go along with an answer stay, and so does the answer.
            if !self.dialog.is_modal() {
                self.dialog.unchoose();
            }
        }
        Some(lines.unwrap_or_else(|| {
            let words = look.lang.window_too_small(&short(&question.id), !self.editor.is_empty());
            text::wrap(&[Span::styled(words, self.theme.warning())], look.columns)
        }))
    }

    /// Before a frame: the window may have become large enough for the question.
    pub(super) fn measure_anew(&mut self) {
        self.answering.fits = true;
    }

    /// Whether there is a question that the window is too small for.
    pub(super) fn is_question_hidden(&self) -> bool {
        self.session.questions.first().is_some() && !self.answering.fits
    }

    pub(super) fn question_fits(&self) -> bool {
        self.answering.fits
    }

    /// The keys that answer the question, as a hint after an Enter without a choice.
    pub(super) fn answer_keys(&self) -> String {
        self.session.questions.first().map(|question| self.dialog.keys(question)).unwrap_or_default()
    }

    /// Whether keys answer the question rather than write. What was begun is written to its end first: a pause in the middle
    /// of a sentence is no yes.
    pub(super) fn question_has_focus(&self) -> bool {
        let is_free = self.now_ms >= self.quiet_at_ms() && self.editor.is_empty();
        self.session.questions.first().is_some() && (is_free || self.dialog.is_modal()) && self.answering.fits
    }

    /// Whether a question waits for the draft to be sent or cleared.
    pub(super) fn question_waits_for_draft(&self) -> bool {
        self.session.questions.first().is_some() && !self.dialog.is_modal() && !self.editor.is_empty()
    }

    /// When keys may answer.
    fn quiet_at_ms(&self) -> i64 {
        self.typed_at_ms.saturating_add_unsigned(QUIET_MS).max(self.swapped_until_ms())
    }

    /// When another question that has come first has been there long enough to be seen.
    fn swapped_until_ms(&self) -> i64 {
        self.answering.swapped_at_ms.saturating_add_unsigned(QUIET_MS)
    }

    /// An event may have put another question first; the user needs time to see it before keys answer it.
    fn face_question(&mut self, before: Option<QuestionId>) {
        let first = self.session.questions.first();
        let unsaid = self.dialog.unsaid(first);
        self.dialog.face(first);
        if let Some(words) = unsaid {
            // The question is gone; the text written for it becomes the draft.
            self.answering.returned_at_ms = self.now_ms;
            self.put_back(&words);
        }
        let first = self.session.questions.first();
        if before.is_none() || before == self.dialog.about() {
            return;
        }
        // The choice was made for the previous question and does not count for this one.
        self.answering.chosen_by = None;
        self.answering.is_swapped = first.is_some();
        if self.answering.is_swapped {
            self.answering.swapped_at_ms = self.now_ms;
        }
    }

    /// When something will look different though nothing happens.
    pub(super) fn changes_at_ms(&self) -> Option<i64> {
        let quiet_at_ms = self.quiet_at_ms();
        let quiet = (self.session.questions.first().is_some() && quiet_at_ms > self.now_ms).then_some(quiet_at_ms);
        let moves = self.session.is_team_at_work();
        let board =
            self.board.stale_at_ms(moves).or_else(|| moves.then(|| self.now_ms.saturating_add_unsigned(CLOCK_MS)));
        quiet.into_iter().chain(board).min()
    }

    /// Whether the spinner turns. While a person is waited for, nothing does.
    pub(super) fn is_moving(&self) -> bool {
        self.session.is_busy() && self.session.questions.first().is_none()
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.now_ms
    }

    pub(super) fn at(&mut self, now_ms: i64) {
        self.now_ms = now_ms;
    }

    pub(super) fn resize(&mut self, columns: usize) {
        self.columns = columns;
    }

    /// Lines that are finished since the last time.
    pub(super) fn take_finished(&mut self) -> Vec<Line<'static>> {
        std::mem::take(&mut self.output.finished)
    }

    /// The first lines of a chat.
    pub(super) fn greet(&mut self) {
        let lang = self.session.lang;
        let name = Span::styled("Max Team", self.theme.strong());
        self.output
            .finished
            .push(Line::from(vec![name, Span::styled(format!(" · {}", lang.tagline()), self.theme.faint())]));
        self.show(vec![Item::Row(Row::Note(lang.hint_start().to_owned()))]);
    }

    /// Its journal goes when the program does: there is no coming back.
    pub(super) fn forget(&mut self) {
        self.returns = false;
    }

    /// The last lines: what was being written, where the plan stands, and how to come back.
    pub(super) fn part(&mut self) {
        self.end_text();
        if let Some(words) = self.session.farewell().map(str::to_owned) {
            return self.show(vec![Item::Row(Row::Note(words))]);
        }
        if self.returns && !self.session.is_fresh() {
            let lang = self.session.lang;
            if let Some(standing) = self.session.plan().and_then(|plan| lang.standing(plan)) {
                let notes = [standing, lang.detach_hint().to_owned()];
                self.show(notes.map(Row::Note).map(Item::Row).into());
            }
            let words = format!("{} max-team -r {}", self.session.lang.come_back(), self.session.id());
            self.show(vec![Item::Row(Row::Note(words))]);
        }
    }

    /// Hears a notice. Returns whether it is worth a frame of its own: what members write is shown when the board
    /// is next due.
    pub(super) fn notice(&mut self, notice: &Notice) -> bool {
        let before = self.session.questions.first().map(|question| question.form);
        let items = self.session.notice(notice, self.now_ms);
        self.face_question(before);
        self.board.touch();
        match notice {
            Notice::Event { from, .. } if !from.lead => self.show_beside(items),
            _ => self.show(items),
        }
        self.show_sheet();
        !matches!(notice, Notice::Delta { from, .. } if !from.lead)
    }

    pub(super) fn done(&mut self, done: CommandResult) {
        if let CommandResult::Paths(paths) = done {
            self.menu.fill(paths);
            return self.update_menu();
        }
        let before = self.session.questions.first().map(|question| question.form);
        let items = self.session.done(done, self.now_ms);
        self.face_question(before);
        self.board.touch();
        self.show(items);
        self.show_sheet();
        self.take_back();
    }

    /// The plan that is asked about now is the one to be looked at.
    fn show_sheet(&mut self) {
        let sheet = self.session.sheet_due();
        self.show_beside(sheet.into_iter().collect());
    }

    /// What could not be said is there to be written again.
    fn take_back(&mut self) {
        for text in self.session.take_returned() {
            self.put_back(&text);
        }
    }

    fn put_back(&mut self, text: &str) {
        if !self.editor.is_empty() {
            self.editor.insert("\n");
        }
        self.paste_into_draft(text);
    }

    /// Turns items into lines.
    pub(super) fn show(&mut self, items: Vec<Item>) {
        for item in items {
            match item {
                Item::Text(words) => self.add_text(&words),
                Item::TextEnd => self.end_text(),
                // The board shows it.
                Item::Minor(_) => {}
                Item::Row(row) => {
                    self.end_text();
                    self.set_off(row.group());
                    self.output.finished.extend(row.lines(self.look()));
                }
            }
        }
    }

    /// Shows rows about other agents: they wait until the lead's running text is at a break.
    fn show_beside(&mut self, items: Vec<Item>) {
        for item in items {
            match item {
                Item::Row(row) if self.output.in_text && !self.output.stream.is_between() => self.output.held.push(row),
                item => self.show(vec![item]),
            }
        }
    }

    fn add_text(&mut self, words: &str) {
        // Models like to begin with empty lines.
        let words = if self.output.in_text { words } else { words.trim_start_matches(['\n', ' ']) };
        if words.is_empty() {
            return;
        }
        if !std::mem::replace(&mut self.output.in_text, true) {
            self.set_off(Group::Text);
        }
        let pieces = self.output.stream.push(words);
        self.output.finished.extend(markdown::render(&pieces, self.columns, self.theme));
        // Between two blocks there is room.
        if !self.output.held.is_empty() && self.output.stream.is_between() {
            self.end_text();
        }
    }

    fn end_text(&mut self) {
        if std::mem::take(&mut self.output.in_text) {
            let pieces = self.output.stream.finish();
            self.output.finished.extend(markdown::render(&pieces, self.columns, self.theme));
        }
        for row in std::mem::take(&mut self.output.held) {
            self.set_off(row.group());
            self.output.finished.extend(row.lines(self.look()));
        }
    }

    fn set_off(&mut self, group: Group) {
        if self.is_set_off(group) {
            self.output.finished.push(Line::default());
        }
        self.output.group = Some(group);
    }
}

/// What the form of the first question may look at.
fn scene(session: &Session) -> DialogContext<'_> {
    let plan = match session.questions.first().map(|question| &question.matter) {
        Some(QuestionKind::Plan { plan, .. }) => session.plans().get(*plan).map(|known| &known.plan),
        _ => None,
    };
    DialogContext { plan, team: session.team() }
}
