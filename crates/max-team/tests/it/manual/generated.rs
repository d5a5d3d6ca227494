//! The parts of the reference that are made from the program. `UPDATE_MANUAL=1` writes them anew.
//!
//! Such a part stands between `<!-- generated: NAME -->` and `<!-- end -->`.

use std::collections::BTreeSet;

use super::{LANGUAGES, outline, pages, read, root};
use crate::program::Program;

const BEGIN: &str = "<!-- generated: ";
const END: &str = "<!-- end -->";

/// The words of help texts in one language.
struct HelpWords {
    locale: &'static str,
    options: &'static str,
    further: &'static str,
}

const ENGLISH: HelpWords = HelpWords {
    locale: "C.UTF-8",
    options: "Options:",
    further: "Further options: those of `max-team` for models, settings, plans and permissions.",
};
const CHINESE: HelpWords = HelpWords {
    locale: "zh_CN.UTF-8",
    options: "选项：",
    further: "其他选项：`max-team` 中关于模型、设置、计划和权限的选项。",
};

fn help(words: &[&str]) -> String {
    ENGLISH.help(words)
}

impl HelpWords {
    fn help(&self, words: &[&str]) -> String {
        let words: Vec<&str> = words.iter().copied().chain(["-h"]).collect();
        let ran = Program::alone().variable("LANG", self.locale).run(&words);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.out
    }
}

/// The names of commands in a help text, `help` aside.
fn commands(help: &str) -> Vec<String> {
    let lines = help.lines().take_while(|line| *line != "Options:" && *line != "Arguments:");
    let named =
        lines.filter(|line| line.starts_with("  ") && line.chars().nth(2).is_some_and(|c| c.is_ascii_lowercase()));
    let names = named.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help" && *name != "max-team").map(str::to_owned).collect()
}

/// Whether a line of help begins an option.
fn is_option(line: &str) -> bool {
    line.trim_start().starts_with('-') && line.starts_with("  ")
}

impl HelpWords {
    /// The options of a help text, each as one line of words.
    fn options(&self, help: &str) -> BTreeSet<String> {
        let mut options: Vec<String> = Vec::new();
        for line in help.lines().skip_while(|line| *line != self.options).skip(1) {
            if is_option(line) {
                options.push(String::new());
            } else if !line.starts_with("   ") {
                break;
            }
            if let Some(option) = options.last_mut() {
                *option = option.split_whitespace().chain(line.split_whitespace()).collect::<Vec<_>>().join(" ");
            }
        }
        options.into_iter().collect()
    }

    /// The help of a command without the options that every command has, and without those of `max-team` itself.
    fn own_help(&self, words: &[&str], common: &BTreeSet<String>) -> String {
        let text = self.help(words);
        let mut kept: Vec<String> = Vec::new();
        let (mut shared, mut skips) = (false, false);
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            if is_option(line) {
                let more = lines.iter().skip(index + 1).take_while(|next| next.starts_with("   ") && !is_option(next));
                let option: Vec<&str> =
                    std::iter::once(line).chain(more).flat_map(|line| line.split_whitespace()).collect();
                let option = option.join(" ");
                let everywhere = option.starts_with("--lang") || option.starts_with("-h,");
                skips = everywhere || common.contains(&option);
                shared |= skips && !everywhere;
            } else if !line.starts_with("   ") {
                skips = false;
            }
            if !skips {
                kept.push((*line).to_owned());
            }
        }
        let empty = format!("\n{}", self.options);
        let mut text = kept.join("\n").replace(&format!("{empty}\n\n"), "\n").trim_end().to_owned();
        text = text.strip_suffix(&empty).unwrap_or(&text).trim_end().to_owned();
        if shared {
            text.push_str(&format!("\n\n{}", self.further));
        }
        text
    }

    /// The help of every command.
    fn command_pages(&self) -> String {
        let top = self.help(&[]);
        let common = self.options(&top);
        let mut page = format!("## max-team\n\n```text\n{}\n```\n", top.trim_end());
        for name in commands(&help(&[])) {
            let own = self.own_help(&[&name], &common);
            page.push_str(&format!("\n## max-team {name}\n\n```text\n{own}\n```\n"));
            for inner in commands(&help(&[&name])) {
                let own = self.own_help(&[&name, &inner], &common);
                page.push_str(&format!("\n### max-team {name} {inner}\n\n```text\n{own}\n```\n"));
            }
        }
        page
    }
}

fn is_chinese(line: &str) -> bool {
    line.chars().any(|letter| ('\u{4e00}'..='\u{9fff}').contains(&letter))
}

/// The comment of a setting in one language. A continued line is of the language of the line before it.
fn comment(lines: &[String], language: &str) -> String {
    let first = lines.iter().position(|line| is_chinese(line)).unwrap_or(lines.len());
    let lines = if language == "zh" { lines.get(first..) } else { lines.get(..first) };
    lines.unwrap_or_default().join(" ").replace('|', "\\|")
}

fn settings(language: &str) -> String {
    let ran = Program::alone().run(&["config", "default"]);
    let head = if language == "zh" { "| 设置项 | 默认值 | 含义 |" } else { "| key | default | meaning |" };
    let mut page = format!("{head}\n|---|---|---|\n");
    let (mut section, mut notes) = (String::new(), Vec::new());
    for line in ran.out.lines() {
        let text = line.trim_start();
        if let Some(note) = text.strip_prefix('#') {
            notes.push(note.trim().to_owned());
            continue;
        }
        let Some((key, value)) = text.split_once(':') else {
            notes.clear();
            continue;
        };
        if value.trim().is_empty() {
            section = format!("{key}.");
            notes.clear();
            continue;
        }
        let key = if line.starts_with(' ') { format!("{section}{key}") } else { key.to_owned() };
        let (value, choices) = value.split_once('#').unwrap_or((value, ""));
        let choices = choices.trim().replace('|', "\\|");
        let choices = if choices.is_empty() { choices } else { format!(" `{choices}`") };
        page.push_str(&format!("| `{key}` | `{}` | {}{choices} |\n", value.trim(), comment(&notes, language)));
        notes.clear();
    }
    page
}

fn tool_table(language: &str) -> String {
    let ran = Program::alone().run(&["tools", "list", "--lang", language]);
    let head = if language == "zh" { "| 工具 | 类别 | 说明 |" } else { "| tool | class | what it does |" };
    let mut page = format!("{head}\n|---|---|---|\n");
    for line in ran.out.lines().skip(1) {
        let (name, rest) = line.split_once(' ').unwrap();
        let (class, about) = rest.trim_start().split_once(' ').unwrap();
        assert!(!about.trim().is_empty(), "a tool without words: {line}");
        page.push_str(&format!("| `{name}` | {class} | {} |\n", about.trim()));
    }
    page
}

/// A page with its generated parts made anew.
fn renewed(text: &str, language: &str) -> String {
    let mut pieces = text.split(BEGIN);
    let mut page = pieces.next().unwrap().to_owned();
    for piece in pieces {
        let (name, rest) = piece.split_once(" -->").unwrap();
        let (_, behind) = rest.split_once(END).unwrap_or_else(|| panic!("no end of {name}"));
        let made = match name {
            "commands" => if language == "zh" { CHINESE } else { ENGLISH }.command_pages(),
            "settings" => settings(language),
            "tools" => tool_table(language),
            other => panic!("nothing makes {other}"),
        };
        page.push_str(&format!("{BEGIN}{name} -->\n\n{}\n\n{END}{behind}", made.trim_end()));
    }
    page
}

#[test]
fn generated_parts_are_as_the_program_is() {
    let mut stale = Vec::new();
    for language in LANGUAGES {
        for (name, text) in pages(language) {
            if !text.contains(BEGIN) {
                continue;
            }
            let path = format!("docs/{language}/{name}");
            let made = renewed(&text, language);
            if made == text {
                continue;
            }
            if std::env::var_os("UPDATE_MANUAL").is_some() {
                std::fs::write(root().join(&path), made).unwrap();
            } else {
                stale.push(path);
            }
        }
    }
    assert!(stale.is_empty(), "{stale:?} differ from the program: run this test with UPDATE_MANUAL=1");
}

/// The first cells of the rows of a page's tables, without back-ticks.
fn first_cells(page: &str) -> BTreeSet<String> {
    let prose = outline(&read(page)).prose;
    let cells = prose.iter().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    cells.flat_map(|cell| cell.split(", ")).map(|cell| cell.trim_matches('`').to_owned()).collect()
}

#[test]
fn exit_codes_and_event_types_are_all_described() {
    let top = help(&[]);
    let (_, codes) = top.split_once("Exit codes: ").unwrap();
    let codes = codes.split(|c: char| !c.is_ascii_digit()).filter(|code| !code.is_empty()).map(str::to_owned);
    let events = help(&["events"]).split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, types) = events.split_once("several times [possible values: ").unwrap();
    let types = types.split_once(']').unwrap().0.split(", ").map(str::to_owned);
    let tables = [("exit-codes", codes.collect::<Vec<_>>()), ("events", types.collect())];
    for (page, wanted) in tables {
        for language in LANGUAGES {
            let page = format!("docs/{language}/reference/{page}.md");
            let described = first_cells(&page);
            let missing: Vec<&String> = wanted.iter().filter(|word| !described.contains(*word)).collect();
            assert!(missing.is_empty(), "{page} does not describe {missing:?}");
        }
    }
}
