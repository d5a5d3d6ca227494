//! The examples in the help of every command, from `examples.txt`.

use max_team_workspace::i18n::Lang;

use super::chinese;

const SECTIONS: &str = include_str!("examples.txt");
const INDENT: usize = 2;
/// Columns between the longest command line and the remarks.
const GAP: usize = 3;

/// One example: a command line, and a remark that may be empty.
struct Example<'a> {
    line: &'a str,
    remark: &'a str,
}

/// Adds the examples to the help of a command and of all commands below it. Parsing needs no examples, so only help and the
/// manual page pay for them.
pub(super) fn with_examples(command: clap::Command, lang: Lang) -> clap::Command {
    add(command, "", lang)
}

fn add(command: clap::Command, path: &str, lang: Lang) -> clap::Command {
    let command = command.mut_subcommands(|inner| {
        let path = format!("{path} {}", inner.get_name());
        add(inner, path.trim_start(), lang)
    });
    let examples = section(path, lang);
    if examples.is_empty() {
        return command;
    }
    let notes = command.get_after_help().map(|notes| format!("\n\n{notes}")).unwrap_or_default();
    command.after_help(format!("{}{notes}", listed(&examples, lang)))
}

/// The examples of one command, by its name without `max-team`.
fn section(path: &str, lang: Lang) -> Vec<Example<'static>> {
    let heading = format!("[{path}]");
    let lines = SECTIONS.lines().skip_while(|line| *line != heading).skip(1);
    lines.take_while(|line| !line.is_empty()).map(|line| example(line, lang)).collect()
}

fn example(line: &str, lang: Lang) -> Example<'_> {
    let mut parts = line.split("  ").map(str::trim);
    let line = parts.next().unwrap_or_default();
    let (english, chinese) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    Example { line, remark: if lang == Lang::Zh { chinese } else { english } }
}

/// The examples under their heading, with all remarks in one column.
fn listed(examples: &[Example<'_>], lang: Lang) -> String {
    let remarked = examples.iter().filter(|example| !example.remark.is_empty());
    let column = remarked.map(|example| example.line.chars().count()).max().unwrap_or_default() + GAP;
    let heading = match lang {
        Lang::Zh => chinese::word("example"),
        Lang::En if examples.len() == 1 => "Example:",
        Lang::En => "Examples:",
    };
    let mut text = heading.to_owned();
    for Example { line, remark } in examples {
        let row = format!("{:INDENT$}{line:column$}{remark}", "");
        text.push('\n');
        text.push_str(row.trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ffi::OsString;

    use clap::{CommandFactory as _, Parser as _};

    use super::*;
    use crate::args::{Cli, command_first, spelled_out};

    /// The columns of help (`max_term_width`); longer lines are broken.
    const COLUMNS: usize = 100;

    /// The names of a command and of all visible commands below it, without `max-team`.
    fn visible(command: &clap::Command, path: &str) -> BTreeSet<String> {
        let inner = command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help");
        let below = inner.flat_map(|inner| visible(inner, format!("{path} {}", inner.get_name()).trim_start()));
        below.chain([path.to_owned()]).collect()
    }

    fn sections() -> Vec<&'static str> {
        SECTIONS.lines().filter_map(|line| line.strip_prefix('[')?.strip_suffix(']')).collect()
    }

    /// The calls of this program in a command line, such as both of `max-team plans show > FILE && max-team run FILE`.
    fn calls(line: &str) -> Vec<Vec<String>> {
        let words = shlex::split(line).unwrap_or_else(|| panic!("open quotes: {line}"));
        let parts = words.split(|word| matches!(word.as_str(), "|" | "&&"));
        let parts = parts.map(|part| part.split(|word| word == ">").next().unwrap_or_default());
        // Another program may start this one: `claude mcp add max-team -- max-team mcp serve`.
        let call = |part: &[String]| {
            let is_ours = |word: &String| word == "max-team";
            let start = if part.first().is_some_and(is_ours) { Some(0) } else { part.iter().rposition(is_ours) };
            start.and_then(|start| part.get(start..)).map(<[String]>::to_vec)
        };
        parts.filter_map(call).collect()
    }

    #[test]
    fn every_visible_command_has_examples_that_call_it() {
        let sections = sections();
        let named: BTreeSet<String> = sections.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(named.len(), sections.len(), "two sections of one name");
        assert_eq!(named, visible(&Cli::command(), ""));
        for name in sections {
            let wanted: Vec<&str> = ["max-team"].into_iter().chain(name.split_whitespace()).collect();
            let calls: Vec<Vec<String>> =
                section(name, Lang::En).iter().flat_map(|example| calls(example.line)).collect();
            let is_called =
                calls.iter().any(|call| call.iter().zip(&wanted).filter(|(a, b)| a == b).count() == wanted.len());
            assert!(is_called, "`{}` has no example that calls it", wanted.join(" "));
        }
    }

    #[test]
    fn every_line_of_the_examples_is_understood() {
        for Example { line, .. } in sections().into_iter().flat_map(|name| section(name, Lang::En)) {
            let calls = calls(line);
            assert!(!calls.is_empty(), "no call: {line}");
            for call in calls {
                let words = spelled_out(command_first(call.iter().map(OsString::from).collect()));
                assert!(Cli::try_parse_from(words).is_ok(), "not understood: {line}");
            }
        }
    }

    #[test]
    fn the_examples_are_in_the_help_and_fit_the_screen() {
        let mut command = with_examples(Cli::command(), Lang::En);
        for name in sections() {
            let inner =
                name.split_whitespace().try_fold(&mut command, |at, name| at.find_subcommand_mut(name)).unwrap();
            let help = inner.get_after_help().unwrap().to_string();
            let shown = listed(&section(name, Lang::En), Lang::En);
            assert!(help.starts_with(&shown), "{help}");
            assert!(shown.lines().all(|line| line.chars().count() <= COLUMNS), "{shown}");
        }
    }

    #[test]
    fn every_remark_is_in_both_languages() {
        for name in sections() {
            for (english, chinese) in section(name, Lang::En).iter().zip(section(name, Lang::Zh)) {
                assert_eq!(english.remark.is_empty(), chinese.remark.is_empty(), "{}", english.line);
            }
        }
    }

    #[test]
    fn remarks_stand_in_one_column() {
        let examples = ["a -b  one  一", "longer  two  二", "the longest of all"].map(|line| example(line, Lang::En));
        let shown = "Examples:\n  a -b     one\n  longer   two\n  the longest of all";
        assert_eq!(listed(&examples, Lang::En), shown);
        assert_eq!(listed(&[example("a", Lang::En)], Lang::En), "Example:\n  a");
    }
}
