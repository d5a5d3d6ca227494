//! Runs one command in its sandbox, and moves protected files away that it made without approval.

use std::path::{Path, PathBuf};
use std::time::Duration;

use max_team_core::policy::GitAccess;
use max_team_core::rewind::MovedFile;
use max_team_sandbox::{
    Activity, CommandOutcome, Engine, Limits, Network, OutputSource, PipelineStep, Spec, engine, is_secret, run,
};
use tokio_util::sync::CancellationToken;

use super::isolation::BuiltSandbox;
use super::moved::{moved_file, moved_note};
use super::planted::PlantedFiles;
use super::{CommandError, CommandSandbox, join, path, running};
use crate::network::CommandNetwork;
use crate::text::clip;

/// The longest time that a command may be given.
const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 3_600);

/// Bytes of a command that a person is shown with a question about its connections.
const SHOWN_BYTES_MAX: usize = 2_000;

/// Settings of every git in a sandbox. Git takes any folder that looks like a repository for one and runs what its `config`
/// names, so commands only use a bare repository that is named (`--git-dir`), which asks.
const GIT_SETTINGS: [(&str, &str); 2] = [("safe.bareRepository", "explicit"), ("core.fsmonitor", "false")];
/// A setting for git that may write in `.git`: hooks run code of the project, which must not write there.
const NO_HOOKS: (&str, &str) = ("core.hooksPath", "/dev/null");

/// The output folders of build tools in a read-only project, in the folder for temporary files.
const TARGET: (&str, &str) = ("CARGO_TARGET_DIR", "target");
const SCRATCH: [(&str, &str); 2] = [TARGET, ("GOCACHE", "go-build")];
/// Settings of tools that would otherwise write beside the sources.
const KEEPS_SOURCES: [(&str, &str); 2] = [("PYTHONDONTWRITEBYTECODE", "1"), ("PYTEST_ADDOPTS", "-p no:cacheprovider")];

/// A command to run.
#[derive(Debug)]
pub(crate) struct Invocation<'a> {
    pub(crate) argv: &'a [String],
    pub(crate) dir: &'a Path,
    pub(crate) timeout: Duration,
    /// Its sandbox; `None` only for programs that we trust, with arguments of our own.
    pub(crate) isolation: Option<&'a CommandSandbox>,
    /// A sandbox that we describe ourselves, for such a program.
    pub(crate) built: Option<max_team_sandbox::Isolation>,
    /// Variables beside those that are handed on.
    pub(crate) env: Vec<(String, String)>,
    /// Which variables are not handed on, besides secrets.
    pub(crate) hide: fn(&str) -> bool,
    /// Several commands, joined; then `argv` is only their name.
    pub(crate) line: Vec<PipelineStep>,
    /// Whether standard error comes through a pipe of its own.
    pub(crate) apart: bool,
    /// Whether it runs on while its agent does other things.
    pub(crate) lives_on: bool,
    /// How long it may be idle.
    pub(crate) idle: Option<Duration>,
}

impl<'a> Invocation<'a> {
    pub(crate) fn new(
        argv: &'a [String],
        dir: &'a Path,
        timeout: Duration,
        isolation: Option<&'a CommandSandbox>,
    ) -> Self {
        Self {
            argv,
            dir,
            timeout,
            isolation,
            built: None,
            env: Vec::new(),
            hide: |_| false,
            line: Vec::new(),
            apart: false,
            lives_on: false,
            idle: None,
        }
    }

    /// Runs it to its end. `sink` takes what comes out; if it says `false`, that was enough and everything is ended.
    pub(crate) fn run(
        &self,
        cancel: &CancellationToken,
        sink: &mut dyn FnMut(OutputSource, &[u8]) -> bool,
    ) -> Result<CommandOutcome, CommandError> {
        let (mut spec, built) = self.spec(cancel)?;
        let watched = self.isolation.zip(built.as_ref()).and_then(|(isolation, built)| {
            isolation.watch(PlantedFiles { lives_on: self.lives_on, ..built.planted.clone() })
        });
        // Files that the command makes count as approved or planted as long as this is held.
        let (order, _running) = watched.unzip();
        spec.watch = order;
        let network = self.network();
        if let Some(network) = &network {
            (spec.proxy, spec.activity) = (Some(network.server()), network.activity());
        }
        let engine = engine();
        let (is_unshielded, has_hosts) = (engine == Ok(Engine::Landlock), engine.is_ok_and(Engine::has_namespaces));
        let wants_network = |isolation: &CommandSandbox| isolation.on && isolation.network != Network::All;
        let is_networkless = !has_hosts && self.isolation.is_some_and(wants_network);
        let denied: &[&str] = if is_unshielded { &DENIED } else { &DENIED_WRITE };
        let (mut is_barred, mut is_cut_off) = (OutputHint::of(denied), OutputHint::of(&NO_NETWORK));
        let mut ends_a_line = true;
        let ran = run(&spec, self.apart, cancel, &mut |out, bytes| {
            ends_a_line = bytes.last().map_or(ends_a_line, |last| *last == b'\n');
            is_barred.hear(bytes);
            is_cut_off.hear(bytes);
            sink(out, bytes)
        });
        let mut note = String::new();
        if is_networkless && is_cut_off.is_heard {
            note.push_str(NETWORKLESS);
        }
        note.extend(network.and_then(|network| network.report(ran.as_ref().ok())));
        let over = match ran {
            Ok(over) => over,
            Err(error) => {
                sink(OutputSource::Output, note.as_bytes());
                return Err(error);
            }
        };
        let opens = self.isolation.zip(built.as_ref()).filter(|(_, built)| built.planted.opens_to_others());
        if let Some((isolation, built)) = opens {
            // Files that this command was allowed to make must not be moved away by other commands that still run.
            running::note_all(isolation.opened_since(built));
        }
        if let Some(isolation) = self.isolation {
            isolation.moved.note(&over.appeared);
        }
        let moved: Vec<MovedFile> = over.appeared.iter().map(moved_file).collect();
        let barred = self.isolation.zip(built.as_ref()).filter(|(isolation, _)| {
            is_barred.is_heard || (has_hosts && isolation.may_write_if_said && is_cut_off.is_heard)
        });
        let barred = barred.and_then(|(isolation, built)| barred_note(isolation, built, is_unshielded));
        let unseen_git = self.isolation.filter(|isolation| isolation.hides_history && self.names_git());
        let unseen_git = unseen_git.map_or("", |_| UNSEEN_GIT);
        let note = moved_note(&moved) + &barred.unwrap_or_default() + unseen_git + &note;
        if !note.is_empty() {
            let line_end = if ends_a_line { "" } else { "\n" };
            sink(OutputSource::Output, format!("{line_end}{note}").as_bytes());
        }
        let left = moved
            .iter()
            .find(|file| file.to.is_empty())
            .map(|file| format!("`{}` is protected, appeared while it ran and could not be moved away", file.path));
        match left.or_else(|| over.unexamined.clone()) {
            Some(why) => Err(CommandError::Unseen { program: self.argv.first().cloned().unwrap_or_default(), why }),
            None => Ok(over),
        }
    }

    /// Whether its text names git.
    fn names_git(&self) -> bool {
        let mut words = self.argv.iter().flat_map(|word| word.split(|letter: char| !letter.is_alphanumeric()));
        words.any(|word| word == "git")
    }

    /// Its network, if that is a proxy of ours.
    fn network(&self) -> Option<CommandNetwork> {
        let isolation = self.isolation.filter(|isolation| isolation.on && isolation.network == Network::Proxy)?;
        Some(CommandNetwork::new(isolation.hosts.clone(), clip(&join(self.argv), SHOWN_BYTES_MAX)))
    }

    fn spec(&self, cancel: &CancellationToken) -> Result<(Spec, Option<BuiltSandbox>), CommandError> {
        let limits = self.isolation.map_or_else(Limits::default, |isolation| isolation.limits);
        let mut vars = variables();
        vars.retain(|(name, _)| !is_secret(name) && !(self.hide)(name));
        let built = self.isolation.map(|isolation| isolation.build(&mut vars, cancel)).transpose()?.flatten();
        let mut isolation = built.as_ref().map(|built| built.isolation.clone()).or_else(|| self.built.clone());
        let mut temporary_env = Vec::new();
        if self.isolation.is_some_and(|isolation| isolation.read_only) {
            vars.retain(|(name, _)| !SCRATCH.iter().chain(&KEEPS_SOURCES).any(|(own, _)| own == name));
            let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
            vars.extend(KEEPS_SOURCES.map(owned));
            let has_target = isolation.as_ref().is_some_and(|isolation| self.has_target(&isolation.writable));
            temporary_env.extend(SCRATCH.into_iter().filter(|own| !has_target || *own != TARGET).map(owned));
        }
        if let Some(isolation) = self.isolation {
            vars.extend(git_settings(isolation.git));
            if isolation.git != GitAccess::Read || !isolation.deletes.is_empty() {
                // A program of the project that is called `git` or `rm` must not write what was opened for the real one.
                let places =
                    vars.iter().find(|(name, _)| name == "PATH").map(|(_, places)| path::outside(places, self.dir));
                vars.retain(|(name, _)| name != "PATH");
                vars.extend(places.map(|places| ("PATH".to_owned(), places)));
            }
        }
        vars.retain(|(name, _)| !self.env.iter().any(|(own, _)| own == name));
        vars.extend(self.env.iter().cloned());
        let mut argv = self.argv.to_vec();
        if self.isolation.is_none() {
            let program = self.trust(&mut argv, &mut vars)?;
            if let Some(isolation) = &mut isolation {
                isolation.readable.extend(program);
            }
        }
        let spec = Spec {
            argv,
            line: self.line.clone(),
            dir: self.dir.to_owned(),
            env: vars,
            temporary_env,
            isolation,
            limits: Limits { time: self.timeout.min(TIMEOUT_MAX), idle: self.idle, ..limits },
            end_mark: self.isolation.and_then(|isolation| isolation.end_mark.clone()),
            stdin: None,
            proxy: None,
            watch: None,
            activity: Activity::default(),
            scratch: None,
            ends_its_children: false,
        };
        Ok((spec, built))
    }

    /// Whether Cargo's own output folder can be written.
    fn has_target(&self, writable: &[PathBuf]) -> bool {
        let is_own = |folder: &Path| folder.parent().is_some_and(|parent| self.dir.starts_with(parent));
        writable.iter().any(|folder| folder.ends_with(TARGET.1) && is_own(folder))
    }

    /// A program that runs without a sandbox is the user's own, and so are the programs that it starts by name: none
    /// of them comes from the agent's folder. Returns the folder that it was installed to.
    fn trust(&self, argv: &mut [String], vars: &mut Vec<(String, String)>) -> Result<Option<PathBuf>, CommandError> {
        let given = vars.iter().find(|(name, _)| name == "PATH").map(|(_, places)| places.as_str());
        let places = path::outside(given.unwrap_or_default(), self.dir);
        let mut home = None;
        if let Some(program) = argv.first_mut().filter(|program| !program.contains('/')) {
            let found = path::find(program, &places, self.dir);
            home = found.as_deref().and_then(path::installed);
            let found = found.and_then(|path| path.into_os_string().into_string().ok());
            *program = found.ok_or_else(|| CommandError::NotFound(program.clone()))?;
        }
        vars.retain(|(name, _)| name != "PATH");
        vars.push(("PATH".to_owned(), places));
        Ok(home)
    }
}

fn git_settings(access: GitAccess) -> Vec<(String, String)> {
    let hooks = (access != GitAccess::Read).then_some(NO_HOOKS);
    let mut variables = Vec::new();
    for (number, (key, value)) in GIT_SETTINGS.into_iter().chain(hooks).enumerate() {
        variables.push((format!("GIT_CONFIG_KEY_{number}"), key.to_owned()));
        variables.push((format!("GIT_CONFIG_VALUE_{number}"), value.to_owned()));
    }
    variables.push(("GIT_CONFIG_COUNT".to_owned(), (variables.len() / 2).to_string()));
    variables
}

/// What commands print that could not change a file: where that is a mount, and where Landlock refuses it.
const DENIED_WRITE: [&str; 4] = ["ead-only file system", "EROFS", "esource busy", "EBUSY"];
const DENIED: [&str; 4] = ["ermission denied", "EACCES", "peration not permitted", "EPERM"];
/// What commands print that have no network.
const NO_NETWORK: [&str; 7] = [
    "ot resolve host",
    "in name resolution",
    "EAI_AGAIN",
    "ENOTFOUND",
    "Temporary failure resolving",
    "NewConnectionError",
    "getaddrinfo",
];
/// Where no sandbox with a network of its own can be made.
const NETWORKLESS: &str =
    "[no network: commands have none on this machine, because it denies namespaces (see `max-team doctor`)]\n";

/// Where a line that cannot be analysed names git, and files of the history are hidden from the agent.
const UNSEEN_GIT: &str = "[`.git` is hidden from this line, because the history has files that are hidden from you: call git \
                          by itself, or in a plain pipe]\n";

/// Whether a command printed some words. Only a hint for the model, so the texts of common libraries do.
#[derive(Debug)]
struct OutputHint {
    words: &'static [&'static str],
    is_heard: bool,
}

/// The variables of this process that are text.
pub(crate) fn variables() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

impl OutputHint {
    fn of(words: &'static [&'static str]) -> Self {
        Self { words, is_heard: false }
    }

    fn hear(&mut self, bytes: &[u8]) {
        let is_in = |words: &&str| bytes.windows(words.len()).any(|piece| piece == words.as_bytes());
        self.is_heard = self.is_heard || self.words.iter().any(is_in);
    }
}

/// What to do about a file that the sandbox did not let the command change. `is_unshielded`: it is Landlock alone.
fn barred_note(sandbox: &CommandSandbox, built: &BuiltSandbox, is_unshielded: bool) -> Option<String> {
    let temporary = if is_unshielded { "`$TMPDIR`" } else { "`/tmp`" };
    let builds = if sandbox.writes_builds { " and in build folders that exist" } else { "" };
    if sandbox.may_write_if_said {
        return Some(format!(
            "[not without `writes: true`: this line can change nothing but files in {temporary}{builds}, and reach no host. If \
             it must change the project or reach a host, call again with `writes: true`]\n"
        ));
    }
    if sandbox.read_only {
        return Some(format!("[nothing can be changed here but files in {temporary}]\n"));
    }
    let shown = &built.shown;
    (!shown.is_empty() && !is_unshielded).then(|| {
        format!(
            "[protected files stay as they are while commands run: {}. To change one, use `write_file` or `edit_file`, \
             which asks the user]\n",
            shown.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn an_unsandboxed_program_is_not_taken_from_the_project() {
        let dir = tempfile::tempdir().unwrap();
        let trap = dir.path().join(".venv/bin");
        fs::create_dir_all(&trap).unwrap();
        fs::write(trap.join("env"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(trap.join("env"), fs::Permissions::from_mode(0o755)).unwrap();
        let argv = ["env".to_owned()];
        let env = vec![("PATH".to_owned(), format!("{}:node_modules/.bin:/usr/bin", trap.display()))];
        let job = |isolation| Invocation {
            env: env.clone(),
            ..Invocation::new(&argv, dir.path(), Duration::from_secs(1), isolation)
        };
        let (spec, _) = job(None).spec(&CancellationToken::new()).unwrap();
        assert_eq!(spec.argv, ["/usr/bin/env"]);
        assert!(spec.env.contains(&("PATH".to_owned(), "/usr/bin".to_owned())), "{:?}", spec.env);
        let isolation = CommandSandbox::around(dir.path());
        let (walled, _) = job(Some(&isolation)).spec(&CancellationToken::new()).unwrap();
        assert_eq!(walled.argv, ["env"], "within walls, a project's own programs are its own");
        assert!(walled.env.contains(&env[0]));
        let is_set =
            |spec: &Spec| spec.env.contains(&("GIT_CONFIG_KEY_0".to_owned(), "safe.bareRepository".to_owned()));
        assert_eq!((is_set(&walled), is_set(&spec)), (true, false));
    }
}
