//! Runs one command in its sandbox, and moves protected files away that it made without approval.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use max_team_core::limits::NESTED_PROTECTED_MAX;
use max_team_core::policy::protecting_row;
use max_team_sandbox::{
    AppearedPath, CommandOutcome, Limits, OutputSource, PipelineStep, Spec, is_secret, run, set_aside,
};
use tokio_util::sync::CancellationToken;

use super::approved::{self, ApprovedFiles};
use super::isolation::ProtectedFiles;
use super::{CommandError, CommandSandbox, path};

/// The longest time that a command may be given.
const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 3_600);

/// It cannot be told whether the command or the user made a file, so the user must hear where it is now.
const THEIRS: &str = "[if the user made it while the command ran, tell them where it is now]\n";

/// Git takes any folder that looks like a repository for one and runs what its `config` names. An agent can write such a
/// folder without a question, so commands only use a bare repository that is named (`--git-dir`), which asks.
const NO_BARE_REPOSITORY: [(&str, &str); 3] =
    [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "safe.bareRepository"), ("GIT_CONFIG_VALUE_0", "explicit")];

/// The output folder of build tools in a read-only project; it is removed with the command.
const SCRATCH: [(&str, &str); 4] = [
    ("CARGO_TARGET_DIR", "/tmp/target"),
    ("GOCACHE", "/tmp/go-build"),
    ("PYTHONDONTWRITEBYTECODE", "1"),
    ("PYTEST_ADDOPTS", "-p no:cacheprovider"),
];

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
        }
    }

    /// Runs it to its end. `sink` takes what comes out; if it says `false`, that was enough and everything is ended.
    pub(crate) fn run(
        &self,
        cancel: &CancellationToken,
        sink: &mut dyn FnMut(OutputSource, &[u8]) -> bool,
    ) -> Result<CommandOutcome, CommandError> {
        let mut spec = self.spec(cancel)?;
        // Without this list, new files could not be told from old ones afterwards.
        let before = self.isolation.map(CommandSandbox::kept).transpose()?;
        if let (Some(isolation), Some(before)) = (&mut spec.isolation, &before) {
            isolation.protected.extend(before.obeyed.iter().take(NESTED_PROTECTED_MAX).cloned());
        }
        let known = before.as_ref().map(|before| before.kept.clone()).unwrap_or_default();
        let (approved, open) = (
            ApprovedFiles::watch(self.isolation, known),
            self.isolation.map(CommandSandbox::opened).unwrap_or_default(),
        );
        let mut is_barred = DeniedWriteHint::default();
        let (ran, moved) = self.guarded(&approved, || {
            run(&spec, self.apart, cancel, &mut |out, bytes| {
                is_barred.hear(bytes);
                sink(out, bytes)
            })
        });
        if let Some(isolation) = self.isolation {
            // Files that this command was allowed to make must not be moved away by other commands that still run.
            let new = isolation.opened().into_iter().filter(|path| !open.contains(path));
            new.for_each(|path| approved::note_all(&path));
        }
        // Also after a failure, because files that it made are there.
        let (mut appeared, unseen) = before.map_or_else(Default::default, |before| self.made_since(&before));
        appeared.splice(0..0, moved.into_iter().chain(ran.iter().flat_map(|over| over.appeared.clone())));
        let appeared = approved.give_back(appeared);
        if let Some(isolation) = self.isolation {
            isolation.note_moved(&appeared);
        }
        let mut notes: Vec<String> = appeared.iter().map(note).collect();
        if !notes.is_empty() {
            notes.push(THEIRS.to_owned());
        }
        notes.extend(self.isolation.filter(|isolation| isolation.on && is_barred.0).and_then(barred));
        for note in notes {
            sink(OutputSource::Output, note.as_bytes());
        }
        let left =
            appeared.iter().find(|appeared| appeared.moved.is_none()).map(|appeared| self.unseen(left(appeared)));
        let over = ran.map(|over| CommandOutcome { appeared, ..over })?;
        left.or(unseen).map_or(Ok(over), Err)
    }

    /// Runs a command while a thread moves new protected files away.
    fn guarded<T>(&self, approved: &ApprovedFiles, run: impl FnOnce() -> T) -> (T, Vec<AppearedPath>) {
        let Some(isolation) = self.isolation.filter(|isolation| !isolation.written().is_empty()) else {
            return (run(), Vec::new());
        };
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let guard = thread::Builder::new().spawn_scoped(scope, || approved.guard(isolation, &is_over));
            let ran = run();
            is_over.store(true, Ordering::Release);
            let moved = guard.ok().and_then(|guard| {
                guard.thread().unpark();
                guard.join().ok()
            });
            (ran, moved.unwrap_or_default())
        })
    }

    fn unseen(&self, why: String) -> CommandError {
        CommandError::Unseen { program: self.argv.first().cloned().unwrap_or_default(), why }
    }

    /// Moves protected files away that appeared since `before`: the sandbox cannot protect a path where nothing is
    /// yet. Also returns why there may be more of them, if so.
    fn made_since(&self, before: &ProtectedFiles) -> (Vec<AppearedPath>, Option<CommandError>) {
        match self.isolation.map(CommandSandbox::kept).transpose() {
            Ok(now) => {
                let ProtectedFiles { kept, unread, .. } = now.unwrap_or_default().since(before);
                let made = kept.into_iter().map(|path| AppearedPath { moved: set_aside(&path), path }).collect();
                let dark = unread.first().map(|folder| format!("`{}` cannot be read any more", folder.display()));
                (made, dark.map(|why| self.unseen(why)))
            }
            Err(error) => (Vec::new(), Some(self.unseen(error.to_string()))),
        }
    }

    fn spec(&self, cancel: &CancellationToken) -> Result<Spec, CommandError> {
        let limits = self.isolation.map_or_else(Limits::default, |isolation| isolation.limits);
        let vars =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let mut vars: Vec<(String, String)> = vars.filter(|(name, _)| !is_secret(name) && !(self.hide)(name)).collect();
        let mut isolation = match self.isolation {
            Some(isolation) => isolation.build(&mut vars, cancel)?,
            None => self.built.clone(),
        };
        if self.isolation.is_some_and(|isolation| isolation.read_only) {
            vars.retain(|(name, _)| !SCRATCH.iter().any(|(own, _)| own == name));
            vars.extend(SCRATCH.map(|(name, value)| (name.to_owned(), value.to_owned())));
        }
        if self.isolation.is_some() {
            vars.extend(NO_BARE_REPOSITORY.map(|(name, value)| (name.to_owned(), value.to_owned())));
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
        Ok(Spec {
            argv,
            line: self.line.clone(),
            dir: self.dir.to_owned(),
            env: vars,
            isolation,
            limits: Limits { time: self.timeout.min(TIMEOUT_MAX), ..limits },
            end_mark: self.isolation.and_then(|isolation| isolation.end_mark.clone()),
            stdin: None,
            proxy: None,
            scratch: None,
            ends_its_children: false,
        })
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

fn note(appeared: &AppearedPath) -> String {
    let path = appeared.path.display();
    // A file that the team obeys itself, or that a rule denies, is not opened by any approval.
    let can_ask = protecting_row(&path.to_string()).is_some_and(|row| !row.is_held);
    match &appeared.moved {
        Some(moved) if can_ask => format!(
            "[`{path}` is protected and was made without the user's approval; it was moved to `{}`. To make it, use \
             `write_file`, which asks the user]\n",
            moved.display()
        ),
        Some(moved) => format!("[`{path}` is only for the user to make; it was moved to `{}`]\n", moved.display()),
        None => format!("[{}]\n", left(appeared)),
    }
}

fn left(appeared: &AppearedPath) -> String {
    format!("`{}` is protected, appeared while it ran and could not be moved away", appeared.path.display())
}

/// Whether a command says that it could not change a file. Only a hint for the model, so the C library's error texts
/// do.
#[derive(Debug, Default)]
struct DeniedWriteHint(bool);

impl DeniedWriteHint {
    fn hear(&mut self, bytes: &[u8]) {
        const WORDS: [&[u8]; 4] = [b"ead-only file system", b"EROFS", b"esource busy", b"EBUSY"];
        self.0 = self.0 || WORDS.iter().any(|words| bytes.windows(words.len()).any(|piece| piece == *words));
    }
}

/// What to do about a protected file that the sandbox did not let the command change.
fn barred(isolation: &CommandSandbox) -> Option<String> {
    let shown = isolation.shown();
    (!shown.is_empty()).then(|| {
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
        let spec = job(None).spec(&CancellationToken::new()).unwrap();
        assert_eq!(spec.argv, ["/usr/bin/env"]);
        assert!(spec.env.contains(&("PATH".to_owned(), "/usr/bin".to_owned())), "{:?}", spec.env);
        let isolation = CommandSandbox::around(dir.path());
        let walled = job(Some(&isolation)).spec(&CancellationToken::new()).unwrap();
        assert_eq!(walled.argv, ["env"], "within walls, a project's own programs are its own");
        assert!(walled.env.contains(&env[0]));
        let is_set =
            |spec: &Spec| spec.env.contains(&("GIT_CONFIG_KEY_0".to_owned(), "safe.bareRepository".to_owned()));
        assert_eq!((is_set(&walled), is_set(&spec)), (true, false));
    }
}
