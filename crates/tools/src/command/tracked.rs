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

/// What git says of the files that it was asked about.
#[derive(Debug, Default)]
pub(super) struct TrackedFiles {
    /// Those whose present content git has under their path.
    held: HashSet<PathBuf>,
    /// Those of a repository whose git has failed.
    unknown: HashSet<PathBuf>,
}

/// Git could not be started, or ended with an error.
#[derive(Debug)]
struct GitFailed;

impl TrackedFiles {
    /// Asks the repository of the nearest of these working trees. A repository that is not among them is never believed.
    pub(super) fn of(git: &Path, trees: &[PathBuf], paths: &[PathBuf]) -> Self {
        let mut found = Self::default();
        for tree in trees {
            let nearest = |path: &PathBuf| {
                trees.iter().filter(|tree| path.starts_with(tree)).max_by_key(|tree| tree.as_os_str().len())
            };
            let own: Vec<&PathBuf> = paths.iter().filter(|path| nearest(path) == Some(tree)).collect();
            for some in own.chunks(FILES_MAX) {
                match tracked(git, tree, some) {
                    Ok(held) => found.held.extend(held),
                    Err(GitFailed) => found.unknown.extend(some.iter().copied().cloned()),
                }
            }
        }
        found
    }

    pub(super) fn holds(&self, path: &Path) -> bool {
        self.held.contains(path)
    }

    /// Whether git could not be asked, so that the file may be the user's.
    pub(super) fn is_unknown(&self, path: &Path) -> bool {
        self.unknown.contains(path)
    }
}

/// Those of the paths whose content git has.
fn tracked(git: &Path, tree: &Path, paths: &[&PathBuf]) -> Result<Vec<PathBuf>, GitFailed> {
    let names: Vec<&Path> = paths.iter().filter_map(|path| path.strip_prefix(tree).ok()).collect();
    let ask = |words: &[&str]| output(command(git, tree).args(words).arg("--").args(&names));
    let mut stored = ask(&["ls-files", "--stage", "-z"])?;
    if has_commit(git, tree)? {
        stored.extend(ask(&["ls-tree", "-r", "-z", "--full-tree", "HEAD"])?);
    }
    let entries: HashSet<(&[u8], &[u8])> = stored.split(|byte| *byte == 0).filter_map(entry).collect();
    let mut held = Vec::new();
    for path in paths {
        let name = path.strip_prefix(tree).ok().map(|name| name.as_os_str().as_bytes());
        let known: Vec<&[u8]> = entries.iter().filter(|(_, own)| Some(*own) == name).map(|(hash, _)| *hash).collect();
        if !known.is_empty() && object(git, tree, path)?.is_some_and(|hash| known.contains(&hash.trim_ascii())) {
            held.push(PathBuf::clone(path));
        }
    }
    Ok(held)
}

/// Whether `HEAD` names a commit. Without one the index alone counts.
fn has_commit(git: &Path, tree: &Path) -> Result<bool, GitFailed> {
    let ran = run_helper(command(git, tree).args(["rev-parse", "--quiet", "--verify", "HEAD"]));
    match ran.map_err(|_| GitFailed)?.status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => Err(GitFailed),
    }
}

/// What git prints, if it ends well.
fn output(command: &mut Command) -> Result<Vec<u8>, GitFailed> {
    let output = run_helper(command).map_err(|_| GitFailed)?;
    if output.status.success() { Ok(output.stdout) } else { Err(GitFailed) }
}

/// The object and the path of one line: `mode object stage TAB path`, or `mode kind object TAB path`.
fn entry(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let (words, path) = (line.get(..tab)?, line.get(tab + 1..)?);
    let mut words = words.split(|byte| *byte == b' ').skip(1);
    let (first, second) = (words.next()?, words.next()?);
    Some((if first == b"blob" { second } else { first }, path))
}

/// The object that a file's content would be; `None` if it has none that is compared.
fn object(git: &Path, tree: &Path, path: &Path) -> Result<Option<Vec<u8>>, GitFailed> {
    let Some(bytes) = content(path) else { return Ok(None) };
    let mut command = command(git, tree);
    command.args(["hash-object", "--stdin", "--no-filters"]);
    let (reader, mut writer) = std::io::pipe().map_err(|_| GitFailed)?;
    command.stdin(reader);
    let writes = std::thread::Builder::new().spawn(move || drop(writer.write_all(&bytes))).map_err(|_| GitFailed)?;
    let output = output(&mut command);
    drop(command);
    let _ = writes.join();
    output.map(Some)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_git_makes_files_unknown() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let file = root.join(".envrc");
        fs::write(&file, "mine").unwrap();
        let run = |args: &[&str]| assert!(command(Path::new("git"), &root).args(args).status().unwrap().success());
        run(&["init", "-q"]);
        let ask = |git: &str| {
            let tracked = TrackedFiles::of(Path::new(git), std::slice::from_ref(&root), std::slice::from_ref(&file));
            (tracked.holds(&file), tracked.is_unknown(&file))
        };
        assert_eq!(ask("git"), (false, false));
        run(&["add", "."]);
        assert_eq!(ask("git"), (true, false), "without a commit, the index counts");
        assert_eq!(ask("no-such-git"), (false, true));
        fs::write(root.join(".git/index"), "broken").unwrap();
        assert_eq!(ask("git"), (false, true));
    }
}
