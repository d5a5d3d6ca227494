//! A scripted model server as a process of its own, for benches and for playing by hand.
//!
//! `scripted --port 0 --turns 50 --tool read_file --args '{"path":"README.md"}' --final DONE --delay 50`
//!
//! The first line it prints is `{"url":"http://127.0.0.1:PORT"}`. Each conversation gets `turns` tool calls, then the
//! final text, each answer `delay` milliseconds after its question. It runs until it is killed. `GET /_log` gives
//! `[{n, path, label, arrive_us, send_us, end_us, bytes}]`, `DELETE /_log` forgets them; a client's own time per turn is the next `arrive_us` less the `send_us` before.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line program")]

mod flags;

use std::process::ExitCode;
use std::time::Duration;

use flags::Flags;
use max_team_testkit::{ModelServer, Script};
use serde_json::json;

const MODEL: &str = "scripted";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match start(&args) {
        Ok(server) => {
            println!("{}", json!({"url": server.url()}));
            loop {
                std::thread::park();
            }
        }
        Err(message) => {
            eprintln!("scripted: {message}");
            ExitCode::from(2)
        }
    }
}

fn start(args: &[String]) -> Result<ModelServer, String> {
    let flags = Flags::parse(args, &["--port", "--turns", "--tool", "--args", "--final", "--delay"])?;
    let args = flags.get("--args", json!({"path": "README.md"}))?;
    let tool = flags.get("--tool", "read_file".to_owned())?;
    let last = flags.get("--final", "DONE".to_owned())?;
    let delay = Duration::from_millis(flags.get("--delay", 0)?);
    let script = Script::tool_loop(flags.get("--turns", 50)?, tool, args, last).models([MODEL]).lean();
    let script = if delay.is_zero() { script } else { script.delay(delay) };
    Ok(ModelServer::start_on(flags.get("--port", 0)?, script))
}
