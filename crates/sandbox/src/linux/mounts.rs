//! The file tree of a command, built by us: an empty file system, what is put into it, and then it becomes the root.
//!
//! Sources are opened where the machine has them and targets beneath the new root, both without following a link, so
//! that nothing another process renames meanwhile leads a mount elsewhere.

use std::fs;
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat, openat2, symlinkat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags,
    fsconfig_create, fsconfig_set_string, fsmount, fsopen, mount_change, move_mount, open_tree, unmount,
};
use rustix::process::{chdir, fchdir, pivot_root, umask};

use super::view::{FileTree, MountKind};

const READ_ONLY: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_RDONLY;
const NO_SETUID: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID;
const NO_DEVICES: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NODEV;
const NO_PROGRAMS: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOEXEC;
/// What holds for everything but the devices below `/dev`.
const PLAIN: MountAttrFlags = NO_SETUID.union(NO_DEVICES);

/// Devices that programs expect.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Links below `/dev` that programs expect.
const DEVICE_LINKS: [(&str, &str); 6] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/core", "/proc/kcore"),
    ("/dev/ptmx", "pts/ptmx"),
];

/// The file that names the name servers, and ours.
const NAMES_FILE: &str = "/etc/resolv.conf";
const OWN_NAMES_FILE: &str = "/.resolv.conf";

/// Builds the tree and makes it the root of this mount namespace; the machine's own tree is gone from it afterwards.
/// Needs every capability in the namespace.
pub(super) fn enter(view: &FileTree) -> Result<(), String> {
    let mask = umask(Mode::empty());
    let built = build(view);
    umask(mask);
    built
}

fn build(view: &FileTree) -> Result<(), String> {
    let failed = |doing: &str, error: io::Error| format!("cannot {doing}: {error}");
    // Mounts made here stay here, and mounts that the machine makes later do not appear here, where nothing restricts them.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|error| failed("keep mounts apart", error.into()))?;
    let root = Root::new().map_err(|error| failed("mount an empty root", error))?;
    let at = |path: &str, error: io::Error| format!("cannot put `{path}` into the sandbox: {error}");
    for path in &view.system {
        root.bind(Path::new(path), Path::new(path), PLAIN | READ_ONLY).map_err(|error| at(path, error))?;
    }
    root.fill_proc(view).map_err(|error| at("/proc", error))?;
    root.fill_dev(view).map_err(|error| at("/dev", error))?;
    for (path, target) in &view.links {
        root.link(path, target).map_err(|error| at(&path.display().to_string(), error))?;
    }
    for (path, put) in &view.puts {
        root.put(path, *put, view.size).map_err(|error| at(&path.display().to_string(), error))?;
    }
    if let Some(server) = view.names_server {
        root.name_server(server).map_err(|error| at(NAMES_FILE, error))?;
    }
    set_attributes(&root.0, READ_ONLY, false).map_err(|error| failed("make the root read-only", error))?;
    root.pivot().map_err(|error| failed("leave the machine's own file tree", error.into()))
}

/// The new root, mounted over the old one, which every path that begins with `/` still means until [`Root::pivot`].
struct Root(OwnedFd);

impl Root {
    fn new() -> io::Result<Self> {
        let mount = fresh("tmpfs", &[("mode", "0755")], PLAIN)?;
        let old = openat(CWD, "/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        attach(&mount, &old)?;
        Ok(Self(mount))
    }

    fn put(&self, path: &Path, put: MountKind, size: u64) -> io::Result<()> {
        // The machine's root would bring its `/proc`, `/dev` and home folders along.
        if path.parent().is_none() {
            return Err(io::Error::other("work in a folder below the root folder"));
        }
        let size = size.to_string();
        match put {
            MountKind::Read => self.bind(path, path, PLAIN | READ_ONLY),
            MountKind::Write => self.bind(path, path, PLAIN),
            MountKind::Fresh => self.mount(path, &fresh("tmpfs", &[("mode", "1777"), ("size", &size)], PLAIN)?),
            MountKind::HideFolder => self.hide(path, &fresh("tmpfs", &[("mode", "0000")], PLAIN | READ_ONLY)?),
            // Devices cannot be opened on this mount: "permission denied", and not an empty file.
            MountKind::HideFile => {
                let null = openat(CWD, "/dev/null", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
                self.hide(path, &cloned(&null, PLAIN | READ_ONLY)?)
            }
        }
    }

    fn fill_proc(&self, view: &FileTree) -> io::Result<()> {
        self.mount(Path::new("/proc"), &fresh("proc", &[], PLAIN | NO_PROGRAMS)?)?;
        for path in &view.switches {
            let place = self.place(Path::new(path), true)?;
            attach(&cloned(&place, PLAIN | NO_PROGRAMS | READ_ONLY)?, &place)?;
        }
        Ok(())
    }

    fn fill_dev(&self, view: &FileTree) -> io::Result<()> {
        let dev = fresh("tmpfs", &[("mode", "0755")], PLAIN)?;
        self.mount(Path::new("/dev"), &dev)?;
        for path in DEVICES.map(|name| Path::new("/dev").join(name)) {
            match self.bind(&path, &path, NO_SETUID | NO_PROGRAMS) {
                // Some containers lack one.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                bound => bound?,
            }
        }
        for (path, target) in DEVICE_LINKS {
            self.link(Path::new(path), Path::new(target))?;
        }
        let terminals = fresh("devpts", &[("ptmxmode", "0666"), ("mode", "620")], NO_SETUID | NO_PROGRAMS)?;
        self.mount(Path::new("/dev/pts"), &terminals)?;
        let size = view.size.to_string();
        self.mount(Path::new("/dev/shm"), &fresh("tmpfs", &[("mode", "1777"), ("size", &size)], PLAIN)?)?;
        set_attributes(&dev, READ_ONLY, false)
    }

    /// Shows a file or folder of the machine at a place of the new tree, with every mount below it.
    fn bind(&self, from: &Path, to: &Path, attributes: MountAttrFlags) -> io::Result<()> {
        let source = openat2(CWD, from, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
        let is_folder = FileType::from_raw_mode(fstat(&source)?.st_mode) == FileType::Directory;
        let place = self.place(to, is_folder)?;
        attach(&cloned(&source, attributes)?, &place)
    }

    /// Names this server as the only one. Look-ups end there at once, and no domain is tried behind a name.
    fn name_server(&self, server: Ipv4Addr) -> io::Result<()> {
        // Often a link to a file elsewhere. Where there is no file, programs use this machine's own address.
        let Ok(path) = fs::canonicalize(NAMES_FILE) else { return Ok(()) };
        self.place(Path::new(OWN_NAMES_FILE), false)?;
        let own = OWN_NAMES_FILE.trim_start_matches('/');
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = openat(&self.0, own, flags, Mode::empty())?;
        fs::File::from(file).write_all(format!("nameserver {server}\nsearch .\n").as_bytes())?;
        attach(&cloned(&self.open(&self.0, Path::new(own))?, PLAIN | READ_ONLY)?, &self.place(&path, false)?)
    }

    fn mount(&self, path: &Path, mount: &OwnedFd) -> io::Result<()> {
        attach(mount, &self.place(path, true)?)
    }

    /// Covers a file or folder. A path that has vanished meanwhile is not created, because it would appear in the
    /// project.
    fn hide(&self, path: &Path, cover: &OwnedFd) -> io::Result<()> {
        match self.open(&self.0, path.strip_prefix("/").map_err(|_| Errno::INVAL)?) {
            Err(Errno::NOENT) => Ok(()),
            place => attach(cover, &place?),
        }
    }

    fn link(&self, path: &Path, target: &Path) -> io::Result<()> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Err(Errno::INVAL.into()) };
        Ok(symlinkat(target, self.place(folder, true)?, name)?)
    }

    /// Opens a place beneath the new root; makes it, and the folders on the way, where they are missing.
    fn place(&self, path: &Path, is_folder: bool) -> io::Result<OwnedFd> {
        let below = path.strip_prefix("/").map_err(|_| Errno::INVAL)?;
        match self.open(&self.0, below) {
            Err(Errno::NOENT) => {}
            opened => return Ok(opened?),
        }
        let mut here = self.0.try_clone()?;
        let mut parts = below.components().peekable();
        while let Some(part) = parts.next() {
            let Component::Normal(name) = part else { return Err(Errno::INVAL.into()) };
            let mode = Mode::from_raw_mode(0o755);
            let made = if parts.peek().is_some() || is_folder {
                mkdirat(&here, name, mode)
            } else {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                openat(&here, name, flags, Mode::from_raw_mode(0o444)).map(drop)
            };
            match made {
                Ok(()) | Err(Errno::EXIST) => here = self.open(&here, Path::new(name))?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(here)
    }

    fn open(&self, folder: &OwnedFd, below: &Path) -> rustix::io::Result<OwnedFd> {
        let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        openat2(folder, below, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)
    }

    /// Makes it the root, and leaves the old one behind for good.
    fn pivot(&self) -> rustix::io::Result<()> {
        fchdir(&self.0)?;
        // The old root comes to lie over the new one, and is taken off from there.
        pivot_root(".", ".")?;
        unmount(".", UnmountFlags::DETACH)?;
        chdir("/")
    }
}

/// A new file system that is mounted nowhere yet.
fn fresh(kind: &str, options: &[(&str, &str)], attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    let system = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        fsconfig_set_string(&system, *name, *value)?;
    }
    fsconfig_create(&system)?;
    Ok(fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// A second mount of something, and of everything mounted below it, that is mounted nowhere yet.
fn cloned(source: &OwnedFd, attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    let tree = open_tree(source, "", flags)?;
    set_attributes(&tree, attributes, true)?;
    Ok(tree)
}

fn attach(mount: &OwnedFd, place: &OwnedFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(mount, "", place, "", flags)?)
}

/// The argument of `mount_setattr`, as the system defines it.
#[repr(C)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Adds attributes to a mount, or to it and all below.
#[expect(unsafe_code, reason = "no library has this system call (Linux 5.12)")]
fn set_attributes(mount: impl AsFd, attributes: MountAttrFlags, is_recursive: bool) -> io::Result<()> {
    let attributes = Attributes { set: attributes.bits().into(), clear: 0, propagation: 0, user_namespace: 0 };
    let flags = libc::AT_EMPTY_PATH | if is_recursive { libc::AT_RECURSIVE } else { 0 };
    let mount = mount.as_fd().as_raw_fd();
    // SAFETY: the path is an empty string and the structure is of the size that is named; both outlive the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount,
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
