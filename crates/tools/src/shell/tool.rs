//! `run_shell`: a command line, for a model.
//!
//! What the policy judged is what runs: a plain line without a shell, anything else exactly as a person was shown it.
//! What a command has done is unknown after a crash, so it is never run again silently.

use std::time::Duration;

use max_team_core::limits::{BACKGROUND_S_MAX, COMMAND_IDLE_S_MAX, COMMAND_S_MAX};
use max_team_core::output::rendered;
use max_team_core::policy::{Action, CommandReach, Repeatability, WRITES};
use schemars::JsonSchema;
use serde::Deserialize;

use super::ended::{SHOWN, ended, is_fine};
use super::exec::ShellExec;
use super::history::VisibleLine;
use crate::command::{CommandError, OutputBuffer};
use crate::git;
use crate::rewind::DeletionSurvey;
use crate::text::{ends, size, visible};
use crate::tool::{Output, ToolContext, ToolError};
use crate::typed::Typed;

/// Bytes of output that are kept to be read on.
const OUTPUT_KEPT: usize = 8 << 20;

/// Run a command line in the project folder and get its output and exit code. A line whose effects cannot be seen (loops,
/// `$x`, scripts, `python3 -c`) runs at once, but can change nothing and reach no host; with `writes: true` it can, if the
/// plan or the user allows it. Prefer the other tools for files and git.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunShell {
    command: String,
    /// Seconds, at most 600; in the background 86400. Default: until 30 pass without output or transfer.
    #[schemars(range(min = 1, max = 86400))]
    timeout: Option<u32>,
    /// The line changes the project or reaches a host.
    writes: Option<bool>,
    /// Return an id at once and let it run on (servers, long jobs) until your work ends.
    background: Option<bool>,
    /// Its purpose, in a few words.
    description: Option<String>,
}

impl RunShell {
    fn is_background(&self) -> bool {
        self.background.unwrap_or(false)
    }

    fn time(&self) -> Result<Duration, ToolError> {
        let (usual, most) = match self.is_background() {
            true => (BACKGROUND_S_MAX, BACKGROUND_S_MAX),
            false => (COMMAND_S_MAX, COMMAND_S_MAX),
        };
        match self.timeout.unwrap_or(usual) {
            seconds if seconds <= most => Ok(Duration::from_secs(seconds.into())),
            _ => Err(ToolError::correctable(format!(
                "`timeout` is in seconds, at most {most}; give `background: true` to what takes longer"
            ))),
        }
    }
}

/// How long it may be idle, if it was given no time.
fn idle(args: &RunShell) -> Option<Duration> {
    let is_bounded = args.timeout.is_some() || args.is_background();
    (!is_bounded).then(|| Duration::from_secs(COMMAND_IDLE_S_MAX.into()))
}

pub(crate) fn run_shell() -> Typed<RunShell> {
    Typed::new("run_shell", Repeatability::Opaque, action, call)
}

fn action(cx: &ToolContext, args: &RunShell) -> Result<Action, ToolError> {
    let action = plain_action(cx, args)?;
    let deletion = action.line.as_ref().map(|line| DeletionSurvey::of(cx, line).decide());
    Ok(Action { deletion: deletion.filter(|deletion| !deletion.is_empty()).map(Box::new), ..action })
}

/// The action without what it deletes, which is measured on the disk.
fn plain_action(cx: &ToolContext, args: &RunShell) -> Result<Action, ToolError> {
    args.time()?;
    let mut action = super::action(&args.command, cx.root.path());
    if args.is_background() {
        action.parameters.push(("run_in_background".to_owned(), "true".to_owned()));
    }
    if args.writes.unwrap_or(false) {
        action.parameters.push((WRITES.to_owned(), "true".to_owned()));
    }
    Ok(action)
}

fn call(cx: &ToolContext, args: RunShell, intent: &Action, _: bool) -> Result<Output, ToolError> {
    let (time, judged) = (args.time()?, Action { reach: intent.reach, ..plain_action(cx, &args)? });
    // What is deleted was measured again when it was kept.
    let judged = Action { deletion: intent.deletion.clone(), ..judged };
    let line = judged.line.as_ref().filter(|_| judged == *intent).ok_or_else(|| {
        ToolError::correctable("a path in the command leads elsewhere now than when it was judged; nothing was run")
    })?;
    let seen = VisibleLine::new(cx, line)?;
    let order = ShellExec::new(cx, &seen.line, time, idle(&args));
    if args.is_background() {
        let note = args.description.as_deref().unwrap_or_default();
        return super::background::start(cx, order, &line.shown(), note);
    }
    let mut kept = OutputBuffer::new(OUTPUT_KEPT);
    let over = cx.progress.follow(|follow| {
        order.run(&cx.cancel, &mut |bytes| {
            kept.push(bytes);
            follow(bytes);
        })
    });
    let over = match over {
        // What it printed is wanted all the same.
        Err(error @ CommandError::Unseen { .. }) => {
            let text = format!("{error}\n{}", shown(cx, &kept.text()));
            return Ok(Output { is_error: true, ..Output::text(text) });
        }
        over => over?,
    };
    cx.check()?;
    let how = match (intent.reach, cx.sandbox.hides_history) {
        (CommandReach::Project | CommandReach::Temporary, _) => "",
        (CommandReach::ReadOnly, false) => "; read-only, no network",
        (CommandReach::ReadOnly, true) => "; read-only, no network, no `.git`",
        (CommandReach::BuildFolders, _) => "; only build folders can be written, no network",
        (CommandReach::Unshielded, _) => "; protected files were not protected, no network",
    };
    let left_out = git::left_out(seen.hidden);
    let text = format!("{}{how}\n{left_out}{}", ended(&over, time), shown(cx, &kept.text()));
    Ok(Output { is_error: !is_fine(&over), ..Output::text(text) })
}

impl From<CommandError> for ToolError {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::Lost { .. } => Self::Unknown(error.to_string()),
            _ => Self::correctable(error.to_string()),
        }
    }
}

/// What was printed: the beginning and the end of what is long, and where to read the rest.
fn shown(cx: &ToolContext, output: &str) -> String {
    if output.trim().is_empty() {
        return "(it printed nothing)".to_owned();
    }
    let lines = |text: &str| rendered(text).lines().map(visible).collect::<Vec<_>>().join("\n");
    if output.len() <= SHOWN {
        return lines(output);
    }
    let (head, tail) = ends(output, SHOWN);
    let cut = size((output.len() - head.len() - tail.len()) as u64);
    let rest = cx.keep(output).map(|words| format!("; {words}")).unwrap_or_default();
    format!("{}\n[… {cut} of {} cut{rest} …]\n{}", lines(head), size(output.len() as u64), lines(tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_and_the_limits_say_the_same() {
        let spec = crate::tool::Spec::of::<RunShell>("run_shell", Repeatability::Opaque);
        let timeout = &spec.schema["properties"]["timeout"];
        assert_eq!(timeout["maximum"], BACKGROUND_S_MAX);
        let words = timeout["description"].as_str().unwrap();
        for limit in [COMMAND_IDLE_S_MAX, COMMAND_S_MAX, BACKGROUND_S_MAX] {
            assert!(words.contains(&limit.to_string()), "{words}");
        }
    }
}
