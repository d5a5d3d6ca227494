//! A plan as people read it: drawn, listed, with what proves each task and what it will cost.
//!
//! Plain text for every face; colours are the terminal's business. Nothing here decides or prints.

use std::fmt::Write as _;

use max_team_core::event::Event;
use max_team_core::ledger::NANO;
use max_team_core::plan::event::{PlanEnd, Proof};
use max_team_core::plan::{Forecast, Plan, Status, TaskView, Waits, draw};

use crate::terminal::text::{clean, width as measure};

/// Columns, where nobody says how wide it may be.
pub(crate) const WIDTH: usize = 100;
/// Tasks that are listed one by one.
const LISTED_MAX: usize = 200;
/// Columns of a task's caption.
const CAPTION_CHARS: usize = 70;

/// The whole plan.
pub(crate) fn sheet(plan: &Plan, width: usize) -> String {
    let (Some(draft), Some(graph), Some(proposed)) = (plan.draft(), plan.graph(), plan.proposed()) else {
        return "(no plan)\n".to_owned();
    };
    let mut text = String::new();
    let _ = writeln!(text, "Plan {}: {}", proposed.plan, clean(&draft.goal));
    let marks = |task: usize| plan.task(task).map_or(' ', |view| mark(&view));
    for line in draw(draft, graph, &marks, width, measure) {
        let _ = writeln!(text, "  {}", clean(&line));
    }
    text.push('\n');
    for view in plan.tasks().take(LISTED_MAX) {
        text.push_str(&entry(&view));
    }
    if draft.tasks.len() > LISTED_MAX {
        let _ = writeln!(text, "  … and {} more tasks", draft.tasks.len() - LISTED_MAX);
    }
    let critical: Vec<&str> =
        graph.critical().iter().filter_map(|task| draft.tasks.get(*task)).map(|task| task.id.as_str()).collect();
    let _ = writeln!(
        text,
        "\n{} tasks in {} waves, critical path: {}",
        draft.tasks.len(),
        graph.waves().len(),
        clip(&critical.join(" → "), width.saturating_sub(40))
    );
    let _ = writeln!(text, "{}", forecast(&proposed.forecast));
    for risk in &proposed.risks {
        let _ = writeln!(text, "! {}", clean(risk));
    }
    text
}

/// What it will cost and take, in a line.
pub(crate) fn forecast(forecast: &Forecast) -> String {
    let dollars = |nano: Option<u64>| nano.map_or_else(|| "?".to_owned(), |nano| format!("${:.2}", dollars(nano)));
    let unpriced = if forecast.unpriced { " (some models have no price)" } else { "" };
    format!(
        "likely {} and about {}, at most {}{unpriced}; about {} model calls",
        dollars(forecast.likely_nano),
        duration(forecast.likely_ms),
        dollars(forecast.worst_nano),
        forecast.calls_likely,
    )
}

fn entry(view: &TaskView<'_>) -> String {
    let task = view.task;
    let mut text =
        format!("  {} {} ({}): {}\n", mark(view), task.id, view.member, clip(&clean(task.caption()), CAPTION_CHARS));
    let mut more = |name: &str, words: String| {
        if !words.is_empty() {
            let _ = writeln!(text, "      {name}: {}", clean(&words));
        }
    };
    more("needs", task.needs.join(", "));
    more("when", task.when.clone().unwrap_or_default());
    more("owns", task.owns.join(", "));
    more("must exist", task.outputs.join(", "));
    more("must pass", task.verify.join("; "));
    if view.status == Status::Failed || view.status == Status::Cancelled {
        more("why", clip(view.error, 200));
    }
    if let Some(result) = view.result {
        more("result", proof(result.proof).to_owned());
    }
    text
}

/// A sign for how a task stands.
pub(crate) fn mark(view: &TaskView<'_>) -> char {
    match (view.status, &view.waits) {
        (Status::Planned, _) => '·',
        (Status::Approved, _) => '○',
        (Status::Dispatched | Status::Running, Waits::Answer(_) | Waits::Budget) => '?',
        (Status::Dispatched | Status::Running, _) => '●',
        (Status::Done, _) if view.result.is_some_and(|result| result.proof == Proof::Verified) => '✓',
        (Status::Done, _) => '~',
        (Status::Failed, Waits::Retry { .. }) => '↻',
        (Status::Failed, _) => '✗',
        (Status::Skipped, _) => '-',
        (Status::Cancelled, _) => '×',
    }
}

/// Why a task does not move, in words; empty if it does.
pub(crate) fn waits(view: &TaskView<'_>, now_ms: i64) -> String {
    match &view.waits {
        Waits::No => String::new(),
        Waits::For(needs) => format!("waits for {}", needs.join(", ")),
        Waits::Approval => "waits for your approval".to_owned(),
        Waits::Place => "waits for a free place".to_owned(),
        Waits::Answer(question) => format!("asks: {question}"),
        Waits::Retry { at_ms } => {
            let left = u64::try_from(at_ms.saturating_sub(now_ms)).unwrap_or(0);
            format!("tried again in {}", duration(left))
        }
        Waits::Ruling => "failed; waits for a decision".to_owned(),
        Waits::Budget => "waits for more budget".to_owned(),
        Waits::Checks => "being checked".to_owned(),
    }
}

/// One line about a step of a plan; nothing for what is not worth one.
pub(crate) fn step(event: &Event) -> Option<String> {
    Some(match event {
        Event::TaskStarted(started) => format!("{}: begun (attempt {})", started.task, started.attempt),
        Event::TaskDone(done) => format!("{}: done, {}", done.task, proof(done.result.proof)),
        Event::TaskFailed(failed) => {
            let then = if failed.retry_at_ms.is_some() { "; it is tried again" } else { "" };
            format!("{}: failed: {}{then}", failed.task, clip(&failed.error, 300))
        }
        Event::TaskAsked(asked) => format!("{}: asks: {}", asked.task, asked.question),
        Event::TaskAnswered(answered) => format!("{}: told by {}: {}", answered.task, answered.by, answered.answer),
        Event::TaskRuled(ruled) => format!("{}: {} decides: {}", ruled.task, ruled.by, ruling(&ruled.ruling)),
        Event::TaskSkipped(skipped) => format!("{}: skipped: {}", skipped.task, skipped.detail),
        Event::TaskCancelled(cancelled) => format!("{}: given up: {}", cancelled.task, cancelled.detail),
        Event::TaskPaused(paused) => format!("{}: paused: the budget is used up", paused.task),
        Event::PlanAnswered(answered) => format!("plan: answered by {}", answered.by.name()),
        Event::PlanStopped(stopped) => format!("plan: stopped by {}", stopped.by),
        Event::PlanEnded(ended) => {
            let tally = ended.tally;
            format!(
                "plan: {}: {} of {} ran, {} done, {} verified, {} failed, ${:.4}",
                end(ended.end),
                tally.ran,
                tally.tasks,
                tally.done,
                tally.verified,
                tally.failed,
                dollars(tally.spent.nano)
            )
        }
        _ => return None,
    })
}

fn ruling(ruling: &max_team_core::plan::event::Ruling) -> String {
    use max_team_core::plan::event::Ruling;
    match ruling {
        Ruling::Skip => "go on without it".to_owned(),
        Ruling::Retry { agent, model, .. } => {
            let by = agent.as_ref().map(|agent| format!(" by {agent}")).unwrap_or_default();
            let with = model.as_ref().map(|model| format!(" with {model}")).unwrap_or_default();
            format!("again{by}{with}")
        }
        Ruling::Fixed => "mended by hand, check again".to_owned(),
        Ruling::GiveUp => "give it up".to_owned(),
        Ruling::Escalate => "the user must say".to_owned(),
    }
}

/// How a plan ended, in a word.
pub(crate) fn end(end: PlanEnd) -> &'static str {
    match end {
        PlanEnd::Done => "done",
        PlanEnd::Partial => "partly done",
        PlanEnd::Failed => "failed",
        PlanEnd::Stopped => "stopped",
        PlanEnd::Rejected => "rejected",
        PlanEnd::Replaced => "replaced",
    }
}

fn proof(proof: Proof) -> &'static str {
    match proof {
        Proof::Verified => "verified",
        Proof::Unverified => "unverified",
        Proof::Failed => "failed",
    }
}

/// A time for people.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{} s", ms / 1_000),
        60_000..3_600_000 => format!("{} min", ms / 60_000),
        _ => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

#[expect(clippy::cast_precision_loss, reason = "for reading; the ledger keeps whole nano-dollars")]
pub(crate) fn dollars(nano: u64) -> f64 {
    nano as f64 / NANO as f64
}

fn clip(text: &str, chars: usize) -> String {
    let line = text.replace('\n', " ");
    match line.char_indices().nth(chars) {
        Some((cut, _)) => format!("{}…", line.get(..cut).unwrap_or_default()),
        None => line,
    }
}
