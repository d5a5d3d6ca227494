//! `audit export` and `audit verify`: the journal as evidence.

use std::io::Write;
use std::ops::ControlFlow;

use max_team_journal::Journal;
use serde_json::json;

use crate::args;
use crate::config::choice::Strength;
use crate::exit::{Exit, Stop};
use crate::setup::{self, Place};

pub(crate) fn run(place: &Place, command: &args::Audit) -> anyhow::Result<Exit> {
    let journal = place.journal(Strength::Normal).map_err(|error| setup::stop(&error))?;
    match command {
        args::Audit::Export { after } => export(&journal, *after),
        args::Audit::Verify { json } => verify(&journal.verify()?, *json),
    }
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

fn verify(report: &max_team_journal::Report, json: bool) -> anyhow::Result<Exit> {
    let faults = report.faults.len() as u64 + report.more_faults;
    if json {
        let fault = |fault: &max_team_journal::Fault| json!({ "seq": fault.seq, "stream": fault.stream, "kind": format!("{:?}", fault.kind), "detail": fault.detail });
        let report = json!({
            "entries": report.entries, "streams": report.streams, "seals": report.seals, "erased": report.erased,
            "ok": faults == 0, "faults": report.faults.iter().map(fault).collect::<Vec<_>>(), "more_faults": report.more_faults,
        });
        super::print(&format!("{report}\n"))?;
    } else {
        let mut text = format!(
            "{} entries in {} streams, {} seals, {} erased payloads\n",
            report.entries, report.streams, report.seals, report.erased
        );
        for fault in &report.faults {
            text.push_str(&format!("entry {} of `{}`: {:?}: {}\n", fault.seq, fault.stream, fault.kind, fault.detail));
        }
        text.push_str(if faults == 0 { "every hash, chain and seal holds\n" } else { "" });
        super::print(&text)?;
    }
    if faults == 0 {
        return Ok(Exit::Ok);
    }
    let advice = format!("{faults} faults: the journal is not as it was written; keep this copy as evidence");
    Err(Stop::new(Exit::Failed, advice).into())
}
