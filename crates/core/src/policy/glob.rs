//! Globs over paths, and command lines by their first words.
//!
//! `*` and `?` stay inside one part of a path, `**` as a whole part spans any number of them, `[abc]` is one letter of
//! a set. Paths are clean and relative to the root, with `/` between their parts. Matching takes time proportional to
//! pattern times path for every input. Nothing here reads the disk; an invalid pattern is an error where it is
//! written, and counts strictly where it is used.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::limits::GLOB_BYTES_MAX;
use crate::suggest;

/// Why a text is no glob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GlobError {
    /// The text is empty.
    #[error("it is empty")]
    Empty,
    /// Longer than [`GLOB_BYTES_MAX`].
    #[error("it is longer than {GLOB_BYTES_MAX} bytes")]
    Long,
    /// A set `[…` without its end.
    #[error("a `[` has no `]`")]
    Open,
    /// A backslash with nothing behind it.
    #[error("it ends in `\\`")]
    Escape,
    /// `{a,b}` is not supported, and would match nothing.
    #[error("braces are not known; write one pattern for each, or `\\{{` for the letter")]
    Braces,
    /// `..` never matches, because paths are clean.
    #[error("`..` and `.` are no part of a path from the project folder")]
    Dots,
}

/// A parsed pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    /// The parts of a path, with one `Any` more at the end for everything beneath.
    beneath: Vec<GlobSegment>,
    /// Whether it is anchored at the root; a pattern without a `/` matches names at any depth.
    is_anchored: bool,
    /// Whether case is ignored.
    folds: bool,
}

/// The letters of a path, part by part.
pub(super) struct PathSegments(Vec<Vec<char>>);

impl PathSegments {
    /// With `folds`, case is ignored.
    pub(super) fn new(path: &str, folds: bool) -> Self {
        let letters = |part: &str| -> Vec<char> {
            match (folds, part.is_ascii()) {
                (true, true) => part.bytes().map(|letter| char::from(letter.to_ascii_lowercase())).collect(),
                (true, false) => part.chars().flat_map(char::to_lowercase).collect(),
                (false, _) => part.chars().collect(),
            }
        };
        Self(path.split('/').map(letters).collect())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum GlobSegment {
    /// `**`: any number of parts.
    Any,
    /// One part of a path.
    One(Vec<GlobToken>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum GlobToken {
    /// `*`: any number of letters.
    Star,
    /// `?`: one letter.
    Question,
    /// Exactly this letter.
    Letter(char),
    /// One letter in, or not in, these ranges.
    Set { ranges: Vec<(char, char)>, is_negated: bool },
}

impl Glob {
    /// Parses a pattern. With `folds`, case is ignored.
    pub fn new(text: &str, folds: bool) -> Result<Self, GlobError> {
        if text.len() > GLOB_BYTES_MAX {
            return Err(GlobError::Long);
        }
        let text = if folds { fold(text) } else { text.to_owned() };
        let text = text.strip_prefix("./").unwrap_or(&text);
        let mut parts = Vec::new();
        for part in text.split('/').filter(|part| !part.is_empty()) {
            match part {
                "." | ".." => return Err(GlobError::Dots),
                "**" if parts.last() == Some(&GlobSegment::Any) => {}
                "**" => parts.push(GlobSegment::Any),
                part => parts.push(GlobSegment::One(tokens(part)?)),
            }
        }
        if parts.is_empty() {
            return Err(GlobError::Empty);
        }
        let is_anchored = text.contains('/') || parts.contains(&GlobSegment::Any);
        if text.ends_with('/') && parts.last() != Some(&GlobSegment::Any) {
            parts.push(GlobSegment::Any);
        }
        if parts.last() == Some(&GlobSegment::Any) {
            // `a/**` matches what is in the folder, not the folder itself.
            parts.push(GlobSegment::One(vec![GlobToken::Star]));
        }
        parts.push(GlobSegment::Any);
        Ok(Self { beneath: parts, is_anchored, folds })
    }

    /// Whether it matches the file: the whole path if it has a `/`, else the last part.
    pub fn names(&self, path: &str) -> bool {
        let PathSegments(parts) = PathSegments::new(path, self.folds);
        let from = if self.is_anchored { 0 } else { parts.len().saturating_sub(1) };
        covers(self.exactly(), parts.get(from..).unwrap_or_default())
    }

    /// Whether it matches the path or a folder above it: by any part, or from the root if it has a `/`.
    pub fn touches(&self, path: &str) -> bool {
        self.touches_spelt(&PathSegments::new(path, self.folds))
    }

    /// Like `touches`, for a path that is compared with many patterns. The path must be folded as the pattern is.
    pub(super) fn touches_spelt(&self, PathSegments(parts): &PathSegments) -> bool {
        if self.is_anchored {
            covers(&self.beneath, parts)
        } else {
            parts.iter().any(|part| covers(self.exactly(), std::slice::from_ref(part)))
        }
    }

    /// Whether it claims the path: a pattern without wildcards is a path from the root and claims everything beneath
    /// it; any other claims what it matches.
    pub fn owns(&self, path: &str) -> bool {
        if self.is_plain() { covers(&self.beneath, &PathSegments::new(path, self.folds).0) } else { self.names(path) }
    }

    /// Whether it could match a folder, or anything beneath it.
    pub(super) fn reaches(&self, folder: &str) -> bool {
        let letters = |name: &str| GlobSegment::One(name.chars().map(GlobToken::Letter).collect());
        let folder = self.folded(folder);
        let names = folder.split('/').filter(|name| !name.is_empty());
        let within: Vec<GlobSegment> = names.map(letters).chain([GlobSegment::Any]).collect();
        !self.is_anchored || touch(&self.beneath, &within)
    }

    fn exactly(&self) -> &[GlobSegment] {
        self.beneath.split_last().map_or(&[], |(_, parts)| parts)
    }

    /// Whether it has no wildcards.
    fn is_plain(&self) -> bool {
        let plain = |part: &GlobSegment| match part {
            GlobSegment::Any => false,
            GlobSegment::One(tokens) => tokens.iter().all(|token| matches!(token, GlobToken::Letter(_))),
        };
        self.exactly().iter().all(plain)
    }

    fn folded<'a>(&self, path: &'a str) -> Cow<'a, str> {
        if self.folds { fold(path).into() } else { path.into() }
    }

    /// The parts of the paths that it claims, from the root.
    fn owned(&self) -> Vec<GlobSegment> {
        let above = (!self.is_anchored && !self.is_plain()).then_some(GlobSegment::Any);
        let own = if self.is_plain() { &self.beneath } else { self.exactly() };
        above.into_iter().chain(own.iter().cloned()).collect()
    }
}

/// Whether a list of write patterns allows a path: one of them must match it.
pub(super) fn is_named(patterns: &[String], path: &str) -> bool {
    patterns.iter().any(|pattern| Glob::new(pattern, false).is_ok_and(|glob| glob.names(path)))
}

/// Whether one of the patterns claims a path. `a/**` also claims the folder `a`, so that a command may make it.
pub fn is_owned(patterns: &[String], path: &str) -> bool {
    let claims = |pattern: &String| {
        let owns = |pattern: &str| Glob::new(pattern, false).is_ok_and(|glob| glob.owns(path));
        let folder = pattern.strip_suffix("/**").filter(|folder| !folder.contains(['*', '?', '[', '{']));
        owns(pattern) || folder.is_some_and(owns)
    };
    patterns.iter().any(claims)
}

/// Whether two tasks that own these globs can own a common path. When in doubt they can.
pub fn overlap(a: &str, b: &str) -> bool {
    let (Ok(a), Ok(b)) = (Glob::new(a, true), Glob::new(b, true)) else { return true };
    touch(&a.owned(), &b.owned())
}

/// Whether two patterns can match a common path.
fn touch(a: &[GlobSegment], b: &[GlobSegment]) -> bool {
    let is_any = |part: &GlobSegment| *part == GlobSegment::Any;
    meet(a, b, is_any, |a, b| match (a, b) {
        (GlobSegment::One(a), GlobSegment::One(b)) => meet(a, b, |token| *token == GlobToken::Star, can_be_one),
        _ => true,
    })
}

/// Whether a command line begins with the words of an allowed one. A last word that ends in `/` stands for a file in that
/// folder of the project: `./` allows `./run.sh`, `python3 ./` allows `python3 tools/gen.py`.
pub fn commands(allowed: &[String], argv: &[&str]) -> bool {
    allowed.iter().any(|command| {
        let words: Vec<&str> = command.split_whitespace().collect();
        let Some((last, before)) = words.split_last() else { return false };
        let Some(folder) = last.strip_suffix('/') else { return argv.starts_with(&words) };
        // A program without a `/` in its name is not a file of the project.
        let is_file = |word: &&&str| (!before.is_empty() || word.contains('/')) && is_beneath(folder, word);
        argv.starts_with(before) && argv.get(before.len()).as_ref().is_some_and(is_file)
    })
}

/// Whether a word names a file beneath a folder of the project, without leaving it on the way.
fn is_beneath(folder: &str, word: &str) -> bool {
    let parts = |path: &str| path.split('/').filter(|part| !matches!(*part, "" | ".")).map(str::to_owned).collect();
    let (folder, file): (Vec<String>, Vec<String>) = (parts(folder), parts(word));
    let is_inside = !word.starts_with(['/', '-', '~']) && !file.iter().any(|part| part == "..");
    is_inside && file.len() > folder.len() && file.starts_with(&folder)
}

/// The allowed command that is most similar to a refused one: of the same program, or else of the program with the
/// most similar name, the one with the most words in common. An equal word counts more than one with a typo.
pub(super) fn nearest_command<'a>(allowed: &[&'a str], argv: &[&str]) -> Option<&'a str> {
    let asked = argv.first()?.rsplit('/').next()?;
    let program = |command: &&'a str| command.split_whitespace().next();
    let similar = || suggest::nearest(asked, allowed.iter().filter_map(program));
    let meant = allowed.iter().filter_map(program).find(|name| *name == asked).or_else(similar)?;
    let weight = |(known, asked): (&str, &&str)| match known == *asked {
        true => Some(2),
        false => suggest::slips(asked, known).map(|_| 1),
    };
    let common = |command: &&&str| command.split_whitespace().zip(argv).skip(1).map_while(weight).sum::<usize>();
    // The first of equals wins.
    let of_program = allowed.iter().rev().filter(|command| program(command) == Some(meant));
    of_program.max_by_key(common).copied()
}

/// Whether a host is in the list; `*.example.org` matches everything below `example.org`.
pub fn hosts(allowed: &[String], host: &str) -> bool {
    let host = fold(host);
    allowed.iter().map(|name| fold(name)).any(|name| match name.strip_prefix("*.") {
        Some(above) => host.strip_suffix(above).is_some_and(|below| below.len() > 1 && below.ends_with('.')),
        None => host == name,
    })
}

/// Lower case, letter by letter.
fn fold(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

fn tokens(part: &str) -> Result<Vec<GlobToken>, GlobError> {
    let mut found = Vec::new();
    let mut letters = part.chars();
    while let Some(letter) = letters.next() {
        match letter {
            // `**` inside a part means `*`.
            '*' if found.last() == Some(&GlobToken::Star) => {}
            '*' => found.push(GlobToken::Star),
            '?' => found.push(GlobToken::Question),
            '[' => found.push(set(&mut letters)?),
            '\\' => found.push(GlobToken::Letter(letters.next().ok_or(GlobError::Escape)?)),
            '{' | '}' => return Err(GlobError::Braces),
            letter => found.push(GlobToken::Letter(letter)),
        }
    }
    Ok(found)
}

fn set(letters: &mut std::str::Chars<'_>) -> Result<GlobToken, GlobError> {
    let mut inside: Vec<char> = Vec::new();
    loop {
        match letters.next() {
            None => return Err(GlobError::Open),
            // Right after the `[` or the `!`, a `]` is an ordinary letter.
            Some(']') if !matches!(inside.as_slice(), [] | ['!' | '^']) => break,
            Some(letter) => inside.push(letter),
        }
    }
    let (is_negated, mut rest) = match inside.as_slice() {
        ['!' | '^', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let mut ranges = Vec::new();
    while let [first, after @ ..] = rest {
        (ranges, rest) = match after {
            ['-', last, after @ ..] => (with(ranges, (*first, *last)), after),
            after => (with(ranges, (*first, *first)), after),
        };
    }
    Ok(GlobToken::Set { ranges, is_negated })
}

fn with(mut ranges: Vec<(char, char)>, range: (char, char)) -> Vec<(char, char)> {
    ranges.push(range);
    ranges
}

fn covers(pattern: &[GlobSegment], path: &[Vec<char>]) -> bool {
    fits(
        pattern,
        path,
        |part| *part == GlobSegment::Any,
        |part, letters| match part {
            GlobSegment::Any => true,
            GlobSegment::One(tokens) => {
                fits(tokens, letters, |token| *token == GlobToken::Star, |token, letter| is_one(token, *letter))
            }
        },
    )
}

/// Whether a pattern of single tokens and stars matches a sequence. Only the last star is ever widened: the tokens
/// before it have matched as early as possible, and an earlier match is never worse. So it takes at most pattern times
/// sequence.
pub(super) fn fits<P, T>(
    pattern: &[P],
    text: &[T],
    is_star: impl Fn(&P) -> bool,
    fits_one: impl Fn(&P, &T) -> bool,
) -> bool {
    let (mut at, mut seen) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(thing) = text.get(seen) {
        match pattern.get(at) {
            Some(next) if is_star(next) => {
                star = Some((at, seen));
                at += 1;
            }
            Some(next) if fits_one(next, thing) => {
                at += 1;
                seen += 1;
            }
            _ => {
                let Some((star_at, from)) = star else { return false };
                star = Some((star_at, from + 1));
                (at, seen) = (star_at + 1, from + 1);
            }
        }
    }
    pattern.get(at..).unwrap_or_default().iter().all(is_star)
}

/// Whether two patterns can match a common sequence: a table over the pairs of positions in them, row by row from the
/// end.
fn meet<P>(a: &[P], b: &[P], is_star: impl Fn(&P) -> bool, can_be_one: impl Fn(&P, &P) -> bool) -> bool {
    let end: Vec<bool> = (0..=b.len()).map(|at| b.get(at..).unwrap_or_default().iter().all(&is_star)).collect();
    let below = |row: &[bool], at: usize| row.get(at).copied().unwrap_or(false);
    let mut under = end;
    for one in a.iter().rev() {
        let mut row = vec![false; b.len() + 1];
        for at in (0..=b.len()).rev() {
            let met = match b.get(at) {
                None => is_star(one) && below(&under, at),
                Some(other) if is_star(one) || is_star(other) => {
                    below(&under, at) || below(&row, at + 1) || below(&under, at + 1)
                }
                Some(other) => can_be_one(one, other) && below(&under, at + 1),
            };
            if let Some(cell) = row.get_mut(at) {
                *cell = met;
            }
        }
        under = row;
    }
    below(&under, 0)
}

fn is_one(token: &GlobToken, letter: char) -> bool {
    match token {
        GlobToken::Star | GlobToken::Question => true,
        GlobToken::Letter(own) => *own == letter,
        GlobToken::Set { ranges, is_negated } => {
            ranges.iter().any(|(first, last)| (*first..=*last).contains(&letter)) != *is_negated
        }
    }
}

fn can_be_one(a: &GlobToken, b: &GlobToken) -> bool {
    match (a, b) {
        (GlobToken::Letter(letter), other) | (other, GlobToken::Letter(letter)) => is_one(other, *letter),
        // Two sets may have no letter in common; assume that they have.
        _ => true,
    }
}

#[cfg(test)]
mod tests;
