//! Sessions: continued, resumed, listed, owned.

use max_team_testkit::{Gate, ModelServer, Reply};

use crate::chat::Terminal;
use crate::program::{Program, finish, pipe};

#[test]
fn a_session_goes_on_with_its_history() {
    let server = ModelServer::start([Reply::text("hello Ada"), Reply::text("Ada"), Reply::text("new")]);
    let program = Program::with(&server);
    assert_eq!(program.run(&["-p", "I am Ada"]).code, 0);
    assert_eq!(program.run(&["-c", "-p", "who am I?"]).out, "Ada\n");
    let messages = &server.requests()[1].body["messages"];
    assert_eq!(messages.as_array().unwrap().len(), 3);
    assert_eq!(program.run(&["-p", "fresh"]).out, "new\n");
    assert_eq!(server.requests()[2].body["messages"].as_array().unwrap().len(), 1, "without -c it is a new session");
    // Nothing is open: the answer that is there is shown again, and nobody is called.
    let ran = program.run(&["-c", "-p", ""]);
    assert_eq!((ran.code, ran.out.as_str(), server.count()), (0, "new\n", 3), "{ran:?}");
    assert!(ran.err.contains("answered before"), "{ran:?}");
}

#[test]
fn sessions_are_listed_and_resumed_by_id() {
    let server = ModelServer::start([Reply::text("one"), Reply::text("two"), Reply::text("three")]);
    let program = Program::with(&server);
    program.run(&["-p", "first"]);
    program.run(&["-p", "elephant"]);
    let listed = program.run(&["sessions", "list", "--json"]).json();
    let ids: Vec<&str> = listed.as_array().unwrap().iter().map(|row| row["session"].as_str().unwrap()).collect();
    assert_eq!((ids.len(), &listed[0]["preview"]), (2, &serde_json::json!("elephant")));
    assert_eq!(program.run(&["-r", ids[1], "-p", "more"]).out, "three\n");
    assert!(server.requests()[2].contains("first") && !server.requests()[2].contains("elephant"));
    // The end that lists show, or as much of the beginning as tells it apart.
    let apart = (1..ids[0].len()).find(|at| ids[0][..*at] != ids[1][..*at]).unwrap();
    for piece in [&ids[1][ids[1].len() - 8..], &ids[1][..apart], &ids[1]["ses_".len()..apart]] {
        let ran = program.run(&["-r", piece, "-p", ""]);
        assert_eq!((ran.code, ran.out.as_str()), (0, "three\n"), "{piece}: {ran:?}");
        for command in ["trace", "sessions show"] {
            let words: Vec<&str> = command.split(' ').chain([piece]).collect();
            assert_eq!(program.run(&words).code, 0, "{command} {piece}");
        }
    }
    let both = program.run(&["-r", "ses_", "-p", "x"]);
    assert!(both.code == 2 && ids.iter().all(|id| both.err.contains(id)), "{both:?}");
    let shown = program.run(&["sessions", "show", ids[1]]);
    assert!(shown.out.contains("first") && shown.out.contains("three"), "{shown:?}");
    let unknown = program.run(&["-r", "ses_00000000000000000000000000000000", "-p", "x"]);
    assert!(unknown.code == 1 && unknown.err.contains("sessions list"), "{unknown:?}");
    let unknown = program.run(&["-r", "zzz", "-p", "x"]);
    assert!(unknown.code == 1 && unknown.err.contains("sessions list"), "{unknown:?}");
    let none = Program::with(&server).run(&["-c", "-p", "x"]);
    assert!(none.code == 2 && none.err.contains("no earlier session"), "{none:?}");
}

/// A session works under its own project's rules; another folder's are never put in their place.
#[test]
fn a_session_is_not_resumed_from_another_folder() {
    let server = ModelServer::start([Reply::text("one"), Reply::text("two"), Reply::text("three")]);
    let program = Program::with(&server).file("../other/a.txt", "x");
    program.run(&["-p", "marmalade"]);
    let session = program.run(&["sessions", "list", "--json"]).json()[0]["session"].as_str().unwrap().to_owned();
    let project = program.project().canonicalize().unwrap().display().to_string();
    let elsewhere = |words: &[&str], input: &str| {
        let mut command = program.command(words);
        command.current_dir(program.project().with_file_name("other"));
        pipe(command, input.as_bytes())
    };
    let ran = elsewhere(&["-r", &session, "-p", "more"], "");
    assert_eq!((ran.code, server.count()), (2, 1), "{ran:?}");
    assert!(ran.err.contains(&project) && ran.err.contains(&format!("then `max-team -r {session}`")), "{ran:?}");
    // The same in lines from a pipe, which begin a session of their own.
    let ran = elsewhere(&[], "more\n");
    assert_eq!((ran.code, ran.out.as_str()), (0, "two\n"), "{ran:?}");
    assert!(!server.requests()[1].contains("marmalade"));
    assert_eq!(program.run(&["-r", &session, "-p", "more"]).out, "three\n");
    assert!(server.requests()[2].contains("marmalade"));
}

#[test]
fn a_second_owner_is_refused_by_name_and_others_work_beside_it() {
    let gate = Gate::new();
    let server = ModelServer::start([Reply::text("one").gate_before(&gate), Reply::text("beside")]);
    let program = Program::with(&server);
    let first = program.start(&["-p", "hello"]);
    gate.wait_reached();
    let second = program.run(&["-c", "-p", "me too"]);
    assert_eq!(second.code, 1, "{second:?}");
    assert!(second.err.contains(&format!("process {}", first.id())), "{second:?}");
    assert_eq!(program.run(&["-p", "another session"]).out, "beside\n");
    assert_eq!(program.run(&["sessions", "list"]).code, 0);
    gate.open();
    assert_eq!(finish(first).out, "one\n");
}

#[test]
fn rows_can_be_made_again_from_the_log() {
    let server = ModelServer::start([Reply::text("one"), Reply::text("two")]);
    let program = Program::with(&server);
    program.run(&["-p", "first"]);
    let before = program.run(&["sessions", "list", "--json"]).json();
    let ran = program.run(&["doctor", "--rebuild"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(program.run(&["sessions", "list", "--json"]).json(), before);
    assert_eq!(program.run(&["-c", "-p", "second"]).out, "two\n");
}

#[test]
fn a_conversation_is_compacted_and_resumed_as_it_was_before() {
    let replies = ["Four apples.", "They counted apples.", "Four.", "Still four."].map(Reply::text);
    let server = ModelServer::start(replies);
    let program = Program::with(&server);
    let mut terminal = Terminal::open(&program, &[]);
    terminal.wait("or give a task");
    for (typed, shown) in [
        ("How many apples?", "tokens in"),
        ("/compact the number", "context compacted: 2 → 1 messages"),
        ("How many?", "tokens in"),
    ] {
        terminal.keys(&[typed, "Enter"]);
        terminal.wait(shown);
    }
    let screen = terminal.screen();
    assert!(!screen.contains("They counted apples."), "a summary is no answer: {screen}");
    terminal.keys(&["C-d"]);
    terminal.wait_end();
    let requests = server.requests();
    let (summary, after) = (&requests[1], &requests[2]);
    assert!(summary.body.get("tools").is_none(), "{:?}", summary.body);
    assert!(summary.last_user().contains("[assistant]\nFour apples."), "{}", summary.last_user());
    assert!(summary.last_user().ends_with("in the user's words: the number"), "{}", summary.last_user());
    assert!(after.contains("They counted apples.") && !after.contains("Four apples."));
    assert!(
        after.contains("The last request before what follows, word for word:") && after.contains("How many apples?")
    );

    let session = program.run(&["sessions", "list", "--json"]).json()[0]["session"].as_str().unwrap().to_owned();
    let shown = program.run(&["sessions", "show", &session]).out;
    assert!(shown.contains("context compacted") && shown.contains("They counted apples."), "{shown}");
    assert!(program.run(&["trace", &session]).out.contains("compacted 2 → 1 messages"));
    let timeline = program.run(&["trace", &session, "--timeline"]).out;
    let rows: Vec<&str> = timeline.lines().collect();
    let at = |row: &str| rows.iter().position(|line| line.contains(row)).unwrap();
    assert!(at("turn max") < at("max: compacted 2 → 1 messages"), "{timeline}");
    assert_eq!(rows.iter().filter(|line| line.contains("max: model")).count(), 3, "{timeline}");
    let ran = program.run(&["-r", &session, "--before-compaction", "-p", "and now?"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Still four.\n"), "{ran:?}");
    let whole = &server.requests()[3];
    assert!(whole.contains("Four apples.") && !whole.contains("They counted apples."));
    let none = program.run(&["-r", &session, "--before-compaction", "-p", "x"]);
    assert!(none.code != 0 && none.err.contains("no compaction to undo"), "{none:?}");
}

#[test]
fn a_prompt_too_long_for_the_provider_is_a_boundary_in_the_stream() {
    let server = ModelServer::start([
        Reply::text("first answer"),
        Reply::overflow(),
        Reply::text("They said little."),
        Reply::text("second answer"),
    ]);
    let program = Program::with(&server);
    program.run(&["-p", "one"]);
    let ran = program.run(&["-c", "-p", "two", "--output-format", "stream-json"]);
    let lines: Vec<serde_json::Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let boundary = lines.iter().find(|line| line["subtype"] == "compact_boundary").unwrap();
    assert_eq!(boundary["compact_metadata"]["trigger"], "auto");
    assert!(boundary["compact_metadata"]["pre_tokens"].as_u64().unwrap() > 0);
    let answers: Vec<&serde_json::Value> = lines.iter().filter(|line| line["type"] == "assistant").collect();
    assert_eq!(answers.len(), 1, "the summary is nobody's answer: {answers:?}");
    assert_eq!(lines.last().unwrap()["result"], "second answer");
}
