//! The file tree that a sandboxed command sees, as a list of mounts. Both ways to make namespaces build it: our own and
//! bubblewrap.
//!
//! Everything is put in from the top down, so that what lies deeper wins. A name that must stay what it is becomes a
//! mount, and so does every folder above it within what can be written: a mount cannot be renamed, removed or replaced.

use std::collections::HashMap;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use crate::spec::{Isolation, Network, Spec};

/// The system's own folders: programs and libraries, and how they are set up.
pub(super) const SYSTEM: [&str; 11] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store", "/gnu/store"];

/// System secrets. Hidden if we are root, because file permissions do not stop root.
pub(super) const SECRETS: [&str; 9] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/krb5.keytab",
];

/// Kernel settings. Root may change them even without capabilities.
const SWITCHES: [&str; 7] =
    ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/acpi", "/proc/scsi", "/proc/mtrr"];

/// The folder for temporary files, and its other name.
const TMP: &str = "/tmp";
const OTHER_TMP: &str = "/var/tmp";

/// How a path is put in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MountKind {
    Read,
    /// Read and written.
    Write,
    /// A folder that is empty at first, and gone afterwards.
    Fresh,
    /// A folder without content.
    HideFolder,
    /// A file that cannot be opened.
    HideFile,
}

/// The file tree, beside `/proc` and `/dev`, which every command has.
#[derive(Debug)]
pub(super) struct FileTree {
    /// Links: path and target.
    pub(super) links: Vec<(PathBuf, PathBuf)>,
    /// Folders of the system, read-only.
    pub(super) system: Vec<&'static str>,
    /// Switches of the kernel, read-only.
    pub(super) switches: Vec<&'static str>,
    /// The most bytes that one temporary file system holds: what lives in memory counts as memory.
    pub(super) size: u64,
    /// The only name server that programs are told of; `None`: those of the machine.
    pub(super) names_server: Option<Ipv4Addr>,
    /// Everything else, from the top down.
    pub(super) puts: Vec<(PathBuf, MountKind)>,
}

impl FileTree {
    /// Reads the machine as this process sees it, so it must run before any namespace is made.
    pub(super) fn of(spec: &Spec) -> Self {
        let standard = Isolation::default();
        let isolation = spec.isolation.as_ref().unwrap_or(&standard);
        let (mut links, mut system) = (Vec::new(), Vec::new());
        for path in SYSTEM {
            match fs::read_link(path) {
                Ok(target) => links.push((PathBuf::from(path), target)),
                Err(_) if Path::new(path).is_dir() => system.push(path),
                Err(_) => {}
            }
        }
        let mut puts = puts(isolation);
        if puts.iter().any(|(path, _)| path.starts_with(OTHER_TMP)) {
            puts.insert(0, (PathBuf::from(OTHER_TMP), MountKind::Fresh));
        } else {
            links.push((PathBuf::from(OTHER_TMP), PathBuf::from(TMP)));
        }
        let switches = SWITCHES.into_iter().filter(|path| Path::new(path).exists()).collect();
        Self { links, system, switches, size: spec.limits.memory / 4, names_server: None, puts }
    }
}

/// The mounts, from the top down.
fn puts(isolation: &Isolation) -> Vec<(PathBuf, MountKind)> {
    let mut puts = vec![(PathBuf::from(TMP), MountKind::Fresh)];
    puts.extend(isolation.home.iter().map(|home| (home.clone(), MountKind::Fresh)));
    if isolation.network == Network::All {
        // Often a link to a file elsewhere that another program keeps up to date.
        let names = fs::canonicalize("/etc/resolv.conf").ok().filter(|path| !path.starts_with("/etc"));
        puts.extend(names.map(|path| (path, MountKind::Read)));
    }
    let real = |path: &PathBuf| is_real(path).then(|| path.clone());
    puts.extend(isolation.readable.iter().filter_map(real).map(|path| (path, MountKind::Read)));
    puts.extend(isolation.writable.iter().filter_map(real).map(|path| (path, MountKind::Write)));
    let kept = isolation.protected.iter().chain(&isolation.hidden);
    puts.extend(kept.filter_map(real).flat_map(|path| above(isolation, &path)).map(|path| (path, MountKind::Write)));
    puts.extend(isolation.protected.iter().filter_map(real).map(|path| (path, MountKind::Read)));
    let hide = |path: PathBuf| if path.is_dir() { (path, MountKind::HideFolder) } else { (path, MountKind::HideFile) };
    let visible =
        |path: &PathBuf| isolation.readable.iter().chain(&isolation.writable).any(|root| path.starts_with(root));
    puts.extend(isolation.hidden.iter().filter(|path| visible(path)).filter_map(real).map(hide));
    if rustix::process::geteuid().is_root() {
        puts.extend(SECRETS.iter().map(PathBuf::from).filter_map(|path| real(&path)).map(hide));
    }
    puts.sort_by_key(|(path, _)| path.components().count());
    needed(&puts)
}

/// Drops redundant mounts, since each costs time: a read-only path inside a read-only one, and everything inside a hidden
/// folder. Of several entries for one path the last wins.
fn needed(puts: &[(PathBuf, MountKind)]) -> Vec<(PathBuf, MountKind)> {
    let last: HashMap<&Path, usize> = puts.iter().enumerate().map(|(at, (path, _))| (path.as_path(), at)).collect();
    let mut around: HashMap<&Path, MountKind> = SYSTEM.iter().map(|path| (Path::new(*path), MountKind::Read)).collect();
    let mut kept = Vec::new();
    for (at, (path, put)) in puts.iter().enumerate() {
        let is_last = last.get(path.as_path()) == Some(&at);
        let outer = path.ancestors().find_map(|folder| around.get(folder));
        let is_redundant =
            outer == Some(&MountKind::HideFolder) || (*put == MountKind::Read && outer == Some(&MountKind::Read));
        if is_last && !is_redundant {
            around.insert(path, *put);
            kept.push((path.clone(), *put));
        }
    }
    kept
}

/// The folders between a writable root and a protected path in it.
fn above(isolation: &Isolation, path: &Path) -> Vec<PathBuf> {
    let Some(root) =
        isolation.writable.iter().filter(|root| path.starts_with(root)).max_by_key(|root| root.as_os_str().len())
    else {
        return Vec::new();
    };
    path.ancestors().skip(1).take_while(|folder| *folder != root.as_path()).map(Path::to_owned).collect()
}

/// Whether something is there under this very name, and not through a link.
fn is_real(path: &Path) -> bool {
    path.canonicalize().is_ok_and(|real| real == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deeper_paths_win_and_parents_hold_protected_paths() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/.git/hooks")).unwrap();
        fs::create_dir_all(root.join("a/keys/old")).unwrap();
        fs::write(root.join("a/.env"), "x").unwrap();
        let isolation = Isolation {
            readable: vec![root.clone()],
            writable: vec![root.join("a")],
            protected: vec![root.join("a/.git/hooks"), root.join("a/.mcp.json")],
            hidden: vec![root.join("a/keys"), root.join("a/keys/old"), root.join("a/.env")],
            ..Isolation::default()
        };
        let own: Vec<(PathBuf, MountKind)> =
            puts(&isolation).into_iter().filter(|(path, _)| path.starts_with(&root)).collect();
        let want = [
            ("", MountKind::Read),
            ("a", MountKind::Write),
            ("a/.git", MountKind::Write),
            ("a/keys", MountKind::HideFolder),
            ("a/.env", MountKind::HideFile),
            ("a/.git/hooks", MountKind::Read),
        ];
        let want: Vec<(PathBuf, MountKind)> =
            want.map(|(path, put)| (if path.is_empty() { root.clone() } else { root.join(path) }, put)).to_vec();
        assert_eq!(own, want);
    }

    #[test]
    fn many_paths_are_sorted_out_in_no_time() {
        let many = |put| (0..20_000).map(move |number| (PathBuf::from(format!("/p/{number}")), put));
        let mut puts = vec![(PathBuf::from("/p"), MountKind::Read), (PathBuf::from("/usr/x"), MountKind::Read)];
        puts.extend(many(MountKind::Read).chain(many(MountKind::HideFile)));
        let started = std::time::Instant::now();
        let kept = needed(&puts);
        assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
        assert_eq!(kept.len(), 20_001);
        assert!(kept.iter().skip(1).all(|(_, put)| *put == MountKind::HideFile));
    }
}
