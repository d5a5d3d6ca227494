//! From a draft to a proposal: checked, with a forecast, and with the points that a person should look at closely.
//!
//! Everything that is wrong with a draft is reported in words that its author can act on. Nothing here writes
//! anything.

use std::path::Path;

use max_team_core::agent::Model;
use max_team_core::id::{AgentId, PlanId, SessionId};
use max_team_core::limits::PLAN_TASKS_MAX;
use max_team_core::machine::Machine;
use max_team_core::message::Principal;
use max_team_core::plan::event::{ApprovalMode, CarriedResult, PlanEdited, PlanProposed, PlanRisk, RiskyCheck};
use max_team_core::plan::{
    Budget, Draft, DraftFlaw, Edit, FlawReason, Forecast, Graph, Plan, PlanBounds, PlanEnv, PlanInput, Rate, TaskDraft,
    TaskStatus, edit, forecast,
};
use max_team_core::policy::program::{CommandEffect, effects_of};
use max_team_core::policy::{Basis as JudgedBasis, Judgement, Protection, Verdict, glob, protecting_row};
use max_team_core::task_list::OF_PLAN;
use max_team_tools::project::{self, Project};

use super::history::Basis;
use super::installs::installs;
use super::leave;
use crate::active_session::{ActiveSession, fold_plan};
use crate::error::RuntimeError;
use crate::handle::{AgentSpec, Team};
use crate::rows;
use crate::shared::new_id;

/// Flaws of globs, commands and models that are reported together.
const CLAIM_FLAWS_MAX: usize = 12;

/// Checks a draft and makes the proposal; or says what is wrong with it. Where no person can be asked (`is_unattended`), a check
/// that needs approval is wrong.
pub(crate) fn propose(
    active: &ActiveSession,
    team: &Team,
    plan: PlanId,
    mut draft: Draft,
    by: String,
    revises: Option<PlanId>,
    is_unattended: bool,
) -> Result<Box<PlanProposed>, Vec<DraftFlaw>> {
    complete(team, &mut draft);
    let (graph, risks) = check(team, &active.root, &draft)?;
    // A plan that a person approves anyway is approved with its checks and installations.
    let asks = is_unattended && team.approve.is_automatic();
    let unapproved = if asks { unapproved(team, &active.root, &draft, &risks) } else { Vec::new() };
    if !unapproved.is_empty() {
        return Err(unapproved);
    }
    let forecast = forecast_for(team, &draft, &graph, &active.basis());
    let carried = revises.map(|old| carried(active, old, &draft)).unwrap_or_default();
    Ok(Box::new(PlanProposed {
        plan,
        session: active.session,
        lead: active.lead,
        draft,
        forecast,
        approve: team.approve,
        max_parallel: team.max_parallel,
        by,
        revises,
        carried,
        risks: risks.iter().map(PlanRisk::to_string).collect(),
        risky_checks: Some(risky_checks(&risks)),
        risk_kinds: risks,
    }))
}

/// A plan as it would be shown to the user, without a session: for looking at a file. Or all that is wrong with it.
pub fn preview(team: &Team, root: &Path, mut draft: Draft, basis: &Basis) -> Result<Plan, Vec<DraftFlaw>> {
    complete(team, &mut draft);
    let (graph, risks) = check(team, root, &draft)?;
    let proposed = PlanProposed {
        plan: PlanId::new(new_id()),
        session: SessionId::new(uuid::Uuid::nil()),
        lead: AgentId::new(uuid::Uuid::nil()),
        forecast: forecast_for(team, &draft, &graph, basis),
        draft,
        approve: ApprovalMode::Plan,
        max_parallel: team.max_parallel,
        by: "a file".to_owned(),
        revises: None,
        carried: Vec::new(),
        risks: risks.iter().map(PlanRisk::to_string).collect(),
        risky_checks: Some(risky_checks(&risks)),
        risk_kinds: risks,
    };
    let mut plan = Plan::new();
    plan.step(PlanInput::Propose(Box::new(proposed)), &PlanEnv::at(0), 0);
    Ok(plan)
}

/// A draft after a person's edits: checked, forecast and judged again; or what is wrong with it.
pub(crate) fn edited(
    team: &Team,
    root: &Path,
    old: &Draft,
    edits: &[Edit],
    by: Principal,
    basis: &Basis,
) -> Result<PlanEdited, Vec<DraftFlaw>> {
    let mut draft = old.clone();
    for change in edits {
        draft = edit(&draft, change).map_err(|flaw| vec![flaw])?;
    }
    // A time limit that was only the previous owner's default does not apply to the new one.
    for task in &mut draft.tasks {
        let before = old.tasks.iter().find(|before| before.id == task.id).filter(|before| before.agent != task.agent);
        if before.is_some_and(|before| task.timeout_ms == usual_ms(team, &before.agent)) {
            task.timeout_ms = None;
        }
        if before.is_some_and(|before| task.budget == allotted(team, &before.agent)) {
            task.budget = Budget::default();
        }
    }
    complete(team, &mut draft);
    let (graph, risks) = check(team, root, &draft)?;
    let forecast = forecast_for(team, &draft, &graph, basis);
    let (words, risky_checks) = (risks.iter().map(PlanRisk::to_string).collect(), Some(risky_checks(&risks)));
    Ok(PlanEdited { draft, forecast, risks: Some(words), risky_checks, risk_kinds: risks, by })
}

/// The checks that need a person's approval.
fn risky_checks(risks: &[PlanRisk]) -> Vec<RiskyCheck> {
    let check = |risk: &PlanRisk| match risk {
        PlanRisk::Check { check, .. } => Some(check.clone()),
        PlanRisk::Protected { .. } | PlanRisk::Installs(_) => None,
    };
    risks.iter().filter_map(check).collect()
}

/// A member's default time limit.
fn usual_ms(team: &Team, member: &str) -> Option<u64> {
    team.members.iter().find(|teammate| teammate.definition.name == member)?.settings.constraints.timeout_ms
}

/// Fills in what a task leaves open with its owner's defaults.
fn complete(team: &Team, draft: &mut Draft) {
    for task in &mut draft.tasks {
        // A plan may give less time than its owner has, never more.
        let most = usual_ms(team, &task.agent);
        task.timeout_ms = match (task.timeout_ms, most) {
            (Some(own), Some(most)) => Some(own.min(most)),
            (own, most) => own.or(most),
        };
        let most = allotted(team, &task.agent);
        task.budget.nano = task.budget.nano.into_iter().chain(most.nano).min();
        task.budget.tokens = task.budget.tokens.into_iter().chain(most.tokens).min();
    }
}

/// A member's budget for one task.
fn allotted(team: &Team, member: &str) -> Budget {
    let teammate = team.members.iter().find(|teammate| teammate.definition.name == member);
    teammate.map(|teammate| super::cap(&teammate.settings)).unwrap_or_default()
}

/// Checks the shape, the owners, the commands, the globs and the models.
pub(crate) fn check(team: &Team, root: &Path, draft: &Draft) -> Result<(Graph, Vec<PlanRisk>), Vec<DraftFlaw>> {
    let names: Vec<&str> = team.members.iter().map(|teammate| teammate.definition.name.as_str()).collect();
    let graph = Graph::new(draft, &names);
    let (mut flaws, risks) = claims(team, root, draft);
    match graph {
        Ok(graph) if flaws.is_empty() => {
            let installs = installs(team, root, draft).into_iter().map(PlanRisk::Installs);
            Ok((graph, risks.into_iter().chain(installs).collect()))
        }
        Ok(_) => Err(flaws),
        Err(mut all) => {
            all.append(&mut flaws);
            Err(all)
        }
    }
}

/// Flaws in the globs, commands and models of tasks, and the commands that a person should look at closely.
fn claims(team: &Team, root: &Path, draft: &Draft) -> (Vec<DraftFlaw>, Vec<PlanRisk>) {
    let (mut flaws, mut risks) = (Vec::new(), Vec::new());
    let mut flaw = |task: &TaskDraft, reason: FlawReason| {
        if flaws.len() < CLAIM_FLAWS_MAX {
            flaws.push(DraftFlaw::of(task, reason));
        }
    };
    let any = draft.tasks.iter().any(|task| !task.verify.is_empty());
    let projects = if any { project::detect(root) } else { Vec::new() };
    // A draft with too many tasks is refused for that alone.
    for task in draft.tasks.iter().take(PLAN_TASKS_MAX) {
        for glob in task.owned() {
            if let Err(error) = glob::Glob::new(glob, false) {
                flaw(task, FlawReason::BadGlob { glob: glob.clone(), error });
            }
            // Approval of the plan does not cover these: each change asks again, or is refused.
            let protected = |row: &_| PlanRisk::Protected {
                task: task.id.clone(),
                path: glob.to_owned(),
                why: Protection::from(row),
            };
            risks.extend(protecting_row(glob).map(protected));
        }
        for line in &task.verify {
            match max_team_tools::command::split(line) {
                Err(error) => flaw(task, FlawReason::BadCheck { line: line.clone(), error }),
                Ok(argv) => match weigh(team, &projects, task, line, &argv) {
                    Ok(risk) => risks.extend(risk),
                    Err(judged) => {
                        let (line, agent) = (line.clone(), task.agent.clone());
                        let Judgement { rule, basis, .. } = *judged;
                        flaw(task, FlawReason::DeniedCheck { line, agent, rule, basis: Box::new(basis) });
                    }
                },
            }
        }
        if let Some(model) = &task.model
            && !team.models.contains_key(model)
        {
            let known = team.models.keys().cloned().collect();
            flaw(task, FlawReason::UnknownModel { name: model.clone(), known });
        }
        if let Some(model) = unpriced(team, draft, task) {
            flaw(task, FlawReason::NoPrice(model.name.clone()));
        }
    }
    (flaws, risks)
}

/// What needs a person's approval in a run without one: checks, each with what to write instead, and registries.
fn unapproved(team: &Team, root: &Path, draft: &Draft, risks: &[PlanRisk]) -> Vec<DraftFlaw> {
    let projects = project::detect(root);
    let checks = draft.tasks.iter().flat_map(|task| task.verify.iter().map(move |line| (task, line)));
    let flaw = |(task, line): (&TaskDraft, &String)| {
        let argv = max_team_tools::command::split(line).ok()?;
        weigh(team, &projects, task, line, &argv).ok()??;
        let (line, agent) = (line.clone(), task.agent.clone());
        Some(DraftFlaw::of(task, FlawReason::AskingCheck { line, agent }))
    };
    let installs = risks.iter().filter_map(|risk| match risk {
        PlanRisk::Installs(installs) => {
            let hosts = installs.registries.iter().map(|registry| registry.host.clone()).collect();
            Some(DraftFlaw { task: installs.task.clone(), reason: FlawReason::AskingInstalls(hosts) })
        }
        PlanRisk::Check { .. } | PlanRisk::Protected { .. } => None,
    });
    checks.filter_map(flaw).chain(installs).take(CLAIM_FLAWS_MAX).collect()
}

/// The model without a price whose task has a budget, which cannot be kept.
fn unpriced<'t>(team: &'t Team, draft: &Draft, task: &TaskDraft) -> Option<&'t Model> {
    let (all, own) = (draft.budget.nano, task.budget.nano);
    model_of(team, task).filter(|model| model.price.is_none() && (all.is_some() || own.is_some()))
}

/// The model of a task's owner, if the owner is known.
fn model_of<'t>(team: &'t Team, task: &TaskDraft) -> Option<&'t Model> {
    let teammate = team.members.iter().find(|teammate| teammate.definition.name == task.agent)?;
    Some(task.model.as_ref().and_then(|name| team.models.get(name)).unwrap_or(&teammate.settings.model))
}

/// The risk of a check, if it has one; or why its owner may not run it at all.
fn weigh(
    team: &Team,
    projects: &[Project],
    task: &TaskDraft,
    line: &str,
    argv: &[String],
) -> Result<Option<PlanRisk>, Box<Judgement>> {
    // A task without an owner is reported as another flaw.
    let Some(owner) = team.members.iter().find(|teammate| teammate.definition.name == task.agent) else {
        return Ok(None);
    };
    let judged = leave::at_proposal(&owner.settings, argv);
    let check = RiskyCheck { task: task.id.clone(), line: line.to_owned() };
    match judged.verdict {
        Verdict::Deny => Err(Box::new(judged)),
        _ if leave::needs_a_person(&judged) => {
            Ok(Some(PlanRisk::Check { check, rule: judged.rule, basis: judged.basis }))
        }
        _ => {
            let unknown = PlanRisk::Check { check, rule: String::new(), basis: JudgedBasis::Rule };
            Ok((!is_known(owner, projects, argv, judged.verdict)).then_some(unknown))
        }
    }
}

/// Whether a check is among the commands that its owner may run anyway, or only builds and tests. A list from a
/// project's own files does not count: its author may have written the check's program, too. Without a list, in a
/// sandbox, the approved plan says what the owner may run anyway.
fn is_known(owner: &AgentSpec, projects: &[Project], argv: &[String], verdict: Verdict) -> bool {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    let usual = projects.iter().flat_map(|project| [Some(&project.test), project.build.as_ref()]).flatten();
    // The whole line must match: later arguments decide what a program does.
    if usual.into_iter().any(|usual| !usual.is_empty() && usual == argv) || is_plain_cargo(&words) {
        return true;
    }
    let constraints = &owner.settings.constraints;
    let is_own = match &constraints.allowed_commands {
        Some(allowed) => !constraints.foreign_commands && glob::commands(allowed, &words),
        None => {
            let runs_commands = owner.definition.tools.iter().any(|tool| tool == leave::TOOL);
            owner.settings.sandboxed && runs_commands && verdict == Verdict::Allow
        }
    };
    is_own && !changes_files(argv)
}

/// Whether a command names files that it writes or deletes. A check should only read; one that changes files needs a
/// person's approval.
fn changes_files(argv: &[String]) -> bool {
    let is_change = |effect: &CommandEffect| {
        matches!(effect, CommandEffect::Write(_) | CommandEffect::Delete(_) | CommandEffect::Discard)
    };
    effects_of(argv).effects.iter().any(is_change)
}

/// Building and testing with nothing but names of packages, tests and profiles: no flag here runs another program.
fn is_plain_cargo(words: &[&str]) -> bool {
    const FLAGS: [&str; 10] = [
        "-p",
        "--package",
        "--workspace",
        "--lib",
        "--test",
        "--bin",
        "--release",
        "--all-targets",
        "--locked",
        "--offline",
    ];
    match words {
        ["cargo", "test" | "build" | "check", rest @ ..] => {
            rest.iter().all(|word| !word.starts_with('-') || FLAGS.contains(word))
        }
        _ => false,
    }
}

/// The expected cost and time.
fn forecast_for(team: &Team, draft: &Draft, graph: &Graph, basis: &Basis) -> Forecast {
    let rate = |task: &TaskDraft| {
        let teammate = team.members.iter().find(|teammate| teammate.definition.name == task.agent)?;
        let model = model_of(team, task)?;
        Some(Rate {
            price: model.price,
            max_tokens: model.max_tokens,
            rounds_max: teammate.settings.rounds_max,
            context_tokens: model.context_tokens,
            past: basis.history.past_tasks(&task.agent, &model.name),
        })
    };
    let max_parallel = usize::try_from(team.max_parallel).unwrap_or(1);
    forecast(draft, graph, &rate, PlanBounds { max_parallel, session_nano: basis.session_nano })
}

/// Results of an earlier plan for tasks that have not changed.
pub(super) fn carried(active: &ActiveSession, old: PlanId, draft: &Draft) -> Vec<CarriedResult> {
    let Ok((plan, _)) = fold_plan(&active.shared, old) else { return Vec::new() };
    if plan.session() != Some(active.session) {
        return Vec::new();
    }
    let mut carried: Vec<CarriedResult> = Vec::new();
    for view in
        plan.tasks().filter(|view| view.status == TaskStatus::Done && draft.tasks.iter().any(|task| task == view.task))
    {
        // A result is not taken over if a task that it depends on will be done again.
        let stands = view.task.needs.iter().all(|need| carried.iter().any(|carried| carried.task == *need));
        if let (true, Some(result)) = (stands, view.result) {
            carried.push(CarriedResult { task: view.task.id.clone(), result: result.clone() });
        }
    }
    carried
}

/// The unfinished plans of this session.
pub(crate) fn open_plans(active: &ActiveSession) -> Result<Vec<(PlanId, Plan)>, RuntimeError> {
    let mine = active.session.to_string();
    let mut plans = Vec::new();
    for (key, session) in rows::rows::<String>(&active.shared.journal, rows::PLAN_OPEN)? {
        if session == mine
            && let Ok(plan) = key.parse()
        {
            plans.push((plan, fold_plan(&active.shared, plan)?.0));
        }
    }
    Ok(plans)
}

/// The open plan that has a task of this name.
pub(crate) fn find(
    active: &ActiveSession,
    wanted: Option<PlanId>,
    task: &str,
) -> Result<Option<(PlanId, usize)>, RuntimeError> {
    let (open, task) = (open_plans(active)?, task.strip_prefix(OF_PLAN).unwrap_or(task));
    let found = open
        .iter()
        .filter(|(id, _)| wanted.is_none_or(|wanted| wanted == *id))
        .find_map(|(id, plan)| Some((*id, plan.graph()?.index(task)?)));
    Ok(found)
}
