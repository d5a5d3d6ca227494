//! `agents`: who there is, where each is written, a new one, and one put to the test.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use max_team_core::agent::{Isolation, NotesScope, TeamRole as Position};
use max_team_core::policy::Mode;
use max_team_core::suggest::nearest;
use max_team_tools::AgentStore;
use serde_json::Value;

use super::table::table;
use crate::args::{Agents, Formats, TalkFlags, TeamFlags, TryAgent};
use crate::converse;
use crate::headless;
use max_team_terminal::text::{clean, clean_line};
use max_team_workspace::agents::{self, ListedAgent, Scope, Team};
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::format::dollars;
use max_team_workspace::i18n::{Lang, Translated};
use max_team_workspace::setup::{self, AppEnv};

/// What a new definition looks like.
const DRAFT_EN: &str = include_str!("agents.draft.en.md");
const DRAFT_ZH: &str = include_str!("agents.draft.zh.md");

pub(crate) fn run(place: &AppEnv, command: Agents) -> anyhow::Result<Exit> {
    match command {
        Agents::List { json, agents } => list(place, agents.as_deref(), json)?,
        Agents::Show { name, json, agents } => show(place, agents.as_deref(), &name, json)?,
        Agents::New { name, folder, description } => new(place, &name, folder.is_users(), description)?,
        Agents::Test(options) => return test(place, *options),
    }
    Ok(Exit::Ok)
}

fn list(place: &AppEnv, file: Option<&Path>, json: bool) -> Result<(), CliError> {
    let team = agents::team(file, place)?;
    let people = agents::people(&team);
    team.warnings.iter().for_each(|warning| headless::talk(warning));
    if json {
        let all: Vec<Value> = people.iter().map(ListedAgent::json).collect();
        return super::print(&format!("{:#}\n", Value::from(all)));
    }
    let lang = place.speaks();
    let row = |person: &ListedAgent<'_>| {
        let own = &person.member.definition;
        let about = (person.scope == Scope::Builtin).then(|| lang.about(&own.name)).flatten();
        let written = if own.description.is_empty() { &own.role } else { &own.description };
        let model = person.member.model.clone().unwrap_or_else(|| "-".to_owned());
        vec![
            own.name.clone(),
            position(lang, own.place).to_owned(),
            model,
            person.place.get(lang).to_owned(),
            about.map_or_else(|| first(written), str::to_owned),
        ]
    };
    let rows: Vec<Vec<String>> = people.iter().map(row).collect();
    super::print(&table(&lang.agent_heads(), &rows))?;
    let shadowing = people.iter().filter(|person| !person.shadows.is_empty());
    let told = |person: &ListedAgent<'_>| {
        let own = &person.member.definition.name;
        let shadows: Vec<&str> = person.shadows.iter().map(|shadow| shadow.get(lang)).collect();
        clean_line(&lang.agent_shadows(own, person.place.get(lang), shadows.join(", ")))
    };
    let lines: String = shadowing.map(|person| format!("{}\n", told(person))).collect();
    super::print(&lines)
}

fn show(place: &AppEnv, file: Option<&Path>, name: &str, json: bool) -> Result<(), CliError> {
    let team = agents::team(file, place)?;
    let people = agents::people(&team);
    let person = people.iter().find(|person| person.member.definition.name == name);
    let person = person.ok_or_else(|| nobody(name, &people))?;
    let data = data(place, person);
    if json {
        let mut told = person.json();
        if let Some(told) = told.as_object_mut() {
            told.insert("prompt".to_owned(), person.member.definition.prompt.clone().into());
            told.insert("data".to_owned(), data.into());
        }
        return super::print(&format!("{told:#}\n"));
    }
    super::print(&page(person, data, place.speaks()))
}

/// Where it keeps what it finds again, if it works on files at all.
fn data(place: &AppEnv, person: &ListedAgent<'_>) -> Option<String> {
    if !person.tools().iter().any(|tool| AgentStore::TOOLS.contains(&tool.as_str())) {
        return None;
    }
    let config = place.settings(None, Vec::new()).ok()?;
    let root = setup::project_root(place, &config).ok()?;
    Some(AgentStore::data(&place.home, &root, &person.member.definition.name).path().display().to_string())
}

fn nobody(name: &str, people: &[ListedAgent<'_>]) -> CliError {
    let near = nearest(name, people.iter().map(|person| person.member.definition.name.as_str()));
    CliError::said(Exit::Usage, |lang| lang.no_agent(name, near))
}

fn position(lang: Lang, position: Position) -> &'static str {
    match position {
        Position::Lead => lang.lead_word(),
        Position::Member => lang.member_word(),
        Position::Expert => lang.expert_word(),
    }
}

/// The first sentence.
fn first(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.split_once(". ").map_or(line, |(sentence, _)| sentence).trim_end_matches('.').to_owned()
}

fn page(person: &ListedAgent<'_>, data: Option<String>, lang: Lang) -> String {
    let own = &person.member.definition;
    let role = if own.role == "expert" { String::new() } else { format!(", {}", clean_line(&own.role)) };
    let mut text = format!("{} ({}{role})\n", own.name, position(lang, own.place));
    if !own.description.is_empty() {
        let _ = writeln!(text, "{}", clean(&own.description));
    }
    text.push('\n');
    let mut rows = vec![(lang.source_word(), format!("{} ({})", person.place.get(lang), person.scope.name()))];
    rows.extend(person.shadows.iter().map(|shadow| (lang.shadows_word(), shadow.get(lang).to_owned())));
    rows.push((lang.model_word(), person.member.model.clone().unwrap_or_else(|| lang.sessions_model().to_owned())));
    if own.inherits_tools {
        rows.push((lang.tools_word(), lang.all_tools().to_owned()));
    }
    let tools = person.tools();
    rows.push((lang.tools_word(), if tools.is_empty() { lang.no_tools().to_owned() } else { tools.join(", ") }));
    if own.place == Position::Expert {
        rows.extend(
            person
                .taken()
                .into_iter()
                .map(|(layer, tools)| (lang.taken_word(), format!("{}: {}", lang.layer(layer), tools.join(", ")))),
        );
    }
    let lists = [
        (lang.left_out_word(), person.left_out.as_slice()),
        (lang.skills_word(), own.skills.as_slice()),
        (lang.calls_word(), own.may_call.as_deref().unwrap_or_default()),
    ];
    rows.extend(lists.into_iter().filter(|(_, words)| !words.is_empty()).map(|(name, words)| (name, words.join(", "))));
    rows.extend(limits(person, lang).into_iter().map(|limit| (lang.limits_word(), limit)));
    rows.extend(
        own.cache.as_ref().map(|cache| (lang.cache_word(), lang.cached_by(cache.ttl_s, cache.keys.join(", ")))),
    );
    rows.extend(data.map(|path| (lang.data_word(), path)));
    let kept =
        |memory| NotesScope::NAMES.iter().find(|(_, known)| *known == memory).map(|(name, _)| (*name).to_owned());
    rows.extend(own.work.memory.and_then(kept).map(|name| (lang.memory_word(), name)));
    rows.extend(person.notes.iter().map(|note| (lang.notes_word(), note.get(lang).to_owned())));
    text.push_str(&columns(&rows));
    let _ = write!(text, "\n{}\n", clean(own.prompt.trim_end()));
    text
}

/// Names and values side by side; a name that is said again is left blank.
fn columns(rows: &[(&str, String)]) -> String {
    use max_team_terminal::text::width;
    let widest = rows.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
    let mut text = String::new();
    let mut before = "";
    for (name, value) in rows {
        let shown = if *name == before { "" } else { name };
        before = name;
        let room = " ".repeat(widest.saturating_sub(width(shown)));
        let _ = writeln!(text, "{shown}{room}  {}", clean_line(value));
    }
    text
}

/// What it is kept within, in words.
fn limits(person: &ListedAgent<'_>, lang: Lang) -> Vec<String> {
    let (own, constraints) = (&person.member.definition, &person.member.constraints);
    let mut limits = Vec::new();
    limits.extend(constraints.read_only.then(|| lang.only_looks().to_owned()));
    limits.extend(own.mode.map(|mode| lang.mode_at_most(mode.name())));
    limits.extend(own.work.rounds_max.map(|rounds| lang.rounds_each(rounds)));
    limits.extend(own.work.budget.nano.map(dollars));
    limits.extend(own.work.budget.tokens.map(|tokens| format!("{tokens} tokens")));
    let times = [own.work.budget.wall_ms, constraints.timeout_ms].into_iter().flatten();
    limits.extend(times.map(|ms| format!("{} s", ms.div_ceil(1_000))));
    limits.extend((own.isolation == Isolation::Worktree).then(|| lang.own_copy().to_owned()));
    limits.extend(own.background.then(|| lang.in_background().to_owned()));
    let some = |words: &Vec<String>| (!words.is_empty()).then(|| words.clone());
    let lists = [
        ("owns", own.work.owns.clone()),
        ("allowed_dirs", constraints.allowed_dirs.clone()),
        ("blocked_patterns", some(&constraints.blocked_patterns)),
        ("write_patterns", constraints.write_patterns.clone()),
        ("allowed_hosts", some(&constraints.allowed_hosts)),
        ("allowed_commands", constraints.allowed_commands.clone()),
    ];
    let said = lists.into_iter().filter_map(|(name, words)| Some((name, words?)));
    limits.extend(said.map(|(name, words)| format!("{name}: {}", lang.listed(&words))));
    limits
}

fn new(place: &AppEnv, name: &str, is_users: bool, description: Option<String>) -> Result<(), CliError> {
    let lang = place.speaks();
    let good = agents::slug(name);
    if good.as_deref() != Some(name) {
        return Err(CliError::said(Exit::Usage, |lang| lang.no_agent_name(name, good.as_deref())));
    }
    let folder = if is_users { place.home.join("agents") } else { place.cwd.join(".max-team/agents") };
    let path = folder.join(format!("{name}.md"));
    let shown = path.strip_prefix(&place.cwd).unwrap_or(&path).display().to_string();
    let replaced = if path.exists() { None } else { replaced(place, name, is_users)? };
    let draft = if lang == Lang::Zh { DRAFT_ZH } else { DRAFT_EN };
    let description = description.unwrap_or_else(|| lang.draft_description().to_owned());
    // As JSON a text of any kind is one line that YAML takes.
    let text = draft.replace("{name}", name).replace("{description}", &Value::from(description).to_string());
    let failed = |error: std::io::Error| CliError::unwritable(&shown, &error);
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let file = std::fs::OpenOptions::new().write(true).create_new(true).open(&path);
    match file {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(CliError::said(Exit::Usage, |lang| lang.agent_exists(&shown)))
        }
        file => {
            file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed)?;
            let note =
                replaced.map(|place| format!("{}\n", lang.agent_replaces(name, place.get(lang)))).unwrap_or_default();
            super::print(&format!("{}\n{note}", lang.agent_written(&shown, name)))
        }
    }
}

/// The place of the agent that a new definition would replace. Refuses a name that an agent of the same or a stronger scope has:
/// the new definition would not be used.
fn replaced(place: &AppEnv, name: &str, is_users: bool) -> Result<Option<Translated>, CliError> {
    // What is wrong with the team is said where it is used.
    let Ok(team) = agents::team(None, place) else { return Ok(None) };
    let people = agents::people(&team);
    let ours = if is_users { Scope::User } else { Scope::Project };
    let is_before = |person: &&ListedAgent<'_>| {
        person.member.definition.name == name
            && (person.scope <= ours || person.member.definition.place == Position::Lead)
    };
    match people.iter().find(is_before) {
        Some(first) => Err(CliError::said(Exit::Usage, |lang| lang.agent_elsewhere(name, first.place.get(lang)))),
        None => Ok(people.iter().find(|person| person.member.definition.name == name).map(|known| known.place.clone())),
    }
}

/// One call of one agent, as it would be talked to with `--agent`.
fn test(place: &AppEnv, options: TryAgent) -> anyhow::Result<Exit> {
    let TryAgent { name, prompt, output_format, team } = options;
    let all: Result<Team, CliError> = agents::team(team.agents.as_deref(), place);
    // A team without a lead has members to talk to all the same; talking says what is wrong with any other.
    if let Ok(all) = &all {
        let people = agents::people(all);
        if !people.iter().any(|person| person.member.definition.name == name) {
            return Err(nobody(&name, &people).into());
        }
    }
    let permission_mode = team.permission_mode.or(Some(Mode::Plan));
    let team = TeamFlags { permission_mode, ..team };
    let formats = Formats { output_format, ..Formats::default() };
    converse::run(place, TalkFlags { agent: Some(name), print: Some(prompt), formats, team, ..TalkFlags::default() })
}
