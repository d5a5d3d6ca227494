//! The cost of MCP servers: memory of servers that are not used, time that a call adds, and leaks after many calls and restarts.
//!
//! `scripts/bench.sh mcp` runs it and reads the numbers that it prints. The example is also the server that it measures:
//! `mcp_bench serve`.
#![expect(clippy::print_stdout, reason = "a command line program")]

max_team_tools::command::child_before_main!();

use std::error::Error;
use std::fs;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use max_team_core::mcp::{HttpTransport, McpServer};
use max_team_mcp::{Launch, ServerEntry, Servers};
use max_team_tools::{Handler, RemoteTool, Root, ToolContext, ToolSources, run_remote};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

type Failure = Box<dyn Error>;

const KNOWN: usize = 100;
const SLOW: usize = 50;
const CALLS: usize = 10_000;
const RESTARTS: usize = 100;

fn main() -> Result<(), Failure> {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        return serve();
    }
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(measure())
}

/// A server with a tool that answers, one that only reads and ends the server, and nothing else.
fn serve() -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let asked: Value = serde_json::from_str(&line?)?;
        let result = match asked.get("method").and_then(Value::as_str).unwrap_or_default() {
            "initialize" => json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                                    "serverInfo": { "name": "bench", "version": "1" } }),
            "tools/list" => json!({ "tools": [
                { "name": "echo", "inputSchema": { "type": "object" } }, { "name": "die", "inputSchema": { "type": "object" } },
            ] }),
            "tools/call" if asked.pointer("/params/name") == Some(&json!("die")) => return Ok(()),
            "tools/call" => json!({ "content": [{ "type": "text", "text": "hello" }] }),
            _ if asked.get("id").is_none() => continue,
            _ => {
                let error = json!({ "code": -32601, "message": "unknown" });
                writeln!(out, "{}", json!({ "jsonrpc": "2.0", "id": asked.get("id"), "error": error }))?;
                out.flush()?;
                continue;
            }
        };
        writeln!(out, "{}", json!({ "jsonrpc": "2.0", "id": asked.get("id"), "result": result }))?;
        out.flush()?;
    }
    Ok(())
}

struct Bench {
    folder: PathBuf,
}

impl Bench {
    fn servers(&self) -> Servers {
        let (root, home) = (self.folder.clone(), self.folder.join("home"));
        Servers::new(Launch { root, home, user: None, sandboxed: false }, None)
    }

    fn own(name: &str) -> Result<ServerEntry, Failure> {
        let command = std::env::current_exe()?.display().to_string();
        let server = McpServer { name: name.into(), command, args: vec!["serve".into()], ..McpServer::default() };
        Ok(ServerEntry { source: name.into(), server, pin: None })
    }

    async fn call(&self, tool: &Arc<dyn RemoteTool>) -> Result<(), Failure> {
        let cx = ToolContext::new(Arc::new(Root::open(&self.folder)?));
        let action = tool.action(&cx, &json!({}))?;
        run_remote(Arc::clone(tool), cx, json!({}), action, false).await?;
        Ok(())
    }
}

fn tool(servers: &Servers, source: &str, name: &str) -> Result<Arc<dyn RemoteTool>, Failure> {
    let tools = servers.source(source).ok_or("no source")?.tools();
    let remote = tools.into_iter().filter_map(|tool| match tool {
        Handler::Remote(tool) => Some(tool),
        _ => None,
    });
    let found = remote.into_iter().find(|tool| tool.spec().name.ends_with(name));
    found.ok_or_else(|| format!("no tool {name}").into())
}

/// Kilobytes of memory, open files and child processes of this process.
fn used() -> Result<(usize, usize, usize), Failure> {
    let status = fs::read_to_string("/proc/self/status")?;
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    let memory = memory.trim().trim_end_matches(" kB").trim().parse()?;
    let files = fs::read_dir("/proc/self/fd")?.count();
    let own = format!("\nPPid:\t{}\n", std::process::id());
    let all = fs::read_dir("/proc")?.flatten().map(|entry| entry.path().join("status"));
    let children = all.filter_map(|path| fs::read_to_string(path).ok()).filter(|status| status.contains(&own)).count();
    Ok((memory, files, children))
}

async fn measure() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let bench = Bench { folder: folder.path().canonicalize()? };
    let servers = bench.servers();
    servers.set(vec![Bench::own("one")?]);
    servers.get("one").ok_or("no server")?.refresh().await?;
    let echo = tool(&servers, "one", "echo")?;
    let measured = json!({
        "known": idle(&bench)?,
        "call": speed(&bench, &echo).await?,
        "slow": slow(&bench).await?,
        "leaks": leaks(&bench, &servers, &echo).await?,
    });
    println!("{measured}");
    Ok(())
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Known servers that no agent uses.
fn idle(bench: &Bench) -> Result<Value, Failure> {
    let (before, files, children) = used()?;
    let servers = bench.servers();
    servers.set((0..KNOWN).map(|at| Bench::own(&format!("s{at}"))).collect::<Result<_, _>>()?);
    let tools: usize = servers.statuses().iter().map(|status| status.tools).sum();
    let (after, files_now, children_now) = used()?;
    Ok(json!({
        "servers": KNOWN, "tools": tools, "kb": after.saturating_sub(before),
        "files": files_now.saturating_sub(files), "processes": children_now.saturating_sub(children),
    }))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// A call against the bare exchange of two lines with the same program.
async fn speed(bench: &Bench, echo: &Arc<dyn RemoteTool>) -> Result<Value, Failure> {
    let mut child = tokio::process::Command::new(std::env::current_exe()?)
        .arg("serve")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()?;
    let (mut to, from) = (child.stdin.take().ok_or("no input")?, child.stdout.take().ok_or("no output")?);
    let (mut lines, mut bare, mut ours) = (BufReader::new(from).lines(), Vec::new(), Vec::new());
    let request =
        format!("{}\n", json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "echo" } }));
    for _ in 0..1_000 {
        let began = Instant::now();
        to.write_all(request.as_bytes()).await?;
        lines.next_line().await?;
        bare.push(began.elapsed());
        let began = Instant::now();
        bench.call(echo).await?;
        ours.push(began.elapsed());
    }
    drop(to);
    child.wait().await?;
    let (bare, ours) = (median(bare), median(ours));
    let added = ours.saturating_sub(bare);
    Ok(json!({ "call_us": micros(ours), "bare_us": micros(bare), "added_us": micros(added) }))
}

/// Servers that never answer, at work while a file is read.
async fn slow(bench: &Bench) -> Result<Value, Failure> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            open.push(stream);
        }
    });
    let file = bench.folder.join("file.txt");
    fs::write(&file, "hello")?;
    let read = async |path: &Path| {
        let mut times = Vec::new();
        for _ in 0..200 {
            let (began, path) = (Instant::now(), path.to_owned());
            tokio::task::spawn_blocking(move || fs::read(path)).await??;
            times.push(began.elapsed());
        }
        Ok::<_, Failure>(median(times))
    };
    let before = read(&file).await?;
    let servers = bench.servers();
    let entry = |at: usize| {
        let (name, transport, connect_ms) = (format!("slow{at}"), HttpTransport::Http, Some(600_000));
        let server =
            McpServer { name: name.clone(), url: format!("{url}/{at}"), transport, connect_ms, ..McpServer::default() };
        ServerEntry { source: name, server, pin: None }
    };
    servers.set((0..SLOW).map(entry).collect());
    let waits: Vec<_> =
        servers.list().into_iter().map(|(_, server)| tokio::spawn(async move { server.refresh().await })).collect();
    let during = read(&file).await?;
    waits.iter().for_each(tokio::task::JoinHandle::abort);
    Ok(json!({ "servers": waits.len(), "read_us": micros(during), "read_alone_us": micros(before) }))
}

/// Files, memory and processes after many calls and restarts.
async fn leaks(bench: &Bench, servers: &Servers, echo: &Arc<dyn RemoteTool>) -> Result<Value, Failure> {
    let before = used()?;
    for _ in 0..CALLS {
        bench.call(echo).await?;
    }
    let called = used()?;
    let die = tool(servers, "one", "die")?;
    for _ in 0..RESTARTS {
        drop(bench.call(&die).await);
        bench.call(echo).await?;
    }
    let ended = used()?;
    let grown = |from: (usize, usize, usize), to: (usize, usize, usize)| {
        json!({ "kb": to.0.saturating_sub(from.0), "files": to.1.saturating_sub(from.1),
                "processes": to.2.saturating_sub(from.2) })
    };
    Ok(
        json!({ "calls": CALLS, "after_calls": grown(before, called), "restarts": RESTARTS, "after_restarts": grown(called, ended) }),
    )
}
