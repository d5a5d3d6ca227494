//! Walls as bubblewrap's arguments: an empty machine, and what is put into it.
//!
//! Everything is put in from the top down, so that what lies deeper wins. A name that must stay what it is becomes a
//! mount, and so does every folder above it within what can be written: a mount cannot be renamed, removed or replaced.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};

use crate::spec::{Network, Spec, Walls};

/// Where the supervisor is, inside.
pub(super) const INSIDE: &str = "/.supervisor";

/// The system's own folders: programs and libraries, and how they are set up.
pub(super) const SYSTEM: [&str; 11] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store", "/gnu/store"];

/// What of the system is nobody's business. As root, its permissions would keep nobody out.
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

/// Switches of the kernel. Root may turn them, whatever else was taken from it.
const SWITCHES: [&str; 7] =
    ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/acpi", "/proc/scsi", "/proc/mtrr"];

/// Arguments that bubblewrap takes.
pub(super) const ARGUMENTS_MAX: usize = 9_000;

/// How a path is put in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Put {
    /// Read only.
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

/// Hands the arguments over in a file that whoever is started has to have open: there may be more of them than the system
/// lets a program be started with.
pub(super) fn hand(command: &mut Command, arguments: &[OsString]) -> io::Result<File> {
    let mut file = File::from(memfd_create("walls", MemfdFlags::CLOEXEC)?);
    for word in arguments {
        file.write_all(word.as_bytes())?;
        file.write_all(&[0])?;
    }
    file.rewind()?;
    command.arg("--args").arg(file.as_raw_fd().to_string());
    Ok(file)
}

/// Leaves a file open in whoever is started.
#[expect(unsafe_code, reason = "the standard library has no safe way to hand on one more file")]
pub(super) fn keep(command: &mut Command, file: File) {
    // SAFETY: one system call, nothing is allocated and no lock is taken, so it may be done in a forked process.
    unsafe {
        command.pre_exec(move || Ok(fcntl_setfd(&file, FdFlags::empty())?));
    }
}

/// The arguments, up to the program.
pub(super) fn arguments(spec: &Spec, program: Option<&Path>) -> Vec<OsString> {
    let mut args: Vec<OsString> = Vec::new();
    let mut add = |words: &[&str]| args.extend(words.iter().map(OsString::from));
    add(&["--unshare-user-try", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]);
    // Not to die with its parent: the supervisor within sees that we are gone, and has something left to do then.
    add(&["--new-session", "--as-pid-1", "--cap-drop", "ALL"]);
    let standard = Walls::default();
    let walls = spec.walls.as_ref().unwrap_or(&standard);
    if walls.network != Network::All {
        add(&["--unshare-net"]);
    }
    for path in SYSTEM {
        match fs::read_link(path) {
            Ok(target) => args.extend([OsString::from("--symlink"), target.into(), path.into()]),
            Err(_) if Path::new(path).is_dir() => args.extend(["--ro-bind", path, path].map(OsString::from)),
            Err(_) => {}
        }
    }
    args.extend(["--proc", "/proc", "--dev", "/dev"].map(OsString::from));
    if rustix::process::geteuid().is_root() {
        let here = SWITCHES.into_iter().filter(|path| Path::new(path).exists());
        args.extend(here.flat_map(|path| ["--ro-bind", path, path].map(OsString::from)));
    }
    args.extend(["--symlink", "/tmp", "/var/tmp"].map(OsString::from));
    // What lives in memory counts as memory.
    let size = (spec.limits.memory / 4).to_string();
    args.extend(
        ["--perms", "1777", "--size", &size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"].map(OsString::from),
    );
    if let Some(program) = program {
        args.extend([OsString::from("--ro-bind"), program.into(), INSIDE.into()]);
    }
    for (path, put) in puts(walls) {
        args.extend(words(&path, put, &size));
    }
    args.extend(["--remount-ro", "/", "--chdir", "/"].map(OsString::from));
    args
}

fn words(path: &Path, put: Put, size: &str) -> Vec<OsString> {
    let path = path.as_os_str().to_owned();
    let word = OsString::from;
    match put {
        Put::Read => vec![word("--ro-bind"), path.clone(), path],
        Put::Write => vec![word("--bind"), path.clone(), path],
        Put::Fresh => vec![word("--perms"), word("1777"), word("--size"), word(size), word("--tmpfs"), path],
        Put::HideFolder => {
            vec![word("--perms"), word("0000"), word("--tmpfs"), path.clone(), word("--remount-ro"), path]
        }
        // Devices cannot be opened on what is put in this way, so this is "permission denied" and not an empty file.
        Put::HideFile => vec![word("--ro-bind"), word("/dev/null"), path],
    }
}

/// What is put in, from the top down.
fn puts(walls: &Walls) -> Vec<(PathBuf, Put)> {
    let mut puts = vec![(PathBuf::from("/tmp"), Put::Fresh)];
    puts.extend(walls.home.iter().map(|home| (home.clone(), Put::Fresh)));
    if walls.network == Network::All {
        // Often a link to where something keeps it up to date.
        let names = fs::canonicalize("/etc/resolv.conf").ok().filter(|path| !path.starts_with("/etc"));
        puts.extend(names.map(|path| (path, Put::Read)));
    }
    let real = |path: &PathBuf| is_real(path).then(|| path.clone());
    puts.extend(walls.readable.iter().filter_map(real).map(|path| (path, Put::Read)));
    puts.extend(walls.writable.iter().filter_map(real).map(|path| (path, Put::Write)));
    let kept = walls.protected.iter().chain(&walls.hidden);
    puts.extend(kept.filter_map(real).flat_map(|path| above(walls, &path)).map(|path| (path, Put::Write)));
    puts.extend(walls.protected.iter().filter_map(real).map(|path| (path, Put::Read)));
    let hide = |path: PathBuf| if path.is_dir() { (path, Put::HideFolder) } else { (path, Put::HideFile) };
    let visible = |path: &PathBuf| walls.readable.iter().chain(&walls.writable).any(|root| path.starts_with(root));
    puts.extend(walls.hidden.iter().filter(|path| visible(path)).filter_map(real).map(hide));
    if rustix::process::geteuid().is_root() {
        puts.extend(SECRETS.iter().map(PathBuf::from).filter_map(|path| real(&path)).map(hide));
    }
    puts.sort_by_key(|(path, _)| path.components().count());
    needed(&puts)
}

/// The same without what changes nothing: each of them costs time. What can be read can be read within, too, and of
/// several ways for one path the last wins.
fn needed(puts: &[(PathBuf, Put)]) -> Vec<(PathBuf, Put)> {
    let last: HashMap<&Path, usize> = puts.iter().enumerate().map(|(at, (path, _))| (path.as_path(), at)).collect();
    let mut around: HashMap<&Path, Put> = SYSTEM.iter().map(|path| (Path::new(*path), Put::Read)).collect();
    let mut kept = Vec::new();
    for (at, (path, put)) in puts.iter().enumerate() {
        let is_last = last.get(path.as_path()) == Some(&at);
        let is_read = path.ancestors().find_map(|folder| around.get(folder)) == Some(&Put::Read);
        if is_last && !(*put == Put::Read && is_read) {
            around.insert(path, *put);
            kept.push((path.clone(), *put));
        }
    }
    kept
}

/// The folders between what can be written and something in it that stays as it is.
fn above(walls: &Walls, path: &Path) -> Vec<PathBuf> {
    let Some(root) =
        walls.writable.iter().filter(|root| path.starts_with(root)).max_by_key(|root| root.as_os_str().len())
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
    fn deeper_wins_and_what_stays_is_held_from_above() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/.git/hooks")).unwrap();
        fs::create_dir_all(root.join("a/keys")).unwrap();
        fs::write(root.join("a/.env"), "x").unwrap();
        let walls = Walls {
            readable: vec![root.clone()],
            writable: vec![root.join("a")],
            protected: vec![root.join("a/.git/hooks"), root.join("a/.mcp.json")],
            hidden: vec![root.join("a/keys"), root.join("a/.env")],
            ..Walls::default()
        };
        let own: Vec<(PathBuf, Put)> = puts(&walls).into_iter().filter(|(path, _)| path.starts_with(&root)).collect();
        let want = [
            ("", Put::Read),
            ("a", Put::Write),
            ("a/.git", Put::Write),
            ("a/keys", Put::HideFolder),
            ("a/.env", Put::HideFile),
            ("a/.git/hooks", Put::Read),
        ];
        let want: Vec<(PathBuf, Put)> =
            want.map(|(path, put)| (if path.is_empty() { root.clone() } else { root.join(path) }, put)).to_vec();
        assert_eq!(own, want);
    }

    #[test]
    fn many_paths_are_sorted_out_in_no_time() {
        let many = |put| (0..20_000).map(move |number| (PathBuf::from(format!("/p/{number}")), put));
        let mut puts = vec![(PathBuf::from("/p"), Put::Read), (PathBuf::from("/usr/x"), Put::Read)];
        puts.extend(many(Put::Read).chain(many(Put::HideFile)));
        let started = std::time::Instant::now();
        let kept = needed(&puts);
        assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
        assert_eq!(kept.len(), 20_001);
        assert!(kept.iter().skip(1).all(|(_, put)| *put == Put::HideFile));
    }
}
