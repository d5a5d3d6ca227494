//! One command on its way into its walls.

use std::path::Path;
use std::time::Duration;

use max_team_sandbox::{Limits, Out, Over, Spec, Step, is_secret, run};
use tokio_util::sync::CancellationToken;

use super::{CommandError, Walls};

/// The longest time that a command may be given.
const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 3_600);

/// What is to be run.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    pub(crate) argv: &'a [String],
    pub(crate) dir: &'a Path,
    pub(crate) timeout: Duration,
    /// What it is kept within; `None` for programs that we trust with what we ask of them, and only we.
    pub(crate) walls: Option<&'a Walls>,
    /// Variables beside those that are handed on.
    pub(crate) env: Vec<(String, String)>,
    /// Which variables are not handed on, besides secrets.
    pub(crate) hide: fn(&str) -> bool,
    /// Several commands, joined; then `argv` is only what they are called.
    pub(crate) line: Vec<Step>,
    /// Whether standard error comes through a pipe of its own.
    pub(crate) apart: bool,
}

impl<'a> Job<'a> {
    pub(crate) fn new(argv: &'a [String], dir: &'a Path, timeout: Duration, walls: Option<&'a Walls>) -> Self {
        Self { argv, dir, timeout, walls, env: Vec::new(), hide: |_| false, line: Vec::new(), apart: false }
    }

    /// Runs it to its end. `sink` takes what comes out; if it says `false`, that was enough and everything is ended.
    pub(crate) fn run(
        &self,
        cancel: &CancellationToken,
        sink: &mut dyn FnMut(Out, &[u8]) -> bool,
    ) -> Result<Over, CommandError> {
        let over = run(&self.spec()?, self.apart, cancel, sink)?;
        for appeared in &over.appeared {
            let now = match &appeared.moved {
                Some(moved) => format!("was moved to `{}`", moved.display()),
                None => "could not be moved away: remove it".to_owned(),
            };
            let note = format!("[`{}` is only for the user to make; it {now}]\n", appeared.path.display());
            sink(Out::Output, note.as_bytes());
        }
        Ok(over)
    }

    fn spec(&self) -> Result<Spec, CommandError> {
        let limits = self.walls.map_or_else(Limits::default, |walls| walls.limits);
        let vars =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let mut vars: Vec<(String, String)> = vars.filter(|(name, _)| !is_secret(name) && !(self.hide)(name)).collect();
        let walls = match self.walls {
            Some(walls) => walls.build(&mut vars)?,
            None => None,
        };
        vars.retain(|(name, _)| !self.env.iter().any(|(own, _)| own == name));
        vars.extend(self.env.iter().cloned());
        Ok(Spec {
            argv: self.argv.to_vec(),
            line: self.line.clone(),
            dir: self.dir.to_owned(),
            env: vars,
            walls,
            limits: Limits { time: self.timeout.min(TIMEOUT_MAX), ..limits },
        })
    }
}
