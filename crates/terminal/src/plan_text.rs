//! A plan as people read it: drawn, listed, with what proves each task and what it will cost.
//!
//! Plain text for every face; colours are the terminal's business. Nothing here decides or prints.

use std::fmt::Write as _;

use max_team_core::event::Event;
use max_team_core::ledger::dollars;
use max_team_core::plan::event::{Proof, TaskHeld};
use max_team_core::plan::{Forecast, Plan, TaskDraft, TaskStatus, TaskView, WaitReason};

use crate::text::{clean, width as measure, wrapped};
use max_team_workspace::format::spent;
use max_team_workspace::i18n::Lang;
use max_team_workspace::plan_diagram::draw;

/// Columns, unless the caller gives a width.
pub const WIDTH: usize = 100;
/// Tasks that are listed one by one.
const LISTED_MAX: usize = 200;
/// Columns of a task's caption.
const CAPTION_CHARS: usize = 70;
/// Rows of a task's instructions, unless all of them are wanted.
const INSTRUCTION_ROWS: usize = 3;
/// The sign of a task that starts only after the user's approval, as `draw` shows it.
const GATE: char = '◆';
/// The beginning of each of these rows.
const INSTRUCTION_MARK: &str = "│ ";

/// How much of each task's instructions is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanDetail<'a> {
    /// The first rows; the rest is shown by this key, flag or command.
    Brief(&'a str),
    Full,
}

impl PlanDetail<'_> {
    /// As much as a `--full` says; the command shows the rest.
    pub fn of(full: bool, command: &str) -> PlanDetail<'_> {
        if full { PlanDetail::Full } else { PlanDetail::Brief(command) }
    }
}

/// The whole plan.
pub fn sheet(plan: &Plan, width: usize, depth: PlanDetail<'_>, lang: Lang) -> String {
    let (Some(draft), Some(graph), Some(proposed)) = (plan.draft(), plan.graph(), plan.proposed()) else {
        return format!("({})\n", lang.no_plan());
    };
    let mut text = String::new();
    let _ = writeln!(text, "{} {}: {}", lang.plan(), proposed.plan, clean(&draft.goal));
    let marks = |task: usize| plan.task(task).map_or(' ', |view| mark(&view));
    for line in draw(draft, graph, &marks, width.saturating_sub(2), measure) {
        let _ = writeln!(text, "  {}", clean(&line));
    }
    text.push('\n');
    for view in plan.tasks().take(LISTED_MAX) {
        text.push_str(&entry(&view, width, depth, lang));
    }
    if draft.tasks.len() > LISTED_MAX {
        let _ = writeln!(text, "  … {}", lang.more_tasks(draft.tasks.len() - LISTED_MAX));
    }
    let critical: Vec<&str> =
        graph.critical().iter().filter_map(|task| draft.tasks.get(*task)).map(|task| task.id.as_str()).collect();
    let path = clip(&critical.join(" → "), width.saturating_sub(40).max(20));
    let _ = writeln!(text, "\n{}", lang.shape(draft.tasks.len(), graph.waves().len(), &path));
    let _ = writeln!(text, "{}", forecast(&proposed.forecast, lang));
    if (0..graph.len()).any(|task| graph.is_gated(task)) {
        let _ = writeln!(text, "{GATE} {}", lang.asks_before_task());
    }
    for risk in lang.plan_risks(proposed) {
        let _ = writeln!(text, "! {}", clean(&risk));
    }
    text
}

/// What it will cost and take, in a line.
pub fn forecast(forecast: &Forecast, lang: Lang) -> String {
    let range = forecast.likely_nano.map(|likely| money_range(likely, forecast.high_nano.unwrap_or(likely)));
    let mut text = lang.forecast(range.as_deref(), &duration(forecast.likely_ms), forecast.calls_likely);
    if let Some(budget) = forecast.budget_nano {
        text.push_str(&lang.forecast_budget(spent(budget, 0)));
    }
    if forecast.unpriced {
        text.push_str(lang.forecast_unpriced());
    }
    if forecast.samples > 0 {
        text.push_str(&lang.forecast_samples(forecast.samples));
    }
    text
}

/// `$0.10–0.60`; one figure where both are the same to the cent.
fn money_range(low: u64, high: u64) -> String {
    let [low, high] = [low, high].map(|nano| format!("{:.2}", dollars(nano)));
    match (low.as_str(), high.as_str()) {
        ("0.00", "0.00") => "< $0.01".to_owned(),
        (low, high) if low == high => format!("${low}"),
        (low, high) => format!("${low}–{high}"),
    }
}

/// The instructions of a task, in rows of at most this many columns.
pub fn instructions(task: &TaskDraft, width: usize, depth: PlanDetail<'_>, lang: Lang) -> Vec<String> {
    let words = task.description.trim();
    // One row that already stands in the caption says nothing new.
    if words == task.caption() && words.chars().count() <= CAPTION_CHARS {
        return Vec::new();
    }
    let mut rows = wrapped(&clean(words), width.saturating_sub(measure(INSTRUCTION_MARK)).max(1));
    if let PlanDetail::Brief(how) = depth
        && rows.len() > INSTRUCTION_ROWS
    {
        let hidden = rows.len() - INSTRUCTION_ROWS;
        rows.truncate(INSTRUCTION_ROWS);
        rows.push(lang.more_instructions(hidden, how));
    }
    rows.iter().map(|row| format!("{INSTRUCTION_MARK}{row}")).collect()
}

fn entry(view: &TaskView<'_>, width: usize, depth: PlanDetail<'_>, lang: Lang) -> String {
    let task = view.task;
    let mut text =
        format!("  {} {} ({}): {}\n", mark(view), task.id, view.member, clip(&clean(task.caption()), CAPTION_CHARS));
    for row in instructions(task, width.saturating_sub(6), depth, lang) {
        let _ = writeln!(text, "      {row}");
    }
    let mut more = |name: &str, words: String| {
        if !words.is_empty() {
            let _ = writeln!(text, "      {name}: {}", clean(&words));
        }
    };
    more(lang.needs(), task.needs.join(", "));
    more(lang.when(), task.when.clone().unwrap_or_default());
    let owns = task.owns.as_ref();
    more(lang.owns(), owns.map_or_else(String::new, |owns| lang.listed(owns)));
    more(lang.must_exist(), task.outputs.join(", "));
    more(lang.must_pass(), task.verify.join("; "));
    for note in view.notes {
        more(&lang.note_of(clean(&lang.person(&note.by))), note.text.clone());
    }
    more(lang.with_model(), task.model.clone().unwrap_or_default());
    more(lang.budget_of(), task.budget.nano.map(|nano| spent(nano, 0)).unwrap_or_default());
    if task.skip {
        more(lang.struck_out(), lang.yes_word().to_owned());
    }
    if view.status == TaskStatus::Failed || view.status == TaskStatus::Cancelled {
        more(lang.why(), clip(&lang.task_error(view.error, view.error_kind), 200));
    }
    if let Some(result) = view.result.filter(|_| view.status == TaskStatus::Done) {
        more(lang.result(), lang.outcome(result));
    }
    if let Some((correction, result)) = view.correction.as_ref().zip(view.result) {
        more(lang.correction(), lang.corrected(correction, result));
    }
    if let Some(decision) = view.decision {
        let note = if decision.note.is_empty() { String::new() } else { format!(": {}", decision.note) };
        more(lang.decision(), format!("{}{note}", lang.decided_by(&decision.by, &lang.ruling(&decision.ruling))));
    }
    text
}

/// A sign for how a task stands.
pub fn mark(view: &TaskView<'_>) -> char {
    match (view.status, &view.waits) {
        (TaskStatus::Planned, _) => '·',
        (TaskStatus::Approved, _) => '○',
        (
            TaskStatus::Dispatched | TaskStatus::Running,
            WaitReason::Answer(_) | WaitReason::Budget | WaitReason::Stopped,
        ) => '?',
        (TaskStatus::Dispatched | TaskStatus::Running, _) => '●',
        (TaskStatus::Done, _) if view.result.is_some_and(|result| result.proof == Proof::Verified) => '✓',
        (TaskStatus::Done, _) => '~',
        (TaskStatus::Failed, WaitReason::Retry { .. }) => '↻',
        (TaskStatus::Failed, _) => '✗',
        (TaskStatus::Skipped, _) => '-',
        (TaskStatus::Cancelled, _) => '×',
    }
}

/// Why a task does not move, in words; empty if it does.
pub fn waits(view: &TaskView<'_>, now_ms: i64, lang: Lang) -> String {
    match &view.waits {
        WaitReason::No => String::new(),
        WaitReason::For(needs) => lang.waits_for(needs.join(", ")),
        WaitReason::Approval => lang.waits_for_approval().to_owned(),
        WaitReason::Place => lang.waits_for_place().to_owned(),
        WaitReason::Answer(question) => lang.asks_what(question),
        WaitReason::Retry { at_ms } => {
            lang.again_in(duration(u64::try_from(at_ms.saturating_sub(now_ms)).unwrap_or(0)))
        }
        WaitReason::Ruling => lang.waits_for_ruling().to_owned(),
        WaitReason::Budget => lang.waits_for_budget().to_owned(),
        WaitReason::Stopped => lang.stopped_row().to_owned(),
        WaitReason::Checks => lang.being_checked().to_owned(),
        WaitReason::Server => lang.waits_for_server().to_owned(),
    }
}

/// One line about a step of a plan; nothing for what is not worth one.
pub fn step(event: &Event, lang: Lang) -> Option<String> {
    Some(match event {
        Event::TaskStarted(started) => format!("{}: {}", started.task, lang.begun(started.attempt)),
        Event::TaskHeld(TaskHeld { task, outage: Some(why), .. }) => {
            format!("{task}: {} ({})", lang.waits_for_server(), clip(why, 300))
        }
        Event::TaskDone(done) => format!("{}: {}", done.task, lang.done_with(lang.outcome(&done.result))),
        Event::TaskCorrected(corrected) => {
            format!("{}: {}", corrected.task, lang.corrected(&corrected.correction, &corrected.result))
        }
        Event::TaskFailed(failed) => {
            let error = clip(&lang.task_error(&failed.error, &failed.kind()), 300);
            format!("{}: {}", failed.task, lang.failed_with(&error, failed.retry_at_ms.is_some()))
        }
        Event::TaskAsked(asked) => format!("{}: {}", asked.task, lang.asks_what(&asked.question)),
        Event::TaskAnswered(answered) => {
            format!("{}: {}", answered.task, lang.told_by(&answered.by, &answered.answer))
        }
        Event::TaskRuled(ruled) => {
            format!("{}: {}", ruled.task, lang.decided_by(&ruled.by, &lang.ruling(&ruled.ruling)))
        }
        Event::TaskDeferred(deferred) => {
            format!("{}: {}", deferred.task, lang.checked_again_after(deferred.after.join(", ")))
        }
        Event::TaskChanged(changed) => format!("{}: {}", changed.task, lang.task_changed_by(lang.person(&changed.by))),
        Event::PlanRevised(revised) => {
            format!("{}: {}", lang.plan_word(), lang.plan_revised(&revised.revision.to_string(), &revised.held))
        }
        Event::RevisionEnded(ended) if !ended.reworked => {
            format!("{}: {}", lang.plan_word(), lang.revision_ended(ended.revision.to_string()))
        }
        Event::TaskStopped(stopped) if !stopped.files.is_empty() => {
            format!("{}: {}", stopped.task, lang.had_changed(&stopped.files))
        }
        Event::TaskSkipped(skipped) => format!("{}: {}", skipped.task, lang.left_out(&skipped.detail)),
        Event::TaskCancelled(cancelled) => {
            let files = Some(&cancelled.files).filter(|files| !files.is_empty());
            let files = files.map_or_else(String::new, |files| format!("; {}", lang.had_changed(files)));
            format!("{}: {}{files}", cancelled.task, lang.given_up(&cancelled.detail, &cancelled.kind))
        }
        Event::TaskPaused(paused) => {
            format!("{}: {}", paused.task, if paused.stopped { lang.stopped_row() } else { lang.paused() })
        }
        Event::PlanAnswered(answered) => {
            format!("{}: {}", lang.plan_word(), lang.said_by(&answered.say, &answered.by.name()))
        }
        Event::EditRefused(refused) => {
            let is_typed = !refused.flaws.is_empty();
            let why = if is_typed { lang.cannot_run(&refused.flaws) } else { refused.error.clone() };
            format!("{}: {}", lang.plan_word(), lang.cannot_change(why))
        }
        Event::PlanStopped(stopped) => {
            let what = stopped.task.as_deref().unwrap_or(lang.plan_word());
            format!("{what}: {}", lang.stopped_by(&stopped.by))
        }
        Event::PlanPaused(paused) if paused.stopped => {
            format!("{}: {}", lang.plan_word(), lang.stopped_by(&paused.by))
        }
        Event::PlanPaused(paused) => format!("{}: {}", lang.plan_word(), lang.paused_by(lang.person(&paused.by))),
        Event::PlanEnded(ended) => format!("{}: {}", lang.plan_word(), lang.came_to(ended.end, &ended.tally)),
        _ => return None,
    })
}

/// A time for people.
pub fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{} s", ms / 1_000),
        60_000..3_600_000 => format!("{} min", ms / 60_000),
        _ => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

fn clip(text: &str, chars: usize) -> String {
    let line = text.replace('\n', " ");
    match line.char_indices().nth(chars) {
        Some((cut, _)) => format!("{}…", line.get(..cut).unwrap_or_default()),
        None => line,
    }
}
