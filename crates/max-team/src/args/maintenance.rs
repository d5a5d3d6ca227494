//! The arguments of what looks after the journal: sessions, evidence, backups.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ValueFault;
use super::journal_cmds::since;

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Sessions {
    /// List sessions, last used first
    List {
        /// At most this many
        #[arg(long, default_value_t = 20)]
        limit: usize,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what was said and done in a session
    Show {
        /// The session; default: the last one of any folder
        id: Option<String>,
        /// As JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Erase the contents of sessions; their checksums stay, so that `audit verify` still works
    Forget(Forget),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Forget {
    /// Session ID (a unique prefix or suffix is enough); default: sessions older than the setting `journal.keep_days`, if it is
    /// set
    pub(crate) id: Option<String>,
    /// All sessions without a message for this long, for example 90d
    #[arg(long, value_name = "TIME", conflicts_with = "id", value_parser = since)]
    pub(crate) older_than: Option<i64>,
    /// Only list them
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Audit {
    /// Show one line per journal entry; below an action, the rule or the person that allowed it
    Show {
        #[command(flatten)]
        which: AuditScope,
        /// As JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Export all entries as JSON lines, or as one page to read
    Export(Export),
    /// Print a checksum of the whole journal; kept elsewhere, it proves later that nothing was changed
    Seal {
        /// Write it to this new file instead of standard output
        file: Option<PathBuf>,
    },
    /// Check that no entry of the journal was changed or lost
    Verify {
        /// Also compare the journal with a seal that `audit seal` made
        #[arg(long, value_name = "FILE")]
        seal: Option<PathBuf>,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct AuditScope {
    /// Only entries of this session
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Only entries of this agent: its name, or the end of its ID
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Only entries of this kind, for example tool_intent; several with commas
    #[arg(long, value_name = "EVENT", value_delimiter = ',')]
    pub(crate) kind: Vec<String>,
    /// Only entries of this task of a plan
    #[arg(long, value_name = "TASK")]
    pub(crate) task: Option<String>,
    /// Only entries after this: a date (2026-01-31), a time (2026-01-31T12:00:00Z, or 14:30 today), or an age (90m, 2h, 3d, 1w)
    #[arg(long, value_name = "WHEN", value_parser = when)]
    pub(crate) since: Option<i64>,
    /// Only entries before this
    #[arg(long, value_name = "WHEN", value_parser = when)]
    pub(crate) until: Option<i64>,
}

/// Milliseconds since 1970.
fn when(text: &str) -> Result<i64, ValueFault> {
    let now = max_team_tools::now();
    if let Ok(ago_ms) = since(text) {
        return Ok(now.timestamp().as_millisecond().saturating_sub(ago_ms));
    }
    let at = text.parse::<jiff::Timestamp>().ok().or_else(|| {
        let today = || {
            let time = text.parse::<jiff::civil::Time>().ok().filter(|_| text.contains(':'))?;
            Some(now.date().to_datetime(time))
        };
        let day = text.parse::<jiff::civil::DateTime>().ok().or_else(today)?;
        Some(day.to_zoned(now.time_zone().clone()).ok()?.timestamp())
    });
    at.map(jiff::Timestamp::as_millisecond).ok_or_else(|| ValueFault::new(|lang| lang.value_moment().to_owned()))
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Export {
    /// Session ID (a unique prefix or suffix is enough); default: everything
    pub(crate) id: Option<String>,
    /// Start after this sequence number
    #[arg(long, alias = "from", default_value_t = 0)]
    pub(crate) after: u64,
    /// JSON lines, into this new file instead of standard output
    #[arg(long, value_name = "FILE", conflicts_with = "html")]
    pub(crate) jsonl: Option<PathBuf>,
    /// One page to read in a browser, into this new file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) which: AuditScope,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Backup {
    /// The new file; default: beside the journal, with the time in its name
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Restore {
    /// File that `backup` has written
    pub(crate) file: PathBuf,
    /// Do not ask before replacing a journal that has entries (it is kept); required without a terminal
    #[arg(long)]
    pub(crate) yes: bool,
}
