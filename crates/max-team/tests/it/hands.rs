//! Tools that need more than the project: a page of the web by the user's leave, and what is too large to be told.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;

use max_team_testkit::{ModelServer, Recorded, Reply, Script};
use serde_json::json;

use crate::program::{Program, Ran};

const AGENTS: &str = "agents:\n  - {name: web, role: reader, system_prompt: read, tools: [web_fetch, read_file]}\n";

/// A server on this machine that has one large page.
pub(crate) fn large_page() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let page: String = (0..60_000).map(|number| format!("line {number}\n")).collect();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                page.len()
            );
            stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(page.as_bytes())).unwrap();
        }
    });
    port
}

/// A model that gets the page, and then reads on where it is told to.
fn reader(port: u16) -> ModelServer {
    let url = format!("http://127.0.0.1:{port}/");
    ModelServer::start(Script::new().when(move |request: &Recorded| {
        let body = request.body.to_string();
        let kept = body.find("@output/").map(|at| body[at..].split('`').next().unwrap().to_owned());
        Some(match (request.tool_results(), kept) {
            (0, _) => Reply::new().tool("t1", "web_fetch", json!({ "url": url })),
            (1, Some(path)) => {
                Reply::new().tool("t2", "read_file", json!({ "path": path, "offset": 30_000, "limit": 2 }))
            }
            _ => Reply::text("done"),
        })
    }))
}

fn asked(program: &Program, more: &[&str]) -> Ran {
    program.run(&[&["-p", "read it", "--agents", "agents.yaml", "--agent", "web"], more].concat())
}

/// Leave to ask the page's host.
const LEAVE: [&str; 2] = ["--allowed-tools", "WebFetch(domain:127.0.0.1:*)"];

fn program(server: &ModelServer, config: &str) -> Program {
    let program = Program::team(server).file("agents.yaml", AGENTS);
    std::fs::create_dir_all(program.home()).unwrap();
    std::fs::write(program.home().join("config.yaml"), config).unwrap();
    program
}

#[test]
fn a_large_page_is_read_on_from_where_it_is_kept() {
    let server = reader(large_page());
    let program = program(&server, "tools: {private_hosts: [127.0.0.1]}\n");
    let ran = asked(&program, &LEAVE);
    assert_eq!((ran.code, ran.out.as_str()), (0, "done\n"), "{ran:?}");
    let requests = server.requests();
    assert!(requests[1].contains("line 0\nline 1\n") && requests[1].contains("page 1 of "), "the first page");
    assert!(!requests[1].contains("line 30000\n") && requests[1].contains("@output/"));
    assert!(requests[2].contains("30000\tline 29999\n30001\tline 30000\n"), "{}", requests[2].body);
    let shelves: Vec<_> = std::fs::read_dir(program.home().join("output")).unwrap().collect();
    assert_eq!(shelves.len(), 1);
    assert!(!program.project().join("output").exists() && !program.project().join("@output").exists());
}

#[test]
fn one_permission_opens_a_page_of_this_machine_and_a_project_cannot_give_it() {
    let opened = "tools: {private_hosts: [127.0.0.1]}\n";
    let wide = ["--allowed-tools", "WebFetch web_fetch WebFetch(domain:*:*)"];
    let table: [(&str, &[&str], bool); 5] = [
        ("", &LEAVE, true),
        (opened, &[], true),
        (opened, &["--permission-mode", "dontAsk"], true),
        ("", &[], false),
        ("", &wide, false),
    ];
    for (config, flags, is_read) in table {
        let server = reader(large_page());
        let ran = asked(&program(&server, config), flags);
        assert_eq!(ran.out, "done\n", "{ran:?}");
        let told = &server.requests()[1];
        assert_eq!(told.contains("line 0"), is_read, "{config} {flags:?}: {:?}", told.body);
        assert_eq!(
            told.contains("Not run: this needs the user's yes"),
            !is_read,
            "{config} {flags:?}: {:?}",
            told.body
        );
        assert_eq!(told.contains("--allowed-tools 'WebFetch(domain:127.0.0.1:"), !is_read, "{:?}", told.body);
    }

    let server = reader(large_page());
    let allowed = r#"{"permissions": {"allow": ["WebFetch(domain:127.0.0.1:*)"]}}"#;
    let strange = program(&server, "").file(".max-team/config.yaml", opened).file(".max-team/settings.json", allowed);
    let ran = asked(&strange, &[]);
    assert!(ran.err.contains("`tools.private_hosts` is held back"), "{ran:?}");
    assert!(server.requests()[1].contains("Not run: this needs the user's yes"), "{:?}", server.requests()[1].body);
}
