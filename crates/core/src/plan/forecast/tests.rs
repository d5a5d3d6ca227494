//! Forecasts of small plans, figure by figure, and what holds for all of them.

use proptest::prelude::*;

use super::*;
use crate::plan::Budget;

const PRICE: Price = Price { input: 3_000, output: 15_000, cache_read: 300, cache_write: 3_750 };
const RATE: Rate = Rate { price: Some(PRICE), max_tokens: 8_192, rounds_max: 50, context_tokens: 200_000, seen: None };
const SEEN: Rate = Rate { seen: Some(Seen { tasks: 4, nano: 400, ms: 40_000 }), ..RATE };

fn task(id: &str, needs: &[&str]) -> Task {
    let needs = needs.iter().map(|need| (*need).to_owned()).collect();
    Task { id: id.into(), agent: "leo".into(), description: "x".into(), needs, retry: 0, ..Task::default() }
}

fn draft(tasks: Vec<Task>) -> Draft {
    Draft { tasks, ..Draft::default() }
}

fn seen(draft: &Draft, rate: Option<Rate>, max_parallel: usize) -> Forecast {
    let graph = Graph::new(draft, &["leo"]).unwrap();
    forecast(draft, &graph, &|_| rate, max_parallel)
}

fn diamond() -> Draft {
    draft(vec![task("a", &[]), task("b", &["a"]), task("c", &["a"]), task("d", &["b", "c"])])
}

#[test]
fn one_ordinary_task_is_priced_round_by_round() {
    let sum = seen(&draft(vec![task("a", &[])]), Some(RATE), 4);
    // Calls send 4k, 6k, … 18k tokens; what the one before has sent is read from the cache.
    let usage = Usage { input: 0, output: 8 * 500, cache_write: 18_000, cache_read: 4_000 * 7 + 2_000 * 21 };
    let want = Forecast {
        likely_nano: Some(PRICE.of(usage)),
        worst_nano: Some(50 * (200_000 * 3_750 + 8_192 * 15_000)),
        likely_tokens: usage.input_total() + usage.output,
        likely_ms: 8 * 11_000,
        calls_likely: 8,
        agents: 1,
        unpriced: false,
    };
    assert_eq!(sum, want);
}

#[test]
fn what_was_seen_counts_more_than_a_guess() {
    let sum = seen(&diamond(), Some(SEEN), 4);
    assert_eq!((sum.likely_nano, sum.likely_ms), (Some(400), 30_000));
    let nothing = Rate { seen: Some(Seen::default()), ..RATE };
    assert_eq!(seen(&diamond(), Some(nothing), 4), seen(&diamond(), Some(RATE), 4));
}

#[test]
fn the_clock_follows_the_chains_and_the_lanes() {
    let wide: Vec<Task> = (0..10).map(|n| task(&format!("t{n}"), &[])).collect();
    let table = [
        (diamond(), 1, 40_000),
        (diamond(), 2, 30_000),
        (diamond(), 0, 40_000),
        (draft(wide.clone()), 10, 10_000),
        (draft(wide.clone()), 3, 40_000),
        (Draft { max_parallel: Some(2), ..draft(wide.clone()) }, 10, 50_000),
        (Draft { max_parallel: Some(20), ..draft(wide.clone()) }, 5, 20_000),
        (Draft { budget: Budget { wall_ms: Some(7), ..Budget::default() }, ..draft(wide) }, 10, 7),
    ];
    for (at, (draft, lanes, want)) in table.into_iter().enumerate() {
        assert_eq!(seen(&draft, Some(SEEN), lanes).likely_ms, want, "row {at}");
    }
}

#[test]
fn what_does_not_run_costs_nothing() {
    let skip = |task: Task| Task { skip: true, ..task };
    let when = |task: Task, when: &str| Task { when: Some(when.into()), ..task };
    let struck = draft(vec![skip(task("a", &[])), skip(task("b", &["a"]))]);
    let nothing = Forecast { likely_nano: Some(0), worst_nano: Some(0), ..Forecast::default() };
    assert_eq!(seen(&struck, Some(RATE), 4), nothing);
    assert_eq!(seen(&struck, None, 4), nothing, "nobody asks what it would have cost");

    // A rescue is unlikely, and so is what waits for its success; both may happen.
    let rescue = draft(vec![task("a", &[]), when(task("b", &[]), "a.failed"), when(task("c", &[]), "b.ok")]);
    let sum = seen(&rescue, Some(SEEN), 4);
    let one = seen(&draft(vec![task("a", &[])]), Some(SEEN), 4);
    assert_eq!((sum.likely_nano, sum.likely_ms, sum.calls_likely), (Some(100), 10_000, 8));
    assert_eq!((sum.agents, sum.worst_nano), (3, one.worst_nano.map(|worst| worst * 3)));
}

#[test]
fn the_worst_counts_retries_and_stops_at_the_budgets() {
    let retried = |retry, budget| draft(vec![Task { retry, budget, ..task("a", &[]) }]);
    let worst = |draft: &Draft, rate| seen(draft, rate, 1).worst_nano;
    let none = Budget::default();
    let one = 50 * (200_000 * 3_750 + 8_192 * 15_000);
    let capped = Budget { nano: Some(77), ..none };
    let short = Budget { tokens: Some(1_000), ..none };
    let table = [
        (retried(0, none), Some(RATE), Some(one)),
        (retried(2, none), Some(RATE), Some(3 * one)),
        (retried(2, capped), Some(RATE), Some(77)),
        (retried(2, short), Some(RATE), Some(1_000 * 15_000)),
        (Draft { budget: capped, ..diamond() }, Some(RATE), Some(77)),
        (Draft { budget: short, ..diamond() }, Some(RATE), Some(1_000 * 15_000)),
        (Draft { budget: capped, ..diamond() }, None, Some(77)),
        (Draft { budget: short, ..diamond() }, None, None),
        (retried(0, capped), None, Some(77)),
        (diamond(), None, None),
        (diamond(), Some(Rate { price: Some(Price::FREE), ..RATE }), Some(0)),
    ];
    for (at, (draft, rate, want)) in table.into_iter().enumerate() {
        assert_eq!(worst(&draft, rate), want, "row {at}");
    }
}

#[test]
fn without_a_price_there_is_no_sum_but_there_is_a_clock() {
    let sum = seen(&diamond(), None, 2);
    assert_eq!((sum.likely_nano, sum.unpriced, sum.calls_likely), (None, true, 32));
    assert!(sum.likely_ms > 0 && sum.likely_tokens > 0);
    let graph = Graph::new(&diamond(), &["leo"]).unwrap();
    let half = forecast(&diamond(), &graph, &|task| (task.id == "a").then_some(SEEN), 2);
    assert_eq!((half.likely_nano, half.worst_nano, half.unpriced), (Some(100), None, true));
}

#[test]
fn nothing_overflows() {
    let dear = Price { input: u64::MAX, output: u64::MAX, cache_read: u64::MAX, cache_write: u64::MAX };
    let seen_much = Seen { tasks: 1, nano: u64::MAX, ms: u64::MAX };
    let rate = Rate {
        price: Some(dear),
        max_tokens: u32::MAX,
        rounds_max: u32::MAX,
        context_tokens: u64::MAX,
        seen: Some(seen_much),
    };
    let sum = seen(&diamond(), Some(rate), usize::MAX);
    assert_eq!((sum.likely_nano, sum.worst_nano, sum.likely_ms), (Some(u64::MAX), Some(u64::MAX), u64::MAX));
}

#[test]
fn a_forecast_survives_json() {
    let sum = seen(&diamond(), Some(RATE), 2);
    assert_eq!(serde_json::from_str::<Forecast>(&serde_json::to_string(&sum).unwrap()).unwrap(), sum);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_clock_is_between_the_longest_chain_and_one_after_another(
        rows in prop::collection::vec((prop::collection::vec(any::<prop::sample::Index>(), 0..4), 0_u64..1_000), 1..40),
        lanes in 1_usize..6,
    ) {
        let needs = |at: usize, row: &[prop::sample::Index]| -> Vec<String> {
            if at == 0 { Vec::new() } else { row.iter().map(|need| format!("t{}", need.index(at))).collect() }
        };
        let tasks = rows.iter().enumerate();
        let tasks = tasks.map(|(at, (row, _))| Task { needs: needs(at, row), ..task(&format!("t{at}"), &[]) });
        let draft = draft(tasks.collect());
        let graph = Graph::new(&draft, &["leo"]).unwrap();
        let ms = |task: &Task| rows[task.id[1..].parse::<usize>().unwrap()].1;
        let rates = |task: &Task| Some(Rate { seen: Some(Seen { tasks: 1, nano: 1, ms: ms(task) }), ..RATE });
        let sum = forecast(&draft, &graph, &rates, lanes);
        let all: u64 = draft.tasks.iter().map(ms).sum();
        let mut chain = vec![0; draft.tasks.len()];
        for place in graph.waves().iter().flatten() {
            let before = graph.needs(*place).iter().map(|need| chain[*need]).max().unwrap_or_default();
            chain[*place] = before + ms(&draft.tasks[*place]);
        }
        let longest: u64 = chain.into_iter().max().unwrap();
        let lanes = u64::try_from(lanes).unwrap();
        prop_assert!(sum.likely_ms >= longest.max(all.div_ceil(lanes)));
        // Graham's bound for any list scheduling.
        prop_assert!(sum.likely_ms <= longest + all / lanes);
        prop_assert!(sum.likely_nano <= sum.worst_nano);
    }
}
