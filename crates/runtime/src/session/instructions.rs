//! Finds and reads the instruction files that apply to a directory: AGENTS.md and CLAUDE.md, with `@imports`.
//!
//! Order, dedupe and caps are the core's; this module only touches the disk. A file that cannot be read is a note,
//! never an error: a broken link in a repository must not keep anyone from working.

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use max_team_core::context::instructions::{InstructionFile, Instructions, assemble, imports};
use max_team_core::limits::{IMPORT_HOPS_MAX, INSTRUCTION_FILE_BYTES_MAX, INSTRUCTION_FILES_MAX};
use max_team_tools::command::is_planted;

/// Names looked for in each directory. An override replaces its plain sibling.
const NAMES: [&[&str]; 3] =
    [&["AGENTS.override.md", "AGENTS.md"], &["CLAUDE.md", ".claude/CLAUDE.md"], &["CLAUDE.local.md"]];

/// Reads what applies to `cwd`: the user's own file first, then from the project's root down to `cwd`.
pub fn read(cwd: &Path, home: Option<&Path>) -> Instructions {
    let mut reader =
        InstructionReader { files: Vec::new(), seen: HashSet::new(), notes: Vec::new(), root: project_root(cwd) };
    if let Some(home) = home {
        reader.take(&home.join("MAX.md"), 0, true);
    }
    for directory in from_root_to(&reader.root.clone(), cwd) {
        for names in NAMES {
            if let Some(path) = names.iter().map(|name| directory.join(name)).find(|path| path.is_file()) {
                reader.take(&path, 0, false);
            }
        }
    }
    let mut whole = assemble(&reader.files);
    whole.notes.splice(0..0, reader.notes);
    whole
}

/// The nearest directory at or above `cwd` that holds `.git`, else `cwd`: files above a project do not apply to it.
fn project_root(cwd: &Path) -> PathBuf {
    cwd.ancestors().find(|directory| directory.join(".git").exists()).unwrap_or(cwd).to_path_buf()
}

fn from_root_to(root: &Path, cwd: &Path) -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> =
        cwd.ancestors().take_while(|directory| directory.starts_with(root)).map(Path::to_path_buf).collect();
    directories.reverse();
    directories
}

struct InstructionReader {
    files: Vec<InstructionFile>,
    seen: HashSet<PathBuf>,
    notes: Vec<String>,
    root: PathBuf,
}

impl InstructionReader {
    /// Takes a file and, after it, what it imports. `own` marks the user's own file, which may
    /// import from anywhere; a project's file may not reach outside the project.
    fn take(&mut self, path: &Path, hops: usize, own: bool) {
        let Ok(real) = path.canonicalize() else { return };
        if !own && !real.starts_with(self.root.canonicalize().unwrap_or_else(|_| self.root.clone())) {
            self.notes.push(format!("`{}` left out: it lies outside the project", path.display()));
            return;
        }
        if !self.seen.insert(real.clone()) {
            return;
        }
        if is_planted(path) {
            self.notes.push(format!(
                "`{}` left out: it appeared while a command runs, without your approval",
                path.display()
            ));
            return;
        }
        if hops > 0 && !own && is_private(&real) {
            self.notes.push(format!("`{}` left out: a file of that name is not for a model", path.display()));
            return;
        }
        if self.files.len() >= INSTRUCTION_FILES_MAX {
            self.notes.push(format!(
                "`{}` left out: at most {INSTRUCTION_FILES_MAX} instruction files are read",
                path.display()
            ));
            return;
        }
        let (text, bytes) = match read_capped(&real) {
            Ok(read) => read,
            Err(error) => {
                self.notes.push(format!("`{}` left out: {error}", path.display()));
                return;
            }
        };
        let found: Vec<String> = imports(&text).into_iter().map(str::to_owned).collect();
        let shown = real
            .strip_prefix(&self.root)
            .map_or_else(|_| path.display().to_string(), |path| path.display().to_string());
        self.files.push(InstructionFile { path: shown, text, bytes });
        if hops >= IMPORT_HOPS_MAX {
            return;
        }
        let directory = real.parent().unwrap_or(Path::new("."));
        for import in found {
            let target = directory.join(&import);
            if target.is_file() {
                self.take(&target, hops + 1, own);
            }
        }
    }
}

/// Whether the file name suggests a secret: a project must not be able to include such a file in a prompt.
fn is_private(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let marked = ["secret", "credential", "password", "id_rsa", "id_ed25519"].iter().any(|word| name.contains(word));
    marked || name.starts_with(".env") || [".env", ".pem", ".key", ".p12"].iter().any(|ending| name.ends_with(ending))
}

/// Reads one byte more than the limit, so that the caller can see and mark the cut.
fn read_capped(path: &Path) -> std::io::Result<(String, usize)> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path)?;
    let size = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    file.take(INSTRUCTION_FILE_BYTES_MAX as u64 + 4).read_to_end(&mut bytes)?;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_to_cwd_with_imports_once_each() {
        let tmp = tempfile::tempdir().unwrap();
        let root = tmp.path().join("repo");
        let sub = root.join("sub");
        std::fs::create_dir_all(root.join(".git")).unwrap();
        std::fs::create_dir_all(&sub).unwrap();
        std::fs::write(tmp.path().join("AGENTS.md"), "above the project").unwrap();
        std::fs::write(root.join("AGENTS.md"), "root; see @docs.md and @../AGENTS.md and @gone.md").unwrap();
        std::fs::write(root.join("docs.md"), "docs; see @AGENTS.md and @.env").unwrap();
        std::fs::write(root.join(".env"), "KEY=hunter2").unwrap();
        std::fs::write(root.join("CLAUDE.md"), "@AGENTS.md").unwrap();
        std::fs::write(sub.join("AGENTS.md"), "sub").unwrap();
        std::fs::write(sub.join("AGENTS.override.md"), "override").unwrap();
        let read = read(&sub, None);
        let names: Vec<_> = read.files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["AGENTS.md", "docs.md", "CLAUDE.md", "sub/AGENTS.override.md"]);
        assert!(!read.text.contains("above the project") && !read.text.contains("hunter2"));
        assert!(read.notes.iter().any(|note| note.contains("outside the project")), "{:?}", read.notes);
    }
}
