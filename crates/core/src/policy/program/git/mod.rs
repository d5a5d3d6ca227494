//! Git: general options before the sub-command, and sub-commands that are several in one.
//!
//! Git runs programs that its configuration names (pagers, drivers, helpers, hooks), so an option that changes the
//! configuration may run an unknown program. Commands that show contents of the history are treated separately, because
//! the history may hold files that are hidden in the folder.

mod contents;
mod discards;
mod forms;
mod history;

pub use discards::discarded_paths;
pub use history::HistoryQuery;

use super::{CommandEffect, CommandFacts, by_row, flags, host, table};
use crate::policy::HiddenReason;

/// Keys that never name a program. A key that ends in `.` stands for its whole section.
const SAFE_KEYS: [&str; 44] = [
    "advice.",
    "branch.sort",
    "color.",
    "column.",
    "core.abbrev",
    "core.autocrlf",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.quotepath",
    "core.safecrlf",
    "core.whitespace",
    "diff.algorithm",
    "diff.colormoved",
    "diff.context",
    "diff.interhunkcontext",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.renamelimit",
    "diff.renames",
    "diff.statgraphwidth",
    "diff.statnamewidth",
    "diff.submodule",
    "diff.wserrorhighlight",
    "fetch.prune",
    "gc.auto",
    "grep.column",
    "grep.fullname",
    "grep.linenumber",
    "grep.patterntype",
    "init.defaultbranch",
    "log.abbrevcommit",
    "log.date",
    "log.decorate",
    "log.follow",
    "log.mailmap",
    "maintenance.auto",
    "merge.conflictstyle",
    "status.",
    "tag.sort",
    "user.email",
    "user.name",
    "versionsort.",
];
/// Keys that name a program, with values that name none, or one that does nothing.
const SAFE_VALUES: [(&str, &[&str]); 7] = [
    ("core.pager", &["", "cat"]),
    ("pager.", &["", "cat", "false"]),
    ("core.editor", &[":", "true"]),
    ("sequence.editor", &[":", "true"]),
    ("commit.gpgsign", &["false"]),
    ("tag.gpgsign", &["false"]),
    ("core.fsmonitor", &["false"]),
];

/// Finds the effects of a git command; `None` for another program.
pub(super) fn git_effects(program: &str, words: &[&str]) -> Option<CommandFacts> {
    if program != "git" {
        return None;
    }
    let GlobalOptions { effects, is_whole, base, rest } = general(words);
    let Some((sub, args)) = rest.split_first() else {
        let asks = words.iter().all(|word| matches!(*word, "--version" | "-v" | "--help" | "-h"));
        return Some(CommandFacts { is_whole: is_whole && asks && !words.is_empty(), effects, head: 0 });
    };
    let mut facts = forms::form_effects(sub, args).unwrap_or_else(|| by_table(sub, args, rest));
    facts.is_whole &= is_whole;
    facts.effects = facts.effects.into_iter().flat_map(|effect| moved(effect, &base)).collect();
    facts.effects.splice(0..0, effects);
    if rest.len() < words.len() {
        facts.head = 0;
    }
    Some(facts)
}

fn by_table(sub: &str, args: &[&str], words: &[&str]) -> CommandFacts {
    let Some((row, left, head)) = table::find("git", words) else { return CommandFacts::default() };
    let mut facts = by_row(row, &left, head);
    if row.does == table::EffectKind::Looks && row.args == table::ArgMeaning::Text {
        let seen = flags::read(row, &left);
        let skip = usize::from(sub == "grep" && !seen.has_pattern);
        facts.effects.extend(places(seen.rest.get(skip..).unwrap_or_default()));
    }
    if contents::are_shown(sub, args) {
        facts.effects.push(CommandEffect::History);
    }
    facts
}

/// An effect of a command that works in another folder. A path after a revision may be relative to either folder.
fn moved(effect: CommandEffect, base: &str) -> Vec<CommandEffect> {
    match effect {
        CommandEffect::Read(path) if !base.is_empty() => vec![CommandEffect::Read(joined(base, &path))],
        CommandEffect::Write(path) => vec![CommandEffect::Write(joined(base, &path))],
        CommandEffect::Delete(path) => vec![CommandEffect::Delete(joined(base, &path))],
        effect => vec![effect],
    }
}

/// A path of a command that works in the folder `base`; empty: where it is started.
fn joined(base: &str, path: &str) -> String {
    match path.starts_with(['/', '~']) || base.is_empty() {
        true => path.to_owned(),
        false => format!("{base}/{path}"),
    }
}

struct GlobalOptions<'w, 'a> {
    effects: Vec<CommandEffect>,
    is_whole: bool,
    /// The folder that it works in, relative to where it is started.
    base: String,
    rest: &'w [&'a str],
}

/// The options before the sub-command.
fn general<'w, 'a>(words: &'w [&'a str]) -> GlobalOptions<'w, 'a> {
    let (mut effects, mut is_whole, mut base, mut at) = (Vec::new(), true, String::new(), 0);
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
        let (name, attached) = word.split_once('=').map_or((*word, None), |(name, value)| (name, Some(value)));
        let is_pair = matches!(
            name,
            "-C" | "-c"
                | "--git-dir"
                | "--work-tree"
                | "--namespace"
                | "--super-prefix"
                | "--config-env"
                | "--attr-source"
        );
        let value = match attached {
            Some(value) if name != "-c" => value,
            _ if is_pair => {
                at += 1;
                words.get(at).copied().unwrap_or_default()
            }
            _ => "",
        };
        match name {
            "-C" => {
                base = if base.is_empty() || value.starts_with('/') {
                    value.to_owned()
                } else {
                    format!("{base}/{value}")
                };
                effects.push(CommandEffect::Read(base.clone()));
            }
            "--work-tree" => {
                effects.push(CommandEffect::Read(value.to_owned()));
                is_whole = false;
            }
            "-c" if is_safe(value) => {}
            "-c" | "--config-env" => effects.push(CommandEffect::Code(HiddenReason::GitSetting(value.to_owned()))),
            "--git-dir" | "--exec-path" if !value.is_empty() => {
                effects.push(CommandEffect::Code(HiddenReason::GitOption(name.to_owned())));
            }
            "--no-pager"
            | "-P"
            | "--no-optional-locks"
            | "--literal-pathspecs"
            | "--glob-pathspecs"
            | "--noglob-pathspecs"
            | "--icase-pathspecs"
            | "--no-replace-objects"
            | "--no-lazy-fetch"
            | "--no-advice"
            | "--version"
            | "-v"
            | "--help"
            | "-h"
            | "--html-path"
            | "--exec-path" => {}
            _ => is_whole = false,
        }
        at += 1;
    }
    GlobalOptions { effects, is_whole, base, rest: words.get(at..).unwrap_or_default() }
}

/// Whether a setting for one call (`-c key=value`) names no program that does something.
fn is_safe(setting: &str) -> bool {
    let (key, value) = setting.split_once('=').unwrap_or((setting, "true"));
    let key = key.to_lowercase();
    let is = |known: &str| known == key || (known.ends_with('.') && key.starts_with(known));
    SAFE_KEYS.iter().any(|known| is(known))
        || SAFE_VALUES.iter().any(|(known, values)| is(known) && values.contains(&value))
}

/// A git command without its general options; `None`: it has none, or is no git command.
pub(super) fn plain(argv: &[String]) -> Option<Vec<String>> {
    let (program, rest) = argv.split_first()?;
    let words: Vec<&str> = rest.iter().map(String::as_str).collect();
    let left = general(&words).rest;
    if program != "git" || left.len() == words.len() {
        return None;
    }
    Some(std::iter::once(program.clone()).chain(left.iter().map(|word| (*word).to_owned())).collect())
}

/// The sub-command of a git command; `None`: it is none, or not the machine's own git.
pub(in crate::policy) fn command(argv: &[String]) -> Option<&str> {
    arguments(argv).map(|(_, sub, _)| sub)
}

/// The folder that a git command works in, relative to where it is started, its sub-command and the arguments of that.
pub(in crate::policy) fn arguments(argv: &[String]) -> Option<(String, &str, &[String])> {
    let (program, rest) = argv.split_first()?;
    let words: Vec<&str> = rest.iter().map(String::as_str).collect();
    let options = general(&words);
    let (sub, args) = rest.get(words.len() - options.rest.len()..)?.split_first()?;
    let is_git = matches!(program.as_str(), "git" | "/usr/bin/git" | "/bin/git");
    is_git.then_some((options.base, sub, args))
}

/// The hosts of addresses among the words; the name of a remote is none.
fn remotes(words: &[&str]) -> Vec<CommandEffect> {
    let told = |word: &&str| {
        if word.starts_with('-') {
            None
        } else if word.contains("::") {
            Some(CommandEffect::Code(HiddenReason::GitTransport((*word).to_owned())))
        } else if word.contains("://") || word.split('/').next().is_some_and(|first| first.contains(':')) {
            Some(CommandEffect::Reach(host(word)))
        } else {
            None
        }
    };
    words.iter().filter_map(told).collect()
}

/// Words that are revisions or paths. Both count as paths, and so does the part after `rev:`.
fn places(words: &[&str]) -> Vec<CommandEffect> {
    let path = |word: &&str| match word.split_once(':') {
        // `:/words` is a revision by its message, `:!path` and `:(magic)path` leave out or choose paths.
        Some(("", rest)) if rest.starts_with(['/', ':', '(', '!', '^']) => None,
        // `:path` and `:2:path` are a file of the index.
        Some(("", rest)) => {
            let path = rest.split_once(':').filter(|(stage, _)| matches!(*stage, "0" | "1" | "2" | "3"));
            Some(path.map_or(rest, |(_, path)| path).to_owned()).filter(|path| !path.is_empty())
        }
        Some((_, path)) => Some(path.to_owned()).filter(|path| !path.is_empty()),
        None => Some((*word).to_owned()),
    };
    words.iter().filter_map(path).map(CommandEffect::Read).collect()
}
