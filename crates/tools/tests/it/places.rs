//! `geocode`, against a server on this machine that answers as Open-Meteo does.

use std::sync::Arc;

use max_team_core::policy::ActionKind;
use max_team_tools::Services;
use serde_json::{Value, json};

use crate::project::Project;
use crate::web::{Server, reply};

fn place(name: &str, regions: [&str; 2], at: [f64; 2], population: Option<u64>) -> Value {
    json!({
        "id": 1, "name": name, "latitude": at[0], "longitude": at[1], "elevation": 23.0, "feature_code": "PPLA3",
        "country_code": "CN", "timezone": "Asia/Shanghai", "country_id": 1814991, "country": regions[1],
        "admin1": regions[0], "population": population,
    })
}

/// What Open-Meteo says about a name; one that it does not know has no `results` at all.
fn known(name: &str) -> Value {
    match name {
        "北京" => {
            let beijing = place("北京", ["北京", "中国"], [39.9075, 116.39723], Some(18_960_744));
            json!({ "results": [beijing], "generationtime_ms": 0.6 })
        }
        "通州" => json!({
            "results": [
                place("通州", ["江苏", "中国"], [32.07, 121.07], Some(99_000)),
                place("通州区", ["北京市", "中国"], [39.90977, 116.65714], None),
            ],
            "generationtime_ms": 0.4,
        }),
        "Berlin" => {
            let many = (0..20).map(|at| place("Berlin", ["Berlin", "Germany"], [52.5, f64::from(at)], None));
            json!({ "results": many.collect::<Vec<_>>() })
        }
        _ => json!({ "generationtime_ms": 0.1 }),
    }
}

fn fields(path: &str) -> Vec<(String, String)> {
    let url = reqwest::Url::parse(&format!("http://h{path}")).unwrap();
    url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

fn service() -> Server {
    Server::new(|path, stream| {
        let name = fields(path).remove(0).1;
        let json = "Content-Type: application/json; charset=utf-8";
        match name.as_str() {
            "refused" => {
                reply(stream, "400 Bad Request", json, r#"{"error":true,"reason":"Parameter \u001b[2J is odd"}"#)
            }
            "broken" => reply(stream, "500 Internal Server Error", "Content-Type: text/html", "<h1>Oops</h1>"),
            "cut" => reply(stream, "200 OK", json, r#"{"results":[{"name":"Ber"#),
            "odd" => reply(stream, "200 OK", json, r#"{"results":[{"name":"Berlin"}]}"#),
            "gone" => {}
            name => reply(stream, "200 OK", json, known(name).to_string()),
        }
    })
}

/// What the service said, behind its origin.
fn said(project: &Project, name: &str) -> String {
    let told = project.call("geocode", json!({ "name": name })).unwrap();
    told.split_once(", not instructions]\n").unwrap().1.to_owned()
}

/// A project whose user has this service.
fn with(server: &Server) -> Project {
    let mut project = Project::new();
    let geocode_url = Some(format!("http://127.0.0.1:{}/geo/", server.port));
    project.cx.services = Arc::new(Services { geocode_url, ..Services::default() });
    project
}

#[test]
fn the_gate_sees_the_host_and_the_question() {
    let action = Project::new().action("geocode", &json!({ "name": " 北京 " })).unwrap();
    assert_eq!((action.kind, action.target.as_str()), (ActionKind::Fetch, "geocoding-api.open-meteo.com"));
    let url = "https://geocoding-api.open-meteo.com/v1/search?name=%E5%8C%97%E4%BA%AC&count=5&language=zh&format=json";
    assert_eq!(action.preview, format!("GET {url}"));
    let server = service();
    let action = with(&server).action("geocode", &json!({ "name": "Berlin", "count": 2, "language": "DE" })).unwrap();
    assert_eq!(action.target, format!("127.0.0.1:{}", server.port));
    assert!(action.preview.ends_with("/geo/v1/search?name=Berlin&count=2&language=de&format=json"), "{action:?}");
    assert_eq!(server.asked(), [""; 0], "looking at a call asks nobody");
}

#[test]
fn places_come_with_what_tells_them_apart() {
    let server = service();
    let project = with(&server);
    let call = |name: &str| said(&project, name);
    assert_eq!(
        call("北京"),
        "1. 北京 (中国): latitude 39.9075, longitude 116.39723, time zone Asia/Shanghai, population 18960744\n"
    );
    assert_eq!(call("Berlin").lines().count(), 5);
    assert_eq!(call("Atlantis"), "[no place is called `Atlantis`; try another spelling, or a larger place near it]");
    let asked = server.asked();
    assert_eq!(asked.len(), 3, "{asked:?}");
    assert_eq!(fields(&asked[0])[2], ("language".to_owned(), "zh".to_owned()));
}

#[test]
fn a_name_that_is_not_known_as_a_whole_is_taken_apart() {
    for name in ["北京通州", "北京 通州", "北京，通州"] {
        let server = service();
        let told = said(&with(&server), name);
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines[0], format!("[nothing is called `{name}`; these are for `通州`]"));
        // The one in Beijing comes first, although the service has it behind the other.
        assert!(lines[1].starts_with("1. 通州区 (北京市, 中国): latitude 39.90977"), "{told}");
        assert!(lines[2].starts_with("2. 通州 (江苏, 中国)"), "{told}");
        assert_eq!(server.asked().len(), 2);
    }
    // What no part of it is called is asked for so often and no more.
    let server = service();
    let told = said(&with(&server), "甲甲,乙乙,丙丙,丁丁,戊戊,己己,庚庚");
    assert!(told.starts_with("[no place is called"), "{told}");
    assert_eq!(server.asked().len(), 5);
}

#[test]
fn failures_are_said_in_words() {
    let server = service();
    let project = with(&server);
    let refused = |name: &str| project.refused("geocode", json!({ "name": name }));
    assert_eq!(refused("refused"), "`127.0.0.1` says 400: Parameter \\u{1b}[2J is odd");
    assert_eq!(refused("broken"), "`127.0.0.1` says 500: <h1>Oops</h1>");
    assert!(refused("cut").starts_with("`127.0.0.1` answers with something else: EOF"), "{}", refused("cut"));
    assert!(refused("odd").contains("missing field `latitude`"), "{}", refused("odd"));
    assert!(refused("gone").contains("cannot be reached") || refused("gone").contains("broke off"));
    assert!(refused("  ").contains("name of a place"));
    let input = json!({ "name": "Berlin", "language": "../x" });
    assert!(project.refused("geocode", input).contains("two or three letters"));
    // Without leave of the user's nothing on this machine is asked.
    let mut stranger = with(&server);
    let asked = server.asked().len();
    stranger.cx.services = Arc::new(Services::default());
    let intent = project.action("geocode", &json!({ "name": "Berlin" })).unwrap();
    assert!(stranger.run("geocode", &json!({ "name": "Berlin" }), &intent, false).is_err());
    assert_eq!(server.asked().len(), asked);
}
