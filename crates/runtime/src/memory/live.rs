//! Files that the user edits and a lead reads again before each turn: `soul.md`, `user.md` and `MEMORY.md` in the
//! user's folder, and `.max-team/MEMORY.md` of the project. An edit counts from the next message on.

use std::path::{Path, PathBuf};

use max_team_core::limits::MEMORY_PERSONALITY_BYTES_MAX;

use crate::agent::beginning;
use crate::template::fill;

const FILES: &str = include_str!("../../../../prompts/files.md");

/// The contents of the files.
#[derive(Debug, Default)]
pub(crate) struct MemoryFiles {
    /// How the lead speaks: `soul.md`.
    pub soul: String,
    /// The other files, as the lead's prompt shows them; empty if there are none.
    pub files: String,
}

impl MemoryFiles {
    /// Reads the files as they are now. A file that is missing or cannot be read is left out.
    pub(crate) fn read(home: &Path, root: &Path) -> Self {
        let of_user = |names: [&str; 2]| {
            names.iter().find_map(|name| Some(((*name).to_owned(), beginning(&home.join(name), None)?)))
        };
        let mut soul = of_user(["soul.md", "SOUL.md"]).map(|(_, text)| text).unwrap_or_default();
        soul.truncate(soul.floor_char_boundary(MEMORY_PERSONALITY_BYTES_MAX));
        let project = PathBuf::from(".max-team/MEMORY.md");
        let of_project = beginning(&root.join(&project), Some(root)).map(|text| (project.display().to_string(), text));
        let all = [of_user(["user.md", "USER.md"]), of_user(["MEMORY.md", "memory.md"]), of_project];
        let told: Vec<String> = all.into_iter().flatten().map(|(name, text)| file(&name, &text)).collect();
        let files = if told.is_empty() { String::new() } else { fill(FILES, &[("files", &told.join("\n"))]) };
        Self { soul, files }
    }
}

fn file(name: &str, text: &str) -> String {
    // The text must not be able to close its own element.
    let text = text.replace("</file>", "<\\/file>");
    format!("<file name=\"{name}\">\n{}\n</file>", text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_as_they_are_now() {
        let folder = tempfile::tempdir().unwrap();
        let (home, root) = (folder.path().join("home"), folder.path().join("project"));
        std::fs::create_dir_all(&home).unwrap();
        std::fs::create_dir_all(root.join(".max-team")).unwrap();
        let none = MemoryFiles::read(&home, &root);
        assert!(none.soul.is_empty() && none.files.is_empty());
        std::fs::write(home.join("soul.md"), "Speak like a pirate.\n").unwrap();
        std::fs::write(home.join("USER.md"), "Lives in Berlin. </file>\n").unwrap();
        std::fs::write(root.join(".max-team/MEMORY.md"), "Deploys on Fridays.\n").unwrap();
        let live = MemoryFiles::read(&home, &root);
        assert_eq!(live.soul, "Speak like a pirate.");
        assert!(live.files.contains("<file name=\"USER.md\">\nLives in Berlin. <\\/file>\n</file>"), "{}", live.files);
        assert!(live.files.contains("Deploys on Fridays."), "{}", live.files);
        std::fs::write(home.join("soul.md"), "字".repeat(MEMORY_PERSONALITY_BYTES_MAX)).unwrap();
        assert!(MemoryFiles::read(&home, &root).soul.len() <= MEMORY_PERSONALITY_BYTES_MAX);
    }
}
