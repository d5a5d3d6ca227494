//! Places tasks on a grid with waves as columns.
//!
//! A dependency that skips a wave passes through it in a row of its own. Columns are sorted so that few lines cross,
//! and rows are chosen so that a task stands beside its dependencies. All numbers are integers, and ties go to the
//! task that was written first, so the same plan always looks the same.

use max_team_core::plan::Graph;

use super::route::{self, Gap};

/// Times the columns are sorted, there and back.
const SWEEPS: usize = 4;
/// Fractions of a row that means are compared with.
const FINE: usize = 1_000;

/// What stands in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spot {
    Task(usize),
    /// The line from a task to one further right.
    Pass(usize),
}

impl Spot {
    /// The task, or the one that the line comes from.
    pub(super) fn task(self) -> usize {
        let (Self::Task(task) | Self::Pass(task)) = self;
        task
    }
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) spot: Spot,
    pub(super) row: usize,
    /// What it is connected to in the column before.
    pub(super) before: Vec<Spot>,
}

#[derive(Debug)]
pub(super) struct Layout {
    pub(super) columns: Vec<Vec<Node>>,
    pub(super) height: usize,
}

impl Layout {
    /// Where everything stands, and the lines between; `None` if no way was found to tell the lines apart.
    pub(super) fn drawn(graph: &Graph) -> Option<(Self, Vec<Gap>)> {
        let tight = Self::new(graph, usize::MAX)?;
        if let Some(gaps) = tight.gaps() {
            return Some((tight, gaps));
        }
        let loose = tight.loosened();
        let gaps = loose.gaps()?;
        Some((loose, gaps))
    }

    /// Where everything stands; `None` if tasks and lines need more cells.
    pub(super) fn new(graph: &Graph, cells_max: usize) -> Option<Self> {
        let mut columns = columns(graph, cells_max)?;
        for _ in 0..SWEEPS {
            sort(&mut columns, graph.len());
        }
        let height = columns.iter().map(Vec::len).max().unwrap_or_default();
        for column in &mut columns {
            let top = (height - column.len()) / 2;
            for (place, node) in column.iter_mut().enumerate() {
                node.row = top + place;
            }
        }
        for _ in 0..2 {
            settle(&mut columns, graph.len(), height, false);
            settle(&mut columns, graph.len(), height, true);
        }
        Some(Self { columns, height })
    }

    /// The lines between the columns; `None` if they cannot be told apart.
    fn gaps(&self) -> Option<Vec<Gap>> {
        let pairs = self.columns.iter().zip(self.columns.iter().skip(1));
        pairs.map(|(left, right)| route::gap(left, right, self.height)).collect()
    }

    /// Moves a task out of the way of lines that leave on its row and are not for it.
    fn loosened(mut self) -> Self {
        for node in self.columns.iter_mut().flatten() {
            node.row *= 2;
        }
        let height = self.height * 2;
        for at in 1..self.columns.len() {
            let (left, right) = self.columns.split_at_mut(at);
            let (Some(left), Some(right)) = (left.last(), right.first_mut()) else { continue };
            if route::gap(left, right, height).is_none() {
                let crowded = route::crowded(left, right);
                for node in right.iter_mut().filter(|node| crowded.contains(&node.row)) {
                    node.row += 1;
                }
            }
        }
        let mut used: Vec<usize> = self.columns.iter().flatten().map(|node| node.row).collect();
        used.sort_unstable();
        used.dedup();
        for node in self.columns.iter_mut().flatten() {
            node.row = used.binary_search(&node.row).unwrap_or_default();
        }
        Self { height: used.len(), ..self }
    }
}

/// A set of tasks, by their numbers.
#[derive(Clone)]
struct TaskSet(Vec<u64>);

impl TaskSet {
    fn new(tasks: usize) -> Self {
        Self(vec![0; tasks.div_ceil(64)])
    }

    fn has(&self, task: usize) -> bool {
        self.0.get(task / 64).is_some_and(|word| word >> (task % 64) & 1 == 1)
    }

    fn add(&mut self, task: usize) {
        if let Some(word) = self.0.get_mut(task / 64) {
            *word |= 1 << (task % 64);
        }
    }

    fn join(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word |= other);
    }
}

/// What each task builds on, without what those build on themselves. Only for plans small enough to be drawn.
pub(super) fn reduced(graph: &Graph) -> Vec<Vec<usize>> {
    let mut above = vec![TaskSet::new(graph.len()); graph.len()];
    let mut reduced = vec![Vec::new(); graph.len()];
    for task in graph.waves().iter().flatten().copied() {
        let needs = graph.needs(task);
        let mut all = TaskSet::new(graph.len());
        needs.iter().filter_map(|need| above.get(*need)).for_each(|theirs| all.join(theirs));
        let direct: Vec<usize> = needs.iter().copied().filter(|need| !all.has(*need)).collect();
        direct.iter().for_each(|need| all.add(*need));
        if let Some(slot) = above.get_mut(task) {
            *slot = all;
        }
        if let Some(slot) = reduced.get_mut(task) {
            *slot = direct;
        }
    }
    reduced
}

fn columns(graph: &Graph, cells_max: usize) -> Option<Vec<Vec<Node>>> {
    let reduced = reduced(graph);
    let mut far: Vec<usize> = (0..graph.len()).map(|task| graph.wave(task)).collect();
    for (task, needs) in reduced.iter().enumerate() {
        for need in needs {
            if let Some(far) = far.get_mut(*need) {
                *far = (*far).max(graph.wave(task));
            }
        }
    }
    let cells = |(task, far): (usize, &usize)| (far - graph.wave(task)).max(1);
    if far.iter().enumerate().map(cells).sum::<usize>() > cells_max {
        return None;
    }
    let here =
        |need: usize, wave: usize| if graph.wave(need) + 1 == wave { Spot::Task(need) } else { Spot::Pass(need) };
    let column = |(wave, tasks): (usize, &Vec<usize>)| -> Vec<Node> {
        let tasks = tasks.iter().map(|task| {
            let needs = reduced.get(*task).into_iter().flatten();
            Node { spot: Spot::Task(*task), row: 0, before: needs.map(|need| here(*need, wave)).collect() }
        });
        let passing = (0..graph.len()).filter(|task| graph.wave(*task) < wave && far.get(*task) > Some(&wave));
        let passes = passing.map(|task| Node { spot: Spot::Pass(task), row: 0, before: vec![here(task, wave)] });
        tasks.chain(passes).collect()
    };
    Some(graph.waves().iter().enumerate().map(column).collect())
}

/// The neighbours of a column's nodes in a column beside it: for each task, the sum of their places or rows, and how many they are. A
/// column has one node of a task: the task, or the line from it.
struct Neighbours(Vec<(usize, usize)>);

impl Neighbours {
    /// Those to the left, of the nodes of the column on the right.
    fn left(left: &[Node], tasks: usize, value: impl Fn(usize, &Node) -> usize) -> Self {
        let mut sums = vec![(0, 0); tasks];
        for (place, node) in left.iter().enumerate() {
            if let Some(sum) = sums.get_mut(node.spot.task()) {
                *sum = (value(place, node), 1);
            }
        }
        Self(sums)
    }

    /// Those to the right, of the nodes of the column on the left.
    fn right(right: &[Node], tasks: usize, value: impl Fn(usize, &Node) -> usize) -> Self {
        let mut sums = vec![(0, 0); tasks];
        for (place, node) in right.iter().enumerate() {
            for before in &node.before {
                if let Some((sum, count)) = sums.get_mut(before.task()) {
                    *sum += value(place, node);
                    *count += 1;
                }
            }
        }
        Self(sums)
    }

    /// The mean over some nodes' neighbours, in fractions of a row.
    fn mean<'a>(&self, spots: impl IntoIterator<Item = &'a Spot>) -> Option<usize> {
        let found = spots.into_iter().filter_map(|spot| self.0.get(spot.task()));
        let (sum, count) = found.fold((0, 0), |(sum, count), (more, nodes)| (sum + more, count + nodes));
        (sum * FINE).checked_div(count)
    }
}

/// Sorts each column by where its nodes' neighbours stand: first those to the left, then those to the right.
fn sort(columns: &mut [Vec<Node>], tasks: usize) {
    let place = |place: usize, _: &Node| place;
    for at in 1..columns.len() {
        let (left, right) = columns.split_at_mut(at);
        let (Some(left), Some(right)) = (left.last(), right.first_mut()) else { continue };
        let neighbours = Neighbours::left(left, tasks, place);
        arrange(right, |node| neighbours.mean(&node.before));
    }
    for at in (1..columns.len()).rev() {
        let (left, right) = columns.split_at_mut(at);
        let (Some(left), Some(right)) = (left.last_mut(), right.first()) else { continue };
        let neighbours = Neighbours::right(right, tasks, place);
        arrange(left, |node| neighbours.mean([&node.spot]));
    }
}

/// Sorts a column by key; a node without neighbours keeps its place.
fn arrange(column: &mut Vec<Node>, key: impl Fn(&Node) -> Option<usize>) {
    let taken: Vec<Node> = std::mem::take(column);
    let mut keyed: Vec<(usize, Node)> =
        taken.into_iter().enumerate().map(|(place, node)| (key(&node).unwrap_or(place * FINE), node)).collect();
    keyed.sort_by_key(|(key, _)| *key);
    column.extend(keyed.into_iter().map(|(_, node)| node));
}

/// Moves each column's rows towards those of its neighbours on one side, keeping the order.
fn settle(columns: &mut [Vec<Node>], tasks: usize, height: usize, back: bool) {
    let count = columns.len();
    for step in 1..count {
        let at = if back { count - 1 - step } else { step };
        let beside = if back { at + 1 } else { at - 1 };
        let other = columns.get(beside).map_or(&[][..], Vec::as_slice);
        let row = |_: usize, node: &Node| node.row;
        let neighbours = if back { Neighbours::right(other, tasks, row) } else { Neighbours::left(other, tasks, row) };
        let Some(column) = columns.get_mut(at) else { continue };
        let wanted: Vec<usize> = column
            .iter()
            .map(|node| {
                let mean = if back { neighbours.mean([&node.spot]) } else { neighbours.mean(&node.before) };
                // Half a row goes up.
                mean.map_or(node.row, |mean| (mean + FINE / 2 - 1) / FINE)
            })
            .collect();
        for (node, row) in column.iter_mut().zip(spread(&wanted, height)) {
            node.row = row;
        }
    }
}

/// Rows in rising order, each as near to what it wants as the others allow: who collides moves as one.
fn spread(wanted: &[usize], height: usize) -> Vec<usize> {
    // A run of nodes in adjacent rows: where its first one wants to be, summed over its members, and how many.
    let mut runs: Vec<(i64, i64)> = Vec::new();
    let number = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
    for (place, want) in wanted.iter().enumerate() {
        let mut run = (number(*want) - number(place), 1);
        while let Some(before) = runs.last().copied() {
            if before.0 * run.1 < run.0 * before.1 {
                break;
            }
            runs.pop();
            run = (before.0 + run.0, before.1 + run.1);
        }
        runs.push(run);
    }
    let mut rows = Vec::with_capacity(wanted.len());
    for (sum, count) in runs {
        // The nearest whole row, upwards from the middle.
        let start = (2 * sum + count - 1).div_euclid(2 * count);
        for _ in 0..count {
            let place = rows.len();
            let row = usize::try_from(start + number(place)).unwrap_or_default();
            rows.push(row.clamp(place, place + (height - wanted.len())));
        }
    }
    rows
}
