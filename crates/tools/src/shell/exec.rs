//! A judged line on its way into its sandbox: run without a shell if it is plain, by a shell if a person has seen it.

use std::path::PathBuf;
use std::time::Duration;

use max_team_core::policy::command_line::{self, CommandLine, Operator, RedirectTarget, SimpleCommand};
use max_team_core::policy::program::{self, CommandEffect};
use max_team_core::policy::{approved_rows, deletion_targets, git_access, only_touches_paths};
use max_team_sandbox as sandbox;
use tokio_util::sync::CancellationToken;

use super::DEPTH_MAX;
use crate::command::{CommandError, CommandSandbox, Invocation, OutputSource};
use crate::text::clip;
use crate::tool::ToolContext;

/// Bytes of a line where it is only named.
const NAME_BYTES_MAX: usize = 200;

/// A line to run, and its sandbox.
#[derive(Debug)]
pub(super) struct ShellExec {
    argv: Vec<String>,
    steps: Vec<sandbox::PipelineStep>,
    dir: PathBuf,
    isolation: CommandSandbox,
    timeout: Duration,
    /// Whether it runs on while its agent does other things.
    pub(super) lives_on: bool,
    /// How long it may neither print nor transfer anything.
    idle: Option<Duration>,
}

impl ShellExec {
    /// Exactly the line that was judged.
    pub(super) fn new(cx: &ToolContext, line: &CommandLine, timeout: Duration, idle: Option<Duration>) -> Self {
        let (argv, steps) = match line {
            CommandLine::Opaque { text, .. } => (["sh", "-c", text].map(str::to_owned).to_vec(), Vec::new()),
            CommandLine::Plain(parts) => match parts.as_slice() {
                [part] if is_bare(part) => (part.argv.clone(), Vec::new()),
                parts => (vec![clip(&line.shown(), NAME_BYTES_MAX)], parts.iter().map(step).collect()),
            },
        };
        let hosts = cx.sandbox.hosts.clone().naming(named_hosts(line));
        let open = approved_rows(line, cx.sandbox.attended);
        let git = git_access(line);
        let mut isolation = CommandSandbox { hosts, open, git, ..CommandSandbox::clone(&cx.sandbox) };
        if cx.sandbox.attended && only_touches_paths(line) {
            isolation.open_deleted(cx.root.path(), &deletion_targets(line));
        }
        Self { argv, steps, dir: cx.root.path().to_owned(), isolation, timeout, lives_on: false, idle }
    }

    /// How long it may take.
    pub(super) fn time(&self) -> Duration {
        self.timeout
    }

    /// Runs it to its end. `sink` takes what comes out. Blocking.
    pub(super) fn run(
        &self,
        cancel: &CancellationToken,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<sandbox::CommandOutcome, CommandError> {
        let job = Invocation::new(&self.argv, &self.dir, self.timeout, Some(&self.isolation));
        let job = Invocation { line: self.steps.clone(), lives_on: self.lives_on, idle: self.idle, ..job };
        job.run(cancel, &mut |_: OutputSource, bytes| {
            sink(bytes);
            true
        })
    }
}

/// Whether a command can run by itself, without a process that joins it to others.
fn is_bare(part: &SimpleCommand) -> bool {
    part.env.is_empty() && part.flows.is_empty() && part.argv.first().is_some_and(|program| program != "cd")
}

fn step(part: &SimpleCommand) -> sandbox::PipelineStep {
    let join = match part.join {
        Operator::Then => sandbox::Operator::Then,
        Operator::And => sandbox::Operator::And,
        Operator::Or => sandbox::Operator::Or,
        Operator::Pipe => sandbox::Operator::Pipe,
    };
    let flow = |flow: &command_line::Redirect| sandbox::Redirect {
        fd: fd(flow.fd),
        to: match &flow.to {
            RedirectTarget::Read(path) => sandbox::RedirectTarget::Read(path.clone()),
            RedirectTarget::Write(path) => sandbox::RedirectTarget::Write(path.clone()),
            RedirectTarget::Append(path) => sandbox::RedirectTarget::Append(path.clone()),
            RedirectTarget::Same(other) => sandbox::RedirectTarget::Same(fd(*other)),
        },
    };
    let flows = part.flows.iter().map(flow).collect();
    sandbox::PipelineStep { join, env: part.env.clone(), argv: part.argv.clone(), flows }
}

fn fd(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The hosts that the line names itself: each of them was judged with it.
fn named_hosts(line: &CommandLine) -> Vec<String> {
    let mut named = Vec::new();
    if let CommandLine::Plain(parts) = line {
        parts.iter().for_each(|part| hosts(&part.argv, DEPTH_MAX, &mut named));
    }
    named
}

fn hosts(argv: &[String], depth: usize, named: &mut Vec<String>) {
    for effect in program::effects_of(argv).effects {
        match effect {
            CommandEffect::Reach(host) if !host.is_empty() => named.push(host),
            CommandEffect::Run(inner) if depth > 0 => hosts(&inner, depth - 1, named),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::parse_line;

    #[test]
    fn a_line_talks_to_the_hosts_that_were_judged() {
        for (text, want) in [
            ("ls", &[][..]),
            ("curl https://a.example/x", &["a.example"]),
            ("timeout 9 curl a.example | head", &["a.example"]),
            ("sh -c 'curl a.example'", &[]),
            ("curl $X", &[]),
        ] {
            assert_eq!(named_hosts(&parse_line(text)), want, "{text}");
        }
    }
}
