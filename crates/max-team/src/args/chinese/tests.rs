//! Every command and argument has Chinese help, and usage errors are Chinese.

use std::collections::BTreeSet;

use clap::{CommandFactory as _, Parser as _};

use super::*;
use crate::args::Cli;
use crate::args::groups::grouped;

/// Words in a row from which a line counts as English.
const ENGLISH_WORDS: usize = 4;

/// The sections and names that the commands ask for; a name that `[*]` may have is true.
fn wanted(command: &Command, path: &str, found: &mut BTreeSet<(String, String)>) {
    let mut want = |name: &str| found.insert((path.to_owned(), name.to_owned()));
    want("about");
    if command.get_after_help().is_some() {
        want("note");
    }
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
        let id = arg.get_id().to_string();
        want(&id);
        let values = arg.get_possible_values().into_iter().filter(|value| value.get_help().is_some());
        for value in values.filter(|_| arg.get_action().takes_values()) {
            want(&format!("{id}={}", value.get_name()));
        }
    }
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help") {
        wanted(inner, format!("{path} {}", inner.get_name()).trim_start(), found);
    }
}

fn written() -> Vec<(String, String)> {
    let mut section = "";
    let mut found = Vec::new();
    for line in TEXTS.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(name) => section = name,
            None => found.push((section.to_owned(), line.split_once("  ").unwrap().0.to_owned())),
        }
    }
    found
}

#[test]
fn every_text_of_the_help_is_there_in_chinese() {
    let mut wished = BTreeSet::new();
    wanted(&Cli::command(), "", &mut wished);
    for (path, name) in &wished {
        let is_note = matches!(name.as_str(), "about" | "note");
        let found = text(path, name).or_else(|| text(SHARED, name).filter(|_| !is_note));
        assert!(found.is_some(), "`{name}` of `{path}` is missing in help.zh.txt");
    }
    let written = written();
    let once: BTreeSet<_> = written.iter().cloned().collect();
    assert_eq!(once.len(), written.len(), "a text is there twice");
    let names: BTreeSet<&str> = wished.iter().map(|(_, name)| name.as_str()).collect();
    for (section, name) in written.iter().filter(|(section, _)| section != PARSER) {
        let is_used = match section.as_str() {
            SHARED => names.contains(name.as_str()) || matches!(name.as_str(), "help" | "version" | "subcommand"),
            // Where English help has a heading, Chinese help may have a note.
            _ if name == "note" => wished.contains(&(section.clone(), "about".to_owned())),
            _ => wished.contains(&(section.clone(), name.clone())),
        };
        assert!(is_used, "`{name}` of `[{section}]` belongs to nothing");
    }
}

/// Whether a line has a run of words in English. Command lines and text in quotes or back-ticks are no words of ours.
fn is_english(line: &str) -> bool {
    let is_example = ["用法：", "max-team ", "git diff |", "claude mcp", "mkdir "]
        .iter()
        .any(|start| line.trim_start().starts_with(start));
    let prose: String =
        line.split('`').step_by(2).map(|part| part.split(['\'', '"']).step_by(2).collect::<String>()).collect();
    let is_word = |word: &&str| word.len() > 1 && word.chars().all(|c| c.is_ascii_lowercase());
    let words: Vec<&str> = prose.split_whitespace().collect();
    !is_example && words.windows(ENGLISH_WORDS).any(|run| run.iter().all(is_word))
}

fn helps(command: &mut Command, found: &mut Vec<String>) {
    found.push(command.render_long_help().to_string());
    found.push(command.render_help().to_string());
    command.get_subcommands_mut().for_each(|inner| helps(inner, found));
}

#[test]
fn no_help_has_english_sentences() {
    let mut found = Vec::new();
    helps(&mut grouped(Lang::Zh), &mut found);
    for help in found {
        for line in help.lines() {
            assert!(!is_english(line), "{line}\n\n{help}");
        }
        for heading in
            ["Usage:", "Options:", "Arguments:", "Commands:", "[default", "[possible", "[aliases", "Print help"]
        {
            assert!(!help.contains(heading), "{heading}\n\n{help}");
        }
    }
}

#[test]
fn help_is_laid_out() {
    let help = |name: &str| grouped(Lang::Zh).find_subcommand_mut(name).unwrap().render_long_help().to_string();
    insta::assert_snapshot!(help("cost"));
    assert!(help("mcp").contains("[别名：ls]"));
}

#[test]
fn usage_errors_are_chinese() {
    let table = [
        "run",
        "run a b",
        "run --nope x",
        "run --output-format xml x",
        "cost --since tomorrow",
        "cost --by",
        "sessions shwo",
        "-c -r x",
        "--max-turns 0",
        "fork x --at nowhere",
        "events --from x",
        "mail send alice",
    ];
    let mut said = String::new();
    for line in table {
        let words = std::iter::once("max-team").chain(line.split(' '));
        let error = usage_error(&Cli::try_parse_from(words).unwrap_err());
        assert!(!error.lines().any(is_english), "{error}");
        said.push_str(&format!("$ max-team {line}\n{error}\n\n"));
    }
    insta::assert_snapshot!(said);
}
