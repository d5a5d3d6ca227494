//! Logs in files of the project, opened as `read_file` opens them: beneath the root, within sight.
//!
//! A log is read from its end backwards as far as a bound goes, because the newest lines are there. Ignored files are
//! looked at too: logs usually are.

use std::io::{BufRead, BufReader, Seek as _, SeekFrom};

use ignore::overrides::{Override, OverrideBuilder};
use max_team_core::limits::LOG_BYTES_MAX;
use max_team_core::policy::Action;

use super::QueryLog;
use super::filter::LogFilter;
use crate::files::{OpenedFile, Walk, read_action, still_as_judged};
use crate::text::{many, size, visible};
use crate::tool::{ToolContext, ToolError};

/// Bytes of one file that are looked through, its last ones.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// Files that are looked through.
const FILES_MAX: usize = 1_000;
/// Bytes of one line that are looked at.
const LINE_BYTES_MAX: usize = 64 << 10;
/// What logs are called.
const NAMES: [&str; 5] = ["*.log", "*.log.*", "*.jsonl", "*.out", "*.err"];

pub(super) fn action(cx: &ToolContext, args: &QueryLog) -> Result<Action, ToolError> {
    globs(args)?;
    let place = cx.root.place(args.path.as_deref().unwrap_or("."))?;
    if cx.hides(&place) || cx.is_dir(place.as_path()) {
        return Ok(Action::read(place.to_string()));
    }
    read_action(cx, &place)
}

/// Passes the lines of all files through the sieve; returns notes about them.
pub(super) fn read(
    cx: &ToolContext,
    args: &QueryLog,
    intent: &Action,
    sieve: &mut LogFilter,
) -> Result<Vec<String>, ToolError> {
    let place = cx.seen(args.path.as_deref().unwrap_or("."))?;
    let mut reading = LogReader { cx, sieve, left: LOG_BYTES_MAX, cut: 0, unread: 0 };
    if !cx.is_dir(place.as_path()) {
        let opened = cx.open_file(place.as_path())?;
        still_as_judged(cx, &place, &opened, intent)?;
        reading.file(&place.to_string(), opened)?;
        return Ok(reading.notes());
    }
    let globs = globs(args)?;
    let walk = Walk::unruled(cx, &place, cx.open_dir(place.as_path())?);
    let mut files = 0;
    for path in walk.filter(|path| globs.matched(path, false).is_whitelist()) {
        if files == FILES_MAX || reading.left == 0 {
            reading.cut += 1;
            break;
        }
        files += 1;
        match cx.open_file(&path) {
            // A hard link may be a file from elsewhere: it is read only if it is named, because then the policy was
            // asked.
            Ok(opened) if !opened.is_linked() => reading.file(&path.to_string_lossy(), opened)?,
            Ok(_) | Err(ToolError::Correctable(_)) => reading.unread += 1,
            Err(fatal) => return Err(fatal),
        }
        cx.progress.say(|| format!("{} of logs", many(files, "file")));
    }
    let mut notes = reading.notes();
    notes.push(format!("{} of logs in `{place}`", many(files, "file")));
    Ok(notes)
}

fn globs(args: &QueryLog) -> Result<Override, ToolError> {
    let mut builder = OverrideBuilder::new("");
    let wrong = |err| ToolError::correctable(format!("the glob cannot be used: {err}"));
    match &args.glob {
        Some(glob) => {
            builder.add(glob.strip_prefix("./").unwrap_or(glob)).map_err(wrong)?;
        }
        None => {
            for name in NAMES {
                builder.add(name).map_err(wrong)?;
            }
        }
    }
    builder.build().map_err(wrong)
}

struct LogReader<'a> {
    cx: &'a ToolContext,
    sieve: &'a mut LogFilter,
    /// Bytes that may still be looked through.
    left: u64,
    cut: usize,
    unread: usize,
}

impl LogReader<'_> {
    fn file(&mut self, name: &str, opened: OpenedFile) -> Result<(), ToolError> {
        let whole = opened.size();
        let most = FILE_BYTES_MAX.min(self.left);
        let mut file = opened.file;
        let skipped = whole.saturating_sub(most);
        self.left -= whole.min(most);
        let mut reader = match file.seek(SeekFrom::Start(skipped)) {
            Ok(_) => BufReader::with_capacity(256 << 10, file),
            Err(_) => {
                self.unread += 1;
                return Ok(());
            }
        };
        if skipped > 0 {
            self.cut += 1;
            // The rest of a line whose beginning was not read.
            let _ = reader.skip_until(b'\n');
        }
        let (mut line, mut number) = (Vec::new(), 0_u64);
        let name = visible(name);
        loop {
            number += 1;
            if number.is_multiple_of(4_096) {
                self.cx.check()?;
            }
            match next(&mut reader, &mut line) {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) => {
                    self.unread += 1;
                    break;
                }
            }
            let text = String::from_utf8_lossy(&line);
            // Lines are numbered only where the file was read from its start.
            let from = || if skipped == 0 { format!("{name}:{number}") } else { name.clone() };
            self.sieve.line(text.trim_end_matches(['\n', '\r']), from);
        }
        self.sieve.end_stream();
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.cut > 0 {
            notes.push(format!(
                "not everything was looked through: at most {FILES_MAX} files, the last {} of each, {} in all",
                size(FILE_BYTES_MAX),
                size(LOG_BYTES_MAX)
            ));
        }
        if self.unread > 0 {
            notes.push(format!("{} could not be read", many(self.unread, "file")));
        }
        notes
    }
}

/// Takes one line, or as much of it as is looked at; `false` at the end.
fn next(reader: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<bool> {
    line.clear();
    let mut is_any = false;
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(is_any);
        }
        is_any = true;
        let mut rest = buffer;
        let taken = rest.skip_until(b'\n')?;
        let part = buffer.get(..taken).unwrap_or_default();
        let is_whole = part.ends_with(b"\n");
        let room = LINE_BYTES_MAX.saturating_sub(line.len()).min(part.len());
        line.extend_from_slice(part.get(..room).unwrap_or_default());
        reader.consume(taken);
        if is_whole {
            return Ok(true);
        }
    }
}
