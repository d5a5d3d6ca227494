//! What stands in the transcript besides the model's own words, and how it is drawn.
//!
//! A [`Row`] is what happened, [`Row::lines`] its look at a width.
//! Rows are folded: a tool call is one line, and only what a person would want to check (a diff) stands below it.

use std::sync::Arc;

use max_team_core::cost::Spending;
use max_team_core::event::{ToolOutcome, TurnOutcome};
use max_team_core::mention::Label;
use max_team_core::output::rendered;
use max_team_core::plan::TaskStatus;
use max_team_core::plan::event::PlanEnd;
use max_team_core::recovery::Failure;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use serde_json::Value;

use super::diff;
use super::plans::DrawnPlan;
use super::text::{self, Excerpt, clean, clean_line, excerpt};
use super::theme::Theme;
use crate::plan_text;
use max_team_workspace::format;
use max_team_workspace::i18n::Lang;

/// Lines of a diff that stay in the transcript.
const DIFF_LINES_MAX: usize = 24;
/// Lines of one message of the user that stay in the transcript.
const SAID_LINES_MAX: usize = 12;
/// Tasks of a plan that is over that stay in the transcript.
const SUMMARY_ROWS_MAX: usize = 12;
/// Lines of what a teammate has come to that stay in the transcript.
const TEAMMATE_LINES_MAX: usize = 12;
/// Lines of a command's output that stay in the transcript: of its beginning …
const FIRST_LINES: usize = 2;
/// … and of its end;
const LAST_LINES: usize = 3;
/// of one that failed, only of its end.
const FAILED_LINES: usize = 5;
/// Columns before a line of output.
const OUTPUT_INDENT: usize = 4;
/// The tool whose result begins with how the command ended.
const RUN_SHELL: &str = "run_shell";
/// The result of a command that printed nothing.
const PRINTED_NOTHING: &str = "(it printed nothing)";
/// Calls that took longer say how long.
const SLOW_MS: u64 = 100;

/// How rows are drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowStyle {
    pub(super) columns: usize,
    pub(super) theme: Theme,
    pub(super) lang: Lang,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Row {
    /// The user's words.
    Said(String),
    /// The files that their message mentions.
    Files(Vec<Label>),
    /// The model thought, for so long if anybody looked.
    Thought(Option<u64>),
    Tool(ToolRow),
    Retry {
        failure: Failure,
        wait_ms: u64,
        nth: u32,
        of: u32,
    },
    Fallback {
        failure: Option<Failure>,
        model: String,
    },
    /// The turn is over, and not simply with an answer.
    Ended(TurnOutcome),
    Footer {
        spent: Spending,
        ms: u64,
    },
    /// Something worth knowing.
    Note(String),
    /// Something that went wrong.
    Error(String),
    /// Names and values, for `/cost` and the like.
    Table(Vec<(String, String)>),
    /// A member did the one thing it was given to do, or did not.
    Member {
        words: String,
        ok: bool,
    },
    /// A teammate's turn is over: what came of it.
    Teammate {
        name: String,
        color: String,
        words: String,
        figures: String,
        ok: bool,
    },
    /// A message between agents.
    Mail {
        from: String,
        color: String,
        to: String,
        text: String,
    },
    /// A step of a plan.
    Step {
        sign: &'static str,
        bad: bool,
        words: String,
    },
    /// How a file changes when it is put back.
    Diff(String),
    /// A whole plan; with all instructions, or the first lines of each.
    Sheet(DrawnPlan, bool),
    /// A plan that is over, after so long.
    Over(DrawnPlan, u64),
}

/// One tool call, ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ToolRow {
    pub(super) tool: String,
    pub(super) target: String,
    pub(super) ending: ToolOutcome,
    pub(super) is_error: bool,
    /// The text of its result.
    pub(super) result: String,
    pub(super) images: usize,
    pub(super) ms: u64,
    /// The diff that it made.
    pub(super) preview: String,
    /// The input of the call.
    pub(super) input: Option<Arc<Value>>,
    /// Whether it ran a command: its result is what that printed.
    pub(super) is_command: bool,
    /// Whether its result is what the user said.
    pub(super) told: bool,
    /// Whether its result ends with what became of a copy.
    pub(super) settled: bool,
}

/// Rows of one kind stand together, without an empty line between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    User,
    /// It stands right below the message.
    Files,
    Text,
    Work,
    Note,
    End,
    Report,
}

impl Row {
    pub(super) fn group(&self) -> Group {
        match self {
            Self::Said(_) => Group::User,
            Self::Files(_) => Group::Files,
            Self::Thought(_) | Self::Tool(_) | Self::Member { .. } | Self::Teammate { .. } | Self::Mail { .. } => {
                Group::Work
            }
            Self::Ended(_) | Self::Footer { .. } => Group::End,
            Self::Table(_) | Self::Diff(_) | Self::Sheet(..) | Self::Over(..) => Group::Report,
            _ => Group::Note,
        }
    }

    /// The lines at a width.
    pub(super) fn lines(&self, look: RowStyle) -> Vec<Line<'static>> {
        let RowStyle { theme, lang, .. } = look;
        match self {
            Self::Said(words) => said(words, look),
            Self::Files(labels) => labels.iter().map(|label| file(label, look)).collect(),
            Self::Thought(ms) => {
                let words = ms.map_or_else(|| lang.thought().to_owned(), |ms| lang.thought_for(ms));
                marked("✻", theme.faint(), &words, theme.faint(), look)
            }
            Self::Tool(tool) => tool.lines(look),
            Self::Retry { failure, wait_ms, nth, of } => {
                marked("↻", theme.warning(), &lang.retry(failure, *wait_ms, *nth, *of), theme.warning(), look)
            }
            Self::Fallback { failure, model } => {
                let why = failure.as_ref().map_or_else(String::new, |failure| format!("{}: ", lang.failure(failure)));
                marked("↻", theme.warning(), &format!("{why}{}", lang.fallback(model)), theme.warning(), look)
            }
            Self::Ended(end) => {
                let words = lang.end(end).unwrap_or_default();
                let style = match end {
                    TurnOutcome::Failed { .. } | TurnOutcome::Broken { .. } => theme.bad(),
                    _ => theme.warning(),
                };
                marked("■", style, &words, style, look)
            }
            Self::Footer { spent, ms } => marked("─", theme.faint(), &lang.footer(spent, *ms), theme.faint(), look),
            Self::Note(words) => wrapped(words, theme.faint(), look.columns),
            Self::Error(words) => marked("✗", theme.bad(), words, theme.bad(), look),
            Self::Table(rows) => table(rows, look),
            Self::Member { words, ok: true } => marked("⏺", theme.good(), words, theme.faint(), look),
            Self::Member { words, ok: false } => marked("✗", theme.warning(), words, theme.warning(), look),
            Self::Teammate { name, color, words, figures, ok } => {
                teammate_lines(name, color, words, figures, *ok, look)
            }
            Self::Mail { from, color, to, text } => {
                let room = look.columns.saturating_sub(text::width(from) + 2);
                let words = text::cut(&format!(" → {}: {}", clean_line(to), clean_line(text)), room);
                let from = Span::styled(clean_line(from), theme.teammate(color));
                vec![Line::from(vec![Span::styled("✉ ", theme.faint()), from, Span::styled(words, theme.faint())])]
            }
            Self::Step { sign, bad, words } => {
                let style = if *bad { theme.bad() } else { theme.faint() };
                marked(sign, if *bad { theme.bad() } else { theme.warning() }, words, style, look)
            }
            Self::Diff(diff) => folded(diff::lines(diff, look.columns.saturating_sub(2), theme), DIFF_LINES_MAX, look),
            Self::Sheet(plan, is_full) => sheet_lines(plan, *is_full, look),
            Self::Over(plan, ms) => summary_lines(plan, *ms, look),
        }
    }
}

impl ToolRow {
    /// The approximate size of its content in bytes.
    pub(super) fn bytes(&self) -> usize {
        let input = self.input.as_ref().map_or(0, |input| input.to_string().len());
        self.target.len() + self.result.len() + self.preview.len() + input
    }

    /// The call and its outcome, in a line.
    pub(super) fn header(&self, look: RowStyle) -> Vec<Line<'static>> {
        let theme = look.theme;
        let (sign, style) = match self.ending {
            ToolOutcome::Ran if !self.is_error => ("⏺", theme.good()),
            ToolOutcome::Refused | ToolOutcome::Interrupted => ("✗", theme.warning()),
            _ => ("✗", theme.bad()),
        };
        let mut spans = call(sign, style, &self.tool, &self.target, theme);
        spans.push(Span::styled(self.outcome(look.lang), if sign == "⏺" { theme.faint() } else { style }));
        // The outcome of a command that failed says its time.
        let says_time = self.is_command && self.is_error && self.ending == ToolOutcome::Ran;
        if self.ms >= SLOW_MS && !says_time {
            spans.push(Span::styled(format!(" {}", format::duration(self.ms)), theme.faint()));
        }
        hang(&spans, look.columns)
    }

    fn lines(&self, look: RowStyle) -> Vec<Line<'static>> {
        let theme = look.theme;
        let mut lines = self.header(look);
        lines.extend(self.excerpt(look));
        if self.ending == ToolOutcome::Ran && !self.is_error && !self.preview.is_empty() {
            lines.extend(folded(
                diff::lines(&self.preview, look.columns.saturating_sub(2), theme),
                DIFF_LINES_MAX,
                look,
            ));
        }
        lines
    }

    /// The output of a command. Its first line says how it ended; for a failed command the header shows it.
    fn printed(&self) -> &str {
        if self.tool != RUN_SHELL && !self.is_error {
            return &self.result;
        }
        let printed = self.result.split_once('\n').map_or("", |(_, printed)| printed);
        if printed.trim() == PRINTED_NOTHING { "" } else { printed }
    }

    /// The first and last lines of a command's output; only the last ones if it failed.
    fn excerpt(&self, look: RowStyle) -> Vec<Line<'static>> {
        if !self.is_command || !matches!(self.ending, ToolOutcome::Ran) {
            return Vec::new();
        }
        let (first, last) = if self.is_error { (0, FAILED_LINES) } else { (FIRST_LINES, LAST_LINES) };
        let printed = rendered(self.printed());
        let Excerpt { first, left_out, last } = excerpt(&printed, first, last);
        let style = if self.is_error { Style::default() } else { look.theme.faint() };
        let shown = |line: &&str| (clean_line(line), style);
        let mut rows: Vec<(String, Style)> = first.iter().map(shown).collect();
        if left_out > 0 {
            rows.push((look.lang.more_output(left_out), look.theme.faint()));
        }
        rows.extend(last.iter().map(shown));
        output(rows, look)
    }

    /// What came of it, in a few words.
    fn outcome(&self, lang: Lang) -> String {
        let first = || clean_line(self.result.lines().find(|line| !line.trim().is_empty()).unwrap_or_default());
        match self.ending {
            ToolOutcome::Refused => format!(" {}: {}", lang.refused(), first()),
            ToolOutcome::Interrupted => format!(" {}", lang.stopped_row()),
            ToolOutcome::Unknown => format!(" {}", lang.outcome_unknown()),
            _ if self.is_error => format!(" {}", first()),
            _ if !self.preview.is_empty() => {
                let (added, removed) = diff::counts(&self.preview);
                format!(" (+{added} -{removed})")
            }
            _ if self.told => {
                let words = first();
                format!(" → {}", words.strip_prefix("The user answers: ").unwrap_or(&words))
            }
            _ if self.settled => {
                let last = clean_line(self.result.trim_end().lines().next_back().unwrap_or_default());
                format!(" → {}", last.trim_matches(['[', ']']))
            }
            _ if self.images > 0 => format!(" ({})", lang.image()),
            _ if self.is_command && self.printed().trim().is_empty() => format!(" ({})", lang.no_output()),
            _ if self.is_command => format!(" ({})", lang.lines(self.printed().trim_end().lines().count())),
            _ => format!(" ({})", lang.lines(self.result.lines().count())),
        }
    }
}

/// Lines of output below a call, each in one row.
pub(super) fn output(rows: Vec<(String, Style)>, look: RowStyle) -> Vec<Line<'static>> {
    let room = look.columns.saturating_sub(OUTPUT_INDENT);
    let draw = |(index, (words, style)): (usize, (String, Style))| {
        let sign = if index == 0 { "  ⎿ " } else { "    " };
        Line::from(vec![Span::styled(sign, look.theme.faint()), Span::styled(text::cut(&words, room), style)])
    };
    rows.into_iter().enumerate().map(draw).collect()
}

/// A call as far as it is known: sign, tool, target.
pub(super) fn call(sign: &str, style: Style, tool: &str, target: &str, theme: Theme) -> Vec<Span<'static>> {
    let mut spans = vec![Span::styled(format!("{sign} "), style), Span::styled(clean_line(tool), theme.strong())];
    if !target.is_empty() {
        spans.push(Span::raw(format!(" {}", clean_line(target))));
    }
    spans
}

/// Keeps the first lines, two columns in, and says how many there are more.
pub(super) fn folded(lines: Vec<Line<'static>>, most: usize, look: RowStyle) -> Vec<Line<'static>> {
    let left_out = lines.len().saturating_sub(most);
    // A note about a single line takes as much room as the line.
    let shown = if left_out > 1 { most } else { lines.len() };
    let mut shown: Vec<Line<'static>> = lines.into_iter().take(shown).collect();
    if left_out > 1 {
        shown.push(Line::from(Span::styled(look.lang.more_lines(left_out), look.theme.faint())));
    }
    for line in &mut shown {
        line.spans.insert(0, Span::raw("  "));
    }
    shown
}

/// Wraps spans so that what follows the first line stands two columns in.
fn hang(spans: &[Span<'_>], columns: usize) -> Vec<Line<'static>> {
    let mut lines = text::wrap(spans, columns.saturating_sub(2));
    for line in lines.iter_mut().skip(1) {
        line.spans.insert(0, Span::raw("  "));
    }
    lines
}

fn marked(sign: &str, sign_style: Style, words: &str, style: Style, look: RowStyle) -> Vec<Line<'static>> {
    hang(&[Span::styled(format!("{sign} "), sign_style), Span::styled(clean(words), style)], look.columns)
}

/// What a teammate has come to: its name in its colour, then its words.
fn teammate_lines(name: &str, color: &str, words: &str, figures: &str, ok: bool, look: RowStyle) -> Vec<Line<'static>> {
    let theme = look.theme;
    let (sign, style) = if ok { ("⏺ ", theme.good()) } else { ("✗ ", theme.warning()) };
    let mut lines = vec![Line::from(vec![
        Span::styled(sign, style),
        Span::styled(clean_line(name), theme.teammate(color)),
        Span::styled(format!(" · {figures}"), theme.faint()),
    ])];
    let told = text::wrap(&[Span::raw(clean(words.trim_end()))], look.columns.saturating_sub(2));
    lines.extend(folded(told, TEAMMATE_LINES_MAX, look));
    lines
}

fn wrapped(words: &str, style: Style, columns: usize) -> Vec<Line<'static>> {
    text::wrap(&[Span::styled(clean(words), style)], columns)
}

fn said(words: &str, look: RowStyle) -> Vec<Line<'static>> {
    let style = look.theme.user();
    let lines = text::wrap(&[Span::styled(clean(words), look.theme.strong())], look.columns.saturating_sub(2));
    let mut lines = folded(lines, SAID_LINES_MAX, look);
    if let Some(indent) = lines.first_mut().and_then(|line| line.spans.first_mut()) {
        *indent = Span::styled("> ", style);
    }
    lines
}

/// A mentioned file: what of it the model reads, or why it does not.
fn file(label: &Label, look: RowStyle) -> Line<'static> {
    let (theme, lang) = (look.theme, look.lang);
    let words = match label {
        Label { is_included: false, note, .. } => format!("{}: {note}", lang.not_included()),
        Label { path, lines, .. } if path.ends_with('/') => lang.names_in_folder(*lines),
        Label { lines: 0, note, .. } => note.clone(),
        Label { lines, note, .. } if note.is_empty() => lang.lines(*lines),
        Label { lines, note, .. } => format!("{}; {note}", lang.lines(*lines)),
    };
    let words = text::cut(&clean_line(&format!("  ⎿ {} · {words}", label.path)), look.columns);
    Line::from(Span::styled(words, if label.is_included { theme.faint() } else { theme.warning() }))
}

fn table(rows: &[(String, String)], look: RowStyle) -> Vec<Line<'static>> {
    let widest = rows.iter().map(|(name, _)| text::width(name)).max().unwrap_or(0);
    let draw = |(name, value): &(String, String)| {
        let pad = " ".repeat(widest.saturating_sub(text::width(name)) + 2);
        hang(
            &[Span::styled(clean_line(name), look.theme.strong()), Span::raw(pad), Span::raw(clean_line(value))],
            look.columns,
        )
    };
    rows.iter().flat_map(draw).collect()
}

/// A plan as a sheet, in the available columns.
fn sheet_lines(plan: &DrawnPlan, is_full: bool, look: RowStyle) -> Vec<Line<'static>> {
    let depth = plan_text::PlanDetail::of(is_full, "/plan full");
    let text = plan_text::sheet(&plan.0, look.columns.min(plan_text::WIDTH), depth, look.lang);
    let draw = |(index, line): (usize, &str)| {
        let style = match line.trim_start().chars().next() {
            _ if index == 0 => look.theme.strong(),
            Some('!') => look.theme.warning(),
            _ => Style::new(),
        };
        let words = line.trim_start();
        let indent = line.len() - words.len();
        let mut lines = text::wrap(&[Span::styled(clean(words), style)], look.columns.saturating_sub(indent));
        for line in &mut lines {
            line.spans.insert(0, Span::raw(" ".repeat(indent)));
        }
        lines
    };
    text.trim_end().lines().enumerate().flat_map(draw).collect()
}

/// What is left of a plan: what it came to, and the tasks, those that went wrong first.
fn summary_lines(plan: &DrawnPlan, ms: u64, look: RowStyle) -> Vec<Line<'static>> {
    let RowStyle { theme, lang, columns } = look;
    let Some(end) = plan.0.ended() else { return Vec::new() };
    let tally = plan.0.tally();
    let good = end == PlanEnd::Done;
    let (sign, style) = if good { ("✓", theme.good()) } else { ("■", theme.warning()) };
    let words = format!("{}: {} · {}", lang.plan(), lang.came_to(end, &tally), format::duration(ms));
    let mut lines = marked(sign, style, &words, theme.strong(), look);
    if tally.ran + tally.cached == 0 {
        return lines;
    }
    let mut views: Vec<_> = plan.0.tasks().collect();
    views.sort_by_key(|view| !matches!(view.status, TaskStatus::Failed | TaskStatus::Cancelled));
    let shown = if views.len() > SUMMARY_ROWS_MAX { SUMMARY_ROWS_MAX - 1 } else { views.len() };
    for view in views.iter().take(shown) {
        let what = match view.result.filter(|_| view.status == TaskStatus::Done) {
            Some(result) => lang.outcome(result),
            None if view.error.is_empty() => lang.task_status(view.status).to_owned(),
            None => format!("{}: {}", lang.task_status(view.status), lang.task_error(view.error, view.error_kind)),
        };
        let money = format::spent(view.spent.nano, view.spent.unknown_nano);
        let money = if view.spent.nano > 0 { format!(" · {money}") } else { String::new() };
        let words = format!("  {} {} ({}) {what}{money}", plan_text::mark(view), view.task.id, view.member);
        lines.push(Line::from(Span::styled(text::cut(&clean_line(&words), columns), theme.faint())));
    }
    if views.len() > shown {
        let words = format!("  … {}", lang.more_tasks(views.len() - shown));
        lines.push(Line::from(Span::styled(words, theme.faint())));
    }
    lines
}
