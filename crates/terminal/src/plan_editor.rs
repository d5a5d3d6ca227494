//! Changing a plan before saying yes to it: choose a task, choose a field, write.
//!
//! A change is tried on the draft first; one that makes a plan that cannot run is refused in words and never sent.
//! What was sent shows when the plan says that it was changed; nothing is changed here.

use crossterm::event::{KeyCode, KeyEvent};
use max_team_core::ledger::NANO;
use max_team_core::plan::{Budget, Draft, Edit, Graph, TaskDraft, edit};
use max_team_runtime::Team;
use ratatui::text::{Line, Span};

use super::dialog::DialogContext;
use super::editor::Editor;
use super::plan_dialog::{breaks_line, indented, members, unknown_member};
use super::rows::RowStyle;
use super::text::{self, clean_line};
use max_team_workspace::format::dollars;
use max_team_workspace::i18n::Lang;

/// What can be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlanField {
    Description,
    Owner,
    Needs,
    Budget,
    Skip,
    Model,
}

impl PlanField {
    const ALL: [(char, Self); 6] = [
        ('d', Self::Description),
        ('o', Self::Owner),
        ('n', Self::Needs),
        ('b', Self::Budget),
        ('s', Self::Skip),
        ('m', Self::Model),
    ];

    fn name(self, lang: Lang) -> &'static str {
        match self {
            Self::Description => lang.field_description(),
            Self::Owner => lang.field_owner(),
            Self::Needs => lang.field_needs(),
            Self::Budget => lang.field_budget(),
            Self::Skip => lang.field_skip(),
            Self::Model => lang.field_model(),
        }
    }

    /// What is there now, as it is written.
    fn value(self, task: &TaskDraft) -> String {
        match self {
            Self::Description => task.description.clone(),
            Self::Owner => task.agent.clone(),
            Self::Needs => task.needs.join(", "),
            Self::Budget => task.budget.nano.map(|nano| dollars(nano).replace('$', "")).unwrap_or_default(),
            Self::Skip => String::new(),
            Self::Model => task.model.clone().unwrap_or_default(),
        }
    }

    /// What is there now, as it is read.
    fn shown(self, task: &TaskDraft, lang: Lang) -> String {
        let value = match self {
            Self::Description => task.caption().to_owned(),
            Self::Skip => if task.skip { lang.yes_word() } else { lang.no_word() }.to_owned(),
            Self::Budget => task.budget.nano.map(dollars).unwrap_or_default(),
            _ => self.value(task),
        };
        match self {
            _ if !value.is_empty() => value,
            Self::Model => lang.own_model().to_owned(),
            _ => lang.not_bounded().to_owned(),
        }
    }
}

/// What a key came to.
#[derive(Debug)]
pub(super) enum EditResult {
    None,
    Back,
    Flaw(String),
    Send(Edit),
}

#[derive(Debug, Default)]
pub(super) struct PlanEditor {
    task: usize,
    field: usize,
    /// The beginning of a task's name, as it is being typed.
    typed: String,
    step: EditStep,
    /// Rows of the list, as of the last frame.
    page: usize,
}

#[derive(Debug, Default)]
enum EditStep {
    #[default]
    Task,
    Field,
    Write(Editor),
}

impl PlanEditor {
    pub(super) fn is_writing(&self) -> bool {
        matches!(self.step, EditStep::Write(_))
    }

    pub(super) fn editor(&mut self) -> Option<&mut Editor> {
        match &mut self.step {
            EditStep::Write(editor) => Some(editor),
            EditStep::Task | EditStep::Field => None,
        }
    }

    pub(super) fn key(&mut self, key: KeyEvent, scene: DialogContext<'_>, lang: Lang) -> EditResult {
        let Some(draft) = scene.plan.and_then(|plan| plan.draft()) else { return EditResult::Back };
        self.task = self.task.min(draft.tasks.len().saturating_sub(1));
        match &mut self.step {
            EditStep::Task => self.task_key(key, draft),
            EditStep::Field => self.field_key(key, draft, scene.team, lang),
            EditStep::Write(editor) => match key.code {
                KeyCode::Esc => {
                    self.step = EditStep::Field;
                    EditResult::None
                }
                KeyCode::Enter if breaks_line(key, editor) => EditResult::None,
                KeyCode::Enter => {
                    let words = editor.whole();
                    self.written(words.trim(), draft, scene.team, lang)
                }
                _ => {
                    editor.key(key);
                    EditResult::None
                }
            },
        }
    }

    fn task_key(&mut self, key: KeyEvent, draft: &Draft) -> EditResult {
        let last = draft.tasks.len().saturating_sub(1);
        let page = self.page.max(1);
        match key.code {
            KeyCode::Esc if self.typed.is_empty() => return EditResult::Back,
            KeyCode::Esc => self.typed.clear(),
            KeyCode::Enter => (self.step, self.typed) = (EditStep::Field, String::new()),
            KeyCode::Up => self.task = self.task.saturating_sub(1),
            KeyCode::Down | KeyCode::Tab => self.task = (self.task + 1).min(last),
            KeyCode::PageUp => self.task = self.task.saturating_sub(page),
            KeyCode::PageDown => self.task = (self.task + page).min(last),
            KeyCode::Home => self.task = 0,
            KeyCode::End => self.task = last,
            KeyCode::Backspace => drop(self.typed.pop()),
            KeyCode::Char(letter) => {
                let typed = format!("{}{letter}", self.typed);
                if let Some(found) = draft.tasks.iter().position(|task| task.id.starts_with(&typed)) {
                    (self.task, self.typed) = (found, typed);
                }
            }
            _ => {}
        }
        EditResult::None
    }

    fn field_key(&mut self, key: KeyEvent, draft: &Draft, team: Option<&Team>, lang: Lang) -> EditResult {
        match key.code {
            KeyCode::Esc => self.step = EditStep::Task,
            KeyCode::Up => self.field = self.field.saturating_sub(1),
            KeyCode::Down | KeyCode::Tab => self.field = (self.field + 1).min(PlanField::ALL.len() - 1),
            KeyCode::Enter => return self.open(draft, team, lang),
            KeyCode::Char(letter) => {
                if let Some(found) = PlanField::ALL.iter().position(|(key, _)| *key == letter.to_ascii_lowercase()) {
                    self.field = found;
                    return self.open(draft, team, lang);
                }
            }
            _ => {}
        }
        EditResult::None
    }

    fn field(&self) -> PlanField {
        PlanField::ALL.get(self.field).map_or(PlanField::Description, |(_, field)| *field)
    }

    fn open(&mut self, draft: &Draft, team: Option<&Team>, lang: Lang) -> EditResult {
        let Some(task) = draft.tasks.get(self.task) else { return EditResult::Back };
        if self.field() == PlanField::Skip {
            return self.attempt(Edit::Skip { task: task.id.clone(), skip: !task.skip }, draft, team, lang);
        }
        let mut editor = Editor::default();
        editor.set(&self.field().value(task));
        self.step = EditStep::Write(editor);
        EditResult::None
    }

    fn written(&mut self, words: &str, draft: &Draft, team: Option<&Team>, lang: Lang) -> EditResult {
        let Some(known) = draft.tasks.get(self.task) else { return EditResult::Back };
        let task = known.id.clone();
        let edit = match self.field() {
            PlanField::Description => Edit::Describe { task, text: words.to_owned() },
            PlanField::Owner => Edit::Assign { task, agent: words.to_owned() },
            PlanField::Needs => {
                let names = words.split([',', ' ', '，', '、']).map(str::trim).filter(|name| !name.is_empty());
                Edit::Needs { task, needs: names.map(str::to_owned).collect() }
            }
            PlanField::Budget => match money(words) {
                Some(nano) => Edit::Budget { task: Some(task), budget: Budget { nano, ..known.budget } },
                None => return EditResult::Flaw(lang.bad_money().to_owned()),
            },
            PlanField::Skip => Edit::Skip { task, skip: !known.skip },
            PlanField::Model => Edit::Model { task, model: Some(words.to_owned()).filter(|words| !words.is_empty()) },
        };
        self.attempt(edit, draft, team, lang)
    }

    /// Sends a change, unless the plan could not run with it.
    fn attempt(&mut self, change: Edit, draft: &Draft, team: Option<&Team>, lang: Lang) -> EditResult {
        match refusal(draft, &change, team, lang) {
            Some(words) => EditResult::Flaw(words),
            None => {
                self.step = EditStep::Field;
                EditResult::Send(change)
            }
        }
    }

    pub(super) fn lines(
        &mut self,
        draft: &Draft,
        team: Option<&Team>,
        rows: usize,
        look: RowStyle,
    ) -> Vec<Line<'static>> {
        let RowStyle { columns, theme, lang } = look;
        let task = draft.tasks.get(self.task);
        let id = task.map(|task| clean_line(&task.id)).unwrap_or_default();
        let hint = match &self.step {
            EditStep::Task => lang.pick_task().to_owned(),
            EditStep::Field => lang.pick_field().to_owned(),
            EditStep::Write(_) => {
                let mut words = lang.write_field(self.field().name(lang), &id);
                if self.field() == PlanField::Owner {
                    words = format!("{words}: {}", members(team));
                }
                words
            }
        };
        let mut hint = indented(&[Span::styled(hint, theme.warning())], columns);
        let mut lines = match self.step {
            EditStep::Task => self.list(draft, rows.saturating_sub(hint.len()), look),
            EditStep::Field | EditStep::Write(_) => task.map_or_else(Vec::new, |task| self.table(task, look)),
        };
        lines.truncate(rows.saturating_sub(hint.len()));
        lines.append(&mut hint);
        lines
    }

    /// The tasks around the one that is chosen.
    fn list(&mut self, draft: &Draft, rows: usize, look: RowStyle) -> Vec<Line<'static>> {
        self.page = rows;
        let first = self.task.saturating_sub(rows.saturating_sub(1) / 2).min(draft.tasks.len().saturating_sub(rows));
        let draw = |(index, task): (usize, &TaskDraft)| {
            let chosen = index == self.task;
            let sign = if chosen { "▸" } else { " " };
            let skipped = if task.skip { format!(" ({})", look.lang.struck_out()) } else { String::new() };
            let words = format!("{} ({}){skipped}: {}", task.id, task.agent, task.caption());
            let words = text::cut(&clean_line(&words), look.columns.saturating_sub(4));
            let style = if chosen { look.theme.strong() } else { look.theme.faint() };
            Line::from(vec![Span::styled(format!("  {sign} "), look.theme.user()), Span::styled(words, style)])
        };
        draft.tasks.iter().enumerate().skip(first).take(rows).map(draw).collect()
    }

    fn table(&self, task: &TaskDraft, look: RowStyle) -> Vec<Line<'static>> {
        let RowStyle { columns, theme, lang } = look;
        let widest = PlanField::ALL.iter().map(|(_, field)| text::width(field.name(lang))).max().unwrap_or(0);
        let title =
            Line::from(Span::styled(format!("  {}", text::cut(&clean_line(&task.id), columns)), theme.strong()));
        let draw = |(index, (key, field)): (usize, &(char, PlanField))| {
            let style = if index == self.field { theme.chosen() } else { theme.strong() };
            let name = field.name(lang);
            let pad = " ".repeat(widest.saturating_sub(text::width(name)) + 2);
            let room = columns.saturating_sub(widest + 8);
            let value = text::cut(&clean_line(&field.shown(task, lang)), room);
            let key = Span::styled(format!(" {key} "), style);
            Line::from(vec![
                Span::raw("  "),
                key,
                Span::raw(format!(" {name}{pad}")),
                Span::styled(value, theme.faint()),
            ])
        };
        std::iter::once(title).chain(PlanField::ALL.iter().enumerate().map(draw)).collect()
    }
}

/// Why a change cannot be made.
fn refusal(draft: &Draft, change: &Edit, team: Option<&Team>, lang: Lang) -> Option<String> {
    if let Edit::Assign { agent, .. } = change
        && let Some(words) = unknown_member(agent, team, lang)
    {
        return Some(words);
    }
    if let Edit::Model { model: Some(model), .. } = change
        && !team.is_some_and(|team| team.models.contains_key(model))
    {
        return Some(lang.no_model(model));
    }
    let changed = match edit(draft, change) {
        Ok(changed) => changed,
        Err(flaw) => return Some(flaw.to_string()),
    };
    let names: Vec<&str> =
        team.iter().flat_map(|team| &team.members).map(|teammate| teammate.definition.name.as_str()).collect();
    let flaws = Graph::new(&changed, &names).err()?;
    Some(flaws.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

/// An amount of dollars; `Some(None)` for none at all.
fn money(words: &str) -> Option<Option<u64>> {
    let words = words.trim().trim_start_matches('$');
    if words.is_empty() {
        return Some(None);
    }
    let (whole, part) = words.split_once('.').unwrap_or((words, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 9 || (whole.is_empty() && part.is_empty()) {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let part: u64 = format!("{part:0<9}").parse().ok()?;
    whole.checked_mul(NANO)?.checked_add(part).filter(|nano| *nano > 0).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_read_exactly_or_not_at_all() {
        let table = [
            ("", Some(None)),
            ("0.50", Some(Some(500_000_000))),
            ("$2", Some(Some(2_000_000_000))),
            (".000000001", Some(Some(1))),
            ("0", None),
            ("1e3", None),
            ("-1", None),
            (".", None),
            ("99999999999999", None),
        ];
        for (words, want) in table {
            assert_eq!(money(words), want, "{words}");
        }
    }
}
