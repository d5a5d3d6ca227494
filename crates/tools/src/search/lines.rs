//! Lines that match a regular expression, found by ripgrep's own crates.
//!
//! One file at a time, in bounded memory; what a file gives is bounded too. Knows nothing of folders or threads.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;

use grep_matcher::{LineTerminator, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use max_team_core::limits::{SEARCH_LINE_BYTES_MAX, SEARCH_MATCHES_MAX};
use max_team_core::secret::is_key_file;
use tokio_util::sync::CancellationToken;

use super::report::{FileMatches, ReportLine, SkipReason};
use super::{RESULT_BYTES_MAX, SearchCode};
use crate::text::visible;
use crate::tool::ToolError;

/// Bytes of a pattern.
const PATTERN_BYTES_MAX: usize = 8 << 10;
/// Bytes of a compiled pattern.
const COMPILED_BYTES_MAX: usize = 8 << 20;
/// Bytes that the search of one file may hold; a line must fit in.
const HEAP_BYTES_MAX: usize = 16 << 20;

/// Bytes at the start of a file that tell a private key.
const KEY_HEAD_BYTES: usize = 1 << 10;

/// What to look for and how.
pub(super) struct LineSearch {
    matcher: RegexMatcher,
    context: usize,
    files_only: bool,
}

impl LineSearch {
    pub(super) fn new(args: &SearchCode, pattern: &str) -> Result<Self, ToolError> {
        if pattern.is_empty() {
            return Err(ToolError::correctable("the pattern is empty"));
        }
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(ToolError::correctable(format!("the pattern is longer than {PATTERN_BYTES_MAX} bytes")));
        }
        let is_literal = args.literal.unwrap_or(false);
        let matcher = RegexMatcherBuilder::new()
            .fixed_strings(is_literal)
            .case_insensitive(args.ignore_case.unwrap_or(false))
            .size_limit(COMPILED_BYTES_MAX)
            .dfa_size_limit(COMPILED_BYTES_MAX)
            // So that `^` and `$` mean a line's start and end, in files with CR LF too.
            .multi_line(true)
            .crlf(true)
            .build(pattern)
            .map_err(|err| {
                let hint = if is_literal { "a pattern is one line" } else { "to look for plain text, set `literal`" };
                ToolError::correctable(format!("the pattern cannot be used: {err}; {hint}"))
            })?;
        let context = usize::try_from(args.context.unwrap_or(0)).unwrap_or(0);
        Ok(Self { matcher, context, files_only: args.files_only.unwrap_or(false) })
    }

    pub(super) fn searcher(&self) -> Searcher {
        SearcherBuilder::new()
            .line_terminator(LineTerminator::crlf())
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(HEAP_BYTES_MAX))
            .before_context(self.context)
            .after_context(self.context)
            .build()
    }

    pub(super) fn search(&self, searcher: &mut Searcher, file: &File, cancel: &CancellationToken) -> FileMatches {
        let mut head = [0; KEY_HEAD_BYTES];
        let read = file.read_at(&mut head, 0).unwrap_or(0);
        if is_key_file(head.get(..read).unwrap_or_default()) {
            return FileMatches::skipped(SkipReason::Key);
        }
        let mut sink = Collector { hunt: self, found: FileMatches::default(), bytes: 0 };
        let outcome = searcher.search_reader(&self.matcher, Stoppable { file, cancel }, &mut sink);
        match (outcome, sink.found) {
            (Ok(()), found) => found,
            (Err(_), _) => FileMatches::skipped(SkipReason::Unreadable),
        }
    }
}

/// A file that cannot be read on once the search is cancelled: a search without matches checks this nowhere else.
struct Stoppable<'a> {
    file: &'a File,
    cancel: &'a CancellationToken,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("stopped"));
        }
        self.file.read(buffer)
    }
}

struct Collector<'a> {
    hunt: &'a LineSearch,
    found: FileMatches,
    bytes: usize,
}

impl Collector<'_> {
    fn push(&mut self, number: Option<u64>, sign: char, bytes: &[u8]) -> ReportLine {
        let line = String::from_utf8_lossy(bytes);
        let line = line.trim_end_matches(['\n', '\r']);
        let at = self.hunt.matcher.find(line.as_bytes()).ok().flatten().map_or(0, |found| found.start());
        let text = format!("{}{sign}{}", number.unwrap_or(0), visible(&around(line, at)));
        self.bytes += text.len() + 1;
        if sign == ':' { ReportLine::Match(text) } else { ReportLine::Around(text) }
    }
}

impl Sink for Collector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.found.matches >= SEARCH_MATCHES_MAX || self.bytes > RESULT_BYTES_MAX {
            self.found.is_cut = true;
            return Ok(false);
        }
        self.found.matches += 1;
        if self.hunt.files_only {
            return Ok(false);
        }
        let line = self.push(found.line_number(), ':', found.bytes());
        self.found.lines.push(line);
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, around: &SinkContext<'_>) -> io::Result<bool> {
        let line = self.push(around.line_number(), '-', around.bytes());
        self.found.lines.push(line);
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.found.lines.push(ReportLine::Gap);
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.found = FileMatches::skipped(SkipReason::Binary);
        Ok(false)
    }
}

/// A line, or as much of it around its match as is shown.
fn around(line: &str, at: usize) -> String {
    if line.len() <= SEARCH_LINE_BYTES_MAX {
        return line.to_owned();
    }
    let from = line.floor_char_boundary(at.saturating_sub(SEARCH_LINE_BYTES_MAX / 4));
    let to = line.floor_char_boundary(from + SEARCH_LINE_BYTES_MAX);
    let (head, tail) = (if from > 0 { "…" } else { "" }, if to < line.len() { "…" } else { "" });
    format!("{head}{}{tail}", line.get(from..to).unwrap_or_default())
}
