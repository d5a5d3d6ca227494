//! What the server keeps of requests, and how scripts choose replies.

use max_team_testkit::{Dialect, ModelServer, Reply, Script};
use serde_json::{Value, json};

use crate::client::{CHAT, Client, MESSAGES, joined, streamed, whole};

#[test]
fn requests_are_kept_as_sent() {
    let server = ModelServer::start([Reply::text("a"), Reply::text("b"), Reply::text("c")]);
    let mut client = Client::connect(&server);
    client.call("POST", "/v1/messages?beta=true", &whole());
    client.call("POST", CHAT, &streamed());
    client.call("POST", MESSAGES, &whole());
    let requests = server.requests();
    assert_eq!(requests.iter().map(|request| request.n).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(
        requests.iter().map(|request| request.dialect().unwrap()).collect::<Vec<_>>(),
        [Dialect::Anthropic, Dialect::OpenAi, Dialect::Anthropic]
    );
    let first = &requests[0];
    assert_eq!((first.method.as_str(), first.path.as_str()), ("POST", "/v1/messages?beta=true"));
    assert_eq!(first.header("x-api-key"), Some("k"));
    assert_eq!(first.body, whole());
    assert_eq!(first.raw, whole().to_string().as_bytes());
    assert_eq!(first.bytes, first.raw.len());
    assert_eq!(first.hash, requests[2].hash);
    assert_ne!(first.hash, requests[1].hash);
    assert_eq!((server.count(), server.left(), server.problems()), (3, 0, vec![]));
}

#[test]
fn one_connection_serves_many_requests() {
    let server = ModelServer::start(Script::new().when(|request| Some(Reply::text(format!("answer {}", request.n)))));
    let mut client = Client::connect(&server);
    for n in 0..20 {
        let data = client.call("POST", MESSAGES, &streamed()).data();
        assert_eq!(joined(&data, "/delta/text"), format!("answer {n}"));
    }
}

#[test]
fn requests_may_arrive_together_or_in_pieces() {
    let server = ModelServer::start([Reply::text("a"), Reply::text("b")]);
    let mut client = Client::connect(&server);
    client.raw(b"POST /v1/messages HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}POST /v1/mess");
    assert_eq!(joined(&[client.response().json()], "/content/0/text"), "a");
    client.raw(b"ages HTTP/1.1\r\ncontent-length: 2\r\n\r\n{");
    client.raw(b"}");
    assert_eq!(joined(&[client.response().json()], "/content/0/text"), "b");
}

#[test]
fn rules_come_before_the_list() {
    let script = Script::new()
        .then(Reply::text("from the list"))
        .when(|request| request.contains("agent Ada").then(|| Reply::text("for Ada")))
        .when(|request| request.contains("agent Leo").then(|| Reply::text("for Leo")));
    let server = ModelServer::start(script);
    let mut client = Client::connect(&server);
    let mut say = |system: &str| {
        let response = client.call("POST", MESSAGES, &json!({"model": "m", "system": [{"text": system}]}));
        joined(&[response.json()], "/content/0/text")
    };
    assert_eq!(say("You are agent Leo."), "for Leo");
    assert_eq!(say("You are agent Ada."), "for Ada");
    assert_eq!(say("You are agent Ray."), "from the list");
    assert_eq!(say("You are agent Ada."), "for Ada");
}

#[test]
fn rules_and_labels_tell_a_team_apart() {
    let plan = Reply::new().tool("t1", "submit_plan", json!({"goal": "g"})).label("plan");
    let script = Script::new()
        .on(|request| request.last_user().starts_with("# Your task"), Reply::text("done").label("task"))
        .on(|request| request.last_user().contains("is over:"), Reply::text("All done."))
        .on(|request| request.user_texts().len() == 1 && request.tool_results() == 0, plan);
    let server = ModelServer::start(script);
    let mut client = Client::connect(&server);
    let mut ask = |path: &str, texts: &[&str]| {
        let said: Vec<Value> = texts.iter().map(|text| json!({"role": "user", "content": text})).collect();
        client.call("POST", path, &json!({"messages": said})).text()
    };
    assert!(ask(MESSAGES, &["build it"]).contains("submit_plan"));
    for n in 0..3 {
        assert!(ask([MESSAGES, CHAT][n % 2], &["# Your task\n\nt"]).contains("\"done\""));
    }
    assert!(ask(MESSAGES, &["build it", "the plan is over: 3 done"]).contains("All done."));
    assert_eq!(
        server.requests().iter().map(|request| request.label.as_deref().unwrap_or("-")).collect::<Vec<_>>(),
        ["plan", "task", "task", "task", "-"]
    );
    assert_eq!(server.problems(), Vec::<String>::new());
}

#[test]
fn user_texts_leave_out_texts_of_the_program() {
    let blocks = json!([{"type": "text", "text": "one"}, {"type": "image"}, {"type": "text", "text": "two"}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "file"}]}]);
    let cases = [
        (json!([]), vec![]),
        (json!([{"role": "user", "content": "hi"}]), vec!["hi"]),
        (json!([{"role": "user", "content": blocks}]), vec!["one\ntwo"]),
        (json!([{"role": "user", "content": "hi"}, {"role": "user", "content": result}]), vec!["hi"]),
        (json!([{"role": "system", "content": "s"}, {"role": "assistant", "content": "a"}]), vec![]),
        (json!([{"role": "user", "content": "a"}, {"role": "tool", "content": "x"}, {"role": "user"}]), vec!["a"]),
    ];
    let server = ModelServer::start(Script::new().when(|_| Some(Reply::text("ok"))));
    let mut client = Client::connect(&server);
    for (n, (messages, texts)) in cases.into_iter().enumerate() {
        client.call("POST", MESSAGES, &json!({"messages": messages}));
        let request = &server.requests()[n];
        assert_eq!(request.user_texts(), texts, "{messages}");
        assert_eq!(request.last_user(), texts.last().copied().unwrap_or_default());
    }
}

#[test]
fn waiting_sees_requests_of_other_threads() {
    let server = ModelServer::start([Reply::text("a"), Reply::text("b")]);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| Client::connect(&server).call("POST", MESSAGES, &whole()));
        }
        server.wait_requests(2);
    });
    assert_eq!(server.count(), 2);
}

#[test]
fn model_lists_and_unknown_paths() {
    let server = ModelServer::start(Script::new().models(["opus", "qwen"]));
    let mut client = Client::connect(&server);
    let list = client.call("GET", "/v1/models", &Value::Null).json();
    assert_eq!((&list["data"][1]["id"], &list["has_more"]), (&json!("qwen"), &json!(false)));
    let tags = client.call("GET", "/api/tags", &Value::Null).json();
    assert_eq!(tags["models"][0]["name"], "opus");
    let unknown = client.call("GET", "/v2/none", &Value::Null);
    assert_eq!(unknown.head.status, 404);
    assert_eq!(unknown.json()["error"]["message"], "nothing at GET /v2/none");
    assert_eq!(server.count(), 3);
}

#[test]
fn malformed_requests_are_refused() {
    let server = ModelServer::start([Reply::text("unused")]);
    let mut client = Client::connect(&server);
    client.send("POST", MESSAGES, "not json");
    assert_eq!(client.response().head.status, 400);
    client.raw(b"POST /v1/messages HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n");
    assert_eq!(client.response().head.status, 400);
    assert!(client.closed());
    assert_eq!((server.count(), server.left(), server.problems().len()), (1, 1, 2));
}

#[test]
fn tool_loop_needs_no_memory() {
    let script = Script::tool_loop(2, "read_file", json!({"path": "x"}), "DONE");
    let server = ModelServer::start(script);
    let mut client = Client::connect(&server);
    let result = |id: &str| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id}]});
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    let mut ids = Vec::new();
    loop {
        let reply = client.call("POST", MESSAGES, &json!({"messages": messages})).json();
        let Some(id) = reply["content"][0]["id"].as_str() else {
            assert_eq!(reply["content"], json!([{"type": "text", "text": "DONE"}]));
            break;
        };
        messages.push(json!({"role": "assistant", "content": reply["content"]}));
        messages.push(result(id));
        ids.push(id.to_owned());
    }
    assert_eq!(ids, ["toolu_0", "toolu_1"]);
    let chat = json!({"messages": [{"role": "tool", "content": "x"}, {"role": "tool", "content": "x"}]});
    let done = client.call("POST", CHAT, &chat).json();
    assert_eq!(done["choices"][0]["message"]["content"], "DONE");
}

#[test]
fn log_has_times_and_can_be_cleared() {
    let server = ModelServer::start(Script::tool_loop(0, "x", json!({}), "DONE").lean());
    let mut client = Client::connect(&server);
    client.call("POST", MESSAGES, &streamed());
    client.call("POST", MESSAGES, &streamed());
    let log = client.call("GET", "/_log", &Value::Null).json();
    let times: Vec<u64> = log
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|row| [&row["arrive_us"], &row["send_us"], &row["end_us"]])
        .map(|at| at.as_u64().unwrap())
        .collect();
    assert_eq!(times.len(), 6);
    assert!(times.is_sorted());
    assert_eq!(log[1]["bytes"], streamed().to_string().len());
    assert_eq!(server.requests()[0].body, Value::Null);
    client.call("DELETE", "/_log", &Value::Null);
    client.call("POST", MESSAGES, &streamed());
    let log = client.call("GET", "/_log", &Value::Null).json();
    assert_eq!((log.as_array().unwrap().len(), &log[0]["n"]), (1, &json!(2)));
}
