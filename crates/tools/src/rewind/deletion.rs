//! What a command line deletes where no scan watches: measured before a person is asked, and kept before the command runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use max_team_core::limits::{DELETION_COUNTED_MAX, DELETION_KEPT_FILES_MAX, REWIND_FILE_BYTES_MAX};
use max_team_core::policy::{
    CommandLine, DeletedPath, Deletion, DeletionTarget, deletion_targets, is_build_folder, is_dependency_folder,
};
use max_team_core::rewind::{FileChange, FileState};
use tokio_util::sync::CancellationToken;

use super::TrackedTrees;
use crate::files::IgnoreRules;
use crate::git::repo::Repo;
use crate::shell::matching_names;
use crate::tool::ToolContext;

const GIT: &str = ".git";
const OBJECTS: &str = "objects";
/// Where git keeps the names of commits, also of earlier ones and of stashes, and what is staged.
const REFERENCES: [&str; 6] = ["HEAD", "ORIG_HEAD", "index", "packed-refs", "refs", "logs"];
/// Folders of which an approved command changes nothing real: in the sandbox they are the command's own.
const OWN_OF_SANDBOX: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// Bytes of a part with a file whose name cannot be recorded: no bound admits it.
const UNKEEPABLE: u64 = u64::MAX;

/// The parts of a deletion that no scan watches.
#[derive(Debug, Default)]
pub struct DeletionSurvey {
    parts: Vec<DeletedPart>,
    /// Whether the line deletes more that was not measured.
    unmeasured: bool,
}

#[derive(Debug)]
struct DeletedPart {
    /// Its path for people.
    name: String,
    /// The folder that its files are restored in.
    root: PathBuf,
    /// Paths from there; of too many, the first.
    files: BTreeSet<String>,
    count: usize,
    bytes: u64,
}

/// The files of one folder that were kept, as changes to nothing.
pub type KeptFiles = (PathBuf, Vec<FileChange>);

impl DeletionSurvey {
    /// Measures what a line deletes. Blocking.
    pub fn of(cx: &ToolContext, line: &CommandLine) -> Self {
        let targets = deletion_targets(line);
        let Some(project) = cx.root.path().canonicalize().ok().filter(|_| !targets.is_empty()) else {
            return Self::default();
        };
        let unmeasured = targets.contains(&DeletionTarget::Unmeasured);
        let mut survey = Surveyor { cx, project, parts: Vec::new(), counted: 0 };
        for target in targets {
            match target {
                DeletionTarget::Path(path) => survey.named(&path),
                DeletionTarget::Clean { folder, args } => survey.cleaned(&folder, &args),
                DeletionTarget::References { folder } => survey.references(&folder),
                DeletionTarget::Unmeasured => {}
            }
        }
        let mut parts = survey.parts;
        parts.retain(|part| part.count > 0 || part.bytes == UNKEEPABLE);
        // Small parts first, so that many of them are kept; among them are a repository's references and its index.
        parts.sort_by_key(|part| part.bytes);
        Self { parts, unmeasured }
    }

    /// Which parts are kept, and which are lost.
    pub fn decide(&self) -> Deletion {
        let measured =
            |part: &DeletedPart| DeletedPath { path: part.name.clone(), files: part.count, bytes: part.bytes };
        Deletion { unmeasured: self.unmeasured, ..Deletion::decide(self.parts.iter().map(measured)) }
    }

    /// Keeps what a decision says. Fails if something cannot be kept. Blocking.
    pub fn keep(
        &self,
        trees: &TrackedTrees,
        decided: &Deletion,
        cancel: &CancellationToken,
    ) -> Result<Vec<KeptFiles>, String> {
        let mut roots: BTreeMap<&Path, Vec<&str>> = BTreeMap::new();
        for part in self.parts.iter().filter(|part| decided.kept.iter().any(|kept| kept.path == part.name)) {
            roots.entry(&part.root).or_default().extend(part.files.iter().map(String::as_str));
        }
        let keep = |(root, files): (&Path, Vec<&str>)| Ok((root.to_owned(), trees.keep(root, &files, cancel)?));
        roots.into_iter().map(keep).collect()
    }
}

/// How the files after a command differ from those that were kept before it: files that it made where it deleted others.
pub fn changed_since(before: &[KeptFiles], after: Vec<KeptFiles>) -> Vec<KeptFiles> {
    let known = |root: &Path, path: &str| {
        let of_root = before.iter().filter(|(kept, _)| kept == root).flat_map(|(_, changes)| changes);
        of_root.into_iter().find(|change| change.path == path).map_or(FileState::Gone, |change| change.before)
    };
    let changed = |(root, changes): KeptFiles| {
        let of_file = |change: FileChange| {
            let (before, after) = (known(&root, &change.path), change.before);
            (!before.fits(&after)).then_some(FileChange { path: change.path, before, after })
        };
        let changes: Vec<FileChange> = changes.into_iter().filter_map(of_file).collect();
        (root, changes)
    };
    after.into_iter().map(changed).filter(|(_, changes)| !changes.is_empty()).collect()
}

struct Surveyor<'a> {
    cx: &'a ToolContext,
    project: PathBuf,
    parts: Vec<DeletedPart>,
    counted: usize,
}

/// Whether a scan watches the files of a folder.
#[derive(Debug, Clone)]
enum Zone {
    /// It does, but for what these rules ignore.
    Watched(IgnoreRules),
    /// It does not: the files belong to the part with this index.
    Part(usize),
}

impl Surveyor<'_> {
    fn named(&mut self, path: &str) {
        if path.contains(['*', '?', '[']) {
            for name in matching_names(path, self.cx.root.path()) {
                self.path(&self.cx.root.path().join(name));
            }
        }
        self.path(&self.cx.root.path().join(path));
    }

    /// What `git clean` would remove, as git itself says. If git does not say it, the whole folder counts as lost.
    fn cleaned(&mut self, folder: &str, args: &[String]) {
        let dir = self.cx.root.path().join(folder);
        let dry: Vec<&str> = ["clean", "-n"].into_iter().chain(args.iter().map(String::as_str)).collect();
        let said = match Repo::open(&dir, &self.cx.sight, &self.cx.cancel) {
            Ok(None) => return,
            Ok(Some(repo)) => repo.ask(&dry).ok().filter(|said| said.code == Some(0) && !said.is_cut),
            Err(_) => None,
        };
        let Some(said) = said else { return self.lose(&dir) };
        let said = String::from_utf8_lossy(&said.bytes).into_owned();
        for name in said.lines().filter_map(|line| line.strip_prefix("Would remove ")) {
            self.path(&dir.join(name.trim_matches('"')));
        }
    }

    /// What names commits and staged files in the repository around a folder of the project. A linked working tree has no
    /// folder of its own for them.
    fn references(&mut self, folder: &str) {
        let Ok(dir) = self.cx.root.path().join(folder).canonicalize() else { return };
        let within = dir.ancestors().take_while(|above| above.starts_with(&self.project));
        let Some(git) = within.map(|above| above.join(GIT)).find(|git| git.exists()) else { return };
        if git.is_dir() {
            REFERENCES.iter().for_each(|name| self.path(&git.join(name)));
        }
    }

    fn path(&mut self, path: &Path) {
        let real = match (path.parent().and_then(|parent| parent.canonicalize().ok()), path.file_name()) {
            (Some(parent), Some(name)) => parent.join(name),
            _ => match path.canonicalize() {
                Ok(real) => real,
                Err(_) => return,
            },
        };
        let Ok(meta) = fs::symlink_metadata(&real) else { return };
        let Some(zone) = self.zone_of(&real, &meta) else { return };
        let mut open = vec![(real, meta, zone)];
        while let Some((path, meta, zone)) = open.pop() {
            if !meta.is_dir() {
                self.file(&path, &meta, &zone);
                continue;
            }
            if self.counted > DELETION_COUNTED_MAX {
                open.push((path, meta, zone));
                open.iter().for_each(|(path, meta, zone)| self.uncounted(path, meta, zone));
                return;
            }
            for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
                let (path, Ok(meta)) = (entry.path(), entry.metadata()) else { continue };
                open.extend(self.zone_in(&zone, &path, &meta).map(|zone| (path, meta, zone)));
            }
        }
    }

    /// Too much to look at: what is not looked at counts as lost.
    fn uncounted(&mut self, path: &Path, meta: &Metadata, zone: &Zone) {
        match zone {
            Zone::Part(part) => self.parts.get_mut(*part).into_iter().for_each(|part| part.bytes = UNKEEPABLE),
            Zone::Watched(_) if meta.is_dir() => self.lose(path),
            Zone::Watched(_) => {}
        }
    }

    /// Counts a folder as lost without a look at it.
    fn lose(&mut self, folder: &Path) {
        let part = self.place(folder);
        self.parts.get_mut(part).into_iter().for_each(|part| part.bytes = UNKEEPABLE);
    }

    /// The zone of a path that a line names; `None`: nothing is lost there that counts.
    fn zone_of(&mut self, real: &Path, meta: &Metadata) -> Option<Zone> {
        let Ok(inside) = real.strip_prefix(&self.project).map(Path::to_owned) else {
            let parent = real.parent()?;
            let is_own = self.cx.sandbox.on && OWN_OF_SANDBOX.iter().any(|folder| parent == Path::new(folder));
            return (!is_own).then(|| self.part(real));
        };
        if inside.iter().any(|name| name == GIT) {
            return Some(self.part(real));
        }
        let above = inside.parent().unwrap_or(Path::new(""));
        let place = above.to_str().filter(|above| !above.is_empty()).unwrap_or(".");
        let rules = IgnoreRules::at(&self.cx.root, &self.cx.root.place(place).ok()?);
        if inside.as_os_str().is_empty() {
            return Some(Zone::Watched(self.rules_in(&rules, &inside)?));
        }
        let rules = self.rules_in(&rules, above)?;
        let mut folders = inside.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        if folders.any(|folder| rules.hide(&self.project.join(folder), true)) {
            return (!is_rebuilt(real)).then(|| self.part(real));
        }
        self.zone_in(&Zone::Watched(rules), real, meta)
    }

    /// The zone of an entry of a folder; `None`: nothing is lost there that counts.
    fn zone_in(&mut self, folder: &Zone, path: &Path, meta: &Metadata) -> Option<Zone> {
        let named = |name: &str| path.file_name().is_some_and(|own| own == name);
        let is_of_git = named(OBJECTS) && path.parent().is_some_and(|parent| parent.ends_with(GIT));
        let rules = match folder {
            _ if named(GIT) || is_of_git => return Some(self.part(path)),
            // A large file may be lost alone.
            Zone::Part(_) if meta.is_file() && meta.len() > REWIND_FILE_BYTES_MAX => return Some(self.part(path)),
            Zone::Part(part) => return Some(Zone::Part(*part)),
            Zone::Watched(rules) => rules,
        };
        if rules.hide(path, meta.is_dir()) {
            return (!is_rebuilt(path)).then(|| self.part(path));
        }
        if !meta.is_dir() {
            return (meta.len() > REWIND_FILE_BYTES_MAX && meta.is_file()).then(|| self.part(path));
        }
        let inside = path.strip_prefix(&self.project).ok()?.to_owned();
        Some(Zone::Watched(self.rules_in(rules, &inside)?))
    }

    /// The rules that hold in a folder of the project; `None`: it cannot be opened.
    fn rules_in(&self, above: &IgnoreRules, folder: &Path) -> Option<IgnoreRules> {
        let dir = OwnedFd::from(File::open(self.project.join(folder)).ok()?);
        Some(above.within(&self.cx.root, &dir, folder))
    }

    fn part(&mut self, path: &Path) -> Zone {
        Zone::Part(self.place(path))
    }

    /// The index of the part with a path.
    fn place(&mut self, path: &Path) -> usize {
        let inside = path.strip_prefix(&self.project).ok();
        let root = if inside.is_some() { self.project.clone() } else { path.parent().unwrap_or(path).to_owned() };
        let name = inside.unwrap_or(path).display().to_string();
        // A line may name a path twice.
        let known = self.parts.iter().position(|part| part.name == name);
        known.unwrap_or_else(|| {
            self.parts.push(DeletedPart { name, root, files: BTreeSet::new(), count: 0, bytes: 0 });
            self.parts.len() - 1
        })
    }

    fn file(&mut self, path: &Path, meta: &Metadata, zone: &Zone) {
        let Zone::Part(part) = zone else { return };
        let Some(part) = self.parts.get_mut(*part).filter(|_| meta.is_file() || meta.is_symlink()) else { return };
        let inside = path.strip_prefix(&part.root).ok().and_then(Path::to_str);
        let inside = inside.filter(|inside| !inside.chars().any(char::is_control)).map(str::to_owned);
        if inside.as_ref().is_some_and(|inside| part.files.contains(inside)) {
            return;
        }
        self.counted += 1;
        part.count += 1;
        part.bytes = if inside.is_some() { part.bytes.saturating_add(meta.len()) } else { UNKEEPABLE };
        part.files.extend(inside.filter(|_| part.count <= DELETION_KEPT_FILES_MAX));
    }
}

/// Whether a program makes an ignored folder again. Only its name counts: a mark inside could be the agent's own.
fn is_rebuilt(path: &Path) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| is_dependency_folder(name) || is_build_folder(name))
}
