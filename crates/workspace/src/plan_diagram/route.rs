//! The lines between two columns.
//!
//! Tasks that build on exactly the same others share one upright line, so a full layer is one line and not a hundred.
//! Lines that only cross are drawn with a break, `─│─`; lines that belong together meet, `─┼─`. If lines would have
//! to lie on top of each other, there is no drawing rather than a wrong one.

use super::layout::{Node, Spot};

/// One shared line: everything on its left leads to everything on its right.
struct Trunk {
    from: Vec<usize>,
    to: Vec<usize>,
}

impl Trunk {
    /// One task beside another needs no upright line.
    fn is_straight(&self) -> bool {
        self.from == self.to && self.from.len() == 1
    }

    fn rows(&self) -> impl Iterator<Item = usize> + Clone + '_ {
        self.from.iter().chain(&self.to).copied()
    }

    fn top(&self) -> usize {
        self.rows().min().unwrap_or_default()
    }

    fn bottom(&self) -> usize {
        self.rows().max().unwrap_or_default()
    }

    fn meets(&self, other: &Self) -> bool {
        self.top() <= other.bottom() && other.top() <= self.bottom()
    }
}

/// One place between two columns.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    up: bool,
    down: bool,
    left: bool,
    right: bool,
    /// The upright and the level line belong together.
    joined: bool,
    arrow: bool,
}

impl Cell {
    fn glyph(self) -> char {
        if self.arrow {
            return '▶';
        }
        let upright = self.up || self.down;
        if upright && !self.joined {
            return '│';
        }
        match (self.up, self.down, self.left, self.right) {
            (false, false, false, false) => ' ',
            (false, false, ..) => '─',
            (_, _, false, false) => '│',
            (false, true, false, true) => '┌',
            (false, true, true, false) => '┐',
            (true, false, false, true) => '└',
            (true, false, true, false) => '┘',
            (true, true, false, true) => '├',
            (true, true, true, false) => '┤',
            (false, true, true, true) => '┬',
            (true, false, true, true) => '┴',
            (true, true, true, true) => '┼',
        }
    }
}

/// All lines between two columns.
#[derive(Debug)]
pub(super) struct Gap {
    cells: Vec<Vec<Cell>>,
    width: usize,
}

impl Gap {
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Whether a line begins at the left end of a row.
    pub(super) fn leaves(&self, row: usize) -> bool {
        self.cells.get(row).and_then(|row| row.first()).is_some_and(|cell| cell.left)
    }

    pub(super) fn text(&self, row: usize) -> String {
        self.cells.get(row).into_iter().flatten().map(|cell| cell.glyph()).collect()
    }

    fn cell(&mut self, row: usize, at: usize, change: impl FnOnce(&mut Cell)) {
        if let Some(cell) = self.cells.get_mut(row).and_then(|row| row.get_mut(at)) {
            change(cell);
        }
    }

    fn level(&mut self, row: usize, from: usize, to: usize) {
        for at in from..to {
            self.cell(row, at, |cell| cell.right = true);
            self.cell(row, at + 1, |cell| cell.left = true);
        }
    }

    fn upright(&mut self, at: usize, from: usize, to: usize) {
        for row in from..to {
            self.cell(row, at, |cell| cell.down = true);
            self.cell(row + 1, at, |cell| cell.up = true);
        }
    }
}

/// Draws the lines between two columns; `None` if two would lie on top of each other.
pub(super) fn gap(left: &[Node], right: &[Node], height: usize) -> Option<Gap> {
    let trunks = trunks(left, right);
    let lanes = lanes(&trunks)?;
    let count = lanes.iter().flatten().max().map_or(0, |last| last + 1);
    let width = 2 * count + if count == 0 { 3 } else { 2 };
    let mut gap = Gap { cells: vec![vec![Cell::default(); width]; height], width };
    let end = width - 1;
    for (trunk, lane) in trunks.iter().zip(&lanes) {
        let at = lane.map(|lane| 2 * lane + 1);
        for row in &trunk.from {
            gap.cell(*row, 0, |cell| cell.left = true);
            gap.level(*row, 0, at.unwrap_or(end));
        }
        for row in &trunk.to {
            gap.level(*row, at.unwrap_or(0), end);
        }
        let Some(at) = at else { continue };
        gap.upright(at, trunk.top(), trunk.bottom());
        for row in trunk.rows() {
            gap.cell(row, at, |cell| cell.joined = true);
        }
    }
    for node in right {
        let arrow = matches!(node.spot, Spot::Task(_)) && !node.before.is_empty();
        gap.cell(node.row, end, |cell| cell.arrow = arrow);
    }
    Some(gap)
}

/// Rows of the right column on which a line also leaves the left column into a shared trunk that ends on other rows.
/// If the gap cannot be drawn, the layout moves the nodes on these rows down.
pub(super) fn crowded(left: &[Node], right: &[Node]) -> Vec<usize> {
    let trunks = trunks(left, right);
    let mut rows: Vec<usize> = right.iter().map(|node| node.row).collect();
    rows.retain(|row| {
        trunks.iter().any(|trunk| trunk.from.len() > 1 && trunk.from.contains(row) && !trunk.to.contains(row))
    });
    rows
}

/// Groups the right column by what its nodes are connected to.
fn trunks(left: &[Node], right: &[Node]) -> Vec<Trunk> {
    let mut trunks: Vec<Trunk> = Vec::new();
    for node in right {
        let linked = left.iter().filter(|other| node.before.contains(&other.spot));
        let mut from: Vec<usize> = linked.map(|other| other.row).collect();
        from.sort_unstable();
        match trunks.iter_mut().find(|trunk| trunk.from == from) {
            Some(trunk) => trunk.to.push(node.row),
            None if from.is_empty() => {}
            None => trunks.push(Trunk { from, to: vec![node.row] }),
        }
    }
    trunks
}

/// Which upright lane each trunk takes, counted from the left; `None` inside for those that need none.
fn lanes(trunks: &[Trunk]) -> Option<Vec<Option<usize>>> {
    let mut lanes: Vec<Option<usize>> = vec![None; trunks.len()];
    let mut open: Vec<usize> = (0..trunks.len()).collect();
    while !open.is_empty() {
        let place = open.iter().position(|at| !open.iter().any(|other| precedes(trunks, *other, *at)))?;
        let at = open.remove(place);
        let trunk = trunks.get(at)?;
        if trunk.is_straight() {
            continue;
        }
        let placed = || trunks.iter().zip(&lanes).enumerate().filter_map(|(i, (t, lane))| Some((i, t, (*lane)?)));
        let first = placed().filter(|(i, ..)| precedes(trunks, *i, at)).map(|(.., lane)| lane + 1).max();
        let free = |lane: &usize| !placed().any(|(_, other, taken)| taken == *lane && trunk.meets(other));
        let lane = (first.unwrap_or_default()..=trunks.len()).find(free)?;
        *lanes.get_mut(at)? = Some(lane);
    }
    Some(lanes)
}

/// Whether one trunk must stand to the left of the other.
///
/// A reader follows a line to the right, up or down. So after several lines have joined, none of them may lead to a
/// node that not all lead to: a task's own trunk comes before one it shares. And a line that leaves on a row has to
/// end before another one arrives there.
fn precedes(trunks: &[Trunk], one: usize, other: usize) -> bool {
    let (Some(left), Some(right)) = (trunks.get(one), trunks.get(other)) else { return false };
    let shares = right.from.len() > 1 && left.from.iter().any(|row| right.from.contains(row));
    one != other && (shares || left.from.iter().any(|row| right.to.contains(row)))
}
