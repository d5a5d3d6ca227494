//! What a plan will probably cost, and what it can cost at most, before anybody says yes to it.
//!
//! The likely figures come from what a member's tasks cost before, or else from a few named guesses about an ordinary
//! task; they count no retries. The worst figure counts every round and every retry, up to the budgets. A forecast
//! is arithmetic over the draft: it asks nobody, and nothing is refused because of it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use super::{Draft, Graph, Task, Wanted};
use crate::chat::Usage;
use crate::ledger::Price;

/// Model calls of an ordinary task: look around, change something, check it, say so.
const ROUNDS_LIKELY: u32 = 8;
/// Tokens that a member brings to its first call: who it is, its tools, the project's instructions.
const START_TOKENS: u64 = 4_000;
/// Tokens of a result that a task builds on.
const RESULT_TOKENS: u64 = 800;
/// Tokens that one round adds to the conversation: what was called and what came back.
const ROUND_TOKENS: u64 = 2_000;
/// Tokens that one answer writes.
const ANSWER_TOKENS: u64 = 500;
/// Bytes of text that make a token; prose has four, code and Chinese fewer.
const TOKEN_BYTES: usize = 3;
/// Milliseconds from a call to the end of its answer.
const CALL_MS: u64 = 9_000;
/// Milliseconds that the tools of one round take.
const TOOLS_MS: u64 = 2_000;
/// Milliseconds that one of the commands in `verify` takes.
const VERIFY_MS: u64 = 15_000;

/// What calls of a task's owner cost, and how many there can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// What the model's tokens cost, if anybody knows.
    pub price: Option<Price>,
    /// Tokens that one answer may have.
    pub max_tokens: u32,
    /// Calls that one attempt may make.
    pub rounds_max: u32,
    /// Tokens that fit into the model's window.
    pub context_tokens: u64,
    /// What this member's past tasks cost.
    pub seen: Option<Seen>,
}

/// What tasks cost in the past, all together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Seen {
    /// How many.
    pub tasks: u64,
    /// Their nano-dollars.
    pub nano: u64,
    /// Their milliseconds.
    pub ms: u64,
}

/// What is to be expected of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Forecast {
    /// Nano-dollars if nothing goes wrong, of all tasks that have a price; `None` if none has.
    pub likely_nano: Option<u64>,
    /// Nano-dollars with every round and every retry, as far as the budgets go; `None` if nothing bounds it.
    pub worst_nano: Option<u64>,
    /// Tokens if nothing goes wrong, in and out.
    pub likely_tokens: u64,
    /// Milliseconds on the clock if nothing goes wrong and nobody has to be waited for.
    pub likely_ms: u64,
    /// Model calls if nothing goes wrong.
    pub calls_likely: u64,
    /// Tasks that can run, each with an agent of its own.
    pub agents: usize,
    /// Whether a task has no price, so that the likely figure is too low.
    pub unpriced: bool,
}

/// Forecasts a plan. `rates` says what a task's owner costs, `None` if nobody knows; `max_parallel` is how many tasks
/// may run at once, unless the plan itself wants fewer.
pub fn forecast(draft: &Draft, graph: &Graph, rates: &dyn Fn(&Task) -> Option<Rate>, max_parallel: usize) -> Forecast {
    let runs = likely_runs(draft, graph);
    let mut sum = Forecast { worst_nano: Some(0), ..Forecast::default() };
    let mut dearest = Some(0);
    let mut times = vec![0; draft.tasks.len()];
    for (place, task) in draft.tasks.iter().enumerate().filter(|(_, task)| !task.skip) {
        let rate = rates(task);
        let price = rate.and_then(|rate| rate.price);
        sum.agents += 1;
        sum.unpriced |= price.is_none();
        sum.worst_nano = add(sum.worst_nano, worst(task, rate));
        dearest = dearest.zip(price).map(|(dearest, price)| dearest.max(unit(price)));
        if runs.get(place) != Some(&true) {
            continue;
        }
        let guess = guess(task, graph.needs(place).len(), rate);
        sum.calls_likely = sum.calls_likely.saturating_add(guess.calls);
        sum.likely_tokens = sum.likely_tokens.saturating_add(guess.tokens);
        if let Some(nano) = guess.nano {
            sum.likely_nano = Some(sum.likely_nano.unwrap_or_default().saturating_add(nano));
        }
        if let Some(slot) = times.get_mut(place) {
            *slot = guess.ms;
        }
    }
    let by_tokens = draft.budget.tokens.zip(dearest).map(|(tokens, nano)| tokens.saturating_mul(nano));
    sum.worst_nano = [sum.worst_nano, draft.budget.nano, by_tokens].into_iter().flatten().min();
    sum.likely_nano = sum.likely_nano.or((!sum.unpriced).then_some(0));
    sum.likely_nano = sum.likely_nano.map(|nano| within(nano, sum.worst_nano));
    sum.likely_tokens = within(sum.likely_tokens, draft.budget.tokens);
    let wanted = draft.max_parallel.and_then(|wanted| usize::try_from(wanted).ok()).unwrap_or(max_parallel);
    sum.likely_ms = within(makespan(graph, &times, wanted.min(max_parallel)), draft.budget.wall_ms);
    sum
}

fn within(value: u64, bound: Option<u64>) -> u64 {
    bound.map_or(value, |bound| value.min(bound))
}

fn add(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.zip(other).map(|(one, other)| one.saturating_add(other))
}

/// Which tasks run if nothing goes wrong: not what was struck out, not what waits for a failure, and not what waits
/// for the success of one of those.
fn likely_runs(draft: &Draft, graph: &Graph) -> Vec<bool> {
    let mut runs = vec![false; draft.tasks.len()];
    // What a task waits for is in an earlier wave, so it has been decided already.
    for place in graph.waves().iter().flatten().copied() {
        let skip = draft.tasks.get(place).is_none_or(|task| task.skip);
        let met = match graph.condition(place) {
            None => true,
            Some((_, Wanted::Failed)) => false,
            Some((other, Wanted::Ok)) => runs.get(other).copied().unwrap_or_default(),
        };
        if let Some(slot) = runs.get_mut(place) {
            *slot = met && !skip;
        }
    }
    runs
}

struct Guess {
    calls: u64,
    tokens: u64,
    nano: Option<u64>,
    ms: u64,
}

/// One task that succeeds at its first attempt.
fn guess(task: &Task, needs: usize, rate: Option<Rate>) -> Guess {
    let rounds = u64::from(rate.map_or(ROUNDS_LIKELY, |rate| rate.rounds_max.clamp(1, ROUNDS_LIKELY)));
    let output = rate.map_or(ANSWER_TOKENS, |rate| ANSWER_TOKENS.min(u64::from(rate.max_tokens)));
    let window = rate.map_or(u64::MAX, |rate| rate.context_tokens.max(1));
    let brief = u64::try_from(task.description.len() / TOKEN_BYTES).unwrap_or(u64::MAX);
    let results = u64::try_from(needs).unwrap_or(u64::MAX).saturating_mul(RESULT_TOKENS);
    let start = START_TOKENS.saturating_add(brief).saturating_add(results);
    let mut usage = Usage::default();
    let mut before = 0;
    for round in 0..rounds {
        let input = start.saturating_add(round * ROUND_TOKENS).min(window);
        // What the call before has sent is read from the cache; where there is none, both cost the same.
        usage += Usage { cache_read: before, cache_write: input - before, output, ..Usage::default() };
        before = input;
    }
    let seen = rate.and_then(|rate| rate.seen).filter(|seen| seen.tasks > 0);
    let price = rate.and_then(|rate| rate.price);
    let nano = price.map(|price| seen.map_or_else(|| price.of(usage), |seen| seen.nano / seen.tasks));
    let checks = u64::try_from(task.verify.len()).unwrap_or(u64::MAX).saturating_mul(VERIFY_MS);
    let ms = seen.map_or_else(|| (rounds * (CALL_MS + TOOLS_MS)).saturating_add(checks), |seen| seen.ms / seen.tasks);
    Guess {
        calls: rounds,
        tokens: within(usage.input_total().saturating_add(usage.output), task.budget.tokens),
        nano: nano.map(|nano| within(nano, worst(task, rate))),
        ms: within(within(ms, task.timeout_ms), task.budget.wall_ms),
    }
}

/// The most that one token of any kind costs.
fn unit(price: Price) -> u64 {
    price.input.max(price.output).max(price.cache_read).max(price.cache_write)
}

/// One task that fills its window in every round of every attempt.
fn worst(task: &Task, rate: Option<Rate>) -> Option<u64> {
    let priced = rate.and_then(|rate| Some((rate, rate.price?))).map(|(rate, price)| {
        let input = price.input.max(price.cache_write).max(price.cache_read);
        let usage = Usage { input: rate.context_tokens, output: u64::from(rate.max_tokens), ..Usage::default() };
        let call = Price { input, ..price }.of(usage);
        let calls = u64::from(rate.rounds_max.max(1)).saturating_mul(u64::from(task.retry) + 1);
        within(call.saturating_mul(calls), task.budget.tokens.map(|tokens| tokens.saturating_mul(unit(price))))
    });
    // Under a cap, nothing without a price is called at all; the cap holds either way.
    [priced, task.budget.nano].into_iter().flatten().min()
}

/// When the last task ends if whoever has the longest way to go starts first and `max_parallel` run at once.
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
