//! The rows: what is known about programs and their sub-commands.
//!
//! A row that only reads or handles files lists every flag that keeps it so; any other flag makes it an unknown
//! program. A row that runs code lists only the flags that do more than the command itself, because a permission for
//! the command does not cover those.

mod builds;
mod executes;
mod file_ops;
mod git;
mod read_only;
mod remote;
mod scripts;

use crate::policy::RemoteEffect;

/// The kind of effect that a command has by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EffectKind {
    /// It only reads.
    Looks,
    /// Its effects are the paths in its words.
    Files,
    /// It runs code: its own, the project's or downloaded code.
    Runs,
    /// Can discard work that was never committed.
    Discards,
    /// It always needs a person's approval; with the reason.
    Danger(RemoteEffect),
}

impl EffectKind {
    pub(super) fn is_whole(self) -> bool {
        matches!(self, Self::Looks | Self::Files)
    }
}

/// The meaning of the words that are no flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArgMeaning {
    /// Text without paths.
    Text,
    /// Paths to read.
    Reads,
    /// A pattern, then paths to read.
    Pattern,
    /// Paths to change.
    Writes,
    /// One word of another kind, then paths to change.
    Skip1Writes,
    /// Paths to remove.
    Deletes,
    /// A path to read, then one to change.
    ReadThenWrite,
    /// Paths to read, the last one to change.
    Copies,
    /// Paths to read and remove, the last one to change.
    Moves,
    /// This many words, then another command.
    Wraps(usize),
    /// Another command that a permission for this one covers; the effects of its flags are judged.
    Lends,
    /// Network addresses to reach.
    Hosts,
    /// Names of tasks that a file of the project defines.
    Tasks,
}

/// How flags are spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlagStyle {
    /// `-a`, `-ab`, `--all`.
    Gnu,
    /// `-all` as well as `--all`.
    Dash,
}

/// One program, or one sub-command of it.
#[derive(Debug)]
pub(super) struct ProgramRow {
    pub(super) call: &'static str,
    pub(super) does: EffectKind,
    pub(super) args: ArgMeaning,
    pub(super) flags: &'static str,
    pub(super) style: FlagStyle,
}

const fn row(call: &'static str, does: EffectKind, args: ArgMeaning, flags: &'static str) -> ProgramRow {
    ProgramRow { call, does, args, flags, style: FlagStyle::Gnu }
}

const fn dash(call: &'static str, does: EffectKind, args: ArgMeaning, flags: &'static str) -> ProgramRow {
    ProgramRow { call, does, args, flags, style: FlagStyle::Dash }
}

impl ProgramRow {
    pub(super) fn program(&self) -> &'static str {
        self.call.split(' ').next().unwrap_or_default()
    }

    /// Whether it is a row of this program.
    fn is_of(&self, program: &str) -> bool {
        self.call.strip_prefix(program).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    }

    fn subs(&self) -> impl Iterator<Item = &'static str> {
        self.call.split(' ').skip(1)
    }

    pub(super) fn is_wrapper(&self) -> bool {
        matches!(self.args, ArgMeaning::Wraps(_) | ArgMeaning::Lends)
    }

    /// The words before the command that it starts.
    pub(super) fn wrapped(&self) -> usize {
        if let ArgMeaning::Wraps(skip) = self.args { skip } else { 0 }
    }

    fn takes(&self, flag: &str) -> Option<bool> {
        let mut own = self.flags.split_ascii_whitespace();
        let name = |text: &'static str| {
            text.trim_end_matches(['=', '?', '<', '*', '>', '!', '@', '&', '/', '%', '#', '^', '$'])
        };
        let found = own.find(|text| name(text) == flag)?;
        Some(found.ends_with(['=', '<', '*', '>', '!', '@', '&', '/', '#', '$']))
    }
}

/// Whether it takes code from its own words, so that a permission for it would allow anything.
pub(in crate::policy) fn is_interpreter(program: &str) -> bool {
    const NAMES: [&str; 19] = [
        "sh",
        "bash",
        "dash",
        "zsh",
        "ksh",
        "fish",
        "python",
        "python2",
        "python3",
        "perl",
        "ruby",
        "node",
        "deno",
        "bun",
        "php",
        "lua",
        "osascript",
        "pwsh",
        "awk",
    ];
    let name = program.rsplit('/').next().unwrap_or(program);
    NAMES.contains(&name)
}

fn rows() -> impl Iterator<Item = &'static ProgramRow> {
    [read_only::ROWS, file_ops::ROWS, git::ROWS, builds::ROWS, scripts::ROWS, executes::ROWS, remote::ROWS]
        .into_iter()
        .flatten()
}

/// Whether some use of a program is dangerous or removes things.
pub(super) fn is_risky(program: &str) -> bool {
    let risky = |row: &ProgramRow| {
        matches!(row.does, EffectKind::Danger(_)) || matches!(row.args, ArgMeaning::Deletes | ArgMeaning::Moves)
    };
    program == "git" || rows().any(|row| row.is_of(program) && risky(row))
}

/// A row, the words that are left for it, and how many first words name it.
pub(super) type RowMatch<'a> = (&'static ProgramRow, Vec<&'a str>, usize);

/// The row that fits best.
pub(super) fn find<'a>(program: &str, words: &[&'a str]) -> Option<RowMatch<'a>> {
    let own: Vec<&'static ProgramRow> = rows().filter(|row| row.is_of(program)).collect();
    let base = own.iter().copied().find(|row| row.subs().next().is_none());
    let mut best: Option<(&'static ProgramRow, Vec<usize>)> = None;
    let plain = plain_words(base, words);
    for start in candidates(&plain) {
        for row in &own {
            let places: Vec<usize> = plain.iter().skip(start).map(|(at, _)| *at).collect();
            let subs: Vec<&str> = row.subs().collect();
            let fits = !subs.is_empty()
                && subs.len() <= places.len()
                && subs.iter().zip(&places).all(|(sub, at)| words.get(*at) == Some(sub));
            let rank = |row: &ProgramRow| (matches!(row.does, EffectKind::Danger(_)), row.subs().count());
            if fits && best.as_ref().is_none_or(|(known, _)| rank(row) > rank(known)) {
                best = Some((row, places.into_iter().take(subs.len()).collect()));
            }
        }
    }
    let (row, taken) = best.or_else(|| base.map(|row| (row, Vec::new())))?;
    let rest = words.iter().enumerate().filter(|(at, _)| !taken.contains(at)).map(|(_, word)| *word).collect();
    Some((row, rest, head(row, &taken, words)))
}

/// The positions of words that are neither flags nor values of flags; each with whether it may still be a value.
fn plain_words(base: Option<&'static ProgramRow>, words: &[&str]) -> Vec<(usize, bool)> {
    let (mut plain, mut skip, mut unsure) = (Vec::new(), false, false);
    for (at, word) in words.iter().enumerate() {
        if std::mem::take(&mut skip) || word.starts_with('+') {
            continue;
        }
        if word.starts_with('-') && word.len() > 1 {
            match base.and_then(|row| row.takes(word)) {
                Some(takes) => skip = takes,
                None => unsure = !word.contains('='),
            }
            continue;
        }
        plain.push((at, std::mem::take(&mut unsure)));
    }
    plain
}

/// Where the sub-command may begin: at the first word, or after it if that may be a flag's value.
fn candidates(plain: &[(usize, bool)]) -> impl Iterator<Item = usize> {
    let unsure = plain.iter().take_while(|(_, unsure)| *unsure).count();
    0..=unsure
}

/// How many first words an approval can be remembered by: the program with its sub-command or task.
fn head(row: &ProgramRow, taken: &[usize], words: &[&str]) -> usize {
    let is_first = taken.iter().enumerate().all(|(index, at)| index == *at);
    match row.args {
        ArgMeaning::Tasks | ArgMeaning::Lends if is_first => match words.get(taken.len()) {
            Some(task) if !task.starts_with('-') && !task.contains('=') => taken.len() + 2,
            _ => 0,
        },
        ArgMeaning::Wraps(_) | ArgMeaning::Hosts => 0,
        _ if is_first && (!taken.is_empty() || matches!(row.does, EffectKind::Runs | EffectKind::Discards)) => {
            taken.len() + 1
        }
        _ => 0,
    }
}
