//! What people see, line by line; and for any plan, that whoever follows the lines finds its dependencies.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use max_team_core::plan::{Gate, TaskDraft};

const MEMBERS: [&str; 5] = ["ada", "leo", "ray", "sam", "小明"];

fn task(id: &str, agent: &str, needs: &[&str]) -> TaskDraft {
    let needs = needs.iter().map(|need| (*need).to_owned()).collect();
    TaskDraft { id: id.into(), agent: agent.into(), description: "x".into(), needs, ..TaskDraft::default() }
}

fn draft(tasks: Vec<TaskDraft>) -> Draft {
    Draft { tasks, ..Draft::default() }
}

/// Chinese letters and marks of the same kind take two columns.
fn measure(text: &str) -> usize {
    text.chars().map(|letter| if ('\u{1100}'..'\u{ff00}').contains(&letter) && !is_line(letter) { 2 } else { 1 }).sum()
}

fn is_line(letter: char) -> bool {
    ('\u{2000}'..'\u{2e80}').contains(&letter)
}

fn drawn(draft: &Draft, width: usize) -> Vec<String> {
    let graph = Graph::new(draft, &MEMBERS).unwrap();
    draw(draft, &graph, &|_| ' ', width, measure)
}

fn layers(count: usize, size: usize) -> Draft {
    let needs = |layer: usize| -> Vec<String> {
        layer.checked_sub(1).into_iter().flat_map(|above| (0..size).map(move |n| format!("t{above}{n}"))).collect()
    };
    let one = |layer: usize, n: usize| TaskDraft { needs: needs(layer), ..task(&format!("t{layer}{n}"), "leo", &[]) };
    draft((0..count).flat_map(|layer| (0..size).map(move |n| one(layer, n))).collect())
}

#[test]
fn a_chain() {
    let chain =
        draft(vec![task("design", "ada", &[]), task("impl", "leo", &["design"]), task("test", "ray", &["impl"])]);
    assert_eq!(drawn(&chain, 80), ["[design ada]──▶[impl leo]──▶[test ray]"]);
    let narrow = ["1 ── [design ada]", "2 ── [impl leo] ◀─ design", "3 ── [test ray] ◀─ impl"];
    assert_eq!(drawn(&chain, 30), narrow);
    assert_eq!(drawn(&chain, 12), ["1 ── [desig…", "2 ── [impl …", "3 ── [test …"]);
    assert_eq!(drawn(&chain, 0), ["", "", ""]);
}

#[test]
fn two_come_together() {
    let tasks = vec![
        task("research", "sam", &[]),
        task("design", "ada", &[]),
        task("impl", "leo", &["design", "research"]),
        task("test", "ray", &["impl"]),
    ];
    let want = [
        "[research sam]─┬─▶[impl leo]──▶[test ray]", //
        "[design ada]───┘",
    ];
    assert_eq!(drawn(&draft(tasks), 80), want);
}

#[test]
fn one_for_three_and_three_for_one() {
    let tasks = vec![
        task("design", "ada", &[]),
        task("api", "leo", &["design"]),
        task("database", "leo", &["design"]),
        task("ui", "leo", &["design"]),
        task("integration", "ray", &["api", "database", "ui"]),
    ];
    let want = [
        "             ┌─▶[api leo]──────┐",
        "[design ada]─┼─▶[database leo]─┼─▶[integration ray]",
        "             └─▶[ui leo]───────┘",
    ];
    assert_eq!(drawn(&draft(tasks), 80), want);
}

#[test]
fn full_layers_are_one_line_each() {
    let want = [
        "[t00 leo]─┬─▶[t10 leo]─┬─▶[t20 leo]",
        "[t01 leo]─┼─▶[t11 leo]─┼─▶[t21 leo]",
        "[t02 leo]─┴─▶[t12 leo]─┴─▶[t22 leo]",
    ];
    assert_eq!(drawn(&layers(3, 3), 80), want);
    let many: Vec<String> = (1..=10).map(|wave| format!("wave {wave}: 10 tasks (leo 10)")).collect();
    assert_eq!(drawn(&layers(10, 10), 80), many);
}

#[test]
fn a_line_passes_through_a_wave_and_under_another_line() {
    let tasks = vec![
        task("a", "ada", &[]),
        task("x", "sam", &[]),
        task("b", "leo", &["a"]),
        task("c", "leo", &["b"]),
        task("d", "ray", &["c", "x"]),
    ];
    let want = [
        "[a ada]──▶[b leo]──▶[c leo]─┬─▶[d ray]", //
        "[x sam]─────────────────────┘",
    ];
    assert_eq!(drawn(&draft(tasks), 80), want);
}

#[test]
fn lines_that_are_not_for_a_task_go_round_it() {
    let tasks = vec![
        task("design", "ada", &[]),
        task("impl", "leo", &["design"]),
        task("docs", "ada", &["design"]),
        task("test", "ray", &["impl"]),
        task("release", "sam", &["impl", "docs"]),
    ];
    let want = [
        "[design ada]─┬─▶[impl leo]─┬─┐",
        "             │             └─│─▶[test ray]",
        "             └─▶[docs ada]───┴─▶[release sam]",
    ];
    assert_eq!(drawn(&draft(tasks), 80), want);
    let tasks = vec![
        task("a", "ada", &[]),
        task("b", "leo", &[]),
        task("c", "leo", &["a"]),
        task("d", "leo", &["a", "b"]),
        task("e", "ray", &["b"]),
    ];
    let want = [
        "[a ada]─┬─┐", //
        "        └─│─▶[c leo]",
        "[b leo]─┬─┴─▶[d leo]",
        "        └───▶[e ray]",
    ];
    assert_eq!(drawn(&draft(tasks), 80), want);
}

#[test]
fn undrawable_plans_are_told() {
    // Each of three shares a line with each other one, but never all three.
    let tasks = vec![
        task("a", "ada", &[]),
        task("bbbb", "leo", &[]),
        task("c", "sam", &[]),
        task("d", "leo", &["a", "bbbb"]),
        task("e", "leo", &["bbbb", "c"]),
        task("f", "ray", &["a", "c"]),
    ];
    let want = [
        "1 ┬─ [a ada]",
        "  ├─ [bbbb leo]",
        "  └─ [c sam]",
        "2 ┬─ [d leo] ◀─ a, bbbb",
        "  ├─ [e leo] ◀─ bbbb, c",
        "  └─ [f ray] ◀─ a, c",
    ];
    let draft = draft(tasks);
    assert_eq!(drawn(&draft, 80), want);
    assert_eq!(drawn(&draft, 22)[3], "2 ┬─ [d leo] ◀─ a +1");
}

#[test]
fn marks_gates_and_wide_letters() {
    let tasks = vec![task("设计", "小明", &[]), task("impl", "leo", &["设计"]), task("测试", "ray", &["设计"])];
    let gates = vec![Gate { before: "impl".into(), ask: "owner".into() }];
    let draft = Draft { gates, ..draft(tasks) };
    let graph = Graph::new(&draft, &MEMBERS).unwrap();
    let marks = |task: usize| ['✓', '●', '○'][task];
    let want = [
        "[✓ 设计 小明]─┬─▶[● impl leo ◆]", //
        "              └─▶[○ 测试 ray]",
    ];
    assert_eq!(draw(&draft, &graph, &marks, 80, measure), want);
}

#[test]
fn long_names_give_way_before_the_drawing_does() {
    let name = |n: usize| format!("{n}-implement-the-importer");
    let needs = |n: usize| n.checked_sub(1).map(name).into_iter().collect();
    let tasks = (0..4).map(|n| TaskDraft { needs: needs(n), ..task(&name(n), "leo", &[]) });
    let want = ["[0-impleme… leo]──▶[1-impleme… leo]──▶[2-impleme… leo]──▶[3-impleme… leo]"];
    assert_eq!(drawn(&draft(tasks.collect()), 80), want);
}

#[test]
fn a_huge_plan_is_counted() {
    let owner = |n: usize| if n.is_multiple_of(5) { "ray" } else { "leo" };
    let tasks = (0..300).map(|n| {
        let needs: Vec<String> = if n < 50 { vec![] } else { vec![format!("t{}", n - 50)] };
        TaskDraft { needs, ..task(&format!("t{n}"), owner(n), &[]) }
    });
    let lines = drawn(&draft(tasks.collect()), 80);
    assert_eq!((lines.len(), lines[2].as_str()), (6, "wave 3: 50 tasks (leo 40, ray 10)"));
    let chain = (0..100).map(|n: usize| {
        let needs = n.checked_sub(1).map(|need| format!("t{need}"));
        TaskDraft { needs: needs.into_iter().collect(), ..task(&format!("t{n}"), "leo", &[]) }
    });
    let lines = drawn(&draft(chain.collect()), 80);
    assert_eq!((lines.len(), lines[0].as_str()), (61, "wave 1: 1 task (leo 1)"));
    assert_eq!(lines[60], "… 40 more waves: 40 tasks");
}

#[test]
fn mermaid_says_everything() {
    let tasks = vec![
        TaskDraft { title: "Say \"hi\" <b>#1</b>".into(), ..task("design", "ada", &[]) },
        TaskDraft { skip: true, ..task("impl", "leo", &["design"]) },
        TaskDraft { when: Some("impl.failed".into()), description: "y\nz".into(), ..task("fix", "leo", &["design"]) },
        TaskDraft { when: Some("impl.ok".into()), ..task("test_it", "ray", &[]) },
    ];
    let gates = vec![Gate { before: "impl".into(), ask: "owner".into() }];
    let draft = Draft { gates, ..draft(tasks) };
    let want = "\
flowchart LR
  t0[\"design · ada<br/>Say #34;hi#34; #60;b#62;#35;1#60;/b#62;\"]
  t1{{\"impl · leo<br/>x\"}}:::skipped
  t2[\"fix · leo<br/>y\"]
  t3[\"test#95;it · ray<br/>x\"]
  t0 --> t1
  t0 --> t2
  t1 -. failed .-> t2
  t1 -- ok --> t3
  classDef skipped stroke-dasharray: 4 4, opacity: 0.5
";
    assert_eq!(mermaid(&draft, &Graph::new(&draft, &MEMBERS).unwrap()), want);
}

/// Everything that can be reached from the end of a label by going right, up and down along the lines.
fn reached(lines: &[Vec<char>], row: usize, at: usize) -> BTreeSet<(usize, usize)> {
    let glyph = |row: usize, at: usize| lines.get(row).and_then(|line| line.get(at)).copied().unwrap_or(' ');
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    // A step into a place: 'r' to the right, 'u' upwards, 'd' downwards.
    let mut open = vec![(row, at, 'r')];
    while let Some((row, at, way)) = open.pop() {
        if !seen.insert((row, at, way)) {
            continue;
        }
        let here = glyph(row, at);
        let ways: &str = match (here, way) {
            ('▶', 'r') => {
                found.insert((row, at + 1));
                ""
            }
            ('─', 'r') => "r",
            ('│', 'r') => "r",
            ('│' | '┤', 'u') => "u",
            ('│' | '┤', 'd') => "d",
            ('┌' | '└', _) => "r",
            ('┐', 'r') => "d",
            ('┘', 'r') => "u",
            ('├', 'u') => "ur",
            ('├', 'd') => "dr",
            ('┤', 'r') => "ud",
            ('┬', 'r') => "rd",
            ('┴', 'r') => "ru",
            ('┬' | '┴', _) => "r",
            ('┼', 'r') => "rud",
            ('┼', 'u') => "ur",
            ('┼', 'd') => "dr",
            _ => "",
        };
        for next in ways.chars() {
            open.push(match next {
                'r' => (row, at + 1, 'r'),
                'u' => (row.wrapping_sub(1), at, 'u'),
                _ => (row + 1, at, 'd'),
            });
        }
    }
    found
}

/// The edges that a drawing shows, by the names of tasks.
fn shown(lines: &[String]) -> BTreeSet<(String, String)> {
    let grid: Vec<Vec<char>> = lines.iter().map(|line| line.chars().collect()).collect();
    let mut edges = BTreeSet::new();
    let name =
        |row: usize, at: usize| -> String { grid[row][at + 1..].iter().take_while(|letter| **letter != ' ').collect() };
    for (row, line) in grid.iter().enumerate() {
        for (open, _) in line.iter().enumerate().filter(|(_, letter)| **letter == '[') {
            let close = open + line[open..].iter().position(|letter| *letter == ']').unwrap();
            for (to, at) in reached(&grid, row, close + 1) {
                assert_eq!(grid[to][at], '[', "a line ends nowhere:\n{}", lines.join("\n"));
                edges.insert((name(row, open), name(to, at)));
            }
        }
    }
    edges
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn who_follows_the_lines_finds_the_dependencies(
        rows in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..3), 1..14),
        width in 0_usize..200,
    ) {
        let needs = |at: usize, row: &[prop::sample::Index]| -> Vec<String> {
            if at == 0 { Vec::new() } else { row.iter().map(|need| format!("t{}", need.index(at))).collect() }
        };
        let tasks = rows.iter().enumerate();
        let tasks = tasks.map(|(at, row)| TaskDraft { needs: needs(at, row), ..task(&format!("t{at}"), "leo", &[]) });
        let draft = draft(tasks.collect());
        let graph = Graph::new(&draft, &MEMBERS).unwrap();
        let lines = drawn(&draft, width);
        prop_assert!(lines.iter().all(|line| measure(line) <= width));
        prop_assert_eq!(&lines, &drawn(&draft, width));
        // Columns, if they can be drawn at all.
        let pen = Pen { draft: &draft, graph: &graph, marks: &|_| ' ', width: 10_000, measure };
        let Some(lines) = pen.columns() else { return Ok(()) };
        let edges = layout::reduced(&graph).into_iter().enumerate();
        let edges = edges.flat_map(|(to, needs)| needs.into_iter().map(move |from| (format!("t{from}"), format!("t{to}"))));
        prop_assert_eq!(shown(&lines), edges.collect::<BTreeSet<_>>(), "{}", lines.join("\n"));
        let labels = lines.iter().map(|line| line.matches('[').count()).sum::<usize>();
        prop_assert_eq!(labels, graph.len());
    }

    #[test]
    fn nothing_but_what_is_implied_is_left_out(
        rows in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..5), 1..20),
    ) {
        let needs = |at: usize, row: &[prop::sample::Index]| -> Vec<String> {
            if at == 0 { Vec::new() } else { row.iter().map(|need| format!("t{}", need.index(at))).collect() }
        };
        let tasks = rows.iter().enumerate();
        let tasks = tasks.map(|(at, row)| TaskDraft { needs: needs(at, row), ..task(&format!("t{at}"), "leo", &[]) });
        let draft = draft(tasks.collect());
        let graph = Graph::new(&draft, &MEMBERS).unwrap();
        let all = |edges: &dyn Fn(usize) -> Vec<usize>| -> Vec<BTreeSet<usize>> {
            let mut above: Vec<BTreeSet<usize>> = Vec::new();
            for at in 0..graph.len() {
                let direct = edges(at);
                let mut set: BTreeSet<usize> = direct.iter().copied().collect();
                set.extend(direct.iter().flat_map(|need| above[*need].iter().copied()));
                above.push(set);
            }
            above
        };
        let reduced = layout::reduced(&graph);
        prop_assert_eq!(all(&|at| reduced[at].clone()), all(&|at| graph.needs(at).to_vec()));
    }
}
