//! Folders that agents keep outside the project, and their names.
//!
//! `@files` belongs to a session and is shared by its agents; `@data` belongs to one definition in one project and
//! outlives the session. Names only: nothing here touches the disk.

use crate::hash::Hash;
use crate::id::SessionId;

/// Letters of a name that are left to read in the name of its folder.
const READABLE_CHARS_MAX: usize = 40;
/// Hexadecimal digits that tell one such name from all others.
const DIGITS: usize = 16;

/// A folder that agents keep outside the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentDir {
    /// The session's folder, shared by its agents.
    Files,
    /// The folder of one definition in this project.
    Data,
}

impl AgentDir {
    pub const ALL: [Self; 2] = [Self::Files, Self::Data];

    /// First part of a path in it, as a model writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Files => "@files",
            Self::Data => "@data",
        }
    }

    /// Parent of these folders in the user's folder.
    pub const fn home(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Data => "data",
        }
    }

    /// The folder of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|folder| folder.name() == name)
    }

    /// The folder that a path lies in by its first name, and the rest of the path.
    pub fn split(path: &str) -> Option<(Self, &str)> {
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        Some((Self::parse(first)?, rest))
    }
}

/// Where the files of a session lie in the user's folder.
pub fn files(session: SessionId) -> String {
    format!("{}/{session}", AgentDir::Files.home())
}

/// Where the data of an agent lies in the user's folder, by the project's folder and the agent's name.
pub fn data(project: &str, agent: &str) -> String {
    format!("{}/{}", data_of(project), slug(agent, agent))
}

/// Where the data of all agents of a project lies.
pub fn data_of(project: &str) -> String {
    let last = project.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    format!("{}/{}", AgentDir::Data.home(), slug(last, project))
}

/// A unique name that every file system accepts: readable letters, and digits of the hash of `whole`.
fn slug(readable: &str, whole: &str) -> String {
    let safe = |letter: char| if letter.is_alphanumeric() { letter } else { '-' };
    let letters: String = readable.chars().take(READABLE_CHARS_MAX).map(safe).collect();
    let digits: String = Hash::of(whole).to_string().chars().take(DIGITS).collect();
    format!("{letters}-{digits}")
}

/// The readable part of such a name.
pub fn readable(slug: &str) -> &str {
    slug.rsplit_once('-').map_or(slug, |(letters, _)| letters)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn only_the_very_name_is_a_folder_of_ones_own() {
        let table = [
            ("@files/a.md", Some((AgentDir::Files, "a.md"))),
            ("@data/a/b", Some((AgentDir::Data, "a/b"))),
            ("@files", Some((AgentDir::Files, ""))),
            ("@data/", Some((AgentDir::Data, ""))),
            ("@files//etc/passwd", Some((AgentDir::Files, "/etc/passwd"))),
            ("@files/../@data/x", Some((AgentDir::Files, "../@data/x"))),
            ("./@files/a.md", None),
            ("a/../@files/a.md", None),
            ("/@files/a.md", None),
            ("@FILES/a.md", None),
            ("@filesystem/a", None),
            (" @files/a", None),
            ("@files\0/a", None),
            ("@output/a.txt", None),
            ("", None),
        ];
        for (path, want) in table {
            assert_eq!(AgentDir::split(path), want, "{path:?}");
        }
    }

    #[test]
    fn names_in_any_script_become_unique_directory_names() {
        let long = "x".repeat(1_000);
        let names = ["leo", "Leo", "小林", "..", ".", "", "a/b", "a-b", "a b", "a\0b", "-rf", "~", "@data", &long];
        let found: HashSet<String> = names.iter().map(|name| data("/p", name)).collect();
        assert_eq!(found.len(), names.len());
        for path in &found {
            let parts: Vec<&str> = path.split('/').collect();
            let [_, project, agent] = parts.as_slice() else { panic!("{path}") };
            for part in [project, agent] {
                assert!(part.chars().all(|letter| letter.is_alphanumeric() || letter == '-') && part.len() < 200);
            }
        }
        let lowered: HashSet<String> = found.iter().map(|path| path.to_lowercase()).collect();
        assert_eq!(lowered.len(), names.len(), "also where capitals do not count");
        let path = data("/home/me/my app/", "小林");
        assert!(path.starts_with("data/my-app-"), "{path}");
        assert_eq!(path.rsplit('/').next().map(readable), Some("小林"));
        assert_ne!(data_of("/a/app"), data_of("/b/app"));
    }
}
