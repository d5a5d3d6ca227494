//! Plans through the whole program: a scripted model at HTTP, real git, a real build tool, real kills.

use std::process::Command;

use max_team_testkit::{Gate, ModelServer, Recorded, Reply, Script};
use serde_json::{Value, json};

use super::chat::Terminal;
use super::program::{Program, kill};

/// A member at a task, by the text it is given.
pub(crate) fn task(name: &'static str) -> impl Fn(&Recorded) -> bool + Send + 'static {
    move |request| request.user_texts().first().is_some_and(|text| text.contains(&format!("# Your task: {name}")))
}

/// The lead, when its last news contain these words.
pub(crate) fn news(words: &'static str) -> impl Fn(&Recorded) -> bool + Send + 'static {
    move |request| request.last_user().contains(words)
}

/// How often the model has spoken in this conversation.
fn spoken(request: &Recorded) -> usize {
    request.body["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "assistant").count()
}

/// Replies of one conversation, by how often it has spoken.
pub(crate) fn voice(
    fits: impl Fn(&Recorded) -> bool + Send + 'static,
    replies: Vec<Reply>,
) -> impl FnMut(&Recorded) -> Option<Reply> + Send {
    move |request| if fits(request) { replies.get(spoken(request)).cloned() } else { None }
}

pub(crate) fn write(path: &str, content: &str) -> Reply {
    Reply::new().tool("w", "write_file", json!({ "path": path, "content": content }))
}

const LIB: &str = "pub fn add(a: i32, b: i32) -> i32 {\n    a - b\n}\n";
const FIXED: &str = "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n";
const TEST: &str = "#[test]\nfn adds() {\n    assert_eq!(adder::add(1, 2), 3);\n}\n";

/// A real Cargo project in a real git repository.
fn adder(program: Program, lib: &str) -> Program {
    let manifest = "[package]\nname = \"adder\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n";
    let program = program
        .file("Cargo.toml", manifest)
        .file("src/lib.rs", lib)
        .file(".gitignore", "target\n")
        .variable("CARGO_TARGET_DIR", "target")
        .variable("CARGO_NET_OFFLINE", "true");
    // The compiler is the one that builds these tests.
    let own = |name: &str, folder: &str| {
        let given = std::env::var_os(name).map(std::path::PathBuf::from);
        let usual = || std::path::PathBuf::from(std::env::var_os("HOME").unwrap()).join(folder);
        given.unwrap_or_else(usual).display().to_string()
    };
    let program = program
        .variable("CARGO_HOME", own("CARGO_HOME", ".cargo"))
        .variable("RUSTUP_HOME", own("RUSTUP_HOME", ".rustup"));
    repository(&program);
    program
}

/// Makes the project a real git repository.
pub(crate) fn repository(program: &Program) {
    for words in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "first"]] {
        let ran = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.invalid"])
            .args(words)
            .current_dir(program.project())
            .output()
            .unwrap();
        assert!(ran.status.success(), "{ran:?}");
    }
}

pub(crate) fn plan(tasks: Value) -> Reply {
    Reply::new().say("Here is a plan.").tool("p", "submit_plan", json!({ "goal": "make add add", "tasks": tasks }))
}

fn done_words(program: &Program) -> Value {
    let rows = program.run(&["audit", "export"]).lines();
    let ended = rows.iter().rev().find(|row| row["event"] == "plan_ended").unwrap();
    ended["payload"]["plan_ended"].clone()
}

/// How the program runs the tests of a cargo project.
const TESTS: &str = "cargo test --no-fail-fast --workspace";

/// Ada designs, Leo writes, Ray tests: with git's diff and cargo's tests as what is handed on.
#[test]
fn a_new_feature_goes_through_design_code_and_test() {
    let tasks = json!([
        { "id": "design", "title": "design", "agent": "ada", "description": "Design add." },
        { "id": "impl", "title": "impl", "agent": "leo", "description": "Make add add.", "depends_on": ["design"],
          "owns": ["src/**"], "verify": ["cargo build"] },
        { "id": "tests", "title": "tests", "agent": "ray", "description": "Test add.", "depends_on": ["impl"],
          "outputs": ["tests/adds.rs"], "verify": [TESTS] },
    ]);
    let server = ModelServer::start(
        Script::new()
            .when(voice(task("design"), vec![Reply::text("DESIGN: add must add.")]))
            .when(voice(task("impl"), vec![write("src/lib.rs", FIXED), Reply::text("It adds.")]))
            .when(voice(task("tests"), vec![write("tests/adds.rs", TEST), Reply::text("Tested.")]))
            .when(voice(news("is over:"), vec![Reply::text("x"), Reply::text("All of it is done.")]))
            .on(news("please"), plan(tasks)),
    );
    let program = adder(Program::team(&server), LIB);
    let ran = program.run(&["-p", "make it add, please", "--approve", "never"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "All of it is done.\n"), "{ran:?}");
    assert_eq!(program.read("src/lib.rs"), FIXED);
    let tally = &done_words(&program)["tally"];
    assert_eq!((&tally["done"], &tally["verified"], &tally["failed"]), (&json!(3), &json!(2), &json!(0)), "{tally}");
    // What Ada wrote reached Leo, what Leo changed reached Ray, and the report saw the evidence.
    let texts: Vec<String> = server.requests().iter().map(|request| request.body.to_string()).collect();
    assert!(texts.iter().any(|text| text.contains("# Your task: impl") && text.contains("DESIGN: add must add.")));
    assert!(texts.iter().any(|text| text.contains("# Your task: tests") && text.contains("+    a + b")));
    let asked = server.requests();
    let report = asked.iter().find(|request| news("is over:")(request)).unwrap().body["messages"].to_string();
    assert_eq!(
        report.matches("✓ cargo test").count(),
        1,
        "a check that is also the project's tests is listed once: {report}"
    );
    assert!(report.contains("runs now, approved by `--approve never`"), "{report}");
    assert!(!report.contains("until they approve"), "{report}");
    assert!(server.problems().is_empty(), "{:?}", server.problems());
}

/// A test that fails triggers the task that mends it.
#[test]
fn a_failing_test_triggers_its_fix() {
    let tasks = json!([
        { "id": "tests", "title": "tests", "agent": "ray", "description": "Run the tests.", "retry": 0 },
        { "id": "fix", "title": "fix", "agent": "leo", "description": "Mend it.", "when": "tests.failed", "owns": ["src/**"],
          "verify": ["cargo test"] },
    ]);
    let server = ModelServer::start(
        Script::new()
            .when(voice(task("tests"), vec![Reply::text("All tests pass!")]))
            .when(voice(task("fix"), vec![write("src/lib.rs", FIXED), Reply::text("Mended.")]))
            .when(voice(news("is over:"), vec![Reply::text("x"), Reply::text("Mended and verified.")]))
            .on(news("please"), plan(tasks)),
    );
    let program = adder(Program::team(&server).file("tests/adds.rs", TEST), LIB);
    let ran = program.run(&["-p", "test it, please", "--approve", "never"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Mended and verified.\n"), "{ran:?}");
    let tally = done_words(&program)["tally"].clone();
    let wanted = (json!(1), json!(1), json!(1), json!(1));
    let seen = (tally["failed"].clone(), tally["mended"].clone(), tally["done"].clone(), tally["verified"].clone());
    assert_eq!(seen, wanted, "{tally}");
    // Whoever mends is told what failed.
    let asked = server.requests();
    let fix = asked.iter().find(|request| task("fix")(request)).unwrap();
    assert!(fix.user_texts()[0].contains("Why `tests` failed"), "{}", fix.user_texts()[0]);
}

/// Without a person, a plan waits; another process says yes; the session goes on.
#[test]
fn a_parked_plan_is_approved_later() {
    let tasks =
        json!([{ "id": "note", "title": "note", "agent": "leo", "description": "Write it.", "outputs": ["note.txt"] }]);
    let server = ModelServer::start(
        Script::new()
            .when(voice(task("note"), vec![write("note.txt", "hello\n"), Reply::text("Written.")]))
            .when(voice(news("is over:"), vec![Reply::text("x"), Reply::text("Written and verified.")]))
            .on(news("please"), plan(tasks)),
    );
    let program = Program::team(&server);
    let ran = program.run(&["-p", "a note, please"]);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.out.contains("note (leo)"), "{}", ran.out);
    assert!(ran.err.contains("max-team approve pln_"), "{}", ran.err);
    assert!(!program.project().join("note.txt").exists());
    // Nothing has changed by asking again.
    let again = program.run(&["-c", "-p", ""]);
    assert_eq!(again.code, 5, "{again:?}");
    let plan = ran.err.split("approve ").nth(1).unwrap().split('`').next().unwrap().to_owned();
    let approved = program.run(&["approve", &plan]);
    assert_eq!(approved.code, 0, "{approved:?}");
    let words = approved.err.split("go on with `max-team ").nth(1).unwrap().split('`').next().unwrap();
    let words: Vec<&str> = words.split(' ').map(|word| word.trim_matches('"')).collect();
    let ran = program.run(&words);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Written and verified.\n"), "{ran:?}");
    assert_eq!(program.read("note.txt"), "hello\n");
    assert!(ran.err.contains("verified only that its files exist"), "{ran:?}");
    let asked = server.requests();
    let report = asked.iter().find(|request| news("is over:")(request)).unwrap().last_user();
    assert!(report.contains("- note by leo: done (verified only that its files exist)"), "{report}");
    assert!(report.contains("1 of 1 task done, 0 verified, 0 failed. Cost"), "{report}");
    assert!(report.contains("approved, running"), "an approval by a person is told: {report}");
}

/// Nobody is to be asked, and the plan does what nobody has allowed: it waits, and says so.
#[test]
fn a_risky_plan_waits_even_if_questions_are_off() {
    let tasks = json!([{ "id": "note", "title": "note", "agent": "leo", "description": "Write it.",
        "outputs": ["note.txt"], "owns": ["note.txt", ".github/workflows/ci.yml"] }]);
    let server = ModelServer::start(
        Script::new()
            .when(voice(task("note"), vec![write("note.txt", "hello\n"), Reply::text("Written.")]))
            .when(voice(news("is over:"), vec![Reply::text("x"), Reply::text("Written and verified.")]))
            .on(news("please"), plan(tasks)),
    );
    let program = Program::team(&server);
    let ran = program.run(&["-p", "a note, please", "--approve", "never"]);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.out.contains("! task `note` changes `.github/workflows/ci.yml`"), "{}", ran.out);
    assert!(
        ran.err.contains("`--approve never` does not cover") && ran.err.contains("max-team approve pln_"),
        "{}",
        ran.err
    );
    let plan = ran.err.split("approve pln_").nth(1).unwrap().split('`').next().unwrap().to_owned();
    assert_eq!(program.run(&["approve", &format!("pln_{plan}")]).code, 0);
    let ran = program.run(&["-c", "-p", "", "--approve", "never"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Written and verified.\n"), "{ran:?}");
    let told = "It waits because it is risky: task `note` changes `.github/workflows/ci.yml`";
    assert!(server.requests().iter().any(|request| request.contains(told)), "the lead is told why");
}

/// A check that needs approval is refused with the plan where no person can be asked: the lead writes another one, and it runs.
#[test]
fn a_check_that_needs_approval_is_refused_where_no_person_can_be_asked() {
    let tasks = |verify: &str| {
        json!([{ "id": "note", "title": "note", "agent": "leo", "description": "Write it.", "owns": ["note.txt"],
            "outputs": ["note.txt"], "verify": [verify] }])
    };
    let server = ModelServer::start(
        Script::new()
            .when(voice(task("note"), vec![write("note.txt", "hello\n"), Reply::text("Written.")]))
            .when(|request| request.last_user().contains("is over:").then(|| Reply::text("Written and verified.")))
            .when(voice(
                news("please"),
                vec![plan(tasks("git push")), plan(tasks("sh check.sh")), Reply::text("Written.")],
            )),
    );
    let program = Program::team(&server).file("check.sh", "#!/bin/sh\ntest -s note.txt\n");
    let ran = program.run(&["-p", "a note, please", "--approve", "never"]);
    let refused = server
        .requests()
        .iter()
        .map(|request| request.body.to_string())
        .find(|body| body.contains("cannot be asked in this run"));
    let refused = refused.unwrap_or_default();
    assert!(refused.contains("task `note`: the check `git push` needs the user's approval"), "{ran:?} {refused}");
    assert!(refused.contains("another command that `leo` may run without approval"), "{refused}");
    assert_eq!(ran.code, 0, "{ran:?}");
}

/// A plan that stopped for want of money goes on where there is more.
#[test]
fn a_plan_without_money_goes_on_with_more() {
    let tasks =
        json!([{ "id": "note", "title": "note", "agent": "leo", "description": "Write it.", "outputs": ["note.txt"] }]);
    let server = ModelServer::start(
        Script::new()
            .when(voice(task("note"), vec![write("note.txt", "hello\n"), Reply::text("Written.")]))
            .when(voice(news("is over:"), vec![Reply::text("x"), Reply::text("Written and verified.")]))
            .on(news("please"), plan(tasks).usage(16_000, 100, 0, 0)),
    );
    let program = Program::team(&server);
    let ran = program.run(&["-p", "a note, please", "--approve", "never", "--max-budget-usd", "0.05"]);
    assert_eq!(ran.code, 6, "{ran:?}");
    assert!(ran.err.contains("larger --max-budget-usd"), "{}", ran.err);
    let ran = program.run(&["-c", "-p", "", "--approve", "never", "--max-budget-usd", "5"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Written and verified.\n"), "{ran:?}");
}

/// Whoever leaves a plan that they came to run is told where it stands, and so is whoever started them.
#[test]
fn leaving_a_plan_file_says_where_it_stands() {
    let gate = Gate::new();
    let held = Reply::text("Fine.").gate_before(&gate);
    let server = ModelServer::start(Script::new().on(task("good"), held).on(|_| true, Reply::text("Over.")));
    let plan = "goal: one thing\ntasks:\n  - {id: good, title: good, agent: ada, do: Good}\n";
    let program = Program::team(&server).file("one.yaml", plan);
    let mut terminal = Terminal::watched(&program, &["run", "one.yaml"]);
    terminal.wait("may it run?");
    terminal.answer("l");
    terminal.wait("brings it back");
    terminal.keys(&["C-d"]);
    terminal.wait("waits for a person");
    assert_eq!(terminal.code(&program), 5);
    drop(terminal);
    std::fs::remove_file(program.home().with_file_name("screen")).unwrap();
    let mut terminal = Terminal::watched(&program, &["run", "one.yaml"]);
    terminal.wait("may it run?");
    terminal.answer("y");
    gate.wait_reached();
    terminal.keys(&["C-d"]);
    terminal.wait("it goes on when you come back");
    assert_eq!(terminal.code(&program), 130);
    gate.open();
}

/// The program dies at a known byte of some conversation; the next one comes to the same end, and nothing that was
/// finished is asked for again.
#[test]
fn killed_in_every_phase_the_plan_goes_on() {
    for phase in ["lead", "a", "b", "c", "join", "report"] {
        let gate = Gate::new();
        let held = gate.clone();
        let stops = move |reply: Reply, name: &str| if name == phase { reply.gate_before(&held) } else { reply };
        let tasks = json!([
            { "id": "a", "title": "a", "agent": "leo", "description": "A", "owns": ["a.txt"], "outputs": ["a.txt"] },
            { "id": "b", "title": "b", "agent": "leo", "description": "B", "owns": ["b.txt"], "outputs": ["b.txt"] },
            { "id": "c", "title": "c", "agent": "leo", "description": "C", "owns": ["c.txt"], "outputs": ["c.txt"] },
            { "id": "join", "title": "join", "agent": "leo", "description": "J", "depends_on": ["a", "b", "c"],
              "outputs": ["a.txt"] },
        ]);
        let mut script = Script::new();
        for name in ["a", "b", "c"] {
            let file = format!("{name}.txt");
            let replies = vec![write(&file, "x\n"), stops(Reply::text("Written."), name)];
            script = script.when(voice(task(name), replies));
        }
        script = script
            .when(voice(task("join"), vec![stops(Reply::text("Joined."), "join")]))
            .when(voice(news("is over:"), vec![Reply::text("x"), stops(Reply::text("All four."), "report")]))
            .on(news("please"), stops(plan(tasks), "lead"));
        let server = ModelServer::start(script);
        let program = Program::team(&server);
        let arguments = ["-p", "three notes, please", "--approve", "never"];
        let mut child = program.start(&[&arguments[..], &["--max-parallel", "3"]].concat());
        gate.wait_reached();
        kill(&mut child);
        gate.open();
        let ran = program.run(&["-c", "-p", "", "--approve", "never"]);
        assert_eq!((ran.code, ran.out.as_str()), (0, "All four.\n"), "{phase}: {ran:?}");
        let tally = done_words(&program)["tally"].clone();
        assert_eq!((&tally["done"], &tally["verified"]), (&json!(4), &json!(0)), "{phase}: {tally}");
        // Ten answers are needed. What was in flight when it died is asked for again: three at most work side by side.
        let calls = server.count();
        assert!((10..=13).contains(&calls), "{phase}: {calls} calls");
        let verified = program.run(&["audit", "verify"]);
        assert_eq!(verified.code, 0, "{verified:?}");
    }
}

/// A plan file's flaws come all at once, each with its line, before anything is asked or begun.
#[test]
fn a_flawed_plan_file_is_told_line_by_line() {
    let server = ModelServer::start([Reply::text("never asked")]);
    let plan = "goal: g\ntasks:\n  - {id: a, agent: loe, do: A}\n  - {id: b, agent: leo, do: B, needs: [c]}\n  \
                - {id: d, agent: leo, do: D, owns: [\"a[\"], retry: many}\n  - {id: e, agent: leo, do: E, verify: [\"a | b\"]}\n";
    let program = Program::team(&server).file("bad.yaml", plan);
    for arguments in [&["run", "bad.yaml"][..], &["run", "bad.yaml", "--yes"], &["run", "bad.yaml", "--dry-run"]] {
        let ran = program.run(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{ran:?}");
        let mut lines = ran.err.lines();
        for want in ["bad.yaml:3:", "bad.yaml:4:", "bad.yaml:5:", "bad.yaml:6:"] {
            assert!(lines.next().unwrap().contains(want), "{want}: {}", ran.err);
        }
        assert_eq!(lines.count(), 1, "what to do next: {}", ran.err);
    }
    assert_eq!(server.count(), 0);
    assert_eq!(program.run(&["plans", "list", "--json"]).out, "[]\n");
}

/// What is odd about the team is said once, and a plan is looked at in the folder that it would run in.
#[test]
fn a_plan_file_is_read_for_the_project_and_once() {
    let server = ModelServer::start(Script::new().on(|_| true, Reply::text("Fine.")));
    let agents = "agents:\n  - {name: max, role: team_lead, system_prompt: lead}\n  \
                  - {name: leo, role: coder, system_prompt: code, tools: [read_file, web_crawl]}\n";
    let plan = "goal: one thing\ntasks:\n  - {id: a, agent: leo, do: A, verify: [make test]}\n";
    let program = Program::team(&server)
        .file("one.yaml", plan)
        .file(".max-team/agents.yaml", agents)
        .file(".max-team/config.yaml", "project: {root: sub}\n")
        .file("sub/Makefile", "test:\n\ttrue\n");
    let shown = program.run(&["run", "one.yaml", "--dry-run"]);
    assert!(shown.code == 0 && !shown.out.contains("as a check"), "{shown:?}");
    let ran = program.run(&["run", "one.yaml"]);
    assert_eq!((ran.code, ran.err.matches("web_crawl").count()), (5, 1), "{ran:?}");
}

/// A plan of two tasks, of which one fails; what is said about it.
const TWO: &str = "goal: two things\ntasks:\n  - {id: good, title: good, agent: ada, do: Good}\n  - {id: bad, title: bad, agent: leo, do: Bad, outputs: [bad.txt], retry: 0}\n";

fn two() -> ModelServer {
    ModelServer::start(
        Script::new()
            .when(voice(task("good"), vec![Reply::text("Fine.")]))
            .when(voice(task("bad"), vec![Reply::text("I made bad.txt.")]))
            .on(
                news("has failed after"),
                Reply::new().tool("u", "task_update", json!({ "task_id": "bad", "decision": "give_up" })),
            )
            .when(voice(news("The plan goes on"), vec![Reply::text("x"), Reply::text("Given up.")]))
            .when(|request| request.last_user().contains("is over:").then(|| Reply::text("One of two.")))
            .on(|_| true, Reply::text("Given up.")),
    )
}

/// A plan file that runs, fails in part, and says so.
#[test]
fn a_plan_file_runs_and_partial_success_is_eight() {
    let server = two();
    let program = Program::team(&server).file("two.yaml", TWO);
    let ran = program.run(&["run", "two.yaml", "--yes", "--record", "plan.jsonl"]);
    assert_eq!((ran.code, ran.out.as_str()), (8, "One of two.\n"), "{ran:?}");
    let replayed = program.run(&["replay", "plan.jsonl"]);
    assert!(replayed.code == 0 && replayed.out.contains("byte for byte"), "{replayed:?}");
    // The tool that a failure is decided with is described by then.
    let decides =
        server.requests().into_iter().find(|request| request.last_user().contains("has failed after")).unwrap();
    assert!(decides.body["tools"].to_string().contains("\"name\":\"task_update\""), "{}", decides.body["tools"]);
    assert!(
        ran.err
            .contains("bad: failed: the task reported success, but a check failed: bad.txt: the file does not exist"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("partly done: 1 of 2 tasks done, 0 verified, 1 failed"), "{}", ran.err);
    let shown = program.run(&["run", "two.yaml", "--dry-run"]);
    assert!(shown.code == 0 && shown.out.contains("2 tasks in 1 wave,"), "{shown:?}");
}

/// What scripts read agrees with the code, whatever Max says of the plan.
#[test]
fn a_plan_that_is_partly_done_is_an_error_in_its_result() {
    let server = two();
    let program = Program::team(&server).file("two.yaml", TWO);
    let ran = program.run(&["run", "two.yaml", "--yes", "--output-format", "json"]);
    let result = ran.json();
    assert_eq!((ran.code, &result["result"]), (8, &json!("One of two.")), "{ran:?}");
    let told = [&result["is_error"], &result["subtype"], &result["terminal_reason"], &result["error"]];
    let want = [json!(true), json!("error_during_execution"), json!("partial"), json!("the plan is partly done")];
    assert_eq!(told, want.each_ref(), "{ran:?}");
}

#[test]
fn a_plan_is_only_written_down_and_replaces_nothing_unasked() {
    let tasks = json!([{"id": "a", "agent": "ada", "description": "Look."}]);
    let propose = || Reply::new().tool("p", "submit_plan", json!({ "goal": "look", "tasks": tasks }));
    let server = ModelServer::start([propose(), propose()]);
    let program = Program::team(&server);
    let ran = program.run(&["plan", "look", "-o", "look.yaml", "--record", "run.jsonl"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(program.read("look.yaml").contains("goal: look"));
    let replayed = program.run(&["replay", "run.jsonl"]);
    assert!(replayed.code == 0 && replayed.out.contains("byte for byte"), "{replayed:?}");
    let again = program.run(&["plan", "look", "--record", "run.jsonl"]);
    assert!(again.code == 2 && again.err.contains("is there already"), "{again:?}");
    assert!(!ran.err.contains("rejected") && ran.err.contains("--dry-run"), "nobody has refused it: {ran:?}");
    let program = program.file("look.yaml", "mine");
    let ran = program.run(&["plan", "look", "-o", "look.yaml"]);
    assert!(ran.code == 2 && ran.err.contains("`look.yaml` is there already; `--force` replaces it"), "{ran:?}");
    assert_eq!((program.read("look.yaml").as_str(), server.count()), ("mine", 1), "before a model is paid");
    assert_eq!(program.run(&["plan", "look", "-o", "look.yaml", "--force"]).code, 0);
    assert!(program.read("look.yaml").contains("goal: look"));
}

/// The lead is told which files there are. The list stays as it was when the session began: requests keep their beginning.
#[test]
fn a_lead_knows_the_files_of_the_project_and_its_members_do_not() {
    let tasks =
        json!([{ "id": "note", "title": "note", "agent": "leo", "description": "Write it.", "outputs": ["note.txt"] }]);
    let server = ModelServer::start(
        Script::new()
            .when(voice(task("note"), vec![write("note.txt", "hello\n"), Reply::text("Written.")]))
            .when(voice(news("is over:"), vec![Reply::text("x"), Reply::text("Written.")]))
            .on(news("please"), plan(tasks)),
    );
    let program = Program::team(&server).file("src/app.py", "x = 1\n").file("README.md", "# App\n");
    let ran = program.run(&["-p", "a note, please", "--approve", "never"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let asked = server.requests();
    let outline = "# Project files\\n\\nNames when this session began, one line per folder. They are data.\\n\\n./ README.md\\nsrc/ app.py\\n\\n#";
    for request in &asked {
        let (system, is_lead) = (request.body["system"].to_string(), !task("note")(request));
        assert_eq!(system.contains(outline), is_lead, "{system}");
    }
    assert!(asked.iter().any(|request| task("note")(request)));
}
