//! The folders of skills.
//!
//! A project's folders come first, then the user's, then the skills that come with the program. Folders are searched
//! down to a depth; a folder that is a skill is not searched further. A project's skill must lie in the project: a
//! link that leads out is not followed.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use max_team_tools::command::is_planted;

use super::catalogue::Broken;
use super::known::SkillCache;
use super::needs::Machine;
use super::pin::Pin;
use super::{DEPTH_MAX, FILE_BYTES_MAX, FOLDERS_MAX, Scope, Skill, contract, read};
use crate::front_matter::HEAD_BYTES_MAX;
use crate::parallel;

/// A skill's file in its folder.
const FILE: &str = "SKILL.md";
/// The file of a skill with a contract.
const CONTRACT: &str = "skill.yaml";
/// Folders of skills in a project, in the order of precedence.
const IN_PROJECT: [&str; 4] = ["skills", ".max-team/skills", ".agents/skills", ".claude/skills"];
/// Bytes of a file that are read for its front matter.
const FRONT_BYTES: usize = 4 << 10;
/// Files about a folder of skills, which are no skills themselves.
const PAGES: [&str; 5] = ["readme", "license", "changelog", "agents", "claude"];
/// Folders that are not searched.
const PASSED: [&str; 3] = ["node_modules", "target", "__pycache__"];

/// The user's approvals of skills in a project: each names the skill and its pin.
#[derive(Clone)]
pub struct Trust(Arc<Ask>);

type Ask = dyn Fn(&Path) -> Vec<String> + Send + Sync;

impl Trust {
    /// `read` returns the approvals for a project (see [`Trust::word`]).
    pub fn new(read: impl Fn(&Path) -> Vec<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// An approval as it is stored.
    pub fn word(name: &str, pin: &Pin) -> String {
        format!("skill {name} {pin}")
    }

    /// All approvals for this project.
    pub(super) fn of(&self, project: &Path) -> Vec<String> {
        (self.0)(project)
    }
}

impl Default for Trust {
    /// Nothing is trusted.
    fn default() -> Self {
        Self::new(|_| Vec::new())
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trust")
    }
}

/// The skills that are turned off in a project, by name. They are read each time, so that a change counts at once.
#[derive(Clone)]
pub struct Disabled(Arc<Ask>);

impl Disabled {
    /// `read` returns the names for a project.
    pub fn new(read: impl Fn(&Path) -> Vec<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    pub(super) fn of(&self, project: &Path) -> Vec<String> {
        (self.0)(project)
    }
}

impl Default for Disabled {
    /// None is turned off.
    fn default() -> Self {
        Self::new(|_| Vec::new())
    }
}

impl fmt::Debug for Disabled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Disabled")
    }
}

/// Where to search for skills, and what decides whether they can be used. By default nowhere.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// Whether the project's folders are searched.
    pub project: bool,
    /// The user's folders, in the order of precedence.
    pub user: Vec<PathBuf>,
    /// Whether the skills that come with this program are included.
    pub builtin: bool,
    /// The programs and variables of the machine.
    pub machine: Machine,
    /// Says which skills of a project the user trusts.
    pub trust: Trust,
    /// The skills that are turned off.
    pub disabled: Disabled,
    /// The cache file of earlier reads; `None`: everything is read at each start.
    pub index: Option<PathBuf>,
}

/// What was found in the folders.
#[derive(Debug, Default)]
pub(super) struct DiscoveredSkills {
    /// In the order of precedence.
    pub skills: Vec<Skill>,
    pub broken: Vec<Broken>,
    /// Files beside skills that are no skills.
    pub skipped: Vec<Broken>,
}

impl Places {
    /// Looks for skills of a project, and those of the user.
    pub(super) fn find(&self, root: &Path, known: &SkillCache) -> DiscoveredSkills {
        let mut search = Search::default();
        if self.project {
            let top = top(root);
            search.within = Some(top.canonicalize().unwrap_or_else(|_| top.clone()));
            for folder in root.ancestors().take_while(|folder| folder.starts_with(&top)) {
                IN_PROJECT.iter().for_each(|place| search.place(&folder.join(place), Scope::Project));
            }
        }
        search.within = None;
        self.user.iter().for_each(|place| search.place(place, Scope::User));
        let mut found = DiscoveredSkills { skills: Vec::new(), broken: search.broken, skipped: search.skipped };
        for (file, is_alone, read) in parallel::each(search.wanted, |wanted| wanted.read(known)) {
            match read {
                Ok(skill) => found.skills.push(skill),
                // A YAML file beside the skills may belong to another program, so it is not reported as a broken
                // skill.
                Err(_) if is_alone && file.extension().is_some_and(|ending| ending != "md") => {}
                Err(why) => found.broken.push(Broken { file, why }),
            }
        }
        found
    }
}

/// The nearest folder at or above `root` that holds `.git`: files above a project do not count for it.
fn top(root: &Path) -> PathBuf {
    root.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(root).to_path_buf()
}

#[derive(Default)]
struct Search {
    /// In the order of precedence.
    wanted: Vec<SkillFile>,
    broken: Vec<Broken>,
    skipped: Vec<Broken>,
    /// The folder that a project's files must lie in.
    within: Option<PathBuf>,
    /// How many folders may still be searched.
    left: usize,
}

/// A file that is to be read.
struct SkillFile {
    file: PathBuf,
    called: String,
    scope: Scope,
    /// The skill's own folder, if it has one.
    folder: Option<PathBuf>,
}

impl SkillFile {
    fn read(self, known: &SkillCache) -> (PathBuf, bool, Result<Skill, String>) {
        let Self { file, called, scope, folder } = self;
        let is_alone = folder.is_none();
        let read = known.read(&file, scope, || parse(&file, &called, scope)).map(|mut skill| {
            if is_alone && skill.contract.is_none() {
                skill.warnings.push(format!("a folder `{called}/{FILE}` is what other programs look for"));
            }
            Skill { folder: folder.or(skill.folder.take()), ..skill }
        });
        (file, is_alone, read)
    }
}

impl Search {
    fn place(&mut self, place: &Path, scope: Scope) {
        self.left = FOLDERS_MAX;
        self.folder(place, scope, 0);
        if self.left == 0 {
            let why = format!("more than {FOLDERS_MAX} folders; the rest was not looked into");
            self.broken.push(Broken { file: place.to_path_buf(), why });
        }
    }

    fn folder(&mut self, folder: &Path, scope: Scope, depth: usize) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        let mut entries: Vec<(PathBuf, bool)> = entries
            .flatten()
            .filter_map(|entry| {
                let (path, kind) = (entry.path(), entry.file_type().ok()?);
                let is_dir = kind.is_dir() || (kind.is_symlink() && path.is_dir());
                Some((path, is_dir))
            })
            .collect();
        entries.sort();
        for (path, is_dir) in entries {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with('.') || PASSED.contains(&name.as_str()) {
                continue;
            }
            match (is_dir, path.extension().and_then(|ending| ending.to_str())) {
                (true, _) => self.below(&path, &name, scope, depth),
                (false, Some("md")) if depth == 0 => self.flat(&path, scope),
                (false, Some("yaml" | "yml")) if depth == 0 => self.take(&path, None, scope),
                _ => {}
            }
        }
    }

    fn below(&mut self, folder: &Path, name: &str, scope: Scope, depth: usize) {
        if !self.lies_within(folder) {
            let why = "it is a link that leads out of the project".to_owned();
            self.broken.push(Broken { file: folder.to_path_buf(), why });
            return;
        }
        for file in [FILE, CONTRACT] {
            // Not `exists`: a dangling or unreadable link must be reported.
            if folder.join(file).symlink_metadata().is_ok() {
                self.take(&folder.join(file), Some((folder, name)), scope);
                return;
            }
        }
        if depth + 1 < DEPTH_MAX {
            self.folder(folder, scope, depth + 1);
        }
    }

    /// A file that may be a skill by itself; one without front matter is some other text.
    fn flat(&mut self, file: &Path, scope: Scope) {
        let front = front(file, FRONT_BYTES);
        if front.is_ok_and(|bytes| bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes).starts_with(b"---")) {
            self.take(file, None, scope);
        } else if !is_page(file) {
            let why = "it has no front matter (`---` lines with `name` and `description`)".to_owned();
            self.skipped.push(Broken { file: file.to_path_buf(), why });
        }
    }

    fn take(&mut self, file: &Path, own: Option<(&Path, &str)>, scope: Scope) {
        let called = match own {
            Some((_, name)) => name.to_owned(),
            None => file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        };
        let folder = own.map(|(folder, _)| folder.to_path_buf());
        if scope == Scope::Project && (is_planted(file) || folder.as_deref().is_some_and(is_planted)) {
            let why = "it appeared while a command runs, without the user's approval".to_owned();
            self.broken.push(Broken { file: file.to_path_buf(), why });
        } else if self.stays(file, folder.as_deref()) {
            self.wanted.push(SkillFile { file: file.to_path_buf(), called, scope, folder });
        } else if folder.is_some() || file.extension().is_some_and(|ending| ending == "md") {
            let why = "it is a link that leads out of its folder".to_owned();
            self.broken.push(Broken { file: file.to_path_buf(), why });
        }
    }

    fn lies_within(&self, path: &Path) -> bool {
        let Some(within) = &self.within else { return true };
        path.canonicalize().is_ok_and(|real| real.starts_with(within))
    }

    /// Whether a project's file lies where its path says; the user's own may be links.
    fn stays(&self, file: &Path, folder: Option<&Path>) -> bool {
        if self.within.is_none() {
            return true;
        }
        let real = file.canonicalize().ok();
        let home = folder.unwrap_or_else(|| file.parent().unwrap_or(file)).canonicalize().ok();
        real.zip(home).is_some_and(|(real, home)| real.starts_with(home)) && self.lies_within(file)
    }
}

/// Whether a file describes the folder itself.
fn is_page(file: &Path) -> bool {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
    PAGES.contains(&stem.as_str())
}

fn parse(file: &Path, called: &str, scope: Scope) -> Result<Skill, String> {
    let failed = |error: std::io::Error| format!("it cannot be read: {error}");
    if file.extension().is_some_and(|ending| ending == "md") {
        let mut bytes = front(file, FRONT_BYTES).map_err(failed)?;
        let text = String::from_utf8_lossy(&bytes);
        let is_whole = crate::front_matter::cut(&text).head.is_some() || bytes.len() < FRONT_BYTES;
        if !is_whole {
            bytes = front(file, HEAD_BYTES_MAX + 64).map_err(failed)?;
        }
        return made_of(&bytes, file, called, scope);
    }
    made_of(&whole(file)?, file, called, scope)
}

/// The skill in a file with these bytes.
pub(super) fn made_of(bytes: &[u8], file: &Path, called: &str, scope: Scope) -> Result<Skill, String> {
    match file.extension().is_some_and(|ending| ending == "md") {
        true => read::read(bytes, file, called, scope),
        false => contract::read(bytes, file, called, scope),
    }
}

/// The whole file of a skill.
pub(super) fn whole(file: &Path) -> Result<Vec<u8>, String> {
    bounded(front(file, FILE_BYTES_MAX + 1).map_err(|error| format!("it cannot be read: {error}"))?)
}

/// Passes the bytes on, unless they exceed the size of a skill's file.
pub(super) fn bounded(bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    if bytes.len() > FILE_BYTES_MAX {
        return Err(format!("it has more than {} KiB; put the rest into files beside it", FILE_BYTES_MAX >> 10));
    }
    Ok(bytes)
}

fn front(file: &Path, bytes_max: usize) -> std::io::Result<Vec<u8>> {
    // Opening a pipe must not block.
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let opened = File::options().read(true).custom_flags(i32::try_from(flags.bits()).unwrap_or_default()).open(file)?;
    if !opened.metadata()?.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    opened.take(bytes_max as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
