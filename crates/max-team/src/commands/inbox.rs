//! `inbox`: everything that waits for a person, in every session, and how to answer it.

use std::fmt::Write as _;

use max_team_core::plan::event::PlanQuestion;
use max_team_core::plan::{Plan, draft};
use max_team_core::policy::{Action, ActionKind, Basis};
use max_team_core::time::rfc3339;
use max_team_runtime::{Matter, PendingQuestion, query};
use serde_json::{Value, json};

use super::context::{self, JournalContext};
use super::table::clip;
use crate::args;
use max_team_terminal::plan_text::{self, PlanDetail};
use max_team_terminal::text::{clean, clean_line};
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::format::short;
use max_team_workspace::format::since;
use max_team_workspace::i18n::Lang;
use max_team_workspace::setup::AppEnv;

/// Characters of what is asked, in the list.
const ASKED_CHARS: usize = 160;
/// Tasks of a plan that the list names.
const TASKS_MAX: usize = 12;
/// Characters of a task's caption, in the list.
const GOAL_CHARS: usize = 70;
/// Columns that stand before a task's instructions, in the list.
const INSTRUCTION_INDENT: usize = 8;

pub(crate) fn run(place: &AppEnv, options: &args::Inbox) -> anyhow::Result<Exit> {
    let context = JournalContext::open(place)?;
    let now_ms = context::now_ms();
    let text = match &options.id {
        Some(id) => {
            let pending = context.read(query::FindPending { text: id.clone() })?;
            if options.json {
                format!("{}\n", whole(&pending, &context)?)
            } else {
                show(&pending, &context, now_ms, PlanDetail::of(options.full, "--full"))?
            }
        }
        None => {
            let all = context.read(query::Inbox {})?;
            if options.json {
                let rows = all.iter().map(|pending| row(pending, &context)).collect::<anyhow::Result<Vec<_>>>()?;
                format!("{}\n", Value::from(rows))
            } else {
                list(&all, &context, now_ms, PlanDetail::of(options.full, "--full"))?
            }
        }
    };
    super::print(&text)?;
    Ok(Exit::Ok)
}

/// All of them, a few lines each.
pub(super) fn list(
    all: &[PendingQuestion],
    context: &JournalContext,
    now_ms: i64,
    depth: PlanDetail<'_>,
) -> anyhow::Result<String> {
    let lang = context.lang;
    if all.is_empty() {
        return Ok(format!("{}\n", lang.inbox_empty()));
    }
    let mut text = String::new();
    for pending in all {
        text.push_str(&head(pending, now_ms, lang));
        if let Some(words) = noted(pending, lang) {
            let _ = writeln!(text, "    {words}");
        }
        for row in context_rows(pending, context)? {
            let _ = writeln!(text, "    {row}");
        }
        if let Some(plan) = proposed(pending, context)? {
            let _ = writeln!(text, "    {}", goal(&plan, lang));
            tasks(&plan, depth, lang).iter().for_each(|row| text.push_str(&format!("    {row}\n")));
            for risk in plan.proposed().map(|proposed| lang.plan_risks(proposed)).unwrap_or_default() {
                let _ = writeln!(text, "    ! {}", clean_line(&risk));
            }
        }
        let ways = ways(pending, lang);
        if !ways.is_empty() {
            let _ = writeln!(text, "    {}", ways.join(" · "));
        }
    }
    Ok(text)
}

/// What the question deletes, before all else: what cannot be given back, and what is kept.
fn deletion_lines(pending: &PendingQuestion, lang: Lang) -> String {
    let Matter::Tool { action, .. } = &pending.row.matter else { return String::new() };
    let lost = action
        .loss()
        .map(|lost| format!("{} {}", lang.deletion_is_for_good(lost), lang.deletion_needs_word(lang.deletion_word())));
    let kept = action.deletion.as_deref().map(|deletion| lang.deletion_is_kept(deletion));
    let lines = lost.into_iter().chain(kept).filter(|line| !line.is_empty());
    lines.map(|line| clean_line(&line) + "\n").collect()
}

/// One of them, whole.
fn show(
    pending: &PendingQuestion,
    context: &JournalContext,
    now_ms: i64,
    depth: PlanDetail<'_>,
) -> anyhow::Result<String> {
    let lang = context.lang;
    let mut text = deletion_lines(pending, lang) + &head(pending, now_ms, lang);
    for row in context_rows(pending, context)? {
        let _ = writeln!(text, "{row}");
    }
    match (&pending.row.matter, pending.plan) {
        (Matter::Plan(_), Some(plan)) => {
            text.push('\n');
            text.push_str(&plan_text::sheet(&*context.read(query::Plan { plan })?, plan_text::WIDTH, depth, lang));
        }
        (Matter::Tool { action, .. }, _) if !action.preview.is_empty() => {
            text.push('\n');
            text.push_str(clean(action.preview.trim_end()).as_ref());
            text.push('\n');
        }
        _ => {}
    }
    text.push('\n');
    if let Some(words) = noted(pending, lang) {
        let _ = writeln!(text, "{words}");
    }
    for way in ways(pending, lang) {
        let _ = writeln!(text, "{way}");
    }
    if let Matter::Tool { memory, .. } = &pending.row.matter
        && !memory.rules().is_empty()
        && pending.noted.is_none()
    {
        let rules = clean_line(&memory.rules().join(", "));
        let _ = writeln!(text, "{}", lang.always_means(short(&pending.row.question), &rules));
    }
    Ok(text)
}

fn head(pending: &PendingQuestion, now_ms: i64, lang: Lang) -> String {
    let age = plan_text::duration(since(pending.row.at_ms, now_ms));
    let session = pending.session.map(|session| short(&session));
    let who = match (pending.task.as_deref(), pending.who.as_str()) {
        (_, "plan") => {
            format!("{} {}", lang.plan_word(), pending.plan.map(|plan| short(&plan)).unwrap_or_default())
        }
        (Some(task), who) => lang.at_task(who, task),
        (None, who) => who.to_owned(),
    };
    let asked = clip(&clean_line(&asked_in(pending, lang)), ASKED_CHARS);
    let since = lang.asked_since(&age, &clean_line(&who), session.as_deref());
    format!("{}  {since}: {asked}\n", short(&pending.row.question))
}

/// The project, the work that the question belongs to, and the rule that asks.
fn context_rows(pending: &PendingQuestion, context: &JournalContext) -> anyhow::Result<Vec<String>> {
    let lang = context.lang;
    // The goal of a proposed plan stands above its tasks.
    let is_proposal = matches!(pending.row.matter, Matter::Plan(PlanQuestion::Proposal | PlanQuestion::Rest));
    let purpose = if is_proposal { None } else { purpose(pending, context)? };
    let rows = [
        (lang.project_folder(), folder(pending, context)?),
        (lang.task_word(), purpose),
        (lang.why(), rule(pending).map(|(rule, basis)| lang.basis(basis, rule))),
    ];
    let shown = |(name, words): (&str, Option<String>)| words.map(|words| format!("{name}: {}", clean_line(&words)));
    Ok(rows.into_iter().filter_map(shown).collect())
}

/// The rule that asks a person before the call. A finished worktree and an agent's own question have none.
fn rule(pending: &PendingQuestion) -> Option<(&str, &Basis)> {
    match &pending.row.matter {
        Matter::Tool { action, rule, basis, .. } if !matches!(action.kind, ActionKind::Merge | ActionKind::Ask) => {
            Some((rule.as_str(), basis)).filter(|_| !rule.is_empty())
        }
        _ => None,
    }
}

/// An answer that was given and that the asker has not read yet.
fn noted(pending: &PendingQuestion, lang: Lang) -> Option<String> {
    let noted = pending.noted.as_ref()?;
    Some(lang.said_already(&clean_line(&noted.by), noted.said, &rfc3339(noted.at_ms), !noted.said.is_no()))
}

/// What exactly is asked, for people; what an agent wants to do is in its own words.
pub(super) fn asked_in(pending: &PendingQuestion, lang: Lang) -> String {
    match &pending.row.matter {
        Matter::Plan(about) => lang.about_plan(about),
        Matter::Tool { action, .. } if action.kind == ActionKind::Merge => {
            let (added, removed) = changed(action).unwrap_or_default();
            format!("{} (+{added} -{removed})", lang.has_changes())
        }
        Matter::Tool { action, .. } => match action.loss() {
            Some(lost) => format!("{} {}", lang.deletion_is_for_good(lost), asked(pending)),
            None => asked(pending),
        },
    }
}

/// What exactly is asked.
fn asked(pending: &PendingQuestion) -> String {
    match &pending.row.matter {
        Matter::Tool { action, .. } if action.kind == ActionKind::Ask => action.preview.clone(),
        Matter::Tool { action, .. } => match changed(action) {
            Some((added, removed)) => format!("{} (+{added} -{removed} lines)", pending.words()),
            None => pending.words(),
        },
        Matter::Plan(_) => pending.words(),
    }
}

/// Lines that an edit adds and removes.
fn changed(action: &Action) -> Option<(usize, usize)> {
    let (mut inside, mut any) = (false, false);
    let (mut added, mut removed) = (0, 0);
    for line in action.preview.lines() {
        if line.starts_with("@@ -") {
            (inside, any) = (true, true);
        } else if line.starts_with("diff --git ") {
            // The next file has a head of its own.
            inside = false;
        } else if inside {
            added += usize::from(line.starts_with('+'));
            removed += usize::from(line.starts_with('-'));
        }
    }
    (any && matches!(action.kind, ActionKind::Write | ActionKind::WriteOwn | ActionKind::Merge))
        .then_some((added, removed))
}

/// The plan behind a question about the whole of it.
fn proposed(pending: &PendingQuestion, context: &JournalContext) -> anyhow::Result<Option<Plan>> {
    match (&pending.row.matter, pending.plan) {
        (Matter::Plan(PlanQuestion::Proposal | PlanQuestion::Rest), Some(plan)) => {
            Ok(Some(*context.read(query::Plan { plan })?))
        }
        _ => Ok(None),
    }
}

/// The work that a question belongs to.
fn purpose(pending: &PendingQuestion, context: &JournalContext) -> Result<Option<String>, CliError> {
    let PendingQuestion { row, session, plan, task, .. } = pending;
    context.read(query::Purpose { address: row.address.clone(), session: *session, plan: *plan, task: task.clone() })
}

/// The project of the session that asks.
fn folder(pending: &PendingQuestion, context: &JournalContext) -> anyhow::Result<Option<String>> {
    Ok(pending.session.map(|session| context.read(query::Session { session })).transpose()?.map(|row| row.cwd))
}

/// What makes a plan risky, in words.
fn risks(plan: &Plan) -> &[String] {
    plan.proposed().map_or(&[], |proposed| &proposed.risks)
}

fn goal(plan: &Plan, lang: Lang) -> String {
    let goal = plan.draft().map_or("", |draft| draft.goal.as_str());
    let forecast = plan.forecast().map(|forecast| plan_text::forecast(forecast, lang)).unwrap_or_default();
    format!("{} ({forecast})", clip(&clean_line(goal), ASKED_CHARS))
}

/// The first tasks, each with its instructions.
fn tasks(plan: &Plan, depth: PlanDetail<'_>, lang: Lang) -> Vec<String> {
    let tasks = plan.draft().map_or(&[][..], |draft| &draft.tasks);
    let most = if depth == PlanDetail::Full { usize::MAX } else { TASKS_MAX };
    let mut rows = vec![format!("{}:", lang.tasks(tasks.len()))];
    for task in tasks.iter().take(most) {
        let head = lang.task_after(&task.id, &task.agent, &task.needs.join(", "));
        rows.push(clean_line(&format!("  {head}: {}", clip(task.caption(), GOAL_CHARS))));
        let instructions = plan_text::instructions(task, plan_text::WIDTH - INSTRUCTION_INDENT, depth, lang);
        rows.extend(instructions.into_iter().map(|row| format!("    {row}")));
        let owns = task.owns.as_ref().map_or_else(String::new, |owns| lang.listed(owns));
        for (name, words) in [(lang.owns(), owns), (lang.must_pass(), task.verify.join("; "))] {
            if !words.is_empty() {
                rows.push(format!("    {name}: {}", clean_line(&words)));
            }
        }
    }
    if tasks.len() > most {
        rows.push(format!("  {}", lang.more_tasks(tasks.len() - most)));
    }
    rows
}

/// The commands that answer it; of what was answered already, the one that takes a yes back.
fn ways(pending: &PendingQuestion, lang: Lang) -> Vec<String> {
    let id = short(&pending.row.question);
    if let Some(noted) = &pending.noted {
        return if noted.said.is_no() { Vec::new() } else { vec![format!("max-team deny {id}")] };
    }
    let yes = format!("max-team approve {id}");
    let no = format!("max-team deny {id} -m {}", lang.why_word());
    match &pending.row.matter {
        Matter::Tool { action, .. } if action.kind == ActionKind::Ask => vec![format!("{yes} -m ANSWER"), no],
        Matter::Tool { action, .. } if action.kind == ActionKind::Merge => vec![
            yes,
            no,
            format!("max-team inbox {id}"),
            format!("max-team worktrees accept {} FILES", short(&action.target)),
        ],
        Matter::Tool { action, .. } if action.loss().is_some() => {
            vec![format!("{yes} --word {}", lang.deletion_word()), no, format!("max-team inbox {id}")]
        }
        Matter::Tool { .. } => vec![yes, no, format!("max-team inbox {id}")],
        Matter::Plan(PlanQuestion::Proposal) => vec![
            format!("{yes} [--first-wave]"),
            no,
            format!("max-team deny {id} --changes -m WHAT"),
            format!("max-team inbox {id}"),
        ],
        Matter::Plan(PlanQuestion::Failure { .. }) => vec![
            format!("{yes} --retry [--by MEMBER] [--with MODEL] [-m NOTE]"),
            format!("{yes} --skip | --fixed | --give-up"),
        ],
        Matter::Plan(PlanQuestion::Rest | PlanQuestion::Start { .. } | PlanQuestion::Budget) => vec![yes, no],
    }
}

fn row(pending: &PendingQuestion, context: &JournalContext) -> anyhow::Result<Value> {
    let plan = proposed(pending, context)?;
    let task = |task: &draft::TaskDraft| {
        json!({
            "id": task.id,
            "agent": task.agent,
            "needs": task.needs,
            "description": task.description,
            "owns": task.owns,
            "verify": task.verify,
        })
    };
    let mut value = json!({
        "id": pending.row.question,
        "short": short(&pending.row.question),
        "since": rfc3339(pending.row.at_ms),
        "session": pending.session,
        "cwd": folder(pending, context)?,
        "who": pending.who,
        "plan": pending.plan,
        "task": pending.task,
        "purpose": purpose(pending, context)?,
        "asked": asked(pending),
        "noted": pending.noted.as_ref().map(|noted| json!({ "by": noted.by, "said": noted.said, "at": rfc3339(noted.at_ms) })),
        "answer_with": ways(pending, Lang::En),
    });
    let more = match &pending.row.matter {
        Matter::Tool { tool, action, memory, rule, .. } => json!({
            "why": rule,
            "remember": memory.rules(),
            "kind": match action.kind {
                ActionKind::Ask => "question",
                ActionKind::Merge => "merge",
                _ => "permission",
            },
            "tool": tool,
            "target": action.target,
            "deletion": action.deletion,
            "lines_added": changed(action).map(|(added, _)| added),
            "lines_removed": changed(action).map(|(_, removed)| removed),
        }),
        Matter::Plan(about) => json!({
            "kind": "plan",
            "about": about,
            "goal": plan.as_ref().and_then(Plan::draft).map(|draft| &draft.goal),
            "forecast": plan.as_ref().and_then(Plan::forecast),
            "risks": plan.as_ref().map(risks),
            "tasks": plan.as_ref().and_then(Plan::draft).map(|draft| draft.tasks.iter().map(task).collect::<Vec<_>>()),
        }),
    };
    if let (Value::Object(value), Value::Object(more)) = (&mut value, more) {
        value.extend(more);
    }
    Ok(value)
}

fn whole(pending: &PendingQuestion, context: &JournalContext) -> anyhow::Result<Value> {
    let mut value = row(pending, context)?;
    let more = match (&pending.row.matter, pending.plan) {
        (Matter::Tool { action, .. }, _) => ("preview", json!(action.preview)),
        (Matter::Plan(_), Some(plan)) => ("draft", json!(context.read(query::Plan { plan })?.draft())),
        (Matter::Plan(_), None) => return Ok(value),
    };
    if let Value::Object(value) = &mut value {
        value.insert(more.0.to_owned(), more.1);
    }
    Ok(value)
}
