//! `search_code`: lines that match, or things by their name, in the files of the project.
//!
//! Files come from a walk that cannot leave the root and are opened through it, so what is searched is what may be
//! read. Threads take files from one walk; the result has the order of the walk, regardless of the threads, is
//! bounded, and says what it leaves out. Files with other names (hard links) are searched only if they are named,
//! because then the policy was asked.

mod languages;
mod lines;
mod report;
mod symbols;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use grep_searcher::Searcher;
use ignore::overrides::{Override, OverrideBuilder};
use max_team_core::limits::{SEARCH_MATCHES_MAX, TOOL_RESULT_BYTES_MAX};
use max_team_core::policy::{Action, ActionKind, Repeatability};
use schemars::JsonSchema;
use serde::Deserialize;

use self::lines::LineSearch;
use self::report::{FileMatches, SearchReport, SkipReason};
use self::symbols::SymbolSearch;
use crate::files::{OpenedFile, Walk, read_action, still_as_judged};
use crate::text::many;
use crate::tool::{Output, ToolContext, ToolError};
use crate::typed::Typed;

/// Files that a thread takes at once.
const BATCH: usize = 32;
/// Threads of one search.
const THREADS_MAX: usize = 8;
/// Bytes of a result, its notes not counted.
const RESULT_BYTES_MAX: usize = TOOL_RESULT_BYTES_MAX - 2_000;

/// Search files by `pattern` (a Rust regular expression, line by line) or by `symbol` (where a name is defined, or with
/// `kind: call` called), or list files by `glob` alone. Ignored, hidden and binary files are left out unless `path` names them. At most 200 matches.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchCode {
    /// Like `fn \w+_file\b`; plain text with `literal`.
    pattern: Option<String>,
    /// A name, instead of `pattern`; `*` stands for any letters.
    symbol: Option<String>,
    /// Default: any definition.
    #[schemars(extend("enum" = ["function", "type", "constant", "module", "call"]))]
    kind: Option<String>,
    /// File or folder. Default: all.
    path: Option<String>,
    /// Only these files, like `src/**/*.{ts,tsx}` or `!*.lock`.
    glob: Option<String>,
    ignore_case: Option<bool>,
    literal: Option<bool>,
    /// Lines around each match.
    #[schemars(range(max = 10))]
    context: Option<u32>,
    /// Only file names.
    files_only: Option<bool>,
}

pub(crate) fn search_code() -> Typed<SearchCode> {
    Typed::new("search_code", Repeatability::Pure, action, call)
}

fn action(cx: &ToolContext, args: &SearchCode) -> Result<Action, ToolError> {
    SearchKind::new(args)?;
    glob(args)?;
    let path = args.path.as_deref().unwrap_or(".");
    if let Some((cx, name)) = cx.shelved(path)? {
        cx.open_file(cx.root.place(name)?.as_path())?;
        return Ok(Action { kind: ActionKind::Query, ..Action::read(path) });
    }
    let place = cx.place(path)?;
    let seen = || Action { kind: place.reading(), ..Action::read(place.to_string()) };
    if cx.hides(&place) {
        return Ok(seen());
    }
    let at = cx.look(&place)?;
    let cx = &*at;
    if cx.is_dir(place.as_path()) { Ok(seen()) } else { read_action(cx, &place) }
}

fn call(cx: &ToolContext, args: SearchCode, intent: &Action, _: bool) -> Result<Output, ToolError> {
    let path = args.path.as_deref().unwrap_or(".");
    match cx.shelved(path)? {
        Some((store, name)) => search(&store, &args, name, intent),
        None => search(cx, &args, path, intent),
    }
}

fn search(cx: &ToolContext, args: &SearchCode, path: &str, intent: &Action) -> Result<Output, ToolError> {
    let way = SearchKind::new(args)?;
    let place = cx.named(path)?;
    let at = cx.look(&place)?;
    let cx = &*at;
    let is_by_name = matches!(way, SearchKind::Names) || args.files_only.unwrap_or(false);
    let mut report = SearchReport::new(is_by_name, place.label());
    if !cx.is_dir(place.as_path()) {
        let opened = cx.open_file(place.as_path())?;
        still_as_judged(cx, &place, &opened, intent)?;
        report.add(place.as_path(), way.look(cx, &mut way.searcher(), place.as_path(), &opened));
        cx.check()?;
        return Ok(Output::text(report.finish(0, 0)));
    }
    let glob = glob(args)?;
    let mut walk = Walk::new(cx, &place, cx.open_dir(place.as_path())?);
    let fits = |path: &PathBuf| !glob.matched(path, false).is_ignore() && way.reads(path);
    let report = search_tree(cx, &way, &mut walk, fits, report)?;
    cx.check()?;
    Ok(Output::text(report.finish(walk.unread, walk.unseen)))
}

fn glob(args: &SearchCode) -> Result<Override, ToolError> {
    let wrong = |err| ToolError::correctable(format!("the glob cannot be used: {err}"));
    let mut globs = OverrideBuilder::new("");
    if let Some(glob) = &args.glob {
        globs.add(glob.strip_prefix("./").unwrap_or(glob)).map_err(wrong)?;
    }
    globs.build().map_err(wrong)
}

/// What is looked for, and how.
enum SearchKind {
    Lines(LineSearch),
    Symbols(SymbolSearch),
    /// Files by their names alone.
    Names,
}

impl SearchKind {
    fn new(args: &SearchCode) -> Result<Self, ToolError> {
        match (&args.pattern, &args.symbol) {
            (Some(pattern), None) => LineSearch::new(args, pattern).map(Self::Lines),
            (None, Some(symbol)) => SymbolSearch::new(symbol, args.kind.as_deref()).map(Self::Symbols),
            (None, None) if args.glob.is_some() => Ok(Self::Names),
            _ => Err(ToolError::correctable(
                "give a `pattern` or a `symbol` to look for, or a `glob` alone to list the files that it fits",
            )),
        }
    }

    /// The searcher of one thread.
    fn searcher(&self) -> Searcher {
        match self {
            Self::Lines(hunt) => hunt.searcher(),
            Self::Symbols(_) | Self::Names => Searcher::new(),
        }
    }

    /// Whether a file of that name is looked into at all.
    fn reads(&self, path: &Path) -> bool {
        match self {
            Self::Lines(_) | Self::Names => true,
            Self::Symbols(_) => symbols::knows(path),
        }
    }

    fn look(&self, cx: &ToolContext, searcher: &mut Searcher, path: &Path, opened: &OpenedFile) -> FileMatches {
        match self {
            Self::Lines(hunt) => hunt.search(searcher, &opened.file, &cx.cancel),
            Self::Symbols(quest) => quest.search(path, &opened.file, &cx.cancel),
            Self::Names => FileMatches { matches: 1, ..FileMatches::default() },
        }
    }
}

/// What the threads of one search share.
struct SearchState {
    report: SearchReport,
    /// The batch that is to be reported next.
    next: usize,
    /// Batches that were searched before those in front of them.
    waiting: BTreeMap<usize, Vec<(PathBuf, FileMatches)>>,
    /// Matches in them.
    matches_waiting: usize,
    failed: Option<ToolError>,
}

impl SearchState {
    /// Whether what was found so far is all that will be told.
    fn is_enough(&self) -> bool {
        self.failed.is_some() || self.report.is_full() || self.matches_waiting >= SEARCH_MATCHES_MAX
    }

    fn hand_in(&mut self, number: usize, found: Vec<(PathBuf, FileMatches)>) {
        self.matches_waiting += found.iter().map(|(_, found)| found.matches).sum::<usize>();
        self.waiting.insert(number, found);
        while let Some(batch) = self.waiting.remove(&self.next) {
            self.next += 1;
            for (path, found) in batch {
                self.matches_waiting -= found.matches;
                self.report.add(&path, found);
            }
        }
    }
}

/// Searches what a walk finds, in as many threads as there are cores. A free thread takes the next files of the walk,
/// so a large file holds up only its own thread.
fn search_tree(
    cx: &ToolContext,
    way: &SearchKind,
    walk: &mut Walk<'_>,
    fits: impl Fn(&PathBuf) -> bool + Sync,
    report: SearchReport,
) -> Result<SearchReport, ToolError> {
    let source = Mutex::new((0, walk));
    let board = Mutex::new(SearchState { report, next: 0, waiting: BTreeMap::new(), matches_waiting: 0, failed: None });
    let work = || {
        let mut searcher = way.searcher();
        loop {
            // Files that were taken from the walk must be searched, or there would be a hole in the result.
            let (number, batch) = {
                let mut source = lock(&source);
                let (number, walk) = &mut *source;
                let mut files = walk.by_ref().filter(|path| fits(path));
                let mut board = lock(&board);
                if board.is_enough() {
                    board.report.is_cut |= files.next().is_some();
                    return;
                }
                drop(board);
                *number += 1;
                (*number - 1, files.take(BATCH).collect::<Vec<_>>())
            };
            if batch.is_empty() || cx.cancel.is_cancelled() {
                return;
            }
            let mut found = Vec::with_capacity(batch.len());
            for path in batch {
                let seen = match cx.open_file(&path) {
                    Ok(opened) if opened.is_linked() => FileMatches::skipped(SkipReason::Linked),
                    Ok(opened) => way.look(cx, &mut searcher, &path, &opened),
                    Err(ToolError::Correctable(_)) => FileMatches::skipped(SkipReason::Unreadable),
                    Err(fatal) => {
                        lock(&board).failed = Some(fatal);
                        return;
                    }
                };
                found.push((path, seen));
            }
            let mut board = lock(&board);
            board.hand_in(number, found);
            cx.progress.say(|| many(board.report.searched, "file"));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        work();
        let broken = others.into_iter().map(|other| other.join()).filter(Result::is_err).count();
        if broken == 0 { Ok(()) } else { Err(ToolError::fatal("a thread of the search broke")) }
    })?;
    let board = board.into_inner().unwrap_or_else(PoisonError::into_inner);
    match board.failed {
        Some(fatal) => Err(fatal),
        None => Ok(board.report),
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
