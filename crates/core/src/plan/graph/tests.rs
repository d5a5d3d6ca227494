//! Every flaw by its words; then random drafts, judged by a slow and simple checker of its own.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::limits::{TASK_CLAIMS_MAX, TASK_ID_BYTES_MAX, TASK_RETRIES_MAX, TASK_TEXT_BYTES_MAX};
use crate::plan::{Budget, Gate, TaskDraft};

const MEMBERS: [&str; 5] = ["max", "leo", "ada", "ray", "sam"];

fn task(id: &str, needs: &[&str]) -> TaskDraft {
    let needs = needs.iter().map(|need| (*need).to_owned()).collect();
    TaskDraft { id: id.into(), agent: "leo".into(), description: "x".into(), needs, ..TaskDraft::default() }
}

fn draft(tasks: Vec<TaskDraft>) -> Draft {
    Draft { goal: "g".into(), tasks, ..Draft::default() }
}

fn one(change: impl FnOnce(&mut TaskDraft)) -> Draft {
    let mut task = task("a", &[]);
    change(&mut task);
    draft(vec![task])
}

fn when(id: &str, needs: &[&str], when: &str) -> TaskDraft {
    TaskDraft { when: Some(when.into()), ..task(id, needs) }
}

fn flaws(draft: &Draft) -> Vec<String> {
    Graph::new(draft, &MEMBERS).err().into_iter().flatten().map(|flaw| flaw.to_string()).collect()
}

fn all(table: Vec<(Draft, &[&str])>) {
    for (at, (draft, want)) in table.into_iter().enumerate() {
        assert_eq!(flaws(&draft), want, "row {at}");
    }
}

#[test]
fn needs_and_dependents_are_found() {
    all(vec![
        (draft(vec![task("a", &["a"])]), &["task `a`: it waits for itself"]),
        (
            draft(vec![task("a", &["c"]), task("b", &["a"]), task("c", &["b"]), task("d", &[])]),
            &["these tasks wait for each other: a → c → b → a; take one of the dependencies out"],
        ),
        (
            draft(vec![task("x", &["a"]), task("a", &["b"]), when("b", &[], "a.ok")]),
            &["these tasks wait for each other: a → b → a; take one of the dependencies out"],
        ),
        (
            draft(vec![task("design", &[]), task("impl", &["desing"])]),
            &["task `impl`: it needs `desing`, which is no task of this plan, did you mean `design`?"],
        ),
        (draft(vec![task("a", &["zebra"])]), &["task `a`: it needs `zebra`, which is no task of this plan"]),
        (
            draft(vec![task("a", &[]), task("a", &[]), task("b", &["a"])]),
            &["task `a`: two tasks have this id; ids must be unique"],
        ),
        (
            draft(vec![task("a", &[]), when("b", &[], "a.perhaps")]),
            &["task `b`: `when: a.perhaps` cannot be read; write `ID.ok` or `ID.failed`"],
        ),
        (draft(vec![when("b", &[], "ok")]), &["task `b`: `when: ok` cannot be read; write `ID.ok` or `ID.failed`"]),
        (draft(vec![when("b", &[], "c.ok")]), &["task `b`: it needs `c`, which is no task of this plan"]),
        (draft(vec![when("b", &[], "b.failed")]), &["task `b`: it waits for itself"]),
        (
            Draft {
                gates: vec![Gate { before: "tset".into(), ask: "owner".into() }],
                ..draft(vec![task("test", &[])])
            },
            &["a gate stands before `tset`, which is no task of this plan, did you mean `test`?"],
        ),
        // One look finds them all; a cycle hides nothing, and nothing hides it.
        (
            draft(vec![task("a", &["b", "zebra"]), task("b", &["a", "b"])]),
            &[
                "task `a`: it needs `zebra`, which is no task of this plan",
                "task `b`: it waits for itself",
                "these tasks wait for each other: a → b → a; take one of the dependencies out",
            ],
        ),
    ]);
}

#[test]
fn required_fields_of_a_task() {
    let nobody: &[&str] = &["task `a`: `agent` is missing; the members are `max`, `leo`, `ada`, `ray`, `sam`"];
    let slip: &[&str] =
        &["task `a`: there is no member `loe`, did you mean `leo`? the members are `max`, `leo`, `ada`, `ray`, `sam`"];
    let stranger: &[&str] =
        &["task `a`: there is no member `kubernetes`; the members are `max`, `leo`, `ada`, `ray`, `sam`"];
    let id: &[&str] = &["task `a b`: an id has letters, digits, `-` and `_`, at most 64 bytes"];
    all(vec![
        (draft(vec![]), &["a plan needs at least one task"]),
        (one(|task| task.id.clear()), &["task number 1 has no `id`"]),
        (one(|task| task.id = "a b".into()), id),
        (
            one(|task| task.description = " \n".into()),
            &["task `a`: `description` (or `do`) is missing: say what is to be done"],
        ),
        (one(|task| task.agent.clear()), nobody),
        (one(|task| task.agent = "loe".into()), slip),
        (one(|task| task.agent = "kubernetes".into()), stranger),
        (one(|task| task.retry = TASK_RETRIES_MAX + 1), &["task `a`: `retry` is 11; at most 10"]),
        (
            one(|task| task.timeout_ms = Some(0)),
            &["task `a`: `timeout` is 0, so the task would never run; leave it out for no bound"],
        ),
        (
            one(|task| task.budget.wall_ms = Some(0)),
            &["task `a`: `wall` is 0, so the task would never run; leave it out for no bound"],
        ),
        (
            Draft { max_parallel: Some(0), ..draft(vec![task("a", &[])]) },
            &["`max_parallel` is 0, so nothing would ever run; at least 1"],
        ),
        (
            Draft { budget: Budget { tokens: Some(0), ..Budget::default() }, ..draft(vec![task("a", &[])]) },
            &["`tokens` of the budget is 0, so nothing would ever run; leave it out for no bound"],
        ),
    ]);
    let sound = [
        one(|task| task.id = "设计-1_b".into()),
        one(|task| (task.description.clear(), task.title.push('t')).0),
        one(|task| task.budget.nano = Some(0)),
        one(|task| task.retry = TASK_RETRIES_MAX),
        one(|task| task.when = Some("  ".into())),
        one(|task| task.outputs = vec!["docs/a..b.md".into(), "src/**/*.rs".into(), "...".into()]),
    ];
    for draft in sound {
        assert_eq!(flaws(&draft), [""; 0], "{draft:?}");
    }
}

#[test]
fn paths_stay_in_the_project() {
    for path in ["/etc/passwd", "../x", "a/../../x", "a\\..\\x", "\\\\host\\x", "C:\\x", "c:x", "~/x", " /x", "a/.. /x"]
    {
        for draft in [one(|task| task.outputs = vec![path.into()]), one(|task| task.owns = Some(vec![path.into()]))] {
            let want = format!("task `a`: `{path}` leads out of the project; paths are relative to its root");
            assert_eq!(flaws(&draft), [want]);
        }
    }
    let sneaky = one(|task| task.outputs = vec!["a\n../x\u{1b}".into()]);
    assert_eq!(flaws(&sneaky), ["task `a`: `a\\n../x\\u{1b}` is no path: it has control characters"]);
    let verify = one(|task| task.verify = vec!["cd /tmp && ../run".into()]);
    assert_eq!(flaws(&verify), [""; 0], "commands are no paths");
}

#[test]
fn a_draft_over_a_limit_is_refused() {
    let long = |bytes: usize| "x".repeat(bytes);
    all(vec![
        (
            one(|task| task.id = long(TASK_ID_BYTES_MAX + 1)),
            &[
                "task `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`: an id has letters, digits, `-` and `_`, \
             at most 64 bytes",
            ],
        ),
        (
            one(|task| task.description = long(TASK_TEXT_BYTES_MAX + 1)),
            &["task `a`: `description` has 65537 bytes; at most 65536"],
        ),
        (one(|task| task.title = long(513)), &["task `a`: `title` has 513 bytes; at most 512"]),
        (one(|task| task.model = Some(long(513))), &["task `a`: `model` has 513 bytes; at most 512"]),
        (
            one(|task| task.verify = vec![long(1); TASK_CLAIMS_MAX + 1]),
            &["task `a`: `verify` has 65 entries; at most 64"],
        ),
        (one(|task| task.verify = vec![long(5_000)]), &["task `a`: `verify` has an entry of more than 4096 bytes"]),
        (one(|task| task.owns = Some(vec![" ".into()])), &["task `a`: `owns` has an empty entry"]),
        (Draft { goal: long(70_000), ..draft(vec![task("a", &[])]) }, &["`goal` has 70000 bytes; at most 65536"]),
    ]);
}

#[test]
fn a_million_tasks_are_refused_at_once() {
    // None of them is even looked at: each has a dozen flaws, and only one is told.
    let many = draft(vec![TaskDraft::default(); 1_000_000]);
    assert_eq!(flaws(&many), ["1000000 tasks are too many; at most 10000"]);
    let gates = vec![Gate { before: "a".into(), ask: "owner".into() }; PLAN_TASKS_MAX + 1];
    let gated = Draft { gates, ..draft(vec![task("a", &[])]) };
    assert_eq!(flaws(&gated), ["10001 gates are too many; at most 10000"]);
}

#[test]
fn depth_and_edges_are_bounded() {
    let chain = |length: usize| {
        let name = |at: usize| format!("t{at}");
        let tasks = (0..length).map(|at| match at.checked_sub(1) {
            Some(before) => task(&name(at), &[&name(before)]),
            None => task(&name(at), &[]),
        });
        draft(tasks.collect())
    };
    assert_eq!(flaws(&chain(PLAN_DEPTH_MAX)), [""; 0]);
    let deep = format!("{} tasks wait for each other in a row; at most {PLAN_DEPTH_MAX}", PLAN_DEPTH_MAX + 1);
    assert_eq!(flaws(&chain(PLAN_DEPTH_MAX + 1)), [deep]);

    let names: Vec<String> = (0..TASK_NEEDS_MAX).map(|at| format!("t{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let layers = |below: usize| {
        let first = names.iter().map(|name| task(name, &[]));
        draft(first.chain((0..below).map(|at| task(&format!("u{at}"), &names))).collect())
    };
    let rows = PLAN_EDGES_MAX / TASK_NEEDS_MAX;
    assert_eq!(flaws(&layers(rows)), [""; 0]);
    assert_eq!(flaws(&layers(rows + 1)), [format!("more than {PLAN_EDGES_MAX} dependencies are too many")]);
    let many = vec!["t0"; TASK_NEEDS_MAX + 1];
    let needy = draft(vec![task("t0", &[]), task("u", &many)]);
    assert_eq!(flaws(&needy), ["task `u`: it needs 1001 tasks; at most 1000"]);
}

#[test]
fn many_flaws_are_counted_not_listed() {
    let tasks = (0..2_000).map(|at| TaskDraft { agent: "x".repeat(500), ..task(&format!("t{at}"), &["nobody"]) });
    let told = flaws(&draft(tasks.collect()));
    assert_eq!((told.len(), told[12].as_str()), (13, "and 3988 more"));
    assert!(told.iter().all(|line| line.chars().count() < 200), "{told:#?}");
}

#[test]
fn a_diamond_has_waves_a_tail_and_a_longest_chain() {
    let tasks = vec![
        task("d", &["b", "c", "b"]),
        task("b", &["a"]),
        task("a", &[]),
        when("c", &[], "a.failed"),
        task("e", &[]),
    ];
    let gates = vec![Gate { before: "d".into(), ask: "owner".into() }];
    let graph = Graph::new(&Draft { gates, ..draft(tasks) }, &MEMBERS).unwrap();
    assert_eq!(graph.waves(), [vec![2, 4], vec![1, 3], vec![0]]);
    assert_eq!((graph.needs(0), graph.dependents(2)), ([1, 3].as_slice(), [1, 3].as_slice()));
    assert_eq!((0..5).map(|at| graph.tail(at)).collect::<Vec<_>>(), [1, 2, 3, 2, 1]);
    assert_eq!(graph.critical(), [2, 1, 0]);
    assert_eq!((graph.condition(3), graph.condition(1)), (Some((2, WhenCondition::Failed)), None));
    assert_eq!((graph.is_gated(0), graph.is_gated(1), graph.is_gated(99)), (true, false, false));
    assert_eq!((graph.index("c"), graph.index("z"), graph.wave(3), graph.len()), (Some(3), None, 1, 5));
}

#[test]
fn ten_thousand_tasks_are_a_plan() {
    let tasks = (0_usize..PLAN_TASKS_MAX).map(|at| {
        let back = |step: usize| format!("t{}", at - step);
        let needs = if at < 300 { Vec::new() } else { vec![back(100), back(150), back(300)] };
        TaskDraft { needs, ..task(&format!("t{at}"), &[]) }
    });
    let graph = Graph::new(&draft(tasks.collect()), &MEMBERS).unwrap();
    assert_eq!(graph.len(), PLAN_TASKS_MAX);
    assert_eq!(graph.critical().len(), graph.waves().len());
}

/// Which tasks a task waits for, the slow way; `None` if the draft is nonsense.
fn naive(draft: &Draft) -> Option<Vec<HashSet<usize>>> {
    let place = |id: &str| draft.tasks.iter().position(|task| task.id == id);
    let ids: HashSet<&str> = draft.tasks.iter().map(|task| task.id.as_str()).collect();
    if ids.len() != draft.tasks.len() || !draft.gates.iter().all(|gate| place(&gate.before).is_some()) {
        return None;
    }
    let mut edges = Vec::new();
    for task in &draft.tasks {
        let mut all: HashSet<usize> = task.needs.iter().map(|id| place(id)).collect::<Option<_>>()?;
        if let Some(when) = &task.when {
            let (id, end) = when.split_once('.')?;
            if !["ok", "failed"].contains(&end) {
                return None;
            }
            all.insert(place(id)?);
        }
        edges.push(all);
    }
    // Whoever can reach itself is in a cycle.
    for start in 0..edges.len() {
        let mut reached: HashSet<usize> = edges[start].clone();
        loop {
            let next: HashSet<usize> = reached.iter().flat_map(|at| edges[*at].iter().copied()).collect();
            if next.is_subset(&reached) {
                break;
            }
            reached.extend(next);
        }
        if reached.contains(&start) {
            return None;
        }
    }
    let known = draft.tasks.iter().all(|task| MEMBERS.contains(&task.agent.as_str()));
    (known && !draft.tasks.is_empty()).then_some(edges)
}

/// Mostly sound drafts: needs point back, except for the odd one that points anywhere or nowhere.
fn drafts() -> impl Strategy<Value = Draft> {
    let need = (any::<prop::sample::Index>(), 0_u8..100);
    let needs = prop::collection::vec(need, 0..4);
    let odd = (0_u8..100, 0_u8..100, 0_u8..100);
    prop::collection::vec((needs, odd), 0..14).prop_map(|rows| {
        let count = rows.len();
        let name = |at: usize| format!("t{at}");
        let tasks = rows.iter().enumerate().map(|(at, (needs, (twin, owner, condition)))| {
            let point = |(index, chance): &(prop::sample::Index, u8)| match chance {
                0 => Some("nobody".to_owned()),
                1..5 => Some(name(index.index(count))),
                _ => (at > 0).then(|| name(index.index(at))),
            };
            let other = needs.first().and_then(point).unwrap_or_else(|| "t0".into());
            let when = match condition {
                0 => Some(format!("{other}.perhaps")),
                1..10 => Some(format!("{other}.ok")),
                10..15 => Some(format!("{other}.failed")),
                _ => None,
            };
            TaskDraft {
                needs: needs.iter().filter_map(point).collect(),
                when: when.filter(|_| at > 0),
                agent: if *owner == 0 { "nobody" } else { MEMBERS[usize::from(*owner) % 5] }.into(),
                ..task(&name(if *twin == 0 { 0 } else { at }), &[])
            }
        });
        let gates = rows.first().filter(|(_, (chance, ..))| *chance < 20);
        let gates = gates.map(|(_, (chance, ..))| Gate { before: name(usize::from(*chance)), ask: "owner".into() });
        Draft { tasks: tasks.collect(), gates: gates.into_iter().collect(), ..Draft::default() }
    })
}

/// The names between `other: ` and `;` of a cycle's flaw.
fn told_cycle(words: &str) -> Option<Vec<&str>> {
    let names = words.strip_prefix("these tasks wait for each other: ")?;
    Some(names.split_once(';')?.0.split(" → ").collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_graph_is_made_exactly_when_a_naive_checker_agrees(draft in drafts()) {
        let edges = naive(&draft);
        let made = Graph::new(&draft, &MEMBERS);
        prop_assert_eq!(made.is_ok(), edges.is_some(), "{:?}", made);
        let (Ok(graph), Some(edges)) = (made, edges) else { return Ok(()) };
        for (at, edges) in edges.iter().enumerate() {
            prop_assert_eq!(&graph.needs(at).iter().copied().collect::<HashSet<_>>(), edges);
            // Every need is in an earlier wave, and one of them in the wave before.
            let before = edges.iter().map(|need| graph.wave(*need) + 1).max().unwrap_or_default();
            prop_assert_eq!(graph.wave(at), before);
            prop_assert!(graph.waves()[graph.wave(at)].contains(&at));
            for need in edges {
                prop_assert!(graph.tail(*need) > graph.tail(at));
                prop_assert!(graph.dependents(*need).contains(&at));
            }
        }
        prop_assert_eq!(graph.waves().iter().map(Vec::len).sum::<usize>(), graph.len());
        prop_assert!(graph.waves().iter().all(|wave| wave.is_sorted()));
        let critical = graph.critical();
        prop_assert_eq!(critical.len(), graph.waves().len());
        prop_assert!(critical.windows(2).all(|pair| graph.needs(pair[1]).contains(&pair[0])));
    }

    #[test]
    fn a_cycle_that_is_told_is_one(
        needs in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..3), 1..30),
    ) {
        let name = |at: usize| format!("t{at}");
        let tasks = needs.iter().enumerate().map(|(at, row)| {
            let needs = row.iter().map(|need| need.index(needs.len())).filter(|need| *need != at).map(name);
            TaskDraft { needs: needs.collect(), ..task(&name(at), &[]) }
        });
        let draft = draft(tasks.collect());
        let told = flaws(&draft);
        prop_assert_eq!(told.is_empty(), naive(&draft).is_some());
        let Some(words) = told.first() else { return Ok(()) };
        let names = told_cycle(words).unwrap();
        prop_assert_eq!(names.first(), names.last());
        prop_assert!(names.len() > 2);
        let whole = !names.contains(&"…");
        for pair in names.windows(2).filter(|pair| !pair.contains(&"…")) {
            let from = draft.tasks.iter().find(|task| task.id == pair[0]).unwrap();
            prop_assert!(from.needs.iter().any(|need| need == pair[1]), "{} does not need {}", pair[0], pair[1]);
        }
        if whole {
            prop_assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len() - 1);
        }
    }
}
