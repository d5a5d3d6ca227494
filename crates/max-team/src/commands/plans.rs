//! `plans list` and `plans show`: the plans of the journal, drawn, as JSON, as a chart or as a file.

use max_team_core::id::PlanId;
use max_team_core::plan::event::PlanQuestion;
use max_team_core::plan::{Plan, PlanState};
use max_team_core::time::rfc3339;
use max_team_runtime::{PlanLine, query};
use serde_json::{Value, json};

use super::context::{self, JournalContext};
use super::table::{clip, table};
use crate::args;
use max_team_terminal::plan_text::{self, PlanDetail};
use max_team_terminal::text::clean;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::format::local;
use max_team_workspace::format::short;
use max_team_workspace::i18n::Lang;
use max_team_workspace::plan_diagram;
use max_team_workspace::plan_file;
use max_team_workspace::plan_view;
use max_team_workspace::setup::AppEnv;

/// Characters of a goal in the list.
const GOAL_CHARS: usize = 70;

pub(crate) fn run(place: &AppEnv, command: &args::Plans) -> anyhow::Result<Exit> {
    let context = JournalContext::open(place)?;
    let text = match command {
        args::Plans::List { limit, json } => {
            let mut lines = context.read(query::AllPlans {})?;
            lines.truncate(*limit);
            list(&context, &lines, *json)?
        }
        args::Plans::Show { id, full, json, mermaid, yaml } => {
            let id = find(&context, id.as_deref())?;
            let (plan, state) = context.read(query::PlanWithState { plan: id })?;
            match (plan.draft(), plan.graph()) {
                _ if *json => {
                    let events = context.read(query::PlanEvents { plan: id })?;
                    format!("{}\n", plan_view::view(id, &plan, state, &events))
                }
                (Some(draft), Some(graph)) if *mermaid => plan_diagram::mermaid(draft, graph),
                (Some(draft), _) if *yaml => plan_file::write(draft),
                _ => show(&plan, state, PlanDetail::of(*full, "--full"), context.lang),
            }
        }
    };
    super::print(&text)?;
    Ok(Exit::Ok)
}

fn find(context: &JournalContext, id: Option<&str>) -> anyhow::Result<PlanId> {
    match id {
        Some(id) => {
            let gone = || CliError::said(Exit::Failed, |lang| lang.unknown_plan(id));
            Ok(context.read(query::FindPlan { text: id.to_owned() })?.ok_or_else(gone)?)
        }
        None => {
            let newest = context.read(query::AllPlans {})?.into_iter().next();
            Ok(newest
                .map(|line| line.row.plan)
                .ok_or_else(|| CliError::said(Exit::Failed, |lang| lang.no_plans_yet().to_owned()))?)
        }
    }
}

/// The state of a plan and what it waits for or how it ended, in words, with its tasks.
struct PlanStatus {
    state: PlanState,
    /// Empty where the state says everything.
    detail: &'static str,
    done: usize,
    tasks: usize,
}

fn stands(context: &JournalContext, line: &PlanLine, lang: Lang) -> anyhow::Result<PlanStatus> {
    if let Some(row) = &line.end {
        let state = PlanState::of_end(row.end);
        let how = Some(lang.plan_end(row.end)).filter(|how| *how != lang.plan_state(state));
        return Ok(PlanStatus { state, detail: how.unwrap_or_default(), done: row.tally.done, tasks: row.tally.tasks });
    }
    let (plan, state) = context.read(query::PlanWithState { plan: line.row.plan })?;
    let asked = plan.asked().next().map(|(_, about)| match about {
        PlanQuestion::Proposal => lang.for_approval(),
        PlanQuestion::Rest | PlanQuestion::Start { .. } => lang.for_start(),
        PlanQuestion::Failure { .. } => lang.for_ruling(),
        PlanQuestion::Budget => lang.for_budget(),
    });
    let detail = match state {
        PlanState::Stopped if context.read(query::IsPlanHeld { plan: line.row.plan })? => lang.plan_held(),
        PlanState::Stopped => lang.stop_not_read(),
        PlanState::Waiting if plan.is_parked() => lang.for_server(),
        PlanState::Waiting => asked.unwrap_or_else(|| lang.for_answer()),
        _ => asked.unwrap_or_default(),
    };
    let tasks = plan.draft().map_or(0, |draft| draft.tasks.len());
    Ok(PlanStatus { state, detail, done: plan.tally().done, tasks })
}

fn list(context: &JournalContext, lines: &[PlanLine], as_json: bool) -> anyhow::Result<String> {
    let lang = context.lang;
    let mut rows = Vec::new();
    let mut values = Vec::new();
    for line in lines {
        let PlanStatus { state, detail, done, tasks } = stands(context, line, if as_json { Lang::En } else { lang })?;
        let row = &line.row;
        if as_json {
            values.push(json!({
                "plan": row.plan, "session": row.session, "goal": row.goal, "by": row.by, "created_at": rfc3339(row.at_ms),
                "state": state, "detail": detail, "open": line.end.is_none(), "tasks": tasks, "done": done,
                "tally": line.end.as_ref().map(|row| row.tally),
            }));
        } else {
            let goal = clip(&row.goal, GOAL_CHARS);
            let counts = format!("{done}/{tasks}");
            let detail = if detail.is_empty() { String::new() } else { format!(": {detail}") };
            let state = format!("{}{detail}", lang.plan_state(state));
            rows.push(vec![short(&row.plan), local(row.at_ms), short(&row.session), counts, state, goal]);
        }
    }
    Ok(match (as_json, lines.is_empty()) {
        (true, _) => format!("{}\n", Value::from(values)),
        (false, true) => format!("{}\n", lang.no_plans_yet()),
        (false, false) => table(&lang.plan_heads(), &rows),
    })
}

fn show(plan: &Plan, state: PlanState, depth: PlanDetail<'_>, lang: Lang) -> String {
    let mut text = plan_text::sheet(plan, plan_text::WIDTH, depth, lang);
    let now_ms = context::now_ms();
    for view in plan.tasks() {
        let waits = plan_text::waits(&view, now_ms, lang);
        if !waits.is_empty() && plan.ended().is_none() {
            text.push_str(&format!("{}: {}\n", view.task.id, clean(&waits)));
        }
    }
    if let Some(end) = plan.ended() {
        let tally = plan.tally();
        text.push_str(&format!("{}\n", lang.came_to(end, &tally)));
    } else {
        text.push_str(&format!("{}\n", lang.plan_stands(state)));
    }
    text
}
