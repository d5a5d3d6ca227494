//! Where skills lie for this user, and what the runtime may know of the machine to judge them.

use std::path::{Path, PathBuf};

use max_team_core::agent::{Definition, WorkSettings};
use max_team_core::suggest::nearest;
use max_team_runtime::skills::{Catalogue, Contract, Disabled, Machine, Places, Skill, State, Trust};
use serde_json::{Value, json};

use crate::exit::{CliError, Exit};
use crate::i18n::Lang;
use crate::permissions::TrustedRules;
use crate::setup::AppEnv;
use crate::{input_file, permissions};

/// The key of a settings file that says how skills are used.
const OVERRIDES: &str = "skillOverrides";
/// Its value for a skill that is turned off.
const OFF: &str = "off";

/// The usual places: the project's, ours in the user's folder, and those that other programs share.
pub fn places(place: &AppEnv) -> Places {
    let user = place.env.user();
    let shared = [".agents/skills", ".claude/skills"].map(|name| user.as_ref().map(|user| user.join(name)));
    let own = std::iter::once(place.home.join("skills"));
    let home = place.home.clone();
    Places {
        project: true,
        user: own.chain(shared.into_iter().flatten()).collect(),
        builtin: true,
        machine: machine(place),
        index: Some(place.home.join("skills.index.json")),
        disabled: {
            let place = place.clone();
            Disabled::new(move |root| off_in(&place, root).into_iter().map(|(name, _)| name).collect())
        },
        // Read each time: a yes in another terminal counts at once. A file that cannot be read says yes to nothing.
        trust: Trust::new(move |root| {
            TrustedRules::read(&home).map(|trusted| trusted.of(&root.to_string_lossy()).to_vec()).unwrap_or_default()
        }),
    }
}

/// The project's skills that the user has not trusted in their present state.
pub fn untrusted(place: &AppEnv, root: &Path) -> Vec<String> {
    let project = Places { user: Vec::new(), builtin: false, index: None, ..places(place) };
    let is_strange = |skill: &&Skill| matches!(skill.state, State::Untrusted | State::Changed);
    Catalogue::read(&project, root).all().filter(is_strange).map(|skill| skill.name.clone()).collect()
}

/// The settings files that can turn skills off: the user's first, which `skills disable` writes to.
fn settings_files(place: &AppEnv, root: &Path) -> Vec<PathBuf> {
    let theirs = place.env.user().map(|user| user.join(".claude/settings.json"));
    let names = [".max-team/settings.json", ".max-team/settings.local.json", ".claude/settings.json"];
    let own = std::iter::once(own_settings(place)).chain(theirs);
    own.chain(names.map(|name| root.join(name))).collect()
}

fn own_settings(place: &AppEnv) -> PathBuf {
    place.home.join("settings.json")
}

/// The skills that settings turn off, each with the file that does. A file that cannot be read turns nothing off.
pub fn off_in(place: &AppEnv, root: &Path) -> Vec<(String, PathBuf)> {
    let mut off = Vec::new();
    for file in settings_files(place, root) {
        let text = input_file::text(&file, input_file::JSON_BYTES_MAX).unwrap_or_default();
        let settings: Value = serde_json::from_str(&text).unwrap_or_default();
        let overrides = settings.get(OVERRIDES).and_then(Value::as_object).into_iter().flatten();
        let names = overrides.filter(|(_, state)| state.as_str() == Some(OFF)).map(|(name, _)| name.clone());
        off.extend(names.map(|name| (name, file.clone())));
    }
    off
}

/// Turns a skill off or on in the user's own settings. What else is in the file stays.
pub fn switch(place: &AppEnv, name: &str, is_on: bool) -> Result<(), String> {
    let path = own_settings(place);
    let told = |why: &dyn std::fmt::Display| format!("`{}` cannot be changed: {why}", path.display());
    let mut settings: Value = match std::fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| told(&error))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => json!({}),
        Err(error) => return Err(told(&error)),
    };
    let overrides = settings
        .as_object_mut()
        .and_then(|top| top.entry(OVERRIDES).or_insert_with(|| json!({})).as_object_mut())
        .ok_or_else(|| told(&format!("its `{OVERRIDES}` is no object")))?;
    if is_on {
        overrides.remove(name);
    } else {
        overrides.insert(name.to_owned(), OFF.into());
    }
    let text = serde_json::to_string_pretty(&settings).map_err(|error| told(&error))?;
    permissions::write(&path, &text).map_err(|error| told(&error))
}

/// A skill by its name.
pub fn find<'a>(catalogue: &'a Catalogue, name: &str) -> Result<&'a Skill, CliError> {
    catalogue.get(name).ok_or_else(|| {
        let near = nearest(name, catalogue.all().map(|skill| skill.name.as_str())).map(str::to_owned);
        CliError::said(Exit::Usage, |lang| lang.no_skill(name, near.as_deref()))
    })
}

/// Whether it can be used, in words.
pub fn state(skill: &Skill, lang: Lang) -> String {
    lang.skill_state(&skill.state, skill.head.for_users, skill.head.for_models)
}

/// A skill that can be carried out by itself, with what was agreed. What stands there now is what is trusted and what is
/// done.
pub fn agreed(catalogue: &Catalogue, name: &str) -> Result<(String, Box<Contract>), CliError> {
    let skill = find(catalogue, name)?;
    let name = &skill.name;
    if skill.state != State::Ready {
        return Err(CliError::said(Exit::Denied, |lang| lang.skill_unusable(name, state(skill, lang))));
    }
    let loaded = catalogue.load(skill);
    let (skill, _) = loaded.map_err(|why| CliError::said(Exit::Denied, |lang| lang.skill_unusable(name, &why)))?;
    let contract = skill.contract.clone();
    let contract = contract.ok_or_else(|| CliError::said(Exit::Usage, |lang| lang.no_contract(name)))?;
    Ok((name.clone(), contract))
}

/// Who carries out a skill by itself: with the tools that it takes and no others.
pub fn hand(name: &str, contract: &Contract) -> Definition {
    Definition {
        name: name.to_owned(),
        role: Contract::ROLE.to_owned(),
        prompt: contract.prompt.clone(),
        tools: contract.tools.clone(),
        work: WorkSettings { output: Some(contract.output.clone()), ..WorkSettings::default() },
        ..Definition::default()
    }
}

/// The skill that this agent was made to run on its own (by `hand`).
pub fn of(definition: &Definition) -> Option<&str> {
    (definition.role == Contract::ROLE && definition.work.output.is_some()).then_some(definition.name.as_str())
}

fn machine(place: &AppEnv) -> Machine {
    let path = place.env.get("PATH").unwrap_or_default();
    Machine {
        path: std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect(),
        env: place.env.names().map(str::to_owned).collect(),
        config: Default::default(),
        os: std::env::consts::OS.to_owned(),
    }
}
