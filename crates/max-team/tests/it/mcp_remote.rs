//! MCP servers at an address, as the user meets them on the command line.

use std::io::Read;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use max_team_testkit::{ModelServer, Reply};

use crate::program::{Program, finish, signal};

#[test]
fn an_address_without_a_server_is_explained_in_the_user_s_language() {
    let free = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let program = Program::alone();
    assert_eq!(program.run(&["mcp", "add", "far", &format!("http://{free}/mcp")]).code, 0);
    let ran = program.run(&["mcp", "test", "far"]);
    let want = format!("the MCP server `far`: nothing listens at `{free}`: is the server running?");
    assert!(ran.code == 1 && ran.err.contains(&want), "{ran:?}");
    let program = program.variable("LANG", "zh_CN.UTF-8");
    let ran = program.run(&["mcp", "test", "far"]);
    assert!(ran.err.contains("没有程序在监听：服务器在运行吗？"), "{ran:?}");
}

#[test]
fn a_login_is_for_servers_that_offer_one() {
    let free = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let program = Program::alone();
    program.run(&["mcp", "add", "near", "--", "sh"]);
    program.run(&["mcp", "add", "far", &format!("http://{free}/mcp")]);
    program.run(&["mcp", "add", "keyed", "--header", "Authorization: Bearer x", &format!("http://{free}/mcp")]);
    for (arguments, code, words) in [
        (["login", "near"], 2, "`near` is a program on this machine and needs no login"),
        (["login", "keyed"], 2, "already has an `Authorization` header"),
        (["login", "far"], 1, "is the server running?"),
        (["logout", "far"], 0, "You were not signed in at `far`."),
    ] {
        let ran = program.run(&["mcp", arguments[0], arguments[1]]);
        assert!(ran.code == code && format!("{}{}", ran.out, ran.err).contains(words), "{ran:?}");
    }
}

#[test]
fn a_stop_is_heard_while_a_server_is_still_being_reached() {
    // It takes connections and says nothing.
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/mcp", silent.local_addr().unwrap());
    let server = ModelServer::start([Reply::text("hello")]);
    let program = Program::with(&server);
    let entry = format!(r#"{{"type": "http", "url": "{url}", "connectTimeout": 600000}}"#);
    assert_eq!(program.run(&["mcp", "add-json", "far", &entry]).code, 0);
    let child = program.start(&["-p", "hi"]);
    let (mut connection, _) = silent.accept().unwrap();
    assert!(connection.read(&mut [0; 1]).unwrap() > 0);
    let began = Instant::now();
    signal(&child, "INT");
    let ran = finish(child);
    assert!(began.elapsed() < Duration::from_secs(20) && ran.code == 130, "{ran:?}");
}
