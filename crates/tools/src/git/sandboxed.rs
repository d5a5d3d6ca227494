//! The sandbox around git itself, where it reads files of the working tree.
//!
//! Settings decide which content filters git runs, and new settings can appear between two of our questions: a command
//! of another agent may be at work in the same folder. So a question that could run a filter runs where the filter can
//! do nothing. Only machines whose sandbox has namespaces have this: with Landlock alone, such settings appear only by
//! a command that was allowed knowing that.

use std::fs;
use std::path::{Path, PathBuf};

use max_team_sandbox::{Engine, Isolation, engine, secrets};

use super::GitError;
use super::locks::RepoDirs;
use crate::command::{OBEYED, linked};

/// Questions that run no filter under any settings. All others are asked in a sandbox.
const PLAIN: [&str; 5] = ["config", "hash-object", "log", "ls-files", "rev-parse"];
/// Other repositories whose objects are this one's, too.
const ALTERNATES_MAX: usize = 64;

/// Where a repository is stored.
#[derive(Debug)]
pub(super) struct GitSandbox {
    /// The working tree.
    top: PathBuf,
    /// Git's folder for this working tree, and the one that all working trees share.
    own: PathBuf,
    shared: PathBuf,
    /// Whether it may be written to.
    pub(super) writes: bool,
}

impl GitSandbox {
    /// What to ask git for the places; each is a line of its answer.
    pub(super) const PLACES: [&str; 5] =
        ["rev-parse", "--path-format=absolute", "--show-toplevel", "--git-dir", "--git-common-dir"];

    pub(super) fn read(answer: &str) -> Result<Self, GitError> {
        let mut lines = answer.lines().map(|line| Path::new(line).canonicalize());
        let (Some(Ok(top)), Some(Ok(own)), Some(Ok(shared)), None) =
            (lines.next(), lines.next(), lines.next(), lines.next())
        else {
            return Err(odd("say where it keeps this repository"));
        };
        // A file can name any folder as the shared one; git itself makes only this.
        if own != shared && own.parent() != Some(&shared.join("worktrees")) {
            return Err(odd("be believed about where it keeps this repository (`commondir`)"));
        }
        Ok(Self { top, own, shared, writes: false })
    }

    /// The folder with the objects, for a caller that reads all of them. `names` is the working tree that the
    /// repository's own settings name. A `.git` that is a file can name any folder; a folder that does not name the
    /// tree in return belongs to another.
    pub(super) fn objects(&self, names: Option<&str>) -> Result<PathBuf, GitError> {
        let own = self.top.join(".git");
        let is_named = || names.and_then(|tree| self.own.join(tree).canonicalize().ok()).as_ref() == Some(&self.top);
        let is_genuine = self.shared == own
            || linked(&own).as_ref() == Some(&self.shared)
            || (self.own == self.shared && own.is_file() && is_named());
        let objects = self.shared.join("objects");
        if is_genuine && objects.canonicalize().is_ok_and(|real| real == objects) {
            Ok(objects)
        } else {
            Err(odd("be believed about where it keeps this repository (`.git`)"))
        }
    }

    /// Whether it keeps some of its objects in other repositories.
    pub(super) fn borrows(&self) -> bool {
        self.shared.join("objects/info/alternates").symlink_metadata().is_ok()
    }

    /// Where it is stored.
    pub(super) fn places(&self) -> RepoDirs<'_> {
        RepoDirs { top: &self.top, own: &self.own, shared: &self.shared }
    }

    /// Git's folder that all working trees share.
    pub(super) fn shared(&self) -> &Path {
        &self.shared
    }

    /// The sandbox for one question; `None` if it needs none.
    pub(super) fn isolation(&self, args: &[&str]) -> Option<Isolation> {
        let is_plain = args.first().is_none_or(|word| PLAIN.contains(word));
        if is_plain || !engine().is_ok_and(Engine::has_namespaces) {
            return None;
        }
        let places = [&self.top, &self.own, &self.shared];
        let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
        let mut readable: Vec<PathBuf> = places.map(PathBuf::clone).into();
        readable.extend(alternates(&self.shared));
        // The user's own settings stay, wherever they are included from; keys and logins are not among them.
        let mut hidden = home.as_deref().map(secrets).unwrap_or_default();
        hidden.retain(|secret| !places.iter().any(|place| place.starts_with(secret) || secret.starts_with(place)));
        readable.extend(home);
        // Large files that are stored beside the repository (LFS) are put there while git reads.
        let mut writable = vec![self.shared.join("lfs")];
        if self.writes {
            writable.extend([self.own.clone(), self.shared.clone()]);
        }
        writable.retain(|path| path.is_dir());
        let protected = OBEYED.iter().flat_map(|name| [self.own.join(name), self.shared.join(name)]).collect();
        Some(Isolation { readable, writable, protected, hidden, ..Isolation::default() })
    }
}

fn odd(doing: &str) -> GitError {
    GitError::Failed { doing: doing.to_owned(), words: "ask the user to look at `.git`".to_owned() }
}

/// Folders of objects that a repository borrows. The file can be written by commands, so only such folders count.
fn alternates(shared: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = vec![shared.join("objects")];
    let mut at = 0;
    while let Some(objects) = found.get(at).filter(|_| at < ALTERNATES_MAX).cloned() {
        at += 1;
        let lines = fs::read_to_string(objects.join("info/alternates")).unwrap_or_default();
        for other in lines.lines().take(ALTERNATES_MAX).filter_map(|line| objects.join(line).canonicalize().ok()) {
            if other.ends_with("objects") && !found.contains(&other) {
                found.push(other);
            }
        }
    }
    found.into_iter().skip(1).take(ALTERNATES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_folder_that_git_would_share_is_believed() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for folder in ["top/.git/worktrees/a", "evil"] {
            fs::create_dir_all(base.join(folder)).unwrap();
        }
        let read = |own: &str, shared: &str| {
            let lines = ["top", own, shared].map(|path| base.join(path).display().to_string());
            GitSandbox::read(&lines.join("\n"))
        };
        assert!(read("top/.git", "top/.git").is_ok());
        assert!(read("top/.git/worktrees/a", "top/.git").is_ok());
        assert!(read("top/.git", "evil").is_err());
        assert!(read("top/.git", "none").is_err());
        assert!(GitSandbox::read("").is_err());
    }

    #[test]
    fn objects_are_handed_on_only_of_a_repository_that_knows_the_tree() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for folder in ["top/.git/objects", "private/.git/objects", "sly", "linked/.git"] {
            fs::create_dir_all(base.join(folder)).unwrap();
        }
        let within = |top: &str, own: &str| {
            let lines = [top, own, own].map(|path| base.join(path).display().to_string());
            GitSandbox::read(&lines.join("\n")).unwrap()
        };
        assert_eq!(within("top", "top/.git").objects(None).unwrap(), base.join("top/.git/objects"));
        let named = format!("gitdir: {}\n", base.join("private/.git").display());
        fs::write(base.join("sly/.git"), named).unwrap();
        let sly = within("sly", "private/.git");
        assert!(sly.objects(None).is_err() && sly.objects(Some("..")).is_err());
        assert!(sly.objects(Some("../../sly")).is_ok(), "it names the tree in return");
        std::os::unix::fs::symlink(base.join("private/.git/objects"), base.join("linked/.git/objects")).unwrap();
        assert!(within("linked", "linked/.git").objects(None).is_err());
    }

    #[test]
    fn borrowed_objects_are_found_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for folder in ["a/objects/info", "b/objects/info", "keys"] {
            fs::create_dir_all(base.join(folder)).unwrap();
        }
        let keys = base.join("keys").display().to_string();
        fs::write(base.join("a/objects/info/alternates"), format!("../../b/objects\n{keys}\n/none/objects\n")).unwrap();
        fs::write(base.join("b/objects/info/alternates"), "../../a/objects\n").unwrap();
        assert_eq!(alternates(&base.join("a")), [base.join("b/objects")]);
    }
}
