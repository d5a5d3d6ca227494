//! All definitions in folders, the strongest first, and which one counts if several have the same name.
//!
//! Where to look, in this order: the machine's folder, what `--agents` brings, the project's folders from the current
//! directory up to the repository's root, the user's folders, and the built-in ones. The first definition of a name
//! counts; the others are kept to be listed as shadowed. [`FoundDefinitions::refresh`] looks again; it is cheap if nothing has
//! changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use max_team_core::agent::Definition;
use max_team_core::memory::EXPERT;

use super::agent_file::{self, AgentFile};
use super::definition_dir::{DefinitionDir, DefinitionFile, Scope};
use crate::config::yaml::{Name, Node};
use crate::config::{ConfigFile, Env, FileTrust};
use crate::i18n::Translated;
use crate::setup::AppEnv;

/// Where the machine's own definitions are.
const MANAGED: &str = "/etc/max-team/agents";
/// Folders between where we stand and the repository's root.
const ABOVE_MAX: usize = 32;

/// What comes with the program.
const BUILTIN: [(&str, &str); 9] = [
    ("earthquake", include_str!("../../../../agents/earthquake.md")),
    ("explore", include_str!("../../../../agents/explore.md")),
    ("general", include_str!("../../../../agents/general.md")),
    ("hotel", include_str!("../../../../agents/hotel.md")),
    (EXPERT, include_str!("../../../../agents/memory.md")),
    ("narrator", include_str!("../../../../agents/narrator.md")),
    ("plan", include_str!("../../../../agents/plan.md")),
    ("train", include_str!("../../../../agents/train.md")),
    ("weather", include_str!("../../../../agents/weather.md")),
];

/// What a definition was given as, and what it became.
type ReadDefinition = (String, Result<AgentFile, Translated>);

/// All that was found.
#[derive(Debug)]
pub struct FoundDefinitions {
    env: Env,
    shelves: Vec<DefinitionDir>,
    /// Of `--agents`, with what it was given as.
    given: Vec<ReadDefinition>,
    builtin: Vec<ReadDefinition>,
}

/// One definition among all.
#[derive(Debug, Clone, Copy)]
pub struct DefinitionEntry<'a> {
    pub(super) card: &'a AgentFile,
    pub scope: Scope,
    pub shown: &'a str,
}

impl DefinitionEntry<'_> {
    pub fn name(&self) -> &str {
        &self.card.member.definition.name
    }

    /// Who answers for it.
    pub(super) fn standing(&self) -> FileTrust {
        if self.scope == Scope::Project { FileTrust::Project } else { FileTrust::Trusted }
    }

    /// `file:line`.
    pub fn place(&self) -> String {
        format!("{}:{}", self.shown, self.card.line)
    }
}

/// A definition that counts, and those of its name that do not.
#[derive(Debug)]
pub struct RankedDefinition<'a> {
    pub entry: DefinitionEntry<'a>,
    pub shadows: Vec<DefinitionEntry<'a>>,
}

impl<'a> RankedDefinition<'a> {
    /// The one that comes with the program, whose place it has taken.
    pub(super) fn built_in(&self) -> Option<&DefinitionEntry<'a>> {
        self.shadows.iter().find(|shadow| shadow.scope == Scope::Builtin)
    }
}

impl FoundDefinitions {
    /// Reads the definitions of all folders.
    pub fn read(place: &AppEnv, given: Option<&FlagDefinitions>) -> Self {
        let mut roster = Self {
            env: place.env.clone(),
            shelves: shelves(place),
            given: given.map(|given| given.cards(&place.env)).unwrap_or_default(),
            builtin: builtin(&place.env),
        };
        roster.refresh();
        roster
    }

    /// Looks again at everything that may have changed. Says whether it has.
    pub fn refresh(&mut self) -> bool {
        // `|` and not `||`: every folder is refreshed, also after one has changed.
        self.shelves.iter_mut().fold(false, |changed, shelf| shelf.refresh(&self.env) | changed)
    }

    /// All definitions, the strongest first.
    fn all(&self) -> impl Iterator<Item = DefinitionEntry<'_>> {
        let on = |wanted: fn(Scope) -> bool| {
            let shelves = self.shelves.iter().filter(move |shelf| wanted(shelf.scope));
            shelves.flat_map(|shelf| {
                shelf.leaves.iter().filter_map(|leaf| {
                    Some(DefinitionEntry { card: leaf.card()?, scope: shelf.scope, shown: &leaf.shown })
                })
            })
        };
        on(|scope| scope == Scope::Managed)
            .chain(entries(&self.given, Scope::Flag))
            .chain(on(|scope| scope > Scope::Flag))
            .chain(entries(&self.builtin, Scope::Builtin))
    }

    /// Those that count, by name.
    pub fn ranked(&self) -> Vec<RankedDefinition<'_>> {
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        let mut ranked: Vec<RankedDefinition<'_>> = Vec::new();
        for entry in self.all() {
            let name = entry.card.member.definition.name.as_str();
            let at = *places.entry(name).or_insert(ranked.len());
            match ranked.get_mut(at) {
                Some(first) => first.shadows.push(entry),
                None => ranked.push(RankedDefinition { entry, shadows: Vec::new() }),
            }
        }
        ranked.sort_by(|one, other| one.entry.name().cmp(other.entry.name()));
        ranked
    }

    /// Files that are not used, each with the reason.
    pub fn broken(&self) -> impl Iterator<Item = &Translated> {
        let leaves = self.shelves.iter().flat_map(|shelf| &shelf.leaves).filter_map(DefinitionFile::fault);
        let given = self.given.iter().filter_map(|(_, card)| card.as_ref().err());
        leaves.chain(given)
    }

    /// Folders that were not looked at to their end, each with the reason.
    pub fn over(&self) -> impl Iterator<Item = &Translated> {
        self.shelves.iter().filter_map(|shelf| shelf.over.as_ref())
    }

    /// What is odd about those that are used.
    pub fn odd(&self) -> impl Iterator<Item = &Translated> {
        self.all().flat_map(|entry| &entry.card.warnings)
    }
}

fn entries(cards: &[ReadDefinition], scope: Scope) -> impl Iterator<Item = DefinitionEntry<'_>> {
    cards.iter().filter_map(move |(shown, card)| Some(DefinitionEntry { card: card.as_ref().ok()?, scope, shown }))
}

/// The expert in charge of the memory: the user's own, or the built-in one. A project's file cannot take its place.
pub fn memory_keeper(place: &AppEnv) -> Option<Definition> {
    let roster = FoundDefinitions::read(place, None);
    let mut all = roster.all().filter(|entry| entry.name() == EXPERT && entry.standing() == FileTrust::Trusted);
    all.next().map(|entry| entry.card.member.definition.clone())
}

fn builtin(env: &Env) -> Vec<ReadDefinition> {
    let read = |(name, text): (&str, &str)| {
        let shown = format!("built-in/{name}.md");
        let file =
            ConfigFile { path: shown.clone().into(), shown: shown.clone(), standing: FileTrust::Trusted, named: false };
        let card = agent_file::read(text.as_bytes(), &file, env).transpose();
        let mut card = card.unwrap_or_else(|| Err(Translated::new(|lang| lang.file_is_empty().to_owned())));
        if let Ok(card) = &mut card {
            card.member.definition.builtin = true;
        }
        (shown, card)
    };
    BUILTIN.into_iter().map(read).collect()
}

/// Where to look, the strongest first.
fn shelves(place: &AppEnv) -> Vec<DefinitionDir> {
    let home = place.env.user();
    let shown = |path: &Path| shown(path, &place.cwd, home.as_deref());
    let mut all: Vec<(PathBuf, FileTrust, Scope)> = vec![(MANAGED.into(), FileTrust::Trusted, Scope::Managed)];
    let theirs = home.as_ref().map(|home| home.join(".claude/agents"));
    let desktop = place.env.xdg_config().map(|folder| folder.join("max-team/agents"));
    let own: Vec<PathBuf> = [Some(place.home.join("agents")), desktop, theirs]
        .into_iter()
        .flatten()
        .map(|path| place.cwd.join(path))
        .collect();
    let mut project = vec![(place.cwd.join("agents"), FileTrust::Shared)];
    let above = above(&place.cwd);
    for name in [".max-team/agents", ".claude/agents"] {
        project.extend(above.iter().map(|folder| (folder.join(name), FileTrust::Project)));
    }
    // A project in the user's own folder would find the user's files twice.
    project.retain(|(path, _)| !own.contains(path));
    all.extend(project.into_iter().map(|(path, standing)| (path, standing, Scope::Project)));
    all.extend(own.into_iter().map(|path| (path, FileTrust::Trusted, Scope::User)));
    let root = above.last().copied().unwrap_or(&place.cwd);
    let shelf = |(path, standing, scope): (PathBuf, FileTrust, Scope)| {
        let shelf = DefinitionDir::new(path.clone(), shown(&path), standing, scope);
        if standing == FileTrust::Trusted { shelf } else { shelf.within(root) }
    };
    all.into_iter().map(shelf).collect()
}

/// From where we stand up to the repository's root; without a repository only where we stand.
fn above(cwd: &Path) -> Vec<&Path> {
    let folders: Vec<&Path> = cwd.ancestors().take(ABOVE_MAX).collect();
    let root = folders.iter().position(|folder| folder.join(".git").exists()).unwrap_or(0);
    folders.into_iter().take(root + 1).collect()
}

/// A path as short as it can be said.
fn shown(path: &Path, cwd: &Path, home: Option<&Path>) -> String {
    if let Ok(below) = path.strip_prefix(cwd) {
        return below.display().to_string();
    }
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}

/// Definitions of `--agents`, not of a file that defines the team.
#[derive(Debug)]
pub enum FlagDefinitions {
    /// A map from names to definitions.
    Map { file: ConfigFile, entries: Vec<(Name, Node)> },
    /// One file of Markdown.
    Markdown { file: ConfigFile, bytes: Vec<u8> },
}

impl FlagDefinitions {
    fn cards(&self, env: &Env) -> Vec<ReadDefinition> {
        match self {
            Self::Markdown { file, bytes } => {
                let card = agent_file::read(bytes, file, env).transpose();
                card.map(|card| (file.shown.clone(), card)).into_iter().collect()
            }
            Self::Map { file, entries } => entries
                .iter()
                .map(|(name, node)| {
                    let card = agent_file::card(Some(node), String::new(), &name.text, file, env);
                    (file.shown.clone(), card.map(|card| AgentFile { line: name.spot.line, ..card }))
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    struct Fixture {
        folder: TempDir,
        place: AppEnv,
    }

    impl Fixture {
        fn new(files: &[(&str, &str)]) -> Self {
            let folder = TempDir::new().unwrap();
            let root = folder.path().canonicalize().unwrap();
            let (home, cwd) = (root.join("user"), root.join("repo"));
            fs::create_dir_all(cwd.join(".git")).unwrap();
            let env: Env = [("HOME", home.to_str().unwrap())].into_iter().collect();
            let fixture =
                Self { folder, place: AppEnv { env, home: home.join(".max-team"), cwd, wished: None, notice: |_| {} } };
            files.iter().for_each(|(name, text)| fixture.write(name, text));
            fixture
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().canonicalize().unwrap().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn roster(&self) -> FoundDefinitions {
            FoundDefinitions::read(&self.place, None)
        }
    }

    fn english<'a>(words: impl Iterator<Item = &'a Translated>) -> Vec<&'a str> {
        words.map(|words| words.get(crate::i18n::Lang::En)).collect()
    }

    fn agent(name: &str, description: &str) -> String {
        format!("---\nname: {name}\ndescription: {description}\n---\nYou are {name}.\n")
    }

    fn described(roster: &FoundDefinitions, name: &str) -> Option<String> {
        let ranked = roster.ranked();
        let found = ranked.iter().find(|ranked| ranked.entry.name() == name)?;
        Some(found.entry.card.member.definition.description.clone())
    }

    #[test]
    fn the_nearest_counts_and_the_rest_is_remembered() {
        let places = [
            "repo/agents/x.md",
            "repo/.max-team/agents/a/b/x.md",
            "repo/.claude/agents/x.md",
            "user/.max-team/agents/x.md",
            "user/.config/max-team/agents/x.md",
            "user/.claude/agents/x.md",
        ];
        let text = agent("x", "one");
        let fixture = Fixture::new(&places.map(|place| (place, text.as_str())));
        let roster = fixture.roster();
        for (at, place) in places.iter().enumerate() {
            let mut roster = fixture.roster();
            let ranked = roster.ranked();
            let x = ranked.iter().find(|ranked| ranked.entry.name() == "x").unwrap();
            let file = place.strip_prefix("repo/").map_or_else(|| place.replacen("user", "~", 1), str::to_owned);
            assert_eq!((x.entry.shown, x.shadows.len()), (file.as_str(), places.len() - at - 1));
            fs::remove_file(fixture.path(place)).unwrap();
            assert!(roster.refresh());
        }
        assert!(described(&roster, "explore").is_some());
    }

    #[test]
    fn changes_are_seen_when_asked_for_and_only_then() {
        let fixture = Fixture::new(&[("repo/.claude/agents/x.md", &agent("x", "one"))]);
        let mut roster = fixture.roster();
        assert!(!roster.refresh());
        // The same length, at the same place.
        fixture.write("repo/.claude/agents/x.md", &agent("x", "two"));
        assert_eq!(described(&roster, "x").unwrap(), "one");
        assert!(roster.refresh() && !roster.refresh());
        assert_eq!(described(&roster, "x").unwrap(), "two");
        // A folder that was not there, one that is new, and a file that goes.
        fixture.write("user/.max-team/agents/y.md", &agent("y", "new"));
        fixture.write("repo/.claude/agents/deep/z.md", &agent("z", "new"));
        assert!(roster.refresh());
        assert!(described(&roster, "y").is_some() && described(&roster, "z").is_some());
        fs::remove_file(fixture.path("repo/.claude/agents/x.md")).unwrap();
        assert!(roster.refresh() && !roster.refresh());
        assert!(described(&roster, "x").is_none());
        // What breaks is told, counts as it last was, and keeps nobody else away; whoever looks for the first time finds none.
        fixture.write("repo/.claude/agents/deep/z.md", "---\nname: z\nname: z\n---\n");
        assert!(roster.refresh() && !roster.refresh());
        assert_eq!((described(&roster, "z").as_deref(), described(&fixture.roster(), "z")), (Some("new"), None));
        fixture.write("repo/.claude/agents/deep/z.md", "---\nname: z\nname: zz\n---\n");
        assert!(roster.refresh() && described(&roster, "z").is_some(), "also if it breaks twice");
        assert_eq!(english(roster.broken()), [".claude/agents/deep/z.md:3: the key `name` is written twice"]);
        fixture.write("repo/.claude/agents/deep/z.md", &agent("z", "mended"));
        assert!(roster.refresh() && roster.broken().next().is_none());
        assert_eq!(described(&roster, "z").unwrap(), "mended");
    }

    #[test]
    fn links_lead_nowhere_a_stranger_could_choose() {
        let fixture = Fixture::new(&[
            ("repo/.claude/agents/sub/real.md", &agent("real", "r")),
            ("elsewhere/secret.md", &agent("secret", "s")),
            ("user/.claude/agents/own.md", &agent("own", "o")),
        ]);
        symlink("sub/real.md", fixture.path("repo/.claude/agents/inside.md")).unwrap();
        symlink(fixture.path("elsewhere/secret.md"), fixture.path("repo/.claude/agents/outside.md")).unwrap();
        symlink(fixture.path("elsewhere"), fixture.path("repo/.claude/agents/folder")).unwrap();
        symlink("/dev/zero", fixture.path("repo/.claude/agents/zero.md")).unwrap();
        symlink("loop.md", fixture.path("repo/.claude/agents/loop.md")).unwrap();
        let roster = fixture.roster();
        assert!(described(&roster, "real").is_some() && described(&roster, "secret").is_none());
        let broken = english(roster.broken());
        assert!(broken.contains(&".claude/agents/outside.md: it is a link that leads out of its folder"), "{broken:?}");
        assert_eq!(broken.len(), 3, "{broken:?}");
        // The user may keep theirs wherever they like.
        symlink(fixture.path("elsewhere/secret.md"), fixture.path("user/.claude/agents/linked.md")).unwrap();
        assert!(described(&fixture.roster(), "secret").is_some());
    }

    #[test]
    fn a_folder_that_leads_elsewhere_is_not_searched() {
        // The link, where it leads, and what is then not searched.
        let table = [
            (".claude/agents", "../../elsewhere", ".claude/agents"),
            (".claude", "../elsewhere", ".claude/agents"),
            (".max-team/agents", "../src/notes", ".max-team/agents"),
            ("agents", "../elsewhere", "agents"),
        ];
        for (link, to, told) in table {
            let fixture = Fixture::new(&[
                ("elsewhere/secret.md", &agent("secret", "s")),
                ("elsewhere/agents/secret.md", &agent("secret", "s")),
                ("repo/src/notes/secret.md", &agent("secret", "s")),
            ]);
            let link = fixture.path("repo").join(link);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(to, &link).unwrap();
            let mut roster = fixture.roster();
            assert!(described(&roster, "secret").is_none(), "{link:?}");
            let told = format!("{told}: a link leads out of it, so nothing in it is used");
            assert_eq!(english(roster.over()), [told]);
            assert!(!roster.refresh());
            // A folder in its place is one like any other.
            fs::remove_file(&link).unwrap();
            let below = if link.ends_with(".claude") { "agents/x.md" } else { "x.md" };
            fs::create_dir_all(link.join(below).parent().unwrap()).unwrap();
            fs::write(link.join(below), agent("x", "mended")).unwrap();
            assert!(roster.refresh() && roster.over().next().is_none());
            assert_eq!(described(&roster, "x").unwrap(), "mended");
        }
        // The user may keep theirs wherever they like.
        let fixture = Fixture::new(&[("elsewhere/own.md", &agent("own", "o")), ("user/.claude/x", "")]);
        symlink("../../elsewhere", fixture.path("user/.claude/agents")).unwrap();
        assert!(described(&fixture.roster(), "own").is_some());
    }

    #[test]
    fn a_pipe_does_not_block_discovery() {
        let fixture = Fixture::new(&[("repo/.claude/agents/x.md", &agent("x", "one"))]);
        let pipe = fixture.path("repo/.claude/agents/pipe.md");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let roster = fixture.roster();
        assert_eq!(english(roster.broken()), [".claude/agents/pipe.md: it is no file"]);
        assert!(described(&roster, "x").is_some());
    }

    #[test]
    fn a_folder_of_another_program_is_not_searched() {
        let fixture = Fixture::new(&[
            ("repo/agents/deep/x.md", &agent("x", "x")),
            ("repo/agents/doc.md", "# A page\n"),
            ("repo/.claude/agents/.hidden.md", &agent("hidden", "h")),
            ("repo/.claude/agents/1/2/3/4/5/in.md", &agent("in", "i")),
            ("repo/.claude/agents/1/2/3/4/5/6/out.md", &agent("out", "o")),
        ]);
        let roster = fixture.roster();
        let names: Vec<String> = roster.ranked().iter().map(|ranked| ranked.entry.name().to_owned()).collect();
        let want =
            ["earthquake", "explore", "general", "hotel", "in", "memory", "narrator", "plan", "train", "weather"];
        assert_eq!(names, want);
    }
}
