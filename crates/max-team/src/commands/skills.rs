//! `skills`: know-how in folders, as agents and users find it.

use std::path::Path;

use max_team_core::text::{code_points, hidden_lines};
use max_team_runtime::skills::{Broken, Catalogue, Scope, Skill, State, Trust, misplaced, written_commands};
use serde_json::{Value, json};

use super::table::{clip, table};
use crate::args::{RunSkill, Skills};
use crate::converse;
use max_team_terminal::text::{clean, clean_line};
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::i18n::Lang;
use max_team_workspace::input_file;
use max_team_workspace::permissions::TrustedRules;
use max_team_workspace::setup::{self, AppEnv};
use max_team_workspace::skills::{self, find, state};

/// Characters of a description in a list.
const LISTED_CHARS: usize = 100;
/// What a new skill begins with.
const DRAFT: &str = include_str!("../../../../prompts/new_skill.md");

pub(crate) fn run(place: &AppEnv, command: Skills) -> anyhow::Result<Exit> {
    let lang = place.speaks();
    if let Skills::New { name, description, folder } = &command {
        return new(place, lang, name, description.as_deref(), folder.is_users());
    }
    let named = if let Skills::Run(options) = &command { options.config() } else { None };
    let config = place.settings(named.map(|path| path.as_path()), Vec::new())?;
    let root = setup::project_root(place, &config)?;
    let catalogue = Catalogue::read(&skills::places(place), &root);
    match command {
        Skills::New { .. } => Ok(Exit::Ok),
        Skills::List { json } => list(&catalogue, lang, json),
        Skills::Show { name, json } => show(&catalogue, lang, &name, json),
        Skills::Check { name, json } => check(&catalogue, lang, name.as_deref(), json),
        Skills::Trust { name, yes } => trust(place, &catalogue, lang, name.as_deref(), yes),
        Skills::Disable { name } => switch(place, &catalogue, lang, &name, false),
        Skills::Enable { name } => switch(place, &catalogue, lang, &name, true),
        Skills::Run(options) => carry_out(place, &catalogue, &options),
    }
}

fn as_json(skill: &Skill) -> Value {
    let lacks = if let State::Lacks(missing) = &skill.state { missing.as_slice() } else { &[] };
    let state = match skill.state {
        State::Ready => "ready",
        State::Untrusted => "untrusted",
        State::Changed => "changed",
        State::Lacks(_) => "lacks",
        State::Off => "off",
    };
    json!({
        "name": skill.name, "description": skill.description, "scope": skill.scope.name(), "file": skill.file,
        "state": state, "needs": lacks, "for_models": skill.head.for_models, "for_users": skill.head.for_users,
        "argument_hint": skill.head.argument_hint, "allowed_tools": skill.head.tools,
        "carried_out_by": skill.done_by(), "paths": skill.head.paths,
        "contract": skill.contract.as_ref().map(|contract| json!({
            "tools": contract.tools, "input": contract.input, "output": contract.output,
            "timeout_ms": contract.timeout_ms,
        })),
        "without_effect": skill.head.idle, "warnings": skill.warnings,
    })
}

/// What is not a skill's own: names that were lost, files that are none.
fn troubles(catalogue: &Catalogue, lang: Lang) -> Vec<String> {
    let shadowed = catalogue.shadows.iter().map(|shadow| {
        lang.skill_shadowed(&shadow.name, shadow.file.display().to_string(), shadow.by.display().to_string())
    });
    let broken =
        catalogue.broken.iter().map(|broken| lang.skill_broken(broken.file.display().to_string(), &broken.why));
    shadowed.chain(broken).collect()
}

/// Texts beside skills that are none.
fn skipped(catalogue: &Catalogue, lang: Lang) -> Vec<String> {
    let words = |text: &Broken| lang.skill_skipped(text.file.display().to_string(), &text.why);
    catalogue.skipped.iter().map(words).collect()
}

fn switch(place: &AppEnv, catalogue: &Catalogue, lang: Lang, name: &str, is_on: bool) -> anyhow::Result<Exit> {
    let name = &find(catalogue, name)?.name;
    skills::switch(place, name, is_on).map_err(|why| CliError::new(Exit::Failed, why))?;
    let off_in = skills::off_in(place, catalogue.root()).into_iter().find(|(off, _)| off == name);
    if let (true, Some((_, file))) = (is_on, off_in) {
        return Err(
            CliError::said(Exit::Failed, |lang| lang.skill_off_elsewhere(name, file.display().to_string())).into()
        );
    }
    super::print(&format!("{}\n", lang.skill_switched(name, is_on)))?;
    Ok(Exit::Ok)
}

fn list(catalogue: &Catalogue, lang: Lang, as_lines: bool) -> anyhow::Result<Exit> {
    if as_lines {
        let shadows = catalogue.shadows.iter();
        let shadows: Vec<Value> =
            shadows.map(|shadow| json!({ "name": shadow.name, "file": shadow.file, "by": shadow.by })).collect();
        let with_why = |found: &[Broken]| -> Vec<Value> {
            found.iter().map(|one| json!({ "file": one.file, "why": one.why })).collect()
        };
        let (broken, skipped) = (with_why(&catalogue.broken), with_why(&catalogue.skipped));
        let all: Vec<Value> = catalogue.all().map(as_json).collect();
        let told = json!({ "skills": all, "shadowed": shadows, "broken": broken, "skipped": skipped });
        super::print(&format!("{told:#}\n"))?;
        return Ok(Exit::Ok);
    }
    if catalogue.all().next().is_none() {
        super::print(&format!("{}\n", lang.no_skills()))?;
    } else {
        let heads: Vec<&str> = lang.skill_heads().split(',').collect();
        let row = |skill: &Skill| {
            let about = (skill.scope == Scope::Builtin).then(|| lang.about(&skill.name)).flatten();
            let words = clip(about.unwrap_or(&skill.description), LISTED_CHARS);
            vec![skill.name.clone(), skill.scope.name().to_owned(), state(skill, lang), words]
        };
        super::print(&table(&heads, &catalogue.all().map(row).collect::<Vec<_>>()))?;
    }
    for line in troubles(catalogue, lang).into_iter().chain(skipped(catalogue, lang)) {
        super::print(&format!("{}\n", clean(&line)))?;
    }
    Ok(Exit::Ok)
}

fn show(catalogue: &Catalogue, lang: Lang, name: &str, as_lines: bool) -> anyhow::Result<Exit> {
    let skill = find(catalogue, name)?;
    // An untrusted skill is shown, too: the user has to read it to decide.
    let written = Catalogue::written(skill);
    if as_lines {
        let mut shown = as_json(skill);
        if let Some(shown) = shown.as_object_mut() {
            shown.insert("text".to_owned(), written.ok().into());
        }
        super::print(&format!("{shown:#}\n"))?;
        return Ok(Exit::Ok);
    }
    let hint = skill.head.argument_hint.as_deref().unwrap_or_default();
    let mut page = format!("{} {hint}\n\n{}\n\n", skill.name, skill.description);
    let list = |words: &[String]| words.join(", ");
    let needs = if let State::Lacks(missing) = &skill.state { list(missing) } else { String::new() };
    let [file, from, status, lacks, license, compatibility, asks_for, done_by, paths, idle, takes, timeout, warning] =
        lang.skill_rows();
    let mut rows = vec![
        (file, skill.file.display().to_string()),
        (from, skill.scope.name().to_owned()),
        (status, state(skill, lang)),
        (lacks, needs),
        (license, skill.head.license.clone().unwrap_or_default()),
        (compatibility, skill.head.compatibility.clone().unwrap_or_default()),
        (asks_for, list(&skill.head.tools)),
        (done_by, skill.done_by().unwrap_or_default()),
        (paths, list(&skill.head.paths)),
        (idle, list(&skill.head.idle)),
    ];
    if let Some(contract) = &skill.contract {
        rows.push((takes, list(&contract.tools)));
        rows.push((timeout, format!("{} s", contract.timeout_ms / 1_000)));
    }
    rows.extend(skill.warnings.iter().map(|words| (warning, words.clone())));
    for (head, words) in rows.into_iter().filter(|(_, words)| !words.is_empty()) {
        page.push_str(&format!("{}\n", lang.headed(head, words)));
    }
    if let Err(why) = catalogue.text(skill) {
        let why = if skill.state == State::Untrusted { lang.trust_first(name) } else { why };
        page.push_str(&format!("\n{}\n", lang.skill_unusable(name, &why)));
    }
    if let Ok(text) = written {
        page.push_str(&format!("\n{}\n", text.trim_end()));
    }
    super::print(&clean(&page))?;
    Ok(Exit::Ok)
}

fn check(catalogue: &Catalogue, lang: Lang, name: Option<&str>, as_lines: bool) -> anyhow::Result<Exit> {
    let chosen: Vec<&Skill> = match name {
        Some(name) => vec![find(catalogue, name)?],
        None => catalogue.all().collect(),
    };
    let odd = chosen.iter().flat_map(|skill| skill.warnings.iter().map(|words| (skill.file.clone(), words.clone())));
    let mut found: Vec<(std::path::PathBuf, String)> = odd.collect();
    for skill in chosen {
        let text = if skill.state == State::Ready { catalogue.text(skill) } else { Catalogue::written(skill) };
        let misplaced = misplaced(text.as_deref().unwrap_or_default(), &skill.head.arguments);
        let line = |(line, why): (usize, String)| (skill.file.clone(), lang.at_line(skill.first_line + line, &why));
        found.extend(misplaced.into_iter().map(line));
        found.extend(text.err().map(|why| (skill.file.clone(), why)));
        let whole = std::fs::read(&skill.file).unwrap_or_default();
        let hidden = hidden_lines(&String::from_utf8_lossy(&whole)).into_iter().map(|(line, letters)| {
            (skill.file.clone(), lang.at_line(line, lang.invisible_letters(code_points(&letters))))
        });
        found.extend(hidden);
    }
    let others = if name.is_none() { troubles(catalogue, lang) } else { Vec::new() };
    // A text that is no skill may be meant to be none, so it is named and is no failure.
    let skipped = if name.is_none() { skipped(catalogue, lang) } else { Vec::new() };
    if as_lines {
        let mut lines: Vec<Value> = found.iter().map(|(file, words)| json!({ "file": file, "words": words })).collect();
        lines.extend(others.iter().chain(&skipped).map(|words| json!({ "words": words })));
        super::print(&format!("{:#}\n", Value::from(lines)))?;
    } else {
        for (file, words) in &found {
            super::print(&format!("{}: {}\n", file.display(), clean(words)))?;
        }
        for words in others.iter().chain(&skipped) {
            super::print(&format!("{}\n", clean(words)))?;
        }
        if found.is_empty() && others.is_empty() {
            super::print(&format!("{}\n", lang.skills_fine()))?;
        }
    }
    Ok(if found.is_empty() && others.is_empty() { Exit::Ok } else { Exit::Failed })
}

fn new(place: &AppEnv, lang: Lang, name: &str, description: Option<&str>, user: bool) -> anyhow::Result<Exit> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_name = !name.is_empty() && name.len() <= 64 && name.bytes().all(fits);
    if !is_name || name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        return Err(CliError::said(Exit::Usage, |lang| lang.bad_skill_name(name)).into());
    }
    let folder = match user {
        true => place.home.join("skills"),
        false => {
            let config = place.settings(None, Vec::new())?;
            setup::project_root(place, &config)?.join(".max-team/skills")
        }
    };
    let file = folder.join(name).join("SKILL.md");
    let words = description.unwrap_or(lang.draft_description()).replace(['\n', '\r'], " ");
    let words = serde_json::to_string(&words)?;
    let failed = |error: std::io::Error| {
        let shown = file.display().to_string();
        match error.kind() {
            std::io::ErrorKind::AlreadyExists => CliError::said(Exit::Usage, |lang| lang.skill_exists(&shown)),
            _ => CliError::unwritable(&shown, &error),
        }
    };
    std::fs::create_dir_all(folder.join(name)).map_err(failed)?;
    let mut made = std::fs::File::options().write(true).create_new(true).open(&file).map_err(failed)?;
    let text = DRAFT.replace("{name}", name).replace("{description}", &words);
    std::io::Write::write_all(&mut made, text.as_bytes()).map_err(failed)?;
    super::print(&format!("{}\n", lang.skill_made(&file.display().to_string(), name, !user)))?;
    Ok(Exit::Ok)
}

fn trust(place: &AppEnv, catalogue: &Catalogue, lang: Lang, name: Option<&str>, yes: bool) -> anyhow::Result<Exit> {
    let waits = |skill: &&Skill| matches!(skill.state, State::Untrusted | State::Changed);
    let chosen: Vec<&Skill> = match name {
        Some(name) => {
            let skill = find(catalogue, name)?;
            if skill.scope != Scope::Project {
                super::print(&format!("{}\n", lang.not_a_projects(name, skill.scope.name())))?;
                return Ok(Exit::Ok);
            }
            Some(skill).filter(waits).into_iter().collect()
        }
        None => catalogue.all().filter(waits).collect(),
    };
    if chosen.is_empty() {
        super::print(&format!("{}\n", lang.nothing_to_trust()))?;
        return Ok(Exit::Ok);
    }
    let mut exit = Exit::Ok;
    for skill in chosen {
        let name = &skill.name;
        let pin = Catalogue::pin(skill)
            .map_err(|why| CliError::said(Exit::Failed, |lang| lang.cannot_be_pinned(name, &why)))?;
        let place_shown = skill.folder.as_deref().unwrap_or(&skill.file);
        super::print(&clean(&format!("{name}  {}\n  {}\n", place_shown.display(), skill.description)))?;
        super::print(&clean(&contents(skill, place_shown)))?;
        if !yes && !super::context::agreed(lang.trust_these(), Exit::Denied, |lang| lang.trust_needs_yes())? {
            super::print(&format!("{}\n", lang.left_untrusted()))?;
            exit = Exit::Denied;
            continue;
        }
        let root = catalogue.root().to_string_lossy();
        let mut trusted =
            TrustedRules::read(&place.home).map_err(|words| CliError::translated(Exit::Failed, &words))?;
        trusted.add(&root, &[Trust::word(name, &pin)])?;
        super::print(&format!("{}\n", lang.skill_trusted(name, &root)))?;
    }
    Ok(exit)
}

/// What the user is asked to trust: all files, and all commands in them, found by the same parser that runs them.
fn contents(skill: &Skill, path: &Path) -> String {
    let mut text = String::new();
    let files = if path.is_dir() { below(path) } else { vec![path.to_path_buf()] };
    for file in files {
        let shown = file.strip_prefix(path).unwrap_or(&file).display().to_string();
        let shown = if shown.is_empty() { file.display().to_string() } else { shown };
        // A name with a line break in it must not pass for a line of ours.
        text.push_str(&format!("  - {}\n", clean_line(&shown)));
        let body =
            if file == skill.file { Catalogue::written(skill).ok() } else { std::fs::read_to_string(&file).ok() };
        for command in written_commands(&body.unwrap_or_default()) {
            command.lines().for_each(|line| text.push_str(&format!("      ! {line}\n")));
        }
    }
    text
}

fn below(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files.extend(below(&path)),
            _ => files.push(path),
        }
    }
    files.sort();
    files
}

fn carry_out(place: &AppEnv, catalogue: &Catalogue, options: &RunSkill) -> anyhow::Result<Exit> {
    let (name, contract) = skills::agreed(catalogue, &options.name)?;
    let wrong = |words: String| CliError::new(Exit::Usage, format!("--input: {words}"));
    let text = match options.input.strip_prefix('@') {
        Some(path) => {
            let text = input_file::text(&place.cwd.join(path), input_file::JSON_BYTES_MAX);
            text.map_err(|why| wrong(format!("`{path}`: {why}")))?
        }
        None => options.input.clone(),
    };
    let input: Value = serde_json::from_str(&text).map_err(|error| wrong(format!("it is not JSON: {error}")))?;
    contract.takes(&input).map_err(|misfit| wrong(misfit.to_string()))?;
    converse::skill(place, &name, &contract, &input, options)
}
