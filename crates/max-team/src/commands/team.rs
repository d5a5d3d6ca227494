//! `team`: who is on the team of a session, ending them, their modes, and teams in files.

use std::io::IsTerminal;
use std::path::Path;

use max_team_core::event::Event;
use max_team_core::id::SessionId;
use max_team_core::ledger::dollars;
use max_team_core::message::Envelope;
use max_team_core::policy::Mode;
use max_team_core::time::rfc3339;
use max_team_runtime::{EndMode, Enrolled, LogEntry, MailRecord, Recipient, Roll, Spawn, query};
use serde_json::{Value, json};

use super::context::{self, JournalContext, stop, until};
use super::mail::{fresh, names, session_of, this_session};
use super::ps::cost;
use super::table::{clip, table};
use crate::args;
use crate::headless::talk;
use max_team_terminal::text::clean_line;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::format::short;
use max_team_workspace::format::since;
use max_team_workspace::i18n::Lang;
use max_team_workspace::setup::AppEnv;
use max_team_workspace::team_file::{self, TeamContext, TeamFile};

/// Characters of a teammate's current work.
const TASK_CHARS: usize = 60;

pub(crate) fn run(place: &AppEnv, command: args::Team) -> anyhow::Result<Exit> {
    match command {
        args::Team::List { json } => {
            list(place, json)?;
            Ok(Exit::Ok)
        }
        args::Team::Load { name, prompt, session: None } => {
            let mut talk = args::TalkFlags { teammates: Some(name), prompt, ..args::TalkFlags::default() };
            if !std::io::stdin().is_terminal() {
                // Without a terminal this is a headless run: the team works until nothing is left to do, then the
                // result is printed.
                talk.print = Some(talk.prompt.take().unwrap_or_default());
            }
            crate::converse::run(place, talk)
        }
        command => at_context(place, &JournalContext::open(place)?, &command),
    }
}

fn at_context(place: &AppEnv, context: &JournalContext, command: &args::Team) -> anyhow::Result<Exit> {
    match command {
        args::Team::List { .. } => {}
        args::Team::Show { session, json } => {
            let roll = context.read(query::Team { session: this_session(context, place, session.as_deref())? })?;
            let text = if *json { format!("{}\n", registry(&roll)) } else { shown(&roll, context.lang) };
            super::print(&text)?;
        }
        args::Team::Shutdown { names, now, session } => {
            let how = if *now { EndMode::Told } else { EndMode::Asked };
            return shut_down(context, place, session.as_deref(), names, how);
        }
        args::Team::Mode { name, mode, session } => {
            return set_mode(context, place, session.as_deref(), name, *mode);
        }
        args::Team::Save { name, session, folder, force } => {
            let roll = context.read(query::Team { session: this_session(context, place, session.as_deref())? })?;
            save(place, context.lang, &roll, name, folder.is_users(), *force)?;
        }
        args::Team::Load { name, prompt, session } => {
            return load(context, place, name, prompt.as_deref(), session.as_deref());
        }
        args::Team::Export { claude, session } => {
            let session = this_session(context, place, session.as_deref())?;
            let (roll, envelopes) =
                (context.read(query::Team { session })?, context.read(query::Messages { session })?);
            let file = export(&place.cwd.join(claude), &roll, &envelopes)?;
            super::print(&format!("{}\n", context.lang.exported(&file)))?;
        }
    }
    Ok(Exit::Ok)
}

/// If no process runs the session, tells the user how the stored command takes effect.
fn tell_if_parked(context: &JournalContext, session: SessionId) -> anyhow::Result<bool> {
    let parked = context.owner(Some(session))?.is_none();
    if parked {
        talk(&context.lang.noted(Some(session)));
    }
    Ok(parked)
}

/// Sets a teammate's mode and prints the mode it got, which is never freer than the session's.
fn set_mode(
    context: &JournalContext,
    place: &AppEnv,
    session: Option<&str>,
    name: &String,
    mode: Mode,
) -> anyhow::Result<Exit> {
    let to = std::slice::from_ref(name);
    let (session, readers) = session_of(context, place, session, to)?;
    let works_in = |reader: &Recipient| -> anyhow::Result<Option<Mode>> {
        Ok(context.read(query::Agent { agent: reader.agent })?.settings().map(|settings| settings.mode))
    };
    let before =
        readers.iter().map(|reader| Ok((reader.agent, works_in(reader)?))).collect::<anyhow::Result<Vec<_>>>()?;
    let bound = context.read(query::Team { session })?.lead.and_then(|lead| lead.mode);
    context::wait(async {
        let mut watch = context.watch()?;
        let written = context.post().set_mode(&context.by, fresh(), session, to, mode).await.map_err(stop)?;
        if context.owner(Some(session))?.is_none() {
            super::print(&format!("{}\n", context.lang.mode_wanted(names(&written.readers), mode.name())))?;
            tell_if_parked(context, session)?;
            return Ok(Exit::Ok);
        }
        let mut left: Vec<&Recipient> = written.readers.iter().collect();
        let heard = until(&mut watch, |_| {
            let mut waiting = Vec::new();
            for reader in left.drain(..) {
                let unread = context.read(query::Unread { agent: reader.agent })?;
                if written.envelopes.iter().any(|sent| unread.contains(&sent.id)) {
                    waiting.push(reader);
                    continue;
                }
                let now = works_in(reader)?.unwrap_or(mode);
                let changed = !before.contains(&(reader.agent, Some(now)));
                let words = match now == mode {
                    true => context.lang.mode_set(&reader.name, mode.name()),
                    false => context.lang.mode_bounded(&reader.name, now.name(), changed, bound == Some(now)),
                };
                super::print(&format!("{words}\n"))?;
            }
            left = waiting;
            Ok(left.is_empty().then_some(()))
        });
        if heard.await?.is_none() {
            let still: Vec<&str> = left.iter().map(|reader| reader.name.as_str()).collect();
            super::print(&format!("{}\n", context.lang.mode_wanted(still.join(", "), mode.name())))?;
        }
        Ok(Exit::Ok)
    })
}

fn shut_down(
    context: &JournalContext,
    place: &AppEnv,
    session: Option<&str>,
    to: &[String],
    how: EndMode,
) -> anyhow::Result<Exit> {
    let (session, _) = session_of(context, place, session, to)?;
    context::wait(async {
        let mut watch = context.watch()?;
        let written = context.post().part(&context.by, fresh(), session, to, how).await.map_err(stop)?;
        if tell_if_parked(context, session)? {
            return Ok(Exit::Ok);
        }
        let (mut left, mut exit): (Vec<&Recipient>, Exit) = (written.readers.iter().collect(), Exit::Ok);
        let heard = until(&mut watch, |entry| {
            let Some(entry) = entry else { return Ok(None) };
            let is_ours = |envelope: &Envelope| written.envelopes.iter().any(|sent| envelope.reply_to == Some(sent.id));
            let (who, words) = match entry.event() {
                Some(Event::AgentEnded(ended)) => {
                    (entry.stream().to_owned(), context.lang.teammate_ended(&ended.name, &ended.by, &ended.reason))
                }
                Some(Event::Mailed(envelope)) if is_ours(&envelope) => match context.lang.will_not_end(&envelope) {
                    Some(words) => {
                        exit = Exit::Denied;
                        (envelope.from, words)
                    }
                    None => return Ok(None),
                },
                _ => return Ok(None),
            };
            if left.iter().any(|reader| reader.address() == who) {
                left.retain(|reader| reader.address() != who);
                super::print(&format!("{}\n", clean_line(&words)))?;
            }
            Ok(left.is_empty().then_some(()))
        });
        if heard.await?.is_none() {
            let still: Vec<String> = left.iter().map(|reader| reader.name.clone()).collect();
            talk(&format!("{}: {}", still.join(", "), context.lang.asked_to_end()));
        }
        Ok(exit)
    })
}

/// Asks the lead of an existing session to start these teammates.
fn load(
    context: &JournalContext,
    place: &AppEnv,
    name: &str,
    prompt: Option<&str>,
    session: Option<&str>,
) -> anyhow::Result<Exit> {
    let (team, warnings) = team_file::find(place, name, &TeamContext::of(place))?;
    warnings.iter().for_each(|warning| talk(warning.get(context.lang)));
    let session = this_session(context, place, session)?;
    let roll = context.read(query::Team { session })?;
    tell_of_lead(&team, roll.lead.as_ref().map(|lead| lead.person.name.as_str()), context.lang);
    let (there, members) = context.read(query::Newcomers { session, teammates: team.members })?;
    let called = |members: &[Spawn]| members.iter().map(|member| member.name.clone()).collect::<Vec<_>>().join(", ");
    if !there.is_empty() {
        talk(&context.lang.there_already(called(&there)));
    }
    context::wait(async {
        let mut watch = context.watch()?;
        let key = fresh();
        if !members.is_empty() {
            context.post().recruit(&context.by, key, session, &members).await.map_err(stop)?;
        }
        if let Some(prompt) = prompt {
            context.post().write(&context.by, fresh(), session, &["lead".to_owned()], prompt).await.map_err(stop)?;
        }
        if tell_if_parked(context, session)? || members.is_empty() {
            return Ok(Exit::Ok);
        }
        let mut refused = None;
        let heard = until(&mut watch, |entry| {
            if let Some(Event::MessageRefused(no)) = entry.and_then(LogEntry::event).filter(|_| refused.is_none())
                && no.envelope == key
            {
                refused = Some(no.why);
            }
            Ok(entry.is_some_and(|entry| entry.takes(key)).then_some(()))
        });
        let is_heard = heard.await?.is_some();
        match (refused, is_heard) {
            // Partial, as at the start with a team: the prompt was delivered all the same.
            (Some(why), _) => Err(CliError::said(Exit::Partial, |lang| lang.not_joined(&why)).into()),
            (None, true) => {
                super::print(&format!("{}\n", context.lang.joined(called(&members))))?;
                Ok(Exit::Ok)
            }
            (None, false) => {
                context.owner(Some(session))?.iter().for_each(|owner| talk(&context.lang.unheard(owner)));
                Ok(Exit::Ok)
            }
        }
    })
}

/// A team that was written for another lead works for this one, too.
pub(crate) fn tell_of_lead(team: &TeamFile, lead: Option<&str>, lang: Lang) {
    if let (Some(wanted), Some(lead)) = (&team.lead, lead)
        && wanted != lead
    {
        talk(&lang.other_lead(wanted, lead));
    }
}

fn list(place: &AppEnv, json: bool) -> anyhow::Result<()> {
    let (all, lang) = (team_file::list(place, &TeamContext::of(place)), place.speaks());
    let text = if json {
        let row = |found: &team_file::TeamFileEntry| {
            let team = found.team.as_ref().ok().map(|(team, _)| team);
            json!({
                "name": found.name(),
                "file": found.shown,
                "user": found.is_users,
                "description": team.map(|team| team.description.as_str()),
                "members": team.map(|team| &team.members),
                "problem": found.team.as_ref().err().map(|words| words.get(Lang::En)),
            })
        };
        format!("{}\n", Value::from(all.iter().map(row).collect::<Vec<_>>()))
    } else if all.is_empty() {
        format!("{}\n", lang.no_teams())
    } else {
        let row = |found: &team_file::TeamFileEntry| {
            let (members, about) = match &found.team {
                Ok((team, _)) => {
                    let names: Vec<&str> = team.members.iter().map(|member| member.name.as_str()).collect();
                    (names.join(", "), team.description.clone())
                }
                Err(words) => (String::new(), lang.faulty_team(words.get(lang).lines().count())),
            };
            vec![found.name().to_owned(), found.shown.clone(), members, about]
        };
        table(&lang.team_heads(), &all.iter().map(row).collect::<Vec<_>>())
    };
    super::print(&text)?;
    all.iter().filter_map(|found| found.team.as_ref().err()).for_each(|words| talk(words.get(lang)));
    all.iter().filter_map(|found| found.team.as_ref().ok()).for_each(|(_, warnings)| {
        warnings.iter().for_each(|warning| talk(warning.get(lang)));
    });
    Ok(())
}

fn save(place: &AppEnv, lang: Lang, roll: &Roll, name: &str, is_users: bool, force: bool) -> anyhow::Result<()> {
    let path = team_file::place_of(place, name, is_users)?;
    let shown = team_file::shown(place, &path);
    let members: Vec<_> =
        roll.teammates.iter().filter(|teammate| teammate.is_active()).map(|teammate| teammate.spawn.clone()).collect();
    if members.is_empty() {
        return Err(CliError::said(Exit::Failed, |lang| lang.nothing_to_save()).into());
    }
    let lead = roll.lead.as_ref().map(|lead| lead.person.name.clone());
    let team = TeamFile { name: name.to_owned(), description: String::new(), lead, members };
    let failed = |error: std::io::Error| CliError::unwritable(&shown, &error);
    match put(&path, &team_file::write(&team), force) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(CliError::said(Exit::Usage, |lang| lang.team_exists(&shown)).into());
        }
        written => written.map_err(failed)?,
    }
    super::print(&format!("{}\n", lang.team_written(&shown, name)))?;
    Ok(())
}

/// Puts a file there whole, or not at all; in place of another only if that is wanted.
fn put(path: &Path, text: &str, force: bool) -> std::io::Result<()> {
    use std::io::Write as _;
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut draft = tempfile::NamedTempFile::new_in(folder)?;
    draft.write_all(text.as_bytes())?;
    draft.as_file().sync_all()?;
    let kept = if force { draft.persist(path) } else { draft.persist_noclobber(path) };
    kept.map(drop).map_err(|error| error.error)
}

fn shown(roll: &Roll, lang: Lang) -> String {
    let now_ms = context::now_ms();
    let mut rows: Vec<Vec<String>> = roll.lead.iter().map(|lead| cells(lead, now_ms, lang)).collect();
    rows.extend(roll.teammates.iter().map(|teammate| cells(teammate, now_ms, lang)));
    let none = if roll.teammates.is_empty() { format!("{}\n", lang.nobody_joined()) } else { String::new() };
    format!(
        "{} ({} {})\n{}{none}",
        roll.name(),
        lang.session_word(),
        short(&roll.session),
        table(&lang.roll_heads(), &rows)
    )
}

fn cells(member: &Enrolled, now_ms: i64, lang: Lang) -> Vec<String> {
    let person = &member.person;
    vec![
        person.name.clone(),
        if person.lead { lang.is_lead().to_owned() } else { member.kind.clone() },
        member.color.clone(),
        lang.member_state(member).to_owned(),
        lang.ago(since(member.last_at_ms, now_ms)),
        if member.unread > 0 { member.unread.to_string() } else { String::new() },
        member.mode.map_or("", Mode::name).to_owned(),
        person.model.clone(),
        if person.nano > 0 { cost(person) } else { String::new() },
        clip(&member.title, TASK_CHARS),
        lang.member_why(member).unwrap_or_default(),
    ]
}

/// The registry in the words that other programs have for it, with ours beside them.
fn registry(roll: &Roll) -> Value {
    let team = roll.name();
    let id = |member: &Enrolled| format!("{}@{team}", member.person.name);
    let row = |member: &Enrolled| {
        json!({
            "agentId": id(member),
            "name": member.person.name,
            "agentType": member.kind,
            "color": member.color,
            "isActive": member.is_active(),
            "role": member.person.role,
            "agent": member.person.agent,
            "state": member.person.state,
            "reason": member.person.reason,
            "doing": member.person.doing,
            "lastActivity": rfc3339(member.last_at_ms),
            "unread": member.unread,
            "mode": member.mode,
            "task": member.title,
            "model": member.person.model,
            "costUsd": dollars(member.person.nano),
            "unknownCostUsd": dollars(member.person.unknown_nano),
            "askedToEndBy": member.asked_to_end,
            "ended": member.gone,
        })
    };
    json!({
        "name": team,
        "session": roll.session,
        "leadAgentId": roll.lead.as_ref().map(id),
        "lead": roll.lead.as_ref().map(row),
        "members": roll.teammates.iter().map(row).collect::<Vec<_>>(),
    })
}

/// Writes `teams/NAME/config.json` and an inbox for each member; returns the path of the config.
fn export(folder: &Path, roll: &Roll, envelopes: &[MailRecord]) -> Result<String, CliError> {
    let folder = folder.join("teams").join(roll.name());
    let failed = |error: std::io::Error| CliError::unwritable(&folder.display().to_string(), &error);
    let pretty = |value: &Value| format!("{value:#}\n");
    let config = folder.join("config.json");
    put(&config, &pretty(&registry(roll)), true).map_err(failed)?;
    for member in roll.lead.iter().chain(&roll.teammates) {
        let name = &member.person.name;
        let inbox: Vec<Value> =
            envelopes.iter().filter(|envelope| envelope.to == *name && !envelope.is_control()).map(message).collect();
        let file = folder.join("inboxes").join(format!("{name}.json"));
        put(&file, &pretty(&Value::from(inbox)), true).map_err(failed)?;
    }
    Ok(config.display().to_string())
}

fn message(envelope: &MailRecord) -> Value {
    let is_read = matches!(envelope.fate, max_team_runtime::Fate::Read(_) | max_team_runtime::Fate::Acted(_));
    let color = Some(envelope.envelope.color()).filter(|color| !color.is_empty());
    json!({
        "from": envelope.from, "text": envelope.text(), "timestamp": rfc3339(envelope.envelope.sent_at_ms),
        "read": is_read, "color": color,
    })
}
