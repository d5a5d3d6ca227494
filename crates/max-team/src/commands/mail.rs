//! `mail` and `send`: messages between agents, what became of each, and writing one, from any terminal.

use std::path::PathBuf;

use std::fmt::Write as _;

use max_team_core::id::{EnvelopeId, SessionId};
use max_team_core::time::rfc3339;
use max_team_runtime::{AgentRow, Fate, MailRecord, Recipient, RuntimeError, ShownContent, is_go_on, new_id, query};
use serde_json::{Value, json};

use super::context::{self, JournalContext, stop};
use super::table::{clip, table};
use crate::args;
use crate::headless::talk;
use max_team_terminal::text::{clean, clean_line};
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::format::short;
use max_team_workspace::i18n::Lang;
use max_team_workspace::setup::{self, AppEnv};

/// Characters of a message's words in the list.
const TEXT_CHARS: usize = 120;

pub(crate) fn run(place: &AppEnv, command: &args::Mail) -> anyhow::Result<Exit> {
    let context = JournalContext::open(place)?;
    match command {
        args::Mail::List { session, agent, state, all, json } => {
            let session = this_session(&context, place, session.as_deref())?;
            let mut messages = context.read(query::Messages { session })?;
            messages.retain(|message| {
                let is_of = |name: &String| message.from == *name || message.to == *name;
                (*all || !message.is_control())
                    && agent.as_ref().is_none_or(is_of)
                    && state.as_ref().is_none_or(|state| message.fate.name() == state)
            });
            let text = match (json, messages.is_empty()) {
                (true, _) => format!("{}\n", Value::from(messages.iter().map(row).collect::<Vec<_>>())),
                (false, true) => format!("{}\n", context.lang.no_messages()),
                (false, false) => {
                    let rows: Vec<Vec<String>> = messages.iter().map(|message| cells(message, context.lang)).collect();
                    table(&context.lang.mail_heads(), &rows)
                }
            };
            super::print(&text)?;
        }
        args::Mail::Show { id, session, json } => {
            let session = this_session(&context, place, session.as_deref())?;
            let found = context.read(query::FindMessage { session, text: id.clone() })?;
            let mut message = found.ok_or_else(|| CliError::said(Exit::Failed, |lang| lang.no_message(id)))?;
            if message.fate == Fate::Delivered && message.envelope.to == context.by.address() {
                message.fate = Fate::Read(None);
                let seen = ShownContent::Message(message.envelope.id);
                // Where nothing can be written, it is shown all the same.
                drop(context::wait(async { Ok(context.post().mark_read(&context.by, &[seen]).await?) }));
            }
            let text = if *json { format!("{}\n", whole(&message)) } else { shown(&message, context.lang) };
            super::print(&text)?;
        }
        args::Mail::Send { words, session } => {
            let Some((text, to)) = words.split_last() else { return Ok(Exit::Usage) };
            return write(&context, place, session.as_deref(), to, text);
        }
    }
    Ok(Exit::Ok)
}

pub(crate) fn send(place: &AppEnv, options: &args::Send) -> anyhow::Result<Exit> {
    let context = JournalContext::open(place)?;
    write(&context, place, options.session.as_deref(), std::slice::from_ref(&options.name), &options.text)
}

fn write(
    context: &JournalContext,
    place: &AppEnv,
    session: Option<&str>,
    to: &[String],
    text: &str,
) -> anyhow::Result<Exit> {
    let (session, _) = session_of(context, place, session, to)?;
    let written = context::wait(async {
        Ok(context.post().write(&context.by, fresh(), session, to, text).await.map_err(stop)?)
    })?;
    super::print(&format!("{}\n", context.lang.sent_to(names(&written.readers))))?;
    match context.owner(Some(session))? {
        Some(_) => talk(context.lang.read_soon()),
        None => talk(&context.lang.noted(Some(session))),
    }
    Ok(Exit::Ok)
}

/// A key for an order that is given once.
pub(super) fn fresh() -> EnvelopeId {
    EnvelopeId::new(new_id())
}

pub(super) fn names(readers: &[Recipient]) -> String {
    readers.iter().map(|reader| reader.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// The named session, else the one last used here. Never one of another project: the user does not mean its team.
pub(super) fn this_session(context: &JournalContext, place: &AppEnv, given: Option<&str>) -> anyhow::Result<SessionId> {
    if let Some(id) = given {
        return Ok(setup::session(&context.team, id)?);
    }
    last_used(context, place)
}

/// The session of this project that runs, else the one last used.
pub(super) fn last_used(context: &JournalContext, place: &AppEnv) -> anyhow::Result<SessionId> {
    let root = root(place)?;
    let here = root.display().to_string();
    for row in context.read(query::Sessions { limit: SESSIONS_MAX })?.into_iter().filter(|row| row.cwd == here) {
        if context.owner(Some(row.session))?.is_some() {
            return Ok(row.session);
        }
    }
    Ok(context.latest_session(&root)?)
}

/// The agent with this name: of the given session, else of the one last used here, else of the latest session that has
/// one.
pub(super) fn agent_of(
    context: &JournalContext,
    place: &AppEnv,
    given: Option<SessionId>,
    name: &str,
) -> anyhow::Result<Option<AgentRow>> {
    let here = given.or_else(|| last_used(context, place).ok());
    let find = |session| context.read(query::FindAgent { session, text: name.to_owned() });
    let found = here.map(|here| find(Some(here))).transpose()?.flatten();
    match found {
        None if given.is_none() => Ok(find(None)?),
        found => Ok(found),
    }
}

/// Where sessions of this project are filed.
fn root(place: &AppEnv) -> Result<PathBuf, CliError> {
    setup::project_root(place, &place.settings(None, Vec::new())?)
}

/// The session whose names are meant: the named one, else the one last used here if it has them, else the only one that runs and
/// does.
pub(super) fn session_of(
    context: &JournalContext,
    place: &AppEnv,
    given: Option<&str>,
    to: &[String],
) -> anyhow::Result<(SessionId, Vec<Recipient>)> {
    let readers = |session| context.team.ask(query::Readers { session, to: to.to_vec() });
    if let Some(id) = given {
        let session = setup::session(&context.team, id)?;
        return Ok((session, readers(session).map_err(stop)?));
    }
    let here = last_used(context, place).ok().map(|session| (session, readers(session)));
    let refused = match here {
        Some((session, Ok(readers))) => return Ok((session, readers)),
        // A name that is known here is not looked for elsewhere.
        Some((_, Err(known @ (RuntimeError::Gone { .. } | RuntimeError::SeveralTasks { .. })))) => {
            return Err(stop(known).into());
        }
        Some((_, Err(refused))) => Some(refused),
        None => None,
    };
    let mut found = Vec::new();
    for row in context.read(query::Sessions { limit: SESSIONS_MAX })? {
        if context.owner(Some(row.session))?.is_some()
            && let Ok(known) = readers(row.session)
        {
            found.push((row.session, known));
        }
    }
    let name = to.join(", ");
    match (found.len(), refused) {
        (1, _) => Ok(found.remove(0)),
        (0, Some(refused @ (RuntimeError::NoReader { .. } | RuntimeError::Gone { .. }))) => Err(stop(refused).into()),
        (0, _) => Err(CliError::said(Exit::Failed, |lang| lang.nobody_has(&name)).into()),
        _ => {
            let ids: Vec<String> = found.iter().map(|(session, _)| short(session)).collect();
            Err(CliError::said(Exit::Usage, |lang| lang.several_have(&name, ids.join(", "))).into())
        }
    }
}

/// Sessions that are looked through for a name, last used first.
const SESSIONS_MAX: usize = 64;

fn cells(message: &MailRecord, lang: Lang) -> Vec<String> {
    let why = lang.fate_why(&message.fate).map(|why| format!("{why}: ")).unwrap_or_default();
    vec![
        short(&message.envelope.id),
        rfc3339(message.envelope.sent_at_ms),
        message.from.clone(),
        message.to.clone(),
        lang.envelope_kind(message.envelope.kind).to_owned(),
        lang.envelope_fate(&message.fate).to_owned(),
        clip(&clean_line(&format!("{why}{}", words(message, lang))), TEXT_CHARS),
    ]
}

/// The text of a message. The fixed text that resumes an agent is shown as the user's action.
fn words(message: &MailRecord, lang: Lang) -> String {
    let text = message.text();
    if is_go_on(&text) { lang.goes_on_message().to_owned() } else { text }
}

fn shown(message: &MailRecord, lang: Lang) -> String {
    let mut text = String::new();
    let turn = message.fate.turn().map(|turn| format!(" ({turn})")).unwrap_or_default();
    let values = [
        message.envelope.id.to_string(),
        rfc3339(message.envelope.sent_at_ms),
        format!("{} ({})", message.from, message.envelope.from),
        format!("{} ({})", message.to, message.envelope.to),
        message.envelope.kind.name().to_owned(),
        format!("{}{turn}", lang.envelope_fate(&message.fate)),
    ];
    for (head, value) in lang.mail_heads().iter().zip(&values) {
        let _ = writeln!(text, "{head}: {}", clean_line(value));
    }
    if let Some(why) = lang.fate_why(&message.fate) {
        let _ = writeln!(text, "{}", clean_line(&why));
    }
    if is_go_on(&message.text()) {
        let _ = writeln!(text, "{}", lang.goes_on_message());
    }
    let _ = writeln!(text, "\n{}", clean(message.text().trim_end()));
    text
}

fn row(message: &MailRecord) -> Value {
    json!({
        "id": message.envelope.id,
        "short": short(&message.envelope.id),
        "seq": message.seq,
        "sent": rfc3339(message.envelope.sent_at_ms),
        "from": message.from,
        "to": message.to,
        "kind": message.envelope.kind,
        "state": message.fate.name(),
        "turn": message.fate.turn(),
        "why": message.fate.why(),
        "text": message.text(),
        "go_on": is_go_on(&message.text()),
    })
}

/// The same with all that it carries.
fn whole(message: &MailRecord) -> Value {
    let mut value = row(message);
    if let Some(fields) = value.as_object_mut() {
        fields.insert("envelope".to_owned(), json!(message.envelope));
    }
    value
}
