//! `search_code`: lines that match, found by ripgrep's own crates.
//!
//! Files come from a walk that cannot leave the root and are opened through it, so what is searched is what may be
//! read. The order is that of the walk, whatever the threads do; the result is bounded and says what it leaves out.
//! Files with other names (hard links) are searched only when named, because then the gate was asked.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use grep_matcher::{LineTerminator, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use ignore::overrides::{Override, OverrideBuilder};
use max_team_core::limits::{SEARCH_LINE_BYTES_MAX, SEARCH_MATCHES_MAX, TOOL_RESULT_BYTES_MAX};
use max_team_core::policy::{Action, Class};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::files::{Walk, read_action, still_as_judged};
use crate::text::{many, visible};
use crate::tool::{Cx, Output, ToolError};
use crate::typed::Typed;

/// Files that are searched before the results are looked at.
const BATCH: usize = 256;
/// Files below which threads cost more than they bring.
const ALONE: usize = 16;
/// Threads of one search.
const THREADS_MAX: usize = 8;
/// Bytes of a pattern.
const PATTERN_BYTES_MAX: usize = 8 << 10;
/// Bytes of a compiled pattern.
const COMPILED_BYTES_MAX: usize = 8 << 20;
/// Bytes that the search of one file may hold; a line must fit in.
const HEAP_BYTES_MAX: usize = 16 << 20;
/// Bytes of a result, its notes not counted.
const RESULT_BYTES_MAX: usize = TOOL_RESULT_BYTES_MAX - 2_000;

/// Search the files of the project for a regular expression (Rust syntax, one line at a time). The result is grouped
/// by file: `12:text` is a match in line 12, `11-text` a line around it. Files that `.gitignore` ignores, hidden files
/// and binary files are left out, unless `path` names the hidden or ignored file or folder. At most 200 matches come.
/// Use it to find where something is defined or used; then read there with `read_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchCode {
    /// What to look for, like `fn \w+_file\b`; plain text if `literal` is set.
    pattern: String,
    /// The file or folder to search, relative to the project folder. Default: everything.
    path: Option<String>,
    /// Search only files whose path fits, like `*.rs`, `src/**/*.{ts,tsx}` or `!*.lock`.
    glob: Option<String>,
    /// Treat upper and lower case alike. Default: false.
    ignore_case: Option<bool>,
    /// Take `pattern` as plain text, not as a regular expression. Default: false.
    literal: Option<bool>,
    /// Lines to show before and after each match. Default: 0.
    #[schemars(range(max = 10))]
    context: Option<u32>,
    /// Give only the names of the files that match. Default: false.
    files_only: Option<bool>,
}

/// The tool.
pub(crate) fn search_code() -> Typed<SearchCode> {
    Typed::new("search_code", Class::Pure, action, call)
}

fn action(cx: &Cx, args: &SearchCode) -> Result<Action, ToolError> {
    Hunt::new(args)?;
    let place = cx.root.place(args.path.as_deref().unwrap_or("."))?;
    if cx.hides(&place) || cx.is_dir(place.as_path()) {
        return Ok(Action::read(place.to_string()));
    }
    Ok(read_action(&place, &cx.open_file(place.as_path())?))
}

fn call(cx: &Cx, args: SearchCode, intent: &Action, _: bool) -> Result<Output, ToolError> {
    let hunt = Hunt::new(&args)?;
    let place = cx.seen(args.path.as_deref().unwrap_or("."))?;
    let mut report = Report { files_only: hunt.files_only, ..Report::default() };
    if !cx.is_dir(place.as_path()) {
        let opened = cx.open_file(place.as_path())?;
        still_as_judged(&place, &opened, intent)?;
        report.add(place.as_path(), hunt.search(&mut hunt.searcher(), &opened.file, &cx.cancel));
        cx.check()?;
        return Ok(Output::text(report.finish(0, 0)));
    }
    let dir = cx.open_dir(place.as_path())?;
    let mut walk = Walk::new(cx, &place, dir);
    loop {
        let batch: Vec<PathBuf> =
            walk.by_ref().filter(|path| !hunt.glob.matched(path, false).is_ignore()).take(BATCH).collect();
        cx.check()?;
        if batch.is_empty() || report.is_full() {
            report.is_cut |= !batch.is_empty();
            break;
        }
        for (path, found) in batch.iter().zip(search_all(cx, &hunt, &batch)?) {
            report.add(path, found?);
        }
        cx.check()?;
    }
    Ok(Output::text(report.finish(walk.unread, walk.unseen)))
}

/// Searches a batch, in as many threads as are worth it; the results are in the order of the files.
fn search_all(cx: &Cx, hunt: &Hunt, batch: &[PathBuf]) -> Result<Vec<Result<Found, ToolError>>, ToolError> {
    let search = |share: &[PathBuf]| {
        let mut searcher = hunt.searcher();
        let search = |path: &PathBuf| match cx.open_file(path) {
            Ok(opened) if opened.is_linked() => Ok(Found::skipped(Skip::Linked)),
            Ok(opened) => Ok(hunt.search(&mut searcher, &opened.file, &cx.cancel)),
            Err(fatal @ ToolError::Fatal(_)) => Err(fatal),
            Err(ToolError::Correctable(_)) => Ok(Found::skipped(Skip::Unreadable)),
        };
        share.iter().map(search).collect::<Vec<_>>()
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    if batch.len() <= ALONE || threads == 1 {
        return Ok(search(batch));
    }
    let search = &search;
    std::thread::scope(|scope| {
        let share = batch.len().div_ceil(threads);
        let workers: Vec<_> = batch.chunks(share).map(|share| scope.spawn(move || search(share))).collect();
        let mut found = Vec::with_capacity(batch.len());
        for worker in workers {
            found.extend(worker.join().map_err(|_| ToolError::fatal("a thread of the search broke"))?);
        }
        Ok(found)
    })
}

/// What to look for and how.
struct Hunt {
    matcher: RegexMatcher,
    glob: Override,
    context: usize,
    files_only: bool,
}

impl Hunt {
    fn new(args: &SearchCode) -> Result<Self, ToolError> {
        if args.pattern.is_empty() {
            return Err(ToolError::correctable("the pattern is empty"));
        }
        if args.pattern.len() > PATTERN_BYTES_MAX {
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
            .build(&args.pattern)
            .map_err(|err| {
                let hint = if is_literal { "a pattern is one line" } else { "to look for plain text, set `literal`" };
                ToolError::correctable(format!("the pattern cannot be used: {err}; {hint}"))
            })?;
        let mut globs = OverrideBuilder::new("");
        if let Some(glob) = &args.glob {
            let glob = glob.strip_prefix("./").unwrap_or(glob);
            globs.add(glob).map_err(|err| ToolError::correctable(format!("the glob cannot be used: {err}")))?;
        }
        let glob = globs.build().map_err(|err| ToolError::correctable(format!("the glob cannot be used: {err}")))?;
        let context = usize::try_from(args.context.unwrap_or(0)).unwrap_or(0);
        Ok(Self { matcher, glob, context, files_only: args.files_only.unwrap_or(false) })
    }

    fn searcher(&self) -> Searcher {
        SearcherBuilder::new()
            .line_terminator(LineTerminator::crlf())
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(HEAP_BYTES_MAX))
            .before_context(self.context)
            .after_context(self.context)
            .build()
    }

    fn search(&self, searcher: &mut Searcher, file: &File, cancel: &CancellationToken) -> Found {
        let mut sink = Collector { hunt: self, found: Found::default(), bytes: 0 };
        let outcome = searcher.search_reader(&self.matcher, Stoppable { file, cancel }, &mut sink);
        match (outcome, sink.found) {
            (Ok(()), found) => found,
            (Err(_), _) => Found::skipped(Skip::Unreadable),
        }
    }
}

/// A file that stops giving when nobody wants it any more: a search without matches is never asked otherwise.
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

/// What a file gave.
#[derive(Debug, Default)]
struct Found {
    lines: Vec<Line>,
    matches: usize,
    /// Whether there may be more in the file.
    is_cut: bool,
    skipped: Option<Skip>,
}

#[derive(Debug)]
enum Line {
    Match(String),
    Around(String),
    Gap,
}

/// Why a file was not searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Skip {
    Binary,
    Linked,
    Unreadable,
}

impl Found {
    fn skipped(why: Skip) -> Self {
        Self { skipped: Some(why), ..Self::default() }
    }
}

struct Collector<'a> {
    hunt: &'a Hunt,
    found: Found,
    bytes: usize,
}

impl Collector<'_> {
    fn push(&mut self, number: Option<u64>, sign: char, bytes: &[u8]) -> Line {
        let line = String::from_utf8_lossy(bytes);
        let line = line.trim_end_matches(['\n', '\r']);
        let at = self.hunt.matcher.find(line.as_bytes()).ok().flatten().map_or(0, |found| found.start());
        let text = format!("{}{sign}{}", number.unwrap_or(0), visible(&around(line, at)));
        self.bytes += text.len() + 1;
        if sign == ':' { Line::Match(text) } else { Line::Around(text) }
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
        self.found.lines.push(Line::Gap);
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.found = Found::skipped(Skip::Binary);
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

/// The result as it grows.
#[derive(Debug, Default)]
struct Report {
    text: String,
    files_only: bool,
    matches: usize,
    files: usize,
    searched: usize,
    is_cut: bool,
    binary: usize,
    linked: usize,
    unreadable: usize,
}

impl Report {
    fn is_full(&self) -> bool {
        self.matches >= SEARCH_MATCHES_MAX || self.text.len() >= RESULT_BYTES_MAX
    }

    fn add(&mut self, path: &Path, found: Found) {
        match found.skipped {
            Some(Skip::Binary) => self.binary += 1,
            Some(Skip::Linked) => self.linked += 1,
            Some(Skip::Unreadable) => self.unreadable += 1,
            None => self.searched += 1,
        }
        if found.matches == 0 {
            return;
        }
        if self.is_full() {
            self.is_cut = true;
            return;
        }
        self.files += 1;
        let name = visible(&path.to_string_lossy());
        if self.files_only {
            self.matches += 1;
            self.text.push_str(&format!("{name}\n"));
            return;
        }
        self.is_cut |= found.is_cut;
        let gap = if self.text.is_empty() { "" } else { "\n" };
        self.text.push_str(&format!("{gap}{name}\n"));
        for line in &found.lines {
            if self.is_full() {
                self.is_cut = true;
                break;
            }
            let text = match line {
                Line::Match(text) | Line::Around(text) => text,
                Line::Gap => "--",
            };
            self.matches += usize::from(matches!(line, Line::Match(_)));
            self.text.push_str(&format!("{text}\n"));
        }
    }

    fn finish(mut self, unread: usize, unseen: usize) -> String {
        let mut notes = vec![match (self.files, self.files_only) {
            (0, _) => format!("no matches in {}", many(self.searched, "file")),
            (files, true) => many(files, "file"),
            (files, false) => format!("{} in {}", many(self.matches, "match"), many(files, "file")),
        }];
        if self.is_cut {
            notes.push("there are more; narrow it with `path`, `glob` or a longer pattern".to_owned());
        }
        if self.files == 0 && self.binary > 0 {
            notes.push(format!("{} not searched", many(self.binary, "binary file")));
        }
        if self.linked > 0 {
            notes.push(format!("{} not searched; search them by name", many(self.linked, "hard-linked file")));
        }
        if unseen > 0 {
            notes.push(format!("{} not for you to see left out", many(unseen, "name")));
        }
        if self.unreadable + unread > 0 {
            notes.push(format!("{} could not be searched", many(self.unreadable + unread, "file or folder")));
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&format!("[{}]", notes.join("; ")));
        self.text
    }
}
