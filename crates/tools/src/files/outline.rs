//! An outline of the project for a lead that has no tools for files: one line per folder, level by level, within named bounds.
//!
//! Hidden, ignored and unseen names are passed over, symbolic links too. The order is by depth, then by name, so that equal trees have
//! equal outlines.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use max_team_core::limits::{OUTLINE_BYTES_MAX, OUTLINE_ENTRIES_MAX, OUTLINE_LINES_MAX, OUTLINE_NAMES_MAX};
use max_team_core::policy::Visibility;
use rustix::fs::FileType;

use super::root::Root;
use super::walk::{IgnoreRules, entries};
use crate::text::{clip, many, visible};

/// Bytes of one path or name that are shown.
const NAME_BYTES_MAX: usize = 80;

/// The files of one folder, by name.
struct OutlineFolder {
    path: String,
    files: Vec<String>,
}

/// Lists the files of a project; empty if it has none.
pub fn outline(root: &Root, sight: &Visibility) -> String {
    let (folders, is_cut) = folders(root, sight);
    show(&folders, is_cut)
}

/// The folders with files, level by level, and whether some were not looked at.
fn folders(root: &Root, sight: &Visibility) -> (Vec<OutlineFolder>, bool) {
    let (mut found, mut looked_at) = (Vec::new(), 0);
    let mut queue = VecDeque::from([(PathBuf::from("."), IgnoreRules::default())]);
    if let Ok(top) = root.place(".") {
        queue = VecDeque::from([(PathBuf::from("."), IgnoreRules::at(root, &top))]);
    }
    while let Some((path, above)) = queue.pop_front() {
        let Ok(dir) = root.open_dir(&path, sight) else { continue };
        let Ok(names) = entries(&dir) else { continue };
        let inner = path.strip_prefix(".").unwrap_or(&path).to_path_buf();
        let rules = above.within(root, &dir, &inner);
        let mut files = Vec::new();
        for entry in names.entries {
            if looked_at >= OUTLINE_ENTRIES_MAX {
                found.push(OutlineFolder { path: shown(&inner.to_string_lossy()), files });
                return (found, true);
            }
            looked_at += 1;
            let (full, is_dir) = (inner.join(&entry.name), entry.kind == FileType::Directory);
            let is_hidden = entry.name.to_string_lossy().starts_with('.');
            if is_hidden || rules.hide(&root.path().join(&full), is_dir) || !sight.is_visible(&full.to_string_lossy()) {
                continue;
            }
            match entry.kind {
                FileType::Directory => queue.push_back((full, rules.clone())),
                FileType::RegularFile => files.push(shown(&entry.name.to_string_lossy())),
                _ => {}
            }
        }
        found.push(OutlineFolder { path: shown(&inner.to_string_lossy()), files });
    }
    (found, false)
}

fn shown(name: &str) -> String {
    clip(&visible(name), NAME_BYTES_MAX)
}

/// A line per folder while there is room; the files of the other folders are counted by the first part of their path.
fn show(folders: &[OutlineFolder], is_cut: bool) -> String {
    let (mut text, mut lines) = (String::new(), 0);
    let mut rest: BTreeMap<&str, usize> = BTreeMap::new();
    for folder in folders.iter().filter(|folder| !folder.files.is_empty()) {
        let line = line(folder);
        let is_full = lines >= OUTLINE_LINES_MAX || text.len() + line.len() > OUTLINE_BYTES_MAX;
        if is_full || !rest.is_empty() {
            let top = folder.path.split('/').next().unwrap_or_default();
            *rest.entry(top).or_default() += folder.files.len();
        } else {
            text.push_str(&line);
            lines += 1;
        }
    }
    if !rest.is_empty() {
        let counted = rest.iter().take(OUTLINE_NAMES_MAX).map(|(top, files)| format!("{top}/ {files}"));
        let counted: Vec<String> = counted.collect();
        text.push_str(&format!("[further files: {}]\n", counted.join(", ")));
    }
    if is_cut {
        text.push_str(&format!("[only the first {} were looked at]\n", many(OUTLINE_ENTRIES_MAX, "name")));
    }
    text
}

fn line(folder: &OutlineFolder) -> String {
    let names = folder.files.iter().take(OUTLINE_NAMES_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = folder.files.len().saturating_sub(OUTLINE_NAMES_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let path = if folder.path.is_empty() { "." } else { &folder.path };
    format!("{path}/ {names}{more}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(files: &[&str]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let root = Root::open(folder.path()).unwrap();
        (folder, root)
    }

    #[test]
    fn an_outline_has_a_line_per_folder_without_hidden_and_ignored_names() {
        let files = ["b.py", "README.md", "src/deep/x.py", "src/a.py", ".env", ".git/HEAD", "out/gen.py", "src/a.pyc"];
        let (folder, root) = project(&files);
        std::fs::write(folder.path().join(".gitignore"), "out/\n*.pyc\n").unwrap();
        assert_eq!(outline(&root, &Visibility::default()), "./ README.md, b.py\nsrc/ a.py\nsrc/deep/ x.py\n");
        assert_eq!(outline(&project(&[]).1, &Visibility::default()), "");
    }

    #[test]
    fn a_large_project_keeps_to_the_bounds_and_counts_the_rest() {
        let files: Vec<String> = (0..90).map(|n| format!("d{:02}/sub/file{n}.rs", n % 70)).collect();
        let many: Vec<String> = (0..30).map(|n| format!("top{n:02}.rs")).collect();
        let names: Vec<&str> = files.iter().chain(&many).map(String::as_str).collect();
        let text = outline(&project(&names).1, &Visibility::default());
        assert!(text.starts_with("./ top00.rs, ") && text.contains(" and 10 more\n"), "{text}");
        assert!(text.lines().count() <= OUTLINE_LINES_MAX + 1 && text.len() <= OUTLINE_BYTES_MAX + 500, "{text}");
        assert!(text.contains("[further files: d39/ 1"), "{text}");
    }
}
