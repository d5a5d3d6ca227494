//! What git has of a file: content that the index or the last commit holds under a path is the user's, however it got there.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use max_team_sandbox::run_helper;

/// Bytes of a file that is compared with an approved content.
const CONTENT_BYTES_MAX: u64 = 16 << 20;
/// Files that are looked up at once.
const FILES_MAX: usize = 2_000;
/// Settings that would run something, and one without which git refuses the folder of another user.
const SETTINGS: [&str; 6] = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "safe.directory=*"];

/// The files, among those that were asked about, whose present content git has under their path.
#[derive(Debug, Default)]
pub(super) struct TrackedFiles(HashSet<PathBuf>);

impl TrackedFiles {
    /// Asks the repository of the nearest of these working trees. A repository that is not among them is never believed.
    pub(super) fn of(git: &Path, trees: &[PathBuf], paths: &[PathBuf]) -> Self {
        let mut found = Self::default();
        for tree in trees {
            let nearest = |path: &PathBuf| {
                trees.iter().filter(|tree| path.starts_with(tree)).max_by_key(|tree| tree.as_os_str().len())
            };
            let own: Vec<&PathBuf> = paths.iter().filter(|path| nearest(path) == Some(tree)).take(FILES_MAX).collect();
            if !own.is_empty() {
                found.0.extend(tracked(git, tree, &own).unwrap_or_default());
            }
        }
        found
    }

    pub(super) fn holds(&self, path: &Path) -> bool {
        self.0.contains(path)
    }
}

/// Those of the paths whose content git has; `None` if git cannot be asked.
fn tracked(git: &Path, tree: &Path, paths: &[&PathBuf]) -> Option<Vec<PathBuf>> {
    let names: Vec<&Path> = paths.iter().filter_map(|path| path.strip_prefix(tree).ok()).collect();
    let ask = |words: &[&str]| {
        let mut command = command(git, tree);
        command.args(words).arg("--").args(&names);
        Some(run_helper(&mut command).ok()?.stdout)
    };
    // Without a commit there is no `HEAD`, and then the index alone counts.
    let mut stored = ask(&["ls-files", "--stage", "-z"])?;
    stored.extend(ask(&["ls-tree", "-r", "-z", "--full-tree", "HEAD"])?);
    let entries: HashSet<(&[u8], &[u8])> = stored.split(|byte| *byte == 0).filter_map(entry).collect();
    let is_stored = |path: &&&PathBuf| {
        let name = path.strip_prefix(tree).ok().map(|name| name.as_os_str().as_bytes());
        let known: Vec<&[u8]> = entries.iter().filter(|(_, own)| Some(*own) == name).map(|(hash, _)| *hash).collect();
        !known.is_empty() && object(git, tree, path).is_some_and(|hash| known.contains(&hash.trim_ascii()))
    };
    Some(paths.iter().filter(is_stored).map(|path| PathBuf::clone(path)).collect())
}

/// The object and the path of one line: `mode object stage TAB path`, or `mode kind object TAB path`.
fn entry(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let (words, path) = (line.get(..tab)?, line.get(tab + 1..)?);
    let mut words = words.split(|byte| *byte == b' ').skip(1);
    let (first, second) = (words.next()?, words.next()?);
    Some((if first == b"blob" { second } else { first }, path))
}

/// The object that a file's content would be.
fn object(git: &Path, tree: &Path, path: &Path) -> Option<Vec<u8>> {
    let bytes = content(path)?;
    let mut command = command(git, tree);
    command.args(["hash-object", "--stdin", "--no-filters"]);
    let (reader, mut writer) = std::io::pipe().ok()?;
    command.stdin(reader);
    let writes = std::thread::Builder::new().spawn(move || drop(writer.write_all(&bytes))).ok()?;
    let output = run_helper(&mut command).ok();
    drop(command);
    let _ = writes.join();
    output.filter(|output| output.status.success()).map(|output| output.stdout)
}

fn command(git: &Path, tree: &Path) -> Command {
    let mut command = Command::new(git);
    command.args(SETTINGS).arg("-C").arg(tree).env_clear().current_dir("/").stdin(Stdio::null());
    command.envs([
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_LITERAL_PATHSPECS", "1"),
        ("LC_ALL", "C"),
    ]);
    command
}

/// The content of a plain file, or where a link leads; `None` for anything else and for what is too large.
pub(super) fn content(path: &Path) -> Option<Vec<u8>> {
    let meta = path.symlink_metadata().ok()?;
    if meta.is_symlink() {
        return Some(fs::read_link(path).ok()?.into_os_string().into_encoded_bytes());
    }
    (meta.is_file() && meta.len() <= CONTENT_BYTES_MAX).then(|| fs::read(path).ok()).flatten()
}
