//! The working tree against a commit: what git compares, and what git does not know yet.
//!
//! New files are read here, through the root, and written as git would write them; everything else is git's own diff.
//! Links are told, not followed; a file with other names (a hard link) is named but not shown.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::patch::Patch;
use super::repo::{Answer, Repo};
use super::{Diff, FILES_MAX, FileStat, GitError};
use crate::text::visible;
use max_team_core::policy::Sight;

/// Bytes of a new file that are read.
const NEW_BYTES_MAX: u64 = 4 << 20;
/// Bytes in which a zero byte means that a file is not text; git looks at as many.
const SNIFFED: usize = 8_000;

/// How every diff is asked for: git's own, plain, in one shape whatever the settings say, and without a look into
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
pub(crate) struct Named(Answer);

impl Named {
    /// The paths, at most [`FILES_MAX`]; `cut` becomes true if there are more.
    pub(crate) fn paths(&self, cut: &mut bool) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> =
            self.0.fields().take(FILES_MAX + 1).map(|path| PathBuf::from(OsStr::from_bytes(path))).collect();
        *cut |= self.0.is_cut || paths.len() > FILES_MAX;
        paths.truncate(FILES_MAX);
        paths
    }
}

/// What builds and package managers leave behind, where nobody told git to ignore it. It would drown everything else.
const LEFTOVERS: [&str; 9] = [
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
pub(crate) fn untracked(repo: &Repo<'_>, specs: &[String]) -> Result<Named, GitError> {
    let mut args = vec!["ls-files", "--others", "--exclude-standard", "-z"];
    args.extend(LEFTOVERS);
    args.push("--");
    args.extend(specs.iter().map(String::as_str));
    repo.told(&args, "list new files").map(Named)
}

/// Files that git knows and that differ from the base.
pub(crate) fn changed(repo: &Repo<'_>, specs: &[String]) -> Result<Named, GitError> {
    repo.told(&asked(repo, &["--name-only", "-z"], specs), "compare files").map(Named)
}

/// A diff that is put together.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) patch: Patch,
    pub(crate) files: Vec<FileStat>,
}

impl Changes {
    /// Adds what git compares.
    pub(crate) fn tracked(&mut self, repo: &Repo<'_>, specs: &[String]) -> Result<(), GitError> {
        let stats = repo.told(&asked(repo, &["--numstat", "-z"], specs), "compare files")?;
        self.patch.cut |= stats.is_cut;
        for field in stats.fields() {
            let field = String::from_utf8_lossy(field);
            let mut parts = field.splitn(3, '\t');
            let (Some(added), Some(removed), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
            // Files that are not text have a `-` in place of numbers.
            self.count(&visible(path), added.parse().unwrap_or(0), removed.parse().unwrap_or(0));
        }
        if stats.bytes.is_empty() {
            return Ok(());
        }
        let patch = &mut self.patch;
        let (code, complaint) =
            repo.stream(&asked(repo, &["--patch", "--unified=3"], specs), &mut |bytes| patch.push(bytes))?;
        self.patch.end_file();
        if code == Some(0) || self.patch.cut {
            return Ok(());
        }
        Err(Answer { code, bytes: Vec::new(), is_cut: false, complaint }.failed("compare files"))
    }

    /// Adds a new file.
    pub(crate) fn untracked(&mut self, repo: &Repo<'_>, path: &Path) {
        let name = visible(&path.to_string_lossy());
        self.patch.push(format!("diff --git a/{name} b/{name}\n").as_bytes());
        let told = match New::read(repo, path) {
            New::Text { bytes, is_whole, is_program } => {
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
            New::Link(target) => {
                let target = visible(&target);
                self.count(&name, 1, 0);
                format!(
                    "new file mode 120000\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+{target}\n\\ No newline at end of file\n"
                )
            }
            New::Binary => {
                self.count(&name, 0, 0);
                format!("new file mode 100644\nBinary files /dev/null and b/{name} differ\n")
            }
            New::Hidden(why) => {
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
        Diff { text: self.patch.text(), files: self.files, cut }
    }
}

/// What a file is that git does not know.
#[derive(Debug)]
enum New {
    Text { bytes: Vec<u8>, is_whole: bool, is_program: bool },
    Link(String),
    Binary,
    Hidden(String),
}

impl New {
    fn read(repo: &Repo<'_>, path: &Path) -> Self {
        if path.as_os_str().as_bytes().ends_with(b"/") {
            return Self::Hidden("it is a repository of its own".to_owned());
        }
        if let Some(target) = link(repo, path) {
            return Self::Link(target.to_string_lossy().into_owned());
        }
        let opened = match repo.root.open_file(path, &Sight::default()) {
            Ok(opened) if opened.is_linked() => return Self::Hidden("it has other names (hard links)".to_owned()),
            Ok(opened) => opened,
            Err(err) => return Self::Hidden(err.to_string()),
        };
        let mut bytes = Vec::new();
        if let Err(err) = (&opened.file).take(NEW_BYTES_MAX).read_to_end(&mut bytes) {
            return Self::Hidden(err.to_string());
        }
        if bytes.iter().take(SNIFFED).any(|byte| *byte == 0) {
            return Self::Binary;
        }
        let is_whole = opened.size() <= NEW_BYTES_MAX;
        Self::Text { bytes, is_whole, is_program: opened.stat.st_mode & 0o100 != 0 }
    }
}

/// Where a symbolic link points to; `None` if it is none.
pub(crate) fn link(repo: &Repo<'_>, path: &Path) -> Option<PathBuf> {
    std::fs::read_link(repo.root.path().join(path)).ok()
}
