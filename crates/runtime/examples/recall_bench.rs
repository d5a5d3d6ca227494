//! How long it takes to find something among many memories.
//!
//! `cargo run --release -p max-team-runtime --example recall_bench -- 10000`
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark talks and fails loudly"
)]

use std::time::{Duration, Instant};

use max_team_core::event::{Event, VERSION};
use max_team_core::memory::{BoardScope, MemorySet, Source, Writer};
use max_team_journal::{Append, Commit, Journal, Options};
use max_team_runtime::{Memories, project_entry};
use serde_json::json;

const THINGS: [&str; 12] = [
    "tea", "bicycle", "deploy", "database", "holiday", "garden", "parser", "meeting", "invoice", "camera", "guitar",
    "train",
];
const PLACES: [&str; 8] =
    ["北京通州", "上海浦东", "深圳南山", "杭州西湖", "成都武侯", "广州天河", "南京玄武", "西安雁塔"];
const QUERIES: [&str; 6] = [
    "what do you know about number 4711?",
    "北京天气怎么样",
    "how was the deploy of the database to staging on the third of May",
    "我在上海浦东的自行车",
    "the garden and the camera and the guitar and the train and the tea and the invoice are remembered facts about projects",
    "something nobody ever said",
];
const ROUNDS: usize = 50;

fn main() {
    let count: usize = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(10_000);
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::open(folder.path(), Options::default()).unwrap();
    let scopes = [BoardScope::Project("/p".to_owned()), BoardScope::User];
    fill(&journal, &scopes, count);
    let began = Instant::now();
    journal.rebuild(project_entry).unwrap();
    println!("{count} memories, rows made again in {:?}", began.elapsed());
    let memories = Memories::new(&journal);
    for query in QUERIES {
        let mut times: Vec<Duration> = Vec::new();
        let mut found = 0;
        for _ in 0..ROUNDS {
            let began = Instant::now();
            found = memories.search(&scopes, query, 16).unwrap().len();
            times.push(began.elapsed());
        }
        times.sort_unstable();
        println!("{:>9.3?} median  {:>9.3?} worst  {found:>2} found  {query}", times[ROUNDS / 2], times[ROUNDS - 1]);
    }
}

/// Facts of a dozen words or so, half of them Chinese, most of which share words with many others.
fn fill(journal: &Journal, scopes: &[BoardScope], count: usize) {
    let mut commit = Commit { at_ms: 1, actor: "bench".to_owned(), ..Commit::default() };
    for n in 0..count {
        let (thing, place) = (THINGS[n / 2 % THINGS.len()], PLACES[n / 2 % PLACES.len()]);
        let words = if n % 2 == 0 {
            format!("The {thing} number {n} is a remembered fact about project {} and its staging area", n % 97)
        } else {
            format!("第{n}条：用户在{place}有一个项目，喜欢{}，周末常去郊外骑自行车", n % 89)
        };
        let set = Event::MemorySet(MemorySet {
            key: format!("notes.n{n}").parse().unwrap(),
            value: json!(words),
            by: Writer::Expert,
            source: Source::default(),
            over: Vec::new(),
        });
        commit.appends.push(Append {
            stream: scopes[n % 2].stream(),
            event: set.name().into(),
            version: VERSION,
            payload: serde_json::to_vec(&set).unwrap(),
            actor: "bench".to_owned(),
            cause: None,
        });
        if commit.appends.len() == 500 || n + 1 == count {
            commit.at_ms = i64::try_from(n).unwrap();
            let next = Commit { appends: Vec::new(), ..commit.clone() };
            journal.commit_blocking(std::mem::replace(&mut commit, next)).unwrap();
        }
    }
}
