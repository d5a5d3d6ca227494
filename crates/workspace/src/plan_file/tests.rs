//! What a person would write, what goes wrong, and that whatever is written reads back the same.

use max_team_core::agent::Isolation;
use max_team_core::packages::PackageManager;
use max_team_core::plan::{Budget, Draft, Gate, Graph, TaskDraft};
use proptest::prelude::*;

use super::*;
use crate::exit::{CliError, Exit};
use crate::i18n::Lang;

fn draft(text: &str) -> Draft {
    let ParsedPlan { draft, warnings, .. } = read(text, "x.plan.yaml").unwrap();
    assert_eq!(warnings, [], "{text}");
    draft
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

const FILE: &str = r#"goal: Add CSV import
budget: {usd: 2.00, tokens: 200000, wall: 40m}
max_parallel: 3

tasks:
  - id: design
    agent: ada
    title: "Design: the import"
    do: |-
      Write docs/csv-import.md:
        - the columns
        - the errors

      Ask nobody.
    outputs: [docs/csv-import.md]

  - id: impl
    agent: leo
    do: >-
      Implement what docs/csv-import.md says, in src/import, with one test for each of the errors that
      it names, and nothing else.
    needs: [design]
    owns: [src/import/**, "a, b"]
    verify:
      - cargo test -p import --all-targets -- --include-ignored
      - "cargo clippy -p import --all-targets -- -D warnings # deny"
    retry: 0
    timeout: 10m
    budget: {usd: 0.50}
    model: claude-sonnet-4-5

  - id: tests
    agent: ray
    title: Break it
    needs: [impl]
    when: impl.ok
    timeout: 1h30m
    skip: true

gates:
  - {before: impl, ask: owner}
"#;

fn csv() -> Draft {
    let design = TaskDraft {
        id: "design".into(),
        agent: "ada".into(),
        title: "Design: the import".into(),
        description: "Write docs/csv-import.md:\n  - the columns\n  - the errors\n\nAsk nobody.".into(),
        outputs: words(&["docs/csv-import.md"]),
        ..TaskDraft::default()
    };
    let code = TaskDraft {
        id: "impl".into(),
        agent: "leo".into(),
        description:
            "Implement what docs/csv-import.md says, in src/import, with one test for each of the errors that \
                      it names, and nothing else."
                .into(),
        needs: words(&["design"]),
        owns: Some(words(&["src/import/**", "a, b"])),
        verify: words(&[
            "cargo test -p import --all-targets -- --include-ignored",
            "cargo clippy -p import --all-targets -- -D warnings # deny",
        ]),
        retry: 0,
        timeout_ms: Some(600_000),
        budget: Budget { nano: Some(500_000_000), ..Budget::default() },
        model: Some("claude-sonnet-4-5".into()),
        ..TaskDraft::default()
    };
    let tests = TaskDraft {
        id: "tests".into(),
        agent: "ray".into(),
        title: "Break it".into(),
        needs: words(&["impl"]),
        when: Some("impl.ok".into()),
        timeout_ms: Some(5_400_000),
        skip: true,
        ..TaskDraft::default()
    };
    Draft {
        goal: "Add CSV import".into(),
        budget: Budget { nano: Some(2_000_000_000), tokens: Some(200_000), wall_ms: Some(2_400_000) },
        max_parallel: Some(3),
        tasks: vec![design, code, tests],
        gates: vec![Gate { before: "impl".into(), ask: "owner".into() }],
    }
}

#[test]
fn a_file_reads_and_writes_as_a_person_would_write_it() {
    assert_eq!(draft(FILE), csv());
    assert_eq!(write(&csv()), FILE);
}

#[test]
fn the_short_form_reads() {
    let text = r#"
goal: Add CSV import
budget: {usd: 2.00, wall: 40m}
tasks:
  - id: design
    agent: ada
    do: Write docs/csv-import.md …
    outputs: [docs/csv-import.md]
  - id: impl
    agent: leo
    needs: design
    owns: ["src/import/**"]
    isolation: worktree
    verify: ["cargo test -p import"]
  - {id: tests, agent: ray, needs: [impl], when: impl.ok, retry: 2}
gates: [{before: impl, ask: owner}, tests]
"#;
    let read = read(text, "a.plan.yaml").unwrap();
    assert_eq!(read.warnings, []);
    assert_eq!(read.draft.tasks[1].isolation, Isolation::Worktree);
    assert_eq!(read.draft.tasks[1].needs, ["design"]);
    assert_eq!(read.draft.gates[1], Gate { before: "tests".into(), ask: "owner".into() });
    assert_eq!(draft(&write(&read.draft)), read.draft);
}

#[test]
fn the_names_of_others_read() {
    let text = r#"[
  {"id": "a", "title": "T", "description": "D \ud83d\ude00 \/", "agent_name": "ada", "depends_on": [],
   "max_retries": 3, "status": 0, "retry_count": 1, "result": null, "artifacts": [], "created_at": "x"},
  {"id": "b", "prompt": "P", "owner": "leo", "blocked_by": ["a"], "timeout_ms": 1500, "budget": {"nano": 7}}
]"#;
    let first = TaskDraft {
        id: "a".into(),
        title: "T".into(),
        description: "D 😀 /".into(),
        agent: "ada".into(),
        retry: 3,
        ..TaskDraft::default()
    };
    let second = TaskDraft {
        id: "b".into(),
        description: "P".into(),
        agent: "leo".into(),
        needs: words(&["a"]),
        timeout_ms: Some(1_500),
        budget: Budget { nano: Some(7), ..Budget::default() },
        ..TaskDraft::default()
    };
    let want = Draft { tasks: vec![first, second], ..Draft::default() };
    assert_eq!(draft(text), want);
    assert_eq!(draft(&format!("{{\"tasks\": {text}}}")), want);
    // What the program itself keeps as JSON is a plan file too.
    assert_eq!(draft(&serde_json::to_string_pretty(&csv()).unwrap()), csv());
}

#[test]
fn words_stay_words_and_amounts_keep_every_digit() {
    let read = draft("goal: no\nbudget: $1.5\ntasks: [{id: 007, agent: 1.10, do: 'null', needs: [1, yes]}]\n");
    let task = &read.tasks[0];
    assert_eq!((read.goal.as_str(), read.budget.nano), ("no", Some(1_500_000_000)));
    assert_eq!((task.id.as_str(), task.agent.as_str(), task.description.as_str()), ("007", "1.10", "null"));
    assert_eq!(task.needs, ["1", "yes"]);
    let table = [("0", 0), ("2", 2_000_000_000), ("0.000000001", 1), ("18446744073.709551615", u64::MAX)];
    for (text, nano) in table {
        let read = draft(&format!("budget: {{usd: {text}}}\n"));
        assert_eq!(read.budget.nano, Some(nano), "{text}");
        assert_eq!(draft(&write(&read)), read);
    }
}

#[test]
fn an_unknown_key_is_a_warning() {
    let text = "gaol: x\ntasks:\n- id: a\n  agnet: leo\n  depend_on: [b]\n  kubernetes: 1\n  budget: {dollars: 1, token: 2}\ngates: [{befor: a}]\n";
    let read = read(text, "x.yaml").unwrap();
    let want = [
        "x.yaml:1:1: unknown key `gaol`, did you mean `goal`?",
        "x.yaml:4:3: unknown key `agnet`, did you mean `agent`?",
        "x.yaml:5:3: unknown key `depend_on`, did you mean `depends_on`?",
        "x.yaml:6:3: unknown key `kubernetes`",
        "x.yaml:7:12: unknown key `dollars`",
        "x.yaml:7:24: unknown key `token`, did you mean `tokens`?",
        "x.yaml:8:10: unknown key `befor`, did you mean `before`?",
    ];
    assert_eq!(read.warnings.iter().map(|warning| warning.get(Lang::En)).collect::<Vec<_>>(), want);
    let many: String = (0..30).map(|at| format!("kubernetes{at}: 1\n")).collect();
    let warnings = super::read(&many, "x").unwrap().warnings;
    assert_eq!((warnings.len(), warnings[20].get(Lang::En)), (21, "10 more warnings are not shown"));
}

/// What is said about a file that does not pass for a plan of leo's.
fn stop(text: &str) -> CliError {
    let read = match read(text, "x.yaml") {
        Ok(read) => read,
        Err(stop) => return stop,
    };
    let flaws = Graph::new(&read.named(), &["leo"]).err().unwrap_or_default();
    assert!(!read.is_whole() || !flaws.is_empty(), "{text}");
    read.stop(&flaws)
}

#[test]
fn one_look_names_everything_with_its_line() {
    let text = "goal: g\ntasks:\n- {id: a, agent: leo, do: x, needs: [b]}\n- {id: b, agent: loe, do: x}\n\
                - {agent: leo, do: x}\n- {id: c, agent: leo, do: x, timeout: soon}\n\
                - {id: a, agent: leo, do: x}\n";
    let want = "x.yaml:4:3: task `b`: there is no member `loe`, did you mean `leo`? the members are `leo`\n\
                x.yaml:5:3: a task has no `id`\n\
                x.yaml:6:39: `timeout`: expected a duration such as `500ms`, `120s`, `2m` or `1h`, found `soon`\n\
                x.yaml:7:3: task `a`: two tasks have this id; ids must be unique\n\
                correct that line and run the command again";
    assert_eq!(stop(text).message, want);
    // Tasks that wait for each other are told at the first of them.
    let round = "tasks:\n- {id: d, agent: leo, do: x, needs: [e]}\n- {id: e, agent: leo, do: x, needs: [d]}\n";
    assert!(stop(round).message.starts_with("x.yaml:2:3: "), "{}", stop(round).message);
}

#[test]
fn mistakes_have_a_place_and_stop_with_three() {
    let table = [
        ("", "x.yaml:1:1: `the plan`: expected a map with `tasks`, or a list of tasks, found nothing"),
        ("hello", "x.yaml:1:1: `the plan`: expected a map with `tasks`, or a list of tasks, found `hello`"),
        ("tasks: {a: 1}", "x.yaml:1:8: `tasks`: expected a list of tasks, found a map"),
        ("tasks: [a]", "x.yaml:1:9: `a task`: expected a map such as `{id: …, agent: …, do: …}`, found `a`"),
        ("tasks:\n- id: [a]", "x.yaml:2:7: `id`: expected a word, found a list"),
        ("tasks:\n- needs: [[a]]\n  id: a", "x.yaml:2:10: `needs`: expected a list of ids, found a list"),
        ("tasks:\n- needs: [null]\n  id: a", "x.yaml:2:10: `needs`: expected a list of ids, found a list"),
        ("tasks:\n- retry: -1\n  id: a", "x.yaml:2:10: `retry`: expected a whole number, found `-1`"),
        ("tasks:\n- skip: perhaps\n  id: a", "x.yaml:2:9: `skip`: expected true or false, found `perhaps`"),
        (
            "tasks:\n- timeout: soon\n  id: a",
            "x.yaml:2:12: `timeout`: expected a duration such as `500ms`, `120s`, `2m` or `1h`, found `soon`",
        ),
        ("budget: {usd: -1}", "x.yaml:1:15: `usd`: expected an amount in US dollars such as `2.50`, found `-1`"),
        (
            "budget: {usd: 0.1234567891}",
            "x.yaml:1:15: `usd`: expected an amount in US dollars such as `2.50`, found `0.1234567891`",
        ),
        ("budget: {tokens: 1.5}", "x.yaml:1:18: `tokens`: expected a whole number, found `1.5`"),
        (
            "budget: much",
            "x.yaml:1:9: `budget`: expected a map such as `{usd: 2.00, tokens: 200000, wall: 40m}`, found `much`",
        ),
        ("tasks:\n- {do: a, description: b, id: a}", "x.yaml:2:11: `description` says again what `do` says"),
        ("tasks: [\n", "x.yaml:1:8: unclosed bracket '['"),
        ("goal: a\ngoal: b\n", "x.yaml:2:1: the key `goal` is written twice"),
        ("gates: [[a]]", "x.yaml:1:9: `a gate`: expected a map such as `{before: ID, ask: owner}`, found a list"),
    ];
    for (text, want) in table {
        let stop = stop(text);
        assert_eq!((stop.message.lines().next(), stop.exit), (Some(want), Exit::Config), "{text:?}");
        assert_eq!(stop.message.lines().count(), 2, "it says what to do next: {}", stop.message);
    }
    let two = stop("goal: [a]\ntasks:\n- {id: a, retry: x}\n");
    assert_eq!(two.message.lines().count(), 3, "one look names them all: {}", two.message);
    let large = read(&"#".repeat((16 << 20) + 1), "x.yaml").unwrap_err();
    assert!(large.message.starts_with("x.yaml: 16777217 bytes are too many"), "{}", large.message);
}

#[test]
fn a_large_plan_fits() {
    let task = |at: usize| TaskDraft {
        id: format!("t{at}"),
        agent: "leo".into(),
        description: "Do it.\nWell.".into(),
        needs: (1..=3).filter_map(|step| at.checked_sub(step * 100)).map(|need| format!("t{need}")).collect(),
        verify: words(&["cargo test"]),
        ..TaskDraft::default()
    };
    let large = Draft { tasks: (0..10_000).map(task).collect(), ..Draft::default() };
    assert_eq!(draft(&write(&large)), large);
}

/// Pieces of which nasty texts are made.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z]{1,9}",
        3 => Just(" ".to_owned()),
        1 => prop::sample::select(vec![
            "\n", "\n\n", "\t", "\r", "\r\n", "  ", "\"", "'", ": ", ":", " #", "#", "- ", "-", "? ", "*", "&a", "!", "|",
            ">", "%", "@", "`", "{", "}", "[", "]", ",", "\\", "\\n", "汉字", "é", "😀", "…", "---", "...", "null", "~",
            "true", "12", "1.5", "0x1f", "1e3", "2001-01-01", "\u{0}", "\u{1b}", "\u{7f}", "\u{85}", "\u{a0}",
            "\u{2028}", "\u{feff}", "\u{ffff}", "<<", "=", "$", "${X}", "key: value\n", "\n  x", "\n\tx",
        ]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

fn short() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-z][a-z0-9_-]{0,12}", 1 => text()]
}

fn budget() -> impl Strategy<Value = Budget> {
    let ms = prop::option::weighted(0.3, 0..31_622_400_000_u64);
    (prop::option::weighted(0.3, any::<u64>()), prop::option::weighted(0.3, any::<u64>()), ms)
        .prop_map(|(nano, tokens, wall_ms)| Budget { nano, tokens, wall_ms })
}

fn task() -> impl Strategy<Value = TaskDraft> {
    let list = || prop::collection::vec(short(), 0..4);
    let names = (short(), text(), text(), short(), list(), prop::option::weighted(0.2, short()));
    let claims =
        (prop::option::of(list()), list(), list(), any::<u32>(), prop::option::weighted(0.3, 0..100_000_000_u64));
    let managers = PackageManager::ALL.to_vec();
    let apart = (
        prop::sample::select(vec![Isolation::None, Isolation::Worktree]),
        prop::collection::vec(prop::sample::select(managers), 0..3),
    );
    (names, claims, budget(), prop::option::weighted(0.2, short()), any::<bool>(), apart).prop_map(
        |(names, (owns, outputs, verify, retry, timeout_ms), budget, model, skip, (isolation, installs))| {
            let (id, title, description, agent, needs, when) = names;
            TaskDraft {
                id,
                title,
                description,
                agent,
                needs,
                when,
                owns,
                outputs,
                verify,
                installs,
                retry,
                timeout_ms,
                budget,
                model,
                skip,
                isolation,
            }
        },
    )
}

fn any_draft() -> impl Strategy<Value = Draft> {
    let gate = (short(), short()).prop_map(|(before, ask)| Gate { before, ask });
    let max_parallel = prop::option::weighted(0.3, any::<u32>());
    (text(), budget(), max_parallel, prop::collection::vec(task(), 0..4), prop::collection::vec(gate, 0..3))
        .prop_map(|(goal, budget, max_parallel, tasks, gates)| Draft { goal, budget, max_parallel, tasks, gates })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_written_file_reads_back_the_same(draft in any_draft()) {
        let file = write(&draft);
        match read(&file, "x") {
            Ok(read) => prop_assert_eq!((read.draft, read.warnings.len()), (draft, 0), "{}", file),
            Err(stop) => prop_assert!(false, "{}\n{}", stop.message, file),
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in text()) {
        // Never a panic; what is read at all can be written and read again.
        if let Ok(first) = read(&text, "x") {
            prop_assert_eq!(&read(&write(&first.draft), "x").unwrap().draft, &first.draft);
        }
    }
}
