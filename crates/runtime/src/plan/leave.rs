//! Whether a check may run: judged like any command of the task's owner.
//!
//! It is judged twice. When a plan is proposed, what is denied is a flaw, and what a person has to say yes to is a risk,
//! which the plan is not carried out without. Before it runs it is judged again: the owner may be another by then, and
//! rules may have changed.

use max_team_core::policy::line::{self, Line, Part};
use max_team_core::policy::{Action, Deed, Judgement, Mode, Rules, Verdict, judge};
use max_team_core::team::{Constraints, Settings};

/// The tool whose rules hold for commands.
const TOOL: &str = "run_shell";

/// Judges a check when it is proposed. Whoever only looks now may do more once the plan is approved.
pub(super) fn at_proposal(settings: &Settings, argv: &[String]) -> Judgement {
    let freed = |mode: &Mode| if *mode == Mode::Plan { Mode::Default } else { *mode };
    let within: Vec<Mode> = settings.within.iter().map(freed).collect();
    judged(settings, freed(&settings.mode), &within, argv)
}

/// Why a check may not run now, in words.
pub(super) fn refused(
    settings: &Settings,
    risks: &[String],
    task: &str,
    line: &str,
    argv: &[String],
) -> Option<String> {
    let judged = judged(settings, settings.mode, &settings.within, argv);
    match judged.verdict {
        Verdict::Deny => Some(format!("it was not run: {}", judged.rule)),
        // What only cannot be seen through was weighed at the proposal.
        Verdict::Ask if needs_a_person(&judged) && !risks.iter().any(|known| known.starts_with(&risk(task, line))) => {
            Some(format!(
                "it was not run: it needs a yes that this plan did not ask for ({}); revise the plan",
                judged.rule
            ))
        }
        Verdict::Ask | Verdict::Allow => None,
    }
}

/// Whether nobody but a person can answer for it.
pub(super) fn needs_a_person(judged: &Judgement) -> bool {
    judged.verdict == Verdict::Ask && (judged.is_danger || judged.origin.is_some())
}

/// How a check is told among the risks of a plan.
pub(super) fn risk(task: &str, line: &str) -> String {
    format!("task `{task}` runs `{line}` as a check")
}

fn judged(settings: &Settings, mode: Mode, within: &[Mode], argv: &[String]) -> Judgement {
    let part = Part { argv: argv.to_vec(), ..Part::default() };
    let action = Action { deed: Deed::Execute, line: Some(Line::Plain(vec![part])), ..Action::read(line::join(argv)) };
    // The list is of what the owner runs by itself. A check was put before a person, who said yes to this very line.
    let constraints = Constraints { allowed_commands: None, ..settings.constraints.clone() };
    let rules = Rules { within, permissions: &settings.permissions, approved: true, ..Rules::new(mode, &constraints) };
    judge(&rules, TOOL, &action)
}
