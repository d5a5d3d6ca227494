//! The ten jobs: what the user wants, what each agent does about it, and how the outcome is checked.
//!
//! Agents know facts from files and results alone. Each result ends with a word of its own (`mark-…`) behind two
//! paragraphs, so that a result that is cut or dropped on its way to the lead is seen.

use std::time::Duration;

use serde_json::{Value, json};

use super::job::{Job, Part, Phase, Step, Ways};
use super::policy::give;
use super::stage::Stage;
use super::view::View;

/// Tools that have a member do something, the fittest first.
const DELEGATE: [&str; 4] = ["dispatch_task", "delegate", "agent", "task"];
/// Tools that have an agent find something out.
const ASK: [&str; 4] = ["agent", "ask", "delegate", "task"];
/// How long another task's outcome is waited for before a writer goes on without it.
const SIBLING_MAX: Duration = Duration::from_secs(3);
const TESTS: [&str; 5] = ["python3", "-m", "unittest", "discover", "-v"];
const BASE_TEST: (&str, &str) =
    ("test_base.py", "import unittest\n\n\nclass Base(unittest.TestCase):\n    def test_base(self):\n        pass\n");

pub(super) fn all() -> Vec<Job> {
    vec![question(), edit(), fix(), feature(), debate(), trip(), memory(), writers(), change(), resume()]
}

fn one(tool: &'static str, input: Value) -> Vec<Ways> {
    vec![vec![(tool, input)]]
}

fn read(path: &str) -> Vec<Ways> {
    one("read_file", json!({ "path": path }))
}

fn write(path: &str, content: &str) -> Vec<Ways> {
    one("write_file", json!({ "path": path, "content": content }))
}

/// An edit, unless the file that was read has it already.
fn correct(view: &View, path: &str, old: &str, new: &str) -> Vec<Ways> {
    let is_there = view.results("s0_0_0_").iter().any(|(text, _)| text.contains(new));
    if is_there { Vec::new() } else { one("edit_file", json!({ "path": path, "old": old, "new": new })) }
}

fn tests(_: &View) -> Vec<Ways> {
    vec![vec![("run_test", json!({})), ("run_shell", json!({ "command": TESTS.join(" ") }))]]
}

/// A result of three paragraphs; its last word is the marker.
fn report(what: &str, marker: &str) -> String {
    let details = "Files were read before they were changed, and the change is as small as it can be. ".repeat(4);
    format!("{what}\n\n{details}\n\nWorth knowing: {marker}")
}

fn plan(goal: &str, tasks: Value) -> Vec<Ways> {
    one("submit_plan", json!({ "goal": goal, "tasks": tasks }))
}

fn task(id: &str, agent: &str, text: &str, more: Value) -> Value {
    let mut task = json!({ "id": id, "title": id, "agent": agent, "description": format!("ref:{id} {text}") });
    if let (Value::Object(task), Value::Object(more)) = (&mut task, more) {
        task.extend(more);
    }
    task
}

fn last_answer(stage: &Stage) -> &str {
    stage.runs.last().map_or("", |run| run.answer.as_str())
}

fn tells(stage: &Stage, words: &[&str]) -> Result<(), String> {
    let answer = last_answer(stage);
    match words.iter().find(|word| !answer.contains(**word)) {
        Some(word) => Err(format!("the answer does not say `{word}`: {answer}")),
        None => Ok(()),
    }
}

fn holds(stage: &Stage, path: &str, text: &str) -> Result<(), String> {
    let found = stage.read(path);
    if found.contains(text) { Ok(()) } else { Err(format!("`{path}` does not hold `{text}`: {found}")) }
}

fn passes(stage: &Stage) -> Result<(), String> {
    if stage.shell(&TESTS) { Ok(()) } else { Err("the project's tests fail".to_owned()) }
}

fn commit(stage: &Stage) {
    let name = ["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid"];
    for words in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "first"]] {
        assert!(stage.shell(&[&name, words].concat()), "git {words:?}");
    }
}

fn question() -> Job {
    let look = Part::new("look", "explore", |view| {
        let port = if view.has_heard("8431") { "8431" } else { "unknown" };
        report(&format!("The server listens on port {port} (`server.py:1`)."), "mark-look")
    });
    Job {
        name: "question",
        files: &[("server.py", "PORT = 8431\n"), ("README.md", "A server.\n")],
        phases: vec![
            Phase::new("Which port", &["8431", "mark-look"]).step(
                Step::new(|view| {
                    vec![give(view, &ASK, "explore", "find the port", "ref:look Which port does the server listen on?")]
                })
                .expects("mark-look"),
            ),
        ],
        parts: vec![
            look.step(|_| {
                vec![vec![("search_code", json!({ "pattern": "PORT" })), ("read_file", json!({ "path": "server.py" }))]]
            })
            .marker("mark-look"),
        ],
        play: |stage| stage.ask(&["-p", "Which port does the server listen on?"]),
        check: |stage| tells(stage, &["8431", "mark-look"]),
    }
}

fn edit() -> Job {
    let typo = Part::new("typo", "coder", |_| report("The typo in greeting.txt is corrected.", "mark-typo"));
    Job {
        name: "edit",
        files: &[("greeting.txt", "Helo, world\n")],
        phases: vec![
            Phase::new("Correct the typo", &["mark-typo"]).step(
                Step::new(|view| {
                    vec![give(
                        view,
                        &DELEGATE,
                        "leo",
                        "correct a typo",
                        "ref:typo greeting.txt says `Helo`: make it `Hello`.",
                    )]
                })
                .expects("mark-typo"),
            ),
        ],
        parts: vec![
            typo.step(|_| read("greeting.txt"))
                .step(|view| correct(view, "greeting.txt", "Helo", "Hello"))
                .marker("mark-typo"),
        ],
        play: |stage| stage.ask(&["-p", "Correct the typo in greeting.txt."]),
        check: |stage| holds(stage, "greeting.txt", "Hello, world\n").and(tells(stage, &["mark-typo"])),
    }
}

const SUM_TEST: &str = "import unittest\n\nfrom calc import add\n\n\nclass Add(unittest.TestCase):\n    def test_add(self):\n        \
                        self.assertEqual(add(1, 2), 3)\n";

fn fix() -> Job {
    let sum = Part::new("sum", "coder", |_| report("`add` adds, and a test shows it.", "mark-sum"));
    Job {
        name: "fix",
        files: &[("calc.py", "def add(a, b):\n    return a - b\n"), BASE_TEST],
        phases: vec![
            Phase::new("add(1, 2)", &["mark-sum"]).step(
                Step::new(|view| {
                    let text = "ref:sum `add` in calc.py subtracts. Correct it, and write test_calc.py that shows it.";
                    vec![give(view, &DELEGATE, "leo", "make add add", text)]
                })
                .expects("mark-sum"),
            ),
        ],
        parts: vec![
            sum.step(|_| read("calc.py"))
                .step(|view| correct(view, "calc.py", "a - b", "a + b"))
                .step(|_| write("test_calc.py", SUM_TEST))
                .tests(tests)
                .marker("mark-sum"),
        ],
        play: |stage| stage.ask(&["-p", "add(1, 2) gives -1. Fix it, with a test."]),
        check: |stage| {
            holds(stage, "calc.py", "a + b")?;
            holds(stage, "test_calc.py", "add(1, 2)")?;
            passes(stage).and(tells(stage, &["mark-sum"]))
        },
    }
}

const SLUG: &str = "def slug(title):\n    return \"-\".join(title.lower().split())\n";
const SLUG_TEST: &str = "import unittest\n\nfrom slug import slug\n\n\nclass Slug(unittest.TestCase):\n    def test_slug(self):\n        \
                         self.assertEqual(slug(\"A  Title\"), \"a-title\")\n";

fn feature() -> Job {
    let design =
        Part::new("design", "architect", |_| report("`slug(title)` in slug.py: lower case, dashes.", "mark-design"));
    let code = Part::new("code", "coder", |_| report("`slug` is in slug.py.", "mark-code"));
    let proof = Part::new("proof", "tester", |_| report("It holds: 2 tests passed.", "mark-proof"));
    let review = Part::new("review", "architect", |_| {
        report("The change was reviewed. It is clear and small.", "an empty title gives an empty slug (mark-review)")
    });
    Job {
        name: "feature",
        files: &[("titles.py", "TITLES = [\"A  Title\"]\n"), BASE_TEST],
        phases: vec![
            Phase::new("Add slugs", &["mark-code", "mark-proof", "mark-review"])
                .step(Step::new(|_| {
                    let verify = json!([TESTS.join(" ")]);
                    plan(
                        "slugs of titles",
                        json!([
                            task("design", "ada", "Design `slug(title)`.", json!({})),
                            task("code", "leo", "Write slug.py.", json!({ "depends_on": ["design"], "owns": ["slug.py"], "outputs": ["slug.py"], "verify": verify })),
                            task("proof", "ray", "Test it in test_slug.py.", json!({ "depends_on": ["code"], "outputs": ["test_slug.py"], "verify": verify })),
                            task("review", "ada", "Review the change.", json!({ "depends_on": ["code", "proof"] })),
                        ]),
                    )
                }))
                .long(),
        ],
        parts: vec![
            design.step(|_| read("titles.py")).marker("mark-design"),
            code.step(|_| write("slug.py", SLUG)).tests(tests).marker("mark-code"),
            proof.step(|_| read("slug.py")).step(|_| write("test_slug.py", SLUG_TEST)).tests(tests).marker("mark-proof"),
            review.step(|_| vec![vec![("git_diff", json!({}))], vec![("read_file", json!({ "path": "slug.py" }))]]).marker("mark-review"),
        ],
        play: |stage| {
            commit(stage);
            stage.ask(&["-p", "Add slugs of titles, designed, tested and reviewed."]);
        },
        check: |stage| {
            holds(stage, "slug.py", "def slug")?;
            holds(stage, "test_slug.py", "a-title")?;
            passes(stage).and(tells(stage, &["mark-review"]))
        },
    }
}

/// A message whose answer is waited for, if the tool can wait.
fn message(view: &View, to: &str, text: &str) -> Vec<Ways> {
    let mut input = json!({ "to": to, "message": text });
    if let (true, Value::Object(input)) = (view.takes("send_message", "wait"), &mut input) {
        input.insert("wait".to_owned(), json!(true));
    }
    one("send_message", input)
}

fn debate() -> Job {
    let pro = Part::new("pro", "teammate", |_| report("We agree: tabs, shown as four columns.", "mark-pro"));
    let con = Part::new("con", "teammate", |_| report("We agree: tabs, shown as four columns.", "mark-con"));
    Job {
        name: "debate",
        files: &[("README.md", "A project.\n")],
        phases: vec![
            Phase::new("debate tabs", &["mark-pro", "mark-con"])
                .step(Step::new(|_| {
                    let debater = |name: &str, other: &str, side: &str| {
                        let prompt = format!("ref:{name} Debate tabs or spaces with `{other}` until you agree. {side}");
                        vec![("spawn_teammate", json!({ "name": name, "role": "debater", "prompt": prompt }))]
                    };
                    vec![
                        debater("pro", "con", "You are for tabs; you begin."),
                        debater("con", "pro", "You are for spaces."),
                    ]
                }))
                .long(),
        ],
        parts: vec![
            pro.step(|view| message(view, "con", "pro-one: tabs let each reader choose the width."))
                .step_after("con-one", |view| {
                    message(view, "con", "pro-two: alignment belongs to tables, not to code.")
                })
                .step_after("con-two", |view| {
                    message(view, "con", "pro-three: four columns suit both of us. Do you agree?")
                })
                .after("con-three")
                .marker("mark-pro"),
            con.step_after("pro-one", |view| message(view, "pro", "con-one: spaces look the same everywhere."))
                .step_after("pro-two", |view| message(view, "pro", "con-two: then the width must be said somewhere."))
                .step_after("pro-three", |_| {
                    one("send_message", json!({ "to": "pro", "message": "con-three: I agree." }))
                })
                .marker("mark-con"),
        ],
        play: |stage| stage.ask(&["-p", "Have two debate tabs or spaces until they agree, and tell me the outcome."]),
        check: |stage| tells(stage, &["mark-pro", "mark-con"]),
    }
}

/// A call of an expert, asked anew if the user wants that and the tool can.
fn expert(view: &View, who: &str) -> Ways {
    let way = |tool: &'static str| {
        let whom = ["agent", "type"].into_iter().find(|field| view.takes(tool, field))?;
        let mut input = json!({ whom: who, "arguments": { "port": "Hamburg", "about": format!("ref:{who}") } });
        if let (true, Value::Object(input)) = (view.takes(tool, "fresh") && view.has_heard("changed"), &mut input) {
            input.insert("fresh".to_owned(), json!(true));
        }
        view.takes(tool, "arguments").then_some((tool, input))
    };
    ["task", "agent"].into_iter().filter_map(way).collect()
}

/// An expert's answer about the first of these values that it has seen.
fn found(view: &View, values: &[&str], marker: &str) -> String {
    let value = values.iter().find(|value| view.has_heard(value)).copied().unwrap_or("unknown");
    format!("---RESULT---\n{}\n---TEXT---\n{}", json!({ "value": value }), report(&format!("It is {value}."), marker))
}

fn trip() -> Job {
    const TIDES: &str = "---\nname: tides\ntype: sub\ndescription: Knows the tides\ncache: {ttl: 7200, keys: [port]}\n\
                         tools: [read_file]\n---\nSay how high the water is. The data is in tides.txt.\n";
    const TRAINS: &str = "---\nname: trains\ntype: sub\ndescription: Knows the trains\ncache: {ttl: 7200, keys: [port]}\n\
                          tools: [read_file]\n---\nSay when the train leaves. The data is in trains.txt.\n";
    let asks =
        |cue, facts| Phase::new(cue, facts).step(Step::new(|view| vec![expert(view, "tides"), expert(view, "trains")]));
    let tides = Part::new("tides", "expert", |view| found(view, &["3.0 m", "5.0 m"], "mark-tides"));
    let trains = Part::new("trains", "expert", |view| found(view, &["09:15", "10:40"], "mark-trains"));
    Job {
        name: "trip",
        files: &[
            ("tides.txt", "Hamburg 3.0 m\n"),
            ("trains.txt", "Hamburg 09:15\n"),
            (".max-team/agents/tides.md", TIDES),
            (".max-team/agents/trains.md", TRAINS),
        ],
        phases: vec![
            asks("Plan my trip", &["3.0 m", "09:15"]),
            asks("have changed", &["5.0 m", "10:40"]),
            asks("the same trip", &["5.0 m", "10:40"]),
        ],
        parts: vec![
            tides
                .step(|view| if view.has_heard("\"cache_data\":null") { read("tides.txt") } else { Vec::new() })
                .marker("mark-tides"),
            trains
                .step(|view| if view.has_heard("\"cache_data\":null") { read("trains.txt") } else { Vec::new() })
                .marker("mark-trains"),
        ],
        play: |stage| {
            stage.ask(&["-p", "Plan my trip to Hamburg: tide and train."]);
            stage.write("tides.txt", "Hamburg 5.0 m\n");
            stage.write("trains.txt", "Hamburg 10:40\n");
            stage.ask(&["-p", "Tide and train of Hamburg have changed: ask again."]);
            stage.ask(&["-p", "Tell me tide and train for the same trip to Hamburg."]);
        },
        check: |stage| {
            let first = stage.runs.first().map_or("", |run| run.answer.as_str());
            let again = stage.runs.get(1).map_or("", |run| run.answer.as_str());
            if !first.contains("3.0 m") || !again.contains("5.0 m") {
                return Err(format!("the answers were `{first}` and `{again}`"));
            }
            tells(stage, &["5.0 m", "10:40"])
        },
    }
}

fn memory() -> Job {
    let keeper = Part::new("keeper", "memory", |_| "location".to_owned());
    Job {
        name: "memory",
        files: &[("../home/config.yaml", "memory: {extract: always}\n")],
        phases: vec![Phase::new("I live in", &[]), Phase::new("Where do I live", &["Tongzhou"])],
        parts: vec![keeper.step(|view| {
            let write = json!({ "key": "user_profile.location", "value": "Tongzhou", "quote": "I live in Tongzhou" });
            if view.has_heard("I live in Tongzhou") { one("memory_write", write) } else { Vec::new() }
        })],
        play: |stage| {
            stage.ask(&["-p", "I live in Tongzhou."]);
            stage.ask(&["-p", "Where do I live?"]);
        },
        check: |stage| tells(stage, &["Tongzhou"]),
    }
}

fn module(name: &str) -> String {
    format!("def {name}():\n    return \"{name}\"\n")
}

fn module_test(name: &str) -> String {
    format!(
        "import unittest\n\nfrom {name} import {name}\n\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        \
         self.assertEqual({name}(), \"{name}\")\n"
    )
}

/// Three coders at once; one of them writes its test first, so that the project's tests fail while it is at work.
fn writers() -> Job {
    let part = |role, kind: fn(&View) -> String| Part::new(role, "coder", kind);
    let alpha = part("alpha", |_| report("alpha.py is written.", "mark-alpha"));
    let beta = part("beta", |_| report("beta.py is written.", "mark-beta"));
    let gamma = part("gamma", |_| report("gamma.py is written.", "mark-gamma"));
    Job {
        name: "writers",
        files: &[BASE_TEST],
        phases: vec![
            Phase::new("three modules", &["mark-alpha", "mark-beta", "mark-gamma"])
                .step(Step::new(|_| {
                    let writer = |name: &str| {
                        let files = [format!("{name}.py"), format!("test_{name}.py")];
                        let more = json!({ "owns": files, "outputs": files, "verify": [TESTS.join(" ")] });
                        task(name, "leo", &format!("Write {} and {}.", files[0], files[1]), more)
                    };
                    plan("three modules", json!([writer("alpha"), writer("beta"), writer("gamma")]))
                }))
                .long(),
        ],
        parts: vec![
            alpha
                .step(|_| write("alpha.py", &module("alpha")))
                .step(|_| write("test_alpha.py", &module_test("alpha")))
                .marker("mark-alpha"),
            beta.step(|_| write("test_beta.py", &module_test("beta")))
                .step(|_| write("beta.py", &module("beta")))
                .held(1)
                .marker("mark-beta"),
            gamma
                .step(|_| write("gamma.py", &module("gamma")))
                .step(|_| write("test_gamma.py", &module_test("gamma")))
                .marker("mark-gamma"),
        ],
        play: |stage| {
            commit(stage);
            let mut run = stage.start(&["-p", "Write three modules side by side."], &[]);
            if stage.reaches("beta", &mut run) {
                run.hears_of(&["alpha", "gamma"], SIBLING_MAX);
            }
            stage.open("beta");
            stage.finish(run);
        },
        check: |stage| {
            for name in ["alpha", "beta", "gamma"] {
                holds(stage, &format!("{name}.py"), &module(name))?;
            }
            passes(stage).and(tells(stage, &["mark-alpha", "mark-beta", "mark-gamma"]))
        },
    }
}

fn greetings(word: &str) -> Value {
    json!([
        task(
            "greet",
            "leo",
            &format!("Write {word} into greeting.txt."),
            json!({ "owns": ["greeting.txt"], "outputs": ["greeting.txt"] })
        ),
        task(
            "sign",
            "leo",
            "Write the word of greeting.txt into sign.txt.",
            json!({ "depends_on": ["greet"], "owns": ["sign.txt"], "outputs": ["sign.txt"] })
        ),
    ])
}

/// The ways to tell a task that runs what has changed.
fn change_of_plan(view: &View) -> Vec<Ways> {
    let note = "The user has changed their mind: greeting.txt must say Goodbye.";
    let heard = view.heard();
    let plan = heard.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let id = plan.into_iter().find(|word| word.starts_with("pln_"));
    let mut ways = vec![
        ("send_message", json!({ "to": "leo", "message": note })),
        ("task_update", json!({ "task_id": "greet", "note": note })),
    ];
    let revised = json!({ "goal": "a farewell", "revises": id, "tasks": greetings("Goodbye") });
    ways.extend(id.map(|_| ("submit_plan", revised)));
    vec![ways]
}

fn change() -> Job {
    let greet = Part::new("greet", "coder", |_| report("greeting.txt is written.", "mark-greet"));
    let sign = Part::new("sign", "coder", |_| report("sign.txt is written.", "mark-sign"));
    Job {
        name: "change",
        files: &[("README.md", "A greeting.\n")],
        phases: vec![
            Phase::new("Write Hello", &["mark-greet", "mark-sign"])
                .step(Step::new(|_| plan("a greeting", greetings("Hello"))))
                .long(),
            Phase::new("must say Goodbye", &["mark-greet", "mark-sign"])
                .step(Step::new(change_of_plan))
                .long()
                .opens("greet"),
        ],
        parts: vec![
            greet
                .step(|view| write("greeting.txt", if view.has_heard("Goodbye") { "Goodbye\n" } else { "Hello\n" }))
                .step(|view| if view.has_heard("Goodbye") { write("greeting.txt", "Goodbye\n") } else { Vec::new() })
                .held(0)
                .marker("mark-greet"),
            sign.step(|_| read("greeting.txt"))
                .step(|view| write("sign.txt", if view.has_heard("Goodbye") { "Goodbye\n" } else { "Hello\n" }))
                .marker("mark-sign"),
        ],
        play: |stage| {
            let line =
                |text: &str| json!({ "type": "user", "message": { "role": "user", "content": text } }).to_string();
            let first = line("Write Hello into greeting.txt and sign.txt.");
            let mut run = stage.start(&["-p", "--input-format", "stream-json"], &[first]);
            if stage.reaches("greet", &mut run) {
                run.say(&line("I have changed my mind: it must say Goodbye."));
                stage.opened("greet", &mut run);
            }
            stage.open("greet");
            stage.finish(run);
        },
        check: |stage| {
            holds(stage, "greeting.txt", "Goodbye")
                .and(holds(stage, "sign.txt", "Goodbye"))
                .and(tells(stage, &["mark-sign"]))
        },
    }
}

/// Interrupted in its first task, killed in its second, and gone on with each time.
fn resume() -> Job {
    let first = Part::new("first", "coder", |_| report("one.txt is written.", "mark-first"));
    let second = Part::new("second", "coder", |_| report("two.txt is written.", "mark-second"));
    Job {
        name: "resume",
        files: &[("README.md", "Two files.\n")],
        phases: vec![
            Phase::new("two files", &["mark-first", "mark-second"])
                .step(Step::new(|_| {
                    let first =
                        task("first", "leo", "Write one.txt.", json!({ "owns": ["one.txt"], "outputs": ["one.txt"] }));
                    let more = json!({ "depends_on": ["first"], "owns": ["two.txt"], "outputs": ["two.txt"] });
                    plan("two files", json!([first, task("second", "leo", "Write two.txt.", more)]))
                }))
                .long(),
        ],
        parts: vec![
            first.step(|_| write("one.txt", "one\n")).step(|_| read("one.txt")).held(1).marker("mark-first"),
            second.step(|_| write("two.txt", "two\n")).step(|_| read("two.txt")).held(1).marker("mark-second"),
        ],
        play: |stage| {
            let mut run = stage.start(&["-p", "Write two files, one after the other."], &[]);
            if stage.reaches("first", &mut run) {
                run.interrupt();
            }
            stage.finish(run);
            stage.open("first");
            let mut run = stage.start(&["-c", "-p", ""], &[]);
            if stage.reaches("second", &mut run) {
                run.kill();
            }
            stage.finish(run);
            stage.open("second");
            stage.ask(&["-c", "-p", ""]);
        },
        check: |stage| {
            holds(stage, "one.txt", "one")
                .and(holds(stage, "two.txt", "two"))
                .and(tells(stage, &["mark-first", "mark-second"]))
        },
    }
}
