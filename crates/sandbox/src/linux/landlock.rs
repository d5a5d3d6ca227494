//! A sandbox without namespaces: the process restricts itself, with Landlock and seccomp, before it becomes the
//! command.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope, path_beneath_rules,
};
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{CapabilitySet, CapabilitySets, remove_capability_from_bounding_set, set_capabilities};

use super::seccomp;
use super::view::{SECRETS, SYSTEM};
use crate::spec::{Isolation, LandlockPart, Network, Obstacle, Spec};

/// The first version that keeps a command from signalling its supervisor.
const NEEDED: ABI = ABI::V6;
/// Devices that programs expect.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// Whether this kernel has what is needed.
pub(super) fn is_here() -> Result<(), Obstacle> {
    missing(|version| is_created(files(version)), || is_created(ruleset()))
}

/// Which parts are missing. `has_files` says whether the file rules of a version are known, `is_whole` whether all is.
fn missing(has_files: impl Fn(ABI) -> bool, is_whole: impl Fn() -> bool) -> Result<(), Obstacle> {
    if is_whole() {
        return Ok(());
    }
    if !has_files(ABI::V1) {
        return Err(Obstacle::NoLandlock);
    }
    let needs = |part: &LandlockPart| match part {
        LandlockPart::Moves => !has_files(ABI::V2),
        LandlockPart::Truncation => !has_files(ABI::V3),
        LandlockPart::Devices => !has_files(ABI::V5),
        // All else may be there.
        LandlockPart::Scopes => true,
    };
    Err(Obstacle::OldLandlock(LandlockPart::ALL.map(|(part, _)| part).into_iter().filter(needs).collect()))
}

fn is_created(rules: Result<Ruleset, RulesetError>) -> bool {
    rules.and_then(Ruleset::create).is_ok()
}

fn files(version: ABI) -> Result<Ruleset, RulesetError> {
    Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(AccessFs::from_all(version))
}

fn ruleset() -> Result<Ruleset, RulesetError> {
    files(NEEDED)?.scope(Scope::AbstractUnixSocket | Scope::Signal)
}

/// Restricts this process, for good.
pub(crate) fn enter(spec: &Spec) -> Result<(), String> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
    let isolation = spec.isolation.as_ref().ok_or("the order names none")?;
    drop_capabilities();
    restrict(isolation).map_err(|error| format!("landlock: {error}"))?;
    // Landlock has no rules for permissions, owners and times of files, which a command could change wherever they are.
    seccomp::apply(&isolation.network, false, isolation.writable.is_empty())
}

/// Gives up files, the network and signals to others, for good; what is open stays open. A kernel without Landlock
/// leaves the files.
pub fn renounce() -> io::Result<()> {
    drop_capabilities();
    if let Ok(rules) = ruleset().and_then(Ruleset::create) {
        rules.restrict_self().map_err(io::Error::other)?;
    } else {
        rustix::thread::set_no_new_privs(true)?;
    }
    seccomp::apply(&Network::None, false, true).map_err(io::Error::other)
}

/// Drops root's capabilities. For a process without any this fails, which does no harm.
pub(super) fn drop_capabilities() {
    for capability in CapabilitySet::all().iter() {
        let _ = remove_capability_from_bounding_set(capability);
    }
    let none = CapabilitySet::empty();
    let _ = set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none });
}

fn restrict(isolation: &Isolation) -> Result<(), RulesetError> {
    let read = AccessFs::from_read(NEEDED);
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let hidden: Vec<PathBuf> = SECRETS.iter().map(PathBuf::from).chain(isolation.hidden.iter().cloned()).collect();
    let roots: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).chain(isolation.readable.iter().cloned()).collect();
    let seen: Vec<PathBuf> = roots.iter().flat_map(|root| carved(root, &hidden)).collect();
    // A single file has no names to list, and a rule that allows nothing is an error.
    let folders = roots.iter().filter(|root| root.is_dir());
    let status = ruleset()?
        .create()?
        .add_rules(path_beneath_rules(folders, AccessFs::ReadDir))?
        .add_rules(path_beneath_rules(&seen, read))?
        .add_rules(path_beneath_rules(["/proc"], read))?
        .add_rules(path_beneath_rules(DEVICES, device))?
        .add_rules(path_beneath_rules(
            isolation.writable.iter().chain(&isolation.temporary),
            AccessFs::from_all(NEEDED),
        ))?
        .restrict_self()?;
    // The ruleset cannot be partly enforced: every right was required.
    debug_assert_eq!(status.ruleset, RulesetStatus::FullyEnforced);
    Ok(())
}

/// A folder without the hidden paths in it: the folder itself, or everything in it that is not hidden.
fn carved(path: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
    if hidden.iter().any(|hidden| path.starts_with(hidden)) {
        return Vec::new();
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(path)) {
        return vec![path.to_owned()];
    }
    let inside = fs::read_dir(path).into_iter().flatten().flatten();
    // A link is followed when it is opened, and judged by where it leads.
    let inside = inside.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
    inside.flat_map(|entry| carved(&entry.path(), hidden)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_older_kernel_lacks_is_named() {
        let on = |newest: Option<ABI>| {
            missing(|version| newest.is_some_and(|newest| version <= newest), || newest == Some(ABI::V6))
        };
        assert_eq!(on(None), Err(Obstacle::NoLandlock));
        let (moves, truncation) = (LandlockPart::Moves, LandlockPart::Truncation);
        let (devices, scopes) = (LandlockPart::Devices, LandlockPart::Scopes);
        let table = [
            (ABI::V1, vec![moves, truncation, devices, scopes]),
            (ABI::V2, vec![truncation, devices, scopes]),
            (ABI::V4, vec![devices, scopes]),
            (ABI::V5, vec![scopes]),
        ];
        for (newest, want) in table {
            assert_eq!(on(Some(newest)), Err(Obstacle::OldLandlock(want)), "{newest:?}");
        }
        assert_eq!(on(Some(ABI::V6)), Ok(()));
        let told = Obstacle::OldLandlock(vec![scopes]).to_string();
        assert_eq!(
            told,
            "this kernel's Landlock is too old: it lacks rules for signals and abstract Unix sockets (Linux 6.12)"
        );
    }

    #[test]
    fn only_hidden_paths_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("a/b")).unwrap();
        for file in ["a/.env", "a/x", "a/b/y", "z"] {
            fs::write(root.join(file), "").unwrap();
        }
        std::os::unix::fs::symlink(root.join("a/.env"), root.join("a/link")).unwrap();
        let carve = |hidden: &[&str]| {
            let hidden: Vec<PathBuf> = hidden.iter().map(|path| root.join(path)).collect();
            let mut left = carved(root, &hidden);
            left.sort();
            left.iter().map(|path| path.strip_prefix(root).unwrap().display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(carve(&[]), [""]);
        assert_eq!(carve(&["a/.env"]), ["a/b", "a/x", "z"]);
        assert_eq!(carve(&["a"]), ["z"]);
    }
}
