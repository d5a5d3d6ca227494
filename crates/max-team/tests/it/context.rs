//! What works from any terminal, on the journal alone: answering, stopping, looking.

use std::process::Child;

use max_team_journal::{Journal, Options};
use max_team_testkit::{Gate, ModelServer, Reply, Script};
use serde_json::{Value, json};

use crate::chat::Terminal;
use crate::program::{Program, Ran, finish, kill, signal, soon};

/// Two tasks, the second of which needs a yes of its own.
const GATED: &str = "goal: Say hello\ntasks:\n  - {id: look, agent: ada, do: Look around.}\n  \
    - {id: speak, agent: ada, do: Speak up.}\ngates:\n  - {before: speak}\n";
/// One after the other, with something to prove.
const PLAN: &str = "goal: Say hello\ntasks:\n  - {id: design, agent: ada, title: Think first, do: Design it.}\n  \
    - {id: write, agent: leo, do: Write it., needs: [design], owns: [\"*.txt\"], outputs: [hello.txt]}\n";

/// Members are told apart by their tasks, the lead by the news it gets. Whoever looks around waits at the gate.
fn server(gate: &Gate) -> ModelServer {
    let gate = gate.clone();
    ModelServer::start(Script::new().when(move |request| {
        let write = || Reply::new().tool("t1", "write_file", json!({"path": "hello.txt", "content": "hello\n"}));
        Some(if request.contains("Write it.") {
            if request.tool_results() == 0 { write() } else { Reply::text("Written.") }
        } else if request.contains("Design it.") {
            Reply::text("Write hello into hello.txt.")
        } else if request.contains("Look around.") {
            Reply::text("Nothing here.").gate_before(&gate)
        } else if request.contains("Speak up.") {
            Reply::text("Hello.")
        } else {
            Reply::text("All of it is done.")
        })
    }))
}

/// A plan that waits for a person while nobody runs its session.
fn parked(server: &ModelServer) -> (Program, String, String) {
    let program = Program::team(server).file("plan.yaml", PLAN);
    let ran = program.run(&["run", "plan.yaml"]);
    assert_eq!(ran.code, 5, "{ran:?}");
    let asked = program.run(&["inbox", "--json"]).json();
    let text = |key: &str| asked[0][key].as_str().unwrap().to_owned();
    let (id, session) = (text("short"), text("session"));
    (program, id, session)
}

pub(crate) fn ok(ran: Ran) -> Ran {
    assert_eq!(ran.code, 0, "{ran:?}");
    ran
}

/// What people read is in their language; what programs read is always the same.
#[test]
fn the_context_speaks_chinese_too() {
    let server = server(&Gate::new());
    let (program, id, session) = parked(&server);
    let json = |program: &Program| {
        ["inbox", "ps", "plans list", "cost", "trace"].map(|command| {
            let words: Vec<&str> = command.split(' ').chain(["--json"]).collect();
            let mut value = ok(program.run(&words)).json();
            // Time goes on.
            value
                .as_array_mut()
                .into_iter()
                .flatten()
                .for_each(|row| drop(row.as_object_mut().unwrap().remove("elapsed_ms")));
            value
        })
    };
    let english = json(&program);
    let program = program.variable("LC_ALL", "zh_CN.UTF-8");
    assert_eq!(json(&program), english);
    let shows = |words: &[&str], wanted: &[&str]| {
        let ran = program.run(words);
        let said = format!("{}{}", ran.out, ran.err);
        assert!(wanted.iter().all(|wanted| said.contains(wanted)), "{words:?}: {said}");
    };
    shows(&["inbox"], &["是否执行此计划？", "2 个任务", "write (leo)，在 design 之后", "-m 原因"]);
    shows(&["inbox", &id], &["关键路径", "必须存在"]);
    shows(&["ps"], &["姓名", "未运行", "没有进程运行此会话"]);
    shows(&["plans", "list"], &["提出时间", "等待中: 您的批准"]);
    shows(&["plans", "show"], &["计划 pln_", "关键路径"]);
    shows(&["sessions", "list"], &[&session]);
    shows(&["trace"], &["会话", "计划"]);
    shows(&["cost"], &["没有花费"]);
    shows(&["doctor"], &["数据库完好", "带领", "条记录", "正常  位置：", "正常  日志库："]);
    shows(&["audit", "verify"], &["均完好"]);
    shows(&["approve", "nope"], &["没有待答复的问题 `nope`"]);
    shows(&["-r", "nope", "-p", "x"], &["没有会话 `nope`"]);
    shows(&["run", "none.yaml"], &["没有文件 `none.yaml`"]);
    shows(&["-p", ""], &["-p 需要提示"]);
    shows(&["-r", &session, "-p", ""], &["计划在等待人工批准", "关键路径"]);
    shows(&["deny", &id, "-m", "以后再说"], &["已拒绝", "已记下"]);
    shows(&["stop"], &["下次打开会话时计划结束"]);
    shows(&["-r", &session, "-p", ""], &["由 您（命令行） 停止"]);
    // As the settings say, whatever the locale.
    let program = program.file(".max-team/config.yaml", "ui: {language: en}\n");
    assert_eq!(ok(program.run(&["inbox"])).out, "nothing waits for you\n");
    let none = Program::alone().variable("LANG", "zh_CN.UTF-8").run(&["-p", "你好"]);
    assert!(none.code == 4 && none.err.contains("以下任选其一"), "{none:?}");
}

#[test]
fn an_empty_inbox_says_so() {
    let program = Program::alone();
    assert_eq!(ok(program.run(&["inbox"])).out, "nothing waits for you\n");
    assert_eq!(ok(program.run(&["inbox", "--json"])).out, "[]\n");
    let none = program.run(&["approve"]);
    assert!(none.code == 1 && none.err.contains("nothing waits"), "{none:?}");
    assert_eq!(program.run(&["stop"]).code, 1);
    assert_eq!(ok(program.run(&["cost"])).out, "nothing was spent\n");
    assert_eq!(ok(program.run(&["ps", "--json"])).out, "[]\n");
}

#[test]
fn a_parked_plan_is_listed_shown_and_approved_once() {
    let server = server(&Gate::new());
    let (program, id, session) = parked(&server);
    let listed = ok(program.run(&["inbox"])).out;
    assert!(listed.contains(&id) && listed.contains("may this plan run?"), "{listed}");
    assert!(listed.contains("2 tasks:") && listed.contains("write (leo) after design: Write it."), "{listed}");
    assert!(listed.contains("design (ada): Think first\n        │ Design it.\n"), "{listed}");
    assert!(listed.contains(&format!("max-team deny {id} -m WHY")), "{listed}");
    let shown = ok(program.run(&["inbox", &id])).out;
    assert!(shown.contains("critical path: design → write") && shown.contains("must exist: hello.txt"), "{shown}");
    let stands = ok(program.run(&["plans", "list"])).out;
    assert!(stands.contains("waiting: your approval") && stands.contains("0/2"), "{stands}");

    let yes = ok(program.run(&["approve", &id]));
    assert!(yes.out.contains("approved") && yes.err.contains(&format!("max-team -r {session}")), "{yes:?}");
    // What was answered is shown with how, and no way is offered that is not there any more.
    for words in [&["inbox"][..], &["inbox", &id]] {
        let shown = ok(program.run(words)).out;
        assert!(shown.contains("said `approved` already") && !shown.contains("max-team approve"), "{shown}");
    }
    let ways = ok(program.run(&["inbox", "--json"])).json()[0]["answer_with"].clone();
    assert_eq!(ways, json!([format!("max-team deny {id}")]));
    let late = program.run(&["approve", &id]);
    assert!(late.code == 5 && late.err.contains("`approved` by you (command line)"), "{late:?}");

    let ran = ok(program.run(&["-r", &session, "-p", ""]));
    assert_eq!((ran.out.as_str(), program.read("hello.txt").as_str()), ("All of it is done.\n", "hello\n"), "{ran:?}");
    let late = program.run(&["approve", &id]);
    assert!(late.code == 5 && late.err.contains("`approved` by you (command line)"), "{late:?}");
    assert_eq!(program.run(&["approve", "00000000"]).code, 1);
}

#[test]
fn a_plan_is_denied_with_a_reason() {
    let server = server(&Gate::new());
    let (program, id, session) = parked(&server);
    assert_eq!(program.run(&["approve", &id, "-m", "but"]).code, 2, "a yes to a plan takes no words");
    assert_eq!(program.run(&["approve", &id, "--retry"]).code, 2, "nothing has failed");
    // As long as nobody has read a yes, a no takes it back; not the other way round.
    ok(program.run(&["approve", &id]));
    assert!(ok(program.run(&["inbox"])).out.contains("`max-team deny` takes it back"));
    let no = ok(program.run(&["deny", "-m", "not on a Friday"]));
    assert!(no.out.contains("rejected"), "{no:?}");
    assert!(no.err.contains("taken back unread: `approved` by you (command line)"), "{no:?}");
    assert!(!ok(program.run(&["inbox"])).out.contains("takes it back"));
    let late = program.run(&["approve", &id]);
    assert!(late.code == 5 && late.err.contains("`rejected` by you (command line)"), "{late:?}");
    let ran = program.run(&["-r", &session, "-p", ""]);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(!program.project().join("hello.txt").exists());
    assert!(ok(program.run(&["plans", "list"])).out.contains("rejected"));
    let answers = program.journal();
    let answered: Vec<&Value> = answers.iter().filter(|entry| entry["event"] == "plan_answered").collect();
    assert!(answered.len() == 1 && answered[0].to_string().contains("not on a Friday"), "{answered:?}");
    assert!(ok(program.run(&["inbox"])).out.contains("nothing waits"));
}

/// Follows the log until something has happened, about these words.
pub(crate) fn wait_for(program: &Program, event: &str, words: &str) {
    let journal = Journal::open(program.home(), Options::default()).unwrap();
    let mut watch = journal.watch(0).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        loop {
            let entry = watch.next().await.unwrap();
            let payload = String::from_utf8(entry.payload.unwrap_or_default()).unwrap();
            if entry.event == event && payload.contains(words) {
                return;
            }
        }
    });
}

/// A program that must not outlive its test.
struct Running(Option<Child>);

impl Running {
    fn finish(mut self) -> Ran {
        finish(self.0.take().unwrap())
    }

    fn id(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(kill);
    }
}

/// A plan at work: `look` stands at the gate, `speak` waits for a yes.
fn at_work(gate: &Gate) -> (ModelServer, Program, Running) {
    let server = server(gate);
    let program = Program::team(&server).file("plan.yaml", GATED);
    let child = running(&program, "text");
    gate.wait_reached();
    (server, program, child)
}

fn running(program: &Program, format: &str) -> Running {
    let run = ["run", "plan.yaml", "--approve", "never", "--permission-mode", "acceptEdits", "--output-format", format];
    Running(Some(program.start(&run)))
}

/// Whoever reads lines has a last one, too, where the lead says nothing of a plan that was stopped.
#[test]
fn a_plan_that_is_stopped_from_elsewhere_has_a_result() {
    for format in ["json", "stream-json"] {
        let gate = Gate::new();
        let server = server(&gate);
        let program = Program::team(&server).file("plan.yaml", GATED);
        let child = running(&program, format);
        gate.wait_reached();
        ok(program.run(&["stop", "--all"]));
        gate.open();
        let ran = child.finish();
        let last: Value = serde_json::from_str(ran.out.trim_end().lines().last().unwrap_or("null")).unwrap();
        assert_eq!((ran.code, &last["type"], &last["is_error"]), (130, &json!("result"), &json!(true)), "{ran:?}");
        assert_eq!(last["terminal_reason"], "stopped", "{last}");
        let results = ran.out.lines().filter(|line| line.contains("\"type\":\"result\"")).count();
        assert_eq!(results, 1, "{format}: {ran:?}");
    }
}

/// A bound that is met has the code of bounds, and is nobody's stop.
#[test]
fn a_plan_whose_time_is_over_ends_at_a_limit() {
    let gate = Gate::new();
    let server = server(&gate);
    let plan = format!("{GATED}budget: {{wall: 1s}}\n");
    let program = Program::team(&server).file("plan.yaml", &plan);
    let child = running(&program, "text");
    let ran = child.finish();
    gate.open();
    assert_eq!(ran.code, 7, "{ran:?}");
}

#[test]
fn a_running_plan_is_answered_from_a_second_process() {
    let gate = Gate::new();
    let (_server, program, child) = at_work(&gate);
    let asked = ok(program.run(&["inbox", "--json"])).json();
    assert_eq!((&asked[0]["kind"], &asked[0]["task"]), (&json!("plan"), &json!("speak")), "{asked}");
    let people = ok(program.run(&["ps", "--json"])).json();
    let look = people.as_array().unwrap().iter().find(|row| row["task"] == "look").unwrap();
    assert_eq!((&look["name"], &look["state"]), (&json!("ada"), &json!("busy")), "{people}");
    assert_eq!(look["doing"]["calling"]["attempt"], 1, "{people}");
    assert_eq!(look["pid"], child.id(), "{people}");

    let yes = ok(program.run(&["approve", asked[0]["short"].as_str().unwrap()]));
    assert!(yes.out.contains("approved: may task `speak` start?") && yes.err.contains("done"), "{yes:?}");
    gate.open();
    let ran = child.finish();
    assert_eq!((ran.code, ran.out.as_str()), (0, "All of it is done.\n"), "{ran:?}");
}

#[test]
fn a_running_plan_is_stopped_from_a_second_process() {
    let gate = Gate::new();
    let (_server, program, child) = at_work(&gate);
    assert_eq!(program.run(&["stop", "--task", "sing"]).code, 2);
    let task = ok(program.run(&["stop", "--task", "speak"]));
    assert!(task.out.contains("speak: given up"), "{task:?}");
    assert!(ok(program.run(&["inbox"])).out.contains("nothing waits"), "a task that was stopped needs no yes");
    let all = ok(program.run(&["stop", "--all"]));
    assert!(all.out.contains("stopped: 0 of 2 tasks done, 0 verified, 0 failed, 2 given up"), "{all:?}");
    gate.open();
    assert_eq!(child.finish().code, 130);
    assert_eq!(program.run(&["stop"]).code, 1, "nothing is open");
}

/// Nothing failed: what was stopped says so, and of what was only a task nobody says that it was the plan.
#[test]
fn a_plan_whose_tasks_were_stopped_one_by_one_was_stopped() {
    let gate = Gate::new();
    let (_server, program, child) = at_work(&gate);
    ok(program.run(&["stop", "--task", "speak"]));
    ok(program.run(&["stop", "--task", "look"]));
    gate.open();
    let ran = child.finish();
    assert_eq!(ran.code, 130, "{ran:?}");
    assert!(ran.err.contains("look: stopped by") && ran.err.contains("plan: stopped: "), "{ran:?}");
    assert!(!ran.err.contains("plan: stopped by") && !ran.err.contains("plan: failed"), "{ran:?}");
    assert!(ok(program.run(&["plans", "list"])).out.contains("stopped"));
}

/// One task works while another waits for a yes: Ctrl-C pauses the plan, and both go on.
#[test]
fn ctrl_c_pauses_a_plan_that_asks_while_it_works() {
    let gate = Gate::new();
    let (_server, program, child) = at_work(&gate);
    signal(child.0.as_ref().unwrap(), "INT");
    let ran = child.finish();
    assert_eq!(ran.code, 130, "{ran:?}");
    assert!(ran.err.contains("the plan is paused: go on with"), "{ran:?}");
    let plans = ok(program.run(&["plans", "list"])).out;
    assert!(plans.contains("paused") && !plans.contains("stopp") && !plans.contains("running"), "{plans}");
    assert_eq!(ok(program.run(&["plans", "list", "--json"])).json()[0]["state"], "paused");
    assert_eq!(ok(program.run(&["plans", "show", "--json"])).json()["state"], "paused");
    assert!(ok(program.run(&["inbox"])).out.contains("may task `speak` start?"));
    gate.open();
    let on = program.run(&["-c", "-p", ""]);
    assert!(on.code == 5 && on.err.contains("look: done"), "{on:?}");
}

#[test]
fn a_session_is_stopped_and_named_by_the_end_of_its_id() {
    let gate = Gate::new();
    let server = ModelServer::start([Reply::text("hi").gate_before(&gate)]);
    let program = Program::with(&server);
    let child = Running(Some(program.start(&["-p", "hello"])));
    gate.wait_reached();
    let people = ok(program.run(&["ps", "--json"])).json();
    let max = &people[0];
    assert_eq!((&max["name"], &max["lead"], &max["state"]), (&json!("max"), &json!(true), &json!("busy")), "{people}");
    let session = max["session"].as_str().unwrap();
    let end = &session[session.len() - 8..];
    let ran = ok(program.run(&["stop", end]));
    assert_eq!(ran.out, format!("session {end} stopped\n"), "{ran:?}");
    gate.open();
    assert_eq!(child.finish().code, 130);
    let cost = ok(program.run(&["cost", "--session", end, "--json"])).json();
    assert_eq!(cost["total"]["calls"], 1, "what was stopped may have been paid: {cost}");
    assert_eq!(program.run(&["stop", end]).code, 1, "it does nothing");
    assert_eq!(program.run(&["cost", "--session", "nope"]).code, 1);
}

/// What somebody has asked for and a stop has left waiting ends the run, and is told when it goes on.
#[test]
fn a_prompt_that_is_stopped_before_it_is_begun_with_ends_the_run() {
    let (first, second) = (Gate::new(), Gate::new());
    let server = ModelServer::start([
        Reply::text("lost").gate_before(&first),
        Reply::text("again").gate_before(&second),
        Reply::text("two"),
        Reply::text("three"),
    ]);
    let program = Program::with(&server);
    let mut killed = program.start(&["-p", "hello"]);
    first.wait_reached();
    killed.kill().unwrap();
    killed.wait().unwrap();
    first.open();
    let child = Running(Some(program.start(&["-c", "-p", "the next thing"])));
    second.wait_reached();
    assert!(soon(|| program.journal().iter().any(|entry| entry["payload"].to_string().contains("the next thing"))));
    let session = ok(program.run(&["ps", "--json"])).json()[0]["session"].as_str().unwrap().to_owned();
    ok(program.run(&["stop", &session]));
    second.open();
    assert_eq!(child.finish().code, 130);
    assert_eq!(server.count(), 2);
    // It was a question of its own, and is answered before the lead is told to go on.
    let gone_on = ok(program.run(&["-c", "-p", ""]));
    assert_eq!((gone_on.out.as_str(), server.count()), ("three\n", 4), "{gone_on:?}");
    let told = server.requests().iter().map(|request| request.last_user()).collect::<Vec<_>>();
    assert_eq!(told.iter().filter(|words| words.contains("the next thing")).count(), 1, "{told:?}");
}

/// What waited for the next step of a turn that was stopped while nobody ran it is told once, with what begins the next.
#[test]
fn messages_waiting_at_a_stop_between_two_runs_are_told_once() {
    let first = Gate::new();
    let server = ModelServer::start(
        [Reply::text("lost").gate_before(&first)]
            .into_iter()
            .chain((0..4).map(|_| Reply::text("fine")))
            .collect::<Vec<_>>(),
    );
    let program = Program::with(&server);
    let mut killed = program.start(&["-p", "hello"]);
    first.wait_reached();
    let session = ok(program.run(&["ps", "--json"])).json()[0]["session"].as_str().unwrap().to_owned();
    ok(program.run(&["send", "max", "mind the gap"]));
    killed.kill().unwrap();
    killed.wait().unwrap();
    first.open();
    ok(program.run(&["stop", &session]));
    ok(program.run(&["-c", "-p", "and now?"]));
    let told = program.journal().into_iter().filter(|entry| {
        let is_told = entry["event"] == "turn_started" || entry["event"] == "steered";
        is_told && entry["payload"].to_string().contains("mind the gap")
    });
    assert_eq!(told.count(), 1);
}

/// Max rests and has mail: a stop holds it though no process runs the session, a second one has nothing to stop, and without words all of
/// it is read.
#[test]
fn mail_of_a_session_that_rests_is_stopped_and_read_on() {
    let server = ModelServer::start((0..4).map(|_| Reply::text("fine")).collect::<Vec<_>>());
    let program = Program::with(&server);
    ok(program.run(&["-p", "hello"]));
    ok(program.run(&["send", "max", "mind the gap"]));
    let session = ok(program.run(&["ps", "--json"])).json()[0]["session"].as_str().unwrap().to_owned();
    assert!(ok(program.run(&["stop", &session])).err.contains("it is noted"));
    assert_eq!(program.run(&["stop", &session]).code, 1, "it does nothing");
    let begun = || {
        let entries = program.journal().into_iter().filter(|entry| entry["event"] == "turn_started");
        entries.map(|entry| entry["payload"].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(begun().len(), 1);
    ok(program.run(&["-c", "-p", ""]));
    let [_, told] = begun().try_into().unwrap();
    assert!(told.contains("mind the gap") && told.contains("Read the messages that came"), "{told}");
}

#[test]
fn background_commands_are_shown_under_their_owner() {
    let gate = Gate::new();
    let input = json!({"command": "sleep 600", "background": true, "description": "a server"});
    let server =
        ModelServer::start([Reply::new().tool("t1", "run_shell", input), Reply::text("It runs.").gate_before(&gate)]);
    let program = Program::with(&server);
    let child = Running(Some(program.start(&["-p", "serve", "--solo", "--allowed-tools", "Bash(sleep:*)"])));
    gate.wait_reached();
    let people = ok(program.run(&["ps", "--json"])).json();
    let job = &people[0]["background"][0];
    assert_eq!(
        (&job["id"], &job["state"], &job["over"]),
        (&json!("sh-1"), &json!("running"), &Value::Null),
        "{people}"
    );
    assert_eq!(job["command"], "`sleep 600`: a server", "{people}");
    let table = ok(program.run(&["ps"])).out;
    let line = table.lines().nth(2).unwrap();
    assert!(line.contains("└ sh-1") && line.contains("running") && line.ends_with("`sleep 600`: a server"), "{table}");
    gate.open();
    assert_eq!(child.finish().code, 0);
    assert_eq!(ok(program.run(&["ps", "--json"])).out, "[]\n");
}

#[test]
fn a_session_that_does_not_run_is_stopped_and_names_the_next_command() {
    let gate = Gate::new();
    let (_server, program, child) = at_work(&gate);
    drop(child);
    let people = ok(program.run(&["ps", "--json"])).json();
    let rows = people.as_array().unwrap();
    assert!(!rows.is_empty() && rows.iter().all(|row| row["state"] == "stopped"), "{people}");
    let session = rows[0]["session"].as_str().unwrap();
    let why = format!("no process runs this session: max-team -r {session}");
    assert!(rows.iter().all(|row| row["reason"]["blocked"] == why.as_str()), "{people}");
    assert!(ok(program.run(&["ps"])).out.contains(&why));
    let noted = ok(program.run(&["stop"]));
    assert!(noted.err.contains("stopped: no task begins any more"), "{noted:?}");
    let plan = ok(program.run(&["plans", "list", "--json"])).json()[0].clone();
    assert_eq!((&plan["state"], &plan["open"]), (&json!("stopped"), &json!(true)), "{plan}");
    // An answer would count for nothing.
    assert_eq!(ok(program.run(&["inbox", "--json"])).out, "[]\n");
    let late = program.run(&["approve", plan["plan"].as_str().unwrap()]);
    assert!(late.code == 5 && late.out.is_empty() && late.err.contains("is being stopped"), "{late:?}");
    gate.open();
    assert_eq!(program.run(&["-r", session, "-p", ""]).code, 130);
}

#[test]
fn a_failure_is_decided_about() {
    let server = server(&Gate::new());
    let plan = "goal: Say hello\ntasks:\n  - {id: speak, agent: ada, do: Speak up., outputs: [never.txt], retry: 0}\n";
    let program = Program::team(&server).file("plan.yaml", plan);
    let child = Running(Some(program.start(&["run", "plan.yaml", "--approve", "never"])));
    wait_for(&program, "plan_asked", "never.txt");
    drop(child);
    let listed = ok(program.run(&["inbox"])).out;
    assert!(listed.contains("task `speak` failed") && listed.contains("--skip | --fixed | --give-up"), "{listed}");
    for words in [&["approve"][..], &["approve", "-m", "now"], &["approve", "--first-wave"]] {
        let unsaid = program.run(words);
        assert_eq!((unsaid.code, unsaid.out.as_str()), (2, ""), "{unsaid:?}");
        for choice in ["task `speak` failed", "--retry [--by MEMBER]", "--skip", "--fixed", "--give-up"] {
            assert!(unsaid.err.contains(choice), "{unsaid:?}");
        }
    }
    assert_eq!(ok(program.run(&["inbox"])).out.lines().count(), listed.lines().count(), "nothing was decided");
    let unknown = program.run(&["approve", "--retry", "--by", "bob"]);
    assert!(unknown.code == 2 && unknown.err.contains("ada, leo, ray, sam"), "{unknown:?}");
    let skipped = ok(program.run(&["approve", "--skip"]));
    assert!(skipped.out.contains("decided: task `speak` failed"), "{skipped:?}");
    let session = ok(program.run(&["sessions", "list", "--json"])).json()[0]["session"].as_str().unwrap().to_owned();
    program.run(&["-r", &session, "-p", ""]);
    let plan = ok(program.run(&["plans", "show", "--json"])).json();
    assert_eq!(plan["tasks"][0]["status"], "skipped", "{plan}");
    let trace = ok(program.run(&["trace"])).out;
    assert!(trace.contains("decided  [you (command line)]"), "{trace}");
}

#[test]
fn a_finished_run_can_be_looked_at() {
    let server = server(&Gate::new());
    let program = Program::team(&server).file("plan.yaml", PLAN);
    ok(program.run(&["run", "plan.yaml", "--approve", "never", "--permission-mode", "acceptEdits"]));

    let plan = ok(program.run(&["plans", "show", "--json"])).json();
    let write = &plan["tasks"][1];
    assert_eq!(
        (&write["id"], &write["agent_name"], &write["status"]),
        (&json!("write"), &json!("leo"), &json!("done"))
    );
    assert_eq!(
        (&write["depends_on"], &write["retry_count"], &write["max_retries"]),
        (&json!(["design"]), &json!(0), &json!(2))
    );
    assert_eq!((&write["result"]["success"], &write["result"]["output"]), (&json!(true), &json!("Written.")));
    assert_eq!(write["artifacts"][0]["type"], "text", "what it builds on: {write}");
    for key in ["created_at", "updated_at", "started_at", "finished_at"] {
        assert!(write[key].as_str().unwrap().ends_with('Z'), "{key}: {write}");
    }
    assert!(ok(program.run(&["plans", "show"])).out.contains("done: 2 of 2 tasks done"));
    assert!(ok(program.run(&["plans", "show", "--mermaid"])).out.contains("flowchart"));
    let again = ok(program.run(&["plans", "show", "--yaml"])).out;
    std::fs::write(program.project().join("again.yaml"), &again).unwrap();
    ok(program.run(&["run", "again.yaml", "--dry-run"]));

    let cost = ok(program.run(&["cost", "--json"])).json();
    let calls = |name: &str| {
        let rows = cost["rows"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap()["calls"].as_u64().unwrap()
    };
    assert_eq!((calls("ada"), calls("leo"), calls("max")), (1, 2, 1), "{cost}");
    assert_eq!((&cost["total"]["calls"], &cost["total"]["input_tokens"]), (&json!(4), &json!(400)), "{cost}");
    let session = ok(program.run(&["sessions", "list", "--json"])).json()[0]["session"].as_str().unwrap().to_owned();
    for by in ["task", "model", "day", "session"] {
        let text = ok(program.run(&["cost", "--by", by, "--since", "1d"])).out;
        assert!(text.starts_with(&by.to_uppercase()) && text.contains("total"), "{text}");
        assert!(by != "session" || (text.contains(&session[session.len() - 8..]) && !text.contains('…')), "{text}");
    }
    assert_eq!(ok(program.run(&["cost", "--since", "0m"])).out, "nothing was spent\n");

    let trace = ok(program.run(&["trace"])).out;
    for words in [
        "plan pln_",
        "task design",
        "try attempt 1 by leo",
        "model claude",
        "tool write_file hello.txt",
        "[rule: `--approve never`]",
        "[rule: the approved plan]",
    ] {
        assert!(trace.contains(words), "`{words}`: {trace}");
    }
    assert_eq!(ok(program.run(&["trace", "--limit", "3"])).out.lines().count(), 4);
    let tree = ok(program.run(&["trace", "--json"])).json();
    assert_eq!((&tree["kind"], &tree["usage"]["input"]), (&json!("session"), &json!(400)), "{tree}");
    let gone = ok(program.run(&["ps", "--all", "--json"])).json();
    let leo = gone.as_array().unwrap().iter().find(|row| row["name"] == "leo").unwrap();
    assert_eq!(
        (&leo["state"], &leo["reason"], &leo["task"]),
        (&json!("stopped"), &json!("done"), &json!("write")),
        "{gone}"
    );
    assert_eq!(ok(program.run(&["ps", "--json"])).out, "[]\n");
}

#[test]
fn a_question_in_a_chat_is_answered_from_another_terminal() {
    let gate = Gate::new();
    gate.open();
    let server = ModelServer::start(Script::new().when(move |request| {
        let system = request.body["system"].to_string();
        Some(match (system.contains("You are Leo"), request.tool_results()) {
            (true, 0) => Reply::new().tool("w1", "write_file", json!({"path": "a.txt", "content": "one\ntwo\n"})),
            (true, _) => Reply::text("Written."),
            (false, 0) => {
                Reply::new().tool("d1", "dispatch_task", json!({"agent": "leo", "description": "Write a.txt"}))
            }
            (false, _) => Reply::text("Leo wrote it.").gate_before(&gate),
        })
    }));
    let program = Program::team(&server);
    let mut chat = Terminal::open(&program, &[]);
    chat.wait("or give a task");
    chat.keys(&["have a.txt written", "Enter"]);
    wait_for(&program, "question_asked", "write_file");
    let asked = ok(program.run(&["inbox", "--json"])).json();
    assert_eq!(
        (&asked[0]["who"], &asked[0]["tool"], &asked[0]["target"]),
        (&json!("leo"), &json!("write_file"), &json!("a.txt"))
    );
    assert_eq!((&asked[0]["lines_added"], &asked[0]["lines_removed"]), (&json!(2), &json!(0)), "{asked}");
    let id = asked[0]["short"].as_str().unwrap();
    let shown = ok(program.run(&["inbox", id])).out;
    assert!(shown.contains("+two"), "{shown}");
    let people = ok(program.run(&["ps"])).out;
    assert!(people.contains("waiting for you"), "{people}");
    let yes = ok(program.run(&["approve", id]));
    assert!(yes.out.contains("yes: write_file: a.txt") && yes.err.contains("done"), "{yes:?}");
    chat.wait("Leo wrote it.");
    assert_eq!(program.read("a.txt"), "one\ntwo\n");
}

/// A question of a chat that is gone, and its id.
fn left_asking(server: &ModelServer) -> (Program, String) {
    let program = Program::with(server).file("../other/a.txt", "x");
    let mut chat = Terminal::open(&program, &[]);
    chat.wait("or give a task");
    chat.keys(&["write", "Enter"]);
    chat.wait("yes once");
    chat.kill();
    let asked = ok(program.run(&["inbox", "--json"])).json();
    let id = asked[0]["short"].as_str().unwrap().to_owned();
    (program, id)
}

/// The rule goes to the project that is asked about, not to where the answer is given.
#[test]
fn a_yes_for_the_repository_is_remembered_in_its_own() {
    let server = ModelServer::start([Reply::new().tool("t1", "write_file", json!({"path": "b.txt", "content": "x"}))]);
    let (program, id) = left_asking(&server);
    let other = program.project().with_file_name("other");
    let mut command = program.command(&["approve", &id, "--always", "--for", "repository"]);
    ok(finish(command.current_dir(&other).spawn().unwrap()));
    let settings: Value = serde_json::from_str(&program.read(".max-team/settings.local.json")).unwrap();
    assert_eq!(settings["permissions"]["allow"].as_array().map(Vec::len), Some(1), "{settings}");
    assert!(!other.join(".max-team").exists());
    let trusted: Value = serde_json::from_slice(&std::fs::read(program.home().join("trusted.json")).unwrap()).unwrap();
    let project = program.project().canonicalize().unwrap();
    assert_eq!(trusted[project.to_str().unwrap()], settings["permissions"]["allow"], "{trusted}");
}

/// What a yes for longer allows is said before it is given, and when it is, whoever runs the session; a no takes it back.
#[test]
fn a_lasting_yes_to_a_session_that_does_not_run_names_its_rule() {
    let write = Reply::new().tool("t1", "write_file", json!({"path": "b.txt", "content": "x"}));
    let server = ModelServer::start([write, Reply::text("Then not.")]);
    let (program, id) = left_asking(&server);
    let shown = ok(program.run(&["inbox", &id])).out;
    assert!(shown.contains(&format!("max-team approve {id} --always   allows for this session: Edit")), "{shown}");
    let yes = ok(program.run(&["approve", &id, "--always"]));
    assert!(yes.out.contains("allowed from now on, for this session: Edit"), "{yes:?}");
    let no = ok(program.run(&["deny", &id, "-m", "after all not"]));
    assert!(no.err.contains("taken back unread: `yes` by you (command line)"), "{no:?}");
    assert!(!no.err.contains("its rule "), "{no:?}");
    let ran = program.run(&["-c", "-p", ""]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Then not.\n"), "{ran:?}");
    assert!(!program.project().join("b.txt").exists());
    assert!(server.requests()[1].contains("after all not"));
}

/// What is said along with a yes is told to whoever asked, with what came of it.
#[test]
fn words_along_with_a_yes_are_told() {
    let write = Reply::new().tool("t1", "write_file", json!({"path": "b.txt", "content": "x"}));
    let server = ModelServer::start([write, Reply::text("With tabs, then.")]);
    let (program, id) = left_asking(&server);
    ok(program.run(&["approve", &id, "-m", "the next one with tabs"]));
    ok(program.run(&["-c", "-p", ""]));
    assert_eq!(program.read("b.txt"), "x");
    let request = server.requests()[1].body.to_string();
    assert!(request.contains("\"created `b.txt` (1 line, 1 byte)\""), "the result is as it was: {request}");
    assert!(request.contains("\"[The user said yes to `write_file`. They say: the next one with tabs]\""), "{request}");
}

/// A no that takes a yes for the repository back names the rule that is left there, as long as it is.
#[test]
fn a_yes_for_the_repository_that_is_taken_back_leaves_its_rule_by_name() {
    for is_taken_out in [false, true] {
        let write = Reply::new().tool("t1", "write_file", json!({"path": "b.txt", "content": "x"}));
        let server = ModelServer::start([write]);
        let (program, id) = left_asking(&server);
        ok(program.run(&["approve", &id, "--always", "--for", "repository"]));
        let file = program.project().canonicalize().unwrap().join(".max-team/settings.local.json");
        let settings: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let rule = settings["permissions"]["allow"][0].as_str().unwrap();
        if is_taken_out {
            std::fs::write(&file, "{}").unwrap();
        }
        let no = ok(program.run(&["deny", &id, "-m", "after all not"]));
        assert!(no.err.contains("taken back unread: `yes` by you (command line)"), "{no:?}");
        let named = no.err.contains(&format!("its rule {rule} stays in `{}`", file.display()));
        assert_eq!(named, !is_taken_out, "{no:?}");
    }
}

/// Whoever is too late has allowed nothing.
#[test]
fn a_yes_that_comes_too_late_is_not_remembered() {
    let server = ModelServer::start([Reply::new().tool("t1", "write_file", json!({"path": "b.txt", "content": "x"}))]);
    let (program, id) = left_asking(&server);
    ok(program.run(&["deny", &id, "-m", "no"]));
    let late = program.run(&["approve", &id, "--always", "--for", "repository"]);
    assert!(late.code == 5 && late.err.contains("you (command line)"), "{late:?}");
    assert!(!program.project().join(".max-team").exists() && !program.home().join("trusted.json").exists());
}

#[test]
fn the_audit_file_tells_of_members_plans_and_messages() {
    let server = server(&Gate::new());
    let config = "audit:\n  enabled: true\n  output: logs/audit.jsonl\n  level: debug\n";
    let program = Program::team(&server).file("plan.yaml", PLAN).file(".max-team/config.yaml", config);
    ok(program.run(&["run", "plan.yaml", "--approve", "never", "--permission-mode", "acceptEdits"]));
    let text = program.read("logs/audit.jsonl");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| -> Vec<&Value> { lines.iter().filter(|line| line["type"] == kind).collect() };
    assert!(lines.iter().all(|line| line["ts"].as_str().unwrap().ends_with('Z') && line["agent"].is_string()));
    let tool = of("tool_exec")[0];
    assert_eq!(
        (&tool["agent"], &tool["data"]["tool"], &tool["data"]["success"]),
        (&json!("leo"), &json!("write_file"), &json!(true))
    );
    assert!(tool["data"]["duration"].as_str().unwrap().ends_with("ms"), "{tool}");
    let steps: Vec<(&str, &str)> = of("task_update")
        .iter()
        .filter_map(|line| Some((line["data"]["task"].as_str()?, line["data"]["status"].as_str()?)))
        .collect();
    for step in [("design", "dispatched"), ("design", "done"), ("write", "checking"), ("write", "done")] {
        assert!(steps.contains(&step), "{step:?}: {steps:?}");
    }
    assert!(of("task_update").iter().all(|line| line["data"]["plan"].as_str().unwrap().starts_with("pln_")), "{text}");
    let answered = of("approval").into_iter().find(|line| line["agent"] == "plan").unwrap();
    assert_eq!((&answered["data"]["where"], &answered["data"]["what"]), (&json!("rule"), &json!("approved")));
    assert_eq!(of("llm_call").len(), 4, "{text}");
    assert_eq!(of("msg_sent")[0]["data"]["kind"], "plan_approval_request", "{text}");
}
