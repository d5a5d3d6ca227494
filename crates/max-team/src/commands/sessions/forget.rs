//! `sessions forget`, and what `journal.keep_days` does without being asked each time.

use max_team_core::id::SessionId;
use max_team_runtime::maintenance::Storage;
use max_team_runtime::storage::WorkerInfo;
use max_team_runtime::{SessionRow, query};

use crate::args;
use crate::commands::context::{self, JournalContext, now_ms, stop};
use crate::commands::print;
use crate::signals::Signals;
use max_team_terminal::text::clean;
use max_team_workspace::config::Config;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::format::local;
use max_team_workspace::i18n::Lang;
use max_team_workspace::setup::{self, AppEnv};

/// What a session was forgotten by, as tombstones say.
const BY_HAND: &str = "`sessions forget`";
const BY_ITSELF: &str = "`journal.keep_days`";
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

pub(super) fn run(place: &AppEnv, options: &args::Forget) -> anyhow::Result<Exit> {
    let context = JournalContext::open(place)?;
    let lang = context.lang;
    let age_ms = match (&options.id, options.older_than) {
        (None, None) => {
            let config = place.settings(None, Vec::new())?;
            let days = config.journal.keep_days;
            let unsaid = || CliError::said(Exit::Usage, |lang| lang.forget_which().to_owned());
            Some(i64::from(days.ok_or_else(unsaid)?) * DAY_MS)
        }
        (_, age_ms) => age_ms,
    };
    let meant = match (&options.id, age_ms) {
        (Some(id), _) => vec![context.read(query::Session { session: setup::session(&context.team, id)? })?],
        (None, age_ms) => {
            context.read(query::UnusedSessions { since_ms: now_ms().saturating_sub(age_ms.unwrap_or_default()) })?
        }
    };
    // A session that a process runs is in use, however old its last message is.
    let (meant, running) = idle(&context, meant)?;
    if let (Some(_), Some((row, by))) = (&options.id, running.first()) {
        let (session, what, pid) = (row.session.to_string(), by.what.clone(), by.pid);
        return Err(CliError::said(Exit::Failed, |lang| lang.session_runs(&session, &what, pid)).into());
    }
    if meant.is_empty() {
        print(&format!("{}\n", lang.nothing_to_forget()))?;
        return Ok(Exit::Ok);
    }
    let ids: Vec<SessionId> = meant.iter().map(|row| row.session).collect();
    let line = |row: &SessionRow| format!("{}  {}  {}\n", row.session, local(row.last_at_ms), row.preview);
    print(&clean(&meant.iter().map(line).collect::<String>()))?;
    let forks = context.storage.forks_of(&ids).map_err(stop)?;
    if !forks.is_empty() {
        print(&format!("{}\n", lang.forks_stay(&forks)))?;
    }
    if options.dry_run {
        print(&format!("{}\n", lang.would_forget(meant.len())))?;
        return Ok(Exit::Ok);
    }
    if !options.yes
        && !context::agreed(&lang.forget_for_good(meant.len()), Exit::Usage, |lang| lang.forget_needs_yes())?
    {
        return Ok(Exit::Denied);
    }
    let (words, stopped) = context::wait(forget(place, &context.storage, &ids, lang, BY_HAND))?;
    print(&format!("{words}\n"))?;
    Ok(stopped.unwrap_or(Exit::Ok))
}

type Running = Vec<(SessionRow, WorkerInfo)>;

fn idle(context: &JournalContext, rows: Vec<SessionRow>) -> Result<(Vec<SessionRow>, Running), CliError> {
    let (mut idle, mut running) = (Vec::new(), Vec::new());
    for row in rows {
        match context.owner(Some(row.session))? {
            Some(by) => running.push((row, by)),
            None => idle.push(row),
        }
    }
    Ok((idle, running))
}

/// Forgets one session after the other, each wholly or not at all; between two of them it can be stopped.
async fn forget(
    place: &AppEnv,
    storage: &Storage,
    ids: &[SessionId],
    lang: Lang,
    door: &str,
) -> anyhow::Result<(String, Option<Exit>)> {
    let mut signals = Signals::listen()?;
    let forgetting = storage.forgetting(&place.home, setup::worker_info(place, "forgetting sessions")).map_err(stop)?;
    let (mut sessions, mut entries, mut stopped) = (0, 0, None);
    for id in ids {
        stopped = signals.come().await;
        if stopped.is_some() {
            break;
        }
        entries += forgetting.forget(*id, &place.principal(door)).await.map_err(stop)?;
        sessions += 1;
    }
    // After a signal the program ends without freeing the space.
    let freed = forgetting.finish(stopped.is_none()).await.map_err(stop)?;
    let mut words = lang.forgot(sessions, entries, freed.bytes, freed.is_used_by_others);
    if stopped.is_some() {
        words.push_str(&lang.not_all_forgotten(ids.len() - sessions));
    }
    Ok((words, stopped))
}

/// Erases sessions that are older than `journal.keep_days`, if that is set, after the program's own work is done. A
/// failure is only reported, since the next start tries again. Skipped after a signal, so that the program ends at
/// once.
pub(crate) fn forget_old(place: &AppEnv, config: &Config, exit: Exit) {
    let Some(days) = config.journal.keep_days else { return };
    if matches!(exit, Exit::Interrupted | Exit::Terminated) {
        return;
    }
    let lang = place.lang(config);
    let work = || -> anyhow::Result<Option<String>> {
        let context = JournalContext::open(place)?;
        let before = now_ms().saturating_sub(i64::from(days) * DAY_MS);
        let old = context.read(query::UnusedSessions { since_ms: before })?;
        let (old, _) = idle(&context, old)?;
        if old.is_empty() {
            return Ok(None);
        }
        let ids: Vec<SessionId> = old.iter().map(|row| row.session).collect();
        Ok(Some(context::wait(forget(place, &context.storage, &ids, lang, BY_ITSELF))?.0))
    };
    match work() {
        Ok(words) => words.iter().for_each(|words| crate::headless::talk(words)),
        Err(error) => crate::headless::talk(&lang.not_forgotten(error.to_string())),
    }
}
