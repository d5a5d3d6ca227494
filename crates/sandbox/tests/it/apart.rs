//! Namespaces: a command has its own, cannot leave them, and cannot undo how they were built.

use rustix::process::{getegid, geteuid};

use super::*;

#[test]
fn a_command_has_its_own_namespaces_and_our_user() {
    let world = World::new();
    for engine in namespaced() {
        let script = "for kind in user mnt pid net ipc uts; do readlink /proc/self/ns/$kind; done; id -u; id -g; \
                      ls /proc | grep -c '^[0-9]'";
        let (over, output) = world.ran(engine, script);
        let lines: Vec<&str> = output.lines().collect();
        assert_eq!((over.code, lines.len()), (Some(0), 9), "{engine:?}: {output}");
        for (kind, inside) in ["user", "mnt", "pid", "net", "ipc", "uts"].iter().zip(&lines) {
            let outside = fs::read_link(format!("/proc/self/ns/{kind}")).unwrap();
            assert_ne!(outside.to_str(), Some(*inside), "{engine:?}: it shares its {kind} namespace with us");
        }
        assert_eq!(lines[6..8], [geteuid().as_raw().to_string(), getegid().as_raw().to_string()], "{engine:?}");
        let processes: u32 = lines[8].parse().unwrap();
        assert!(processes <= 6, "{engine:?}: it sees {processes} processes");
    }
}

/// The folders, files and links at the top of the tree are the same, whoever makes the namespaces.
#[test]
fn both_engines_build_the_same_file_tree() {
    let world = World::new();
    let script = "ls -A / /dev /tmp /dev/shm \"$PWD\" ..; readlink /bin /var/tmp /dev/fd /dev/ptmx; \
                  stat -c '%a %n' / /tmp /dev/shm /dev/null; \
                  python3 -c 'import pty, os; a, b = pty.openpty(); print(os.ttyname(b))'; \
                  echo x > /dev/null && head -c 4 /dev/zero | od -c | head -1";
    let seen: Vec<(Engine, String)> = namespaced()
        .into_iter()
        .map(|engine| {
            let (over, output) = world.ran(engine, script);
            assert_eq!(over.code, Some(0), "{engine:?}: {output}");
            (engine, output.lines().filter(|line| *line != ".supervisor").collect::<Vec<_>>().join("\n"))
        })
        .collect();
    for (engine, output) in &seen {
        assert!(output.contains("/dev/pts/0"), "{engine:?}: {output}");
        assert_eq!(output, &seen[0].1, "{engine:?} beside {:?}", seen[0].0);
    }
}

/// Every mount but the writable ones is read-only, none honours set-user-ID programs, and none can be changed.
#[test]
fn mounts_cannot_be_undone() {
    let world = World::new();
    for engine in namespaced() {
        let (_, output) = world.ran(engine, "cat /proc/self/mountinfo");
        let own = world.own.to_str().unwrap();
        for line in output.lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            let (path, options) = (fields[4], fields[5]);
            let is_ours = path.starts_with(own) || path.starts_with(world.home.to_str().unwrap());
            let is_device = path.starts_with("/dev/") || path == "/proc" || path == "/tmp";
            assert!(is_ours || is_device || options.starts_with("ro"), "{engine:?}: {line}");
            assert!(options.contains("nosuid"), "{engine:?}: {line}");
        }
        let attacks = [
            "mount -o remount,bind,rw /usr",
            "umount /usr",
            "umount -l \"$PWD\"",
            "mount -t tmpfs none /tmp",
            "mount -t proc none /tmp",
            "unshare -U true",
            "unshare -Ur mount -t tmpfs none /tmp",
            "unshare -m true",
            "nsenter -t 1 -m true",
            "nsenter -t 1 -U true",
            "chroot / true",
            "cat /proc/1/environ",
            "readlink /proc/1/exe",
            "readlink /proc/1/root",
            "readlink /proc/1/fd/0",
            "kill -9 1; kill -0 1 && false",
            "hostname other",
            "python3 -c 'import os; os.open(\"/proc/1/mem\", os.O_RDWR)'",
            "mknod /tmp/disk b 8 0",
            "chown 12345 file",
        ];
        for attack in attacks {
            let (over, output) = world.ran(engine, attack);
            assert_ne!(over.code, Some(0), "{engine:?} {attack}: {output}");
        }
        let (_, output) = world.ran(engine, "grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb):' /proc/self/status");
        assert!(
            output.lines().count() == 5 && output.lines().all(|line| line.ends_with("\t0000000000000000")),
            "{output}"
        );
    }
}

#[test]
fn a_project_below_the_other_folder_for_temporary_files_is_there() {
    let Ok(dir) = tempfile::tempdir_in("/var/tmp") else { return };
    let root = dir.path().canonicalize().unwrap();
    fs::write(root.join("file"), "mine\n").unwrap();
    let world = World::new();
    for engine in namespaced() {
        let isolation = Isolation { readable: vec![root.clone()], writable: vec![root.clone()], ..world.isolation() };
        let spec = Spec {
            isolation: Some(isolation),
            dir: root.clone(),
            ..world.spec("cat file; echo new > made; ls -A /var/tmp | wc -l")
        };
        let (over, output) = ran(engine, &spec).unwrap();
        assert_eq!((over.code, output.as_str()), (Some(0), "mine\n1\n"), "{engine:?}");
        fs::remove_file(root.join("made")).unwrap();
    }
}
