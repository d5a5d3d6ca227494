//! The manual: equal in both languages, without dead links, with examples that run, and with tables made from the program.

mod examples;
mod generated;

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

const LANGUAGES: [&str; 2] = ["en", "zh"];
/// The pages outside `docs`, in English and in Chinese.
const FRONT: [&str; 2] = ["README.md", "README.zh-CN.md"];
/// Further pages whose links must hold.
const OTHER: [&str; 3] = ["AGENTS.md", "ARCHITECTURE.md", "CHANGELOG.md"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The pages of a language by their path below `docs/LANGUAGE`.
fn pages(language: &str) -> BTreeMap<String, String> {
    let top = root().join("docs").join(language);
    let (mut folders, mut pages) = (vec![top.clone()], BTreeMap::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(&top).unwrap().to_str().unwrap().to_owned();
            pages.insert(name, std::fs::read_to_string(path).unwrap());
        }
    }
    pages
}

/// A fenced block: the words behind its fence, and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Block {
    info: String,
    text: String,
}

impl Block {
    /// The language of the block.
    fn kind(&self) -> &str {
        self.info.split_whitespace().next().unwrap_or_default()
    }

    /// The value of a word such as `file=PATH` behind the fence.
    fn value(&self, name: &str) -> Option<&str> {
        self.info.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }

    /// The text that both languages must share: output for people is translated, comments and quoted prompts are too.
    fn shared(&self) -> String {
        if matches!(self.kind(), "text" | "") {
            return String::new();
        }
        let lines = self.text.lines().map(|line| uncommented(line).trim_end().to_owned());
        lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
    }
}

/// A line of a shell or YAML block without its comment.
fn uncommented(line: &str) -> &str {
    if line.trim_start().starts_with('#') {
        return "";
    }
    line.split_once(" # ").map_or(line, |(code, _)| code)
}

/// A page in parts: its headings (level and title) and its blocks.
#[derive(Debug, Default)]
struct Outline {
    headings: Vec<(usize, String)>,
    blocks: Vec<Block>,
    /// The lines outside of blocks.
    prose: Vec<String>,
}

fn outline(text: &str) -> Outline {
    let mut outline = Outline::default();
    let mut fence: Option<(String, Block)> = None;
    for line in text.lines() {
        let ticks: String = line.chars().take_while(|letter| *letter == '`').collect();
        fence = match fence {
            Some((open, block)) if ticks == open => {
                outline.blocks.push(block);
                None
            }
            Some((open, mut block)) => {
                block.text.push_str(line);
                block.text.push('\n');
                Some((open, block))
            }
            None if ticks.len() >= 3 => {
                let info = line.trim_start_matches('`').to_owned();
                Some((ticks, Block { info, text: String::new() }))
            }
            None => {
                let level = line.chars().take_while(|letter| *letter == '#').count();
                if level > 0 && line.chars().nth(level) == Some(' ') {
                    outline.headings.push((level, line.get(level + 1..).unwrap_or_default().to_owned()));
                }
                outline.prose.push(line.to_owned());
                None
            }
        };
    }
    assert!(fence.is_none(), "a block without an end: {fence:?}");
    outline
}

/// Pages that are shown beside each other: the name of the English one, and both texts.
fn pairs() -> Vec<(String, String, String)> {
    let [english, chinese] = LANGUAGES.map(pages);
    let names: Vec<&String> = english.keys().collect();
    assert_eq!(names, chinese.keys().collect::<Vec<_>>(), "both languages have the same pages");
    let docs = english.iter().map(|(name, text)| (format!("docs/en/{name}"), text.clone(), chinese[name].clone()));
    let [front, front_zh] = FRONT;
    docs.chain([(front.to_owned(), read(front), read(front_zh))]).collect()
}

#[test]
fn both_languages_have_the_same_pages_headings_and_examples() {
    for (name, english, chinese) in pairs() {
        let (english, chinese) = (outline(&english), outline(&chinese));
        let levels = |page: &Outline| page.headings.iter().map(|(level, _)| *level).collect::<Vec<_>>();
        assert_eq!(
            levels(&english),
            levels(&chinese),
            "headings of {name}: {:#?} {:#?}",
            english.headings,
            chinese.headings
        );
        let blocks = |page: &Outline| page.blocks.iter().map(|block| block.info.clone()).collect::<Vec<_>>();
        assert_eq!(blocks(&english), blocks(&chinese), "blocks of {name}");
        for (one, other) in english.blocks.iter().zip(&chinese.blocks) {
            assert_eq!(one.shared(), other.shared(), "a block of {name}");
        }
    }
}

/// The name that a heading has in addresses.
fn anchor(title: &str) -> String {
    let kept = title.to_lowercase();
    let kept = kept.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_' | ' '));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

/// The targets of the links in a line, code aside.
fn links(line: &str) -> Vec<String> {
    let prose: String = line.split('`').step_by(2).collect();
    prose.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

fn resolve(page: &str, link: &str) -> PathBuf {
    let mut path = PathBuf::from(page);
    path.pop();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => assert!(path.pop(), "{page}: {link}"),
            part => path.push(part),
        }
    }
    path
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let docs = LANGUAGES.iter().flat_map(|language| {
        pages(language).into_iter().map(move |(name, text)| (format!("docs/{language}/{name}"), text))
    });
    let others = FRONT.iter().chain(&OTHER).map(|name| ((*name).to_owned(), read(name)));
    let mut broken = Vec::new();
    for (page, text) in docs.chain(others) {
        for link in outline(&text).prose.iter().flat_map(|line| links(line)) {
            if link.starts_with("http") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { PathBuf::from(&page) } else { resolve(&page, file) };
            let found = root().join(&target);
            let is_there = found.exists()
                && (heading.is_empty() || {
                    let headings = outline(&std::fs::read_to_string(found).unwrap()).headings;
                    headings.iter().any(|(_, title)| anchor(title) == heading)
                });
            if !is_there {
                broken.push(format!("{page}: {link}"));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// A page that no other page of the manual leads to is not found by anyone.
#[test]
fn the_index_of_each_language_lists_every_page() {
    for language in LANGUAGES {
        let pages = pages(language);
        let index: Vec<String> = outline(&pages["README.md"]).prose.iter().flat_map(|line| links(line)).collect();
        let missing: Vec<&String> = pages.keys().filter(|name| *name != "README.md" && !index.contains(name)).collect();
        assert!(missing.is_empty(), "docs/{language}/README.md does not list {missing:?}");
    }
}
