//! The notes of an agent whose definition says `memory`: the beginning of its `MEMORY.md`.
//!
//! Our own folder is searched first, then those of the program that the key comes from; the first file counts. A
//! project's file may come from a stranger: it is marked as data, and no link is followed, because it could lead to a
//! file that no model may see. Nothing here writes.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use max_team_core::agent::{Definition, NotesScope};
use max_team_core::limits::{NOTES_BYTES_MAX, NOTES_LINES_MAX};
use max_team_core::text::quote;

use crate::shared::Shared;
use crate::template;

const PROMPT: &str = include_str!("../../../../prompts/notes.md");
/// A project's folders in which programs keep their files.
const PROJECT: [&str; 2] = [".max-team", ".claude"];
/// The file whose beginning is shown.
const FILE: &str = "MEMORY.md";

/// The text about an agent's notes; `None` if it keeps none, or has none.
pub(super) fn told(shared: &Shared, root: &Path, definition: &Definition) -> Option<String> {
    let memory = definition.work.memory?;
    let name = &definition.name;
    let folders: Vec<PathBuf> = match memory {
        NotesScope::User => shared.homes.iter().map(|home| home.join("agent-memory")).collect(),
        NotesScope::Project => PROJECT.iter().map(|folder| root.join(folder).join("agent-memory")).collect(),
        NotesScope::Local => PROJECT.iter().map(|folder| root.join(folder).join("agent-memory-local")).collect(),
    };
    let within = (memory != NotesScope::User).then_some(root);
    let (file, text) = folders.iter().find_map(|folder| {
        let file = folder.join(name).join(FILE);
        Some((file.clone(), beginning(&file, within)?))
    })?;
    let shown = file.strip_prefix(root).unwrap_or(&file).display().to_string();
    // The text must not be able to close its own element.
    let text = text.replace("</notes>", "<\\/notes>");
    Some(template::fill(PROMPT, &[("file", &quote(&shown).replace(['<', '>', '"'], "_")), ("notes", text.trim())]))
}

/// The beginning of a file; within a project only if no link leads elsewhere.
pub(crate) fn beginning(file: &Path, within: Option<&Path>) -> Option<String> {
    let real = file.canonicalize().ok()?;
    let is_there = |root: &Path| Some(root.canonicalize().ok()?.join(file.strip_prefix(root).ok()?) == real);
    if within.is_some_and(|root| is_there(root) != Some(true)) || !real.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    std::fs::File::open(&real).ok()?.take(NOTES_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let kept = text.get(..text.floor_char_boundary(NOTES_BYTES_MAX)).unwrap_or_default();
    let lines: Vec<&str> = kept.lines().take(NOTES_LINES_MAX).collect();
    let mut whole = lines.join("\n");
    if kept.len() < text.len() || kept.lines().count() > NOTES_LINES_MAX {
        whole.push_str(&format!("\n[cut here: at most {NOTES_LINES_MAX} lines and {NOTES_BYTES_MAX} bytes are told]"));
    }
    Some(whole).filter(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_told_and_nothing_from_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let (root, outside) = (folder.path().join("project"), folder.path().join("secret.md"));
        std::fs::create_dir_all(&root).unwrap();
        std::fs::write(&outside, "hunter2").unwrap();
        let file = root.join(FILE);
        assert_eq!(beginning(&file, Some(&root)), None);
        std::fs::write(root.join(".env"), "hunter2").unwrap();
        for target in [outside, root.join(".env")] {
            std::os::unix::fs::symlink(target, &file).unwrap();
            assert_eq!(beginning(&file, Some(&root)), None, "it leads elsewhere");
            assert_eq!(beginning(&file, None).as_deref(), Some("hunter2"), "the user's own links are theirs");
            std::fs::remove_file(&file).unwrap();
        }
        std::fs::write(&file, "字\n".repeat(NOTES_LINES_MAX + 1)).unwrap();
        let told = beginning(&file, Some(&root)).unwrap();
        assert_eq!((told.matches('字').count(), told.contains("cut here")), (NOTES_LINES_MAX, true));
        std::fs::write(&file, "字".repeat(NOTES_BYTES_MAX)).unwrap();
        assert!(beginning(&file, Some(&root)).unwrap().len() < NOTES_BYTES_MAX + 100);
        std::fs::write(&file, " \n").unwrap();
        assert_eq!(beginning(&file, Some(&root)), None);
    }
}
