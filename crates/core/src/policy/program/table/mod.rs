//! The rows: what is known about programs and their sub-commands.
//!
//! A row that only reads or handles files lists every flag that keeps it so; any other flag makes it an unknown
//! program. A row that runs code lists only the flags that do more than the command itself, because a permission for
//! the command does not cover those.

mod builds;
mod changes;
mod git;
mod looks;
mod reaches;
mod runs;
mod scripts;

/// The kind of effect that a command has by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    /// It only reads.
    Looks,
    /// Its effects are the paths in its words.
    Files,
    /// It runs code: its own, the project's or downloaded code.
    Runs,
    /// Can discard work that was never committed.
    Discards,
    /// It always needs a person's approval; with the reason.
    Danger(&'static str),
}

impl Does {
    pub(super) fn is_whole(self) -> bool {
        matches!(self, Self::Looks | Self::Files)
    }
}

/// The meaning of the words that are no flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Args {
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
pub(super) enum Style {
    /// `-a`, `-ab`, `--all`.
    Gnu,
    /// `-all` as well as `--all`.
    Dash,
}

/// One program, or one sub-command of it.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) call: &'static str,
    pub(super) does: Does,
    pub(super) args: Args,
    pub(super) flags: &'static str,
    pub(super) style: Style,
}

const fn row(call: &'static str, does: Does, args: Args, flags: &'static str) -> Row {
    Row { call, does, args, flags, style: Style::Gnu }
}

const fn dash(call: &'static str, does: Does, args: Args, flags: &'static str) -> Row {
    Row { call, does, args, flags, style: Style::Dash }
}

impl Row {
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
        matches!(self.args, Args::Wraps(_) | Args::Lends)
    }

    /// The words before the command that it starts.
    pub(super) fn wrapped(&self) -> usize {
        if let Args::Wraps(skip) = self.args { skip } else { 0 }
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

fn rows() -> impl Iterator<Item = &'static Row> {
    [looks::ROWS, changes::ROWS, git::ROWS, builds::ROWS, scripts::ROWS, runs::ROWS, reaches::ROWS]
        .into_iter()
        .flatten()
}

/// Whether some use of a program is dangerous or removes things.
pub(super) fn is_risky(program: &str) -> bool {
    let risky = |row: &Row| matches!(row.does, Does::Danger(_)) || matches!(row.args, Args::Deletes | Args::Moves);
    program == "git" || rows().any(|row| row.is_of(program) && risky(row))
}

/// A row, the words that are left for it, and how many first words name it.
pub(super) type Found<'a> = (&'static Row, Vec<&'a str>, usize);

/// The row that fits best.
pub(super) fn find<'a>(program: &str, words: &[&'a str]) -> Option<Found<'a>> {
    let own: Vec<&'static Row> = rows().filter(|row| row.is_of(program)).collect();
    let base = own.iter().copied().find(|row| row.subs().next().is_none());
    let mut best: Option<(&'static Row, Vec<usize>)> = None;
    let plain = plain_words(base, words);
    for start in candidates(&plain) {
        for row in &own {
            let places: Vec<usize> = plain.iter().skip(start).map(|(at, _)| *at).collect();
            let subs: Vec<&str> = row.subs().collect();
            let fits = !subs.is_empty()
                && subs.len() <= places.len()
                && subs.iter().zip(&places).all(|(sub, at)| words.get(*at) == Some(sub));
            let rank = |row: &Row| (matches!(row.does, Does::Danger(_)), row.subs().count());
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
fn plain_words(base: Option<&'static Row>, words: &[&str]) -> Vec<(usize, bool)> {
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
fn head(row: &Row, taken: &[usize], words: &[&str]) -> usize {
    let is_first = taken.iter().enumerate().all(|(index, at)| index == *at);
    match row.args {
        Args::Tasks | Args::Lends if is_first => match words.get(taken.len()) {
            Some(task) if !task.starts_with('-') && !task.contains('=') => taken.len() + 2,
            _ => 0,
        },
        Args::Wraps(_) | Args::Hosts => 0,
        _ if is_first && (!taken.is_empty() || matches!(row.does, Does::Runs | Does::Discards)) => taken.len() + 1,
        _ => 0,
    }
}
