//! Files over HTTP: attached to a message, and downloaded, whatever is in them.

use max_team_testkit::{ModelServer, Reply, Script};
use serde_json::{Value, json};

use super::program::Program;
use super::serve::{Answer, Client, is_final, serve};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR";
/// The same as the model gets it.
const PNG_BASE64: &str = "iVBORw0KGgoAAAANSUhEUg==";

fn add(client: &Client, session: &str, name: &str, bytes: &[u8]) -> Answer {
    client.send_bytes("POST", &format!("/api/v1/sessions/{session}/files?name={name}"), &[], bytes)
}

/// The paths of the files of a session.
fn paths(client: &Client, session: &str) -> Vec<String> {
    let files = client.get(&format!("/api/v1/sessions/{session}/files")).json()["files"].clone();
    files.as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn attached_files_reach_the_model_as_mentioned_ones_do() {
    let model = ModelServer::start(Script::new().on(|_| true, Reply::text("Seen.")));
    let program = Program::team(&model);
    let server = serve(&program, &[]);
    let browser = Client::browser(&server);
    let session =
        browser.post("/api/v1/sessions", &json!({})).json()["session"]["session"].as_str().unwrap().to_owned();
    let picture = add(&browser, &session, "shot.png", PNG);
    assert_eq!((picture.status, &picture.json()["mention"]), (201, &json!("@files/shot.png")), "{picture:?}");
    let notes = add(&browser, &session, "my%20notes.txt", b"remember the milk\n");
    assert_eq!(notes.json()["mention"], "@\"files/my notes.txt\"", "{notes:?}");
    let text =
        format!("look {} {}", picture.json()["mention"].as_str().unwrap(), notes.json()["mention"].as_str().unwrap());
    let said = browser.post(&format!("/api/v1/sessions/{session}/messages"), &json!({ "text": text }));
    assert_eq!(said.status, 202, "{said:?}");
    browser.events(&format!("?session={session}&from=0"), &[]).until(is_final);
    let content = model.requests()[0].body["messages"][0]["content"].to_string();
    assert!(content.contains(PNG_BASE64) && content.contains("image/png"), "{content}");
    assert!(content.contains("remember the milk"), "{content}");
}

#[test]
fn names_are_made_harmless_and_no_file_is_replaced() {
    let model = ModelServer::start(Script::new());
    let program = Program::with(&model);
    let server = serve(&program, &["--solo"]);
    let browser = Client::browser(&server);
    let session =
        browser.post("/api/v1/sessions", &json!({})).json()["session"]["session"].as_str().unwrap().to_owned();
    let path = |name: &str, bytes: &[u8]| add(&browser, &session, name, bytes).json()["path"].clone();
    assert_eq!(path("a.txt", b"one"), "@files/a.txt");
    assert_eq!(path("a.txt", b"one"), "@files/a.txt", "a second delivery changes nothing");
    assert_eq!(path("a.txt", b"two"), "@files/a-2.txt");
    assert_eq!(path("..%2F..%2Fconfig.yaml", b"x: 1"), "@files/config.yaml");
    assert_eq!(path(".bashrc", b"x"), "@files/bashrc");
    assert_eq!(path("%00%2F..", b"x"), "@files/file");
    assert_eq!(paths(&browser, &session), ["a-2.txt", "a.txt", "bashrc", "config.yaml", "file"]);
    assert!(!program.home().join("config.yaml").exists());

    let create = |scope: &str| {
        let made = program.run(&["serve", "token", "create", scope, "--scope", scope]);
        Client::token(&server, made.out.trim())
    };
    let (reader, writer) = (create("read"), create("chat"));
    assert_eq!(add(&reader, &session, "b.txt", b"x").code(), (403, "forbidden".to_owned()));
    assert_eq!(add(&writer, &session, "b.txt", b"x").status, 201);
    let nothing = "ses_00000000000000000000000000000000";
    let large = vec![b'x'; (10 << 20) + 1];
    for (answer, status) in [
        (add(&browser, &session, "empty.txt", b""), 400),
        (browser.send("POST", &format!("/api/v1/sessions/{session}/files"), &[], "x"), 400),
        (add(&browser, nothing, "a.txt", b"x"), 404),
        (add(&browser, &session, "large.bin", &large), 413),
    ] {
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(answer.json()["error"]["message"].is_string(), "{answer:?}");
    }
    assert!(!paths(&browser, &session).contains(&"large.bin".to_owned()));
}

#[test]
fn a_page_that_an_agent_wrote_is_only_downloaded() {
    let page = "<script>fetch('/api/v1/me')</script>\n";
    let write = Reply::new().tool("w", "write_file", json!({ "path": "@files/out/page.html", "content": page }));
    let model = ModelServer::start([write, Reply::text("It is in @files/out/page.html.")]);
    let program = Program::with(&model);
    let server = serve(&program, &["--solo"]);
    let browser = Client::browser(&server);
    let session = browser.say("write a page");
    browser.events(&format!("?session={session}&from=0"), &[]).until(is_final);
    let get = |path: &str| browser.get(&format!("/api/v1/sessions/{session}/files/{path}"));
    let sent = get("out%2Fpage.html");
    assert_eq!((sent.status, sent.body.as_str()), (200, page), "{sent:?}");
    for header in [
        "content-type: application/octet-stream",
        "content-disposition: attachment; filename*=UTF-8''page.html",
        "x-content-type-options: nosniff",
    ] {
        assert!(sent.head.contains(header), "{header}: {sent:?}");
    }
    for path in ["nothing.txt", "..%2F..%2Fserve%2Ftokens.json", "%2Fetc%2Fpasswd", "out", "."] {
        let refused = get(path);
        assert_eq!(refused.status, 404, "{path}: {refused:?}");
    }
    let reader = program.run(&["serve", "token", "create", "r", "--scope", "read"]);
    let reader = Client::token(&server, reader.out.trim());
    assert_eq!(
        reader.get(&format!("/api/v1/sessions/{session}/files/out%2Fpage.html")).status,
        200,
        "reading is looking"
    );
    let stranger = Client::token(&server, "mt_wrong");
    assert_eq!(stranger.get(&format!("/api/v1/sessions/{session}/files")).status, 401);
}

#[test]
fn openai_clients_send_pictures_as_data() {
    let model = ModelServer::start(Script::new().on(|_| true, Reply::text("A picture.")));
    let program = Program::team(&model);
    let server = serve(&program, &[]);
    let browser = Client::browser(&server);
    let ask = |part: Value| {
        let content = json!([{ "type": "text", "text": "What is it?" }, part]);
        let body = json!({ "model": "max", "messages": [{ "role": "user", "content": content }] });
        browser.post("/v1/chat/completions", &body)
    };
    let image = |url: &str| json!({ "type": "image_url", "image_url": { "url": url } });
    let answer = ask(image(&format!("data:image/png;base64,{PNG_BASE64}"))).json();
    assert_eq!(answer["choices"][0]["message"]["content"], "A picture.", "{answer}");
    assert!(model.requests()[0].body["messages"][0]["content"].to_string().contains(PNG_BASE64));
    for part in [image("https://example.org/a.png"), json!({ "type": "input_audio" })] {
        let refused = ask(part);
        assert_eq!(refused.code(), (400, "bad_request".to_owned()));
        assert!(refused.body.contains("messages[0].content[1]"), "{refused:?}");
    }
}
