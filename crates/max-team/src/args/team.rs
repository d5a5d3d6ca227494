//! The command line of teammates and their mail.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use max_team_core::policy::Mode;
use max_team_runtime::Fate;

use super::{OwnFolder, mode};

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Mail {
    /// List messages, oldest first: sender, recipient, state
    List {
        /// Session ID (a unique prefix or suffix is enough); default: the last session of this folder
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// Only messages from or to this agent
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
        /// Only messages in this state: queued (no process runs the session), delivered, read (the agent works on it), acted (the
        /// agent has finished that work), dead (returned to the sender), refused, withdrawn (taken back unread)
        #[arg(long, value_name = "STATE", value_parser = Fate::NAMES, hide_possible_values = true)]
        state: Option<String>,
        /// Include control messages (idle, permission and shutdown notices)
        #[arg(long)]
        all: bool,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one message in full
    Show {
        /// Message ID (a unique prefix or suffix is enough)
        id: String,
        /// Its session; default: the last session of this folder
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Send a message to one or more agents; `team` means all teammates
    Send {
        /// Names of one or more agents; the last argument is the text
        #[arg(required = true, num_args = 2.., value_names = ["NAME", "TEXT"])]
        words: Vec<String>,
        /// The session; default: the one that has agents of these names
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
}

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "A busy agent reads the message when its current step ends; an idle agent starts a turn. If no process runs the session, the message waits."
)]
pub(crate) struct Send {
    /// An agent's name, or `team` (all teammates)
    pub(crate) name: String,
    /// Text of the message
    pub(crate) text: String,
    /// The session; default: the one that has an agent of this name
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Team {
    /// Show the lead and the teammates of a session: what each does, or why it is idle. For agents that work on a plan, use
    /// `max-team ps`
    Show {
        /// The session; default: the last session of this folder
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Ask teammates to finish their work, read their messages and end. Exit 5 if a busy one refuses within five seconds
    Shutdown {
        /// Names; `team` means all teammates
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        /// Stop them at once, without waiting for their consent
        #[arg(long)]
        now: bool,
        /// The session; default: the one that has agents of these names
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
    /// Change a teammate's permission mode; it is never looser than the session's
    Mode {
        /// The teammate; `team` means all
        name: String,
        /// default, acceptEdits, plan, auto, dontAsk or bypassPermissions
        #[arg(value_parser = mode)]
        mode: Mode,
        /// The session; default: the one that has an agent of this name
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
    /// List saved teams: those of this project (.max-team/teams) and your own
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Save the team of a session
    Save {
        /// Name to save the team under
        name: String,
        /// The session; default: the last session of this folder
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        #[command(flatten)]
        folder: OwnFolder,
        /// Replace the file if there is one
        #[arg(long)]
        force: bool,
    },
    /// Start the teammates of a saved team in a session or a new chat; without a terminal, this command ends when all are idle
    Load {
        /// Its name, or a file
        name: String,
        /// First message to the lead
        prompt: Option<String>,
        /// An existing session, also one that another process runs
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
    /// Write the team of a session as files that other programs read
    Export {
        /// Write files in Claude Code's format into this folder (required)
        #[arg(long, value_name = "DIR")]
        claude: PathBuf,
        /// The session; default: the last session of this folder
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
}
