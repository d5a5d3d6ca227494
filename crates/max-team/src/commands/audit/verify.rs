//! `audit verify`: every hash, chain, seal and row.

use std::path::Path;

use max_team_runtime::storage::{
    Drift, DriftReport, ExternalSeal, Fault, FaultDetail, FaultKind, JournalError, Report,
};
use serde_json::json;

use super::{find, seal};
use crate::commands::print;
use max_team_terminal::text::clean;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::found_backups;
use max_team_workspace::i18n::Lang;
use max_team_workspace::setup::{self, AppEnv};

pub(super) fn verify(place: &AppEnv, seal: Option<&Path>, json: bool) -> anyhow::Result<Exit> {
    let given = seal.map(|file| seal::read(place, file)).transpose()?;
    let to = given.as_ref().map(|seal| seal.to_seq);
    let (report, rows) = check(place, given)?;
    let exit = told(place, &report, &rows, json)?;
    if let (Some(file), Some(to), false) = (seal, to, json) {
        print(&clean(&format!("{}\n", place.speaks().seal_matches(file.display(), to))))?;
    }
    Ok(exit)
}

/// Faults of the log and its file and, if the log is valid, of the rows derived from it.
pub(super) fn check(place: &AppEnv, seal: Option<ExternalSeal>) -> Result<(Report, DriftReport), CliError> {
    let checked = find(place).and_then(|storage| {
        let report = storage.verify(seal)?;
        // Rows of a log that does not hold prove nothing.
        let rows = if report.is_sound() { storage.compare_rows()? } else { DriftReport::default() };
        Ok((report, rows))
    });
    match checked {
        // What is known of a file that cannot even be opened.
        Err(JournalError::Corrupt { detail, .. } | JournalError::Malformed { detail, .. }) => {
            let faults = vec![Fault::new(0, "", FaultDetail::File(detail))];
            Ok((Report { faults, ..Report::default() }, DriftReport::default()))
        }
        checked => checked.map_err(|error| setup::stop(&error)),
    }
}

pub(super) fn told(place: &AppEnv, report: &Report, rows: &DriftReport, json: bool) -> anyhow::Result<Exit> {
    let lang = place.speaks();
    let faults = report.faults.len() as u64 + report.more_faults;
    let ok = faults == 0 && rows.is_empty();
    if json {
        let fault = |fault: &Fault| json!({ "seq": fault.seq, "stream": fault.stream, "kind": format!("{:?}", fault.kind), "detail": fault.detail });
        let row =
            |row: &Drift| json!({ "table": row.table, "key": row.key, "how": format!("{:?}", row.how).to_lowercase() });
        let report = json!({
            "entries": report.entries, "streams": report.streams, "seals": report.seals, "erased": report.erased,
            "ok": ok, "faults": report.faults.iter().map(fault).collect::<Vec<_>>(), "more_faults": report.more_faults,
            "rows": rows.rows.iter().map(row).collect::<Vec<_>>(), "more_rows": rows.more,
        });
        print(&format!("{report}\n"))?;
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
        print(&clean(&text))?;
    }
    if ok {
        return Ok(Exit::Ok);
    }
    let path = place.home.join("journal.db");
    let copies = found_backups::beside(&path);
    let damaged = report.faults.iter().find(|fault| fault.kind == FaultKind::Damaged);
    // Where the first damage ends, if there is more to read.
    let behind = report.faults.iter().find_map(|fault| match fault.detail {
        FaultDetail::Unread { to, .. } => to.filter(|to| *to < report.last_seq),
        _ => None,
    });
    let advice = |lang: Lang| match (faults, damaged) {
        (0, _) => lang.rows_differ(rows.count()),
        (_, Some(fault)) => {
            let told = lang.file_damaged(&path.display().to_string(), &lang.detail(&fault.detail), &copies);
            told + &behind.map(|last| lang.goes_on_behind(last)).unwrap_or_default()
        }
        (faults, None) => lang.log_edited(faults) + &lang.copies_beside(&copies),
    };
    Err(CliError::said(Exit::Failed, advice).into())
}
