//! Secrets stay inside, whichever way out is taken; and an audit file that cannot be written stops the run.

use max_team_testkit::{Gate, ModelServer, Reply};
use serde_json::json;

use crate::program::{Program, finish};

/// One by shape, one by name, one in an address.
const SECRETS: [&str; 3] = ["sk-ant-0123456789abcdef0123", "correct-horse-battery", "s3cr3tpw99"];

fn holds_none(way: &str, text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{way} shows `{secret}`: {text}");
    }
}

#[test]
fn no_way_out_shows_a_secret() {
    let [key, password, login] = SECRETS;
    let server = ModelServer::start([
        Reply::text(format!("I use {key}.")).tool("t1", "read_file", json!({"path": "conf.txt"})),
        Reply::text(format!("It says DB_PASSWORD={password}.")),
    ]);
    let conf = format!("API_KEY={key}\nDB_PASSWORD={password}\nURL=postgres://me:{login}@db/x\nkey: usize\n");
    let program = Program::with(&server)
        .file("conf.txt", conf)
        .file("config.yaml", "audit:\n  output: audit.jsonl\n  level: debug\nproject:\n  root: .\n");
    let words = format!("look, the key is {key}");
    let ran = program.run(&["--config", "config.yaml", "-p", &words, "--output-format", "stream-json", "--verbose"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("key: usize"), "code stays code: {}", ran.out);
    // The answer itself is what the user asked for, and is printed as it is.
    let (answer, events): (Vec<&str>, Vec<&str>) =
        ran.out.lines().partition(|line| line.contains(r#""type":"result""#));
    holds_none("stream-json", &events.join("\n"));
    assert!(answer.concat().contains(password), "{answer:?}");
    for way in [
        &["events", "--all"][..],
        &["audit", "show"],
        &["audit", "show", "--json"],
        &["audit", "export"],
        &["trace"],
        &["sessions", "show"],
        &["export"],
        &["inbox"],
    ] {
        let ran = program.run(way);
        holds_none(&way.join(" "), &ran.out);
        holds_none(&way.join(" "), &ran.err);
    }
    holds_none("the audit file", &program.read("audit.jsonl"));
    assert!(program.read("audit.jsonl").lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
    assert_eq!(program.run(&["audit", "verify"]).code, 0);
}

#[test]
fn an_audit_file_that_cannot_be_written_stops_the_run_at_its_start() {
    let server = ModelServer::start([Reply::text("never asked")]);
    let program = Program::with(&server).file("config.yaml", "audit:\n  output: folder\nproject:\n  root: .\n");
    std::fs::create_dir(program.project().join("folder")).unwrap();
    let ran = program.run(&["--config", "config.yaml", "-p", "go"]);
    assert!(ran.code == 3 && ran.err.contains("the audit file `") && ran.err.contains("audit.output"), "{ran:?}");
    assert_eq!(server.count(), 0);
}

#[test]
fn an_audit_file_that_can_no_longer_be_written_stops_the_run() {
    let gate = Gate::new();
    let server = ModelServer::start([
        Reply::new().tool("t1", "read_file", json!({"path": "a.txt"})).gate_before(&gate),
        Reply::text("over"),
    ]);
    let program = Program::with(&server)
        .file("a.txt", "alpha")
        .file("config.yaml", "audit:\n  output: logs/audit.jsonl\n  level: debug\nproject:\n  root: .\n");
    let child = program.start(&["--config", "config.yaml", "-p", "go"]);
    gate.wait_reached();
    // A link in the place of the file, at once: nobody, root included, writes through that.
    let file = program.project().join("logs/audit.jsonl");
    std::os::unix::fs::symlink("/dev/null", file.with_extension("link")).unwrap();
    std::fs::rename(file.with_extension("link"), &file).unwrap();
    gate.open();
    let ran = finish(child);
    assert!(ran.code == 1 && ran.err.contains("the audit file `"), "{ran:?}");
}
