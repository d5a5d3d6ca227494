//! The layout of a plan for screens that draw it themselves: the places of tasks, and the cells that lines pass through.

use max_team_core::plan::{Draft, Graph, WhenCondition};
use serde::Serialize;

use super::layout::{Layout, Spot};

/// Tasks up to which lines are kept apart; in larger plans tasks stand in the order in which they were written.
const ARRANGED_TASKS_MAX: usize = 2_000;
/// The same for the cells that tasks and lines take.
const ARRANGED_CELLS_MAX: usize = 8_000;

/// A plan on a grid with waves as columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanLayout {
    pub columns: usize,
    pub rows: usize,
    pub nodes: Vec<PlacedTask>,
    /// The dependencies that no others imply.
    pub edges: Vec<PlacedEdge>,
}

/// The cell of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlacedTask {
    pub task: String,
    pub column: usize,
    pub row: usize,
}

/// A line from a task to one that builds on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlacedEdge {
    pub from: String,
    pub to: String,
    /// The free cells between, as column and row.
    pub via: Vec<(usize, usize)>,
    /// The outcome that it depends on: `ok` or `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<&'static str>,
}

/// Places the tasks of a plan. The same plan always gets the same places.
pub fn place(draft: &Draft, graph: &Graph) -> PlanLayout {
    let is_small = graph.len() <= ARRANGED_TASKS_MAX;
    let Some(layout) = is_small.then(|| Layout::new(graph, ARRANGED_CELLS_MAX)).flatten() else {
        return in_order(draft, graph);
    };
    let nodes = || layout.columns.iter().enumerate().flat_map(|(at, column)| column.iter().map(move |node| (at, node)));
    // The cells of each task's line, from left to right.
    let mut lines = vec![Vec::new(); graph.len()];
    for (column, node) in nodes() {
        if let (Spot::Pass(task), row) = (node.spot, node.row)
            && let Some(line) = lines.get_mut(task)
        {
            line.push((column, row));
        }
    }
    let (mut placed, mut edges) = (Vec::new(), Vec::new());
    for (column, node) in nodes() {
        let Spot::Task(task) = node.spot else { continue };
        placed.push(PlacedTask { task: name(draft, task), column, row: node.row });
        for before in &node.before {
            let from = before.task();
            let line = lines.get(from).into_iter().flatten().copied();
            let via = line.take_while(|(passed, _)| *passed < column).collect();
            edges.push(edge(draft, graph, from, task, via));
        }
    }
    PlanLayout { columns: layout.columns.len(), rows: layout.height, nodes: placed, edges }
}

fn in_order(draft: &Draft, graph: &Graph) -> PlanLayout {
    let waves = graph.waves();
    let nodes = waves.iter().enumerate().flat_map(|(column, wave)| {
        wave.iter().enumerate().map(move |(row, task)| PlacedTask { task: name(draft, *task), column, row })
    });
    let pairs = (0..graph.len()).flat_map(|task| graph.needs(task).iter().map(move |need| (*need, task)));
    PlanLayout {
        columns: waves.len(),
        rows: waves.iter().map(Vec::len).max().unwrap_or_default(),
        nodes: nodes.collect(),
        edges: pairs.map(|(from, task)| edge(draft, graph, from, task, Vec::new())).collect(),
    }
}

fn edge(draft: &Draft, graph: &Graph, from: usize, to: usize, via: Vec<(usize, usize)>) -> PlacedEdge {
    let when = graph.condition(to).filter(|(other, _)| *other == from).map(|(_, when)| match when {
        WhenCondition::Ok => "ok",
        WhenCondition::Failed => "failed",
    });
    PlacedEdge { from: name(draft, from), to: name(draft, to), via, when }
}

fn name(draft: &Draft, task: usize) -> String {
    draft.tasks.get(task).map(|task| task.id.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use max_team_core::plan::TaskDraft;

    use super::*;

    /// How long a page may wait for the layout of a plan with 500 tasks.
    const PLACED_WITHIN: Duration = Duration::from_millis(100);

    fn plan(tasks: &[(&str, &[&str])]) -> (Draft, Graph) {
        let owned = |(id, needs): &(&str, &[&str])| {
            ((*id).to_owned(), needs.iter().map(|need| (*need).to_owned()).collect::<Vec<_>>())
        };
        plan_of(tasks.iter().map(owned))
    }

    fn plan_of(tasks: impl Iterator<Item = (String, Vec<String>)>) -> (Draft, Graph) {
        let task = |(id, needs): (String, Vec<String>)| TaskDraft {
            id,
            agent: "leo".to_owned(),
            description: "work".to_owned(),
            needs,
            ..TaskDraft::default()
        };
        let draft = Draft { goal: "g".to_owned(), tasks: tasks.map(task).collect(), ..Draft::default() };
        let graph = Graph::new(&draft, &["leo"]).unwrap();
        (draft, graph)
    }

    #[test]
    fn plans_with_500_tasks_are_placed_in_time() {
        type Needs = fn(usize) -> Vec<usize>;
        let shapes: [(&str, Needs); 5] = [
            ("waves of 20", |nth| nth.checked_sub(20).into_iter().collect()),
            ("waves of 50, each task with 8 needs", |nth| {
                let wave = nth / 50;
                let before = |at: usize| (wave * 50).checked_sub(50).map(|first| first + (nth + at * 7) % 50);
                (0..8).filter_map(before).collect()
            }),
            ("one chain", |nth| nth.checked_sub(1).into_iter().collect()),
            ("20 chains of 25, all of which start at once and end together", |nth| match nth {
                499 => (459..499).chain(0..20).collect(),
                _ => nth.checked_sub(20).into_iter().collect(),
            }),
            ("a chain of 250 that ends the lines of 250 others", |nth| match nth {
                0..250 => Vec::new(),
                250 => vec![0],
                499 => (1..250).chain([498]).collect(),
                _ => vec![nth - 1],
            }),
        ];
        for (shape, needs) in shapes {
            let name = |nth: usize| format!("t{nth}");
            let (draft, graph) = plan_of((0..500).map(|nth| (name(nth), needs(nth).into_iter().map(name).collect())));
            // Other programs on the machine make one attempt slow, and hardly all of them.
            let attempts = (0..5).map(|_| {
                let start = Instant::now();
                assert_eq!(place(&draft, &graph).nodes.len(), 500);
                start.elapsed()
            });
            let best = attempts.min().unwrap();
            assert!(best <= PLACED_WITHIN, "{shape}: {best:?}");
        }
    }

    #[test]
    fn a_line_that_skips_a_wave_passes_through_a_free_cell() {
        let (draft, graph) = plan(&[("a", &[]), ("b", &["a"]), ("c", &["b"]), ("x", &[]), ("d", &["c", "x"])]);
        let layout = place(&draft, &graph);
        assert_eq!((layout.columns, layout.nodes.len(), layout.edges.len()), (4, 5, 4));
        let long = layout.edges.iter().find(|edge| edge.from == "x").unwrap();
        assert_eq!(long.via.iter().map(|(column, _)| *column).collect::<Vec<_>>(), [1, 2]);
        let mut cells: Vec<(usize, usize)> = layout.nodes.iter().map(|node| (node.column, node.row)).collect();
        cells.extend(&long.via);
        let all = cells.len();
        cells.sort_unstable();
        cells.dedup();
        assert_eq!(cells.len(), all, "no two share a cell: {layout:?}");
        assert!(cells.iter().all(|(_, row)| *row < layout.rows));
    }
}
