//! `backup` and `restore`: the journal in a file elsewhere, and back.

use std::path::{Path, PathBuf};

use max_team_runtime::maintenance::{Contents, Storage};
use max_team_runtime::storage::{JournalError, Report};

use super::context;
use crate::args;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::format::local;
use max_team_workspace::found_backups;
use max_team_workspace::i18n::Lang;
use max_team_workspace::setup::{self, AppEnv};

pub(crate) fn backup(place: &AppEnv, options: &args::Backup) -> anyhow::Result<Exit> {
    let lang = place.speaks();
    let storage = Storage::open_existing(&place.home).map_err(|error| match &error {
        JournalError::Absent { path } if found_backups::beside(path).is_empty() => {
            CliError::said(Exit::Failed, |lang| lang.no_journal_to_back_up(path.display()))
        }
        error => setup::stop(error),
    })?;
    let file = match &options.file {
        Some(file) => place.cwd.join(file),
        None => free(place, "journal"),
    };
    if let Some(folder) = file.parent().filter(|folder| !folder.is_dir()) {
        return Err(CliError::said(Exit::Usage, |lang| lang.no_backup_folder(folder.display())).into());
    }
    let report = storage.backup(&file).map_err(|error| setup::stop(&error))?;
    expect_sound(&report, |lang| lang.not_backed_up())?;
    let bytes = std::fs::metadata(&file).map_or(0, |file| file.len());
    super::print(&format!("{}\n", lang.backed_up(&file.display().to_string(), report.entries, bytes)))?;
    Ok(Exit::Ok)
}

pub(crate) fn restore(place: &AppEnv, options: &args::Restore) -> anyhow::Result<Exit> {
    let lang = place.speaks();
    let (file, kept) = (place.cwd.join(&options.file), free(place, "journal-before"));
    let held = Storage::open_backup(&file).ok().and_then(|backup| backup.contents());
    // A file that holds no journal is refused below, without a question.
    if let Some((now, held)) = replaced(place, lang).zip(held) {
        let name = file.display().to_string();
        super::print(&format!("{}\n", lang.would_replace(&now, &name, words(held, lang))))?;
        if !options.yes && !context::agreed(lang.restore_it(), Exit::Usage, |lang| lang.restore_needs_yes())? {
            return Ok(Exit::Denied);
        }
    }
    let restored = context::wait(async { Ok(Storage::restore(&place.home, &file, &kept).await) })?;
    let report = match restored {
        Err(JournalError::Absent { path }) => {
            let words = |lang: Lang| lang.no_backup_file(path.display());
            return Err(CliError::said(Exit::Failed, words).into());
        }
        Err(JournalError::Corrupt { path, detail }) => {
            // The copy that was looked at has another name.
            let path = if path.starts_with(&place.home) && path != kept { file.clone() } else { path };
            let words = |lang: Lang| lang.no_backup(path.display().to_string(), &detail);
            return Err(CliError::said(Exit::Failed, words).into());
        }
        restored => restored.map_err(|error| setup::stop(&error))?,
    };
    expect_sound(&report, |lang| lang.not_restored())?;
    let kept = kept.exists().then(|| kept.display().to_string());
    let words = lang.restored(&file.display().to_string(), report.entries, kept.as_deref());
    super::print(&format!("{words}\n"))?;
    Ok(Exit::Ok)
}

/// What is in a journal, in words.
fn words(held: Contents, lang: Lang) -> String {
    lang.held(held.sessions, held.entries, held.last_at_ms.map(local).as_deref())
}

/// What a restoration would replace, in words; nothing, where nothing is lost by it.
fn replaced(place: &AppEnv, lang: Lang) -> Option<String> {
    let path = place.home.join("journal.db");
    let bytes = size(&path) + size(&place.home.join("journal.db-wal"));
    let unread = || Some(lang.held_unread(bytes)).filter(|_| bytes > 0);
    match Storage::open_damaged(&place.home).ok().and_then(|storage| storage.contents()) {
        Some(held) if held.entries == 0 => None,
        Some(held) => Some(words(held, lang)),
        None => unread(),
    }
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}

/// What is not whole is told, fault by fault, and was left alone.
fn expect_sound(report: &Report, advice: impl Fn(Lang) -> &'static str) -> Result<(), CliError> {
    if report.is_sound() {
        return Ok(());
    }
    let words = |lang: Lang| {
        let faults: Vec<String> = report.faults.iter().take(FAULTS_TOLD).map(|fault| lang.fault(fault)).collect();
        format!("{}\n{}", faults.join("\n"), advice(lang))
    };
    Err(CliError::said(Exit::Failed, words))
}

/// Faults that are told one by one; `audit verify` tells all.
const FAULTS_TOLD: usize = 10;

/// A name beside the journal that nothing has, with the time in it.
fn free(place: &AppEnv, name: &str) -> PathBuf {
    let now = max_team_tools::now().strftime("%Y%m%d-%H%M%S").to_string();
    let named = |more: String| place.home.join(format!("{name}-{now}{more}.db"));
    let others = (2_u32..).map(|number| named(format!("-{number}")));
    std::iter::once(named(String::new())).chain(others).find(|path| !path.exists()).unwrap_or_default()
}
