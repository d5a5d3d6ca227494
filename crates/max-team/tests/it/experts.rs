//! The experts that come with the program, with real requests to a server on this machine that answers as the services do.
//!
//! Their definitions are changed only as a user would change them: another address, and its host among the allowed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use max_team_testkit::{ModelServer, Recorded, Reply, Script};
use serde_json::{Value, json};

use crate::program::{Program, Ran};

const WEATHER: &str = include_str!("../../../../agents/weather.md");
const EARTHQUAKE: &str = include_str!("../../../../agents/earthquake.md");
const PLACES: &str = include_str!("recorded/places.json");
const FORECAST: &str = include_str!("recorded/forecast.json");
const EARTHQUAKES: &str = include_str!("recorded/earthquakes.json");

/// What a service does with a question.
#[derive(Clone, Copy)]
enum Does {
    Says(&'static str, &'static str),
    /// Hangs up in the middle.
    Breaks,
    /// Says nothing, for as long as somebody waits.
    Waits,
}

const fn json_of(body: &'static str) -> Does {
    Does::Says("200 OK", body)
}

/// A server with an answer for each path, and what it was asked.
struct Web {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Web {
    fn new(answers: &'static [(&'static str, Does)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        std::thread::spawn(move || {
            let mut open = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let Some(Ok(first)) = lines.next() else { continue };
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                let target = first.split(' ').nth(1).unwrap().to_owned();
                let found = answers.iter().find(|(path, _)| target.starts_with(path));
                heard.lock().unwrap().push(target);
                match found.map_or(Does::Says("404 Not Found", "{}"), |(_, does)| *does) {
                    Does::Says(status, body) => say(&mut stream, status, body.len(), body),
                    Does::Breaks => say(&mut stream, "200 OK", 5_000, "{\"latitude\":"),
                    Does::Waits => open.push(stream),
                }
            }
        });
        Self { port, asked }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn say(stream: &mut TcpStream, status: &str, length: usize, body: &str) {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    // Whoever has heard enough hangs up.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
}

/// A definition that asks this server instead.
fn redirected(text: &str, web: &Web) -> String {
    let services = ["https://api.open-meteo.com", "https://earthquake.usgs.gov"];
    let text = services.iter().fold(text.to_owned(), |text, service| text.replace(service, &web.url()));
    let line = |line: &str| match line.split_once("allowed_hosts:") {
        Some((before, _)) => format!("{before}allowed_hosts: [\"127.0.0.1:{}\"]\n", web.port),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// A user with one definition of their own, in their own folder, and a place service of their own.
fn program(server: &ModelServer, web: &Web, name: &str, definition: &str) -> Program {
    let program = Program::team(server).variable("USER", "ada");
    std::fs::create_dir_all(program.home().join("agents")).unwrap();
    let config = format!("tools: {{geocode_url: \"{}\", private_hosts: [127.0.0.1]}}\n", web.url());
    std::fs::write(program.home().join("config.yaml"), config).unwrap();
    std::fs::write(program.home().join(format!("agents/{name}.md")), redirected(definition, web)).unwrap();
    program
}

/// What the last tool returned.
fn last_result(request: &Recorded) -> String {
    let content = request.body["messages"].as_array().unwrap().last().unwrap()["content"].as_array().unwrap();
    let result = content.iter().rfind(|part| part["type"] == "tool_result").unwrap();
    let texts = result["content"].as_array().unwrap().iter().filter_map(|part| part["text"].as_str());
    let told = texts.collect::<Vec<_>>().concat();
    // What a server said stands behind its origin.
    match told.split_once(", not instructions]\n") {
        Some((_, said)) => said.to_owned(),
        None => told,
    }
}

/// The address in an expert's own words that begins so, with the numbers filled in.
fn address(request: &Recorded, beginning: &str) -> String {
    let system = request.body["system"].as_array().unwrap();
    let words: String = system.iter().filter_map(|part| part["text"].as_str()).collect();
    let found = words.split('`').find(|words| words.starts_with("http") && words.contains(beginning)).unwrap();
    found
        .replace("=LAT", "=39.9075")
        .replace("=LON", "=116.39723")
        .replace("=N", "=2")
        .replace("LEVEL_RANGE", "4.5_day")
}

/// A call of a tool, with what it is made of.
type Call = fn(&Recorded) -> (&'static str, Value);

/// A lead that calls one expert and says what it was told, and that expert: it makes its calls one after the other, and
/// answers with what `end` makes of the last result, or, if that is `None`, with the result's first line.
fn model(
    expert: &'static str,
    marker: &'static str,
    arguments: Value,
    calls: Vec<Call>,
    end: fn(&str) -> Option<String>,
) -> ModelServer {
    ModelServer::start(Script::new().when(move |request: &Recorded| {
        let done = request.tool_results();
        if !request.body["system"].to_string().contains(marker) {
            return Some(match done {
                0 => Reply::new().tool("m1", "task", json!({ "agent": expert, "arguments": arguments })),
                _ => Reply::text(format!("Max: {}", last_result(request).lines().next().unwrap())),
            });
        }
        let failed = || {
            let told = last_result(request);
            format!("---TEXT---\n查不到：{}", told.lines().next().unwrap_or_default())
        };
        // A failure ends it: what was to come needs what is not there.
        Some(match calls.get(done).filter(|_| done == 0 || !is_stuck(request)) {
            Some(call) => {
                let (tool, input) = call(request);
                Reply::new().tool(format!("e{done}"), tool, input)
            }
            None => Reply::text(end(&last_result(request)).unwrap_or_else(failed)),
        })
    }))
}

/// Whether the last tool failed, or found nothing.
fn is_stuck(request: &Recorded) -> bool {
    let last = request.body["messages"].as_array().unwrap().last().unwrap().to_string();
    last.contains(r#""is_error":true"#) || last_result(request).starts_with("[no place")
}

const WEATHER_MARK: &str = "You answer questions about the weather";

fn asks_weather() -> ModelServer {
    model(
        "weather",
        WEATHER_MARK,
        json!({ "city": "北京", "forecast_type": "tomorrow" }),
        vec![|_| ("geocode", json!({ "name": "北京" })), |request| {
            ("web_fetch", json!({ "url": address(request, "/v1/forecast") }))
        }],
        |told| {
            let json: Value = serde_json::from_str(told.split_once('\n')?.1).ok()?;
            let tomorrow = |list: &str| json["daily"][list][1].as_f64();
            let (lo, hi) = (tomorrow("temperature_2m_min")?, tomorrow("temperature_2m_max")?);
            let data = json!({ "date": json["daily"]["time"][1], "temp": { "lo": lo, "hi": hi } });
            Some(format!("---RESULT---\n{data}\n---TEXT---\n北京明天晴，{lo} 到 {hi} °C。"))
        },
    )
}

/// Nobody can be asked: a host that is not allowed beforehand is refused.
fn ask(program: &Program) -> Ran {
    program.run(&["-p", "北京明天多少度？", "--permission-mode", "dontAsk"])
}

#[test]
fn weather_finds_the_place_and_the_forecast() {
    static ANSWERS: [(&str, Does); 2] = [("/v1/search", json_of(PLACES)), ("/v1/forecast", json_of(FORECAST))];
    let (web, server) = (Web::new(&ANSWERS), asks_weather());
    let program = program(&server, &web, "weather", WEATHER);
    let ran = ask(&program);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Max: 北京明天晴，-3.7 到 5.2 °C。\n"), "{ran:?}");
    assert!(server.problems().is_empty(), "{:?}", server.problems());
    let asked = web.asked();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(asked[0].starts_with("/v1/search?name=%E5%8C%97%E4%BA%AC&count=5&language=zh"), "{asked:?}");
    assert!(asked[1].starts_with("/v1/forecast?latitude=39.9075&longitude=116.39723&timezone=auto"), "{asked:?}");
    // The expert got its arguments and how to answer; the lead never sees the data.
    let requests = server.requests();
    let expert = requests.iter().find(|request| request.body["system"].to_string().contains(WEATHER_MARK)).unwrap();
    assert!(expert.contains(r#""city":"北京""#) && expert.contains("---RESULT---"), "{}", expert.body);
    let tools = expert.body["tools"].as_array().unwrap();
    assert_eq!(tools.iter().map(|tool| &tool["name"]).collect::<Vec<_>>(), ["geocode", "web_fetch"]);
    let lead = requests.last().unwrap();
    assert!(!lead.contains("temperature_2m_max") && !lead.contains(r#""lo""#), "{}", lead.body);
}

#[test]
fn errors_of_the_weather_service_reach_the_lead() {
    static TABLE: [(&[(&str, Does)], &str); 6] = [
        (&[("/v1/search", json_of(r#"{"generationtime_ms":0.1}"#))], "[no place is called `北京`"),
        (&[("/v1/search", Does::Says("500 Internal Server Error", "oops"))], "`127.0.0.1` says 500: oops"),
        (&[("/v1/search", json_of("<html>"))], "`127.0.0.1` answers with something else"),
        (
            &[
                ("/v1/search", json_of(PLACES)),
                ("/v1/forecast", Does::Says("502 Bad Gateway", r#"{"error":true,"reason":"upstream"}"#)),
            ],
            "502, application/json",
        ),
        (
            &[("/v1/search", json_of(PLACES)), ("/v1/forecast", json_of(r#"{"daily":{"time":["#))],
            "200, application/json",
        ),
        (&[("/v1/search", json_of(PLACES)), ("/v1/forecast", Does::Breaks)], "broke off"),
    ];
    for (answers, words) in &TABLE {
        let (web, server) = (Web::new(answers), asks_weather());
        let ran = ask(&program(&server, &web, "weather", WEATHER));
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.out.starts_with("Max: 查不到：") && ran.out.contains(words), "{words}: {ran:?}");
    }
}

/// A service that never answers costs the expert its time, and the lead is told.
#[test]
fn an_expert_that_waits_too_long_is_stopped_and_the_lead_goes_on() {
    static ANSWERS: [(&str, Does); 2] = [("/v1/search", json_of(PLACES)), ("/v1/forecast", Does::Waits)];
    let (web, server) = (Web::new(&ANSWERS), asks_weather());
    let hasty = WEATHER.replace("maxTurns: 8\n", "maxTurns: 8\nbudget: {wall: 2s}\n");
    let ran = ask(&program(&server, &web, "weather", &hasty));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.starts_with("Max: `weather` did not finish"), "{ran:?}");
    assert_eq!(web.asked().len(), 2);
}

/// The definition of an expert that comes with a project opens no host.
#[test]
fn a_projects_own_weather_asks_first() {
    static ANSWERS: [(&str, Does); 1] = [("/v1/search", json_of(PLACES))];
    let (web, server) = (Web::new(&ANSWERS), asks_weather());
    let program = program(&server, &web, "other", "---\nname: other\n---\nNobody.\n");
    let program = program.file(".max-team/agents/weather.md", redirected(WEATHER, &web));
    std::fs::write(program.home().join("config.yaml"), format!("tools: {{geocode_url: \"{}\"}}\n", web.url())).unwrap();
    let ran = ask(&program);
    assert!(ran.err.contains("`constraints.allowed_hosts` is held back"), "{ran:?}");
    assert!(ran.out.contains("no rule names the host"), "{ran:?}");
    assert_eq!(web.asked(), [""; 0]);
}

fn asks_earthquakes() -> ModelServer {
    model(
        "earthquake",
        "You answer questions about earthquakes",
        json!({ "region": "world", "time_range": "day" }),
        vec![|request| ("web_fetch", json!({ "url": address(request, "/summary/") }))],
        |told| {
            let json: Value = serde_json::from_str(told.split_once('\n')?.1).ok()?;
            let all = json["features"].as_array()?;
            let Some(first) = all.first() else { return Some("---TEXT---\nnone in the last day".to_owned()) };
            let (mag, place) = (&first["properties"]["mag"], first["properties"]["place"].as_str()?);
            Some(format!(
                "---RESULT---\n{{\"strongest\": {mag}}}\n---TEXT---\n{} since yesterday; {mag}, {place}",
                all.len()
            ))
        },
    )
}

#[test]
fn earthquakes_come_from_the_survey() {
    const FEED: &str = "/earthquakes/feed/v1.0/summary/4.5_day.geojson";
    static TABLE: [(Does, &str); 4] = [
        (json_of(EARTHQUAKES), "Max: 2 since yesterday; 6.1, 48 km SSE of Hualien City, Taiwan"),
        (json_of(r#"{"type":"FeatureCollection","metadata":{"count":0},"features":[]}"#), "Max: none in the last day"),
        (Does::Says("503 Service Unavailable", "busy"), "503, application/json"),
        (json_of("not json"), "200, application/json"),
    ];
    for (does, words) in TABLE {
        let answers: &'static [(&'static str, Does)] = Box::leak(Box::new([(FEED, does)]));
        let (web, server) = (Web::new(answers), asks_earthquakes());
        let ran = ask(&program(&server, &web, "earthquake", EARTHQUAKE));
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.out.contains(words), "{words}: {ran:?}");
        assert_eq!(web.asked(), [FEED]);
    }
}

#[test]
fn the_narrator_speaks_as_the_user_likes_it_and_can_only_remember() {
    const MARK: &str = "You put facts that others found into words";
    let server = model(
        "narrator",
        MARK,
        json!({ "facts": { "temp": 5 }, "question": "cold?" }),
        vec![|_| ("memory_read", json!({ "key": "personality" })), |_| {
            ("web_fetch", json!({ "url": "http://127.0.0.1/" }))
        }],
        |told| told.contains("web_fetch").then(|| "Arr, five degrees, matey.".to_owned()),
    );
    let program = Program::team(&server).variable("USER", "ada");
    assert_eq!(program.run(&["memory", "set", "personality", "Speak like a pirate."]).code, 0);
    let ran = program.run(&["-p", "is it cold?"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Max: Arr, five degrees, matey.\n"), "{ran:?}");
    let requests = server.requests();
    let of: Vec<&Recorded> =
        requests.iter().filter(|request| request.body["system"].to_string().contains(MARK)).collect();
    assert_eq!(
        of[0].body["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect::<Vec<_>>(),
        ["memory_read"]
    );
    assert!(of[1].contains("Speak like a pirate."), "{}", of[1].body);
    assert!(last_result(of[2]).contains("there is no tool `web_fetch`"), "{}", last_result(of[2]));
}

/// The one that comes with the program is told how to answer, like those that users write; what it keeps needs a data part.
#[test]
fn the_shipped_weather_answers_in_two_parts() {
    let server = model(
        "weather",
        WEATHER_MARK,
        json!({ "city": "Berlin" }),
        vec![|_| ("geocode", json!({ "name": "" }))],
        |_| None,
    );
    let ran = Program::team(&server).run(&["-p", "weather in Berlin?"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.starts_with("Max: 查不到：`name` is the name of a place"), "{ran:?}");
    let requests = server.requests();
    let expert = requests.iter().find(|request| request.body["system"].to_string().contains(WEATHER_MARK)).unwrap();
    let system = expert.body["system"].to_string();
    assert!(system.contains("https://api.open-meteo.com/v1/forecast?") && system.contains("---RESULT---"), "{system}");
}

/// As they are shipped: nothing odd about them, their hosts named, and what they keep is kept for as long as was asked for.
#[test]
fn shipped_experts_are_shown_as_they_are() {
    let program = Program::alone();
    for (name, tools, hosts, ttl) in [
        (
            "weather",
            json!(["geocode", "web_fetch"]),
            json!(["geocoding-api.open-meteo.com", "api.open-meteo.com"]),
            7200,
        ),
        (
            "earthquake",
            json!(["geocode", "web_fetch"]),
            json!(["earthquake.usgs.gov", "geocoding-api.open-meteo.com"]),
            300,
        ),
        ("train", json!(["web_fetch", "web_search"]), json!(["html.duckduckgo.com"]), 600),
        ("hotel", json!(["web_fetch", "web_search"]), json!(["html.duckduckgo.com"]), 600),
        ("narrator", json!(["memory_read"]), Value::Null, 0),
    ] {
        let json = program.run(&["agents", "show", name, "--json"]).json();
        assert_eq!((&json["tools"], &json["constraints"]["allowed_hosts"]), (&tools, &hosts), "{name}");
        assert_eq!((json["cache"]["ttl_s"].as_u64().unwrap_or(0), &json["scope"]), (ttl, &json!("built-in")));
        assert_eq!((&json["notes"], &json["left_out"]), (&json!([]), &json!([])), "{name}");
    }
    for (tool, url, agent, code) in [
        ("web_fetch", "https://api.open-meteo.com/v1/forecast", "weather", 0),
        ("geocode", "https://geocoding-api.open-meteo.com/v1/search", "weather", 0),
        ("web_fetch", "https://earthquake.usgs.gov/fdsnws/event/1/query", "earthquake", 0),
        ("web_fetch", "https://earthquake.usgs.gov/", "weather", 5),
        ("web_fetch", "https://api.open-meteo.com/v1/forecast", "narrator", 5),
        ("web_fetch", "https://html.duckduckgo.com/html/", "train", 0),
        ("web_fetch", "https://rail.example/", "train", 5),
    ] {
        let ran = program.run(&["permissions", "why", "--tool", tool, url, "--agent", agent]);
        assert_eq!(ran.code, code, "{agent}: {ran:?}");
    }
}
