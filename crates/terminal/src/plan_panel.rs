//! Running plans and the shared task list, live: one row per task that matters now, and a line of progress.
//!
//! It reads the session and draws. Its own state is how much to show and the rows drawn last, which are reused for a
//! moment: numbers change with every notice, but are not repainted each time. Tasks that wait for the user come first,
//! then running ones, then the rest in the order of the plan.

use max_team_core::plan::{TaskStatus, TaskView, WaitReason};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::plans::PlanEntry;
use super::rows::RowStyle;
use super::session::Session;
use super::text::{self, clean_line};
use crate::plan_text;
use max_team_workspace::format::{since, spent, whole_seconds};

/// How long what was drawn is good enough.
const FRESH_MS: u64 = 250;
/// Rows of tasks in the short view.
const SHORT_ROWS_MAX: usize = 12;
/// Rows of the shared list in the short view.
const LIST_ROWS_MAX: usize = 8;
/// The widest an id and an owner are shown.
const ID_COLUMNS_MAX: usize = 18;
const OWNER_COLUMNS_MAX: usize = 10;
/// From how many columns on a row says its state in a word, and its cost.
const STATE_COLUMNS_MIN: usize = 90;
const COST_COLUMNS_MIN: usize = 60;

/// How much of them is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Extent {
    #[default]
    Short,
    Full,
    Hidden,
}

#[derive(Debug, Default)]
pub(super) struct PlanPanel {
    extent: Extent,
    drawn: Option<PanelSketch>,
}

#[derive(Debug)]
struct PanelSketch {
    at_ms: i64,
    columns: usize,
    rows: usize,
    lines: Vec<Line<'static>>,
    /// Whether anything was heard since.
    touched: bool,
}

impl PlanPanel {
    pub(super) fn extent(&self) -> Extent {
        self.extent
    }

    /// Short, full, hidden, short …
    pub(super) fn toggle(&mut self) {
        self.drawn = None;
        self.extent = match self.extent {
            Extent::Short => Extent::Full,
            Extent::Full => Extent::Hidden,
            Extent::Hidden => Extent::Short,
        };
    }

    /// Something was heard that may look different.
    pub(super) fn touch(&mut self) {
        if let Some(drawn) = &mut self.drawn {
            drawn.touched = true;
        }
    }

    /// When what is shown is no longer good enough; never, if nothing has changed and nothing `moves`.
    pub(super) fn stale_at_ms(&self, moves: bool) -> Option<i64> {
        let drawn = self.drawn.as_ref().filter(|drawn| drawn.touched || moves);
        drawn.map(|drawn| drawn.at_ms.saturating_add_unsigned(FRESH_MS))
    }

    /// The rows, at most so many.
    pub(super) fn lines(&mut self, session: &Session, rows: usize, look: RowStyle, now_ms: i64) -> Vec<Line<'static>> {
        let is_empty = session.plans().running().next().is_none() && !session.list().is_open();
        if is_empty || self.extent == Extent::Hidden || rows == 0 {
            self.drawn = None;
            return Vec::new();
        }
        let good = |drawn: &&PanelSketch| {
            (drawn.columns, drawn.rows) == (look.columns, rows) && since(drawn.at_ms, now_ms) < FRESH_MS
        };
        if let Some(drawn) = self.drawn.as_ref().filter(good) {
            return drawn.lines.clone();
        }
        let lines = self.draw(session, rows, look, now_ms);
        self.drawn =
            Some(PanelSketch { at_ms: now_ms, columns: look.columns, rows, lines: lines.clone(), touched: false });
        lines
    }

    fn draw(&self, session: &Session, rows: usize, look: RowStyle, now_ms: i64) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        // The shared list comes last.
        let count = session.plans().running().count() + usize::from(session.list().is_open());
        for (index, known) in session.plans().running().enumerate() {
            let left = rows.saturating_sub(lines.len());
            // Each of the plans behind this one has its line too.
            let behind = count - index - 1;
            lines.push(progress(known, session, look, now_ms));
            let most = if self.extent == Extent::Full { usize::MAX } else { SHORT_ROWS_MAX };
            lines.extend(tasks(known, session, left.saturating_sub(1 + behind).min(most), look, now_ms));
        }
        let most = if self.extent == Extent::Full { usize::MAX } else { LIST_ROWS_MAX };
        lines.extend(session.list().lines(rows.saturating_sub(lines.len()).min(most), look));
        lines.truncate(rows);
        lines
    }
}

/// How far a plan is, for how long, at what cost, and what it all waits for.
fn progress(known: &PlanEntry, session: &Session, look: RowStyle, now_ms: i64) -> Line<'static> {
    let RowStyle { columns, theme, lang } = look;
    let tally = known.plan.tally();
    let failing = known.plan.tasks().filter(|view| view.status == TaskStatus::Failed).count();
    let running: u64 = session
        .crew()
        .busy()
        .filter(|teammate| teammate.task.as_ref().is_some_and(|(plan, _)| *plan == known.id))
        .map(|teammate| session.turn_nano(teammate))
        .sum();
    let mut parts = vec![lang.progress(&tally, failing), whole_seconds(known.elapsed_ms(now_ms))];
    let nano = tally.spent.nano.saturating_add(running);
    if nano > 0 {
        parts.push(spent(nano, tally.spent.unknown_nano));
    }
    let path = critical(known);
    if !path.is_empty() {
        parts.push(format!("{}: {}", lang.path(), path));
    }
    let title = format!("▸ {} ", lang.plan());
    let room = columns.saturating_sub(text::width(&title));
    Line::from(vec![
        Span::styled(title, theme.user()),
        Span::styled(text::cut(&parts.join(" · "), room), theme.strong()),
    ])
}

/// What of the longest chain is still to be done.
fn critical(known: &PlanEntry) -> String {
    let Some(graph) = known.plan.graph() else { return String::new() };
    let open = graph.critical().into_iter().filter_map(|task| known.plan.task(task));
    let open = open.filter(|view| !is_over(view)).map(|view| clean_line(&view.task.id));
    open.collect::<Vec<_>>().join(" → ")
}

fn is_over(view: &TaskView<'_>) -> bool {
    match view.status {
        TaskStatus::Done | TaskStatus::Skipped | TaskStatus::Cancelled => true,
        TaskStatus::Failed => view.waits == WaitReason::No,
        _ => false,
    }
}

/// Tasks that need a decision first, then running ones, then those that wait, then finished ones.
fn rank(view: &TaskView<'_>) -> u8 {
    match (view.status, &view.waits) {
        (TaskStatus::Failed, WaitReason::Ruling)
        | (TaskStatus::Running, WaitReason::Answer(_) | WaitReason::Budget | WaitReason::Stopped) => 0,
        (TaskStatus::Dispatched | TaskStatus::Running, _) | (TaskStatus::Failed, WaitReason::Retry { .. }) => 1,
        (TaskStatus::Failed, _) => 2,
        (TaskStatus::Approved, WaitReason::Approval | WaitReason::Place) => 3,
        (TaskStatus::Planned | TaskStatus::Approved, _) => 4,
        _ => 5,
    }
}

fn tasks(known: &PlanEntry, session: &Session, rows: usize, look: RowStyle, now_ms: i64) -> Vec<Line<'static>> {
    let mut views: Vec<TaskView<'_>> = known.plan.tasks().collect();
    views.sort_by_key(rank);
    let all = views.len();
    // A note about a single row takes as much room as the row.
    let shown = if all > rows { rows.saturating_sub(1) } else { all };
    views.truncate(shown);
    let widest = |words: &mut dyn Iterator<Item = usize>, most: usize| words.max().unwrap_or(0).min(most);
    let id_columns =
        widest(&mut views.iter().map(|view| text::width(&view.task.id)), ID_COLUMNS_MAX.min(look.columns / 4));
    let owner_columns =
        widest(&mut views.iter().map(|view| text::width(view.member)), OWNER_COLUMNS_MAX.min(look.columns / 6));
    let mut lines: Vec<Line<'static>> =
        views.iter().map(|view| row(view, known, session, (id_columns, owner_columns), look, now_ms)).collect();
    if all > shown && rows > 0 {
        let words = format!("  … {}", look.lang.more_tasks(all - shown));
        lines.push(Line::from(Span::styled(words, look.theme.faint())));
    }
    lines
}

fn row(
    view: &TaskView<'_>,
    known: &PlanEntry,
    session: &Session,
    (id_columns, owner_columns): (usize, usize),
    look: RowStyle,
    now_ms: i64,
) -> Line<'static> {
    let RowStyle { columns, theme, lang } = look;
    let teammate = session.crew().at(known.id, &view.task.id);
    let asks = session.questions.all().any(|question| question.by.is_at(&view.task.id));
    let sign = if asks { '?' } else { plan_text::mark(view) };
    let style = if asks { theme.warning() } else { style_of(view, look) };
    let mut spans = vec![
        Span::styled(format!("  {sign} "), style),
        Span::styled(pad(&clean_line(&view.task.id), id_columns), theme.strong()),
        Span::styled(format!(" {} ", pad(&clean_line(view.member), owner_columns)), theme.faint()),
    ];
    if columns >= STATE_COLUMNS_MIN {
        spans.push(Span::styled(format!("{} ", pad(lang.task_status(view.status), 8)), style));
    }
    let (began, ended) = view.since_ms;
    let time = match view.status {
        TaskStatus::Planned | TaskStatus::Approved => String::new(),
        TaskStatus::Dispatched | TaskStatus::Running => whole_seconds(since(began, now_ms)),
        _ if began > 0 && ended >= began => whole_seconds(since(began, ended)),
        _ => String::new(),
    };
    spans.push(Span::styled(format!("{} ", pad_left(&time, 10.min(columns / 6))), theme.faint()));
    if columns >= COST_COLUMNS_MIN {
        let nano = view.spent.nano.saturating_add(teammate.map_or(0, |teammate| session.turn_nano(teammate)));
        let money = if nano > 0 { spent(nano, view.spent.unknown_nano) } else { String::new() };
        spans.push(Span::styled(format!("{} ", pad_left(&money, 8)), theme.faint()));
    }
    let used: usize = spans.iter().map(|span| text::width(&span.content)).sum();
    let words = text::cut(&action(view, known, session, look, now_ms), columns.saturating_sub(used));
    spans.push(Span::styled(words, action_style(view, look)));
    Line::from(spans)
}

/// What a task does, or why it does nothing.
fn action(view: &TaskView<'_>, known: &PlanEntry, session: &Session, look: RowStyle, now_ms: i64) -> String {
    let lang = look.lang;
    let waits = clean_line(&plan_text::waits(view, now_ms, lang));
    let attempt = if view.attempt > 1 { format!(" (#{})", view.attempt) } else { String::new() };
    let first = |words: &str| clean_line(words.lines().find(|line| !line.trim().is_empty()).unwrap_or_default());
    match view.status {
        TaskStatus::Dispatched | TaskStatus::Running if waits.is_empty() => {
            if session.questions.all().any(|question| question.by.is_at(&view.task.id)) {
                return format!("{}{attempt}", lang.waiting_for_you());
            }
            let doing = session.crew().at(known.id, &view.task.id).map(|teammate| session.doing(teammate, now_ms));
            doing.unwrap_or_else(|| lang.working().to_owned()) + &attempt
        }
        TaskStatus::Done => view.result.map(|result| lang.outcome(result)).unwrap_or_default(),
        TaskStatus::Failed if !waits.is_empty() => {
            format!("{waits}: {}", first(&lang.task_error(view.error, view.error_kind)))
        }
        TaskStatus::Failed | TaskStatus::Cancelled => first(&lang.task_error(view.error, view.error_kind)),
        TaskStatus::Skipped => lang.task_status(view.status).to_owned(),
        _ => waits + &attempt,
    }
}

fn style_of(view: &TaskView<'_>, look: RowStyle) -> Style {
    let theme = look.theme;
    match (view.status, rank(view)) {
        (_, 0) => theme.warning(),
        (TaskStatus::Failed, _) => {
            if matches!(view.waits, WaitReason::Retry { .. }) {
                theme.warning()
            } else {
                theme.bad()
            }
        }
        (TaskStatus::Cancelled, _) => theme.bad(),
        (TaskStatus::Done, _) => theme.good(),
        (TaskStatus::Dispatched | TaskStatus::Running, _) => theme.user(),
        _ => theme.faint(),
    }
}

fn action_style(view: &TaskView<'_>, look: RowStyle) -> Style {
    match view.status {
        TaskStatus::Dispatched | TaskStatus::Running => Style::new(),
        TaskStatus::Failed | TaskStatus::Cancelled => style_of(view, look),
        _ => look.theme.faint(),
    }
}

/// Exactly so many columns.
fn pad(words: &str, columns: usize) -> String {
    let words = text::cut(words, columns);
    let blanks = columns.saturating_sub(text::width(&words));
    words + &" ".repeat(blanks)
}

fn pad_left(words: &str, columns: usize) -> String {
    let words = text::cut(words, columns);
    " ".repeat(columns.saturating_sub(text::width(&words))) + &words
}
