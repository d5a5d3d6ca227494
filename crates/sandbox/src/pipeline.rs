//! Runs commands joined by `&& || ; |` without a shell: a process of ours joins them, inside the same sandbox.
//!
//! It knows words, pipes, redirections to and from named files, variables before a command, and `cd`; nothing is
//! expanded, and there is no other syntax. A file beneath the line's folder is opened for writing through no link,
//! because a part of the line may have made one after the line was judged.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};

use crate::spec::Spec;
use crate::supervisor::command;

/// A shell's exit code for a program that is not found.
const NOT_FOUND: i32 = 127;
/// A shell's exit code for a program that cannot be run.
const NOT_RUN: i32 = 126;
/// A shell's exit code for a signal, without its number.
const SIGNALLED: i32 = 128;

/// One command of a line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PipelineStep {
    /// How it follows the one before it.
    pub join: Operator,
    /// Variables for it alone.
    pub env: Vec<(String, String)>,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Where its input comes from and its outputs go, in order.
    pub flows: Vec<Redirect>,
}

/// How a command follows the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operator {
    /// In any case.
    #[default]
    Then,
    /// If that succeeded.
    And,
    /// If that failed.
    Or,
    /// Beside it, reading what it writes.
    Pipe,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redirect {
    /// The command's descriptor: 0, 1 or 2.
    pub fd: usize,
    /// The other end.
    pub to: RedirectTarget,
}

/// The other end of a redirection; paths are relative to where the line is by then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RedirectTarget {
    /// A file that is read.
    Read(String),
    /// A file that is made or emptied.
    Write(String),
    /// A file that is made or added to.
    Append(String),
    /// The same as that descriptor.
    Same(usize),
}

/// Runs a line to its end; what this process is to exit with. A signal that ended the last command ends this one, too.
pub(crate) fn run(spec: &Spec) -> u8 {
    let mut line = Pipeline { spec, here: spec.dir.clone() };
    let mut code = 0;
    let mut steps = spec.line.as_slice();
    while let Some(first) = steps.first() {
        let beside = steps.iter().skip(1).take_while(|step| step.join == Operator::Pipe).count();
        let (pipeline, rest) = steps.split_at(beside + 1);
        steps = rest;
        let is_wanted = match first.join {
            Operator::Then | Operator::Pipe => true,
            Operator::And => code == 0,
            Operator::Or => code != 0,
        };
        if is_wanted {
            code = line.pipeline(pipeline);
        }
    }
    if let Some(signal) = Signal::from_named_raw(-code) {
        let _ = kill_process(getpid(), signal);
    }
    u8::try_from(if code < 0 { SIGNALLED - code } else { code }).unwrap_or(u8::MAX)
}

/// A line that runs.
struct Pipeline<'a> {
    spec: &'a Spec,
    /// Where it is by now.
    here: PathBuf,
}

/// The three descriptors of a command.
type StdioEnds = [OwnedFd; 3];

impl Pipeline<'_> {
    /// Commands beside each other; what the last of them exits with.
    fn pipeline(&mut self, steps: &[PipelineStep]) -> i32 {
        if let [step] = steps
            && is_move(step)
        {
            return match self.moved(step) {
                Ok(to) => {
                    self.here = to;
                    0
                }
                Err(words) => complain(io::stderr(), &words, 1),
            };
        }
        let mut children = Vec::new();
        let mut input = None;
        for (index, step) in steps.iter().enumerate() {
            let started = match self.ends(input.take(), index + 1 == steps.len()) {
                Ok((ends, next)) => {
                    input = next;
                    self.start(step, ends)
                }
                Err(error) => Err(complain(io::stderr(), &error.to_string(), NOT_RUN)),
            };
            children.push(started);
        }
        // Closes a pipe that no command reads, so that its writer gets an error.
        drop(input);
        children.into_iter().fold(0, |_, child| match child {
            Ok(mut child) => child.wait().map_or(NOT_RUN, coded),
            Err(code) => code,
        })
    }

    /// A command's descriptors as the pipe gives them, and where the next one reads.
    fn ends(&self, input: Option<OwnedFd>, is_last: bool) -> io::Result<(StdioEnds, Option<OwnedFd>)> {
        let input = match input {
            Some(input) => input,
            None => File::open("/dev/null")?.into(),
        };
        let error = io::stderr().as_fd().try_clone_to_owned()?;
        if is_last {
            return Ok(([input, io::stdout().as_fd().try_clone_to_owned()?, error], None));
        }
        let (reader, writer) = io::pipe()?;
        Ok(([input, writer.into(), error], Some(reader.into())))
    }

    /// Starts a command, or says why not where its errors go.
    fn start(&self, step: &PipelineStep, mut ends: StdioEnds) -> Result<Child, i32> {
        for flow in &step.flows {
            if let Err(words) = self.redirect(flow, &mut ends) {
                return Err(complain(File::from(ends.into_iter().nth(2).ok_or(NOT_RUN)?), &words, 1));
            }
        }
        let [input, output, error] = ends;
        if is_move(step) {
            // As in a shell, `cd` in a pipeline does not move the line.
            return Err(self.moved(step).map_or_else(|words| complain(File::from(error), &words, 1), |_| 0));
        }
        let name = step.argv.first().cloned().unwrap_or_default();
        let said = error.try_clone().map(File::from).map_err(|_| NOT_RUN)?;
        let started = command(&step.argv, &self.here, self.spec.env.iter().chain(&step.env))
            .and_then(|mut command| command.stdin(input).stdout(output).stderr(error).spawn());
        started.map_err(|error| match error.kind() {
            ErrorKind::NotFound if name.contains('/') => complain(said, &format!("{name}: not found"), NOT_FOUND),
            ErrorKind::NotFound => {
                let words = format!("{name}: there is no such program (and no shell, so no words of a shell either)");
                complain(said, &words, NOT_FOUND)
            }
            _ => complain(said, &format!("{name}: {error}"), NOT_RUN),
        })
    }

    fn redirect(&self, flow: &Redirect, ends: &mut StdioEnds) -> Result<(), String> {
        let opened = match &flow.to {
            RedirectTarget::Same(fd) => same(ends, *fd),
            RedirectTarget::Read(path) | RedirectTarget::Write(path) | RedirectTarget::Append(path)
                if own(path).is_some() =>
            {
                same(ends, own(path).unwrap_or_default())
            }
            RedirectTarget::Read(path) => File::open(self.here.join(path)).map(OwnedFd::from),
            RedirectTarget::Write(path) => write_to(&self.spec.dir, &self.here.join(path), OFlags::TRUNC),
            RedirectTarget::Append(path) => write_to(&self.spec.dir, &self.here.join(path), OFlags::APPEND),
        };
        let end = ends.get_mut(flow.fd).ok_or_else(|| format!("descriptor {} cannot be redirected", flow.fd))?;
        *end = opened.map_err(|error| match &flow.to {
            RedirectTarget::Same(fd) => format!("descriptor {fd}: {error}"),
            RedirectTarget::Read(path) | RedirectTarget::Write(path) | RedirectTarget::Append(path) => {
                format!("{path}: {error}")
            }
        })?;
        Ok(())
    }

    /// Where a `cd` leads. Only one plain path is accepted, so that it means what was judged.
    fn moved(&self, step: &PipelineStep) -> Result<PathBuf, String> {
        let words: Vec<&str> = step.argv.iter().skip(1).map(String::as_str).collect();
        let path = match words.as_slice() {
            [path] | ["--", path] if !path.starts_with('-') && !path.is_empty() => path,
            _ => return Err("cd: takes one path here, and no options".to_owned()),
        };
        let to = self.here.join(path);
        match fs::metadata(&to) {
            Ok(found) if found.is_dir() => Ok(to),
            Ok(_) => Err(format!("cd: {path}: not a folder")),
            Err(error) => Err(format!("cd: {path}: {error}")),
        }
    }
}

fn is_move(step: &PipelineStep) -> bool {
    step.argv.first().is_some_and(|program| program == "cd")
}

/// The descriptor that a path names, if it is one of the command's own.
fn own(path: &str) -> Option<usize> {
    ["/dev/stdin", "/dev/stdout", "/dev/stderr"].iter().position(|name| *name == path)
}

fn same(ends: &StdioEnds, fd: usize) -> io::Result<OwnedFd> {
    ends.get(fd).ok_or_else(|| io::Error::other("there is no such descriptor"))?.try_clone()
}

/// Opens a file for writing: beneath the folder through no link at all, elsewhere not through one at its end.
fn write_to(root: &Path, path: &Path, how: OFlags) -> io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NOCTTY | how;
    let mode = Mode::from_raw_mode(0o666);
    #[cfg(target_os = "linux")]
    if let Ok(below) = path.strip_prefix(root) {
        use rustix::fs::{CWD, ResolveFlags, open, openat2};
        use rustix::io::Errno;
        let folder = open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match openat2(&folder, below, flags, mode, resolve) {
            Err(Errno::LOOP) => return Err(io::Error::other("a link stands there or on the way; name where it leads")),
            // The path leads out of the folder after all, or the kernel lacks `openat2`.
            Err(Errno::XDEV | Errno::NOSYS) => return Ok(rustix::fs::openat(CWD, path, flags, mode)?),
            opened => return Ok(opened?),
        }
    }
    let _ = root;
    Ok(rustix::fs::open(path, flags, mode)?)
}

/// What it exited with; a signal as a negative number.
fn coded(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| -signal)).unwrap_or(NOT_RUN)
}

/// Writes an error where the command would have; returns the exit code for it.
fn complain(mut to: impl Write, words: &str, code: i32) -> i32 {
    // If it cannot be written, the exit code still tells.
    let _ = writeln!(to, "{words}");
    code
}
