//! Bench `plan`: how long a plan of model calls takes, against the minimal client in the same run. Bench `plan_coders`: the
//! same for coders in a git repository, before and after whom the working tree is looked at.
//!
//! Ten layers of ten tasks, every task after all of the layer before, every answer 50 ms after its question. Both are
//! timed by the server, from the first task's request to the end of the last task's answer, so neither starting nor
//! the lead's report counts. What it never does is trust the shape: a run whose layers overlap stops the bench.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use max_team_testkit::{ModelServer, Recorded, Reply, Script};
use serde_json::{Value, json};

use crate::{Bench, children_cpu, median};

const LAYERS: usize = 10;
const WIDTH: usize = 10;
pub(crate) const DELAY: Duration = Duration::from_millis(50);
const RUNS: usize = 7;
/// How much longer than the minimal client we may take.
const BAR: f64 = 1.03;

/// The same for coders, against what the answers alone take.
const CODERS_BAR: f64 = 1.15;

const TEAM: &str = "\
agents:
  - name: max
    role: team_lead
    system_prompt: You lead the team and report what it did.
    tools: [submit_plan]
  - name: worker
    role: ROLE
    system_prompt: You do one task and answer in one word.
    tools: [read_file]
";

/// One run of either client, as the server saw it.
struct Run {
    makespan: f64,
    /// The longest that an answer left after its time.
    late: f64,
    /// From a layer's last answer to the next one's first request, and from there to its last: medians.
    turn: f64,
    spread: f64,
    /// The median size of a task's request.
    bytes: usize,
    cpu: f64,
}

/// A folder with the plan and the team in it; and those.
pub(crate) fn written(bench: &Bench, name: &str, role: &str) -> (PathBuf, PathBuf, PathBuf) {
    let folder = bench.scratch.path().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let (plan, team) = (folder.join("plan.yaml"), folder.join("agents.yaml"));
    std::fs::write(&plan, plan_file()).unwrap();
    std::fs::write(&team, TEAM.replace("ROLE", role)).unwrap();
    (folder, plan, team)
}

pub(crate) fn coders(bench: &mut Bench) {
    if !knows_run(bench) {
        return bench.skip("plan_coders", "the program has no command `run` with `--max-parallel` yet");
    }
    let (folder, plan, team) = written(bench, "plan_coders", "coder");
    let project = bench.project();
    let identity = ["-c", "user.name=bench", "-c", "user.email=bench@example.invalid"];
    for words in [&["init", "-q"][..], &["add", "."], &["commit", "-q", "-m", "first"]] {
        let ran = Command::new("git").args(identity).args(words).current_dir(&project).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
    }
    ours(bench, &folder, &plan, &team);
    let runs: Vec<Run> = (0..RUNS).map(|_| ours(bench, &folder, &plan, &team)).collect();
    // Other benches want a project without a repository.
    std::fs::remove_dir_all(project.join(".git")).unwrap();
    let of = |value: fn(&Run) -> f64| median(runs.iter().map(value));
    let (mine, ideal) = (of(|run| run.makespan), DELAY.as_secs_f64() * 1e3 * LAYERS as f64);
    let more = json!({
        "makespan_ms": tenth(mine), "ideal_ms": ideal, "turn_ms": of(|run| run.turn), "spread_ms": of(|run| run.spread),
        "cpu_ms": of(|run| run.cpu),
    });
    bench.report("plan_coders", mine / ideal, "x ideal", CODERS_BAR, None, more);
}

pub(crate) fn plan(bench: &mut Bench) {
    if !knows_run(bench) {
        return bench.skip("plan", "the program has no command `run` with `--max-parallel` yet");
    }
    let (folder, plan, team) = written(bench, "plan", "worker");
    // The first run makes the journal, and says how large a request the minimal client has to match.
    let bytes = ours(bench, &folder, &plan, &team).bytes;
    let (ours, floor): (Vec<Run>, Vec<Run>) =
        (0..RUNS).map(|_| (ours(bench, &folder, &plan, &team), floor(bench, bytes))).unzip();
    report(bench, &ours, &floor);
}

/// A subcommand that does not exist is taken for a prompt, so the exit code says nothing.
fn knows_run(bench: &Bench) -> bool {
    let help = Command::new(&bench.bin).args(["run", "--help"]).stdin(Stdio::null()).output().unwrap();
    help.status.success() && String::from_utf8_lossy(&help.stdout).contains("--max-parallel")
}

fn report(bench: &mut Bench, ours: &[Run], floor: &[Run]) {
    let of = |runs: &[Run], value: fn(&Run) -> f64| median(runs.iter().map(value));
    let all = |runs: &[Run]| runs.iter().map(|run| tenth(run.makespan)).collect::<Vec<_>>();
    let (mine, other) = (of(ours, |run| run.makespan), of(floor, |run| run.makespan));
    let ideal = DELAY.as_secs_f64() * 1e3 * LAYERS as f64;
    let more = json!({
        "makespan_ms": tenth(mine), "floor_ms": tenth(other), "ideal_ms": ideal, "floor_to_ideal": other / ideal,
        "tasks": LAYERS * WIDTH, "request_bytes": ours[0].bytes, "runs_ms": all(ours), "floor_runs_ms": all(floor),
        "turn_ms": of(ours, |run| run.turn), "floor_turn_ms": of(floor, |run| run.turn),
        "spread_ms": of(ours, |run| run.spread), "floor_spread_ms": of(floor, |run| run.spread),
        "server_late_ms_max": of(ours, |run| run.late), "floor_server_late_ms_max": of(floor, |run| run.late),
        "cpu_ms": of(ours, |run| run.cpu), "floor_cpu_ms": of(floor, |run| run.cpu),
    });
    bench.report("plan", mine / other, "x floor", BAR, None, more);
}

fn tenth(ms: f64) -> f64 {
    (ms * 10.0).round() / 10.0
}

fn ours(bench: &Bench, folder: &Path, plan: &Path, team: &Path) -> Run {
    measure(|url| {
        let mut command = bench.program(&folder.join("home"), url);
        command.arg("run").arg(plan).args(["--approve", "never", "--max-parallel", &WIDTH.to_string()]);
        command.arg("--agents").arg(team);
        command
    })
}

fn floor(bench: &Bench, bytes: usize) -> Run {
    measure(|url| {
        let mut command = Command::new(bench.example("floor"));
        command.args(["dag", "--url", url, "--bytes", &bytes.to_string()]);
        command.args(["--layers", &LAYERS.to_string(), "--width", &WIDTH.to_string()]).stdout(Stdio::null());
        command
    })
}

fn measure(start: impl Fn(&str) -> Command) -> Run {
    let script = Script::new()
        .on(is_task, Reply::text("done").label("task"))
        .on(|request| request.contains("is over:"), Reply::text("All done."))
        .delay(DELAY)
        .lean();
    let server = ModelServer::start(script);
    let cpu = children_cpu();
    let ended = start(&server.url()).stderr(Stdio::piped()).output().unwrap();
    let cpu = children_cpu() - cpu;
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{}: {said}, {:#?}", ended.status, server.problems());
    server.wait_answered(server.count());
    let tasks = task_calls(&server);
    assert_eq!(tasks.len(), LAYERS * WIDTH, "calls for tasks; {said} {:#?}", server.problems());
    Run { cpu, ..timed(&tasks) }
}

pub(crate) fn is_task(request: &Recorded) -> bool {
    request.last_user().lines().any(|line| line.starts_with("# Your task"))
}

/// The calls whose replies have the label `task`, in order of arrival.
fn task_calls(server: &ModelServer) -> Vec<Recorded> {
    let mut tasks = server.requests();
    tasks.retain(|request| request.label.as_deref() == Some("task"));
    tasks
}

/// Milliseconds from the first task's request to the end of the last task's answer. `others`: calls that are not for a task.
pub(crate) fn wait_for_tasks(server: &ModelServer, others: usize) -> f64 {
    server.wait_answered(others + LAYERS * WIDTH);
    let tasks = task_calls(server);
    assert_eq!(tasks.len(), LAYERS * WIDTH, "{:#?}", server.problems());
    timed(&tasks).makespan
}

/// The tasks as the lead's model proposes them.
pub(crate) fn proposed_tasks() -> Vec<Value> {
    let needs = |layer: usize| -> Vec<String> {
        (0..WIDTH).filter_map(|at| Some(format!("t{}-{at}", layer.checked_sub(1)?))).collect()
    };
    let task = |layer, at| {
        json!({
            "id": format!("t{layer}-{at}"), "title": format!("Part {at} of {layer}"), "agent": "worker",
            "description": format!("Say done for part {at} of {layer}"), "depends_on": needs(layer),
        })
    };
    (0..LAYERS).flat_map(|layer| (0..WIDTH).map(move |at| task(layer, at))).collect()
}

/// From a record of tasks in order of arrival.
fn timed(tasks: &[Recorded]) -> Run {
    let (sent, ended) = (|task: &Recorded| task.send_us.unwrap(), |task: &Recorded| task.end_us.unwrap());
    let ms = |us: u64| us as f64 / 1e3;
    let layers: Vec<&[Recorded]> = tasks.chunks(WIDTH).collect();
    let arrived = |layer: &[Recorded]| {
        layer.iter().map(|task| task.arrive_us).min().zip(layer.iter().map(|task| task.arrive_us).max())
    };
    let mut turns = Vec::new();
    for pair in layers.windows(2) {
        let (before, (after, _)) = (pair[0].iter().map(sent).max().unwrap(), arrived(pair[1]).unwrap());
        assert!(before <= after, "a task was started before all that it needs were answered");
        turns.push(ms(after - before));
    }
    let spreads = layers.iter().filter_map(|layer| arrived(layer)).map(|(first, last)| ms(last - first));
    let delay = u64::try_from(DELAY.as_micros()).unwrap();
    let last = tasks.iter().map(ended).max().unwrap();
    let late = tasks.iter().map(|task| sent(task) - task.arrive_us - delay).max().unwrap();
    let mut bytes: Vec<usize> = tasks.iter().map(|task| task.bytes).collect();
    bytes.sort_unstable();
    Run {
        makespan: ms(last - tasks[0].arrive_us),
        late: ms(late),
        turn: median(turns.into_iter()),
        spread: median(spreads),
        bytes: bytes[bytes.len() / 2],
        cpu: 0.0,
    }
}

fn plan_file() -> String {
    let mut text = String::from("goal: Run ten layers of ten small tasks\ntasks:\n");
    for layer in 0..LAYERS {
        let needs: Vec<String> = (0..WIDTH).filter_map(|at| Some(format!("t{}-{at}", layer.checked_sub(1)?))).collect();
        for at in 0..WIDTH {
            text += &format!("  - id: t{layer}-{at}\n    agent: worker\n    do: Say done for part {at} of {layer}\n");
            if !needs.is_empty() {
                text += &format!("    needs: [{}]\n", needs.join(", "));
            }
        }
    }
    text
}
