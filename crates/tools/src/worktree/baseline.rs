//! Our own record of a worktree, in git's format and out of the agent's reach.
//!
//! It obeys no settings but ours: none of the system, the user or the project. Attributes that would change bytes or
//! run a filter are overruled, so that it compares what is on the disk. The repository that the agent gets is written
//! beside it, file by file, as `git clone --shared` would have left it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use max_team_sandbox::{Engine, Isolation, engine};
use tokio_util::sync::CancellationToken;

use super::collect::ProjectFiles;
use super::manifest::Manifest;
use super::{WorktreeError, WorktreeOptions, failed, open};
use crate::files::{PathContent, Root, find};
use crate::git::GitError;
use crate::git::process::{GitOutput, GitProcess};
use crate::git::repo::Repo;
use crate::git::worktree_diff::LEFTOVERS;

/// Where the agent works.
pub(super) const TREE: &str = "tree";
/// Our record, and its objects.
const KEEP: &str = "keep";
pub(super) const OBJECTS: &str = "keep/objects";
/// The tree as it was when the worktree was made: an index file of git.
pub(super) const FIRST: &str = "first";
/// How the names of other index files begin: the tree as it is, each for one look.
const NOW: &str = "now";

/// Overrules every attribute that would change the bytes of a file.
const ATTRIBUTES: &str = "* -text -ident !eol !filter !working-tree-encoding\n";
/// The message of a worktree's first commit if it differs from the project's last.
const MESSAGE: &str = "The project as it lay there when this worktree was made";
/// What is left out of the worktree of a repository that borrows objects.
const BORROWED: &str = "`.git`: its history is partly kept in another repository (`objects/info/alternates`)";
/// The branch of a worktree whose project is on none.
const BRANCH: &str = "work";
/// The author of commits if the user has no name.
const NAME: &str = "Max Team";
const MAIL: &str = "max-team@localhost";
/// How long reading a whole tree may take.
const TIMEOUT: Duration = Duration::from_secs(600);
/// Bytes of an answer with a line for every file.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Bytes of an ignore list, and of the list of commits at which a shallow history ends.
const LIST_BYTES_MAX: u64 = 1 << 20;

/// Git with our settings, on one worktree.
#[derive(Debug)]
pub(super) struct Baseline<'a> {
    home: &'a Path,
    objects: &'a [PathBuf],
    /// The index of the tree as it is: a new file for each look, so that a lock which a killed git left blocks no
    /// other.
    pub(super) now: String,
    cancel: &'a CancellationToken,
}

impl<'a> Baseline<'a> {
    pub(super) fn new(home: &'a Path, objects: &'a [PathBuf], cancel: &'a CancellationToken) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { home, objects, now: format!("{NOW}-{}-{number}", std::process::id()), cancel }
    }

    /// Begins the list of the tree as it is with the tree as it was. The caller must hold the worktree: index files
    /// and locks of earlier looks, which may have been killed, are removed.
    pub(super) fn begin_now(&self) -> Result<(), WorktreeError> {
        let entries = fs::read_dir(self.home).map_err(|err| failed(self.home, &err))?;
        let is_left = |name: &OsStr| name.to_str().is_some_and(|name| name.starts_with(NOW));
        for entry in entries.flatten().filter(|entry| is_left(&entry.file_name())) {
            // A leftover does no harm: its name is not used again.
            let _ = fs::remove_file(entry.path());
        }
        copy_list(&self.home.join(FIRST), &self.home.join(&self.now))
    }

    /// Makes a whole worktree in `home`, which is then moved to `last`.
    pub(super) fn make(
        order: &WorktreeOptions<'_>,
        home: &Path,
        last: &Path,
        cancel: &CancellationToken,
    ) -> Result<(), WorktreeError> {
        let repo = open(order.project, order.sight, cancel)?;
        let source = SourceRepo::of(&repo)?;
        let tree = home.join(TREE);
        fs::create_dir(&tree).map_err(|err| failed(&tree, &err))?;
        // The user's own folder may lie in the project, and the worktree with it.
        let own = home.ancestors().nth(2).unwrap_or(home);
        let mut list = ProjectFiles::of(&repo, own, cancel)?;
        list.name(&repo.root, order.named)?;
        if repo.borrows() {
            list.left.push(BORROWED.to_owned());
        }
        list.put(&repo.root, order.sight, &tree, cancel)?;
        let keep = Baseline::new(home, &source.objects, cancel);
        source.write(&home.join(KEEP), &source.objects)?;
        // The user's own ignore list is not for the agent to read: only our record has it.
        put(&home.join(KEEP).join("info/exclude"), &format!("{}{}", source.ignored, source.unwanted))?;
        let first = home.join(FIRST);
        keep.told(&tree, FIRST, &["read-tree", "--empty"], "begin a list")?;
        keep.told(&tree, FIRST, &["add", "--all", "--force", "."], "read the worktree")?;
        let base = keep.commit(&tree, &source)?;
        source.write(&tree.join(".git"), &[last.join(OBJECTS)])?;
        put(&tree.join(".git/refs/heads").join(&source.branch), &format!("{base}\n"))?;
        put(&home.join(KEEP).join("refs/heads").join(&source.branch), &format!("{base}\n"))?;
        copy_list(&first, &tree.join(".git/index"))?;
        let record = Manifest {
            id: order.id.to_owned(),
            project: repo.root.path().to_owned(),
            by: order.by.to_owned(),
            made_at_ms: order.at_ms,
            base,
            objects: source.objects,
            left: list.left,
            settled: BTreeMap::new(),
            open: None,
            ignored: 0,
        };
        record.write(home)
    }

    /// The commit that holds the tree as it is now: the project's own if nothing differs from it.
    fn commit(&self, tree: &Path, source: &SourceRepo) -> Result<String, WorktreeError> {
        let held = self.told(tree, FIRST, &["write-tree"], "record the worktree")?.line();
        let mut args = vec!["commit-tree", &held, "-m", MESSAGE];
        if let Some(head) = &source.head {
            let known = self.ask(tree, FIRST, &["rev-parse", "--verify", "--quiet", &format!("{head}^{{tree}}")])?;
            if known.code == Some(0) && known.line() == held {
                return Ok(head.clone());
            }
            args.extend(["-p", head]);
        }
        Ok(self.told(tree, FIRST, &args, "commit the worktree")?.line())
    }

    /// Asks about a working tree, with one of our lists.
    pub(super) fn ask(&self, tree: &Path, list: &str, args: &[&str]) -> Result<GitOutput, GitError> {
        self.question(tree, list).ask(args)
    }

    pub(super) fn told(&self, tree: &Path, list: &str, args: &[&str], doing: &str) -> Result<GitOutput, GitError> {
        self.question(tree, list).told(args, doing)
    }

    pub(super) fn question<'q>(&'q self, tree: &'q Path, list: &str) -> GitProcess<'q> {
        let place = |name: &str| self.home.join(name).display().to_string();
        let pairs = [
            ("GIT_DIR", place(KEEP)),
            ("GIT_WORK_TREE", tree.display().to_string()),
            ("GIT_INDEX_FILE", place(list)),
            ("GIT_CONFIG_GLOBAL", "/dev/null".to_owned()),
            ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
            ("GIT_LITERAL_PATHSPECS", "1".to_owned()),
        ];
        GitProcess {
            env: pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            isolation: self.isolation(),
            timeout: TIMEOUT,
            most: ANSWER_BYTES_MAX,
            ..GitProcess::new(tree, self.cancel)
        }
    }

    /// Git runs nothing that a tree brings along; if it ever did, the sandbox would make it harmless.
    fn isolation(&self) -> Option<Isolation> {
        if !engine().is_ok_and(Engine::has_namespaces) {
            return None;
        }
        let home = self.home.to_owned();
        let readable = self.objects.iter().cloned().chain([home.clone()]).collect();
        Some(Isolation {
            readable,
            writable: vec![home.clone()],
            protected: vec![home.join(TREE)],
            ..Isolation::default()
        })
    }
}

/// What the repositories of a worktree need to know of the project's.
#[derive(Debug)]
struct SourceRepo {
    objects: Vec<PathBuf>,
    /// How it names objects.
    format: String,
    /// Its last commit, if that holds the whole project and not a folder of something larger.
    head: Option<String>,
    branch: String,
    name: String,
    mail: String,
    /// Where its history ends, if it was not fetched whole.
    shallow: Option<String>,
    /// The project's own ignore list.
    ignored: String,
    /// The ignore list of its user.
    unwanted: String,
}

impl SourceRepo {
    fn of(repo: &Repo<'_>) -> Result<Self, WorktreeError> {
        let said = |args: &[&str]| repo.ask(args).map(|answer| answer.line());
        let setting = |key: &str, otherwise: &str| {
            let value = said(&["config", "--get", key])?;
            let is_plain = !value.is_empty() && !value.chars().any(char::is_control);
            Ok::<_, GitError>(if is_plain { value } else { otherwise.to_owned() })
        };
        let is_top = said(&["rev-parse", "--show-prefix"])?.is_empty();
        let branch = said(&["symbolic-ref", "--quiet", "--short", "HEAD"])?;
        let shared = repo.shared().unwrap_or(Path::new(""));
        let mut ignored: String =
            LEFTOVERS.iter().filter_map(|word| word.strip_prefix("--exclude=")).flat_map(|line| [line, "\n"]).collect();
        ignored.push_str(&own_list(shared, "info/exclude").unwrap_or_default());
        ignored.push('\n');
        // A project's own settings could name any file of the user's.
        let excludes = said(&["config", "--global", "--type=path", "--get", "core.excludesFile"])?;
        let default = || Some(std::env::home_dir()?.join(".config/git/ignore"));
        let user = if excludes.is_empty() { default() } else { Some(PathBuf::from(excludes)) };
        Ok(Self {
            // The objects of another repository are not for an agent in a worktree of this one, so it gets no history
            // then.
            objects: repo.objects()?.filter(|_| !repo.borrows()).into_iter().collect(),
            format: said(&["rev-parse", "--show-object-format"])?,
            head: repo.head.clone().filter(|_| is_top && !repo.borrows()),
            branch: if is_branch(&branch) { branch } else { BRANCH.to_owned() },
            name: setting("user.name", NAME)?,
            mail: setting("user.email", MAIL)?,
            shallow: own_list(shared, "shallow").filter(|text| !repo.borrows() && text.lines().all(is_hash)),
            ignored,
            unwanted: user.and_then(|file| user_list(&file)).unwrap_or_default(),
        })
    }

    /// Writes a repository that borrows objects from others.
    fn write(&self, folder: &Path, objects: &[PathBuf]) -> Result<(), WorktreeError> {
        for inner in ["hooks", "info", "objects/info", "refs/heads"] {
            let inner = folder.join(inner);
            fs::create_dir_all(&inner).map_err(|err| failed(&inner, &err))?;
        }
        let (version, format) = match self.format.as_str() {
            "sha1" | "" => (0, String::new()),
            other => (1, format!("[extensions]\n\tobjectFormat = {other}\n")),
        };
        let (name, mail) = (quoted(&self.name), quoted(&self.mail));
        put(
            &folder.join("config"),
            &format!(
                "[core]\n\trepositoryformatversion = {version}\n\tfilemode = true\n\tbare = false\n\
                 \tlogallrefupdates = true\n{format}[gc]\n\tauto = 0\n[user]\n\tname = {name}\n\temail = {mail}\n"
            ),
        )?;
        put(&folder.join("HEAD"), &format!("ref: refs/heads/{}\n", self.branch))?;
        put(&folder.join("info/attributes"), ATTRIBUTES)?;
        put(&folder.join("info/exclude"), &self.ignored)?;
        let lines: Vec<String> = objects.iter().map(|path| quoted_path(path)).collect();
        put(&folder.join("objects/info/alternates"), &(lines.join("\n") + "\n"))?;
        if let Some(shallow) = &self.shallow {
            put(&folder.join("shallow"), shallow)?;
        }
        Ok(())
    }
}

/// Copies an index with its time. Git takes a file for unchanged if it has the size and the second of its entry,
/// unless the index itself is no younger than that.
pub(super) fn copy_list(from: &Path, to: &Path) -> Result<(), WorktreeError> {
    let trouble = |err: std::io::Error| failed(to, &err);
    fs::copy(from, to).map_err(trouble)?;
    let written = fs::metadata(from).and_then(|meta| meta.modified()).map_err(trouble)?;
    File::options().write(true).open(to).and_then(|list| list.set_modified(written)).map_err(trouble)
}

/// A list in git's own folder, through no link and only if the file has no other name: commands can write there.
fn own_list(shared: &Path, name: &str) -> Option<String> {
    let root = Root::open(shared).ok()?;
    match find(&root, &root.place(name).ok()?).ok()? {
        PathContent::File(file, stat) if stat.st_nlink == 1 => list(file),
        _ => None,
    }
}

/// A list of the user, which may lie elsewhere.
fn user_list(path: &Path) -> Option<String> {
    // Opening a pipe must not wait for its other end.
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    list(OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path).ok()?)
}

fn list(file: File) -> Option<String> {
    let meta = file.metadata().ok()?;
    let mut text = String::new();
    let fits = meta.is_file() && meta.len() <= LIST_BYTES_MAX;
    fits.then(|| file.take(LIST_BYTES_MAX).read_to_string(&mut text).ok())??;
    Some(text)
}

/// Whether a line is the name of an object.
fn is_hash(line: &str) -> bool {
    matches!(line.len(), 40 | 64) && line.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a name can be written as a file beneath `refs/heads`.
fn is_branch(name: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    !name.chars().any(char::is_control) && name.split('/').all(is_part)
}

/// A value as git's settings take it.
fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A path as git's list of borrowed objects takes it.
fn quoted_path(path: &Path) -> String {
    let text = path.display().to_string();
    if text.starts_with('"') { quoted(&text) } else { text }
}

fn put(path: &Path, text: &str) -> Result<(), WorktreeError> {
    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| fs::write(path, text)).map_err(|err| failed(path, &err))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn lists_are_files_of_the_repository_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let git = dir.path().join("git");
        fs::create_dir_all(git.join("info")).unwrap();
        fs::write(dir.path().join("key"), "secret").unwrap();
        fs::write(git.join("plain"), "*.log\n").unwrap();
        symlink("../key", git.join("link")).unwrap();
        symlink("..", git.join("up")).unwrap();
        fs::hard_link(dir.path().join("key"), git.join("twin")).unwrap();
        mknodat(CWD, git.join("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        File::create(git.join("large")).unwrap().set_len(LIST_BYTES_MAX + 1).unwrap();
        assert_eq!(own_list(&git, "plain").as_deref(), Some("*.log\n"));
        for name in ["link", "up/key", "twin", "pipe", "large", "info", "none"] {
            assert_eq!(own_list(&git, name), None, "{name}");
        }
        // The user may keep their own behind a link; a pipe or what has no end is nothing to wait for.
        assert_eq!(user_list(&git.join("link")).as_deref(), Some("secret"));
        for name in ["pipe", "large", "info"] {
            assert_eq!(user_list(&git.join(name)), None, "{name}");
        }
    }

    #[test]
    fn only_names_of_objects_end_a_history() {
        assert!(is_hash(&"0a".repeat(20)) && is_hash(&"0a".repeat(32)));
        assert!(!is_hash("") && !is_hash("root:x:0:0") && !is_hash(&"0g".repeat(20)));
    }
}
