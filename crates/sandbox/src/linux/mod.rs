//! What Linux can enforce, found out once and only when somebody asks.

mod bubblewrap;
mod filter;
mod group;
mod landlock;
mod spawn;
mod tree;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use rustix::process::Pid;

use crate::spec::{Engine, Limits, Network, Power, SandboxError, Spec, Walls};
use crate::wire::WORD;

pub(crate) use group::Group;
pub(crate) use landlock::enter;
pub use landlock::renounce;
pub(crate) use tree::{census, kill_all, own, processes, put_first, threads, ticks_of, usage};

/// Where a bubblewrap is looked for. Not in `PATH`: a project may have put something there.
const PLACES: [&str; 4] = ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"];
const INSTALL: &str = "install bubblewrap (`apt install bubblewrap`, `dnf install bubblewrap`), or turn walls off by \
                       name with `project.sandbox: false` in your own settings";

/// What this machine can enforce. The first time takes a moment: the walls are built once to see that they stand.
pub fn probe() -> &'static Power {
    static POWER: OnceLock<Power> = OnceLock::new();
    POWER.get_or_init(|| Power {
        bubblewrap: bubblewrap_here(),
        landlock: landlock::is_here(),
        seatbelt: Err("this is not macOS".to_owned()),
        group: group::place().clone(),
    })
}

fn bubblewrap_here() -> Result<PathBuf, String> {
    let found = PLACES.iter().map(Path::new).find(|path| path.is_file());
    let bwrap = found.ok_or_else(|| "bubblewrap is not installed".to_owned())?;
    let spec = Spec {
        argv: Vec::new(),
        dir: PathBuf::from("/"),
        env: Vec::new(),
        line: Vec::new(),
        walls: Some(Walls::default()),
        limits: Limits::default(),
    };
    let mut command = Command::new(bwrap);
    command.args(bubblewrap::arguments(&spec, None)).arg("--").arg("/usr/bin/env").env_clear();
    match command.stdin(Stdio::null()).stdout(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(bwrap.to_owned()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(format!("bubblewrap is installed and does not work here: {said}"))
        }
        Err(error) => Err(format!("bubblewrap is installed and cannot be started: {error}")),
    }
}

/// What is to hold these walls up.
pub(crate) fn choose(walls: Option<&Walls>) -> Result<Engine, SandboxError> {
    let Some(walls) = walls else { return Ok(Engine::Bare) };
    let power = probe();
    let Err(missing) = &power.bubblewrap else { return Ok(Engine::Bubblewrap) };
    let none = |why: String| SandboxError::NoWalls { why, advice: INSTALL.to_owned() };
    if let Err(also) = &power.landlock {
        return Err(none(format!("{missing}, and {also}")));
    }
    match beyond_landlock(walls) {
        Some(why) => Err(none(format!("{missing}, and Landlock alone {why}"))),
        None => Ok(Engine::Landlock),
    }
}

/// What of these walls Landlock cannot hold up.
fn beyond_landlock(walls: &Walls) -> Option<String> {
    let within = |roots: &[PathBuf], path: &Path| roots.iter().any(|root| path.starts_with(root));
    if matches!(walls.network, Network::Hosts(_)) {
        return Some("cannot tell hosts apart".to_owned());
    }
    if walls.attended {
        return None;
    }
    if let Some(path) = walls.protected.iter().find(|path| within(&walls.writable, path)) {
        return Some(format!("cannot protect `{}` in a folder that is written to", path.display()));
    }
    let shown = walls.hidden.iter().find(|path| within(&walls.writable, path))?;
    Some(format!("cannot hide `{}` in a folder that is written to", shown.display()))
}

/// Starts the process that builds the walls and becomes the supervisor within, with its standard input and outputs: in
/// a control group of its own where there can be one.
pub(crate) fn start(
    spec: &Spec,
    engine: Engine,
    program: &Path,
    ends: [OwnedFd; 3],
) -> Result<(Pid, Option<Group>), SandboxError> {
    let (mut command, kept) = command(spec, engine, program)?;
    if let Some(group) = Group::of(&spec.limits) {
        let file = kept.as_ref().map(File::as_fd);
        match spawn::within(&group, &command, file, ends.each_ref().map(OwnedFd::as_fd)) {
            Ok(pid) => return Ok((pid, Some(group))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(SandboxError::unstarted(spec, error)),
            // Some systems forbid it, or it was swept between two steps: then the supervisor watches alone.
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

/// The program that builds the walls with its arguments, and a file that it has to have open.
fn command(spec: &Spec, engine: Engine, program: &Path) -> Result<(Command, Option<File>), SandboxError> {
    let (mut command, kept) = match (engine, &probe().bubblewrap) {
        (Engine::Bubblewrap, Ok(bwrap)) => {
            let mut command = Command::new(bwrap);
            let arguments = bubblewrap::arguments(spec, Some(program));
            if arguments.len() > bubblewrap::ARGUMENTS_MAX {
                return Err(SandboxError::NoWalls {
                    why: "too many files are protected or hidden one by one".to_owned(),
                    advice: "block folders and not each file in them".to_owned(),
                });
            }
            let file = bubblewrap::hand(&mut command, &arguments).map_err(|source| SandboxError::io(spec, source))?;
            command.arg("--").arg(bubblewrap::INSIDE);
            (command, Some(file))
        }
        (Engine::Bubblewrap, Err(why)) => {
            return Err(SandboxError::NoWalls { why: why.clone(), advice: INSTALL.to_owned() });
        }
        _ => (Command::new(program), None),
    };
    command.arg(WORD);
    Ok((command, kept))
}

/// This program, whatever has become of its name.
#[expect(clippy::unnecessary_wraps, reason = "other systems have to ask")]
pub(crate) fn myself() -> std::io::Result<PathBuf> {
    Ok(PathBuf::from("/proc/self/exe"))
}

/// Shuts this process in as far as the engine leaves that to it. What it starts is shut in with it.
pub(crate) fn shut_in(spec: &Spec, engine: Engine) -> Result<(), String> {
    match (engine, &spec.walls) {
        (Engine::Bubblewrap, Some(walls)) => filter::apply(&walls.network, true),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_landlock_cannot_carve_is_refused_unless_somebody_looked() {
        let list = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        let walls = |protected: &[&str], hidden: &[&str]| Walls {
            readable: list(&["/p"]),
            writable: list(&["/p/own"]),
            protected: list(protected),
            hidden: list(hidden),
            ..Walls::default()
        };
        assert_eq!(beyond_landlock(&walls(&["/p/.git/config"], &["/p/.env"])), None);
        let told = beyond_landlock(&walls(&["/p/own/.git/config"], &[])).unwrap();
        assert!(told.contains("`/p/own/.git/config`"), "{told}");
        assert!(beyond_landlock(&walls(&[], &["/p/own/.env"])).unwrap().contains("cannot hide `/p/own/.env`"));
        let looked = Walls { attended: true, ..walls(&["/p/own/x"], &["/p/own/.env"]) };
        assert_eq!(beyond_landlock(&looked), None);
        let hosts = Walls { network: Network::Hosts(vec!["a".into()]), ..looked };
        assert!(beyond_landlock(&hosts).is_some());
    }
}
