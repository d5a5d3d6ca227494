//! The effects of a command, by its program, sub-command and flags: which paths it reads, writes and deletes, which
//! programs it starts, which hosts it reaches, and whether it is dangerous.
//!
//! The knowledge is a closed table of rows (`table`); small readers (`git`, `script`, `special`) cover what a row cannot
//! express. A program without a row has unknown effects, so running it needs a permission. Nothing here reads the disk
//! or decides.

mod flags;
mod git;
mod insert;
mod interpreter;
mod script;
mod setting;
mod special;
mod table;

use flags::ParsedFlags;
pub use git::{HistoryQuery, discarded_paths};
pub(super) use git::{arguments as git_arguments, command as git_command};
pub use insert::insert;
pub(super) use setting::variable;
pub(super) use table::is_interpreter;
use table::{ArgMeaning, EffectKind, ProgramRow};

use super::rule::Spelling;
use super::{DangerReason, HiddenReason};

/// How deep programs that start programs are followed; deeper ones are unknown.
pub(super) const DEPTH_MAX: usize = 8;
/// Folders of the system's programs.
const SYSTEM: [&str; 2] = ["/bin/", "/usr/bin/"];

/// One effect of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandEffect {
    /// Reads a path.
    Read(String),
    /// Creates or changes a path.
    Write(String),
    /// Removes a path and everything beneath.
    Delete(String),
    /// Runs another command.
    Run(Vec<String>),
    /// Runs code that cannot be seen here: a script in a word, a hook, a driver. With the reason.
    Code(HiddenReason),
    /// Shows contents of files out of a repository's history.
    History,
    /// Reaches a host; empty if the host cannot be seen here.
    Reach(String),
    /// Can discard work that was never committed.
    Discard,
    /// Does something that always needs a person's approval. With the reason.
    Danger(DangerReason),
}

/// What is known about a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandFacts {
    /// Whether the effects are complete. If not, the command also runs unknown code, which needs a permission.
    pub is_whole: bool,
    /// Its effects besides running.
    pub effects: Vec<CommandEffect>,
    /// How many first words name the kind of command (`git log`: 2); 0 for an unknown program.
    pub head: usize,
}

/// Finds the effects of a command.
pub fn effects_of(argv: &[String]) -> CommandFacts {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    row_effects(&words)
}

fn row_effects(words: &[&str]) -> CommandFacts {
    let Some((program, rest)) = words.split_first() else { return CommandFacts::default() };
    let name = program.rsplit('/').next().unwrap_or(program);
    let mut facts = match git::git_effects(name, rest)
        .or_else(|| special::special_effects(name, rest))
        .or_else(|| interpreter::interpreter_effects(name, rest))
    {
        Some(facts) => facts,
        None => match table::find(name, rest) {
            Some(_) if matches!(rest, ["--version" | "--help" | "-V"]) => {
                CommandFacts { is_whole: true, ..CommandFacts::default() }
            }
            Some((row, rest, head)) => by_row(row, &rest, head),
            None => CommandFacts { effects: unknown(name, rest), ..CommandFacts::default() },
        },
    };
    // A file of the project can have the name of a known program and do something else.
    if name != *program && !SYSTEM.iter().any(|folder| program.strip_prefix(folder) == Some(name)) {
        (facts.is_whole, facts.head) = (false, 0);
    }
    facts
}

/// Possible effects of a program without a row.
fn unknown(name: &str, rest: &[&str]) -> Vec<CommandEffect> {
    let mut effects = task(name, rest);
    effects.extend(special::hidden_effects(rest));
    effects
}

fn by_row(row: &ProgramRow, rest: &[&str], head: usize) -> CommandFacts {
    let seen = flags::read(row, rest);
    let mut facts = CommandFacts { is_whole: row.does.is_whole(), effects: Vec::new(), head };
    facts.is_whole &= seen.unknown.is_empty();
    if let EffectKind::Danger(why) = row.does {
        facts.effects.push(CommandEffect::Danger(DangerReason::Remote(why)));
    }
    facts.effects.extend((row.does == EffectKind::Discards).then_some(CommandEffect::Discard));
    facts.effects.extend(seen.effects.iter().cloned());
    arguments(row, &seen, &mut facts);
    facts
}

/// Adds the effects of the words that are no flags.
fn arguments(row: &ProgramRow, seen: &ParsedFlags<'_>, facts: &mut CommandFacts) {
    let rest = &seen.rest;
    let own = |word: &&str| (*word).to_owned();
    // `-` is standard input.
    let named = |word: &&&str| **word != "-";
    let effects = &mut facts.effects;
    match row.args {
        ArgMeaning::Text => {}
        ArgMeaning::Reads => effects.extend(rest.iter().filter(named).map(own).map(CommandEffect::Read)),
        ArgMeaning::Pattern => {
            let skip = usize::from(!seen.has_pattern);
            effects.extend(rest.iter().skip(skip).filter(named).map(own).map(CommandEffect::Read));
        }
        ArgMeaning::Writes => effects.extend(rest.iter().map(own).map(CommandEffect::Write)),
        ArgMeaning::Skip1Writes => effects.extend(rest.iter().skip(1).map(own).map(CommandEffect::Write)),
        ArgMeaning::Deletes => effects.extend(rest.iter().map(own).map(CommandEffect::Delete)),
        ArgMeaning::ReadThenWrite => {
            effects.extend(rest.first().filter(|word| **word != "-").map(own).map(CommandEffect::Read));
            effects.extend(rest.iter().skip(1).map(own).map(CommandEffect::Write));
        }
        ArgMeaning::Copies | ArgMeaning::Moves => {
            let (to, from) = match (seen.has_target, rest.split_last()) {
                (false, Some((to, from))) => (Some(to), from),
                _ => (None, rest.as_slice()),
            };
            effects.extend(from.iter().map(own).map(CommandEffect::Read));
            if row.args == ArgMeaning::Moves {
                effects.extend(from.iter().map(own).map(CommandEffect::Delete));
            }
            effects.extend(to.map(own).map(CommandEffect::Write));
            // In a target folder each file keeps its name, which may be a protected one.
            let folder = to.filter(|to| from.len() > 1 || to.ends_with(['/', '.'])).copied();
            if let Some(folder) = folder {
                let base = |word: &&str| word.trim_end_matches('/').rsplit('/').next().map(str::to_owned);
                let named = from.iter().filter_map(base).filter(|name| !matches!(name.as_str(), "" | "." | ".."));
                effects
                    .extend(named.map(|name| CommandEffect::Write(format!("{}/{name}", folder.trim_end_matches('/')))));
            }
        }
        ArgMeaning::Wraps(skip) => {
            let inner: Vec<String> = rest.iter().skip(skip).map(own).collect();
            if inner.is_empty() {
                facts.is_whole = false;
            } else {
                effects.push(CommandEffect::Run(inner));
            }
        }
        ArgMeaning::Lends => {
            let own = |effect: &CommandEffect| !matches!(effect, CommandEffect::Run(_));
            effects.extend(row_effects(rest).effects.into_iter().filter(own));
        }
        ArgMeaning::Hosts => effects.extend(rest.iter().map(|word| CommandEffect::Reach(host(word)))),
        ArgMeaning::Tasks => {
            let settings = rest.iter().filter(|word| word.contains('=') && !word.starts_with('-'));
            effects.extend(settings.filter_map(|word| setting::setting(word)));
            effects.extend(task(row.program(), rest));
        }
    }
}

/// Tasks whose names suggest that they publish something. The file that defines them is not read.
fn task(program: &str, words: &[&str]) -> Vec<CommandEffect> {
    const NAMES: [&str; 8] = ["deploy", "publish", "release", "push", "upload", "ship", "promote", "rollout"];
    const TEXTS: [&str; 4] = [".md", ".txt", ".toml", ".json"];
    let tells = |word: &&str| {
        let name = word.rsplit('/').next().unwrap_or(word).to_lowercase();
        let is_text = name.starts_with('-') || TEXTS.iter().any(|text| name.ends_with(text));
        !is_text && name != "release-notes" && name.split([':', '-', '_', '.']).any(|piece| NAMES.contains(&piece))
    };
    let found = std::iter::once(program).chain(words.iter().copied()).find(|word| tells(word));
    let danger = |word: &str| CommandEffect::Danger(DangerReason::SoundsLikePublishing(word.to_owned()));
    found.map(danger).into_iter().collect()
}

/// The host of an address, as far as it can be seen, with its port unless that is the scheme's default.
fn host(word: &str) -> String {
    let (scheme, rest) = word.split_once("://").unwrap_or(("", word));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // Some programs end the host at a backslash, others do not.
    if authority.contains('\\') {
        return String::new();
    }
    let host = authority.rsplit('@').next().unwrap_or_default();
    let (name, port) = match host.strip_prefix('[') {
        Some(six) => six.split_once(']').map_or((six, ""), |(six, port)| (six, port.trim_start_matches(':'))),
        None => host.split_once(':').unwrap_or((host, "")),
    };
    let plain = |letter: char| letter.is_ascii_alphanumeric() || ".-_:".contains(letter);
    if !name.chars().all(plain) {
        return String::new();
    }
    let own: &[&str] = match scheme.to_lowercase().as_str() {
        "http" => &["80"],
        "https" => &["443"],
        "ssh" => &["22"],
        "git" => &["9418"],
        "ftp" => &["21"],
        _ => &["80", "443"],
    };
    let is_other = port.bytes().all(|byte| byte.is_ascii_digit()) && !port.is_empty() && !own.contains(&port);
    let name = name.to_lowercase();
    match (is_other, name.contains(':')) {
        (true, true) => format!("[{name}]:{port}"),
        (true, false) => format!("{name}:{port}"),
        (false, _) => name,
    }
}

/// All spellings of a command that rules may mean: as written, without programs that only start another, by the
/// program's own name, and without git's general options. Only the first two are what would run.
pub(super) fn spellings(argv: &[String]) -> Vec<Spelling> {
    let literal = |argv: Vec<String>| Spelling::new(argv, true);
    let mut all = vec![literal(argv.to_vec())];
    let mut rest = argv.to_vec();
    for _ in 0..DEPTH_MAX {
        let Some(inner) = unwrapped(&rest) else { break };
        all.push(literal(inner.clone()));
        rest = inner;
    }
    let mut loose = Vec::new();
    for Spelling { argv, .. } in &all {
        let bare = argv
            .first()
            .and_then(|program| program.rsplit_once('/'))
            .map(|(_, name)| std::iter::once(name.to_owned()).chain(argv.iter().skip(1).cloned()).collect::<Vec<_>>());
        loose.extend(git::plain(bare.as_deref().unwrap_or(argv)));
        loose.extend(bare);
    }
    all.extend(loose.into_iter().map(|argv| Spelling::new(argv, false)));
    all
}

/// The command inside one that only starts it (`timeout 30`, `nice`, `nohup`, a bare `xargs` …).
pub(super) fn unwrapped(argv: &[String]) -> Option<Vec<String>> {
    const STRIPPED: [&str; 9] = ["timeout", "time", "nice", "nohup", "stdbuf", "command", "builtin", "noglob", "xargs"];
    let (program, rest) = argv.split_first()?;
    if !STRIPPED.contains(&program.as_str()) {
        return None;
    }
    if program == "xargs" {
        let is_bare = rest.first().is_some_and(|first| !first.starts_with('-'));
        return is_bare.then(|| rest.to_vec());
    }
    let words: Vec<&str> = rest.iter().map(String::as_str).collect();
    let (row, rest, _) = table::find(program, &words)?;
    let ArgMeaning::Wraps(skip) = row.args else { return None };
    let seen = flags::read(row, &rest);
    if !seen.unknown.is_empty() || !seen.effects.is_empty() {
        return None;
    }
    let inner: Vec<String> = seen.rest.iter().skip(skip).map(|word| (*word).to_owned()).collect();
    (!inner.is_empty()).then_some(inner)
}

/// Whether a program is known to build, to install, or to change a repository or something outside: of no use where nothing
/// can be changed.
pub(super) fn is_writer(argv: &[String]) -> bool {
    let Some((program, rest)) = argv.split_first() else { return false };
    let name = program.rsplit('/').next().unwrap_or(program);
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let is_known = || table::find(name, &rest).is_some_and(|(row, ..)| !row.does.is_whole());
    name == "git" || (!table::is_interpreter(name) && is_known())
}

/// The first words of a command as which an approval may be remembered, if they are specific enough: `cargo test`,
/// `git add`.
pub(super) fn approvable_prefix(argv: &[String]) -> Option<&[String]> {
    let facts = effects_of(argv);
    let is_safe = !matches!(argv.first().map(String::as_str), Some(program) if table::is_interpreter(program));
    (is_safe && facts.head > 0).then(|| argv.get(..facts.head)).flatten()
}

#[cfg(test)]
mod tests;
