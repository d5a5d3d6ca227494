//! The main text of pages of different kinds, each with the text that a reader of it wants.
//!
//! A page is `pages/KIND-NAME.html`; the text is in the file `.txt` beside it. The pages have the shapes of real sites
//! (navigation, cookie banners, sidebars, related links, footers, tables for layout) around texts of this project.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use max_team_tools::{PageQuery, Services, fetch_page};

use crate::project::Project;
use crate::web::{Server, reply};

/// Words of a text; a Chinese character counts as one.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    for letter in text.chars() {
        let is_han = ('\u{4e00}'..='\u{9fff}').contains(&letter);
        if (is_han || !letter.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        match is_han {
            true => words.push(letter.to_string()),
            false if letter.is_alphanumeric() => word.extend(letter.to_lowercase()),
            false => {}
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

/// A Markdown text without the addresses of its links.
fn without_addresses(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        out.push_str(before);
        out.push(' ');
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    out + rest
}

#[derive(Debug, Default)]
struct Tally {
    pages: usize,
    wanted: usize,
    found: usize,
    told: usize,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.pages += other.pages;
        self.wanted += other.wanted;
        self.found += other.found;
        self.told += other.told;
    }

    /// At least 95 % of the wanted words are there, and at most 10 % of the words are others.
    fn check(&self, name: &str) {
        let Self { wanted, found, told, .. } = self;
        assert!(found * 100 >= wanted * 95, "{name}: {found} of {wanted} words");
        assert!((told - found) * 100 <= told * 10, "{name}: {} of {told} words are not of the text", told - found);
    }
}

/// Reads the pages of a folder with `web_fetch` and compares them with their texts, for each kind of page.
fn tally(folder: &Path) -> BTreeMap<String, Tally> {
    let names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.strip_suffix(".html").map(str::to_owned))
        .collect();
    let pages = folder.to_owned();
    let server = Server::new(move |path, stream| {
        let page = std::fs::read(pages.join(path.trim_start_matches('/'))).unwrap();
        reply(stream, "200 OK", "Content-Type: text/html; charset=utf-8", page);
    });
    let mut project = Project::new();
    let private_hosts = vec![format!("127.0.0.1:{}", server.port)];
    project.cx.services = Arc::new(Services { private_hosts, ..Services::default() });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut kinds: BTreeMap<String, Tally> = BTreeMap::new();
    for name in &names {
        let url = format!("http://127.0.0.1:{}/{name}.html", server.port);
        let page = runtime.block_on(fetch_page(&project.cx, PageQuery { url, ..PageQuery::default() })).unwrap();
        let wanted = words(&std::fs::read_to_string(folder.join(format!("{name}.txt"))).unwrap());
        let told = words(&without_addresses(&page.text));
        let mut left: HashMap<&str, usize> = HashMap::new();
        wanted.iter().for_each(|word| *left.entry(word).or_default() += 1);
        for word in &told {
            let left = left.entry(word).or_default();
            *left = left.saturating_sub(1);
        }
        let missing: usize = left.values().sum();
        let found = wanted.len() - missing;
        let page = Tally { pages: 1, wanted: wanted.len(), found, told: told.len() };
        kinds.entry(name.split('-').next().unwrap().to_owned()).or_default().add(&page);
    }
    kinds
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(name)
}

fn sum(kinds: &BTreeMap<String, Tally>) -> Tally {
    let mut all = Tally::default();
    kinds.values().for_each(|kind| all.add(kind));
    all
}

#[test]
fn the_main_text_of_pages_of_many_kinds_is_found() {
    let kinds = tally(&folder("pages"));
    assert!(kinds.len() >= 6 && sum(&kinds).pages >= 30, "{kinds:?}");
    kinds.iter().for_each(|(kind, tally)| tally.check(kind));
}

/// These pages have the names, the nesting and the clutter of common software for sites. Their texts hold also what a
/// reader uses beside the text itself: the author and the date, the names and dates in a discussion, votes and stock.
#[test]
fn the_main_text_of_pages_by_another_author_is_found() {
    let kinds = tally(&folder("pages/independent"));
    let all = sum(&kinds);
    assert!(kinds.len() >= 6 && all.pages >= 30, "{kinds:?}");
    all.check("all pages");
}

/// Unchanged documentation pages of other projects: Sphinx, MkDocs, Doxygen, mdBook, Texinfo, hand-written ones. Their texts were
/// taken from the pages' sources before our output was looked at.
#[test]
fn the_main_text_of_published_pages_is_found() {
    let kinds = tally(&folder("pages/published"));
    let all = sum(&kinds);
    assert!(kinds.len() >= 6 && all.pages >= 12, "{kinds:?}");
    all.check("all pages");
}
