//! Runs in files: found, read and written.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::Path;

use max_team_core::agent::{Settings, TeamRole as Seat};
use max_team_core::id::SessionId;
use max_team_runtime::maintenance::Storage;
use max_team_runtime::replay::{BadTape, Tape};
use max_team_runtime::storage::JournalError;
use max_team_runtime::{TeamReader, query};
use tempfile::NamedTempFile;

use crate::args::{TalkFlags, TeamFlags};
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::i18n::Lang;
use max_team_workspace::setup::{self, AppEnv};
use max_team_workspace::skills;

/// The run to use: a file, or a session of the journal; without a name, the session last used.
pub(crate) fn find(place: &AppEnv, run: Option<&str>) -> Result<Tape, CliError> {
    if let Some(file) = run.map(|run| place.cwd.join(run)).filter(|path| path.is_file()) {
        return read(&file);
    }
    // Reading must not create a journal.
    let storage = Storage::open_existing_read_only(&place.home).map_err(|error| match (run, &error) {
        (Some(run), JournalError::Absent { .. }) => CliError::said(Exit::Failed, |lang| lang.no_run(run)),
        _ => setup::stop(&error),
    })?;
    let team = storage.reader();
    let session = match run {
        Some(run) => {
            let known = setup::known(&team, run)?;
            known.ok_or_else(|| CliError::said(Exit::Failed, |lang| lang.no_run(run)))?
        }
        None => latest(&team)?,
    };
    team.ask(query::Recording { session }).map(|tape| *tape).map_err(setup::failed)
}

/// A session of the journal.
pub(crate) fn of(place: &AppEnv, session: SessionId) -> Result<Tape, CliError> {
    let storage = Storage::open_existing_read_only(&place.home).map_err(|error| setup::stop(&error))?;
    let tape = storage.reader().ask(query::Recording { session });
    tape.map(|tape| *tape).map_err(setup::failed)
}

/// The flags that talk today to the agent that led a recorded run: alone, if it had tools of its own or ran a skill,
/// or with a team.
pub(crate) fn talk(tape: &Tape, team: TeamFlags, coordinator: bool) -> Result<(TalkFlags, Settings), CliError> {
    let (led, settings) = tape.led().map_err(setup::failed)?;
    let skill = skills::of(&led).map(str::to_owned);
    let is_alone = led.place != Seat::Lead && skill.is_none();
    let solo = is_alone && led.name == setup::solo().name;
    let agent = (is_alone && !solo).then_some(led.name);
    Ok((TalkFlags { solo, agent, skill, coordinator, team, ..TalkFlags::default() }, settings))
}

/// The session last used.
pub(crate) fn latest(team: &TeamReader) -> Result<SessionId, CliError> {
    let last = team.ask(query::LastUsedSession {}).map_err(setup::failed)?;
    let none = || CliError::said(Exit::Failed, |lang| lang.no_sessions_yet().to_owned());
    last.map(|row| row.session).ok_or_else(none)
}

fn read(path: &Path) -> Result<Tape, CliError> {
    let bad = |fault: BadTape| {
        let name = path.display().to_string();
        CliError::said(Exit::Failed, |lang| lang.bad_tape(&name, lang.tape_fault(&fault)))
    };
    let file = File::open(path).map_err(|error| bad(error.into()))?;
    Tape::read(BufReader::new(file)).map_err(bad)
}

/// Whether a file may be written, before there is anything to write.
pub(crate) fn check(path: &Path, force: bool) -> Result<(), CliError> {
    if path.exists() && !force {
        let name = path.display().to_string();
        return Err(CliError::said(Exit::Usage, |lang| lang.tape_exists(&name)));
    }
    // Fails before the run starts, not after it.
    begin(path).map(drop)
}

/// A new file beside the one that is to be written. Only its owner can read it: what was said is in it.
fn begin(path: &Path) -> Result<NamedTempFile, CliError> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    NamedTempFile::new_in(folder).map_err(|error| unwritten(path, &|lang| lang.io_fault(&error)))
}

fn unwritten(path: &Path, why: &dyn Fn(Lang) -> String) -> CliError {
    let name = path.display().to_string();
    CliError::said(Exit::Failed, |lang| lang.tape_unwritten(&name, why(lang)))
}

/// Writes a run down, all of it or nothing; words on what was done. What is there is only replaced by force. A recording has no
/// hashes: of a run that is not as it was written none is made, as what is forged would be genuine in it.
pub(crate) fn save(tape: &Tape, path: &Path, force: bool, lang: Lang) -> Result<String, CliError> {
    if !tape.damaged().is_empty() {
        return Err(CliError::said(Exit::Failed, |lang| lang.run_damaged(tape.damaged().len())));
    }
    let name = path.display().to_string();
    let bad = |error: io::Error| unwritten(path, &|lang| lang.io_fault(&error));
    let mut file = begin(path)?;
    let mut out = BufWriter::new(file.as_file_mut());
    let redacted = tape.write(env!("CARGO_PKG_VERSION"), &mut out);
    let redacted = redacted.map_err(|error| unwritten(path, &|_| error.to_string()))?;
    out.flush().map_err(bad)?;
    drop(out);
    let kept = if force { file.persist(path) } else { file.persist_noclobber(path) };
    kept.map_err(|failed| match failed.error.kind() {
        io::ErrorKind::AlreadyExists => CliError::said(Exit::Failed, |lang| lang.tape_exists(&name)),
        _ => bad(failed.error),
    })?;
    Ok(lang.tape_written(&name, tape.len(), redacted))
}
