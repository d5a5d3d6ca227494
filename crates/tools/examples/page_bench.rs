//! What it costs to make Markdown of a page: `fetch_page` from a server in this process, less the same without reading the
//! HTML. Exit 1 if a median is above its bar. `--json`: a line of figures for each page.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for benchmarks stops loudly")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use max_team_tools::{PageQuery, Root, Services, ToolContext, fetch_page};
use serde_json::json;

const RUNS: usize = 15;
/// Bytes of a page, and how long it may take.
const PAGES: [(usize, Duration); 2] = [(100_000, Duration::from_millis(15)), (1_000_000, Duration::from_millis(200))];

fn main() -> ExitCode {
    let port = serve();
    let services = Services { private_hosts: vec![format!("127.0.0.1:{port}")], ..Services::default() };
    let root = Root::open(std::env::temp_dir()).unwrap();
    let cx = ToolContext { services: Arc::new(services), ..ToolContext::new(Arc::new(root)) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let is_json = std::env::args().any(|word| word == "--json");
    let mut missed = false;
    for (bytes, bar) in PAGES {
        let fetch = |raw: bool| {
            let query = PageQuery { url: format!("http://127.0.0.1:{port}/{bytes}"), raw, ..PageQuery::default() };
            let began = Instant::now();
            let page = runtime.block_on(fetch_page(&cx, query)).unwrap();
            assert!(page.text.len() > bytes / 4 && !page.is_incomplete);
            began.elapsed()
        };
        let [whole, raw] = [false, true].map(|raw| median(|| fetch(raw)));
        let own = whole.saturating_sub(raw);
        missed |= own > bar;
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let figures = json!({ "bytes": bytes, "own_ms": ms(own), "whole_ms": ms(whole), "bar_ms": ms(bar) });
        match is_json {
            true => println!("{figures}"),
            false => println!("{:>8.2} ms for {bytes} bytes (bar {:.0} ms)", ms(own), ms(bar)),
        }
    }
    ExitCode::from(u8::from(missed))
}

fn median(mut run: impl FnMut() -> Duration) -> Duration {
    let mut times: Vec<Duration> = (0..RUNS).map(|_| run()).collect();
    times.sort();
    times.get(RUNS / 2).copied().unwrap()
}

/// Serves pages of the length that their path names.
fn serve() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let first = lines.next().unwrap().unwrap();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let bytes: usize = first.split(['/', ' ']).find_map(|word| word.parse().ok()).unwrap();
            let page = page(bytes);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n";
            write!(stream, "{head}Content-Length: {}\r\n\r\n{page}", page.len()).unwrap();
        }
    });
    port
}

/// A list of articles with many links, as the front page of a forum or a blog has it.
fn page(bytes: usize) -> String {
    let mut page = "<!doctype html><title>List</title><body><nav><a href=/>Home</a></nav><div id=content>".to_owned();
    for number in 0.. {
        page += &format!(
            "<div class='item row-{number}' id=i{number}><h3><a href='/a/{number}?x=1&amp;y=2'>The title of entry {number}</a></h3>\
             <p class=meta>By <a href=/u/{number}>the author</a> on <time>17 November</time></p><p>A sentence about the entry that is \
             long enough to be one, with <a href=../b/{number}>a link</a> in it and some more words to read after that.</p>\
             <ul class=list><li><a href=/t/1>one</a></li><li><a href=/t/2>two</a></li></ul></div>\n"
        );
        if page.len() >= bytes {
            break;
        }
    }
    page + "</div><footer>The end</footer>"
}
