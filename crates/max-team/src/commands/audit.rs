//! `audit show`, `audit export` and `audit verify`: the journal as evidence. `export` is the same as `audit export`.

mod page;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;

use max_team_journal::{Drifted, Entry, Fault, FaultKind, Journal, JournalError, Options, Report};
use max_team_runtime::{Census, Filter, Record, compare_rows};
use serde_json::json;

use super::sessions::local;
use crate::args;
use crate::exit::{Exit, Stop};
use crate::setup::{self, Place};
use crate::terminal::text::clean;
use crate::words::Lang;

pub(crate) fn run(place: &Place, command: &args::Audit) -> anyhow::Result<Exit> {
    match command {
        args::Audit::Show { which, json } => show(place, which, *json),
        args::Audit::Export(options) => export(place, options),
        args::Audit::Verify { json } => {
            let checked = find(place).and_then(|journal| {
                let report = journal.verify()?;
                // Rows of a log that does not hold prove nothing.
                let rows = if report.is_sound() { compare_rows(&journal)? } else { Drifted::default() };
                Ok((report, rows))
            });
            let (report, rows) = match checked {
                Err(JournalError::Corrupt { detail, .. } | JournalError::Malformed { detail, .. }) => {
                    (unreadable(detail), Drifted::default())
                }
                checked => checked.map_err(|error| setup::stop(&error))?,
            };
            verify(&report, &rows, *json, &place.home.join("journal.db").display().to_string(), place.speaks())
        }
    }
}

/// Evidence is looked at where it is; a new, empty journal would prove nothing.
fn find(place: &Place) -> Result<Journal, JournalError> {
    Journal::find(&place.home, Options::default())
}

/// What is known of a file that cannot even be opened.
fn unreadable(detail: String) -> Report {
    let fault = Fault { seq: 0, stream: String::new(), kind: FaultKind::Damaged, detail };
    Report { faults: vec![fault], ..Report::default() }
}

fn filter(census: &Census<'_>, which: &args::Which, after: u64) -> Result<Filter, Stop> {
    Ok(Filter {
        session: which.session.as_deref().map(|id| setup::session(census, id)).transpose()?,
        agent: which.agent.clone(),
        kinds: which.kind.clone(),
        task: which.task.clone(),
        since_ms: which.since,
        until_ms: which.until,
        after_seq: after,
    })
}

fn show(place: &Place, which: &args::Which, json: bool) -> anyhow::Result<Exit> {
    let (journal, lang) = (find(place).map_err(|error| setup::stop(&error))?, place.speaks());
    let census = Census::new(&journal);
    let filter = filter(&census, which, 0)?;
    let mut out = Out::new(Box::new(io::stdout().lock()));
    let walked = census.records(&filter, |_, record| {
        let line = if json {
            serde_json::to_string(record).unwrap_or_default()
        } else {
            clean(&line(record, lang)).into_owned()
        };
        out.line(line.as_bytes())
    });
    walked.map_err(setup::failed)?;
    out.finish()
}

/// A record as people read it.
fn line(record: &Record, lang: Lang) -> String {
    let whose = record.agent.as_deref().unwrap_or(&record.actor);
    let mut line = format!("{:>7}  {}  {whose}  {}", record.seq, local(record.at_ms), record.event);
    if let Some(task) = &record.task {
        line.push_str(&format!(" [{task}]"));
    }
    let said = if record.erased { lang.forgotten_word() } else { &record.what };
    if !said.is_empty() {
        line.push_str(&format!(": {said}"));
    }
    if let Some(allowed) = &record.allowed {
        line.push_str(&format!("\n         {}", lang.allowed(allowed)));
    }
    line
}

/// Every entry as it is, as lines; or what happened, as a page.
pub(crate) fn export(place: &Place, options: &args::Export) -> anyhow::Result<Exit> {
    let (journal, lang) = (find(place).map_err(|error| setup::stop(&error))?, place.speaks());
    let census = Census::new(&journal);
    let mut filter = filter(&census, &options.which, options.after)?;
    if let Some(id) = &options.id {
        filter.session = Some(setup::session(&census, id)?);
    }
    let target = options.html.as_deref().or(options.jsonl.as_deref()).map(|file| place.cwd.join(file));
    let out: Box<dyn Write> = match &target {
        Some(file) => Box::new(create(file)?),
        None => Box::new(io::stdout().lock()),
    };
    let mut out = Out::new(out);
    if options.html.is_some() {
        let now = local(super::desk::now_ms());
        if out.line(page::head(lang, &now).as_bytes()).is_continue() {
            let walked = census.records(&filter, |_, record| out.line(page::row(record, lang).as_bytes()));
            walked.map_err(setup::failed)?;
            out.line(page::foot().as_bytes()).is_continue();
        }
    } else {
        let plain = Filter { session: filter.session, after_seq: filter.after_seq, ..Filter::default() };
        let put = |out: &mut Out, entry: &Entry| match entry.to_line() {
            Ok(line) => out.line(&line),
            Err(error) => out.fail(io::Error::other(error)),
        };
        // Without a wish there is nothing to look up, and what is damaged further on is no reason to print less.
        if filter == plain {
            census.walk(filter.session, filter.after_seq, |entry| put(&mut out, entry)).map_err(setup::failed)?;
        } else {
            census.records(&filter, |entry, _| put(&mut out, entry)).map_err(setup::failed)?;
        }
    }
    let lines = out.lines;
    out.finish()?;
    if let Some(file) = target {
        crate::headless::talk(&lang.lines_in(lines, &file.display().to_string()));
    }
    Ok(Exit::Ok)
}

/// A new file that nobody else reads; nothing is overwritten.
fn create(file: &Path) -> Result<BufWriter<File>, Stop> {
    use std::os::unix::fs::OpenOptionsExt;
    let made = std::fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(file);
    let path = file.display().to_string();
    made.map(BufWriter::new).map_err(|error| {
        Stop::said(Exit::Failed, |lang| match error.kind() {
            io::ErrorKind::AlreadyExists => lang.file_is_there(&path),
            _ => lang.cannot_write(&path, &error.to_string()),
        })
    })
}

/// Where lines go, and what became of them.
struct Out<'w> {
    to: BufWriter<Box<dyn Write + 'w>>,
    lines: u64,
    ended: io::Result<()>,
}

impl<'w> Out<'w> {
    fn new(to: Box<dyn Write + 'w>) -> Self {
        Self { to: BufWriter::new(to), lines: 0, ended: Ok(()) }
    }

    fn line(&mut self, line: &[u8]) -> ControlFlow<()> {
        self.lines += 1;
        match self.to.write_all(line).and_then(|()| self.to.write_all(b"\n")) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => self.fail(error),
        }
    }

    fn fail(&mut self, error: io::Error) -> ControlFlow<()> {
        self.ended = Err(error);
        ControlFlow::Break(())
    }

    fn finish(mut self) -> anyhow::Result<Exit> {
        match self.ended.and_then(|()| self.to.flush()) {
            // A reader that has seen enough (`| head`) is no failure.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(Exit::Ok),
        }
    }
}

fn verify(report: &Report, rows: &Drifted, json: bool, path: &str, lang: Lang) -> anyhow::Result<Exit> {
    let faults = report.faults.len() as u64 + report.more_faults;
    let ok = faults == 0 && rows.is_empty();
    if json {
        let fault = |fault: &Fault| json!({ "seq": fault.seq, "stream": fault.stream, "kind": format!("{:?}", fault.kind), "detail": fault.detail });
        let row = |row: &max_team_journal::Drift| json!({ "table": row.table, "key": row.key, "how": format!("{:?}", row.how).to_lowercase() });
        let report = json!({
            "entries": report.entries, "streams": report.streams, "seals": report.seals, "erased": report.erased,
            "ok": ok, "faults": report.faults.iter().map(fault).collect::<Vec<_>>(), "more_faults": report.more_faults,
            "rows": rows.rows.iter().map(row).collect::<Vec<_>>(), "more_rows": rows.more,
        });
        super::print(&format!("{report}\n"))?;
    } else {
        let mut text = lang.verified(report.entries, report.streams, report.seals, report.erased) + "\n";
        let told = report.faults.iter().map(|fault| lang.fault(fault));
        for line in told.chain(rows.rows.iter().map(|row| lang.drift(row))) {
            text.push_str(&line);
            text.push('\n');
        }
        if ok {
            text.push_str(lang.all_holds());
            text.push('\n');
        }
        super::print(&clean(&text))?;
    }
    if ok {
        return Ok(Exit::Ok);
    }
    let damaged = report.faults.iter().any(|fault| fault.kind == FaultKind::Damaged);
    let advice = match faults {
        0 => lang.rows_differ(rows.count()),
        _ if damaged => lang.file_damaged(path),
        faults => lang.log_edited(faults),
    };
    Err(Stop::new(Exit::Failed, advice).into())
}
