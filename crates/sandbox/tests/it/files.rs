//! What can be read and written, and what cannot.

use std::os::unix::fs::symlink;

use max_team_sandbox::EndReason;

use super::*;

#[test]
fn a_command_works_in_its_own_folder_and_reads_the_project() {
    let world = World::new();
    for engine in engines() {
        let script = "cat file ../readme && echo new > made && rm made && pwd && exit 3";
        let (over, output) = world.ran(engine, script);
        assert_eq!(output, format!("mine\nopen\n{}\n", world.own.display()), "{engine:?}");
        assert_eq!((over.code, over.signal, over.ended), (Some(3), None, EndReason::Exited), "{engine:?}");
        let (over, _) = world.ran(engine, "kill -9 $$");
        assert_eq!((over.code, over.signal, over.ended), (None, Some(9), EndReason::Exited), "{engine:?}");
    }
}

#[test]
fn nothing_else_can_be_written() {
    let world = World::new();
    let outside = [
        world.project.join("new"),
        world.project.join("readme"),
        world.other.join("new"),
        world.other.join("file"),
        "/etc/new".into(),
        "/usr/new".into(),
        "/new".into(),
    ];
    for engine in engines() {
        for path in &outside {
            let (over, output) = world.ran(engine, &format!("echo x > '{}'", path.display()));
            assert_ne!(over.code, Some(0), "{engine:?} {}: {output}", path.display());
        }
        // With what is there already: a wall that does not hold must not cost the machine anything.
        for switch in ["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/mtrr"] {
            let (over, output) = world.ran(engine, &format!("v=$(cat {switch}) && echo \"$v\" > {switch}"));
            assert_ne!(over.code, Some(0), "{engine:?} {switch}: {output}");
        }
        let (over, output) = world.ran(engine, "mv ../readme ../other; ln -s / root; echo x > root/etc/new2; rm root");
        assert!(!Path::new("/etc/new2").exists(), "{engine:?} {over:?} {output}");
        assert_eq!(text(&world.project.join("readme")), "open\n");
        assert_eq!(text(&world.other.join("file")), "theirs\n");
        assert!(!world.project.join("new").exists() && !world.project.join("other").exists());
    }
}

#[test]
fn home_and_the_rest_are_hidden() {
    let world = World::new();
    for engine in engines() {
        for path in [world.home.join(".secret"), world.other.join("file"), "/etc/shadow".into()] {
            let (over, output) = world.ran(engine, &format!("cat '{}'", path.display()));
            assert_ne!(over.code, Some(0), "{engine:?} {}: {output}", path.display());
        }
        let (over, output) = world.ran(engine, "ls -A /root /home /var/log /run 2>/dev/null; ls -A ~root");
        assert!(!output.contains(".bash") && !output.contains("ssh"), "{engine:?} {over:?} {output}");
        // Through another process's eyes.
        let (_, output) = world.ran(engine, "cat /proc/*/environ /proc/*/root/etc/shadow 2>/dev/null | tr '\\0' '\\n'");
        assert!(!output.contains("CARGO") && !output.contains("root:"), "{engine:?} {output}");
    }
}

#[test]
fn temporary_files_are_private_and_go() {
    let world = World::new();
    let name = format!("max-team-test-{}", std::process::id());
    let outside = Path::new("/tmp").join(&name);
    fs::write(&outside, "outside\n").unwrap();
    for engine in engines() {
        let script = format!("cat /tmp/{name}; t=$(mktemp) && echo $t && echo inside > $t && cat $t");
        let (over, output) = world.ran(engine, &script);
        assert!(over.code == Some(0) && output.ends_with("inside\n"), "{engine:?} {output}");
        assert!(!output.contains("outside"), "{engine:?} {output}");
        let made = output.lines().find(|line| line.starts_with("/tmp/")).unwrap();
        assert!(!Path::new(made).exists(), "{engine:?} {made}");
    }
    fs::remove_file(outside).unwrap();
}

#[test]
fn only_the_given_variables_are_there() {
    let world = World::new();
    for engine in engines() {
        let (_, output) = world.ran(engine, "exec env");
        let mut names: Vec<&str> =
            output.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
        names.retain(|name| !["PWD", "TMPDIR", "_", "SHLVL", "OLDPWD"].contains(name));
        names.sort_unstable();
        assert_eq!(names, ["LANG", "PATH"], "{engine:?}");
    }
}

/// A project that is all the agent's own, with things in it that are not.
fn guarded(world: &World) -> Isolation {
    for folder in [".git/hooks", ".claude", "config/deep", "vault/keys"] {
        fs::create_dir_all(world.own.join(folder)).unwrap();
    }
    for file in [".git/config", ".git/hooks/pre-commit", ".claude/settings.json", "config/deep/agents.yaml"] {
        fs::write(world.own.join(file), "kept\n").unwrap();
    }
    for file in [".env", "vault/keys/key"] {
        fs::write(world.own.join(file), "hidden\n").unwrap();
    }
    let list = |names: &[&str]| names.iter().map(|name| world.own.join(name)).collect();
    Isolation {
        protected: list(&[
            ".git/config",
            ".git/hooks",
            ".git/commondir",
            ".claude",
            ".mcp.json",
            "config/deep/agents.yaml",
        ]),
        hidden: list(&[".env", "vault/keys"]),
        ..world.isolation()
    }
}

#[test]
fn protected_files_stay_as_they_are() {
    for engine in namespaced() {
        let world = World::new();
        let isolation = guarded(&world);
        let attacks = [
            "echo x > .git/config",
            "echo x >> .git/hooks/pre-commit",
            "echo x > .git/hooks/post-commit",
            "rm -f .git/config",
            "rm -rf .git",
            "chmod 777 .git/hooks/pre-commit",
            "echo x > n && mv -f n .git/config",
            "mv .git/config .git/old",
            "mv .git gone && mkdir -p .git && echo x > .git/config",
            "mkdir evil && echo x > evil/config && mv -T evil .git",
            "mv .claude gone",
            "mv config gone && mkdir -p config/deep && echo x > config/deep/agents.yaml",
            "mv config/deep gone",
            "ln -f file .git/config",
            "ln -sf file .git/config",
            "ln .git/config mine && echo x > mine",
            "cp file .claude/settings.json",
            "truncate -s 0 .claude/settings.json",
            "touch -d 2001-01-01 .git/config",
            "mount --bind file .git/config",
            "umount .git/config && echo x > .git/config",
            "unshare -Urm sh -c 'umount .git/config; echo x > .git/config'",
        ];
        for attack in attacks {
            let spec = Spec { isolation: Some(isolation.clone()), ..world.spec(attack) };
            let (over, output) = ran(engine, &spec).unwrap();
            assert_ne!(over.code, Some(0), "{engine:?} {attack}: {output}");
            for file in [".git/config", ".git/hooks/pre-commit", ".claude/settings.json", "config/deep/agents.yaml"] {
                assert_eq!(text(&world.own.join(file)), "kept\n", "{attack}: {file}: {output}");
            }
            assert!(!world.own.join(".git/hooks/post-commit").exists());
        }
        // What stands beside them is free.
        let spec = Spec {
            isolation: Some(isolation),
            ..world.spec("echo x > .git/index && echo x > config/other && cat .git/config")
        };
        let (over, output) = ran(engine, &spec).unwrap();
        assert_eq!((over.code, output.as_str()), (Some(0), "kept\n"));
    }
}

#[test]
fn protected_names_that_appear_are_set_aside() {
    for engine in namespaced() {
        let world = World::new();
        let isolation = guarded(&world);
        let script =
            "echo evil > .mcp.json; echo ../elsewhere > .git/commondir; (sleep 60; echo late > .mcp.json) & true";
        let spec = Spec { isolation: Some(isolation.clone()), ..world.spec(script) };
        let (over, output) = ran(engine, &spec).unwrap();
        assert_eq!(over.code, Some(0), "{output}");
        let names: Vec<&PathBuf> = over.appeared.iter().map(|appeared| &appeared.path).collect();
        assert_eq!(names, [&world.own.join(".git/commondir"), &world.own.join(".mcp.json")]);
        assert!(!world.own.join(".mcp.json").exists() && !world.own.join(".git/commondir").exists());
        assert_eq!(text(&world.own.join(".mcp.json.untrusted-1")), "evil\n");
        // A link stays the link that it was.
        fs::write(world.own.join("real.json"), "kept\n").unwrap();
        symlink("real.json", world.own.join(".mcp.json")).unwrap();
        let spec = Spec { isolation: Some(isolation), ..world.spec("rm .mcp.json && echo evil > .mcp.json") };
        let (over, _) = ran(engine, &spec).unwrap();
        assert_eq!(over.appeared.len(), 1, "{over:?}");
    }
}

#[test]
fn hidden_files_cannot_be_seen() {
    for engine in namespaced() {
        let world = World::new();
        let isolation = guarded(&world);
        let attacks = [
            "cat .env",
            "cat vault/keys/key",
            "ls -A vault/keys | grep .",
            "mv .env seen",
            "ln .env seen && cat seen",
            "cp .env seen",
            "mv vault gone && cat gone/keys/key",
            "chmod 644 .env && cat .env",
            "chmod 755 vault/keys && cat vault/keys/key",
            "umount .env && cat .env",
            "grep -r hidden .",
            "tar c . | grep hidden",
            "cat /proc/self/root$PWD/.env",
            "cat /proc/1/root$PWD/.env",
        ];
        for attack in attacks {
            let spec = Spec { isolation: Some(isolation.clone()), ..world.spec(attack) };
            let (over, output) = ran(engine, &spec).unwrap();
            assert!(over.code != Some(0) && !output.contains("hidden"), "{attack}: {over:?} {output}");
        }
        assert_eq!(text(&world.own.join(".env")), "hidden\n");
        assert_eq!(text(&world.own.join("vault/keys/key")), "hidden\n");
    }
}

#[test]
fn landlock_hides_paths_in_read_only_folders() {
    if !engines().contains(&Engine::Landlock) {
        return;
    }
    let world = World::new();
    fs::write(world.project.join(".env"), "hidden\n").unwrap();
    let isolation = Isolation { hidden: vec![world.project.join(".env")], ..world.isolation() };
    let spec = Spec { isolation: Some(isolation), ..world.spec("cat ../readme; cat ../.env") };
    let (over, output) = ran(Engine::Landlock, &spec).unwrap();
    assert!(over.code != Some(0) && output.starts_with("open\n") && !output.contains("hidden"), "{output}");
}

#[test]
fn a_command_that_cannot_run_is_named() {
    let world = World::new();
    fs::write(world.own.join("plain"), "x").unwrap();
    for engine in engines() {
        let told = |words: &[&str]| {
            let argv = words.iter().map(|word| (*word).to_owned()).collect();
            ran(engine, &Spec { argv, ..world.spec("") }).unwrap_err()
        };
        assert!(matches!(told(&["no-such-program"]), SandboxError::NotFound(name) if name == "no-such-program"));
        assert!(matches!(told(&["./none"]), SandboxError::NotFound(_)));
        assert!(matches!(told(&["./plain"]), SandboxError::Denied(_)));
        assert!(matches!(told(&[]), SandboxError::Empty));
        assert!(matches!(told(&["echo", "a\0b"]), SandboxError::Io { .. }));
    }
}

#[test]
fn sandbox_that_cannot_be_built_are_said_with_the_reason() {
    for engine in namespaced() {
        let world = World::new();
        let isolation = Isolation { home: Some(world.project.join("readme/home")), ..world.isolation() };
        let err = ran(engine, &Spec { isolation: Some(isolation), ..world.spec("touch ran") }).unwrap_err();
        assert!(matches!(&err, SandboxError::Broken { detail, .. } if detail.contains("readme")), "{err:?}");
        assert!(!world.own.join("ran").exists());
        if engine == Engine::Namespaces {
            let whole = Isolation { readable: vec!["/".into()], ..world.isolation() };
            let err = ran(engine, &Spec { isolation: Some(whole), ..world.spec("cat /root/.bashrc") }).unwrap_err();
            assert!(matches!(&err, SandboxError::Broken { detail, .. } if detail.contains("`/`")), "{err:?}");
        }
    }
}

#[test]
fn open_files_of_the_parent_are_closed() {
    let world = World::new();
    // As a shell, an editor or make leaves it behind.
    let folder = fs::File::open(&world.other).unwrap();
    let far = rustix::io::fcntl_dupfd_cloexec(&folder, 40).unwrap();
    rustix::io::fcntl_setfd(&far, rustix::io::FdFlags::empty()).unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&far);
    for engine in engines() {
        let script = format!("cat /proc/self/fd/{number}/file; test -e /proc/self/fd/{number} && echo open");
        let (_, output) = world.ran(engine, &script);
        assert!(!output.contains("theirs") && !output.contains("open"), "{engine:?}: {output}");
    }
}

/// Their names together are longer than what a program can be started with.
#[test]
fn long_names_are_hidden_and_too_many_are_refused() {
    for engine in namespaced() {
        let world = World::new();
        let deep = (0..15).fold(world.own.clone(), |folder, _| folder.join("d".repeat(200)));
        fs::create_dir_all(&deep).unwrap();
        let file = |number: usize| deep.join(format!("{number}.pem"));
        let hidden: Vec<PathBuf> = (0..700).map(file).collect();
        hidden.iter().for_each(|path| fs::write(path, "key\n").unwrap());
        let spec = Spec {
            isolation: Some(Isolation { hidden: hidden.clone(), ..world.isolation() }),
            ..world.spec("find . -name '*.pem' -exec cat {} + 2>/dev/null | grep -c key")
        };
        let (over, output) = ran(engine, &spec).unwrap();
        assert_eq!((over.code, output.trim()), (Some(1), "0"), "{over:?}");

        let hidden: Vec<PathBuf> = (700..4_000).map(file).collect();
        hidden.iter().for_each(|path| fs::write(path, "").unwrap());
        let many = Spec { isolation: Some(Isolation { hidden, ..world.isolation() }), ..spec };
        assert!(matches!(ran(engine, &many), Err(SandboxError::NoSandbox { .. })));
    }
}
