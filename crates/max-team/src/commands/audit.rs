//! `audit export` and `audit verify`: the journal as evidence.

use std::io::Write;
use std::ops::ControlFlow;

use max_team_journal::{Fault, FaultKind, Journal, JournalError, Options, Report};
use serde_json::json;

use crate::args;
use crate::exit::{Exit, Stop};
use crate::setup::{self, Place};
use crate::words::Lang;

pub(crate) fn run(place: &Place, command: &args::Audit) -> anyhow::Result<Exit> {
    // Evidence is looked at where it is; a new, empty journal would prove nothing.
    let journal = Journal::find(&place.home, Options::default());
    match command {
        args::Audit::Export { after } => export(&journal.map_err(|error| setup::stop(&error))?, *after),
        args::Audit::Verify { json } => {
            let report = match journal.and_then(|journal| journal.verify()) {
                Err(JournalError::Corrupt { detail, .. }) => unreadable(detail),
                report => report.map_err(|error| setup::stop(&error))?,
            };
            verify(&report, *json, &place.home.join("journal.db").display().to_string(), place.speaks())
        }
    }
}

/// What is known of a file that cannot even be opened.
fn unreadable(detail: String) -> Report {
    let fault = Fault { seq: 0, stream: String::new(), kind: FaultKind::Damaged, detail };
    Report { faults: vec![fault], ..Report::default() }
}

fn export(journal: &Journal, after: u64) -> anyhow::Result<Exit> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut ended = Ok(());
    journal.export(after.saturating_add(1), |entry| {
        ended = entry.to_line().map_err(std::io::Error::other).and_then(|line| {
            out.write_all(&line)?;
            out.write_all(b"\n")
        });
        if ended.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    match ended.and_then(|()| out.flush()) {
        // A reader that has seen enough (`| head`) is no failure.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(Exit::Ok),
    }
}

fn verify(report: &Report, json: bool, path: &str, lang: Lang) -> anyhow::Result<Exit> {
    let faults = report.faults.len() as u64 + report.more_faults;
    if json {
        let fault = |fault: &Fault| json!({ "seq": fault.seq, "stream": fault.stream, "kind": format!("{:?}", fault.kind), "detail": fault.detail });
        let report = json!({
            "entries": report.entries, "streams": report.streams, "seals": report.seals, "erased": report.erased,
            "ok": faults == 0, "faults": report.faults.iter().map(fault).collect::<Vec<_>>(), "more_faults": report.more_faults,
        });
        super::print(&format!("{report}\n"))?;
    } else {
        let mut text = lang.verified(report.entries, report.streams, report.seals, report.erased) + "\n";
        for fault in &report.faults {
            text.push_str(&lang.fault(fault));
            text.push('\n');
        }
        if faults == 0 {
            text.push_str(lang.all_holds());
            text.push('\n');
        }
        super::print(&text)?;
    }
    if faults == 0 {
        return Ok(Exit::Ok);
    }
    let damaged = report.faults.iter().any(|fault| fault.kind == FaultKind::Damaged);
    let advice = if damaged { lang.file_damaged(path) } else { lang.log_edited(faults) };
    Err(Stop::new(Exit::Failed, advice).into())
}
