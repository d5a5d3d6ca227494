//! Questions that wait while no user can be asked: said at once, and answered by the user's next words.

use max_team_testkit::{ModelServer, Recorded, Reply};
use serde_json::json;

use crate::program::Program;

fn ask() -> Reply {
    Reply::new().tool("q1", "ask_user", json!({ "question": "Which colour?" }))
}

fn write(path: &str) -> Reply {
    Reply::new().tool("w1", "write_file", json!({ "path": path, "content": "x" }))
}

/// What the model was told in a request after its calls.
fn told(request: &Recorded) -> String {
    request.body["messages"].to_string()
}

#[test]
fn new_words_answer_the_question_that_waits() {
    let server = ModelServer::start([ask(), Reply::text("Blue it is.")]);
    let program = Program::team(&server);
    let ran = program.run(&["-p", "paint it"]);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.err.contains("max waits for your answer: ask_user") && ran.err.contains("-m ANSWER"), "{ran:?}");
    let ran = program.run(&["-c", "-p", "yes, use blue"]);
    assert_eq!((ran.code, ran.out.trim()), (0, "Blue it is."), "{ran:?}");
    assert!(ran.err.contains("answered with your words: ask_user"), "{ran:?}");
    let requests = server.requests();
    assert_eq!(requests.len(), 2, "the words are told once");
    let heard = told(&requests[1]);
    assert!(heard.contains("The user answers: yes, use blue") && !heard.contains("Nobody could"), "{heard}");
}

#[test]
fn new_words_stand_before_the_model_instead_of_a_decision_about_a_change() {
    for lang in ["en", "zh"] {
        let server = ModelServer::start([write("a.txt"), Reply::text("As you wish.")]);
        let program = Program::with(&server);
        let ran = program.run(&["-p", "write", "--lang", lang]);
        assert_eq!(ran.code, 5, "{ran:?}");
        assert!(ran.err.contains("max-team approve") && ran.err.contains("max-team deny"), "{ran:?}");
        let ran = program.run(&["-c", "-p", "name it b.txt", "--lang", lang, "--output-format", "json"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let heard = told(server.requests().last().unwrap());
        assert!(heard.contains("the user has not decided about this call, and wrote: name it b.txt"), "{heard}");
        assert!(!heard.contains("There is no answer") && !heard.contains("The user said no"), "{heard}");
        assert!(!program.project().join("a.txt").exists());
        let denial = &ran.json()["permission_denials"][0];
        assert_eq!((&denial["tool_name"], &denial["tool_use_id"]), (&json!("write_file"), &json!("w1")), "{denial}");
    }
}

#[test]
fn a_run_that_listens_answers_with_the_first_line() {
    let server = ModelServer::start([ask(), Reply::text("Blue it is.")]);
    let program = Program::team(&server);
    assert_eq!(program.run(&["-p", "paint it"]).code, 5);
    let line = json!({ "type": "user", "message": { "content": "blue" } }).to_string();
    let words = ["-c", "-p", "--input-format", "stream-json", "--output-format", "stream-json"];
    let ran = program.pipe(&words, line.as_bytes());
    assert_eq!(ran.code, 0, "{ran:?}");
    let heard = told(server.requests().last().unwrap());
    assert!(heard.contains("The user answers: blue") && !heard.contains("Nobody could"), "{heard}");
}

#[test]
fn a_denied_call_is_named_in_the_result() {
    let server = ModelServer::start([write("a.txt"), Reply::text("As you wish.")]);
    let program = Program::with(&server);
    assert_eq!(program.run(&["-p", "write"]).code, 5);
    assert_eq!(program.run(&["deny", "-m", "not that"]).code, 0);
    let result = program.run(&["-c", "-p", "", "--output-format", "json"]).json();
    let denial = &result["permission_denials"][0];
    assert_eq!((&denial["tool_name"], &denial["target"]), (&json!("write_file"), &json!("a.txt")), "{result}");
}

#[test]
fn refusals_that_are_not_named_are_counted() {
    let mut replies: Vec<Reply> = (0..12).map(|number| write(&format!("{number}.txt"))).collect();
    replies.push(Reply::text("I could not."));
    let server = ModelServer::start(replies);
    let program = Program::with(&server);
    let ran = program.run(&["-p", "write", "--permission-mode", "plan"]);
    assert_eq!(ran.err.matches("refused `write_file").count(), 10, "{ran:?}");
    assert!(ran.err.contains("2 more calls were refused"), "{ran:?}");
}
