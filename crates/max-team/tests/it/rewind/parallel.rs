//! Members of a plan whose commands write into one tree at the same time: a rewind takes all of it back, and nothing else.

use std::fs;
use std::process::Child;

use max_team_testkit::{Gate, ModelServer, Recorded, Reply, Script};
use serde_json::json;

use super::{FREE, shell, tree};
use crate::program::{Program, finish, kill, soon};

const MEMBERS: usize = 6;
const FILES_EACH: usize = 8;
const AGENTS: &str = "agents:\n  - {name: max, role: team_lead, system_prompt: lead}\n  \
                      - {name: dev, role: coder, system_prompt: code, tools: [read_file, write_file, run_shell]}\n";
const RUN: [&str; 7] = ["run", "plan.yaml", "--yes", "--agents", "agents.yaml", "--max-parallel", "6"];

/// Each member owns a folder of eight files.
fn plan() -> String {
    let task = |member| {
        format!("  - {{id: t{member}, agent: dev, do: Write t{member}., owns: [\"d{member}/**\", \"old/{member}\"]}}\n")
    };
    format!("goal: Write\ntasks:\n{}", (0..MEMBERS).map(task).collect::<String>())
}

/// `sh write.sh MEMBER TEXT` writes all files of a member.
const WRITE: &str = "mkdir -p d$1; for n in $(seq 8); do echo $2 > d$1/$n; done\n";

/// The first version is there when the commands of the others begin; the second is written when all have begun.
const OVERLAP: &str = "sh write.sh $1 one; touch d$1/begun
until [ $(ls -d d*/begun d*/over 2>/dev/null | wc -l) -ge 6 ]; do sleep 0.01; done
sh write.sh $1 two; mv d$1/begun d$1/over\n";

/// When all have started, so that no scan before a command sees it, the first version is written; the command goes on until it is killed.
const ENDLESS: &str = "mkdir -p d$1; touch d$1/up
until [ $(ls -d d*/up | wc -l) -ge 6 ]; do sleep 0.01; done
sh write.sh $1 one; rm old/$1; touch d$1/begun; sleep 600\n";

/// Waits for a file.
const WAIT: &str = "until [ -e $1 ]; do sleep 0.01; done\n";

fn script(name: &str, member: usize) -> Reply {
    shell(&format!("sh {name}.sh {member}"))
}

fn write(member: usize, text: &str) -> Reply {
    shell(&format!("sh write.sh {member} {text}"))
}

fn member_of(request: &Recorded) -> Option<usize> {
    let first = request.user_texts().into_iter().next().unwrap_or_default();
    let title = first.lines().find(|line| line.starts_with("# Your task: "))?;
    (0..MEMBERS).find(|member| title.contains(&format!("t{member}")))
}

/// A member answers one call after the other.
fn members(calls: impl Fn(usize) -> Vec<Reply> + Send + 'static) -> ModelServer {
    ModelServer::start(Script::new().when(move |request| {
        let Some(member) = member_of(request) else {
            return Some(Reply::text("All is done."));
        };
        Some(calls(member).into_iter().nth(request.tool_results()).unwrap_or_else(|| Reply::text("Written.")))
    }))
}

fn project(server: &ModelServer) -> Program {
    let program = Program::team(server).file("plan.yaml", plan()).file("agents.yaml", AGENTS).file("d0/1", "zero\n");
    let scripts = [("write", WRITE), ("overlap", OVERLAP), ("endless", ENDLESS), ("wait", WAIT)];
    let program = scripts.iter().fold(program, |program, (name, text)| program.file(&format!("{name}.sh"), text));
    (0..MEMBERS).fold(program, |program, member| program.file(&format!("old/{member}"), "old\n"))
}

fn arguments() -> Vec<&'static str> {
    [&RUN[..], &FREE[..]].concat()
}

/// Waits until every member's command has written its first version.
fn wait_until_all_have_begun(program: &Program, running: &mut Child) {
    let has_begun = |member: usize| program.project().join(format!("d{member}/begun")).exists();
    while !(0..MEMBERS).all(has_begun) {
        assert!(running.try_wait().unwrap().is_none(), "the program has ended");
        std::thread::yield_now();
    }
}

#[test]
fn all_files_of_a_parallel_plan_are_restored() {
    let server = members(|member| {
        vec![script("overlap", member), shell(&format!("rm d{member}/over old/{member}")), write(member, "three")]
    });
    let program = project(&server);
    let before = tree(&program.project());
    let ran = program.run(&arguments());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(tree(&program.project()).len(), before.len() - 1 + MEMBERS * FILES_EACH - MEMBERS, "{ran:?}");
    let back = program.run(&["rewind", "--yes"]);
    assert_eq!((back.code, tree(&program.project())), (0, before), "{back:?}");
}

/// One member's file tool and another's command change the same file: both are undone.
#[test]
fn a_file_that_a_command_and_a_tool_changed_at_the_same_time_is_restored() {
    let gate = Gate::new();
    let held = gate.clone();
    let server = members(move |member| match member {
        0 => vec![shell("sh write.sh 0 one; sh wait.sh d1/ready")],
        1 => vec![
            Reply::new().tool("r", "read_file", json!({ "path": "d0/1" })).gate_before(&held),
            super::write(Reply::new(), "d0/1", "two\n"),
            super::write(Reply::new(), "d1/ready", ""),
        ],
        _ => Vec::new(),
    });
    let program = project(&server);
    let before = tree(&program.project());
    let running = program.start(&arguments());
    assert!(soon(|| program.project().join("d0/8").exists()));
    gate.open();
    let ran = finish(running);
    assert_eq!((ran.code, program.read("d0/1").as_str()), (0, "two\n"), "{ran:?}");
    let back = program.run(&["rewind", "--yes"]);
    assert_eq!((back.code, tree(&program.project())), (0, before), "{back:?}");
}

/// The commands die with the program. Changes that they made until then are undone; edits that the user makes before the plan
/// goes on come back, also where a member has overwritten them, and are named.
#[test]
fn all_files_of_a_killed_plan_are_restored_and_edits_of_the_user_stay() {
    for is_resumed in [true, false] {
        let server = members(|member| vec![script("endless", member), write(member, "two")]);
        let program = project(&server);
        let mut want = tree(&program.project());
        let mut running = program.start(&arguments());
        wait_until_all_have_begun(&program, &mut running);
        kill(&mut running);
        max_team_sandbox::wait_until_gone();
        assert!(!program.project().join("old/3").exists());
        for (path, text) in [("notes.txt", "mine\n"), ("d2/3", "mine\n"), ("plan.yaml", "goal: Mine\n")] {
            fs::write(program.project().join(path), text).unwrap();
            want.insert(path.into(), (text.into(), false));
        }
        if is_resumed {
            let ran = program.run(&["-c", "-p", "", FREE[0], FREE[1]]);
            assert_eq!((ran.code, program.read("d5/8").as_str()), (0, "two\n"), "{ran:?}");
        }
        let back = program.run(&["rewind", "--yes"]);
        assert_eq!((back.code, tree(&program.project())), (8, want), "{is_resumed}: {back:?}");
        for path in ["notes.txt", "d2/3", "plan.yaml"] {
            assert!(back.out.contains(&format!("{path} (changed after a command was killed")), "{back:?}");
        }
        assert!(!back.out.contains("did not finish"), "{back:?}");
    }
}
