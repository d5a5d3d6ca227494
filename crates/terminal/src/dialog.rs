//! The first question on the screen.
//!
//! Each kind of question has its own form (`permission_dialog`, `question_dialog`, `plan_dialog`). This picks the
//! form and resets it when another question becomes the first.

use crossterm::event::KeyEvent;
use max_team_core::id::QuestionId;
use max_team_core::plan::Plan;
use max_team_core::plan::event::PlanDecision;
use max_team_core::policy::PermissionAnswer;
use max_team_runtime::Team;
use ratatui::text::{Line, Span};

use super::editor::Editor;
use super::permission_dialog::PermissionDialog;
use super::plan_dialog::PlanDialog;
use super::question::{Question, QuestionKind};
use super::question_dialog::QuestionDialog;
use super::rows::RowStyle;
use super::text::{self, clean_line};

/// What stands before a question.
const SIGN: &str = "? ";
/// Columns that the asking agent's name keeps in a narrow row.
const WHO_COLUMNS_MIN: usize = 12;

/// What a key came to.
#[derive(Debug)]
pub(super) enum DialogResult {
    Answer(PermissionAnswer),
    Decide(PlanDecision),
    /// Show the plan with all instructions; nothing is answered.
    Expand,
    Later,
    /// It would have answered, but nothing is chosen.
    Unchosen,
}

/// What a form may look at.
#[derive(Debug, Clone, Copy)]
pub(super) struct DialogContext<'a> {
    pub(super) plan: Option<&'a Plan>,
    pub(super) team: Option<&'a Team>,
}

#[derive(Debug, Default)]
pub(super) struct Dialog {
    /// The question whose form it is.
    about: Option<QuestionId>,
    form: Form,
}

#[derive(Debug, Default)]
enum Form {
    #[default]
    None,
    Permit(Box<PermissionDialog>),
    Words(Box<QuestionDialog>),
    Plan(Box<PlanDialog>),
}

impl Dialog {
    /// Turns to the question that is first now.
    pub(super) fn face(&mut self, question: Option<&Question>) {
        let about = question.map(|question| question.form);
        if self.about == about {
            return;
        }
        self.about = about;
        self.form = match question.map(|question| &question.matter) {
            None => Form::None,
            Some(QuestionKind::Permit(_)) => Form::Permit(Box::default()),
            Some(QuestionKind::Words(_)) => Form::Words(Box::default()),
            Some(QuestionKind::Plan { .. }) => Form::Plan(Box::default()),
        };
    }

    /// The text being written in answer to a question that is no longer the first.
    pub(super) fn unsaid(&self, question: Option<&Question>) -> Option<String> {
        let words = match &self.form {
            Form::None => None,
            Form::Permit(panel) => panel.words(),
            Form::Words(reply) => Some(&reply.editor),
            Form::Plan(gate) => gate.words(),
        };
        let is_other = self.about != question.map(|question| question.form);
        words.filter(|_| is_other).map(Editor::whole).filter(|words| !words.trim().is_empty())
    }

    /// The question it is turned to, by its form.
    pub(super) fn about(&self) -> Option<QuestionId> {
        self.about
    }

    /// Whether words are being written that go along with the answer, or are it.
    pub(super) fn is_writing(&self) -> bool {
        match &self.form {
            Form::None => false,
            Form::Permit(panel) => panel.is_writing(),
            Form::Words(reply) => !reply.editor.is_empty(),
            Form::Plan(gate) => gate.is_writing(),
        }
    }

    /// Whether every letter is part of an answer.
    pub(super) fn wants_words(&self) -> bool {
        matches!(self.form, Form::Words(_))
    }

    /// Whether every key is for the dialog.
    pub(super) fn is_modal(&self) -> bool {
        match &self.form {
            Form::Plan(gate) => gate.is_modal(),
            _ => self.is_writing(),
        }
    }

    /// Where these words go.
    pub(super) fn editor(&mut self) -> Option<&mut Editor> {
        match &mut self.form {
            Form::None => None,
            Form::Permit(panel) => panel.comment(),
            Form::Words(reply) => Some(&mut reply.editor),
            Form::Plan(gate) => gate.editor(),
        }
    }

    /// Whether a letter chooses an answer, or is part of one; one that is not begins a message.
    pub(super) fn takes(&self, letter: char, question: Option<&Question>) -> bool {
        match (&self.form, question.map(|question| &question.matter)) {
            (Form::Words(_), _) => true,
            (Form::Plan(gate), Some(QuestionKind::Plan { about, .. })) => gate.takes(letter, about),
            (_, Some(QuestionKind::Permit(permit))) => PermissionDialog::takes(letter, permit),
            _ => false,
        }
    }

    /// The letter that has chosen something was the first of a message.
    pub(super) fn unchoose(&mut self) {
        match &mut self.form {
            Form::Permit(panel) => panel.unchoose(),
            Form::Plan(gate) => gate.unchoose(),
            Form::None | Form::Words(_) => {}
        }
    }

    /// The keys that choose an answer.
    pub(super) fn keys(&self, question: &Question) -> String {
        match &question.matter {
            QuestionKind::Permit(permit) => PermissionDialog::keys(permit),
            QuestionKind::Words(_) => "1-9, ↑, ↓".to_owned(),
            QuestionKind::Plan { about, .. } => PlanDialog::keys(about),
        }
    }

    /// A key, while the question is what the user looks at.
    pub(super) fn key(
        &mut self,
        key: KeyEvent,
        question: &Question,
        scene: DialogContext<'_>,
        look: RowStyle,
    ) -> Option<DialogResult> {
        match (&mut self.form, &question.matter) {
            (Form::Permit(panel), QuestionKind::Permit(permit)) => panel.key(key, permit),
            (Form::Words(reply), QuestionKind::Words(words)) => reply.key(key, words),
            (Form::Plan(gate), QuestionKind::Plan { about, .. }) => gate.key(key, about, scene, look.lang),
            _ => None,
        }
    }

    /// The rows, at most so many; none if what is asked and how to answer it do not fit.
    pub(super) fn lines(
        &mut self,
        question: &Question,
        scene: DialogContext<'_>,
        count: usize,
        rows: usize,
        look: RowStyle,
    ) -> Option<Vec<Line<'static>>> {
        let lines = match (&mut self.form, &question.matter) {
            (Form::Permit(panel), QuestionKind::Permit(permit)) => {
                let mut wish = Vec::new();
                if permit.merges {
                    wish.push(Span::raw(look.lang.has_changes().to_owned()));
                } else {
                    wish.push(Span::raw(format!("{} ", look.lang.wants_to_use())));
                    wish.push(Span::styled(clean_line(&permit.tool), look.theme.strong()));
                }
                panel.lines(title(question, wish, count, look), permit, rows, look)
            }
            (Form::Words(reply), QuestionKind::Words(words)) => {
                let asks = vec![Span::raw(look.lang.asks().to_owned())];
                reply.lines(title(question, asks, count, look), words, rows, look)
            }
            (Form::Plan(gate), QuestionKind::Plan { about, .. }) => {
                let sign = vec![Span::styled(SIGN, look.theme.warning())];
                gate.lines(sign, more(count, look), about, scene, rows, look)
            }
            _ => Vec::new(),
        };
        (lines.len() <= rows).then_some(lines)
    }
}

/// Who asks and what for. If the row is too short for both, the agent's name is cut.
fn title(question: &Question, wish: Vec<Span<'static>>, count: usize, look: RowStyle) -> Vec<Line<'static>> {
    let who = clean_line(&question.by.title(look.lang));
    let style = question.by.color.as_ref().map_or(look.theme.strong(), |color| look.theme.teammate(color));
    let rest: Vec<Span<'static>> = wish.into_iter().chain(more(count, look)).collect();
    let taken = SIGN.len() + 1 + rest.iter().map(|span| text::width(&span.content)).sum::<usize>();
    let who = text::cut(&who, look.columns.saturating_sub(taken).max(WHO_COLUMNS_MIN));
    let mut spans = vec![Span::styled(SIGN, look.theme.warning()), Span::styled(format!("{who} "), style)];
    spans.extend(rest);
    text::wrap(&spans, look.columns)
}

/// That there are other questions behind this one.
fn more(count: usize, look: RowStyle) -> Option<Span<'static>> {
    (count > 1).then(|| Span::styled(format!("  ({})", look.lang.question_count(count)), look.theme.warning()))
}
