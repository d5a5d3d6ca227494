//! How long it takes to check large plans, as JSON: `cargo run --release -p max-team-core --example plan_bench`.
//!
//! It measures and prints; it judges nothing.
#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::time::Instant;

use max_team_core::plan::{Draft, Graph, PlanBounds, TaskDraft, forecast};

/// Runs, of which the fastest counts.
const RUNS: usize = 10;

/// Tasks that each build on `fan` others, a hundred to a wave.
fn plan(tasks: usize, fan: usize) -> Draft {
    let task = |at: usize| TaskDraft {
        id: format!("t{at}"),
        agent: "leo".to_owned(),
        description: "do it".to_owned(),
        needs: (1..=fan).filter_map(|step| at.checked_sub(step * 100)).map(|need| format!("t{need}")).collect(),
        ..TaskDraft::default()
    };
    Draft { goal: "measure".to_owned(), tasks: (0..tasks).map(task).collect(), ..Draft::default() }
}

fn main() -> Result<(), Vec<max_team_core::plan::DraftFlaw>> {
    for (tasks, fan) in [(100, 3), (1_000, 3), (10_000, 3), (10_000, 10)] {
        let draft = plan(tasks, fan);
        let (mut validate, mut predict) = (f64::INFINITY, f64::INFINITY);
        let mut edges = 0;
        let mut waves = 0;
        for _ in 0..RUNS {
            let start = Instant::now();
            let graph = Graph::new(&draft, &["leo"])?;
            validate = validate.min(start.elapsed().as_secs_f64() * 1e3);
            let start = Instant::now();
            std::hint::black_box(forecast(
                &draft,
                &graph,
                &|_| None,
                PlanBounds { max_parallel: 10, session_nano: None },
            ));
            predict = predict.min(start.elapsed().as_secs_f64() * 1e3);
            edges = (0..graph.len()).map(|task| graph.needs(task).len()).sum();
            waves = graph.waves().len();
        }
        let line = serde_json::json!({
            "tasks": tasks, "edges": edges, "waves": waves, "validate_ms": validate, "forecast_ms": predict,
        });
        println!("{line}");
    }
    Ok(())
}
