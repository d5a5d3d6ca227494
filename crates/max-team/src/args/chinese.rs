//! Help and usage errors in Chinese. The parser has English words only, so its headings are a template of ours, and the
//! texts of commands and arguments come from `help.zh.txt` by their names.

use clap::builder::PossibleValue;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use max_team_terminal::text::wrapped;
use max_team_workspace::i18n::Lang;

use super::groups::GROUPS;
use super::value_fault::ValueFault;

const TEXTS: &str = include_str!("help.zh.txt");
/// The section of texts that several commands share.
const SHARED: &str = "*";
/// The section of the parser's own words.
const PARSER: &str = "clap";
/// The parser breaks lines between words only, so Chinese text comes broken.
const TEXT_COLUMNS: usize = 68;
const NOTE_COLUMNS: usize = 78;
const NAME_COLUMNS: usize = 14;

/// The text of this name in a section.
fn text(section: &str, name: &str) -> Option<&'static str> {
    let heading = format!("[{section}]");
    let lines = TEXTS.lines().skip_while(|line| *line != heading).skip(1).take_while(|line| !line.is_empty());
    lines.filter_map(|line| line.split_once("  ")).find(|(known, _)| *known == name).map(|(_, text)| text)
}

/// A word of the parser.
pub(super) fn word(name: &str) -> &'static str {
    text(PARSER, name).unwrap_or_default()
}

/// A sentence of the parser with its values.
fn sentence(name: &str, values: &[&str]) -> String {
    values.iter().fold(word(name).to_owned(), |text, value| text.replacen("{}", value, 1))
}

fn broken(text: &str, columns: usize) -> String {
    text.split("\\n").flat_map(|line| wrapped(line, columns)).collect::<Vec<_>>().join("\n")
}

/// A command and all commands below it, for help in Chinese.
pub(super) fn in_chinese(mut command: Command) -> Command {
    // The parser adds `help` and the flags of all commands here.
    command.build();
    translated(command, "")
}

fn translated(command: Command, path: &str) -> Command {
    let command = command.mut_subcommands(|inner| {
        // Below `help` are the same commands again.
        let inside = if inner.get_name() == "help" { path.to_owned() } else { format!("{path} {}", inner.get_name()) };
        translated(inner, inside.trim_start())
    });
    let about = match command.get_name() {
        "help" => Some(word("help-command")),
        _ => text(path, "about"),
    };
    let command = match about {
        Some(about) => command.about(broken(about, NOTE_COLUMNS)).long_about(None),
        None => command,
    };
    let command = match text(path, "note") {
        Some(after) => command.after_help(broken(after, NOTE_COLUMNS)),
        None => command,
    };
    let command = command.mut_args(|arg| described(arg, path)).next_line_help(true);
    let template = template(&command, path);
    command.help_template(template)
}

/// An argument with its text, its values and its default.
fn described(arg: Arg, path: &str) -> Arg {
    let id = arg.get_id().to_string();
    // An option of a group of commands is also one of each command in it.
    let groups = std::iter::successors(Some(path), |path| path.rsplit_once(' ').map(|(group, _)| group));
    let find = |name: &str| groups.clone().chain([SHARED]).find_map(|section| text(section, name));
    let Some(about) = find(&id) else { return arg };
    let (mut short, mut long) = (about.to_owned(), about.to_owned());
    if arg.get_action().takes_values() {
        let is_shown = !arg.is_hide_possible_values_set();
        let values = arg.get_possible_values().into_iter().filter(|value| is_shown && !value.is_hide_set());
        let names: Vec<String> = values.map(|value: PossibleValue| value.get_name().to_owned()).collect();
        let told: Vec<String> =
            names.iter().filter_map(|name| Some(format!("- {name}：{}", find(&format!("{id}={name}"))?))).collect();
        let listed = format!(" {}", sentence("values", &[&names.join(", ")]));
        if !names.is_empty() {
            short.push_str(&listed);
        }
        match told.is_empty() {
            false => long.push_str(&format!("\\n{}\\n{}", word("value-list"), told.join("\\n"))),
            true if !names.is_empty() => long.push_str(&listed),
            true => {}
        }
        let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        if !arg.is_hide_default_value_set() && defaults.iter().any(|value| !value.is_empty()) {
            let default = sentence("default", &[&defaults.join(" ")]);
            short.push_str(&format!(" {default}"));
            let gap = if told.is_empty() { " " } else { "\\n" };
            long.push_str(&format!("{gap}{default}"));
        }
    }
    let help = broken(&short, TEXT_COLUMNS);
    arg.help(help).long_help(broken(&long, TEXT_COLUMNS)).hide_possible_values(true).hide_default_value(true)
}

/// The parts of help under headings of ours.
fn template(command: &Command, path: &str) -> String {
    let mut text = format!("{{about-with-newline}}\n{} {{usage}}\n\n", word("usage"));
    let inner: Vec<&Command> = command.get_subcommands().filter(|inner| !inner.is_hide_set()).collect();
    if path.is_empty() && command.get_name() != "help" {
        for (group, names) in GROUPS {
            let found: Vec<&Command> = names.iter().filter_map(|name| command.find_subcommand(name)).collect();
            text.push_str(&listed(word(group), &found));
        }
        text.push_str(&format!("{}\n\n", word("more")));
    } else if !inner.is_empty() {
        text.push_str(&listed(word("commands"), &inner));
    }
    if command.get_positionals().any(|arg| !arg.is_hide_set()) {
        text.push_str(&format!("{}\n{{positionals}}\n\n", word("arguments")));
    }
    if command.get_opts().chain(command.get_arguments()).any(|arg| !arg.is_positional() && !arg.is_hide_set()) {
        text.push_str(&format!("{}\n{{options}}", word("options")));
    }
    text.push_str("{after-help}");
    text
}

fn listed(heading: &str, commands: &[&Command]) -> String {
    let mut text = format!("{heading}\n");
    for command in commands {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default().replace('\n', "");
        let aliases: Vec<&str> = command.get_visible_aliases().collect();
        let alias =
            if aliases.is_empty() { String::new() } else { format!(" {}", sentence("alias", &[&aliases.join(", ")])) };
        text.push_str(&format!("  {:NAME_COLUMNS$} {about}{alias}\n", command.get_name()));
    }
    text.push('\n');
    text
}

/// A usage error in Chinese, from the parser's kinds and values.
pub(crate) fn usage_error(error: &clap::Error) -> String {
    let mut lines = vec![sentence("error", &[&said(error)])];
    for near in [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue] {
        let near = values(error, near);
        if !near.is_empty() {
            lines.push(format!("  {}", sentence("nearest", &[&near.join("`, `")])));
        }
    }
    if let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) {
        let usage = usage.to_string();
        lines.push(format!("\n{} {}", word("usage"), usage.split_once(": ").map_or("", |(_, usage)| usage)));
    }
    lines.push(format!("\n{}", word("try-help")));
    lines.join("\n")
}

/// The texts of one kind in an error.
fn values(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        Some(ContextValue::Number(number)) => vec![number.to_string()],
        _ => Vec::new(),
    }
}

fn said(error: &clap::Error) -> String {
    let all = |kind| values(error, kind).join(" ");
    let (arg, command) = (all(ContextKind::InvalidArg), all(ContextKind::InvalidSubcommand));
    let (value, prior) = (all(ContextKind::InvalidValue), all(ContextKind::PriorArg));
    let given = all(ContextKind::ActualNumValues);
    match error.kind() {
        ErrorKind::UnknownArgument => sentence("unknown-argument", &[&arg]),
        ErrorKind::InvalidSubcommand => sentence("unknown-command", &[&command]),
        ErrorKind::MissingRequiredArgument => sentence("missing", &[&arg]),
        ErrorKind::MissingSubcommand => sentence("missing-command", &[&command]),
        ErrorKind::ArgumentConflict if arg == prior => sentence("twice", &[&arg]),
        ErrorKind::ArgumentConflict if prior.is_empty() => sentence("conflict-alone", &[&format!("{arg}{command}")]),
        ErrorKind::ArgumentConflict => sentence("conflict", &[&format!("{arg}{command}"), &prior]),
        ErrorKind::InvalidValue if value.is_empty() => format!("{}{}", sentence("no-value", &[&arg]), allowed(error)),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            format!("{}{}", sentence("invalid-value", &[&value, &arg]), allowed(error))
        }
        ErrorKind::TooManyValues => sentence("too-many", &[&value, &arg]),
        ErrorKind::TooFewValues => sentence("too-few", &[&arg, &all(ContextKind::MinValues), &given]),
        ErrorKind::WrongNumberOfValues => {
            sentence("wrong-number", &[&arg, &all(ContextKind::ExpectedNumValues), &given])
        }
        ErrorKind::NoEquals => sentence("no-equals", &[&arg]),
        ErrorKind::InvalidUtf8 => word("not-utf8").to_owned(),
        _ => word("not-understood").to_owned(),
    }
}

/// The values that are allowed instead, where the parser or our check knows them.
fn allowed(error: &clap::Error) -> String {
    let fault = std::error::Error::source(error).and_then(|source| source.downcast_ref::<ValueFault>());
    let names = values(error, ContextKind::ValidValue);
    match fault {
        Some(fault) => format!("：{}", fault.words(Lang::Zh)),
        None if names.is_empty() => String::new(),
        None => format!("\n  {}", sentence("values", &[&names.join(", ")])),
    }
}

#[cfg(test)]
mod tests;
