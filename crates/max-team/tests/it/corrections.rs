//! Corrections: the lead or the user asks the owner of a task that is over again.

use std::process::Command;

use max_team_testkit::{Gate, ModelServer, Recorded, Reply, Script};
use serde_json::{Value, json};

use crate::plans::{plan, task, voice, write};
use crate::practice::events;
use crate::program::{Program, finish, signal, soon};
use crate::reports::{is_lead, last_result, of_lead, send};
use crate::teammates::ok;

/// The newest message to the member that has a task.
fn last_told(server: &ModelServer, id: &'static str) -> String {
    let requests = server.requests();
    let of_task = requests.iter().rfind(|request: &&Recorded| task(id)(request)).unwrap();
    of_task.user_texts().join("\n")
}

/// Ray finds a fault in Leo's work, Leo mends it at the lead's word, and Ray tries again: what Leo says last is what Ray builds
/// on and what the report tells. His change needs no question, because the plan still runs.
#[test]
fn a_correction_is_what_others_build_on() {
    let tasks = json!([
        { "id": "impl", "title": "impl", "agent": "leo", "description": "Make add.", "owns": ["a.txt"], "outputs": ["a.txt"] },
        { "id": "test", "title": "test", "agent": "ada", "description": "Test add.", "depends_on": ["impl"] },
    ]);
    let again = Reply::new().tool("u", "task_update", json!({ "task_id": "test", "decision": "retry" }));
    let server = ModelServer::start(
        Script::new()
            .when(voice(
                task("impl"),
                vec![write("a.txt", "4"), Reply::text("OLD."), write("a.txt", "3"), Reply::text("NEW: it is 3.")],
            ))
            .when(voice(task("test"), vec![Reply::text("NOT DONE: it is 4."), Reply::text("It is 3.")]))
            .when(voice(is_lead, vec![plan(tasks), send("leo", "Make it 3."), again, Reply::text("All is well.")])),
    );
    let program = Program::team(&server);
    let ran = program.run(&["-p", "make it, please", "--approve", "never"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "All is well.\n"), "{ran:?}");
    let requests = server.requests();
    let tested = requests.iter().rfind(|request| task("test")(request)).unwrap().last_user();
    assert!(tested.contains("NEW: it is 3.\n\n(Before it was asked again it had said:)\nOLD."), "{tested}");
    // Ada has read older results: the message says which ones count, and what the program's checks say.
    assert!(tested.contains("replace older ones that you were given.\n\n### answer of `impl`\nNEW"), "{tested}");
    assert!(tested.contains("### Checks of `impl`, run by the program\n✓ a.txt: 1 bytes"), "{tested}");
    let report = of_lead(&server).last().unwrap().last_user();
    assert!(report.contains("NEW: it is 3."), "{report}");
    // The trace counts the correction, too.
    let trace = ok(program.run(&["trace"])).out;
    assert_eq!(trace.matches("turn leo").count(), 2, "{trace}");
    // The corrected file was looked at again, so the result is verified.
    let line = report.lines().find(|line| line.starts_with("- impl by leo: done (verified")).unwrap_or_default();
    assert!(line.contains("✓ a.txt"), "{report}");
    let strict = program.run(&["replay", "--strict", "--approve", "never"]);
    assert!(strict.code == 0 && strict.out.contains("would be the same"), "{strict:?}");
}

/// The plan has ended. The answer to a correction says what the checks of the task say now and what it cost, and the task's
/// record, `plans show` and the run's lines show the same.
#[test]
fn a_correction_after_the_plan_is_checked_again() {
    let tasks = json!([
        { "id": "area", "title": "area", "agent": "leo", "description": "Make area.", "owns": ["a.txt"], "outputs": ["a.txt"],
          "verify": ["grep -q 3 a.txt"] },
        { "id": "cover", "title": "cover", "agent": "leo", "description": "Cover it.", "owns": ["b.txt"], "depends_on": ["area"] },
    ]);
    let query = |input: Value| Reply::new().tool("q", "task_query", input);
    let server = ModelServer::start(
        Script::new()
            .when(voice(
                task("area"),
                vec![
                    write("a.txt", "3"),
                    Reply::text("OLD."),
                    write("a.txt", "3 and 3"),
                    Reply::text("NEW."),
                    write("a.txt", "four"),
                    Reply::text("NEWER."),
                    Reply::text("It is four."),
                ],
            ))
            .when(voice(task("cover"), vec![Reply::text("Covered.")]))
            .when(voice(
                is_lead,
                vec![
                    plan(tasks),
                    send("area", "Make it two."),
                    send("area", "Make it four."),
                    send("area", "What is it?"),
                    query(json!({ "task_id": "area" })),
                    query(json!({})),
                    Reply::text("All is well."),
                ],
            )),
    );
    let program = Program::team(&server);
    let ran = ok(program.run(&["-p", "make it, please", "--approve", "never"]));
    assert_eq!(ran.out, "All is well.\n", "{ran:?}");
    let lead = of_lead(&server);
    let result = |index: usize| last_result(&lead[index]);
    let (two, four, words) = (result(2), result(3), result(4));
    let passed = "The task's checks after this correction:\n✓ a.txt: 7 bytes\n✓ grep -q 3 a.txt: exit 0";
    assert!(two.starts_with("NEW.") && two.contains(passed), "{two}");
    assert!(two.contains("[This answer cost $") && two.contains("; the task has cost $"), "{two}");
    assert!(two.contains("[To ask it more: `send_message` to `area`.]"), "{two}");
    let failed = "The task's checks after this correction:\n✓ a.txt: 4 bytes\n✗ grep -q 3 a.txt: exit 1";
    assert!(four.starts_with("NEWER.") && four.contains(failed), "{four}");
    // Words change no file: what the checks said still holds.
    assert!(!words.contains("checks") && words.contains("[This answer cost $"), "{words}");
    let (one, all) = (result(5), result(6));
    assert!(one.contains("area (leo): done, attempt 1 (a check failed, asked again, "), "{one}");
    assert!(one.contains("✓ a.txt: 4 bytes\n✗ grep -q 3 a.txt: exit 1"), "{one}");
    let first = "Result:\n  It is four.\n\n  (Before it was asked again it had said:)\n  NEWER.";
    assert!(one.contains(first) && one.contains("\n  OLD."), "{one}");
    assert!(all.contains("area (leo): done, attempt 1 (a check failed, asked again"), "{all}");
    assert!(all.contains("cover (leo): done, attempt 1 (unverified"), "{all}");
    // One line of a run without a chat tells a correction and its checks, and `plans show` reads the same record.
    let failed = "area: corrected; failed: ✓ a.txt, ✗ grep -q 3 a.txt; $";
    assert!(ran.err.contains("area: corrected; verified: ✓ a.txt, ✓ grep -q 3 a.txt; $"), "{}", ran.err);
    assert!(ran.err.contains(failed), "{}", ran.err);
    let shown = ok(program.run(&["plans", "show"]));
    assert!(
        shown.out.contains("result: failed")
            && shown.out.contains("correction: asked again; it answered and changed nothing; $"),
        "{}",
        shown.out
    );
    let strict = program.run(&["replay", "--strict", "--approve", "never"]);
    assert!(strict.code == 0 && strict.out.contains("would be the same"), "{strict:?}");
    ok(program.run(&["doctor", "--rebuild"]));
}

/// The program ends while the checks of a corrected task run: the next process runs them again, and the answer is told once.
#[test]
fn the_check_of_a_correction_goes_on_in_the_next_process() {
    for name in ["KILL", "TERM"] {
        let tasks = json!([{ "id": "area", "title": "area", "agent": "leo", "description": "Make area.", "owns": ["a.txt"],
            "verify": ["cat gate"] }]);
        let gate = Gate::new();
        let mends =
            vec![write("a.txt", "3"), Reply::text("OLD."), write("a.txt", "4"), Reply::text("NEW.").gate_before(&gate)];
        let server = ModelServer::start(
            Script::new()
                .when(voice(task("area"), mends))
                .when(voice(is_lead, vec![plan(tasks), send("area", "Make it 4."), Reply::text("It is 4.")])),
        );
        let program = Program::team(&server).file("gate", "open");
        let path = program.project().join("gate");
        let mut child = program.start(&["-p", "make it, please", "--approve", "never"]);
        gate.wait_reached();
        std::fs::remove_file(&path).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        gate.open();
        // It opens once the check reads it.
        let held = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        signal(&child, name);
        child.wait().unwrap();
        drop(held);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "open").unwrap();
        let ran = ok(program.run(&["-c", "-p", "", "--approve", "never"]));
        assert_eq!(ran.out, "It is 4.\n", "{name}: {ran:?}");
        let lead = of_lead(&server);
        let answer = last_result(lead.last().unwrap());
        assert!(
            answer.starts_with("NEW.") && answer.contains("after this correction:\n✓ cat gate"),
            "{name}: {answer}"
        );
        assert_eq!(lead.len(), 3, "{name}: the answer is told once");
        let asked = server.requests().iter().filter(|request| task("area")(request)).count();
        assert_eq!(asked, 4, "{name}: the correction is not made again");
    }
}

/// Leo's work was corrected after the plan. Ada, who is asked again then, reads the newest answer, diff and checks, once; and
/// that the task beside hers has ended.
#[test]
fn a_reviewer_that_is_asked_again_reads_the_newest_work() {
    let tasks = json!([
        { "id": "impl", "title": "impl", "agent": "leo", "description": "Make add.", "owns": ["a.txt"], "outputs": ["a.txt"],
          "verify": ["test -e seed.txt"] },
        { "id": "review", "title": "review", "agent": "ada", "description": "Review add.", "depends_on": ["impl"] },
        { "id": "other", "title": "other", "agent": "sam", "description": "Other work.", "depends_on": ["impl"] },
    ]);
    // The messages are sent in one answer, the reviewer's first: it waits for the work that it builds on.
    let both = Reply::new().tool("r", "send_message", json!({ "to": "review", "message": "Look again." })).tool(
        "i",
        "send_message",
        json!({ "to": "impl", "message": "Make it 3." }),
    );
    let gate = Gate::new();
    let server = ModelServer::start(
        Script::new()
            .when(voice(
                task("impl"),
                vec![
                    write("a.txt", "4").gate_before(&gate),
                    Reply::text("OLD."),
                    write("a.txt", "three"),
                    Reply::text("NEW."),
                ],
            ))
            .when(voice(
                task("review"),
                vec![Reply::text("It is 4."), Reply::text("Good."), Reply::text("Still good.")],
            ))
            .when(voice(task("other"), vec![Reply::text("Done.")]))
            .when(voice(is_lead, vec![plan(tasks), both, send("review", "Sure?"), Reply::text("All is well.")])),
    );
    let program = Program::team(&server).file("seed.txt", "seed");
    let git = |args: &[&str]| {
        assert!(Command::new("git").args(args).current_dir(program.project()).status().unwrap().success())
    };
    git(&["init", "-q"]);
    let child = program.start(&["-p", "make it, please", "--approve", "never"]);
    gate.wait_reached();
    // The check passes before Leo changes anything.
    assert!(soon(|| !events(&program, "task_marked").is_empty()));
    gate.open();
    let ran = ok(finish(child));
    assert_eq!(ran.out, "All is well.\n", "{ran:?}");
    let told = last_told(&server, "review");
    let news = "## What is new in what you build on\nThese results replace older ones that you were \
        given.\n\n### answer of `impl`\nNEW.";
    assert_eq!(told.matches(news).count(), 1, "{told}");
    let (first, rest) = told.split_once(news).unwrap();
    assert!(first.contains("✓ test -e seed.txt: exit 0") && first.contains("(also passed before the task)"), "{first}");
    assert!(rest.contains("+three") && rest.contains("(also passed before the task)"), "{rest}");
    let impl_again = last_result(&of_lead(&server)[2]);
    assert!(impl_again.contains("(also passed before the task)"), "{impl_again}");
    assert!(!rest.contains("At work beside you"), "{rest}");
    // A review of changes is not a design.
    let query = ok(program.run(&["plans", "show", "--json"]));
    assert!(query.out.contains("\"review\"") && !query.out.contains("design_doc"), "{}", query.out);
}

/// The user writes to the owner of a task of an ended plan: the checks run again, and user and lead hear what they say.
#[test]
fn a_correction_for_the_user_is_checked_and_told_to_the_lead() {
    let tasks = json!([{ "id": "area", "title": "area", "agent": "leo", "description": "Make area.", "owns": ["a.txt"],
        "verify": ["grep -q 3 a.txt"] }]);
    let server = ModelServer::start(
        Script::new()
            .when(voice(
                task("area"),
                vec![
                    write("a.txt", "3"),
                    Reply::text("OLD."),
                    write("a.txt", "four"),
                    Reply::text("NOT DONE: 4 is not 3."),
                ],
            ))
            .when(voice(is_lead, vec![plan(tasks), Reply::text("It is 3."), Reply::text("It is four.")])),
    );
    let program = Program::team(&server);
    ok(program.run(&["-p", "make it, please", "--approve", "never"]));
    ok(program.run(&["send", "area", "Make it four."]));
    let ran = ok(program.run(&["-c", "-p", "", "--approve", "never"]));
    let line = "area: the correction is not done; failed: ✗ grep -q 3 a.txt; $";
    assert!(ran.err.contains(line), "{ran:?}");
    assert!(ran.err.contains("leo: NOT DONE: 4 is not 3."), "{ran:?}");
    ok(program.run(&["-c", "-p", "What is it?", "--approve", "never"]));
    let lead = of_lead(&server);
    let told = lead.last().unwrap().user_texts().join("\n");
    let words =
        "(The user asked the owner of task `area` again. The task's checks after this correction:\n✗ grep -q 3 a.txt";
    assert!(told.contains(words), "{told}");
    let shown = ok(program.run(&["plans", "show", "--json"]));
    assert!(shown.out.contains("\"not_done\":true"), "{}", shown.out);
}

/// The changes of a correction in a worktree wait for the user: the checks do not run, and the answer and the record say so.
#[test]
fn a_correction_in_a_worktree_says_that_it_is_not_checked() {
    let tasks = json!([{ "id": "area", "title": "area", "agent": "leo", "description": "Make area.", "owns": ["a.txt"],
        "verify": ["grep -q 3 a.txt"], "isolation": "worktree" }]);
    let server = ModelServer::start(
        Script::new()
            .when(voice(
                task("area"),
                vec![write("a.txt", "3"), Reply::text("OLD."), write("a.txt", "four"), Reply::text("NEW.")],
            ))
            .when(voice(is_lead, vec![plan(tasks), send("area", "Make it four."), Reply::text("It waits.")])),
    );
    let program = Program::team(&server);
    let git = |args: &[&str]| {
        assert!(Command::new("git").args(args).current_dir(program.project()).status().unwrap().success())
    };
    git(&["init", "-q"]);
    let ran = program.run(&["-p", "make it, please", "--approve", "never"]);
    let line = "area: corrected; not checked: its changes are in a worktree; $";
    assert!(ran.err.contains(line), "{ran:?}");
    let shown = ok(program.run(&["plans", "show"]));
    assert!(
        shown.out.contains("result: unverified") && shown.out.contains("correction: corrected; not checked"),
        "{}",
        shown.out
    );
    let lead = of_lead(&server);
    let words =
        "The task's checks were not run after this correction: its changes are in a worktree and wait for the user.";
    let answer = last_result(lead.last().unwrap());
    assert!(answer.contains(words), "{ran:?} {answer}");
}
