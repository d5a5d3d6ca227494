//! The shared task list, live: a line of progress and a row per task.
//!
//! An event only marks the list as changed; it is then read from the journal, so that changes from other processes are
//! seen, too, and nothing is folded twice.

use max_team_core::task_list::{ListTask, ListTaskStatus, TaskList};
use ratatui::text::{Line, Span};

use super::rows::RowStyle;
use super::text::{self, clean_line};

/// The widest an owner is shown.
const OWNER_COLUMNS_MAX: usize = 10;

#[derive(Debug, Default)]
pub(super) struct TaskPanel {
    tasks: TaskList,
    /// It is being read.
    is_wanted: bool,
    /// It has changed since that was asked for.
    is_stale: bool,
}

impl TaskPanel {
    /// It has changed, or may have; whether it is to be read.
    pub(super) fn change(&mut self) -> bool {
        self.is_stale = self.is_wanted;
        !std::mem::replace(&mut self.is_wanted, true)
    }

    /// It was read, or could not be; whether it is to be read again.
    pub(super) fn read(&mut self, tasks: Option<TaskList>) -> bool {
        self.tasks = tasks.unwrap_or_else(|| std::mem::take(&mut self.tasks));
        self.is_wanted = std::mem::take(&mut self.is_stale);
        self.is_wanted
    }

    /// Whether anything in it is still to be done.
    pub(super) fn is_open(&self) -> bool {
        self.tasks.items().any(|item| item.state.status != ListTaskStatus::Completed)
    }

    /// The list in at most so many rows; none once all of it is done.
    pub(super) fn lines(&self, rows: usize, look: RowStyle) -> Vec<Line<'static>> {
        let mut items: Vec<&ListTask> = self.tasks.items().collect();
        if rows == 0 || !self.is_open() {
            return Vec::new();
        }
        let done = items.iter().filter(|item| item.state.status == ListTaskStatus::Completed).count();
        let (title, all) = (format!("▸ {} ", look.lang.task_list()), items.len());
        let words = text::cut(&look.lang.list_progress(done, all), look.columns.saturating_sub(text::width(&title)));
        let mut lines =
            vec![Line::from(vec![Span::styled(title, look.theme.user()), Span::styled(words, look.theme.strong())])];
        items.sort_by_key(|item| self.rank(item));
        let room = rows - 1;
        // A note about a single row takes as much room as the row.
        let shown = if all > room { room.saturating_sub(1) } else { all };
        items.truncate(shown);
        let owners = items.iter().map(|item| text::width(&item.state.owner)).max().unwrap_or(0);
        let owners = owners.min(OWNER_COLUMNS_MAX).min(look.columns / 6);
        lines.extend(items.iter().map(|item| self.row(item, owners, look)));
        if all > shown && room > 0 {
            let words = format!("  … {}", look.lang.more_tasks(all - shown));
            lines.push(Line::from(Span::styled(words, look.theme.faint())));
        }
        lines
    }

    /// Tasks in progress first, then those that can be started, then blocked ones, then finished ones.
    fn rank(&self, item: &ListTask) -> u8 {
        match item.state.status {
            ListTaskStatus::InProgress => 0,
            ListTaskStatus::Pending if self.tasks.blockers(item).next().is_none() => 1,
            ListTaskStatus::Pending => 2,
            ListTaskStatus::Completed | ListTaskStatus::Deleted => 3,
        }
    }

    fn row(&self, item: &ListTask, owners: usize, look: RowStyle) -> Line<'static> {
        let RowStyle { columns, theme, lang } = look;
        let (sign, style) = match item.state.status {
            ListTaskStatus::InProgress => ('●', theme.user()),
            ListTaskStatus::Completed => ('✓', theme.good()),
            ListTaskStatus::Pending | ListTaskStatus::Deleted => ('○', theme.faint()),
        };
        let owner = text::cut(&clean_line(&item.state.owner), owners);
        let owner = format!("{owner}{} ", " ".repeat(owners.saturating_sub(text::width(&owner))));
        let mut spans = vec![
            Span::styled(format!("  {sign} "), style),
            Span::styled(format!("{:>3} ", item.id.to_string()), theme.strong()),
            Span::styled(if owners > 0 { owner } else { String::new() }, theme.faint()),
        ];
        let is_at_work = item.state.status == ListTaskStatus::InProgress && !item.text.active_form.is_empty();
        let mut words = clean_line(if is_at_work { &item.text.active_form } else { &item.text.subject });
        let blockers: Vec<String> = self.tasks.blockers(item).map(|id| format!("#{id}")).collect();
        if item.state.status == ListTaskStatus::Pending && !blockers.is_empty() {
            words = format!("{words} ({})", lang.waits_for(blockers.join(", ")));
        }
        let used: usize = spans.iter().map(|span| text::width(&span.content)).sum();
        let style = if item.state.status == ListTaskStatus::InProgress { Default::default() } else { theme.faint() };
        spans.push(Span::styled(text::cut(&words, columns.saturating_sub(used)), style));
        Line::from(spans)
    }
}
