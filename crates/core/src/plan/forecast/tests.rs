//! Forecasts of small plans, figure by figure, and what holds for all of them.

use proptest::prelude::*;

use super::*;
use crate::plan::Budget;

const PRICE: Price = Price { input: 3_000, output: 15_000, cache_read: 300, cache_write: 3_750 };
const NOTHING: PastTasks = PastTasks { tasks: 0, calls: None, nano: None, ms: None };
const RATE: Rate =
    Rate { price: Some(PRICE), max_tokens: 8_192, rounds_max: 50, context_tokens: 200_000, past: NOTHING };
const KNOWN: Rate =
    Rate { past: PastTasks { tasks: 4, calls: Some(5), nano: Some((100, Some(250))), ms: Some(10_000) }, ..RATE };

/// What a call of the diamond's tasks costs that is not known from before: 4k, 6k, … 18k tokens in, half a thousand out.
fn usual() -> Usage {
    Usage { input: 0, output: 8 * 500, cache_write: 18_000, cache_read: 4_000 * 7 + 2_000 * 21 }
}

fn sample(model: &str, calls: u64, nano: u64) -> TaskSample {
    TaskSample { member: "leo".into(), model: model.into(), calls, nano, ms: 10 * calls }
}

fn task(id: &str, needs: &[&str]) -> TaskDraft {
    let needs = needs.iter().map(|need| (*need).to_owned()).collect();
    TaskDraft { id: id.into(), agent: "leo".into(), description: "x".into(), needs, retry: 0, ..TaskDraft::default() }
}

fn draft(tasks: Vec<TaskDraft>) -> Draft {
    Draft { tasks, ..Draft::default() }
}

fn seen(draft: &Draft, rate: Option<Rate>, max_parallel: usize) -> Forecast {
    let graph = Graph::new(draft, &["leo"]).unwrap();
    forecast(draft, &graph, &|_| rate, PlanBounds { max_parallel, session_nano: None })
}

fn diamond() -> Draft {
    draft(vec![task("a", &[]), task("b", &["a"]), task("c", &["a"]), task("d", &["b", "c"])])
}

#[test]
fn an_ordinary_task_is_priced_call_by_call() {
    let sum = seen(&draft(vec![task("a", &[])]), Some(RATE), 4);
    let want = Forecast {
        likely_nano: Some(PRICE.cost_of(usual())),
        high_nano: Some(3 * PRICE.cost_of(usual())),
        budget_nano: None,
        likely_tokens: usual().input_total() + usual().output,
        likely_ms: 8 * 11_000,
        calls_likely: 8,
        agents: 1,
        unpriced: false,
        samples: 0,
    };
    assert_eq!(sum, want);
}

/// The plan that an absurd bound was shown for: four tasks of an ordinary kind.
#[test]
fn the_high_figure_is_of_the_order_of_the_likely_one() {
    let sum = seen(&diamond(), Some(Rate { rounds_max: 500, ..RATE }), 4);
    let (likely, high) = (sum.likely_nano.unwrap(), sum.high_nano.unwrap());
    assert!(likely > 300_000_000 && high < 3_000_000_000 && high == 3 * likely, "{likely} {high}");
}

#[test]
fn history_outweighs_the_default_estimate() {
    let sum = seen(&diamond(), Some(KNOWN), 4);
    let money = (sum.likely_nano, sum.high_nano);
    assert_eq!((money, sum.likely_ms, sum.calls_likely), ((Some(400), Some(1_000)), 30_000, 20));
    assert_eq!(sum.samples, 4, "the same member's tasks are counted once");
    // Of another model only the calls are known: they are priced anew, and three times that is high.
    let other = Rate { past: PastTasks { nano: None, ..KNOWN.past }, ..RATE };
    let one = seen(&draft(vec![task("a", &[])]), Some(other), 4);
    let five = Usage { input: 0, output: 5 * 500, cache_write: 12_000, cache_read: 4_000 * 4 + 2_000 * 6 };
    assert_eq!((one.likely_nano, one.high_nano), (Some(PRICE.cost_of(five)), Some(3 * PRICE.cost_of(five))));
    // Too few to say what is high.
    let few = Rate { past: PastTasks { nano: Some((100, None)), ..KNOWN.past }, ..RATE };
    assert_eq!(seen(&diamond(), Some(few), 4).high_nano, Some(1_200));
}

#[test]
fn history_is_of_the_member_and_of_the_model() {
    let ten: Vec<TaskSample> = (1..=10).map(|n| sample("m", n, n * 100)).collect();
    let other = TaskSample { member: "ada".into(), ..sample("m", 99, 9_900) };
    let table = [
        (vec![], PastTasks::default()),
        (vec![other.clone(), sample("m", 0, 0)], PastTasks::default()),
        (vec![sample("m", 2, 50)], PastTasks { tasks: 1, calls: Some(2), nano: Some((50, None)), ms: Some(20) }),
        (vec![sample("n", 2, 50)], PastTasks { tasks: 1, calls: Some(2), nano: None, ms: Some(20) }),
        (
            vec![sample("m", 1, 10), sample("m", 2, 20), sample("m", 3, 90)],
            PastTasks { tasks: 3, calls: Some(2), nano: Some((40, Some(90))), ms: Some(20) },
        ),
        (
            ten.into_iter().chain([other, sample("n", 5, 7_000)]).collect(),
            PastTasks { tasks: 11, calls: Some(5), nano: Some((550, Some(900))), ms: Some(54) },
        ),
    ];
    for (at, (samples, want)) in table.into_iter().enumerate() {
        assert_eq!(History(samples).past_tasks("leo", "m"), want, "row {at}");
    }
}

#[test]
fn the_clock_follows_the_chains_and_the_lanes() {
    let wide: Vec<TaskDraft> = (0..10).map(|n| task(&format!("t{n}"), &[])).collect();
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
        assert_eq!(seen(&draft, Some(KNOWN), lanes).likely_ms, want, "row {at}");
    }
}

#[test]
fn a_task_that_does_not_run_costs_nothing() {
    let skip = |task: TaskDraft| TaskDraft { skip: true, ..task };
    let when = |task: TaskDraft, when: &str| TaskDraft { when: Some(when.into()), ..task };
    let struck = draft(vec![skip(task("a", &[])), skip(task("b", &["a"]))]);
    let nothing = Forecast { likely_nano: Some(0), high_nano: Some(0), ..Forecast::default() };
    assert_eq!(seen(&struck, Some(RATE), 4), nothing);
    assert_eq!(seen(&struck, None, 4), nothing, "nobody asks what it would have cost");

    // A rescue is unlikely, and so is what waits for its success; both may happen.
    let rescue = draft(vec![task("a", &[]), when(task("b", &[]), "a.failed"), when(task("c", &[]), "b.ok")]);
    let sum = seen(&rescue, Some(KNOWN), 4);
    let one = seen(&draft(vec![task("a", &[])]), Some(KNOWN), 4);
    assert_eq!((sum.likely_nano, sum.likely_ms, sum.calls_likely), (Some(100), 10_000, 5));
    assert_eq!((sum.agents, sum.high_nano), (3, one.high_nano.map(|high| high * 3)));
}

#[test]
fn budgets_bound_both_figures_and_are_named() {
    let of = |budget| draft(vec![TaskDraft { budget, ..task("a", &[]) }]);
    let none = Budget::default();
    let capped = Budget { nano: Some(77), ..none };
    let short = Budget { tokens: Some(1_000), ..none };
    let table = [
        (of(none), Some(RATE), None, None),
        (of(capped), Some(RATE), None, Some(77)),
        (of(short), Some(RATE), None, Some(1_000 * 15_000)),
        (of(none), Some(RATE), Some(60), Some(60)),
        (of(capped), Some(RATE), Some(60), Some(60)),
        (Draft { budget: capped, ..diamond() }, Some(RATE), None, Some(77)),
        (Draft { budget: short, ..diamond() }, Some(RATE), None, Some(1_000 * 15_000)),
        (Draft { budget: capped, ..diamond() }, None, None, Some(77)),
        (Draft { budget: short, ..diamond() }, None, None, None),
    ];
    for (at, (draft, rate, session_nano, want)) in table.into_iter().enumerate() {
        let graph = Graph::new(&draft, &["leo"]).unwrap();
        let sum = forecast(&draft, &graph, &|_| rate, PlanBounds { max_parallel: 1, session_nano });
        assert_eq!(sum.budget_nano, want, "row {at}");
        let is_within = |nano: Option<u64>| nano.zip(want).is_none_or(|(nano, most)| nano <= most);
        assert!(is_within(sum.likely_nano) && is_within(sum.high_nano), "row {at}: {sum:?}");
        assert!(sum.likely_nano <= sum.high_nano, "row {at}: {sum:?}");
    }
}

#[test]
fn without_a_price_there_is_no_sum_but_there_is_a_clock() {
    let sum = seen(&diamond(), None, 2);
    assert_eq!((sum.likely_nano, sum.unpriced, sum.calls_likely), (None, true, 32));
    assert!(sum.likely_ms > 0 && sum.likely_tokens > 0);
    let graph = Graph::new(&diamond(), &["leo"]).unwrap();
    let half = forecast(
        &diamond(),
        &graph,
        &|task| (task.id == "a").then_some(KNOWN),
        PlanBounds { max_parallel: 2, session_nano: None },
    );
    assert_eq!((half.likely_nano, half.high_nano, half.unpriced), (Some(100), Some(250), true));
}

#[test]
fn nothing_overflows() {
    let dear = Price { input: u64::MAX, output: u64::MAX, cache_read: u64::MAX, cache_write: u64::MAX };
    let past =
        PastTasks { tasks: u64::MAX, calls: Some(3), nano: Some((u64::MAX, Some(u64::MAX))), ms: Some(u64::MAX) };
    let rate = Rate { price: Some(dear), max_tokens: u32::MAX, rounds_max: u32::MAX, context_tokens: u64::MAX, past };
    let sum = seen(&diamond(), Some(rate), usize::MAX);
    assert_eq!((sum.likely_nano, sum.high_nano, sum.likely_ms), (Some(u64::MAX), Some(u64::MAX), u64::MAX));
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
        let tasks = tasks.map(|(at, (row, _))| TaskDraft { needs: needs(at, row), ..task(&format!("t{at}"), &[]) });
        let draft = draft(tasks.collect());
        let graph = Graph::new(&draft, &["leo"]).unwrap();
        let ms = |task: &TaskDraft| rows[task.id[1..].parse::<usize>().unwrap()].1;
        let rates = |task: &TaskDraft| Some(Rate { past: PastTasks { ms: Some(ms(task)), ..KNOWN.past }, ..RATE });
        let sum = forecast(&draft, &graph, &rates, PlanBounds { max_parallel: lanes, session_nano: None });
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
        prop_assert!(sum.likely_nano <= sum.high_nano);
    }
}
