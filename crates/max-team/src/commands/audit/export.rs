//! Every entry as it is, as lines; or what happened, as a page. What cannot be read is named in its place, and what ends
//! in the middle of the log says so in its last line.

use std::io::{self, Write};
use std::ops::ControlFlow;

use max_team_runtime::maintenance::Storage;
use max_team_runtime::storage::{Entry, FaultDetail};
use max_team_runtime::{EvidenceItem, Filter, RuntimeError, WalkStep, WalkSummary};
use serde_json::json;

use super::out::{AuditWriter, ExportFile};
use super::{conclude, filter, find, page, unread};
use crate::args;
use crate::commands::context;
use max_team_workspace::exit::Exit;
use max_team_workspace::format::local;
use max_team_workspace::setup::{self, AppEnv};

pub(crate) fn export(place: &AppEnv, options: &args::Export) -> anyhow::Result<Exit> {
    let (storage, lang) = (find(place).map_err(|error| setup::stop(&error))?, place.speaks());
    let mut filter = filter(&storage, &options.which, options.after)?;
    if let Some(id) = &options.id {
        filter.session = Some(setup::session(&storage.reader(), id)?);
    }
    let target =
        options.html.as_deref().or(options.jsonl.as_deref()).map(|file| ExportFile::begin(place.cwd.join(file)));
    let target = target.transpose()?;
    let to: Box<dyn Write> = match &target {
        Some(target) => Box::new(target.writer().map_err(|error| target.failed(&error))?),
        None => Box::new(io::stdout().lock()),
    };
    let mut out = AuditWriter::new(to);
    let walked = if options.html.is_some() {
        let now = local(context::now_ms());
        out.put(&page::head(lang, &now));
        let walked = storage.records(&filter, |seen| match seen {
            EvidenceItem::Record(_, record) => out.line(page::row(record, lang).as_bytes()),
            EvidenceItem::Unread { from, to } => out.line(page::gap(from, to, lang).as_bytes()),
        });
        // A page that lacks something of the log must not look whole.
        let note = match &walked {
            Ok(met) if met.hides => Some(lang.entries_hidden().to_owned()),
            Ok(met) => (met.damaged > 0).then(|| lang.entries_damaged(met.damaged)),
            Err(error) => Some(lang.page_cut(error.to_string())),
        };
        out.put(&page::foot(note.as_deref()));
        walked
    } else {
        let walked = lines(&storage, &filter, &mut out);
        if let Err(error) = &walked {
            out.put(&json!({ "cut": error.to_string() }).to_string());
        }
        walked
    };
    let lines = match (out.finish(), &target) {
        (Err(error), Some(target)) => return Err(target.failed(&error).into()),
        (written, _) => written?,
    };
    // What was asked for in vain makes no file; what could be read of a damaged journal does.
    let is_kept = walked.as_ref().map_or(true, |met| met.hides || met.unmet(&filter).is_none());
    if let Some(target) = target.filter(|_| is_kept) {
        let file = target.keep()?;
        crate::headless::talk(&lang.lines_in(lines, &file));
    }
    conclude(&walked.map_err(setup::failed)?, &filter)
}

fn lines(storage: &Storage, filter: &Filter, out: &mut AuditWriter<'_>) -> Result<WalkSummary, RuntimeError> {
    let plain = Filter { session: filter.session, after_seq: filter.after_seq, ..Filter::default() };
    if *filter != plain {
        return storage.records(filter, |seen| match seen {
            EvidenceItem::Record(entry, record) => put(out, entry, &record.damaged),
            EvidenceItem::Unread { from, to } => out.line(unread(from, to).as_bytes()),
        });
    }
    // Without a wish there is nothing to look up, and what is damaged further on is no reason to print less.
    let mut met = WalkSummary::default();
    storage.entries(filter.session, filter.after_seq, |step| match step {
        WalkStep::Entry(entry, damaged) => {
            met.damaged += u64::from(!damaged.is_empty());
            put(out, entry, &damaged)
        }
        WalkStep::Unread { from, to } => {
            met.hides = true;
            out.line(unread(from, to).as_bytes())
        }
    })?;
    Ok(met)
}

fn put(out: &mut AuditWriter<'_>, entry: &Entry, damaged: &[FaultDetail]) -> ControlFlow<()> {
    match entry.to_line(damaged) {
        Ok(line) => out.line(&line),
        Err(error) => out.fail(io::Error::other(error)),
    }
}
