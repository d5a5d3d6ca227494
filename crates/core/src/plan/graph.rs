//! A checked draft: every name is known, there is no cycle, every limit is kept.
//!
//! A [`Graph`] can only be made by checking a draft, so code that holds one need not check again. Making one takes
//! time linear in tasks and edges; later lookups do not depend on the size of the plan.

use std::collections::{BTreeSet, HashMap};

use super::flaw::{DraftFlaw, DraftFlaws, FlawReason, UnknownTask};
use super::{Draft, WhenCondition, validate};
use crate::limits::{PLAN_DEPTH_MAX, PLAN_EDGES_MAX, PLAN_TASKS_MAX, TASK_NEEDS_MAX};
use crate::text::quote;

/// Names of a cycle that an error lists.
const CYCLE_SHOWN_MAX: usize = 20;

/// The order of a checked plan's tasks. A task is identified by its place in the draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    index: HashMap<String, usize>,
    needs: Vec<Vec<usize>>,
    dependents: Vec<Vec<usize>>,
    conditions: Vec<Option<(usize, WhenCondition)>>,
    wave_of: Vec<usize>,
    waves: Vec<Vec<usize>>,
    tail: Vec<u32>,
    gated: Vec<bool>,
}

impl Graph {
    /// Checks a draft. `members` are the names that may own a task. Returns all flaws, up to a limit.
    pub fn new(draft: &Draft, members: &[&str]) -> Result<Self, Vec<DraftFlaw>> {
        let mut flaws = DraftFlaws::default();
        // A draft that is far too large is refused before anything is built from it.
        let is_too_large = |count: usize| count > PLAN_TASKS_MAX;
        if is_too_large(draft.tasks.len()) {
            flaws.plan(|| FlawReason::TooManyTasks(draft.tasks.len()));
        } else if is_too_large(draft.gates.len()) {
            flaws.plan(|| FlawReason::TooManyGates(draft.gates.len()));
        }
        if !flaws.is_empty() {
            return Err(flaws.list());
        }
        let index = names(draft, &mut flaws);
        validate::check(draft, members, &mut flaws);
        let (needs, conditions) = edges(draft, &index, &mut flaws);
        let gated = gates(draft, &index, &mut flaws);
        let dependents = turned(&needs);
        let order = order(&needs, &dependents);
        // While two tasks share a name, an apparent cycle may be none.
        if order.is_none() && index.len() == draft.tasks.len() {
            flaws.plan(|| FlawReason::Cycle(cycle_names(draft, &needs)));
        }
        let order = order.filter(|_| flaws.is_empty()).ok_or_else(|| flaws.list())?;
        let (wave_of, waves) = waves(&needs, &order);
        if waves.len() > PLAN_DEPTH_MAX {
            let reason = FlawReason::LongChain(waves.len());
            return Err(vec![DraftFlaw { task: String::new(), reason }]);
        }
        let tail = tails(&dependents, &order);
        Ok(Self { index, needs, dependents, conditions, wave_of, waves, tail, gated })
    }

    /// How many tasks there are.
    pub fn len(&self) -> usize {
        self.needs.len()
    }

    /// Always false: a plan without tasks is a flaw.
    pub fn is_empty(&self) -> bool {
        self.needs.is_empty()
    }

    /// The task of that name.
    pub fn index(&self, id: &str) -> Option<usize> {
        self.index.get(id).copied()
    }

    /// The tasks that it builds on, without repetition.
    pub fn needs(&self, task: usize) -> &[usize] {
        self.needs.get(task).map_or(&[], Vec::as_slice)
    }

    /// Whether a task needs another, directly or through others.
    pub fn builds_on(&self, task: usize, other: usize) -> bool {
        let (mut open, mut seen) = (vec![task], BTreeSet::new());
        while let Some(task) = open.pop() {
            open.extend(self.needs(task).iter().filter(|need| seen.insert(**need)));
        }
        seen.contains(&other)
    }

    /// The tasks that build on it.
    pub fn dependents(&self, task: usize) -> &[usize] {
        self.dependents.get(task).map_or(&[], Vec::as_slice)
    }

    /// The task and the outcome that its `when` requires.
    pub fn condition(&self, task: usize) -> Option<(usize, WhenCondition)> {
        self.conditions.get(task).copied().flatten()
    }

    /// Whether a person is asked again before it starts.
    pub fn is_gated(&self, task: usize) -> bool {
        self.gated.get(task).copied().unwrap_or_default()
    }

    /// The earliest wave it can run in, from 0.
    pub fn wave(&self, task: usize) -> usize {
        self.wave_of.get(task).copied().unwrap_or_default()
    }

    /// The tasks of each wave, in the order they were written.
    pub fn waves(&self) -> &[Vec<usize>] {
        &self.waves
    }

    /// Length of the longest chain from it to the end, itself included.
    pub fn tail(&self, task: usize) -> u32 {
        self.tail.get(task).copied().unwrap_or_default()
    }

    /// The longest chain, which bounds how fast the plan can be.
    pub fn critical(&self) -> Vec<usize> {
        let longest =
            |tasks: &[usize]| tasks.iter().copied().max_by_key(|task| (self.tail(*task), std::cmp::Reverse(*task)));
        let mut path = Vec::new();
        let mut next = self.waves.first().and_then(|first| longest(first));
        while let Some(task) = next {
            path.push(task);
            next = longest(self.dependents(task));
        }
        path
    }
}

fn names(draft: &Draft, flaws: &mut DraftFlaws) -> HashMap<String, usize> {
    let mut index = HashMap::with_capacity(draft.tasks.len());
    for (place, task) in draft.tasks.iter().enumerate() {
        if validate::check_id(task, place, flaws) && index.insert(task.id.clone(), place).is_some() {
            flaws.task(task, || FlawReason::SameId);
        }
    }
    index
}

type Edges = (Vec<Vec<usize>>, Vec<Option<(usize, WhenCondition)>>);

fn edges(draft: &Draft, index: &HashMap<String, usize>, flaws: &mut DraftFlaws) -> Edges {
    let mut needs = vec![Vec::new(); draft.tasks.len()];
    let mut conditions = vec![None; draft.tasks.len()];
    let mut edges = 0;
    for (place, (task, (list, slot))) in draft.tasks.iter().zip(needs.iter_mut().zip(&mut conditions)).enumerate() {
        if task.needs.len() > TASK_NEEDS_MAX {
            flaws.task(task, || FlawReason::ManyNeeds(task.needs.len()));
        }
        let condition = task.condition().unwrap_or_else(|text| {
            flaws.task(task, || FlawReason::BadWhen(quote(text)));
            None
        });
        let named = task.needs.iter().take(TASK_NEEDS_MAX).map(String::as_str).chain(condition.map(|(id, _)| id));
        for id in named {
            match index.get(id) {
                Some(need) if *need == place => flaws.task(task, || FlawReason::NeedsItself),
                Some(need) => list.push(*need),
                None => flaws.task(task, || {
                    FlawReason::UnknownNeed(UnknownTask::new(id, draft.tasks.iter().map(|task| task.id.as_str())))
                }),
            }
        }
        list.sort_unstable();
        list.dedup();
        *slot = condition.and_then(|(id, wanted)| Some((*index.get(id)?, wanted)));
        edges += list.len();
        if edges > PLAN_EDGES_MAX {
            flaws.plan(|| FlawReason::ManyEdges);
            break;
        }
    }
    (needs, conditions)
}

fn gates(draft: &Draft, index: &HashMap<String, usize>, flaws: &mut DraftFlaws) -> Vec<bool> {
    let mut gated = vec![false; draft.tasks.len()];
    for gate in &draft.gates {
        match index.get(&gate.before).and_then(|task| gated.get_mut(*task)) {
            Some(gated) => *gated = true,
            None => flaws.plan(|| {
                let known = draft.tasks.iter().map(|task| task.id.as_str());
                FlawReason::UnknownGate(UnknownTask::new(&gate.before, known))
            }),
        }
    }
    gated
}

/// The reverse edges: which tasks build on each.
fn turned(needs: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut dependents = vec![Vec::new(); needs.len()];
    for (task, needs) in needs.iter().enumerate() {
        for need in needs {
            if let Some(list) = dependents.get_mut(*need) {
                list.push(task);
            }
        }
    }
    dependents
}

/// The tasks in an order in which each comes after its needs; `None` if there is a cycle.
fn order(needs: &[Vec<usize>], dependents: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut open: Vec<usize> = needs.iter().map(Vec::len).collect();
    let mut order: Vec<usize> = (0..needs.len()).filter(|task| open.get(*task) == Some(&0)).collect();
    let mut next = 0;
    while let Some(task) = order.get(next).copied() {
        next += 1;
        for dependent in dependents.get(task).into_iter().flatten() {
            if let Some(open) = open.get_mut(*dependent) {
                *open -= 1;
                if *open == 0 {
                    order.push(*dependent);
                }
            }
        }
    }
    (order.len() == needs.len()).then_some(order)
}

fn waves(needs: &[Vec<usize>], order: &[usize]) -> (Vec<usize>, Vec<Vec<usize>>) {
    let mut wave_of = vec![0; needs.len()];
    for task in order {
        let after = needs.get(*task).into_iter().flatten().filter_map(|need| wave_of.get(*need)).max();
        let wave = after.map_or(0, |wave: &usize| wave + 1);
        if let Some(slot) = wave_of.get_mut(*task) {
            *slot = wave;
        }
    }
    let count = wave_of.iter().max().map_or(0, |last| last + 1);
    let mut waves = vec![Vec::new(); count];
    for (task, wave) in wave_of.iter().enumerate() {
        if let Some(list) = waves.get_mut(*wave) {
            list.push(task);
        }
    }
    (wave_of, waves)
}

fn tails(dependents: &[Vec<usize>], order: &[usize]) -> Vec<u32> {
    let mut tail = vec![1; dependents.len()];
    for task in order.iter().rev() {
        let behind = dependents.get(*task).into_iter().flatten().filter_map(|next| tail.get(*next)).max();
        let length = behind.map_or(1, |behind: &u32| behind.saturating_add(1));
        if let Some(slot) = tail.get_mut(*task) {
            *slot = length;
        }
    }
    tail
}

/// Names one cycle: from any task that never becomes ready, following its needs leads into one.
fn cycle_names(draft: &Draft, needs: &[Vec<usize>]) -> Vec<String> {
    let name = |task: usize| draft.tasks.get(task).map_or("?", |task| task.id.as_str());
    let cycle = cycle(needs);
    let mut shown: Vec<&str> = cycle.iter().take(CYCLE_SHOWN_MAX).map(|task| name(*task)).collect();
    if cycle.len() > CYCLE_SHOWN_MAX {
        shown.push("…");
    }
    shown.extend(cycle.first().map(|task| name(*task)));
    shown.into_iter().map(str::to_owned).collect()
}

fn cycle(needs: &[Vec<usize>]) -> Vec<usize> {
    // 0: unseen, 1: on the path, 2: leads nowhere.
    let mut colour = vec![0_u8; needs.len()];
    for start in 0..needs.len() {
        let mut path: Vec<(usize, usize)> = vec![(start, 0)];
        while let Some((task, edge)) = path.last().copied() {
            if edge == 0 && colour.get(task) == Some(&2) {
                path.pop();
                continue;
            }
            set(&mut colour, task, 1);
            match needs.get(task).and_then(|needs| needs.get(edge)).copied() {
                Some(next) => {
                    if let Some(last) = path.last_mut() {
                        last.1 += 1;
                    }
                    if colour.get(next) == Some(&1) {
                        let from = path.iter().position(|(on, _)| *on == next).unwrap_or_default();
                        return path.iter().skip(from).map(|(on, _)| *on).collect();
                    }
                    path.push((next, 0));
                }
                None => {
                    set(&mut colour, task, 2);
                    path.pop();
                }
            }
        }
    }
    Vec::new()
}

fn set(colour: &mut [u8], task: usize, to: u8) {
    if let Some(slot) = colour.get_mut(task) {
        *slot = to;
    }
}

#[cfg(test)]
mod tests;
