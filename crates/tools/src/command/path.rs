//! Where programs that run without a sandbox are looked for.
//!
//! An agent's commands could plant a program: a `git` in `.venv/bin` of the project would run in place of the user's
//! own. So nothing within the folder counts, nor a place that depends on where we are.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where programs are if nothing that can be trusted is left.
const SYSTEM: &str = "/usr/local/bin:/usr/bin:/bin";

/// The same list of places, without relative ones and those within `root`, also through links.
pub(super) fn outside(places: &str, root: &Path) -> String {
    let is_outside = |place: &&str| {
        let place = Path::new(place);
        place.is_absolute() && real(place).is_some_and(|place| !is_within(&place, root))
    };
    let kept: Vec<&str> = places.split(':').filter(is_outside).collect();
    // An empty list would stand for the folder that we are in.
    if kept.is_empty() { SYSTEM.to_owned() } else { kept.join(":") }
}

/// The program by this name in such a list, unless it is a link into `root`.
pub(super) fn find(name: &str, places: &str, root: &Path) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
            && real(path).is_some_and(|path| !is_within(&path, root))
    };
    places.split(':').map(|place| Path::new(place).join(name)).find(is_program)
}

/// The user's own program of this name, by the `PATH` among some variables.
pub(super) fn user_program(name: &str, vars: &[(String, String)], root: &Path) -> Option<PathBuf> {
    let places = vars.iter().find(|(name, _)| name == "PATH").map(|(_, places)| places.as_str());
    find(name, &outside(places.unwrap_or_default(), root), root)
}

/// The folder that a program was installed to, `bin` and all, where that is not the system's root.
pub(super) fn installed(program: &Path) -> Option<PathBuf> {
    real(program)?.parent()?.parent().filter(|folder| folder.parent().is_some()).map(Path::to_owned)
}

fn real(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

fn is_within(path: &Path, root: &Path) -> bool {
    path.starts_with(root) || real(root).is_some_and(|root| path.starts_with(root))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_within_the_folder_counts() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let [root, own] = ["root", "own"].map(|name| base.join(name));
        for place in [root.join(".venv/bin"), own.clone()] {
            fs::create_dir_all(&place).unwrap();
            fs::write(place.join("git"), "#!/bin/sh\n").unwrap();
            fs::set_permissions(place.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
        }
        symlink(root.join(".venv/bin"), base.join("link")).unwrap();
        fs::create_dir(base.join("links")).unwrap();
        symlink(root.join(".venv/bin/git"), base.join("links/git")).unwrap();
        let list = |places: &[&Path]| places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>();
        let trap = list(&[&root.join(".venv/bin"), &base.join("link"), Path::new(""), Path::new("bin"), &own]);
        assert_eq!(outside(&trap.join(":"), &root), own.display().to_string());
        assert_eq!(outside(&trap.join(":"), &base.join("link/../..")), own.display().to_string());
        assert_eq!(outside("bin::.", &root), SYSTEM);

        let places = list(&[&base.join("links"), &own]).join(":");
        assert_eq!(find("git", &places, &root), Some(own.join("git")));
        assert_eq!(find("git", &list(&[&base.join("links")]).join(":"), &root), None);
    }
}
