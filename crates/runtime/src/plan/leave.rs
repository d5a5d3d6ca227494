//! Whether a check may run: judged like any command of the task's owner.
//!
//! It is judged twice. When a plan is proposed, a denied check is a flaw, and a check that needs a person's approval
//! is a risk, without whose approval the plan is not carried out. Before it runs it is judged again: the owner may be
//! another by then, and rules may have changed.

use max_team_core::agent::{Constraints, Settings};
use max_team_core::policy::command_line::{self, CommandLine, SimpleCommand};
use max_team_core::policy::{Action, ActionKind, Judgement, Mode, Rules, Verdict, judge};

/// The tool whose permission rules apply to commands.
pub(super) const TOOL: &str = "run_shell";

/// Judges a check when it is proposed. Plan mode counts as the default mode, because approval of the plan ends it.
pub(super) fn at_proposal(settings: &Settings, argv: &[String]) -> Judgement {
    let freed = |mode: &Mode| if *mode == Mode::Plan { Mode::Default } else { *mode };
    let within: Vec<Mode> = settings.within.iter().map(freed).collect();
    judged(settings, freed(&settings.mode), &within, argv)
}

/// Why a check may not run now, as text. `is_covered`: the check was approved with the plan.
pub(super) fn refused(settings: &Settings, is_covered: bool, argv: &[String]) -> Option<String> {
    let judged = judged(settings, settings.mode, &settings.within, argv);
    match judged.verdict {
        Verdict::Deny => Some(format!("it was not run: {}", judged.rule)),
        // A check that only asks because it is opaque was weighed at the proposal.
        Verdict::Ask if needs_a_person(&judged) && !is_covered => Some(format!(
            "it was not run: it needs a yes that this plan did not ask for ({}); revise the plan",
            judged.rule
        )),
        Verdict::Ask | Verdict::Allow => None,
    }
}

/// Whether only a person may allow it.
pub(super) fn needs_a_person(judged: &Judgement) -> bool {
    judged.verdict == Verdict::Ask && (judged.is_danger || judged.origin.is_some())
}

fn judged(settings: &Settings, mode: Mode, within: &[Mode], argv: &[String]) -> Judgement {
    let part = SimpleCommand { argv: argv.to_vec(), ..SimpleCommand::default() };
    let action = Action {
        kind: ActionKind::Execute,
        line: Some(CommandLine::Plain(vec![part])),
        ..Action::read(command_line::join(argv))
    };
    // `allowed_commands` limits what the owner runs by itself. A check was shown to a person, who approved exactly
    // this line.
    let constraints = Constraints { allowed_commands: None, ..settings.constraints.clone() };
    let rules = Rules { within, permissions: &settings.permissions, approved: true, ..Rules::new(mode, &constraints) };
    judge(&rules, TOOL, &action)
}
