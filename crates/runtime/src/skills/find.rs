//! Where skills lie.
//!
//! A project's folders come first, then the user's, then what came with the program. Below each, folders are looked into
//! down to a depth; one that is a skill is not looked into further. What came with a project must lie in it: a link
//! that leads out is not followed.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use max_team_tools::command::is_planted;

use super::catalogue::Broken;
use super::known::Known;
use super::needs::Machine;
use super::pin::Pin;
use super::{DEPTH_MAX, FILE_BYTES_MAX, FOLDERS_MAX, Scope, Skill, contract, read};
use crate::front_matter::HEAD_BYTES_MAX;
use crate::many;

/// A skill's file in its folder.
const FILE: &str = "SKILL.md";
/// The same for one with a contract.
const CONTRACT: &str = "skill.yaml";
/// Where a project keeps skills, in the order of precedence.
const IN_PROJECT: [&str; 4] = ["skills", ".max-team/skills", ".agents/skills", ".claude/skills"];
/// Bytes of a file that are read to know what it is for.
const FRONT_BYTES: usize = 4 << 10;
/// Files about a folder of skills, which are no skills themselves.
const PAGES: [&str; 5] = ["readme", "license", "changelog", "agents", "claude"];
/// Folders that hold no skills.
const PASSED: [&str; 3] = ["node_modules", "target", "__pycache__"];

/// Whether the user trusts what a project's folder holds: the project, the skill's name, and the pin.
#[derive(Clone)]
pub struct Trust(Arc<Ask>);

type Ask = dyn Fn(&Path) -> Vec<String> + Send + Sync;

impl Trust {
    /// What is trusted is read from somewhere: for a project, the words of each yes (see [`Trust::word`]).
    pub fn new(read: impl Fn(&Path) -> Vec<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// A yes, written down.
    pub fn word(name: &str, pin: &Pin) -> String {
        format!("skill {name} {pin}")
    }

    /// Every yes to what this project brings.
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

/// The skills that are turned off in a project, by name. They are read anew each time, so that a change counts at once.
#[derive(Clone)]
pub struct Disabled(Arc<Ask>);

impl Disabled {
    /// The names are read from somewhere.
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

/// Where to look, and what there is to be held against. By default nowhere.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// Whether the project's folders are looked into.
    pub project: bool,
    /// The user's folders, in the order of precedence.
    pub user: Vec<PathBuf>,
    /// Whether the ones that come with this program are there.
    pub builtin: bool,
    /// What the machine has.
    pub machine: Machine,
    /// Whom to ask about a project's skills.
    pub trust: Trust,
    /// The skills that are turned off.
    pub disabled: Disabled,
    /// The file in which it is kept what was read before; none: everything is read at each start.
    pub index: Option<PathBuf>,
}

/// What was found in the folders.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// In the order of precedence.
    pub skills: Vec<Skill>,
    pub broken: Vec<Broken>,
    /// Texts beside skills that are none.
    pub skipped: Vec<Broken>,
}

impl Places {
    /// Looks for skills of a project, and those of the user.
    pub(super) fn find(&self, root: &Path, known: &Known) -> Found {
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
        let mut found = Found { skills: Vec::new(), broken: search.broken, skipped: search.skipped };
        for (file, is_alone, read) in many::each(search.wanted, |wanted| wanted.read(known)) {
            match read {
                Ok(skill) => found.skills.push(skill),
                // A settings file that happens to lie there is nobody's mistake.
                Err(_) if is_alone && file.extension().is_some_and(|ending| ending != "md") => {}
                Err(why) => found.broken.push(Broken { file, why }),
            }
        }
        found
    }
}

/// The nearest folder at or above that holds `.git`: nothing above a project speaks for it.
fn top(root: &Path) -> PathBuf {
    root.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(root).to_path_buf()
}

#[derive(Default)]
struct Search {
    /// In the order of precedence.
    wanted: Vec<Wanted>,
    broken: Vec<Broken>,
    skipped: Vec<Broken>,
    /// What a project's files must lie in.
    within: Option<PathBuf>,
    /// Folders that may still be looked into.
    left: usize,
}

/// A file that is to be read.
struct Wanted {
    file: PathBuf,
    called: String,
    scope: Scope,
    /// The folder that is all its own.
    folder: Option<PathBuf>,
}

impl Wanted {
    fn read(self, known: &Known) -> (PathBuf, bool, Result<Skill, String>) {
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
            // Not `exists`: a link that leads nowhere, or to where nobody may look, is to be told.
            if folder.join(file).symlink_metadata().is_ok() {
                self.take(&folder.join(file), Some((folder, name)), scope);
                return;
            }
        }
        if depth + 1 < DEPTH_MAX {
            self.folder(folder, scope, depth + 1);
        }
    }

    /// A file that may be a skill by itself; one without a front is some other text.
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
            self.wanted.push(Wanted { file: file.to_path_buf(), called, scope, folder });
        } else if folder.is_some() || file.extension().is_some_and(|ending| ending == "md") {
            let why = "it is a link that leads out of its folder".to_owned();
            self.broken.push(Broken { file: file.to_path_buf(), why });
        }
    }

    fn lies_within(&self, path: &Path) -> bool {
        let Some(within) = &self.within else { return true };
        path.canonicalize().is_ok_and(|real| real.starts_with(within))
    }

    /// Whether a project's file is where it says: the user's own may be links.
    fn stays(&self, file: &Path, folder: Option<&Path>) -> bool {
        if self.within.is_none() {
            return true;
        }
        let real = file.canonicalize().ok();
        let home = folder.unwrap_or_else(|| file.parent().unwrap_or(file)).canonicalize().ok();
        real.zip(home).is_some_and(|(real, home)| real.starts_with(home)) && self.lies_within(file)
    }
}

/// Whether a text is about the folder itself.
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

/// What a file is that holds these bytes.
pub(super) fn made_of(bytes: &[u8], file: &Path, called: &str, scope: Scope) -> Result<Skill, String> {
    match file.extension().is_some_and(|ending| ending == "md") {
        true => read::read(bytes, file, called, scope),
        false => contract::read(bytes, file, called, scope),
    }
}

/// All of a skill's file.
pub(super) fn whole(file: &Path) -> Result<Vec<u8>, String> {
    bounded(front(file, FILE_BYTES_MAX + 1).map_err(|error| format!("it cannot be read: {error}"))?)
}

/// The same bytes, if a skill's file may have so many.
pub(super) fn bounded(bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    if bytes.len() > FILE_BYTES_MAX {
        return Err(format!("it has more than {} KiB; put the rest into files beside it", FILE_BYTES_MAX >> 10));
    }
    Ok(bytes)
}

fn front(file: &Path, bytes_max: usize) -> std::io::Result<Vec<u8>> {
    // A pipe must not keep us waiting for its other end.
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let opened = File::options().read(true).custom_flags(i32::try_from(flags.bits()).unwrap_or_default()).open(file)?;
    if !opened.metadata()?.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    opened.take(bytes_max as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
