//! A question about a plan on the screen: what is asked, what can be said, and the keys that say it.
//!
//! The plan itself stands in the scrollback; here are its figures and the choices. It holds only how the question is
//! shown and what is being written; the plan and the question are the session's. Nothing is decided by leaving: Esc
//! puts the question off.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use max_team_core::plan::Plan;
use max_team_core::plan::event::{PlanDecision, PlanQuestion, Ruling};
use max_team_runtime::Team;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::dialog::{DialogContext, DialogResult};
use super::editor::Editor;
use super::plan_editor::{EditResult, PlanEditor};
use super::rows::RowStyle;
use super::text::{self, clean, clean_line};
use crate::plan_text;
use max_team_workspace::i18n::Lang;

/// Rows of an error, or of the risks.
const DETAIL_ROWS_MAX: usize = 8;

/// What can be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlanChoice {
    Approve,
    FirstWave,
    Edit,
    Changes,
    Reject,
    Stop,
    Retry,
    RetryBy,
    Skip,
    Fixed,
    Accept,
    GiveUp,
    Later,
}

type ChoiceRow = (char, PlanChoice, fn(Lang) -> &'static str);

const PROPOSAL: [ChoiceRow; 6] = [
    ('y', PlanChoice::Approve, Lang::approve),
    ('1', PlanChoice::FirstWave, Lang::approve_first),
    ('e', PlanChoice::Edit, Lang::edit),
    ('c', PlanChoice::Changes, Lang::ask_changes),
    ('n', PlanChoice::Reject, Lang::reject),
    ('l', PlanChoice::Later, Lang::later),
];
const GO_ON: [ChoiceRow; 3] = [
    ('y', PlanChoice::Approve, Lang::go_on),
    ('n', PlanChoice::Stop, Lang::stop),
    ('l', PlanChoice::Later, Lang::later),
];
const START: [ChoiceRow; 3] = [
    ('y', PlanChoice::Approve, Lang::start),
    ('n', PlanChoice::Stop, Lang::give_up),
    ('l', PlanChoice::Later, Lang::later),
];
const FAILURE: [ChoiceRow; 7] = [
    ('r', PlanChoice::Retry, Lang::retry_word),
    ('o', PlanChoice::RetryBy, Lang::retry_by),
    ('s', PlanChoice::Skip, Lang::skip_word),
    ('f', PlanChoice::Fixed, Lang::fixed),
    ('a', PlanChoice::Accept, Lang::accept_answer),
    ('g', PlanChoice::GiveUp, Lang::give_up),
    ('l', PlanChoice::Later, Lang::later),
];

fn options(about: &PlanQuestion) -> &'static [ChoiceRow] {
    match about {
        PlanQuestion::Proposal => &PROPOSAL,
        PlanQuestion::Rest | PlanQuestion::Budget => &GO_ON,
        PlanQuestion::Start { .. } => &START,
        PlanQuestion::Failure { .. } => &FAILURE,
    }
}

/// How a question about a plan is shown.
#[derive(Debug, Default)]
pub(super) struct PlanDialog {
    /// What Enter says; it says nothing by itself.
    chosen: Option<usize>,
    step: DialogStep,
    /// Why what was written cannot be, or a word about what was done.
    flaw: Option<String>,
}

#[derive(Debug, Default)]
enum DialogStep {
    #[default]
    Choose,
    Write(PlanChoice, Editor),
    Amend(PlanEditor),
}

impl PlanDialog {
    /// Whether words are being written.
    pub(super) fn is_writing(&self) -> bool {
        match &self.step {
            DialogStep::Choose => false,
            DialogStep::Write(..) => true,
            DialogStep::Amend(amend) => amend.is_writing(),
        }
    }

    /// Whether every key is for this dialog, letters included.
    pub(super) fn is_modal(&self) -> bool {
        !matches!(self.step, DialogStep::Choose)
    }

    pub(super) fn editor(&mut self) -> Option<&mut Editor> {
        match &mut self.step {
            DialogStep::Choose => None,
            DialogStep::Write(_, editor) => Some(editor),
            DialogStep::Amend(amend) => amend.editor(),
        }
    }

    /// The text being written to the author of the plan.
    pub(super) fn words(&self) -> Option<&Editor> {
        match &self.step {
            DialogStep::Write(_, editor) => Some(editor),
            // A change is no words to anybody.
            DialogStep::Choose | DialogStep::Amend(_) => None,
        }
    }

    /// Whether a letter answers.
    pub(super) fn takes(&self, letter: char, about: &PlanQuestion) -> bool {
        self.is_modal() || options(about).iter().any(|(key, ..)| *key == letter.to_ascii_lowercase())
    }

    /// The keys that choose something.
    pub(super) fn keys(about: &PlanQuestion) -> String {
        let letters = options(about).iter().filter(|(_, pick, _)| *pick != PlanChoice::Later);
        letters.map(|(key, ..)| format!("{key}, ")).collect::<String>() + "←, →"
    }

    /// Nothing is chosen.
    pub(super) fn unchoose(&mut self) {
        self.chosen = None;
    }

    pub(super) fn key(
        &mut self,
        key: KeyEvent,
        about: &PlanQuestion,
        scene: DialogContext<'_>,
        lang: Lang,
    ) -> Option<DialogResult> {
        self.flaw = None;
        match &mut self.step {
            DialogStep::Choose if key.code == KeyCode::Tab => Some(DialogResult::Expand),
            DialogStep::Choose => self.choose(key, about),
            DialogStep::Write(pick, editor) => {
                let pick = *pick;
                match key.code {
                    KeyCode::Esc => self.step = DialogStep::Choose,
                    KeyCode::Enter if breaks_line(key, editor) => {}
                    KeyCode::Enter => {
                        let words = editor.whole().trim().to_owned();
                        return self.written(pick, words, scene.team, lang);
                    }
                    _ => drop(editor.key(key)),
                }
                None
            }
            DialogStep::Amend(amend) => match amend.key(key, scene, lang) {
                EditResult::None => None,
                EditResult::Back => {
                    self.step = DialogStep::Choose;
                    None
                }
                EditResult::Flaw(words) => {
                    self.flaw = Some(words);
                    None
                }
                EditResult::Send(edit) => Some(DialogResult::Decide(PlanDecision::Edit(vec![edit]))),
            },
        }
    }

    fn choose(&mut self, key: KeyEvent, about: &PlanQuestion) -> Option<DialogResult> {
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return None;
        }
        let options = options(about);
        let last = options.len().saturating_sub(1);
        match key.code {
            KeyCode::Esc => return Some(DialogResult::Later),
            KeyCode::Left | KeyCode::Up => {
                self.chosen = Some(self.chosen.map_or(last, |chosen| chosen.saturating_sub(1)));
            }
            KeyCode::Right | KeyCode::Down => {
                self.chosen = Some(self.chosen.map_or(0, |chosen| (chosen + 1).min(last)));
            }
            KeyCode::Enter => {
                let Some((_, pick, _)) = self.chosen.and_then(|chosen| options.get(chosen)) else {
                    return Some(DialogResult::Unchosen);
                };
                return self.pick(*pick);
            }
            KeyCode::Char(letter) => {
                // It only chooses, and Enter says it: the first letter of a message is no answer.
                let letter = letter.to_ascii_lowercase();
                self.chosen = Some(options.iter().position(|(key, ..)| *key == letter)?);
            }
            _ => {}
        }
        None
    }

    fn pick(&mut self, pick: PlanChoice) -> Option<DialogResult> {
        let retry = || Ruling::Retry { agent: None, model: None, note: String::new() };
        Some(match pick {
            PlanChoice::Approve => DialogResult::Decide(PlanDecision::Approve),
            PlanChoice::FirstWave => DialogResult::Decide(PlanDecision::FirstWave),
            PlanChoice::Stop => DialogResult::Decide(PlanDecision::Reject(String::new())),
            PlanChoice::Retry => DialogResult::Decide(PlanDecision::Rule(retry())),
            PlanChoice::Skip => DialogResult::Decide(PlanDecision::Rule(Ruling::Skip)),
            PlanChoice::Fixed => DialogResult::Decide(PlanDecision::Rule(Ruling::Fixed)),
            PlanChoice::Accept => DialogResult::Decide(PlanDecision::Rule(Ruling::Accept)),
            PlanChoice::GiveUp => DialogResult::Decide(PlanDecision::Rule(Ruling::GiveUp)),
            PlanChoice::Later => DialogResult::Later,
            PlanChoice::Changes | PlanChoice::Reject | PlanChoice::RetryBy => {
                self.step = DialogStep::Write(pick, Editor::default());
                return None;
            }
            PlanChoice::Edit => {
                self.step = DialogStep::Amend(PlanEditor::default());
                return None;
            }
        })
    }

    fn written(&mut self, pick: PlanChoice, words: String, team: Option<&Team>, lang: Lang) -> Option<DialogResult> {
        match pick {
            // Changes must be described.
            PlanChoice::Changes if words.is_empty() => None,
            PlanChoice::Changes => Some(DialogResult::Decide(PlanDecision::Changes(words))),
            PlanChoice::RetryBy => match unknown_member(&words, team, lang) {
                Some(flaw) => {
                    self.flaw = Some(flaw);
                    None
                }
                None => {
                    let retry = Ruling::Retry { agent: Some(words), model: None, note: String::new() };
                    Some(DialogResult::Decide(PlanDecision::Rule(retry)))
                }
            },
            _ => Some(DialogResult::Decide(PlanDecision::Reject(words))),
        }
    }

    pub(super) fn lines(
        &mut self,
        mut title: Vec<Span<'static>>,
        more: Option<Span<'static>>,
        about: &PlanQuestion,
        scene: DialogContext<'_>,
        rows: usize,
        look: RowStyle,
    ) -> Vec<Line<'static>> {
        let RowStyle { columns, theme, lang } = look;
        title.push(Span::styled(
            text::cut(&headline(about, scene.plan, lang), columns.saturating_sub(4)),
            theme.strong(),
        ));
        title.extend(more);
        let tail = self.tail(about, scene, look);
        // The choices keep their room; what is told about the plan gives way, down to how much it is where a yes can be said.
        let room = rows.saturating_sub(1 + tail.len());
        let least = usize::from(matches!(self.step, DialogStep::Choose));
        let mut lines = vec![Line::from(title)];
        match (&mut self.step, scene.plan.and_then(|plan| plan.draft())) {
            (DialogStep::Amend(amend), Some(draft)) => lines.extend(amend.lines(draft, scene.team, room, look)),
            _ => lines.extend(detail(about, scene, room.clamp(least, DETAIL_ROWS_MAX), look)),
        }
        lines.extend(tail);
        lines
    }

    /// What is wrong, and what can be done.
    fn tail(&self, about: &PlanQuestion, scene: DialogContext<'_>, look: RowStyle) -> Vec<Line<'static>> {
        let RowStyle { columns, theme, lang } = look;
        let mut lines = Vec::new();
        if let Some(flaw) = &self.flaw {
            lines.extend(indented(&[Span::styled(clean(flaw).into_owned(), theme.bad())], columns));
        }
        match &self.step {
            DialogStep::Choose => lines.extend(self.choices(about, look)),
            DialogStep::Write(pick, _) => {
                let words = match pick {
                    PlanChoice::Changes => lang.write_changes().to_owned(),
                    PlanChoice::RetryBy => lang.write_retry_by(members(scene.team)),
                    _ => lang.write_reason().to_owned(),
                };
                lines.extend(indented(&[Span::styled(words, theme.warning())], columns));
            }
            DialogStep::Amend(_) => {}
        }
        lines
    }

    fn choices(&self, about: &PlanQuestion, look: RowStyle) -> Vec<Line<'static>> {
        let RowStyle { columns, theme, lang } = look;
        let names: Vec<String> = options(about).iter().map(|(key, ..)| key.to_string()).collect();
        let labelled = options(about).iter().zip(&names).enumerate().map(|(index, ((_, pick, words), name))| {
            let style = if Some(index) == self.chosen { theme.chosen() } else { theme.strong() };
            let key = if *pick == PlanChoice::Later { "Esc" } else { name.as_str() };
            (key, words(lang), style)
        });
        let mut all: Vec<LabelledKey> = labelled.collect();
        all.push(("Tab", lang.all_instructions(), theme.strong()));
        all.push(("Enter", lang.answers(), theme.strong()));
        choices(&all, columns)
    }
}

/// A key, what it does, and how it looks.
pub(super) type LabelledKey<'a> = (&'a str, &'a str, Style);

/// Keys and what they do, in as many rows as they need; none is split.
pub(super) fn choices(all: &[LabelledKey<'_>], columns: usize) -> Vec<Line<'static>> {
    let mut lines: Vec<Line<'static>> = Vec::new();
    let mut used = usize::MAX;
    for (key, words, style) in all {
        let (key, words) = (format!(" {key} "), format!(" {words}   "));
        let width = text::width(&key) + text::width(words.trim_end());
        if used.saturating_add(width) > columns {
            lines.push(Line::from(Span::raw("  ")));
            used = 2;
        }
        used += text::width(&key) + text::width(&words);
        if let Some(line) = lines.last_mut() {
            line.spans.extend([Span::styled(key, *style), Span::raw(words)]);
        }
    }
    lines
}

/// What is asked, in a line.
pub(super) fn headline(about: &PlanQuestion, plan: Option<&Plan>, lang: Lang) -> String {
    let goal = || plan.and_then(|plan| plan.draft()).map(|draft| clean_line(&draft.goal)).unwrap_or_default();
    match about {
        PlanQuestion::Proposal => format!("{}: {} — {}", lang.plan(), goal(), lang.may_run()),
        PlanQuestion::Rest => lang.ask_rest().to_owned(),
        PlanQuestion::Budget => lang.ask_budget().to_owned(),
        PlanQuestion::Start { task } => lang.may_start(clean_line(task)),
        PlanQuestion::Failure { task, .. } => {
            let view = plan.and_then(|plan| plan.task(plan.graph()?.index(task)?));
            let (member, attempt) = view.map_or(("?", 0), |view| (view.member, view.attempt));
            lang.task_failed(clean_line(task), clean_line(member), attempt)
        }
    }
}

/// What one should know before answering.
fn detail(about: &PlanQuestion, scene: DialogContext<'_>, rows: usize, look: RowStyle) -> Vec<Line<'static>> {
    let RowStyle { columns, theme, lang } = look;
    let Some(plan) = scene.plan.filter(|_| rows > 0) else { return Vec::new() };
    let mut words = Vec::new();
    match about {
        PlanQuestion::Proposal => {
            if let (Some(draft), Some(graph), Some(forecast)) = (plan.draft(), plan.graph(), plan.forecast()) {
                let counts = lang.counts(draft.tasks.len(), graph.waves().len());
                let figures = format!("{counts}; {}", plan_text::forecast(forecast, lang));
                words.push(Span::styled(figures, theme.faint()));
            }
            for risk in plan.proposed().map(|proposed| lang.plan_risks(proposed)).unwrap_or_default() {
                words.push(Span::styled(format!("! {}", clean_line(&risk)), theme.warning()));
            }
        }
        PlanQuestion::Rest | PlanQuestion::Budget => {
            let tally = plan.tally();
            let failing = tally.failed;
            let spent = max_team_workspace::format::spent(tally.spent.nano, tally.spent.unknown_nano);
            words.push(Span::styled(format!("{} · {spent}", lang.progress(&tally, failing)), theme.faint()));
            if *about == PlanQuestion::Budget {
                let session = plan.session().map(|session| session.to_string()).unwrap_or_default();
                words.push(Span::styled(lang.more_money(&session), theme.faint()));
            }
        }
        PlanQuestion::Start { task } => {
            let view = plan.graph().and_then(|graph| plan.task(graph.index(task)?));
            if let Some(view) = view {
                let words_of = format!("{}: {}", view.member, view.task.caption());
                words.push(Span::styled(clean_line(&words_of), theme.faint()));
            }
        }
        PlanQuestion::Failure { error, kind, .. } => {
            words.push(Span::styled(clean(&lang.task_error(error, kind)).into_owned(), theme.bad()))
        }
    }
    let mut lines: Vec<Line<'static>> =
        words.iter().flat_map(|span| indented(std::slice::from_ref(span), columns)).collect();
    if lines.len() > rows {
        let hidden = lines.len() - rows.saturating_sub(1);
        lines.truncate(rows.saturating_sub(1));
        lines.push(Line::from(Span::styled(format!("  {}", lang.more_lines(hidden)), theme.faint())));
    }
    lines
}

/// Whether Enter only begins a new line.
pub(super) fn breaks_line(key: KeyEvent, editor: &mut Editor) -> bool {
    let shift = key.modifiers.contains(KeyModifiers::SHIFT);
    if shift {
        editor.insert("\n");
    }
    shift || editor.continue_line()
}

pub(super) fn indented(spans: &[Span<'_>], columns: usize) -> Vec<Line<'static>> {
    let mut lines = text::wrap(spans, columns.saturating_sub(2));
    for line in &mut lines {
        line.spans.insert(0, Span::raw("  "));
    }
    lines
}

/// The names of the team.
pub(super) fn members(team: Option<&Team>) -> String {
    let names = team.iter().flat_map(|team| &team.members).map(|teammate| teammate.definition.name.as_str());
    names.collect::<Vec<_>>().join(", ")
}

/// The error if the team has no member of that name.
pub(super) fn unknown_member(name: &str, team: Option<&Team>, lang: Lang) -> Option<String> {
    let known = team.iter().flat_map(|team| &team.members).any(|teammate| teammate.definition.name == name);
    (!known).then(|| lang.no_member(name, members(team)))
}
