//! What is kept: told when it is found again, copied, compared, forgotten, and opened by later versions.

use std::fs;
use std::path::Path;

use max_team_journal::{Append, Commit, Journal, Options, Projection};
use max_team_runtime::{Sessions, compare_rows, project_entry};
use max_team_testkit::{Gate, ModelServer, Reply, Script};
use serde_json::{Value, json};

use crate::program::{Program, Ran, finish, kill, signal};

/// Rows of lists, changed behind the log's back.
fn damage(program: &Program, projections: Vec<Projection>) {
    let journal = Journal::open(program.home(), Options::default()).unwrap();
    journal.commit_blocking(Commit { projections, ..Commit::default() }).unwrap();
    // What is read from the file next must be in it, not in the log beside it.
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(journal.close()).unwrap();
}

fn sessions(program: &Program) -> Vec<String> {
    let rows = program.run(&["sessions", "list", "--json"]).json();
    rows.as_array().unwrap().iter().map(|row| row["session"].as_str().unwrap().to_owned()).collect()
}

fn holds(program: &Program) -> Ran {
    let ran = program.run(&["audit", "verify"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    ran
}

/// A command was under way when the program was killed: nobody knows whether it happened, and somebody must look.
#[test]
fn open_work_is_told_once_and_how_to_look_at_it() {
    let gate = Gate::new();
    let command = json!({"command": "touch begun && sleep 600"});
    let server = ModelServer::start([
        Reply::new().tool("t1", "run_shell", command),
        Reply::text("I looked.").gate_before(&gate),
    ]);
    let program = Program::with(&server);
    let mut child = program.start(&["-p", "do it", "--permission-mode", "bypassPermissions"]);
    while !program.project().join("begun").exists() {
        assert!(child.try_wait().unwrap().is_none(), "{:?}", finish(child));
        std::thread::yield_now();
    }
    kill(&mut child);
    gate.open();
    let ran = program.run(&["-c", "-p", "", "--output-format", "stream-json", "--verbose"]);
    let said = ran.lines().into_iter().find(|line| line["subtype"] == "recovered").unwrap();
    let counts = ["agents", "tasks", "mail", "approvals", "unknown"].map(|name| said["data"][name].as_u64().unwrap());
    assert_eq!(counts, [1, 0, 0, 0, 1], "{ran:?}");
    let session = &sessions(&program)[0];
    let line = ran.err.lines().find(|line| line.contains("going on where it was left")).unwrap();
    assert!(line.contains("1 agent, 1 call with unknown outcome"), "{line}");
    assert!(line.contains(&format!("max-team trace {session}")), "{line}");
    assert!(program.run(&["trace", session]).out.contains("unknown"));
    // There is nothing open any more, and nothing is told.
    let again = program.run(&["-c", "-p", ""]);
    assert!(again.code == 0 && !again.err.contains("going on"), "{again:?}");
    holds(&program);
}

#[test]
fn a_damaged_row_is_named_and_made_again() {
    let server = ModelServer::start([Reply::text("one"), Reply::text("two")]);
    let program = Program::with(&server);
    program.run(&["-p", "first"]);
    holds(&program);
    let session = sessions(&program).remove(0);
    let (table, key) = ("session_asked".into(), session.clone());
    let forged = Projection::Put { table, key, value: b"\"forged\"".to_vec(), sort_ms: 1 };
    let gone = Projection::Delete { table: "session".into(), key: session.clone() };
    damage(&program, vec![forged, gone]);
    let found = program.run(&["audit", "verify"]);
    assert!(found.code == 1 && found.err.contains("doctor --rebuild"), "{found:?}");
    let json = program.run(&["audit", "verify", "--json"]).json();
    let rows = json["rows"].as_array().unwrap();
    let row = |table: &str, how: &str| json!({ "table": table, "key": session, "how": how });
    assert_eq!(rows, &[row("session", "missing"), row("session_asked", "differs")]);
    let rebuilt = program.run(&["doctor", "--rebuild"]);
    assert_eq!(rebuilt.code, 0, "{rebuilt:?}");
    for words in [
        format!("row `{session}` of `session` is missing"),
        format!("row `{session}` of `session_asked` does not say what the log says"),
    ] {
        assert!(rebuilt.out.contains(&words), "{rebuilt:?}");
    }
    holds(&program);
    assert!(program.run(&["doctor", "--rebuild"]).out.contains("every row matches the log"));
    assert_eq!(program.run(&["-c", "-p", "second"]).out, "two\n");
}

/// Rows are not made again from a log that says something else than was written.
#[test]
fn nothing_is_made_again_from_a_damaged_log() {
    let server = ModelServer::start([Reply::text("the answer is marmalade")]);
    let program = Program::with(&server);
    program.run(&["-p", "first"]);
    damage(&program, vec![Projection::Delete { table: "session".into(), key: sessions(&program).remove(0) }]);
    let path = program.home().join("journal.db");
    let whole = fs::read(&path).unwrap();
    let mut bytes = whole.clone();
    let places: Vec<usize> =
        bytes.windows(9).enumerate().filter(|(_, it)| *it == b"marmalade").map(|it| it.0).collect();
    assert!(!places.is_empty());
    places.iter().for_each(|at| bytes[at + 8] = b'a');
    fs::write(&path, bytes).unwrap();
    let refused = program.run(&["doctor", "--rebuild"]);
    assert!(refused.code == 1 && refused.out.contains("max-team restore FILE"), "{refused:?}");
    assert!(!refused.out.contains("rebuilt lists and mailboxes"), "{refused:?}");
    assert_eq!(sessions(&program).len(), 0, "what there was is as it was");
    // With the log as it was written they are.
    fs::write(&path, whole).unwrap();
    let rebuilt = program.run(&["doctor", "--rebuild"]);
    assert!(rebuilt.code == 0 && sessions(&program).len() == 1, "{rebuilt:?}");
}

/// Eight sessions with an answer each; then a page of the file is lost, the one that `find` says. And what there was.
pub(crate) fn with_a_lost_page(find: impl Fn(&[u8]) -> usize) -> (Program, Vec<Value>) {
    let replies: Vec<Reply> = (0..8).map(|number| Reply::text(format!("answer {number} ").repeat(200))).collect();
    let server = ModelServer::start(replies);
    let program = Program::with(&server);
    for number in 0..8 {
        assert_eq!(program.run(&["-p", &format!("question {number}")]).code, 0);
    }
    let whole = program.journal();
    let path = program.home().join("journal.db");
    let mut bytes = fs::read(&path).unwrap();
    let at = find(&bytes) / 4_096 * 4_096;
    bytes[at..at + 4_096].fill(0xff);
    fs::write(&path, bytes).unwrap();
    (program, whole)
}

/// What comes before the damage and behind it is still there to be read, and the user is told what to do.
#[test]
fn a_damaged_file_is_found_and_the_rest_of_it_read() {
    let last = |bytes: &[u8]| bytes.windows(9).rposition(|words| words == b"answer 7 ").unwrap();
    let (program, whole) = with_a_lost_page(last);
    let found = program.run(&["audit", "verify"]);
    assert!(found.code == 1 && found.err.contains("max-team restore FILE"), "{found:?}");
    let read = program.run(&["export"]);
    let lines = read.lines();
    let gap = lines.iter().position(|line| line["unread"].is_object()).unwrap();
    assert!(gap > 20 && gap < whole.len(), "{gap} of {}", whole.len());
    assert_eq!(lines[..gap], whole[..gap]);
    let behind = &lines[gap + 1..];
    assert_eq!(behind, &whole[whole.len() - behind.len()..], "what lies behind is read, too");
    assert_eq!(read.code, 1, "{}", read.err);
}

#[test]
fn a_backup_is_made_while_the_team_works_and_put_back_when_it_does_not() {
    let gate = Gate::new();
    let replies = [Reply::text("one"), Reply::text("two").gate_before(&gate), Reply::text("three")];
    let server = ModelServer::start(replies);
    let program = Program::with(&server);
    program.run(&["-p", "first"]);
    let first = sessions(&program);
    let running = program.start(&["-p", "second"]);
    gate.wait_reached();
    let made = program.run(&["backup", "copy.db"]);
    assert!(made.code == 0 && made.out.contains("copy.db"), "{made:?}");
    let again = program.run(&["backup", "copy.db"]);
    assert!(again.code == 1 && again.err.contains("already there"), "{again:?}");
    let refused = program.run(&["restore", "copy.db", "--yes"]);
    assert!(refused.code == 1 && refused.err.contains(&format!("process {}", running.id())), "{refused:?}");
    gate.open();
    assert_eq!(finish(running).out, "two\n");
    program.run(&["-p", "third"]);
    assert_eq!(sessions(&program).len(), 3);
    let unasked = program.run(&["restore", "copy.db"]);
    assert!(unasked.code == 2 && unasked.err.contains("--yes"), "{unasked:?}");
    assert!(
        unasked.out.contains("The journal (3 sessions, ") && unasked.out.contains("copy.db` (2 sessions, "),
        "{unasked:?}"
    );
    assert_eq!(sessions(&program).len(), 3);
    let restored = program.run(&["restore", "copy.db", "--yes"]);
    assert!(restored.code == 0 && restored.out.contains("journal-before-"), "{restored:?}");
    assert!(sessions(&program).contains(&first[0]) && sessions(&program).len() == 2, "{restored:?}");
    holds(&program);
    // What was there is kept, and can be put back as well.
    let kept = fs::read_dir(program.home()).unwrap().map(|file| file.unwrap().path());
    let kept = kept.into_iter().find(|path| path.to_string_lossy().contains("journal-before-")).unwrap();
    assert_eq!(program.run(&["restore", kept.to_str().unwrap(), "--yes"]).code, 0);
    assert_eq!(sessions(&program).len(), 3);
    fs::write(program.project().join("broken.db"), "nothing").unwrap();
    let broken = program.run(&["restore", "broken.db", "--yes"]);
    assert!(broken.code == 1 && broken.err.contains("nothing was changed"), "{broken:?}");
    let without = program.run(&["backup"]);
    assert!(without.code == 0 && without.out.contains("home/journal-"), "{without:?}");
    // Where nothing is lost nobody is asked.
    fs::remove_file(program.home().join("journal.db")).unwrap();
    let anew = program.run(&["restore", "copy.db"]);
    assert!(anew.code == 0 && sessions(&program).len() == 2, "{anew:?}");
}

#[test]
fn a_forgotten_session_is_gone_and_the_chain_holds() {
    let gate = Gate::new();
    let server = ModelServer::start([
        Reply::text("the answer is marmalade"),
        Reply::text("beside"),
        Reply::text("running").gate_before(&gate),
        Reply::text("more"),
    ]);
    let program = Program::with(&server);
    program.run(&["-p", "my secret is marmalade"]);
    let secret = sessions(&program).remove(0);
    program.run(&["-p", "something else"]);
    let beside = sessions(&program).remove(0);
    let dry = program.run(&["sessions", "forget", &secret, "--dry-run"]);
    assert!(dry.code == 0 && dry.out.contains("1 session would be forgotten"), "{dry:?}");
    let unasked = program.run(&["sessions", "forget", &secret]);
    assert!(unasked.code == 2 && unasked.err.contains("--yes"), "{unasked:?}");
    let running = program.start(&["-r", &secret, "-p", "go on"]);
    gate.wait_reached();
    let refused = program.run(&["sessions", "forget", &secret, "--yes"]);
    assert!(refused.code == 1 && refused.err.contains(&format!("process {}", running.id())), "{refused:?}");
    gate.open();
    finish(running);
    let entries = program.journal().len();
    let files = program.home().join("files").join(&secret);
    // What cannot be removed is removed first: the session is still there to try it again.
    fs::create_dir_all(files.parent().unwrap()).unwrap();
    fs::write(&files, "in the way").unwrap();
    let stuck = program.run(&["sessions", "forget", &secret, "--yes"]);
    assert!(stuck.code == 1 && stuck.err.contains("nothing was forgotten"), "{stuck:?}");
    assert!(sessions(&program).contains(&secret));
    fs::remove_file(&files).unwrap();
    fs::create_dir_all(&files).unwrap();
    fs::write(files.join("note.txt"), "marmalade").unwrap();
    let forgotten = program.run(&["sessions", "forget", &secret, "--yes"]);
    assert!(forgotten.code == 0 && forgotten.out.contains("1 session forgotten"), "{forgotten:?}");
    let asked = program.run(&["audit", "show", "--session", &secret]);
    assert!(asked.code == 1 && asked.err.contains(&format!("session `{secret}` was forgotten at ")), "{asked:?}");
    assert!(asked.err.contains("at `sessions forget` (entry "), "{asked:?}");
    for command in [&["replay", &secret][..], &["fork", &secret, "-p"], &["compare", &secret, &beside]] {
        let asked = program.run(command);
        assert!(asked.code == 1 && asked.err.contains(&format!("session `{secret}` was forgotten at ")), "{asked:?}");
        assert!(asked.err.contains("`max-team audit show` still lists its entries"), "{asked:?}");
    }
    let unknown = program.run(&["replay", "ses_0000"]);
    assert!(unknown.code == 1 && unknown.err.contains("neither a file nor a session"), "{unknown:?}");
    let unknown = program.run(&["audit", "show", "--session", "ses_0000"]);
    assert!(unknown.code == 1 && !unknown.err.contains("was forgotten"), "{unknown:?}");
    assert_eq!(sessions(&program), std::slice::from_ref(&beside));
    let checked = holds(&program);
    assert!(!checked.out.contains(" 0 erased"), "{checked:?}");
    assert!(!files.exists(), "what it kept beside the journal is gone, too");
    // Every entry still stands there, without words; a tombstone and seals have come.
    assert!(program.journal().len() > entries);
    for file in ["journal.db", "journal.db-wal"] {
        let bytes = fs::read(program.home().join(file)).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&bytes).contains("marmalade"), "{file}");
    }
    let gone = program.run(&["-r", &secret, "-p", "x"]);
    assert!(gone.code == 1 && gone.err.contains("sessions list"), "{gone:?}");
    // The other one is whole, and the last one here.
    assert!(program.run(&["sessions", "show", &beside]).out.contains("something else"));
    assert_eq!(program.run(&["-c", "-p", "and"]).out, "more\n");
    let rebuilt = program.run(&["doctor", "--rebuild"]);
    assert!(rebuilt.out.contains("every row matches the log"), "{rebuilt:?}");
}

/// What is kept elsewhere because of a session goes with it; what others have left in the same places stays.
#[test]
fn a_forgotten_session_takes_experts_answers_and_messages_with_it_and_names_its_forks() {
    let server = ModelServer::start(Script::new().when(|request| {
        let (first, last) = (request.user_texts().first().cloned().unwrap_or_default(), request.last_user());
        let handed: Option<Value> = serde_json::from_str(&first).ok();
        Some(if let Some(port) = handed.as_ref().and_then(|handed| handed["args"]["port"].as_str()) {
            Reply::text(format!("---RESULT---\n{{\"gauge\": \"gauge of {port}\"}}\n---TEXT---\nHigh."))
        } else if first == "Look around." {
            Reply::text(if last.contains("tell me more") { "a cellar of plums" } else { "A house." })
        } else if request.tool_results() == 0 && ["Hamburg", "Bremen"].contains(&&*last) {
            let look = json!({ "description": "look", "prompt": "Look around.", "type": "explore" });
            let call = json!({ "agent": "tides", "arguments": { "port": last } });
            Reply::new().tool("t1", "task", call).tool("a1", "agent", look)
        } else {
            Reply::text("Told.")
        })
    }));
    let tides = "---\nname: tides\ntype: sub\ndescription: Knows the tides\ncache:\n  ttl: 7200\n  keys: [port]\n\
                 tools: []\n---\nSay how high the water is.\n";
    let program = Program::team(&server).file(".max-team/agents/tides.md", tides);
    let ok = |words: &[&str]| {
        let ran = program.run(words);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran
    };
    ok(&["-p", "Hamburg"]);
    let first = sessions(&program).remove(0);
    ok(&["send", "explore", "tell me more"]);
    ok(&["-c", "-p", ""]);
    ok(&["-p", "Bremen"]);
    ok(&["fork", &first, "and now?", "-p", "--here"]);
    let fork = sessions(&program).into_iter().find(|id| *id != first && *id != sessions(&program)[1]).unwrap();
    let envelopes = || ok(&["mail", "list", "--session", &first, "--json"]).out;
    assert!(envelopes().contains("a cellar of plums"), "{}", envelopes());
    let ports = || {
        let kept = ok(&["cache", "list", "--json"]).json();
        kept.as_array().unwrap().iter().map(|kept| kept["raw"]["port"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ports(), ["Bremen", "Hamburg"]);
    let dry = ok(&["sessions", "forget", &first, "--dry-run"]);
    assert!(dry.out.contains("forks of these sessions stay") && dry.out.contains(&fork), "{dry:?}");
    let forgotten = ok(&["sessions", "forget", &first, "--yes"]);
    assert!(forgotten.out.contains(&fork), "{forgotten:?}");
    assert_eq!(ports(), ["Bremen"]);
    for file in ["journal.db", "journal.db-wal"] {
        let bytes = fs::read(program.home().join(file)).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        for gone in ["a cellar of plums", "gauge of Hamburg"] {
            assert!(!text.contains(gone), "`{gone}` in {file}");
        }
    }
    holds(&program);
    let rebuilt = ok(&["doctor", "--rebuild"]);
    assert!(rebuilt.out.contains("every row matches the log"), "{rebuilt:?}");
    assert!(ok(&["sessions", "show", &fork]).out.contains("and now?"), "a fork is a session of its own");
}

/// Opens a session in which nobody says anything, with something that happens in it later.
fn open_quietly(journal: &Journal, number: usize, at_ms: i64, then_ms: i64) -> String {
    open_old(journal, number, None, (at_ms, then_ms))
}

/// Opens a session with something that its lead is told, if anything, and something that happens in it later.
fn open_old(journal: &Journal, number: usize, told: Option<&str>, (at_ms, then_ms): (i64, i64)) -> String {
    let (session, lead) = (format!("ses_{number:032}"), format!("agt_{number:032}"));
    let by = json!({ "door": "cli", "user": "ann", "role": "owner" });
    let opened = json!({ "session_opened": { "session": session, "lead": lead, "cwd": "/", "by": by } });
    let append = |stream: String, event: &'static str, payload: &Value| Append {
        stream,
        event: event.into(),
        version: 1,
        payload: serde_json::to_vec(payload).unwrap(),
        actor: "user/ann".to_owned(),
        cause: None,
    };
    let own = format!("session/cli:{session}");
    let first = append(own.clone(), "session_opened", &opened);
    let said =
        |text: &str| json!({ "said": { "envelope": format!("env_{number:032}"), "text": text, "by": by, "cwd": "/" } });
    let told = told.map(|text| append(own, "said", &said(text)));
    let later = append(format!("agent/{lead}"), "quiet", &json!({ "of": number }));
    for (at_ms, append) in [(at_ms, Some(first)), (at_ms, told), (then_ms, Some(later))] {
        let appends = append.into_iter().collect();
        journal.commit_blocking(Commit { at_ms, appends, ..Commit::default() }).unwrap();
    }
    session
}

/// Somebody opened it and said nothing: it is as old as what last happened in it.
#[test]
fn a_session_without_words_becomes_old_too() {
    let program = Program::with(&ModelServer::start([]));
    fs::create_dir_all(program.home()).unwrap();
    let journal = Journal::open(program.home(), Options::default()).unwrap();
    let now_ms = i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
    let (old, busy) = (open_quietly(&journal, 1, 1_000, 2_000), open_quietly(&journal, 2, 1_000, now_ms));
    // Nor is one old in which others than the lead are spoken to.
    let spoken = open_old(&journal, 3, Some("hi"), (1_000, now_ms));
    journal.rebuild(project_entry).unwrap();
    drop(journal);
    let dry = program.run(&["sessions", "forget", "--older-than", "90d", "--dry-run"]);
    let is_kept = |session: &str| !dry.out.contains(session);
    assert!(dry.out.contains(&old) && is_kept(&busy) && is_kept(&spoken), "{dry:?}");
    assert!(dry.out.contains("1 session would"), "{dry:?}");
    assert_eq!(program.run(&["sessions", "forget", "--older-than", "90d", "--yes"]).code, 0);
    holds(&program);
    assert!(program.run(&["sessions", "forget", "--older-than", "90d"]).out.contains("nothing to forget"));
}

/// Whoever stops it in the middle has sessions that are forgotten and sessions that are whole, and none between.
#[test]
fn forgetting_can_be_stopped_between_two_sessions() {
    const SESSIONS: usize = 100;
    let program = Program::with(&ModelServer::start([]));
    fs::create_dir_all(program.home()).unwrap();
    let journal = Journal::open(program.home(), Options::default()).unwrap();
    (1..=SESSIONS).for_each(|number| drop(open_quietly(&journal, number, 1_000, 2_000)));
    journal.rebuild(project_entry).unwrap();
    let mut forgetting = program.start(&["sessions", "forget", "--older-than", "30d", "--yes"]);
    while !journal.living().unwrap().iter().any(|worker| worker.what.starts_with("forgetting sessions")) {
        assert!(forgetting.try_wait().unwrap().is_none(), "{:?}", finish(forgetting));
        std::thread::yield_now();
    }
    signal(&forgetting, "TERM");
    let ran = finish(forgetting);
    let left = program.run(&["sessions", "forget", "--older-than", "30d", "--dry-run"]).out;
    let left = left.lines().filter(|line| line.starts_with("ses_")).count();
    assert!(ran.code == 143 && ran.out.contains(&format!("{left} more remain")), "{left} {ran:?}");
    assert!(ran.out.contains(&format!("{} session", SESSIONS - left)), "{left} {ran:?}");
    let is_whole = |entry: &Value| !entry["payload"].is_null();
    let entries = program.journal();
    let whole = |kind: &str| entries.iter().filter(|entry| entry["event"] == kind && is_whole(entry)).count();
    assert_eq!((whole("session_opened"), whole("quiet")), (left, left));
    holds(&program);
}

#[test]
fn sessions_beyond_the_retention_are_forgotten_automatically() {
    let gate = Gate::new();
    let server =
        ModelServer::start([Reply::text("new"), Reply::text("stopped").gate_before(&gate), Reply::text("newer")]);
    let program = Program::with(&server).file(".max-team/config.yaml", "journal:\n  keep_days: 30\n");
    fs::create_dir_all(program.home()).unwrap();
    let journal = Journal::open(program.home(), Options::default()).unwrap();
    let old = open_old(&journal, 1, Some("first"), (1_000, 2_000));
    journal.rebuild(project_entry).unwrap();
    drop(journal);
    // A project cannot decide about the user's sessions.
    let ran = program.run(&["-p", "second"]);
    assert!(ran.err.contains("may not decide how long") && sessions(&program).contains(&old), "{ran:?}");
    let older = program.run(&["sessions", "forget", "--older-than", "90d", "--dry-run"]);
    assert!(older.out.contains(&old) && older.out.contains("1 session would"), "{older:?}");
    fs::write(program.home().join("config.yaml"), "journal:\n  keep_days: 30\n").unwrap();
    // Whoever stops the program wants it to end.
    let running = program.start(&["-p", "stop this"]);
    gate.wait_reached();
    signal(&running, "TERM");
    let ran = finish(running);
    gate.open();
    assert!(ran.code == 143 && sessions(&program).contains(&old), "{ran:?}");
    let ran = program.run(&["-p", "third"]);
    assert!(ran.code == 0 && ran.err.contains("1 session forgotten"), "{ran:?}");
    assert!(!sessions(&program).contains(&old) && sessions(&program).len() == 3);
    holds(&program);
}

#[test]
fn evidence_says_who_allowed_what_and_where_that_is_written() {
    let server = ModelServer::start([
        Reply::new().tool("t1", "write_file", json!({"path": "src/a.txt", "content": "<b>one</b>\n"})),
        Reply::text("done"),
    ]);
    let settings = "{\n  \"permissions\": {\n    \"allow\": [\n      \"Edit(src/**)\"\n    ]\n  }\n}\n";
    let program = Program::with(&server);
    fs::create_dir_all(program.home().parent().unwrap().join(".claude")).unwrap();
    fs::write(program.home().parent().unwrap().join(".claude/settings.json"), settings).unwrap();
    let ran = program.run(&["-p", "write <script>alert(1)</script>"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let shown = program.run(&["audit", "show", "--kind", "tool_intent"]);
    assert!(shown.out.contains("`allow: Edit(src/**)` (") && shown.out.contains("settings.json:4)"), "{shown:?}");
    let one = |words: &[&str]| program.run(&[&["audit", "show", "--json"], words].concat()).lines();
    let session = sessions(&program).remove(0);
    let all = one(&[]);
    assert_eq!(one(&["--session", &session]).len(), all.iter().filter(|row| row["event"] != "sealed").count());
    assert!(one(&["--agent", "max"]).iter().all(|row| row["agent"].as_str().unwrap().starts_with("max-")));
    assert_eq!(one(&["--until", "2001-01-01"]).len() + one(&["--agent", "nobody"]).len(), 0);
    assert_eq!(one(&["--since", "1h"]).len(), all.len());
    assert_eq!(one(&["--task", "none"]).len(), 0);
    let page = program.run(&["audit", "export", "--html", "page.html"]);
    assert_eq!(page.code, 0, "{page:?}");
    let page = program.read("page.html");
    assert!(page.contains("&lt;script&gt;alert(1)") && !page.contains("<script"), "{page}");
    assert!(page.contains("<th>Allowed</th>") && page.contains("Edit(src/**)"), "{page}");
    let again = program.run(&["audit", "export", "--html", "page.html"]);
    assert!(again.code == 1 && again.err.contains("already there"), "{again:?}");
    // One mechanism: everything, one session, a wish.
    let everything = program.run(&["export"]).out;
    assert_eq!(everything, program.run(&["audit", "export"]).out);
    let mine: Vec<Value> = program.run(&["export", &session]).lines();
    assert!(mine.len() > 5 && mine.iter().all(|entry| entry["stream"] != "seal"));
    assert_eq!(program.run(&["export", "--kind", "tool_intent"]).lines().len(), 1);
    assert_eq!(program.run(&["export", "--jsonl", "all.jsonl"]).code, 0);
    assert_eq!(program.read("all.jsonl"), everything);
}

/// The words of a rule are the user's: whatever they say, it is a rule that allowed the call.
#[test]
fn evidence_takes_no_rule_for_a_mode_a_plan_or_an_answer() {
    for words in ["permission mode", "the approved plan", "allowed by the user", "the rest of the line"] {
        let command = format!("touch '{words}'");
        let run = Reply::new().tool("t1", "run_shell", json!({ "command": command }));
        let server = ModelServer::start([run, Reply::text("done")]);
        let program = Program::with(&server);
        let rules = [format!("Bash({command})"), format!("Edit(./{words})")];
        let ran = program.run(&["-p", "go", "--allowed-tools", &rules[0], "--allowed-tools", &rules[1]]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let shown = program.run(&["audit", "show", "--kind", "tool_intent", "--json"]).lines();
        let allowed = shown.iter().find_map(|row| row.get("allowed")).unwrap();
        let each = allowed["all"].as_array().cloned().unwrap_or_else(|| vec![allowed.clone()]);
        assert!(each.iter().any(|one| one["rule"].as_str().is_some_and(|rule| rule.contains(words))), "{allowed}");
        assert!(each.iter().all(|one| one.get("mode").is_none() && one.get("before").is_none()), "{allowed}");
    }
}

/// Nothing that happened is without an answer to who allowed it: a built-in rule by its name, a mode by who has set it and where.
#[test]
fn evidence_names_built_in_rules_and_the_source_of_the_mode() {
    let read = Reply::new().tool("t1", "read_file", json!({"path": "a.txt"}));
    let write = |path: &str| Reply::new().tool("t2", "write_file", json!({"path": path, "content": "x\n"}));
    let server = ModelServer::start([read, write("b.txt"), Reply::text("done"), write("c.txt"), Reply::text("again")]);
    let program = Program::with(&server).file("a.txt", "a\n");
    assert_eq!(program.run(&["-p", "go", "--permission-mode", "acceptEdits"]).code, 0);
    assert_eq!(program.run(&["-c", "-p", "on", "--permission-mode", "bypassPermissions"]).code, 0);
    let shown = program.run(&["audit", "show", "--kind", "tool_intent,configured", "--json"]).lines();
    let configured: Vec<&Value> = shown.iter().filter(|row| row["event"] == "configured").collect();
    let allowed: Vec<&Value> = shown.iter().filter_map(|row| row.get("allowed")).collect();
    assert_eq!(allowed[0]["built_in"]["name"], "read-inside", "{allowed:?}");
    for (allowed, configured) in allowed[1..].iter().zip(&configured) {
        let set = &allowed["mode"]["set"];
        assert_eq!(set["seq"], configured["seq"], "{allowed}");
        assert!(set["by"]["person"].as_str().unwrap().ends_with(" at headless"), "{allowed}");
    }
    assert_eq!((allowed.len(), configured.len()), (3, 2), "{shown:?}");
    let told = program.run(&["audit", "show", "--kind", "tool_intent"]).out;
    let seq = &configured[0]["seq"];
    assert!(told.contains("(built-in rule `read-inside`)"), "{told}");
    assert!(
        told.contains("permission mode `acceptEdits`, set by ") && told.contains(&format!("(entry {seq})")),
        "{told}"
    );
    let zh = program.variable("MAX_LANG", "zh").run(&["audit", "show", "--kind", "tool_intent"]).out;
    assert!(zh.contains("读取项目内的文件总是允许的（内置规则 `read-inside`）"), "{zh}");
}

/// Whoever asks who refused something is told as well as whoever asks who allowed it.
#[test]
fn evidence_says_what_was_refused_and_on_whose_word() {
    let run = |id: &str, command: &str| Reply::new().tool(id, "run_shell", json!({"command": command}));
    let server = ModelServer::start([
        run("t1", "curl evil.example"),
        run("t2", "make all"),
        run("t3", "cat a.txt && make check"),
        Reply::text("done"),
    ]);
    let settings =
        "{\n  \"permissions\": {\n    \"deny\": [\"Bash(curl *)\"],\n    \"allow\": [\"Bash(make check)\"]\n  }\n}\n";
    let program = Program::with(&server).file("a.txt", "a\n");
    fs::create_dir_all(program.home().parent().unwrap().join(".claude")).unwrap();
    fs::write(program.home().parent().unwrap().join(".claude/settings.json"), settings).unwrap();
    program.run(&["-p", "go", "--solo"]);
    let shown = program.run(&["audit", "show", "--kind", "tool_done,question_answered,tool_intent"]);
    assert!(shown.out.contains("refused: run_shell curl evil.example\n"), "{shown:?}");
    assert!(shown.out.contains("refused: the rule `deny: Bash(curl *)` ("), "{shown:?}");
    assert!(shown.out.contains("settings.json:3)"), "{shown:?}");
    assert!(shown.out.contains("no: run_shell make all\n") && shown.out.contains("`no` automatically ("), "{shown:?}");
    let rows = program.run(&["audit", "show", "--json"]).lines();
    let refused: Vec<&Value> = rows.iter().filter_map(|row| row.get("refused")).collect();
    assert_eq!(refused.len(), 2, "{rows:?}");
    assert_eq!((&refused[0]["tool"], &refused[0]["target"]), (&json!("run_shell"), &json!("curl evil.example")));
    assert!(refused[1]["by"]["answer"]["by"]["nobody"].is_string(), "{refused:?}");
    // A line of several parts names every rule that took part.
    let all = rows.iter().find_map(|row| row["allowed"].get("all")).unwrap();
    assert!(all[0]["built_in"].is_object(), "{all}");
    let rules: Vec<&str> = all.as_array().unwrap().iter().filter_map(|one| one["rule"].as_str()).collect();
    assert!(
        matches!(rules[..], [rule] if rule.contains("`allow: Bash(make check)` (") && rule.contains("settings.json:4)")),
        "{all}"
    );
    program.run(&["audit", "export", "--html", "page.html"]);
    assert!(program.read("page.html").contains("refused: the rule `deny: Bash(curl *)`"));
    let trace = program.run(&["trace"]).out;
    assert!(
        trace.contains("run_shell curl evil.example") && trace.contains("[rule: the rule `deny: Bash(curl *)`"),
        "{trace}"
    );
    let lines = program.run(&["export", "--kind", "tool_done"]).lines();
    assert!(lines.iter().any(|line| line.to_string().contains("curl evil.example")), "{lines:?}");
    let zh = program.variable("MAX_LANG", "zh");
    let (shown, trace) = (zh.run(&["audit", "show"]).out, zh.run(&["trace"]).out);
    assert!(
        shown.contains("被拒绝：run_shell curl") && shown.contains("拒绝依据：规则 `deny: Bash(curl *)`"),
        "{shown}"
    );
    assert!(
        trace.contains("被拒绝") && trace.contains("是否允许 run_shell make all？") && !trace.contains("refused"),
        "{trace}"
    );
}

/// Journals of every release: opened, proven, folded, gone on with. `scripts/journal-fixture.sh` makes another.
#[test]
fn journals_of_every_release_open_and_go_on() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/journals");
    let files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(!files.is_empty());
    for file in files {
        let server = ModelServer::start([Reply::text("still a folder")]);
        let program = Program::with(&server);
        fs::create_dir_all(program.home()).unwrap();
        fs::copy(&file, program.home().join("journal.db")).unwrap();
        holds(&program);
        let known = sessions(&program);
        assert_eq!(known.len(), 2, "{}", file.display());
        for session in &known {
            let traced = program.run(&["trace", session]);
            assert!(traced.code == 0 && !traced.out.is_empty(), "{traced:?}");
            assert_eq!(program.run(&["sessions", "show", session]).code, 0);
        }
        let journal = Journal::open(program.home(), Options::default()).unwrap();
        assert!(compare_rows(&journal).unwrap().is_empty());
        let there = Sessions::new(&journal).latest(Path::new("/usr")).unwrap();
        drop(journal);
        let mut command = program.command(&["-r", &there.session.to_string(), "-p", "And now?"]);
        let ran = finish(command.current_dir("/usr").spawn().unwrap());
        assert_eq!((ran.code, ran.out.as_str()), (0, "still a folder\n"), "{ran:?}");
        assert!(server.requests()[0].contains("What is share?"), "what was said before is sent again");
        holds(&program);
    }
}
