//! Too much of anything ends a command, and the end says of what.

use max_team_sandbox::{EndReason, Limit};

use super::*;

/// It doubles ten times and no more: a wall that does not hold must not cost the machine anything.
const BOMB: &str = "b() { if [ $1 -gt 0 ]; then b $(($1 - 1)) | b $(($1 - 1)) & fi; sleep 60; }; b 10";

fn limited(world: &World, script: &str, limits: Limits) -> Spec {
    Spec { limits, ..world.spec(script) }
}

fn ended(world: &World, engine: Engine, script: &str, limits: Limits) -> CommandOutcome {
    let (over, output) = ran(engine, &limited(world, script, limits)).unwrap();
    assert!(over.ms < 40_000, "{engine:?} {script}: {over:?} {output}");
    over
}

#[test]
fn too_much_of_anything_ends_a_command() {
    let world = World::new();
    let usual = Limits { time: Duration::from_secs(60), ..Limits::default() };
    let few = Limits { processes: 64, ..usual };
    let small = Limits { memory: 128 << 20, ..usual };
    let table = [
        (BOMB, few, EndReason::Limit(Limit::Processes)),
        (
            "python3 -c 'import threading as t, time\nfor i in range(1000): t.Thread(target=time.sleep, args=(60,)).start()'",
            few,
            EndReason::Limit(Limit::Processes),
        ),
        ("python3 -c 'x = bytearray(1 << 30); import time; time.sleep(60)'", small, EndReason::Limit(Limit::Memory)),
        (
            "for i in 1 2 3 4; do python3 -c 'x = bytearray(48 << 20); import time; time.sleep(60)' & done; wait",
            small,
            EndReason::Limit(Limit::Memory),
        ),
        (
            "exec head -c 100000000 /dev/zero > big",
            Limits { file_bytes: 1 << 20, ..usual },
            EndReason::Limit(Limit::FileBytes),
        ),
        ("exec yes", Limits { output_bytes: 4 << 20, ..usual }, EndReason::Limit(Limit::Output)),
        ("while :; do :; done", Limits { cpu: Duration::from_secs(1), ..usual }, EndReason::Limit(Limit::Cpu)),
        ("exec sleep 60", Limits { time: Duration::from_millis(300), ..usual }, EndReason::TimedOut),
        (
            "trap '' TERM; sleep 60 & sleep 60; sleep 60",
            Limits { time: Duration::from_millis(300), ..usual },
            EndReason::TimedOut,
        ),
    ];
    for engine in engines() {
        for (script, limits, want) in table {
            let over = ended(&world, engine, script, limits);
            assert_eq!(over.ended, want, "{engine:?} {script}: {over:?}");
        }
        let script = "exec python3 -c 'fs = [open(\"/dev/null\") for i in range(1000)]'";
        let (over, output) = ran(engine, &limited(&world, script, Limits { open_files: 64, ..usual })).unwrap();
        assert!(over.code == Some(1) && output.contains("Too many open files"), "{engine:?} {over:?} {output}");
    }
    // What is kept in memory is bounded too.
    for engine in namespaced() {
        let script = "exec head -c 100000000 /dev/zero > /tmp/big";
        let (over, output) = ran(engine, &limited(&world, script, small)).unwrap();
        assert!(over.code == Some(1) && output.contains("No space left"), "{over:?} {output}");
    }
}

#[test]
fn a_cancelled_command_ends() {
    let world = World::new();
    for engine in engines() {
        let cancel = CancellationToken::new();
        let mut output = Vec::new();
        let over = run_by(engine, &world.spec("echo started; exec sleep 60"), false, &cancel, &mut |_, bytes| {
            output.extend_from_slice(bytes);
            cancel.cancel();
            true
        });
        let over = over.unwrap();
        assert_eq!((over.ended, over.signal), (EndReason::Cancelled, Some(15)), "{engine:?}");
        assert_eq!(output, b"started\n");
        let over = run_by(
            engine,
            &world.spec("echo started; exec sleep 60"),
            false,
            &CancellationToken::new(),
            &mut |_, _| false,
        );
        assert_eq!((over.unwrap().ended, world.own.exists()), (EndReason::Exited, true));
    }
}
