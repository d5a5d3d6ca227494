//! The layout of a plan for screens that draw it themselves: the places of tasks, and the cells that lines pass through.

use std::collections::HashMap;

use max_team_core::plan::{Draft, Graph, WhenCondition};
use serde::Serialize;

use super::layout::{Layout, Spot};

/// Tasks up to which lines are kept apart; in larger plans tasks stand in the order in which they were written.
const ARRANGED_TASKS_MAX: usize = 2_000;

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
    if graph.len() > ARRANGED_TASKS_MAX {
        return in_order(draft, graph);
    }
    let layout = Layout::new(graph);
    let nodes = || layout.columns.iter().enumerate().flat_map(|(at, column)| column.iter().map(move |node| (at, node)));
    let rows: HashMap<(usize, usize), usize> = nodes()
        .filter_map(|(column, node)| match node.spot {
            Spot::Pass(task) => Some(((column, task), node.row)),
            Spot::Task(_) => None,
        })
        .collect();
    let (mut placed, mut edges) = (Vec::new(), Vec::new());
    for (column, node) in nodes() {
        let Spot::Task(task) = node.spot else { continue };
        placed.push(PlacedTask { task: name(draft, task), column, row: node.row });
        for before in &node.before {
            let (Spot::Task(from) | Spot::Pass(from)) = *before;
            let between = graph.wave(from) + 1..column;
            let via = between.filter_map(|column| rows.get(&(column, from)).map(|row| (column, *row))).collect();
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
    use max_team_core::plan::TaskDraft;

    use super::*;

    fn plan(tasks: &[(&str, &[&str])]) -> (Draft, Graph) {
        let task = |(id, needs): &(&str, &[&str])| TaskDraft {
            id: (*id).to_owned(),
            agent: "leo".to_owned(),
            description: "work".to_owned(),
            needs: needs.iter().map(|need| (*need).to_owned()).collect(),
            ..TaskDraft::default()
        };
        let draft = Draft { goal: "g".to_owned(), tasks: tasks.iter().map(task).collect(), ..Draft::default() };
        let graph = Graph::new(&draft, &["leo"]).unwrap();
        (draft, graph)
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
