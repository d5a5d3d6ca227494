//! Team files: teammates that start together, described once.
//!
//! `.max-team/teams/NAME.yaml` came with the project, perhaps from a stranger: it may say who works and at what, not
//! how freely. The user's own lie in `teams` of their folder. [`find`] reads one, [`list`] all, [`write()`] writes one
//! that reads back the same.

mod read;
mod write;

use std::path::{Path, PathBuf};

use max_team_core::policy::Mode;
use max_team_runtime::{Spawn, Team};

use crate::agents;
use crate::config::{ConfigFile, FileTrust};
use crate::exit::{CliError, Exit};
use crate::i18n::Translated;
use crate::setup::AppEnv;

pub use write::write;

/// Files of one folder that are looked at.
const FILES_MAX: usize = 256;

/// A team that is written down.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TeamFile {
    pub name: String,
    pub description: String,
    /// The lead that it was written for.
    pub lead: Option<String>,
    pub members: Vec<Spawn>,
}

/// The lead and agent types that a team file is checked against. Empty if they are unknown; errors then appear when
/// the teammates are started.
#[derive(Debug, Clone, Default)]
pub struct TeamContext {
    lead: String,
    types: Vec<String>,
    /// How freely the session works that they are for.
    mode: Mode,
}

impl TeamContext {
    /// The team of a folder, if it can be read.
    pub fn of(place: &AppEnv) -> Self {
        let Ok(team) = agents::team(None, place) else { return Self::default() };
        let types = team.experts.iter().chain(&team.members).map(|member| member.definition.name.clone());
        Self { lead: team.lead.definition.name.clone(), types: types.collect(), mode: Mode::default() }
    }

    /// Those who sit in a session.
    pub fn seated(lead: &str, team: Option<&Team>, mode: Mode) -> Self {
        let types = team.iter().flat_map(|team| team.experts.iter().chain(&team.members));
        let types = types.map(|teammate| teammate.definition.name.clone()).collect();
        Self { lead: lead.to_owned(), types, mode }
    }

    /// And those who have come since.
    pub fn and(mut self, place: &AppEnv) -> Self {
        if !self.types.is_empty() {
            self.types.extend(Self::of(place).types);
            self.types.sort_unstable();
            self.types.dedup();
        }
        self
    }
}

/// A file, and what is in it.
#[derive(Debug)]
pub struct TeamFileEntry {
    pub shown: String,
    pub is_users: bool,
    /// What it says, and what of it is held back or strange; or why it cannot be used.
    pub team: Result<(TeamFile, Vec<Translated>), Translated>,
    stem: String,
}

impl TeamFileEntry {
    /// What it is called: as its file is.
    pub fn name(&self) -> &str {
        &self.stem
    }
}

/// The team of that name, or in that file, with what the user should be told about it.
pub fn find(place: &AppEnv, name: &str, here: &TeamContext) -> Result<(TeamFile, Vec<Translated>), CliError> {
    let faulty = |words: &Translated| CliError::said(Exit::Config, |lang| words.get(lang).to_owned());
    if name.contains('/') || name.ends_with(".yaml") || name.ends_with(".yml") {
        let (path, shown) = (place.cwd.join(name), name.to_owned());
        let file = ConfigFile { path, shown, standing: FileTrust::Trusted, named: true };
        return read::read(&file, stem(Path::new(name)), here).map_err(|words| faulty(&words));
    }
    let all = list(place, here);
    let names: Vec<&str> = all.iter().map(TeamFileEntry::name).collect();
    let unknown = || CliError::said(Exit::Usage, |lang| lang.no_team_file(name, &names.join(", ")));
    let found = all.iter().find(|found| found.name() == name).ok_or_else(unknown)?;
    found.team.clone().map_err(|words| faulty(&words))
}

/// Every team that is written down; of two with one name the user's own counts and comes first: what came with a project
/// does not take the place of what they trust.
pub fn list(place: &AppEnv, here: &TeamContext) -> Vec<TeamFileEntry> {
    let mut all = folder(place, &place.home.join("teams"), FileTrust::Trusted, here);
    all.extend(folder(place, &place.cwd.join(PROJECT), FileTrust::Project, here));
    all
}

/// Where a project keeps its teams.
const PROJECT: &str = ".max-team/teams";

/// Where a team of this name is written.
pub fn place_of(place: &AppEnv, name: &str, is_users: bool) -> Result<PathBuf, CliError> {
    let fits = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(fits) {
        return Err(CliError::said(Exit::Usage, |lang| lang.no_team_name(name)));
    }
    let folder = if is_users { place.home.join("teams") } else { place.cwd.join(PROJECT) };
    Ok(folder.join(format!("{name}.yaml")))
}

/// A path as messages call it.
pub fn shown(place: &AppEnv, path: &Path) -> String {
    path.strip_prefix(&place.cwd).unwrap_or(path).display().to_string()
}

fn folder(place: &AppEnv, folder: &Path, standing: FileTrust, here: &TeamContext) -> Vec<TeamFileEntry> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(FILES_MAX);
    let is_team = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_team).collect();
    paths.sort();
    let found = paths.into_iter().map(|path| {
        let (shown, stem) = (shown(place, &path), stem(&path));
        let is_elsewhere = standing == FileTrust::Project && is_elsewhere(place, &path);
        let file = ConfigFile { path, shown: shown.clone(), standing, named: false };
        let team = match is_elsewhere {
            true => Err(Translated::new(|lang| format!("{shown}: {}", lang.link_out_of_project()))),
            false => read::read(&file, stem.clone(), here),
        };
        TeamFileEntry { shown, is_users: standing == FileTrust::Trusted, team, stem }
    });
    found.collect()
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Whether a link on the way leads to another file than its name says.
fn is_elsewhere(place: &AppEnv, path: &Path) -> bool {
    let own = path.strip_prefix(&place.cwd).ok().zip(place.cwd.canonicalize().ok());
    path.canonicalize().is_ok_and(|real| own.is_none_or(|(below, root)| root.join(below) != real))
}

#[cfg(test)]
mod tests {
    use max_team_core::agent::Isolation;

    use super::*;
    use crate::i18n::Lang;

    fn place(folder: &Path) -> AppEnv {
        let cwd = folder.join("project");
        std::fs::create_dir_all(cwd.join(PROJECT)).unwrap();
        AppEnv {
            env: Vec::<(String, String)>::new().into_iter().collect(),
            cwd,
            home: folder.join("home"),
            wished: None,
            notice: |_| {},
        }
    }

    fn team() -> TeamFile {
        let spawn = |name: &str, prompt: &str| Spawn { name: name.into(), prompt: prompt.into(), ..Spawn::default() };
        let alice = Spawn {
            role: "backend: all of it".into(),
            kind: Some("explore".into()),
            model: Some("gpt-5".into()),
            mode: Some(Mode::Plan),
            color: Some("blue".into()),
            isolation: Some(Isolation::Worktree),
            claims: Some(true),
            ..spawn("alice", "Make a schema.\n\n- users\n- orders")
        };
        let members = vec![alice, spawn("张三", "no: \"quotes\" # here")];
        TeamFile { name: "web".into(), description: "for the shop".into(), lead: Some("max".into()), members }
    }

    #[test]
    fn a_written_file_reads_back_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        let path = place_of(&place, "web", false).unwrap();
        std::fs::write(&path, write(&team())).unwrap();
        let (read, warnings) = find(&place, "web", &TeamContext::default()).unwrap();
        assert_eq!((read, warnings), (team(), Vec::new()), "{}", write(&team()));
        assert_eq!(list(&place, &TeamContext::default()).len(), 1);
    }

    #[test]
    fn a_project_loosens_no_permission_mode() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        let text = "members:\n  - {name: a, prompt: p, mode: bypassPermissions, moed: plan}\n  - {name: b, prompt: p, mode: plan}\n";
        for (is_users, modes) in
            [(false, [None, Some(Mode::Plan)]), (true, [Some(Mode::BypassPermissions), Some(Mode::Plan)])]
        {
            let name = if is_users { "mine" } else { "theirs" };
            let path = place_of(&place, name, is_users).unwrap();
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            let (team, warnings) = find(&place, name, &TeamContext::default()).unwrap();
            assert_eq!([team.members[0].mode, team.members[1].mode], modes);
            assert!(warnings.iter().any(|words| words.get(Lang::En).contains("did you mean `mode`?")), "{warnings:?}");
            assert_eq!(
                warnings.iter().any(|words| words.get(Lang::En).contains("held back")),
                !is_users,
                "{warnings:?}"
            );
            // One of the user's own counts as far as the session goes.
            let is_told = |words: &Translated| {
                words.get(Lang::En).contains("no teammate is freer than the session, which is `default`")
            };
            assert_eq!(warnings.iter().any(is_told), is_users, "{warnings:?}");
            let free = TeamContext { mode: Mode::BypassPermissions, ..TeamContext::default() };
            assert!(!find(&place, name, &free).unwrap().1.iter().any(is_told));
        }
    }

    /// Once any word was a colour: a file of that time is one that begins.
    #[test]
    fn a_colour_of_former_times_is_told_of_and_one_that_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        let text = "members:\n  - {name: a, prompt: p, color: teal}\n  - {name: b, prompt: p, color: Green}\n";
        std::fs::write(place_of(&place, "x", false).unwrap(), text).unwrap();
        let (team, warnings) = find(&place, "x", &TeamContext::default()).unwrap();
        assert_eq!([&team.members[0].color, &team.members[1].color], [&None, &Some("green".into())]);
        let [words]: [Translated; 1] = warnings.try_into().unwrap();
        let words = words.get(Lang::En);
        assert!(words.contains("x.yaml:2") && words.contains("there is no colour `teal`; there are blue"), "{words}");
    }

    #[test]
    fn errors_say_where() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        // One look names all of it, each with its line.
        let text = "membres: []\nmembers:\n  - {name: a b, prompt: p, mode: fast}\n  - {name: max, prompt: p}\n  \
            - {name: c, type: wizard, auto_claim: perhaps, prompt: p}\n  - {name: c, prompt: q}\n  - 7\n  - {name: leo, prompt: p}\n";
        std::fs::write(place_of(&place, "x", false).unwrap(), text).unwrap();
        let here = TeamContext {
            lead: "max".into(),
            types: vec!["explore".into(), "general".into(), "leo".into()],
            mode: Mode::Default,
        };
        let found = list(&place, &here).remove(0).team.unwrap_err().get(Lang::En).to_owned();
        let lines: Vec<&str> = found.lines().map(|line| line.split_once("x.yaml:").unwrap().1).collect();
        let want = [
            "3:34: `mode` is one of default, acceptEdits, plan, auto, dontAsk, bypassPermissions",
            "3:5: `a b` is no name: use letters, digits, `-`, `_` and `.`",
            "4:5: `max` is no name: it is reserved",
            "5:21: there is no type `wizard`; there are `explore`, `general`, `leo`",
            "5:41: `auto_claim` is true or false",
            "6:5: `c` is in it twice",
            "7:5: a member is a map of names",
            "8:5: `leo` is called so already, and works here without being a teammate: choose another name",
            "1:1: there is no `membres` in a team, did you mean `members`?",
        ];
        assert_eq!(lines, want, "{found}");
        // Whoever lets them begin is told the same, and all of it in Chinese.
        let stop = find(&place, "x", &here).unwrap_err();
        assert_eq!(stop.message, found);
        let chinese = stop.words(Lang::Zh);
        assert_eq!(chinese.lines().count(), want.len());
        for (line, en) in chinese.lines().zip(want) {
            let (place, words) = en.split_once(": ").unwrap();
            assert!(line.contains(place) && !line.contains(words), "`{en}`: {line}");
        }
        for (text, words) in [
            ("members: []\n", "no members"),
            ("membres: []\n", "did you mean `members`?"),
            ("members:\n  - {name: a}\n", "`prompt` is missing"),
            ("members:\n  - {name: a b, prompt: p}\n", "is no name"),
            ("members:\n  - {name: a, prompt: p}\n  - {name: a, prompt: q}\n", "twice"),
            ("members:\n  - {name: a, prompt: p, mode: fast}\n", "`mode`"),
            ("members: 3\n", "a list"),
        ] {
            std::fs::write(place_of(&place, "x", false).unwrap(), text).unwrap();
            let stop = find(&place, "x", &TeamContext::default()).unwrap_err();
            assert!(stop.message.contains(words) && stop.message.contains("x.yaml:"), "{}", stop.message);
        }
        assert!(find(&place, "y", &TeamContext::default()).unwrap_err().message.contains("there are x"));
        for name in ["", ".x", "a b", "../x"] {
            assert!(place_of(&place, name, true).is_err(), "{name}");
        }
    }

    #[test]
    fn a_link_out_of_the_project_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        std::fs::write(folder.path().join("secret.yaml"), write(&team())).unwrap();
        std::os::unix::fs::symlink(folder.path().join("secret.yaml"), place_of(&place, "web", false).unwrap()).unwrap();
        assert!(find(&place, "web", &TeamContext::default()).unwrap_err().message.contains("a link that leads out"));
    }
}
