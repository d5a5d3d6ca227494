//! The sandbox as it stands: real commands that try to get out, by every engine that this machine has.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a broken fixture must fail the test loudly"
)]

mod apart;
mod files;
mod left;
mod limits;
mod line;
mod network;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use max_team_sandbox::{Activity, CommandOutcome, Engine, Isolation, Limits, SandboxError, Spec, probe, run_by};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

max_team_sandbox::child_before_main!(|_, _| None);

/// Every mechanism that this machine has; those that it lacks are named.
fn engines() -> Vec<Engine> {
    let power = probe();
    let all = [
        (Engine::Namespaces, power.namespaces.as_ref().err().cloned()),
        (Engine::Bubblewrap, power.bubblewrap.as_ref().err().map(ToString::to_string)),
        (Engine::Landlock, power.landlock.as_ref().err().map(ToString::to_string)),
    ];
    let works = |(engine, missing): (Engine, Option<String>)| match missing {
        None => Some(engine),
        Some(why) => {
            eprintln!("SKIPPED by {engine:?}: {why}");
            None
        }
    };
    all.into_iter().filter_map(works).collect()
}

/// Those of them that can hide and protect files in a folder that is written to.
fn namespaced() -> Vec<Engine> {
    engines().into_iter().filter(|engine| engine.has_namespaces()).collect()
}

/// A project with a folder of an agent's own, a home folder, and something that is neither.
struct World {
    _dir: TempDir,
    project: PathBuf,
    own: PathBuf,
    home: PathBuf,
    other: PathBuf,
}

impl World {
    fn new() -> Self {
        // Not in /tmp, which is private inside and would hide what must not be seen anyway.
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let root = dir.path().canonicalize().unwrap();
        let [project, home, other] = ["project", "home", "other"].map(|name| root.join(name));
        let own = project.join("own");
        for folder in [&own, &home, &other] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(project.join("readme"), "open\n").unwrap();
        fs::write(own.join("file"), "mine\n").unwrap();
        fs::write(home.join(".secret"), "hidden\n").unwrap();
        fs::write(other.join("file"), "theirs\n").unwrap();
        Self { _dir: dir, project, own, home, other }
    }

    fn isolation(&self) -> Isolation {
        Isolation {
            readable: vec![self.project.clone()],
            writable: vec![self.own.clone()],
            home: Some(self.home.clone()),
            ..Isolation::default()
        }
    }

    fn spec(&self, script: &str) -> Spec {
        let env = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LANG", "C.UTF-8")];
        Spec {
            argv: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
            line: Vec::new(),
            dir: self.own.clone(),
            env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            temporary_env: Vec::new(),
            isolation: Some(self.isolation()),
            limits: Limits { time: Duration::from_secs(60), ..Limits::default() },
            end_mark: None,
            stdin: None,
            proxy: None,
            watch: None,
            activity: Activity::default(),
            scratch: None,
            ends_its_children: false,
        }
    }

    fn ran(&self, engine: Engine, script: &str) -> (CommandOutcome, String) {
        ran(engine, &self.spec(script)).unwrap()
    }
}

fn ran(engine: Engine, spec: &Spec) -> Result<(CommandOutcome, String), SandboxError> {
    let mut output = Vec::new();
    let over = run_by(engine, spec, false, &CancellationToken::new(), &mut |_, bytes| {
        if output.len() < 1 << 20 {
            output.extend_from_slice(bytes);
        }
        true
    })?;
    Ok((over, String::from_utf8_lossy(&output).into_owned()))
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}
