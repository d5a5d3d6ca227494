//! The command line of what works from any terminal, on the journal alone.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args, Subcommand};
use max_team_core::policy::GrantScope;
use max_team_workspace::i18n::CostBy;

use super::ValueFault;

#[derive(Debug, Clone, Args)]
pub(crate) struct Inbox {
    /// Question or plan ID (a unique prefix or suffix is enough)
    pub(crate) id: Option<String>,
    /// Show all instructions of a plan's tasks, not only three lines of each
    #[arg(long)]
    pub(crate) full: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Default, Args)]
#[command(group = ArgGroup::new("ruling"))]
pub(crate) struct Approve {
    /// Question or plan ID (a unique prefix or suffix is enough); may be left out if only one waits
    pub(crate) id: Option<String>,
    /// Approve only the tasks that can start now (the first wave); you are asked again before the others
    #[arg(long, conflicts_with = "ruling")]
    pub(crate) first_wave: bool,
    /// Answer to a question, or a note to the model with the approval
    #[arg(short = 'm', long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
    /// Also allow later actions of this kind (`max-team inbox ID` shows the rule that is added)
    #[arg(long)]
    pub(crate) always: bool,
    /// With --always: where they are allowed: task, session or repository (this project)
    #[arg(long = "for", value_name = "SCOPE", requires = "always", value_parser = until)]
    pub(crate) until: Option<GrantScope>,
    /// The word that approves a deletion which /rewind cannot give back (`max-team inbox ID` shows it)
    #[arg(long, value_name = "WORD", conflicts_with = "always")]
    pub(crate) word: Option<String>,
    /// A failed task: try it again
    #[arg(long, group = "ruling")]
    pub(crate) retry: bool,
    /// With --retry: give the task to this member
    #[arg(long, value_name = "MEMBER", requires = "retry")]
    pub(crate) by: Option<String>,
    /// With --retry: use this model
    #[arg(long, value_name = "MODEL", requires = "retry")]
    pub(crate) with: Option<String>,
    /// A failed task: go on without it
    #[arg(long, group = "ruling")]
    pub(crate) skip: bool,
    /// A failed task: you have fixed it by hand; check it again
    #[arg(long, group = "ruling")]
    pub(crate) fixed: bool,
    /// A failed task: take its member's answer as the result
    #[arg(long, group = "ruling")]
    pub(crate) accept: bool,
    /// A failed task: give it up, and the tasks that depend on it
    #[arg(long, group = "ruling")]
    pub(crate) give_up: bool,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Deny {
    /// Question or plan ID (a unique prefix or suffix is enough); may be left out if only one waits
    pub(crate) id: Option<String>,
    /// The reason, for the agent that asked
    #[arg(short = 'm', long, value_name = "WHY")]
    pub(crate) message: String,
    /// Ask for another plan that follows the text of -m
    #[arg(long)]
    pub(crate) changes: bool,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Stop {
    /// Session, agent or plan: an ID (a unique prefix or suffix is enough) or an agent's name; may be left out if only one plan is open
    #[arg(conflicts_with = "all")]
    pub(crate) id: Option<String>,
    /// Give up this task of the plan and the tasks that depend on it; the others continue
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    pub(crate) task: Option<String>,
    /// Give up every open plan
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Ps {
    /// Include agents that finished in the last 24 hours
    #[arg(long)]
    pub(crate) all: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Plans {
    /// List plans, newest first
    List {
        /// At most this many
        #[arg(long, default_value_t = 20)]
        limit: usize,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a plan: its tasks, their state and evidence
    Show {
        /// Plan ID (a unique prefix or suffix is enough); default: the newest
        id: Option<String>,
        /// Show all instructions of its tasks, not only three lines of each
        #[arg(long, group = "form")]
        full: bool,
        /// Print as JSON
        #[arg(long, group = "form")]
        json: bool,
        /// As a Mermaid chart
        #[arg(long, group = "form")]
        mermaid: bool,
        /// As a plan file, to run again
        #[arg(long, group = "form")]
        yaml: bool,
    },
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Trace {
    /// Session or plan ID (a unique prefix or suffix is enough); default: the last session of any folder
    pub(crate) id: Option<String>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Show all agents in order of time instead of as a tree
    #[arg(long, conflicts_with = "json")]
    pub(crate) timeline: bool,
    /// At most this many lines
    #[arg(long, default_value_t = 200)]
    pub(crate) limit: usize,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Cost {
    /// Group cost by this
    #[arg(long, default_value = "agent", value_parser = cost_by())]
    pub(crate) by: CostBy,
    /// Only this session (a unique prefix or suffix of its ID is enough)
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Only calls that ended within this time: 90m, 24h, 7d, 2w
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub(crate) since: Option<i64>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The columns by which costs can be added up.
fn cost_by() -> impl TypedValueParser<Value = CostBy> {
    PossibleValuesParser::new(["agent", "task", "model", "day", "session"]).map(|name| match name.as_str() {
        "task" => CostBy::Task,
        "model" => CostBy::Model,
        "day" => CostBy::Day,
        "session" => CostBy::Session,
        _ => CostBy::Agent,
    })
}

pub(super) fn since(text: &str) -> Result<i64, ValueFault> {
    let wanted = || ValueFault::new(|lang| lang.value_time_span().to_owned());
    let unit = text.chars().next_back().ok_or_else(wanted)?;
    let number = text.strip_suffix(unit).and_then(|number| number.parse::<u32>().ok()).ok_or_else(wanted)?;
    let minutes: i64 = match unit {
        'm' => 1,
        'h' => 60,
        'd' => 24 * 60,
        'w' => 7 * 24 * 60,
        _ => return Err(wanted()),
    };
    Ok(i64::from(number) * minutes * 60_000)
}

fn until(text: &str) -> Result<GrantScope, ValueFault> {
    let found = GrantScope::NAMES.iter().skip(1).find(|(name, _)| *name == text).map(|(_, until)| *until);
    found.ok_or_else(|| ValueFault::one_of(text, &["task", "session", "repository"]))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::args::{Cli, Command};

    fn parse(words: &[&str]) -> Result<Command, clap::Error> {
        let words = ["max-team"].iter().chain(words);
        Cli::try_parse_from(words).map(|cli| cli.command.unwrap())
    }

    #[test]
    fn answers_are_one_thing_at_a_time() {
        let Command::Approve(yes) = parse(&["approve", "ab", "--retry", "--by", "ray", "-m", "slower"]).unwrap() else {
            panic!("not an approval")
        };
        assert_eq!((yes.id.as_deref(), yes.retry, yes.by.as_deref()), (Some("ab"), true, Some("ray")));
        assert_eq!(yes.message.as_deref(), Some("slower"));
        for wrong in [
            &["approve", "--retry", "--skip"][..],
            &["approve", "--first-wave", "--fixed"],
            &["approve", "--by", "ray"],
            &["deny"],
            &["deny", "ab"],
            &["stop", "ab", "--all"],
            &["plans", "show", "--json", "--yaml"],
            &["cost", "--by", "moon"],
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
        assert!(matches!(parse(&["deny", "-m", "no"]).unwrap(), Command::Deny(no) if no.id.is_none() && !no.changes));
    }

    #[test]
    fn times_are_read() {
        let table = [("90m", 5_400_000), ("24h", 86_400_000), ("7d", 604_800_000), ("2w", 1_209_600_000)];
        for (text, ms) in table {
            assert_eq!(super::since(text), Ok(ms), "{text}");
        }
        for wrong in ["", "d", "7", "-1d", "7y", "1.5d", "日"] {
            assert!(super::since(wrong).is_err(), "{wrong}");
        }
    }
}
