//! `serve --demo`: the recording plays in each session, also over a kill.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::program::{Program, kill};
use super::serve::{Client, Events, is_asked, is_final, serve};

/// Follows a session, answering what it asks, until `wanted`.
fn play(browser: &Client, events: &mut Events, wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        let event = events.next();
        if wanted(&event) {
            return event;
        }
        if is_asked(&event) {
            let question = event["question"].as_str().unwrap();
            let answer = if event["tool_name"].is_string() {
                json!({ "allow": true })
            } else {
                json!({ "decision": "approve" })
            };
            let given = browser.post(&format!("/api/v1/questions/{question}/answer"), &answer);
            assert!([200, 409].contains(&given.status), "{given:?}");
        }
    }
}

/// The tool calls of a session by agent, with their ends.
fn steps(events: &Events) -> Vec<[String; 4]> {
    let results = events.seen.iter().filter(|event| event["type"] == "tool_result");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut steps: Vec<_> = results
        .map(|event| [&event["agent"]["name"], &event["tool_id"], &event["tool_name"], &event["ending"]].map(text))
        .collect();
    steps.sort();
    steps
}

#[test]
fn a_killed_demo_goes_on_and_the_next_session_plays_the_recording_again() {
    let program = Program::alone();
    let mut server = serve(&program, &["--demo", "fix"]);
    let browser = Client::browser(&server);
    let prompt = browser.get("/api/v1/me").json()["demo"]["prompt"].as_str().unwrap().to_owned();
    let session = browser.say(&prompt);
    let mut events = browser.events(&format!("?session={session}&from=0"), &[]);
    play(&browser, &mut events, |event| event["type"] == "content_delta" && event["agent"]["name"] == "ray");
    kill(&mut server.child);

    let server = serve(&program, &["--demo", "fix"]);
    let browser = Client::browser(&server);
    let is_over = |event: &Value| is_final(event) && event["end"] == "answered";
    let mut events = browser.events(&format!("?session={session}&from=0"), &[]);
    let ended = play(&browser, &mut events, is_over);
    assert!(ended["response"].as_str().unwrap().contains("1900"), "as recorded: {ended}");

    // A run that nothing disturbs, in a project of its own: the same calls with the same ends.
    let next = browser.say(&prompt);
    let mut undisturbed = browser.events(&format!("?session={next}&from=0"), &[]);
    assert_eq!(play(&browser, &mut undisturbed, is_over)["response"], ended["response"]);
    assert_eq!(steps(&events), steps(&undisturbed));
    let row = |session: &str| browser.get(&format!("/api/v1/sessions/{session}")).json()["session"].clone();
    let (first, second) = (row(&session), row(&next));
    assert_ne!(first["cwd"], second["cwd"]);
    assert_eq!((&first["continuable"], &second["continuable"]), (&json!(true), &json!(true)));
}

#[test]
fn a_demo_that_is_not_kept_is_reached_while_it_runs_and_swept_after_a_kill() {
    let program = Program::alone();
    let folder = program.home().with_file_name("tmp");
    std::fs::create_dir(&folder).unwrap();
    let program = program.variable("TMPDIR", folder.display().to_string()).variable("MAX_TEAM_HOME", "");
    let demos = || {
        let all = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        all.filter(|path| path.to_string_lossy().contains("max-team-demo-")).collect::<Vec<PathBuf>>()
    };
    let mut first = serve(&program, &["--demo", "fix"]);
    // A token and a link of the demo's own home, made by another process.
    let made = program.run(&["serve", "token", "create", "ci", "--scope", "read", "--demo", "fix"]);
    assert_eq!(made.code, 0, "{made:?}");
    assert_eq!(Client::token(&first, made.out.trim()).get("/api/v1/me").status, 200);
    let link = program.run(&["serve", "link", "--demo", "fix"]).out;
    assert!(link.starts_with(&format!("http://{}/login#", first.address)), "{link}");
    let none = program.run(&["serve", "link", "--demo"]);
    assert!(none.code == 1 && none.err.contains("`team`") && none.err.contains(&first.address), "{none:?}");

    let killed = demos();
    kill(&mut first.child);
    let second = serve(&program, &["--demo", "fix"]);
    let left = demos();
    assert!(killed.len() == 1 && left.len() == 1 && killed != left, "{killed:?} {left:?}");
    let third = serve(&program, &["--demo", "fix"]);
    assert_eq!(demos().len(), 2, "the folder of a running demo stays");
    drop((second, third));
}
