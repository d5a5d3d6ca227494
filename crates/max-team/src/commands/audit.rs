//! `audit show`, `audit export`, `audit seal` and `audit verify`: the journal as evidence. `export` is the same as
//! `audit export`.
//!
//! What is shown is checked while it is read: an entry that is not as it was written is marked, and the exit code is not 0.

mod export;
mod out;
mod page;
mod seal;
mod verify;

use std::io;

use max_team_runtime::maintenance::Storage;
use max_team_runtime::storage::{FaultDetail, JournalError};
use max_team_runtime::{EvidenceItem, Filter, Record, Unmet, WalkSummary};
use serde_json::json;

use self::out::AuditWriter;
use crate::args;
use crate::headless;
use max_team_terminal::text::clean;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::format::local;
use max_team_workspace::i18n::Lang;
use max_team_workspace::setup::{self, AppEnv};

pub(crate) use export::export;

pub(crate) fn run(place: &AppEnv, command: &args::Audit) -> anyhow::Result<Exit> {
    match command {
        args::Audit::Show { which, json } => show(place, which, *json),
        args::Audit::Export(options) => export(place, options),
        args::Audit::Seal { file } => seal::write(place, file.as_deref()),
        args::Audit::Verify { seal, json } => verify::verify(place, seal.as_deref(), *json),
    }
}

/// Evidence is looked at where it is; a new, empty journal would prove nothing.
fn find(place: &AppEnv) -> Result<Storage, JournalError> {
    Storage::open_damaged(&place.home)
}

fn filter(storage: &Storage, which: &args::AuditScope, after: u64) -> Result<Filter, CliError> {
    Ok(Filter {
        session: which.session.as_deref().map(|id| setup::session(&storage.reader(), id)).transpose()?,
        agent: which.agent.clone(),
        kinds: which.kind.clone(),
        task: which.task.clone(),
        since_ms: which.since,
        until_ms: which.until,
        after_seq: after,
    })
}

fn show(place: &AppEnv, which: &args::AuditScope, json: bool) -> anyhow::Result<Exit> {
    let (storage, lang) = (find(place).map_err(|error| setup::stop(&error))?, place.speaks());
    let filter = filter(&storage, which, 0)?;
    let mut out = AuditWriter::new(Box::new(io::stdout().lock()));
    let mut shown = 0_u64;
    let walked = storage.records(&filter, |seen| {
        shown += 1;
        let line = match seen {
            EvidenceItem::Record(_, record) if json => serde_json::to_string(record).unwrap_or_default(),
            EvidenceItem::Record(_, record) => clean(&line(record, lang)).into_owned(),
            EvidenceItem::Unread { from, to } if json => unread(from, to),
            EvidenceItem::Unread { from, to } => lang.damaged(&[FaultDetail::Unread { from, to }]),
        };
        out.line(line.as_bytes())
    });
    out.finish()?;
    if shown == 0 {
        // Beside the output, which may be JSON.
        headless::talk(lang.no_entries());
    }
    conclude(&walked.map_err(setup::failed)?, &filter)
}

/// What was asked for in vain, or is not as it was written, is no success.
fn conclude(met: &WalkSummary, filter: &Filter) -> anyhow::Result<Exit> {
    if met.hides {
        return Err(CliError::said(Exit::Failed, |lang| lang.entries_hidden().to_owned()).into());
    }
    if let Some(unmet) = met.unmet(filter) {
        return Err(refusal(met, &unmet).into());
    }
    expect_whole(met.damaged)
}

/// Entries that cannot be read, among lines of JSON.
fn unread(from: u64, to: Option<u64>) -> String {
    json!({ "unread": { "from": from, "to": to } }).to_string()
}

fn refusal(met: &WalkSummary, unmet: &Unmet) -> CliError {
    let list = |names: &std::collections::BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>();
    CliError::said(Exit::Usage, |lang| match unmet {
        Unmet::Kind(kind) => lang.no_kind(kind, &list(&met.kinds)),
        Unmet::Agent(agent) => lang.no_agent_there(agent, &list(&met.agents)),
        Unmet::Task(task) => lang.no_task_there(task, &list(&met.tasks)),
    })
}

fn expect_whole(damaged: u64) -> anyhow::Result<Exit> {
    match damaged {
        0 => Ok(Exit::Ok),
        damaged => Err(CliError::said(Exit::Failed, |lang| lang.entries_damaged(damaged)).into()),
    }
}

/// Who allowed or refused it.
fn on_whose_word(record: &Record, lang: Lang) -> Option<String> {
    let refused = || record.refused.as_ref().map(|refused| lang.refused_by(refused));
    record.allowed.as_ref().map(|allowed| lang.allowed(allowed)).or_else(refused)
}

/// A record as people read it.
fn line(record: &Record, lang: Lang) -> String {
    let whose = record.agent.as_deref().unwrap_or(&record.actor);
    let mut line = format!("{:>7}  {}  {whose}  {}", record.seq, local(record.at_ms), record.event);
    if let Some(task) = &record.task {
        line.push_str(&format!(" [{task}]"));
    }
    if !record.damaged.is_empty() {
        line.push_str(&format!(" {}", lang.damaged(&record.damaged)));
    }
    let said = if record.erased { lang.forgotten_word().to_owned() } else { lang.record_text(&record.what) };
    if !said.is_empty() {
        line.push_str(&format!(": {said}"));
    }
    if let Some(words) = on_whose_word(record, lang) {
        line.push_str(&format!("\n         {words}"));
    }
    line
}
