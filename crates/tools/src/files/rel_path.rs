//! Where something is beneath a root: a clean, relative path, and whether the root is the project's.
//!
//! What a model writes becomes a `RelPath` before anything looks at the disk: no `..`, no `.`, no doubled or trailing
//! slashes, nothing absolute. So the policy judges the name that is opened. This is about names only; that a *place*
//! does not lead out through a link is the business of `root`.

use std::fmt;
use std::path::{Component, Path};

use max_team_core::agent_dirs::AgentDir;
use max_team_core::policy::ActionKind;

use crate::text::{clip, visible};
use crate::tool::ToolError;

/// Bytes of a path that a model may write.
const PATH_BYTES_MAX: usize = 4_096;
/// Bytes of a path that an error repeats.
const PATH_SHOWN_MAX: usize = 200;

/// What stands before a place of the project that has the name of a folder of one's own.
const HERE: &str = ".";
/// The label of a place outside the project, whose path counts from the root of the file system.
const OUTSIDE: &str = "/";

/// A clean path relative to the root, with `/` between its parts. The root itself is written `.`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RelPath {
    /// What a model writes before the path: the name of a folder of its own, [`HERE`], or nothing.
    label: &'static str,
    path: String,
}

impl RelPath {
    /// Cleans a path. `homes` are the names that the root is known by; a path beneath one of them is made relative.
    pub(crate) fn parse(text: &str, homes: &[&Path]) -> Result<Self, ToolError> {
        let home = || homes.first().map(|home| home.display().to_string()).unwrap_or_default();
        if text.is_empty() {
            return Err(ToolError::correctable("the path is empty; write `.` for the project folder"));
        }
        check(text)?;
        let shown = || shown(text);
        if text == "~" || text.starts_with("~/") {
            return Err(ToolError::correctable(format!(
                "`~` is not known here; write `{}` relative to the project folder `{}`",
                shown(),
                home()
            )));
        }
        let outside = || {
            ToolError::correctable(format!(
                "`{}` is outside the project folder `{}`; write paths relative to it, like `src/main.rs`",
                shown(),
                home()
            ))
        };
        let clean = clean(Path::new(text)).ok_or_else(outside)?;
        if !text.starts_with('/') {
            return Ok(Self { label: "", path: clean });
        }
        let absolute = format!("/{clean}");
        let inner = homes.iter().find_map(|home| Path::new(&absolute).strip_prefix(home).ok());
        // The text was valid UTF-8 and only shed parts, so nothing is lost here.
        let path = inner.map(|inner| inner.to_string_lossy().into_owned()).ok_or_else(outside)?;
        Ok(Self { label: "", path })
    }

    /// Cleans a path that leaves the project, which lies at `project`.
    pub(crate) fn outside(text: &str, project: &Path) -> Result<Self, ToolError> {
        check(text)?;
        let high = || ToolError::correctable(format!("`{}` is not a path", shown(text)));
        Ok(Self { label: OUTSIDE, path: clean(&project.join(text)).ok_or_else(high)? })
    }

    /// Whether it lies outside the project.
    pub(crate) fn is_outside(&self) -> bool {
        self.label == OUTSIDE
    }

    /// Cleans a path in a folder of one's own, which is all that can be named from there.
    pub(crate) fn own(folder: AgentDir, rest: &str) -> Result<Self, ToolError> {
        let label = folder.name();
        let whole = format!("{label}/{rest}");
        check(&whole)?;
        let outside = || {
            let shown = shown(&whole);
            ToolError::correctable(format!("`{shown}` leads out of `{label}`; write paths like `{label}/notes.md`"))
        };
        let path = clean(Path::new(rest)).filter(|_| !rest.starts_with('/')).ok_or_else(outside)?;
        Ok(Self { label, path })
    }

    /// The same so that it is not taken for a place in a folder of one's own.
    pub(crate) fn of_project(self) -> Self {
        let label = if AgentDir::split(&self.path).is_some() { HERE } else { "" };
        Self { label, ..self }
    }

    /// The folder of one's own that it lies in; `None`: it is of the project.
    pub(crate) fn folder(&self) -> Option<AgentDir> {
        AgentDir::parse(self.label)
    }

    /// What reading there means to the policy.
    pub(crate) fn reading(&self) -> ActionKind {
        if self.folder().is_some() { ActionKind::ReadOwn } else { ActionKind::Read }
    }

    /// What writing there means to the policy.
    pub(crate) fn writing(&self) -> ActionKind {
        if self.folder().is_some() { ActionKind::WriteOwn } else { ActionKind::Write }
    }

    /// The path from the root; `.` for the root itself.
    pub(crate) fn as_str(&self) -> &str {
        if self.path.is_empty() { "." } else { &self.path }
    }

    /// The path to open.
    pub(crate) fn as_path(&self) -> &Path {
        Path::new(self.as_str())
    }

    /// What a model writes before a path from the same root; nothing in the project, as a rule.
    pub(crate) fn label(&self) -> &'static str {
        self.label
    }

    /// The parts, outermost first; none for the root itself.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &str> {
        self.path.split('/').filter(|part| !part.is_empty())
    }
}

/// As a model would write it.
impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.label, self.path.as_str()) {
            ("", _) => f.write_str(self.as_str()),
            (label, "") => f.write_str(label),
            (OUTSIDE, path) => write!(f, "/{path}"),
            (label, path) => write!(f, "{label}/{path}"),
        }
    }
}

fn shown(text: &str) -> String {
    visible(&clip(text, PATH_SHOWN_MAX))
}

/// Refuses what no path can be.
fn check(text: &str) -> Result<(), ToolError> {
    if text.len() > PATH_BYTES_MAX {
        return Err(ToolError::correctable(format!("the path `{}` is too long", shown(text))));
    }
    if text.chars().any(char::is_control) {
        return Err(ToolError::correctable(format!("the path `{}` has a control character in it", shown(text))));
    }
    Ok(())
}

/// The parts of a path joined by `/`, with `.` and `..` worked out on the names alone; `None` if it climbs too high.
fn clean(path: &Path) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::ParentDir => drop(parts.pop()?),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<String, String> {
        let homes = [Path::new("/real/project"), Path::new("/home/me/project")];
        RelPath::parse(text, &homes).map(|place| place.to_string()).map_err(|err| err.to_string())
    }

    #[test]
    fn clean_paths_stay_beneath() {
        let table = [
            ("a", "a"),
            (".", "."),
            ("./a//b/", "a/b"),
            ("a/../b", "b"),
            ("a/..", "."),
            ("/real/project", "."),
            ("/real/project/a/b", "a/b"),
            ("/real/project/../project/a", "a"),
            ("/home/me/project/a", "a"),
            ("~a", "~a"),
            ("..a/…", "..a/…"),
        ];
        for (text, want) in table {
            assert_eq!(parse(text).as_deref(), Ok(want), "{text}");
        }
    }

    #[test]
    fn a_place_outside_is_absolute() {
        let project = Path::new("/real/project");
        for (text, want) in [("/etc/hosts", "/etc/hosts"), ("../other/a", "/real/other/a"), ("/", "/"), ("..", "/real")]
        {
            let place = RelPath::outside(text, project).unwrap();
            assert!(place.is_outside() && place.folder().is_none());
            assert_eq!(place.to_string(), want);
        }
        assert!(RelPath::outside("/../x", project).is_err() && RelPath::outside("a\0b", project).is_err());
    }

    #[test]
    fn everything_else_is_refused_with_a_way_out() {
        let long = "x/".repeat(4_000);
        let table = [
            ("", "empty"),
            ("..", "outside"),
            ("../a", "outside"),
            ("a/../../a", "outside"),
            ("/etc/passwd", "relative to it"),
            ("/real/project-evil/a", "outside"),
            ("/real/project/../../etc/passwd", "outside"),
            ("/..", "outside"),
            ("~", "not known"),
            ("~/a", "not known"),
            ("a\0b", "control character"),
            ("a\nb", "control character"),
            (&long, "too long"),
        ];
        for (text, want) in table {
            let err = parse(text).unwrap_err();
            assert!(err.contains(want), "{text:?}: {err}");
            assert!(err.len() < 500);
        }
    }
}
