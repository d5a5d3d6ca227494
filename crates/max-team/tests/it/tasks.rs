//! The shared list of tasks, through the whole program: a lead and members who work it off, people who look and step in,
//! and processes that die in between.

use std::collections::BTreeMap;

use max_team_testkit::{Gate, ModelServer, Recorded, Reply, Script};
use serde_json::{Value, json};

use crate::program::{Program, Ran, finish, kill};

/// Every so many writes one run is killed.
const WRITES_PER_KILL: u32 = 41;

fn ok(ran: Ran) -> String {
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.out
}

/// A session in which nothing was done yet.
fn begun() -> Program {
    let server = ModelServer::start([Reply::text("hello")]);
    let program = Program::with(&server).variable("USER", "ada");
    assert_eq!(program.run(&["-p", "hi"]).code, 0);
    program
}

fn create(id: &str, subject: &str) -> (String, Value) {
    (id.to_owned(), json!({"subject": subject, "description": format!("All about {subject}.")}))
}

fn update(task: &str, status: &str) -> Value {
    json!({"taskId": task, "status": status})
}

/// A lead that writes three tasks down and lets two members do them; whatever was said before, everybody goes on from there.
fn answer(request: &Recorded) -> Option<Reply> {
    let member = |task: &str, results: usize| match results {
        0 => Reply::new().tool("m1", "TaskUpdate", json!({"taskId": task, "owner": "", "status": "in_progress"})),
        1 => Reply::new().tool("m2", "TaskUpdate", update(task, "completed")),
        2 => Reply::new().tool("m3", "TaskUpdate", update("3", "in_progress")),
        3 => Reply::new().tool("m4", "TaskUpdate", update("3", "completed")),
        _ => Reply::text("I have done what I could."),
    };
    let results = request.tool_results();
    if request.contains("Begin with number one") && !request.contains("You are Max") {
        return Some(member("1", results));
    }
    if request.contains("Begin with number two") && !request.contains("You are Max") {
        return Some(member("2", results));
    }
    Some(match results {
        0 => {
            let all = [create("t1", "one"), create("t2", "two"), create("t3", "three")];
            let created = all.into_iter().fold(Reply::new(), |reply, (id, input)| reply.tool(&id, "TaskCreate", input));
            created.tool("t4", "TaskUpdate", json!({"taskId": "3", "addBlockedBy": ["1", "2"]}))
        }
        4 => Reply::new()
            .tool("t5", "dispatch_task", json!({"agent": "leo", "description": "Begin with number one."}))
            .tool("t6", "dispatch_task", json!({"agent": "ada", "description": "Begin with number two."})),
        // Whoever came last found nothing in the way; if nobody did, the lead ends it.
        6 => Reply::new().tool("t7", "TaskUpdate", update("3", "completed")),
        _ => Reply::text("all done"),
    })
}

/// Nobody ever claims what somebody holds, and each claim is the next.
pub(crate) fn check_claims(program: &Program) {
    let mut held: BTreeMap<u64, (Option<String>, u64)> = BTreeMap::new();
    for entry in program.journal().iter().filter(|entry| entry["event"] == "item_moved") {
        let moved = &entry["payload"]["item_moved"];
        let (id, state) = (moved["id"].as_u64().unwrap(), &moved["state"]);
        let (holder, epoch) = held.entry(id).or_default();
        if moved["what"] == "claimed" {
            assert_eq!((holder.as_deref(), *epoch + 1), (None, state["epoch"].as_u64().unwrap()), "{entry}");
        }
        *holder = state["holder"].as_str().map(str::to_owned);
        *epoch = state["epoch"].as_u64().unwrap();
    }
    assert!(held.values().all(|(holder, _)| holder.is_none()), "{held:?}");
}

fn check_done(program: &Program) {
    let listed = program.run(&["tasks", "list", "--json"]).json();
    let line = |line: &Value| format!("{} {} {}", line["id"], line["subject"], line["status"]).replace('"', "");
    let lines: Vec<String> = listed.as_array().unwrap().iter().map(line).collect();
    assert_eq!(lines, ["1 one completed", "2 two completed", "3 three completed"]);
    check_claims(program);
    assert_eq!(program.run(&["audit", "verify"]).code, 0);
}

#[test]
fn a_lead_writes_down_and_members_do_it() {
    let server = ModelServer::start(Script::new().when(answer));
    let program = Program::team(&server);
    let ran = program.run(&["-p", "do it"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "all done\n"), "{ran:?}");
    check_done(&program);
    let listed = program.run(&["tasks", "list", "--json"]).json();
    let owners: Vec<&str> = listed.as_array().unwrap().iter().map(|line| line["owner"].as_str().unwrap()).collect();
    assert_eq!(owners[..2], ["leo", "ada"], "{listed:#}");
    // The rows are made again from the log, and are the same.
    program.run(&["doctor", "--rebuild"]);
    assert_eq!(program.run(&["tasks", "list", "--json"]).json(), listed);
}

/// From outside: the process dies at one of its writes, from the first to the last; nothing is added or claimed twice, and
/// nothing is lost. (Every commit by itself is swept in the runtime's tests.)
#[test]
fn killed_in_the_middle_the_list_is_whole() {
    for n in 1.. {
        let server = ModelServer::start(Script::new().when(answer));
        let program = Program::team(&server);
        let when = 3 + WRITES_PER_KILL * (n - 1);
        let inject = format!("inject=pwrite64:signal=SIGKILL:when={when}");
        let prefix = ["strace", "-f", "-o", "/dev/null", "-e", "trace=pwrite64", "-e", inject.as_str()];
        let survived = finish(program.prefixed(&prefix, &["-p", "do it"]).spawn().unwrap()).code == 0;
        if survived {
            assert!(n > 3, "strace hardly fired");
            return;
        }
        let ran = program.run(&["-c", "-p", ""]);
        // Killed before the words were acknowledged, there is nothing to go on with; the user says them again.
        let ran = if ran.code == 0 && ran.out == "all done\n" { ran } else { program.run(&["-p", "do it"]) };
        assert_eq!((ran.code, ran.out.as_str()), (0, "all done\n"), "write {when}: {ran:?}");
        check_done(&program);
    }
}

/// Killed while a member holds a task: it still does when the next process goes on.
#[test]
fn a_claim_outlives_its_process() {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::start(Script::new().when(move |request| {
        let reply = answer(request)?;
        let is_held = request.contains("Begin with number one") && request.tool_results() == 1;
        Some(if is_held && !request.contains("You are Max") { reply.gate_before(&held) } else { reply })
    }));
    let program = Program::team(&server);
    let mut child = program.start(&["-p", "do it"]);
    gate.wait_reached();
    let shown = ok(program.run(&["tasks", "show", "1"]));
    assert!(shown.contains("status: in_progress") && shown.contains("owner: leo"), "{shown}");
    kill(&mut child);
    gate.open();
    let listed = program.run(&["tasks", "show", "1", "--json"]).json();
    assert_eq!((&listed["status"], &listed["claims"]), (&json!("in_progress"), &json!(1)));
    let after = ModelServer::start(Script::new().when(answer));
    let program = program.variable("ANTHROPIC_BASE_URL", after.url());
    let ran = program.run(&["-c", "-p", ""]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "all done\n"), "{ran:?}");
    check_done(&program);
    assert_eq!(program.run(&["tasks", "show", "1", "--json"]).json()["claims"], 1, "held throughout");
}

#[test]
fn people_keep_the_list_from_any_terminal() {
    let program = begun();
    assert!(ok(program.run(&["tasks", "list"])).starts_with("there are no tasks"));
    assert_eq!(ok(program.run(&["tasks", "add", "Write it", "-d", "All of it."])), "#1 added: Write it\n");
    ok(program.run(&["tasks", "add", "Test it"]));
    ok(program.run(&["tasks", "add", "Nobody needs it"]));
    assert_eq!(
        ok(program.run(&["tasks", "update", "2", "--blocked-by", "1", "--owner", "leo"])),
        "#2 waits for #1\n#2 is reserved for leo\n"
    );
    ok(program.run(&["tasks", "update", "1", "--status", "in_progress"]));
    ok(program.run(&["tasks", "update", "3", "--status", "deleted"]));
    // A task that is meant for another can be ended in one line.
    ok(program.run(&["tasks", "add", "For somebody"]));
    ok(program.run(&["tasks", "update", "4", "--owner", "leo"]));
    assert_eq!(ok(program.run(&["tasks", "update", "4", "--status", "completed"])), "#4 is completed\n");
    ok(program.run(&["tasks", "update", "4", "--status", "deleted"]));
    insta::assert_snapshot!("tasks_list", ok(program.run(&["tasks", "list"])));
    insta::assert_snapshot!("tasks_show", ok(program.run(&["tasks", "show", "1"])));
    let refusals = [
        (["tasks", "update", "3", "--status", "pending"], "task `3` was deleted; `max-team tasks list` lists"),
        (["tasks", "update", "2", "--status", "completed"], "it waits for `1`"),
        (["tasks", "update", "1", "--blocked-by", "2"], "has been begun"),
        (["tasks", "update", "2", "--blocks", "1"], "has been begun"),
    ];
    for (words, want) in refusals {
        let ran = program.run(&words);
        assert!(ran.code == 1 && ran.err.contains(want), "{ran:?}");
    }
    let unknown = program.run(&["tasks", "update", "1", "--status", "done"]);
    assert!(unknown.code == 2 && unknown.err.contains("pending, in_progress, completed, deleted"), "{unknown:?}");
    let nowhere = Program::alone().run(&["tasks", "list"]);
    assert!(nowhere.code == 1 && nowhere.err.contains("there is no session in this folder yet"), "{nowhere:?}");
    check_claims_of_people(&program);
}

fn check_claims_of_people(program: &Program) {
    let listed = program.run(&["tasks", "list", "--json"]).json();
    assert_eq!((&listed[0]["owner"], &listed[1]["blockedBy"]), (&json!("ada"), &json!(["1"])));
}

#[test]
fn the_list_speaks_chinese() {
    let program = begun().variable("LANG", "zh_CN.UTF-8");
    assert!(ok(program.run(&["tasks", "list"])).starts_with("没有任务"));
    assert_eq!(ok(program.run(&["tasks", "add", "写测试"])), "已添加 #1：写测试\n");
    ok(program.run(&["tasks", "update", "1", "--owner", "leo"]));
    for (owner, words) in [("lea", "是指 `leo` 吗"), ("nosuch", "现有 ada、")] {
        let nobody = program.run(&["tasks", "update", "1", "--owner", owner]);
        assert!(nobody.code == 2 && nobody.err.contains(words), "{nobody:?}");
    }
    insta::assert_snapshot!("tasks_list_zh", ok(program.run(&["tasks", "list"])));
    let ran = program.run(&["tasks", "update", "7", "--status", "completed"]);
    assert!(ran.code == 1 && ran.err.contains("没有任务 `7`"), "{ran:?}");
}
