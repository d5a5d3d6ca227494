//! An event as people read it: when, who, what; a line each, and an answer as it is.

use max_team_core::id::AgentId;
use max_team_core::output::rendered;
use max_team_runtime::stream::{ApprovalStep, BudgetStep, TaskStep};
use max_team_runtime::{StreamEvent, What};

use crate::commands::table::clip;
use max_team_terminal::text::{Excerpt, clean, clean_line, excerpt, width};
use max_team_workspace::format::short;
use max_team_workspace::format::tokens;
use max_team_workspace::i18n::Lang;

/// Characters of what is said in a line.
const LINE_CHARS: usize = 160;
/// Lines of a failure's output.
const FAILED_LINES: usize = 5;
/// Columns of a name.
const NAME_COLUMNS: usize = 10;

/// The event in a line, or in several where it is an answer.
pub(in crate::commands) fn line(event: &StreamEvent, lang: Lang) -> String {
    let who = event.agent.as_ref().map_or_else(|| whose(&event.what, lang), |who| who.name.clone());
    let who = clip(&clean_line(&who), NAME_COLUMNS * 2);
    let room = " ".repeat(NAME_COLUMNS.saturating_sub(width(&who)));
    let told = told(&event.what, lang);
    let room = if told.starts_with('\n') { String::new() } else { format!("{room}  ") };
    let mut line = format!("{}  {who}{room}{told}", time(event.at_ms));
    if event.cut {
        line.push_str(&format!(" {}", lang.cut_word()));
    }
    // A line may hold text from any file, so control characters that are left are removed here.
    clean(line.trim_end()).into_owned()
}

/// Whose doing it is where it is no agent's.
fn whose(what: &What, lang: Lang) -> String {
    match what {
        What::Mail { from, .. } if !from.starts_with("plan/") => address(from, lang),
        What::Mail { .. } | What::Plan { .. } | What::Task { .. } | What::Approval { .. } | What::Budget { .. } => {
            lang.plan_word().to_owned()
        }
        _ => lang.session_word().to_owned(),
    }
}

fn told(what: &What, lang: Lang) -> String {
    match what {
        What::Status { model: Some(model), .. } => lang.calling(model, 1),
        What::Status { message, .. } => one(&lang.step(message)),
        What::ToolStart { tool_name, target, .. } => format!("→ {}", one(&format!("{tool_name} {target}"))),
        What::ToolResult { tool_name, summary, tool_result, is_error, ms, .. } => {
            let sign = if *is_error { '✗' } else { '✓' };
            let head = format!("{sign} {}", one(&format!("{tool_name} ({ms} ms): {summary}")));
            if *is_error { format!("{head}{}", last_lines(tool_result)) } else { head }
        }
        What::ContentDelta { delta, .. } => one(delta),
        What::Final { response, .. } => whole(response),
        What::Error { message, retry_at_ms, .. } => {
            lang.failed_with(&one(lang.failure_cause(message)), retry_at_ms.is_some())
        }
        What::Plan { .. } => plan(what, lang),
        What::Task { .. } => task(what, lang),
        What::Mail { to, to_name, kind, message, .. } => {
            let kind = serde_json::to_value(kind).ok().and_then(|kind| kind.as_str().map(str::to_owned));
            let to = if to_name.is_empty() { address(to, lang) } else { clean_line(to_name) };
            let head = format!("{} → {}, {}", lang.mail_word(), to, kind.unwrap_or_default());
            one(&with(&head, ": ", message))
        }
        What::Approval { .. } => approval(what, lang),
        What::Budget { .. } => budget(what, lang),
        What::Session { status } => {
            let working: Vec<String> = status.working().map(clean_line).collect();
            one(&lang.session_status(&working, status.questions()))
        }
        What::Agent { state, reason, message } => {
            let state = lang.person_state(*state, reason.as_ref());
            let reason = reason.as_ref().map(|reason| lang.idle_because(reason)).unwrap_or_default();
            one(&with(&with(state, "; ", &reason), ": ", &lang.step(message)))
        }
    }
}

fn plan(what: &What, lang: Lang) -> String {
    let What::Plan { plan, state, goal, tasks, task, message, by, .. } = what else { return String::new() };
    let mut line = format!("{} {} {}", lang.plan_word(), short(plan), lang.plan_step(*state));
    if !tasks.is_empty() {
        line = with(&line, ", ", &lang.so_many_tasks(tasks.len()));
    }
    line = with(&line, ", ", task.as_deref().unwrap_or_default());
    line = with(&line, ", ", &by.as_deref().map(|by| lang.by_whom(lang.person(by))).unwrap_or_default());
    one(&with(&with(&line, ": ", goal), ": ", message))
}

fn task(what: &What, lang: Lang) -> String {
    let What::Task { task, state, attempt, member, message, by, retry_at_ms, .. } = what else { return String::new() };
    let mut line = format!("{} {task} {}", lang.task_word(), lang.task_step(*state));
    line = with(&line, " → ", member.as_deref().unwrap_or_default());
    if let Some(attempt) = attempt.filter(|attempt| *attempt > 1) {
        line = with(&line, ", ", &lang.try_number(attempt));
    }
    if let Some(by) = by {
        line = with(&line, ", ", &lang.by_whom(lang.person(by)));
    }
    line = with(&line, ": ", message);
    if retry_at_ms.is_some() {
        line = with(&line, "; ", lang.task_step(TaskStep::Approved));
    }
    one(&line)
}

fn approval(what: &What, lang: Lang) -> String {
    let What::Approval { question, state, tool_name, message, said, by, .. } = what else { return String::new() };
    let head = match state {
        ApprovalStep::Asked => with(lang.asks(), " ", tool_name.as_deref().unwrap_or_default()),
        ApprovalStep::Answered => {
            let by = by.as_ref().map(|by| lang.by_whom(lang.author(by))).unwrap_or_default();
            with(said.map(|said| lang.answer_word(said)).unwrap_or_default(), " ", &by)
        }
        ApprovalStep::Withdrawn => lang.withdrawn().to_owned(),
    };
    format!("{} [{}]", one(&with(&head, ": ", &lang.step(message))), short(question))
}

fn budget(what: &What, lang: Lang) -> String {
    let What::Budget { state, model, usage, cost_usd, task, .. } = what else { return String::new() };
    let used = usage.map(|usage| {
        let cost = cost_usd.map_or_else(|| "?".to_owned(), |dollars| format!("${dollars:.4}"));
        lang.used(tokens(usage.input_total()), tokens(usage.output), &cost)
    });
    let what = if *state == BudgetStep::Spent { String::new() } else { lang.budget_step(*state).to_owned() };
    let line = with(model.as_deref().unwrap_or_default(), ": ", &used.unwrap_or(what));
    one(&with(&line, ": ", task.as_deref().unwrap_or_default()))
}

/// Two pieces of a line; one alone, if the other is empty.
fn with(before: &str, link: &str, after: &str) -> String {
    match (before.is_empty(), after.is_empty()) {
        (true, _) => after.to_owned(),
        (_, true) => before.to_owned(),
        _ => format!("{before}{link}{after}"),
    }
}

/// On one line, and not too long.
fn one(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    clip(&clean_line(&line), LINE_CHARS)
}

/// The last lines of a failure, beneath; nothing where the head has said all.
pub(crate) fn last_lines(result: &str) -> String {
    let printed = rendered(result.split_once('\n').map_or("", |(_, printed)| printed));
    let Excerpt { first, last, .. } = excerpt(&printed, 0, FAILED_LINES);
    let lines = first.iter().chain(&last).filter(|line| !line.trim().is_empty());
    lines.map(|line| format!("\n    {}", clip(&clean_line(line), LINE_CHARS))).collect()
}

/// As it is; what is more than a line stands beneath.
fn whole(text: &str) -> String {
    let text = clean(text.trim());
    if text.lines().count() <= 1 {
        return text.into_owned();
    }
    text.lines().map(|line| format!("\n    {line}").trim_end_matches(' ').to_owned()).collect()
}

/// A mailbox, as short as it can be told from others.
fn address(address: &str, lang: Lang) -> String {
    match address.split_once('/') {
        // The user of this machine has no other name.
        Some(("user", "owner")) => lang.the_user().to_owned(),
        Some(("user", name)) => name.to_owned(),
        Some((kind, id)) if id.parse::<AgentId>().is_ok() || kind == "plan" => format!("{kind} {}", short(&id)),
        _ => address.to_owned(),
    }
}

/// The local time of day, to the second.
fn time(at_ms: i64) -> String {
    let Ok(at) = jiff::Timestamp::from_millisecond(at_ms) else { return at_ms.to_string() };
    at.to_zoned(max_team_tools::time_zone()).strftime("%H:%M:%S").to_string()
}
