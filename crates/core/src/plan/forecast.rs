//! The likely and the high cost of a plan, for the person who approves it.
//!
//! Both figures come from the cost of earlier tasks of the same member with the same model ([`History`]), or else from
//! a few named guesses about an ordinary task, with cached input and a context that grows with every call. The high
//! figure is the 90th percentile of the history, or three times the likely one if there are too few tasks; a budget
//! bounds both. A forecast is arithmetic over the draft: it calls no model and refuses nothing.

mod history;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use serde::{Deserialize, Serialize};

pub use history::{History, PastTasks, TaskSample};

use super::{Draft, Graph, TaskDraft, WhenCondition};
use crate::chat::Usage;
use crate::ledger::Price;

/// Model calls of an ordinary task: look around, change something, check it, say so.
const CALLS_LIKELY: u64 = 8;
/// Tokens that a member brings to its first call: who it is, its tools, the project's instructions.
const START_TOKENS: u64 = 4_000;
/// Tokens of a result that a task builds on.
const RESULT_TOKENS: u64 = 800;
/// Tokens that one call adds to the conversation: tool calls and their results.
const CALL_TOKENS: u64 = 2_000;
/// Tokens that one answer writes.
const ANSWER_TOKENS: u64 = 500;
/// Bytes of text that make a token; prose has four, code and Chinese fewer.
const TOKEN_BYTES: usize = 3;
/// Milliseconds from a call to the end of its answer.
const CALL_MS: u64 = 9_000;
/// Milliseconds that the tools of one call take.
const TOOLS_MS: u64 = 2_000;
/// Milliseconds that one of the commands in `verify` takes.
const VERIFY_MS: u64 = 15_000;
/// How many times the likely cost a task may reasonably cost, retries included, where history does not say.
const HIGH_FACTOR: u64 = 3;

/// The price of a task owner's calls, and their limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// The price of the model's tokens, if known.
    pub price: Option<Price>,
    /// Tokens that one answer may have.
    pub max_tokens: u32,
    /// Calls that one attempt may make.
    pub rounds_max: u32,
    /// Tokens that fit into the model's window.
    pub context_tokens: u64,
    /// This member's earlier tasks.
    pub past: PastTasks,
}

/// Limits of the plan as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanBounds {
    /// How many tasks may run at once, unless the plan itself wants fewer.
    pub max_parallel: usize,
    /// The rest of the session's budget in nano-dollars, if it has one.
    pub session_nano: Option<u64>,
}

/// Expected cost and duration of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Forecast {
    /// Nano-dollars if nothing goes wrong, of all tasks that have a price; `None` if none has.
    pub likely_nano: Option<u64>,
    /// Nano-dollars that it may reasonably cost, with retries and tasks that only run after a failure; `None` if no
    /// task has a price, and in older journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_nano: Option<u64>,
    /// Nano-dollars that budgets allow at most: the plan's, its tasks' or the session's; `None` if no budget bounds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_nano: Option<u64>,
    /// Tokens if nothing goes wrong, in and out.
    pub likely_tokens: u64,
    /// Milliseconds on the clock if nothing goes wrong and no person has to be waited for.
    pub likely_ms: u64,
    /// Model calls if nothing goes wrong.
    pub calls_likely: u64,
    /// Tasks that can run, each with an agent of its own.
    pub agents: usize,
    /// Whether a task has no price, so that the figures are too low.
    pub unpriced: bool,
    /// Earlier tasks that the figures come from; 0 if they are guesses.
    #[serde(default)]
    pub samples: u64,
}

/// Forecasts a plan. `rates` gives the price of a task's owner, `None` if its model is unknown.
pub fn forecast(
    draft: &Draft,
    graph: &Graph,
    rates: &dyn Fn(&TaskDraft) -> Option<Rate>,
    bounds: PlanBounds,
) -> Forecast {
    let runs = likely_runs(draft, graph);
    let mut sum = Forecast::default();
    let (mut high, mut task_budgets, mut dearest) = (None, Some(0), Some(0));
    let mut times = vec![0; draft.tasks.len()];
    let mut samples: HashMap<&str, u64> = HashMap::new();
    for (place, task) in draft.tasks.iter().enumerate().filter(|(_, task)| !task.skip) {
        let rate = rates(task);
        let guess = guess(task, graph.needs(place).len(), rate);
        let price = rate.and_then(|rate| rate.price);
        sum.agents += 1;
        sum.unpriced |= price.is_none();
        samples.insert(&task.agent, rate.map_or(0, |rate| rate.past.tasks));
        task_budgets = add(task_budgets, budget_of(task, price));
        dearest = dearest.zip(price).map(|(dearest, price)| dearest.max(unit(price)));
        high = either(high, guess.high_nano);
        if runs.get(place) != Some(&true) {
            continue;
        }
        sum.calls_likely = sum.calls_likely.saturating_add(guess.calls);
        sum.likely_tokens = sum.likely_tokens.saturating_add(guess.tokens);
        sum.likely_nano = either(sum.likely_nano, guess.likely_nano);
        if let Some(slot) = times.get_mut(place) {
            *slot = guess.ms;
        }
    }
    sum.samples = samples.values().fold(0, |sum, tasks| sum.saturating_add(*tasks));
    let by_tokens = draft.budget.tokens.zip(dearest).map(|(tokens, nano)| tokens.saturating_mul(nano));
    let task_budgets = task_budgets.filter(|_| sum.agents > 0);
    let budgets = [task_budgets, draft.budget.nano, by_tokens, bounds.session_nano];
    sum.budget_nano = budgets.into_iter().flatten().min();
    let bounded = |nano: Option<u64>| nano.map(|nano| within(nano, sum.budget_nano));
    let free = || (!sum.unpriced).then_some(0);
    (sum.likely_nano, sum.high_nano) = (bounded(sum.likely_nano.or_else(free)), bounded(high.or_else(free)));
    sum.likely_tokens = within(sum.likely_tokens, draft.budget.tokens);
    let wanted = draft.max_parallel.and_then(|wanted| usize::try_from(wanted).ok()).unwrap_or(bounds.max_parallel);
    sum.likely_ms = within(makespan(graph, &times, wanted.min(bounds.max_parallel)), draft.budget.wall_ms);
    sum
}

fn within(value: u64, bound: Option<u64>) -> u64 {
    bound.map_or(value, |bound| value.min(bound))
}

/// The sum of both; `None` if one of them is.
fn add(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.zip(other).map(|(one, other)| one.saturating_add(other))
}

/// The sum of the known values; `None` if both are unknown.
fn either(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    if one.is_none() && other.is_none() {
        return None;
    }
    Some(one.unwrap_or_default().saturating_add(other.unwrap_or_default()))
}

/// Which tasks run if nothing goes wrong: all but excluded tasks, tasks that wait for a failure, and tasks that wait
/// for the success of one of those.
fn likely_runs(draft: &Draft, graph: &Graph) -> Vec<bool> {
    let mut runs = vec![false; draft.tasks.len()];
    // The task of a condition is in an earlier wave, so it has been decided already.
    for place in graph.waves().iter().flatten().copied() {
        let skip = draft.tasks.get(place).is_none_or(|task| task.skip);
        let met = match graph.condition(place) {
            None => true,
            Some((_, WhenCondition::Failed)) => false,
            Some((other, WhenCondition::Ok)) => runs.get(other).copied().unwrap_or_default(),
        };
        if let Some(slot) = runs.get_mut(place) {
            *slot = met && !skip;
        }
    }
    runs
}

/// The forecast of one task.
struct TaskForecast {
    calls: u64,
    tokens: u64,
    likely_nano: Option<u64>,
    high_nano: Option<u64>,
    ms: u64,
}

/// The cost of a task that succeeds at its first attempt, and its high cost.
fn guess(task: &TaskDraft, needs: usize, rate: Option<Rate>) -> TaskForecast {
    let past = rate.map(|rate| rate.past).unwrap_or_default();
    let most = rate.map_or(CALLS_LIKELY, |rate| u64::from(rate.rounds_max).max(1));
    let calls = past.calls.unwrap_or_else(|| CALLS_LIKELY.min(most));
    let usage = usage(task, needs, calls, rate);
    let price = rate.and_then(|rate| rate.price);
    let budget = budget_of(task, price);
    let likely = price.map(|price| past.nano.map_or_else(|| price.cost_of(usage), |(mean, _)| mean));
    let high = likely.map(|likely| match past.nano {
        Some((_, Some(high))) => high.max(likely),
        _ => likely.saturating_mul(HIGH_FACTOR),
    });
    let checks = u64::try_from(task.verify.len()).unwrap_or(u64::MAX).saturating_mul(VERIFY_MS);
    let ms = past.ms.unwrap_or_else(|| calls.saturating_mul(CALL_MS + TOOLS_MS).saturating_add(checks));
    TaskForecast {
        calls,
        tokens: within(usage.input_total().saturating_add(usage.output), task.budget.tokens),
        likely_nano: likely.map(|nano| within(nano, budget)),
        high_nano: high.map(|nano| within(nano, budget)),
        ms: within(within(ms, task.timeout_ms), task.budget.wall_ms),
    }
}

/// The tokens of this number of calls. The input of the call before is read from the cache; without a cache, both cost
/// the same.
fn usage(task: &TaskDraft, needs: usize, calls: u64, rate: Option<Rate>) -> Usage {
    let output = rate.map_or(ANSWER_TOKENS, |rate| ANSWER_TOKENS.min(u64::from(rate.max_tokens)));
    let window = rate.map_or(u64::MAX, |rate| rate.context_tokens.max(1));
    let brief = u64::try_from(task.description.len() / TOKEN_BYTES).unwrap_or(u64::MAX);
    let results = u64::try_from(needs).unwrap_or(u64::MAX).saturating_mul(RESULT_TOKENS);
    let start = START_TOKENS.saturating_add(brief).saturating_add(results);
    let mut usage = Usage::default();
    let mut before = 0;
    for call in 0..calls {
        let input = start.saturating_add(call.saturating_mul(CALL_TOKENS)).min(window);
        usage += Usage { cache_read: before, cache_write: input - before, output, ..Usage::default() };
        before = input;
    }
    usage
}

/// The most that one token of any kind costs.
fn unit(price: Price) -> u64 {
    price.input.max(price.output).max(price.cache_read).max(price.cache_write)
}

/// The bound of a task's own budget, if it has one.
fn budget_of(task: &TaskDraft, price: Option<Price>) -> Option<u64> {
    let by_tokens = task.budget.tokens.zip(price).map(|(tokens, price)| tokens.saturating_mul(unit(price)));
    [task.budget.nano, by_tokens].into_iter().flatten().min()
}

/// When the last task ends if the task with the longest chain behind it starts first and `max_parallel` run at once.
fn makespan(graph: &Graph, times: &[u64], max_parallel: usize) -> u64 {
    let mut open: Vec<usize> = (0..graph.len()).map(|task| graph.needs(task).len()).collect();
    let rank = |task: usize| (graph.tail(task), Reverse(task));
    let mut ready: BinaryHeap<_> = (0..graph.len()).filter(|task| graph.needs(*task).is_empty()).map(rank).collect();
    let mut running: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut now = 0;
    loop {
        while running.len() < max_parallel.max(1) {
            let Some((_, Reverse(task))) = ready.pop() else { break };
            let ms = times.get(task).copied().unwrap_or_default();
            running.push(Reverse((u64::saturating_add(now, ms), task)));
        }
        let Some(Reverse((end, task))) = running.pop() else { return now };
        now = end;
        for next in graph.dependents(task) {
            if let Some(open) = open.get_mut(*next) {
                *open -= 1;
                if *open == 0 {
                    ready.push(rank(*next));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
