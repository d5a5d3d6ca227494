//! What Linux can enforce, found out when it is first needed.

mod bubblewrap;
mod cgroup;
mod landlock;
mod mounts;
mod namespaces;
mod orphans;
mod process_tree;
mod seccomp;
mod spawn;
mod text;
mod view;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{LazyLock, OnceLock};

use rustix::process::Pid;

use crate::protocol::WORD;
use crate::run::build_once;
use crate::spec::{Capability, Engine, Isolation, Obstacle, SandboxError, Spec};

pub(crate) use cgroup::Cgroup;
pub(crate) use landlock::enter;
pub use landlock::renounce;
pub(crate) use namespaces::{has_bypassed, separate};
pub(crate) use orphans::wait_for_orphans;
#[doc(hidden)]
pub use orphans::wait_until_gone;
pub(crate) use process_tree::{census, kill_all, own, processes, put_first, threads, ticks_of, usage};
pub use text::release_code;

/// Where a bubblewrap is looked for. Not in `PATH`: a project may have put something there.
const PLACES: [&str; 4] = ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"];
/// Paths that are put into a file tree one by one: each is a mount, and takes time.
const MOUNTS_MAX: usize = 3_000;
const INSTALL: &str = "let this system make user namespaces (`max-team doctor` says what forbids them) or install \
                       bubblewrap, or turn the sandbox off with `project.sandbox: false` in your own settings";

static POWER: Capability = Capability {
    namespaces: LazyLock::new(namespaces_work),
    bubblewrap: LazyLock::new(bubblewrap_here),
    landlock: LazyLock::new(landlock::is_here),
    seatbelt: LazyLock::new(|| Err("this is not macOS".to_owned())),
    group: LazyLock::new(|| cgroup::place().clone()),
};

/// Set once a sandbox of our own could be built. A failure may pass (no memory, too many processes), so it is not kept.
static NAMESPACES_WORK: OnceLock<()> = OnceLock::new();

static PREFERRED: OnceLock<Engine> = OnceLock::new();

fn namespaces_work() -> Result<(), String> {
    if NAMESPACES_WORK.get().is_none() {
        build_once(Engine::Namespaces)?;
    }
    NAMESPACES_WORK.get_or_init(|| ());
    Ok(())
}

/// What this machine can enforce. To find out whether namespaces work, a sandbox is built once.
pub fn probe() -> &'static Capability {
    &POWER
}

/// Uses this mechanism alone, by its name, so that tests can try each. The first call counts; other names are ignored.
#[doc(hidden)]
pub fn prefer(name: Option<&OsStr>) {
    let engine = [Engine::Namespaces, Engine::Bubblewrap, Engine::Landlock].into_iter();
    let engine =
        engine.zip(["namespaces", "bubblewrap", "landlock"]).find(|(_, known)| name == Some(OsStr::new(known)));
    if let Some((engine, _)) = engine {
        let _ = PREFERRED.set(engine);
    }
}

fn bubblewrap_here() -> Result<PathBuf, Obstacle> {
    let mut found = PLACES.iter().map(PathBuf::from).find(|path| path.is_file());
    if found.is_none() && PREFERRED.get() == Some(&Engine::Bubblewrap) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        found = std::env::split_paths(&path).map(|folder| folder.join("bwrap")).find(|path| path.is_file());
    }
    let bwrap = found.ok_or(Obstacle::NoBubblewrap)?;
    let mut command = Command::new(&bwrap);
    command.arg("--die-with-parent").args(bubblewrap::arguments(&Spec::empty(), None));
    command.arg("--").arg("/usr/bin/env").env_clear().stdin(Stdio::null()).stdout(Stdio::null());
    match bubblewrap::tried(command) {
        Ok(None) => Ok(bwrap),
        Ok(Some(said)) => Err(Obstacle::Other(format!("bubblewrap is installed and does not work here: {said}"))),
        Err(error) => Err(Obstacle::Other(format!("bubblewrap is installed and cannot be started: {error}"))),
    }
}

/// The strongest mechanism that works here, or why none does. Ours first: it needs nothing installed.
pub fn engine() -> Result<Engine, String> {
    let works = |engine: Engine| match engine {
        Engine::Namespaces => namespaces_work(),
        Engine::Bubblewrap => POWER.bubblewrap.as_ref().map(drop).map_err(Obstacle::to_string),
        _ => POWER.landlock.as_ref().copied().map_err(Obstacle::to_string),
    };
    if let Some(engine) = PREFERRED.get() {
        return works(*engine).map(|()| *engine);
    }
    let mut missing = Vec::new();
    for engine in [Engine::Namespaces, Engine::Bubblewrap, Engine::Landlock] {
        match works(engine) {
            Ok(()) => return Ok(engine),
            Err(why) => missing.push(why),
        }
    }
    Err(missing.join("; "))
}

/// Chooses the mechanism for this sandbox.
pub(crate) fn choose(isolation: Option<&Isolation>) -> Result<Engine, SandboxError> {
    let Some(isolation) = isolation else { return Ok(Engine::Bare) };
    let none = |why: String| SandboxError::NoSandbox { why, advice: INSTALL.to_owned() };
    let engine = engine().map_err(none)?;
    match beyond_landlock(isolation) {
        Some(why) if engine == Engine::Landlock => {
            let missing = [namespaces_work().err(), POWER.bubblewrap.as_ref().err().map(Obstacle::to_string)];
            let mut whys: Vec<String> = missing.into_iter().flatten().collect();
            whys.push(format!("Landlock alone {why}"));
            Err(none(whys.join("; ")))
        }
        _ => Ok(engine),
    }
}

/// Which part of the spec Landlock cannot enforce.
fn beyond_landlock(isolation: &Isolation) -> Option<String> {
    let within = |roots: &[PathBuf], path: &Path| roots.iter().any(|root| path.starts_with(root));
    if isolation.unshielded {
        return None;
    }
    if let Some(path) = isolation.protected.iter().find(|path| within(&isolation.writable, path)) {
        return Some(format!("cannot protect `{}` in a folder that is written to", path.display()));
    }
    let shown = isolation.hidden.iter().find(|path| within(&isolation.writable, path))?;
    Some(format!("cannot hide `{}` in a folder that is written to", shown.display()))
}

/// Starts the process that builds the sandbox and becomes the supervisor inside, with its standard input and outputs:
/// in a control group of its own where one can be made.
pub(crate) fn start(
    spec: &Spec,
    engine: Engine,
    program: &Path,
    ends: [OwnedFd; 3],
) -> Result<(Pid, Option<Cgroup>), SandboxError> {
    let (mut command, kept) = command(spec, engine, program)?;
    if let Some(group) = Cgroup::of(&spec.limits) {
        let file = kept.as_ref().map(File::as_fd);
        match spawn::within(&group, &command, file, ends.each_ref().map(OwnedFd::as_fd)) {
            Ok(pid) => return Ok((pid, Some(group))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(SandboxError::unstarted(spec, error)),
            // Some systems forbid it, or a sweep removed the group between two steps: then the supervisor alone
            // enforces the limits.
            Err(_) => drop(group),
        }
    }
    if let Some(file) = kept {
        bubblewrap::keep(&mut command, file);
    }
    let [input, output, errors] = ends;
    let child = command.stdin(input).stdout(output).stderr(errors).env_clear().current_dir("/").spawn();
    child.map(|child| (Pid::from_child(&child), None)).map_err(|error| SandboxError::unstarted(spec, error))
}

/// The program that builds the sandbox with its arguments, and a file that it has to inherit.
fn command(spec: &Spec, engine: Engine, program: &Path) -> Result<(Command, Option<File>), SandboxError> {
    let none = |why: &str, advice: &str| SandboxError::NoSandbox { why: why.to_owned(), advice: advice.to_owned() };
    let too_many =
        || none("too many files are protected or hidden one by one", "block folders and not each file in them");
    if engine != Engine::Bubblewrap {
        if engine == Engine::Namespaces
            && spec.isolation.as_ref().is_some_and(|isolation| isolation.paths() > MOUNTS_MAX)
        {
            return Err(too_many());
        }
        let mut command = Command::new(program);
        command.arg(WORD).arg(orphans::owner());
        return Ok((command, None));
    }
    let bwrap = POWER.bubblewrap.as_ref().map_err(|why| none(&why.to_string(), INSTALL))?;
    let mut command = Command::new(bwrap);
    let arguments = bubblewrap::arguments(spec, Some(program));
    if arguments.len() > bubblewrap::ARGUMENTS_MAX {
        return Err(too_many());
    }
    let file = bubblewrap::hand(&mut command, &arguments).map_err(|source| SandboxError::io(spec, source))?;
    command.arg("--").arg(bubblewrap::INSIDE).arg(WORD).arg(orphans::owner());
    Ok((command, Some(file)))
}

/// Restricts this process as far as the engine leaves that to it. Processes that it starts inherit this.
pub(crate) fn shut_in(spec: &Spec, engine: Engine) -> Result<(), String> {
    match (engine, &spec.isolation) {
        (Engine::Namespaces | Engine::Bubblewrap, Some(isolation)) => seccomp::apply(&isolation.network, true, false),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_landlock_cannot_exclude_are_refused_unless_that_was_allowed() {
        let list = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        let isolation = |protected: &[&str], hidden: &[&str]| Isolation {
            readable: list(&["/p"]),
            writable: list(&["/p/own"]),
            protected: list(protected),
            hidden: list(hidden),
            ..Isolation::default()
        };
        assert_eq!(beyond_landlock(&isolation(&["/p/.git/config"], &["/p/.env"])), None);
        let told = beyond_landlock(&isolation(&["/p/own/.git/config"], &[])).unwrap();
        assert!(told.contains("`/p/own/.git/config`"), "{told}");
        assert!(beyond_landlock(&isolation(&[], &["/p/own/.env"])).unwrap().contains("cannot hide `/p/own/.env`"));
        let looked = Isolation { unshielded: true, ..isolation(&["/p/own/x"], &["/p/own/.env"]) };
        assert_eq!(beyond_landlock(&looked), None);
    }
}
