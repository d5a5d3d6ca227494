//! Compares the working tree with a commit: what git compares, and files that git does not know yet.
//!
//! New files are read here, through the root, and shown as git would show them; everything else is git's own diff.
//! Links are named, not followed; a file with other names (a hard link) is named but not shown. Nothing hidden gets
//! into a diff; an agent that does not see everything is not shown links either, because they name their targets.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use max_team_core::policy::Visibility;

use super::patch::Patch;
use super::process::GitOutput;
use super::repo::Repo;
use super::{Diff, FILES_MAX, FileStat, GitError, left_out};
use crate::text::visible;

/// Bytes of a new file that are read.
const NEW_BYTES_MAX: u64 = 4 << 20;
/// Bytes in which a zero byte means that a file is not text; git looks at as many.
const SNIFFED: usize = 8_000;
/// The mode of a symbolic link.
const LINK: &[u8] = b"120000";

/// Why a link is not shown to an agent that does not see everything.
pub(crate) const UNSEEN_LINK: &str = "it is a symbolic link";
/// Why a file that may be seen by another name is not shown.
pub(crate) const LINKED: &str = "it has other names (hard links)";
/// Why a file is not shown if it cannot be shown alone.
const UNSEEN_FOLDER: &str = "it is or was a folder with something out of sight in it";

/// How every diff is asked for: git's own, plain, in one shape regardless of the settings, and without a look into
/// submodules, which have settings of their own.
const PLAIN: [&str; 11] = [
    "diff",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-renames",
    "--relative",
    "--ignore-submodules=dirty",
    "--submodule=short",
    "--inter-hunk-context=0",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];

/// The arguments of a diff against the base.
fn asked<'a>(repo: &'a Repo<'_>, more: &[&'a str], specs: &'a [String]) -> Vec<&'a str> {
    let mut args = PLAIN.to_vec();
    args.extend(more);
    args.extend([repo.base.as_str(), "--"]);
    args.extend(specs.iter().map(String::as_str));
    args
}

/// Paths that git names.
#[derive(Debug)]
pub(crate) struct PathList(GitOutput);

impl PathList {
    /// The paths, at most [`FILES_MAX`]; `cut` becomes true if there are more.
    pub(crate) fn paths(&self, cut: &mut bool) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> =
            self.0.fields().take(FILES_MAX + 1).map(|path| PathBuf::from(OsStr::from_bytes(path))).collect();
        *cut |= self.0.is_cut || paths.len() > FILES_MAX;
        paths.truncate(FILES_MAX);
        paths
    }
}

/// Leftovers of builds and package managers, for projects that do not ignore them. They would drown everything else.
pub(crate) const LEFTOVERS: [&str; 9] = [
    "--exclude=node_modules/",
    "--exclude=__pycache__/",
    "--exclude=.venv/",
    "--exclude=.pytest_cache/",
    "--exclude=.gradle/",
    "--exclude=**/target/debug/",
    "--exclude=**/target/release/",
    "--exclude=**/target/CACHEDIR.TAG",
    "--exclude=**/target/.rustc_info.json",
];

/// Files that git does not know and was not told to ignore, except for what builds leave behind.
pub(crate) fn untracked(repo: &Repo<'_>, specs: &[String]) -> Result<PathList, GitError> {
    let mut args = vec!["ls-files", "--others", "--exclude-standard", "-z"];
    args.extend(LEFTOVERS);
    args.push("--");
    args.extend(specs.iter().map(String::as_str));
    repo.told(&args, "list new files").map(PathList)
}

/// Files that git knows and that differ from the base.
pub(crate) fn changed(repo: &Repo<'_>, specs: &[String]) -> Result<PathList, GitError> {
    repo.told(&asked(repo, &["--name-only", "-z"], specs), "compare files").map(PathList)
}

/// The pathspecs for these files. A name stands for all beneath it, too: if a file became a folder or the
/// reverse, it matches too much.
pub(crate) fn literal<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    names.into_iter().map(|name| format!(":(literal){name}")).collect()
}

/// What git says about one file.
#[derive(Debug)]
pub(crate) struct NumStat<'a> {
    pub(crate) path: Cow<'a, str>,
    pub(crate) added: u64,
    pub(crate) removed: u64,
    is_link: bool,
}

/// Reads `--numstat -z`, after `--raw -z` or without.
pub(crate) fn stats(answer: &GitOutput) -> Vec<NumStat<'_>> {
    let (mut found, mut links) = (Vec::new(), BTreeSet::new());
    let mut fields = answer.fields();
    while let Some(field) = fields.next() {
        // The modes before and after, hashes and a letter; the path is the next field.
        if field.starts_with(b":") {
            let is_link = field.split(|byte| *byte == b' ').take(2).any(|mode| mode.ends_with(LINK));
            links.extend(fields.next().filter(|_| is_link));
            continue;
        }
        let mut parts = field.splitn(3, |byte| *byte == b'\t');
        let (Some(added), Some(removed), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        // Files that are not text have a `-` in place of numbers.
        let number = |bytes| std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        let (added, removed, is_link) = (number(added), number(removed), links.contains(path));
        found.push(NumStat { path: String::from_utf8_lossy(path), added, removed, is_link });
    }
    found
}

/// A diff that is put together.
#[derive(Debug, Default)]
pub(crate) struct DiffBuilder {
    pub(crate) patch: Patch,
    pub(crate) files: Vec<FileStat>,
    /// Files that differ and are hidden.
    hidden: BTreeSet<String>,
}

impl DiffBuilder {
    /// Whether a file that differs is hidden; then it is counted as such.
    pub(crate) fn hides(&mut self, sight: &Visibility, path: &str) -> bool {
        let is_hidden = !sight.is_visible(path);
        if is_hidden {
            self.hidden.insert(path.to_owned());
        }
        is_hidden
    }

    /// Adds what git compares.
    pub(crate) fn tracked(&mut self, repo: &Repo<'_>, specs: &[String]) -> Result<(), GitError> {
        if !repo.sight.is_whole() {
            return self.tracked_in_sight(repo, specs);
        }
        let answer = repo.told(&asked(repo, &["--numstat", "-z"], specs), "compare files")?;
        self.patch.cut |= answer.is_cut;
        for NumStat { path, added, removed, .. } in stats(&answer) {
            self.count(&visible(&path), added, removed);
        }
        if answer.bytes.is_empty() { Ok(()) } else { self.compared(repo, specs) }
    }

    /// Like `tracked`, if not everything may be shown: git is asked for names first, and then only for those that can
    /// be seen.
    fn tracked_in_sight(&mut self, repo: &Repo<'_>, specs: &[String]) -> Result<(), GitError> {
        let mut seen = BTreeSet::new();
        for path in changed(repo, specs)?.paths(&mut self.patch.cut) {
            if self.hides(repo.sight, &path.to_string_lossy()) {
                continue;
            }
            match path.to_str() {
                Some(name) => drop(seen.insert(name.to_owned())),
                // A name that is no text cannot be asked for.
                None => self.patch.cut = true,
            }
        }
        let shown = if seen.is_empty() { seen } else { self.shown(repo, seen)? };
        if shown.is_empty() { Ok(()) } else { self.compared(repo, &literal(shown.iter().map(String::as_str))) }
    }

    /// Counts files that can be seen, and returns those that can be shown without anything else.
    fn shown(&mut self, repo: &Repo<'_>, seen: BTreeSet<String>) -> Result<BTreeSet<String>, GitError> {
        let specs = literal(seen.iter().map(String::as_str));
        let answer = repo.told(&asked(repo, &["--raw", "--numstat", "-z"], &specs), "compare files")?;
        if answer.is_cut {
            return Err(GitError::Path("too many files differ to tell which can be seen; name fewer paths".to_owned()));
        }
        let (mut shown, mut links) = (seen.clone(), BTreeMap::new());
        for NumStat { path, added, removed, is_link } in stats(&answer) {
            let is_hidden = self.hides(repo.sight, &path);
            if !is_hidden {
                self.count(&visible(&path), added, removed);
            }
            // One of its other names may be hidden, and git would read it by this one.
            let is_linked =
                || repo.root.open_file(Path::new(path.as_ref()), repo.sight).is_ok_and(|file| file.is_linked());
            let why = if is_link { Some(UNSEEN_LINK) } else { (!is_hidden && is_linked()).then_some(LINKED) };
            if is_hidden || why.is_some() {
                shown.retain(|name| !Path::new(path.as_ref()).starts_with(name));
            }
            links.extend(why.map(|why| (path.into_owned(), why)));
        }
        for name in seen.difference(&shown) {
            let why = links.get(name).copied().unwrap_or(UNSEEN_FOLDER);
            let name = visible(name);
            self.patch.push(format!("diff --git a/{name} b/{name}\n[not shown: {why}]\n").as_bytes());
        }
        Ok(shown)
    }

    /// Adds git's own diff.
    fn compared(&mut self, repo: &Repo<'_>, specs: &[String]) -> Result<(), GitError> {
        let patch = &mut self.patch;
        let (code, complaint) =
            repo.stream(&asked(repo, &["--patch", "--unified=3"], specs), &mut |bytes| patch.push(bytes))?;
        self.patch.end_file();
        if code == Some(0) || self.patch.cut {
            return Ok(());
        }
        Err(GitOutput { code, bytes: Vec::new(), is_cut: false, complaint }.failed("compare files"))
    }

    /// Adds a new file.
    pub(crate) fn untracked(&mut self, repo: &Repo<'_>, path: &Path) {
        if self.hides(repo.sight, &path.to_string_lossy()) {
            return;
        }
        let name = visible(&path.to_string_lossy());
        self.patch.push(format!("diff --git a/{name} b/{name}\n").as_bytes());
        let told = match UntrackedFile::read(repo, path) {
            UntrackedFile::Text { bytes, is_whole, is_program } => {
                let mode = if is_program { "100755" } else { "100644" };
                let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + usize::from(!bytes.ends_with(b"\n"));
                let lines = if bytes.is_empty() { 0 } else { lines };
                self.patch.push(format!("new file mode {mode}\n").as_bytes());
                if lines > 0 {
                    let range = if lines == 1 { "1".to_owned() } else { format!("1,{lines}") };
                    self.patch.push(format!("--- /dev/null\n+++ b/{name}\n@@ -0,0 +{range} @@\n").as_bytes());
                    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                        self.patch.push(b"+");
                        self.patch.push(line);
                    }
                    if !bytes.ends_with(b"\n") {
                        self.patch.push(b"\n\\ No newline at end of file\n");
                    }
                }
                self.patch.cut |= !is_whole;
                self.count(&name, lines as u64, 0);
                return;
            }
            UntrackedFile::Link(target) => {
                let target = visible(&target);
                self.count(&name, 1, 0);
                format!(
                    "new file mode 120000\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+{target}\n\\ No newline at end of file\n"
                )
            }
            UntrackedFile::Binary => {
                self.count(&name, 0, 0);
                format!("new file mode 100644\nBinary files /dev/null and b/{name} differ\n")
            }
            UntrackedFile::Hidden(why) => {
                self.count(&name, 0, 0);
                format!("[not shown: {why}]\n")
            }
        };
        self.patch.push(told.as_bytes());
    }

    pub(crate) fn count(&mut self, path: &str, added: u64, removed: u64) {
        self.files.push(FileStat { path: path.to_owned(), added, removed });
    }

    pub(crate) fn finish(mut self) -> Diff {
        self.files.sort_by(|one, other| one.path.cmp(&other.path));
        let mut cut = self.patch.cut || self.files.len() > FILES_MAX;
        self.files.truncate(FILES_MAX);
        self.patch.end_file();
        cut |= self.patch.cut;
        let hidden = self.hidden.len();
        Diff { text: left_out(hidden) + &self.patch.text(), files: self.files, cut, hidden }
    }
}

/// What a file is that git does not know.
#[derive(Debug)]
enum UntrackedFile {
    Text { bytes: Vec<u8>, is_whole: bool, is_program: bool },
    Link(String),
    Binary,
    Hidden(String),
}

impl UntrackedFile {
    fn read(repo: &Repo<'_>, path: &Path) -> Self {
        if path.as_os_str().as_bytes().ends_with(b"/") {
            return Self::Hidden("it is a repository of its own".to_owned());
        }
        if let Some(target) = link(repo, path) {
            if !repo.sight.is_whole() {
                return Self::Hidden(UNSEEN_LINK.to_owned());
            }
            return Self::Link(target.to_string_lossy().into_owned());
        }
        let opened = match repo.root.open_file(path, repo.sight) {
            Ok(opened) if opened.is_linked() => return Self::Hidden(LINKED.to_owned()),
            Ok(opened) => opened,
            Err(err) => return Self::Hidden(err.to_string()),
        };
        let mut bytes = Vec::new();
        if let Err(err) = (&opened.file).take(NEW_BYTES_MAX).read_to_end(&mut bytes) {
            return Self::Hidden(err.to_string());
        }
        if is_binary(&bytes) {
            return Self::Binary;
        }
        let is_whole = opened.size() <= NEW_BYTES_MAX;
        Self::Text { bytes, is_whole, is_program: opened.stat.st_mode & 0o100 != 0 }
    }
}

/// Whether bytes are no text, as git judges it.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(SNIFFED).any(|byte| *byte == 0)
}

/// Where a symbolic link points to; `None` if it is none.
fn link(repo: &Repo<'_>, path: &Path) -> Option<PathBuf> {
    std::fs::read_link(repo.root.path().join(path)).ok()
}
