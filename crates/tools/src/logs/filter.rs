//! Which lines are wanted, and the newest of them.

use std::collections::VecDeque;

use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use jiff::Timestamp;
use serde_json::Value;

use super::QueryLog;
use crate::time_parse;
use crate::tool::ToolError;

/// Bytes of a compiled pattern.
const COMPILED_BYTES_MAX: usize = 8 << 20;
/// Bytes at the start of a line in which its level is looked for.
const LEVEL_BYTES: usize = 200;

/// How bad a line is; the order is the badness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LogLevel {
    Debug,
    Info,
    Warn,
    Error,
}

impl LogLevel {
    fn of(word: &str) -> Option<Self> {
        Some(match word.to_ascii_lowercase().as_str() {
            "trace" | "debug" | "dbg" | "verbose" => Self::Debug,
            "info" | "information" | "notice" => Self::Info,
            "warn" | "warning" | "wrn" => Self::Warn,
            "error" | "err" | "fatal" | "critical" | "crit" | "panic" | "alert" | "emerg" | "severe" => Self::Error,
            _ => return None,
        })
    }

    /// The level that a line says it has.
    fn in_line(line: &str) -> Option<Self> {
        if line.starts_with('{') {
            let entry: Value = serde_json::from_str(line).ok()?;
            let told = ["level", "severity", "lvl", "loglevel"].iter().find_map(|key| entry.get(key)?.as_str());
            return told.and_then(Self::of);
        }
        let head = line.get(..line.floor_char_boundary(LEVEL_BYTES))?;
        let mut words = head.split(|letter: char| !letter.is_ascii_alphabetic()).filter(|word| !word.is_empty());
        // Words in a sentence are written small; `level=error` is meant too.
        words.find_map(|word| {
            let is_told = word.bytes().all(|byte| byte.is_ascii_uppercase())
                || head.contains(&format!("={word}"))
                || head.contains(&format!("[{word}]"));
            Self::of(word).filter(|_| is_told)
        })
    }
}

/// A line that fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogLine {
    pub(super) at: Option<Timestamp>,
    /// The file and line, or the labels, that it comes from.
    pub(super) from: String,
    pub(super) line: String,
}

/// What is wanted, and what was found of it so far.
#[derive(Debug)]
pub(super) struct LogFilter {
    pattern: Option<RegexMatcher>,
    pub(super) level: Option<LogLevel>,
    pub(super) since: Option<Timestamp>,
    pub(super) until: Option<Timestamp>,
    limit: usize,
    /// What the line before was, for lines that do not say.
    last: (Option<Timestamp>, Option<LogLevel>),
    /// Lines that were looked at.
    pub(super) seen: u64,
    /// Lines that fit.
    pub(super) fitting: u64,
    /// Of the stream that is read now …
    newest: VecDeque<LogLine>,
    /// … and of those before.
    found: Vec<LogLine>,
}

impl LogFilter {
    pub(super) fn new(args: &QueryLog) -> Result<Self, ToolError> {
        let pattern = args.pattern.as_ref().map(|pattern| {
            RegexMatcherBuilder::new()
                .case_insensitive(true)
                .size_limit(COMPILED_BYTES_MAX)
                .dfa_size_limit(COMPILED_BYTES_MAX)
                .build(pattern)
                .map_err(|err| ToolError::correctable(format!("the pattern cannot be used: {err}")))
        });
        let when = |name, text: &Option<String>| text.as_ref().map(|text| time_parse::parse(name, text)).transpose();
        let level = args.level.as_ref().map(|level| {
            LogLevel::of(level).ok_or_else(|| ToolError::correctable("`level` is debug, info, warn or error"))
        });
        Ok(Self {
            pattern: pattern.transpose()?,
            level: level.transpose()?,
            since: when("since", &args.since)?,
            until: when("until", &args.until)?,
            limit: args.limit(),
            last: (None, None),
            seen: 0,
            fitting: 0,
            newest: VecDeque::new(),
            found: Vec::new(),
        })
    }

    /// Looks at a line of a file: its time and level are what it says, or those of the line before.
    pub(super) fn line(&mut self, line: &str, from: impl FnOnce() -> String) {
        let own = time_parse::stamp(line);
        let before = self.last.1.filter(|_| own.is_none());
        let (at, level) = (own.or(self.last.0), self.level.and_then(|_| LogLevel::in_line(line).or(before)));
        self.last = (at, level);
        self.take(at, level, line, from);
    }

    /// Looks at a line whose time is known.
    pub(super) fn told_line(&mut self, at: Option<Timestamp>, line: &str, from: impl FnOnce() -> String) {
        let level = self.level.and_then(|_| LogLevel::in_line(line));
        self.take(at, level, line, from);
    }

    /// Takes a line whose time and level are known, if it fits.
    pub(super) fn take(
        &mut self,
        at: Option<Timestamp>,
        level: Option<LogLevel>,
        line: &str,
        from: impl FnOnce() -> String,
    ) {
        self.seen += 1;
        let fits = self.since.is_none_or(|since| at.is_some_and(|at| at >= since))
            && self.until.is_none_or(|until| at.is_some_and(|at| at < until))
            && self.level.is_none_or(|least| level.is_some_and(|level| level >= least))
            && self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(line.as_bytes()).unwrap_or(false));
        if !fits {
            return;
        }
        self.fitting += 1;
        if self.newest.len() == self.limit {
            self.newest.pop_front();
        }
        self.newest.push_back(LogLine { at, from: from(), line: line.to_owned() });
    }

    /// The stream ends; the next line has nothing to do with the last.
    pub(super) fn end_stream(&mut self) {
        self.last = (None, None);
        self.found.extend(self.newest.drain(..));
        // Of many files no more than twice of what is wanted is held.
        if self.found.len() > 2 * self.limit && self.found.iter().all(|told| told.at.is_some()) {
            self.found = newest(std::mem::take(&mut self.found), self.limit);
        }
    }

    /// What is told, oldest first.
    pub(super) fn finish(mut self) -> Vec<LogLine> {
        self.end_stream();
        newest(self.found, self.limit)
    }
}

/// The newest lines, oldest first; in the order of their files where some have no time.
fn newest(mut lines: Vec<LogLine>, limit: usize) -> Vec<LogLine> {
    if lines.iter().all(|told| told.at.is_some()) {
        lines.sort_by_key(|told| told.at);
    }
    let over = lines.len().saturating_sub(limit);
    lines.split_off(over)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_how_bad_they_are() {
        let table = [
            ("2026-01-01 ERROR boom", Some(LogLevel::Error)),
            ("[warn] low disk", Some(LogLevel::Warn)),
            ("ts=1 level=error msg=x", Some(LogLevel::Error)),
            ("WARNING: an error happened", Some(LogLevel::Warn)),
            ("I had no error at all", None),
            ("thread 'main' panic", None),
            (r#"{"level":"WARN","msg":"error"}"#, Some(LogLevel::Warn)),
            ("", None),
        ];
        for (line, want) in table {
            assert_eq!(LogLevel::in_line(line), want, "{line}");
        }
    }
}
