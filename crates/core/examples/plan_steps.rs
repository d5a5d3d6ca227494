//! Measures what a step of a plan costs and prints one line of JSON.
//!
//! `cargo run --release -p max-team-core --example plan_steps`. `layered`: each task builds on a few of the layer before
//! and owns a path of its own. `crowded`: all are ready at once, and as many want the same few paths. `step_us` is one
//! report and all that follows from it (done, the next one assigned), which must not grow with the plan; `refold_us`
//! is recovery, per event.

use std::error::Error;
use std::io::Write;
use std::time::Instant;

use max_team_core::event::Event;
use max_team_core::id::{AgentId, PlanId, SessionId};
use max_team_core::machine::Machine;
use max_team_core::plan::event::{ApprovalMode, PlanDecision, PlanEnd, PlanProposed, Proof, ResourceUse};
use max_team_core::plan::{Draft, Findings, Forecast, Plan, PlanEnv, PlanInput, Report, TaskDraft};
use max_team_core::policy::DecidedBy;
use serde_json::{Value, json};
use uuid::Uuid;

type Outcome<T> = Result<T, Box<dyn Error>>;

const SIZES: [usize; 3] = [100, 1_000, 10_000];
const LAYER: usize = 20;
const DEGREE: usize = 3;
const PLACES: u32 = 5;
/// A small plan is over too soon to be timed once.
const STEPS_MIN: usize = 20_000;

/// Paths that the tasks of a crowded plan share: fewer than there are places.
const SHARED: usize = 3;

fn main() -> Outcome<()> {
    // The first is slow for reasons of its own.
    measure(&layered(SIZES[0]))?;
    let rows =
        |draft: fn(usize) -> Draft| SIZES.iter().map(|tasks| measure(&draft(*tasks))).collect::<Outcome<Vec<_>>>();
    let measured = json!({ "places": PLACES, "layered": rows(layered)?, "crowded": rows(crowded)? });
    writeln!(std::io::stdout(), "{measured}")?;
    Ok(())
}

fn crowded(tasks: usize) -> Draft {
    let shared = |(n, task): (usize, TaskDraft)| TaskDraft {
        needs: Vec::new(),
        owns: Some(vec![format!("src/p{}/**", n % SHARED)]),
        ..task
    };
    Draft { tasks: layered(tasks).tasks.into_iter().enumerate().map(shared).collect(), ..Draft::default() }
}

fn layered(tasks: usize) -> Draft {
    let task = |n: usize| {
        let before = n / LAYER * LAYER;
        let needs = (0..DEGREE).filter_map(|k| Some(format!("t{}", before.checked_sub(LAYER)? + (n + k) % LAYER)));
        TaskDraft {
            id: format!("t{n}"),
            description: "do it".to_owned(),
            agent: "leo".to_owned(),
            needs: needs.collect(),
            owns: Some(vec![format!("src/part{n}/**")]),
            ..TaskDraft::default()
        }
    };
    Draft { tasks: (0..tasks).map(task).collect(), ..Draft::default() }
}

fn proposal(draft: &Draft) -> PlanProposed {
    PlanProposed {
        plan: PlanId::new(Uuid::from_u128(1)),
        session: SessionId::new(Uuid::from_u128(2)),
        lead: AgentId::new(Uuid::from_u128(3)),
        draft: draft.clone(),
        forecast: Forecast::default(),
        approve: ApprovalMode::Plan,
        max_parallel: PLACES,
        by: "max".to_owned(),
        revises: None,
        carried: Vec::new(),
        risks: Vec::new(),
        risky_checks: None,
        risk_kinds: Vec::new(),
    }
}

fn measure(draft: &Draft) -> Outcome<Value> {
    let tasks = draft.tasks.len();
    let rounds = STEPS_MIN.div_ceil(tasks);
    let (mut begin_us, mut steps_us, mut refold_us, mut events, mut worst_us) = (0.0, 0.0, 0.0, 0, 0.0_f64);
    for _ in 0..rounds {
        let mut plan = Plan::new();
        let proposal = Box::new(proposal(draft));
        let began = Instant::now();
        let mut log = plan.step(PlanInput::Propose(proposal), &PlanEnv::at(0), 0);
        let (question, _) = plan.asked().next().ok_or("nobody was asked")?;
        let by = DecidedBy::Person("cli".to_owned());
        log.extend(plan.step(PlanInput::Answered { question, say: PlanDecision::Approve, by }, &PlanEnv::at(0), 0));
        begin_us += micros(began);
        for at_ms in 1.. {
            let Some(task) = plan.active().next() else { break };
            let attempt = plan.task(task).map_or(0, |view| view.attempt);
            let findings = Some(Findings { proof: Proof::Verified, ..Findings::default() });
            let report = Report::Done { output: "done".to_owned(), findings, unknown: Vec::new() };
            let began = Instant::now();
            let step = plan.step(
                PlanInput::Reported { task, attempt, report, spent: ResourceUse::default() },
                &PlanEnv::at(at_ms),
                at_ms,
            );
            let took_us = micros(began);
            (steps_us, worst_us) = (steps_us + took_us, worst_us.max(took_us));
            log.extend(step);
        }
        if plan.ended() != Some(PlanEnd::Done) {
            return Err(format!("the plan of {tasks} ended as {:?}", plan.ended()).into());
        }
        events = log.len();
        let began = Instant::now();
        refold(&log);
        refold_us += micros(began);
    }
    let (rounds, round) = (rounds as f64, |value: f64| (value * 100.0).round() / 100.0);
    Ok(json!({
        "tasks": tasks, "begin_ms": round(begin_us / rounds / 1_000.0), "step_us": round(steps_us / rounds / tasks as f64),
        "step_us_max": round(worst_us), "refold_us": round(refold_us / rounds / events as f64),
    }))
}

fn refold(log: &[Event]) -> Plan {
    let mut plan = Plan::new();
    log.iter().for_each(|event| plan.apply(event, 0));
    plan
}

fn micros(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}
