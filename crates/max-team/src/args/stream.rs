//! The command line of what reads the stream of events.

use clap::Args;
use max_team_runtime::{Mark, What};

#[derive(Debug, Clone, Args)]
pub(crate) struct Events {
    /// Session ID (a unique prefix or suffix is enough); default: the last session of any folder
    #[arg(long, value_name = "ID", conflicts_with = "all")]
    pub(crate) session: Option<String>,
    /// Include all sessions
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Logs {
    /// The agent: a name, a name with the end of its ID (`leo-1f2e3d`), or the end of its ID
    pub(crate) agent: String,
    /// In this session (a unique prefix or suffix of its ID is enough)
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// `attach` is `logs -f`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Attach {
    /// The agent: a name, a name with the end of its ID (`leo-1f2e3d`), or the end of its ID
    pub(crate) agent: String,
    /// In this session (a unique prefix or suffix of its ID is enough)
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Accepted for the sake of `logs -f`; `attach` always follows
    #[arg(short = 'f', long, hide = true)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) events: EventFilter,
}

impl From<Attach> for Logs {
    fn from(Attach { agent, session, events, .. }: Attach) -> Self {
        Self { agent, session, reading: Reading { follow: true, events } }
    }
}

/// From where, how far, what of it and how.
#[derive(Debug, Clone, Args)]
pub(crate) struct Reading {
    /// Follow new events until Ctrl-C
    #[arg(short = 'f', long)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) events: EventFilter,
}

/// The first event, the types and the form.
#[derive(Debug, Clone, Args)]
pub(crate) struct EventFilter {
    /// Print only events after this `seq` (see --json): `1200`, or `1200.1` for its part 1
    #[arg(long, alias = "after", value_name = "SEQ", default_value = "0")]
    pub(crate) from: Mark,
    /// Only events of this type; may be given several times
    #[arg(long = "type", value_name = "TYPE", value_parser = What::TYPES)]
    pub(crate) types: Vec<String>,
    /// Print JSON, one line per event (the default of `max-team events` without a terminal)
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use max_team_runtime::Mark;

    use crate::args::{Cli, Command};

    #[test]
    fn a_place_is_a_number_or_two() {
        let parse = |words: &[&str]| Cli::try_parse_from(["max-team", "events"].iter().chain(words));
        let Some(Command::Events(events)) = parse(&["--from", "42.1", "-f", "--type", "mail"]).unwrap().command else {
            panic!("not the events")
        };
        assert_eq!(events.reading.events.from, Mark { seq: 42, part: Some(1) });
        assert!(events.reading.follow && events.reading.events.types == ["mail"] && !events.all);
        for wrong in [&["--from", "x"][..], &["--type", "moon"], &["--all", "--session", "x"]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
