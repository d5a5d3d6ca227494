//! `audit seal`: a short proof of the whole journal that is kept elsewhere, and how `audit verify --seal` reads it.
//!
//! Seals inside the journal cannot show that the journal was rewritten together with them. One on another machine, on
//! paper or in a mail can.

use std::fs;
use std::io::Write;
use std::path::Path;

use max_team_runtime::storage::{ExternalSeal, Report};

use super::out::ExportFile;
use super::verify;
use crate::commands::print;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::i18n::Lang;
use max_team_workspace::setup::AppEnv;

/// Prints or writes a seal over a valid journal; for a damaged one, reports the damage.
pub(super) fn write(place: &AppEnv, file: Option<&Path>) -> anyhow::Result<Exit> {
    let (report, rows) = verify::check(place, None)?;
    if !report.is_sound() {
        return verify::told(place, &report, &rows, false);
    }
    let Report { last_seq, digest, .. } = report;
    let seal = format!("{}\n", serde_json::to_string(&ExternalSeal { to_seq: last_seq, digest })?);
    let Some(file) = file else {
        print(&seal)?;
        return Ok(Exit::Ok);
    };
    let target = ExportFile::begin(place.cwd.join(file))?;
    let written = target.writer().and_then(|mut to| to.write_all(seal.as_bytes()));
    written.map_err(|error| target.failed(&error))?;
    let file = target.keep()?;
    crate::headless::talk(&place.speaks().seal_written(&file, last_seq));
    Ok(Exit::Ok)
}

/// Reads a seal that `write` made.
pub(super) fn read(place: &AppEnv, file: &Path) -> Result<ExternalSeal, CliError> {
    let path = place.cwd.join(file);
    let bad = |detail: &dyn Fn(Lang) -> String| {
        CliError::said(Exit::Usage, |lang| lang.no_seal(path.display(), detail(lang)))
    };
    let text = fs::read_to_string(&path).map_err(|error| bad(&|lang| lang.system_fault(&error)))?;
    serde_json::from_str(&text).map_err(|error| bad(&|lang| lang.json_fault(&error)))
}
